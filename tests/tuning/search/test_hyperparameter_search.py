"""The search of either task: turns, pruning, failures, and words about how far it is."""

import math
from dataclasses import replace

import pytest
from search_cases import one_quick_task

from ordinate.errors import BadInput, NotApplicable
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.search import hyperparameter_search
from ordinate.tuning.search import task as search_task
from ordinate.tuning.search.fits import FitOutputs
from ordinate.tuning.search.hyperparameter_search import search_hyperparameters


@pytest.fixture
def task(case, root):
    return case.open_task(root, case.make_settings(models=case.model, trials=4))


@pytest.fixture
def unfitted(monkeypatch):
    """Trials that fit nothing, for tests of which are made and when."""
    monkeypatch.setattr(search_task, "run_fit", lambda *_: FitOutputs([0.0]))
    monkeypatch.setattr(hyperparameter_search, "_record_folds", lambda *_: True)
    monkeypatch.setattr(
        hyperparameter_search,
        "_finish_trial",
        lambda _, batch, trial: batch.finish(trial.pending.number, 0.5),
    )


def get_defaults(task):
    (model_type,) = task.settings.model_types
    _, (defaults,) = task.get_space(model_type)
    return defaults


def test_the_first_trial_has_the_defaults_and_the_best_is_the_best_of_all(task):
    (found,) = search_hyperparameters(task, task.inputs[:1])
    assert found.finished
    assert found.trials[0].params == get_defaults(task)
    best = max if task.direction == "maximize" else min
    assert found.best.value == best(trial.value for trial in found.trials if trial.value)
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]


@pytest.mark.usefixtures("unfitted")
def test_each_input_and_each_model_type_has_a_study_of_its_own(case, root):
    task = case.open_task(root)
    found = search_hyperparameters(task, task.inputs)
    pairs = [(name, model) for name in task.inputs for model in task.settings.model_types]
    assert [one.key for one in found] == pairs


@pytest.mark.usefixtures("unfitted")
def test_studies_take_turns_so_that_a_timeout_leaves_none_behind(case, root, monkeypatch):
    order, run = [], hyperparameter_search._run_batch

    def logged(task, key, batch, *given):
        order.append((key.model_type, [one.number for one in batch.pending]))
        run(task, key, batch, *given)

    monkeypatch.setattr(hyperparameter_search, "_run_batch", logged)
    task = case.open_task(root, case.make_settings(trials=6))
    search_hyperparameters(task, task.inputs[:1])
    turns = [[0], [1, 2, 3], [4, 5]]  # the defaults, the rest of that batch, the next one
    assert order == [(model, turn) for turn in turns for model in task.settings.model_types]


def test_a_trial_that_cannot_be_fitted_fails_with_its_reason_and_the_others_go_on(
    case, task, monkeypatch
):
    fit_class, defaults = case.get_fit_class(), get_defaults(task)
    run = fit_class.run

    def failing(self, kept):
        if self.params == defaults:
            raise BadInput("this one cannot be fitted")
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", failing)
    (found,) = search_hyperparameters(task, task.inputs[:1])
    assert found.finished
    first, *others = found.trials
    assert (first.state, first.reason) == ("failed", "this one cannot be fitted")
    assert all(trial.state == "complete" for trial in others)
    assert found.best.number != 0


def test_a_metric_that_is_undefined_fails_the_trial_with_the_reason(task, monkeypatch):
    def undefined(*_):
        raise NotApplicable("there is no such thing")

    monkeypatch.setattr(type(task), "score", undefined)
    (found,) = search_hyperparameters(task, task.inputs[:1])
    assert {trial.reason for trial in found.trials} == {"there is no such thing"}
    assert found.best is None


@one_quick_task
def test_a_hopeless_trial_is_given_up_after_some_folds(task, monkeypatch):
    """The sixth and later trials are compared with the median of those before them."""
    task = replace(task, settings=replace(task.settings, trials=12))
    interim, done = type(task).compute_interim_objective, []
    hopeless = -math.inf if task.direction == "maximize" else math.inf

    def worse(self, folds):
        done.append(len(folds))
        early = len(done) <= 8 * 2  # two batches, two folds each
        return interim(self, folds) if early else hopeless

    monkeypatch.setattr(type(task), "compute_interim_objective", worse)
    (found,) = search_hyperparameters(task, task.inputs[:1])
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert [trial.number for trial in pruned] == [8, 9, 10, 11]
    assert all(trial.value is None and len(trial.steps) == 1 for trial in pruned)


def test_progress_has_the_share_and_the_best_value_so_far(task):
    told = []
    task = replace(task, progress=lambda *words: told.append(words))
    (found,) = search_hyperparameters(task, task.inputs[:1])
    assert told[0] == ("searching", 0.0, "")
    shares = [share for _, share, _ in told]
    assert shares == sorted(shares)
    assert {1 / 12, 2 / 12} < set(shares)  # each of four trials has three folds
    best = f"best {task.metric} {task.format_value(found.best.value)}"
    assert told[-1] == ("searching", 1.0, best)


def test_a_subset_of_the_items_is_named_in_progress(task):
    told = []
    task = replace(task, progress=lambda *words: told.append(words), subset="outer-1")
    task.report_progress("searching", 0.5)
    assert told == [("searching (outer-1)", 0.5, "")]


def test_later_folds_are_fitted_ahead_where_there_are_processes_to_spare(task, monkeypatch):
    widths, fit = [], hyperparameter_search._fit_folds_of_trials

    def logged(task, batch, folds, live, progress):
        widths.append((len(live), len(folds)))
        return fit(task, batch, folds, live, progress)

    def attempt_here(workers, function, fits, _):
        return [function(workers._kept, fit) for fit in fits]

    monkeypatch.setattr(hyperparameter_search, "_fit_folds_of_trials", logged)
    monkeypatch.setattr(WorkerPool, "attempt", attempt_here)
    search_hyperparameters(replace(task, workers=WorkerPool(8)), task.inputs[:1])
    assert widths == [(1, 3), (3, 2), (3, 1)]
