"""Are predictions better than a constant? Tests of what each item gains, never of a ratio.

The gain of an item, or of a cluster of them, is the loss of the constant less that of the
prediction. Coins turn the signs of gains; of very many, their mean has Student's t. What is no mean
over items, such as a kappa, goes by the interval of its difference from the constant's value.
"""

import math
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.confidence_intervals import ConfidenceIntervals, estimate_metrics
from ordinate.inference.delta_method import variance_from_influence
from ordinate.inference.distributions import student_tail
from ordinate.inference.estimates import Estimate, to_json_number
from ordinate.inference.resampling import (
    FEW_COINS,
    MOST_ENUMERATED_UNITS,
    enumerate_coins,
)
from ordinate.inference.small_samples import MOST_LEVELS, compute_item_costs
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
ConstantVerdict = Literal["better", "inconclusive", "worse"]
FLIPS, MOST_FLIPPED_UNITS = 9_999, 10_000
TIE_TOLERANCE = 1e-9  # of a sum: a smaller difference is none
FLIPPED, STUDENT, INTERVAL = "sign flips", "t", "interval"


@dataclass(frozen=True)
class ConstantTest:
    """Whether predictions are better than a constant, one-sided at 1 less the level.

    `p` is that of the constant being as good. Where the interval of the difference decides, there
    is none, and `verdict` is that of its level on both sides.
    """

    verdict: ConstantVerdict
    p: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {"verdict": self.verdict, "p": to_json_number(self.p), "method": self.method}


def decide_by_gains(
    gains: Array, level: float, counts: Array | None = None, seed: int = 0
) -> ConstantTest | None:
    """Test whether gains of items, or of clusters, are above 0: by coins, or Student's t of many.

    `counts` says how many items have each gain. There is no test of less than two.

    >>> decide_by_gains(np.array([1.0, 2.0, 0.5, 1.5, 3.0]), 0.95)
    ConstantTest(verdict='better', p=0.03125, method='sign flips')
    """
    counts = np.ones(len(gains), int) if counts is None else counts.astype(int)
    units = int(counts.sum())
    if units < 2:
        return None
    if units > MOST_FLIPPED_UNITS:
        mean = float(counts @ gains) / units
        squares = float(counts @ (gains - mean) ** 2)
        return decide_by_mean_gain(mean, math.sqrt(squares / (units - 1) / units), units, level)
    total, sums = float(counts @ gains), _flip_signs(gains, counts, seed)
    slack = TIE_TOLERANCE * float(counts @ np.abs(gains))
    drawn = int(units > MOST_ENUMERATED_UNITS)  # the data are among all vectors of signs
    above, below = ((side * (sums - total) >= -slack).sum() + drawn for side in (1, -1))
    p, opposite = above / (len(sums) + drawn), below / (len(sums) + drawn)
    return _decide(float(p), float(opposite), level, FLIPPED)


def decide_by_mean_gain(
    mean: float, error: float, units: float, level: float
) -> ConstantTest | None:
    """Test a mean gain by its standard error, with Student's t; None where it has none."""
    if not (math.isfinite(error) and units > 1):
        return None
    if error == 0.0:
        p = 0.5 if mean == 0.0 else float(mean < 0.0)
    else:
        p = student_tail(mean / error, units - 1)
    return _decide(p, 1.0 - p, level, STUDENT)


def _decide(p: float, opposite: float, level: float, method: str) -> ConstantTest:
    alpha = 1.0 - level + TIE_TOLERANCE
    verdict: ConstantVerdict = (
        "better" if p <= alpha else "worse" if opposite <= alpha else "inconclusive"
    )
    return ConstantTest(verdict, p, method)


def _flip_signs(gains: Array, counts: Array, seed: int) -> Array:
    """Return the sums of gains whose signs coins turn [B]: of all vectors, where units are few."""
    units = np.repeat(gains, counts)
    if len(units) <= MOST_ENUMERATED_UNITS:
        half = (1.0 - 2.0 * enumerate_coins(len(units))) @ units
        return np.concatenate([half, -half])
    sizes, place = np.unique(np.abs(gains), return_inverse=True)
    counts = np.bincount(place.reshape(-1), counts).astype(int)
    rng, many = np.random.default_rng(seed), counts > FEW_COINS
    heads = rng.binomial(counts[many], 0.5, (FLIPS, int(many.sum())))
    sums: Array = (2.0 * heads - counts[many]) @ sizes[many]
    rest = np.repeat(sizes[~many], counts[~many])
    eights = np.pad(rest, (0, -len(rest) % 8)).reshape(-1, 8)
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    for of_byte in eights @ signs.T:  # the sums of eight units, by what their coins say
        sums += of_byte[rng.integers(0, 256, FLIPS, np.uint8)]
    return sums


# --- labels --------------------------------------------------------------------------------------


