"""The report of a meta-evaluation."""

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ordinate.inference import Estimate
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    format_count,
    format_interval_head,
    format_percent,
    format_with_interval,
    join_names,
)
from ordinate.results.leaderboard_text import describe_files

if TYPE_CHECKING:
    from ordinate.meta.meta_result import MetaEvaluation, MetricEvaluation

FEW_UNITS = 10  # systems or test cases
MOST_SYSTEMS_PAIRWISE = 8  # systems whose table fits on a page; JSON has all
MOST_SYSTEMS = 30  # in one grid
MOST_SYSTEMS_ABREAST, MOST_METRICS_ABREAST = 2, 3  # columns of one grid


def describe_meta_evaluation(result: "MetaEvaluation") -> Document:
    """Return the report: what captures most, the metrics, their agreement, the systems."""
    systems = format_count(len(result.panel.systems), "system")
    return Document(
        f"{len(result.metrics)} metrics on {systems} in {result.cases:,} test cases",
        (
            *(_build_pair_grids(result) if result.has_pairs else []),
            *_build_value_grids(result),
        ),
        verdict=state_conclusion(result),
        notes=(
            *collect_notes(result),
            *([_explain_coverage(result)] if result.has_pairs else []),
            _describe_source(result),
        ),
    )


def _build_pair_grids(result: "MetaEvaluation") -> list[Grid]:
    """Return what pairs of systems say of the metrics."""
    return [
        *_build_coverage_blocks(result),
        _build_reliability_grid(result),
        _build_agreement_grid(result),
        _build_system_grid(result),
    ]


def state_conclusion(result: "MetaEvaluation") -> str:
    """Say which metric captures most, and whether significantly so."""
    best, references = result.best, join_names(m.expression for m in result.references)
    if not result.has_pairs:
        return _state_values(result)
    if best is None:
        why = dict.fromkeys(str(x.unranked_reason) for x in result.ranked if x.refusal is None)
        reasons = ", or ".join(why)
        return f"Of no metric can be said that it captures most of {references}: {reasons}."
    itself = ", one of them," if result.is_reference(best.metric) else ""
    parts = [
        f"{best.metric.expression}{itself} captures most of {references}: {_format_coverage(best)}."
    ]
    ranked = [one for one in result.ranked if one.unranked_reason is None]
    others = [one for one in ranked if not result.is_reference(one.metric)]
    if itself and others:
        name = others[0].metric.expression
        parts.append(
            f"Of the metrics that are no references, {name} does: {_format_coverage(others[0])}."
        )
    behind = [one for one in ranked if one.behind_best is not None]
    sure = [one.metric.expression for one in behind if one.behind_best and one.behind_best.high < 0]
    unsure = [one.metric.expression for one in behind if one.metric.expression not in sure]
    if sure:
        parts.append(f"It captures significantly more than {join_names(sure)}.")
    if unsure:
        parts.append(f"It is not significantly different from {join_names(unsure)}.")
    if len(ranked) > 1 and not behind:
        parts.append(
            "In most resamples some metric is undefined: which is significantly better is not "
            "known."
        )
    return " ".join(parts)


def _state_values(result: "MetaEvaluation") -> str:
    """Say what the first metric is for each of few systems, and that metrics cannot be compared."""
    first = next(one for one in result.metrics if one.values is not None)
    level = _format_interval_header(result)
    averages = first.average_systems(result.settings.level)
    values = [
        f"{system} {format_with_interval(average.estimate)}"
        for system, average in zip(result.panel.systems, averages, strict=True)
    ]
    return (
        f"Mean {first.metric.expression} over {result.cases:,} test cases, with {level}: "
        f"{join_names(values)}. Which metric deserves trust cannot be said: "
        f"{first.unranked_reason}."
    )


