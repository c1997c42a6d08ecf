"""Closeness: the Closeness Evaluation Measure, at ordinal, nominal and interval scale.

Two levels are close if few gold items lie between them: what counts is the share of gold items x
that are closer to the gold level j than the predicted level i, [..., j, i], ties by half.
"""

from functools import lru_cache
from typing import Literal

import numpy as np

from ordinate.metrics.arithmetic import (
    CELL_AXES,
    Array,
    Value,
    diagonal,
    has_several_levels,
    log2_or_zero,
    ratio,
)
from ordinate.metrics.catalogue import metric
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

BLOCK_SIZE = 1 << 21  # numbers of `closer` that are weighed at once: 300 levels have 27 million


def _share_closer_by_name(matrix: ConfusionMatrix, ties: str) -> Array:
    """Items of the gold level are closer than any other; with `half`, all others tie."""
    same, own = np.eye(len(matrix.scale), dtype=bool), matrix.gold_share[..., :, None]
    if ties == "half":
        return np.where(same, own, 1.0 + own) / 2.0
    return np.where(same, own, 1.0)


def _share_closer_by_interval(matrix: ConfusionMatrix) -> Array:
    size, closer = len(matrix.scale), _mark_closer_by_interval(matrix.scale)
    block = max(1, BLOCK_SIZE // size**2)  # gold levels
    parts = [
        matrix.gold_share @ (closer[gold : gold + block] / 2.0).reshape(-1, size).T
        for gold in range(0, size, block)
    ]
    return np.minimum(np.concatenate(parts, axis=-1).reshape(*matrix.shape, size, size), 1.0)


@lru_cache(maxsize=16)
def _mark_closer_by_interval(scale: Scale) -> Array:
    """Return halves [j, i, x]: strictly closer counts fully, equally close by half."""
    return np.stack([_compare_distances(gold, tolerance=1e-9) for gold in scale.gaps])


def _compare_distances(item: Array, tolerance: float) -> Array:
    """Return halves [i, x] by the distances of all levels from one gold level."""
    predicted = item[:, None]
    equal = np.abs(item - predicted) <= tolerance * np.maximum(item, predicted)
    return np.where(equal, 1, 2 * (item < predicted)).astype(np.uint8)


def _score_proximity(matrix: ConfusionMatrix, proximity: Array) -> Value:
    credit = (matrix.share * proximity).sum(axis=CELL_AXES)
    best = (matrix.gold_share * diagonal(proximity)).sum(axis=-1)
    return ratio(credit, best)


def _self_information(probability: Array) -> Array:
    return 0.0 - log2_or_zero(probability)


_CLOSENESS_FORMULA = r"\frac{\sum_{ij} n_{ij}\, prox(j, i)}{\sum_i g_i\, prox(i, i)}"
_SHARE_BETWEEN_FORMULA = r"\frac{g_j/2 + \sum_{k \text{ from next to } j \text{ to } i} g_k}{N}"


@metric(
    family="closeness",
    direction="maximize",
    bounds=(0, 1),
    formula=rf"{_CLOSENESS_FORMULA},\; prox(j, i) = -\log_2 {_SHARE_BETWEEN_FORMULA}",
    reference="amigo2020",
    linear=True,
    takes_unanswered=True,
)
def cem_ord(matrix: ConfusionMatrix) -> Value:
    """Closeness Evaluation Measure: errors across many gold items cost more.

    It uses the order of the levels and how gold fills them, and assumes nothing about distances.
    Right predictions of rare levels count more than those of common ones.

    When to use: the levels are an order and no more, gold fills them unevenly, and rare levels
    matter. It is the only metric here that no small case finds to break invariance, monotonicity or
    imbalance.

    When not: readers want a number in steps of the scale (`mae`), or two test sets with different
    shares of levels are compared: the same error costs more where more gold items lie in between,
    and a constant prediction does not score 0.

    Elsewhere: The EvALL tools of its authors.

    >>> matrix = ConfusionMatrix.from_counts(
    ...     [[5, 1, 4], [5, 50, 5], [7, 8, 15]], "negative,neutral,positive"
    ... )
    >>> round(float(cem_ord(matrix)), 2)
    0.71
    """
    return _score_proximity(matrix, _self_information(matrix.share_closer()))


@metric(
    family="closeness",
    direction="maximize",
    bounds=(0, 1),
    formula=rf"{_CLOSENESS_FORMULA},\; prox(j, i) = 1 - {_SHARE_BETWEEN_FORMULA}",
    reference="amigo2020",
    linear=True,
    takes_unanswered=True,
)
def cem_ord_flat(matrix: ConfusionMatrix) -> Value:
    """Closeness without the logarithm: the probability itself.

    When to use: you want to see how much of `cem_ord` is the logarithm, which makes matches in rare
    levels dear.

    When not: one number is reported: it can rank two predictions against the imbalance property,
    and few readers know it.
    """
    return _score_proximity(matrix, 1.0 - matrix.share_closer())


@metric(
    family="closeness",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{\sum_i n_{ii} \log_2(N/g_i)}{\sum_i g_i \log_2(N/g_i)}",
    reference="amigo2020",
    undefined_when="gold uses one level only, and ties are literal",
    linear=True,
    takes_unanswered=True,
    ordered=False,
)
def cem_nom(matrix: ConfusionMatrix, *, ties: Literal["literal", "half"] = "literal") -> Value:
    """Closeness at nominal scale: exact matches, of which those of rare levels count more.

    With `literal`, a mismatch earns nothing, as the definition says. With `half`, half of the
    equally close items count as closer, as in the published values of the EvALL tools.

    When to use: labels have no order, and a match in a rare class should count more than one in a
    common class.

    When not: the labels are ordered: all mistakes cost the same, so it is blind to how far off they
    are.
    """
    value = _score_proximity(matrix, _self_information(_share_closer_by_name(matrix, ties)))
    if ties == "half":
        return value
    return np.where(has_several_levels(matrix.gold_share), value, np.nan)[()]


@metric(
    family="closeness",
    direction="maximize",
    bounds=(0, 1),
    formula=rf"{_CLOSENESS_FORMULA},\; prox(j, i) = -\log_2 P\big(|x - x_i| < |x_j - x_i|,"
    r" \text{ ties by half}\big)",
    reference="amigo2020",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
)
def cem_int(matrix: ConfusionMatrix) -> Value:
    """Closeness at interval scale: gold items nearer to the truth than the prediction is.

    When to use: the distances between levels are meaningful and declared, and errors should still
    count by the gold items that lie within them.

    When not: the distances are a convention, as those of language levels are: its values change
    when the levels are spaced differently.
    """
    return _score_proximity(matrix, _self_information(_share_closer_by_interval(matrix)))


@metric(
    family="closeness",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"\frac{CEM - E}{1 - E},\; E = CEM \text{ of the matrix } g_i p_j / N",
    reference="amigo2020",
    undefined_when="gold and predictions are one and the same single label",
    takes_unanswered=True,
)
def cem_ord_chance_corrected(matrix: ConfusionMatrix) -> Value:
    """Closeness beyond chance: 0 for any constant output, 1 for a perfect one.

    When to use: test sets with different shares of levels are compared, or readers expect 0 for a
    system that ignores its input.

    When not: systems are tuned on it: predicting nearer to gold can lower the value, because it
    changes what chance is taken to be. It is a correction of our own, so say so.
    """
    proximity = _self_information(matrix.share_closer())
    best = (matrix.gold_share * diagonal(proximity)).sum(axis=-1)
    gained = ((matrix.share - matrix.by_chance) * proximity).sum(axis=CELL_AXES)
    left = best - (matrix.by_chance * proximity).sum(axis=CELL_AXES)
    one_label = ~has_several_levels(
        matrix.gold_share + matrix.predicted_share
    ) & ~matrix.unanswered.any(axis=-1)
    return np.where(one_label, np.nan, ratio(gained, left))[()]
