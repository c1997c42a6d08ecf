"""Queries of databases: what is counted is counted there, in plain SQL around the user's query."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ordinate.errors import BadInput, BadOption, shorten
from ordinate.readers.expressions import (
    ANSI,
    POSTGRES,
    SQLITE,
    Expression,
    build_sum_query,
    column,
    name_columns,
)
from ordinate.readers.items import Row, Sums, Table, name_places

T = TypeVar("T")
# By the module of a connection.
DIALECTS = {"sqlite3": SQLITE, "psycopg": POSTGRES, "psycopg2": POSTGRES}
LAST_SEMICOLON = re.compile(r";\s*(--[^\n]*\s*)*\Z")


@dataclass(frozen=True, eq=False)
class Query:
    """A query, and the connection (PEP 249 or ADBC) on which it runs.

    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> Query(connection, "select 'B1' as level, 'B2' as guess;").columns
    ['level', 'guess']
    """

    connection: Any = field(repr=False)
    text: str

    def __post_init__(self) -> None:
        if not hasattr(self.connection, "cursor"):
            raise BadOption(
                f"{type(self.connection).__name__} is no connection of a database (PEP 249): it "
                "has no cursor()."
            )

    @property
    def name(self) -> str:
        """What people call it."""
        return f"the query {shorten(' '.join(self.text.split()))}"

    @cached_property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return self.read(
            f"SELECT * FROM ({self.inner}) AS asked WHERE 1 = 0",
            lambda cursor: [part[0] for part in cursor.description],
        )

    @property
    def inner(self) -> str:
        """The query as a part of another one; a comment at its end goes no further than it."""
        return LAST_SEMICOLON.sub("", self.text) + "\n"

    def read(self, sql: str, fetch: Callable[[Any], T]) -> T:
        """Return what a query around this one gives, or say what is wrong with it."""
        try:
            with closing(self.connection.cursor()) as cursor:
                cursor.execute(sql)
                return fetch(cursor)
        except Exception as problem:
            reason = " ".join(str(problem).split())[:300].rstrip(".")
            raise BadInput(f"{self.name} failed: {type(problem).__name__}: {reason}.") from problem


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

    @property
    def _items(self) -> str:
        module = type(self.query.connection).__module__.partition(".")[0]
        fence = DIALECTS.get(module, ANSI).fence
        columns = {role: column(name) for role, name in self.roles.items()}
        sql = (
            f"(SELECT {', '.join(name_columns(columns, ANSI))} FROM ({self.query.inner}) AS asked)"
        )
        for more in self.added:
            selected = ", ".join(["items.*", *name_columns(more, ANSI)])
            sql = f"(SELECT {selected} FROM {sql} AS items{fence})"
        return f"{sql} AS items"

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items that share all keys, as the database finds them."""
        query = build_sum_query(self._items, keys, sums, where, ANSI)
        rows = self.query.read(query, lambda cursor: cursor.fetchall())
        cells = np.empty((len(rows), len(keys) + len(sums)), object)
        cells[:] = [tuple(row) for row in rows] if rows else cells
        numbers = {
            name: np.array([float(x or 0) for x in cells[:, len(keys) + k]])
            for k, name in enumerate(sums)
        }
        return {key: cells[:, k] for k, key in enumerate(keys)} | numbers

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return some places where a condition holds, and what stands there."""
        place = [column("id")] if "id" in self.roles else []
        selected = ", ".join(x.to_sql(ANSI) for x in (*place, *shown))
        rows = self.query.read(
            f"SELECT {selected} FROM {self._items} WHERE {where.to_sql(ANSI)}",
            lambda cursor: cursor.fetchmany(limit),
        )
        return name_places(rows, identified=bool(place))
