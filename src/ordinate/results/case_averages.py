"""Averages over cases: each metric's mean over topics, prompts or writers, and each case."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.case_averages import (
    FEW_ITEMS,
    FIXED_METHOD,
    SAMPLED_METHOD,
    CaseAverage,
    CaseValues,
    average_cases,
    find_worst_cases,
    measure_cases,
)
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.render.charts import Axis, Chart
from ordinate.render.document import format_cell, format_interval
from ordinate.render.estimates import format_count, format_headline, join_names
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.render.tables import NAME, TEXT, Column, Estimates, Table, to_plain
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Origin,
    Record,
    Result,
    name_subgroups,
    record_call,
    to_json_label,
)
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

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
MOST_NAMED = 5  # cases in a sentence
METHOD_SENTENCES = {
    SAMPLED_METHOD: "Intervals of means over cases take the cases as the sample (Student's t); the "
    "noise of their items is in them already.",
    FIXED_METHOD: "Intervals of means over cases are about these very cases, and take their items "
    "as the sample (jackknife within each case, Student's t, on a scale without bounds).",
}
SPREAD_NOTE = (
    "SD is the standard deviation over cases, SD less noise what is left of it without the noise "
    "of few items in each case."
)
POOLED_NOTE = (
    "In a mean over cases each case counts the same; the pooled value weighs items, and its "
    "clusters are the cases. Where a metric is biased in small tables, its mean depends on how "
    "many items the cases have."
)
OWN_SCALES_NOTE = (
    "Each case is evaluated on its own scale, so there is no pooled value. The mean is the plain "
    "one; the Fisher-z mean of kappas or correlations is another number."
)
CASE, MEAN = "case", "mean over cases"
VALUE = Estimates(lambda x: x, lambda found: format_interval(found.low, found.high) or "none")


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

    def estimate_case(self, place: int, level: float | None) -> Estimate:
        """Return the value of a case with the interval of its standard error."""
        value, error = float(self.values[place]), float(self.standard_errors[place])
        if level is None:
            return Estimate(value, np.nan, np.nan, None)
        bounds = compute_bounded_interval(value, error, self.metric.bounds, normal_quantile(level))
        return Estimate(value, *bounds, "delta")

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

    def tables(self) -> Iterator[Table]:
        """Return the means, and every case."""
        yield self._tabulate_means()
        yield self._tabulate_cases()

    def _tabulate_means(self, pooled: Mapping[str, float] | None = None) -> Table:
        """Return the mean of each metric, beside its pooled value where there is one."""
        columns = (
            Column("metric", kind=NAME, get=lambda x: x.metric.expression),
            Column(
                *("better", None, NAME, lambda x: BETTER_VALUES[x.metric.direction]),
                stored=False,
                optional=True,
            ),
            Column("value", "mean", VALUE, lambda x: x.estimate),
            Column(
                *("pooled", None, TEXT, lambda x: (pooled or {})[x.metric.expression]),
                shown=pooled is not None,
                stored=False,
            ),
            Column("spread", "SD", get=lambda x: x.average.spread),
            Column(
                "spread_without_item_noise", "SD less noise", get=lambda x: x.average.true_spread
            ),
            Column("undefined", get=lambda x: x.found.reason, shown=False),
            Column("cases", get=lambda x: x.average.cases),
            Column("n", get=lambda _: to_plain(self.items.sum()), shown=False),
        )
        title = f"Mean over {self._count_cases()}"
        return Table("metrics", title, columns, list(self.metrics.values()), self._level)

    def _tabulate_cases(self) -> Table:
        """Return every metric in every case, for programs."""
        keys = ("value", "undefined", "standard_error", "low", "high", "method")
        records = [
            {"case": self.shown_names[place], "n": to_plain(self.items[place]), "metric": name}
            | score.describe_case(place)
            for place in range(len(self.names))
            for name, score in self.metrics.items()
        ]
        return Table("cases", "", [Column(x) for x in ("case", "n", "metric", *keys)], records)

    def _tabulate_worst(self, name: str, score: CaseScore) -> Table:
        """Return the worst cases by a metric, each with an interval of its own."""
        scales = self.scales
        columns = (
            Column("case", kind=NAME, get=lambda k: self.shown_names[k]),
            *(
                ()
                if scales is None
                else (Column("scale", None, NAME, lambda k: _shorten(scales[k])),)
            ),
            Column("items", get=lambda k: self.items[k].item()),
            Column("value", name, VALUE, lambda k: score.worst[k]),
        )
        title = f"Worst cases by {name}; JSON has all"
        return Table("worst_cases", title, columns, list(score.worst), self._level)

    @property
    def _level(self) -> float | None:
        return None if self.interval is None else self.interval.level

    # --- for people --------------------------------------------------------------------------

    def document(self, pooled: Mapping[str, float] | None = None) -> Document:
        """Return the report: the mean over cases of each metric, the worst cases, those without.

        As a part of another report, it stands beside the `pooled` values.
        """
        name, score = next(iter(self.metrics.items()))
        worst = self._tabulate_worst(name, score).grids()
        return Document(
            self._write_title(),
            (
                *self._tabulate_means(pooled).grids(),
                *self._describe_cases_without_value(),
                *(worst if self.interval is not None and len(score.worst) > 1 else ()),
            ),
            verdict=self._state_mean(name, score, pooled),
            notes=(*self._describe_method(pooled), *self._describe_source(pooled)),
        )

    def _write_title(self) -> str:
        scales = "" if self.scales is None else f" on {len(set(self.scales))} scales"
        return f"{format_count(self.items.sum())} in {self._count_cases()}{scales}"

    def _count_cases(self) -> str:
        column = "" if self.column is None else f" of {self.column}"
        return f"{format_count(len(self.names), 'case')}{column}"

    def _state_mean(self, name: str, score: CaseScore, pooled: Mapping[str, float] | None) -> str:
        """Say what the mean of a metric is, and the pooled value, and which case is worst."""
        subject = f"Mean over {self._count_cases()}"
        if not score.average.cases:
            return f"{subject}: {name} has no value in any case: {score.found.reason}."
        found = score.estimate
        bounds = format_interval(found.low, found.high)
        value = format_headline(format_cell(found.value), bounds, self._level)
        beside = "" if pooled is None else f"; pooled {format_cell(pooled[name])}"
        worst = next(iter(score.worst), None)
        last = ""
        if worst is not None and score.average.cases > 1:
            at = format_cell(float(score.values[worst]))
            last = f" The worst case is {self.shown_names[worst]} ({at})."
        return f"{subject}: {name} {value}{beside}.{last}"

    def _describe_cases_without_value(self) -> list[str]:
        """Say in which cases metrics have no value, and why; those of the same cases together."""
        by_cases: dict[tuple[str | None, tuple[int, ...]], list[str]] = {}
        for name, score in self.metrics.items():
            places = tuple(score.cases_without_value.tolist())
            if places:
                by_cases.setdefault((score.found.reason, places), []).append(name)
        lines = []
        for (reason, places), names in by_cases.items():
            listed = join_names([self.shown_names[k] for k in places], MOST_NAMED)
            verb = "has" if len(names) == 1 else "have"
            lines.append(
                f"{join_names(names)} {verb} no value in {len(places):,} of "
                f"{format_count(len(self.names), 'case')}, which the mean leaves out ({reason}): "
                f"{listed}."
            )
        return [" ".join(lines)]

    def _describe_method(self, pooled: Mapping[str, float] | None) -> list[str]:
        """Say what the means are, and how their intervals were found."""
        notes = [OWN_SCALES_NOTE, *self._warn_of_steps()] if self.scales is not None else []
        notes += [] if pooled is None else [POOLED_NOTE]
        if self.interval is not None:
            notes.append(METHOD_SENTENCES[FIXED_METHOD if self.fixed else SAMPLED_METHOD])
            if not self.fixed and len(self.names) < VERY_FEW_CLUSTERS:
                notes.append(f"{self._count_cases()} are few: the intervals of means are rough.")
            notes += self._warn_of_few_items()
            notes += [
                f"No interval for the mean of {name} over cases: {score.estimate.note}."
                for name, score in self.metrics.items()
                if score.estimate.method is None and score.average.cases
            ]
        return [*notes, SPREAD_NOTE, *self._warn_of_small_cases()]

    def _warn_of_few_items(self) -> list[str]:
        """Say how many fixed cases have few items, whose noise is all that the intervals know."""
        sizes = next(iter(self.metrics.values())).found.sizes
        few = 0 if sizes is None or not self.fixed else int((sizes < FEW_ITEMS).sum())
        if not few:
            return []
        verb = "has" if few == 1 else "have"
        note = f"{few:,} of {format_count(len(self.names), 'case')} {verb} fewer than {FEW_ITEMS} "
        note += "items: the intervals of means are rough, and those of metrics that are biased in "
        note += (
            "small tables (kappas, averages over levels) miss the value of larger cases more often."
        )
        return [note]

    def _warn_of_small_cases(self) -> list[str]:
        """Say which metrics have no standard error in some cases: their noise is a guess."""
        lacking = [
            f"{name} ({unknown:,} of {score.average.cases:,})"
            for name, score in self.metrics.items()
            if (unknown := score.average.cases - int((~np.isnan(score.standard_errors)).sum()))
        ]
        if not lacking:
            return []
        note = (
            f"Cases too small for a standard error of their own: {join_names(lacking)}. Up to half "
        )
        note += (
            "of the cases may be such, and are taken for as noisy, item by item, as the others; "
        )
        return [f"{note}otherwise SD less noise is undefined."]

    def _warn_of_steps(self) -> list[str]:
        """Say which means add steps of different scales."""
        if len({scale.span for scale in self.scales or ()}) < 2:
            return []
        steps = [n for n, s in self.metrics.items() if math.isinf(max(map(abs, s.metric.bounds)))]
        if not steps:
            return []
        names = join_names(steps)
        return [f"{names}: in steps of each scale, so cases of long scales dominate the mean."]

    def _describe_source(self, pooled: Mapping[str, float] | None) -> list[str]:
        if pooled is not None:  # the report that this is a section of says it
            return []
        origin = self.origin
        return [
            *origin.describe_join("gold levels"),
            f"{origin.name_files()}Gold: {origin.gold}. Predicted: {origin.predicted}.",
            *origin.notes,
        ]

    def make_charts(self) -> Iterator[Chart]:
        """Yield for each metric the mean over cases, and every case, worst first."""
        for name, score in self.metrics.items():
            axis = Axis(f"{name}, {BETTER_VALUES[score.metric.direction]} is better")
            rows = [self._make_mean_row(score), *self._make_case_rows(score)]
            plot = ForestPlot(rows, axis, self._level, self.column or CASE)
            if plot.shown:
                about = (
                    "The mean over cases, and the cases, worst first, each with its confidence "
                    "interval; those of cases are by their standard errors, except the worst ones."
                )
                yield plot.make_chart("cases", f"Cases by {name}", about, variant=name)

    def _make_mean_row(self, score: CaseScore) -> ForestRow:
        name = MEAN
        while name in self.shown_names:
            name += " (all)"
        return ForestRow(name, score.estimate, format_count(score.average.cases, "case"), MEAN)

    def _make_case_rows(self, score: CaseScore) -> list[ForestRow]:
        merits = np.asarray(score.metric.merit(score.values), float)
        return [
            ForestRow(
                self.shown_names[place],
                score.worst.get(place) or score.estimate_case(place, self._level),
                format_count(self.items[place].item()),
                CASE,
            )
            for place in np.argsort(merits, kind="stable").tolist()
        ]


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


def _shorten(scale: Scale) -> str:
    names = scale.names
    return " < ".join(names if len(names) <= MOST_NAMED else (*names[:2], "…", names[-1]))
