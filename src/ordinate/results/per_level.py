"""Each level on its own: precision, recall, F1 and mean error, with confidence intervals."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.small_samples import (
    count_effective_items,
    mean_cost_interval,
    wilson_interval,
)
from ordinate.metrics.arithmetic import diagonal, level_costs
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.results.base import to_json_label
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
LEVEL_METRICS = ("precision", "recall", "f1", "mae")


def compute_level_records(
    matrix: ConfusionMatrix, level: float | None
) -> tuple[dict[str, Any], ...]:
    """Return one record for each level; `level` is that of the intervals, None for none."""
    metrics = compute_level_metrics(matrix)
    errors = level_costs(matrix, matrix.scale.gaps)
    values = dict(
        zip(LEVEL_METRICS, (metrics.precision, metrics.recall, metrics.f1, errors), strict=True)
    )
    bounds = _compute_intervals(matrix, values, level)
    return tuple(
        {
            "level": to_json_label(label),
            "name": name,
            "support": to_integer_if_whole(float(matrix.gold[k])),
            "predicted": to_integer_if_whole(float(matrix.predicted[k])),
        }
        | {name: float(column[k]) for name, column in values.items()}
        | {name: float(column[k]) for name, column in bounds.items()}
        for k, (label, name) in enumerate(zip(matrix.scale.labels, matrix.scale.names, strict=True))
    )


def to_integer_if_whole(value: float) -> int | float:
    """Return an integer where a number is one."""
    return int(value) if value == np.floor(value) and abs(value) < 2**53 else value


def _compute_intervals(
    matrix: ConfusionMatrix, values: dict[str, Array], level: float | None
) -> dict[str, Array]:
    nowhere = np.full(len(matrix.scale), np.nan)
    found = {f"{name}_{end}": nowhere.copy() for name in LEVEL_METRICS for end in ("low", "high")}
    if level is None or np.isnan(matrix.squares).any():
        return found
    right = diagonal(matrix.counts)
    shares = {
        "precision": (matrix.predicted, matrix.squares[:, :-1].sum(axis=0)),
        "recall": (matrix.gold, matrix.squares.sum(axis=1)),
        # F1 = 2J / (1 + J), where J is the share of right answers among the items of either side.
        "f1": (matrix.gold + matrix.predicted - right, _sum_squares_of_either(matrix)),
    }
    for name, (weight, squares) in shares.items():
        low, high = _compute_share_intervals(matrix, right, weight, squares, level)
        if name == "f1":
            low, high = (2.0 * end / (1.0 + end) for end in (low, high))
        seen = ~np.isnan(values[name])
        found[f"{name}_low"][seen], found[f"{name}_high"][seen] = low[seen], high[seen]
    squares = matrix.weights if matrix.has_integer_weights else matrix.squares
    for k in np.flatnonzero(matrix.gold):
        costs = np.append(matrix.scale.gaps[k], matrix.scale.gaps[k].max())
        ends = mean_cost_interval(matrix.weights[k], squares[k], costs, level)
        found["mae_low"][k], found["mae_high"][k] = ends
    return found


def _sum_squares_of_either(matrix: ConfusionMatrix) -> Array:
    """Return the squared weights of the items that have a level in gold or as the prediction."""
    squares = matrix.squares
    return squares.sum(axis=1) + squares[:, :-1].sum(axis=0) - diagonal(squares[:, :-1])


def _compute_share_intervals(
    matrix: ConfusionMatrix, part: Array, weight: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """Return Wilson's interval, for as many equally heavy items as say as much as the weights."""
    share = np.divide(part, weight, out=np.zeros(len(part)), where=weight > 0)
    n = weight if matrix.has_integer_weights else count_effective_items(weight, squares)
    return wilson_interval(share * n, n, level)
