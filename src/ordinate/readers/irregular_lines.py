"""Irregular lines of files: found inside DuckDB, counted by kind, with the first example of each.

A file has lines of test case, id and value, with a header or without. A bad line spoils no other
one: it is left out and counted, or all bad lines of all files are one error.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, shorten, suggest_names
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, format_columns
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_arrays, read_rows
from ordinate.readers.text_lines import (
    INVALID_BYTE_MARK,
    LineReader,
    NamedFile,
    format_excerpt,
)
from ordinate.scale.encoding import OFF_SCALE_CODE

Array = NDArray[Any]
MOST_KINDS_LISTED = 8  # kinds that an error lists


class IrregularityKind(StrEnum):
    """The kinds of irregularity; a line is of the first that fits."""

    ENCODING = "bytes that are not UTF-8"
    QUOTES = "malformed quotes"
    COLUMNS = "wrong number of columns"
    TEST_CASE = "empty test case"
    ID = "empty id"
    UNKNOWN = "id that gold lacks"
    VALUE = "empty value"
    OFF_SCALE = "label off the scale"
    REPEATED = "repeated id, same value"
    CONTRADICTING = "repeated id, other value"
    MISSING = "id that the run lacks"


KINDS = list(IrregularityKind)


@dataclass(frozen=True)
class Irregularity:
    """How often a file is irregular in one way, and the first example.

    `example` is the text of that line, or the first id that a run lacks, which has no line.
    """

    file: str
    kind: IrregularityKind
    count: int
    line: int | None
    example: str

    @property
    def place(self) -> str:
        """Where the first example stands."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def refuse_irregularities(irregular: Sequence[Irregularity]) -> None:
    """Say what is irregular, in all files together, if anything is."""
    if not irregular:
        return
    listed = list_irregularities(irregular)
    further = len(listed) - MOST_KINDS_LISTED
    more = f"; and {further} more kinds" if further > 0 else ""
    total = sum(entry.count for entry in irregular)
    is_encoded = any(entry.kind == IrregularityKind.ENCODING for entry in irregular)
    hint = " Pass --encoding if a file is not UTF-8." if is_encoded else ""
    raise BadInput(
        f"The files have {total:,} irregular {'line or id' if total == 1 else 'lines or ids'}: "
        f"{'; '.join(listed[:MOST_KINDS_LISTED])}{more}. Correct the files, or pass lenient=True "
        f"(--lenient) to leave these lines out and evaluate the rest.{hint}"
    )


def list_irregularities(irregular: Sequence[Irregularity]) -> list[str]:
    """Return the kinds, in all files together, with their counts and first examples."""
    by_kind = ([entry for entry in irregular if entry.kind == kind] for kind in KINDS)
    return [_format_irregularity(entries) for entries in by_kind if entries]


def _format_irregularity(entries: list[Irregularity]) -> str:
    """Return one kind with its count and its first example."""
    first, count = entries[0], sum(entry.count for entry in entries)
    files = f" in {len(entries)} files" if len(entries) > 1 else ""
    begin = ", first" if count > 1 else ""
    return f"{first.kind} ({count:,}{files}{begin}: {first.place} '{first.example}')"


# --- where the columns stand ---------------------------------------------------------------------

VALUE_COLUMN_NAMES = ("value", "label", "level", "class", "category")
RECOGNISED_COLUMN_NAMES = {
    "test_case": ("test_case", "test case", "testcase", "topic", "topic_id", "query", "query_id"),
    "id": ("id", "item", "item_id", "doc_id", "document_id", "tweet_id", "essay_id"),
    "gold": (*USUAL_COLUMN_NAMES["gold"], *VALUE_COLUMN_NAMES),
    "predicted": (*USUAL_COLUMN_NAMES["predicted"], *VALUE_COLUMN_NAMES),
}
ROLE_TITLES = {
    "test_case": "test case",
    "id": "id",
    "gold": "gold label",
    "predicted": "prediction",
}
ROLE_OPTIONS = {"test_case": "--test-case", "id": "--id", "gold": "--value", "predicted": "--value"}

