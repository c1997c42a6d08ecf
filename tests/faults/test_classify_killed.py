"""Runs that are killed at any moment: what they leave is whole, and the next one goes on."""

import multiprocessing
import os
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from experiments import lay_out, models_of, results_of, run_logged

SETTINGS = {"models": "logistic,threshold", "stage2_trials": 10, "folds": 3, "top_k": 2}
PRELOADED = [
    "ordinate.classify.tuning",
    "ordinate.models.classifiers",
    "optuna",
    "sklearn.linear_model",
]


@pytest.fixture(scope="module")
def processes():
    """Processes that are forked from one in which everything is imported, and nothing begun."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


class Runs:
    """Runs on folders that all begin alike, and what an undisturbed one leaves."""

    def __init__(self, processes, base: Path, settings: dict) -> None:
        self.processes, self.base, self.settings = processes, base, settings
        self.count = self.kills = 0
        whole = self.fresh()
        started = time.monotonic()
        assert self.run(whole) == 0
        self.seconds = time.monotonic() - started
        self.left = everything(whole)

    def fresh(self) -> Path:
        self.count += 1
        return lay_out(self.base / f"run{self.count}", n=36, sets=("strong", "weak"))

    def run(self, root: Path, patience: float | None = None) -> int | None:
        """Run to the end, or kill the run after so many seconds; no trial may be made twice."""
        log = root.with_suffix(".log")
        log.write_text("")
        before = written(root)
        process = self.processes.Process(target=run_logged, args=(root, self.settings, log))
        process.start()
        process.join(patience)
        if killed := process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            self.kills += 1
        repeated = before & Counter(log.read_text().split())
        assert not repeated
        assert before <= written(root)
        assert set(written(root).values()) <= {1}
        return None if killed else process.exitcode


def everything(root: Path) -> tuple[list[str], dict[str, bytes]]:
    """Return the names of all files, and what those hold that have no times in them."""
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return paths, results_of(root) | models_of(root)


def written(root: Path) -> Counter:
    """Return how often each trial stands in the file of studies."""
    path = root / "results/studies.db"
    if not path.exists():
        return Counter()
    query = "SELECT study_name, number FROM trials JOIN studies USING (study_id)"
    with sqlite3.connect(path) as connection:
        rows = connection.execute(query).fetchall()
    connection.close()
    return Counter(f"{name.rpartition('/')[0]}/{number}" for name, number in rows)


def killed_and_resumed(runs: Runs, kills: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = runs.fresh()
    while runs.kills < kills:
        if runs.run(root, rng.uniform(0.0, 0.5) * runs.seconds) == 0:
            assert everything(root) == runs.left  # it was done sooner: begin again
            root = runs.fresh()
    assert runs.run(root) == 0
    assert everything(root) == runs.left
    assert runs.kills == kills


def test_two_kills_change_nothing(processes, tmp_path):
    settings = SETTINGS | {"models": "logistic", "stage2_trials": 6, "top_k": 1}
    killed_and_resumed(Runs(processes, tmp_path, settings), 2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ten_kills_at_random_moments_change_nothing(processes, tmp_path, jobs):
    runs = Runs(processes, tmp_path, SETTINGS | {"jobs": jobs, "nested": jobs == 2})
    killed_and_resumed(runs, 10, seed=jobs)


def test_a_kill_before_a_model_has_its_name_leaves_nothing_of_it(tmp_path, monkeypatch):
    from ordinate.classify import saved_models
    from ordinate.classify.settings import Settings
    from ordinate.classify.tuning import tune
    from ordinate.experiment.folder import Experiment

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed("now")

    root = lay_out(tmp_path, n=36, sets=("strong",))
    settings = Settings(models="logistic", stage2_trials=1, folds=2)
    with monkeypatch.context() as patch:
        patch.setattr(saved_models, "_write_manifest", killed)
        with pytest.raises(Killed, match="now"):
            tune(Experiment.open(root), settings)
    assert not list((root / "models").glob("[!.]*"))
    tune(Experiment.open(root), settings)
    assert not list(root.rglob(".ordinate-*"))
