"""Tuning: from a table to the best surrogate, saved, tested and reported."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, BadOutput, shorten
from ordinate.experiment.layout import (
    CHECKPOINTS,
    CONFIG,
    RESULTS,
    RUNS,
    SUMMARY,
    TEST_PREDICTIONS,
    TRIALS,
)
from ordinate.experiment.lock import hold_lock
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import remove_leftovers, resolve_inside, write_json, write_text
from ordinate.experiment.workers import WorkerPool
from ordinate.regress.bench import Bench, ProgressCallback, ignore_progress
from ordinate.regress.duplicate_rows import SHIFTED_PART, LeakageReport, find_duplicates
from ordinate.regress.fitting import Rows, check_targets_vary
from ordinate.regress.hyperparameter_search import TimeBudget
from ordinate.regress.lattice_features import detect_lattice
from ordinate.regress.outliers import find_outliers
from ordinate.regress.prediction_intervals import IntervalCalibration
from ordinate.regress.saved_models import save_blend, save_candidates
from ordinate.regress.selection import (
    BlendCandidate,
    EvaluatedCandidate,
    ModelSelection,
    select_model,
)
from ordinate.regress.settings import Settings
from ordinate.regress.splits import Split, assign_unit_ids, check_folds, split_by_shift, split_table
from ordinate.regress.table import Table
from ordinate.regress.trained_model import load_surrogate
from ordinate.regress.tuning_result import (
    Finalist,
    HeldOutResult,
    StudyResult,
    TrainingDataSummary,
    TuningResult,
)
from ordinate.render import render
from ordinate.results.regression import RegressionEvaluation, evaluate_regression
from ordinate.results.regression_comparison import compare_regression
from ordinate.summaries.normalization import Normalization

DEFAULT_ROOT = "surrogate_results"
TEST_PART = "test"
FEWEST_ROWS = 4  # rows to learn from and to choose by
UNFINISHED_NOTE = (
    "The timeout ended the search before all trials were made. The same command goes on with it."
)


def tune(
    table: Table,
    root: Path | str = DEFAULT_ROOT,
    settings: Settings | None = None,
    *,
    split: Split | None = None,
    unit: str | None = None,
    command: str = "ordinate.surrogate",
    config: str = "",
    tell: ProgressCallback = ignore_progress,
) -> TuningResult:
    """Search models, blend the best of each model type, save them, and test the winner.

    Choices are made by rows that are held out of the fits, never by those of the test. A run that
    was killed goes on where it stopped. Without a `split` there is one of shuffled rows, or of
    whole groups where the table has them. `config` is the text of a file that repeats the run.
    """
    asked = settings or Settings()
    clock = TimeBudget(asked.timeout, max(1, asked.folds or 0), asked.jobs)
    parts, shift = _split_rows(table, split, asked)
    with _open_bench(root, table, parts, shift, asked, unit, command, tell) as plain:
        lattice = detect_lattice(plain, clock.end)
        bench = replace(plain, extra=lattice.extra if lattice else None)
        run = _make_run_id(bench)
        choice = select_model(bench, clock)
        searched, blend, winner = _save_finalists(bench, choice, run, command)
        notes = [*([lattice.note(unit)] if lattice else []), *_collect_search_notes(choice, asked)]
        notes += _collect_model_notes(bench, searched)
        found = TuningResult(
            run, asked, _summarize_source(bench), searched, blend, winner, (), tuple(notes)
        )
        found = replace(found, tests=tuple(_run_tests(bench, found)))
        _write_run(bench, found, command, config)
        if choice.finished:  # otherwise the next run may go on from some
            shutil.rmtree(resolve_inside(bench.root, CHECKPOINTS), ignore_errors=True)
    return found


@contextmanager
def _open_bench(
    root: Path | str,
    table: Table,
    split: Split,
    shift: Split | None,
    asked: Settings,
    unit: str | None,
    command: str,
    tell: ProgressCallback,
) -> Iterator[Bench]:
    """Take the lock, clear what killed runs left, and lay out the work."""
    home = _make_results_folder(root)
    with hold_lock(home, command), WorkerPool(asked.jobs) as workers:
        remove_leftovers(home)
        yield Bench(home, table, split, asked, workers, tell, unit, shift)


def _make_run_id(bench: Bench) -> str:
    """Return the name of a run: its target, and a hash of the data and all that was asked."""
    table = {"table": bench.table.fingerprint}  # with the targets of its test
    settings = bench.settings.result_settings
    settings["kinds"] = settings.pop("model_types")  # the name that earlier runs were hashed by
    code = bench.code(settings | {"unit": bench.unit} | table)
    letters = (x if x.isascii() and x.isalnum() else "_" for x in bench.table.target_name[:40])
    return f"{''.join(letters)}-{code}"


def _make_results_folder(root: Path | str) -> Path:
    home = Path(root)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadOutput(f"{shorten(str(home))} cannot be written: {problem.strerror}.") from None
    return home


# --- which rows are for what ---------------------------------------------------------------------


def _split_rows(table: Table, split: Split | None, asked: Settings) -> tuple[Split, Split | None]:
    """Return which rows are for what, and what lies beyond the shift, if one is asked for."""
    shift = None if asked.shift is None else _split_shift(table, asked)
    if shift is None:
        found = split or split_table(table, asked.seed)
    else:
        found = (
            _split_before_shift(table, shift, asked.seed)
            if split is None
            else _remove_shifted_rows(split, shift)
        )
    if not asked.folds and not len(found.validation):
        raise BadInput("There are no validation rows to choose by. Pass --folds, or keep some.")
    if not asked.folds and asked.blend == "always" and len(found.validation) < 2:
        raise BadInput("A blend is learned from two validation rows or more. Pass --folds.")
    if len(found.known) < FEWEST_ROWS:
        raise BadInput(f"{len(found.known)} rows are too few to learn from and to choose by.")
    if asked.folds:
        check_folds(table, assign_unit_ids(table, found.known), asked.folds)
    check_targets_vary(table.target[found.train], "the training rows")
    return found, shift


def _split_shift(table: Table, asked: Settings) -> Split:
    named = asked.shift != "target" or "target" in table.names
    by = str(asked.shift) if named else table.target_name
    return split_by_shift(table, by, share=asked.shift_share, end=asked.shift_end, seed=asked.seed)


def _split_before_shift(table: Table, shift: Split, seed: int) -> Split:
    """Split the rows before the shift as usual."""
    rows = np.sort(shift.known)
    groups = None if table.groups is None else table.groups[rows]
    part = replace(table, features=table.features[rows], target=table.target[rows], groups=groups)
    found = split_table(part, seed)
    own = (rows[found.train], rows[found.validation], rows[found.test])
    return Split(*own, f"{found.name}, before the shift", found.notes)


def _remove_shifted_rows(split: Split, shift: Split) -> Split:
    """Leave the rows beyond the shift out of a split that was given."""
    train, validation, test = (
        rows[~np.isin(rows, shift.test)] for rows in (split.train, split.validation, split.test)
    )
    return Split(train, validation, test, f"{split.name}, before the shift", split.notes)


def _summarize_source(bench: Bench) -> TrainingDataSummary:
    table, split, shift = bench.table, bench.split, bench.shift
    sizes = split.sizes | ({} if shift is None else {SHIFTED_PART: len(shift.test)})
    groups = None if table.groups is None else len(np.unique(table.groups.astype(str)))
    leaks = find_duplicates(table, split, None if shift is None else shift.test)
    return TrainingDataSummary(
        table.path,
        table.target_name,
        bench.unit,
        table.names,
        len(table),
        split.name if shift is None else f"{split.name}; {shift.name}",
        sizes,
        groups,
        tuple(dict.fromkeys(_collect_data_notes(bench, leaks))),
        bench.apart,
        leaks,
    )


def _collect_data_notes(bench: Bench, leaks: LeakageReport) -> Iterator[str]:
    """Yield what is to be known of the data: rows on both sides of the split, values far off."""
    yield from bench.table.notes
    yield from bench.split.notes
    yield from leaks.notes
    if bench.shift is not None:
        yield from bench.shift.notes
    yield from (each.note for each in find_outliers(bench.table))


def _collect_search_notes(choice: ModelSelection, asked: Settings) -> Iterator[str]:
    if not choice.finished:
        yield UNFINISHED_NOTE
    if idle := [one.model_type for one in choice.studies if not one.trials]:
        yield f"There was no time for {', '.join(idle)}."
    for one in choice.studies:
        reasons = [trial.reason for trial in one.trials if trial.reason]
        if reasons:
            failed = f"{len(reasons)} of {len(one.trials)} trials failed"
            yield f"{one.model_type}: {failed}: {reasons[0]}"
    if asked.missing:
        yield (
            f"Not installed, so not tried: {', '.join(asked.missing)}. "
            "pip install 'ordinate[surrogate]'"
        )


def _collect_model_notes(bench: Bench, searched: tuple[StudyResult, ...]) -> Iterator[str]:
    """Yield what is to be known of the saved models, such as rows that one was not fitted on."""
    for one in searched:
        if one.best is not None:
            ((model, _),) = load_surrogate(bench.root, one.best.name).models
            yield from (f"{one.model_type}: {note}" for note in model.notes)


# --- what is saved -------------------------------------------------------------------------------


def _save_finalists(
    bench: Bench, choice: ModelSelection, run: str, command: str
) -> tuple[tuple[StudyResult, ...], Finalist | None, Finalist]:
    """Fit and save the best of each model type, and the blend; return them, the winner last."""
    able = [one for one in choice.candidates if one is not None]
    names = save_candidates(bench, able, run=run, command=command)
    finalists = {
        id(one): Finalist(
            name, one.candidate.model_type, one.candidate.params, _evaluate_held_out(bench, one)
        )
        for name, one in zip(names, able, strict=True)
    }
    searched = tuple(
        StudyResult(
            one.model_type,
            bench.settings.count_trials(one.model_type),
            one.trials,
            finalists.get(id(best)),
        )
        for one, best in zip(choice.studies, choice.candidates, strict=True)
    )
    if choice.blend is None:
        return searched, None, finalists[id(choice.winner)]
    members = tuple(finalists[id(member)].name for member in choice.blend.members)
    name = save_blend(bench, choice.blend, run=run, command=command)
    weights = tuple(choice.blend.blend.weights.tolist())
    blend = Finalist(name, "blend", {}, _evaluate_held_out(bench, choice.blend), members, weights)
    winner = blend if choice.winner is choice.blend else finalists[id(choice.winner)]
    return searched, blend, winner


def _evaluate_held_out(
    bench: Bench, one: EvaluatedCandidate | BlendCandidate
) -> RegressionEvaluation:
    """Return what predictions for held-out rows are worth."""
    return _evaluate_predictions(bench, one.held, bench.groups)


def _evaluate_predictions(
    bench: Bench, of: IntervalCalibration, groups: Any, **bounds: Any
) -> RegressionEvaluation:
    return evaluate_regression(
        of.targets,
        of.predictions,
        unit=bench.unit,
        normalization=Normalization.fit(bench.table.target[bench.split.train]),
        groups=groups,
        **bounds,
    )


# --- the test ------------------------------------------------------------------------------------


def _run_tests(bench: Bench, found: TuningResult) -> Iterator[HeldOutResult]:
    """Ask the saved surrogates for the rows that chose nothing, when all is chosen."""
    if len(bench.split.test):
        yield _evaluate_on_rows(bench, found, TEST_PART, bench.split.test, bench.split.name)
    if bench.shift is not None:
        yield _evaluate_on_rows(bench, found, SHIFTED_PART, bench.shift.test, bench.shift.name)


def _evaluate_on_rows(
    bench: Bench, found: TuningResult, name: str, rows: Rows, what: str
) -> HeldOutResult:
    features, targets = bench.table.features[rows], bench.table.target[rows]
    groups = None if bench.table.groups is None else bench.table.groups[rows]
    answers = {
        one.name: load_surrogate(bench.root, one.name).predict(features) for one in found.finalists
    }
    predictions = {one: answer.values for one, answer in answers.items()}
    won = answers[found.winner.name]
    values = _evaluate_predictions(
        bench,
        IntervalCalibration(targets, won.values),
        groups,
        lower=won.lower,
        upper=won.upper,
        alpha=bench.settings.alpha,
    )
    several = len(predictions) > 1 and len(rows) > 1
    comparison = (
        compare_regression(targets, predictions, unit=bench.unit, groups=groups)
        if several
        else None
    )
    own = tuple(int(row) + 1 for row in rows)
    bounds = (won.lower, won.upper)
    notes = won.notes
    return HeldOutResult(
        name, what, own, targets, predictions, *bounds, values, comparison, groups, notes
    )


# --- what is written -----------------------------------------------------------------------------


def _write_run(bench: Bench, found: TuningResult, command: str, config: str) -> None:
    """Write the results of the run, and the same as the latest ones."""
    folder = resolve_inside(bench.root, RUNS, found.run)
    if config:
        write_text(folder / CONFIG, config)
    _write_results(folder, found)
    Manifest.of(
        folder,
        "surrogate results",
        found.run,
        config=found.settings.to_dict(),
        data={bench.table.path or "table": bench.table.fingerprint},
        seed=found.settings.seed,
        command=command,
        libraries=["scipy", "scikit-learn", "lightgbm", "optuna", "torch"],
    ).write(folder)
    _write_results(bench.root, found)


def _write_results(folder: Path, found: TuningResult) -> None:
    files = {
        TRIALS: found.list_trials(),
        TEST_PREDICTIONS: found.list_test_predictions(),
        RESULTS: found.to_dict(),
    }
    for name, values in files.items():
        write_json(folder / name, values)
    write_text(folder / SUMMARY, render(found, "markdown"))