NamedColumns = Mapping[str, str | None]  # the name that was asked for, by role; the value is last


@dataclass(frozen=True)
class ColumnLayout:
    """How many columns there are, and the places of three of them, counted from 1.

    `names` are those of the header, and `description` is how a note says where the columns stood.
    """

    width: int
    test_case: int | None
    id: int
    value: int
    description: str
    names: tuple[str, ...] = ()


LAYOUTS_BY_WIDTH = {
    3: ColumnLayout(3, 1, 2, 3, "without a header: test case, id, value"),
    2: ColumnLayout(2, None, 1, 2, "without a header: id, value"),
}


def detect_header(line: str, delimiter: str, named: NamedColumns) -> list[str] | None:
    """Return the names in a line, if it is a header.

    It is one if it has a name that was asked for, or usual names of an id and of a value.
    """
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return None
    has_named = any(name in names for name in named.values() if name is not None)
    roles = [role for role in named if role != "test_case"]
    is_header = has_named or all(_find_usual_columns(role, names) for role in roles)
    return names if is_header else None


def find_layout_by_header(file: str, names: list[str], named: NamedColumns) -> ColumnLayout:
    """Return the places of the columns that were named, or have usual names."""
    columns = {role: _find_columns(file, names, role, name) for role, name in named.items()}
    for role, matches in columns.items():
        if len(matches) > 1 or (not matches and role != "test_case"):
            raise BadInput(
                f"Which column of {file} has the {ROLE_TITLES[role]}? Name it with "
                f"{ROLE_OPTIONS[role]}. " + format_columns(names)
            )
    case, key, value = ([names.index(x) + 1 for x in matches] for matches in columns.values())
    listed = ", ".join(name for matches in columns.values() for name in matches)
    return ColumnLayout(
        len(names),
        case[0] if case else None,
        key[0],
        value[0],
        f"by the columns {listed} of the header",
        tuple(names),
    )


def find_layout_by_position(file: str, threes: int, twos: int, first: str) -> ColumnLayout:
    """Return the layout that most lines have."""
    if not threes and not twos:
        raise BadInput(
            f"{file} has no header that is known, and no line of two columns (id, value) or three "
            f"(test case, id, value): it begins with '{format_excerpt(first)}'. Name its columns "
            "with --test-case, --id and --value, or what separates them with --delimiter."
        )
    return LAYOUTS_BY_WIDTH[3 if threes >= twos else 2]


