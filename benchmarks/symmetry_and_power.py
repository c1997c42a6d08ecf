"""How often Bowker's test errs, and how well a pilot foresees the items that a difference takes.

    python benchmarks/symmetry_and_power.py --write FILE    the study, about ten minutes
    python benchmarks/symmetry_and_power.py --quick         a smoke test, some seconds

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import math
from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from interval_coverage import scatter, steepness
from ordinate.errors import NotApplicable
from ordinate.inference.distributions import chi_square_tail
from ordinate.inference.paired_tests import bowker_test
from ordinate.inference.resampling import FEWEST_RESAMPLES, Resampling
from ordinate.inference.sample_size import Spreads, estimate_spreads
from ordinate.metrics import Metric, find_metric
from ordinate.results.sample_size import (
    SampleSizeSettings,
    compute_needed_interval,
    compute_needed_items,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.panel import sum_single_items
from writing import markdown, wrapped

Array = NDArray[Any]
SEED = 1_019
BALANCES = {"balanced": 1.0, "20:1": 20.0}

# The design, and the rule, fixed before the study was run: a test of symmetry may reject in 5 % of
# the tables plus two Monte Carlo standard errors. Of the intervals of the needed items, the one in
# use is the shortest of those whose mean coverage is within a point of the highest; of equally
# short ones the first in the list.
SYMMETRY_LEVELS, QUICK_LEVELS = (3, 4, 5, 6), (3, 5)
SYMMETRY_ITEMS, QUICK_ITEMS = (30, 80, 300, 1_000), (30, 300)
ALPHA = 0.05
PILOTS, QUICK_PILOTS = (100, 400, 1_600), (100, 400)
CLUSTERED_PILOTS = (100, 400)
CLUSTER_SIZE = 5
CLUSTER_SPREAD = 0.6  # of the shift, in levels, that a cluster's items share
POWER_LEVELS = 5
COPIED = 0.5  # of the second system's predictions are the first one's
POPULATION_CLUSTERS = 50_000
METRICS: tuple[Metric, ...] = tuple(
    map(find_metric, ("mae", "cem_ord", "quadratic_kappa", "macro_mae", "f1_macro"))
)
PLAN = SampleSizeSettings(difference=0.02)
FEW_ITEMS = 10  # of a gold level
LARGEST_COUNT = 1e9  # items of a population that a metric sees as counts


def gold_shares(levels: int, balance: str) -> Array:
    """Return the shares of the gold levels, falling geometrically from the first to the last."""
    shares = BALANCES[balance] ** (-np.arange(levels) / (levels - 1))
    return shares / shares.sum()


# --- Bowker's test -------------------------------------------------------------------------------


class SymmetryCell(NamedTuple):
    """Two systems that are equally good: their predictions of N items, against each other."""

    study: str
    levels: int
    items: int
    balance: str


class SymmetryRow(NamedTuple):
    """How often each form of the test rejects symmetry, and what the test in use rested on."""

    study: str
    levels: int
    items: int
    balance: str
    replicates: int
    in_use: float
    chi_square_all_pairs: float
    chi_square_occurring_pairs: float
    enumerated: float
    resampled: float


def study_symmetry(cell: SymmetryCell, replicates: int) -> list[SymmetryRow]:
    """Simulate tables of two exchangeable systems, and test each."""
    rng = np.random.default_rng([SEED, cell.levels, cell.items, [*BALANCES].index(cell.balance)])
    near = scatter(cell.levels, steepness(cell.levels))
    shares = np.einsum("g,ga,gb->ab", gold_shares(cell.levels, cell.balance), near, near)
    tables = rng.multinomial(cell.items, shares.reshape(-1), replicates).astype(float)
    tables = tables.reshape(-1, cell.levels, cell.levels)
    tests = [bowker_test(table, seed) for seed, table in enumerate(tables)]
    rejected = np.mean([test.p <= ALPHA for test in tests])
    resampled = np.mean([test.resamples is not None for test in tests])
    by_chi_square = np.mean([bool(test.degrees_of_freedom) for test in tests])
    rates = reject_by_chi_square(tables)
    enumerated = 1.0 - resampled - by_chi_square
    return [SymmetryRow(*cell, replicates, float(rejected), *rates, enumerated, resampled)]


def reject_by_chi_square(tables: Array) -> tuple[float, float]:
    """Return how often chi-square rejects: with all pairs of levels, and those that occur."""
    upper = np.triu_indices(tables.shape[-1], 1)
    there, back = tables[:, *upper], tables.swapaxes(1, 2)[:, *upper]
    counts = there + back
    parts = np.divide((there - back) ** 2, counts, out=np.zeros_like(counts), where=counts > 0)
    statistic = parts.sum(axis=1)
    all_pairs = [chi_square_tail(x, len(upper[0])) <= ALPHA for x in statistic]
    occurring = np.maximum(1, (counts > 0).sum(axis=1)).tolist()
    some = [chi_square_tail(x, d) <= ALPHA for x, d in zip(statistic, occurring, strict=True)]
    return float(np.mean(all_pairs)), float(np.mean(some))


# --- the items that a difference takes -----------------------------------------------------------


class PowerCell(NamedTuple):
    """A pilot of two systems: its items, and how gold fills the levels; alone or in clusters."""

    study: str
    metric: str
    items: int
    balance: str
    clustered: bool


class PowerRow(NamedTuple):
    """How often an interval of the needed items has the true number.

    `left` is how often that is below the lower bound, `factor` the median of upper / lower bound.
    `absent` is the share of pilots without an interval; all other shares are of those with one.
    `common` are pilots with ten items in every gold level. The middle 95 % of the needed items of
    all pilots lie between `lowest` and `highest`.
    """

    study: str
    metric: str
    items: int
    balance: str
    clustered: bool
    method: str
    replicates: int
    truth: int
    coverage: float
    left: float
    right: float
    factor: float
    lowest: float
    highest: float
    absent: float
    common: float
    coverage_common: float


def study_power(cell: PowerCell, replicates: int, resamples: int) -> list[PowerRow]:
    """Simulate pilots, and plan from each."""
    metric = find_metric(cell.metric)
    truth = find_true_items(metric, cell.balance, clustered=cell.clustered)
    key = [SEED, cell.items, [*BALANCES].index(cell.balance), int(cell.clustered)]
    rng = np.random.default_rng(key)  # the same pilots for all metrics
    needed, common = [], []
    bounds: dict[str, list[Bounds]] = {method: [] for method in METHODS}
    for seed in range(replicates):
        pilot = draw_pilot(cell, rng)
        spreads = spread_in(pilot, metric, Resampling(resamples, seed))
        if spreads is None:
            continue
        needed.append(compute_needed_items(spreads.difference, PLAN) or 0)
        gold = np.bincount(pilot.rows[:, 0], pilot.weights, minlength=POWER_LEVELS)
        common.append(gold.min() >= FEW_ITEMS)
        for method, bound in METHODS.items():
            bounds[method].append(bound(spreads))
    whole = (*np.quantile(needed, [0.025, 0.975]).tolist(), 1.0 - len(needed) / replicates)
    return [
        PowerRow(*cell, method, replicates, truth, *found[:4], *whole, *found[4:])
        for method, each in bounds.items()
        for found in [performance(truth, np.array(each, float), np.array(common))]
    ]


def performance(truth: int, bounds: Array, common: Array) -> list[float]:
    """Return coverage, misses to both sides, width as a factor, and both of common levels."""
    low, high = bounds.T
    left, right = truth < low, truth > high
    inside = ~(left | right)
    of_common = inside[common].mean() if common.any() else math.nan
    means = (inside.mean(), left.mean(), right.mean(), np.median(high / low))
    return [float(x) for x in (*means, common.mean(), of_common)]


def spread_in(pilot: Panel, metric: Metric, resamples: Resampling) -> Spreads | None:
    """Return the spreads in a pilot, where it gives an interval."""
    try:
        spreads = estimate_spreads(pilot, metric, resamples)
    except NotApplicable:
        return None
    return None if spreads.log_variances is None else spreads


Bounds = tuple[float, float]


def bounds_in_use(spreads: Spreads) -> Bounds:
    """Return the bounds of the needed items, as `ordinate power` gives them."""
    return compute_needed_interval(spreads, PLAN) or (math.nan, math.nan)


def bounds_without_bias(spreads: Spreads) -> Bounds:
    """Return normal bounds around the logarithm less the bias that the bootstrap shows."""
    variances, _ = logarithms(spreads)
    low, high = bounds_in_use(spreads)
    away = math.exp(-float(variances.mean()))
    return low * away, high * away


def bounds_by_percentile(spreads: Spreads) -> Bounds:
    """Return the middle of the bootstrap's own numbers of items."""
    variances, needed = logarithms(spreads)
    low, high = np.quantile(variances, TAILS)
    return needed * math.exp(low), needed * math.exp(high)


