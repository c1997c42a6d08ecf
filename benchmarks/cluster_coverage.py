"""How often nominal 95 % intervals cover the truth where items come in clusters.

    python benchmarks/cluster_coverage.py --write FILE    the study, about forty minutes on a core
    python benchmarks/cluster_coverage.py --quick         a smoke test

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from cluster_intervals import (
    TAIL,
    Array,
    Ends,
    Sample,
    by_bca,
    by_effective_jackknife,
    by_jackknife,
    by_levels,
    by_percentile,
    by_percentile_t,
    by_studentised,
    by_unbiased_jackknife,
    enclose,
    has_trials,
    reach_bounds,
)
from interval_coverage import (
    DEFAULT,
    ENOUGH,
    FAMILIES,
    FLAT,
    LARGE,
    LEVEL,
    METRICS,
    POOR,
    Result,
    Verdict,
    add_warnings,
    empty,
    family,
    find_misses,
    performance,
    pick,
    scatter,
    steepness,
    verdict,
    whole,
)
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.bootstrap import percentile_interval
from ordinate.inference.clusters import (
    ALWAYS_DOUBTFUL,
    FEWEST_HOLDING,
    LARGEST_SHARE,
    delete_each_cluster,
    depends_on_rare_levels,
    is_biased,
)
from ordinate.inference.confidence_intervals import compute_attainable_range
from ordinate.inference.delta_method import compute_influence
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.inference.interval_methods import choose_cluster_method
from ordinate.inference.resampling import Resampling, resample_clusters, resample_metrics
from ordinate.inference.small_samples import (
    RARE_ITEMS,
    make_posterior_sampler,
    scale_to_effective_size,
    wilson_interval,
)
from ordinate.metrics import Metric, find_metric
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.summaries import ConfusionMatrix
from writing import markdown, wrapped

SEED = 1_000
COMPOSITION = 0.2  # latent correlation of the gold levels of a cluster
LIKENESS = 0.5  # latent correlation of the errors of two systems
BOOTSTRAPPED, LINEARISED = 1_000, 200  # the first replicates get the methods that take longer
BLOCK = 400_000  # items drawn at once
CELLS = 4_000_000  # cells of resampled matrices held at once
PROMISED = 0.9  # of the cases that are expected to hold
MOST = 0.95  # of the reports must warn where coverage is poor
HELD = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20)  # clusters with the rarest level: strata begin here


# --- the design, fixed before the study was run --------------------------------------------------


class Design(NamedTuple):
    """A cell of the design.

    So many clusters of so many items on average, of these sizes; so many levels; gold shares that
    fall from the first level to the last by this ratio; the latent correlation of errors in a
    cluster, and what its items share: how severely, or how badly, they are graded. Without
    clusters there are so many items in all.
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
        strong = index.bit_count() % 2  # half of the cross of five factors
        shared = ("severity", "difficulty")[index % 2]
        cells.append(Design(count, 10, sizes, levels, ratio, 0.6 * strong, shared))
    cells += [Design(100, 10, "equal", 5, 1, rho, "difficulty") for rho in (0.0, 0.3, 0.6)]
    cells += [Design(count, 5, "equal", 5, 20, 0.4, "difficulty") for count in (10, 20, 29, 40)]
    cells += [Design(count, 10, "unequal", 5, 1, 0.3, "difficulty") for count in (10, 40)]
    return sorted(dict.fromkeys(cells), key=lambda cell: (-cell.levels, -cell.clusters))


def item_designs() -> list[Design]:
    """Return cells without clusters, from the first study, for what the package promises."""
    cells = product((50, 200, 1_000, 5_000), (3, 5, 7), (1, 100))
    return [Design(0, items, "none", levels, ratio, 0.0, "none") for items, levels, ratio in cells]


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

    thresholds = ndtri(np.cumsum(gold_shares(design))[:-1])
    gold = np.searchsorted(thresholds, correlate(COMPOSITION))
    both = correlate(design.correlation)
    tables = []
    for _ in range(2):
        own = correlate(design.correlation)
        error = math.sqrt(LIKENESS) * both + math.sqrt(1.0 - LIKENESS) * own
        predicted = predict(design, gold, error, rng)
        tables.append(count_clusters(design, cluster, len(sizes), gold, predicted))
    return tables[0], tables[1]


