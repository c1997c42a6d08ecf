"""Columns of files as they stand, for what needs the single items."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ordinate.errors import BadInput
from ordinate.readers.columns import FileOptions
from ordinate.readers.expressions import MISSING_WORD
from ordinate.readers.file_formats import FileSource, Watch, open_sources
from ordinate.readers.item_query import build_label_sql, resolve_column, resolve_number
from ordinate.readers.items import Array

MOST_ROWS = 20_000_000  # rows that are taken into memory


class RowNames(Sequence[str]):
    """Where items stand: 'row 3', or 'b.csv:3' where there are several files."""

    def __init__(self, files: tuple[str, ...], file: Array, row: Array) -> None:
        self.files, self.file, self.row = files, file, row

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, at: Any) -> Any:
        row = f"{self.row[at]}"
        return f"row {row}" if len(self.files) == 1 else f"{self.files[self.file[at]]}:{row}"


@dataclass(frozen=True)
class ItemTable:
    """Columns by name, and where their items stand: in which file, in which of its rows, from 1."""

    columns: dict[str, Any]
    labels: dict[str, Array]  # columns that were named as labels, None where one is missing
    files: tuple[str, ...]
    file: Array = field(repr=False)
    row: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def places(self) -> RowNames:
        """Where each item stands, as people say it."""
        return RowNames(self.files, self.file, self.row)

    def select_rows(self, mask: Array) -> "ItemTable":
        """Return the items of a mask; they keep their rows."""
        if mask.all():
            return self
        columns, labels = (
            {name: _select_cells(column, mask) for name, column in part.items()}
            for part in (self.columns, self.labels)
        )
        return ItemTable(columns, labels, self.files, self.file[mask], self.row[mask])


def _select_cells(column: Any, mask: Array) -> Any:
    if isinstance(column, list):
        return [cell for cell, there in zip(column, mask, strict=True) if there]
    return column[mask]


def read_columns(
    paths: list[str],
    names: Sequence[str],
    options: FileOptions | None = None,
    *,
    labels: Sequence[str] = (),
    values: Collection[str] = (),
    most_rows: int = MOST_ROWS,
    watch: Watch = lambda _: nullcontext(),
) -> ItemTable:
    """Return columns by name: numbers where all that is there is a number, strings otherwise.

    `labels` are columns that are read as strings, whatever they hold; of `values`, what people
    write where there is no number is missing.
    """
    with open_sources(options, watch) as reader:
        sources = [_empty_missing_cells(x, values) for x in reader.describe_files(paths)]
        return read_sources(sources, names, labels, most_rows)


def _empty_missing_cells(source: FileSource, values: Collection[str]) -> FileSource:
    def empty(cells: Mapping[str, str]) -> dict[str, str]:
        words = {
            x: MISSING_WORD.format(f"CAST({cells[x]} AS VARCHAR)") for x in {*values} & {*cells}
        }
        return {**cells, **{x: f"CASE WHEN NOT {y} THEN {cells[x]} END" for x, y in words.items()}}

    return replace(
        source, columns=empty(source.columns), number_columns=empty(source.number_columns)
    )


def read_sources(
    sources: list[FileSource],
    names: Sequence[str],
    labels: Sequence[str],
    most_rows: int = MOST_ROWS,
) -> ItemTable:
    """Return columns of files that were opened."""
    counts = [source.count_rows() for source in sources]
    if sum(counts) > most_rows:
        raise BadInput(
            f"{sum(counts):,} rows are too many to look at one by one: at most {most_rows:,}."
        )
    return ItemTable(
        read_cells(sources, names),
        {name: read_labels(sources, name) for name in dict.fromkeys(labels)},
        tuple(source.name for source in sources),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.arange(1, count + 1) for count in counts]),
    )


def read_cells(sources: list[FileSource], names: Sequence[str]) -> dict[str, Any]:
    """Return columns by name: arrays of numbers, nan where there is none, or lists of strings."""
    if not names:
        return {}
    names = list(dict.fromkeys(names))
    number, text = "TRY_CAST({0} AS DOUBLE)", "nullif(CAST({0} AS VARCHAR), '')"
    strange = f"count(*) FILTER ({text} IS NOT NULL AND {number} IS NULL)"
    texts: set[str] = set()
    for source in sources:
        counts = source.read(", ".join(strange.format(resolve_number(source, x)) for x in names))[0]
        texts |= {name for name, count in zip(names, counts, strict=True) if count}
    number = f"coalesce({number}, CAST('nan' AS DOUBLE))"
    tables = []
    for source in sources:
        wanted = (
            text.format(resolve_column(source, x))
            if x in texts
            else number.format(resolve_number(source, x))
            for x in names
        )
        tables.append(source.read_table(", ".join(f"{x} AS x{k}" for k, x in enumerate(wanted))))
    joined = {x: np.concatenate([y[f"x{k}"] for y in tables]) for k, x in enumerate(names)}
    return {name: x.tolist() if name in texts else x for name, x in joined.items()}


def read_labels(sources: list[FileSource], name: str) -> Array:
    """Return a column as strings, None where a cell is empty."""
    tables = (x.read_table(f"{build_label_sql(x, name)} AS label") for x in sources)
    return np.concatenate([table["label"] for table in tables])
