"""Rank correlations of many short rows at once."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
DIGITS = 12  # by which values that differ in rounding alone are told to be equal


def mid_ranks(values: ArrayLike) -> Array:
    """Return the ranks along the last axis from 1; equal values share the mean of their ranks.

    >>> mid_ranks([0.2, 0.5, 0.5, 0.1]).tolist()
    [2.0, 3.5, 3.5, 1.0]
    """
    rounded = np.round(np.asarray(values, float), DIGITS)
    order = np.argsort(rounded, axis=-1, kind="stable")
    inorder = np.take_along_axis(rounded, order, axis=-1)
    place = np.arange(1.0, rounded.shape[-1] + 1)
    rises = np.ones(rounded.shape, bool)
    rises[..., 1:] = inorder[..., 1:] != inorder[..., :-1]
    falls = np.ones(rounded.shape, bool)
    falls[..., :-1] = rises[..., 1:]
    first = np.maximum.accumulate(np.where(rises, place, -np.inf), axis=-1)
    last = np.minimum.accumulate(np.where(falls, place, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty_like(rounded)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=-1)
    return ranks


def correlation(first: Array, second: Array) -> Any:
    """Return Pearson's correlation along the last axis, and nan where a side is constant."""
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    size = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    with np.errstate(invalid="ignore"):
        return np.where(size > 0, (first * second).sum(axis=-1) / size, np.nan)[()]


def spearman(first: ArrayLike, second: ArrayLike) -> Any:
    """Return Spearman's correlation along the last axis, and nan where a side is constant.

    >>> round(float(spearman([1, 2, 3, 4], [1, 3, 2, 4])), 3)
    0.8
    """
    return correlation(mid_ranks(first), mid_ranks(second))
