"""A search in charts: trials over time, learning curves, importance, screening, optimism."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ordinate.inference import Estimate
from ordinate.render.charts import Axis, Bar, Chart, Line, Panel, Point
from ordinate.render.estimates import format_count, format_number, format_percent, format_with_unit
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.base import BETTER_VALUES, Record

if TYPE_CHECKING:
    from ordinate.tuning.search.tuning_result import Finalist, TuningResult

LEVEL = 0.95  # of the intervals of a search
TRIAL, BEST = "trial", "best so far"
SHORTLISTED, DISCARDED = "searched", "not searched"
WINNER = "winner"
MOST_STUDIES = 12  # whose trials can be seen at once
History = Mapping[str, Sequence[tuple[int, float]]]  # trial and value, by study


def chart_tuning(result: "TuningResult") -> list[Chart]:
    """Return the views of a tuning run, and those of the tests that its task has."""
    report = result.report
    history = {
        study.title: [(x.number, x.value) for x in study.trials if x.value is not None]
        for study in result.studies
    }
    curves = {
        study.title: collect_curves(study.list_trials()["trials"], {"value": study.best.value})
        for study in result.studies
        if study.best is not None
    }
    return [
        *chart_optimism(result),
        *report.list_test_charts(result),
        *chart_history(history, report.metric, report.unit, report.direction),
        *chart_learning_curves(curves, report.metric, report.unit),
        *chart_screening(result),
    ]


def collect_curves(trials: Sequence[Record], best: Record | None) -> list[Any]:
    """Return the curves of the fits of the best trial, one for each part."""
    if best is None:
        return []
    complete = [one for one in trials if one["value"] is not None]
    found = min(complete, key=lambda one: abs(one["value"] - abs(best["value"])), default={})
    return list(found.get("curves", []))


# --- trials --------------------------------------------------------------------------------------


def chart_history(history: History, metric: str, unit: str | None, direction: str) -> list[Chart]:
    """Return the value of each complete trial, and the best one so far, study by study."""
    known = [(name, trials) for name, trials in history.items() if trials]
    if not known:
        return []
    shown = known[:MOST_STUDIES]
    left_out = len(known) - len(shown)
    more = f" {left_out:,} more studies are not shown." if left_out else ""
    value = f"|{metric}|" if direction == "zero" else metric
    return [
        Chart(
            "history",
            f"Trials of the search for {metric}",
            f"The {value} of each complete trial, and the best one so far.{more}",
            Axis("trial", integer=True),
            Axis(value, unit=unit),
            tuple(_make_history_panel(name, trials, unit, direction) for name, trials in shown),
            series=(TRIAL, BEST),
            columns=min(2, len(shown)),
        )
    ]


def _make_history_panel(
    name: str, trials: Sequence[tuple[int, float]], unit: str | None, direction: str
) -> Panel:
    numbers = tuple(float(number) for number, _ in trials)
    values = [value for _, value in trials]
    best = tuple(accumulate(values, max if direction == "maximize" else min))
    points = tuple(
        Point(number, value, series=TRIAL, detail=f"trial {number:g}: {text}")
        for number, value in zip(numbers, values, strict=True)
        for text in [format_with_unit(value, unit)]
    )
    return Panel((*points, Line(numbers, best, series=BEST)), name, name=name)


def chart_importance(
    importance: Mapping[str, Mapping[str, float] | None], metric: str
) -> list[Chart]:
    """Return the share of the variance that each hyperparameter of a study explains."""
    return [
        Chart(
            "importance",
            f"Importance of the hyperparameters of {study}",
            f"The share of the variance of {metric} over trials that each hyperparameter explains.",
            Axis("share of the variance", low=0.0),
            Axis("hyperparameter", "ordered", tuple(found)),
            (
                Panel(
                    tuple(
                        Bar(share, name, detail=f"{name}: {format_percent(share)}")
                        for name, share in found.items()
                    )
                ),
            ),
            variant=study,
            varies_by="study",
        )
        for study, found in importance.items()
        if found
    ]


def chart_learning_curves(
    curves: Mapping[str, Iterable[Sequence[Any]]], metric: str, unit: str | None
) -> list[Chart]:
    """Return how the fits of the best trial of each study went, step by step."""
    charts = []
    for study, fits in curves.items():
        lines = [
            Line(
                tuple(float(step) for step, _ in curve),
                tuple(math.nan if value is None else float(value) for _, value in curve),
                series=f"fit {fit}",
                detail=f"fit {fit}: {format_count(len(curve), 'point')}",
            )
            for fit, curve in enumerate(fits, start=1)
        ]
        if lines:
            charts.append(
                Chart(
                    "learning_curves",
                    f"Learning curves of {study}",
                    f"The {metric} of the best trial, step by step, on rows by which fits stop "
                    "early; one line for each fit.",
                    Axis("step", integer=True),
                    Axis(metric, unit=unit),
                    (Panel(tuple(lines)),),
                    series=tuple(line.series for line in lines),
                    variant=study,
                    varies_by="study",
                )
            )
    return charts


# --- models --------------------------------------------------------------------------------------


def chart_screening(result: "TuningResult") -> list[Chart]:
    """Return every input with the cheap model, best first."""
    report = result.report
    rows = [
        ForestRow(
            one.set,
            report.get_estimate(one.evaluation),
            format_count(one.features, "feature"),
            SHORTLISTED if one.shortlisted else DISCARDED,
        )
        for one in result.screened
        if one.evaluation is not None
    ]
    plot = _make_plot(
        result, sorted(rows, key=lambda x: _rank_value(result, x.estimate.value)), "feature set"
    )
    if not plot.shown:
        return []
    return [
        plot.make_chart(
            "screening",
            f"Feature sets with {result.screening_model}",
            f"Each feature set {report.basis} with a cheap model, with its confidence interval; "
            "the best ones are searched.",
        )
    ]


def chart_optimism(result: "TuningResult") -> list[Chart]:
    """Return the finalists as they were selected, beside their values on data that select none."""
    report = result.report
    rows = [_make_row(result, x, report.get_estimate(x.evaluation)) for x in _sort(result)]
    plot = _make_plot(result, rows, "model")
    if not plot.shown:
        return []
    further = []
    if result.nested is not None:
        found = report.get_estimate(result.nested.evaluation)
        further.append(("nested", [_make_row(result, result.winner, found)]))
    for test in result.tests:
        tested = report.list_test_estimates(result, test)
        found_rows = [
            _make_row(result, x, tested[x.name]) for x in _sort(result) if x.name in tested
        ]
        further.append((test.name, found_rows))
    panels = [
        _make_plot(result, rows, "model").make_panel(name)
        for name, rows in further
        if any(not math.isnan(row.estimate.value) for row in rows)
    ]
    return [
        plot.make_chart(
            "optimism",
            f"Models {report.basis}, and on data that selected none of them",
            "Models, best first, with confidence intervals: the best of many is optimistically "
            "biased, and data that selected nothing are not.",
            panel_title=report.basis.removeprefix("by ").removeprefix("on the "),
            more=panels,
        )
    ]


def _sort(result: "TuningResult") -> "list[Finalist]":
    return sorted(result.finalists, key=lambda x: _rank_value(result, x.value))


def _rank_value(result: "TuningResult", value: float) -> float:
    """Return a number that is the smaller the better a value is, and infinite for none."""
    if math.isnan(value):
        return math.inf
    direction = result.report.direction
    return -value if direction == "maximize" else abs(value)


def _make_row(result: "TuningResult", one: "Finalist", found: Estimate) -> ForestRow:
    """Return a finalist; the winner is told from the others by its mark."""
    won = WINNER if one.name == result.winner.name else ""
    return ForestRow(one.title, found, won, won)


def _make_plot(result: "TuningResult", rows: Sequence[ForestRow], noun: str) -> ForestPlot:
    report = result.report
    axis = Axis(f"{report.metric}, {BETTER_VALUES[report.direction]} is better", unit=report.unit)
    return ForestPlot(rows, axis, LEVEL, noun, format_value=format_number)
