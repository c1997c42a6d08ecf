"""Subgroups that differ from all other items: few items, many subgroups, and no difference."""

import math

import numpy as np
import pytest

from ordinate import evaluate
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.estimates import estimate_difference
from ordinate.inference.multiple_testing import holm
from ordinate.inference.subgroup_differences import (
    FEW_ITEMS_NOTE,
    compute_adjusted_p_values,
    estimate_difference_from_rest,
)
from ordinate.metrics import find_metric
from ordinate.results import evaluation_text

QUICK = ConfidenceIntervals(resamples=200)
METRICS = "cem_ord,quadratic_kappa,accuracy,f1_macro,mae,bias"
SURE = Estimate(0.5, 0.49, 0.51, "wilson")


def estimate_of(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half, "delta")


def p_values(gaps, *, pooled=SURE, size=100):
    return compute_adjusted_p_values(gaps, dict.fromkeys(gaps, size), pooled, 0.95)


def test_a_bound_at_0_is_a_p_value_of_one_minus_the_level():
    gaps = {"one": estimate_of(0.2, 0.2), "two": estimate_of(-0.2, 0.2)}
    assert p_values(gaps) == pytest.approx({"one": 0.05, "two": 0.05})


def test_more_than_two_subgroups_are_adjusted_by_holm():
    gaps = {
        name: estimate_of(gap, 0.2) for name, gap in zip("abcd", (0.3, 0.25, 0.1, 0), strict=True)
    }
    alone = [p_values({"x": gap, "rest": gap})["x"] for gap in gaps.values()]
    assert [*p_values(gaps).values()] == pytest.approx(holm(alone))
    assert p_values(gaps)["d"] == 1.0


def test_a_subgroup_that_hardly_varies_is_as_unsure_as_all_items_say():
    gaps = {name: estimate_of(0.1, 0.001) for name in "ab"}
    wide = estimate_of(0.5, 0.1)  # 0.2 for the difference of two halves
    assert p_values(gaps)["a"] < 1e-6
    assert p_values(gaps, pooled=wide)["a"] == pytest.approx(0.327, abs=1e-3)
    assert p_values(gaps, pooled=Estimate(0.5, math.nan, math.nan, None))["a"] < 1e-6


def test_subgroups_without_an_interval_are_no_part_of_the_family():
    unknown = Estimate(0.4, math.nan, math.nan, None, note="why")
    gaps = {"a": estimate_of(0.3, 0.2), "b": unknown, "c": unknown}
    alone = p_values({"a": gaps["a"], "rest": gaps["a"]})["a"]
    assert p_values(gaps) == {"a": alone}
    assert p_values({"b": unknown, "c": unknown}) == {}


def test_few_items_leave_an_interval_to_shares_alone():
    one, rest = estimate_of(0.5, 0.2), estimate_of(0.7, 0.1)
    for name, items, known in (("mae", 20, True), ("mae", 19, False), ("accuracy", 1, True)):
        found = estimate_difference_from_rest(find_metric(name), one, rest, items)
        assert found.value == one.value - rest.value
        assert (found == estimate_difference(one, rest)) == known
        assert found.note == (None if known else FEW_ITEMS_NOTE)


def test_integer_weights_are_counts_of_items(monkeypatch):
    """In the rule of few items, and in the shares of the pooled standard error."""
    sizes = []
    compute = evaluation_text.compute_adjusted_p_values
    monkeypatch.setattr(
        evaluation_text,
        "compute_adjusted_p_values",
        lambda *given: sizes.append([*given[1].values()]) or compute(*given),
    )
    columns = ([1, 1, 2, 2, 3, 3] * 2, [1, 1, 2, 2, 3, 2, 3, 1, 3, 2, 1, 1], ["a"] * 6 + ["b"] * 6)
    weights = [5] * 6 + [500] * 6
    gold, predicted, by = columns
    weighted = evaluate(gold, predicted, "1..3", ["mae"], by=by, weights=weights)
    gold, predicted, by = (np.repeat(column, weights) for column in columns)
    expanded = evaluate(gold, predicted, "1..3", ["mae"], by=by)
    assert weighted.document().verdict == expanded.document().verdict
    assert "Significantly different from the rest" in weighted.document().verdict
    assert sizes[0] == sizes[-1] == [30.0, 3000.0]


def test_items_of_fractional_weights_count_by_what_they_are_worth():
    """Of 40 items, 4 have all but the whole weight: of 20 in a subgroup, 2."""
    gold, by = [1, 2] * 20, ["a"] * 20 + ["b"] * 20
    predicted = [2, *gold[1:]]
    for heavy, light, note in ((0.1, 0.1, None), (100.5, 0.5, FEW_ITEMS_NOTE)):
        weights = ([heavy] * 2 + [light] * 18) * 2
        found = evaluate(gold, predicted, "1..3", ["mae"], by=by, weights=weights)
        assert found.by["a"].difference_from_rest["mae"].note == note


@pytest.mark.parametrize("size", [1, 2, 3, 5, 25])
def test_equal_subgroups_are_rarely_told_apart(size):
    """Of 60 reports of 12 equal subgroups, 5 % may name one: 3 binomial errors more are 8."""
    rng = np.random.default_rng(size)
    named = dict.fromkeys(METRICS.split(","), 0)
    groups = [k % 12 for k in range(12 * size)]
    for _ in range(60):
        gold = rng.integers(0, 4, len(groups))
        predicted = np.clip(gold + rng.choice([-1, 0, 0, 1, 2], len(groups)), 0, 3)
        verdicts = (
            evaluate(gold, predicted, "0,1,2,3", METRICS, by=groups, interval=QUICK)
            .document()
            .verdicts
        )
        for name, said in verdicts.items():
            named[name] += "Significantly different from the rest" in said
    assert max(named.values()) <= 8, named
