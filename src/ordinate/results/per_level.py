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
    matrices: ConfusionMatrix, level: float | None
) -> list[tuple[dict[str, Any], ...]]:
    """Return one record for each level, of each matrix of a batch; `level` is of the intervals."""
    metrics = compute_level_metrics(matrices)
    errors = level_costs(matrices, matrices.scale.gaps)
    values = dict(
        zip(LEVEL_METRICS, (metrics.precision, metrics.recall, metrics.f1, errors), strict=True)
    )
    columns = values | _compute_intervals(matrices, values, level)
    labels = [to_json_label(label) for label in matrices.scale.labels]
    sums = (_list_counts(matrices.gold), _list_counts(matrices.predicted))
    numbers = np.stack(list(columns.values()), axis=-1).tolist()
    return [
        tuple(
            {"level": label, "name": name, "support": gold, "predicted": predicted}
            | dict(zip(columns, row, strict=True))
            for label, name, gold, predicted, row in zip(
                labels, matrices.scale.names, *table, strict=True
            )
        )
        for table in zip(*sums, numbers, strict=True)
    ]


def _list_counts(weights: Array) -> list[list[int | float]]:
    return [[to_integer_if_whole(x) for x in row] for row in weights.tolist()]


def to_integer_if_whole(value: float) -> int | float:
    """Return an integer where a number is one."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value


def _compute_intervals(
    matrix: ConfusionMatrix, values: dict[str, Array], level: float | None
) -> dict[str, Array]:
    """Return the bounds [..., K] of intervals; nan where items are unknown or a level lacks any."""
    names = [f"{name}_{end}" for name in LEVEL_METRICS for end in ("low", "high")]
    found = {name: np.full(matrix.gold.shape, np.nan) for name in names}
    if level is None:
        return found
    right = diagonal(matrix.counts)
    squares = matrix.squares
    shares = {
        "precision": (matrix.predicted, squares[..., :-1].sum(axis=-2)),
        "recall": (matrix.gold, squares.sum(axis=-1)),
        # F1 = 2J / (1 + J), where J is the share of right answers among the items of either side.
        "f1": (matrix.gold + matrix.predicted - right, _sum_squares_of_either(matrix)),
    }
    for name, (weight, square) in shares.items():
        low, high = _compute_share_intervals(matrix, right, weight, square, level)
        if name == "f1":
            low, high = (2.0 * end / (1.0 + end) for end in (low, high))
        unseen = np.isnan(values[name])
        found[f"{name}_low"], found[f"{name}_high"] = (
            np.where(unseen, np.nan, end) for end in (low, high)
        )
    squares = np.where(_find_integer_weights(matrix), matrix.weights, squares)
    for k, gaps in enumerate(matrix.scale.gaps):
        costs = np.append(gaps, gaps.max())
        ends = mean_cost_interval(matrix.weights[..., k, :], squares[..., k, :], costs, level)
        found["mae_low"][..., k], found["mae_high"][..., k] = ends
    unknown = np.isnan(matrix.squares.sum(axis=(-2, -1)))[..., None]
    return {name: np.where(unknown, np.nan, column) for name, column in found.items()}


def _find_integer_weights(matrix: ConfusionMatrix) -> Array:
    """Tell which matrices [..., 1, 1] have counts for weights."""
    whole: Array = (matrix.weights == np.floor(matrix.weights)).all(axis=(-2, -1), keepdims=True)
    return np.asarray(whole & matrix.counted)


def _sum_squares_of_either(matrix: ConfusionMatrix) -> Array:
    """Return the squared weights of the items that have a level in gold or as the prediction."""
    squares = matrix.squares
    return squares.sum(axis=-1) + squares[..., :-1].sum(axis=-2) - diagonal(squares[..., :-1])


def _compute_share_intervals(
    matrix: ConfusionMatrix, part: Array, weight: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """Return Wilson's interval, for as many equally heavy items as say as much as the weights."""
    share = np.divide(part, weight, out=np.zeros(part.shape), where=weight > 0)
    whole = _find_integer_weights(matrix)[..., 0]
    n = np.where(whole, weight, count_effective_items(weight, squares))
    return wilson_interval(share * n, n, level)
