"""Coverage of macro F1 and macro precision where tables are too many to resample each: MOVER.

    python benchmarks/many_tables.py --write FILE    the study, some minutes
    python benchmarks/many_tables.py --quick         a smoke test

A run that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from interval_coverage import LEVEL, Design, designs, empty, middles, samples, truths
from ordinate.inference.confidence_intervals import ConfidenceIntervals, estimate_metrics_of_each
from ordinate.inference.interval_methods import MOST_RESAMPLED
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric
from writing import markdown, wrapped

LEVELS, QUICK_LEVELS = (3, 5, 7), (3,)
SIZES, QUICK_SIZES = (20, 50, 200, 1_000, 5_000), (50, 200)
METRICS = tuple(map(find_metric, ("f1_macro", "precision_macro")))
RESAMPLED = 4  # one table in so many is resampled, too
ENOUGH = 0.93  # what the coverage study requires of a method
METHODS = ("mover", "percentile")


class Row(NamedTuple):
    """What a method did for a metric in a cell of the design; coverage and width are means."""

    levels: int
    items: int
    balance: str
    metric: str
    method: str
    tables: int
    coverage: float
    left: float
    right: float
    width: float


def study(design: Design, replicates: int, resamples: int) -> list[Row]:
    """Return the rows of one cell of the design."""
    cells, seeds = samples(design, replicates)
    base, true = empty(design.levels), truths(design)
    found = estimate_metrics_of_each(METRICS, base.with_cells(cells), ConfidenceIntervals(LEVEL))
    rows = []
    for metric in METRICS:
        estimates = [each[metric.name] for each in found]
        if {each.method for each in estimates} != {"mover"}:
            raise SystemExit(f"{design}: {metric.name} has no intervals by MOVER.")
        ends = np.array([(each.low, each.high) for each in estimates])
        rows.append(summarise(design, metric.name, "mover", ends, true[metric.name]))
    drawn = []
    for k in range(0, replicates, RESAMPLED):
        table, how = base.with_cells(cells[k]), Resampling(resamples, seeds[k])
        drawn.append(middles(resample_metrics(METRICS, table, make_resampler(table), how)))
    for metric, ends in zip(METRICS, np.swapaxes(drawn, 0, 1), strict=True):
        rows.append(summarise(design, metric.name, "percentile", ends, true[metric.name]))
    return rows


def summarise(design: Design, metric: str, method: str, ends: Any, truth: float) -> Row:
    """Return how often the intervals that there are [tables, 2] contain the truth, and widths."""
    low, high = ends[~np.isnan(ends).any(axis=1)].T
    left, right = float((truth < low).mean()), float((truth > high).mean())
    width = float((high - low).mean())
    return Row(*design, metric, method, len(low), 1.0 - left - right, left, right, width)


def page(rows: list[Row], replicates: int, resamples: int) -> str:
    """Return the page."""
    error = standard_error(LEVEL, replicates)
    resampled = standard_error(LEVEL, -(-replicates // RESAMPLED))
    return "\n\n".join(
        [
            "# Study: macro F1 and macro precision of many tables",
            wrapped(
                "`make many-tables` writes this page. Where a report has more than "
                f"{MOST_RESAMPLED} subgroups or systems, their tables are not resampled one by "
                "one: macro F1 and macro precision, means over levels of a ratio, have the "
                "interval of each level (Wilson's for the share that its ratio is a function of, "
                "with a design effect for the items), combined by the method of variance estimates "
                "recovery (MOVER). How often does a nominal "
                "95 % interval contain the value of the population, beside the percentile "
                "bootstrap that fewer tables get?"
            ),
            wrapped(
                "The populations are those of the [coverage study](interval-coverage.md): "
                "predictions scatter around gold, 60 % of them are right where gold is balanced, "
                "and with *1:100* the rarest level is a hundredth of the most frequent one. Each "
                f"cell of the design has {replicates:,} tables, of which one in {RESAMPLED} is "
                f"resampled {resamples:,} times, too. The Monte Carlo standard error at 95 % is "
                f"{percent(error)} and {percent(resampled)} points."
            ),
            "## What was found",
            "\n".join(f"- {wrapped(line, '  ')}" for line in list_findings(rows)),
            *(part for metric in METRICS for part in list_tables(metric.name, rows)),
        ]
    )


def list_findings(rows: list[Row]) -> list[str]:
    """Return what the page says first: by metric, and by how gold fills the levels."""
    findings = []
    for metric in METRICS:
        for balance, kind in (("balanced", "balanced gold"), ("1:100", "gold 1:100")):
            ours = [x for x in rows if (x.metric, x.balance) == (metric.name, balance)]
            told = (describe(method, [x for x in ours if x.method == method]) for method in METHODS)
            findings.append(f"`{metric.name}`, {kind}: {'; '.join(told)}.")
    return findings


def describe(method: str, cells: list[Row]) -> str:
    """Say in how many cells of the design a method covers enough, and where it is worst."""
    enough = sum(x.coverage >= ENOUGH - 2 * standard_error(ENOUGH, x.tables) for x in cells)
    worst = min(cells, key=lambda x: x.coverage)
    return (
        f"`{method}` covers at least {percent(ENOUGH)} % less two standard errors in {enough} of "
        f"{len(cells)} cells, at worst {percent(worst.coverage)} % ({worst.levels} levels, "
        f"{worst.items:,} items)"
    )


def list_tables(metric: str, rows: list[Row]) -> list[str]:
    """Return a heading, and the table of all cells of the design for a metric."""
    by_cell = {(*x[:3], x.method): x for x in rows if x.metric == metric}
    cells = sorted({key[:3] for key in by_cell}, key=lambda x: (x[2] != "balanced", *x[:2]))
    lines = []
    for cell in cells:
        ours, theirs = (by_cell[*cell, method] for method in METHODS)
        lines.append(
            [
                cell[2],
                str(cell[0]),
                f"{cell[1]:,}",
                percent(ours.coverage),
                percent(theirs.coverage),
                f"{percent(ours.left)} / {percent(ours.right)}",
                f"{ours.width:.3f}",
                f"{theirs.width:.3f}",
            ]
        )
    head = ("gold", "levels", "items", "mover %", "percentile %", "missed below / above %")
    return [f"## `{metric}`", markdown([*head, "width", "width of percentile"], lines)]


def main() -> None:
    """Simulate, and write the page."""
    options = parse_options(__doc__.splitlines()[0], "many-tables", replicates=1_000, resamples=500)
    levels = QUICK_LEVELS if options.quick else LEVELS
    sizes = QUICK_SIZES if options.quick else SIZES
    work = partial(study, replicates=options.replicates, resamples=options.resamples)
    rows = simulate(designs(levels, sizes), work, Row, options)
    publish(page(rows, options.replicates, options.resamples) + "\n", options)


if __name__ == "__main__":
    main()
