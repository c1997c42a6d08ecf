"""The views of an evaluation have the numbers of the evaluation."""

import numpy as np
import pytest

import ordinate
from ordinate.errors import BadOption

LEVELS = "low,mid,high"
COUNTS = [[8, 2, 0], [1, 6, 3], [0, 2, 8]]


@pytest.fixture(scope="module")
def result():
    return ordinate.evaluate(ordinate.ConfusionMatrix.from_counts(COUNTS, scale=LEVELS))


def test_strips_have_values_intervals_and_baselines(result):
    chart = result.get_chart("metrics")
    assert len(chart.panels) == len(result.metrics)
    for panel, score in zip(chart.panels, result.metrics.values(), strict=True):
        points = {mark.series: mark for mark in panel.marks}
        system = points["system"]
        assert (system.x, system.low, system.high) == (
            score.value,
            score.estimate.low,
            score.estimate.high,
        )
        if not np.isnan(score.baselines.best_constant.value):
            assert points["best constant"].x == score.baselines.best_constant.value
        if score.baselines.attainable is not None:
            assert (points["attainable"].base, points["attainable"].x) == score.baselines.attainable


def test_the_heat_map_has_rows_of_gold_and_counts(result):
    chart = result.get_chart("confusion")
    cells = {(cell.y, cell.x): cell for cell in chart.list_marks()}
    assert cells["low", "mid"].text == "2"
    assert cells["mid", "high"].text == "3"
    assert cells["low", "low"].shade == cells["high", "high"].shade == 1.0
    assert chart.x.levels == chart.y.levels == ("low", "mid", "high")


def test_shares_are_of_the_gold_level(result):
    cells = {(c.y, c.x): c.shade for c in result.get_chart("confusion_shares").list_marks()}
    assert cells["mid", "high"] == pytest.approx(0.3)


@pytest.mark.parametrize("metric", ["accuracy", "mae", "quadratic_kappa"])
def test_costs_of_cells_are_those_of_the_error_attribution(result, metric):
    chart = result.get_chart("cell_costs", metric)
    costs = ordinate.evaluate(
        result.confusion_matrix, metrics=[metric], error_attribution=[metric]
    ).error_attribution[metric]
    most = max(abs(cost.gain) for cost in costs)
    cells = {(c.y, c.x): c.shade for c in chart.list_marks()}
    for cost in costs:
        assert cells[cost.gold, cost.predicted] == pytest.approx(cost.gain / most)


def test_distances_are_signed_and_add_up(result):
    bars = {bar.x: bar.y for bar in result.get_chart("distances").list_marks()}
    assert bars["+1"] == pytest.approx(5 / 30)
    assert bars["-1"] == pytest.approx(3 / 30)
    assert sum(bars.values()) == pytest.approx(1.0)


def test_levels_have_their_intervals(result):
    chart = result.get_chart("levels")
    recall = next(panel for panel in chart.panels if panel.title == "recall")
    for point, row in zip(recall.marks, result.per_level, strict=True):
        assert (point.x, point.low, point.high) == (
            row["recall"],
            row["recall_low"],
            row["recall_high"],
        )


def test_unanswered_items_have_a_column():
    gold, predicted = ["low", "mid", "high"], ["low", None, "high"]
    found = ordinate.evaluate(gold, predicted, scale=LEVELS, missing="worst")
    assert found.get_chart("confusion").x.levels[-1] == "no answer"


def test_subgroups_show_their_difference_from_the_rest():
    gold = ["low", "mid", "high"] * 20
    predicted = ["low", "mid", "mid"] * 20
    by = ["a"] * 30 + ["b"] * 30
    found = ordinate.evaluate(gold, predicted, scale=LEVELS, by=by)
    points = {p.y: p for p in found.get_chart("subgroups", "accuracy").list_marks()}
    gap = found.by["a"].difference_from_rest["accuracy"]
    assert (points["a"].x, points["a"].low) == (gap.value, gap.low)


def test_a_chart_that_is_not_there_is_refused_by_name(result):
    with pytest.raises(BadOption, match=r"There is no chart 'heat'. There are: metrics, confusion"):
        result.get_chart("heat")
    with pytest.raises(BadOption, match=r"There is no chart 'cell_costs' of 'rps'. There are: cem"):
        result.get_chart("cell_costs", "rps")


@pytest.mark.parametrize("top", [59, 60])
def test_a_scale_of_very_many_levels_has_distances_and_says_what_is_not_drawn(top):
    gold = [k % top for k in range(200)]
    result = ordinate.evaluate(gold, [x + k % 2 for k, x in enumerate(gold)], f"0..{top}", "mae")
    names = {chart.name for chart in result.list_charts()}
    distances = result.get_chart("distances")
    assert {"metrics", "distances"} <= names
    assert ({"confusion", "levels"} <= names) == (top == 59)
    assert ("61 levels are more than the 60" in distances.description) == (top == 60)
    assert {bar.x: bar.y for bar in distances.list_marks() if bar.y} == {"0": 0.5, "+1": 0.5}


def test_a_single_item_is_no_items():
    result = ordinate.evaluate(["A1", "B1", "B1"], ["A1", "B1", "B1"], "cefr", "mae", interval=None)
    details = [mark.detail for mark in result.get_chart("confusion").list_marks()]
    assert sum(": 1 item, " in x for x in details) == 1
    assert sum(": 2 items, " in x for x in details) == 1
