"""Benchmark of regression metrics against scikit-learn: ratios within one run, on one thread.

    python benchmarks/regression.py --write FILE    the benchmark, about two minutes
    python benchmarks/regression.py --quick         a smoke test

The page has every case and every target, the missed ones with their reason.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import gc
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.metrics as sk
import torch
import torchmetrics.functional.regression as tm
from numpy.typing import NDArray

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.regression import estimate_regression_metrics
from ordinate.metrics import find_metric
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries.regression import ROWS_PER_BLOCK as CHUNK
from ordinate.summaries.regression import Moments
from writing import BURST, Call, Target, burst, launch, log, markdown, processor, shown, wrapped

Floats = NDArray[np.float64]
ITEMS, QUICK_ITEMS = 1_000_000, 100_000
ROWS, QUICK_ROWS = 10_000_000, 100_000  # of the Parquet file
ROUNDS, QUICK_ROUNDS, FILE_RUNS = 15, 3, 3
SEED = 20_240_601
METRICS = {name: find_metric(name, Moments) for name in ("rmse", "mae", "r2", "max_error")}
SCIKIT_LEARN: dict[str, Callable[..., Any]] = {
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
    "r2": sk.r2_score,
    "max_error": sk.max_error,
}
OURS, WITH_INTERVALS, REPORT = "Ordinate", "Ordinate, all intervals", "Ordinate, whole report"
PEER, TORCH, PASSES, READING = "scikit-learn", "torchmetrics", "bare passes", "reading"
SHARE, PEAK = 0.25, 300.0  # of scikit-learn's time; MB


def columns(n: int) -> tuple[Floats, Floats]:
    """Return densities, and predictions with heavy-tailed errors."""
    rng = np.random.default_rng(SEED)
    y = rng.normal(673.27, 104.26, n)
    return y, y + 40.0 * rng.standard_t(5, n)


# --- the contenders ------------------------------------------------------------------------------


def by_ordinate(y: Floats, p: Floats) -> dict[str, float]:
    """Return the four values from one pass."""
    table = Moments.of(y, p, order=2)
    return {name: float(metric(table)) for name, metric in METRICS.items()}


def with_intervals(y: Floats, p: Floats) -> dict[str, float]:
    """Return the four values, each with its interval where there is one."""
    found = estimate_regression_metrics(
        list(METRICS.values()), Moments.of(y, p), ConfidenceIntervals()
    )
    return {name: one.value for name, one in found.items()}


def bare_passes(y: Floats, p: Floats) -> None:
    """Make the passes that these four values need over rows in the cache, and nothing else."""
    e, size, one = np.ones((3, CHUNK))
    for start in range(0, len(y), CHUNK):
        here, there = y[start : start + CHUNK], p[start : start + CHUNK]
        f, s, ones = (row[: len(here)] for row in (e, size, one))
        np.subtract(there, here, out=f)
        np.abs(f, out=s)
        _ = s.max(), s.sum(), here @ ones, f @ ones, here @ here, here @ f, f @ f


def by_scikit_learn(y: Floats, p: Floats) -> dict[str, float]:
    """Return the four values from four calls."""
    return {name: float(call(y, p)) for name, call in SCIKIT_LEARN.items()}


def by_torchmetrics(y: torch.Tensor, p: torch.Tensor) -> dict[str, float]:
    """Return the three values that torchmetrics has in one pass each."""
    return {
        "rmse": float(tm.mean_squared_error(p, y, squared=False)),
        "mae": float(tm.mean_absolute_error(p, y)),
        "r2": float(tm.r2_score(p, y)),
    }


def contenders(n: int) -> dict[str, Call]:
    """Return what each of them does with the same columns."""
    y, p = columns(n)
    tensors = torch.from_numpy(y), torch.from_numpy(p)
    return {
        OURS: lambda: by_ordinate(y, p),
        WITH_INTERVALS: lambda: with_intervals(y, p),
        REPORT: lambda: evaluate_regression(y, p).metrics,
        PEER: lambda: by_scikit_learn(y, p),
        TORCH: lambda: by_torchmetrics(*tensors),
        PASSES: lambda: bare_passes(y, p),
        READING: lambda: (y.sum(), p.sum()),
    }


def check(calls: dict[str, Call]) -> None:
    """Stop if they disagree: ratios of other work would say nothing."""
    wanted = calls[PEER]()
    for who in (OURS, WITH_INTERVALS, TORCH):
        for name, value in calls[who]().items():
            if not np.isclose(value, wanted[name], rtol=1e-9):
                raise SystemExit(f"{who} finds {name} {value}, {PEER} {wanted[name]}.")


# --- measuring -----------------------------------------------------------------------------------


def measure(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Time all calls in turn, round after round, so that noise hits all of them."""
    times: dict[str, list[float]] = {who: [] for who in calls}
    gc.disable()
    for number in range(rounds):
        log(f"round {number + 1}")
        for who, call in calls.items():
            call()  # after another contender, the first call finds the caches full of its data
            times[who] += burst(call)
            gc.collect()
    gc.enable()
    return times


