"""What a system must beat: constants, chance, and the range that gold leaves attainable."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.confidence_intervals import group_alike_matrices
from ordinate.metrics import Metric
from ordinate.render.tables import to_plain
from ordinate.results.base import Record, to_json_label
from ordinate.summaries import ConfusionMatrix

BLOCK_SIZE = 1 << 18  # cells of matrices that all metrics share
LARGE_BLOCK_SIZE = 1 << 21  # cells of matrices that are evaluated at once
ROUNDING = 1e-12  # a smaller difference is none
MOST_LEVELS = 50  # up to which the attainable range is worth its K^4 cells


@dataclass(frozen=True)
class BaselineValue:
    """A value that needs no interval: of a constant prediction at `level`, or of chance."""

    value: float
    undefined: str | None = None
    level: Hashable | None = None

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        level = {} if self.level is None else {"level": to_json_label(self.level)}
        return level | {"value": to_plain(self.value), "undefined": self.undefined}


@dataclass(frozen=True)
class Baselines:
    """The best constant for a metric, the majority level, chance, and the attainable range."""

    best_constant: BaselineValue
    majority: BaselineValue
    chance: BaselineValue
    attainable: tuple[float, float] | None

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "best_constant": self.best_constant.to_dict(),
            "majority": self.majority.to_dict(),
            "chance": self.chance.to_dict(),
        }


def measure_baselines(
    metrics: Sequence[Metric], matrices: ConfusionMatrix
) -> list[list[Baselines]]:
    """Return for each matrix of a batch [T] what a system must beat on each metric."""
    step = max(1, BLOCK_SIZE // len(matrices.scale) ** 4)
    found: dict[int, list[Baselines]] = {}
    for alike in group_alike_matrices(matrices):
        for places in np.split(alike, range(step, len(alike), step)):
            predictors = BaselinePredictors(matrices[places])
            columns = [predictors.measure(metric) for metric in metrics]
            found |= zip(places.tolist(), map(list, zip(*columns, strict=True)), strict=True)
    return [found[place] for place in range(len(found))]


class BaselinePredictors:
    """The confusion matrices of simple predictors, for all metrics and each gold distribution [T].

    One matrix is a batch of one.
    """

    def __init__(self, matrix: ConfusionMatrix) -> None:
        self.matrix = matrix if matrix.shape else matrix.broadcast((1,))
        self.scale = matrix.scale
        silent = self.matrix.unanswered_share.sum(axis=-1, keepdims=True) * self.matrix.gold
        by_chance = self.matrix.by_chance * np.asarray(self.matrix.total)[:, None, None]
        self.chance = self.matrix.with_cells(by_chance, silent)
        self.majority = self.matrix.gold.argmax(axis=-1)

    def constants(self) -> Iterable[ConfusionMatrix]:
        """Everything predicted as one level: matrices [T, levels], in blocks of levels."""
        whole = self.matrix.gold.size * len(self.scale) ** 2 <= LARGE_BLOCK_SIZE
        return self._few_constants if whole else self._build_constants()

    @cached_property
    def _few_constants(self) -> list[ConfusionMatrix]:
        return list(self._build_constants())

    def _build_constants(self) -> Iterator[ConfusionMatrix]:
        size, gold = len(self.scale), self.matrix.gold
        block = max(1, LARGE_BLOCK_SIZE // (gold.size * size))
        for first in range(0, size, block):
            levels = np.arange(first, min(first + block, size))
            cells = np.zeros((len(gold), len(levels), size, size))
            cells[:, np.arange(len(levels)), :, levels] = gold
            yield self.matrix.with_cells(cells)

    @cached_property
    def matrices_with_one_row_moved(self) -> list[ConfusionMatrix]:
        """For gold level i and level j: everything predicted lowest, but level i as level j.

        The matrices [T, i, j, K, K] come in blocks of gold levels that stay small in memory.
        """
        size, gold = len(self.scale), self.matrix.gold
        lowest = np.zeros((len(gold), size, size))
        lowest[..., 0] = gold
        block = max(1, BLOCK_SIZE // (gold.size * size**2))
        return [
            self._move_rows(lowest, np.arange(first, min(first + block, size)))
            for first in range(0, size, block)
        ]

    def _move_rows(self, lowest: NDArray[np.float64], levels: NDArray[np.int64]) -> ConfusionMatrix:
        size = len(self.scale)
        cells = np.repeat(lowest[:, None, None], len(levels), axis=1).repeat(size, axis=2)
        moved = np.eye(size) * self.matrix.gold[:, levels, None, None]
        cells[:, np.arange(len(levels)), :, levels, :] = moved.swapaxes(0, 1)
        return self.matrix.with_cells(cells)

    def measure(self, metric: Metric) -> list[Baselines]:
        """Return what a system must beat on a metric, for each matrix."""
        constants, chance = self._evaluate_constants(metric), self._compute_chance(metric)
        ranges = self._compute_attainable_ranges(metric)
        columns = zip(*constants, chance, ranges, strict=True)
        return [Baselines(best, majority, x, y) for best, majority, x, y in columns]

    def _evaluate_constants(
        self, metric: Metric
    ) -> tuple[list[BaselineValue], list[BaselineValue]]:
        """Return the best constant and the majority level."""
        try:
            values = np.concatenate([metric(matrices) for matrices in self.constants()], axis=-1)
        except NotApplicable as reason:
            undefined = [BaselineValue(math.nan, str(reason))] * len(self.majority)
            return undefined, undefined
        rows = np.arange(len(values))
        best = self.majority  # of constants that are equally good, the one people think of
        for k, value in enumerate(values.T):
            least = values[rows, best]
            equal = np.abs(value - least) <= ROUNDING * np.maximum(
                1.0, np.maximum(np.abs(value), np.abs(least))
            )
            better = ~equal & metric.is_better(value, least)
            best = np.where(np.isnan(least) | better, k, best)
        found = self._list_points(metric, values[rows, best], best)
        nowhere = BaselineValue(math.nan, "undefined for constant predictions")
        return (
            [nowhere if math.isnan(each.value) else each for each in found],
            self._list_points(metric, values[rows, self.majority], self.majority),
        )

    def _compute_chance(self, metric: Metric) -> list[BaselineValue]:
        try:
            values = metric.compute_from_expected(self.chance, self.matrix)
        except NotApplicable as reason:
            return [BaselineValue(math.nan, str(reason))] * len(self.majority)
        return self._list_points(metric, values)

    def _list_points(
        self, metric: Metric, values: NDArray[Any], levels: NDArray[Any] | None = None
    ) -> list[BaselineValue]:
        labels = self.scale.labels
        places = [None] * len(values) if levels is None else [labels[k] for k in levels]
        return [
            BaselineValue(value, metric.undefined_when if math.isnan(value) else None, level)
            for value, level in zip(values.tolist(), places, strict=True)
        ]

    def _compute_attainable_ranges(self, metric: Metric) -> list[tuple[float, float] | None]:
        """Return the least and the largest value at this gold: each row adds its own part."""
        if not metric.linear or len(self.scale) > MOST_LEVELS:
            return [None] * len(self.majority)
        parts = [metric(matrices) for matrices in self.matrices_with_one_row_moved]
        values = np.concatenate(parts, axis=1)
        lowest = values[:, 0, 0]  # [gold level, its prediction]
        gains = values - lowest[:, None, None]
        ends = (lowest + extreme(axis=-1).sum(axis=-1) for extreme in (gains.min, gains.max))
        low, high = (np.clip(np.round(end, 12), *metric.bounds).tolist() for end in ends)
        unknown = np.isnan(lowest).tolist()
        return [None if x else (y, z) for x, y, z in zip(unknown, low, high, strict=True)]
