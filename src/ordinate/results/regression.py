"""Values: what predictions of a quantity are worth, in its own unit."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.estimates import make_point_estimate, to_json_number
from ordinate.inference.prediction_intervals import (
    estimate_clustered_interval_metric,
    estimate_interval_metric,
)
from ordinate.inference.regression import (
    estimate_from_poisson,
    estimate_regression_metrics,
    explain_undefined,
    resample_poisson,
)
from ordinate.metrics import Metric, find_metric
from ordinate.render import Document, html, render
from ordinate.results.evaluation import (
    IntervalOption,
    MetricSelection,
    Origin,
    align_columns,
    name_subgroups,
    resolve_intervals,
    select_metrics,
)
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.numeric_columns import convert_to_numbers, match_weights
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import LARGEST_VALUE, TARGET_MEAN, TRAIN_MEAN, Moments
from ordinate.summaries.tabulation import check_same_length

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
MEDIAN_BASELINE, PREVIOUS_BASELINE = "median", "previous value"


@dataclass(frozen=True)
class RegressionBaseline:
    """A simple predictor: its errors on the same targets."""

    name: str
    rmse: float
    mae: float
    constant: float | None = None  # what it always predicts
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        constant = None if self.constant is None else to_json_number(self.constant)
        numbers_of = {"rmse": to_json_number(self.rmse), "mae": to_json_number(self.mae)}
        return {"name": self.name, **numbers_of, "constant": constant, "note": self.note}


@dataclass(frozen=True)
class RegressionEvaluation:
    """Targets and predictions of a quantity with their metrics, baselines and subgroups.

    >>> result = evaluate_regression([670.0, 700.0, 640.0], [660.0, 705.0, 650.0], unit="kg/m³")
    >>> round(result.metrics["rmse"].value, 3)
    8.66
    """

    table: Moments
    metrics: dict[str, Estimate]
    wanted: tuple[Metric, ...]
    baselines: tuple[RegressionBaseline, ...]
    unit: str | None = None
    normalization: Normalization | None = None
    by: dict[Hashable, "RegressionEvaluation"] = field(default_factory=dict)
    groups: int | None = None
    interval: ConfidenceIntervals | None = None
    origin: Origin = field(default_factory=lambda: Origin("target", "predicted"))
    prediction_intervals: dict[str, Estimate] = field(
        default_factory=dict
    )  # of lower and upper bounds
    sections: tuple[Any, ...] = ()  # further parts of the report: grids and sentences
    further: dict[str, Any] = field(default_factory=dict)  # and of the JSON, by name
    further_rows: tuple[dict[str, Any], ...] = ()  # and of the CSV

    @classmethod
    def from_summary(
        cls,
        table: Moments,
        metrics: MetricSelection = None,
        *,
        unit: str | None = None,
        normalization: Normalization | None = None,
        by: Iterable[tuple[Any, Moments]] = (),
        groups: Moments | None = None,
        previous: Moments | None = None,
        interval: IntervalOption = 0.95,
        origin: Origin | None = None,
        exact: dict[str, float] | None = None,
    ) -> "RegressionEvaluation":
        """Evaluate a summary that is already made, and those of its subgroups.

        `exact` has values that are known better than the summary knows them, by metric.
        """
        if table.shape:
            raise BadOption("Evaluate one summary; a batch is evaluated one by one, or pooled.")
        wanted = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Moments)
        how = resolve_intervals(interval)
        found = _replace_values(_estimate_metrics(wanted, table, groups, how), exact or {})
        parts = {name: part for name, part in by if np.any(part.items)}
        return cls(
            table,
            found,
            tuple(wanted),
            tuple(_compute_baselines(table, previous)),
            unit,
            normalization,
            {
                name: cls._evaluate_subgroup(part, wanted, how, unit, normalization)
                for name, part in parts.items()
            },
            None if groups is None else int((groups.items > 0).sum()),
            how,
            origin or Origin("target", "predicted"),
        )

    @classmethod
    def _evaluate_subgroup(
        cls,
        part: Moments,
        metrics: list[Metric],
        how: ConfidenceIntervals | None,
        unit: str | None,
        normalization: Normalization | None,
    ) -> "RegressionEvaluation":
        groups = part if part.shape else None
        table = part.pooled if part.shape else part
        return cls.from_summary(
            table, metrics, groups=groups, interval=how, unit=unit, normalization=normalization
        )

    @property
    def sigma(self) -> float:
        """The population standard deviation of the evaluated targets."""
        return math.sqrt(max(float(self.table.plain.mean(2, 0)), 0.0))

    def get_unit(self, metric: Metric) -> str | None:
        """Return the unit of a metric; a share has none."""
        if self.unit is None or metric.name not in UNIT_METRICS | SQUARED_UNIT_METRICS:
            return None
        return f"({self.unit})²" if metric.name in SQUARED_UNIT_METRICS else self.unit

    def normalized(self) -> dict[str, float]:
        """Return the metrics that have a unit on the normalised scale."""
        if self.normalization is None:
            return {}
        powers = {m.expression: 2 if m.name in SQUARED_UNIT_METRICS else 1 for m in self.wanted}
        return {
            m.expression: self.metrics[m.expression].value
            / self.normalization.std ** powers[m.expression]
            for m in self.wanted
            if m.name in UNIT_METRICS | SQUARED_UNIT_METRICS
        }

    def list_subgroups(self) -> "list[tuple[str, RegressionEvaluation]]":
        """Return the subgroups by their names as texts, made distinct where they look alike."""
        return name_subgroups(self.by)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason."""
        table, training = self.table, self.normalization
        return {
            "schema": 1,
            "task": "regression",
            "n": table.n,
            "weight": float(table.total),
            "unit": self.unit,
            "dropped": table.dropped,
            "metrics": {
                m.expression: self.metrics[m.expression].to_dict()
                | {"direction": m.direction, "unit": self.get_unit(m)}
                for m in self.wanted
            },
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "targets": {
                "mean": to_json_number(float(table.plain.y)),
                "sigma": to_json_number(self.sigma),
            },
            "normalization": training and {"mean": training.mean, "std": training.std},
            "normalized": {
                name: to_json_number(value) for name, value in self.normalized().items()
            },
            "predictive": {
                name: found.to_dict() for name, found in self.prediction_intervals.items()
            },
            "interval": None if self.interval is None else self.interval.level,
            "groups": self.groups,
            "by": {name: part.to_dict() for name, part in self.list_subgroups()},
            **self.further,
            "source": self.origin.to_dict(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric, of the whole and then of each subgroup."""
        rows: list[dict[str, Any]] = [
            {
                "part": "metrics",
                "group": group,
                "metric": m.expression,
                "value": part.metrics[m.expression].value,
                "low": part.metrics[m.expression].low,
                "high": part.metrics[m.expression].high,
                "method": part.metrics[m.expression].method,
                "unit": self.get_unit(m),
                "n": part.table.n,
            }
            for group, part in [("", self), *self.list_subgroups()]
            for m in part.wanted
        ]
        rows += [
            {"part": "baselines", "metric": name, "model": baseline.name, "value": value}
            for baseline in self.baselines
            for name, value in (("rmse", baseline.rmse), ("mae", baseline.mae))
        ]
        rows += [
            {"part": "normalized", "metric": name, "value": value}
            for name, value in self.normalized().items()
        ]
        return align_columns([*rows, *self.further_rows])

    def document(self) -> Document:
        """Return the report for people."""
        from ordinate.results.regression_text import describe_regression  # noqa: PLC0415 - it shows results

        return describe_regression(self)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())


def evaluate_regression(
    targets: Any,
    predictions: Any,
    metrics: MetricSelection = None,
    weights: Any = None,
    by: Any = None,
    *,
    unit: str | None = None,
    normalization: Normalization | None = None,
    normalized: bool = False,
    groups: Any = None,
    order: Any = None,
    lower: Any = None,
    upper: Any = None,
    alpha: float = 0.1,
    interval: IntervalOption = 0.95,
    poisson: bool = False,
) -> RegressionEvaluation:
    """Evaluate predictions of a quantity, beside constant predictors.

    `normalization` is that of the training targets; with `normalized` the columns are on its scale,
    and are turned back. `groups` is a column of items that belong together, `order` one of times,
    for the baseline that predicts the previous value. `lower` and `upper` are the bounds of
    prediction intervals that leave out `alpha`. `poisson` resamples items again instead of the
    delta method.
    """
    y, p = convert_to_numbers(targets, "targets"), convert_to_numbers(predictions, "predictions")
    if normalized:
        if normalization is None:
            raise BadOption("Values on the normalised scale need their normalization=….")
        y, p = normalization.denormalize(y), normalization.denormalize(p)
    if poisson and groups is not None:
        raise BadOption("Poisson resamples take items one by one. Leave out poisson=… or groups=….")
    check_same_length(len(y), len(p), "targets", "predictions")
    weighing = match_weights(weights, len(y))
    counted = weighing is None or bool((weighing == np.floor(weighing)).all())
    items = _RegressionItems(
        y, p, weighing, None if groups is None else factorize_column(groups), counted
    )
    constants = _compute_constants(y, items.weights, normalization)

    def evaluated(some: _RegressionItems, previous: Moments | None = None) -> RegressionEvaluation:
        options: Any = {"unit": unit, "normalization": normalization, "interval": interval}
        table = some.table(constants)
        result = RegressionEvaluation.from_summary(
            table,
            metrics,
            groups=some.batch(),
            previous=previous,
            exact=some.compute_exact(),
            **options,
        )
        return result if not poisson else some.bootstrap(result)

    whole = evaluated(items, None if order is None else _summarise_previous(items, order))
    parts = {} if by is None else items.split(factorize_column(by, "by"))
    bounds = None
    if lower is not None or upper is not None:
        low, high = (
            convert_to_numbers(lower, "lower bounds"),
            convert_to_numbers(upper, "upper bounds"),
        )
        if normalized and normalization is not None:
            low, high = normalization.denormalize(low), normalization.denormalize(high)
        bounds = PredictionIntervals.of(y, low, high, items.weights, items.groups, predictions=p)
    return replace(
        whole,
        by={name: evaluated(part) for name, part in parts.items()},
        prediction_intervals={}
        if bounds is None
        else evaluate_prediction_intervals(bounds, alpha, whole.interval),
    )


def evaluate_prediction_intervals(
    bounds: PredictionIntervals,
    alpha: float,
    how: ConfidenceIntervals | None,
    further: Sequence[Metric] = (),
) -> dict[str, Estimate]:
    """Return what prediction intervals are worth that should leave out a share alpha.

    A batch of bounds is one for each group of items that belong together.
    """
    asked = ("interval_coverage", "mean_interval_width", f"winkler(alpha={alpha})")
    metrics = {
        m.expression: m
        for m in (*(find_metric(name, PredictionIntervals) for name in asked), *further)
    }
    if how is None:
        table = bounds.pooled if bounds.shape else bounds
        values = {name: float(m(table)) for name, m in metrics.items()}
        return {
            name: make_point_estimate(x, "no interval was asked for") for name, x in values.items()
        }
    estimate = estimate_clustered_interval_metric if bounds.shape else estimate_interval_metric
    return {name: estimate(m, bounds, how.level) for name, m in metrics.items()}


@dataclass(frozen=True)
class _RegressionItems:
    """Columns of the same items."""

    y: Any
    p: Any
    weights: Any
    groups: Groups | None
    counted: bool = True  # whether the weights of all items are counts

    @property
    def rows(self) -> Any:
        """The rows of the items; a row of weight 0 is none."""
        return np.flatnonzero(np.ones(len(self.y)) if self.weights is None else self.weights > 0)

    def table(self, constants: dict[str, float]) -> Moments:
        """Return the summary of all items."""
        found = Moments.of(self.y, self.p, self.weights, constants=constants, histogram=True)
        return replace(found, counted=self.counted)

    def batch(self) -> Moments | None:
        """Return what each group has; medians need the summary of all items only."""
        if self.groups is None:
            return None
        if None in self.groups.values and len(self.groups.codes) == len(self.y):
            alone = self.rows[self.groups.codes[self.rows] == self.groups.values.index(None)]
            if len(alone):
                raise MissingLabels(f"Row {alone[0] + 1} has no group. Leave out what has none.")
        found = Moments.of(self.y, self.p, self.weights, groups=self.groups, order=2)
        return replace(found, counted=self.counted)

    def split(self, by: Groups) -> "dict[Hashable, _RegressionItems]":
        """Return the items of each subgroup that has some."""
        check_same_length(len(self.y), len(by.codes), "targets", "values of by")
        codes = by.codes[self.rows]
        parts = {name: self.rows[codes == k] for k, name in enumerate(by.values)}
        return {name: self.some(rows) for name, rows in parts.items() if len(rows)}

    def some(self, rows: Any) -> "_RegressionItems":
        """Return some of the items."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None
        if self.groups is not None:
            kept, codes = np.unique(self.groups.codes[rows], return_inverse=True)
            groups = Groups([self.groups.values[k] for k in kept], codes.reshape(-1))
        return _RegressionItems(self.y[rows], self.p[rows], weights, groups, self.counted)

    def compute_exact(self) -> dict[str, float]:
        """Return what a summary knows approximately, from the items themselves."""
        return {"median_absolute_error": _compute_median(np.abs(self.p - self.y), self.weights)}

    def bootstrap(self, result: RegressionEvaluation) -> RegressionEvaluation:
        """Return the result with limits from Poisson resamples."""
        how = result.interval
        if how is None:
            return result
        resamples = resample_poisson(self.y, self.p, how, self.weights)
        found = estimate_from_poisson(result.wanted, result.table, resamples, how)
        return replace(result, metrics=_replace_values(found, self.compute_exact()))


def regression_report(targets: Any, predictions: Any, **options: Any) -> str:
    """Return the text report of a regression; options are those of evaluate_regression."""
    return render(evaluate_regression(targets, predictions, **options))


def _compute_constants(
    y: Any, weights: Any, normalization: Normalization | None
) -> dict[str, float]:
    there = y if weights is None else y[weights > 0]
    if not len(there) or not np.abs(there).max() < LARGEST_VALUE:
        return {}  # nobody gets a summary of these
    gaps = there - there[0]  # exactly 0 where all are equal
    weighing = None if weights is None else weights[weights > 0]
    constants = {TARGET_MEAN: float(there[0] + np.average(gaps, weights=weighing))}
    constants[MEDIAN_BASELINE] = _compute_median(there, weighing)
    return constants if normalization is None else {TRAIN_MEAN: normalization.mean} | constants


def _compute_median(values: Any, weights: Any) -> float:
    """Return the median; between two values that share the middle it is their mean."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    first, last = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
    inorder = values[order]
    return float(inorder[first] + inorder[min(last, len(values) - 1)]) / 2.0


def _summarise_previous(items: _RegressionItems, order: Any) -> Moments | None:
    """Return the summary of predicting the previous target in the declared order."""
    times = np.asarray(order)
    if times.ndim != 1 or len(times) != len(items.y):
        raise BadOption(f"{times.size} times for {len(items.y)} targets: each item needs one.")
    if times.dtype.kind in "USO" and any(isinstance(time, str) for time in times.tolist()):
        raise BadOption(
            "The times are texts, whose order is that of a dictionary: pass numbers or dates."
        )
    there = items.rows
    try:
        missing = there[np.not_equal(times[there], times[there]).astype(bool)]  # nan, and no time
        _, rows = np.unique(times[there], return_index=True)
    except TypeError:
        raise BadOption(
            "The times cannot be compared: one is missing, or of its own kind."
        ) from None
    if len(missing):
        raise BadOption(f"Row {missing[0] + 1} has no time, so nobody knows its previous value.")
    if len(rows) < len(there):
        raise BadOption("Two items have the same time, so nobody knows which is the previous one.")
    if len(rows) < 2:
        return None
    y = items.y[there[rows]]
    weights = None if items.weights is None else items.weights[there[rows]][1:]
    return Moments.of(y[1:], y[:-1], weights)


def _estimate_metrics(
    metrics: list[Metric], table: Moments, groups: Moments | None, how: ConfidenceIntervals | None
) -> dict[str, Estimate]:
    if how is not None:
        return estimate_regression_metrics(metrics, table if groups is None else groups, how, table)
    found = {}
    for metric in metrics:
        value = float(metric(table))
        note = explain_undefined(metric) if math.isnan(value) else "no interval was asked for"
        found[metric.expression] = make_point_estimate(value, note)
    return found


def _replace_values(found: dict[str, Estimate], exact: dict[str, float]) -> dict[str, Estimate]:
    """Return estimates with values that are known better; limits are as wide as to hold them."""
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


def _compute_baselines(table: Moments, previous: Moments | None) -> list[RegressionBaseline]:
    """Return the constant predictors, and the previous value where a time order is declared."""
    titles = {
        TRAIN_MEAN: "training mean",
        TARGET_MEAN: "mean of the targets",
        MEDIAN_BASELINE: "median of the targets",
    }
    found = []
    for name, title in titles.items():
        if name in table.constants:
            value = table.constants[name]
            spread = float(table.plain.mean(2, 0)) + (float(table.plain.y) - value) ** 2
            mean = float(table.spread[name] / table.total)
            note = None if name == TRAIN_MEAN else "it takes a second look at the targets"
            found.append(RegressionBaseline(title, math.sqrt(spread), mean, value, note))
    if previous is not None:
        rmse, mae = (float(find_metric(name, Moments)(previous)) for name in ("rmse", "mae"))
        found.append(
            RegressionBaseline(PREVIOUS_BASELINE, rmse, mae, None, "the first item has none")
        )
    return found
