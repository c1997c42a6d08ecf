"""Parquet, CSV, TSV and JSON files as tables of DuckDB: recognised, and never loaded whole."""

import codecs
import csv
import glob
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from ordinate.errors import BadInput, shorten, suggest_names
from ordinate.readers.columns import parse_delimiter
from ordinate.readers.duckdb_connection import (
    LONGEST_LINE,
    Connection,
    quote_identifier,
    quote_literal,
    read_rows,
)

FORMATS_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSION_BY_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BLANK = b" \r\n\t"
HEAD_BYTES = 1 << 16  # bytes looked at before a file is read
DELIMITER_LINES = 5  # of a text file, by which its delimiter is recognised
# A folder named column=value is no data: DuckDB would put its value in that column's place.
PLAIN_FOLDERS = "hive_partitioning=false"
UTF8_ENCODINGS = {"utf-8", "utf-8-sig", "ascii"}


@dataclass(frozen=True)
class FileSource:
    """One file: what people call it, its table in SQL, and SQL for each of its columns."""

    name: str
    sql: str
    columns: dict[str, str]
    numbers: frozenset[str] = field(default_factory=frozenset)  # columns that may hold NaN
    parquet: Path | None = None  # where it lies, if it is a Parquet file


@contextmanager
def open_sources(
    connection: Connection,
    delimiter: str | None,
    encoding: str | None,
    *,
    longest_line: int = LONGEST_LINE,
) -> "Iterator[FileReader]":
    """Give a reader of files; its temporary copies go when everything is read."""
    with tempfile.TemporaryDirectory(prefix="ordinate-") as folder:
        yield FileReader(connection, Path(folder), delimiter, encoding, longest_line=longest_line)


