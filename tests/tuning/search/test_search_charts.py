"""The views of a search have its trials, finalists, tests, screened inputs and curves."""

import pytest
from regression_tables import smooth

from ordinate.render.charts import Bar, Line, Point
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.analysis import analyze_search
from ordinate.tuning.search.search_charts import (
    chart_history,
    chart_importance,
    chart_learning_curves,
)

HOSTILE = "<script>alert(1)</script>"


def list_points(panel):
    return {mark.y: mark for mark in panel.marks if isinstance(mark, Point)}


def get_interval(point):
    return point.x, point.low, point.high


def get_estimate(found):
    return found.value, found.low, found.high


def test_finalists_stand_beside_the_tests(finished):
    _, result = finished
    report = result.report
    selected, *tested = result.get_chart("optimism").panels
    points = list_points(selected)
    for one in result.finalists:
        point = points[one.title]
        assert get_interval(point) == get_estimate(report.get_estimate(one.evaluation))
        assert point.series == ("winner" if one.name == result.winner.name else "model")
    assert [panel.title for panel in tested] == [test.name for test in result.tests]
    for panel, test in zip(tested, result.tests, strict=True):
        won = list_points(panel)[result.winner.title]
        assert get_interval(won) == get_estimate(report.get_estimate(test.evaluation))


def test_the_history_has_every_complete_trial_and_the_best_so_far(finished):
    root, result = finished
    chart = result.get_chart("history")
    best = max if result.report.direction == "maximize" else min
    for study, panel in zip(result.studies, chart.panels, strict=True):
        made = [(x.number, x.value) for x in study.trials if x.value is not None]
        points = [(x.x, x.y) for x in panel.marks if isinstance(x, Point)]
        assert points == made
        (line,) = [x for x in panel.marks if isinstance(x, Line)]
        assert line.y[-1] == best(value for _, value in made)
    assert analyze_search(root).get_chart("history").panels == chart.panels


def test_screened_inputs_have_their_values(finished):
    _, result = finished
    if not result.screened:
        assert "screening" not in {chart.name for chart in result.list_charts()}
        return
    points = list_points(result.get_chart("screening").panels[0])
    for one in result.screened:
        found = result.report.get_estimate(one.evaluation)
        assert get_interval(points[one.set]) == get_estimate(found)
        assert points[one.set].series == ("searched" if one.shortlisted else "not searched")


def test_the_winner_is_shown_on_the_test(finished):
    _, result = finished
    (test,) = result.tests
    if result.report.task == "tune":
        cells = {(x.y, x.x): int(x.text) for x in result.get_chart("confusion").list_marks()}
        pairs = zip(
            test.columns["gold"], test.columns["predictions"][result.winner.name], strict=True
        )
        pairs = list(pairs)
        assert cells == {cell: pairs.count(cell) for cell in cells}
        return
    points = [x for x in result.get_chart("predicted").list_marks() if isinstance(x, Point)]
    largest = {(x.x, x.y) for x in points if x.series == "largest errors"}
    predicted = test.columns["predictions"][result.winner.name]
    assert largest <= set(zip(predicted, test.columns["targets"], strict=True))


def test_learning_curves_are_those_of_the_analysis(tmp_path):
    settings = Settings(models="lightgbm", trials=5, folds=2)
    result = tune_table(smooth(), tmp_path, settings, unit="kg/m³")
    found = analyze_search(tmp_path)
    chart = found.get_chart("learning_curves", "lightgbm")
    assert chart.y.label == "RMSE (kg/m³)"
    for line, curve in zip(chart.list_marks(), found.curves["lightgbm"], strict=True):
        assert [*zip(line.x, line.y, strict=True)] == [tuple(point) for point in curve]
    assert result.get_chart("learning_curves", "lightgbm") == chart
    bars = found.get_chart("importance", "lightgbm").list_marks()
    assert {bar.y: bar.x for bar in bars} == found.importance["lightgbm"]


def test_the_best_so_far_is_nearest_to_0_where_0_is_best():
    (chart,) = chart_history({"a": [(0, 0.5), (1, 0.2), (2, 0.3)]}, "bias", None, "zero")
    (line,) = [mark for mark in chart.list_marks() if isinstance(mark, Line)]
    assert line.y == (0.5, 0.2, 0.2)
    assert chart.y.title == "|bias|"


def test_very_many_studies_are_left_out_by_number():
    history = {f"study {k}": [(0, 0.5)] for k in range(20)}
    (chart,) = chart_history(history, "mae", None, "minimize")
    assert len(chart.panels) == 12
    assert chart.description.endswith("8 more studies are not shown.")


def test_studies_without_numbers_have_no_view():
    assert chart_history({"a": []}, "mae", None, "minimize") == []
    assert chart_importance({"a": None}, "mae") == []
    assert chart_learning_curves({"a": []}, "mae", None) == []


@pytest.mark.parametrize("name", [HOSTILE, "x" * 10_000])
def test_names_of_hyperparameters_and_studies_are_kept(name):
    (chart,) = chart_importance({name: {name: 1.0}}, "mae")
    assert (chart.variant, chart.y.levels) == (name, (name,))
    assert isinstance(chart.list_marks()[0], Bar)
