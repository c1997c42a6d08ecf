"""Swaps of predictions: the cells that systems exchange where coins of items or clusters say."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.resampling import (
    FEW_COINS,
    MOST_ENUMERATED_UNITS,
    enumerate_coins,
)
from ordinate.inference.system_differences import (
    MatrixCounter,
    multiply_weights,
    order_rows,
)
from ordinate.summaries import Panel

if TYPE_CHECKING:  # loading it takes a while, and not every report needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
MOST_ROWS = 10_000  # distinct rows of which each has its own coins
BATCHES = 2_048  # of items that swap together where there are more


def draw_coins(rng: "Generator", units: int, count: int) -> Array:
    """Return fair coins [count, units], 0 or 1."""
    drawn = rng.integers(0, 256, (count, -(-units // 8)), np.uint8)
    return np.unpackbits(drawn, axis=1, count=units)


class Swaps(ABC):
    """Coins [B, units] of a panel, and the cells of all systems where they fell heads.

    `all` are all vectors of coins, where units are few. Only rows in which systems differ matter:
    those of `panel`.
    """

    panel: Panel
    units: int
    all: Array | None = None

    @abstractmethod
    def draw(self, rng: "Generator", count: int) -> Array:
        """Return random coins."""

    @abstractmethod
    def count_matrices(self, coins: Array) -> Array:
        """Return the cells [B, S, K, K + 1] that take part in a swap."""

    @abstractmethod
    def sum_by_unit(self, values: Array) -> Array:
        """Return what a coin of each unit moves, [units, F], by what an item of each row is."""


def choose_swaps(panel: Panel, seed: int) -> Swaps:
    """Return the swaps of a panel: of clusters, of items, or of batches of very many items."""
    order = order_rows(panel)
    predictions = panel.rows[order, 1:]
    differing = _select_rows(panel, order[(predictions != predictions[:, :1]).any(axis=1)])
    if differing.groups is not None:
        clusters, place = np.unique(differing.groups, return_inverse=True)
        return UnitSwaps(differing, place, len(clusters))
    if len(differing) > MOST_ROWS:
        return BatchSwaps(differing, seed)
    return ItemSwaps(differing)


def _select_rows(panel: Panel, rows: Array) -> Panel:
    groups = None if panel.groups is None else panel.groups[rows]
    names = ("rows", "items", "weights", "squares")
    return replace(panel, **{name: getattr(panel, name)[rows] for name in names}, groups=groups)


class ItemSwaps(Swaps):
    """Items that share a row swap in numbers: a coin of a row is how many of its items do."""

    def __init__(self, panel: Panel) -> None:
        self.panel, self.units, self.counter = panel, len(panel), MatrixCounter(panel)
        self.counts = panel.weights.astype(np.int64)
        if self.counts.sum() <= MOST_ENUMERATED_UNITS:
            row = np.repeat(np.arange(self.units), self.counts)
            self.all = enumerate_coins(len(row)) @ (row[:, None] == np.arange(self.units))

    def draw(self, rng: "Generator", count: int) -> Array:
        """Return random coins."""
        coins = np.empty((count, self.units), np.int64)
        few = self.counts <= FEW_COINS
        if few.any():
            starts = np.cumsum(self.counts[few]) - self.counts[few]
            fallen = draw_coins(rng, int(self.counts[few].sum()), count)
            coins[:, few] = np.add.reduceat(fallen, starts, axis=1)
        many = self.counts[~few]
        coins[:, ~few] = rng.binomial(many, 0.5, (count, len(many)))
        return coins

    def count_matrices(self, coins: Array) -> Array:
        """Return the cells that take part in a swap."""
        return self.counter.count(coins)

    def sum_by_unit(self, values: Array) -> Array:
        """Return what a coin of each unit moves: an item."""
        return values


class UnitSwaps(Swaps):
    """All items of a unit swap together: a cluster, or a batch. `place` is the unit of each row."""

    def __init__(self, panel: Panel, place: Array, units: int) -> None:
        self.panel, self.place, self.units = panel, place, units
        self.size = len(panel.scale)
        self.first_cell = (place * self.size + panel.rows[:, 0]) * (self.size + 1)
        if units <= MOST_ENUMERATED_UNITS:
            self.all = enumerate_coins(units)

    def draw(self, rng: "Generator", count: int) -> Array:
        """Return random coins."""
        return draw_coins(rng, self.units, count)

    def count_matrices(self, coins: Array) -> Array:
        """Return the cells that take part in a swap."""
        size = self.size * (self.size + 1)
        sums = np.empty((len(coins), len(self.panel.systems), size))
        heads, exact = coins.astype(float), self.panel.has_integer_weights
        for system in range(sums.shape[1]):
            cells = self.first_cell + self.panel.rows[:, 1 + system]
            by_unit = np.bincount(cells, self.panel.weights, self.units * size)
            sums[:, system] = multiply_weights(
                heads, by_unit.reshape(self.units, size), exact=exact
            )
        return sums.reshape(*sums.shape[:2], self.size, self.size + 1)

    def sum_by_unit(self, values: Array) -> Array:
        """Return what a coin of each unit moves: all of its items."""
        parts = (self.panel.weights * column for column in values.T)
        return np.stack([np.bincount(self.place, part, self.units) for part in parts], axis=1)


class BatchSwaps(Swaps):
    """Items are put into batches at random, which swap together; rows of many items, in numbers.

    A batch is a unit like any other, so that p-values stay exact; with thousands of them nothing is
    lost, and the work does not grow with the items.
    """

    def __init__(self, panel: Panel, seed: int) -> None:
        counts = panel.weights.astype(np.int64)
        few = counts <= FEW_COINS
        self.panel = panel
        self.single = np.repeat(np.flatnonzero(few), counts[few])
        self.many = np.flatnonzero(~few)
        ones = np.ones(len(self.single))
        items = replace(
            _select_rows(panel, self.single),
            items=ones.astype(np.int64),
            weights=ones,
            squares=ones,
        )
        place = np.random.default_rng([seed, BATCHES]).integers(0, BATCHES, len(self.single))
        self.batches = UnitSwaps(items, place, BATCHES)
        self.rows = ItemSwaps(_select_rows(panel, self.many))
        self.units = self.batches.units + self.rows.units

    def draw(self, rng: "Generator", count: int) -> Array:
        """Return random coins."""
        return np.concatenate([self.batches.draw(rng, count), self.rows.draw(rng, count)], axis=1)

    def count_matrices(self, coins: Array) -> Array:
        """Return the cells that take part in a swap."""
        batches, rows = np.split(coins, [self.batches.units], axis=1)
        return self.batches.count_matrices(batches) + self.rows.count_matrices(rows)

    def sum_by_unit(self, values: Array) -> Array:
        """Return what a coin of each unit moves."""
        batches = self.batches.sum_by_unit(values[self.single])
        return np.concatenate([batches, self.rows.sum_by_unit(values[self.many])])
