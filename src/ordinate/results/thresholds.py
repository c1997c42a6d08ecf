"""Thresholds: whether a metric reaches one, as its confidence interval says."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ordinate.errors import BadOption, suggest_names
from ordinate.inference import Estimate
from ordinate.metrics import Metric, find_metric
from ordinate.render.document import join_bounds
from ordinate.render.estimates import format_headline
from ordinate.results.base import Result


@dataclass(frozen=True)
class ThresholdScore:
    """A metric of a result with its interval, whatever the result keeps beside it."""

    metric: Metric
    value: float
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    reason: str | None = None

    @classmethod
    def of(cls, metric: Metric, score: Any, result: Any) -> "ThresholdScore":
        """Return what a score, or an estimate, says."""
        estimate = score if isinstance(score, Estimate) else score.estimate
        reason = getattr(score, "undefined", None) or getattr(estimate, "note", None)
        interval = getattr(result, "interval", None)
        if estimate is None or interval is None:
            return cls(metric, float(score), reason=reason)
        bounds = (estimate.low, estimate.high)
        return cls(metric, float(score), *bounds, level=interval.level, reason=reason)

    def drop_interval(self) -> "ThresholdScore":
        """Return the value alone, which decides then."""
        return replace(self, low=math.nan, high=math.nan)

    @property
    def is_undefined(self) -> bool:
        """Whether there is no value."""
        return math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both bounds are known."""
        return not math.isnan(self.low) and not math.isnan(self.high)

    @property
    def best(self) -> float:
        """The best value inside the interval; the value where there is no interval."""
        if not self.has_interval:
            return self.value
        if self.metric.direction == "zero":
            return min(max(self.low, 0.0), self.high)
        return self.high if self.metric.direction == "maximize" else self.low

    @property
    def worst(self) -> float:
        """The worst value inside the interval; the value where there is no interval."""
        if not self.has_interval:
            return self.value
        if self.metric.direction == "zero":
            return max(self.low, self.high, key=abs)
        return self.low if self.metric.direction == "maximize" else self.high

    def __str__(self) -> str:
        if self.is_undefined:
            return f"undefined ({self.reason})" if self.reason else "undefined"
        interval = join_bounds(self.low, self.high, lambda x: f"{x:.3g}")
        return format_headline(f"{self.value:.6g}", interval, self.level)


class ThresholdComparison(NamedTuple):
    """What came of it: better is as good as the threshold, or better."""

    verdict: Literal["better", "worse", "inconclusive"]
    sentence: str


def compare_with_threshold(score: ThresholdScore, threshold: float) -> ThresholdComparison:
    """Tell whether all of the interval reaches a threshold, or none of it, or whether it is inside.

    >>> score = ThresholdScore(find_metric("mae"), 0.6, 0.5, 0.7)
    >>> [compare_with_threshold(score, x).verdict for x in (0.4, 0.65, 0.8)]
    ['worse', 'inconclusive', 'better']
    """
    shown = f"{score.metric.expression} is {score}"
    significantly = "significantly " if score.has_interval else ""
    if not reaches(score.metric, score.best, threshold):
        return ThresholdComparison("worse", f"{shown}, {significantly}worse than {threshold:g}.")
    if reaches(score.metric, score.worst, threshold):
        return ThresholdComparison("better", f"{shown}, not worse than {threshold:g}.")
    return ThresholdComparison(
        "inconclusive", f"{shown}, not significantly different from {threshold:g}."
    )


def reaches(metric: Metric, value: float, threshold: float) -> bool:
    """Tell whether a value is as good as a threshold, or better; an undefined one is not."""
    equal = math.isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)
    return equal or bool(metric.is_better(value, threshold))


def list_scores(result: Result) -> list[ThresholdScore]:
    """Return the metrics of one system: of labels, of probabilities, of a regression."""
    return list(_iterate_scores(result))


def find_score(result: Result, metric: str | Metric) -> ThresholdScore:
    """Return one metric of a result, by its expression."""
    if isinstance(metric, Metric):
        metric = metric.expression
    scores = {score.metric.expression: score for score in list_scores(result)}
    if metric not in scores:
        known = ", ".join(scores) or "none"
        hint = suggest_names(metric, list(scores))
        raise BadOption(
            f"The result has no metric {metric!r}.{hint} There are: {known}. Name others with "
            "metrics=… where it is made."
        )
    return scores[metric]


def _iterate_scores(result: Any) -> Iterator[ThresholdScore]:
    selected = {metric.expression: metric for metric in getattr(result, "selected", ())}
    for name, score in getattr(result, "metrics", {}).items():
        metric = selected.get(name) or score.metric
        yield ThresholdScore.of(metric, score, result)
    for name, estimate in getattr(result, "prediction_intervals", {}).items():
        yield ThresholdScore.of(_find_interval_metric(name), estimate, result)
    if getattr(result, "probabilities", None) is not None:
        yield from _iterate_scores(result.probabilities)


def _find_interval_metric(name: str) -> Metric:
    from ordinate.summaries.prediction_intervals import PredictionIntervals  # noqa: PLC0415 - start-up: labels alone need none

    return find_metric(name, PredictionIntervals)
