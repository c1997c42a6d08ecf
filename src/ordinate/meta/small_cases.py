"""All small tables: every way of putting N items into the cells of K levels."""

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]


def list_compositions(parts: int, total: int) -> Array:
    """Return every way of writing a total as a sum of parts, in lexicographic order.

    >>> list_compositions(3, 1).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    columns: list[Array] = []
    left = np.array([total])
    for _ in range(parts - 1):
        choices = left + 1
        starts = np.cumsum(choices) - choices
        part = np.arange(choices.sum()) - np.repeat(starts, choices)
        columns = [np.repeat(column, choices) for column in columns]
        columns.append(part)
        left = np.repeat(left, choices) - part
    return np.stack([*columns, left], axis=1).astype(np.int8)


class CompositionIndex:
    """Where a composition stands among all of its kind."""

    def __init__(self, parts: int, total: int) -> None:
        self.before = np.zeros((parts, total + 1, total + 1), np.int64)
        for part in range(parts - 1):
            later = parts - part - 1
            for left in range(total + 1):
                ways = [comb(left - value + later - 1, later - 1) for value in range(left + 1)]
                self.before[part, left, 1 : left + 1] = np.cumsum(ways)[:-1]

    def of(self, rows: Array) -> Array:
        """Return the places of compositions, one in each row.

        >>> CompositionIndex(3, 4).of(list_compositions(3, 4)).tolist() == list(range(15))
        True
        """
        left = np.full(len(rows), self.before.shape[1] - 1)
        place = np.zeros(len(rows), np.int64)
        for part, values in enumerate(rows.T):
            place += self.before[part, left, values]
            left -= values
        return place


def make_batch(cells: Array, positions: tuple[float, ...] | None = None) -> ConfusionMatrix:
    """Return tables [B, K, K] as a batch; the levels are called by their positions, from 1."""
    size = cells.shape[-1]
    at = tuple(range(size)) if positions is None else positions
    scale = Scale([1 + place for place in at], positions=at)
    counts = np.zeros((*cells.shape[:-1], size + 1))
    counts[..., :-1] = cells
    return ConfusionMatrix(scale, counts, counts, counts)


@lru_cache(maxsize=2)  # laws that look at the same tables share them
def enumerate_tables(levels: int, items: int) -> tuple[Array, ConfusionMatrix, CompositionIndex]:
    """Return all tables of a size as whole numbers and as a batch, and how to find one of them."""
    rows = list_compositions(levels**2, items)
    cells = rows.reshape(-1, levels, levels)
    return cells, make_batch(cells), CompositionIndex(levels**2, items)
