"""Which metric to report: every combination of answers has metrics, properties and a sentence."""

from itertools import product

import numpy as np
import pytest

import ordinate
from ordinate.errors import BadOption
from ordinate.inference.interval_methods import choose_interval_method
from ordinate.meta.advice import (
    QUESTIONS,
    ROLES,
    list_meanings,
    list_open_questions,
    list_rules,
    spell_answer,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.known_properties import find_properties
from ordinate.metrics.references import REFERENCES
from ordinate.results.report_parts import METHOD_NAMES
from ordinate.settings import list_settings

VALUES = {one.name: one.choices or (True, False) for one in list_settings(ordinate.advise)}
ANSWERS = [dict(zip(VALUES, answers, strict=True)) for answers in product(*VALUES.values())]
ADVICE = [ordinate.advise(**answers, scale="cefr") for answers in ANSWERS]
CEFR = {"equal_distances": False, "rare_levels": True, "ties": "count", "reader": "shares"}


def test_every_combination_of_answers_has_two_or_three_metrics_of_the_catalogue():
    assert len(ADVICE) == 3 * 2 * 2 * 3 * 4
    for found in ADVICE:
        names = [metric.name for metric in found.metrics]
        assert 2 <= len(set(names)) == len(names) <= 3
        assert set(names) <= {metric.name for metric in list_metrics()}
        assert [row["role"] for row in found.rows()] == list(ROLES)[: len(names)]
        ranked = found.answers["ties"] != "not_ranked" and found.answers["levels"] != "names"
        assert (len(names) == 3) is ranked


def test_the_first_metric_has_every_property_that_the_answers_ask_for():
    for found in ADVICE:
        known = find_properties(found.metrics[0])
        wanted = [known[rule.name] for rule in found.list_rules("property")]
        assert wanted
        assert not any(one["violations"] or one["ties"] for one in wanted), found.answers


def test_each_property_is_had_or_its_violation_is_shown():
    for found in ADVICE:
        shown = found.list_tables()["properties"]
        for metric, rule in product(found.metrics, found.list_rules("property")):
            cell = find_properties(metric)[rule.name]
            named = {"metric": metric.name, "property": rule.name}
            of_pair = [row for row in shown if row.items() >= named.items()]
            verdicts = {cell["verdict"], cell["verdict_with_empty_levels"]}
            assert len(of_pair) == len(verdicts)
            for row in of_pair:
                had = row["verdict"].startswith("not violated")
                assert had is (row["counterexample"] is None)
            assert of_pair[0]["verdict"].startswith("not") is (cell["verdict"] == "not_violated")


def test_no_metric_uses_more_of_the_levels_than_they_mean():
    for found in ADVICE:
        first = found.metrics[0]
        if found.answers["levels"] == "names":
            assert not any(metric.ordered for metric in found.metrics)
        elif found.answers["levels"] == "order" and not found.answers["equal_distances"]:
            assumed = {metric.name for metric in found.metrics if metric.assumes_equal_steps}
            assert assumed <= {"accuracy_within"}  # it counts levels, and its reason says so
        else:
            assert first.assumes_equal_steps


def test_the_methods_section_is_filled_from_the_catalogue():
    for found in ADVICE:
        sentence = found.methods_section
        assert "scale A1 < A2 < B1 < B2 < C1 < C2, " in sentence
        assert "with 95 % confidence intervals by " in sentence
        for metric in found.metrics:
            assert f"{metric.name} ({metric.title.split(':')[0].split('. ')[0].rstrip('.')}" in (
                sentence
            )
            assert METHOD_NAMES[choose_interval_method(metric)] in sentence
            if metric.reference:
                assert REFERENCES[metric.reference] in found.to_dict()["references"]
        assert "[your levels" in ordinate.advise(**found.answers).methods_section


def test_an_evaluation_has_the_interval_methods_of_the_sentence():
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 4, 800)
    predicted = np.clip(gold + rng.integers(-1, 2, 800), 0, 3)
    names = list(dict.fromkeys(rule.name for rule in list_rules() if rule.kind in ROLES))
    found = ordinate.evaluate(gold, predicted, "0..3", metrics=names)
    for name in names:
        assert found.metrics[name].estimate.method == choose_interval_method(find_metric(name)), (
            name
        )


