"""The view of cases has the mean over them, and every case, worst first."""

import numpy as np
import pytest

import ordinate
from ordinate.inference.delta_method import normal_quantile

LEVELS = ("low", "mid", "high")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 3, 400)
    predicted = np.clip(gold + rng.integers(-1, 2, 400), 0, 2)
    names = [HOSTILE, *(f"case {k}" for k in range(9))]
    return ordinate.evaluate(
        [LEVELS[k] for k in gold],
        [LEVELS[k] for k in predicted],
        LEVELS,
        "accuracy,mae",
        average_over=[names[k % 10] for k in range(400)],
    )


@pytest.mark.parametrize("metric", ["accuracy", "mae"])
def test_cases_have_their_values_worst_first_below_their_mean(result, metric):
    score = result.case_averages.metrics[metric]
    mean, *cases = result.get_chart("cases", metric).list_marks()
    assert (mean.x, mean.low, mean.high) == (
        score.value,
        score.estimate.low,
        score.estimate.high,
    )
    names = result.case_averages.shown_names
    values = dict(zip(names, score.values, strict=True))
    assert {point.y: point.x for point in cases} == values
    shown = [point.x for point in cases]
    assert shown == sorted(shown, reverse=metric == "mae")


def test_the_worst_cases_have_their_own_intervals_and_the_others_those_of_their_errors(result):
    score, names = result.case_averages.metrics["accuracy"], result.case_averages.shown_names
    points = {point.y: point for point in result.get_chart("cases", "accuracy").list_marks()}
    for place, found in score.worst.items():
        assert (points[names[place]].low, points[names[place]].high) == (found.low, found.high)
    rest = [place for place in range(10) if place not in score.worst]
    for place in rest:
        point, reach = points[names[place]], normal_quantile(0.95) * score.standard_errors[place]
        assert point.low < point.x < point.high
        assert point.high - point.low == pytest.approx(2 * reach, rel=0.1)


def test_a_case_may_have_the_name_of_the_mean():
    found = ordinate.evaluate(
        ["low", "mid", "high"] * 8,
        ["low", "mid", "mid"] * 8,
        LEVELS,
        "accuracy",
        average_over=["mean over cases", "other", "other"] * 8,
    )
    levels = found.get_chart("cases").y.levels
    assert levels[0] == "mean over cases (all)"
    assert len(levels) == 3
