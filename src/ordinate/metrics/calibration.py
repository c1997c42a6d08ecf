"""Calibration: whether events happen as often as their predicted probabilities say."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ordinate.metrics.proper_scores  # noqa: F401 - the catalogue lists its metrics before these
from ordinate.metrics.arithmetic import Value, ratio
from ordinate.metrics.catalogue import metric
from ordinate.summaries.probability_bins import Events
from ordinate.summaries.reliability import FINE_BINS, Reliability, ReliabilityBins, ReliabilityParts

Array = NDArray[Any]


def _request_bins(events: Events, count: int | None = None) -> Any:
    def request(options: Mapping[str, Any]) -> ReliabilityParts:
        parts = ReliabilityParts(frozenset({(events, int(options["bins"]))}))  # checks the option
        return parts if count is None else ReliabilityParts(frozenset({(events, count)}))

    return request


def compute_calibration_errors(bins: ReliabilityBins) -> Array:
    """Return the calibration error of each event: the mean over items of their bin's gap."""
    return ratio(np.abs(bins.f - bins.o).sum(axis=-1), bins.weight.sum(axis=-1))


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\sum_b \frac{n_b}{N} |conf_b - acc_b|",
    reference="naeini2015",
    parts=_request_bins("top"),
)
def ece(reliability: Reliability, *, bins: int = 10) -> Value:
    """Expected calibration error of the most probable level, in bins of equal width.

    It is biased upwards: bins of few items have gaps by chance. Compare it with its value under
    perfect calibration.

    When to use: the confidence of the predicted level is shown to people, and papers are compared.

    When not: there are few items: it is above 0 even for a perfectly calibrated model. See its
    value under perfect calibration, and `ece_debiased`.

    Elsewhere: torchmetrics `MulticlassCalibrationError(norm="l1")` and netcal `ECE`; they may put
    confidences on the edge of a bin into another bin. With two levels netcal takes the probability
    of the second, and not the highest one.
    """
    return compute_calibration_errors(reliability.bins["top", bins])[..., 0]


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\sum_b \frac{n_b}{N} \left(2|g_b| - E|X_b|\right),\; X_b \sim N(g_b, "
    r"acc_b(1 - acc_b)/n_b),\; g_b = conf_b - acc_b",
    reference="kumar2019",
    parts=_request_bins("top"),
)
def ece_debiased(reliability: Reliability, *, bins: int = 10) -> Value:
    """Expected calibration error less what chance adds to the gaps of its bins, at least 0.

    When to use: calibration is compared over test sets of different size.

    When not: a small true error is to be shown: what chance alone explains is taken off, and the
    value stops at 0.
    """
    top = reliability.bins["top", bins]
    gap = np.abs(top.confidence - top.frequency)
    single = np.maximum(top.frequency * (1.0 - top.frequency), 0.0)
    error = np.sqrt(ratio(single, top.effective_size))
    expected = np.where(error > 0, _folded_normal_mean(gap, error), gap)
    inner = np.where(top.items > 0, top.weight * (2.0 * gap - expected), 0.0)
    mean = ratio(inner.sum(axis=-1), top.weight.sum(axis=-1))[..., 0]
    return np.maximum(mean, 0.0)


def _folded_normal_mean(mean: Array, deviation: Array) -> Array:
    """Return E|X| of a normal X."""
    z = ratio(mean, deviation)
    erf = np.vectorize(math.erf, otypes=[float])
    return deviation * math.sqrt(2 / math.pi) * np.exp(-(z**2) / 2) + mean * erf(z / math.sqrt(2))


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\max_b |conf_b - acc_b|",
    reference="naeini2015",
    smooth=False,
    parts=_request_bins("top"),
)
def mce(reliability: Reliability, *, bins: int = 10) -> Value:
    """Maximum calibration error: the largest gap of a bin, however few items it has.

    When to use: no confidence may be far from the truth, and every bin has many items.

    When not: bins have few items: the largest gap is then one of chance.

    Elsewhere: torchmetrics `MulticlassCalibrationError(norm="max")`; netcal `MCE`, with two levels
    that of the second.
    """
    top = reliability.bins["top", bins]
    gap = np.abs(top.confidence - top.frequency)[..., 0, :]
    return np.fmax.reduce(gap, axis=-1)  # empty bins have none


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{K} \sum_k \sum_b \frac{n_{kb}}{N} |f_{kb} - o_{kb}|",
    reference="kull2019",
    ordered=False,
    parts=_request_bins("levels"),
)
def classwise_ece(reliability: Reliability, *, bins: int = 10) -> Value:
    """Calibration error of each level's probability, averaged over the levels.

    When to use: the probability of each level is used, not only that of the predicted one.

    When not: there are many levels with few items: most bins are then nearly empty, and small gaps
    are averaged away.
    """
    return compute_calibration_errors(reliability.bins["levels", bins]).mean(axis=-1)


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{K - 1} \sum_{k < K} \sum_b \frac{n_{kb}}{N} |F_{kb} - O_{kb}|",
    reference="",
    parts=_request_bins("cumulative"),
)
def cumulative_ece(reliability: Reliability, *, bins: int = 10) -> Value:
    """Calibration error of the events "at most level k", averaged: what matters for an order.

    When to use: probabilities decide about thresholds, such as at least B2.

    When not: levels have no order: `classwise_ece` is its counterpart.
    """
    return compute_calibration_errors(reliability.bins["cumulative", bins]).mean(axis=-1)


