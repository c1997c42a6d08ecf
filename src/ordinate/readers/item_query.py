"""SQL for items and their labels: one file or two that are joined, and clusters numbered."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ordinate.errors import BadIds, BadInput, UnequalLengths, shorten, word_advice
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, check_column, find_column
from ordinate.readers.columns import ItemColumns, split_key
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows, read_table
from ordinate.readers.expressions import DUCKDB, Expression, build_sum_query, name_columns
from ordinate.readers.file_formats import FileReader, FileSource
from ordinate.readers.items import CLUSTER, GOLD, NTH, PREDICTED, SECOND, SUBGROUP, Row, Sums, Table
from ordinate.scale.encoding import Groups

if TYPE_CHECKING:
    from ordinate.readers.batches import Batches

LABEL_ROLES = {GOLD, PREDICTED, SECOND, CLUSTER}  # in which an empty string is a missing value
ROW_NUMBER_SQL = "row_number() OVER () AS nth"
WEIGHT_SQL = "TRY_CAST(weight AS DOUBLE)"
FILE_ROW_OFFSET = 1 << 40  # more rows than a file has: `nth` counts on from file to file


@dataclass(frozen=True)
class ItemQuery:
    """A query for items: gold, predicted, weight, subgroup, cluster, second, in_gold, id, ….

    Their own columns are called o0, o1, …; `own` has their true names. `keyed` items are known by
    an id, others by their row. Where there are clusters, `nth` is the place of an item in its file.
    """

    sql: str
    name: str
    own: tuple[str, ...] = ()
    keyed: bool = False


@dataclass(frozen=True)
class FileItems:
    """Items of files, counted by DuckDB: one query for each file, so that errors name it."""

    connection: Connection
    parts: Sequence[ItemQuery]
    ordered: bool = False

    @property
    def name(self) -> str:
        """What people call the first file."""
        return self.parts[0].name

    @property
    def keyed(self) -> bool:
        """Whether items were joined by an id."""
        return self.parts[0].keyed

    def add_columns(self, columns: Mapping[str, Expression]) -> "FileItems":
        """Return the items with more columns."""
        selected = ", ".join(["*", *name_columns(columns, DUCKDB)])
        parts = [replace(x, sql=f"SELECT {selected} FROM ({x.sql})") for x in self.parts]
        return replace(self, parts=parts)

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items of each file that share all keys."""
        tables = []
        for k, part in enumerate(self.parts):
            query = build_sum_query(f"({part.sql})", keys, sums, where, DUCKDB)
            tables.append(read_table(self.connection, query, part.name))
            if NTH in sums:
                tables[k][NTH] = tables[k][NTH].astype(float) + k * FILE_ROW_OFFSET
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}

    def open_batches(
        self, numbers: Sequence[str], keys: Mapping[str, Groups], where: Expression
    ) -> "Batches":
        """Return columns of numbers, and the numbers of keys, where a condition holds."""
        from ordinate.readers.batches import SELECTED, store_batches  # noqa: PLC0415 - start-up: labels are grouped

        condition = where.to_sql(DUCKDB)
        order = " ORDER BY id" if self.keyed else ""  # whatever order a join has
        queries = [
            f"SELECT {SELECTED} FROM ({part.sql}) WHERE {condition}{order}" for part in self.parts
        ]
        return store_batches(self.connection, self.name, queries, numbers, keys)

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return the first places where a condition holds, and what stands there."""
        unit, place = ("id", "id") if self.keyed else ("row", "row_number() OVER ()")
        selected = ", ".join(["place", *(x.to_sql(DUCKDB) for x in shown)])
        order = NTH if self.ordered else "place"
        rows: list[Row] = []
        for part in self.parts:
            query = (
                f"SELECT {selected} FROM (SELECT *, {place} AS place FROM ({part.sql})) WHERE "
                f"{where.to_sql(DUCKDB)} ORDER BY {order} LIMIT {limit - len(rows)}"
            )
            of_file = f" of {part.name}" if len(self.parts) > 1 else ""
            found = read_rows(self.connection, query, part.name)
            rows += [(f"{unit} {at}{of_file}", *cells) for at, *cells in found]
        return rows


class QueryPlanner:
    """Finds the columns in the files, and writes the queries.

    `further` columns are read beside those that were asked for, by role; gold and predictions have
    `usual_names`, and `contents` that errors name.
    """

    def __init__(
        self,
        reader: FileReader,
        gold_files: list[FileSource],
        files: list[FileSource],
        columns: ItemColumns,
        further: Mapping[str, str] = MappingProxyType({}),
        *,
        usual_names: Mapping[str, tuple[str, ...]] = USUAL_COLUMN_NAMES,
        contents: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.reader, self.columns = reader, columns
        if (columns.id or columns.row_order) and not gold_files:
            raise BadInput(
                word_advice(
                    "{id} and {row_order} say how to join a {gold_file}, and there is none.",
                    id=...,
                    row_order=True,
                    gold_file=...,
                )
            )
        if columns.row_order and columns.bad_lines == "skip":
            raise BadInput(
                word_advice(
                    "{bad_lines} leaves rows out: join by {id}, not by {row_order}.",
                    bad_lines="skip",
                    id=...,
                    row_order=True,
                )
            )
        if columns.id and columns.row_order:
            way = "Join the files by {id} or by {row_order}, not by both."
            raise BadInput(word_advice(way, id=..., row_order=True))
        self.gold_files, self.files = gold_files, files
        self.notes = [*reader.notes]
        self.gold, self.predicted = (
            find_column(
                *(role, getattr(columns, role), side[0], self.notes),
                usual_names=usual_names,
                content=contents.get(role, ""),
            )
            for role, side in zip(usual_names, (gold_files or files, files), strict=True)
        )
        self.roles = {**columns.roles, **further}

    def list_titles(self) -> dict[str, str]:
        """Return the columns of labels, weights and groups, by role."""
        return {GOLD: self.gold, PREDICTED: self.predicted} | self.roles

    def build_items(self) -> "FileItems":
        """Return the items, with one query for each file, or one for files that are joined."""
        if not self.gold_files:
            parts = [self._query_single_file(source) for source in self.files]
        else:
            parts = [self._join_by_row_order() if self.columns.row_order else self._join_by_id()]
        return FileItems(self.reader.connection, parts, ordered=self.columns.groups is not None)

    # --- queries -----------------------------------------------------------------------------

    def _query_single_file(self, source: FileSource) -> ItemQuery:
        own = [f"{sql} AS o{k}" for k, sql in enumerate(source.columns.values())]
        numbered = [ROW_NUMBER_SQL] if self.columns.groups else []
        joined = ["true AS in_gold", "true AS in_predicted"]
        sql = select_columns(source, self.list_titles(), *own, *numbered, *joined)
        return ItemQuery(sql, source.name, tuple(source.columns))

    def _build_side_sql(self, sources: list[FileSource], column: str, name: str) -> str:
        """Return SQL for one side of a join: label, id, and the further columns that it has."""
        queries = []
        for source in sources:
            selected = [f"{build_label_sql(source, column, resolve_number)} AS {name}"]
            if not self.columns.row_order:
                selected.append(f"{build_key_sql(source, self._id_column)} AS id")
            selected.append(f"{quote_literal(source.name)} AS {name}_file")
            for role, other in self.roles.items():
                there = other in source.columns
                sql = build_role_sql(source, role, other) if there else "NULL"
                selected.append(f"CAST({sql} AS VARCHAR) AS {role}")
            queries.append(f"SELECT {', '.join(selected)} FROM {source.sql}")
        return " UNION ALL ".join(queries)

    def _build_sides_sql(self) -> tuple[str, str, str]:
        for column in self.roles.values():
            if not any(column in source.columns for source in (*self.gold_files, *self.files)):
                resolve_column(self.gold_files[0], column)  # says what is there
        merged = [f", coalesce(a.{n}, b.{n}) AS {n}" for n in self.roles]
        merged += [f", {name}_file" for name in (GOLD, PREDICTED)]
        left = self._build_side_sql(self.gold_files, self.gold, "gold")
        if self.columns.groups:
            left, merged = f"SELECT *, {ROW_NUMBER_SQL} FROM ({left})", [*merged, ", nth"]
        return left, self._build_side_sql(self.files, self.predicted, "predicted"), "".join(merged)

    def _join_by_id(self) -> ItemQuery:
        left, right, extras = self._build_sides_sql()
        names = [", ".join(x.name for x in side) for side in (self.gold_files, self.files)]
        for side, name in zip((left, right), names, strict=True):
            require_ids(self.reader.connection, side, name, self._id_column)
        return ItemQuery(
            "SELECT coalesce(a.id, b.id) AS o0, gold AS o1, predicted AS o2, gold, predicted, "
            f"coalesce(a.id, b.id) AS id{extras}, a.id IS NOT NULL AS in_gold, b.id IS NOT NULL "
            f"AS in_predicted FROM ({left}) a FULL JOIN ({right}) b ON a.id = b.id",
            self.gold_files[0].name,
            make_names_distinct(self._id_column, "gold", "predicted"),
            keyed=True,
        )

    def _join_by_row_order(self) -> ItemQuery:
        rows = [sum(x.count_rows() for x in side) for side in (self.gold_files, self.files)]
        name = self.gold_files[0].name
        if rows[0] != rows[1]:
            way = word_advice("Join them by an id column with {id}.", id=...)
            raise UnequalLengths(
                f"{name} has {rows[0]:,} rows and the predictions have {rows[1]:,}, so they are "
                f"not in the same order. {way}"
            )
        self.notes.append("Gold and predictions were matched by row order, as asked.")
        left, right, extras = self._build_sides_sql()
        return ItemQuery(
            f"SELECT gold AS o0, predicted AS o1, gold, predicted{extras}, "
            f"true AS in_gold, true AS in_predicted FROM ({left}) a POSITIONAL JOIN ({right}) b",
            name,
            ("gold", "predicted"),
        )

    # --- ids ---------------------------------------------------------------------------------

    @property
    def _id_column(self) -> str:
        if self.columns.id is None:
            raise BadInput(
                "Gold and predictions in two files are joined by an id. "
                + word_advice(
                    "Name its column with {id}, or pass {row_order} if the rows of both files are "
                    "in the same order.",
                    id=...,
                    row_order=True,
                )
            )
        return self.columns.id


def resolve_column(source: FileSource, column: str, others: Collection[str] = ()) -> str:
    """Return SQL for a column of a file, or say what the file has instead."""
    check_column(source.name, column, source.columns, others)
    return source.columns[column]


def resolve_number(source: FileSource, column: str, others: Collection[str] = ()) -> str:
    """Return SQL for a column as numbers, however a flag says that they are written."""
    sql = resolve_column(source, column, others)
    return source.number_columns.get(column, sql)


def select_columns(
    source: FileSource,
    columns: Mapping[str, str],
    *further: str,
    labels: Collection[str] = LABEL_ROLES,
) -> str:
    """Return SQL for the items of a file, with columns by their roles, and further ones."""
    selected = [
        f"{build_role_sql(source, role, name, labels)} AS {role}" for role, name in columns.items()
    ]
    return f"SELECT {', '.join([*selected, *further])} FROM {source.sql}"


def build_role_sql(
    source: FileSource, role: str, column: str, labels: Collection[str] = LABEL_ROLES
) -> str:
    """Return SQL for a column: labels and subgroups as strings, numbers as they stand."""
    if role in labels and (role == CLUSTER or column in source.numbers):
        return build_label_sql(source, column)
    if role not in labels and role != SUBGROUP:
        return resolve_number(source, column)
    # Whoever encodes labels takes an empty one for missing; to ask each row takes a third longer.
    resolve = resolve_column if role == SUBGROUP else resolve_number
    return f"CAST({resolve(source, column)} AS VARCHAR)"


def build_label_sql(
    source: FileSource, column: str, resolve: Callable[[FileSource, str], str] = resolve_column
) -> str:
    """Return SQL for a label as a string, NULL where it is missing; NaN is a missing number."""
    text = f"nullif(CAST({resolve(source, column)} AS VARCHAR), '')"
    if column not in source.numbers:
        return text
    # Other questions about NaN take the answer from a file's statistics, which leave it out.
    return f"CASE WHEN isfinite({resolve_column(source, column)}) THEN {text} END"


def build_key_sql(source: FileSource, column: str) -> str:
    """Return SQL for an id: of one column, or of several, which commas separate.

    Where a part has commas or quotes of its own it stands in quotes, so that keys stay apart.
    """
    if column in source.columns or "," not in column:
        return build_label_sql(source, column)
    parts = [build_label_sql(source, name) for name in split_key(column)]
    quoted = "concat('\"', replace({0}, '\"', '\"\"'), '\"')"
    part = f"CASE WHEN regexp_matches({{0}}, '[,\"]') THEN {quoted} ELSE {{0}} END"
    return f"({' || chr(44) || '.join(part.format(sql) for sql in parts)})"


def require_ids(connection: Connection, rows: str, name: str, column: str) -> None:
    """Refuse rows of a query without an id, or with that of another row."""
    query = (
        f"SELECT id, count(*), count(*) OVER () - 1 FROM ({rows}) GROUP BY id "
        "HAVING id IS NULL OR count(*) > 1 ORDER BY id NULLS FIRST LIMIT 1"
    )
    for found, times, others in read_rows(connection, query, name):
        if found is None:
            raise BadIds(f"{name}: {times:,} rows have no id in column {column!r}.")
        more = f", and {others:,} more ids occur several times" if others else ""
        raise BadIds(f"{name}: the id {shorten(found)} occurs {times:,} times{more}.")


def make_names_distinct(*names: str) -> tuple[str, ...]:
    """Return names of columns, longer where they would be taken for one another."""
    found: list[str] = []
    for name in names:
        taken = {other.lower() for other in found}
        found.append(next(x for k in count() if (x := name + "_" * k).lower() not in taken))
    return tuple(found)
