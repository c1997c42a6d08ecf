"""The views of a plan have its powers, widths and needed items."""

import numpy as np
import pytest

import ordinate
from ordinate.render.charts import Line, Point, Rule

LEVELS = ("low", "mid", "high")
HOSTILE = "<script>alert(1)</script>"


def make_plan(difference=0.1, **options):
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 3, 120)
    systems = {
        HOSTILE: [LEVELS[k] for k in gold],
        "difference": [LEVELS[k] for k in rng.integers(0, 3, 120)],
    }
    return ordinate.power(
        [LEVELS[k] for k in gold], systems, "mae", difference, scale=LEVELS, **options
    )


@pytest.fixture(scope="module")
def plan():
    return make_plan()


def list_points(chart, series):
    return [m for m in chart.list_marks() if isinstance(m, Point) and m.series == series]


def test_the_power_curve_goes_through_the_outlooks(plan):
    chart = plan.get_chart("power")
    points = list_points(chart, "power")
    assert [(x.x, x.y) for x in points] == [(x.items, x.power) for x in plan.outlooks]
    (curve,) = [mark for mark in chart.list_marks() if isinstance(mark, Line)]
    middle = np.interp([x.x for x in points], curve.x, curve.y)
    assert middle == pytest.approx([x.y for x in points], abs=0.01)
    assert chart.x.kind == "log"


def test_the_band_crosses_the_wanted_power_at_the_interval_of_needed_items(plan):
    chart = plan.get_chart("power")
    (curve,) = [mark for mark in chart.list_marks() if isinstance(mark, Line)]
    (wanted,) = [mark.y for mark in chart.list_marks() if isinstance(mark, Rule)]
    (needed,) = list_points(chart, "needed items")
    assert (needed.x, needed.y) == (plan.needed, wanted) == (plan.needed, 0.8)
    assert np.interp(wanted, curve.high, curve.x) == pytest.approx(plan.needed_low, rel=0.02)
    assert np.interp(wanted, curve.low, curve.x) == pytest.approx(plan.needed_high, rel=0.02)


def test_widths_are_those_of_the_outlooks(plan):
    chart = plan.get_chart("interval_widths")
    for name in plan.values:
        points = list_points(chart, name)
        assert [x.y for x in points] == [x.widths[name] for x in plan.outlooks]
    both = list_points(chart, "difference of the two")  # a system has the name of the difference
    assert [x.y for x in both] == [x.difference_width for x in plan.outlooks]


def test_without_a_difference_there_is_no_power():
    charts = make_plan(difference=None, items=(50, 500)).list_charts()
    assert [chart.name for chart in charts] == ["interval_widths"]
