"""Per level: precision, recall and F1, and their averages."""

from typing import NamedTuple

import numpy as np

from ordinate.metrics.arithmetic import Array, Value, average_over_levels, diagonal, ratio
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix


class LevelMetrics(NamedTuple):
    """One value for each level; nan where the level gives nothing to divide by."""

    precision: Array
    recall: Array
    f1: Array
    occurs: Array


def compute_level_metrics(matrix: ConfusionMatrix) -> LevelMetrics:
    """Return precision, recall and F1 of each level, and whether it occurs at all."""
    right = diagonal(matrix.share)
    gold, predicted = matrix.gold_share, matrix.predicted_share
    return LevelMetrics(
        ratio(right, predicted),
        ratio(right, gold),
        compute_f1(right, gold, predicted),
        (gold > 0) | (predicted > 0),
    )


def compute_f1(right: Array, gold: Array, predicted: Array) -> Array:
    """Return the F1 of each level: the right items relative to the mean of both margins."""
    f1: Array = ratio(2.0 * right, gold + predicted)
    return f1


def _average_over_occurring(values: Array, matrix: ConfusionMatrix) -> Value:
    """Average over the levels of gold or predictions; what is undefined counts as 0."""
    return average_over_levels(compute_level_metrics(matrix).occurs, np.nan_to_num(values))


@metric(
    family="per level",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{L} \sum_{j} n_{jj} / p_j",
    reference="",
    takes_unanswered=True,
    levels="either",
    ordered=False,
    macro="other",
)
def precision_macro(matrix: ConfusionMatrix) -> Value:
    """Mean precision over the levels that occur; a level never predicted counts 0.

    When to use: the question is how far a predicted level can be trusted, each level alike.

    When not: it stands alone: predicting a rare level only where it is certain is enough. The order
    is ignored.

    Elsewhere: scikit-learn `precision_score(average="macro")`; torchmetrics `MulticlassPrecision`;
    yardstick `precision`.
    """
    return _average_over_occurring(compute_level_metrics(matrix).precision, matrix)


@metric(
    family="per level",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{L} \sum_{i} n_{ii} / g_i",
    reference="",
    takes_unanswered=True,
    levels="either",
    ordered=False,
    macro="other",
)
def recall_macro(matrix: ConfusionMatrix) -> Value:
    """Mean recall over the levels that occur; a predicted level that gold lacks counts 0.

    When to use: values must equal those of scikit-learn's report.

    When not: a system predicts levels that gold lacks: each counts as a level with recall 0.
    `macro_accuracy` averages over gold levels only. The order is ignored.

    Elsewhere: scikit-learn `recall_score(average="macro")`; torchmetrics `MulticlassRecall`;
    yardstick `recall` and `sens`.
    """
    return _average_over_occurring(compute_level_metrics(matrix).recall, matrix)


@metric(
    family="per level",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{L} \sum_{k} \frac{2 n_{kk}}{g_k + p_k}",
    reference="",
    takes_unanswered=True,
    levels="either",
    ordered=False,
    macro="other",
)
def f1_macro(matrix: ConfusionMatrix) -> Value:
    """Mean F1 over the levels that occur in gold or predictions.

    When to use: a classification without order is reported as is usual in text classification.

    When not: the levels are ordered: one step off costs as much as five. A correction of one item
    can lower it, since a level without predictions counts 0.

    Elsewhere: scikit-learn `f1_score(average="macro")`; torchmetrics `MulticlassF1Score`; yardstick
    `f_meas`.
    """
    return _average_over_occurring(compute_level_metrics(matrix).f1, matrix)


@metric(
    family="per level",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\sum_k \frac{g_k}{N} \frac{2 n_{kk}}{g_k + p_k}",
    reference="",
    takes_unanswered=True,
    levels="either",
    ordered=False,
)
def f1_weighted(matrix: ConfusionMatrix) -> Value:
    """Mean F1 of the levels, each weighted by its share of gold.

    When to use: a report must stay comparable with one of scikit-learn.

    When not: rare levels matter: they hardly count. Nor does the order.

    Elsewhere: scikit-learn `f1_score(average="weighted")`; torchmetrics
    `MulticlassF1Score(average="weighted")`.
    """
    return (matrix.gold_share * np.nan_to_num(compute_level_metrics(matrix).f1)).sum(axis=-1)


@metric(
    family="per level",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{2\sum_k n_{kk}}{\sum_k g_k + \sum_k p_k}",
    reference="",
    takes_unanswered=True,
    levels="either",
    ordered=False,
)
def f1_micro(matrix: ConfusionMatrix) -> Value:
    """F1 of all levels together: the accuracy, when every item has a prediction.

    When to use: some items have no prediction: then it lies above the accuracy, which counts them
    as wrong.

    When not: every item has a prediction: it is the accuracy under another name, so report that.

    Elsewhere: scikit-learn `f1_score(average="micro")`; torchmetrics
    `MulticlassF1Score(average="micro")`.
    """
    labels = matrix.gold_share.sum(axis=-1) + matrix.predicted_share.sum(axis=-1)
    return ratio(2.0 * diagonal(matrix.share).sum(axis=-1), labels)
