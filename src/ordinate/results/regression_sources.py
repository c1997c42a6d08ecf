"""From columns, frames and databases to the evaluation of a regression: items and summaries."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, MissingLabels, NoItems
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.constant_tests import LossTests, decide_for_items
from ordinate.inference.regression import (
    STUDENTIZED,
    estimate_from_items,
    is_resampled,
)
from ordinate.metrics import Metric
from ordinate.readers.batches import ColumnBatches
from ordinate.readers.numeric_cells import MissingPolicy
from ordinate.readers.regression import RegressionData, require_both_bounds, sum_batches, sum_table
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    Origin,
)
from ordinate.results.given_columns import GivenColumns, take_columns
from ordinate.results.regression import (
    DEFAULT_METRICS,
    HISTOGRAM_METRICS,
    MEDIAN_BASELINE,
    Part,
    RegressionEvaluation,
    find_constant,
)
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.counting import check_weights
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.prediction_intervals import PredictionIntervals, check_items, require_valid
from ordinate.summaries.regression import LARGEST_VALUE, TARGET_MEAN, TRAIN_MEAN, Moments
from ordinate.summaries.regression_sums import RegressionKeys
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    check_missing_policy,
    check_same_length,
    convert_to_numbers,
    find_missing_numbers,
    make_missing_labels_error,
    match_weights,
)


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
    items: "RegressionItems", result: RegressionEvaluation, resampled: ConfidenceIntervals | None
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


# --- items at hand --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegressionItems:
    """Columns of the same items."""

    y: Any
    p: Any
    bounds: tuple[Any, Any] | None  # lower and upper, of prediction intervals
    weights: Any
    groups: Groups | None
    counted: bool = True  # whether the weights of all items are counts
    dropped: int = 0
    absent: NDArray[np.bool] | None = None  # rows that lack a value

    @property
    def rows(self) -> Any:
        """The rows of the items; a row of weight 0 is none, nor is one that lacks a value."""
        there = np.ones(len(self.y), bool) if self.weights is None else self.weights > 0
        return np.flatnonzero(there if self.absent is None else there & ~self.absent)

    def leave_out_missing(self, columns: Mapping[str, Any], missing: str) -> "RegressionItems":
        """Return the items, of which those that lack a value are known, or refuse them."""
        there = np.zeros(len(self.y), bool)
        there[self.rows] = True
        lacking = {name: find_missing_numbers(x) & there for name, x in columns.items()}
        if self.groups is not None and None in self.groups.values and missing == "drop":
            lacking["groups"] = there & (self.groups.codes == self.groups.values.index(None))
        for name, absent in lacking.items():
            if absent.any() and missing != "drop":
                rows = [f"row {row + 1}" for row in np.flatnonzero(absent)[:ROWS_SHOWN]]
                raise make_missing_labels_error(int(absent.sum()), there.sum(), name, rows)
        absent = np.any(list(lacking.values()), axis=0)
        return replace(self, absent=absent) if absent.any() else self

    def check_values(self) -> None:
        """Refuse values that are no numbers, by their rows."""
        rows = self.rows
        for name, column in (("target", self.y), ("prediction", self.p)):
            of_row = f"The {name} of row {{row}} is {{value}}, not a finite number."
            require_valid(np.isfinite(column[rows]), rows, column[rows], of_row)
        if self.bounds is not None:
            lower, upper = (bound[rows] for bound in self.bounds)
            check_items(self.y[rows], lower, upper, self.p[rows], rows)

    def sum_up(self, constants: Mapping[str, float], by: Groups | None) -> RegressionData:
        """Return the summaries of all items, of each group, and of each subgroup."""
        rows = self.rows
        if not len(rows):
            self.refuse_no_items()
        if self.groups is not None:
            check_same_length(len(self.y), len(self.groups.codes), "targets", "groups")
            require_groups(self.groups, rows)
        alone = Groups([None], np.zeros(len(self.y), np.int64))
        subgroups, clusters = by or alone, self.groups or alone
        columns = {"y": self.y, "p": self.p, "subgroup": subgroups.codes, "cluster": clusters.codes}
        if self.weights is not None:
            columns["w"] = self.weights
        if self.bounds is not None:
            columns["low"], columns["high"] = self.bounds
        if len(rows) < len(self.y):
            columns = {name: column[rows] for name, column in columns.items()}
        keys = RegressionKeys.of(
            subgroups._replace(codes=columns["subgroup"]),
            clusters._replace(codes=columns["cluster"]),
            grouped=self.groups is not None,
        )
        lost = subgroups.codes[:0] if self.absent is None else subgroups.codes[self.absent]
        dropped = np.bincount(lost, minlength=len(subgroups.values))
        how = {"weighted": self.weights is not None, "by": by is not None}
        return sum_batches(ColumnBatches(columns), keys, dropped, constants, **how)

    def refuse_no_items(self) -> None:
        """Say why there are none."""
        if self.absent is not None:
            raise NoItems(f"There are no items to evaluate: all {len(self.y):,} lack a value.")
        reason = "all weights are 0" if len(self.y) else "the columns are empty"
        raise NoItems(f"There are no items to evaluate: {reason}.")

    def split(self, by: Groups) -> "dict[Hashable, RegressionItems]":
        """Return the items of each subgroup that has some."""
        check_same_length(len(self.y), len(by.codes), "targets", "values of by")
        rows = self.rows
        order = np.argsort(by.codes[rows], kind="stable")
        ends = np.cumsum(np.bincount(by.codes[rows], minlength=len(by.values)))
        parts = np.split(rows[order], ends[:-1])[: len(by.values)]  # none where there are no rows
        absent = np.zeros(0, int) if self.absent is None else by.codes[self.absent]
        dropped = np.bincount(absent, minlength=len(by.values)).tolist()
        named = zip(by.values, parts, dropped, strict=True)
        return {name: self.select(part, lost) for name, part, lost in named if len(part)}

    def select(self, rows: Any, dropped: int = 0) -> "RegressionItems":
        """Return the items of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None
        if self.groups is not None:
            present, codes = np.unique(self.groups.codes[rows], return_inverse=True)
            groups = Groups([self.groups.values[k] for k in present], codes.reshape(-1))
        bounds = None if self.bounds is None else (self.bounds[0][rows], self.bounds[1][rows])
        y, p = self.y[rows], self.p[rows]
        return RegressionItems(y, p, bounds, weights, groups, self.counted, dropped)

    def select_complete(self) -> "RegressionItems":
        """Return the items that lack nothing."""
        if self.absent is None:
            return self
        if not len(self.rows):
            self.refuse_no_items()
        return self.select(self.rows, int(self.absent.sum()))

    def compute_exact(self) -> dict[str, float]:
        """Return what a summary knows approximately, from the items themselves."""
        return {"median_absolute_error": _compute_median(np.abs(self.p - self.y), self.weights)}

    def is_resampled(self, settings: ConfidenceIntervals | None, parts: int) -> bool:
        """Tell whether the intervals come from resamples of these items, or of parts of them."""
        if settings is None or self.groups is not None:
            return False
        counts = self.weights is not None and self.counted
        return is_resampled(settings, self.weights.sum() if counts else len(self.rows), parts)


