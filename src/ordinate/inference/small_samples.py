"""Small numbers: proportions, rare levels, and tables that no bootstrap can move."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.resampling import Resampler
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
RARE_ITEMS = 10  # items of a gold level, below which resampling its items is not enough
MOST_LEVELS = 30  # up to which each cell is tried alone
FLAT_ERROR = 1e-12  # an error of nothing


def wilson_interval(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's limits of proportions; from 0 to 1 where nothing was tried.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    tried = np.asarray(n, float)
    share = np.divide(successes, tried, out=np.full(tried.shape, 0.5), where=tried > 0)
    z2 = normal_quantile(level) ** 2
    centre = tried * share + z2 / 2.0
    half = np.sqrt(z2 * (tried * share * (1.0 - share) + z2 / 4.0))
    low, high = (centre - half) / (tried + z2), (centre + half) / (tried + z2)
    return np.where(share == 0, 0.0, low)[()], np.where(share == 1, 1.0, high)[()]


def find_rare_levels(table: ConfusionMatrix) -> list[str]:
    """Return the names of the gold levels with some items, but few."""
    known = table.gold if table.whole else table.items.sum(axis=-1)
    few = (table.gold > 0) & (known < RARE_ITEMS)
    return [name for name, rare in zip(table.scale.names, few, strict=True) if rare]


def mean_cost_interval(
    weights: Array, squares: Array, costs: Array, level: float
) -> tuple[float, float]:
    """Return the limits of the mean cost of items, some of which have each of the costs.

    Costs of two kinds are a share, and so are means at an end of their range: Wilson's limits.
    Other limits are those of the delta method, which stay within the range.
    """
    least, most = float(costs.min()), float(costs.max())
    total = float(weights.sum())
    mean = float((weights * costs).sum() / total)
    error = math.sqrt(float((squares * (costs - mean) ** 2).sum())) / total
    kinds = len(np.unique(np.round((costs - least) / ((most - least) or 1.0), 9)))
    if kinds > 2 and error > FLAT_ERROR and least < mean < most:
        return compute_bounded_interval(mean, error, (least, most), normal_quantile(level))
    n = total**2 / float(squares.sum())
    share = (mean - least) / (most - least) if most > least else 0.0
    low, high = wilson_interval(share * n, n, level)
    return least + (most - least) * float(low), least + (most - least) * float(high)


def aggregates_levels(metric: Metric, table: ConfusionMatrix) -> bool:
    """Tell whether a metric is the mean or the worst of what each gold level has on its own."""
    return metric.macro in {"mean", "worst"} and len(table.scale) <= MOST_LEVELS


def mover_interval(metric: Metric, table: ConfusionMatrix, level: float) -> tuple[float, float]:
    """Return the limits of a mean over gold levels by MOVER: those of each level, as distances.

    The squared distances from the levels' means to their limits add up like variances.
    """
    mean, low, high = _compute_level_intervals(metric, table, level)
    below, above = (np.sqrt(((mean - end) ** 2).sum()) / len(mean) for end in (low, high))
    return float(mean.mean() - below), float(mean.mean() + above)


def simultaneous_interval(
    metric: Metric, table: ConfusionMatrix, level: float
) -> tuple[float, float]:
    """Return the limits of the worst gold level, whichever that is: they hold for all at once."""
    levels = int((table.gold > 0).sum())
    _, low, high = _compute_level_intervals(metric, table, level ** (1.0 / levels))
    worst = np.min if metric.direction == "maximize" else np.max
    return float(worst(low)), float(worst(high))


def _compute_level_intervals(
    metric: Metric, table: ConfusionMatrix, level: float
) -> tuple[Array, Array, Array]:
    """Return what the metric is on each gold level alone, and its limits."""
    costs = _compute_item_costs(metric, table)
    found = []
    squares = table.weights if table.whole else table.squares
    for row in np.flatnonzero(table.gold):
        weights, square = (x[row, : costs.shape[1]] for x in (table.weights, squares))
        mean = float((weights * costs[row]).sum() / weights.sum())
        found.append((mean, *mean_cost_interval(weights, square, costs[row], level)))
    mean, low, high = np.array(found).T
    return mean, low, high


def _compute_item_costs(metric: Metric, table: ConfusionMatrix) -> Array:
    """Return what the metric is for a single item in each cell: its cost within its level."""
    size = len(table.scale)
    columns = size + table.has_unanswered
    cells = np.zeros((size, columns, size, size + 1))
    rows, answers = np.indices((size, columns))
    cells[rows, answers, rows, answers] = 1.0
    return metric.compute_from_expected(table.with_cells(cells), table)


def make_posterior_sampler(
    table: ConfusionMatrix, prior: float | None = None, *, stratified: bool = False
) -> Resampler:
    """Return resamples from the posterior: each gold level's predictions, and the gold shares.

    The predictions of a level follow a Dirichlet of its counts and a prior of the same weight for
    each prediction: by default one item's weight for all of them together (Perks). The gold
    shares follow a Dirichlet of the gold counts, or stay as they are if stratified.
    """
    columns = table.weights.shape[-1] if table.has_unanswered else len(table.scale)
    there = np.flatnonzero(table.gold)
    counts, gold = table.weights[there, :columns], table.gold[there]
    little = 1.0 / columns if prior is None else prior

    def draw(rng: "Generator", size: int) -> Array:
        cells = np.zeros((size, *table.weights.shape))
        rows = rng.gamma(counts + little, size=(size, *counts.shape))
        weight = gold if stratified else rng.gamma(gold, size=(size, len(gold)))
        share = weight / weight.sum(axis=-1, keepdims=True) * table.total
        cells[:, there, :columns] = rows / rows.sum(axis=-1, keepdims=True) * share[..., None]
        return cells

    return draw


def scale_to_effective_size(source: ConfusionMatrix) -> ConfusionMatrix:
    """Return one table of as many equally heavy items as say as much as the source.

    Real weights say less than their sum, and groups, to be on the safe side, are one item each.
    """
    table = source.pooled if source.shape else source
    if source.shape:
        size = float(len(source.weights))
    elif table.whole:
        return table
    else:
        size = float(table.total**2 / table.squares.sum())
    return table.with_cells(table.weights * (size / table.total))
