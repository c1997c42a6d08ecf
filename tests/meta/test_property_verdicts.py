"""Verdicts on properties: the paper, own metrics, and the words."""

import json
import math

import numpy as np
import pytest
from property_cases import NAMES, naive_value

import ordinate
from ordinate.errors import BadOption
from ordinate.meta.properties import (
    PROPERTIES,
    enumerate_matrices,
    list_compositions,
)
from ordinate.meta.properties_search import check_properties, find_property
from ordinate.meta.property_verdicts import PropertyExplanation, PropertyVerdicts, collect_facts
from ordinate.meta.published_properties import MARKS, agrees_with_paper
from ordinate.metrics import find_metric
from ordinate.metrics.known_properties import (
    FORMAL_PROPERTIES,
    find_properties,
    format_counterexample,
)
from ordinate.summaries import ConfusionMatrix

# --- what the paper says ----------------------------------------------------------------------

DISAGREEMENTS = {
    "monotonicity": {"weighted_kappa", "linear_kappa", "quadratic_kappa", "cosine"},
    "imbalance": {
        "weighted_kappa",
        "linear_kappa",
        "quadratic_kappa",
        "kendall_tau_b",
        "spearman",
        "reliability",
        "sensitivity",
        "reliability_sensitivity_f",
        "mutual_information",
        "purity",
        "inverse_purity",
        "cem_int",
    },
    "invariance": {"oci", "rennie_srebro"},
}


def test_the_search_disagrees_with_the_paper_in_known_places():
    for law, names in DISAGREEMENTS.items():
        cells = {name: find_properties(find_metric(name))[law] for name in MARKS}
        assert {name for name, cell in cells.items() if cell["agrees"] is False} == names
        assert {name for name, cell in cells.items() if cell["agrees"] is None} == set()


def test_cem_ord_alone_keeps_all_properties_of_the_paper():
    kept = [
        name
        for name in NAMES
        if all(
            find_properties(find_metric(name))[law]["verdict"] == "not_violated"
            for law in FORMAL_PROPERTIES
        )
    ]
    assert kept == ["cem_ord"]


def test_quadratic_kappa_falls_when_a_good_system_gets_an_item_right():
    gold = [1, 2, 3, 4, 4, 4, 4]
    before, after = [1, 1, 2, 3, 3, 3, 3], [1, 2, 2, 3, 3, 3, 3]
    values = [
        naive_value("quadratic_kappa", [1, 2, 3, 4], gold, output) for output in (before, after)
    ]
    assert values == pytest.approx([0.691176, 0.690265], abs=1e-6)


def test_agreement_with_a_mark():
    cell = {"paper": "✓", "verdict": "tie_only"}
    assert agrees_with_paper(cell) is False
    assert agrees_with_paper(cell | {"paper": "-"}) is True
    assert agrees_with_paper(cell | {"paper": None}) is None
    assert agrees_with_paper(cell | {"verdict": "undefined"}) is None


@pytest.mark.parametrize(("levels", "items"), [(3, 4), (4, 4), (5, 3)])
def test_cem_ord_ties_if_and_only_if_all_levels_of_the_move_are_empty_in_gold(levels, items):
    _, tables, _ = enumerate_matrices(levels, items)
    values = find_metric("cem_ord")(tables)
    cells = tables.counts
    for cases in PROPERTIES["monotonicity"].cases(levels, items):
        gain = values[cases.second] - values[cases.first]
        change = (cells[cases.second] - cells[cases.first]).sum(axis=1)  # by predicted level
        ends = np.sort(np.stack([change.argmin(axis=1), change.argmax(axis=1)], axis=1), axis=1)
        level = np.arange(levels)
        passed = (level >= ends[:, :1]) & (level <= ends[:, 1:])
        empty = ((tables.gold[cases.first] == 0) | ~passed).all(axis=1)
        assert (np.abs(gain[empty]) < 1e-12).all()
        assert (gain[~empty] > 1e-6).all()


