"""Differences between regression models on the same items, from what each item adds to a metric."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.regression_delta_method import (
    MOMENT_BASIS,
    compute_gradient,
    is_delta_applicable,
)
from ordinate.inference.resampling import BLOCK_SIZE, Resampling
from ordinate.inference.system_differences import DifferenceLaw
from ordinate.metrics import Metric
from ordinate.metrics.regression import BASELINE_FAMILY
from ordinate.summaries.regression import Moments

Floats = NDArray[np.float64]
ROUNDING_SHARE = 1e-12  # relative to the values: a difference, or an error, this small is rounding


def explain_untested(metric: Metric, tables: Sequence[Moments]) -> str | None:
    """Say why differences in a metric are not tested: it has no derivative in the moments."""
    if metric.family == BASELINE_FAMILY:
        return "it is a baseline"
    if not all(is_delta_applicable(metric, table) for table in tables):
        return "no method covers it"
    return None


def compute_influence(metric: Metric, table: Moments, y: Floats, predicted: Floats) -> Floats:
    """Return what each item adds to the distance of a metric from its best value, or to itself.

    A metric that is best at 0 is compared by its distance from 0, and so turns with its sign.
    """
    e, value = predicted - y, float(metric(table))
    if metric.name == "mae":
        return np.abs(e) - value
    d, f = y - float(table.plain.y), e - float(table.plain.e)
    found = np.zeros(len(y))
    for slope, (a, b) in zip(compute_gradient(metric, table), MOMENT_BASIS, strict=True):
        centre = float(table.plain.mean(a, b)) if a + b > 1 else 0.0
        found += slope * (d**a * f**b - centre)
    return -found if metric.direction == "zero" and value < 0 else found


def sum_influence(
    influence: Floats, weights: Floats | None, groups: NDArray[np.intp] | None, *, counted: bool
) -> Floats:
    """Return what each unit adds, so that the sum of squares is that of independent units.

    Units are clusters, or items: integer weights are counts of them, of others the squares count.
    """
    if groups is not None:
        added = influence if weights is None else weights * influence
        found: Floats = np.bincount(groups, added).astype(float)
        return found
    if weights is None:
        return influence
    return (np.sqrt(weights) if counted else weights) * influence


def compute_law(values: Floats, parts: Floats, freedom: float) -> DifferenceLaw:
    """Return the standard errors of all differences of values [S], from their parts by unit [S, U].

    Where two models differ in no unit but for rounding, they are the same, or cannot be tested.
    """
    count = len(values)
    errors, step = np.zeros((count, count)), max(1, BLOCK_SIZE // max(1, parts.shape[1]))
    for one in range(count):
        for start in range(one + 1, count, step):
            rest = slice(start, start + step)
            apart = parts[rest] - parts[one]
            errors[one, rest] = errors[rest, one] = np.sqrt(np.einsum("su,su->s", apart, apart))
    rounding = ROUNDING_SHARE * np.maximum(np.abs(values)[:, None], np.abs(values))
    gaps = np.abs(values[:, None] - values)
    errors[errors <= rounding] = 0.0
    errors[(errors == 0.0) & (gaps > rounding)] = np.nan
    return DifferenceLaw(errors, freedom)


def simulate_values(values: Floats, parts: Floats, freedom: float, resamples: Resampling) -> Floats:
    """Return values [B, S] of other samples: normal, or Student's t, with the covariance of parts.

    They depend on the models, not on the order in which these are given.
    """
    rows = np.column_stack([values, parts])
    _, places, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    distinct = parts[places]
    # no matrix product: the same digits whatever the number of threads
    covariance = np.einsum("su,tu->st", distinct, distinct)
    rng = np.random.default_rng([resamples.seed, 0])
    deviations = rng.multivariate_normal(
        np.zeros(len(distinct)),
        covariance,
        resamples.count,
        check_valid="ignore",  # it is one, but for rounding
        method="eigh",
    )
    if not math.isinf(freedom):
        deviations /= np.sqrt(rng.chisquare(freedom, (resamples.count, 1)) / freedom)
    return np.asarray((values[places] + deviations)[:, same.reshape(-1)])
