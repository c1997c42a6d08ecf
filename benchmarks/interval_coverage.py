"""How often nominal 95 % intervals cover the truth, by method, metric and kind of table.

    python benchmarks/interval_coverage.py --write FILE    the study, about half an hour
    python benchmarks/interval_coverage.py --quick         a smoke test, half a minute

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import argparse
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.bootstrap import bca_interval, estimate_acceleration, percentile_interval
from ordinate.inference.confidence_intervals import FEWEST_DEFINED_SHARE, JEFFREYS_PRIOR
from ordinate.inference.interval_methods import choose_interval_method
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.inference.small_samples import make_posterior_sampler
from ordinate.metrics import Metric, find_metric
from ordinate.summaries import ConfusionMatrix
from writing import markdown, wrapped

LEVELS, QUICK_LEVELS = (3, 4, 5, 6, 7), (3, 5)
SIZES, QUICK_SIZES = (20, 50, 200, 1_000, 5_000), (50, 200)
BALANCES = ("balanced", "1:100")
ACCURACY = 0.6  # of predictions, where gold is balanced
LEVEL = 0.95
SEED = 20_240_601

EQUAL = 1.02  # times the shortest width counts as equally short
ENOUGH = 0.93  # coverage that the rule requires
POOR = 0.90  # coverage below which a case is listed
LARGE = 50  # items from which on a design cell counts for the rule
FLAT = 1e-12  # width of an interval that has none

METRICS: tuple[Metric, ...] = tuple(
    find_metric(name)
    for name in (
        "accuracy",
        "accuracy_within",
        "macro_accuracy",
        "min_sensitivity",
        "cohen_kappa",
        "linear_kappa",
        "quadratic_kappa",
        "mcc",
        "gwet_ac2",
        "cem_ord",
        "cem_ord_chance_corrected",
        "mae",
        "rmse",
        "ordinal_distance_quadratic",
        "bias",
        "macro_mae",
        "max_mae",
        "nmd",
        "kendall_tau_b",
        "spearman",
        "goodman_kruskal_gamma",
        "f1_macro",
        "precision_macro",
        "mutual_information",
        "normalized_mutual_information",
        "purity",
        "oci",
    )
)
FITS: dict[str, Callable[[Metric], bool]] = {  # method: which metrics have it
    "delta": lambda metric: metric.smooth,
    "percentile": lambda _: True,
    "bca": lambda _: True,
    "wilson": lambda metric: metric.share,
    "mover": lambda metric: metric.macro == "mean",
    "simultaneous": lambda metric: metric.macro == "worst",
    "dirichlet": lambda _: True,
    "jeffreys": lambda _: True,
}
BY_FORMULA = ("delta", "wilson", "mover", "simultaneous")
USUAL = (
    "delta",
    "percentile",
    "bca",
    "dirichlet",
    "jeffreys",
)  # what a family may have as its usual method
DEFAULT = "default"

Array = NDArray[Any]
Ends = tuple[float, float]
IntervalsByMethod = dict[tuple[str, str], Ends]  # by metric and method
NOWHERE: Ends = (math.nan, math.nan)


# --- the populations -----------------------------------------------------------------------------


class Design(NamedTuple):
    """A cell of the design: how many levels and items, and how gold fills the levels."""

    levels: int
    items: int
    balance: str


def designs(levels: Iterable[int], sizes: Iterable[int]) -> list[Design]:
    """Return all cells of the design, those that take longest first."""
    return sorted((Design(*cell) for cell in product(levels, sizes, BALANCES)), reverse=True)


def population(levels: int, balance: str) -> Array:
    """Return the shares of the cells: predictions scatter around gold."""
    rarest = 0.01 if balance == "1:100" else 1.0
    gold = rarest ** (np.arange(levels) / (levels - 1))
    return (gold / gold.sum())[:, None] * scatter(levels, steepness(levels))


def scatter(levels: int, steep: float) -> Array:
    """Return P(predicted | gold), proportional to exp(-steep |gold - predicted|)."""
    level = np.arange(levels)
    near = np.exp(-steep * np.abs(level[:, None] - level))
    return near / near.sum(axis=1, keepdims=True)


@cache
def steepness(levels: int) -> float:
    """Return how steep the scatter must be for the accuracy that balanced gold shall have."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2.0
        right = scatter(levels, middle).trace() / levels
        low, high = (middle, high) if right < ACCURACY else (low, middle)
    return low


