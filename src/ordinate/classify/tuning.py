"""Tuning: from an experiment folder to the best model, saved, tested and reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordinate.classify.finalists import EvaluatedCandidate
from ordinate.classify.held_out_evaluation import check_test_sets, evaluate_on_test_sets
from ordinate.classify.nested_estimate import run_nested_cross_validation
from ordinate.classify.saved_models import save_candidate, save_vote
from ordinate.classify.search_context import ProgressCallback, SearchContext, ignore_progress
from ordinate.classify.selection import ModelSelection, select_model
from ordinate.classify.settings import VOTE, Settings
from ordinate.classify.soft_vote import VoteCandidate
from ordinate.classify.trained_model import LATEST_FOLDER
from ordinate.classify.training_data import TrainingData
from ordinate.classify.tuning_result import Finalist, NestedEstimate, StudyResult, TuningResult
from ordinate.experiment.folder import Experiment
from ordinate.experiment.lock import hold_lock
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import remove_leftovers, resolve_inside, write_json, write_text
from ordinate.experiment.workers import WorkerPool, limit_to_one_thread
from ordinate.render import render

CONFIG_FILE = "config.toml"
UNFINISHED_NOTE = (
    "The timeout ended the search before all trials were made. The same command goes on with it."
)
NO_VOTE_NOTE = "There is no vote: it takes two models, and there were not two."


def tune(
    experiment: Experiment,
    settings: Settings | None = None,
    *,
    scale: str | None = None,
    command: str = "ordinate.tune",
    config: str = "",
    progress: ProgressCallback = ignore_progress,
) -> TuningResult:
    """Screen feature sets, search models, save the best of each study, and test the winner.

    Models are selected by cross-validation on the training data alone. A run that was killed goes
    on where it stopped. `config` is the text of a file that repeats the run, saved with its
    results.
    """
    settings = settings or Settings()
    with _open_context(experiment, settings, scale, command, progress) as context:
        run = make_run_id(context)
        selection = select_model(context)
        studies, vote, winner = _save_finalists(context, selection, run, command)
        tests = evaluate_on_test_sets(context, winner, _locate_run(experiment, run))
        nested = run_nested_cross_validation(context) if settings.nested else None
        result = TuningResult(
            run=run,
            settings=settings,
            source=context.training.source,
            screened=tuple(selection.screened),
            studies=studies,
            vote=vote,
            winner=winner,
            tests=tests,
            nested=nested,
            notes=tuple(_collect_notes(selection, settings, nested)),
        )
        _write_run(context, result, command, config)
    return result


@contextmanager
def _open_context(
    experiment: Experiment,
    settings: Settings,
    scale: str | None,
    command: str,
    progress: ProgressCallback,
) -> Iterator[SearchContext]:
    """Take the lock, clear what killed runs left, and check everything before any work."""
    import ordinate.models.classifiers.ordinal_regression  # noqa: F401, PLC0415 - libraries obey once loaded

    with (
        hold_lock(experiment.root, command),
        limit_to_one_thread(),
        WorkerPool(settings.jobs) as workers,
    ):
        remove_leftovers(experiment.root)
        training = load_training_data(experiment, settings, scale)
        yield SearchContext(training, settings, workers, progress)


def load_training_data(
    experiment: Experiment, settings: Settings, scale: str | None
) -> TrainingData:
    """Return what a run is trained on; whatever is wrong with the data comes out here."""
    training = TrainingData.of(
        experiment, scale=scale, train=settings.train, pattern=settings.feature_pattern
    )
    check_test_sets(training)
    return training


def make_run_id(context: SearchContext) -> str:
    """Return the name of a run: its metric, and a hash of the data and all settings."""
    settings = context.settings
    digest = context.compute_digest(*context.training.sets, settings=settings.result_settings)
    return f"{settings.measure.name}-{digest}"


# --- saved models --------------------------------------------------------------------------------


def _save_finalists(
    context: SearchContext, selection: ModelSelection, run: str, command: str
) -> tuple[tuple[StudyResult, ...], Finalist | None, Finalist]:
    """Fit and save the best of each study, and the vote; return them, the winner last."""
    finalists: dict[int, Finalist] = {}
    for done, one in enumerate(selection.candidates):
        context.report_progress("saving", done / len(selection.candidates))
        if one is not None:
            name = save_candidate(context, one, run=run, command=command)
            finalists[id(one)] = _make_finalist(one, name)
    studies = tuple(
        StudyResult(
            set=study.set,
            model_type=study.model_type,
            requested=context.settings.stage2_trials,
            trials=study.trials,
            best=finalists.get(id(best)),
        )
        for study, best in zip(selection.studies, selection.candidates, strict=True)
    )
    vote = None
    if selection.vote is not None:
        members = tuple(finalists[id(member)].name for member in selection.vote.members)
        name = save_vote(context, selection.vote, run=run, command=command)
        vote = _make_vote_finalist(selection.vote, name, members)
    won = selection.winner
    winner = vote if vote and won is selection.vote else finalists[id(won)]
    return studies, vote, winner


def _make_finalist(one: EvaluatedCandidate, name: str) -> Finalist:
    return Finalist(
        name=name,
        model_type=one.candidate.model_type,
        sets=one.sets,
        params=dict(one.candidate.params),
        evaluation=one.evaluation,
        notes=one.notes,
    )


def _make_vote_finalist(vote: VoteCandidate, name: str, members: tuple[str, ...]) -> Finalist:
    return Finalist(name, VOTE, vote.sets, {}, vote.evaluation, members, vote.notes)


def _collect_notes(
    selection: ModelSelection, settings: Settings, nested: NestedEstimate | None
) -> Iterator[str]:
    if not selection.finished or (nested and not nested.finished):
        yield UNFINISHED_NOTE
    if settings.includes_vote and selection.vote is None:
        yield NO_VOTE_NOTE


# --- written results -----------------------------------------------------------------------------


def _locate_run(experiment: Experiment, run: str) -> Path:
    return resolve_inside(experiment.folder("results"), run)


def _write_run(context: SearchContext, result: TuningResult, command: str, config: str) -> None:
    """Write the results of the run, and the same as the latest ones."""
    experiment = context.training.experiment
    folder = _locate_run(experiment, result.run)
    if config:
        write_text(folder / CONFIG_FILE, config)
    _write_results(folder, result)
    Manifest.of(
        folder,
        "results",
        result.run,
        config=result.settings.to_dict(),
        data=context.training.fingerprints(*context.training.sets),
        seed=result.settings.seed,
        command=command,
        libraries=["scipy", "scikit-learn", "optuna"],
    ).write(folder)
    _write_results(experiment.folder(LATEST_FOLDER), result)


def _write_results(folder: Path, result: TuningResult) -> None:
    stages: dict[str, dict[str, Any]] = {
        "stage1_screening_results.json": result.convert_screening_to_dict(),
        "stage2_detailed_results.json": result.list_trials(),
        "stage2_optimization_results.json": result.convert_search_to_dict(),
    }
    for name, values in stages.items():
        write_json(folder / name, values)
    write_text(folder / "optimization_summary.md", render(result, "markdown"))
