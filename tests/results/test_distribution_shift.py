"""A shifted test set and one from where the training data came from."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from regression_models import Z, sampled
from scipy import stats

import ordinate
from ordinate.errors import BadOption, BadValues
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.regression_delta_method import standard_error
from ordinate.metrics import find_metric
from ordinate.results.distribution_shift import evaluate_shift
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries.regression import Moments


def two_sets(n=800, **options):
    y, models = sampled(n, 11)
    other, shifted = sampled(n // 2, 12, (30.0,))
    inside = evaluate_regression(y, models["a"], unit="kg", **options)
    return (y, models["a"]), (other + 90, shifted["a"] + 90), inside


def test_a_difference_of_two_sets_has_the_root_of_the_sum_of_squared_errors():
    """To within what a logarithm bends at so many items."""
    student = ConfidenceIntervals(method="t")
    first, second, inside = two_sets(4000, interval=student)
    result = evaluate_shift(inside, evaluate_regression(*second, unit="kg", interval=student))
    for metric in ("rmse", "mae", "bias", "r2"):
        found, wanted = result.differences[metric], find_metric(metric, Moments)
        errors = [standard_error(wanted, Moments.of(*columns)) for columns in (first, second)]
        values = [float(wanted(Moments.of(*columns))) for columns in (first, second)]
        assert found.value == pytest.approx(values[1] - values[0])
        assert found.width == pytest.approx(2 * Z * math.hypot(*errors), rel=0.02)


def test_the_shift_is_in_sigmas_of_the_set_inside():
    (y, p), (other, shifted), inside = two_sets()
    columns = {"targets": (y, other), "depth": (y, other * 2)}
    result = evaluate_shift(inside, evaluate_regression(other, shifted, unit="kg"), columns)
    targets, predictions, depth = result.shifts
    assert targets.by == pytest.approx((other.mean() - y.mean()) / y.std())
    assert predictions.by == pytest.approx((shifted.mean() - p.mean()) / p.std())
    assert predictions.shifted_sigma == pytest.approx(shifted.std())
    assert targets.beyond_range == pytest.approx(
        sum(x < min(y) or x > max(y) for x in other) / len(other)
    )
    low, high = np.quantile(y, [0.01, 0.99])
    assert targets.beyond_middle == pytest.approx(sum(not low <= x <= high for x in other) / 400)
    down = evaluate_shift(inside, inside, {"targets": (y, 2 * y.mean() - other)}).shifts[0]
    assert down.beyond_middle == pytest.approx(
        sum(not low <= 2 * y.mean() - x <= high for x in other) / 400
    )
    assert down.beyond_middle > 0.1
    assert math.isnan(predictions.beyond_range)
    assert depth.beyond_range == 1.0


def test_the_same_set_beside_itself_is_not_told_apart():
    _, _, inside = two_sets()
    result = evaluate_shift(inside, inside)
    assert all(found.value == 0 for found in result.differences.values())
    assert "On no metric are the two sets significantly different." in str(result)
    assert result.shifts[0].by == 0


def test_groups_of_a_set_widen_the_limits_of_its_difference():
    first, second, inside = two_sets()
    twice = [np.repeat(x, 4) for x in first]
    groups = np.repeat(np.arange(len(first[0])), 4)
    plain = evaluate_regression(*twice, unit="kg")
    grouped = evaluate_regression(*twice, unit="kg", groups=groups)
    shifted = evaluate_regression(*second, unit="kg")
    wide, narrow = (evaluate_shift(x, shifted).differences["bias"].width for x in (grouped, plain))
    assert wide > narrow
    assert wide == pytest.approx(
        evaluate_shift(inside, shifted).differences["bias"].width, rel=1e-3
    )


def test_the_report_says_what_is_worse_and_how_far_it_lies():
    first, second, inside = two_sets()
    result = evaluate_shift(
        inside, evaluate_regression(*second, unit="kg"), {"targets": (first[0], second[0])}
    )
    text = " ".join(str(result).split())
    assert "The shifted targets lie 1." in text
    assert "σ above those inside on average;" in text
    assert "On the shifted set rmse is higher by" in text
    assert json.dumps(result.to_dict(), allow_nan=False)
    assert {row["set"] for row in result.rows()} == {"inside", "shifted", "difference"}


def test_constant_targets_inside_have_no_sigma():
    inside = evaluate_regression([1.0] * 9, np.arange(9.0))
    result = evaluate_shift(inside, evaluate_regression(np.arange(9.0), np.arange(9.0) + 1.5))
    assert "How far the targets are shifted is undefined" in str(result)
    assert math.isnan(result.differences["r2"].value)
    assert json.dumps(result.to_dict(), allow_nan=False)


def test_sets_must_fit_together():
    _, second, inside = two_sets()
    with pytest.raises(BadOption, match="units differ: 'kg' and 'g'"):
        evaluate_shift(inside, evaluate_regression(*second, unit="g"))
    with pytest.raises(BadOption, match="levels of the intervals differ"):
        evaluate_shift(inside, evaluate_regression(*second, unit="kg", interval=0.9))
    with pytest.raises(BadOption, match="no metric in common"):
        evaluate_shift(inside, replace(inside, metrics={}))
    with pytest.raises(BadValues, match="'depth' shifted needs finite numbers"):
        evaluate_shift(inside, inside, {"depth": ([1.0], [math.nan])})


def test_a_metric_that_no_method_covers_names_no_winner():
    @ordinate.metric(direction="minimize")
    def share_of_sigma(table: Moments):
        return table.absolute / table.total / np.sqrt(table.plain.mean(2, 0))

    y, models = sampled()
    board = ordinate.compare(target=y, systems=models, metrics=[share_of_sigma]).leaderboards
    (pair,) = board["share_of_sigma"].pairs
    assert pair.verdict == "untested"
    assert pair.difference.note == "no method covers it"


def test_a_difference_of_few_items_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(0)
    y = rng.normal(100.0, 10.0, 12)
    models = {"first": y + rng.normal(0.0, 2.0, 12), "second": y + rng.normal(1.0, 3.0, 12)}
    (found,) = ordinate.compare(target=y, systems=models, metrics="mae").leaderboards["mae"].pairs
    sizes = [np.abs(models[name] - y) for name in (found.first, found.second)]
    test = stats.ttest_rel(*sizes)
    limits = test.confidence_interval(0.95)
    assert found.p == pytest.approx(test.pvalue, rel=1e-9)
    assert (found.difference.low, found.difference.high) == pytest.approx((limits.low, limits.high))
    assert found.difference.method == "t"
