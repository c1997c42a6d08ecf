"""Confusion: how often each gold level was predicted as each level."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadInput, BadWeights, NoItems, OrdinateError
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.counting import CellSums
from ordinate.summaries.tabulation import (
    MissingPolicy,
    MissingRows,
    apply_missing_policy,
    count_columns,
)

Array = NDArray[Any]
MOST_ITEMS = 2.0**53  # up to which whole numbers are exact


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Gold levels in rows, predicted levels in columns, unanswered items in a last column.

    `items`, `weights` and `squares` have the shape [..., K, K + 1]: how many items are in a cell,
    the sum of their weights and the sum of their squared weights (nan where nobody knows them).
    Leading axes hold many tables at once.

    >>> table = ConfusionMatrix.of("low,mid,high", ["low", "mid", "high"], ["low", "high", "high"])
    >>> table.counts.astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    >>> (table + table).total
    np.float64(6.0)
    """

    scale: Scale
    items: Array
    weights: Array
    squares: Array
    dropped: Any = 0  # how many items were left out, of each table
    counted: bool = True  # whether each item's own weight is a whole number, and so a count

    def __post_init__(self) -> None:
        for array in (*self._arrays, self.dropped):
            if isinstance(array, np.ndarray):
                _freeze_array(array)

    # --- the doors ---------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        scale: "Scale | str | Iterable[Hashable]",
        gold: Any,
        predicted: Any,
        weights: Any = None,
        missing: MissingPolicy = "error",
    ) -> "ConfusionMatrix":
        """Count two columns of labels."""
        scale = Scale.of(scale)
        return cls.settled(scale, *count_columns(scale, gold, predicted, weights), missing)

    @classmethod
    def count_by_group(
        cls,
        scale: Scale,
        gold: Any,
        predicted: Any,
        groups: Groups,
        weights: Any = None,
        missing: MissingPolicy = "error",
    ) -> "ConfusionMatrix":
        """Count two columns of labels within each group, in one pass: a batch of tables."""
        counted = count_columns(scale, gold, predicted, weights, groups)
        return cls.settled(scale, *counted, missing)

    @classmethod
    def settled(
        cls, scale: Scale, sums: CellSums, rows: MissingRows, missing: MissingPolicy
    ) -> "ConfusionMatrix":
        """Return the table of sums that still hold missing labels, treated as `missing` says."""
        kept, dropped = apply_missing_policy(scale, sums, rows, missing)
        return cls(scale, kept.items, kept.weights, kept.squares, dropped, kept.counted)

    @classmethod
    def from_counts(
        cls,
        scale: "Scale | str | Iterable[Hashable]",
        counts: ArrayLike,
        unanswered: ArrayLike | None = None,
    ) -> "ConfusionMatrix":
        """Return the confusion of counts [..., K, K] that somebody else made, rows gold.

        Whole counts are frequencies. For others nobody knows the number of items.
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
                f"Unanswered counts for {scale} must be {size} numbers for each table."
            ) from None
        weights = np.concatenate([inner, last[..., None]], -1)
        if not weights.any():
            raise NoItems("All counts are 0: there is nothing to evaluate.")
        whole = bool((weights == np.floor(weights)).all())
        known = weights if whole else np.full_like(weights, np.nan)
        return cls(scale, known, weights, known, counted=whole)

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
    def whole(self) -> bool:
        """Whether the weights are whole numbers, and so counts."""
        counts = (self.weights == np.floor(self.weights)) & (self.weights < MOST_ITEMS)
        return self.counted and bool(counts.all())

    @cached_property
    def gold(self) -> Array:
        """g_i: the weight of each gold level, unanswered items included."""
        return _freeze_array(self.weights.sum(axis=-1))

    @cached_property
    def predicted(self) -> Array:
        """p_j: the weight of each predicted level."""
        return _freeze_array(self.counts.sum(axis=-2))

    @cached_property
    def total(self) -> Any:
        """N: the weight of all items."""
        return self.gold.sum(axis=-1)

    def _share(self, weights: Array, axes: int) -> Array:
        """Return weights / N, nan for a table without items; a quotient, so that N / N is 1."""
        total = np.asarray(self.total)[(...,) + (None,) * axes]
        shares = np.full(weights.shape, np.nan)
        return _freeze_array(np.divide(weights, total, out=shares, where=total > 0))

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
        return _freeze_array(self.gold_share[..., :, None] * self.predicted_share[..., None, :])

    # --- values that merge -------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes: () for one table."""
        return self.weights.shape[:-2]

    @property
    def n(self) -> int | float:
        """The number of items of one table; their weight where nobody knows the number."""
        items = float(self.items.sum())
        return int(items) if np.isfinite(items) else float(self.total)

    def __add__(self, other: "ConfusionMatrix") -> "ConfusionMatrix":
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        if self.scale != other.scale:
            raise OrdinateError(
                f"Tables on different scales cannot be added: {self.scale!r} and {other.scale!r}."
            )
        return ConfusionMatrix(
            self.scale,
            self.items + other.items,
            self.weights + other.weights,
            self.squares + other.squares,
            self.dropped + other.dropped,
            self.counted and other.counted,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        same = self.scale == other.scale and np.array_equal(self.dropped, other.dropped)
        return (
            same
            and self.counted == other.counted
            and all(
                np.array_equal(mine, theirs, equal_nan=True)
                for mine, theirs in zip(self._arrays, other._arrays, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment] # equal tables may differ in memory

    def __getitem__(self, index: Any) -> "ConfusionMatrix":
        if not self.shape:
            raise IndexError("This is one table; only a batch of tables can be indexed.")
        items, weights, squares = (array[index] for array in self._arrays)
        if weights.shape[-2:] != self.weights.shape[-2:]:
            raise IndexError("An index chooses tables of the batch, not their cells.")
        dropped = np.broadcast_to(self.dropped, self.shape)[index]
        return ConfusionMatrix(self.scale, items, weights, squares, dropped, self.counted)

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.items, self.weights, self.squares

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which `from_dict` makes the same table."""
        return {
            "scale": list(self.scale.labels),
            "positions": list(self.scale.at),
            "names": list(self.scale.names),
            "items": [] if np.isnan(self.items).any() else self.items.tolist(),
            "weights": self.weights.tolist(),
            "squares": [] if np.isnan(self.squares).any() else self.squares.tolist(),
            "dropped": np.asarray(self.dropped).tolist(),
            "counted": self.counted,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ConfusionMatrix":
        """Return the table that `to_dict` described."""
        scale = Scale(data["scale"], positions=data["positions"], names=data["names"])
        weights = np.array(data["weights"])
        known = [np.array(data[part]) for part in ("items", "squares")]
        items, squares = (x if x.size else np.full(weights.shape, np.nan) for x in known)
        dropped = np.asarray(data["dropped"])[()]
        return cls(scale, items, weights, squares, dropped, data["counted"])

    # --- tables made from this one -----------------------------------------------------------

    @property
    def pooled(self) -> "ConfusionMatrix":
        """The one table of all items of a batch."""
        axes = tuple(range(len(self.shape)))
        items, weights, squares = (array.sum(axis=axes) for array in self._arrays)
        return ConfusionMatrix(
            self.scale, items, weights, squares, np.sum(self.dropped), self.counted
        )

    def compute_sums(self, index: Array, count: int) -> "ConfusionMatrix":
        """Return a batch of tables, each the sum of the tables of this batch with its index."""
        dropped = np.broadcast_to(self.dropped, self.shape)
        arrays = (_sum_by_index(array, index, count) for array in (*self._arrays, dropped))
        items, weights, squares, lost = arrays
        return ConfusionMatrix(self.scale, items, weights, squares, lost, self.counted)

    def with_cells(self, cells: Array, unanswered: Array | float = 0.0) -> "ConfusionMatrix":
        """Return other counts on the same scale: [..., K, K], or with a last column unanswered."""
        if cells.shape[-1] == len(self.scale):
            last = np.broadcast_to(np.asarray(unanswered), cells.shape[:-1])[..., None]
            cells = np.concatenate([cells, last], -1)
        return ConfusionMatrix(self.scale, cells, cells, cells, counted=self.counted)


def _sum_by_index(array: Array, index: Array, count: int) -> Array:
    total = np.zeros((count, *array.shape[1:]), array.dtype)
    np.add.at(total, index, array)
    return total


def _freeze_array(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _convert_counts(values: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise BadWeights(f"The {what} must be numbers of at least 0.") from None
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise BadWeights(f"The {what} must be finite numbers of at least 0.")
    return numbers