def decide_for_labels(
    metric: Metric,
    source: ConfusionMatrix,
    constant: int,
    estimate: Estimate | None,
    settings: ConfidenceIntervals,
) -> ConstantTest | None:
    """Test whether a metric is better than that of always predicting one level, by its place.

    `source` is one confusion matrix, or a batch of them: one for each cluster. `estimate` is the
    metric with its interval. None where there is no interval, and so no verdict.
    """
    if estimate is None or math.isnan(estimate.low) or metric.direction == "zero":
        return None
    matrix, sign = (source.pooled if source.shape else source), -1.0
    if metric.direction == "maximize":
        sign = 1.0
    losses = _find_item_losses(metric, matrix)
    if losses is not None:
        gains = sign * (losses - losses[:, constant : constant + 1])
        return _test_cells(gains, source, settings)
    if not _depends_on_gold(metric, matrix, constant):
        level = float(metric(_predict_always(matrix, constant)))
        low, high = estimate.low - level, estimate.high - level
    else:
        gap = _subtract_constant(metric, constant)
        found = estimate_metrics([gap], source, replace(settings, method=None))[gap.expression]
        low, high = found.low, found.high
    if math.isnan(low):
        return None
    low, high = sorted((sign * low, sign * high))
    verdict: ConstantVerdict = "better" if low > 0.0 else "worse" if high < 0.0 else "inconclusive"
    return ConstantTest(verdict, math.nan, INTERVAL)


def _test_cells(
    gains: Array, source: ConfusionMatrix, settings: ConfidenceIntervals
) -> ConstantTest | None:
    """Test gains [K, K + 1] of the items in cells, or of clusters of them."""
    level, seed = settings.level, settings.seed
    if source.shape:
        sums = (source[source.total > 0].weights * gains).sum(axis=(-2, -1))
        return decide_by_gains(sums, level, seed=seed)
    filled = source.weights > 0
    if source.has_integer_weights:
        return decide_by_gains(gains[filled], level, source.weights[filled], seed)
    mean = float((source.weights * gains).sum() / source.total)
    variance, n = float(variance_from_influence(source, gains)), source.n
    error = math.sqrt(variance * n / (n - 1)) if n > 1 else math.nan
    return decide_by_mean_gain(mean, error, n, level)


def _find_item_losses(metric: Metric, matrix: ConfusionMatrix) -> Array | None:
    """Return what an item of each cell [K, K + 1] is worth, if a metric is the mean of that."""
    if not metric.linear or metric.macro or len(matrix.scale) > MOST_LEVELS:
        return None
    costs = compute_item_costs(metric, matrix)
    costs = np.pad(costs, ((0, 0), (0, matrix.weights.shape[-1] - costs.shape[1])))
    mean = float((matrix.weights * np.nan_to_num(costs)).sum() / matrix.total)
    same = math.isclose(mean, float(metric(matrix)), rel_tol=1e-9, abs_tol=1e-12)
    return costs if same and np.isfinite(costs).all() else None


def _depends_on_gold(metric: Metric, matrix: ConfusionMatrix, constant: int) -> bool:
    """Tell whether what a constant reaches is another number for other shares of the same levels.

    That of a kappa is 0 whatever gold is.
    """
    once = matrix.with_cells(np.diag((matrix.gold > 0).astype(float)))
    values = [float(metric(_predict_always(each, constant))) for each in (matrix, once)]
    return not math.isclose(*values, rel_tol=1e-9, abs_tol=1e-12)


def _predict_always(matrix: ConfusionMatrix, constant: int) -> ConfusionMatrix:
    cells = np.zeros(matrix.gold.shape + matrix.gold.shape[-1:])
    cells[..., constant] = matrix.gold
    return matrix.with_cells(cells)


def _subtract_constant(metric: Metric, constant: int) -> Metric:
    """Return the metric less its value for a constant prediction, as a metric."""

    @wraps(metric.function)  # its options are the same
    def gap(matrix: ConfusionMatrix, **options: Any) -> Any:
        always = metric.function(_predict_always(matrix, constant), **options)
        return metric.function(matrix, **options) - always

    return replace(
        metric,
        name=f"{metric.name} less a constant",  # another metric to all that goes by names
        function=gap,
        family="agreement",  # by the delta method, and not within the range of distances
        bounds=(-math.inf, math.inf),
        share=False,
        macro=None,
    )


# --- regression ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossTests:
    """Predictions of a target against a constant: by absolute loss, which leads, and by squared.

    `absolute` is None where only moments are known.
    """

    constant: float
    absolute: ConstantTest | None
    squared: ConstantTest | None

    @property
    def leading(self) -> ConstantTest | None:
        """The test that decides."""
        return self.absolute or self.squared

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        tests = {"absolute": self.absolute, "squared": self.squared}
        return {"constant": self.constant} | {
            name: test and test.to_dict() for name, test in tests.items()
        }


def decide_for_items(
    targets: Array,
    predictions: Array,
    constant: float,
    settings: ConfidenceIntervals,
    weights: Array | None = None,
    *,
    counted: bool = True,
) -> LossTests:
    """Test predictions against a constant, item by item; weights are counts of items if so said."""
    if weights is not None:
        there = weights > 0
        targets, predictions, weights = targets[there], predictions[there], weights[there]
    errors, gaps = predictions - targets, constant - targets
    columns = (np.abs(gaps) - np.abs(errors), gaps**2 - errors**2)
    if weights is not None and not counted:
        columns, weights = (columns[0] * weights, columns[1] * weights), None
    return LossTests(
        constant, *(decide_by_gains(x, settings.level, weights, settings.seed) for x in columns)
    )
