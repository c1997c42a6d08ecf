"""The search: the defaults of every model type first, then trials of each in turn."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np

from ordinate.errors import BadValues, OrdinateError
from ordinate.experiment.layout import STUDIES
from ordinate.experiment.safe_files import compute_digest, resolve_inside
from ordinate.inference.estimates import to_json_number
from ordinate.models.regressors import find_model_type
from ordinate.regress.bench import Bench, BestTrial, Candidate
from ordinate.regress.fitting import (
    FitPredictions,
    FitTask,
    Floats,
    OutOfTime,
    Rows,
    fit_model,
    remove_checkpoints,
)
from ordinate.regress.search_progress import SearchProgress
from ordinate.results.regression_scores import RegressionScores
from ordinate.search.studies import PendingTrial, Study, TrialBatch, round_to_significant
from ordinate.search.trials import Trial
from ordinate.summaries.normalization import Normalization

TIME_SAFETY_FACTOR = 1.25  # a trial may take so much longer than those before


@dataclass(frozen=True)
class StudyTrials:
    """One model type, and the trials that were made of it."""

    model_type: str
    trials: tuple[Trial, ...]
    best: Trial | None


@dataclass
class _RunningTrial:
    """A trial that is being made: its fits, and the predictions of the folds that are done."""

    pending: PendingTrial
    candidate: Candidate
    tasks: list[FitTask]
    answers: list[FitPredictions] = field(default_factory=list)
    cut: bool = False  # whether its time was over before it was made


class TimeBudget:
    """Tells how many trials there is time for, going by those of the model type so far.

    The last fits of the best trials need their time, too, which is set aside.
    """

    def __init__(
        self,
        seconds: float | None,
        folds: int = 1,
        jobs: int = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds
        self._folds, self._jobs = folds, jobs
        self._took: dict[str, float] = {}  # seconds of a trial, by model type

    def count_affordable_trials(self, model_type: str, wanted: int) -> int:
        """Return how many of the trials there is time for; that of the first is unknown."""
        if self._end is None:
            return wanted
        left = self._end - self._clock() - self._estimate_final_fits()
        took = self._took.get(model_type)
        return min(
            wanted,
            int(left > 0.0) if took is None else max(0, int(left / (TIME_SAFETY_FACTOR * took))),
        )

    def note(self, model_type: str, seconds: float) -> None:
        """Take how long a trial took; the longest so far counts, for it may be the best."""
        self._took[model_type] = max(seconds, self._took.get(model_type, 0.0))

    @property
    def end(self) -> float | None:
        """When the last fits must begin."""
        return None if self._end is None else self._end - self._estimate_final_fits()

    def _estimate_final_fits(self) -> float:
        fits = [took / self._folds for took in self._took.values()]
        return self._estimate_fit_ratio() * max(sum(fits), self._jobs * max(fits, default=0.0))

    def _estimate_fit_ratio(self) -> float:
        """Return how much longer a fit on all folds takes than one on all but one.

        Gaussian processes grow with the cube of their rows. One part is no fold: the last fit is
        on the rows of the trial.
        """
        return 1.0 if self._folds < 2 else (self._folds / (self._folds - 1)) ** 3


def search_hyperparameters(bench: Bench, clock: TimeBudget) -> tuple[list[StudyTrials], bool]:
    """Make the trials of every model type, and say whether all of them were made.

    The defaults of each model type come first; then they take turns, a batch each, so that a
    timeout leaves none of them behind.
    """
    asked = bench.settings
    studies = {model_type: _open_study(bench, model_type) for model_type in asked.model_types}
    progress = SearchProgress(bench, studies)
    for model_type, study in studies.items():
        first = not any(one.trials for one in studies.values())  # is made, so there is a model
        _run_trials(bench, model_type, study, clock, 1, progress, forced=first)
    left = [model_type for model_type, study in studies.items() if study.trials]
    while left:
        left = [
            model_type
            for model_type in left
            if _continue_study(bench, model_type, studies[model_type], clock, progress)
        ]
    found = [_collect_trials(bench, model_type, study) for model_type, study in studies.items()]
    return found, all(len(one.trials) == asked.count_trials(one.model_type) for one in found)


def _open_study(bench: Bench, model_type: str) -> Study:
    fixed = bench.settings.fixed.get(model_type)
    further: dict[str, Any] = {
        "kind": model_type,
        "given": _get_training_options(bench, model_type),
    }
    if fixed is not None:
        further["params"] = compute_digest(fixed)
    # Trials note what the test says, so the name is that of the whole table. What is drawn is not.
    whole = further | {"table": bench.table.fingerprint}
    return Study.open(
        resolve_inside(bench.root, STUDIES),
        f"{model_type}/{bench.code(whole)}",
        direction="minimize",
        seed=bench.settings.seed,
        drawn_by=f"{model_type}/{bench.code(further)}",
    )


def _get_training_options(bench: Bench, model_type: str) -> dict[str, Any]:
    """Return the limit on epochs and the device, for model types that have them."""
    return bench.settings.get_training_options(model_type)


def _collect_trials(bench: Bench, model_type: str, study: Study) -> StudyTrials:
    """Return the trials that were asked for; earlier runs may have made more."""
    trials = tuple(study.trials[: bench.settings.count_trials(model_type)])
    complete = [trial for trial in trials if trial.value is not None]
    best = min(complete, key=lambda trial: round_to_significant(trial.value or 0.0), default=None)
    return StudyTrials(model_type, trials, best)


# --- one batch -----------------------------------------------------------------------------------


def _continue_study(
    bench: Bench, model_type: str, study: Study, clock: TimeBudget, progress: SearchProgress
) -> bool:
    """Make the rest of a model type's batch that is begun, or the next one; say whether any."""
    begun = len(study.trials) // study.batch
    return _run_trials(bench, model_type, study, clock, (begun + 1) * study.batch, progress)