@metric(
    family="calibration",
    direction="minimize",
    bounds=(0, 1),
    formula=r"\frac{1}{B} \sum_b |conf_b - acc_b|,\; n_b = N/B",
    reference="nixon2019",
    parts=_request_bins("top", FINE_BINS),
)
def ace(reliability: Reliability, *, bins: int = 10) -> Value:
    """Adaptive calibration error: bins of equally many items, found in a fine histogram.

    Approximate: the items of one of the thousand fine bins stay together.

    When to use: confidences crowd at one end, so that bins of equal width would be nearly empty.

    When not: exact values are compared with another library: bins are made from a fine histogram.
    It is biased upwards as `ece` is.

    Elsewhere: netcal `ACE(bins, equal_intervals=False)`. In netcal, the A is for average: its
    default has bins of equal width, and the most probable level alone. The paper's error is
    averaged over the levels.
    With two levels netcal takes the probability of the second, and not the highest one.
    """
    fine = reliability.bins["top", FINE_BINS]
    weight, gap = fine.weight[..., 0, :], (fine.f - fine.o)[..., 0, :]
    middle = ratio(weight.cumsum(axis=-1) - weight / 2, weight.sum(axis=-1)[..., None])
    place = np.clip(np.nan_to_num(middle * bins).astype(int), 0, bins - 1)
    gaps = [np.abs(np.where(place == k, gap, 0.0).sum(axis=-1)) for k in range(int(bins))]
    return ratio(np.sum(gaps, axis=0), weight.sum(axis=-1))


@metric(
    family="calibration",
    direction="maximize",
    bounds=(0, 1),
    formula=r"P(s_a > s_b \mid g_a > g_b) + \tfrac{1}{2} P(s_a = s_b \mid g_a > g_b),\; "
    r"s = \sum_k x_k p_k",
    reference="harrell1996",
    undefined_when="gold has one level only",
    equal_steps=True,
    parts=lambda _: ReliabilityParts(ranking=True),
)
def c_index(reliability: Reliability) -> Value:
    """How often the item of a higher gold level has the higher expected level; ties count half.

    Reports have it exactly of up to 5,000 items. Of more, the expected levels are put into a
    thousand bins: the value is at most half the share of pairs that share a bin away from the exact
    one.

    When to use: expected levels are used to rank items, as risk scores are.

    When not: the probabilities themselves are used: it ignores calibration.

    Elsewhere: lifelines `concordance_index` and R `survival::concordance` for survival times; the
    area under the ROC curve for two levels.
    """
    right, tied, pairs = count_ordered_pairs(reliability)
    return ratio(right + tied / 2.0, pairs)


def count_ordered_pairs(reliability: Reliability) -> tuple[Array, Array, Array]:
    """Return the weight of pairs of different gold levels: in order, tied (or in a bin), all."""
    if reliability.ranking is None:
        raise KeyError("ranking")
    exact = reliability.exact_ranking
    levels = reliability.ranking if exact is None else exact
    lower = levels.cumsum(axis=-2) - levels  # of lower gold levels, by bin
    under = lower.cumsum(axis=-1) - lower  # of them, in lower bins
    right = (levels * under).sum(axis=(-2, -1))
    tied = (levels * lower).sum(axis=(-2, -1))
    totals = levels.sum(axis=-1)
    pairs = (totals * (totals.cumsum(axis=-1) - totals)).sum(axis=-1)
    return right, tied, pairs
