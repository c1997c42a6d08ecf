"""Small searches of both tasks, for laws that hold whatever is searched."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from experiments import CEFR, lay_out, write_data
from regression_tables import columns

if TYPE_CHECKING:  # heavy
    from ordinate.tuning.search.settings import SearchSettings
    from ordinate.tuning.search.task import Task

TIMED_FILES = {"manifest.json", "studies.db"}  # in which times stand
TABLE_FILE = "table.npy"


@dataclass(frozen=True)
class SearchCase:
    """One task with small data: how these are laid out and searched, and how models are loaded."""

    name: str
    quick: Mapping[str, Any]  # settings: two model types, one of which is `model`
    model: str

    def lay_out(self, root: Path) -> Path:
        """Write the data into a folder, and return it."""
        if self.name == "classification":
            return lay_out(root, n=36, tests={"test": 18})
        root.mkdir(parents=True, exist_ok=True)
        x, y = columns(60)
        np.save(root / TABLE_FILE, np.column_stack([x, y]))
        return root

    def change_test(self, root: Path, seed: int) -> None:
        """Give the items of the test other levels, or other targets."""
        rng = np.random.default_rng(seed)
        if self.name == "classification":
            write_data(root, "ml-test-data", "test", rng.choice(CEFR, 18).tolist())
            return
        from ordinate.tuning.regress.splits import split_table

        values = np.load(root / TABLE_FILE)
        rows = split_table(self._load_table(root), 0).test
        values[rows, -1] = rng.permutation(1000.0 * values[rows, -1])
        np.save(root / TABLE_FILE, values)

    def make_settings(self, **changes: Any) -> "SearchSettings":
        """Return the settings of a quick search, or some that differ."""
        if self.name == "classification":
            from ordinate.tuning.classify.settings import Settings
        else:
            from ordinate.tuning.regress.settings import Settings
        return Settings(**self.quick | changes)

    def tune(self, root: Path, settings: "SearchSettings | None" = None, **options: Any) -> Any:
        """Search; `options` are those of the function."""
        settings = settings or self.make_settings()
        if self.name == "classification":
            from ordinate.tuning.classify.tuning import tune_experiment
            from ordinate.tuning.experiment.folder import Experiment

            return tune_experiment(Experiment.open(root), settings, **options)
        from ordinate.tuning.regress.tuning import tune_table

        return tune_table(self._load_table(root), root, settings, **options)

    def plan(self, root: Path, settings: "SearchSettings") -> Any:
        """Return what a search would do."""
        if self.name == "classification":
            from ordinate.tuning.classify.tuning import plan_tuning
            from ordinate.tuning.experiment.folder import Experiment

            return plan_tuning(Experiment.open(root), settings)
        from ordinate.tuning.regress.tuning import plan_table

        return plan_table(self._load_table(root), root, settings)

    def open_task(self, root: Path, settings: "SearchSettings | None" = None) -> "Task":
        """Return the task with one worker, as a search opens it."""
        from ordinate.tuning.experiment.workers import WorkerPool

        given = {"root": root, "settings": settings or self.make_settings()}
        if self.name == "classification":
            from ordinate.tuning.classify.task import ClassificationTask
            from ordinate.tuning.classify.training_data import TrainingData
            from ordinate.tuning.experiment.folder import Experiment

            training = TrainingData.of(Experiment.open(root))
            return ClassificationTask(workers=WorkerPool(1), training=training, **given)
        from ordinate.tuning.regress.lattice_features import detect_lattice
        from ordinate.tuning.regress.splits import split_table
        from ordinate.tuning.regress.task import RegressionTask

        table = self._load_table(root)
        split = split_table(table, 0)
        given |= {"workers": WorkerPool(1), "find_lattice": detect_lattice}
        return RegressionTask(table=table, split=split, **given)

    def get_fit_class(self) -> Any:
        """Return the class of a fit."""
        from ordinate.tuning.classify.task import ClassifierFit
        from ordinate.tuning.regress.fitting import RegressorFit

        return ClassifierFit if self.name == "classification" else RegressorFit

    def load(self, root: Path, name: str | None = None) -> Any:
        """Load a saved model."""
        if self.name == "classification":
            from ordinate.tuning.classify.trained_model import load_model
            from ordinate.tuning.experiment.folder import Experiment

            return load_model(Experiment.open(root), name)
        from ordinate.tuning.regress.trained_model import load_regression_model

        return load_regression_model(root, name)

    def _load_table(self, root: Path) -> Any:
        from ordinate.tuning.regress.table import make_table

        values = np.load(root / TABLE_FILE)
        return make_table(values[:, :-1], values[:, -1], names=["a", "b", "c"], target_name="y")


CASES = (
    SearchCase(
        "classification",
        {"models": "logistic,regression", "trials": 3, "folds": 3, "top_k": 1},
        "logistic",
    ),
    SearchCase(
        "regression",
        {"models": "poly_ridge,kernel_ridge", "trials": 3, "folds": 3},
        "poly_ridge",
    ),
)

# `make test-all` tries laws of long searches on both tasks, `make test` on the quicker one.
one_quick_task = pytest.mark.parametrize(
    "case",
    [pytest.param(CASES[0], marks=pytest.mark.slow), CASES[1]],
    ids=[case.name for case in CASES],
    indirect=True,
)


def read_untimed_files(root: Path) -> dict[str, bytes]:
    """Return every file of a folder in which no times stand."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in TIMED_FILES
    }


def seal(folder: Path, **changes: Any) -> None:
    """Write the manifest of a saved model anew, as if its files had always been so."""
    from ordinate.tuning.experiment.manifest import Manifest

    old = Manifest.read(folder)
    names = ("artifact", "name", "config", "data", "seed", "command")
    Manifest.of(folder, **{name: getattr(old, name) for name in names} | changes).write(folder)


def run_logged(name: str, root: Path, settings: dict[str, Any], log: Path) -> None:
    """Search in a process of its own, and log each trial before it is made."""
    from ordinate.tuning.search import hyperparameter_search

    start = hyperparameter_search._start_trial

    def start_logged(task, key, pending, end):
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{task.name_study(key)}/{pending.number}\n")
        return start(task, key, pending, end)

    hyperparameter_search._start_trial = start_logged
    (case,) = (one for one in CASES if one.name == name)
    case.tune(root, case.make_settings(**settings))
