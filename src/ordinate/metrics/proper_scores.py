"""Proper scores, which the true probabilities win, and metrics of the predicted distribution."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics.arithmetic import Value, ratio
from ordinate.metrics.catalogue import find_metric, metric
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.reliability import (
    SCORE_NAMES,
    ProperScores,
    Reliability,
    ReliabilityBins,
    ReliabilityParts,
)

Array = NDArray[Any]


def _request_scores(_: Mapping[str, Any]) -> ReliabilityParts:
    return ReliabilityParts(scores=True)


def _request_matrix(_: Mapping[str, Any]) -> ReliabilityParts:
    return ReliabilityParts(confusion_matrix=True)


def get_scores(reliability: Reliability) -> ProperScores:
    """Return the sums of scores, which must be among the requested parts."""
    if reliability.scores is None:
        raise KeyError("scores")
    return reliability.scores


def _average_score(reliability: Reliability, name: str) -> Value:
    return ratio(get_scores(reliability).weighted[..., SCORE_NAMES.index(name)], reliability.weight)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, 2),
    formula=r"\frac{1}{N} \sum_{items} \sum_k (p_k - [g = k])^2",
    reference="brier1950",
    ordered=False,
    parts=_request_scores,
)
def brier(reliability: Reliability) -> Value:
    """Brier score: the squared error of the probabilities, summed over the levels, from 0 to 2.

    When to use: whole probabilities are judged and levels are mere names; it is bounded, so single
    items cannot dominate.

    When not: levels are ordered: a probability one step off costs as much as one five steps off.
    `rps` is its counterpart.

    Elsewhere: scikit-learn `brier_score_loss`, which halves it for two classes by default;
    yardstick `brier_class`, which is half of it.
    """
    return _average_score(reliability, "brier")


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"-\frac{1}{N} \sum_{items} \ln p_g",
    reference="good1952",
    undefined_when=None,
    ordered=False,
    parts=_request_scores,
)
def log_loss(reliability: Reliability, *, clip: Literal["eps"] | None = "eps") -> Value:
    """Log loss: the surprise at the gold level, in nats.

    Probabilities are clipped to the precision of numbers, so that one impossible item costs 36 and
    not infinitely much; `clip=None` does not.

    When to use: models are fitted or compared by likelihood, and confident mistakes are costly.

    When not: a few items with next to no probability may decide everything: their number stands in
    the report. The order is ignored.

    Elsewhere: scikit-learn `log_loss`; yardstick `mn_log_loss`; the cross-entropy of neural
    networks.
    """
    if clip == "eps":
        return _average_score(reliability, "log_loss")
    scores = get_scores(reliability)
    total = scores.weighted[..., SCORE_NAMES.index("log_loss")] + scores.beyond
    return ratio(np.where(scores.impossible > 0, np.inf, total), reliability.weight)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{N (K - 1)} \sum_{items} \sum_{k < K} (P(\le k) - [g \le k])^2",
    reference="epstein1969",
    parts=_request_scores,
)
def rps(reliability: Reliability) -> Value:
    """Ranked probability score: the squared error of the cumulative probabilities, from 0 to 1.

    When to use: whole probabilities on an ordered scale are judged: probability near gold is better
    than far away. It is proper, so models may be chosen by it.

    When not: the levels have no order (`brier`), or data sets on scales of different length are
    compared.

    Elsewhere: yardstick `ranked_prob_score`; scoringrules and skordinal have `rps_sum`.
    """
    return _average_score(reliability, "rps_sum") / (len(reliability.scale) - 1)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_{k < K} (P(\le k) - [g \le k])^2",
    reference="epstein1969",
    parts=_request_scores,
)
def rps_sum(reliability: Reliability) -> Value:
    """Ranked probability score without the division by the number of steps.

    When to use: values must equal those of a library that does not divide by the number of steps.

    When not: you may choose: `rps` lies between 0 and 1.

    Elsewhere: scoringrules `rps_score`; skordinal `ranked_probability_score`.
    """
    return _average_score(reliability, "rps_sum")


def _expected_label_metric(reliability: Reliability, name: str) -> Value:
    """Return a label metric of the predicted distribution instead of one prediction."""
    if reliability.confusion_matrix is None:
        raise KeyError("confusion_matrix")
    cells = np.concatenate(
        [reliability.confusion_matrix, np.zeros((*reliability.confusion_matrix.shape[:-1], 1))],
        axis=-1,
    )
    return find_metric(name)(ConfusionMatrix(reliability.scale, cells, cells, cells, counted=False))


@metric(
    family="expected values",
    direction="maximize",
    bounds=(0, 1),
    formula=r"CEM^{ORD} \text{ of } \sum_{items} [g = i]\, p_j",
    reference="amigo2020",
    parts=_request_matrix,
)
def expected_cem_ord(reliability: Reliability) -> Value:
    """CEM of the predicted distribution. Not proper: not for choosing models.

    When to use: the question is what CEM a system would have that draws its answers from its
    probabilities.

    When not: models are chosen or fitted: it is not proper, so exaggerated confidence can raise it.
    Use `rps`, or decode and score labels.
    """
    return _expected_label_metric(reliability, "cem_ord")


@metric(
    family="expected values",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_k p_k |x_k - x_g|",
    reference="",
    equal_steps=True,
    parts=_request_matrix,
)
def expected_mae(reliability: Reliability) -> Value:
    """Mean absolute error of the predicted distribution. Not proper: not for choosing models.

    When to use: the question is how far off answers are that are drawn from the probabilities.

    When not: models are chosen or fitted: it is not proper, and putting everything on one level can
    lower it. Use `rps`.
    """
    return _expected_label_metric(reliability, "mae")


@metric(
    family="expected values",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_k p_k (x_k - x_g)^2",
    reference="",
    equal_steps=True,
    parts=_request_matrix,
)
def expected_mse(reliability: Reliability) -> Value:
    """Mean squared error of the predicted distribution. Not proper: not for choosing models.

    When to use: the question is how far off answers are that are drawn from the probabilities, far
    ones counting more.

    When not: models are chosen or fitted: it is not proper, and putting everything on the mean can
    lower it. Use `rps`.
    """
    return _expected_label_metric(reliability, "mse")


DECOMPOSITION_TERMS = (
    "reliability",
    "resolution",
    "uncertainty",
    "within_variance",
    "within_covariance",
)


def decompose_score(bins: ReliabilityBins) -> Array:
    """Return the five terms [5, ..., events] of the squared error of each event.

    They are those of Stephenson, Coelho and Jolliffe (2008): the score is reliability - resolution
    + uncertainty + variance within bins - covariance within bins.
    """
    total = bins.weight.sum(axis=-1)
    filled = bins.weight > 0
    f, o = (np.where(filled, mean, 0.0) for mean in (bins.confidence, bins.frequency))
    overall = ratio(bins.o.sum(axis=-1), total)
    parts = [
        bins.weight * (f - o) ** 2,
        bins.weight * (o - overall[..., None]) ** 2,
        bins.weight * (overall * (1.0 - overall))[..., None],
        bins.ff - bins.weight * f**2,
        2.0 * (bins.fo - bins.weight * f * o),
    ]
    return np.stack([ratio(part.sum(axis=-1), total) for part in parts])


DECOMPOSITION_SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
