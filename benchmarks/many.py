"""Many subgroups and many systems: the time of the command, beside an earlier commit.

    python benchmarks/many.py --write docs/studies/many-benchmark.md    half an hour
    python benchmarks/many.py --before ../older                         beside another checkout
    python benchmarks/many.py --quick                                   a smoke test

Whole processes are timed in turns, start and report included: 3,000 subgroups of a million items,
and the comparison of 500 systems on 5,000 items by ten metrics. Files are generated with a fixed
seed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

import numpy as np

from ordinate.tuning.experiment.frame_files import save_frame
from writing import Target, log, markdown, processor, shown, wrapped

# What both commits have: modules that are run moved in between.
COMMAND = "import sys; from ordinate.cli.main import main; sys.exit(main(sys.argv[1:]))"
HERE = Path(__file__).resolve().parent.parent
BEFORE = "0c60b3b8"  # the last commit in which subgroups and systems were taken one by one
METRICS = (
    "cem_ord,quadratic_kappa,linear_kappa,kendall_tau_b,accuracy,accuracy_within,macro_accuracy,"
    "f1_macro,mae,macro_mae"
)
SHARES = (0.05, 0.15, 0.3, 0.3, 0.15, 0.05)  # of the gold levels
SIZES = {"items": 1_000_000, "subgroups": 3_000, "systems": 500, "answers": 5_000}
QUICK_SIZES = {"items": 10_000, "subgroups": 100, "systems": 10, "answers": 500}
SEED, ROUNDS = 20_261_116, 2
TIMES = (20.0, 3.0)  # as fast as before in seconds of all threads, at least: subgroups, systems


def predict(rng: np.random.Generator, gold: np.ndarray, skill: float) -> np.ndarray:
    """Return predictions that are right this often, and otherwise mostly a level off."""
    off = rng.choice([-2, -1, 1, 2], len(gold), p=[0.1, 0.4, 0.4, 0.1])
    return np.clip(np.where(rng.random(len(gold)) < skill, gold, gold + off), 1, 6)


def write_files(folder: Path, sizes: dict[str, int]) -> dict[str, list[str]]:
    """Write the two files, and return the arguments of each command by its name."""
    rng = np.random.default_rng(SEED)
    gold = rng.choice(np.arange(1, 7), sizes["items"], p=SHARES)
    subgroup = rng.permutation(np.arange(len(gold)) % sizes["subgroups"])
    frame = {"level": gold, "guess": predict(rng, gold, 0.6), "subgroup": subgroup}
    save_frame(frame, folder / "items.parquet")
    gold = rng.choice(np.arange(1, 7), sizes["answers"], p=SHARES)
    skills = np.linspace(0.35, 0.85, sizes["systems"])
    systems = {f"system_{k:03d}": predict(rng, gold, skill) for k, skill in enumerate(skills)}
    save_frame({"level": gold} | systems, folder / "systems.parquet")
    shared = ["--gold", "level", "--scale", "1..6"]
    evaluated = [str(folder / "items.parquet"), "--predicted", "guess", "--by", "subgroup"]
    compared = [str(folder / "systems.parquet"), "--systems", ",".join(systems)]
    return {
        f"evaluate, {sizes['subgroups']:,} subgroups": ["evaluate", *evaluated, *shared],
        f"compare, {sizes['systems']:,} systems": [
            "compare",
            *compared,
            *shared,
            "--metrics",
            METRICS,
        ],
    }


class Run(NamedTuple):
    """The seconds of a process, on the clock and of all its threads."""

    seconds: float
    cpu: float


def measure_run(checkout: Path, arguments: list[str]) -> Run:
    """Run a command with the package of a checkout."""
    before, start = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": str(checkout / "src")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    seconds, after = time.perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def check_out(commit: str) -> Iterator[Path]:
    """Give a folder with the files of an earlier commit."""
    with tempfile.TemporaryDirectory(prefix="ordinate-before-") as folder:
        archive = subprocess.run(
            ["git", "archive", commit, "src"], cwd=HERE, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def measure(before: Path, sizes: dict[str, int], rounds: int) -> dict[str, list[Run]]:
    """Return the best run of each command: of the earlier commit, and of this one."""
    with tempfile.TemporaryDirectory(prefix="ordinate-many-") as folder:
        found = {}
        for name, arguments in write_files(Path(folder), sizes).items():
            runs: list[list[Run]] = [[], []]
            for turn in range(rounds):
                for checkout, done in zip((before, HERE), runs, strict=True):
                    done.append(measure_run(checkout, arguments))
                    log(f"{name}, round {turn + 1}, {checkout}: {done[-1]}")
            found[name] = [Run(*map(min, zip(*done, strict=True))) for done in runs]
    return found


def page(found: dict[str, list[Run]], sizes: dict[str, int], rounds: int) -> str:
    """Return the page."""
    rows = []
    for name, runs in found.items():
        ratios = [before / now for before, now in zip(*runs, strict=True)]
        rows.append([name, *(shown(x) for run in runs for x in run), *map(shown, ratios)])
    targets = [
        Target(
            f"{name}: as fast as before, in the seconds of all threads (by the clock "
            f"{shown(before.seconds / now.seconds)}×)",
            limit,
            before.cpu / now.cpu,
            "the work itself: what else runs on the machine lengthens the clock, and hardly these "
            "seconds",
            at_least=True,
        )
        for (name, (before, now)), limit in zip(found.items(), TIMES, strict=True)
    ]
    return "\n\n".join(
        [
            "# Benchmark: many subgroups, many systems",
            wrapped(
                f"`make bench` writes this page. `ordinate evaluate --by` on {sizes['items']:,} "
                f"items in {sizes['subgroups']:,} subgroups, by all default metrics, and `ordinate "
                f"compare` of {sizes['systems']:,} systems on {sizes['answers']:,} items by ten "
                f"metrics, beside the earlier commit {BEFORE}, which took subgroups and systems "
                "one by one. Each is a process that starts cold and ends with its report; the two "
                f"run in turns, and the best of each counts (rounds: {rounds}). Targets are judged "
                "by the seconds of all threads, which hardly depend on other work on the machine; "
                "the clock stands beside them."
            ),
            wrapped(
                f"Machine: {processor()}. Versions: numpy {version('numpy')}, duckdb "
                f"{version('duckdb')}."
            ),
            "## Targets",
            markdown(["claim", "target", "measured", "", "why"], [x.row() for x in targets]),
            "## All runs",
            markdown(
                [
                    *("what", "before (s)", "all threads (s)", "now (s)", "all threads (s)"),
                    *("ratio", "of all threads"),
                ],
                rows,
            ),
        ]
    )


def main() -> None:
    """Measure, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="an older checkout, in place of the commit")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="few items: a smoke test")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    sizes = QUICK_SIZES if options.quick else SIZES
    with nullcontext(options.before) if options.before else check_out(BEFORE) as before:
        text = page(measure(before.resolve(), sizes, options.rounds), sizes, options.rounds)
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
