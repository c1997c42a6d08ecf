"""Confusion matrices of items, counted where they are: in files, frames and databases."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.columns import LabelColumns
from ordinate.readers.duckdb_connection import Watch, connect
from ordinate.readers.expressions import Aggregate, column
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_query import QueryPlanner, write_disagreements
from ordinate.readers.items import (
    CLUSTER,
    GOLD,
    IN_GOLD,
    IN_PREDICTED,
    NTH,
    PREDICTED,
    SECOND,
    SUBGROUP,
    WEIGHT,
    ItemSource,
    Table,
    build_weight_sums,
    has_weight,
    read_cell_sums,
)
from ordinate.readers.label_cells import LabelSpelling, RowLocator
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.scale.detection import find_carried_scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.scale.labels import is_missing
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import CellSums, check_group_count
from ordinate.summaries.tabulation import (
    DROP_HINT,
    MissingPolicy,
    MissingRows,
    make_missing_groups_error,
    make_missing_labels_error,
)

Array = NDArray[Any]
SIDES = (GOLD, PREDICTED, SECOND)  # columns of labels


@dataclass(frozen=True)
class ConfusionData:
    """The confusion matrices of items, and what a report says of where they came from.

    With groups, `groups` has a matrix for each, `group_values` says which they are, and `by` has
    for each subgroup a batch of the matrices of its groups. `second_rater` and `second_rater_by`
    are those of the second rater's labels, on the same items; with groups, a batch of them.
    """

    matrix: ConfusionMatrix
    by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    gold: str = GOLD
    predicted: str = PREDICTED
    files: tuple[str, ...] = ()
    match_counts: dict[str, int] | None = None
    notes: tuple[str, ...] = ()
    groups: ConfusionMatrix | None = None
    second_rater: ConfusionMatrix | None = None
    second_rater_by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    group_values: tuple[Any, ...] = ()


def count_files(
    paths: list[str],
    columns: LabelColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    items: Path | None = None,
    check_groups: Callable[[list[Any]], None] = lambda _: None,
    watch: Watch = lambda _: nullcontext(),
) -> ConfusionData:
    """Count files into confusion matrices; `items` is where the items that disagree are written.

    `check_groups` may refuse the groups that there are, before any label is looked at.
    """
    with (
        connect() as connection,
        open_sources(connection, columns.delimiter, columns.encoding) as reader,
        watch(connection),
    ):
        gold_files = reader.describe_files([columns.gold_file]) if columns.gold_file else []
        planner = QueryPlanner(connection, gold_files, reader.describe_files(paths), columns)
        found = planner.build_items()
        spelling = LabelSpelling(columns.renamed)
        reading = ConfusionReader(found, planner.list_titles(), spelling)
        check_groups(reading.clusters.values)
        data = reading.read(scale, missing)
        if items is not None:
            wrong, unanswered = reading.list_disagreements(data.matrix.scale)
            write_disagreements(connection, found.parts, wrong, unanswered, items)
    names = tuple(source.name for source in (*gold_files, *planner.files))
    return replace(data, files=names, notes=(*planner.notes, *data.notes))


ROLES = {  # of arguments that name columns
    "gold": GOLD,
    "predicted": PREDICTED,
    "weights": WEIGHT,
    "by": SUBGROUP,
    "groups": CLUSTER,
    "second_rater": SECOND,
}


def count_table(
    table: LazyTable,
    names: Mapping[str, str],
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    renamed: Mapping[str, str | None] | None = None,
) -> ConfusionData:
    """Count a table where it is; `names` are those of its columns, by argument."""
    refuse_unnamed_columns(names, GOLD, PREDICTED)
    titles = {ROLES[argument]: name for argument, name in names.items()}
    orders = (table.columns[titles[side]] for side in SIDES if side in titles)
    notes: tuple[str, ...] = ()
    if scale is None and (scale := find_carried_scale(orders)) is not None:
        notes = ("The scale is the order that the column declares.",)
    reading = ConfusionReader(table.open_items(titles), titles, LabelSpelling(renamed or {}))
    data = reading.read(scale, missing)
    return replace(data, files=(), notes=(*notes, *data.notes))


# --- from coded cells to confusion matrices ------------------------------------------------------


@dataclass(frozen=True)
class EncodedCells:
    """Cells [U] of items that share everything: subgroup, group, and the levels of all columns.

    A level of K is a missing label. `alone` are items without a group.
    """

    scale: Scale
    by: Array
    group: Array
    alone: Array
    gold: Array
    predicted: Array
    second: Array
    sums: CellSums

    def count_items(self, where: Array) -> int:
        """Return how many items the selected cells have."""
        return int(self.sums.items[where].sum())

    @property
    def lacks_second_rating(self) -> Array:
        """Which cells lack the labels of the second rater."""
        return self.second == len(self.scale)

    def exclude(self, where: Array) -> "EncodedCells":
        """Return the cells, the selected ones without a gold label, so that they do not count."""
        return replace(self, gold=np.where(where, len(self.scale), self.gold))

    def build_matrices(self, rows: MissingRows, missing: MissingPolicy) -> "ConfusionBatch":
        """Return a matrix for each pair of subgroup and group that occurs."""
        groups = int(self.group.max(initial=0)) + 1
        pairs, slot = np.unique(self.by * groups + self.group, return_inverse=True)
        check_group_count(len(pairs), len(self.scale))
        sums = _sum_cells(self, slot, len(pairs))
        batch = ConfusionMatrix.from_sums(self.scale, sums, rows, missing)
        return ConfusionBatch(batch, pairs // groups, pairs % groups)

    def select_second_rater(self, missing: MissingPolicy) -> "EncodedCells":
        """Return the cells with the second rater's labels as predictions, on the same items."""
        unanswered = self.predicted == len(self.scale)
        left = self.exclude(unanswered) if missing == "drop" else self
        return replace(left, predicted=self.second)


