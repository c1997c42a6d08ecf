"""The delta method: how far a metric moves when one item more falls into a cell."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
BLOCK_SIZE = 1 << 20  # cells of matrices evaluated at once
CELL_STEP, MATRIX_STEP = 1e-3, 1e-5  # shares of the cell's weight and of the total weight


def compute_influence(
    metric: Metric, matrix: ConfusionMatrix, *, block_size: int = BLOCK_SIZE
) -> Array:
    """Return the influence [..., K, K + 1] of each cell: the derivative of the metric towards it.

    It is 0 for empty cells: no item has it.
    """
    cells, total = _flatten_cells(matrix.weights), np.asarray(matrix.total)[..., None]
    influence = np.zeros(cells.shape)
    for block in split_cells_into_blocks(matrix, block_size):
        steps = np.minimum(CELL_STEP * cells[..., block] / total, MATRIX_STEP)
        influence[..., block] = _differentiate_by_cell(metric, matrix, block, steps)
    return influence.reshape(matrix.weights.shape)


def split_cells_into_blocks(matrix: ConfusionMatrix, block_size: int = BLOCK_SIZE) -> list[Array]:
    """Return the filled cells in blocks, so that a matrix for each cell of one fits into memory."""
    filled = np.flatnonzero(
        _flatten_cells(matrix.weights).any(axis=tuple(range(matrix.weights.ndim - 2)))
    )
    count = max(1, -(-len(filled) * matrix.weights.size // block_size))
    return np.array_split(filled, count)


def _differentiate_by_cell(
    metric: Metric, matrix: ConfusionMatrix, cells: Array, steps: Array
) -> Array:
    """Return (theta(p + h (e_c - p)) - theta(p - h (e_c - p))) / 2h for each cell c."""
    flat = _flatten_cells(matrix.weights)[..., None, :]
    total = np.asarray(matrix.total)[..., None, None]
    one_cell = cells[:, None] == np.arange(flat.shape[-1])
    moved = (one_cell * total - flat) * steps[..., None]
    matrices = matrix.with_cells(
        (flat + np.stack([moved, -moved])).reshape(2, *steps.shape, *matrix.weights.shape[-2:])
    )
    up, down = metric.compute_from_expected(matrices, matrix)
    return np.divide(up - down, 2.0 * steps, out=np.zeros_like(steps), where=steps > 0)


def _flatten_cells(weights: Array) -> Array:
    """Return the cells of matrices in one row each."""
    return weights.reshape(*weights.shape[:-2], -1)


def variance_from_influence(
    matrix: ConfusionMatrix, influences: Array, *, stratified: bool = False
) -> float:
    """Return the variance of a metric from the influence of its cells.

    Integer weights are counts of items. Of fractional ones the squares count, not the sum alone.
    """
    axes: Any = -1 if stratified else None
    total = matrix.weights.sum(axis=axes, keepdims=True)
    mean = (matrix.weights * influences).sum(axis=axes, keepdims=True)
    mean = np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)
    squares = matrix.weights if matrix.has_integer_weights else matrix.squares
    return float((squares * (influences - mean) ** 2).sum() / matrix.total**2)


def linearised_standard_error(metric: Metric, clusters: ConfusionMatrix) -> float:
    """Return the standard error of a metric from the sums of influence of each cluster.

    Items of one writer, topic or document are not independent of each other: `clusters` has a
    confusion matrix for each.
    """
    pooled = clusters.pooled
    influence = compute_influence(metric, pooled)
    pulls = (clusters.weights * influence).sum(axis=(-2, -1)) / pooled.total
    count = len(pulls)
    return math.sqrt(count / (count - 1) * float(((pulls - pulls.mean()) ** 2).sum()))


def compute_bounded_interval(
    value: float, error: float, bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """Return the interval so many standard errors wide, computed on a scale without bounds.

    That scale bends too much for a value nearer to a bound than its error: there the interval is
    the plain one, clipped at the bounds.

    >>> low, high = compute_bounded_interval(0.9, 0.05, (0, 1), normal_quantile(0.95))
    >>> round(low, 3), round(high, 3)
    (0.752, 0.964)
    """
    slope = math.inf if value in bounds else float(compute_unbounded_slope(value, bounds))
    if math.isinf(slope) or error * slope > 1.0:
        low, high = value - quantile * error, value + quantile * error
        return max(low, bounds[0]), min(high, bounds[1])
    half, middle = quantile * error * slope, float(to_unbounded(value, bounds))
    return from_unbounded(middle - half, bounds), from_unbounded(middle + half, bounds)


def normal_quantile(level: float) -> float:
    """Return z so that a normal variable lies between -z and z with this probability."""
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


# The logit of the range for two bounds (Fisher's z, where they are -1 and 1), a logarithm for one.


def to_unbounded(value: Any, bounds: tuple[float, float]) -> Any:
    """Return values on a scale without bounds."""
    low, high = bounds
    above = 0.0 if math.isinf(low) else np.log(value - low)
    below = 0.0 if math.isinf(high) else np.log(high - value)
    return value if math.isinf(low) and math.isinf(high) else above - below


def compute_unbounded_slope(value: Any, bounds: tuple[float, float]) -> Any:
    """Return how fast values on the scale without bounds grow with the values."""
    slopes = [1.0 / abs(value - end) for end in bounds if math.isfinite(end)]
    return sum(slopes) if slopes else 1.0


def from_unbounded(point: float, bounds: tuple[float, float]) -> float:
    """Return a value from the scale without bounds."""
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
