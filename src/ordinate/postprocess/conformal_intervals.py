"""Split conformal prediction intervals, from residuals."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, NoItems
from ordinate.postprocess.conformal_sets import ROUNDING_TOLERANCE, check_alpha, conformal_quantile
from ordinate.postprocess.estimator import BaseEstimator, encode_groups, format_names, match_groups
from ordinate.summaries.prediction_intervals import PredictionIntervals, require_valid
from ordinate.summaries.regression import LARGEST_VALUE
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers

Floats = NDArray[np.float64]
ROUNDING_SLACK = 4.0 * float(np.finfo(float).eps)  # rounding of a residual, relative to its parts


@dataclass(frozen=True, eq=False)
class ConformalIntervals:
    """Prediction intervals, one for each item: `lower, upper = intervals`."""

    lower: Floats
    upper: Floats
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.lower, self.upper))

    def __len__(self) -> int:
        return len(self.lower)

    def summarise(
        self, targets: Any, weights: Any = None, groups: Any = None
    ) -> PredictionIntervals:
        """Return the summary from which coverage, width and scores follow."""
        return PredictionIntervals.of(targets, self.lower, self.upper, weights, groups)


class SplitConformal(BaseEstimator):
    """Intervals about predictions that hold the target of a share 1 - alpha of new items.

    An interval reaches as far to both sides as the ⌈(n + 1)(1 - alpha)⌉-th smallest absolute
    residual of the n items in `fit`, and has no ends where that exceeds n. With `normalize`
    residuals are divided by a spread that is given for each item, so that intervals are wide where
    it is large. Without `symmetric` each side has its own threshold, at alpha/2.

    The promise holds on average, if new items come from where the items of `fit` came from, and
    neither were seen when the model was fitted; it does not require that the model or the spread is
    right. With `groups` it holds for the items of each group.

    >>> intervals = SplitConformal(alpha=0.2).fit([5] * 9, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> lower, upper = intervals.predict([0.0, 10.0])
    >>> lower.round(6).tolist(), upper.round(6).tolist()
    ([-4.0, 6.0], [4.0, 14.0])
    """

    thresholds_: Floats  # [G, 2]: by group, one group where there are none, below and above
    groups_: tuple[Any, ...] | None
    notes_: tuple[str, ...]

    def __init__(
        self, alpha: float = 0.1, *, normalize: bool = False, symmetric: bool = True
    ) -> None:
        self.alpha = alpha
        self.normalize = normalize
        self.symmetric = symmetric

    def fit(
        self, predictions: Any, targets: Any, *, spread: Any = None, groups: Any = None
    ) -> Self:
        """Learn thresholds from items that the model was not fitted on, in the order of (X, y)."""
        check_alpha(self.alpha)
        if np.ndim(targets) > np.ndim(predictions):
            raise BadInput("The predictions come first: fit(predictions, targets), as fit(X, y).")
        y, p = _check_finite(targets, "target"), _check_finite(predictions, "prediction")
        check_same_length(len(y), len(p), "targets", "predictions")
        if not len(y):
            raise NoItems("There are no items to learn intervals from: there are no rows.")
        unit = self._read_spread(spread, len(y))
        encoded = encode_groups(groups, len(y), "predictions")
        sides = self._compute_sides(y - p, ROUNDING_SLACK * (np.abs(y) + np.abs(p)), unit)
        order = np.argsort(encoded.codes, kind="stable")
        ends = np.bincount(encoded.codes, minlength=len(encoded.values)).cumsum()[:-1]
        self.thresholds_ = np.array(
            [self._learn_reach(x) for x in np.split(sides[:, order], ends, 1)]
        )
        self.groups_ = None if groups is None else tuple(encoded.values)
        self.notes_ = tuple(self._collect_notes())
        return self

    def predict(
        self, predictions: Any, *, spread: Any = None, groups: Any = None
    ) -> ConformalIntervals:
        """Return the interval of each prediction."""
        self._check_fitted()
        p = _check_finite(predictions, "prediction")
        thresholds, notes = self._look_up_thresholds(groups, len(p))
        reach = thresholds * self._read_spread(spread, len(p))
        # So that rounding cannot keep a target out.
        reach += ROUNDING_SLACK * (np.abs(p) + np.abs(reach))
        return ConformalIntervals(p - reach[0], p + reach[1], (*self.notes_, *notes))

    def _read_spread(self, spread: Any, n: int) -> Floats:
        """Return the unit of residuals: the spread, or 1."""
        if (spread is not None) != self.normalize:
            need = "needs a spread for each item" if self.normalize else "takes no spread"
            raise BadInput(f"SplitConformal(normalize={self.normalize}) {need}.")
        if spread is None:
            return np.ones(n)
        unit = _check_finite(spread, "spread")
        check_same_length(n, len(unit), "predictions", "spreads")
        positive = "The spread of row {row} is {value}, not a number above 0."
        require_valid(unit > 0, np.arange(n), unit, positive)
        return unit

    def _compute_sides(self, residual: Floats, slack: Floats, unit: Floats) -> Floats:
        """Return how far each interval would have to reach [2, n], below and above."""
        size = np.abs(residual)
        sides = [size, size] if self.symmetric else [-residual, residual]
        return (np.array(sides) + slack) / unit

    def _learn_reach(self, sides: Floats) -> list[float]:
        alpha = float(self.alpha) if self.symmetric else float(self.alpha) / 2.0
        return [conformal_quantile(np.sort(side), alpha) for side in sides]

    def _look_up_thresholds(self, groups: Any, n: int) -> tuple[Floats, list[str]]:
        """Return the thresholds [2, n] of each row; a group that fit did not see has none."""
        rows, unseen = match_groups(groups, self.groups_, n, "predictions")
        thresholds = np.vstack([self.thresholds_, [np.inf, np.inf]])
        note = f"Not seen in fit, so their intervals have no ends: {format_names(unseen)}."
        return thresholds[rows].T, [note] if unseen else []

    def _collect_notes(self) -> list[str]:
        """Say where there are too few items for a threshold, and so none."""
        few = np.isinf(self.thresholds_.max(axis=1))
        if not few.any():
            return []
        alpha = float(self.alpha)
        needed = math.ceil(
            1.0 / (alpha if self.symmetric else alpha / 2.0) - 1.0 - ROUNDING_TOLERANCE
        )
        names = [] if self.groups_ is None else [self.groups_[k] for k in np.flatnonzero(few)]
        each, short = (" of each group", f" of {format_names(names)}") if names else ("", "")
        shortage = f"alpha={alpha:g} needs {needed} items{each}, and there were fewer{short}"
        return [f"{shortage}: {'such intervals' if names else 'the intervals'} have no ends."]


def _check_finite(column: Any, name: str) -> Floats:
    """Return a column of finite numbers, or say which row has none."""
    values = convert_to_numbers(column, f"{name}s")
    finite = f"The {name} of row {{row}} is {{value}}, not a finite number."
    require_valid(np.isfinite(values), np.arange(len(values)), values, finite)
    large = f"The {name} of row {{row}} is {{value}}, which is too large. Give all in another unit."
    require_valid(np.abs(values) < LARGEST_VALUE, np.arange(len(values)), values, large)
    return values