def collect_notes(result: "MetaEvaluation") -> list[str]:
    """Return what a reader should know before trusting the numbers."""
    notes = list(result.origin.notes)
    if result.cases_at_random:
        only = result.only_case
        why = "No test cases are named" if only is None else f"{only} is the only test case"
        notes.append(
            f"{why}: the items were split at random into {result.cases} parts of equal size "
            f"(seed {result.settings.seed})."
        )
    systems = len(result.panel.systems)
    few_units = [f"{systems} systems"] if result.has_pairs and systems < FEW_UNITS else []
    few_units += [f"{result.cases} test cases"] if result.cases < FEW_UNITS else []
    if few_units:
        notes.append(f"{' and '.join(few_units)} are few: all confidence intervals are rough.")
    if result.undefined_references:
        notes.append(
            f"A reference is undefined in {format_percent(result.undefined_references)} of the "
            "systems' test cases, where nobody improves on anybody."
        )
    infinite = [one.metric.expression for one in result.metrics if one.infinite_share > 0]
    if infinite:
        notes.append(
            f"Infinite for a system in a test case, {join_names(infinite)}: so is the mean of "
            "that system. Two such systems have no difference, and no pair is significantly "
            "different."
        )
    notes += _describe_undefined(result)
    undefined_shares = {
        one.metric.expression: one.coverage.undefined_share for one in result.metrics
    }
    partial = {name: share for name, share in undefined_shares.items() if 0 < share < 1}
    if partial:
        notes.append(
            f"Up to {format_percent(max(partial.values()))} of the resamples have no coverage and "
            f"are left out, of {join_names(partial)}."
        )
    return notes


def _describe_undefined(result: "MetaEvaluation") -> list[str]:
    """Say why metrics have no values or no intervals, those with the same reason together."""
    by_reason = defaultdict(list)
    for one in result.metrics:
        if one.reason is not None and (result.has_pairs or one.refusal is not None):
            by_reason[one.reason].append(one.metric.expression)
    return [f"{join_names(names)}: {reason}." for reason, names in by_reason.items()]


# --- grids ---------------------------------------------------------------------------------------


def _describe_source(result: "MetaEvaluation") -> str:
    origin, panel = result.origin, result.panel
    gold = f"Gold: {origin.gold}; {panel.n:,} items on {panel.scale}."
    return " ".join(describe_files(origin, panel, gold))


def _build_coverage_blocks(result: "MetaEvaluation") -> list[Grid]:
    """Return the ranked metrics, and apart the others."""
    level = _format_interval_header(result)
    ranked = tuple(
        _build_coverage_row(result, one) for one in result.ranked if one.unranked_reason is None
    )
    others = tuple(
        (
            _format_metric(result, one),
            one.coverage.value,
            _format_interval(one.coverage),
            _explain_unranked(one),
        )
        for one in result.ranked
        if one.unranked_reason is not None
    )
    references = join_names(metric.expression for metric in result.references)
    first = ("metric", "coverage", level, "behind the best", level)
    grids = (
        Grid(f"Coverage of {references}", first, ranked),
        Grid("Metrics that are not ranked", ("metric", "coverage", level, "why"), others),
    )
    return [grid for grid in grids if grid.rows]


def _explain_unranked(evaluation: "MetricEvaluation") -> str | None:
    """Say why a metric that has a coverage is not ranked; other reasons are among the notes."""
    return None if math.isnan(evaluation.coverage.value) else evaluation.unranked_reason


def _build_coverage_row(
    result: "MetaEvaluation", evaluation: "MetricEvaluation"
) -> tuple[Cell, ...]:
    coverage, behind = evaluation.coverage, evaluation.behind_best
    row = (_format_metric(result, evaluation), coverage.value, _format_interval(coverage))
    if behind is None:
        return (*row, None, None)
    return (*row, behind.value, _format_interval(behind))


def _explain_coverage(result: "MetaEvaluation") -> str:
    settings = result.settings
    return (
        "Coverage is the rank correlation, over pairs of systems, of a metric's differences with "
        "the unanimous improvement for all references; a metric that is a reference (*) has a "
        f"head start. Confidence intervals are from {settings.resamples:,} resamples (seed "
        f"{settings.seed}) of test cases "
        "and systems, never of pairs; those of differences hold for all pairs of metrics at once."
    )


def _build_reliability_grid(result: "MetaEvaluation") -> Grid:
    header = ("metric", "robustness", "stability", "significant", "undefined")
    rows = tuple(
        (
            _format_metric(result, one),
            format_with_interval(one.robustness),
            format_with_interval(one.stability),
            format_percent(one.discriminative_power),
            format_percent(one.undefined_share),
        )
        for one in result.ranked
    )
    title = (
        f"Rankings of systems with {_format_interval_header(result)} (pairs significantly "
        f"different at alpha = {result.settings.alpha:g})"
    )
    return Grid(title, header, rows, optional=("undefined",))


