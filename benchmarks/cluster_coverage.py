"""How often nominal 95 % intervals cover the truth where items come in clusters.

    python benchmarks/cluster_coverage.py --write FILE    the study, about forty minutes on a core
    python benchmarks/cluster_coverage.py --quick         a smoke test

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from interval_coverage import (
    ENOUGH,
    FLAT,
    LEVEL,
    POOR,
    Result,
    Verdict,
    empty,
    family,
    pick,
    scatter,
    steepness,
    verdict,
    whole,
)
from interval_coverage import METRICS as FIRST_METRICS
from ordinate.inference.bootstrap import percentile_interval
from ordinate.inference.clusters import (
    LevelTrials,
    delete_each_cluster,
    jackknife_error,
    list_level_trials,
    mover_of_clusters,
    worst_of_clusters,
)
from ordinate.inference.confidence_intervals import FEWEST_DEFINED_SHARE, compute_attainable_range
from ordinate.inference.delta_method import compute_bounded_interval, compute_influence
from ordinate.inference.resampling import Resampling, resample_clusters, resample_metrics
from ordinate.inference.small_samples import (
    make_posterior_sampler,
    scale_to_effective_size,
    wilson_interval,
)
from ordinate.metrics import Metric, find_metric
from ordinate.summaries import ConfusionMatrix
from writing import markdown, wrapped

Array = NDArray[Any]
Ends = tuple[Array, Array]  # lower and upper bounds [R]
SEED = 1_000
TAIL = (1.0 + LEVEL) / 2.0
METRICS = (*FIRST_METRICS, find_metric("linear_kappa"))
COMPOSITION = 0.2  # latent correlation of the gold levels of a cluster
LIKENESS = 0.5  # latent correlation of the errors of two systems
LINEARISED = 300  # replicates of the linearised method, which takes them one by one
BLOCK = 400_000  # items drawn at once
CELLS = 4_000_000  # cells of resampled matrices held at once
HELD = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20)  # clusters with the rarest level: strata begin here


# --- the design, fixed before the study was run --------------------------------------------------


class Design(NamedTuple):
    """A cell of the design.

    So many clusters of so many items on average, of these sizes; so many levels; gold shares that
    fall from the first level to the last by this ratio; the latent correlation of errors in a
    cluster, and what its items share: how severely, or how badly, they are graded.
    """

    clusters: int = 20
    items: int = 10
    sizes: str = "equal"
    levels: int = 5
    ratio: int = 20
    correlation: float = 0.3
    shared: str = "severity"


def designs() -> list[Design]:
    """Return the cells: the centre, one factor at a time, corners, and the cells that failed."""
    centre = Design()
    cells = [
        centre,
        *(centre._replace(clusters=count) for count in (5, 10, 40, 100, 200)),
        *(centre._replace(sizes=sizes) for sizes in ("unequal", "a third")),
        *(centre._replace(levels=levels) for levels in (3, 10)),
        *(centre._replace(ratio=ratio) for ratio in (1, 100)),
        *(centre._replace(correlation=correlation) for correlation in (0.0, 0.6)),
        *(centre._replace(items=items) for items in (3, 30)),
        centre._replace(shared="difficulty"),
    ]
    corners = product((10, 100), ("equal", "a third"), (3, 10), (1, 100))
    for index, (count, sizes, levels, ratio) in enumerate(corners):
        strong = bin(index).count("1") % 2  # half of the cross of five factors
        shared = ("severity", "difficulty")[index % 2]
        cells.append(Design(count, 10, sizes, levels, ratio, 0.6 * strong, shared))
    cells += [Design(100, 10, "equal", 5, 1, rho, "difficulty") for rho in (0.0, 0.3, 0.6)]
    cells += [Design(count, 5, "equal", 5, 20, 0.4, "difficulty") for count in (10, 20, 29, 40)]
    cells += [Design(count, 10, "unequal", 5, 1, 0.3, "difficulty") for count in (10, 40)]
    return sorted(dict.fromkeys(cells), key=lambda cell: (-cell.levels, -cell.clusters))


def quick_designs() -> list[Design]:
    """Return two cells for a smoke test."""
    return [Design(clusters=10, levels=3), Design(clusters=12, sizes="a third", ratio=1)]


def cluster_sizes(design: Design) -> Array:
    """Return the number of items of each cluster."""
    count, total = design.clusters, design.clusters * design.items
    if design.sizes == "equal":
        return np.full(count, design.items)
    if design.sizes == "a third":
        rest = total - round(total / 3)
        return np.array([round(total / 3), *map(len, np.array_split(np.arange(rest), count - 1))])
    spread = np.exp(0.8 * ndtri((np.arange(count) + 0.5) / count))  # log-normal quantiles
    return np.maximum(1, np.rint(spread / spread.sum() * total)).astype(int)


# --- the populations -----------------------------------------------------------------------------


def gold_shares(design: Design) -> Array:
    """Return the share of each level, the first the commonest."""
    shares = design.ratio ** (-np.arange(design.levels) / (design.levels - 1))
    return shares / shares.sum()


def truths(design: Design) -> dict[str, float]:
    """Return each metric of the population, whose table is known: clusters change no margin."""
    base = empty(design.levels)
    cells = gold_shares(design)[:, None] * scatter(design.levels, steepness(design.levels))
    population = base.with_cells(cells * 1e9)
    return {m.name: float(m.compute_from_expected(population, base)) for m in METRICS}


def samples(design: Design, replicates: int) -> Iterator[tuple[Array, Array]]:
    """Return the clusters [R, G, K, K + 1] of two equal systems, block by block."""
    rng = np.random.default_rng([SEED, *map(ord, repr(tuple(design)))])
    sizes = cluster_sizes(design)
    step = max(1, BLOCK // int(sizes.sum()))
    for start in range(0, replicates, step):
        yield draw_systems(design, sizes, min(step, replicates - start), rng)


def draw_systems(design: Design, sizes: Array, count: int, rng: Any) -> tuple[Array, Array]:
    """Return the clusters of two systems in so many replicates.

    Levels and errors are quantiles of normal variables that items of a cluster have in common to
    a part, so that each item has the distribution of the population.
    """
    cluster = np.repeat(np.arange(len(sizes)), sizes)

    def correlate(correlation: float) -> Array:
        common = rng.standard_normal((count, len(sizes)))[:, cluster]
        own = rng.standard_normal((count, len(cluster)))
        return math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own

    cuts = ndtri(np.cumsum(gold_shares(design))[:-1])
    gold = np.searchsorted(cuts, correlate(COMPOSITION))
    both = correlate(design.correlation)
    tables = []
    for _ in range(2):
        own = correlate(design.correlation)
        error = math.sqrt(LIKENESS) * both + math.sqrt(1.0 - LIKENESS) * own
        predicted = predict(design, gold, error, rng)
        tables.append(count_clusters(design, cluster, len(sizes), gold, predicted))
    return tables[0], tables[1]


def predict(design: Design, gold: Array, error: Array, rng: Any) -> Array:
    """Return predictions: errors decide on the level, or on the distance, with a coin for the side."""
    chances = scatter(design.levels, steepness(design.levels))
    if design.shared == "severity":
        return take_quantile(chances, gold, error)
    level = np.arange(design.levels)
    up, down = np.zeros_like(chances), np.zeros_like(chances)  # by level and distance
    for distance in level:
        up[: design.levels - distance, distance] = np.diagonal(chances, distance)
        down[distance:, distance] = np.diagonal(chances, -distance)
    down[:, 0] = 0.0
    distance = take_quantile(up + down, gold, error)
    upwards = np.divide(up, up + down, out=np.zeros_like(up), where=up > 0)[gold, distance]
    return gold + np.where(rng.random(gold.shape) < upwards, distance, -distance)


def take_quantile(chances: Array, gold: Array, error: Array) -> Array:
    """Return the quantile of each gold level's distribution at a normal variable."""
    cuts = ndtri(np.minimum(np.cumsum(chances, axis=1)[:, :-1], 1.0))
    return sum((error > cut[gold]).astype(int) for cut in cuts.T)


