"""Differences between many systems on the same items: resampled jointly, ranked, compared."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.clusters import delete_each_cluster
from ordinate.inference.delta_method import compute_influence, normal_quantile
from ordinate.inference.distributions import student_quantile
from ordinate.inference.multiple_testing import holm
from ordinate.inference.resampling import (
    BLOCK_SIZE,
    ProgressCallback,
    Resampling,
    map_on_cores,
    resample_cells,
    resample_clusters,
)
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix, Panel

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
LARGE_BLOCK_SIZE = 8 * BLOCK_SIZE  # numbers in a block of resamples of a panel
CACHED_NUMBERS = 1 << 16  # numbers that stay near the processor
MOST_INDICATORS = 1 << 25  # of which row counts for which cell, that are kept
MOST_SINGLE_ITEMS = 1 << 24  # up to which single precision has all integers
MOST_ROWS = 100_000  # distinct rows that are drawn one by one
TIE_TOLERANCE = 1e-12
NOISE_LEVEL = 1e-9  # differences and errors below it are rounding
# How values of other samples are found.
BOOTSTRAP, JACKKNIFE, DELTA_METHOD = "bootstrap", "jackknife", "delta method"


def resample_jointly(
    panel: Panel,
    metrics: Sequence[Metric],
    resamples: Resampling,
    progress: ProgressCallback | None = None,
    *,
    tails: bool = True,
    most_rows: int = MOST_ROWS,
    block_size: int = LARGE_BLOCK_SIZE,
) -> dict[str, Array]:
    """Return the values [B, S] of metrics, by expression, on items resampled for all systems.

    Values are drawn from a distribution where that is better: for clusters Student's, with the
    covariance of deleting them one by one (without its long tails, if only the spread is needed);
    for very many distinct rows a normal one, with the covariance of the influences, if the metric
    has a derivative.
    """
    modelled = [m for m in metrics if choose_resampling(panel, m, most_rows) != BOOTSTRAP]
    values = {m.expression: _simulate_values(panel, m, resamples, tails=tails) for m in modelled}
    rest = [metric for metric in metrics if metric.expression not in values]
    if rest:
        values |= _resample_values(panel, rest, resamples, progress, block_size)
    return values


def choose_resampling(panel: Panel, metric: Metric, most_rows: int = MOST_ROWS) -> str:
    """Return how the values of a metric in other samples are found."""
    if panel.groups is not None:
        return JACKKNIFE if len(panel.group_values) >= 2 else BOOTSTRAP
    return DELTA_METHOD if len(panel) > most_rows and metric.smooth else BOOTSTRAP


def _resample_values(
    panel: Panel,
    metrics: Sequence[Metric],
    resamples: Resampling,
    progress: ProgressCallback | None,
    block_size: int,
) -> dict[str, Array]:
    size = len(panel.scale)
    cells_per_resample = len(panel.systems) * size * (size + 1)
    order, counter = order_rows(panel), MatrixCounter(panel, block_size)

    def work(rng: "Generator", count: int) -> list[Array]:
        cells = counter.count(_resample_weights(panel, order, rng, count))
        return compute_in_blocks(metrics, panel.confusion_matrix(panel.systems[0]), cells)

    blocks = resamples.run_in_blocks(
        len(panel) + cells_per_resample, work, block=block_size, progress=progress
    )
    values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return {metric.expression: column for metric, column in zip(metrics, values, strict=True)}


def order_rows(panel: Panel) -> Array:
    """Return an order of the rows that does not depend on the order or the names of systems."""
    columns = [panel.rows[:, 1 + system] for system in reversed(_order_systems(panel))]
    return np.lexsort([*columns, panel.rows[:, 0]])


def _order_systems(panel: Panel) -> list[int]:
    """Return the systems in an order that depends on their predictions alone."""
    filled = [
        _list_filled_cells(panel.confusion_matrix(system).weights) for system in panel.systems
    ]
    return sorted(range(len(filled)), key=filled.__getitem__)


def _list_filled_cells(weights: Array) -> list[tuple[int, float]]:
    """Return the cells that have items, in a form that sorts as confusion matrices do."""
    cells = weights.reshape(-1)
    filled = np.flatnonzero(cells)
    return list(zip((-filled).tolist(), cells[filled].tolist(), strict=True))


def _find_distinct_systems(panel: Panel) -> tuple[list[int], list[int]]:
    """Return the systems that predict differently, and for each system the one like it."""
    places: dict[bytes, int] = {}
    order: list[int] = []
    same = [0] * len(panel.systems)
    for system in _order_systems(panel):
        predictions = panel.rows[:, 1 + system].tobytes()
        if predictions not in places:
            places[predictions] = len(order)
            order.append(system)
        same[system] = places[predictions]
    return order, same


def _resample_weights(panel: Panel, order: Array, rng: "Generator", count: int) -> Array:
    """Return the weight [count, U] of each row in each resample."""
    if panel.groups is not None:
        multiplicities = resample_clusters(rng, len(panel.group_values), count)
        return multiplicities[:, panel.groups] * panel.weights
    squares = None if panel.has_integer_weights else panel.squares[order]
    weights = np.empty((count, len(panel)))
    weights[:, order] = resample_cells(rng, panel.weights[order], squares, count)
    return weights


class MatrixCounter:
    """Counts the confusion matrices of all systems for other weights of the rows of a panel.

    What each row says of each cell is kept where that is small. Sums of integers are exact in
    single precision, too, if all items together are few enough.
    """

    def __init__(self, panel: Panel, block_size: int = LARGE_BLOCK_SIZE) -> None:
        self.panel, self.block_size, self.size = panel, block_size, len(panel.scale)
        self.exact = panel.has_integer_weights
        few = self.exact and float(panel.weights.sum()) < MOST_SINGLE_ITEMS
        self.dtype = np.float32 if few else np.float64
        self.rows = [np.flatnonzero(panel.rows[:, 0] == level) for level in range(self.size)]
        # of exact sums one column is what the others leave
        last = self.size + bool((panel.rows[:, 1:] == self.size).any())
        self.columns = np.arange(1, last) if self.exact else np.arange(self.size + 1)
        numbers = len(panel) * len(panel.systems) * len(self.columns)
        self.stored = (
            [list(self._make_indicators(level)) for level in range(self.size)]
            if numbers <= MOST_INDICATORS
            else None
        )

    def count(self, weights: Array) -> Array:
        """Return the matrices [B, S, K, K + 1] for weights [B, U], integers where those are."""
        cells = np.zeros((len(weights), len(self.panel.systems), self.size, self.size + 1))
        for level, rows in enumerate(self.rows):
            part = weights[:, rows].astype(self.dtype)
            blocks = self._make_indicators(level) if self.stored is None else self.stored[level]
            for first, indicators in blocks:
                sums = multiply_weights(part, indicators, exact=self.exact)
                sums = sums.reshape(len(weights), -1, len(self.columns))
                cells[:, first : first + sums.shape[1], level, self.columns] = sums
            if self.exact:
                rest = part.sum(axis=1, dtype=float)[:, None] - cells[:, :, level].sum(axis=-1)
                cells[:, :, level, 0] = rest
        return cells

    def _make_indicators(self, level: int) -> Iterator[tuple[int, Array]]:
        """Yield the first system of each block, and which rows [U, systems * columns] it counts."""
        rows = self.rows[level]
        step = max(1, self.block_size // max(1, len(rows) * len(self.columns)))
        for first in range(0, len(self.panel.systems), step) if len(rows) else ():
            predicted = self.panel.rows[rows, 1 + first : 1 + first + step]
            found = predicted[:, :, None] == self.columns
            yield first, found.reshape(len(rows), -1).astype(self.dtype)


def multiply_weights(weights: Array, indicators: Array, *, exact: bool) -> Array:
    """Return weights @ indicators. Fractions are added in one order, whatever the threads."""
    if exact:
        return weights @ indicators
    return np.einsum("bu,us->bs", weights, indicators)


def compute_in_blocks(
    metrics: Sequence[Metric], matrix: ConfusionMatrix, cells: Array
) -> list[Array]:
    """Return the values of metrics for other cells, as many matrices at a time as the cache holds.

    `matrix` is of the same items, and says what their weights are.
    """
    flat = cells.reshape(-1, *cells.shape[-2:])
    step = max(1, BLOCK_SIZE // flat[0].size)
    values = np.empty((len(metrics), len(flat)))
    for start in range(0, len(flat), step):
        matrices = matrix.with_cells(flat[start : start + step])  # which metrics share
        for metric, column in zip(metrics, values, strict=True):
            column[start : start + step] = metric.compute_unchecked(matrices)
    return list(values.reshape(len(metrics), *cells.shape[:-2]))


def _simulate_values(panel: Panel, metric: Metric, resamples: Resampling, *, tails: bool) -> Array:
    """Return normal resamples, or those of Student's t with a degree less than there are clusters.

    A system on which the metric has no value, or none without one of the clusters, has none in any
    resample.
    """
    order, same = _find_distinct_systems(panel)
    values = np.array([_compute_value(metric, panel, index) for index in order])
    measure = _influence_covariance if panel.groups is None else _jackknife_covariance
    covariance = measure(panel, metric, order, values)
    values = np.where(np.isnan(np.diag(covariance)), np.nan, values)
    rng = np.random.default_rng([resamples.seed, 0])
    deviations = rng.multivariate_normal(
        np.zeros(len(order)), np.nan_to_num(covariance), resamples.count, method="eigh"
    )
    if panel.groups is not None and tails:
        freedom = len(panel.group_values) - 1
        deviations /= np.sqrt(rng.chisquare(freedom, (resamples.count, 1)) / freedom)
    return (values + deviations)[:, same]


def _compute_value(metric: Metric, panel: Panel, index: int) -> float:
    try:
        return float(metric(panel.confusion_matrix(panel.systems[index])))
    except NotApplicable:
        return np.nan


def _jackknife_covariance(panel: Panel, metric: Metric, order: list[int], values: Array) -> Array:
    """Return Cov(s, t): (G - 1) / G times the sum over clusters of what deleting them changes.

    It is nan for systems on which the metric has no value without one of the clusters.
    """
    changes = np.zeros((len(panel.group_values), len(order)))
    for place, index in enumerate(order):
        if not np.isnan(values[place]):
            clusters = panel.count_by_group(panel.systems[index])
            changes[:, place] = delete_each_cluster(metric, clusters) - values[place]
    changes[np.abs(changes) <= TIE_TOLERANCE] = 0.0  # rounding
    return (len(changes) - 1.0) / len(changes) * changes.T @ changes


def _influence_covariance(panel: Panel, metric: Metric, order: list[int], values: Array) -> Array:
    """Return Cov(s, t): the sum of IF_s IF_t over items / N^2."""
    pulls = np.zeros((len(order), len(panel.scale), len(panel.scale) + 1))
    for place, index in enumerate(order):
        if not np.isnan(values[place]):
            pulls[place] = compute_influence(metric, panel.confusion_matrix(panel.systems[index]))
    pulls[np.abs(pulls) < NOISE_LEVEL] = 0.0  # what derivatives leave where nothing moves
    squares = panel.weights if panel.has_integer_weights else panel.squares
    total = np.zeros((len(order), len(order)))
    step = max(1, LARGE_BLOCK_SIZE // len(order))
    for start in range(0, len(panel), step):
        part = slice(start, start + step)
        gold, predicted = panel.rows[part, 0], panel.rows[part, 1:][:, order]
        pull = pulls[np.arange(len(order)), gold[:, None], predicted]
        total += (pull * squares[part, None]).T @ pull
    return total / panel.weights.sum() ** 2


# --- differences ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemDifferences:
    """First minus second for pairs of systems [P], with simultaneous confidence intervals.

    `p` is of each pair alone; `adjusted` is by max-T over the family of pairs. Where every resample
    gives the same difference there is no interval.
    """

    first: Array
    second: Array
    value: Array
    error: Array
    low: Array
    high: Array
    p: Array
    adjusted: Array


@dataclass(frozen=True)
class DifferenceLaw:
    """What is known of differences without resamples: their standard errors [S, S], and their law.

    An error of 0 says that two systems are the same, nan that their difference is not tested. The
    law is Student's t with so many degrees of freedom, or a normal one if these are infinite.
    """

    errors: Array
    freedom: float

    def compute_p_values(self, statistic: Array) -> Array:
        """Return the probability of a statistic at least as far from 0."""
        from scipy import special

        if math.isinf(self.freedom):
            return np.asarray(special.erfc(statistic / math.sqrt(2.0)))
        return np.asarray(2.0 * special.stdtr(self.freedom, -statistic))

    def compute_quantile(self, level: float) -> float:
        """Return how many standard errors an interval reaches to each side."""
        if math.isinf(self.freedom):
            return normal_quantile(level)
        return student_quantile(level, self.freedom)

    def sharpen(
        self, found: "SystemDifferences", critical: float, level: float, family: int
    ) -> "SystemDifferences":
        """Return pairs with p-values of their own by the law, and what resamples can say at most.

        By max-T a pair of a family is adjusted for at least itself, and for no more than all of
        them by Bonferroni, or by Holm in steps: so are its p-value and the width of its interval.
        """
        error = self.errors[found.first, found.second]
        tested = ~np.isnan(error)
        value = np.where(error == 0, 0.0, found.value)
        statistic = np.divide(np.abs(value), error, out=np.zeros_like(value), where=error > 0)
        p = np.where(tested, self.compute_p_values(statistic), np.nan)
        adjusted, most = np.full(len(p), np.nan), np.minimum(1.0, p * family)
        if family == len(p):
            most[tested] = holm(p[tested])
        adjusted[tested] = np.clip(found.adjusted, p, most)[tested]
        widest = self.compute_quantile(1.0 - (1.0 - level) / max(1, family))
        half = min(max(critical, self.compute_quantile(level)), widest) * error
        bounds = {"low": value - half, "high": value + half}
        return replace(found, value=value, error=error, p=p, adjusted=adjusted, **bounds)


def compare_pairs(
    values: Array,
    resampled: Array,
    first: Array,
    second: Array,
    level: float,
    *,
    widest: Array | None = None,
    law: DifferenceLaw | None = None,
    block_size: int = LARGE_BLOCK_SIZE,
) -> SystemDifferences:
    """Compare pairs of systems by values [S] and joint resamples [B, S] of them.

    `widest` [B] is the max-T statistic of each resample over a larger family, all pairs; without
    it, p-values step down over these. Where the `law` of differences is known, resamples only say
    how they hang together.
    """
    value = values[first] - values[second]
    spread = _standard_errors(resampled, first, second, law)
    error = spread if law is not None else np.where(spread > NOISE_LEVEL, spread, 0.0)
    statistic = _standardise_difference(np.abs(value), error)
    order = np.argsort(-statistic, kind="stable")
    alone, stepped, largest = _count_exceedances(
        _split_resamples(resampled, len(value), block_size),
        first,
        second,
        value,
        error,
        statistic,
        order,
    )
    if widest is not None:
        ranked = np.sort(widest)
        stepped = len(ranked) - np.searchsorted(ranked, statistic[order] - TIE_TOLERANCE)
        largest = widest
    adjusted = np.empty(len(value))
    adjusted[order] = np.maximum.accumulate((stepped + 1.0) / (len(resampled) + 1.0))
    p = (alone + 1.0) / (len(resampled) + 1.0)
    critical = float(np.quantile(largest, level, method="higher")) if len(value) else 0.0
    half = np.where((error == 0) & (np.abs(value) > NOISE_LEVEL), np.nan, critical * error)
    found = SystemDifferences(first, second, value, error, value - half, value + half, p, adjusted)
    if law is None:
        return found
    family = len(value) if widest is None else len(list_pairs(len(values))[0])
    return law.sharpen(found, critical, level, family)


def count_differing_units(panel: Panel) -> Array:
    """Return the number of items, or of clusters, in which two systems predict differently [S, S].

    With d of them, swapping the predictions of two systems gives no p-value below 2^(1 - d).
    """
    predictions = panel.rows[:, 1:]
    if panel.groups is None:
        counts = np.asarray(panel.weights if panel.has_integer_weights else panel.items, float)
        agreeing = np.zeros((predictions.shape[1], predictions.shape[1]))
        for prediction in np.unique(predictions):
            same = (predictions == prediction).astype(float)
            agreeing += (same.T * counts) @ same
        return counts.sum() - agreeing
    differing = np.empty((predictions.shape[1], predictions.shape[1]))
    for index in range(len(differing)):
        marks = np.zeros((len(panel.group_values), len(differing)), bool)
        np.logical_or.at(marks, panel.groups, predictions != predictions[:, index, None])
        differing[index] = marks.sum(axis=0)
    return differing


def _split_resamples(resampled: Array, pairs: int, block_size: int) -> list[Array]:
    step = max(1, block_size // max(1, pairs))
    return [resampled[start : start + step] for start in range(0, len(resampled), step)]


def _standard_errors(
    resampled: Array, first: Array, second: Array, law: DifferenceLaw | None = None
) -> Array:
    """Return the standard errors of pairs: known ones, or those of resamples."""
    if law is not None:
        return np.nan_to_num(law.errors[first, second])
    covariance = np.atleast_2d(np.cov(resampled, rowvar=False))
    own = np.diag(covariance)
    return np.sqrt(np.maximum(own[first] + own[second] - 2.0 * covariance[first, second], 0.0))


def _standardise_difference(difference: Array, error: Array) -> Array:
    """Return difference / error; without an error any difference is infinitely large."""
    sure = np.where(difference > NOISE_LEVEL, np.inf, 0.0)
    return np.divide(difference, error, out=sure, where=error > 0)


def _count_exceedances(
    blocks: list[Array],
    first: Array,
    second: Array,
    value: Array,
    error: Array,
    statistic: Array,
    order: Array,
) -> tuple[Array, Array, Array]:
    """Return how often resamples reach the statistic of each pair: alone, and stepping down.

    Stepping down, a pair competes with all pairs of smaller statistics. The last value is the
    largest statistic of each resample.
    """
    alone, stepped = np.zeros(len(value)), np.zeros(len(value))
    largest = []
    for part in blocks:
        away = np.abs(part[:, first] - part[:, second] - value)
        away = np.divide(away, error, out=np.zeros_like(away), where=error > 0)
        alone += (away >= statistic - TIE_TOLERANCE).sum(axis=0)
        rest = np.maximum.accumulate(away[:, order[::-1]], axis=1)[:, ::-1]
        stepped += (rest >= statistic[order] - TIE_TOLERANCE).sum(axis=0)
        largest.append(rest[:, 0] if len(value) else np.zeros(len(part)))
    return alone, stepped, np.concatenate(largest)


# --- ranks ---------------------------------------------------------------------------------------


def rank_systems(merits: Array) -> Array:
    """Return the rank of each system, 1 for the best; equal systems share the better rank.

    >>> rank_systems(np.array([0.7, 0.9, 0.7])).tolist()
    [2, 1, 2]
    """
    systems = merits.shape[-1]
    # a system is behind those that sort after its own merit and the tolerance
    both = np.concatenate([merits, merits + TIE_TOLERANCE], axis=-1)
    order = np.argsort(both, axis=-1, kind="stable")
    no_better = np.cumsum(order < systems, axis=-1)
    ranks = np.empty(both.shape, np.int64)
    np.put_along_axis(ranks, order, systems + 1 - no_better, axis=-1)
    return ranks[..., systems:]


def compute_rank_shares(merits: Array, *, block_size: int = LARGE_BLOCK_SIZE) -> Array:
    """Return how often each system [S] had each rank [S] in resamples [B, S]."""
    systems = merits.shape[1]

    def count_ranks(part: Array) -> Array:
        place = np.arange(systems) * systems + rank_systems(part) - 1
        return np.bincount(place.reshape(-1), minlength=systems**2).reshape(systems, systems)

    counts = map_on_cores(count_ranks, _split_resamples(merits, systems, block_size))
    return np.asarray(sum(counts) / len(merits))


def compute_rank_intervals(apart: Array, better: Array) -> tuple[Array, Array]:
    """Return 1 + how many are significantly better, and S - how many are significantly worse."""
    low = 1 + (apart & better.T).sum(axis=1)
    return low, len(apart) - (apart & better).sum(axis=1)


def list_pairs(systems: int) -> tuple[Array, Array]:
    """Return the indices of all pairs of systems."""
    return np.triu_indices(systems, 1)


def max_t_statistic(values: Array, resampled: Array, law: DifferenceLaw | None = None) -> Array:
    """Return the largest statistic of each resample over all pairs of systems.

    It needs no list of pairs, and so serves hundreds of systems.
    """
    systems = len(values)
    error = np.zeros((systems, systems))
    error[list_pairs(systems)] = _standard_errors(resampled, *list_pairs(systems), law)
    noise = NOISE_LEVEL if law is None else 0.0
    scale = np.divide(1.0, error, out=np.zeros_like(error), where=error > noise)
    scale += scale.T
    largest_scale = scale.max(axis=1)

    def find_widest(away: Array) -> Array:
        lowest, highest = away.argmin(axis=1), away.argmax(axis=1)
        rows = np.arange(len(away))
        low, high = away[rows, lowest], away[rows, highest]
        widest = (high - low) * scale[lowest, highest]
        # no pair of a system has a larger statistic than this
        most = np.maximum(away - low[:, None], high[:, None] - away) * largest_scale
        for index in range(systems - 1):
            rows = np.flatnonzero(most[:, index] > widest)
            statistic = np.abs(away[rows, index, None] - away[rows, index + 1 :])
            statistic *= scale[index, index + 1 :]
            widest[rows] = np.maximum(widest[rows], statistic.max(axis=1))
        return widest

    blocks = _split_resamples(resampled - values, systems, CACHED_NUMBERS)
    return np.concatenate(map_on_cores(find_widest, blocks))


def compute_max_t_p_values(values: Array, resampled: Array, widest: Array) -> Array:
    """Return the p-values of all pairs, as `list_pairs` has them, adjusted by max-T in one step.

    `widest` [B] is the largest statistic of each resample.
    """
    first, second = list_pairs(len(values))
    spread = _standard_errors(resampled, first, second)
    statistic = _standardise_difference(
        np.abs(values[first] - values[second]), np.where(spread > NOISE_LEVEL, spread, 0.0)
    )
    ranked = np.sort(widest)
    exceeded = len(ranked) - np.searchsorted(ranked, statistic - TIE_TOLERANCE)
    return np.asarray((exceeded + 1.0) / (len(ranked) + 1.0))
