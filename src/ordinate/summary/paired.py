"""Paired: what two systems answered to the same items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.scale import Scale
from ordinate.summary.confusion import MOST_ITEMS, Confusion

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Paired:
    """Gold x answer of the first system x answer of the second: [..., K, K + 1, K + 1].

    The last answer of each system is none at all. Leading axes hold many such tables at once.
    """

    scale: Scale
    items: Array
    weights: Array
    counted: bool = True  # whether each item's own weight is a whole number, and so a count

    @property
    def whole(self) -> bool:
        """Whether the weights are whole numbers, and so counts."""
        counts = (self.weights == np.floor(self.weights)) & (self.weights < MOST_ITEMS)
        return self.counted and bool(counts.all())

    @property
    def first(self) -> Confusion:
        """The confusion of the first system."""
        return self.confusion(self.weights.sum(axis=-1))

    @property
    def second(self) -> Confusion:
        """The confusion of the second system."""
        return self.confusion(self.weights.sum(axis=-2))

    @property
    def answers(self) -> Array:
        """The answers of the first system against those of the second, whatever gold says."""
        return self.weights.sum(axis=-3)[..., :-1, :-1]

    @property
    def pooled(self) -> "Paired":
        """The one table of all items of a batch."""
        axes = tuple(range(self.weights.ndim - 3))
        items, weights = self.items.sum(axis=axes), self.weights.sum(axis=axes)
        return Paired(self.scale, items, weights, self.counted)

    def confusion(self, cells: Array) -> Confusion:
        """Return cells [..., K, K + 1] as tables of one system."""
        return Confusion(self.scale, cells, cells, cells, counted=self.counted)

    def __add__(self, other: "Paired") -> "Paired":
        if not isinstance(other, Paired) or self.scale != other.scale:
            return NotImplemented
        items, weights = self.items + other.items, self.weights + other.weights
        return Paired(self.scale, items, weights, self.counted and other.counted)
