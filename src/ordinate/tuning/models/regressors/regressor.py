"""One model of a normalised target: fits rows, stops early, keeps checkpoints, predicts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ordinate.errors import BadInput, NoItems
from ordinate.tuning.models.base import Floats, Model, StoredModel

# step, validation RMSE (normalised); True: stop here
StepCallback = Callable[[int, float], bool | None]
RowPair = tuple[Floats, Floats]  # features [N, d] and targets [N]


class StoredRegressor(StoredModel):
    """What a folder says of the regressor in it."""

    steps: int | None


class Regressor(Model):
    """A regressor with its hyperparameters. Features and targets come normalised.

    After `fit`: `steps` is how many rounds or epochs the best state took (None where there are
    none), `stopped` tells that `progress` asked for an end, `curve` has (step, validation RMSE).
    """

    install: ClassVar[str] = "pip install 'ordinate[regression]'"
    iterative: ClassVar[bool] = False  # whether fit calls progress callback on the way
    resumable: ClassVar[bool] = False  # whether fit keeps checkpoints, and goes on from them
    _stored: ClassVar[Any] = StoredRegressor

    def __init__(self, params: Mapping[str, Any] | None = None, *, seed: int = 0) -> None:
        super().__init__(params, seed=seed)
        self.steps: int | None = None
        self.stopped = False
        self.curve: list[tuple[int, float]] = []
        self.checkpoint: Path | None = None

    def fit(
        self,
        x: Any,
        y: Any,
        x_val: Any = None,
        y_val: Any = None,
        *,
        progress: StepCallback | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Learn from training rows; validation rows are for early stopping only.

        Without validation rows a model runs its full number of steps. A model type that is
        resumable keeps its state in the file `checkpoint`, and goes on from it.
        """
        x, y = _check_pair(x, y, "training")
        if not len(y):
            raise NoItems("There are no training rows to learn from.")
        self.width, self.steps, self.stopped, self.curve = x.shape[1], None, False, []
        validation = None
        if x_val is not None and y_val is not None and len(y_val):
            validation = _check_pair(x_val, y_val, "validation")
            self._check_width(validation[0])
        self.checkpoint = checkpoint
        return self._learn(x, y, validation, self._wrap_progress(progress))

    def to_facts(self) -> dict[str, Any]:
        """Return what a folder says of the model in it."""
        return super().to_facts() | {"steps": self.steps}

    @classmethod
    def from_facts(cls, facts: Any, **options: Any) -> Self:
        """Return the model that a folder tells of; it has learned nothing yet."""
        model = super().from_facts(facts, **options)
        model.steps = facts["steps"]
        return model

    # --- parts -------------------------------------------------------------------------------

    def _compute_outputs(self, fitted: Any, x: Any) -> Floats:
        rows = np.ascontiguousarray(x, np.float64)
        return np.asarray(self._predict(fitted, rows), np.float64).reshape(len(rows))

    def _wrap_progress(self, progress: StepCallback | None) -> StepCallback:
        def ticked(step: int, value: float) -> bool:
            self.curve.append((step, value))
            self.stopped = self.stopped or bool(progress is not None and progress(step, value))
            return self.stopped

        return ticked


def _check_pair(x: Any, y: Any, what: str) -> RowPair:
    rows, targets = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    if rows.ndim != 2 or targets.shape != (len(rows),) or not rows.shape[1]:
        raise BadInput(
            f"The {what} rows are features [N, d] and targets [N]: not {rows.shape} and "
            f"{targets.shape}."
        )
    return rows, targets
