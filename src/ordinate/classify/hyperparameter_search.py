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
    assembled,
    fit_fold,
    objective,
    table,
    value,
)
from ordinate.classify.decision_rules import Floats, rough_levels
from ordinate.classify.scoring import DECODED
from ordinate.classify.screening import told_best
from ordinate.errors import OrdinateError
from ordinate.experiment.layout import STUDIES
from ordinate.experiment.safe_files import inside
from ordinate.models.classifiers import KINDS
from ordinate.search.studies import Asked, Batch, Study
from ordinate.search.trials import Trial

STAGE = "searching"


@dataclass(frozen=True)
class Explored:
    """One feature set with one kind of model, and the trials that were made of them."""

    set: str
    kind: str
    trials: tuple[Trial, ...]
    best: Trial | None


@dataclass
class _Live:
    """A trial that is being made: its fits, and the answers of the folds that are done."""

    asked: Asked
    candidate: Candidate
    tasks: list[FoldTask]
    answers: list[Floats] = field(default_factory=list)


def search(bench: Bench, sets: Sequence[str]) -> tuple[list[Explored], bool]:
    """Make the trials of every study, and say whether all of them were made.

    Studies take turns, a batch each, so that a timeout leaves none of them behind: when it is over,
    only those get a batch that have had none, for each needs a model.
    """
    pairs = [(name, kind) for name in sets for kind in bench.settings.searched]
    studies = {pair: _study(bench, *pair) for pair in pairs}
    turns = {pair: _batches(bench, studies[pair], pair[1]) for pair in pairs}
    while turns:
        for pair in list(turns):
            _tell(bench, studies)
            late = bench.is_late and studies[pair].trials
            if late or not _turn(bench, *pair, turns[pair]):
                del turns[pair]
    found = [_explored(bench, *pair, study) for pair, study in studies.items()]
    wanted = bench.settings.stage2_trials
    return found, all(len(one.trials) == wanted for one in found)


def _study(bench: Bench, name: str, kind: str) -> Study:
    path = inside(bench.training.experiment.folder("results"), STUDIES)
    before = f"{bench.part}/" if bench.part else ""
    return Study.open(
        path,
        f"{before}{name}/{kind}/{bench.code(name, kind=kind)}",
        direction=bench.settings.direction,
        seed=bench.settings.seed,
    )


def _batches(bench: Bench, study: Study, kind: str) -> Iterator[Batch]:
    known = KINDS[kind]
    return study.batches(known.space, bench.settings.stage2_trials, defaults=[known.defaults])


def _explored(bench: Bench, name: str, kind: str, study: Study) -> Explored:
    """Return the trials that were asked for; earlier runs may have made more."""
    total = bench.settings.stage2_trials
    return Explored(name, kind, tuple(study.trials[:total]), study.best(total))


def _tell(bench: Bench, studies: dict[tuple[str, str], Study]) -> None:
    trials = [trial for study in studies.values() for trial in study.trials]
    share = min(1.0, len(trials) / (len(studies) * bench.settings.stage2_trials))
    values = [trial.value for trial in trials if trial.value is not None]
    bench.tell(bench.stage(STAGE), share, told_best(bench.settings, values))


# --- one batch -----------------------------------------------------------------------------------


def _turn(bench: Bench, name: str, kind: str, batches: Iterator[Batch]) -> bool:
    """Make the next batch of a study, and say whether there was one."""
    batch = next(batches, None)
    if batch is None:
        return False
    bench.use(name)
    live = [_begun(bench, name, kind, asked) for asked in batch.asked]
    for fold in range(len(bench.parts)):
        live = _after_fold(bench, batch, fold, live)
    for trial in live:
        _finish(bench, batch, trial)
    batch.close()
    return True


def _begun(bench: Bench, name: str, kind: str, asked: Asked) -> _Live:
    candidate = bench.candidate(name, kind, asked.params)
    return _Live(asked, candidate, bench.tasks(candidate))


def _after_fold(bench: Bench, batch: Batch, fold: int, live: list[_Live]) -> list[_Live]:
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
            trial.asked.number, done, _so_far(bench, trial)
        ):
            batch.finish(trial.asked.number, None)
            continue
        left.append(trial)
    return left


def _so_far(bench: Bench, trial: _Live) -> float:
    """Return the objective of the folds that are done, without decisions, which need them all."""
    size, metric = len(bench.training.scale), bench.settings.measure
    gold, weights = bench.items.gold, bench.items.weights
    done = np.concatenate(bench.parts[: len(trial.answers)])
    try:
        parts = zip(bench.parts, trial.answers, strict=False)
        levels = [rough_levels(answers, gold[part], size) for part, answers in parts]
    except OrdinateError:  # one fold alone may be too little
        return math.nan
    whole = table(
        bench.training.scale, gold[done], np.concatenate(levels), None, _some(weights, done)
    )
    return objective(metric, value(metric, whole)[0])


def _some(weights: Any, part: Any) -> Any:
    return None if weights is None else weights[part]


def _finish(bench: Bench, batch: Batch, trial: _Live) -> None:
    """Decide, count all folds as one table, and take the value of the metric."""
    metric, number = bench.settings.measure, trial.asked.number
    answers = assembled(trial.answers, bench.parts)
    try:
        decided = bench.crossed(trial.candidate, answers)
    except OrdinateError as reason:
        batch.finish(number, None, failed=str(reason))
        return
    whole, _ = bench.items.tables(decided.levels[DECODED])
    found, undefined = value(metric, whole)
    if undefined is not None:
        batch.finish(number, None, failed=f"{metric.expression} is undefined: {undefined}.")
        return
    bench.remember(trial.candidate, bench.settings.merit(found), answers)
    # Where 0 is best, the objective has lost the sign, and with it which way the model errs.
    signed = {"signed_value": found} if metric.direction == "zero" else {}
    batch.finish(number, objective(metric, found), attributes=signed)
