"""Clusters: how sure a metric is where items of one writer, topic or document are alike.

Cells [..., G, K, K + 1] are the confusion matrices of G clusters, of one sample or of many.
"""

import csv
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.inference.delta_method import BLOCK_SIZE
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.inference.small_samples import (
    FLAT_ERROR,
    MOST_LEVELS,
    aggregates_levels,
    compute_item_costs,
    count_effective_items,
    score_interval,
)
from ordinate.metrics import Metric
from ordinate.metrics.arithmetic import diagonal
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
CLUSTER_AXIS = -3


# --- the jackknife -------------------------------------------------------------------------------


def delete_each_cluster(metric: Metric, clusters: ConfusionMatrix) -> Array:
    """Return the metric [..., G] without each cluster in turn."""
    cells = clusters.weights
    pooled = cells.sum(axis=CLUSTER_AXIS, keepdims=True)
    rest = pooled - cells
    rest[rest < FLAT_ERROR * pooled] = 0.0  # what rounding leaves of fractional weights
    flat = rest.reshape(-1, *cells.shape[-2:])
    block = max(1, BLOCK_SIZE // flat[0].size)
    values = [
        metric.compute_from_expected(clusters.with_cells(flat[start : start + block]), clusters)
        for start in range(0, len(flat), block)
    ]
    return np.concatenate(values).reshape(cells.shape[:-2])


def jackknife_error(value: ArrayLike, without: Array) -> Array:
    """Return the standard error of a value from the values [..., G] without each cluster.

    It is nan where a deletion leaves no value: all may hang on the cluster that is deleted.
    """
    count = without.shape[-1]
    squares = (without - np.asarray(value)[..., None]) ** 2
    return np.sqrt((count - 1.0) / count * squares.sum(axis=-1))[()]


def correct_bias(value: ArrayLike, without: Array) -> Array:
    """Return the jackknife's value without bias, from the values [..., G] without each cluster."""
    count = without.shape[-1]
    return (count * np.asarray(value) - (count - 1) * without.mean(axis=-1))[()]


def explain_undefined_deletions(without: Array) -> str | None:
    """Say which of the clusters leave a metric without a value when deleted, if any does.

    >>> explain_undefined_deletions(np.array([0.1, 0.2, np.nan]))
    'it is undefined without one of the 3 clusters'
    """
    bad = int(np.isnan(without).sum())
    if not bad:
        return None
    any_of = f" (any of {bad})" if bad > 1 else ""
    return f"it is undefined without one of the {len(without)} clusters{any_of}"


def is_biased(metric: Metric) -> bool:
    """Tell whether small samples move a metric to one side: information is found in any noise."""
    return metric.family == "clustering" and metric.smooth


# --- levels of fewer items, as clusters leave them -----------------------------------------------


class LevelTrials(NamedTuple):
    """What makes the values of levels: items [..., G, L, C] by cluster, level and cost [L, C].

    `squares` [..., L, C] sums their squared weights over the clusters. A level's value is
    `convert` of its mean cost, the metric the mean over so many `levels`, or the worst. `times`
    [..., G] says how many clusters there are of each kind, where some are alike.
    """

    cells: Array
    squares: Array
    costs: Array
    levels: Array
    convert: Callable[[Array], Array]
    times: Array | None = None

    def sum_over_clusters(self, by_cluster: Array) -> Array:
        """Return sums over the clusters of what each of them [..., G, ...] has."""
        axis = self.cells.ndim + CLUSTER_AXIS
        if self.times is None:
            return by_cluster.sum(axis=axis)
        extra = by_cluster.ndim - axis - 1
        return (by_cluster * self.times[(...,) + (None,) * extra]).sum(axis=axis)

    @property
    def count(self) -> Any:
        """The number of clusters."""
        return self.cells.shape[CLUSTER_AXIS] if self.times is None else self.times.sum(axis=-1)


def list_level_trials(metric: Metric, clusters: ConfusionMatrix) -> LevelTrials | None:
    """Return the trials behind a share of items or a metric over levels; None for other metrics."""
    if len(clusters.scale) > MOST_LEVELS or np.isnan(clusters.squares).any():
        return None
    cells, squares = clusters.weights, clusters.squares.sum(axis=CLUSTER_AXIS)
    pooled = cells.sum(axis=CLUSTER_AXIS)
    gold, predicted = pooled.sum(axis=-1) > 0, pooled[..., :-1].sum(axis=-2) > 0
    split, convert = TRIALS_OF_RATIOS.get(metric.name, (None, np.asarray))
    if split is not None:
        levels = (gold | predicted).sum(axis=-1)
        return LevelTrials(split(cells), split(squares), WRONG_OR_RIGHT, levels, convert)
    if not (metric.share or aggregates_levels(metric, clusters)):
        return None
    costs = compute_item_costs(metric, clusters)
    cells, squares = cells[..., : costs.shape[1]], squares[..., : costs.shape[1]]
    if not metric.share:
        return LevelTrials(cells, squares, costs, gold.sum(axis=-1), convert)
    cells, squares = (x.reshape(*x.shape[:-2], 1, -1) for x in (cells, squares))
    return LevelTrials(cells, squares, costs.reshape(1, -1), gold.any(axis=-1), convert)


def list_item_trials(metric: Metric, matrix: ConfusionMatrix) -> LevelTrials | None:
    """Return the trials behind a mean of ratios over levels, in which each item is a cluster.

    There are none for recall, which is 0 on levels that gold lacks, however few items it has.
    """
    split, convert = TRIALS_OF_RATIOS.get(metric.name, (None, np.asarray))
    if split is None or split is _split_gold:
        return None
    if len(matrix.scale) > MOST_LEVELS or not matrix.has_integer_weights:
        return None
    shape = matrix.weights.shape[-2:]
    item = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    times = matrix.weights.reshape(*matrix.shape, -1)
    cells = np.broadcast_to(split(item), (*times.shape, *split(item).shape[-2:]))
    levels = ((matrix.gold > 0) | (matrix.predicted > 0)).sum(axis=-1)
    return LevelTrials(cells, split(matrix.weights), WRONG_OR_RIGHT, levels, convert, times)


def _split_union(cells: Array) -> Array:
    """Return the items of each level, gold or predicted: [..., K, 2], wrong and right."""
    right = diagonal(cells[..., :-1])
    either = cells.sum(axis=-1) + cells[..., :-1].sum(axis=-2)
    return np.stack([either - 2.0 * right, right], axis=-1)


def _split_predicted(cells: Array) -> Array:
    right = diagonal(cells[..., :-1])
    return np.stack([cells[..., :-1].sum(axis=-2) - right, right], axis=-1)


def _split_gold(cells: Array) -> Array:
    right = diagonal(cells[..., :-1])
    return np.stack([cells.sum(axis=-1) - right, right], axis=-1)


WRONG_OR_RIGHT = np.array([[0.0, 1.0]])
# F1 is 2 J / (1 + J) of Jaccard's J: the share of right items among those of a level, gold or
# predicted. So it has the intervals of a share.
TRIALS_OF_RATIOS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "f1_macro": (_split_union, lambda jaccard: 2.0 * jaccard / (1.0 + jaccard)),
    "precision_macro": (_split_predicted, np.asarray),
    "recall_macro": (_split_gold, np.asarray),
}


