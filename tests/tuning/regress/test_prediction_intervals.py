"""Intervals: they hold what is promised, and are wide where members lie apart."""

import numpy as np
import pytest

from ordinate.errors import BadOption, BadStore
from ordinate.tuning.regress.prediction_intervals import (
    CANDIDATE_FLOORS,
    DEFAULT_FLOOR,
    IntervalCalibration,
    compute_spread,
    select_floor,
)


def heteroscedastic(n, seed):
    """Errors whose size is known up to a factor."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.2, 5.0, n)
    predictions = rng.normal(0.0, 10.0, n)
    return predictions + rng.normal(0.0, size), predictions, 0.1 * size


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_coverage_over_fresh_draws_is_what_was_promised(alpha):
    held = []
    for seed in range(60):
        y, p, spread = heteroscedastic(200, seed)
        lower, upper = IntervalCalibration(y[:100], p[:100], spread[:100]).intervals(
            p[100:], spread[100:], alpha=alpha
        )
        held.append(np.mean((lower <= y[100:]) & (y[100:] <= upper)))
    assert abs(np.mean(held) - (1 - alpha)) < 0.02


def test_intervals_are_wider_where_members_lie_apart_and_narrower_on_average():
    y, p, spread = heteroscedastic(2000, 0)
    band = IntervalCalibration(y, p, spread).intervals(p, spread)
    plain = IntervalCalibration(y, p).intervals(p)
    widths = band.upper - band.lower
    assert np.corrcoef(widths, spread)[0, 1] > 0.95
    assert widths.mean() < 0.99 * (plain.upper - plain.lower).mean()


def test_without_a_spread_all_intervals_are_as_wide():
    y, p, spread = heteroscedastic(100, 0)
    for calibration in (IntervalCalibration(y, p), IntervalCalibration(y, p, np.zeros(100))):
        band = calibration.intervals(p, spread)
        assert np.ptp(band.upper - band.lower) < 1e-9
    reach = np.sort(np.abs(y - p))[int(np.ceil(101 * 0.9)) - 1]
    assert (band.upper - band.lower)[0] == pytest.approx(2 * reach)


def test_members_that_agree_by_chance_do_not_make_intervals_of_no_width():
    y, p, spread = heteroscedastic(500, 0)
    calibration = IntervalCalibration(y, p, spread)
    zero = calibration.intervals([0.0], [0.0])
    usual = calibration.intervals([0.0], [np.median(spread)])
    assert zero.upper - zero.lower > 0.3 * (usual.upper - usual.lower)


def test_too_few_rows_have_intervals_without_ends():
    band = IntervalCalibration(np.zeros(5), np.zeros(5)).intervals([1.0], alpha=0.1)
    assert band.upper[0] == np.inf
    assert "needs 9 items" in band.notes[0]


def test_alpha_is_checked():
    with pytest.raises(BadOption, match="alpha=2 is not a number between 0 and 1"):
        IntervalCalibration(np.zeros(5), np.zeros(5)).intervals([1.0], alpha=2)


def test_the_spread_of_members_counts_what_is_inside_them():
    table = [[1.0, 3.0], [2.0, 2.0]]
    assert compute_spread(table, [0.5, 0.5], [[0.0, 0.0], [3.0, 3.0]]).tolist() == [1.0, 3.0]
    assert compute_spread(table, [1.0, 0.0]).tolist() == [0.0, 0.0]


def test_a_spread_that_tells_little_counts_little():
    y, p, spread = heteroscedastic(2000, 0)
    median = np.median(spread)
    assert select_floor(IntervalCalibration(y, p, spread), 0.1) == CANDIDATE_FLOORS[0] * median
    shuffled = np.random.default_rng(0).permutation(spread)
    assert select_floor(IntervalCalibration(y, p, shuffled), 0.1) >= 2.0 * median
    assert select_floor(IntervalCalibration(y, p), 0.1) == 0.0


def test_the_rows_that_calibrate_do_not_set_the_floor_of_their_spread():
    """The score of a row is its own: it is the same whatever rows calibrate beside it."""
    y, p, spread = heteroscedastic(400, 0)
    floor = select_floor(IntervalCalibration(y[:200], p[:200], spread[:200]), 0.1)
    calibrations = [
        IntervalCalibration(y[200:], p[200:], times * spread[200:], floor) for times in (1.0, 3.0)
    ]
    widths = []
    for one in calibrations:
        lower, upper = one.intervals([0.0, 0.0], [0.0, 1.0])
        widths.append(upper - lower)
        assert one.least == floor
    assert widths[0][1] / widths[0][0] == pytest.approx(widths[1][1] / widths[1][0])
    assert IntervalCalibration(y, p, spread).least == DEFAULT_FLOOR * np.median(spread)


@pytest.mark.parametrize("spread", [None, np.array([1.0, 2.0])])
def test_what_is_saved_is_loaded_to_the_last_digit(tmp_path, spread):
    before = IntervalCalibration(np.array([0.1, 0.2]), np.array([1 / 3, 4.0]), spread, 4.0)
    before.save(tmp_path)
    after = IntervalCalibration.load(tmp_path)
    assert np.array_equal(before.targets, after.targets)
    assert np.array_equal(before.predictions, after.predictions)
    assert (after.spread is None) == (spread is None)
    assert after.floor == 4.0


def test_a_damaged_calibration_is_named(tmp_path):
    (tmp_path / "calibration.npz").write_bytes(b"no archive")
    with pytest.raises(BadStore, match=r"calibration\.npz cannot be read"):
        IntervalCalibration.load(tmp_path)
