"""What a system must beat: constants, chance, and the range that gold leaves attainable."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.metrics import Metric
from ordinate.results.base import Record, to_json_label, to_plain
from ordinate.summaries import ConfusionMatrix

BLOCK_SIZE = 1 << 18  # cells of matrices that all metrics share
LARGE_BLOCK_SIZE = 1 << 21  # cells of matrices that are evaluated at once
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


class BaselinePredictors:
    """The confusion matrices of simple predictors for one gold distribution, for all metrics."""

    def __init__(self, matrix: ConfusionMatrix) -> None:
        self.matrix, self.scale = matrix, matrix.scale
        silent = matrix.unanswered_share.sum() * matrix.gold
        self.chance = matrix.with_cells(matrix.by_chance * matrix.total, silent)
        self.majority = int(matrix.gold.argmax())

    def constants(self) -> Iterator[ConfusionMatrix]:
        """Everything predicted as one level: a matrix for each, in blocks of levels."""
        size = len(self.scale)
        block = max(1, LARGE_BLOCK_SIZE // size**2)
        for first in range(0, size, block):
            levels = np.arange(first, min(first + block, size))
            cells = np.zeros((len(levels), size, size))
            cells[np.arange(len(levels)), :, levels] = self.matrix.gold
            yield self.matrix.with_cells(cells)

    @cached_property
    def matrices_with_one_row_moved(self) -> list[ConfusionMatrix]:
        """For gold level i and level j: everything predicted lowest, but level i as level j.

        The matrices [i, j, K, K] come in blocks of gold levels that stay small in memory.
        """
        size = len(self.scale)
        lowest = np.zeros((size, size))
        lowest[:, 0] = self.matrix.gold
        block = max(1, BLOCK_SIZE // size**3)
        return [
            self._move_rows(lowest, np.arange(first, min(first + block, size)))
            for first in range(0, size, block)
        ]

    def _move_rows(self, lowest: NDArray[np.float64], levels: NDArray[np.int64]) -> ConfusionMatrix:
        size = len(lowest)
        cells = np.broadcast_to(lowest, (len(levels), size, size, size)).copy()
        moved = np.eye(size) * self.matrix.gold[levels, None, None]
        cells[np.arange(len(levels)), :, levels, :] = moved
        return self.matrix.with_cells(cells)

    def measure(self, metric: Metric) -> Baselines:
        """Return what a system must beat on a metric."""
        return Baselines(
            *self._evaluate_constants(metric),
            self._compute_chance(metric),
            self._compute_attainable_range(metric),
        )

    def _evaluate_constants(self, metric: Metric) -> tuple[BaselineValue, BaselineValue]:
        try:
            values = np.concatenate([metric(matrices) for matrices in self.constants()])
        except NotApplicable as reason:
            return BaselineValue(math.nan, str(reason)), BaselineValue(math.nan, str(reason))
        levels = self.scale.labels
        majority = self._point(metric, values[self.majority], levels[self.majority])
        best = self.majority  # of constants that are equally good, the one people think of
        for k, value in enumerate(values):
            equal = math.isclose(value, values[best], rel_tol=1e-12, abs_tol=1e-12)
            if math.isnan(values[best]) or (not equal and metric.is_better(value, values[best])):
                best = k
        if math.isnan(values[best]):
            return BaselineValue(math.nan, "undefined for constant predictions"), majority
        return self._point(metric, values[best], levels[best]), majority

    def _compute_chance(self, metric: Metric) -> BaselineValue:
        try:
            return self._point(metric, metric.compute_from_expected(self.chance, self.matrix), None)
        except NotApplicable as reason:
            return BaselineValue(math.nan, str(reason))

    def _point(self, metric: Metric, value: float, level: Hashable | None) -> BaselineValue:
        reason = metric.undefined_when if math.isnan(value) else None
        return BaselineValue(float(value), reason, level)

    def _compute_attainable_range(self, metric: Metric) -> tuple[float, float] | None:
        """Return the least and the largest value at this gold: each row adds its own part."""
        if not metric.linear or len(self.scale) > MOST_LEVELS:
            return None
        values = np.concatenate([metric(matrices) for matrices in self.matrices_with_one_row_moved])
        lowest = float(values[0, 0])  # [gold level, its prediction]
        if math.isnan(lowest):
            return None
        gains = values - lowest
        ends = [lowest + gains.min(axis=1).sum(), lowest + gains.max(axis=1).sum()]
        low, high = (float(np.clip(round(end, 12), *metric.bounds)) for end in ends)
        return low, high
