"""Sums over the cells of a confusion matrix that a metric is a function of, at given gold totals.

Where systems predict for the same items, or exchange their predictions, gold stays as it is. Then
a linear metric is one such sum, a kappa a quotient of two, and F1 needs two for each level. Tau is
a quadratic form of the cells, and any other metric some function of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics.arithmetic import Value, average_over_levels, max_over_levels, ratio
from ordinate.metrics.catalogue import Metric, find_metric
from ordinate.metrics.per_level import compute_f1
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Levels = NDArray[np.intp]
BLOCK_SIZE = 1 << 17  # numbers in a block: what the cache holds
MOST_SUMMED_LEVELS = 50  # of which the cells, and two sums for each level, are few
MOST_PAIRED_LEVELS = 12  # of which all pairs of cells make a small matrix


class TableSums(NamedTuple):
    """Sums of cells with coefficients [F, K, K + 1], and the metric as a function of them.

    Without coefficients the sums are the cells themselves.
    """

    coefficients: Array | None
    combine: Callable[[Array], Value]  # of sums [..., F]

    def sum_cells(self, cells: Array) -> Array:
        """Return the sums [..., F] of cells [..., K, K + 1]."""
        flat = cells.reshape(*cells.shape[:-2], -1)
        if self.coefficients is None:
            return flat
        return flat @ self.coefficients.reshape(len(self.coefficients), -1).T

    def list_row_parts(self, gold: Levels, predicted: Levels) -> Array:
        """Return what an item of each row adds to the sums: [U, F] for rows [U]."""
        if self.coefficients is None:
            raise ValueError("cells without coefficients are no sums of rows")
        return self.coefficients[:, gold, predicted].T


def find_table_sums(
    metric: Metric,
    matrix: ConfusionMatrix,
    predicted: Levels | None = None,
    *,
    most_coefficients: float = np.inf,
) -> TableSums:
    """Return the fewest sums that determine a metric, given the gold totals of a matrix.

    `predicted` are the columns in which tables may have items, if not in all. A coefficient of a
    linear metric takes as long as its value for a table, so that very many may not pay.

    >>> matrix = ConfusionMatrix.from_counts([[3, 1, 0], [1, 2, 1], [0, 0, 2]], "low,mid,high")
    >>> sums = find_table_sums(find_metric("quadratic_kappa"), matrix)
    >>> sums.coefficients.shape, sums.combine(sums.sum_cells(matrix.weights)).round(3)
    ((2, 3, 4), np.float64(0.762))
    """
    size, name, found = len(matrix.scale), metric.alias_of or metric.name, None
    columns = np.arange(size + 1) if predicted is None else predicted
    if np.count_nonzero(matrix.gold) * len(columns) > most_coefficients:
        return _keep_cells(metric, matrix)
    if metric.summary is ConfusionMatrix and metric.linear:
        found = _sum_linear(metric, matrix, columns)
    elif name in CHANCE_CORRECTED_BASES:
        base = CHANCE_CORRECTED_BASES[name](metric, matrix.scale)
        found = _sum_chance_corrected(base, matrix, columns)
    elif name in LEVEL_METRICS and size <= MOST_SUMMED_LEVELS:
        found = _sum_levels(LEVEL_METRICS[name], matrix)
    elif name == "kendall_tau_b" and size <= MOST_PAIRED_LEVELS:
        found = _sum_item_pairs(matrix)
    return found or _keep_cells(metric, matrix)


def _keep_cells(metric: Metric, matrix: ConfusionMatrix) -> TableSums:
    shape = matrix.weights.shape[-2:]

    def combine(sums: Array) -> Value:
        whole = matrix.with_cells(sums.reshape(*sums.shape[:-1], *shape))
        return metric.compute_from_expected(whole, matrix)

    return TableSums(None, combine)


# --- linear metrics ------------------------------------------------------------------------------


def compute_cell_effects(
    metric: Metric,
    scale: Scale,
    gold: Array,
    levels: Levels | None = None,
    columns: Levels | None = None,
    *,
    unanswered: bool = False,
) -> Array:
    """Return what each prediction adds to the mean of a linear metric relative to the right one.

    A linear metric is a sum over the cells at given gold totals, so that moving all items of one
    level from the right prediction to another gives the effect of that cell. The row of a level
    without items is 0, and so are rows that are not among `levels` and columns that are not among
    `columns`. A last column, if wanted, is that of items without a prediction.

    >>> compute_cell_effects(find_metric("mae"), Scale.of("low,mid,high"), np.ones(3)).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    size = len(scale)
    right = np.diag(gold) if not unanswered else np.column_stack([np.diag(gold), np.zeros(size)])
    best = _compute_value(metric, scale, right)
    effects = np.zeros(right.shape)
    columns = np.arange(right.shape[1]) if columns is None else columns
    chosen = np.flatnonzero(gold > 0) if levels is None else levels
    step = max(1, BLOCK_SIZE // (len(columns) * right.size))
    for start in range(0, len(chosen), step):
        level = chosen[start : start + step, None]
        moved = np.tile(right, (len(level), len(columns), 1, 1))
        place = np.ix_(np.arange(len(level)), np.arange(len(columns)))
        moved[*place, level, level] = 0.0
        moved[*place, level, columns] = gold[level]
        effects[level, columns] = _compute_value(metric, scale, moved) - best
    weights = np.divide(gold.sum(), gold, out=np.zeros(size), where=gold > 0)
    return effects * weights[:, None]


def _compute_value(metric: Metric, scale: Scale, cells: Array) -> Any:
    size = len(scale)
    last = cells[..., size] if cells.shape[-1] > size else None
    return metric(ConfusionMatrix.from_counts(cells[..., :size], scale, last))


def _compute_coefficients(metric: Metric, matrix: ConfusionMatrix, columns: Levels) -> Array:
    """Return the effects [K, K + 1] of cells; nan where the metric is undefined."""
    if not metric.takes_unanswered:
        columns = columns[columns < len(matrix.scale)]
    effects = compute_cell_effects(
        metric, matrix.scale, matrix.gold, columns=columns, unanswered=metric.takes_unanswered
    )
    return effects if metric.takes_unanswered else np.pad(effects, ((0, 0), (0, 1)))


def _sum_linear(metric: Metric, matrix: ConfusionMatrix, columns: Levels) -> TableSums | None:
    effects = _compute_coefficients(metric, matrix, columns) / matrix.total
    best = _compute_value(metric, matrix.scale, np.diag(matrix.gold))
    if not np.isfinite(effects).all():
        return None
    return TableSums(effects[None], lambda sums: best + sums[..., 0])


# --- agreement beyond chance ---------------------------------------------------------------------


def _find_distance_metric(metric: Metric, scale: Scale) -> Metric:
    power = metric.settings["power"]
    costs = np.where(scale.gaps > 0, scale.gaps**power, 0.0)
    return find_metric("expected_cost").with_options(matrix=costs.tolist())


# The linear metric, of which these are (value - chance) / (perfect - chance).
CHANCE_CORRECTED_BASES: dict[str, Callable[[Metric, Scale], Metric]] = {
    "cohen_kappa": lambda _, __: find_metric("accuracy"),
    "linear_kappa": lambda _, __: find_metric("mae"),
    "quadratic_kappa": lambda _, __: find_metric("mse"),
    "weighted_kappa": _find_distance_metric,
    "cem_ord_chance_corrected": lambda _, __: find_metric("cem_ord"),
}


def _sum_chance_corrected(
    base: Metric, matrix: ConfusionMatrix, columns: Levels
) -> TableSums | None:
    """Return what is lost by the predictions, and what would be lost by chance."""
    observed = _compute_coefficients(base, matrix, columns)
    if not np.isfinite(observed).all():
        return None
    by_chance = np.broadcast_to(matrix.gold_share @ observed, observed.shape)
    return TableSums(
        np.stack([observed, by_chance]), lambda sums: 1.0 - ratio(sums[..., 0], sums[..., 1])
    )


# --- what the levels have on their own -----------------------------------------------------------


def _average_f1(right: Array, predicted: Array, gold: Array) -> Value:
    return average_over_levels(gold + predicted > 0, compute_f1(right, gold, predicted))


def _find_least_recall(right: Array, _: Array, gold: Array) -> Value:
    return -max_over_levels(gold > 0, -ratio(right, gold))


LEVEL_METRICS: dict[str, Callable[[Array, Array, Array], Value]] = {
    "f1_macro": _average_f1,
    "min_sensitivity": _find_least_recall,
}


def _sum_levels(combine: Callable[[Array, Array, Array], Value], matrix: ConfusionMatrix) -> Any:
    """Return the right predictions of each level, and all of them."""
    size = len(matrix.scale)
    column = np.eye(size, size + 1)
    right = column[:, None, :] * np.eye(size)[:, :, None]
    predicted = np.broadcast_to(column[:, None, :], right.shape)
    return TableSums(
        np.concatenate([right, predicted]),
        lambda sums: combine(sums[..., :size], sums[..., size:], matrix.gold),
    )


# --- pairs of items ------------------------------------------------------------------------------


def _sum_item_pairs(matrix: ConfusionMatrix) -> TableSums:
    """Return tau-b as a quadratic form: pairs of cells are concordant (1), discordant (-1) or tied.

    All cells go through one product of matrices, which is quicker than many small ones.
    """
    size, level = len(matrix.scale), np.arange(len(matrix.scale))
    above = np.sign(level[:, None] - level)
    order = np.kron(above, above).astype(float)
    cells = np.eye(size**2, size**2).reshape(size**2, size, size)
    untied_gold = _count_untied_pairs(matrix.gold)

    def combine(sums: Array) -> Value:
        in_order = np.einsum("...i,...i", sums @ order, sums) / 2.0
        predicted = sums.reshape(*sums.shape[:-1], size, size).sum(axis=-2)
        untied = np.sqrt(untied_gold) * np.sqrt(_count_untied_pairs(predicted))
        return np.clip(ratio(in_order, untied), -1.0, 1.0)

    return TableSums(np.pad(cells, ((0, 0), (0, 0), (0, 1))), combine)


def _count_untied_pairs(counts: Array) -> Array:
    pairs: Array = (counts.sum(axis=-1) ** 2 - (counts**2).sum(axis=-1)) / 2.0
    return pairs
