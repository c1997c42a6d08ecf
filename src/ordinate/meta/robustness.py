"""Robustness, stability and discriminative power: how a metric ranks systems across test cases.

Merits [M, S, T] are the values of M metrics for S systems in T test cases, turned by `Metric.merit`
so that larger is better; nan is undefined. A test case in which a metric is undefined for a system
is left out of that system's mean; correlations run over the systems that are defined on both sides.
Where nothing is left the result is nan. An infinite value makes a mean infinite (and undefined with
one of the other sign); equally infinite means share their rank, and have no difference.
"""

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadOption
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.meta.rank_correlation import (
    ROUNDING_DIGITS,
    compute_mid_ranks,
    compute_pearson,
    compute_spearman,
)

if TYPE_CHECKING:
    from numpy.random import Generator

Array = NDArray[Any]
MOST_NUMBERS = 1 << 22  # numbers in memory at once
MOST_RANKINGS = 1_000  # of test cases that undefined values require; beyond, pairs are drawn
DRAWN_PAIRS = 300  # of test cases that are drawn then
TIE_TOLERANCE = 1e-12


def average_merits(merits: ArrayLike, times: ArrayLike | None = None) -> Array:
    """Return the mean over test cases [M, S]; `times` [T] or [B, T] says how often each counts.

    >>> average_merits([[[0.5, 1.0], [0.5, float("nan")]]]).tolist()
    [[0.75, 0.5]]
    """
    values = np.asarray(merits, float)
    counts = np.ones(values.shape[-1]) if times is None else np.asarray(times, float)
    total = _sum_over_cases(np.where(np.isfinite(values), values, 0.0), counts)
    count = _sum_over_cases((~np.isnan(values)).astype(float), counts)
    for infinity in (np.inf, -np.inf):
        there = values == infinity
        if there.any():
            reached = _sum_over_cases(there.astype(float), counts) > 0
            total = np.where(reached, np.where(np.isinf(total), np.nan, infinity), total)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _sum_over_cases(values: Array, counts: Array) -> Array:
    flat = counts @ values.reshape(-1, values.shape[-1]).T
    return flat.reshape(*counts.shape[:-1], *values.shape[:-1])


def compute_agreement(merits: ArrayLike) -> Array:
    """Return Spearman's correlation over systems between the mean merits of two metrics [M, M]."""
    return correlate_means(average_merits(merits)[None])[0]


def correlate_means(means: Array, systems: ArrayLike = 1.0) -> Array:
    """Return the agreement [B, M, M] of mean merits [B, M, S]; `systems` [B, S] may have copies."""
    batch, metrics, count = means.shape
    times = np.broadcast_to(np.asarray(systems, float), (batch, count))[:, None, :]
    correlations = np.empty((batch, metrics, metrics))
    incomplete = np.isnan(means).any(axis=(0, 2))
    complete = np.flatnonzero(~incomplete)
    ranks = compute_mid_ranks(means[:, complete], times)
    for place, index in enumerate(complete):  # what is defined for all systems is ranked once
        correlations[:, index, complete] = compute_pearson(ranks[:, [place]], ranks, times)
    for index in np.flatnonzero(incomplete):
        correlations[:, index] = correlations[:, :, index] = compute_spearman(
            means[:, [index]], means, times
        )
    return correlations


# --- the same ranking in every test case ---------------------------------------------------------


def compute_robustness(
    merits: ArrayLike,
    systems: ArrayLike | None = None,
    cases: ArrayLike | None = None,
    pairs: Array | None = None,
    *,
    most_rankings: int = MOST_RANKINGS,
) -> Array:
    """Return the mean over pairs of test cases of Spearman's correlation of the rankings there.

    `systems` [B, S] and `cases` [B, T] say how often each counts, for a batch [B, M]; a test case
    is never paired with itself or its copy. Pairs in which a ranking is constant are left out.
    `pairs` [B, P, 2] of test cases are taken instead of all of them for a metric whose undefined
    values ask for too many rankings.

    >>> merits = [[[1, 2, 1], [2, 3, 3], [3, 4, 2]]]
    >>> compute_robustness(merits).round(3).tolist()  # of 1, 0.5 and 0.5
    [0.667]
    """
    values = np.round(np.asarray(merits, float), ROUNDING_DIGITS)
    system_counts, case_counts = (
        np.ones((1, size)) if times is None else np.atleast_2d(np.asarray(times, float))
        for times, size in zip((systems, cases), values.shape[1:], strict=True)
    )
    alone = systems is None and cases is None
    robustness = np.stack(
        [
            _compute_metric_robustness(
                rows, system_counts, case_counts, pairs, most_rankings, alone=alone
            )
            for rows in values
        ],
        axis=-1,
    )
    robustness = np.round(robustness, ROUNDING_DIGITS)  # rounding errors lead out of [-1, 1]
    return robustness[0] if alone else robustness


