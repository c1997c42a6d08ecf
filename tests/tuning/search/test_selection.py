"""Model selection of either task, and the nested estimate: no item selects what it evaluates."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from experiments import lay_out
from search_cases import CASES, one_quick_task
from tuned_experiments import open_task

from ordinate.errors import BadInput
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.search import selection
from ordinate.tuning.search import task as search_task
from ordinate.tuning.search.fits import FitOutputs, OutOfTime
from ordinate.tuning.search.hyperparameter_search import search_hyperparameters
from ordinate.tuning.search.selection import (
    NO_TIME,
    estimate_nested,
    screen_inputs,
    select_model,
    shortlist_inputs,
)
from ordinate.tuning.search.task import Candidate, EvaluatedCandidate
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning import NO_NESTED_NOTE
from ordinate.tuning.search.tuning_result import ScreeningResult


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


# --- screening -----------------------------------------------------------------------------------


def shortlist(settings: Settings, **values: float) -> list[ScreeningResult]:
    """Return sets as they come out where screening found these values; nan is one that failed."""
    task = SimpleNamespace(
        settings=settings,
        metric=settings.metric,
        compute_merit=settings.merit,
        format_value="{:.3f}".format,
    )
    screened = [
        ScreeningResult(name, 5, "by id", None, value, "why" if math.isnan(value) else None)
        for name, value in values.items()
    ]
    return shortlist_inputs(task, screened)


def searched(screened: list[ScreeningResult]) -> list[str]:
    return [one.set for one in screened if one.shortlisted]


def forbid_fits(monkeypatch) -> None:
    monkeypatch.setattr(search_task, "run_fit", lambda *_: pytest.fail("fitted again"))


@pytest.fixture(scope="module")
def screened(tmp_path_factory):
    """An experiment that was screened: its folder, what was found, and the files of that."""
    root = lay_out(tmp_path_factory.mktemp("screened"), sets=("noise", "strong", "weak"))
    return root, screen_inputs(open_task(root)), read_records(root)


@pytest.fixture
def root(screened):
    """The folder, with its records as they were."""
    root, _, records = screened
    yield root
    for name, content in records.items():
        (root / "results/screening" / name).write_bytes(content)


def read_records(root) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "results/screening").iterdir()}


def test_sets_come_out_best_first_with_their_intervals_and_baselines(screened):
    _, found, _ = screened
    assert [one.set for one in found] == ["strong", "weak", "noise"]
    strong, _, noise = (one.evaluation for one in found)
    assert strong.bounds[0] < strong.value < strong.bounds[1]
    assert not strong.by_chance
    assert noise.by_chance
    assert strong.score.beats_constant


def test_what_was_screened_is_found_again_and_not_fitted(screened, monkeypatch):
    root, found, _ = screened
    forbid_fits(monkeypatch)
    assert screen_inputs(open_task(root)) == found


def test_what_is_left_out_of_the_digest_changes_nothing_that_is_cached(screened, monkeypatch):
    root, found, _ = screened
    forbid_fits(monkeypatch)
    again = screen_inputs(open_task(root, top_k=1, trials=7, jobs=2))
    assert [(one.set, one.value) for one in again] == [(one.set, one.value) for one in found]


def test_the_interval_belongs_to_one_confusion_matrix_of_all_folds(screened):
    root, (strong, *_), records = screened
    task = open_task(root)
    (name,) = (name for name in records if name.startswith("strong-"))
    stored = json.loads(records[name])["predictions"]
    predictions = task.decode_predictions(stored, 60)
    assert strong.evaluation == task.evaluate(predictions)
    assert strong.value == task.score(predictions).objective


def test_progress_has_the_share_and_the_best_value_so_far(screened):
    root, *_ = screened
    task, told = open_task(root), []
    object.__setattr__(task, "progress", lambda *words: told.append(words))
    screen_inputs(task)
    assert [share for _, share, _ in told] == [0.0, 1 / 3, 2 / 3]
    assert {stage for stage, *_ in told} == {"screening"}
    assert told[0][2] == ""
    assert told[2][2].startswith("best cem_ord 0.")


# --- what cannot be screened ---------------------------------------------------------------------


def test_a_set_that_nothing_can_be_learned_from_says_why_and_the_others_go_on(
    tmp_path, monkeypatch
):
    root = lay_out(tmp_path, n=36, sets=("noise", "strong"))
    predict = ClassificationTask.predict_out_of_fold

    def failing(task, candidate, outputs):
        if candidate.input == "noise":
            raise BadInput("there is nothing in it")
        return predict(task, candidate, outputs)

    monkeypatch.setattr(ClassificationTask, "predict_out_of_fold", failing)
    strong, noise = screen_inputs(open_task(root))
    assert (strong.set, strong.shortlisted, strong.failed) == ("strong", True, None)
    assert (noise.failed, noise.discard_reason) == (
        "there is nothing in it",
        "it failed in screening",
    )
    assert noise.evaluation is None
    forbid_fits(monkeypatch)
    assert screen_inputs(open_task(root))[1].failed == "there is nothing in it"


def test_a_metric_that_is_undefined_is_a_failure_with_its_reason(screened):
    root, *_ = screened
    settings = {"metric": "krippendorff_alpha", "weight_strategy": "inverse", "weight_metric": True}
    labels = ["A1" if i % 3 else "B1" for i in range(36)]
    lay_out(root / "unbalanced", labels=labels, sets=("strong",))
    with pytest.raises(BadInput, match=r"Nothing can be learned .*undefined: .*integer counts"):
        screen_inputs(open_task(root / "unbalanced", **settings))


def test_when_the_time_is_over_what_is_not_screened_is_not_searched(tmp_path, monkeypatch):
    root = lay_out(tmp_path, n=36, sets=("noise", "strong", "weak"))
    with pytest.raises(OutOfTime, match="before any model was fitted"):
        screen_inputs(open_task(root, budget=TimeBudget(0.0)))
    assert not (root / "results/screening").exists()
    with monkeypatch.context() as patch:
        patch.setattr(TimeBudget, "is_over", property(lambda _: bool(list(root.rglob("noise-*")))))
        late = screen_inputs(open_task(root))
    assert searched(late) == ["noise"]
    assert {one.discard_reason for one in late[1:]} == {
        "there was no time to screen it (--timeout)"
    }
    assert len(read_records(root)) == 1  # so that the next run screens the others
    assert searched(screen_inputs(open_task(root, top_k=1))) == ["strong"]


def test_a_feature_set_without_time_is_named_though_an_earlier_one_failed(screened):
    """Time, not the data, is what a search lacks of which some was not screened."""
    task = open_task(screened[0], budget=TimeBudget(1.0))
    nothing = ScreeningResult("empty", 1, "", None, math.nan, failed="there is nothing in it")
    late = replace(nothing, set="late", failed=NO_TIME)
    with pytest.raises(OutOfTime):
        shortlist_inputs(task, [nothing, late])
    with pytest.raises(BadInput, match="empty: there is nothing in it"):
        shortlist_inputs(task, [nothing])


def test_what_is_cached_takes_no_time(screened):
    root, found, _ = screened
    assert screen_inputs(open_task(root, budget=TimeBudget(0.0))) == found


# --- damaged records -----------------------------------------------------------------------------


def check_made_again(screened) -> None:
    root, found, records = screened
    assert read_records(root) != records
    assert screen_inputs(open_task(root)) == found
    assert read_records(root) == records


def test_a_record_that_cannot_be_read_is_made_again(screened, root):
    for path in (root / "results/screening").iterdir():
        path.write_text("{")
    check_made_again(screened)


@pytest.mark.parametrize("level", [99, True], ids=str)
def test_a_record_with_predictions_that_are_none_is_made_again(screened, root, level):
    for path in (root / "results/screening").iterdir():
        record = json.loads(path.read_text())
        del record["digest"]
        record["predictions"]["metric_optimal"][0] = level
        digest = compute_digest({"name": path.name, "record": record}, length=64)
        path.write_text(json.dumps(record | {"digest": digest}))
    check_made_again(screened)


def test_a_record_that_is_not_as_it_was_written_is_made_again(screened, root):
    for path in (root / "results/screening").iterdir():
        record = json.loads(path.read_text())
        levels = record["predictions"]["metric_optimal"]
        record["predictions"]["metric_optimal"] = [(level + 1) % 6 for level in levels]
        path.write_text(json.dumps(record))
    check_made_again(screened)


def test_a_record_under_the_name_of_another_is_made_again(screened, root):
    first, *others = sorted((root / "results/screening").iterdir())
    for other in others:
        other.write_bytes(first.read_bytes())
    check_made_again(screened)


# --- which are searched --------------------------------------------------------------------------


def test_the_best_k_are_searched():
    screened = shortlist(Settings(top_k=2), a=0.5, b=0.7, c=0.6)
    assert searched(screened) == ["b", "c"]
    assert screened[-1].discard_reason == "not among the best 2 (--top-k)"


def test_of_equal_sets_the_first_is_searched():
    assert searched(shortlist(Settings(top_k=1), b=0.5, a=0.5 + 1e-15)) == ["b"]


@pytest.mark.parametrize(
    ("metric", "threshold", "left"),
    [("cem_ord", 0.55, ["b", "c"]), ("mae", 0.55, ["a"]), ("bias", 0.65, ["a", "c"])],
)
def test_a_threshold_discards_what_is_worse_in_the_direction_of_the_metric(metric, threshold, left):
    settings = Settings(metric=metric, early_discard_threshold=threshold)
    screened = shortlist(settings, a=0.5, b=0.7, c=-0.6 if metric == "bias" else 0.6)
    assert sorted(searched(screened)) == left
    assert all(
        "--early-discard-threshold" in one.discard_reason for one in screened if not one.shortlisted
    )


def test_a_value_equal_to_the_threshold_stays():
    settings = Settings(early_discard_threshold=0.5)
    assert searched(shortlist(settings, a=0.5)) == ["a"]


@pytest.mark.parametrize(
    ("metric", "percentile", "left"),
    [("cem_ord", 50, ["a", "b", "c"]), ("mae", 50, ["c", "d", "e"]), ("cem_ord", 100, ["a"])],
)
def test_a_percentile_discards_what_is_worse_than_it(metric, percentile, left):
    settings = Settings(metric=metric, early_discard_percentile=float(percentile))
    screened = shortlist(settings, a=0.9, b=0.8, c=0.7, d=0.6, e=0.5)
    assert sorted(searched(screened)) == left


def test_a_set_that_failed_is_last_and_never_searched():
    screened = shortlist(Settings(early_discard_percentile=0.0), bad=math.nan, good=0.1)
    assert [(one.set, one.shortlisted) for one in screened] == [("good", True), ("bad", False)]


def test_no_set_left_is_an_error_that_says_the_best_value():
    with pytest.raises(BadInput, match=r"the best of them, b, has cem_ord 0\.700"):
        shortlist(Settings(early_discard_threshold=0.8), a=0.5, b=0.7)
    with pytest.raises(BadInput, match=r"Nothing can be learned from any feature set. a: why"):
        shortlist(Settings(), a=math.nan)
