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
from ordinate.data.query import (
    GROUP,
    ID,
    IN_GOLD,
    IN_PREDICTED,
    WEIGHT,
    Columns,
    G,
    Items,
    P,
    Planner,
)
from ordinate.data.sources import literal, open_sources, read
from ordinate.errors import BadInput, BadWeights, NoItems
from ordinate.scale import Scale
from ordinate.scale.encode import off_scale
from ordinate.scale.labels import is_missing
from ordinate.scale.resolve import fitting_preset
from ordinate.summary import Confusion
from ordinate.summary.counting import Sums
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
    """How many items have a gold label, a prediction and a group."""

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
    wanted = [columns.gold_file, *paths] if columns.gold_file else paths
    with (
        connect() as connection,
        open_sources(connection, wanted, columns.delimiter, columns.encoding) as files,
        watch(connection),
    ):
        planner = Planner(connection, files, columns)
        return _Count(connection, planner).run(scale, missing, items)


def read_map(path: str) -> dict[str, str]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("{"):
            return {str(old): str(new) for old, new in json.loads(text).items()}
    except (OSError, ValueError) as problem:
        raise BadInput(f"The map {path} cannot be read: {problem}.") from None
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return {old: new for old, new in rows[1:]}  # noqa: C416 - says that rows are pairs


class _Count:
    """One run over the files."""

    def __init__(self, connection: Connection, planner: Planner) -> None:
        self.connection, self.planner = connection, planner
        self.columns = planner.columns
        self.items = planner.items()

    def run(self, scale: Scale | None, missing: Missing, items: Path | None) -> Counted:
        cells = [cell for part in self.items for cell in self._cells(part)]
        if not cells:
            raise NoItems(f"{self.items[0].name} has a header and no rows.")
        known = [cell for cell in cells if cell.in_gold]
        if scale is None:
            scale = fitting_preset(lambda: _labels(known))
            self.planner.notes.append(
                f"No scale was declared; every label seen is on the preset {scale.preset!r}."
            )
        self._refuse_strange(scale, known)
        batch, groups = self._batch(scale, known, missing)
        if items is not None:
            write_items(self.connection, self.items, scale, self.columns.renamed, known, items)
        return self._counted(batch, groups, _joined(cells) if self.items[0].keyed else None)

    def _counted(
        self, batch: Confusion, groups: list[Any], joined: dict[str, int] | None
    ) -> Counted:
        by = {} if self.columns.by is None else dict(enumerate(groups))
        gold_file = self.planner.gold_file
        return Counted(
            batch.pooled,
            [(group, batch[index]) for index, group in by.items()],
            self.planner.gold,
            self.planner.predicted,
            tuple(s.name for s in ([gold_file] if gold_file else []) + self.planner.files),
            joined,
            tuple(self.planner.notes),
        )

    def _cells(self, part: Items) -> list[_Cell]:
        """Count inside the engine: one row comes back for each pair of labels in each group."""
        sums, alive = "count(*), count(*)", ""
        if self.columns.weights is not None:
            self._check_weights(part)
            weight = f"CAST({WEIGHT} AS DOUBLE)"
            sums = f"sum({weight}), sum({weight} * {weight})"
            alive = f"WHERE {weight} > 0 OR NOT {IN_GOLD}"
        group = f"CAST({GROUP} AS VARCHAR)" if self.columns.by else "NULL"
        query = (
            f"SELECT {G}, {P}, {group}, {IN_GOLD}, {IN_PREDICTED}, count(*), {sums} "  # noqa: S608
            f"FROM ({part.sql}) {alive} GROUP BY 1, 2, 3, 4, 5 ORDER BY 3, 1, 2"
        )
        renamed = self.columns.renamed
        return [
            _Cell(renamed.get(gold, gold), renamed.get(predicted, predicted), *rest)
            for gold, predicted, *rest in read(self.connection, query, part.name)
        ]

    def _check_weights(self, part: Items) -> None:
        number = f"TRY_CAST({WEIGHT} AS DOUBLE)"
        wrong = f"{number} IS NULL OR NOT isfinite({number}) OR {number} < 0"
        for place, found in self._first(part, f"{IN_GOLD} AND ({wrong})", WEIGHT, 1):
            what = (
                "is missing" if found is None else f"{found} is not a finite number of at least 0"
            )
            raise BadWeights(f"The weight ({place} of column {self.columns.weights!r}) {what}.")

    def _batch(
        self, scale: Scale, cells: list[_Cell], missing: Missing
    ) -> tuple[Confusion, list[Any]]:
        """Return one table for each group."""
        groups = list(dict.fromkeys(cell.group for cell in cells))
        size = len(scale) + 1
        sums = Sums(*(np.zeros((len(groups), size, size), t) for t in (np.int64, float, float)))
        for cell in cells:
            at = groups.index(cell.group), scale.lookup[cell.gold], scale.lookup[cell.predicted]
            for total, part in zip(sums, (cell.items, cell.weight, cell.square), strict=True):
                total[at] += part
        rows = MissingRows(lambda: self._missing(G), lambda: self._missing(P))
        return Confusion.settled(scale, sums, rows, missing), groups

    # --- where something is wrong --------------------------------------------------------------

    def _refuse_strange(self, scale: Scale, cells: list[_Cell]) -> None:
        old = {new: old for old, new in self.columns.renamed.items()}
        for side, column in ((G, self.planner.gold), (P, self.planner.predicted)):
            labels = {cell.gold if side == G else cell.predicted for cell in cells}
            strange = [label for label in labels if label is not None and _is_off(scale, label)]
            if strange:
                wanted = ", ".join(
                    literal(old.get(label, label)) for label in sorted(strange)[:500]
                )
                places = self._anywhere(f"{side} IN ({wanted}) AND {IN_GOLD}", side, 1)
                place, found = places[0]
                label = self.columns.renamed.get(found, found)
                raise off_scale(scale, label, f"{place} of column {column!r}")

    def _missing(self, side: str) -> list[str]:
        found = self._anywhere(f"{side} IS NULL AND {IN_GOLD}", side, SHOWN)
        return [place for place, _ in found]

    def _anywhere(self, condition: str, column: str, limit: int) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for part in self.items:
            found += self._first(part, condition, column, limit - len(found))
        return found

    def _first(self, part: Items, condition: str, column: str, limit: int) -> list[tuple[str, Any]]:
        """Return the first places that fit a condition, and what stands there."""
        place = ID if part.keyed else "row_number() OVER ()"
        query = (
            f"SELECT place, {column} FROM (SELECT *, {place} AS place FROM ({part.sql})) "  # noqa: S608
            f"WHERE {condition} ORDER BY place LIMIT {limit}"
        )
        of_file = f" of {part.name}" if len(self.items) > 1 else ""
        what = "id" if part.keyed else "row"
        return [
            (f"{what} {place}{of_file}", found)
            for place, found in read(self.connection, query, part.name)
        ]


def _labels(cells: list[_Cell]) -> set[Any]:
    return {x for cell in cells for x in (cell.gold, cell.predicted) if not is_missing(x)}


def _joined(cells: list[_Cell]) -> dict[str, int]:
    return {
        "matched": sum(cell.items for cell in cells if cell.in_gold and cell.in_predicted),
        "missing": sum(cell.items for cell in cells if not cell.in_predicted),
        "unknown": sum(cell.items for cell in cells if not cell.in_gold),
    }


def _is_off(scale: Scale, label: str) -> bool:
    try:
        scale.lookup[label]
    except KeyError:
        return True
    return False
