"""Two systems on the same items: permutation, McNemar, the sign test, shifts of the margins."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.distributions import chi_square_tail, fair_binomial_tail
from ordinate.inference.estimates import to_json_number
from ordinate.inference.resampling import BLOCK_SIZE
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix, PairedPredictions

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
TIE_TOLERANCE = 1e-12  # differences this near count as equal
MOST_STATES = 1 << 16  # up to which all swaps are tried
MOST_SWAPS = 99_999  # random ones
ENOUGH_EXTREME_SWAPS = 100  # as extreme as the observed difference
ENOUGH_FOR_CHI_SQUARE = 10  # items in every pair of cells of Bowker's test
SYMMETRY_RESAMPLES = 9_999  # where its outcomes are too many to enumerate


@dataclass(frozen=True)
class TestResult:
    """The result of a test: its p-value, and what it rests on.

    A p-value without `degrees_of_freedom` and `resamples` is exact. `note` says why there is none,
    if there is none.
    """

    __test__ = False  # pytest must not take it for a test

    p: float
    statistic: float = math.nan
    degrees_of_freedom: int | None = None
    resamples: int | None = None
    note: str | None = None

    def describe_basis(self, resamples: str = "resamples") -> str:
        """Return what the p-value rests on, in words, or why there is none."""
        if self.note:
            return self.note
        if self.resamples is not None:
            return f"{self.resamples:,} {resamples}"
        if self.degrees_of_freedom is None:
            return "exact"
        noun = "degree" if self.degrees_of_freedom == 1 else "degrees"
        return f"chi-square, {self.degrees_of_freedom} {noun} of freedom"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "p": to_json_number(self.p),
            "statistic": to_json_number(self.statistic),
            "degrees_of_freedom": self.degrees_of_freedom,
            "resamples": self.resamples,
            "note": self.note,
        }


# --- permutation ---------------------------------------------------------------------------------


def permutation_test(
    metric: Metric,
    pairs: PairedPredictions,
    seed: int = 0,
    *,
    most_states: int = MOST_STATES,
    most_swaps: int = MOST_SWAPS,
) -> TestResult:
    """Test whether two systems are exchangeable, given gold: swap their predictions of the items.

    Clusters are swapped as units. All swaps are tried where they are few;
    otherwise random ones, until enough were as extreme as the data.
    """
    if not pairs.has_integer_weights:
        raise NotApplicable("the weights are no counts of items that could be swapped")
    swaps = _choose_swaps(pairs)
    pooled = pairs if pairs.groups is None else pairs.pooled
    observed = abs(_metric_difference(metric, pooled.first, pooled.second, pooled.first))
    if math.isnan(observed):
        return TestResult(math.nan, note=metric.undefined_when or "the metric is undefined here")
    return (
        _enumerate_swaps(metric, swaps, observed)
        if swaps.states <= most_states
        else _sample_swaps(metric, swaps, observed, seed, most_swaps)
    )


def has_few_swaps(pairs: PairedPredictions, most_states: int = MOST_STATES) -> bool:
    """Tell whether all swaps of the predictions of two systems can be tried."""
    return pairs.has_integer_weights and _choose_swaps(pairs).states <= most_states


def _choose_swaps(pairs: PairedPredictions) -> "_Swaps":
    return _ItemSwaps(pairs) if pairs.groups is None else _ClusterSwaps(pairs)


def _metric_difference(
    metric: Metric, first: ConfusionMatrix, second: ConfusionMatrix, observed: ConfusionMatrix
) -> Any:
    first_value, second_value = (
        metric.compute_from_expected(first, observed),
        metric.compute_from_expected(second, observed),
    )
    return metric.size(first_value) - metric.size(second_value)


class _Swaps(ABC):
    """The swaps of predictions, and the confusion matrices that they leave behind."""

    states: float  # the number of possible swaps
    size: int  # numbers that one swap needs

    @abstractmethod
    def enumerate(self) -> tuple[Array, Array]:
        """Return every swap, and its probability."""

    @abstractmethod
    def sample(self, rng: "Generator", size: int) -> Array:
        """Return random swaps."""

    @abstractmethod
    def count_matrices(self, swaps: Array) -> tuple[ConfusionMatrix, ConfusionMatrix]:
        """Return the confusion matrices of both systems."""


class _ItemSwaps(_Swaps):
    """Items of the same gold and the same two predictions are swapped in numbers."""

    def __init__(self, pairs: PairedPredictions) -> None:
        self.pairs = pairs
        size = len(pairs.scale)
        self.shape, self.size = (size, size + 1), size * (size + 1)
        same = pairs.first_predictions == pairs.second_predictions
        agreed = self._index_cells(pairs.gold, pairs.first_predictions)[same]
        self.agreed_weights = np.bincount(agreed, pairs.weights[same], minlength=self.size)
        predictions = np.stack([pairs.first_predictions, pairs.second_predictions])
        low, high = predictions.min(axis=0), predictions.max(axis=0)
        apart = (self._index_cells(pairs.gold, low) * (size + 1) + high)[~same]
        keys, place = np.unique(apart, return_inverse=True)  # gold, prediction, another prediction
        self.counts = np.bincount(place, pairs.weights[~same]).astype(np.int64)
        self.first_cell = keys // (size + 1)  # of gold and one prediction
        self.second_cell = self._index_cells(self.first_cell // (size + 1), keys % (size + 1))
        self.states = float(np.prod(self.counts + 1.0))

    def _index_cells(self, gold: Array, predicted: Array) -> Array:
        return gold * self.shape[1] + predicted

    def enumerate(self) -> tuple[Array, Array]:
        swaps = np.zeros((1, 0), np.int64)
        probabilities = np.ones(1)
        for n in self.counts.tolist():
            each = _fair_binomial_pmf(n)
            swaps = np.column_stack([swaps.repeat(n + 1, 0), np.tile(np.arange(n + 1), len(swaps))])
            probabilities = (probabilities[:, None] * each).reshape(-1)
        return swaps, probabilities

    def sample(self, rng: "Generator", size: int) -> Array:
        return rng.binomial(self.counts, 0.5, (size, len(self.counts)))

    def count_matrices(self, swaps: Array) -> tuple[ConfusionMatrix, ConfusionMatrix]:
        """`swaps` [B, pairs]: how many items the first system puts into the first cell."""
        kept, moved = swaps.astype(float), (self.counts - swaps).astype(float)
        first = self.agreed_weights + sum_into_cells(kept, self.first_cell, self.size)
        first += sum_into_cells(moved, self.second_cell, self.size)
        second = self.agreed_weights + sum_into_cells(moved, self.first_cell, self.size)
        second += sum_into_cells(kept, self.second_cell, self.size)
        first_matrix, second_matrix = (
            self.pairs.to_confusion_matrix(t.reshape(-1, *self.shape)) for t in (first, second)
        )
        return first_matrix, second_matrix


def sum_into_cells(amounts: Array, cells: Array, size: int) -> Array:
    """Return cells [B, size] with the sum of the amounts [B, pairs] that belong into each."""
    sums = np.zeros((len(amounts), size))
    if len(cells):
        order = np.argsort(cells, kind="stable")
        filled, starts = np.unique(cells[order], return_index=True)
        sums[:, filled] = np.add.reduceat(amounts[:, order], starts, axis=1)
    return sums


def _fair_binomial_pmf(n: int) -> Array:
    """Return the probabilities of 0, 1, … n heads, from the middle outwards."""
    middle = n // 2
    k = np.arange(n)
    up = np.cumprod(((n - k) / (k + 1.0))[middle:])
    down = np.cumprod(((k + 1.0) / (n - k))[:middle][::-1])[::-1]
    probabilities = np.concatenate([down, [1.0], up])
    return probabilities / probabilities.sum()


class _ClusterSwaps(_Swaps):
    """The predictions of both systems for a whole cluster are swapped, or not."""

    def __init__(self, pairs: PairedPredictions) -> None:
        self.pairs = pairs
        first, second = pairs.first.weights, pairs.second.weights
        apart = (first != second).any(axis=(-2, -1))
        self.fixed = first[~apart].sum(axis=0)
        self.first, self.second = first[apart], second[apart]
        self.states = 2.0 ** min(len(self.first), 1_000)  # far too many to try them all
        self.size = first[0].size + len(self.first)

    def enumerate(self) -> tuple[Array, Array]:
        count = int(self.states)
        swaps = (np.arange(count)[:, None] >> np.arange(len(self.first))) & 1
        return swaps, np.full(count, 1.0 / count)

    def sample(self, rng: "Generator", size: int) -> Array:
        return rng.integers(0, 2, (size, len(self.first)))

    def count_matrices(self, swaps: Array) -> tuple[ConfusionMatrix, ConfusionMatrix]:
        """`swaps` [B, clusters] are 1 where the predictions of a cluster are swapped."""
        swapped, kept = swaps.astype(float), 1.0 - swaps
        first = np.tensordot(kept, self.first, 1) + np.tensordot(swapped, self.second, 1)
        second = np.tensordot(swapped, self.first, 1) + np.tensordot(kept, self.second, 1)
        return (
            self.pairs.to_confusion_matrix(self.fixed + first),
            self.pairs.to_confusion_matrix(self.fixed + second),
        )


def _enumerate_swaps(metric: Metric, swaps: _Swaps, observed: float) -> TestResult:
    candidates, probabilities = swaps.enumerate()
    extreme = 0.0
    block = max(1, BLOCK_SIZE // swaps.size)
    for start in range(0, len(candidates), block):
        part = slice(start, start + block)
        extreme += float(
            probabilities[part][
                _mark_extreme_swaps(metric, swaps, candidates[part], observed)
            ].sum()
        )
    return TestResult(min(1.0, extreme))


def _mark_extreme_swaps(metric: Metric, swaps: _Swaps, candidates: Array, observed: float) -> Array:
    """Tell which swaps differ as much as the data; where the metric is undefined, they might."""
    first, second = swaps.count_matrices(candidates)
    differences = np.abs(
        _metric_difference(metric, first, second, swaps.count_matrices(candidates[:1])[0])
    )
    return ~(differences < observed - TIE_TOLERANCE)


def _sample_swaps(
    metric: Metric, swaps: _Swaps, observed: float, seed: int, most: int
) -> TestResult:
    """Swap at random until enough swaps are as extreme as the data (Besag and Clifford 1991)."""
    rng = np.random.default_rng(seed)
    block = min(1_000, max(1, BLOCK_SIZE // swaps.size))
    extreme = drawn = 0
    while drawn < most:
        size = min(block, most - drawn)
        hits = _mark_extreme_swaps(metric, swaps, swaps.sample(rng, size), observed)
        if extreme + hits.sum() >= ENOUGH_EXTREME_SWAPS:
            last = drawn + int(np.flatnonzero(hits)[ENOUGH_EXTREME_SWAPS - extreme - 1]) + 1
            return TestResult(ENOUGH_EXTREME_SWAPS / last, resamples=last)
        extreme += int(hits.sum())
        drawn += size
    return TestResult((1.0 + extreme) / (drawn + 1.0), resamples=drawn)


# --- classical tests -----------------------------------------------------------------------------


def mcnemar_test(pairs: PairedPredictions) -> TestResult:
    """Test whether two systems are right equally often, by the items that only one has right."""
    first_right, second_right = (
        pairs.first_predictions == pairs.gold,
        pairs.second_predictions == pairs.gold,
    )
    first_wins, second_wins = (
        pairs.weights[first_right & ~second_right].sum(),
        pairs.weights[second_right & ~first_right].sum(),
    )
    return _exact_sign_test(pairs, float(first_wins), float(second_wins))


def sign_test(pairs: PairedPredictions) -> TestResult:
    """Test whether one system is nearer to gold more often; no prediction is the farthest."""
    silent = 2.0 * pairs.scale.gaps.max()
    far = np.column_stack([pairs.scale.gaps, np.full(len(pairs.scale), silent)])
    # How much nearer the first one is.
    gain = far[pairs.gold, pairs.second_predictions] - far[pairs.gold, pairs.first_predictions]
    clear = np.abs(gain) > 1e-9 * silent  # positions may be no exact numbers
    nearer = pairs.weights[clear & (gain > 0)].sum()
    farther = pairs.weights[clear & (gain < 0)].sum()
    return _exact_sign_test(pairs, float(nearer), float(farther))


def _exact_sign_test(pairs: PairedPredictions, wins: float, losses: float) -> TestResult:
    """Return the exact two-sided test that wins and losses are equally likely."""
    if not pairs.has_integer_weights:
        return TestResult(math.nan, note="the weights are no counts")
    few, n = int(min(wins, losses)), int(wins + losses)
    if wins == losses:
        return TestResult(1.0, statistic=float(few))
    return TestResult(min(1.0, 2.0 * fair_binomial_tail(few, n)), statistic=float(few))


def bowker_test(cells: Array, seed: int = 0) -> TestResult:
    """Test whether a square table is symmetric (Bowker): moves up are as frequent as moves down.

    Given how many items fall into each pair of cells (i, j) and (j, i), a fair coin says which way
    each of them goes. All outcomes are enumerated where they are few. Otherwise the statistic is
    chi-square, but only where every pair that occurs has enough items; if not, it is resampled.
    """
    upper = np.triu_indices(len(cells), 1)
    there, back = cells[upper], cells.T[upper]
    counts = (there + back).astype(np.int64)
    occurs = counts > 0
    if not occurs.any():
        return TestResult(1.0, 0.0, 0, note="both sides always agree")
    statistic = float(((there - back)[occurs] ** 2 / counts[occurs]).sum())
    counts = np.sort(counts[occurs])  # so that neither levels nor systems need an order
    least = statistic * (1.0 - TIE_TOLERANCE)
    if np.prod(counts // 2 + 1.0) <= MOST_STATES:
        outcomes, probabilities = _enumerate_symmetry_statistics(counts.tolist())
        return TestResult(min(1.0, float(probabilities[outcomes >= least].sum())), statistic)
    if counts[0] >= ENOUGH_FOR_CHI_SQUARE:
        return TestResult(chi_square_tail(statistic, len(counts)), statistic, len(counts))
    extreme = _resample_symmetry_statistics(counts.tolist(), seed) >= least
    p = (1.0 + float(extreme.sum())) / (SYMMETRY_RESAMPLES + 1.0)
    return TestResult(p, statistic, resamples=SYMMETRY_RESAMPLES)


def _enumerate_symmetry_statistics(counts: list[int]) -> tuple[Array, Array]:
    """Return every value that Bowker's statistic can have, and its probability."""
    statistics, probabilities = np.zeros(1), np.ones(1)
    for n in counts:
        apart = np.arange(n % 2, n + 1, 2)  # heads and tails, whichever are more
        chances = _fair_binomial_pmf(n)[(n + apart) // 2] * np.where(apart > 0, 2.0, 1.0)
        statistics = np.add.outer(statistics, apart**2 / n).reshape(-1)
        probabilities = np.multiply.outer(probabilities, chances).reshape(-1)
    return statistics, probabilities


def _resample_symmetry_statistics(counts: list[int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    statistics = np.zeros(SYMMETRY_RESAMPLES)
    for n in counts:
        statistics += (2.0 * rng.binomial(n, 0.5, SYMMETRY_RESAMPLES) - n) ** 2 / n
    return statistics


def stuart_maxwell_test(cells: Array) -> TestResult:
    """Test whether both margins of a square table are equal (Stuart and Maxwell)."""
    shift = cells.sum(axis=1) - cells.sum(axis=0)
    spread = np.diag(cells.sum(axis=1) + cells.sum(axis=0)) - cells - cells.T
    shift, spread = shift[:-1], spread[:-1, :-1]  # the last level follows from the others
    freedom = int(np.linalg.matrix_rank(spread))  # levels that nobody uses take no part
    if not freedom:
        return TestResult(1.0, 0.0, 0, note="both sides always agree")
    statistic = float(shift @ np.linalg.pinv(spread, hermitian=True) @ shift)
    return TestResult(chi_square_tail(statistic, freedom), statistic, freedom)