def count_clusters(
    design: Design, cluster: Array, clusters: int, gold: Array, predicted: Array
) -> Array:
    """Return the confusion matrices [R, G, K, K + 1] of the clusters of each replicate."""
    shape = (len(gold), clusters, design.levels, design.levels + 1)
    key = np.ravel_multi_index(
        (np.arange(len(gold))[:, None] + 0 * cluster, cluster + 0 * gold, gold, predicted), shape
    )
    return np.bincount(key.reshape(-1), minlength=math.prod(shape)).reshape(shape).astype(float)


# --- the intervals of many samples at once -------------------------------------------------------


class Sample(NamedTuple):
    """A metric, or a difference, in all replicates of a block.

    `value` [R], `without` [R, G] each cluster, `resampled` [R, B] with clusters drawn `times`
    [B, G], `clusters` the tables (none for a difference), `bounds` those of the metric.
    """

    value: Array
    without: Array
    resampled: Array
    times: Array
    clusters: ConfusionMatrix | None
    bounds: tuple[float, float]
    sizes: Array

    @property
    def freedom(self) -> int:
        """The degrees of freedom of Student's variable."""
        return self.without.shape[1] - 1


def reach_bounds(sample: Sample, error: Array, reach: float, centre: Array | None = None) -> Ends:
    """Return the interval so many errors around the values, on a scale without bounds."""
    low, high = sample.bounds
    centre = sample.value if centre is None else np.clip(centre, low, high)
    ends = [
        compute_bounded_interval(value, spread, sample.bounds, reach)
        if spread >= FLAT and low + FLAT < value < high - FLAT
        else (value, value if spread >= 0 else math.nan)
        for value, spread in zip(centre.tolist(), error.tolist(), strict=True)
    ]
    return tuple(np.array(ends).reshape(-1, 2).T)  # type: ignore[return-value]


