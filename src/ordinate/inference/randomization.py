"""Randomisation max-T: what differences would be if coins decided which system predicted what.

Units are items, or clusters where there are any. In each resample one coin per unit, the same for
all pairs of systems, says where the two systems of a pair exchange their predictions. A pair's own
p-value is exact if its systems are exchangeable within units, given gold; the adjusted one is by
max-T over the family of pairs, stepping down, from the same resamples, and so never below it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.prediction_swaps import (
    Swaps,
    choose_swaps,
    draw_coins,
)
from ordinate.inference.resampling import (
    BLOCK_SIZE,
    MOST_ENUMERATED_UNITS,
    ProgressCallback,
    Resampling,
    enumerate_coins,
)
from ordinate.inference.system_differences import LARGE_BLOCK_SIZE
from ordinate.metrics import Metric
from ordinate.metrics.table_sums import MOST_SUMMED_LEVELS, TableSums, find_table_sums
from ordinate.summaries import Panel

Array = NDArray[Any]
FEW_SYSTEMS, MANY_SWAPS, FEWER_SWAPS = 10, 9_999, 1_999
TIE_TOLERANCE = 1e-9  # of a statistic: a smaller difference is none
NOISE_LEVEL = 1e-9  # a spread below it is rounding


# --- coins ---------------------------------------------------------------------------------------


class Signs(NamedTuple):
    """Signs [B, U] of units, and whether they are all that there are."""

    values: Array
    exact: bool


def choose_swap_count(systems: int) -> int:
    """Return the number of resamples, which depends on nothing but the number of systems.

    Together with the data itself they are a round number, so that a level has an exact rank.
    """
    return MANY_SWAPS if systems <= FEW_SYSTEMS else FEWER_SWAPS


def draw_signs(units: int, count: int, seed: int) -> Signs:
    """Return fair signs [B, U] for units; every vector (up to its sign) where units are few.

    Differences by unit, times a row of signs, add up to a difference of two systems that exchange
    what they have in the units with a -1.

    >>> draw_signs(2, 9_999, seed=0).values.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if units <= MOST_ENUMERATED_UNITS:
        return Signs(1.0 - 2.0 * enumerate_coins(units), exact=True)
    return Signs(1.0 - 2.0 * draw_coins(np.random.default_rng(seed), units, count), exact=False)


# --- systems that exchange predictions -----------------------------------------------------------


class RandomizedDifferences(NamedTuple):
    """Differences [P] of pairs, first minus second, and those that coins made of them [B, P].

    `exact` says that all vectors of coins are there, the data among them.
    """

    observed: Array
    randomized: Array
    exact: bool

    @property
    def resamples(self) -> int | None:
        """The number of vectors of coins; None where they are all."""
        return None if self.exact else len(self.randomized)

    def select(self, pairs: Array) -> "RandomizedDifferences":
        """Return some of the pairs: a smaller family."""
        return self._replace(observed=self.observed[pairs], randomized=self.randomized[:, pairs])

    def compute_p_values(self) -> "PValues":
        """Return the p-values of the pairs."""
        return compute_p_values(self.observed, self.randomized, exact=self.exact)


