"""Rank correlations of many short rows at once."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
ROUNDING_DIGITS = 12  # at which values that differ in rounding alone are equal


def compute_mid_ranks(values: ArrayLike, times: ArrayLike | None = None) -> Array:
    """Return the ranks along the last axis from 1; equal values share the mean of their ranks.

    `times` says how often each value counts, as if it stood there so often. Infinite values are
    ranked like others; undefined ones come last, each with a rank of its own.

    >>> compute_mid_ranks([0.2, 0.5, 0.5, 0.1]).tolist()
    [2.0, 3.5, 3.5, 1.0]
    >>> compute_mid_ranks([0.2, 0.5, 0.1], times=[1, 2, 1]).tolist()
    [2.0, 3.5, 1.0]
    """
    rounded = np.round(np.asarray(values, float), ROUNDING_DIGITS)
    order = np.argsort(rounded, axis=-1)
    ordered = np.take_along_axis(rounded, order, axis=-1)
    each = np.ones(rounded.shape) if times is None else np.asarray(times, float)
    counts = np.take_along_axis(np.broadcast_to(each, rounded.shape), order, axis=-1)
    reached = np.cumsum(counts, axis=-1)
    rises = np.ones(rounded.shape, bool)
    rises[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    falls = np.ones(rounded.shape, bool)
    falls[..., :-1] = rises[..., 1:]
    first = np.maximum.accumulate(np.where(rises, reached - counts + 1, -np.inf), axis=-1)
    last = np.minimum.accumulate(np.where(falls, reached, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty_like(rounded)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=-1)
    return ranks


def compute_pearson(first: Array, second: Array, times: ArrayLike | None = None) -> Any:
    """Return Pearson's correlation along the last axis, and nan where a side is constant.

    `times` says how often each place counts; 0 leaves it out. It is rounded, so that no rounding
    error leads out of [-1, 1].
    """
    each = np.ones(1) if times is None else np.asarray(times, float)
    each = np.broadcast_to(each, np.broadcast_shapes(each.shape, first.shape, second.shape))
    with np.errstate(invalid="ignore"):
        count = each.sum(axis=-1, keepdims=True)
        first = first - (each * first).sum(axis=-1, keepdims=True) / count
        second = second - (each * second).sum(axis=-1, keepdims=True) / count
        size = np.sqrt((each * first**2).sum(axis=-1) * (each * second**2).sum(axis=-1))
        correlation = np.where(size > 0, (each * first * second).sum(axis=-1) / size, np.nan)
    return np.round(correlation, ROUNDING_DIGITS)[()]


def compute_spearman(first: ArrayLike, second: ArrayLike, times: ArrayLike = 1.0) -> Any:
    """Return Spearman's correlation along the last axis, and nan where a side is constant.

    It runs over the places where both sides are defined; `times` says how often each counts.

    >>> round(float(compute_spearman([1, 2, 3, 4], [1, 3, 2, 4])), 3)
    0.8
    >>> round(float(compute_spearman([1, 2, float("nan"), 3, 4], [1, 3, 0, 2, 4])), 3)
    0.8
    """
    one, other = np.broadcast_arrays(np.asarray(first, float), np.asarray(second, float))
    both = ~(np.isnan(one) | np.isnan(other))
    each = both * np.asarray(times, float)
    first_ranks, second_ranks = (
        compute_mid_ranks(np.where(both, side, np.nan), each) for side in (one, other)
    )
    return compute_pearson(first_ranks, second_ranks, each)
