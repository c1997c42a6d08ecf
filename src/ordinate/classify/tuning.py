"""Tuning: from an experiment folder to the best model, saved, tested and reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordinate.classify.bench import Bench, Tell, silent
from ordinate.classify.finalists import Contender
from ordinate.classify.nested_estimate import nested
from ordinate.classify.saved_models import save_contender, save_vote
from ordinate.classify.selection import Choice, choose
from ordinate.classify.settings import VOTE, Settings
from ordinate.classify.soft_vote import Voting
from ordinate.classify.testing import check_tests, held_out
from ordinate.classify.trained_model import LATEST
from ordinate.classify.training_data import Training
from ordinate.classify.tuning_result import Finalist, Nested, Searched, Tuning
from ordinate.experiment.folder import Experiment
from ordinate.experiment.lock import locked
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import inside, sweep, write_json, write_text
from ordinate.experiment.workers import Workers, one_thread
from ordinate.render import render

CONFIG = "config.toml"
UNFINISHED = (
    "The timeout ended the search before all trials were made. The same command goes on with it."
)
ALONE = "There is no vote: it takes two models, and there were not two."


def tune(
    experiment: Experiment,
    settings: Settings | None = None,
    *,
    scale: str | None = None,
    command: str = "ordinate.tune",
    config: str = "",
    tell: Tell = silent,
) -> Tuning:
    """Screen feature sets, search models, save the best of each study, and test the winner.

    Choices are made by cross-validation on the training data alone. A run that was killed goes on
    where it stopped. `config` is the text of a file that repeats the run, kept with its results;
    `tell` is told how far it is.
    """
    asked = settings or Settings()
    with _opened(experiment, asked, scale, command, tell) as bench:
        run = run_id(bench)
        choice = choose(bench)
        searched, vote, winner = _saved(bench, choice, run, command)
        tests = held_out(bench, winner, _run_folder(experiment, run))
        inner = nested(bench) if asked.nested else None
        found = Tuning(
            run,
            asked,
            bench.training.source,
            tuple(choice.screened),
            searched,
            vote,
            winner,
            tests,
            inner,
            tuple(_notes(choice, asked, inner)),
        )
        _written(bench, found, command, config)
    return found


@contextmanager
def _opened(
    experiment: Experiment, settings: Settings, scale: str | None, command: str, tell: Tell
) -> Iterator[Bench]:
    """Take the lock, clear what killed runs left, and check everything before any work."""
    import ordinate.models.classifiers.ordinal_threshold  # noqa: F401, PLC0415 - libraries obey once loaded

    with locked(experiment.root, command), one_thread(), Workers(settings.jobs) as workers:
        sweep(experiment.root)
        yield Bench(opened(experiment, settings, scale), settings, workers, tell)


def opened(experiment: Experiment, settings: Settings, scale: str | None) -> Training:
    """Return what a run learns from; whatever is wrong with the data comes out here."""
    training = Training.of(
        experiment, scale=scale, train=settings.train, pattern=settings.feature_pattern
    )
    check_tests(training)
    return training


def run_id(bench: Bench) -> str:
    """Return the name of a run: its metric, and a hash of the data and all that was asked."""
    code = bench.code(*bench.training.sets, asked=bench.settings.asked)
    return f"{bench.settings.measure.name}-{code}"


# --- what is saved -------------------------------------------------------------------------------


def _saved(
    bench: Bench, choice: Choice, run: str, command: str
) -> tuple[tuple[Searched, ...], Finalist | None, Finalist]:
    """Fit and save the best of each study, and the vote; return them, the winner last."""
    how = {"run": run, "command": command}
    finalists: dict[int, Finalist] = {}
    for done, one in enumerate(choice.contenders):
        bench.tell("saving", done / len(choice.contenders), "")
        if one is not None:
            finalists[id(one)] = _finalist(one, save_contender(bench, one, **how))
    searched = [
        Searched(
            one.set, one.kind, bench.settings.stage2_trials, one.trials, finalists.get(id(best))
        )
        for one, best in zip(choice.explored, choice.contenders, strict=True)
    ]
    vote = None
    if choice.vote is not None:
        members = tuple(finalists[id(member)].name for member in choice.vote.members)
        vote = _voting(choice.vote, save_vote(bench, choice.vote, **how), members)
    winner = vote if choice.winner is choice.vote and vote else finalists[id(choice.winner)]
    return tuple(searched), vote, winner


def _finalist(one: Contender, name: str) -> Finalist:
    return Finalist(
        name,
        one.candidate.kind,
        one.sets,
        dict(one.candidate.params),
        one.judged,
        notes=one.notes,
    )


def _voting(vote: Voting, name: str, members: tuple[str, ...]) -> Finalist:
    return Finalist(name, VOTE, vote.sets, {}, vote.judged, members, vote.notes)


def _notes(choice: Choice, settings: Settings, inner: Nested | None) -> Iterator[str]:
    if not choice.finished or (inner and not inner.finished):
        yield UNFINISHED
    if settings.votes and choice.vote is None:
        yield ALONE


# --- what is written -----------------------------------------------------------------------------


def _run_folder(experiment: Experiment, run: str) -> Path:
    return inside(experiment.folder("results"), run)


def _written(bench: Bench, found: Tuning, command: str, config: str) -> None:
    """Write the results of the run, and the same as the latest ones."""
    experiment = bench.training.experiment
    folder = _run_folder(experiment, found.run)
    if config:
        write_text(folder / CONFIG, config)
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
    _write_results(experiment.folder(LATEST), found)


def _write_results(folder: Path, found: Tuning) -> None:
    stages: dict[str, dict[str, Any]] = {
        "stage1_screening_results.json": found.stage1(),
        "stage2_detailed_results.json": found.detailed(),
        "stage2_optimization_results.json": found.stage2(),
    }
    for name, values in stages.items():
        write_json(folder / name, values)
    write_text(folder / "optimization_summary.md", render(found, "markdown"))