def _find_usual_columns(role: str, names: list[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in RECOGNISED_COLUMN_NAMES[role]]


def _find_columns(file: str, names: list[str], role: str, named: str | None) -> list[str]:
    if named is None:
        return _find_usual_columns(role, names)
    if named not in names and role != "test_case":
        raise make_unknown_column_error(file, named, names)
    if names.count(named) > 1:
        raise BadInput(f"{file} has two columns named {shorten(named)}. Rename one.")
    return [named] if named in names else []


def make_unknown_column_error(file: str, named: str, names: Sequence[str]) -> BadInput:
    """Return the error for a column that is not there."""
    hint = suggest_names(named, list(names)) or " " + format_columns(names)
    return BadInput(f"{file} has no column {shorten(named)}.{hint}")


# --- checking lines ------------------------------------------------------------------------------


class LineChecker:
    """Reads files into the engine, one at a time, and counts their irregular lines.

    The items of one file, such as gold, are the known ones, among which the lines of each file are
    looked up.
    """

    known_items: int  # distinct ids, whether they have a good value or not

    def __init__(self, connection: Connection, lines: LineReader) -> None:
        self.connection, self.lines = connection, lines
        self.file = ""
        self.irregular: list[Irregularity] = []

    def read_file(self, file: NamedFile, named: NamedColumns) -> ColumnLayout:
        """Keep test case, id and value of each line in the engine, and return where they stood."""
        self.file, path = file
        first = self.lines.store_lines(self.file, *self.lines.resolve_text(self.file, path))
        delimiter = self.lines.detect_delimiter(path, first)
        given = list(self.lines.options.columns)
        names = given or detect_header(first[0], delimiter, named)
        width = None if names is None else len(names)
        self.lines.split_lines(delimiter, width, header=names is not None and not given)
        layout = (
            find_layout_by_header(self.file, names, named)
            if names is not None
            else find_layout_by_position(self.file, *self._count_line_widths(), first[0])
        )
        self.query(f"CREATE OR REPLACE TEMP TABLE line_values AS {build_line_values_sql(layout)}")
        return layout

    def _count_line_widths(self) -> tuple[int, int]:
        """Return how many lines have three columns, and how many two."""
        counts = "count(*) FILTER (len(fields) = 3), count(*) FILTER (len(fields) = 2)"
        return self.query(f"SELECT {counts} FROM split_lines")[0]

    def store_known_items(self) -> None:
        """Take the items of the file that was read for the known ones."""
        self.query(
            "CREATE TEMP TABLE known_items AS SELECT row_number() OVER (ORDER BY min(line)) - 1 AS "
            "place, test_case, id FROM line_values WHERE kind IS NULL GROUP BY test_case, id"
        )
        self.known_items = self.query("SELECT count(*) FROM known_items")[0][0]

    def list_values(self) -> list[str]:
        """Return the distinct values of the file that was read."""
        values = "SELECT DISTINCT value FROM line_values WHERE kind IS NULL AND value <> ''"
        return [row[0] for row in self.query(f"{values} ORDER BY 1")]

    def check_lines(
        self, codes: Mapping[str, int], none: int, *, by_test_case: bool
    ) -> tuple[Array, Array]:
        """Count the irregular lines; return the code of each known item, and which have a line.

        `codes` are those of values, and `none` is the code of a missing one.
        """
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE value_codes AS SELECT unnest($1::VARCHAR[]) AS value, "
            "unnest($2::INTEGER[]) AS code",
            [list(codes), list(codes.values())],
        )
        checked = build_line_check_sql(none, by_test_case=by_test_case)
        self.query(f"CREATE OR REPLACE TEMP TABLE checked AS {checked}")
        self.irregular += count_irregular_lines(self.connection, "FROM checked", self.file)
        arrays = read_arrays(
            self.connection,
            f"SELECT place, coalesce(max(code) FILTER (kind IS NULL), {none}) AS code "
            "FROM checked WHERE place IS NOT NULL GROUP BY place",
            self.file,
        )
        item_codes = np.full(self.known_items, none, np.int16)
        has_line = np.zeros(self.known_items, bool)
        item_codes[arrays["place"]], has_line[arrays["place"]] = arrays["code"], True
        return item_codes, has_line

    def count_missing_items(self, lacking: Array) -> None:
        """Count known items that the file lacks."""
        if lacking.any():
            first = self.read_ids(np.flatnonzero(lacking)[:1])[0]
            self.irregular.append(
                Irregularity(
                    self.file,
                    IrregularityKind.MISSING,
                    int(lacking.sum()),
                    None,
                    format_excerpt(first),
                )
            )

    def count(self, kind: IrregularityKind) -> int:
        """Return how many lines of the file that was read are of a kind."""
        found = (x.count for x in self.irregular if (x.file, x.kind) == (self.file, kind))
        return sum(found)

    def read_ids(self, places: Array) -> list[str]:
        """Return ids of known items, after their test cases where there are any."""
        listed = ", ".join(map(str, places.tolist()))
        query = (
            f"SELECT concat_ws(' ', test_case, id) FROM known_items WHERE place IN ({listed}) "
            "ORDER BY place"
        )
        return [row[0] for row in self.query(query)]

    def query(self, query: str) -> list[Any]:
        """Return the rows of a query; an error names the file that is being read."""
        return read_rows(self.connection, query, self.file)


