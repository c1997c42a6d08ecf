"""Queries of DuckDB, SQLite and PostgreSQL: counted there, around the user's query, read only."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ordinate.errors import BadInput, BadOption, BadValues, shorten
from ordinate.readers.batches import ROWS_PER_BATCH, Batches, ValueBatches, read_arrow
from ordinate.readers.duckdb_connection import quote_identifier
from ordinate.readers.expressions import (
    DUCKDB,
    POSTGRES,
    SQLITE,
    Dialect,
    Expression,
    Parameters,
    build_sum_query,
    name_columns,
)
from ordinate.readers.items import Row, Sums, Table, name_places
from ordinate.scale.encoding import Groups

KEY_TYPES = {type(None), str, int, float, bool, Decimal}


class Answer(NamedTuple):
    """What a database answers: the names and types of the columns, and the rows."""

    columns: list[tuple[str, str]]
    rows: list[Row]

    @classmethod
    def fetch(cls, cursor: Any) -> "Answer":
        """Return all that a cursor has."""
        rows = cursor.fetchall()
        return cls([(part[0], str(part[1])) for part in cursor.description], rows)


def _fetch_batches(cursor: Any, keys: Collection[str]) -> Iterator[Table]:
    """Yield some rows at a time of a cursor as columns, keys as objects."""
    names = [part[0] for part in cursor.description]
    while rows := cursor.fetchmany(ROWS_PER_BATCH):
        columns = zip(names, zip(*rows, strict=True), strict=True)
        yield {x: np.array(cells, object if x in keys else float) for x, cells in columns}


# --- how each database is asked, which leaves the session as it was ------------------------------


@contextmanager
def _ask_sqlite(connection: Any, query: str, sql: str, values: Sequence[Any]) -> Iterator[Any]:
    """Read from SQLite; its driver takes one statement, and no part of a SELECT is another one."""
    del query
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        # Functions alone could still write, those of the user among them.
        (read_only,) = cursor.execute("PRAGMA query_only").fetchone()
        text_factory = connection.text_factory
        try:
            connection.text_factory = str
            cursor.execute("PRAGMA query_only = ON")
            yield cursor.execute(sql, {str(k): x for k, x in enumerate(values, 1)})
        finally:
            connection.text_factory = text_factory
            cursor.execute(f"PRAGMA query_only = {read_only:d}")


@contextmanager
def _ask_postgres(connection: Any, query: str, sql: str, values: Sequence[Any]) -> Iterator[Any]:
    """Read from PostgreSQL in a transaction of our own, or in a part of the one that is open."""
    del query
    from psycopg import RawServerCursor
    from psycopg.rows import tuple_row

    # A cursor of the server, so that rows may be more than fit into memory here.
    cursor = RawServerCursor(connection, "ordinate", row_factory=tuple_row)
    with connection.transaction(force_rollback=True), cursor:
        # Which no SELECT can switch off again. Nothing is prepared: a driver that has prepared one
        # statement drops all at the rollback, those of the user among them.
        connection.execute("SET TRANSACTION READ ONLY", prepare=False)
        # It is declared by the extended protocol, which takes one statement and no more.
        yield cursor.execute(sql, values, binary=True)


@contextmanager
def _ask_duckdb(connection: Any, query: str, sql: str, values: Sequence[Any]) -> Iterator[Any]:
    """Read from DuckDB; a SELECT that writes (`WITH … AS (COPY …)`) is no part of another one."""
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        raise BadInput(f"it is {' and '.join(kinds) or 'empty'}, and not one SELECT")
    with _only_read_duckdb(connection):
        yield connection.sql(sql, params=values)


@contextmanager
def _only_read_duckdb(connection: Any) -> Iterator[None]:
    """Begin a transaction for reading, but where one is open: to try to would abort it.

    Unlike `execute`, `sql` leaves what the user has not yet fetched.
    """
    first, second = (connection.sql("SELECT txid_current()").fetchall() for _ in range(2))
    if first == second:
        yield
        return
    connection.sql("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        connection.sql("ROLLBACK")


class Database(NamedTuple):
    """How a kind of database is asked: while it is, it gives the rows of a cursor."""

    dialect: Dialect
    ask: Callable[[Any, str, str, Sequence[Any]], AbstractContextManager[Any]]


# By the module and the class of a connection.
DATABASES = {
    "sqlite3.Connection": Database(SQLITE, _ask_sqlite),
    "duckdb.DuckDBPyConnection": Database(DUCKDB, _ask_duckdb),
    "psycopg.Connection": Database(POSTGRES, _ask_postgres),
}


# --- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Query:
    """A query, and the connection of DuckDB, SQLite or PostgreSQL (psycopg) on which it runs.

    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> Query(connection, "select 'B1' as level, 'B2' as guess;").columns
    ['level', 'guess']
    """

    connection: Any = field(repr=False)
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise BadOption(f"A query is a string, not {type(self.text).__name__}.")
        assert self.database  # noqa: S101 - another connection is refused when it is handed over

    @cached_property
    def database(self) -> Database:
        """How the connection is asked."""
        for base in type(self.connection).__mro__:
            module = base.__module__.partition(".")[0].removeprefix("_")
            if found := DATABASES.get(f"{module}.{base.__name__}"):
                return found
        kind = f"{type(self.connection).__module__}.{type(self.connection).__name__}"
        raise BadOption(
            f"{kind} is no connection of DuckDB, SQLite (sqlite3) or PostgreSQL (psycopg): pass "
            "its rows as a frame to ordinate.evaluate, such as an Ibis table or an Arrow reader."
        )

    @property
    def name(self) -> str:
        """What people call it."""
        return f"the query {shorten(' '.join(self.text.split()))}"

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.types]

    @cached_property
    def types(self) -> list[tuple[str, str]]:
        """The names of its columns, and what the database calls their types."""
        return self.read(f"SELECT * FROM {self.source} WHERE 1 = 0").columns

    @property
    def inner(self) -> str:
        """The query as a part of another one."""
        return self.text.rstrip("; \t\r\n")

    @property
    def source(self) -> str:
        """SQL for its rows; a comment at its end goes no further than the query."""
        return f"({self.inner}\n) AS asked"

    def read(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Return what a query around this one gives, or say what is wrong with it."""
        with self._ask(sql, values) as cursor:
            return Answer.fetch(cursor)

    def read_batches(
        self, sql: str, values: Sequence[Any], keys: Collection[str]
    ) -> Iterator[Table]:
        """Yield some rows at a time of a query around this one, keys as objects."""
        with self._ask(sql, values) as cursor:
            if hasattr(cursor, "fetchmany"):
                yield from _fetch_batches(cursor, keys)
            else:  # a relation of DuckDB
                yield from read_arrow(cursor, keys)

    @contextmanager
    def _ask(self, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        """Give the rows of a query around this one, or say what is wrong with it."""
        try:
            with self.database.ask(self.connection, self.inner, sql, values) as cursor:
                yield cursor
        except Exception as problem:
            kind = "" if isinstance(problem, BadInput) else f"{type(problem).__name__}: "
            reason = " ".join(str(problem).split())[:300].rstrip(".")
            raise BadInput(f"{self.name} failed: {kind}{reason}.") from problem


@dataclass(frozen=True)
class QueryItems:
    """Items of a query, whose columns are named by their roles."""

    query: Query
    roles: Mapping[str, str]
    added: tuple[Mapping[str, Expression], ...] = ()  # columns made of those before
    keyed: bool = False
    ordered: bool = False

    @property
    def name(self) -> str:
        """What people call the query."""
        return self.query.name

    def add_columns(self, columns: Mapping[str, Expression]) -> "QueryItems":
        """Return the items with more columns."""
        return replace(self, added=(*self.added, columns))

    def _build_items(self, dialect: Dialect) -> str:
        types = dict(self.query.types)
        cells = {
            # With its table: SQLite takes a quoted name that is no column's for a text.
            role: dialect.read_exactly(f"asked.{quote_identifier(name)}", types[name])
            for role, name in self.roles.items()
        }
        selected = ", ".join(f"{x} AS {quote_identifier(role)}" for role, x in cells.items())
        sql = f"(SELECT {selected} FROM {self.query.source})"
        for more in self.added:
            selected = ", ".join(["items.*", *name_columns(more, dialect)])
            sql = f"(SELECT {selected} FROM {sql} AS items{dialect.fence})"
        return f"{sql} AS items"

    def _write(self, build: Callable[[str, Dialect], str]) -> tuple[str, Sequence[Any]]:
        """Return a statement, which is built of the items in a dialect, and its values."""
        values = Parameters()
        dialect = replace(self.query.database.dialect, bind=values.bind)
        return build(self._build_items(dialect), dialect), values

    def _ask(self, build: Callable[[str, Dialect], str]) -> list[Row]:
        """Return the rows of a statement."""
        return self.query.read(*self._write(build)).rows

    def open_batches(
        self, numbers: Sequence[str], keys: Mapping[str, Groups], where: Expression
    ) -> Batches:
        """Return columns of numbers, and the numbers of keys, where a condition holds."""

        def read(names: Sequence[str]) -> Iterator[Table]:
            def build(items: str, dialect: Dialect) -> str:
                selected = ", ".join(map(quote_identifier, names))
                return f"SELECT {selected} FROM {items} WHERE {where.to_sql(dialect)}"

            return self.query.read_batches(*self._write(build), keys)

        return ValueBatches(read, (*numbers, *keys), keys)

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items that share all keys, as the database finds them."""
        rows = self._ask(lambda items, dialect: build_sum_query(items, keys, sums, where, dialect))
        cells = np.empty((len(rows), len(keys) + len(sums)), object)
        cells[:] = [tuple(row) for row in rows] if rows else cells
        numbers = {
            name: np.array([float(x or 0) for x in cells[:, len(keys) + k]])
            for k, name in enumerate(sums)
        }
        table = {key: cells[:, k] for k, key in enumerate(keys)}
        self._check_keys(table)
        return table | numbers

    def _check_keys(self, table: Table) -> None:
        """Refuse labels and groups that are neither text nor numbers."""
        for key, cells in table.items():
            for kind in {type(cell) for cell in cells} - KEY_TYPES:
                raise BadValues(
                    f"Column {self.roles.get(key, key)!r} of {self.name} holds values of type "
                    f"{kind.__name__}: cast them to text in the query."
                )

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return some places where a condition holds, and what stands there."""

        def build(items: str, dialect: Dialect) -> str:
            selected = ", ".join(x.to_sql(dialect) for x in shown)
            return f"SELECT {selected} FROM {items} WHERE {where.to_sql(dialect)} LIMIT {limit:d}"

        return name_places(self._ask(build))
