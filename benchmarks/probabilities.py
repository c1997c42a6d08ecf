"""Benchmark of proper scores against other libraries: ratios within one run, on one thread.

    python benchmarks/probabilities.py --write FILE    the benchmark, two minutes
    python benchmarks/probabilities.py --quick         a smoke test

Ordinate finds four scores in one pass over the rows; the peers find one each.
"""

import os

os.environ.update(  # read by the libraries when they are imported
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    NUMEXPR_NUM_THREADS="1",
)

import argparse
import gc
import platform
import statistics
import time
import tracemalloc
from functools import reduce
from importlib.metadata import version
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scoringrules
import sklearn.metrics as sk
import torch
import torchmetrics.functional.classification as tm
from numpy.typing import NDArray
from torchmetrics.classification import MulticlassCalibrationError

from ordinate.inference.probability_scores import JACKKNIFE_BLOCKS
from ordinate.metrics import Metric, find_metric
from ordinate.results.calibration import collect_required_parts, select_probability_metrics
from ordinate.scale import Scale
from ordinate.summaries.reliability import Reliability, ReliabilityParts
from writing import Call, Table, Target, log, markdown, processor, shown, wrapped

SIZE, QUICK_SIZE, LEVELS, BINS = 1_000_000, 50_000, 6, 10
FEWER = (10_000, 100_000)  # rows, against torchmetrics only
ROUNDS, QUICK_ROUNDS = 15, 3
SEED = 20_240_602
SCORES = ("ece", "brier", "rps", "log_loss")
MOST = 50.0  # MB in addition to the input
ROUNDING = 2e-4  # of torchmetrics, which adds a million numbers up in single precision

OURS, SINGLE, SPREAD, SECTION = (
    "four scores",
    "four scores, float32",
    f"four scores, {JACKKNIFE_BLOCKS} blocks",
    f"whole section, {JACKKNIFE_BLOCKS} blocks",
)
FUNCTION, CLASS, FUNCTION_SINGLE = (
    "torchmetrics ECE, function",
    "torchmetrics ECE, class",
    "torchmetrics ECE, function, float32",
)
LOG, BRIER, RPS = "scikit-learn log loss", "scikit-learn Brier score", "scoringrules RPS"


class Rows(NamedTuple):
    """Gold levels and rows of probabilities, in double and in single precision."""

    gold: NDArray[np.int64]
    double: NDArray[np.float64]
    single: NDArray[np.float32]


def rows(n: int) -> Rows:
    """Return rows that lean to a level, and gold levels drawn from them: a calibrated system."""
    rng = np.random.default_rng(SEED)
    middle = rng.normal((LEVELS - 1) / 2, LEVELS / 3, n)
    weight = np.exp(-0.8 * np.abs(np.arange(LEVELS) - middle[:, None]) ** 1.3)
    found = weight / weight.sum(axis=1, keepdims=True)
    gold = (rng.random(n)[:, None] > found.cumsum(axis=1)).sum(axis=1)
    return Rows(np.clip(gold, 0, LEVELS - 1), found, found.astype(np.float32))


# --- the contenders ------------------------------------------------------------------------------


def scored(
    metrics: list[Metric], parts: ReliabilityParts, gold: Any, given: Any, **how: Any
) -> list[float]:
    """Return metrics of one pass over the rows."""
    table = Reliability.of(gold, given, Scale.of(f"0..{LEVELS - 1}"), parts, **how)
    whole = table.pooled if table.shape else table
    return [float(metric(whole)) for metric in metrics]


