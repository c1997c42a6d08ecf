"""The views of probabilities have the curves, bands and counts of the calibration."""

import numpy as np
import pytest

import ordinate
from ordinate.render.charts import Bar, Line
from ordinate.results.calibration import Calibration

LEVELS = ("low", "mid", "high")


def draw_items(size=300):
    rng = np.random.default_rng(3)
    rows = rng.dirichlet([1.0, 1.0, 1.0], size)
    gold = [LEVELS[rng.choice(3, p=row)] for row in rows]
    return gold, rows


@pytest.fixture(scope="module")
def result():
    gold, rows = draw_items()
    return Calibration.of(gold, rows, scale=LEVELS, columns="scale", bins=5)


def select_marks(panel, kind, series):
    return [mark for mark in panel.marks if isinstance(mark, kind) and mark.series == series]


def test_each_event_has_its_curve_and_its_band(result):
    chart = result.get_chart("reliability")
    assert [panel.title for panel in chart.panels] == ["at most low", "at most mid"]
    for panel, curve in zip(chart.panels, result.curves.events, strict=True):
        (observed,) = select_marks(panel, Line, "observed frequency")
        assert observed.x == tuple(curve.forecast)
        assert observed.y == tuple(curve.frequency)
        (diagonal,) = select_marks(panel, Line, "calibrated")
        assert diagonal.x == diagonal.y == (0.0, *curve.forecast, 1.0)
        assert diagonal.low[1:-1] == tuple(curve.low)
        assert diagonal.high[1:-1] == tuple(curve.high)


def test_bars_are_the_shares_of_items_by_their_probability(result):
    _, rows = draw_items()
    for event, panel in enumerate(result.get_chart("reliability").panels):
        forecasts = rows.cumsum(axis=1)[:, event]
        shares = np.histogram(forecasts, 5, (0.0, 1.0))[0] / len(rows)
        bars = select_marks(panel, Bar, "share of items")
        assert [bar.y for bar in bars] == pytest.approx(shares[shares > 0].tolist())
        assert all(bar.width == pytest.approx(0.2) for bar in bars)


def test_without_intervals_there_is_no_band():
    gold, rows = draw_items(60)
    chart = Calibration.of(gold, rows, scale=LEVELS, columns="scale", interval=None).get_chart(
        "reliability"
    )
    assert all(not mark.low for mark in chart.list_marks() if isinstance(mark, Line))
    assert "band" not in chart.description


def test_very_many_events_are_thinned_out():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(30), 100)
    gold = [str(rng.choice(30, p=row) + 1) for row in rows]
    chart = Calibration.of(gold, rows, scale="1..30", columns="scale", interval=None).get_chart(
        "reliability"
    )
    assert len(chart.panels) == 10
    assert "10 of 29 events are shown." in chart.description


def test_an_evaluation_shows_the_views_of_its_probabilities():
    gold, rows = draw_items(60)
    found = ordinate.evaluate(gold, probabilities=rows, scale=LEVELS, columns="scale")
    assert found.get_chart("reliability") == found.probabilities.get_chart("reliability")