def empty(levels: int) -> ConfusionMatrix:
    """Return a table on the scale of so many levels, whose cells are to be replaced."""
    return ConfusionMatrix.from_counts(np.eye(levels), f"0..{levels - 1}")


def truths(design: Design) -> dict[str, float]:
    """Return each metric of the population."""
    base = empty(design.levels)
    whole = base.with_cells(population(design.levels, design.balance) * 1e9)
    return {metric.name: float(metric.compute_from_expected(whole, base)) for metric in METRICS}


def samples(design: Design, replicates: int) -> tuple[Array, list[int]]:
    """Return so many tables of the population, and the seed of the resamples from each of them."""
    rng = np.random.default_rng([SEED, *design[:2], BALANCES.index(design.balance)])
    shares = population(design.levels, design.balance).reshape(-1)
    tables = rng.multinomial(design.items, shares, replicates).astype(float)
    seeds = rng.integers(2**31, size=replicates).tolist()
    return tables.reshape(-1, design.levels, design.levels), seeds


# --- the intervals of one table ------------------------------------------------------------------


def intervals(
    table: ConfusionMatrix, resamples: Resampling
) -> tuple[dict[str, float], IntervalsByMethod]:
    """Return the metrics that are defined, and their intervals by every method.

    One draw of tables serves percentile and BCa of all metrics, one posterior all metrics. They are
    those that `estimate` makes from the same seed, so that its default is one of these.
    """
    values = {metric.name: float(metric(table)) for metric in METRICS}
    values = {name: value for name, value in values.items() if not math.isnan(value)}
    there = [metric for metric in METRICS if metric.name in values]
    found: IntervalsByMethod = {}
    for method in BY_FORMULA:
        found |= by_formula([metric for metric in there if FITS[method](metric)], table, method)
    found |= by_bootstrap(there, table, values, resamples)
    for method, prior in (("dirichlet", None), ("jeffreys", JEFFREYS_PRIOR)):
        found |= by_posterior(there, table, values, resamples, (method, prior))
    return values, found | by_default(there, found)


def by_formula(metrics: Sequence[Metric], table: ConfusionMatrix, method: Any) -> IntervalsByMethod:
    """Return the bounds by a method that resamples nothing."""
    found = estimate_metrics(metrics, table, ConfidenceIntervals(LEVEL, method))
    return {(name, method): (each.low, each.high) for name, each in found.items()}


def by_bootstrap(
    metrics: Sequence[Metric],
    table: ConfusionMatrix,
    values: Mapping[str, float],
    resamples: Resampling,
) -> IntervalsByMethod:
    """Return the bounds by percentile and by BCa, which is percentile where it is undefined."""
    drawn = resample_metrics(metrics, table, make_resampler(table), resamples)
    found: IntervalsByMethod = {}
    for metric, ends in zip(metrics, middles(drawn), strict=True):
        name = metric.name
        found[name, "percentile"] = found[name, "bca"] = ends
        if not math.isnan(ends[0]):
            skew = estimate_acceleration(metric, table)
            better = bca_interval(defined(drawn[name]), values[name], skew, LEVEL)
            if better is None or better[1] - better[0] < FLAT < ends[1] - ends[0]:
                better = min(ends[0], values[name]), max(ends[1], values[name])
            found[name, "bca"] = better
    return found


def by_posterior(
    metrics: Sequence[Metric],
    table: ConfusionMatrix,
    values: Mapping[str, float],
    resamples: Resampling,
    how: tuple[str, float | None],
) -> IntervalsByMethod:
    """Return the bounds by a posterior of a name with a prior; they enclose the value."""
    method, prior = how
    drawn = resample_metrics(metrics, table, make_posterior_sampler(table, prior), resamples)
    found: IntervalsByMethod = {}
    for metric, (low, high) in zip(metrics, middles(drawn), strict=True):
        value = values[metric.name]
        known = not math.isnan(low)
        found[metric.name, method] = (min(low, value), max(high, value)) if known else NOWHERE
    return found


