"""The choice: screen, discard, search, vote, and take the best by cross-validation alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.classify.bench import Bench
from ordinate.classify.finalists import Contender, best_of, contender
from ordinate.classify.hyperparameter_search import Explored, search
from ordinate.classify.saved_models import kept_answers
from ordinate.classify.screening import screen
from ordinate.classify.soft_vote import Voting, voting
from ordinate.classify.tuning_result import Screened
from ordinate.errors import BadInput


@dataclass(frozen=True, eq=False)
class Choice:
    """Everything that led to a winner, and the winner."""

    screened: list[Screened]
    explored: list[Explored]
    finished: bool  # whether all trials were made that were asked for
    contenders: list[Contender | None]  # the best of each study that has one
    vote: Voting | None
    winner: Contender | Voting


def choose(bench: Bench) -> Choice:
    """Choose the best model for the items of a bench, and look at no others."""
    screened = screen(bench)
    shortlist = [one.set for one in screened if one.kept]
    for one in screened:
        if not one.kept:
            bench.forget(one.set)
    explored, finished = search(bench, shortlist)
    contenders = [_contender(bench, one) for one in explored]
    able = [one for one in contenders if one is not None]
    if not able:
        raise BadInput(_nothing(bench, explored))
    vote = voting(bench, able) if bench.settings.votes else None
    winner = best_of(bench.settings, [*able, *([vote] if vote else [])])
    return Choice(screened, explored, finished, contenders, vote, winner)


def _contender(bench: Bench, one: Explored) -> Contender | None:
    """Return the best trial of a study; what it answers is saved, at hand, or made again."""
    if one.best is None:
        return None
    candidate = bench.candidate(one.set, one.kind, one.best.params)
    answers = kept_answers(bench, candidate)
    return contender(bench, candidate, bench.remembered(candidate) if answers is None else answers)


def _nothing(bench: Bench, explored: Sequence[Explored]) -> str:
    reasons = [
        f" {one.set}/{one.kind}: {trial.reason}"
        for one in explored
        for trial in one.trials
        if trial.reason
    ]
    first = reasons[0] if reasons else ""
    return f"No trial was completed, so there is no model for {bench.settings.metric}.{first}"
