"""How sure a judgement of metrics is: test cases and systems drawn again, never pairs.

Pairs of systems share systems, and pairs of test cases share test cases, so pairs are no units that
could be drawn. Each draw takes as many test cases and as many systems as there are, with
replacement. Two copies of one system are no pair of systems, nor are two copies of one test case a
pair of test cases, and both are in the same half of the test cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.bootstrap import percentile
from ordinate.inference.estimates import Estimate, nowhere
from ordinate.inference.resampling import Draws, Tick, group_draws
from ordinate.inference.system_differences import differences, widest_reach
from ordinate.meta.rank_correlation import DIGITS, mid_ranks, spearman
from ordinate.meta.robustness import PAIRS, agreement_of, mean_merits, mean_of, robustness

if TYPE_CHECKING:
    from numpy.random import Generator

Array = NDArray[Any]
BLOCK = 100  # draws
SPLITS = 5  # of the test cases of a draw into halves
FARTHEST = 2.0  # apart can two correlations be
MOST = "it is undefined in most of the draws"


@dataclass(frozen=True)
class Redrawn:
    """What was found in each draw: [B, M] of each metric, and the agreement [B, M, M] of two."""

    coverage: Array
    robustness: Array
    stability: Array
    agreement: Array


def redraw(merits: Array, improved: Array, draws: Draws, *, tick: Tick | None = None) -> Redrawn:
    """Draw test cases and systems again, for all metrics of `merits` [M, S, T] at once.

    `improved` [S, S, T] says who improves on whom for all references in which test case.
    """
    first, second = np.triu_indices(merits.shape[1], 1)
    gained = improved[first, second]  # [P, T]

    def work(rng: "Generator", size: int) -> tuple[Array, ...]:
        systems, cases = multiplicities(rng, merits, size)
        means = mean_merits(merits, cases)
        rows = zip(means, systems, cases, strict=True)
        covered = [redrawn_coverage(one, gained, *times) for one, *times in rows]
        pairs = drawn_pairs(rng, cases, PAIRS)
        return (
            np.stack(covered),
            robustness(merits, systems, cases, pairs),
            redrawn_stability(rng, merits, systems, cases),
            agreement_of(means, systems),
        )

    blocks = draws.by_block(1, work, block=BLOCK, tick=tick)
    return Redrawn(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def multiplicities(rng: "Generator", merits: Array, size: int) -> tuple[Array, Array]:
    """Return how often each system [size, S] and each test case [size, T] is drawn."""
    systems = group_draws(rng, merits.shape[1], size)
    return systems, group_draws(rng, merits.shape[2], size)


def redrawn_coverage(means: Array, gained: Array, systems: Array, cases: Array) -> Array:
    """Return the coverage [M] of mean merits [M, S] where systems and test cases have copies.

    `gained` [P, T] says for each pair of systems (s before s') who improves on whom. Pairs count
    in both orders.
    """
    first, second = np.triu_indices(len(systems), 1)
    kept = np.flatnonzero(systems[first] * systems[second])
    first, second = first[kept], second[kept]
    times = systems[first] * systems[second]
    ratios = gained[kept] @ cases / cases.sum()
    found = np.full(len(means), np.nan)
    kinds = np.where(np.isfinite(means), 0.0, means)  # 0, nan, inf or -inf
    patterns, which = np.unique(kinds, axis=0, return_inverse=True)
    for index, kind in enumerate(patterns):  # metrics that share it share the ranks of the ratios
        with np.errstate(invalid="ignore"):  # inf - inf
            there = ~np.isnan(kind[first] - kind[second])
        rows = which.reshape(-1) == index
        if there.any():
            gains = means[rows][:, first[there]] - means[rows][:, second[there]]
            found[rows] = both_ways(gains, ratios[there], times[there])
    return found


def both_ways(gains: Array, ratios: Array, times: Array) -> Array:
    """Return Spearman's correlation over pairs and their reverses, in which all signs turn.

    >>> both_ways(np.array([[0.4, 0.8, 0.4]]), np.array([1, 1, 0.5]), np.ones(3)).round(3).tolist()
    [0.909]
    """
    one, other = _around(gains, times), _around(ratios, times)
    size = np.sqrt((times * one**2).sum(axis=-1) * (times * other**2).sum(axis=-1))
    inner = (times * one * other).sum(axis=-1)
    found = np.divide(inner, size, out=np.full(len(gains), np.nan), where=size > 0)
    return np.round(found, DIGITS)


def _around(values: Array, times: Array) -> Array:
    """Return ranks around the middle: all smaller in size lie below, and half of the equal ones."""
    rounded = np.round(values, DIGITS)
    return np.sign(rounded) * (mid_ranks(np.abs(rounded), times) - 0.5)


def drawn_pairs(rng: "Generator", cases: Array, count: int) -> Array:
    """Return pairs of the test cases of each draw [B, count, 2]; some are copies of one."""
    place = rng.integers(0, cases[0].sum(), (len(cases), count, 2))
    reached = np.cumsum(cases, axis=-1)
    rows = zip(reached, place, strict=True)
    return np.stack([np.searchsorted(row, places, side="right") for row, places in rows])


def redrawn_stability(rng: "Generator", merits: Array, systems: Array, cases: Array) -> Array:
    """Return the stability [B, M] where systems [B, S] and test cases [B, T] have copies.

    The distinct test cases of a draw are split, each with its copies: none is in both halves.
    """
    half = (cases > 0).sum(axis=-1, keepdims=True) // 2
    found = []
    for _ in range(SPLITS):
        order = np.where(cases > 0, rng.random(cases.shape), 1.0).argsort(axis=-1)
        place = order.argsort(axis=-1)
        halves = (place < half, (place >= half) & (place < 2 * half))
        first, second = (mean_merits(merits, cases * chosen) for chosen in halves)
        found.append(spearman(first, second, systems[:, None, :]))
    return mean_of(np.stack(found, axis=-1))


# --- limits --------------------------------------------------------------------------------------


def limits(values: Array, drawn: Array, level: float, reason: str) -> list[Estimate]:
    """Return correlations [M] with limits from draws [B, M]; `reason` says why one is nan.

    Limits are percentiles, shifted so that the mean of the draws is the value: draws add noise to
    the noise of the sample, which makes correlations smaller.
    """
    return [
        _limited(float(value), column, level, reason)
        for value, column in zip(values, drawn.T, strict=True)
    ]


def _limited(value: float, drawn: Array, level: float, reason: str) -> Estimate:
    if np.isnan(value):
        return nowhere(value, reason, 1.0)
    defined = drawn[~np.isnan(drawn)]
    undefined = 1.0 - len(defined) / len(drawn)
    if undefined > 0.5:
        return nowhere(value, MOST, undefined)
    ends = np.array(percentile(defined, level)) + (value - defined.mean())
    low, high = np.clip(np.round(ends, DIGITS), -1.0, 1.0).tolist()
    return Estimate(value, low, high, "shifted percentile", undefined)


def behind_best(
    values: Array, drawn: Array, level: float, best: int, others: Sequence[int]
) -> dict[int, Estimate]:
    """Return what other metrics have less than the best one; nothing where draws are too few.

    The data chose the best, so limits hold for all pairs of metrics at once (max-T over them).
    """
    chosen = [best, *others]
    kept = drawn[:, chosen]
    complete = kept[~np.isnan(kept).any(axis=1)]
    lost = 1.0 - len(complete) / len(drawn)
    if not others or lost > 0.5:
        return {}
    widest = widest_reach(values[chosen], complete)
    places = np.arange(1, len(chosen))
    against = np.zeros(len(others), int)
    gaps = differences(values[chosen], complete, places, against, level, widest=widest)
    ends = (np.clip(end, -FARTHEST, FARTHEST) for end in (gaps.low, gaps.high))
    return {
        place: Estimate(float(gap), float(low), float(high), "max_t", lost)
        for place, gap, low, high in zip(others, gaps.value, *ends, strict=True)
    }
