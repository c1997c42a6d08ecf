"""Which columns of a file hold numbers, and these as one matrix: a few queries, whatever width."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten
from ordinate.readers.columns import FileOptions
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
MOST_CELLS = 20_000_000  # cells that are taken into memory
COLUMNS_PER_QUERY = 256  # columns that one query looks at
COLUMNS_PER_BLOCK = 1024  # columns that are read at once: the engine holds them and the matrix
COLUMNS_SHOWN = 5  # names that an error lists
# Numbers as people write them, and as no reader takes them: 3,1 or 1,234.5 or 1 234 or 3.1 %.
SPACE_PATTERN = r" \x{A0}\x{202F}"  # plain, and two that break no line
WRITTEN_NUMBER_PATTERN = (
    rf"[-+\x{{2212}}]?((\d{{1,3}}([.,'\x{{2019}}{SPACE_PATTERN}]\d{{3}})+|\d+)([.,]\d*)?|[.,]\d+)"
    rf"([eE][-+]?\d+)?[{SPACE_PATTERN}]?%?"
)


@dataclass(frozen=True)
class NumericTable:
    """Columns of numbers [N, d], and what is known of the others.

    A column of nothing but true and false is one of 1 and 0. `texts` are the columns that hold no
    numbers, such as dates, too; `few` those of which fewer than half of the cells are numbers;
    `labels` a column that was named as such.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    texts: tuple[str, ...]
    few: tuple[str, ...]
    labels: NDArray[Any] | None
    path: str


def read_numeric_table(
    path: str,
    names: Sequence[str] | None = None,
    *,
    label: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    most_cells: int = MOST_CELLS,
    columns_per_query: int = COLUMNS_PER_QUERY,
) -> NumericTable:
    """Return the named columns, or all that hold numbers; each cell of them is a finite number.

    Where fewer than half of its cells are numbers, a column is left out; in others a cell that is
    none is an error, with its row. A column of numbers such as 3,1 or 1,234.5 or 3.1% is an error,
    too: it is neither guessed what they mean, nor is the column left out without a word.
    """
    options = FileOptions(delimiter=delimiter, encoding=encoding)
    with connect() as connection, open_sources(connection, options) as reader:
        sources = reader.describe_files([path])
        if len(sources) != 1:
            raise BadInput(f"{shorten(path)} stands for {len(sources)} files: name one of them.")
        table = _NumericTableReader(connection, sources[0], most_cells, columns_per_query)
        return table.read(names, label)


