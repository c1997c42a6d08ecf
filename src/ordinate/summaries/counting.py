"""Counting: how often each pair of codes occurs, in one pass near the speed of memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadWeights
from ordinate.scale.encoding import CHUNK, LabelCodes

MOST_BINS = 1 << 16  # what the cache holds
ROWS_PER_BATCH = 16 * CHUNK  # items given to one histogram
LIGHTEST_WEIGHT, HEAVIEST_WEIGHT = 1e-75, 1e75  # the cubes of whose sums are still numbers
MOST_ITEMS = 2.0**53  # up to which integers are exact
MOST_CELLS = 1 << 27  # of a batch of matrices: a gigabyte for each of its sums
Counts = NDArray[np.int64]


class CellSums(NamedTuple):
    """Per cell: the number of items, the sum of weights, the sum of squared weights.

    `fractions` is how many items have a weight that is no integer; None says that none has.
    """

    items: NDArray[Any]
    weights: NDArray[Any]
    squares: NDArray[Any]
    fractions: NDArray[Any] | None = None

    def map(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> "CellSums":
        """Return the sums, each changed in the same way."""
        return CellSums(*(None if part is None else change(part) for part in self))  # type: ignore[arg-type] # only the last may be None

    @property
    def counted(self) -> bool:
        """Whether every weight is an integer, and so a count of items."""
        return self.fractions is None or not self.fractions.any()


def are_counts(weights: NDArray[Any]) -> bool:
    """Tell whether weights are integers, and so counts of items."""
    return bool(((weights == np.floor(weights)) & (weights < MOST_ITEMS)).all())


def check_group_count(groups: int, levels: int) -> None:
    """Refuse a batch of confusion matrices, one for each group, that does not fit into memory."""
    if groups * levels * (levels + 1) > MOST_CELLS:
        raise BadInput(
            f"{groups:,} groups on a scale of {levels} levels are too many for a matrix of each: "
            f"at most {MOST_CELLS // (levels * (levels + 1)):,} groups. Take a coarser scale or "
            "larger groups."
        )


def count_pairs(rows: LabelCodes, columns: LabelCodes) -> Counts:
    """Return how many items have each pair of codes.

    A histogram costs a step for each number it is given, so several items share one number: the
    chunk is cut into `fold` runs, whose cells become the digits of one number.
    """
    height, width = len(rows.levels), len(columns.levels)
    cells, n = height * width, len(rows)
    fold = _choose_fold(cells, n)
    joiner = _CodeJoiner(cells, fold, min(n, ROWS_PER_BATCH))
    numbers = np.zeros(cells**fold, np.int64)
    rest = np.zeros(cells, np.int64)
    for start in range(0, n, ROWS_PER_BATCH):
        cell = joiner.join_codes(rows, columns, start, min(start + ROWS_PER_BATCH, n))
        paired = len(cell) // fold * fold
        numbers += np.bincount(joiner.join_runs(cell[:paired]), minlength=cells**fold)
        rest += np.bincount(cell[paired:], minlength=cells)
    digits = numbers.reshape((cells,) * fold)
    for axis in range(fold):
        rest += digits.sum(axis=tuple(k for k in range(fold) if k != axis))
    return rest.reshape(height, width)


def _choose_fold(cells: int, n: int) -> int:
    """Return how many items share a number: as many as the cache and the data make worthwhile."""
    fold = 1
    while fold < 3 and cells ** (fold + 1) <= min(MOST_BINS, n // 16):
        fold += 1
    return fold


class _CodeJoiner:
    """The buffers between labels and the histogram, allocated once."""

    def __init__(self, cells: int, fold: int, size: int) -> None:
        self.cells, self.fold = cells, fold
        self.cell = np.empty(size, np.min_scalar_type(cells))
        self.column = np.empty(min(size, CHUNK), self.cell.dtype)
        self.number = np.empty(size // fold, np.min_scalar_type(cells**fold))
        self.wide = np.empty(size // fold, np.intp)

    def join_codes(
        self, rows: LabelCodes, columns: LabelCodes, start: int, stop: int
    ) -> NDArray[Any]:
        """Return row * width + column of these items."""
        width = len(columns.levels)
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            cell, column = self.cell[first - start : last - start], self.column[: last - first]
            np.copyto(cell, rows.chunk(first, last), casting="unsafe")
            np.copyto(column, columns.chunk(first, last), casting="unsafe")
            np.multiply(cell, width, out=cell)
            np.add(cell, column, out=cell)
        return self.cell[: stop - start]

    def join_runs(self, cell: NDArray[Any]) -> NDArray[np.intp]:
        """Return numbers whose digits are the cells of `fold` runs of items."""
        runs = cell.reshape(self.fold, -1)
        number, wide = self.number[: runs.shape[1]], self.wide[: runs.shape[1]]
        np.copyto(number, runs[0])
        for run in runs[1:]:
            np.multiply(number, self.cells, out=number)
            np.add(number, run, out=number)
        np.copyto(wide, number, casting="unsafe")
        return wide


def count_weighted(rows: LabelCodes, columns: LabelCodes, weights: NDArray[np.float64]) -> CellSums:
    """Return items, weights and squared weights of each pair of codes; weight 0 is no item."""
    height, width = len(rows.levels), len(columns.levels)
    items, fractions = np.zeros((2, height * width), np.int64)
    sums = np.zeros((2, height * width))
    for start in range(0, len(rows), CHUNK):
        stop = min(start + CHUNK, len(rows))
        weight = check_weights(weights[start:stop], start)
        cell = rows.chunk(start, stop).astype(np.intp) * width
        cell += columns.chunk(start, stop).astype(np.intp)
        items += np.bincount(cell[weight > 0], minlength=height * width)
        sums[0] += np.bincount(cell, weights=weight, minlength=height * width)
        sums[1] += np.bincount(cell, weights=weight**2, minlength=height * width)
        broken = weight != np.floor(weight)
        if broken.any():
            fractions += np.bincount(cell[broken], minlength=height * width)
    flat = CellSums(items, sums[0], sums[1], fractions)
    return flat.map(lambda x: x.reshape(height, width))


def check_weights(
    weight: NDArray[np.float64],
    start: int,
    bounds: tuple[float, float] = (LIGHTEST_WEIGHT, HEAVIEST_WEIGHT),
) -> NDArray[np.float64]:
    """Return weights that are 0 or within bounds, or say which is not."""
    least, most = bounds
    bad = (weight != 0) & ~((weight >= least) & (weight < most))
    if bad.any():
        row = int(np.argmax(bad))
        raise BadWeights(
            f"Weight {weight[row]} (row {start + row + 1}) is neither 0 nor a number from "
            f"{least:g} to {most:g}."
        )
    return weight


class GroupedCodes(LabelCodes):
    """Codes of groups and of rows as one: group * height + row."""

    def __init__(self, groups: NDArray[np.int64], size: int, rows: LabelCodes) -> None:
        self.groups, self.rows = groups, rows
        self.levels = np.tile(rows.levels, size)

    def __len__(self) -> int:
        return len(self.rows)

    def chunk(self, start: int, stop: int) -> NDArray[Any]:
        """Return the joint codes of these items."""
        height = len(self.rows.levels)
        return self.groups[start:stop] * height + self.rows.chunk(start, stop).astype(np.int64)

    def label(self, row: int) -> Any:
        """Return the row's own label."""
        return self.rows.label(row)


def sum_single_items(n: int, weights: NDArray[Any] | None) -> CellSums:
    """Return items, weights and squared weights of single items; weight 0 is no item."""
    if weights is None:
        ones = np.ones(n, np.int64)
        return CellSums(ones, ones.astype(float), ones.astype(float))
    weights = check_weights(weights, 0)
    fractions = (weights != np.floor(weights)).astype(np.int64)
    return CellSums((weights > 0).astype(np.int64), weights, weights**2, fractions)
