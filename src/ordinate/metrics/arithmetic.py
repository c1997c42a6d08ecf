"""The few sums and quotients that formulas are made of."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Value = Any  # a float, or an array of them: one for each summary of a batch

CELL_AXES = (-2, -1)


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> Value:
    """Return numerator / denominator, and nan where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.divide(numerator, denominator)
    return np.where(np.equal(denominator, 0), np.nan, quotient)[()]


def diagonal(cells: Array) -> Array:
    """Return the cells in which gold and prediction agree."""
    return np.diagonal(cells, axis1=-2, axis2=-1)


def average_over_levels(levels: Array, values: Array) -> Value:
    """Return the unweighted mean of values over the levels that take part."""
    return ratio(np.where(levels, values, 0.0).sum(axis=-1), levels.sum(axis=-1))


def has_several_levels(shares: Array) -> Array:
    """Tell whether more than one level occurs; rounding cannot fool a count of levels."""
    return (shares > 0).sum(axis=-1) > 1


def harmonic_mean(first: Value, second: Value) -> Value:
    """Return the harmonic mean of two values from 0 to 1, which is 0 when both are 0."""
    both = np.asarray(first + second)
    return np.where(both == 0, 0.0, ratio(2.0 * first * second, both))[()]


def entropy(shares: Array, axis: int | tuple[int, ...] = -1) -> Value:
    """Return the entropy in bits, in which an empty level has none."""
    return -(shares * log2_or_zero(shares)).sum(axis=axis)


def log2_or_zero(shares: Array) -> Array:
    """Return the binary logarithm, and 0 for what does not occur (and is multiplied by 0)."""
    return np.log2(np.where(shares > 0, shares, 1.0))


def mean_credit(matrix: ConfusionMatrix, credit: Array) -> Value:
    """Return the mean over items of a credit [K, K] for gold and predicted level.

    An item without a prediction earns nothing.
    """
    return (matrix.share * credit).sum(axis=CELL_AXES)


def mean_cost(matrix: ConfusionMatrix, cost: Array) -> Value:
    """Return the mean over items of a cost [K, K] of gold and predicted level.

    An item without a prediction costs as much as the worst prediction for its gold level.
    """
    return _row_costs(matrix, cost).sum(axis=-1)


def level_costs(matrix: ConfusionMatrix, cost: Array) -> Array:
    """Return the mean cost of each gold level, nan for a level that gold lacks."""
    return ratio(_row_costs(matrix, cost), matrix.gold_share)


def _row_costs(matrix: ConfusionMatrix, cost: Array) -> Array:
    costs = (matrix.share * cost).sum(axis=-1)
    return costs + matrix.unanswered_share * cost.max(axis=-1) if matrix.has_unanswered else costs


def max_over_levels(levels: Array, values: Array) -> Value:
    """Return the largest value over the levels that take part, nan where none does."""
    largest = np.where(levels, values, -np.inf).max(axis=-1)
    return np.where(levels.any(axis=-1), largest, np.nan)[()]
