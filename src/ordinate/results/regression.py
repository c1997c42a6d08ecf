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
from ordinate.inference.constant_tests import LossTests, decide_for_moments
from ordinate.inference.estimates import NO_INTERVAL_NOTE, make_point_estimate
from ordinate.inference.prediction_intervals import (
    estimate_clustered_interval_metric,
    estimate_interval_metric,
)
from ordinate.inference.regression import (
    STUDENTIZED,
    estimate_from_items,
    estimate_regression_metrics,
    estimate_regression_metrics_of_each,
    explain_undefined,
)
from ordinate.metrics import Metric, find_metric
from ordinate.readers.numeric_cells import MissingPolicy
from ordinate.readers.regression import RegressionData, sum_table
from ordinate.readers.tables import LazyTable
from ordinate.render import Document
from ordinate.render.charts import Chart
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
from ordinate.results.given_columns import take_columns
from ordinate.results.regression_items import (
    MEDIAN_BASELINE,
    RegressionItems,
    collect_items,
    compute_constants,
    decide_against_constant,
    find_constant,
    summarise_previous,
)
from ordinate.results.regression_tails import ErrorTails, compute_tails
from ordinate.results.regression_text import describe_regression, describe_tail_assumptions
from ordinate.results.report_parts import ReportPart
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments
from ordinate.summaries.tabulation import check_missing_policy

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
        """Return metrics beside baselines, predictions against targets, intervals, subgroups."""
        from ordinate.results.regression_charts import chart_regression  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_regression(self)

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
        """Return the report for people."""
        return describe_regression(self)


def evaluate_regression_data(
    found: RegressionData,
    metrics: MetricSelection = None,
    *,
    source: str,
    unit: str | None = None,
    normalization: Normalization | None = None,
    normalized: bool = False,
    interval: IntervalOption = 0.95,
    alpha: float = 0.1,
    interval_metrics: Sequence[Metric] = (),
) -> RegressionEvaluation:
    """Evaluate items that were summed up where they are, and their prediction intervals.

    `source` is what they are, such as files; `interval_metrics` are further metrics of
    prediction intervals. With `normalized`, values are on the scale of the `normalization`.
    """
    turn = normalization if normalized else None
    selected = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments)
    intervals = resolve_intervals(interval)
    result = RegressionEvaluation.from_parts(
        _denormalize_part((found.moments, found.groups), turn),
        selected,
        unit=unit,
        normalization=normalization,
        by=[(name, _denormalize_part(part, turn)) for name, part in found.by if part[0].n],
        previous=None if found.previous is None else _denormalize(found.previous, turn),
        interval=intervals,
        origin=_describe_origin(found, selected, source),
    )
    if found.bounds is None:
        return result

    def scale(bounds: PredictionIntervals) -> PredictionIntervals:
        return bounds if turn is None else bounds.scaled(turn.std)

    parts = {name: scale(bounds) for name, bounds in found.bounds_by}
    return result.add_prediction_intervals(
        scale(found.bounds), alpha=alpha, metrics=interval_metrics, by=parts
    )


def _denormalize_part(part: Part, normalization: Normalization | None) -> Part:
    """Return a summary and the batch of its clusters in the unit of the targets."""
    whole, groups = part
    return (
        _denormalize(whole, normalization),
        None if groups is None else _denormalize(groups, normalization),
    )


def _denormalize(summary: Moments, normalization: Normalization | None) -> Moments:
    """Return a summary in the unit of the targets."""
    if normalization is None:
        return summary
    return summary.scaled(normalization.std, normalization.mean)


def _describe_origin(found: RegressionData, metrics: Iterable[Metric], source: str) -> Origin:
    rough = dict.fromkeys(m.name for m in metrics if m.name in HISTOGRAM_METRICS)
    named = " and ".join(rough)
    note = f"Of {source}, {named} is at most half a per cent from the exact value."
    notes = (*found.notes, note) if rough else found.notes
    return Origin(found.target, found.predicted, found.files, found.match_counts, notes)