def middles(drawn: Mapping[str, Array]) -> list[Ends]:
    """Return the bounds of the middle values of each metric; none where most are undefined."""
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(np.array([*drawn.values()]), [tail, 1.0 - tail], axis=-1)
    found = list(zip(low.tolist(), high.tolist(), strict=True))
    for index, values in enumerate(drawn.values()):
        if math.isnan(found[index][0]):
            there = defined(values)
            enough = len(there) >= FEWEST_DEFINED_SHARE * len(values)
            found[index] = percentile_interval(there, LEVEL) if enough else NOWHERE
    return found


def defined(values: Array) -> Array:
    """Return the values of the resamples that have one."""
    return values[~np.isnan(values)]


def by_default(metrics: Sequence[Metric], found: IntervalsByMethod) -> IntervalsByMethod:
    """Return what the default is after each method that may be the usual one of a family."""
    return {
        (metric.name, after(method)): chosen(metric, method, found)
        for metric in metrics
        for method in USUAL
        if FITS[method](metric)
    }


def after(method: str) -> str:
    """Return the name of the default where this is the usual method."""
    return f"{DEFAULT} after {method}"


def chosen(metric: Metric, usual: str, found: IntervalsByMethod) -> Ends:
    """Return the bounds that `estimate` chooses; `check` holds this to be so."""
    name = metric.name
    if metric.share:
        return found[name, "wilson"]
    for method in ("mover", "simultaneous"):
        if FITS[method](metric):
            return found[name, method]
    low, high = found[name, usual]
    return found[name, "dirichlet"] if math.isclose(low, high, abs_tol=FLAT) else (low, high)


def default_of(metric: Metric) -> str:
    """Return the name of the default of a metric: where one is fixed, all of them are the same."""
    usual = choose_interval_method(metric)
    return after(usual if usual in USUAL else "percentile")


def check(levels: Iterable[int], resamples: int) -> None:
    """Stop if `estimate` has other intervals than the study."""
    for design in designs(levels, (20, 200)):
        for cells, seed in zip(*samples(design, 3), strict=True):
            table = empty(design.levels).with_cells(cells)
            values, found = intervals(table, Resampling(resamples, seed))
            for method in ("percentile", "bca", "dirichlet", "jeffreys", None):
                how = ConfidenceIntervals(LEVEL, method, resamples, seed)  # type: ignore[arg-type]
                estimates = estimate_metrics([find_metric(name) for name in values], table, how)
                for name, each in estimates.items():
                    ours = found[name, method or default_of(find_metric(name))]
                    if not np.allclose(ours, (each.low, each.high), equal_nan=True):
                        raise SystemExit(
                            f"{design}: {method or DEFAULT} of {name} is {each}, here {ours}."
                        )


# --- one cell of the design ----------------------------------------------------------------------


class Row(NamedTuple):
    """What one method did for one metric in one cell of the design.

    The truth was missed to the `left` where it was below the lower bound. `undefined` is the share
    of replicates without a value, `nowhere` that of values without intervals, `flat` that of
    intervals without width. Coverage, misses and widths are of the replicates with intervals.
    """

    levels: int
    items: int
    balance: str
    metric: str
    method: str
    replicates: int
    resamples: int
    truth: float
    coverage: float
    left: float
    right: float
    mean_width: float
    median_width: float
    undefined: float
    nowhere: float
    flat: float

    @property
    def design(self) -> Design:
        """The cell of the design."""
        return Design(*self[:3])


def study(design: Design, replicates: int, resamples: int) -> list[Row]:
    """Simulate a cell of the design."""
    base, (tables, seeds) = empty(design.levels), samples(design, replicates)
    found = [
        intervals(base.with_cells(cells), Resampling(resamples, seed))[1]
        for cells, seed in zip(tables, seeds, strict=True)
    ]
    truth = truths(design)
    rows = []
    for name, method in pairs():
        ends = [bounds[name, method] for bounds in found if (name, method) in bounds]
        measures = performance(truth[name], np.array(ends).reshape(-1, 2), replicates)
        rows.append(Row(*design, name, method, replicates, resamples, truth[name], *measures))
    return rows


def pairs() -> list[tuple[str, str]]:
    """Return every metric with every method that it has, the possible defaults included."""
    found = []
    for metric in METRICS:
        fit = [method for method, fits in FITS.items() if fits(metric)]
        found += [(metric.name, method) for method in fit]
        found += [(metric.name, after(method)) for method in fit if method in USUAL]
    return found


