"""Predictions against targets, in charts."""

import math

from ordinate.render.charts import Axis, Chart, Line, Mark, Panel
from ordinate.render.estimates import format_number, format_with_unit
from ordinate.summaries.regression import Moments

IDENTITY, MEAN, LARGEST = "prediction = target", "mean target", "largest errors"
REACH = 2.0  # standard deviations of the predictions to which a straight line is drawn


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
