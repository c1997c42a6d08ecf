"""Features and targets on the scale on which models learn, fitted on training rows only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, BadValues
from ordinate.summaries.normalization import Normalization
from ordinate.tuning.experiment.stored_json import at_least, decode

Floats = NDArray[np.float64]
ADVICE = "Train the model again."
CONSTANT_TOLERANCE = 1e-6  # of a value that never varied: a copy of fewer digits is no other one
# of the largest value of a column: if it varies by no more, it is constant
ROUNDING_TOLERANCE = 1e-12


class _StoredTarget(TypedDict):
    mean: float
    std: float


class _StoredScaler(TypedDict):
    means: list[float]
    stds: list[Annotated[float, at_least(0)]]
    target: _StoredTarget


@dataclass(frozen=True)
class FeatureTargetScaler:
    """How features and target are normalised, as the training rows have it.

    A feature that is constant in training is 0 for ever: nothing is known of other values.

    >>> scaled = FeatureTargetScaler.fit([[1.0, 5.0], [3.0, 5.0]], [10.0, 30.0])
    >>> scaled.features([[5.0, 6.0]]).tolist()
    [[3.0, 0.0]]
    >>> scaled.target.denormalize(2.0)
    40.0
    """

    means: Floats
    stds: Floats  # 0 where a feature is constant
    target: Normalization

    @classmethod
    def fit(cls, features: Any, target: Any) -> Self:
        """Return the normalisation of training rows; never pass others."""
        x = np.asarray(features, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = x - x[0]  # exactly 0 where all are equal
            means, stds = x[0] + gaps.mean(axis=0), gaps.std(axis=0)
        if not (np.isfinite(means).all() and np.isfinite(stds).all()):
            worst = int(np.argmax(~(np.isfinite(means) & np.isfinite(stds))))
            raise BadValues(f"Feature {worst + 1} is too large to be normalised: rescale it.")
        return cls(means, np.where(is_constant(x), 0.0, stds), Normalization.fit(target))

    def features(self, features: Any) -> Floats:
        """Return features on the normalised scale."""
        gaps = np.asarray(features, np.float64) - self.means
        return np.divide(gaps, self.stds, out=np.zeros_like(gaps), where=self.stds > 0.0)

    def changed(self, features: Any) -> NDArray[np.bool_]:
        """Tell of values [N, d] whether they differ from one that never varied in training."""
        near = np.isclose(
            np.asarray(features, np.float64), self.means, rtol=CONSTANT_TOLERANCE, atol=0.0
        )
        return (self.stds == 0.0) & ~near

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, from which `from_dict` makes the same again to the last digit."""
        return {
            "means": self.means.tolist(),
            "stds": self.stds.tolist(),
            "target": {"mean": self.target.mean, "std": self.target.std},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the normalisation of a stored model."""
        found = decode(stored, _StoredScaler, "The normalisation", advice=ADVICE)
        means, stds = np.array(found["means"], float), np.array(found["stds"], float)
        if means.shape != stds.shape:
            raise BadStore(f"The normalisation has {len(means)} means, {len(stds)} stds. {ADVICE}")
        return cls(means, stds, Normalization(**found["target"]))


def is_constant(x: Floats) -> NDArray[np.bool_]:
    """Tell of each column whether it varies by no more than rounding: 0.1 + 0.2 is not 0.3."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((x - x[0]).std(axis=0) <= ROUNDING_TOLERANCE * np.abs(x).max(axis=0))