def performance(truth: float, ends: Array, replicates: int) -> list[float]:
    """Return the last fields of a row, from the intervals of the replicates that have a value."""
    low, high = ends[~np.isnan(ends).any(axis=1)].T
    undefined = 1.0 - len(ends) / replicates
    nowhere = (len(ends) - len(low)) / replicates
    if not len(low):
        return [math.nan] * 5 + [undefined, nowhere, math.nan]
    left, right = find_misses(truth, low, high)
    inside, width = ~(left | right), high - low
    means = [inside.mean(), left.mean(), right.mean(), width.mean(), np.median(width)]
    return [float(each) for each in (*means, undefined, nowhere, (width <= FLAT).mean())]


def find_misses(truth: float, low: Array, high: Array) -> tuple[Array, Array]:
    """Return which intervals miss the truth: it is below the lower bound, or above the upper."""
    return truth < low - FLAT, truth > high + FLAT


# --- what follows from it ------------------------------------------------------------------------


class Result(NamedTuple):
    """A row with the family of its metric, and its width beside that of percentile."""

    row: Row
    family: str
    method: str
    width: float


class Verdict(NamedTuple):
    """A method in a family: means over metrics and cells of the design, and the worst of them."""

    coverage: float
    enough: float
    left: float
    right: float
    width: float
    worst: Row


def family(metric: Metric) -> str:
    """Return the family of a metric in this study.

    Shares, metrics over levels and those without a derivative (rough) have families of their own.
    """
    if metric.share:
        return "share"
    if metric.macro:
        return OVER_LEVELS[metric.macro]
    return metric.family if metric.smooth else "rough"


OVER_LEVELS = {"mean": "mean of levels", "worst": "worst level", "other": "other of levels"}
FAMILIES = tuple(dict.fromkeys(family(metric) for metric in METRICS))


def related(rows: Iterable[Row]) -> list[Result]:
    """Return the rows that say something; of the possible defaults, the one of today."""
    rows = [row for row in rows if not math.isnan(row.coverage)]
    plain = {(row.design, row.metric): row.mean_width for row in rows if row.method == "percentile"}
    found = []
    for row in rows:
        metric, method = find_metric(row.metric), row.method
        if method.startswith(DEFAULT):
            if method != default_of(metric):
                continue
            method = DEFAULT
        beside = plain.get((row.design, row.metric), 0.0)
        width = row.mean_width / beside if beside > 0 else math.nan
        found.append(Result(row, family(metric), method, width))
    return found


def methods_of(kind: str) -> list[str]:
    """Return the methods that every metric of a family has."""
    members = [metric for metric in METRICS if family(metric) == kind]
    return [method for method, fits in FITS.items() if all(map(fits, members))]


def verdict(found: Sequence[Result]) -> Verdict:
    """Return what the results of a method say together."""
    rows = [each.row for each in found]
    widths = [each.width for each in found if math.isfinite(each.width)]
    return Verdict(
        coverage=statistics.fmean(row.coverage for row in rows),
        enough=statistics.fmean(row.coverage >= ENOUGH for row in rows),
        left=statistics.fmean(row.left for row in rows),
        right=statistics.fmean(row.right for row in rows),
        width=statistics.fmean(widths) if widths else math.nan,
        worst=min(rows, key=lambda row: row.coverage),
    )


def verdicts(found: Iterable[Result], kind: str, *others: str) -> dict[str, Verdict]:
    """Return what the results say of each method of a family, and of others asked for."""
    found = [each for each in found if each.family == kind]
    by_method = {
        method: [each for each in found if each.method == method]
        for method in (*methods_of(kind), *others)
    }
    return {method: verdict(some) for method, some in by_method.items() if some}


def pick(known: Mapping[str, Verdict], by_formula: Sequence[str] = BY_FORMULA) -> str:
    """Return the shortest method that covers enough, or else the one that covers most.

    Of methods that are as good as equally short, one without resamples comes first.
    """
    enough = {method: found for method, found in known.items() if found.coverage >= ENOUGH}
    if not enough:
        return max(known, key=lambda method: known[method].coverage)
    shortest = min(found.width for found in enough.values())
    short = [method for method, found in enough.items() if found.width <= EQUAL * shortest]
    return max(short, key=lambda method: (method in by_formula, known[method].coverage))


