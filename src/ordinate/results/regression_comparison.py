"""Models that predict a quantity, compared on the same items."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, MissingLabels, shorten
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.distributions import (
    FEW_CLUSTERS,
    VERY_FEW_CLUSTERS,
    student_two_sided_p,
)
from ordinate.inference.estimates import make_point_estimate, to_json_number
from ordinate.inference.multiple_testing import holm
from ordinate.inference.regression import (
    MOMENT_BASIS,
    compute_gradient,
    count_items,
    estimate_from_error,
    estimate_regression_metrics,
    is_delta_applicable,
)
from ordinate.metrics import Metric
from ordinate.metrics.regression import BASELINE_FAMILY
from ordinate.render import Document, Grid, html, render
from ordinate.results.evaluation import BETTER_VALUES, SCHEMA, MetricSelection, select_metrics
from ordinate.results.regression import SQUARED_UNIT_METRICS, UNIT_METRICS
from ordinate.results.regression_text import (
    METHOD_NAMES,
    format_difference,
    format_estimate,
    format_estimate_interval,
    format_number,
    to_flat_record,
)
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.numeric_columns import convert_to_numbers
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import check_same_length, convert_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]
ROUNDING_SHARE = 1e-12  # relative to the values: a difference, or an error, this small is rounding
MOST_METRICS = 3  # metrics in one grid
MOST_MODELS = 500
MOST_PAIRS = 30  # in one grid; JSON has all
MOST_SHOWN = 5  # rows named in an error
EDGE_SHARE = 0.01  # the share of items below, and above, the middle of a column
DEFAULT_METRICS = ("rmse", "mae", "r2")
NO_INTERVAL_NOTE = "no interval was asked for"
UNBOUNDED = (-math.inf, math.inf)  # the bounds of a difference
DIRECTION_WORDS = {"minimize": ("smaller", "smallest"), "maximize": ("larger", "largest")}


@dataclass(frozen=True)
class RegressionDifference:
    """First less second on one metric, from the same items; the better value comes first.

    `verdict` says of the first: 'better', 'inconclusive' or 'identical'; of a metric that is best
    near 0, 'different'; and 'untested' where there is no p-value. It goes by `p_adjusted`: Holm,
    over all pairs within the metric. The limits are those of this pair alone.
    """

    metric: str
    first: str
    second: str
    estimate: Estimate
    p: float
    p_adjusted: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        found = self.estimate.to_dict()
        return {
            "metric": self.metric,
            "first": self.first,
            "second": self.second,
            "difference": found["value"],
            **{key: found[key] for key in ("low", "high", "method", "note")},
            "p": to_json_number(self.p),
            "p_adjusted": to_json_number(self.p_adjusted),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class RegressionComparison:
    """Models of a quantity on the same items: their metrics, and the difference of each pair.

    >>> y = [float(k) for k in range(40)]
    >>> near, far = [k + (-1) ** k for k in y], [k + 2 * (-1) ** k * k / 20 for k in y]
    >>> compare_regression(y, {"near": near, "far": far}, "rmse", unit="kg").conclusions["rmse"]
    'near has the smaller rmse: by 1.266 kg (0.9436 to 1.589).'
    """

    models: dict[str, dict[str, Estimate]]  # by metric
    differences: tuple[RegressionDifference, ...]
    conclusions: dict[str, str]  # by metric
    wanted: tuple[Metric, ...]
    n: int
    weight: float
    level: float
    unit: str | None = None
    groups: int | None = None
    has_intervals: bool = True  # whether there are limits

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason."""
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.wanted}
        return {
            "schema": SCHEMA,
            "task": "regression",
            "n": self.n,
            "weight": self.weight,
            "unit": self.unit,
            "interval": self.level if self.has_intervals else None,
            "groups": self.groups,
            "directions": {metric.expression: metric.direction for metric in self.wanted},
            "models": {
                name: {key: one.to_dict() | {"unit": units[key]} for key, one in found.items()}
                for name, found in self.models.items()
            },
            "differences": [
                one.to_dict() | {"unit": units[one.metric]} for one in self.differences
            ],
            "correction": "holm",
            "conclusions": dict(self.conclusions),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric of each model, then for each difference."""
        found = [
            {"metric": metric, "model": name, "against": None, "p": None, "p_adjusted": None}
            | to_flat_record(one)
            for name, by_metric in self.models.items()
            for metric, one in by_metric.items()
        ]
        found += [
            {"metric": one.metric, "model": one.first, "against": one.second}
            | {"p": one.p, "p_adjusted": one.p_adjusted}
            | to_flat_record(one.estimate)
            for one in self.differences
        ]
        units = {metric.expression: get_metric_unit(metric, self.unit) for metric in self.wanted}
        return [row | {"unit": units[str(row["metric"])], "n": self.n} for row in found]

    def document(self) -> Document:
        """Return the report for people."""
        unit = f" in {self.unit}" if self.unit else ""
        title = f"{len(self.models)} models, {self.n:,} value{'' if self.n == 1 else 's'}{unit}"
        return Document(title, tuple(self.blocks()))

    def blocks(self) -> list[str | Grid]:
        """Return sentences and grids for a report."""
        found: list[str | Grid] = [" ".join(self.conclusions.values()), *_make_model_grids(self)]
        found += [*_describe_uncertainty(self), *_make_difference_grids(self)]
        more = len(self.differences) - MOST_PAIRS
        found += [f"{more:,} more differences are in the JSON report."] if more > 0 else []
        return [*found, _explain_columns(self)]

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())


def get_metric_unit(metric: Metric, unit: str | None) -> str | None:
    """Return the unit of a metric; a share has none."""
    if unit is None or metric.name not in UNIT_METRICS | SQUARED_UNIT_METRICS:
        return None
    return f"({unit})²" if metric.name in SQUARED_UNIT_METRICS else unit


def check_model_count(models: int) -> None:
    """Refuse too few models, and more than whose differences can be compared."""
    if not 2 <= models <= MOST_MODELS:
        raise BadOption(f"Comparing takes 2 to {MOST_MODELS} models, not {models}.")


def compare_regression(
    targets: Any,
    models: Mapping[str, Any],
    metrics: MetricSelection = DEFAULT_METRICS,
    unit: str | None = None,
    weights: Any = None,
    groups: Any = None,
    *,
    interval: float | None = 0.95,
) -> RegressionComparison:
    """Compare models that predict a quantity for the same items.

    `models` are columns of predictions by name; `groups` is a column that says which items belong
    together. Whole weights are counts of items. `interval` is the level of the limits and of the
    verdicts; None leaves the limits out, and verdicts are those of 0.95.
    """
    if not isinstance(models, Mapping):
        raise BadOption('Pass the models by name: {"name": predictions, …}.')
    check_model_count(len(models))
    named = {str(name): column for name, column in models.items()}
    if len(named) < len(models):
        raise BadOption("Two models have the same name.")
    wanted = select_metrics(metrics or DEFAULT_METRICS, Moments)
    how = ConfidenceIntervals() if interval is None else ConfidenceIntervals(interval)
    contest = _ModelComparison(targets, named, weights, groups, wanted, how)
    return contest.result(unit, limited=interval is not None)


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
        how: ConfidenceIntervals,
    ) -> None:
        self.metrics, self.how, self.y = metrics, how, convert_to_numbers(targets, "targets")
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
            _refuse_unclustered(self.groups, self.present_rows)
        self.tables = {name: self._summarise(name, None) for name in models}
        first = next(iter(self.tables.values()))
        self.total, self.counted = float(first.total), first.whole
        self.units = int(count_items(first))  # that stand for themselves
        if self.groups is not None:
            self.units = len(np.unique(self.groups.codes[self.present_rows]))

    def _summarise(self, name: str, groups: Groups | None) -> Moments:
        fine = any(not metric.smooth for metric in self.metrics)
        try:
            return Moments.of(
                self.y, self.predictions[name], self.weights, histogram=fine, groups=groups
            )
        except BadValues as reason:
            raise BadValues(f"Model {shorten(name)}: {reason}") from None

    def result(self, unit: str | None, *, limited: bool = True) -> RegressionComparison:
        """Return all metrics of all models, and all differences."""
        models = {name: self._estimate_all(name) for name in self.tables}
        if not limited:
            models = {
                name: {metric: _drop_interval(one) for metric, one in found.items()}
                for name, found in models.items()
            }
        differences: list[RegressionDifference] = []
        conclusions = {}
        for metric in self.metrics:
            found = {name: models[name][metric.expression] for name in models}
            pairs = self._compare_all_pairs(metric, found)
            if not limited:
                pairs = [replace(pair, estimate=_drop_interval(pair.estimate)) for pair in pairs]
            differences += pairs
            conclusions[metric.expression] = _write_conclusion(metric, found, pairs, unit)
        return RegressionComparison(
            models,
            tuple(differences),
            conclusions,
            tuple(self.metrics),
            int(self.present_rows.sum()),
            self.total,
            self.how.level,
            unit,
            None if self.groups is None else self.units,
            limited,
        )

    def _estimate_all(self, name: str) -> dict[str, Estimate]:
        table = self.tables[name] if self.groups is None else self._summarise(name, self.groups)
        return estimate_regression_metrics(self.metrics, table, self.how)

    def _compare_all_pairs(
        self, metric: Metric, found: dict[str, Estimate]
    ) -> list[RegressionDifference]:
        """Return the differences of all pairs, the better first; of equals, the first by name."""
        merit = {name: float(metric.merit(one.value)) for name, one in found.items()}
        known = sorted(name for name in found if not math.isnan(merit[name]))
        known.sort(key=lambda name: -merit[name])
        pulls = {name: self._compute_influence(metric, name) for name in known}
        pairs = []
        for first, second in combinations(known, 2):
            gap = found[first].value - found[second].value
            size = max(abs(found[first].value), abs(found[second].value))
            one, p = self._estimate_difference(metric, gap, size, pulls[first], pulls[second])
            pairs.append(
                RegressionDifference(metric.expression, first, second, one, p, p, "inconclusive")
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
        """Return a difference with its limits and p-value, or why there are none."""
        if first is None or second is None:
            why = "it is a baseline" if metric.family == BASELINE_FAMILY else "no method covers it"
            return make_point_estimate(gap, why), math.nan
        if self.units < 2:
            kind = "item" if self.groups is None else "group"
            return make_point_estimate(gap, f"there is one {kind} only"), math.nan
        error = self._compute_standard_error(first - second)
        if error <= ROUNDING_SHARE * size:
            if abs(gap) <= ROUNDING_SHARE * size:  # the two are one and the same
                return Estimate(0.0, 0.0, 0.0, self._method), 1.0
            return make_point_estimate(gap, "it is the same for all items"), math.nan
        found = estimate_from_error(gap, error, UNBOUNDED, self.units, self.how.level, self._method)
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

    def _compute_standard_error(self, pulls: Floats) -> float:
        """Return the standard error of a metric to which each item adds so much.

        Whole weights are counts of items; of other weights the squares count.
        """
        weight = np.ones(len(pulls)) if self.weights is None else self.weights[self.present_rows]
        if self.groups is not None:
            sums = np.bincount(self.groups.codes[self.present_rows], weight * pulls)
            squares = float(sums @ sums)
        else:
            squares = float((weight if self.counted else weight**2) @ pulls**2)
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
        if p > 1.0 - self.how.level:
            return "inconclusive"
        return "different" if metric.direction == "zero" else "better"


def _drop_interval(found: Estimate) -> Estimate:
    """Return an estimate without the limits that nobody asked for."""
    return found if found.method is None else make_point_estimate(found.value, NO_INTERVAL_NOTE)


def _refuse_unclustered(groups: Groups, there: NDArray[np.bool_]) -> None:
    """Refuse items of which nobody knows to which group they belong."""
    if None not in groups.values:
        return
    stray = np.flatnonzero((groups.codes == groups.values.index(None)) & there)
    if len(stray):
        rows = ", ".join(f"row {row + 1}" for row in stray[:MOST_SHOWN])
        more = ", …" if len(stray) > MOST_SHOWN else ""
        raise MissingLabels(
            f"{len(stray)} of {int(there.sum())} items have no group ({rows}{more}). Leave them "
            "out, or give each a group."
        )


# --- what it means -------------------------------------------------------------------------------


def _write_conclusion(
    metric: Metric, found: dict[str, Estimate], pairs: list[RegressionDifference], unit: str | None
) -> str:
    """Say who is better on a metric, or that nobody knows."""
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
        f"it {verb} {_join_names(names)}"
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


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- words and grids -------------------------------------------------------------------------


def _make_model_grids(result: RegressionComparison) -> list[Grid]:
    """Return the metrics of every model, as many beside each other as fit on a page."""
    title = (
        f"Metrics with {100 * result.level:g} % intervals" if result.has_intervals else "Metrics"
    )
    grids = []
    for start in range(0, len(result.wanted), MOST_METRICS):
        part = result.wanted[start : start + MOST_METRICS]
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
    methods = sorted({METHOD_NAMES[one.method] for one in found.values() if one.method is not None})
    lines = [f"Intervals by {_join_names(methods)}."] if methods else []
    without: dict[tuple[str, str], list[str]] = {}
    for (metric, name), one in found.items():
        if one.method is None and one.note != NO_INTERVAL_NOTE:
            without.setdefault((metric, one.note or ""), []).append(name)
    lines += [
        f"No interval for {metric} of {_join_names(names)}: {why}."
        for (metric, why), names in without.items()
    ]
    if result.groups is not None:
        few = " So few groups leave the limits unsure." if result.groups < VERY_FEW_CLUSTERS else ""
        count = f"{result.groups:,} group{'' if result.groups == 1 else 's'}"
        lines.append(f"Items come in {count}, taken as units.{few}")
    elif result.n < FEW_CLUSTERS:
        lines.append(f"Fewer than {FEW_CLUSTERS} items leave the limits unsure.")
    return [" ".join(lines)] if lines else []


def _make_difference_grids(result: RegressionComparison) -> list[Grid]:
    level = (f"{100 * result.level:g} % interval",) if result.has_intervals else ()
    header = ("metric", "first", "second", "difference", *level)
    rows = tuple(
        (
            one.metric,
            one.first,
            one.second,
            format_number(one.estimate.value),
            *((format_estimate_interval(one.estimate),) if result.has_intervals else ()),
            _format_p_value(one.p),
            _format_p_value(one.p_adjusted),
            one.verdict,
        )
        for one in result.differences[:MOST_PAIRS]
    )
    title = "Differences on the same items, first less second"
    grid = Grid(title, (*header, "p", "adjusted p", "the first is"), rows, left=3)
    return [grid] if rows else []


def _explain_columns(result: RegressionComparison) -> str:
    count = len(result.models) * (len(result.models) - 1) // 2
    if count == 1:
        return "Each metric is tested on its own."
    alone = "Limits hold for each pair alone. " if result.has_intervals else ""
    return (
        f"{alone}Adjusted p-values (Holm) hold for the {count:,} pairs "
        "within a metric, and they decide."
    )


def _format_p_value(p: float) -> str:
    if math.isnan(p):
        return "undefined"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
