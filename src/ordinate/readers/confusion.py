"""Files of gold and predicted levels, counted inside DuckDB."""

import csv
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ordinate.errors import BadInput
from ordinate.readers.clusters import build_cluster_number_sql, store_cluster_counts
from ordinate.readers.confusion_cells import Array, EncodedCells
from ordinate.readers.disagreements import write_disagreements
from ordinate.readers.duckdb_connection import Connection, connect, read_arrays, read_rows
from ordinate.readers.file_formats import open_sources
from ordinate.readers.label_spelling import LabelSpelling, build_label_code_sql
from ordinate.readers.query import WEIGHT_SQL, ItemQuery, LabelColumns, QueryPlanner, build_sums_sql
from ordinate.readers.row_locations import RowLocator
from ordinate.scale import Scale
from ordinate.scale.labels import is_missing
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import CellSums
from ordinate.summaries.tabulation import (
    DROP_HINT,
    MissingPolicy,
    MissingRows,
    make_missing_groups_error,
    make_missing_labels_error,
)

Watch = Callable[[Connection], AbstractContextManager[None]]
SUM_COLUMNS = ("items", "weight", "square", "fractions")  # as the engine names them


@dataclass(frozen=True)
class ConfusionData:
    """The tables of files, and what a report says of where they came from.

    With groups, `groups` has a table for each, and `by` for each subgroup a batch of the tables of
    its groups. `human` is the table of the labels of the second rater, on the same items.
    """

    table: ConfusionMatrix
    by: list[tuple[str | None, ConfusionMatrix]]
    gold: str
    predicted: str
    files: tuple[str, ...]
    joined: dict[str, int] | None
    notes: tuple[str, ...]
    groups: ConfusionMatrix | None = None
    human: ConfusionMatrix | None = None


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
    watch: Watch = lambda _: nullcontext(),
) -> ConfusionData:
    """Count files into confusion matrices; `items` is where the items that disagree are written."""
    with (
        connect() as connection,
        open_sources(connection, columns.delimiter, columns.encoding) as reader,
        watch(connection),
    ):
        gold_files = reader.sources([columns.gold_file]) if columns.gold_file else []
        planner = QueryPlanner(connection, gold_files, reader.sources(paths), columns)
        return _ConfusionReader(connection, planner).run(scale, missing, items)


def read_label_map(path: str) -> dict[str, str | None]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else None
        rows = list(found.items()) if found else _parse_label_map(path, text)
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The map {path} cannot be read: {reason}.") from None
    for label, level in rows:
        if not (level is None or isinstance(level, (str, int, float))):
            raise BadInput(f"The map {path} renames {label!r} to something that is no label.")
    renamed = {str(label): None if is_missing(level) else str(level) for label, level in rows}
    if len(renamed) < len(set(rows)):
        raise BadInput(f"The map {path} renames one label in two ways.")
    return renamed


def _parse_label_map(path: str, text: str) -> list[tuple[str, str]]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return [(old, new) for old, new in rows[1:]]