@dataclass(frozen=True)
class ConfusionBatch:
    """A batch of matrices, and the subgroup and group of each."""

    batch: ConfusionMatrix
    by: Array
    group: Array

    @property
    def filled_groups(self) -> Array:
        """The numbers of the groups that have items."""
        return np.unique(self.group[self.batch.items.any(axis=(-2, -1))])

    def summarize_all(self, *, grouped: bool) -> ConfusionMatrix:
        """Return the matrix of all items, or the batch of their groups, whatever the subgroup."""
        if not grouped:
            return self.batch.pooled
        return self._sum_by_group(self.batch, self.group)

    def summarize_subgroup(self, index: int, *, grouped: bool) -> ConfusionMatrix:
        """Return the matrix of a subgroup, or the batch of its groups."""
        here = self.by == index
        part = self.batch[here]
        if not grouped:
            return part[0]
        return self._sum_by_group(part, self.group[here])

    def _sum_by_group(self, part: ConfusionMatrix, group: Array) -> ConfusionMatrix:
        """Return a matrix for each group with items; the first also counts what others dropped."""
        batch = part.compute_sums(group, int(self.group.max(initial=0)) + 1)
        filled = batch[self.filled_groups]
        dropped = np.array(filled.dropped)
        dropped[:1] += np.sum(batch.dropped) - dropped.sum()
        return replace(filled, dropped=dropped)


def _sum_cells(encoded: EncodedCells, slot: Array, slots: int) -> CellSums:
    size = len(encoded.scale) + 1
    cells = (slot.reshape(-1) * size + encoded.gold) * size + encoded.predicted
    shape = (slots, size, size)
    found = encoded.sums.map(
        lambda part: np.bincount(cells, part, minlength=slots * size * size).reshape(shape)
    )
    return found._replace(items=found.items.astype(np.int64))


# --- one run -------------------------------------------------------------------------------------


