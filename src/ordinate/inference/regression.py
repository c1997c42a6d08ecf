"""Confidence intervals for regression metrics: from moments, clusters, resampled items."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference.bootstrap import studentised_interval
from ordinate.inference.clusters import (
    explain_undefined_deletions,
    jackknife_error,
    join_doubts,
    list_size_doubts,
)
from ordinate.inference.confidence_intervals import ConfidenceIntervals
from ordinate.inference.constant_tests import LossTests, decide_by_gains, decide_by_mean_gain
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.distributions import critical_value
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.interval_methods import IntervalMethod, join_notes
from ordinate.inference.regression_delta_method import (
    DeltaMethod,
    compute_squared_gain,
    is_delta_applicable,
    is_function_of_moments,
    square_weights,
    standard_error,
)
from ordinate.inference.regression_resampling import leave_out_each_cluster, resample_poisson
from ordinate.metrics import Metric
from ordinate.metrics.regression import BASELINE_FAMILY, find_error_percentile
from ordinate.summaries.regression import HIGHEST_ORDER, Moments

Floats = NDArray[np.float64]
STUDENTIZED: IntervalMethod = "studentized"
JACKKNIFE: IntervalMethod = "jackknife"
NO_ERROR_NOTE = "its standard error is 0 or lost in rounding"
ROUNDING_ERROR = 1e-12  # of a value: a standard error this small is rounding
FEWEST_RESAMPLED_ITEMS = 20  # of the study: resamples of fewer items say little
SQUARED_METRICS = {  # made of squared errors, whose mean may hang on a single item
    "mse",
    "rmse",
    "r2",
    "explained_variance",
    "relative_accuracy",
    "nrmse",
    "skill",
}
WITHIN_LARGEST_ERROR = SQUARED_METRICS | {"mae"}  # no bound of theirs asks for a larger one
MOST_RESAMPLED_ITEMS, MOST_RESAMPLED_PARTS = 100_000, 20  # without being asked: a second


def estimate_regression_metrics(
    metrics: Sequence[Metric],
    source: Moments,
    settings: ConfidenceIntervals,
    moments: Moments | None = None,
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its confidence interval.

    `source` is one summary, or a batch of them: one for each cluster of items. `moments` is the sum
    of the batch, where it is known.
    """
    if not source.shape:
        return estimate_regression_metrics_of_each(metrics, [source], settings)[0]
    groups = source[np.asarray(source.items) > 0]
    _refuse_misfit(settings, clustered=True)
    clusters = _Clusters(source.pooled if moments is None else moments, groups)
    return {m.expression: _estimate_from_clusters(m, clusters, settings) for m in metrics}


def estimate_regression_metrics_of_each(
    metrics: Sequence[Metric], parts: Sequence[Moments], settings: ConfidenceIntervals
) -> list[dict[str, Estimate]]:
    """Return the metrics of each of many summaries, from batches of those that are alike."""
    _refuse_misfit(settings)
    alike: dict[Hashable, list[int]] = {}
    for place, part in enumerate(parts):
        alike.setdefault((part.counted, part.order, *part.constants.items()), []).append(place)
    names = [metric.expression for metric in metrics]
    found: dict[int, dict[str, Estimate]] = {}
    for places in alike.values():
        chosen = [parts[place] for place in places]
        batch = DeltaMethod(Moments.stack([replace(part, histogram=None) for part in chosen]))
        columns = [_estimate_each(metric, chosen, batch, settings) for metric in metrics]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        found |= zip(places, rows, strict=True)
    return [found[place] for place in range(len(parts))]


def _estimate_each(
    metric: Metric, parts: Sequence[Moments], batch: DeltaMethod, settings: ConfidenceIntervals
) -> list[Estimate]:
    """Return a metric of each of many summaries; one that somebody declares, one by one."""
    if not is_function_of_moments(metric):
        return [_estimate_metric(metric, part, settings) for part in parts]
    values = np.asarray(metric(batch.moments), float).tolist()
    errors = batch.compute_errors(metric).tolist()
    return [
        _estimate_from_moments(metric, *row, settings)
        for row in zip(parts, values, errors, strict=True)
    ]


def _refuse_misfit(settings: ConfidenceIntervals, *, clustered: bool = False) -> None:
    """Refuse settings that moments cannot serve."""
    if settings.method not in {None, "delta", "t", *([JACKKNIFE] if clustered else [])}:
        other = (
            f"{JACKKNIFE!r}" if clustered else f"for single items without clusters {STUDENTIZED!r}"
        )
        raise BadOption(
            f"The method {settings.method!r} does not fit regression here: use 't' or 'delta', or "
            f"{other}."
        )
    if settings.stratified:
        raise BadOption("Regression has no gold levels: leave out stratified=True.")


