"""Scores: the metrics of systems, each with its interval and what constants and chance reach."""

import math
from dataclasses import dataclass, replace

from ordinate.errors import NotApplicable
from ordinate.inference import (
    ConfidenceIntervals,
    Estimate,
    estimate_metrics,
    estimate_metrics_of_each,
)
from ordinate.inference.confidence_intervals import group_alike_matrices
from ordinate.inference.constant_tests import ConstantTest, decide_for_labels
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric
from ordinate.render.tables import to_plain
from ordinate.results.base import Record
from ordinate.results.baselines import Baselines, measure_baselines
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
    against_constant: ConstantTest | None = None  # against the best; None where nothing decides

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
            "against_constant": to_plain(self.against_constant),
        }

    def decide_against_constant(
        self, source: ConfusionMatrix, intervals: ConfidenceIntervals
    ) -> "Score":
        """Return the same with the test against the best constant, of a matrix or of clusters."""
        level = self.baselines.best_constant.level
        if level is None:
            return self
        place = source.scale.lookup[level]
        found = decide_for_labels(self.metric, source, place, self.estimate, intervals)
        return replace(self, against_constant=found)


def estimate_each(
    metrics: list[Metric],
    sources: ConfusionMatrix,
    intervals: ConfidenceIntervals,
    progress: ProgressCallback | None,
) -> list[dict[str, Estimate]]:
    """Return the estimates of each matrix [T], or of each batch of clusters [T, G]."""
    if len(sources.shape) == 1:
        return estimate_metrics_of_each(metrics, sources, intervals, progress)
    return [
        estimate_metrics(metrics, sources[place], intervals, progress)
        for place in range(len(sources.weights))
    ]


def score_each(
    metrics: list[Metric],
    matrices: ConfusionMatrix,
    estimates: list[dict[str, Estimate]] | None,
) -> list[dict[str, Score]]:
    """Return the scores of each matrix [T] by metric."""
    gold = matrices.gold > 0
    either = gold | (matrices.predicted > 0)
    used = {"gold": gold.sum(axis=-1).tolist(), "either": either.sum(axis=-1).tolist()}
    values = zip(*(_compute_values(metric, matrices) for metric in metrics), strict=True)
    rows = zip(values, measure_baselines(metrics, matrices), strict=True)
    return [
        {
            metric.expression: Score(
                metric,
                value,
                reason,
                used[metric.levels][place],
                baselines,
                None if estimates is None else estimates[place][metric.expression],
            )
            for metric, (value, reason), baselines in zip(metrics, *row, strict=True)
        }
        for place, row in enumerate(rows)
    ]


def estimate_each_without_baselines(
    sources: ConfusionMatrix, metrics: list[Metric], intervals: ConfidenceIntervals | None
) -> list[dict[str, Estimate]]:
    """Return metrics of each matrix [T], or of its clusters [T, G]: values alone if so wished."""
    if intervals is not None:
        return estimate_each(metrics, sources, intervals, None)
    matrices = sources.map(lambda x: x.sum(axis=1)) if len(sources.shape) > 1 else sources
    columns = [_compute_values(metric, matrices) for metric in metrics]
    names = [metric.expression for metric in metrics]
    return [
        {
            name: make_point_estimate(value, reason or "")
            for name, (value, reason) in zip(names, row, strict=True)
        }
        for row in zip(*columns, strict=True)
    ]


def _compute_values(metric: Metric, matrices: ConfusionMatrix) -> list[tuple[float, str | None]]:
    """Return the value of a metric for each matrix [T], and why it has none, if it has none."""
    found: list[tuple[float, str | None]] = [(math.nan, None)] * len(matrices.weights)
    for alike in group_alike_matrices(matrices):
        try:
            values = metric(matrices[alike]).tolist()
            reasons = [metric.undefined_when if math.isnan(value) else None for value in values]
        except NotApplicable as problem:
            values, reasons = [math.nan] * len(alike), [str(problem)] * len(alike)
        for place, value, reason in zip(alike, values, reasons, strict=True):
            found[place] = value, reason
    return found
