"""What many systems predict for the same items, counted where the items are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, shorten
from ordinate.readers.cells import CountedCells
from ordinate.readers.items import CLUSTER, GOLD, ItemSource
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.tabulation import WORST_HINT, MissingPolicy


def name_sides(gold: str, systems: Sequence[str]) -> dict[str, str]:
    """Return the columns of labels by role: gold, and each system as s1, s2, …."""
    twice = [name for name in systems if (gold, *systems).count(name) > 1]
    if twice:
        raise BadInput(f"The column {shorten(twice[0])} is named twice. Name each system once.")
    return {GOLD: gold} | {f"s{k}": name for k, name in enumerate(systems, start=1)}


class PanelReader:
    """One run over items that systems predict side by side; `sides` are gold and the systems."""

    def __init__(
        self,
        items: ItemSource,
        sides: Mapping[str, str],
        others: Mapping[str, str],
        spelling: LabelSpelling,
    ) -> None:
        self.sides = list(sides)
        self.systems = tuple(sides.values())[1:]
        self.cells = CountedCells(items, {**sides, **others}, self.sides, spelling, "compare")

    def read(self, scale: Scale | None, missing: MissingPolicy) -> Panel:
        """Find the scale, and apply the policy for missing labels."""
        cells = self.cells
        scale, levels = cells.encode(scale)
        rows = np.stack([levels[side] for side in self.sides], axis=1).astype(np.int16)
        refuse_silent_systems(self.systems, rows == len(scale), cells.sums.items, missing)
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


def refuse_silent_systems(
    systems: Sequence[str],
    lacking: NDArray[Any],
    items: NDArray[Any],
    missing: MissingPolicy,
    explain: Mapping[str, str] | None = None,
) -> None:
    """Refuse a system that predicts nothing; `explain` says why, where that is known."""
    for k, name in enumerate(systems, start=1):
        if missing != "worst" and bool(lacking[:, k].all()):
            raise MissingLabels(
                f"All {int(items.sum()):,} predictions of {name} are missing"
                f"{(explain or {}).get(name, '')}. Leave this system out, or count its items as "
                f"wrong with {WORST_HINT}."
            )
