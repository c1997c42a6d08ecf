"""Boosted trees: LightGBM and XGBoost, one thread each, the same result for the same seed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.models.classifiers.forest import TreeLearner
from ordinate.models.classifiers.learner import Floats, ModelType, limit_feature_share
from ordinate.models.tree_ensemble import TreeEnsemble

MOST_FEATURES = 1000  # features that one tree looks at: of more, fits take minutes
BINS = 63  # of a feature's values: few items fill no more, and fits stay quick


class LightGBM(TreeLearner):
    """Learns with LightGBM."""

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        """Return fitted trees."""
        import lightgbm  # noqa: PLC0415 - heavy, and optional

        settings = dict(self.params)
        rounds = settings.pop("rounds")
        settings["feature_fraction"] = limit_feature_share(
            settings["feature_fraction"], matrix, MOST_FEATURES
        )
        settings |= _lightgbm_objective(int(targets.max()) + 1) | {
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


class XGBoost(TreeLearner):
    """Learns with XGBoost."""

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> TreeEnsemble:
        """Return fitted trees."""
        import xgboost  # noqa: PLC0415 - heavy, and optional

        settings = dict(self.params)
        rounds = settings.pop("rounds")
        settings["colsample_bytree"] = limit_feature_share(
            settings["colsample_bytree"], matrix, MOST_FEATURES
        )
        settings |= _xgboost_objective(int(targets.max()) + 1) | {
            "seed": self.seed,
            "tree_method": "hist",
            "max_bin": BINS,
            "nthread": 1,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(_convert_to_float(matrix), targets, weight=weights, nthread=1)
        return TreeEnsemble.from_xgboost(xgboost.train(settings, data, rounds))


def _lightgbm_objective(count: int) -> dict[str, Any]:
    if count == 2:
        return {"objective": "binary"}
    return {"objective": "multiclass", "num_class": count}


def _xgboost_objective(count: int) -> dict[str, Any]:
    if count == 2:
        return {"objective": "binary:logistic"}
    return {"objective": "multi:softprob", "num_class": count}


def _convert_to_float(matrix: Any) -> Any:
    """Return the matrix as floats: boosters do not take sparse integers."""
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _lightgbm_space(trial: Any) -> dict[str, Any]:
    return {
        "rounds": trial.suggest_int("rounds", 20, 100, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 4, 31, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 1, 30, log=True),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.05, 1.0, log=True),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
        "lambda_l2": trial.suggest_float("lambda_l2", 1e-3, 10.0, log=True),
    }


def _xgboost_space(trial: Any) -> dict[str, Any]:
    return {
        "rounds": trial.suggest_int("rounds", 20, 100, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 6),
        "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 10.0, log=True),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.05, 1.0, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "lambda": trial.suggest_float("lambda", 1e-3, 10.0, log=True),
    }


LIGHTGBM = ModelType(
    "lightgbm",
    "LightGBM",
    LightGBM,
    _lightgbm_space,
    {
        "rounds": 50,
        "learning_rate": 0.1,
        "num_leaves": 8,
        "min_child_samples": 5,
        "feature_fraction": 0.3,
        "bagging_fraction": 0.8,
        "lambda_l2": 1.0,
    },
    likelihood=True,
    library="lightgbm",
)
XGBOOST = ModelType(
    "xgboost",
    "XGBoost",
    XGBoost,
    _xgboost_space,
    {
        "rounds": 50,
        "learning_rate": 0.1,
        "max_depth": 3,
        "min_child_weight": 1.0,
        "colsample_bytree": 0.3,
        "subsample": 0.8,
        "lambda": 1.0,
    },
    likelihood=True,
    library="xgboost",
)
