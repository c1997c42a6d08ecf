"""How sure scores of predictive intervals and of ensembles are."""

import math
from typing import Any

import numpy as np

from ordinate.errors import BadInput
from ordinate.inference.estimates import Estimate, nowhere
from ordinate.inference.regression import about
from ordinate.inference.small_samples import mean_limits, wilson
from ordinate.metrics import Metric, find
from ordinate.metrics.prediction_intervals import (
    ALIKE,
    central_coverage,
    interval_coverage,
    items_of,
    standard_error,
    within,
)
from ordinate.summaries.ensemble import Ensemble
from ordinate.summaries.prediction_intervals import Bounds, ItemSums

ENDLESS = "some intervals have no end"
NO_ITEMS = "there are no items"


def bounds_estimate(metric: Metric | str, table: Bounds, level: float = 0.95) -> Estimate:
    """Return a metric of intervals with its own interval, or why it has none.

    Coverage has Wilson's limits: of the counts, or, with other weights, of as many equal items as
    have the same standard error. Other metrics have those of the delta method.

    >>> table = Bounds.of([1.0, 2.0, 5.0, 7.0], [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5])
    >>> found = bounds_estimate("interval_coverage", table)
    >>> found.value, round(found.low, 3), round(found.high, 3), found.method
    (0.75, 0.301, 0.954, 'wilson')
    """
    asked = find(metric, Bounds)
    if asked.name != interval_coverage.name:
        return _by_delta(asked, _one(table), level, ENDLESS)
    value, total = float(asked(_one(table))), float(table.total)
    if math.isnan(value):
        return nowhere(value, NO_ITEMS)
    n = total if table.whole else total**2 / float(table.squared[0, 0])
    if not table.whole and 0.0 < value < 1.0:
        z = np.zeros(len(table.names) + 1)
        z[0], z[1 + table.names.index("covered")] = -value, 1.0
        n = value * (1.0 - value) * total**2 / float(z @ table.squared @ z)
    low, high = wilson(value * n, n, level)
    return Estimate(value, float(low), float(high), "wilson")


def grouped_bounds_estimate(metric: Metric | str, groups: Bounds, level: float = 0.95) -> Estimate:
    """Return a metric of intervals whose items come in groups, one summary of the batch for each.

    The groups are the units: each adds its weight times how far its mean score lies from that of
    all. Fewer than 30 of them have Student's t.

    >>> y, low, high = [1.0, 2.0, 5.0, 7.0], [0.0, 1.0, 2.0, 6.5], [2.0, 3.0, 4.0, 8.5]
    >>> found = grouped_bounds_estimate(
    ...     "interval_coverage", Bounds.of(y, low, high, groups=["a", "b", "b", "c"])
    ... )
    >>> found.value, found.method
    (0.75, 't')
    """
    asked, there = find(metric, Bounds), groups[groups.total > 0]
    value, count = float(asked(groups.pooled)), len(there.items)
    reason = NO_ITEMS if math.isnan(value) else ENDLESS if math.isinf(value) else None
    reason = reason or ("there is one group only" if count < 2 else None)
    if reason is not None:
        return nowhere(value, reason)
    pulls = np.asarray(there.total * (asked(there) - value))
    error = math.sqrt(count / (count - 1) * float(pulls @ pulls)) / float(there.total.sum())
    if error <= ALIKE * abs(value) or value in asked.bounds:
        return nowhere(value, "it is the same in all groups")
    return about(value, error, asked.bounds, count, level)


def ensemble_estimate(metric: Metric | str, table: Ensemble, level: float = 0.95) -> Estimate:
    """Return a metric of ensembles with its interval, or why it has none."""
    asked = find(metric, Ensemble)
    if asked.name != central_coverage.name:
        return _by_delta(asked, _one(table), level, "it is infinite")
    value = float(asked(_one(table)))
    if math.isnan(value):
        return nowhere(value, (asked.undefined_when if table.n else None) or NO_ITEMS)
    squares = table.ranks if table.whole else table.rank_squares
    inside = within(table.members, asked.settings["level"])
    low, high = mean_limits(table.ranks, squares, inside, level)
    return Estimate(value, low, high, "wilson" if set(inside) <= {0.0, 1.0} else "delta")


def _one(table: Any) -> Any:
    if table.shape:
        raise BadInput("This is a batch of summaries: take one of them, or all of them `pooled`.")
    return table


def _by_delta(metric: Metric, table: ItemSums, level: float, infinite: str) -> Estimate:
    value = float(metric(table))
    if math.isnan(value):
        return nowhere(value, (metric.undefined_when if table.n else None) or NO_ITEMS)
    if math.isinf(value):
        return nowhere(value, infinite)
    error = standard_error(metric, table)
    if math.isnan(error):
        return nowhere(value, "there are too few items")
    if error == 0 or value in metric.bounds:
        return nowhere(value, "it is the same for all items")
    return about(value, error, metric.bounds, items_of(table), level)
