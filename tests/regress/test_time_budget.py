"""Searches that run out of time or are killed: what is left, and how the next run goes on."""

from dataclasses import replace

import pytest
from surrogates import left_by, open_bench, smooth

from ordinate.regress import fitting, hyperparameter_search, tuning
from ordinate.regress.bench import Candidate
from ordinate.regress.hyperparameter_search import TimeBudget
from ordinate.regress.settings import Settings
from ordinate.regress.tuning import tune

QUICK = {"model": "poly_ridge,kernel_ridge", "trials": 3, "folds": 3}


class _Time:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_timeout_leaves_every_kind_its_defaults_first(tmp_path, monkeypatch):
    order = []
    make = hyperparameter_search._run_batch

    def logged(bench, model_type, batch, progress, end):
        order.append((model_type, [one.number for one in batch.pending]))
        make(bench, model_type, batch, progress, end)

    monkeypatch.setattr(hyperparameter_search, "_run_batch", logged)
    tune(smooth(), tmp_path, Settings(**QUICK | {"trials": 6}))
    assert order[:2] == [("poly_ridge", [0]), ("kernel_ridge", [0])]
    assert order[2:] == [
        ("poly_ridge", [1, 2, 3]),
        ("kernel_ridge", [1, 2, 3]),
        ("poly_ridge", [4, 5]),
        ("kernel_ridge", [4, 5]),
    ]


def test_no_time_at_all_leaves_one_model_and_says_so(tmp_path):
    result = tune(smooth(), tmp_path, Settings(**QUICK, timeout=0.0))
    assert [len(one.trials) for one in result.searched] == [1, 0]
    assert any("There was no time for kernel_ridge" in note for note in result.notes)
    assert any("The timeout ended the search" in note for note in result.notes)


def test_a_clock_affords_what_there_is_time_for():
    time = _Time()
    clock = TimeBudget(100.0, folds=5, jobs=1, clock=time.monotonic)
    assert clock.count_affordable_trials("slow", 4) == 1  # nobody knows how long it takes
    clock.note("slow", 20.0)
    time.now = 20.0
    assert (
        clock.count_affordable_trials("slow", 4) == 2
    )  # 80 seconds less 8 for the last fit, with caution
    time.now = 90.0
    assert clock.count_affordable_trials("slow", 4) == 0
    assert TimeBudget(None, folds=5, jobs=1).count_affordable_trials("slow", 4) == 4


@pytest.mark.parametrize(("folds", "last"), [(1, 30.0), (2, 120.0), (5, 11.71875)])
def test_the_time_of_a_last_fit_is_that_of_costs_which_grow_as_cubes(folds, last):
    """Without folds it is the fit that was judged; with 5, on five rows instead of four."""
    clock = TimeBudget(1000.0, folds=folds, clock=lambda: 0.0)
    clock.note("gp", 30.0)
    assert clock.end == pytest.approx(1000.0 - last)


def test_no_fit_begins_when_its_time_is_over(tmp_path, monkeypatch):
    bench = open_bench(smooth(), tmp_path, Settings(model="lightgbm,poly_ridge", folds=2))
    over = [
        replace(bench.tasks(Candidate(model_type, {}))[0], end=-1.0)
        for model_type in bench.settings.model_types
    ]
    monkeypatch.setattr(fitting, "_train_model", None)  # nobody comes so far
    found = bench.workers.attempt(fitting.fit_model, over)
    assert [type(one) for one in found] == [fitting.OutOfTime] * 2


def test_a_fit_that_runs_ends_with_its_time_unless_it_is_one_step(tmp_path, monkeypatch):
    bench = open_bench(smooth(), tmp_path, Settings(model="lightgbm,poly_ridge", folds=2))
    tasks = [
        replace(bench.tasks(Candidate(model_type, {}))[0], end=1.0)
        for model_type in bench.settings.model_types
    ]
    learn, time = fitting._train_model, _Time()
    monkeypatch.setattr(fitting, "time", time)

    def late(*given):
        time.now = 2.0
        learn(*given)

    monkeypatch.setattr(fitting, "_train_model", late)
    found = []
    for task in tasks:
        time.now = 0.0
        found += bench.workers.attempt(fitting.fit_model, [task])
    assert isinstance(found[0], fitting.OutOfTime)
    assert len(found[1].predictions[0])


def test_a_trial_without_time_is_left_for_the_next_run(tmp_path, monkeypatch):
    settings = {"model": "poly_ridge,lightgbm", "trials": 2, "folds": 2}
    whole = tune(smooth(), tmp_path / "whole", Settings(**settings))
    with monkeypatch.context() as patch:
        patch.setattr(TimeBudget, "end", -1.0)
        cut = tune(smooth(), tmp_path / "cut", Settings(**settings, timeout=1e6))
    assert [len(one.trials) for one in cut.searched] == [1, 0]
    assert cut.notes == (tuning.UNFINISHED_NOTE, "There was no time for lightgbm.")
    again = tune(smooth(), tmp_path / "cut", Settings(**settings))
    assert again.to_dict() == whole.to_dict()


class Killed(BaseException):
    """Ends a run as a kill would."""


def test_a_network_that_was_killed_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.models.networks.trainer import Trainer

    epochs, train = [], Trainer.train_epoch

    def counted(self, part):
        if len(epochs) == 35:
            raise Killed
        epochs.append(self.epoch)
        return train(self, part)

    settings = Settings(model="mlp", trials=1, folds=2, epochs=25)
    whole = tune(smooth(), tmp_path / "whole", settings)
    monkeypatch.setattr(Trainer, "train_epoch", counted)
    root = tmp_path / "killed"
    with pytest.raises(Killed):
        tune(smooth(), root, settings)
    assert len(list((root / "checkpoints").iterdir())) == 2  # of the first part, which is done, too
    epochs[:] = [-1] * 36  # no more kills
    again = tune(smooth(), root, settings)
    assert epochs[36:][:3] == [10, 11, 12]  # of the second part; the first is not trained again
    assert len(epochs[36:]) == 15 + 25
    assert left_by(root) == left_by(tmp_path / "whole")
    assert again.to_dict() == whole.to_dict()
    assert not (root / "checkpoints").exists()


def test_a_checkpoint_that_is_of_no_use_is_made_again(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.models.networks.trainer import Trainer

    settings, write = Settings(model="mlp", trials=1, folds=2, epochs=2), Trainer._write
    whole = tune(smooth(), tmp_path / "whole", settings)

    def killed(self, path):
        write(self, path)
        path.write_bytes(b"damaged")
        raise Killed

    root = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_write", killed)
        with pytest.raises(Killed):
            tune(smooth(), root, settings)
    assert tune(smooth(), root, settings).to_dict() == whole.to_dict()
