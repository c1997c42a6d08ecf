"""Regression models, compared on the same items."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, shorten
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.distributions import FEW_CLUSTERS, student_tail
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.multiple_testing import holm
from ordinate.inference.regression import (
    count_items,
    estimate_from_error,
    estimate_from_items,
    estimate_regression_metrics,
    is_resampled,
)
from ordinate.inference.regression_delta_method import (
    MOMENT_BASIS,
    compute_gradient,
    is_delta_applicable,
)
from ordinate.metrics import Metric
from ordinate.metrics.regression import BASELINE_FAMILY
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.tables import to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    check_system_count,
    name_columns,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    SCHEMA,
    Record,
    Result,
    align_columns,
    to_flat_record,
)
from ordinate.results.given_columns import refuse_strange_table, take_columns
from ordinate.results.regression import get_metric_unit
from ordinate.results.regression_comparison_text import describe_comparison, write_conclusion
from ordinate.results.regression_sources import require_groups
from ordinate.results.regression_tails import ErrorTails, compute_tails, describe_assumptions
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers, convert_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]
ROUNDING_SHARE = 1e-12  # relative to the values: a difference, or an error, this small is rounding
DEFAULT_METRICS = ("rmse", "mae", "r2")
MODEL = "the model"  # before its name, as an argument
UNBOUNDED = (-math.inf, math.inf)  # the bounds of a difference


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
            "task": "compare_regression",
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
            "tails_assumption": " ".join(self.describe_tail_assumptions()) or None,
            "conclusions": dict(self.conclusions),
        }

    def describe_tail_assumptions(self) -> list[str]:
        """Say what the intervals of squared errors assume."""
        first, clusters = next(iter(self.models.values())), self.groups is not None
        return describe_assumptions(self.selected, first, self.tails, clusters=clusters)

    def _list_differences(self) -> list[Record]:
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.selected}
        return [pair.to_dict() | {"unit": units[pair.metric]} for pair in self.differences]

    def make_charts(self) -> Iterable[Chart]:
        """Return the models on each metric, and the differences of pairs."""
        from ordinate.results.regression_comparison_charts import chart_regression_comparison  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_regression_comparison(self)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the metrics of the models, and the differences of the pairs."""
        unused = ("against", "p", "p_adjusted")
        known = {metric.expression for metric in self.selected}
        models = [r for r in self.rows() if r["against"] is None and r["metric"] in known]
        return {
            "metrics": [{k: x for k, x in row.items() if k not in unused} for row in models],
            "differences": self._list_differences(),
            "tails": [
                {"model": model} | {k: x for k, x in row.items() if k not in {"figure", "shown"}}
                for model, found in self.tails.items()
                for row in found.list_figures(self.unit)
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
            {"model": model} | {key: x for key, x in row.items() if key not in {"figure", "shown"}}
            for model, found in self.tails.items()
            for row in found.list_figures(self.unit)
            if row["metric"] not in {"rmse", "mae"}
        ]
        if assumption := " ".join(self.describe_tail_assumptions()):
            rows.append({"metric": "assumption", "note": assumption})
        return align_columns([row | {"n": self.n} for row in rows])

    def document(self) -> Document:
        """Return the report for people."""
        return describe_comparison(self)


def compare_regression(
    data: Any = None,
    models: Any = None,
    metrics: MetricSelection = None,
    *,
    target: Any = None,
    unit: str | None = None,
    weights: Any = None,
    groups: Any = None,
    interval: IntervalOption = 0.95,
) -> RegressionComparison:
    """Compare regression models on the same items.

    `data` is a column of targets, and `models` are columns of predictions by name; or it is a table
    in memory, of which the arguments name columns: `compare_regression(frame, target="density",
    models=["linear", "forest"])`. `groups` is a column that says which items belong together.
    Integer weights are counts of items. `interval` is the level of the intervals and of
    the verdicts, or `ConfidenceIntervals`; None leaves the intervals out, and verdicts are those of
    0.95. Values have the intervals of `evaluate_regression`, with no more than 100,000 items and 20
    models in all; differences are not resampled.

    >>> target = [1020.0, 985.0, 1100.0, 960.0]
    >>> models = {"linear": [1010.0, 1000.0, 1080.0, 965.0], "flat": [1000.0] * 4}
    >>> result = compare_regression(target, models, "mae", unit="kg/m³")
    >>> result.n, [*result.models]
    (4, ['linear', 'flat'])
    """
    refuse_strange_table(data, target)
    named = name_columns(models, "models", data=data)
    check_system_count(len(named), "models")
    predictions = {f"{MODEL} {name}": column for name, column in named.items()}
    given = take_columns(
        data, "target", target=target, weights=weights, groups=groups, **predictions
    )
    if isinstance(given.table, LazyTable):
        raise BadOption(
            f"Models are compared item by item, and {given.table.name} is not in memory: collect "
            "its rows into a frame first."
        )
    selected = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments)
    intervals = resolve_intervals(interval) or ConfidenceIntervals(method="t")
    if given.table is not None:
        refuse_unnamed_columns(given.names, "target")
    columns = {name: given[f"{MODEL} {name}"] for name in named}
    comparison = _ModelComparison(
        given["target"], columns, given["weights"], given["groups"], selected, intervals
    )
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
            conclusions[metric.expression] = write_conclusion(metric, found, pairs, unit)
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
            return 2.0 * student_tail(ratio, self.units - 1)
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
