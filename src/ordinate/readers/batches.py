"""Batches of columns: items by the hundred thousand, from wherever they are, to be summed up.

Local sources hand their batches out one after the other. A cluster of machines sums up its
partitions where they are, and sends summaries back: its items never meet on one machine.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from itertools import count
from operator import add
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinate import errors
from ordinate.errors import OrdinateError
from ordinate.readers.cells import encode_values
from ordinate.readers.duckdb_connection import Connection, read_rows, read_table
from ordinate.scale.encoding import Groups
from ordinate.scale.labels import is_missing
from ordinate.summaries.base import Summary

Array = NDArray[Any]
Table = dict[str, Array]  # columns of some rows

ROWS_PER_BATCH = 1 << 19
SELECTED = "<selected>"  # of a query that is yet to be told its columns
TABLE_NUMBERS = count(1)
S = TypeVar("S", bound=Summary)


@dataclass(frozen=True)
class Summarizer(Generic[S]):
    """Makes the summary of a batch: a function of a module, or a `partial` of one, and its kind.

    It needs these columns, or all that there are.
    """

    kind: type[S]
    make: Callable[[Table], S]
    columns: tuple[str, ...] = ()

    def sum_up(self, batches: Iterable[Table]) -> S | None:
        """Return the sum of the summaries of batches, None where there are none."""
        summaries = (self.make(batch) for batch in batches)
        first = next(summaries, None)
        return None if first is None else reduce(add, summaries, first)

    def sum_up_remotely(self, batches: Iterable[Table]) -> list[str]:
        """Return the sum of a partition as JSON, or what is wrong with it."""
        try:
            found = self.sum_up(batches)
        except OrdinateError as problem:
            return [json.dumps({"problem": str(problem), "kind": type(problem).__name__})]
        return [] if found is None else [json.dumps(found.to_dict())]

    def collect(self, answers: Iterable[str]) -> S | None:
        """Return the sum of the partitions that others have summed up."""
        found = [json.loads(answer) for answer in answers]
        for answer in found:
            if "problem" in answer:
                raise getattr(errors, answer["kind"])(answer["problem"])
        parts = [self.kind.from_dict(answer) for answer in found]
        return reduce(add, parts) if parts else None


class Batches(Protocol):
    """Columns of the items that count, which may be asked for again."""

    def sum_up(self, summarizer: Summarizer[S]) -> S | None:
        """Return the sum of the summaries of all batches, None where there are no items."""


@dataclass(frozen=True)
class ColumnBatches:
    """Columns at hand."""

    columns: Table

    def sum_up(self, summarizer: Summarizer[S]) -> S | None:
        """Return the sum of the summaries of all batches, None where there are no items."""
        return summarizer.sum_up(_split_rows(self.columns))


def _split_rows(columns: Table, size: int = ROWS_PER_BATCH) -> Iterator[Table]:
    """Cut columns into batches."""
    n = len(next(iter(columns.values())))
    for start in range(0, n, size):
        yield {name: cells[start : start + size] for name, cells in columns.items()}


@dataclass(frozen=True)
class TableBatches:
    """Tables of DuckDB that nobody changes, of so many rows each, in their order.

    Codes of keys are numbers that the engine gave them; `codes` has what each stands for.
    """

    connection: Connection
    tables: Mapping[str, int]
    name: str
    codes: Mapping[str, Array]

    def sum_up(self, summarizer: Summarizer[S]) -> S | None:
        """Return the sum of the summaries of all batches, None where there are no items."""
        return summarizer.sum_up(self._read(summarizer.columns))

    def _read(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows of each table, some at a time."""
        selected = ", ".join(columns) or "*"
        for table, rows in self.tables.items():
            for start in range(0, rows, ROWS_PER_BATCH):
                where = f"rowid >= {start} AND rowid < {start + ROWS_PER_BATCH}"
                query = f"SELECT {selected} FROM {table} WHERE {where}"
                found = read_table(self.connection, query, self.name)
                known = {x: codes[found[x]] for x, codes in self.codes.items() if x in found}
                yield found | known


