"""What the predictions of a surrogate are worth, in their unit and on the normalised scale."""

from dataclasses import dataclass
from typing import Any, Self

from ordinate.inference.estimates import finite
from ordinate.metrics import find
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.regression import TRAIN, Moments

METRICS = ("rmse", "mae", "r2", "relative_accuracy", "skill")


@dataclass(frozen=True)
class Scores:
    """What predictions are worth, on both scales, from one summary."""

    table: Moments  # in the unit of the targets
    normalization: Normalization  # of the training targets

    @classmethod
    def of(cls, targets: Any, predictions: Any, normalization: Normalization) -> Self:
        """Sum up targets and predictions in their unit."""
        table = Moments.of(targets, predictions, constants={TRAIN: normalization.mean})
        return cls(table, normalization)

    @property
    def values(self) -> dict[str, float]:
        """RMSE, MAE, R², relative accuracy and skill in the unit of the targets."""
        return _measured(self.table)

    @property
    def normalized(self) -> dict[str, float]:
        """The same on the scale on which the targets were learned."""
        mean, std = self.normalization.mean, self.normalization.std
        return _measured(self.table.scaled(1.0 / std, -mean / std))

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return plain values, nan as None."""
        both = {"values": self.values, "normalized": self.normalized}
        return {scale: {k: finite(v) for k, v in of.items()} for scale, of in both.items()}


def _measured(table: Moments) -> dict[str, float]:
    return {name: float(find(name, Moments)(table)) for name in METRICS}
