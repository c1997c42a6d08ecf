"""An evaluation in charts: metrics beside what they must beat, the confusion matrix, levels."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.render.charts import Axis, Bar, Cell, Chart, Panel, Point
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_count,
    format_percent,
    format_value_with_interval,
    format_weight,
)
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.error_attribution import attribute_errors
from ordinate.results.metric_strips import MetricStrip, MetricStrips

if TYPE_CHECKING:
    from ordinate.results.evaluation import Evaluation

MOST_LEVELS = 60  # of a scale whose cells can be seen
RATER, CONSTANT, CHANCE = "second rater", "best constant", "chance"


def chart_evaluation(result: "Evaluation") -> Iterator[Chart]:
    """Yield the views of an evaluation, the first ones those that answer first."""
    yield from chart_metrics(result)
    if len(result.confusion_matrix.scale) <= MOST_LEVELS:
        yield chart_confusion(result)
        yield chart_row_shares(result)
        yield from chart_cell_costs(result)
    yield chart_distances(result)
    if len(result.confusion_matrix.scale) <= MOST_LEVELS:
        yield chart_levels(result)
    if result.by:
        yield from chart_subgroups(result)
    if result.case_averages is not None:
        yield from result.case_averages.make_charts()
    if result.probabilities is not None:
        yield from result.probabilities.make_charts()


# --- metrics -------------------------------------------------------------------------------------


def chart_metrics(result: "Evaluation") -> list[Chart]:
    """Return the metric strip: each metric on an axis of its own, with its baselines."""
    strips = []
    for name, score in result.metrics.items():
        others: dict[str, Estimate | float] = {
            CONSTANT: score.baselines.best_constant.value,
            CHANCE: score.baselines.chance.value,
        }
        if result.second_rater is not None:
            others[RATER] = result.second_rater[name]
        found = score.estimate or make_point_estimate(score.value)
        strips.append(MetricStrip(score.metric, found, others, score.baselines.attainable))
    return MetricStrips(strips, _get_level(result)).make_charts(
        "Each metric with its confidence interval, on an axis of its own, beside the best "
        "constant prediction, chance and the range that the gold levels leave attainable.",
    )


def _get_level(result: "Evaluation") -> float | None:
    return None if result.interval is None else result.interval.level


# --- the confusion matrix ------------------------------------------------------------------------


def chart_confusion(result: "Evaluation") -> Chart:
    """Return the confusion matrix as a heat map of counts."""
    cells = result.confusion_matrix.weights
    return _chart_cells(
        result,
        "confusion",
        "Confusion matrix",
        "How many items of each gold level (rows) were predicted at each level (columns).",
        cells / max(float(cells.max()), 1e-300),
        [[format_weight(x) for x in row] for row in cells.tolist()],
        shades="items",
        most=format_weight(float(cells.max())),
    )


def chart_row_shares(result: "Evaluation") -> Chart:
    """Return the confusion matrix as a heat map of the shares of each gold level."""
    shares = _compute_row_shares(result)
    return _chart_cells(
        result,
        "confusion_shares",
        "Where the items of each gold level went",
        "Of the items of each gold level (rows), the share predicted at each level (columns).",
        shares,
        [["" if math.isnan(x) else f"{100 * x:.0f} %" for x in row] for row in shares.tolist()],
        shades="share of the gold level",
        most="100 %",
    )


def chart_cell_costs(result: "Evaluation") -> Iterator[Chart]:
    """Yield for each metric the cost of each cell: its gain if the items there were right."""
    matrix = result.confusion_matrix
    scale = matrix.scale
    for name, score in result.metrics.items():
        if math.isnan(score.value):
            continue
        gains = np.zeros_like(matrix.weights)
        for cost in attribute_errors(score.metric, matrix):
            column = -1 if cost.predicted is None else scale.lookup[cost.predicted]
            gains[scale.lookup[cost.gold], column] = cost.gain
        most = float(np.nanmax(np.abs(gains), initial=0.0)) or 1.0
        yield _chart_cells(
            result,
            "cell_costs",
            f"Cost of each cell under {name}",
            f"What {name} would gain if the items of a cell were right; rows are gold levels.",
            gains / most,
            [[format_cell(x) if x else "" for x in row] for row in gains.tolist()],
            shades=f"gain of {name}",
            most=format_cell(most),
            variant=name,
        )


def _chart_cells(
    result: "Evaluation",
    name: str,
    title: str,
    description: str,
    values: np.ndarray,
    texts: list[list[str]],
    *,
    shades: str,
    most: str,
    variant: str = "",
) -> Chart:
    """Return a heat map of the cells of the confusion matrix."""
    matrix, shares = result.confusion_matrix, _compute_row_shares(result)
    rows, columns = _list_level_names(result)
    cells = tuple(
        Cell(
            column,
            row,
            float(values[i, j]),
            texts[i][j],
            f"gold {row}, predicted {column}: {format_count(matrix.weights[i, j])}, "
            f"{format_percent(shares[i, j])} of gold {row}"
            + (f", {shades} {texts[i][j]}" if variant and texts[i][j] else ""),
        )
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    )
    return Chart(
        name,
        title,
        description,
        Axis("predicted", "ordered", columns),
        Axis("gold", "ordered", rows),
        (Panel(cells),),
        variant=variant,
        shades=shades,
        shade_ticks=_make_shade_ticks(values, most),
    )


def _make_shade_ticks(values: np.ndarray, most: str) -> tuple[tuple[float, str], ...]:
    """Return what the ends of the shades are: from 0, or from less if any cell is below 0."""
    least = ((-1.0, f"-{most}"),) if bool((values < 0).any()) else ()
    return (*least, (0.0, "0"), (1.0, most))


def _list_level_names(result: "Evaluation") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of rows and columns; a prediction may be missing."""
    matrix = result.confusion_matrix
    names = tuple(matrix.scale.names)
    return names, (*names, "no answer") if matrix.has_unanswered else names


