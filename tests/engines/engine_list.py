"""Engines, each of which gets the same rows, and the table of what they support.

What an engine is said to support is what tests hold it to: they run over `ENGINES`.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pandas as pd
import pytest

import ordinate
from engines.servers import start_postgres, start_spark
from ordinate.readers.duckdb_connection import quote_identifier

TABLE_NUMBERS = count(1)

Make = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class Engine:
    """What makes a table of rows, and what it can carry.

    `package` is the one whose release `constraints.txt` pins, if one does.
    """

    name: str
    make: Make
    package: str = ""
    lazy: bool = False  # it is asked for sums, and none of its columns is at hand
    ordered: bool = True  # its columns can declare the order of their labels
    heavy: bool = False  # it needs Java, a server or much time: `make test-engines`


def make_polars(rows: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    found = polars.from_pandas(rows.astype(dict.fromkeys(list_categoricals(rows), "str")))
    enums = {x: polars.Enum(list(rows[x].cat.categories)) for x in list_categoricals(rows)}
    return found.cast(enums) if enums else found


def list_categoricals(rows: pd.DataFrame) -> list[str]:
    return [name for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)]


def make_arrow(rows: pd.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(rows, preserve_index=False)


def make_reader(rows: pd.DataFrame) -> Any:
    """Return batches, the first and the last of them without rows."""
    pyarrow = pytest.importorskip("pyarrow")
    table = make_arrow(rows)
    batches = table.to_batches(max_chunksize=7)
    batches = [batches[0].slice(0, 0), *batches, batches[0].slice(0, 0)]
    return pyarrow.RecordBatchReader.from_batches(table.schema, batches)


def make_duckdb(rows: pd.DataFrame) -> Any:
    import duckdb

    # In the connection that stays open: older versions close a relation with its own.
    return duckdb.from_df(make_objects(rows))


def make_ibis(rows: pd.DataFrame) -> Any:
    return pytest.importorskip("ibis").memtable(make_plain(rows))


def make_plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without categoricals, for engines that have none."""
    return make_objects(rows.astype(dict.fromkeys(list_categoricals(rows), object)))


def make_objects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without the strings of pandas 3, for engines that do not know them."""
    return rows.astype({x: object for x in rows if rows[x].dtype == "str"})


def make_dask(rows: pd.DataFrame) -> Any:
    """Return partitions, one of them without rows."""
    dask = pytest.importorskip("dask.dataframe")
    parts = [rows.iloc[: len(rows) // 3], rows.iloc[:0], rows.iloc[len(rows) // 3 :]]
    return dask.concat([dask.from_pandas(part, npartitions=1) for part in parts])


def make_sqlite(rows: pd.DataFrame) -> Any:
    connection = sqlite3.connect(":memory:")
    make_plain(rows).to_sql("items", connection, index=False)
    return ordinate.Query(connection, "select * from items -- all of them")


def make_duckdb_query(rows: pd.DataFrame) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.register("rows", make_plain(rows))
    connection.execute("create table items as select * from rows")
    return ordinate.Query(connection, "select * from items")


def make_spark(rows: pd.DataFrame) -> Any:
    """Return partitions, one of them without rows."""
    session = start_spark()
    plain = make_plain(rows)
    # Types are told: Spark guesses none for a column without values.
    kinds = {"f": "double", "i": "bigint"}
    types = ", ".join(
        f"`{x.replace('`', '``')}` {kinds.get(plain[x].dtype.kind, 'string')}" for x in plain
    )
    cells = plain.astype(object).where(plain.notna(), None)
    frame = session.createDataFrame(list(cells.itertuples(index=False)), types)
    return frame.union(frame.limit(0)).repartition(3)


def make_postgres(rows: pd.DataFrame) -> Any:
    connection = start_postgres()
    connection.rollback()  # of what a test before made fail
    kinds = {"f": "double precision", "i": "bigint"}
    plain = make_plain(rows)
    columns = ", ".join(
        f"{quote_identifier(x)} {kinds.get(plain[x].dtype.kind, 'text')}" for x in plain
    )
    cells = plain.astype(object).where(plain.notna(), None)
    table = f"items_{next(TABLE_NUMBERS)}"
    with connection.cursor() as cursor:
        cursor.execute(f"create table {table} ({columns})")
        with cursor.copy(f"copy {table} from stdin") as copy:
            for row in cells.itertuples(index=False):
                copy.write_row(row)
    connection.commit()
    return ordinate.Query(connection, f"select * from {table}")  # noqa: S608 - its own name


ENGINES = [
    Engine("pandas", lambda rows: rows, "pandas"),
    Engine("columns by name", dict),
    Engine("Polars", make_polars, "polars"),
    Engine("Polars, lazy", lambda rows: make_polars(rows).lazy(), "polars", lazy=True),
    Engine("PyArrow table", make_arrow, "pyarrow"),
    Engine("PyArrow batches", make_reader, "pyarrow"),
    Engine("DuckDB relation", make_duckdb, "duckdb", lazy=True),
    Engine("Ibis", make_ibis, "ibis-framework", lazy=True, ordered=False),
    Engine("Dask", make_dask, "dask", lazy=True, heavy=True),
    Engine("SQLite", make_sqlite, lazy=True, ordered=False),
    Engine("DuckDB query", make_duckdb_query, "duckdb", lazy=True, ordered=False),
    Engine("PostgreSQL", make_postgres, "psycopg", lazy=True, ordered=False, heavy=True),
    Engine("PySpark", make_spark, "pyspark", lazy=True, ordered=False, heavy=True),
]
# By their names, why they are not among them.
UNTESTED = {
    "Modin": "its release 0.37.1 needs a pandas before 2.4, and the others are tested with pandas 3"
}


# --- the table in the docs -----------------------------------------------------------------------


def format_engines(constraints: str) -> str:
    """Return the table of what each engine supports, in Markdown."""
    releases = dict(line.split("==") for line in constraints.split() if "==" in line)
    head = ("engine", "release", "counts are made of", "an ordered column", "tested by")
    rows = [
        (
            each.name,
            f"{each.package} {releases[each.package]}" if each.package else "of Python",
            "its own grouped sums" if each.lazy else "columns at hand",
            "carries the scale" if each.ordered else "needs `scale=`",
            "`make test-engines`" if each.heavy else "`make test`",
        )
        for each in ENGINES
    ]
    rows += [(name, "", "", "", f"untested: {reason}") for name, reason in UNTESTED.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
