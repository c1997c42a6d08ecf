"""A comparison of regression models in words and grids."""

import math
from typing import TYPE_CHECKING

from ordinate.inference import Estimate
from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.inference.estimates import NO_INTERVAL_NOTE
from ordinate.metrics import Metric
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import (
    describe_clusters,
    format_count,
    format_difference,
    format_estimate,
    format_estimate_interval,
    format_interval_head,
    format_number,
    format_p_value,
    join_names,
)
from ordinate.results.base import BETTER_VALUES
from ordinate.results.regression import METHOD_NAMES, get_metric_unit
from ordinate.results.regression_tails import describe_undefined_tails, make_model_tails_grid

if TYPE_CHECKING:
    from ordinate.results.regression_comparison import RegressionComparison, RegressionDifference

MOST_METRICS = 3  # metrics in one grid
MOST_PAIRS = 30  # in one grid; JSON has all
DIRECTION_WORDS = {"minimize": ("smaller", "smallest"), "maximize": ("larger", "largest")}


def describe_comparison(result: "RegressionComparison") -> Document:
    """Return the report: metrics of the models, differences of the pairs, the largest errors."""
    unit = f", target in {result.unit}" if result.unit else ""
    title = f"{len(result.models)} models, {format_count(result.n)}{unit}"
    first, *others = result.conclusions.values()
    pairs = [sum(x.metric == m.expression for x in result.differences) for m in result.selected]
    more = sum(max(0, count - MOST_PAIRS) for count in pairs)
    left_out = [f"{more:,} more differences are in the JSON report."] if more else []
    return Document(
        title,
        (
            *_make_model_grids(result),
            *_make_difference_grids(result),
            *left_out,
            " ".join(others),
            make_model_tails_grid(result.tails),
        ),
        verdict=first,
        verdicts=result.conclusions,
        metric_titles={m.expression: m.title for m in result.selected},
        notes=(
            *describe_undefined_tails(result.tails),
            *_describe_uncertainty(result),
            *result.describe_tail_assumptions(),
            _explain_columns(result),
        ),
    )


# --- what it means -------------------------------------------------------------------------------


def write_conclusion(
    metric: Metric,
    found: dict[str, Estimate],
    pairs: "list[RegressionDifference]",
    unit: str | None,
) -> str:
    """Say who is better on a metric, or that it is inconclusive."""
    name = metric.expression
    if not pairs:
        note = next((one.note for one in found.values() if math.isnan(one.value)), None)
        return f"{name} compares nothing: {note or 'fewer than two models have a value'}."
    shown, leader = get_metric_unit(metric, unit), pairs[0].first
    own = [pair for pair in pairs if pair.first == leader]
    if len(own) == 1:
        return _conclude_pair(metric, own[0], shown)
    zero = metric.direction == "zero"
    most = f"{name} nearest to 0" if zero else f"{DIRECTION_WORDS[metric.direction][1]} {name}"
    if all(pair.verdict == "better" for pair in own):
        by = format_difference(own[0].estimate, shown)
        return f"{leader} has the {most}: ahead of {own[0].second}, the next, by {by}."
    verbs = {
        "better": "is ahead of",
        "different": "differs from",
        "identical": "equals",
        "inconclusive": "is not significantly different from",
        "untested": "is not tested against",
    }
    parts = [
        f"it {verb} {join_names(names)}"
        for verdict, verb in verbs.items()
        if (names := [pair.second for pair in own if pair.verdict == verdict])
    ]
    return "; ".join([f"{leader} has the {most}", *parts]) + "."


def _conclude_pair(metric: Metric, pair: "RegressionDifference", unit: str | None) -> str:
    name, gap = metric.expression, format_difference(pair.estimate, unit)
    both = f"{pair.first} and {pair.second}"
    if pair.verdict == "identical":
        return f"{both} have the same {name}."
    if pair.verdict == "different":
        return f"{both} differ in {name}: by {gap}."
    if pair.verdict == "better":
        return f"{pair.first} has the {DIRECTION_WORDS[metric.direction][0]} {name}: by {gap}."
    if pair.verdict == "untested":
        return f"{both} differ in {name} by {gap}, which is not tested: {pair.estimate.note}."
    return f"{both} are not significantly different by {name}: they differ by {gap}."


