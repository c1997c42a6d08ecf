"""Judging: what levels are worth against gold, in each decision rule, beside baselines."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.cross_validation import count_confusion
from ordinate.classify.decision_rules import DecisionRule
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import Metric, find_metric
from ordinate.results.evaluation import Evaluation, Score
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Levels = NDArray[np.intp]
Floats = NDArray[np.float64]

METRIC_OPTIMAL: DecisionRule = "decoded"  # the decision rule that counts
KAPPA = "quadratic_kappa"
NO_BETTER_THAN_CHANCE = "no better than chance"


@dataclass(frozen=True)
class DecisionRuleScores:
    """The scores of a system by decision rule, of which the decoded answers count.

    A system whose interval of the quadratic kappa reaches down to 0 is no better than chance.
    """

    scores: dict[str, Score]
    kappas: dict[str, Score]

    @property
    def kappa(self) -> Score:
        """The quadratic kappa of the decoded answers."""
        return self.kappas[METRIC_OPTIMAL]

    @property
    def score(self) -> Score:
        """The score of the decoded answers."""
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
    def limits(self) -> tuple[float, float]:
        """The interval of the value; nan where there is none."""
        found = self.score.estimate
        return (math.nan, math.nan) if found is None else (found.low, found.high)

    @property
    def by_chance(self) -> bool:
        """Whether chance could have done as well."""
        return self.flag is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "value": to_json_number(self.value),
            **{way: score.to_dict() for way, score in self.scores.items()},
            KAPPA: self.kappa.to_dict(),
            "no_better_than_chance": self.by_chance,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each decision rule."""
        return [
            _flatten_score(way, x) | {"flag": self.get_flag(way)} for way, x in self.scores.items()
        ]

    @property
    def flag(self) -> str | None:
        """What a table says beside it."""
        return self.get_flag(METRIC_OPTIMAL)

    def get_flag(self, way: str) -> str | None:
        """Return what a table says beside one decision rule."""
        found = self.kappas[way].estimate
        return None if found is not None and found.low > 0.0 else NO_BETTER_THAN_CHANCE


def _flatten_score(way: str, score: Score) -> dict[str, Any]:
    found = score.estimate
    return {
        "way": way,
        "value": score.value,
        "low": found and found.low,
        "high": found and found.high,
        "method": found and found.method,
        "undefined": score.undefined,
        "best_constant": score.baselines.best_constant.value,
        "majority": score.baselines.majority.value,
        "chance": score.baselines.chance.value,
    }


@dataclass(frozen=True)
class LabelledItems:
    """Labelled items as judging sees them: gold, groups that belong together, weights."""

    scale: Scale
    gold: Levels
    groups: NDArray[Any] | None = None
    weights: Floats | None = None

    def tables(self, levels: Levels) -> tuple[ConfusionMatrix, ConfusionMatrix | None]:
        """Return the one table of gold and these levels, and one for each group, if there are."""
        whole = count_confusion(self.scale, self.gold, levels, None, self.weights)
        if self.groups is None:
            return whole, None
        return whole, count_confusion(self.scale, self.gold, levels, self.groups, self.weights)


def evaluate_decision_rules(
    items: LabelledItems, answers: Mapping[str, Levels], metric: Metric, *, seed: int
) -> DecisionRuleScores:
    """Judge the levels that each decision rule gives."""
    found = {way: _compute_scores(items, levels, metric, seed) for way, levels in answers.items()}
    scores = {way: of[metric.expression] for way, of in found.items()}
    return DecisionRuleScores(scores, {way: of[KAPPA] for way, of in found.items()})


def _compute_scores(
    items: LabelledItems, levels: Levels, metric: Metric, seed: int
) -> dict[str, Score]:
    wanted = list(dict.fromkeys([metric, find_metric(KAPPA)]))
    whole, groups = items.tables(levels)
    how = ConfidenceIntervals(seed=seed)
    return Evaluation.from_summary(whole, wanted, groups=groups, interval=how).metrics
