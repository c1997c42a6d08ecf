"""Inputs: what a model is given of a row, as the training rows define it.

Rows often come from two sources, such as a lattice of round values and points between them, and
the sources may differ in more than their inputs. Whether all values of a row are among those that
repeat in training tells them apart, and can be one more input.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore
from ordinate.models.target_scaling import FeatureTargetScaler

Floats = NDArray[np.float64]
REPEAT_COUNT = 5  # a value that occurs more often in training repeats
# In standard deviations, beyond which all is as far. Otherwise one odd value, such as a fill value
# of 1e20, is too much for a model: networks compute in 32 bits and square what flows through each
# gated block, three of which take it to the 8th power, and polynomials take powers, too.
REACH = 1e3
LIKE_TOLERANCE = 1e-6  # of a value: kept in single precision, or typed, it is the same
LEAST_TOLERANCE = 1e-15  # of what a column spans: so far from 0 is what is 0 up to rounding
MOST_TOLERANCE = (
    1e-5  # of what a column spans: no further, for dates as numbers differ by little of them
)


@dataclass(frozen=True, eq=False)
class Lattice:
    """The values of each feature that repeat in training, but for the last digits.

    >>> x = np.array([[1.0, 2.0]] * 6 + [[0.3, 2.0], [1.0, 0.7]])
    >>> Lattice.fit(x).contains_rows(x).tolist()
    [True, True, True, True, True, True, False, False]
    """

    values: tuple[Floats, ...]  # by feature, sorted

    @classmethod
    def fit(cls, features: Floats) -> Self:
        """Find the values that repeat."""
        return cls(tuple(_find_repeated_values(column) for column in features.T))

    def contains_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell of each row whether all its values repeat."""
        x = np.asarray(features, float)
        on = [
            _count_matches(values, column) > 0
            for column, values in zip(x.T, self.values, strict=True)
        ]
        return np.all(on, axis=0)


def _find_repeated_values(column: Floats) -> Floats:
    """Return the values that occur often."""
    values = np.unique(column)
    low, high = _compute_bounds(values)
    ordered = np.sort(column)
    counts = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)
    return values[counts > REPEAT_COUNT]


def _count_matches(values: Floats, column: Floats) -> NDArray[np.intp]:
    """Return how many of the sorted values are the same as each one of a column."""
    low, high = _compute_bounds(values)
    return np.searchsorted(low, column, "right") - np.searchsorted(high, column)


def _compute_bounds(values: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest number that is the same as each of these values."""
    span = np.ptp(values) or np.abs(values).max() if len(values) else 0.0
    room = np.clip(LIKE_TOLERANCE * np.abs(values), LEAST_TOLERANCE * span, MOST_TOLERANCE * span)
    return values - room, values + room


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Normalised features, and whether a row lies on the lattice, if that is an input."""

    scaled: FeatureTargetScaler
    lattice: Lattice | None = None
    flipped: bool = False  # as if rows on the lattice lay beside it, and the others on it

    @classmethod
    def fit(cls, features: Floats, targets: Floats, *, lattice: bool) -> Self:
        """Learn both from the rows of a fit alone."""
        return cls(
            FeatureTargetScaler.fit(features, targets), Lattice.fit(features) if lattice else None
        )

    def of(self, features: Any) -> Floats:
        """Return what a model is given."""
        with np.errstate(over="ignore"):  # what is too far even for a number is as far
            x = np.clip(self.scaled.features(features), -REACH, REACH)
        if self.lattice is None:
            return x
        on = np.where(self.is_on_lattice(features) != self.flipped, 1.0, -1.0)
        return np.column_stack([x, on])

    def is_on_lattice(self, features: Any) -> NDArray[np.bool_]:
        """Tell of each row whether it lies on the lattice; what never varied tells nothing."""
        x = np.where(self.scaled.stds > 0.0, np.asarray(features, float), self.scaled.means)
        return np.zeros(len(x), bool) if self.lattice is None else self.lattice.contains_rows(x)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        lattice = None if self.lattice is None else [one.tolist() for one in self.lattice.values]
        return {"scaled": self.scaled.to_dict(), "lattice": lattice}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the inputs of a stored surrogate."""
        scaled = FeatureTargetScaler.from_dict(stored.get("scaled") or {})
        values = stored.get("lattice")
        if values is None:
            return cls(scaled)
        try:
            columns = [np.sort(np.array(column, float).reshape(-1)) for column in values]
            lattice = Lattice(tuple(one for one in columns if np.isfinite(one).all()))
        except (TypeError, ValueError, OverflowError):
            lattice = Lattice(())
        if len(lattice.values) != len(scaled.means):
            raise BadStore("What is stored is no lattice of the features: train again.")
        return cls(scaled, lattice)
