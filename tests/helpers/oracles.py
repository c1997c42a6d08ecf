"""Inference written out over the items: the oracle of these tests.

Nothing here resamples, deletes or differentiates by calling the package: samples are lists of
items, and a replicate is a list of items resampled, counted with ``bincount``.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from naive import NAIVE
from numpy.typing import NDArray
from scipy import stats
from strategies import items_of, scale_of

from ordinate.inference.interval_methods import METHOD_BY_FAMILY, METHOD_WITHOUT_DERIVATIVE
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]

# Ten metrics of every kind: shares, macro means, agreement, distance, ranks, closeness, entropy.
TEN = (
    "accuracy",
    "accuracy_within",
    "macro_accuracy",
    "f1_macro",
    "quadratic_kappa",
    "mae",
    "macro_mae",
    "kendall_tau_b",
    "cem_ord",
    "mutual_information",
)


def confusion(cells: Any, positions: "list[float] | None" = None) -> ConfusionMatrix:
    """A table of counts on a scale of its size, or a batch of them."""
    array = np.array(cells, float)
    return ConfusionMatrix.from_counts(array, scale_of(array.shape[-1], positions))


def labels(levels: Any) -> list[str]:
    """The labels of level indices on the scales of `strategies`."""
    return [f"L{int(level)}" for level in levels]


def sample(size: int, n: int, seed: int, noise: float = 1.0, power: float = 1.0) -> Array:
    """Counts of n items of unequal gold levels, predicted with ordered errors."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, size + 1.0) ** power
    gold = rng.choice(size, n, p=shares / shares.sum())
    predicted = np.clip(np.rint(gold + rng.normal(0.0, noise, n)), 0, size - 1).astype(int)
    return np.bincount(gold * size + predicted, minlength=size**2).reshape(size, size)


def spelled(table: ConfusionMatrix) -> tuple[Array, Array]:
    """Gold and predicted level of each item; no answer is the level above the highest."""
    gold, predicted = items_of(table)
    size = len(table.scale)
    return np.array(gold), np.array([size if p is None else p for p in predicted])


def recount(size: int, gold: Array, predicted: Array, weights: "Array | None" = None) -> Array:
    """Cells [K, K + 1] of some items."""
    cell = gold * (size + 1) + predicted
    counted = np.bincount(cell, weights, minlength=size * (size + 1))
    return counted.astype(float).reshape(size, size + 1)


def item_bootstrap(
    size: int,
    gold: Array,
    predicted: Array,
    *,
    count: int,
    seed: int,
    weights: "Array | None" = None,
    draw: "int | None" = None,
) -> Array:
    """Cells [count, K, K + 1]: items resampled one by one, each with its weight.

    A right bootstrap resamples as many items as there are; `draw` makes a wrong one.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        who = rng.integers(len(gold), size=draw or len(gold))
        found.append(
            recount(size, gold[who], predicted[who], None if weights is None else weights[who])
        )
    return np.array(found)


def group_bootstrap(
    size: int, gold: Array, predicted: Array, groups: Array, *, count: int, seed: int
) -> Array:
    """Cells [count, K, K + 1]: whole groups of items resampled."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    found = []
    for _ in range(count):
        chosen = rng.integers(len(members), size=len(members))
        who = np.concatenate([members[group] for group in chosen])
        found.append(recount(size, gold[who], predicted[who]))
    return np.array(found)


def usual(metric: Metric) -> str:
    """The method for plain counts: that of its kind, or the one the study chose for its family."""
    if metric.share:
        return "wilson"
    if metric.macro:
        return {"mean": "mover", "worst": "simultaneous", "other": "percentile"}[metric.macro]
    return (
        METHOD_BY_FAMILY.get(metric.family, METHOD_WITHOUT_DERIVATIVE)
        if metric.smooth
        else METHOD_WITHOUT_DERIVATIVE
    )


# --- do two sets of values come from one distribution? -------------------------------------------

SIGMAS = 4.0  # Monte-Carlo standard errors that two means, or two deviations, may lie apart
ALPHA = 0.01  # of the Kolmogorov-Smirnov test, divided by the number of comparisons


def disagreements(first: Array, second: Array, comparisons: int) -> list[str]:
    """Name what shows that two sets of bootstrap values have different distributions.

    The rule, fixed beforehand: the two-sample Kolmogorov-Smirnov test at 1 % over the number of
    comparisons (Bonferroni; with ties it is conservative), means within 4 Monte-Carlo standard
    errors, standard deviations within 4 of theirs (from the fourth moment), and shares of
    undefined values within 4 of theirs. Values are rounded, so that one and the same table does
    not count as two values.
    """
    found = []
    lost = [np.isnan(values).mean() for values in (first, second)]
    pooled = sum(lost) / 2
    error = math.sqrt(pooled * (1 - pooled) * (1 / len(first) + 1 / len(second)))
    if abs(lost[0] - lost[1]) > SIGMAS * error + 1e-12:
        found.append("undefined")
    one, two = (np.round(values[~np.isnan(values)], 10) for values in (first, second))
    if stats.ks_2samp(one, two, method="asymp").pvalue < ALPHA / comparisons:
        found.append("distribution")
    error = math.hypot(*(values.std() / math.sqrt(len(values)) for values in (one, two)))
    if abs(one.mean() - two.mean()) > SIGMAS * error:
        found.append("mean")
    error = math.hypot(deviation_error(one), deviation_error(two))
    if abs(one.std() - two.std()) > SIGMAS * error:
        found.append("deviation")
    return found


def deviation_error(values: Array) -> float:
    """The Monte-Carlo standard error of a standard deviation."""
    centred = values - values.mean()
    second, fourth = (centred**2).mean(), (centred**4).mean()
    return math.sqrt((fourth - second**2) / (4.0 * second * len(values)))


# --- the jackknife -------------------------------------------------------------------------------


def naive_value(name: str, gold: Sequence[int], predicted: Sequence[int], size: int) -> float:
    """A metric over items at equal steps; loops over NumPy's numbers would take several times."""
    return NAIVE[name](*(np.asarray(codes).tolist() for codes in (gold, predicted)), range(size))


def without_each(name: str, gold: Array, predicted: Array, units: Array, size: int) -> list[float]:
    """The metric without each unit (an item, or a group of items), one by one."""
    return [
        naive_value(name, gold[units != unit], predicted[units != unit], size)
        for unit in np.unique(units)
    ]


def skewness(values: Sequence[float]) -> float:
    """BCa's acceleration of jackknife values: a sixth of their skewness, with its sign turned."""
    middle = math.fsum(values) / len(values)
    pulls = [middle - value for value in values]
    spread = math.fsum(pull**2 for pull in pulls)
    return math.fsum(pull**3 for pull in pulls) / (6.0 * spread**1.5)


def corrected_limits(values: Array, value: float, skew: float, level: float) -> tuple[float, float]:
    """Efron's BCa limits, from SciPy's normal distribution; equal values count half below."""
    equal = np.isclose(values, value, rtol=1e-10, atol=1e-12)
    below = ((values < value) & ~equal).sum() + equal.sum() / 2
    shift = stats.norm.ppf(below / len(values))
    ends = []
    for tail in ((1 - level) / 2, 1 - (1 - level) / 2):
        z = shift + stats.norm.ppf(tail)
        ends.append(np.quantile(values, stats.norm.cdf(shift + z / (1 - skew * z))))
    return float(ends[0]), float(ends[1])
