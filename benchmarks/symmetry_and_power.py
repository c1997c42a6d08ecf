"""How often Bowker's test errs, and how well a pilot foresees the items that a difference takes.

    python benchmarks/symmetry_and_power.py --write FILE    the study, about ten minutes
    python benchmarks/symmetry_and_power.py --quick         a smoke test, some seconds

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import math
from collections.abc import Iterable
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from interval_coverage import scatter, steepness
from numpy.typing import NDArray

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
    assert spreads.difference is not None
    assert spreads.log_variances is not None
    needed = compute_needed_items(spreads.difference, PLAN) or 0
    return spreads.log_variances - 2.0 * math.log(spreads.difference), needed


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


def describe(symmetry: list[SymmetryRow], power: list[PowerRow]) -> str:
    return ""


if __name__ == "__main__":
    main()
