"""Irregular lines of text files: counted by kind, with the first example of each, and left out.

Lines are cut into columns one by one, inside DuckDB: one bad line does not spoil the others, as it
would for a reader of tables.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from ordinate.errors import BadFile, BadInput, replace_control_characters
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows
from ordinate.readers.file_formats import (
    HEAD_BYTES,
    FileReader,
    FileSource,
    TextLayout,
    detect_delimiter,
    read_cells,
)

BLOCK_CHARACTERS = 1 << 25  # characters given to the engine at a time
FIRST_LINES = 20  # lines by which a file is recognised
ESCAPED_BYTES = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python keeps them
ODD_QUOTES_SQL = "(length(text) - length(replace(text, '\"', ''))) % 2 = 1"  # the number of quotes
NO_QUOTES = "The quotes of this file are characters like others, it seems: pass --quote none."
INVALID_BYTE_MARK = "\U0010ffff"  # no character; stands where bytes are not UTF-8
LONGEST_EXCERPT = 60  # characters of a line that is shown


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


@dataclass(frozen=True)
class Irregularity:
    """How often a file is irregular in one way, and the first example.

    `example` is the text of that line, or an id or a label where no line is known.
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


def list_irregularities(irregular: Sequence[Irregularity]) -> list[str]:
    """Return the kinds, in all files together, with their counts and first examples."""
    by_kind = ([entry for entry in irregular if entry.kind == kind] for kind in IrregularityKind)
    return [_format_irregularity(entries) for entries in by_kind if entries]


def _format_irregularity(entries: list[Irregularity]) -> str:
    """Return one kind with its count and its first example."""
    first, count = entries[0], sum(entry.count for entry in entries)
    files = f" in {len(entries)} files" if len(entries) > 1 else ""
    begin = ", first" if count > 1 else ""
    return f"{first.kind} ({count:,}{files}{begin}: {first.place} '{first.example}')"


def format_excerpt(text: str) -> str:
    r"""Return a line as a report shows it, with its tabs.

    >>> print(format_excerpt("T1\tid 7\tB1"))
    T1\tid 7\tB1
    """
    line = replace_control_characters(text[: LONGEST_EXCERPT + 1].replace("\t", "\\t"))
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"


# --- SQL -----------------------------------------------------------------------------------------


def build_kind_sql(kinds: Mapping[IrregularityKind, str]) -> str:
    """Return SQL for the first kind whose condition holds, or NULL."""
    cases = [f"WHEN {condition} THEN {quote_literal(kind)}" for kind, condition in kinds.items()]
    return f"CASE {' '.join(cases)} END"


def mark_repeated_keys(rows: str, key: str, value: str) -> str:
    """Return SQL for rows of which the first good one of each key is good, in order of `line`."""
    again = f"row_number() OVER again AS turn, first_value({value}) OVER again AS first"
    kind = build_kind_sql(
        {
            IrregularityKind.REPEATED: f"turn > 1 AND {value} IS NOT DISTINCT FROM first",
            IrregularityKind.CONTRADICTING: "turn > 1",
        }
    )
    return (
        f"SELECT * EXCLUDE (turn, first) REPLACE (coalesce(kind, {kind}) AS kind) FROM "
        f"(SELECT *, {again} FROM ({rows}) "
        f"WINDOW again AS (PARTITION BY {key}, kind IS NULL ORDER BY line))"
    )


def count_irregular_lines(connection: Connection, lines: str, file: str) -> list[Irregularity]:
    """Return the irregular lines of a query, by their kinds."""
    rows = read_rows(
        connection,
        "SELECT kind, count(*), min(line), arg_min(left(text, 200), line) "
        f"FROM ({lines}) WHERE kind IS NOT NULL GROUP BY kind",
        file,
    )
    found = {
        kind: Irregularity(file, IrregularityKind(kind), count, line, format_excerpt(text))
        for kind, count, line, text in rows
    }
    return [found[kind] for kind in IrregularityKind if kind in found]


# --- what is left out ----------------------------------------------------------------------------


def keep_first_ids(
    connection: Connection, rows: str, label: str, name: str, left_out: list[Irregularity]
) -> str:
    """Return SQL for the first row of each id of a query, and count the others."""
    kind = build_kind_sql({IrregularityKind.ID: "id IS NULL"})
    numbered = f"SELECT *, row_number() OVER () AS line, {kind} AS kind FROM ({rows})"
    checked = mark_repeated_keys(numbered, "id", label)
    named = f"SELECT *, coalesce(id, '') AS text FROM ({checked})"
    # A row has no line of its own to be shown: a key may be made of several columns.
    left_out += (replace(x, line=None) for x in count_irregular_lines(connection, named, name))
    return f"SELECT * EXCLUDE (line, kind) FROM ({checked}) WHERE kind IS NULL"


