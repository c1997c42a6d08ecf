"""The lines of text files inside DuckDB, with their own numbers, cut into columns one by one.

One bad line does not spoil the others, as it would for a reader of tables.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

from ordinate.errors import BadInput, replace_control_characters
from ordinate.readers.duckdb_connection import quote_literal
from ordinate.readers.file_formats import (
    FORMATS_BY_SUFFIX,
    HEAD_BYTES,
    FileReader,
    detect_compression,
    detect_delimiter,
    open_unpacked,
    refuse_duplicate_files,
)

BLOCK_CHARACTERS = 1 << 25  # characters given to the engine at a time
LONGEST_EXCERPT = 60  # characters of a line that is shown
FIRST_LINES = 20  # lines by which a file is recognised
INVALID_BYTE_MARK = "\U0010ffff"  # no character; stands where bytes are not UTF-8
ESCAPED_BYTES = re.compile("[\udc80-\udcff]")  # such bytes, as Python keeps them
ODD_QUOTES_SQL = "(length(text) - length(replace(text, '\"', ''))) % 2 = 1"  # the number of quotes

NamedFile = tuple[str, Path]  # what people call a file, and where it is


class LineReader(FileReader):
    """Finds gold and runs, and keeps the lines of one file at a time in the engine."""

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

    # --- lines -------------------------------------------------------------------------------

    def resolve_text(self, name: str, given: Path) -> tuple[Path, str]:
        """Return where the text of a file lies in UTF-8, and how it is compressed."""
        try:
            path = self.resolve_plain_file(given)
            return self.convert_to_utf8(name, path, detect_compression(name, path))
        except OSError as problem:
            raise BadInput(f"{name} cannot be read: {problem.strerror}.") from None

    def store_lines(self, name: str, path: Path, compression: str) -> list[str]:
        """Keep the lines of a file in the engine, as `lines`, and return the first of them."""
        self.connection.execute("CREATE OR REPLACE TEMP TABLE lines (line BIGINT, text VARCHAR)")
        first: list[str] = []
        count = 0
        for block in _read_blocks(path, compression):
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

    def detect_delimiter(self, given: Path, first: list[str]) -> str:
        """Return what separates columns: as declared, by the file's name, or by its first lines."""
        suffixes = [FORMATS_BY_SUFFIX.get(suffix.lower()) for suffix in given.suffixes]
        tabs = sum("\t" in line for line in first)
        if self.delimiter is not None:
            return self.delimiter
        if "tsv" in suffixes or 2 * tabs > len(first):
            return "\t"
        return detect_delimiter([line[:HEAD_BYTES] for line in first], quoted=self.quoted)


def _read_blocks(path: Path, compression: str) -> Iterator[str]:
    """Return the text in blocks of complete lines, whatever their ends."""
    with (
        open_unpacked(path, compression) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape") as text,
    ):
        while block := text.read(BLOCK_CHARACTERS) + text.readline():
            yield ESCAPED_BYTES.sub(INVALID_BYTE_MARK, block)


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


def _list_folder(folder: Path) -> list[NamedFile]:
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as problem:
        raise BadInput(f"{folder} cannot be read: {problem.strerror}.") from None
    return [(str(path), path) for path in files if not path.name.startswith(".")]


def _take_first_lines(name: str, block: str) -> list[str]:
    """Return the first lines that are not empty."""
    if "\0" in block[:HEAD_BYTES]:
        raise BadInput(f"{name} is a binary file, not TSV or CSV.")
    return [line for line in block.lstrip("\n").split("\n", FIRST_LINES)[:FIRST_LINES] if line]


def format_excerpt(text: str) -> str:
    r"""Return a line as a report shows it, with its tabs.

    >>> print(format_excerpt("T1\tid 7\tB1"))
    T1\tid 7\tB1
    """
    line = replace_control_characters(text[: LONGEST_EXCERPT + 1].replace("\t", "\\t"))
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"
