"""Confidence intervals for the metrics of prediction intervals and of ensembles."""

import math
from typing import Any

import numpy as np

from ordinate.errors import BadInput
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.regression import estimate_from_error
from ordinate.inference.small_samples import mean_cost_interval, wilson_interval
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.prediction_intervals import (
    ROUNDING_SHARE,
    central_coverage,
    count_items,
    interval_coverage,
    standard_error,
    weigh_central_ranks,
)
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import ItemSums, PredictionIntervals

__all__ = ["estimate_ensemble_metric", "estimate_interval_metric"]

UNBOUNDED_NOTE = "some intervals have no end"
NO_ITEMS_NOTE = "there are no items"


def estimate_interval_metric(
    metric: Metric | str, intervals: PredictionIntervals, level: float = 0.95
) -> Estimate:
    """Return a metric of prediction intervals with its confidence interval, or why it has none.

    Coverage has Wilson's interval: of the counts, or, with other weights, of as many equal items as
    have the same standard error. Other metrics have that of the delta method.

    >>> lower, upper = [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5]
    >>> intervals = PredictionIntervals.of([1.0, 2.0, 5.0, 7.0], lower, upper)
    >>> coverage = estimate_interval_metric("interval_coverage", intervals)
    >>> coverage.value, round(coverage.low, 3), round(coverage.high, 3), coverage.method
    (0.75, 0.301, 0.954, 'wilson')
    """
    metric = find_metric(metric, PredictionIntervals)
    if metric.name != interval_coverage.name:
        return _estimate_by_delta(metric, _require_single_summary(intervals), level, UNBOUNDED_NOTE)
    value, total = float(metric(_require_single_summary(intervals))), float(intervals.total)
    if math.isnan(value):
        return make_point_estimate(value, NO_ITEMS_NOTE)
    n = total if intervals.has_integer_weights else total**2 / float(intervals.squared[0, 0])
    if not intervals.has_integer_weights and 0.0 < value < 1.0:
        z = np.zeros(len(intervals.names) + 1)
        z[0], z[1 + intervals.names.index("covered")] = -value, 1.0
        n = value * (1.0 - value) * total**2 / float(z @ intervals.squared @ z)
    low, high = wilson_interval(value * n, n, level)
    return Estimate(value, float(low), float(high), "wilson")


def estimate_clustered_interval_metric(
    metric: Metric | str, groups: PredictionIntervals, level: float = 0.95
) -> Estimate:
    """Return a metric of prediction intervals whose items come in clusters, one summary for each.

    The clusters are the units: each adds its weight times how far its mean score lies from that
    of all. Fewer than 30 of them have Student's t.

    >>> y, low, high = [1.0, 2.0, 5.0, 7.0], [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5]
    >>> coverage = estimate_clustered_interval_metric(
    ...     "interval_coverage", PredictionIntervals.of(y, low, high, groups=["a", "b", "b", "c"])
    ... )
    >>> coverage.value, coverage.method
    (0.75, 't')
    """
    metric = find_metric(metric, PredictionIntervals)
    clusters = groups[groups.total > 0]
    value, count = float(metric(groups.pooled)), len(clusters.items)
    reason = NO_ITEMS_NOTE if math.isnan(value) else UNBOUNDED_NOTE if math.isinf(value) else None
    reason = reason or ("there is one cluster only" if count < 2 else None)
    if reason is not None:
        return make_point_estimate(value, reason)
    pulls = np.asarray(clusters.total * (metric(clusters) - value))
    error = math.sqrt(count / (count - 1) * float(pulls @ pulls)) / float(clusters.total.sum())
    if error <= ROUNDING_SHARE * abs(value) or value in metric.bounds:
        return make_point_estimate(value, "it is the same in all clusters")
    return estimate_from_error(value, error, metric.bounds, count, level)


def estimate_ensemble_metric(
    metric: Metric | str, ensemble: EnsemblePredictions, level: float = 0.95
) -> Estimate:
    """Return a metric of ensembles with its confidence interval, or why it has none."""
    metric = find_metric(metric, EnsemblePredictions)
    if metric.name != central_coverage.name:
        return _estimate_by_delta(
            metric, _require_single_summary(ensemble), level, "it is infinite"
        )
    value = float(metric(_require_single_summary(ensemble)))
    if math.isnan(value):
        return make_point_estimate(
            value, (metric.undefined_when if ensemble.n else None) or NO_ITEMS_NOTE
        )
    squares = ensemble.ranks if ensemble.has_integer_weights else ensemble.rank_squares
    inside = weigh_central_ranks(ensemble.members, metric.settings["level"])
    low, high = mean_cost_interval(ensemble.ranks, squares, inside, level)
    return Estimate(value, low, high, "wilson" if set(inside) <= {0.0, 1.0} else "delta")


def _require_single_summary(summary: Any) -> Any:
    if summary.shape:
        raise BadInput("This is a batch of summaries: take one of them, or all of them `pooled`.")
    return summary


def _estimate_by_delta(metric: Metric, summary: ItemSums, level: float, infinite: str) -> Estimate:
    value = float(metric(summary))
    if math.isnan(value):
        return make_point_estimate(
            value, (metric.undefined_when if summary.n else None) or NO_ITEMS_NOTE
        )
    if math.isinf(value):
        return make_point_estimate(value, infinite)
    error = standard_error(metric, summary)
    if math.isnan(error):
        return make_point_estimate(value, "there are too few items")
    if error == 0 or value in metric.bounds:
        return make_point_estimate(value, "it is the same for all items")
    return estimate_from_error(value, error, metric.bounds, count_items(summary), level)
