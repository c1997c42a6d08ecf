"""Scorers: any metric of the catalogue where scikit-learn takes `scoring`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics._scorer import _BaseScorer

from ordinate.errors import BadOption, shorten
from ordinate.metrics import Metric
from ordinate.results import score
from ordinate.results.arguments import (
    MetricSelection,
    ScaleDeclaration,
    select_metrics,
    split_metrics_by_summary,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.labels import convert_to_python, normalize_label
from ordinate.summaries.reliability import Reliability


def scorer(metric: str | Metric, scale: ScaleDeclaration = None) -> "OrdinalScorer":
    """Return a scorer for `scoring=` of scikit-learn: the higher, the better.

    `metric` is a name, an expression such as 'weighted_kappa(power=1)' or a metric, of labels or of
    probabilities. A metric that is better when lower, such as mae, is scored with its sign turned.
    Columns of `predict_proba` are matched to the levels by the estimator's `classes_`, in whatever
    order these stand.

    >>> scorer("rps", scale="low,mid,high")
    scorer('rps', scale='low,mid,high')
    """
    (named,) = _select_metrics([metric])
    return OrdinalScorer(named, scale)


def scorers(
    metrics: MetricSelection = None, scale: ScaleDeclaration = None
) -> "dict[str, OrdinalScorer]":
    """Return scorers by the expressions of their metrics, for several at once.

    Without `metrics` they are those of a report.

    >>> scorers("cem_ord,mae", scale="cefr")
    {'cem_ord': scorer('cem_ord', scale='cefr'), 'mae': scorer('mae', scale='cefr')}
    """
    return {metric.expression: OrdinalScorer(metric, scale) for metric in _select_metrics(metrics)}


class OrdinalScorer(_BaseScorer):  # type: ignore[misc] # - untyped
    """A metric of the catalogue, called as `scorer(estimator, X, y, sample_weight=…)`.

    It routes `sample_weight` and shares predictions with other scorers as those of scikit-learn do.
    """

    def __init__(self, metric: Metric, scale: ScaleDeclaration = None) -> None:
        self.metric = metric
        self.scale = Scale.of(scale) if scale is not None else None
        self._declared = scale
        self._of_probabilities = metric.summary is Reliability
        response = "predict_proba" if self._of_probabilities else "predict"
        super().__init__(self._compute_merit, 1, {}, response)

    def _score(
        self, call: Callable[..., Any], estimator: Any, features: Any, y_true: Any, **weights: Any
    ) -> float:
        """Return the score of an estimator; `call` keeps what several scorers predict."""
        if not self._of_probabilities:
            predicted = call(estimator, "predict", features)
            return self._compute_merit(y_true, predicted, **weights)
        classes = list(estimator.classes_)
        # Of two classes, what is shared are the probabilities of one, which may be either.
        two = len(classes) == 2
        rows = (
            estimator.predict_proba(features) if two else call(estimator, "predict_proba", features)
        )
        scale = resolve_scale(self.scale, y_true)
        return self._compute_merit(y_true, place_columns(rows, classes, scale), **weights)

    def _compute_merit(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Return the value of the metric, turned so that more is better."""
        if self._of_probabilities:
            scale = resolve_scale(self.scale, y_true)
            value = score_probabilities(self.metric, y_true, y_pred, scale, sample_weight)
        else:
            value = float(
                score(self.metric, y_true, y_pred, scale=self.scale, weights=sample_weight)
            )
        return float(self.metric.merit(value))

    def __repr__(self) -> str:
        declared = "" if self._declared is None else f", scale={self._declared!r}"
        return f"scorer({self.metric.expression!r}{declared})"


def score_probabilities(
    metric: Metric, gold: Any, rows: Any, scale: Scale, weights: Any = None, columns: Any = None
) -> float:
    """Return a metric of probabilities, whose columns are those of the scale unless named."""
    parts = metric.required_parts
    summary = Reliability.of(
        gold, rows, scale, parts, columns=columns, weights=weights, renormalize=True
    )
    return float(metric(summary))


def place_columns(
    rows: NDArray[np.float64], classes: list[Any], scale: Scale
) -> NDArray[np.float64]:
    """Return a column for each level of the scale; one that the estimator never saw has 0.

    >>> rows = np.array([[0.2, 0.8]])
    >>> place_columns(rows, ["high", "low"], Scale.of("low,mid,high")).tolist()
    [[0.8, 0.0, 0.2]]
    """
    places = {normalize_label(label): place for place, label in enumerate(scale.labels)}
    columns = [places.get(normalize_label(label), -1) for label in classes]
    if -1 in columns:
        label = shorten(convert_to_python(classes[columns.index(-1)]))
        raise BadOption(
            f"The estimator predicts probabilities of {label}, which is "
            f"not on the scale {scale}. Declare the scale of the labels that it was fitted to."
        )
    placed = np.zeros((len(rows), len(scale)))
    placed[:, columns] = rows
    return placed


def _select_metrics(metrics: MetricSelection) -> list[Metric]:
    """Return the metrics of labels, then those of probabilities."""
    if metrics is None:
        return select_metrics(None)
    of_labels, of_probabilities = split_metrics_by_summary(metrics)
    return [
        *([] if of_labels is None else select_metrics(of_labels)),
        *([] if of_probabilities is None else select_metrics(of_probabilities, Reliability)),
    ]
