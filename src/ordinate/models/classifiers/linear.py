"""Linear models: logistic regression, the ordinal ones, linear SVM, ridge regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.models.classifiers.learner import Floats, Kind, Params
from ordinate.models.classifiers.pipeline import Estimated

STEPS = 1000  # of a solver, before it gives up with a note


def _logistic(params: Params, seed: int) -> Estimated:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - heavy, and optional

    return Estimated(LogisticRegression(C=params["C"], max_iter=STEPS, random_state=seed))


def _threshold(params: Params, _seed: int) -> Estimated:
    from ordinate.models.classifiers.ordinal_threshold import OrdinalThreshold  # noqa: PLC0415 - heavy

    return Estimated(OrdinalThreshold(**params, max_iter=STEPS), answer=_latent)


def _frank_hall(params: Params, _seed: int) -> Estimated:
    from ordinate.models.classifiers.frank_hall import FrankHall  # noqa: PLC0415 - heavy

    return Estimated(FrankHall(**params, max_iter=STEPS))


def _svm(params: Params, seed: int) -> Estimated:
    from sklearn.svm import LinearSVC  # noqa: PLC0415 - heavy, and optional

    return Estimated(LinearSVC(**params, max_iter=STEPS, random_state=seed), answer=_softmaxed)


def _regression(params: Params, seed: int) -> Estimated:
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - heavy, and optional

    # sparse_cg is what 'auto' takes for sparse features with an intercept; a fixed one is the same
    # for all versions. Conjugate gradients need no more steps than there are items.
    ridge = Ridge(**params, solver="sparse_cg", tol=1e-8, max_iter=STEPS, random_state=seed)
    return Estimated(ridge, answer=_predicted)


def _softmaxed(fitted: Any, matrix: Any) -> Floats:
    """Return decision values as if they were logits, to be recalibrated on held-out items."""
    from scipy.special import softmax  # noqa: PLC0415 - heavy, and optional

    values = fitted.decision_function(matrix)
    if values.ndim == 1:  # of two levels, the value of the higher one
        values = np.column_stack([-values, values])
    return softmax(values, axis=1)


def _latent(fitted: Any, matrix: Any) -> Floats:
    """Return latent scores: with many features, cuts that fit training items fit no others."""
    scaled = fitted[:-1].transform(matrix) if len(fitted) > 1 else matrix
    return fitted[-1].latent(scaled)


def _predicted(fitted: Any, matrix: Any) -> NDArray[Any]:
    return fitted.predict(matrix)


def _inverse_penalty(trial: Any) -> dict[str, Any]:
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


LOGISTIC = Kind(
    "logistic",
    "Logistic regression",
    _logistic,
    _inverse_penalty,
    {"C": 1.0},
    likelihood=True,
)
THRESHOLD = Kind(
    "threshold",
    "Ordinal regression with thresholds",
    _threshold,
    _threshold_space,
    {"penalty": 1.0, "loss": "proportional_odds"},
    gives="scores",
)
FRANK_HALL = Kind(
    "frank_hall",
    "Frank–Hall decomposition",
    _frank_hall,
    _frank_hall_space,
    {"penalty": 1.0},
    likelihood=True,
)
SVM = Kind(
    "svm",
    "Linear support vector machine",
    _svm,
    _svm_space,
    {"C": 1.0, "loss": "squared_hinge"},
    calibrated=False,
)
REGRESSION = Kind(
    "regression",
    "Ridge regression with cut points",
    _regression,
    _ridge_space,
    {"alpha": 1.0},
    gives="scores",
    cut=True,
)
