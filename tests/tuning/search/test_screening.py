"""Screening: which inputs are worth a search, and what is cached of it."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from experiments import lay_out
from tuned_experiments import open_task

from ordinate.errors import BadInput
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.search import task as search_task
from ordinate.tuning.search.fits import OutOfTime
from ordinate.tuning.search.selection import NO_TIME, screen_inputs, shortlist_inputs
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning_result import ScreeningResult


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
