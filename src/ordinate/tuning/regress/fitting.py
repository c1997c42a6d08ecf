"""One fit of a regressor: normalised rows in, predictions in the unit of the target out."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, BadValues
from ordinate.summaries.regression import UNIT_HINT
from ordinate.tuning.experiment.workers import report_progress
from ordinate.tuning.models.regressors import (
    Regressor,
    create_regressor,
    find_model_type,
    load_regressor,
)
from ordinate.tuning.regress.model_inputs import ModelInputs
from ordinate.tuning.search.fits import Fit, FitOutputs

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# Hyperparameters of model types that learn step by step.
STEP_NAMES = {"rounds": "round", "epochs": "epoch"}
DATA_KEY = "data"  # under which name workers keep the table
PROGRESS_SECONDS = 0.2  # seconds from one word about a fit to the next


@dataclass(frozen=True, eq=False)
class TrainingArrays:
    """Features of all rows, and targets of those that may be learned from; others have none."""

    features: Floats
    targets: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressorFit(Fit):
    """A regressor to be fitted: on which rows, when to stop by which, and which to predict."""

    model_type: str
    params: Mapping[str, Any]
    seed: int
    rows: Rows
    stop: Rows  # for early stopping; model types that do not stop early learn from them, too
    new: Rows | None = None  # to be predicted
    lattice: bool = False  # whether the model is told which rows lie on a lattice
    flipped: bool = False  # whether rows are predicted as if the others lay on it

    @property
    def stops_early(self) -> bool:
        """Whether the model type learns step by step, and needs rows by which to stop."""
        return not STEP_NAMES.keys().isdisjoint(find_model_type(self.model_type).defaults)

    @property
    def row_counts(self) -> dict[str, int]:
        """How many rows it learns from, and by how many it stops early."""
        learned, stop = len(self.rows), len(self.stop)
        if not self.stops_early:
            learned, stop = learned + stop, 0
        return {"rows": learned, "stopping_rows": stop}

    def run(self, kept: Mapping[str, Any]) -> FitOutputs:
        """Fit and predict; the normalisation is that of the rows that it learns from."""
        data: TrainingArrays = kept[DATA_KEY]
        early = self.stops_early
        rows = self.rows if early else np.concatenate([self.rows, self.stop])
        check_targets_vary(data.targets[rows], "the rows of a fit")
        inputs = ModelInputs.fit(data.features[rows], data.targets[rows], lattice=self.lattice)
        model = create_regressor(self.model_type, dict(self.params), seed=self.seed)
        real = inputs.scaled.target.denormalize_errors
        given = (
            *_prepare_arrays(inputs, data, rows),
            *(_prepare_arrays(inputs, data, self.stop) if early else ()),
        )
        self._train(model, given, lambda step, x: self._report_progress(step, float(real(x))))
        curve = [(step, float(real(x))) for step, x in model.curve]
        if self.folder is not None:
            folder = Path(self.folder)
            folder.mkdir()
            model.save(folder)
            model = load_regressor(folder)  # what predicts is what was saved
        facts = {"inputs": inputs.to_dict()} | self.row_counts
        if self.new is None:
            return FitOutputs(np.empty(0), None, model.notes, curve, facts)
        flipped = replace(inputs, flipped=self.flipped)
        predictions, spread = predict_in_unit(model, flipped, data.features[self.new])
        if not np.isfinite(predictions).all():
            raise BadValues(f"{self.model_type} predicts values that are not finite.")
        return FitOutputs(predictions, spread, model.notes, curve, facts)

    def _train(
        self, model: Regressor, given: tuple[Floats, ...], progress: Callable[..., None]
    ) -> None:
        """Fit a model; one that is resumable goes on from its checkpoint, if that is of use."""
        path = self._locate_state()
        seldom = _throttle_progress(progress)
        try:
            model.fit(*given, progress=seldom, checkpoint=path)
        except BadStore:
            if path is None:
                raise
            path.unlink(missing_ok=True)  # of other data or another version: it is made again
            model.fit(*given, progress=seldom, checkpoint=path)

    def _locate_state(self) -> Path | None:
        """Return where a model type that is resumable keeps its state on the way."""
        resumable = find_model_type(self.model_type).resumable
        return Path(f"{self.checkpoint}.safetensors") if self.checkpoint and resumable else None

    def _report_progress(self, step: int, rmse: float) -> None:
        """Say how far a fit is, and end it if its time is over."""
        self.check_time()
        for name, word in STEP_NAMES.items():
            if name in self.params:
                what = f"{self.model_type}, {word} {step:,} of {self.params[name]:,}"
                report_progress((what, rmse))


def _throttle_progress(progress: Callable[..., None]) -> Callable[..., None]:
    """Return a callback that is called now and then: a fit may take thousands of steps a second."""
    last = [-math.inf]

    def report(step: int, value: float) -> None:
        now = time.monotonic()
        if now - last[0] > PROGRESS_SECONDS:
            last[0] = now
            progress(step, value)

    return report


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