def _build_agreement_grid(result: "MetaEvaluation") -> Grid:
    """Return for each metric the one that ranks the systems most and least alike.

    An agreement without an interval, such as one over two systems, is in the JSON report only.
    """
    names = [one.metric.expression for one in result.metrics]
    places = {one.metric.expression: index for index, one in enumerate(result.metrics)}
    header = ("metric", "most like", "agreement", "least like", "agreement")
    rows: list[tuple[Cell, ...]] = []
    for one in result.ranked:
        own = places[one.metric.expression]
        agreement = result.agreement[own]
        others = [k for k in range(len(names)) if k != own and not math.isnan(agreement[k].low)]
        others.sort(key=lambda k: -agreement[k].value)
        row: list[Cell] = [_format_metric(result, one)]
        for k in [*others[:1], *others[-1:]]:
            row += [names[k], format_with_interval(agreement[k])]
        rows.append((*row, *[None] * (len(header) - len(row))))
    title = (
        f"Agreement of metrics (Spearman over systems) with {_format_interval_header(result)}; "
        "JSON has all pairs"
    )
    return Grid(title, header, tuple(rows))


def _build_system_grid(result: "MetaEvaluation") -> Grid:
    """Return the unanimous improvement of systems: of all pairs, or of each over all others."""
    names, improvement = result.panel.systems, result.unanimous_improvement
    mean = improvement.sum(axis=1) / (len(names) - 1)
    order = np.argsort(-mean, kind="stable")
    title = "Unanimous improvement ratio"
    if len(names) <= MOST_SYSTEMS_PAIRWISE:
        header = ("system", "mean", *(f"over {names[index]}" for index in order))
        rows: list[tuple[Cell, ...]] = [
            (
                names[index],
                float(mean[index]),
                *(None if x == index else float(improvement[index][x]) for x in order),
            )
            for index in order
        ]
        return Grid(title, header, tuple(rows))
    better, worse = (improvement > 0).sum(axis=1), (improvement < 0).sum(axis=1)
    rows = [
        (names[index], float(mean[index]), int(better[index]), int(worse[index]))
        for index in order[:MOST_SYSTEMS]
    ]
    more = len(names) - MOST_SYSTEMS
    title += f" ({more:,} more systems are in the JSON report)" if more > 0 else ""
    header = ("system", "mean", "improves on", "is improved by")
    return Grid(title, header, tuple(rows))


def _build_value_grids(result: "MetaEvaluation") -> list[Grid]:
    """Return the mean over test cases of each system: by all metrics, or by the best ones."""
    computed = [one for one in result.ranked if one.values is not None]
    systems = result.panel.systems
    title = f"Mean over {result.cases:,} test cases with {_format_interval_header(result)}"
    if len(systems) <= MOST_SYSTEMS_ABREAST:
        rows = [
            (one.metric.expression, *_format_averages(result, one, len(systems)))
            for one in computed
        ]
        header: tuple[str, ...] = ("metric", *systems)
    else:
        shown = computed[:MOST_METRICS_ABREAST]
        columns = [_format_averages(result, one, MOST_SYSTEMS) for one in shown]
        rows = list(zip(systems[:MOST_SYSTEMS], *columns, strict=True))
        header = ("system", *(one.metric.expression for one in shown))
    return [Grid(f"{title}; JSON has every metric and test case", header, tuple(rows))]


def _format_averages(
    result: "MetaEvaluation", evaluation: "MetricEvaluation", most: int
) -> list[Cell]:
    averages = evaluation.average_systems(result.settings.level)[:most]
    return [format_with_interval(average.estimate) for average in averages]


# --- words ---------------------------------------------------------------------------------------


def _format_metric(result: "MetaEvaluation", evaluation: "MetricEvaluation") -> str:
    return evaluation.metric.expression + (" *" if result.is_reference(evaluation.metric) else "")


def _format_interval_header(result: "MetaEvaluation") -> str:
    return format_interval_head(result.settings.level)


def _format_interval(estimate: Estimate) -> str | None:
    return format_interval(estimate.low, estimate.high)


def _format_coverage(evaluation: "MetricEvaluation") -> str:
    interval = _format_interval(evaluation.coverage)
    return f"coverage {format_cell(evaluation.coverage.value)}" + (
        f" ({interval})" if interval else ""
    )
