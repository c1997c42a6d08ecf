"""The same items in files and databases, as a command and a function are given them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd


def write_sources(folder: Path, items: pd.DataFrame) -> None:
    """Write items as CSV, Parquet, and tables of SQLite and DuckDB, and a map of one label."""
    items.to_csv(folder / "items.csv", index=False)
    items.to_parquet(folder / "items.parquet")
    (folder / "map.json").write_text('{"beginner": "A1"}')
    with closing(sqlite3.connect(folder / "items.sqlite")) as connection:
        items.to_sql("items", connection, index=False)
    with closing(duckdb.connect(str(folder / "items.duckdb"))) as connection:
        connection.register("given", items)
        connection.sql("create table items as select * from given")
