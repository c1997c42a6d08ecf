"""Values: what predictions of a quantity are worth, in its own unit."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import Estimate, Intervals
from ordinate.inference.estimates import finite, nowhere
from ordinate.inference.prediction_intervals import bounds_estimate, grouped_bounds_estimate
from ordinate.inference.regression import (
    estimate_values,
    poisson_draws,
    poisson_estimates,
    why_undefined,
)
from ordinate.metrics import Metric, find
from ordinate.render import Document, html, render
from ordinate.results.evaluation import Interval, Origin, Wanted, aligned, chosen, intervals, named
from ordinate.scale.encoding import Groups, factorise
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.numeric_columns import numbers, weights_of
from ordinate.summaries.prediction_intervals import Bounds
from ordinate.summaries.regression import LARGE, MIDDLE, TRAIN, Moments
from ordinate.summaries.tabulation import same_length

DEFAULT_METRICS = (
    "rmse",
    "mae",
    "median_absolute_error",
    "max_error",
    "bias",
    "r2",
    "relative_accuracy",
    "rmse_share",
    "skill",
)
IN_UNIT = {"rmse", "mae", "median_absolute_error", "max_error", "bias"} | {
    "baseline_rmse",
    "baseline_mae",
}
SQUARED = {"mse"}
MEDIAN, PREVIOUS = "median", "previous value"


@dataclass(frozen=True)
class Baseline:
    """A simple predictor: its errors on the same targets."""

    name: str
    rmse: float
    mae: float
    constant: float | None = None  # what it always predicts
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        constant = None if self.constant is None else finite(self.constant)
        numbers_of = {"rmse": finite(self.rmse), "mae": finite(self.mae)}
        return {"name": self.name, **numbers_of, "constant": constant, "note": self.note}


@dataclass(frozen=True)
class Values:
    """Targets and predictions of a quantity with their metrics, baselines and subgroups.

    >>> result = evaluate_values([670.0, 700.0, 640.0], [660.0, 705.0, 650.0], unit="kg/m³")
    >>> round(result.metrics["rmse"].value, 3)
    8.66
    """

    table: Moments
    metrics: dict[str, Estimate]
    wanted: tuple[Metric, ...]
    baselines: tuple[Baseline, ...]
    unit: str | None = None
    normalization: Normalization | None = None
    by: dict[Hashable, "Values"] = field(default_factory=dict)
    groups: int | None = None
    interval: Intervals | None = None
    origin: Origin = field(default_factory=lambda: Origin("target", "predicted"))
    predictive: dict[str, Estimate] = field(default_factory=dict)  # of lower and upper bounds
    sections: tuple[Any, ...] = ()  # further parts of the report: grids and sentences
    further: dict[str, Any] = field(default_factory=dict)  # and of the JSON, by name
    further_rows: tuple[dict[str, Any], ...] = ()  # and of the CSV

    @classmethod
    def from_table(
        cls,
        table: Moments,
        metrics: Wanted = None,
        *,
        unit: str | None = None,
        normalization: Normalization | None = None,
        by: Iterable[tuple[Any, Moments]] = (),
        groups: Moments | None = None,
        previous: Moments | None = None,
        interval: Interval = 0.95,
        origin: Origin | None = None,
        exact: dict[str, float] | None = None,
    ) -> "Values":
        """Evaluate a summary that is already made, and those of its subgroups.

        `exact` has values that are known better than the summary knows them, by metric.
        """
        if table.shape:
            raise BadOption("Evaluate one summary; a batch is evaluated one by one, or pooled.")
        wanted = chosen(DEFAULT_METRICS if metrics is None else metrics, Moments)
        how = intervals(interval)
        found = _corrected(_measured(wanted, table, groups, how), exact or {})
        parts = {name: part for name, part in by if np.any(part.items)}
        return cls(
            table,
            found,
            tuple(wanted),
            tuple(_baselines(table, previous)),
            unit,
            normalization,
            {
                name: cls._part(part, wanted, how, unit, normalization)
                for name, part in parts.items()
            },
            None if groups is None else int((groups.items > 0).sum()),
            how,
            origin or Origin("target", "predicted"),
        )

    @classmethod
    def _part(
        cls,
        part: Moments,
        metrics: list[Metric],
        how: Intervals | None,
        unit: str | None,
        normalization: Normalization | None,
    ) -> "Values":
        groups = part if part.shape else None
        table = part.pooled if part.shape else part
        return cls.from_table(
            table, metrics, groups=groups, interval=how, unit=unit, normalization=normalization
        )

    @property
    def sigma(self) -> float:
        """The population standard deviation of the evaluated targets."""
        return math.sqrt(max(float(self.table.plain.mean(2, 0)), 0.0))

    def unit_of(self, metric: Metric) -> str | None:
        """Return the unit of a metric; a share has none."""
        if self.unit is None or metric.name not in IN_UNIT | SQUARED:
            return None
        return f"({self.unit})²" if metric.name in SQUARED else self.unit

    def normalized(self) -> dict[str, float]:
        """Return the metrics that have a unit on the normalised scale."""
        if self.normalization is None:
            return {}
        powers = {m.expression: 2 if m.name in SQUARED else 1 for m in self.wanted}
        return {
            m.expression: self.metrics[m.expression].value
            / self.normalization.std ** powers[m.expression]
            for m in self.wanted
            if m.name in IN_UNIT | SQUARED
        }

    def named_groups(self) -> "list[tuple[str, Values]]":
        """Return the subgroups by their names as texts, told apart where they look alike."""
        return named(self.by)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason."""
        table, training = self.table, self.normalization
        return {
            "schema": 1,
            "task": "values",
            "n": table.n,
            "weight": float(table.total),
            "unit": self.unit,
            "dropped": table.dropped,
            "metrics": {
                m.expression: self.metrics[m.expression].to_dict()
                | {"direction": m.direction, "unit": self.unit_of(m)}
                for m in self.wanted
            },
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "targets": {"mean": finite(float(table.plain.y)), "sigma": finite(self.sigma)},
            "normalization": training and {"mean": training.mean, "std": training.std},
            "normalized": {name: finite(value) for name, value in self.normalized().items()},
            "predictive": {name: found.to_dict() for name, found in self.predictive.items()},
            "interval": None if self.interval is None else self.interval.level,
            "groups": self.groups,
            "by": {name: part.to_dict() for name, part in self.named_groups()},
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
                "unit": self.unit_of(m),
                "n": part.table.n,
            }
            for group, part in [("", self), *self.named_groups()]
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
        return aligned([*rows, *self.further_rows])

    def document(self) -> Document:
        """Return the report for people."""
        from ordinate.results.regression_text import describe  # noqa: PLC0415 - it shows results

        return describe(self)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())


