"""Files as tables of DuckDB: found, recognised and named, never loaded whole."""

import codecs
import csv
import glob
import gzip
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ordinate.data.engine import Connection, engine
from ordinate.errors import BadInput, suggest

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
UTF8 = {"utf-8", "utf-8-sig", "ascii"}


@dataclass(frozen=True)
class Source:
    """One file: what people call it, how DuckDB reads it, and which columns it has."""

    name: str
    sql: str
    columns: tuple[str, ...]
    types: dict[str, str] = field(default_factory=dict)  # of columns that are no texts


def quoted(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def open_sources(
    connection: Connection,
    paths: list[str],
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Iterator[list[Source]]:
    """Find the files of names, globs and '-' for standard input; temporary copies go at the end."""
    with tempfile.TemporaryDirectory(prefix="ordinate-") as folder:
        reader = _Reader(connection, Path(folder), delimiter, encoding)
        yield [reader.source(name, path) for name, path in _found(paths, Path(folder))]


def _found(paths: list[str], folder: Path) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for path in paths:
        if path == "-":
            copy = folder / "standard-input"
            with copy.open("wb") as out:
                shutil.copyfileobj(sys.stdin.buffer, out)
            found.append(("standard input", copy))
        elif Path(path).exists():
            found.append((path, Path(path)))
        else:
            matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - takes '~' and roots as they are
            if not matches:
                raise BadInput(f"There is no file {path!r}.{_nearby(path)}")
            found += [(match, Path(match)) for match in matches]
    return found


def _nearby(path: str) -> str:
    folder = Path(path).parent
    return (
        suggest(Path(path).name, sorted(p.name for p in folder.iterdir()))
        if folder.is_dir()
        else ""
    )


class _Reader:
    """Recognises files and says how to read them."""

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        delimiter: str | None,
        encoding: str | None,
    ) -> None:
        self.connection, self.folder = connection, folder
        self.delimiter, self.encoding = delimiter, encoding
        self.made = 0

    def source(self, name: str, path: Path) -> Source:
        """Return the table of a file."""
        try:
            start = _start(path)
        except OSError as problem:
            raise BadInput(f"{name} cannot be read: {problem.strerror}.") from None
        if not start:
            raise BadInput(f"{name} is empty.")
        packing = next((kind for magic, kind in PACKED.items() if start.startswith(magic)), "none")
        kind = _kind(path, start, packing)
        path = self._without_wildcards(path)
        if kind == "parquet":
            return self._described(name, f"read_parquet({literal(str(path))})")
        if packing == "zstd":
            raise BadInput(f"{name} is packed with zstd: unpack it, or pack it with gzip.")
        path, packing = self._as_utf8(name, path, packing, start)
        if kind == "json":
            sql = f"read_json({literal(str(path))}, compression='{packing}', format='auto')"
            return self._described(name, sql)
        return self._delimited(name, path, packing, kind)

    def _without_wildcards(self, path: Path) -> Path:
        """DuckDB takes * ? [ in a name for a pattern, so such a file gets another name."""
        if not set("*?[") & set(str(path)):
            return path
        link = self._temporary()
        link.symlink_to(path.resolve())
        return link

    def _temporary(self) -> Path:
        self.made += 1
        return self.folder / f"input-{self.made}"

    def _as_utf8(self, name: str, path: Path, packing: str, start: bytes) -> tuple[Path, str]:
        """Return the file, or a copy in UTF-8 if it is written in another encoding."""
        encoding = self.encoding
        if encoding is None and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        try:
            known = codecs.lookup(encoding or "utf-8").name
        except LookupError:
            raise BadInput(
                f"{encoding!r} is not an encoding. Try utf-8, latin-1 or cp1252."
            ) from None
        if known in UTF8:
            return path, packing
        copy = self._temporary()
        try:
            with _opened(path, packing) as raw, copy.open("w", encoding="utf-8", newline="") as out:
                shutil.copyfileobj(io.TextIOWrapper(raw, encoding=known, newline=""), out)
        except UnicodeError:
            raise BadInput(
                f"{name} is not written in {encoding}. Pass another --encoding."
            ) from None
        return copy, "none"

    def _delimited(self, name: str, path: Path, packing: str, kind: str) -> Source:
        head = _head(name, path, packing)
        delimiter = self.delimiter or ("\t" if kind == "tsv" else _delimiter(head))
        columns = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        if not any(columns):
            raise BadInput(f"{name} has no header line.")
        if len(set(columns)) < len(columns):
            twice = next(c for c in columns if columns.count(c) > 1)
            raise BadInput(f"{name} has two columns named {twice!r}. Rename one.")
        types = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in columns)
        sql = (
            f"read_csv({literal(str(path))}, auto_detect=false, header=true, nullstr='', "
            f"delim={literal(delimiter)}, quote='\"', escape='\"', compression='{packing}', "
            f"columns={{{types}}})"
        )
        return Source(name, sql, tuple(columns))

    def _described(self, name: str, sql: str) -> Source:
        """Ask DuckDB for the columns and their types."""
        rows = read(self.connection, f"DESCRIBE SELECT * FROM {sql}", name)  # noqa: S608 - quoted
        return Source(name, sql, tuple(row[0] for row in rows), {row[0]: row[1] for row in rows})


