"""Model selection of either task, and the nested estimate: no item selects what it evaluates."""

from dataclasses import replace

import numpy as np
import pytest
from search_cases import CASES, one_quick_task

from ordinate.tuning.search import selection
from ordinate.tuning.search.fits import FitOutputs
from ordinate.tuning.search.hyperparameter_search import search_hyperparameters
from ordinate.tuning.search.selection import estimate_nested, select_model
from ordinate.tuning.search.task import Candidate, EvaluatedCandidate
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning import NO_NESTED_NOTE


def make_settings(case, **changes):
    return case.make_settings(**{"trials": 2, "nested": True} | changes)


def forbid(monkeypatch, name: str) -> None:
    monkeypatch.setattr(selection, name, lambda *_: pytest.fail(f"{name} was called"))


# --- the best of all -----------------------------------------------------------------------------


def test_the_winner_is_the_best_candidate_and_of_equals_the_first(case, root):
    task = case.open_task(root)

    def evaluated(value):
        return EvaluatedCandidate(Candidate("", "", {}), FitOutputs(np.zeros(1)), value, None)

    low, high, same = evaluated(0.25), evaluated(0.5), evaluated(0.5)
    best, worst = (high, low) if task.direction == "maximize" else (low, high)
    assert task.select_winner([worst, best], None) is best
    assert task.select_winner([high, same], None) is high


@one_quick_task
def test_all_that_led_to_the_winner_is_told(case, root):
    task = case.open_task(root, case.make_settings(trials=1))
    found = select_model(task)
    assert found.finished
    assert found.winner is task.select_winner(found.candidates, found.ensemble)
    for study, one in zip(found.studies, found.candidates, strict=True):
        assert one.value == pytest.approx(study.best.value)
        assert one.candidate == (*study.key, study.best.params)


@one_quick_task
def test_outputs_that_nobody_kept_are_made_again(case, root):
    """A run that was killed after its trials and before its models had names leaves no others."""
    settings = case.make_settings(trials=1)
    first = case.open_task(root, settings)
    search_hyperparameters(first, first.inputs[:1] if first.screening_model is None else ["strong"])
    second = case.open_task(root, settings)
    found = select_model(second)
    assert not second.best_trials  # no trial was made again
    for one in found.candidates:
        kept = first.get_cached_outputs(one.candidate)
        assert np.array_equal(one.outputs.predictions, kept.predictions)


@pytest.mark.parametrize("case", CASES[:1], ids=lambda case: case.name, scope="session")
def test_inputs_that_are_not_searched_are_dropped(case, root):
    task = case.open_task(root, case.make_settings(trials=1))
    found = select_model(task)
    assert [one.set for one in found.screened] == ["strong", "weak"]
    assert {study.key.input for study in found.studies} == {"strong"} == task.loaded.keys()


# --- nested cross-validation ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(case, tmp_path_factory):
    """A nested run: its folder, its result, and the tasks on which models were selected."""
    root = case.lay_out(tmp_path_factory.mktemp("nested"))
    select, seen = selection.select_model, []

    def watched(task):
        seen.append(task)
        return select(task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "select_model", watched)
        return root, case.tune(root, make_settings(case)), seen


@one_quick_task
def test_each_fold_selects_and_all_items_are_evaluated_once(case, nested):
    _, result, _ = nested
    models = case.make_settings().models
    assert len(result.nested.selected) == 3
    assert all(any(model in one for model in models) for one in result.nested.selected)
    assert result.nested.finished
    assert result.nested.value == result.report.get_estimate(result.nested.evaluation).value
    text = " ".join(str(result).split())
    assert "Nested cross-validation: the whole selection in each outer fold" in text
    assert "The outer folds selected " in text
    assert all(f"{name} (" in text for name in result.nested.selected)
    assert result.rows()[-1]["stage"] == "nested"
    plain = result.to_dict()["nested"]
    assert plain["selected"] == list(result.nested.selected)
    assert plain["estimate"] == result.report.convert_evaluation(result.nested.evaluation)


@one_quick_task
def test_an_outer_fold_is_never_seen_by_its_selection(case, nested):
    root, _, seen = nested
    whole = case.open_task(root)
    every = whole.get_rows(np.arange(sum(map(len, whole.folds))))
    assert [task.subset for task in seen] == ["outer-1", "outer-2", "outer-3"]
    for task, fold in zip(seen, whole.folds, strict=True):
        rows = task.get_rows(np.arange(sum(map(len, task.folds))))
        assert sorted([*rows, *whole.get_rows(fold)]) == sorted(every)


