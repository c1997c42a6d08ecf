"""Ensembles of trees: random forest, LightGBM, XGBoost; the same result for the same seed."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.models.base import Floats
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
    defaults: ClassVar = {
        "n_estimators": 100,
        "max_features": 0.05,
        "min_samples_leaf": 1,
        "criterion": "gini",
    }
    bounds: ClassVar = {
        "n_estimators": (1, 100_000),
        "max_features": (1e-9, 1.0),
        "min_samples_leaf": (1, 1_000_000_000),
        "criterion": ("gini", "entropy", "log_loss"),
    }

    @classmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Number and size of trees, and how they are split."""
        return {
            "n_estimators": trial.suggest_int("n_estimators", 50, 150, step=50),
            "max_features": trial.suggest_float("max_features", 0.002, 0.2, log=True),
            "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 10, log=True),
            "criterion": trial.suggest_categorical("criterion", ["gini", "entropy"]),
        }

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        from sklearn.ensemble import RandomForestClassifier

        share = self._limit_share("max_features", MOST_FEATURES_PER_SPLIT)
        settings = {**self.params, "max_features": share}
        forest = RandomForestClassifier(**settings, n_jobs=None, random_state=self.seed)
        return TreeEnsemble.from_forest(forest.fit(matrix, targets, sample_weight=weights))


class LightGBM(TreeClassifier):
    """Boosted trees of LightGBM."""

    name: ClassVar = "lightgbm"
    title: ClassVar = "LightGBM"
    library: ClassVar = "lightgbm"
    likelihood: ClassVar = True
    defaults: ClassVar = {
        "rounds": 50,
        "learning_rate": 0.1,
        "num_leaves": 8,
        "min_child_samples": 5,
        "feature_fraction": 0.3,
        "bagging_fraction": 0.8,
        "lambda_l2": 1.0,
    }
    bounds: ClassVar = {
        "rounds": (1, 100_000),
        "learning_rate": (1e-9, 10.0),
        "num_leaves": (2, 131_072),
        "feature_fraction": (1e-9, 1.0),
        "bagging_fraction": (1e-9, 1.0),
    }

    @classmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Size, number and regularisation of trees."""
        return {
            "rounds": trial.suggest_int("rounds", 20, 100, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, 31, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 1, 30, log=True),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.05, 1.0, log=True),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-3, 10.0, log=True),
        }

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        import lightgbm

        count = int(targets.max()) + 1
        settings = dict(self.params)
        rounds = settings.pop("rounds")
        if count > 2:
            settings["num_class"] = count
        settings |= {
            "objective": "multiclass" if count > 2 else "binary",
            "feature_fraction": self._limit_share("feature_fraction", MOST_FEATURES_PER_TREE),
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
            "max_bin": BINS,
            "bagging_freq": 1,
        }
        data = lightgbm.Dataset(_convert_to_float(matrix), targets, weight=weights, params=settings)
        return TreeEnsemble.from_lightgbm(lightgbm.train(settings, data, rounds))


class XGBoost(TreeClassifier):
    """Boosted trees of XGBoost."""

    name: ClassVar = "xgboost"
    title: ClassVar = "XGBoost"
    library: ClassVar = "xgboost"
    install: ClassVar = "pip install xgboost"
    likelihood: ClassVar = True
    defaults: ClassVar = {
        "rounds": 50,
        "learning_rate": 0.1,
        "max_depth": 3,
        "min_child_weight": 1.0,
        "colsample_bytree": 0.3,
        "subsample": 0.8,
        "lambda": 1.0,
    }
    bounds: ClassVar = {
        "rounds": (1, 100_000),
        "learning_rate": (1e-9, 10.0),
        "max_depth": (1, 1000),
        "colsample_bytree": (1e-9, 1.0),
        "subsample": (1e-9, 1.0),
    }

    @classmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Size, number and regularisation of trees."""
        return {
            "rounds": trial.suggest_int("rounds", 20, 100, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
            "max_depth": trial.suggest_int("max_depth", 2, 6),
            "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 10.0, log=True),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.05, 1.0, log=True),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "lambda": trial.suggest_float("lambda", 1e-3, 10.0, log=True),
        }

    def _fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        import xgboost

        count = int(targets.max()) + 1
        settings = dict(self.params)
        rounds = settings.pop("rounds")
        if count > 2:
            settings["num_class"] = count
        settings |= {
            "objective": "multi:softprob" if count > 2 else "binary:logistic",
            "colsample_bytree": self._limit_share("colsample_bytree", MOST_FEATURES_PER_TREE),
            "seed": self.seed,
            "tree_method": "hist",
            "max_bin": BINS,
            "nthread": 1,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(_convert_to_float(matrix), targets, weight=weights, nthread=1)
        return TreeEnsemble.from_xgboost(xgboost.train(settings, data, rounds))


def _convert_to_float(matrix: Any) -> Any:
    """Return the matrix as floats: boosters do not take sparse integers."""
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
