"""Systems as columns of one file, or of several files with the same columns."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.readers.clusters import build_cluster_number_sql, read_clusters, store_cluster_counts
from ordinate.readers.duckdb_connection import Connection, read_arrays, read_rows
from ordinate.readers.file_formats import FileSource
from ordinate.readers.label_spelling import build_label_code_sql
from ordinate.readers.panel_source import Array, PanelCells, PanelSource, SystemColumns
from ordinate.readers.query import ROW_NUMBER_SQL, ItemQuery, build_label_sql, build_sums_sql
from ordinate.readers.row_locations import RowLocator
from ordinate.scale import Scale
from ordinate.summaries.counting import CellSums

COLUMNS_PER_QUERY = (
    64  # columns whose labels one query lists: planning 500 at once takes DuckDB 10 s
)


class WidePanelSource(PanelSource):
    """Systems side by side; their columns are called s1, s2, … here, after gold as s0."""

    def __init__(
        self, connection: Connection, sources: list[FileSource], columns: SystemColumns
    ) -> None:
        super().__init__(connection, sources[0], columns)
        if columns.id is not None or columns.predicted is not None:
            raise BadInput(
                "--id and --predicted are for runs in files of their own, and --systems names "
                "columns of one file. Pass one or the other."
            )
        self.systems = columns.systems
        twice = [name for name in self.systems if (self.gold, *self.systems).count(name) > 1]
        if twice:
            raise BadInput(f"The column {shorten(twice[0])} is named twice. Name each system once.")
        self.titles = [self.gold, *self.systems]
        self.items = [self._items(source) for source in sources]
        self.places = RowLocator(connection, self.items, self.spelling, columns.weights)
        self.labels = self._labels()

    def _items(self, source: FileSource) -> ItemQuery:
        answers = [f"{build_label_sql(source, name)} AS s{k}" for k, name in enumerate(self.titles)]
        chosen = [
            *self.chosen(source),
            *answers,
            *((ROW_NUMBER_SQL,) if self.columns.groups else ()),
        ]
        return ItemQuery(f"SELECT {', '.join(chosen)} FROM {source.sql}", source.name, ())

    def _labels(self) -> list[list[str]]:
        """Return the labels that each column has, in a pass for each block of columns."""
        found: list[set[str]] = [set() for _ in self.titles]
        rows = 0
        for part in self.items:
            if self.columns.weights is not None:
                self.places.check_weights(part)
            for first in range(0, len(found), COLUMNS_PER_QUERY):
                count, *labels = self._distinct(
                    part, range(len(found))[first : first + COLUMNS_PER_QUERY]
                )
                rows += count
                for known, more in zip(found[first:], labels, strict=False):
                    known.update(more or ())
        if not rows:
            self.places.refuse_no_items("compare")
        return [sorted(known) for known in found]

    def _distinct(self, part: ItemQuery, columns: Iterable[int]) -> list[Any]:
        """Return the number of items, and the labels of some columns."""
        lists = [f"list(DISTINCT s{k}) FILTER (WHERE s{k} IS NOT NULL)" for k in columns]
        condition = self.build_weight_condition()
        query = f"SELECT count(*), {', '.join(lists)} FROM ({part.sql}) WHERE {condition}"
        return list(read_rows(self.connection, query, part.name)[0])

    def refuse_off_scale_labels(self, scale: Scale) -> None:
        """Say in which row a label stands that is not on the scale."""
        for k, (labels, title) in enumerate(zip(self.labels, self.titles, strict=True)):
            strange = self.spelling.find_off_scale_labels(scale, labels)
            self.places.refuse_off_scale_labels(scale, f"s{k}", strange, title)

    def _build_count_sql(self, part: ItemQuery, further: str = "") -> str:
        chosen = [
            f"{build_label_code_sql(f's{k}', labels)} AS c{k}"
            for k, labels in enumerate(self.labels)
        ]
        return (
            f"SELECT {', '.join(chosen)}, {build_sums_sql(self.columns.weights)}{further} "
            f"FROM ({part.sql}) WHERE {self.build_weight_condition()} GROUP BY ALL"
        )

    def cells(self) -> PanelCells:
        """Count equal items inside the engine, where labels are codes already."""
        if self.columns.groups is None:
            queries = [(self._build_count_sql(part), part.name) for part in self.items]
        else:
            store_cluster_counts(self.connection, self.items, self._build_count_sql)
            queries = [(build_cluster_number_sql("SELECT * FROM counted"), self.items[0].name)]
        parts = [self._arrays(*query) for query in queries]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        codes = [arrays[f"c{k}"] for k in range(len(self.labels))]
        sums = CellSums(*(arrays[name] for name in ("items", "weight", "square", "fractions")))
        return PanelCells(codes, sums, arrays["number"], arrays["alone"])

    def _arrays(self, query: str, name: str) -> dict[str, Array]:
        codes = [f"c{k}" for k in range(len(self.labels))]
        group = "number, alone" if self.columns.groups else "0 AS number, false AS alone"
        sums = (
            "items, CAST(weight AS DOUBLE) AS weight, CAST(square AS DOUBLE) AS square, fractions"
        )
        chosen = ", ".join([*codes, sums, group])
        return read_arrays(self.connection, f"SELECT {chosen} FROM ({query})", name)

    def where(self, column: int, lacking: Array) -> list[str]:
        """Return the first rows without a label."""
        del lacking  # equal items are counted together: the file knows their rows
        return self.places.missing(f"s{column}")

    def groups(self) -> list[str]:
        """Return the groups in the order in which they appear."""
        return read_clusters(self.connection, "SELECT * FROM counted", self.items[0].name)