def _compute_metric_robustness(
    values: Array,
    systems: Array,
    cases: Array,
    pairs: Array | None,
    most_rankings: int,
    *,
    alone: bool,
) -> Array:
    """Return the robustness [B] of one metric, by the way that takes the fewest rankings."""
    patterns, which = np.unique(~np.isnan(values.T), axis=0, return_inverse=True)
    cases_by_pattern = [
        np.flatnonzero(which.reshape(-1) == index) for index in range(len(patterns))
    ]
    many = len(patterns) > 1 and len(patterns) * values.shape[1] > most_rankings
    if many and alone:
        return average_defined(
            _correlate_every_pair(values)[np.triu_indices(values.shape[1], 1)][None]
        )
    if many and pairs is not None:
        return average_defined(_correlate_pairs(values, systems, pairs))
    return _compute_by_pattern(values, systems, cases, patterns, cases_by_pattern)


def _compute_by_pattern(
    values: Array, systems: Array, cases: Array, patterns: Array, cases_by_pattern: list[Array]
) -> Array:
    """Return the robustness [B] of one metric, for test cases gathered by who is defined there.

    Rankings are unit vectors around 0, so the sum of their inner products over pairs is that of
    two sums. Only test cases with the same undefined systems can share one.
    """
    total, pairs = np.zeros(len(systems)), np.zeros(len(systems))
    for one, other in combinations_with_replacement(range(len(patterns)), 2):
        there = np.flatnonzero(patterns[one] & patterns[other])
        times = systems[:, there]
        first, count, squares = _sum_rankings(
            values[there][:, cases_by_pattern[one]], times, cases[:, cases_by_pattern[one]]
        )
        if one == other:
            total += (times * first**2).sum(axis=-1) - squares
            pairs += count**2 - squares
        else:
            part = (
                values[there][:, cases_by_pattern[other]],
                times,
                cases[:, cases_by_pattern[other]],
            )
            second, more, _ = _sum_rankings(*part)
            total += 2 * (times * first * second).sum(axis=-1)
            pairs += 2 * count * more
    return np.divide(total, pairs, out=np.full_like(total, np.nan), where=pairs > 0)


