"""Subgroups and clusters of a regression: numbered, and the points about which they sum up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_
from typing import Any

import numpy as np

from ordinate.readers.cells import encode_values, number_groups
from ordinate.readers.expressions import Expression, choose, column, constant, look_up
from ordinate.readers.items import CLUSTER, SUBGROUP, Array, Table

FEW_KEYS = 64  # about whose own means is summed up: an engine is told of each
SPOT = "spot"


class RegressionKeys:
    """Keys 0, 1, …: the clusters within each subgroup that have items.

    `known` is a table of items by key, of which those with items are `usable`; a key may be in it
    more than once.
    """

    def __init__(self, known: Table, usable: Array, roles: Sequence[str]) -> None:
        self.roles, self.subgroups = roles, number_groups(known, SUBGROUP)
        self.table = {name: cells[usable] for name, cells in known.items()}
        self.clusters = number_groups(self.table, CLUSTER)
        numbers = self._number(self.table)
        self.numbers, self.of_row = np.unique(numbers, return_inverse=True)
        self.subgroup, self.cluster = np.divmod(self.numbers, max(len(self.clusters.values), 1))

    def _number(self, table: Table) -> Array:
        """Return a number for the subgroup and the cluster of each row."""
        by = encode_values(self.subgroups, table, SUBGROUP)
        return by * len(self.clusters.values) + encode_values(self.clusters, table, CLUSTER)

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, table: Table) -> Array:
        """Return the key of each row of another table of usable items."""
        return np.searchsorted(self.numbers, self._number(table))

    def take(self, name: str, extreme: np.ufunc) -> Array:
        """Return the smallest or the largest of each key: np.minimum or np.maximum."""
        return take_extremes(self.table[name].astype(float), self.of_row, len(self), extreme)

    def is_key(self, key: int, roles: Sequence[str]) -> Expression:
        """Tell whether an item has the subgroup or the cluster of a key, or both."""
        values = {
            SUBGROUP: self.subgroups.values[self.subgroup[key]],
            CLUSTER: self.clusters.values[self.cluster[key]],
        }
        return reduce(and_, [_is_value(column(role), values[role]) for role in roles])


def _is_value(cells: Expression, value: Any) -> Expression:
    """Tell whether a value stands in a cell, if it is one that every engine writes the same way."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return cells.is_missing()
    finite = isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    return cells == value if finite else constant(value=False)


def take_extremes(values: Array, place: Array, places: int, extreme: np.ufunc) -> Array:
    """Return the smallest or the largest value at each place."""
    found = np.full(places, np.inf if extreme is np.minimum else -np.inf)
    extreme.at(found, place, values)
    return found


@dataclass(frozen=True)
class Spots:
    """Points about which is summed up: those of keys, or of subgroups, or the one of all items.

    The last is that of all items: no sum is wrong if an engine finds an item at no other one.
    """

    number: Expression
    of_key: Array
    count: int

    @classmethod
    def choose(cls, keys: RegressionKeys) -> "Spots":
        """Return a spot for each key, or each subgroup, while they are few."""
        for roles in (keys.roles, [role for role in keys.roles if role == SUBGROUP]):
            parts = {SUBGROUP: keys.subgroup * (1 + keys.cluster.max()), CLUSTER: keys.cluster}
            code = sum((parts[role] for role in roles), np.zeros(len(keys), int))
            _, first, of_key = np.unique(code, return_index=True, return_inverse=True)
            if len(first) == 1:
                break
            if len(first) <= FEW_KEYS:
                cases = [(keys.is_key(key, roles), k) for k, key in enumerate(first.tolist())]
                number = choose(*chain.from_iterable(cases), len(first))
                return cls(number, of_key, len(first) + 1)
        return cls(constant(0), np.zeros(len(keys), int), 1)

    def take(self, values: Array, extreme: np.ufunc) -> Array:
        """Return the smallest or the largest of the values of the keys of each spot."""
        found = take_extremes(values, self.of_key, self.count, extreme)
        found[-1] = extreme.reduce(values)
        return found

    def pick(self, values: Array) -> Expression:
        """Return the value of the spot of an item."""
        return look_up(column(SPOT), values.tolist())
