"""How sure metrics of probabilities are: scores by the delta method, others over blocks.

Calibration errors near 0 have no valid interval: what they are under perfect calibration stands
beside them instead.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.confidence_intervals import Intervals
from ordinate.inference.delta_method import limits, quantile
from ordinate.inference.estimates import Estimate, finite, nowhere
from ordinate.metrics import Metric
from ordinate.metrics.arithmetic import ratio
from ordinate.metrics.proper_scores import scores_of
from ordinate.summaries.reliability import SCORES, Bins, Reliability

Array = NDArray[Any]
BLOCKS = 64  # over which items are spread
CELLS = 500_000  # bins that are drawn together
ALIKE = 1e-12  # of the squares of scores: a smaller variance is rounding
CALIBRATION = "calibration"
UNSURE = "near 0 it has no valid interval: compare it with its value under perfect calibration"


@dataclass(frozen=True)
class Perfect:
    """A calibration error if every event happened as often as its probability says.

    `high` and `p` are nan where the error is of several events, which depend on each other.
    """

    mean: float
    high: float  # below which it stays with the level of the intervals
    p: float  # how often it is at least as large as the observed one

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"mean": finite(self.mean), "high": finite(self.high), "p": finite(self.p)}


def is_error(metric: Metric) -> bool:
    """Tell whether a metric is a calibration error, which has no valid interval near 0."""
    return metric.family == CALIBRATION and metric.direction == "minimize"


def estimate_probabilities(metric: Metric, blocks: Reliability, how: Intervals) -> Estimate:
    """Return a metric of the pooled blocks with its interval, or why there is none."""
    table = blocks.pooled
    value = float(metric(table))
    if not math.isfinite(value):
        return nowhere(value, metric.undefined_when or "it is infinite")
    if is_error(metric):
        return nowhere(value, UNSURE)
    if _is_plain_mean(metric, table):
        return _limited(metric, value, _score_error(metric, table, value), how, "delta")
    return _limited(metric, value, _block_error(metric, blocks), how, "blocks")


def _is_plain_mean(metric: Metric, table: Reliability) -> bool:
    """Tell whether the sums of scores know its error: those of the log loss are clipped."""
    unclipped = "clip" in metric.options and metric.options["clip"] is None
    return metric.name in {*SCORES, "rps"} and not (unclipped and scores_of(table).clipped)


def _limited(metric: Metric, value: float, error: float, how: Intervals, method: str) -> Estimate:
    if not math.isfinite(error):
        return nowhere(value, "there are too few items")
    at_bound = any(math.isclose(value, end, abs_tol=ALIKE) for end in metric.bounds)
    if error == 0 or at_bound:
        return nowhere(value, "it is the same for all items")
    low, high = limits(value, error, metric.bounds, quantile(how.level))
    return Estimate(value, low, high, method)


def _score_error(metric: Metric, table: Reliability, value: float) -> float:
    """Return the standard error of a mean of scores from their sums."""
    found = scores_of(table)
    part = SCORES.index("rps_sum" if metric.name == "rps" else metric.name)
    steps = len(table.scale) - 1 if metric.name == "rps" else 1
    mean = value * steps
    products, n = found.products[part, part], table.items
    spread = products - 2 * mean * found.squared[part] + mean**2 * table.squares
    variance = 0.0 if spread < ALIKE * products else spread / table.weight**2
    return math.sqrt(variance * n / (n - 1)) / steps if n > 1 else math.nan


def _block_error(metric: Metric, blocks: Reliability) -> float:
    """Return the jackknife error of a metric."""
    return _spread(metric(_left_out(blocks)))


def _left_out(blocks: Reliability) -> Reliability:
    """Return the sums of all blocks but one, each left out in turn."""
    filled = np.flatnonzero(blocks.items)
    there = np.zeros((len(filled), len(blocks.items)))
    there[:, filled] = 1.0
    there[np.arange(len(filled)), filled] = 0.0
    return blocks.mixed(there)


def _spread(values: Array) -> float:
    """Return the jackknife error of values, each without one block."""
    count = len(values)
    if count < 2:
        return math.nan
    return math.sqrt((count - 1) / count * float(((values - values.mean()) ** 2).sum()))


def difference(metric: Metric, first: Reliability, second: Reliability, how: Intervals) -> Estimate:
    """Return the second less the first: blocks hold the same items, and are left out together."""
    value = float(metric(second.pooled)) - float(metric(first.pooled))
    if is_error(metric):
        return nowhere(value, UNSURE)
    error = _spread(np.asarray(metric(_left_out(second))) - np.asarray(metric(_left_out(first))))
    if not (math.isfinite(value) and math.isfinite(error)):
        return nowhere(value, "it is undefined")
    reach = quantile(how.level) * error
    return Estimate(value, value - reach, value + reach, "blocks")


def if_calibrated(metric: Metric, table: Reliability, how: Intervals) -> Perfect:
    """Draw what happened again from the probabilities, and return the metric of it.

    The events of a bin are drawn as those of items of equal weight and of the bin's mean
    probability, and then spread as those of its own items would be. The events of different levels
    are drawn apart from each other, which the mean of their errors does not mind; how it is
    distributed depends on how they hang together, so that several events have a mean only.
    """
    rng = np.random.default_rng(how.seed)
    (key,) = metric.reads.bins
    bins = table.bins[key]
    if key[0] == "levels" and len(table.scale) == 2:  # two levels are one event
        bins = Bins(*(part[:1] for part in bins))
    step = max(1, CELLS // bins.f.size)
    parts = [min(step, how.draws - start) for start in range(0, how.draws, step)]
    values = np.concatenate([metric(_with(table, key, _drawn(bins, k, rng), k)) for k in parts])
    if bins.f.shape[-2] > 1:
        return Perfect(float(values.mean()), math.nan, math.nan)
    reached = (values >= float(metric(table)) - 1e-12).sum()
    return Perfect(
        float(values.mean()),
        float(np.quantile(values, how.level)),
        float((1 + reached) / (1 + how.draws)),
    )


def _drawn(bins: Bins, draws: int, rng: np.random.Generator) -> Bins:
    """Return bins [draws, events, bins] in which other events happened, as often as they should."""
    chance = np.clip(np.nan_to_num(bins.confidence), 0.0, 1.0)
    size = np.ceil(np.nan_to_num(bins.effective, nan=1.0) - 1e-9)
    happened = rng.binomial(size.astype(np.int64), chance, (draws, *chance.shape)) / size
    spread = np.sqrt(np.nan_to_num(ratio(_variance(bins), chance * (1.0 - chance) / size)))
    share = chance + spread * (happened - chance)
    wide = Bins(*(np.broadcast_to(part, share.shape) for part in bins))
    return wide._replace(o=share * bins.weight)


def _variance(bins: Bins) -> Array:
    """Return the variance of how often an event happens in a bin, under perfect calibration."""
    single = np.maximum(bins.confidence - ratio(bins.ff, bins.weight), 0.0)  # mean of f (1 - f)
    return single / bins.effective


def _with(table: Reliability, key: Any, bins: Bins, draws: int) -> Reliability:
    """Return a batch in which only these bins are read."""
    wide = table.map(lambda array: np.broadcast_to(array, (draws, *np.shape(array))))
    return Reliability(
        wide.scale,
        wide.items,
        wide.weight,
        wide.squares,
        wide.argmax,
        wide.confidence,
        {key: bins},
    )
