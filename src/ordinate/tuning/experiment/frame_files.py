"""Data frames as temporary files, for what reads files alone."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, OrdinateError
from ordinate.readers.duckdb_connection import (
    Connection,
    connect,
    copy_to_file,
    extract_reason,
    import_duckdb,
)


@contextmanager
def write_frame(frame: Any) -> Iterator[Path]:
    """Give a temporary file of a data frame: of pandas, Polars, Arrow, or columns by name."""
    with tempfile.TemporaryDirectory(prefix="ordinate-") as folder, connect() as connection:
        path = Path(folder, "frame.parquet")
        save_frame(frame, path, connection)
        with name_frames({path: "the data frame"}):
            yield path


@contextmanager
def name_frames(names: Mapping[Path, str]) -> Iterator[None]:
    """Let errors name data frames instead of their temporary files."""
    try:
        yield
    except OrdinateError as problem:
        message = str(problem)
        for path, name in names.items():
            message = message.replace(str(path), name)
        problem.args = (message[:1].upper() + message[1:] if names else message,)
        raise


def save_frame(frame: Any, path: Path, connection: "Connection | None" = None) -> None:
    """Write a data frame to a Parquet file."""
    if connection is None:
        with connect() as own:
            save_frame(frame, path, own)
        return
    import_module("duckdb")  # its Python half knows the frames of other libraries
    try:
        columns = _make_arrays(frame) if isinstance(frame, Mapping) else frame
        connection.register("frame", columns)
        copy_to_file(connection, "FROM frame", path)
    except (import_duckdb().Error, TypeError, ValueError, RuntimeError) as problem:
        reason = extract_reason(str(problem))
        unknown = isinstance(problem, RuntimeError) or "replacement scan" in reason
        raise BadInput(
            f"{type(frame).__name__} cannot be read as a table. Pass the path of a file, a data "
            "frame of pandas, Polars or Arrow, or a dictionary of columns by name"
            f"{'.' if unknown else f': {reason}'}"
        ) from None


def _make_arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return columns as DuckDB takes them: numbers, and strings as objects."""
    arrays = {str(name): np.asarray(column) for name, column in columns.items()}
    return {name: x.astype(object) if x.dtype.kind in "US" else x for name, x in arrays.items()}
