"""The result of a meta-evaluation: each metric evaluated, their agreement, who improves on whom."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference import Estimate
from ordinate.inference.case_averages import CaseAverage, CaseValues, average_cases
from ordinate.inference.estimates import make_point_estimate, to_json_number
from ordinate.inference.resampling import Resampling
from ordinate.meta.rank_correlation import ROUNDING_DIGITS
from ordinate.meta.unanimity import Unanimity
from ordinate.metrics import Metric
from ordinate.render import Document, Grid
from ordinate.render.charts import Axis, Chart
from ordinate.render.charts import Cell as ShadedCell
from ordinate.render.charts import Panel as ChartPanel
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    format_count,
    format_interval_head,
    format_percent,
    format_value_with_interval,
    format_with_interval,
    join_names,
)
from ordinate.render.forest_plots import MOST_ROWS, ForestPlot, ForestRow
from ordinate.render.tables import ESTIMATE, JOINED, NAME, SHARE, Column, Estimates, Table
from ordinate.results.base import SCHEMA, Origin, Result, to_json_label
from ordinate.results.comparison import describe_files
from ordinate.settings import Level, Resamples, Seed, Setting
from ordinate.summaries import Panel

Array = NDArray[Any]
UNDEFINED_REASONS = {
    "coverage": "the metric, or the unanimous improvement, is the same for all pairs of systems",
    "robustness": "in no two test cases it ranks the same systems",
    "discriminative_power": "it has no difference between any two systems",
    "stability": "in no two halves of the test cases it ranks the same systems",
}
FEWEST_SYSTEMS = 3  # whose pairs tell one metric from another
FEW_SYSTEMS_REASON = f"pairs of {FEWEST_SYSTEMS} systems or more are needed"
FEW_UNITS = 10  # systems or test cases
MOST_SYSTEMS_PAIRWISE = 8  # systems whose table fits on a page; JSON has all
MOST_SYSTEMS = 30  # in one grid
MOST_SYSTEMS_ABREAST, MOST_METRICS_ABREAST = 2, 3  # columns of one grid
REFERENCE, OTHER = "reference", "other metric"
SIGNED_TICKS = ((-1.0, "-1"), (0.0, "0"), (1.0, "1"))
SIDE_BY_SIDE = (ESTIMATE.show, ESTIMATE.show_bounds)
INTERVAL_FIELDS = ("coverage", "robustness", "stability")


@dataclass(frozen=True)
class MetaEvaluationSettings:
    """Settings of a meta-evaluation: level of intervals, resamples, level of tests, unanimity."""

    level: Level = 0.95
    resamples: Resamples = 1_000
    seed: Seed = 0
    alpha: Annotated[
        float,
        Setting("level at which systems are significantly different", flag="--significance-level"),
    ] = 0.05
    unanimity: Annotated[
        Unanimity,
        Setting("what an improvement for all references is: no loss, or a gain for each"),
    ] = "weak"

    def __post_init__(self) -> None:
        if not (isinstance(self.level, Real) and 0.5 <= self.level < 1.0):
            raise BadOption(f"The level of intervals is 0.5 to below 1, not {self.level!r}.")
        least = 1.0 / (self.resampling.count + 1)
        if not (isinstance(self.alpha, Real) and least <= self.alpha <= 0.5):
            raise BadOption(
                f"alpha is the level of tests, from 1 / (resamples + 1) to 0.5, not {self.alpha!r}."
            )
        if self.unanimity not in get_args(Unanimity):
            choices = ", ".join(get_args(Unanimity))
            raise BadOption(f"unanimity={self.unanimity!r} is not one of {choices}.")

    @property
    def resampling(self) -> Resampling:
        """The resamples, checked."""
        return Resampling(self.resamples, self.seed)


@dataclass(frozen=True)
class MetricEvaluation:
    """One metric: its coverage, and how far its rankings can be trusted.

    `behind_best` is its coverage less that of the best metric. `undefined_share` is that of systems
    and test cases without a value, `infinite_share` of those with an infinite one.
    `unranked_reason` says why its coverage cannot be compared with that of others, `refusal` why
    the metric cannot be computed at all. `values` [S, T] are those of each system and test case.
    """

    metric: Metric
    coverage: Estimate
    behind_best: Estimate | None
    robustness: Estimate
    discriminative_power: float
    stability: Estimate
    undefined_share: float = math.nan
    infinite_share: float = math.nan
    unranked_reason: str | None = None
    refusal: str | None = None
    values: Array | None = field(default=None, compare=False)

    @property
    def reason(self) -> str | None:
        """Why something is undefined, without an interval, or not ranked."""
        if self.refusal is not None or self.unranked_reason == FEW_SYSTEMS_REASON:
            return self.unranked_reason
        reasons = [
            why for name, why in UNDEFINED_REASONS.items() if math.isnan(float(getattr(self, name)))
        ]
        for name in INTERVAL_FIELDS:
            estimate: Estimate = getattr(self, name)
            if estimate.note is not None and not math.isnan(estimate.value):
                reasons.append(f"its {name} has no interval: {estimate.note}")
        if self.unranked_reason not in {None, self.coverage.note}:
            reasons.insert(0, str(self.unranked_reason))
        return "; ".join(reasons) or None

    def average_systems(self, level: float) -> list[CaseAverage]:
        """Return the mean over test cases of each system, with test cases as the sample."""
        if self.values is None:
            return []
        found = [
            CaseValues(row, np.full_like(row, np.nan), self.metric.undefined_when)
            for row in self.values
        ]
        return [average_cases(one, level, self.metric.bounds) for one in found]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "coverage": self.coverage.to_dict(),
            "ranked": self.unranked_reason is None,
            "behind_best": None if self.behind_best is None else self.behind_best.to_dict(),
            "robustness": self.robustness.to_dict(),
            "discriminative_power": to_json_number(self.discriminative_power),
            "stability": self.stability.to_dict(),
            "undefined": to_json_number(self.undefined_share),
            "infinite": to_json_number(self.infinite_share),
            "reason": self.reason,
        }


def _join_bounds(prefix: str) -> Estimates:
    return Estimates(
        *SIDE_BY_SIDE, joined=format_with_interval, keys=("low", "high"), prefix=prefix
    )


def rank_by_coverage(coverage: Sequence[Estimate], unranked: Sequence[str | None]) -> list[int]:
    """Return the places of metrics from the largest coverage to the least.

    Metrics that cannot be ranked follow those that can, and the undefined come last.
    """
    keys = [
        math.inf if math.isnan(estimate.value) else -round(estimate.value, ROUNDING_DIGITS)
        for estimate in coverage
    ]
    return sorted(range(len(keys)), key=lambda place: (unranked[place] is not None, keys[place]))


@dataclass(frozen=True, repr=False, eq=False)
class MetaEvaluation(Result):
    """Meta-evaluation of metrics on many systems in many test cases."""

    panel: Panel  # its groups are the test cases
    metrics: tuple[MetricEvaluation, ...]
    references: tuple[Metric, ...]
    agreement: tuple[tuple[Estimate, ...], ...]  # of each metric with each
    unanimous_improvement: Array  # [S, S]
    settings: MetaEvaluationSettings
    cases_at_random: bool = False  # whether the items were split into test cases at random
    only_case: str | None = None  # that all items were of
    undefined_references: float = 0.0  # share of systems and test cases without a reference
    origin: Origin = field(default_factory=Origin)

    @property
    def has_pairs(self) -> bool:
        """Whether there are enough systems to tell metrics apart by their pairs."""
        return len(self.panel.systems) >= FEWEST_SYSTEMS

    @property
    def cases(self) -> int:
        """The number of test cases."""
        return len(self.panel.group_values)

    @cached_property
    def ranked(self) -> tuple[MetricEvaluation, ...]:
        """The metrics from the largest coverage to the least; those that are not ranked last."""
        columns = (
            [one.coverage for one in self.metrics],
            [one.unranked_reason for one in self.metrics],
        )
        return tuple(self.metrics[place] for place in rank_by_coverage(*columns))

    @property
    def best(self) -> MetricEvaluation | None:
        """The metric of the largest coverage, if any can be ranked."""
        first = self.ranked[0]
        return first if first.unranked_reason is None else None

    def is_reference(self, metric: Metric) -> bool:
        """Tell whether a metric is among those that coverage is measured by."""
        return metric.expression in {one.expression for one in self.references}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        names = [one.metric.expression for one in self.metrics]
        return {
            "schema": SCHEMA,
            "task": "meta",
            "n": self.panel.n,
            "scale": [to_json_label(label) for label in self.panel.scale.labels],
            "systems": list(self.panel.systems),
            "test_cases": self.cases,
            "test_cases_at_random": self.cases_at_random,
            "references": [metric.expression for metric in self.references],
            "level": self.settings.level,
            "resamples": self.settings.resamples,
            "seed": self.settings.seed,
            "alpha": self.settings.alpha,
            "unanimity": self.settings.unanimity,
            "test_case_names": [to_json_label(name) for name in self.panel.group_values],
            "metrics": {
                one.metric.expression: one.to_dict() | {"values": self._describe_values(one)}
                for one in self.metrics
            },
            "agreement": {
                name: {other: one.to_dict() for other, one in zip(names, row, strict=True)}
                for name, row in zip(names, self.agreement, strict=True)
            },
            "unanimous_improvement": {
                name: dict(zip(self.panel.systems, row, strict=True))
                for name, row in zip(
                    self.panel.systems, self.unanimous_improvement.tolist(), strict=True
                )
            },
            "notes": collect_notes(self),
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return how far metrics can be trusted, their agreement, unanimous improvements."""
        return [*chart_trust(self), *chart_agreement(self), *chart_unanimity(self)]

    def _describe_values(self, evaluation: MetricEvaluation) -> dict[str, Any]:
        """Return the mean of a metric and its value in each test case, by system."""
        averages = evaluation.average_systems(self.settings.level)
        values = [] if evaluation.values is None else evaluation.values.tolist()
        return {
            system: average.estimate.to_dict()
            | {
                "spread": to_json_number(average.spread),
                "cases_with_value": average.cases,
                "by_case": [to_json_number(value) for value in row],
            }
            for system, average, row in zip(self.panel.systems, averages, values, strict=False)
        }

    def tables(self) -> Iterable[Table]:
        """Return the metrics, the mean of each for each system, and its values by test case."""
        columns = [
            Column("metric", kind=NAME, get=lambda one: one.metric.expression, shown=False),
            Column("name", "metric", NAME, self.name_metric, stored=False),
            Column("reference", get=lambda one: self.is_reference(one.metric), shown=False),
            *(
                Column(name, head, Estimates(*shown, keys=("low", "high"), prefix=f"{name}_"))
                for name, head, shown in (
                    ("coverage", "coverage", SIDE_BY_SIDE),
                    ("behind_best", "behind the best", SIDE_BY_SIDE),
                )
            ),
            Column("robustness", kind=_join_bounds("robustness_")),
            Column("discriminative_power", "significant", SHARE),
            Column("stability", kind=_join_bounds("stability_")),
            Column("undefined", kind=SHARE, get=lambda one: one.undefined_share, optional=True),
            Column("infinite", get=lambda one: one.infinite_share, shown=False),
            Column("ranked", get=lambda one: one.unranked_reason is None, shown=False),
            Column("reason", shown=False),
            Column("why", get=_explain_unranked, stored=False),
        ]
        level, counts = self.settings.level, {"systems": len(self.panel.systems)}
        common = counts | {"test_cases": self.cases}
        yield Table("metrics", "Metrics", columns, self.ranked, level, common=common)
        means = [
            {"metric": one.metric.expression, "system": system, "mean": average.estimate}
            for one in self.ranked
            for system, average in zip(
                self.panel.systems, one.average_systems(level), strict=one.values is not None
            )
        ]
        columns = [Column("metric", kind=NAME), Column("system", kind=NAME)]
        head = f"Mean over {self.cases:,} test cases with {format_interval_head(level)}"
        title = f"{head}; JSON has every metric and test case"
        yield Table("means", title, [*columns, Column("mean", kind=JOINED)], means, level)
        cases = [to_json_label(name) for name in self.panel.group_values]
        values = [
            {"metric": one.metric.expression, "system": system, "test_case": case, "value": value}
            for one in self.metrics
            if one.values is not None
            for system, row in zip(self.panel.systems, one.values.tolist(), strict=True)
            for case, value in zip(cases, row, strict=True)
        ]
        yield Table("values", "Values", [*columns, Column("test_case"), Column("value")], values)

    def name_metric(self, one: MetricEvaluation) -> str:
        """Return a metric by its name, with a mark where it is a reference."""
        return one.metric.expression + (" *" if self.is_reference(one.metric) else "")

    def document(self) -> Document:
        """Return the report: what captures most, the metrics, their agreement, the systems."""
        systems = format_count(len(self.panel.systems), "system")
        return Document(
            f"{len(self.metrics)} metrics on {systems} in {self.cases:,} test cases",
            (*(_build_pair_grids(self) if self.has_pairs else []), *_build_value_grids(self)),
            verdict=state_conclusion(self),
            notes=(
                *collect_notes(self),
                *([_explain_coverage(self)] if self.has_pairs else []),
                _describe_source(self),
            ),
        )


