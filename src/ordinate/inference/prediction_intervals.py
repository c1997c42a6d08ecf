"""How sure scores of prediction intervals and of ensembles are."""

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

UNBOUNDED_NOTE = "some intervals have no end"
NO_ITEMS_NOTE = "there are no items"


def estimate_interval_metric(
    metric: Metric | str, table: PredictionIntervals, level: float = 0.95
) -> Estimate:
    """Return a metric of intervals with its own interval, or why it has none.

    Coverage has Wilson's limits: of the counts, or, with other weights, of as many equal items as
    have the same standard error. Other metrics have those of the delta method.

    >>> lower, upper = [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5]
    >>> table = PredictionIntervals.of([1.0, 2.0, 5.0, 7.0], lower, upper)
    >>> found = estimate_interval_metric("interval_coverage", table)
    >>> found.value, round(found.low, 3), round(found.high, 3), found.method
    (0.75, 0.301, 0.954, 'wilson')
    """
    asked = find_metric(metric, PredictionIntervals)
    if asked.name != interval_coverage.name:
        return _estimate_by_delta(asked, _require_single_summary(table), level, UNBOUNDED_NOTE)
    value, total = float(asked(_require_single_summary(table))), float(table.total)
    if math.isnan(value):
        return make_point_estimate(value, NO_ITEMS_NOTE)
    n = total if table.whole else total**2 / float(table.squared[0, 0])
    if not table.whole and 0.0 < value < 1.0:
        z = np.zeros(len(table.names) + 1)
        z[0], z[1 + table.names.index("covered")] = -value, 1.0
        n = value * (1.0 - value) * total**2 / float(z @ table.squared @ z)
    low, high = wilson_interval(value * n, n, level)
    return Estimate(value, float(low), float(high), "wilson")


def estimate_clustered_interval_metric(
    metric: Metric | str, groups: PredictionIntervals, level: float = 0.95
) -> Estimate:
    """Return a metric of intervals whose items come in groups, one summary of the batch for each.

    The groups are the units: each adds its weight times how far its mean score lies from that of
    all. Fewer than 30 of them have Student's t.

    >>> y, low, high = [1.0, 2.0, 5.0, 7.0], [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5]
    >>> found = estimate_clustered_interval_metric(
    ...     "interval_coverage", PredictionIntervals.of(y, low, high, groups=["a", "b", "b", "c"])
    ... )
    >>> found.value, found.method
    (0.75, 't')
    """
    asked, there = find_metric(metric, PredictionIntervals), groups[groups.total > 0]
    value, count = float(asked(groups.pooled)), len(there.items)
    reason = NO_ITEMS_NOTE if math.isnan(value) else UNBOUNDED_NOTE if math.isinf(value) else None
    reason = reason or ("there is one group only" if count < 2 else None)
    if reason is not None:
        return make_point_estimate(value, reason)
    pulls = np.asarray(there.total * (asked(there) - value))
    error = math.sqrt(count / (count - 1) * float(pulls @ pulls)) / float(there.total.sum())
    if error <= ROUNDING_SHARE * abs(value) or value in asked.bounds:
        return make_point_estimate(value, "it is the same in all groups")
    return estimate_from_error(value, error, asked.bounds, count, level)


def estimate_ensemble_metric(
    metric: Metric | str, table: EnsemblePredictions, level: float = 0.95
) -> Estimate:
    """Return a metric of ensembles with its interval, or why it has none."""
    asked = find_metric(metric, EnsemblePredictions)
    if asked.name != central_coverage.name:
        return _estimate_by_delta(asked, _require_single_summary(table), level, "it is infinite")
    value = float(asked(_require_single_summary(table)))
    if math.isnan(value):
        return make_point_estimate(
            value, (asked.undefined_when if table.n else None) or NO_ITEMS_NOTE
        )
    squares = table.ranks if table.whole else table.rank_squares
    inside = weigh_central_ranks(table.members, asked.settings["level"])
    low, high = mean_cost_interval(table.ranks, squares, inside, level)
    return Estimate(value, low, high, "wilson" if set(inside) <= {0.0, 1.0} else "delta")


def _require_single_summary(table: Any) -> Any:
    if table.shape:
        raise BadInput("This is a batch of summaries: take one of them, or all of them `pooled`.")
    return table


def _estimate_by_delta(metric: Metric, table: ItemSums, level: float, infinite: str) -> Estimate:
    value = float(metric(table))
    if math.isnan(value):
        return make_point_estimate(
            value, (metric.undefined_when if table.n else None) or NO_ITEMS_NOTE
        )
    if math.isinf(value):
        return make_point_estimate(value, infinite)
    error = standard_error(metric, table)
    if math.isnan(error):
        return make_point_estimate(value, "there are too few items")
    if error == 0 or value in metric.bounds:
        return make_point_estimate(value, "it is the same for all items")
    return estimate_from_error(value, error, metric.bounds, count_items(table), level)
