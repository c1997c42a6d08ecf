"""Small samples: proportions, rare levels, matrices that no bootstrap can move, undercoverage."""

import csv
import math
from functools import cache
from importlib.resources import files
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
STUDIED_LEVELS, STUDIED_SIZES = (3, 7), (20, 50, 200, 1_000, 5_000)  # of the coverage study
RARE_SHARE = 0.1  # of the rarest level beside the commonest, below which gold is imbalanced


def wilson_interval(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's interval of proportions; from 0 to 1 where nothing was tried.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    trials = np.asarray(n, float)
    share = np.divide(successes, trials, out=np.full(trials.shape, 0.5), where=trials > 0)
    return score_interval(share, trials, normal_quantile(level))


def score_interval(share: Array, n: Array, reach: ArrayLike) -> tuple[Array, Array]:
    """Return Wilson's interval of shares of n items, so many standard errors to each side."""
    z2 = np.asarray(reach) ** 2
    centre = n * share + z2 / 2.0
    half = np.sqrt(z2 * (n * share * (1.0 - share) + z2 / 4.0))
    low, high = (centre - half) / (n + z2), (centre + half) / (n + z2)
    return np.where(share == 0, 0.0, low)[()], np.where(share == 1, 1.0, high)[()]


def find_rare_levels(matrix: ConfusionMatrix) -> list[str]:
    """Return the names of the gold levels with some items, but few."""
    known = matrix.gold if matrix.has_integer_weights else matrix.items.sum(axis=-1)
    few = (matrix.gold > 0) & (known < RARE_ITEMS)
    return [name for name, rare in zip(matrix.scale.names, few, strict=True) if rare]


def mean_cost_interval(
    weights: Array, squares: Array, costs: Array, level: float
) -> tuple[float, float]:
    """Return the interval of the mean cost of items, some of which have each of the costs.

    Two distinct costs make a proportion, and so does a mean at an end of the range: Wilson's
    interval. Others get the interval of the delta method, which stays within the range.
    """
    lowest, highest = float(costs.min()), float(costs.max())
    total = float(weights.sum())
    mean = float((weights * costs).sum() / total)
    error = math.sqrt(float((squares * (costs - mean) ** 2).sum())) / total
    distinct = len(np.unique(np.round((costs - lowest) / ((highest - lowest) or 1.0), 9)))
    if distinct > 2 and error > FLAT_ERROR and lowest < mean < highest:
        return compute_bounded_interval(mean, error, (lowest, highest), normal_quantile(level))
    n = count_effective_items(total, squares.sum())
    share = (mean - lowest) / (highest - lowest) if highest > lowest else 0.0
    low, high = wilson_interval(share * n, n, level)
    return lowest + (highest - lowest) * float(low), lowest + (highest - lowest) * float(high)


def aggregates_levels(metric: Metric, matrix: ConfusionMatrix) -> bool:
    """Tell whether a metric is the mean or the worst of what each gold level has on its own."""
    return metric.macro in {"mean", "worst"} and len(matrix.scale) <= MOST_LEVELS


def mover_interval(metric: Metric, matrix: ConfusionMatrix, level: float) -> tuple[float, float]:
    """Return the interval of a mean over gold levels by MOVER, from the interval of each level.

    The squared distances from the levels' means to their bounds add up like variances.
    """
    mean, low, high = _compute_level_intervals(metric, matrix, level)
    below, above = (np.sqrt(((mean - end) ** 2).sum()) / len(mean) for end in (low, high))
    return float(mean.mean() - below), float(mean.mean() + above)


def simultaneous_interval(
    metric: Metric, matrix: ConfusionMatrix, level: float
) -> tuple[float, float]:
    """Return the interval of the worst gold level, from simultaneous intervals of all levels."""
    levels = int((matrix.gold > 0).sum())
    _, low, high = _compute_level_intervals(metric, matrix, level ** (1.0 / levels))
    worst = np.min if metric.direction == "maximize" else np.max
    return float(worst(low)), float(worst(high))


def _compute_level_intervals(
    metric: Metric, matrix: ConfusionMatrix, level: float
) -> tuple[Array, Array, Array]:
    """Return the metric of each gold level alone, and the bounds of its interval."""
    costs = compute_item_costs(metric, matrix)
    estimates = []
    squares = matrix.weights if matrix.has_integer_weights else matrix.squares
    for row in np.flatnonzero(matrix.gold):
        weights, square = (x[row, : costs.shape[1]] for x in (matrix.weights, squares))
        mean = float((weights * costs[row]).sum() / weights.sum())
        estimates.append((mean, *mean_cost_interval(weights, square, costs[row], level)))
    mean, low, high = np.array(estimates).T
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
    items = max((size for size in STUDIED_SIZES if size <= matrix.total), default=STUDIED_SIZES[0])
    rare = matrix.gold.min() < RARE_SHARE * matrix.gold.max()  # a level that gold lacks is rare
    gold = "1:100" if rare else "balanced"
    coverage = _load_coverage().get((metric.alias_of or metric.name, levels, items, gold))
    if coverage is None:
        return None
    return f"95 % intervals cover {100 * coverage:.0f} % in tables like this"


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
