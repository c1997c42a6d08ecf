"""The soft vote: the probabilities of the best models, averaged over as many as serve best."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import (
    VoteMember,
    calibrate_vote_out_of_fold,
    fit_vote_calibration,
)
from ordinate.classify.decision_rules import CalibrationPlan, OutputCalibration
from ordinate.classify.finalists import EvaluatedCandidate, SoftVote, select_best
from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.settings import VOTE

FEWEST_MEMBERS, MOST_MEMBERS = 2, 5  # members


@dataclass(frozen=True, eq=False)
class VoteCandidate:
    """The best contenders as members of one vote."""

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

    def calibration(self, bench: Bench) -> OutputCalibration:
        """Learn how the average of the members becomes levels, from all their answers."""
        return fit_vote_calibration(
            self.plan, _pair_plans_with_outputs(self.members), bench.levels, bench.parts
        )

    def fit(self, bench: Bench) -> SoftVote:
        """Fit all members on all items of the bench."""
        return SoftVote(
            tuple(member.fit(bench) for member in self.members), self.calibration(bench)
        )


def select_best_vote(
    bench: Bench, contenders: Sequence[EvaluatedCandidate]
) -> VoteCandidate | None:
    """Return the best vote of two to five contenders; None where there are not two.

    The members are always the best ones, so that their number is all that is chosen.
    """
    merit = bench.settings.merit
    ranked = sorted(contenders, key=lambda one: -merit(one.evaluation.value))
    if len(ranked) < FEWEST_MEMBERS:
        return None
    sizes = range(FEWEST_MEMBERS, min(MOST_MEMBERS, len(ranked)) + 1)
    votes = [_evaluate_vote(bench, ranked[:size]) for size in sizes]
    best: VoteCandidate = select_best(bench.settings, votes)
    return best


def _evaluate_vote(bench: Bench, members: Sequence[EvaluatedCandidate]) -> VoteCandidate:
    asked = bench.settings
    weights = bench.level_weights
    plan = CalibrationPlan(bench.training.scale, asked.measure, asked.decode, weights=weights)
    decided = calibrate_vote_out_of_fold(
        plan, _pair_plans_with_outputs(members), bench.levels, bench.parts
    )
    return VoteCandidate(
        tuple(members), plan, bench.evaluate_predictions(decided.levels), decided.notes
    )


def _pair_plans_with_outputs(members: Sequence[EvaluatedCandidate]) -> list[VoteMember]:
    return [(member.plan, member.answers) for member in members]
