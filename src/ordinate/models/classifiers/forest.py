"""Random forests, and what all models of trees share."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ordinate.models.classifiers.learner import Floats, ModelType, Params, limit_feature_share
from ordinate.models.tree_ensemble import TreeEnsemble

MOST_FEATURES = 200  # features that one split looks at: of more, fits take minutes


@dataclass(frozen=True)
class TreeLearner:
    """A learner whose fitted form is a `TreeEnsemble` of probabilities."""

    params: Params
    seed: int

    def predict(self, fitted: TreeEnsemble, matrix: Any) -> Floats:
        """Return the probabilities of the levels that were seen."""
        return fitted.predict(matrix)

    def is_valid(self, fitted: Any, *, features: int, seen: int, sparse: bool) -> bool:
        """Tell whether these are trees for so many features and levels."""
        del sparse  # they take either
        right = isinstance(fitted, TreeEnsemble) and fitted.link != "identity"
        return right and (fitted.width, fitted.outputs) == (features, seen)


class Forest(TreeLearner):
    """Learns a forest, whose splits look at a share of the features, and not at too many."""

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        """Return fitted trees."""
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - heavy, and optional

        share = limit_feature_share(self.params["max_features"], matrix, MOST_FEATURES)
        settings = {**self.params, "max_features": share}
        forest = RandomForestClassifier(**settings, n_jobs=None, random_state=self.seed)
        return TreeEnsemble.from_forest(forest.fit(matrix, targets, sample_weight=weights))


def _forest_space(trial: Any) -> dict[str, Any]:
    return {
        "n_estimators": trial.suggest_int("n_estimators", 50, 150, step=50),
        "max_features": trial.suggest_float("max_features", 0.002, 0.2, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 10, log=True),
        "criterion": trial.suggest_categorical("criterion", ["gini", "entropy"]),
    }


FOREST = ModelType(
    "forest",
    "Random forest",
    Forest,
    _forest_space,
    {"n_estimators": 100, "max_features": 0.05, "min_samples_leaf": 1, "criterion": "gini"},
)