def count_off_scale_labels(
    left_out: list[Irregularity], place: str, label: Any, count: int
) -> None:
    """Count labels that are off the scale, one of which stands in a place."""
    kind = IrregularityKind.OFF_SCALE
    for k, known in enumerate(left_out):
        if known.kind == kind:
            left_out[k] = replace(known, count=known.count + count)
            return
    left_out.append(Irregularity(place, kind, count, None, format_excerpt(str(label))))


# --- lines, one by one ----------------------------------------------------------------------------


class LineReader(FileReader):
    """Reads text files line by line, and leaves out bad lines.

    The engine keeps the lines of one file at a time: `lines` as they stand, and `split_lines`.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.left_out: list[Irregularity] = []

    def describe_delimited(self, name: str, path: Path, delimiter: str) -> FileSource:
        """Keep the good lines of a file in the engine, and count the others."""
        first = self.store_lines(name, path)
        delimiter = delimiter or self.detect_delimiter(first)
        rows = list(read_cells(first[:1], delimiter, quoted=self.quoted))
        text = self.name_columns(name, TextLayout(path, delimiter, rows))
        width = len(text.names)
        self.split_lines(delimiter, width, header=not self.options.columns)
        checked = check_split_lines(width)
        self.left_out += count_irregular_lines(self.connection, checked, name)
        table = f"lines_{len(self.sources)}"
        good = f"SELECT line, fields FROM ({checked}) WHERE kind IS NULL ORDER BY line"
        read_rows(self.connection, f"CREATE TEMP TABLE {table} AS {good}", name)
        fields = {column: f"nullif(fields[{k}], '')" for k, column in enumerate(text.names, 1)}
        return FileSource(self.connection, name, table, fields)

    def store_lines(self, name: str, path: Path) -> list[str]:
        """Keep the lines of a file in the engine, as `lines`, and return the first of them."""
        self.connection.execute("CREATE OR REPLACE TEMP TABLE lines (line BIGINT, text VARCHAR)")
        first: list[str] = []
        count = 0
        for block in _read_blocks(path):
            if not first:
                first = _take_first_lines(name, block)
            self.connection.execute(
                f"INSERT INTO lines SELECT {count} + generate_subscripts(parts, 1), unnest(parts) "
                "FROM (SELECT string_split($1, chr(10)) AS parts)",
                [block.removesuffix("\n")],
            )
            count += block.count("\n")
        if not first:
            raise BadInput(f"{name} is empty.")
        return first

    def detect_delimiter(self, first: list[str]) -> str:
        """Return what separates the columns of the first lines, of which some may be bad."""
        if 2 * sum("\t" in line for line in first) > len(first):
            return "\t"
        return detect_delimiter([line[:HEAD_BYTES] for line in first], quoted=self.quoted)

    def split_lines(self, delimiter: str, width: int | None, *, header: bool) -> None:
        """Cut the lines into columns, as `split_lines`, without their header.

        Where the number of columns is known, lines of one quoted text are put together first.
        """
        run = self.connection.execute
        if header:
            run("DELETE FROM lines WHERE line <= (SELECT min(line) FROM lines WHERE text <> '')")
        if width is not None and self.quoted:
            self._join_quoted_lines(delimiter, width)
        run(
            "CREATE OR REPLACE TEMP TABLE split_lines AS SELECT line, text, "
            f"{build_split_sql(delimiter, quoted=self.quoted)} AS fields FROM lines "
            "WHERE text <> ''"
        )

    def _join_quoted_lines(self, delimiter: str, width: int) -> None:
        """Put together lines of one quoted text, where that gives as many columns as there are.

        Such a text begins and ends in lines with an odd number of quotes; a stray quote is left
        to its own line.
        """
        run = self.connection.execute
        if not run(f"SELECT count(*) FROM lines WHERE {ODD_QUOTES_SQL}").fetchall()[0][0]:
            return
        counted = f"SELECT *, CAST({ODD_QUOTES_SQL} AS INTEGER) AS odd FROM lines"
        quotes = f"SELECT *, sum(odd) OVER (ORDER BY line) AS quotes FROM ({counted})"
        run(
            "CREATE OR REPLACE TEMP TABLE spans AS SELECT line, text, "
            "CASE WHEN odd = 1 OR quotes % 2 = 1 THEN (quotes + 1) // 2 END AS span "
            f"FROM ({quotes})"
        )
        run(
            "CREATE OR REPLACE TEMP TABLE joined AS SELECT span, min(line) AS line, "
            "string_agg(text, chr(10) ORDER BY line) AS text FROM spans "
            "WHERE span IS NOT NULL GROUP BY span HAVING count(*) > 1"
        )
        run(f"DELETE FROM joined WHERE (len({build_split_sql(delimiter)}) = {width}) IS NOT TRUE")
        run(
            "CREATE OR REPLACE TEMP TABLE lines AS SELECT line, text FROM joined UNION ALL "
            "SELECT line, text FROM spans ANTI JOIN joined USING (span)"
        )


def check_split_lines(width: int) -> str:
    """Return SQL for the lines that were split, with their kind where they are irregular."""
    kind = build_kind_sql(
        {
            IrregularityKind.ENCODING: f"contains(text, {quote_literal(INVALID_BYTE_MARK)})",
            IrregularityKind.QUOTES: "fields IS NULL",
            IrregularityKind.COLUMNS: f"len(fields) <> {width}",
        }
    )
    return f"SELECT *, {kind} AS kind FROM split_lines"


def build_split_sql(delimiter: str, *, quoted: bool = True) -> str:
    """Return SQL for the columns of a line, NULL where its quotes are malformed."""
    if not quoted:
        return f"string_split(text, {quote_literal(delimiter)})"
    mark = f"\\x{{{ord(delimiter):x}}}"
    column = f'{mark}("(?:[^"]|"")*"|[^"{mark}][^{mark}]*|)'
    line = f"{quote_literal(delimiter)} || text"
    plain = "lambda x: CASE WHEN x[1] = '\"' THEN replace(x[2:-2], '\"\"', '\"') ELSE x END"
    return (
        f"CASE WHEN NOT contains(text, '\"') THEN string_split(text, {quote_literal(delimiter)}) "
        f"WHEN regexp_full_match({line}, {quote_literal(f'(?:{column})*')}) "
        f"THEN list_transform(regexp_extract_all({line}, {quote_literal(column)}, 1), {plain}) END"
    )


def _read_blocks(path: Path) -> Iterator[str]:
    """Return the text in blocks of complete lines, whatever their ends."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as text:
        while block := text.read(BLOCK_CHARACTERS) + text.readline():
            yield ESCAPED_BYTES.sub(INVALID_BYTE_MARK, block)


