"""Ranking: whether items come in the right order."""

from typing import Literal, NamedTuple

import numpy as np

from ordinate.metrics.arithmetic import (
    CELL_AXES,
    Array,
    Value,
    harmonic_mean,
    has_several_levels,
    ratio,
)
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import find_mid_ranks

MOST_MULTIPLIED_LEVELS = 50  # up to which a product of matrices is quicker than cumulative sums
_ONE_SIDE = "gold or predictions use one level only"


def _covariance(
    matrix: ConfusionMatrix, gold: Array, predicted: Array
) -> tuple[Value, Value, Value]:
    """Return covariance and variances of scores [..., K] given to the levels of either side."""
    gold = gold - (matrix.gold_share * gold).sum(axis=-1, keepdims=True)
    predicted = predicted - (matrix.predicted_share * predicted).sum(axis=-1, keepdims=True)
    covariance = (matrix.share * gold[..., :, None] * predicted[..., None, :]).sum(axis=CELL_AXES)
    spread = (matrix.gold_share * gold**2).sum(-1), (matrix.predicted_share * predicted**2).sum(-1)
    return covariance, *spread


def _correlation(matrix: ConfusionMatrix, gold: Array, predicted: Array) -> Value:
    covariance, gold_spread, predicted_spread = _covariance(matrix, gold, predicted)
    both = has_several_levels(matrix.gold_share) & has_several_levels(matrix.predicted_share)
    value = ratio(covariance, np.sqrt(gold_spread) * np.sqrt(predicted_spread))
    return np.where(both, np.clip(value, -1.0, 1.0), np.nan)[()]


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{\operatorname{cov}(x_{gold}, x_{pred})}{\sigma_{gold}\,\sigma_{pred}}",
    reference="",
    undefined_when=_ONE_SIDE,
    equal_steps=True,
)
def pearson(matrix: ConfusionMatrix) -> Value:
    """Linear correlation of the positions. A constant shift of all predictions goes unseen.

    When to use: levels are numbers and a shift or another spread of the predictions does not
    matter, as it is removed later.

    When not: the labels themselves are used: predicting one level too high throughout scores 1.

    Elsewhere: SciPy `pearsonr`; torchmetrics `PearsonCorrCoef`; R `cor`.
    """
    return _correlation(matrix, matrix.scale.positions, matrix.scale.positions)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\operatorname{pearson}(\text{mid-ranks of gold}, \text{mid-ranks of predictions})",
    reference="spearman1904",
    undefined_when=_ONE_SIDE,
)
def spearman(matrix: ConfusionMatrix) -> Value:
    """Rank correlation, in which tied items share their mean rank.

    When to use: only the ranking of the items is used, and readers know correlations.

    When not: the labels themselves are used: a constant shift goes unseen. With few levels there
    are many ties, and `kendall_tau_b` says more plainly what is counted.

    Elsewhere: SciPy `spearmanr`; torchmetrics `SpearmanCorrCoef`; R `cor(method="spearman")`;
    skordinal `spearmans_rho`.
    """
    sides = (matrix.gold_share, matrix.predicted_share)
    return _correlation(matrix, *(find_mid_ranks(share) for share in sides))


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{2\operatorname{cov}}{\sigma^2_{gold} + \sigma^2_{pred}"
    r" + (\mu_{gold}-\mu_{pred})^2}",
    reference="lin1989",
    undefined_when="gold and predictions are one and the same single label",
    equal_steps=True,
)
def ccc(matrix: ConfusionMatrix) -> Value:
    """Lin's concordance: linear correlation that also punishes shift and scale.

    When to use: two methods that measure the same quantity should agree in value, not only in
    order.

    When not: the levels are only ordered. On labels it is near `quadratic_kappa`, so reporting both
    says little more.

    Elsewhere: yardstick `ccc` and R DescTools `CCC`; torchmetrics `ConcordanceCorrCoef` divides by
    n - 1.
    """
    at = matrix.scale.positions
    covariance, gold_spread, predicted_spread = _covariance(matrix, at, at)
    shift = ((matrix.gold_share - matrix.predicted_share) * at).sum(axis=-1)
    wrong = (matrix.share * matrix.scale.gaps).sum(axis=CELL_AXES) > 0
    both = wrong | has_several_levels(matrix.gold_share)
    value = ratio(2.0 * covariance, gold_spread + predicted_spread + shift**2)
    return np.where(both, np.clip(value, -1.0, 1.0), np.nan)[()]


