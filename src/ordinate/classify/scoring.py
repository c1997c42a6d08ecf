"""Judging: what levels are worth against gold, in each way of answering, beside baselines."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.cross_validation import table
from ordinate.classify.decision_rules import Way
from ordinate.inference import Intervals
from ordinate.inference.estimates import finite
from ordinate.metrics import Metric, find
from ordinate.results.evaluation import Evaluation, Score
from ordinate.scale import Scale
from ordinate.summaries import Confusion

Levels = NDArray[np.intp]
Floats = NDArray[np.float64]

DECODED: Way = "decoded"  # the way of answering that counts
KAPPA = "quadratic_kappa"
CHANCE = "no better than chance"


@dataclass(frozen=True)
class Judged:
    """The scores of a system by way of answering, of which the decoded answers count.

    A system whose interval of the quadratic kappa reaches down to 0 is no better than chance.
    """

    scores: dict[str, Score]
    kappas: dict[str, Score]

    @property
    def kappa(self) -> Score:
        """The quadratic kappa of the decoded answers."""
        return self.kappas[DECODED]

    @property
    def score(self) -> Score:
        """The score of the decoded answers."""
        return self.scores[DECODED]

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
            "value": finite(self.value),
            **{way: score.to_dict() for way, score in self.scores.items()},
            KAPPA: self.kappa.to_dict(),
            "no_better_than_chance": self.by_chance,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each way of answering."""
        return [_row(way, x) | {"flag": self.flag_of(way)} for way, x in self.scores.items()]

    @property
    def flag(self) -> str | None:
        """What a table says beside it."""
        return self.flag_of(DECODED)

    def flag_of(self, way: str) -> str | None:
        """Return what a table says beside one way of answering."""
        found = self.kappas[way].estimate
        return None if found is not None and found.low > 0.0 else CHANCE


def _row(way: str, score: Score) -> dict[str, Any]:
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
class Items:
    """Labelled items as judging sees them: gold, groups that belong together, weights."""

    scale: Scale
    gold: Levels
    groups: NDArray[Any] | None = None
    weights: Floats | None = None

    def tables(self, levels: Levels) -> tuple[Confusion, Confusion | None]:
        """Return the one table of gold and these levels, and one for each group, if there are."""
        whole = table(self.scale, self.gold, levels, None, self.weights)
        if self.groups is None:
            return whole, None
        return whole, table(self.scale, self.gold, levels, self.groups, self.weights)


def judged(items: Items, answers: Mapping[str, Levels], metric: Metric, *, seed: int) -> Judged:
    """Judge the levels that each way of answering gives."""
    found = {way: _scores(items, levels, metric, seed) for way, levels in answers.items()}
    scores = {way: of[metric.expression] for way, of in found.items()}
    return Judged(scores, {way: of[KAPPA] for way, of in found.items()})


def _scores(items: Items, levels: Levels, metric: Metric, seed: int) -> dict[str, Score]:
    wanted = list(dict.fromkeys([metric, find(KAPPA)]))
    whole, groups = items.tables(levels)
    how = Intervals(seed=seed)
    return Evaluation.from_table(whole, wanted, groups=groups, interval=how).metrics
