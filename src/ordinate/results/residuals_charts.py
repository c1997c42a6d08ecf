"""Residuals in charts: errors by prediction and by feature, and the largest of them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ordinate.render.charts import Axis, Bar, Chart, Line, Mark, Panel, Point, Rule
from ordinate.render.estimates import (
    format_count,
    format_number,
    format_percent,
    format_value_with_interval,
    format_with_unit,
)
from ordinate.render.forest_plots import MOST_ROWS, ForestPlot, ForestRow
from ordinate.results.regression_charts import LARGEST, MEAN, make_predicted_chart

if TYPE_CHECKING:
    from ordinate.results.residuals import (
        FeatureResiduals,
        LargestError,
        ResidualAnalysis,
        ResidualBin,
    )

BIAS, NO_ERROR = "bias", "no error"
EXPLAINED, BY_CHANCE, LIMIT = "explained", "by chance", "rarely exceeded by chance"


def chart_residuals(result: "ResidualAnalysis") -> list[Chart]:
    """Return the views of residuals."""
    return [
        chart_predicted(result),
        chart_errors(result),
        *chart_explained(result),
        *(chart_feature(result, feature) for feature in result.features),
    ]


def _get_level(result: "ResidualAnalysis") -> float | None:
    return None if result.interval is None else result.interval.level


# --- by prediction -------------------------------------------------------------------------------


def chart_predicted(result: "ResidualAnalysis") -> Chart:
    """Return the mean target of each bin of predictions, with its spread, and the largest errors.

    The mean target is the mean prediction less the bias, and so are the ends of its interval.
    """
    bins = result.bins
    means = tuple(x.target for x in bins)
    band = Line(
        tuple(x.prediction for x in bins),
        means,
        tuple(x.target - x.spread for x in bins),
        tuple(x.target + x.spread for x in bins),
        series=MEAN,
    )
    points = (
        Point(
            x.prediction,
            x.target,
            x.prediction - x.bias.high,
            x.prediction - x.bias.low,
            series=MEAN,
            detail=_describe_bin(result, x),
        )
        for x in bins
    )
    largest = (
        Point(x.prediction, x.target, series=LARGEST, detail=_describe_error(result, x))
        for x in result.largest
    )
    return make_predicted_chart(
        (band, *points, *largest),
        result.unit,
        "The mean target at predictions of about the same size, with its confidence interval and "
        "a band of one standard deviation: on the dashed line, predictions are right on average.",
    )


def chart_errors(result: "ResidualAnalysis") -> Chart:
    """Return the bias at predictions of about the same size, with the spread around it."""
    bins = result.bins
    band = Line(
        tuple(x.prediction for x in bins),
        tuple(x.bias.value for x in bins),
        tuple(x.bias.value - x.spread for x in bins),
        tuple(x.bias.value + x.spread for x in bins),
        series=BIAS,
    )
    zero = Rule(y=0.0, series=NO_ERROR)
    points = (
        Point(
            x.prediction,
            x.bias.value,
            x.bias.low,
            x.bias.high,
            series=BIAS,
            detail=_describe_bin(result, x),
        )
        for x in bins
    )
    largest = (
        Point(x.prediction, x.error, series=LARGEST, detail=_describe_error(result, x))
        for x in result.largest
    )
    return Chart(
        "residuals",
        "Errors by prediction",
        "The bias at predictions of about the same size, with its confidence interval and a band "
        "of one standard deviation of the errors; above 0 predictions are too high.",
        Axis("prediction", unit=result.unit),
        Axis("error", unit=result.unit),
        (Panel((zero, band, *points, *largest)),),
        series=(BIAS, NO_ERROR, *([LARGEST] if result.largest else [])),
    )


def _describe_bin(result: "ResidualAnalysis", bin_: "ResidualBin") -> str:
    bias = format_value_with_interval(bin_.bias, _get_level(result), result.unit, format_number)
    spread = format_with_unit(bin_.spread, result.unit)
    items = format_count(bin_.n)
    return f"{bin_.name}: bias {bias}, standard deviation {spread}, {items}"


def _describe_error(result: "ResidualAnalysis", miss: "LargestError") -> str:
    name = f"row {miss.row}" if miss.name is None else miss.name
    error = format_with_unit(miss.error, result.unit)
    return f"{name}: error {error}, {format_percent(miss.share)} of the squared error"


# --- by feature ----------------------------------------------------------------------------------


def chart_explained(result: "ResidualAnalysis") -> list[Chart]:
    """Return what share of the squared error each feature explains, beside chance."""
    features = result.features[:MOST_ROWS]
    if not features:
        return []
    marks: list[Mark] = []
    for x in features:
        share = f"{x.name}: {format_percent(x.explained)} of the squared error"
        chance = f"{format_percent(x.by_chance)} by chance, rarely above {format_percent(x.limit)}"
        detail = f"{share}, {chance}"
        marks += [
            Bar(x.explained, x.name, series=EXPLAINED, detail=detail),
            Point(x.by_chance, x.name, series=BY_CHANCE, detail=detail),
            Point(x.limit, x.name, series=LIMIT, detail=detail),
        ]
    return [
        Chart(
            "explained_errors",
            "Squared error that features explain",
            "The share of the squared error that the biases in the bins of a feature make up, "
            "beside the one that shuffled errors would, on average and at most.",
            Axis("share of the squared error", low=0.0),
            Axis("feature", "ordered", tuple(x.name for x in features)),
            (Panel(tuple(marks)),),
            series=(EXPLAINED, BY_CHANCE, LIMIT),
        )
    ]


def chart_feature(result: "ResidualAnalysis", feature: "FeatureResiduals") -> Chart:
    """Return the bias in each bin of a feature."""
    rows = [
        ForestRow(name, x.bias, f"{format_count(x.n)}, rmse {format_number(x.rmse)}", BIAS)
        for name, x in zip(_make_distinct(x.name for x in feature.bins), feature.bins, strict=True)
    ]
    plot = ForestPlot(
        rows,
        Axis("error: prediction - target", unit=result.unit),
        _get_level(result),
        feature.name,
        {NO_ERROR: 0.0},
        format_number,
    )
    chart = plot.make_chart(
        "residuals_by_feature",
        "Errors by feature",
        "The bias of the items whose feature is about the same, with its confidence interval.",
        variant=feature.name,
    )
    return replace(chart, varies_by="feature")


def _make_distinct(names: Iterable[str]) -> list[str]:
    """Return names of bins, which rounding may have made alike, with a number where it has."""
    found: dict[str, None] = {}
    for name in names:
        distinct, k = name, 1
        while distinct in found:
            k += 1
            distinct = f"{name} ({k})"
        found[distinct] = None
    return list(found)
