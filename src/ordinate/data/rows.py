"""Columns of files as they stand, for what needs the single items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.data.engine import Connection, connect
from ordinate.data.query import column_of
from ordinate.data.sources import Source, open_sources, read, read_arrays
from ordinate.errors import BadInput

Array = NDArray[Any]
MOST = 20_000_000  # rows that are taken into memory


def read_columns(
    paths: list[str],
    names: Sequence[str],
    delimiter: str | None = None,
    encoding: str | None = None,
) -> dict[str, Any]:
    """Return columns by name: numbers where all that is there is a number, texts otherwise."""
    with connect() as connection, open_sources(connection, delimiter, encoding) as reader:
        sources = reader.sources(paths)
        count = sum(_number(connection, source) for source in sources)
        if count > MOST:
            raise BadInput(f"{count:,} rows are too many to look at one by one: at most {MOST:,}.")
        return {name: _column(connection, sources, name) for name in dict.fromkeys(names)}


def _number(connection: Connection, source: Source) -> int:
    return int(read(connection, f"SELECT count(*) FROM {source.sql}", source.name)[0][0])


def _column(connection: Connection, sources: list[Source], name: str) -> Any:
    parts = [f"SELECT {column_of(source, name)} AS x FROM {source.sql}" for source in sources]
    query = " UNION ALL ".join(f"({part})" for part in parts)
    value = "nullif(CAST(x AS VARCHAR), '')"
    odd = f"{value} IS NOT NULL AND TRY_CAST(x AS DOUBLE) IS NULL"
    strange = f"SELECT count(*) FROM ({query}) WHERE {odd}"
    if int(read(connection, strange, sources[0].name)[0][0]):
        return [
            row[0] for row in read(connection, f"SELECT {value} FROM ({query})", sources[0].name)
        ]
    number = "coalesce(TRY_CAST(x AS DOUBLE), CAST('nan' AS DOUBLE)) AS x"
    found = read_arrays(connection, f"SELECT {number} FROM ({query})", sources[0].name)
    return np.asarray(found["x"])