def bounds_by_reflection(spreads: Spreads) -> Bounds:
    """Return the basic bootstrap: percentiles, turned around the estimate."""
    low, high = bounds_by_percentile(spreads)
    needed = logarithms(spreads)[1]
    return needed**2 / high, needed**2 / low


def logarithms(spreads: Spreads) -> tuple[Array, int]:
    """Return the logarithms of variances in bootstrap pilots less the pilot's, and its items."""
    needed = compute_needed_items(spreads.difference, PLAN) or 0
    spread, variances = spreads.difference or 0.0, spreads.log_variances
    return np.asarray(variances) - 2.0 * math.log(spread), needed


TAILS = [0.025, 0.975]
METHODS = {
    "normal": bounds_in_use,
    "without bias": bounds_without_bias,
    "basic": bounds_by_reflection,
    "percentile": bounds_by_percentile,
}


@cache
def find_true_items(metric: Metric, balance: str, *, clustered: bool) -> int:
    """Return the items that the population itself asks for."""
    if clustered:
        rng = np.random.default_rng([SEED, 0])
        whole = draw_clusters(POPULATION_CLUSTERS, balance, rng)
    else:
        shares = population(balance)
        whole = to_panel(np.round(shares * LARGEST_COUNT))
    spreads = estimate_spreads(whole, metric, Resampling(FEWEST_RESAMPLES))
    return compute_needed_items(spreads.difference, PLAN) or 0


