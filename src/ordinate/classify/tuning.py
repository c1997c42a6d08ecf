"""Tuning: from an experiment folder to the best model, saved, tested and reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordinate.classify.bench import Bench, ProgressCallback, ignore_progress
from ordinate.classify.finalists import EvaluatedCandidate
from ordinate.classify.nested_estimate import run_nested_cross_validation
from ordinate.classify.saved_models import save_candidate, save_vote
from ordinate.classify.selection import ModelSelection, select_model
from ordinate.classify.settings import VOTE, Settings
from ordinate.classify.soft_vote import VoteCandidate
from ordinate.classify.testing import check_test_sets, evaluate_on_test_sets
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
    tell: ProgressCallback = ignore_progress,
) -> TuningResult:
    """Screen feature sets, search models, save the best of each study, and test the winner.

    Choices are made by cross-validation on the training data alone. A run that was killed goes on
    where it stopped. `config` is the text of a file that repeats the run, kept with its results;
    `tell` is told how far it is.
    """
    asked = settings or Settings()
    with _open_bench(experiment, asked, scale, command, tell) as bench:
        run = make_run_id(bench)
        choice = select_model(bench)
        searched, vote, winner = _save_finalists(bench, choice, run, command)
        tests = evaluate_on_test_sets(bench, winner, _locate_run(experiment, run))
        inner = run_nested_cross_validation(bench) if asked.nested else None
        found = TuningResult(
            run,
            asked,
            bench.training.source,
            tuple(choice.screened),
            searched,
            vote,
            winner,
            tests,
            inner,
            tuple(_collect_notes(choice, asked, inner)),
        )
        _write_run(bench, found, command, config)
    return found


@contextmanager
def _open_bench(
    experiment: Experiment,
    settings: Settings,
    scale: str | None,
    command: str,
    tell: ProgressCallback,
) -> Iterator[Bench]:
    """Take the lock, clear what killed runs left, and check everything before any work."""
    import ordinate.models.classifiers.ordinal_regression  # noqa: F401, PLC0415 - libraries obey once loaded

    with (
        hold_lock(experiment.root, command),
        limit_to_one_thread(),
        WorkerPool(settings.jobs) as workers,
    ):
        remove_leftovers(experiment.root)
        yield Bench(load_training_data(experiment, settings, scale), settings, workers, tell)


def load_training_data(
    experiment: Experiment, settings: Settings, scale: str | None
) -> TrainingData:
    """Return what a run learns from; whatever is wrong with the data comes out here."""
    training = TrainingData.of(
        experiment, scale=scale, train=settings.train, pattern=settings.feature_pattern
    )
    check_test_sets(training)
    return training


def make_run_id(bench: Bench) -> str:
    """Return the name of a run: its metric, and a hash of the data and all that was asked."""
    code = bench.code(*bench.training.sets, asked=bench.settings.asked)
    return f"{bench.settings.measure.name}-{code}"


# --- what is saved -------------------------------------------------------------------------------


def _save_finalists(
    bench: Bench, choice: ModelSelection, run: str, command: str
) -> tuple[tuple[StudyResult, ...], Finalist | None, Finalist]:
    """Fit and save the best of each study, and the vote; return them, the winner last."""
    how = {"run": run, "command": command}
    finalists: dict[int, Finalist] = {}
    for done, one in enumerate(choice.candidates):
        bench.tell("saving", done / len(choice.candidates), "")
        if one is not None:
            finalists[id(one)] = _make_finalist(one, save_candidate(bench, one, **how))
    searched = [
        StudyResult(
            one.set, one.kind, bench.settings.stage2_trials, one.trials, finalists.get(id(best))
        )
        for one, best in zip(choice.studies, choice.candidates, strict=True)
    ]
    vote = None
    if choice.vote is not None:
        members = tuple(finalists[id(member)].name for member in choice.vote.members)
        vote = _make_vote_finalist(choice.vote, save_vote(bench, choice.vote, **how), members)
    winner = vote if choice.winner is choice.vote and vote else finalists[id(choice.winner)]
    return tuple(searched), vote, winner


def _make_finalist(one: EvaluatedCandidate, name: str) -> Finalist:
    return Finalist(
        name,
        one.candidate.kind,
        one.sets,
        dict(one.candidate.params),
        one.evaluation,
        notes=one.notes,
    )


def _make_vote_finalist(vote: VoteCandidate, name: str, members: tuple[str, ...]) -> Finalist:
    return Finalist(name, VOTE, vote.sets, {}, vote.evaluation, members, vote.notes)


def _collect_notes(
    choice: ModelSelection, settings: Settings, inner: NestedEstimate | None
) -> Iterator[str]:
    if not choice.finished or (inner and not inner.finished):
        yield UNFINISHED_NOTE
    if settings.votes and choice.vote is None:
        yield NO_VOTE_NOTE


# --- what is written -----------------------------------------------------------------------------


def _locate_run(experiment: Experiment, run: str) -> Path:
    return resolve_inside(experiment.folder("results"), run)


def _write_run(bench: Bench, found: TuningResult, command: str, config: str) -> None:
    """Write the results of the run, and the same as the latest ones."""
    experiment = bench.training.experiment
    folder = _locate_run(experiment, found.run)
    if config:
        write_text(folder / CONFIG_FILE, config)
    _write_results(folder, found)
    Manifest.of(
        folder,
        "results",
        found.run,
        config=found.settings.to_dict(),
        data=bench.training.fingerprints(*bench.training.sets),
        seed=found.settings.seed,
        command=command,
        libraries=["scipy", "scikit-learn", "optuna"],
    ).write(folder)
    _write_results(experiment.folder(LATEST_FOLDER), found)


def _write_results(folder: Path, found: TuningResult) -> None:
    stages: dict[str, dict[str, Any]] = {
        "stage1_screening_results.json": found.convert_screening_to_dict(),
        "stage2_detailed_results.json": found.list_trials(),
        "stage2_optimization_results.json": found.convert_search_to_dict(),
    }
    for name, values in stages.items():
        write_json(folder / name, values)
    write_text(folder / "optimization_summary.md", render(found, "markdown"))
