"""Benchmark of label metrics against other libraries: ratios within one run, on one thread.

    python benchmarks/labels.py --write FILE    the benchmark, about ten minutes
    python benchmarks/labels.py --quick         a smoke test, a minute or two

The page has every case and every target, the missed ones with their reason.
"""

import os

os.environ.update(  # read by the libraries when they are imported
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    NUMEXPR_NUM_THREADS="1",
    POLARS_MAX_THREADS="1",
)

import argparse
import gc
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import dlordinal.metrics as dl
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.metrics as sk
import torch
import torchmetrics.functional.classification as tm
from numpy.typing import NDArray

import ordinate
from writing import (
    BURST,
    Call,
    Table,
    Target,
    burst,
    last_cache,
    launch,
    log,
    markdown,
    processor,
    readable,
    shown,
    wrapped,
)

SIZES, QUICK_SIZES = (10_000, 1_000_000, 10_000_000), (10_000, 100_000)
LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
SHARES = (0.10, 0.20, 0.25, 0.25, 0.15, 0.05)
SPREAD = 0.7  # of predictions around gold, in levels
SEED = 20_240_601

ROUNDS, FEWEST = 5, 3  # of repetitions; a fast call is repeated more often within a round
LONG = 20.0  # seconds: after these, the fewest repetitions are enough
TOO_LONG = 60.0  # seconds: a call this slow is not repeated
COMMAND_RUNS, MEMORY_RUNS = 9, 3

Column = Any


# --- the data ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Gold and predicted labels of one kind, and the scale that they are on."""

    gold: Column
    predicted: Column
    scale: ordinate.Scale