def _compute_row_shares(result: "Evaluation") -> np.ndarray:
    weights = result.confusion_matrix.weights
    totals = weights.sum(axis=1, keepdims=True)
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), np.nan)


# --- distances and levels ------------------------------------------------------------------------


def chart_distances(result: "Evaluation") -> Chart:
    """Return how far predictions lie from gold, in levels: below 0 they are too low."""
    matrix = result.confusion_matrix
    size = len(matrix.scale)
    shares = [
        float(np.trace(matrix.share[:, :size], offset=distance))
        for distance in range(1 - size, size)
    ]
    bars = tuple(
        Bar(
            f"{distance:+d}" if distance else "0", share, detail=_describe_distance(distance, share)
        )
        for distance, share in zip(range(1 - size, size), shares, strict=True)
        if share or abs(distance) <= 2
    )
    return Chart(
        "distances",
        "Signed distance from gold",
        "The share of items by how many levels their prediction lies above gold or below it."
        + _describe_undrawn(size),
        Axis("levels above gold", "ordered", tuple(str(bar.x) for bar in bars)),
        Axis("share of items", low=0.0),
        (Panel(bars),),
    )


def _describe_undrawn(size: int) -> str:
    """Say which views a scale of many levels does not have."""
    if size <= MOST_LEVELS:
        return ""
    return (
        f" The confusion matrix and the levels are in tables only: {size:,} levels are more than "
        f"the {MOST_LEVELS} that a chart has room for."
    )


def _describe_distance(distance: int, share: float) -> str:
    side = "too high" if distance > 0 else "too low"
    where = f"{format_count(abs(distance), 'level')} {side}" if distance else "right"
    return f"{where}: {format_percent(share)} of the items"


def chart_levels(result: "Evaluation") -> Chart:
    """Return precision, recall and F1 of each level, with their intervals."""
    names = ("precision", "recall", "f1")
    levels = tuple(row["name"] for row in result.per_level)
    panels = tuple(
        Panel(
            tuple(
                Point(
                    row[name],
                    row["name"],
                    row[f"{name}_low"],
                    row[f"{name}_high"],
                    detail=f"{name} of {row['name']}: "
                    + format_value_with_interval(
                        Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], None),
                        _get_level(result),
                    ),
                )
                for row in result.per_level
                if not math.isnan(row[name])
            ),
            name,
        )
        for name in names
    )
    return Chart(
        "levels",
        "Precision, recall and F1 of each level",
        "Each level, with its confidence interval where it has one; rows are levels, lowest first.",
        Axis(low=0.0, high=1.0),
        Axis("level", "ordered", levels),
        panels,
        columns=3,
    )


# --- subgroups -----------------------------------------------------------------------------------


def chart_subgroups(result: "Evaluation") -> list[Chart]:
    """Return for each metric how every subgroup differs from the rest, or its values."""
    subgroups = result.list_subgroups()
    charts = []
    for metric in result.metrics:
        apart = all(metric in part.difference_from_rest for _, part in subgroups)
        rows = []
        for name, part in subgroups:
            score = part.metrics[metric]
            found = part.difference_from_rest[metric] if apart else score.estimate
            items = format_count(part.confusion_matrix.n)
            rows.append(ForestRow(name, found or make_point_estimate(score.value), items))
        what = f"{metric}: difference from the rest" if apart else metric
        references = {"no difference": 0.0} if apart else {}
        plot = ForestPlot(rows, Axis(what), _get_level(result), "subgroup", references)
        if plot.shown:
            title = f"Subgroups by {what}"
            about = "Each subgroup, with its confidence interval where it has one."
            charts.append(plot.make_chart("subgroups", title, about, variant=metric))
    return charts
