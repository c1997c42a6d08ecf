"""Databases by their addresses: --sql URL, whose password is in no message."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ordinate.errors import (
    BadInput,
    BadOption,
    MissingExtra,
    hide_password,
    list_passwords,
    shorten,
)
from ordinate.readers.duckdb_connection import OFFLINE_SETTINGS


@contextmanager
def connect_database(url: str) -> Iterator[Any]:
    """Give a connection that reads a database; its password is in no message."""
    kind, _, place = url.partition("://")
    if kind not in CONNECTORS or not place:
        raise BadOption(
            f"{shorten(hide_password(url))} is no address of a database that can be read: "
            f"{', '.join(f'{name}://…' for name in CONNECTORS)}. For others, pass a "
            "frame in Python: ordinate.evaluate(frame, …)."
        )
    try:
        connection = CONNECTORS[kind](url, place.removeprefix("/"))
    except MissingExtra:
        raise
    except Exception as problem:  # noqa: BLE001 - any driver, each with errors of its own
        reason = " ".join(str(problem).split())
        for password in list_passwords(url):
            reason = reason.replace(password, "…")
        shown = reason[:300].rstrip(".")
        raise BadInput(f"{hide_password(url)} cannot be opened: {shown}.") from None
    with closing(connection):
        yield connection


def _connect_sqlite(url: str, path: str) -> Any:
    import sqlite3

    del url
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)


def _connect_duckdb(url: str, path: str) -> Any:
    import duckdb

    del url
    settings = {"enable_external_access": False, "python_enable_replacements": False}
    settings |= {"lock_configuration": True}  # no query can open what is closed
    return duckdb.connect(str(Path(path)), read_only=True, config=OFFLINE_SETTINGS | settings)


def _connect_postgres(url: str, path: str) -> Any:
    del path
    try:
        from psycopg import connect
    except ImportError:
        raise MissingExtra(
            "Reading PostgreSQL takes psycopg: pip install 'ordinate[postgres]'."
        ) from None
    return connect(url)


CONNECTORS: Mapping[str, Callable[[str, str], Any]] = {
    "sqlite": _connect_sqlite,
    "duckdb": _connect_duckdb,
    "postgresql": _connect_postgres,
    "postgres": _connect_postgres,
}
