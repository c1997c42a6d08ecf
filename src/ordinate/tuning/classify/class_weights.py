"""Class weights: how much an item of each level counts in fitting."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems, OffScale, shorten, suggest_names

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
    check_weighting(strategy, alpha)
    counts = _count_levels(levels, size)
    present = counts > 0
    weights = np.ones(size)
    weights[present] = _compute_raw_weights(counts[present], strategy)
    return (1.0 - alpha) + alpha * weights


def check_weighting(strategy: str, alpha: float) -> None:
    """Refuse a strategy that does not exist, or an alpha outside [0, 1]."""
    if strategy not in WEIGHT_STRATEGIES:
        raise BadOption(
            f"There is no weight strategy {shorten(strategy)}. Known are "
            f"{', '.join(WEIGHT_STRATEGIES)}."
            f"{suggest_names(str(strategy), list(WEIGHT_STRATEGIES))}"
        )
    if not 0.0 <= alpha <= 1.0:  # nan neither
        raise BadOption(
            f"The weight alpha {shorten(alpha)} is not from 0 (equal weights) to 1 ({strategy})."
        )


def _count_levels(levels: NDArray[np.intp], size: int) -> Floats:
    if not len(levels):
        raise NoItems("There are no training items to weigh: the column of levels is empty.")
    if levels.min() < 0 or levels.max() >= size:
        raise OffScale(
            f"Level positions run from {levels.min()} to {levels.max()}, and the scale has {size} "
            f"levels: 0 to {size - 1}."
        )
    return np.bincount(levels, minlength=size).astype(float)


def _compute_raw_weights(counts: Floats, strategy: str) -> Floats:
    """Return weights of the levels that occur, so that the mean over items is 1."""
    if strategy == "equal":
        return np.ones(len(counts))
    rare = counts.sum() / (len(counts) * counts)
    weights = rare if strategy == "inverse" else np.sqrt(rare)
    return weights * (counts.sum() / (weights @ counts))