def evaluate_values(
    targets: Any,
    predictions: Any,
    metrics: Wanted = None,
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
    interval: Interval = 0.95,
    poisson: bool = False,
) -> Values:
    """Evaluate predictions of a quantity, beside constant predictors.

    `normalization` is that of the training targets; with `normalized` the columns are on its scale,
    and are turned back. `groups` is a column of items that belong together, `order` one of times,
    for the baseline that predicts the previous value. `lower` and `upper` are the bounds of
    predictive intervals that leave out `alpha`. `poisson` draws items again instead of the delta
    method.
    """
    y, p = numbers(targets, "targets"), numbers(predictions, "predictions")
    if normalized:
        if normalization is None:
            raise BadOption("Values on the normalised scale need their normalization=….")
        y, p = normalization.denormalize(y), normalization.denormalize(p)
    if poisson and groups is not None:
        raise BadOption("Poisson draws take items one by one. Leave out poisson=… or groups=….")
    same_length(len(y), len(p), "targets", "predictions")
    weighing = weights_of(weights, len(y))
    counted = weighing is None or bool((weighing == np.floor(weighing)).all())
    items = _Items(y, p, weighing, None if groups is None else factorise(groups), counted)
    constants = _constants(y, items.weights, normalization)

    def evaluated(some: _Items, previous: Moments | None = None) -> Values:
        options: Any = {"unit": unit, "normalization": normalization, "interval": interval}
        table = some.table(constants)
        result = Values.from_table(
            table, metrics, groups=some.batch(), previous=previous, exact=some.exact(), **options
        )
        return result if not poisson else some.redrawn(result)

    whole = evaluated(items, None if order is None else _previous(items, order))
    parts = {} if by is None else items.split(factorise(by, "by"))
    bounds = None
    if lower is not None or upper is not None:
        low, high = numbers(lower, "lower bounds"), numbers(upper, "upper bounds")
        if normalized and normalization is not None:
            low, high = normalization.denormalize(low), normalization.denormalize(high)
        bounds = Bounds.of(y, low, high, items.weights, items.groups, predictions=p)
    return replace(
        whole,
        by={name: evaluated(part) for name, part in parts.items()},
        predictive={} if bounds is None else predictive(bounds, alpha, whole.interval),
    )


