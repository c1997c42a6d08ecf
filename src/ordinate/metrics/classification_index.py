"""Ordinal classification indices: the cheapest path through the confusion matrix."""

import math

import numpy as np

from ordinate.errors import BadOption
from ordinate.metrics.arithmetic import CELL_AXES, Array, Value, ratio
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix

BLOCK_SIZE = 1 << 18  # cells through which paths are sought at once


def _find_cheapest_path(steps: Array, *carried: Array) -> Array:
    """Return cost and carried sums of the cheapest monotone path through cells [..., R, C].

    Paths run from the first cell to the last by steps to the right, down, or both. All cells of
    an antidiagonal are computed at once: they depend only on the two antidiagonals before.
    """
    height, width = steps.shape[-2:]
    layers = np.stack([steps, *carried])
    before = last = np.full((*layers.shape[:-2], height), np.inf)  # by row
    for diagonal in range(height + width - 1):
        rows = np.arange(max(0, diagonal - width + 1), min(diagonal, height - 1) + 1)
        cheapest = np.full_like(last, np.inf)
        so_far = _select_cheapest(last, _shift_row_down(last), _shift_row_down(before))
        if diagonal == 0:
            so_far = np.zeros_like(last)
        cheapest[..., rows] = layers[..., rows, diagonal - rows] + so_far[..., rows]
        before, last = last, cheapest
    return last[..., -1]


def _leave_out_empty_runs(counts: Array, *layers: Array) -> list[Array]:
    """Return layers of cells [..., R, C] without an empty row or column beside another one.

    A path goes any distance to the right in an empty row for nothing, and in two no farther.
    """
    filled = np.asarray(counts.any(axis=tuple(range(counts.ndim - 2))))
    rows, columns = (_list_lines(np.asarray(filled.any(axis=across))) for across in (1, 0))
    return [cells[..., rows[:, None], columns] for cells in layers]


def _list_lines(filled: Array) -> Array:
    """Return the lines that are filled, and the first of each run of empty ones."""
    after_filled = np.concatenate([[True], filled[:-1]])
    return np.flatnonzero(filled | after_filled)


def _shift_row_down(line: Array) -> Array:
    down = np.full_like(line, np.inf)
    down[..., 1:] = line[..., :-1]
    return down


def _select_cheapest(first: Array, *others: Array) -> Array:
    """Return the one of the least cost, which is the first layer, with its carried sums."""
    for other in others:
        first = np.where(other[0] < first[0], other, first)
    return first


@metric(
    family="classification index",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\min_{path} 1 - \frac{\sum_{path} n_{rc}}{N + (\sum n_{rc} d^\gamma)^{1/\gamma}}"
    r" + \frac{\beta_1}{N (K-1)^\gamma} \sum_{path} n_{rc} d^\gamma",
    reference="cardoso2011",
    equal_steps=True,
    integer_counts=lambda options: options["gamma"] != 1,
    smooth=False,
    aliases=("ordinal_classification_index",),
)
def oci(matrix: ConfusionMatrix, *, beta1: float = 0.75, gamma: float = 1.0) -> Value:
    """Ordinal Classification Index: the cheapest monotone path through the matrix.

    When to use: results are compared with papers that use it.

    When not: readers should understand the number: its cost is that of a path through the confusion
    matrix. It depends on unused levels, and a step nearer to gold may change nothing.
    """
    if gamma == 0:
        raise BadOption("oci: gamma must be above 0.")
    # Items and distances as shares of N, except where the root makes the size of N matter.
    distance = matrix.scale.gaps**gamma
    far = (matrix.counts * distance).sum(axis=CELL_AXES) ** (1.0 / gamma)
    total = np.asarray(matrix.total, float)
    benefit = ratio(matrix.counts, (total + far)[..., None, None])
    penalty = beta1 / matrix.scale.span**gamma * matrix.share * distance
    steps = _leave_out_empty_runs(matrix.counts, penalty - benefit)
    return 1.0 + _find_cheapest_path(*steps)[0][()]


@metric(
    family="classification index",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\int_0^1 \min_{path} \Big[1 - \frac{\sum_{path} q_{rc}}{M + \sum q_{rc} d}"
    r" + \frac{t}{M} \sum_{path} q_{rc} d\Big] dt,\; q_{rc} = n_{rc}/g_r",
    reference="silva2018",
    equal_steps=True,
    macro="other",
    smooth=False,
)
def uoc(matrix: ConfusionMatrix) -> Value:
    """Uniform Ordinal Classification index: OCI with equal weight for each gold level.

    The cheapest path costs least along straight lines in t, so its integral is exact: each
    stretch is split where its two lines cross, until no path is cheaper there.

    When to use: results are compared with papers that use it, and gold is uneven.

    When not: readers should understand the number, or small steps matter: a prediction nearer to
    gold can make it worse.
    """
    rows = np.nan_to_num(ratio(matrix.counts, matrix.gold[..., None]))
    levels = (matrix.gold > 0).sum(axis=-1).astype(float)
    far = (rows * matrix.scale.gaps).sum(axis=CELL_AXES)
    benefit = ratio(rows, (levels + far)[..., None, None])
    penalty = ratio(rows * matrix.scale.gaps, levels[..., None, None])
    layers = _leave_out_empty_runs(matrix.counts, benefit, penalty)
    flat = (cells.reshape(-1, *cells.shape[-2:]) for cells in layers)
    return _integrate_path_cost(*flat).reshape(matrix.shape)[()]


def _integrate_path_cost(benefit: Array, penalty: Array) -> Array:
    """Integrate min over paths of 1 - benefit + t * penalty over t from 0 to 1."""
    step = max(1, BLOCK_SIZE // math.prod(benefit.shape[1:]))  # of a batch that may be empty

    def find_line(which: Array, t: Array) -> Array:
        """Return height and slope of the line that is lowest at t, as [2, n]."""
        gain, loss = benefit[which], penalty[which]
        _, height, slope = _find_cheapest_path(t[:, None, None] * loss - gain, -gain, loss)
        return np.stack([1.0 + height, slope])

    def line_at(which: Array, t: Array) -> Array:
        """Return the same lines, as many at a time as memory holds."""
        blocks = [slice(k, k + step) for k in range(0, max(1, len(which)), step)]
        return np.hstack([find_line(which[block], t[block]) for block in blocks])

    total = np.where(np.isnan(benefit).any(axis=CELL_AXES), np.nan, 0.0)
    which = np.flatnonzero(~np.isnan(total))
    low, high = np.zeros(len(which)), np.ones(len(which))
    left, right = line_at(which, low), line_at(which, high)
    while len(which):
        crossing = ratio(right[0] - left[0], left[1] - right[1])
        middle = np.clip(np.where(np.isnan(crossing), high, crossing), low, high)
        below = line_at(which, middle)
        split = _evaluate_line(below, middle) < _evaluate_line(left, middle) - 1e-13
        area = _integrate_line(left, low, middle) + _integrate_line(right, middle, high)
        np.add.at(total, which[~split], area[~split])
        which = np.tile(which[split], 2)
        low, middle, high = low[split], middle[split], high[split]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        left, below, right = left[:, split], below[:, split], right[:, split]
        left, right = np.hstack([left, below]), np.hstack([below, right])
    return total


def _evaluate_line(line: Array, t: Array) -> Array:
    return line[0] + line[1] * t


def _integrate_line(line: Array, low: Array, high: Array) -> Array:
    return (high - low) * _evaluate_line(line, (low + high) / 2.0)