def by_jackknife(sample: Sample) -> Ends:
    """Delete-one-cluster jackknife, Student's t with a degree less than there are clusters."""
    error = jackknife_error(sample.value, sample.without)
    return reach_bounds(sample, error, stdtrit(sample.freedom, TAIL))


def by_effective_jackknife(sample: Sample) -> Ends:
    """The same, with as many degrees as equal clusters of the same sum of squared sizes have."""
    effective = sample.sizes.sum() ** 2 / (sample.sizes**2).sum()
    error = jackknife_error(sample.value, sample.without)
    return reach_bounds(sample, error, stdtrit(effective - 1.0, TAIL))


def by_unbiased_jackknife(sample: Sample) -> Ends:
    """The jackknife around its value without bias, enclosing the value."""
    count = sample.freedom + 1
    centre = count * sample.value - sample.freedom * np.nanmean(sample.without, axis=1)
    error = jackknife_error(sample.value, sample.without)
    low, high = reach_bounds(sample, error, stdtrit(sample.freedom, TAIL), centre)
    return np.minimum(low, sample.value), np.maximum(high, sample.value)


def take_quantiles(ordered: Array, shares: Array) -> Array:
    """Return quantiles of sorted values [R, B], undefined ones last; nan where these are most."""
    defined = (~np.isnan(ordered)).sum(axis=1)
    place = np.clip(shares, 0.0, 1.0) * np.maximum(defined - 1, 0)
    place = np.where(np.isnan(place), 0.0, place)
    left = np.floor(place).astype(int)
    right = np.minimum(left + 1, np.maximum(defined - 1, 0))
    rows = np.arange(len(ordered))
    found = ordered[rows, left] + (place - left) * (ordered[rows, right] - ordered[rows, left])
    few = defined < FEWEST_DEFINED_SHARE * ordered.shape[1]
    return np.where(few | np.isnan(shares + 0.0 * place), np.nan, found)


def by_percentile(sample: Sample, ordered: Array) -> Ends:
    """The percentile bootstrap of clusters."""
    low, high = (take_quantiles(ordered, np.full(len(ordered), s)) for s in (1 - TAIL, TAIL))
    return low, high


def by_percentile_t(sample: Sample, ordered: Array) -> Ends:
    """Percentiles at the tails of Student's t, and for the variance of a sample of clusters."""
    count = sample.freedom + 1
    tail = ndtr(math.sqrt(count / sample.freedom) * stdtrit(sample.freedom, TAIL))
    low, high = (take_quantiles(ordered, np.full(len(ordered), s)) for s in (1 - tail, tail))
    return low, high


