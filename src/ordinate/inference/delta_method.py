"""The delta method: how far a metric moves when one item more falls into a cell."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
BLOCK_SIZE = 1 << 20  # cells of matrices evaluated at once
CACHED_CELLS = 1 << 17  # cells that the cache holds
CELL_AXES = (-2, -1)
CELL_STEP, MATRIX_STEP = 1e-3, 1e-5  # shares of the cell's weight and of the total weight


def compute_influence(
    metric: Metric, matrix: ConfusionMatrix, *, block_size: int = BLOCK_SIZE
) -> Array:
    """Return the influence [..., K, K + 1] of each cell: the derivative of the metric towards it.

    It is 0 for empty cells: no item has it.
    """
    return compute_influences([metric], matrix, block_size=block_size)[0]


def compute_influences(
    metrics: Sequence[Metric], matrix: ConfusionMatrix, *, block_size: int = BLOCK_SIZE
) -> list[Array]:
    """Return the influences of several metrics, which share the matrices that they are tried on."""
    cells, total = _flatten_cells(matrix.weights), np.asarray(matrix.total)[..., None]
    influences = [np.zeros(cells.shape) for _ in metrics]
    for block in split_cells_into_blocks(matrix, block_size):
        steps = np.minimum(CELL_STEP * cells[..., block] / total, MATRIX_STEP)
        moved = _move_cells(matrix, block, steps)
        for metric, influence in zip(metrics, influences, strict=True):
            influence[..., block] = _differentiate_by_cell(metric, matrix, moved, steps)
    return [influence.reshape(matrix.weights.shape) for influence in influences]


def split_cells_into_blocks(matrix: ConfusionMatrix, block_size: int = BLOCK_SIZE) -> list[Array]:
    """Return the filled cells in blocks, so that a matrix for each cell of one fits into memory."""
    filled = np.flatnonzero(
        _flatten_cells(matrix.weights).any(axis=tuple(range(matrix.weights.ndim - 2)))
    )
    count = max(1, -(-len(filled) * matrix.weights.size // block_size))
    return np.array_split(filled, count)


def _move_cells(matrix: ConfusionMatrix, cells: Array, steps: Array) -> ConfusionMatrix:
    """Return p + h (e_c - p) and p - h (e_c - p) for each cell c: [2, ..., cells]."""
    flat = _flatten_cells(matrix.weights)[..., None, :]
    total = np.asarray(matrix.total)[..., None, None]
    one_cell = cells[:, None] == np.arange(flat.shape[-1])
    moved = (one_cell * total - flat) * steps[..., None]
    return matrix.with_cells(
        (flat + np.stack([moved, -moved])).reshape(2, *steps.shape, *matrix.weights.shape[-2:])
    )


def _differentiate_by_cell(
    metric: Metric, matrix: ConfusionMatrix, moved: ConfusionMatrix, steps: Array
) -> Array:
    """Return (theta(p + h (e_c - p)) - theta(p - h (e_c - p))) / 2h for each cell c."""
    up, down = metric.compute_from_expected(moved, matrix)
    return np.divide(up - down, 2.0 * steps, out=np.zeros_like(steps), where=steps > 0)


def _flatten_cells(weights: Array) -> Array:
    """Return the cells of matrices in one row each."""
    return weights.reshape(*weights.shape[:-2], -1)


def variance_from_influence(
    matrix: ConfusionMatrix, influences: Array, *, stratified: bool = False
) -> Any:
    """Return the variance of a metric from the influence of its cells, for each matrix of a batch.

    Integer weights are counts of items. Of fractional ones the squares count, not the sum alone.
    """
    axes = -1 if stratified else CELL_AXES
    total = matrix.weights.sum(axis=axes, keepdims=True)
    mean = (matrix.weights * influences).sum(axis=axes, keepdims=True)
    mean = np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)
    squares = matrix.weights if matrix.has_integer_weights else matrix.squares
    return (squares * (influences - mean) ** 2).sum(axis=CELL_AXES) / matrix.total**2


def compute_standard_errors(
    metrics: Sequence[Metric], matrix: ConfusionMatrix, *, stratified: bool = False
) -> list[Array]:
    """Return the standard errors [T] of metrics, as many matrices at a time as the cache holds."""
    filled = np.count_nonzero(matrix.weights.any(axis=0))
    step = max(1, CACHED_CELLS // (2 * filled * matrix.weights[0].size))
    errors = np.empty((len(metrics), *matrix.shape))
    for start in range(0, len(matrix.weights), step):
        part = matrix[start : start + step]
        for error, influences in zip(errors, compute_influences(metrics, part), strict=True):
            variance = variance_from_influence(part, influences, stratified=stratified)
            error[start : start + step] = np.sqrt(variance)
    return list(errors)


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
    value: Any, error: Any, bounds: tuple[float, float], quantile: Any
) -> tuple[Any, Any]:
    """Return the interval so many standard errors wide, computed on a scale without bounds.

    That scale bends too much for a value nearer to a bound than its error: there the interval is
    the plain one, clipped at the bounds. Values and errors may be arrays.

    >>> low, high = compute_bounded_interval(0.9, 0.05, (0, 1), normal_quantile(0.95))
    >>> round(low, 3), round(high, 3)
    (0.752, 0.964)
    """
    centre, error = np.asarray(value, float), np.asarray(error, float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = np.asarray(compute_unbounded_slope(centre, bounds))
        near = np.isinf(slope) | (error * slope > 1.0)
        half, middle = quantile * error * slope, to_unbounded(centre, bounds)
        low, high = (
            np.where(
                near,
                np.clip(centre + side * (quantile * error), *bounds),
                from_unbounded(middle + side * half, bounds),
            )
            for side in (-1.0, 1.0)
        )
    return (low, high) if low.ndim else (float(low), float(high))


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


def from_unbounded(point: Any, bounds: tuple[float, float]) -> Any:
    """Return values from the scale without bounds."""
    low, high = bounds
    if math.isinf(low) and math.isinf(high):
        return point
    with np.errstate(over="ignore"):
        if math.isinf(high):
            return low + np.exp(point)
        if math.isinf(low):
            return high - np.exp(-point)
        return low + (high - low) / (1.0 + np.exp(-point))
