"""Batches summed up by an index: what `+` makes of the same summaries."""

import numpy as np
import pytest

from ordinate.scale.encoding import Groups
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments

INDEX = np.array([1, 0, 1, 1])
RNG = np.random.default_rng(5)
Y, ERRORS, WEIGHTS = RNG.normal(1e6, 1.0, 80), RNG.normal(0.0, 2.0, 80), RNG.integers(1, 5, 80) / 2
CODES = Groups(list("abcd"), np.arange(80) % 4)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_moments_are_moved_to_the_means_of_all(weights):
    batch = Moments.of(Y, Y + ERRORS, weights, groups=CODES)
    found = batch.compute_sums(INDEX, 2)
    expected = batch[0] + batch[2] + batch[3]
    assert found[0].plain.sums == pytest.approx(batch[1].plain.sums, rel=1e-9)
    assert found[1].plain.sums == pytest.approx(expected.plain.sums, rel=1e-9, abs=1e-6)
    assert found[1].squared.sums == pytest.approx(expected.squared.sums, rel=1e-9, abs=1e-6)
    assert found[1].plain.y == pytest.approx(expected.plain.y, rel=1e-15)
    assert (found[1].largest, found[1].n) == (expected.largest, 60)


def test_sums_over_prediction_intervals_are_added():
    batch = PredictionIntervals.of(Y, Y - 1.0, Y + ERRORS**2, groups=CODES.codes)
    found = batch.compute_sums(INDEX, 2)
    expected = batch[0] + batch[2] + batch[3]
    assert found[1].plain == pytest.approx(expected.plain, rel=1e-12)
    assert found[0].plain == pytest.approx(batch[1].plain, rel=1e-12)
