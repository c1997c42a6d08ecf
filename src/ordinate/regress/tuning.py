"""Tuning of regression models: from a table to the best model, saved, tested and reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ordinate.experiment.workers import WorkerPool
from ordinate.regress.settings import Settings
from ordinate.regress.splits import Split
from ordinate.regress.table import Table
from ordinate.regress.task import RegressionTask, split_rows
from ordinate.search.dry_run import DryRun, plan_search
from ordinate.search.task import ProgressCallback, ignore_progress
from ordinate.search.time_budget import TimeBudget
from ordinate.search.tuning import RunOrigin, open_workers, run_search
from ordinate.search.tuning_result import TuningResult


def tune_table(
    table: Table,
    root: Path | str,
    settings: Settings | None = None,
    *,
    split: Split | None = None,
    unit: str | None = None,
    origin: RunOrigin | None = None,
    progress: ProgressCallback = ignore_progress,
) -> TuningResult:
    """Search models, blend the best of each model type, save them, and test the winner.

    Models are selected by rows that are held out of the fits, never by those of the test. A run
    that was killed goes on where it stopped. Without a `split` there is one of shuffled rows, or of
    whole groups where the table has them.
    """
    settings, origin = settings or Settings(), origin or RunOrigin("ordinate.tune_regression")
    with _open_task(table, Path(root), settings, split, unit, origin, progress) as task:
        return run_search(task, task.summarize_table(), origin)


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
    return plan_search(task, task.summarize_table(), tests)


@contextmanager
def _open_task(
    table: Table,
    root: Path,
    settings: Settings,
    split: Split | None,
    unit: str | None,
    origin: RunOrigin,
    progress: ProgressCallback,
) -> Iterator[RegressionTask]:
    budget = TimeBudget(settings.timeout, max(1, settings.folds or 0), settings.jobs)
    parts = split_rows(table, split, settings)  # what is wrong with rows, before a folder is made
    with open_workers(root, settings, origin.command) as workers:
        task = _make_task(table, root, settings, parts, unit, workers)
        yield replace(task, budget=budget, progress=progress)


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
    )
