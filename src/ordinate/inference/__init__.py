"""How sure we are: functions of metrics and summaries."""

from ordinate.inference.intervals import Intervals, estimate
from ordinate.inference.result import Estimate

__all__ = ["Estimate", "Intervals", "estimate"]
