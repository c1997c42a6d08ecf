"""Which columns of a file hold numbers, and these as one matrix: a few queries, whatever width."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.data.engine import Connection, connect
from ordinate.data.query import column_of, label_of
from ordinate.data.sources import Source, open_sources, read, read_arrays
from ordinate.errors import BadInput, BadValues, brief

MOST = 20_000_000  # cells that are taken into memory
BLOCK = 256  # columns that one query looks at


@dataclass(frozen=True)
class Numeric:
    """Columns of numbers [N, d], and what is known of the others.

    `texts` are the columns that hold no numbers; `labels` a column that was asked for as texts.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    texts: tuple[str, ...]
    labels: NDArray[Any] | None
    path: str


def read_numeric(
    path: str,
    names: Sequence[str] | None = None,
    *,
    label: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Numeric:
    """Return the named columns, or all that hold numbers; each cell of them is a finite number.

    A column is one of texts where less than half of its cells are numbers. In others a cell that
    is none is an error, with its row.
    """
    with connect() as connection, open_sources(connection, delimiter, encoding) as reader:
        sources = reader.sources([path])
        if len(sources) != 1:
            raise BadInput(f"{brief(path)} stands for {len(sources)} files: name one of them.")
        return _Reading(connection, sources[0]).all(names, label)


class _Reading:
    """One file that is read."""

    def __init__(self, connection: Connection, source: Source) -> None:
        self.connection, self.source = connection, source

    def all(self, names: Sequence[str] | None, label: str | None) -> Numeric:
        source = self.source
        wanted = list(names) if names is not None else [c for c in source.columns if c != label]
        n = int(self._read(f"SELECT count(*) FROM {source.sql}")[0][0])
        if n * len(wanted) > MOST:
            raise BadInput(
                f"{source.name} has {n:,} rows of {len(wanted):,} columns: too many to hold in "
                f"memory (at most {MOST:,} cells)."
            )
        found = {name: self._kind(name, *counts) for name, *counts in self._counts(wanted)}
        if names is not None and (texts := [name for name in wanted if not found[name]]):
            raise BadInput(
                f"The column {brief(texts[0])} of {source.name} holds texts, and numbers are "
                "needed. Leave it out, or turn it into numbers first."
            )
        kept = [name for name in wanted if found[name]]
        texts = [name for name in wanted if not found[name]]
        labels = None if label is None else self._labels(label)
        return Numeric(tuple(kept), self._matrix(kept, n), tuple(texts), labels, source.name)

    def _read(self, query: str) -> list[Any]:
        return read(self.connection, query, self.source.name)

    def _counts(self, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
        """Yield for each column how many cells are numbers, and how many are something else."""
        for start in range(0, len(names), BLOCK):
            part = names[start : start + BLOCK]
            asked = []
            for name in part:
                cell = f"nullif(CAST({column_of(self.source, name)} AS VARCHAR), '')"
                number = f"TRY_CAST({cell} AS DOUBLE) IS NOT NULL"
                asked.append(f"count(*) FILTER ({number})")
                asked.append(f"count(*) FILTER ({cell} IS NOT NULL AND NOT {number})")
            counts = self._read(f"SELECT {', '.join(asked)} FROM {self.source.sql}")[0]
            for k, name in enumerate(part):
                yield name, counts[2 * k], counts[2 * k + 1]

    def _kind(self, name: str, numbers: int, others: int) -> bool:
        """Tell whether a column holds numbers; one that nearly does is an error."""
        if others and numbers >= others:
            number = f"TRY_CAST({self._text(name)} AS DOUBLE)"
            raise self._strange(name, f"{self._text(name)} IS NOT NULL AND {number} IS NULL")
        return not others

    def _matrix(self, names: Sequence[str], n: int) -> NDArray[np.float64]:
        matrix = np.empty((n, len(names)))
        for start in range(0, len(names), BLOCK):
            part = names[start : start + BLOCK]
            chosen = [
                f"coalesce(TRY_CAST({self._text(name)} AS DOUBLE), 'nan'::DOUBLE) AS x{k}"
                for k, name in enumerate(part)
            ]
            query = f"SELECT {', '.join(chosen)} FROM {self.source.sql}"
            found = read_arrays(self.connection, query, self.source.name)
            for k, name in enumerate(part):
                matrix[:, start + k] = found[f"x{k}"]
                if not np.isfinite(matrix[:, start + k]).all():
                    number = f"TRY_CAST({self._text(name)} AS DOUBLE)"
                    raise self._strange(name, f"{number} IS NULL OR NOT isfinite({number})")
        return matrix

    def _text(self, name: str) -> str:
        return f"nullif(CAST({column_of(self.source, name)} AS VARCHAR), '')"

    def _strange(self, name: str, where: str) -> BadValues:
        """Return the error for the first cell of a column for which something holds."""
        rows = f"SELECT *, row_number() OVER () AS ordinate_row FROM {self.source.sql}"
        query = f"SELECT ordinate_row, {self._text(name)} FROM ({rows}) WHERE {where}"
        row, cell = self._read(f"{query} ORDER BY 1 LIMIT 1")[0]
        what = "is empty" if cell is None else f"is {brief(cell)}, which is no finite number"
        return BadValues(
            f"{self.source.name}: the cell in row {row} of column {brief(name)} {what}. Nothing is "
            "filled in: mend the row, or leave out the row or the column."
        )

    def _labels(self, name: str) -> NDArray[Any]:
        found = self._read(f"SELECT {label_of(self.source, name)} FROM {self.source.sql}")
        empty = [row for row, (label,) in enumerate(found, start=1) if label is None]
        if empty:
            raise BadValues(
                f"{self.source.name}: the cell in row {empty[0]} of column {brief(name)} is empty, "
                "and each row belongs to a group. Fill it in."
            )
        return np.array([*(label for (label,) in found), None], object)[:-1]
