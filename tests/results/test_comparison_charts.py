"""The views of a comparison have the numbers of its leaderboards and pairs."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

import ordinate
from ordinate.render import svg
from ordinate.render.charts import Line, Point, Rule, Text

LEVELS = ["A1", "A2", "B1", "B2", "C1", "C2"]
HOSTILE = "<script>alert(1)</script>"
LONG = "x" * 10_000


def make_systems(count, size=200):
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 6, size)
    names = [HOSTILE, LONG, *(f"system {k}" for k in range(count - 2))]
    noise = np.linspace(0.5, 1.5, count)
    answers = (np.clip(np.rint(gold + rng.normal(0, x, size)), 0, 5).astype(int) for x in noise)
    systems = {name: [LEVELS[k] for k in x] for name, x in zip(names, answers, strict=True)}
    return [LEVELS[k] for k in gold], systems


@pytest.fixture(scope="module")
def result():
    gold, systems = make_systems(5)
    return ordinate.compare(gold, systems, scale="cefr", metrics="cem_ord,mae", resamples=300)


def list_points(panel):
    return {mark.y: mark for mark in panel.marks if isinstance(mark, Point)}


@pytest.mark.parametrize("metric", ["cem_ord", "mae"])
def test_the_leaderboard_has_values_ranks_and_both_intervals(result, metric):
    chart, board = result.get_chart("leaderboard", metric), result.leaderboards[metric]
    assert chart.y.levels == tuple(x.system for x in board.standings)
    values, ranks = map(list_points, chart.panels)
    for x in board.standings:
        assert (values[x.system].x, values[x.system].low, values[x.system].high) == (
            x.estimate.value,
            x.estimate.low,
            x.estimate.high,
        )
        rank = ranks[x.system]
        assert (rank.x, rank.low, rank.high) == (x.rank, x.rank_low, x.rank_high)
    rules = {mark.series: mark.x for mark in chart.panels[0].marks if isinstance(mark, Rule)}
    assert rules == {
        "best constant": board.baselines.best_constant.value,
        "chance": board.baselines.chance.value,
    }


def test_differences_say_what_verdicts_are_by(result):
    test = result.leaderboards["mae"].test.method
    assert test.startswith("randomisation")
    assert f"Verdicts are by {test}:" in result.get_chart("differences", "mae").description


def test_differences_are_from_the_best_system(result):
    board, chart = result.leaderboards["mae"], result.get_chart("differences", "mae")
    best = board.standings[0].system
    points = list_points(chart.panels[0])
    assert best not in points
    for pair in board.pairs:
        if pair.first == best:
            point = points[pair.second]
            assert (point.x, point.low, point.high) == (
                -pair.difference.value,
                -pair.difference.high,
                -pair.difference.low,
            )


def test_a_system_that_is_called_system_is_told_from_the_others():
    gold, systems = make_systems(4)
    systems = dict(zip(("system", "a", "b", "c"), systems.values(), strict=True))
    found = ordinate.compare(gold, systems, scale="cefr", metrics="mae", against="system")
    chart = found.get_chart("differences")
    assert chart.series == ("other systems", "system")
    kinds = {type(mark): mark.series for mark in chart.list_marks()}
    assert kinds == {Point: "other systems", Rule: "system"}


def test_differences_are_from_the_system_that_was_named():
    gold, systems = make_systems(4)
    found = ordinate.compare(
        gold, systems, scale="cefr", metrics="mae", against="system 0", resamples=300
    )
    chart = found.get_chart("differences")
    assert [mark.series for mark in chart.list_marks() if isinstance(mark, Rule)] == ["system 0"]
    points = list_points(chart.panels[0])
    assert {pair.first: pair.difference.value for pair in found.leaderboards["mae"].pairs} == {
        name: point.x for name, point in points.items()
    }
    assert not [x for x in found.list_charts() if x.name == "significance"]


def test_significance_says_of_rows_whether_they_are_better(result):
    board, chart = result.leaderboards["mae"], result.get_chart("significance", "mae")
    cells = {(cell.y, cell.x): cell for cell in chart.list_marks()}
    assert len(cells) == 20
    shades = {"better": 1.0, "worse": -1.0, "inconclusive": 0.0, "identical": 0.0}
    assert {pair.verdict for pair in board.pairs} >= {"better", "inconclusive"}
    for pair in board.pairs:
        there, back = cells[pair.first, pair.second], cells[pair.second, pair.first]
        assert there.shade == -back.shade == shades[pair.verdict]
        assert float(there.text) == pytest.approx(pair.difference.value, abs=5e-4)
        assert float(back.text) == pytest.approx(-pair.difference.value, abs=5e-4)


def test_two_systems_and_very_many_have_no_matrix():
    gold, systems = make_systems(2)
    two = ordinate.compare(gold, systems, scale="cefr", metrics="mae", resamples=200)
    gold, systems = make_systems(61, 30)
    many = ordinate.compare(
        gold, systems, scale="cefr", metrics="mae", resamples=200, against="all"
    )
    for found in (two, many):
        assert "significance" not in {chart.name for chart in found.list_charts()}
    assert "The first 60 of 61 rows are shown." in many.get_chart("leaderboard").description


def test_rankings_are_the_ranks_under_each_metric(result):
    chart = result.get_chart("rankings")
    assert chart.x.levels == ("cem_ord", "mae")
    lines = {mark.series: mark for mark in chart.list_marks() if isinstance(mark, Line)}
    for system, line in lines.items():
        ranks = [board.get_standing(system).rank for board in result.leaderboards.values()]
        assert [int(rank) for rank in line.y] == ranks
    assert {mark.series for mark in chart.list_marks() if isinstance(mark, Text)} == set(lines)
    assert chart.list_legend() == []


def test_equals_are_named_in_the_legend():
    gold, systems = make_systems(3)
    systems["twin"] = systems["system 0"]
    found = ordinate.compare(
        gold, systems, scale="cefr", metrics="cem_ord,mae", resamples=200
    ).get_chart("rankings")
    assert found.list_legend() == ["twin"]


def test_means_over_cases_have_a_leaderboard_of_their_own():
    gold, systems = make_systems(3)
    cases = [f"case {k % 10}" for k in range(len(gold))]
    found = ordinate.compare(
        gold, systems, scale="cefr", metrics="mae", average_over=cases, resamples=200
    )
    points = list_points(found.get_chart("case_leaderboard", "mae").panels[0])
    for x in found.case_averages.leaderboards["mae"].standings:
        assert (points[x.system].x, points[x.system].low) == (x.estimate.value, x.estimate.low)


def test_names_are_shown_as_text(result):
    for chart in result.list_charts():
        drawing = svg.render(chart)
        texts = [e.text or "" for e in ET.fromstring(drawing).iter()]  # noqa: S314 - of our own making
        assert any(HOSTILE in text for text in texts)
        assert len(drawing) < 100_000
