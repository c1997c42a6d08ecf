"""Each level on its own: precision, recall, F1 and mean error, with their limits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.small_samples import mean_cost_interval, wilson_interval
from ordinate.metrics.arithmetic import diagonal, level_costs
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.results.baselines import to_json_label
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
LEVEL_METRICS = ("precision", "recall", "f1", "mae")


def compute_level_records(
    table: ConfusionMatrix, level: float | None
) -> tuple[dict[str, Any], ...]:
    """Return one record for each level; `level` is that of the limits, None for none."""
    parts = compute_level_metrics(table)
    errors = level_costs(table, table.scale.gaps)
    values = dict(
        zip(LEVEL_METRICS, (parts.precision, parts.recall, parts.f1, errors), strict=True)
    )
    ends = _compute_intervals(table, values, level)
    return tuple(
        {
            "level": to_json_label(label),
            "name": name,
            "support": to_integer_if_whole(float(table.gold[k])),
            "predicted": to_integer_if_whole(float(table.predicted[k])),
        }
        | {name: float(found[k]) for name, found in values.items()}
        | {name: float(found[k]) for name, found in ends.items()}
        for k, (label, name) in enumerate(zip(table.scale.labels, table.scale.names, strict=True))
    )


def to_integer_if_whole(value: float) -> int | float:
    """Return a whole number as such."""
    return int(value) if value == np.floor(value) and abs(value) < 2**53 else value


def _compute_intervals(
    table: ConfusionMatrix, values: dict[str, Array], level: float | None
) -> dict[str, Array]:
    nowhere = np.full(len(table.scale), np.nan)
    found = {f"{name}_{end}": nowhere.copy() for name in LEVEL_METRICS for end in ("low", "high")}
    if level is None or np.isnan(table.squares).any():
        return found
    right = diagonal(table.counts)
    shares = {
        "precision": (table.predicted, table.squares[:, :-1].sum(axis=0)),
        "recall": (table.gold, table.squares.sum(axis=1)),
        # F1 = 2J / (1 + J), where J is the share of right answers among the items of either side.
        "f1": (table.gold + table.predicted - right, _sum_squares_of_either(table)),
    }
    for name, (weight, squares) in shares.items():
        low, high = _compute_share_intervals(table, right, weight, squares, level)
        if name == "f1":
            low, high = (2.0 * end / (1.0 + end) for end in (low, high))
        seen = ~np.isnan(values[name])
        found[f"{name}_low"][seen], found[f"{name}_high"][seen] = low[seen], high[seen]
    squares = table.weights if table.whole else table.squares
    for k in np.flatnonzero(table.gold):
        costs = np.append(table.scale.gaps[k], table.scale.gaps[k].max())
        ends = mean_cost_interval(table.weights[k], squares[k], costs, level)
        found["mae_low"][k], found["mae_high"][k] = ends
    return found


def _sum_squares_of_either(table: ConfusionMatrix) -> Array:
    """Return the squared weights of the items that have a level in gold or as the answer."""
    squares = table.squares
    return squares.sum(axis=1) + squares[:, :-1].sum(axis=0) - diagonal(squares[:, :-1])


def _compute_share_intervals(
    table: ConfusionMatrix, part: Array, weight: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """Return Wilson's limits, for as many equally heavy items as say as much as the weights."""
    share = np.divide(part, weight, out=np.zeros(len(part)), where=weight > 0)
    n = _compute_effective_size(table, weight, squares)
    return wilson_interval(share * n, n, level)


def _compute_effective_size(table: ConfusionMatrix, weight: Any, squares: Any) -> Any:
    if table.whole:
        return weight
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=weight > 0)
