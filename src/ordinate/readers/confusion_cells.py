"""From coded cells to confusion matrices: one for each subgroup, within it one for each group."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import CellSums, check_group_count
from ordinate.summaries.tabulation import MissingPolicy, MissingRows

Array = NDArray[Any]


@dataclass(frozen=True)
class EncodedCells:
    """Cells [U] of items that share everything: subgroup, group, and the levels of all columns.

    A level of K is a missing label. `alone` are items without a group.
    """

    scale: Scale
    by: Array
    group: Array
    alone: Array
    gold: Array
    predicted: Array
    second: Array
    sums: CellSums

    def items(self, where: Array) -> int:
        """Return how many items some cells have."""
        return int(self.sums.items[where].sum())

    @property
    def lacks_second_rating(self) -> Array:
        """Which cells lack the labels of the second rater."""
        return self.second == len(self.scale)

    def without(self, where: Array) -> "EncodedCells":
        """Return cells of which some have no gold label, and so do not count."""
        return replace(self, gold=np.where(where, len(self.scale), self.gold))

    def tables(self, rows: MissingRows, missing: MissingPolicy) -> "ConfusionBatch":
        """Return a table for each pair of subgroup and group that occurs."""
        groups = int(self.group.max(initial=0)) + 1
        pairs, slot = np.unique(self.by * groups + self.group, return_inverse=True)
        check_group_count(len(pairs), len(self.scale))
        sums = _sum_cells(self, slot, self.predicted, len(pairs))
        batch = ConfusionMatrix.from_sums(self.scale, sums, rows, missing)
        return ConfusionBatch(batch, pairs // groups, pairs % groups)

    def human(self, rows: MissingRows, missing: MissingPolicy, *, grouped: bool) -> ConfusionMatrix:
        """Return the matrix of the second rater, on the items that the other matrices have.

        With groups it is a batch, too.
        """
        unanswered = self.predicted == len(self.scale)
        left = self.without(unanswered) if missing == "drop" else self
        sums = _sum_cells(left, self.group, self.second, int(self.group.max(initial=0)) + 1)
        batch = ConfusionMatrix.from_sums(self.scale, sums, rows, missing)
        return _drop_empty_matrices(batch) if grouped else batch.pooled


@dataclass(frozen=True)
class ConfusionBatch:
    """A batch of tables, and the subgroup and group of each."""

    batch: ConfusionMatrix
    by: Array
    group: Array

    def summarize_groups(self) -> ConfusionMatrix:
        """Return a table for each group, whatever the subgroup."""
        return _drop_empty_matrices(
            self.batch.compute_sums(self.group, int(self.group.max(initial=0)) + 1)
        )

    def summarize_subgroup(self, index: int, *, grouped: bool) -> ConfusionMatrix:
        """Return the table of a subgroup, or the batch of its groups."""
        here = self.by == index
        part = self.batch[here]
        if not grouped:
            return part[0]
        return part.compute_sums(self.group[here], int(self.group.max(initial=0)) + 1)


def _sum_cells(coded: EncodedCells, slot: Array, answers: Array, slots: int) -> CellSums:
    size = len(coded.scale) + 1
    cells = (slot.reshape(-1) * size + coded.gold) * size + answers
    shape = (slots, size, size)
    found = coded.sums.map(
        lambda part: np.bincount(cells, part, minlength=slots * size * size).reshape(shape)
    )
    return found._replace(items=found.items.astype(np.int64))


def _drop_empty_matrices(batch: ConfusionMatrix) -> ConfusionMatrix:
    """Return the tables that have items; the first also counts what others dropped."""
    there = batch.items.any(axis=(-2, -1))
    kept = batch[there]
    dropped = np.array(kept.dropped)
    dropped[:1] += np.sum(batch.dropped) - dropped.sum()
    return replace(kept, dropped=dropped)
