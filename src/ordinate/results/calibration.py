"""Calibration: what predicted probabilities are worth, as a result and as a text report."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.estimates import make_point_estimate, to_json_number
from ordinate.inference.probability_scores import (
    JACKKNIFE_BLOCKS,
    PerfectCalibration,
    estimate_probability_metric,
    is_calibration_error,
    simulate_perfect_calibration,
)
from ordinate.metrics import Metric
from ordinate.metrics.calibration import count_ordered_pairs
from ordinate.metrics.proper_scores import DECOMPOSITION_SIGNS, DECOMPOSITION_TERMS, decompose_score
from ordinate.render import Document, Grid, html, render
from ordinate.render.document import Cell, format_interval
from ordinate.results.baselines import to_json_label
from ordinate.results.evaluation import (
    BETTER_VALUES,
    IntervalOption,
    MetricSelection,
    ScaleDeclaration,
    resolve_intervals,
    select_metrics,
)
from ordinate.scale import resolve_scale
from ordinate.summaries.reliability import Reliability, ReliabilityParts

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
NOT_CLUSTERED_NOTE = "Intervals of probabilities take items for units, not the groups."
APPROXIMATE_METRICS = ("ace", "c_index")  # found in fine bins


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return self.estimate.to_dict() | {
            "direction": self.metric.direction,
            "base_rate": to_json_number(self.base_rate),
            "if_calibrated": None
            if self.perfect_calibration is None
            else self.perfect_calibration.to_dict(),
            "approximate": self.metric.name in APPROXIMATE_METRICS,
            "error_bound": self.error_bound,
        }


@dataclass(frozen=True)
class Calibration:
    """The metrics of predicted probabilities, their bins, and each level.

    >>> gold, rows = ["low", "high", "high"], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]
    >>> result = Calibration.of(gold, rows, scale="low,high", metrics="brier,ece")
    >>> round(result.metrics["brier"].value, 3)
    0.307
    """

    summary: Reliability
    metrics: dict[str, ProbabilityScore]
    bins: int
    interval: ConfidenceIntervals | None = None
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        gold: Any,
        probabilities: Any,
        *,
        scale: ScaleDeclaration = None,
        metrics: MetricSelection = None,
        columns: Iterable[Any] | None = None,
        weights: Any = None,
        missing: Any = "error",
        renormalize: bool = False,
        bins: int = 10,
        interval: IntervalOption = 0.95,
    ) -> "Calibration":
        """Judge a table of probabilities, one column for each level in the order of the scale."""
        declared = resolve_scale(scale, gold, gold)
        wanted = select_probability_metrics(metrics, bins)
        blocks = Reliability.of(
            declared,
            gold,
            probabilities,
            collect_required_parts(wanted, bins),
            columns=columns,
            weights=weights,
            missing=missing,
            renormalize=renormalize,
            blocks=JACKKNIFE_BLOCKS,
        )
        return cls.from_blocks(blocks, wanted, bins=bins, interval=interval)

    @classmethod
    def from_blocks(
        cls,
        blocks: Reliability,
        metrics: list[Metric],
        *,
        bins: int = 10,
        interval: IntervalOption = 0.95,
        notes: tuple[str, ...] = (),
    ) -> "Calibration":
        """Judge a summary that is already made, spread over blocks."""
        how, table = resolve_intervals(interval), blocks.pooled
        found = {metric.expression: _score_metric(metric, blocks, table, how) for metric in metrics}
        return cls(table, found, bins, how, notes)

    # --- the parts of a report -----------------------------------------------------------------

    def list_bins(self) -> list[dict[str, Any]]:
        """Return the bins of the highest probability: range, count, accuracy, confidence, gap."""
        found = self.summary.bins["top", self.bins]
        edges = np.linspace(0.0, 1.0, self.bins + 1)
        return [
            {
                "low": float(edges[k]),
                "high": float(edges[k + 1]),
                "count": int(found.items[0, k]),
                "accuracy": float(found.frequency[0, k]),
                "confidence": float(found.confidence[0, k]),
                "gap": float(found.confidence[0, k] - found.frequency[0, k]),
            }
            for k in range(self.bins)
        ]

    def list_levels(self) -> list[dict[str, Any]]:
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
        found = {}
        for name, (kind, factor) in events.items():
            terms = decompose_score(self.summary.bins[kind, self.bins]).sum(axis=-1) * factor  # type: ignore[index] # a kind of events
            parts = {term: float(x) for term, x in zip(DECOMPOSITION_TERMS, terms, strict=True)}
            found[name] = parts | {"score": float(DECOMPOSITION_SIGNS @ terms)}
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        table = self.summary
        return {
            "n": table.n,
            "scale": [to_json_label(label) for label in table.scale.labels],
            "metrics": {name: worth.to_dict() for name, worth in self.metrics.items()},
            "bins": [_to_plain_row(row) for row in self.list_bins()],
            "per_level": [_to_plain_row(row) for row in self.list_levels()],
            "decomposition": {
                name: _to_plain_row(row) for name, row in self.decompose_scores().items()
            },
            "clipped": None if table.scores is None else int(table.scores.clipped),
            "interval": None if self.interval is None else self.interval.level,
            "dropped": table.dropped,
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric."""
        return [
            {
                "metric": name,
                "value": worth.value,
                "low": worth.estimate.low,
                "high": worth.estimate.high,
                "method": worth.estimate.method,
                "base_rate": worth.base_rate,
                "if_calibrated": worth.perfect_calibration and worth.perfect_calibration.mean,
                "p": worth.perfect_calibration and worth.perfect_calibration.p,
                "n": self.summary.n,
            }
            for name, worth in self.metrics.items()
        ]

    def document(self) -> Document:
        """Return the report for people."""
        table = self.summary
        title = f"Probabilities of {table.n:,} items on {table.scale}"
        return Document(title, tuple(self.blocks()))

    def blocks(self) -> list[str | Grid]:
        """Return the sentences and grids of the report."""
        grids = [self._bins(), self._levels(), self._make_decomposition_grid()]
        return [self._make_metrics_grid(), *self.notes, *self._write_sentences(), *grids]

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())

    # --- its grids -----------------------------------------------------------------------------

    def _make_metrics_grid(self) -> Grid:
        title = () if self.interval is None else (f"{100 * self.interval.level:g} % interval",)
        header = ("metric", "better", "value", *title, "gold shares", "if calibrated", "p")
        rows = tuple(_make_metric_row(name, w, self.interval) for name, w in self.metrics.items())
        return Grid("Probabilities", header, rows, left=2)

    def _write_sentences(self) -> list[str]:
        lines, errors = [LEGEND], [worth.perfect_calibration for worth in self.metrics.values()]
        if any(perfect is not None and math.isnan(perfect.p) for perfect in errors):
            lines.append(DEPENDENT_EVENTS_NOTE)
        scores = self.summary.scores
        if scores is not None and scores.clipped:
            lines.append(
                f"{int(scores.clipped):,} items had next to no probability at their gold level; "
                "the log loss takes it for 2.2e-16."
            )
        return lines + [
            f"{name} is at most {worth.error_bound:.2g} away from its exact value."
            for name, worth in self.metrics.items()
            if worth.error_bound is not None
        ]

    def _bins(self) -> Grid:
        rows = tuple(
            (
                format_bin_range(row, self.bins),
                row["count"],
                *(_none_if_undefined(row[key]) for key in ("accuracy", "confidence", "gap")),
            )
            for row in self.list_bins()
        )
        header = ("highest probability", "count", "accuracy", "confidence", "gap")
        return Grid("Confidence bins", header, rows)

    def _levels(self) -> Grid:
        keys = ("average_probability", "accuracy", "count", "mean_probability", "gold_share")
        rows = tuple(
            (row["name"], *(_none_if_undefined(row[key]) for key in keys))
            for row in self.list_levels()
        )
        header = (
            "level",
            "probability when predicted",
            "accuracy when predicted",
            "predicted",
            "mean probability",
            "gold share",
        )
        return Grid("Probabilities of the levels", header, rows)

    def _make_decomposition_grid(self) -> Grid:
        header = ("score", *(term.replace("_", " ") for term in DECOMPOSITION_TERMS), "sum")
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (name, *(terms[term] for term in DECOMPOSITION_TERMS), terms["score"])
            for name, terms in self.decompose_scores().items()
        )
        return Grid("Where the scores come from", header, rows)


