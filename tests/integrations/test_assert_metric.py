"""assert_metric lets the interval decide: worse fails, inconclusive warns."""

import pytest

import ordinate
from ordinate.errors import BadOption
from ordinate.integrations.pytest import InconclusiveWarning, assert_metric

LEVELS = "low,mid,high"
GOLD = ["low", "mid", "high", "mid"] * 25
PREDICTED = ["low", "mid", "mid", "mid"] * 25
RESULT = ordinate.evaluate(GOLD, PREDICTED, LEVELS, metrics="accuracy,mae,bias")
accuracy = RESULT.metrics["accuracy"].estimate


def test_the_interval_has_the_bounds_between_which_the_answer_is_open():
    assert_metric(RESULT, "accuracy", at_least=accuracy.low)
    with pytest.raises(AssertionError, match="significantly worse than"):
        assert_metric(RESULT, "accuracy", at_least=accuracy.high + 1e-6)
    for threshold in (accuracy.low + 1e-6, accuracy.value, accuracy.high):
        with pytest.warns(InconclusiveWarning, match="not significantly different from"):
            assert_metric(RESULT, "accuracy", at_least=threshold)


@pytest.mark.parametrize(("metric", "limit"), [("mae", 0.1), ("bias", 0.1)])
def test_what_is_better_when_lower_has_a_limit_above(metric, limit):
    assert_metric(RESULT, metric, at_most=0.5)
    with pytest.raises(AssertionError, match=f"{metric} is .*0.25 .*worse than 0.1"):
        assert_metric(RESULT, metric, at_most=limit)


def test_bias_on_both_sides_of_0_is_inconclusive():
    result = ordinate.evaluate(["low", "high"] * 30, ["mid", "mid"] * 30, LEVELS, metrics="bias")
    with pytest.warns(InconclusiveWarning, match="bias is 0"):
        assert_metric(result, "bias", at_most=0.0)


def test_without_an_interval_the_value_decides():
    result = ordinate.evaluate(GOLD, PREDICTED, LEVELS, metrics="accuracy", interval=None)
    assert_metric(result, "accuracy", at_least=0.75)
    with pytest.raises(AssertionError, match=r"accuracy is 0\.75, worse than 0\.76\.$"):
        assert_metric(result, "accuracy", at_least=0.76)


def test_an_undefined_metric_fails_with_its_reason():
    result = ordinate.evaluate(["mid"] * 9, ["mid"] * 9, LEVELS, metrics="kendall_tau_b")
    with pytest.raises(AssertionError, match=r"kendall_tau_b is undefined \(.+\)"):
        assert_metric(result, "kendall_tau_b", at_least=-1)


def test_regression_and_probabilities_have_metrics_too():
    target = [float(x) for x in range(40)]
    predicted = [x + 1 for x in target]
    lower, upper = [x - 3 for x in predicted], [x + 3 for x in predicted]
    result = ordinate.evaluate_regression(target, predicted, lower=lower, upper=upper)
    assert_metric(result, "rmse", at_most=2)
    assert_metric(result, "interval_coverage", at_least=0.5)
    rows = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]] * 25
    both = ordinate.evaluate(
        GOLD, PREDICTED, LEVELS, probabilities=rows, columns="scale", metrics="mae,brier"
    )
    assert_metric(both, "brier", at_most=0.5)


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ("mae", {"at_least": 1}, r"mae is better when lower: assert_metric\(result, 'mae', at_m"),
        ("accuracy", {}, "accuracy is better when higher: .*at_least="),
        ("bias", {"at_least": 1}, "bias is better when nearer to 0: .*at_most="),
        ("acuracy", {"at_least": 1}, "no metric 'acuracy'. Did you mean 'accuracy'?"),
    ],
)
def test_assertions_that_say_nothing_are_refused(metric, options, message):
    with pytest.raises(BadOption, match=message):
        assert_metric(RESULT, metric, **options)
