"""ConfusionMatrix: how often each gold level was predicted as each level."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadInput, BadWeights, NoItems
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.base import SAME, SUM, BatchSummary, Dropped, Every, Sum, freeze_array
from ordinate.summaries.counting import CellSums, are_counts, check_group_count
from ordinate.summaries.tabulation import (
    MissingPolicy,
    MissingRows,
    apply_missing_policy,
    count_columns,
)

Array = NDArray[Any]
KNOWN_SUM = replace(SUM, dump=lambda sums: [] if np.isnan(sums).any() else sums.tolist())


@dataclass(frozen=True, eq=False)
class ConfusionMatrix(BatchSummary):
    """Gold levels in rows, predicted levels in columns, unanswered items in a last column.

    `items`, `weights` and `squares` have the shape [..., K, K + 1]: how many items are in a cell,
    the sum of their weights and the sum of their squared weights (nan where unknown).
    Leading axes hold many matrices at once.

    >>> matrix = ConfusionMatrix.of(["low", "mid", "high"], ["low", "high", "high"], "low,mid,high")
    >>> matrix.counts.astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    >>> (matrix + matrix).total
    np.float64(6.0)
    """

    scale: Annotated[Scale, SAME]
    items: Annotated[Array, KNOWN_SUM]
    weights: Sum
    squares: Annotated[Array, KNOWN_SUM]
    dropped: Dropped = 0
    counted: Every = True  # whether each item's own weight is an integer, and so a count
    cell_axes = 2

    # --- counting ---------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        gold: Any,
        predicted: Any,
        scale: "Scale | str | Iterable[Hashable]",
        weights: Any = None,
        missing: MissingPolicy = "error",
    ) -> "ConfusionMatrix":
        """Count two columns of labels."""
        scale = Scale.of(scale)
        return cls.from_sums(scale, *count_columns(scale, gold, predicted, weights), missing)

    @classmethod
    def count_by_group(
        cls,
        gold: Any,
        predicted: Any,
        scale: Scale,
        groups: Groups,
        weights: Any = None,
        missing: MissingPolicy = "error",
    ) -> "ConfusionMatrix":
        """Count two columns of labels within each group, in one pass: a batch of matrices."""
        counted = count_columns(scale, gold, predicted, weights, groups)
        return cls.from_sums(scale, *counted, missing)

    @classmethod
    def from_sums(
        cls, scale: Scale, sums: CellSums, rows: MissingRows, missing: MissingPolicy
    ) -> "ConfusionMatrix":
        """Return the matrix of sums that still hold missing labels, treated as `missing` says."""
        cells, dropped = apply_missing_policy(scale, sums, rows, missing)
        return cls(scale, cells.items, cells.weights, cells.squares, dropped, cells.counted)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        scale: "Scale | str | Iterable[Hashable]",
        unanswered: ArrayLike | None = None,
    ) -> "ConfusionMatrix":
        """Return the confusion matrix of counts [..., K, K] that somebody else made, rows gold.

        Integers are frequencies. For others the number of items is unknown.
        """
        scale = Scale.of(scale)
        inner = _convert_counts(counts, "counts")
        size = len(scale)
        if inner.shape[-2:] != (size, size):
            raise BadInput(f"Counts for {scale} must be {size} x {size}, not {inner.shape}.")
        last = (
            np.zeros(inner.shape[:-1])
            if unanswered is None
            else _convert_counts(unanswered, "counts")
        )
        try:
            last = np.broadcast_to(last, inner.shape[:-1])
        except ValueError:
            raise BadInput(
                f"Unanswered counts for {scale} must be {size} numbers for each matrix."
            ) from None
        weights = np.concatenate([inner, last[..., None]], -1)
        if not weights.any():
            raise NoItems("All counts are 0: there is nothing to evaluate.")
        counted = bool((weights == np.floor(weights)).all())
        known = weights if counted else np.full_like(weights, np.nan)
        return cls(scale, known, weights, known, counted=counted)

    # --- what metrics read -------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """n_ij: the weight of the items with gold level i that were predicted as level j."""
        return self.weights[..., :-1]

    @property
    def unanswered(self) -> Array:
        """The weight of the items without a prediction, by gold level."""
        return self.weights[..., -1]

    @cached_property
    def has_unanswered(self) -> bool:
        """Whether any item is without a prediction."""
        return bool(self.unanswered.any())

    @cached_property
    def has_integer_weights(self) -> bool:
        """Whether the weights are integers, and so counts."""
        return self.counted and are_counts(self.weights)

    @cached_property
    def gold(self) -> Array:
        """g_i: the weight of each gold level, unanswered items included."""
        return freeze_array(self.weights.sum(axis=-1))

    @cached_property
    def predicted(self) -> Array:
        """p_j: the weight of each predicted level."""
        return freeze_array(self.counts.sum(axis=-2))

    @cached_property
    def total(self) -> Any:
        """N: the weight of all items."""
        return self.gold.sum(axis=-1)

    def _share(self, weights: Array, axes: int) -> Array:
        """Return weights / N, nan for a matrix without items; a quotient, so that N / N is 1."""
        total = np.asarray(self.total)[(...,) + (None,) * axes]
        shares = np.full(weights.shape, np.nan)
        return freeze_array(np.divide(weights, total, out=shares, where=total > 0))

    @cached_property
    def share(self) -> Array:
        """n_ij / N."""
        return self._share(self.counts, axes=2)

    @cached_property
    def gold_share(self) -> Array:
        """g_i / N."""
        return self._share(self.gold, axes=1)

    @cached_property
    def predicted_share(self) -> Array:
        """p_j / N."""
        return self._share(self.predicted, axes=1)

    @cached_property
    def unanswered_share(self) -> Array:
        """The unanswered items of each gold level / N."""
        return self._share(self.unanswered, axes=1)

    @cached_property
    def by_chance(self) -> Array:
        """The shares expected if gold and predictions were independent."""
        return freeze_array(self.gold_share[..., :, None] * self.predicted_share[..., None, :])

    def proximities(self) -> Array:
        """Return prox(j, i) of the Closeness Evaluation Measure in bits [..., gold i, predicted j].

        It is the information of being so close: -log2 of the share of gold items that are closer;
        infinite where none is, which is at levels that gold does not have.

        >>> gold = ConfusionMatrix.from_counts(np.diag([10, 60, 30]), "negative,neutral,positive")
        >>> gold.proximities().round(2).tolist()
        [[4.32, 1.32, 0.23], [0.62, 1.74, 0.42], [0.07, 0.74, 2.74]]
        """
        with np.errstate(divide="ignore"):
            return 0.0 - np.log2(self.share_closer())

    def share_closer(self) -> Array:
        """Return the share of gold items that are closer to level i than level j is [..., i, j].

        Those of i and on the way to j are closer; those of j tie, and count by half.
        """
        own = self.gold_share[..., :, None]
        return np.minimum(sum_between_levels(self.gold_share) + own / 2.0, 1.0)

    # --- values that merge -------------------------------------------------------------------

    @property
    def n(self) -> int | float:  # type: ignore[override] # a weight, where nobody counted
        """The number of items of one matrix; their weight where that is unknown."""
        items = float(self.items.sum())
        return int(items) if np.isfinite(items) else float(self.total)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ConfusionMatrix":
        """Return the matrix that `to_dict` described; an empty list stands for unknown."""
        stored = data if isinstance(data, Mapping) else {}
        unknown = {key for key in ("items", "squares") if stored.get(key) == []}
        if not unknown or "weights" not in stored:
            return super().from_dict(data)
        found = super().from_dict({**stored, **dict.fromkeys(unknown, stored["weights"])})
        nan: dict[str, Any] = dict.fromkeys(unknown, np.full(found.weights.shape, np.nan))
        return replace(found, **nan)

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of a matrix."""
        size = len(self.scale)
        return dict.fromkeys(("items", "weights", "squares"), (size, size + 1))

    # --- matrices made from this one ---------------------------------------------------------

    def discount(self, factor: float) -> "ConfusionMatrix":
        """Return the matrix of the same items, which weigh less by a factor."""
        weights, squares = self.weights * factor, self.squares * factor**2
        return replace(self, weights=weights, squares=squares, counted=False)

    def with_cells(self, cells: Array, unanswered: Array | float = 0.0) -> "ConfusionMatrix":
        """Return other counts on the same scale: [..., K, K], or with a last column unanswered."""
        if cells.shape[-1] == len(self.scale):
            last = np.broadcast_to(np.asarray(unanswered), cells.shape[:-1])[..., None]
            cells = np.concatenate([cells, last], -1)
        return ConfusionMatrix(self.scale, cells, cells, cells, counted=self.counted)


