"""Metrics as functions with scikit-learn's signatures: y_true, y_pred, labels, sample_weight.

`labels` are the scale: all levels, lowest first, or what declares a scale elsewhere ("cefr",
"1..6"). Without them, an ordered categorical or labels of one preset say what it is.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from ordinate.integrations.model_outputs import score_probabilities
from ordinate.metrics import find_metric
from ordinate.results import score
from ordinate.results.arguments import advise_arguments_of_sklearn
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.probabilities import (
    ColumnLabels,
    list_columns,
    warn_of_levels_without_column,
)
from ordinate.summaries.reliability import Reliability

Labels = Scale | str | Iterable[Hashable] | None


@advise_arguments_of_sklearn
def accuracy_within(
    y_true: Any, y_pred: Any, *, labels: Labels = None, sample_weight: Any = None, n: int = 1
) -> float:
    """Share of predictions at most n levels from gold: adjacent accuracy.

    >>> accuracy_within(["low", "high"], ["mid", "low"], labels=["low", "mid", "high"])
    0.5
    """
    metric = find_metric("accuracy_within").with_options(n=n)
    return float(score(metric, y_true, y_pred, scale=labels, weights=sample_weight))


@advise_arguments_of_sklearn
def macro_mae(
    y_true: Any, y_pred: Any, *, labels: Labels = None, sample_weight: Any = None
) -> float:
    """Macro-averaged absolute error: each gold level counts the same, however rare.

    >>> macro_mae([1, 1, 1, 3], [1, 1, 1, 2], labels=[1, 2, 3])
    0.5
    """
    return float(score("macro_mae", y_true, y_pred, scale=labels, weights=sample_weight))


@advise_arguments_of_sklearn
def cem_ord(y_true: Any, y_pred: Any, *, labels: Labels = None, sample_weight: Any = None) -> float:
    """Closeness evaluation measure: errors across many items cost more than across few.

    >>> round(cem_ord(["A1", "B1", "B2"], ["A1", "B1", "C1"], labels="cefr"), 3)
    0.871
    """
    return float(score("cem_ord", y_true, y_pred, scale=labels, weights=sample_weight))


@advise_arguments_of_sklearn
def quadratic_kappa(
    y_true: Any, y_pred: Any, *, labels: Labels = None, sample_weight: Any = None
) -> float:
    """Quadratic weighted kappa over the declared scale, whichever of its levels occur.

    >>> round(quadratic_kappa([1, 2, 5, 5], [1, 2, 5, 2], labels="1..5"), 3)
    0.625
    """
    return float(score("quadratic_kappa", y_true, y_pred, scale=labels, weights=sample_weight))


@advise_arguments_of_sklearn
def rps(
    y_true: Any,
    y_prob: Any,
    *,
    labels: Labels = None,
    sample_weight: Any = None,
    columns: ColumnLabels = None,
) -> float:
    """Ranked probability score: the squared error of the cumulative probabilities, from 0 to 1.

    scikit-learn sorts labels: pass `columns=model.classes_` with the probabilities of a model, or
    `columns="scale"` where the columns of an array are those of `labels`.

    >>> rows, order = [[0.1, 0.7, 0.2]], ["high", "low", "mid"]
    >>> round(rps(["low"], rows, labels=["low", "mid", "high"], columns=order), 3)
    0.05
    """
    scale, columns = resolve_scale(labels, y_true), list_columns(columns)
    warn_of_levels_without_column(scale, y_prob, columns)
    return score_probabilities(
        find_metric("rps", Reliability), y_true, y_prob, scale, sample_weight, columns
    )
