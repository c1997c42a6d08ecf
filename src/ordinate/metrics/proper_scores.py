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
    """Brier score: the squared error of the probabilities, summed over the levels, from 0 to 2."""
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
    """Ranked probability score: the squared error of the cumulative probabilities, from 0 to 1."""
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
    """Ranked probability score without the division by the number of steps."""
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
    """CEM of the predicted distribution. Not proper: not for choosing models."""
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
    """Mean absolute error of the predicted distribution. Not proper: not for choosing models."""
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
    """Mean squared error of the predicted distribution. Not proper: not for choosing models."""
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
