"""Ensembles of trees: random forest, LightGBM, XGBoost; the same result for the same seed."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.classifiers.classifier import Classifier
from ordinate.tuning.models.tree_ensemble import TreeEnsemble

MOST_FEATURES_PER_SPLIT = 200  # that a forest looks at: of more, fits take minutes
MOST_FEATURES_PER_TREE = 1000  # that a booster looks at: of more, fits take minutes
BINS = 63  # of a feature's values: few items fill no more, and fits stay quick


class TreeClassifier(Classifier):
    """A classifier whose fitted form is a `TreeEnsemble` of probabilities."""

    stored_by: ClassVar = "numpy"

    def _predict(self, fitted: TreeEnsemble, rows: Any) -> Floats:
        return fitted.predict(rows)

    def _is_valid(self, fitted: Any) -> bool:
        right = isinstance(fitted, TreeEnsemble) and fitted.link != "identity"
        return right and (fitted.width, fitted.outputs) == (self.width, len(self.present))

    def _limit_share(self, name: str, most: int) -> float:
        """Return the share of the features to look at, if these are not too many."""
        return min(float(self.params[name]), most / self.width)


class Forest(TreeClassifier):
    """A random forest, whose splits look at a share of the features, and not at too many."""

    name: ClassVar = "forest"
    title: ClassVar = "Random forest"
    parameters: ClassVar = {
        "n_estimators": Parameter(100, (50, 150), step=50, taken=(1, 100_000)),
        "max_features": Parameter(0.05, (0.002, 0.2), log=True, taken=(1e-9, 1.0)),
        "min_samples_leaf": Parameter(1, (1, 10), log=True, taken=(1, 1_000_000_000)),
        "criterion": Parameter("gini", ["gini", "entropy"], taken=("gini", "entropy", "log_loss")),
    }

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        from sklearn.ensemble import RandomForestClassifier

        share = self._limit_share("max_features", MOST_FEATURES_PER_SPLIT)
        settings = {**self.params, "max_features": share}
        forest = RandomForestClassifier(**settings, n_jobs=None, random_state=self.seed)
        return TreeEnsemble.from_forest(forest.fit(matrix, targets, sample_weight=weights))


class Booster(TreeClassifier):
    """Boosted trees, of all levels at once; each library has words of its own for the same."""

    likelihood: ClassVar = True
    binary: ClassVar[str]  # objectives: of two levels, and of more
    several: ClassVar[str]
    share: ClassVar[str]  # the hyperparameter that says which features a tree looks at
    fixed: ClassVar[dict[str, Any]]  # what is no hyperparameter

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)  # boosters do not take sparse integers
        count, settings = int(targets.max()) + 1, dict(self.params)
        rounds = settings.pop("rounds")
        settings |= {"objective": self.binary}
        if count > 2:
            settings |= {"objective": self.several, "num_class": count}
        share = self._limit_share(self.share, MOST_FEATURES_PER_TREE)
        settings |= {self.share: share, "seed": self.seed, "max_bin": BINS} | self.fixed
        return self._train(settings, rounds, matrix, targets, weights)

    def _train(self, settings: dict[str, Any], rounds: int, *data: Any) -> TreeEnsemble:
        raise NotImplementedError


class LightGBM(Booster):
    """Boosted trees of LightGBM."""

    name: ClassVar = "lightgbm"
    title: ClassVar = "LightGBM"
    library: ClassVar = "lightgbm"
    binary, several, share = "binary", "multiclass", "feature_fraction"
    fixed: ClassVar = {
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
        "bagging_freq": 1,
    }
    parameters: ClassVar = {
        "rounds": Parameter(50, (20, 100), log=True, taken=(1, 100_000)),
        "learning_rate": Parameter(0.1, (0.03, 0.3), log=True, taken=(1e-9, 10.0)),
        "num_leaves": Parameter(8, (4, 31), log=True, taken=(2, 131_072)),
        "min_child_samples": Parameter(5, (1, 30), log=True),
        "feature_fraction": Parameter(0.3, (0.05, 1.0), log=True, taken=(1e-9, 1.0)),
        "bagging_fraction": Parameter(0.8, (0.5, 1.0), taken=(1e-9, 1.0)),
        "lambda_l2": Parameter(1.0, (0.001, 10.0), log=True),
    }

    def _train(self, settings: dict[str, Any], rounds: int, *data: Any) -> TreeEnsemble:
        import lightgbm

        matrix, targets, weights = data
        rows = lightgbm.Dataset(matrix, targets, weight=weights, params=settings)
        return TreeEnsemble.from_lightgbm(lightgbm.train(settings, rows, rounds))


class XGBoost(Booster):
    """Boosted trees of XGBoost."""

    name: ClassVar = "xgboost"
    title: ClassVar = "XGBoost"
    library: ClassVar = "xgboost"
    install: ClassVar = "pip install xgboost"
    binary, several = "binary:logistic", "multi:softprob"
    share = "colsample_bytree"
    fixed: ClassVar = {"tree_method": "hist", "nthread": 1, "verbosity": 0}
    parameters: ClassVar = {
        "rounds": Parameter(50, (20, 100), log=True, taken=(1, 100_000)),
        "learning_rate": Parameter(0.1, (0.03, 0.3), log=True, taken=(1e-9, 10.0)),
        "max_depth": Parameter(3, (2, 6), taken=(1, 1000)),
        "min_child_weight": Parameter(1.0, (0.1, 10.0), log=True),
        "colsample_bytree": Parameter(0.3, (0.05, 1.0), log=True, taken=(1e-9, 1.0)),
        "subsample": Parameter(0.8, (0.5, 1.0), taken=(1e-9, 1.0)),
        "lambda": Parameter(1.0, (0.001, 10.0), log=True),
    }

    def _train(self, settings: dict[str, Any], rounds: int, *data: Any) -> TreeEnsemble:
        import xgboost

        matrix, targets, weights = data
        rows = xgboost.DMatrix(matrix, targets, weight=weights, nthread=1)
        return TreeEnsemble.from_xgboost(xgboost.train(settings, rows, rounds))
