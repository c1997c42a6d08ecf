"""How sure we are: functions of metrics and summaries."""

from ordinate.inference.confidence_intervals import Intervals, estimate
from ordinate.inference.estimates import Estimate

__all__ = ["Estimate", "Intervals", "estimate"]