class LevelShares(NamedTuple):
    """The levels' mean costs [..., L] as shares of the way from the least cost to the largest."""

    share: Array
    least: Array
    span: Array
    n: Array


def _compute_level_shares(trials: LevelTrials) -> LevelShares:
    pooled = trials.sum_over_clusters(trials.cells)
    n = pooled.sum(axis=-1)
    least = trials.costs.min(axis=-1)
    span = trials.costs.max(axis=-1) - least
    mean = np.divide((pooled * trials.costs).sum(axis=-1), n, out=0.0 * n + least, where=n > 0)
    share = np.divide(mean - least, span, out=np.zeros_like(n), where=span > 0)
    return LevelShares(np.clip(share, 0.0, 1.0), least, span, n)


def compute_design_effect(trials: LevelTrials) -> Array:
    """Return D: the variance of the mean over levels as a multiple of that of Wilson's intervals.

    Wilson's have p (1 - p) / n in each level. The variance is that from deleting one cluster after
    the other from the levels, and at least that of independent items. Where all items of each
    level cost the same nothing tells, and a cluster counts as one item.
    """
    cells, count = trials.cells, trials.count
    share, least, span, n = _compute_level_shares(trials)
    some = np.where(n > 0, n, 1.0)
    residual = trials.costs - (least + span * share)[..., None]
    sums = (cells * residual[..., None, :, :]).sum(axis=-1)
    rest = some[..., None, :] - cells.sum(axis=-1)
    others = rest > FLAT_ERROR * some[..., None, :]
    moves = np.divide(sums, rest, out=np.zeros_like(sums), where=others).sum(axis=-1)
    clustered = (count - 1.0) / count * trials.sum_over_clusters(moves**2)
    alone = ((trials.squares * residual**2).sum(axis=-1) / some**2).sum(axis=-1)
    items = _count_level_items(trials)
    wilson = span**2 * share * (1.0 - share) / np.where(items > 0, items, np.inf)
    binomial, variance = wilson.sum(axis=-1), np.maximum(alone, clustered)
    known = variance > FLAT_ERROR * binomial
    ratio = np.divide(variance, binomial, out=np.ones_like(binomial), where=known)
    return np.where(known, ratio, items.sum(axis=-1) / count)


