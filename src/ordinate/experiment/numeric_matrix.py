"""Columns of numbers of one file as a matrix: a few queries, whatever its width."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten
from ordinate.readers.columns import FileOptions
from ordinate.readers.file_formats import FileReader, FileSource, open_sources
from ordinate.readers.item_columns import read_labels
from ordinate.readers.item_query import resolve_column, resolve_number
from ordinate.readers.number_spelling import suggest_decimal

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
        single = bool(names) and _have_single_precision(source, columns.values())
        dtype = np.float32 if single else np.float64
        matrix = read_numbers(source, columns, dtype, columns_per_query)
        if id_column is None:
            return FeatureMatrix(matrix, None)
        ids = read_labels([source], id_column).tolist()
        if id_column in source.numbers:  # 7.0 is the id 7
            ids = [None if x is None else x.removesuffix(".0") for x in ids]
        return FeatureMatrix(matrix, ids)


def _have_single_precision(source: FileSource, columns: Iterable[str]) -> bool:
    """Tell whether all columns are of single precision, as embeddings often are."""
    rows = source.read(", ".join(f"typeof({sql})" for sql in columns), "LIMIT 1")
    return bool(rows) and set(rows[0]) == {"FLOAT"}


def read_numbers(
    source: FileSource,
    columns: Mapping[str, str],
    dtype: type[np.floating[Any]] = np.float64,
    columns_per_query: int = COLUMNS_PER_QUERY,
) -> Array:
    """Return numbers as a matrix; `columns` is SQL for each column, by its name.

    A cell that is no finite number is an error, with its row.
    """
    sql_type = "FLOAT" if dtype == np.float32 else "DOUBLE"
    matrix = np.empty((source.count_rows(), len(columns)), dtype)
    for start in range(0, len(columns), columns_per_query):
        names = list(columns)[start : start + columns_per_query]
        cells = (f"TRY_CAST({columns[name]} AS {sql_type})" for name in names)
        selected = (f"coalesce({cell}, 'nan'::{sql_type}) AS x{k}" for k, cell in enumerate(cells))
        found = source.read_table(", ".join(selected))
        for k, name in enumerate(names):
            matrix[:, start + k] = found[f"x{k}"]
            odd = ~np.isfinite(matrix[:, start + k])
            if odd.any():
                raise _make_cell_error(source, name, int(np.argmax(odd)))
    return matrix


def _make_cell_error(source: FileSource, name: str, row: int) -> BadValues:
    """Return the error for a cell that is no finite number, with what stands there."""
    text = f"CAST({resolve_number(source, name)} AS VARCHAR)"
    ((cell,),) = source.read(text, f"LIMIT 1 OFFSET {row}")
    state = f"is {shorten(cell)}, which is no finite number" if cell else "is empty"
    return BadValues(
        f"{source.name}: the cell in row {row + 1} of column {shorten(name)} {state}."
        f"{suggest_decimal(cell)}"
    )