def _take_first_lines(name: str, block: str) -> list[str]:
    """Return the first lines that are not empty."""
    if "\0" in block[:HEAD_BYTES]:
        raise BadInput(f"{name} is a binary file, not TSV or CSV.")
    return [line for line in block.lstrip("\n").split("\n", FIRST_LINES)[:FIRST_LINES] if line]


# --- records, and quotes that swallow some -------------------------------------------------------


def list_records(
    text: TextLayout, *, quoted: bool, strict: bool = False
) -> "Iterator[tuple[int, list[str] | Exception]]":
    """Yield the records of a text, up to one that cannot be read, and the lines where they begin.

    Nothing stands in an empty line.
    """
    begin = 1
    with text.path.open(encoding="utf-8-sig", newline="") as lines:
        rows = read_cells(lines, text.delimiter, quoted=quoted, strict=strict)
        try:
            for row in rows:
                if row:
                    yield begin, row
                begin = rows.line_num + 1
        except (csv.Error, UnicodeDecodeError) as problem:
            yield begin, problem


def refuse_stray_quotes(reader: FileReader, source: FileSource, text: TextLayout) -> None:
    """Refuse a file whose quotes hold whole rows: a quote began one text, and another ended it.

    Such a text has as many tabs as the rows in it. With other delimiters that may be by chance.
    """
    if text.delimiter != "\t" or len(text.names) < 2:
        return
    tabs = len(text.names) - 1
    swallowed = " OR ".join(
        f"(contains({sql}, chr(10)) AND {_count_sql(sql, 9)} = {tabs} * {_count_sql(sql, 10)})"
        for sql in source.columns.values()
    )
    for (row,) in source.read("row_number() OVER ()", f"QUALIFY {swallowed} LIMIT 1"):
        header = 0 if reader.options.columns else 1
        *_, (line, _) = islice(list_records(text, quoted=True), row + header)
        raise BadFile(
            f"{source.name}: the record that begins in line {line} has a text in quotes that holds "
            f"whole rows. {NO_QUOTES} If they are right, pass --quote double.",
            source.name,
        )


def _count_sql(text: str, character: int) -> str:
    return f"(length({text}) - length(replace({text}, chr({character}), '')))"