def find_mid_ranks(values: Array) -> Array:
    """Return the mid-rank of each level: the values of lower levels and half of its own."""
    return np.cumsum(values, axis=-1) - values / 2.0


def sum_between_levels(values: Array) -> Array:
    """Return the values [..., i, j] of levels strictly between two, with half of those two.

    >>> sum_between_levels(np.array([2.0, 3.0, 4.0])).tolist()
    [[0.0, 2.5, 6.0], [2.5, 0.0, 3.5], [6.0, 3.5, 0.0]]
    """
    ranks = find_mid_ranks(values)
    return np.abs(ranks[..., :, None] - ranks[..., None, :])


def _convert_counts(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise BadWeights(f"The {name} must be numbers of at least 0.") from None
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise BadWeights(f"The {name} must be finite numbers of at least 0.")
    return numbers


# --- from coded cells to confusion matrices ------------------------------------------------------


@dataclass(frozen=True)
class ConfusionData:
    """The confusion matrices of items, and what a report says of where they came from.

    With groups, `groups` has a matrix for each, `group_values` says which they are, and `by` has
    for each subgroup a batch of the matrices of its groups. `second_rater` and `second_rater_by`
    are those of the second rater's labels, on the same items; with groups, a batch of them.
    """

    matrix: ConfusionMatrix
    by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    gold: str = "gold"
    predicted: str = "predicted"
    files: tuple[str, ...] = ()
    match_counts: dict[str, int] | None = None
    notes: tuple[str, ...] = ()
    groups: ConfusionMatrix | None = None
    second_rater: ConfusionMatrix | None = None
    second_rater_by: list[tuple[Any, ConfusionMatrix]] = field(default_factory=list)
    group_values: tuple[Any, ...] = ()


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
