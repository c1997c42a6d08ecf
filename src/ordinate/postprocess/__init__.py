"""From probabilities and scores to levels: decoding, cut points, recalibration, prediction sets."""

from ordinate.postprocess.conformal_sets import (
    OrdinalConformalSets,
    PredictionSetEvaluation,
    PredictionSets,
    evaluate_prediction_sets,
)
from ordinate.postprocess.cut_points import CutPoints
from ordinate.postprocess.decoder import Decoder
from ordinate.postprocess.recalibration import (
    CumulativeIsotonic,
    TemperatureScaling,
    VectorScaling,
    make_recalibration,
)

__all__ = [
    "CumulativeIsotonic",
    "CutPoints",
    "Decoder",
    "OrdinalConformalSets",
    "PredictionSetEvaluation",
    "PredictionSets",
    "TemperatureScaling",
    "VectorScaling",
    "evaluate_prediction_sets",
    "make_recalibration",
]
