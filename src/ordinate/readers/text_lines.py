"""The lines of text files inside DuckDB, with their own numbers, cut into columns one by one.

One bad line does not spoil the others, as it would for a reader of tables.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput
from ordinate.readers.duckdb_connection import quote_literal, read_rows
from ordinate.readers.file_formats import (
    HEAD_BYTES,
    FileReader,
    FileSource,
    TextLayout,
    detect_delimiter,
    read_cells,
)
from ordinate.readers.irregular_lines import (
    INVALID_BYTE_MARK,
    Irregularity,
    IrregularityKind,
    build_kind_sql,
    count_irregular_lines,
)

BLOCK_CHARACTERS = 1 << 25  # characters given to the engine at a time
FIRST_LINES = 20  # lines by which a file is recognised
ESCAPED_BYTES = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python keeps them
ODD_QUOTES_SQL = "(length(text) - length(replace(text, '\"', ''))) % 2 = 1"  # the number of quotes


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
