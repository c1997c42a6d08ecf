"""Lattice features: whether a row lies on a regular grid of inputs, as one more feature.

Rows often come from two sources, such as a lattice of round values and points between them, and
the sources may differ in more than their inputs. Whether all values of a row are among those that
repeat in training tells them apart. Whether models gain by that, held-out rows decide: a smooth
model is fitted with this feature and without it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore
from ordinate.render.estimates import format_number, format_percent
from ordinate.tuning.experiment.safe_files import write_json
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.models.regressors import find_model_type
from ordinate.tuning.regress.model_inputs import ExtraFeatureFit
from ordinate.tuning.regress.splits import Split, assign_unit_ids
from ordinate.tuning.search.fits import Floats, OutOfTime, run_fit
from ordinate.tuning.search.task import Candidate

if TYPE_CHECKING:
    from ordinate.tuning.regress.fitting import RegressorFit
    from ordinate.tuning.regress.task import RegressionTask

REPEAT_COUNT = 5  # a value that occurs more often in training repeats
LIKE_TOLERANCE = 1e-6  # of a value: kept in single precision, or typed, it is the same
LEAST_TOLERANCE = 1e-15  # of what a column spans: so far from 0 is what is 0 up to rounding
# of what a column spans: no further, for dates as numbers differ by little of them
MOST_TOLERANCE = 1e-5
# Smooth, so that it cannot tell a lattice by itself, as trees can; it learns what telling is worth.
LATTICE_MODEL = "gp"
QUICK_PARAMS = {"rows": 300}
# of rows on the lattice: with fewer on either side there is nothing to tell
LEAST_SHARE, MOST_SHARE = 0.05, 0.95
MOST_ROWS = 2_000  # rows on which it is evaluated
REQUESTED_NOTE = "Models are told which, as was asked."
NO_TIME_NOTE = (
    "There was no time to look whether that matters, so models are not told. Give more time, or "
    "decide without looking: --lattice always, or never."
)


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

    def describe_rows(self, marked: int, rows: int) -> str:
        """Say how many rows of a prediction lie on the lattice."""
        return (
            f"{marked:,} of {rows:,} rows lie on the lattice of the training rows, and are "
            "predicted as rows from there, the others as rows from elsewhere: that says where rows "
            "come from, and is no law."
        )

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


# --- whether it is of use ------------------------------------------------------------------------


@dataclass(frozen=True)
class LatticeFinding:
    """What is known of a lattice: the share of rows on it, and what telling it is worth."""

    share: float
    used: bool
    mae_with_indicator: float = float("nan")  # of a smooth model that has the indicator
    mae_without_indicator: float = float("nan")
    gap: float = float("nan")  # the target on the lattice less that beside it, at like inputs
    chance: bool = False  # whether what is gained is no more than its standard error

    @property
    def extra(self) -> ExtraFeatureFit | None:
        """What models are given, if it is of use."""
        return Lattice.fit if self.used else None

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


def detect_lattice(task: "RegressionTask") -> LatticeFinding | None:
    """Return what the rows that are not for the test show of a lattice, if there is one.

    It is not used where there was no time to evaluate it.
    """
    option, rows = task.settings.lattice, task.known
    if option == "never":
        return None
    features = task.table.features[rows]
    share = float(Lattice.fit(features).mark_rows(features).mean())
    if option == "always":
        return LatticeFinding(share, used=True)
    if not LEAST_SHARE <= share <= MOST_SHARE:
        return None
    try:
        return _evaluate_once(task, share)
    except OutOfTime:
        return LatticeFinding(share, used=False)


def _evaluate_once(task: "RegressionTask", share: float) -> LatticeFinding | None:
    """Evaluate once, and store it: a search that goes on decides alike, in however little time.

    Where there was no time nothing is stored, so the next run looks again.
    """
    by = {"judge": LATTICE_MODEL, "most": MOST_ROWS} | QUICK_PARAMS
    path = task.locate_result("lattices", f"{task.compute_digest(**by)}.json")
    finding = _load_finding(path)
    if finding is None:
        finding = _evaluate_lattice(task, share)
        if finding is not None:
            write_json(path, asdict(finding))
    return finding


def _load_finding(path: Path) -> LatticeFinding | None:
    """Return the finding of an earlier run, if it is there and complete."""
    try:
        return read_json(path, LatticeFinding)
    except BadStore:
        return None


def _evaluate_lattice(task: "RegressionTask", share: float) -> LatticeFinding | None:
    """Fit a smooth model that is told, and one that is not, on the same folds.

    The one that is told also says what it would predict for each row on the other side.
    """
    small = _reduce_task(task)
    if small is None:
        return None
    aware = replace(small, extra=Lattice.fit)
    params = dict(find_model_type(LATTICE_MODEL).defaults) | QUICK_PARAMS
    candidate = Candidate("", LATTICE_MODEL, params)
    fits = [small.make_fold_fits(candidate), aware.make_fold_fits(candidate)]
    fits.append([replace(fit, flipped=True) for fit in fits[1]])
    untold, told, other = (_predict_held_out(task, some) for some in fits)
    features = small.table.features
    on = Lattice.fit(features[small.known]).mark_rows(features[small.held_out])
    gap = float(np.median(np.where(on, told - other, other - told)))
    knowing, unknowing = (np.abs(predicted - small.targets) for predicted in (told, untold))
    better = _improves_significantly(small, unknowing, knowing)
    chance = bool(knowing.mean() < unknowing.mean()) and not better
    return LatticeFinding(
        share, better, float(knowing.mean()), float(unknowing.mean()), gap, chance
    )


def _improves_significantly(task: "RegressionTask", untold: Floats, told: Floats) -> bool:
    """Tell whether errors shrink by more than the standard error of that; groups stay whole.

    Errors are absolute ones: were they squared, the few rows that nobody can predict would decide.
    """
    gains = untold - told
    units = np.arange(len(gains)) if task.groups is None else task.groups.astype(str)
    sums = np.bincount(np.unique(units, return_inverse=True)[1].reshape(-1), gains)
    if len(sums) < 2:
        return False
    return bool(sums.sum() > np.sqrt(len(sums)) * sums.std(ddof=1))


def _reduce_task(task: "RegressionTask") -> "RegressionTask | None":
    """Return the task with fewer rows, and no more folds than these allow, if they allow any."""
    split = _subsample_split(task)
    if not task.settings.folds:
        return replace(task, split=split, best_trials={})
    rows = split.train if task.apart else split.known
    folds = min(task.settings.folds, int(assign_unit_ids(task.table, rows).max()) + 1)
    if folds < 2:
        return None
    settings = replace(task.settings, folds=folds)
    return replace(task, split=split, settings=settings, best_trials={})


def _subsample_split(task: "RegressionTask") -> Split:
    """Return the split with no more rows than an evaluation needs; rows apart stay apart."""
    split, share = task.split, min(1.0, MOST_ROWS / len(task.known))
    train = split.train[: max(2, int(share * len(split.train)))]
    validation = split.validation
    if not task.apart:
        validation = validation[: max(min(2, len(validation)), int(share * len(validation)))]
    return replace(split, train=train, validation=validation, test=split.test[:0])


def _predict_held_out(task: "RegressionTask", fits: "Sequence[RegressorFit]") -> Floats:
    end = task.budget.end
    made = task.workers.map(run_fit, [replace(fit, end=end, checkpoint=None) for fit in fits])
    return np.concatenate([outputs.predictions for outputs in made])
