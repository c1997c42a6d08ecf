"""Files of an evaluation campaign: lines of test case, id and value, with a header or without.

Their lines are looked up inside DuckDB, among the items of gold; irregular ones are counted.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, shorten, suggest_names
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, format_columns
from ordinate.readers.columns import FileOptions, Gold, Id, Lenient, Predicted
from ordinate.readers.duckdb_connection import read_rows, read_table
from ordinate.readers.file_formats import NamedFile, detect_format, refuse_duplicate_files
from ordinate.readers.irregular_lines import (
    Irregularity,
    IrregularityKind,
    LineReader,
    build_kind_sql,
    check_split_lines,
    count_irregular_lines,
    format_excerpt,
    mark_repeated_keys,
)
from ordinate.scale.encoding import OFF_SCALE_CODE
from ordinate.settings import Setting

Array = NDArray[Any]

# --- columns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CampaignColumns(FileOptions):
    """Which columns to read, and how; files without a header are read by position.

    `gold` and `predicted` are for files that call the value differently.
    """

    test_case: Annotated[
        str | None,
        Setting("column of the test cases (topics, companies, writers)", metavar="COL"),
    ] = None
    id: Id = None
    value: Annotated[
        str | None, Setting("column of the levels in gold and runs", metavar="COL")
    ] = None
    gold: Gold = None
    predicted: Predicted = None
    lenient: Lenient = False
    renamed: dict[str, str | None] = field(default_factory=dict)

    def list_named(self, role: str) -> dict[str, str | None]:
        """Return the columns that were named for a file of gold, or of predicted values."""
        value = self.gold if role == "gold" else self.predicted
        return {"test_case": self.test_case, "id": self.id, role: value or self.value}


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


def find_layout_by_header(file: str, names: Sequence[str], named: NamedColumns) -> ColumnLayout:
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


def _find_usual_columns(role: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in RECOGNISED_COLUMN_NAMES[role]]


def _find_columns(file: str, names: Sequence[str], role: str, named: str | None) -> list[str]:
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


# --- gold and runs -------------------------------------------------------------------------------


class RunReader(LineReader):
    """Reads gold and runs into the engine, one at a time, and counts their irregular lines.

    The items of gold are the known ones, among which the lines of each file are looked up.
    """

    file: str  # which is being read
    known_items: int  # distinct ids, whether they have a good value or not

    def find_gold(self, pattern: str) -> NamedFile:
        """Return the one file of gold."""
        files = self.find_files(pattern)
        if len(files) > 1:
            raise BadInput(f"Gold is one file, and {pattern} fits {len(files)}.")
        return files[0]

    def find_runs(self, texts: list[str], gold: Path) -> tuple[list[NamedFile], list[str]]:
        """Return the files of names, patterns and folders, and those of them that are gold."""
        named = [file for text in texts for file in self._find_runs_of_pattern(text, gold)]
        same = [name for name, path in named if path.resolve() == gold.resolve()]
        found = [(name, path) for name, path in named if path.resolve() != gold.resolve()]
        refuse_duplicate_files(found, "name each run once")
        if not found:
            besides = f" besides the gold file {same[0]}" if same else ""
            raise BadInput(f"There are no runs{besides}. Name their files, or a folder of them.")
        return found, same

    def _find_runs_of_pattern(self, text: str, gold: Path) -> list[NamedFile]:
        """Return the files of one name, pattern or folder."""
        named = self.find_files(text)
        if named[0][0] != text or not named[0][1].is_dir():
            files = [(name, path) for name, path in named if not path.is_dir()]
        else:
            files = _list_folder(named[0][1])
        alone = [name for name, _ in files] == [text]
        if not alone and all(path.resolve() == gold.resolve() for _, path in files):
            raise BadInput(f"There are no runs in {text}: it has no files besides gold.")
        return files

    def read_lines(self, file: NamedFile, named: NamedColumns) -> ColumnLayout:
        """Keep test case, id and value of each line in the engine, and return where they stood."""
        self.file, given = file
        path = self.resolve_file(self.file, given)
        first = self.store_lines(self.file, self.convert_to_utf8(self.file, path))
        tabs = "\t" if detect_format(given, path) == "tsv" else None
        delimiter = self.delimiter or tabs or self.detect_delimiter(first)
        own = list(self.options.columns)
        names = own or detect_header(first[0], delimiter, named)
        width = None if names is None else len(names)
        self.split_lines(delimiter, width, header=names is not None and not own)
        layout = (
            self._find_layout_by_position(first[0])
            if names is None
            else find_layout_by_header(self.file, names, named)
        )
        self.query(f"CREATE OR REPLACE TEMP TABLE line_values AS {build_line_values_sql(layout)}")
        return layout

    def _find_layout_by_position(self, first: str) -> ColumnLayout:
        """Return the layout that most lines have."""
        widths = ", ".join(map(str, LAYOUTS_BY_WIDTH))
        found = self.query(
            f"SELECT len(fields) FROM split_lines WHERE len(fields) IN ({widths}) GROUP BY 1 "
            "ORDER BY count(*) DESC, 1 DESC"
        )
        if not found:
            raise BadInput(
                f"{self.file} has no header that is known, and no line of two columns (id, value) "
                "or three (test case, id, value): it begins with "
                f"'{format_excerpt(first)}'. Name its columns with --test-case, --id and --value, "
                "or what separates them with --delimiter."
            )
        return LAYOUTS_BY_WIDTH[found[0][0]]

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
        self.left_out += count_irregular_lines(self.connection, "FROM checked", self.file)
        arrays = read_table(
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
            first = format_excerpt(self.read_ids(np.flatnonzero(lacking)[:1])[0])
            kind = IrregularityKind.MISSING
            self.left_out.append(Irregularity(self.file, kind, int(lacking.sum()), None, first))

    def count_lines(self, kind: IrregularityKind) -> int:
        """Return how many lines of the file that was read are of a kind."""
        return sum(x.count for x in self.left_out if (x.file, x.kind) == (self.file, kind))

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


def _list_folder(folder: Path) -> list[NamedFile]:
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as problem:
        raise BadInput(f"{folder} cannot be read: {problem.strerror}.") from None
    return [(str(path), path) for path in files if not path.name.startswith(".")]


# --- SQL -----------------------------------------------------------------------------------------


def build_line_values_sql(layout: ColumnLayout) -> str:
    """Return SQL for the test case, the id and the value of each line that was split."""
    case = "NULL" if layout.test_case is None else f"fields[{layout.test_case}]"
    kind = build_kind_sql(
        {
            IrregularityKind.TEST_CASE: f"{case} = ''",
            IrregularityKind.ID: f"fields[{layout.id}] = ''",
        }
    )
    return (
        f"SELECT line, text, coalesce(kind, {kind}) AS kind, CAST({case} AS VARCHAR) AS test_case, "
        f"fields[{layout.id}] AS id, fields[{layout.value}] AS value "
        f"FROM ({check_split_lines(layout.width)})"
    )


def build_line_check_sql(none: int, *, by_test_case: bool) -> str:
    """Return SQL for the known item, the code and the kind of each line of `line_values`.

    The first good line of an id counts; those after it repeat it. The join has nothing but
    equalities: older engines compare all pairs of lines for any other.
    """
    same = " AND known_items.test_case = line_values.test_case" if by_test_case else ""
    kind = build_kind_sql(
        {
            IrregularityKind.UNKNOWN: "place IS NULL",
            IrregularityKind.VALUE: f"code IS NULL OR code = {none}",
            IrregularityKind.OFF_SCALE: f"code = {OFF_SCALE_CODE}",
        }
    )
    lines = (
        f"SELECT line, text, place, code, coalesce(kind, {kind}) AS kind FROM line_values "
        "LEFT JOIN value_codes USING (value) LEFT JOIN known_items "
        f"ON known_items.id = CASE WHEN kind IS NULL THEN line_values.id END{same}"
    )
    return mark_repeated_keys(lines, "place", "code")
