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
    """Linear correlation of the positions. A constant shift of all predictions goes unseen."""
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
    """Rank correlation, in which tied items share their mean rank."""
    return _correlation(matrix, _mid_rank(matrix.gold_share), _mid_rank(matrix.predicted_share))


def _mid_rank(share: Array) -> Array:
    return np.cumsum(share, axis=-1) - share / 2.0


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
    """Lin's concordance: linear correlation that also punishes shift and scale."""
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


def _mark_levels_above(size: int) -> Array:
    """Return 1 where the column's level is strictly above the row's."""
    return np.triu(np.ones((size, size)), k=1)


def _count_pairs(matrix: ConfusionMatrix) -> _PairShares:
    share, up = matrix.share, _mark_levels_above(len(matrix.scale))
    higher = up @ share  # for each level: the items of higher gold levels, by prediction
    return _PairShares(
        concordant=(share * (higher @ up.T)).sum(axis=CELL_AXES),
        discordant=(share * (higher @ up)).sum(axis=CELL_AXES),
        untied_gold=np.einsum("...i,ij,...j", matrix.gold_share, up, matrix.gold_share),
        untied_predicted=np.einsum(
            "...i,ij,...j", matrix.predicted_share, up, matrix.predicted_share
        ),
    )


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
    """Concordant minus discordant pairs, out of all pairs of items."""
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
    """Concordant minus discordant pairs, out of the pairs that are not tied."""
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
    """Stuart's tau-c; m is the smaller number of levels that occur on a side."""
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
    """Concordant minus discordant pairs, out of the pairs that differ on both sides."""
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
    """Concordant minus discordant pairs, out of the pairs that one side tells apart."""
    pairs = _count_pairs(matrix)
    untied = pairs.untied_gold if given == "gold" else pairs.untied_predicted
    return np.clip(ratio(pairs.concordant - pairs.discordant, untied), -1.0, 1.0)


def _share_in_order(matrix: ConfusionMatrix, side: Array, cells: Array) -> Value:
    """Mean over items of the share of items, apart on one side, in the same order on the other."""
    up = _mark_levels_above(len(matrix.scale))
    same_order = up @ cells @ up.T + up.T @ cells @ up
    apart = side @ (up + up.T)
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
    """How far the orders that the system states are right, as a mean over items."""
    return _share_in_order(matrix, matrix.predicted_share, matrix.share)


@metric(
    family="ranking",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum_d P(\text{same order in system} \mid \text{gold orders } d, d')",
    reference="amigo2013",
    undefined_when="gold uses one level only",
)
def sensitivity(matrix: ConfusionMatrix) -> Value:
    """How far the orders of gold are found by the system, as a mean over items."""
    return _share_in_order(matrix, matrix.gold_share, np.swapaxes(matrix.share, -1, -2))


@metric(
    family="ranking",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{2RS}{R+S}",
    reference="amigo2013",
    undefined_when=_ONE_SIDE,
)
def reliability_sensitivity_f(matrix: ConfusionMatrix) -> Value:
    """Harmonic mean of reliability and sensitivity."""
    return harmonic_mean(reliability.function(matrix), sensitivity.function(matrix))
