"""Calibration curves: bands and p hold what they promise if the forecasts are right."""

import math

import numpy as np
import pytest
from naive_probabilities import sample
from sklearn.isotonic import IsotonicRegression

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.calibration_curves import (
    MOST_CURVES,
    fit_calibration_curves,
    is_outside_band,
)
from ordinate.summaries.reliability import Reliability, ReliabilityParts


def bins_of(gold, rows, weights=None):
    scale, parts = f"0..{len(rows[0]) - 1}", ReliabilityParts(curves=True)
    return Reliability.of(gold, rows, scale, parts, weights=weights).curves


def draw_events(rng, n, bend=0.0, digits=2):
    """Two levels: forecasts, and events that happen as often as they say, or more often."""
    f = rng.uniform(0.02, 0.98, n).round(digits)
    happened = rng.random(n) < f + bend * f * (1 - f)
    return np.where(happened, 0, 1), np.stack([f, 1 - f], axis=1)


def fit(gold, rows, resamples=199, seed=0, **options):
    settings = ConfidenceIntervals(resamples=resamples, seed=seed)
    return fit_calibration_curves(bins_of(gold, rows, **options), settings)


def test_p_holds_its_level_if_the_forecasts_are_right():
    rng = np.random.default_rng(1_001)
    times, n = 250, 80
    found = [fit(*draw_events(rng, n), resamples=119, seed=k)[0] for k in range(times)]
    p = np.array([curve.perfect_calibration.p for curve in found])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=3 * math.sqrt(level / times))
    inside = np.mean(
        [1.0 - is_outside_band(curve.frequency, curve.low, curve.high).mean() for curve in found]
    )
    assert inside == pytest.approx(0.95, abs=0.02)


def test_forecasts_that_are_wrong_are_found_and_lie_outside_the_band():
    (curve,) = fit(*draw_events(np.random.default_rng(1_002), 2_000, bend=0.6))
    assert curve.perfect_calibration.p == 1 / 200
    frequency, low, high = curve.read_at(0.5)
    assert low < 0.5 < high < frequency
    assert is_outside_band(frequency, low, high)
    assert curve.terms["miscalibration"] > curve.perfect_calibration.high


def test_the_simulation_is_that_of_items_one_by_one():
    rng = np.random.default_rng(1_003)
    gold, rows = draw_events(rng, 60)
    f = rows[:, 0]
    errors, heights = [], []
    for _ in range(800):
        o = (rng.random(60) < f).astype(float)
        fitted = IsotonicRegression().fit(f, o).predict(f)
        errors.append(((f - o) ** 2).mean() - ((fitted - o) ** 2).mean())
        heights.append(fitted[f.argsort()[30]])
    (curve,) = fit(gold, rows, resamples=10_000)
    perfect = curve.perfect_calibration
    error = np.std(errors) * math.sqrt(1 / 800 + 1 / MOST_CURVES)
    assert perfect.mean == pytest.approx(np.mean(errors), abs=4 * error)
    assert perfect.high == pytest.approx(np.quantile(errors, 0.95), rel=0.15)
    _, low, high = curve.read_at(np.sort(f)[30])
    assert (low, high) == pytest.approx(np.quantile(heights, (0.025, 0.975)), abs=0.06)


def test_the_curve_is_that_of_scikit_learn_at_its_points():
    gold, rows = sample(500, seed=6, sharpness=1.5)
    below = rows.cumsum(axis=1).round(2)
    bins = bins_of(gold, np.diff(below, axis=1, prepend=0.0))
    for k, curve in enumerate(fit_calibration_curves(bins)):
        f = below[:, k]
        wanted = IsotonicRegression(out_of_bounds="clip").fit(f, gold <= k)
        np.testing.assert_allclose(curve.frequency, wanted.predict(curve.forecast), atol=1e-9)
        assert curve.forecast[[0, -1]] == pytest.approx([f.min(), f.max()], abs=1e-9)
        assert curve.count.sum() == 500
        assert len(curve.forecast) <= 101
        assert (np.diff(curve.forecast) > 0).all()
        assert (np.diff(curve.frequency) >= 0).all()


def test_without_settings_there_are_no_bands():
    (curve,) = fit_calibration_curves(bins_of(*draw_events(np.random.default_rng(1), 50)))
    assert curve.perfect_calibration is None
    assert np.isnan(curve.low).all()
    assert np.isnan(curve.high).all()


def test_the_seed_decides():
    items = draw_events(np.random.default_rng(2), 50)
    one, two, other = (fit(*items, seed=seed)[0] for seed in (1, 1, 2))
    assert one.perfect_calibration == two.perfect_calibration != other.perfect_calibration
    np.testing.assert_array_equal(one.low, two.low)


def test_a_curve_ends_with_its_forecasts():
    (curve,) = fit_calibration_curves(bins_of([0, 1], [[0.6, 0.4], [0.2, 0.8]]))
    assert curve.read_at(0.4)[0] == pytest.approx(0.5)  # a line between two points
    assert all(map(math.isnan, curve.read_at(0.1) + curve.read_at(0.61)))


def test_few_items_of_large_weight_are_as_uncertain_as_few_items():
    rng = np.random.default_rng(3)
    gold, rows = draw_events(rng, 400)
    weights = np.where(np.arange(400) < 40, 1_000.0, 1.0)
    heavy, plain, few = (
        fit(gold[:n], rows[:n], weights=w)[0].perfect_calibration.mean
        for n, w in ((400, weights), (400, None), (40, None))
    )
    assert heavy == pytest.approx(few, rel=0.2)
    assert heavy > 3 * plain
