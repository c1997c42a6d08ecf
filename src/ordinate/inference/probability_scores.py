"""Confidence intervals for metrics of probabilities: by the delta method, or a jackknife.

Calibration errors near 0 have no valid interval: they are compared with their distribution under
perfect calibration instead.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.confidence_intervals import ConfidenceIntervals
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.estimates import Estimate, make_point_estimate, to_json_number
from ordinate.metrics import Metric
from ordinate.metrics.arithmetic import ratio
from ordinate.metrics.proper_scores import get_scores
from ordinate.summaries.reliability import SCORE_NAMES, Reliability, ReliabilityBins

Array = NDArray[Any]
JACKKNIFE_BLOCKS = 64  # over which items are spread
MOST_CELLS = 500_000  # bins that are drawn together
ROUNDING_SHARE = 1e-12  # of the squares of scores: a smaller variance is rounding
CALIBRATION_FAMILY = "calibration"
NO_VALID_INTERVAL_NOTE = (
    "near 0 it has no valid interval: compare it with its value under perfect calibration"
)
NO_BLOCKS_NOTE = (
    "blocks of rows are left out for it, and the rows of a lazy table have no numbers; read them "
    "into memory for it"
)


@dataclass(frozen=True)
class PerfectCalibration:
    """A calibration error if every event happened as often as its probability says.

    `high` and `p` are nan where the error is of several events, which depend on each other.
    """

    mean: float
    high: float  # below which it stays with the level of the intervals
    p: float  # how often it is at least as large as the observed one

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "mean": to_json_number(self.mean),
            "high": to_json_number(self.high),
            "p": to_json_number(self.p),
        }


def is_calibration_error(metric: Metric) -> bool:
    """Tell whether a metric is a calibration error, which has no valid interval near 0."""
    return metric.family == CALIBRATION_FAMILY and metric.direction == "minimize"


def estimate_probability_metric(
    metric: Metric, blocks: Reliability, settings: ConfidenceIntervals
) -> Estimate:
    """Return a metric of the pooled blocks with its confidence interval, or why it has none.

    A summary of all items, without blocks, has the intervals that need none.
    """
    pooled = blocks.pooled
    value = float(metric(pooled))
    if not math.isfinite(value):
        return make_point_estimate(value, metric.undefined_when or "it is infinite")
    if is_calibration_error(metric):
        return make_point_estimate(value, NO_VALID_INTERVAL_NOTE)
    if _is_plain_mean(metric, pooled):
        return _build_estimate(
            metric, value, _score_error(metric, pooled, value), settings, "delta"
        )
    if not blocks.shape:
        return make_point_estimate(value, NO_BLOCKS_NOTE)
    return _build_estimate(metric, value, _jackknife_error(metric, blocks), settings, "blocks")


def _is_plain_mean(metric: Metric, reliability: Reliability) -> bool:
    """Tell whether the sums of scores give its error: those of the log loss are clipped."""
    unclipped = "clip" in metric.options and metric.options["clip"] is None
    return metric.name in {*SCORE_NAMES, "rps"} and not (
        unclipped and get_scores(reliability).clipped
    )


def _build_estimate(
    metric: Metric, value: float, error: float, settings: ConfidenceIntervals, method: str
) -> Estimate:
    if not math.isfinite(error):
        return make_point_estimate(value, "there are too few items")
    at_bound = any(math.isclose(value, end, abs_tol=ROUNDING_SHARE) for end in metric.bounds)
    if error == 0 or at_bound:
        return make_point_estimate(value, "it is the same for all items")
    low, high = compute_bounded_interval(
        value, error, metric.bounds, normal_quantile(settings.level)
    )
    return Estimate(value, low, high, method)


def _score_error(metric: Metric, reliability: Reliability, value: float) -> float:
    """Return the standard error of a mean of scores from their sums."""
    scores = get_scores(reliability)
    index = SCORE_NAMES.index("rps_sum" if metric.name == "rps" else metric.name)
    steps = len(reliability.scale) - 1 if metric.name == "rps" else 1
    mean = value * steps
    products, n = scores.products[index, index], reliability.items
    spread = products - 2 * mean * scores.squared[index] + mean**2 * reliability.squares
    variance = 0.0 if spread < ROUNDING_SHARE * products else spread / reliability.weight**2
    return math.sqrt(variance * n / (n - 1)) / steps if n > 1 else math.nan


def _jackknife_error(metric: Metric, blocks: Reliability) -> float:
    """Return the jackknife error of a metric."""
    return _jackknife_spread(metric(_leave_one_block_out(blocks)))


def _leave_one_block_out(blocks: Reliability) -> Reliability:
    """Return the sums of all blocks but one, each left out in turn."""
    filled = np.flatnonzero(blocks.items)
    multiplicities = np.zeros((len(filled), len(blocks.items)))
    multiplicities[:, filled] = 1.0
    multiplicities[np.arange(len(filled)), filled] = 0.0
    return blocks.sum_with_multiplicities(multiplicities)


def _jackknife_spread(values: Array) -> float:
    """Return the jackknife error of values, each without one block."""
    count = len(values)
    if count < 2:
        return math.nan
    return math.sqrt((count - 1) / count * float(((values - values.mean()) ** 2).sum()))


def estimate_paired_difference(
    metric: Metric, first: Reliability, second: Reliability, settings: ConfidenceIntervals
) -> Estimate:
    """Return the second less the first: blocks hold the same items, and are left out together."""
    value = float(metric(second.pooled)) - float(metric(first.pooled))
    if is_calibration_error(metric):
        return make_point_estimate(value, NO_VALID_INTERVAL_NOTE)
    error = _jackknife_spread(
        np.asarray(metric(_leave_one_block_out(second)))
        - np.asarray(metric(_leave_one_block_out(first)))
    )
    if not (math.isfinite(value) and math.isfinite(error)):
        return make_point_estimate(value, "it is undefined")
    half_width = normal_quantile(settings.level) * error
    return Estimate(value, value - half_width, value + half_width, "blocks")


def simulate_perfect_calibration(
    metric: Metric,
    reliability: Reliability,
    settings: ConfidenceIntervals,
    *,
    most_cells: int = MOST_CELLS,
) -> PerfectCalibration:
    """Simulate events from the probabilities, and return the metric under perfect calibration.

    The events of a bin are drawn as those of items of equal weight and of the bin's mean
    probability, and then spread as those of its own items would be. The events of different levels
    are drawn apart from each other, which the mean of their errors does not mind; how it is
    distributed depends on how they hang together, so that several events have a mean only.
    """
    rng = np.random.default_rng(settings.seed)
    (key,) = metric.required_parts.bins
    bins = reliability.bins[key]
    if key[0] == "levels" and len(reliability.scale) == 2:  # two levels are one event
        bins = ReliabilityBins(*(part[:1] for part in bins))
    step = max(1, most_cells // bins.f.size)
    sizes = [min(step, settings.resamples - start) for start in range(0, settings.resamples, step)]
    values = np.concatenate(
        [metric(_replace_bins(reliability, key, resample_events(bins, k, rng), k)) for k in sizes]
    )
    if bins.f.shape[-2] > 1:
        return PerfectCalibration(float(values.mean()), math.nan, math.nan)
    return compare_with_calibration(float(metric(reliability)), values, settings.level)


def compare_with_calibration(value: float, simulated: Array, level: float) -> PerfectCalibration:
    """Return where a calibration error stands among those of calibrated systems."""
    reached = (simulated >= value - ROUNDING_SHARE).sum()
    return PerfectCalibration(
        float(simulated.mean()),
        float(np.quantile(simulated, level)),
        float((1 + reached) / (1 + len(simulated))),
    )


def resample_events(
    bins: ReliabilityBins, resamples: int, rng: np.random.Generator
) -> ReliabilityBins:
    """Return bins [resamples, events, bins] in which events happened as often as they should."""
    chance = np.clip(np.nan_to_num(bins.confidence), 0.0, 1.0)
    size = np.ceil(np.nan_to_num(bins.effective_size, nan=1.0) - 1e-9)
    happened = rng.binomial(size.astype(np.int64), chance, (resamples, *chance.shape)) / size
    spread = np.sqrt(np.nan_to_num(ratio(_event_variance(bins), chance * (1.0 - chance) / size)))
    share = chance + spread * (happened - chance)
    wide = ReliabilityBins(*(np.broadcast_to(part, share.shape) for part in bins))
    return wide._replace(o=share * bins.weight)


def _event_variance(bins: ReliabilityBins) -> Array:
    """Return the variance of how often an event happens in a bin, under perfect calibration."""
    single = np.maximum(bins.confidence - ratio(bins.ff, bins.weight), 0.0)  # mean of f (1 - f)
    return single / bins.effective_size


def _replace_bins(
    reliability: Reliability, key: Any, bins: ReliabilityBins, resamples: int
) -> Reliability:
    """Return a batch in which only these bins are read."""
    wide = reliability.broadcast((resamples,))
    return replace(wide, bins={key: bins}, scores=None, confusion_matrix=None, ranking=None)
