"""Small numbers: proportions, rare levels, and tables that no bootstrap can move."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.inference.delta import quantile
from ordinate.inference.draws import Redraw
from ordinate.metrics.arithmetic import diagonal
from ordinate.summary import Confusion

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs draws
    from numpy.random import Generator

Array = NDArray[Any]
RARE = 10  # items of a gold level, below which resampling its items is not enough
PRIOR = 0.5  # of an item in each cell of a row, as Jeffreys has it


def wilson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's limits of proportions; from 0 to 1 where nothing was tried.

    >>> low, high = wilson(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    tried = np.asarray(n, float)
    share = np.divide(successes, tried, out=np.full(tried.shape, 0.5), where=tried > 0)
    z2 = quantile(level) ** 2
    centre = tried * share + z2 / 2.0
    half = np.sqrt(z2 * (tried * share * (1.0 - share) + z2 / 4.0))
    low, high = (centre - half) / (tried + z2), (centre + half) / (tried + z2)
    return np.where(share == 0, 0.0, low)[()], np.where(share == 1, 1.0, high)[()]


def rare_levels(table: Confusion) -> list[str]:
    """Return the names of the gold levels with some items, but few."""
    few = (table.gold > 0) & (table.gold < RARE)
    return [name for name, rare in zip(table.scale.names, few, strict=True) if rare]


def mean_recall(table: Confusion, level: float) -> tuple[float, float]:
    """Return the limits of the mean recall by MOVER: each level's Wilson limits, as distances.

    The squared distances from the recalls to their limits add up like variances.
    """
    there = table.gold > 0
    right, gold = diagonal(table.counts)[there], table.gold[there]
    low, high = wilson(right, gold, level)
    recall = right / gold
    below, above = (np.sqrt(((recall - end) ** 2).sum()) / len(gold) for end in (low, high))
    return float(recall.mean() - below), float(recall.mean() + above)


def posterior(table: Confusion, prior: float = PRIOR) -> Redraw:
    """Return draws from the posterior: each gold level's predictions, and the gold shares.

    The predictions of a level follow a Dirichlet of its counts and a little of each prediction.
    """
    columns = table.weights.shape[-1] if table.has_unanswered else len(table.scale)
    there = np.flatnonzero(table.gold)
    counts, gold = table.weights[there, :columns], table.gold[there]

    def draw(rng: "Generator", size: int) -> Array:
        cells = np.zeros((size, *table.weights.shape))
        rows = rng.gamma(counts + prior, size=(size, *counts.shape))
        share = rows / rows.sum(axis=-1, keepdims=True)
        cells[:, there, :columns] = share * rng.gamma(gold, size=(size, len(gold)))[..., None]
        return cells

    return draw