def randomize_differences(
    panel: Panel,
    metrics: Sequence[Metric],
    pairs: Sequence[tuple[Array, Array]],
    resamples: Resampling,
    progress: ProgressCallback | None = None,
) -> list[RandomizedDifferences]:
    """Return the differences of pairs of systems in each metric, with shared coins for all.

    `pairs` are the indices of the first and of the second systems, for each metric; all of them
    have a value. Items with the same row swap in numbers, clusters swap whole.
    """
    sums = [
        _find_sums(metric, panel, len(first) * resamples.count)
        for metric, (first, _) in zip(metrics, pairs, strict=True)
    ]
    swaps = choose_swaps(panel, resamples.seed)
    swapped = SwappedSums(panel, swaps, sums)

    def work(coins: Array) -> list[Array]:
        columns = (metrics, sums, swapped.totals, swapped.sum_swapped(coins), pairs)
        return [
            _compute_differences(metric, each, total, moved, *pair)
            for metric, each, total, moved, pair in zip(*columns, strict=True)
        ]

    size = len(panel.scale)
    numbers = swaps.units + len(panel.systems) * size * (size + 1)
    if swaps.all is not None:
        step = max(1, LARGE_BLOCK_SIZE // numbers)
        blocks = [work(swaps.all[k : k + step]) for k in range(0, len(swaps.all), step)]
    else:
        blocks = resamples.run_in_blocks(
            numbers,
            lambda rng, count: work(swaps.draw(rng, count)),
            block=LARGE_BLOCK_SIZE,
            progress=progress,
        )
    observed = work(np.zeros((1, swaps.units)))
    return [
        RandomizedDifferences(before[0], np.concatenate(after), swaps.all is not None)
        for before, *after in zip(observed, *blocks, strict=True)
    ]


def _find_sums(metric: Metric, panel: Panel, matrices: int) -> TableSums:
    """Return the sums behind a metric, if they cost less than its value for so many matrices."""
    matrix = panel.confusion_matrix(panel.systems[0])
    if len(panel.scale) <= MOST_SUMMED_LEVELS:
        return find_table_sums(metric, matrix)
    predicted = np.unique(panel.rows[:, 1:])
    return find_table_sums(metric, matrix, predicted, most_coefficients=matrices)


class SwappedSums:
    """The sums of cells behind metrics: `totals` [S, F] of all items, and of those that swap.

    Of a fine scale systems use few cells: there rows are summed, where a metric has coefficients.
    """

    def __init__(self, panel: Panel, swaps: Swaps, sums: Sequence[TableSums]) -> None:
        self.swaps, self.sums = swaps, sums
        fine = len(panel.scale) > MOST_SUMMED_LEVELS
        by_row = [fine and each.coefficients is not None for each in sums]
        systems = () if all(by_row) else panel.systems
        cells = np.array([panel.confusion_matrix(system).weights for system in systems])
        self.totals = [
            _sum_rows(each, panel) if rows else each.sum_cells(cells)
            for each, rows in zip(sums, by_row, strict=True)
        ]
        self.by_unit = [
            _sum_rows_by_unit(each, swaps) if rows else None
            for each, rows in zip(sums, by_row, strict=True)
        ]

    def sum_swapped(self, coins: Array) -> list[Array]:
        """Return the sums [B, S, F] of the cells that take part in a swap."""
        by_cell = any(parts is None for parts in self.by_unit)
        cells = self.swaps.count_matrices(coins) if by_cell else np.empty(0)
        return [
            each.sum_cells(cells) if parts is None else np.einsum("bu,usf->bsf", coins, parts)
            for each, parts in zip(self.sums, self.by_unit, strict=True)
        ]


def _sum_rows(sums: TableSums, panel: Panel) -> Array:
    """Return the sums [S, F] of all rows."""
    parts = (sums.list_row_parts(*sides) for sides in _list_sides(panel))
    return np.stack([np.einsum("u,uf->f", panel.weights, part) for part in parts])


def _sum_rows_by_unit(sums: TableSums, swaps: Swaps) -> Array:
    """Return what a coin of each unit moves: [units, S, F]."""
    parts = (sums.list_row_parts(*sides) for sides in _list_sides(swaps.panel))
    return np.stack([swaps.sum_by_unit(part) for part in parts], axis=1)


def _list_sides(panel: Panel) -> Iterator[tuple[Array, Array]]:
    """Yield gold and predictions of each system."""
    return ((panel.rows[:, 0], predicted) for predicted in panel.rows.T[1:])


def _compute_differences(
    metric: Metric, sums: TableSums, total: Array, moved: Array, first: Array, second: Array
) -> Array:
    """Return the differences [B, P], as many at a time as the cache holds.

    The first system of a pair has its own cells, less those that it gave away, and those of the
    second that it took over.
    """
    differences = np.empty((len(moved), len(first)))
    width = max(1, BLOCK_SIZE // total.shape[1])  # pairs at a time
    step = max(1, width // max(1, len(first)))
    for start in range(0, len(moved), step):
        rows = slice(start, start + step)
        for k in range(0, len(first), width):
            pairs = slice(k, k + width)
            one, other = first[pairs], second[pairs]
            gained = moved[rows, other] - moved[rows, one]
            values = [
                metric.size(sums.combine(cells))
                for cells in (total[one] + gained, total[other] - gained)
            ]
            differences[rows, pairs] = values[0] - values[1]
    return differences


# --- p-values ------------------------------------------------------------------------------------


class PValues(NamedTuple):
    """P-values [P] of pairs: each alone, and by max-T over all of them, stepping down."""

    own: Array
    adjusted: Array


def compute_p_values(differences: Array, randomized: Array, *, exact: bool) -> PValues:
    """Return the p-values of differences [P], from those that coins made of them [B, P].

    `exact` says that all vectors of coins are there, the data among them; if not, the data are one
    vector more. A difference is taken relative to its root mean square over all vectors, so that
    the data are treated as the others are; where that is 0 nothing speaks against equality (p = 1);
    where coins left a difference undefined, it might have been as large as any.

    >>> signs = draw_signs(3, 0, seed=0)
    >>> by_unit = np.array([[1.0], [2.0], [3.0]])
    >>> compute_p_values(by_unit.sum(axis=0), signs.values @ by_unit, exact=signs.exact)
    PValues(own=array([0.25]), adjusted=array([0.25]))
    """
    vectors = randomized if exact else np.concatenate([randomized, differences[None]])
    spread = _root_mean_square(vectors)
    statistic = _standardise(differences, spread)
    order = np.argsort(-statistic, kind="stable")
    reached = _standardise(randomized, spread)
    reached[np.isnan(randomized)] = np.inf
    threshold = statistic * (1.0 - TIE_TOLERANCE)
    own = _to_share((reached >= threshold).sum(axis=0), len(reached), exact=exact)
    # stepping down, a pair competes with all pairs of smaller statistics
    largest = np.maximum.accumulate(reached[:, order[::-1]], axis=1)[:, ::-1]
    stepped = _to_share((largest >= threshold[order]).sum(axis=0), len(reached), exact=exact)
    adjusted = np.empty(len(own))
    adjusted[order] = np.maximum.accumulate(stepped)
    return PValues(own, adjusted)


def _root_mean_square(randomized: Array) -> Array:
    defined = ~np.isnan(randomized)
    squares = np.where(defined, randomized, 0.0) ** 2
    spread = np.sqrt(squares.sum(axis=0) / np.maximum(1, defined.sum(axis=0)))
    return np.where(spread > NOISE_LEVEL, spread, 0.0)


def _standardise(differences: Array, spread: Array) -> Array:
    size = np.abs(np.asarray(differences, float))
    return np.divide(size, spread, out=np.zeros_like(size), where=spread > 0)


def _to_share(counts: Array, resamples: int, *, exact: bool) -> Array:
    """Return how often coins reached the data, which is one of the vectors itself."""
    return counts / resamples if exact else (counts + 1.0) / (resamples + 1.0)
