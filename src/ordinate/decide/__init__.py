"""From probabilities and scores to levels: decoding, cut points, recalibration, sets of levels."""

from ordinate.decide.conformal import OrdinalSets
from ordinate.decide.cuts import CutPoints
from ordinate.decide.decode import Decoder
from ordinate.decide.recalibrate import (
    CumulativeIsotonic,
    TemperatureScaling,
    VectorScaling,
    recalibration,
)
from ordinate.decide.sets import LevelSets, SetEvaluation, evaluate_sets

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
