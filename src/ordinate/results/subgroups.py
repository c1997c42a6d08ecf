"""Subgroups: how each differs from all other items, with its interval."""

import math
from collections.abc import Hashable

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.summaries import ConfusionMatrix

DIFFERENCE_METHOD = "mover"


def estimate_difference(first: Estimate, second: Estimate) -> Estimate:
    """Return first minus second of independent estimates, by MOVER.

    The distances from each value to its bounds add up like standard errors.

    >>> one, other = Estimate(0.8, 0.7, 0.9, "wilson"), Estimate(0.5, 0.4, 0.6, "wilson")
    >>> gap = estimate_difference(one, other)
    >>> round(gap.low, 3), round(gap.high, 3)
    (0.159, 0.441)
    """
    value = first.value - second.value
    bounds = (first.low, first.high, second.low, second.high)
    if any(map(math.isnan, (value, *bounds))):
        return make_point_estimate(value, first.note or second.note or "one side has no interval")
    apart = (first.value - first.low, second.high - second.value)
    below = math.hypot(*(max(0.0, x) for x in apart))
    apart = (first.high - first.value, second.value - second.low)
    above = math.hypot(*(max(0.0, x) for x in apart))
    undefined = max(first.undefined_share, second.undefined_share)
    return Estimate(value, value - below, value + above, DIFFERENCE_METHOD, undefined)


def pool_rests(parts: dict[Hashable, ConfusionMatrix]) -> dict[Hashable, ConfusionMatrix]:
    """Return for each subgroup all other items: what comes before it, and what comes after."""
    matrices = list(parts.values())
    before, after = [matrices[0]], [matrices[-1]]
    for matrix in matrices[1:]:
        before.append(before[-1] + matrix)
    for matrix in matrices[-2::-1]:
        after.append(after[-1] + matrix)
    after.reverse()
    rests = [after[1], *map(ConfusionMatrix.__add__, before, after[2:]), before[-2]]
    return dict(zip(parts, rests, strict=True))