class ConfusionReader:
    """One run over items: counted where they are, a row for each set of labels and groups.

    `titles` says which columns there are, by role: what people call them.
    """

    def __init__(self, items: ItemSource, titles: dict[str, str], spelling: LabelSpelling) -> None:
        self.items, self.titles, self.spelling = items, titles, spelling
        self.places = RowLocator(items, spelling, titles.get(WEIGHT))
        self.notes: list[str] = []
        self.unlabelled: dict[str, list[Any]] = {}  # what stands for a missing label, by role
        self.table = self._count_cells()
        self.clusters = number_clusters(self.table)

    def _count_cells(self) -> Table:
        """Count inside the engine."""
        weighted, keyed = WEIGHT in self.titles, self.items.keyed
        keys = [role for role in (*SIDES, SUBGROUP, CLUSTER) if role in self.titles]
        sums = build_weight_sums(weighted=weighted, keyed=keyed)
        if CLUSTER in self.titles and self.items.ordered:
            sums[NTH] = Aggregate("min", column(NTH))
        joined = [IN_GOLD, IN_PREDICTED] if keyed else []
        where = has_weight(keyed=keyed) if weighted else None
        table = self.items.sum_by([*keys, *joined], sums, where)
        if weighted and table["wrong"].any():
            self.places.check_weights()
        self.match_counts = _count_joined_items(table) if keyed else None
        known = table[IN_GOLD].astype(bool) if keyed else slice(None)
        found = {name: cells[known] for name, cells in table.items()}
        if not len(found["items"]):
            self.places.refuse_no_items("evaluate")
        return found

    def read(self, scale: Scale | None, missing: MissingPolicy) -> ConfusionData:
        """Find the scale, and apply the policy for missing labels."""
        sides = {side: factorize_column(self.table[side]) for side in SIDES if side in self.titles}
        seen = {label for side in sides.values() for label in side.values}
        scale = self.spelling.find_scale(scale, seen, self.notes)
        levels = {}
        for side, found in sides.items():
            strange = self.spelling.find_off_scale_labels(scale, found.values)
            self.places.refuse_off_scale_labels(scale, side, strange, self.titles[side])
            positions = self.spelling.encode_labels(scale, found.values)[: len(found.values)]
            levels[side] = positions[found.codes]
            self.unlabelled[side] = [
                found.values[k] for k in np.flatnonzero(positions == len(scale))
            ]
        subgroups = number_subgroups(self.table)
        alone = self.clusters.codes == len(self.clusters.values)
        encoded = EncodedCells(
            scale,
            subgroups.codes,
            self.clusters.codes,
            alone,
            levels[GOLD],
            levels[PREDICTED],
            levels.get(SECOND, levels[GOLD]),
            read_cell_sums(self.table),
        )
        complete = encoded.exclude(self._find_incomplete_cells(encoded, missing))
        return self._build_tables(complete, subgroups.values, missing)

    def _build_tables(
        self, encoded: EncodedCells, subgroups: list[Any], missing: MissingPolicy
    ) -> ConfusionData:
        rows = MissingRows(
            lambda: self._find_missing_labels(GOLD), lambda: self._find_missing_labels(PREDICTED)
        )
        matrices = encoded.build_matrices(rows, missing)
        grouped = CLUSTER in self.titles
        values = list(enumerate(subgroups)) if SUBGROUP in self.titles else []
        raters = None
        if SECOND in self.titles:
            raters = encoded.select_second_rater(missing).build_matrices(rows, missing)
        return ConfusionData(
            matrices.batch.pooled,
            [(x, matrices.summarize_subgroup(k, grouped=grouped)) for k, x in values],
            self.titles[GOLD],
            self.titles[PREDICTED],
            (self.items.name,),
            self.match_counts,
            tuple(self.notes),
            matrices.summarize_all(grouped=True) if grouped else None,
            None if raters is None else raters.summarize_all(grouped=grouped),
            [(x, raters.summarize_subgroup(k, grouped=grouped)) for k, x in values if raters],
            tuple(self.clusters.values[k] for k in matrices.filled_groups) if grouped else (),
        )

    def _find_incomplete_cells(self, encoded: EncodedCells, missing: MissingPolicy) -> Array:
        """Return the cells without a cluster or a label of the second rater, or say where."""
        n = int(encoded.sums.items.sum())
        alone, rated_once = encoded.alone, encoded.lacks_second_rating
        if alone.any() and missing != "drop":
            places = self.places.find_empty_cells(CLUSTER)
            raise make_missing_groups_error(
                encoded.count_items(alone), n, f"column {self.titles[CLUSTER]!r}", places
            )
        if SECOND not in self.titles:
            return alone
        if rated_once.any() and missing != "drop":
            places = self._find_missing_labels(SECOND)
            way = f"Leave them out with {DROP_HINT}."
            raise make_missing_labels_error(
                encoded.count_items(rated_once), n, "labels of the second rater", places, way
            )
        return alone | rated_once

    def _find_missing_labels(self, role: str) -> list[str]:
        return self.places.find_missing_labels(role, self.unlabelled[role])

    def list_disagreements(
        self, scale: Scale
    ) -> tuple[list[tuple[str, str, int]], list[tuple[str, str | None]]]:
        """Return pairs of labels that differ, with the steps between, and those unanswered."""
        wrong, unanswered = [], []
        for gold, predicted in set(zip(self.table[GOLD], self.table[PREDICTED], strict=True)):
            truth, answer = (
                scale.lookup[self.spelling.rename_label(label)] for label in (gold, predicted)
            )
            if truth == len(scale):
                continue
            if answer == len(scale):
                unanswered.append((gold, predicted))
            elif answer != truth:
                wrong.append((gold, predicted, answer - truth))
        return sorted(wrong), unanswered


def number_clusters(table: Table) -> Groups:
    """Return the clusters in the order in which they appear, where there is one, or sorted.

    Items without a cluster have the number after the last.
    """
    if CLUSTER not in table:
        return Groups([None], np.zeros(len(table["items"]), np.int64))
    found = factorize_column(table[CLUSTER])
    if NTH in table:
        first = np.full(len(found.values), np.inf)
        np.minimum.at(first, found.codes, table[NTH])
        order = np.argsort(first, kind="stable").tolist()
    else:
        order = _sort_values(found.values)
    return _renumber(found, [k for k in order if not is_missing(found.values[k])])


def number_subgroups(table: Table) -> Groups:
    """Return the subgroups, sorted; items without one are the last."""
    if SUBGROUP not in table:
        return Groups([None], np.zeros(len(table["items"]), np.int64))
    found = factorize_column(table[SUBGROUP])
    return _renumber(found, _sort_values(found.values))


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


def _count_joined_items(table: Table) -> dict[str, int]:
    in_gold, in_predicted = (table[name].astype(bool) for name in (IN_GOLD, IN_PREDICTED))
    found = {"matched": in_gold & in_predicted, "missing": ~in_predicted, "unknown": ~in_gold}
    return {name: int(table["items"][where].sum()) for name, where in found.items()}
