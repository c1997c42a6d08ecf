"""Stored features: Parquet, sparse NPZ or CSV, with the names and ids that lie beside them."""

import csv
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ordinate.errors import BadInput, BadStore, BadValues, shorten
from ordinate.readers.file_formats import open_sources
from ordinate.tuning.experiment.dataset import USUAL_NAMES, check_ids
from ordinate.tuning.experiment.numeric_matrix import read_column_names, read_matrix
from ordinate.tuning.experiment.safe_files import PICKLE_SUFFIXES, resolve_inside

NAMES_FILE, IDS_FILE = "feature_names.csv", "ids.csv"  # beside the numbers
HEADER_TITLES = ("feature", "features", "feature_name", "feature_names", "name", "names", "0")
SPARSE_FORMATS = ("csr", "csc", "coo")
READ_ERRORS = (  # what NumPy, SciPy and zipfile raise for a file that is no matrix
    *(OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, OverflowError),
    *(MemoryError, BadZipFile, struct.error, zlib.error),
)
UNNAMED_COLUMN = "(column 1)"  # what the readers call a first column without a name
SHOWN = 3  # names in an error


@dataclass(frozen=True)
class StoredFeatures:
    """Features in the order of their file; `named` says that feature_names.csv confirms them."""

    path: Path
    matrix: Any  # a csr_matrix, or [N, D] numbers
    names: tuple[str, ...]
    ids: tuple[str, ...] | None
    named: bool

    def __len__(self) -> int:
        return int(self.matrix.shape[0])


def read_stored_features(folder: Path, id_column: str | None = None) -> StoredFeatures:
    """Read the features in a folder; `id_column` is what the data set calls its ids."""
    path = find_feature_file(folder)
    read = FORMAT_READERS[_find_format(path) or ""]
    return read(path, _read_names_file(path), id_column)


