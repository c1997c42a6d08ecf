"""Files of probabilities, one column for each level, summarised a few thousand rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadProbabilities, MissingLabels, shorten
from ordinate.readers.cells import CountedCells
from ordinate.readers.column_names import expand_columns
from ordinate.readers.columns import ItemColumns
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows, read_table
from ordinate.readers.expressions import choose, column, join_by_or
from ordinate.readers.file_formats import FileSource, Watch, open_sources
from ordinate.readers.item_query import WEIGHT_SQL, FileItems, ItemQuery, QueryPlanner
from ordinate.readers.items import GOLD, IN_PREDICTED, WEIGHT, Table
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.number_spelling import suggest_decimal
from ordinate.readers.numeric_cells import MissingPolicy
from ordinate.scale import Scale
from ordinate.summaries.probabilities import (
    ROWS_PER_BLOCK,
    format_row_name,
    match_columns_to_levels,
)
from ordinate.summaries.reliability import Reliability, ReliabilityAccumulator, ReliabilityParts
from ordinate.summaries.tabulation import make_missing_labels_error

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
    parts: ReliabilityParts,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    blocks: int | None = None,
    watch: Watch = lambda _: nullcontext(),
    rows_per_block: int = ROWS_PER_BLOCK,
) -> ReliabilityData:
    """Summarise probabilities, whose columns were named, or one prefix that they share."""
    with open_sources(columns, watch) as reader:
        gold_files, files = reader.describe_sides(columns.gold_file, paths)
        found = expand_columns(columns.probabilities, files[0], scale)
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
        if missing != "drop":
            _refuse_unmatched(cells)
        reading = _BlockReader(items, cells, found, predictions, rows_per_block)
        reading.store_rows(reader.folder)
        options: dict[str, Any] = {"renormalize": columns.renormalize, "blocks": blocks}
        build = partial(ReliabilityAccumulator, scale, parts, **options)
        summary = reading.summarize(build, order, missing)
    names = tuple(source.name for source in reader.sources)
    in_order = tuple(found[k] for k in order)
    notes = (*planner.notes, *cells.notes, *reader.describe_left_out())
    return ReliabilityData(summary, planner.gold, in_order, names, notes, cells.match_counts)


def refuse_text_cells(connection: Connection, rows: ItemQuery, names: Sequence[str]) -> None:
    """Refuse the first cell that is no number; the probabilities of rows are called p0, p1, ..."""
    cells = [column(f"p{k}") for k in range(len(names))]
    texts = [choose(x.is_text(), x, None) for x in cells]
    strange = join_by_or([x.is_text() for x in cells])
    for place, *found in FileItems(connection, [rows]).find_cells(strange, 1, *texts):
        text, name = next(x for x in zip(found, names, strict=True) if x[0] is not None)
        raise BadProbabilities(
            f"{rows.name}: the probability {shorten(text)} ({place} of column {name!r}) is not a "
            f"number. Write it like 0.7.{suggest_decimal(text)}"
        )


def _drop_columns(source: FileSource, columns: tuple[str, ...]) -> FileSource:
    """Return a file of gold without probabilities, which may be those of another system."""
    others = {name: sql for name, sql in source.columns.items() if name not in columns}
    return replace(source, columns=others)


def _refuse_unmatched(cells: CountedCells) -> None:
    """Refuse gold levels of items without probabilities."""
    if cells.items.keyed and not (matched := cells.table[IN_PREDICTED].astype(bool)).all():
        places = cells.places.find_places(~column(IN_PREDICTED))
        count, n = int(cells.sums.items[~matched].sum()), int(cells.sums.items.sum())
        raise make_missing_labels_error(count, n, "rows of probabilities", places)


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

    def store_rows(self, folder: Path) -> None:
        """Store numbers on disk, and refuse cells that are none."""
        name = self.items[0].name
        read_rows(self.connection, f"ATTACH {quote_literal(str(folder / 'rows.db'))} AS disk", name)
        number = "coalesce(TRY_CAST(p{0} AS DOUBLE), CAST('nan' AS DOUBLE)) AS p{0}"
        numbers = [number.format(k) for k in range(len(self.names))]
        weight = [f"{WEIGHT_SQL} AS weight"] if WEIGHT in self.cells.titles else []
        selected = ", ".join(["gold", *(("id",) if self.keyed else ()), *weight, *numbers])
        condition = "WHERE in_gold ORDER BY id" if self.keyed else ""  # whatever order a join has
        for part, items in enumerate(self.items):
            named = replace(items, name=self.predictions or items.name)
            refuse_text_cells(self.connection, named, self.names)
            rows = f"SELECT {selected} FROM ({items.sql}) {condition}"
            read_rows(self.connection, f"CREATE TABLE disk.rows{part} AS {rows}", items.name)

    def summarize(
        self, build: Callable[..., ReliabilityAccumulator], order: list[int], missing: MissingPolicy
    ) -> Reliability:
        """Return the sum of the summaries of all files; `build` makes one that has no rows."""
        found = []
        for part, items in enumerate(self.items):
            counter = build(place=partial(self._name_row, part))
            levels = self.cells.spelling.encode_labels(counter.scale, self.labels)
            for table in self._read_blocks(part, items.name):
                rows = np.stack([table[f"p{k}"] for k in order], axis=1)
                try:
                    counter.add(levels[table["gold"]], rows, table.get("weight"), missing)
                except (BadProbabilities, MissingLabels) as problem:
                    name = self.predictions or items.name
                    raise type(problem)(f"{name}: {problem}") from None
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

    def _read_blocks(self, part: int, name: str) -> Iterator[Table]:
        """Yield a few rows at a time; more than those leave the engine together."""
        rows = f"disk.rows{part}"
        count = int(read_rows(self.connection, f"SELECT count(*) FROM {rows}", name)[0][0])
        labels = f"CAST([{', '.join(map(quote_literal, self.labels))}] AS VARCHAR[])"
        code = f"coalesce(list_position({labels}, gold) - 1, {len(self.labels)})"
        selected = f"* {'EXCLUDE (id) ' * self.keyed}REPLACE (CAST({code} AS INTEGER) AS gold)"
        size = self.rows_per_block
        for start in range(0, count, BLOCKS_PER_CHUNK * size):
            where = f"rowid >= {start} AND rowid < {start + BLOCKS_PER_CHUNK * size}"
            query = f"SELECT {selected} FROM {rows} WHERE {where} ORDER BY rowid"
            table = read_table(self.connection, query, name)
            for first in range(0, len(table["gold"]), size):
                yield {name: cells[first : first + size] for name, cells in table.items()}