def _run_trials(
    bench: Bench,
    model_type: str,
    study: Study,
    clock: TimeBudget,
    end: int,
    progress: SearchProgress,
    *,
    forced: bool = False,
) -> bool:
    """Make the trials of a model type up to a number, or as many as there is time for."""
    done = len(study.trials)
    count = min(end, bench.settings.count_trials(model_type)) - done
    if count > 0 and not forced:
        count = clock.count_affordable_trials(model_type, count)
    if count < 1:
        return False
    started = time.monotonic()
    for batch in _iterate_batches(bench, study, model_type, done + count):
        _run_batch(bench, model_type, batch, progress, None if forced else clock.end)
    clock.note(model_type, (time.monotonic() - started) / count)
    progress.made()
    return len(study.trials) == done + count


def _iterate_batches(
    bench: Bench, study: Study, model_type: str, total: int
) -> Iterator[TrialBatch]:
    known, given = find_model_type(model_type), _get_training_options(bench, model_type)
    fixed = bench.settings.fixed.get(model_type)

    def space(trial: Any) -> dict[str, Any]:
        return dict(fixed) if fixed is not None else known.space(trial) | given

    defaults = [] if fixed is not None else [dict(known.defaults)]
    return study.iterate_batches(space, total, defaults=defaults)


def _run_batch(
    bench: Bench, model_type: str, batch: TrialBatch, progress: SearchProgress, end: float | None
) -> None:
    """Make the trials of a batch; those whose time is over are left for another run."""
    trials = []
    for asked in batch.pending:
        candidate = Candidate(model_type, asked.params)
        tasks = [replace(task, end=end) for task in bench.tasks(candidate)]
        trials.append(_RunningTrial(asked, candidate, tasks))
    live, done = trials, 0
    while live and done < len(bench.folds):
        # With workers to spare later folds are fitted ahead: whoever is stopped first wasted them.
        ahead = max(1, bench.workers.jobs // len(live))
        folds = range(done, min(done + ahead, len(bench.folds)))
        live = _fit_folds_of_trials(bench, batch, folds, live, progress)
        done = folds.stop
        progress.begun(len(trials) * done / len(bench.folds))
    for trial in live:
        _finish_trial(bench, batch, trial)
    batch.close()
    for trial in takewhile(lambda one: not one.cut, trials):  # those behind are made again, too
        remove_checkpoints(trial.tasks)


def _fit_folds_of_trials(
    bench: Bench,
    batch: TrialBatch,
    folds: range,
    live: list[_RunningTrial],
    progress: SearchProgress,
) -> list[_RunningTrial]:
    """Fit some folds of all trials side by side, and return those that are worth the next one."""
    tasks = [trial.tasks[fold] for trial in live for fold in folds]
    found = iter(bench.workers.attempt(fit_model, tasks, progress.report_fit))
    fitted = [(trial, [next(found) for _ in folds]) for trial in live]
    return [trial for trial, answers in fitted if _record_parts(bench, batch, trial, answers)]


def _record_parts(
    bench: Bench,
    batch: TrialBatch,
    trial: _RunningTrial,
    found: Sequence[FitPredictions | OrdinateError],
) -> bool:
    """Take the predictions of some folds in order, and say whether the trial is worth going on."""
    for answers in found:
        if isinstance(answers, OutOfTime):
            trial.cut = True
            return False
        if isinstance(answers, OrdinateError):
            batch.finish(trial.pending.number, None, failed=str(answers))
            return False
        trial.answers.append(answers)
        done = len(trial.answers)
        if done < len(bench.folds):
            so_far = bench.rmse(_join_parts(trial.answers))
            if batch.report(trial.pending.number, done, so_far):
                batch.finish(trial.pending.number, None)
                return False
    return True


def _join_parts(answers: Sequence[FitPredictions]) -> Floats:
    return np.concatenate([one.predictions[0] for one in answers])


def _finish_trial(bench: Bench, batch: TrialBatch, trial: _RunningTrial) -> None:
    """Take the RMSE of all held-out rows, and note what the test says, which decides nothing."""
    made = join_held_out_predictions(bench, trial.candidate, trial.answers)
    bench.cache_predictions(trial.candidate, made)
    attributes = _measure_held_out(bench, made.predictions) | _measure_test(bench, trial.answers)
    curves = [one.curve for one in trial.answers if one.curve]
    if curves:
        attributes["curves"] = curves
    batch.finish(trial.pending.number, made.value, attributes=attributes)


def join_held_out_predictions(
    bench: Bench, candidate: Candidate, answers: Sequence[FitPredictions]
) -> BestTrial:
    """Return what a candidate predicts for all held-out rows, and what that is worth."""
    predictions = _join_parts(answers)
    inside = [one.spreads[0] for one in answers if one.spreads is not None]
    spread = np.concatenate(inside) if len(inside) == len(answers) else None
    return BestTrial(bench.rmse(predictions), candidate.params, predictions, spread)


def _measure_held_out(bench: Bench, predictions: Floats) -> dict[str, Any]:
    normalized, rmse, mae, r2 = _compute_errors(bench, bench.held_out, predictions)
    return {
        "validation_rmse": normalized,
        "validation_rmse_denorm": rmse,
        "validation_mae_denorm": mae,
        "validation_r2_score": r2,
    }


def _measure_test(bench: Bench, answers: Sequence[FitPredictions]) -> dict[str, Any]:
    """Return what the average of the models of all folds is worth on the test rows.

    These decide nothing: what cannot be told of them is None, and no failure of the trial.
    """
    rows = bench.split.test
    if not len(rows):
        return {}
    with np.errstate(over="ignore", invalid="ignore"):
        average = np.mean([one.predictions[1] for one in answers], axis=0)
    try:
        normalized, rmse, mae, r2 = _compute_errors(bench, rows, average)
    except BadValues:  # not finite, or too large to be squared
        normalized = rmse = mae = r2 = None
    return {
        "test_rmse": normalized,
        "test_rmse_denorm": rmse,
        "mae_denorm": mae,
        "r2_score": r2,
        "r2_pct": None if r2 is None else 100.0 * r2,
    }


def _compute_errors(bench: Bench, rows: Rows, predictions: Floats) -> list[float | None]:
    """Return the RMSE on the scale of training, and RMSE, MAE and R² in the unit."""
    training = Normalization.fit(bench.table.target[bench.split.train])
    values = RegressionScores.of(bench.table.target[rows], predictions, training).values
    rmse, mae, r2 = (values[name] for name in ("rmse", "mae", "r2"))
    return [to_json_number(one) for one in (training.normalize_errors(rmse), rmse, mae, r2)]