def _count_level_items(trials: LevelTrials) -> Array:
    """Return the effective number of items [..., L] of each level."""
    return count_effective_items(
        trials.sum_over_clusters(trials.cells.sum(axis=-1)), trials.squares.sum(axis=-1)
    )


def compute_level_bounds(
    trials: LevelTrials, reach: ArrayLike, effect: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return the levels' values [..., L] and their bounds; nan for levels without items.

    Wilson's interval at n_k / D items for a design effect D, so many (`reach`) standard errors
    wide.
    """
    effect = compute_design_effect(trials) if effect is None else effect
    share, least, span, n = _compute_level_shares(trials)
    size = np.where(n > 0, _count_level_items(trials) / effect[..., None], np.nan)
    ends = share, *score_interval(share, size, np.asarray(reach)[..., None])
    value, low, high = (trials.convert(np.where(n > 0, least + span * end, np.nan)) for end in ends)
    return value, low, high


def mover_of_clusters(
    trials: LevelTrials, reach: ArrayLike, effect: Array | None = None
) -> tuple[Array, Array]:
    """Return the interval of a mean over levels: their distances to bounds add up as squares."""
    value, low, high = compute_level_bounds(trials, reach, effect)
    mean = np.nansum(value, axis=-1) / trials.levels
    below, above = (
        np.sqrt(np.nansum((value - end) ** 2, axis=-1)) / trials.levels for end in (low, high)
    )
    return mean - below, mean + above


def worst_of_clusters(
    trials: LevelTrials, reach: ArrayLike, direction: str, effect: Array | None = None
) -> tuple[Array, Array]:
    """Return the interval of the worst level, from simultaneous intervals of all levels."""
    _, low, high = compute_level_bounds(trials, reach, effect)
    worst = np.nanmin if direction == "maximize" else np.nanmax
    return worst(low, axis=-1), worst(high, axis=-1)


# --- doubts --------------------------------------------------------------------------------------

FEWEST_HOLDING = 8  # clusters that should hold each gold level
LARGEST_SHARE = 0.2  # of the items in one cluster
# Their intervals hold with rare levels, too.
SURE_FAMILIES = {"closeness", "ranking"}
ALWAYS_DOUBTFUL = {"nmd"}  # nothing covers it near its bound


def describe_cluster_doubts(metric: Metric, clusters: ConfusionMatrix) -> str | None:
    """Say what makes an interval of clusters unsure, if anything does: the study's thresholds."""
    doubts = list_size_doubts(clusters.total)
    if depends_on_rare_levels(metric):
        doubts += _describe_rare_levels(clusters)
    lowest = _load_lowest_coverage().get(metric.alias_of or metric.name)
    if lowest is not None and (doubts or metric.name in ALWAYS_DOUBTFUL):
        doubts.append(
            f"default 95 % intervals covered as little as {100 * lowest:.0f} % in the study"
        )
    return join_doubts(doubts)


def list_size_doubts(sizes: Array) -> list[str]:
    """Return what makes clusters of these sizes [G] unsure: too few of them, or a large one."""
    count, largest = len(sizes), float(sizes.max() / sizes.sum())
    doubts = [f"{count} clusters only"] if count < VERY_FEW_CLUSTERS else []
    if largest > LARGEST_SHARE:
        doubts.append(f"one cluster has {100 * largest:.0f} % of the items")
    return doubts


def join_doubts(doubts: list[str]) -> str | None:
    """Return doubts as a note, None where there are none."""
    return f"unsure: {'; '.join(doubts)}" if doubts else None


@cache
def _load_lowest_coverage() -> dict[str, float]:
    """Return what intervals of clusters cover at worst where there are doubts, by metric.

    `make coverage-clusters` writes it; the others cover 93 % or more there.
    """
    text = files(__package__).joinpath("cluster_coverage_warnings.csv").read_text(encoding="utf-8")
    return {row["metric"]: float(row["coverage"]) for row in csv.DictReader(text.splitlines())}


def depends_on_rare_levels(metric: Metric) -> bool:
    """Tell whether intervals undercover where few clusters hold a level."""
    return not (metric.share or metric.family in SURE_FAMILIES)


def _describe_rare_levels(clusters: ConfusionMatrix) -> list[str]:
    holding = (clusters.gold > 0).sum(axis=0)
    names = np.array(clusters.scale.names)
    absent, rare = names[holding == 0], names[(holding > 0) & (holding < FEWEST_HOLDING)]
    doubts = []
    if len(rare):
        doubts.append(f"fewer than {FEWEST_HOLDING} clusters hold {', '.join(rare)}")
    if len(absent):
        doubts.append(f"gold without {', '.join(absent)}")
    return doubts
