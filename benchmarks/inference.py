"""Benchmark of confidence intervals and comparisons: resampled cells against resampled items.

    python benchmarks/inference.py --write FILE    the benchmark, about eight minutes
    python benchmarks/inference.py --quick         a smoke test

Resamples of items build a confusion matrix for each replicate, as is usual with NumPy.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from ordinate import Scale
from ordinate.inference.resampling import BLOCK_SIZE, Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix
from writing import Target, launch, log, markdown, processor, shown, wrapped

Array = NDArray[Any]
METRICS = [
    find_metric(name)
    for name in [
        "accuracy",
        "accuracy_within",
        "macro_accuracy",
        "f1_macro",
        "quadratic_kappa",
        "mae",
        "macro_mae",
        "kendall_tau_b",
        "cem_ord",
        "mutual_information",
    ]
]
LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
SHARES = (0.10, 0.20, 0.25, 0.25, 0.15, 0.05)
SPREAD, SEED = 0.7, 20_240_601
RESAMPLES, ITEMS = 10_000, 1_000_000
SIZES = (1_000, 1_000_000, 1_000_000_000)
ROUNDS, COMMAND_RUNS = 7, 9
SYSTEMS = {50: 30.0, 500: 120.0}  # systems: seconds that their comparison may take
COMPARED = 5_000  # items


def codes(n: int) -> tuple[Array, Array]:
    """Return gold and predicted levels of so many items."""
    rng = np.random.default_rng(SEED)
    gold = rng.choice(len(LEVELS), n, p=SHARES)
    noise = np.rint(rng.normal(0.0, SPREAD, n)).astype(np.int64)
    return gold, np.clip(gold + noise, 0, len(LEVELS) - 1)


def table_of(n: int) -> ConfusionMatrix:
    """Return a table of so many items, in the shares of a million."""
    gold, predicted = codes(ITEMS)
    cells = np.bincount(gold * 6 + predicted, minlength=36) * (n / ITEMS)
    return ConfusionMatrix.from_counts(np.rint(cells).reshape(6, 6), Scale(LEVELS))


# --- resamples
# ---------------------------------------------------------------------------------------


class Costs(NamedTuple):
    """Seconds of the same resamples, done in several ways."""

    by_items: float
    by_cells: float
    alone: float  # on one thread
    sampling: float  # on one thread
    by_size: dict[int, float]


def by_items(count: int) -> Array:
    """Resample items, build a confusion matrix for each resample: the usual bootstrap."""
    gold, predicted = codes(ITEMS)
    rng = np.random.default_rng(0)
    scale = Scale(LEVELS)
    found = np.empty((count, len(METRICS)))
    for index in range(count):
        drawn = rng.integers(0, ITEMS, ITEMS)
        cells = np.bincount(gold[drawn] * 6 + predicted[drawn], minlength=36)
        table = ConfusionMatrix.from_counts(cells.reshape(6, 6), scale)
        found[index] = [metric(table) for metric in METRICS]
    return found


def by_cells(table: ConfusionMatrix) -> dict[str, Array]:
    """Draw cells, all replicates at once."""
    return resample_metrics(METRICS, table, make_resampler(table), Resampling(RESAMPLES))


def sampling(table: ConfusionMatrix) -> None:
    """Draw the same cells in the same blocks, and measure nothing."""
    redraw = make_resampler(table)
    Resampling(RESAMPLES).run_in_blocks(
        table.weights.size, lambda rng, size: redraw(rng, size)[:, 0, 0]
    )


def best(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the best time of each call, all taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: min(found) for name, found in times.items()}


def one_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return the call, kept to one thread."""

    def kept() -> Any:
        with mock.patch("os.cpu_count", return_value=1):
            return call()

    return kept


