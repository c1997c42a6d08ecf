"""Calibration: what predicted probabilities are worth."""

import math
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any

import numpy as np

from ordinate.errors import NoItems
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.multiple_testing import holm
from ordinate.inference.probability_scores import (
    JACKKNIFE_BLOCKS,
    NO_BLOCKS_NOTE,
    PerfectCalibration,
    estimate_probability_metric,
    is_calibration_error,
    simulate_perfect_calibration,
)
from ordinate.metrics import Metric
from ordinate.metrics.calibration import count_ordered_pairs
from ordinate.metrics.proper_scores import DECOMPOSITION_SIGNS, DECOMPOSITION_TERMS, decompose_score
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_count,
    format_p_value,
    format_percent,
    join_names,
)
from ordinate.render.tables import (
    ESTIMATE,
    NAME,
    P_VALUE,
    SHARE,
    TEXT,
    Column,
    Kind,
    Table,
    leave_undefined_empty,
    to_plain,
)
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    ScaleDeclaration,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    BETTER_VALUES,
    Record,
    Result,
    record_call,
    to_json_label,
)
from ordinate.results.calibration_curves import SIGNIFICANT, CalibrationCurves
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.probabilities import (
    IN_ORDER_OF_SCALE,
    ColumnLabels,
    arrange_columns,
    take_labels,
)
from ordinate.summaries.reliability import Reliability, ReliabilityParts
from ordinate.summaries.tabulation import check_same_length, convert_weights, encode_positions

DEFAULT_METRICS = (
    "ece",
    "ece_debiased",
    "mce",
    "classwise_ece",
    "cumulative_ece",
    "brier",
    "log_loss",
    "rps",
    "c_index",
)
LEGEND = (
    "'Gold shares' is what the same probabilities for every item reach, those of gold. 'If "
    "calibrated' is what the calibration error of a perfectly calibrated system of this size is on "
    "average, and p how often it is as large as here."
)
DEPENDENT_EVENTS_NOTE = (
    "Errors of several events that are averaged have no p: the events of different levels depend "
    "on each other."
)
GOLD_SHARES, IF_CALIBRATED = "gold shares", "if calibrated"
KNOWN, KNOWN_P = leave_undefined_empty(TEXT), leave_undefined_empty(P_VALUE)
OR_NONE = Kind(lambda x: "n/a" if math.isnan(x) else x)
SELDOM = 0.5  # share of items whose most probable level is the predicted one
SLIGHT_GAP = 0.01  # between confidence and accuracy, which names no side
NOT_CLUSTERED_NOTE = "Intervals of probabilities take items for units, not the clusters."


@dataclass(frozen=True)
class ProbabilityScore:
    """One metric of probabilities, and what the gold shares alone would reach."""

    metric: Metric
    estimate: Estimate
    perfect_calibration: PerfectCalibration | None = None  # of calibration errors
    base_rate: float = math.nan  # the same probabilities for every item: the shares of gold
    error_bound: float | None = None  # how far from its exact value it is at most, where known

    def __float__(self) -> float:
        return self.estimate.value

    @property
    def value(self) -> float:
        """The value itself."""
        return self.estimate.value

    @property
    def better(self) -> str:
        """Which values are better."""
        return BETTER_VALUES[self.metric.direction]

    @property
    def if_calibrated(self) -> float | None:
        """What a calibration error of a calibrated system is on average."""
        return None if self.perfect_calibration is None else self.perfect_calibration.mean

    @property
    def p(self) -> float | None:
        """How often a calibration error of a calibrated system is as large."""
        return None if self.perfect_calibration is None else self.perfect_calibration.p

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return self.estimate.to_dict() | {
            "direction": self.metric.direction,
            "base_rate": to_plain(self.base_rate),
            "if_calibrated": to_plain(self.perfect_calibration),
            "approximate": self.metric.name == "ace" or self.error_bound is not None,
            "error_bound": self.error_bound,
        }


