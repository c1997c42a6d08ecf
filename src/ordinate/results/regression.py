"""Regression: what predictions of a target are worth, in its own unit."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.constant_tests import FLIPPED, STUDENT, LossTests
from ordinate.inference.estimates import NO_INTERVAL_NOTE, make_point_estimate
from ordinate.inference.prediction_intervals import (
    estimate_clustered_interval_metric,
    estimate_interval_metric,
)
from ordinate.inference.regression import (
    FEWEST_RESAMPLED_ITEMS,
    STUDENTIZED,
    count_items,
    decide_for_moments,
    estimate_regression_metrics,
    estimate_regression_metrics_of_each,
    explain_undefined,
)
from ordinate.metrics import Metric, find_metric
from ordinate.render import Block, Document, Grid
from ordinate.render.charts import Axis, Chart
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
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.render.tables import NAME, NUMBER, UNIT_ESTIMATE, Column, Table, to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Origin,
    Record,
    Result,
    Serializable,
    name_subgroups,
    record_call,
)
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.results.regression_charts import chart_predicted_line
from ordinate.results.regression_tails import (
    ErrorTails,
    compute_tails,
    describe_assumptions,
    describe_undefined_tails,
)
from ordinate.results.report_parts import (
    ReportPart,
    describe_interval_methods,
    lay_out_subgroups,
    list_subgroup_blocks,
)
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments

DEFAULT_METRICS = (
    "rmse",
    "mae",
    "median_absolute_error",
    "max_error",
    "bias",
    "r2",
    "relative_accuracy",
    "nrmse",
    "skill",
)
UNIT_METRICS = {"rmse", "mae", "median_absolute_error", "max_error", "bias"} | {
    "baseline_rmse",
    "baseline_mae",
}
SQUARED_UNIT_METRICS = {"mse"}
HISTOGRAM_METRICS = {"median_absolute_error", "error_percentile"}
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
ALL_ITEMS = "all items"
MEDIAN_BASELINE = "median"
PREVIOUS_BASELINE = "previous value"


Part = tuple[Moments, Moments | None]  # a summary, and the batch of its clusters


def get_metric_unit(metric: Metric, unit: str | None) -> str | None:
    """Return the unit of a metric; a share has none."""
    if unit is None or metric.name not in UNIT_METRICS | SQUARED_UNIT_METRICS:
        return None
    return f"({unit})²" if metric.name in SQUARED_UNIT_METRICS else unit


@dataclass(frozen=True)
class RegressionBaseline(Serializable):
    """A simple predictor: its errors on the same targets."""

    name: str
    rmse: float
    mae: float
    constant: float | None = None  # what it always predicts
    note: str | None = None


@dataclass(frozen=True, repr=False, eq=False)
class RegressionEvaluation(Result):
    """Regression targets and predictions with their metrics, baselines and subgroups.

    >>> from ordinate import evaluate_regression
    >>> result = evaluate_regression([670.0, 700.0, 640.0], [660.0, 705.0, 650.0], unit="kg/m³")
    >>> round(result.metrics["rmse"].value, 3)
    8.66
    """

    summary: Moments
    metrics: dict[str, Estimate]
    selected: tuple[Metric, ...]
    baselines: tuple[RegressionBaseline, ...]
    unit: str | None = None
    normalization: Normalization | None = None
    by: dict[Hashable, "RegressionEvaluation"] = field(default_factory=dict)
    groups: int | None = None
    interval: ConfidenceIntervals | None = None
    against_constant: LossTests | None = None  # the first of the baselines; not of subgroups
    origin: Origin = field(default_factory=lambda: Origin("target", "predicted"))
    prediction_intervals: dict[str, Estimate] = field(default_factory=dict)
    parts: tuple[ReportPart, ...] = ()  # further parts of the report

    @classmethod
    def from_summary(
        cls,
        summary: Moments,
        metrics: MetricSelection = None,
        *,
        unit: str | None = None,
        normalization: Normalization | None = None,
        by: Iterable[tuple[Any, Moments]] = (),
        groups: Moments | None = None,
        previous: Moments | None = None,
        interval: IntervalOption = 0.95,
        origin: Origin | None = None,
    ) -> "RegressionEvaluation":
        """Evaluate a summary that is already made, and those of its subgroups.

        With `groups`, a batch of what each cluster has, subgroups are such batches, too.
        """
        if summary.shape:
            raise BadOption("Evaluate one summary; a batch is evaluated one by one, or pooled.")
        return cls.from_parts(
            (summary, groups),
            select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments),
            unit=unit,
            normalization=normalization,
            by=[
                (name, (part.pooled, part) if part.shape else (part, None))
                for name, part in by
                if np.any(part.items)
            ],
            previous=previous,
            interval=interval,
            origin=origin,
        )

    @classmethod
    @record_call
    def from_parts(
        cls,
        whole: Part,
        metrics: Sequence[Metric],
        *,
        unit: str | None,
        normalization: Normalization | None,
        by: Iterable[tuple[Any, Part]],
        previous: Moments | None,
        interval: IntervalOption,
        origin: Origin | None,
    ) -> "RegressionEvaluation":
        """Evaluate summaries, each beside a batch of its clusters where it has some."""
        parts, origin = dict(by), origin or Origin("target", "predicted")
        intervals = resolve_intervals(interval)
        first, *found = _evaluate_each(
            [whole, *parts.values()], list(metrics), intervals, unit, normalization
        )
        columns = Origin(origin.gold, origin.predicted)
        constant, tests = find_constant(whole[0]), None
        if intervals is not None and constant is not None:
            tests = decide_for_moments(*whole, constant, intervals)
        return replace(
            first,
            against_constant=tests,
            baselines=tuple(_compute_baselines(whole[0], previous)),
            by={x: replace(y, origin=columns) for x, y in zip(parts, found, strict=True)},
            origin=origin,
        )

    @record_call
    def replace_estimates(
        self,
        estimates: Mapping[str, Estimate],
        interval: ConfidenceIntervals | None,
        by: Mapping[Hashable, Mapping[str, Estimate]] = MappingProxyType({}),
        tests: LossTests | None = None,
    ) -> "RegressionEvaluation":
        """Return the same with intervals that come from the items, `by` those of subgroups.

        Values stay those of the summary, but for the percentiles, which items know exactly. `tests`
        are those against a constant, where items made them.
        """

        def change(
            part: RegressionEvaluation, found: Mapping[str, Estimate]
        ) -> RegressionEvaluation:
            exact = {m.expression for m in part.selected if m.name in HISTOGRAM_METRICS}
            new = {
                name: x if name in exact else replace(x, value=part.metrics[name].value)
                for name, x in found.items()
            }
            return replace(part, metrics=part.metrics | new, interval=interval)

        parts = {name: change(part, by.get(name, {})) for name, part in self.by.items()}
        tests = tests or self.against_constant
        return replace(change(self, estimates), by=parts, against_constant=tests)

    @record_call
    def add_prediction_intervals(
        self,
        bounds: PredictionIntervals,
        *,
        alpha: float,
        metrics: Sequence[Metric] = (),
        by: Mapping[Hashable, PredictionIntervals] = MappingProxyType({}),
    ) -> "RegressionEvaluation":
        """Return the same with what prediction intervals are worth that leave out a share alpha.

        A batch of bounds is one for each cluster; `by` are those of subgroups.
        """

        def add(part: RegressionEvaluation, own: PredictionIntervals) -> RegressionEvaluation:
            found = evaluate_prediction_intervals(own, alpha, self.interval, metrics)
            return replace(part, prediction_intervals=found)

        return replace(add(self, bounds), by={x: add(y, by[x]) for x, y in self.by.items()})

    @record_call
    def add_parts(self, parts: Sequence[ReportPart]) -> "RegressionEvaluation":
        """Return the same, whose report has further parts."""
        return replace(self, parts=tuple(parts))

    @property
    def sigma(self) -> float:
        """The population standard deviation of the evaluated targets."""
        return math.sqrt(max(float(self.summary.plain.mean(2, 0)), 0.0))

    @cached_property
    def tails(self) -> ErrorTails:
        """How much of the squared error is in a few items."""
        return compute_tails(self.summary)

    def get_unit(self, metric: Metric) -> str | None:
        """Return the unit of a metric, of prediction intervals, too; a share has none."""
        if metric.summary is PredictionIntervals:
            return None if metric.share else self.unit
        return get_metric_unit(metric, self.unit)

    def normalized(self) -> dict[str, float]:
        """Return the metrics that have a unit on the normalised scale."""
        if self.normalization is None:
            return {}
        powers = {m.expression: 2 if m.name in SQUARED_UNIT_METRICS else 1 for m in self.selected}
        return {
            m.expression: self.metrics[m.expression].value
            / self.normalization.std ** powers[m.expression]
            for m in self.selected
            if m.name in UNIT_METRICS | SQUARED_UNIT_METRICS
        }

    def list_subgroups(self) -> "list[tuple[str, RegressionEvaluation]]":
        """Return the subgroups by their names as strings, made distinct where they look alike."""
        return name_subgroups(self.by)

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason."""
        summary, training = self.summary, self.normalization
        return {
            "schema": SCHEMA,
            "task": "regression",
            "n": summary.n,
            "weight": float(summary.total),
            "unit": self.unit,
            "dropped": summary.dropped,
            "metrics": {
                m.expression: self.metrics[m.expression].to_dict()
                | {"direction": m.direction, "unit": self.get_unit(m)}
                for m in self.selected
            },
            "tails": self.tails.to_dict()
            | {"assumption": " ".join(describe_tail_assumptions(self)) or None},
            "baselines": to_plain(self.baselines),
            "against_constant": to_plain(self.against_constant),
            "targets": to_plain({"mean": float(summary.plain.y), "sigma": self.sigma}),
            "normalization": training and {"mean": training.mean, "std": training.std},
            "normalized": to_plain(self.normalized()),
            "prediction_intervals": to_plain(self.prediction_intervals),
            "interval": None if self.interval is None else self.interval.level,
            "groups": self.groups,
            "by": to_plain(dict(self.list_subgroups())),
            **{part.name: part.result.to_dict() for part in self.parts},
            "source": self.origin.to_dict(),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return metrics beside baselines, predictions against targets, intervals, subgroups.

        Charts of further parts follow, but for names that are taken; predictions are theirs.
        """
        parts = [chart for part in self.parts for chart in part.result.list_charts()]
        charts = self._chart_metrics()
        if not any(chart.name == "predicted" for chart in parts):
            charts += chart_predicted_line(self.summary, self.unit)
        charts += [*self._chart_prediction_intervals(), *self._chart_subgroups()]
        known = {chart.name for chart in charts}
        return [*charts, *(chart for chart in parts if chart.name not in known)]

    def _chart_metrics(self) -> list[Chart]:
        """Return each metric on an axis of its own, errors beside those of the baselines."""
        strips = []
        for metric in self.selected:
            name = metric.expression
            others = {x.name: getattr(x, name) for x in self.baselines if name in {"rmse", "mae"}}
            unit = self.get_unit(metric)
            strips.append(MetricStrip(metric, self.metrics[name], others, unit=unit))
        return MetricStrips(strips, self.level, format_value=format_number).make_charts(
            "Each metric with its confidence interval, on an axis of its own; errors beside those "
            "of simple predictors."
        )

    def _chart_prediction_intervals(self) -> list[Chart]:
        """Return how often prediction intervals hold their targets, and how wide they are."""
        if not self.prediction_intervals:
            return []
        parts = [(ALL_ITEMS, self), *self.list_subgroups()]
        metrics = [find_metric(name, PredictionIntervals) for name in self.prediction_intervals]
        alphas = [metric.settings["alpha"] for metric in metrics if "alpha" in metric.settings]
        nominal = {"nominal coverage": 1.0 - float(alphas[0])} if alphas else {}
        plots = [
            ForestPlot(
                [
                    ForestRow(
                        name,
                        part.prediction_intervals[metric.expression],
                        format_count(part.summary.n),
                    )
                    for name, part in parts
                    if metric.expression in part.prediction_intervals
                ],
                Axis(metric.expression, unit=self.get_unit(metric)),
                self.level,
                "subgroup" if self.by else "items",
                nominal if metric.share else {},
                format_number,
            )
            for metric in metrics
            if metric.name in {"interval_coverage", "mean_interval_width"}
        ]
        first, *more = [plot for plot in plots if plot.shown]
        return [
            first.make_chart(
                "prediction_intervals",
                "Prediction intervals: coverage and width",
                "How often prediction intervals hold their targets, beside how often they should, "
                "and how wide they are, each with its confidence interval.",
                more=[plot.make_panel(x=plot.axis) for plot in more],
            )
        ]

    def _chart_subgroups(self) -> list[Chart]:
        """Return the values of each metric in each subgroup, beside that of all items."""
        charts = []
        for metric in self.selected if self.by else ():
            name = metric.expression
            rows = [
                ForestRow(group, part.metrics[name], format_count(part.summary.n))
                for group, part in self.list_subgroups()
            ]
            plot = ForestPlot(
                rows,
                Axis(name, unit=self.get_unit(metric)),
                self.level,
                "subgroup",
                {ALL_ITEMS: self.metrics[name].value},
                format_number,
            )
            if plot.shown:
                title = f"Subgroups by {name}"
                about = "Each subgroup, with its confidence interval where it has one."
                charts.append(plot.make_chart("subgroups", title, about, variant=name))
        return charts

    @property
    def level(self) -> float | None:
        """The level of the intervals, None where there are none."""
        return None if self.interval is None else self.interval.level

    def tables(self) -> Iterable[Table]:
        """Return the metrics, of all items and then of each subgroup, large errors, baselines."""
        everything: list[tuple[str, RegressionEvaluation]] = [("", self), *self.list_subgroups()]
        columns = [
            Column("group", shown=False),
            Column("metric", kind=NAME, get=lambda row: row["metric"].expression),
            Column(
                "better",
                kind=NAME,
                get=lambda row: BETTER_VALUES[row["metric"].direction],
                stored=False,
            ),
            Column("value", kind=UNIT_ESTIMATE),
            Column("unit", get=lambda row: self.get_unit(row["metric"]), shown=bool(self.unit)),
            Column("n", shown=False),
        ]
        records = [
            {"group": group, "metric": metric, "value": found, "n": part.summary.n}
            for group, part in everything
            for metric, found in part.list_estimates()
        ]
        yield Table("metrics", "Metrics", columns, records, self.level)
        tails = [
            {"group": group, **row}
            for group, part in everything
            for row in part.tails.list_figures(self.unit)
        ]
        columns = [
            Column("group", shown=False),
            Column("metric", shown=False),
            Column("figure", kind=NAME, stored=False),
            Column("value", shown=False),
            Column("shown", "value", stored=False),
            Column("unit", shown=bool(self.unit)),
            Column("note", shown=False),
        ]
        yield Table("tails", "Large errors", columns, tails)
        columns = [
            Column("name", "always", NAME),
            Column("note", kind=NAME),
            Column("constant", "prediction", NUMBER),
            Column("rmse", kind=NUMBER),
            Column("mae", kind=NUMBER),
        ]
        yield Table("baselines", "Baselines", columns, self.baselines)
        columns = [
            Column("metric", kind=NAME, get=lambda row: row[0]),
            Column(
                "value",
                self.unit or "in its unit",
                NUMBER,
                get=lambda row: self.metrics[row[0]].value,
            ),
            Column("normalized", "normalised", NUMBER, get=lambda row: row[1]),
        ]
        both = list(self.normalized().items())
        if both:
            yield Table("normalized", "On both scales", columns, both)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return flat records by the name of their table, those of further parts among them."""
        further = {
            f"{part.name}_{name}": records
            for part in self.parts
            for name, records in part.result.list_tables().items()
        }
        return super().list_tables() | further

    def list_estimates(self) -> list[tuple[Metric, Estimate]]:
        """Return the metrics with their values, and those of prediction intervals after them."""
        found = self.prediction_intervals.items()
        return [
            *((m, self.metrics[m.expression]) for m in self.selected),
            *((find_metric(name, PredictionIntervals), one) for name, one in found),
        ]

    def document(self) -> Document:
        """Return the report: errors in their unit, shares by their names, baselines, subgroups."""
        unit = f", target in {self.unit}" if self.unit else ""
        selected = _order_metrics(self)
        tables = {table.name: table for table in self.tables()}
        own = [x for x in tables["metrics"].records if not x["group"]]
        errors = [x for x in own if x["metric"].summary is Moments]
        errors.sort(key=lambda row: selected.index(row["metric"]))
        intervals = [x for x in own if x["metric"].summary is not Moments]
        figures = [row for row in tables["tails"].records if not row["group"]]
        metrics = replace(tables["metrics"], title="Prediction intervals", records=intervals)
        blocks: list[Block] = [
            _describe_left_out(self),
            *replace(tables["metrics"], records=errors).grids(),
            *(x.drop_empty_columns() for x in replace(tables["tails"], records=figures).grids()),
            *tables["baselines"].grids(),
            *(tables["normalized"].grids() if "normalized" in tables else ()),
            *metrics.grids(),
            *_describe_nominal_coverage(intervals),
            *list_subgroup_blocks(_make_subgroup_grids(self), len(self.by)),
            *(block for part in self.parts for block in part.list_blocks()),
        ]
        verdicts = {m.expression: _state_metric(self, m) for m in selected}
        leading = dict.fromkeys((selected[0], self.selected[0]))  # what was asked for first, too
        notes = [
            _explain_shares(self),
            _describe_sigmas(self),
            *describe_undefined_tails({"": self.tails}),
            *_describe_uncertainty(self),
            *_describe_constant_tests(self),
            *describe_tail_assumptions(self),
            *_describe_source(self),
        ]
        return Document(
            f"{format_count(self.summary.n)}{unit}",
            tuple(blocks),
            verdict=" ".join(verdicts[m.expression] for m in leading),
            verdicts=verdicts,
            notes=tuple(notes),
            source=self.origin.name_tab(self.origin.predicted),
            metric_titles={m.expression: m.title for m in self.selected},
        ).answer_first()


def find_constant(summary: Moments) -> str | None:
    """Return the name of the constant that predictions are tested against, if it is known."""
    return next((name for name in (TRAIN_MEAN, TARGET_MEAN) if name in summary.constants), None)


def evaluate_prediction_intervals(
    bounds: PredictionIntervals,
    alpha: float,
    intervals: ConfidenceIntervals | None,
    further: Sequence[Metric] = (),
) -> dict[str, Estimate]:
    """Return what prediction intervals are worth that should leave out a share alpha.

    A batch of bounds is one for each group of items that belong together.
    """
    named = ("interval_coverage", "mean_interval_width", f"winkler(alpha={alpha})")
    metrics = {
        m.expression: m
        for m in (*(find_metric(name, PredictionIntervals) for name in named), *further)
    }
    if intervals is None:
        summary = bounds.pooled if bounds.shape else bounds
        return {name: make_point_estimate(float(m(summary))) for name, m in metrics.items()}
    estimate = estimate_clustered_interval_metric if bounds.shape else estimate_interval_metric
    return {name: estimate(m, bounds, intervals.level) for name, m in metrics.items()}


def _evaluate_each(
    summaries: Sequence[tuple[Moments, Moments | None]],
    metrics: list[Metric],
    intervals: ConfidenceIntervals | None,
    unit: str | None,
    normalization: Normalization | None,
) -> list[RegressionEvaluation]:
    """Evaluate many summaries, each beside a batch of its clusters, if it has any."""
    estimates = _estimate_metrics_of_each(metrics, summaries, intervals)
    return [
        RegressionEvaluation(
            summary=summary,
            metrics=found,
            selected=tuple(metrics),
            baselines=tuple(_compute_baselines(summary)),
            unit=unit,
            normalization=normalization,
            groups=None if groups is None else int((groups.items > 0).sum()),
            interval=intervals,
        )
        for (summary, groups), found in zip(summaries, estimates, strict=True)
    ]


def _estimate_metrics_of_each(
    metrics: list[Metric],
    summaries: Sequence[tuple[Moments, Moments | None]],
    intervals: ConfidenceIntervals | None,
) -> list[dict[str, Estimate]]:
    """Return the metrics of summaries, each beside a batch of its clusters, if it has any."""
    if intervals is None:
        return [_compute_points(metrics, summary) for summary, _ in summaries]
    if any(groups is not None for _, groups in summaries):
        return [
            estimate_regression_metrics(
                metrics, summary if groups is None else groups, intervals, summary
            )
            for summary, groups in summaries
        ]
    return estimate_regression_metrics_of_each(metrics, [x for x, _ in summaries], intervals)


def _compute_points(metrics: list[Metric], summary: Moments) -> dict[str, Estimate]:
    estimates = {}
    for metric in metrics:
        value = float(metric(summary))
        note = explain_undefined(metric) if math.isnan(value) else NO_INTERVAL_NOTE
        estimates[metric.expression] = make_point_estimate(value, note)
    return estimates


def _compute_baselines(
    summary: Moments, previous: Moments | None = None
) -> list[RegressionBaseline]:
    """Return the constant predictors, and the previous value where a time order is declared."""
    titles = {
        TRAIN_MEAN: "training mean",
        TARGET_MEAN: "mean of the targets",
        MEDIAN_BASELINE: "median of the targets",
    }
    found = []
    for name, title in titles.items():
        if name in summary.constants:
            value = summary.constants[name]
            spread = float(summary.plain.mean(2, 0)) + (float(summary.plain.y) - value) ** 2
            mean = float(summary.spread[name] / summary.total)
            note = None if name == TRAIN_MEAN else "computed from the evaluated targets"
            found.append(RegressionBaseline(title, math.sqrt(spread), mean, value, note))
    if previous is not None:
        rmse, mae = (float(find_metric(name, Moments)(previous)) for name in ("rmse", "mae"))
        found.append(
            RegressionBaseline(PREVIOUS_BASELINE, rmse, mae, None, "the first item has none")
        )
    return found


# --- in words ------------------------------------------------------------------------------------


def describe_tail_assumptions(result: RegressionEvaluation) -> list[str]:
    """Say what the intervals of squared errors assume."""
    clusters = result.groups is not None
    return describe_assumptions(
        result.selected, result.metrics, {"": result.tails}, clusters=clusters
    )


def _order_metrics(result: RegressionEvaluation) -> list[Metric]:
    """Return the metrics as they are shown: MAE stands first where the interval of RMSE is open."""
    selected = list(result.selected)
    if any(result.metrics[m.expression].is_open for m in selected if m.name == "rmse"):
        selected.sort(key=lambda metric: metric.name != "mae")
    return selected


def _state_metric(result: RegressionEvaluation, metric: Metric) -> str:
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


def _compare_with_baseline(result: RegressionEvaluation, metric: Metric, ratio: float) -> str:
    """Say by how much an error is less than that of the constant, if the test says that it is."""
    tests, squared = result.against_constant, metric.name == "rmse"
    test = None if tests is None else tests.squared if squared else tests.absolute
    if test is not None and test.verdict == "inconclusive":
        return "not significantly better than"
    where = "on these items " if test is not None and squared and result.tails.warns else ""
    return f"{where}{format_percent(abs(1.0 - ratio))} {'less' if ratio < 1.0 else 'more'} than"


def _describe_left_out(result: RegressionEvaluation) -> str:
    parts, dropped = result.origin.describe_join("targets"), result.summary.dropped
    return " ".join(
        [*parts, f"Dropped for a missing value: {format_count(dropped)}."] if dropped else parts
    )


def _describe_source(result: RegressionEvaluation) -> list[str]:
    origin = result.origin
    files = origin.name_files()
    return [f"{files}Target: {origin.gold}. Predicted: {origin.predicted}.", *origin.notes]


def _describe_uncertainty(result: RegressionEvaluation) -> list[str]:
    if result.interval is None:
        return []
    lines = describe_interval_methods(result.metrics, METHOD_NAMES)
    lines += _explain_missing_intervals(result.prediction_intervals)
    lines += _describe_subgroup_methods(result)
    return lines if result.groups is None else [*lines, describe_clusters(result.groups)]


def _describe_constant_tests(result: RegressionEvaluation) -> list[str]:
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


def _describe_subgroup_methods(result: RegressionEvaluation) -> list[str]:
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


def _explain_shares(result: RegressionEvaluation) -> str:
    """Say what relative metrics are the error beside, where one could be taken for another."""
    named = [f"{name} is {text}" for name, text in SHARE_TEXTS.items() if name in result.metrics]
    return f"{'; '.join(named)}." if named else ""


def _describe_sigmas(result: RegressionEvaluation) -> str:
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


def _make_subgroup_grids(result: RegressionEvaluation) -> list[Grid]:
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
