"""Finalists: candidates with their out-of-fold answers, and what is fitted of them in the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import (
    Candidate,
    fit_calibration,
    fit_candidate,
    predict_out_of_fold,
    select_reversible_weights,
)
from ordinate.classify.decision_rules import (
    DECISION_RULES,
    CalibrationPlan,
    Floats,
    OutputCalibration,
    Positions,
)
from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.settings import Settings

FeatureMatrices = dict[str, Any]  # of feature sets, by name


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """A candidate with its answers about the items that each fit had not seen.

    In the answers, class weights are undone already where that is possible.
    """

    candidate: Candidate
    plan: CalibrationPlan
    answers: Floats
    evaluation: DecisionRuleScores
    notes: tuple[str, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that it needs."""
        return (self.candidate.data,)

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.candidate.data}/{self.candidate.kind}"

    def fit(self, bench: Bench) -> "CalibratedModel":
        """Fit it on all items of the bench, with the decision that its answers teach."""
        data = bench.load_feature_set(self.candidate.data)
        model, weights = fit_candidate(data, self.candidate, bench.rows)
        undo = select_reversible_weights(self.candidate.kind, weights)
        found = fit_calibration(self.plan, self.answers, bench.levels, bench.parts, undo)
        return CalibratedModel(self.candidate.data, model, found)


@dataclass(frozen=True, eq=False)
class CalibratedModel:
    """A fitted model with its decision."""

    set: str
    model: Any
    calibration: OutputCalibration

    def probabilities(self, matrices: FeatureMatrices) -> Floats:
        """Return the probability of each level."""
        return self.calibration.probabilities(self.model.predict(matrices[self.set]))

    def levels(self, matrices: FeatureMatrices) -> dict[str, Positions]:
        """Return the level of each item, by decision rule."""
        return _apply_decision_rules(self.calibration, self.model.predict(matrices[self.set]))


@dataclass(frozen=True, eq=False)
class SoftVote:
    """The average of the probabilities of several fitted models, with a decision of its own."""

    members: tuple[CalibratedModel, ...]
    calibration: OutputCalibration

    def levels(self, matrices: FeatureMatrices) -> dict[str, Positions]:
        """Return the level of each item, by decision rule."""
        each = [member.probabilities(matrices) for member in self.members]
        return _apply_decision_rules(self.calibration, np.mean(each, axis=0))


def _apply_decision_rules(decision: OutputCalibration, answers: Floats) -> dict[str, Positions]:
    return {way: decision.levels(answers, way) for way in DECISION_RULES}


def evaluate_candidate(
    bench: Bench, candidate: Candidate, answers: Floats | None = None
) -> EvaluatedCandidate:
    """Judge a candidate by its out-of-fold answers, which are made where they are not given."""
    if answers is None:
        bench.load_feature_set(candidate.data)
        answers = predict_out_of_fold(bench.workers, candidate, bench.parts, bench.rows)
    decided = bench.calibrate_out_of_fold(candidate, answers)
    judged = bench.evaluate_predictions(decided.levels)
    return EvaluatedCandidate(candidate, bench.plan(candidate), answers, judged, decided.notes)


def select_best(settings: Settings, judged: Sequence[Any]) -> Any:
    """Return the one with the best value, of equals the first."""
    return max(judged, key=lambda one: settings.merit(one.evaluation.value))
