"""Randomisation max-T: what differences would be if coins decided which system predicted what.

Units are items, or clusters where there are any. In each resample one coin per unit, the same for
all pairs of systems, says where the two systems of a pair exchange their predictions. A pair's own
p-value is exact if its systems are exchangeable within units, given gold; the adjusted one is by
max-T over the family of pairs, stepping down, from the same resamples, and so never below it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # loading it takes a while, and not every report needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
MOST_ENUMERATED_UNITS = 14  # up to which every vector of coins is tried
FEW_SYSTEMS, MANY_SWAPS, FEWER_SWAPS = 10, 9_999, 1_999
TIE_TOLERANCE = 1e-9  # of a statistic: a smaller difference is none
NOISE_LEVEL = 1e-9  # a spread below it is rounding


# --- coins ---------------------------------------------------------------------------------------


class Signs(NamedTuple):
    """Signs [B, U] of units, and whether they are all that there are."""

    values: Array
    exact: bool


def choose_swap_count(systems: int) -> int:
    """Return the number of resamples, which depends on nothing but the number of systems.

    Together with the data itself they are a round number, so that a level has an exact rank.
    """
    return MANY_SWAPS if systems <= FEW_SYSTEMS else FEWER_SWAPS


def draw_signs(units: int, count: int, seed: int) -> Signs:
    """Return fair signs [B, U] for units; every vector (up to its sign) where units are few.

    Differences by unit, times a row of signs, add up to a difference of two systems that exchange
    what they have in the units with a -1.

    >>> draw_signs(2, 9_999, seed=0).values.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if units <= MOST_ENUMERATED_UNITS:
        return Signs(1.0 - 2.0 * enumerate_coins(units), exact=True)
    return Signs(1.0 - 2.0 * draw_coins(np.random.default_rng(seed), units, count), exact=False)


def draw_coins(rng: "Generator", units: int, count: int) -> Array:
    """Return fair coins [count, units], 0 or 1."""
    drawn = rng.integers(0, 256, (count, -(-units // 8)), np.uint8)
    return np.unpackbits(drawn, axis=1, count=units)


def enumerate_coins(units: int) -> Array:
    """Return every vector of coins [2^(U - 1), U] in which the first is 0.

    Exchanging everything else instead changes no more than the sign of a difference.
    """
    vectors = np.arange(1 << max(0, units - 1))
    return (vectors[:, None] >> np.arange(units)[::-1]) & 1


# --- p-values ------------------------------------------------------------------------------------


class PValues(NamedTuple):
    """P-values [P] of pairs: each alone, and by max-T over all of them, stepping down."""

    own: Array
    adjusted: Array


def compute_p_values(differences: Array, randomized: Array, *, exact: bool) -> PValues:
    """Return the p-values of differences [P], from those that coins made of them [B, P].

    `exact` says that all vectors of coins are there, the data among them. A difference is taken
    relative to its root mean square over the coins; where that is 0 nothing speaks against equality
    (p = 1); where coins left a difference undefined, it might have been as large as any.

    >>> signs = draw_signs(3, 0, seed=0)
    >>> by_unit = np.array([[1.0], [2.0], [3.0]])
    >>> compute_p_values(by_unit.sum(axis=0), signs.values @ by_unit, exact=signs.exact)
    PValues(own=array([0.25]), adjusted=array([0.25]))
    """
    spread = _root_mean_square(randomized)
    statistic = _standardise(differences, spread)
    order = np.argsort(-statistic, kind="stable")
    reached = _standardise(randomized, spread)
    reached[np.isnan(randomized)] = np.inf
    threshold = statistic * (1.0 - TIE_TOLERANCE)
    own = _to_share((reached >= threshold).sum(axis=0), len(reached), exact=exact)
    # stepping down, a pair competes with all pairs of smaller statistics
    largest = np.maximum.accumulate(reached[:, order[::-1]], axis=1)[:, ::-1]
    stepped = _to_share((largest >= threshold[order]).sum(axis=0), len(reached), exact=exact)
    adjusted = np.empty(len(own))
    adjusted[order] = np.maximum.accumulate(stepped)
    return PValues(own, adjusted)


def _root_mean_square(randomized: Array) -> Array:
    defined = ~np.isnan(randomized)
    squares = np.where(defined, randomized, 0.0) ** 2
    spread = np.sqrt(squares.sum(axis=0) / np.maximum(1, defined.sum(axis=0)))
    return np.where(spread > NOISE_LEVEL, spread, 0.0)


def _standardise(differences: Array, spread: Array) -> Array:
    size = np.abs(np.asarray(differences, float))
    return np.divide(size, spread, out=np.zeros_like(size), where=spread > 0)


def _to_share(counts: Array, resamples: int, *, exact: bool) -> Array:
    """Return how often coins reached the data, which is one of the vectors itself."""
    return counts / resamples if exact else (counts + 1.0) / (resamples + 1.0)
