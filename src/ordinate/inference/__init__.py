"""How sure we are: functions of metrics and summaries."""

from ordinate.inference.confidence_intervals import (
    ConfidenceIntervals,
    estimate_metrics,
    estimate_metrics_of_each,
)
from ordinate.inference.estimates import Estimate

__all__ = ["ConfidenceIntervals", "Estimate", "estimate_metrics", "estimate_metrics_of_each"]
