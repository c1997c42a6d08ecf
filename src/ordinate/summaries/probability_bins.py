"""Rows of probabilities on their way into sums: events, bins, blocks."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Events = Literal["top", "levels", "cumulative"]


class BlockTally:
    """Sums over items by block and by some index, weighted where items have weights."""

    def __init__(self, blocks: int | None, numbers: Array, weight: Floats | None) -> None:
        self.many = blocks or 1
        self.block = None if blocks is None else _assign_blocks(numbers, blocks)
        self.weight, self.size = weight, len(numbers)

    def select(self, places: Array) -> "BlockTally":
        """Return the tally of some of the items."""
        part = object.__new__(BlockTally)
        part.many, part.size = self.many, len(places)
        part.block = None if self.block is None else self.block[places]
        part.weight = None if self.weight is None else self.weight[places]
        return part

    @property
    def pooled(self) -> "BlockTally":
        """The tally of the same items in one block."""
        part = self.select(np.arange(self.size))
        part.many, part.block = 1, None
        return part

    def items(self) -> Array:
        """Return the number of items of each block."""
        if self.block is None:
            return np.array([self.size])
        return np.bincount(self.block, minlength=self.many)

    def of(self, values: "Array | float", index: Array | None = None, count: int = 1) -> Array:
        """Return Σw x by block and index [blocks, count], or by block alone."""
        if isinstance(values, float):
            values = np.full(self.size, values)
        amount = values if self.weight is None else values * self.weight
        sums = np.bincount(self._index_blocks(index, count), amount, minlength=self.many * count)
        return sums if index is None else sums.reshape(self.many, count)

    def sums(self, index: Array, count: int) -> Array:
        """Return items, weights and squared weights [3, blocks, count]."""
        at, most = self._index_blocks(index, count), self.many * count
        items = np.bincount(at, minlength=most)
        parts = [items, items, items]
        if self.weight is not None:
            parts[1] = np.bincount(at, self.weight, minlength=most)
            parts[2] = np.bincount(at, self.weight**2, minlength=most)
        return np.reshape(parts, (3, self.many, count))

    def moments(self, scores: Floats) -> tuple[Array, Array, Array]:
        """Return Σw s, Σw² s and Σw² s sᵀ of scores [S, n], by block."""
        once = scores if self.weight is None else scores * self.weight
        twice = once if self.weight is None else once * self.weight
        if self.block is None:
            products = _compute_symmetric_products(
                once, lambda a, b: a @ b
            )  # quicker than those of a matrix
            return once.sum(axis=1)[None], twice.sum(axis=1)[None], products[None]
        plain = BlockTally.select(self, np.arange(self.size))
        plain.weight = None
        first, second = (np.stack([plain.of(row) for row in part], -1) for part in (once, twice))
        products = _compute_symmetric_products(once, lambda a, b: plain.of(a * b))
        return first, second, np.moveaxis(products, -1, 0)

    def _index_blocks(self, index: Array | None, count: int) -> Array:
        if index is None:
            return np.zeros(self.size, np.intp) if self.block is None else self.block
        return index if self.block is None else self.block * count + index


def count_events(levels: int) -> dict[Events, int]:
    """Return how many events of each set there are on a scale."""
    return {"top": 1, "levels": levels, "cumulative": levels - 1}


def compute_events(
    events: Events, gold: Array, columns: Floats, best: Floats, predicted: Array
) -> tuple[list[Floats], list[Array]]:
    """Return the probability of each of these events, and whether it happened."""
    if events == "top":
        return [best], [predicted == gold]
    if events == "levels":
        return [*columns], [gold == k for k in range(len(columns))]
    below = cumulate_levels(columns.copy())[:-1]
    return [*below], [gold <= k for k in range(len(below))]


def assign_bins(values: Floats, count: int) -> NDArray[np.intp]:
    """Return the bin (lo, hi] of each value among equal ones from 0 to 1; 0 is in the first.

    It is `searchsorted(linspace(0, 1, count + 1), values, side="left") - 1`, clipped, and faster.
    """
    edges = np.linspace(0.0, 1.0, count + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    scaled = values * count
    scaled += 0.5
    nearest = scaled.astype(np.intp)
    nearest -= values <= edges.take(nearest)  # the bin below or above the nearest edge
    return nearest


def sum_bins(tally: BlockTally, f: Floats, o: Array, count: int) -> Floats:
    """Return items, Σw, Σw², Σwf, Σwo, Σwf² and Σwfo [7, blocks, bins]."""
    place = assign_bins(f, count)
    place *= 2
    place += o
    sums, squares = (tally.of(x, place, 2 * count) for x in (f, f * f))
    parts = np.stack([*tally.sums(place, 2 * count), sums, squares]).reshape(5, -1, count, 2)
    items, weights, weights2, f1, f2 = parts.sum(axis=-1)
    happened = parts[..., 1]
    return np.stack([items, weights, weights2, f1, happened[1], f2, happened[3]])


def _compute_symmetric_products(rows: Floats, product: Callable[[Floats, Floats], Any]) -> Array:
    """Return the products of all pairs of rows, each found once."""
    size = range(len(rows))
    products = {(i, j): product(rows[i], rows[j]) for i in size for j in size[i:]}
    return np.array([[products[min(i, j), max(i, j)] for j in size] for i in size])


def cumulate_levels(columns: Floats) -> Floats:
    """Sum up over the levels, in place; row by row, which is far quicker than `cumsum`."""
    for k in range(1, len(columns)):
        columns[k] += columns[k - 1]
    return columns


def find_most_probable_level(columns: Floats, best: Floats) -> NDArray[np.intp]:
    """Return the most probable level, the lowest of equal ones."""
    later = columns[0] != best
    level = later.astype(np.int16)
    for column in columns[1:-1]:
        later &= column != best
        level += later
    return level.astype(np.intp)


def _assign_blocks(numbers: Array, blocks: int) -> Array:
    """Return the block of each row: a hash of its number, in which near rows are far apart."""
    mixed = numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(blocks)).astype(np.int64)
