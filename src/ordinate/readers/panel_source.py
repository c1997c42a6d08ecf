"""What the ways of reading many systems share, from labels to a panel."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import MissingLabels
from ordinate.readers.duckdb_connection import Connection
from ordinate.readers.file_formats import FileSource
from ordinate.readers.label_spelling import LabelSpelling
from ordinate.readers.query import WEIGHT_SQL, build_label_sql, find_column, resolve_column
from ordinate.readers.row_locations import RowLocator
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.counting import CellSums
from ordinate.summaries.tabulation import WORST_HINT, MissingPolicy, make_missing_groups_error

Array = NDArray[Any]


@dataclass(frozen=True)
class SystemColumns:
    """Which columns to read, and how: `systems` of one file, or `predicted` of each run."""

    gold: str | None = None
    systems: tuple[str, ...] = ()
    predicted: str | None = None
    weights: str | None = None
    groups: str | None = None
    id: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    renamed: dict[str, str | None] = field(default_factory=dict)


class PanelCells(NamedTuple):
    """Items that share all labels: gold and each system as codes into their labels."""

    codes: list[Array]
    sums: CellSums
    number: Array  # of the group
    alone: Array  # whether there is no group


class PanelSource(ABC):
    """A way of reading systems, from files to a panel."""

    systems: tuple[str, ...]
    labels: list[list[str]]  # as the files spell them: of gold, and of each system
    places: RowLocator
    joined: dict[str, dict[str, int]] | None = None

    def __init__(self, connection: Connection, source: FileSource, columns: SystemColumns) -> None:
        self.connection, self.columns = connection, columns
        self.notes: list[str] = []
        self.spelling = LabelSpelling(columns.renamed)
        self.gold = find_column("gold", columns.gold, source, self.notes)

    @abstractmethod
    def refuse_off_scale_labels(self, scale: Scale) -> None:
        """Say where a label stands that is not on the scale."""

    @abstractmethod
    def cells(self) -> PanelCells:
        """Return the items."""

    @abstractmethod
    def where(self, column: int, lacking: Array) -> list[str]:
        """Return the first places where a column lacks labels; 0 is gold."""

    @abstractmethod
    def groups(self) -> list[str]:
        """Return the groups by their numbers."""

    def panel(self, scale: Scale | None, missing: MissingPolicy) -> Panel:
        """Find the scale, and count."""
        seen = {label for labels in self.labels for label in labels}
        scale = self.spelling.scale(scale, seen, self.notes)
        self.refuse_off_scale_labels(scale)
        cells = self.cells()
        levels = (self.spelling.levels(scale, labels).astype(np.int16) for labels in self.labels)
        rows = np.stack([of[codes] for of, codes in zip(levels, cells.codes, strict=True)], axis=1)
        self._refuse_missing_predictions(rows == len(scale), cells.sums.items, missing)
        self._refuse_missing_groups(cells, missing)
        rows[cells.alone, 0] = len(scale)  # which leaves the item out
        groups = None
        if self.columns.groups is not None:
            groups = Groups(self.groups(), np.where(cells.alone, 0, cells.number))
        return Panel.from_rows(
            scale,
            self.systems,
            rows,
            cells.sums,
            groups,
            missing,
            lambda column: self.where(column, rows[:, column] == len(scale)),
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
                count, n, f"column {self.columns.groups!r}", self.places.empty("cluster")
            )

    def build_weight_condition(self) -> str:
        """Return SQL that tells whether an item counts: one of weight 0 does not exist."""
        return "true" if self.columns.weights is None else f"{WEIGHT_SQL} > 0"

    def chosen(self, source: FileSource) -> list[str]:
        """Return SQL for the columns that both ways read: gold, weights and groups."""
        chosen = [f"{build_label_sql(source, self.gold)} AS gold", "true AS in_gold"]
        if self.columns.weights is not None:
            chosen.append(f"{resolve_column(source, self.columns.weights)} AS weight")
        if self.columns.groups is not None:
            chosen.append(f"{build_label_sql(source, self.columns.groups)} AS cluster")
        return chosen