def measure_draws(count: int) -> Costs:
    """Measure resamples of cells, and so many resamples of items, scaled to all of them."""
    table = table_of(ITEMS)
    agree(table)
    log(f"resamples of items: {count:,}")
    start = time.perf_counter()
    by_items(count)
    items = (time.perf_counter() - start) * RESAMPLES / count
    log("resamples of cells")
    calls = {
        "cells": lambda: by_cells(table),
        "alone": one_thread(lambda: by_cells(table)),
        "sampling": one_thread(lambda: sampling(table)),
    }
    sized = {n: table_of(n) for n in SIZES}
    calls |= {f"{n}": (lambda t=t: by_cells(t)) for n, t in sized.items()}
    found = best(calls)
    sizes = {n: found[str(n)] for n in SIZES}
    return Costs(items, found["cells"], found["alone"], found["sampling"], sizes)


def agree(table: ConfusionMatrix) -> None:
    """Check that both ways give the same spread, before anything is timed."""
    slow, fast = by_items(60), by_cells(table)
    for index, metric in enumerate(METRICS):
        ratio = slow[:, index].std() / fast[metric.expression].std()
        if not 0.6 < ratio < 1.5:  # four standard errors of the spread of 60 resamples
            raise SystemExit(f"{metric.name}: the two ways of drawing differ ({ratio:.2f}).")


# --- commands ------------------------------------------------------------------------------------


class Commands(NamedTuple):
    """Seconds of new processes."""

    evaluate: float
    without: float
    import_numpy: float
    compare: dict[int, float]


def measure_commands(systems: tuple[int, ...]) -> Commands:
    """Measure the command line with and without intervals, and comparisons."""
    script = str(Path(sys.executable).with_name("ordinate"))
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.csv")
        write(small, {"predicted": 0.7}, 1_000)
        calls = {
            "evaluate": (script, "evaluate", str(small)),
            "without": (script, "evaluate", str(small), "--interval", "none"),
            "numpy": (sys.executable, "-c", "import numpy"),
        }
        log("cold commands")
        runs = [{k: launch(*c)[0] for k, c in calls.items()} for _ in range(COMMAND_RUNS + 1)]
        cold = {k: statistics.median(run[k] for run in runs[1:]) for k in calls}
        compared = {count: measure_compare(script, folder, count) for count in systems}
    return Commands(cold["evaluate"], cold["without"], cold["numpy"], compared)


def measure_compare(script: str, folder: str, count: int) -> float:
    """Return the seconds of a comparison of so many systems."""
    log(f"compare {count} systems")
    file = Path(folder, f"systems{count}.csv")
    spreads = {f"s{k}": 0.5 + 0.5 * k / count for k in range(count)}
    write(file, spreads, COMPARED)
    names = ",".join(metric.name for metric in METRICS)
    options = ("--gold", "gold", "--systems", ",".join(spreads), "--metrics", names)
    return launch(script, "compare", str(file), *options, "--format", "json")[0]


