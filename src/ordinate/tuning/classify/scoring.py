"""Scores of predicted levels against gold, by decision rule, beside baselines."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import Metric, find_metric
from ordinate.results.evaluation import Evaluation
from ordinate.results.metric_scores import Score
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix
from ordinate.tuning.classify.cross_validation import count_confusion
from ordinate.tuning.classify.decision_rules import METRIC_OPTIMAL

Levels = NDArray[np.intp]
Floats = NDArray[np.float64]

KAPPA = "quadratic_kappa"
NO_BETTER_THAN_CHANCE = "no better than chance"


@dataclass(frozen=True)
class DecisionRuleScores:
    """The scores of a system by decision rule, of which the metric-optimal one counts.

    A system whose interval of the quadratic kappa reaches down to 0 is no better than chance.
    """

    scores: dict[str, Score]
    kappas: dict[str, Score]

    @property
    def kappa(self) -> Score:
        """The quadratic kappa of the metric-optimal predictions."""
        return self.kappas[METRIC_OPTIMAL]

    @property
    def score(self) -> Score:
        """The score of the metric-optimal predictions."""
        return self.scores[METRIC_OPTIMAL]

    @property
    def value(self) -> float:
        """The value of the metric; nan where it is undefined."""
        return self.score.value

    @property
    def undefined(self) -> str | None:
        """Why there is no value."""
        return self.score.undefined

    @property
    def bounds(self) -> tuple[float, float]:
        """The confidence interval of the value; nan where there is none."""
        estimate = self.score.estimate
        return (math.nan, math.nan) if estimate is None else (estimate.low, estimate.high)

    @property
    def by_chance(self) -> bool:
        """Whether chance could have done as well."""
        return self.flag is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "value": to_json_number(self.value),
            **{rule: score.to_dict() for rule, score in self.scores.items()},
            KAPPA: self.kappa.to_dict(),
            "no_better_than_chance": self.by_chance,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each decision rule."""
        return [
            {
                "decision_rule": rule,
                **flatten_score(score),
                "best_constant": score.baselines.best_constant.value,
                "majority": score.baselines.majority.value,
                "chance": score.baselines.chance.value,
                "flag": self.get_flag(rule),
            }
            for rule, score in self.scores.items()
        ]

    @property
    def flag(self) -> str | None:
        """What a table says beside it."""
        return self.get_flag(METRIC_OPTIMAL)

    def get_flag(self, rule: str) -> str | None:
        """Return what a table says beside one decision rule."""
        estimate = self.kappas[rule].estimate
        return None if estimate is not None and estimate.low > 0.0 else NO_BETTER_THAN_CHANCE


def flatten_score(score: Score) -> dict[str, Any]:
    """Return a value with its confidence interval, as the columns of a record."""
    estimate = score.estimate
    return {
        "value": score.value,
        "low": estimate and estimate.low,
        "high": estimate and estimate.high,
        "method": estimate and estimate.method,
        "undefined": score.undefined,
    }


@dataclass(frozen=True)
class LabelledItems:
    """Items with gold levels, to evaluate predictions on: groups and weights, where there are."""

    scale: Scale
    gold: Levels
    groups: NDArray[Any] | None = None
    weights: Floats | None = None

    def count_confusion(self, levels: Levels) -> ConfusionMatrix:
        """Count these levels against gold."""
        return count_confusion(self.scale, self.gold, levels, None, self.weights)

    def count_by_group(self, levels: Levels) -> ConfusionMatrix | None:
        """Count these levels against gold in each group; None without groups."""
        if self.groups is None:
            return None
        return count_confusion(self.scale, self.gold, levels, self.groups, self.weights)


def evaluate_decision_rules(
    items: LabelledItems, levels_by_rule: Mapping[Any, Levels], metric: Metric, *, seed: int
) -> DecisionRuleScores:
    """Evaluate the levels that each decision rule gives."""
    scores = {
        rule: _compute_scores(items, levels, metric, seed)
        for rule, levels in levels_by_rule.items()
    }
    return DecisionRuleScores(
        {rule: by_metric[metric.expression] for rule, by_metric in scores.items()},
        {rule: by_metric[KAPPA] for rule, by_metric in scores.items()},
    )


def _compute_scores(
    items: LabelledItems, levels: Levels, metric: Metric, seed: int
) -> dict[str, Score]:
    metrics = list(dict.fromkeys([metric, find_metric(KAPPA)]))
    evaluation = Evaluation.from_summary(
        items.count_confusion(levels),
        metrics,
        groups=items.count_by_group(levels),
        interval=ConfidenceIntervals(seed=seed),
    )
    return evaluation.metrics
