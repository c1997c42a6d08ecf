"""The delta method: how far a metric moves when one item more falls into a cell."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
BLOCK_SIZE = 1 << 20  # cells of tables evaluated at once
CELL_STEP, TABLE_STEP = 1e-3, 1e-5  # the step: small beside the cell, and beside the table


def compute_influence(metric: Metric, table: ConfusionMatrix) -> Array:
    """Return IF [K, K + 1]: the derivative of the metric towards a table of one cell only.

    It is 0 for empty cells: no item has their influence.
    """
    cells = table.weights.reshape(-1)
    found = np.zeros(cells.shape)
    for part in split_cells_into_blocks(table):
        steps = np.minimum(CELL_STEP * cells[part] / table.total, TABLE_STEP)
        found[part] = _differentiate_by_cell(metric, table, part, steps)
    return found.reshape(table.weights.shape)


def split_cells_into_blocks(table: ConfusionMatrix) -> list[Array]:
    """Return the filled cells in blocks, so that a table for each of a block fits into memory."""
    filled = np.flatnonzero(table.weights)
    count = max(1, -(-len(filled) * table.weights.size // BLOCK_SIZE))
    return np.array_split(filled, count)


def _differentiate_by_cell(
    metric: Metric, table: ConfusionMatrix, cells: Array, steps: Array
) -> Array:
    """Return (theta(p + h (e_c - p)) - theta(p - h (e_c - p))) / 2h for each cell c."""
    one_cell = np.zeros((len(cells), table.weights.size))
    one_cell[np.arange(len(cells)), cells] = table.total
    moved = (one_cell - table.weights.reshape(-1)) * steps[:, None]
    both = table.weights.reshape(-1) + np.stack([moved, -moved])
    tables = table.with_cells(both.reshape(2, len(cells), *table.weights.shape))
    up, down = metric.compute_from_expected(tables, table)
    return (up - down) / (2.0 * steps)


def variance_from_influence(
    table: ConfusionMatrix, influences: Array, *, stratified: bool = False
) -> float:
    """Return the variance of a metric from the influence of its cells.

    Whole weights are counts of items. Of real weights the squares count, never their sum alone.
    """
    axes: Any = -1 if stratified else None
    total = table.weights.sum(axis=axes, keepdims=True)
    mean = (table.weights * influences).sum(axis=axes, keepdims=True)
    mean = np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)
    squares = table.weights if table.whole else table.squares
    return float((squares * (influences - mean) ** 2).sum() / table.total**2)


def compute_bounded_interval(
    value: float, error: float, bounds: tuple[float, float], reach: float
) -> tuple[float, float]:
    """Return limits so many standard errors away, taken on a scale that has no bounds.

    That scale bends too much for a value nearer to a bound than its error: there the limits are
    plain ones, cut at the bounds.

    >>> low, high = compute_bounded_interval(0.9, 0.05, (0, 1), normal_quantile(0.95))
    >>> round(low, 3), round(high, 3)
    (0.752, 0.964)
    """
    slope = _unbounded_slope(value, bounds)
    if error * slope > 1.0:
        low, high = value - reach * error, value + reach * error
        return max(low, bounds[0]), min(high, bounds[1])
    half, middle = reach * error * slope, _to_unbounded(value, bounds)
    return _from_unbounded(middle - half, bounds), _from_unbounded(middle + half, bounds)


def normal_quantile(level: float) -> float:
    """Return z so that a normal variable lies between -z and z with this probability."""
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


# The logit of the range for two bounds (Fisher's z, where they are -1 and 1), a logarithm for one.


def _to_unbounded(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    above = 0.0 if math.isinf(low) else math.log(value - low)
    below = 0.0 if math.isinf(high) else math.log(high - value)
    return value if math.isinf(low) and math.isinf(high) else above - below


def _unbounded_slope(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    slopes = [1.0 / abs(value - end) for end in (low, high) if math.isfinite(end)]
    return sum(slopes) if slopes else 1.0


def _from_unbounded(point: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    if math.isinf(low) and math.isinf(high):
        return point
    if math.isinf(high):
        return low + _exp_or_infinity(point)
    if math.isinf(low):
        return high - _exp_or_infinity(-point)
    return low + (high - low) / (1.0 + _exp_or_infinity(-point))


def _exp_or_infinity(point: float) -> float:
    return math.exp(point) if point < 700.0 else math.inf  # beyond it, exp overflows
