"""Benchmark of counting on a CUDA device: OrdinalMetric against a copy and against torchmetrics.

    python benchmarks/device.py --write docs/studies/device-benchmark.md    a minute
    python benchmarks/device.py --quick                                     a smoke test

Pairs of levels come in batches, as a training loop gives them, and the clock stops when the device
has counted all of them.
"""

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torchmetrics.classification import MulticlassConfusionMatrix

from ordinate.integrations.torch import OrdinalMetric
from writing import Table, Target, log, markdown, processor, shown, wrapped

PAIRS, QUICK_PAIRS = 1_000_000_000, 10_000_000
LEVELS, MORE_LEVELS = 6, (2, 4, 10, 20, 50)
IMAGES = {"1 image": 1 << 20, "16 images": 1 << 24, "128 images": 1 << 27}  # of 1024 × 1024 pixels
USUAL = "16 images"
ROUNDS, SEED = 5, 20_240_603
SHARE, FASTER = 0.1, 5.0  # of the copy's bandwidth; times torchmetrics' speed

OURS, CHECKED, UNCHECKED, COPY, WHOLE = (
    "OrdinalMetric",
    "torchmetrics",
    "torchmetrics, unchecked",
    "copy by batches",
    "copy at once",
)
Loop = Callable[[], None]


class Case(NamedTuple):
    """What is counted: how many pairs of which type, how many levels, how many in a batch."""

    pairs: int
    dtype: torch.dtype
    levels: int
    batch: int


class Run(NamedTuple):
    """The bandwidth of each contender in GB/s, and milliseconds of the whole loop."""

    case: Case
    bandwidth: dict[str, float]
    milliseconds: dict[str, float]

    def ratio(self, who: str, other: str) -> float:
        """Return how many times as many bytes per second one moves as another."""
        return self.bandwidth[who] / self.bandwidth[other]


def draw_levels(case: Case) -> tuple[Tensor, Tensor]:
    """Return gold levels and predictions at most a level away."""
    generator = torch.Generator("cuda").manual_seed(SEED)
    options = {"dtype": case.dtype, "device": "cuda", "generator": generator}
    gold = torch.randint(0, case.levels, (case.pairs,), **options)
    predicted = torch.randint(-1, 2, (case.pairs,), **options)
    return gold, predicted.add_(gold).clamp_(0, case.levels - 1)


def make_loops(case: Case, gold: Tensor, predicted: Tensor) -> dict[str, Loop]:
    """Return the loops over batches that are timed; all metrics must count the same."""
    metrics = {
        OURS: OrdinalMetric(range(case.levels)),
        CHECKED: MulticlassConfusionMatrix(case.levels),
        UNCHECKED: MulticlassConfusionMatrix(case.levels, validate_args=False),
    }
    batches = list(
        zip(torch.split(predicted, case.batch), torch.split(gold, case.batch), strict=True)
    )

    def update(metric: OrdinalMetric | MulticlassConfusionMatrix) -> None:
        for preds, target in batches:
            metric.update(preds, target)

    for metric in metrics.values():
        update(metric.cuda())
    if not torch.equal(metrics[OURS].cells[:-1, :-1], metrics[UNCHECKED].confmat):
        raise SystemExit(f"OrdinalMetric and torchmetrics count differently: {case}.")
    loops: dict[str, Loop] = {
        who: lambda metric=metric: update(metric) for who, metric in metrics.items()
    }
    other = torch.empty_like(gold)
    places = torch.split(other, case.batch)

    def copy() -> None:
        for (_, target), place in zip(batches, places, strict=True):
            place.copy_(target)

    return loops | {COPY: copy, WHOLE: lambda: other.copy_(gold)}


def measure(case: Case) -> Run:
    """Time all loops in turn, round after round; the median of a loop counts."""
    log(f"{case.pairs:,} pairs of {case.dtype}, {case.levels} levels, batches of {case.batch:,}")
    loops = make_loops(case, *draw_levels(case))
    times: dict[str, list[float]] = {who: [] for who in loops}
    for _ in range(ROUNDS):
        for who, loop in loops.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            loop()
            torch.cuda.synchronize()
            times[who].append(time.perf_counter() - start)
    seconds = {who: statistics.median(found) for who, found in times.items()}
    size = 2 * case.pairs * case.dtype.itemsize  # of two columns read, or of one read and written
    return Run(
        case,
        {who: size / each / 1e9 for who, each in seconds.items()},
        {who: each * 1e3 for who, each in seconds.items()},
    )


