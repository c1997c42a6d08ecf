"""Distance: how far off, in steps of the scale."""

from functools import lru_cache
from typing import Literal

import numpy as np

from ordinate.metrics.arithmetic import (
    CELL_AXES,
    Array,
    Value,
    average_over_levels,
    level_costs,
    max_over_levels,
    mean_cost,
    mean_credit,
    ratio,
)
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix


@metric(
    family="distance",
    direction="maximize",
    bounds=(0, 1),
    formula=r"1 - \frac{1}{N (x_K-x_1)} \sum_{ij} |x_i-x_j|\, n_{ij}",
    reference="",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def ordinal_distance_linear(matrix: ConfusionMatrix) -> Value:
    """One minus the mean distance, as a share of the largest distance on the scale.

    0 is reached only if gold sits at the ends of the scale: compare it with its attainable range.
    """
    return 1.0 - mean_cost(matrix, matrix.scale.gaps) / matrix.scale.span


@metric(
    family="distance",
    direction="maximize",
    bounds=(0, 1),
    formula=r"1 - \frac{1}{N (x_K-x_1)^2} \sum_{ij} (x_i-x_j)^2\, n_{ij}",
    reference="",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
    aliases=("ordinal_mse",),
)
def ordinal_distance_quadratic(matrix: ConfusionMatrix) -> Value:
    """One minus the mean squared distance, as a share of the largest on the scale.

    0 is reached only if gold sits at the ends of the scale, and a system at the level of chance
    may score above 0.9: compare it with its attainable range and chance.
    """
    return 1.0 - mean_cost(matrix, matrix.scale.gaps**2) / matrix.scale.span**2


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{ij} |x_i-x_j|\, n_{ij}",
    reference="",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def mae(matrix: ConfusionMatrix) -> Value:
    """Mean absolute error in steps of the scale."""
    return mean_cost(matrix, matrix.scale.gaps)


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{ij} (x_i-x_j)^2\, n_{ij}",
    reference="",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def mse(matrix: ConfusionMatrix) -> Value:
    """Mean squared error in steps of the scale."""
    return mean_cost(matrix, matrix.scale.gaps**2)


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{\frac{1}{N} \sum_{ij} (x_i-x_j)^2\, n_{ij}}",
    reference="",
    equal_steps=True,
    takes_unanswered=True,
)
def rmse(matrix: ConfusionMatrix) -> Value:
    """Root of the mean squared error in steps of the scale."""
    return np.sqrt(mean_cost(matrix, matrix.scale.gaps**2))


@metric(
    family="distance",
    direction="zero",
    bounds=(-np.inf, np.inf),
    formula=r"\frac{1}{N} \sum_{ij} (x_j-x_i)\, n_{ij}",
    reference="",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def bias(matrix: ConfusionMatrix) -> Value:
    """Mean of predicted minus gold position: above 0, the system rates too high.

    An item without a prediction counts as the level farthest from gold; where the lowest and the
    highest level are equally far, the two cancel.
    """
    shift = matrix.scale.positions - matrix.scale.positions[:, None]
    down, up = -shift[:, 0], shift[:, -1]
    farthest = np.select([down > up, up > down], [-down, up], default=0.0)
    return mean_credit(matrix, shift) + (matrix.unanswered_share * farthest).sum(axis=-1)


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{|\{i: g_i>0\}|} \sum_{i: g_i>0} \frac{1}{g_i} \sum_j |x_i-x_j|\, n_{ij}",
    reference="baccianella2009",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
    macro="mean",
)
def macro_mae(matrix: ConfusionMatrix) -> Value:
    """Mean over gold levels of their mean absolute error, so that rare levels count as much."""
    return average_over_levels(matrix.gold_share > 0, level_costs(matrix, matrix.scale.gaps))


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{|\{i: g_i>0\}|} \sum_{i: g_i>0} \frac{1}{g_i} \sum_j (x_i-x_j)^2\, n_{ij}",
    reference="baccianella2009",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
    macro="mean",
)
def macro_mse(matrix: ConfusionMatrix) -> Value:
    """Mean over gold levels of their mean squared error."""
    return average_over_levels(matrix.gold_share > 0, level_costs(matrix, matrix.scale.gaps**2))


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\max_{i: g_i>0} \frac{1}{g_i} \sum_j |x_i-x_j|\, n_{ij}",
    reference="cruzramirez2014",
    equal_steps=True,
    takes_unanswered=True,
    macro="worst",
    smooth=False,
)
def max_mae(matrix: ConfusionMatrix) -> Value:
    """The worst gold level's mean absolute error."""
    return max_over_levels(matrix.gold_share > 0, level_costs(matrix, matrix.scale.gaps))


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{ij} n_{ij} \sum_k \ell\big(s_k(i)\,(2j - 2k - 1)\big),\;"
    r" s_k(i) = \pm 1 \text{ for } i > k,\, i \le k",
    reference="rennie2005",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def rennie_srebro(
    matrix: ConfusionMatrix,
    *,
    kind: Literal["all", "immediate"] = "all",
    penalty: Literal["hinge", "logistic", "zero_one"] = "hinge",
) -> Value:
    """Threshold loss: penalties for each threshold between levels that a prediction misses.

    Thresholds lie midway between levels, and a right prediction has margin 1. With the hinge,
    a distance of d levels costs d(d+1) over all thresholds and 2d over the two nearest to gold.
    """
    return mean_cost(matrix, _threshold_cost(len(matrix.scale), kind, penalty))


