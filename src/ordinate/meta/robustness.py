"""Whether a metric ranks systems alike whatever the test cases, and how many it tells apart.

Merits [M, S, T] are the values of M metrics for S systems in T test cases, turned by `Metric.merit`
so that larger is better; nan is undefined. A test case in which a metric is undefined for a system
is left out of that system's mean; correlations run over the systems that are defined on both sides.
Where nothing is left the answer is nan.
"""

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadOption
from ordinate.inference.draws import Draws, Tick
from ordinate.meta.ranks import DIGITS, spearman

if TYPE_CHECKING:
    from numpy.random import Generator

Array = NDArray[Any]
LARGE = 1 << 22  # numbers in memory at once
TIE = 1e-12


def mean_merits(merits: ArrayLike, times: ArrayLike | None = None) -> Array:
    """Return the mean over test cases [M, S]; `times` [T] or [B, T] says how often each counts.

    >>> mean_merits([[[0.5, 1.0], [0.5, float("nan")]]]).tolist()
    [[0.75, 0.5]]
    """
    values = np.asarray(merits, float)
    counts = np.ones(values.shape[-1]) if times is None else np.asarray(times, float)
    there = np.isfinite(values)
    total = _over_cases(np.where(there, values, 0.0), counts)
    count = _over_cases(there.astype(float), counts)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _over_cases(values: Array, counts: Array) -> Array:
    flat = counts @ values.reshape(-1, values.shape[-1]).T
    return flat.reshape(*counts.shape[:-1], *values.shape[:-1])


def agreement(merits: ArrayLike) -> Array:
    """Return Spearman's correlation over systems between the mean merits of two metrics [M, M]."""
    means = mean_merits(merits)
    return spearman(means[:, None, :], means[None, :, :])


# --- the same ranking in every test case ---------------------------------------------------------


def robustness(
    merits: ArrayLike, systems: ArrayLike | None = None, cases: ArrayLike | None = None
) -> Array:
    """Return the mean over pairs of test cases of Spearman's correlation of the rankings there.

    `systems` [B, S] and `cases` [B, T] say how often each counts, for a batch [B, M]; a test case
    is never paired with itself or its copy. Pairs in which a ranking is constant are left out.

    >>> robustness([[[1, 2, 1], [2, 3, 3], [3, 4, 2]]]).round(3).tolist()  # of 1, 0.5 and 0.5
    [0.667]
    """
    values = np.round(np.asarray(merits, float), DIGITS)
    each = [
        np.ones((1, size)) if times is None else np.atleast_2d(np.asarray(times, float))
        for times, size in zip((systems, cases), values.shape[1:], strict=True)
    ]
    found = np.stack([_robust(table, *each) for table in values], axis=-1)
    return found[0] if systems is None and cases is None else found


def _robust(values: Array, systems: Array, cases: Array) -> Array:
    """Return the robustness [B] of one metric.

    Rankings are unit vectors around 0, so the sum of their inner products over pairs is that of
    two sums. Only test cases with the same undefined systems can share one.
    """
    patterns, which = np.unique(np.isfinite(values.T), axis=0, return_inverse=True)
    alike = [np.flatnonzero(which.reshape(-1) == index) for index in range(len(patterns))]
    total, pairs = np.zeros(len(systems)), np.zeros(len(systems))
    for one, other in combinations_with_replacement(range(len(patterns)), 2):
        there = np.flatnonzero(patterns[one] & patterns[other])
        times = systems[:, there]
        first, count, squares = _summed(values[there][:, alike[one]], times, cases[:, alike[one]])
        if one == other:
            total += (times * first**2).sum(axis=-1) - squares
            pairs += count**2 - squares
        else:
            part = values[there][:, alike[other]], times, cases[:, alike[other]]
            second, more, _ = _summed(*part)
            total += 2 * (times * first * second).sum(axis=-1)
            pairs += 2 * count * more
    return np.divide(total, pairs, out=np.full_like(total, np.nan), where=pairs > 0)


