"""Calibration curves: isotonic regression of events on their forecasts, with consistency bands.

A band is where the curve of a perfectly calibrated system lies: events are simulated from their
forecasts, and each time the curve is fitted again. Items count as independent.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.confidence_intervals import ConfidenceIntervals
from ordinate.inference.probability_scores import (
    MOST_CELLS,
    PerfectCalibration,
    compare_with_calibration,
    resample_events,
)
from ordinate.metrics.corp import (
    CORP_TERMS,
    calibrate_bins,
    compute_miscalibration,
    decompose_isotonic,
)
from ordinate.metrics.proper_scores import DECOMPOSITION_SIGNS
from ordinate.summaries.reliability import ReliabilityBins

Array = NDArray[Any]
MOST_CURVES = 499  # simulated for a band: with the observed one, 5 % of them are an integer
# A frequency so little beyond its band is inside: events of one bin are drawn at its mean forecast.
BAND_TOLERANCE = 1e-6
POINTS_PER_UNIT = 100  # of a curve: more forecasts than that look the same


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """The isotonic curve of one event at points, and the terms of the event's squared error.

    `low` and `high` are the consistency band, nan without one. `count` is how many items have
    forecasts near a point.
    """

    terms: dict[str, float]
    forecast: Array
    frequency: Array
    low: Array
    high: Array
    count: Array
    perfect_calibration: PerfectCalibration | None = None  # of the miscalibration

    def read_at(self, forecast: float) -> tuple[float, float, float]:
        """Return frequency and band at a forecast, nan beyond the forecasts that there are."""
        if not self.forecast[0] <= forecast <= self.forecast[-1]:
            return math.nan, math.nan, math.nan
        lines = (self.frequency, self.low, self.high)
        frequency, low, high = (float(np.interp(forecast, self.forecast, y)) for y in lines)
        return frequency, low, high


def is_outside_band(frequency: Array | float, low: Array | float, high: Array | float) -> Array:
    """Tell which frequencies are outside their band; none is where there is no band."""
    below, above = np.subtract(low, frequency), np.subtract(frequency, high)
    return (below > BAND_TOLERANCE) | (above > BAND_TOLERANCE)


def fit_calibration_curves(
    bins: ReliabilityBins, settings: ConfidenceIntervals | None = None
) -> tuple[CalibrationCurve, ...]:
    """Return the curve of each event [events, bins]; without settings they have no bands."""
    rng = None if settings is None else np.random.default_rng(settings.seed)
    events = [
        ReliabilityBins(*(part[event][bins.weight[event] > 0] for part in bins))
        for event in range(len(bins.weight))
    ]
    return tuple(_fit_curve(event, settings, rng) for event in events)


def _fit_curve(
    bins: ReliabilityBins, settings: ConfidenceIntervals | None, rng: np.random.Generator | None
) -> CalibrationCurve:
    terms = decompose_isotonic(bins)
    points, count = _choose_points(bins)
    nowhere = np.full(len(points), np.nan)
    low, high, perfect = nowhere, nowhere, None
    if settings is not None and rng is not None:
        errors, curves = _simulate_curves(bins, points, settings, rng)
        beyond = (1.0 - settings.level) / 2.0
        low, high = np.quantile(curves, (beyond, 1.0 - beyond), axis=0)
        perfect = compare_with_calibration(float(terms[0]), errors, settings.level)
    score = float(DECOMPOSITION_SIGNS @ terms)
    return CalibrationCurve(
        dict(zip(CORP_TERMS, terms.tolist(), strict=True)) | {"score": score},
        bins.confidence[points],
        calibrate_bins(bins)[points],
        low,
        high,
        count,
        perfect,
    )


def _choose_points(bins: ReliabilityBins) -> tuple[Array, Array]:
    """Return the bin nearest to each hundredth, of those that there are, and the items near it."""
    scaled = bins.confidence * POINTS_PER_UNIT
    nearest = np.rint(scaled).astype(np.intp)
    order = np.lexsort((np.abs(scaled - nearest), nearest))
    used, first = np.unique(nearest[order], return_index=True)
    return order[first], np.bincount(nearest, bins.items)[used].astype(np.int64)


def _simulate_curves(
    bins: ReliabilityBins, points: Array, settings: ConfidenceIntervals, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the miscalibration [B] and the curves [B, points] of calibrated systems."""
    count = min(settings.resamples, MOST_CURVES)
    step = max(1, MOST_CELLS // len(bins.weight))
    errors, curves = [], []
    for size in (min(step, count - start) for start in range(0, count, step)):
        drawn = resample_events(bins, size, rng)
        calibrated = calibrate_bins(drawn)
        errors.append(compute_miscalibration(drawn, calibrated))
        curves.append(calibrated[:, points])
    return np.concatenate(errors), np.concatenate(curves)