class _PairShares(NamedTuple):
    """Shares of the N^2 / 2 pairs of items."""

    concordant: Value
    discordant: Value
    untied_gold: Value
    untied_predicted: Value


def _sum_beyond(cells: Array, axis: int, *, higher: bool) -> Array:
    """Return for each level along an axis, -2 or -1, the sum over all higher (or lower) ones."""
    size = cells.shape[axis]
    if size <= MOST_MULTIPLIED_LEVELS:
        ones = np.ones((size, size))
        beyond = np.triu(ones, 1) if higher else np.tril(ones, -1)
        return beyond @ cells if axis == -2 else cells @ beyond.T
    sums = np.zeros(cells.shape)
    order = slice(None, None, -1 if higher else 1)
    inner, outer = (np.moveaxis(each, axis, 0)[order] for each in (cells, sums))
    np.cumsum(inner[:-1], axis=0, out=outer[1:])
    return sums


def _count_pairs(matrix: ConfusionMatrix) -> _PairShares:
    higher = _sum_beyond(matrix.share, -2, higher=True)  # gold levels, by prediction
    return _PairShares(
        concordant=(matrix.share * _sum_beyond(higher, -1, higher=True)).sum(axis=CELL_AXES),
        discordant=(matrix.share * _sum_beyond(higher, -1, higher=False)).sum(axis=CELL_AXES),
        untied_gold=_count_untied_pairs(matrix.gold_share),
        untied_predicted=_count_untied_pairs(matrix.predicted_share),
    )


def _count_untied_pairs(share: Array) -> Value:
    return (share * _sum_beyond(share, -1, higher=True)).sum(axis=-1)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{C - D}{N(N-1)/2}",
    reference="kendall1938",
    undefined_when="there is only one item",
    integer_counts=True,
)
def kendall_tau_a(matrix: ConfusionMatrix) -> Value:
    """Concordant minus discordant pairs, out of all pairs of items.

    When to use: gold has hardly any ties, or every tie should count as a miss.

    When not: the scale has few levels: pairs tied in gold stay in the denominator, so even a
    perfect prediction is far below 1.

    Elsewhere: R DescTools `KendallTauA`; SciPy has the other variants only.
    """
    pairs = _count_pairs(matrix)
    n = matrix.total
    return ratio(2.0 * (pairs.concordant - pairs.discordant) * n, n - 1.0)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{C - D}{\sqrt{T_{gold}\, T_{pred}}}",
    reference="kendall1945",
    undefined_when=_ONE_SIDE,
)
def kendall_tau_b(matrix: ConfusionMatrix) -> Value:
    """Concordant minus discordant pairs, out of the pairs that are not tied.

    When to use: only the ranking of items counts, and both sides have ties.

    When not: predictions that avoid ties should not be punished for it, or the labels themselves
    matter: a shift goes unseen.

    Elsewhere: SciPy `kendalltau`; torchmetrics `KendallRankCorrCoef`; R `cor(method="kendall")`;
    skordinal `kendalls_tau`.
    """
    pairs = _count_pairs(matrix)
    untied = np.sqrt(pairs.untied_gold) * np.sqrt(pairs.untied_predicted)
    return np.clip(ratio(pairs.concordant - pairs.discordant, untied), -1.0, 1.0)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{2(C - D)}{N^2 (m-1)/m}",
    reference="stuart1953",
    undefined_when=_ONE_SIDE,
)
def kendall_tau_c(matrix: ConfusionMatrix) -> Value:
    """Stuart's tau-c; m is the smaller number of levels that occur on a side.

    When to use: only the ranking counts, and gold and predictions use different numbers of levels.

    When not: both use the same levels, where `kendall_tau_b` is better known.

    Elsewhere: SciPy `kendalltau(variant="c")`; R DescTools `StuartTauC`.
    """
    pairs = _count_pairs(matrix)
    sides = (matrix.gold_share > 0).sum(-1), (matrix.predicted_share > 0).sum(-1)
    levels = np.minimum(*sides)
    largest = ratio(levels - 1.0, levels)
    return np.clip(ratio(2.0 * (pairs.concordant - pairs.discordant), largest), -1.0, 1.0)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{C - D}{C + D}",
    reference="goodman1954",
    undefined_when="no two items differ on both sides",
)
def goodman_kruskal_gamma(matrix: ConfusionMatrix) -> Value:
    """Concordant minus discordant pairs, out of the pairs that differ on both sides.

    When to use: ties say nothing, as where a coarse scale was forced on raters.

    When not: systems may choose how many levels to use: one that ties nearly everything is scored
    on the few pairs that are left, and can have 1.

    Elsewhere: R DescTools `GoodmanKruskalGamma`.
    """
    pairs = _count_pairs(matrix)
    return ratio(pairs.concordant - pairs.discordant, pairs.concordant + pairs.discordant)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{C - D}{T_{gold}}",
    reference="somers1962",
    undefined_when="the given side uses one level only",
)
def somers_d(matrix: ConfusionMatrix, *, given: Literal["gold", "predicted"] = "gold") -> Value:
    """Concordant minus discordant pairs, out of the pairs that one side tells apart.

    When to use: the question is how well predictions order the pairs that gold orders, as with the
    area under the ROC curve; (1 + d)/2 is the `c_index` of the labels.

    When not: the labels themselves matter: a shift goes unseen. Say which side is given, since the
    two directions differ.

    Elsewhere: SciPy `somersd(gold, predicted)`; R DescTools `SomersDelta`.
    """
    pairs = _count_pairs(matrix)
    untied = pairs.untied_gold if given == "gold" else pairs.untied_predicted
    return np.clip(ratio(pairs.concordant - pairs.discordant, untied), -1.0, 1.0)


