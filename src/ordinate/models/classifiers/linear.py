"""Linear models: logistic regression, the ordinal ones, linear SVM, ridge, naive Bayes.

They are made with scikit-learn: features scaled where that helps, then an estimator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput
from ordinate.models.classifiers.learner import Floats, ModelType, Params

MOST_STEPS = 1000  # of a solver, before it gives up with a note
Scaling = Literal["standard", "positive", "none"]


def predict_probabilities(fitted: Any, matrix: Any) -> Floats:
    """Return the probabilities of the levels that were seen."""
    return fitted.predict_proba(matrix)


@dataclass(frozen=True)
class PipelineLearner:
    """A learner around a scikit-learn estimator.

    Dense features are scaled first. Sparse ones are taken as they are: to centre them would fill
    them, and those of texts are made on one scale.
    """

    estimator: Any
    predict_rows: Callable[[Any, Any], Floats] = predict_probabilities
    scaling: Scaling = "standard"

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> Any:
        """Return a fitted pipeline."""
        from scipy.sparse import issparse  # noqa: PLC0415 - heavy, and optional
        from sklearn.base import clone  # noqa: PLC0415 - the same
        from sklearn.pipeline import Pipeline  # noqa: PLC0415 - the same

        scaled = [] if issparse(matrix) else _create_scaler(self.scaling)
        pipeline = Pipeline([*scaled, ("model", clone(self.estimator))])
        return pipeline.fit(matrix, targets, model__sample_weight=weights)

    def predict(self, fitted: Any, matrix: Any) -> Floats:
        """Return the predictions of the fitted pipeline."""
        return self.predict_rows(fitted, matrix)

    def is_valid(self, fitted: Any, *, features: int, seen: int, sparse: bool) -> bool:
        """Tell whether it is a pipeline of these very steps."""
        from sklearn.pipeline import Pipeline  # noqa: PLC0415 - heavy, and optional

        steps = [*([] if sparse else _create_scaler(self.scaling)), ("model", self.estimator)]
        right = type(fitted) is Pipeline and _list_step_types(fitted.steps) == _list_step_types(
            steps
        )
        if not right or any(step.n_features_in_ != features for _, step in fitted.steps):
            return False
        return not hasattr(fitted, "classes_") or len(fitted.classes_) == seen


def _list_step_types(steps: Any) -> list[tuple[str, type]]:
    return [(name, type(step)) for name, step in steps]


def _create_scaler(scaling: Scaling) -> list[tuple[str, Any]]:
    from sklearn.preprocessing import MinMaxScaler, StandardScaler  # noqa: PLC0415 - heavy

    if scaling == "standard":
        return [("scale", StandardScaler())]
    # clip: a test value below all of training would be negative, and negative counts are none
    return [("scale", MinMaxScaler(clip=True))] if scaling == "positive" else []


class NaiveBayesLearner(PipelineLearner):
    """Naive Bayes, whose features are counts, or shares of them."""

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> Any:
        """Return a fitted pipeline, if there are no negative counts."""
        from scipy.sparse import issparse  # noqa: PLC0415 - heavy, and optional

        if issparse(matrix) and matrix.nnz and matrix.data.min() < 0:
            raise BadInput(
                "Naive Bayes takes counts, and these sparse features have negative values. Leave "
                "naive_bayes out for this feature set, or store it as a dense one: that is scaled "
                "to values from 0 to 1."
            )
        return super().fit(matrix, targets, weights)


# --- model types ---------------------------------------------------------------------------------


def _create_logistic(params: Params, seed: int) -> PipelineLearner:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - heavy, and optional

    return PipelineLearner(
        LogisticRegression(C=params["C"], max_iter=MOST_STEPS, random_state=seed)
    )


def _create_threshold(params: Params, _seed: int) -> PipelineLearner:
    from ordinate.models.classifiers.ordinal_regression import OrdinalThreshold  # noqa: PLC0415 - heavy

    return PipelineLearner(
        OrdinalThreshold(**params, max_iter=MOST_STEPS), predict_rows=_predict_latent
    )


def _create_frank_hall(params: Params, _seed: int) -> PipelineLearner:
    from ordinate.models.classifiers.ordinal_regression import FrankHall  # noqa: PLC0415 - heavy

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


def _create_naive_bayes(params: Params, _seed: int) -> PipelineLearner:
    from sklearn.naive_bayes import ComplementNB, MultinomialNB  # noqa: PLC0415 - heavy

    variants = {"multinomial": MultinomialNB, "complement": ComplementNB}
    estimator = variants[params["variant"]](alpha=params["alpha"])
    return NaiveBayesLearner(estimator, scaling="positive")


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


def _naive_bayes_space(trial: Any) -> dict[str, Any]:
    return {
        "variant": trial.suggest_categorical("variant", ["multinomial", "complement"]),
        "alpha": trial.suggest_float("alpha", 1e-3, 10.0, log=True),
    }


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
NAIVE_BAYES = ModelType(
    "naive_bayes",
    "Naive Bayes",
    _create_naive_bayes,
    _naive_bayes_space,
    {"variant": "multinomial", "alpha": 1.0},
    calibrated=False,
)
