"""Columns of files as they stand, for what needs the single items."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten
from ordinate.readers.columns import FileOptions, RegressionColumns
from ordinate.readers.duckdb_connection import Connection, read_arrays, read_rows
from ordinate.readers.file_formats import FileSource, open_sources
from ordinate.readers.item_query import build_label_sql, build_number_sql, resolve_column
from ordinate.readers.regression import RegressionData
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.tabulation import DROP_HINT, ROWS_SHOWN, make_missing_labels_error

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
        return read_sources(
            reader.connection, reader.describe_files(paths), names, labels, most_rows
        )


def read_sources(
    connection: Connection,
    sources: list[FileSource],
    names: Sequence[str],
    labels: Sequence[str],
    most_rows: int = MOST_ROWS,
) -> ItemTable:
    """Return columns of files that were opened."""
    counts = [count_rows(connection, source) for source in sources]
    if sum(counts) > most_rows:
        raise BadInput(
            f"{sum(counts):,} rows are too many to look at one by one: at most {most_rows:,}."
        )
    return ItemTable(
        {name: _read_column(connection, sources, name) for name in dict.fromkeys(names)},
        {name: read_labels(connection, sources, name) for name in dict.fromkeys(labels)},
        tuple(source.name for source in sources),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.arange(1, count + 1) for count in counts]),
    )


def count_rows(connection: Connection, source: FileSource) -> int:
    """Return how many rows a file has."""
    return int(read_rows(connection, f"SELECT count(*) FROM {source.sql}", source.name)[0][0])


def _read_column(connection: Connection, sources: list[FileSource], name: str) -> Any:
    query = _union_queries([f"SELECT {resolve_column(s, name)} AS x FROM {s.sql}" for s in sources])
    value = "nullif(CAST(x AS VARCHAR), '')"
    odd = f"{value} IS NOT NULL AND TRY_CAST(x AS DOUBLE) IS NULL"
    strange = f"SELECT count(*) FROM ({query}) WHERE {odd}"
    if int(read_rows(connection, strange, sources[0].name)[0][0]):
        return [
            row[0]
            for row in read_rows(connection, f"SELECT {value} FROM ({query})", sources[0].name)
        ]
    found = read_arrays(
        connection, f"SELECT {build_number_sql('x')} FROM ({query})", sources[0].name
    )
    return np.asarray(found["x"])


def read_labels(connection: Connection, sources: list[FileSource], name: str) -> Array:
    """Return a column as strings, None where a cell is empty."""
    query = _union_queries(
        [f"SELECT {build_label_sql(s, name)} AS x FROM {s.sql}" for s in sources]
    )
    found = [row[0] for row in read_rows(connection, query, sources[0].name)]
    return np.array([*found, None], object)[:-1]  # None: an array of strings, however long


def _union_queries(queries: list[str]) -> str:
    return " UNION ALL ".join(f"({query})" for query in queries)


# --- items that were summed up --------------------------------------------------------------------


@dataclass(frozen=True)
class RegressionItems:
    """The items that were evaluated, and which of their columns is what."""

    table: ItemTable
    target: str
    predicted: str
    columns: RegressionColumns

    @property
    def y(self) -> Any:
        """The targets."""
        return self.table[self.target]

    @property
    def p(self) -> Any:
        """The predictions."""
        return self.table[self.predicted]

    @property
    def weights(self) -> Any:
        """The weights, None where all items are alike."""
        return None if self.columns.weights is None else self.table[self.columns.weights]

    @property
    def groups(self) -> Any:
        """The groups of items that belong together, None without."""
        return None if self.columns.groups is None else self.table.labels[self.columns.groups]

    @property
    def by(self) -> Any:
        """The subgroups, None without."""
        return None if self.columns.by is None else self.table.labels[self.columns.by]

    def split_subgroups(self) -> "dict[Any, RegressionItems]":
        """Return the items of each subgroup, None for those without one."""
        by = factorize_column(self.by)
        return {name: self._select_items(by.codes == k) for k, name in enumerate(by.values)}

    def _select_items(self, mask: Any) -> "RegressionItems":
        return replace(self, table=self.table.select_rows(mask))

    def denormalize_items(
        self, training: Normalization, rivals: tuple[str, ...]
    ) -> "RegressionItems":
        """Return the items in the unit of the targets."""
        columns = self.table.columns
        own = {self.target, self.predicted, *(name for name in rivals if name in columns)}
        denormalized = {
            name: training.denormalize(columns[name])
            for name in own
            if not isinstance(columns[name], list)
        }
        return replace(self, table=replace(self.table, columns=columns | denormalized))

    def select_predicted(self, rivals: tuple[str, ...], missing: str) -> "RegressionItems":
        """Return the items that all rivals predict."""
        mask, places = np.ones(len(self.table), bool), self.table.places
        for name in rivals:
            column = self.table[name]
            cells = _convert_to_numbers(column)
            empty = np.isnan(cells)
            if isinstance(column, list):
                empty = np.array([cell is None for cell in column], bool)
            strange = np.flatnonzero(~np.isfinite(cells) & ~empty)
            if len(strange):
                raise BadValues(
                    f"The prediction ({places[strange[0]]} of column {name!r}) is "
                    f"{shorten(column[strange[0]])}, which is no finite number."
                )
            if empty.any() and missing != "drop":
                shown = [places[k] for k in np.flatnonzero(empty)[:ROWS_SHOWN]]
                title = f"predictions in column {name!r}"
                way = f"Leave them out with {DROP_HINT}."
                raise make_missing_labels_error(int(empty.sum()), len(empty), title, shown, way)
            mask &= ~empty
        return self._select_items(mask)


def read_items(
    paths: list[str], columns: RegressionColumns, found: RegressionData, further: Sequence[str]
) -> RegressionItems:
    """Read the items of files that were summed up: with numbers, a group, and a weight above 0."""
    optional = (columns.lower, columns.upper, columns.weights)
    needed = [found.target, found.predicted, *(name for name in optional if name is not None)]
    labels = [name for name in (columns.groups, columns.by) if name is not None]
    table = read_columns(paths, [*needed, *further], columns, labels=labels)
    cells = {name: _convert_to_numbers(table[name]) for name in needed}
    mask = ~np.isnan(np.stack(list(cells.values()))).any(axis=0)
    if columns.groups is not None:
        mask &= np.array([name is not None for name in table.labels[columns.groups]], bool)
    if columns.weights is not None:
        mask &= cells[columns.weights] > 0
    table = replace(table, columns=table.columns | cells).select_rows(mask)
    converted = {name: _convert_if_numeric(column) for name, column in table.columns.items()}
    table = replace(table, columns=converted)
    return RegressionItems(table, found.target, found.predicted, columns)


def _convert_if_numeric(column: Any) -> Any:
    """Return strings as numbers if those that are no numbers stood in items that do not count."""
    if not isinstance(column, list):
        return column
    cells = _convert_to_numbers(column)
    known = all(cell is None or not math.isnan(x) for cell, x in zip(column, cells, strict=True))
    return cells if known else column


def _convert_to_numbers(column: Any) -> Any:
    """Return a column as numbers, nan where there is none."""
    if not isinstance(column, list):
        return column
    return np.array([_parse_number(cell) for cell in column], float)


def _parse_number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
