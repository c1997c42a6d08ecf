"""Tuning of regression models: from a table to the best model, saved, tested and reported."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ordinate.errors import BadOutput, shorten
from ordinate.render.reserved_paths import TEST, TRAINING
from ordinate.summaries.tabulation import RowPolicy
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.regress.lattice_features import detect_lattice
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import Split
from ordinate.tuning.regress.table import Table, load_table
from ordinate.tuning.regress.task import RegressionTask, split_rows
from ordinate.tuning.search.task import ProgressCallback, ignore_progress
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning import (
    DryRun,
    RunOrigin,
    keep_or_make_folder,
    open_workers,
    plan_search,
    run_search,
)
from ordinate.tuning.search.tuning_result import TuningResult

COLUMNS = "columns"  # the stage of progress whose note names the features, before work starts


def tune_table(
    table: Table,
    root: Path | str,
    settings: Settings | None = None,
    *,
    split: Split | None = None,
    unit: str | None = None,
    origin: RunOrigin | None = None,
    progress: ProgressCallback | None = None,
) -> TuningResult:
    """Search models, blend the best of each model type, save them, and test the winner.

    Models are selected by rows that are held out of the fits, never by those of the test. A run
    that was killed goes on where it stopped. Without a `split` there is one of shuffled rows, or of
    whole groups where the table has them.
    """
    settings, origin = settings or Settings(), origin or RunOrigin("ordinate.tune_regression")
    with _open_task(table, Path(root), settings, split, unit, origin, progress) as task:
        return run_search(task, task.summarize_table(), origin)


def tune_regression(
    data: Any,
    target: str | None = None,
    *,
    unit: str | None = None,
    features: Sequence[str] | None = None,
    group_column: str | None = None,
    missing: RowPolicy = "error",
    folder: Path | str | None = None,
    split: Split | None = None,
    settings: Settings | None = None,
    decimal: Literal[",", "."] | None = None,
    bad_lines: Literal["error", "skip"] | None = None,
    sheet: str | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> TuningResult:
    """Find the best regression model of a table: a file, a data frame, or a `Table`.

    `target` is the column to predict; rows with a missing number are refused, or dropped where
    `missing` says so; a text file may have numbers with a `decimal` comma, and `bad_lines` with
    more or fewer columns, to "skip"; a spreadsheet has a `sheet`. `options` are the settings of
    `ordinate.tuning.regress.Settings`.
    Models and results are saved in `folder`; without one, in a temporary folder, `result.folder`,
    that goes with the result.

    >>> from ordinate.examples import locate_example
    >>> result = tune_regression(
    ...     locate_example("densities"), "density", unit="kg/m³", models="poly_ridge", trials=1
    ... )
    >>> result.winner.model_type, result.report.unit
    ('poly_ridge', 'kg/m³')
    """
    chosen = Settings.of(settings, options)
    named: dict[str, Any] = {"features": features, "group_column": group_column}
    files = {"decimal": decimal, "bad_lines": bad_lines, "sheet": sheet}
    table = load_table(data, target, **named, missing=missing, **files)
    with keep_or_make_folder(folder) as (root, keep):
        result = tune_table(table, root, chosen, split=split, unit=unit, progress=progress)
        return keep(result)


def plan_table(
    table: Table,
    root: Path | str,
    settings: Settings | None = None,
    *,
    split: Split | None = None,
    unit: str | None = None,
) -> DryRun:
    """Check everything that a run would, and say what it would do."""
    settings = settings or Settings()
    parts = split_rows(table, split, settings)
    task = _make_task(table, Path(root), settings, parts, unit, WorkerPool(1))
    tests = [name for name, rows in task.split.parts.items() if name == "test" and len(rows)]
    return plan_search(task, task.summarize_table(), tests, table.describe_columns())


@contextmanager
def _open_task(
    table: Table,
    root: Path,
    settings: Settings,
    split: Split | None,
    unit: str | None,
    origin: RunOrigin,
    progress: ProgressCallback | None,
) -> Iterator[RegressionTask]:
    budget = TimeBudget(settings.timeout, max(1, settings.folds or 0), settings.jobs)
    parts = split_rows(table, split, settings)  # what is wrong with rows, before a folder is made
    if (root / TRAINING).is_dir() or (root / TEST).is_dir():
        raise BadOutput(f"{shorten(str(root))} is an experiment with texts. Name another folder.")
    with open_workers(root, settings, origin.command, "tune_regression") as workers:
        task = _make_task(table, root, settings, parts, unit, workers)
        report = progress or ignore_progress
        report(COLUMNS, 0.0, "\n".join(table.describe_columns()))
        yield replace(task, budget=budget, progress=report)


def _make_task(
    table: Table,
    root: Path,
    settings: Settings,
    parts: tuple[Split, Split | None],
    unit: str | None,
    workers: WorkerPool,
) -> RegressionTask:
    split, shift = parts
    return RegressionTask(
        root=root,
        settings=settings,
        workers=workers,
        table=table,
        split=split,
        shift=shift,
        unit=unit,
        find_lattice=detect_lattice,
    )
