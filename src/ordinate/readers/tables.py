"""Tables that people hand over: data frames of any library, and queries of databases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadValues
from ordinate.readers.column_names import check_column, refuse_duplicate_columns
from ordinate.readers.duckdb_connection import quote_identifier
from ordinate.readers.items import ItemSource
from ordinate.scale import Scale
from ordinate.scale.detection import find_carried_scale
from ordinate.summaries.tabulation import convert_to_numbers

CARRIED_SCALE = "The scale is the order that the column declares."


def refuse_unnamed_columns(names: Mapping[str, str], *needed: str) -> None:
    """Refuse a table of which a column that is needed was not named."""
    for argument in needed:
        if argument not in names:
            raise BadOption(f"Which column of the table is {argument}? Name it: {argument}=….")


def is_table(data: Any) -> bool:
    """Tell whether data are a table, and not a column."""
    from ordinate.readers.databases import Query  # noqa: PLC0415 - start-up: files need none

    # Arrays and everybody's series have no columns: nothing is imported, and no engine is asked.
    return isinstance(data, (Query, Mapping)) or any(
        hasattr(type(data), mark)
        for mark in ("collect_schema", "column_names", "read_next_batch", "columns")
    )


def open_table(data: Any) -> "ColumnTable | LazyTable":
    """Return the table of a data frame, a mapping of columns, or a query."""
    from ordinate.readers.databases import Query  # noqa: PLC0415 - start-up: files need none
    from ordinate.readers.frame_items import explain_failure  # noqa: PLC0415 - start-up: files need none

    if isinstance(data, Query):
        return LazyTable(data, data.name, dict.fromkeys(data.columns))
    if isinstance(data, Mapping):
        return ColumnTable(data, list(data), "the table")
    from narwhals.stable import v2 as narwhals

    library = type(data).__module__.partition(".")[0].removeprefix("_")
    name = f"the {library} frame"
    if hasattr(data, "read_next_batch"):  # batches of Arrow, which are given once
        with explain_failure(name):
            data = data.read_all()
    try:
        frame = narwhals.from_native(data)
    except TypeError:
        raise BadInput(
            f"{type(data).__name__} is no table. Pass a frame of pandas, Polars, PyArrow, DuckDB, "
            "Ibis, Dask or PySpark, columns by name, or ordinate.Query(connection, 'select …')."
        ) from None
    except narwhals.exceptions.DuplicateError:
        refuse_duplicate_columns(name, getattr(data, "column_names", None) or data.columns)
        raise
    if not isinstance(frame, narwhals.LazyFrame):
        if any(isinstance(column, tuple) for column in frame.columns):  # a MultiIndex of pandas
            raise BadInput(
                f"The columns of {name} have several levels of names. Give each one name: "
                "frame.columns = ['_'.join(map(str, names)) for names in frame.columns]."
            )
        return ColumnTable(frame, frame.columns, name)
    with explain_failure(name):
        frame = narwhals.from_native(_tell_texts_apart(data, library))
        schema = frame.collect_schema()
    orders = {column: getattr(kind, "categories", None) for column, kind in schema.items()}
    return LazyTable(frame, name, orders)


@dataclass(frozen=True)
class ColumnTable:
    """A mapping of columns, or an eager frame of narwhals."""

    frame: Any
    columns: Sequence[str]
    name: str

    def take_column(self, name: str) -> Any:
        """Return a column as its own library has it."""
        found = self.frame[name]
        return found if isinstance(self.frame, Mapping) else found.to_native()

    def take_matrix(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return columns of numbers side by side."""
        known = dict.fromkeys(self.columns)
        for name in names:
            check_column(self.name, name, known)
        columns = (convert_to_numbers(self.take_column(name), name) for name in names)
        return np.column_stack(list(columns))


@dataclass(frozen=True)
class LazyTable:
    """A lazy frame of narwhals, or a query: its engine is asked for sums.

    `columns` says of each column which labels it declares, lowest first, if it does.
    """

    rows: Any
    name: str
    columns: Mapping[str, Sequence[Any] | None]

    def find_scale(
        self, declared: Any, columns: Iterable[str]
    ) -> tuple[Scale | None, tuple[str, ...]]:
        """Return the declared scale, or the one that columns carry, and what to say of it."""
        if declared is not None:
            return Scale.of(declared), ()
        carried = find_carried_scale(self.columns.get(name) for name in columns)
        return carried, () if carried is None else (CARRIED_SCALE,)

    def require_numbers(self, names: Iterable[str]) -> None:
        """Refuse columns of a frame that hold no numbers; of a query the cells are looked at."""
        from ordinate.readers.databases import Query  # noqa: PLC0415 - start-up: files need none

        schema = {} if isinstance(self.rows, Query) else self.rows.collect_schema()
        for name in names:
            if name in schema and not schema[name].is_numeric():
                raise BadValues(
                    f"Column {name!r} of {self.name} holds {schema[name]}, not numbers: cast it."
                )

    def open_items(self, roles: Mapping[str, str]) -> ItemSource:
        """Return its items, with columns named by their roles."""
        from ordinate.readers.databases import Query, QueryItems  # noqa: PLC0415 - start-up: files need none
        from ordinate.readers.frame_items import FrameItems, explain_failure  # noqa: PLC0415 - start-up: files need none

        for name in roles.values():
            check_column(self.name, name, self.columns)
        if isinstance(self.rows, Query):
            return QueryItems(self.rows, roles)
        from narwhals.stable import v2 as narwhals

        quote = _quote_spark_name if self.rows.implementation.is_spark_like() else str
        columns = {role: narwhals.col(quote(name)) for role, name in roles.items()}
        with explain_failure(self.name):
            named = self.rows.select(**columns)
        return FrameItems(named, self.name)


def _quote_spark_name(name: str) -> str:
    """Return a name as Spark takes it, to which a dot is a part of a struct."""
    return f"`{name.replace('`', '``')}`"


def _tell_texts_apart(data: Any, library: str) -> Any:
    """Return a frame whose texts are grouped by their bytes, whatever collation columns have."""
    if library == "duckdb":
        kinds = {name: str(kind) for name, kind in zip(data.columns, data.types, strict=True)}
        names = {name: quote_identifier(name) for name in kinds}
        texts = {x: f'{names[x]} COLLATE "C" AS {names[x]}' for x in kinds if kinds[x] == "VARCHAR"}
        return data.project(", ".join((names | texts).values())) if texts else data
    kinds = {x.name: x.dataType for x in data.schema.fields} if library == "pyspark" else {}
    for name, kind in kinds.items():
        if getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
            column = data[_quote_spark_name(name)].cast("string")
            data = data.withColumn(name, column)
    return data
