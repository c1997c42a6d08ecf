"""Items counted where they are: a row for each set of labels and groups that occurs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ordinate.readers.expressions import Aggregate, column
from ordinate.readers.items import (
    CLUSTER,
    GOLD,
    IN_GOLD,
    IN_PREDICTED,
    MATCH_COUNTS,
    NTH,
    SECOND,
    SUBGROUP,
    WEIGHT,
    Array,
    ItemSource,
    Row,
    Table,
    build_weight_sums,
    has_weight,
    read_cell_sums,
)
from ordinate.readers.label_cells import LabelSpelling, RowLocator
from ordinate.readers.number_spelling import suggest_decimal
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.scale.label_maps import make_off_scale_error, suggest_label_map
from ordinate.scale.labels import is_missing
from ordinate.summaries.counting import CellSums
from ordinate.summaries.tabulation import MissingPolicy, make_missing_groups_error


class CountedCells:
    """The cells of items, as their engine counted them.

    `titles` says which columns there are, by role: what people call them. `sides` are those of
    labels; one without a title was made of other columns, and has the labels of the scale. `verb`
    says what the items are for, in errors; `sums` are summed up beside the weights.
    """

    def __init__(
        self,
        items: ItemSource,
        titles: Mapping[str, str],
        sides: Sequence[str],
        spelling: LabelSpelling,
        verb: str,
        sums: Mapping[str, Aggregate] = MappingProxyType({}),
    ) -> None:
        self.items, self.titles, self.spelling = items, titles, spelling
        self.places = RowLocator(items, titles.get(WEIGHT))
        self.notes: list[str] = []
        self.table = self._count(sides, verb, sums)
        self.sums: CellSums = read_cell_sums(self.table)
        self.clusters = number_groups(self.table, CLUSTER)
        self.sides = {x: factorize_column(self.table[x], titles.get(x, x)) for x in sides}
        self.spelled: dict[str, LabelSpelling] = {}  # how labels are spelled, by side
        self.unlabelled: dict[str, list[Any]] = {}  # what stands for a missing label, by side

    def _count(self, sides: Sequence[str], verb: str, more: Mapping[str, Aggregate]) -> Table:
        """Count inside the engine, and leave out what gold does not know."""
        weighted, keyed = WEIGHT in self.titles, self.items.keyed
        groups = [role for role in (SUBGROUP, CLUSTER) if role in self.titles]
        sums = {**build_weight_sums(weighted=weighted, keyed=keyed), **more}
        if CLUSTER in groups and self.items.ordered:
            sums[NTH] = Aggregate("min", column(NTH))
        joined = [IN_GOLD, IN_PREDICTED] if keyed else []
        where = has_weight(keyed=keyed) if weighted else None
        table = self.items.sum_by([*sides, *groups, *joined], sums, where)
        if weighted and table["wrong"].any():
            self.places.check_weights()
        self.match_counts = _count_joined_items(table) if keyed else None
        known = table[IN_GOLD].astype(bool) if keyed else slice(None)
        found = {name: cells[known] for name, cells in table.items()}
        if not len(found["items"]):
            self.places.refuse_no_items(verb)
        return found

    def encode(self, scale: Scale | None) -> tuple[Scale, dict[str, Array]]:
        """Return the scale, and the levels of each side; K is a missing label."""
        scores = set(self.sides) - {GOLD, SECOND} if self.spelling.renamed.edges else set()
        seen = {x for side, found in self.sides.items() if side not in scores for x in found.values}
        scale = self.spelling.find_scale(scale, seen, self.notes)
        cut = self.spelling.cut_scores(scale)
        for side in self.sides:
            usual = cut if side in scores else self.spelling
            self.spelled[side] = usual if side in self.titles else LabelSpelling()
        self._check_labels(scale)
        levels = {}
        for side, found in self.sides.items():
            positions = self.spelled[side].encode_labels(scale, found.values)[: len(found.values)]
            levels[side] = positions[found.codes]
            lacking = np.flatnonzero(positions == len(scale))
            self.unlabelled[side] = [found.values[k] for k in lacking]
        self.notes += self.spelling.renamed.describe(scale)
        return scale, levels

    def _check_labels(self, scale: Scale) -> None:
        """Refuse the labels of all sides that are not on the scale."""
        counts: Counter[Any] = Counter()
        places: list[Row] = []
        for side, found in self.sides.items():
            spelling, title = self.spelled[side], self.titles.get(side, side)
            unknown = spelling.find_off_scale_labels(scale, found.values)
            if not unknown:
                continue
            items = np.bincount(found.codes, self.sums.items, len(found.values)).astype(int)
            by_label = dict(zip(found.values, items.tolist(), strict=True))
            place, first = self.places.find_label(side, unknown, title)
            counts.update({spelling.rename_label(x): by_label[x] for x in unknown})
            places.append((place, spelling.rename_label(first)))
        if places:
            place, first = places[0]
            way = f"{suggest_label_map()}{suggest_decimal(first)}"
            raise make_off_scale_error(scale, counts, first, place, way)

    @property
    def alone(self) -> Array:
        """Which cells have no cluster."""
        return self.clusters.codes == len(self.clusters.values)

    def find_missing_labels(self, side: str) -> list[str]:
        """Return the first places without a label."""
        empty = {str(x): x for x in self.table[side] if is_missing(x)}  # None, "", and NaN
        if any(isinstance(x, str) for x in self.sides[side].values):
            empty.pop("nan", None)  # which is null to engines that have it among strings
        return self.places.find_missing_labels(side, [*self.unlabelled[side], *empty.values()])

    def refuse_missing_clusters(self, missing: MissingPolicy) -> None:
        """Refuse items without a cluster, unless they are left out."""
        if self.alone.any() and missing != "drop":
            count, n = int(self.sums.items[self.alone].sum()), int(self.sums.items.sum())
            places = self.places.find_empty_cells(CLUSTER)
            raise make_missing_groups_error(count, n, f"column {self.titles[CLUSTER]!r}", places)


def number_groups(table: Table, role: str) -> Groups:
    """Return the subgroups sorted, or the clusters in the order in which they appear, if known.

    Items without a subgroup are the last one; those without a cluster have the number after it.
    """
    if role not in table:
        return Groups([None], np.zeros(len(table["items"]), np.int64))
    found = factorize_column(table[role], "by" if role == SUBGROUP else "groups")
    if role == CLUSTER and NTH in table:
        first = np.full(len(found.values), np.inf)
        np.minimum.at(first, found.codes, table[NTH])
        order = np.argsort(first, kind="stable").tolist()
    else:
        order = _sort_values(found.values)
    if role == CLUSTER:
        order = [k for k in order if not is_missing(found.values[k])]
    return _renumber(found, order)


def _sort_values(values: list[Any]) -> list[int]:
    """Return the order of values, missing ones last."""
    try:
        return sorted(range(len(values)), key=lambda k: (is_missing(values[k]), values[k]))
    except TypeError:
        return sorted(range(len(values)), key=lambda k: (is_missing(values[k]), str(values[k])))


def _renumber(groups: Groups, order: list[int]) -> Groups:
    """Return the groups in another order; those that it lacks come after the last."""
    number = np.full(len(groups.values), len(order))
    number[order] = np.arange(len(order))
    return Groups([groups.values[k] for k in order], number[groups.codes])


def encode_values(groups: Groups, table: Table, role: str) -> Array:
    """Return the numbers of groups in the rows of another table; 0 where it has no such column."""
    if role not in table:
        return np.zeros(len(table["items"]), int)
    place = {value: k for k, value in enumerate(groups.values)}
    found = factorize_column(table[role])
    return np.array([place[value] for value in found.values], int)[found.codes]


def _count_joined_items(table: Table) -> dict[str, int]:
    in_gold, in_predicted = (table[name].astype(bool) for name in (IN_GOLD, IN_PREDICTED))
    found = zip(MATCH_COUNTS, (in_gold & in_predicted, ~in_predicted, ~in_gold), strict=True)
    return {name: int(table["items"][where].sum()) for name, where in found}
