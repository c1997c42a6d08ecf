"""Columns of numbers of one file as a matrix: a few queries, whatever its width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten
from ordinate.readers.columns import FileOptions
from ordinate.readers.duckdb_connection import Connection, read_arrays, read_rows
from ordinate.readers.file_formats import FileReader, FileSource, open_sources
from ordinate.readers.item_columns import count_rows, read_labels
from ordinate.readers.item_query import resolve_column

Array = NDArray[Any]
COLUMNS_PER_QUERY = 1024  # columns that are read at once: the engine holds them and the matrix


@dataclass(frozen=True)
class FeatureMatrix:
    """The numbers of a file, and its ids as strings where a column of them was named."""

    matrix: Array  # [N, D], float32 where all columns are
    ids: list[str | None] | None


def read_column_names(
    path: str, delimiter: str | None = None, encoding: str | None = None
) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    with open_sources(FileOptions(delimiter=delimiter, encoding=encoding)) as reader:
        return tuple(describe_single_file(reader, path).columns)


def describe_single_file(reader: FileReader, path: str) -> FileSource:
    """Return the one file of a name."""
    sources = reader.describe_files([path])
    if len(sources) != 1:
        raise BadInput(f"{shorten(path)} stands for {len(sources)} files: name one of them.")
    return sources[0]


def read_matrix(
    path: str,
    names: Sequence[str],
    id_column: str | None = None,
    *,
    columns_per_query: int = COLUMNS_PER_QUERY,
) -> FeatureMatrix:
    """Return columns of a file as a matrix; a cell that is no finite number is an error."""
    with open_sources() as reader:
        source = describe_single_file(reader, path)
        columns = {name: resolve_column(source, name) for name in names}
        dtype = _choose_dtype(reader.connection, source, columns)
        matrix = read_numbers(reader.connection, source, columns, dtype, columns_per_query)
        if id_column is None:
            return FeatureMatrix(matrix, None)
        ids = read_labels(reader.connection, [source], id_column).tolist()
        if id_column in source.numbers:  # 7.0 is the id 7
            ids = [None if x is None else x.removesuffix(".0") for x in ids]
        return FeatureMatrix(matrix, ids)


def _choose_dtype(
    connection: Connection, source: FileSource, columns: Mapping[str, str]
) -> type[np.floating[Any]]:
    """Return single precision if all columns have it, as embeddings often do."""
    selected = ", ".join(columns.values()) or "NULL"
    rows = read_rows(connection, f"DESCRIBE SELECT {selected} FROM {source.sql}", source.name)
    return np.float32 if {row[1] for row in rows} == {"FLOAT"} else np.float64


def read_numbers(
    connection: Connection,
    source: FileSource,
    columns: Mapping[str, str],
    dtype: type[np.floating[Any]] = np.float64,
    columns_per_query: int = COLUMNS_PER_QUERY,
) -> Array:
    """Return numbers as a matrix; `columns` is SQL for each column, by its name.

    A cell that is no finite number is an error, with its row.
    """
    sql_type = "FLOAT" if dtype == np.float32 else "DOUBLE"
    matrix = np.empty((count_rows(connection, source), len(columns)), dtype)
    for start in range(0, len(columns), columns_per_query):
        names = list(columns)[start : start + columns_per_query]
        cells = (f"TRY_CAST({columns[name]} AS {sql_type})" for name in names)
        selected = (f"coalesce({cell}, 'nan'::{sql_type}) AS x{k}" for k, cell in enumerate(cells))
        query = f"SELECT {', '.join(selected)} FROM {source.sql}"
        found = read_arrays(connection, query, source.name)
        for k, name in enumerate(names):
            matrix[:, start + k] = found[f"x{k}"]
            odd = ~np.isfinite(matrix[:, start + k])
            if odd.any():
                raise _make_cell_error(connection, source, name, int(np.argmax(odd)))
    return matrix


def _make_cell_error(connection: Connection, source: FileSource, name: str, row: int) -> BadValues:
    """Return the error for a cell that is no finite number, with what stands there."""
    query = f"SELECT CAST({resolve_column(source, name)} AS VARCHAR) FROM {source.sql} LIMIT 1"
    cell = read_rows(connection, f"{query} OFFSET {row}", source.name)[0][0]
    state = f"is {shorten(cell)}, which is no finite number" if cell else "is empty"
    return BadValues(f"{source.name}: the cell in row {row + 1} of column {shorten(name)} {state}.")
