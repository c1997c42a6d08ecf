"""Inputs: what a model is given of a row, as the training rows define it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.models.target_scaling import FeatureTargetScaler

Floats = NDArray[np.float64]
# In standard deviations, beyond which all is as far. Otherwise one odd value, such as a fill value
# of 1e20, is too much for a model: networks compute in 32 bits and square what flows through each
# gated block, three of which take it to the 8th power, and polynomials take powers, too.
REACH = 1e3


class ExtraFeature(Protocol):
    """One more feature, which marks some rows: what marks them is learned from the rows of a fit.

    It is the seam for what a data set has beyond its columns, such as rows of two sources.
    """

    def mark_rows(self, features: Floats) -> NDArray[np.bool_]:
        """Tell of each row whether it is marked."""

    def describe_rows(self, marked: int, rows: int) -> str:
        """Say how many rows of a prediction are marked, and what that means."""

    def to_list(self) -> list[Any]:
        """Return plain values."""


ExtraFeatureFit = Callable[[Floats], ExtraFeature]  # learns a feature from the rows of a fit


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Normalised features, and one more if there is one: 1 for marked rows, -1 for others."""

    scaled: FeatureTargetScaler
    extra: ExtraFeature | None = None
    flipped: bool = False  # as if marked rows were not, and the others were

    @classmethod
    def fit(cls, features: Floats, targets: Floats, *, extra: ExtraFeatureFit | None) -> Self:
        """Learn all from the rows of a fit alone."""
        scaled = FeatureTargetScaler.fit(features, targets)
        return cls(scaled, None if extra is None else extra(features))

    def of(self, features: Any) -> Floats:
        """Return what a model is given."""
        with np.errstate(over="ignore"):  # what is too far even for a number is as far
            x = np.clip(self.scaled.features(features), -REACH, REACH)
        if self.extra is None:
            return x
        return np.column_stack([x, np.where(self.mark_rows(features) != self.flipped, 1.0, -1.0)])

    def mark_rows(self, features: Any) -> NDArray[np.bool_]:
        """Tell which rows the extra feature marks; a feature that never varied tells nothing."""
        x = np.where(self.scaled.stds > 0.0, np.asarray(features, float), self.scaled.means)
        return np.zeros(len(x), bool) if self.extra is None else self.extra.mark_rows(x)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        extra = None if self.extra is None else self.extra.to_list()
        return {"scaled": self.scaled.to_dict(), "extra": extra}

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any], *, load_extra: Callable[[Any, int], ExtraFeature]
    ) -> Self:
        """Return the inputs of a stored model; `load_extra` takes plain values and a width."""
        scaled = FeatureTargetScaler.from_dict(stored.get("scaled") or {})
        values = stored.get("extra")
        return cls(scaled, None if values is None else load_extra(values, len(scaled.means)))
