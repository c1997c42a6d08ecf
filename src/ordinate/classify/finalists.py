"""Finalists: candidates with their out-of-fold outputs, and calibrated models fitted of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordinate.classify.cross_validation import (
    Candidate,
    fit_calibration,
    fit_candidate,
    predict_out_of_fold,
    select_reversible_weights,
)
from ordinate.classify.decision_rules import (
    CalibrationPlan,
    DecisionRule,
    Floats,
    OutputCalibration,
    Positions,
)
from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.search_context import SearchContext
from ordinate.classify.settings import Settings

FeatureMatrices = dict[str, Any]  # of feature sets, by name


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """A candidate with its out-of-fold outputs, and their evaluation.

    In the outputs, class weights are undone already where that is possible.
    """

    candidate: Candidate
    plan: CalibrationPlan
    outputs: Floats
    evaluation: DecisionRuleScores
    notes: tuple[str, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that it needs."""
        return (self.candidate.data,)

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.candidate.data}/{self.candidate.model_type}"

    def fit(self, context: SearchContext) -> "CalibratedModel":
        """Fit it on all items of the context, calibrated by its out-of-fold outputs."""
        data = context.load_feature_set(self.candidate.data)
        model, weights = fit_candidate(data, self.candidate, context.rows)
        reversible = select_reversible_weights(self.candidate.model_type, weights)
        calibration = fit_calibration(
            self.plan, self.outputs, context.levels, context.folds, reversible
        )
        return CalibratedModel(self.candidate.data, model, calibration)


@dataclass(frozen=True, eq=False)
class CalibratedModel:
    """A fitted model with its calibration."""

    set: str
    model: Any
    calibration: OutputCalibration

    def probabilities(self, matrices: FeatureMatrices) -> Floats:
        """Return the probability of each level."""
        return self.calibration.probabilities(self.model.predict(matrices[self.set]))

    def levels(self, matrices: FeatureMatrices) -> dict[DecisionRule, Positions]:
        """Return the level of each item, by decision rule."""
        return self.calibration.levels_by_rule(self.model.predict(matrices[self.set]))


def evaluate_candidate(
    context: SearchContext, candidate: Candidate, outputs: Floats | None = None
) -> EvaluatedCandidate:
    """Evaluate a candidate by its out-of-fold outputs, which are made where they are not given."""
    if outputs is None:
        context.load_feature_set(candidate.data)
        outputs = predict_out_of_fold(context.workers, candidate, context.folds, context.rows)
    predictions = context.calibrate_out_of_fold(candidate, outputs)
    return EvaluatedCandidate(
        candidate,
        context.plan_calibration(candidate),
        outputs,
        context.evaluate_predictions(predictions.levels),
        predictions.notes,
    )


def select_best(settings: Settings, evaluated: Sequence[Any]) -> Any:
    """Return the one with the best value, of equals the first."""
    return max(evaluated, key=lambda one: settings.merit(one.evaluation.value))
