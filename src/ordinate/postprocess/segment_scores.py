"""What a run of items is worth as one predicted level, for metrics that add up such columns."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics.arithmetic import log2_or_zero, ratio

Floats = NDArray[np.float64]

# Of the shares of runs of items by gold level [K, S, E], the gold shares [K, 1, 1] and, for a
# quotient of two sums, what it has reached so far; for each level [K, S, E], or for all [1, S, E].
ColumnWorth = Callable[[Floats, Floats, float], Floats]


def _self_information(share: Floats) -> Floats:
    return -share * log2_or_zero(share)


def _information(share: Floats, _gold: Floats, _rate: float) -> Floats:
    together = _self_information(share.sum(axis=0, keepdims=True))
    return together - _self_information(share).sum(axis=0, keepdims=True)


def _normalized_information(share: Floats, gold: Floats, rate: float) -> Floats:
    entropy = _self_information(share.sum(axis=0, keepdims=True))
    return _information(share, gold, rate) - rate * entropy / 2.0


def _largest_share(share: Floats, _gold: Floats, _rate: float) -> Floats:
    return share.max(axis=0, keepdims=True)


def _precision(share: Floats, gold: Floats, rate: float) -> Floats:
    predicted = share.sum(axis=0)
    return np.nan_to_num(ratio(share, predicted)) - rate * _mark_unseen_levels(predicted, gold)


def _f1(share: Floats, gold: Floats, rate: float) -> Floats:
    predicted = share.sum(axis=0)
    return np.nan_to_num(ratio(2.0 * share, gold + predicted)) - rate * _mark_unseen_levels(
        predicted, gold
    )


def _weighted_f1(share: Floats, gold: Floats, _rate: float) -> Floats:
    return gold * _f1(share, gold, 0.0)


def _mark_unseen_levels(predicted: Floats, gold: Floats) -> NDArray[np.bool]:
    """A level that is predicted, though gold lacks it, is one more that the mean runs over."""
    return (gold == 0) & (predicted > 0)


COLUMN_METRICS: dict[str, ColumnWorth] = {
    "mutual_information": _information,
    "normalized_mutual_information": _normalized_information,
    "purity": _largest_share,
    "precision_macro": _precision,
    "f1_macro": _f1,
    "f1_weighted": _weighted_f1,
}
QUOTIENT_METRICS = {"normalized_mutual_information", "precision_macro", "f1_macro"}
