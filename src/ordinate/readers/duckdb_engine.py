"""The engine that reads files: DuckDB, without the half of it that is slow to import."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import duckdb

Connection: TypeAlias = "duckdb.DuckDBPyConnection"

OFFLINE_SETTINGS: dict[str, Any] = {  # nothing is fetched from elsewhere
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def import_duckdb() -> Any:
    """Return DuckDB's native module: its Python half takes as long to import as NumPy."""
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


def connect() -> Connection:
    """Return a connection that lives in memory and reaches nothing but the files it is given."""
    connection = import_duckdb().connect(config=OFFLINE_SETTINGS)
    connection.execute("SET enable_progress_bar_print = false")  # the command line has its own
    return connection