def predict(design: Design, gold: Array, error: Array, rng: Any) -> Array:
    """Return predictions: errors decide on the level, or on the distance (a coin on the side)."""
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
    if not design.clusters:
        return study_items(design, replicates, resamples)
    bounds: Bounds = {}
    facts = []
    times = resample_clusters(np.random.default_rng([SEED, 0]), design.clusters, resamples)
    for tables in samples(design, replicates):
        facts.append(describe_samples(tables[0]))
        done = sum(len(each.stratum) for each in facts[:-1])
        for key, ends in block_intervals(design, tables, times, done):
            bounds.setdefault(key, []).append(ends)
    return make_rows(design, bounds, facts)


def study_items(design: Design, replicates: int, resamples: int) -> list[Row]:
    """Simulate what the package does without clusters; the strata: without a warning, and with."""
    rng = np.random.default_rng([SEED, *map(ord, repr(tuple(design)))])
    shares = gold_shares(design)[:, None] * scatter(design.levels, steepness(design.levels))
    tables = rng.multinomial(design.items, shares.reshape(-1), replicates).astype(float)
    metrics = [find_metric(name) for name in DEFAULT_METRICS]
    found: dict[str, list[Estimate]] = {metric.name: [] for metric in metrics}
    settings = ConfidenceIntervals(LEVEL, resamples=resamples)
    for cells in tables.reshape(-1, *shares.shape):
        matrix = empty(design.levels).with_cells(cells)
        for name, each in estimate_metrics(metrics, matrix, settings).items():
            found[name].append(each)
    truth, held = truths(design), design.items * float(gold_shares(design).min())
    gold = tables.reshape(-1, *shares.shape).sum(axis=-1)
    lacking = (gold == 0).any(axis=1).astype(int)  # which every report says
    rows = []
    for name, some in found.items():
        low, high = np.array([(each.low, each.high) for each in some]).T
        warned = np.array([bool(each.note) for each in some], int) | lacking
        measures, counts = measure(truth[name], low, high, warned)
        head = (*design, "value", name, DEFAULT, replicates, truth[name])
        rows.append(Row(*head, *measures, held, 0.0, 0.0, counts))
    return rows