def codes(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return gold levels in the shares of a language test, and predictions near them."""
    rng = np.random.default_rng(SEED)
    gold = rng.choice(len(LEVELS), size=n, p=SHARES)
    errors = np.rint(rng.normal(0, SPREAD, n)).astype(np.int64)
    return gold, np.clip(gold + errors, 0, len(LEVELS) - 1)


def pairs(n: int) -> dict[str, Pair]:
    """Return the same items in each kind of column."""
    gold, predicted = codes(n)
    texts = np.array(LEVELS, object)
    levels = pd.CategoricalDtype(LEVELS, ordered=True)
    numbers, cefr = ordinate.Scale.of(f"0..{len(LEVELS) - 1}"), ordinate.Scale.of("cefr")

    def categorical(column: NDArray[np.int64]) -> Column:
        return pd.Series(pd.Categorical.from_codes(column, dtype=levels))

    return {
        "int64": Pair(gold, predicted, numbers),
        "int8": Pair(gold.astype(np.int8), predicted.astype(np.int8), numbers),
        "categorical": Pair(categorical(gold), categorical(predicted), cefr),
        "object strings": Pair(texts[gold], texts[predicted], cefr),
    }


# --- the contenders ------------------------------------------------------------------------------

# By Ordinate's name of what they compute, where it has one: `check` compares the values.
SCIKIT_LEARN: dict[str, Callable[..., Any]] = {
    "accuracy": sk.accuracy_score,
    "macro_accuracy": sk.balanced_accuracy_score,
    "f1_macro": partial(sk.f1_score, average="macro"),
    "cohen_kappa": sk.cohen_kappa_score,
    "linear_kappa": partial(sk.cohen_kappa_score, weights="linear"),
    "quadratic_kappa": partial(sk.cohen_kappa_score, weights="quadratic"),
    "per level": partial(sk.classification_report, output_dict=True),
}
TORCHMETRICS: dict[str, Callable[..., Any]] = {
    "accuracy": partial(tm.multiclass_accuracy, average="micro"),
    "macro_accuracy": partial(tm.multiclass_accuracy, average="macro"),
    "f1_macro": partial(tm.multiclass_f1_score, average="macro"),
    "cohen_kappa": tm.multiclass_cohen_kappa,
    "linear_kappa": partial(tm.multiclass_cohen_kappa, weights="linear"),
    "quadratic_kappa": partial(tm.multiclass_cohen_kappa, weights="quadratic"),
    "table": tm.multiclass_confusion_matrix,
}
DLORDINAL: dict[str, Callable[..., Any]] = {
    "accuracy_within": dl.accuracy_off1,
    "macro_mae": dl.amae,
    "max_mae": dl.mmae,
    "min_sensitivity": dl.minimum_sensitivity,
}
PEERS = {"scikit-learn": SCIKIT_LEARN, "torchmetrics": TORCHMETRICS, "dlordinal": DLORDINAL}
OURS = ("report", "report as text", "matrix")
READS = ("sum", "max")


def by_scikit_learn(pair: Pair) -> dict[str, Any]:
    """Return what scikit-learn's set finds."""
    return {name: call(pair.gold, pair.predicted) for name, call in SCIKIT_LEARN.items()}


def by_dlordinal(pair: Pair) -> dict[str, Any]:
    """Return what dlordinal's set finds."""
    return {name: call(pair.gold, pair.predicted) for name, call in DLORDINAL.items()}


def by_torchmetrics(gold: torch.Tensor, predicted: torch.Tensor) -> dict[str, Any]:
    """Return what torchmetrics' set finds, its arguments checked as it does by default."""
    return {
        name: call(predicted, gold, num_classes=len(LEVELS)) for name, call in TORCHMETRICS.items()
    }


def contenders(pair: Pair) -> dict[str, Call]:
    """Return everything that this kind of column can be given to."""
    gold, predicted, scale = pair
    calls: dict[str, Call] = {
        "scikit-learn": lambda: by_scikit_learn(pair),
        "dlordinal": lambda: by_dlordinal(pair),
        "report": lambda: ordinate.evaluate(gold, predicted, scale, interval=None),
        "report as text": lambda: str(ordinate.evaluate(gold, predicted, scale, interval=None)),
        "matrix": lambda: ordinate.ConfusionMatrix.of(gold, predicted, scale),
    }
    arrays = [numbers(gold), numbers(predicted)]
    if arrays[0].dtype.kind == "i":
        calls["sum"] = lambda: [array.sum() for array in arrays]
        calls["max"] = lambda: [array.max() for array in arrays]
    if isinstance(gold, np.ndarray) and gold.dtype.kind == "i":
        tensors = [torch.from_numpy(array) for array in arrays]
        calls["torchmetrics"] = lambda: by_torchmetrics(*tensors)
    return calls


def numbers(column: Column) -> NDArray[Any]:
    """Return the array that a reader of the column has to read."""
    return column.cat.codes.to_numpy() if isinstance(column, pd.Series) else column


def check(pair: Pair, calls: dict[str, Call]) -> None:
    """Stop if two libraries disagree about a metric: ratios of other work would say nothing."""
    table = ordinate.ConfusionMatrix.of(pair.gold, pair.predicted, pair.scale)
    known = {metric.name for metric in ordinate.list_metrics()}
    for peer in PEERS.keys() & calls.keys():
        for name, value in calls[peer]().items():
            if name not in known:
                continue
            ours = float(ordinate.score(name, table))
            if not np.isclose(float(value), ours, atol=1e-5):
                raise SystemExit(f"{peer} finds {name} {value}, Ordinate {ours}.")


# --- measuring -----------------------------------------------------------------------------------


class Cell(NamedTuple):
    """What was measured: how many items, in which kind of column, by whom."""

    n: int
    kind: str
    who: str


class Timing(NamedTuple):
    """The best time in seconds, and of how many repetitions."""

    best: float
    repetitions: int


Timings = dict[Cell, Timing]


def measure(sizes: Sequence[int]) -> Timings:
    """Measure every contender on every kind of column."""
    timings: Timings = {}
    for n in sizes:
        calls: dict[Cell, Call] = {}
        for kind, pair in pairs(n).items():
            known = contenders(pair)
            if n == min(sizes):
                check(pair, known)
            calls |= {Cell(n, kind, who): call for who, call in known.items()}
        timings |= interleaved(calls)
    return timings


def interleaved(calls: dict[Cell, Call]) -> Timings:
    """Time all calls in turn, round after round, so that noise hits all of them."""
    times: dict[Cell, list[float]] = {cell: [] for cell in calls}
    gc.disable()
    for number in range(ROUNDS):
        for cell, call in calls.items():
            if enough(times[cell]):
                continue
            log(f"round {number + 1}: {cell.n:,} {cell.kind}, {cell.who}")
            times[cell] += burst(call)
            gc.collect()
    gc.enable()
    return {cell: Timing(min(found), len(found)) for cell, found in times.items()}


def enough(times: list[float]) -> bool:
    """Say whether a slow call has been repeated as often as it is worth."""
    if times and min(times) > TOO_LONG:
        return True
    return len(times) >= FEWEST and sum(times) > LONG


def bincount_cost(n: int = 1_000_000) -> float:
    """Return the seconds that NumPy's bincount takes for a number that is in the cache."""
    gold, predicted = codes(n)
    cell = gold * len(LEVELS) + predicted
    return min(burst(lambda: np.bincount(cell))) / n


# --- the command line ----------------------------------------------------------------------------


class Commands(NamedTuple):
    """What the command line costs: seconds of new processes, and bytes at the peak."""

    evaluate: float
    import_numpy: float
    peak: float
    rows: int


def measure_commands(rows: int) -> Commands:
    """Measure `ordinate evaluate` on a small CSV for time, on a large Parquet file for memory."""
    script = str(Path(sys.executable).with_name("ordinate"))
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.csv"), Path(folder, "large.parquet")
        frame(1_000).to_pandas().to_csv(small, index_label="id")
        pq.write_table(frame(rows), large)
        evaluate = (script, "evaluate", "--interval", "none", str(small))
        import_numpy = (sys.executable, "-c", "import numpy")
        log("command line")
        runs = [(launch(*evaluate)[0], launch(*import_numpy)[0]) for _ in range(COMMAND_RUNS + 1)]
        peak = max(launch(script, "evaluate", str(large))[1] for _ in range(MEMORY_RUNS))
    cold, numpy = zip(*runs[1:], strict=True)  # the first run fills the file cache
    return Commands(statistics.median(cold), statistics.median(numpy), peak, rows)


def frame(n: int) -> pa.Table:
    """Return gold and predicted levels as texts."""
    gold, predicted = (pa.array(LEVELS).take(pa.array(column)) for column in codes(n))
    return pa.table({"gold": gold, "predicted": predicted})


# --- targets -------------------------------------------------------------------------------------


FASTER = {  # peer, items: how many times as long as the whole report it should take
    ("scikit-learn", 1_000_000): 150.0,
    ("scikit-learn", 10_000_000): 150.0,
    ("torchmetrics", 1_000_000): 5.0,
    ("torchmetrics", 10_000_000): 10.0,
}
READING = {
    "int64": 3.0,
    "int8": 8.0,
}  # how many times as long as reading the confusion matrix may take
CATEGORICAL = 1.5  # times as long as int8 codes
COLD, PEAK = 3.0, 300.0  # times as long as importing NumPy; MB


def targets(timings: Timings, commands: Commands, sizes: Sequence[int]) -> list[Target]:
    """Return all targets for the sizes that were measured."""
    return [
        *against_peers(timings, sizes),
        *against_reading(timings, sizes),
        *against_codes(timings, sizes),
        *of_commands(commands),
    ]


def against_peers(timings: Timings, sizes: Sequence[int]) -> Iterable[Target]:
    """Yield how much faster the whole report is."""
    for (peer, n), limit in FASTER.items():
        if n in sizes:
            yield Target(
                f"report faster than {peer}, int64, {n:,} items",
                limit,
                ratio(timings, Cell(n, "int64", peer), "report"),
                "The report took longer in this run than the target allows.",
                at_least=True,
            )


def against_reading(timings: Timings, sizes: Sequence[int]) -> Iterable[Target]:
    """Yield how much longer the matrix takes than reading, by both measures of reading."""
    per_number = bincount_cost()
    for kind, limit in READING.items():
        for n in sizes:
            cell = Cell(n, kind, "matrix")
            yield from (
                Target(
                    f"confusion matrix against `{read}()` of both columns, {kind}, {n:,} items",
                    limit,
                    ratio(timings, cell, read),
                    slower_than_reading(timings, cell, read, per_number),
                )
                for read in READS
            )


def slower_than_reading(timings: Timings, matrix: Cell, read: str, per_number: float) -> str:
    """Explain why counting takes longer than a pass, in numbers of this run."""
    seconds, reading = timings[matrix].best, timings[matrix._replace(who=read)].best
    if matrix.n < 100_000:
        return (
            f"The fixed cost of a call shows: the matrix takes {seconds * 1e6:.0f} µs, "
            f"and reading so little {reading * 1e6:.1f} µs."
        )
    size = 2 * matrix.n * np.dtype(matrix.kind).itemsize
    place = "lie in the processor's cache" if size <= last_cache() else "come from memory"
    return (
        f"The {readable(size)} {place}, where this pass reads {size / reading / 1e9:.0f} GB/s, "
        f"or {reading / matrix.n * 1e9:.2f} ns per item; the matrix takes "
        f"{seconds / matrix.n * 1e9:.2f} ns per item, and NumPy's bincount alone "
        f"{per_number * 1e9:.1f} ns per number that it counts (several items share one)."
    )


def against_codes(timings: Timings, sizes: Sequence[int]) -> Iterable[Target]:
    """Yield how much longer a categorical takes than the integers inside it."""
    for n in sizes:
        yield Target(
            f"confusion matrix of a categorical against int8, {n:,} items",
            CATEGORICAL,
            timings[Cell(n, "categorical", "matrix")].best
            / timings[Cell(n, "int8", "matrix")].best,
            "The categories have to be looked up on the scale, and the codes searched for missing "
            "labels, which integers cannot have.",
        )


def of_commands(commands: Commands) -> Iterable[Target]:
    """Yield what the command line should cost."""
    yield Target(
        "cold `ordinate evaluate` of a CSV of 1,000 rows against `import numpy`",
        COLD,
        commands.evaluate / commands.import_numpy,
        "A new process has to load DuckDB besides NumPy, to open a database and to read the file.",
    )
    yield Target(
        f"peak memory of `ordinate evaluate`, Parquet, {commands.rows:,} rows",
        PEAK,
        commands.peak / 1e6,
        "The buffers in which DuckDB reads Parquet are larger than the target.",
        unit=" MB",
    )


def ratio(timings: Timings, cell: Cell, other: str) -> float:
    """Return how many times as long as another contender on the same column one takes."""
    return timings[cell].best / timings[cell._replace(who=other)].best


# --- the page ------------------------------------------------------------------------------------


def page(timings: Timings, commands: Commands, sizes: Sequence[int]) -> str:
    """Return the whole page in Markdown."""
    found = targets(timings, commands, sizes)
    parts = [
        "# Benchmark: run time of label metrics",
        wrapped(f"`make bench` writes this page. {METHOD}"),
        sets(),
        environment(),
        "## Targets",
        f"{sum(target.met for target in found)} of {len(found)} are met. × are ratios of times.",
        markdown(
            ["target", "limit", "measured", "verdict", "why it is missed"],
            [target.row() for target in found],
        ),
        "## Ratios",
        wrapped(RATIOS),
        markdown(["items", "input", *RATIO_COLUMNS], ratio_rows(timings, sizes)),
        "## Command line",
        wrapped(about_commands(commands)),
        "## Times behind the ratios",
        wrapped(TIMES),
        markdown(["items", "input", *PEERS, *OURS, *READS], time_rows(timings, sizes)),
    ]
    return "\n\n".join(parts) + "\n"


METHOD = (
    "All contenders run in one process on one thread, in turn, round after round, so that noise "
    f"hits all of them: up to {ROUNDS} rounds, in each of which a fast call is repeated for "
    f"{BURST:g} s, and {FEWEST} repetitions at least; a call of more than {TOO_LONG:g} s is made "
    "once. The garbage collector is off while they run, and the best time of each counts. The "
    f"items are the same for each type of column: {len(LEVELS)} levels, predictions near gold, a "
    f"fixed seed (integers are 0 to {len(LEVELS) - 1}, as torchmetrics needs them; strings of one "
    "level are one object). Before timing, all libraries must compute the same values. Only "
    "ratios within a run are comparable across machines."
)
RATIOS = (
    "The first three columns are the run time of the other library relative to Ordinate's report; "
    "the next two, that of parts of Ordinate relative to its report; the last two, that of the "
    "confusion matrix relative to reading the bytes, where reading is NumPy's `sum()` or its "
    "fastest single pass, `max()`, of both columns (of a categorical: of its codes)."
)
TIMES = (
    "Milliseconds, best of the number of repetitions in brackets. They hold for the machine above "
    "and this run only."
)
RATIO_COLUMNS = {  # contender / reference
    "scikit-learn / report": ("scikit-learn", "report"),
    "torchmetrics / report": ("torchmetrics", "report"),
    "dlordinal / report": ("dlordinal", "report"),
    "report as text / report": ("report as text", "report"),
    "matrix / report": ("matrix", "report"),
    "matrix / sum": ("matrix", "sum"),
    "matrix / max": ("matrix", "max"),
}


def sets() -> str:
    """Return a list of what each contender computes."""
    lines = [
        f"- **{peer}**: {', '.join(f'`{written(call)}`' for call in calls.values())}."
        for peer, calls in PEERS.items()
    ]
    default = ordinate.evaluate(LEVELS, LEVELS, "cefr").metrics
    report = (
        f"- **report**: `ordinate.evaluate`, which has {len(default)} metrics "
        f"({', '.join(f'`{name}`' for name in default)}), each with its baselines, the confusion "
        "matrix, and precision, recall, F1 and mean absolute error of each level, without "
        "confidence intervals. It has no unweighted kappa by default."
    )
    lines += [
        report,
        "- **report as text**: the same and `str()` of it.",
        "- **matrix**: `ConfusionMatrix.of` alone, which also checks that labels are on the scale.",
    ]
    return "\n".join(wrapped(line, indent="  ") for line in lines)


def written(call: Callable[..., Any]) -> str:
    """Return the call as source code."""
    if not isinstance(call, partial):
        return call.__name__
    options = ", ".join(f"{name}={value!r}" for name, value in call.keywords.items())
    return f"{call.func.__name__}({options})"


def environment() -> str:
    """Return the versions and the processor."""
    libraries = "ordinate numpy pandas pyarrow duckdb scikit-learn scipy torch torchmetrics"
    versions = [f"{name} {version(name)}" for name in [*libraries.split(), "dlordinal"]]
    used = (
        f"Versions: Python {platform.python_version()}, {', '.join(versions)} (its metrics alone, "
        "without the packages that its networks need)."
    )
    return f"{wrapped(used)}\n\n{wrapped(f'Processor: {processor()}.')}"


def about_commands(commands: Commands) -> str:
    """Return what the command line costs, in words."""
    times = commands.evaluate / commands.import_numpy
    return (
        f"A cold `ordinate evaluate` of a CSV of 1,000 rows (a new process; its files are in the "
        f"file cache) takes {times:.2f} times as long as `python -c 'import numpy'` with the same "
        f"interpreter: medians of {COMMAND_RUNS} interleaved runs, {commands.evaluate * 1e3:.0f} "
        f"and {commands.import_numpy * 1e3:.0f} ms. Its peak memory on a Parquet file of "
        f"{commands.rows:,} rows, two columns of texts, is {commands.peak / 1e6:.0f} MB (resident, "
        f"the largest of {MEMORY_RUNS} runs). DuckDB chooses its own number of threads in both."
    )


def ratio_rows(timings: Timings, sizes: Sequence[int]) -> Table:
    """Return the ratios of every size and kind of column."""
    return [
        [f"{n:,}", kind]
        + [
            shown(ratio(timings, Cell(n, kind, who), other))
            if {Cell(n, kind, who), Cell(n, kind, other)} <= timings.keys()
            else "–"
            for who, other in RATIO_COLUMNS.values()
        ]
        for n, kind in cases(timings, sizes)
    ]


def time_rows(timings: Timings, sizes: Sequence[int]) -> Table:
    """Return the times of every size and kind of column."""
    found = {
        cell: f"{shown(timing.best * 1e3)} ({timing.repetitions})"
        for cell, timing in timings.items()
    }
    return [
        [f"{n:,}", kind] + [found.get(Cell(n, kind, who), "–") for who in (*PEERS, *OURS, *READS)]
        for n, kind in cases(timings, sizes)
    ]


def cases(timings: Timings, sizes: Sequence[int]) -> list[tuple[int, str]]:
    """Return the sizes and kinds of columns in the order of the tables."""
    kinds = dict.fromkeys(cell.kind for cell in timings)
    return [(n, kind) for n in sizes for kind in kinds]


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure Ordinate against other libraries.")
    parser.add_argument("--quick", action="store_true", help="small data only: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = QUICK_SIZES if options.quick else SIZES
    commands = measure_commands(max(sizes))
    text = page(measure(sizes), commands, sizes)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