def _explain_unranked(evaluation: MetricEvaluation) -> str | None:
    """Say why a metric that has a coverage is not ranked; other reasons are among the notes."""
    return None if math.isnan(evaluation.coverage.value) else evaluation.unranked_reason


def state_conclusion(result: MetaEvaluation) -> str:
    """Say which metric captures most, and whether significantly so."""
    best, references = result.best, join_names(m.expression for m in result.references)
    if not result.has_pairs:
        return _state_values(result)
    if best is None:
        why = dict.fromkeys(str(x.unranked_reason) for x in result.ranked if x.refusal is None)
        reasons = ", or ".join(why)
        return f"Of no metric can be said that it captures most of {references}: {reasons}."
    itself = ", one of them," if result.is_reference(best.metric) else ""
    parts = [
        f"{best.metric.expression}{itself} captures most of {references}: {_format_coverage(best)}."
    ]
    ranked = [one for one in result.ranked if one.unranked_reason is None]
    others = [one for one in ranked if not result.is_reference(one.metric)]
    if itself and others:
        name = others[0].metric.expression
        parts.append(
            f"Of the metrics that are no references, {name} does: {_format_coverage(others[0])}."
        )
    behind = [one for one in ranked if one.behind_best is not None]
    sure = [one.metric.expression for one in behind if one.behind_best and one.behind_best.high < 0]
    unsure = [one.metric.expression for one in behind if one.metric.expression not in sure]
    if sure:
        parts.append(f"It captures significantly more than {join_names(sure)}.")
    if unsure:
        parts.append(f"It is not significantly different from {join_names(unsure)}.")
    if len(ranked) > 1 and not behind:
        parts.append(
            "In most resamples some metric is undefined: which is significantly better is not "
            "known."
        )
    return " ".join(parts)


