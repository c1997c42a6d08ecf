"""Many systems on the same items as columns of one file, or of several with the same columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, shorten
from ordinate.readers.column_names import find_column
from ordinate.readers.columns import SystemColumns
from ordinate.readers.duckdb_connection import Connection, read_arrays, read_rows
from ordinate.readers.file_formats import FileSource
from ordinate.readers.item_query import (
    ROW_NUMBER_SQL,
    WEIGHT_SQL,
    FileItems,
    ItemQuery,
    build_cluster_number_sql,
    build_label_sql,
    build_sums_sql,
    read_clusters,
    resolve_column,
    store_cluster_counts,
)
from ordinate.readers.label_cells import LabelSpelling, RowLocator, build_label_code_sql
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.counting import CellSums
from ordinate.summaries.tabulation import WORST_HINT, MissingPolicy, make_missing_groups_error

Array = NDArray[Any]
# Planning 500 columns at once takes DuckDB 10 s.
COLUMNS_PER_QUERY = 64  # columns whose labels one query lists


class PanelCells(NamedTuple):
    """Items that share all labels: gold and each system as codes into their labels."""

    codes: list[Array]
    sums: CellSums
    number: Array  # of the group
    alone: Array  # whether there is no group


class PanelSource(ABC):
    """Files of systems, on their way to a panel: columns of one file, or runs."""

    systems: tuple[str, ...]
    labels: list[list[str]]  # as the files spell them: of gold, and of each system
    places: RowLocator
    match_counts: dict[str, dict[str, int]] | None = None

    def __init__(self, connection: Connection, source: FileSource, columns: SystemColumns) -> None:
        self.connection, self.columns = connection, columns
        self.notes: list[str] = []
        self.spelling = LabelSpelling(columns.renamed)
        self.gold = find_column("gold", columns.gold, source, self.notes)

    @abstractmethod
    def refuse_off_scale_labels(self, scale: Scale) -> None:
        """Say where a label stands that is not on the scale."""

    @abstractmethod
    def read_cells(self) -> PanelCells:
        """Return the items."""

    @abstractmethod
    def find_missing_labels(self, column: int, lacking: Array) -> list[str]:
        """Return the first places where a column lacks labels; 0 is gold."""

    @abstractmethod
    def list_groups(self) -> list[str]:
        """Return the groups by their numbers."""

    def build_panel(self, scale: Scale | None, missing: MissingPolicy) -> Panel:
        """Find the scale, and count."""
        seen = {label for labels in self.labels for label in labels}
        scale = self.spelling.find_scale(scale, seen, self.notes)
        self.refuse_off_scale_labels(scale)
        cells = self.read_cells()
        levels = (
            self.spelling.encode_labels(scale, labels).astype(np.int16) for labels in self.labels
        )
        rows = np.stack([of[codes] for of, codes in zip(levels, cells.codes, strict=True)], axis=1)
        self._refuse_missing_predictions(rows == len(scale), cells.sums.items, missing)
        self._refuse_missing_groups(cells, missing)
        rows[cells.alone, 0] = len(scale)  # which leaves the item out
        groups = None
        if self.columns.groups is not None:
            groups = Groups(self.list_groups(), np.where(cells.alone, 0, cells.number))
        return Panel.from_rows(
            scale,
            self.systems,
            rows,
            cells.sums,
            groups,
            missing,
            lambda column: self.find_missing_labels(column, rows[:, column] == len(scale)),
        )

    def _refuse_missing_predictions(
        self, lacking: Array, items: Array, missing: MissingPolicy
    ) -> None:
        for k, name in enumerate(self.systems, start=1):
            if missing != "worst" and bool(lacking[:, k].all()):
                raise MissingLabels(
                    f"All {int(items.sum()):,} predictions of {name} are missing"
                    f"{self.explain_missing_predictions(name)}. Leave this system out, or count "
                    "its items as wrong "
                    f"with {WORST_HINT}."
                )

    def explain_missing_predictions(self, name: str) -> str:
        """Return what is known of a system without predictions."""
        del name
        return ""

    def _refuse_missing_groups(self, cells: PanelCells, missing: MissingPolicy) -> None:
        if cells.alone.any() and missing != "drop":
            items = cells.sums.items
            count, n = int(items[cells.alone].sum()), int(items.sum())
            raise make_missing_groups_error(
                count, n, f"column {self.columns.groups!r}", self.places.find_empty_cells("cluster")
            )

    def build_weight_condition(self) -> str:
        """Return SQL that tells whether an item counts: one of weight 0 does not exist."""
        return "true" if self.columns.weights is None else f"{WEIGHT_SQL} > 0"

    def select_shared_columns(self, source: FileSource) -> list[str]:
        """Return SQL for the columns that all files of systems have: gold, weights and groups."""
        selected = [f"{build_label_sql(source, self.gold)} AS gold", "true AS in_gold"]
        if self.columns.weights is not None:
            selected.append(f"{resolve_column(source, self.columns.weights)} AS weight")
        if self.columns.groups is not None:
            selected.append(f"{build_label_sql(source, self.columns.groups)} AS cluster")
        return selected


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
        self.items = [self._build_query(source) for source in sources]
        items = FileItems(connection, self.items)
        self.places = RowLocator(items, self.spelling, columns.weights)
        if columns.weights is not None:
            self.places.check_weights()
        self.labels = self._list_labels()

    def _build_query(self, source: FileSource) -> ItemQuery:
        predictions = [
            f"{build_label_sql(source, name)} AS s{k}" for k, name in enumerate(self.titles)
        ]
        selected = [
            *self.select_shared_columns(source),
            *predictions,
            *((ROW_NUMBER_SQL,) if self.columns.groups else ()),
        ]
        return ItemQuery(f"SELECT {', '.join(selected)} FROM {source.sql}", source.name, ())

    def _list_labels(self) -> list[list[str]]:
        """Return the labels that each column has, in a pass for each block of columns."""
        found: list[set[str]] = [set() for _ in self.titles]
        rows = 0
        for part in self.items:
            for first in range(0, len(found), COLUMNS_PER_QUERY):
                count, *labels = self._read_distinct_labels(
                    part, range(len(found))[first : first + COLUMNS_PER_QUERY]
                )
                rows += count
                for known, more in zip(found[first:], labels, strict=False):
                    known.update(more or ())
        if not rows:
            self.places.refuse_no_items("compare")
        return [sorted(known) for known in found]

    def _read_distinct_labels(self, part: ItemQuery, columns: Iterable[int]) -> list[Any]:
        """Return the number of items, and the labels of a block of columns."""
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
        selected = [
            f"{build_label_code_sql(f's{k}', labels)} AS c{k}"
            for k, labels in enumerate(self.labels)
        ]
        return (
            f"SELECT {', '.join(selected)}, {build_sums_sql(self.columns.weights)}{further} "
            f"FROM ({part.sql}) WHERE {self.build_weight_condition()} GROUP BY ALL"
        )

    def read_cells(self) -> PanelCells:
        """Count equal items inside the engine, where labels are codes already."""
        if self.columns.groups is None:
            queries = [(self._build_count_sql(part), part.name) for part in self.items]
        else:
            store_cluster_counts(self.connection, self.items, self._build_count_sql)
            queries = [(build_cluster_number_sql("SELECT * FROM counted"), self.items[0].name)]
        parts = [self._read_arrays(*query) for query in queries]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        codes = [arrays[f"c{k}"] for k in range(len(self.labels))]
        sums = CellSums(*(arrays[name] for name in ("items", "weight", "square", "fractions")))
        return PanelCells(codes, sums, arrays["number"], arrays["alone"])

    def _read_arrays(self, query: str, name: str) -> dict[str, Array]:
        codes = [f"c{k}" for k in range(len(self.labels))]
        group = "number, alone" if self.columns.groups else "0 AS number, false AS alone"
        sums = (
            "items, CAST(weight AS DOUBLE) AS weight, CAST(square AS DOUBLE) AS square, fractions"
        )
        selected = ", ".join([*codes, sums, group])
        return read_arrays(self.connection, f"SELECT {selected} FROM ({query})", name)

    def find_missing_labels(self, column: int, lacking: Array) -> list[str]:
        """Return the first rows without a label."""
        del lacking  # equal items are counted together: the file knows their rows
        return self.places.find_missing_labels(f"s{column}")

    def list_groups(self) -> list[str]:
        """Return the groups in the order in which they appear."""
        return read_clusters(self.connection, "SELECT * FROM counted", self.items[0].name)
