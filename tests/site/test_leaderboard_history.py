"""Leaderboards have the values of the reports, by data set, metric, system and date."""

import math

import pytest
from report_folders import GOLD, SHIFTED, evaluate, save_report

import ordinate
from ordinate.inference import Estimate
from ordinate.render.charts import Line, Point
from ordinate.site import write_site
from ordinate.site.leaderboard_history import collect_histories, describe_histories
from ordinate.site.report_listing import order_by_value
from ordinate.site.reported_values import ReportedValue


def make_value(value, direction="maximize", system="a"):
    return ReportedValue(system, "m", direction, Estimate(value, value, value, None), "d")


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("maximize", [3.0, 0.5, -2.0]), ("minimize", [-2.0, 0.5, 3.0]), ("zero", [0.5, -2.0, 3.0])],
)
def test_the_best_value_is_first_and_an_undefined_one_last(direction, expected):
    values = [make_value(x, direction) for x in (math.nan, 0.5, 3.0, -2.0)]
    *ordered, last = (one.estimate.value for one in order_by_value(values))
    assert ordered == expected
    assert math.isnan(last)


@pytest.fixture
def histories(tmp_path):
    """Two systems on one data set: one reported twice, the other once; and another data set."""
    folder = tmp_path / "in"
    rising = [GOLD[k] if k % 3 else "A1" for k in range(60)]
    save_report(evaluate(rising), folder / "week 1" / "model.json", 0)
    save_report(evaluate(SHIFTED), folder / "week 2" / "model.json", 7)
    save_report(evaluate(GOLD), folder / "gold.json", 8)
    save_report(ordinate.evaluate(GOLD[:8], GOLD[:8], "cefr"), folder / "few.json", 9)
    return collect_histories(write_site(folder, tmp_path / "site").reports), rising


def test_reports_of_the_same_data_stand_together_the_latest_data_first(histories):
    few, all_items = histories[0]
    assert few.data == "8 items, A1 < A2 < B1 < B2 < C1 < C2"
    assert all_items.data == "60 items, A1 < A2 < B1 < B2 < C1 < C2"
    assert all_items.metrics == ("mae", "accuracy")
    found = [(one.report.path, value.system) for one, value in all_items.select("mae")]
    assert found == [
        ("week 1/model.json", "model"),
        ("week 2/model.json", "model"),
        ("gold.json", "gold"),
    ]


def test_charts_have_each_value_at_its_date_with_its_interval(histories):
    (_, history), rising = histories
    charts = {(x.name, x.variant): x for x in history.make_charts(1)}
    assert [*charts] == [(x, m) for m in ("mae", "accuracy") for x in ("latest-1", "history-1")]
    latest = {x.y: x.x for x in charts["latest-1", "mae"].list_marks()}
    assert latest == {
        "gold": 0.0,
        "model": evaluate(SHIFTED).metrics["mae"].value,
    }
    chart = charts["history-1", "mae"]
    assert chart.x.levels == ("2024-10-04 00:00", "2024-10-11 00:00", "2024-10-12 00:00")
    (line,) = [mark for mark in chart.list_marks() if isinstance(mark, Line)]
    expected = [evaluate(predicted).metrics["mae"].estimate for predicted in (rising, SHIFTED)]
    assert line.x == chart.x.levels[:2]
    assert line.y == tuple(one.value for one in expected)
    assert line.low == tuple(one.low for one in expected)
    assert line.high == tuple(one.high for one in expected)
    points = [(x.series, x.x) for x in chart.list_marks() if isinstance(x, Point)]
    assert points == [("gold", chart.x.levels[2]), *(("model", x) for x in chart.x.levels[:2])]


def test_the_table_has_what_the_charts_show(histories):
    (_, history), _ = histories
    (grid,) = history.build_grid("accuracy")
    assert [row[:3] for row in grid.rows] == [
        ("2024-10-12 00:00", "gold.json", "gold"),
        ("2024-10-11 00:00", "week 2/model.json", "model"),
        ("2024-10-04 00:00", "week 1/model.json", "model"),
    ]
    assert [row[3] for row in grid.rows] == ["1.000", "0.850", "0.750"]
    document, charts = describe_histories(histories[0])
    assert {chart.name for chart in charts} == {"latest-1", "latest-2", "history-2"}
    assert document.verdict.startswith("2 data sets. On 8 items, ")


def test_without_values_there_is_a_page_all_the_same():
    document, charts = describe_histories([])
    assert (document.verdict, charts) == ("No report has values of a system.", [])