def select_probability_metrics(metrics: MetricSelection, bins: int) -> list[Metric]:
    """Return the metrics of probabilities that were asked for, in the report's bins."""
    found = select_metrics(metrics or list(DEFAULT_METRICS), Reliability)
    return [
        metric.with_options(bins=bins)
        if bins != 10 and "bins" in metric.parameters and "bins" not in metric.options
        else metric
        for metric in found
    ]


def collect_required_parts(metrics: list[Metric], bins: int) -> ReliabilityParts:
    """Return what the metrics and the grids of the report read."""
    report = ReliabilityParts(
        frozenset({("top", bins), ("levels", bins), ("cumulative", bins)}), scores=True
    )
    return reduce(or_, (metric.required_parts for metric in metrics), report)


def _score_metric(
    metric: Metric, blocks: Reliability, table: Reliability, how: ConfidenceIntervals | None
) -> ProbabilityScore:
    if how is None:
        estimate = make_point_estimate(float(metric(table)), "no interval was asked for")
    else:
        estimate = estimate_probability_metric(metric, blocks, how)
    perfect = (
        simulate_perfect_calibration(metric, table, how)
        if how is not None and is_calibration_error(metric)
        else None
    )
    return ProbabilityScore(
        metric,
        estimate,
        perfect,
        _score_gold_shares(metric, table),
        _compute_error_bound(metric, table),
    )


def _compute_error_bound(metric: Metric, table: Reliability) -> float | None:
    """Return how far from its exact value a metric is at most: pairs in one bin count half."""
    if metric.name != "c_index":
        return None
    _, tied, pairs = count_ordered_pairs(table)
    return float(tied / pairs / 2) if pairs else 0.0


def _score_gold_shares(metric: Metric, table: Reliability) -> float:
    """Return a proper score of the gold shares as everybody's probabilities."""
    shares = table.gold_share
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


def _make_metric_row(
    name: str, worth: ProbabilityScore, how: ConfidenceIntervals | None
) -> tuple[Cell, ...]:
    found, perfect = worth.estimate, worth.perfect_calibration
    return (
        name,
        BETTER_VALUES[worth.metric.direction],
        found.value,
        *(() if how is None else (format_interval(found.low, found.high),)),
        None if math.isnan(worth.base_rate) else worth.base_rate,
        None if perfect is None else perfect.mean,
        None if perfect is None or math.isnan(perfect.p) else f"{perfect.p:.4f}",
    )


def _divide_or_nan(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


def format_bin_range(row: dict[str, Any], bins: int) -> str:
    """Return the range of a bin as people read it."""
    digits = 2 if bins <= 100 else 3
    return f"({row['low']:.{digits}f}, {row['high']:.{digits}f}]"


def _none_if_undefined(value: Cell) -> Cell:
    return "n/a" if isinstance(value, float) and math.isnan(value) else value


def _to_plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {key: to_json_number(x) if isinstance(x, float) else x for key, x in row.items()}
