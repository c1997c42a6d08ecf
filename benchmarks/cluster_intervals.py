"""Candidate intervals of clusters, of many samples at once: what the study of clusters compares."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from interval_coverage import FLAT, LEVEL
from ordinate.inference.clusters import (
    LevelTrials,
    correct_bias,
    jackknife_error,
    list_level_trials,
    mover_of_clusters,
    worst_of_clusters,
)
from ordinate.inference.confidence_intervals import FEWEST_DEFINED_SHARE
from ordinate.inference.delta_method import (
    compute_bounded_interval,
    compute_unbounded_slope,
    from_unbounded,
    to_unbounded,
)
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Ends = tuple[Array, Array]  # lower and upper bounds [R]
TAIL = (1.0 + LEVEL) / 2.0


class Sample(NamedTuple):
    """A metric, or a difference, in all replicates of a block.

    `value` [R], `without` [R, G] each cluster, `resampled` [R, B] with clusters drawn `times`
    [B, G], `clusters` the tables (none for a difference), `bounds` those of the metric.
    """

    value: Array
    without: Array
    resampled: Array
    times: Array
    clusters: ConfusionMatrix | None
    bounds: tuple[float, float]
    sizes: Array

    def head(self, count: int) -> "Sample":
        """Return the first replicates."""
        return self._replace(value=self.value[:count], without=self.without[:count])

    @property
    def freedom(self) -> int:
        """The degrees of freedom of Student's variable."""
        return self.without.shape[1] - 1


def reach_bounds(sample: Sample, error: Array, reach: float, centre: Array | None = None) -> Ends:
    """Return the interval so many errors around the values, on a scale without bounds."""
    low, high = sample.bounds
    centre = sample.value if centre is None else np.clip(centre, low, high)
    ends = [
        compute_bounded_interval(value, spread, sample.bounds, reach)
        if spread >= FLAT and low + FLAT < value < high - FLAT
        else (value, value if spread >= 0 else math.nan)
        for value, spread in zip(centre.tolist(), error.tolist(), strict=True)
    ]
    return tuple(np.array(ends).reshape(-1, 2).T)  # type: ignore[return-value]


def by_jackknife(sample: Sample) -> Ends:
    """Delete-one-cluster jackknife, Student's t with a degree less than there are clusters."""
    error = jackknife_error(sample.value, sample.without)
    return reach_bounds(sample, error, stdtrit(sample.freedom, TAIL))


def by_effective_jackknife(sample: Sample) -> Ends:
    """The same, with as many degrees as equal clusters of the same sum of squared sizes have."""
    effective = sample.sizes.sum() ** 2 / (sample.sizes**2).sum()
    error = jackknife_error(sample.value, sample.without)
    return reach_bounds(sample, error, stdtrit(effective - 1.0, TAIL))


def by_unbiased_jackknife(sample: Sample) -> Ends:
    """The jackknife around its value without bias, enclosing the value."""
    centre = correct_bias(sample.value, sample.without)
    error = jackknife_error(sample.value, sample.without)
    low, high = reach_bounds(sample, error, stdtrit(sample.freedom, TAIL), centre)
    return np.minimum(low, sample.value), np.maximum(high, sample.value)


def take_quantiles(ordered: Array, shares: Array) -> Array:
    """Return quantiles of sorted values [R, B], undefined ones last; nan where these are most."""
    defined = (~np.isnan(ordered)).sum(axis=1)
    place = np.clip(shares, 0.0, 1.0) * np.maximum(defined - 1, 0)
    place = np.where(np.isnan(place), 0.0, place)
    left = np.floor(place).astype(int)
    right = np.minimum(left + 1, np.maximum(defined - 1, 0))
    rows = np.arange(len(ordered))
    found = ordered[rows, left] + (place - left) * (ordered[rows, right] - ordered[rows, left])
    few = defined < FEWEST_DEFINED_SHARE * ordered.shape[1]
    return np.where(few | np.isnan(shares + 0.0 * place), np.nan, found)


def by_percentile(ordered: Array, tail: float = TAIL) -> Ends:
    """The percentile bootstrap of clusters."""
    low, high = (take_quantiles(ordered, np.full(len(ordered), s)) for s in (1.0 - tail, tail))
    return low, high


def by_percentile_t(sample: Sample, ordered: Array) -> Ends:
    """Percentiles at the tails of Student's t, and for the variance of a sample of clusters."""
    count = sample.freedom + 1
    reach = math.sqrt(count / sample.freedom) * stdtrit(sample.freedom, TAIL)
    return by_percentile(ordered, float(ndtr(reach)))


