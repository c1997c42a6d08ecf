"""What we keep: frozen values that merge with +."""

from ordinate.summaries.base import Summary
from ordinate.summaries.confusion import ConfusionMatrix
from ordinate.summaries.paired import PairedPredictions
from ordinate.summaries.panel import Panel

__all__ = ["ConfusionMatrix", "PairedPredictions", "Panel", "Summary"]