@dataclass(frozen=True)
class ValueBatches:
    """Batches that a source reads anew each time, with the values of keys as they stand."""

    read: Callable[[Sequence[str]], Iterator[Table]]  # of some of the columns
    columns: tuple[str, ...]
    keys: Mapping[str, Groups]

    def sum_up(self, summarizer: Summarizer[S]) -> S | None:
        """Return the sum of the summaries of all batches, None where there are no items."""
        batches = self.read(summarizer.columns or self.columns)
        return summarizer.sum_up(encode_keys(batches, self.keys))


# --- columns of other libraries -------------------------------------------------------------------


def encode_keys(batches: Iterable[Table], keys: Mapping[str, Groups]) -> Iterator[Table]:
    """Yield batches with numbers in the place of subgroups and clusters; empty ones are none."""
    for batch in batches:
        if len(next(iter(batch.values()))):
            found = {role: groups for role, groups in keys.items() if role in batch}
            yield batch | {role: encode_values(x, batch, role) for role, x in found.items()}


def read_arrow(rows: Any, keys: Collection[str]) -> Iterator[Table]:
    """Yield some rows at a time of what gives a stream of Arrow, keys as objects.

    Without pyarrow, a relation of DuckDB gives them all at once.
    """
    if find_spec("pyarrow") is None:
        yield {name: np.ma.filled(cells, np.nan) for name, cells in rows.fetchnumpy().items()}
        return
    import pyarrow as pa

    for part in join_batches(pa.RecordBatchReader.from_stream(rows)):
        yield read_columns(part, keys)


def join_batches(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of Arrow that are large enough to be summed up at once."""
    import pyarrow as pa

    found: list[Any] = []
    for part in parts:
        found.append(part)
        if sum(map(len, found)) >= ROWS_PER_BATCH:
            yield pa.Table.from_batches(found)
            found = []
    if found:
        yield pa.Table.from_batches(found)


def read_columns(rows: Any, keys: Collection[str]) -> Table:
    """Return the columns of a table of any library, keys as objects."""
    names = getattr(rows, "column_names", None) or list(rows.columns)
    return {
        name: make_cells(rows[name]) if name in keys else np.asarray(rows[name].to_numpy(), float)
        for name in names
    }


def make_cells(series: Any) -> Any:
    """Return a column of any library as an array of objects."""
    cells = series.to_list() if hasattr(series, "to_list") else series.to_pylist()
    return np.array([*cells, None], object)[:-1]  # None: an array of objects, always


# --- rows that DuckDB stores ----------------------------------------------------------------------


def store_batches(
    connection: Connection,
    name: str,
    queries: Sequence[str],
    selected: Sequence[str],
    keys: Mapping[str, Groups],
) -> TableBatches:
    """Let the engine store columns of rows, in their order; what does not fit goes to disk."""
    named, codes = list(selected), {}
    for role, groups in keys.items():
        text, codes[role] = _number_values(connection, name, role, queries, groups)
        named.append(text)
    tables = {}
    for query in queries:
        table = f"batches{next(TABLE_NUMBERS)}"
        rows = query.replace(SELECTED, ", ".join(named), 1)
        read_rows(connection, f"CREATE TEMP TABLE {table} AS {rows}", name)
        ((tables[table],),) = read_rows(connection, f"SELECT count(*) FROM {table}", name)
    return TableBatches(connection, tables, name, codes)


def _number_values(
    connection: Connection, name: str, role: str, queries: Sequence[str], groups: Groups
) -> tuple[str, Array]:
    """Let the engine number the values of a key; return SQL for it, and the codes by number."""
    kind = f"values_of_{role}"
    every = " UNION ".join(query.replace(SELECTED, role, 1) for query in queries)
    present = f"SELECT {role} FROM ({every}) WHERE {role} IS NOT NULL"
    read_rows(connection, f"CREATE TYPE {kind} AS ENUM ({present})", name)
    ((values,),) = read_rows(connection, f"SELECT enum_range(CAST(NULL AS {kind}))", name)
    place = {value: k for k, value in enumerate(groups.values)}
    codes = [place.get(None if is_missing(x) else x, 0) for x in (*values, None)]
    number = f"coalesce(enum_code(CAST({role} AS {kind})), {len(values)})"
    return f"CAST({number} AS INTEGER) AS {role}", np.array(codes)