def population(balance: str) -> Array:
    """Return the shares of gold x first x second; the second is the first one for some items."""
    near = scatter(POWER_LEVELS, steepness(POWER_LEVELS))
    alone = np.einsum("ga,gb->gab", near, near)
    copied = near[:, :, None] * np.eye(POWER_LEVELS)
    both = COPIED * copied + (1.0 - COPIED) * alone
    return gold_shares(POWER_LEVELS, balance)[:, None, None] * both


def draw_pilot(cell: PowerCell, rng: np.random.Generator) -> Panel:
    """Return a pilot of so many items."""
    if cell.clustered:
        return draw_clusters(cell.items // CLUSTER_SIZE, cell.balance, rng)
    shares = population(cell.balance)
    counts = rng.multinomial(cell.items, shares.reshape(-1)).reshape(shares.shape)
    return to_panel(counts.astype(float))


def to_panel(counts: Array) -> Panel:
    """Return the panel of counts of gold x first x second."""
    rows = np.stack(np.nonzero(counts), axis=1).astype(np.int16)
    weights = counts[counts > 0]
    return Panel(scale(), ("a", "b"), rows, weights.astype(np.int64), weights, weights)


def draw_clusters(count: int, balance: str, rng: np.random.Generator) -> Panel:
    """Return clusters of five items that share a shift of each system's predictions."""
    items = count * CLUSTER_SIZE
    gold = rng.choice(POWER_LEVELS, items, p=gold_shares(POWER_LEVELS, balance))
    shift = rng.normal(0.0, CLUSTER_SPREAD, (count, 2)).repeat(CLUSTER_SIZE, axis=0)
    noise = rng.normal(0.0, CLUSTER_SPREAD, (items, 2))
    seen = np.clip(np.rint(gold[:, None] + shift + noise), 0, POWER_LEVELS - 1)
    rows = np.column_stack([gold, seen]).astype(np.int16)
    groups = Groups(list(range(count)), np.arange(items) // CLUSTER_SIZE)
    return Panel.from_rows(scale(), ("a", "b"), rows, sum_single_items(items, None), groups)


@cache
def scale() -> Scale:
    """Return the scale of the pilots."""
    return Scale.of(f"0..{POWER_LEVELS - 1}")


# --- the run -------------------------------------------------------------------------------------


def list_symmetry_cells(levels: Iterable[int], items: Iterable[int]) -> list[SymmetryCell]:
    """Return the full cross of levels, items and balances."""
    return [SymmetryCell("symmetry", *cell) for cell in product(levels, items, BALANCES)]


def list_power_cells(items: Iterable[int], clustered_items: Iterable[int]) -> list[PowerCell]:
    """Return every metric with every pilot."""
    pilots = [(n, False) for n in items] + [(n, True) for n in clustered_items]
    return [
        PowerCell("power", metric.name, n, balance, clustered)
        for (n, clustered), balance, metric in product(pilots, BALANCES, METRICS)
    ]


def main() -> None:
    """Run what is left of the study, and write its page."""
    options = parse_options(
        __doc__ or "", "symmetry-and-power", resamples=100, quick_replicates=100
    )
    quick = options.quick
    symmetry = simulate(
        list_symmetry_cells(
            QUICK_LEVELS if quick else SYMMETRY_LEVELS, QUICK_ITEMS if quick else SYMMETRY_ITEMS
        ),
        partial(study_symmetry, replicates=options.replicates),
        SymmetryRow,
        options,
    )
    power = simulate(
        list_power_cells(QUICK_PILOTS if quick else PILOTS, () if quick else CLUSTERED_PILOTS),
        partial(study_power, replicates=options.replicates // 2, resamples=options.resamples),
        PowerRow,
        options,
    )
    publish(describe(symmetry, power), options)


# --- the page ------------------------------------------------------------------------------------


def describe(symmetry: Sequence[SymmetryRow], power: Sequence[PowerRow]) -> str:
    """Return the page: verdicts, design, all cells."""
    parts = [
        "# Tests of symmetry, and the items that a pilot asks for",
        wrapped(
            "`make symmetry-and-power` writes this page. It reports how often Bowker's test of "
            "symmetry rejects where both systems are alike, and how often the confidence interval "
            "of the number of items that `ordinate power` gives has the true number."
        ),
        wrapped(symmetry_verdict(symmetry)),
        wrapped(power_verdict(power)),
        "## Design",
        *map(wrapped, design(symmetry, power)),
        "## Bowker's test: all cells",
        wrapped(
            f"Tables rejected at the {percent(ALPHA)} % level, in percent. *In use* is the test of "
            "the package; *enumerated* and *resampled* say how often it tried all outcomes or drew "
            "9,999 of them, otherwise it was chi-square with the pairs of levels that occur. *All "
            "pairs* is chi-square with K(K − 1)/2 degrees of freedom, *occurring pairs* with those "
            "that have items, whatever their numbers."
        ),
        symmetry_table(symmetry),
        "## The interval of the needed items: methods",
        wrapped(
            "Means over all cells, over those with pilots of independent items, and over those "
            "with clusters, in percent. *Factor* is the median of the upper over the lower bound, "
            "*left* how often the true number was below the lower bound, *right* above the upper."
        ),
        method_table(power),
        "## The interval of the needed items: all cells",
        wrapped(
            "Of the method in use. *True* is the number of items that the population itself asks "
            "for, to see a difference of 0.02 in 80 % of the samples; another difference would "
            "multiply it and both bounds by the same number. *Pilots* is the range of the middle "
            "95 % of the numbers that pilots ask for. *Common* is the share of pilots with ten "
            "items or more in every gold level, with their own coverage; *none* the share of "
            "pilots without an interval."
        ),
        power_table(power),
    ]
    return "\n\n".join(parts) + "\n"


def symmetry_verdict(rows: Sequence[SymmetryRow]) -> str:
    """Return what the sizes of the tests are."""
    allowed = ALPHA + 2.0 * standard_error(ALPHA, rows[0].replicates)
    above = sum(row.in_use > allowed for row in rows)
    ranges = {
        name: f"{percent(min(values))} to {percent(max(values))} %"
        for name in ("in_use", "chi_square_all_pairs", "chi_square_occurring_pairs")
        for values in [[getattr(row, name) for row in rows]]
    }
    return (
        f"**Bowker's test**, conditional on the pairs of levels that occur, rejects symmetric "
        f"tables in {ranges['in_use']} of the samples at the {percent(ALPHA)} % level; {above} of "
        f"{len(rows)} cells are above {percent(allowed)} %. Chi-square with all pairs as degrees "
        f"of freedom, as it was before, rejects in {ranges['chi_square_all_pairs']}, with the "
        f"pairs that occur in {ranges['chi_square_occurring_pairs']}: it is conservative where "
        "pairs are rare."
    )


def power_verdict(rows: Sequence[PowerRow]) -> str:
    """Return how far the interval can be trusted."""
    rows = in_use(rows)
    scarce = [row for row in rows if averages_rare_levels(row)]
    others = [row for row in rows if not averages_rare_levels(row)]
    return (
        "**The interval of the needed items** (nominal 95 %) has the true number, from the lowest "
        f"to the highest cell: {list_coverage(others)}. Averages over levels on 20:1 gold are "
        "apart: "
        f"{list_coverage(scarce)}. The true number is above the interval in "
        f"{percent(mean_of(rows, 'right'))} % of the pilots, and below it in "
        f"{percent(mean_of(rows, 'left'))} %, on average: a pilot that has not met rare large "
        "errors does not know of them. `ordinate power` states the range for pilots of the same "
        "size, and warns where a metric averages over a level with fewer than ten items, or with "
        "fewer than fifty and a tenth of those of the commonest level; these numbers were set "
        "after the results were known."
    )


def averages_rare_levels(row: PowerRow) -> bool:
    """Tell whether a metric averages over levels some of which are rare."""
    return bool(find_metric(row.metric).macro) and row.balance != "balanced"


def list_coverage(rows: Sequence[PowerRow]) -> str:
    """Return the lowest and the highest coverage for each kind of pilot."""
    pilots = sorted({(row.clustered, row.items) for row in rows})
    return "; ".join(
        f"pilots of {name_pilot(clustered, items)} {percent(min(found))} to {percent(max(found))} %"
        for clustered, items in pilots
        for found in [[r.coverage for r in rows if (r.clustered, r.items) == (clustered, items)]]
    )


def name_pilot(clustered: bool, items: int) -> str:  # noqa: FBT001 - a factor of the design
    """Return the size of a pilot in words."""
    return f"{items // CLUSTER_SIZE} clusters" if clustered else f"{items:,} items"


def in_use(rows: Iterable[PowerRow]) -> list[PowerRow]:
    """Return the rows of the method of the package."""
    return [row for row in rows if row.method == next(iter(METHODS))]


def design(symmetry: Sequence[SymmetryRow], power: Sequence[PowerRow]) -> list[str]:
    """Return what was simulated, in paragraphs."""
    size_error = 100 * standard_error(ALPHA, symmetry[0].replicates)
    coverage_error = 100 * standard_error(0.95, power[0].replicates)
    populations = (
        "Fixed before the study was run. Gold is balanced, or falls geometrically from the first "
        "level to the last, which is twenty times as rare (20:1). Predictions scatter around gold: "
        "P(j | i) is proportional to exp(−a |i − j|), with the a that gives balanced gold an "
        "accuracy of 0.6."
    )
    symmetry_cells = (
        f"*Symmetry*: the full cross of K = {listed(symmetry, 'levels')} levels, N = "
        f"{listed(symmetry, 'items')} items and both gold distributions. Two systems scatter "
        "independently of each other; the table of their predictions is symmetric in the "
        f"population. {symmetry[0].replicates:,} replicates a cell; a rate of 5 % has a Monte "
        f"Carlo standard error of {size_error:.1f} points. A test may reject in 5 % of the tables "
        "plus two such errors."
    )
    power_cells = (
        f"*Needed items*: K = {POWER_LEVELS}, pilots of {listed(power, 'items')} items, both gold "
        f"distributions, {', '.join(f'`{metric.name}`' for metric in METRICS)}. The second system "
        "predicts as the first for half of the items, and independently for the others. In "
        f"clusters of {CLUSTER_SIZE} items, each system's predictions are gold plus a normal shift "
        f"of the cluster and a normal error of the item, both with a standard deviation of "
        f"{CLUSTER_SPREAD:g} levels, rounded to a level; here the true number is that of "
        f"{POPULATION_CLUSTERS:,} clusters. {power[0].replicates:,} replicates a cell, "
        "100 bootstrap pilots from each (the package draws 500, which would change a bound by some "
        f"percent of its distance); a coverage of 95 % has a Monte Carlo standard error of "
        f"{coverage_error:.1f} points."
    )
    methods = (
        "All methods start from the logarithms of the variance of the difference in bootstrap "
        "pilots, with influences recomputed in each. *Normal*: the estimate times exp(±1.96 of "
        "their standard deviations). *Without bias*: the same, less the bias that they show. "
        "*Percentile*: their quantiles. *Basic*: these, turned around the estimate. All four were "
        "tried beforehand with another seed on eight pilots of this kind. The rule: the "
        "shortest of those whose mean coverage is within a point of the highest, of equally short "
        f"ones the simplest. It picks **{pick_method(power)}**."
    )
    return [populations, symmetry_cells, power_cells, methods]


def listed(rows: Sequence[Any], field: str) -> str:
    """Return the values of a factor."""
    *first, last = [f"{x:,}" for x in sorted({getattr(row, field) for row in rows})]
    return f"{', '.join(first)} and {last}" if first else last


def mean_of(rows: Sequence[PowerRow], field: str) -> float:
    """Return the mean of a field."""
    return sum(getattr(row, field) for row in rows) / len(rows)


def pick_method(rows: Sequence[PowerRow]) -> str:
    """Return what the rule picks."""
    parts = {m: [row for row in rows if row.method == m] for m in METHODS}
    best = max(mean_of(part, "coverage") for part in parts.values())
    enough = [m for m, part in parts.items() if mean_of(part, "coverage") >= best - 0.01]
    return min(enough, key=lambda m: round(mean_of(parts[m], "factor"), 6))


def symmetry_table(rows: Sequence[SymmetryRow]) -> str:
    """Return the sizes of the tests in all cells."""
    head = ["K", "N", "gold", "in use", "all pairs", "occurring pairs", "enumerated", "resampled"]
    lines = [
        [str(row.levels), f"{row.items:,}", row.balance, *(percent(abs(x)) for x in row[5:])]
        for row in rows
    ]
    return markdown(head, lines)


def method_table(rows: Sequence[PowerRow]) -> str:
    """Return coverage and width of each method."""
    head = ["pilots", "method", "coverage", "lowest", "left", "right", "factor"]
    kinds = {
        "all": rows,
        "items": [row for row in rows if not row.clustered],
        "clusters": [row for row in rows if row.clustered],
    }
    lines = []
    for (kind, part), method in product(kinds.items(), METHODS):
        own = [row for row in part if row.method == method]
        if own:
            means = [mean_of(own, x) for x in ("coverage", "left", "right", "factor")]
            shown = [percent(x) for x in (means[0], min(r.coverage for r in own), *means[1:3])]
            lines.append([kind, method, *shown, f"{means[3]:.2f}"])
    return markdown(head, lines)


def power_table(rows: Sequence[PowerRow]) -> str:
    """Return the coverage of the method in use in all cells."""
    head = ["metric", "pilot", "gold", "true", "pilots", "coverage", "left", "right", "factor"]
    head += ["common", "coverage of these", "none"]
    return markdown(head, [power_line(row) for row in in_use(rows)])


def power_line(row: PowerRow) -> list[str]:
    """Return a line of the table."""
    of_common = "–" if math.isnan(row.coverage_common) else percent(row.coverage_common)
    return [
        f"`{row.metric}`",
        name_pilot(row.clustered, row.items),
        row.balance,
        f"{row.truth:,}",
        f"{row.lowest:,.0f} to {row.highest:,.0f}",
        *map(percent, (row.coverage, row.left, row.right)),
        f"{row.factor:.2f}",
        percent(row.common),
        of_common,
        percent(row.absent),
    ]


if __name__ == "__main__":
    main()