def _estimate_metric(metric: Metric, moments: Moments, settings: ConfidenceIntervals) -> Estimate:
    value = float(metric(moments))
    if metric.name == "median_absolute_error" and not math.isnan(value):
        return _estimate_median(moments, value, settings)
    covered = is_delta_applicable(metric, moments)
    error = standard_error(metric, moments) if covered else math.nan
    return _estimate_from_moments(metric, moments, value, error, settings)


def _estimate_from_moments(
    metric: Metric, moments: Moments, value: float, error: float, settings: ConfidenceIntervals
) -> Estimate:
    """Return the interval that the standard error of a value gives, or why there is none."""
    reason = _explain_missing_interval(metric, moments, value)
    if reason is None:
        reason = _explain_missing_moments(metric, moments)
    if reason is None and (error == 0.0 or not math.isfinite(error)):
        reason = NO_ERROR_NOTE
    if reason is not None:
        return make_point_estimate(value, reason)
    units = count_items(moments)
    found = estimate_from_error(value, error, metric.bounds, units, settings.level, settings.method)
    return _open_beyond_sample(metric, moments, found)


def _open_beyond_sample(metric: Metric, moments: Moments, found: Estimate) -> Estimate:
    """Return an interval that is open where its bound asks for errors larger than any of these.

    A bound of RMSE or MAE above the largest error says nothing that the sample could say, nor does
    what follows from it for R², skill and their like.
    """
    if found.method is None or metric.name not in WITHIN_LARGEST_ERROR:
        return found
    worst = float(metric(_enlarge_errors(moments)))
    side = "high" if metric.direction == "minimize" else "low"
    if not metric.is_better(worst, getattr(found, side)):
        return found
    note = join_notes(found.note, _describe_worst_item(moments))
    if side == "high":
        return replace(found, note=note, high=math.inf)
    return replace(found, note=note, low=-math.inf)


def _enlarge_errors(moments: Moments) -> Moments:
    """Return the summary of the same items if all errors were as large as the largest."""
    squares = moments.total * moments.largest**2
    sums = moments.plain.sums.copy()
    sums[..., 0, 2] = squares
    absolute = moments.total * moments.largest
    plain = moments.plain._replace(sums=sums)
    return replace(moments, absolute=absolute, squares=squares, plain=plain)


def _describe_worst_item(moments: Moments) -> str:
    """Say which share of the squared error the worst item has, which leaves an interval open."""
    if not moments.has_integer_weights:
        return "open on a side, as no error is as large as a bound would ask for"
    share = min(float(moments.largest) ** 2 / float(moments.squares), 1.0)
    n = count_items(moments)
    return (
        f"open on a side, as one of {n:,.0f} rows carries {100 * share:.0f} % of the squared error"
    )


@dataclass(frozen=True)
class _Clusters:
    """All items, their clusters [G], and what all metrics share: the items without each of them."""

    moments: Moments
    groups: Moments

    @cached_property
    def rest(self) -> Moments:
        return leave_out_each_cluster(self.moments, self.groups)


def _estimate_from_clusters(
    metric: Metric, clusters: _Clusters, settings: ConfidenceIntervals
) -> Estimate:
    """Return the interval by the jackknife; by influences, where the method asks for it."""
    groups, value = clusters.groups, float(metric(clusters.moments))
    if reason := _explain_missing_interval(metric, clusters.moments, value):
        return make_point_estimate(value, reason)
    count = len(groups.items)
    if count < 2:
        return make_point_estimate(value, "there is one cluster only")
    if settings.method in {None, JACKKNIFE}:
        without = np.asarray(metric(clusters.rest), float)
        if reason := explain_undefined_deletions(without):
            return make_point_estimate(value, reason)
        error, method = float(jackknife_error(value, without)), JACKKNIFE
    else:
        error, method = standard_error(metric, clusters.moments, groups), settings.method
    if error <= ROUNDING_ERROR * abs(value) or not math.isfinite(error):
        return make_point_estimate(value, NO_ERROR_NOTE)
    found = estimate_from_error(value, error, metric.bounds, count, settings.level, method)
    doubts = join_doubts(list_size_doubts(np.asarray(groups.total)))
    found = found if found.method is None else replace(found, note=doubts)
    return _open_beyond_sample(metric, clusters.moments, found)


def estimate_from_error(
    value: float,
    error: float,
    bounds: tuple[float, float],
    units: float,
    level: float,
    method: str | None = None,
) -> Estimate:
    """Return a value with the interval that its standard error gives, or why it has none."""
    quantile, usual = critical_value(level, units, method)
    bounds = compute_bounded_interval(value, error, bounds, quantile)
    return Estimate(value, *bounds, method if method == JACKKNIFE else usual)


