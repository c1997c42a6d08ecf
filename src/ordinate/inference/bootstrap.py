"""The bootstrap: confidence intervals from the values of a metric on resamples."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.clusters import delete_each_cluster
from ordinate.inference.delta_method import (
    compute_unbounded_slope,
    from_unbounded,
    split_cells_into_blocks,
    to_unbounded,
)
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
TIE_TOLERANCE = 1e-12
UNBOUNDED = (-math.inf, math.inf)


def percentile_interval(values: Array, level: float) -> tuple[float, float]:
    """Return the percentile interval: the bounds between which the middle values lie."""
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def studentised_interval(
    value: float,
    error: float,
    values: Array,
    errors: Array,
    bounds: tuple[float, float],
    level: float,
) -> tuple[float, float]:
    """Return the studentised interval: resamples say how many standard errors a value is off.

    `values` and `errors` are those of the resamples, which need not have as many items as the
    sample. The scale has no bounds, as in the delta method; a value nearer to a bound than its
    error stays on the plain one.
    """
    near = error * compute_unbounded_slope(value, bounds) > 1.0
    scale = UNBOUNDED if near else bounds
    middle, step = (
        float(to_unbounded(value, scale)),
        error * float(compute_unbounded_slope(value, scale)),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = to_unbounded(values, scale) - middle
        ratios = distances / (errors * compute_unbounded_slope(values, scale))
    least, most = percentile_interval(ratios[np.isfinite(ratios)], level)
    low, high = (from_unbounded(middle - ratio * step, scale) for ratio in (most, least))
    return max(low, bounds[0]), min(high, bounds[1])


def bca_interval(
    values: Array, value: float, acceleration: float, level: float
) -> tuple[float, float] | None:
    """Return the BCa interval: corrected for bias and acceleration; None where it is undefined.

    `values` are those of the resamples, `value` is that of the sample.
    """
    # Equal values may differ by rounding.
    tied = np.isclose(values, value, rtol=TIE_TOLERANCE, atol=TIE_TOLERANCE)
    below = (((values < value) & ~tied).mean() + tied.mean() / 2.0).item()
    if not (0.0 < below < 1.0 and math.isfinite(acceleration)):
        return None
    normal = NormalDist()
    shift = normal.inv_cdf(below)
    shares = []
    for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0):
        reach = shift + normal.inv_cdf(tail)
        if acceleration * reach >= 1.0:
            return None
        shares.append(normal.cdf(shift + reach / (1.0 - acceleration * reach)))
    low, high = np.quantile(values, shares)
    return float(low), float(high)


def estimate_acceleration(metric: Metric, source: ConfusionMatrix) -> float:
    """Return BCa's acceleration: the skewness of the jackknife over items, or over clusters.

    All items of a cell leave the same matrix behind, so each filled cell is tried once.
    """
    if source.shape:
        values, counts = delete_each_cluster(metric, source), np.ones(len(source.weights))
    else:
        values, counts = _jackknife_items(metric, source)
    pull = (counts * values).sum() / counts.sum() - values
    spread = (counts * pull**2).sum()
    if not spread > 0.0:
        return math.nan
    return float((counts * pull**3).sum() / (6.0 * spread**1.5))


def _jackknife_items(metric: Metric, matrix: ConfusionMatrix) -> tuple[Array, Array]:
    cells = matrix.weights.reshape(-1)
    blocks = split_cells_into_blocks(matrix)
    values = [
        metric.compute_from_expected(_remove_one_item(matrix, block), matrix) for block in blocks
    ]
    return np.concatenate(values), cells[np.concatenate(blocks)]


def _remove_one_item(matrix: ConfusionMatrix, cells: Array) -> ConfusionMatrix:
    """Return a confusion matrix for each of the cells, which lacks one of its items."""
    weights = np.tile(matrix.weights.reshape(-1), (len(cells), 1))
    weights[np.arange(len(cells)), cells] -= 1.0
    return matrix.with_cells(weights.reshape(-1, *matrix.weights.shape))