def test_cem_ord_is_strict_if_and_only_if_no_two_neighbours_are_empty_in_gold():
    levels, items = 4, 4
    _, tables, _ = enumerate_matrices(levels, items)
    values = find_metric("cem_ord")(tables)
    tied = set()
    for cases in PROPERTIES["monotonicity"].cases(levels, items):
        ties = np.abs(values[cases.second] - values[cases.first]) < 1e-12
        tied |= {tuple(gold) for gold in tables.gold[cases.first[ties]]}
    golds = list_compositions(levels, items)
    gaps = ((golds[:, 1:] == 0) & (golds[:, :-1] == 0)).any(axis=1)
    assert tied == {tuple(map(float, gold)) for gold in golds[gaps]}


@pytest.mark.parametrize("levels", [3, 5])
def test_cem_ord_ties_on_imbalance_if_and_only_if_the_class_between_is_empty(levels):
    found = set()
    for cases in PROPERTIES["imbalance"].cases(levels, 8):
        before, after = cases.before[cases.first], cases.after[cases.second]
        gain = find_metric("cem_ord")(after) - find_metric("cem_ord")(before)
        moved = (after.counts + before.counts) * (1 - np.eye(levels))
        middle = moved.sum(axis=1).argmax(axis=1)
        empty = np.take_along_axis(before.gold, middle[:, None], axis=1)[:, 0] == 0
        assert (np.abs(gain[empty]) < 1e-12).all()
        assert (gain[~empty] > 1e-6).all()
        found |= set(empty.tolist())
    assert found == {True, False}


# --- a metric of one's own ---------------------------------------------------------------------


def test_a_metric_of_three_lines_gets_its_row_and_its_value():
    @ordinate.metric(direction="minimize")
    def far_share(table):
        return 1.0 - find_metric("accuracy_within")(table)

    (checked,) = check_properties([far_share], most_items=5)
    verdicts = {law: finding.full_gold.verdict for law, finding in checked.findings.items()}
    assert verdicts["monotonicity"] == "tie_only"
    assert verdicts["unused_level"] == "violated"
    result = ordinate.evaluate([1, 2, 4], [1, 4, 4], scale="1..4", metrics=["far_share"])
    assert result.metrics["far_share"].value == pytest.approx(1 / 3)
    assert ordinate.score("far_share", [1, 2, 4], [1, 4, 4], scale="1..4") == pytest.approx(1 / 3)
    text = PropertyVerdicts.of([far_share], most_items=4).document()
    assert any(
        row[0] == "far_share"
        for block in text.blocks
        if hasattr(block, "rows")
        for row in block.rows
    )


def test_a_metric_that_cannot_take_many_tables_is_refused():
    @ordinate.metric(direction="maximize")
    def first_axis(table):
        return np.trace(table.counts) / table.total

    @ordinate.metric(direction="maximize")
    def mixing(table):
        return table.counts[..., 0, 0] / np.max(table.total + table.counts[..., 0, 0])

    @ordinate.metric(direction="maximize")
    def rows(table):
        return table.counts.sum(axis=-1)

    assert first_axis(ConfusionMatrix.of([1, 2], [1, 1], "1..2")) == 0.5
    with pytest.raises(BadOption, match="first_axis fails for many matrices at once: ValueError"):
        check_properties([first_axis])
    with pytest.raises(BadOption, match="one number for each matrix"):
        check_properties([rows])
    with pytest.raises(BadOption, match="than for each alone"):
        check_properties([mixing])


def test_a_metric_of_one_table_is_called_one_by_one():
    @ordinate.metric(direction="maximize", one_by_one=True)
    def hits(table):
        return np.trace(table.counts) / table.total

    (own, known) = check_properties([hits, find_metric("accuracy")], most_items=4)
    assert collect_facts(own) == collect_facts(known) | {
        law: cell | {"paper": None, "agrees": None} for law, cell in collect_facts(known).items()
    }
    result = ordinate.evaluate([1, 2, 4] * 9, [1, 4, 4] * 9, scale="1..4", metrics=["hits"])
    estimate = result.metrics["hits"].estimate
    assert estimate.low < 2 / 3 < estimate.high


