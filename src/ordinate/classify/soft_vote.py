"""The soft vote: the probabilities of the best models, averaged over as many as serve best."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import Member, crossed_vote, decision_of_vote
from ordinate.classify.decision_rules import Decision, Plan
from ordinate.classify.finalists import Contender, Vote, best_of
from ordinate.classify.scoring import Judged
from ordinate.classify.settings import VOTE

FEWEST, MOST = 2, 5  # members


@dataclass(frozen=True, eq=False)
class Voting:
    """The best contenders as members of one vote."""

    members: tuple[Contender, ...]
    plan: Plan
    judged: Judged
    notes: tuple[str, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that the members need."""
        return tuple(dict.fromkeys(member.candidate.data for member in self.members))

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{VOTE} of {' and '.join(member.title for member in self.members)}"

    def decision(self, bench: Bench) -> Decision:
        """Learn how the average of the members becomes levels, from all their answers."""
        return decision_of_vote(self.plan, _pairs(self.members), bench.levels, bench.parts)

    def fit(self, bench: Bench) -> Vote:
        """Fit all members on all items of the bench."""
        return Vote(tuple(member.fit(bench) for member in self.members), self.decision(bench))


def voting(bench: Bench, contenders: Sequence[Contender]) -> Voting | None:
    """Return the best vote of two to five contenders; None where there are not two.

    The members are always the best ones, so that their number is all that is chosen.
    """
    merit = bench.settings.merit
    ranked = sorted(contenders, key=lambda one: -merit(one.judged.value))
    if len(ranked) < FEWEST:
        return None
    sizes = range(FEWEST, min(MOST, len(ranked)) + 1)
    votes = [_vote(bench, ranked[:size]) for size in sizes]
    best: Voting = best_of(bench.settings, votes)
    return best


def _vote(bench: Bench, members: Sequence[Contender]) -> Voting:
    asked = bench.settings
    weights = bench.level_weights
    plan = Plan(bench.training.scale, asked.measure, asked.decode, weights=weights)
    decided = crossed_vote(plan, _pairs(members), bench.levels, bench.parts)
    return Voting(tuple(members), plan, bench.judge(decided.levels), decided.notes)


def _pairs(members: Sequence[Contender]) -> list[Member]:
    return [(member.plan, member.answers) for member in members]
