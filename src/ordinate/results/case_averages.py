"""Averages over cases: each metric's mean over topics, prompts or writers, and each case."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.case_averages import (
    CaseAverage,
    CaseValues,
    average_cases,
    find_worst_cases,
    measure_cases,
)
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.render.tables import to_plain
from ordinate.results.base import (
    SCHEMA,
    Origin,
    Record,
    Result,
    name_subgroups,
    record_call,
    to_json_label,
)
from ordinate.results.case_averages_text import describe_case_averages
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:
    from ordinate.render.charts import Chart

Array = NDArray[Any]
CASES_ARE_CLUSTERS = (
    "The cases of average_over (--average-over) are the clusters of the items: leave out groups "
    "(--groups). Clusters that cross cases are not supported."
)
UNNAMED_CASES = (
    "Which cases are fixed? Name their column: average_over=… (--average-over), or give each its "
    "own scale (--scale-by)."
)
MOST_WORST = 5  # cases whose own intervals are computed


class Cases(NamedTuple):
    """What items are averaged by: the cases, by name; the column; whether they are fixed.

    Fixed cases are those that the mean is about, and their items are the sample; otherwise the
    cases are a sample of many more.
    """

    names: Sequence[Hashable]
    column: str | None = None
    fixed: bool = False

    def drop_empty(self, matrices: ConfusionMatrix) -> "tuple[Cases, ConfusionMatrix]":
        """Return the cases that have items, and their confusion matrices."""
        there = np.flatnonzero(matrices.total > 0)
        return self._replace(names=[self.names[k] for k in there.tolist()]), matrices[there]


class CaseBatch(NamedTuple):
    """The cases of one scale: a batch of confusion matrices, and the place of each."""

    places: Array
    matrices: ConfusionMatrix


@dataclass(frozen=True)
class CaseScore:
    """One metric: its mean over cases, its value in each, and the worst cases by their places."""

    metric: Metric
    average: CaseAverage
    found: CaseValues
    worst: dict[int, Estimate] = field(default_factory=dict)  # each with an interval of its own

    def __float__(self) -> float:
        return self.value

    @property
    def value(self) -> float:
        """The mean over cases."""
        return self.average.estimate.value

    @property
    def estimate(self) -> Estimate:
        """The mean over cases with its confidence interval."""
        return self.average.estimate

    @property
    def values(self) -> Array:
        """The value in each case [C]; nan where it is undefined."""
        return self.found.values

    @property
    def standard_errors(self) -> Array:
        """The standard error within each case [C], from its items; nan where there is none."""
        return self.found.errors

    @property
    def cases_without_value(self) -> Array:
        """The places of the cases in which the metric is undefined."""
        return np.flatnonzero(np.isnan(self.values))

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return self.estimate.to_dict() | {
            "direction": self.metric.direction,
            "spread": to_plain(self.average.spread),
            "spread_without_item_noise": to_plain(self.average.true_spread),
            "cases_with_value": self.average.cases,
            "cases_without_value": len(self.cases_without_value),
            "cases_with_standard_error": int((~np.isnan(self.standard_errors)).sum()),
            "undefined": self.found.reason,
        }

    def describe_case(self, place: int) -> Record:
        """Return the metric in one case, as plain values."""
        value, own = float(self.values[place]), self.worst.get(place)
        return {
            "value": to_plain(value),
            "undefined": self.found.reason if math.isnan(value) else None,
            "standard_error": to_plain(float(self.standard_errors[place])),
            "low": own and to_plain(own.low),
            "high": own and to_plain(own.high),
            "method": own and own.method,
        }


@dataclass(frozen=True, repr=False, eq=False)
class CaseAverages(Result):
    """Metrics averaged over cases, each of which counts the same, however many items it has.

    `scales` are those of the cases, where each has its own: then nothing is pooled.
    """

    names: tuple[Hashable, ...]
    items: Array  # of each case
    metrics: dict[str, CaseScore]
    fixed: bool = False
    column: str | None = None
    scales: tuple[Scale, ...] | None = None
    interval: ConfidenceIntervals | None = None
    origin: Origin = field(default_factory=Origin)

    @classmethod
    @record_call
    def from_batches(
        cls,
        batches: Sequence[CaseBatch],
        metrics: Sequence[Metric],
        cases: Cases,
        interval: ConfidenceIntervals | None,
        *,
        own_scales: bool = False,
        origin: Origin | None = None,
    ) -> "CaseAverages":
        """Average metrics over cases, of one scale or each of its own."""
        level = None if interval is None else interval.level
        scores = {}
        for metric in metrics:
            found = _measure_batches(metric, batches)
            average = average_cases(found, level, metric.bounds, fixed=cases.fixed)
            scores[metric.expression] = CaseScore(metric, average, found)
        scales = {k: batch.matrices.scale for batch in batches for k in batch.places.tolist()}
        return cls(
            names=tuple(cases.names),
            items=_join_batches([(one.places, _count_items(one.matrices)) for one in batches]),
            metrics=_add_worst_cases(scores, batches, interval),
            fixed=cases.fixed,
            column=cases.column,
            scales=tuple(scales[k] for k in range(len(scales))) if own_scales else None,
            interval=interval,
            origin=origin or Origin(),
        )

    @cached_property
    def shown_names(self) -> list[str]:
        """The cases by their names as strings, made distinct where they look alike."""
        return [name for name, _ in name_subgroups(dict.fromkeys(self.names))]

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        return {"schema": SCHEMA, "task": "case averages", **self.describe()} | {
            "source": self.origin.to_dict()
        }

    def describe(self) -> Record:
        """Return the averages and every case as plain values."""
        return {
            "column": self.column,
            "cases": len(self.names),
            "cases_fixed": self.fixed,
            "interval": None if self.interval is None else self.interval.level,
            "metrics": {
                name: score.to_dict() | {"worst": [self.shown_names[k] for k in score.worst]}
                for name, score in self.metrics.items()
            },
            "by_case": [self._describe_case(place) for place in range(len(self.names))],
        }

    def _describe_case(self, place: int) -> Record:
        scale = None if self.scales is None else self.scales[place].labels
        return {
            "case": self.shown_names[place],
            "n": to_plain(self.items[place]),
            "scale": None if scale is None else [to_json_label(label) for label in scale],
            "metrics": {name: score.describe_case(place) for name, score in self.metrics.items()},
        }

    def make_charts(self) -> "Iterable[Chart]":
        """Return each case with its interval, beside the mean over all."""
        from ordinate.results.case_averages_charts import chart_cases  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_cases(self)

    def rows(self) -> list[Record]:
        """Return one flat record for each metric: its mean over cases."""
        spreads = ("spread", "spread_without_item_noise")
        keys = ("value", "low", "high", "method", "note", *spreads, "undefined")
        return [
            {"metric": name}
            | {key: plain[key] for key in keys}
            | {"cases": plain["cases_with_value"], "n": to_plain(self.items.sum())}
            for name, score in self.metrics.items()
            for plain in [score.to_dict()]
        ]

    def list_cases(self) -> list[Record]:
        """Return one flat record for each case and metric."""
        return [
            {"case": self.shown_names[place], "n": to_plain(self.items[place]), "metric": name}
            | score.describe_case(place)
            for place in range(len(self.names))
            for name, score in self.metrics.items()
        ]

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the means, and every case."""
        return {"metrics": self.rows(), "cases": self.list_cases()}

    def document(self) -> Document:
        """Return the report for people."""
        return describe_case_averages(self)


