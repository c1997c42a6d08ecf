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


def _request_table(_: Mapping[str, Any]) -> ReliabilityParts:
    return ReliabilityParts(confusion_matrix=True)


def get_scores(table: Reliability) -> ProperScores:
    """Return the sums of scores, which must have been asked for."""
    if table.scores is None:
        raise KeyError("scores")
    return table.scores


def _average_score(table: Reliability, name: str) -> Value:
    return ratio(get_scores(table).weighted[..., SCORE_NAMES.index(name)], table.weight)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, 2),
    formula=r"\frac{1}{N} \sum_{items} \sum_k (p_k - [g = k])^2",
    reference="brier1950",
    ordered=False,
    parts=_request_scores,
)
def brier(table: Reliability) -> Value:
    """Brier score: the squared error of the probabilities, summed over the levels, from 0 to 2."""
    return _average_score(table, "brier")


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
def log_loss(table: Reliability, *, clip: Literal["eps"] | None = "eps") -> Value:
    """Log loss: the surprise at the gold level, in nats.

    Probabilities are clipped to the precision of numbers, so that one impossible item costs 36 and
    not infinitely much; `clip=None` does not.
    """
    if clip == "eps":
        return _average_score(table, "log_loss")
    found = get_scores(table)
    total = found.weighted[..., SCORE_NAMES.index("log_loss")] + found.beyond
    return ratio(np.where(found.impossible > 0, np.inf, total), table.weight)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{N (K - 1)} \sum_{items} \sum_{k < K} (P(\le k) - [g \le k])^2",
    reference="epstein1969",
    parts=_request_scores,
)
def rps(table: Reliability) -> Value:
    """Ranked probability score: the squared error of the cumulative probabilities, from 0 to 1."""
    return _average_score(table, "rps_sum") / (len(table.scale) - 1)


@metric(
    family="proper scores",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_{k < K} (P(\le k) - [g \le k])^2",
    reference="epstein1969",
    parts=_request_scores,
)
def rps_sum(table: Reliability) -> Value:
    """Ranked probability score without the division by the number of steps."""
    return _average_score(table, "rps_sum")


def _expected_label_metric(table: Reliability, name: str) -> Value:
    """Return a label metric of the predicted distribution instead of one prediction."""
    if table.confusion_matrix is None:
        raise KeyError("table")
    cells = np.concatenate(
        [table.confusion_matrix, np.zeros((*table.confusion_matrix.shape[:-1], 1))], axis=-1
    )
    return find_metric(name)(ConfusionMatrix(table.scale, cells, cells, cells, counted=False))


@metric(
    family="expected values",
    direction="maximize",
    bounds=(0, 1),
    formula=r"CEM^{ORD} \text{ of } \sum_{items} [g = i]\, p_j",
    reference="amigo2020",
    parts=_request_table,
)
def expected_cem_ord(table: Reliability) -> Value:
    """CEM of the predicted distribution. Not proper: not for choosing models."""
    return _expected_label_metric(table, "cem_ord")


@metric(
    family="expected values",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_k p_k |x_k - x_g|",
    reference="",
    equal_steps=True,
    parts=_request_table,
)
def expected_mae(table: Reliability) -> Value:
    """Mean absolute error of the predicted distribution. Not proper: not for choosing models."""
    return _expected_label_metric(table, "mae")


@metric(
    family="expected values",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum_{items} \sum_k p_k (x_k - x_g)^2",
    reference="",
    equal_steps=True,
    parts=_request_table,
)
def expected_mse(table: Reliability) -> Value:
    """Mean squared error of the predicted distribution. Not proper: not for choosing models."""
    return _expected_label_metric(table, "mse")


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
    there = bins.weight > 0
    f, o = (np.where(there, mean, 0.0) for mean in (bins.confidence, bins.frequency))
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