def test_infinite_values_are_larger_than_all_others():
    @ordinate.metric(direction="minimize")
    def surprise(table):
        with np.errstate(divide="ignore"):
            return -np.log(find_metric("accuracy")(table))

    (found,) = check_properties(surprise, ["monotonicity", "symmetry"], most_items=3)
    cell = collect_facts(found)["monotonicity"]
    assert cell["verdict"] == "tie_only"
    assert cell["counterexample"]["values"] == pytest.approx([math.log(3)] * 2) or all(
        value == "inf" for value in cell["counterexample"]["values"]
    )
    known = collect_facts(check_properties("accuracy", ["monotonicity"], most_items=3)[0])[
        "monotonicity"
    ]
    assert (cell["ties"], cell["violations"]) == (known["ties"], 0)
    json.dumps(cell, allow_nan=False)


def test_small_values_are_not_taken_for_rounding():
    @ordinate.metric(direction="maximize")
    def tiny(table):
        return 1e-12 * find_metric("quadratic_kappa")(table)

    (found,) = check_properties(tiny, ["monotonicity", "unused_level"], most_items=4)
    assert found.findings["monotonicity"].full_gold.verdict == "violated"
    assert found.findings["unused_level"].full_gold.verdict == "violated"


def test_a_metric_of_a_fixed_number_of_levels_is_checked_on_them():
    costs = find_metric("expected_cost(matrix=[[0,1,2],[1,0,1],[2,1,0]])")
    (found,) = check_properties(costs, most_items=4)
    cells, known = collect_facts(found), collect_facts(check_properties("mae", most_items=4)[0])
    assert cells["monotonicity"]["sizes"] == {"3": 4}
    assert cells["monotonicity"]["verdict"] == known["monotonicity"]["verdict"]
    assert cells["unused_level"]["verdict"] == "undefined"


def test_what_a_users_metric_does_wrong_is_said():
    @ordinate.metric(direction="maximize", one_by_one=True)
    def failing(table):
        return 1 / int(table.counts[0, 0])

    @ordinate.metric(direction="maximize")
    def texts(_):
        return "high"

    with pytest.raises(BadOption, match="failing fails: ZeroDivisionError: division by zero"):
        check_properties(failing)
    with pytest.raises(BadOption, match="texts fails"):
        check_properties(texts)
    with pytest.raises(BadOption, match="direction='upwards' is not one of 'maximize'"):

        @ordinate.metric(direction="upwards")
        def nowhere(_):
            return 0.0


def test_names_and_bounds_of_a_search_are_checked():
    with pytest.raises(BadOption, match="There is no property 'nope'"):
        check_properties("mae", ["nope"])
    with pytest.raises(BadOption, match="at least 1"):
        check_properties("mae", most_items=0)


def test_other_names_and_options_at_their_defaults_are_the_same_metric():
    for name in ("adjacent_accuracy", "accuracy_within(n=1)"):
        assert list(PropertyVerdicts.of([find_metric(name)]).cells) == ["accuracy_within"]
    assert list(PropertyVerdicts.of([find_metric("accuracy_within(n=2)")], most_items=2).cells) == [
        "accuracy_within(n=2)"
    ]


# --- in words -----------------------------------------------------------------------------------


def test_a_property_is_found_by_name():
    assert find_property("Unused level") is PROPERTIES["unused_level"]
    with pytest.raises(BadOption, match="Did you mean 'monotonicity'"):
        find_property("monotonicty")


def test_a_line_shows_as_many_digits_as_tell_values_apart():
    example = {
        "scale": [1, 2],
        "gold": [1, 2],
        "before": [2, 2],
        "after": [1, 2],
        "values": [0.1234561, 0.1234562],
        "scale_after": None,
        "gold_after": None,
    }
    assert format_counterexample(example).endswith("0.1234561 -> 0.1234562")


def test_an_explanation_lays_out_the_tables():
    verdicts = PropertyVerdicts.of([find_metric("quadratic_kappa")])
    explained = PropertyExplanation(find_metric("quadratic_kappa"), "monotonicity", verdicts)
    blocks = explained.document().blocks
    assert any("disagrees" in block for block in blocks if isinstance(block, str))
    assert sum(not isinstance(block, str) for block in blocks) == 2
    assert list(explained.to_dict()["properties"]["quadratic_kappa"]) == ["monotonicity"]
    (row,) = explained.rows()
    assert row["verdict"] == "violated"
