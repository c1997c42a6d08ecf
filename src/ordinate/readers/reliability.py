"""Files of probabilities, one column for each level, summarised a few thousand rows at a time."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadProbabilities, MissingLabels, shorten
from ordinate.readers.cells import CountedCells
from ordinate.readers.column_names import expand_columns
from ordinate.readers.columns import ItemColumns
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_arrays, read_rows
from ordinate.readers.expressions import column
from ordinate.readers.file_formats import FileSource, Watch, open_sources
from ordinate.readers.item_query import (
    WEIGHT_SQL,
    FileItems,
    QueryPlanner,
    build_number_sql,
)
from ordinate.readers.items import GOLD, IN_PREDICTED, WEIGHT
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.summaries.probabilities import (
    ROWS_PER_BLOCK,
    format_row_name,
    match_columns_to_levels,
)
from ordinate.summaries.reliability import Reliability, ReliabilityAccumulator, ReliabilityParts
from ordinate.summaries.tabulation import DROP_HINT, ROWS_SHOWN, make_missing_labels_error

Array = NDArray[Any]
BLOCKS_PER_CHUNK = 8  # blocks of rows that leave the engine together


@dataclass(frozen=True)
class ReliabilityData:
    """The summary of files, spread over blocks, and where it came from."""

    blocks: Reliability
    gold: str
    columns: tuple[str, ...]  # of the levels, lowest first
    files: tuple[str, ...]
    notes: tuple[str, ...]
    match_counts: dict[str, int] | None = None  # counts of ids, where files were joined


def count_probabilities(
    paths: list[str],
    columns: ItemColumns,
    named: tuple[str, ...],
    parts: ReliabilityParts,
    scale: Scale | None = None,
    missing: Literal["error", "drop"] = "error",
    *,
    renormalize: bool = False,
    blocks: int | None = None,
    watch: Watch = lambda _: nullcontext(),
    rows_per_block: int = ROWS_PER_BLOCK,
) -> ReliabilityData:
    """Summarise probabilities; `named` are their columns, or one prefix that they share."""
    with open_sources(columns, watch) as reader:
        gold_files = reader.describe_files([columns.gold_file]) if columns.gold_file else []
        files = reader.describe_files(paths)
        found = expand_columns(named, files[0], scale)
        named_columns = replace(columns, predicted=found[0])
        numbers = {f"p{k}": name for k, name in enumerate(found)}
        others = [_drop_columns(source, found) for source in gold_files]
        planner = QueryPlanner(reader, others, files, named_columns, numbers)
        weight = {} if columns.weights is None else {WEIGHT: columns.weights}
        spelling = LabelSpelling(columns.renamed, reader.left_out)
        titles = {GOLD: planner.gold, **weight}
        items = planner.build_items()
        cells = CountedCells(items, titles, [GOLD], spelling, "evaluate")
        scale, _ = cells.encode(scale)
        order = match_columns_to_levels(scale, found)
        predictions = ", ".join(source.name for source in files) if gold_files else ""
        reading = _BlockReader(items, cells, found, predictions, rows_per_block)
        if missing != "drop":
            reading.refuse_unmatched()
        reading.store_rows(reader.folder)
        summary = reading.summarize(scale, order, parts, missing, renormalize, blocks)
    names = tuple(source.name for source in (*gold_files, *files))
    in_order = tuple(found[k] for k in order)
    notes = (*planner.notes, *cells.notes, *reader.describe_left_out())
    return ReliabilityData(summary, planner.gold, in_order, names, notes, cells.match_counts)


def refuse_text_cells(
    connection: Connection, rows: str, names: tuple[str, ...], file: str, place: str = ""
) -> None:
    """Refuse the first cell that is no number; the probabilities of rows are called p0, p1, ..."""
    odd = [
        f"(nullif(CAST(p{k} AS VARCHAR), '') IS NOT NULL AND TRY_CAST(p{k} AS DOUBLE) IS NULL)"
        for k in range(len(names))
    ]
    cells = ", ".join(
        f"CASE WHEN {odd[k]} THEN CAST(p{k} AS VARCHAR) END" for k in range(len(names))
    )
    where = place or "row_number() OVER ()"
    query = (
        f"SELECT * FROM (SELECT {where} AS place, [{cells}] AS cells FROM ({rows})) "
        "WHERE len(list_filter(cells, lambda x: x IS NOT NULL)) > 0 ORDER BY place LIMIT 1"
    )
    for found, texts in read_rows(connection, query, file):
        column = next(k for k, text in enumerate(texts) if text is not None)
        raise BadProbabilities(
            f"{file}: the probability {shorten(texts[column])} ({place or 'row'} {found} of column "
            f"{names[column]!r}) is not a number. Write it like 0.7."
        )


def _drop_columns(source: FileSource, columns: tuple[str, ...]) -> FileSource:
    """Return a file of gold without probabilities, which may be those of another system."""
    others = {name: sql for name, sql in source.columns.items() if name not in columns}
    return replace(source, columns=others)


def build_label_code_sql(column: str, labels: Sequence[str]) -> str:
    """Return SQL for the place of a string among labels; after the last comes a missing one."""
    place = (
        f"list_position([{', '.join(map(quote_literal, labels))}], {column}) - 1"
        if labels
        else "NULL"
    )
    return f"CAST(coalesce({place}, {len(labels)}) AS INTEGER)"


class _BlockReader:
    """Rows on their way from files to a summary, stored by the engine on disk."""

    def __init__(
        self,
        items: FileItems,
        cells: CountedCells,
        names: tuple[str, ...],
        predictions: str,
        rows_per_block: int,
    ) -> None:
        self.connection, self.items, self.keyed = items.connection, items.parts, items.keyed
        self.cells, self.names = cells, names
        self.predictions, self.rows_per_block = predictions, rows_per_block
        self.labels = [label for label in cells.sides[GOLD].values if label is not None]

    def refuse_unmatched(self) -> None:
        """Refuse gold levels of items without probabilities."""
        if self.keyed and not (matched := self.cells.table[IN_PREDICTED].astype(bool)).all():
            items = self.cells.sums.items
            shown = self.cells.places.find_cells(~column(IN_PREDICTED), column(GOLD), ROWS_SHOWN)
            places, way = [place for place, _ in shown], f"Leave them out with {DROP_HINT}."
            count, n = int(items[~matched].sum()), int(items.sum())
            raise make_missing_labels_error(count, n, "rows of probabilities", places, way)

    def store_rows(self, folder: Path) -> None:
        """Store numbers on disk, and refuse cells that are none."""
        name = self.items[0].name
        read_rows(self.connection, f"ATTACH {quote_literal(str(folder / 'rows.db'))} AS disk", name)
        numbers = [build_number_sql(f"p{k}") for k in range(len(self.names))]
        weight = [f"{WEIGHT_SQL} AS weight"] if WEIGHT in self.cells.titles else []
        selected = ", ".join(["gold", *(("id",) if self.keyed else ()), *weight, *numbers])
        condition = "WHERE in_gold ORDER BY id" if self.keyed else ""  # whatever order a join has
        for part, items in enumerate(self.items):
            place = "id" if self.keyed else ""
            name = self.predictions or items.name
            refuse_text_cells(self.connection, items.sql, self.names, name, place)
            rows = f"SELECT {selected} FROM ({items.sql}) {condition}"
            read_rows(self.connection, f"CREATE TABLE disk.rows{part} AS {rows}", items.name)

    def summarize(
        self,
        scale: Scale,
        order: list[int],
        parts: ReliabilityParts,
        missing: Literal["error", "drop"],
        renormalize: bool,  # noqa: FBT001 - passed on
        blocks: int | None,
    ) -> Reliability:
        """Return the sum of the summaries of all files."""
        levels = self.cells.spelling.encode_labels(scale, self.labels)
        found = []
        for part, items in enumerate(self.items):
            counter = ReliabilityAccumulator(
                scale,
                parts,
                renormalize=renormalize,
                blocks=blocks,
                place=partial(self._name_row, part),
            )
            name = self.predictions or items.name
            for arrays in self._read_chunks(part, items.name):
                rows = np.stack([arrays[f"p{k}"] for k in order], axis=1)
                self._add_rows(counter, name, levels[arrays["gold"]], rows, arrays, missing)
            found.append(counter)
        if not any(counter.items.any() for counter in found):
            next(counter for counter in found if counter.seen).refuse_no_items()
        return reduce(add, (counter.summary() for counter in found))

    def _name_row(self, part: int, row: int) -> str:
        """Return how errors name a row: by its id, where files are joined."""
        if not self.keyed:
            return format_row_name(row)
        query = f"SELECT id FROM disk.rows{part} WHERE rowid = {row}"
        return f"id {read_rows(self.connection, query, self.items[part].name)[0][0]}"

    def _read_chunks(self, part: int, name: str) -> Iterator[dict[str, Array]]:
        table = f"disk.rows{part}"
        count = int(read_rows(self.connection, f"SELECT count(*) FROM {table}", name)[0][0])
        code = build_label_code_sql("gold", self.labels)
        selected = f"* {'EXCLUDE (id) ' * self.keyed}REPLACE ({code} AS gold)"
        rows = BLOCKS_PER_CHUNK * self.rows_per_block
        for start in range(0, count, rows):
            where = f"rowid >= {start} AND rowid < {start + rows}"
            query = f"SELECT {selected} FROM {table} WHERE {where} ORDER BY rowid"
            yield read_arrays(self.connection, query, name)

    def _add_rows(
        self,
        counter: ReliabilityAccumulator,
        name: str,
        truth: Array,
        rows: Array,
        arrays: dict[str, Array],
        missing: Literal["error", "drop"],
    ) -> None:
        """Add rows that left the engine together, a few at a time."""
        weights = arrays.get("weight")
        try:
            for start in range(0, len(truth), self.rows_per_block):
                where = slice(start, start + self.rows_per_block)
                weight = None if weights is None else weights[where]
                counter.add(truth[where], rows[where], weight, missing)
        except (BadProbabilities, MissingLabels) as problem:
            raise type(problem)(f"{name}: {problem}") from None
