"""Stage 2, search: the trials of each feature set and kind of model, batch by batch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import (
    Candidate,
    FoldTask,
    compute_objective,
    compute_value,
    count_confusion,
    fit_fold,
    join_folds,
)
from ordinate.classify.decision_rules import Floats, predict_rough_levels
from ordinate.classify.scoring import METRIC_OPTIMAL
from ordinate.classify.screening import format_best_value
from ordinate.errors import OrdinateError
from ordinate.experiment.layout import STUDIES
from ordinate.experiment.safe_files import resolve_inside
from ordinate.models.classifiers import MODEL_TYPES
from ordinate.search.studies import PendingTrial, Study, TrialBatch
from ordinate.search.trials import Trial

STAGE = "searching"


@dataclass(frozen=True)
class StudyTrials:
    """One feature set with one kind of model, and the trials that were made of them."""

    set: str
    kind: str
    trials: tuple[Trial, ...]
    best: Trial | None


@dataclass
class _RunningTrial:
    """A trial that is being made: its fits, and the answers of the folds that are done."""

    asked: PendingTrial
    candidate: Candidate
    tasks: list[FoldTask]
    answers: list[Floats] = field(default_factory=list)


def search_hyperparameters(bench: Bench, sets: Sequence[str]) -> tuple[list[StudyTrials], bool]:
    """Make the trials of every study, and say whether all of them were made.

    Studies take turns, a batch each, so that a timeout leaves none of them behind: when it is over,
    only those get a batch that have had none, for each needs a model.
    """
    pairs = [(name, kind) for name in sets for kind in bench.settings.searched]
    studies = {pair: _open_study(bench, *pair) for pair in pairs}
    turns = {pair: _iterate_batches(bench, studies[pair], pair[1]) for pair in pairs}
    while turns:
        for pair in list(turns):
            _report_progress(bench, studies)
            late = bench.is_late and studies[pair].trials
            if late or not _run_next_batch(bench, *pair, turns[pair]):
                del turns[pair]
    found = [_collect_trials(bench, *pair, study) for pair, study in studies.items()]
    wanted = bench.settings.stage2_trials
    return found, all(len(one.trials) == wanted for one in found)


def _open_study(bench: Bench, name: str, kind: str) -> Study:
    path = resolve_inside(bench.training.experiment.folder("results"), STUDIES)
    before = f"{bench.part}/" if bench.part else ""
    return Study.open(
        path,
        f"{before}{name}/{kind}/{bench.code(name, kind=kind)}",
        direction=bench.settings.direction,
        seed=bench.settings.seed,
    )


def _iterate_batches(bench: Bench, study: Study, kind: str) -> Iterator[TrialBatch]:
    known = MODEL_TYPES[kind]
    return study.iterate_batches(
        known.space, bench.settings.stage2_trials, defaults=[known.defaults]
    )


def _collect_trials(bench: Bench, name: str, kind: str, study: Study) -> StudyTrials:
    """Return the trials that were asked for; earlier runs may have made more."""
    total = bench.settings.stage2_trials
    return StudyTrials(name, kind, tuple(study.trials[:total]), study.best(total))


def _report_progress(bench: Bench, studies: dict[tuple[str, str], Study]) -> None:
    trials = [trial for study in studies.values() for trial in study.trials]
    share = min(1.0, len(trials) / (len(studies) * bench.settings.stage2_trials))
    values = [trial.value for trial in trials if trial.value is not None]
    bench.tell(bench.format_stage(STAGE), share, format_best_value(bench.settings, values))


# --- one batch -----------------------------------------------------------------------------------


def _run_next_batch(bench: Bench, name: str, kind: str, batches: Iterator[TrialBatch]) -> bool:
    """Make the next batch of a study, and say whether there was one."""
    batch = next(batches, None)
    if batch is None:
        return False
    bench.load_feature_set(name)
    live = [_start_trial(bench, name, kind, asked) for asked in batch.pending]
    for fold in range(len(bench.parts)):
        live = _fit_fold_of_trials(bench, batch, fold, live)
    for trial in live:
        _finish_trial(bench, batch, trial)
    batch.close()
    return True


def _start_trial(bench: Bench, name: str, kind: str, asked: PendingTrial) -> _RunningTrial:
    candidate = bench.candidate(name, kind, asked.params)
    return _RunningTrial(asked, candidate, bench.tasks(candidate))


def _fit_fold_of_trials(
    bench: Bench, batch: TrialBatch, fold: int, live: list[_RunningTrial]
) -> list[_RunningTrial]:
    """Fit one fold of all trials side by side, and return those that are worth the next one."""
    found = bench.workers.attempt(fit_fold, [trial.tasks[fold] for trial in live])
    left = []
    for trial, answers in zip(live, found, strict=True):
        if isinstance(answers, OrdinateError):
            batch.finish(trial.asked.number, None, failed=str(answers))
            continue
        trial.answers.append(answers)
        done = fold + 1
        if done < len(bench.parts) and batch.report(
            trial.asked.number, done, _compute_interim_objective(bench, trial)
        ):
            batch.finish(trial.asked.number, None)
            continue
        left.append(trial)
    return left


def _compute_interim_objective(bench: Bench, trial: _RunningTrial) -> float:
    """Return the objective of the folds that are done, without decisions, which need them all."""
    size, metric = len(bench.training.scale), bench.settings.measure
    gold, weights = bench.items.gold, bench.items.weights
    done = np.concatenate(bench.parts[: len(trial.answers)])
    try:
        parts = zip(bench.parts, trial.answers, strict=False)
        levels = [predict_rough_levels(answers, gold[part], size) for part, answers in parts]
    except OrdinateError:  # one fold alone may be too little
        return math.nan
    whole = count_confusion(
        bench.training.scale, gold[done], np.concatenate(levels), None, _take_weights(weights, done)
    )
    return compute_objective(metric, compute_value(metric, whole)[0])


def _take_weights(weights: Any, part: Any) -> Any:
    return None if weights is None else weights[part]


def _finish_trial(bench: Bench, batch: TrialBatch, trial: _RunningTrial) -> None:
    """Decide, count all folds as one table, and take the value of the metric."""
    metric, number = bench.settings.measure, trial.asked.number
    answers = join_folds(trial.answers, bench.parts)
    try:
        decided = bench.calibrate_out_of_fold(trial.candidate, answers)
    except OrdinateError as reason:
        batch.finish(number, None, failed=str(reason))
        return
    whole, _ = bench.items.tables(decided.levels[METRIC_OPTIMAL])
    found, undefined = compute_value(metric, whole)
    if undefined is not None:
        batch.finish(number, None, failed=f"{metric.expression} is undefined: {undefined}.")
        return
    bench.cache_predictions(trial.candidate, bench.settings.merit(found), answers)
    # Where 0 is best, the objective has lost the sign, and with it which way the model errs.
    signed = {"signed_value": found} if metric.direction == "zero" else {}
    batch.finish(number, compute_objective(metric, found), attributes=signed)
