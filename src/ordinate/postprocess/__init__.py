"""From probabilities and scores to levels: decoding, cut points, recalibration, sets of levels."""

from ordinate.postprocess.conformal_sets import OrdinalSets
from ordinate.postprocess.cut_points import CutPoints
from ordinate.postprocess.decoder import Decoder
from ordinate.postprocess.prediction_sets import LevelSets, SetEvaluation, evaluate_sets
from ordinate.postprocess.recalibration import (
    CumulativeIsotonic,
    TemperatureScaling,
    VectorScaling,
    recalibration,
)

__all__ = [
    "CumulativeIsotonic",
    "CutPoints",
    "Decoder",
    "LevelSets",
    "OrdinalSets",
    "SetEvaluation",
    "TemperatureScaling",
    "VectorScaling",
    "evaluate_sets",
    "recalibration",
]
