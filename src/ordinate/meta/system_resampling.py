"""Confidence intervals of a meta-evaluation: test cases and systems resampled, never pairs.

Pairs of systems share systems, and pairs of test cases share test cases, so pairs are no units that
could be drawn. Each resample takes as many test cases and as many systems as there are, with
replacement. Two copies of one system are no pair of systems, nor are two copies of one test case a
pair of test cases, and both are in the same half of the test cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.bootstrap import percentile_interval
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.resampling import ProgressCallback, Resampling, resample_clusters
from ordinate.inference.system_differences import compare_pairs, max_t_statistic
from ordinate.meta.rank_correlation import ROUNDING_DIGITS, compute_mid_ranks, compute_spearman
from ordinate.meta.robustness import (
    DRAWN_PAIRS,
    average_defined,
    average_merits,
    compute_robustness,
    correlate_means,
)

if TYPE_CHECKING:
    from numpy.random import Generator

Array = NDArray[Any]
BLOCK_RESAMPLES = 100
HALF_SPLITS = 5  # of the test cases of a resample into halves
WIDEST_DIFFERENCE = 2.0  # of two correlations
MOSTLY_UNDEFINED = "it is undefined in most of the resamples"


@dataclass(frozen=True)
class ResampledStatistics:
    """The statistics of each resample: [B, M] by metric, and the agreement [B, M, M] of two."""

    coverage: Array
    robustness: Array
    stability: Array
    agreement: Array


def resample_statistics(
    merits: Array,
    improvements: Array,
    resamples: Resampling,
    *,
    progress: ProgressCallback | None = None,
) -> ResampledStatistics:
    """Resample test cases and systems, for all metrics of `merits` [M, S, T] at once.

    `improvements` [S, S, T] says who improves on whom for all references in which test case.
    """
    first, second = np.triu_indices(merits.shape[1], 1)
    pair_gains = improvements[first, second]  # [P, T]

    def work(rng: "Generator", size: int) -> tuple[Array, ...]:
        systems, cases = draw_multiplicities(rng, merits, size)
        means = average_merits(merits, cases)
        rows = zip(means, systems, cases, strict=True)
        coverage = [compute_resampled_coverage(row, pair_gains, *times) for row, *times in rows]
        pairs = draw_pairs(rng, cases, DRAWN_PAIRS)
        return (
            np.stack(coverage),
            compute_robustness(merits, systems, cases, pairs),
            compute_resampled_stability(rng, merits, systems, cases),
            correlate_means(means, systems),
        )

    blocks = resamples.run_in_blocks(1, work, block=BLOCK_RESAMPLES, progress=progress)
    return ResampledStatistics(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def draw_multiplicities(rng: "Generator", merits: Array, size: int) -> tuple[Array, Array]:
    """Return how often each system [size, S] and each test case [size, T] is drawn."""
    systems = resample_clusters(rng, merits.shape[1], size)
    return systems, resample_clusters(rng, merits.shape[2], size)


def compute_resampled_coverage(
    means: Array, pair_gains: Array, systems: Array, cases: Array
) -> Array:
    """Return the coverage [M] of mean merits [M, S] where systems and test cases have copies.

    `pair_gains` [P, T] says for each pair of systems (s before s') who improves on whom. Pairs
    count in both orders.
    """
    first, second = np.triu_indices(len(systems), 1)
    drawn_pairs = np.flatnonzero(systems[first] * systems[second])
    first, second = first[drawn_pairs], second[drawn_pairs]
    times = systems[first] * systems[second]
    ratios = pair_gains[drawn_pairs] @ cases / cases.sum()
    coverage = np.full(len(means), np.nan)
    finiteness = np.where(np.isfinite(means), 0.0, means)  # 0, nan, inf or -inf
    patterns, which = np.unique(finiteness, axis=0, return_inverse=True)
    for index, pattern in enumerate(
        patterns
    ):  # metrics that share it share the ranks of the ratios
        with np.errstate(invalid="ignore"):  # inf - inf
            defined = ~np.isnan(pattern[first] - pattern[second])
        rows = which.reshape(-1) == index
        if defined.any():
            gains = means[rows][:, first[defined]] - means[rows][:, second[defined]]
            coverage[rows] = correlate_both_ways(gains, ratios[defined], times[defined])
    return coverage


def correlate_both_ways(gains: Array, ratios: Array, times: Array) -> Array:
    """Return Spearman's correlation over pairs and their reverses, in which all signs turn.

    >>> rows, ratio_ranks = np.array([[0.4, 0.8, 0.4]]), np.array([1, 1, 0.5])
    >>> correlate_both_ways(rows, ratio_ranks, np.ones(3)).round(3).tolist()
    [0.909]
    """
    gain_ranks, ratio_ranks = _rank_around_zero(gains, times), _rank_around_zero(ratios, times)
    size = np.sqrt((times * gain_ranks**2).sum(axis=-1) * (times * ratio_ranks**2).sum(axis=-1))
    inner = (times * gain_ranks * ratio_ranks).sum(axis=-1)
    correlations = np.divide(inner, size, out=np.full(len(gains), np.nan), where=size > 0)
    return np.round(correlations, ROUNDING_DIGITS)


def _rank_around_zero(values: Array, times: Array) -> Array:
    """Return ranks around the middle: all smaller in size lie below, and half of the equal ones."""
    rounded = np.round(values, ROUNDING_DIGITS)
    return np.sign(rounded) * (compute_mid_ranks(np.abs(rounded), times) - 0.5)


def draw_pairs(rng: "Generator", cases: Array, count: int) -> Array:
    """Return pairs of the test cases of each resample [B, count, 2]; some are copies of one."""
    place = rng.integers(0, cases[0].sum(), (len(cases), count, 2))
    reached = np.cumsum(cases, axis=-1)
    rows = zip(reached, place, strict=True)
    return np.stack([np.searchsorted(row, places, side="right") for row, places in rows])


def compute_resampled_stability(
    rng: "Generator", merits: Array, systems: Array, cases: Array
) -> Array:
    """Return the stability [B, M] where systems [B, S] and test cases [B, T] have copies.

    The distinct test cases of a resample are split, each with its copies: none is in both halves.
    """
    half = (cases > 0).sum(axis=-1, keepdims=True) // 2
    correlations = []
    for _ in range(HALF_SPLITS):
        order = np.where(cases > 0, rng.random(cases.shape), 1.0).argsort(axis=-1)
        place = order.argsort(axis=-1)
        halves = (place < half, (place >= half) & (place < 2 * half))
        first, second = (average_merits(merits, cases * chosen) for chosen in halves)
        correlations.append(compute_spearman(first, second, systems[:, None, :]))
    return average_defined(np.stack(correlations, axis=-1))


# --- intervals -----------------------------------------------------------------------------------


def estimate_intervals(
    values: Array, resampled: Array, level: float, reason: str
) -> list[Estimate]:
    """Return correlations [M] with intervals from resamples [B, M]; `reason` says why one is nan.

    Bounds are percentiles, shifted so that the mean of the resamples is the value: resamples add
    noise to the noise of the sample, which makes correlations smaller.
    """
    return [
        _estimate_interval(float(value), column, level, reason)
        for value, column in zip(values, resampled.T, strict=True)
    ]


def _estimate_interval(value: float, resampled: Array, level: float, reason: str) -> Estimate:
    if np.isnan(value):
        return make_point_estimate(value, reason, 1.0)
    defined = resampled[~np.isnan(resampled)]
    undefined = 1.0 - len(defined) / len(resampled)
    if undefined > 0.5:
        return make_point_estimate(value, MOSTLY_UNDEFINED, undefined)
    bounds = np.array(percentile_interval(defined, level)) + (value - defined.mean())
    low, high = np.clip(np.round(bounds, ROUNDING_DIGITS), -1.0, 1.0).tolist()
    return Estimate(value, low, high, "shifted percentile", undefined)


def compare_with_best(
    values: Array, resampled: Array, level: float, best: int, others: Sequence[int]
) -> dict[int, Estimate]:
    """Return what other metrics have less than the best one; nothing where resamples are too few.

    The data chose the best, so intervals hold for all pairs of metrics at once (max-T over them).
    """
    compared = [best, *others]
    columns = resampled[:, compared]
    complete = columns[~np.isnan(columns).any(axis=1)]
    undefined_share = 1.0 - len(complete) / len(resampled)
    if not others or undefined_share > 0.5:
        return {}
    widest = max_t_statistic(values[compared], complete)
    places = np.arange(1, len(compared))
    best_places = np.zeros(len(others), int)
    gaps = compare_pairs(values[compared], complete, places, best_places, level, widest=widest)
    bounds = (np.clip(end, -WIDEST_DIFFERENCE, WIDEST_DIFFERENCE) for end in (gaps.low, gaps.high))
    return {
        place: Estimate(float(gap), float(low), float(high), "max_t", undefined_share)
        for place, gap, low, high in zip(others, gaps.value, *bounds, strict=True)
    }
