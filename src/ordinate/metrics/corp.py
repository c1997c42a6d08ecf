"""CORP: calibration by isotonic regression, and what it says of a squared error.

The forecasts of an event are calibrated by the rising curve nearest to what happened (Dimitriadis,
Gneiting and Jordan 2021), so that nobody has to choose bins: the score is miscalibration -
discrimination + uncertainty.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics.arithmetic import ratio
from ordinate.metrics.isotonic import fit_isotonic_series
from ordinate.metrics.proper_scores import DECOMPOSITION_TERMS, decompose_score
from ordinate.summaries.reliability import ReliabilityBins

Array = NDArray[Any]
CORP_TERMS = ("miscalibration", "discrimination", *DECOMPOSITION_TERMS[2:])


def calibrate_bins(bins: ReliabilityBins) -> Array:
    """Return how often an event happens in each bin [..., events, bins] by isotonic regression."""
    return fit_isotonic_series(bins.o, bins.weight)


def compute_miscalibration(bins: ReliabilityBins, calibrated: Array) -> Array:
    """Return what the squared error of each event loses by calibrated forecasts, never below 0."""
    o = bins.frequency
    loss = bins.weight * ((bins.confidence - o) ** 2 - (calibrated - o) ** 2)
    total = np.where(bins.weight > 0, loss, 0.0).sum(axis=-1)
    return np.maximum(ratio(total, bins.weight.sum(axis=-1)), 0.0)


def decompose_isotonic(bins: ReliabilityBins) -> Array:
    """Return the five terms [5, ..., events] of the squared error of each event.

    The score is miscalibration - discrimination + uncertainty + variance within bins - covariance
    within bins. The last two are 0 where the forecasts of each bin are equal, and then the others
    are exact. Isotonic regression pools bins: what they differ by is in reliability and in
    resolution, and in neither of the terms here.
    """
    terms = decompose_score(bins)
    miscalibration = compute_miscalibration(bins, calibrate_bins(bins))
    pooled = terms[0] - miscalibration
    terms[:2] -= pooled
    terms[1] = np.maximum(terms[1], 0.0)
    return terms
