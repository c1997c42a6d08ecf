"""Scores: the metrics of one system, each with its interval and what constants and chance reach."""

import math
from dataclasses import dataclass

from ordinate.errors import NotApplicable
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric
from ordinate.results.base import Record, to_plain
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.summaries import ConfusionMatrix

INTERVAL_KEYS = ("low", "high", "method", "undefined_share", "note")


@dataclass(frozen=True)
class Score:
    """One metric of one system: value and interval, or why there is none, and baselines."""

    metric: Metric
    value: float
    undefined: str | None
    levels_used: int
    baselines: Baselines
    estimate: Estimate | None = None  # None where no interval was asked for

    def __float__(self) -> float:
        return self.value

    @property
    def beats_constant(self) -> bool | None:
        """Whether the value is better than every constant prediction; None if that is undefined."""
        best = self.baselines.best_constant.value
        if math.isnan(self.value) or math.isnan(best):
            return None
        return bool(self.metric.is_better(self.value, best)) and not math.isclose(
            self.value, best, rel_tol=1e-12, abs_tol=1e-12
        )

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        interval = {} if self.estimate is None else self.estimate.to_dict()
        return {
            "value": to_plain(self.value),
            "undefined": self.undefined,
            **{key: interval.get(key) for key in INTERVAL_KEYS},
            "levels_used": self.levels_used,
            "direction": self.metric.direction,
            "baselines": self.baselines.to_dict(),
            "attainable": to_plain(self.baselines.attainable),
            "beats_constant": self.beats_constant,
        }


def score_metrics(
    matrix: ConfusionMatrix,
    metrics: list[Metric],
    source: ConfusionMatrix,
    intervals: ConfidenceIntervals | None,
    progress: ProgressCallback | None,
) -> dict[str, Score]:
    """Return metrics of a confusion matrix by expression; `source` may be that of its clusters."""
    predictors = BaselinePredictors(matrix)
    gold = matrix.gold > 0
    used = {"gold": int(gold.sum()), "either": int((gold | (matrix.predicted > 0)).sum())}
    estimates = {} if intervals is None else estimate_metrics(metrics, source, intervals, progress)
    scores = {}
    for metric in metrics:
        value, reason = _compute_value(metric, matrix)
        scores[metric.expression] = Score(
            metric=metric,
            value=value,
            undefined=reason,
            levels_used=used[metric.levels],
            baselines=predictors.measure(metric),
            estimate=estimates.get(metric.expression),
        )
    return scores


def estimate_without_baselines(
    source: ConfusionMatrix, metrics: list[Metric], intervals: ConfidenceIntervals | None
) -> dict[str, Estimate]:
    """Return metrics of a confusion matrix, or of its clusters: values alone without settings."""
    if intervals is not None:
        return estimate_metrics(metrics, source, intervals)
    matrix = source.pooled if source.shape else source
    values = {metric.expression: _compute_value(metric, matrix) for metric in metrics}
    return {
        name: make_point_estimate(value, reason or "") for name, (value, reason) in values.items()
    }


def _compute_value(metric: Metric, matrix: ConfusionMatrix) -> tuple[float, str | None]:
    try:
        value = float(metric(matrix))
    except NotApplicable as reason:
        return math.nan, str(reason)
    return value, metric.undefined_when if math.isnan(value) else None