def predictive(
    bounds: Bounds, alpha: float, how: Intervals | None, further: Sequence[Metric] = ()
) -> dict[str, Estimate]:
    """Return what predictive intervals are worth that should leave out a share alpha.

    A batch of bounds is one for each group of items that belong together.
    """
    asked = ("interval_coverage", "mean_interval_width", f"winkler(alpha={alpha})")
    metrics = {m.expression: m for m in (*(find(name, Bounds) for name in asked), *further)}
    if how is None:
        table = bounds.pooled if bounds.shape else bounds
        values = {name: float(m(table)) for name, m in metrics.items()}
        return {name: nowhere(x, "no interval was asked for") for name, x in values.items()}
    estimate = grouped_bounds_estimate if bounds.shape else bounds_estimate
    return {name: estimate(m, bounds, how.level) for name, m in metrics.items()}


@dataclass(frozen=True)
class _Items:
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

    def split(self, by: Groups) -> "dict[Hashable, _Items]":
        """Return the items of each subgroup that has some."""
        same_length(len(self.y), len(by.codes), "targets", "values of by")
        codes = by.codes[self.rows]
        parts = {name: self.rows[codes == k] for k, name in enumerate(by.values)}
        return {name: self.some(rows) for name, rows in parts.items() if len(rows)}

    def some(self, rows: Any) -> "_Items":
        """Return some of the items."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None
        if self.groups is not None:
            kept, codes = np.unique(self.groups.codes[rows], return_inverse=True)
            groups = Groups([self.groups.values[k] for k in kept], codes.reshape(-1))
        return _Items(self.y[rows], self.p[rows], weights, groups, self.counted)

    def exact(self) -> dict[str, float]:
        """Return what a summary knows approximately, from the items themselves."""
        return {"median_absolute_error": _median(np.abs(self.p - self.y), self.weights)}

    def redrawn(self, result: Values) -> Values:
        """Return the result with limits from Poisson draws."""
        how = result.interval
        if how is None:
            return result
        draws = poisson_draws(self.y, self.p, how, self.weights)
        found = poisson_estimates(result.wanted, result.table, draws, how)
        return replace(result, metrics=_corrected(found, self.exact()))


def regression_report(targets: Any, predictions: Any, **options: Any) -> str:
    """Return the text report of predictions of a quantity; options are those of evaluate_values."""
    return render(evaluate_values(targets, predictions, **options))


def _constants(y: Any, weights: Any, normalization: Normalization | None) -> dict[str, float]:
    there = y if weights is None else y[weights > 0]
    if not len(there) or not np.abs(there).max() < LARGE:
        return {}  # nobody gets a summary of these
    gaps = there - there[0]  # exactly 0 where all are equal
    weighing = None if weights is None else weights[weights > 0]
    constants = {MIDDLE: float(there[0] + np.average(gaps, weights=weighing))}
    constants[MEDIAN] = _median(there, weighing)
    return constants if normalization is None else {TRAIN: normalization.mean} | constants


def _median(values: Any, weights: Any) -> float:
    """Return the median; between two values that share the middle it is their mean."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    first, last = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
    inorder = values[order]
    return float(inorder[first] + inorder[min(last, len(values) - 1)]) / 2.0


def _previous(items: _Items, order: Any) -> Moments | None:
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


def _measured(
    metrics: list[Metric], table: Moments, groups: Moments | None, how: Intervals | None
) -> dict[str, Estimate]:
    if how is not None:
        return estimate_values(metrics, table if groups is None else groups, how, table)
    found = {}
    for metric in metrics:
        value = float(metric(table))
        note = why_undefined(metric) if math.isnan(value) else "no interval was asked for"
        found[metric.expression] = nowhere(value, note)
    return found


def _corrected(found: dict[str, Estimate], exact: dict[str, float]) -> dict[str, Estimate]:
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


def _baselines(table: Moments, previous: Moments | None) -> list[Baseline]:
    """Return the constant predictors, and the previous value where a time order is declared."""
    titles = {
        TRAIN: "training mean",
        MIDDLE: "mean of the targets",
        MEDIAN: "median of the targets",
    }
    found = []
    for name, title in titles.items():
        if name in table.constants:
            value = table.constants[name]
            spread = float(table.plain.mean(2, 0)) + (float(table.plain.y) - value) ** 2
            mean = float(table.spread[name] / table.total)
            note = None if name == TRAIN else "it takes a second look at the targets"
            found.append(Baseline(title, math.sqrt(spread), mean, value, note))
    if previous is not None:
        rmse, mae = (float(find(name, Moments)(previous)) for name in ("rmse", "mae"))
        found.append(Baseline(PREVIOUS, rmse, mae, None, "the first item has none"))
    return found