def write(file: Path, spreads: dict[str, float], n: int) -> None:
    """Write gold and systems that scatter around it."""
    rng = np.random.default_rng(SEED)
    gold = rng.choice(len(LEVELS), n, p=SHARES)
    columns = [gold]
    for spread in spreads.values():
        noise = np.rint(rng.normal(0.0, spread, n)).astype(np.int64)
        columns.append(np.clip(gold + noise, 0, len(LEVELS) - 1))
    labels = np.array(LEVELS)[np.stack(columns, axis=1)]
    lines = [",".join(["gold", *spreads]), *(",".join(row) for row in labels)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the page ------------------------------------------------------------------------------------


def targets(costs: Costs, commands: Commands) -> list[Target]:
    """Return every target with what was measured."""
    few, many = min(costs.by_size), max(costs.by_size)
    found = [
        Target(
            f"resamples of cells against resamples of items, {RESAMPLES:,} resamples, {ITEMS:,} "
            "items, ten metrics",
            5_000.0,
            costs.by_items / costs.by_cells,
            f"Of the {costs.alone * 1e3:.0f} ms on one thread, sampling takes "
            f"{costs.sampling * 1e3:.0f} ms; a second core has to be free to halve that.",
            at_least=True,
        ),
        Target(
            "resamples of cells with ten metrics against the sampling alone, one thread",
            3.0,
            costs.alone / costs.sampling,
            "The ten metrics read each table several times.",
        ),
        Target(
            f"resamples of a confusion matrix of {many:,} items against one of {few:,}",
            1.5,
            costs.by_size[many] / costs.by_size[few],
            "The multinomial of NumPy takes longer for large counts.",
        ),
        Target(
            "cold `ordinate evaluate` with intervals against `import numpy`",
            4.0,
            commands.evaluate / commands.import_numpy,
            "A new process has to load DuckDB and the random generators besides NumPy.",
        ),
    ]
    return found + [
        Target(
            f"`ordinate compare`, {count} systems, {COMPARED:,} items, ten metrics",
            SYSTEMS.get(count, 30.0),
            seconds,
            "The processor is slower than the one that the limit was set for.",
            unit=" s",
        )
        for count, seconds in commands.compare.items()
    ]


def page(costs: Costs, commands: Commands, count: int) -> str:
    """Return the whole page in Markdown."""
    scaled = "" if count == RESAMPLES else f" ({count:,} were made, and scaled)"
    method = (
        f"`make bench` writes this page. Ten metrics ({', '.join(m.name for m in METRICS)}) on "
        f"{len(LEVELS)} levels and {ITEMS:,} items, {RESAMPLES:,} resamples{scaled} of items "
        "against as many of cells. Resamples of items index both columns with random rows, count a "
        f"confusion matrix with `bincount` and compute the metrics. Best of {ROUNDS} rounds taken "
        "in turn; resamples of items once. Resamples of cells come in blocks of "
        f"{BLOCK_SIZE * 8 // 2**20} MiB, on all cores where there is more than one block. Commands "
        f"are new processes, their median of {COMMAND_RUNS} runs after one that fills the file "
        "cache; comparisons ran once. Only ratios within a run are comparable across machines; "
        "targets in seconds are not."
    )
    used = ", ".join(f"{name} {version(name)}" for name in ("ordinate", "numpy", "duckdb"))
    rows = [target.row() for target in targets(costs, commands)]
    parts = [
        "# Benchmark: run time of confidence intervals and comparisons",
        wrapped(method),
        wrapped(f"Versions: Python {platform.python_version()}, {used}."),
        wrapped(f"Processor: {processor()}."),
        "## Targets",
        markdown(["what", "target", "measured", "", "why"], rows),
        "## Times",
        "Milliseconds, on the machine above in this run.",
        markdown(["what", "ms"], times(costs, commands)),
    ]
    return "\n\n".join(parts) + "\n"


def times(costs: Costs, commands: Commands) -> list[list[str]]:
    """Return what was measured, in milliseconds."""
    found = {
        "resamples of items": costs.by_items,
        "resamples of cells": costs.by_cells,
        "resamples of cells, one thread": costs.alone,
        "sampling of cells alone, one thread": costs.sampling,
        **{f"resamples of cells, {n:,} items": seconds for n, seconds in costs.by_size.items()},
        "`import numpy`": commands.import_numpy,
        "`ordinate evaluate`": commands.evaluate,
        "`ordinate evaluate --interval none`": commands.without,
        **{f"`ordinate compare`, {n} systems": s for n, s in commands.compare.items()},
    }
    return [[what, shown(seconds * 1e3)] for what, seconds in found.items()]


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure intervals and comparisons.")
    parser.add_argument("--quick", action="store_true", help="few resamples of items: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    count = 50 if options.quick else RESAMPLES
    commands = measure_commands((5,) if options.quick else tuple(SYSTEMS))
    text = page(measure_draws(count), commands, count)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
