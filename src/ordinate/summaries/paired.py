"""PairedPredictions: what two systems predicted for the same items."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import OrdinateError
from ordinate.scale import Scale
from ordinate.summaries.base import CODES, SAME, Codes, Every, Gathered, Summary
from ordinate.summaries.confusion import ConfusionMatrix
from ordinate.summaries.counting import are_counts, check_group_count

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PairedPredictions(Summary):
    """The distinct cells [U] of gold and of the predictions of two systems.

    Only cells that have items are there: K levels have K³ of them, and groups as many each. A
    prediction of K is none at all. `groups` says to which group the items of a cell belong, where
    they belong to any.
    """

    scale: Annotated[Scale, SAME]
    gold: Codes
    first_predictions: Codes
    second_predictions: Codes
    items: Gathered
    weights: Gathered
    groups: Annotated[Array | None, CODES] = None
    group_count: Annotated[int, SAME] = 0
    counted: Every = True  # whether each item's own weight is an integer, and so a count

    @classmethod
    def from_predictions(
        cls,
        scale: Scale,
        positions: tuple[Array, Array, Array],
        sums: tuple[Array, Array],
        groups: Array | None,
        group_count: int,
        *,
        counted: bool,
    ) -> "PairedPredictions":
        """Return the distinct cells of gold and two predictions, with the sums of their items."""
        size = len(scale) + 1
        gold, first, second = (column.astype(np.int64) for column in positions)
        keys = (gold * size + first) * size + second
        if groups is not None:
            keys = keys + groups * size**3
        cells, place = np.unique(keys, return_inverse=True)
        items, weights = (np.bincount(place, weights=part) for part in sums)
        levels, pairs = np.divmod(cells, size**2)
        first, second = np.divmod(pairs, size)
        inside = None if groups is None else levels // size
        gold = levels % size
        return cls(scale, gold, first, second, items, weights, inside, group_count, counted)

    def _require_shapes(self) -> None:
        """Refuse columns of other lengths, and levels and groups that are not there."""
        size = len(self.scale)
        most = {"gold": size - 1, "first_predictions": size, "second_predictions": size}
        if self.groups is not None:
            most["groups"] = self.group_count - 1
        for name in ("items", "weights", *most):
            self._require(getattr(self, name).shape == (*self.items.shape[:1],), name)
        for name, highest in most.items():
            self._require(getattr(self, name).max(initial=-1) <= highest, name)

    @property
    def has_integer_weights(self) -> bool:
        """Whether the weights are integers, and so counts."""
        return self.counted and are_counts(self.weights)

    @property
    def first(self) -> ConfusionMatrix:
        """The confusion matrix of the first system; a batch of groups, where there are groups."""
        return self._build_confusion_matrix(self.first_predictions)

    @property
    def second(self) -> ConfusionMatrix:
        """The confusion matrix of the second system; a batch of groups, where there are groups."""
        return self._build_confusion_matrix(self.second_predictions)

    @property
    def predictions(self) -> Array:
        """The predictions of the first system against those of the second, whatever gold says."""
        size = len(self.scale) + 1
        cells = self.first_predictions * size + self.second_predictions
        sums = np.bincount(cells, self.weights, minlength=size**2)
        return sums.reshape(size, size)[:-1, :-1]

    @property
    def pooled(self) -> "PairedPredictions":
        """The cells of all items, whatever their group."""
        return self._gather_cells(self)

    def _build_confusion_matrix(self, predictions: Array) -> ConfusionMatrix:
        size = len(self.scale)
        cells = self.gold * (size + 1) + predictions
        shape: tuple[int, ...] = (size, size + 1)
        if self.groups is not None:
            check_group_count(self.group_count, size)
            cells = cells + self.groups * (size * (size + 1))
            shape = (self.group_count, *shape)
        sums = np.bincount(cells, self.weights, minlength=int(np.prod(shape)))
        return self.to_confusion_matrix(sums.reshape(shape))

    def to_confusion_matrix(self, cells: Array) -> ConfusionMatrix:
        """Return cells [..., K, K + 1] as matrices of one system."""
        return ConfusionMatrix(self.scale, cells, cells, cells, counted=self.counted)

    def require_alike(self, other: Self) -> None:
        """Refuse to merge pairs within groups, too."""
        if self.groups is not None or other.groups is not None:
            raise OrdinateError("Pairs within groups have no names to match: add the panels.")
        super().require_alike(other)

    def _merge(self, other: Self) -> dict[str, Any]:
        both = self._gather_cells(self, other)
        cells = ("gold", "first_predictions", "second_predictions", "items", "weights")
        return super()._merge(other) | {name: getattr(both, name) for name in cells}

    def _gather_cells(self, *parts: "PairedPredictions") -> "PairedPredictions":
        def join(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        return PairedPredictions.from_predictions(
            self.scale,
            (join("gold"), join("first_predictions"), join("second_predictions")),
            (join("items"), join("weights")),
            None,
            0,
            counted=self.counted,
        )