def find_feature_file(folder: Path) -> Path:
    """Return the one file of features in a folder; a pickle there is refused unopened."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path in files:
        if set(map(str.lower, path.suffixes)) & set(PICKLE_SUFFIXES):
            raise BadStore(
                f"{path} is a pickle, which can run code when it is opened, so it is not. Save the "
                "features as Parquet, CSV or with scipy.sparse.save_npz, and remove the file."
            )
    found = [path for path in files if _find_format(path) is not None]
    if len(found) != 1:
        there = ", ".join(path.name for path in found or files) or "nothing"
        what = "several feature files" if found else "no feature file"
        raise BadInput(
            f"{folder} holds {what} ({there}), and one is needed: *.parquet, *.npz "
            f"(scipy.sparse.save_npz, with {NAMES_FILE}) or *.csv (with {NAMES_FILE})."
        )
    resolve_inside(folder, found[0].name)  # a link may leave it
    return found[0]


def _find_format(path: Path) -> str | None:
    name = path.name.lower().removesuffix(".gz")
    if name in {NAMES_FILE, IDS_FILE}:
        return None
    return next((form for form in FORMAT_READERS if name.endswith(form)), None)


# --- forms ----------------------------------------------------------------------------------------


def _read_parquet(
    path: Path, listed: "FeatureNames | None", id_column: str | None
) -> StoredFeatures:
    """Read a Parquet file, whose columns are the features."""
    return _read_dense(path, read_column_names(str(path)), listed, id_column)


def _read_csv(path: Path, listed: "FeatureNames | None", id_column: str | None) -> StoredFeatures:
    """Read a CSV file; its first line has to be a header, and not the first item."""
    cells = _read_first_cells(path)
    if len(set(cells)) < len(cells) and _are_all_numbers(cells):
        raise BadInput(
            f"{path} has no header line: its first line is "
            f"{format_names(cells)}.{_explain_missing_header()}"
        )
    return _read_dense(path, read_column_names(str(path)), listed, id_column)


def _read_first_cells(path: Path) -> list[str]:
    """Return the cells of the first line of a text file, whatever they are; none if unreadable."""
    with open_sources() as reader, suppress(BadInput):
        reader.describe_file(str(path), path)
    return [cell for text in reader.texts.values() for cell in text.first_rows[0]]


def _read_dense(
    path: Path, header: tuple[str, ...], listed: "FeatureNames | None", id_column: str | None
) -> StoredFeatures:
    of_features = set() if listed is None else listed.candidates
    usual = [name for name in header if name.strip().lower() in USUAL_NAMES["id"]]
    candidates = ([id_column] if id_column in header else []) + usual
    by = next((name for name in candidates if name not in of_features), None)
    names = tuple(name for name in header if name != by)
    if not names:
        raise BadInput(f"{path} has no features: its only column is {shorten(header[0])}.")
    if header[0] == UNNAMED_COLUMN:
        raise BadInput(
            f"The first column of {path} has no name: it seems to number the rows. Write the "
            "features without it (index=False), or name it 'id' if it holds ids."
        )
    if listed is not None:
        listed.compare(path, names)
    read = read_matrix(str(path), names, by)
    ids = _read_ids_file(path, len(read.matrix))
    if read.ids is not None:
        ids = check_ids(path, read.ids)
    return StoredFeatures(path, read.matrix, names, ids, listed is not None)


def _read_sparse(
    path: Path, listed: "FeatureNames | None", id_column: str | None
) -> StoredFeatures:
    """Read a sparse matrix, which stays one."""
    del id_column  # ids.csv has them, under its own header
    matrix = _load_npz(path)
    if listed is None:
        raise BadInput(
            f"{path} has {matrix.shape[1]:,} columns without names. Put {NAMES_FILE} beside it, "
            "with the header 'feature' and a name in each line."
        )
    names = listed.of(path, matrix.shape[1])
    odd = np.flatnonzero(~np.isfinite(matrix.data))
    if len(odd):
        row = int(np.searchsorted(matrix.indptr, odd[0], side="right"))
        raise BadValues(
            f"{path}: the number in row {row} of column {shorten(names[matrix.indices[odd[0]]])} "
            f"is {matrix.data[odd[0]]}, which is no finite number."
        )
    return StoredFeatures(path, matrix, names, _read_ids_file(path, matrix.shape[0]), named=True)


def _load_npz(path: Path) -> Any:
    """Return a matrix of save_npz as csr: never unpickled, never with indices outside it."""
    from scipy import sparse

    try:
        with path.open("rb") as file:
            with np.load(file, allow_pickle=False) as found:
                form = str(found["format"].astype(str))
            if form not in SPARSE_FORMATS:
                raise BadInput(f"{path} is a sparse matrix as {form!r}, not csr, csc or coo.")
            file.seek(0)
            matrix = sparse.load_npz(file)  # which never unpickles either
        if form != "coo":  # whose indices are looked at by SciPy itself
            matrix.check_format(full_check=True)
        if matrix.ndim != 2 or matrix.dtype.kind not in "buif":
            raise ValueError(f"it holds {matrix.dtype} in {matrix.ndim} dimensions")
        if not matrix.shape[1]:
            raise BadInput(f"{path} has no columns.")
        single = matrix.dtype in (np.float16, np.float32)
        matrix = sparse.csr_matrix(matrix, dtype=np.float32 if single else np.float64)
    except READ_ERRORS as problem:
        raise _build_matrix_error(path, problem) from None
    matrix.sum_duplicates()
    return matrix


def _build_matrix_error(path: Path, problem: Exception) -> BadInput:
    if isinstance(problem, BadInput):
        return problem
    return BadInput(
        f"{path} is no sparse matrix of scipy.sparse.save_npz, or it is damaged: "
        f"{shorten(str(problem))}. Make it again."
    )


FORMAT_READERS: dict[str, Callable[[Path, "FeatureNames | None", str | None], StoredFeatures]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".npz": _read_sparse,
    ".csv": _read_csv,
}


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureNames:
    """The names in feature_names.csv, which may or may not have a header line."""

    path: Path
    lines: tuple[str, ...]

    @property
    def candidates(self) -> set[str]:
        """Whatever may be a name."""
        return set(self.lines)

    @property
    def has_header(self) -> bool:
        """Whether the first line looks like a header; the count of columns decides."""
        return bool(self.lines) and self.lines[0].strip().lower() in HEADER_TITLES

    def of(self, path: Path, count: int) -> tuple[str, ...]:
        """Return the names of a matrix with so many columns."""
        headed = self.has_header and (
            len(self.lines) == count + 1 or self.lines[0] == HEADER_TITLES[0]
        )
        names = self.lines[1:] if headed else self.lines
        if len(names) == count:
            return self._distinct(names)
        known = len(self.lines) - self.has_header
        off = abs(known - count) == 1
        why = " One off: a header line was probably lost, or taken for a name." if off else ""
        raise BadInput(f"{path} has {count:,} columns, and {self.path} has {known:,} names.{why}")

    def compare(self, path: Path, header: Sequence[str]) -> None:
        """Refuse a header that is not what the names say."""
        if _are_all_numbers(header) and not _are_all_numbers(self.lines[1:]):
            raise BadInput(
                f"The first line of {path} is {format_names(header)}, and {self.path} says "
                f"{format_names(self.lines[self.has_header :])}.{_explain_missing_header()}"
            )
        if self.lines == tuple(header):  # whatever the first of them is called
            return
        names = self.of(path, len(header))
        for k, (first, second) in enumerate(zip(header, names, strict=True), start=1):
            if first != second:
                raise BadInput(
                    f"Column {k} of {path} is named {shorten(first)}, and {shorten(second)} in "
                    f"{self.path}. Both have to name the same features in the same order."
                    + (_explain_missing_header() if _are_all_numbers(header) else "")
                )

    def _distinct(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise BadInput(f"{self.path} has the name {shorten(twice)} twice.")
        return names


def _read_names_file(path: Path) -> FeatureNames | None:
    """Return the names in feature_names.csv: one in each line, or all in one line."""
    file = path.parent / NAMES_FILE
    if not file.exists() and not file.is_symlink():
        return None
    resolve_inside(path.parent, NAMES_FILE)
    lines = _read_records(file)
    if len(lines) == 1 and len(lines[0]) > 1:
        return FeatureNames(file, tuple(lines[0]))
    widths = {len(line) for line in lines}
    if widths == {2} and [line[0] for line in lines[1:]] == [*map(str, range(len(lines) - 1))]:
        return FeatureNames(
            file, tuple(line[1] for line in lines)
        )  # numbered, as pandas writes an index
    if widths != {1}:
        raise BadInput(f"{file} has to hold one name in each line, after the header 'feature'.")
    return FeatureNames(file, tuple(line[0] for line in lines))


def _read_records(path: Path) -> list[list[str]]:
    """Return the records of a small CSV file, such as a list of names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            return [row for row in csv.reader(text) if row]
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8.") from None
    except (OSError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read: {problem}.") from None


def _explain_missing_header() -> str:
    return (
        " A first line of numbers: the file probably has no header line, and its first item was "
        "taken for one. Write the features again, with their names in the first line."
    )


def _are_all_numbers(cells: Iterable[str]) -> bool:
    try:
        return bool([float(cell) for cell in cells])
    except ValueError:
        return False


def format_names(names: Sequence[str]) -> str:
    """Return the first names, and a sign that there are more."""
    return ", ".join(shorten(name) for name in names[:SHOWN]) + (
        ", …" if len(names) > SHOWN else ""
    )


# --- ids ------------------------------------------------------------------------------------------


def _read_ids_file(path: Path, n: int) -> tuple[str, ...] | None:
    file = path.parent / IDS_FILE
    if not file.exists() and not file.is_symlink():
        return None
    resolve_inside(path.parent, IDS_FILE)
    header, *lines = [line[0] for line in _read_records(file)] or [""]
    if header.strip().lower() not in USUAL_NAMES["id"]:
        raise BadInput(f"{file} has to have the header 'id', and begins with {shorten(header)}.")
    if len(lines) != n:
        raise BadInput(f"{path} has {n:,} rows, and {file} has {len(lines):,} ids.")
    return check_ids(file, lines)