def read(connection: Connection, query: str, name: str) -> list[Any]:
    """Run a query on a file, and say in plain words what is wrong with the file."""
    try:
        return connection.execute(query).fetchall()
    except engine().Error as problem:
        raise BadInput(f"{name} cannot be read: {_reason(str(problem))}") from None


def _reason(message: str) -> str:
    """Return the telling lines of a message of DuckDB, without its advice on its own options."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    kept = []
    for line in lines:
        if line.lower().startswith(
            ("possible", "possible fixes", "*", "line:", "file =", "delimiter")
        ):
            break
        kept.append(line)
    text = " ".join(kept[:3]).split(": ", 1)[-1]
    if "utf-8" in message.lower() or "unicode" in message.lower():
        text += " Pass --encoding if the file is not UTF-8."
    return text if text.endswith(".") else text + "."


def _start(path: Path) -> bytes:
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Name files, or a pattern such as '{path}/*.csv'.")
    with path.open("rb") as file:
        return file.read(HEAD)


def _kind(path: Path, start: bytes, packing: str) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in {".gz", ".zst"}]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    if start.startswith(b"PAR1"):
        return "parquet"
    if packing == "gzip":
        with gzip.open(path) as file:
            start = file.read(HEAD)
    return "json" if start.lstrip(codecs.BOM_UTF8 + b" \r\n\t")[:1] in {b"{", b"["} else "csv"


def _opened(path: Path, packing: str) -> IO[bytes]:
    return gzip.open(path) if packing == "gzip" else path.open("rb")  # type: ignore[return-value]


def _head(name: str, path: Path, packing: str) -> str:
    """Return the first lines of a text file; a binary one is refused."""
    try:
        with _opened(path, packing) as file:
            start = file.read(HEAD)
    except (OSError, EOFError):
        raise BadInput(f"{name} cannot be unpacked: the gzip data are damaged.") from None
    if b"\0" in start:
        raise BadInput(f"{name} is a binary file, not CSV, TSV, JSONL or Parquet.")
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(start)
    except UnicodeDecodeError:
        raise BadInput(
            f"{name} is not UTF-8. Pass its --encoding, such as latin-1 or cp1252."
        ) from None


def _delimiter(head: str) -> str:
    """Return what separates the columns of the header line; a comma unless another is commoner."""
    line = head.lstrip("\r\n").splitlines()[0] if head.strip() else ""
    return max(",;\t|", key=lambda letter: (line.count(letter), letter == ","))
