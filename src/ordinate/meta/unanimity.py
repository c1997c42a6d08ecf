"""Unanimous improvement of systems, and the coverage of metrics: whether their gains go with it."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.meta.rank_correlation import ROUNDING_DIGITS, compute_mid_ranks, compute_pearson

Array = NDArray[Any]
Unanimity = Literal["weak", "strict"]
PairOrder = Literal["ordered", "unordered"]


def compute_improvements(merits: ArrayLike, unanimity: Unanimity = "weak") -> NDArray[np.int8]:
    """Return 1 where system s improves on s' in a test case, -1 where s' does on s: [S, S, T].

    `merits` [R, S, T] are the values of the reference metrics, turned so that larger is better. A
    weak improvement is no loss for any metric (so equal systems improve on each other, which
    cancels out), a strict one a gain for every metric. An undefined value improves on nothing;
    infinite ones are compared like others.
    """
    rounded = np.round(np.asarray(merits, float), ROUNDING_DIGITS)
    unanimous = None
    better = np.greater if unanimity == "strict" else np.greater_equal
    for values in rounded:  # one metric at a time, so that memory stays small
        good = better(values[:, None, :], values[None, :, :])
        unanimous = good if unanimous is None else unanimous & good
    if unanimous is None:
        raise ValueError("at least one reference metric is needed")
    return unanimous.astype(np.int8) - unanimous.swapaxes(0, 1).astype(np.int8)


def compute_unanimous_improvement(improvements: Array, times: ArrayLike | None = None) -> Array:
    """Return the Unanimous Improvement Ratio [S, S] (Amigó et al. 2011).

    It is the share of test cases in which s improves on s', less the share of the reverse. `times`
    says how often each test case counts, [T] or [B, T] for a batch of ratios.

    >>> merits = [[[0.9, 0.8], [0.7, 0.9]], [[0.5, 0.4], [0.3, 0.3]]]  # 2 metrics, systems, cases
    >>> compute_unanimous_improvement(compute_improvements(merits)).tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    if times is None:
        return improvements.mean(axis=-1)
    counts = np.asarray(times, float)
    total = np.einsum("stc,...c->...st", improvements, counts, optimize=True)
    return total / counts.sum(axis=-1)[..., None, None]


def compute_coverage(merits: ArrayLike, ratios: ArrayLike, pairs: PairOrder = "ordered") -> Array:
    """Return the coverage of each metric: Spearman's correlation over pairs of systems.

    It is that of the differences of a metric, `merits` [M, S], with the unanimous improvement
    `ratios` [S, S] (Amigó et al. 2020). A system is never paired with itself. Unordered pairs are
    those of a system with a later one. Systems for which a metric is undefined take no part, nor
    do pairs for which it is equally infinite: they have no difference.

    >>> ratios = [[0, 1, 1], [-1, 0, 0.5], [-1, -0.5, 0]]
    >>> compute_coverage([[0.9, 0.5, 0.1]], ratios).round(3).tolist()
    [0.909]
    """
    values, improvement = np.asarray(merits, float), np.asarray(ratios, float)
    mask = np.triu(np.ones(improvement.shape, bool), 1)
    if pairs == "ordered":
        mask |= mask.T
    return np.array([_correlate_gains(row, improvement, mask) for row in values])


def _correlate_gains(values: Array, ratios: Array, mask: Array) -> float:
    with np.errstate(invalid="ignore"):  # inf - inf
        gains = values[:, None] - values[None, :]
    defined = mask & ~np.isnan(gains)
    if not defined.any():
        return float("nan")
    return float(
        compute_pearson(compute_mid_ranks(gains[defined]), compute_mid_ranks(ratios[defined]))
    )