# --- words and grids -------------------------------------------------------------------------


def _make_model_grids(result: "RegressionComparison") -> list[Grid]:
    """Return the metrics of every model, as many beside each other as fit on a page."""
    title = (
        f"Metrics with {format_interval_head(result.level)}" if result.has_intervals else "Metrics"
    )
    grids = []
    for start in range(0, len(result.selected), MOST_METRICS):
        part = result.selected[start : start + MOST_METRICS]
        header = ("model", *(_format_heading(metric, result.unit) for metric in part))
        rows = tuple(
            (name, *(format_estimate(found[metric.expression]) for metric in part))
            for name, found in result.models.items()
        )
        grids.append(Grid(title, header, rows))
    return grids


def _format_heading(metric: Metric, unit: str | None) -> str:
    shown = get_metric_unit(metric, unit)
    better = f"{BETTER_VALUES[metric.direction]} is better"
    return (
        f"{metric.expression} ({shown}, {better})" if shown else f"{metric.expression} ({better})"
    )


def _describe_uncertainty(result: "RegressionComparison") -> list[str]:
    """Say how the intervals were found, why there are none, and what is unsure about them."""
    found = {(m, name): one for name, by in result.models.items() for m, one in by.items()}
    methods, others = (
        sorted({METHOD_NAMES[one.method] for one in estimates if one.method is not None})
        for estimates in (found.values(), [pair.estimate for pair in result.differences])
    )
    lines = [f"Intervals by {join_names(methods)}"] if methods else []
    lines = [
        f"{line}; of differences by {join_names(others)}." if others else f"{line}."
        for line in lines
    ]
    without: dict[tuple[str, str], list[str]] = {}
    for (metric, name), one in found.items():
        if one.method is None and one.note != NO_INTERVAL_NOTE:
            without.setdefault((metric, one.note or ""), []).append(name)
    lines += [
        f"No interval for {metric} of {join_names(names)}: {why}."
        for (metric, why), names in without.items()
    ]
    lines += [
        f"The interval for {metric} of {name} is {one.note}."
        for (metric, name), one in found.items()
        if one.is_open
    ]
    if result.groups is not None:
        lines.append(describe_clusters(result.groups))
    elif result.n < FEW_CLUSTERS:
        lines.append(f"Fewer than {FEW_CLUSTERS} items leave the intervals unsure.")
    return [" ".join(lines)] if lines else []


def _make_difference_grids(result: "RegressionComparison") -> list[Grid]:
    """Return the differences of the pairs, a grid for each metric."""
    level = (format_interval_head(result.level),) if result.has_intervals else ()
    header = ("first", "second", "difference", *level, "p", "adjusted p", "the first is")
    rows: dict[str, list[tuple[Cell, ...]]] = {}
    for pair in result.differences:
        interval = (format_estimate_interval(pair.estimate),) if result.has_intervals else ()
        row = (pair.first, pair.second, format_number(pair.estimate.value), *interval)
        tested = (format_p_value(pair.p), format_p_value(pair.p_adjusted), pair.verdict)
        rows.setdefault(pair.metric, []).append((*row, *tested))
    return [
        Grid(
            f"Differences in {metric} on the same items, first less second",
            header,
            tuple(of_metric[:MOST_PAIRS]),
            left=2,
            optional=("p", "adjusted p"),
        )
        for metric, of_metric in rows.items()
    ]


def _explain_columns(result: "RegressionComparison") -> str:
    count = len(result.models) * (len(result.models) - 1) // 2
    if count == 1:
        return "Each metric is tested on its own."
    alone = "Intervals hold for each pair alone. " if result.has_intervals else ""
    return (
        f"{alone}Adjusted p-values (Holm) hold for the {count:,} pairs "
        "within a metric, and they decide."
    )