def average_over_groups(
    groups: ConfusionMatrix,
    metrics: Sequence[Metric],
    cases: Cases,
    interval: ConfidenceIntervals | None,
) -> CaseAverages:
    """Average metrics over the groups of items of one scale; those without items are no cases."""
    known, matrices = cases.drop_empty(groups)
    batch = CaseBatch(np.arange(len(known.names)), matrices)
    return CaseAverages.from_batches([batch], metrics, known, interval)


def _measure_batches(metric: Metric, batches: Sequence[CaseBatch]) -> CaseValues:
    parts = [(batch.places, measure_cases(metric, batch.matrices)) for batch in batches]
    return CaseValues(
        _join_batches([(places, part.values) for places, part in parts]),
        _join_batches([(places, part.errors) for places, part in parts]),
        next((part.reason for _, part in parts if part.reason), None),
        _join_batches([(places, np.asarray(part.sizes)) for places, part in parts]),
    )


def _join_batches(parts: Sequence[tuple[Array, Array]]) -> Array:
    """Return the numbers of all cases, each in its place."""
    joined = np.empty(sum(len(places) for places, _ in parts), parts[0][1].dtype)
    for places, numbers in parts:
        joined[places] = numbers
    return joined


def _count_items(matrices: ConfusionMatrix) -> Array:
    """Return the number of items of each case; their weight where that is unknown."""
    items = matrices.items.sum(axis=(-2, -1))
    return np.asarray(matrices.total) if np.isnan(items).any() else items.astype(np.int64)


def _add_worst_cases(
    scores: dict[str, CaseScore],
    batches: Sequence[CaseBatch],
    interval: ConfidenceIntervals | None,
) -> dict[str, CaseScore]:
    """Return the scores with the intervals that their worst cases have on their own."""
    if interval is None:
        return scores
    usual = replace(interval, method=None)  # a method for all items may not fit a case alone
    worst: dict[str, list[int]] = {
        name: find_worst_cases(score.metric, score.values, MOST_WORST).tolist()
        for name, score in scores.items()
    }
    estimates = {}
    for place in dict.fromkeys(k for places in worst.values() for k in places):
        metrics = [scores[name].metric for name, places in worst.items() if place in places]
        estimates[place] = estimate_metrics(metrics, _get_matrix(batches, place), usual)
    return {
        name: replace(score, worst={k: estimates[k][name] for k in worst[name]})
        for name, score in scores.items()
    }


def _get_matrix(batches: Sequence[CaseBatch], place: int) -> ConfusionMatrix:
    batch = next(one for one in batches if place in one.places)
    return batch.matrices[int(np.flatnonzero(batch.places == place)[0])]
