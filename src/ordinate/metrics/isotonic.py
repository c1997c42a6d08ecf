"""Isotonic regression: the rising curve nearest to the data, by pooling adjacent violators."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
EQUAL_DIGITS = 12  # inputs that agree so far are equal: sums of probabilities carry rounding errors
WORTHWHILE_SHARE = 8  # a pass over all blocks must remove at least one in so many
SERIES_SHARE = 64  # the same of many short series, for which passes are quicker


class IsotonicCurve(NamedTuple):
    """A curve that never falls: flat within a block, a line between blocks, flat beyond the ends.

    >>> curve = IsotonicCurve(at=np.array([0.0, 0.2, 0.4]), values=np.array([0.1, 0.1, 0.5]))
    >>> curve(np.array([0.1, 0.3, 0.9]))
    array([0.1, 0.3, 0.5])
    """

    at: Floats
    values: Floats

    def __call__(self, x: Floats) -> Floats:
        """Return the height of the curve."""
        return np.interp(x, self.at, self.values)


def fit_isotonic(
    x: Floats, y: NDArray[Any], weights: Floats, *, worthwhile_share: int = WORTHWHILE_SHARE
) -> IsotonicCurve:
    """Return the rising curve of y over x with the least weighted sum of squared errors.

    >>> fit_isotonic(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]), np.ones(4)).values
    array([0. , 0.5, 0.5, 1. ])
    """
    at, place = np.unique(np.round(x, EQUAL_DIGITS), return_inverse=True)
    weight = np.bincount(place, weights).astype(float)
    total = np.bincount(place, weights * y).astype(float)
    first = pool_adjacent_violators(total, weight, worthwhile_share)
    means = np.add.reduceat(total, first) / np.add.reduceat(weight, first)
    last = np.append(first[1:], len(at)) - 1
    ends = np.union1d(first, last)
    return IsotonicCurve(at[ends], means[np.searchsorted(first, ends, side="right") - 1])


def fit_isotonic_series(total: Floats, weight: Floats) -> Floats:
    """Return the rising means of many series of sums at once, along the last axis.

    A place without weight has no mean.

    >>> fit_isotonic_series(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]), np.array([1.0, 2.0, 2.0]))
    array([[0.  , 0.75, 0.75],
           [0.6 , 0.6 , 0.6 ]])
    """
    total, weight = np.broadcast_arrays(total, weight)
    fitted = np.full(total.shape, np.nan)
    filled = weight > 0
    if not filled.any():
        return fitted
    series = np.nonzero(filled.reshape(-1, total.shape[-1]))[0]
    total, weight = total[filled], weight[filled]
    fresh = np.append(True, series[1:] != series[:-1])
    first = pool_adjacent_violators(total, weight, SERIES_SHARE, fresh)
    means = np.add.reduceat(total, first) / np.add.reduceat(weight, first)
    fitted[filled] = np.repeat(means, np.diff(first, append=len(total)))
    return fitted


def pool_adjacent_violators(
    total: Floats,
    weight: Floats,
    worthwhile_share: int = WORTHWHILE_SHARE,
    fresh: NDArray[np.bool] | None = None,
) -> Indices:
    """Return where each block begins when all neighbours whose means do not rise are pooled.

    All falling runs are pooled at once, as long as that leaves far fewer blocks; then the few that
    remain one by one. `fresh` marks places where another series begins, which is never pooled with
    the one before.

    >>> pool_adjacent_violators(np.array([1.0, 0.0, 3.0, 2.0]), np.ones(4)).tolist()
    [0, 2]
    """
    first = np.arange(len(total))
    fresh = np.zeros(len(total), bool) if fresh is None else fresh
    while len(first) > 1:
        means = total / weight
        begins = np.flatnonzero(np.append(True, means[1:] > means[:-1]) | fresh)
        removed = len(first) - len(begins)
        total, weight = np.add.reduceat(total, begins), np.add.reduceat(weight, begins)
        first, fresh = first[begins], fresh[begins]
        if removed * worthwhile_share < len(means):
            return first[_pool_one_by_one(total, weight, fresh)]
    return first


def _pool_one_by_one(total: Floats, weight: Floats, fresh: NDArray[np.bool]) -> list[int]:
    first: list[int] = []
    blocks: list[tuple[float, float]] = []
    columns = (total.tolist(), weight.tolist(), fresh.tolist())
    for place, (s, w, alone) in enumerate(zip(*columns, strict=True)):
        if alone:
            blocks = []
        start, sum_here, weight_here = place, s, w
        while blocks and blocks[-1][0] * weight_here >= sum_here * blocks[-1][1]:
            sum_below, weight_below = blocks.pop()
            start = first.pop()
            sum_here, weight_here = sum_here + sum_below, weight_here + weight_below
        first.append(start)
        blocks.append((sum_here, weight_here))
    return first
