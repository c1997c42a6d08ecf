"""What the predictions of a regressor are worth, in their unit and on the normalised scale."""

from dataclasses import dataclass
from typing import Any, Self

from ordinate.inference.estimates import to_json_number
from ordinate.metrics import find_metric
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.regression import TRAIN_MEAN, Moments

SCORE_METRICS = ("rmse", "mae", "r2", "relative_accuracy", "skill")


@dataclass(frozen=True)
class RegressionScores:
    """What predictions are worth, on both scales, from one summary."""

    table: Moments  # in the unit of the targets
    normalization: Normalization  # of the training targets

    @classmethod
    def of(cls, target: Any, predicted: Any, normalization: Normalization) -> Self:
        """Sum up targets and predictions in their unit."""
        table = Moments.of(target, predicted, constants={TRAIN_MEAN: normalization.mean})
        return cls(table, normalization)

    @property
    def values(self) -> dict[str, float]:
        """RMSE, MAE, R², relative accuracy and skill in the unit of the targets."""
        return _compute_metrics(self.table)

    @property
    def normalized(self) -> dict[str, float]:
        """The same on the scale on which the targets were learned."""
        mean, std = self.normalization.mean, self.normalization.std
        return _compute_metrics(self.table.scaled(1.0 / std, -mean / std))

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return plain values, nan as None."""
        both = {"values": self.values, "normalized": self.normalized}
        return {scale: {k: to_json_number(v) for k, v in of.items()} for scale, of in both.items()}


def _compute_metrics(table: Moments) -> dict[str, float]:
    return {name: float(find_metric(name, Moments)(table)) for name in SCORE_METRICS}
