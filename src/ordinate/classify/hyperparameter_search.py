"""Stage 2, search: the trials of each feature set and model type, batch by batch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ordinate.classify.cross_validation import (
    Candidate,
    FoldTask,
    compute_objective,
    compute_value,
    count_confusion,
    fit_fold,
    join_folds,
)
from ordinate.classify.decision_rules import METRIC_OPTIMAL, Floats, predict_rough_levels
from ordinate.classify.screening import format_best_value
from ordinate.classify.search_context import SearchContext
from ordinate.errors import OrdinateError
from ordinate.experiment.layout import STUDIES
from ordinate.experiment.safe_files import resolve_inside
from ordinate.models.classifiers import MODEL_TYPES
from ordinate.search.studies import PendingTrial, Study, TrialBatch
from ordinate.search.trials import Trial

STAGE = "searching"


@dataclass(frozen=True)
class StudyTrials:
    """One feature set with one model type, and the trials that were made of them."""

    set: str
    model_type: str
    trials: tuple[Trial, ...]
    best: Trial | None


@dataclass
class _RunningTrial:
    """A trial that is being made: its fits, and the outputs of the folds that are done."""

    pending: PendingTrial
    candidate: Candidate
    tasks: list[FoldTask]
    outputs: list[Floats] = field(default_factory=list)


def search_hyperparameters(
    context: SearchContext, sets: Sequence[str]
) -> tuple[list[StudyTrials], bool]:
    """Make the trials of every study, and say whether all of them were made.

    Studies take turns, a batch each, so that a timeout leaves none of them behind: when it is over,
    only those get a batch that have had none, for each needs a model.
    """
    pairs = [(name, model) for name in sets for model in context.settings.searched_models]
    studies = {pair: _open_study(context, *pair) for pair in pairs}
    turns = {pair: _iterate_batches(context, studies[pair], pair[1]) for pair in pairs}
    while turns:
        for pair in list(turns):
            _report_progress(context, studies)
            timed_out = context.is_timed_out and studies[pair].trials
            if timed_out or not _run_next_batch(context, *pair, turns[pair]):
                del turns[pair]
    done = [_collect_trials(context, *pair, study) for pair, study in studies.items()]
    total = context.settings.stage2_trials
    return done, all(len(study.trials) == total for study in done)


def _open_study(context: SearchContext, name: str, model_type: str) -> Study:
    path = resolve_inside(context.training.experiment.folder("results"), STUDIES)
    prefix = f"{context.subset}/" if context.subset else ""
    digest = context.compute_digest(name, kind=model_type)
    return Study.open(
        path,
        f"{prefix}{name}/{model_type}/{digest}",
        direction=context.settings.direction,
        seed=context.settings.seed,
    )


def _iterate_batches(context: SearchContext, study: Study, model_type: str) -> Iterator[TrialBatch]:
    known = MODEL_TYPES[model_type]
    return study.iterate_batches(
        known.space, context.settings.stage2_trials, defaults=[known.defaults]
    )


def _collect_trials(
    context: SearchContext, name: str, model_type: str, study: Study
) -> StudyTrials:
    """Return as many trials as the settings say; earlier runs may have made more."""
    total = context.settings.stage2_trials
    return StudyTrials(name, model_type, tuple(study.trials[:total]), study.best(total))


def _report_progress(context: SearchContext, studies: dict[tuple[str, str], Study]) -> None:
    trials = [trial for study in studies.values() for trial in study.trials]
    share = min(1.0, len(trials) / (len(studies) * context.settings.stage2_trials))
    values = [trial.value for trial in trials if trial.value is not None]
    context.report_progress(STAGE, share, format_best_value(context.settings, values))


# --- one batch -----------------------------------------------------------------------------------


def _run_next_batch(
    context: SearchContext, name: str, model_type: str, batches: Iterator[TrialBatch]
) -> bool:
    """Make the next batch of a study, and say whether there was one."""
    batch = next(batches, None)
    if batch is None:
        return False
    context.load_feature_set(name)
    live = [_start_trial(context, name, model_type, pending) for pending in batch.pending]
    for fold in range(len(context.folds)):
        live = _fit_fold_of_trials(context, batch, fold, live)
    for trial in live:
        _finish_trial(context, batch, trial)
    batch.close()
    return True


def _start_trial(
    context: SearchContext, name: str, model_type: str, pending: PendingTrial
) -> _RunningTrial:
    candidate = context.make_candidate(name, model_type, pending.params)
    return _RunningTrial(pending, candidate, context.make_fold_tasks(candidate))


def _fit_fold_of_trials(
    context: SearchContext, batch: TrialBatch, fold: int, live: list[_RunningTrial]
) -> list[_RunningTrial]:
    """Fit one fold of all trials side by side, and return those that are worth the next one."""
    results = context.workers.attempt(fit_fold, [trial.tasks[fold] for trial in live])
    left = []
    for trial, outputs in zip(live, results, strict=True):
        number, done = trial.pending.number, fold + 1
        if isinstance(outputs, OrdinateError):
            batch.finish(number, None, failed=str(outputs))
            continue
        trial.outputs.append(outputs)
        if done < len(context.folds) and batch.report(
            number, done, _compute_interim_objective(context, trial)
        ):
            batch.finish(number, None)
            continue
        left.append(trial)
    return left


def _compute_interim_objective(context: SearchContext, trial: _RunningTrial) -> float:
    """Return the objective of the folds that are done, uncalibrated: that needs all of them."""
    size, metric = len(context.training.scale), context.settings.measure
    gold, weights = context.items.gold, context.items.weights
    folds = context.folds[: len(trial.outputs)]
    rows = np.concatenate(folds)
    try:
        pairs = zip(folds, trial.outputs, strict=True)
        levels = [predict_rough_levels(outputs, gold[fold], size) for fold, outputs in pairs]
    except OrdinateError:  # one fold alone may be too little
        return math.nan
    matrix = count_confusion(
        context.training.scale,
        gold[rows],
        np.concatenate(levels),
        weights=None if weights is None else weights[rows],
    )
    return compute_objective(metric, compute_value(metric, matrix)[0])


def _finish_trial(context: SearchContext, batch: TrialBatch, trial: _RunningTrial) -> None:
    """Calibrate, count all folds as one confusion matrix, and take the value of the metric."""
    metric, number = context.settings.measure, trial.pending.number
    outputs = join_folds(trial.outputs, context.folds)
    try:
        predictions = context.calibrate_out_of_fold(trial.candidate, outputs)
    except OrdinateError as reason:
        batch.finish(number, None, failed=str(reason))
        return
    matrix = context.items.count_confusion(predictions.levels[METRIC_OPTIMAL])
    value, undefined = compute_value(metric, matrix)
    if undefined is not None:
        batch.finish(number, None, failed=f"{metric.expression} is undefined: {undefined}.")
        return
    context.cache_outputs(trial.candidate, context.settings.merit(value), outputs)
    # Where 0 is best, the objective has lost the sign, and with it which way the model errs.
    signed = {"signed_value": value} if metric.direction == "zero" else {}
    batch.finish(number, compute_objective(metric, value), attributes=signed)