def _sum_rankings(values: Array, systems: Array, cases: Array) -> tuple[Array, Array, Array]:
    """Return the sum of the rankings of test cases [B, S], their number and that of self-pairs.

    The rank of a system around the middle is half the number of systems below it less those above.
    """
    total = np.zeros(systems.shape)
    count, squares = np.zeros(len(systems)), np.zeros(len(systems))
    size = max(1, len(values))
    step = max(1, MOST_NUMBERS // (size * max(size, len(systems))))
    for start in range(0, values.shape[1], step):
        rows = values[:, start : start + step].T
        ranks = systems @ _compare_systems(rows).swapaxes(1, 2)  # [cases, B, S]
        length = np.einsum("cbs,cbs,bs->cb", ranks, ranks, systems)
        times = cases[:, start : start + step].T * (length > 0)
        unit = times / np.sqrt(np.where(length > 0, length, 1.0))
        total += np.einsum("cb,cbs->bs", unit, ranks)
        count += times.sum(axis=0)
        squares += (times**2).sum(axis=0)
    return total, count, squares


def _compare_systems(rows: Array) -> Array:
    """Return 1 where the first of two systems is above the second, -1 below: [cases, S, S]."""
    first, second = rows[:, :, None], rows[:, None, :]
    return (first > second).astype(float) - (first < second)


def _correlate_every_pair(values: Array) -> Array:
    """Return Spearman's correlation of all pairs of test cases [T, T], of values [S, T].

    The ranks in one test case, among the systems that another one has, are a product of matrices.
    """
    systems, cases = values.shape
    there = (~np.isnan(values)).astype(float)
    correlations = np.full((cases, cases), np.nan)
    step = max(1, min(MOST_NUMBERS // systems**2, int((MOST_NUMBERS / systems) ** 0.5)))
    blocks = [slice(start, start + step) for start in range(0, cases, step)]
    for one, other in combinations_with_replacement(blocks, 2):
        first, second = (
            _rank_among(values, there, one, other),
            _rank_among(values, there, other, one),
        )
        inner = np.einsum("isj,jsi->ij", first, second, optimize=True)
        lengths = (first**2).sum(axis=1) * (second**2).sum(axis=1).T
        part = correlations[one, other]
        np.divide(inner, np.sqrt(lengths), out=part, where=lengths > 0)
        correlations[other, one] = part.T
    return correlations


def _rank_among(values: Array, there: Array, own: slice, others: slice) -> Array:
    """Return ranks around 0 [own, S, others]: in own test cases, of systems that others have."""
    return (_compare_systems(values[:, own].T) @ there[:, others]) * there[None, :, others]


def _correlate_pairs(values: Array, systems: Array, pairs: Array) -> Array:
    """Return Spearman's correlation of pairs of test cases [B, P]; nan for copies of one."""
    correlations = np.empty(pairs.shape[:2])
    for row, (times, cases) in enumerate(zip(systems, pairs, strict=True)):
        drawn = np.flatnonzero(times)
        first, second = (values[np.ix_(drawn, side)].T for side in cases.T)
        correlations[row] = compute_spearman(first, second, times[drawn])
    return np.where(pairs[..., 0] == pairs[..., 1], np.nan, correlations)


def average_defined(values: Array) -> Array:
    """Return the mean of what is defined along the last axis."""
    there = ~np.isnan(values)
    total, count = np.where(there, values, 0.0).sum(axis=-1), there.sum(axis=-1)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


# --- halves of the test cases --------------------------------------------------------------------


def compute_stability(
    merits: ArrayLike, resamples: Resampling, *, progress: ProgressCallback | None = None
) -> Array:
    """Return the mean rank correlation [M] of two disjoint random halves of the test cases.

    Of an odd number of test cases one is left out, another one in each resample.
    """
    values = np.asarray(merits, float)
    count = values.shape[-1]

    def work(rng: "Generator", size: int) -> Array:
        halves = split_cases_in_halves(rng, count, size)
        return compute_spearman(*(average_merits(values, half) for half in halves))

    correlations = np.concatenate(
        resamples.run_in_blocks(values[..., 0].size + count, work, progress=progress)
    )
    return np.round(average_defined(correlations.T), ROUNDING_DIGITS)


def split_cases_in_halves(rng: "Generator", cases: int, size: int) -> tuple[Array, Array]:
    """Return which test cases are in the first and which in the second half, as [size, T]."""
    place = rng.permuted(np.tile(np.arange(cases), (size, 1)), axis=-1)
    half = cases // 2
    return place < half, (place >= half) & (place < 2 * half)


# --- discriminative power ------------------------------------------------------------------------


def compute_discriminative_power(
    merits: ArrayLike,
    resamples: Resampling,
    alpha: float = 0.05,
    *,
    progress: ProgressCallback | None = None,
) -> Array:
    """Return the share [M] of pairs of systems that a randomised Tukey HSD finds different.

    All metrics are tested at the same level `alpha`, and so are wrong equally often.
    """
    if not 1.0 / (resamples.count + 1) <= alpha < 1.0:
        raise BadOption(f"alpha={alpha:g} is not from 1 / (resamples + 1) to below 1.")
    p_values = compute_tukey_p(merits, resamples, progress=progress)
    first, second = np.triu_indices(p_values.shape[-1], 1)
    p = p_values[:, first, second]
    defined = np.isfinite(p).sum(axis=-1)
    significant = (p <= alpha).sum(axis=-1).astype(float)
    return np.divide(significant, defined, out=np.full(len(p), np.nan), where=defined > 0)


def compute_tukey_p(
    merits: ArrayLike, resamples: Resampling, *, progress: ProgressCallback | None = None
) -> Array:
    """Return the p-values [M, S, S] of all pairs of systems for each metric (Carterette 2012).

    Under the null hypothesis the systems are exchangeable within each test case: their values
    (undefined ones with them) are shuffled there, the same way for all metrics. A pair's difference
    of means is compared with the largest difference of each resample; p = (1 + #)/(resamples + 1).
    Of infinite values the largest difference is infinite in all resamples, so that none is
    significantly different.
    """
    values = np.asarray(merits, float)
    metrics, systems, cases = values.shape
    by_metric = values.swapaxes(1, 2).reshape(metrics, cases * systems)
    start = systems * np.arange(cases)[:, None]

    def work(rng: "Generator", size: int) -> Array:
        place = np.tile(np.arange(systems), (size, cases, 1))
        shuffled = rng.permuted(place, axis=-1) + start
        return np.stack([_compute_range(row[shuffled]) for row in by_metric])

    blocks = resamples.run_in_blocks(systems * cases, work, progress=progress)
    largest = np.sort(np.concatenate(blocks, axis=-1), axis=-1)  # [M, B]
    means = average_merits(values)
    with np.errstate(invalid="ignore"):  # inf - inf
        apart = np.abs(means[:, :, None] - means[:, None, :])
    rows = zip(largest, apart, strict=True)
    below = np.stack([np.searchsorted(ranked, gaps - TIE_TOLERANCE) for ranked, gaps in rows])
    return np.where(~np.isnan(apart), (1 + resamples.count - below) / (resamples.count + 1), np.nan)


def _compute_range(values: Array) -> Array:
    """Return the largest less the smallest mean of systems, of values [B, T, S]."""
    if np.isfinite(values).all():
        return np.ptp(values.mean(axis=1), axis=-1)
    with np.errstate(invalid="ignore"):  # inf - inf
        means = average_defined(values.swapaxes(1, 2))
        known = ~np.isnan(means)
        widest = np.where(known, means, -np.inf).max(-1) - np.where(known, means, np.inf).min(-1)
    return np.where(np.isnan(widest), np.inf, widest)