def large(found: Iterable[Result]) -> list[Result]:
    """Return the results that count for the rule."""
    return [each for each in found if each.row.items >= LARGE]


def splits(found: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results that count, all of them, by balance and by the number of items."""
    some = large(found)
    parts = {"all": some}
    for balance in BALANCES:
        parts[balance] = [each for each in some if each.row.balance == balance]
    for size in sorted({each.row.items for each in some}):
        parts[f"N = {size:,}"] = [each for each in some if each.row.items == size]
    return parts


# --- the page ------------------------------------------------------------------------------------


def whole(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"


RULE = (
    "Fixed before the study was run: the default of a family is the shortest method whose mean "
    f"coverage over the design cells with N ≥ {LARGE} is at least {whole(ENOUGH)}. If none reaches "
    "that, it is the method with the highest coverage. Shortest is by the mean ratio of the width "
    "to that of percentile in the same design cell. Only methods that are valid for every metric "
    "of the family take part. One thing was added after the results were known: methods within "
    f"{100 * (EQUAL - 1):.0f} % of the shortest count as equally short, because bootstrap "
    "intervals from 2,000 resamples vary by more than that between seeds, and among them one that "
    "needs no resamples comes first. Without it, the rule would choose percentile for "
    "proportions, agreement and distance; it is 1 to 2 % shorter there, and covers less. What the "
    "rule chooses, from all design cells and from some of them:"
)
BY_METHOD = (
    f"Means over the metrics of the family and the design cells with N ≥ {LARGE}, in percent. "
    f"*Enough* is the share of these cells with a coverage of at least {whole(ENOUGH)}. *Left* is "
    "how often the true value was below the lower bound, *right* how often it was above the upper "
    "bound. *Width* is relative to percentile."
)
BY_METRIC = (
    f"Mean coverage over the design cells with N ≥ {LARGE}, in percent. A dash: the method is not "
    "valid for the metric."
)
DEFAULTS = (
    "The default of `estimate`: the method of the family, and the Dirichlet posterior where that "
    "gives no width. Coverage in percent, mean over K."
)
METHODS = {
    "delta": "the delta method, on an unbounded scale; only for metrics with a derivative",
    "percentile": "the percentile bootstrap",
    "bca": "the bias-corrected and accelerated bootstrap; percentile where it is undefined",
    "wilson": "Wilson's score interval; only for proportions of the items",
    "mover": "intervals of the levels, combined by MOVER; only for means over levels",
    "simultaneous": "simultaneous bounds of all levels, of which the worst; only for the worst "
    "level",
    "dirichlet": "the posterior of each gold level's row with a prior of 1/K in each cell, so that "
    "the prior of a row weighs one item",
    "jeffreys": "the same with a prior of 1/2 in each cell",
}


def page(rows: Sequence[Row]) -> str:
    """Return the whole page in Markdown."""
    found = related(rows)
    parts = [
        "# Coverage of the confidence intervals",
        *about(rows),
        "## The rule",
        wrapped(RULE),
        picks(found),
        "## Methods by family",
        wrapped(BY_METHOD),
        family_table(found),
        "Coverage by balance and number of items (mean over K and metrics):",
        family_by_size(found),
        "## Methods by metric",
        wrapped(BY_METRIC),
        metric_table(found),
        "## The defaults of the package",
        wrapped(DEFAULTS),
        default_table(found),
        wrapped(oddities(found)),
        f"## Where the default covers less than {whole(POOR)}",
        *poor(found),
    ]
    return "\n\n".join(parts) + "\n"


def about(rows: Sequence[Row]) -> list[str]:
    """Return what was simulated, in paragraphs."""
    intro = (
        f"`make coverage` writes this page. It reports how often nominal {whole(LEVEL)} confidence "
        "intervals cover the true value."
    )
    methods = "\n".join(wrapped(f"- **{name}**: {text}.", "  ") for name, text in METHODS.items())
    texts = (intro, populations(rows), replication(rows[0]), families())
    return [*map(wrapped, texts), methods]


def populations(rows: Sequence[Row]) -> str:
    """Return what the design cells are."""
    levels, sizes = (sorted({row[field] for row in rows}) for field in (0, 1))
    steep = ", ".join(f"{steepness(size):.2f} for K = {size}" for size in levels)
    return (
        f"Each design cell is a number of levels K ({listed(levels)}), a number of items N "
        f"({listed(sizes)}), and a gold distribution that is either balanced or falls "
        "geometrically from the first level to the last, which is a hundred times as rare "
        "(1:100). Predictions scatter around gold: P(j | i) is proportional to exp(−a |i − j|), "
        f"with the a that gives balanced gold an accuracy of {ACCURACY:g}: {steep}. With 1:100 the "
        "gold distribution changes and P(j | i) stays."
    )


def replication(row: Row) -> str:
    """Return what is done in a design cell."""
    error = standard_error(LEVEL, row.replicates)
    return (
        f"Each design cell has {row.replicates:,} replicates: a multinomial confusion matrix of N "
        f"items, and {row.resamples:,} resamples from it, the same for all metrics. The true value "
        "is the metric of the population matrix. Levels may be absent from a sample; that is part "
        f"of the study. A coverage of {whole(LEVEL)} has a standard error of {100 * error:.1f} "
        "points in one design cell. Replicates in which the metric is undefined are excluded."
    )


def families() -> str:
    """Return which metrics are in which family."""
    members = "; ".join(
        f"*{kind}*: {', '.join(f'`{m.name}`' for m in METRICS if family(m) == kind)}"
        for kind in FAMILIES
    )
    return (
        "Families are those of the catalogue, but proportions (share), metrics over levels and "
        f"other metrics without a derivative (rough) are separate families. {members}. `uoc` is "
        "left out because it is slow."
    )


def picks(found: Sequence[Result]) -> str:
    """Return which method the rule picks in each family, and from parts of the design."""
    parts = splits(found)
    rows = []
    for kind in FAMILIES:
        known = [verdicts(part, kind) for part in parts.values()]
        rows.append([kind, *(named(pick(each), each) for each in known)])
    note = wrapped(
        "In brackets the coverage in percent; bold where no method reaches the required coverage."
    )
    return f"{markdown(['family', *parts], rows)}\n\n{note}"


def named(method: str, known: Mapping[str, Verdict]) -> str:
    """Return a method with its coverage, bold where that is too low."""
    coverage = known[method].coverage
    text = f"{method} ({percent(coverage)})"
    return text if coverage >= ENOUGH else f"**{text}**"


def family_table(found: Sequence[Result]) -> str:
    """Return the verdict of each method of each family, the pick of the rule in bold."""
    rows = []
    for kind in FAMILIES:
        known = verdicts(large(found), kind, DEFAULT)
        best = pick({method: each for method, each in known.items() if method != DEFAULT})
        for method, each in known.items():
            numbers = map(percent, (each.coverage, each.enough, each.left, each.right))
            name = f"**{method}**" if method == best else method
            width = f"{each.width:.2f}"
            rows.append([kind, name, *numbers, width, percent(each.worst.coverage)])
            rows[-1].append(f"`{each.worst.metric}`, {place(each.worst.design)}")
    head = ["family", "method", "coverage", "enough", "left", "right", "width", "worst", "where"]
    return markdown(head, rows)


def family_by_size(found: Sequence[Result]) -> str:
    """Return the coverage of each method of each family, by balance and number of items."""
    head, columns = by_size(found)
    rows = []
    for kind in FAMILIES:
        for method in (*methods_of(kind), DEFAULT):
            parts = [
                [each for each in part if (each.family, each.method) == (kind, method)]
                for part in columns
            ]
            rows.append([kind, method, *map(mean_coverage, parts)])
    return markdown(["family", "method", *head], rows)


def metric_table(found: Sequence[Result]) -> str:
    """Return the coverage of each method for each metric."""
    some = large(found)
    methods = [*FITS, DEFAULT]
    rows = [
        [f"`{metric.name}`", family(metric)]
        + [
            mean_coverage([e for e in some if (e.row.metric, e.method) == (metric.name, method)])
            for method in methods
        ]
        for metric in METRICS
    ]
    return markdown(["metric", "family", *methods], rows)


def default_table(found: Sequence[Result]) -> str:
    """Return the coverage of the default for each metric, by balance and number of items."""
    head, columns = by_size([each for each in found if each.method == DEFAULT])
    rows = [
        [f"`{metric.name}`", choose_interval_method(metric)]
        + [mean_coverage([e for e in part if e.row.metric == metric.name]) for part in columns]
        for metric in METRICS
    ]
    return markdown(["metric", "method", *head], rows)


def by_size(found: Sequence[Result]) -> tuple[list[str], list[list[Result]]]:
    """Return the results in columns, by balance and number of items, and the heads of these."""
    sizes = sorted({each.row.items for each in found})
    keys = list(product(BALANCES, sizes))
    columns = [[e for e in found if (e.row.balance, e.row.items) == key] for key in keys]
    return [f"{balance}, {size:,}" for balance, size in keys], columns


def mean_coverage(found: Sequence[Result]) -> str:
    """Return the mean coverage of some results; a dash for none."""
    return percent(statistics.fmean(each.row.coverage for each in found)) if found else "–"


def oddities(found: Sequence[Result]) -> str:
    """Return how often the default has no value, no interval or no width, where that is worst."""
    rows = [each.row for each in found if each.method == DEFAULT]
    sentences = []
    for field, what in (
        ("undefined", "was undefined"),
        ("nowhere", "had a value but no interval"),
        ("flat", "had an interval without width"),
    ):
        worst = max(rows, key=attrgetter(field))
        share = getattr(worst, field)
        where = f" (`{worst.metric}`, {place(worst.design)})" if share else ""
        sentences.append(f"{what} in at most {percent(share)} % of the replicates{where}")
    return f"With the default, a metric {', '.join(sentences[:-1])}, and {sentences[-1]}."


def poor(found: Sequence[Result]) -> list[str]:
    """Return the cases that the default covers badly, by metric and balance."""
    cases: dict[tuple[str, str], list[Row]] = {}
    for each in large(found):
        row = each.row
        if each.method == DEFAULT and row.coverage < POOR:
            cases.setdefault((row.metric, row.balance), []).append(row)
    count = sum(map(len, cases.values()))
    asked = sum(each.method == DEFAULT for each in large(found))
    summary = f"{count} of {asked} cases (metric, K, N, balance) with N ≥ {LARGE}."
    order = {(m.name, balance): None for m in METRICS for balance in BALANCES}
    table = [
        [f"`{key[0]}`", key[1], percent(min(row.coverage for row in cases[key])), spots(cases[key])]
        for key in order
        if key in cases
    ]
    return [summary, markdown(["metric", "gold", "lowest", "where"], table)] if table else [summary]


def coverage_warnings(rows: Sequence[Row]) -> str:
    """Return every case that the default covers badly, for the package: small ones, too."""
    found = [e.row for e in related(rows) if e.method == DEFAULT and e.row.coverage < POOR]
    lines = [f"{r.metric},{r.levels},{r.items},{r.balance},{r.coverage:.3f}" for r in found]
    return "\n".join(["metric,levels,items,gold,coverage", *lines]) + "\n"


def spots(rows: Iterable[Row]) -> str:
    """Return the numbers of items and levels of some cases."""
    by_items: dict[int, list[int]] = {}
    for row in sorted(rows):
        by_items.setdefault(row.items, []).append(row.levels)
    return "; ".join(
        f"N {size:,}: K {', '.join(map(str, levels))}" for size, levels in sorted(by_items.items())
    )


def place(design: Design) -> str:
    """Return a cell of the design in words."""
    return f"K {design.levels}, N {design.items:,}, {design.balance}"


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as a list in words."""
    *first, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(first)} or {last}" if first else last


def main() -> None:
    """Simulate what is missing, print the page, and write it where asked to."""
    options = parse_options("Study the coverage of intervals.", "coverage", add_more=add_warnings)
    levels, sizes = (QUICK_LEVELS, QUICK_SIZES) if options.quick else (LEVELS, SIZES)
    check(levels, options.resamples)
    work = partial(study, replicates=options.replicates, resamples=options.resamples)
    rows = simulate(designs(levels, sizes), work, Row, options)
    publish(page(rows), options)
    if options.warnings:
        options.warnings.write_text(coverage_warnings(rows), encoding="utf-8")


def add_warnings(parser: argparse.ArgumentParser) -> None:
    """Add the file of cells that are covered badly, which the package reads."""
    parser.add_argument("--warnings", metavar="FILE", type=Path, help="where to write poor cells")


if __name__ == "__main__":
    main()
