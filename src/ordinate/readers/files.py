"""Files as tables of DuckDB: found, recognised and described, never loaded whole."""

import codecs
import csv
import glob
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, brief, suggest
from ordinate.readers.duckdb_engine import Connection, engine

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
HEAD = 1 << 16  # bytes looked at before a file is read
LINES = 5  # of a text file, by which its delimiter is recognised
LONGEST_LINE = 16_000_000  # bytes: a row may hold a book
BUFFER = 2 * LONGEST_LINE  # bytes of a text file that DuckDB holds at a time
PARALLEL, SEQUENTIAL = "parallel=true", "parallel=false"
# A folder named column=value is no data: DuckDB would put its value in that column's place.
PLAIN_FOLDERS = "hive_partitioning=false"
UTF8 = {"utf-8", "utf-8-sig", "ascii"}
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """One file: what people call it, its table in SQL, and SQL for each of its columns."""

    name: str
    sql: str
    columns: dict[str, str]
    numbers: frozenset[str] = field(default_factory=frozenset)  # columns that may hold NaN
    parquet: Path | None = None  # where it lies, if it is a Parquet file


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL, which ends at a NUL."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


@contextmanager
def open_sources(
    connection: Connection, delimiter: str | None, encoding: str | None
) -> "Iterator[Reader]":
    """Give a reader of files; its temporary copies go when everything is read."""
    with tempfile.TemporaryDirectory(prefix="ordinate-") as folder:
        yield Reader(connection, Path(folder), delimiter, encoding)