class File(NamedTuple):
    """What summing up a Parquet file costs."""

    rows: int
    seconds: float
    peak: float
    whole: float  # the peak of reading the columns with pyarrow, and nothing else


SUMMING = """
import sys
from ordinate.readers.columns import ItemColumns
from ordinate.readers.regression import sum_files
print(sum_files([sys.argv[1]], ItemColumns(target="target", predicted="predicted")).moments.n)
"""
READ = """
import sys
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
print(table["target"].to_numpy().sum(), table["predicted"].to_numpy().sum())
"""


def measure_file(rows: int) -> File:
    """Sum up a Parquet file in a process of its own."""
    y, p = columns(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "large.parquet"))
        pq.write_table(pa.table({"target": y, "predicted": p}), path)
        del y, p
        log("Parquet")
        runs = [launch(sys.executable, "-c", SUMMING, path) for _ in range(FILE_RUNS)]
        _, whole = launch(sys.executable, "-c", READ, path)
    seconds, peaks = zip(*runs, strict=True)
    return File(rows, statistics.median(seconds), max(peaks), whole)


# --- the page ------------------------------------------------------------------------------------


def targets(times: dict[str, float], best: dict[str, float], n: int, file: File) -> list[Target]:
    """Return what was to be reached."""
    return [
        Target(
            f"RMSE, MAE, R² and max error of {n:,} pairs, against scikit-learn",
            SHARE,
            max(times[OURS] / times[PEER], best[OURS] / best[PEER]),
            f"The bare passes in NumPy take {best[PASSES] / best[PEER]:.2f}× on their own.",
        ),
        Target(
            f"peak memory of a Parquet file of {file.rows:,} rows",
            PEAK,
            file.peak / 1e6,
            "The engine took more memory in this run than the target allows.",
            unit=" MB",
        ),
    ]


METHOD = (
    "All contenders run in one process on one thread, in turn, round after round, so that noise "
    f"hits all of them; in each a call is repeated for {BURST:g} s after one that does not count, "
    "with the garbage collector off. scikit-learn's median differs by up to a factor of two from "
    "run to run, so the target holds for the larger of two ratios: that of the medians and of the "
    "best times. Before timing, all must compute the same values. Only ratios within a run are "
    "comparable across machines."
)
WHAT = (
    "**Ordinate** is `Moments.of(y, p, order=2)` and the four metrics; **all intervals** collects "
    "moments of order 4 and computes the confidence interval of each metric that has one; **whole "
    "report** is `evaluate_regression`, with nine metrics, their confidence intervals, the exact "
    "median error and three baselines. **scikit-learn** is `root_mean_squared_error`, "
    "`mean_absolute_error`, `r2_score` and `max_error`; **torchmetrics** has no max error, so it "
    "is three calls. **bare passes** are the minimal NumPy calls for the four values, chunk by "
    "chunk, without validation and summation. **reading** is NumPy's `sum()` of both columns."
)


def page(times: dict[str, list[float]], n: int, file: File, load: float) -> str:
    """Return the page in Markdown."""
    middle = {who: statistics.median(found) for who, found in times.items()}
    best = {who: min(found) for who, found in times.items()}
    head = ["target", "limit", "measured", "", "why"]
    rows = [
        [
            who,
            shown(middle[who] * 1e3),
            shown(best[who] * 1e3),
            str(len(times[who])),
            shown(middle[who] / middle[PEER]),
            shown(best[who] / best[PEER]),
        ]
        for who in times
    ]
    libraries = ("ordinate", "numpy", "scikit-learn", "torch", "torchmetrics", "pyarrow", "duckdb")
    used = ", ".join(f"{name} {version(name)}" for name in libraries)
    parts = [
        "# Benchmark: run time of regression metrics",
        wrapped(METHOD),
        wrapped(WHAT),
        wrapped(f"Versions: Python {platform.python_version()}, {used}."),
        wrapped(f"Processor: {processor()}. Load before the run: {load:.2f}."),
        "## Targets",
        markdown(head, [target.row() for target in targets(middle, best, n, file)]),
        f"## Times of {n:,} pairs",
        "Milliseconds, and how many times scikit-learn's they are.",
        markdown(["", "median", "best", "repetitions", "median ratio", "best ratio"], rows),
        "## A file",
        wrapped(
            f"A Parquet file of {file.rows:,} rows is summarised inside DuckDB in a new process, "
            f"with a histogram of the errors: {file.seconds:.2f} s (the median of {FILE_RUNS} "
            f"runs, the start of Python included), {file.peak / 1e6:.0f} MB at the peak (the "
            f"largest of them). Reading both columns with pyarrow takes {file.whole / 1e6:.0f} MB. "
            "DuckDB chooses its own number of threads."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure regression metrics.")
    parser.add_argument("--quick", action="store_true", help="small data only: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    n, rows = (QUICK_ITEMS, QUICK_ROWS) if options.quick else (ITEMS, ROWS)
    calls = contenders(n)
    check(calls)
    times = measure(calls, QUICK_ROUNDS if options.quick else ROUNDS)
    text = page(times, n, measure_file(rows), load)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
