"""The search: the defaults of every study first, then trials of each in turn, batch by batch."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from ordinate.errors import OrdinateError
from ordinate.render.reserved_paths import STUDIES
from ordinate.tuning.search.fits import Fit, FitOutputs, OutOfTime, remove_checkpoints
from ordinate.tuning.search.studies import PendingTrial, Study, Trial, TrialBatch
from ordinate.tuning.search.task import Candidate, StudyKey, Task

STAGE = "searching"


@dataclass(frozen=True)
class StudyTrials:
    """The trials that were made of a study; `best` is None where none was completed."""

    key: StudyKey
    requested: int
    trials: tuple[Trial, ...]
    best: Trial | None

    @property
    def finished(self) -> bool:
        """Whether all trials were made that were asked for."""
        return len(self.trials) == self.requested


@dataclass
class _RunningTrial:
    """A trial that is being made: its fits, and the outputs of the folds that are done."""

    pending: PendingTrial
    candidate: Candidate
    fits: list[Fit]
    outputs: list[FitOutputs] = field(default_factory=list)
    cut: bool = False  # whether its time was over before it was made


def search_hyperparameters(task: Task, inputs: Sequence[str]) -> list[StudyTrials]:
    """Make the trials of every study.

    The defaults of each come first; then studies take turns, a batch each, so that a timeout
    leaves none of them behind.
    """
    keys = [StudyKey(name, model) for name in inputs for model in task.settings.model_types]
    studies = {key: _open_study(task, key) for key in keys}
    progress = _SearchProgress(task, studies)
    for key, study in studies.items():
        _run_trials(task, key, study, 1, progress)
    left = [key for key, study in studies.items() if study.trials]
    while left:
        left = [key for key in left if _continue_study(task, key, studies[key], progress)]
    return [_collect_trials(task, key, study) for key, study in studies.items()]


def _open_study(task: Task, key: StudyKey) -> Study:
    return Study.open(
        task.locate_result(STUDIES),
        task.name_study(key),
        direction=task.direction,
        seed=task.settings.seed,
    )


def _collect_trials(task: Task, key: StudyKey, study: Study) -> StudyTrials:
    """Return the trials that were asked for; earlier runs may have made more."""
    total = task.settings.count_trials(key.model_type)
    return StudyTrials(key, total, tuple(study.trials[:total]), study.best(total))


class _SearchProgress:
    """Trials that are made, the part of a batch that is made, and the latest word of a fit."""

    def __init__(self, task: Task, studies: dict[StudyKey, Study]) -> None:
        self._task, self._studies = task, studies
        self._requested = sum(task.settings.count_trials(key.model_type) for key in studies)
        self.count_trials()

    def count_trials(self) -> None:
        """Count the trials of all studies."""
        count = self._task.settings.count_trials
        made = {key: study.trials for key, study in self._studies.items()}
        self._done = sum(min(len(some), count(key.model_type)) for key, some in made.items())
        values = [one.value for some in made.values() for one in some if one.value is not None]
        self._best = self._task.describe_best(values)
        self.show_batch(0.0)

    def show_batch(self, trials: float) -> None:
        """Take how much of a batch is made, in trials."""
        self._begun = trials
        self._show()

    def show_fit(self, step: tuple[str, float]) -> None:
        """Take how far a fit is: what it does, and the value by which it stops early."""
        what, value = step
        self._show(f"{what}: {self._task.metric} {self._task.format_value(value)}")

    def _show(self, now: str = "") -> None:
        share = min(1.0, (self._done + self._begun) / self._requested)
        self._task.report_progress(STAGE, share, "; ".join(filter(None, (self._best, now))))


# --- one batch -----------------------------------------------------------------------------------


def _continue_study(task: Task, key: StudyKey, study: Study, progress: _SearchProgress) -> bool:
    """Make the rest of a batch that is begun, or the next one; say whether any was made."""
    begun = len(study.trials) // study.batch
    return _run_trials(task, key, study, (begun + 1) * study.batch, progress)


def _run_trials(
    task: Task, key: StudyKey, study: Study, end: int, progress: _SearchProgress
) -> bool:
    """Make the trials of a study up to a number, or as many as there is time for."""
    done = len(study.trials)
    count = min(end, task.settings.count_trials(key.model_type)) - done
    if count > 0:
        count = task.budget.count_affordable_trials(key, count)
    if count < 1:
        return False
    started = time.monotonic()
    task.load_input(key.input)
    space, defaults = task.select_space(key.model_type)
    for batch in study.iterate_batches(space, done + count, defaults=defaults):
        _run_batch(task, key, batch, progress)
    task.budget.record_trial(key, (time.monotonic() - started) / count)
    progress.count_trials()
    return len(study.trials) == done + count


def _run_batch(task: Task, key: StudyKey, batch: TrialBatch, progress: _SearchProgress) -> None:
    """Make the trials of a batch; those whose time is over are left for another run."""
    trials = [_start_trial(task, key, pending, task.budget.end) for pending in batch.pending]
    live, done, folds = trials, 0, len(task.folds)
    while live and done < folds:
        # With workers to spare later folds are fitted ahead: whoever is stopped first wasted them.
        ahead = max(1, task.workers.jobs // len(live))
        now = range(done, min(done + ahead, folds))
        live = _fit_folds_of_trials(task, batch, now, live, progress)
        done = now.stop
        progress.show_batch(len(trials) * done / folds)
    for trial in live:
        _finish_trial(task, batch, trial)
    batch.close()
    for trial in takewhile(lambda one: not one.cut, trials):  # those behind are made again, too
        remove_checkpoints(trial.fits)


def _start_trial(
    task: Task, key: StudyKey, pending: PendingTrial, end: float | None
) -> _RunningTrial:
    candidate = Candidate(*key, pending.params)
    fits = [replace(fit, end=end) for fit in task.make_fold_fits(candidate)]
    return _RunningTrial(pending, candidate, fits)


def _fit_folds_of_trials(
    task: Task,
    batch: TrialBatch,
    folds: range,
    live: list[_RunningTrial],
    progress: _SearchProgress,
) -> list[_RunningTrial]:
    """Fit some folds of all trials side by side, and return those that are worth the next one."""
    fits = [trial.fits[fold] for trial in live for fold in folds]
    made = iter(task.attempt_fits(fits, progress.show_fit))
    fitted = [(trial, [next(made) for _ in folds]) for trial in live]
    return [trial for trial, outputs in fitted if _record_folds(task, batch, trial, outputs)]


def _record_folds(
    task: Task, batch: TrialBatch, trial: _RunningTrial, made: Sequence[FitOutputs | OrdinateError]
) -> bool:
    """Take the outputs of some folds in order, and say whether the trial is worth going on."""
    number = trial.pending.number
    for outputs in made:
        if isinstance(outputs, OutOfTime):
            trial.cut = True
            return False
        if isinstance(outputs, OrdinateError):
            batch.finish(number, None, failed=str(outputs))
            return False
        trial.outputs.append(outputs)
        done = len(trial.outputs)
        if done < len(task.folds):
            interim = task.compute_interim_objective(trial.outputs)
            if batch.report(number, done, interim):
                batch.finish(number, None)
                return False
    return True


def _finish_trial(task: Task, batch: TrialBatch, trial: _RunningTrial) -> None:
    """Take the objective of all held-out rows."""
    number, outputs = trial.pending.number, task.join_outputs(trial.outputs)
    try:
        predictions, _ = task.predict_out_of_fold(trial.candidate, outputs)
        score = task.score(predictions)
    except OrdinateError as reason:
        batch.finish(number, None, failed=str(reason))
        return
    task.cache_outputs(trial.candidate, score.objective, outputs)
    attributes: dict[str, Any] = dict(score.attributes)
    if curves := [one.curve for one in trial.outputs if one.curve]:
        attributes["curves"] = curves
    batch.finish(number, score.objective, attributes=attributes)