def list_cases(pairs: int) -> dict[str, list[Case]]:
    """Return what is measured, by the table that shows it."""
    batch = min(IMAGES[USUAL], pairs)
    return {
        "batches": [Case(pairs, torch.int8, LEVELS, size) for size in IMAGES.values()],
        "types": [
            Case(pairs // dtype.itemsize, dtype, LEVELS, batch)
            for dtype in (torch.int16, torch.int32, torch.int64)
        ],
        "levels": [Case(pairs, torch.int8, levels, batch) for levels in MORE_LEVELS],
    }


# --- the page ------------------------------------------------------------------------------------


def list_targets(usual: Run, largest: Run) -> list[Target]:
    """Return what should be reached in batches of the usual size."""
    reason = (
        "PyTorch finds levels, cells and their histogram in passes of their own over the pairs, of "
        f"any size: in batches of {largest.case.batch:,} it is {largest.ratio(OURS, WHOLE):#.3g}×."
    )
    share = usual.ratio(OURS, WHOLE)
    return [
        Target("bandwidth against a copy at once", SHARE, share, reason, at_least=True),
        *(
            Target(f"speed against {who}", FASTER, usual.ratio(OURS, who), reason, at_least=True)
            for who in (CHECKED, UNCHECKED)
        ),
    ]


def list_rows(runs: list[Run]) -> Table:
    """Return the bandwidth of all contenders in each case."""
    return [
        [
            str(run.case.dtype).removeprefix("torch."),
            str(run.case.levels),
            f"{run.case.batch:,}",
            *(shown(run.bandwidth[who]) for who in (OURS, CHECKED, UNCHECKED, COPY, WHOLE)),
            f"{run.ratio(OURS, WHOLE):.0%}".replace("%", " %"),
            shown(run.ratio(OURS, UNCHECKED)),
        ]
        for run in runs
    ]


HEAD = [
    "type",
    "levels",
    "batch",
    *(OURS, CHECKED, UNCHECKED, COPY, WHOLE),
    "share of the copy",
    "times torchmetrics",
]
METHOD = (
    f"Gold levels and predictions near them lie on the device, and come in batches as a training "
    f"loop gives them: masks of 1024 × 1024 pixels, whose levels are int8. Each contender gets all "
    f"batches, and the clock stops when the device is done; the calls from Python count. All run "
    f"in turn, {ROUNDS} rounds after one to warm up, and medians count. Before timing, both "
    "metrics must have counted the same. GB/s are the bytes of both columns by the time; those of "
    "a copy are read and written, of one column. torchmetrics is `MulticlassConfusionMatrix`, with "
    "its arguments checked as by default, and unchecked with `validate_args=False`. OrdinalMetric "
    "always counts what is off the scale apart."
)


def page(tables: dict[str, list[Run]]) -> str:
    """Return the whole page in Markdown."""
    usual = next(run for run in tables["batches"] if run.case.batch == IMAGES[USUAL])
    found = list_targets(usual, tables["batches"][-1])
    case = usual.case
    lead = (
        f"OrdinalMetric counts {case.pairs:,} pairs of int8 in batches of {case.batch:,} in "
        f"{usual.milliseconds[OURS]:.1f} ms: {usual.bandwidth[OURS]:,.0f} GB/s, "
        f"{usual.ratio(OURS, WHOLE):.0%} of a device-to-device copy's bandwidth and "
        f"{usual.ratio(OURS, UNCHECKED):.0f} times as fast as torchmetrics without its checks."
    ).replace("%", " %")
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch", "torchmetrics"))
    parts = [
        "# Benchmark: counting on a GPU",
        wrapped(lead),
        wrapped(
            f"`python benchmarks/device.py --write docs/studies/device-benchmark.md` writes this "
            f"page, where there is a CUDA device. {METHOD}"
        ),
        wrapped(f"Versions: Python {platform.python_version()}, {versions}."),
        wrapped(f"Device: {torch.cuda.get_device_name()}. Processor: {processor()}."),
        "## Targets",
        f"{case.levels} levels, {case.pairs:,} pairs of int8 in batches of {case.batch:,}.",
        markdown(
            ["target", "limit", "measured", "verdict", "why it is missed"],
            [target.row() for target in found],
        ),
        "## Bandwidth in GB/s",
        wrapped(
            "Small batches are bound by the calls from Python, for all contenders. A batch of "
            f"{IMAGES[USUAL]:,} takes the processor about as long as the device, so that its "
            "figures vary with the processor from run to run. Integers of more bytes are fewer, so "
            "that the bytes are as many."
        ),
        markdown(HEAD, list_rows([run for runs in tables.values() for run in runs])),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure counting on a CUDA device.")
    parser.add_argument("--quick", action="store_true", help="few pairs: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark takes a CUDA device, and PyTorch finds none.")
    cases = list_cases(QUICK_PAIRS if options.quick else PAIRS)
    text = page({name: [measure(case) for case in each] for name, each in cases.items()})
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
