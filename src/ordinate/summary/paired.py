"""Paired: what two systems answered to the same items."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ordinate.scale import Scale
from ordinate.summary.confusion import Confusion

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Paired:
    """Gold x answer of the first system x answer of the second: [..., K, K + 1, K + 1].

    The last answer of each system is none at all. Leading axes hold many such tables at once.
    """

    scale: Scale
    items: Array
    weights: Array

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
        return Paired(self.scale, self.items.sum(axis=axes), self.weights.sum(axis=axes))

    def confusion(self, cells: Array) -> Confusion:
        """Return cells [..., K, K + 1] as tables of one system."""
        return Confusion(self.scale, cells, cells, cells)

    def __add__(self, other: "Paired") -> "Paired":
        if not isinstance(other, Paired) or self.scale != other.scale:
            return NotImplemented
        return Paired(self.scale, self.items + other.items, self.weights + other.weights)
