"""Naive Bayes of counts, and forests: the models that neither penalise nor boost."""

from typing import Any

from ordinate.errors import BadInput
from ordinate.models.classifiers.learner import Floats, ModelType, Params, limit_feature_share
from ordinate.models.classifiers.pipeline import PipelineLearner

MOST_FEATURES = 200  # features that one split looks at: of more, fits take minutes


class _NaiveBayesLearner(PipelineLearner):
    """Naive Bayes, whose features are counts, or shares of them."""

    def fit(self, matrix: Any, targets: Any, weights: Floats | None) -> Any:
        from scipy.sparse import issparse  # noqa: PLC0415 - heavy, and optional

        if issparse(matrix) and matrix.nnz and matrix.data.min() < 0:
            raise BadInput(
                "Naive Bayes takes counts, and these sparse features have negative values. Leave "
                "naive_bayes out for this feature set, or store it as a dense one: that is scaled "
                "to values from 0 to 1."
            )
        return super().fit(matrix, targets, weights)


class _ForestLearner(PipelineLearner):
    """A forest, whose splits look at a share of the features, and not at too many."""

    def fit(self, matrix: Any, targets: Any, weights: Floats | None) -> Any:
        share = limit_feature_share(self.estimator.max_features, matrix, MOST_FEATURES)
        self.estimator.set_params(max_features=share)
        return super().fit(matrix, targets, weights)


def _create_naive_bayes(params: Params, _seed: int) -> PipelineLearner:
    from sklearn.naive_bayes import ComplementNB, MultinomialNB  # noqa: PLC0415 - heavy

    kinds = {"multinomial": MultinomialNB, "complement": ComplementNB}
    estimator = kinds[params["variant"]](alpha=params["alpha"])
    return _NaiveBayesLearner(estimator, scaling="positive")


def _create_forest(params: Params, seed: int) -> PipelineLearner:
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - heavy, and optional

    forest = RandomForestClassifier(**params, n_jobs=None, random_state=seed)
    return _ForestLearner(forest, scaling="none")


def _naive_bayes_space(trial: Any) -> dict[str, Any]:
    return {
        "variant": trial.suggest_categorical("variant", ["multinomial", "complement"]),
        "alpha": trial.suggest_float("alpha", 1e-3, 10.0, log=True),
    }


def _forest_space(trial: Any) -> dict[str, Any]:
    return {
        "n_estimators": trial.suggest_int("n_estimators", 50, 150, step=50),
        "max_features": trial.suggest_float("max_features", 0.002, 0.2, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 10, log=True),
        "criterion": trial.suggest_categorical("criterion", ["gini", "entropy"]),
    }


NAIVE_BAYES = ModelType(
    "naive_bayes",
    "Naive Bayes",
    _create_naive_bayes,
    _naive_bayes_space,
    {"variant": "multinomial", "alpha": 1.0},
    calibrated=False,
)
FOREST = ModelType(
    "forest",
    "Random forest",
    _create_forest,
    _forest_space,
    {"n_estimators": 100, "max_features": 0.05, "min_samples_leaf": 1, "criterion": "gini"},
)
