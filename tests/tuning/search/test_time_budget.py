"""The timeout of a search of either task: what there is time for, and how the next run goes on."""

import time
from dataclasses import replace

import pytest
from search_cases import CASES, one_quick_task, read_untimed_files

from ordinate.tuning.search.fits import OutOfTime, run_fit
from ordinate.tuning.search.selection import select_model
from ordinate.tuning.search.task import Candidate
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning import NO_NESTED_NOTE, UNFINISHED_NOTE


class Clock:
    """A clock that a test turns on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_budget_affords_what_there_is_time_for():
    clock = Clock()
    budget = TimeBudget(100.0, folds=5, jobs=1, clock=clock)
    assert budget.count_affordable_trials("slow", 4) == 1  # nobody knows how long it takes
    budget.record_trial("slow", 20.0)
    clock.now = 20.0
    # 80 seconds less 8 for the last fit, with caution
    assert budget.count_affordable_trials("slow", 4) == 2
    assert not budget.is_over
    clock.now = 90.0
    assert budget.count_affordable_trials("slow", 4) == 0
    assert not budget.is_over
    clock.now = 93.0
    assert budget.count_affordable_trials("another", 4) == 0
    assert budget.is_over


def test_without_a_timeout_there_is_time_for_everything():
    budget = TimeBudget(None, folds=5)
    budget.record_trial("slow", 1e9)
    assert budget.count_affordable_trials("slow", 4) == 4
    assert (budget.end, budget.is_over) == (None, False)


@pytest.mark.parametrize(("folds", "last"), [(1, 30.0), (2, 120.0), (5, 11.71875)])
def test_the_time_of_a_last_fit_is_that_of_costs_which_grow_as_cubes(folds, last):
    """Without folds it is the fit that was evaluated; with 5, on five folds instead of four."""
    budget = TimeBudget(1000.0, folds=folds, clock=lambda: 0.0)
    budget.record_trial("gp", 30.0)
    assert budget.end == pytest.approx(1000.0 - last)


@pytest.fixture
def began(case, monkeypatch):
    """When fits began, and whether for the last time; each of them takes a second."""
    clock, began = Clock(), []
    fit_class = case.get_fit_class()
    run = fit_class.run

    def run_a_second(self, kept):
        began.append((clock.now, self.folder is not None))
        clock.now += 1.0
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", run_a_second)
    monkeypatch.setattr(time, "monotonic", clock)
    return began


@one_quick_task
@pytest.mark.parametrize("nested", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_fit_begins_when_the_time_is_over_but_the_last_one_of_the_winner(
    case, root, tmp_path, began, nested
):
    """The same search goes on until it is done, 4.5 seconds at a time."""
    settings = {"trials": 1, "nested": nested}
    counts = []
    while True:
        began.clear()
        start = time.monotonic()
        try:
            result = case.tune(root, case.make_settings(timeout=4.5, **settings))
        except OutOfTime:
            result = None
        late = [last for when, last in began if when >= start + 4.5]
        assert late in ([], [True]), began
        assert result or not late
        counts.append(len(began))
        if result and not {UNFINISHED_NOTE, NO_NESTED_NOTE} & set(result.notes):
            break
        assert began
    assert len(counts) > 1
    whole = case.tune(case.lay_out(tmp_path / "whole"), case.make_settings(**settings))
    assert result.to_dict() == whole.to_dict()


@one_quick_task
def test_the_best_model_is_fitted_a_last_time_when_the_time_is_over_and_no_other(
    case, root, finished, began
):
    select_model(case.open_task(root))
    began.clear()
    cut = case.tune(root, case.make_settings(timeout=0.0))
    assert [last for _, last in began] == [True]
    assert cut.finalists == [cut.winner]
    (late,) = (one.title for one in cut.studies if one.best is None)
    assert {UNFINISHED_NOTE, f"There was no time for the last fit of {late}."} <= set(cut.notes)
    assert case.load(root).name == cut.winner.name
    assert case.tune(root).to_dict() == finished[1].to_dict()


@pytest.mark.usefixtures("began")
def test_no_time_for_any_model_is_an_error_that_says_how_long_one_takes(case, root):
    with pytest.raises(OutOfTime, match=r"there is no model\. Allow more: with the same folder"):
        case.tune(root, case.make_settings(timeout=0.0))
    needed = (
        "Screening and one trial take up to about 9.0 s"
        if case.name == "classification"
        else ("One trial takes up to about 3.0 s")
    )
    with pytest.raises(OutOfTime, match=rf"\(--timeout 1.5\) was over .* {needed}"):
        case.tune(root, case.make_settings(timeout=1.5))


@pytest.mark.usefixtures("began")
def test_time_for_one_trial_leaves_one_model_and_says_so(case, root):
    timeout = 8.5 if case.name == "classification" else 2.5
    result = case.tune(root, case.make_settings(timeout=timeout))
    assert [len(one.trials) for one in result.studies] == [1, 0]
    assert UNFINISHED_NOTE in result.notes
    assert f"There was no time for {result.studies[1].title}." in result.notes
    assert "The timeout ended the search" in " ".join(str(result).split())
    assert case.load(root).name == result.winner.name


@one_quick_task
def test_a_search_that_was_cut_goes_on_to_the_same_end(case, root, finished, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(TimeBudget, "end", -1.0)
        with pytest.raises(OutOfTime, match="there is no model"):
            case.tune(root, case.make_settings(timeout=1e6))
    assert case.tune(root).to_dict() == finished[1].to_dict()


@one_quick_task
def test_a_timeout_that_was_long_enough_changes_no_file(case, root, finished):
    case.tune(root, case.make_settings(timeout=1e6))
    assert read_untimed_files(root) == read_untimed_files(finished[0])


@one_quick_task
@pytest.mark.usefixtures("began")
def test_the_time_of_screening_and_of_the_nested_estimate_counts(case, root):
    timeout = 8.5 if case.name == "classification" else 2.5
    result = case.tune(root, case.make_settings(timeout=timeout, nested=True))
    assert result.nested is None
    assert NO_NESTED_NOTE in result.notes
    assert not list(root.glob("results/nested/*"))
    whole = case.tune(root, case.make_settings(models=case.model, trials=1, nested=True))
    assert whole.nested.finished
    assert not [one.failed for one in whole.screened if one.failed]


def test_a_subset_of_the_items_has_no_clock_of_its_own(case, root):
    clock = Clock()
    task = replace(case.open_task(root), budget=TimeBudget(10.0, clock=clock))
    inner = task.restrict_to_rest(task.folds[0], "outer-1")
    clock.now = 9.0
    assert not inner.budget.is_over
    clock.now = 10.0
    assert inner.budget.is_over


# --- fits ----------------------------------------------------------------------------------------


def make_fits(case, root, models, end):
    task = case.open_task(root, case.make_settings(models=models))
    name = task.inputs[0]
    task.load_input(name)
    fits = [task.make_fold_fits(Candidate(name, model, {}))[0] for model in task.settings.models]
    return task, [replace(fit, end=end) for fit in fits]


def test_no_fit_begins_when_its_time_is_over(case, root, monkeypatch):
    task, fits = make_fits(case, root, case.quick["models"], -1.0)
    monkeypatch.setattr(case.get_fit_class(), "run", None)  # nobody comes so far
    found = task.workers.attempt(run_fit, fits)
    assert [type(one) for one in found] == [OutOfTime] * 2


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.name, scope="session")
def test_a_fit_that_runs_ends_with_its_time_unless_it_is_one_step(case, root, monkeypatch):
    clock = Clock()
    task, fits = make_fits(case, root, "lightgbm,poly_ridge", 1.0)
    fit_class = case.get_fit_class()
    train = fit_class._train
    monkeypatch.setattr(time, "monotonic", clock)

    def late(self, *given):
        clock.now = 2.0
        train(self, *given)

    monkeypatch.setattr(fit_class, "_train", late)
    found = []
    for fit in fits:
        clock.now = 0.0
        found += task.workers.attempt(run_fit, [fit])
    assert isinstance(found[0], OutOfTime)
    assert len(found[1].predictions)
