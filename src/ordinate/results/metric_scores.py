"""Scores of confusion matrices: each metric beside what it must beat, and each level."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference import (
    ConfidenceIntervals,
    Estimate,
    estimate_metrics,
    estimate_metrics_of_each,
)
from ordinate.inference.confidence_intervals import group_alike_matrices
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.inference.small_samples import (
    count_effective_items,
    mean_cost_interval,
    wilson_interval,
)
from ordinate.metrics import Metric
from ordinate.metrics.arithmetic import diagonal, level_costs
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_with_interval
from ordinate.render.tables import to_plain
from ordinate.results.base import Record, to_json_label
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:
    from ordinate.inference.constant_tests import ConstantTest

Array = NDArray[Any]
INTERVAL_KEYS = ("low", "high", "method", "undefined_share", "note")
LEVEL_METRICS = ("precision", "recall", "f1", "mae")
BLOCK_SIZE = 1 << 18  # cells of matrices that all metrics share
LARGE_BLOCK_SIZE = 1 << 21  # cells of matrices that are evaluated at once
ROUNDING = 1e-12  # a smaller difference is none
MOST_LEVELS = 50  # up to which the attainable range is worth its K^4 cells
CONSTANT_WORDS = {
    "better": "better than",
    "inconclusive": "not significantly better than",
    "worse": "worse than",
}


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

    def describe_constant(self, scale: Scale) -> str:
        """Return the best constant as people read it, with its level where there is one."""
        best = self.best_constant
        level = "" if best.level is None else f" ({scale.names[scale.lookup[best.level]]})"
        return f"{format_cell(best.value)}{level}"

    def describe_attainable(self) -> str | None:
        """Return the attainable range as people read it."""
        if self.attainable is None:
            return None
        return " to ".join(map(format_cell, self.attainable))

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "best_constant": self.best_constant.to_dict(),
            "majority": self.majority.to_dict(),
            "chance": self.chance.to_dict(),
        }


@dataclass(frozen=True)
class Score:
    """One metric of one system: value and interval, or why there is none, and baselines."""

    metric: Metric
    value: float
    undefined: str | None
    levels_used: int
    baselines: Baselines
    estimate: Estimate | None = None  # None where no interval was asked for
    against_constant: "ConstantTest | None" = None  # against the best; None where nothing decides

    def __float__(self) -> float:
        return self.value

    @property
    def found(self) -> Estimate:
        """The estimate; the value alone where no interval was asked for."""
        return self.estimate or make_point_estimate(self.value, "")

    @property
    def beats_constant(self) -> bool | None:
        """Whether the value is better than every constant prediction; None if that is undefined."""
        best = self.baselines.best_constant.value
        if math.isnan(self.value) or math.isnan(best):
            return None
        return bool(self.metric.is_better(self.value, best)) and not math.isclose(
            self.value, best, rel_tol=1e-12, abs_tol=1e-12
        )

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        interval = {} if self.estimate is None else self.estimate.to_dict()
        return {
            "value": to_plain(self.value),
            "undefined": self.undefined,
            **{key: interval.get(key) for key in INTERVAL_KEYS},
            "levels_used": self.levels_used,
            "direction": self.metric.direction,
            "baselines": self.baselines.to_dict(),
            "attainable": to_plain(self.baselines.attainable),
            "beats_constant": self.beats_constant,
            "against_constant": to_plain(self.against_constant),
        }

    def decide_against_constant(
        self, source: ConfusionMatrix, intervals: ConfidenceIntervals
    ) -> "Score":
        """Return the same with the test against the best constant, of a matrix or of clusters."""
        level = self.baselines.best_constant.level
        if level is None:
            return self
        from ordinate.inference.constant_tests import decide_for_labels  # noqa: PLC0415 - start-up: for intervals

        place = source.scale.lookup[level]
        found = decide_for_labels(self.metric, source, place, self.estimate, intervals)
        return replace(self, against_constant=found)


def estimate_each(
    metrics: list[Metric],
    sources: ConfusionMatrix,
    intervals: ConfidenceIntervals,
    progress: ProgressCallback | None,
) -> list[dict[str, Estimate]]:
    """Return the estimates of each matrix [T], or of each batch of clusters [T, G]."""
    if len(sources.shape) == 1:
        return estimate_metrics_of_each(metrics, sources, intervals, progress)
    return [
        estimate_metrics(metrics, sources[place], intervals, progress)
        for place in range(len(sources.weights))
    ]


def score_each(
    metrics: list[Metric],
    matrices: ConfusionMatrix,
    estimates: list[dict[str, Estimate]] | None,
) -> list[dict[str, Score]]:
    """Return the scores of each matrix [T] by metric."""
    gold = matrices.gold > 0
    either = gold | (matrices.predicted > 0)
    used = {"gold": gold.sum(axis=-1).tolist(), "either": either.sum(axis=-1).tolist()}
    values = zip(*(_compute_values(metric, matrices) for metric in metrics), strict=True)
    rows = zip(values, measure_baselines(metrics, matrices), strict=True)
    return [
        {
            metric.expression: Score(
                metric,
                value,
                reason,
                used[metric.levels][place],
                baselines,
                None if estimates is None else estimates[place][metric.expression],
            )
            for metric, (value, reason), baselines in zip(metrics, *row, strict=True)
        }
        for place, row in enumerate(rows)
    ]


def estimate_each_without_baselines(
    sources: ConfusionMatrix, metrics: list[Metric], intervals: ConfidenceIntervals | None
) -> list[dict[str, Estimate]]:
    """Return metrics of each matrix [T], or of its clusters [T, G]: values alone if so wished."""
    if intervals is not None:
        return estimate_each(metrics, sources, intervals, None)
    matrices = sources.map(lambda x: x.sum(axis=1)) if len(sources.shape) > 1 else sources
    columns = [_compute_values(metric, matrices) for metric in metrics]
    names = [metric.expression for metric in metrics]
    return [
        {
            name: make_point_estimate(value, reason or "")
            for name, (value, reason) in zip(names, row, strict=True)
        }
        for row in zip(*columns, strict=True)
    ]


def _compute_values(metric: Metric, matrices: ConfusionMatrix) -> list[tuple[float, str | None]]:
    """Return the value of a metric for each matrix [T], and why it has none, if it has none."""
    found: list[tuple[float, str | None]] = [(math.nan, None)] * len(matrices.weights)
    for alike in group_alike_matrices(matrices):
        try:
            values = metric(matrices[alike]).tolist()
            reasons = [metric.undefined_when if math.isnan(value) else None for value in values]
        except NotApplicable as problem:
            values, reasons = [math.nan] * len(alike), [str(problem)] * len(alike)
        for place, value, reason in zip(alike, values, reasons, strict=True):
            found[place] = value, reason
    return found


def compare_with_baselines(score: Score, level: str) -> dict[str, str]:
    """Return by relation, such as 'better than', what is said of the baselines that it holds for.

    `level` is the name of the best constant.
    """
    constant, chance = score.baselines.best_constant, score.baselines.chance
    found: dict[str, list[str]] = {}
    for baseline, words in ((constant, f"always predicting {level}"), (chance, "chance")):
        if not math.isnan(baseline.value):
            test = score.against_constant if baseline is constant else None
            how = compare_with_baseline(score, baseline.value, test)
            found.setdefault(how, []).append(f"{words} ({format_cell(baseline.value)})")
    return {how: f"{how} {' and than '.join(each)}" for how, each in found.items()}


def compare_with_baseline(score: Score, baseline: float, test: "ConstantTest | None") -> str:
    """Say whether a value is better than a baseline: by a test, or else by the interval."""
    if test is not None:
        return CONSTANT_WORDS[test.verdict]
    found = score.estimate
    if found is not None and found.low <= baseline <= found.high:
        return "not significantly better than"
    if score.metric.is_better(score.value, baseline):
        return "better than"
    return "no better than" if score.value == baseline else "worse than"


def format_score(score: Score) -> Cell:
    """Return a value with its interval, where it has one."""
    return score.value if score.estimate is None else format_with_interval(score.estimate)


# --- what a system must beat ----------------------------------------------------------------------


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


# --- levels ---------------------------------------------------------------------------------------


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
