"""How often `compare` calls equal systems different, and how often it finds a difference.

    python benchmarks/verdicts.py --write FILE    the study, about an hour on one core
    python benchmarks/verdicts.py --quick         a smoke test, half a minute

A run that was stopped resumes.
"""

from simulation import (  # isort: skip
    load_cells,
    parse_options,
    percent,
    publish,
    simulate,
    standard_error,
)

import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.randomization import choose_swap_count, randomize_differences
from ordinate.inference.resampling import Resampling
from ordinate.inference.system_differences import (
    compare_pairs,
    count_differing_units,
    list_pairs,
    resample_jointly,
)
from ordinate.metrics import Metric, find_metric
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.results.comparison import Comparison
from ordinate.results.comparison_settings import ComparisonSettings
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.panel import sum_single_items
from writing import markdown, wrapped

Array = NDArray[Any]
METRICS: tuple[Metric, ...] = tuple(find_metric(name) for name in DEFAULT_METRICS)
LEVELS = 5
SCALE = Scale.of(f"0..{LEVELS - 1}")
ALPHA, LIMIT = 0.05, 0.055
SEED = 1_000  # of the first replicate; the others follow
CLUSTER_SIZE = 5
SPREAD = 0.8  # standard deviation of errors, in levels, before they are rounded
SHARED = 0.23  # share of the variance that an item's difficulty adds to all systems alike
ICC = 0.37  # share of the variance that a system's error in a whole cluster has
SHIFT = 0.4  # levels that systems which are not exchangeable err up, or down
RATIOS = {"balanced": 1.0, "20:1": 20.0, "100:1": 100.0, "peaked 100:1": 100.0}

# --- the design, fixed beforehand ----------------------------------------------------------------


class Cell(NamedTuple):
    """A cell of the design: what is true of the systems, how many there are, and on which items."""

    truth: str  # equal, some differ, mirrored, or differ (for the power)
    systems: int
    items: int
    clusters: int  # 0 for none
    balance: str
    replicates: int


def bootstrap_cells() -> list[Cell]:
    """Return the cells in which the bootstrap had given false verdicts, few or many."""
    few = [Cell("equal", 2, CLUSTER_SIZE * g, g, "20:1", 2_000) for g in (10, 20, 29, 40)]
    return [*few, *(Cell("equal", 5, 300, 0, b, 2_000) for b in ("20:1", "balanced"))]


def power_cells() -> list[Cell]:
    """Return the cells with balanced gold, in which the bootstrap held its level."""
    return [
        *(Cell("differ", 2, items, 0, "balanced", 2_000) for items in (100, 300, 1_000)),
        Cell("differ", 2, 200, 40, "balanced", 2_000),
        Cell("differ", 5, 300, 0, "balanced", 1_000),
        Cell("differ", 10, 300, 0, "balanced", 500),
    ]


def error_cells() -> list[Cell]:
    """Return corners, centre and one factor at a time of systems, items, clusters and balance.

    Many systems take longer, and so have fewer replicates.
    """
    both, symmetric = ("balanced", "100:1"), ("balanced", "peaked 100:1")
    replicates = {2: 2_000, 5: 2_000, 10: 1_000, 20: 400}

    def cross(
        truth: str, systems: Sequence[int], units: Sequence[int], balances: Sequence[str], size: int
    ) -> list[Cell]:
        return [
            Cell(truth, s, max(1, size) * n, n if size else 0, balance, replicates[s])
            for s in systems
            for n in units
            for balance in balances
        ]

    rare = both[1:]
    return [
        *cross("equal", (2,), (50, 300, 5_000), both, 0),
        *cross("equal", (5, 10, 20), (50,), both, 0),
        *cross("equal", (10,), (300,), both, 0),
        *cross("equal", (20,), (300,), rare, 0),
        *cross("equal", (5,), (5_000,), rare, 0),
        *cross("equal", (2,), (8, 100), both, CLUSTER_SIZE),
        *cross("equal", (5,), (8, 20, 100), rare, CLUSTER_SIZE),
        *cross("equal", (10,), (8, 20), rare, CLUSTER_SIZE),
        *cross("equal", (20,), (20,), rare, CLUSTER_SIZE),
        *cross("some differ", (5,), (50, 300), both, 0),
        *cross("some differ", (5,), (8, 20), rare, CLUSTER_SIZE),
        *cross("some differ", (10,), (300,), rare, 0),
        *cross("mirrored", (2,), (50, 300, 1_000), symmetric, 0),
        *cross("mirrored", (2,), (20,), symmetric, CLUSTER_SIZE),
        *cross("mirrored", (5,), (300,), symmetric[1:], 0),
    ]


