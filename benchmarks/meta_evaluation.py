"""Coverage of the 95 % confidence intervals of `ordinate meta`, by simulation.

    python benchmarks/meta_evaluation.py            the table of its page, some minutes
    python benchmarks/meta_evaluation.py --quick    a smoke test

Systems have three aspects of quality, which go together; each reference metric sees one of them in
each test case, with little noise or much. Two metrics are evaluated: one that sees all aspects, and
the first reference. Systems and test cases are sampled for each replicate, from the same seeds
every time. In brackets stands how far the mean of the resamples is from the value.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.resampling import Resampling
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.robustness import (
    average_merits,
    compute_agreement,
    compute_robustness,
    compute_stability,
)
from ordinate.meta.system_resampling import estimate_intervals, resample_statistics
from ordinate.meta.unanimity import compute_improvements, compute_unanimous_improvement
from writing import log, markdown

Array = NDArray[Any]
SIZES = ((4, 10), (6, 10), (10, 20), (30, 20), (10, 50), (30, 50))  # systems, test cases
SAMPLES, RESAMPLES, QUICK_SAMPLES = 100, 200, 10
LEVEL = 0.95
SHARED = 0.7  # of an aspect's variance that all aspects have in common
NOISES = (0.3, 1.5)  # times the standard deviation of an aspect
MEASURES = ("coverage", "robustness", "stability", "agreement")
SEED = 20_240_602


def sampled(
    rng: np.random.Generator, noise: float, systems: int, cases: int
) -> tuple[Array, Array]:
    """Return the merits [2, S, T] of the metrics under evaluation, and of the references."""
    common = rng.normal(size=(1, systems, 1))
    own = rng.normal(size=(3, systems, 1))
    able = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    seen = able + noise * rng.normal(size=(3, systems, cases))
    whole = able.mean(axis=0) + noise * rng.normal(size=(systems, cases))
    return np.stack([whole, seen[0]]), seen


def measured(merits: Array, references: Array, seed: int) -> dict[str, Array]:
    """Return by measure the value of each metric, its bounds, and the mean of the resamples [M, 4].

    The agreement is that of the two metrics.
    """
    improved, resamples = compute_improvements(references), Resampling(RESAMPLES, seed)
    drawn = resample_statistics(merits, improved, resamples)
    values = {
        "coverage": (
            compute_coverage(average_merits(merits), compute_unanimous_improvement(improved)),
            drawn.coverage,
        ),
        "robustness": (compute_robustness(merits), drawn.robustness),
        "stability": (compute_stability(merits, resamples), drawn.stability),
        "agreement": (compute_agreement(merits)[0, 1:], drawn.agreement[:, 0, 1:]),
    }
    return {name: summed(*both) for name, both in values.items()}


def summed(values: Array, drawn: Array) -> Array:
    """Return values, bounds and means of the resamples, side by side."""
    found = estimate_intervals(values, drawn, LEVEL, "undefined")
    ends = [(one.value, one.low, one.high) for one in found]
    return np.column_stack([ends, np.nanmean(drawn, axis=0)])


def row(noise: float, systems: int, cases: int, samples: int) -> list[str]:
    """Return how often intervals cover the mean, and the bias of the resamples."""
    rng = np.random.default_rng([SEED, systems, cases])
    found = [measured(*sampled(rng, noise, systems, cases), seed) for seed in range(samples)]
    cells = [str(noise), str(systems), str(cases)]
    for name in MEASURES:
        value, low, high, drawn = np.moveaxis(np.array([one[name] for one in found]), -1, 0)
        truth = np.nanmean(value, axis=0)
        held = ((low <= truth) & (truth <= high))[~np.isnan(low)].mean()
        cells.append(f"{100 * held:.0f} % ({np.nanmean(drawn - value):+.2f})")
    log(" | ".join(cells))
    return cells


def main() -> None:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(
        description="Study the coverage of the intervals of meta-evaluation."
    )
    parser.add_argument("--quick", action="store_true", help="few samples of the smallest size")
    quick = parser.parse_args().quick
    sizes, samples = (SIZES[:1], QUICK_SAMPLES) if quick else (SIZES, SAMPLES)
    rows = [row(noise, *size, samples) for noise, size in product(NOISES, sizes)]
    print(markdown(("noise", "systems", "test cases", *MEASURES), rows))


if __name__ == "__main__":
    main()
