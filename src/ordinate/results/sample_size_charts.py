"""A sample size plan in charts: power, and the width of intervals, over the number of items."""

import math

import numpy as np

from ordinate.inference.delta_method import normal_quantile
from ordinate.render.charts import Axis, Chart, Line, Mark, Panel, Point, Rule
from ordinate.render.document import format_cell
from ordinate.render.estimates import format_count, format_interval_head, format_percent
from ordinate.results.sample_size import SampleSizePlan, compute_power

POWER, WANTED, NEEDED = "power", "wanted power", "needed items"
DIFFERENCE = "difference"
CURVE_POINTS = 60
ITEMS = Axis("items", "log")


def chart_plan(plan: SampleSizePlan) -> list[Chart]:
    """Return the views of a plan."""
    return [*chart_power(plan), chart_widths(plan)]


def chart_power(plan: SampleSizePlan) -> list[Chart]:
    """Return the power to see the difference over the number of items, and those needed."""
    points: list[Mark] = [
        Point(
            float(x.items),
            x.power,
            series=POWER,
            detail=f"{format_count(x.items)}: power {format_percent(x.power)}",
        )
        for x in plan.outlooks
        if x.power is not None
    ]
    if not points:
        return []
    power = plan.settings.power
    wanted = Rule(y=power, series=WANTED, detail=f"{WANTED}: {format_percent(power)}")
    return [
        Chart(
            "power",
            f"Power to see a difference of {plan.settings.difference:g} in "
            f"{plan.metric.expression}",
            "How often a difference of this size is significant, over the number of items; the "
            "band crosses the power that is wanted at the ends of the interval of needed items.",
            ITEMS,
            Axis("power", low=0.0, high=1.0),
            (Panel((_make_power_curve(plan), *points, wanted, *_make_needed(plan))),),
            series=(POWER, WANTED, NEEDED),
        )
    ]


def _make_power_curve(plan: SampleSizePlan) -> Line:
    """Return the curve; its band is where the power lies if the pilot's spread is off.

    The needed items go with the square of the spread, and so do the ends of their interval.
    """
    sizes = [x.items for x in plan.outlooks]
    items = tuple(np.geomspace(min(sizes) / 2.0, max(sizes) * 2.0, CURVE_POINTS).tolist())
    bounds = (plan.needed_high, plan.needed_low)
    needed = [plan.needed, *(x for x in bounds if x is not None)]
    middle, *band = [
        tuple(_compute_power(plan, n, math.sqrt(x / plan.needed)) for n in items)
        for x in needed
        if x is not None and plan.needed
    ]
    low, high = band or ((), ())
    return Line(items, middle, low, high, series=POWER)


def _compute_power(plan: SampleSizePlan, items: float, factor: float) -> float:
    difference, spread = plan.settings.difference or math.nan, plan.spread or math.nan
    error = factor * spread / math.sqrt(items)
    return compute_power(difference, error, normal_quantile(plan.settings.level))


def _make_needed(plan: SampleSizePlan) -> list[Mark]:
    if plan.needed is None:
        return []
    detail = f"needed: {format_count(plan.needed)}"
    if plan.needed_low is not None and plan.needed_high is not None:
        level = format_interval_head(plan.settings.level)
        detail += f" ({level} {plan.needed_low:,} to {plan.needed_high:,})"
    return [Point(float(plan.needed), plan.settings.power, series=NEEDED, detail=detail)]


def chart_widths(plan: SampleSizePlan) -> Chart:
    """Return how wide the intervals of the systems and of their difference will be."""
    widths = {name: [x.widths[name] for x in plan.outlooks] for name in plan.values}
    apart = [x.difference_width for x in plan.outlooks if x.difference_width is not None]
    if apart:
        name = DIFFERENCE
        while name in widths:
            name += " of the two"
        widths[name] = apart
    items = tuple(float(x.items) for x in plan.outlooks)
    marks: list[Mark] = []
    for name, column in widths.items():
        marks.append(Line(items, tuple(column), series=name))
        marks += [
            Point(n, width, series=name, detail=f"{name}, {format_count(int(n))}: {text} wide")
            for n, width in zip(items, column, strict=True)
            for text in [format_cell(width)]
        ]
    level = format_interval_head(plan.settings.level)
    return Chart(
        "interval_widths",
        f"Width of the {level} of {plan.metric.expression}",
        "How wide the confidence intervals will be, over the number of items.",
        ITEMS,
        Axis(f"width of the {level}", low=0.0),
        (Panel(tuple(marks)),),
        series=tuple(widths),
    )
