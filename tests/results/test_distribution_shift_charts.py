"""The views of a shifted test set have the metrics of both sets and the shifts of columns."""

import numpy as np
import pytest

import ordinate
from ordinate.results.distribution_shift import evaluate_shift

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(1)
    target = rng.normal(10.0, 2.0, 90)
    predicted = target + rng.normal(0.0, 0.5, 90)
    inside, shifted = (
        ordinate.evaluate_regression(target[part] + by, predicted[part], "rmse,r2", unit="m")
        for part, by in ((slice(60), 0.0), (slice(60, 90), 3.0))
    )
    columns = {HOSTILE: (target[:60], target[60:] + 3.0), "flat": (np.ones(60), np.ones(30))}
    return evaluate_shift(inside, shifted, columns)


def test_both_sets_have_their_values_and_intervals(result):
    chart = result.get_chart("shift_metrics")
    assert chart.y.levels == ("inside", "shifted")
    for name, panel in zip(("rmse", "r2"), chart.panels, strict=True):
        points = {point.y: point for point in panel.marks}
        for key, part in (("inside", result.inside), ("shifted", result.shifted)):
            found = part.metrics[name]
            assert (points[key].x, points[key].low, points[key].high) == (
                found.value,
                found.low,
                found.high,
            )
    assert [panel.x.unit for panel in chart.panels] == ["m", None]


def test_columns_are_shifted_in_sigmas(result):
    chart = result.get_chart("column_shifts")
    bars = {bar.y: bar.x for bar in chart.list_marks()}
    assert bars == {x.name: x.by for x in result.shifts if x.name != "flat"}
    assert HOSTILE in chart.y.levels
