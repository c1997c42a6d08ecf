"""Predictions as a table: records, CSV and Parquet, for every task."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ordinate.errors import BadOption, shorten
from ordinate.readers.duckdb_connection import connect, copy_to_file, quote_identifier
from ordinate.render.estimates import format_count, join_names

SHOWN_COLUMNS = 6  # of its short form
CSV_SUFFIXES, PARQUET_SUFFIXES = (".csv",), (".parquet", ".pq")


class PredictionTable(ABC):
    """Predictions that a model makes: a subclass says the columns, the rest follows."""

    def __repr__(self) -> str:
        names = list(self.columns())
        rows = format_count(len(self), "row")
        return f"<{type(self).__name__}: {rows} of {join_names(names, SHOWN_COLUMNS)}>"

    @abstractmethod
    def __len__(self) -> int:
        """Return how many items there are."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a file, in order."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one record for each item."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [
            dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)
        ]

    def csv(self) -> str:
        """Return the rows as CSV; where there are none, its header alone."""
        from ordinate.render.records import render_csv

        return render_csv(self.rows(), self.columns())

    def write(self, path: Path | str) -> None:
        """Write CSV or Parquet, by the suffix of the path."""
        check_suffix(str(path))
        if Path(path).suffix.lower() in CSV_SUFFIXES:
            Path(path).write_bytes(self.csv().encode())  # the same bytes on every machine
            return
        with connect() as connection:
            columns = {f"c{k}": column for k, column in enumerate(self.columns().values())}
            connection.register("predictions", columns)
            selected = ", ".join(
                f"c{k} AS {quote_identifier(name)}" for k, name in enumerate(self.columns())
            )
            query = f"SELECT {selected} FROM predictions"  # noqa: S608 - names are quoted
            copy_to_file(connection, query, Path(path))


def check_suffix(path: str) -> None:
    """Refuse a file that is neither CSV nor Parquet, before any work is done."""
    if Path(path).suffix.lower() not in (*CSV_SUFFIXES, *PARQUET_SUFFIXES):
        raise BadOption(f"Predictions are written as .csv or .parquet, not as {shorten(path)}.")
