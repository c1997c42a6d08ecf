"""Optuna: studies whose direction and best possible value are those of a metric.

Needs Optuna: `pip install 'ordinate[tune]'`.
"""

import math
from collections.abc import Callable
from typing import Any

from ordinate.errors import MissingExtra
from ordinate.integrations.model_outputs import score_predictions, select_output_metric
from ordinate.metrics import Metric
from ordinate.results.arguments import ScaleDeclaration
from ordinate.summaries.probabilities import ColumnLabels, list_columns

try:
    import optuna
except ImportError as problem:
    raise MissingExtra(
        f"Studies take Optuna, which cannot be imported ({problem}): pip install 'ordinate[tune]'"
    ) from None

__all__ = ["Objective", "StopAtBound", "create_study"]

UNDEFINED = "undefined"  # the attribute of a trial that says why it has no value


def create_study(metric: str | Metric, **options: Any) -> optuna.Study:
    """Return a study that goes in the direction of the metric; options are those of Optuna.

    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> create_study("mae").direction.name
    'MINIMIZE'
    """
    maximize = select_output_metric(metric).direction == "maximize"
    return optuna.create_study(direction="maximize" if maximize else "minimize", **options)


class Objective:
    """What a trial is worth: the metric of what its model predicts for items with gold labels.

    `predict` takes the trial, trains as it suggests, and returns predicted labels, or for a metric
    of probabilities their rows, whose columns have the labels `columns`, as in `evaluate`. A metric
    that is best at 0, such as bias, counts by its distance from 0. A trial whose metric is
    undefined fails, and has the reason as its attribute 'undefined'.

    >>> objective = Objective(lambda trial: ["A1", "B2"], ["A1", "B1"], "mae", scale="cefr")
    >>> objective(create_study("mae").ask())
    0.5
    """

    def __init__(
        self,
        predict: Callable[[optuna.Trial], Any],
        gold: Any,
        metric: str | Metric,
        scale: ScaleDeclaration = None,
        *,
        weights: Any = None,
        columns: ColumnLabels = None,
    ) -> None:
        self.predict, self.gold, self.options = predict, gold, (weights, list_columns(columns))
        self.metric = select_output_metric(metric)
        self.scale = scale

    def __call__(self, trial: optuna.Trial) -> float:
        """Return the value of a trial."""
        predicted = self.predict(trial)
        value = score_predictions(self.metric, self.gold, predicted, self.scale, *self.options)
        if math.isnan(value):
            trial.set_user_attr(UNDEFINED, self.metric.undefined_when)
        return float(self.metric.size(value))


class StopAtBound:
    """A callback that ends a study once a trial is as good as the metric can be.

    >>> StopAtBound("cem_ord").best, StopAtBound("mae").best
    (1.0, 0.0)
    """

    def __init__(self, metric: str | Metric) -> None:
        named = select_output_metric(metric)
        low, high = named.bounds
        best = {"maximize": high, "minimize": low, "zero": 0.0}
        self.best = float(best[named.direction])

    def __call__(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """Stop the study if the trial reached the bound."""
        value = math.nan if trial.value is None else trial.value
        if math.isclose(value, self.best, rel_tol=0.0, abs_tol=1e-12):
            study.stop()
