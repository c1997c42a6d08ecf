"""Distribution shift in charts: both sets on each metric, and how far columns are shifted."""

import math
from typing import TYPE_CHECKING

from ordinate.render.charts import Axis, Bar, Chart, Panel
from ordinate.render.estimates import format_number, format_percent, format_value_with_interval
from ordinate.render.forest_plots import MOST_ROWS
from ordinate.results.metric_strips import MetricStrip, MetricStrips

if TYPE_CHECKING:
    from ordinate.results.distribution_shift import ColumnShift, ShiftEvaluation

INSIDE, SHIFTED = "inside", "shifted"


def chart_shift(result: "ShiftEvaluation") -> list[Chart]:
    """Return the views of a shifted test set beside the one inside."""
    return [*chart_both_sets(result), *chart_column_shifts(result)]


def chart_both_sets(result: "ShiftEvaluation") -> list[Chart]:
    """Return each metric inside and on the shifted set, on an axis of its own."""
    level = None if result.inside.interval is None else result.inside.interval.level
    strips = []
    for metric in result.inside.selected:
        name, unit = metric.expression, result.inside.get_unit(metric)
        if name in result.differences:
            gap = result.differences[name]
            text = format_value_with_interval(gap, level, unit, format_number)
            others = {INSIDE: result.inside.metrics[name]}
            note, found = f"shifted less inside {text}", result.shifted.metrics[name]
            strips.append(MetricStrip(metric, found, others, unit=unit, note=note))
    plot = MetricStrips(strips, level, SHIFTED, in_rows=True, format_value=format_number)
    return plot.make_charts(
        "Each metric with its confidence interval on both sets, on an axis of its own.",
        "shift_metrics",
        "Metrics inside and on the shifted set",
    )


def chart_column_shifts(result: "ShiftEvaluation") -> list[Chart]:
    """Return how far the mean of each column is shifted, in σ of the set inside."""
    shifts = [shift for shift in result.shifts if not math.isnan(shift.by)][:MOST_ROWS]
    if not shifts:
        return []
    bars = tuple(Bar(shift.by, shift.name, detail=_describe_shift(shift)) for shift in shifts)
    return [
        Chart(
            "column_shifts",
            "How far columns are shifted",
            "The mean of each column on the shifted set less the one inside.",
            Axis("shift of the mean", unit="σ inside"),
            Axis("column", "ordered", tuple(shift.name for shift in shifts)),
            (Panel(bars),),
        )
    ]


def _describe_shift(shift: "ColumnShift") -> str:
    means = f"{format_number(shift.shifted_mean)}, inside {format_number(shift.inside_mean)}"
    text = f"{shift.name}: {format_number(shift.by)} σ (mean {means})"
    if math.isnan(shift.beyond_range):
        return text
    return f"{text}, {format_percent(shift.beyond_range)} outside of the range inside"
