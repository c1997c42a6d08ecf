"""Estimates: a value with its confidence interval, or why there is none."""

import math
from dataclasses import dataclass
from typing import Any

DIFFERENCE_METHOD = "mover"
NO_INTERVAL_NOTE = "no interval was asked for"


@dataclass(frozen=True)
class Estimate:
    """A value, the bounds of its confidence interval, and the method behind them.

    `undefined_share` is the share of resamples in which the metric was undefined; they are left out
    of the interval. `note` says why there is no interval, or why another method than usual was
    taken.
    """

    value: float
    low: float
    high: float
    method: str | None
    undefined_share: float = 0.0
    note: str | None = None

    def __float__(self) -> float:
        return self.value

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low

    @property
    def is_open(self) -> bool:
        """Whether the interval has one bound only; `note` says why."""
        return math.isinf(self.width)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None, and so is the open side of an interval."""
        return {
            "value": to_json_number(self.value),
            "low": to_json_number(self.low),
            "high": to_json_number(self.high),
            "method": self.method,
            "undefined_share": self.undefined_share,
            "note": self.note,
        }


def make_point_estimate(
    value: float, note: str = NO_INTERVAL_NOTE, undefined: float = 0.0
) -> Estimate:
    """Return an estimate without an interval, for a reason."""
    return Estimate(value, math.nan, math.nan, None, undefined, note)


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
    note = next((x.note for x in (first, second) if x.is_open), None)
    if math.isinf(below) and math.isinf(above):
        return make_point_estimate(value, note or "", undefined)
    return Estimate(value, value - below, value + above, DIFFERENCE_METHOD, undefined, note)


def to_json_number(number: float) -> float | None:
    """Return a number as JSON knows it: None for nan and the infinities."""
    return number if math.isfinite(number) else None
