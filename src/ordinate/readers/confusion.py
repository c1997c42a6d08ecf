"""Files of gold and predicted levels, counted inside DuckDB."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.columns import LabelColumns
from ordinate.readers.duckdb_connection import Connection, Watch, connect, read_arrays, read_rows
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_query import (
    WEIGHT_SQL,
    ItemQuery,
    QueryPlanner,
    build_cluster_number_sql,
    build_sums_sql,
    read_clusters,
    store_cluster_counts,
    write_disagreements,
)
from ordinate.readers.label_cells import LabelSpelling, RowLocator, build_label_code_sql
from ordinate.scale import Scale
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
GroupCheck = Callable[[list[str]], None]
COUNTED_SQL = "SELECT * FROM counted WHERE in_gold"  # the counts of each cluster
SUM_COLUMNS = ("items", "weight", "square", "fractions")  # as the engine names them


@dataclass(frozen=True)
class ConfusionData:
    """The confusion matrices of files, and what a report says of where they came from.

    With groups, `groups` has a matrix for each, `group_values` says which they are, and `by` has
    for each subgroup a batch of the matrices of its groups. `second_rater` and `second_rater_by`
    are those of the second rater's labels, on the same items; with groups, a batch of them.
    """

    matrix: ConfusionMatrix
    by: list[tuple[str | None, ConfusionMatrix]]
    gold: str
    predicted: str
    files: tuple[str, ...]
    match_counts: dict[str, int] | None
    notes: tuple[str, ...]
    groups: ConfusionMatrix | None = None
    second_rater: ConfusionMatrix | None = None
    second_rater_by: list[tuple[str | None, ConfusionMatrix]] = field(default_factory=list)
    group_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cell:
    """How many items have the same labels and are in the same subgroup, as the file spells them."""

    gold: str | None
    predicted: str | None
    by: str | None
    second: str | None
    in_gold: bool
    in_predicted: bool
    items: int
    weight: float
    square: float
    fractions: int


def count_files(
    paths: list[str],
    columns: LabelColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    items: Path | None = None,
    check_groups: GroupCheck | None = None,
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
        reading = _ConfusionReader(connection, planner, check_groups)
        return reading.read(scale, missing, items)


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


class _ConfusionReader:
    """One run over the files."""

    def __init__(
        self, connection: Connection, planner: QueryPlanner, check_groups: GroupCheck | None
    ) -> None:
        self.connection, self.planner, self.check_groups = connection, planner, check_groups
        self.columns = planner.columns
        self.items = planner.build_queries()
        self.spelling = LabelSpelling(self.columns.renamed)
        self.places = RowLocator(connection, self.items, self.spelling, self.columns.weights)
        titles = (planner.gold, planner.predicted, self.columns.second_rater)
        sides = zip(("gold", "predicted", "second"), titles, strict=True)
        self.titles = {side: title for side, title in sides if title is not None}

    def read(
        self, scale: Scale | None, missing: MissingPolicy, items: Path | None
    ) -> ConfusionData:
        """Count, find the scale, and apply the policy for missing labels."""
        cells = self._count_cells()
        known = [cell for cell in cells if cell.in_gold]
        if not known:
            self.places.refuse_no_items("evaluate")
        if self.check_groups is not None:
            self.check_groups(self._read_groups())
        labels = {side: {getattr(cell, side) for cell in known} for side in self.titles}
        scale = self.spelling.find_scale(scale, set().union(*labels.values()), self.planner.notes)
        for side, title in self.titles.items():
            strange = self.spelling.find_off_scale_labels(scale, labels[side])
            self.places.refuse_off_scale_labels(scale, side, strange, title)
        encoded = self._encode_cells(scale, known)
        complete = encoded.exclude(self._find_incomplete_cells(encoded, missing))
        data = self._build_data(complete, cells, missing)
        if items is not None:
            self._write_disagreements(scale, known, items)
        return data

    def _build_data(
        self, encoded: EncodedCells, cells: list[_Cell], missing: MissingPolicy
    ) -> ConfusionData:
        places = self.places
        rows = MissingRows(
            lambda: places.find_missing_labels("gold"),
            lambda: places.find_missing_labels("predicted"),
        )
        matrices = encoded.build_matrices(rows, missing)
        grouped = self.columns.groups is not None
        values = list(enumerate(_list_subgroups(cells))) if self.columns.by else []
        raters = None
        if self.columns.second_rater is not None:
            raters = encoded.select_second_rater(missing).build_matrices(rows, missing)
        return ConfusionData(
            matrices.batch.pooled,
            [(x, matrices.summarize_subgroup(k, grouped=grouped)) for k, x in values],
            self.planner.gold,
            self.planner.predicted,
            tuple(source.name for source in (*self.planner.gold_files, *self.planner.files)),
            _count_joined_items(cells) if self.items[0].keyed else None,
            tuple(self.planner.notes),
            matrices.summarize_all(grouped=True) if grouped else None,
            None if raters is None else raters.summarize_all(grouped=grouped),
            [(x, raters.summarize_subgroup(k, grouped=grouped)) for k, x in values if raters],
            self._list_groups(matrices) if grouped else (),
        )

    def _list_groups(self, matrices: ConfusionBatch) -> tuple[str, ...]:
        """Return the groups that have items, in the order of their matrices."""
        found = self._read_groups()
        return tuple(found[k] for k in matrices.filled_groups)

    def _read_groups(self) -> list[str]:
        return read_clusters(self.connection, COUNTED_SQL, self.items[0].name)

    # --- counting ----------------------------------------------------------------------------

    def _count_cells(self) -> list[_Cell]:
        """Count inside the engine: one row comes back for each set of labels in each subgroup."""
        if self.columns.weights is not None:
            for part in self.items:
                self.places.check_weights(part)
        if self.columns.groups is not None:
            store_cluster_counts(self.connection, self.items, self._build_count_sql)
            labels = "gold, predicted, grp, second, in_gold, in_predicted"
            sums = (
                "CAST(sum(items) AS BIGINT), sum(weight), sum(square), "
                "CAST(sum(fractions) AS BIGINT)"
            )
            query = f"SELECT {labels}, {sums} FROM counted GROUP BY ALL ORDER BY 3, 1, 2"
            return [_Cell(*row) for row in read_rows(self.connection, query, self.items[0].name)]
        return [
            _Cell(*row)
            for part in self.items
            for row in read_rows(
                self.connection, self._build_count_sql(part) + " ORDER BY 3, 1, 2", part.name
            )
        ]

    def _build_count_sql(self, part: ItemQuery, further: str = "") -> str:
        """Return SQL for the number of items, and the sums of weights, of equal items."""
        weights = self.columns.weights
        alive = "" if weights is None else f"WHERE {WEIGHT_SQL} > 0 OR NOT in_gold"
        by = "CAST(grp AS VARCHAR)" if self.columns.by else "NULL"
        second = "second" if self.columns.second_rater else "NULL"
        return (
            f"SELECT gold, predicted, {by} AS grp, {second} AS second, in_gold, in_predicted, "
            f"{build_sums_sql(weights)}{further} FROM ({part.sql}) {alive} GROUP BY ALL"
        )

    def _encode_cells(self, scale: Scale, cells: list[_Cell]) -> EncodedCells:
        """Return the cells with levels in the place of labels."""
        if self.columns.groups is not None:
            return self._encode_grouped_cells(scale, cells)
        place = {by: index for index, by in enumerate(_list_subgroups(cells))}
        gold, predicted, second = (
            np.array(
                [scale.lookup[self.spelling.rename_label(getattr(cell, side))] for cell in cells]
            )
            for side in ("gold", "predicted", "second")
        )
        parts = ([getattr(cell, x) for cell in cells] for x in SUM_COLUMNS)
        sums = CellSums(*(np.array(part) for part in parts))
        none = np.zeros(len(cells), int)
        by = np.array([place[cell.by] for cell in cells])
        return EncodedCells(scale, by, none, none > 0, gold, predicted, second, sums)

    def _encode_grouped_cells(self, scale: Scale, cells: list[_Cell]) -> EncodedCells:
        """Code inside the engine, where there may be millions of cells."""
        sides: dict[str, list[str]] = {}
        for side in ("gold", "predicted", "second"):
            found = {getattr(cell, side) for cell in cells}
            sides[side] = sorted(found - {None})
        selected = ", ".join(
            f"{build_label_code_sql(side, labels)} AS {side}" for side, labels in sides.items()
        )
        query = (
            f"SELECT dense_rank() OVER (ORDER BY grp) - 1 AS by, number, alone, {selected}, items, "
            "CAST(weight AS DOUBLE) AS weight, CAST(square AS DOUBLE) AS square, fractions "
            f"FROM ({build_cluster_number_sql(COUNTED_SQL)})"
        )
        arrays = read_arrays(self.connection, query, self.items[0].name)
        gold, predicted, second = (
            self.spelling.encode_labels(scale, labels)[arrays[side]]
            for side, labels in sides.items()
        )
        sums = CellSums(*(arrays[part] for part in SUM_COLUMNS))
        by, group, alone = arrays["by"], arrays["number"], arrays["alone"]
        return EncodedCells(scale, by, group, alone, gold, predicted, second, sums)

    # --- what is missing ---------------------------------------------------------------------

    def _find_incomplete_cells(self, encoded: EncodedCells, missing: MissingPolicy) -> Array:
        """Return the cells without a group or a label of the second rater, or say where."""
        alone, rated_once = encoded.alone, np.zeros_like(encoded.alone)
        n = int(encoded.sums.items.sum())
        if alone.any() and missing != "drop":
            places = self.places.find_empty_cells("cluster")
            raise make_missing_groups_error(
                encoded.count_items(alone), n, f"column {self.columns.groups!r}", places
            )
        if self.columns.second_rater is not None:
            rated_once = encoded.lacks_second_rating
        if rated_once.any() and missing != "drop":
            places = self.places.find_missing_labels("second")
            way = f"Leave them out with {DROP_HINT}."
            raise make_missing_labels_error(
                encoded.count_items(rated_once), n, "labels of the second rater", places, way
            )
        return alone | rated_once

    def _write_disagreements(self, scale: Scale, cells: list[_Cell], out: Path) -> None:
        """Write the items whose prediction is wrong or missing."""
        wrong, unanswered = {}, {}
        for cell in cells:
            gold, predicted = (
                scale.lookup[self.spelling.rename_label(x)] for x in (cell.gold, cell.predicted)
            )
            if gold == len(scale) or cell.gold is None:
                continue
            if predicted == len(scale):
                unanswered[cell.gold, cell.predicted] = True
            elif predicted != gold:
                wrong[cell.gold, str(cell.predicted), predicted - gold] = True
        write_disagreements(self.connection, self.items, wrong, unanswered, out)


def _list_subgroups(cells: list[_Cell]) -> list[str | None]:
    return list(dict.fromkeys(cell.by for cell in cells if cell.in_gold))


def _count_joined_items(cells: list[_Cell]) -> dict[str, int]:
    return {
        "matched": sum(cell.items for cell in cells if cell.in_gold and cell.in_predicted),
        "missing": sum(cell.items for cell in cells if not cell.in_predicted),
        "unknown": sum(cell.items for cell in cells if not cell.in_gold),
    }
