"""Finalists: candidates with their out-of-fold answers, and what is fitted of them in the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import Candidate, decision, fitted, out_of_fold, to_undo
from ordinate.classify.decision_rules import WAYS, Decision, Floats, Plan, Positions
from ordinate.classify.scoring import Judged
from ordinate.classify.settings import Settings

Matrices = dict[str, Any]  # of feature sets, by name


@dataclass(frozen=True, eq=False)
class Contender:
    """A candidate with its answers about the items that each fit had not seen.

    In the answers, class weights are undone already where that is possible.
    """

    candidate: Candidate
    plan: Plan
    answers: Floats
    judged: Judged
    notes: tuple[str, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that it needs."""
        return (self.candidate.data,)

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.candidate.data}/{self.candidate.kind}"

    def fit(self, bench: Bench) -> "Single":
        """Fit it on all items of the bench, with the decision that its answers teach."""
        data = bench.use(self.candidate.data)
        model, weights = fitted(data, self.candidate, bench.rows)
        undo = to_undo(self.candidate.kind, weights)
        found = decision(self.plan, self.answers, bench.levels, bench.parts, undo)
        return Single(self.candidate.data, model, found)


@dataclass(frozen=True, eq=False)
class Single:
    """A fitted model with its decision."""

    set: str
    model: Any
    decision: Decision

    def probabilities(self, matrices: Matrices) -> Floats:
        """Return the probability of each level."""
        return self.decision.probabilities(self.model.answers(matrices[self.set]))

    def levels(self, matrices: Matrices) -> dict[str, Positions]:
        """Return the level of each item, by way of answering."""
        return _by_way(self.decision, self.model.answers(matrices[self.set]))


@dataclass(frozen=True, eq=False)
class Vote:
    """The average of the probabilities of several fitted models, with a decision of its own."""

    members: tuple[Single, ...]
    decision: Decision

    def levels(self, matrices: Matrices) -> dict[str, Positions]:
        """Return the level of each item, by way of answering."""
        each = [member.probabilities(matrices) for member in self.members]
        return _by_way(self.decision, np.mean(each, axis=0))


def _by_way(decision: Decision, answers: Floats) -> dict[str, Positions]:
    return {way: decision.levels(answers, way) for way in WAYS}


def contender(bench: Bench, candidate: Candidate, answers: Floats | None = None) -> Contender:
    """Judge a candidate by its out-of-fold answers, which are made where they are not given."""
    if answers is None:
        bench.use(candidate.data)
        answers = out_of_fold(bench.workers, candidate, bench.parts, bench.rows)
    decided = bench.crossed(candidate, answers)
    judged = bench.judge(decided.levels)
    return Contender(candidate, bench.plan(candidate), answers, judged, decided.notes)


def best_of(settings: Settings, judged: Sequence[Any]) -> Any:
    """Return the one with the best value, of equals the first."""
    return max(judged, key=lambda one: settings.merit(one.judged.value))