@lru_cache(maxsize=16)
def _threshold_cost(size: int, kind: str, penalty: str) -> Array:
    return np.stack([_sum_threshold_penalties(gold, size, kind, penalty) for gold in range(size)])


def _sum_threshold_penalties(gold: int, size: int, kind: str, penalty: str) -> Array:
    """Return the penalties of all thresholds together, for each prediction of a gold level."""
    predicted, threshold = np.arange(size)[:, None], np.arange(size - 1)
    above = np.where(gold > threshold, 1, -1)
    margin = above * (2 * predicted - 2 * threshold - 1)
    loss = {
        "hinge": lambda: np.maximum(0.0, 1.0 - margin),
        "logistic": lambda: np.logaddexp(0.0, -margin),
        "zero_one": lambda: (margin < 0).astype(float),
    }[penalty]()
    included = (threshold == gold) | (threshold == gold - 1) if kind == "immediate" else True
    return (loss * included).sum(axis=-1)


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{x_K-x_1} \sum_{k<K} (x_{k+1}-x_k)\, |G_k - P_k|",
    reference="sakai2021",
    equal_steps=True,
    smooth=False,
)
def nmd(matrix: ConfusionMatrix) -> Value:
    """Normalised match distance of the two distributions over levels. Ignores the pairing."""
    cumulative = np.abs(np.cumsum(matrix.gold_share - matrix.predicted_share, axis=-1))
    steps = np.diff(matrix.scale.positions)
    return (cumulative[..., :-1] * steps).sum(axis=-1) / matrix.scale.span


@metric(
    family="distance",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\sqrt{\frac{1}{|\{i: g_i>0\}|} \sum_{i: g_i>0}"
    r" \frac{\sum_j |x_i-x_j| (p_j - g_j)^2}{N^2 (x_K-x_1)}}",
    reference="sakai2021",
    equal_steps=True,
)
def rnod(matrix: ConfusionMatrix) -> Value:
    """Root normalised order-aware divergence of the two distributions. Ignores the pairing."""
    surplus = (matrix.predicted_share - matrix.gold_share)[..., None, :] ** 2
    by_level = (matrix.scale.gaps * surplus).sum(axis=-1)
    return np.sqrt(average_over_levels(matrix.gold_share > 0, by_level) / matrix.scale.span)


@metric(
    family="distance",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{\sum_{ij} (1+x_i)(1+x_j)\, n_{ij}}"
    r"{\sqrt{\sum_i (1+x_i)^2 g_i \sum_j (1+x_j)^2 p_j}}",
    reference="ghosh2015",
    undefined_when="one side is at position -1 throughout",
    equal_steps=True,
)
def cosine(matrix: ConfusionMatrix) -> Value:
    """Cosine of gold and predictions as vectors of 1-based positions."""
    at = 1.0 + matrix.scale.positions
    product = (matrix.share * at * at[:, None]).sum(axis=CELL_AXES)
    lengths = (matrix.gold_share * at**2).sum(-1) * (matrix.predicted_share * at**2).sum(-1)
    return np.clip(ratio(product, np.sqrt(lengths)), -1.0, 1.0)
