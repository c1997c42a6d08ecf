"""Parquet, CSV, TSV, JSON and spreadsheets as tables of DuckDB: recognised, never loaded whole."""

import codecs
import csv
import glob
import gzip
import math
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    NO_ROOM,
    BadFile,
    BadInput,
    BadOption,
    hide_password,
    replace_control_characters,
    shorten,
    suggest_names,
    word_advice,
)
from ordinate.readers.column_names import refuse_duplicate_columns
from ordinate.readers.columns import FileOptions, parse_delimiter
from ordinate.readers.duckdb_connection import (
    LONGEST_LINE,
    Connection,
    connect,
    extract_reason,
    limit_memory,
    quote_identifier,
    quote_literal,
    read_rows,
    read_table,
    suggest_encoding,
)
from ordinate.readers.number_spelling import build_number_sql

Watch = Callable[["FileReader"], AbstractContextManager[None]]  # such as a bar of progress
NamedFile = tuple[str, Path]  # what people call a file, and where it is
FORMATS_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "sheet"),
}
GZIP_MARK, ZSTD_MARK, PARQUET_MARK = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
SHEET_MARKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of a zip, and of older files of Office
# More than this, and than so many times the packed bytes, is hardly a table.
UNPACKED_BYTES, UNPACKED_RATIO = 1 << 30, 200
BLANK = b" \r\n\t"
HEAD_BYTES = 1 << 16  # bytes looked at before a file is read
DELIMITER_LINES = 5  # of a text file, by which its delimiter is recognised
LONGEST_EXCERPT = 60  # characters of a line that is shown
NO_QUOTES = "The quotes of this file are characters like others, it seems: pass {quote}."
FIRST_ROWS = 20  # of a text file, by which a header is told from a row
# A folder named column=value is no data: DuckDB would put its value in that column's place.
PLAIN_FOLDERS = "hive_partitioning=false"
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # how a folder is called whose column is missing
UTF8_ENCODINGS = {"utf-8", "utf-8-sig", "ascii"}


@dataclass(frozen=True)
class FileSource:
    """One file: what people call it, its table in SQL, and SQL for each of its columns."""

    connection: Connection
    name: str
    sql: str
    columns: dict[str, str]
    numbers: frozenset[str] = frozenset()  # columns that may hold NaN
    number_columns: Mapping[str, str] = field(default_factory=dict)  # where they have other SQL

    def read(self, selected: str, rest: str = "") -> list[Any]:
        """Return rows of the file; `rest` is what follows its name in a query."""
        return read_rows(self.connection, f"SELECT {selected} FROM {self.sql} {rest}", self.name)

    def read_table(self, selected: str) -> dict[str, NDArray[Any]]:
        """Return columns of the file, None where a value is missing."""
        return read_table(self.connection, f"SELECT {selected} FROM {self.sql}", self.name)

    def count_rows(self) -> int:
        """Return how many rows the file has."""
        return int(self.read("count(*)")[0][0])


@dataclass(frozen=True)
class TextLayout:
    """How a text file is written: where it lies, what cuts its lines, and its first rows."""

    path: Path
    delimiter: str
    first_rows: list[list[str]]
    names: list[str] = field(default_factory=list)  # of its columns


@contextmanager
def open_sources(
    options: FileOptions | None = None, watch: Watch = lambda _: nullcontext(), **limits: int
) -> "Iterator[FileReader]":
    """Give a reader of files; its temporary copies go when everything is read."""
    options = options or FileOptions()
    with connect() as connection, tempfile.TemporaryDirectory(prefix="ordinate-") as folder:
        limit_memory(connection, options.memory, Path(folder))
        reader = FileReader(connection, Path(folder), options, **limits)
        with watch(reader):
            yield reader


