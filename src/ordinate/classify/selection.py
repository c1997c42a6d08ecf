"""The choice: screen, discard, search, vote, and take the best by cross-validation alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.classify.bench import Bench
from ordinate.classify.finalists import EvaluatedCandidate, evaluate_candidate, select_best
from ordinate.classify.hyperparameter_search import StudyTrials, search_hyperparameters
from ordinate.classify.saved_models import load_out_of_fold
from ordinate.classify.screening import screen_feature_sets
from ordinate.classify.soft_vote import VoteCandidate, select_best_vote
from ordinate.classify.tuning_result import ScreeningResult
from ordinate.errors import BadInput


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """Everything that led to a winner, and the winner."""

    screened: list[ScreeningResult]
    studies: list[StudyTrials]
    finished: bool  # whether all trials were made that were asked for
    candidates: list[EvaluatedCandidate | None]  # the best of each study that has one
    vote: VoteCandidate | None
    winner: EvaluatedCandidate | VoteCandidate


def select_model(bench: Bench) -> ModelSelection:
    """Choose the best model for the items of a bench, and look at no others."""
    screened = screen_feature_sets(bench)
    shortlist = [one.set for one in screened if one.kept]
    for one in screened:
        if not one.kept:
            bench.drop_feature_set(one.set)
    explored, finished = search_hyperparameters(bench, shortlist)
    contenders = [_evaluate_best_trial(bench, one) for one in explored]
    able = [one for one in contenders if one is not None]
    if not able:
        raise BadInput(_explain_no_model(bench, explored))
    vote = select_best_vote(bench, able) if bench.settings.votes else None
    winner = select_best(bench.settings, [*able, *([vote] if vote else [])])
    return ModelSelection(screened, explored, finished, contenders, vote, winner)


def _evaluate_best_trial(bench: Bench, one: StudyTrials) -> EvaluatedCandidate | None:
    """Return the best trial of a study; what it answers is saved, at hand, or made again."""
    if one.best is None:
        return None
    candidate = bench.candidate(one.set, one.kind, one.best.params)
    answers = load_out_of_fold(bench, candidate)
    return evaluate_candidate(
        bench, candidate, bench.get_cached_predictions(candidate) if answers is None else answers
    )


def _explain_no_model(bench: Bench, explored: Sequence[StudyTrials]) -> str:
    reasons = [
        f" {one.set}/{one.kind}: {trial.reason}"
        for one in explored
        for trial in one.trials
        if trial.reason
    ]
    first = reasons[0] if reasons else ""
    return f"No trial was completed, so there is no model for {bench.settings.metric}.{first}"