def _state_values(result: MetaEvaluation) -> str:
    """Say what the first metric is for each of few systems, and that metrics cannot be compared."""
    first = next(one for one in result.metrics if one.values is not None)
    level = format_interval_head(result.settings.level)
    averages = first.average_systems(result.settings.level)
    values = [
        f"{system} {format_with_interval(average.estimate)}"
        for system, average in zip(result.panel.systems, averages, strict=True)
    ]
    return (
        f"Mean {first.metric.expression} over {result.cases:,} test cases, with {level}: "
        f"{join_names(values)}. Which metric deserves trust cannot be said: "
        f"{first.unranked_reason}."
    )


def collect_notes(result: MetaEvaluation) -> list[str]:
    """Return what a reader should know before trusting the numbers."""
    notes = list(result.origin.notes)
    if result.cases_at_random:
        only = result.only_case
        why = "No test cases are named" if only is None else f"{only} is the only test case"
        notes.append(
            f"{why}: the items were split at random into {result.cases} parts of equal size "
            f"(seed {result.settings.seed})."
        )
    systems = len(result.panel.systems)
    few_units = [f"{systems} systems"] if result.has_pairs and systems < FEW_UNITS else []
    few_units += [f"{result.cases} test cases"] if result.cases < FEW_UNITS else []
    if few_units:
        notes.append(f"{' and '.join(few_units)} are few: all confidence intervals are rough.")
    if result.undefined_references:
        notes.append(
            f"A reference is undefined in {format_percent(result.undefined_references)} of the "
            "systems' test cases, where nobody improves on anybody."
        )
    infinite = [one.metric.expression for one in result.metrics if one.infinite_share > 0]
    if infinite:
        notes.append(
            f"Infinite for a system in a test case, {join_names(infinite)}: so is the mean of "
            "that system. Two such systems have no difference, and no pair is significantly "
            "different."
        )
    notes += _describe_undefined(result)
    undefined_shares = {
        one.metric.expression: one.coverage.undefined_share for one in result.metrics
    }
    partial = {name: share for name, share in undefined_shares.items() if 0 < share < 1}
    if partial:
        notes.append(
            f"Up to {format_percent(max(partial.values()))} of the resamples have no coverage and "
            f"are left out, of {join_names(partial)}."
        )
    return notes


