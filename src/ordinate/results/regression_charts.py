"""A regression evaluation in charts: metrics in their units, predictions against targets."""

import math
from typing import TYPE_CHECKING

from ordinate.metrics import find_metric
from ordinate.render.charts import Axis, Chart, Line, Mark, Panel
from ordinate.render.estimates import format_count, format_number, format_with_unit
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments

if TYPE_CHECKING:
    from ordinate.results.regression import RegressionEvaluation

IDENTITY, MEAN, LARGEST = "prediction = target", "mean target", "largest errors"
ALL_ITEMS = "all items"
REACH = 2.0  # standard deviations of the predictions to which a straight line is drawn


def chart_regression(result: "RegressionEvaluation") -> list[Chart]:
    """Return the views of a regression, and those of its parts whose names are not taken."""
    parts = [chart for part in result.parts for chart in part.result.list_charts()]
    charts = chart_metrics(result)
    if not any(chart.name == "predicted" for chart in parts):
        charts += chart_predicted_line(result.summary, result.unit)
    charts += [*chart_prediction_intervals(result), *chart_subgroups(result)]
    known = {chart.name for chart in charts}
    return [*charts, *(chart for chart in parts if chart.name not in known)]


def _get_level(result: "RegressionEvaluation") -> float | None:
    return None if result.interval is None else result.interval.level


def chart_metrics(result: "RegressionEvaluation") -> list[Chart]:
    """Return each metric on an axis of its own, errors beside those of the baselines."""
    strips = []
    for metric in result.selected:
        name = metric.expression
        others = {x.name: getattr(x, name) for x in result.baselines if name in {"rmse", "mae"}}
        unit = result.get_unit(metric)
        strips.append(MetricStrip(metric, result.metrics[name], others, unit=unit))
    return MetricStrips(strips, _get_level(result), format_value=format_number).make_charts(
        "Each metric with its confidence interval, on an axis of its own; errors beside those of "
        "simple predictors."
    )


# --- predictions and targets ---------------------------------------------------------------------


def chart_predicted_line(summary: Moments, unit: str | None) -> list[Chart]:
    """Return the straight line of targets on predictions: what the sums know of single items."""
    moments = summary.plain
    squares, products, errors = (float(moments.mean(*x)) for x in ((2, 0), (1, 1), (0, 2)))
    spread = squares + 2.0 * products + errors  # of the predictions
    if not spread > 0.0:
        return []
    slope = (squares + products) / spread
    rest = math.sqrt(max(squares - slope**2 * spread, 0.0))
    target = float(moments.y)
    middle, reach = target + float(moments.e), REACH * math.sqrt(spread)
    ends = (middle - reach, middle + reach)
    means = tuple(target + slope * (x - middle) for x in ends)
    line = Line(
        ends,
        means,
        tuple(x - rest for x in means),
        tuple(x + rest for x in means),
        series=MEAN,
        detail=f"slope {format_number(slope)}, standard deviation around the line "
        f"{format_with_unit(rest, unit)}",
    )
    return [
        make_predicted_chart(
            (line,),
            unit,
            "The straight line of targets on predictions, by least squares, with a band of one "
            "standard deviation: on the dashed line, predictions are right on average.",
        )
    ]


def make_predicted_chart(marks: tuple[Mark, ...], unit: str | None, description: str) -> Chart:
    """Return marks of targets over predictions, on axes with the same bounds."""
    drawn = Chart("", "", "", Axis(), Axis(), (Panel(marks),))
    axes = drawn.get_axes(drawn.panels[0])
    low, high = (
        min(axis.low for axis in axes if axis.low is not None),
        max(axis.high for axis in axes if axis.high is not None),
    )
    diagonal = Line((low, high), (low, high), series=IDENTITY)
    series = [x for x in (MEAN, LARGEST) if any(getattr(m, "series", "") == x for m in marks)]
    return Chart(
        "predicted",
        "Predictions against targets",
        description,
        Axis("prediction", low=low, high=high, unit=unit),
        Axis("target", low=low, high=high, unit=unit),
        (Panel((diagonal, *marks)),),
        series=(series[0], IDENTITY, *series[1:]),
    )


# --- prediction intervals and subgroups ----------------------------------------------------------


def chart_prediction_intervals(result: "RegressionEvaluation") -> list[Chart]:
    """Return how often prediction intervals hold their targets, and how wide they are."""
    if not result.prediction_intervals:
        return []
    parts = [(ALL_ITEMS, result), *result.list_subgroups()]
    metrics = [find_metric(name, PredictionIntervals) for name in result.prediction_intervals]
    alphas = [metric.settings["alpha"] for metric in metrics if "alpha" in metric.settings]
    nominal = {"nominal coverage": 1.0 - float(alphas[0])} if alphas else {}
    plots = [
        ForestPlot(
            [
                ForestRow(name, part.prediction_intervals[metric.expression], _count_items(part))
                for name, part in parts
                if metric.expression in part.prediction_intervals
            ],
            Axis(metric.expression, unit=result.get_unit(metric)),
            _get_level(result),
            "subgroup" if result.by else "items",
            nominal if metric.share else {},
            format_number,
        )
        for metric in metrics
        if metric.name in {"interval_coverage", "mean_interval_width"}
    ]
    first, *more = [plot for plot in plots if plot.shown]
    return [
        first.make_chart(
            "prediction_intervals",
            "Prediction intervals: coverage and width",
            "How often prediction intervals hold their targets, beside how often they should, and "
            "how wide they are, each with its confidence interval.",
            more=[plot.make_panel(x=plot.axis) for plot in more],
        )
    ]


def chart_subgroups(result: "RegressionEvaluation") -> list[Chart]:
    """Return the values of each metric in each subgroup, beside that of all items."""
    charts = []
    for metric in result.selected if result.by else ():
        name = metric.expression
        rows = [
            ForestRow(group, part.metrics[name], _count_items(part))
            for group, part in result.list_subgroups()
        ]
        plot = ForestPlot(
            rows,
            Axis(name, unit=result.get_unit(metric)),
            _get_level(result),
            "subgroup",
            {ALL_ITEMS: result.metrics[name].value},
            format_number,
        )
        if plot.shown:
            title = f"Subgroups by {name}"
            about = "Each subgroup, with its confidence interval where it has one."
            charts.append(plot.make_chart("subgroups", title, about, variant=name))
    return charts


def _count_items(part: "RegressionEvaluation") -> str:
    return format_count(part.summary.n)
