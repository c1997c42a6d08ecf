"""The connection to DuckDB, the engine that reads files: queries, quoting, and plain errors."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NO_ROOM, BadFile, BadOption, word_advice

if TYPE_CHECKING:
    import duckdb

Connection: TypeAlias = "duckdb.DuckDBPyConnection"
T = TypeVar("T")

LONGEST_LINE = 16_000_000  # bytes: a row may hold a book
ADVICE_MARKERS = ("possible", "*", "line", "file =", "try ", "delimiter", "this can happen")
NO_MEMORY = "there is not enough memory for it."
ENCODING_HINT = "If it is in another encoding than UTF-8, such as Latin-1, pass {encoding}."
MEMORY_LIMIT = "1GB"  # that the engine may take; what does not fit goes to disk
SMALL_PROCESS = 8 << 30  # bytes of address space
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
    settings = {"memory_limit": MEMORY_LIMIT} | OFFLINE_SETTINGS | _fit_small_process()
    engine = import_duckdb()
    connection = engine.connect(config=settings)
    with suppress(engine.InvalidInputException):  # a notebook without ipywidgets has no bar to hide
        connection.execute("SET enable_progress_bar_print = false")  # the command line has its own
    return connection


def _fit_small_process() -> dict[str, Any]:
    """Return settings for a process whose address space is limited: each thread reserves its own.

    DuckDB asks how much memory the machine has, not how much the process may have.
    """
    try:
        resource = import_module("resource")  # not on Windows
    except ImportError:
        return {}
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > SMALL_PROCESS:
        return {}
    return {"threads": 1, "memory_limit": f"{most // 4}B"}


def limit_memory(connection: Connection, memory: str | None, folder: Path) -> None:
    """Let the engine take so much memory, or as much as usual, and spill into a folder."""
    if memory is not None:
        try:
            connection.execute(f"SET memory_limit = {quote_literal(memory)}")
        except import_duckdb().ParserException:
            raise BadOption(f"--memory {memory} is more than any machine has.") from None
    connection.execute(f"SET temp_directory = {quote_literal(str(folder / 'spill'))}")


# --- queries -------------------------------------------------------------------------------------


def quote_identifier(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Return a string as SQL, which ends at a NUL."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def read_rows(connection: Connection, query: str, name: str) -> list[Any]:
    """Return the rows of a query on a file."""
    return run_query(lambda: connection.execute(query).fetchall(), name)


def read_table(connection: Connection, query: str, name: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a query on a file; missing values are None, in arrays of objects."""
    found = run_query(lambda: connection.execute(query).fetchnumpy(), name)
    return {name: _fill_missing(np.ma.asarray(column)) for name, column in found.items()}


def copy_to_file(connection: Connection, query: str, path: Path, form: str = "parquet") -> None:
    """Write the rows of a query into a file that is there: whoever calls replaces it when whole."""
    target = quote_literal(str(path))
    try:
        connection.execute(f"COPY ({query}) TO {target} (FORMAT {form}, USE_TMP_FILE false)")
    except import_duckdb().IOException as problem:
        for number in NO_ROOM:  # the engine has no other way to tell it
            if os.strerror(number) in str(problem):
                raise OSError(number, os.strerror(number)) from None
        raise


def _fill_missing(column: Any) -> NDArray[Any]:
    if not column.mask.any():
        return np.asarray(column.data)
    cells = column.data.astype(object)
    cells[column.mask] = None
    return cells


def run_query(execute: Callable[[], T], name: str) -> T:
    """Run a query on a file, and say in plain words what is wrong with the file."""
    try:
        return execute()
    except import_duckdb().Error as problem:
        message = str(problem).replace(str(Path(name).absolute()), name)
        raise BadFile(f"{name} cannot be read: {extract_reason(message)}", name) from None


def extract_reason(message: str) -> str:
    """Return the telling part of a message of DuckDB, without its advice on its own options."""
    if "Out of Memory" in message:
        return NO_MEMORY
    if "don't know what type" in message:
        return "its content is damaged."
    if "state machine" in message:
        return "a quote is not closed."
    if "Maximum line size" in message:
        at = re.search(r"Line: (\d+)", message)
        where = f"the row in line {at[1]}" if at else "a row"
        return (
            f"{where} has more than {LONGEST_LINE:,} bytes. Close its quotes if one is open, or "
            "leave long texts out."
        )
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    reason = [lines[0].split(": ", 1)[-1]]
    for line in lines[1:3]:
        if line.lower().startswith(ADVICE_MARKERS):
            break
        reason.append(line[:80])
    text = re.split(r"\s+(?:Try|LINE \d+:)\s", " ".join(reason))[0][:300].rstrip(". ")
    return f"{text}. {suggest_encoding()}" if "utf" in message.lower() else f"{text}."


def suggest_encoding() -> str:
    """Return what to do about a text file that is not UTF-8."""
    return word_advice(ENCODING_HINT, encoding="latin-1")