def _summed(values: Array, systems: Array, cases: Array) -> tuple[Array, Array, Array]:
    """Return the sum of the rankings of test cases [B, S], their number and that of self-pairs.

    The rank of a system around the middle is half the number of systems below it less those above.
    """
    total = np.zeros(systems.shape)
    count, squares = np.zeros(len(systems)), np.zeros(len(systems))
    size = max(1, len(values))
    step = max(1, LARGE // (size * max(size, len(systems))))
    for start in range(0, values.shape[1], step):
        rows = values[:, start : start + step].T
        above = np.sign(rows[:, None, :] - rows[:, :, None])
        ranks = systems @ above  # [cases, B, S]
        length = np.einsum("cbs,cbs,bs->cb", ranks, ranks, systems)
        times = cases[:, start : start + step].T * (length > 0)
        unit = times / np.sqrt(np.where(length > 0, length, 1.0))
        total += np.einsum("cb,cbs->bs", unit, ranks)
        count += times.sum(axis=0)
        squares += (times**2).sum(axis=0)
    return total, count, squares


# --- halves of the test cases --------------------------------------------------------------------


def stability(merits: ArrayLike, draws: Draws, *, tick: Tick | None = None) -> Array:
    """Return the mean rank correlation [M] of two disjoint random halves of the test cases.

    Of an odd number of test cases one is left out, another one in each draw.
    """
    values = np.asarray(merits, float)
    count = values.shape[-1]

    def work(rng: "Generator", size: int) -> Array:
        halves = halved(rng, count, size)
        return spearman(*(mean_merits(values, half) for half in halves))

    found = np.concatenate(draws.by_block(values[..., 0].size + count, work, tick=tick))
    there = np.isfinite(found)
    total = np.where(there, found, 0.0).sum(axis=0)
    return np.divide(total, there.sum(0), out=np.full_like(total, np.nan), where=there.any(0))


def halved(rng: "Generator", cases: int, size: int) -> tuple[Array, Array]:
    """Return which test cases are in the first and which in the second half, as [size, T]."""
    place = rng.permuted(np.tile(np.arange(cases), (size, 1)), axis=-1)
    half = cases // 2
    return place < half, (place >= half) & (place < 2 * half)


# --- pairs of systems told apart -----------------------------------------------------------------


def discriminative_power(
    merits: ArrayLike, draws: Draws, alpha: float = 0.05, *, tick: Tick | None = None
) -> Array:
    """Return the share [M] of pairs of systems that a randomised Tukey HSD tells apart.

    All metrics are tested at the same level `alpha`, and so are wrong equally often.
    """
    if not 1.0 / (draws.count + 1) <= alpha < 1.0:
        raise BadOption(f"alpha={alpha:g} is not from 1 / (draws + 1) to below 1.")
    found = tukey_p(merits, draws, tick=tick)
    first, second = np.triu_indices(found.shape[-1], 1)
    p = found[:, first, second]
    there = np.isfinite(p).sum(axis=-1)
    told = (p <= alpha).sum(axis=-1).astype(float)
    return np.divide(told, there, out=np.full(len(p), np.nan), where=there > 0)


def tukey_p(merits: ArrayLike, draws: Draws, *, tick: Tick | None = None) -> Array:
    """Return the p-values [M, S, S] of all pairs of systems for each metric (Carterette 2012).

    Under the null hypothesis the systems are exchangeable within each test case: their values
    (undefined ones with them) are shuffled there, the same way for all metrics. A pair's difference
    of means is compared with the largest difference of each draw; p = (1 + #) / (draws + 1).
    """
    values = np.asarray(merits, float)
    metrics, systems, cases = values.shape
    tables = values.swapaxes(1, 2).reshape(metrics, cases * systems)
    start = systems * np.arange(cases)[:, None]

    def work(rng: "Generator", size: int) -> Array:
        place = np.tile(np.arange(systems), (size, cases, 1))
        shuffled = rng.permuted(place, axis=-1) + start
        return np.stack([_range(table[shuffled]) for table in tables])

    blocks = draws.by_block(systems * cases, work, tick=tick)
    largest = np.sort(np.concatenate(blocks, axis=-1), axis=-1)  # [M, B]
    means = mean_merits(values)
    apart = np.abs(means[:, :, None] - means[:, None, :])
    rows = zip(largest, apart, strict=True)
    below = np.stack([np.searchsorted(ranked, gaps - TIE) for ranked, gaps in rows])
    return np.where(np.isfinite(apart), (1 + draws.count - below) / (draws.count + 1), np.nan)


def _range(values: Array) -> Array:
    """Return the largest less the smallest mean of systems, of values [B, T, S]."""
    there = np.isfinite(values)
    if there.all():
        return np.ptp(values.mean(axis=1), axis=-1)
    total, count = np.where(there, values, 0.0).sum(axis=1), there.sum(axis=1)
    means = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    known = count > 0
    return np.where(known, means, -np.inf).max(-1) - np.where(known, means, np.inf).min(-1)
