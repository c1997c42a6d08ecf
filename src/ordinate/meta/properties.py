"""Properties that a metric may have, each as pairs of tables that say how its values relate."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.meta.small_cases import enumerate_tables, list_compositions, make_batch
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Relation = Literal["equal", "better"]

PROPERTIES: dict[str, "MetricProperty"] = {}

# The most items that are tried for each number of levels.
TABLE_SIZES = {2: 14, 3: 12, 4: 8, 5: 5}
TABLE_PAIR_SIZES = {2: 10, 3: 8, 4: 5}
GOLD_SIZES = {2: 20, 3: 20, 4: 14, 5: 12}
PRODUCT_SIZES = {2: 36, 3: 30, 4: 24}


class CasePairs(NamedTuple):
    """Pairs of tables, as places in two batches: `after` has to relate to `before`.

    `kind` tells cases of a property apart that are worth a verdict of their own.
    """

    before: ConfusionMatrix
    after: ConfusionMatrix
    first: Array
    second: Array
    kind: str = ""


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
    """Declare a property: the docstring says what it asks for."""

    def declare(search: CaseEnumerator) -> MetricProperty:
        says = " ".join((search.__doc__ or "").split())
        PROPERTIES[search.__name__] = MetricProperty(search.__name__, says, relation, sizes, search)
        return PROPERTIES[search.__name__]

    return declare


# --- the properties of Amigó et al. (2020) ----------------------------------------------------


@declare_property("equal", TABLE_PAIR_SIZES)
def invariance(levels: int, items: int) -> Iterator[CasePairs]:
    """Labels that are stretched in the same way on both sides change nothing."""
    cells, tables, _ = enumerate_tables(levels, items)
    for positions in list_stretchings(levels):
        yield _pair_in_order(tables, make_batch(cells, positions))


@declare_property("equal", TABLE_PAIR_SIZES)
def unused_level(levels: int, items: int) -> Iterator[CasePairs]:
    """A further level that nobody uses, at an end or between two others, changes nothing."""
    cells, tables, _ = enumerate_tables(levels, items)
    for place in range(levels + 1):
        wider = np.insert(np.insert(cells, place, 0, axis=1), place, 0, axis=2)
        kind = {0: "at the bottom", levels: "at the top"}.get(place, "between")
        yield _pair_in_order(tables, make_batch(wider))._replace(kind=kind)


@declare_property("better", TABLE_SIZES)
def monotonicity(levels: int, items: int) -> Iterator[CasePairs]:
    """A prediction that moves toward gold, from above or from below, makes the value better."""
    cells, tables, places = enumerate_tables(levels, items)
    for gold, far, near in iterate_moves(levels):
        first = np.flatnonzero(cells[:, gold, far])
        moved = cells[first]
        moved[:, gold, far] -= 1
        moved[:, gold, near] += 1
        yield CasePairs(tables, tables, first, places.of(moved.reshape(len(moved), -1)))


@declare_property("better", {levels: items for levels, items in GOLD_SIZES.items() if levels > 2})
def imbalance(levels: int, items: int) -> Iterator[CasePairs]:
    """One error in the larger of two classes, into the class between, is better than in the other.

    Everything else is right.
    """
    gold = list_compositions(levels, items)
    for small, middle, large in _iterate_neighbours(levels):
        kept = gold[(gold[:, small] > 0) & (gold[:, small] < gold[:, large])]
        before, after = (_make_one_error(kept, level, middle) for level in (small, large))
        yield _pair_in_order(make_batch(before), make_batch(after))


# --- further laws -----------------------------------------------------------------------------


@declare_property("equal", TABLE_SIZES)
def symmetry(levels: int, items: int) -> Iterator[CasePairs]:
    """Gold and predictions may change places."""
    yield _pair_with_transformed(levels, items, lambda cells: cells.swapaxes(1, 2))


@declare_property("equal", TABLE_SIZES)
def reversal(levels: int, items: int) -> Iterator[CasePairs]:
    """The scale may be read from its other end."""
    yield _pair_with_transformed(levels, items, lambda cells: cells[:, ::-1, ::-1])


@declare_property("equal", TABLE_PAIR_SIZES)
def replication(levels: int, items: int) -> Iterator[CasePairs]:
    """Every item counted twice changes nothing."""
    cells, tables, _ = enumerate_tables(levels, items)
    yield _pair_in_order(tables, make_batch(2 * cells))


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
    for answers in (k for k in range(2, items + 1) if items % k == 0):
        gold = list_compositions(levels, items // answers).astype(int)
        shares = list_compositions(levels, answers)
        shares = shares[(shares > 0).sum(axis=1) > 1]  # constant ones have a law of their own
        even = shares[np.argmin((shares.astype(int) ** 2).sum(axis=1))]
        cells = gold[:, None, :, None] * shares[None, :, None, :]
        first = np.repeat(np.arange(len(gold)), len(shares))
        preferring = make_batch(cells.reshape(-1, levels, levels))
        alike = make_batch(gold[:, :, None] * even)
        yield CasePairs(alike, preferring, first, np.arange(len(first)))


# --- what they are made of --------------------------------------------------------------------


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


def _make_one_error(gold: Array, level: int, answer: int) -> Array:
    """Return perfect tables but for one item of a level."""
    cells = gold[:, :, None] * np.eye(gold.shape[1], dtype=int)
    cells[:, level, level] -= 1
    cells[:, level, answer] += 1
    return cells


def _pair_in_order(before: ConfusionMatrix, after: ConfusionMatrix) -> CasePairs:
    every = np.arange(len(before.weights))
    return CasePairs(before, after, every, every)


def _pair_with_transformed(levels: int, items: int, turn: Callable[[Array], Array]) -> CasePairs:
    cells, tables, places = enumerate_tables(levels, items)
    turned = turn(cells).reshape(len(cells), -1)
    return CasePairs(tables, tables, np.arange(len(cells)), places.of(turned))
