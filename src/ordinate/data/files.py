"""Files of gold and predicted levels, counted inside DuckDB."""

import csv
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.data.engine import Connection, connect
from ordinate.data.items import write_items
from ordinate.data.query import Columns, Items, Planner
from ordinate.data.sources import literal, open_sources, read
from ordinate.errors import BadInput, BadWeights, NoItems
from ordinate.scale import Scale
from ordinate.scale.columns import code_of
from ordinate.scale.encode import off_scale
from ordinate.scale.labels import is_missing
from ordinate.scale.resolve import fitting_preset
from ordinate.summary import Confusion
from ordinate.summary.counting import HEAVIEST, Sums
from ordinate.summary.tabulate import SHOWN, Missing, MissingRows

Watch = Callable[[Connection], AbstractContextManager[None]]


@dataclass(frozen=True)
class Counted:
    """The tables of files, and what a report says of where they came from."""

    table: Confusion
    by: list[tuple[str | None, Confusion]]
    gold: str
    predicted: str
    files: tuple[str, ...]
    joined: dict[str, int] | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Cell:
    """How many items have a gold label, a prediction and a group, as the file spells them."""

    gold: str | None
    predicted: str | None
    group: str | None
    in_gold: bool
    in_predicted: bool
    items: int
    weight: float
    square: float


def count_files(
    paths: list[str],
    columns: Columns,
    scale: Scale | None = None,
    missing: Missing = "error",
    *,
    items: Path | None = None,
    watch: Watch = lambda _: nullcontext(),
) -> Counted:
    """Count files into confusion tables; `items` is where the items that disagree are written."""
    with (
        connect() as connection,
        open_sources(connection, columns.delimiter, columns.encoding) as reader,
        watch(connection),
    ):
        gold_files = reader.sources([columns.gold_file]) if columns.gold_file else []
        planner = Planner(connection, gold_files, reader.sources(paths), columns)
        return _Count(connection, planner).run(scale, missing, items)


def read_map(path: str) -> dict[str, str | None]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else None
        rows = list(found.items()) if found else _rows_of_map(path, text)
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


def _rows_of_map(path: str, text: str) -> list[tuple[str, str]]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return [(old, new) for old, new in rows[1:]]