class Reader:
    """Finds files, recognises them, and says how to read them."""

    def __init__(
        self, connection: Connection, folder: Path, delimiter: str | None, encoding: str | None
    ) -> None:
        self.connection, self.folder = connection, folder
        self.delimiter, self.encoding = delimiter, encoding
        self.made = 0

    def sources(self, paths: list[str]) -> list[Source]:
        """Return the files of names, patterns, and '-' for standard input, each described."""
        return [self.source(name, path) for name, path in self.files(paths)]

    def files(self, paths: list[str]) -> list[tuple[str, Path]]:
        """Return the files of names, patterns, and '-' for standard input, each named once."""
        found = [pair for text in paths for pair in self.found(text)]
        seen: set[Path] = set()
        for name, path in found:
            if path.resolve() in seen:
                raise BadInput(f"{name} is named twice: its items would count twice.")
            seen.add(path.resolve())
        return found

    # --- finding -----------------------------------------------------------------------------

    def found(self, text: str) -> list[tuple[str, Path]]:
        """Return the files of a name or a pattern, by what people call them."""
        if text == "-":
            return [("standard input", self._copied(sys.stdin.buffer))]
        try:
            if Path(text).exists():
                return [(text, Path(text))]
            matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - takes any root
        except (OSError, ValueError):
            matches = []
        if not matches:
            raise BadInput(f"There is no file {brief(text)}.{_nearby(text)}")
        return [(match, Path(match)) for match in matches]

    def _temporary(self) -> Path:
        self.made += 1
        return self.folder / f"input-{self.made}"

    def _copied(self, stream: IO[bytes]) -> Path:
        copy = self._temporary()
        with copy.open("wb") as out:
            shutil.copyfileobj(stream, out)
        return copy

    # --- recognising -------------------------------------------------------------------------

    def source(self, name: str, given: Path) -> Source:
        """Recognise and describe a file."""
        try:
            path = self.plain_file(given)
            with path.open("rb") as file:
                start = file.read(HEAD)
        except OSError as problem:
            raise BadInput(f"{name} cannot be read: {problem.strerror}.") from None
        if not start:
            raise BadInput(f"{name} is empty.")
        packing = next(
            (kind for magic, kind in PACKED.items() if start.startswith(magic)), "uncompressed"
        )
        if packing == "zstd":
            raise BadInput(f"{name} is packed with zstd: unpack it, or pack it with gzip.")
        if packing == "gzip":
            check_gzip(name, path)
        kind = _kind(given, path, packing)
        if kind == "parquet":
            return self._parquet(name, path)
        path, packing = self.as_utf8(name, path, packing)
        return (
            self._json(name, path, packing)
            if kind == "json"
            else self._delimited(name, path, packing, kind)
        )

    def plain_file(self, path: Path) -> Path:
        """Return a path that DuckDB reads as it stands: no pipe, no pattern, no home folder."""
        if path.is_dir():
            raise BadInput(f"{path} is a folder. Name files, or a pattern such as '{path}/*.csv'.")
        if not path.is_file():
            with path.open("rb") as stream:
                return self._copied(stream)
        if not set("*?[") & set(str(path.absolute())):
            return path.absolute()
        link = self._temporary()
        link.symlink_to(path.absolute())
        return link

    def as_utf8(self, name: str, path: Path, packing: str) -> tuple[Path, str]:
        """Return the file, or a copy in UTF-8 if it is written in another encoding."""
        encoding = self.encoding or _marked(path, packing)
        try:
            known = codecs.lookup(encoding)
        except LookupError:
            known = None
        if known is None or not known._is_text_encoding:  # noqa: SLF001 - as open() itself asks
            raise BadInput(f"There is no encoding {brief(encoding)}. Try latin-1 or cp1252.")
        if known.name in UTF8:
            return path, packing
        copy = self._temporary()
        try:
            with (
                opened(path, packing) as raw,
                io.TextIOWrapper(raw, encoding=known.name, newline="") as text,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                shutil.copyfileobj(text, out)
        except UnicodeError:
            raise BadInput(f"{name} is not in {encoding}. Pass another --encoding.") from None
        return copy, "uncompressed"

    # --- describing --------------------------------------------------------------------------

    def _parquet(self, name: str, path: Path) -> Source:
        sql = f"read_parquet({literal(str(path))}, {PLAIN_FOLDERS})"
        rows = read(self.connection, f"DESCRIBE SELECT * FROM {sql}", name)
        numbers = frozenset(row[0] for row in rows if row[1] in {"FLOAT", "DOUBLE"})
        return Source(name, sql, {row[0]: quoted(row[0]) for row in rows}, numbers, path)

    def _json(self, name: str, path: Path, packing: str) -> Source:
        """Take every value as text: a key may come late, and hold numbers and texts."""
        sql = (
            f"read_json_objects({literal(str(path))}, compression='{packing}', format='auto', "
            f"{PLAIN_FOLDERS})"
        )
        keys = (
            "SELECT k, min(i), bool_or(len(ks) > len(list_distinct(ks))) FROM "
            f"(SELECT ks, i, unnest(ks) AS k FROM (SELECT json_keys(json) AS ks, "
            f"row_number() OVER () AS i FROM {sql})) GROUP BY k ORDER BY 2, 1"
        )
        found = read(self.connection, keys, name)
        if any(twice for _, _, twice in found):
            named = ", ".join(brief(key) for key, _, twice in found[:5] if twice)
            raise BadInput(f"{name} has an object in which one key stands twice ({named}).")
        return Source(name, sql, {key: f"(json->>{literal(_pointer(key))})" for key, _, _ in found})

    def _delimited(self, name: str, path: Path, packing: str, kind: str) -> Source:
        usual = "\t" if kind == "tsv" else None
        columns = _header(name, path, packing, self.delimiter or usual)
        names = [column or f"(column {k})" for k, column in enumerate(columns.names, start=1)]
        twice = [column for column in names if names.count(column) > 1]
        if twice:
            raise BadInput(f"{name} has two columns named {brief(twice[0])}. Rename one.")
        types = ", ".join(f"c{k}: 'VARCHAR'" for k in range(len(names)))
        sql = (
            f"read_csv({literal(str(path))}, auto_detect=false, header=true, nullstr='', "
            f"delim={literal(columns.delimiter)}, quote='\"', escape='\"', "
            f"compression='{packing}', max_line_size={LONGEST_LINE}, "
            f"buffer_size={BUFFER}, {_reading(path, packing)}, {PLAIN_FOLDERS}, "
            f"columns={{{types}}})"
        )
        return Source(name, sql, {column: f"c{k}" for k, column in enumerate(names)})


@dataclass(frozen=True)
class _Header:
    names: list[str]
    delimiter: str


def _header(name: str, path: Path, packing: str, delimiter: str | None) -> _Header:
    """Return the names in the first line of a text file."""
    try:
        with opened(path, packing) as raw:
            if b"\0" in raw.read(HEAD):
                raise BadInput(f"{name} is a binary file, not CSV, TSV, JSONL or Parquet.")
        if delimiter is None:
            with opened(path, packing) as raw, _text(raw) as text:
                delimiter = delimiter_of([text.readline() for _ in range(LINES)])
        with opened(path, packing) as raw, _text(raw) as text:
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


def _reading(path: Path, packing: str) -> str:
    """Return how DuckDB reads a text file: in parallel, unless that could drop its last row.

    Readers in parallel lose a last row that is longer than a buffer, and say nothing; one reader
    alone refuses it. A packed file does not tell how its last row looks.
    """
    if packing == "uncompressed" and (path.stat().st_size <= BUFFER or _ends_in_short_row(path)):
        return PARALLEL
    return SEQUENTIAL


def _ends_in_short_row(path: Path) -> bool:
    """Tell whether a row begins within the last bytes of a file.

    A line break ends a row if the quotes after it are even in number: the file ends outside them.
    """
    with path.open("rb") as file:
        file.seek(-LONGEST_LINE, io.SEEK_END)
        tail = np.frombuffer(file.read().rstrip(b"\r\n"), np.uint8)
    breaks = np.flatnonzero((tail == ord("\n")) | (tail == ord("\r")))
    quotes = np.flatnonzero(tail == ord('"'))
    after = len(quotes) - np.searchsorted(quotes, breaks)
    return bool((after % 2 == 0).any())


def _text(raw: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def delimiter_of(lines: list[str]) -> str:
    """Return what cuts all first lines into the same number of columns, or the header into most."""

    def columns(letter: str) -> tuple[int, int]:
        sizes: list[int] = []
        with suppress(csv.Error):  # of a field that is longer than the module takes: a long text
            sizes += (len(row) for row in csv.reader(lines, delimiter=letter) if row)
        same = len(set(sizes)) == 1 and sizes[0] > 1
        return sizes[0] if same else 0, sizes[0] if sizes else 0

    return max(",;\t|", key=columns)  # the first of equals: a comma


def _pointer(key: str) -> str:
    """Return a key as a JSON pointer, which takes any letter."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def check_gzip(name: str, path: Path) -> None:
    """Unpack the file once for its checksums, which DuckDB does not look at."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        raise BadInput(f"{name} cannot be unpacked: its gzip data are damaged.") from None


def _kind(given: Path, path: Path, packing: str) -> str:
    suffixes = [suffix.lower() for suffix in given.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    with opened(path, packing) as file:
        start = file.read(HEAD)
    if start.startswith(b"PAR1"):
        return "parquet"
    return "json" if start.lstrip(codecs.BOM_UTF8 + b" \r\n\t")[:1] in {b"{", b"["} else "csv"


def _marked(path: Path, packing: str) -> str:
    """Return the encoding that a byte-order mark declares, or UTF-8."""
    with opened(path, packing) as file:
        start = file.read(2)
    return "utf-16" if start in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8"


def opened(path: Path, packing: str) -> IO[bytes]:
    """Open a file, unpacked if it is packed."""
    return gzip.open(path) if packing == "gzip" else path.open("rb")  # type: ignore[return-value] # a reader


def _nearby(text: str) -> str:
    try:
        return suggest(Path(text).name, sorted(p.name for p in Path(text).parent.iterdir()))
    except (OSError, ValueError):
        return ""


def read(connection: Connection, query: str, name: str) -> list[Any]:
    """Return the rows of a query on a file."""
    return _run(lambda sql: connection.execute(sql).fetchall(), query, name)


def read_arrays(connection: Connection, query: str, name: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a query on a file: numbers, of which none is missing."""
    return _run(lambda sql: connection.execute(sql).fetchnumpy(), query, name)


def _run(execute: Callable[[str], T], query: str, name: str) -> T:
    """Run a query on a file, and say in plain words what is wrong with the file."""
    try:
        return execute(query)
    except engine().Error as problem:
        # Readers in parallel refuse some texts with line breaks in quotes, which one alone takes.
        if PARALLEL in query:
            return _run(execute, query.replace(PARALLEL, SEQUENTIAL), name)
        message = str(problem).replace(str(Path(name).absolute()), name)
        raise BadInput(f"{name} cannot be read: {_reason(message)}") from None


ADVICE = ("possible", "*", "line", "file =", "try ", "delimiter", "this can happen")


def _reason(message: str) -> str:
    """Return the telling part of a message of DuckDB, without its advice on its own options."""
    if "state machine" in message:
        return "a quote is not closed, or its line ends are mixed."
    if "Maximum line size" in message:
        at = re.search(r"Line: (\d+)", message)
        where = f"the row in line {at[1]}" if at else "a row"
        return (
            f"{where} has more than {LONGEST_LINE:,} bytes. Close its quotes if one is open, or "
            "leave long texts out."
        )
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    kept = [lines[0].split(": ", 1)[-1]]
    for line in lines[1:3]:
        if line.lower().startswith(ADVICE):
            break
        kept.append(line[:80])
    text = re.split(r"\s+(?:Try|LINE \d+:)\s", " ".join(kept))[0][:300].rstrip(". ")
    hint = " Pass --encoding if it is not UTF-8." if "utf" in message.lower() else ""
    return f"{text}.{hint}"
