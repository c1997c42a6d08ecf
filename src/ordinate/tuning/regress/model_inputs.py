"""Inputs: what a model is given of a row, as the training rows define it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore
from ordinate.tuning.models.target_scaling import FeatureTargetScaler

Floats = NDArray[np.float64]
# In standard deviations, beyond which all is as far. Otherwise one odd value, such as a fill value
# of 1e20, is too much for a model: networks compute in 32 bits and square what flows through each
# gated block, three of which take it to the 8th power, and polynomials take powers, too.
REACH = 1e3
REPEAT_COUNT = 5  # a value that occurs more often in training repeats
LIKE_TOLERANCE = 1e-6  # of a value: kept in single precision, or typed, it is the same
LEAST_TOLERANCE = 1e-15  # of what a column spans: so far from 0 is what is 0 up to rounding
# of what a column spans: no further, for dates as numbers differ by little of them
MOST_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Lattice:
    """The values of each feature that repeat in training, but for the last digits.

    >>> x = np.array([[1.0, 2.0]] * 6 + [[0.3, 2.0], [1.0, 0.7]])
    >>> Lattice.fit(x).mark_rows(x).tolist()
    [True, True, True, True, True, True, False, False]
    """

    values: tuple[Floats, ...]  # by feature, sorted

    @classmethod
    def fit(cls, features: Floats) -> Self:
        """Find the values that repeat."""
        return cls(tuple(_find_repeated_values(column) for column in features.T))

    def mark_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell of each row whether all its values repeat."""
        x = np.asarray(features, float)
        matches = [
            _count_matches(values, column) > 0
            for column, values in zip(x.T, self.values, strict=True)
        ]
        return np.all(matches, axis=0)

    def to_list(self) -> list[list[float]]:
        """Return plain numbers."""
        return [values.tolist() for values in self.values]

    @classmethod
    def from_list(cls, stored: Any, width: int) -> Self:
        """Return the lattice of a stored model of so many features."""
        try:
            columns = [np.sort(np.array(column, float).reshape(-1)) for column in stored]
            lattice = cls(tuple(values for values in columns if np.isfinite(values).all()))
        except (TypeError, ValueError, OverflowError):
            lattice = cls(())
        if len(lattice.values) != width:
            raise BadStore("What is stored is no lattice of the features: train again.")
        return lattice


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
    tolerance = np.clip(
        LIKE_TOLERANCE * np.abs(values), LEAST_TOLERANCE * span, MOST_TOLERANCE * span
    )
    return values - tolerance, values + tolerance


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Normalised features, and one more if there is one: 1 for marked rows, -1 for others."""

    scaled: FeatureTargetScaler
    lattice: Lattice | None = None
    flipped: bool = False  # as if marked rows were not, and the others were

    @classmethod
    def fit(cls, features: Floats, targets: Floats, *, lattice: bool) -> Self:
        """Learn all from the rows of a fit alone."""
        scaled = FeatureTargetScaler.fit(features, targets)
        return cls(scaled, Lattice.fit(features) if lattice else None)

    def of(self, features: Any) -> Floats:
        """Return what a model is given."""
        with np.errstate(over="ignore"):  # what is too far even for a number is as far
            x = np.clip(self.scaled.features(features), -REACH, REACH)
        if self.lattice is None:
            return x
        return np.column_stack([x, np.where(self.mark_rows(features) != self.flipped, 1.0, -1.0)])

    def mark_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell which rows lie on the lattice; a feature that never varied tells nothing."""
        x = np.where(self.scaled.stds > 0.0, np.asarray(features, float), self.scaled.means)
        return np.zeros(len(x), bool) if self.lattice is None else self.lattice.mark_rows(x)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        lattice = None if self.lattice is None else self.lattice.to_list()
        return {"scaled": self.scaled.to_dict(), "lattice": lattice}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the inputs of a stored model."""
        scaled = FeatureTargetScaler.from_dict(stored.get("scaled") or {})
        values = stored.get("lattice")
        width = len(scaled.means)
        return cls(scaled, None if values is None else Lattice.from_list(values, width))
