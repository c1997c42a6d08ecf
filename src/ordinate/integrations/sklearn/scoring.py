"""Scorers: any metric of the catalogue where scikit-learn takes `scoring`."""

from collections.abc import Callable
from typing import Any

from sklearn.metrics._scorer import _BaseScorer

from ordinate.integrations.model_outputs import (
    is_of_probabilities,
    place_columns,
    score_predictions,
    select_output_metric,
    select_output_metrics,
)
from ordinate.metrics import Metric
from ordinate.results.arguments import MetricSelection, ScaleDeclaration
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.probabilities import IN_ORDER_OF_SCALE


def scorer(metric: str | Metric, scale: ScaleDeclaration = None) -> "OrdinalScorer":
    """Return a scorer for `scoring=` of scikit-learn: the higher, the better.

    `metric` is a name, an expression such as 'weighted_kappa(power=1)' or a metric, of labels or of
    probabilities. A metric that is better when lower, such as mae, is scored with its sign turned.
    Columns of `predict_proba` are matched to the levels by the estimator's `classes_`, in whatever
    order these stand.

    >>> scorer("rps", scale="low,mid,high")
    scorer('rps', scale='low,mid,high')
    """
    return OrdinalScorer(select_output_metric(metric), scale)


def scorers(
    metrics: MetricSelection = None, scale: ScaleDeclaration = None
) -> "dict[str, OrdinalScorer]":
    """Return scorers by the expressions of their metrics, for several at once.

    Without `metrics` they are those of a report.

    >>> scorers("cem_ord,mae", scale="cefr")
    {'cem_ord': scorer('cem_ord', scale='cefr'), 'mae': scorer('mae', scale='cefr')}
    """
    return {
        metric.expression: OrdinalScorer(metric, scale) for metric in select_output_metrics(metrics)
    }


class OrdinalScorer(_BaseScorer):  # type: ignore[misc] # - untyped
    """A metric of the catalogue, called as `scorer(estimator, X, y, sample_weight=…)`.

    It routes `sample_weight` and shares predictions with other scorers as those of scikit-learn do.
    """

    def __init__(self, metric: Metric, scale: ScaleDeclaration = None) -> None:
        self.metric = metric
        self.scale = Scale.of(scale) if scale is not None else None
        self._declared = scale
        self._of_probabilities = is_of_probabilities(metric)
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
        value = score_predictions(
            self.metric, y_true, y_pred, self.scale, sample_weight, IN_ORDER_OF_SCALE
        )
        return float(self.metric.merit(value))

    def __repr__(self) -> str:
        declared = "" if self._declared is None else f", scale={self._declared!r}"
        return f"scorer({self.metric.expression!r}{declared})"
