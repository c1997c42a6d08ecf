"""Doubts: what the study of coverage found is said of tables like those of the study."""

import csv
from importlib.resources import files

import numpy as np
import pytest
from oracles import confusion, labels, sample
from strategies import scale_of

from ordinate.inference import ConfidenceIntervals, estimate_metrics, small_samples
from ordinate.inference.small_samples import (
    STUDIED_LEVELS,
    STUDIED_SIZES,
    describe_undercoverage,
)
from ordinate.metrics import find_metric
from ordinate.results import evaluate
from ordinate.summaries import ConfusionMatrix

KNOWN = {
    ("mae", 3, 20, "balanced"): 0.81,
    ("mae", 3, 200, "balanced"): 0.862,
    ("mae", 3, 200, "1:100"): 0.7,
    ("mae", 5, 50, "balanced"): 0.88,
    ("mae", 7, 50, "1:100"): 0.33,
    ("mae", 7, 1_000, "1:100"): 0.24,
    ("accuracy_within", 3, 200, "balanced"): 0.5,
}
SAID = "95 % intervals cover {} % in tables like this"


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setattr(small_samples, "_load_coverage", lambda: KNOWN)


def table_of(gold):
    """Gold counts, a tenth of which is one level off."""
    gold = np.array(gold)
    off = gold // 10
    cells = np.diag(gold - off)
    cells[np.arange(len(gold) - 1), np.arange(1, len(gold))] = off[:-1]
    cells[-1, -2] = off[-1]
    return confusion(cells)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ([70, 70, 70], 86),
        ([66, 67, 67], 86),  # 200 items
        ([66, 67, 66], None),  # 199 items are like 50
        ([300, 300, 399], 86),
        ([300, 300, 400], None),  # 1,000 items
        ([7, 7, 7], 81),
        ([2, 2, 2], 81),  # fewer than in the study: as in its smallest tables
        ([100, 100, 10], 86),
        ([100, 100, 9], 70),  # less than a tenth of the commonest level
        ([1, 150, 150], 70),
        ([10, 10, 10, 10, 10], 88),
        ([10, 10, 0, 10, 10, 0, 10], 33),  # a level that gold lacks is a level, and rare
        ([100, 100], 86),  # two levels are like three
        ([0, 200, 0], 70),
        ([1] * 5 + [500] * 3, 24),  # eight levels are like seven
        ([60, 60, 60, 60], None),
    ],
)
def test_a_table_is_like_those_with_as_many_levels_and_items_and_such_gold(gold, said):
    found = describe_undercoverage(find_metric("mae"), table_of(gold))
    assert found == (None if said is None else SAID.format(said))


def test_a_doubt_is_of_a_metric_with_its_defaults_by_whatever_name():
    table = table_of([70, 70, 70])
    assert describe_undercoverage(find_metric("accuracy_within"), table) == SAID.format(50)
    assert describe_undercoverage(find_metric("adjacent_accuracy"), table) == SAID.format(50)
    assert describe_undercoverage(find_metric("accuracy_within(n=2)"), table) is None
    assert describe_undercoverage(find_metric("rmse"), table) is None


def test_estimates_say_what_is_doubted_and_stay_what_they_are(monkeypatch):
    table = table_of([70, 70, 70])
    found = estimate_metrics([find_metric("mae"), find_metric("rmse")], table)
    assert found["mae"].note == SAID.format(86)
    assert found["rmse"].note is None
    monkeypatch.setattr(
        "ordinate.inference.interval_methods.describe_undercoverage", lambda *_: None
    )
    plain = estimate_metrics([find_metric("mae")], table)["mae"]
    assert (plain.low, plain.high, plain.method) == (
        found["mae"].low,
        found["mae"].high,
        found["mae"].method,
    )
    assert plain.note is None


def test_a_doubt_comes_after_what_else_is_to_be_said(monkeypatch):
    monkeypatch.setattr(
        small_samples, "_load_coverage", lambda: {("f1_macro", 3, 200, "1:100"): 0.77}
    )
    found = estimate_metrics(
        [find_metric("f1_macro")], table_of([5, 150, 150]), ConfidenceIntervals(resamples=100)
    )["f1_macro"]
    assert found.note == f"fewer than 10 items of L0; {SAID.format(77)}"


def test_nothing_is_doubted_of_a_method_that_was_asked_for_nor_of_weights_or_groups():
    """The study is of default methods for counts of independent items."""
    table = table_of([70, 70, 70])
    asked = estimate_metrics([find_metric("mae")], table, ConfidenceIntervals(method="delta"))[
        "mae"
    ]
    assert asked.note is None
    gold = labels([0, 1, 2] * 70)
    weighted = ConfusionMatrix.of(
        gold, gold[1:] + gold[:1], scale_of(3), np.linspace(0.5, 1.5, 210)
    )
    assert estimate_metrics([find_metric("mae")], weighted)["mae"].note == "fractional weights"
    groups = confusion(np.stack([sample(3, 10, seed) for seed in range(40)]))
    assert estimate_metrics([find_metric("mae")], groups)["mae"].note is None


def test_the_report_says_what_is_doubted():
    gold = labels([0, 1, 2] * 70)
    answers = labels([0, 1, 1] * 70)
    shown = " ".join(str(evaluate(gold, answers, scale_of(3), "mae,rmse")).split())
    assert f"{SAID.format(86)} (mae)." in shown
    assert shown.count("in tables like this") == 1


def test_the_file_has_what_the_study_can_find_and_each_once():
    text = files("ordinate.inference").joinpath("coverage_warnings.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert text.splitlines()[0] == "metric,levels,items,gold,coverage"
    keys = [(row["metric"], row["levels"], row["items"], row["gold"]) for row in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        metric = find_metric(row["metric"])
        assert metric.alias_of is None
        assert not metric.options
        assert STUDIED_LEVELS[0] <= int(row["levels"]) <= STUDIED_LEVELS[1]
        assert int(row["items"]) in STUDIED_SIZES
        assert row["gold"] in {"balanced", "1:100"}
        assert 0 <= float(row["coverage"]) < 0.95