def collect_items(
    given: GivenColumns, normalization: Normalization | None, missing: MissingPolicy
) -> "RegressionItems":
    """Return the items of columns at hand; with a normalization, values are turned back."""
    if given.table is not None:
        refuse_unnamed_columns(given.names, "target", "predicted")
    if given["target"] is None or given["predicted"] is None:
        raise BadOption("Pass two columns, targets and predictions, or a table and their names.")
    require_both_bounds(given["lower"], given["upper"])
    columns = {"targets": given["target"], "predictions": given["predicted"]}
    if given["lower"] is not None:
        columns |= {"lower bounds": given["lower"], "upper bounds": given["upper"]}
    numbers = [convert_to_numbers(column, name) for name, column in columns.items()]
    if normalization is not None:
        numbers = [normalization.denormalize(x) for x in numbers]
    y, p, *bounds = numbers
    for name, column in zip(list(columns)[1:], (p, *bounds), strict=True):
        check_same_length(len(y), len(column), "targets", name)
    weights = match_weights(given["weights"], len(y))
    counted = weights is None or bool((weights == np.floor(weights)).all())
    clusters = None if given["groups"] is None else factorize_column(given["groups"])
    sides = (bounds[0], bounds[1]) if bounds else None
    if weights is not None:
        check_weights(weights, 0)
    items = RegressionItems(y, p, sides, weights, clusters, counted)
    items = items.leave_out_missing(columns, missing)
    items.check_values()
    return items


def require_groups(groups: Groups, rows: NDArray[np.intp]) -> None:
    """Refuse items, in some rows, whose group is unknown."""
    if None not in groups.values:
        return
    alone = rows[groups.codes[rows] == groups.values.index(None)]
    if len(alone):
        shown = ", ".join(f"row {row + 1}" for row in alone[:ROWS_SHOWN])
        more = ", …" if len(alone) > ROWS_SHOWN else ""
        raise MissingLabels(
            f"{len(alone)} of {len(rows)} items have no group ({shown}{more}). Leave them out, or "
            "give each a group."
        )


def decide_against_constant(
    summary: Moments, y: Any, p: Any, settings: ConfidenceIntervals, weights: Any
) -> LossTests | None:
    """Return the tests against the constant that a summary of these single items knows."""
    name = find_constant(summary)
    if name is None:
        return None
    counted = bool(summary.has_integer_weights)
    return decide_for_items(y, p, summary.constants[name], settings, weights, counted=counted)


def compute_constants(
    y: Any, weights: Any, normalization: Normalization | None
) -> dict[str, float]:
    """Return what simple predictors always predict: training mean, mean and median of targets."""
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


def summarise_previous(items: RegressionItems, order: Any) -> Moments | None:
    """Return the summary of predicting the previous target in the declared order."""
    times = np.asarray(order)
    if times.ndim != 1 or len(times) != len(items.y):
        raise BadOption(f"{times.size} times for {len(items.y)} targets: each item needs one.")
    if times.dtype.kind in "USO" and any(isinstance(time, str) for time in times.tolist()):
        raise BadOption(
            "The times are strings, whose order is that of a dictionary: pass numbers or dates."
        )
    there = items.rows
    try:
        missing = there[np.not_equal(times[there], times[there]).astype(bool)]  # nan, and no time
        _, rows = np.unique(times[there], return_index=True)
    except TypeError:
        raise BadOption(
            "The times cannot be compared: one is missing, or of another type."
        ) from None
    if len(missing):
        raise BadOption(f"Row {missing[0] + 1} has no time, so its previous value is unknown.")
    if len(rows) < len(there):
        raise BadOption("Two items have the same time, so which is the previous one is unknown.")
    if len(rows) < 2:
        return None
    y = items.y[there[rows]]
    weights = None if items.weights is None else items.weights[there[rows]][1:]
    return Moments.of(y[1:], y[:-1], weights)