class FileReader:
    """Finds files, recognises them, and says how to read them; `notes` say what was left out."""

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        options: FileOptions,
        *,
        longest_line: int = LONGEST_LINE,
    ) -> None:
        self.connection, self.folder, self.options = connection, folder, options
        self.delimiter = parse_delimiter(options.delimiter)
        self.quoted = options.quote != "none"
        self.longest_line = longest_line
        self.copies = 0
        self.paths: list[Path] = []  # of the files that were found
        self.sources: list[FileSource] = []
        self.texts: dict[str, TextLayout] = {}  # by what people call them
        self.notes: list[str] = []

    def describe_files(self, paths: list[str]) -> list[FileSource]:
        """Return the files of names, patterns, and '-' for standard input, each described."""
        return [self.describe_file(name, path) for name, path in self.find_distinct_files(paths)]

    def describe_sides(
        self, gold_file: str | None, paths: list[str]
    ) -> tuple[list[FileSource], list[FileSource]]:
        """Return the file of gold, where it is one of its own, and those of predictions."""
        return self.describe_files([gold_file] if gold_file else []), self.describe_files(paths)

    def find_distinct_files(
        self, paths: Iterable[str], reason: str = "its items would count twice"
    ) -> list[NamedFile]:
        """Return the files of names, patterns, and '-' for standard input, each named once."""
        found = [file for text in paths for file in self.find_files(text)]
        refuse_duplicate_files(found, reason)
        return found

    def refuse_to_replace(self, written: Path) -> None:
        """Refuse to write a file that is read: it would be lost."""
        if os.path.realpath(written) in map(os.path.realpath, self.paths):
            raise BadOption(f"{written.name} is read, so it cannot be written too.")

    # --- finding -----------------------------------------------------------------------------

    def find_files(self, text: str) -> list[NamedFile]:
        """Return the files of a name or a pattern, by what people call them."""
        if text == "-":
            with _report_read_errors("standard input"):
                return [("standard input", self._copy_stream(sys.stdin.buffer))]
        if not text:
            raise BadInput("A file has no name: there is nothing between the quotes.")
        try:
            if Path(text).is_dir():
                matches = _list_files(Path(text), hive=self.options.hive)
            elif Path(text).exists():
                matches = [text]
            else:
                matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - takes any root
        except BadInput:
            raise
        except (OSError, ValueError):
            matches = []
        if not matches:
            raise BadInput(f"There is no file {shorten(hide_password(text))}.{_suggest(text)}")
        return [(format_path(match), Path(match)) for match in matches]

    def _copy_stream(self, stream: IO[bytes] | gzip.GzipFile, most: float = math.inf) -> Path:
        """Return a copy, which is cut off where it has more bytes than asked for."""
        copy = self._new_temporary_path()
        with copy.open("wb") as out:
            while out.tell() <= most and (part := stream.read(1 << 20)):
                out.write(part)
        return copy

    def _new_temporary_path(self) -> Path:
        self.copies += 1
        return self.folder / f"input-{self.copies}"

    # --- recognising -------------------------------------------------------------------------

    def describe_file(self, name: str, given: Path) -> FileSource:
        """Recognise and describe a file."""
        path = self.resolve_file(name, given)
        self.paths.append(given)
        file_format = detect_format(given, path)
        if file_format == "parquet":
            source = self._describe_parquet(name, path)
        elif file_format == "json":
            source = self._describe_json(name, self.convert_to_utf8(name, path))
        else:
            delimiter = self.delimiter or ("\t" if file_format == "tsv" else "")
            if file_format == "sheet":
                path, delimiter = self._export_sheet(name, path), ","
            else:
                path = self.convert_to_utf8(name, path)
            source = self.describe_delimited(name, path, delimiter)
            if mark := self.options.decimal:
                written = {x: build_number_sql(sql, mark) for x, sql in source.columns.items()}
                source = replace(source, number_columns=written)
        if self.options.hive:
            source = _add_folder_columns(source, given)
        self.sources.append(source)
        return source

    def resolve_file(self, name: str, path: Path) -> Path:
        """Return a path that DuckDB reads as it stands: no pipe, no pattern, and not packed."""
        with _report_read_errors(name):
            _refuse_folder(path)
            if not path.is_file():
                with path.open("rb") as stream:
                    path = self._copy_stream(stream)
            with path.open("rb") as file:
                start = file.read(len(ZSTD_MARK))
            if start.startswith(GZIP_MARK):
                path = self._unpack(name, path)
        if start == ZSTD_MARK:
            raise BadInput(f"{name} is packed with zstd: unpack it, or pack it with gzip.")
        if not path.stat().st_size:
            raise BadInput(f"{name} is empty.")
        absolute = str(path.absolute())
        if not set("*?[") & set(absolute) and format_path(absolute) == absolute:
            return path.absolute()
        link = self._new_temporary_path()
        link.symlink_to(path.absolute())
        return link

    def _unpack(self, name: str, path: Path) -> Path:
        """Return an unpacked copy: DuckDB would not look at checksums, nor read it in parallel."""
        most = _limit_unpacked(path)
        try:
            with gzip.open(path) as stream:
                copy = self._copy_stream(stream, most)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise BadInput(f"{name} cannot be unpacked: its gzip data are damaged.") from None
        if copy.stat().st_size > most:
            raise _make_bomb_error(name, path)
        return copy

    def _export_sheet(self, name: str, path: Path) -> Path:
        """Return a sheet of a spreadsheet as CSV."""
        from ordinate.readers.spreadsheets import export_sheet  # noqa: PLC0415 - it is rare

        if not self.quoted:
            way = word_advice("{quote} is for text files", quote=...)
            raise BadInput(f"{name} is a spreadsheet, and {way}.")
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as parts:
            if sum(x.file_size for x in parts.infolist()) > _limit_unpacked(path):
                raise _make_bomb_error(name, path)
        copy = self._new_temporary_path()
        export_sheet(name, path, copy, self.options.sheet, self.options.decimal)
        return copy

    def _unify_line_ends(self, path: Path) -> Path:
        """Return a copy whose lines end in one way: DuckDB does not read several."""
        copy, inside = self._new_temporary_path(), False
        with (
            path.open(encoding="utf-8", errors="surrogateescape", newline="") as text,
            copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as out,
        ):
            for line in text:
                inside ^= self.quoted and line.count('"') % 2 == 1
                out.write(line if inside else line.rstrip("\r\n") + "\n")
        return copy

    def convert_to_utf8(self, name: str, path: Path) -> Path:
        """Return the file, or a copy in UTF-8 if it is written in another encoding."""
        encoding = self.options.encoding or _detect_encoding(path)
        try:
            known = codecs.lookup(encoding)
        except LookupError:
            known = None
        if known is None or not known._is_text_encoding:  # noqa: SLF001 - as open() itself asks
            raise BadInput(f"There is no encoding {shorten(encoding)}. Try latin-1 or cp1252.")
        if known.name in UTF8_ENCODINGS:
            return path
        copy = self._new_temporary_path()
        try:
            with (
                _report_read_errors(name),
                path.open(encoding=known.name, newline="") as text,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                shutil.copyfileobj(text, out)
        except UnicodeError:
            way = word_advice("Pass another {encoding}.", encoding=...)
            raise BadInput(f"{name} is not in {encoding}. {way}") from None
        return copy

    # --- describing --------------------------------------------------------------------------

    def _describe_parquet(self, name: str, path: Path) -> FileSource:
        """Describe a file under its own names: the engine takes 'it' and 'It' for one."""
        file = quote_literal(str(path))
        sql = f"read_parquet({file}, {PLAIN_FOLDERS})"
        known = read_rows(self.connection, f"DESCRIBE SELECT * FROM {sql}", name)
        schema = f"SELECT name FROM parquet_schema({file}) OFFSET 1"
        names = [row[0] for row in read_rows(self.connection, schema, name)]
        if len(names) != len(known):  # nested columns, whose parts are listed too
            names = [row[0] for row in known]
        refuse_duplicate_columns(name, names)
        columns = {own: quote_identifier(row[0]) for own, row in zip(names, known, strict=True)}
        numbers = (
            own for own, row in zip(names, known, strict=True) if row[1] in {"FLOAT", "DOUBLE"}
        )
        return FileSource(self.connection, name, sql, columns, frozenset(numbers))

    def _describe_json(self, name: str, path: Path) -> FileSource:
        """Take every value as a string: a key may come late, and hold numbers and strings."""
        _refuse_open_array(name, path)
        sql = f"read_json_objects({quote_literal(str(path))}, format='auto', {PLAIN_FOLDERS})"
        keys = (
            "SELECT k, min(i), bool_or(len(ks) > len(list_distinct(ks))) FROM "
            f"(SELECT ks, i, unnest(ks) AS k FROM (SELECT json_keys(json) AS ks, "
            f"row_number() OVER () AS i FROM {sql})) GROUP BY k ORDER BY 2, 1"
        )
        found = read_rows(self.connection, keys, name)
        if any(twice for _, _, twice in found):
            named = ", ".join(shorten(key) for key, _, twice in found[:5] if twice)
            raise BadInput(f"{name} has an object in which one key stands twice ({named}).")
        pointers = {key: "/" + key.replace("~", "~0").replace("/", "~1") for key, *_ in found}
        columns = {key: f"(json->>{quote_literal(pointer)})" for key, pointer in pointers.items()}
        return FileSource(self.connection, name, sql, columns)

    def describe_delimited(self, name: str, path: Path, delimiter: str) -> FileSource:
        """Describe a text file; without a delimiter, it is recognised."""
        text = self.name_columns(name, _read_head(name, path, delimiter, quoted=self.quoted))
        quote = "'\"'" if self.quoted else "''"
        types = ", ".join(f"c{k}: 'VARCHAR'" for k in range(len(text.names)))
        sql = (
            f"read_csv({quote_literal(str(path))}, auto_detect=false, nullstr='', "
            f"header={str(not self.options.columns).lower()}, "
            f"delim={quote_literal(text.delimiter)}, quote={quote}, escape={quote}, "
            f"compression='uncompressed', max_line_size={self.longest_line}, "
            f"buffer_size={2 * self.longest_line}, {PLAIN_FOLDERS}, columns={{{types}}}"
        )
        rows_are_lines, ends = _scan_lines(path, self.longest_line, quoted=self.quoted)
        if len(ends) > 1:
            return self.describe_delimited(name, self._unify_line_ends(path), delimiter)
        columns = {column: f"c{k}" for k, column in enumerate(text.names)}
        if self.options.bad_lines == "skip":
            sql = self._skip_bad_lines(name, text, sql, rows_are_lines=rows_are_lines)
        else:
            sql = f"{sql}{'' if rows_are_lines else self._choose_threads(name, path, sql)})"
        source = FileSource(self.connection, name, sql, columns)
        if not rows_are_lines and self.options.quote is None:
            self._refuse_stray_quotes(source, text)
        return source

    def _skip_bad_lines(
        self, name: str, text: TextLayout, sql: str, *, rows_are_lines: bool
    ) -> str:
        """Return a table of the good rows, read once, and note how many lines were left out.

        One reader alone numbers the lines rightly. It forgets a last row whose quote is not
        closed, which a lax reader counts.
        """
        table = f"rows_{len(self.sources)}"
        alone = f"FROM {sql}, parallel=false, store_rejects=true"
        read_rows(self.connection, f"CREATE OR REPLACE TEMP TABLE {table} AS {alone})", name)
        bad, line, excerpt = self._count_bad_lines(name)
        if not rows_are_lines:
            (strict,) = read_rows(self.connection, f"SELECT count(*) FROM {table}", name)[0]
            every = f"SELECT count(*) {alone}, strict_mode=false)"
            (lax,) = read_rows(self.connection, every, name)[0]
            if strict + bad != lax + self._count_bad_lines(name)[0]:
                raise BadFile(f"{name} cannot be read: a quote is not closed.", name)
            records = list_records(text, quoted=True) if bad else ()
            lists = (x for x in records if isinstance(x[1], list))  # not one that csv cannot read
            line = next((begin for begin, row in lists if not is_regular_row(row, text)), line)
        first = f"the first is line {line} ('{format_excerpt(excerpt)}')."
        if bad and not read_rows(self.connection, f"SELECT 1 FROM {table} LIMIT 1", name):
            width = f"{len(text.names)} {'column' if len(text.names) == 1 else 'columns'}"
            raise BadInput(f"{name} has no line with {width}, as many as it has names: {first}")
        if bad:
            lines, were = ("line", "was") if bad == 1 else ("lines", "were")
            self.notes.append(
                f"{bad:,} {lines} of {name} {were} left out, with more or fewer columns than "
                f"{len(text.names)}: {first}"
            )
        return table

    def _count_bad_lines(self, name: str) -> tuple[int, int, str]:
        """Return how many lines have more or fewer columns, and the first of them.

        What else is wrong is an error, and so is such a record of several lines: its quotes may
        have swallowed rows.
        """
        several = "regexp_matches(csv_line, '[^\\r\\n][\\r\\n]+[^\\r\\n]')"
        wrong = f"{several} OR error_type NOT IN ('MISSING COLUMNS', 'TOO MANY COLUMNS')"
        query = (
            "SELECT count(DISTINCT line), min(line), min_by(csv_line, line), "
            f"min_by(error_message, line) FILTER ({wrong}) FROM reject_errors"
        )
        ((count, line, text, problem),) = read_rows(self.connection, query, name)
        self.connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
        if problem is not None:
            raise BadFile(f"{name} cannot be read: {extract_reason(problem)}", name)
        return count, line, (text or "").strip("\r\n")

    def name_columns(self, name: str, text: TextLayout) -> TextLayout:
        """Return a text file with the names of its columns: those given, or its first row."""
        first, given = text.first_rows[0], list(self.options.columns)
        if given and len(given) != len(first):
            raise BadInput(
                f"{name} has {len(first)} columns, and {word_advice('{columns}', columns=...)} "
                f"names {len(given)}: "
                f"{', '.join(map(shorten, given))}."
            )
        usual = [column or f"(column {k})" for k, column in enumerate(first, start=1)]
        self.texts[name] = text = replace(text, names=given or usual)
        refuse_duplicate_columns(name, text.names)
        return text

    def _choose_threads(self, name: str, path: Path, sql: str) -> str:
        """Return how DuckDB reads a text file: with readers in parallel, or with one alone.

        In parallel it refuses some texts with line breaks in quotes, and loses a last row that is
        longer than a buffer. One reader alone does neither, but loses a last row whose quote is
        not closed, which a lax reader counts.
        """
        if path.stat().st_size <= 2 * self.longest_line:
            return ""  # one buffer
        alone = ", parallel=false"
        strict, lax = (
            read_rows(self.connection, f"SELECT count(*) FROM {sql}{alone}{more})", name)
            for more in ("", ", strict_mode=false")
        )
        if strict != lax:
            raise BadFile(f"{name} cannot be read: a quote is not closed.", name)
        return alone

    def _refuse_stray_quotes(self, source: FileSource, text: TextLayout) -> None:
        """Refuse a file whose quotes hold whole rows: a quote began one text, another ended it.

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
            header = 0 if self.options.columns else 1
            records = list_records(text, quoted=True)
            good = (begin for begin, cells in records if is_regular_row(cells, text))
            *_, line = islice(good, row + header)
            raise BadFile(
                f"{source.name}: the record that begins in line {line} has a text in quotes that "
                f"holds whole rows. {word_advice(NO_QUOTES, quote='none')} "
                + word_advice("If they are right, pass {quote}.", quote="double"),
                source.name,
            )


# --- text files ----------------------------------------------------------------------------------


def _read_head(name: str, path: Path, delimiter: str, *, quoted: bool) -> TextLayout:
    """Return the delimiter of a text file, and its first rows."""
    rows: list[list[str]] = []
    try:
        with path.open("rb") as raw:
            if b"\0" in raw.read(HEAD_BYTES):
                raise BadInput(f"{name} is a binary file, not CSV, TSV, JSONL or Parquet.")
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(islice(file, DELIMITER_LINES))
            delimiter = delimiter or detect_delimiter(lines, quoted=quoted)
            cells = read_cells(chain(lines, file), delimiter, quoted=quoted)
            rows.extend(islice(cells, FIRST_ROWS))
    except UnicodeDecodeError:
        raise BadInput(f"{name} is not UTF-8. {suggest_encoding()}") from None
    except csv.Error as problem:
        if not rows:
            raise BadInput(f"The header line of {name} cannot be read: {problem}.") from None
    if not rows or not any(rows[0]):
        raise BadInput(f"{name} has no header line.")
    return TextLayout(path, delimiter, rows)


def read_cells(lines: Iterable[str], delimiter: str, *, quoted: bool, strict: bool = False) -> Any:
    """Return a reader of the rows of a text."""
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    return csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=strict)  # type: ignore[arg-type] # one of two


def list_records(
    text: TextLayout, *, quoted: bool, strict: bool = False
) -> Iterator[tuple[int, list[str] | Exception]]:
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


def is_regular_row(row: list[str] | Exception, text: TextLayout) -> bool:
    """Tell whether a record could be read, and has all columns, and nothing in further ones."""
    width = len(text.names)
    return isinstance(row, list) and len(row) >= width and not any(row[width:])


def format_excerpt(text: str) -> str:
    r"""Return a line as a report shows it, with its tabs.

    >>> print(format_excerpt("T1\tid 7\tB1"))
    T1\tid 7\tB1
    """
    line = replace_control_characters(text[: LONGEST_EXCERPT + 1].replace("\t", "\\t"))
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"


def _count_sql(text: str, character: int) -> str:
    return f"(length({text}) - length(replace({text}, chr({character}), '')))"


def _scan_lines(path: Path, longest_line: int, *, quoted: bool) -> tuple[bool, set[str]]:
    """Tell whether each row is one line that is not too long, and the ways in which rows end.

    A break is outside of quotes if the quotes before it are even in number.
    """
    quotes, rows_are_lines, ends = 0, True, set[str]()
    with path.open("rb") as file:
        while chunk := file.read(longest_line // 2):
            chunk += file.read(1) if chunk.endswith(b"\r") else b""
            data = np.frombuffer(chunk, np.uint8)
            breaks = np.flatnonzero((data == ord("\n")) | (data == ord("\r")))
            rows_are_lines &= len(breaks) > 0 or len(chunk) < longest_line // 2
            if quoted:
                marks = np.flatnonzero(data == ord('"'))
                outside = (quotes + np.searchsorted(marks, breaks)) % 2 == 0
                rows_are_lines &= bool(outside.all())
                breaks, quotes = breaks[outside], quotes + len(marks)
            ends |= _find_line_ends(data, breaks)
    return not quoted or (rows_are_lines and quotes % 2 == 0), ends


def _find_line_ends(data: NDArray[np.uint8], breaks: NDArray[np.intp]) -> set[str]:
    """Return the ways in which lines end, each of one break or of two that touch."""
    kinds = data[breaks]
    returns = kinds == ord("\r")
    pairs = np.count_nonzero(returns[:-1] & ~returns[1:] & (np.diff(breaks) == 1))
    count = np.count_nonzero(returns)
    found = {"\r\n": pairs, "\r": count - pairs, "\n": len(kinds) - count - pairs}
    return {end for end, times in found.items() if times}


def detect_delimiter(lines: list[str], *, quoted: bool = True) -> str:
    """Return what cuts all first lines into the same number of columns, or the header into most."""

    def count_columns(delimiter: str) -> tuple[int, int]:
        sizes: list[int] = []
        with suppress(csv.Error):  # of a field that is longer than the module takes: a long text
            sizes += (len(row) for row in read_cells(lines, delimiter, quoted=quoted) if row)
        same = len(set(sizes)) == 1 and sizes[0] > 1
        return sizes[0] if same else 0, sizes[0] if sizes else 0

    return max(",;\t|", key=count_columns)  # the first of equals: a comma


def _detect_encoding(path: Path) -> str:
    """Return the encoding that a byte-order mark declares, or UTF-8."""
    with path.open("rb") as file:
        start = file.read(2)
    return "utf-16" if start in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8"


# --- JSON ----------------------------------------------------------------------------------------


def _refuse_open_array(name: str, path: Path) -> None:
    """Refuse an array that was cut off after a comma, which DuckDB takes for whole."""
    with path.open("rb") as file:
        if file.read(HEAD_BYTES).lstrip(codecs.BOM_UTF8 + BLANK)[:1] != b"[":
            return
        file.seek(0)
        last = b""
        while chunk := file.read(1 << 20):
            last = chunk.rstrip(BLANK)[-1:] or last
    if last != b"]":
        raise BadInput(f"{name} is not whole: its array has no end.")


# --- files and folders ---------------------------------------------------------------------------


def detect_format(given: Path, path: Path) -> str:
    """Return the format of a file: by the suffix that it was given, or by how it begins."""
    if known := _find_suffix(given):
        return FORMATS_BY_SUFFIX[known]
    with path.open("rb") as file:
        start = file.read(HEAD_BYTES)
    if start.startswith(PARQUET_MARK):
        return "parquet"
    if start.startswith(SHEET_MARKS):
        return "sheet"
    return "json" if start.lstrip(codecs.BOM_UTF8 + BLANK)[:1] in {b"{", b"["} else "csv"


def _find_suffix(path: Path) -> str | None:
    """Return the suffix that names a format, .gz aside; None where there is none."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes and suffixes[-1] in FORMATS_BY_SUFFIX else None


def _limit_unpacked(path: Path) -> int:
    """Return how many bytes a packed file may hold: a few may stand for any number."""
    return max(UNPACKED_BYTES, UNPACKED_RATIO * path.stat().st_size)


def _make_bomb_error(name: str, path: Path) -> BadInput:
    return BadInput(
        f"{name} has {path.stat().st_size:,} bytes and unpacks to more than "
        f"{_limit_unpacked(path):,}, as no usual table does. If it is one, unpack it first."
    )


def format_path(path: str) -> str:
    r"""Return a path as text, bytes that are not UTF-8 as \xff."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@contextmanager
def _report_read_errors(name: str) -> Iterator[None]:
    """Say in words why a file cannot be read, or its copy not be written."""
    try:
        yield
    except OSError as problem:
        where = f" in {tempfile.gettempdir()}; TMPDIR names another folder"
        reason = f"{problem.strerror}{where if problem.errno in NO_ROOM else ''}"
        raise BadInput(f"{name} cannot be read: {reason}.") from None


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Name files, or a pattern such as '{path}/*.csv'.")


def refuse_duplicate_files(files: list[tuple[str, Path]], reason: str) -> None:
    """Refuse a file that is named twice, and say why."""
    seen: set[str] = set()
    for name, path in files:
        place = os.path.realpath(path)  # where links in a loop are no error
        if place in seen:
            raise BadInput(f"{name} is named twice: {reason}.")
        seen.add(place)


def _list_files(folder: Path, *, hive: bool) -> list[str]:
    """Return the files in a folder whose names say their format, of partitions those below it, too.

    Hidden ones are left out, and of partitions those that begin with `_`.
    """
    if not hive and any("=" in each.name for each in folder.iterdir() if each.is_dir()):
        way = word_advice("To read them, pass {hive}.", hive=True)
        raise BadInput(f"{folder} is a folder of partitions. {way}")
    marks = "._" if hive else "."
    found = [
        str(path)
        for path in sorted(folder.rglob("*") if hive else folder.iterdir())
        if path.is_file()
        and not any(part[0] in marks for part in path.relative_to(folder).parts)
        and _find_suffix(path)
    ]
    if not found:
        known = ", ".join(FORMATS_BY_SUFFIX)
        raise BadInput(f"{folder} is a folder without files to read. Their suffixes are: {known}.")
    return found


def _add_folder_columns(source: FileSource, path: Path) -> FileSource:
    """Return a file with the columns that its folders name, as in language=de."""
    from urllib.parse import unquote  # noqa: PLC0415 - it is rare

    parts = (part.partition("=") for part in path.parts[:-1])
    found = {unquote(column): unquote(value) for column, mark, value in parts if column and mark}
    for column in found.keys() & source.columns.keys():
        raise BadInput(
            f"{source.name} has a column {shorten(column)}, and its folder names one, too. "
            + word_advice(
                "To take that of the file, pass {hive}; or rename the folder.", hive=False
            )
        )
    values = {
        column: "CAST(NULL AS VARCHAR)" if value == NO_PARTITION else quote_literal(value)
        for column, value in found.items()
    }
    return replace(source, columns=source.columns | values)


def _suggest(text: str) -> str:
    if "://" in text:
        return " Rows of a database are read with --sql URL --query 'select …'."
    try:
        return suggest_names(Path(text).name, sorted(p.name for p in Path(text).parent.iterdir()))
    except (OSError, ValueError):
        return ""


def name_runs(files: list[str]) -> tuple[str, ...]:
    """Return a name for each file: its stem, after as many folders as tell it from others."""
    paths = [Path(file) for file in files]
    stems = [_strip_suffix(path) for path in paths]
    names = list(stems)
    for depth in range(1, max(len(path.parts) for path in paths)):
        for k in [k for k, name in enumerate(names) if names.count(name) > 1]:
            names[k] = "/".join([*paths[k].parts[:-1][-depth:], stems[k]])
    return tuple(
        file if names.count(name) > 1 else name for file, name in zip(files, names, strict=True)
    )


def _strip_suffix(path: Path) -> str:
    name = path.name[:-3] if path.suffix.lower() == ".gz" else path.name
    known = Path(name).suffix.lower() in FORMATS_BY_SUFFIX
    return Path(name).stem if known else name