def _describe_undefined(result: MetaEvaluation) -> list[str]:
    """Say why metrics have no values or no intervals, those with the same reason together."""
    by_reason = defaultdict(list)
    for one in result.metrics:
        if one.reason is not None and (result.has_pairs or one.refusal is not None):
            by_reason[one.reason].append(one.metric.expression)
    return [f"{join_names(names)}: {reason}." for reason, names in by_reason.items()]


# --- grids ---------------------------------------------------------------------------------------


def _describe_source(result: MetaEvaluation) -> str:
    origin, panel = result.origin, result.panel
    gold = f"Gold: {origin.gold}; {panel.n:,} items on {panel.scale}."
    return " ".join(describe_files(origin, panel, gold))


def _build_pair_grids(result: MetaEvaluation) -> list[Grid]:
    """Return what pairs of systems say of the metrics: the ranked ones, and apart the others."""
    table = result.get_table("metrics")
    ranked = [one for one in result.ranked if one.unranked_reason is None]
    others = [one for one in result.ranked if one.unranked_reason is not None]
    references = join_names(metric.expression for metric in result.references)
    trust = (
        f"Rankings of systems with {format_interval_head(result.settings.level)} (pairs "
        f"significantly different at alpha = {result.settings.alpha:g})"
    )
    columns = ("robustness", "stability", "discriminative_power", "undefined")
    tables = (
        table.select(
            f"Coverage of {references}", "name", "coverage", "behind_best", records=ranked
        ),
        table.select("Metrics that are not ranked", "name", "coverage", "why", records=others),
        table.select(trust, "name", *columns),
    )
    grids = [grid for each in tables for grid in each.grids()]
    return [*grids, _build_agreement_grid(result), _build_system_grid(result)]


