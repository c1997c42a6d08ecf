"""Screening: which feature sets are worth a search, and what is kept of it."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from experiments import CEFR, lay_out
from ordinate.classify.screening import screen_feature_sets, shortlist_sets
from ordinate.classify.search_context import SearchContext
from ordinate.classify.tuning_result import ScreeningResult

from ordinate.classify.settings import Settings
from ordinate.classify.training_data import TrainingData
from ordinate.errors import BadInput
from ordinate.experiment.folder import Experiment
from ordinate.experiment.workers import WorkerPool


def context(root, **settings) -> SearchContext:
    options = {"models": "logistic", "folds": 3} | settings
    return SearchContext(TrainingData.of(Experiment.open(root)), Settings(**options), WorkerPool(1))


def found(**values: float) -> list[ScreeningResult]:
    """Return sets as screening finds them; nan is one that failed."""
    return [
        ScreeningResult(
            name, 5, "by id", SimpleNamespace(value=value), "why" if math.isnan(value) else None
        )
        for name, value in values.items()
    ]


def kept(screened: list[ScreeningResult]) -> list[str]:
    return [one.set for one in screened if one.shortlisted]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("screened"), sets=("noise", "strong", "weak"))


def test_sets_come_out_best_first_with_their_intervals_and_baselines(root):
    screened = screen_feature_sets(context(root))
    assert [one.set for one in screened] == ["strong", "weak", "noise"]
    strong, _, noise = (one.evaluation for one in screened)
    assert strong.bounds[0] < strong.value < strong.bounds[1]
    assert not strong.by_chance
    assert noise.by_chance
    assert strong.score.beats_constant


def test_what_was_screened_is_found_again_and_not_fitted(root, monkeypatch):
    before = screen_feature_sets(context(root))
    again = context(root)
    monkeypatch.setattr(again.workers, "attempt", lambda *_: pytest.fail("fitted again"))
    assert screen_feature_sets(again) == before


@pytest.mark.parametrize(
    "options",
    [{"folds": 4}, {"metric": "mae"}, {"seed": 1}, {"decode": "argmax"}],
    ids=["folds", "metric", "seed", "decode"],
)
def test_other_settings_are_screened_anew(root, options):
    first, other = context(root), context(root, **options)
    assert first.compute_digest("strong") != other.compute_digest("strong")


@pytest.mark.parametrize("options", [{"top_k": 1}, {"trials": 7}, {"jobs": 2}], ids=str)
def test_settings_that_change_no_value_share_what_is_cached(root, options):
    first, other = context(root), context(root, **options)
    assert first.compute_digest("strong") == other.compute_digest("strong")


def test_a_changed_label_is_screened_anew(root, tmp_path):
    labels = ["C2", *(CEFR[i % 6] for i in range(1, 60))]
    other = lay_out(tmp_path, labels=labels, sets=("noise", "strong", "weak"))
    assert context(root).compute_digest() != context(other).compute_digest()


def test_the_interval_belongs_to_the_pooled_table_of_all_folds(root):
    (strong, *_) = screen_feature_sets(context(root))
    own = context(root)
    path = root / f"results/screening/strong-{own.compute_digest('strong', kind='logistic')}.json"
    levels = np.array(json.loads(path.read_text())["levels"]["metric_optimal"])
    whole = own.items.count_confusion(levels)
    assert whole.n == 60
    assert strong.evaluation.value == own.settings.measure(whole)


# --- which are searched --------------------------------------------------------------------------


def test_the_best_k_are_kept():
    screened = shortlist_sets(found(a=0.5, b=0.7, c=0.6), Settings(top_k=2))
    assert kept(screened) == ["b", "c"]
    assert screened[-1].discard_reason == "not among the best 2 (--top-k)"


def test_of_equal_sets_the_first_is_kept():
    assert kept(shortlist_sets(found(b=0.5, a=0.5 + 1e-15), Settings(top_k=1))) == ["b"]


@pytest.mark.parametrize(
    ("metric", "threshold", "left"),
    [("cem_ord", 0.55, ["b", "c"]), ("mae", 0.55, ["a"]), ("bias", 0.65, ["a", "c"])],
)
def test_a_threshold_discards_what_is_worse_in_the_direction_of_the_metric(metric, threshold, left):
    settings = Settings(metric=metric, early_discard_threshold=threshold)
    screened = shortlist_sets(found(a=0.5, b=0.7, c=-0.6 if metric == "bias" else 0.6), settings)
    assert sorted(kept(screened)) == left
    assert all(
        "--early-discard-threshold" in one.discard_reason for one in screened if not one.shortlisted
    )


def test_a_value_equal_to_the_threshold_stays():
    settings = Settings(early_discard_threshold=0.5)
    assert kept(shortlist_sets(found(a=0.5), settings)) == ["a"]


@pytest.mark.parametrize(
    ("metric", "percentile", "left"),
    [("cem_ord", 50, ["a", "b", "c"]), ("mae", 50, ["c", "d", "e"]), ("cem_ord", 100, ["a"])],
)
def test_a_percentile_discards_what_is_worse_than_it(metric, percentile, left):
    values = found(a=0.9, b=0.8, c=0.7, d=0.6, e=0.5)
    settings = Settings(metric=metric, early_discard_percentile=float(percentile))
    assert sorted(kept(shortlist_sets(values, settings))) == left


def test_a_set_that_failed_is_last_and_never_searched():
    screened = shortlist_sets(found(bad=math.nan, good=0.1), Settings(early_discard_percentile=0.0))
    assert [(one.set, one.shortlisted) for one in screened] == [("good", True), ("bad", False)]


def test_no_set_left_is_an_error_that_says_the_best_value():
    with pytest.raises(BadInput, match=r"the best of them, b, has cem_ord 0\.700"):
        shortlist_sets(found(a=0.5, b=0.7), Settings(early_discard_threshold=0.8))
    with pytest.raises(BadInput, match=r"Nothing can be learned from any feature set. a: why"):
        shortlist_sets(found(a=math.nan), Settings())
