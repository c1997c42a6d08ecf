"""Benchmark of size: an evaluation of Parquet files of 10 million to a billion rows.

    python benchmarks/scale.py --write docs/studies/scale-benchmark.md    half an hour
    python benchmarks/scale.py --quick                                    a smoke test

Each contender is a process of its own, whose start counts, and so does its peak memory.
"""

import argparse
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import duckdb

from writing import Table, Target, launch, log, markdown, processor, shown, wrapped

SIZES, QUICK_SIZES = (10**7, 10**8, 10**9), (10**5, 10**6)
ROWS_PER_FILE = 5_000_000
MOST_IN_MEMORY = 10**7  # rows that pandas and scikit-learn are given
ROUNDS = {10**9: 2}  # else 5
TIMES, MEMORY, GROWTH = 1.3, 500.0, 1.3
MEGABYTE = 1e6

BY_HAND = """
import duckdb, sys
query = "SELECT gold, predicted, count(*) FROM read_parquet('{}/*.parquet') GROUP BY ALL"
print(duckdb.sql(query.format(sys.argv[1])).fetchall())
"""
POLARS = """
import polars, sys
rows = polars.scan_parquet(sys.argv[1] + "/*.parquet")
print(rows.group_by("gold", "predicted").len().collect(engine="streaming"))
"""
IN_MEMORY = """
import pandas, sys
from sklearn.metrics import classification_report, cohen_kappa_score
rows = pandas.read_parquet(sys.argv[1])
print(classification_report(rows["gold"], rows["predicted"]))
print(cohen_kappa_score(rows["gold"], rows["predicted"], weights="quadratic"))
"""
LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
OURS, HAND, SUBGROUPS = "ordinate evaluate", "DuckDB query by hand", "ordinate evaluate --by"
STREAM, MEMORY_BOUND = "Polars, streaming", "pandas and scikit-learn"


class Run(NamedTuple):
    """The best time of a contender at a size, and its peak memory."""

    rows: int
    who: str
    seconds: float
    megabytes: float


def write_rows(rows: int, folder: Path) -> None:
    """Write files of gold and predicted levels, near gold, and a language."""
    labels = ", ".join(f"'{level}'" for level in LEVELS)
    files = max(1, rows // ROWS_PER_FILE)
    with duckdb.connect() as connection:
        for k in range(files):
            first, last = k * rows // files, (k + 1) * rows // files
            connection.execute(
                f"COPY (SELECT [{labels}][1 + g] AS gold, [{labels}][1 + greatest(0, least(5, g + "
                "CAST(hash(i + 7) % 3 AS INTEGER) - 1))] AS predicted, "
                "['de', 'en', 'it'][1 + CAST(hash(i + 1) % 3 AS INTEGER)] AS language "
                f"FROM (SELECT i, CAST(hash(i) % 6 AS INTEGER) AS g FROM range({first}, {last}) "
                f"AS t(i))) TO '{folder}/part-{k:04}.parquet' (FORMAT parquet)"
            )


def list_commands(rows: int, folder: Path) -> dict[str, list[str]]:
    """Return what each contender runs."""
    python, pattern = sys.executable, f"{folder}/*.parquet"
    ours = [python, "-m", "ordinate", "evaluate", pattern]
    ours += ["--gold", "gold", "--predicted", "predicted"]
    found = {
        OURS: ours,
        HAND: [python, "-c", BY_HAND, str(folder)],
        STREAM: [python, "-c", POLARS, str(folder)],
        SUBGROUPS: [*ours, "--by", "language"],
    }
    if rows <= MOST_IN_MEMORY:
        found[MEMORY_BOUND] = [python, "-c", IN_MEMORY, str(folder)]
    return found


def measure(rows: int, folder: Path) -> list[Run]:
    """Run all contenders in turn, and keep the best time and the largest memory of each."""
    commands = list_commands(rows, folder)
    found: dict[str, list[tuple[float, float]]] = {who: [] for who in commands}
    for turn in range(ROUNDS.get(rows, 5)):
        for who, command in commands.items():
            found[who].append(launch(*command))
            log(f"{rows:,} rows, round {turn + 1}, {who}: {found[who][-1][0]:.2f} s")
    return [
        Run(rows, who, min(x for x, _ in runs), max(x for _, x in runs) / MEGABYTE)
        for who, runs in found.items()
    ]


def targets(runs: dict[tuple[int, str], Run], sizes: tuple[int, ...]) -> list[Target]:
    """Return what was expected, and what was measured."""
    largest = sizes[-1]
    reason = (
        "what does not grow with the rows (the start, metrics, intervals and the report), and for "
        "each file a description and a query of its own, so that errors name it"
    )
    ratios = [
        Target(
            f"time of the query by hand, {rows:,} rows",
            TIMES,
            runs[rows, OURS].seconds / runs[rows, HAND].seconds,
            reason,
        )
        for rows in sizes
    ]
    memory = runs[largest, OURS].megabytes
    before = runs[sizes[0], OURS].megabytes
    return [
        *ratios,
        Target(f"peak memory at {largest:,} rows", MEMORY, memory, "", unit=" MB"),
        Target(f"growth of memory from {sizes[0]:,} rows", GROWTH, memory / before, ""),
    ]


def page(runs: list[Run], sizes: tuple[int, ...]) -> str:
    """Return the page."""
    known = {(run.rows, run.who): run for run in runs}
    table: Table = [
        [
            f"{run.rows:,}",
            run.who,
            shown(run.seconds),
            shown(run.seconds / known[run.rows, HAND].seconds),
            shown(run.megabytes),
        ]
        for run in runs
    ]
    libraries = ("numpy", "duckdb", "polars", "pandas", "scikit-learn")
    return "\n\n".join(
        [
            "# Benchmark: files of any size",
            wrapped(
                "`make bench` writes this page. Rows of gold and predicted levels (6 of each, "
                f"predictions near gold) lie in Parquet files of {ROWS_PER_FILE:,} rows. Each "
                "contender is a process that starts cold, reads all files and ends; contenders "
                "run in turn, and the best time and the largest peak memory of each count. The "
                "query by hand counts pairs of labels and nothing else; `ordinate evaluate` "
                "checks labels against the scale and reports twelve metrics with intervals and "
                "baselines. pandas and scikit-learn, which hold all rows in memory, are given "
                f"{MOST_IN_MEMORY:,} rows at most."
            ),
            wrapped(
                f"Machine: {processor()}. Versions: "
                + ", ".join(f"{name} {version(name)}" for name in libraries)
                + "."
            ),
            "## Targets",
            markdown(
                ["claim", "target", "measured", "", "why"],
                [one.row() for one in targets(known, sizes)],
            ),
            "## All runs",
            markdown(["rows", "contender", "seconds", "× by hand", "peak MB"], table),
        ]
    )


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure evaluations of large files.")
    parser.add_argument("--quick", action="store_true", help="few rows: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    sizes = QUICK_SIZES if options.quick else SIZES
    runs: list[Run] = []
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="ordinate-scale-") as folder:
            log(f"writing {rows:,} rows")
            write_rows(rows, Path(folder))
            runs += measure(rows, Path(folder))
    text = page(runs, sizes)
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
