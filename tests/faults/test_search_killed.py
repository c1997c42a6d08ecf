"""Searches that are killed at any moment: what they leave is whole, and the next one goes on."""

import multiprocessing
import os
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from search_cases import CASES, read_untimed_files, run_logged

MORE = {  # for the slow run
    "classification": {"models": "logistic,threshold", "trials": 10, "top_k": 2},
    "regression": {"models": "poly_ridge,lightgbm,kernel_ridge", "trials": 6},
}
PRELOADED = [
    "ordinate.tuning.classify.tuning",
    "ordinate.tuning.regress.tuning",
    "ordinate.tuning.models.classifiers",
    "optuna",
    "scipy.optimize",
    "sklearn.linear_model",
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            case, id=case.name, marks=pytest.mark.slow if case.name != "regression" else []
        )
        for case in CASES  # the quick run kills one of them: what goes on is common to both
    ],
)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def processes():
    """Processes that are forked from one in which everything is imported, and nothing begun."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


class Runs:
    """Runs on folders that all begin alike, and what an undisturbed one leaves."""

    def __init__(self, processes, case, base: Path, settings: dict) -> None:
        self.processes, self.case, self.base, self.settings = processes, case, base, settings
        self.count = self.kills = 0
        whole = self.lay_out()
        started = time.monotonic()
        assert self.run(whole) == 0
        self.seconds = time.monotonic() - started
        self.left = list_everything(whole)

    def lay_out(self) -> Path:
        self.count += 1
        return self.case.lay_out(self.base / f"run{self.count}")

    def run(self, root: Path, patience: float | None = None) -> int | None:
        """Run to the end, or kill the run after so many seconds; no trial may be made twice."""
        log = root.with_suffix(".log")
        log.write_text("")
        before = count_trials(root)
        process = self.processes.Process(
            target=run_logged, args=(self.case.name, root, self.settings, log)
        )
        process.start()
        process.join(patience)
        if killed := process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            self.kills += 1
        assert not before & Counter(log.read_text().split())
        after = count_trials(root)
        assert before <= after
        assert set(after.values()) <= {1}
        return None if killed else process.exitcode


def list_everything(root: Path) -> tuple[list[str], dict[str, bytes]]:
    """Return the names of all files, and what those hold that have no times in them."""
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return paths, read_untimed_files(root)


def count_trials(root: Path) -> Counter:
    """Return how often each trial stands in the file of studies."""
    path = root / "results/studies.db"
    if not path.exists():
        return Counter()
    query = "SELECT study_name, number FROM trials JOIN studies USING (study_id)"
    with sqlite3.connect(path) as connection:
        rows = connection.execute(query).fetchall()
    connection.close()
    return Counter(f"{name}/{number}" for name, number in rows)


def kill_and_resume(runs: Runs, kills: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = runs.lay_out()
    while runs.kills < kills:
        if runs.run(root, rng.uniform(0.0, 0.5) * runs.seconds) == 0:
            assert list_everything(root) == runs.left  # it was done sooner: begin again
            root = runs.lay_out()
    assert runs.run(root) == 0
    assert list_everything(root) == runs.left
    assert runs.kills == kills


def test_two_kills_change_nothing(processes, case, tmp_path):
    kill_and_resume(Runs(processes, case, tmp_path, dict(case.quick)), 2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ten_kills_at_random_moments_change_nothing(processes, case, tmp_path, jobs):
    settings = {**case.quick, **MORE[case.name], "jobs": jobs, "nested": jobs == 2}
    kill_and_resume(Runs(processes, case, tmp_path, settings), 10, seed=jobs)