def by_bca(sample: Sample, ordered: Array) -> Ends:
    """BCa with the acceleration from deleting clusters; percentile where it is undefined."""
    value = sample.value[:, None]
    tied = np.isclose(ordered, value, rtol=1e-12, atol=1e-12)
    defined = np.maximum((~np.isnan(ordered)).sum(axis=1), 1)
    below = (((ordered < value) & ~tied).sum(axis=1) + tied.sum(axis=1) / 2.0) / defined
    pull = np.nanmean(sample.without, axis=1, keepdims=True) - sample.without
    spread = np.nansum(pull**2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = np.nansum(pull**3, axis=1) / (6.0 * spread**1.5)
        shift, ends = ndtri(below), []
        for tail in (1 - TAIL, TAIL):
            reach = shift + ndtri(tail)
            share = ndtr(shift + reach / (1.0 - acceleration * reach))
            share = np.where((acceleration * reach < 1.0) & (0 < below) & (below < 1), share, np.nan)
            ends.append(take_quantiles(ordered, share))
    low, high = by_percentile(sample, ordered)
    undefined = np.isnan(ends[0]) | np.isnan(ends[1]) | ((ends[1] - ends[0] < FLAT) & (high > low))
    return (
        np.where(undefined, np.minimum(low, sample.value), ends[0]),
        np.where(undefined, np.maximum(high, sample.value), ends[1]),
    )


def by_studentised(sample: Sample) -> Ends:
    """Studentised bootstrap; the errors of resamples come from the deletions in the sample."""
    pulls = np.nan_to_num(sample.value[:, None] - sample.without)
    count = sample.freedom + 1
    first, second = pulls @ sample.times.T / count, pulls**2 @ sample.times.T
    spread = np.sqrt(np.maximum((second - count * first**2) * (count - 1) / count, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = to_unbounded(sample.resampled, sample.bounds)
        moved -= to_unbounded(sample.value, sample.bounds)[:, None]
        scale = spread * unbounded_slope(sample.resampled, sample.bounds)
        ratio = np.where(scale > FLAT, moved / scale, np.nan)
    ordered = np.sort(np.where(np.isfinite(ratio), ratio, np.nan), axis=1)
    low, high = by_percentile(sample, ordered)
    error = jackknife_error(sample.value, sample.without)
    middle = to_unbounded(sample.value, sample.bounds)
    with np.errstate(invalid="ignore"):
        step = error * unbounded_slope(sample.value, sample.bounds)
        ends = [from_unbounded(middle - end * step, sample.bounds) for end in (high, low)]
    flat = ~(error >= FLAT) | ~np.isfinite(middle)
    return tuple(np.where(flat, sample.value, end) for end in ends)  # type: ignore[return-value]


# The scale without bounds, as the package has it for one value at a time.


def to_unbounded(value: Array, bounds: tuple[float, float]) -> Array:
    """Return the logit, the logarithm or the value itself."""
    low, high = bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        above = 0.0 if math.isinf(low) else np.log(value - low)
        below = 0.0 if math.isinf(high) else np.log(high - value)
        return value.copy() if math.isinf(low) and math.isinf(high) else above - below


def unbounded_slope(value: Array, bounds: tuple[float, float]) -> Array:
    """Return the derivative of that scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = [1.0 / np.abs(value - end) for end in bounds if math.isfinite(end)]
    return sum(slopes[1:], slopes[0]) if slopes else np.ones_like(value)


def from_unbounded(point: Array, bounds: tuple[float, float]) -> Array:
    """Return the value of a point on that scale."""
    low, high = bounds
    with np.errstate(over="ignore"):
        if math.isinf(low) and math.isinf(high):
            return point
        if math.isinf(high):
            return low + np.exp(point)
        if math.isinf(low):
            return high - np.exp(-point)
        return low + (high - low) / (1.0 + np.exp(-point))


# --- methods for shares and levels ---------------------------------------------------------------


def by_levels(metric: Metric, sample: Sample, *, pooled: bool = False) -> Ends:
    """Wilson's bounds of levels at deflated sizes with Student's t; `pooled`: by the plain D."""
    assert sample.clusters is not None
    trials = list_level_trials(metric, sample.clusters)
    assert trials is not None
    effect = pooled_design_effect(trials) if pooled else None
    if metric.macro == "worst":
        tail = (1.0 + LEVEL ** (1.0 / trials.levels)) / 2.0
        return worst_of_clusters(trials, stdtrit(sample.freedom, tail), metric.direction, effect)
    reach = np.full(len(sample.value), stdtrit(sample.freedom, TAIL))
    return mover_of_clusters(trials, reach, effect)


def enclose(first: Ends, second: Ends) -> Ends:
    """Return the outer bounds of two methods."""
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])


def pooled_design_effect(trials: LevelTrials) -> Array:
    """Return D from the sums of residuals within clusters and levels, one level beside another."""
    cells, costs = trials.cells, trials.costs
    pooled, count = cells.sum(axis=-3), cells.shape[-3]
    n = pooled.sum(axis=-1)
    residual = costs - ((pooled * costs).sum(axis=-1) / np.where(n > 0, n, 1.0))[..., None]
    sums = (cells * residual[..., None, :, :]).sum(axis=-1)
    alone = (pooled * residual**2).sum(axis=(-2, -1))
    inflated = count / (count - 1.0) * (sums**2).sum(axis=(-2, -1))
    ratio = np.maximum(1.0, inflated / np.where(alone > 0, alone, 1.0))
    return np.where(alone > 0, ratio, n.sum(axis=-1) / count)


def has_trials(metric: Metric) -> bool:
    """Tell whether a metric is made of shares of levels."""
    return metric.share or metric.macro is not None


# --- one cell of the design ----------------------------------------------------------------------


class Row(NamedTuple):
    """What one method did for one metric, or its difference, in one cell of the design.

    `strata` counts replicates and those that are covered: by the number of clusters with the
    rarest gold level (from each of `HELD` on), and last those without some level in gold.
    """

    clusters: int
    items: int
    sizes: str
    levels: int
    ratio: int
    correlation: float
    shared: str
    kind: str
    metric: str
    method: str
    replicates: int
    truth: float
    coverage: float
    left: float
    right: float
    mean_width: float
    median_width: float
    undefined: float
    nowhere: float
    flat: float
    held: float
    error_icc: float
    distance_icc: float
    strata: list[list[int]]

    @property
    def design(self) -> Design:
        """The cell of the design."""
        return Design(*self[:7])


Bounds = dict[tuple[str, str, str], list[Ends]]  # by kind, metric and method


def study(design: Design, replicates: int, resamples: int) -> list[Row]:
    """Simulate a cell of the design."""
    bounds: Bounds = {}
    facts = []
    times = resample_clusters(np.random.default_rng([SEED, 0]), design.clusters, resamples)
    for tables in samples(design, replicates):
        facts.append(describe_samples(tables[0]))
        left = max(0, LINEARISED - sum(len(each.stratum) for each in facts[:-1]))
        for key, ends in block_intervals(design, tables, times, left):
            bounds.setdefault(key, []).append(ends)
    return make_rows(design, replicates, bounds, facts)


class Facts(NamedTuple):
    """Of a block of samples: the stratum of each, clusters with each level, and what alike means."""

    stratum: Array
    held: Array
    moments: Array  # [2, 2]: of errors and distances, the products within clusters and the squares


def describe_samples(tables: Array) -> Facts:
    """Return what a report could know of each sample, and how alike errors in clusters are."""
    gold = tables.sum(axis=-1)
    holding, there = (gold > 0).sum(axis=1), gold.sum(axis=1) > 0
    rarest = np.where(there, holding, 10**9).min(axis=1)
    stratum = np.searchsorted(HELD, rarest, side="right") - 1
    stratum = np.where(there.all(axis=1), stratum, len(HELD))
    step = np.arange(tables.shape[-1]) - np.arange(tables.shape[-2])[:, None]
    moments = []
    for cost in (step, np.abs(step)):
        mean = (tables * cost).sum() / tables.sum()
        sums = (tables * (cost - mean)).sum(axis=(-2, -1))
        squares = (tables * (cost - mean) ** 2).sum(axis=(-2, -1))
        n = gold.sum(axis=-1)
        pairs = (n * (n - 1)).sum()
        moments.append([(sums**2 - squares).sum() / pairs, squares.sum() / n.sum()])
    return Facts(stratum, holding.mean(axis=0), np.array(moments))


def block_intervals(
    design: Design, tables: tuple[Array, Array], times: Array, linearised: int
) -> Iterator[tuple[tuple[str, str, str], Ends]]:
    """Return the intervals of each metric by each method, and those of its difference."""
    base, sizes = empty(design.levels), cluster_sizes(design)
    clusters = [base.with_cells(cells) for cells in tables]
    resampled = resample_all(base, tables, times)
    for metric in METRICS:
        found = []
        for system, drawn in zip(clusters, resampled, strict=True):
            pooled = base.with_cells(system.weights.sum(axis=1))
            value = np.asarray(metric.compute_from_expected(pooled, base))
            found.append((value, delete_each_cluster(metric, system), drawn[metric.name]))
        first, second = found
        value = Sample(*first, times, clusters[0], metric.bounds, sizes)
        unbounded = (-math.inf, math.inf)
        apart = [a - b for a, b in zip(first, second, strict=True)]
        difference = Sample(apart[0], apart[1], apart[2], times, None, unbounded, sizes)
        lowest, highest = compute_attainable_range(metric, base)
        spare = Fallback(metric, clusters[0])
        for method, ends in intervals(metric, value, clusters, linearised):
            low, high = (np.clip(end, lowest, highest) for end in ends)
            yield ("value", metric.name, method), spare.widen(low, high, value.value)
        for method, ends in intervals(metric, difference, clusters, linearised):
            yield ("difference", metric.name, method), ends


def resample_all(
    base: ConfusionMatrix, tables: tuple[Array, Array], times: Array
) -> list[dict[str, Array]]:
    """Return each metric [R, B] of each system on clusters that are drawn for both."""
    found = []
    for cells in tables:
        count, _, size, columns = cells.shape
        flat = cells.reshape(count, cells.shape[1], -1)
        step = max(1, CELLS // (len(times) * flat.shape[-1]))
        parts: dict[str, list[Array]] = {metric.name: [] for metric in METRICS}
        for start in range(0, count, step):
            drawn = np.matmul(times, flat[start : start + step])
            matrices = base.with_cells(drawn.reshape(-1, size, columns))
            for metric in METRICS:
                values = metric.compute_from_expected(matrices, base)
                parts[metric.name].append(np.asarray(values).reshape(-1, len(times)))
        found.append({name: np.concatenate(values) for name, values in parts.items()})
    return found


def intervals(
    metric: Metric, sample: Sample, clusters: Sequence[ConfusionMatrix], linearised: int
) -> Iterator[tuple[str, Ends]]:
    """Return the bounds by every method that fits."""
    yield "jackknife", by_jackknife(sample)
    yield "jackknife-e", by_effective_jackknife(sample)
    ordered = np.sort(sample.resampled, axis=1)
    yield "percentile", by_percentile(sample, ordered)
    yield "percentile-t", by_percentile_t(sample, ordered)
    yield "bca", by_bca(sample, ordered)
    yield "studentised", by_studentised(sample)
    if metric.smooth:
        yield "t", by_linearisation(metric, sample, clusters, linearised)
    if sample.clusters is not None:
        yield "jackknife-u", by_unbiased_jackknife(sample)
        if has_trials(metric):
            yield "mover", (ends := by_levels(metric, sample))
            yield "outer", enclose(by_jackknife(sample), ends)
            yield "mover-p", by_levels(metric, sample, pooled=True)


def by_linearisation(
    metric: Metric, sample: Sample, clusters: Sequence[ConfusionMatrix], count: int
) -> Ends:
    """Student's t with the error of the clusters' sums of influence; of the first replicates."""
    count = min(count, len(sample.value))
    systems = clusters[:1] if sample.clusters is not None else clusters
    errors = []
    for index in range(count):
        pulls = 0.0
        for sign, system in zip((1.0, -1.0), systems, strict=False):
            cells = system.weights[index]
            pooled = system.with_cells(cells.sum(axis=0))
            pull = (cells * compute_influence(metric, pooled)).sum(axis=(-2, -1)) / cells.sum()
            pulls = pulls + sign * pull
        size = len(pulls)
        errors.append(math.sqrt(size / (size - 1) * ((pulls - pulls.mean()) ** 2).sum()))
    part = sample._replace(value=sample.value[:count])
    return reach_bounds(part, np.array(errors), stdtrit(sample.freedom, TAIL))


class Fallback:
    """Intervals for samples in which a method gives no width: those of the package."""

    def __init__(self, metric: Metric, clusters: ConfusionMatrix) -> None:
        self.metric, self.clusters = metric, clusters
        self.known: dict[int, tuple[float, float]] = {}

    def widen(self, low: Array, high: Array, value: Array) -> Ends:
        """Return the bounds with those of degenerate samples replaced, and these marked."""
        low, high = low.copy(), high.copy()
        for index in np.flatnonzero(high - low < FLAT):
            if index not in self.known:
                self.known[index] = self.compute(int(index), float(value[index]))
            low[index], high[index] = self.known[index]
        return low, high

    def compute(self, index: int, value: float) -> tuple[float, float]:
        """Return Wilson's interval of a share, or that of the posterior, a cluster as one item."""
        clusters = self.clusters.with_cells(self.clusters.weights[index])
        if self.metric.share:
            n = float(len(clusters.weights))
            low, high = wilson_interval(value * n, n, LEVEL)
            return float(low), float(high)
        matrix = scale_to_effective_size(clusters)
        sampler = make_posterior_sampler(matrix)
        drawn = resample_metrics([self.metric], matrix, sampler, Resampling(200, 0))
        values = drawn[self.metric.expression]
        values = values[~np.isnan(values)]
        if not len(values):
            return math.nan, math.nan
        low, high = percentile_interval(values, LEVEL)
        return min(low, value), max(high, value)


def make_rows(
    design: Design, replicates: int, bounds: Bounds, facts: Sequence[Facts]
) -> list[Row]:
    """Return what each method did."""
    truth = truths(design)
    strata = np.concatenate([each.stratum for each in facts])
    held = float(np.mean([each.held for each in facts], axis=0).min())
    moments = np.mean([each.moments for each in facts], axis=0)
    icc = (moments[:, 0] / moments[:, 1]).tolist()
    rows = []
    for (kind, name, method), parts in bounds.items():
        low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        target = truth[name] if kind == "value" else 0.0
        measures, counts = measure(target, low, high, strata[: len(low)])
        rows.append(
            Row(*design, kind, name, method, len(low), target, *measures, held, *icc, counts)
        )
    return rows


def measure(
    truth: float, low: Array, high: Array, strata: Array
) -> tuple[list[float], list[list[int]]]:
    """Return coverage, misses, widths and shares without intervals, and coverage by stratum."""
    known = ~(np.isnan(low) | np.isnan(high))
    nowhere = 1.0 - known.mean()
    low, high, strata = low[known], high[known], strata[known]
    if not len(low):
        return [math.nan] * 5 + [0.0, nowhere, math.nan], []
    left, right, width = truth < low - FLAT, truth > high + FLAT, high - low
    inside = ~(left | right)
    size = len(HELD) + 1
    counts = [np.bincount(strata, some, size) for some in (np.ones(len(low)), inside.astype(float))]
    means = [inside.mean(), left.mean(), right.mean(), width.mean(), np.median(width)]
    shares = [0.0, nowhere, (width <= FLAT).mean()]
    return [float(x) for x in (*means, *shares)], np.array(counts, int).tolist()


def main() -> None:
    """Simulate what is missing, print the page, and write it where asked to."""
    options = parse_options("Study intervals of clusters.", "cluster-coverage", resamples=400)
    work = partial(study, replicates=options.replicates, resamples=options.resamples)
    cells = quick_designs() if options.quick else designs()
    rows = simulate(cells, work, Row, options)


if __name__ == "__main__":
    main()
