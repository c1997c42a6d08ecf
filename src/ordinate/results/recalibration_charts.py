"""Recalibration in charts: metrics and reliability of probabilities before and after."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ordinate.render.charts import Chart
from ordinate.render.estimates import format_value_with_interval
from ordinate.results.calibration_charts import chart_reliability
from ordinate.results.metric_strips import MetricStrip, MetricStrips

if TYPE_CHECKING:
    from ordinate.results.recalibration import RecalibrationEvaluation

BEFORE, AFTER = "before", "after"


def chart_recalibration(result: "RecalibrationEvaluation") -> list[Chart]:
    """Return the views of probabilities after recalibration, and before."""
    level = None if result.after.interval is None else result.after.interval.level
    strips = [
        MetricStrip(
            score.metric,
            score.estimate,
            {BEFORE: result.before.metrics[name].estimate},
            note=f"change {format_value_with_interval(result.changes[name], level)}",
        )
        for name, score in result.after.metrics.items()
    ]
    metrics = MetricStrips(strips, level, AFTER, in_rows=True).make_charts(
        "Each metric of the probabilities before and after recalibration, with its confidence "
        "interval, on an axis of its own.",
        "recalibration",
        "Probabilities before and after recalibration",
    )
    parts = {AFTER: result.after, BEFORE: result.before}
    return [
        *metrics,
        *(
            replace(chart_reliability(part), variant=name, varies_by="recalibration")
            for name, part in parts.items()
        ),
    ]
