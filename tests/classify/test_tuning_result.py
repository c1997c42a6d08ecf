"""Results of a run: optimism, trials in full, and the words and flags of the report."""

import math
from dataclasses import replace

import numpy as np
import pytest
from experiments import lay_out

from ordinate.classify.scoring import NO_BETTER_THAN_CHANCE, LabelledItems, evaluate_decision_rules
from ordinate.classify.settings import Settings
from ordinate.classify.tuning import tune_experiment
from ordinate.classify.tuning_result import HeldOutResult, StudyResult, compute_optimism
from ordinate.classify.tuning_text import describe_tuning
from ordinate.experiment.folder import Experiment
from ordinate.metrics import find_metric
from ordinate.search.trials import Trial

SETTINGS = Settings(models="logistic", trials=2, folds=3, top_k=1)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    root = lay_out(tmp_path_factory.mktemp("results"), n=48, sets=("strong",))
    return tune_experiment(Experiment.open(root), SETTINGS)


def grid(result, title):
    found = [
        b for b in describe_tuning(result).blocks if not isinstance(b, str) and title in b.title
    ]
    (only,) = found
    return only


# --- optimism ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "chosen_by", "tested", "optimism"),
    [
        ("accuracy", 0.75, 0.5, 0.25),
        ("accuracy", 0.5, 0.75, -0.25),
        ("mae", 0.5, 0.75, 0.25),
        ("mae", 0.75, 0.5, -0.25),
        ("bias", -0.25, 0.5, 0.25),
        ("bias", 0.5, -0.25, -0.25),
    ],
)
def test_optimism_is_positive_where_cross_validation_was_better(
    metric, chosen_by, tested, optimism
):
    assert compute_optimism(find_metric(metric), chosen_by, tested) == optimism


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (0.25, "Optimism: cross-validation was 0.250 better than test."),
        (-0.25, "No optimism: test was 0.250 better than cross-validation."),
        (math.nan, "On test the optimistic bias of cross-validation is unknown."),
    ],
    ids=["optimistic", "not optimistic", "undefined"],
)
def test_the_report_says_which_of_the_two_was_better(result, found, words):
    tested = replace(result, tests=(replace(result.tests[0], optimism=found),))
    assert words in " ".join(str(tested).split())


# --- trials --------------------------------------------------------------------------------------


def test_every_trial_is_told_of_with_its_reason_and_its_sign():
    trials = (
        Trial(0, "failed", None, {"C": 1.0}, {}, {}, "it cannot be fitted"),
        Trial(1, "complete", 0.25, {"C": 2.0}, {1: 0.5}, {"signed_value": -0.25}),
    )
    failed, complete = StudyResult("strong", "logistic", 2, trials, None).list_trials()["trials"]
    assert (failed["state"], failed["reason"]) == ("failed", "it cannot be fitted")
    assert (complete["value"], complete["signed_value"]) == (0.25, -0.25)
    assert complete["reason"] is None
    assert complete["after_folds"] == {"1": 0.5}


# --- flags ---------------------------------------------------------------------------------------


def scores(result, **by_chance):
    """Return scores by which some decision rules are no better than chance."""
    gold = np.arange(48) % 6
    levels = {
        rule: np.full(48, 2) if by_chance.get(rule) else gold
        for rule in ("metric_optimal", "argmax", "rounded_mean")
    }
    return evaluate_decision_rules(
        LabelledItems(result.source.scale, gold), levels, find_metric("cem_ord"), seed=0
    )


def with_winner(result, found):
    """Return the result with another evaluation of its only model."""
    winner = replace(result.winner, evaluation=found)
    studies = (replace(result.studies[0], best=winner),)
    return replace(result, winner=winner, studies=studies)


def test_decision_rules_stand_beside_what_they_must_beat(result):
    table = grid(with_winner(result, scores(result)), "by the decision rule")
    assert table.header[1:] == (
        *("metric-optimal", "argmax", "rounded mean"),
        *("best constant", "chance", "flag"),
    )
    (row,) = table.rows
    score = scores(result).score
    assert row[1:4] == (1.0, 1.0, 1.0)
    assert row[5] == score.baselines.chance.value
    assert row[6] is None


@pytest.mark.parametrize(
    ("by_chance", "said"),
    [
        ({"argmax": True}, f"argmax: {NO_BETTER_THAN_CHANCE}"),
        ({"argmax": True, "rounded_mean": True}, f"argmax, rounded mean: {NO_BETTER_THAN_CHANCE}"),
        ({"metric_optimal": True, "argmax": True, "rounded_mean": True}, NO_BETTER_THAN_CHANCE),
    ],
    ids=["one", "two", "all"],
)
def test_the_flag_names_the_decision_rules_that_chance_could_match(result, by_chance, said):
    table = grid(with_winner(result, scores(result, **by_chance)), "by the decision rule")
    assert table.rows[0][-1] == said


def test_each_decision_rule_has_its_own_flag_in_the_test(result):
    held = HeldOutResult("test", 48, scores(result, argmax=True), 0.0)
    tested = replace(result, tests=(held,))
    assert [row[-1] for row in grid(tested, "Test:").rows] == [None, NO_BETTER_THAN_CHANCE, None]
    flags = {row["decision_rule"]: row["flag"] for row in tested.rows() if row["stage"] == "test"}
    assert flags == {"metric_optimal": None, "argmax": NO_BETTER_THAN_CHANCE, "rounded_mean": None}
