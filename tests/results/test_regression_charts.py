"""The views of regressions have the numbers of metrics, residuals and differences."""

import math
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import ordinate
from ordinate.render import svg
from ordinate.render.charts import Bar, Line, Point, Rule
from ordinate.results.report_parts import ReportPart
from ordinate.results.residuals import analyse_residuals

HOSTILE = "<script>alert(1)</script>"
LONG = "y" * 10_000


def draw_items(size=200):
    rng = np.random.default_rng(5)
    target = rng.normal(650.0, 60.0, size)
    species = rng.choice(["oak", "spruce", HOSTILE], size)
    predicted = 0.8 * target + 130.0 + rng.normal(0.0, 25.0, size) + 10.0 * (species == "oak")
    return target, predicted, species


@pytest.fixture(scope="module")
def result():
    target, predicted, species = draw_items()
    return ordinate.evaluate_regression(
        target,
        predicted,
        unit="kg/m³",
        by=species,
        lower=predicted - 40.0,
        upper=predicted + 40.0,
        alpha=0.2,
    )


@pytest.fixture(scope="module")
def residuals():
    target, predicted, species = draw_items()
    return analyse_residuals(
        target, predicted, {"species": species, LONG: predicted}, unit="kg/m³", largest=3
    )


@pytest.fixture(scope="module")
def comparison():
    target, predicted, _ = draw_items()
    models = {"ours": predicted, HOSTILE: target + 30.0, LONG: np.full(len(target), 650.0)}
    return ordinate.compare(target=target, systems=models, metrics="rmse,bias,r2", unit="kg/m³")


def list_points(panel, series=None):
    return [x for x in panel.marks if isinstance(x, Point) and series in {None, x.series}]


def get_interval(point, along="x"):
    return getattr(point, along), point.low, point.high


def get_estimate(found):
    return found.value, found.low, found.high


# --- an evaluation -------------------------------------------------------------------------------


def test_strips_have_units_and_baselines(result):
    chart = result.get_chart("metrics")
    panels = dict(zip(result.metrics, chart.panels, strict=True))
    for name, panel in panels.items():
        (system,) = list_points(panel, "system")
        assert get_interval(system) == pytest.approx(
            get_estimate(result.metrics[name]), nan_ok=True
        )
    assert panels["rmse"].x.unit == "kg/m³"
    assert panels["r2"].x.unit is None
    for baseline in result.baselines:
        assert list_points(panels["mae"], baseline.name)[0].x == baseline.mae


def test_a_value_that_stands_alone_has_0_and_the_best_on_its_axis(result):
    ends = {panel.name: (panel.x.low, panel.x.high) for panel in result.get_chart("metrics").panels}
    assert ends["r2"] == (0.0, 1.0)
    assert ends["nrmse"] == (0.0, None)
    assert ends["rmse"] == (None, None)  # which stands beside baselines


def test_the_line_of_targets_on_predictions_is_that_of_least_squares(result):
    target, predicted, _ = draw_items()
    chart = result.get_chart("predicted")
    line = next(mark for mark in chart.list_marks() if mark.series == "mean target")
    slope, start = np.polyfit(predicted, target, 1)
    assert line.y == pytest.approx(start + slope * np.array(line.x))
    rest = np.std(target - start - slope * predicted)
    assert np.subtract(line.high, line.y) == pytest.approx([rest, rest])
    assert (chart.x.unit, chart.y.unit) == ("kg/m³", "kg/m³")
    assert (chart.x.low, chart.x.high) == (chart.y.low, chart.y.high)


