"""Confusion matrices of items, counted where they are: in files, frames and databases."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.cells import CountedCells, number_subgroups
from ordinate.readers.columns import ROLES
from ordinate.readers.items import CLUSTER, GOLD, PREDICTED, SECOND, SUBGROUP, ItemSource
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import CellSums, check_group_count
from ordinate.summaries.tabulation import (
    DROP_HINT,
    MissingPolicy,
    MissingRows,
    make_missing_labels_error,
)

Array = NDArray[Any]
SIDES = (GOLD, PREDICTED, SECOND)  # columns of labels


@dataclass(frozen=True)
class ConfusionData:
    """The confusion matrices of items, and what a report says of where they came from.

    With groups, `groups` has a matrix for each, `group_values` says which they are, and `by` has
    for each subgroup a batch of the matrices of its groups. `second_rater` and `second_rater_by`
    are those of the second rater's labels, on the same items; with groups, a batch of them.
    """

    matrix: ConfusionMatrix
    by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    gold: str = GOLD
    predicted: str = PREDICTED
    files: tuple[str, ...] = ()
    match_counts: dict[str, int] | None = None
    notes: tuple[str, ...] = ()
    groups: ConfusionMatrix | None = None
    second_rater: ConfusionMatrix | None = None
    second_rater_by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    group_values: tuple[Any, ...] = ()


def count_table(
    table: LazyTable,
    names: Mapping[str, str],
    scale: Any = None,
    missing: MissingPolicy = "error",
    renamed: Mapping[str, str | None] | None = None,
) -> ConfusionData:
    """Count a table where it is; `names` are those of its columns, by argument."""
    refuse_unnamed_columns(names, GOLD, PREDICTED)
    titles = {ROLES[argument]: name for argument, name in names.items()}
    sides = [titles[side] for side in SIDES if side in titles]
    scale, notes = table.find_scale(scale, sides)
    reading = ConfusionReader(table.open_items(titles), titles, LabelSpelling(renamed or {}))
    data = reading.read(scale, missing)
    return replace(data, files=(), notes=(*notes, *data.notes))


# --- from coded cells to confusion matrices ------------------------------------------------------


@dataclass(frozen=True)
class EncodedCells:
    """Cells [U] of items that share everything: subgroup, group, and the levels of all columns.

    A level of K is a missing label. `second` are the labels of a second rater, if there is one.
    """

    scale: Scale
    subgroups: Groups | None
    groups: Groups | None
    gold: Array
    predicted: Array
    second: Array | None
    sums: CellSums

    @property
    def lacks_second_rating(self) -> Array:
        """Which cells lack the labels of the second rater."""
        return np.asarray(self.second == len(self.scale))

    def exclude(self, where: Array) -> "EncodedCells":
        """Return the cells, the selected ones without a gold label, so that they do not count."""
        return replace(self, gold=np.where(where, len(self.scale), self.gold))

    def build_matrices(self, rows: MissingRows, missing: MissingPolicy) -> "ConfusionBatch":
        """Return a matrix for each pair of subgroup and group that occurs."""
        none = np.zeros(len(self.gold), np.int64)
        by, group = (none if x is None else x.codes for x in (self.subgroups, self.groups))
        groups = int(group.max(initial=0)) + 1
        pairs, slot = np.unique(by * groups + group, return_inverse=True)
        check_group_count(len(pairs), len(self.scale))
        sums = _sum_cells(self, slot, len(pairs))
        batch = ConfusionMatrix.from_sums(self.scale, sums, rows, missing)
        return ConfusionBatch(batch, pairs // groups, pairs % groups)

    def build_data(self, rows: MissingRows, missing: MissingPolicy) -> ConfusionData:
        """Return the matrices of all items, of subgroups, of groups, and of the second rater."""
        matrices, rater = self.build_matrices(rows, missing), None
        grouped = self.groups is not None
        names = [] if self.subgroups is None else list(enumerate(self.subgroups.values))
        if self.second is not None:
            rater = self.select_second_rater(missing).build_matrices(rows, missing)
        found = {} if self.groups is None else dict(enumerate(self.groups.values))
        return ConfusionData(
            matrices.batch.pooled,
            [(x, matrices.summarize_subgroup(k, grouped=grouped)) for k, x in names],
            groups=matrices.summarize_all(grouped=True) if grouped else None,
            second_rater=None if rater is None else rater.summarize_all(grouped=grouped),
            second_rater_by=[
                (x, rater.summarize_subgroup(k, grouped=grouped)) for k, x in names if rater
            ],
            group_values=tuple(found[k] for k in matrices.filled_groups.tolist() if grouped),
        )

    def select_second_rater(self, missing: MissingPolicy) -> "EncodedCells":
        """Return the cells with the second rater's labels as predictions, on the same items."""
        unanswered = self.predicted == len(self.scale)
        left = self.exclude(unanswered) if missing == "drop" else self
        assert self.second is not None  # noqa: S101 - there is one
        return replace(left, predicted=self.second)