def change_items(task, rows):
    """Return the task with other levels, or other targets, of some rows."""
    if task.name == "classification":
        levels = task.training.levels.copy()
        levels[rows] = 5 - levels[rows]
        return replace(task, training=replace(task.training, levels=levels))
    target = task.table.target.copy()
    target[rows] = 1000.0 - target[rows]
    return replace(task, table=replace(task.table, target=target))


@one_quick_task
def test_what_an_outer_fold_holds_changes_nothing_that_is_selected_or_predicted_for_it(
    case, nested, tmp_path
):
    # One trial each: what is drawn for a later one depends on a digest of all labels.
    settings = make_settings(case, trials=1)
    task = case.open_task(nested[0], settings)
    other = case.lay_out(tmp_path / "other")
    for number, fold in list(enumerate(task.folds, 1))[:2]:
        expected = selection._run_outer_fold(task, number, fold)
        changed = change_items(case.open_task(other, settings), task.get_rows(fold))
        assert selection._run_outer_fold(changed, number, fold) == expected


@one_quick_task
def test_the_selection_itself_is_the_same_without_it(case, nested, tmp_path):
    plain = case.tune(case.lay_out(tmp_path / "plain"), make_settings(case, nested=False))
    assert plain.nested is None
    assert plain.to_dict()["winning"] == nested[1].to_dict()["winning"]


@one_quick_task
def test_what_an_outer_fold_selected_is_cached(case, nested, monkeypatch):
    root, result, _ = nested
    forbid(monkeypatch, "_run_outer_fold")
    assert case.tune(root, make_settings(case)).to_dict() == result.to_dict()


@one_quick_task
def test_a_record_of_an_outer_fold_that_is_damaged_is_made_again(case, nested):
    root, result, _ = nested
    paths = sorted((root / "results/nested").iterdir())
    before = [path.read_bytes() for path in paths]
    assert len(paths) == 3
    paths[0].write_text("{}")
    paths[1].write_bytes(before[2])
    assert case.tune(root, make_settings(case)).to_dict() == result.to_dict()
    assert [path.read_bytes() for path in paths] == before


class Hurried(TimeBudget):
    """A budget with time for no trial but the first of all."""

    def count_affordable_trials(self, study, requested):
        del study, requested
        return 0


@one_quick_task
def test_a_nested_search_that_a_timeout_ended_is_told_of_and_not_cached(case, root, monkeypatch):
    one = {"models": case.model}
    case.tune(root, make_settings(case, nested=False, **one))  # the selection itself is finished
    with monkeypatch.context() as patch:
        patch.setattr(TimeBudget, "count_affordable_trials", Hurried.count_affordable_trials)
        cut = case.tune(root, make_settings(case, timeout=1e6, **one))
    assert cut.nested is None
    assert NO_NESTED_NOTE in cut.notes
    assert not (root / "results/nested").exists()
    whole = case.tune(root, make_settings(case, **one))
    assert whole.nested.finished
    assert NO_NESTED_NOTE not in whole.notes
    assert len(list((root / "results/nested").iterdir())) == 3


@one_quick_task
def test_there_is_no_estimate_of_some_folds_alone(case, root):
    """The time is over after the first outer fold, whose selection the next run finds again."""
    task = case.open_task(root, make_settings(case, models=case.model, trials=1))

    class Spent(TimeBudget):
        is_over = property(lambda _: (root / "results/nested").exists())

    assert estimate_nested(replace(task, budget=Spent())) is None
    assert len(list((root / "results/nested").iterdir())) == 1
    assert estimate_nested(task).finished


@one_quick_task
def test_outputs_of_the_best_trial_outlive_a_kill(case, root, monkeypatch):
    """A run that goes on fits nothing again, so that it can keep to its time."""
    with monkeypatch.context() as patch:
        patch.setattr(selection, "_evaluate_best_trial", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError, match="division"):
            case.tune(root)
    fit_class = case.get_fit_class()
    run = fit_class.run

    def fit_last(self, kept):
        assert self.folder, "fitted again"
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", fit_last)
    assert case.tune(root).winner
