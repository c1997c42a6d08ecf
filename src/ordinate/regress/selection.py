"""The choice: search, blend, and take the best by rows that were held out of the fits alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ordinate.errors import BadInput
from ordinate.regress.bench import Bench, Candidate
from ordinate.regress.blend import Blend, blend_out_of_fold
from ordinate.regress.fitting import fit_model, remove_checkpoints
from ordinate.regress.hyperparameter_search import (
    StudyTrials,
    TimeBudget,
    join_held_out_predictions,
    search_hyperparameters,
)
from ordinate.regress.prediction_intervals import (
    IntervalCalibration,
    compute_spread,
    stack_member_spreads,
)
from ordinate.regress.saved_models import load_saved_trial
from ordinate.results.regression_comparison import compare_regression
from ordinate.search.studies import round_to_significant


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """The best trial of a model type, and what it predicts for rows that were held out."""

    candidate: Candidate
    value: float  # RMSE
    held: IntervalCalibration  # of the folds that were held out


@dataclass(frozen=True, eq=False)
class BlendCandidate:
    """A weighted average of contenders; its predictions have weights that other folds taught."""

    members: tuple[EvaluatedCandidate, ...]
    blend: Blend
    value: float
    held: IntervalCalibration


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """Everything that led to a winner, and the winner."""

    studies: list[StudyTrials]
    finished: bool  # whether all trials were made that were asked for
    candidates: list[EvaluatedCandidate | None]  # the best of each model type that has one
    blend: BlendCandidate | None
    winner: EvaluatedCandidate | BlendCandidate


def select_model(bench: Bench, clock: TimeBudget) -> ModelSelection:
    """Choose the best surrogate; no row of the test has a say in it."""
    explored, finished = search_hyperparameters(bench, clock)
    contenders = [_evaluate_best_trial(bench, one) for one in explored]
    able = [one for one in contenders if one is not None]
    if not able:
        raise BadInput(_explain_no_model(explored))
    enough = len(able) > 1 and len(bench.held_out) > 1
    blend = blend_candidates(bench, able) if bench.settings.blends and enough else None
    if blend and bench.settings.blend == "auto" and blend.blend.weights.max() == 1.0:
        blend = None  # it is one of the models
    best = min(able, key=lambda one: round_to_significant(one.value))
    winner = best if blend is None or _beats_blend(bench, best, blend) else blend
    return ModelSelection(explored, finished, contenders, blend, winner)


def _beats_blend(bench: Bench, one: EvaluatedCandidate, blend: BlendCandidate) -> bool:
    """Tell whether a model is better than the blend by more than chance, in RMSE and in MAE.

    Otherwise the blend is the safer choice: it leans on no model type alone, and a few rows
    that nobody can predict do not decide.
    """
    if bench.settings.blend == "always" or one.value >= blend.value:
        return False
    columns = {"one": one.held.predictions, "blend": blend.held.predictions}
    found = compare_regression(bench.targets, columns, ["rmse", "mae"], groups=bench.groups)
    return all(each.first == "one" and each.verdict == "better" for each in found.differences)


def _evaluate_best_trial(bench: Bench, one: StudyTrials) -> EvaluatedCandidate | None:
    """Return the best trial of a model type; what it predicts is at hand, saved, or made again."""
    if one.best is None:
        return None
    candidate = Candidate(one.model_type, one.best.params)
    made = bench.get_cached_predictions(candidate) or load_saved_trial(bench, candidate)
    if made is None:
        tasks = bench.tasks(candidate)
        made = join_held_out_predictions(bench, candidate, bench.workers.map(fit_model, tasks))
        remove_checkpoints(tasks)
    held = IntervalCalibration(bench.targets, made.predictions, made.spread)
    return EvaluatedCandidate(candidate, made.value, held)


def blend_candidates(bench: Bench, members: Sequence[EvaluatedCandidate]) -> BlendCandidate:
    """Blend the best of each model type.

    Members of no weight are left out. The value is that of predictions whose weights were learned
    on the other folds, so it can be compared with those of the members.
    """
    predictions = np.column_stack([one.held.predictions for one in members])
    blend = Blend.fit(predictions, bench.targets)
    kept = blend.weights > 0.0
    if kept.sum() > 1 and not kept.all():
        return blend_candidates(bench, [one for one, has in zip(members, kept, strict=True) if has])
    honest = blend_out_of_fold(predictions, bench.targets, bench.places)
    spread = compute_spread(
        predictions, blend.weights, stack_member_spreads([one.held for one in members])
    )
    held = IntervalCalibration(bench.targets, honest, spread)
    return BlendCandidate(tuple(members), blend, bench.rmse(honest), held)


def _explain_no_model(explored: Sequence[StudyTrials]) -> str:
    reasons = [
        f" {one.model_type}: {trial.reason}"
        for one in explored
        for trial in one.trials
        if trial.reason
    ]
    return f"No trial was completed, so there is no surrogate.{reasons[0] if reasons else ''}"
