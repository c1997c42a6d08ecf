"""Averages over cases in words and grids."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ordinate.inference.case_averages import FEW_ITEMS, FIXED_METHOD, SAMPLED_METHOD
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    format_count,
    format_headline,
    format_interval_head,
    join_names,
)
from ordinate.results.base import BETTER_VALUES

if TYPE_CHECKING:
    from ordinate.results.case_averages import CaseAverages, CaseScore
    from ordinate.scale import Scale

MOST_NAMED = 5  # cases in a sentence
METHOD_SENTENCES = {
    SAMPLED_METHOD: "Intervals of means over cases take the cases as the sample (Student's t); the "
    "noise of their items is in them already.",
    FIXED_METHOD: "Intervals of means over cases are about these very cases, and take their items "
    "as the sample (jackknife within each case, Student's t, on a scale without bounds).",
}
SPREAD_NOTE = (
    "SD is the standard deviation over cases, SD less noise what is left of it without the noise "
    "of few items in each case."
)
POOLED_NOTE = (
    "In a mean over cases each case counts the same; the pooled value weighs items, and its "
    "clusters are the cases. Where a metric is biased in small tables, its mean depends on how "
    "many items the cases have."
)
OWN_SCALES_NOTE = (
    "Each case is evaluated on its own scale, so there is no pooled value. The mean is the plain "
    "one; the Fisher-z mean of kappas or correlations is another number."
)


def describe_case_averages(
    result: "CaseAverages", pooled: Mapping[str, float] | None = None
) -> Document:
    """Return the report: the mean over cases of each metric, the worst cases, those without."""
    blocks: list[Block] = [
        _make_means_grid(result, pooled),
        *_describe_cases_without_value(result),
        *_make_worst_grid(result),
    ]
    return Document(
        _write_title(result),
        tuple(blocks),
        verdict=_state_mean(result, pooled),
        notes=(*_describe_method(result, pooled), *_describe_source(result, pooled)),
    )


def _write_title(result: "CaseAverages") -> str:
    scales = "" if result.scales is None else f" on {len(set(result.scales))} scales"
    return f"{format_count(result.items.sum())} in {_count_cases(result)}{scales}"


def _count_cases(result: "CaseAverages") -> str:
    column = "" if result.column is None else f" of {result.column}"
    return f"{format_count(len(result.names), 'case')}{column}"


def _state_mean(result: "CaseAverages", pooled: Mapping[str, float] | None) -> str:
    """Say what the mean of the first metric is, and the pooled value, and which case is worst."""
    name, score = next(iter(result.metrics.items()))
    subject = f"Mean over {_count_cases(result)}"
    if not score.average.cases:
        return f"{subject}: {name} has no value in any case: {score.found.reason}."
    found = score.estimate
    level = None if result.interval is None else result.interval.level
    value = format_headline(format_cell(found.value), format_interval(found.low, found.high), level)
    beside = "" if pooled is None else f"; pooled {format_cell(pooled[name])}"
    worst = next(iter(score.worst), None)
    last = ""
    if worst is not None and score.average.cases > 1:
        at = format_cell(float(score.values[worst]))
        last = f" The worst case is {result.shown_names[worst]} ({at})."
    return f"{subject}: {name} {value}{beside}.{last}"


def _make_means_grid(result: "CaseAverages", pooled: Mapping[str, float] | None) -> Grid:
    head = () if result.interval is None else (format_interval_head(result.interval.level),)
    beside = () if pooled is None else ("pooled",)
    header = ("metric", "better", "mean", *head, *beside, "SD", "SD less noise", "cases")
    rows = []
    for name, score in result.metrics.items():
        interval = format_interval(score.estimate.low, score.estimate.high) or "none"
        row: tuple[Cell, ...] = (name, BETTER_VALUES[score.metric.direction], score.value)
        row += (interval,) if head else ()
        row += () if pooled is None else (pooled[name],)
        spreads = (score.average.spread, score.average.true_spread)
        rows.append((*row, *spreads, score.average.cases))
    title = f"Mean over {_count_cases(result)}"
    return Grid(title, header, tuple(rows), left=2, optional=("better",))


def _describe_cases_without_value(result: "CaseAverages") -> list[str]:
    """Say in which cases metrics have no value, and why; those of the same cases together."""
    by_cases: dict[tuple[str | None, tuple[int, ...]], list[str]] = {}
    for name, score in result.metrics.items():
        places = tuple(score.cases_without_value.tolist())
        if places:
            by_cases.setdefault((score.found.reason, places), []).append(name)
    lines = []
    for (reason, places), names in by_cases.items():
        listed = join_names([result.shown_names[k] for k in places], MOST_NAMED)
        verb = "has" if len(names) == 1 else "have"
        lines.append(
            f"{join_names(names)} {verb} no value in {len(places):,} of "
            f"{format_count(len(result.names), 'case')}, which the mean leaves out ({reason}): "
            f"{listed}."
        )
    return [" ".join(lines)]


def _make_worst_grid(result: "CaseAverages") -> list[Grid]:
    """Return the worst cases by the first metric, each with an interval of its own."""
    name, score = next(iter(result.metrics.items()))
    if result.interval is None or len(score.worst) < 2:
        return []
    scales = () if result.scales is None else ("scale",)
    header = ("case", *scales, "items", name, format_interval_head(result.interval.level))
    rows = tuple(_make_worst_row(result, score, place) for place in score.worst)
    return [Grid(f"Worst cases by {name}; JSON has all", header, rows, left=1 + len(scales))]


def _make_worst_row(result: "CaseAverages", score: "CaseScore", place: int) -> tuple[Cell, ...]:
    own = score.worst[place]
    scale = () if result.scales is None else (_shorten_scale(result.scales[place]),)
    interval = format_interval(own.low, own.high) or "none"
    return (result.shown_names[place], *scale, result.items[place].item(), own.value, interval)


def _shorten_scale(scale: "Scale") -> str:
    names = scale.names
    return " < ".join(names if len(names) <= MOST_NAMED else (*names[:2], "…", names[-1]))


def _describe_method(result: "CaseAverages", pooled: Mapping[str, float] | None) -> list[str]:
    """Say what the means are, and how their intervals were found."""
    notes = [OWN_SCALES_NOTE, *_warn_of_steps(result)] if result.scales is not None else []
    notes += [] if pooled is None else [POOLED_NOTE]
    if result.interval is not None:
        notes.append(METHOD_SENTENCES[FIXED_METHOD if result.fixed else SAMPLED_METHOD])
        if not result.fixed and len(result.names) < VERY_FEW_CLUSTERS:
            notes.append(f"{_count_cases(result)} are few: the intervals of means are rough.")
        notes += _warn_of_few_items(result)
        notes += [
            f"No interval for the mean of {name} over cases: {score.estimate.note}."
            for name, score in result.metrics.items()
            if score.estimate.method is None and score.average.cases
        ]
    return [*notes, SPREAD_NOTE, *_warn_of_small_cases(result)]


def _warn_of_few_items(result: "CaseAverages") -> list[str]:
    """Say how many fixed cases have few items, whose noise is all that the intervals know."""
    sizes = next(iter(result.metrics.values())).found.sizes
    few = 0 if sizes is None or not result.fixed else int((sizes < FEW_ITEMS).sum())
    if not few:
        return []
    verb = "has" if few == 1 else "have"
    note = f"{few:,} of {format_count(len(result.names), 'case')} {verb} fewer than {FEW_ITEMS} "
    note += "items: the intervals of means are rough, and those of metrics that are biased in "
    note += "small tables (kappas, averages over levels) miss the value of larger cases more often."
    return [note]


def _warn_of_small_cases(result: "CaseAverages") -> list[str]:
    """Say which metrics have no standard error in some cases: their noise is a guess."""
    lacking = [
        f"{name} ({unknown:,} of {score.average.cases:,})"
        for name, score in result.metrics.items()
        if (unknown := score.average.cases - int((~np.isnan(score.standard_errors)).sum()))
    ]
    if not lacking:
        return []
    note = f"Cases too small for a standard error of their own: {join_names(lacking)}. Up to half "
    note += "of the cases may be such, and are taken for as noisy, item by item, as the others; "
    return [f"{note}otherwise SD less noise is undefined."]


def _warn_of_steps(result: "CaseAverages") -> list[str]:
    """Say which means add steps of different scales."""
    if len({scale.span for scale in result.scales or ()}) < 2:
        return []
    steps = [n for n, s in result.metrics.items() if math.isinf(max(map(abs, s.metric.bounds)))]
    if not steps:
        return []
    names = join_names(steps)
    return [f"{names}: in steps of each scale, so cases of long scales dominate the mean."]


def _describe_source(result: "CaseAverages", pooled: Mapping[str, float] | None) -> list[str]:
    if pooled is not None:  # the report that this is a section of says it
        return []
    origin = result.origin
    return [
        *origin.describe_join("gold levels"),
        f"{origin.name_files()}Gold: {origin.gold}. Predicted: {origin.predicted}.",
        *origin.notes,
    ]
