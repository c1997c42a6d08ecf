"""Files of probabilities, one column for each level, summarised a few thousand rows at a time."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
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
from ordinate.readers.items import (
    BESIDE_GOLD,
    GOLD,
    IN_PREDICTED,
    PREDICTED,
    WEIGHT,
    Table,
)
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.number_spelling import suggest_decimal
from ordinate.readers.numeric_cells import MissingPolicy
from ordinate.scale import Scale
from ordinate.summaries.probabilities import (
    NO_COLUMN,
    ROWS_PER_BLOCK,
    count_agreement,
    format_row_name,
    match_columns_to_levels,
    place_columns,
)
from ordinate.summaries.reliability import Reliability, ReliabilityAccumulator, ReliabilityParts
from ordinate.summaries.tabulation import make_missing_labels_error

BLOCKS_PER_CHUNK = 8  # blocks of rows that leave the engine together


@dataclass(frozen=True)
class ReliabilityData:
    """The summary of files, spread over blocks, and where it came from.

    `by` is what was made of the summary of each subgroup; `agreement` the share of items whose most
    probable level is the predicted one, nan without predictions.
    """

    blocks: Reliability
    by: dict[Any, Any]
    agreement: float
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
    finish_subgroup: Callable[[Reliability], Any] = lambda summary: summary,
    watch: Watch = lambda _: nullcontext(),
    rows_per_block: int = ROWS_PER_BLOCK,
) -> ReliabilityData:
    """Summarise probabilities, whose columns were named, or one prefix that they share."""
    with open_sources(columns, watch) as reader:
        gold_files, files = reader.describe_sides(columns.gold_file, paths)
        found = expand_columns(columns.probabilities, files[0], scale)
        named_columns = replace(columns, predicted=columns.predicted or found[0])
        numbers = {f"p{k}": name for k, name in enumerate(found)}
        gold_only = [_drop_columns(source, found) for source in gold_files]
        planner = QueryPlanner(reader, gold_only, files, named_columns, numbers)
        weight = {} if columns.weights is None else {WEIGHT: columns.weights}
        spelling = LabelSpelling(columns.renamed)
        sides = {GOLD: planner.gold}
        if columns.predicted is not None:
            sides[PREDICTED] = columns.predicted
        items = planner.build_items()
        if missing == "drop":
            named = sides | columns.roles
            items = _blank_incomplete_items(items, [x for x in BESIDE_GOLD if x in named])
        cells = CountedCells(items, sides | weight, [*sides], spelling, "evaluate")
        scale, _ = cells.encode(scale)
        order = match_columns_to_levels(scale, found)
        predictions = ", ".join(source.name for source in files) if gold_files else ""
        if missing != "drop":
            _refuse_unmatched(cells)
        reading = _BlockReader(items, cells, found, predictions, rows_per_block)
        reading.store_rows(reader.folder, by=columns.by is not None)
        options: dict[str, Any] = {"renormalize": columns.renormalize, "blocks": blocks}
        build = partial(ReliabilityAccumulator, scale, parts, **options)
        summary, agreement = reading.summarize(build, order, missing)
        by = {}
        for name in reading.list_subgroups():
            part, _ = reading.summarize(build, order, missing, [name])
            if part.items.any():
                by[name] = finish_subgroup(part)
    names = tuple(source.name for source in reader.sources)
    in_order = tuple(found[k] for k in order if k != NO_COLUMN)
    notes = (*planner.notes, *cells.notes)
    origin = (planner.gold, in_order, names, notes, cells.match_counts)
    return ReliabilityData(summary, by, agreement, *origin)


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


def _blank_incomplete_items(items: FileItems, roles: Sequence[str]) -> FileItems:
    """Return the items, without gold where another label or the cluster is missing."""
    lacking = " OR ".join(f"nullif(CAST({role} AS VARCHAR), '') IS NULL" for role in roles)
    if not lacking:
        return items
    selected = f"* REPLACE (CASE WHEN {lacking} THEN NULL ELSE gold END AS gold)"
    parts = [replace(x, sql=f"SELECT {selected} FROM ({x.sql})") for x in items.parts]
    return replace(items, parts=parts)


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
        self.labels = {
            side: [label for label in found.values if label is not None]
            for side, found in cells.sides.items()
        }
        self.subgroups: list[dict[Any, range]] = []  # their rows, of each file

    def store_rows(self, folder: Path, *, by: bool) -> None:
        """Store numbers on disk, and refuse cells that are none."""
        name = self.items[0].name
        read_rows(self.connection, f"ATTACH {quote_literal(str(folder / 'rows.db'))} AS disk", name)
        number = "coalesce(TRY_CAST(p{0} AS DOUBLE), CAST('nan' AS DOUBLE)) AS p{0}"
        numbers = [number.format(k) for k in range(len(self.names))]
        weight = [f"{WEIGHT_SQL} AS weight"] if WEIGHT in self.cells.titles else []
        others = ["id"] * self.keyed + ["subgroup"] * by
        selected = ", ".join([*self.labels, *others, *weight, *numbers])
        condition = "WHERE in_gold ORDER BY id" if self.keyed else ""  # whatever order a join has
        for part, items in enumerate(self.items):
            named = replace(items, name=self.predictions or items.name)
            refuse_text_cells(self.connection, named, self.names)
            rows = f"SELECT {selected} FROM ({items.sql}) {condition}"
            read_rows(self.connection, f"CREATE TABLE disk.rows{part} AS {rows}", items.name)
            if by:
                self.subgroups.append(self._sort_rows(part, items.name))

    def _sort_rows(self, part: int, name: str) -> dict[Any, range]:
        """Store the rows of a file by their subgroups, too, and return where those of each are."""
        inorder = f"SELECT * FROM disk.rows{part} ORDER BY subgroup, rowid"
        read_rows(self.connection, f"CREATE TABLE disk.sorted{part} AS {inorder}", name)
        counted = f"SELECT subgroup, count(*) FROM disk.rows{part} GROUP BY ALL ORDER BY subgroup"
        names, counts = zip(*read_rows(self.connection, counted, name) or [((), ())], strict=True)
        ends = np.cumsum(counts).tolist()
        return dict(zip(names, map(range, [0, *ends], ends), strict=False))

    def list_subgroups(self) -> list[Any]:
        """Return the subgroups of all files."""
        return list(dict.fromkeys(chain.from_iterable(self.subgroups)))

    def summarize(
        self,
        build: Callable[..., ReliabilityAccumulator],
        order: list[int],
        missing: MissingPolicy,
        subgroup: Sequence[Any] = (),
    ) -> tuple[Reliability, float]:
        """Return the sum of the summaries of all files, and how often predictions agree.

        `build` makes a summary that has no rows; of a subgroup, only its rows are taken.
        """
        found, agreed = [], np.zeros(2)
        for part, items in enumerate(self.items):
            counter = build(place=partial(self._name_row, part))
            encode = partial(self.cells.spelling.encode_labels, counter.scale)
            levels = {side: encode(labels) for side, labels in self.labels.items()}
            for table in self._read_blocks(part, items.name, *subgroup):
                rows = np.stack([table[f"p{k}"] for k in range(len(self.names))], axis=1)
                rows = place_columns(rows, order)
                gold, *predicted = (levels[side][table[side]] for side in levels)
                weight = table.get("weight")
                for side in predicted:
                    agreed += count_agreement(rows, gold, side, len(counter.scale), weight)
                try:
                    counter.add(gold, rows, weight, missing)
                except (BadProbabilities, MissingLabels) as problem:
                    name = self.predictions or items.name
                    raise type(problem)(f"{name}: {problem}") from None
            found.append(counter)
        if not subgroup and not any(counter.items.any() for counter in found):
            next(counter for counter in found if counter.seen).refuse_no_items()
        same = float(agreed[1] / agreed[0]) if agreed[0] else math.nan
        return reduce(add, (counter.summary() for counter in found)), same

    def _name_row(self, part: int, row: int) -> str:
        """Return how errors name a row: by its id, where files are joined."""
        if not self.keyed:
            return format_row_name(row)
        query = f"SELECT id FROM disk.rows{part} WHERE rowid = {row}"
        return f"id {read_rows(self.connection, query, self.items[part].name)[0][0]}"

    def _read_blocks(self, part: int, name: str, *subgroup: Any) -> Iterator[Table]:
        """Yield a few rows at a time; more than those leave the engine together."""
        if subgroup:
            rows, here = f"disk.sorted{part}", self.subgroups[part].get(subgroup[0], range(0))
        else:
            rows = f"disk.rows{part}"
            ((count,),) = read_rows(self.connection, f"SELECT count(*) FROM {rows}", name)
            here = range(count)
        others = ["id"] * self.keyed + ["subgroup"] * bool(self.subgroups)
        excluded = f"EXCLUDE ({', '.join(others)}) " if others else ""
        codes = []
        for side, labels in self.labels.items():
            known = f"CAST([{', '.join(map(quote_literal, labels))}] AS VARCHAR[])"
            code = f"coalesce(list_position({known}, {side}) - 1, {len(labels)})"
            codes.append(f"CAST({code} AS INTEGER) AS {side}")
        selected = f"* {excluded}REPLACE ({', '.join(codes)})"
        size = self.rows_per_block
        for chunk in here[:: BLOCKS_PER_CHUNK * size]:
            stop = min(chunk + BLOCKS_PER_CHUNK * size, here.stop)
            where = f"rowid >= {chunk} AND rowid < {stop}"
            query = f"SELECT {selected} FROM {rows} WHERE {where} ORDER BY rowid"
            table = read_table(self.connection, query, name)
            for first in range(0, len(table["gold"]), size):
                yield {name: cells[first : first + size] for name, cells in table.items()}
