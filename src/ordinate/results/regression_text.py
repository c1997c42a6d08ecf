"""A regression evaluation in words and grids."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ordinate.inference import Estimate
from ordinate.inference.constant_tests import FLIPPED, STUDENT
from ordinate.inference.regression import FEWEST_RESAMPLED_ITEMS, STUDENTIZED, count_items
from ordinate.metrics import Metric
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import (
    describe_clusters,
    format_count,
    format_estimate,
    format_estimate_interval,
    format_headline,
    format_number,
    format_p_value,
    format_percent,
    format_with_unit,
)
from ordinate.results.base import Record
from ordinate.results.interval_methods_text import describe_interval_methods
from ordinate.results.regression_tails import (
    describe_assumptions,
    describe_undefined_tails,
)
from ordinate.results.report_parts import lay_out_subgroups, list_subgroup_blocks
from ordinate.summaries.regression import Moments

if TYPE_CHECKING:
    from ordinate.results.regression import RegressionEvaluation

SHARE_TEXTS = {
    "r2": "R², 1 - RMSE²/σ², the share of the variance that is explained",
    "relative_accuracy": "1 - RMSE/σ, not R²",
    "nrmse": "RMSE/σ",
    "skill": "1 - RMSE/baseline RMSE, the improvement over the constant prediction",
}
TEST_NAMES = {FLIPPED: "sign flips", STUDENT: "Student's t"}
METHOD_NAMES = {
    "delta": "the delta method",
    "t": "Student's t",
    "jackknife": "the jackknife over clusters",
    "ranks": "ranks",
    "studentized": "the studentised bootstrap of N^¾ items",
    "wilson": "Wilson",
}


def describe_regression(result: "RegressionEvaluation") -> Document:
    """Return the report: errors in their unit, shares by their names, baselines, subgroups."""
    unit = f", target in {result.unit}" if result.unit else ""
    selected = _order_metrics(result)
    tables = {table.name: table for table in result.tables()}
    own = [x for x in tables["metrics"].records if not x["group"]]
    errors = [x for x in own if x["metric"].summary is Moments]
    errors.sort(key=lambda row: selected.index(row["metric"]))
    intervals = [x for x in own if x["metric"].summary is not Moments]
    figures = [row for row in tables["tails"].records if not row["group"]]
    metrics = replace(tables["metrics"], title="Prediction intervals", records=intervals)
    blocks: list[Block] = [
        _describe_left_out(result),
        *replace(tables["metrics"], records=errors).grids(),
        *(x.drop_empty_columns() for x in replace(tables["tails"], records=figures).grids()),
        *tables["baselines"].grids(),
        *(tables["normalized"].grids() if "normalized" in tables else ()),
        *metrics.grids(),
        *_describe_nominal_coverage(intervals),
        *list_subgroup_blocks(_make_subgroup_grids(result), len(result.by)),
        *(block for part in result.parts for block in part.list_blocks()),
    ]
    verdicts = {m.expression: _state_metric(result, m) for m in selected}
    leading = dict.fromkeys((selected[0], result.selected[0]))  # what was asked for first, too
    notes = [
        _explain_shares(result),
        _describe_sigmas(result),
        *describe_undefined_tails({"": result.tails}),
        *_describe_uncertainty(result),
        *_describe_constant_tests(result),
        *describe_tail_assumptions(result),
        *_describe_source(result),
    ]
    return Document(
        f"{format_count(result.summary.n)}{unit}",
        tuple(blocks),
        verdict=" ".join(verdicts[m.expression] for m in leading),
        verdicts=verdicts,
        notes=tuple(notes),
        source=result.origin.name_tab(result.origin.predicted),
        metric_titles={m.expression: m.title for m in result.selected},
    ).answer_first()


def describe_tail_assumptions(result: "RegressionEvaluation") -> list[str]:
    """Say what the intervals of squared errors assume."""
    clusters = result.groups is not None
    return describe_assumptions(
        result.selected, result.metrics, {"": result.tails}, clusters=clusters
    )


def _order_metrics(result: "RegressionEvaluation") -> list[Metric]:
    """Return the metrics as they are shown: MAE stands first where the interval of RMSE is open."""
    selected = list(result.selected)
    if any(result.metrics[m.expression].is_open for m in selected if m.name == "rmse"):
        selected.sort(key=lambda metric: metric.name != "mae")
    return selected


def _state_metric(result: "RegressionEvaluation", metric: Metric) -> str:
    """Say what a metric is, in its unit, beside the first baseline that has it."""
    found = result.metrics[metric.expression]
    level = None if result.interval is None else result.interval.level
    unit = result.get_unit(metric)
    value = format_with_unit(found.value, unit)
    text = f"{metric.expression} {format_headline(value, format_estimate_interval(found), level)}"
    errors = [(x, {"rmse": x.rmse, "mae": x.mae}.get(metric.expression)) for x in result.baselines]
    baseline, error = next(((x, error) for x, error in errors if error), (None, None))
    if baseline is None or error is None:
        return f"{text}."
    how = _compare_with_baseline(result, metric, found.value / error)
    return f"{text}: {how} always predicting the {baseline.name} ({format_with_unit(error, unit)})."


def _compare_with_baseline(result: "RegressionEvaluation", metric: Metric, ratio: float) -> str:
    """Say by how much an error is less than that of the constant, if the test says that it is."""
    tests, squared = result.against_constant, metric.name == "rmse"
    test = None if tests is None else tests.squared if squared else tests.absolute
    if test is not None and test.verdict == "inconclusive":
        return "not significantly better than"
    where = "on these items " if test is not None and squared and result.tails.warns else ""
    return f"{where}{format_percent(abs(1.0 - ratio))} {'less' if ratio < 1.0 else 'more'} than"


def _describe_left_out(result: "RegressionEvaluation") -> str:
    parts, dropped = result.origin.describe_join("targets"), result.summary.dropped
    return " ".join(
        [*parts, f"Dropped for a missing value: {format_count(dropped)}."] if dropped else parts
    )


def _describe_source(result: "RegressionEvaluation") -> list[str]:
    origin = result.origin
    files = origin.name_files()
    return [f"{files}Target: {origin.gold}. Predicted: {origin.predicted}.", *origin.notes]


def _describe_uncertainty(result: "RegressionEvaluation") -> list[str]:
    if result.interval is None:
        return []
    lines = describe_interval_methods(result.metrics, METHOD_NAMES)
    lines += _explain_missing_intervals(result.prediction_intervals)
    lines += _describe_subgroup_methods(result)
    return lines if result.groups is None else [*lines, describe_clusters(result.groups)]


def _describe_constant_tests(result: "RegressionEvaluation") -> list[str]:
    """Say what decided whether predictions are better than the constant."""
    tests = result.against_constant
    if tests is None or tests.leading is None:
        return []
    both = (("absolute", tests.absolute), ("squared", tests.squared))
    said = [
        f"of the {loss} loss by {TEST_NAMES[test.method]}, p {format_p_value(test.p)}"
        for loss, test in both
        if test is not None
    ]
    units = "items" if result.groups is None else "clusters"
    of_these = (
        " With errors as heavy as these, that of squared loss is for these items, not for new ones."
        if result.tails.warns
        else ""
    )
    name = result.baselines[0].name
    return [f"Tests of paired {units} against the {name}, one-sided: {'; '.join(said)}.{of_these}"]


def _describe_subgroup_methods(result: "RegressionEvaluation") -> list[str]:
    """Say which subgroups have Student's t, and why, where all items were resampled."""
    if STUDENTIZED not in {one.method for one in result.metrics.values()}:
        return []
    sizes = [
        count_items(part.summary)
        for part in result.by.values()
        if any(one.method == "t" for one in part.metrics.values())
    ]
    if max(sizes, default=0) >= FEWEST_RESAMPLED_ITEMS:
        return [
            f"Intervals of subgroups by Student's t: {len(result.by):,} are too many to resample."
        ]
    few = f"Subgroups of fewer than {FEWEST_RESAMPLED_ITEMS} items have intervals by Student's t."
    return [few] if sizes else []


