"""One fit of a regressor: what it is given of a row, and predictions in the unit of the target."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, BadValues
from ordinate.render.estimates import format_number, format_percent
from ordinate.summaries.regression import UNIT_HINT
from ordinate.tuning.experiment.workers import report_progress
from ordinate.tuning.models.regressors import (
    Regressor,
    create_regressor,
    find_model_type,
    load_regressor,
)
from ordinate.tuning.models.target_scaling import FeatureTargetScaler
from ordinate.tuning.search.fits import Fit, FitOutputs

Floats = NDArray[np.float64]
# In standard deviations, beyond which all is as far. Otherwise one odd value, such as a fill value
# of 1e20, is too much for a model: networks compute in 32 bits and square what flows through each
# gated block, three of which take it to the 8th power, and polynomials take powers, too.
REACH = 1e3
REQUESTED_NOTE = "Models are told which, as was asked."
NO_TIME_NOTE = (
    "There was no time to look whether that matters, so models are not told. Give more time, or "
    "decide without looking: --lattice always, or never."
)
REPEAT_COUNT = 5  # a value that occurs more often in training repeats
LIKE_TOLERANCE = 1e-6  # of a value: kept in single precision, or typed, it is the same
LEAST_TOLERANCE = 1e-15  # of what a column spans: so far from 0 is what is 0 up to rounding
# of what a column spans: no further, for dates as numbers differ by little of them
MOST_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Lattice:
    """The values of each feature that repeat in training, but for the last digits.

    >>> x = np.array([[1.0, 2.0]] * 6 + [[0.3, 2.0], [1.0, 0.7]])
    >>> Lattice.fit(x).mark_rows(x).tolist()
    [True, True, True, True, True, True, False, False]
    """

    values: tuple[Floats, ...]  # by feature, sorted

    @classmethod
    def fit(cls, features: Floats) -> Self:
        """Find the values that repeat."""
        return cls(tuple(_find_repeated_values(column) for column in features.T))

    def mark_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell of each row whether all its values repeat."""
        x = np.asarray(features, float)
        matches = [
            _count_matches(values, column) > 0
            for column, values in zip(x.T, self.values, strict=True)
        ]
        return np.all(matches, axis=0)

    def to_list(self) -> list[list[float]]:
        """Return plain numbers."""
        return [values.tolist() for values in self.values]

    @classmethod
    def from_list(cls, stored: Any, width: int) -> Self:
        """Return the lattice of a stored model of so many features."""
        try:
            columns = [np.sort(np.array(column, float).reshape(-1)) for column in stored]
            lattice = cls(tuple(values for values in columns if np.isfinite(values).all()))
        except (TypeError, ValueError, OverflowError):
            lattice = cls(())
        if len(lattice.values) != width:
            raise BadStore("What is stored is no lattice of the features: train again.")
        return lattice


def _find_repeated_values(column: Floats) -> Floats:
    """Return the values that occur often."""
    values = np.unique(column)
    low, high = _compute_bounds(values)
    ordered = np.sort(column)
    counts = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)
    return values[counts > REPEAT_COUNT]


def _count_matches(values: Floats, column: Floats) -> NDArray[np.intp]:
    """Return how many of the sorted values are the same as each one of a column."""
    low, high = _compute_bounds(values)
    return np.searchsorted(low, column, "right") - np.searchsorted(high, column)


def _compute_bounds(values: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest number that is the same as each of these values."""
    span = np.ptp(values) or np.abs(values).max() if len(values) else 0.0
    tolerance = np.clip(
        LIKE_TOLERANCE * np.abs(values), LEAST_TOLERANCE * span, MOST_TOLERANCE * span
    )
    return values - tolerance, values + tolerance


@dataclass(frozen=True)
class LatticeFinding:
    """What is known of a lattice: the share of rows on it, and what telling it is worth."""

    share: float
    used: bool
    mae_with_indicator: float = float("nan")  # of a smooth model that has the indicator
    mae_without_indicator: float = float("nan")
    gap: float = float("nan")  # the target on the lattice less that beside it, at like inputs
    chance: bool = False  # whether what is gained is no more than its standard error

    def note(self, unit: str | None) -> str:
        """Say what was found, and what was done."""
        of = f" {unit}" if unit else ""
        share = format_percent(self.share, 0)
        head = f"{share} of the rows lie on a lattice: each of their values repeats."
        if np.isnan(self.mae_with_indicator):
            return f"{head} {REQUESTED_NOTE if self.used else NO_TIME_NOTE}"
        side = "lower" if self.gap < 0 else "higher"
        evaluated = (
            f"On it the target is {side} by {format_number(abs(self.gap))}{of} at the same inputs "
            f"(median), and a smooth model that is told has MAE "
            f"{format_number(self.mae_with_indicator)} instead of "
            f"{format_number(self.mae_without_indicator)}{of} on held-out rows."
        )
        done = (
            "So models are told which rows these are: it says where rows come from, and is no law."
            if self.used
            else "Models are not told."
            if not self.chance
            else "Models are not told: the gain is no more than its standard error."
        )
        return f"{head} {evaluated} {done}"


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Normalised features, and one more if there is one: 1 for marked rows, -1 for others."""

    scaled: FeatureTargetScaler
    lattice: Lattice | None = None
    flipped: bool = False  # as if marked rows were not, and the others were

    @classmethod
    def fit(cls, features: Floats, targets: Floats, *, lattice: bool) -> Self:
        """Learn all from the rows of a fit alone."""
        scaled = FeatureTargetScaler.fit(features, targets)
        return cls(scaled, Lattice.fit(features) if lattice else None)

    def of(self, features: Any) -> Floats:
        """Return what a model is given."""
        with np.errstate(over="ignore"):  # what is too far even for a number is as far
            x = np.clip(self.scaled.features(features), -REACH, REACH)
        if self.lattice is None:
            return x
        return np.column_stack([x, np.where(self.mark_rows(features) != self.flipped, 1.0, -1.0)])

    def mark_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell which rows lie on the lattice; a feature that never varied tells nothing."""
        x = np.where(self.scaled.stds > 0.0, np.asarray(features, float), self.scaled.means)
        return np.zeros(len(x), bool) if self.lattice is None else self.lattice.mark_rows(x)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        lattice = None if self.lattice is None else self.lattice.to_list()
        return {"scaled": self.scaled.to_dict(), "lattice": lattice}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the inputs of a stored model."""
        scaled = FeatureTargetScaler.from_dict(stored.get("scaled") or {})
        values = stored.get("lattice")
        width = len(scaled.means)
        return cls(scaled, None if values is None else Lattice.from_list(values, width))


# --- fits ----------------------------------------------------------------------------------------

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
