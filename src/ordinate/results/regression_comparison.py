"""Regression models, compared on the same items."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadValues, shorten
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.distributions import (
    FEW_CLUSTERS,
    student_two_sided_p,
)
from ordinate.inference.estimates import NO_INTERVAL_NOTE, make_point_estimate
from ordinate.inference.multiple_testing import holm
from ordinate.inference.regression import (
    MOMENT_BASIS,
    compute_gradient,
    count_items,
    estimate_from_error,
    estimate_from_items,
    estimate_regression_metrics,
    is_delta_applicable,
    is_resampled,
)
from ordinate.metrics import Metric
from ordinate.metrics.regression import BASELINE_FAMILY
from ordinate.render import Document, Grid
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
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    check_system_count,
    name_columns,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Record,
    Result,
    align_columns,
    to_flat_record,
    to_plain,
)
from ordinate.results.regression import get_metric_unit, require_groups
from ordinate.results.regression_tails import (
    ErrorTails,
    compute_tails,
    describe_assumptions,
    describe_undefined_tails,
    make_model_tails_grid,
)
from ordinate.results.regression_text import METHOD_NAMES
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers, convert_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]
ROUNDING_SHARE = 1e-12  # relative to the values: a difference, or an error, this small is rounding
MOST_METRICS = 3  # metrics in one grid
MOST_PAIRS = 30  # in one grid; JSON has all
DEFAULT_METRICS = ("rmse", "mae", "r2")
UNBOUNDED = (-math.inf, math.inf)  # the bounds of a difference
DIRECTION_WORDS = {"minimize": ("smaller", "smallest"), "maximize": ("larger", "largest")}


@dataclass(frozen=True)
class RegressionDifference:
    """First less second on one metric, from the same items; the better value comes first.

    `verdict` says of the first: 'better', 'inconclusive' or 'identical'; of a metric that is best
    near 0, 'different'; and 'untested' where there is no p-value. It goes by `p_adjusted`: Holm,
    over all pairs within the metric. The interval is that of this pair alone.
    """

    metric: str
    first: str
    second: str
    estimate: Estimate
    p: float
    p_adjusted: float
    verdict: str

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        estimate = to_plain(to_flat_record(self.estimate))
        return {
            "metric": self.metric,
            "first": self.first,
            "second": self.second,
            "difference": estimate.pop("value"),
            **estimate,
            "p": to_plain(self.p),
            "p_adjusted": to_plain(self.p_adjusted),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, repr=False, eq=False)
class RegressionComparison(Result):
    """Regression models on the same items: their metrics, and the difference of each pair.

    >>> y = [float(k) for k in range(40)]
    >>> near, far = [k + (-1) ** k for k in y], [k + 2 * (-1) ** k * k / 20 for k in y]
    >>> compare_regression(y, {"near": near, "far": far}, "rmse", unit="kg").conclusions["rmse"]
    'near has the smaller rmse: by 1.266 kg (0.9436 to 1.589).'
    """

    models: dict[str, dict[str, Estimate]]  # by metric
    differences: tuple[RegressionDifference, ...]
    conclusions: dict[str, str]  # by metric
    selected: tuple[Metric, ...]
    n: int
    weight: float
    level: float
    tails: dict[str, ErrorTails]  # by model
    unit: str | None = None
    groups: int | None = None
    has_intervals: bool = True

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason."""
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.selected}
        return {
            "schema": SCHEMA,
            "task": "regression",
            "n": self.n,
            "weight": self.weight,
            "unit": self.unit,
            "interval": self.level if self.has_intervals else None,
            "groups": self.groups,
            "directions": {metric.expression: metric.direction for metric in self.selected},
            "models": {
                name: {key: x.to_dict() | {"unit": units[key]} for key, x in estimates.items()}
                for name, estimates in self.models.items()
            },
            "differences": self._list_differences(),
            "correction": "holm",
            "tails": to_plain(self.tails),
            "tails_assumption": self._describe_assumptions(),
            "conclusions": dict(self.conclusions),
        }

    def _describe_assumptions(self) -> str | None:
        first, clusters = next(iter(self.models.values())), self.groups is not None
        return describe_assumptions(self.selected, first, self.tails, clusters=clusters)

    def _list_differences(self) -> list[Record]:
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.selected}
        return [pair.to_dict() | {"unit": units[pair.metric]} for pair in self.differences]

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the metrics of the models, and the differences of the pairs."""
        unused = ("against", "p", "p_adjusted")
        known = {metric.expression for metric in self.selected}
        models = [r for r in self.rows() if r["against"] is None and r["metric"] in known]
        return {
            "metrics": [{k: x for k, x in row.items() if k not in unused} for row in models],
            "differences": self._list_differences(),
            "tails": [
                {"model": model} | {k: x for k, x in row.items() if k != "part"}
                for model, found in self.tails.items()
                for row in found.rows(self.unit)
            ],
        }

    def rows(self) -> list[Record]:
        """Return one flat record for each metric of each model, each difference, each tail figure.

        RMSE and MAE are among the metrics, or were not asked for.
        """
        rows: list[Record] = [
            {"metric": metric, "model": name, "against": None, "p": None, "p_adjusted": None}
            | to_flat_record(estimate)
            for name, by_metric in self.models.items()
            for metric, estimate in by_metric.items()
        ]
        rows += [
            {"metric": pair.metric, "model": pair.first, "against": pair.second}
            | {"p": pair.p, "p_adjusted": pair.p_adjusted}
            | to_flat_record(pair.estimate)
            for pair in self.differences
        ]
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.selected}
        rows = [row | {"unit": units[str(row["metric"])]} for row in rows]
        rows += [
            {"model": model} | {key: x for key, x in row.items() if key != "part"}
            for model, found in self.tails.items()
            for row in found.rows(self.unit)
            if row["metric"] not in {"rmse", "mae"}
        ]
        assumption = self._describe_assumptions()
        rows += [] if assumption is None else [{"metric": "assumption", "note": assumption}]
        return align_columns([row | {"n": self.n} for row in rows])

    def document(self) -> Document:
        """Return the report for people."""
        unit = f", target in {self.unit}" if self.unit else ""
        title = f"{len(self.models)} models, {format_count(self.n)}{unit}"
        first, *others = self.conclusions.values()
        more = len(self.differences) - MOST_PAIRS
        left_out = [f"{more:,} more differences are in the JSON report."] if more > 0 else []
        return Document(
            title,
            (
                *_make_model_grids(self),
                *_make_difference_grids(self),
                *left_out,
                " ".join(others),
                make_model_tails_grid(self.tails),
                describe_undefined_tails(self.tails),
                self._describe_assumptions() or "",
            ),
            verdict=first,
            notes=(*_describe_uncertainty(self), _explain_columns(self)),
        )


def compare_regression(
    target: Any,
    models: Mapping[str, Any],
    metrics: MetricSelection = None,
    *,
    unit: str | None = None,
    weights: Any = None,
    groups: Any = None,
    interval: IntervalOption = 0.95,
) -> RegressionComparison:
    """Compare regression models on the same items.

    `models` are columns of predictions by name; `groups` is a column that says which items belong
    together. Integer weights are counts of items. `interval` is the level of the intervals and of
    the verdicts, or `ConfidenceIntervals`; None leaves the intervals out, and verdicts are those of
    0.95. Values have the intervals of `evaluate_regression`, with no more than 100,000 items and 20
    models in all; differences are not resampled.
    """
    named = name_columns(models, "models")
    check_system_count(len(named), "models")
    selected = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments)
    intervals = resolve_intervals(interval) or ConfidenceIntervals(method="t")
    comparison = _ModelComparison(target, named, weights, groups, selected, intervals)
    return comparison.result(unit, has_intervals=interval is not None)


# --- the difference of two models, item by item --------------------------------------------------


class _ModelComparison:
    """The items, the predictions of all models, and what the difference of two is worth."""

    def __init__(
        self,
        targets: Any,
        models: dict[str, Any],
        weights: Any,
        groups: Any,
        metrics: list[Metric],
        intervals: ConfidenceIntervals,
    ) -> None:
        self.metrics, self.intervals = metrics, intervals
        self.y = convert_to_numbers(targets, "targets")
        n = len(self.y)
        self.weights = convert_weights(weights, n)
        self.present_rows = np.ones(n, bool) if self.weights is None else self.weights > 0
        self.predictions = {
            name: convert_to_numbers(column, f"predictions of {shorten(name)}")
            for name, column in models.items()
        }
        for name, p in self.predictions.items():
            check_same_length(n, len(p), "targets", f"predictions of {shorten(name)}")
        self.groups = None if groups is None else factorize_column(groups)
        if self.groups is not None:
            check_same_length(n, len(self.groups.codes), "targets", "groups")
            require_groups(self.groups, np.flatnonzero(self.present_rows))
        self.tables = {name: self._summarise(name, None) for name in models}
        first = next(iter(self.tables.values()))
        self.total, self.counted = float(first.total), first.has_integer_weights
        self.units = int(count_items(first))  # that stand for themselves
        if self.groups is not None:
            self.units = len(np.unique(self.groups.codes[self.present_rows]))

    def _summarise(self, name: str, groups: Groups | None) -> Moments:
        # Groups need no histogram of their own, nor moments for the errors of items.
        options: dict[str, Any] = {"histogram": True} if groups is None else {"order": 2}
        try:
            return Moments.of(
                self.y, self.predictions[name], self.weights, groups=groups, **options
            )
        except BadValues as reason:
            raise BadValues(f"Model {shorten(name)}: {reason}") from None

    def result(self, unit: str | None, *, has_intervals: bool = True) -> RegressionComparison:
        """Return all metrics of all models, and all differences."""
        models = {name: self._estimate_all(name) for name in self.tables}
        if not has_intervals:
            models = {
                name: {metric: _drop_interval(x) for metric, x in estimates.items()}
                for name, estimates in models.items()
            }
        differences: list[RegressionDifference] = []
        conclusions = {}
        for metric in self.metrics:
            found = {name: models[name][metric.expression] for name in models}
            pairs = self._compare_all_pairs(metric, found)
            if not has_intervals:
                pairs = [replace(pair, estimate=_drop_interval(pair.estimate)) for pair in pairs]
            differences += pairs
            conclusions[metric.expression] = _write_conclusion(metric, found, pairs, unit)
        return RegressionComparison(
            models=models,
            differences=tuple(differences),
            conclusions=conclusions,
            selected=tuple(self.metrics),
            n=int(self.present_rows.sum()),
            weight=self.total,
            level=self.intervals.level,
            tails={name: compute_tails(table) for name, table in self.tables.items()},
            unit=unit,
            groups=None if self.groups is None else self.units,
            has_intervals=has_intervals,
        )

    def _estimate_all(self, name: str) -> dict[str, Estimate]:
        whole = self.tables[name]
        models = len(self.tables)
        if self.groups is None and is_resampled(self.intervals, models * self.units, models):
            return estimate_from_items(
                self.metrics, whole, self.y, self.predictions[name], self.intervals, self.weights
            )
        source = whole if self.groups is None else self._summarise(name, self.groups)
        return estimate_regression_metrics(self.metrics, source, self.intervals, whole)

    def _compare_all_pairs(
        self, metric: Metric, found: dict[str, Estimate]
    ) -> list[RegressionDifference]:
        """Return the differences of all pairs, the better first; of equals, the first by name."""
        merit = {name: float(metric.merit(one.value)) for name, one in found.items()}
        known = sorted(name for name in found if not math.isnan(merit[name]))
        known.sort(key=lambda name: -merit[name])
        influence = {name: self._compute_influence(metric, name) for name in known}
        pairs = []
        for first, second in combinations(known, 2):
            gap = found[first].value - found[second].value
            size = max(abs(found[first].value), abs(found[second].value))
            estimate, p = self._estimate_difference(
                metric, gap, size, influence[first], influence[second]
            )
            pairs.append(
                RegressionDifference(
                    metric=metric.expression,
                    first=first,
                    second=second,
                    estimate=estimate,
                    p=p,
                    p_adjusted=p,
                    verdict="inconclusive",
                )
            )
        return self._adjust_p_values(metric, pairs)

    def _estimate_difference(
        self,
        metric: Metric,
        gap: float,
        size: float,
        first: Floats | None,
        second: Floats | None,
    ) -> tuple[Estimate, float]:
        """Return a difference with its interval and p-value, or why there are none."""
        if first is None or second is None:
            why = "it is a baseline" if metric.family == BASELINE_FAMILY else "no method covers it"
            return make_point_estimate(gap, why), math.nan
        if self.units < 2:
            unit = "item" if self.groups is None else "cluster"
            return make_point_estimate(gap, f"there is one {unit} only"), math.nan
        error = self._compute_standard_error(first - second)
        if error <= ROUNDING_SHARE * size:
            if abs(gap) <= ROUNDING_SHARE * size:  # the two are one and the same
                return Estimate(0.0, 0.0, 0.0, self._method), 1.0
            return make_point_estimate(gap, "it is the same for all items"), math.nan
        found = estimate_from_error(
            gap, error, UNBOUNDED, self.units, self.intervals.level, self._method
        )
        return found, math.nan if found.method is None else self._compute_p_value(abs(gap) / error)

    @property
    def _method(self) -> str:
        return "delta" if self.groups is None and self.units >= FEW_CLUSTERS else "t"

    def _compute_p_value(self, ratio: float) -> float:
        """Return the probability of a ratio to the standard error at least as far from 0."""
        if self._method == "t":
            return student_two_sided_p(ratio, self.units - 1)
        return math.erfc(ratio / math.sqrt(2.0))

    def _compute_influence(self, metric: Metric, name: str) -> Floats | None:
        """Return what each item adds to a metric [n], None for a metric without a derivative."""
        if metric.family == BASELINE_FAMILY or not is_delta_applicable(metric, self.tables[name]):
            return None
        table, y = self.tables[name], self.y[self.present_rows]
        e = self.predictions[name][self.present_rows] - y
        if metric.name == "mae":
            return np.abs(e) - float(metric(table))
        d, f = y - float(table.plain.y), e - float(table.plain.e)
        found = np.zeros(len(y))
        for slope, (a, b) in zip(compute_gradient(metric, table), MOMENT_BASIS, strict=True):
            centre = float(table.plain.mean(a, b)) if a + b > 1 else 0.0
            found += slope * (d**a * f**b - centre)
        return found

    def _compute_standard_error(self, influence: Floats) -> float:
        """Return the standard error of a metric to which each item adds so much.

        Integer weights are counts of items; of other weights the squares count.
        """
        weight = (
            np.ones(len(influence)) if self.weights is None else self.weights[self.present_rows]
        )
        if self.groups is not None:
            sums = np.bincount(self.groups.codes[self.present_rows], weight * influence)
            squares = float(sums @ sums)
        else:
            squares = float((weight if self.counted else weight**2) @ influence**2)
        return math.sqrt(squares * self.units / (self.units - 1)) / self.total

    def _adjust_p_values(
        self, metric: Metric, pairs: list[RegressionDifference]
    ) -> list[RegressionDifference]:
        known = [k for k, pair in enumerate(pairs) if not math.isnan(pair.p)]
        adjusted = np.full(len(pairs), math.nan)
        adjusted[known] = holm([pairs[k].p for k in known])
        return [
            replace(pair, p_adjusted=float(p), verdict=self._verdict(metric, pair.estimate, p))
            for pair, p in zip(pairs, adjusted, strict=True)
        ]

    def _verdict(self, metric: Metric, found: Estimate, p: float) -> str:
        if found.low == found.high == 0.0:
            return "identical"
        if math.isnan(p):
            return "untested"
        if p > 1.0 - self.intervals.level:
            return "inconclusive"
        return "different" if metric.direction == "zero" else "better"


def _drop_interval(found: Estimate) -> Estimate:
    """Return an estimate without the interval that nobody asked for."""
    return found if found.method is None else make_point_estimate(found.value)


# --- what it means -------------------------------------------------------------------------------


def _write_conclusion(
    metric: Metric, found: dict[str, Estimate], pairs: list[RegressionDifference], unit: str | None
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


def _conclude_pair(metric: Metric, pair: RegressionDifference, unit: str | None) -> str:
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


def _make_model_grids(result: RegressionComparison) -> list[Grid]:
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


def _describe_uncertainty(result: RegressionComparison) -> list[str]:
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
    if result.groups is not None:
        lines.append(describe_clusters(result.groups))
    elif result.n < FEW_CLUSTERS:
        lines.append(f"Fewer than {FEW_CLUSTERS} items leave the intervals unsure.")
    return [" ".join(lines)] if lines else []


def _make_difference_grids(result: RegressionComparison) -> list[Grid]:
    level = (format_interval_head(result.level),) if result.has_intervals else ()
    header = ("metric", "first", "second", "difference", *level)
    rows = tuple(
        (
            pair.metric,
            pair.first,
            pair.second,
            format_number(pair.estimate.value),
            *((format_estimate_interval(pair.estimate),) if result.has_intervals else ()),
            format_p_value(pair.p),
            format_p_value(pair.p_adjusted),
            pair.verdict,
        )
        for pair in result.differences[:MOST_PAIRS]
    )
    title = "Differences on the same items, first less second"
    header = (*header, "p", "adjusted p", "the first is")
    grid = Grid(title, header, rows, left=3, optional=("p",))
    return [grid] if rows else []


def _explain_columns(result: RegressionComparison) -> str:
    count = len(result.models) * (len(result.models) - 1) // 2
    if count == 1:
        return "Each metric is tested on its own."
    alone = "Intervals hold for each pair alone. " if result.has_intervals else ""
    return (
        f"{alone}Adjusted p-values (Holm) hold for the {count:,} pairs "
        "within a metric, and they decide."
    )
