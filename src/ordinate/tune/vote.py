"""The soft vote: the probabilities of the best models, averaged over as many as serve best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ordinate.tune.bench import Bench
from ordinate.tune.cross import crossed_vote
from ordinate.tune.decision import Decision, Plan
from ordinate.tune.finalists import Contender, Vote, best_of
from ordinate.tune.judging import Judged

FEWEST, MOST = 2, 5  # members
TITLE = "vote"


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
        return f"{TITLE} of {' and '.join(member.title for member in self.members)}"

    def decision(self, bench: Bench) -> Decision:
        """Learn how the average of the members becomes levels, from all their answers."""
        each = [
            member.plan.fit(member.answers, bench.levels).probabilities(member.answers)
            for member in self.members
        ]
        return self.plan.fit(np.mean(each, axis=0), bench.levels)

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
    plan = Plan(bench.training.scale, asked.measure, asked.decode)
    pairs = [(member.plan, member.answers) for member in members]
    decided = crossed_vote(plan, pairs, bench.levels, bench.parts)
    return Voting(tuple(members), plan, bench.judge(decided.levels), decided.notes)
