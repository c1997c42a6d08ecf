"""Recalibration: probabilities before and after, judged on the same items."""

import math
from dataclasses import dataclass
from typing import Any

from ordinate.errors import BadOption
from ordinate.evaluate.calibration import Calibration, Worth, parts_of, wanted_metrics
from ordinate.evaluate.evaluation import BETTER, Declared, Interval, Wanted, intervals
from ordinate.inference import Estimate
from ordinate.inference.probabilities import BLOCKS, difference
from ordinate.report import Document, Grid, html, render
from ordinate.report.document import Cell, between
from ordinate.scale import resolve
from ordinate.summary.reliability import Reliability


@dataclass(frozen=True)
class Recalibration:
    """What probabilities were worth before they were recalibrated, and after.

    `changes` are after minus before, of the same items.
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
        scale: Declared = None,
        metrics: Wanted = None,
        weights: Any = None,
        bins: int = 10,
        interval: Interval = 0.95,
    ) -> "Recalibration":
        """Judge two tables of probabilities of the same items, which no method was fitted on."""
        declared, how = resolve(scale, gold, gold), intervals(interval)
        if how is None:
            raise BadOption("A change is shown with its interval: leave interval as it is.")
        wanted = wanted_metrics(metrics, bins)
        parts = parts_of(wanted, bins)
        first, second = (
            Reliability.of(declared, gold, rows, parts, weights=weights, blocks=BLOCKS)
            for rows in (before, after)
        )
        return cls(
            Calibration.from_blocks(first, wanted, bins=bins, interval=how),
            Calibration.from_blocks(second, wanted, bins=bins, interval=how),
            {metric.expression: difference(metric, first, second, how) for metric in wanted},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "schema": 1,
            "task": "recalibration",
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "changes": {name: found.to_dict() for name, found in self.changes.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric."""
        return [
            {
                "metric": name,
                "before": self.before.metrics[name].value,
                "after": self.after.metrics[name].value,
                "change": found.value,
                "low": found.low,
                "high": found.high,
                "n": self.before.summary.n,
            }
            for name, found in self.changes.items()
        ]

    def document(self) -> Document:
        """Return the metrics side by side, and the bins after."""
        table = self.after.summary
        title = f"Probabilities of {table.n:,} items on {table.scale}, before and after"
        header = ("metric", "better", "before", "after", "change", "interval of the change")
        rows = tuple(self._row(name, worth) for name, worth in self.before.metrics.items())
        return Document(title, (Grid("Recalibration", header, rows, left=2), *self.after.blocks()))

    def _row(self, name: str, worth: Worth) -> tuple[Cell, ...]:
        found, after = self.changes[name], self.after.metrics[name].value
        change = None if math.isnan(found.value) else found.value
        limits = between(found.low, found.high)
        return (name, BETTER[worth.metric.direction], worth.value, after, change, limits)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())