def test_every_rule_is_reached_and_names_what_there_is():
    placed = ordinate.Scale(["mild", "severe", "lost"], positions=[0, 1, 5])
    advice = [*ADVICE, ordinate.advise(**CEFR | {"levels": "numbers"}, scale=placed)]
    rows = [row for one in advice for row in one.rows()]
    reached = {(row["role"], row["metric"], row["reason"]) for row in rows}
    for rule in list_rules():
        if rule.kind in ROLES:
            assert (rule.kind, rule.name, rule.sentence) in reached, rule
        else:
            assert any(rule in one.list_rules(rule.kind) for one in advice), rule
        for name, wanted in rule.when.items():
            assert {*wanted} <= {*list_meanings(name)} or name == "positions"
    assert {len(one.list_rules("scale")) for one in advice} == {1}


def test_the_settings_take_the_answers_of_the_questions():
    for name, values in VALUES.items():
        assert [spell_answer(value) for value in values] == list(list_meanings(name))
    assert list(VALUES) == list(QUESTIONS)


def test_names_are_asked_for_neither_distances_nor_ties():
    assert list_open_questions({"levels": "names"}) == ["rare_levels", "reader"]
    plain = {"levels": "names", "rare_levels": True, "reader": "agreement"}
    found = ordinate.advise(**plain)
    assert [metric.name for metric in found.metrics] == ["macro_accuracy", "cohen_kappa"]
    assert "--ties" not in found.command
    assert "neither distances nor ties" not in str(found)
    assert "neither distances nor ties" in str(ordinate.advise(**plain, ties="count"))


def test_unequal_numbers_need_positions():
    numbers = CEFR | {"levels": "numbers"}
    assert "positions=[…]" in str(ordinate.advise(**numbers))
    scale = ordinate.Scale(["mild", "severe", "lost"], positions=[0, 1, 5])
    found = ordinate.advise(**numbers, scale=scale)
    assert "positions=[…]" not in str(found)
    assert "mild < severe < lost, whose levels stand at their positions (0, 1, 5)" in (
        found.methods_section
    )
    with pytest.raises(BadOption, match="Pass equal_distances=False"):
        ordinate.advise(**numbers | {"equal_distances": True}, scale=scale)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"levels": "ordered"}, "--levels takes names, order or numbers, not 'ordered'"),
        ({"rare_levels": "no"}, "--rare-levels takes True or False, not 'no'"),
        ({"rare_levels": None}, "--rare-levels takes True or False, not None"),
        ({"equal_distances": 1}, "--equal-distances takes True or False, not 1"),
        ({"ties": None, "equal_distances": None}, "needs --equal-distances and --ties as well"),
        ({"reader": "everything"}, "--reader takes shares, classification, agreement or"),
    ],
)
def test_answers_that_are_none_are_refused(answers, message):
    with pytest.raises(BadOption, match=message):
        ordinate.advise(**{"levels": "order"} | CEFR | answers)


# --- what the reasons claim ----------------------------------------------------------------------


def test_somers_d_leaves_out_what_gold_ties_and_tau_b_does_not():
    gold, split = [1, 1, 2, 2], [1, 2, 3, 3]
    assert ordinate.score("somers_d", gold, split, scale="1..3") == 1
    assert ordinate.score("kendall_tau_b", gold, split, scale="1..3") < 0.95
    assert ordinate.score("kendall_tau_b", gold, gold, scale="1..3") == pytest.approx(1)


def test_rank_correlation_does_not_see_a_shift_which_concordance_does():
    gold, shifted = [1, 2, 3, 1, 2, 3], [2, 3, 4, 2, 3, 4]
    for name in ("spearman", "pearson"):
        assert ordinate.score(name, gold, shifted, scale="1..4") == pytest.approx(1)
    assert ordinate.score("ccc", gold, shifted, scale="1..4") < 0.6


def test_without_the_logarithm_an_error_costs_the_gold_items_between_the_two_levels():
    rng = np.random.default_rng(2)
    counts = np.array([2, 30, 68])
    gold, predicted = np.repeat([0, 1, 2], counts), rng.integers(0, 3, 100)
    middle = (np.cumsum(counts) - counts / 2) / 100  # half of those on a level are below its middle
    costs = np.abs(middle[gold] - middle[predicted]).sum()
    attainable = (1 - counts[gold] / 200).sum()
    value = ordinate.score("cem_ord_flat", gold, predicted, scale="0..2")
    assert value == pytest.approx(1 - costs / attainable)


def test_an_error_in_a_rare_level_costs_more_in_closeness_only_with_the_logarithm():
    gold = ["low"] * 2 + ["mid"] * 30 + ["high"] * 68
    for name, rare_costs_more in (("cem_ord", True), ("cem_ord_flat", False)):
        rare, common = (
            1 - ordinate.score(name, gold, predicted, scale="low,mid,high")
            for predicted in (["mid", *gold[1:]], [*gold[:-1], "mid"])
        )
        assert bool(rare > common) is rare_costs_more
