"""A meta-evaluation in charts: coverage and trust of metrics, agreement, unanimous improvement."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.render.charts import Axis, Cell, Chart, Panel
from ordinate.render.estimates import format_value_with_interval
from ordinate.render.forest_plots import MOST_ROWS, ForestPlot, ForestRow

if TYPE_CHECKING:
    from ordinate.meta.meta_result import MetaEvaluation, MetricEvaluation

REFERENCE, OTHER = "reference", "other metric"
SIGNED_TICKS = ((-1.0, "-1"), (0.0, "0"), (1.0, "1"))


def chart_meta_evaluation(result: "MetaEvaluation") -> list[Chart]:
    """Return the views of a meta-evaluation."""
    return [*chart_trust(result), *chart_agreement(result), *chart_unanimity(result)]


# --- how far metrics can be trusted --------------------------------------------------------------


def chart_trust(result: "MetaEvaluation") -> list[Chart]:
    """Return coverage, robustness, stability and discriminative power of each metric."""
    measures: dict[str, Callable[[MetricEvaluation], Estimate]] = {
        "coverage": lambda one: one.coverage,
        "robustness": lambda one: one.robustness,
        "stability": lambda one: one.stability,
        "discriminative power": lambda one: make_point_estimate(one.discriminative_power),
    }
    plots = {
        name: ForestPlot(
            [
                ForestRow(
                    one.metric.expression,
                    get_estimate(one),
                    one.reason or "",
                    REFERENCE if result.is_reference(one.metric) else OTHER,
                )
                for one in result.ranked
            ],
            Axis(name),
            result.settings.level,
            "metric",
        )
        for name, get_estimate in measures.items()
    }
    known = [plot for plot in plots.values() if plot.shown]
    if not known:
        return []
    first, *more = known
    return [
        first.make_chart(
            "trust",
            "How far each metric can be trusted",
            "Metrics from the largest coverage to the least, with confidence intervals: whether "
            "they see unanimous improvements, and rank systems alike in other test cases.",
            more=[plot.make_panel(x=plot.axis) for plot in more],
        )
    ]


def chart_agreement(result: "MetaEvaluation") -> list[Chart]:
    """Return how alike each two metrics rank the systems."""
    names = [one.metric.expression for one in result.metrics]
    order = [names.index(one.metric.expression) for one in result.ranked][:MOST_ROWS]
    if not any(not math.isnan(x.value) for row in result.agreement for x in row):
        return []
    level = result.settings.level

    def make_cell(i: int, j: int) -> Cell:
        found = result.agreement[i][j]
        text = format_value_with_interval(found, level)
        return Cell(
            names[j],
            names[i],
            found.value,
            "" if math.isnan(found.value) else f"{found.value:.2f}",
            f"{names[i]} and {names[j]}: {text}",
        )

    levels = tuple(names[k] for k in order)
    return [
        Chart(
            "agreement",
            "How alike metrics rank the systems",
            "The rank correlation of each two metrics over systems; metrics from the largest "
            "coverage to the least.",
            Axis("", "ordered", levels),
            Axis("metric", "ordered", levels),
            (Panel(tuple(make_cell(i, j) for i in order for j in order)),),
            shades="rank correlation",
            shade_ticks=SIGNED_TICKS,
        )
    ]


def chart_unanimity(result: "MetaEvaluation") -> list[Chart]:
    """Return how often each system improves on each for all references at once."""
    ratios = np.asarray(result.unanimous_improvement, float)
    systems = _sort_systems(result.panel.systems, ratios)
    if not 2 <= len(systems) <= MOST_ROWS:
        return []
    place = {name: k for k, name in enumerate(result.panel.systems)}
    cells = tuple(
        Cell(
            column,
            row,
            ratio,
            f"{ratio:+z.2f}",
            f"{row} over {column}: unanimous improvement ratio {ratio:+z.3f}",
        )
        for row in systems
        for column in systems
        if row != column
        for ratio in [float(ratios[place[row], place[column]])]
    )
    return [
        Chart(
            "unanimity",
            "Unanimous improvements between systems",
            "The share of test cases in which the row improves on the column for all references "
            "at once, less the share of the reverse.",
            Axis("improved on", "ordered", systems),
            Axis("system", "ordered", systems),
            (Panel(cells),),
            shades="unanimous improvement ratio",
            shade_ticks=SIGNED_TICKS,
        )
    ]


def _sort_systems(systems: Sequence[str], ratios: NDArray[np.float64]) -> tuple[str, ...]:
    """Return systems by their mean improvement on others, the largest first."""
    order = np.argsort(-np.nan_to_num(ratios.mean(axis=1)), kind="stable")
    return tuple(systems[k] for k in order.tolist())
