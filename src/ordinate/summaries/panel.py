"""Panel: what many systems predicted for the same items."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.base import (
    CODES,
    GATHERED,
    SAME,
    Every,
    Gathered,
    Summary,
    Tally,
    load_codes,
)
from ordinate.summaries.confusion import ConfusionMatrix
from ordinate.summaries.counting import (
    CellSums,
    are_counts,
    check_group_count,
    sum_single_items,
)
from ordinate.summaries.paired import PairedPredictions
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    MissingPolicy,
    check_missing_policy,
    check_same_length,
    convert_weights,
    encode_positions,
    make_missing_groups_error,
    make_missing_labels_error,
    suggest_missing_policy,
)

Array = NDArray[Any]
RowNamer = Callable[[int], Sequence[str]]  # the column: 0 is gold, then the systems


def _load_names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list of names")
    return tuple(names)


@dataclass(frozen=True, eq=False)
class Panel(Summary):
    """The distinct rows (gold, system 1 … S) of positions, and the items that share each.

    A position of K says that the system did not predict. `groups` says to which group the items of
    a row belong, where they belong to any; then equal rows of two groups are two rows.

    >>> panel = Panel.of(["low", "high", "low"], {"a": ["low"] * 3, "b": ["high"] * 3}, "low,high")
    >>> panel.rows.tolist(), panel.items.tolist()
    ([[0, 0, 1], [1, 0, 1]], [2, 1])
    """

    scale: Annotated[Scale, SAME]
    systems: Annotated[tuple[str, ...], replace(SAME, load=_load_names)]
    rows: Annotated[Array, replace(CODES, load=partial(load_codes, dtype=np.int16))]  # [U, 1 + S]
    items: Gathered  # [U]
    weights: Gathered  # [U]
    squares: Gathered  # [U]
    groups: Annotated[Array | None, CODES] = None  # [U]
    group_values: Annotated[tuple[Any, ...], replace(GATHERED, load=tuple)] = ()
    dropped: Tally = 0
    counted: Every = True  # whether each item's own weight is an integer, and so a count

    @classmethod
    def of(
        cls,
        gold: Any,
        systems: Mapping[str, Any],
        scale: "Scale | str | Sequence[Any]",
        weights: Any = None,
        groups: Groups | None = None,
        missing: MissingPolicy = "error",
    ) -> "Panel":
        """Count a column of gold labels and one of predictions for each system."""
        scale = Scale.of(scale)
        names = tuple(map(str, systems))
        weighing = convert_weights(weights)
        first = encode_positions(scale, gold, "gold", weighing, beside=systems)
        if weighing is not None:
            check_same_length(len(first), len(weighing), "labels", "weights")
        columns = [first]
        for name, column in zip(names, systems.values(), strict=True):
            columns.append(encode_positions(scale, column, name, weighing, beside=systems))
            check_same_length(len(first), len(columns[-1]), "gold labels", f"predictions of {name}")
        if groups is not None:
            check_same_length(len(first), len(groups.codes), "labels", "groups")
        if not len(first):
            raise NoItems("There are no items to compare: the columns are empty.")
        rows = np.stack(columns, axis=1)
        sums = sum_single_items(len(rows), weighing)
        if groups is not None and None in groups.values:
            rows[_find_ungrouped_items(groups, sums.items, missing), 0] = len(scale)
        return cls.from_rows(scale, names, rows, sums, groups, missing)

    @classmethod
    def from_rows(
        cls,
        scale: Scale,
        systems: tuple[str, ...],
        rows: Array,
        sums: CellSums,
        groups: Groups | None = None,
        missing: MissingPolicy = "error",
        places: RowNamer | None = None,
    ) -> "Panel":
        """Return the panel of rows that still hold missing labels, treated as `missing` says.

        `places` says where a column lacks labels, for an error.
        """
        lacking = (rows == len(scale)) & (sums.items > 0)[:, None]
        _refuse_missing(systems, lacking, sums.items, missing, places or _make_row_namer(lacking))
        complete = ~lacking.any(axis=1) if missing == "drop" else np.ones(len(rows), bool)
        keep = np.flatnonzero(complete & (sums.items > 0))
        if not len(keep):
            reason = "all have a missing label" if sums.items.any() else "all weights are 0"
            raise NoItems(f"There are no items to compare: {reason}.")
        dropped = int(sums.items.sum() - sums.items[keep].sum())
        codes, values = None, ()
        if groups is not None:  # but for those that have no items left
            there, codes = np.unique(groups.codes[keep], return_inverse=True)
            values = tuple(groups.values[index] for index in there)
        present = sums.map(lambda x: x[keep])
        parts = _gather_rows(rows[keep], codes, present)
        return cls(scale, systems, *parts, values, dropped, present.counted)

    def __post_init__(self) -> None:
        if len(set(self.systems)) < len(self.systems):
            raise BadOption("Two systems have the same name. Give each its own.")
        super().__post_init__()

    def _require_shapes(self) -> None:
        """Refuse rows of other systems, and levels and groups that are not there."""
        count, size = len(self.items), len(self.scale)
        self._require(self.rows.shape == (count, 1 + len(self.systems)), "rows")
        self._require((self.rows[:, 0] < size).all() and (self.rows <= size).all(), "rows")
        for name in ("weights", "squares", *(() if self.groups is None else ("groups",))):
            self._require(getattr(self, name).shape == (count,), name)
        if self.groups is not None:
            self._require(self.groups.max(initial=-1) < len(self.group_values), "groups")

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def has_integer_weights(self) -> bool:
        """Whether the weights are integers, and so counts."""
        return self.counted and are_counts(self.weights)

    def _merge(self, other: Self) -> dict[str, Any]:
        """Return the distinct rows of both; groups are the same where their values are."""
        values = tuple(dict.fromkeys([*self.group_values, *other.group_values]))
        groups = None
        if self.groups is not None and other.groups is not None:
            known = {value: index for index, value in enumerate(values)}
            place = np.array([known[value] for value in other.group_values], int)
            groups = np.concatenate([self.groups, place[other.groups]])
        both = zip(self._sums[:3], other._sums[:3], strict=True)
        sums = CellSums(*(np.concatenate(parts) for parts in both))
        gathered = _gather_rows(np.concatenate([self.rows, other.rows]), groups, sums)
        names = ("rows", "items", "weights", "squares", "groups")
        return {
            **super()._merge(other),
            **dict(zip(names, gathered, strict=True)),
            "group_values": values,
        }

    @property
    def _sums(self) -> CellSums:
        return CellSums(self.items, self.weights, self.squares)

    # --- matrices of it ------------------------------------------------------------------------

    def confusion_matrix(self, system: str) -> ConfusionMatrix:
        """Return the confusion matrix of one system."""
        size = len(self.scale)
        cells = self._gold * (size + 1) + self._predictions(system)
        return self._build_confusion_matrix(cells, (size, size + 1))

    def count_by_group(self, system: str) -> ConfusionMatrix:
        """Return the confusion matrix of one system within each group: a batch."""
        size, groups = len(self.scale), self._groups
        check_group_count(len(self.group_values), size)
        cells = (groups * size + self._gold) * (size + 1) + self._predictions(system)
        return self._build_confusion_matrix(cells, (len(self.group_values), size, size + 1))

    def pair_systems(self, first: str, second: str, *, grouped: bool = False) -> PairedPredictions:
        """Return gold x first x second; with `grouped`, within each group."""
        return PairedPredictions.from_predictions(
            self.scale,
            (self._gold, self._predictions(first), self._predictions(second)),
            (self.items, self.weights),
            self._groups if grouped else None,
            len(self.group_values) if grouped else 0,
            counted=self.counted,
        )

    def _build_confusion_matrix(self, cells: Array, shape: tuple[int, ...]) -> ConfusionMatrix:
        sums = self._sums.map(lambda part: _tally_cells(cells, part, shape))
        return ConfusionMatrix(self.scale, *sums[:3], counted=self.counted)

    @property
    def _gold(self) -> Array:
        return self.rows[:, 0].astype(np.int64)  # cells of many levels are no small numbers

    def _predictions(self, system: str) -> Array:
        return self.rows[:, 1 + self.systems.index(system)].astype(np.int64)

    @property
    def _groups(self) -> Array:
        if self.groups is None:
            raise BadOption("This panel has no groups.")
        return self.groups


def _find_ungrouped_items(
    groups: Groups, items: Array, missing: MissingPolicy
) -> NDArray[np.bool_]:
    """Return which items have no group, unless that is an error."""
    alone = (groups.codes == groups.values.index(None)) & (items > 0)
    if alone.any() and missing != "drop":
        rows = [f"row {row + 1}" for row in np.flatnonzero(alone)[:ROWS_SHOWN]]
        raise make_missing_groups_error(int(alone.sum()), int(items.sum()), "groups", rows)
    return alone


def _tally_cells(cells: Array, amounts: Array, shape: tuple[int, ...]) -> Array:
    sums = np.bincount(cells, weights=amounts, minlength=int(np.prod(shape)))
    return sums.reshape(shape)


def _make_row_namer(lacking: Array) -> RowNamer:
    def places(column: int) -> list[str]:
        return [f"row {row + 1}" for row in np.flatnonzero(lacking[:, column])[:ROWS_SHOWN]]

    return places


def _refuse_missing(
    systems: tuple[str, ...], lacking: Array, items: Array, missing: MissingPolicy, places: RowNamer
) -> None:
    """Say which labels are missing, unless the policy allows it."""
    check_missing_policy(missing)
    allowed = {"error": range(0), "worst": range(1, len(systems) + 1)}
    for index, name in enumerate(("gold", *systems)):
        count = int(items[lacking[:, index]].sum())
        if not count or missing == "drop" or index in allowed[missing]:
            continue
        column = "gold labels" if index == 0 else f"predictions of {name}"
        way = suggest_missing_policy("Leave these items out for all systems", worst=index > 0)
        raise make_missing_labels_error(count, int(items.sum()), column, places(index), way)


def _gather_rows(
    rows: Array, groups: Array | None, sums: CellSums
) -> tuple[Array, Array, Array, Array, Array | None]:
    """Return the distinct rows (within groups, where there are any) with their sums."""
    keys = rows if groups is None else np.concatenate([groups[:, None], rows], axis=1)
    keys = keys.astype(np.int16 if groups is None else np.int64)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    totals = [np.bincount(place.reshape(-1), weights=part) for part in sums[:3]]
    totals[0] = totals[0].astype(np.int64)
    if groups is None:
        return distinct, totals[0], totals[1], totals[2], None
    return distinct[:, 1:].astype(np.int16), totals[0], totals[1], totals[2], distinct[:, 0]