class _NumericTableReader:
    """One file that is read."""

    def __init__(
        self, connection: Connection, source: FileSource, most_cells: int, columns_per_query: int
    ) -> None:
        self.connection, self.source = connection, source
        self.most_cells, self.columns_per_query = most_cells, columns_per_query
        self.requested: Sequence[str] = ()
        self.logical: set[str] = set()  # columns of true and false
        self.few: set[str] = set()  # columns of which fewer than half of the cells are numbers

    def read(self, names: Sequence[str] | None, label: str | None) -> NumericTable:
        source = self.source
        requested = list(names) if names is not None else [c for c in source.columns if c != label]
        self.requested = requested
        n = int(self._read(f"SELECT count(*) FROM {source.sql}")[0][0])
        if n * len(requested) > self.most_cells:
            raise BadInput(
                f"{source.name} has {n:,} rows of {len(requested):,} columns: too many to hold in "
                f"memory (at most {self.most_cells:,} cells)."
            )
        found = {
            name: self._is_numeric(name, *counts)
            for name, *counts in self._count_cell_types(requested)
        }
        numeric = [name for name in requested if found[name]]
        others = [name for name in requested if not found[name]]
        self._check_number_formats(others, named=names is not None)
        few = tuple(name for name in others if name in self.few)
        texts = tuple(name for name in others if name not in self.few)
        if names is not None and others:
            raise self._make_no_numbers_error(others[0])
        labels = None if label is None else self._read_labels(label)
        return NumericTable(
            tuple(numeric), self._read_matrix(numeric, n), texts, few, labels, source.name
        )

    def _read(self, query: str) -> list[Any]:
        return read_rows(self.connection, query, self.source.name)

    def _count_cell_types(self, names: Sequence[str]) -> Iterator[tuple[str, int, int, int]]:
        """Yield for each column how many cells are numbers, true or false, and something else."""
        for start in range(0, len(names), self.columns_per_query):
            part = names[start : start + self.columns_per_query]
            counts_sql = []
            for name in part:
                cell = self._build_text_sql(name)
                counts_sql.append(f"count(TRY_CAST({cell} AS DOUBLE))")
                counts_sql.append(f"count(*) FILTER (lower({cell}) IN ('true', 'false'))")
                counts_sql.append(f"count({cell})")
            counts = self._read(f"SELECT {', '.join(counts_sql)} FROM {self.source.sql}")[0]
            for k, name in enumerate(part):
                numbers, logical, cells = counts[3 * k : 3 * k + 3]
                yield name, numbers, logical, cells - numbers - logical

    def _is_numeric(self, name: str, numbers: int, logical: int, others: int) -> bool:
        """Tell whether a column holds numbers; one that nearly does is an error."""
        if logical and not (numbers or others):
            self.logical.add(name)
            return True
        others += logical  # among numbers they are strings
        if others and numbers >= others:
            text, number = self._build_text_sql(name), self._build_number_sql(name)
            raise self._make_cell_error(name, f"{text} IS NOT NULL AND {number} IS NULL")
        if others and numbers:
            self.few.add(name)
        return not others

    def _check_number_formats(self, names: Sequence[str], *, named: bool) -> None:
        """Refuse columns of numbers that are written as none is read."""
        found: dict[str, str] = {}
        for start in range(0, len(names), self.columns_per_query):
            part = names[start : start + self.columns_per_query]
            cells_sql = ", ".join(self._build_written_number_sql(name) for name in part)
            cells = self._read(f"SELECT {cells_sql} FROM {self.source.sql}")[0]
            found |= {name: cell for name, cell in zip(part, cells, strict=True) if cell}
        if not found:
            return
        which = ", ".join(map(shorten, list(found)[:COLUMNS_SHOWN]))
        more = f" and {len(found) - COLUMNS_SHOWN} more" if len(found) > COLUMNS_SHOWN else ""
        cell = shorten(next(iter(found.values())))
        instead = "" if named else " Or name the columns to use with --features."
        raise BadInput(
            f"{self.source.name}: numbers in {which}{more} are written as {cell} is, which is not "
            "read. Write a point for a decimal comma, no separators of thousands and no percent "
            f"signs, as in 1234.5.{instead}"
        )

    def _build_written_number_sql(self, name: str) -> str:
        """Return SQL for a cell that is a number to people alone, if at least half are numbers."""
        cell = self._build_text_sql(name)
        number = f"TRY_CAST({cell} AS DOUBLE) IS NOT NULL"
        pattern = quote_literal(WRITTEN_NUMBER_PATTERN)
        written = f"NOT {number} AND regexp_full_match(trim({cell}), {pattern})"
        either = f"count(*) FILTER ({number} OR {written})"
        return f"CASE WHEN 2 * {either} >= count({cell}) THEN min({cell}) FILTER ({written}) END"

    def _make_no_numbers_error(self, name: str) -> BadInput:
        """Return the error for a column that was named."""
        column = f"column {shorten(name)} of {self.source.name}"
        problem = f"The {column} holds no numbers, and numbers are needed"
        if name in self.few:
            problem = f"In the {column} fewer than half of the cells are numbers, which all must be"
        return BadInput(f"{problem}. Leave it out, or turn it into numbers first.")

    def _read_matrix(self, names: Sequence[str], n: int) -> NDArray[np.float64]:
        matrix = np.empty((n, len(names)))
        for start in range(0, len(names), self.columns_per_query):
            part = names[start : start + self.columns_per_query]
            selected = [
                f"coalesce({self._build_number_sql(name)}, 'nan'::DOUBLE) AS x{k}"
                for k, name in enumerate(part)
            ]
            query = f"SELECT {', '.join(selected)} FROM {self.source.sql}"
            found = read_arrays(self.connection, query, self.source.name)
            for k, name in enumerate(part):
                matrix[:, start + k] = found[f"x{k}"]
                if not np.isfinite(matrix[:, start + k]).all():
                    number = self._build_number_sql(name)
                    raise self._make_cell_error(name, f"{number} IS NULL OR NOT isfinite({number})")
        return matrix

    def _build_text_sql(self, name: str) -> str:
        return f"nullif(CAST({resolve_column(self.source, name, self.requested)} AS VARCHAR), '')"

    def _build_number_sql(self, name: str) -> str:
        text = self._build_text_sql(name)
        if name in self.logical:
            return f"CAST(lower({text}) = 'true' AS DOUBLE)"
        return f"TRY_CAST({text} AS DOUBLE)"

    def _make_cell_error(self, name: str, where: str) -> BadValues:
        """Return the error for the first cell of a column for which something holds."""
        rows = f"SELECT *, row_number() OVER () AS ordinate_row FROM {self.source.sql}"
        query = f"SELECT ordinate_row, {self._build_text_sql(name)} FROM ({rows}) WHERE {where}"
        row, cell = self._read(f"{query} ORDER BY 1 LIMIT 1")[0]
        problem = _describe_cell(self.source, row, name, cell)
        advice = "Nothing is filled in: mend the row, or leave out the row or the column."
        return BadValues(f"{problem} {advice}")

    def _read_labels(self, name: str) -> NDArray[Any]:
        found = self._read(f"SELECT {build_label_sql(self.source, name)} FROM {self.source.sql}")
        empty = [row for row, (label,) in enumerate(found, start=1) if label is None]
        if empty:
            raise BadValues(
                f"{self.source.name}: the cell in row {empty[0]} of column {shorten(name)} is "
                "empty, and each row belongs to a group. Fill it in."
            )
        return np.array([*(label for (label,) in found), None], object)[:-1]


# --- feature matrices ----------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureMatrix:
    """The numbers of a file, and its ids as strings where a column of them was named."""

    matrix: Array  # [N, D], float32 where all columns are
    ids: list[str | None] | None


def read_column_names(
    path: str, delimiter: str | None = None, encoding: str | None = None
) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    options = FileOptions(delimiter=delimiter, encoding=encoding)
    with connect() as connection, open_sources(connection, options) as reader:
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
    with connect() as connection, open_sources(connection) as reader:
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
    return BadValues(_describe_cell(source, row + 1, name, cell))


def _describe_cell(source: FileSource, row: int, name: str, cell: str | None) -> str:
    """Say what stands in a cell where a finite number should."""
    state = f"is {shorten(cell)}, which is no finite number" if cell else "is empty"
    return f"{source.name}: the cell in row {row} of column {shorten(name)} {state}."


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
