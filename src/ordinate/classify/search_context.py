"""Search context: the data, folds, workers and caches that all candidates of a search share."""

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

# Takes the stage, the share of it that is done, and a note.
ProgressCallback = Callable[[str, float, str], None]

CACHE_VERSION = 2  # of what runs cache: raise it when the same settings give other numbers
# Names by which digests know settings. The seeds of a search follow from them: they never change.
DIGEST_NAMES = {"rounded_mean": "average"}


def ignore_progress(stage: str, share: float, note: str) -> None:
    """Say nothing."""
    del stage, share, note


class BestTrial(NamedTuple):
    """The best trial of a study that this run has made itself, with its out-of-fold outputs."""

    merit: float
    params: dict[str, Any]
    outputs: Floats


@dataclass(frozen=True, eq=False)
class SearchContext:
    """What candidates are fitted and evaluated with: all training items, or a subset of the rows.

    Every candidate gets the same folds. `subset` names the rows, in caches and in progress.
    """

    training: TrainingData
    settings: Settings
    workers: WorkerPool
    progress: ProgressCallback = ignore_progress
    rows: Positions | None = None
    subset: str = ""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    started: float = field(default_factory=time.monotonic, repr=False)  # the same for all subsets
    loaded: dict[str, LabelledFeatures] = field(default_factory=dict, repr=False)  # by workers, too
    best_trials: dict[tuple[str, str], BestTrial] = field(default_factory=dict, repr=False)

    def restrict_to_rows(self, rows: Positions, subset: str) -> "SearchContext":
        """Return a context that sees some of the items only."""
        return replace(self, rows=rows, subset=subset, best_trials={})

    @cached_property
    def levels(self) -> Positions:
        """The level of each item."""
        return self._select_rows(self.training.levels)

    @cached_property
    def folds(self) -> list[Positions]:
        """The test rows of each fold."""
        groups = self._select_rows(self.training.groups)
        return split_folds(self.levels, groups, self.settings.folds, self.settings.seed)

    @cached_property
    def class_weights(self) -> Floats:
        """The weight of each level, as all these items give it."""
        strategy, alpha = self.settings.weight_strategy, self.settings.weight_alpha
        return compute_class_weights(self.levels, len(self.training.scale), strategy, alpha)

    @property
    def level_weights(self) -> tuple[float, ...] | None:
        """The weight of each level in the metric; None where it is not weighted."""
        return tuple(self.class_weights.tolist()) if self.settings.weight_metric else None

    @cached_property
    def items(self) -> LabelledItems:
        """The items to evaluate predictions on."""
        return self.label_items(self.levels, self._select_rows(self.training.groups))

    def label_items(self, gold: Positions, groups: Any = None) -> LabelledItems:
        """Return items to evaluate predictions on, weighted where the metric is."""
        weights = None if self.level_weights is None else np.array(self.level_weights)[gold]
        return LabelledItems(self.training.scale, gold, groups, weights)

    def evaluate_predictions(self, levels_by_rule: Mapping[Any, Positions]) -> DecisionRuleScores:
        """Evaluate levels of all items, by decision rule."""
        return evaluate_decision_rules(
            self.items, levels_by_rule, self.settings.measure, seed=self.settings.seed
        )

    @property
    def is_timed_out(self) -> bool:
        """Whether the time that a run was given is over."""
        limit = self.settings.timeout
        return limit is not None and self.clock() - self.started >= limit

    def report_progress(self, stage: str, share: float, note: str = "") -> None:
        """Report how much of a stage is done."""
        self.progress(f"{stage} ({self.subset})" if self.subset else stage, share, note)

    # --- candidates --------------------------------------------------------------------------

    def load_feature_set(self, set_name: str) -> LabelledFeatures:
        """Return a feature set with the levels of all items; the workers have it then."""
        if set_name not in self.loaded:
            data = LabelledFeatures(self.training.matrix(set_name), self.training.levels)
            self.loaded[set_name] = data
            self.workers.keep(set_name, data)
        return self.loaded[set_name]

    def drop_feature_set(self, set_name: str) -> None:
        """Drop a feature set, which is read again where it is needed."""
        if self.loaded.pop(set_name, None) is not None:
            self.workers.drop(set_name)

    def make_candidate(
        self, set_name: str, model_type: str, params: Mapping[str, Any]
    ) -> Candidate:
        """Return a candidate that can be fitted on these items."""
        return Candidate(
            set_name,
            model_type,
            params,
            size=len(self.training.scale),
            seed=self.settings.seed,
            strategy=self.settings.weight_strategy,
            alpha=self.settings.weight_alpha,
        )

    def plan_calibration(self, candidate: Candidate) -> CalibrationPlan:
        """Return how its outputs become levels."""
        return CalibrationPlan.of(
            candidate.model_type,
            self.training.scale,
            self.settings.measure,
            weighted=candidate.weighted,
            decode=self.settings.decode,
            weights=self.level_weights,
        )

    def make_fold_tasks(self, candidate: Candidate) -> list[FoldTask]:
        """Return the fits of all folds."""
        return make_fold_tasks(candidate, self.folds, self.rows)

    def calibrate_out_of_fold(self, candidate: Candidate, outputs: Floats) -> OutOfFoldPredictions:
        """Calibrate each fold by what is learned from the others."""
        plan = self.plan_calibration(candidate)
        return calibrate_out_of_fold(plan, outputs, self.levels, self.folds)

    def cache_outputs(self, candidate: Candidate, merit: float, outputs: Floats) -> None:
        """Cache the out-of-fold outputs of the best trial of a study so far, to spare its fits."""
        study = (candidate.data, candidate.model_type)
        if study not in self.best_trials or merit > self.best_trials[study].merit:
            self.best_trials[study] = BestTrial(merit, dict(candidate.params), outputs)

    def get_cached_outputs(self, candidate: Candidate) -> Floats | None:
        """Return the out-of-fold outputs of a candidate, if they are cached."""
        best = self.best_trials.get((candidate.data, candidate.model_type))
        return best.outputs if best and best.params == dict(candidate.params) else None

    # --- names -------------------------------------------------------------------------------

    def compute_digest(self, *sets: str, **further: Any) -> str:
        """Return a short name of all that decides a result: data, features, evaluation settings.

        The draws of a search depend on it, so that its keys and values stay as they are.
        """
        settings = self.settings.evaluation_settings
        decode = DIGEST_NAMES.get(settings["decode"], settings["decode"])
        identity = {
            "form": CACHE_VERSION,
            "data": self.training.fingerprint,
            "part": self.subset,
            "features": {name: self.training.sets[name].files for name in sets},
            "judging": settings | {"decode": decode},
            **further,
        }
        return compute_digest(identity)

    def _select_rows(self, values: Any) -> Any:
        return values if self.rows is None or values is None else values[self.rows]