@dataclass(frozen=True)
class ConfusionBatch:
    """A batch of matrices, and the subgroup and group of each."""

    batch: ConfusionMatrix
    by: Array
    group: Array

    @property
    def filled_groups(self) -> Array:
        """The numbers of the groups that have items."""
        return np.unique(self.group[self.batch.items.any(axis=(-2, -1))])

    def summarize_all(self, *, grouped: bool) -> ConfusionMatrix:
        """Return the matrix of all items, or the batch of their groups, whatever the subgroup."""
        if not grouped:
            return self.batch.pooled
        return self._sum_by_group(self.batch, self.group)

    def summarize_subgroup(self, index: int, *, grouped: bool) -> ConfusionMatrix:
        """Return the matrix of a subgroup, or the batch of its groups."""
        here = self.by == index
        part = self.batch[here]
        if not grouped:
            return part[0]
        return self._sum_by_group(part, self.group[here])

    def _sum_by_group(self, part: ConfusionMatrix, group: Array) -> ConfusionMatrix:
        """Return a matrix for each group with items; the first also counts what others dropped."""
        batch = part.compute_sums(group, int(self.group.max(initial=0)) + 1)
        filled = batch[self.filled_groups]
        dropped = np.array(filled.dropped)
        dropped[:1] += np.sum(batch.dropped) - dropped.sum()
        return replace(filled, dropped=dropped)


def _sum_cells(encoded: EncodedCells, slot: Array, slots: int) -> CellSums:
    size = len(encoded.scale) + 1
    cells = (slot.reshape(-1) * size + encoded.gold) * size + encoded.predicted
    shape = (slots, size, size)
    found = encoded.sums.map(
        lambda part: np.bincount(cells, part, minlength=slots * size * size).reshape(shape)
    )
    return found._replace(items=found.items.astype(np.int64))


# --- one run -------------------------------------------------------------------------------------


class ConfusionReader:
    """One run over items."""

    def __init__(
        self, items: ItemSource, titles: Mapping[str, str], spelling: LabelSpelling
    ) -> None:
        sides = [GOLD, PREDICTED, *([SECOND] if SECOND in titles else [])]
        self.cells = CountedCells(items, titles, sides, spelling, "evaluate")
        self.titles = titles

    def read(self, scale: Scale | None, missing: MissingPolicy) -> ConfusionData:
        """Find the scale, and apply the policy for missing labels."""
        cells = self.cells
        scale, levels = cells.encode(scale)
        titles = self.titles
        encoded = EncodedCells(
            scale,
            number_subgroups(cells.table) if SUBGROUP in titles else None,
            cells.clusters if CLUSTER in titles else None,
            levels[GOLD],
            levels[PREDICTED],
            levels.get(SECOND),
            cells.sums,
        )
        cells.refuse_missing_clusters(missing)
        left_out = cells.alone
        if SECOND in titles:
            self._refuse_missing_ratings(encoded, missing)
            left_out = left_out | encoded.lacks_second_rating
        rows = MissingRows(
            lambda: cells.find_missing_labels(GOLD), lambda: cells.find_missing_labels(PREDICTED)
        )
        return replace(
            encoded.exclude(left_out).build_data(rows, missing),
            gold=titles[GOLD],
            predicted=titles.get(PREDICTED, PREDICTED),
            files=(cells.items.name,),
            match_counts=cells.match_counts,
            notes=tuple(cells.notes),
        )

    def _refuse_missing_ratings(self, encoded: "EncodedCells", missing: MissingPolicy) -> None:
        lacking = encoded.lacks_second_rating
        if lacking.any() and missing != "drop":
            count, n = (int(x.sum()) for x in (encoded.sums.items[lacking], encoded.sums.items))
            places = self.cells.find_missing_labels(SECOND)
            way = f"Leave them out with {DROP_HINT}."
            raise make_missing_labels_error(count, n, "labels of the second rater", places, way)
