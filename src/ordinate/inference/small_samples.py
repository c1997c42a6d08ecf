"""Small samples: proportions, rare levels, matrices that no bootstrap can move, undercoverage."""

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.inference.delta_method import CELL_AXES, compute_bounded_interval, normal_quantile
from ordinate.inference.resampling import Resampler
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
RARE_ITEMS = 10  # items of a gold level, below which resampling its items is not enough
MOST_LEVELS = 30  # up to which each cell is tried alone
FLAT_ERROR = 1e-12  # an error of nothing
STUDIED_LEVELS, STUDIED_SIZES = (3, 7), (20, 50, 200, 1_000, 5_000)  # of the coverage study
RARE_SHARE = 0.1  # of the rarest level beside the commonest, below which gold is imbalanced


def wilson_interval(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's interval of proportions; from 0 to 1 where nothing was tried.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    return _wilson_interval(successes, n, normal_quantile(level))


def _wilson_interval(successes: ArrayLike, n: ArrayLike, reach: ArrayLike) -> tuple[Array, Array]:
    trials = np.asarray(n, float)
    share = np.divide(successes, trials, out=np.full(trials.shape, 0.5), where=trials > 0)
    return score_interval(share, trials, reach)


def score_interval(share: Array, n: Array, reach: ArrayLike) -> tuple[Array, Array]:
    """Return Wilson's interval of shares of n items, so many standard errors to each side."""
    z2 = np.asarray(reach) ** 2
    centre = n * share + z2 / 2.0
    half = np.sqrt(z2 * (n * share * (1.0 - share) + z2 / 4.0))
    low, high = (centre - half) / (n + z2), (centre + half) / (n + z2)
    return np.where(share == 0, 0.0, low)[()], np.where(share == 1, 1.0, high)[()]


def are_rare(matrix: ConfusionMatrix) -> Array:
    """Tell which gold levels [..., K] have some items, but few."""
    known = matrix.gold if matrix.has_integer_weights else matrix.items.sum(axis=-1)
    return (matrix.gold > 0) & (known < RARE_ITEMS)


def mean_cost_interval(
    weights: Array, squares: Array, costs: Array, level: float
) -> tuple[Any, Any]:
    """Return the interval of the mean cost of items [..., C], some of which have each of the costs.

    Two distinct costs make a proportion, and so does a mean at an end of the range: Wilson's
    interval. Others get the interval of the delta method, which stays within the range. It is nan
    where there are no items.
    """
    low, high = _mean_cost_interval(weights, squares, costs, normal_quantile(level))[1:]
    return (low, high) if low.ndim else (float(low), float(high))


def _mean_cost_interval(
    weights: Array, squares: Array, costs: Array, reach: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return the mean cost and the bounds of its interval, so many standard errors to each side."""
    lowest, highest = float(costs.min()), float(costs.max())
    total = weights.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        mean = np.asarray((weights * costs).sum(axis=-1) / total)
        error = np.sqrt((squares * (costs - mean[..., None]) ** 2).sum(axis=-1)) / total
    n = count_effective_items(total, squares.sum(axis=-1))
    share = (mean - lowest) / (highest - lowest) if highest > lowest else np.zeros_like(mean)
    ends = _wilson_interval(share * n, n, reach)
    low, high = (np.where(total > 0, lowest + (highest - lowest) * end, np.nan) for end in ends)
    if len(np.unique(np.round((costs - lowest) / ((highest - lowest) or 1.0), 9))) > 2:
        within = (error > FLAT_ERROR) & (lowest < mean) & (mean < highest)
        bounded = compute_bounded_interval(mean, error, (lowest, highest), reach)
        low, high = (
            np.where(within, end, other) for end, other in zip(bounded, (low, high), strict=True)
        )
    return mean, low, high


def aggregates_levels(metric: Metric, matrix: ConfusionMatrix) -> bool:
    """Tell whether a metric is the mean or the worst of what each gold level has on its own."""
    return metric.macro in {"mean", "worst"} and len(matrix.scale) <= MOST_LEVELS


def mover_interval(metric: Metric, matrix: ConfusionMatrix, level: float) -> tuple[Any, Any]:
    """Return the interval of a mean over gold levels by MOVER, from the interval of each level.

    The squared distances from the levels' means to their bounds add up like variances.
    """
    mean, low, high = _compute_level_intervals(metric, matrix, np.full(matrix.shape, level))
    levels = (matrix.gold > 0).sum(axis=-1)
    middle = np.nansum(mean, axis=-1) / levels
    below, above = (np.sqrt(np.nansum((mean - end) ** 2, axis=-1)) / levels for end in (low, high))
    return middle - below, middle + above


def simultaneous_interval(metric: Metric, matrix: ConfusionMatrix, level: float) -> tuple[Any, Any]:
    """Return the interval of the worst gold level, from simultaneous intervals of all levels."""
    each = level ** (1.0 / (matrix.gold > 0).sum(axis=-1))
    _, low, high = _compute_level_intervals(metric, matrix, each)
    worst = np.nanmin if metric.direction == "maximize" else np.nanmax
    return worst(low, axis=-1), worst(high, axis=-1)


def _compute_level_intervals(
    metric: Metric, matrix: ConfusionMatrix, level: Array
) -> tuple[Array, Array, Array]:
    """Return the metric of each gold level alone [..., K], and the bounds of its interval."""
    costs = compute_item_costs(metric, matrix)
    squares = matrix.weights if matrix.has_integer_weights else matrix.squares
    reach = np.reshape([normal_quantile(x) for x in np.ravel(level).tolist()], np.shape(level))
    by_level = [
        _mean_cost_interval(
            matrix.weights[..., k, : len(cost)], squares[..., k, : len(cost)], cost, reach
        )
        for k, cost in enumerate(costs)
    ]
    mean, low, high = (np.stack(part, axis=-1) for part in zip(*by_level, strict=True))
    return mean, low, high


def compute_item_costs(metric: Metric, matrix: ConfusionMatrix) -> Array:
    """Return the metric of a single item in each cell: its cost within its level."""
    size = len(matrix.scale)
    columns = size + matrix.has_unanswered
    cells = np.zeros((size, columns, size, size + 1))
    rows, predicted = np.indices((size, columns))
    cells[rows, predicted, rows, predicted] = 1.0
    return metric.compute_from_expected(matrix.with_cells(cells), matrix)


def make_posterior_sampler(
    matrix: ConfusionMatrix, prior: float | None = None, *, stratified: bool = False
) -> Resampler:
    """Return a sampler of the posterior: each gold level's predictions, and the gold shares.

    The predictions of a level follow a Dirichlet of its counts and a prior of the same weight for
    each prediction: by default one item's weight for all of them together (Perks). The gold
    shares follow a Dirichlet of the gold counts, or stay as they are if stratified.
    """
    columns = matrix.weights.shape[-1] if matrix.has_unanswered else len(matrix.scale)
    present = np.flatnonzero(matrix.gold)
    counts, gold = matrix.weights[present, :columns], matrix.gold[present]
    prior_weight = 1.0 / columns if prior is None else prior

    def draw(rng: "Generator", size: int) -> Array:
        cells = np.zeros((size, *matrix.weights.shape))
        rows = rng.gamma(counts + prior_weight, size=(size, *counts.shape))
        weight = gold if stratified else rng.gamma(gold, size=(size, len(gold)))
        share = weight / weight.sum(axis=-1, keepdims=True) * matrix.total
        cells[:, present, :columns] = rows / rows.sum(axis=-1, keepdims=True) * share[..., None]
        return cells

    return draw


def count_effective_items(weight: ArrayLike, squares: ArrayLike) -> Array:
    """Return how many equally heavy items carry as much as items of this weight: (Σw)² / Σw².

    Without items it is 0, and nan where the squares are unknown.

    >>> count_effective_items([3.0, 4.0, 0.0], [3.0, 8.0, 0.0]).tolist()
    [3.0, 2.0, 0.0]
    """
    total, squared = np.asarray(weight, float), np.asarray(squares, float)
    return np.divide(total**2, squared, out=np.zeros_like(total), where=squared != 0)


def compute_effective_sizes(matrices: ConfusionMatrix) -> Array:
    """Return how many equally heavy items each matrix is worth; integer weights are counts."""
    if matrices.has_integer_weights:
        return np.asarray(matrices.total)
    return count_effective_items(matrices.total, matrices.squares.sum(CELL_AXES))


def scale_to_effective_size(source: ConfusionMatrix) -> ConfusionMatrix:
    """Return one matrix of as many equally heavy items as carry the same information.

    Fractional weights carry less than their sum, and a cluster, to be safe, counts as one item.
    """
    matrix = source.pooled if source.shape else source
    if source.shape:
        size = float(len(source.weights))
    elif matrix.has_integer_weights:
        return matrix
    else:
        size = float(count_effective_items(matrix.total, matrix.squares.sum()))
    return matrix.with_cells(matrix.weights * (size / matrix.total))


# --- known undercoverage -------------------------------------------------------------------------


def describe_undercoverage(metric: Metric, matrix: ConfusionMatrix) -> str | None:
    """Say how far the intervals of a metric undercover on data like these, if they do."""
    if metric.options:
        return None
    levels = int(np.clip(len(matrix.scale), *STUDIED_LEVELS))
    items, rare = (x.item() for x in find_studied_case(matrix))
    gold = "1:100" if rare else "balanced"
    coverage = _load_coverage().get((metric.alias_of or metric.name, levels, items, gold))
    if coverage is None:
        return None
    return f"95 % intervals cover {100 * coverage:.0f} % in tables like this"


def find_studied_case(matrix: ConfusionMatrix) -> tuple[Array, Array]:
    """Return the studied number of items nearest below that of matrices, and if a level is rare."""
    place = np.searchsorted(STUDIED_SIZES, matrix.total, side="right") - 1
    items = np.array(STUDIED_SIZES)[np.maximum(0, place)]
    # a level that gold lacks is rare
    return items, matrix.gold.min(axis=-1) < RARE_SHARE * matrix.gold.max(axis=-1)


@cache
def _load_coverage() -> dict[tuple[str, int, int, str], float]:
    """Return the cases of undercoverage that `make coverage` found.

    They are nominal 95 % intervals, metrics with their defaults, numbers of levels and items, gold
    balanced or with one level a hundred times as rare as another.
    """
    text = files(__package__).joinpath("coverage_warnings.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], int(row["levels"]), int(row["items"]), row["gold"]): float(row["coverage"])
        for row in csv.DictReader(text.splitlines())
    }
