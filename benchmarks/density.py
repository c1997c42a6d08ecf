"""Benchmark of surrogate models of simulated densities: `auto` and plain models, same splits.

    python benchmarks/density.py FILE --write docs/studies/density.md     half an hour
    python benchmarks/density.py FILE --quick                     a smoke test

FILE is a CSV with four Lennard-Jones parameters and the density that a simulation gave for them.
Splits, seeds, time, systems and what is expected were fixed before the first run on all rows.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from density_page import (
    AUTO,
    AVERAGE,
    INDICATOR,
    UNIT,
    Measured,
    Part,
    Searched,
    Shift,
    page,
)
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import Split, split_randomly
from ordinate.tuning.regress.table import Table, make_table, read_table
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.tuning_result import TuningResult
from regressors import predicted, steps
from writing import log

Floats = NDArray[np.float64]
SEEDS = [0, 1, 2, 3, 4]
SECONDS, PROCESSES = 180.0, 2  # of searching, for each split
SETTINGS = Settings(jobs=PROCESSES, timeout=SECONDS)
QUICK = Settings(preset="minimal", trials=1, folds=2, jobs=PROCESSES, timeout=60.0)
QUICK_ROWS = 800
SHIFTS = [("SigH", "high"), ("target", "high")]  # what is kept apart: a tenth of the rows
TARGET = "density"


def searched(
    table: Table, settings: Settings, split: Split | None = None
) -> tuple[TuningResult, float]:
    """Tune in a folder of its own; return what was found, and the seconds of all of it."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        found = tune_table(table, folder, settings, split=split, unit=UNIT)
        return found, time.perf_counter() - start


def measured(table: Table, seed: int, settings: Settings) -> tuple[Part, Searched]:
    """Let all systems learn from the same rows, and predict the same test rows."""
    split = split_randomly(table, seed)
    tuning, seconds = searched(table, replace(settings, seed=seed), split)
    plain, indicated = (
        predicted(table.features, table.target, split, seed, lattice=lattice)
        for lattice in (False, True)
    )
    test = tuning.tests[0].columns
    predictions = {AUTO: np.asarray(test["predictions"][tuning.winner.name])}
    predictions |= plain | {AVERAGE: mean_of(plain), INDICATOR: mean_of(indicated)}
    predictions |= steps(table.features, table.target, split, seed)
    log(f"seed {seed}: {tuning.winner.model_type}, {seconds:.0f} s")
    targets, lower, upper = (np.array(test[name], float) for name in ("targets", "lower", "upper"))
    part = Part(f"seed {seed}", split.test, targets, predictions, lower, upper)
    return part, Searched(seed, tuning, seconds)


def mean_of(columns: dict[str, Floats]) -> Floats:
    """Return the plain average."""
    return np.asarray(np.mean(list(columns.values()), axis=0))


def beyond(table: Table, by: str, end: Any, settings: Settings) -> Shift:
    """Keep a region apart, and learn from the rest."""
    found, seconds = searched(table, replace(settings, shift=by, shift_end=end))
    log(f"beyond {by}: {found.winner.model_type}, {seconds:.0f} s")
    within, without = found.tests
    return Shift(f"the {end}est tenth of {TARGET if by == 'target' else by}", within, without)


def fewer(table: Table, count: int) -> Table:
    """Return some rows, drawn at random."""
    rows = np.random.default_rng(0).permutation(len(table))[:count]
    features, target = table.features[rows], table.target[rows]
    return make_table(features, target, names=table.names, target_name=table.target_name)


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure surrogates of simulated densities.")
    parser.add_argument("file", help="CSV with the features and the column density")
    parser.add_argument("--quick", action="store_true", help="few rows, two splits, one trial")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    table = read_table(options.file, TARGET)
    settings, seeds, shifts = SETTINGS, SEEDS, SHIFTS
    if options.quick:
        table, settings, seeds, shifts = fewer(table, QUICK_ROWS), QUICK, SEEDS[:2], SHIFTS[:1]
    parts, searches = zip(*(measured(table, seed, settings) for seed in seeds), strict=True)
    shifted = [beyond(table, by, end, settings) for by, end in shifts]
    text = page(Measured(table, parts, searches, shifted, settings, load))
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