def evaluate_regression(
    data: Any = None,
    predicted: Any = None,
    metrics: MetricSelection = None,
    *,
    target: Any = None,
    unit: str | None = None,
    weights: Any = None,
    by: Any = None,
    groups: Any = None,
    normalization: Normalization | None = None,
    normalized: bool = False,
    order: Any = None,
    lower: Any = None,
    upper: Any = None,
    alpha: float = 0.1,
    missing: MissingPolicy = "error",
    interval: IntervalOption = 0.95,
    seed: int | None = None,
) -> RegressionEvaluation:
    """Evaluate predictions of a regression target, beside constant predictors.

    `data` is a column of targets, beside one of predictions; or a table, of which the other
    arguments name columns: `evaluate_regression(frame, target="density", predicted="guess")`.
    Tables are those of `evaluate`; lazy ones are summed up by their own engine.

    `missing` says what becomes of items that lack a value: 'error', or 'drop'. Nulls are missing,
    and NaN in columns of pandas; any other value that is not finite is an error.

    `normalization` is that of the training targets; with `normalized` the columns are on its scale,
    and are turned back. `groups` is a column of items that belong together, `order` one of times,
    for the baseline that predicts the previous value. `lower` and `upper` are the bounds of
    prediction intervals that leave out `alpha`. Intervals are studentised, from resamples of the
    items that `seed` begins; of more than 100,000 items and of more than 20 subgroups they are
    Student's t, unless `interval=ConfidenceIntervals(method=…)` says "studentized"; of clusters
    they are by the jackknife.

    >>> target, predicted = [1020.0, 985.0, 1100.0], [1010.0, 1000.0, 1080.0]
    >>> result = evaluate_regression(target, predicted, unit="kg/m³")
    >>> round(result.metrics["mae"].value, 3)
    15.0
    """
    intervals = resolve_intervals(interval, seed=seed)
    check_missing_policy(missing, MissingPolicy)
    given = take_columns(
        data,
        "target",
        target=target,
        predicted=predicted,
        weights=weights,
        by=by,
        groups=groups,
        order=order,
        lower=lower,
        upper=upper,
    )
    if normalized and normalization is None:
        raise BadOption("Values on the normalised scale need their normalization=….")
    if isinstance(given.table, LazyTable):
        return evaluate_regression_data(
            _sum_lazy_table(
                given.table, given.names, missing, intervals, normalization, normalized
            ),
            metrics,
            source="a lazy table",
            unit=unit,
            normalization=normalization,
            normalized=normalized,
            interval=intervals,
            alpha=alpha,
        )
    if groups is not None and intervals is not None and intervals.method == STUDENTIZED:
        raise BadOption(f"Leave out groups=…, or the method {STUDENTIZED!r}: it resamples items.")
    items = collect_items(given, normalization if normalized else None, missing)
    order = given["order"]
    by = None if given["by"] is None else factorize_column(given["by"], "by")
    parts = {} if by is None else items.split(by)
    previous = None if order is None else summarise_previous(items, order)
    everything, items = items, items.select_complete()
    constants = compute_constants(items.y, items.weights, normalization)
    found = everything.sum_up(constants, by)
    origin = Origin(given.names.get("target", "target"), given.names.get("predicted", "predicted"))

    selected = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments)
    result = RegressionEvaluation.from_parts(
        (found.moments, found.groups),
        selected,
        unit=unit,
        normalization=normalization,
        by=[(name, part) for name, part in found.by if part[0].n],
        previous=previous,
        interval=None if intervals is None else _choose_summary_settings(intervals),
        origin=origin,
    )

    def estimate(
        of: Sequence[RegressionItems], results: Iterable[RegressionEvaluation]
    ) -> list[dict[str, Estimate]]:
        """Return what the items know better than their summaries."""
        resampled = intervals if items.is_resampled(intervals, len(of)) else None
        pairs = zip(of, results, strict=True)
        return [_estimate_from_items(part, own, resampled) for part, own in pairs]

    (whole,) = estimate([items], [result])
    by_subgroup = estimate(list(parts.values()), result.by.values())
    by_name = dict(zip(parts, by_subgroup, strict=True))
    tests = None  # clusters have theirs from the summaries
    if intervals is not None and items.groups is None:
        columns = items.y, items.p, intervals, items.weights
        tests = decide_against_constant(result.summary, *columns)
    result = result.replace_estimates(whole, intervals, by_name, tests)
    if found.bounds is None:
        return result
    return result.add_prediction_intervals(found.bounds, alpha=alpha, by=dict(found.bounds_by))


def _choose_summary_settings(intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return the settings of intervals that a summary gives, before items are resampled."""
    return replace(intervals, method=None) if intervals.method == STUDENTIZED else intervals


def _estimate_from_items(
    items: RegressionItems, result: RegressionEvaluation, resampled: ConfidenceIntervals | None
) -> dict[str, Estimate]:
    """Return the metrics with resampled intervals, if they are, and those of exact values."""
    found: dict[str, Estimate] = {}
    if resampled is not None:
        columns = items.y, items.p, resampled, items.weights
        found = estimate_from_items(result.selected, result.summary, *columns)
    exact = items.compute_exact()
    return {
        name: estimate
        for name, estimate in _replace_values(result.metrics | found, exact).items()
        if name in found or name in exact
    }


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


def _sum_lazy_table(
    table: LazyTable,
    names: Mapping[str, str],
    missing: MissingPolicy,
    intervals: ConfidenceIntervals | None,
    normalization: Normalization | None,
    normalized: bool,  # noqa: FBT001 - as it was given
) -> RegressionData:
    """Return what the engine of a lazy table sums up."""
    if "order" in names:
        raise BadOption(
            "The previous value, by order=…, needs all rows in their order: collect the table, or "
            "leave order out."
        )
    if intervals is not None and intervals.method == STUDENTIZED:
        raise BadOption(
            f"Collect the table, or leave out the method {STUDENTIZED!r}: it resamples items."
        )
    constants: dict[str, float | None] = {TARGET_MEAN: None, MEDIAN_BASELINE: None}
    if normalization is not None:
        constants = {TRAIN_MEAN: 0.0 if normalized else normalization.mean, **constants}
    return sum_table(table, names, constants=constants, missing=missing)


def regression_report(data: Any, predicted: Any = None, **options: Any) -> str:
    """Return the text report of a regression; options are those of evaluate_regression.

    >>> report = regression_report([1020.0, 985.0, 1100.0], [1010.0, 1000.0, 1080.0], unit="kg/m³")
    >>> print(report.splitlines()[0])
    3 items, target in kg/m³
    """
    return str(evaluate_regression(data, predicted, **options))


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


def _replace_values(found: dict[str, Estimate], exact: dict[str, float]) -> dict[str, Estimate]:
    """Return estimates with values that are known better; intervals are wide enough for them."""
    new = {}
    for name, value in exact.items():
        if name in found:
            old = found[name]
            new[name] = replace(
                old,
                value=value,
                low=float(np.fmin(old.low, value)) if old.method else old.low,
                high=float(np.fmax(old.high, value)) if old.method else old.high,
            )
    return found | new


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
