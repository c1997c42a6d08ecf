"""The bench: the data, the folds and the workers with which candidates are tried alike."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ordinate.classify.class_weights import compute_class_weights
from ordinate.classify.cross_validation import (
    Candidate,
    FoldTask,
    LabelledFeatures,
    OutOfFoldPredictions,
    calibrate_out_of_fold,
    make_fold_tasks,
    split_folds,
)
from ordinate.classify.decision_rules import CalibrationPlan, Floats, Positions
from ordinate.classify.scoring import DecisionRuleScores, LabelledItems, evaluate_decision_rules
from ordinate.classify.settings import Settings
from ordinate.classify.training_data import TrainingData
from ordinate.experiment.safe_files import compute_digest
from ordinate.experiment.workers import WorkerPool

ProgressCallback = Callable[
    [str, float, str], None
]  # the stage, its share that is done, what else to say

CACHE_VERSION = (
    2  # of what is kept between runs: raise it when the same settings give other numbers
)


def ignore_progress(stage: str, share: float, beside: str) -> None:
    """Say nothing."""
    del stage, share, beside


class BestTrial(NamedTuple):
    """The best trial of a study that this run has made itself."""

    merit: float
    params: dict[str, Any]
    answers: Floats


@dataclass(frozen=True, eq=False)
class Bench:
    """Where candidates are tried: all training items, or the rows of one part of them.

    Every candidate gets the same folds. `part` names the rows, in what is kept and in progress.
    """

    training: TrainingData
    settings: Settings
    workers: WorkerPool
    tell: ProgressCallback = ignore_progress
    rows: Positions | None = None
    part: str = ""
    begun: float = field(default_factory=time.monotonic, repr=False)  # one clock for all parts
    used: dict[str, LabelledFeatures] = field(
        default_factory=dict, repr=False
    )  # what the workers have
    made: dict[tuple[str, str], BestTrial] = field(default_factory=dict, repr=False)  # by study

    def within(self, rows: Positions, part: str) -> "Bench":
        """Return a bench that sees some of the items only."""
        return replace(self, rows=rows, part=part, made={})

    @cached_property
    def levels(self) -> Positions:
        """The level of each item."""
        return self._select_rows(self.training.levels)

    @cached_property
    def parts(self) -> list[Positions]:
        """The folds."""
        groups = self._select_rows(self.training.groups)
        return split_folds(self.levels, groups, self.settings.folds, self.settings.seed)

    @cached_property
    def class_weights(self) -> Floats:
        """The weight of each level, as all these items give it."""
        asked = self.settings
        size = len(self.training.scale)
        return compute_class_weights(self.levels, size, asked.weight_strategy, asked.weight_alpha)

    @property
    def level_weights(self) -> tuple[float, ...] | None:
        """The weight of each level in the metric, if that was asked for."""
        return tuple(self.class_weights.tolist()) if self.settings.weight_metric else None

    @cached_property
    def items(self) -> LabelledItems:
        """The items as judging sees them."""
        return self.judging(self.levels, self._select_rows(self.training.groups))

    def judging(self, gold: Positions, groups: Any = None) -> LabelledItems:
        """Return any labelled items as judging sees them: weighted only if that was asked for."""
        weights = None if self.level_weights is None else np.array(self.level_weights)[gold]
        return LabelledItems(self.training.scale, gold, groups, weights)

    def evaluate_predictions(self, answers: Mapping[Any, Positions]) -> DecisionRuleScores:
        """Judge levels for all items, by decision rule."""
        return evaluate_decision_rules(
            self.items, answers, self.settings.measure, seed=self.settings.seed
        )

    @property
    def is_late(self) -> bool:
        """Whether the time that a run was given is over."""
        limit = self.settings.timeout
        return limit is not None and time.monotonic() - self.begun >= limit

    def format_stage(self, word: str) -> str:
        """Return the name of a stage, for progress."""
        return f"{word} ({self.part})" if self.part else word

    # --- candidates --------------------------------------------------------------------------

    def load_feature_set(self, set_name: str) -> LabelledFeatures:
        """Return a feature set with the levels of all items; the workers have it then."""
        if set_name not in self.used:
            data = LabelledFeatures(self.training.matrix(set_name), self.training.levels)
            self.used[set_name] = data
            self.workers.keep(set_name, data)
        return self.used[set_name]

    def drop_feature_set(self, set_name: str) -> None:
        """Drop a feature set, which is read again if somebody asks."""
        if self.used.pop(set_name, None) is not None:
            self.workers.drop(set_name)

    def candidate(self, set_name: str, kind: str, params: Mapping[str, Any]) -> Candidate:
        """Return a candidate that can be fitted on these items."""
        asked = self.settings
        return Candidate(
            set_name,
            kind,
            params,
            size=len(self.training.scale),
            seed=asked.seed,
            strategy=asked.weight_strategy,
            alpha=asked.weight_alpha,
        )

    def plan(self, candidate: Candidate) -> CalibrationPlan:
        """Return how its answers become levels."""
        asked = self.settings
        return CalibrationPlan.of(
            candidate.kind,
            self.training.scale,
            asked.measure,
            weighted=candidate.weighted,
            decode=asked.decode,
            weights=self.level_weights,
        )

    def tasks(self, candidate: Candidate) -> list[FoldTask]:
        """Return the fits of all folds."""
        return make_fold_tasks(candidate, self.parts, self.rows)

    def calibrate_out_of_fold(self, candidate: Candidate, answers: Floats) -> OutOfFoldPredictions:
        """Decide each fold by what the others teach."""
        return calibrate_out_of_fold(self.plan(candidate), answers, self.levels, self.parts)

    def cache_predictions(self, candidate: Candidate, merit: float, answers: Floats) -> None:
        """Keep the out-of-fold answers of the best trial of a study so far, to spare its fits."""
        study = (candidate.data, candidate.kind)
        if study not in self.made or merit > self.made[study].merit:
            self.made[study] = BestTrial(merit, dict(candidate.params), answers)

    def get_cached_predictions(self, candidate: Candidate) -> Floats | None:
        """Return the answers of a candidate, if they are at hand."""
        made = self.made.get((candidate.data, candidate.kind))
        return made.answers if made and made.params == dict(candidate.params) else None

    # --- names -------------------------------------------------------------------------------

    def identity(self, *sets: str, **further: Any) -> dict[str, Any]:
        """Return all that decides what comes out: data, features, how they are judged."""
        return {
            "form": CACHE_VERSION,
            "data": self.training.fingerprint,
            "part": self.part,
            "features": {name: self.training.sets[name].files for name in sets},
            "judging": self.settings.judging,
            **further,
        }

    def code(self, *sets: str, **further: Any) -> str:
        """Return a short name of that."""
        return compute_digest(self.identity(*sets, **further))

    def _select_rows(self, values: Any) -> Any:
        return values if self.rows is None or values is None else values[self.rows]
