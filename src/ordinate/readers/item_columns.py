"""Columns of files as they stand, for what needs the single items."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput
from ordinate.readers.columns import FileOptions
from ordinate.readers.file_formats import FileSource, open_sources
from ordinate.readers.item_query import build_label_sql, resolve_column

Array = NDArray[Any]
MOST_ROWS = 20_000_000  # rows that are taken into memory


class RowNames(Sequence[str]):
    """Where items stand: 'row 3', or 'b.csv:3' where there are several files."""

    def __init__(self, files: tuple[str, ...], file: Array, row: Array) -> None:
        self.files, self.file, self.row = files, file, row

    def __len__(self) -> int:
        return len(self.row)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
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
    most_rows: int = MOST_ROWS,
) -> ItemTable:
    """Return columns by name: numbers where all that is there is a number, strings otherwise.

    `labels` are columns that are read as strings, whatever they hold.
    """
    with open_sources(options) as reader:
        return read_sources(reader.describe_files(paths), names, labels, most_rows)


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
        {name: _read_column(sources, name) for name in dict.fromkeys(names)},
        {name: read_labels(sources, name) for name in dict.fromkeys(labels)},
        tuple(source.name for source in sources),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.arange(1, count + 1) for count in counts]),
    )


def _read_column(sources: list[FileSource], name: str) -> Any:
    """Return a column as numbers, nan where there is none, or as strings."""
    number = "TRY_CAST({0} AS DOUBLE)"
    strange = "count(*) FILTER (nullif(CAST({0} AS VARCHAR), '') IS NOT NULL AND {1} IS NULL)"
    columns = [(source, resolve_column(source, name)) for source in sources]
    if any(source.read(strange.format(x, number.format(x)))[0][0] for source, x in columns):
        cells = "nullif(CAST({0} AS VARCHAR), '')"
        return [row[0] for source, x in columns for row in source.read(cells.format(x))]
    cells = f"coalesce({number}, CAST('nan' AS DOUBLE)) AS x"
    return np.concatenate([source.read_arrays(cells.format(x))["x"] for source, x in columns])


def read_labels(sources: list[FileSource], name: str) -> Array:
    """Return a column as strings, None where a cell is empty."""
    found = [row[0] for x in sources for row in x.read(build_label_sql(x, name))]
    return np.array([*found, None], object)[:-1]  # None: an array of strings, however long
