"""One fit: what a worker is given, and what it predicts for rows that the fit has not seen."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, BadValues, OrdinateError
from ordinate.experiment.workers import report_progress
from ordinate.models.regressors import Regressor, create_regressor, find_model_type, load_regressor
from ordinate.regress.model_inputs import ExtraFeatureFit, ModelInputs
from ordinate.summaries.regression import UNIT_HINT

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Curve = list[tuple[int, float]]  # steps, and the RMSE by which a fit stops early
STEP_NAMES = {
    "rounds": "round",
    "epochs": "epoch",
}  # parameters of model types that learn step by step
DATA_KEY = "data"  # under which name workers keep the table
PROGRESS_SECONDS = 0.2  # seconds from one word about a fit to the next


class OutOfTime(OrdinateError):
    """The time for a search was over before a fit was done."""


@dataclass(frozen=True, eq=False)
class TrainingArrays:
    """Features of all rows, and targets of those that may be learned from; others have none."""

    features: Floats
    targets: Floats


@dataclass(frozen=True, eq=False)
class FitTask:
    """A model to be fitted: on which rows, when to stop by which, and which to predict."""

    model_type: str
    params: Mapping[str, Any]
    seed: int
    rows: Rows
    stop: Rows  # for early stopping; model types that do not stop early learn from them, too
    predict_rows: tuple[Rows, ...] = ()  # first those that choose or calibrate
    extra: ExtraFeatureFit | None = None  # one more feature that a model is given
    folder: str | None = None  # where to save the model
    flipped: bool = False  # whether rows are predicted as if the others were marked by it
    checkpoint: str | None = None  # where a model type that is resumable keeps its state
    end: float | None = None  # by the clock that all processes share; none begins after it


class FitProgress(NamedTuple):
    """How far a fit is: the RMSE by which it stops early, in the unit of the target."""

    what: str  # such as: mlp, epoch 3 of 100
    rmse: float


@dataclass(frozen=True, eq=False)
class FitPredictions:
    """Predictions in the unit of the target, one array for each set of rows, and spreads."""

    predictions: tuple[Floats, ...]
    spreads: tuple[Floats, ...] | None  # inside models that are ensembles
    notes: tuple[str, ...] = ()
    curve: Curve = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)


def fit_model(stored: Mapping[str, Any], task: FitTask) -> FitPredictions:
    """Fit a model and predict; the normalisation is that of the rows that it learns from."""
    _check_time(task)  # for model types that learn in one step, which nobody can end
    data: TrainingArrays = stored[DATA_KEY]
    early = stops_early(task.model_type)
    rows = task.rows if early else np.concatenate([task.rows, task.stop])
    check_targets_vary(data.targets[rows], "the rows of a fit")
    inputs = ModelInputs.fit(data.features[rows], data.targets[rows], extra=task.extra)
    model = create_regressor(task.model_type, dict(task.params), seed=task.seed)
    real = inputs.scaled.target.denormalize_errors
    given = (
        *_prepare_arrays(inputs, data, rows),
        *(_prepare_arrays(inputs, data, task.stop) if early else ()),
    )
    _train_model(model, given, task, lambda step, x: _report_progress(task, step, float(real(x))))
    curve = [(step, float(real(x))) for step, x in model.curve]
    if task.folder is not None:
        folder = Path(task.folder)
        folder.mkdir()
        model.save(folder)
        model = load_regressor(folder)  # what predicts is what was saved
    flipped = replace(inputs, flipped=task.flipped)
    found = [predict_in_unit(model, flipped, data.features[rows]) for rows in task.predict_rows]
    for predictions, _ in found[:1]:  # those behind are of a test, which decides nothing
        if not np.isfinite(predictions).all():
            raise BadValues(f"{task.model_type} predicts values that are not finite.")
    spreads = tuple(spread for _, spread in found if spread is not None)
    return FitPredictions(
        tuple(predictions for predictions, _ in found),
        spreads if len(spreads) == len(found) and found else None,
        model.notes,
        curve,
        inputs.to_dict(),
    )


def _train_model(
    model: Regressor, given: tuple[Floats, ...], task: FitTask, progress: Callable[..., None]
) -> None:
    """Fit a model; one that is resumable goes on from its checkpoint, if that is of use."""
    path = None if task.checkpoint is None else Path(task.checkpoint)
    seldom = _throttle_progress(progress)
    try:
        model.fit(*given, progress=seldom, checkpoint=path)
    except BadStore:
        if path is None:
            raise
        path.unlink(missing_ok=True)  # of other data or another version: it is made again
        model.fit(*given, progress=seldom, checkpoint=path)


def _throttle_progress(progress: Callable[..., None]) -> Callable[..., None]:
    """Return a callback that is called now and then: a fit may take thousands of steps a second."""
    last = [-math.inf]

    def report(step: int, value: float) -> None:
        now = time.monotonic()
        if now - last[0] > PROGRESS_SECONDS:
            last[0] = now
            progress(step, value)

    return report


def _report_progress(task: FitTask, step: int, rmse: float) -> None:
    """Say how far a fit is, and end it if its time is over."""
    _check_time(task)
    for name, word in STEP_NAMES.items():
        if name in task.params:
            report_progress(
                FitProgress(f"{task.model_type}, {word} {step:,} of {task.params[name]:,}", rmse)
            )


def _check_time(task: FitTask) -> None:
    if task.end is not None and time.monotonic() > task.end:
        raise OutOfTime(f"There was no time left for {task.model_type}.")


def remove_checkpoints(tasks: Iterable[FitTask]) -> None:
    """Remove the checkpoints of fits whose predictions are stored."""
    for task in tasks:
        if task.checkpoint is not None:
            Path(task.checkpoint).unlink(missing_ok=True)


def check_targets_vary(targets: Floats, where: str) -> None:
    """Refuse targets that are all alike: there is nothing to learn, and no scale to learn it on."""
    with np.errstate(over="ignore", invalid="ignore"):
        alike, spread = np.ptp(targets) == 0.0, np.std(targets - targets[0])
    if alike:
        raise BadValues(
            f"The target is {targets[0]:.6g} in all {len(targets):,} of {where}: there is nothing "
            "to learn from them. Take fewer folds, another --seed, or more rows whose targets "
            "differ."
        )
    if not 0.0 < spread < np.inf:  # squares of numbers that differ can be too small for a float
        size = "large" if spread else "small"
        raise BadValues(f"The targets are too {size} to be squared twice. {UNIT_HINT}")


def stops_early(model_type: str) -> bool:
    """Tell whether a model type learns step by step, and needs rows by which to stop."""
    return not STEP_NAMES.keys().isdisjoint(find_model_type(model_type).defaults)


def count_rows(task: FitTask) -> tuple[int, int]:
    """Return how many rows a fit learns from, and by how many it stops early."""
    learned, stop = len(task.rows), len(task.stop)
    return (learned, stop) if stops_early(task.model_type) else (learned + stop, 0)


def predict_in_unit(
    model: Regressor, inputs: ModelInputs, features: Floats
) -> tuple[Floats, Floats | None]:
    """Return predictions in the unit of the target and, of ensembles, their spread."""
    x, target = inputs.of(features), inputs.scaled.target
    predictions = np.asarray(target.denormalize(model.predict(x)), float)
    inside: Callable[[Floats], Floats] | None = getattr(model, "spread", None)
    if inside is None:
        return predictions, None
    return predictions, np.asarray(target.denormalize_errors(inside(x)), float)


def _prepare_arrays(inputs: ModelInputs, data: TrainingArrays, rows: Rows) -> tuple[Floats, Floats]:
    targets = inputs.scaled.target.normalize(data.targets[rows])
    return inputs.of(data.features[rows]), np.asarray(targets, float)
