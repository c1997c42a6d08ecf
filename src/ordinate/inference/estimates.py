"""Estimates: a value with its confidence interval, or why there is none."""

import math
from dataclasses import dataclass
from typing import Any


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "value": to_json_number(self.value),
            "low": to_json_number(self.low),
            "high": to_json_number(self.high),
            "method": self.method,
            "undefined_share": self.undefined_share,
            "note": self.note,
        }


def make_point_estimate(value: float, note: str, undefined: float = 0.0) -> Estimate:
    """Return an estimate without an interval, for a reason."""
    return Estimate(value, math.nan, math.nan, None, undefined, note)


def to_json_number(number: float) -> float | None:
    """Return a number as JSON knows it: None for nan and the infinities."""
    return number if math.isfinite(number) else None
