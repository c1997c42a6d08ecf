"""Differences of regression models: what other samples would give, all models together."""

import numpy as np
import pytest

from ordinate.inference.regression_differences import simulate_values
from ordinate.inference.resampling import Resampling


def test_values_of_other_samples_vary_together_as_the_influences_do():
    rng = np.random.default_rng(3)
    shared, own = rng.normal(size=50), rng.normal(size=(3, 50))
    parts = (shared + 0.5 * own) / 50
    drawn = simulate_values(np.array([1.0, 2.0, 4.0]), parts, np.inf, Resampling(20_000, 0))
    assert drawn.mean(axis=0) == pytest.approx([1.0, 2.0, 4.0], abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(parts @ parts.T, rel=0.05)
    assert np.corrcoef(drawn.T)[0, 1] > 0.6
