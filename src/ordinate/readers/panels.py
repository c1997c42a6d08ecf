"""What many systems predict for the same items, counted where the items are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, shorten, word_advice
from ordinate.readers.cells import CountedCells
from ordinate.readers.columns import ROLES
from ordinate.readers.items import CLUSTER, GOLD, ItemSource
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.tabulation import MissingPolicy


@dataclass(frozen=True)
class PanelData:
    """The panel of files, and what a report says of where it came from.

    `match_counts` says of each run how many items matched, were missing, or are unknown to gold.
    """

    panel: Panel
    gold: str
    files: tuple[str, ...] = ()
    match_counts: dict[str, dict[str, int]] | None = None
    notes: tuple[str, ...] = ()


def name_sides(gold: str, systems: Sequence[str]) -> dict[str, str]:
    """Return the columns of labels by role: gold, and each system as s1, s2, …."""
    twice = [name for name in systems if (gold, *systems).count(name) > 1]
    if twice:
        raise BadInput(f"The column {shorten(twice[0])} is named twice. Name each system once.")
    return {GOLD: gold} | {f"s{k}": name for k, name in enumerate(systems, start=1)}


class PanelReader:
    """One run over items that systems predict side by side.

    `sides` are the columns of gold and of the systems, which are called like them unless `systems`
    names them.
    """

    def __init__(
        self,
        items: ItemSource,
        sides: Mapping[str, str],
        others: Mapping[str, str],
        spelling: LabelSpelling,
        systems: Sequence[str] = (),
    ) -> None:
        self.sides = list(sides)
        self.systems = tuple(systems or tuple(sides.values())[1:])
        self.cells = CountedCells(items, {**sides, **others}, self.sides, spelling, "compare")

    def read(self, scale: Scale | None, missing: MissingPolicy) -> Panel:
        """Find the scale, and apply the policy for missing labels."""
        cells = self.cells
        scale, levels = cells.encode(scale)
        rows = np.stack([levels[side] for side in self.sides], axis=1).astype(np.int16)
        self._refuse_silent_systems(rows == len(scale), missing)
        cells.refuse_missing_clusters(missing)
        rows[cells.alone, 0] = len(scale)  # which leaves the item out
        groups = None
        if CLUSTER in cells.titles:
            values, codes = cells.clusters
            groups = Groups(values, np.where(cells.alone, 0, codes))
        return Panel.from_rows(
            scale,
            self.systems,
            rows,
            cells.sums,
            groups,
            missing,
            lambda k: cells.find_missing_labels(self.sides[k]),
        )

    def _refuse_silent_systems(self, lacking: NDArray[Any], missing: MissingPolicy) -> None:
        for k, name in enumerate(self.systems, start=1):
            if missing != "worst" and bool(lacking[:, k].all()):
                raise MissingLabels(
                    f"All {int(self.cells.sums.items.sum()):,} predictions of {name} are missing. "
                    + word_advice(
                        "Leave this system out, or count its items as wrong with {missing}.",
                        missing="worst",
                    )
                )


def count_table_systems(
    table: LazyTable,
    names: Mapping[str, str],
    systems: Mapping[str, str],
    scale: Any = None,
    missing: MissingPolicy = "error",
    renamed: Mapping[str, str | None] | None = None,
) -> PanelData:
    """Count a table where it is; `names` are those of its columns, by argument."""
    refuse_unnamed_columns(names, GOLD)
    sides = name_sides(names[GOLD], list(systems.values()))
    others = {ROLES[x]: name for x, name in names.items() if x in {"weights", "groups"}}
    scale, notes = table.find_scale(scale, sides.values())
    items = table.open_items({**sides, **others})
    reading = PanelReader(items, sides, others, LabelSpelling(renamed))
    panel = replace(reading.read(scale, missing), systems=tuple(systems))
    return PanelData(panel, names[GOLD], notes=(*notes, *reading.cells.notes))
