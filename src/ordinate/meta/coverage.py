"""Coverage: whether gains of one metric go with gains of all reference metrics."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.meta.rank_correlation import compute_mid_ranks, compute_pearson

Array = NDArray[Any]
PairOrder = Literal["ordered", "unordered"]


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
