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
COLUMNS_SHOWN, ROWS_SHOWN = 20, 5  # columns, and rows of each, that an error lists
COLUMNS_PER_QUERY = 1024  # columns that are read at once: the engine holds them and the matrix


@dataclass(frozen=True)
class FeatureMatrix:
    """The numbers of a file, and its ids as strings where a column of them was named."""

    matrix: Array  # [N, D], float32 where all columns are
    ids: list[str | None] | None


def read_column_names(path: str, options: FileOptions | None = None) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    with open_sources(options) as reader:
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
    *,
    finite: bool = True,
) -> Array:
    """Return numbers as a matrix; `columns` is SQL for each column, by its name.

    Cells that are no finite numbers are an error, with their rows, unless they are asked for.
    """
    sql_type = "FLOAT" if dtype == np.float32 else "DOUBLE"
    matrix = np.empty((source.count_rows(), len(columns)), dtype)
    for start in range(0, len(columns), columns_per_query):
        names = list(columns)[start : start + columns_per_query]
        cells = (f"TRY_CAST({columns[name]} AS {sql_type})" for name in names)
        selected = (f"coalesce({cell}, 'nan'::{sql_type}) AS x{k}" for k, cell in enumerate(cells))
        found = source.read_table(", ".join(selected))
        for k in range(len(names)):
            matrix[:, start + k] = found[f"x{k}"]
    if finite and not np.isfinite(matrix).all():
        raise _make_cell_error(source, list(columns), ~np.isfinite(matrix))
    return matrix


def _make_cell_error(source: FileSource, names: Sequence[str], odd: Array) -> BadValues:
    """Return the error for cells that are no finite numbers: what the first is, and all places."""
    column = int(np.argmax(odd.any(axis=0)))
    row, name = int(np.argmax(odd[:, column])), names[column]
    text = f"CAST({resolve_number(source, name)} AS VARCHAR)"
    ((cell,),) = source.read(text, f"LIMIT 1 OFFSET {row}")
    state = f"is {shorten(cell)}, which is no finite number" if cell else "is empty"
    first = f"{source.name}: the cell in row {row + 1} of column {shorten(name)} {state}."
    return BadValues(f"{first}{suggest_decimal(cell)}{list_further_cells(odd, names)}")


def list_further_cells(odd: Array, names: Sequence[str]) -> str:
    """Return a sentence on all cells of a kind, where there is more than one.

    >>> list_further_cells(np.array([[True, False], [True, True]]), ["a", "b"])
    " In all there are 3 such cells: 2 in 'a' (rows 1, 2), 1 in 'b' (row 2)."
    """
    n = int(odd.sum())
    return f" In all there are {n:,} such cells: {describe_cells(odd, names)}." if n > 1 else ""


def describe_cells(odd: Array, names: Sequence[str]) -> str:
    """Return how many cells of each column are of a kind, and in which rows the first stand."""
    told = [_describe_column(names[k], odd[:, k]) for k in np.flatnonzero(odd.any(axis=0)).tolist()]
    more = len(told) - COLUMNS_SHOWN
    return ", ".join(told[:COLUMNS_SHOWN]) + (f" and some in {more:,} more" if more > 0 else "")


def _describe_column(name: str, odd: Array) -> str:
    rows = (np.flatnonzero(odd) + 1).tolist()
    shown = ", ".join(map(str, rows[:ROWS_SHOWN]))
    more = ", …" if len(rows) > ROWS_SHOWN else ""
    return f"{len(rows):,} in {shorten(name)} (row{'s' * (len(rows) > 1)} {shown}{more})"