def quick_cells() -> list[Cell]:
    """Return a few small cells."""
    return [
        Cell("equal", 2, 50, 10, "20:1", 40),
        Cell("some differ", 3, 50, 0, "balanced", 40),
        Cell("mirrored", 2, 50, 0, "peaked 100:1", 40),
        Cell("differ", 2, 100, 0, "balanced", 40),
    ]


# --- the populations -----------------------------------------------------------------------------


def gold_shares(balance: str) -> Array:
    """Return the shares of the levels: from common to rare, or with the rare ones at both ends."""
    place = np.arange(LEVELS) / (LEVELS - 1)
    steps = np.abs(2.0 * place - 1.0) if balance.startswith("peaked") else place
    shares = RATIOS[balance] ** -steps
    return shares / shares.sum()


def spreads(cell: Cell) -> Array:
    """Return the standard deviation of each system's errors: equal ones come first."""
    factors = np.ones(cell.systems)
    if cell.truth == "some differ":
        equal = -(-cell.systems // 2)
        factors[equal:] += 0.25 * np.arange(1, cell.systems - equal + 1)
    if cell.truth == "differ":
        factors += 0.15 * np.arange(cell.systems)
    return SPREAD * factors


def simulate_panel(cell: Cell, rng: np.random.Generator) -> Panel:
    """Return a sample: errors of an item's difficulty, of a system in a cluster, and of its own.

    Systems with the same spread are exchangeable within items and clusters, given gold, unless half
    of them are the mirror image of the others.
    """
    gold = rng.choice(LEVELS, cell.items, p=gold_shares(cell.balance))
    clusters = np.arange(cell.items) % max(1, cell.clusters)
    within = ICC if cell.clusters else 0.0
    error = np.sqrt(1.0 - SHARED - within) * rng.normal(size=(cell.items, cell.systems))
    error += np.sqrt(within) * rng.normal(size=(max(1, cell.clusters), cell.systems))[clusters]
    error = spreads(cell) * (error + np.sqrt(SHARED) * rng.normal(size=(cell.items, 1)))
    if cell.truth == "mirrored":
        error += SHIFT * (-1.0) ** np.arange(cell.systems)
    predicted = np.clip(np.rint(gold[:, None] + error), 0, LEVELS - 1)
    rows = np.column_stack([gold, predicted]).astype(np.int16)
    names = tuple(f"s{k}" for k in range(cell.systems))
    groups = Groups(list(range(cell.clusters)), clusters) if cell.clusters else None
    return Panel.from_rows(SCALE, names, rows, sum_single_items(cell.items, None), groups)


def true_nulls(cell: Cell) -> Array:
    """Return which of the pairs are equal."""
    first, second = list_pairs(cell.systems)
    spread = spreads(cell)
    return spread[first] == spread[second]


# --- the verdicts on one sample ------------------------------------------------------------------


def compute_values(panel: Panel) -> Array:
    """Return the values [M, S] of systems; nan where a metric is undefined."""
    matrices = [panel.confusion_matrix(name) for name in panel.systems]
    batch = matrices[0].with_cells(np.stack([matrix.weights for matrix in matrices]))
    return np.array([metric(batch) for metric in METRICS])


def defined_pairs(values: Array) -> tuple[Array, Array]:
    """Return the pairs of systems of which both have a value."""
    first, second = list_pairs(len(values))
    there = ~np.isnan(values[first] + values[second])
    return first[there], second[there]


def verdicts_by_swaps(panel: Panel, resamples: int, seed: int) -> list[Array]:
    """Return for each metric which pairs [P] of systems are called different."""
    pairs = [defined_pairs(values) for values in compute_values(panel)]
    found = randomize_differences(panel, METRICS, pairs, Resampling(resamples, seed))
    least = 2.0 ** (1.0 - count_differing_units(panel))
    called = []
    for differences, (first, second) in zip(found, pairs, strict=True):
        adjusted = np.maximum(differences.compute_p_values().adjusted, least[first, second])
        apart = np.zeros((len(panel.systems), len(panel.systems)), bool)
        apart[first, second] = adjusted <= ALPHA + 1e-12
        called.append(apart[list_pairs(len(panel.systems))])
    return called


def verdicts_by_bootstrap(panel: Panel, resamples: int, seed: int) -> list[Array]:
    """Return the same by the bootstrap max-T, which decided before."""
    drawn = resample_jointly(panel, METRICS, Resampling(resamples, seed))
    called = []
    for metric, values in zip(METRICS, compute_values(panel), strict=True):
        first, second = defined_pairs(values)
        complete = drawn[metric.name]
        complete = complete[~np.isnan(complete[:, ~np.isnan(values)]).any(axis=1)]
        apart = np.zeros((len(values), len(values)), bool)
        if len(complete) >= 100 and len(first):
            found = compare_pairs(
                metric.size(values), metric.size(complete), first, second, 1.0 - ALPHA
            )
            apart[first, second] = found.adjusted <= ALPHA
        called.append(apart[list_pairs(len(values))])
    return called


def check(cells: Iterable[Cell]) -> None:
    """Stop if `compare` has other p-values than the study, or an adjusted one below its own."""
    for cell in cells:
        panel = simulate_panel(cell, np.random.default_rng(SEED))
        swaps = Resampling(choose_swap_count(cell.systems), 0)
        compared = Comparison.from_panel(panel, list(METRICS), ComparisonSettings(resamples=200))
        called = verdicts_by_swaps(panel, swaps.count, swaps.seed)
        for metric, ours in zip(METRICS, called, strict=True):
            board = compared.leaderboards[metric.name]
            theirs = sum(pair.verdict in {"better", "worse"} for pair in board.pairs)
            below = [pair for pair in board.pairs if pair.p_adjusted < pair.p]
            if (cell.systems > 2 and theirs != ours.sum()) or below:
                raise SystemExit(f"{cell}, {metric.name}: {theirs} verdicts, here {ours.sum()}.")


# --- one cell of the design ----------------------------------------------------------------------


class Row(NamedTuple):
    """What the tests said on one metric in one cell.

    `error` is the share of replicates in which any equal pair was called different, `power` that of
    the different pairs that were; nan where there are none. The last two are of the bootstrap.
    """

    truth: str
    systems: int
    items: int
    clusters: int
    balance: str
    replicates: int
    metric: str
    error: float
    power: float
    bootstrap_error: float
    bootstrap_power: float

    @property
    def cell(self) -> Cell:
        """The cell of the design."""
        return Cell(*self[:6])


def has_bootstrap(cell: Cell) -> bool:
    """Tell whether the bootstrap is measured on the same samples."""
    return cell in {*bootstrap_cells(), *power_cells(), *quick_cells()}


def study(cell: Cell, resamples: int) -> list[Row]:
    """Simulate a cell of the design."""
    tests = [verdicts_by_swaps, *([verdicts_by_bootstrap] if has_bootstrap(cell) else [])]
    equal = true_nulls(cell)
    place = [cell.systems, cell.items, cell.clusters, [*RATIOS].index(cell.balance)]
    place.append(("equal", "some differ", "mirrored", "differ").index(cell.truth))
    rates = np.full((4, len(METRICS), cell.replicates), np.nan)
    for replicate in range(cell.replicates):
        rng = np.random.default_rng([SEED + replicate, *place])
        panel = simulate_panel(cell, rng)
        for index, test in enumerate(tests):
            called = np.array(test(panel, resamples, SEED + replicate))
            if equal.any():
                rates[2 * index, :, replicate] = called[:, equal].any(axis=1)
            if not equal.all():
                rates[2 * index + 1, :, replicate] = called[:, ~equal].mean(axis=1)
    means = rates.mean(axis=-1).T.tolist()
    return [Row(*cell, metric.name, *mean) for metric, mean in zip(METRICS, means, strict=True)]


# --- the page ------------------------------------------------------------------------------------

TRUTHS = {
    "equal": "all systems equal",
    "some differ": "some differ: half of the systems equal, the others worse",
    "mirrored": "equal values, not exchangeable: half of the systems err up, half down",
}


def name_cell(cell: Cell) -> list[str]:
    """Return the fields of a cell as a table shows them."""
    return [
        f"{cell.systems}",
        f"{cell.items:,}",
        f"{cell.clusters or '–'}",
        cell.balance,
        f"{cell.replicates:,}",
    ]


CELL_HEAD = ("systems", "items", "clusters", "gold", "replicates")


def within(row: Row) -> bool:
    """Tell whether an error rate is within the limit, two Monte Carlo standard errors allowed."""
    return row.error <= LIMIT + 2.0 * standard_error(LIMIT, row.replicates)


def show_error(row: Row) -> str:
    """Return the error rate in percent, bold where it is beyond the limit."""
    return percent(row.error) if within(row) else f"**{percent(row.error)}**"


def error_table(rows: Sequence[Row], truth: str) -> str:
    """Return the error rates of the cells of one kind: a row for each cell."""
    cells = dict.fromkeys(row.cell for row in rows if row.truth == truth)
    body = [
        name_cell(cell) + [show_error(row) for row in rows if row.cell == cell] for cell in cells
    ]
    return markdown([*CELL_HEAD, *(f"`{metric.name}`" for metric in METRICS)], body)


def both_table(rows: Sequence[Row], cells: Sequence[Cell], field: str) -> str:
    """Return the rates of swaps and bootstrap on the same samples: a row for each metric."""
    head, body = ["metric"], [[f"`{metric.name}`"] for metric in METRICS]
    for cell in cells:
        units = f"{cell.clusters} clusters" if cell.clusters else f"{cell.items:,} items"
        head.append(f"{cell.systems} systems, {units}, {cell.balance}")
        for line, row in zip(body, (row for row in rows if row.cell == cell), strict=True):
            line.append(f"{percent(row.error)} / {percent(row.bootstrap_error)}")
            if field == "power":
                line[-1] = f"{percent(row.power)} / {percent(row.bootstrap_power)}"
    return markdown(head, body)


def power_noise(row: Row) -> float:
    """Return the standard error of a difference in power, as if the samples were not the same."""
    errors = (standard_error(x, row.replicates) for x in (row.power, row.bootstrap_power))
    return float(np.hypot(*errors))


def power_loss(rows: Sequence[Row]) -> str:
    """Say how the power of swaps differs from that of the bootstrap."""
    compared = [row for row in rows if row.truth == "differ"]
    if not compared:
        return ""
    gains = [row.power - row.bootstrap_power for row in compared]
    beyond = [row for row in compared if row.power - row.bootstrap_power < -2.0 * power_noise(row)]
    worst = min(compared, key=lambda row: row.power - row.bootstrap_power)
    text = (
        "On balanced gold, where the bootstrap max-T held its level, the power on the same samples "
        f"is on average {100 * statistics.fmean(gains):+.1f} points from it; the largest loss is "
        f"{100 * -min(gains):.1f} points ({worst.metric}, {worst.systems} systems, "
        f"{worst.items:,} items). "
    )
    if beyond:
        named = ", ".join(dict.fromkeys(row.metric for row in beyond))
        text += (
            f"In {len(beyond)} of {len(compared)} pairs of a cell and a metric the loss is above "
            f"two standard errors ({named}; see Power for the reason)."
        )
    return text


def verdict(rows: Sequence[Row]) -> str:
    """Return the sentences on top of the page."""
    tested = [row for row in rows if row.truth in TRUTHS]
    exact = [row for row in tested if row.truth != "mirrored"]
    beyond = [row for row in tested if not within(row)]
    kept = sum(map(within, exact))
    worst = max(exact, key=lambda row: row.error)
    text = (
        f"Of systems that are exchangeable, `compare` called any equal two different in at most "
        f"5.5 % of the samples, two Monte Carlo standard errors allowed, in {kept:,} of "
        f"{len(exact):,} pairs of a design cell and a metric; the largest rate is "
        f"{percent(worst.error)} % ({worst.metric}, {worst.systems} systems, {worst.items:,} items"
        f"{f' in {worst.clusters} clusters' if worst.clusters else ''}, {worst.balance}, "
        f"{worst.replicates:,} replicates). "
    )
    other = [row for row in tested if row.truth == "mirrored"]
    if other:
        most = max(other, key=lambda row: row.error)
        text += (
            f"Of systems with equal values that are not exchangeable it is at most "
            f"{percent(most.error)} % ({most.metric}, {most.items:,} items, {most.balance}). "
        )
    missed = f"Beyond the limit, in bold below: {len(beyond)}. " if beyond else ""
    return (text + missed + power_loss(rows)).strip()


def page(rows: Sequence[Row], resamples: int, design_cells: int) -> str:
    """Return the page of the study."""
    cells = list(dict.fromkeys(row.cell for row in rows))
    old = [cell for cell in bootstrap_cells() if cell in cells]
    power = [cell for cell in power_cells() if cell in cells]
    design = (
        f"Gold has {LEVELS} levels: balanced, or falling geometrically to a level that is 20 or "
        "100 times as rare, or peaked, with the rare levels at both ends. A prediction is gold "
        f"plus an error, rounded to a level; errors have a standard deviation of {SPREAD} levels, "
        f"of whose square {100 * SHARED:.0f} % is an item's difficulty that all systems share "
        f"and, in clusters of {CLUSTER_SIZE} items, {100 * ICC:.0f} % is a system's own error in "
        "the whole cluster. Equal systems have the same distribution of errors. Where some differ, "
        "the spread of the others is larger by a quarter, a half and so on, and only pairs of "
        f"equal systems count. Mirrored systems err by {SHIFT} levels up or down on symmetric "
        "gold: their values are equal, whatever the metric, but they are not exchangeable. For the "
        "power, the spread grows by 15 % from each system to the next, and all pairs count. "
        "Corners, the centre and one factor at a time are taken from the cross of 2 to 20 "
        "systems, 50 to 5,000 items and 8 to 100 clusters."
    )
    method = (
        f"Verdicts are at 5 %, by randomisation max-T with {resamples:,} swaps (all swaps up to "
        "14 units that differ), where `compare` takes 9,999 for up to ten systems and 1,999 "
        "beyond. Before the study runs, its verdicts are checked against those of `compare`. "
        f"Seeds are {SEED:,} and up, one for each replicate. An error rate of 5 % has a standard "
        f"error of {100 * standard_error(0.05, 2000):.1f} points with 2,000 replicates, "
        f"{100 * standard_error(0.05, 1000):.1f} with 1,000 and "
        f"{100 * standard_error(0.05, 400):.1f} with 400. The design was fixed before the study "
        f"was run, and all of its {design_cells} cells are shown"
        f"{'.' if len(cells) == design_cells else f' as far as they are done: {len(cells)}.'}"
    )
    parts = [
        "# False verdicts and power of comparisons",
        wrapped(
            "`make verdicts` writes this page. It reports how often `ordinate compare` calls equal "
            "systems significantly different, by metric, and how often it finds a difference."
        ),
        wrapped(verdict(rows)),
        "## Design",
        wrapped(design),
        wrapped(method),
    ]
    if old:
        parts += [
            "## Where the bootstrap failed",
            wrapped(
                "Samples with a false verdict, in percent: randomisation max-T / the bootstrap "
                "max-T that decided before, on the same samples, of equal systems."
            ),
            both_table(rows, old, "error"),
        ]
    if power:
        parts += [
            "## Power",
            wrapped(
                "Different pairs that were called different, in percent: randomisation max-T / "
                "bootstrap max-T, on the same samples."
            ),
            both_table(rows, power, "power"),
            wrapped(
                "Where a metric takes few values on a small sample (accuracy, accuracy within one "
                "level, the mean absolute error), swaps often give exactly the difference of the "
                "data. These ties count as extreme, as in every exact test (for accuracy it is the "
                "exact McNemar test), so the true level is below 5 % and some power is lost. Half "
                "of the ties (the mid-p) would win that back, but a verdict could then contradict "
                "the exact test of the same pair in the same report, so ties count in full. With "
                "40 clusters the bootstrap resamples are a little too narrow for every metric, so "
                "part of what it finds there is not power but a level above 5 % (its false "
                "verdicts with 40 clusters are in the table above)."
            ),
        ]
    parts.append("## Family-wise error")
    parts.append(
        wrapped(
            "Samples in which any two equal systems were called different, in percent; bold where "
            "that is above 5.5 % and two Monte Carlo standard errors."
        )
    )
    for truth, title in TRUTHS.items():
        if any(cell.truth == truth for cell in cells):
            parts += [f"### {title[0].upper()}{title[1:]}", error_table(rows, truth)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the study, and write its page."""
    options = parse_options(
        __doc__ or "",
        "verdicts",
        replicates=0,
        resamples=999,
        add_more=lambda parser: parser.add_argument(
            "--so-far", action="store_true", help="run nothing, and show the cells that are done"
        ),
    )
    cells = quick_cells() if options.quick else [*bootstrap_cells(), *power_cells(), *error_cells()]
    design = len(cells)
    if options.so_far:
        done = load_cells(options.file, {"resamples": options.resamples})
        cells = [cell for cell in cells if tuple(cell) in done]
    else:
        check(quick_cells())
    rows = simulate(cells, partial(study, resamples=options.resamples), Row, options)
    publish(page(rows, options.resamples, design), options)


if __name__ == "__main__":
    main()
