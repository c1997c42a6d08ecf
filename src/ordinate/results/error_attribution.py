"""Where the loss comes from: what a metric would gain if the items of one cell were right."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate.errors import NotApplicable
from ordinate.metrics import Metric
from ordinate.results.baselines import BLOCK_SIZE, to_json_label
from ordinate.summaries import ConfusionMatrix


@dataclass(frozen=True)
class ErrorCost:
    """A cell of wrong answers: its weight, and the gain if they were right.

    `predicted` is None for items without a prediction. A gain is positive where the metric would
    get better, whichever direction that is.
    """

    gold: Hashable
    predicted: Hashable | None
    weight: float
    gain: float

    @property
    def per_item(self) -> float:
        """The gain for each item of the cell."""
        return self.gain / self.weight

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        gain, each = (None if math.isnan(x) else x for x in (self.gain, self.per_item))
        predicted = None if self.predicted is None else to_json_label(self.predicted)
        return {
            "gold": to_json_label(self.gold),
            "predicted": predicted,
            "weight": self.weight,
            "gain": gain,
            "per_item": each,
        }


def attribute_errors(metric: Metric, table: ConfusionMatrix) -> tuple[ErrorCost, ...]:
    """Return the cells of wrong answers, the most costly first."""
    wrong = table.weights * (1.0 - np.eye(*table.weights.shape))
    rows, columns = np.nonzero(wrong)
    try:
        now = metric.merit(metric(table))
    except NotApplicable as reason:
        raise NotApplicable(f"{metric.expression} has no losses to trace: {reason}.") from None
    labels = (*table.scale.labels, None)
    found = []
    block = max(1, BLOCK_SIZE // table.weights.size)
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        better = _correct_cells(table, rows[part], columns[part])
        gains = metric.merit(metric.compute_from_expected(better, table)) - now
        for i, j, gain in zip(rows[part], columns[part], gains, strict=True):
            weight = float(table.weights[i, j])
            found.append(ErrorCost(table.scale.labels[i], labels[j], weight, float(gain)))
    return tuple(sorted(found, key=lambda loss: -loss.gain if loss.gain == loss.gain else 0.0))


def _correct_cells(table: ConfusionMatrix, rows: Any, columns: Any) -> ConfusionMatrix:
    """Return a table for each cell, in which its items are right."""
    cells = np.repeat(table.weights[None], len(rows), axis=0)
    each = np.arange(len(rows))
    cells[each, rows, rows] += cells[each, rows, columns]
    cells[each, rows, columns] = 0.0
    return table.with_cells(cells)
