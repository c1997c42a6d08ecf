"""A tuning run: select, save, test and report, under the lock of a folder, resumed if killed."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinate.errors import BadOutput, shorten
from ordinate.render import Document, render
from ordinate.render.reserved_paths import (
    CHECKPOINTS,
    CONFIG_FILE,
    RESULTS_FILE,
    RUNS,
    SUMMARY_FILE,
    TEST_PREDICTIONS_FILE,
    TRIALS_FILE,
    refuse_foreign_files,
)
from ordinate.render.tables import NAME, Column, Table
from ordinate.results.base import Record, Result
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import remove_leftovers, write_json, write_text
from ordinate.tuning.experiment.workers import WorkerPool, limit_to_one_thread
from ordinate.tuning.search.saved_models import (
    LIBRARIES,
    find_searched_task,
    save_candidates,
    save_ensemble,
)
from ordinate.tuning.search.selection import (
    ModelSelection,
    estimate_nested,
    select_model,
    select_winner,
)
from ordinate.tuning.search.settings import ScreeningSettings, SearchSettings
from ordinate.tuning.search.task import Task
from ordinate.tuning.search.tuning_result import Finalist, NestedEstimate, StudyResult, TuningResult

UNFINISHED_NOTE = (
    "The timeout ended the search before all trials were made. The same command goes on with it."
)
NO_NESTED_NOTE = "There was no time for the nested estimate. The same command goes on with it."


@dataclass(frozen=True)
class RunOrigin:
    """What a run is recorded by: the command, and the text of a file that repeats it."""

    command: str
    config: str = ""


@contextmanager
def open_workers(
    root: Path, settings: SearchSettings, command: str, task: str
) -> Iterator[WorkerPool]:
    """Take the lock of a folder, clear what killed runs left, and start the workers.

    A folder has the searches of one task, which is named as in its results.
    """
    refuse_foreign_files(root)
    _refuse_other_task(root, task)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadOutput(f"{shorten(str(root))} cannot be written: {problem.strerror}.") from None
    with (
        hold_lock(root, command),
        limit_to_one_thread(),
        WorkerPool(settings.jobs) as workers,
    ):
        remove_leftovers(root)
        yield workers


def _refuse_other_task(root: Path, task: str) -> None:
    other = find_searched_task(root)
    if other not in (None, task):
        raise BadOutput(
            f"{shorten(str(root))} has the results of ordinate.{shorten(other).strip(chr(39))}. "
            "Name another folder."
        )


@contextmanager
def keep_or_make_folder(
    folder: Path | str | None,
) -> Iterator[tuple[Path, Callable[[TuningResult], TuningResult]]]:
    """Give the folder of a search, and what ties a temporary one to the life of the result."""
    if folder is not None:
        yield Path(folder), lambda result: result
        return
    made = tempfile.TemporaryDirectory(prefix="ordinate-")
    try:
        yield Path(made.name), lambda result: _tie_folder(made, result)
    except BaseException:
        made.cleanup()
        raise


def _tie_folder(made: "tempfile.TemporaryDirectory[str]", result: TuningResult) -> TuningResult:
    weakref.finalize(result, made.cleanup)
    return result


def run_search(task: Task, source: Any, origin: RunOrigin) -> TuningResult:
    """Select a model, save the finalists, and test the winner; `source` describes the data.

    Models are selected by held-out rows alone. A run that was killed goes on where it stopped.
    """
    task = task.prepare()
    digest = task.compute_digest(*task.inputs, settings=task.settings.result_settings)
    run = f"{task.make_run_name()}-{digest}"
    selection = select_model(task)
    selection, names = _save_candidates(task, selection, run, origin.command)
    studies, ensemble, winner = _save_finalists(task, selection, names, run, origin.command)
    finalists = [study.best for study in studies if study.best] + ([ensemble] if ensemble else [])
    task.budget.forget_trials()
    nested = estimate_nested(task) if task.settings.nested else None
    result = TuningResult(
        run=run,
        report=task.report,
        settings=task.settings,
        source=source,
        screened=tuple(selection.screened),
        studies=studies,
        ensemble=ensemble,
        winner=winner,
        tests=task.test(finalists, winner),
        nested=nested,
        notes=tuple(_collect_notes(task, selection, nested)),
        folder=task.root,
        screening_model=task.screening_model or "",
    )
    _write_run(task, result, origin)
    done = not task.settings.nested or (nested is not None and nested.finished)
    if selection.finished and done:  # otherwise the next run may go on from some
        shutil.rmtree(task.locate_result(CHECKPOINTS), ignore_errors=True)
    return result


# --- saved models --------------------------------------------------------------------------------


def _save_candidates(
    task: Task, selection: ModelSelection, run: str, command: str
) -> tuple[ModelSelection, list[str]]:
    """Save the best of each study; return the selection among those that there was time for."""
    complete = [one for one in selection.candidates if one is not None]
    names = save_candidates(task, complete, run=run, command=command)
    if all(names):
        return selection, list(filter(None, names))
    saved = [one for one, name in zip(complete, names, strict=True) if name is not None]
    candidates = [one if one in saved else None for one in selection.candidates]
    selection = select_winner(task, selection.screened, selection.studies, candidates)
    return selection, list(filter(None, names))


def _save_finalists(
    task: Task, selection: ModelSelection, names: list[str], run: str, command: str
) -> tuple[tuple[StudyResult, ...], Finalist | None, Finalist]:
    """Save the ensemble; return the best of each study, the ensemble, and the winner."""
    complete = [one for one in selection.candidates if one is not None]
    finalists = {
        id(one): Finalist(
            name,
            one.title,
            one.candidate.model_type,
            tuple(filter(None, one.inputs)),
            one.candidate.params,
            one.value,
            one.evaluation,
            notes=one.notes,
        )
        for name, one in zip(names, complete, strict=True)
    }
    studies = tuple(
        StudyResult(*study.key, study.requested, study.trials, finalists.get(id(best)))
        for study, best in zip(selection.studies, selection.candidates, strict=True)
    )
    ensemble = None
    if (one := selection.ensemble) is not None:
        ensemble = Finalist(
            save_ensemble(task, one, run=run, command=command),
            one.name,
            one.name,
            tuple(filter(None, one.inputs)),
            {},
            one.value,
            one.evaluation,
            tuple(finalists[id(member)].name for member in one.members),
            one.weights,
            one.notes,
        )
    won = selection.winner
    winner = ensemble if ensemble and won is selection.ensemble else finalists[id(won)]
    return studies, ensemble, winner


def _collect_notes(
    task: Task, selection: ModelSelection, nested: NestedEstimate | None
) -> Iterator[str]:
    if not selection.finished or (nested and not nested.finished):
        yield UNFINISHED_NOTE
    if task.settings.nested and nested is None:
        yield NO_NESTED_NOTE
    if idle := [str(study.key) for study in selection.studies if not study.trials]:
        yield f"There was no time for {', '.join(idle)}."
    pairs = zip(selection.studies, selection.candidates, strict=True)
    if late := [str(study.key) for study, one in pairs if study.best and one is None]:
        yield f"There was no time for the last fit of {', '.join(late)}."
    for study in selection.studies:
        reasons = [trial.reason for trial in study.trials if trial.reason]
        if reasons:
            failed = f"{len(reasons)} of {len(study.trials)} trials failed"
            yield f"{study.key}: {failed}: {reasons[0]}"
    if missing := task.settings.missing:
        advice = next(iter(missing.values()))
        yield f"Not installed, so not tried: {', '.join(missing)}. {advice}"
    yield from task.list_notes(selection)


# --- written results -----------------------------------------------------------------------------


def _write_run(task: Task, result: TuningResult, origin: RunOrigin) -> None:
    """Write the results of the run, and the same as the latest ones."""
    folder = task.locate_result(RUNS, result.run)
    if origin.config and not (folder / CONFIG_FILE).exists():
        write_text(folder / CONFIG_FILE, origin.config)
    _write_results(folder, result)
    models = [one.model_type for one in result.finalists if not one.members]
    used = [library for model_type in models for library in task.list_libraries(model_type)]
    Manifest.of(
        folder,
        "results",
        result.run,
        config=result.settings.to_dict(),
        data=task.fingerprint(task.inputs),
        seed=result.settings.seed,
        command=origin.command,
        libraries=list(dict.fromkeys([*LIBRARIES, "optuna", *used])),
    ).write(folder)
    _write_results(task.locate_result(), result)


def _write_results(folder: Path, result: TuningResult) -> None:
    files = {
        TRIALS_FILE: result.list_trials(),
        TEST_PREDICTIONS_FILE: result.list_test_predictions(),
        RESULTS_FILE: result.to_dict(),
    }
    for name, values in files.items():
        write_json(folder / name, values)
    write_text(folder / SUMMARY_FILE, render(result, "markdown"))


# --- dry runs ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class DryRun(Result):
    """The inputs, the models and the number of fits that a search would take at most."""

    metric: str
    settings: SearchSettings
    source: Any
    inputs: tuple[Record, ...]
    tests: tuple[str, ...]
    folds: int
    notes: tuple[str, ...] = ()  # on the columns of a table

    @property
    def searched_inputs(self) -> int:
        """How many inputs are searched."""
        if isinstance(self.settings, ScreeningSettings):
            return min(self.settings.top_k, len(self.inputs))
        return len(self.inputs)

    @property
    def fits(self) -> dict[str, int]:
        """How many models each stage fits at most; fewer where trials are pruned or cached."""
        settings, inputs = self.settings, self.searched_inputs
        models = settings.model_types
        trials = sum(settings.count_trials(model_type) for model_type in models)
        stages = {
            "search": inputs * trials * self.folds,
            "finalists": inputs * len(models) * (self.folds + 1),
        }
        if isinstance(settings, ScreeningSettings):
            stages = {"screening": len(self.inputs) * self.folds} | stages
        if settings.nested:
            outer = sum(stages.values()) - inputs * len(models) + 1
            stages["nested"] = self.folds * outer
        return stages

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "task": "tune, dry run",
            "settings": self.settings.to_dict(),
            "data": self.source.to_dict(),
            "sets": list(self.inputs),
            "tests": list(self.tests),
            "fits": self.fits,
            "notes": list(self.notes),
        }

    def tables(self) -> Iterable[Table]:
        """Return the inputs."""
        set_, *further = self.inputs[0]
        columns = (Column(set_, kind=NAME), *map(Column, further))
        yield Table("inputs", "Inputs", columns, self.inputs, common={"items": self.source.n})

    def document(self) -> Document:
        """Return the plan for people."""
        settings = self.settings
        jobs = f"{settings.jobs} process{'' if settings.jobs == 1 else 'es'}"
        stages = ", ".join(f"{count:,} for {stage}" for stage, count in self.fits.items())
        verdict = f"At most {sum(self.fits.values()):,} fits: {stages}. Nothing was written."
        trials = sum(settings.count_trials(model_type) for model_type in settings.model_types)
        models = (
            f"Models: {', '.join(settings.models)}, {trials} trials in all for each of "
            f"{self.searched_inputs} of {len(self.inputs)} inputs, in {self.folds} folds, with "
            f"{jobs}."
        )
        tests = f"{self.source.n:,} items. Test data: {', '.join(self.tests) or 'none'}."
        return Document(
            f"Plan: tune for {self.metric}",
            (*self.get_table("inputs").grids(), models, tests),
            verdict,
            self.notes,
        )


def plan_search(task: Task, source: Any, tests: Sequence[str], notes: Sequence[str] = ()) -> DryRun:
    """Say what a search would do."""
    inputs = tuple(task.describe_input(name) for name in task.inputs)
    return DryRun(
        task.metric, task.settings, source, inputs, tuple(tests), len(task.folds), tuple(notes)
    )
