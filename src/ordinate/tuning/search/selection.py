"""Model selection: screen, search, combine, and take the best by held-out rows alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ordinate.errors import BadInput, OrdinateError
from ordinate.tuning.search.fits import (
    OutOfTime,
    Record,
    Rows,
    load_or_compute,
    remove_checkpoints,
    take_outputs,
)
from ordinate.tuning.search.hyperparameter_search import StudyTrials, search_hyperparameters
from ordinate.tuning.search.saved_models import load_out_of_fold
from ordinate.tuning.search.task import Candidate, Ensemble, EvaluatedCandidate, Selected, Task
from ordinate.tuning.search.tuning_result import NestedEstimate, ScreeningResult

if TYPE_CHECKING:
    from ordinate.tuning.search.settings import ScreeningSettings


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """Everything that led to a winner, and the winner."""

    screened: list[ScreeningResult]
    studies: list[StudyTrials]
    candidates: list[EvaluatedCandidate | None]  # the best of each study that has one
    ensemble: Ensemble | None
    winner: Selected

    @property
    def finished(self) -> bool:
        """Whether every study made all its trials, and there was time for the best of them."""
        pairs = zip(self.studies, self.candidates, strict=True)
        return all(study.finished and (one or not study.best) for study, one in pairs)


def select_model(task: Task) -> ModelSelection:
    """Select the best model for the rows of a task, and look at no others."""
    screened = screen_inputs(task) if task.screening_model else []
    for one in screened:
        if not one.shortlisted:
            task.drop_input(one.set)
    shortlist = [one.set for one in screened if one.shortlisted]
    studies = search_hyperparameters(task, shortlist if screened else task.inputs)
    candidates = [_evaluate_best_trial(task, study) for study in studies]
    if not any(candidates):
        if any(study.trials for study in studies) and not any(study.best for study in studies):
            raise BadInput(_explain_no_model(task, studies))
        raise task.explain_lack_of_time()
    return select_winner(task, screened, studies, candidates)


def select_winner(
    task: Task,
    screened: list[ScreeningResult],
    studies: list[StudyTrials],
    candidates: list[EvaluatedCandidate | None],
) -> ModelSelection:
    """Return the selection of the best candidate, or an ensemble of several."""
    complete = [one for one in candidates if one is not None]
    ensemble = task.combine(complete)
    winner = task.select_winner(complete, ensemble)
    return ModelSelection(screened, studies, candidates, ensemble, winner)


def _evaluate_best_trial(task: Task, study: StudyTrials) -> EvaluatedCandidate | None:
    """Return the best trial of a study; its outputs are cached, saved, or made again.

    None where no trial was completed, or where there is no time to make its outputs again.
    """
    if study.best is None:
        return None
    candidate = Candidate(*study.key, study.best.params)
    outputs = task.get_cached_outputs(candidate) or load_out_of_fold(task, candidate)
    if outputs is None:
        task.load_input(candidate.input)
        fits = [replace(fit, end=task.budget.end) for fit in task.make_fold_fits(candidate)]
        try:
            outputs = task.join_outputs(take_outputs(task.attempt_fits(fits)))
        except OutOfTime:
            return None
        remove_checkpoints(fits)
    return task.evaluate_candidate(candidate, outputs)


def _explain_no_model(task: Task, studies: Sequence[StudyTrials]) -> str:
    reasons = [
        f" {study.key}: {trial.reason}"
        for study in studies
        for trial in study.trials
        if trial.reason
    ]
    first = reasons[0] if reasons else ""
    return f"No trial was completed, so there is no model for {task.metric}.{first}"


# --- nested cross-validation ---------------------------------------------------------------------


def estimate_nested(task: Task) -> NestedEstimate | None:
    """Select anew for each fold, on the other folds alone, and evaluate on it what was selected.

    None where there was no time for it: the next run goes on.
    """
    records: list[Record] = []
    for number, fold in enumerate(task.folds, 1):
        records.append(_load_outer_fold(task, number, fold))
        task.budget.forget_trials()
        if "predictions" not in records[-1]:
            return None
    predictions = task.join_predictions(
        [_decode(task, one, len(fold)) for one, fold in zip(records, task.folds, strict=True)]
    )
    evaluation = task.evaluate(predictions)
    return NestedEstimate(
        evaluation,
        task.get_value(evaluation),
        selected=tuple(record["selected"] for record in records),
        finished=all(record["finished"] for record in records),
    )


def _load_outer_fold(task: Task, number: int, fold: Rows) -> Record:
    """Return what one outer fold selected and predicted; all settings decide that."""
    digest = task.compute_digest(*task.inputs, settings=task.settings.result_settings)
    return load_or_compute(
        task.locate_result("nested", f"outer-{number}-{digest}.json"),
        lambda record: _decode(task, record, len(fold)) is not None,
        lambda: _run_outer_fold(task, number, fold),
    )


def _decode(task: Task, record: Record, n: int) -> Any:
    return task.decode_predictions(record.get("predictions"), n)


def _run_outer_fold(task: Task, number: int, fold: Rows) -> Record:
    """Select on the other folds, and predict this one with what was selected."""
    if task.budget.is_over:
        return {"final": False}
    inner = task.restrict_to_rest(fold, f"outer-{number}").prepare()
    try:
        selection = select_model(inner)
        predictions = inner.predict_new(selection.winner, task.get_rows(fold))
    except OutOfTime:
        return {"final": False}
    return {
        "selected": selection.winner.title,
        "finished": selection.finished,
        "final": selection.finished,  # a search that a timeout ended goes on next time
        "predictions": task.encode_predictions(predictions),
    }


# --- screening -----------------------------------------------------------------------------------

STAGE = "screening"
NO_TIME = "there was no time to screen it (--timeout)"


def screen_inputs(task: Task) -> list[ScreeningResult]:
    """Return all inputs, the best first, and which of them are worth searching.

    When the time is over, what is not screened is not searched either.
    """
    screened: list[ScreeningResult] = []
    for done, name in enumerate(task.inputs):
        values = [one.value for one in screened if not one.failed]
        task.report_progress(STAGE, done / len(task.inputs), task.describe_best(values))
        screened.append(_screen_or_load(task, name))
    return shortlist_inputs(task, screened)


def _screen_or_load(task: Task, name: str) -> ScreeningResult:
    """Screen one input, or load what an earlier run has cached of it."""
    facts = ScreeningResult(**task.describe_input(name), evaluation=None, value=math.nan)
    record = load_or_compute(
        task.locate_result("screening", f"{name}-{_compute_digest(task, name)}.json"),
        lambda record: _is_usable(task, record),
        lambda: _fit_screening_model(task, name),
    )
    if record.get("failed"):
        return replace(facts, failed=record["failed"])
    predictions = _decode(task, record, sum(map(len, task.folds)))
    evaluation = task.evaluate(predictions)
    value = task.get_value(evaluation)
    failed = _explain_undefined(task, predictions) if math.isnan(value) else None
    return replace(facts, evaluation=evaluation, value=value, failed=failed)


def _explain_undefined(task: Task, predictions: Any) -> str:
    try:
        task.score(predictions)
    except OrdinateError as reason:
        return str(reason)
    return f"{task.metric} is undefined."


def _compute_digest(task: Task, name: str) -> str:
    return task.compute_digest(name, kind=task.screening_model)  # a key that digests always had


def _is_usable(task: Task, record: Record) -> bool:
    if record.get("failed"):
        return isinstance(record["failed"], str)
    return _decode(task, record, sum(map(len, task.folds))) is not None


def _fit_screening_model(task: Task, name: str) -> Record:
    """Return the out-of-fold predictions of the cheap model, or why there are none."""
    late = {"failed": NO_TIME, "final": False}  # so that the next run screens it
    if task.budget.is_over:
        return late
    task.load_input(name)
    candidate = Candidate(name, task.screening_model or "", {})
    fits = [replace(fit, end=task.budget.end) for fit in task.make_fold_fits(candidate)]
    try:
        outputs = task.join_outputs(take_outputs(task.attempt_fits(fits)))
        predictions, _ = task.predict_out_of_fold(candidate, outputs)
    except OutOfTime:
        return late
    except OrdinateError as reason:
        return {"failed": str(reason)}
    return {"predictions": task.encode_predictions(predictions)}


# --- shortlist -----------------------------------------------------------------------------------


def shortlist_inputs(task: Task, screened: Sequence[ScreeningResult]) -> list[ScreeningResult]:
    """Return the inputs, the best first, with those shortlisted that are to be searched."""
    ranked = sorted(screened, key=lambda one: -_get_merit(task, one))  # of equals, the first
    best, settings = ranked[0], cast("ScreeningSettings", task.settings)
    merits = [_get_merit(task, one) for one in ranked if not one.failed]
    if not merits and any(one.failed == NO_TIME for one in ranked):
        raise task.explain_lack_of_time()
    if not merits:
        raise BadInput(f"Nothing can be learned from any feature set. {best.set}: {best.failed}")
    reasons = [_explain_discard(task, one, merits) for one in ranked]
    left = [one.set for one, reason in zip(ranked, reasons, strict=True) if reason is None]
    if not left:
        raise BadInput(
            f"Every feature set is discarded: the best of them, {best.set}, has {task.metric} "
            f"{task.format_value(best.value)}. Loosen --early-discard-threshold."
        )
    shortlist, beyond = left[: settings.top_k], f"not among the best {settings.top_k} (--top-k)"
    return [
        replace(one, shortlisted=True)
        if one.set in shortlist
        else replace(one, discard_reason=reason or beyond)
        for one, reason in zip(ranked, reasons, strict=True)
    ]


def _explain_discard(task: Task, one: ScreeningResult, merits: Sequence[float]) -> str | None:
    """Return why an input is not worth searching, if it is not."""
    if one.failed:
        return NO_TIME if one.failed == NO_TIME else "it failed in screening"
    merit = _get_merit(task, one)
    settings = cast("ScreeningSettings", task.settings)
    threshold, percentile = settings.early_discard_threshold, settings.early_discard_percentile
    if threshold is not None and merit < task.compute_merit(threshold):
        return f"worse than {threshold:g} (--early-discard-threshold)"
    if percentile is not None and merit < np.percentile(merits, percentile):
        return f"worse than the {percentile:g}th percentile (--early-discard-percentile)"
    return None


def _get_merit(task: Task, one: ScreeningResult) -> float:
    return -math.inf if one.failed else task.compute_merit(one.value)
