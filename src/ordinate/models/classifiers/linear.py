"""Linear models: logistic regression, the ordinal ones, linear SVM, ridge regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.models.classifiers.learner import Floats, ModelType, Params
from ordinate.models.classifiers.pipeline import PipelineLearner

MOST_STEPS = 1000  # of a solver, before it gives up with a note


def _create_logistic(params: Params, seed: int) -> PipelineLearner:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - heavy, and optional

    return PipelineLearner(
        LogisticRegression(C=params["C"], max_iter=MOST_STEPS, random_state=seed)
    )


def _create_threshold(params: Params, _seed: int) -> PipelineLearner:
    from ordinate.models.classifiers.ordinal_threshold import OrdinalThreshold  # noqa: PLC0415 - heavy

    return PipelineLearner(
        OrdinalThreshold(**params, max_iter=MOST_STEPS), predict_rows=_predict_latent
    )


def _create_frank_hall(params: Params, _seed: int) -> PipelineLearner:
    from ordinate.models.classifiers.frank_hall import FrankHall  # noqa: PLC0415 - heavy

    return PipelineLearner(FrankHall(**params, max_iter=MOST_STEPS))


def _create_svm(params: Params, seed: int) -> PipelineLearner:
    from sklearn.svm import LinearSVC  # noqa: PLC0415 - heavy, and optional

    return PipelineLearner(
        LinearSVC(**params, max_iter=MOST_STEPS, random_state=seed), predict_rows=_softmax_decisions
    )


def _create_ridge(params: Params, seed: int) -> PipelineLearner:
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - heavy, and optional

    # sparse_cg is what 'auto' takes for sparse features with an intercept; a fixed one is the same
    # for all versions. Conjugate gradients need no more steps than there are items.
    ridge = Ridge(**params, solver="sparse_cg", tol=1e-8, max_iter=MOST_STEPS, random_state=seed)
    return PipelineLearner(ridge, predict_rows=_predict_values)


def _softmax_decisions(fitted: Any, matrix: Any) -> Floats:
    """Return decision values as if they were logits, to be recalibrated on held-out items."""
    from scipy.special import softmax  # noqa: PLC0415 - heavy, and optional

    values = fitted.decision_function(matrix)
    if values.ndim == 1:  # of two levels, the value of the higher one
        values = np.column_stack([-values, values])
    return softmax(values, axis=1)


def _predict_latent(fitted: Any, matrix: Any) -> Floats:
    """Return latent scores: with many features, cuts that fit training items fit no others."""
    scaled = fitted[:-1].transform(matrix) if len(fitted) > 1 else matrix
    return fitted[-1].predict_latent(scaled)


def _predict_values(fitted: Any, matrix: Any) -> NDArray[Any]:
    return fitted.predict(matrix)


def _logistic_space(trial: Any) -> dict[str, Any]:
    return {"C": trial.suggest_float("C", 1e-3, 1e3, log=True)}


def _threshold_space(trial: Any) -> dict[str, Any]:
    losses = ["proportional_odds", "all_threshold"]
    return {
        "penalty": trial.suggest_float("penalty", 1e-3, 1e3, log=True),
        "loss": trial.suggest_categorical("loss", losses),
    }


def _frank_hall_space(trial: Any) -> dict[str, Any]:
    return {"penalty": trial.suggest_float("penalty", 1e-3, 1e3, log=True)}


def _svm_space(trial: Any) -> dict[str, Any]:
    return {
        "C": trial.suggest_float("C", 1e-3, 1e2, log=True),
        "loss": trial.suggest_categorical("loss", ["squared_hinge", "hinge"]),
    }


def _ridge_space(trial: Any) -> dict[str, Any]:
    return {"alpha": trial.suggest_float("alpha", 1e-3, 1e4, log=True)}


LOGISTIC = ModelType(
    "logistic",
    "Logistic regression",
    _create_logistic,
    _logistic_space,
    {"C": 1.0},
    likelihood=True,
)
THRESHOLD = ModelType(
    "threshold",
    "Ordinal regression with thresholds",
    _create_threshold,
    _threshold_space,
    {"penalty": 1.0, "loss": "proportional_odds"},
    output_type="scores",
)
FRANK_HALL = ModelType(
    "frank_hall",
    "Frank–Hall decomposition",
    _create_frank_hall,
    _frank_hall_space,
    {"penalty": 1.0},
    likelihood=True,
)
SVM = ModelType(
    "svm",
    "Linear support vector machine",
    _create_svm,
    _svm_space,
    {"C": 1.0, "loss": "squared_hinge"},
    calibrated=False,
)
REGRESSION = ModelType(
    "regression",
    "Ridge regression with cut points",
    _create_ridge,
    _ridge_space,
    {"alpha": 1.0},
    output_type="scores",
    cut=True,
)