class FileReader:
    """Finds files, recognises them, and says how to read them."""

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        delimiter: str | None,
        encoding: str | None,
        *,
        longest_line: int = LONGEST_LINE,
    ) -> None:
        self.connection, self.folder = connection, folder
        self.delimiter, self.encoding = parse_delimiter(delimiter), encoding
        self.longest_line = longest_line
        self.buffer_bytes = 2 * longest_line  # of a text file that DuckDB holds at a time
        self.copies = 0

    def describe_files(self, paths: list[str]) -> list[FileSource]:
        """Return the files of names, patterns, and '-' for standard input, each described."""
        return [self.describe_file(name, path) for name, path in self.find_distinct_files(paths)]

    def find_distinct_files(self, paths: list[str]) -> list[tuple[str, Path]]:
        """Return the files of names, patterns, and '-' for standard input, each named once."""
        found = [pair for text in paths for pair in self.find_files(text)]
        refuse_duplicate_files(found, "its items would count twice")
        return found

    # --- finding -----------------------------------------------------------------------------

    def find_files(self, text: str) -> list[tuple[str, Path]]:
        """Return the files of a name or a pattern, by what people call them."""
        if text == "-":
            return [("standard input", self._copy_stream(sys.stdin.buffer))]
        try:
            if Path(text).exists():
                return [(text, Path(text))]
            matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - takes any root
        except (OSError, ValueError):
            matches = []
        if not matches:
            raise BadInput(f"There is no file {shorten(text)}.{_suggest_files(text)}")
        return [(match, Path(match)) for match in matches]

    def _new_temporary_path(self) -> Path:
        self.copies += 1
        return self.folder / f"input-{self.copies}"

    def _copy_stream(self, stream: IO[bytes]) -> Path:
        copy = self._new_temporary_path()
        with copy.open("wb") as out:
            shutil.copyfileobj(stream, out)
        return copy

    # --- recognising -------------------------------------------------------------------------

    def describe_file(self, name: str, given: Path) -> FileSource:
        """Recognise and describe a file."""
        try:
            path = self.resolve_plain_file(given)
            with path.open("rb") as file:
                is_empty = not file.read(1)
        except OSError as problem:
            raise BadInput(f"{name} cannot be read: {problem.strerror}.") from None
        if is_empty:
            raise BadInput(f"{name} is empty.")
        compression = detect_compression(name, path)
        file_format = _detect_format(given, path, compression)
        if file_format == "parquet":
            return self._describe_parquet(name, path)
        path, compression = self.convert_to_utf8(name, path, compression)
        return (
            self._describe_json(name, path, compression)
            if file_format == "json"
            else self._describe_delimited(name, path, compression, file_format)
        )

    def resolve_plain_file(self, path: Path) -> Path:
        """Return a path that DuckDB reads as it stands: no pipe, no pattern, no home folder."""
        if path.is_dir():
            raise BadInput(f"{path} is a folder. Name files, or a pattern such as '{path}/*.csv'.")
        if not path.is_file():
            with path.open("rb") as stream:
                return self._copy_stream(stream)
        if not set("*?[") & set(str(path.absolute())):
            return path.absolute()
        link = self._new_temporary_path()
        link.symlink_to(path.absolute())
        return link

    def convert_to_utf8(self, name: str, path: Path, compression: str) -> tuple[Path, str]:
        """Return the file, or a copy in UTF-8 if it is written in another encoding."""
        encoding = self.encoding or _detect_encoding(path, compression)
        try:
            known = codecs.lookup(encoding)
        except LookupError:
            known = None
        if known is None or not known._is_text_encoding:  # noqa: SLF001 - as open() itself asks
            raise BadInput(f"There is no encoding {shorten(encoding)}. Try latin-1 or cp1252.")
        if known.name in UTF8_ENCODINGS:
            return path, compression
        copy = self._new_temporary_path()
        try:
            with (
                open_unpacked(path, compression) as raw,
                io.TextIOWrapper(raw, encoding=known.name, newline="") as text,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                shutil.copyfileobj(text, out)
        except UnicodeError:
            raise BadInput(f"{name} is not in {encoding}. Pass another --encoding.") from None
        return copy, "uncompressed"

    # --- describing --------------------------------------------------------------------------

    def _describe_parquet(self, name: str, path: Path) -> FileSource:
        sql = f"read_parquet({quote_literal(str(path))}, {PLAIN_FOLDERS})"
        rows = read_rows(self.connection, f"DESCRIBE SELECT * FROM {sql}", name)
        numbers = frozenset(row[0] for row in rows if row[1] in {"FLOAT", "DOUBLE"})
        return FileSource(
            name, sql, {row[0]: quote_identifier(row[0]) for row in rows}, numbers, path
        )

    def _describe_json(self, name: str, path: Path, compression: str) -> FileSource:
        """Take every value as a string: a key may come late, and hold numbers and strings."""
        _refuse_open_array(name, path, compression)
        sql = (
            f"read_json_objects({quote_literal(str(path))}, compression='{compression}', "
            f"format='auto', {PLAIN_FOLDERS})"
        )
        keys = (
            "SELECT k, min(i), bool_or(len(ks) > len(list_distinct(ks))) FROM "
            f"(SELECT ks, i, unnest(ks) AS k FROM (SELECT json_keys(json) AS ks, "
            f"row_number() OVER () AS i FROM {sql})) GROUP BY k ORDER BY 2, 1"
        )
        found = read_rows(self.connection, keys, name)
        if any(twice for _, _, twice in found):
            named = ", ".join(shorten(key) for key, _, twice in found[:5] if twice)
            raise BadInput(f"{name} has an object in which one key stands twice ({named}).")
        return FileSource(
            name,
            sql,
            {key: f"(json->>{quote_literal(_format_json_pointer(key))})" for key, _, _ in found},
        )

    def _describe_delimited(
        self, name: str, path: Path, compression: str, file_format: str
    ) -> FileSource:
        usual = "\t" if file_format == "tsv" else None
        columns = _read_header(name, path, compression, self.delimiter or usual)
        names = [column or f"(column {k})" for k, column in enumerate(columns.names, start=1)]
        twice = [column for column in names if names.count(column) > 1]
        if twice:
            raise BadInput(f"{name} has two columns named {shorten(twice[0])}. Rename one.")
        types = ", ".join(f"c{k}: 'VARCHAR'" for k in range(len(names)))
        sql = (
            f"read_csv({quote_literal(str(path))}, auto_detect=false, header=true, nullstr='', "
            f"delim={quote_literal(columns.delimiter)}, quote='\"', escape='\"', "
            f"compression='{compression}', max_line_size={self.longest_line}, "
            f"buffer_size={self.buffer_bytes}, {PLAIN_FOLDERS}, columns={{{types}}}"
        )
        sql = f"{sql}{self._choose_reader(name, path, compression, sql)})"
        return FileSource(name, sql, {column: f"c{k}" for k, column in enumerate(names)})

    def _choose_reader(self, name: str, path: Path, compression: str, sql: str) -> str:
        """Return how DuckDB reads a text file: with readers in parallel, or with one alone.

        In parallel it refuses some texts with line breaks in quotes, and loses a last row that is
        longer than a buffer. One reader alone does neither, but loses a last row whose quote is
        not closed, which a lax reader counts.
        """
        small = compression == "uncompressed" and path.stat().st_size <= self.buffer_bytes
        if small or _rows_are_lines(path, compression, self.longest_line):
            return ""
        alone = ", parallel=false"
        strict, lax = (
            read_rows(self.connection, f"SELECT count(*) FROM {sql}{alone}{more})", name)
            for more in ("", ", strict_mode=false")
        )
        if strict != lax:
            raise BadInput(f"{name} cannot be read: a quote is not closed.")
        return alone


@dataclass(frozen=True)
class _Header:
    names: list[str]
    delimiter: str


def _read_header(name: str, path: Path, compression: str, delimiter: str | None) -> _Header:
    """Return the names in the first line of a text file."""
    try:
        with open_unpacked(path, compression) as raw:
            if b"\0" in raw.read(HEAD_BYTES):
                raise BadInput(f"{name} is a binary file, not CSV, TSV, JSONL or Parquet.")
        if delimiter is None:
            with open_unpacked(path, compression) as raw, _decode_stream(raw) as text:
                delimiter = detect_delimiter([text.readline() for _ in range(DELIMITER_LINES)])
        with open_unpacked(path, compression) as raw, _decode_stream(raw) as text:
            names = next(csv.reader(text, delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise BadInput(
            f"{name} is not UTF-8. Pass its --encoding, such as latin-1 or cp1252."
        ) from None
    except csv.Error as problem:
        raise BadInput(f"The header line of {name} cannot be read: {problem}.") from None
    if not any(names):
        raise BadInput(f"{name} has no header line.")
    return _Header(names, delimiter)


def _rows_are_lines(path: Path, compression: str, longest_line: int) -> bool:
    """Tell whether each row is one line that is not too long: no line break stands in quotes.

    A break is outside of quotes if the quotes before it are even in number.
    """
    quotes = 0
    with open_unpacked(path, compression) as file:
        while chunk := file.read(longest_line // 2):
            data = np.frombuffer(chunk, np.uint8)
            breaks = np.flatnonzero((data == ord("\n")) | (data == ord("\r")))
            if not len(breaks) and len(chunk) == longest_line // 2:
                return False  # a line without end, or nearly so
            marks = np.flatnonzero(data == ord('"'))
            if ((quotes + np.searchsorted(marks, breaks)) % 2).any():
                return False
            quotes += len(marks)
    return quotes % 2 == 0


def _decode_stream(raw: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def detect_delimiter(lines: list[str]) -> str:
    """Return what cuts all first lines into the same number of columns, or the header into most."""

    def count_columns(delimiter: str) -> tuple[int, int]:
        sizes: list[int] = []
        with suppress(csv.Error):  # of a field that is longer than the module takes: a long text
            sizes += (len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        same = len(set(sizes)) == 1 and sizes[0] > 1
        return sizes[0] if same else 0, sizes[0] if sizes else 0

    return max(",;\t|", key=count_columns)  # the first of equals: a comma


def _refuse_open_array(name: str, path: Path, compression: str) -> None:
    """Refuse an array that was cut off after a comma, which DuckDB takes for whole."""
    last = b""
    with open_unpacked(path, compression) as file:
        if file.read(HEAD_BYTES).lstrip(codecs.BOM_UTF8 + BLANK)[:1] != b"[":
            return
        file.seek(0)
        while chunk := file.read(1 << 20):
            last = chunk.rstrip(BLANK)[-1:] or last
    if last != b"]":
        raise BadInput(f"{name} is not whole: its array has no end.")


def _format_json_pointer(key: str) -> str:
    """Return a key as a JSON pointer, which takes any character."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def detect_compression(name: str, path: Path) -> str:
    """Return how DuckDB calls the compression of a file; damaged or other ones are refused."""
    with path.open("rb") as file:
        start = file.read(max(map(len, COMPRESSION_BY_MAGIC)))
    matches = (x for magic, x in COMPRESSION_BY_MAGIC.items() if start.startswith(magic))
    compression = next(matches, "uncompressed")
    if compression == "zstd":
        raise BadInput(f"{name} is packed with zstd: unpack it, or pack it with gzip.")
    if compression == "gzip":
        _check_gzip(name, path)
    return compression


def _check_gzip(name: str, path: Path) -> None:
    """Unpack the file once for its checksums, which DuckDB does not look at."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        raise BadInput(f"{name} cannot be unpacked: its gzip data are damaged.") from None


def _detect_format(given: Path, path: Path, compression: str) -> str:
    suffixes = [suffix.lower() for suffix in given.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in FORMATS_BY_SUFFIX:
        return FORMATS_BY_SUFFIX[suffixes[-1]]
    with open_unpacked(path, compression) as file:
        start = file.read(HEAD_BYTES)
    if start.startswith(b"PAR1"):
        return "parquet"
    return "json" if start.lstrip(codecs.BOM_UTF8 + b" \r\n\t")[:1] in {b"{", b"["} else "csv"


def _detect_encoding(path: Path, compression: str) -> str:
    """Return the encoding that a byte-order mark declares, or UTF-8."""
    with open_unpacked(path, compression) as file:
        start = file.read(2)
    return "utf-16" if start in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8"


def open_unpacked(path: Path, compression: str) -> IO[bytes]:
    """Open a file, unpacked if it is packed."""
    return gzip.open(path) if compression == "gzip" else path.open("rb")  # type: ignore[return-value] # a reader


def refuse_duplicate_files(files: list[tuple[str, Path]], reason: str) -> None:
    """Refuse a file that is named twice, and say why."""
    seen: set[Path] = set()
    for name, path in files:
        if path.resolve() in seen:
            raise BadInput(f"{name} is named twice: {reason}.")
        seen.add(path.resolve())


def _suggest_files(text: str) -> str:
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
