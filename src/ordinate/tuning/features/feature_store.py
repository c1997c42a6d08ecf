"""Features on disk: batches while they are made, and whole sets, sparse or dense."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.readers.duckdb_connection import connect, copy_to_file
from ordinate.render.atomic_files import replace_file
from ordinate.tuning.experiment.feature_files import IDS_FILE, NAMES_FILE, READ_ERRORS

SPARSE_FILE, DENSE_FILE = "features.npz", "features.parquet"
BATCH_PATTERN = re.compile(r"(\d+)-(\d+)\.np[yz]")


@dataclass(frozen=True)
class BatchStore:
    """The batches of one data set that are finished, each in a file named by its rows."""

    folder: Path
    n: int

    def missing(self, size: int) -> Iterator[tuple[int, int]]:
        """Give the rows that are still to be made, at most so many at once.

        A batch that was damaged, as by a full disk, is removed and made again.
        """
        for span in self._find_batches():
            if not _is_complete(path := self._file(*span), span[1] - span[0]):
                path.unlink()
        found, start = dict(self._find_batches()), 0
        starts = [*sorted(found), self.n]
        while start < self.n:
            if start in found:
                start = found[start]
                continue
            stop = min(start + size, next(k for k in starts if k > start))
            yield start, stop
            start = stop

    def save(self, start: int, stop: int, rows: Any) -> None:
        """Write a batch, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        dense = isinstance(rows, np.ndarray)
        with replace_file(self.folder / f"{start}-{stop}.np{'y' if dense else 'z'}") as path:
            if dense:
                np.save(path, rows)
            else:
                _save_sparse(path, rows, compressed=False)

    def join(self) -> Any:
        """Return all rows: an array, or a CSR matrix that is filled batch by batch."""
        files = [self._file(start, stop) for start, stop in self._iterate_spans()]
        if files[0].suffix == ".npy":
            return np.concatenate([np.load(path, allow_pickle=False) for path in files])
        return _stack_sparse_files(files)

    def _find_batches(self) -> list[tuple[int, int]]:
        names = (path.name for path in self.folder.glob("*-*.np?"))
        spans = (BATCH_PATTERN.fullmatch(name) for name in names)
        return sorted((int(span[1]), int(span[2])) for span in spans if span)

    def _iterate_spans(self) -> Iterator[tuple[int, int]]:
        found, start = dict(self._find_batches()), 0
        while start < self.n:
            yield start, found[start]
            start = found[start]

    def _file(self, start: int, stop: int) -> Path:
        dense = self.folder / f"{start}-{stop}.npy"
        return dense if dense.exists() else dense.with_suffix(".npz")


def _is_complete(path: Path, n: int) -> bool:
    """Tell whether a batch can be read and has so many rows."""
    try:
        if path.suffix == ".npy":
            return len(np.load(path, mmap_mode="r", allow_pickle=False)) == n
        with path.open("rb") as file:
            return bool(_load_sparse(file).shape[0] == n)
    except READ_ERRORS:
        return False


def _stack_sparse_files(files: list[Path]) -> Any:
    """Return the batches below each other: never two copies of all of them in memory."""
    from scipy.sparse import csr_matrix

    lengths = [_read_row_lengths(path) for path in files]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    first = _load_sparse(files[0])
    index_type = np.int32 if max(indptr[-1], first.shape[1]) <= np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(indptr[-1], first.dtype), np.empty(indptr[-1], index_type)
    at = 0
    for path in files:
        batch = _load_sparse(path)
        data[at : at + batch.nnz], indices[at : at + batch.nnz] = batch.data, batch.indices
        at += batch.nnz
    shape = (len(indptr) - 1, first.shape[1])
    return csr_matrix((data, indices, indptr.astype(index_type)), shape=shape)


def _read_row_lengths(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as arrays:
        return np.diff(arrays["indptr"])


def _load_sparse(file: Path | BinaryIO) -> Any:
    from scipy.sparse import load_npz

    return load_npz(file)


def _save_sparse(path: Path, matrix: Any, *, compressed: bool) -> None:
    from scipy.sparse import save_npz

    save_npz(path, matrix, compressed=compressed)


# --- whole sets -----------------------------------------------------------------------------------


def write_features(
    folder: Path, matrix: Any, names: Sequence[str], ids: Sequence[str] | None
) -> None:
    """Write features into a folder: sparse ones as NPZ with names and ids, others as Parquet."""
    if isinstance(matrix, np.ndarray):
        _write_parquet(folder / DENSE_FILE, matrix, names, ids)
        return
    _save_sparse(folder / SPARSE_FILE, matrix, compressed=True)
    _write_column(folder / NAMES_FILE, "feature", names)
    if ids is not None:
        _write_column(folder / IDS_FILE, "id", ids)


def _write_column(path: Path, header: str, cells: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # all in quotes: a lone carriage return would get none from Python 3.11
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([cell] for cell in (header, *cells))


def _write_parquet(
    path: Path, matrix: Any, names: Sequence[str], ids: Sequence[str] | None
) -> None:
    columns = {} if ids is None else {"id": np.array(ids, object)}
    taken = {name.lower() for name in columns}
    for k, name in enumerate(names):
        if name.lower() in taken:
            raise BadInput(
                f"Two columns of {path.parent.name} are called {shorten(name)}, for case does not "
                "count in names of columns. Rename one."
            )
        taken.add(name.lower())
        columns[name] = np.ascontiguousarray(matrix[:, k])
    with connect() as connection:
        connection.register("features", columns)
        copy_to_file(connection, "FROM features", path)


def check_rows(rows: Any, n: int, names: Sequence[str]) -> None:
    """Refuse a batch that has not one row of finite numbers for each item."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if rows.shape != (n, len(names)) or not np.isfinite(values).all():
        raise BadStore(
            f"The extractor gave {rows.shape[0]:,} rows of {rows.shape[1]:,} features for {n:,} "
            f"items and {len(names):,} names, or numbers that are not finite."
        )


def count_zero_rows(matrix: Any) -> int:
    """Count the rows that are nothing but zeros."""
    if isinstance(matrix, np.ndarray):
        return int((~matrix.any(axis=1)).sum())
    return int((np.diff(matrix.indptr) == 0).sum())


def count_nonzero(matrix: Any) -> int:
    """Count the numbers that are not zero."""
    return int(np.count_nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.nnz)


def stack_batches(parts: Sequence[Any]) -> Any:
    """Return batches below each other."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")
