"""Subgroups: how each differs from all other items, and which differences are significant."""

import math
from collections.abc import Mapping
from statistics import NormalDist

from ordinate.inference.estimates import Estimate, estimate_difference, make_point_estimate
from ordinate.inference.multiple_testing import holm
from ordinate.metrics import Metric

FEWEST_ITEMS = 20  # of a subgroup and of the rest: of smaller tables no study says what covers
FEW_ITEMS_NOTE = f"fewer than {FEWEST_ITEMS} items"


def estimate_difference_from_rest(
    metric: Metric, part: Estimate, rest: Estimate, items: float
) -> Estimate:
    """Return how a subgroup differs from all other items; `items` has the smaller of the two.

    Few items give an interval to the difference of two shares, which Wilson's intervals cover
    whatever their items, and to no other.
    """
    found = estimate_difference(part, rest)
    if items >= FEWEST_ITEMS or metric.share or math.isnan(found.low):
        return found
    return make_point_estimate(found.value, FEW_ITEMS_NOTE)


def compute_adjusted_p_values(
    differences: Mapping[str, Estimate], sizes: Mapping[str, float], pooled: Estimate, level: float
) -> dict[str, float]:
    """Return the p-values of "no difference from the rest", adjusted by Holm over the subgroups.

    An interval says how large the standard error is, as in MOVER. Few items may not show how much
    they vary, so the error is at least what all items, with the estimate `pooled`, say of as many:
    without a difference they vary alike. Subgroups without an interval are left out. Of two, each
    is the rest of the other, and there is nothing to adjust.
    """
    total = sum(sizes.values())
    found = {
        name: max(
            _compute_p_value(gap.value, gap.value - gap.low, gap.high - gap.value, level),
            _compute_pooled_p_value(gap.value, pooled, sizes[name] / total, level),
        )
        for name, gap in differences.items()
        if not math.isnan(gap.low)
    }
    if len(differences) == 2:
        return found
    return dict(zip(found, holm([*found.values()]).tolist(), strict=True))


def _compute_pooled_p_value(gap: float, pooled: Estimate, share: float, level: float) -> float:
    """Return the p-value if a subgroup of this share of the items varies as all items do."""
    if math.isnan(pooled.low) or not 0.0 < share < 1.0:
        return 0.0  # all items say nothing of it
    below, above = pooled.value - pooled.low, pooled.high - pooled.value
    inside, outside = share**-0.5, (1.0 - share) ** -0.5
    lower = math.hypot(below * inside, above * outside)
    upper = math.hypot(above * inside, below * outside)
    return _compute_p_value(gap, lower, upper, level)


def _compute_p_value(gap: float, below: float, above: float, level: float) -> float:
    """Return the p-value of no difference from the distances of a difference to its bounds."""
    reach = below if gap > 0 else above
    if gap == 0.0 or reach <= 0.0:
        return float(gap == 0.0)
    normal = NormalDist()
    return 2.0 * normal.cdf(-abs(gap) / reach * normal.inv_cdf((1.0 + level) / 2.0))
