"""What we keep: frozen values that merge with +."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

MODULES = {
    "ConfusionMatrix": "confusion",
    "EnsemblePredictions": "ensemble",
    "Moments": "regression",
    "PairedPredictions": "paired",
    "Panel": "panel",
    "PredictionIntervals": "prediction_intervals",
    "Reliability": "reliability",
    "Summary": "base",
}


def __getattr__(name: str) -> Any:
    """Return a summary: its module is loaded when somebody asks for it."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
