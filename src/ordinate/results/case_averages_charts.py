"""Averages over cases in charts: each case with its interval, beside the mean over all."""

from typing import TYPE_CHECKING

import numpy as np

from ordinate.inference import Estimate
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.render.charts import Axis, Chart
from ordinate.render.estimates import format_count
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.base import BETTER_VALUES

if TYPE_CHECKING:
    from ordinate.results.case_averages import CaseAverages, CaseScore

CASE, MEAN = "case", "mean over cases"


def chart_cases(result: "CaseAverages") -> list[Chart]:
    """Return for each metric the mean over cases, and every case, worst first."""
    level = None if result.interval is None else result.interval.level
    charts = []
    for name, score in result.metrics.items():
        better = BETTER_VALUES[score.metric.direction]
        plot = ForestPlot(
            [_make_mean_row(result, score), *_make_case_rows(result, score, level)],
            Axis(f"{name}, {better} is better"),
            level,
            result.column or CASE,
        )
        if plot.shown:
            title = f"Cases by {name}"
            about = (
                "The mean over cases, and the cases, worst first, each with its confidence "
                "interval; those of cases are by their standard errors, except the worst ones."
            )
            charts.append(plot.make_chart("cases", title, about, variant=name))
    return charts


def _make_mean_row(result: "CaseAverages", score: "CaseScore") -> ForestRow:
    cases = format_count(score.average.cases, "case")
    name = MEAN
    while name in result.shown_names:
        name += " (all)"
    return ForestRow(name, score.estimate, cases, MEAN)


def _make_case_rows(
    result: "CaseAverages", score: "CaseScore", level: float | None
) -> list[ForestRow]:
    merits = np.asarray(score.metric.merit(score.values), float)
    return [
        ForestRow(
            result.shown_names[place],
            score.worst.get(place) or _estimate_case(score, place, level),
            format_count(result.items[place].item()),
            CASE,
        )
        for place in np.argsort(merits, kind="stable").tolist()
    ]


def _estimate_case(score: "CaseScore", place: int, level: float | None) -> Estimate:
    """Return the value of a case with the interval of its standard error."""
    value, error = float(score.values[place]), float(score.standard_errors[place])
    if level is None:
        return Estimate(value, np.nan, np.nan, None)
    bounds = compute_bounded_interval(value, error, score.metric.bounds, normal_quantile(level))
    return Estimate(value, *bounds, "delta")
