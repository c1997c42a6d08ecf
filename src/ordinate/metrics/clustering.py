"""Clustering: what predictions tell about gold, whatever they are called."""

import numpy as np

from ordinate.metrics.arithmetic import (
    CELL_AXES,
    Value,
    entropy,
    harmonic_mean,
    has_several_levels,
    log2_or_zero,
    ratio,
)
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix


def _information_in_bits(matrix: ConfusionMatrix) -> Value:
    surprise = log2_or_zero(matrix.share) - log2_or_zero(matrix.gold_share)[..., :, None]
    surprise = surprise - log2_or_zero(matrix.predicted_share)[..., None, :]
    return np.maximum((matrix.share * surprise).sum(axis=CELL_AXES), 0.0)


@metric(
    family="clustering",
    direction="maximize",
    bounds=(0, np.inf),
    formula=r"\sum_{ij} \frac{n_{ij}}{N} \log_2 \frac{N n_{ij}}{g_i p_j}",
    reference="shannon1948",
    ordered=False,
)
def mutual_information(matrix: ConfusionMatrix) -> Value:
    """Bits that a prediction tells about the gold level.

    When to use: predictions are clusters without names, and the question is what they tell about
    gold.

    When not: labels should be right: swapping two levels throughout loses nothing. It grows with
    the number of levels predicted.

    Elsewhere: scikit-learn `mutual_info_score`, in nats; torchmetrics `MutualInfoScore`, in nats.
    """
    return _information_in_bits(matrix)


@metric(
    family="clustering",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{I}{(H_{gold} + H_{pred})/2}",
    reference="strehl2002",
    undefined_when="both gold and predictions use one level only",
    ordered=False,
)
def normalized_mutual_information(matrix: ConfusionMatrix) -> Value:
    """Mutual information as a share of the mean entropy of the two sides.

    When to use: clusterings with different numbers of clusters are compared with gold.

    When not: labels should be right: names and order are ignored. Many small clusters raise it by
    chance.

    Elsewhere: scikit-learn `normalized_mutual_info_score`, which gives 1 where both sides are
    constant; torchmetrics `NormalizedMutualInfoScore`.
    """
    mean_entropy = (entropy(matrix.gold_share) + entropy(matrix.predicted_share)) / 2.0
    value = np.minimum(ratio(_information_in_bits(matrix), mean_entropy), 1.0)
    either = has_several_levels(matrix.gold_share) | has_several_levels(matrix.predicted_share)
    return np.where(either, value, np.nan)[()]


def _purity(matrix: ConfusionMatrix) -> Value:
    return matrix.share.max(axis=-2).sum(axis=-1)


def _inverse_purity(matrix: ConfusionMatrix) -> Value:
    return matrix.share.max(axis=-1).sum(axis=-1)


@metric(
    family="clustering",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum_j \max_i n_{ij}",
    reference="zhao2001",
    ordered=False,
    smooth=False,
)
def purity(matrix: ConfusionMatrix) -> Value:
    """Share of items in the commonest gold level of their predicted level.

    When to use: the question is whether each predicted level holds items of one gold level.

    When not: the number of predicted levels is free: more of them can only raise it. Names and
    order are ignored.
    """
    return _purity(matrix)


@metric(
    family="clustering",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum_i \max_j n_{ij}",
    reference="zhao2001",
    ordered=False,
    smooth=False,
)
def inverse_purity(matrix: ConfusionMatrix) -> Value:
    """Share of items in the commonest predicted level of their gold level.

    When to use: the question is whether the items of a gold level stay together.

    When not: it stands alone: putting everything into one level scores 1. Names and order are
    ignored.
    """
    return _inverse_purity(matrix)


@metric(
    family="clustering",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{2 P\, P_{inv}}{P + P_{inv}}",
    reference="zhao2001",
    ordered=False,
    smooth=False,
)
def purity_f(matrix: ConfusionMatrix) -> Value:
    """Harmonic mean of purity and inverse purity.

    When to use: predictions are clusters, and both splitting and merging gold levels are mistakes.

    When not: labels should be right: neither their names nor their order count.
    """
    return harmonic_mean(_purity(matrix), _inverse_purity(matrix))
