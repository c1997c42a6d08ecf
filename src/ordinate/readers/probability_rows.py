"""Files of predicted probabilities, one column for each level, with gold levels where known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadProbabilities
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, expand_columns, find_column
from ordinate.readers.columns import ProbabilityColumns
from ordinate.readers.duckdb_connection import Connection, connect, read_arrays, read_rows
from ordinate.readers.file_formats import FileReader, FileSource, open_sources
from ordinate.readers.item_query import build_label_sql, resolve_column
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.reliability import refuse_text_cells
from ordinate.scale import Scale
from ordinate.summaries.probabilities import build_probability_array
from ordinate.summaries.tabulation import encode_positions


@dataclass(frozen=True)
class ProbabilityRows:
    """The rows of a file: probabilities in the order of the scale, positions of gold, ids.

    The position of gold is K where there is none.
    """

    name: str
    scale: Scale
    probabilities: NDArray[np.float64]  # [N, K]
    gold: NDArray[Any]  # [N]
    ids: list[Any]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a gold level."""
        return self.gold < len(self.scale)


@dataclass(frozen=True)
class ProbabilityData:
    """A file, the file to fit on (the same where there is no other), and what to say of them."""

    rows: ProbabilityRows
    fit: ProbabilityRows
    notes: tuple[str, ...]


def read_probability_rows(
    path: str, fit: str | None, columns: ProbabilityColumns, scale: Scale | None = None
) -> ProbabilityData:
    """Read a file of probabilities, and another one to fit on, which has to have gold levels."""
    with (
        connect() as connection,
        open_sources(connection, columns) as reader,
    ):
        return _ProbabilityRowReader(connection, reader, columns, path, fit).read(scale)


class _ProbabilityRowReader:
    """One run over both files."""

    def __init__(
        self,
        connection: Connection,
        reader: FileReader,
        columns: ProbabilityColumns,
        path: str,
        fit: str | None,
    ) -> None:
        self.connection, self.columns = connection, columns
        self.notes: list[str] = []
        self.source = _describe_single_file(reader, path)
        self.fit = None if fit is None else _describe_single_file(reader, fit)

    def read(self, declared: Scale | None) -> ProbabilityData:
        """Find the scale and the columns, and read."""
        gold = {
            source.name: self._read_gold(source, needed=needed)
            for source, needed in self._list_files()
        }
        labels = {
            source.name: self._read_strings(source, column)
            for source, _ in self._list_files()
            if (column := gold[source.name]) is not None
        }
        seen = {label for column in labels.values() for label in column}
        scale = LabelSpelling({}).find_scale(declared, seen, self.notes)
        found = []
        for source, _ in self._list_files():
            rows = self._read_probabilities(source, scale)
            title = f"column {gold[source.name]!r} of {source.name}"
            levels = (
                encode_positions(scale, labels[source.name], title)
                if source.name in labels
                else np.full(len(rows), len(scale))
            )
            found.append(
                ProbabilityRows(source.name, scale, rows, levels, self._read_ids(source, len(rows)))
            )
        return ProbabilityData(found[0], found[-1], tuple(self.notes))

    def _list_files(self) -> list[tuple[FileSource, bool]]:
        """Return the files, and whether each has to have gold levels."""
        if self.fit is None:
            return [(self.source, self.columns.gold is not None)]
        return [(self.source, False), (self.fit, True)]

    def _read_gold(self, source: FileSource, *, needed: bool) -> str | None:
        named = self.columns.gold
        if needed:
            return find_column("gold", named, source, self.notes)
        if named is not None:
            return named if named in source.columns else None
        usual = [
            column for column in source.columns if column.lower() in USUAL_COLUMN_NAMES["gold"]
        ]
        return find_column("gold", None, source, self.notes) if len(usual) == 1 else None

    def _read_strings(self, source: FileSource, column: str) -> list[str | None]:
        query = f"SELECT {build_label_sql(source, column)} FROM {source.sql}"
        return [row[0] for row in read_rows(self.connection, query, source.name)]

    def _read_ids(self, source: FileSource, n: int) -> list[Any]:
        named = self.columns.id if source is self.source else None
        return list(range(1, n + 1)) if named is None else self._read_strings(source, named)

    def _read_probabilities(self, source: FileSource, scale: Scale) -> NDArray[np.float64]:
        names = expand_columns(self.columns.probabilities, self.source, scale)
        raw = ", ".join(f"{resolve_column(source, name)} AS p{k}" for k, name in enumerate(names))
        rows = f"SELECT {raw} FROM {source.sql}"
        refuse_text_cells(self.connection, rows, names, source.name)
        selected = [
            f"coalesce(TRY_CAST(p{k} AS DOUBLE), 'nan'::DOUBLE) AS p{k}" for k in range(len(names))
        ]
        query = f"SELECT {', '.join(selected)} FROM ({rows})"
        found = read_arrays(self.connection, query, source.name)
        numbers = np.stack([np.asarray(found[f"p{k}"]) for k in range(len(names))], axis=1)
        try:
            return build_probability_array(
                scale, numbers, names, renormalize=self.columns.renormalize
            )
        except BadProbabilities as problem:
            raise BadProbabilities(f"{source.name}: {problem}") from None


def _describe_single_file(reader: FileReader, path: str) -> FileSource:
    found = reader.describe_files([path])
    if len(found) > 1:
        raise BadInput(f"{path} names {len(found)} files. Take one after the other.")
    return found[0]
