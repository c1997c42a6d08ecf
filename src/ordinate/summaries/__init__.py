"""What we keep: frozen values that merge with +."""

from ordinate.summaries.base import Summary
from ordinate.summaries.confusion import ConfusionMatrix
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.paired import PairedPredictions
from ordinate.summaries.panel import Panel
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments
from ordinate.summaries.reliability import Reliability

__all__ = [
    "ConfusionMatrix",
    "EnsemblePredictions",
    "Moments",
    "PairedPredictions",
    "Panel",
    "PredictionIntervals",
    "Reliability",
    "Summary",
]
