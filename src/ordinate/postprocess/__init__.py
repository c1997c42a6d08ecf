"""From probabilities and scores to levels: decoding, cut points, recalibration, prediction sets."""

from ordinate.postprocess.conformal_intervals import SplitConformal
from ordinate.postprocess.conformal_sets import (
    OrdinalConformalSets,
    PredictionSetEvaluation,
    PredictionSets,
    evaluate_prediction_sets,
)
from ordinate.postprocess.cut_points import CutPoints
from ordinate.postprocess.decoder import Decoder
from ordinate.postprocess.recalibration import (
    RECALIBRATION_METHODS,
    CumulativeIsotonic,
    TemperatureScaling,
    VectorScaling,
    make_recalibration,
)

__all__ = [
    "RECALIBRATION_METHODS",
    "CumulativeIsotonic",
    "CutPoints",
    "Decoder",
    "OrdinalConformalSets",
    "PredictionSetEvaluation",
    "PredictionSets",
    "SplitConformal",
    "TemperatureScaling",
    "VectorScaling",
    "evaluate_prediction_sets",
    "make_recalibration",
]