def _explain_coverage(result: MetaEvaluation) -> str:
    settings = result.settings
    return (
        "Coverage is the rank correlation, over pairs of systems, of a metric's differences with "
        "the unanimous improvement for all references; a metric that is a reference (*) has a "
        f"head start. Confidence intervals are from {settings.resamples:,} resamples (seed "
        f"{settings.seed}) of test cases "
        "and systems, never of pairs; those of differences hold for all pairs of metrics at once."
    )


def _build_agreement_grid(result: MetaEvaluation) -> Grid:
    """Return for each metric the one that ranks the systems most and least alike.

    An agreement without an interval, such as one over two systems, is in the JSON report only.
    """
    names = [one.metric.expression for one in result.metrics]
    places = {one.metric.expression: index for index, one in enumerate(result.metrics)}
    header = ("metric", "most like", "agreement", "least like", "agreement")
    rows: list[tuple[Cell, ...]] = []
    for one in result.ranked:
        own = places[one.metric.expression]
        agreement = result.agreement[own]
        others = [k for k in range(len(names)) if k != own and not math.isnan(agreement[k].low)]
        others.sort(key=lambda k: -agreement[k].value)
        row: list[Cell] = [result.name_metric(one)]
        for k in [*others[:1], *others[-1:]]:
            row += [names[k], format_with_interval(agreement[k])]
        rows.append((*row, *[None] * (len(header) - len(row))))
    level = format_interval_head(result.settings.level)
    title = f"Agreement of metrics (Spearman over systems) with {level}; JSON has all pairs"
    return Grid(title, header, tuple(rows))


def _build_system_grid(result: MetaEvaluation) -> Grid:
    """Return the unanimous improvement of systems: of all pairs, or of each over all others."""
    names, improvement = result.panel.systems, result.unanimous_improvement
    mean = improvement.sum(axis=1) / (len(names) - 1)
    order = np.argsort(-mean, kind="stable")
    title = "Unanimous improvement ratio"
    if len(names) <= MOST_SYSTEMS_PAIRWISE:
        header = ("system", "mean", *(f"over {names[index]}" for index in order))
        rows: list[tuple[Cell, ...]] = [
            (
                names[index],
                float(mean[index]),
                *(None if x == index else float(improvement[index][x]) for x in order),
            )
            for index in order
        ]
        return Grid(title, header, tuple(rows))
    better, worse = (improvement > 0).sum(axis=1), (improvement < 0).sum(axis=1)
    rows = [
        (names[index], float(mean[index]), int(better[index]), int(worse[index]))
        for index in order[:MOST_SYSTEMS]
    ]
    more = len(names) - MOST_SYSTEMS
    title += f" ({more:,} more systems are in the JSON report)" if more > 0 else ""
    header = ("system", "mean", "improves on", "is improved by")
    return Grid(title, header, tuple(rows))


def _build_value_grids(result: MetaEvaluation) -> list[Grid]:
    """Return the mean over test cases of each system: by all metrics, or by the best ones."""
    table, systems = result.get_table("means"), result.panel.systems
    if len(systems) <= MOST_SYSTEMS_ABREAST:
        return table.cross("metric", "system", "mean")
    computed = [one.metric.expression for one in result.ranked if one.values is not None]
    shown, first = {*computed[:MOST_METRICS_ABREAST]}, {*systems[:MOST_SYSTEMS]}
    kept = [x for x in table.records if x["metric"] in shown and x["system"] in first]
    return replace(table, records=kept).cross("system", "metric", "mean")