def _share_in_order(side: Array, cells: Array) -> Value:
    """Mean over items of the share of items, apart on one side, in the same order on the other."""
    same_order, apart = np.zeros(cells.shape), np.zeros(side.shape)
    for higher in (True, False):
        beyond = _sum_beyond(cells, -2, higher=higher)
        same_order += _sum_beyond(beyond, -1, higher=higher)
        apart += _sum_beyond(side, -1, higher=higher)
    by_cell = cells * ratio(same_order, apart[..., None, :])
    return np.where(has_several_levels(side), np.nansum(by_cell, axis=CELL_AXES), np.nan)[()]


@metric(
    family="ranking",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum_d P(\text{same order in gold} \mid \text{system orders } d, d')",
    reference="amigo2013",
    undefined_when="predictions use one level only",
)
def reliability(matrix: ConfusionMatrix) -> Value:
    """How far the orders that the system states are right, as a mean over items.

    When to use: what a system claims about the order should be right, and it may leave pairs tied.

    When not: it stands alone: ordering a few pairs only is enough for 1. `sensitivity` is its
    counterpart, as recall is that of precision.
    """
    return _share_in_order(matrix.predicted_share, matrix.share)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum_d P(\text{same order in system} \mid \text{gold orders } d, d')",
    reference="amigo2013",
    undefined_when="gold uses one level only",
)
def sensitivity(matrix: ConfusionMatrix) -> Value:
    """How far the orders of gold are found by the system, as a mean over items.

    When to use: the pairs that gold orders should be found by the system.

    When not: it stands alone: a system that states many orders is not punished for those that gold
    does not have. This is not the recall of a class.
    """
    return _share_in_order(matrix.gold_share, np.swapaxes(matrix.share, -1, -2))


@metric(
    family="ranking",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{2RS}{R+S}",
    reference="amigo2013",
    undefined_when=_ONE_SIDE,
)
def reliability_sensitivity_f(matrix: ConfusionMatrix) -> Value:
    """Harmonic mean of reliability and sensitivity.

    When to use: only the order of items matters, and both missing and inventing an order are
    mistakes.

    When not: the labels themselves matter, or a reader should understand the number at sight:
    `kendall_tau_b` is better known.
    """
    return harmonic_mean(reliability.function(matrix), sensitivity.function(matrix))