@dataclass(frozen=True, repr=False, eq=False)
class Calibration(Result):
    """The metrics of predicted probabilities, their bins, and each level.

    >>> gold, rows = [0, 1, 1], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]
    >>> result = Calibration.of(gold, rows, scale="0..1", metrics="brier,ece")
    >>> round(result.metrics["brier"].value, 3)
    0.307
    """

    summary: Reliability
    metrics: dict[str, ProbabilityScore]
    bins: int
    interval: ConfidenceIntervals | None = None
    clustered: bool = False  # items come in clusters, which intervals do not know of
    agreement: float = math.nan  # of the most probable level with predictions that stand beside

    @classmethod
    def of(
        cls,
        gold: Any,
        probabilities: Any,
        *,
        scale: ScaleDeclaration = None,
        metrics: MetricSelection = None,
        columns: ColumnLabels = None,
        weights: Any = None,
        missing: Any = "error",
        renormalize: bool = False,
        bins: int = 10,
        interval: IntervalOption = 0.95,
        seed: int | None = None,
    ) -> "Calibration":
        """Evaluate probabilities, one column for each level; `columns` are those of `evaluate`."""
        intervals = resolve_intervals(interval, seed=seed)
        declared = resolve_scale(scale, gold, gold)
        selected = select_probability_metrics(metrics, bins)
        blocks = Reliability.of(
            gold,
            probabilities,
            declared,
            collect_required_parts(selected, bins),
            columns=columns,
            weights=weights,
            missing=missing,
            renormalize=renormalize,
            blocks=JACKKNIFE_BLOCKS,
        )
        return cls.from_blocks(blocks, selected, bins=bins, interval=intervals)

    @classmethod
    @record_call
    def from_blocks(
        cls,
        blocks: Reliability,
        metrics: list[Metric],
        *,
        bins: int = 10,
        interval: IntervalOption = 0.95,
        clustered: bool = False,
    ) -> "Calibration":
        """Evaluate a summary that is already made, spread over blocks."""
        intervals, summary = resolve_intervals(interval), blocks.pooled
        return cls(
            summary=summary,
            metrics={
                metric.expression: _score_metric(metric, blocks, summary, intervals)
                for metric in metrics
            },
            bins=bins,
            interval=intervals,
            clustered=clustered,
        )

    # --- the parts of a report -----------------------------------------------------------------

    @cached_property
    def curves(self) -> CalibrationCurves:
        """The calibration of the events "gold is at most level k" by isotonic regression."""
        return CalibrationCurves(self.summary, self.interval, self.clustered)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is doubtful about columns, and what the intervals do not take into account."""
        clusters = (NOT_CLUSTERED_NOTE,) if self.clustered and self.interval is not None else ()
        lacking = (
            f"{name} has no interval: {NO_BLOCKS_NOTE}."
            for name, score in self.metrics.items()
            if score.estimate.note == NO_BLOCKS_NOTE
        )
        return (*self._doubt_columns(), *clusters, *lacking)

    def _doubt_columns(self) -> Iterator[str]:
        """Say which levels have no probability, and that predictions say something else."""
        if self.agreement < SELDOM:
            yield (
                f"The most probable level is the predicted one for {format_percent(self.agreement)}"
                " of the items only. Are the columns of probabilities those of the levels, in the "
                "order that was said?"
            )
        given = self.summary.bins["levels", self.bins].f.sum(axis=-1)
        names = zip(self.summary.scale.names, given, strict=True)
        if lacking := [name for name, weight in names if weight == 0.0]:
            yield f"No column, or no item, has a probability of {join_names(lacking)}: it is 0."

    def list_bins(self) -> list[Record]:
        """Return the bins of the highest probability: range, count, accuracy, confidence, gap."""
        top = self.summary.bins["top", self.bins]
        edges = np.linspace(0.0, 1.0, self.bins + 1)
        return [
            {
                "low": float(edges[k]),
                "high": float(edges[k + 1]),
                "count": int(top.items[0, k]),
                "accuracy": float(top.frequency[0, k]),
                "confidence": float(top.confidence[0, k]),
                "gap": float(top.confidence[0, k] - top.frequency[0, k]),
                "share": float(top.weight[0, k] / top.weight[0].sum()),
            }
            for k in range(self.bins)
        ]

    def list_levels(self) -> list[Record]:
        """Return each level when it was predicted, and its probability over all items."""
        argmax, scale = self.summary.argmax, self.summary.scale
        mean = self.summary.bins["levels", self.bins].f.sum(axis=-1) / self.summary.weight
        return [
            {
                "level": to_json_label(label),
                "name": scale.names[k],
                "average_probability": _divide_or_nan(
                    self.summary.confidence[k], argmax.predicted[k]
                ),
                "accuracy": _divide_or_nan(argmax.counts[k, k], argmax.predicted[k]),
                "count": int(argmax.items[:, k].sum()),
                "mean_probability": float(mean[k]),
                "gold_share": float(argmax.gold_share[k]),
            }
            for k, label in enumerate(scale.labels)
        ]

    def decompose_scores(self) -> dict[str, dict[str, float]]:
        """Return the five terms of Brier score and RPS, which sum to the score."""
        steps = len(self.summary.scale) - 1
        events = {"brier": ("levels", 1.0), "rps": ("cumulative", 1.0 / steps)}
        decompositions = {}
        for name, (event, factor) in events.items():
            terms = decompose_score(self.summary.bins[event, self.bins]).sum(axis=-1) * factor  # type: ignore[index] # a name of events
            parts = {term: float(x) for term, x in zip(DECOMPOSITION_TERMS, terms, strict=True)}
            decompositions[name] = parts | {"score": float(DECOMPOSITION_SIGNS @ terms)}
        return decompositions

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        summary = self.summary
        return {
            "n": summary.n,
            "scale": [to_json_label(label) for label in summary.scale.labels],
            "metrics": to_plain(self.metrics),
            "calibration_curves": self.curves.to_dict(),
            "bins": self.get_table("bins").to_list(),
            "per_level": self.get_table("per_level").to_list(),
            "decomposition": self.get_table("decomposition").nest("metric"),
            "clipped": None if summary.scores is None else int(summary.scores.clipped),
            "interval": None if self.interval is None else self.interval.level,
            "dropped": summary.dropped,
            "notes": list(self.notes),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return the metrics, and the reliability of each event "gold is at most level k"."""
        yield from self._chart_metrics()
        yield self.curves.make_chart(self.bins)

    def _chart_metrics(self) -> list[Chart]:
        """Return each metric, beside gold shares and calibrated systems."""
        strips = []
        for score in self.metrics.values():
            others: dict[str, Estimate | float] = {}
            if not math.isnan(score.base_rate):
                others[GOLD_SHARES] = score.base_rate
            if score.perfect_calibration is not None:
                others[IF_CALIBRATED] = score.perfect_calibration.mean
            strips.append(MetricStrip(score.metric, score.estimate, others))
        return MetricStrips(strips, self.level).make_charts(
            "Each metric of the probabilities with its confidence interval, on an axis of its own, "
            "beside the same probabilities for every item, those of gold, and beside what a "
            "calibrated system of this size has on average.",
            "probability_metrics",
            "Metrics of the probabilities",
        )

    @property
    def level(self) -> float | None:
        """The level of the intervals, None where there are none."""
        return None if self.interval is None else self.interval.level

    def tables(self) -> Iterable[Table]:
        """Return the metrics, bins, levels, terms of the scores, and the events with curves."""
        columns = [
            Column("metric", kind=NAME, get=lambda score: score.metric.expression),
            Column("better", kind=NAME, stored=False),
            Column("value", kind=ESTIMATE, get=lambda score: score.estimate),
            Column("base_rate", GOLD_SHARES, KNOWN, optional=True),
            Column("if_calibrated", IF_CALIBRATED),
            Column("p", kind=KNOWN_P),
        ]
        scores, n = list(self.metrics.values()), {"n": self.summary.n}
        yield Table("metrics", "Probabilities", columns, scores, self.level, common=n)
        columns = [
            Column("range", "highest probability", NAME, self._format_range, stored=False),
            Column("low", shown=False),
            Column("high", shown=False),
            Column("count"),
            Column("share", kind=SHARE, stored=False),
            *(Column(key, kind=OR_NONE) for key in ("accuracy", "confidence", "gap")),
        ]
        yield Table("bins", "Confidence bins", columns, self.list_bins())
        columns = [
            Column("level", shown=False),
            Column("name", "level", NAME),
            Column("average_probability", "probability when most probable", OR_NONE),
            Column("accuracy", "accuracy when most probable", OR_NONE),
            Column("count", "most probable", optional=True),
            Column("mean_probability", "mean probability", OR_NONE, optional=True),
            Column("gold_share", "gold share", OR_NONE),
        ]
        yield Table("per_level", "Probabilities of the levels", columns, self.list_levels())
        columns = [
            Column("metric", "score", NAME),
            *(Column(term, term.replace("_", " ")) for term in DECOMPOSITION_TERMS),
            Column("score", "sum"),
        ]
        sums = [{"metric": name} | x for name, x in self.decompose_scores().items()]
        yield Table("decomposition", "Where the scores come from", columns, sums)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return flat records by the name of their table, the points of the curves among them."""
        curves = {"events": self.curves.list_events()}
        return super().list_tables() | curves | {"calibration_curves": self.curves.list_points()}

    def _format_range(self, row: Record) -> str:
        return format_bin_range(row, self.bins)

    def document(self) -> Document:
        """Return the report for people."""
        tables = {table.name: table for table in self.tables()}
        used = [row for row in tables["bins"].records if row["count"]]
        return Document(
            f"Probabilities of {self.summary.n:,} items on {self.summary.scale}",
            (
                *tables["metrics"].grids(),
                *replace(tables["bins"], records=used).grids(),
                *self.curves.make_grids(),
                *tables["per_level"].grids(),
            ),
            verdict=self._write_verdict(),
            notes=(*self.notes, *self._list_notes()),
            details=tuple(tables["decomposition"].grids()),
        )

    def _write_verdict(self) -> str:
        """Say whether the probabilities are calibrated, and to which side they are not."""
        top = self.summary.bins["top", self.bins]
        confidence, accuracy = (float(x.sum() / top.weight.sum()) for x in (top.f, top.o))
        right = f"the most probable level is right for {format_cell(accuracy)} of the items"
        sides = f"mean confidence {format_cell(confidence)}, {right}"
        side = "overconfident" if confidence > accuracy else "underconfident"
        tests = self._list_tests()
        if not tests:
            return f"On average the probabilities are {side}: {sides}."
        adjusted = holm([test.p for _, _, test in tests])
        least = int(adjusted.argmin())
        name, value, test = tests[least]
        error = f"{name} {format_cell(value)}, {format_cell(test.mean)} if calibrated"
        p = f"p {format_p_value(test.p)}, {format_p_value(adjusted[least])} by Holm"
        found = f"{error}, {p} over {format_count(len(tests), 'test')}"
        if adjusted[least] > SIGNIFICANT:
            return f"There is no sign of miscalibration ({found}): {sides}."
        by_turns = "over- and underconfident by turns"
        side = by_turns if abs(confidence - accuracy) < SLIGHT_GAP else side
        return f"The probabilities are {side} ({found}): {sides}."

    def _list_tests(self) -> list[tuple[str, float, PerfectCalibration]]:
        """Return the tests of calibration: the first error that has one, and those of events."""
        found = [
            (name, score.value, score.perfect_calibration)
            for name, score in self.metrics.items()
            if score.perfect_calibration and not math.isnan(score.perfect_calibration.p)
        ]
        curves = zip(self.curves.names, self.curves.events, strict=True)
        return found[:1] + [
            (f'MCB of "{name}"', curve.terms["miscalibration"], curve.perfect_calibration)
            for name, curve in curves
            if curve.perfect_calibration is not None
        ]

    def _list_notes(self) -> list[str]:
        lines, errors = (
            [LEGEND, *self.curves.list_notes()],
            [score.perfect_calibration for score in self.metrics.values()],
        )
        if any(perfect is not None and math.isnan(perfect.p) for perfect in errors):
            lines.append(DEPENDENT_EVENTS_NOTE)
        scores = self.summary.scores
        if scores is not None and scores.clipped:
            lines.append(
                f"{int(scores.clipped):,} items had next to no probability at their gold level; "
                "the log loss takes it for 2.2e-16."
            )
        return lines + [
            f"{name} is at most {score.error_bound:.2g} away from its exact value."
            for name, score in self.metrics.items()
            if score.error_bound is not None
        ]


def calibrate_subgroups(
    gold: Any,
    probabilities: Any,
    by: Any,
    *,
    scale: Scale,
    columns: ColumnLabels,
    weights: Any,
    **options: Any,
) -> dict[Hashable, Calibration]:
    """Return the calibration of each subgroup, as that of its items alone."""
    rows = arrange_columns(scale, probabilities, columns, gold)
    weighing = convert_weights(weights, len(rows))
    truth = take_labels(scale, encode_positions(scale, gold, "gold", weighing))
    subgroups = factorize_column(by, "by")
    check_same_length(len(rows), len(subgroups.codes), "rows of probabilities", "values of by")
    parts = {}
    for code, name in enumerate(subgroups.values):
        own = subgroups.codes == code
        weight = None if weighing is None else weighing[own]
        with suppress(NoItems):  # all of them are dropped
            parts[name] = Calibration.of(
                *(truth[own], rows[own]),
                **options | {"scale": scale, "columns": IN_ORDER_OF_SCALE, "weights": weight},
            )
    return parts


def select_probability_metrics(metrics: MetricSelection, bins: int) -> list[Metric]:
    """Return the selected metrics of probabilities, in the report's bins."""
    selected = select_metrics(DEFAULT_METRICS if metrics is None else metrics, Reliability)
    return [
        metric.with_options(bins=bins)
        if bins != 10 and "bins" in metric.parameters and "bins" not in metric.options
        else metric
        for metric in selected
    ]


