"""Averages over cases: the mean of a metric over topics, prompts or writers, and its spread."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.delta_method import BLOCK_SIZE, compute_bounded_interval
from ordinate.inference.distributions import student_quantile
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.small_samples import count_effective_items
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
FEWEST_KNOWN_SHARE = 0.5  # of the cases must have a standard error of their own
FLAT_SPREAD = 1e-12  # a spread of nothing
FEW_ITEMS = 20  # in a case, below which intervals over items are rough
SAMPLED_METHOD, FIXED_METHOD = "t_over_cases", "items_of_cases"


@dataclass(frozen=True)
class CaseValues:
    """A metric in each case [C], and the standard error that the items of the case leave it.

    Both are nan where undefined; `reason` says why a case has no value. `sizes` are the numbers of
    (equally heavy) items.
    """

    values: Array
    errors: Array
    reason: str | None = None
    sizes: Array | None = None


@dataclass(frozen=True)
class CaseAverage:
    """The mean over the cases that have a value, and how far these lie apart.

    `spread` is the standard deviation over cases, `true_spread` what is left of it without the
    noise of few items in each.
    """

    estimate: Estimate
    spread: float
    true_spread: float
    cases: int  # that have a value

    def __float__(self) -> float:
        return self.estimate.value


def measure_cases(metric: Metric, cases: ConfusionMatrix) -> CaseValues:
    """Return a metric in each case of a batch, and its standard error within the case."""
    found = compute_case_values(metric, cases)
    if np.isnan(found.values).all():
        return found
    return replace(found, errors=estimate_item_errors(metric, cases, found.values))


def compute_case_values(metric: Metric, cases: ConfusionMatrix) -> CaseValues:
    """Return a metric in each case of a batch, without the standard errors."""
    unknown, sizes = np.full(cases.shape, np.nan), _count_case_items(cases)
    try:
        values = np.asarray(metric(cases), float)
    except NotApplicable as reason:
        return CaseValues(unknown, unknown, str(reason), sizes)
    why = metric.undefined_when if np.isnan(values).any() else None
    return CaseValues(values, unknown, why, sizes)


def estimate_item_errors(
    metric: Metric, cases: ConfusionMatrix, values: Array, *, block_size: int = BLOCK_SIZE
) -> Array:
    """Return the standard error [C] of a metric within each case: the jackknife over its items.

    se² = (n - 1)/n Σ_i (θ_(i) - mean)². All items of a cell leave the same matrix behind, so each
    filled cell of a case is tried once. Of fractional weights an item of the mean weight of its
    cell is left out, and the squares of the weights count, not their sum alone.
    """
    counted = cases.has_integer_weights
    weights = cases.weights.reshape(len(cases.weights), -1)
    case, cell = np.nonzero(weights)
    size = _count_case_items(cases)
    squares = weights if counted else cases.squares.reshape(weights.shape)
    with np.errstate(invalid="ignore", divide="ignore"):  # without items, or their number unknown
        item = np.ones_like(weights) if counted else weights / cases.items.reshape(weights.shape)
        left = _leave_out_items(metric, cases, weights, (case, cell, item[case, cell]), block_size)
        # The influence of an item: how far its share of the weight pulls the metric.
        share = item[case, cell] / (cases.total[case] - item[case, cell])
        pulls = (values[case] - left) / share
        mean = _sum_by_case(case, weights[case, cell] * pulls, cases) / cases.total
        deviations = squares[case, cell] * (pulls - mean[case]) ** 2
        variance = _sum_by_case(case, deviations, cases) / cases.total**2 * size / (size - 1.0)
        return np.where(size > 1.0, np.sqrt(variance), np.nan)


def _count_case_items(cases: ConfusionMatrix) -> Array:
    """Return the effective number of items of each case [C]."""
    squares = cases.weights if cases.has_integer_weights else cases.squares
    return count_effective_items(cases.total, squares.sum(axis=(-2, -1)))


def _leave_out_items(
    metric: Metric,
    cases: ConfusionMatrix,
    weights: Array,
    items: tuple[Array, Array, Array],
    block_size: int,
) -> Array:
    """Return the metric of each case without one item of each cell: (case, cell, weight)."""
    values = np.empty(len(items[0]))
    blocks = max(1, -(-len(values) * weights.shape[1] // block_size))
    for block in np.array_split(np.arange(len(values)), blocks):
        case, cell, item = (part[block] for part in items)
        cells = weights[case]
        cells[np.arange(len(block)), cell] = np.maximum(weights[case, cell] - item, 0.0)
        matrices = cases.with_cells(cells.reshape(-1, *cases.weights.shape[1:]))
        values[block] = metric.compute_from_expected(matrices, cases)
    return values


def _sum_by_case(case: Array, amounts: Array, cases: ConfusionMatrix) -> Array:
    return np.bincount(case, weights=amounts, minlength=len(cases.weights))


# --- the mean ------------------------------------------------------------------------------------


def average_cases(
    found: CaseValues, level: float | None, bounds: tuple[float, float], *, fixed: bool = False
) -> CaseAverage:
    """Return the mean over cases with its interval: cases as the sample, or fixed and their items.

    Cases as the sample: se² = Σ(θ_c - m)² / C(C - 1), with Student's t; the noise of items is in it
    already. Cases fixed: se² = Σ se_c² / C², Student's t at Satterthwaite's degrees of freedom,
    on the scale without bounds. The two are never added.

    >>> found = CaseValues(np.array([0.5, 0.6, 0.7, np.nan]), np.array([0.1, 0.1, 0.1, np.nan]))
    >>> average = average_cases(found, 0.95, (0, 1))
    >>> round(float(average), 3), average.cases, round(average.spread, 3), average.true_spread
    (0.6, 3, 0.1, 0.0)
    """
    known = ~np.isnan(found.values)
    values, errors = found.values[known], found.errors[known]
    sizes = np.full(values.shape, np.inf) if found.sizes is None else found.sizes[known]
    if not len(values):
        nothing = make_point_estimate(math.nan, found.reason or "no case has a value")
        return CaseAverage(nothing, math.nan, math.nan, 0)
    with np.errstate(invalid="ignore"):  # a case may be infinitely bad
        mean = float(values.mean())
        spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    variances = _estimate_item_variances(errors, sizes)
    noise = float(variances.mean())
    true_spread = math.sqrt(max(0.0, spread**2 - noise)) if _is_known(spread, noise) else math.nan
    if fixed:
        estimate = _estimate_over_items(mean, variances, errors, sizes, level, bounds)
    else:
        estimate = _estimate_over_cases(mean, spread, len(values), level, bounds)
    return CaseAverage(estimate, spread, true_spread, len(values))


def _estimate_item_variances(errors: Array, sizes: Array) -> Array:
    """Return se_c² of each case; nan where too few have one.

    The others are taken for as noisy, item by item, as these: se_c² = σ² / n_c with the pooled σ²
    within cases. A case whose items are all alike keeps its 0: the mean over cases is right.
    """
    known = ~np.isnan(errors)
    if known.all():
        return errors**2
    if np.isinf(sizes).any() or known.sum() < FEWEST_KNOWN_SHARE * len(errors):
        return np.full(errors.shape, np.nan)
    freedom = sizes[known] - 1.0
    pooled = (freedom * sizes[known] * errors[known] ** 2).sum() / freedom.sum()
    return np.where(known, errors**2, pooled / sizes)


def _estimate_over_cases(
    mean: float, spread: float, count: int, level: float | None, bounds: tuple[float, float]
) -> Estimate:
    if level is None:
        return make_point_estimate(mean)
    if count < 2:
        return make_point_estimate(mean, "there is one case only")
    if not spread > FLAT_SPREAD:
        why = "every case has the same value" if math.isfinite(spread) else "a case is infinite"
        return make_point_estimate(mean, why)
    reach = student_quantile(level, count - 1) * spread / math.sqrt(count)
    low, high = np.clip((mean - reach, mean + reach), *bounds).tolist()
    return Estimate(mean, low, high, SAMPLED_METHOD)


def _estimate_over_items(
    mean: float,
    variances: Array,
    errors: Array,
    sizes: Array,
    level: float | None,
    bounds: tuple[float, float],
) -> Estimate:
    if level is None:
        return make_point_estimate(mean)
    noise, unknown = float(variances.mean()), int(np.isnan(errors).sum())
    if not noise > FLAT_SPREAD**2:
        why = "its items leave no error in any case"
        if math.isnan(noise):
            why = f"{unknown:,} of {len(errors):,} cases have no standard error of their own"
        return make_point_estimate(mean, why)
    if not math.isfinite(mean):
        return make_point_estimate(mean, "a case is infinite")
    reach = student_quantile(level, _count_freedom(variances, sizes))
    low, high = compute_bounded_interval(mean, math.sqrt(noise / len(errors)), bounds, reach)
    doubts = []
    if unknown:
        doubts.append(
            f"{unknown:,} cases without a standard error are taken for as noisy as the others"
        )
    if few := int((sizes < FEW_ITEMS).sum()):
        doubts.append(f"{few:,} of {len(sizes):,} cases have fewer than {FEW_ITEMS} items")
    return Estimate(mean, low, high, FIXED_METHOD, note="; ".join(doubts) or None)


def _count_freedom(variances: Array, sizes: Array) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of variances, each with n_c - 1."""
    own = np.maximum(sizes - 1.0, 1.0)
    doubt = float((variances**2 / own).sum())
    return float(variances.sum()) ** 2 / doubt if doubt > 0 else math.inf


def _is_known(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def find_worst_cases(metric: Metric, values: Array, most: int) -> Array:
    """Return the cases with the worst values, the worst first; those without a value are none.

    >>> from ordinate.metrics import find_metric
    >>> find_worst_cases(find_metric("mae"), np.array([0.5, np.nan, 2.0, 1.0]), 2).tolist()
    [2, 3]
    """
    known = np.flatnonzero(~np.isnan(values))
    order = np.argsort(metric.merit(values[known]), kind="stable")
    return known[order[:most]]