class _ConfusionReader:
    """One run over the files."""

    def __init__(self, connection: Connection, planner: QueryPlanner) -> None:
        self.connection, self.planner = connection, planner
        self.columns = planner.columns
        self.items = planner.items()
        self.spelling = LabelSpelling(self.columns.renamed)
        self.places = RowLocator(connection, self.items, self.spelling, self.columns.weights)
        titles = (planner.gold, planner.predicted, self.columns.second_rater)
        sides = zip(("gold", "predicted", "second"), titles, strict=True)
        self.titles = {side: title for side, title in sides if title is not None}

    def run(self, scale: Scale | None, missing: MissingPolicy, items: Path | None) -> ConfusionData:
        """Count, find the scale, and apply the policy for missing labels."""
        cells = self._cells()
        known = [cell for cell in cells if cell.in_gold]
        if not known:
            self.places.refuse_no_items("evaluate")
        labels = {side: {getattr(cell, side) for cell in known} for side in self.titles}
        scale = self.spelling.scale(scale, set().union(*labels.values()), self.planner.notes)
        for side, title in self.titles.items():
            strange = self.spelling.find_off_scale_labels(scale, labels[side])
            self.places.refuse_off_scale_labels(scale, side, strange, title)
        found = self._encode_cells(scale, known)
        counted = self._counted(
            found.without(self._find_incomplete_cells(found, missing)), cells, missing
        )
        if items is not None:
            self._write(scale, known, items)
        return counted

    def _counted(
        self, found: EncodedCells, cells: list[_Cell], missing: MissingPolicy
    ) -> ConfusionData:
        places = self.places
        rows = MissingRows(lambda: places.missing("gold"), lambda: places.missing("predicted"))
        tables = found.tables(rows, missing)
        grouped = self.columns.groups is not None
        values = _list_subgroups(cells) if self.columns.by else []
        return ConfusionData(
            tables.batch.pooled,
            [(x, tables.summarize_subgroup(k, grouped=grouped)) for k, x in enumerate(values)],
            self.planner.gold,
            self.planner.predicted,
            tuple(source.name for source in (*self.planner.gold_files, *self.planner.files)),
            _count_joined_items(cells) if self.items[0].keyed else None,
            tuple(self.planner.notes),
            tables.summarize_groups() if grouped else None,
            found.human(rows, missing, grouped=grouped)
            if self.columns.second_rater is not None
            else None,
        )

    # --- counting ----------------------------------------------------------------------------

    def _cells(self) -> list[_Cell]:
        """Count inside the engine: one row comes back for each set of labels in each subgroup."""
        if self.columns.weights is not None:
            for part in self.items:
                self.places.check_weights(part)
        if self.columns.groups is not None:
            store_cluster_counts(self.connection, self.items, self._build_count_sql)
            kept = "gold, predicted, grp, second, in_gold, in_predicted"
            sums = (
                "CAST(sum(items) AS BIGINT), sum(weight), sum(square), "
                "CAST(sum(fractions) AS BIGINT)"
            )
            query = f"SELECT {kept}, {sums} FROM counted GROUP BY ALL ORDER BY 3, 1, 2"
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
            np.array([scale.lookup[self.spelling.level(getattr(cell, side))] for cell in cells])
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
        chosen = ", ".join(
            f"{build_label_code_sql(side, labels)} AS {side}" for side, labels in sides.items()
        )
        query = (
            f"SELECT dense_rank() OVER (ORDER BY grp) - 1 AS by, number, alone, {chosen}, items, "
            "CAST(weight AS DOUBLE) AS weight, CAST(square AS DOUBLE) AS square, fractions "
            f"FROM ({build_cluster_number_sql('SELECT * FROM counted WHERE in_gold')})"
        )
        arrays = read_arrays(self.connection, query, self.items[0].name)
        gold, predicted, second = (
            self.spelling.levels(scale, labels)[arrays[side]] for side, labels in sides.items()
        )
        sums = CellSums(*(arrays[part] for part in SUM_COLUMNS))
        by, group, alone = arrays["by"], arrays["number"], arrays["alone"]
        return EncodedCells(scale, by, group, alone, gold, predicted, second, sums)

    # --- what is missing ---------------------------------------------------------------------

    def _find_incomplete_cells(self, found: EncodedCells, missing: MissingPolicy) -> Array:
        """Return the cells without a group or a label of the second rater, or say where."""
        alone, once = found.alone, np.zeros_like(found.alone)
        n = int(found.sums.items.sum())
        if alone.any() and missing != "drop":
            places = self.places.empty("cluster")
            raise make_missing_groups_error(
                found.items(alone), n, f"column {self.columns.groups!r}", places
            )
        if self.columns.second_rater is not None:
            once = found.lacks_second_rating
        if once.any() and missing != "drop":
            places, way = self.places.missing("second"), f"Leave them out with {DROP_HINT}."
            raise make_missing_labels_error(
                found.items(once), n, "labels of the second rater", places, way
            )
        return alone | once

    def _write(self, scale: Scale, cells: list[_Cell], out: Path) -> None:
        """Write the items whose prediction is wrong or missing."""
        wrong, unanswered = {}, {}
        for cell in cells:
            gold, predicted = (
                scale.lookup[self.spelling.level(x)] for x in (cell.gold, cell.predicted)
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
