"""Class weights: how much an item of each level counts in fitting."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WeightStrategy = Literal["equal", "inverse", "inverse_sqrt"]
WEIGHT_STRATEGIES: tuple[str, ...] = get_args(WeightStrategy)


def compute_class_weights(
    levels: NDArray[np.intp], size: int, strategy: str = "equal", alpha: float = 1.0
) -> Floats:
    """Return the weight of each level of the scale, from the training items alone.

    `inverse` weighs a level by one over its share, `inverse_sqrt` by the root of that; `alpha`
    blends with equal weights: 0 is equal, 1 is the strategy. The mean weight over the items is 1. A
    level that no item has gets weight 1. Index the result by `levels` for the weights of items.

    >>> compute_class_weights(np.array([0, 0, 0, 2]), 3, "inverse").round(3).tolist()
    [0.667, 1.0, 2.0]
    """
    counts = np.bincount(levels, minlength=size).astype(float)
    present = counts > 0
    weights = np.ones(size)
    weights[present] = _compute_raw_weights(counts[present], strategy)
    return (1.0 - alpha) + alpha * weights


def _compute_raw_weights(counts: Floats, strategy: str) -> Floats:
    """Return weights of the levels that occur, so that the mean over items is 1."""
    if strategy == "equal":
        return np.ones(len(counts))
    rare = counts.sum() / (len(counts) * counts)
    weights = rare if strategy == "inverse" else np.sqrt(rare)
    return weights * (counts.sum() / (weights @ counts))
