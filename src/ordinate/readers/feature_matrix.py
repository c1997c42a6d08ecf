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

from ordinate.errors import BadInput, BadValues, brief
from ordinate.readers.duckdb_engine import Connection, connect
from ordinate.readers.files import (
    LINES,
    PACKED,
    Reader,
    Source,
    delimiter_of,
    literal,
    open_sources,
    opened,
    quoted,
    read,
    read_arrays,
)
from ordinate.readers.query import column_of, label_of

Array = NDArray[Any]
BLOCK = 1024  # columns that are read at once: the engine holds them beside the matrix


@dataclass(frozen=True)
class Numbers:
    """The numbers of a file, and its ids as texts where a column of them was asked for."""

    matrix: Array  # [N, D], float32 where all columns are
    ids: list[str | None] | None


def column_names(
    path: str, delimiter: str | None = None, encoding: str | None = None
) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    with connect() as connection, open_sources(connection, delimiter, encoding) as reader:
        return tuple(_source(connection, reader, path).columns)


def first_cells(path: Path) -> list[str]:
    """Return the cells of the first line of a text file, whatever they are; none if unreadable."""
    try:
        with path.open("rb") as file:
            packing = PACKED.get(file.read(2), "")
        with opened(path, packing) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
            lines = [text.readline() for _ in range(LINES)]
        return next(csv.reader(lines, delimiter=delimiter_of(lines)), [])
    except (OSError, EOFError, UnicodeError, csv.Error):
        return []


def read_matrix(path: str, names: Sequence[str], id_column: str | None = None) -> Numbers:
    """Return columns of a file as a matrix; a cell that is no finite number is an error."""
    with connect() as connection, open_sources(connection, None, None) as reader:
        source = _source(connection, reader, path)
        n = int(read(connection, f"SELECT count(*) FROM {source.sql}", source.name)[0][0])
        kind = np.float32 if _single(connection, source, names) else np.float64
        matrix = np.empty((n, len(names)), kind)
        for start in range(0, len(names), BLOCK):
            _fill(connection, source, matrix, names, start)
        ids = None if id_column is None else _ids(connection, source, id_column)
        return Numbers(matrix, ids)


def _source(connection: Connection, reader: Reader, path: str) -> Source:
    """Return a file under its own names: the engine takes 'it' and 'It' for one, and renames."""
    source = reader.sources([path])[0]
    if source.parquet is None:
        return source
    schema = f"SELECT name FROM parquet_schema({literal(str(source.parquet))}) OFFSET 1"
    names = [row[0] for row in read(connection, schema, source.name)]
    if len(names) != len(source.columns):  # nested columns, whose parts are listed too
        return source
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise BadInput(f"{source.name} has two columns named {brief(twice[0])}. Rename one.")
    numbers = {
        own for own, known in zip(names, source.columns, strict=True) if known in source.numbers
    }
    columns = dict(zip(names, source.columns.values(), strict=True))
    return replace(source, columns=columns, numbers=frozenset(numbers))


def _single(connection: Connection, source: Source, names: Sequence[str]) -> bool:
    """Tell whether all columns are of single precision, as embeddings often are."""
    rows = read(connection, f"DESCRIBE SELECT * FROM {source.sql}", source.name)
    kinds = {quoted(row[0]): row[1] for row in rows}
    return bool(names) and all(kinds.get(column_of(source, name)) == "FLOAT" for name in names)


def _fill(
    connection: Connection, source: Source, matrix: Array, names: Sequence[str], start: int
) -> None:
    part = names[start : start + BLOCK]
    kind = "FLOAT" if matrix.dtype == np.float32 else "DOUBLE"
    chosen = [
        f"coalesce(TRY_CAST({column_of(source, name)} AS {kind}), 'nan'::{kind}) AS x{k}"
        for k, name in enumerate(part)
    ]
    query = f"SELECT {', '.join(chosen)} FROM {source.sql}"
    found = read_arrays(connection, query, source.name)
    for k, name in enumerate(part):
        column = matrix[:, start + k]
        column[:] = found[f"x{k}"]
        odd = ~np.isfinite(column)
        if odd.any():
            raise _strange(connection, source, name, int(np.argmax(odd)))


def _strange(connection: Connection, source: Source, name: str, row: int) -> BadValues:
    """Return the error for a cell that is no finite number, with what stands there."""
    query = f"SELECT CAST({column_of(source, name)} AS VARCHAR) FROM {source.sql} LIMIT 1"
    cell = read(connection, f"{query} OFFSET {row}", source.name)[0][0]
    what = "is empty" if not cell else f"is {brief(cell)}, which is no finite number"
    return BadValues(f"{source.name}: the cell in row {row + 1} of column {brief(name)} {what}.")


def _ids(connection: Connection, source: Source, name: str) -> list[str | None]:
    query = f"SELECT {label_of(source, name)} FROM {source.sql}"
    found = [row[0] for row in read(connection, query, source.name)]
    if name not in source.numbers:
        return found
    return [None if one is None else one.removesuffix(".0") for one in found]  # 7.0 is the id 7


def read_lines(path: Path) -> list[list[str]]:
    """Return the records of a small CSV file, such as a list of names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            return [row for row in csv.reader(text) if row]
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8.") from None
    except (OSError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read: {problem}.") from None
