"""Recalibration: probabilities before and after, evaluated on the same items."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, UnequalLengths
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.probability_scores import JACKKNIFE_BLOCKS, estimate_paired_difference
from ordinate.metrics import Metric
from ordinate.readers.tables import is_table
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.document import format_cell, format_interval
from ordinate.render.estimates import format_headline, format_value_with_interval
from ordinate.render.tables import ESTIMATE, NAME, Column, Estimates, Table, to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    ScaleDeclaration,
    resolve_intervals,
)
from ordinate.results.base import Record, Result, record_call
from ordinate.results.calibration import (
    Calibration,
    collect_required_parts,
    select_probability_metrics,
)
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.probabilities import IN_ORDER_OF_SCALE, ColumnLabels, arrange_columns
from ordinate.summaries.reliability import Reliability

BEFORE, AFTER = "before", "after"
CHANGE = Estimates(  # a calibration error may have none
    lambda x: None if math.isnan(x) else x, ESTIMATE.show_bounds, keys=("low", "high")
)
CHANGES_NOTE = (
    "A change is after less before. Those of calibration errors have no valid interval: compare "
    "both with what they are on average if calibrated."
)


@dataclass(frozen=True, repr=False, eq=False)
class RecalibrationEvaluation(Result):
    """What probabilities were worth before they were recalibrated, and after.

    `changes` are after minus before, of the same items.

    >>> gold, before = [0, 1, 0], [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]
    >>> after = [[0.7, 0.3], [0.7, 0.3], [0.7, 0.3]]
    >>> found = RecalibrationEvaluation.of(gold, before, after, scale="0..1", metrics="brier")
    >>> round(found.changes["brier"].value, 3)
    -0.107
    """

    before: Calibration
    after: Calibration
    changes: dict[str, Estimate]

    @classmethod
    def of(
        cls,
        gold: Any,
        before: Any,
        after: Any,
        *,
        scale: ScaleDeclaration = None,
        metrics: MetricSelection = None,
        columns: ColumnLabels = None,
        after_columns: ColumnLabels = None,
        weights: Any = None,
        missing: Any = "error",
        renormalize: bool = False,
        bins: int = 10,
        interval: IntervalOption = 0.95,
        seed: int | None = None,
    ) -> "RecalibrationEvaluation":
        """Evaluate two tables of probabilities of the same items, which no method was fitted on.

        `columns` names the columns of `before`, such as `model.classes_`, and `after_columns` those
        of `after`: "scale" if they come out of a method of `ordinate.postprocess`. With
        `columns="scale"` both are in the order of the scale. `missing="drop"` leaves items out that
        have no gold label, or no probabilities in one of the tables.
        """
        intervals = resolve_intervals(interval, seed=seed)
        declared = resolve_scale(scale, gold, gold)
        if intervals is None:
            raise BadOption("A change is shown with its interval: leave interval as it is.")
        selected = select_probability_metrics(metrics, bins)
        parts = collect_required_parts(selected, bins)
        first, second = (
            Reliability.of(
                gold,
                rows,
                declared,
                parts,
                columns=IN_ORDER_OF_SCALE,
                weights=weights,
                missing=missing,
                renormalize=renormalize,
                blocks=JACKKNIFE_BLOCKS,
            )
            for rows in _align_items(declared, gold, before, after, columns, after_columns)
        )
        return cls.from_blocks(first, second, selected, bins=bins, interval=intervals)

    @classmethod
    @record_call
    def from_blocks(
        cls,
        before: Reliability,
        after: Reliability,
        metrics: Sequence[Metric],
        *,
        bins: int,
        interval: ConfidenceIntervals,
    ) -> "RecalibrationEvaluation":
        """Evaluate two summaries of the same items, spread over the same blocks."""
        options: dict[str, Any] = {"bins": bins, "interval": interval}
        return cls(
            before=Calibration.from_blocks(before, list(metrics), **options),
            after=Calibration.from_blocks(after, list(metrics), **options),
            changes={
                metric.expression: estimate_paired_difference(metric, before, after, interval)
                for metric in metrics
            },
        )

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "schema": 1,
            "task": "recalibration",
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "changes": to_plain(self.changes),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return metrics and reliability after recalibration, and before."""
        strips = [
            MetricStrip(
                score.metric,
                score.estimate,
                {BEFORE: self.before.metrics[name].estimate},
                note=f"change {format_value_with_interval(self.changes[name], self.after.level)}",
            )
            for name, score in self.after.metrics.items()
        ]
        yield from MetricStrips(strips, self.after.level, AFTER, in_rows=True).make_charts(
            "Each metric of the probabilities before and after recalibration, with its confidence "
            "interval, on an axis of its own.",
            "recalibration",
            "Probabilities before and after recalibration",
        )
        for name, part in {AFTER: self.after, BEFORE: self.before}.items():
            chart = part.curves.make_chart(part.bins)
            yield replace(chart, variant=name, varies_by="recalibration")

    def tables(self) -> Iterable[Table]:
        """Return each metric before and after."""
        columns = (
            Column("metric", kind=NAME, get=lambda row: row[0]),
            Column("better", kind=NAME, get=lambda row: row[1].better, stored=False),
            Column(BEFORE, get=lambda row: row[1].value),
            Column(AFTER, get=lambda row: row[2].value),
            Column("change", kind=CHANGE, get=lambda row: row[3]),
            *(
                Column(f"if_calibrated_{x}", f"{x} if calibrated", get=get, optional=True)
                for x, get in (
                    (BEFORE, lambda row: row[1].if_calibrated),
                    (AFTER, lambda row: row[2].if_calibrated),
                )
            ),
        )
        records = [
            (name, self.before.metrics[name], self.after.metrics[name], change)
            for name, change in self.changes.items()
        ]
        common = {"n": self.before.summary.n}
        yield Table("metrics", "Recalibration", columns, records, self.after.level, common=common)

    def document(self) -> Document:
        """Return the metrics side by side, and the bins after."""
        summary = self.after.summary
        title = f"Probabilities of {summary.n:,} items on {summary.scale}, before and after"
        verdict = self._write_verdict()
        return Document(
            title,
            (*self.get_table("metrics").grids(), self.after.document()),
            verdict,
            (CHANGES_NOTE,),
        )

    def _write_verdict(self) -> str:
        """Say what became of the first proper score, or of the first metric."""
        proper = [name for name, found in self.changes.items() if not math.isnan(found.low)]
        name = next(iter([*proper, *self.changes]))
        before, after = self.before.metrics[name], self.after.metrics[name]
        change = self.changes[name]
        values = f"{name} {format_cell(before.value)} before, {format_cell(after.value)} after"
        if math.isnan(change.low):
            return f"Recalibrated: {values}."
        interval = format_interval(change.low, change.high)
        level = self.after.level
        gap = f"{values}, change {format_headline(format_cell(change.value), interval, level)}"
        if change.low <= 0 <= change.high:
            return f"Recalibration changes nothing significantly: {gap}."
        better = before.metric.is_better(after.value, before.value)
        return f"Recalibration makes the probabilities {'better' if better else 'worse'}: {gap}."


def _align_items(
    scale: Scale,
    gold: Any,
    before: Any,
    after: Any,
    columns: ColumnLabels,
    after_columns: ColumnLabels,
) -> tuple[Any, Any]:
    """Return both tables; an item that has no probabilities in one has none in the other."""
    first = arrange_columns(scale, before, columns, gold)
    if after_columns is None and isinstance(columns, str) and not is_table(after):
        after_columns = columns
    second = arrange_columns(scale, after, after_columns, gold, option="after_columns")
    if len(first) != len(second):
        raise UnequalLengths(
            f"{len(first)} rows of probabilities before and {len(second)} after: each item needs "
            "both."
        )
    empty = np.isnan(first).all(axis=1) | np.isnan(second).all(axis=1)
    if not empty.any():
        return first, second
    return np.where(empty[:, None], np.nan, first), np.where(empty[:, None], np.nan, second)
