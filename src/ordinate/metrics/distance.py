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

    When to use: a mean error should be shown as a share of the scale, with 1 as best.

    When not: its size is read as quality: always predicting the middle may score 0.7 and more. It
    depends on levels that nobody uses; `mae` says the same without that.
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
    aliases=("ordinal_mse", "1_minus_normalized_mse"),
)
def ordinal_distance_quadratic(matrix: ConfusionMatrix) -> Value:
    """One minus the mean squared distance, as a share of the largest on the scale.

    0 is reached only if gold sits at the ends of the scale, and a system at the level of chance
    may score above 0.9: compare it with its attainable range and chance.

    When to use: a report that already uses it has to be continued.

    When not: its size is read as quality: squares of small errors are small, so values above 0.9
    are common at the level of chance. `mse` or `quadratic_kappa` say more.
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
    """Mean absolute error in steps of the scale.

    When to use: readers should see the error in steps of the scale, and steps are about equally
    wide.

    When not: one level is far more common than others: predicting near it always is rewarded. Then
    `macro_mae` is better; without equal steps `cem_ord`.

    Elsewhere: scikit-learn `mean_absolute_error` on the positions of the levels; torchmetrics
    `MeanAbsoluteError`; yardstick `mae`; skordinal `mean_absolute_error`.
    """
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
    """Mean squared error in steps of the scale.

    When to use: far mistakes are much worse than near ones, and the levels are numbers.

    When not: the levels are only ordered, or readers should understand the number: its unit is a
    squared step.

    Elsewhere: scikit-learn `mean_squared_error` on the positions; torchmetrics `MeanSquaredError`.
    """
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
    """Root of the mean squared error in steps of the scale.

    When to use: far mistakes are much worse than near ones, and the number should be in steps.

    When not: the levels are only ordered, or few far mistakes should not dominate.

    Elsewhere: scikit-learn `root_mean_squared_error` on the positions; torchmetrics
    `MeanSquaredError(squared=False)`; yardstick `rmse`.
    """
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

    When to use: you ask whether a system is too generous or too strict; put the over- and
    under-predictions beside it.

    When not: systems are ranked: errors in both directions cancel, so a bad system can have a bias
    of 0.

    Elsewhere: yardstick `msd` with the opposite sign (truth minus estimate).
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
    """Mean over gold levels of their mean absolute error, so that rare levels count as much.

    When to use: rare levels matter as much as common ones, and steps are about equally wide.

    When not: some gold levels have only a few items: each of them then moves the value a lot, and
    its interval is wide. Without equal steps `cem_ord` is better.

    Elsewhere: imbalanced-learn `macro_averaged_mean_absolute_error`; dlordinal `amae`; skordinal
    `average_mean_absolute_error`; the SemEval sentiment tasks call it macro-averaged MAE.
    """
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
    """Mean over gold levels of their mean squared error.

    When to use: rare levels matter as much as common ones, and far mistakes much more than near
    ones.

    When not: a rare level has a few items: one far mistake among them can decide the order of
    systems.
    """
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
    """The worst gold level's mean absolute error.

    When to use: no level may be neglected, and what counts is how far off its items are.

    When not: systems that differ elsewhere are compared: it ignores all levels but the worst, and
    jumps when another becomes the worst.

    Elsewhere: dlordinal `mmae`; skordinal `maximum_mean_absolute_error`.
    """
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

    When to use: a model was fitted with a threshold loss, and its labels should be scored by the
    same one.

    When not: results are reported to people: as a number of labels it is a table of costs that few
    know. `mae` is plainer.
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
    """Normalised match distance of the two distributions over levels. Ignores the pairing.

    When to use: the shares of the levels are what is estimated, as in surveys: how many texts are
    at B1, whichever they are.

    When not: single items matter: it compares two distributions, and wrong predictions that cancel
    cost nothing.

    Elsewhere: The earth mover's distance of the two distributions, divided by the largest distance
    on the scale.
    """
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
    """Root normalised order-aware divergence of the two distributions. Ignores the pairing.

    When to use: the shares of the levels are estimated and gold is uneven: every gold level has the
    same say.

    When not: single items matter, or readers should understand the number at sight (`nmd` is
    plainer).
    """
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
    """Cosine of gold and predictions as vectors of 1-based positions.

    When to use: a task prescribes it, as that on figurative language in SemEval-2015 did.

    When not: you may choose: positions are all positive, so any prediction scores high; reversing
    the scale changes the value, and a step nearer to gold can lower it.

    Elsewhere: scikit-learn `cosine_similarity` and torchmetrics `CosineSimilarity` of the two
    columns of positions.
    """
    at = 1.0 + matrix.scale.positions
    product = (matrix.share * at * at[:, None]).sum(axis=CELL_AXES)
    lengths = (matrix.gold_share * at**2).sum(-1) * (matrix.predicted_share * at**2).sum(-1)
    return np.clip(ratio(product, np.sqrt(lengths)), -1.0, 1.0)
