"""Properties that a metric may have, each as pairs of tables that say how its values relate."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.meta.small_cases import batch, compositions, every_table
from ordinate.summaries import Confusion

Array = NDArray[Any]
Relation = Literal["equal", "better"]

PROPERTIES: dict[str, "Property"] = {}

# The most items that are tried for each number of levels.
TABLES = {2: 14, 3: 12, 4: 8, 5: 5}
PAIRS_OF_TABLES = {2: 10, 3: 8, 4: 5}
GOLD = {2: 20, 3: 20, 4: 14, 5: 12}
PRODUCTS = {2: 36, 3: 30, 4: 24}


class Cases(NamedTuple):
    """Pairs of tables, as places in two batches: `after` has to relate to `before`.

    `kind` tells cases of a property apart that are worth a verdict of their own.
    """

    before: Confusion
    after: Confusion
    first: Array
    second: Array
    kind: str = ""


Enumeration = Callable[[int, int], Iterator[Cases]]


@dataclass(frozen=True)
class Property:
    """A law that a metric may obey, and all its cases of a number of levels and of items.

    Over its cases, a metric must stay `equal`, or become `better`.
    """

    name: str
    says: str
    relation: Relation
    sizes: Mapping[int, int]
    cases: Enumeration = field(repr=False)


def law(relation: Relation, sizes: Mapping[int, int]) -> Callable[[Enumeration], Property]:
    """Declare a property: the docstring says what it asks for."""

    def declare(search: Enumeration) -> Property:
        says = " ".join((search.__doc__ or "").split())
        PROPERTIES[search.__name__] = Property(search.__name__, says, relation, sizes, search)
        return PROPERTIES[search.__name__]

    return declare


# --- the properties of Amigó et al. (2020) ----------------------------------------------------


@law("equal", PAIRS_OF_TABLES)
def invariance(levels: int, items: int) -> Iterator[Cases]:
    """Labels that are stretched in the same way on both sides change nothing."""
    cells, tables, _ = every_table(levels, items)
    for positions in stretchings(levels):
        yield _each(tables, batch(cells, positions))


@law("equal", PAIRS_OF_TABLES)
def unused_level(levels: int, items: int) -> Iterator[Cases]:
    """A further level that nobody uses, at an end or between two others, changes nothing."""
    cells, tables, _ = every_table(levels, items)
    for place in range(levels + 1):
        wider = np.insert(np.insert(cells, place, 0, axis=1), place, 0, axis=2)
        kind = {0: "at the bottom", levels: "at the top"}.get(place, "between")
        yield _each(tables, batch(wider))._replace(kind=kind)


@law("better", TABLES)
def monotonicity(levels: int, items: int) -> Iterator[Cases]:
    """A prediction that moves toward gold, from above or from below, makes the value better."""
    cells, tables, places = every_table(levels, items)
    for gold, far, near in moves(levels):
        first = np.flatnonzero(cells[:, gold, far])
        moved = cells[first]
        moved[:, gold, far] -= 1
        moved[:, gold, near] += 1
        yield Cases(tables, tables, first, places.of(moved.reshape(len(moved), -1)))


@law("better", {levels: items for levels, items in GOLD.items() if levels > 2})
def imbalance(levels: int, items: int) -> Iterator[Cases]:
    """One error in the larger of two classes, into the class between, is better than in the other.

    Everything else is right.
    """
    gold = compositions(levels, items)
    for small, middle, large in _neighbours(levels):
        kept = gold[(gold[:, small] > 0) & (gold[:, small] < gold[:, large])]
        before, after = (_one_error(kept, level, middle) for level in (small, large))
        yield _each(batch(before), batch(after))


# --- further laws -----------------------------------------------------------------------------


@law("equal", TABLES)
def symmetry(levels: int, items: int) -> Iterator[Cases]:
    """Gold and predictions may change places."""
    yield _turned(levels, items, lambda cells: cells.swapaxes(1, 2))


@law("equal", TABLES)
def reversal(levels: int, items: int) -> Iterator[Cases]:
    """The scale may be read from its other end."""
    yield _turned(levels, items, lambda cells: cells[:, ::-1, ::-1])


@law("equal", PAIRS_OF_TABLES)
def replication(levels: int, items: int) -> Iterator[Cases]:
    """Every item counted twice changes nothing."""
    cells, tables, _ = every_table(levels, items)
    yield _each(tables, batch(2 * cells))


@law("equal", GOLD)
def constant_outputs(levels: int, items: int) -> Iterator[Cases]:
    """All constant outputs for the same gold are worth the same."""
    gold = compositions(levels, items)
    constants = [batch(gold[:, :, None] * np.eye(levels, dtype=int)[k]) for k in range(levels)]
    for other in constants[1:]:
        yield _each(constants[0], other)


@law("equal", PRODUCTS)
def random_outputs(levels: int, items: int) -> Iterator[Cases]:
    """All outputs that do not depend on gold are worth the same, whatever levels they prefer.

    Gold is the same.
    """
    for answers in (k for k in range(2, items + 1) if items % k == 0):
        gold = compositions(levels, items // answers).astype(int)
        shares = compositions(levels, answers)
        shares = shares[(shares > 0).sum(axis=1) > 1]  # constant ones have a law of their own
        even = shares[np.argmin((shares.astype(int) ** 2).sum(axis=1))]
        cells = gold[:, None, :, None] * shares[None, :, None, :]
        first = np.repeat(np.arange(len(gold)), len(shares))
        preferring = batch(cells.reshape(-1, levels, levels))
        alike = batch(gold[:, :, None] * even)
        yield Cases(alike, preferring, first, np.arange(len(first)))


# --- what they are made of --------------------------------------------------------------------


def stretchings(levels: int) -> list[tuple[float, ...]]:
    """Return where the levels are put: one gap three times as wide, and 10 + x³ of the paper."""
    steps = np.ones((levels - 1, levels - 1)) + 2.0 * np.eye(levels - 1)
    wide = [(0.0, *np.cumsum(row).tolist()) for row in steps]
    return [*wide, tuple(10.0 + x**3 - 1.0 for x in range(1, levels + 1))]


def moves(levels: int) -> Iterator[tuple[int, int, int]]:
    """Yield every gold level with a level and another one that is nearer to it, on one side."""
    for gold in range(levels):
        for far in range(levels):
            step = 1 if far < gold else -1
            for near in range(far + step, gold + step, step) if far != gold else ():
                yield gold, far, near


def _neighbours(levels: int) -> Iterator[tuple[int, int, int]]:
    """Yield three levels in a row, up and down."""
    for middle in range(1, levels - 1):
        yield middle - 1, middle, middle + 1
        yield middle + 1, middle, middle - 1


def _one_error(gold: Array, level: int, answer: int) -> Array:
    """Return perfect tables but for one item of a level."""
    cells = gold[:, :, None] * np.eye(gold.shape[1], dtype=int)
    cells[:, level, level] -= 1
    cells[:, level, answer] += 1
    return cells


def _each(before: Confusion, after: Confusion) -> Cases:
    every = np.arange(len(before.weights))
    return Cases(before, after, every, every)


def _turned(levels: int, items: int, turn: Callable[[Array], Array]) -> Cases:
    cells, tables, places = every_table(levels, items)
    turned = turn(cells).reshape(len(cells), -1)
    return Cases(tables, tables, np.arange(len(cells)), places.of(turned))
