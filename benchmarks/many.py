"""Many subgroups and many systems: the time of the command, beside an older checkout.

    python benchmarks/many.py                     this checkout alone
    python benchmarks/many.py --before ../older   both, in turns, and the ratios
    python benchmarks/many.py --quick             a smoke test

Whole processes are timed, start and report included: 3,000 subgroups of a million items, and the
comparison of 500 systems on 5,000 items by ten metrics. Files are generated with a fixed seed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ordinate.experiment.frame_files import save_frame
from writing import markdown

HERE = Path(__file__).resolve().parent.parent
METRICS = (
    "cem_ord,quadratic_kappa,linear_kappa,kendall_tau_b,accuracy,accuracy_within,macro_accuracy,"
    "f1_macro,mae,macro_mae"
)
SHARES = (0.05, 0.15, 0.3, 0.3, 0.15, 0.05)  # of the gold levels
SIZES = {"items": 1_000_000, "subgroups": 3_000, "systems": 500, "answers": 5_000}
QUICK_SIZES = {"items": 10_000, "subgroups": 100, "systems": 10, "answers": 500}
SEED, ROUNDS = 20_261_116, 3


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
        f"{sizes['subgroups']:,} subgroups": ["evaluate", *evaluated, *shared],
        f"{sizes['systems']:,} systems": ["compare", *compared, *shared, "--metrics", METRICS],
    }


def measure_run(checkout: Path, arguments: list[str]) -> float:
    """Return the seconds of a command with the package of a checkout."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ordinate", *arguments],
        env=os.environ | {"PYTHONPATH": str(checkout / "src")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start


def main() -> None:
    """Print the medians of the rounds, and how much quicker this checkout is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="an older checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    checkouts = {"now": HERE} | ({"before": options.before.resolve()} if options.before else {})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        commands = write_files(Path(folder), QUICK_SIZES if options.quick else SIZES)
        for name, arguments in commands.items():
            times: dict[str, list[float]] = {which: [] for which in checkouts}
            for _ in range(1 if options.quick else options.rounds):
                for which, checkout in checkouts.items():
                    times[which].append(measure_run(checkout, arguments))
            seconds = {which: statistics.median(each) for which, each in times.items()}
            ratio = seconds["before"] / seconds["now"] if "before" in seconds else None
            cells = [f"{seconds[which]:.1f}" for which in checkouts]
            rows.append([name, *cells, *([] if ratio is None else [f"{ratio:.1f}"])])
    head = ["what", *(f"{which} (s)" for which in checkouts), *(["ratio"] if ratio else [])]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