class _Count:
    """One run over the files."""

    def __init__(self, connection: Connection, planner: Planner) -> None:
        self.connection, self.planner = connection, planner
        self.columns = planner.columns
        self.items = planner.items()

    def run(self, scale: Scale | None, missing: Missing, items: Path | None) -> Counted:
        """Count, find the scale, and apply the policy for missing labels."""
        cells = [cell for part in self.items for cell in self._cells(part)]
        known = [cell for cell in cells if cell.in_gold]
        if not known:
            self._refuse_nothing()
        if scale is None:
            scale = fitting_preset(lambda: self._labels(known))
            self.planner.notes.append(
                f"No scale was declared: every label seen is on the preset {scale.preset!r}."
            )
        self._refuse_strange(scale, known)
        batch, groups = self._batch(scale, known, missing)
        if items is not None:
            self._write(scale, known, items)
        return Counted(
            batch.pooled,
            [(group, batch[k]) for k, group in enumerate(groups)] if self.columns.by else [],
            self.planner.gold,
            self.planner.predicted,
            tuple(source.name for source in (*self.planner.gold_files, *self.planner.files)),
            _joined(cells) if self.items[0].keyed else None,
            tuple(self.planner.notes),
        )

    def _level(self, label: str | None) -> str | None:
        """Return the label under its new name, where it has one."""
        return self.columns.renamed.get(label, label) if label is not None else None

    def _labels(self, cells: list[_Cell]) -> set[Any]:
        found = {self._level(x) for cell in cells for x in (cell.gold, cell.predicted)}
        return {label for label in found if not is_missing(label)}

    # --- counting ----------------------------------------------------------------------------

    def _cells(self, part: Items) -> list[_Cell]:
        """Count inside the engine: one row comes back for each pair of labels in each group."""
        sums, alive = "count(*), count(*)", ""
        if self.columns.weights is not None:
            self._check_weights(part)
            number = "TRY_CAST(weight AS DOUBLE)"
            sums = f"sum({number}), sum({number} * {number})"
            alive = f"WHERE {number} > 0 OR NOT in_gold"
        group = "CAST(grp AS VARCHAR)" if self.columns.by else "NULL"
        query = (
            f"SELECT gold, predicted, {group}, in_gold, in_predicted, count(*), {sums} "
            f"FROM ({part.sql}) {alive} GROUP BY 1, 2, 3, 4, 5 ORDER BY 3, 1, 2"
        )
        return [_Cell(*row) for row in read(self.connection, query, part.name)]

    def _batch(
        self, scale: Scale, cells: list[_Cell], missing: Missing
    ) -> tuple[Confusion, list[Any]]:
        """Return one table for each group."""
        groups = list(dict.fromkeys(cell.group for cell in cells))
        place = {group: index for index, group in enumerate(groups)}
        size = len(scale) + 1
        sums = Sums(*(np.zeros((len(groups), size, size), t) for t in (np.int64, float, float)))
        for cell in cells:
            row, column = (scale.lookup[self._level(x)] for x in (cell.gold, cell.predicted))
            for total, part in zip(sums, (cell.items, cell.weight, cell.square), strict=True):
                total[place[cell.group], row, column] += part
        rows = MissingRows(lambda: self._missing("gold"), lambda: self._missing("predicted"))
        return Confusion.settled(scale, sums, rows, missing), groups

    def _write(self, scale: Scale, cells: list[_Cell], out: Path) -> None:
        """Write the items whose prediction is wrong or missing."""
        wrong, unanswered = {}, {}
        for cell in cells:
            gold, predicted = (scale.lookup[self._level(x)] for x in (cell.gold, cell.predicted))
            if gold == len(scale) or cell.gold is None:
                continue
            if predicted == len(scale):
                unanswered[cell.gold, cell.predicted] = True
            elif predicted != gold:
                wrong[cell.gold, str(cell.predicted), predicted - gold] = True
        write_items(self.connection, self.items, wrong, unanswered, out)

    # --- where something is wrong ------------------------------------------------------------

    def _refuse_nothing(self) -> None:
        rows = any(self._first(part, "in_gold", "gold", 1) for part in self.items)
        if self.columns.weights is not None and rows:
            raise NoItems("There are no items to evaluate: all weights are 0.")
        raise NoItems(f"{self.items[0].name} has a header and no rows.")

    def _check_weights(self, part: Items) -> None:
        number = "TRY_CAST(weight AS DOUBLE)"
        # Asked by name, because comparisons with NaN may be answered from a file's statistics.
        finite = f"isfinite({number}) AND {number} >= 0 AND {number} < {HEAVIEST}"
        wrong = f"{number} IS NULL OR NOT ({finite})"
        for place, found in self._first(part, f"in_gold AND ({wrong})", "weight", 1):
            what = "is missing" if found is None else f"is {found}"
            raise BadWeights(
                f"The weight ({place} of column {self.columns.weights!r}) {what}. Weights are "
                "finite numbers of at least 0."
            )

    def _refuse_strange(self, scale: Scale, cells: list[_Cell]) -> None:
        for side, column in (("gold", self.planner.gold), ("predicted", self.planner.predicted)):
            labels = {getattr(cell, side) for cell in cells} - {None}
            strange = [x for x in labels if code_of(scale, self._level(x)) > len(scale)]
            if strange:
                wanted = ", ".join(map(literal, sorted(strange)[:500]))
                place, found = self._anywhere(f"{side} IN ({wanted}) AND in_gold", side, 1)[0]
                raise off_scale(scale, self._level(found), f"{place} of column {column!r}")

    def _missing(self, side: str) -> list[str]:
        unnamed = [label for label, level in self.columns.renamed.items() if is_missing(level)]
        also = f" OR {side} IN ({', '.join(map(literal, unnamed))})" if unnamed else ""
        found = self._anywhere(f"({side} IS NULL{also}) AND in_gold", side, SHOWN)
        return [place for place, _ in found]

    def _anywhere(self, condition: str, column: str, limit: int) -> list[tuple[str, Any]]:
        if self.columns.weights is not None:
            condition += " AND TRY_CAST(weight AS DOUBLE) > 0" if column != "weight" else ""
        found: list[tuple[str, Any]] = []
        for part in self.items:
            found += self._first(part, condition, column, limit - len(found))
        return found

    def _first(self, part: Items, condition: str, column: str, limit: int) -> list[tuple[str, Any]]:
        """Return the first places that fit a condition, and what stands there."""
        place = "id" if part.keyed else "row_number() OVER ()"
        query = (
            f"SELECT place, {column} FROM (SELECT *, {place} AS place FROM ({part.sql})) "
            f"WHERE {condition} ORDER BY place LIMIT {limit}"
        )
        of_file = f" of {part.name}" if len(self.items) > 1 else ""
        what = "id" if part.keyed else "row"
        return [
            (f"{what} {place}{of_file}", found)
            for place, found in read(self.connection, query, part.name)
        ]


def _joined(cells: list[_Cell]) -> dict[str, int]:
    return {
        "matched": sum(cell.items for cell in cells if cell.in_gold and cell.in_predicted),
        "missing": sum(cell.items for cell in cells if not cell.in_predicted),
        "unknown": sum(cell.items for cell in cells if not cell.in_gold),
    }