def by_bca(sample: Sample, ordered: Array) -> Ends:
    """BCa with the acceleration from deleting clusters; percentile where it is undefined."""
    value = sample.value[:, None]
    tied = np.isclose(ordered, value, rtol=1e-12, atol=1e-12)
    defined = np.maximum((~np.isnan(ordered)).sum(axis=1), 1)
    below = (((ordered < value) & ~tied).sum(axis=1) + tied.sum(axis=1) / 2.0) / defined
    pull = np.nanmean(sample.without, axis=1, keepdims=True) - sample.without
    spread = np.nansum(pull**2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = np.nansum(pull**3, axis=1) / (6.0 * spread**1.5)
        shift, ends = ndtri(below), []
        for tail in (1 - TAIL, TAIL):
            reach = shift + ndtri(tail)
            share = ndtr(shift + reach / (1.0 - acceleration * reach))
            share = np.where(
                (acceleration * reach < 1.0) & (below > 0) & (below < 1), share, np.nan
            )
            ends.append(take_quantiles(ordered, share))
    low, high = by_percentile(ordered)
    undefined = np.isnan(ends[0]) | np.isnan(ends[1]) | ((ends[1] - ends[0] < FLAT) & (high > low))
    return (
        np.where(undefined, np.minimum(low, sample.value), ends[0]),
        np.where(undefined, np.maximum(high, sample.value), ends[1]),
    )


def by_studentised(sample: Sample) -> Ends:
    """Studentised bootstrap; the errors of resamples come from the deletions in the sample."""
    pulls = np.nan_to_num(sample.value[:, None] - sample.without)
    count, bounds = sample.freedom + 1, sample.bounds
    first, second = pulls @ sample.times.T / count, pulls**2 @ sample.times.T
    spread = np.sqrt(np.maximum((second - count * first**2) * (count - 1) / count, 0.0))
    error = jackknife_error(sample.value, sample.without)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = to_unbounded(sample.value, bounds)
        step = error * compute_unbounded_slope(sample.value, bounds)
        moved = to_unbounded(sample.resampled, bounds) - middle[:, None]
        scale = spread * compute_unbounded_slope(sample.resampled, bounds)
        ratio = np.where(scale > FLAT, moved / scale, np.nan)
    least, most = by_percentile(np.sort(np.where(np.isfinite(ratio), ratio, np.nan), axis=1))
    flat = ~(error >= FLAT) | ~np.isfinite(middle)
    low, high = (
        np.where(
            flat,
            sample.value + 0.0 * error,
            [from_unbounded(x, bounds) for x in middle - end * step],
        )
        for end in (most, least)
    )
    return low, high


# --- methods for shares and levels ---------------------------------------------------------------


def by_levels(metric: Metric, sample: Sample, *, pooled: bool = False) -> Ends:
    """Wilson's bounds of levels at deflated sizes with Student's t; `pooled`: by the plain D."""
    trials: Any = list_level_trials(metric, sample.clusters)  # type: ignore[arg-type]
    effect = pooled_design_effect(trials) if pooled else None
    if metric.macro == "worst":
        tail = (1.0 + LEVEL ** (1.0 / trials.levels)) / 2.0
        return worst_of_clusters(trials, stdtrit(sample.freedom, tail), metric.direction, effect)
    reach = np.full(len(sample.value), stdtrit(sample.freedom, TAIL))
    return mover_of_clusters(trials, reach, effect)


def enclose(first: Ends, second: Ends) -> Ends:
    """Return the outer bounds of two methods."""
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])


def pooled_design_effect(trials: LevelTrials) -> Array:
    """Return D from the sums of residuals within clusters and levels, one level beside another."""
    cells, costs = trials.cells, trials.costs
    pooled, count = cells.sum(axis=-3), cells.shape[-3]
    n = pooled.sum(axis=-1)
    residual = costs - ((pooled * costs).sum(axis=-1) / np.where(n > 0, n, 1.0))[..., None]
    sums = (cells * residual[..., None, :, :]).sum(axis=-1)
    alone = (pooled * residual**2).sum(axis=(-2, -1))
    inflated = count / (count - 1.0) * (sums**2).sum(axis=(-2, -1))
    ratio = np.maximum(1.0, inflated / np.where(alone > 0, alone, 1.0))
    return np.where(alone > 0, ratio, n.sum(axis=-1) / count)


def has_trials(metric: Metric) -> bool:
    """Tell whether a metric is made of shares of levels."""
    return metric.share or metric.macro is not None
