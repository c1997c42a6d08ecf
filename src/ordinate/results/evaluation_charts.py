"""An evaluation in charts: metrics beside what they must beat, the confusion matrix, levels."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ordinate.inference import Estimate
from ordinate.render.charts import Axis, Bar, Cell, Chart, Panel, Point
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_count,
    format_percent,
    format_value_with_interval,
    format_weight,
)
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.base import Record
from ordinate.results.error_attribution import attribute_errors
from ordinate.results.metric_scores import Score
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.summaries import ConfusionMatrix

MOST_LEVELS = 60  # of a scale whose cells can be seen
RATER, CONSTANT, CHANCE = "second rater", "best constant", "chance"


# --- metrics -------------------------------------------------------------------------------------


def chart_metrics(
    scores: Mapping[str, Score], rater: Mapping[str, Estimate] | None, level: float | None
) -> list[Chart]:
    """Return the metric strip: each metric on an axis of its own, with its baselines."""
    strips = []
    for name, score in scores.items():
        others: dict[str, Estimate | float] = {
            CONSTANT: score.baselines.best_constant.value,
            CHANCE: score.baselines.chance.value,
        }
        if rater is not None:
            others[RATER] = rater[name]
        strips.append(MetricStrip(score.metric, score.found, others, score.baselines.attainable))
    return MetricStrips(strips, level).make_charts(
        "Each metric with its confidence interval, on an axis of its own, beside the best "
        "constant prediction, chance and the range that the gold levels leave attainable.",
    )


# --- the confusion matrix ------------------------------------------------------------------------


def chart_confusion(matrix: ConfusionMatrix) -> Chart:
    """Return the confusion matrix as a heat map of counts."""
    cells = matrix.weights
    return _chart_cells(
        matrix,
        "confusion",
        "Confusion matrix",
        "How many items of each gold level (rows) were predicted at each level (columns).",
        cells / max(float(cells.max()), 1e-300),
        [[format_weight(x) for x in row] for row in cells.tolist()],
        shades="items",
        most=format_weight(float(cells.max())),
    )


def chart_row_shares(matrix: ConfusionMatrix) -> Chart:
    """Return the confusion matrix as a heat map of the shares of each gold level."""
    shares = _compute_row_shares(matrix)
    return _chart_cells(
        matrix,
        "confusion_shares",
        "Where the items of each gold level went",
        "Of the items of each gold level (rows), the share predicted at each level (columns).",
        shares,
        [["" if math.isnan(x) else f"{100 * x:.0f} %" for x in row] for row in shares.tolist()],
        shades="share of the gold level",
        most="100 %",
    )


def chart_cell_costs(matrix: ConfusionMatrix, scores: Mapping[str, Score]) -> Iterator[Chart]:
    """Yield for each metric the cost of each cell: its gain if the items there were right."""
    scale = matrix.scale
    for name, score in scores.items():
        if math.isnan(score.value):
            continue
        gains = np.zeros_like(matrix.weights)
        for cost in attribute_errors(score.metric, matrix):
            column = -1 if cost.predicted is None else scale.lookup[cost.predicted]
            gains[scale.lookup[cost.gold], column] = cost.gain
        most = float(np.nanmax(np.abs(gains), initial=0.0)) or 1.0
        yield _chart_cells(
            matrix,
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
    matrix: ConfusionMatrix,
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
    shares = _compute_row_shares(matrix)
    rows, columns = _list_level_names(matrix)
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


def _list_level_names(matrix: ConfusionMatrix) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of rows and columns; a prediction may be missing."""
    names = tuple(matrix.scale.names)
    return names, (*names, "no answer") if matrix.has_unanswered else names


def _compute_row_shares(matrix: ConfusionMatrix) -> np.ndarray:
    weights = matrix.weights
    totals = weights.sum(axis=1, keepdims=True)
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), np.nan)


# --- distances and levels ------------------------------------------------------------------------


def chart_distances(matrix: ConfusionMatrix) -> Chart:
    """Return how far predictions lie from gold, in levels: below 0 they are too low."""
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


def chart_levels(rows: Sequence[Record], level: float | None) -> Chart:
    """Return precision, recall and F1 of each level, with their intervals."""
    names = ("precision", "recall", "f1")
    levels = tuple(row["name"] for row in rows)
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
                        level,
                    ),
                )
                for row in rows
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


def chart_subgroups(
    metric: str,
    subgroups: Sequence[tuple[str, Estimate, float]],
    level: float | None,
    *,
    apart: bool,
) -> Iterator[Chart]:
    """Yield values of subgroups of so many items, or how far they are `apart` from the rest."""
    rows = [ForestRow(name, found, format_count(items)) for name, found, items in subgroups]
    what = f"{metric}: difference from the rest" if apart else metric
    references = {"no difference": 0.0} if apart else {}
    plot = ForestPlot(rows, Axis(what), level, "subgroup", references)
    if plot.shown:
        about = "Each subgroup, with its confidence interval where it has one."
        yield plot.make_chart("subgroups", f"Subgroups by {what}", about, variant=metric)
