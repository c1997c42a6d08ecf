"""The search: batches, pruning, failures, and trials that no number of processes changes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from experiments import lay_out

from ordinate.classify import hyperparameter_search as searching
from ordinate.classify.hyperparameter_search import search_hyperparameters
from ordinate.classify.search_context import SearchContext
from ordinate.classify.settings import Settings
from ordinate.classify.training_data import TrainingData
from ordinate.errors import BadInput
from ordinate.experiment.folder import Experiment
from ordinate.experiment.workers import WorkerPool
from ordinate.models.classifiers import MODEL_TYPES

SETTINGS = Settings(models="logistic", folds=3, trials=4)


@pytest.fixture
def context(tmp_path):
    root = lay_out(tmp_path, n=36, sets=("strong", "weak"))
    with WorkerPool(1) as workers:
        yield SearchContext(TrainingData.of(Experiment.open(root)), SETTINGS, workers)


@pytest.fixture
def unfitted(monkeypatch):
    """Trials that fit nothing, for tests of which are made and when."""
    monkeypatch.setattr(searching, "fit_fold", lambda *_: np.full((1, 6), 1 / 6))
    monkeypatch.setattr(searching, "_compute_interim_objective", lambda *_: math.nan)
    monkeypatch.setattr(
        searching, "_finish_trial", lambda _, batch, trial: batch.finish(trial.pending.number, 0.5)
    )


def test_the_first_trial_has_the_defaults_and_the_best_is_the_best_of_all(context):
    (found,), finished = search_hyperparameters(context, ["strong"])
    assert finished
    assert found.trials[0].params == MODEL_TYPES["logistic"].defaults
    assert found.best.value == max(trial.value for trial in found.trials)
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]


@pytest.mark.usefixtures("unfitted")
def test_each_set_and_each_model_type_has_a_study_of_its_own(context):
    both = replace(context, settings=replace(SETTINGS, models="logistic,regression"))
    found, _ = search_hyperparameters(both, ["strong", "weak"])
    assert [(one.set, one.model_type) for one in found] == [
        ("strong", "logistic"),
        ("strong", "regression"),
        ("weak", "logistic"),
        ("weak", "regression"),
    ]


@pytest.mark.usefixtures("unfitted")
def test_studies_take_turns_so_that_a_timeout_leaves_none_behind(context, monkeypatch):
    turns = []
    turn = searching._run_next_batch

    def watched(context, name, kind, batches):
        more = turn(context, name, kind, batches)
        turns.append((name, more))
        return more

    monkeypatch.setattr(searching, "_run_next_batch", watched)
    search_hyperparameters(
        replace(context, settings=replace(SETTINGS, trials=8)), ["strong", "weak"]
    )
    assert [name for name, more in turns if more] == ["strong", "weak", "strong", "weak"]


class Clock:
    """A clock that a test turns on."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def timed(context, clock, *, lasts, trials=12):
    """Return a context with a timeout of 10 s on which each turn lasts some seconds."""
    settings = replace(SETTINGS, trials=trials, timeout=10.0)
    turn = searching._run_next_batch

    def slow(*given):
        clock.now += lasts
        return turn(*given)

    return replace(context, settings=settings, clock=clock, started=clock.now), slow


@pytest.mark.usefixtures("unfitted")
@pytest.mark.parametrize(
    ("lasts", "made"),
    [(20.0, (4, 4)), (4.0, (8, 4)), (3.0, (8, 8)), (0.5, (12, 12))],
    ids=["at once", "within a round", "after a round", "never"],
)
def test_a_timeout_is_looked_at_before_each_batch_but_the_first_of_a_study(
    context, clock, monkeypatch, lasts, made
):
    late, slow = timed(context, clock, lasts=lasts)
    monkeypatch.setattr(searching, "_run_next_batch", slow)
    found, finished = search_hyperparameters(late, ["strong", "weak"])
    assert tuple(len(one.trials) for one in found) == made
    assert finished == (made == (12, 12))


def test_a_subset_of_the_items_has_no_clock_of_its_own(context, clock):
    late, _ = timed(context, clock, lasts=0.0)
    clock.now = 9.0
    assert not late.restrict_to_rows(np.arange(20), "outer-1").is_timed_out
    clock.now = 10.0
    assert late.restrict_to_rows(np.arange(20), "outer-1").is_timed_out


def test_where_zero_is_best_a_trial_keeps_the_side_on_which_it_errs(context, monkeypatch):
    monkeypatch.setattr(searching, "compute_value", lambda *_: (-0.25, None))
    zero = replace(context, settings=replace(SETTINGS, metric="bias", trials=2))
    (found,), _ = search_hyperparameters(zero, ["strong"])
    assert [trial.value for trial in found.trials] == [0.25, 0.25]
    assert [trial.attributes for trial in found.trials] == [{"signed_value": -0.25}] * 2


def test_a_trial_that_cannot_be_fitted_fails_with_its_reason_and_the_others_go_on(
    context, monkeypatch
):
    fit = searching.fit_fold

    def failing(kept, task):
        if task.candidate.params["C"] == MODEL_TYPES["logistic"].defaults["C"]:
            raise BadInput("this one cannot be fitted")
        return fit(kept, task)

    monkeypatch.setattr(searching, "fit_fold", failing)
    (found,), finished = search_hyperparameters(context, ["strong"])
    assert finished
    assert (found.trials[0].state, found.trials[0].reason) == (
        "failed",
        "this one cannot be fitted",
    )
    assert all(trial.state == "complete" for trial in found.trials[1:])
    assert found.best.number != 0


def test_a_metric_that_is_undefined_fails_the_trial_with_the_reason(context, monkeypatch):
    monkeypatch.setattr(searching, "compute_value", lambda *_: (math.nan, "there is no such thing"))
    (found,), _ = search_hyperparameters(context, ["strong"])
    assert {trial.reason for trial in found.trials} == {
        "cem_ord is undefined: there is no such thing."
    }
    assert found.best is None


def test_a_hopeless_trial_is_given_up_after_some_folds(context, monkeypatch):
    """The sixth and later trials are judged by the median of those before them."""
    rough = searching.predict_rough_levels
    fitted = []

    def worse(answers, gold, size):
        early = len(fitted) < 8 * 2  # two batches, two folds each
        return rough(answers, gold, size) if early else (gold + size // 2) % size

    def watched(context, trial, so_far=searching._compute_interim_objective):
        found = so_far(context, trial)
        fitted.append(trial.pending.number)
        return found

    monkeypatch.setattr(searching, "predict_rough_levels", worse)
    monkeypatch.setattr(searching, "_compute_interim_objective", watched)
    settings = replace(SETTINGS, trials=12)
    (found,), _ = search_hyperparameters(replace(context, settings=settings), ["strong"])
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.number >= 8 for trial in pruned)
    assert all(trial.value is None and trial.steps for trial in pruned)


def test_trials_are_the_same_for_two_processes(context, tmp_path):
    expected, _ = search_hyperparameters(context, ["strong"])
    root = lay_out(tmp_path / "other", n=36, sets=("strong", "weak"))
    with WorkerPool(2) as workers:
        other = SearchContext(TrainingData.of(Experiment.open(root)), SETTINGS, workers)
        found, _ = search_hyperparameters(other, ["strong"])
    assert found == expected


def test_progress_has_the_share_and_the_best_value_so_far(context):
    told = []
    search_hyperparameters(replace(context, progress=lambda *words: told.append(words)), ["strong"])
    assert told[0] == ("searching", 0.0, "")
    assert told[-1][:2] == ("searching", 1.0)
    assert told[-1][2].startswith("best cem_ord 0.")
