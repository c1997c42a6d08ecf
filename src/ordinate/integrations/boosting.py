"""LightGBM, XGBoost and CatBoost: metrics of ordered levels while trees are added.

Each takes its own form of evaluation function. None of the libraries is imported, but for
`stop_early`, which needs XGBoost.
"""

from typing import Any

import numpy as np

from ordinate.errors import MissingExtra
from ordinate.integrations.model_outputs import Classes, OutputMetrics
from ordinate.metrics import Metric
from ordinate.results.arguments import ScaleDeclaration

__all__ = ["CatBoostMetric", "LightGBMMetric", "XGBoostMetric", "stop_early"]


class _BoostingMetric:
    """One metric, of the outputs of a classifier for its classes.

    `classes` are the labels by the numbers that the library has for them: its `classes_`, or
    "scale" where 0 is the lowest level. Libraries sort labels: without it, the scale has to have
    that order. A metric that is best at 0 counts by its distance.
    """

    def __init__(
        self, metric: str | Metric, scale: ScaleDeclaration = None, classes: Classes = None
    ) -> None:
        self.outputs = OutputMetrics([metric], scale, classes)
        (self.metric,) = self.outputs.metrics
        self.is_higher_better = self.metric.direction == "maximize"
        self.__name__ = self.metric.expression  # by which XGBoost calls it

    def _compute(self, target: Any, outputs: Any, weights: Any = None) -> float:
        if weights is not None and not len(weights):
            weights = None
        value = self.outputs.compute(target, outputs, weights)[self.metric.expression]
        return float(self.metric.size(value))


class LightGBMMetric(_BoostingMetric):
    """An `eval_metric` of `LGBMClassifier.fit`, and a `feval` of `lightgbm.train`.

    LightGBM learns from it which direction is better, so `early_stopping` needs nothing else.

    >>> measure = LightGBMMetric("mae", "low,mid,high", "scale")
    >>> measure([0, 2], [[0.8, 0.2, 0.0], [0.1, 0.7, 0.2]])
    ('mae', 0.5, False)
    """

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """Return name, value and direction of target and outputs, or of outputs and a Dataset."""
        if hasattr(second, "get_label"):
            first, second, weight = second.get_label(), first, second.get_weight()
        return self.__name__, self._compute(first, second, weight), self.is_higher_better


class XGBoostMetric(_BoostingMetric):
    """An `eval_metric` of `XGBClassifier`, and a `custom_metric` of `xgboost.train`.

    XGBoost takes every function for a cost: stop early with `stop_early`, which knows better.

    >>> XGBoostMetric("mae", "low,mid,high", "scale")([0, 2], [[0.8, 0.2, 0.0], [0.1, 0.7, 0.2]])
    0.5
    """

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        """Return the value of target and outputs; of outputs and a DMatrix with its name."""
        if hasattr(second, "get_label"):
            value = self._compute(second.get_label(), first, second.get_weight())
            return self.__name__, value
        return self._compute(first, second, sample_weight)


class CatBoostMetric(_BoostingMetric):
    """An `eval_metric` of `CatBoostClassifier` with `loss_function="MultiClass"`.

    Give the classifier `class_names` from the lowest level to the highest, and `classes="scale"`
    here, or its own `classes`.

    >>> measure = CatBoostMetric("mae", "low,mid,high", "scale")
    >>> measure.evaluate([[2.0, 0.1], [0.2, 0.7], [0.0, 0.2]], [0, 2], None)
    (0.5, 1.0)
    """

    def is_max_optimal(self) -> bool:
        """Tell CatBoost which direction is better."""
        return self.is_higher_better

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Return the value of raw scores, one row for each class, and a weight of 1."""
        scores = np.array([np.asarray(x) for x in approxes]).T
        outputs = np.exp(scores - scores.max(axis=1, keepdims=True))
        outputs /= outputs.sum(axis=1, keepdims=True)
        return self._compute(np.asarray(target), outputs, weight), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value: it is no sum over items that a weight divides."""
        return error / weight if weight else error


def stop_early(metric: XGBoostMetric, rounds: int, **options: Any) -> Any:
    """Return the callback of XGBoost that stops after rounds in which the metric got no better.

    The options are those of `xgboost.callback.EarlyStopping`.
    """
    try:
        from xgboost.callback import EarlyStopping  # noqa: PLC0415 - the others do without XGBoost
    except ImportError:
        raise MissingExtra("Stopping XGBoost early needs it: pip install xgboost") from None
    maximize = metric.is_higher_better
    return EarlyStopping(rounds=rounds, metric_name=metric.__name__, maximize=maximize, **options)
