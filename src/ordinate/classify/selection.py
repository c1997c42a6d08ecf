"""Model selection: screen, discard, search, vote, and take the best by cross-validation alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.classify.finalists import EvaluatedCandidate, evaluate_candidate, select_best
from ordinate.classify.hyperparameter_search import StudyTrials, search_hyperparameters
from ordinate.classify.saved_models import load_out_of_fold
from ordinate.classify.screening import screen_feature_sets
from ordinate.classify.search_context import SearchContext
from ordinate.classify.soft_vote import VoteCandidate, select_best_vote
from ordinate.classify.tuning_result import ScreeningResult
from ordinate.errors import BadInput


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """Everything that led to a winner, and the winner."""

    screened: list[ScreeningResult]
    studies: list[StudyTrials]
    finished: bool  # whether every study made all its trials
    candidates: list[EvaluatedCandidate | None]  # the best of each study that has one
    vote: VoteCandidate | None
    winner: EvaluatedCandidate | VoteCandidate


def select_model(context: SearchContext) -> ModelSelection:
    """Select the best model for the items of a context, and look at no others."""
    screened = screen_feature_sets(context)
    for one in screened:
        if not one.shortlisted:
            context.drop_feature_set(one.set)
    shortlist = [one.set for one in screened if one.shortlisted]
    studies, finished = search_hyperparameters(context, shortlist)
    candidates = [_evaluate_best_trial(context, study) for study in studies]
    complete = [one for one in candidates if one is not None]
    if not complete:
        raise BadInput(_explain_no_model(context, studies))
    vote = select_best_vote(context, complete) if context.settings.includes_vote else None
    winner = select_best(context.settings, [*complete, *([vote] if vote else [])])
    return ModelSelection(screened, studies, finished, candidates, vote, winner)


def _evaluate_best_trial(context: SearchContext, study: StudyTrials) -> EvaluatedCandidate | None:
    """Return the best trial of a study; its outputs are saved, cached, or made again."""
    if study.best is None:
        return None
    candidate = context.make_candidate(study.set, study.model_type, study.best.params)
    outputs = load_out_of_fold(context, candidate)
    if outputs is None:
        outputs = context.get_cached_outputs(candidate)
    return evaluate_candidate(context, candidate, outputs)


def _explain_no_model(context: SearchContext, studies: Sequence[StudyTrials]) -> str:
    reasons = [
        f" {study.set}/{study.model_type}: {trial.reason}"
        for study in studies
        for trial in study.trials
        if trial.reason
    ]
    first = reasons[0] if reasons else ""
    return f"No trial was completed, so there is no model for {context.settings.metric}.{first}"
