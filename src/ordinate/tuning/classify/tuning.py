"""Tuning of classifiers: from labelled data and feature sets to the best model for a metric."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordinate.errors import BadOption
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.classify.training_data import TrainingData
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.new_experiment import lay_out_experiment
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.features import extract_default_features
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


def tune_experiment(
    experiment: Experiment,
    settings: Settings | None = None,
    *,
    scale: str | None = None,
    origin: RunOrigin | None = None,
    progress: ProgressCallback | None = None,
) -> TuningResult:
    """Screen feature sets, search models, save the best of each study, and test the winner.

    Models are selected by cross-validation on the training data alone. A run that was killed goes
    on where it stopped.
    """
    settings, origin = settings or Settings(), origin or RunOrigin("ordinate.tune")
    with _open_task(experiment, settings, scale, origin, progress) as task:
        return run_search(task, task.training.source, origin)


def tune(
    data: Any,
    *,
    test: Any = None,
    folder: Path | str | None = None,
    label_column: str | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    scale: str | None = None,
    label_map: dict[str, str | None] | None = None,
    tidy_labels: bool | None = None,
    settings: Settings | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> TuningResult:
    """Find the best classifier of labelled texts for a metric.

    `data` is the folder of an experiment, or labelled texts: a file or a data frame, which is laid
    out in `folder` as by `ordinate init`, with the default feature sets; without `test`, about a
    fifth of each level is set aside. `label_map` and `tidy_labels` are those of
    `ordinate.evaluate`, and `options` are the settings of `ordinate.tuning.classify.Settings`.
    Without a folder a temporary one, `result.folder`, goes with the result.

    >>> from ordinate.examples import locate_example
    >>> result = tune(locate_example("texts"), metric="cem_ord", preset="minimal", trials=1)
    >>> result.winner.model_type, result.tests[0].n
    ('logistic', 50)
    """
    chosen = Settings.of(settings, options)
    columns = DataColumns(
        *(label_column, text_column, id_column, group_column),
        renamed=label_map,
        tidy_labels=tidy_labels,
    )
    if isinstance(data, Experiment) or (isinstance(data, str | Path) and Path(data).is_dir()):
        if test is not None or folder is not None:
            raise BadOption("A folder is an experiment already: leave out test and folder.")
        experiment = (
            data if isinstance(data, Experiment) else Experiment.open(data, columns=columns)
        )
        return tune_experiment(experiment, chosen, scale=scale, progress=progress)
    with keep_or_make_folder(folder) as (root, keep):
        experiment = lay_out_experiment(
            root,
            data,
            test,
            columns=columns,
            scale=scale,
            seed=chosen.seed,
            extract=extract_default_features,
            again=True,
        )
        return keep(tune_experiment(experiment, chosen, progress=progress))


def plan_tuning(
    experiment: Experiment, settings: Settings | None = None, *, scale: str | None = None
) -> DryRun:
    """Read and check everything that a run would, and say what it would do."""
    settings = settings or Settings()
    task = _make_task(experiment, settings, scale, WorkerPool(1), ignore_progress)
    return plan_search(task, task.training.source, experiment.tests)


@contextmanager
def _open_task(
    experiment: Experiment,
    settings: Settings,
    scale: str | None,
    origin: RunOrigin,
    progress: ProgressCallback | None,
) -> Iterator[ClassificationTask]:
    import ordinate.integrations.sklearn.ordinal_regression  # noqa: F401 - libraries obey once loaded

    with open_workers(experiment.root, settings, origin.command, "tune") as workers:
        yield _make_task(experiment, settings, scale, workers, progress or ignore_progress)


def _make_task(
    experiment: Experiment,
    settings: Settings,
    scale: str | None,
    workers: WorkerPool,
    progress: ProgressCallback,
) -> ClassificationTask:
    """Return the task; whatever is wrong with the data comes out here."""
    training = TrainingData.of(
        experiment, scale=scale, train=settings.training_sets, pattern=settings.feature_pattern
    )
    task = ClassificationTask(
        root=Path(experiment.root),
        settings=settings,
        workers=workers,
        budget=TimeBudget(settings.timeout, settings.folds or 1, settings.jobs),
        progress=progress,
        training=training,
    )
    task.check_tests()
    return task
