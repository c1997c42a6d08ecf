"""The soft vote: the mean of the probabilities of the best models, of as many as serve best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ordinate.classify.cross_validation import (
    VoteMember,
    calibrate_vote_out_of_fold,
    fit_vote_calibration,
)
from ordinate.classify.decision_rules import (
    CalibrationPlan,
    DecisionRule,
    OutputCalibration,
    Positions,
)
from ordinate.classify.finalists import (
    CalibratedModel,
    EvaluatedCandidate,
    FeatureMatrices,
    select_best,
)
from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.search_context import SearchContext
from ordinate.classify.settings import VOTE

FEWEST_MEMBERS, MOST_MEMBERS = 2, 5


@dataclass(frozen=True, eq=False)
class SoftVote:
    """The mean of the probabilities of several fitted models, with a calibration of its own."""

    members: tuple[CalibratedModel, ...]
    calibration: OutputCalibration

    def levels(self, matrices: FeatureMatrices) -> dict[DecisionRule, Positions]:
        """Return the level of each item, by decision rule."""
        each = [member.probabilities(matrices) for member in self.members]
        return self.calibration.levels_by_rule(np.mean(each, axis=0))


@dataclass(frozen=True, eq=False)
class VoteCandidate:
    """The best candidates as members of one vote."""

    members: tuple[EvaluatedCandidate, ...]
    plan: CalibrationPlan
    evaluation: DecisionRuleScores
    notes: tuple[str, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that the members need."""
        return tuple(dict.fromkeys(member.candidate.data for member in self.members))

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{VOTE} of {' and '.join(member.title for member in self.members)}"

    def fit_calibration(self, context: SearchContext) -> OutputCalibration:
        """Learn how the mean of the members becomes levels, from all their outputs."""
        return fit_vote_calibration(
            self.plan, _pair_plans_with_outputs(self.members), context.levels, context.folds
        )

    def fit(self, context: SearchContext) -> SoftVote:
        """Fit all members on all items of the context."""
        return SoftVote(
            tuple(member.fit(context) for member in self.members), self.fit_calibration(context)
        )


def select_best_vote(
    context: SearchContext, candidates: Sequence[EvaluatedCandidate]
) -> VoteCandidate | None:
    """Return the best vote of two to five candidates; None where there are not two.

    The members are always the best ones, so that their number is all that is selected.
    """
    merit = context.settings.merit
    ranked = sorted(candidates, key=lambda one: -merit(one.evaluation.value))
    if len(ranked) < FEWEST_MEMBERS:
        return None
    sizes = range(FEWEST_MEMBERS, min(MOST_MEMBERS, len(ranked)) + 1)
    votes = [_evaluate_vote(context, ranked[:size]) for size in sizes]
    best: VoteCandidate = select_best(context.settings, votes)
    return best


def _evaluate_vote(context: SearchContext, members: Sequence[EvaluatedCandidate]) -> VoteCandidate:
    settings = context.settings
    plan = CalibrationPlan(
        context.training.scale, settings.measure, settings.decode, weights=context.level_weights
    )
    predictions = calibrate_vote_out_of_fold(
        plan, _pair_plans_with_outputs(members), context.levels, context.folds
    )
    evaluation = context.evaluate_predictions(predictions.levels)
    return VoteCandidate(tuple(members), plan, evaluation, predictions.notes)


def _pair_plans_with_outputs(members: Sequence[EvaluatedCandidate]) -> list[VoteMember]:
    return [(member.plan, member.outputs) for member in members]