def count_irregular_lines(connection: Connection, lines: str, file: str) -> list[Irregularity]:
    """Return the irregular lines of a query, by their kinds."""
    rows = read_rows(
        connection,
        "SELECT kind, count(*), min(line), arg_min(left(text, 200), line) "
        f"FROM ({lines}) WHERE kind IS NOT NULL GROUP BY kind",
        file,
    )
    entries = [
        Irregularity(file, IrregularityKind(kind), count, line, format_excerpt(text))
        for kind, count, line, text in rows
    ]
    return sorted(entries, key=lambda entry: KINDS.index(entry.kind))


def build_line_values_sql(layout: ColumnLayout) -> str:
    """Return SQL for the test case, the id and the value of each line of `split_lines`."""
    case = "NULL" if layout.test_case is None else f"fields[{layout.test_case}]"
    kind = build_first_kind_sql(
        {
            IrregularityKind.ENCODING: f"contains(text, {quote_literal(INVALID_BYTE_MARK)})",
            IrregularityKind.QUOTES: "fields IS NULL",
            IrregularityKind.COLUMNS: f"len(fields) <> {layout.width}",
            IrregularityKind.TEST_CASE: f"{case} = ''",
            IrregularityKind.ID: f"fields[{layout.id}] = ''",
        }
    )
    return (
        f"SELECT line, text, {kind} AS kind, CAST({case} AS VARCHAR) AS test_case, "
        f"fields[{layout.id}] AS id, fields[{layout.value}] AS value FROM split_lines"
    )


def build_line_check_sql(none: int, *, by_test_case: bool) -> str:
    """Return SQL for the known item, the code and the kind of each line of `line_values`.

    The first good line of an id counts; those after it repeat it.
    """
    turn = (
        "row_number() OVER again AS turn, first_value(code) OVER again AS first "
        f"FROM ({_build_single_line_check_sql(none, by_test_case=by_test_case)}) "
        "WINDOW again AS (PARTITION BY place, kind IS NULL ORDER BY line)"
    )
    again = build_first_kind_sql(
        {
            IrregularityKind.REPEATED: "turn > 1 AND code = first",
            IrregularityKind.CONTRADICTING: "turn > 1",
        }
    )
    return (
        f"SELECT line, text, place, code, CASE WHEN kind IS NULL THEN {again} ELSE kind END "
        f"AS kind FROM (SELECT *, {turn})"
    )


def _build_single_line_check_sql(none: int, *, by_test_case: bool) -> str:
    """Return SQL for what each line is, whatever the others are.

    The join has nothing but equalities: older engines compare all pairs of lines for any other.
    """
    same = " AND known_items.test_case = line_values.test_case" if by_test_case else ""
    kind = build_first_kind_sql(
        {
            IrregularityKind.UNKNOWN: "place IS NULL",
            IrregularityKind.VALUE: f"code IS NULL OR code = {none}",
            IrregularityKind.OFF_SCALE: f"code = {OFF_SCALE_CODE}",
        }
    )
    return (
        f"SELECT line, text, place, code, CASE WHEN kind IS NULL THEN {kind} ELSE kind END AS "
        "kind FROM line_values LEFT JOIN value_codes USING (value) LEFT JOIN known_items "
        f"ON known_items.id = CASE WHEN kind IS NULL THEN line_values.id END{same}"
    )


def build_first_kind_sql(kinds: dict[IrregularityKind, str]) -> str:
    """Return SQL for the first kind whose condition holds, or NULL."""
    cases = [f"WHEN {condition} THEN {quote_literal(kind)}" for kind, condition in kinds.items()]
    return f"CASE {' '.join(cases)} END"