def _explain_missing_interval(metric: Metric, moments: Moments, value: float) -> str | None:
    """Say why a metric has no interval, if it has none."""
    if math.isnan(value):
        return explain_undefined(metric)
    if metric.family == BASELINE_FAMILY:
        return "it is a baseline"
    if not is_delta_applicable(metric, moments):
        return "no method covers it"
    if count_items(moments) < 2:
        return "there is one item only"
    return "it is at its bound" if value in metric.bounds else None


def explain_undefined(metric: Metric) -> str:
    """Say why a metric has no value."""
    return metric.undefined_when or "it is undefined"


def _explain_missing_moments(metric: Metric, moments: Moments) -> str | None:
    """Say why the moments that were summed are not enough for the errors of items."""
    if moments.order >= HIGHEST_ORDER or metric.name in {"mae", "bias"}:
        return None
    return (
        f"it needs moments of order {HIGHEST_ORDER}, and those of order {moments.order} were summed"
    )


def count_items(moments: Moments) -> float:
    """Return the number of items; integer weights are counts of them."""
    return float(moments.total) if moments.has_integer_weights else float(moments.n)


def _estimate_median(moments: Moments, value: float, settings: ConfidenceIntervals) -> Estimate:
    """Return the interval of the median from its ranks, with a normal approximation."""
    equal_items = float(moments.total) ** 2 / float(square_weights(moments).weight)
    if 1.0 - 2.0 ** (1.0 - equal_items) < settings.level:  # P(errors lie on both sides of it)
        return make_point_estimate(value, "there are too few items")
    half = normal_quantile(settings.level) / (2.0 * math.sqrt(equal_items))
    low, high = (
        float(find_error_percentile(moments, min(max(x, 0.0), 1.0)))
        for x in (0.5 - half, 0.5 + half)
    )
    return Estimate(value, low, high, "ranks")


# --- resamples of the items ----------------------------------------------------------------------


def is_resampled(settings: ConfidenceIntervals, items: float, parts: int = 1) -> bool:
    """Tell whether items are resampled: on request, or if neither they nor their parts are many.

    Parts are subgroups of the items, or models that predict them.
    """
    if settings.method is not None:
        return settings.method == STUDENTIZED
    return items <= MOST_RESAMPLED_ITEMS and parts <= MOST_RESAMPLED_PARTS


def estimate_from_items(
    metrics: Sequence[Metric],
    moments: Moments,
    targets: Floats,
    predictions: Floats,
    settings: ConfidenceIntervals,
    weights: Floats | None = None,
) -> dict[str, Estimate]:
    """Return metrics with studentised intervals from resamples; few items get Student's t.

    `moments` is the summary of the items.
    """
    plain = replace(settings, method=None)
    _refuse_misfit(plain)
    if count_items(moments) < FEWEST_RESAMPLED_ITEMS:
        return estimate_regression_metrics(metrics, moments, plain)
    counted = bool(moments.has_integer_weights)
    drawn = resample_poisson(targets, predictions, settings, weights, counted=counted)
    resamples = replace(drawn[drawn.items > 1], constants=moments.constants, spread={})
    errors = DeltaMethod(resamples)
    return {m.expression: _estimate_resampled(m, moments, errors, plain) for m in metrics}


def _estimate_resampled(
    metric: Metric, moments: Moments, resamples: DeltaMethod, settings: ConfidenceIntervals
) -> Estimate:
    value = float(metric(moments))
    if _explain_missing_interval(metric, moments, value) is not None:
        return _estimate_metric(metric, moments, settings)
    values = np.asarray(metric(resamples.moments), float)
    error, errors = standard_error(metric, moments), resamples.compute_errors(metric)
    defined = np.isfinite(values) & (errors > 0.0)
    undefined = 1.0 - float(defined.sum()) / settings.resamples
    if error == 0.0 or not defined.any():
        return make_point_estimate(value, NO_ERROR_NOTE, undefined)
    low, high = studentised_interval(
        value, error, values[defined], errors[defined], metric.bounds, settings.level
    )
    return _open_beyond_sample(metric, moments, Estimate(value, low, high, STUDENTIZED, undefined))


def decide_for_moments(
    moments: Moments, groups: Moments | None, name: str, settings: ConfidenceIntervals
) -> LossTests:
    """Test predictions against a named constant, from a summary, or those of clusters."""
    constant, level = moments.constants[name], settings.level
    if groups is None:
        mean, error = compute_squared_gain(moments, constant)
        return LossTests(
            constant, None, decide_by_mean_gain(mean, error, count_items(moments), level)
        )
    groups = groups[np.asarray(groups.items) > 0]
    gaps = groups.plain.recenter_sums(np.asarray(constant), np.asarray(0.0)).sums[..., 2, 0]
    squared = decide_by_gains(gaps - groups.squares, level, seed=settings.seed)
    if name not in groups.spread:
        return LossTests(constant, None, squared)
    gains = groups.spread[name] - groups.absolute
    return LossTests(constant, decide_by_gains(gains, level, seed=settings.seed), squared)