def _format_coverage(evaluation: MetricEvaluation) -> str:
    found = evaluation.coverage
    interval = format_interval(found.low, found.high)
    return f"coverage {format_cell(found.value)}" + (f" ({interval})" if interval else "")


# --- charts --------------------------------------------------------------------------------------


def chart_trust(result: MetaEvaluation) -> list[Chart]:
    """Return coverage, robustness, stability and discriminative power of each metric."""
    measures: dict[str, Callable[[MetricEvaluation], Estimate]] = {
        "coverage": lambda one: one.coverage,
        "robustness": lambda one: one.robustness,
        "stability": lambda one: one.stability,
        "discriminative power": lambda one: make_point_estimate(one.discriminative_power),
    }
    plots = {
        name: ForestPlot(
            [
                ForestRow(
                    one.metric.expression,
                    get_estimate(one),
                    one.reason or "",
                    REFERENCE if result.is_reference(one.metric) else OTHER,
                )
                for one in result.ranked
            ],
            Axis(name),
            result.settings.level,
            "metric",
        )
        for name, get_estimate in measures.items()
    }
    known = [plot for plot in plots.values() if plot.shown]
    if not known:
        return []
    first, *more = known
    return [
        first.make_chart(
            "trust",
            "How far each metric can be trusted",
            "Metrics from the largest coverage to the least, with confidence intervals: whether "
            "they see unanimous improvements, and rank systems alike in other test cases.",
            more=[plot.make_panel(x=plot.axis) for plot in more],
        )
    ]


def chart_agreement(result: MetaEvaluation) -> list[Chart]:
    """Return how alike each two metrics rank the systems."""
    names = [one.metric.expression for one in result.metrics]
    order = [names.index(one.metric.expression) for one in result.ranked][:MOST_ROWS]
    if not any(not math.isnan(x.value) for row in result.agreement for x in row):
        return []
    level = result.settings.level

    def make_cell(i: int, j: int) -> ShadedCell:
        found = result.agreement[i][j]
        text = format_value_with_interval(found, level)
        return ShadedCell(
            names[j],
            names[i],
            found.value,
            "" if math.isnan(found.value) else f"{found.value:.2f}",
            f"{names[i]} and {names[j]}: {text}",
        )

    levels = tuple(names[k] for k in order)
    return [
        Chart(
            "agreement",
            "How alike metrics rank the systems",
            "The rank correlation of each two metrics over systems; metrics from the largest "
            "coverage to the least.",
            Axis("", "ordered", levels),
            Axis("metric", "ordered", levels),
            (ChartPanel(tuple(make_cell(i, j) for i in order for j in order)),),
            shades="rank correlation",
            shade_ticks=SIGNED_TICKS,
        )
    ]


def chart_unanimity(result: MetaEvaluation) -> list[Chart]:
    """Return how often each system improves on each for all references at once."""
    ratios = np.asarray(result.unanimous_improvement, float)
    systems = _sort_systems(result.panel.systems, ratios)
    if not 2 <= len(systems) <= MOST_ROWS:
        return []
    place = {name: k for k, name in enumerate(result.panel.systems)}
    cells = tuple(
        ShadedCell(
            column,
            row,
            ratio,
            f"{ratio:+z.2f}",
            f"{row} over {column}: unanimous improvement ratio {ratio:+z.3f}",
        )
        for row in systems
        for column in systems
        if row != column
        for ratio in [float(ratios[place[row], place[column]])]
    )
    return [
        Chart(
            "unanimity",
            "Unanimous improvements between systems",
            "The share of test cases in which the row improves on the column for all references "
            "at once, less the share of the reverse.",
            Axis("improved on", "ordered", systems),
            Axis("system", "ordered", systems),
            (ChartPanel(cells),),
            shades="unanimous improvement ratio",
            shade_ticks=SIGNED_TICKS,
        )
    ]


def _sort_systems(systems: Sequence[str], ratios: NDArray[np.float64]) -> tuple[str, ...]:
    """Return systems by their mean improvement on others, the largest first."""
    order = np.argsort(-np.nan_to_num(ratios.mean(axis=1)), kind="stable")
    return tuple(systems[k] for k in order.tolist())
