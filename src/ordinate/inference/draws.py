"""Tables drawn again: what the sample could have been, as often as one likes.

A draw costs the cells of a table, whatever the number of items. Items with whole counts come from a
multinomial; items with real weights from gamma variables whose mean and variance are those of a
Poisson bootstrap of the items; groups are drawn whole.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.metrics import Metric
from ordinate.summary import Confusion

Array = NDArray[Any]
Redraw = Callable[[np.random.Generator, int], Array]  # how many tables: [size, K, K + 1]
BLOCK = 1 << 17  # numbers in a block: what the cache holds, and far below 100 MB


@dataclass(frozen=True)
class Draws:
    """How many draws, and from which seed: the same seed gives the same draws everywhere."""

    count: int = 2_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.count, int) and self.count >= 100):
            raise BadOption(f"{self.count} draws are too few for limits: take 100 or more.")
        if not (isinstance(self.seed, int) and self.seed >= 0):
            raise BadOption(f"The seed must be a whole number of at least 0, not {self.seed!r}.")

    def by_block(self, numbers: int, work: Callable[[np.random.Generator, int], Any]) -> list[Any]:
        """Do the work for blocks of draws that each hold so many numbers, on all cores.

        Each block has its own stream, so that the result does not depend on who draws first.
        """
        size = max(1, BLOCK // max(1, numbers))
        sizes = [min(size, self.count - first) for first in range(0, self.count, size)]
        streams = [np.random.default_rng([self.seed, index]) for index in range(len(sizes))]
        workers = min(len(sizes), os.cpu_count() or 1)
        if workers == 1:
            return list(map(work, streams, sizes))
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - small jobs need none

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, streams, sizes))


def replicate(
    metrics: Sequence[Metric], table: Confusion, redraw: Redraw, draws: Draws, numbers: int = 0
) -> dict[str, Array]:
    """Return the values of metrics, by expression, on tables drawn in place of one table."""

    def work(rng: np.random.Generator, size: int) -> list[Array]:
        drawn = table.with_cells(redraw(rng, size))
        return [metric.of_expected(drawn, table) for metric in metrics]

    if not metrics:
        return {}
    blocks = draws.by_block(max(table.weights.size, numbers), work)
    values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return {metric.expression: found for metric, found in zip(metrics, values, strict=True)}


def redrawing(source: Confusion, *, stratified: bool = False) -> Redraw:
    """Return how to draw one table again, or the pooled table of groups (a batch of tables).

    Stratified draws keep the number of items of each gold level.
    """
    if source.shape:
        if stratified:
            raise BadOption("Groups are drawn whole, so draws cannot be stratified by gold level.")
        return _groups(source)
    return _items(source, stratified) if source.whole else _weights(source, stratified)


def _items(table: Confusion, stratified: bool) -> Redraw:  # noqa: FBT001 - named where it is set
    strata = table.weights if stratified else table.weights.reshape(1, -1)

    def draw(rng: np.random.Generator, size: int) -> Array:
        cells = np.zeros((size, *strata.shape))
        for index, stratum in enumerate(strata):
            cells[:, index] = multinomial(rng, stratum, size)
        return cells.reshape(size, *table.weights.shape)

    return draw


def multinomial(rng: np.random.Generator, counts: Array, size: int) -> Array:
    """Return as many items as there are, drawn again from the cells that have any."""
    filled = np.flatnonzero(counts)
    total = counts.sum()
    drawn = np.zeros((size, len(counts)))
    if len(filled):
        drawn[:, filled] = rng.multinomial(int(total), counts[filled] / total, size)
    return drawn


def _weights(table: Confusion, stratified: bool) -> Redraw:  # noqa: FBT001 - named where it is set
    filled = table.weights > 0
    sums, squares = table.weights[filled], table.squares[filled]

    def draw(rng: np.random.Generator, size: int) -> Array:
        cells = np.zeros((size, *table.weights.shape))
        cells[:, filled] = rng.gamma(sums**2 / squares, squares / sums, (size, len(sums)))
        if stratified:
            drawn = cells.sum(axis=-1)
            cells *= np.divide(table.gold, drawn, out=np.zeros_like(drawn), where=drawn > 0)[
                ..., None
            ]
        return cells

    return draw


def _groups(batch: Confusion) -> Redraw:
    tables = batch.weights.reshape(-1, *batch.weights.shape[-2:])
    flat = tables.reshape(len(tables), -1)

    def draw(rng: np.random.Generator, size: int) -> Array:
        return (group_draws(rng, len(flat), size) @ flat).reshape(size, *tables.shape[1:])

    return draw


def group_draws(rng: np.random.Generator, groups: int, size: int) -> Array:
    """Return how often each group is drawn, as [size, groups]."""
    return rng.multinomial(groups, np.full(groups, 1.0 / groups), size).astype(float)
