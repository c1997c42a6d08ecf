"""Differences of systems in their means over cases: paired by case, whole cases swapped."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.randomization import RandomizedDifferences, choose_swap_count, draw_signs
from ordinate.inference.resampling import Resampling
from ordinate.metrics import Metric

Array = NDArray[Any]
EQUAL_VALUES = 1e-12  # a smaller difference of two systems in a case is rounding


def resample_case_means(values: Array, resamples: Resampling) -> Array:
    """Return means [B, S] as other samples of cases would give them, from values [S, C].

    They have Student's distribution with the covariance of the systems over the cases: two systems
    differ by the interval of the paired t-test.
    """
    systems, cases = values.shape
    if cases < 2 or not np.isfinite(values).all():
        return np.full((resamples.count, systems), np.nan)
    covariance = np.atleast_2d(np.cov(values)) / cases
    rng = np.random.default_rng([resamples.seed, 0])
    away = rng.multivariate_normal(np.zeros(systems), covariance, resamples.count, method="eigh")
    away /= np.sqrt(rng.chisquare(cases - 1, (resamples.count, 1)) / (cases - 1))
    return np.asarray(values.mean(axis=1) + away)


def randomize_case_means(
    metric: Metric, values: Array, pairs: tuple[Array, Array], seed: int
) -> RandomizedDifferences:
    """Return the differences of pairs of systems, from values [S, C], and what coins make of them.

    One coin per case, the same for all pairs, says where two systems exchange the whole case: the
    sign of their difference there.
    """
    systems, cases = values.shape
    signs = draw_signs(cases, choose_swap_count(systems), seed)
    first, second = pairs
    means = values.mean(axis=1)
    middle = (means[first] + means[second]) / 2.0
    # no matrix product: the same digits whatever the number of threads
    flipped = np.einsum("bc,sc->bs", signs.values, values) / cases

    def compare(halves: Array) -> Array:
        """Return the difference of two means that lie so far from their middle."""
        return np.asarray(metric.size(middle + halves) - metric.size(middle - halves))

    return RandomizedDifferences(
        compare((means[first] - means[second]) / 2.0),
        compare((flipped[:, first] - flipped[:, second]) / 2.0),
        signs.exact,
    )


def count_differing_cases(values: Array) -> Array:
    """Return the number of cases in which two systems [S, S] have different values [S, C]."""
    return np.stack([(np.abs(values - row) > EQUAL_VALUES).sum(axis=1) for row in values])
