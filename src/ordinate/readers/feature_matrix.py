"""Columns of numbers as one matrix, read a block at a time and never cell by cell in Python."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten
from ordinate.readers.duckdb_connection import (
    Connection,
    connect,
    quote_identifier,
    quote_literal,
    read_arrays,
    read_rows,
)
from ordinate.readers.file_formats import (
    COMPRESSION_BY_MAGIC,
    DELIMITER_LINES,
    FileReader,
    FileSource,
    detect_delimiter,
    open_sources,
    open_unpacked,
)
from ordinate.readers.item_query import build_label_sql, resolve_column

Array = NDArray[Any]
COLUMNS_PER_BLOCK = 1024  # columns that are read at once: the engine holds them and the matrix


@dataclass(frozen=True)
class FeatureMatrix:
    """The numbers of a file, and its ids as strings where a column of them was named."""

    matrix: Array  # [N, D], float32 where all columns are
    ids: list[str | None] | None


def read_column_names(
    path: str, delimiter: str | None = None, encoding: str | None = None
) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    with connect() as connection, open_sources(connection, delimiter, encoding) as reader:
        return tuple(_describe_source(connection, reader, path).columns)


def read_first_cells(path: Path) -> list[str]:
    """Return the cells of the first line of a text file, whatever they are; none if unreadable."""
    try:
        with path.open("rb") as file:
            compression = COMPRESSION_BY_MAGIC.get(file.read(2), "")
        with (
            open_unpacked(path, compression) as raw,
            io.TextIOWrapper(raw, "utf-8-sig", newline="") as text,
        ):
            lines = [text.readline() for _ in range(DELIMITER_LINES)]
        return next(csv.reader(lines, delimiter=detect_delimiter(lines)), [])
    except (OSError, EOFError, UnicodeError, csv.Error):
        return []


def read_matrix(
    path: str,
    names: Sequence[str],
    id_column: str | None = None,
    *,
    columns_per_block: int = COLUMNS_PER_BLOCK,
) -> FeatureMatrix:
    """Return columns of a file as a matrix; a cell that is no finite number is an error."""
    with connect() as connection, open_sources(connection, None, None) as reader:
        source = _describe_source(connection, reader, path)
        n = int(read_rows(connection, f"SELECT count(*) FROM {source.sql}", source.name)[0][0])
        dtype = np.float32 if _is_single_precision(connection, source, names) else np.float64
        matrix = np.empty((n, len(names)), dtype)
        for start in range(0, len(names), columns_per_block):
            block = slice(start, start + columns_per_block)
            _fill_columns(connection, source, matrix[:, block], names[block])
        ids = None if id_column is None else _read_ids(connection, source, id_column)
        return FeatureMatrix(matrix, ids)


def _describe_source(connection: Connection, reader: FileReader, path: str) -> FileSource:
    """Return a file under its own names: the engine takes 'it' and 'It' for one, and renames."""
    source = reader.describe_files([path])[0]
    if source.parquet is None:
        return source
    schema = f"SELECT name FROM parquet_schema({quote_literal(str(source.parquet))}) OFFSET 1"
    names = [row[0] for row in read_rows(connection, schema, source.name)]
    if len(names) != len(source.columns):  # nested columns, whose parts are listed too
        return source
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise BadInput(f"{source.name} has two columns named {shorten(twice[0])}. Rename one.")
    numbers = {
        own for own, known in zip(names, source.columns, strict=True) if known in source.numbers
    }
    columns = dict(zip(names, source.columns.values(), strict=True))
    return replace(source, columns=columns, numbers=frozenset(numbers))


def _is_single_precision(connection: Connection, source: FileSource, names: Sequence[str]) -> bool:
    """Tell whether all columns are of single precision, as embeddings often are."""
    rows = read_rows(connection, f"DESCRIBE SELECT * FROM {source.sql}", source.name)
    types = {quote_identifier(row[0]): row[1] for row in rows}
    return bool(names) and all(types.get(resolve_column(source, name)) == "FLOAT" for name in names)


def _fill_columns(
    connection: Connection, source: FileSource, matrix: Array, names: Sequence[str]
) -> None:
    sql_type = "FLOAT" if matrix.dtype == np.float32 else "DOUBLE"
    cells = (f"TRY_CAST({resolve_column(source, name)} AS {sql_type})" for name in names)
    selected = [f"coalesce({cell}, 'nan'::{sql_type}) AS x{k}" for k, cell in enumerate(cells)]
    query = f"SELECT {', '.join(selected)} FROM {source.sql}"
    found = read_arrays(connection, query, source.name)
    for k, name in enumerate(names):
        column = matrix[:, k]
        column[:] = found[f"x{k}"]
        odd = ~np.isfinite(column)
        if odd.any():
            raise _make_cell_error(connection, source, name, int(np.argmax(odd)))


def _make_cell_error(connection: Connection, source: FileSource, name: str, row: int) -> BadValues:
    """Return the error for a cell that is no finite number, with what stands there."""
    query = f"SELECT CAST({resolve_column(source, name)} AS VARCHAR) FROM {source.sql} LIMIT 1"
    cell = read_rows(connection, f"{query} OFFSET {row}", source.name)[0][0]
    state = "is empty" if not cell else f"is {shorten(cell)}, which is no finite number"
    return BadValues(f"{source.name}: the cell in row {row + 1} of column {shorten(name)} {state}.")


def _read_ids(connection: Connection, source: FileSource, name: str) -> list[str | None]:
    query = f"SELECT {build_label_sql(source, name)} FROM {source.sql}"
    found = [row[0] for row in read_rows(connection, query, source.name)]
    if name not in source.numbers:
        return found
    return [None if x is None else x.removesuffix(".0") for x in found]  # 7.0 is the id 7


def read_csv_records(path: Path) -> list[list[str]]:
    """Return the records of a small CSV file, such as a list of names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            return [row for row in csv.reader(text) if row]
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8.") from None
    except (OSError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read: {problem}.") from None