def _explain_missing_intervals(found: dict[str, Estimate]) -> list[str]:
    """Say why there are no intervals, where there are none."""
    return [
        f"No interval for {name}: {one.note}." for name, one in found.items() if one.method is None
    ]


def _explain_shares(result: "RegressionEvaluation") -> str:
    """Say what relative metrics are the error beside, where one could be taken for another."""
    named = [f"{name} is {text}" for name, text in SHARE_TEXTS.items() if name in result.metrics]
    return f"{'; '.join(named)}." if named else ""


def _describe_sigmas(result: "RegressionEvaluation") -> str:
    unit = f" {result.unit}" if result.unit else ""
    sigma = f"{format_number(result.sigma)}{unit}"
    here = f"σ of the evaluated targets is {sigma} (in R², relative accuracy)."
    training = result.normalization
    if training is None:
        return here
    return (
        f"{here} σ of the training targets is {format_number(training.std)}{unit}, which turns "
        "errors on the normalised scale into this unit; their mean is not added to an error."
    )


def _describe_nominal_coverage(found: list[Record]) -> list[str]:
    """Say how often the intervals should hold the target, beside how often they do."""
    settings = [row["metric"].settings for row in found]
    alphas = [x["alpha"] for x in settings if "alpha" in x]
    held = [row["value"].value for row in found if row["metric"].share]
    if not alphas or not held:
        return []
    should, does = f"{100 * (1 - alphas[0]):.4g} %", f"{100 * held[0]:.1f} %"
    return [f"The intervals should hold {should} of the targets, and hold {does}."]


def _make_subgroup_grids(result: "RegressionEvaluation") -> list[Grid]:
    subgroups = result.list_subgroups()
    if not subgroups:
        return []
    counts: tuple[Cell, ...] = ("items", *(part.summary.n for _, part in subgroups))
    rows: list[tuple[Cell, ...]] = [
        (name, *(format_estimate(part.metrics[name]) for _, part in subgroups))
        for name in result.metrics
    ]
    rows += [
        (name, *(format_estimate(part.prediction_intervals[name]) for _, part in subgroups))
        for name in result.prediction_intervals
        if all(name in part.prediction_intervals for _, part in subgroups)
    ]
    grid = Grid("Subgroups", ("metric", *(name for name, _ in subgroups)), (counts, *rows))
    return [lay_out_subgroups(grid, intervals=result.interval is not None)]
