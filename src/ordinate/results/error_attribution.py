"""Error attribution: what a metric would gain if the items of one cell were right."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate.errors import NotApplicable
from ordinate.metrics import Metric
from ordinate.render.tables import to_plain
from ordinate.results.base import Record, to_json_label
from ordinate.results.metric_scores import BLOCK_SIZE
from ordinate.summaries import ConfusionMatrix


@dataclass(frozen=True)
class ErrorCost:
    """A cell of wrong predictions: its weight, and the gain if they were right.

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

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "gold": to_json_label(self.gold),
            "predicted": None if self.predicted is None else to_json_label(self.predicted),
            "weight": self.weight,
            "gain": to_plain(self.gain),
            "per_item": to_plain(self.per_item),
        }


def attribute_errors(metric: Metric, matrix: ConfusionMatrix) -> tuple[ErrorCost, ...]:
    """Return the cells of wrong predictions, the most costly first."""
    wrong = matrix.weights * (1.0 - np.eye(*matrix.weights.shape))
    rows, columns = np.nonzero(wrong)
    try:
        now = metric.merit(metric(matrix))
    except NotApplicable as reason:
        raise NotApplicable(f"{metric.expression} has no errors to attribute: {reason}.") from None
    labels = (*matrix.scale.labels, None)
    costs = []
    block = max(1, BLOCK_SIZE // matrix.weights.size)
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        better = _correct_cells(matrix, rows[part], columns[part])
        gains = metric.merit(metric.compute_from_expected(better, matrix)) - now
        for i, j, gain in zip(rows[part], columns[part], gains, strict=True):
            weight = float(matrix.weights[i, j])
            costs.append(ErrorCost(matrix.scale.labels[i], labels[j], weight, float(gain)))
    return tuple(sorted(costs, key=lambda cost: -cost.gain if cost.gain == cost.gain else 0.0))


def _correct_cells(matrix: ConfusionMatrix, rows: Any, columns: Any) -> ConfusionMatrix:
    """Return a confusion matrix for each cell, in which its items are right."""
    cells = np.repeat(matrix.weights[None], len(rows), axis=0)
    each = np.arange(len(rows))
    cells[each, rows, rows] += cells[each, rows, columns]
    cells[each, rows, columns] = 0.0
    return matrix.with_cells(cells)
