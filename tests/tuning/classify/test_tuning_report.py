"""The report of tuning a classifier: the verdict, and decision rules with their flags."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from experiments import lay_out

import ordinate
from ordinate.metrics import find_metric
from ordinate.tuning.classify.decision_rules import DECISION_RULES
from ordinate.tuning.classify.scoring import (
    NO_BETTER_THAN_CHANCE,
    LabelledItems,
    evaluate_decision_rules,
)
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.search.tuning_result import describe_tuning, describe_winner

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
    ("optimism", "words"),
    [
        (0.25, "On test, by which nothing was selected, it has 0.800: 0.250 worse than by cross-"),
        (
            -0.25,
            "On test, by which nothing was selected, it has 0.800: 0.250 better than by",
        ),
        (math.nan, "On test, by which nothing was selected, it has 0.800."),
    ],
    ids=["optimistic", "not optimistic", "undefined"],
)
def test_the_verdict_says_which_of_the_two_was_better(result, optimism, words):
    tested = replace(result, tests=(replace(result.tests[0], optimism=optimism),))
    value = f"{tested.tests[0].evaluation.value:.3f}"
    interval = r" \(95 % CI [^)]*\)"
    verdict = re.sub(interval, "", " ".join(describe_tuning(tested).verdict.split()))
    assert words.replace("0.800", value, 1) in verdict


def test_test_data_on_which_nothing_could_be_tested_are_named(result):
    lacking = replace(result.tests[0], evaluation=None, notes=("it has no levels.",))
    text = " ".join(str(replace(result, tests=(lacking,))).split())
    assert "Nothing was tested on test." in text
    assert "test: it has no levels." in text


# --- what it is worth --------------------------------------------------------------------------


def test_the_verdict_says_what_the_best_model_and_the_test_are_not_better_than(result):
    strong = describe_winner(with_winner(result, scores(result)))
    assert "than always predicting" not in strong.split(" On test")[0]
    flat = scores(result, metric_optimal=True)
    said = describe_winner(replace(with_winner(result, flat), tests=()))
    assert "by cross-validation, no" in said
    assert re.search(r"than always predicting \w\d \(0\.\d{3}\)", said)
    assert "than chance (0." in said
    tested = replace(result.tests[0], evaluation=flat)
    said = describe_winner(replace(with_winner(result, scores(result)), tests=(tested,)))
    assert "than by cross-validation, no" in said


def test_test_texts_that_were_learned_from_are_counted(tmp_path):
    """Data and test that are the same texts: `ordinate.tune(d, test=d.tail(20))`."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(40)]
    frame = pd.DataFrame({"text": texts, "level": [f"{k % 4}" for k in range(40)]})
    found = ordinate.tune(
        frame,
        test=frame.tail(20),
        folder=tmp_path / "tuned",
        scale="0..3",
        models="logistic",
        trials=1,
        folds=2,
    )
    assert found.to_dict()["tests"][0]["seen"] == 20
    verdict = found.document().verdict
    assert "optimistically biased: it has learned from all its 20 items." in verdict
    assert "not significantly better than" in verdict
    assert "20 of its 20 texts are training texts" in " ".join(str(found).split())


# --- flags ---------------------------------------------------------------------------------------


def scores(result, **by_chance):
    """Return scores by which some decision rules are no better than chance."""
    gold = np.arange(48) % 6
    levels = {rule: np.full(48, 2) if by_chance.get(rule) else gold for rule in DECISION_RULES}
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
    assert table.header == (
        *("data", "decision rule", "n", "cem_ord", "95 % CI", "best constant", "chance"),
    )
    rows = table.rows[:3]
    assert [row[:4] for row in rows] == [
        ("cross-validation", rule, 48, 1.0) for rule in ("metric-optimal", "argmax", "rounded mean")
    ]
    assert {row[6] for row in rows} == {scores(result).score.baselines.chance.value}


@pytest.mark.parametrize(
    "by_chance",
    [
        {"argmax": True},
        {"argmax": True, "rounded_mean": True},
        {"metric_optimal": True, "argmax": True, "rounded_mean": True},
    ],
    ids=["one", "two", "all"],
)
def test_each_decision_rule_that_chance_could_match_has_its_flag(result, by_chance):
    flagged = with_winner(result, scores(result, **by_chance))
    table = grid(flagged, "by the decision rule")
    assert [row[-1] for row in table.rows[:3]] == [
        NO_BETTER_THAN_CHANCE if by_chance.get(rule) else None for rule in DECISION_RULES
    ]
    said = "the confidence interval of its quadratic kappa reaches 0"
    assert (said in " ".join(str(flagged).split())) == bool(by_chance.get("metric_optimal"))


def test_each_decision_rule_has_its_own_flag_in_the_test(result):
    held = replace(result.tests[0], n=48, evaluation=scores(result, argmax=True))
    tested = replace(result, tests=(held,))
    rows = grid(tested, "by the decision rule").rows
    assert [row[-1] for row in rows[3:]] == [None, NO_BETTER_THAN_CHANCE, None]
    flags = {row["decision_rule"]: row["flag"] for row in tested.rows() if row["stage"] == "test"}
    assert flags == {"metric_optimal": None, "argmax": NO_BETTER_THAN_CHANCE, "rounded_mean": None}
