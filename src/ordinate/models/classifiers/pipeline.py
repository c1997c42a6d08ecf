"""Models made with scikit-learn: features scaled where that helps, then an estimator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from ordinate.models.classifiers.learner import Floats

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

    def answers(self, fitted: Any, matrix: Any) -> Floats:
        """Return what the fitted pipeline says of each row."""
        return self.predict_rows(fitted, matrix)

    def made(self, fitted: Any, *, features: int, seen: int, sparse: bool) -> bool:
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