def collect_required_parts(metrics: list[Metric], bins: int) -> ReliabilityParts:
    """Return what the metrics and the grids of the report read."""
    report = ReliabilityParts(
        frozenset({("top", bins), ("levels", bins), ("cumulative", bins)}),
        scores=True,
        curves=True,
        order=any(metric.name == "c_index" for metric in metrics),
    )
    return reduce(or_, (metric.required_parts for metric in metrics), report)


def _score_metric(
    metric: Metric, blocks: Reliability, summary: Reliability, intervals: ConfidenceIntervals | None
) -> ProbabilityScore:
    if intervals is None:
        estimate = make_point_estimate(float(metric(summary)))
    else:
        estimate = estimate_probability_metric(metric, blocks, intervals)
    perfect = (
        simulate_perfect_calibration(metric, summary, intervals)
        if intervals is not None and is_calibration_error(metric)
        else None
    )
    return ProbabilityScore(
        metric=metric,
        estimate=estimate,
        perfect_calibration=perfect,
        base_rate=_score_gold_shares(metric, summary),
        error_bound=_compute_error_bound(metric, summary),
    )


def _compute_error_bound(metric: Metric, summary: Reliability) -> float | None:
    """Return how far from its exact value a metric is at most: pairs in one bin count half."""
    if metric.name != "c_index" or summary.exact_ranking is not None:
        return None
    _, tied, pairs = count_ordered_pairs(summary)
    return float(tied / pairs / 2) if pairs else 0.0


def _score_gold_shares(metric: Metric, summary: Reliability) -> float:
    """Return a proper score of the gold shares as everybody's probabilities."""
    shares = summary.gold_share
    if metric.name == "brier":
        return float(1.0 - (shares**2).sum())
    if metric.name == "log_loss":
        there = shares[shares > 0]
        return float((there * -np.log(there)).sum())
    if metric.name in {"rps", "rps_sum"}:
        below = shares.cumsum()[:-1]
        total = float((below * (1.0 - below)).sum())
        return total / len(below) if metric.name == "rps" else total
    return math.nan


def _divide_or_nan(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


def format_bin_range(row: dict[str, Any], bins: int) -> str:
    """Return the range of a bin as people read it."""
    digits = 2 if bins <= 100 else 3
    return f"({row['low']:.{digits}f}, {row['high']:.{digits}f}]"
