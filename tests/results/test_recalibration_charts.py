"""The views of recalibration and of decoding have the values of both sides."""

import numpy as np
import pytest

import ordinate
from ordinate.postprocess import Decoder
from ordinate.results.decoding import Decoding
from ordinate.results.recalibration import RecalibrationEvaluation

LEVELS = ("low", "mid", "high")


def draw_items(size=120):
    rng = np.random.default_rng(6)
    rows = rng.dirichlet([1.0, 1.0, 1.0], size)
    return [LEVELS[rng.choice(3, p=row)] for row in rows], rows


def get_interval(point):
    return point.x, point.low, point.high


def get_estimate(found):
    return found.value, found.low, found.high


@pytest.fixture(scope="module")
def recalibration():
    gold, rows = draw_items()
    sharp = rows**2 / (rows**2).sum(axis=1, keepdims=True)
    return RecalibrationEvaluation.of(
        gold, sharp, rows, scale=LEVELS, columns="scale", metrics="brier,ece"
    )


@pytest.fixture(scope="module")
def decoding():
    gold, rows = draw_items()
    decoder = Decoder("mae", LEVELS, columns=LEVELS).fit(rows)
    levels = {"argmax": rows.argmax(axis=1)}
    levels["decoded"] = np.array([LEVELS.index(label) for label in decoder.predict(rows)])
    systems = {name: [LEVELS[k] for k in column] for name, column in levels.items()}
    compared = ordinate.compare(gold, systems, LEVELS, "mae,accuracy", resamples=200)
    return Decoding(
        "mae", decoder, **levels, comparison=compared, source="", fitted_on="", scored_on=""
    )


def test_metrics_stand_before_and_after(recalibration):
    chart = recalibration.get_chart("recalibration")
    assert chart.y.levels == ("before", "after")
    for name, panel in zip(("brier", "ece"), chart.panels, strict=True):
        for point in panel.marks:
            found = getattr(recalibration, point.y).metrics[name].estimate
            assert get_interval(point) == pytest.approx(get_estimate(found), nan_ok=True)


def test_reliability_is_shown_before_and_after(recalibration):
    for side in ("before", "after"):
        chart, part = recalibration.get_chart("reliability", side), getattr(recalibration, side)
        assert chart.panels == part.get_chart("reliability").panels


def test_probability_metrics_stand_beside_gold_shares_and_calibrated_systems(recalibration):
    result = recalibration.after
    for panel in result.get_chart("probability_metrics").panels:
        score, points = result.metrics[panel.name], {x.series: x for x in panel.marks}
        assert points["system"].x == score.value
        if panel.name == "brier":
            assert points["gold shares"].x == score.base_rate
        else:
            assert points["if calibrated"].x == score.perfect_calibration.mean


def test_decoded_levels_stand_below_argmax(decoding):
    chart = decoding.get_chart("decoding")
    assert chart.y.levels == ("argmax", "decoded")
    for panel in chart.panels:
        board = decoding.comparison.leaderboards[panel.name]
        for point in panel.marks:
            assert get_interval(point) == get_estimate(board.get_standing(point.y).estimate)


def test_shares_of_levels_are_those_of_the_report(decoding):
    chart = decoding.get_chart("level_shares")
    for panel in chart.panels:
        shares = decoding.compute_level_shares()[panel.name]
        assert [bar.x for bar in panel.marks] == shares.tolist()
        assert [bar.y for bar in panel.marks] == list(LEVELS)
    assert sum(bar.x for bar in chart.panels[1].marks) == pytest.approx(1.0)