def test_a_constant_prediction_has_no_line():
    found = ordinate.evaluate_regression([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    assert "predicted" not in {chart.name for chart in found.list_charts()}


def test_coverage_stands_beside_the_nominal_one(result):
    chart = result.get_chart("prediction_intervals")
    coverage, width = chart.panels
    names = ["all items", *(name for name, _ in result.list_subgroups())]
    parts = [result, *(part for _, part in result.list_subgroups())]
    for metric, panel in (("interval_coverage", coverage), ("mean_interval_width", width)):
        points = list_points(panel)
        assert [point.y for point in points] == names
        for point, part in zip(points, parts, strict=True):
            assert get_interval(point) == get_estimate(part.prediction_intervals[metric])
    assert next(x.x for x in coverage.marks if isinstance(x, Rule)) == pytest.approx(0.8)
    assert width.x.unit == "kg/m³"


def test_subgroups_have_their_values(result):
    points = list_points(result.get_chart("subgroups", "rmse").panels[0])
    for point, (name, part) in zip(points, result.list_subgroups(), strict=True):
        assert point.y == name
        assert get_interval(point) == get_estimate(part.metrics["rmse"])


# --- residuals -----------------------------------------------------------------------------------


def test_bins_have_mean_targets_and_the_spread_around_them(residuals):
    (panel,) = residuals.get_chart("predicted").panels
    for point, x in zip(list_points(panel, "mean target"), residuals.bins, strict=True):
        assert (point.x, point.y) == (x.prediction, x.target)
        assert x.prediction - point.high == pytest.approx(x.bias.low)
        assert x.prediction - point.low == pytest.approx(x.bias.high)
    band = next(x for x in panel.marks if isinstance(x, Line) and x.low)
    assert np.subtract(band.high, band.y) == pytest.approx([x.spread for x in residuals.bins])
    largest = [(x.prediction, x.target) for x in residuals.largest]
    assert [(x.x, x.y) for x in list_points(panel, "largest errors")] == largest


def test_residuals_are_biases_by_prediction(residuals):
    chart = residuals.get_chart("residuals")
    (panel,) = chart.panels
    for point, x in zip(list_points(panel, "bias"), residuals.bins, strict=True):
        assert (point.x, *get_interval(point, "y")) == (x.prediction, *get_estimate(x.bias))
    assert [x.y for x in list_points(panel, "largest errors")] == [
        x.error for x in residuals.largest
    ]
    assert chart.y.label == "error (kg/m³)"


def test_features_have_the_biases_of_their_bins(residuals):
    for feature in residuals.features:
        chart = residuals.get_chart("residuals_by_feature", feature.name)
        points = list_points(chart.panels[0])
        assert [get_interval(point) for point in points] == [
            get_estimate(x.bias) for x in feature.bins
        ]


def test_features_stand_beside_chance(residuals):
    marks = residuals.get_chart("explained_errors").list_marks()
    for x in residuals.features:
        own = [mark for mark in marks if mark.y == x.name]
        assert next(mark.x for mark in own if isinstance(mark, Bar)) == x.explained
        assert [mark.x for mark in own if isinstance(mark, Point)] == [x.by_chance, x.limit]


def test_bins_that_look_alike_keep_their_rows():
    feature = [0.12341, 0.12342, 0.12343, 0.12344] * 5
    found = analyse_residuals(range(20), range(20), {"x": feature})
    levels = found.get_chart("residuals_by_feature").y.levels
    assert levels == ("0.1234", "0.1234 (2)", "0.1234 (3)", "0.1234 (4)")


def test_a_report_with_residuals_shows_them_instead_of_a_line(result, residuals):
    whole = result.add_parts([ReportPart("residuals", residuals)])
    assert whole.get_chart("predicted") == residuals.get_chart("predicted")
    assert whole.get_chart("residuals") == residuals.get_chart("residuals")


# --- a comparison --------------------------------------------------------------------------------


def test_models_are_ordered_by_their_value(comparison):
    chart = comparison.get_chart("leaderboard", "rmse")
    points = list_points(chart.panels[0])
    values = [point.x for point in points]
    assert values == sorted(values)
    assert chart.x.unit == "kg/m³"
    board = comparison.leaderboards["rmse"]
    for point in points:
        assert get_interval(point) == get_estimate(board.get_standing(point.y).estimate)


def test_differences_and_verdicts_are_those_of_the_pairs(comparison):
    cells = {(x.y, x.x): x for x in comparison.get_chart("significance", "rmse").list_marks()}
    points = list_points(comparison.get_chart("differences", "rmse").panels[0])
    pairs = comparison.leaderboards["rmse"].pairs
    for pair in pairs:
        assert cells[pair.first, pair.second].shade == (pair.verdict == "better")
    best = {pair.second: -pair.difference.value for pair in pairs if pair.first == pairs[0].first}
    assert {point.y: point.x for point in points} == best


def test_names_are_shown_as_text(result, residuals, comparison):
    for chart in (x for each in (result, residuals, comparison) for x in each.list_charts()):
        drawing = svg.render(chart)
        assert "<script" not in drawing
        assert len(drawing) < 100_000
        root = ET.fromstring(drawing)  # noqa: S314 - of our own making
        assert not any("nan" in (x.get("d") or "") for x in root.iter())


def test_what_is_undefined_is_left_out():
    systems = {"a": [1.0, 1.5], "b": [1.2, 1.1]}
    found = ordinate.compare(target=[1.0, 1.0], systems=systems, metrics="r2")
    assert all(math.isnan(x.estimate.value) for x in found.leaderboards["r2"].standings)
    assert found.list_charts() == []
