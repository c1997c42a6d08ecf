"""Each level on its own: precision, recall, F1 and mean error, with their limits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.small_samples import mean_limits, wilson
from ordinate.metrics.arithmetic import diagonal, level_costs
from ordinate.metrics.per_level import per_level
from ordinate.results.baselines import json_label
from ordinate.summaries import Confusion

Array = NDArray[Any]
VALUES = ("precision", "recall", "f1", "mae")


def levels(table: Confusion, level: float | None) -> tuple[dict[str, Any], ...]:
    """Return one record for each level; `level` is that of the limits, None for none."""
    parts = per_level(table)
    errors = level_costs(table, table.scale.gaps)
    values = dict(zip(VALUES, (parts.precision, parts.recall, parts.f1, errors), strict=True))
    ends = _limits(table, values, level)
    return tuple(
        {
            "level": json_label(label),
            "name": name,
            "support": whole(float(table.gold[k])),
            "predicted": whole(float(table.predicted[k])),
        }
        | {name: float(found[k]) for name, found in values.items()}
        | {name: float(found[k]) for name, found in ends.items()}
        for k, (label, name) in enumerate(zip(table.scale.labels, table.scale.names, strict=True))
    )


def whole(value: float) -> int | float:
    """Return a whole number as such."""
    return int(value) if value == np.floor(value) and abs(value) < 2**53 else value


def _limits(table: Confusion, values: dict[str, Array], level: float | None) -> dict[str, Array]:
    nowhere = np.full(len(table.scale), np.nan)
    found = {f"{name}_{end}": nowhere.copy() for name in VALUES for end in ("low", "high")}
    if level is None or np.isnan(table.squares).any():
        return found
    right = diagonal(table.counts)
    shares = {
        "precision": (table.predicted, table.squares[:, :-1].sum(axis=0)),
        "recall": (table.gold, table.squares.sum(axis=1)),
        # F1 = 2J / (1 + J), where J is the share of right answers among the items of either side.
        "f1": (table.gold + table.predicted - right, _either(table)),
    }
    for name, (weight, squares) in shares.items():
        low, high = _share_limits(table, right, weight, squares, level)
        if name == "f1":
            low, high = (2.0 * end / (1.0 + end) for end in (low, high))
        seen = ~np.isnan(values[name])
        found[f"{name}_low"][seen], found[f"{name}_high"][seen] = low[seen], high[seen]
    squares = table.weights if table.whole else table.squares
    for k in np.flatnonzero(table.gold):
        costs = np.append(table.scale.gaps[k], table.scale.gaps[k].max())
        ends = mean_limits(table.weights[k], squares[k], costs, level)
        found["mae_low"][k], found["mae_high"][k] = ends
    return found


def _either(table: Confusion) -> Array:
    """Return the squared weights of the items that have a level in gold or as the answer."""
    squares = table.squares
    return squares.sum(axis=1) + squares[:, :-1].sum(axis=0) - diagonal(squares[:, :-1])


def _share_limits(
    table: Confusion, part: Array, weight: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """Return Wilson's limits, for as many equally heavy items as say as much as the weights."""
    share = np.divide(part, weight, out=np.zeros(len(part)), where=weight > 0)
    n = _effective(table, weight, squares)
    return wilson(share * n, n, level)


def _effective(table: Confusion, weight: Any, squares: Any) -> Any:
    if table.whole:
        return weight
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=weight > 0)
