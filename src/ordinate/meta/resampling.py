"""How sure coverage and robustness are: test cases and systems drawn again, never pairs.

Pairs of systems share systems, and pairs of test cases share test cases, so pairs are no units that
could be drawn. Each draw takes as many test cases and as many systems as there are, with
replacement. Two copies of one system are no pair of systems, nor are two copies of one test case a
pair of test cases.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.bootstrap import percentile
from ordinate.inference.draws import Draws, Tick, group_draws
from ordinate.inference.joint import differences, widest_reach
from ordinate.inference.result import Estimate, nowhere
from ordinate.meta.ranks import DIGITS, mid_ranks
from ordinate.meta.robustness import mean_merits, robustness

if TYPE_CHECKING:
    from numpy.random import Generator

Array = NDArray[Any]
BLOCK = 100  # draws
FARTHEST = 2.0  # apart can two correlations be
MOST = "it is undefined in most of the draws"


@dataclass(frozen=True)
class Redrawn:
    """Coverage and robustness of each metric in each draw, as [B, M]."""

    coverage: Array
    robustness: Array


def redraw(merits: Array, improved: Array, draws: Draws, *, tick: Tick | None = None) -> Redrawn:
    """Draw test cases and systems again, for all metrics of `merits` [M, S, T] at once.

    `improved` [S, S, T] says who improves on whom for all references in which test case.
    """
    first, second = np.triu_indices(merits.shape[1], 1)
    gained = improved[first, second]  # [P, T]

    def work(rng: "Generator", size: int) -> tuple[Array, Array]:
        systems, cases = multiplicities(rng, merits, size)
        means = mean_merits(merits, cases)
        rows = zip(means, systems, cases, strict=True)
        covered = [redrawn_coverage(one, gained, *times) for one, *times in rows]
        return np.stack(covered), robustness(merits, systems, cases)

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
    patterns, which = np.unique(np.isfinite(means), axis=0, return_inverse=True)
    for index, there in enumerate(patterns):  # metrics that share it share the ranks of the ratios
        both, rows = there[first] & there[second], which.reshape(-1) == index
        if both.any():
            gains = means[rows][:, first[both]] - means[rows][:, second[both]]
            found[rows] = both_ways(gains, ratios[both], times[both])
    return found


def both_ways(gains: Array, ratios: Array, times: Array) -> Array:
    """Return Spearman's correlation over pairs and their reverses, in which all signs turn.

    >>> both_ways(np.array([[0.4, 0.8, 0.4]]), np.array([1, 1, 0.5]), np.ones(3)).round(3).tolist()
    [0.909]
    """
    one, other = _around(gains, times), _around(ratios, times)
    size = np.sqrt((times * one**2).sum(axis=-1) * (times * other**2).sum(axis=-1))
    inner = (times * one * other).sum(axis=-1)
    return np.divide(inner, size, out=np.full(len(gains), np.nan), where=size > 0)


def _around(values: Array, times: Array) -> Array:
    """Return ranks around the middle: all smaller in size lie below, and half of the equal ones."""
    rounded = np.round(values, DIGITS)
    return np.sign(rounded) * (mid_ranks(np.abs(rounded), times) - 0.5)


# --- limits --------------------------------------------------------------------------------------


def limits(values: Array, drawn: Array, level: float, reason: str) -> list[Estimate]:
    """Return values [M] with percentile limits from draws [B, M]; `reason` says why one is nan."""
    return [
        _limited(float(value), column, level, reason)
        for value, column in zip(values, drawn.T, strict=True)
    ]


def _limited(value: float, drawn: Array, level: float, reason: str) -> Estimate:
    if np.isnan(value):
        return nowhere(value, reason, 1.0)
    defined = drawn[np.isfinite(drawn)]
    undefined = 1.0 - len(defined) / len(drawn)
    if undefined > 0.5:
        return nowhere(value, MOST, undefined)
    return Estimate(value, *percentile(defined, level), "percentile", undefined)


def behind_best(values: Array, drawn: Array, level: float) -> list[Estimate | None]:
    """Return what each metric has less than the best one; None for the best and the undefined.

    The data chose the best, so limits hold for all pairs of metrics at once (max-T over them).
    """
    usable = np.isfinite(values) & (np.isfinite(drawn).mean(axis=0) >= 0.5)
    found: list[Estimate | None] = [None] * len(values)
    chosen = np.flatnonzero(usable)
    if len(chosen) < 2:
        return found
    kept = drawn[:, chosen]
    complete = kept[np.isfinite(kept).all(axis=1)]
    lost = 1.0 - len(complete) / len(drawn)
    if lost > 0.5:
        return found
    best = int(np.argmax(np.round(values[chosen], DIGITS)))
    others = np.delete(np.arange(len(chosen)), best)
    widest = widest_reach(values[chosen], complete)
    against = np.full(len(others), best)
    gaps = differences(values[chosen], complete, others, against, level, widest=widest)
    ends = (np.clip(end, -FARTHEST, FARTHEST) for end in (gaps.low, gaps.high))
    for place, gap, low, high in zip(chosen[others], gaps.value, *ends, strict=True):
        found[place] = Estimate(float(gap), float(low), float(high), "max_t", lost)
    return found
