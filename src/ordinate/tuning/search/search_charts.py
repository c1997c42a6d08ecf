"""A search in charts: trials over time, learning curves, importance, screening, optimism."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ordinate.render.charts import Axis, Bar, Chart, Line, Panel, Point
from ordinate.render.estimates import format_count, format_percent, format_with_unit
from ordinate.results.base import Record

LEVEL = 0.95  # of the intervals of a search
TRIAL, BEST = "trial", "best so far"
SHORTLISTED, DISCARDED = "searched", "not searched"
WINNER = "winner"
MOST_STUDIES = 12  # whose trials can be seen at once
History = Mapping[str, Sequence[tuple[int, float]]]  # trial and value, by study


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