def updated(given: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
    """Return the calibration error by the class of torchmetrics."""
    metric = MulticlassCalibrationError(LEVELS, n_bins=BINS)
    metric.update(given, gold)
    return metric.compute()


def contenders(data: Rows) -> dict[str, Call]:
    """Return everything that is timed."""
    gold, double, single = data
    four = [find_metric(name, Reliability) for name in SCORES]
    parts = reduce(or_, (metric.required_parts for metric in four))
    usual = select_probability_metrics(None, BINS)
    section = collect_required_parts(usual, BINS)
    levels, wide, narrow = map(torch.from_numpy, data)
    error = tm.multiclass_calibration_error
    return {
        OURS: lambda: scored(four, parts, gold, double),
        SINGLE: lambda: scored(four, parts, gold, single),
        SPREAD: lambda: scored(four, parts, gold, double, blocks=JACKKNIFE_BLOCKS),
        SECTION: lambda: scored(usual, section, gold, double, blocks=JACKKNIFE_BLOCKS),
        FUNCTION: lambda: error(wide, levels, num_classes=LEVELS, n_bins=BINS),
        CLASS: lambda: updated(wide, levels),
        FUNCTION_SINGLE: lambda: error(narrow, levels, num_classes=LEVELS, n_bins=BINS),
        LOG: lambda: sk.log_loss(gold, double, labels=range(LEVELS)),
        BRIER: lambda: sk.brier_score_loss(gold, double, labels=range(LEVELS)),
        RPS: lambda: scoringrules.rps_score(gold + 1, double).mean() / (LEVELS - 1),
    }


def check(calls: dict[str, Call]) -> None:
    """Stop if two libraries disagree: ratios of other work would say nothing."""
    ece, brier, rps, log_loss = calls[OURS]()
    wanted = {FUNCTION: ece, CLASS: ece, LOG: log_loss, BRIER: brier, RPS: rps}
    for who, ours in wanted.items():
        found = float(calls[who]())
        room = ROUNDING if who in {FUNCTION, CLASS} else 1e-9
        if abs(found - ours) > room:
            raise SystemExit(f"{who} finds {found}, Ordinate {ours}.")


# --- measuring -----------------------------------------------------------------------------------


class Timing(NamedTuple):
    """The median and the best time in seconds."""

    median: float
    best: float


def measure(calls: dict[str, Call], rounds: int) -> dict[str, Timing]:
    """Time all calls in turn, round after round, so that noise hits all of them."""
    times: dict[str, list[float]] = {who: [] for who in calls}
    gc.disable()
    for number in range(rounds):
        log(f"round {number + 1} of {rounds}")
        for who, call in calls.items():
            start = time.perf_counter()
            call()
            times[who].append(time.perf_counter() - start)
            gc.collect()
    gc.enable()
    return {who: Timing(statistics.median(found), min(found)) for who, found in times.items()}


def of_fewer(rounds: int) -> dict[int, dict[str, Timing]]:
    """Time four scores against torchmetrics' error for fewer rows."""
    found = {}
    for n in FEWER:
        calls = contenders(rows(n))
        found[n] = measure({who: calls[who] for who in (OURS, FUNCTION)}, rounds)
    return found


def peaks(calls: dict[str, Call]) -> dict[str, float]:
    """Return the memory in MB that Ordinate takes in addition to the rows, at its peak."""
    found = {}
    for who in (OURS, SINGLE, SPREAD, SECTION):
        gc.collect()
        tracemalloc.start()
        calls[who]()
        found[who] = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    return found


# --- the page ------------------------------------------------------------------------------------


def targets(
    timings: dict[str, Timing], memory: dict[str, float], fewer: dict[int, dict[str, Timing]]
) -> list[Target]:
    """Return what should be reached."""
    return [
        *(
            Target(f"{OURS} against {peer} alone", 1.0, ratio(timings, OURS, peer), SLOW)
            for peer in (FUNCTION, CLASS, LOG, BRIER)
        ),
        *(
            Target(
                f"the same against {FUNCTION} alone, {n:,} rows",
                1.0,
                ratio(found, OURS, FUNCTION),
                SLOW,
            )
            for n, found in fewer.items()
        ),
        *(
            Target(
                f"memory of {who} in addition to the rows",
                MOST,
                size,
                "The portions in which rows are read are too large.",
                unit=" MB",
            )
            for who, size in memory.items()
        ),
    ]


def ratio(timings: dict[str, Timing], who: str, other: str) -> float:
    """Return how many times as long as another one takes, by medians."""
    return timings[who].median / timings[other].median


SLOW = (
    "Four scores are more work than one error: the confusion matrix, the sums of the bins, a "
    "logarithm, and two squared errors of each level."
)
METHOD = (
    "All contenders run in one process on one thread, in turn, round after round, so that noise "
    "hits all of them; medians count. The rows are the same for all: a calibrated system with "
    f"{LEVELS} levels, a fixed seed. Before timing, all libraries must compute the same values "
    f"(torchmetrics within {ROUNDING:g}: it sums in single precision). Only ratios within a run "
    "are comparable across machines."
)
WHAT = f"""\
- **{OURS}**: `ece`, `brier`, `rps` and `log_loss` of one pass, gold labels and rows checked.
- **{SPREAD}**: the same, spread over blocks as the jackknife needs them.
- **{SECTION}**: all that the section of `evaluate` shows, without confidence intervals: nine
  metrics, bins of {LEVELS} levels and {LEVELS - 1} cumulative events, and the decomposition.
- **torchmetrics**: the calibration error alone, {BINS} bins, its arguments checked by default; as
  a function and as a class (`update` and `compute`).
- **scikit-learn**, **scoringrules**: one score each."""


LOAD = (
    "Processes that ran or waited to run, on average of the last minute (this one among them): "
    "{:.1f} before the run and {:.1f} after it."
)


def page(
    n: int,
    rounds: int,
    timings: dict[str, Timing],
    memory: dict[str, float],
    fewer: dict[int, dict[str, Timing]],
    load: tuple[float, float],
) -> str:
    """Return the whole page in Markdown."""
    found = targets(timings, memory, fewer)
    intro = f"`python benchmarks/probabilities.py --write …` writes this page. {METHOD}"
    parts = [
        "# Benchmark: run time of metrics of probabilities",
        wrapped(intro),
        WHAT,
        wrapped(f"Versions: Python {platform.python_version()}, {', '.join(versions())}."),
        wrapped(f"Processor: {processor()}. {LOAD.format(*load)}"),
        "## Targets",
        wrapped(
            f"{sum(target.met for target in found)} of {len(found)} are met. × are ratios of "
            f"times, of {n:,} rows unless stated otherwise."
        ),
        markdown(
            ["target", "limit", "measured", "verdict", "why it is missed"],
            [target.row() for target in found],
        ),
        f"## Times of {n:,} rows",
        wrapped(
            f"Milliseconds, {rounds} repetitions, and how many times as long as {FUNCTION} each "
            "takes by medians. Times hold for the machine above and this run only."
        ),
        markdown(
            ["who", "median", "best", "ratio", "MB in addition to the rows"], table(timings, memory)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def table(timings: dict[str, Timing], memory: dict[str, float]) -> Table:
    """Return a row for each contender."""
    return [
        [
            who,
            shown(timing.median * 1e3),
            shown(timing.best * 1e3),
            shown(ratio(timings, who, FUNCTION)),
            shown(memory[who]) if who in memory else "–",
        ]
        for who, timing in timings.items()
    ]


def versions() -> list[str]:
    """Return the libraries with their versions."""
    libraries = ("ordinate", "numpy", "torch", "torchmetrics", "scikit-learn", "scoringrules")
    return [f"{name} {version(name)}" for name in libraries]


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(
        description="Measure scores of probabilities against other libraries."
    )
    parser.add_argument("--quick", action="store_true", help="few rows only: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    torch.set_num_threads(1)
    n, rounds = (QUICK_SIZE, QUICK_ROUNDS) if options.quick else (SIZE, ROUNDS)
    calls = contenders(rows(n))
    check(calls)
    before = os.getloadavg()[0]
    timings = measure(calls, rounds)
    fewer = of_fewer(rounds)
    text = page(n, rounds, timings, peaks(calls), fewer, (before, os.getloadavg()[0]))
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
