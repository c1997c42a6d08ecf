"""Data frames as temporary files, for what reads files alone."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput
from ordinate.readers.duckdb_connection import (
    Connection,
    connect,
    extract_reason,
    import_duckdb,
    quote_literal,
)


@contextmanager
def write_frame(frame: Any) -> Iterator[Path]:
    """Give a temporary file of a data frame: of pandas, Polars, Arrow, or columns by name."""
    with tempfile.TemporaryDirectory(prefix="ordinate-") as folder, connect() as connection:
        path = Path(folder, "frame.parquet")
        save_frame(frame, path, connection)
        yield path


def save_frame(frame: Any, path: Path, connection: "Connection | None" = None) -> None:
    """Write a data frame to a Parquet file."""
    if connection is None:
        with connect() as own:
            save_frame(frame, path, own)
        return
    columns = _make_arrays(frame) if isinstance(frame, Mapping) else frame
    import_module("duckdb")  # its Python half knows the frames of other libraries
    try:
        connection.register("frame", columns)
        connection.execute(f"COPY frame TO {quote_literal(str(path))} (FORMAT parquet)")
    except (import_duckdb().Error, TypeError, ValueError) as problem:
        raise BadInput(
            f"{type(frame).__name__} cannot be read as a table. Pass the path of a file, or a data "
            f"frame of pandas, Polars or Arrow: {extract_reason(str(problem))}"
        ) from None


def _make_arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return columns as DuckDB takes them: numbers, and strings as objects."""
    arrays = {str(name): np.asarray(column) for name, column in columns.items()}
    return {name: x.astype(object) if x.dtype.kind in "US" else x for name, x in arrays.items()}
