"""Formal properties of metrics, each as pairs of confusion matrices whose values must relate."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Relation = Literal["equal", "better"]

PROPERTIES: dict[str, "MetricProperty"] = {}

# The most items that are tried for each number of levels.
MATRIX_SIZES = {2: 14, 3: 12, 4: 8, 5: 5}
MATRIX_PAIR_SIZES = {2: 10, 3: 8, 4: 5}
GOLD_SIZES = {2: 20, 3: 20, 4: 14, 5: 12}
PRODUCT_SIZES = {2: 36, 3: 30, 4: 24}


class CasePairs(NamedTuple):
    """Pairs of confusion matrices, as places in two batches: `after` has to relate to `before`.

    A `variant` of a property has a verdict of its own.
    """

    before: ConfusionMatrix
    after: ConfusionMatrix
    first: Array
    second: Array
    variant: str = ""


CaseEnumerator = Callable[[int, int], Iterator[CasePairs]]


@dataclass(frozen=True)
class MetricProperty:
    """A law that a metric may obey, and all its cases of a number of levels and of items.

    Over its cases, a metric must stay `equal`, or become `better`.
    """

    name: str
    statement: str
    relation: Relation
    sizes: Mapping[int, int]
    cases: CaseEnumerator = field(repr=False)


def declare_property(
    relation: Relation, sizes: Mapping[int, int]
) -> Callable[[CaseEnumerator], MetricProperty]:
    """Declare a property: the docstring states it."""

    def declare(search: CaseEnumerator) -> MetricProperty:
        says = " ".join((search.__doc__ or "").split())
        PROPERTIES[search.__name__] = MetricProperty(search.__name__, says, relation, sizes, search)
        return PROPERTIES[search.__name__]

    return declare


# --- the properties of Amigó et al. (2020) ----------------------------------------------------


@declare_property("equal", MATRIX_PAIR_SIZES)
def invariance(levels: int, items: int) -> Iterator[CasePairs]:
    """Labels that are stretched in the same way on both sides change nothing."""
    cells, matrices, _ = enumerate_matrices(levels, items)
    for positions in list_stretchings(levels):
        yield _pair_in_order(matrices, make_batch(cells, positions))


@declare_property("equal", MATRIX_PAIR_SIZES)
def unused_level(levels: int, items: int) -> Iterator[CasePairs]:
    """A further level that nobody uses, at an end or between two others, changes nothing."""
    cells, matrices, _ = enumerate_matrices(levels, items)
    for place in range(levels + 1):
        wider = np.insert(np.insert(cells, place, 0, axis=1), place, 0, axis=2)
        variant = {0: "at the bottom", levels: "at the top"}.get(place, "between")
        yield _pair_in_order(matrices, make_batch(wider))._replace(variant=variant)


@declare_property("better", MATRIX_SIZES)
def monotonicity(levels: int, items: int) -> Iterator[CasePairs]:
    """A prediction that moves toward gold, from above or from below, makes the value better."""
    cells, matrices, places = enumerate_matrices(levels, items)
    for gold, far, near in iterate_moves(levels):
        first = np.flatnonzero(cells[:, gold, far])
        moved = cells[first]
        moved[:, gold, far] -= 1
        moved[:, gold, near] += 1
        yield CasePairs(matrices, matrices, first, places.of(moved.reshape(len(moved), -1)))


@declare_property("better", {levels: items for levels, items in GOLD_SIZES.items() if levels > 2})
def imbalance(levels: int, items: int) -> Iterator[CasePairs]:
    """One error in the larger of two classes, into the class between, is better than in the other.

    Everything else is right.
    """
    gold = list_compositions(levels, items)
    for small, middle, large in _iterate_neighbours(levels):
        eligible = gold[(gold[:, small] > 0) & (gold[:, small] < gold[:, large])]
        before, after = (_make_one_error(eligible, level, middle) for level in (small, large))
        yield _pair_in_order(make_batch(before), make_batch(after))


# --- further laws -----------------------------------------------------------------------------


@declare_property("equal", MATRIX_SIZES)
def symmetry(levels: int, items: int) -> Iterator[CasePairs]:
    """Gold and predictions may change places."""
    yield _pair_with_transformed(levels, items, lambda cells: cells.swapaxes(1, 2))


@declare_property("equal", MATRIX_SIZES)
def reversal(levels: int, items: int) -> Iterator[CasePairs]:
    """The scale may be read from its other end."""
    yield _pair_with_transformed(levels, items, lambda cells: cells[:, ::-1, ::-1])


@declare_property("equal", MATRIX_PAIR_SIZES)
def replication(levels: int, items: int) -> Iterator[CasePairs]:
    """Every item counted twice changes nothing."""
    cells, matrices, _ = enumerate_matrices(levels, items)
    yield _pair_in_order(matrices, make_batch(2 * cells))


@declare_property("equal", GOLD_SIZES)
def constant_outputs(levels: int, items: int) -> Iterator[CasePairs]:
    """All constant outputs for the same gold are worth the same."""
    gold = list_compositions(levels, items)
    constants = [make_batch(gold[:, :, None] * np.eye(levels, dtype=int)[k]) for k in range(levels)]
    for other in constants[1:]:
        yield _pair_in_order(constants[0], other)


@declare_property("equal", PRODUCT_SIZES)
def random_outputs(levels: int, items: int) -> Iterator[CasePairs]:
    """All outputs that do not depend on gold are worth the same, whatever levels they prefer.

    Gold is the same.
    """
    for divisor in (k for k in range(2, items + 1) if items % k == 0):
        gold = list_compositions(levels, items // divisor).astype(int)
        shares = list_compositions(levels, divisor)
        shares = shares[(shares > 0).sum(axis=1) > 1]  # constant ones have a law of their own
        even = shares[np.argmin((shares.astype(int) ** 2).sum(axis=1))]
        cells = gold[:, None, :, None] * shares[None, :, None, :]
        first = np.repeat(np.arange(len(gold)), len(shares))
        preferring = make_batch(cells.reshape(-1, levels, levels))
        alike = make_batch(gold[:, :, None] * even)
        yield CasePairs(alike, preferring, first, np.arange(len(first)))


# --- pairs of cases ---------------------------------------------------------------------------


def list_stretchings(levels: int) -> list[tuple[float, ...]]:
    """Return where the levels are put: one gap three times as wide, and 10 + x³ of the paper."""
    steps = np.ones((levels - 1, levels - 1)) + 2.0 * np.eye(levels - 1)
    wide = [(0.0, *np.cumsum(row).tolist()) for row in steps]
    return [*wide, tuple(10.0 + x**3 - 1.0 for x in range(1, levels + 1))]


def iterate_moves(levels: int) -> Iterator[tuple[int, int, int]]:
    """Yield every gold level with a level and another one that is nearer to it, on one side."""
    for gold in range(levels):
        for far in range(levels):
            step = 1 if far < gold else -1
            for near in range(far + step, gold + step, step) if far != gold else ():
                yield gold, far, near


def _iterate_neighbours(levels: int) -> Iterator[tuple[int, int, int]]:
    """Yield three levels in a row, up and down."""
    for middle in range(1, levels - 1):
        yield middle - 1, middle, middle + 1
        yield middle + 1, middle, middle - 1


def _make_one_error(gold: Array, level: int, predicted: int) -> Array:
    """Return perfect matrices but for one item of a level."""
    cells = gold[:, :, None] * np.eye(gold.shape[1], dtype=int)
    cells[:, level, level] -= 1
    cells[:, level, predicted] += 1
    return cells


def _pair_in_order(before: ConfusionMatrix, after: ConfusionMatrix) -> CasePairs:
    every = np.arange(len(before.weights))
    return CasePairs(before, after, every, every)


def _pair_with_transformed(levels: int, items: int, turn: Callable[[Array], Array]) -> CasePairs:
    cells, matrices, places = enumerate_matrices(levels, items)
    turned = turn(cells).reshape(len(cells), -1)
    return CasePairs(matrices, matrices, np.arange(len(cells)), places.of(turned))


# --- all small confusion matrices -----------------------------------------------------------------


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
    """The place of a composition among all of the same total and number of parts."""

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
    """Return matrices [B, K, K] as a batch; the levels are named by their positions, from 1."""
    size = cells.shape[-1]
    at = tuple(range(size)) if positions is None else positions
    scale = Scale([1 + place for place in at], positions=at)
    counts = np.zeros((*cells.shape[:-1], size + 1))
    counts[..., :-1] = cells
    return ConfusionMatrix(scale, counts, counts, counts)


@lru_cache(maxsize=2)  # properties of the same matrices share them
def enumerate_matrices(levels: int, items: int) -> tuple[Array, ConfusionMatrix, CompositionIndex]:
    """Return all matrices of a size as integers and as a batch, and the index of their places."""
    rows = list_compositions(levels**2, items)
    cells = rows.reshape(-1, levels, levels)
    return cells, make_batch(cells), CompositionIndex(levels**2, items)
