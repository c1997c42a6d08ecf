"""The items of a regression: columns of targets and predictions, and their summaries."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.regression import is_resampled
from ordinate.scale.encoding import Groups
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import LARGEST_VALUE, TARGET_MEAN, TRAIN_MEAN, Moments
from ordinate.summaries.tabulation import ROWS_SHOWN, check_same_length

MEDIAN_BASELINE = "median"


@dataclass(frozen=True)
class RegressionItems:
    """Columns of the same items."""

    y: Any
    p: Any
    bounds: tuple[Any, Any] | None  # lower and upper, of prediction intervals
    weights: Any
    groups: Groups | None
    counted: bool = True  # whether the weights of all items are counts

    @property
    def rows(self) -> Any:
        """The rows of the items; a row of weight 0 is none."""
        return np.flatnonzero(np.ones(len(self.y)) if self.weights is None else self.weights > 0)

    def summarise(self, constants: dict[str, float]) -> Moments:
        """Return the summary of all items."""
        summary = Moments.of(self.y, self.p, self.weights, constants=constants, histogram=True)
        return replace(summary, counted=self.counted)

    def summarise_groups(self) -> Moments | None:
        """Return the summary of each group; medians need that of all items only."""
        if self.groups is None:
            return None
        check_same_length(len(self.y), len(self.groups.codes), "targets", "groups")
        require_groups(self.groups, self.rows)
        batch = Moments.of(self.y, self.p, self.weights, groups=self.groups, order=2)
        return replace(batch, counted=self.counted)

    def summarise_bounds(self) -> PredictionIntervals | None:
        """Return the summary of the prediction intervals, of each group where there are some."""
        if self.bounds is None:
            return None
        lower, upper = self.bounds
        return PredictionIntervals.of(
            self.y, lower, upper, self.weights, self.groups, predicted=self.p
        )

    def split(self, by: Groups) -> "dict[Hashable, RegressionItems]":
        """Return the items of each subgroup that has some."""
        check_same_length(len(self.y), len(by.codes), "targets", "values of by")
        codes = by.codes[self.rows]
        parts = {name: self.rows[codes == k] for k, name in enumerate(by.values)}
        return {name: self.select(rows) for name, rows in parts.items() if len(rows)}

    def select(self, rows: Any) -> "RegressionItems":
        """Return the items of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None
        if self.groups is not None:
            present, codes = np.unique(self.groups.codes[rows], return_inverse=True)
            groups = Groups([self.groups.values[k] for k in present], codes.reshape(-1))
        bounds = None if self.bounds is None else (self.bounds[0][rows], self.bounds[1][rows])
        return RegressionItems(self.y[rows], self.p[rows], bounds, weights, groups, self.counted)

    def compute_exact(self) -> dict[str, float]:
        """Return what a summary knows approximately, from the items themselves."""
        return {"median_absolute_error": _compute_median(np.abs(self.p - self.y), self.weights)}

    def is_resampled(self, settings: ConfidenceIntervals | None, parts: int) -> bool:
        """Tell whether the intervals come from resamples of these items, or of parts of them."""
        if settings is None or self.groups is not None:
            return False
        counts = self.weights is not None and self.counted
        return is_resampled(settings, self.weights.sum() if counts else len(self.rows), parts)


def require_groups(groups: Groups, rows: NDArray[np.intp]) -> None:
    """Refuse items, in some rows, whose group is unknown."""
    if None not in groups.values:
        return
    alone = rows[groups.codes[rows] == groups.values.index(None)]
    if len(alone):
        shown = ", ".join(f"row {row + 1}" for row in alone[:ROWS_SHOWN])
        more = ", …" if len(alone) > ROWS_SHOWN else ""
        raise MissingLabels(
            f"{len(alone)} of {len(rows)} items have no group ({shown}{more}). Leave them out, or "
            "give each a group."
        )


def compute_constants(
    y: Any, weights: Any, normalization: Normalization | None
) -> dict[str, float]:
    """Return what simple predictors always predict: training mean, mean and median of targets."""
    there = y if weights is None else y[weights > 0]
    if not len(there) or not np.abs(there).max() < LARGEST_VALUE:
        return {}  # nobody gets a summary of these
    gaps = there - there[0]  # exactly 0 where all are equal
    weighing = None if weights is None else weights[weights > 0]
    constants = {TARGET_MEAN: float(there[0] + np.average(gaps, weights=weighing))}
    constants[MEDIAN_BASELINE] = _compute_median(there, weighing)
    return constants if normalization is None else {TRAIN_MEAN: normalization.mean} | constants


def _compute_median(values: Any, weights: Any) -> float:
    """Return the median; between two values that share the middle it is their mean."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    first, last = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
    inorder = values[order]
    return float(inorder[first] + inorder[min(last, len(values) - 1)]) / 2.0


def summarise_previous(items: RegressionItems, order: Any) -> Moments | None:
    """Return the summary of predicting the previous target in the declared order."""
    times = np.asarray(order)
    if times.ndim != 1 or len(times) != len(items.y):
        raise BadOption(f"{times.size} times for {len(items.y)} targets: each item needs one.")
    if times.dtype.kind in "USO" and any(isinstance(time, str) for time in times.tolist()):
        raise BadOption(
            "The times are strings, whose order is that of a dictionary: pass numbers or dates."
        )
    there = items.rows
    try:
        missing = there[np.not_equal(times[there], times[there]).astype(bool)]  # nan, and no time
        _, rows = np.unique(times[there], return_index=True)
    except TypeError:
        raise BadOption(
            "The times cannot be compared: one is missing, or of another type."
        ) from None
    if len(missing):
        raise BadOption(f"Row {missing[0] + 1} has no time, so its previous value is unknown.")
    if len(rows) < len(there):
        raise BadOption("Two items have the same time, so which is the previous one is unknown.")
    if len(rows) < 2:
        return None
    y = items.y[there[rows]]
    weights = None if items.weights is None else items.weights[there[rows]][1:]
    return Moments.of(y[1:], y[:-1], weights)
