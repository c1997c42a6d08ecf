"""Searches for a surrogate that are killed: what they leave is whole, and the next one goes on."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
from surrogates import left_by, run_settings, smooth

SETTINGS = {"model": "poly_ridge,kernel_ridge", "trials": 6, "folds": 3}
PRELOADED = ["ordinate.regress.tuning", "optuna", "sklearn.linear_model", "scipy.optimize"]


@pytest.fixture(scope="module")
def processes():
    """Processes that are forked from one in which everything is imported, and nothing begun."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def ran(processes, root, settings, patience=None) -> int | None:
    """Run to the end, or kill the run after so many seconds."""
    process = processes.Process(target=run_settings, args=(root, settings))
    process.start()
    process.join(patience)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        return None
    return process.exitcode


def killed_and_resumed(processes, base, settings, kills, seed):
    whole = base / "whole"
    started = time.monotonic()
    assert ran(processes, whole, settings) == 0
    seconds = time.monotonic() - started
    rng, root, left = np.random.default_rng(seed), base / "killed0", kills
    while left:
        if ran(processes, root, settings, rng.uniform(0.0, 0.6) * seconds) == 0:
            assert left_by(root) == left_by(whole)  # it was done sooner: begin again
            root = base / f"killed{left}"
        else:
            left -= 1
    assert ran(processes, root, settings) == 0
    assert left_by(root) == left_by(whole)
    assert not list(root.rglob(".ordinate-*"))


def test_two_kills_change_nothing(processes, tmp_path):
    killed_and_resumed(processes, tmp_path, SETTINGS | {"trials": 3}, 2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_eight_kills_at_random_moments_change_nothing(processes, tmp_path, jobs):
    settings = SETTINGS | {"model": "poly_ridge,lightgbm,kernel_ridge", "jobs": jobs}
    killed_and_resumed(processes, tmp_path, settings, 8, seed=jobs)


def test_a_kill_before_a_surrogate_has_its_name_leaves_nothing_of_it(tmp_path, monkeypatch):
    from ordinate.regress import saved_models
    from ordinate.regress.settings import Settings
    from ordinate.regress.tuning import tune

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed("now")

    settings = Settings(model="poly_ridge", trials=1, folds=2)
    with monkeypatch.context() as patch:
        patch.setattr(saved_models, "_write_manifest", killed)
        with pytest.raises(Killed, match="now"):
            tune(smooth(40), tmp_path, settings)
    assert not list((tmp_path / "models").glob("[!.]*"))
    tune(smooth(40), tmp_path, settings)
    assert len(list((tmp_path / "models").iterdir())) == 1
    assert not list(tmp_path.rglob(".ordinate-*"))
