"""Calibration in charts: observed frequencies at predicted probabilities, event by event."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ordinate.inference import Estimate
from ordinate.inference.calibration_curves import CalibrationCurve
from ordinate.render.charts import MISSING, Axis, Bar, Chart, Line, Mark, Panel
from ordinate.render.estimates import format_count, format_p_value, format_percent
from ordinate.results.metric_strips import MetricStrip, MetricStrips

if TYPE_CHECKING:
    from ordinate.results.calibration import Calibration

OBSERVED, CALIBRATED, ITEMS = "observed frequency", "calibrated", "share of items"
BAND = "consistency band of a calibrated system"
GOLD_SHARES, IF_CALIBRATED = "gold shares", "if calibrated"
MOST_EVENTS = 12  # whose curves can be seen at once


def chart_calibration(result: "Calibration") -> list[Chart]:
    """Return the views of predicted probabilities."""
    return [*chart_metrics(result), chart_reliability(result)]


def chart_metrics(result: "Calibration") -> list[Chart]:
    """Return each metric of probabilities, beside gold shares and calibrated systems."""
    strips = []
    for score in result.metrics.values():
        perfect = score.perfect_calibration
        others: dict[str, Estimate | float] = {}
        if not math.isnan(score.base_rate):
            others[GOLD_SHARES] = score.base_rate
        if perfect is not None:
            others[IF_CALIBRATED] = perfect.mean
        strips.append(MetricStrip(score.metric, score.estimate, others))
    level = None if result.interval is None else result.interval.level
    return MetricStrips(strips, level).make_charts(
        "Each metric of the probabilities with its confidence interval, on an axis of its own, "
        "beside the same probabilities for every item, those of gold, and beside what a "
        "calibrated system of this size has on average.",
        "probability_metrics",
        "Metrics of the probabilities",
    )


def chart_reliability(result: "Calibration") -> Chart:
    """Return the reliability diagram of each event "gold is at most level k".

    The band lies where the curve of a calibrated system would: it belongs to the diagonal.
    """
    count = len(result.curves.events)
    step = -(-count // MOST_EVENTS)
    panels = tuple(
        Panel(
            (
                *_make_histogram(result, event),
                *_make_curves(result.curves.events[event]),
            ),
            result.curves.names[event],
        )
        for event in range(0, count, step)
    )
    band = ""
    if result.curves.tests and result.interval is not None:
        level = format_percent(result.interval.level, digits=0)
        band = f" The band is the {level} consistency band of a calibrated system."
    left_out = f" {len(panels)} of {count} events are shown." if step > 1 else ""
    return Chart(
        "reliability",
        "Reliability of the cumulative probabilities",
        "Of the items with about the same predicted probability to be at most a level, the share "
        "that is, by isotonic regression; bars are the share of items with such probabilities."
        f"{band}{left_out}",
        Axis("predicted probability", low=0.0, high=1.0),
        Axis("observed frequency", low=0.0, high=1.0),
        panels,
        series=(OBSERVED, CALIBRATED, ITEMS),
        columns=min(3, len(panels)),
    )


def _make_histogram(result: "Calibration", event: int) -> list[Mark]:
    """Return the share of items by their probability of an event."""
    items = result.summary.bins["cumulative", result.bins].items[event]
    edges = np.linspace(0.0, 1.0, result.bins + 1).tolist()
    total = items.sum()
    return [
        Bar(
            (low + high) / 2.0,
            float(count / total),
            width=high - low,
            series=ITEMS,
            detail=f"{low:.2f} to {high:.2f}: {format_count(int(count))}, "
            f"{format_percent(float(count / total))}",
        )
        for low, high, count in zip(edges, edges[1:], items.tolist(), strict=False)
        if count
    ]


def _make_curves(curve: CalibrationCurve) -> list[Mark]:
    """Return the curve over the diagonal, whose band ends with the forecasts."""
    forecast, observed = tuple(curve.forecast.tolist()), tuple(curve.frequency.tolist())
    bands = [(MISSING, *x.tolist(), MISSING) for x in (curve.low, curve.high)]
    has_band = not np.isnan(curve.low).all()
    low, high = bands if has_band else ((), ())
    perfect = curve.perfect_calibration
    p = "" if perfect is None else f", p {format_p_value(perfect.p)}"
    whole = (0.0, *forecast, 1.0)
    return [
        Line(whole, whole, low, high, series=CALIBRATED, detail=BAND if has_band else CALIBRATED),
        Line(
            forecast,
            observed,
            series=OBSERVED,
            detail=f"miscalibration {curve.terms['miscalibration']:.4f}{p}",
        ),
    ]
