"""Items, wherever they are: what is asked of a source, which sums up where the data lie."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.expressions import COUNT, Aggregate, Expression, column, count_where
from ordinate.scale.encoding import Groups
from ordinate.summaries.counting import HEAVIEST_WEIGHT, LIGHTEST_WEIGHT, CellSums

if TYPE_CHECKING:
    from ordinate.readers.batches import Batches

Array = NDArray[Any]
Sums = Mapping[str, Aggregate]
Row = tuple[Any, ...]  # a place, and what stands there
Table = dict[str, Array]  # columns of a few rows: keys as objects, None where missing, and numbers

# Columns of items, by role.
GOLD, PREDICTED, SECOND = "gold", "predicted", "second"
SUBGROUP, CLUSTER, WEIGHT = "subgroup", "cluster", "weight"
IN_GOLD, IN_PREDICTED, NTH = "in_gold", "in_predicted", "nth"
SOMEWHERE = "a row"  # of a lazy table, whose rows have no numbers
BESIDE_GOLD = (PREDICTED, SECOND, CLUSTER)  # an item without one of them is missing
MATCH_COUNTS = ("matched", "missing", "unknown")  # of items that were joined by an id


class ItemSource(Protocol):
    """Items of a file, a frame or a database, whose columns are named by their roles.

    `keyed` items were joined by an id, and may lack gold or a prediction (`in_gold`,
    `in_predicted`); `ordered` ones have a place (`nth`) each.
    """

    @property
    def name(self) -> str:
        """What people call the data."""

    @property
    def keyed(self) -> bool:
        """Whether items were joined by an id."""

    @property
    def ordered(self) -> bool:
        """Whether items have a place each."""

    def add_columns(self, columns: Mapping[str, Expression]) -> "ItemSource":
        """Return the items with more columns."""

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items that share all keys, a row for each."""

    def open_batches(
        self, numbers: Sequence[str], keys: Mapping[str, Groups], where: Expression
    ) -> "Batches":
        """Return columns of numbers, and the numbers of keys, where a condition holds."""

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return the first places where a condition holds, and what stands there."""


def name_places(rows: Iterable[Row]) -> list[Row]:
    """Return rows of no order, which begin with where they stand."""
    return [(SOMEWHERE, *row) for row in rows]


def build_weight_sums(*, weighted: bool, keyed: bool) -> dict[str, Aggregate]:
    """Return what `CellSums` need, and how many weights are none."""
    if not weighted:
        return {"items": COUNT}
    weight = column(WEIGHT).to_number()
    wrong = is_wrong_weight(weight)
    return {
        "items": COUNT,
        "weight": Aggregate("sum", weight),
        "square": Aggregate("sum", weight * weight),
        "fractions": count_where(weight != weight.floor()),
        "wrong": count_where(column(IN_GOLD) & wrong if keyed else wrong),
    }


def is_wrong_weight(weight: Expression) -> Expression:
    """Tell whether a weight is neither 0 nor a number that can be cubed."""
    right = (weight == 0) | ((weight >= LIGHTEST_WEIGHT) & (weight < HEAVIEST_WEIGHT))
    return weight.is_missing() | ~(weight.is_finite() & right)


def has_weight(*, keyed: bool) -> Expression:
    """Tell whether an item counts: one of weight 0 does not exist; wrong ones are counted."""
    weight = column(WEIGHT).to_number()
    there = weight.is_missing() | (weight != 0)
    return ~column(IN_GOLD) | there if keyed else there


def read_cell_sums(table: Table) -> CellSums:
    """Return the sums of each row of a table."""
    items = table["items"].astype(np.int64)
    if "weight" not in table:
        return CellSums(items, items.astype(float), items.astype(float))
    weights, squares = (table[name].astype(float) for name in ("weight", "square"))
    return CellSums(items, weights, squares, table["fractions"].astype(np.int64))