class Facts(NamedTuple):
    """Of a block of samples: the stratum of each, clusters by level, how alike errors are."""

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
    design: Design, tables: tuple[Array, Array], times: Array, done: int
) -> Iterator[tuple[tuple[str, str, str], Ends]]:
    """Return the intervals of each metric by each method, and those of its difference."""
    base, sizes = empty(design.levels), cluster_sizes(design)
    clusters = [base.with_cells(cells) for cells in tables]
    resampled = resample_all(base, tables, times, max(0, BOOTSTRAPPED - done))
    linearised = max(0, LINEARISED - done)
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
    base: ConfusionMatrix, tables: tuple[Array, Array], times: Array, most: int
) -> list[dict[str, Array]]:
    """Return each metric [R, B] of each system on clusters that are drawn for both.

    Of at most so many replicates.
    """
    found = []
    for cells in (some[:most] for some in tables):
        count, _, size, columns = cells.shape
        flat = cells.reshape(count, cells.shape[1], size * columns)
        step = max(1, CELLS // (len(times) * flat.shape[-1]))
        parts: dict[str, list[Array]] = {metric.name: [] for metric in METRICS}
        for start in range(0, count, step):
            drawn = np.matmul(times, flat[start : start + step])
            matrices = base.with_cells(drawn.reshape(-1, size, columns))
            for metric in METRICS:
                values = metric.compute_from_expected(matrices, base)
                parts[metric.name].append(np.asarray(values).reshape(-1, len(times)))
        none = np.zeros((0, len(times)))
        found.append({name: np.concatenate([none, *values]) for name, values in parts.items()})
    return found


def intervals(
    metric: Metric, sample: Sample, clusters: Sequence[ConfusionMatrix], linearised: int
) -> Iterator[tuple[str, Ends]]:
    """Return the bounds by every method that fits."""
    yield "jackknife", by_jackknife(sample)
    yield "jackknife-e", by_effective_jackknife(sample)
    ordered = np.sort(sample.resampled, axis=1)
    part = sample.head(len(ordered))
    yield "percentile", by_percentile(ordered)
    yield "percentile-t", by_percentile_t(part, ordered)
    yield "bca", by_bca(part, ordered)
    yield "studentised", by_studentised(part)
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
    return reach_bounds(sample.head(count), np.array(errors), stdtrit(sample.freedom, TAIL))


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


def make_rows(design: Design, bounds: Bounds, facts: Sequence[Facts]) -> list[Row]:
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
    measures = performance(truth, np.stack([low, high], axis=1), len(low))
    known = ~(np.isnan(low) | np.isnan(high))
    if not known.any():
        return measures, []
    left, right = find_misses(truth, low[known], high[known])
    counts = [
        np.bincount(strata[known], some, len(HELD) + 1)
        for some in (np.ones(known.sum()), ~(left | right))
    ]
    return measures, np.array(counts, int).tolist()


# --- what follows from it ------------------------------------------------------------------------

BY_FORMULA = ("jackknife", "jackknife-e", "jackknife-u", "mover", "mover-p", "outer", "t")
KINDS = ("value", "difference")
OF_LEVELS = ("wilson", "mover", "simultaneous")  # what the package calls them


def default_of(kind: str, metric: Metric) -> str:
    """Return the method of the package, by its name here."""
    if kind == "difference":
        return "jackknife"
    method = choose_cluster_method(metric, empty(3).with_cells(np.eye(3)[None]))
    if method == "jackknife" and is_biased(metric):
        return "jackknife-u"
    return "mover" if method in OF_LEVELS else method


def related(rows: Iterable[Row]) -> list[Result]:
    """Return the rows that say something, with their widths beside percentile's."""
    rows = [row for row in rows if not math.isnan(row.coverage)]
    plain = {
        (row.design, row.kind, row.metric): row.mean_width
        for row in rows
        if row.method == "percentile"
    }
    found = []
    for row in rows:
        beside = plain.get((row.design, row.kind, row.metric), 0.0)
        width = row.mean_width / beside if beside > 0 else math.nan
        found.append(Result(row, family(find_metric(row.metric)), row.method, width))
    return found


def verdicts(found: Sequence[Result], kind: str, name: str) -> dict[str, Verdict]:
    """Return what the results say of the methods that every metric of a family has."""
    members = {metric.name for metric in METRICS if family(metric) == name}
    some = [each for each in found if each.row.kind == kind and each.family == name]
    by_method: dict[str, list[Result]] = {}
    for each in some:
        by_method.setdefault(each.method, []).append(each)
    return {
        method: verdict(results)
        for method, results in by_method.items()
        if {each.row.metric for each in results} == members
    }


def choose(found: Sequence[Result], kind: str, name: str) -> tuple[str, Verdict] | None:
    """Return the method that the rule picks for a family, of those that keep the promise."""
    known = verdicts(found, kind, name)
    kept = {
        method: each for method, each in known.items() if keeps_promise(found, kind, name, method)
    }
    if not known:
        return None
    method = pick(kept or known, BY_FORMULA)
    return method, known[method]


def keeps_promise(found: Sequence[Result], kind: str, name: str, method: str) -> bool:
    """Tell whether a method covers where it is expected to, and is poor only where reports warn."""
    rows = [
        each.row
        for each in found
        if (each.row.kind, each.family, each.method) == (kind, name, method)
    ]
    expected = [covers_enough(row) for row in rows if is_expected_to_hold(row)]
    silent = [row for row in rows if row.coverage < POOR and warned_share(row) < MOST]
    return sum(expected) >= PROMISED * len(expected) and not silent


def covers_enough(row: Row) -> bool:
    """Tell whether a coverage is what is required, less two Monte Carlo standard errors."""
    return row.coverage >= ENOUGH - 2.0 * standard_error(ENOUGH, row.replicates)


def defaults(rows: Iterable[Row], kind: str) -> dict[tuple[Design, str], Row]:
    """Return what the package does, by cell and metric."""
    usual = {metric.name: default_of(kind, metric) for metric in METRICS}
    return {
        (row.design, row.metric): row
        for row in rows
        if row.kind == kind and row.method in {usual[row.metric], DEFAULT}
    }


def largest_share(design: Design) -> float:
    """Return the share of the items in the largest cluster."""
    sizes = cluster_sizes(design)
    return float(sizes.max() / sizes.sum())


def is_expected_to_hold(row: Row) -> bool:
    """Tell whether a cell has enough of everything: what the package promises to cover."""
    if not row.clusters:
        return row.items >= LARGE and row.held >= RARE_ITEMS
    return (
        row.clusters * row.items >= LARGE
        and row.clusters >= VERY_FEW_CLUSTERS
        and largest_share(row.design) <= LARGEST_SHARE
        and row.held >= FEWEST_HOLDING
    )


def warned_share(row: Row) -> float:
    """Return the share of the replicates whose report warns, or has no interval."""
    if not row.clusters:
        return row.nowhere + (1.0 - row.nowhere) * row.strata[0][1] / sum(row.strata[0])
    if is_always_doubtful(row) or row.metric in ALWAYS_DOUBTFUL:
        return 1.0
    if not depends_on_rare_levels(find_metric(row.metric)):
        return row.nowhere
    counts = row.strata[0]
    doubtful = sum(counts[: HELD.index(FEWEST_HOLDING)]) + counts[-1]
    return row.nowhere + (1.0 - row.nowhere) * doubtful / sum(counts)


def check(designs: Iterable[Design]) -> None:
    """Stop if the package has other intervals, or other doubts, than the study."""
    for design in designs:
        tables = next(samples(design, 3))
        times = resample_clusters(np.random.default_rng(0), design.clusters, 100)
        found = dict(block_intervals(design, tables, times, 0))
        strata = describe_samples(tables[0]).stratum
        for index, cells in enumerate(tables[0]):
            clusters = empty(design.levels).with_cells(cells)
            settings = ConfidenceIntervals(LEVEL, resamples=200)
            for name, each in estimate_metrics(METRICS, clusters, settings).items():
                method = default_of("value", find_metric(name))
                ours = [float(end[index]) for end in found["value", name, method]]
                if not np.allclose(ours, (each.low, each.high), equal_nan=True):
                    raise SystemExit(f"{design}: {name} is {each}, here {ours}.")
                row = Row(
                    *design, "value", name, method, 1, *[0.0] * 12, count_stratum(strata[index])
                )
                if each.method != "dirichlet" and bool(each.note) != bool(warned_share(row)):
                    raise SystemExit(f"{design}: {name} says {each.note!r}, here {row}.")


def count_stratum(stratum: int) -> list[list[int]]:
    """Return the strata of a single replicate."""
    one = [int(index == stratum) for index in range(len(HELD) + 1)]
    return [one, one]


# --- the page ------------------------------------------------------------------------------------

METHODS = {
    "t": "Student's t with the error of the clusters' sums of influence, on an unbounded scale",
    "jackknife": "delete-one-cluster jackknife with Student's t, on an unbounded scale",
    "jackknife-e": "the same with the degrees of freedom of (Σn)²/Σn² clusters of sizes n",
    "jackknife-u": "the jackknife around its bias-corrected value, enclosing the value",
    "mover": "shares and metrics over levels: Wilson's bounds of each level with Student's t, its "
    "items divided by a design effect D, combined by MOVER (of the worst level: simultaneous "
    "bounds). D is the variance from deleting clusters over that of Wilson's intervals. F1 of a "
    "level is 2J/(1 + J) of the share J of right items among those of the level, gold or predicted",
    "mover-p": "the same with D from the squared sums of residuals in each cluster and level",
    "outer": "the outer bounds of jackknife and mover",
    "percentile": "the percentile bootstrap of clusters",
    "percentile-t": "percentiles at Φ(±√(G/(G−1)) t) for Student's t",
    "bca": "BCa, with the acceleration from deleting clusters; percentile where it is undefined",
    "studentised": "the studentised bootstrap, errors of resamples from the jackknife's deletions",
}


def page(rows: Sequence[Row]) -> str:
    """Return the whole page in Markdown."""
    clustered = [row for row in rows if row.clusters]
    found = related(clustered)
    parts = [
        "# Coverage of the confidence intervals of clusters",
        wrapped(summarise(rows)),
        *about(clustered),
        "## Which method each family gets",
        wrapped(RULE),
        *(choice_table(found, kind) for kind in KINDS),
        wrapped(DEPARTURES),
        departure_table(found),
        "## Methods by family",
        *(part for kind in KINDS for part in (f"### Of a {kind}", family_table(found, kind))),
        "## What the package promises",
        *map(wrapped, acceptance(rows)),
        poor_table(rows),
        "## By the number of clusters that hold the rarest level",
        wrapped(STRATA),
        strata_table(clustered),
        "## All cells",
        wrapped(CELLS_SHOWN),
        *(part for kind in KINDS for part in cell_tables(clustered, kind)),
        "### Of a value, items without clusters",
        item_table([row for row in rows if not row.clusters]),
    ]
    return "\n\n".join(parts) + "\n"


RULE = (
    "The rule of the [first study](interval-coverage.md), over all cells here: the shortest method "
    f"whose mean coverage is at least {whole(ENOUGH)}, else the one that covers most; widths are "
    "relative to percentile in the same cell, and of methods within 2 % of the shortest one "
    "without resamples comes first. Methods that keep the promises below (coverage in the cells "
    "with enough of everything, and none that is poor without a warning) come before those that do "
    "not; this was added when seven cells were known. In brackets the mean "
    "coverage in percent; bold where no method reaches the required coverage. The last column is "
    "what the package does."
)
DEPARTURES = (
    "The mean over cells hides how far cells differ: *enough* is the share of cells with a "
    f"coverage of at least {whole(ENOUGH)}. So the package departs from the rule in favour of one "
    "method that holds nearly everywhere, at a somewhat larger width. Differences have one method "
    "for all families, because simultaneous intervals of many pairs need joint draws of all "
    "systems, and Student's draws with the jackknife's covariance give them for every metric:"
)
STRATA = (
    "Coverage in percent of the default intervals of metrics over levels, by the number of "
    "clusters that hold the rarest gold level of the sample, over all cells with at least "
    f"{VERY_FEW_CLUSTERS} clusters and none above {whole(LARGEST_SHARE)} of the items; last, "
    "samples whose gold lacks a declared level. A dash: fewer than 200 samples."
)
CELLS_SHOWN = (
    "Coverage in percent, and the mean width in brackets. G clusters of m items on average, with "
    "sizes as named, K levels, gold shares from the commonest level to the rarest, ρ the latent "
    "correlation of errors and what clusters share. *held* is the expected number of clusters "
    "that hold the rarest level, *ICC* the intraclass correlation of signed errors and of "
    "absolute errors that results; *rarest* the expected number of items of the rarest level."
)


def summarise(rows: Sequence[Row]) -> str:
    """Return the verdict in a sentence or two."""
    held, total = count_held(rows)
    cases, poor, silent = find_poor_cases(rows)
    old = [
        row.coverage
        for row in rows
        if (row.kind, row.method) == ("value", "t") and row.metric in DEFAULT_METRICS
    ]
    return (
        "With clusters, the jackknife over clusters with Student's t, and for shares and metrics "
        "over levels Wilson's intervals of the levels at deflated sizes, cover at least "
        f"{whole(ENOUGH)} (less two Monte Carlo standard errors) in {percent(held / max(total, 1))}"
        " % of the cases that have enough of everything. Of the "
        f"{len(poor)} of {len(cases)} cases that cover less than {whole(POOR)}, reports warn in "
        f"{len(poor) - len(silent)}. Student's t of cluster influences, the former default of few "
        f"clusters, covered as little as {percent(min(old))} % for a default metric."
    )


def count_held(rows: Sequence[Row]) -> tuple[int, int]:
    """Return in how many cases of the expectation the default metrics hold it, and of how many."""
    cases = [
        row
        for (_, name), row in defaults(rows, "value").items()
        if name in DEFAULT_METRICS and is_expected_to_hold(row)
    ]
    return sum(map(covers_enough, cases)), len(cases)


INTRODUCTION = (
    f"`make coverage-clusters` writes this page: how often nominal {whole(LEVEL)} intervals cover, "
    "for the value of a system and for the difference of two equal systems, where items of one "
    "writer, topic or document are alike."
)
POPULATION = (
    "Gold levels and errors are quantiles of normal variables, of which a part is common to the "
    "items of a cluster, so that each item has the distribution of a population whose table is "
    "known exactly: gold shares fall geometrically from the first level to the last, predictions "
    "scatter around gold as in the first study. Gold levels of a cluster have a latent correlation "
    f"of {COMPOSITION:g}, errors one of ρ, errors of two systems on an item {LIKENESS:g}. What a "
    "cluster shares is how severely it is graded (the level predicted), or how difficult it is "
    "(the distance from gold, with a coin for the side)."
)


def about(rows: Sequence[Row]) -> list[str]:
    """Return what was simulated, in paragraphs."""
    cells = len({row.design for row in rows})
    design = (
        f"The design was fixed beforehand: {cells} cells, a fraction of the cross of 5 to 200 "
        "clusters, equal or unequal (log-normal) sizes or one cluster with a third of the items, 3 "
        "to 10 levels, balanced to 1:100 gold, ρ of 0 to 0.6: a centre, one factor at a time, half "
        "of the corners, 100 equal clusters of balanced gold, and the cells in which the former "
        "default was known to fail. Seeds are fixed; the design effect of mover comes from trials "
        f"with others. {len(item_designs())} cells without clusters, of default metrics and what "
        "the package does, were added when the others were known."
    )
    methods = "\n".join(wrapped(f"- **{name}**: {text}.", "  ") for name, text in METHODS.items())
    return [*map(wrapped, (INTRODUCTION, POPULATION, design, replication(rows))), methods]


def replication(rows: Sequence[Row]) -> str:
    """Return how often a cell was simulated, and the Monte Carlo error that this leaves."""
    all_of_them, bootstrapped, linearised = (
        max((row.replicates for row in rows if row.method == method), default=1)
        for method in ("jackknife", "percentile", "t")
    )
    errors = [
        f"{100 * standard_error(LEVEL, count):.1f}"
        for count in (all_of_them, bootstrapped, linearised)
    ]
    return (
        f"Each cell has {all_of_them:,} replicates, the bootstrap methods the first "
        f"{bootstrapped:,} with 400 resamples, linearisation the first {linearised:,}. A coverage "
        f"of {whole(LEVEL)} has a standard error of {errors[0]}, {errors[1]} and {errors[2]} "
        "points. Where the interval of a value has no width, the Dirichlet posterior with a "
        "cluster as one item stands in, as in the package."
    )


def parts_of(found: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of all cells, and of some."""
    return {
        "all": list(found),
        "G ≤ 20": [each for each in found if each.row.clusters <= 20],
        "G ≥ 29": [each for each in found if each.row.clusters >= 29],
        "no large cluster": [e for e in found if largest_share(e.row.design) <= LARGEST_SHARE],
        "1:100": [each for each in found if each.row.ratio == 100],
        "balanced": [each for each in found if each.row.ratio == 1],
    }


def choice_table(found: Sequence[Result], kind: str) -> str:
    """Return which method the rule picks in each family, and from parts of the design."""
    parts = parts_of(found)
    rows = []
    for name in FAMILIES:
        choices = [name_choice(choose(part, kind, name)) for part in parts.values()]
        shipped = {default_of(kind, metric) for metric in METRICS if family(metric) == name}
        rows.append([name, *choices, ", ".join(sorted(shipped))])
    return markdown([f"{kind} of", *parts, "package"], rows)


def departure_table(found: Sequence[Result]) -> str:
    """Return where the package has another method than the rule picks, and what that costs."""
    table = []
    for kind in KINDS:
        for name in FAMILIES:
            known, choice = verdicts(found, kind, name), choose(found, kind, name)
            shipped = next(default_of(kind, metric) for metric in METRICS if family(metric) == name)
            if choice is not None and choice[0] != shipped and shipped in known:
                row = [kind, name]
                for method in (choice[0], shipped):
                    each = known[method]
                    row += [method, percent(each.coverage), percent(each.enough)]
                    row.append(f"{each.width:.2f}")
                table.append(row)
    measures = ["coverage", "enough", "width"]
    return markdown(["of a", "family", "rule", *measures, "package", *measures], table)


def name_choice(choice: tuple[str, Verdict] | None) -> str:
    """Return the picked method with its coverage, bold where that is too low."""
    if choice is None:
        return "–"
    method, found = choice
    text = f"{method} ({percent(found.coverage)})"
    return text if found.coverage >= ENOUGH else f"**{text}**"


def family_table(found: Sequence[Result], kind: str) -> str:
    """Return the verdict of each method of each family, the pick of the rule in bold."""
    rows = []
    for name in FAMILIES:
        known = verdicts(found, kind, name)
        best, _ = choose(found, kind, name) or ("", None)
        for method, each in known.items():
            numbers = map(percent, (each.coverage, each.enough, each.left, each.right))
            worst: Any = each.worst
            title = f"**{method}**" if method == best else method
            rows.append([name, title, *numbers, f"{each.width:.2f}", percent(worst.coverage)])
            rows[-1].append(f"`{worst.metric}`, {place(worst.design)}")
    head = ["family", "method", "coverage", "enough", "left", "right", "width", "worst", "where"]
    return markdown(head, rows)


def acceptance(rows: Sequence[Row]) -> list[str]:
    """Return in three paragraphs whether the expectation holds, and whether doubts are voiced."""
    held, total = count_held(rows)
    cases, poor, silent = find_poor_cases(rows)
    calm = [
        row
        for row in cases
        if (row.ratio, row.clusters, row.sizes) == (1, 100, "equal")
        and row.metric not in ALWAYS_DOUBTFUL
        and row.kind == "value"
    ]
    coverage = (
        f"**Coverage.** Of the {total} cases of a cell and a default metric with N ≥ {LARGE}, at "
        f"least {VERY_FEW_CLUSTERS} clusters or none, none above {whole(LARGEST_SHARE)} of the "
        f"items, and the rarest level expected in at least {FEWEST_HOLDING} clusters (without "
        f"clusters {RARE_ITEMS} items), {held} ({percent(held / max(total, 1))} %, required 90 %) "
        f"cover {whole(ENOUGH)} less two Monte Carlo standard errors or more; their coverage and "
        "widths are in the tables of all cells, marked with an asterisk."
    )
    doubts = (
        f"**Doubts are voiced.** {len(poor)} of {len(cases)} cases (values and differences, all "
        f"metrics) cover less than {whole(POOR)}; in {len(poor) - len(silent)} of them at least "
        f"{whole(MOST)} of the reports warn or have no interval. Those that do not: "
        f"{list_cases(silent)}. "
        "What makes a report warn was set from these cells: the number of "
        "clusters, the largest of them, and, but for proportions, closeness and ranking, levels "
        "that few clusters hold or that gold lacks."
    )
    loudest = max(map(warned_share, calm), default=0.0)
    calmness = (
        "**And not in vain.** In the balanced cells with 100 equal clusters at most "
        f"{percent(loudest)} % of the reports warn, of any metric but "
        f"{', '.join(f'`{name}`' for name in ALWAYS_DOUBTFUL)}, which always does: nothing covers "
        "it near its bound."
    )
    return [coverage, doubts, calmness]


def find_poor_cases(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Return what the package does, where it covers badly, and where it does so without warning."""
    cases = [row for kind in KINDS for row in defaults(rows, kind).values()]
    poor = [row for row in cases if row.coverage < POOR]
    return cases, poor, [row for row in poor if warned_share(row) < MOST]


def list_cases(rows: Sequence[Row]) -> str:
    """Return cases in words."""
    return (
        "; ".join(
            f"{row.kind} of `{row.metric}`, {place(row.design)} ({percent(row.coverage)} % cover, "
            f"{percent(warned_share(row))} % warn)"
            for row in rows
        )
        or "none"
    )


def poor_table(rows: Sequence[Row]) -> str:
    """Return the cases that the default covers badly, with the share of reports that warn."""
    table = [
        [kind, f"`{name}`", place(design), percent(row.coverage), percent(warned_share(row))]
        for kind in KINDS
        for (design, name), row in defaults(rows, kind).items()
        if row.coverage < POOR
    ]
    return markdown(["of a", "metric", "cell", "coverage", "warn"], table) if table else ""


def strata_table(rows: Sequence[Row]) -> str:
    """Return the coverage of metrics over levels by the clusters that hold the rarest level."""
    ends = [*(start - 1 for start in HELD[1:]), None]
    heads = [
        f"{start}" if end == start else f"{start} to {end}" if end else f"{start} or more"
        for start, end in zip(HELD, ends, strict=True)
    ]
    table = []
    for kind in KINDS:
        for metric in METRICS:
            if metric.macro:
                cells = [
                    row.strata
                    for (_, name), row in defaults(rows, kind).items()
                    if name == metric.name and row.strata and not is_always_doubtful(row)
                ]
                total, covered = np.array(cells).sum(axis=0)
                shares = [
                    percent(inside / count) if count >= 200 else "–"
                    for count, inside in zip(total, covered, strict=True)
                ]
                table.append([kind, f"`{metric.name}`", *shares])
    return markdown(["of a", "metric", *heads, "level absent"], table)


def is_always_doubtful(row: Row) -> bool:
    """Tell whether the clusters alone make intervals unsure."""
    return row.clusters < VERY_FEW_CLUSTERS or largest_share(row.design) > LARGEST_SHARE


def cell_tables(rows: Sequence[Row], kind: str) -> Iterator[str]:
    """Return the coverage and width of the default in every cell: default metrics, then others."""
    known = defaults(rows, kind)
    designs = list(dict.fromkeys(design for design, _ in known))
    others = [metric.name for metric in METRICS if metric.name not in DEFAULT_METRICS]
    for title, names in (("default metrics", DEFAULT_METRICS), ("other metrics", others)):
        table = []
        for design in designs:
            first = known[design, names[0]]
            mark = " *" if is_expected_to_hold(first) else ""
            facts = f"{first.held:.1f}", f"{first.error_icc:.2f}, {first.distance_icc:.2f}"
            shown = [show_case(known[design, name]) for name in names]
            table.append([place(design) + mark, *facts, *shown])
        yield f"### Of a {kind}, {title}"
        yield markdown(["cell", "held", "ICC", *(f"`{name}`" for name in names)], table)


def item_table(rows: Sequence[Row]) -> str:
    """Return the coverage and width of the default metrics in every cell without clusters."""
    known = defaults(rows, "value")
    table = []
    for design in dict.fromkeys(design for design, _ in known):
        first = known[design, DEFAULT_METRICS[0]]
        mark = " *" if is_expected_to_hold(first) else ""
        shown = [show_case(known[design, name]) for name in DEFAULT_METRICS]
        table.append([place(design) + mark, f"{first.held:.1f}", *shown])
    return markdown(["cell", "rarest", *(f"`{name}`" for name in DEFAULT_METRICS)], table)


def show_case(row: Row) -> str:
    """Return a coverage and a width."""
    return f"{percent(row.coverage)} ({row.mean_width:.2f})"


def place(design: Design) -> str:
    """Return a cell of the design in words."""
    if not design.clusters:
        return f"N {design.items:,}, K {design.levels}, 1:{design.ratio}"
    sizes = {"equal": "", "unequal": " unequal", "a third": " (a third in one)"}[design.sizes]
    return (
        f"G {design.clusters}, m {design.items}{sizes}, K {design.levels}, 1:{design.ratio}, "
        f"ρ {design.correlation:g} {design.shared}"
    )


def coverage_warnings(rows: Sequence[Row]) -> str:
    """Return the lowest coverage of each metric where reports warn, for the package."""
    lowest: dict[str, float] = {}
    for (_, name), row in defaults(rows, "value").items():
        if row.clusters and warned_share(row) >= MOST:
            lowest[name] = min(row.coverage, lowest.get(name, 1.0))
    lines = [f"{name},{share:.3f}" for name, share in lowest.items() if share < ENOUGH]
    return "\n".join(["metric,coverage", *lines]) + "\n"


def main() -> None:
    """Simulate what is missing, print the page, and write it where asked to."""
    options = parse_options(
        "Study intervals of clusters.", "cluster-coverage", resamples=400, add_more=add_warnings
    )
    work = partial(study, replicates=options.replicates, resamples=options.resamples)
    cells = quick_designs() if options.quick else [*designs(), *item_designs()]
    check(quick_designs())
    rows = simulate(cells, work, Row, options)
    publish(page(rows), options)
    if options.warnings:
        options.warnings.write_text(coverage_warnings(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
