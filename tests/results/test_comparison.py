"""Comparing: each system is what it is alone, and the leaderboard says what the resamples say."""

import csv
import io
import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panels import by_label, labels, panel_of, sampled, value
from scipy import stats
from strategies import scale_of

from ordinate.errors import (
    BadOption,
    MissingLabels,
    NoItems,
    OffScale,
    OrdinateError,
    UnequalLengths,
)
from ordinate.inference import ConfidenceIntervals, system_differences
from ordinate.inference.multiple_testing import benjamini_hochberg, benjamini_yekutieli, holm
from ordinate.inference.paired_tests import permutation_test
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.results.comparison import Comparison, compare
from ordinate.results.evaluation import evaluate
from ordinate.results.leaderboard import ComparisonSettings, _decide_margin

SIZE = 4
SCALE = scale_of(SIZE)
DRAWS = 400
FORMS = (*RENDERERS, "html")


def compared(gold, systems, metrics="mae", **options):
    options = {"resamples": DRAWS, "scale": SCALE} | options
    return compare(labels(gold), by_label(systems), metrics=metrics, **options)


def board_of(gold, systems, metric="mae", **options):
    return compared(gold, systems, metric, **options).leaderboards[metric]


def rendered(result, form):
    return result._repr_html_() if form == "html" else render(result, form)


def words(result):
    """The text report, whatever its line breaks."""
    return " ".join(str(result).split())


GOLD, SYSTEMS = sampled(SIZE, 150, 3, [0.4, 0.8, 0.8, 1.6])


# --- each system is what it is alone -------------------------------------------------------------

WAYS = {
    "items": {},
    "whole weights": {"weights": [1 + k % 3 for k in range(150)]},
    "real weights": {"weights": np.linspace(0.2, 3.1, 150)},
    "groups": {"groups": [f"g{k % 40}" for k in range(150)]},
    "few groups": {"groups": [f"g{k % 7}" for k in range(150)]},
}


def check_estimates(found, expected):
    """The same but for the last digit: sums of weights may be taken in another order."""
    assert (found.method, found.note) == (expected.method, expected.note)
    numbers = ((one.value, one.low, one.high) for one in (found, expected))
    assert next(numbers) == pytest.approx(next(numbers), rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, 5])
def test_each_system_has_the_values_and_limits_that_it_has_alone(way, seed):
    result = compared(GOLD, SYSTEMS, None, seed=seed, interval=0.9, **WAYS[way])
    how = ConfidenceIntervals(0.9, resamples=DRAWS, seed=seed)
    for name, answers in SYSTEMS.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE, interval=how, **WAYS[way])
        for metric in DEFAULT_METRICS:
            found = result.leaderboards[metric].get_standing(name).estimate
            check_estimates(found, alone.metrics[metric].estimate)


def test_each_system_has_the_usual_values_and_limits_without_further_options():
    result = compare(labels(GOLD), by_label(SYSTEMS), SCALE, "mae,cem_ord,min_sensitivity")
    for name, answers in SYSTEMS.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE).metrics
        for metric, board in result.leaderboards.items():
            assert board.get_standing(name).estimate == alone[metric].estimate


@pytest.mark.parametrize("metric", ["mae", "accuracy", "quadratic_kappa", "bias", "cem_ord"])
def test_values_are_those_of_the_items(metric):
    board = board_of(GOLD, SYSTEMS, metric)
    for name, answers in SYSTEMS.items():
        expected = value(metric, GOLD, answers, SCALE)
        assert board.get_standing(name).estimate.value == pytest.approx(expected, abs=1e-12)


def test_missing_predictions_count_as_the_worst_answer_or_the_items_are_left_out():
    systems = SYSTEMS | {"s1": [None if k % 9 == 0 else p for k, p in enumerate(SYSTEMS["s1"])]}
    worst = board_of(GOLD, systems, missing="worst")
    for name, answers in systems.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE, "mae", missing="worst")
        expected = alone.metrics["mae"].value
        assert worst.get_standing(name).estimate.value == expected
    result = compared(GOLD, systems, missing="drop")
    kept = [k for k in range(150) if k % 9]
    inner = {name: [answers[k] for k in kept] for name, answers in systems.items()}
    alone = compared([GOLD[k] for k in kept], inner)
    assert result.panel.dropped == 150 - len(kept)
    assert result.leaderboards["mae"].to_dict() == alone.leaderboards["mae"].to_dict()
    with pytest.raises(MissingLabels, match="17 of 150 predictions of s1 are missing"):
        compared(GOLD, systems)


@pytest.mark.parametrize("metric", ["mae", "cem_ord", "macro_accuracy"])
def test_constants_to_beat_are_those_of_an_evaluation(metric):
    found = board_of(GOLD, SYSTEMS, metric).baselines
    expected = evaluate(labels(GOLD), labels(SYSTEMS["s0"]), SCALE, metric).metrics[metric]
    assert found.best_constant == expected.baselines.best_constant
    assert found.majority == expected.baselines.majority


# --- order and names -----------------------------------------------------------------------------


def facts(board, names):
    """What a board says of each system and of each pair, by other names, whatever the order."""
    alone = {
        names[one.system]: (
            one.estimate, one.rank, one.rank_low, one.rank_high, one.rank_shares,
        )
        for one in board.standings
    }  # fmt: skip
    pairs = {}
    for pair in board.pairs:
        both = names[pair.first], names[pair.second]
        turn = both[0] > both[1]
        numbers = (pair.difference, pair.low, pair.high)
        if turn:
            numbers = (-pair.difference, -pair.high, -pair.low)
        verdict = {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
        said = verdict if turn else pair.verdict
        pairs[tuple(sorted(both))] = (*numbers, pair.p, pair.p_adjusted), said
    return alone, pairs


def check_same(board, other, names, other_names):
    (alone, pairs), (alone2, pairs2) = facts(board, names), facts(other, other_names)
    assert alone.keys() == alone2.keys()
    assert pairs.keys() == pairs2.keys()
    for name, (estimate, *ranks, shares) in alone.items():
        estimate2, *ranks2, shares2 = alone2[name]
        check_estimates(estimate, estimate2)
        assert ranks == ranks2
        assert shares == pytest.approx(shares2, abs=1e-12)
    for pair, (numbers, said) in pairs.items():
        assert said == pairs2[pair][1]
        assert numbers == pytest.approx(pairs2[pair][0], abs=1e-9)


SAME = {name: name for name in SYSTEMS}


@pytest.mark.parametrize("metric", ["mae", "quadratic_kappa", "bias"])
def test_other_names_change_nothing_but_the_names(metric):
    board = board_of(GOLD, SYSTEMS, metric)
    names = dict(zip(SYSTEMS, ["zeta", "beta", "alpha", "γ"], strict=True))
    renamed = {names[name]: answers for name, answers in SYSTEMS.items()}
    back = {new: old for old, new in names.items()}
    other = board_of(GOLD, renamed, metric)
    check_same(board, other, SAME, back)
    assert [names[one.system] for one in board.standings] == [x.system for x in other.standings]
    assert [one.letters for one in board.standings] == [one.letters for one in other.standings]


@pytest.mark.parametrize("metric", ["mae", "bias"])
@pytest.mark.parametrize("way", WAYS)
def test_another_order_of_the_systems_changes_nothing_but_the_order(metric, way):
    board = board_of(GOLD, SYSTEMS, metric, **WAYS[way])
    turned = dict(reversed(SYSTEMS.items()))
    check_same(board, board_of(GOLD, turned, metric, **WAYS[way]), SAME, SAME)


def test_another_order_of_the_items_changes_nothing():
    board = board_of(GOLD, SYSTEMS)
    turned = {name: answers[::-1] for name, answers in SYSTEMS.items()}
    assert board.to_dict() == board_of(GOLD[::-1], turned).to_dict()


def test_the_same_seed_gives_the_same_and_another_one_another():
    first, second, third = (
        compared(GOLD, SYSTEMS, "mae,purity", seed=seed).to_dict() for seed in (1, 1, 2)
    )
    assert first == second
    assert first["metrics"]["mae"]["pairs"] != third["metrics"]["mae"]["pairs"]


# --- ranks ---------------------------------------------------------------------------------------

LEADS = {
    "accuracy": lambda values: max(values, key=values.get),
    "mae": lambda values: min(values, key=values.get),
    "bias": lambda values: min(values, key=lambda name: abs(values[name])),
}


@pytest.mark.parametrize("metric", LEADS)
@pytest.mark.parametrize("seed", range(4))
def test_the_leader_is_best_whichever_direction_is_good(metric, seed):
    gold, systems = sampled(SIZE, 80, seed, [0.9, 0.6, 1.4, 0.7])
    systems["low"] = [max(0, p - 1) for p in systems["s1"]]
    systems["high"] = [min(SIZE - 1, p + 1) for p in systems["s1"]]
    values = {name: value(metric, gold, answers, SCALE) for name, answers in systems.items()}
    board = board_of(gold, systems, metric)
    assert board.standings[0].system == LEADS[metric](values)
    merit = {
        "accuracy": lambda x: x,
        "mae": lambda x: -x,
        "bias": lambda x: -abs(x),
    }[metric]
    for one in board.standings:
        mine = merit(values[one.system])
        better = sum(merit(x) > mine + 1e-12 for x in values.values())
        assert one.rank == 1 + better
        assert one.rank_low <= one.rank <= one.rank_high
        assert sum(one.rank_shares) == pytest.approx(1)
    assert [one.rank for one in board.standings] == sorted(one.rank for one in board.standings)


@pytest.mark.parametrize("metric", ["accuracy", "mae", "bias"])
def test_a_far_better_system_is_better_whichever_direction_is_good(metric):
    far = [min(SIZE - 1, g + 1) for g in GOLD]
    near = [min(SIZE - 1, g + 1) if k % 25 == 0 else g for k, g in enumerate(GOLD)]
    for systems in ({"near": near, "far": far}, {"far": far, "near": near}):
        (pair,) = board_of(GOLD, systems, metric).pairs
        assert (pair.first, pair.second, pair.verdict) == ("near", "far", "better")
        assert (pair.difference > 0) == (metric == "accuracy")
        (other,) = board_of(GOLD, systems, metric, against="near").pairs
        assert (other.first, other.second, other.verdict) == ("far", "near", "worse")
        assert other.difference == pytest.approx(-pair.difference)


def test_of_each_pair_the_better_system_comes_first():
    gold, systems = sampled(SIZE, 80, 4, [0.9, 0.6, 1.4, 0.7, 0.8])
    for metric in ("mae", "accuracy", "bias"):
        board = board_of(gold, systems, metric)
        place = {one.system: k for k, one in enumerate(board.standings)}
        assert all(place[pair.first] < place[pair.second] for pair in board.pairs)
        assert len({frozenset((pair.first, pair.second)) for pair in board.pairs}) == 10
        assert all(pair.verdict != "worse" for pair in board.pairs)


def test_a_bias_below_0_and_one_above_it_are_compared_by_their_size():
    high = [min(SIZE - 1, g + 1) if k % 2 else g for k, g in enumerate(GOLD)]
    low = [max(0, g - 1) if k % 10 == 0 else g for k, g in enumerate(GOLD)]
    board = board_of(GOLD, {"low": low, "high": high}, "bias")
    assert board.get_standing("low").estimate.value < 0 < board.get_standing("high").estimate.value
    (pair,) = board.pairs
    expected = abs(value("bias", GOLD, low, SCALE)) - abs(value("bias", GOLD, high, SCALE))
    assert pair.difference == pytest.approx(expected)
    assert pair.verdict == "better"
    assert board.standings[0].system == "low"


def test_rank_limits_and_letters_are_those_of_the_adjusted_p_values():
    board = board_of(GOLD, SYSTEMS)
    apart = {}
    for pair in board.pairs:
        told = pair.p_adjusted <= 0.05
        apart[pair.first, pair.second] = apart[pair.second, pair.first] = told
        assert told == (pair.verdict in {"better", "worse"})
    values = {one.system: one.estimate.value for one in board.standings}
    shown = {one.system: set(one.letters) for one in board.standings}
    for one in board.standings:
        others = [x for x in values if x != one.system and apart[one.system, x]]
        mine = values[one.system]
        assert one.rank_low == 1 + sum(values[x] < mine for x in others)
        assert one.rank_high == len(values) - sum(values[x] > mine for x in others)
    for first, second in itertools.combinations(values, 2):
        assert bool(shown[first] & shown[second]) == (not apart[first, second])
    assert "a" in shown[board.standings[0].system]
    assert len({text for one in board.standings for text in one.letters}) > 1


def test_rank_frequencies_are_those_of_the_joint_draws():
    board = board_of(GOLD, SYSTEMS)
    values = system_differences.resample_jointly(
        panel_of(GOLD, SYSTEMS, SIZE), [find_metric("mae")], system_differences.Resampling(DRAWS, 0)
    )["mae"]
    for place, name in enumerate(SYSTEMS):
        seen = [1 + sum(x < row[place] - 1e-12 for x in row) for row in values]
        expected = [seen.count(rank) / DRAWS for rank in range(1, 5)]
        assert board.get_standing(name).rank_shares == pytest.approx(expected)


# --- equal systems -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("metric", ["mae", "cem_ord", "f1_macro", "bias", "kendall_tau_b"])
def test_systems_that_answer_the_same_are_identical(metric, way):
    systems = {"a": SYSTEMS["s1"], "b": SYSTEMS["s3"], "c": SYSTEMS["s1"]}
    board = board_of(GOLD, systems, metric, **WAYS[way])
    pair = next(pair for pair in board.pairs if (pair.first, pair.second) == ("a", "c"))
    assert (pair.difference, pair.low, pair.high) == (0, 0, 0)
    assert (pair.p, pair.p_adjusted, pair.verdict) == (1, 1, "identical")
    one, other = board.get_standing("a"), board.get_standing("c")
    assert one.rank == other.rank
    assert one.letters == other.letters
    assert one.rank_shares == other.rank_shares


def test_systems_that_answer_the_same_are_identical_wherever_they_stand():
    gold, systems = sampled(SIZE, 120, 5, [0.7] * 11)
    many = {f"x{k}": systems[f"s{k * 7 % 11}"] for k in range(40)}
    result = compared(gold, many, "mae,cem_ord,quadratic_kappa", resamples=150)
    for board in result.leaderboards.values():
        for pair in board.pairs:
            same = many[pair.first] == many[pair.second]
            assert (pair.verdict == "identical") == same


def test_two_identical_systems_have_tests_that_say_so():
    result = compared(GOLD, {"a": SYSTEMS["s1"], "b": SYSTEMS["s1"]})
    (tests,) = result.tests
    assert tests.permutation["mae"].p == 1
    assert {test.p for test in tests.others.values()} == {1.0}
    assert "no difference from b" in result.leaderboards["mae"].conclusion


def test_equal_values_of_different_answers_share_a_rank_and_are_not_identical():
    gold = [1] * 60
    up, down = [2] * 20 + [1] * 40, [1] * 40 + [0] * 20
    board = board_of(gold, {"up": up, "down": down, "far": [3] * 60})
    assert [one.rank for one in board.standings] == [1, 1, 3]
    pair = next(p for p in board.pairs if {p.first, p.second} == {"up", "down"})
    assert (pair.difference, pair.verdict) == (0, "inconclusive")
    assert pair.p == 1


@pytest.mark.parametrize("against", ["all", "leader"])
def test_a_system_that_is_always_right_is_better_than_one_that_never_is(against):
    gold = [0, 1] * 60
    systems = {"right": gold, "wrong": [1 - g for g in gold], "mixed": [0] * 120}
    board = board_of(gold, systems, "accuracy", against=against)
    pair = next(p for p in board.pairs if {p.first, p.second} == {"right", "wrong"})
    assert (abs(pair.difference), pair.verdict) == (1, "better")
    assert pair.p < 0.01
    assert not set(board.get_standing("right").letters) & set(board.get_standing("wrong").letters)
    assert board.get_standing("wrong").rank_low > 1


# --- the family ----------------------------------------------------------------------------------


def crowd(count, seed=1, n=60):
    return sampled(SIZE, n, seed, [0.5 + 0.02 * k for k in range(count)])


def test_one_system_is_no_comparison_and_neither_are_more_than_500():
    with pytest.raises(BadOption, match="2 to 500 systems, not 1"):
        compared(GOLD, {"s0": SYSTEMS["s0"]})
    with pytest.raises(BadOption, match="2 to 500 systems, not 0"):
        compared(GOLD, {})
    with pytest.raises(BadOption, match="2 to 500 systems, not 501"):
        compared([0, 1], {f"s{k}": [0, 1] for k in range(501)})
    with pytest.raises(BadOption, match="2 to 500 systems, not 1"):
        Comparison.from_panel(panel_of([0, 1], {"a": [0, 1]}, SIZE), "mae")


def test_systems_without_names_are_refused():
    with pytest.raises(BadOption, match="by name"):
        compare(["L0"], [["L0"], ["L1"]], SCALE)


def test_50_systems_are_compared_with_each_other():
    gold, systems = crowd(50)
    result = compared(gold, systems, resamples=100)
    board = result.leaderboards["mae"]
    assert result.settings.against == "all"
    assert len(board.pairs) == 50 * 49 // 2
    assert all(one.letters for one in board.standings)


def test_51_systems_are_compared_with_the_leader_and_still_have_ranks():
    gold, systems = crowd(51)
    result = compared(gold, systems, resamples=200)
    board = result.leaderboards["mae"]
    leader = board.standings[0].system
    assert result.settings.against == "leader"
    assert {pair.first for pair in board.pairs} == {leader}
    assert {pair.second for pair in board.pairs} == set(systems) - {leader}
    for one in board.standings:
        assert one.rank_low <= one.rank <= one.rank_high
        assert one.letters is None
        assert len(one.rank_shares) == 51
        assert sum(one.rank_shares) == pytest.approx(1)
    assert sum(one.rank_high < 51 for one in board.standings)
    assert "share a letter" not in str(result)
    everyone = compared(gold, systems, resamples=200, against="all").leaderboards["mae"]
    assert len(everyone.pairs) == 51 * 50 // 2


def test_500_systems_can_be_compared():
    gold = [0, 1, 2, 3] * 5
    rng = np.random.default_rng(0)
    systems = {f"s{k}": rng.integers(0, 4, 20).tolist() for k in range(500)}
    result = compared(gold, systems, resamples=100)
    assert len(result.leaderboards["mae"].pairs) == 499
    assert "469 more pairs" in words(result)


def test_each_is_compared_with_the_system_that_was_named():
    board = board_of(GOLD, SYSTEMS, against="s2")
    assert [(pair.first, pair.second) for pair in board.pairs] == [
        ("s0", "s2"),
        ("s1", "s2"),
        ("s3", "s2"),
    ]
    assert [pair.verdict for pair in board.pairs] == ["better", "inconclusive", "worse"]
    everyone = board_of(GOLD, SYSTEMS)
    for pair in board.pairs:
        other = next(p for p in everyone.pairs if {p.first, p.second} == {pair.first, "s2"})
        assert abs(other.difference) == pytest.approx(abs(pair.difference))
        assert other.p == pair.p
        assert pair.p <= pair.p_adjusted <= other.p_adjusted + 1e-15


def test_each_is_compared_with_the_leader():
    board = board_of(GOLD, SYSTEMS, against="leader")
    assert [(pair.first, pair.second) for pair in board.pairs] == [
        ("s0", "s1"),
        ("s0", "s2"),
        ("s0", "s3"),
    ]
    assert {pair.verdict for pair in board.pairs} == {"better"}
    assert all(one.letters for one in board.standings)


def test_a_system_may_be_called_leader_or_all():
    gold, systems = crowd(52)
    names = dict(zip(systems, ["all", *(f"n{k}" for k in range(50)), "leader"], strict=True))
    board = board_of(gold, {names[k]: v for k, v in systems.items()}, resamples=100)
    first = board.standings[0].system
    assert first != "leader"
    assert {pair.first for pair in board.pairs} == {first}


def test_a_named_system_without_a_value_is_not_said_to_be_compared_with():
    systems = SYSTEMS | {"flat": [1] * 150}
    result = compared(GOLD, systems, "kendall_tau_b", against="flat")
    board = result.leaderboards["kendall_tau_b"]
    assert board.get_standing("flat").rank is None
    compared_with = {frozenset((pair.first, pair.second)) for pair in board.pairs}
    assert compared_with <= {frozenset(("s0", name)) for name in SYSTEMS}
    assert not board.pairs or "each against flat" not in words(result)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"against": "s9"}, "There is no system 's9'. Did you mean"),
        ({"pairs": [("s0", "x")]}, "There is no system 'x'"),
        ({"pairs": [("s0", "s0")]}, "two different systems"),
        ({"correction": "bonferroni"}, "no correction 'bonferroni'; there are: max_t, holm"),
        ({"margins": {"accuracy": 0.1}}, "margin is given for accuracy, which is not compared"),
        ({"margins": {"mae": 0}}, "margin of mae must be above 0, not 0"),
        ({"margins": {"mae": -0.1}}, "margin of mae must be above 0"),
        ({"margins": {"mae": math.nan}}, "margin of mae must be above 0"),
        ({"margins": {"mae": "wide"}}, "margin of mae must be above 0"),
        ({"resamples": 99}, "99 resamples are too few"),
        ({"interval": 0.2}, "level of an interval is 0.5 to below 1"),
        ({"interval": 1.0}, "level of an interval is 0.5 to below 1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"metrics": "mea"}, "There is no metric 'mea'"),
        ({"metrics": []}, "No metric was named"),
        ({"missing": "ignore"}, "missing='ignore' is not one of"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, said):
    with pytest.raises(OrdinateError, match=re.escape(said)):
        compared(GOLD, SYSTEMS, **options)


@pytest.mark.parametrize("pairs", [("s0", "s1"), [("s0",)], [("s0", "s1", "s2")]])
def test_pairs_that_are_no_pairs_are_refused(pairs):
    with pytest.raises(OrdinateError, match=r"pair|There is no system 's'"):
        compared(GOLD, SYSTEMS, pairs=pairs)


def test_columns_that_do_not_fit_are_refused_by_the_name_of_the_system():
    with pytest.raises(UnequalLengths, match="predictions of b"):
        compare(["L0", "L1"], {"a": ["L0", "L1"], "b": ["L0"]}, SCALE)
    with pytest.raises(OffScale, match=r"'X' \(row 1 of b\)"):
        compare(["L0", "L1"], {"a": ["L0", "L1"], "b": ["X", "L0"]}, SCALE)
    with pytest.raises(NoItems, match="no items to compare"):
        compare([], {"a": [], "b": []}, SCALE)


def test_the_scale_may_be_a_preset_that_fits_and_the_report_says_so():
    gold = ["A1", "A2", "B1", "B2", "C1"] * 4
    result = compare(gold, {"a": gold, "b": gold[::-1]}, metrics="mae", resamples=100)
    assert result.panel.scale.preset == "cefr"
    assert "every label seen is on the preset 'cefr'" in words(result)


# --- corrections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "adjust"),
    [
        ("holm", holm),
        ("bh", benjamini_hochberg),
        ("by", benjamini_yekutieli),
        ("none", np.asarray),
    ],
)
def test_corrections_adjust_the_plain_p_values(name, adjust):
    board = board_of(GOLD, SYSTEMS, correction=name)
    plain = [pair.p for pair in board_of(GOLD, SYSTEMS).pairs]
    assert [pair.p for pair in board.pairs] == plain
    assert [pair.p_adjusted for pair in board.pairs] == pytest.approx(adjust(plain).tolist())
    for pair in board.pairs:
        assert (pair.verdict in {"better", "worse"}) == (pair.p_adjusted <= 0.05)


@pytest.mark.parametrize("correction", ["holm", "bh", "by", "none"])
@pytest.mark.parametrize("against", ["all", "leader", "s1"])
def test_ranks_and_letters_come_from_max_t_whatever_the_correction(correction, against):
    gold, systems = sampled(SIZE, 60, 5, [0.5, 0.6, 0.7, 0.9, 1.2])
    expected = board_of(gold, systems, against=against)
    found = board_of(gold, systems, against=against, correction=correction)
    assert [one.to_dict() for one in found.standings] == [
        one.to_dict() for one in expected.standings
    ]
    for pair, other in zip(found.pairs, expected.pairs, strict=True):
        assert (pair.low, pair.high, pair.p) == (other.low, other.high, other.p)
    if correction == "none":
        assert any(
            x.p_adjusted < y.p_adjusted for x, y in zip(found.pairs, expected.pairs, strict=True)
        )


def test_ranks_letters_and_verdicts_of_the_leader_agree():
    """Whoever shares a letter with the leader may be first, and is not said to be beaten."""
    for seed in range(6):
        gold, systems = sampled(SIZE, 60, seed, [0.5, 0.6, 0.7, 0.9, 1.2, 0.65])
        board = board_of(gold, systems, against="leader")
        leader = board.standings[0]
        beaten = {pair.second for pair in board.pairs if pair.verdict == "better"}
        for one in board.standings[1:]:
            assert (one.system in beaten) == (not set(one.letters) & set(leader.letters))
            assert one.rank_low > 1 or one.system not in beaten
        assert leader.rank_high == len(systems) - len(beaten)
        everyone = board_of(gold, systems, against="all")
        told = {
            p.second for p in everyone.pairs if p.first == leader.system and p.verdict == "better"
        }
        assert beaten <= told  # stepping down may decide a little more


def crowd_of_equals(seed, count=60, n=4_000):
    gold, systems = sampled(3, n, 5_000 + seed, [0.8] * count)
    return compare(labels(gold), by_label(systems), scale_of(3), "mae", resamples=400, seed=seed)


@pytest.mark.slow
def test_of_sixty_equal_systems_the_leader_beats_any_in_one_of_twenty_samples():
    """At most 3 binomial errors above 5 %.

    Many items: the errors of 1,770 pairs are taken for known, which fewer items do not allow.
    """
    alarms = 0
    for seed in range(200):
        board = crowd_of_equals(seed).leaderboards["mae"]
        verdicts = {pair.second: pair.verdict for pair in board.pairs}
        alarms += "better" in verdicts.values()
        for one in board.standings[1:]:
            assert verdicts[one.system] != "better" or one.rank_low > 1
    assert alarms / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_more_letters_than_are_of_use_are_none(monkeypatch):
    monkeypatch.setattr("ordinate.inference.multiple_testing.MOST_LETTERS", 1)
    board = board_of(GOLD, SYSTEMS)
    assert {one.letters for one in board.standings} == {None}
    assert board.standings[0].rank_high == 1
    assert "share a letter" not in str(compared(GOLD, SYSTEMS))


@pytest.mark.parametrize("correction", ["holm", "bh", "by"])
def test_too_few_draws_for_a_correction_are_said_with_the_number_that_is_enough(correction):
    gold, systems = crowd(10)
    few = board_of(gold, systems, correction=correction, resamples=200)
    (note,) = few.notes
    assert "With 200 resamples no p-value is below 0.005" in note
    assert f"the correction {correction} for 45 pairs" in note
    needed = int(re.search(r"take ([\d,]+) resamples", note)[1].replace(",", ""))
    assert needed == 900
    assert board_of(gold, systems, correction=correction, resamples=needed).notes == ()
    assert board_of(gold, systems, correction="max_t", resamples=200).notes == ()
    assert board_of(gold, systems, correction="none", resamples=200).notes == ()


def test_with_enough_draws_holm_can_reject():
    gold, systems = sampled(SIZE, 100, 2, [0.1, 3.0])
    board = board_of(gold, systems, correction="holm", resamples=200)
    assert board.pairs[0].verdict == "better"


# --- margins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worst", "best", "said"),
    [
        (-0.05, 0.05, "equivalent"),
        (-0.05, 0.3, "first non-inferior"),
        (0.05, 0.3, "first non-inferior"),
        (0.2, 0.3, "second inferior"),
        (-0.3, 0.05, "second non-inferior"),
        (-0.3, 0.3, "inconclusive"),
        (-0.3, -0.2, "first inferior"),
        (-0.3, -0.05, "second non-inferior"),
        (-0.1, 0.05, "second non-inferior"),  # at the margin is not within it
        (-0.05, 0.1, "first non-inferior"),
        (-0.1, 0.1, "inconclusive"),
        (0.1, 0.3, "first non-inferior"),
        (-0.3, -0.1, "second non-inferior"),
        (0.0, 0.0, "equivalent"),
        (math.nan, math.nan, "inconclusive"),
    ],
)
def test_the_margin_verdict_says_where_the_whole_interval_lies(worst, best, said):
    assert _decide_margin(worst, best, 0.1) == said


@given(ends=st.tuples(st.floats(-1, 1), st.floats(-1, 1)), margin=st.floats(0.01, 0.5))
def test_the_margin_verdict_turns_with_the_pair(ends, margin):
    turned = {"first": "second", "second": "first"}
    worst, best = min(ends), max(ends)
    side, *rest = _decide_margin(worst, best, margin).split(" ")
    assert _decide_margin(-best, -worst, margin).split(" ") == [turned.get(side, side), *rest]


@pytest.mark.parametrize(
    ("metric", "margin", "said"),
    [
        ("mae", 0.01, {("good", "bad"): "second inferior", ("bad", "good"): "first inferior"}),
        ("accuracy", 0.01, {("good", "bad"): "second inferior", ("bad", "good"): "first inferior"}),
        ("bias", 0.01, {("good", "bad"): "second inferior", ("bad", "good"): "first inferior"}),
        (
            "mae",
            0.27,
            {("good", "bad"): "first non-inferior", ("bad", "good"): "second non-inferior"},
        ),
        ("mae", 5.0, {("good", "bad"): "equivalent", ("bad", "good"): "equivalent"}),
    ],
)
def test_margins_hold_whichever_direction_is_good(metric, margin, said):
    good = [min(SIZE - 1, g + 1) if k % 30 == 0 else g for k, g in enumerate(GOLD)]
    bad = [min(SIZE - 1, g + 1) if k % 2 == 0 else g for k, g in enumerate(GOLD)]
    systems = {"good": good, "bad": bad}
    for (first, second), expected in said.items():
        board = board_of(GOLD, systems, metric, margins={metric: margin}, against=second)
        (pair,) = board.pairs
        assert (pair.first, pair.second) == (first, second)
        assert pair.margin_verdict == expected


def test_identical_systems_are_equivalent_and_close_ones_undecided_within_a_small_margin():
    systems = {"a": SYSTEMS["s1"], "b": SYSTEMS["s1"], "c": SYSTEMS["s2"]}
    board = board_of(GOLD, systems, margins={"mae": 1e-6})
    said = {"".join(sorted((x.first, x.second))): x.margin_verdict for x in board.pairs}
    assert said == {"ab": "equivalent", "ac": "inconclusive", "bc": "inconclusive"}


def test_without_a_margin_there_is_no_verdict_on_it():
    result = compared(GOLD, SYSTEMS, "mae,accuracy", margins={"mae": 0.1})
    assert {pair.margin_verdict for pair in result.leaderboards["accuracy"].pairs} == {None}
    assert None not in {pair.margin_verdict for pair in result.leaderboards["mae"].pairs}
    assert "margin" in str(result)
    assert "margin" not in str(compared(GOLD, SYSTEMS))


def test_the_conclusion_says_who_is_as_good_but_for_the_margin():
    near = [min(3, p + 1) if k == 0 else p for k, p in enumerate(SYSTEMS["s0"])]
    systems = {"best": SYSTEMS["s0"], "near": near, "poor": SYSTEMS["s3"]}
    said = "By the margin, near cannot be worse than it."
    for against in ("all", "leader", "best"):
        board = board_of(GOLD, systems, margins={"mae": 0.1}, against=against)
        assert said in board.conclusion
        assert "poor cannot" not in board.conclusion
    assert "By the margin" not in board_of(GOLD, systems).conclusion
    assert "By the margin" not in board_of(GOLD, systems, margins={"mae": 1e-6}).conclusion


@pytest.mark.parametrize(
    ("key", "metrics"),
    [
        ("adjacent_accuracy", "adjacent_accuracy"),
        ("accuracy_within( n = 2 )", "accuracy_within(n=2)"),
        ("mae", "mae"),
    ],
)
def test_the_metric_of_a_margin_may_be_spelled_as_any_metric(key, metrics):
    name = find_metric(metrics).expression
    board = compared(GOLD, SYSTEMS, metrics, margins={key: 0.1}).leaderboards[name]
    assert None not in {pair.margin_verdict for pair in board.pairs}


def test_a_margin_of_no_metric_is_refused():
    with pytest.raises(OrdinateError, match="There is no metric 'mea'"):
        compared(GOLD, SYSTEMS, margins={"mea": 0.1})


# --- what has no value ---------------------------------------------------------------------------


def test_a_system_without_a_value_has_no_rank_and_a_reason_and_the_others_are_compared():
    systems = SYSTEMS | {"flat": [1] * 150}
    result = compared(GOLD, systems, "kendall_tau_b,mae")
    board = result.leaderboards["kendall_tau_b"]
    flat = board.get_standing("flat")
    assert board.standings[-1] == flat
    assert (flat.rank, flat.rank_low, flat.rank_high, flat.letters) == (None,) * 4
    assert math.isnan(flat.estimate.value)
    assert flat.estimate.note == find_metric("kendall_tau_b").undefined_when
    assert len(board.pairs) == 6
    assert all("flat" not in (pair.first, pair.second) for pair in board.pairs)
    alone = board_of(GOLD, SYSTEMS, "kendall_tau_b")
    for one in alone.standings:
        assert board.get_standing(one.system).estimate == one.estimate
        assert board.get_standing(one.system).rank == one.rank
    plain = result.to_dict()["metrics"]["kendall_tau_b"]["systems"]["flat"]
    assert plain["value"] is None
    assert plain["undefined"] == flat.estimate.note
    assert plain["rank"] is None
    assert result.leaderboards["mae"].get_standing("flat").rank is not None
    assert "flat" not in board.conclusion


def test_where_one_system_has_a_value_there_is_nothing_to_compare():
    board = board_of(GOLD, {"a": SYSTEMS["s0"], "flat": [1] * 150}, "kendall_tau_b")
    assert board.pairs == ()
    assert board.get_standing("a").rank == 1
    assert "nothing to compare" in board.conclusion
    result = compared(GOLD, {"a": [2] * 150, "flat": [1] * 150}, "kendall_tau_b")
    assert [one.rank for one in result.leaderboards["kendall_tau_b"].standings] == [None, None]
    assert "nothing to compare" in str(result)
    assert math.isnan(result.tests[0].permutation["kendall_tau_b"].p)


def test_a_metric_without_a_meaning_for_silence_leaves_out_only_the_silent_system():
    systems = SYSTEMS | {"silent": [None, *SYSTEMS["s0"][1:]]}
    result = compared(GOLD, systems, "quadratic_kappa,linear_kappa,mae", missing="worst")
    for name in ("quadratic_kappa", "linear_kappa"):
        board = result.leaderboards[name]
        silent = board.get_standing("silent")
        assert silent.rank is None
        assert silent.estimate.note == "it has no meaning for items without a prediction"
        assert board.standings[-1].system == "silent"
        alone = board_of(GOLD, SYSTEMS, name)
        for one in alone.standings:
            assert board.get_standing(one.system).estimate == one.estimate
            assert board.get_standing(one.system).rank == one.rank
        assert len(board.pairs) == 6
    assert result.leaderboards["mae"].get_standing("silent").rank == 2
    assert "Missing predictions count as the worst answer." in words(result)


@pytest.mark.parametrize(
    ("metric", "odd"),
    [("kendall_tau_b", [1] * 150), ("quadratic_kappa", [None, *SYSTEMS["s0"][1:]])],
)
def test_too_many_rows_to_draw_change_nothing_for_a_system_without_a_value(
    monkeypatch, metric, odd
):
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)
    board = board_of(GOLD, SYSTEMS | {"odd": odd}, metric, missing="worst")
    assert board.get_standing("odd").rank is None
    assert [one.rank for one in board.standings[:4]] == [1, 2, 3, 4]
    assert len(board.pairs) == 6


def test_too_many_rows_to_draw_give_about_the_same_leaderboard(monkeypatch):
    gold, systems = sampled(SIZE, 1500, 4, [0.5, 0.6, 0.9])
    drawn = board_of(gold, systems, resamples=2000)
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)
    normal = board_of(gold, systems, resamples=2000)
    for one, other in zip(drawn.pairs, normal.pairs, strict=True):
        assert one.difference == other.difference
        assert (one.high - one.low) == pytest.approx(other.high - other.low, rel=0.1)
        assert one.verdict == other.verdict
    assert [s.letters for s in drawn.standings] == [s.letters for s in normal.standings]


def test_draws_without_a_value_are_left_out_and_counted():
    gold = [0] * 8 + [1] * 2
    systems = {"a": [0] * 9 + [1], "b": [0] * 8 + [1, 1]}
    board = board_of(gold, systems, "kendall_tau_b", resamples=2000)
    (note,) = board.notes
    share = float(re.search(r"In ([\d.]+)% of the resamples a system has no value", note)[1]) / 100
    # Gold varies where one of the eight and one of the two is drawn, and a where the last one is.
    defined = 1 - 0.9**10 - 0.2**10 + 0.1**10
    error = math.sqrt(defined * (1 - defined) / 2000)
    assert abs(share - (1 - defined)) < 4 * error + 0.001
    assert board.get_standing("a").rank is not None


def test_where_too_few_draws_have_a_value_nothing_is_compared():
    gold = [0] * 40 + [1]
    systems = {"a": [0] * 40 + [1], "b": [0] * 40 + [1]}
    board = board_of(gold, systems, "kendall_tau_b", resamples=100)
    assert "Too few are left to compare" in board.notes[0]
    assert board.pairs == ()


# --- weights and groups --------------------------------------------------------------------------


def test_real_weights_have_no_test_that_counts_items_and_say_why():
    (tests,) = compared(
        GOLD,
        {"a": SYSTEMS["s0"], "b": SYSTEMS["s1"]},
        weights=np.linspace(0.2, 1.7, 150),
    ).tests
    every = {"permutation": tests.permutation["mae"], **tests.others}
    for name, test in every.items():
        assert math.isnan(test.p), name
        assert "weights" in test.note, name


def test_the_scale_of_real_weights_does_not_matter():
    weights = np.linspace(0.21, 1.7, 150)
    one, other = (board_of(GOLD, SYSTEMS, weights=weights * factor) for factor in (1.0, 0.037))
    for first, second in zip(one.pairs, other.pairs, strict=True):
        assert first.difference == pytest.approx(second.difference)
        assert first.low == pytest.approx(second.low, rel=1e-6)
        assert first.p == second.p


def test_whole_weights_are_repetitions():
    times = [1 + k % 3 for k in range(150)]
    repeated = {n: np.repeat(answers, times).tolist() for n, answers in SYSTEMS.items()}
    weighted = board_of(GOLD, SYSTEMS, weights=times)
    assert weighted.to_dict() == board_of(np.repeat(GOLD, times).tolist(), repeated).to_dict()


def test_groups_are_drawn_whole():
    """Items that come ten times are no new items: limits are as wide as those of one of each."""
    gold, systems = sampled(SIZE, 60, 8, [0.6, 0.9])
    groups = list(range(60)) * 10
    many = {name: answers * 10 for name, answers in systems.items()}
    (alone,) = board_of(gold, systems, resamples=2000).pairs
    (grouped,) = board_of(gold * 10, many, groups=groups, resamples=2000).pairs
    (naive,) = board_of(gold * 10, many, resamples=2000).pairs
    width = alone.high - alone.low
    assert grouped.high - grouped.low == pytest.approx(width, rel=0.1)
    assert naive.high - naive.low < 0.4 * width


def test_with_groups_the_tests_of_a_pair_swap_groups():
    groups = [k // 10 for k in range(150)]
    systems = {"a": SYSTEMS["s0"], "b": SYSTEMS["s1"]}
    (tests,) = compared(GOLD, systems, groups=groups).tests
    panel = panel_of(GOLD, systems, SIZE, groups=groups)
    expected = permutation_test(find_metric("mae"), panel.pair_systems("a", "b", grouped=True))
    assert tests.permutation["mae"] == expected
    assert expected != permutation_test(find_metric("mae"), panel.pair_systems("a", "b"))


def test_with_groups_tests_that_take_items_for_independent_have_no_p_or_a_note():
    """Ten copies of each item make McNemar's p tiny, although nothing new was seen."""
    gold, systems = sampled(SIZE, 40, 8, [0.6, 0.9])
    groups = list(range(40)) * 10
    many = {name: answers * 10 for name, answers in systems.items()}
    (tests,) = compared(gold * 10, many, groups=groups).tests
    for name, test in tests.others.items():
        assert test.note, name


def test_the_report_says_how_many_groups_there_are_and_that_few_are_few():
    many = compared(GOLD, SYSTEMS, groups=[k % 40 for k in range(150)])
    assert "Items come in 40 groups, which are resampled whole." in words(many)
    few = compared(GOLD, SYSTEMS, groups=[k % 7 for k in range(150)])
    assert "7 groups, which are resampled whole; so few that intervals are unsure" in words(few)
    assert few.to_dict()["groups"] == 7
    assert compared(GOLD, SYSTEMS).to_dict()["groups"] is None


@pytest.mark.parametrize("metric", ["mae", "purity"])
def test_one_group_is_nothing_to_compare_with_and_the_report_says_so(metric):
    result = compared(GOLD, SYSTEMS, metric, groups=["one"] * 150)
    board = result.leaderboards[metric]
    assert board.pairs == ()
    assert board.notes == ("All items are of one group: nothing can be compared.",)
    assert {one.rank for one in board.standings} == {None}
    assert board.notes[0] in words(result)
    for one in board.standings:
        assert one.estimate.note == "there is one group only"
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("count", [2, 4, 5, 6])
def test_few_groups_can_only_say_what_their_swaps_can(count):
    """2^(1 - 5) = 0.0625: five groups tell nothing apart, however clear, and six do."""
    systems = {"right": GOLD, "wrong": [(g + 2) % 4 for g in GOLD]}
    board = board_of(GOLD, systems, groups=[k % count for k in range(150)])
    (pair,) = board.pairs
    assert pair.p >= 2.0 ** (1 - count)
    assert pair.verdict == ("better" if count == 6 else "inconclusive")
    assert math.isnan(pair.low)  # no draw has another difference, but for rounding
    assert math.isnan(pair.high)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_rounding_of_modelled_draws_is_no_limit_of_a_difference_that_never_changes(count):
    systems = {"right": GOLD, "wrong": [(g + 2) % 4 for g in GOLD], "s0": SYSTEMS["s0"]}
    board = board_of(GOLD, systems, groups=[k % count for k in range(150)], resamples=2000)
    limits = {(pair.first, pair.second): pair.low for pair in board.pairs}
    assert math.isnan(limits.pop(("right", "wrong")))
    assert not any(math.isnan(low) or math.isinf(low) for low in limits.values())


def test_a_difference_that_no_draw_changes_has_no_limits_and_the_least_p():
    gold = [0, 1] * 3
    systems = {"right": gold, "wrong": [1 - g for g in gold]}
    result = compared(gold, systems, "accuracy", margins={"accuracy": 0.1})
    (pair,) = result.leaderboards["accuracy"].pairs
    assert (pair.difference, pair.p, pair.p_adjusted) == (1, 2.0**-5, 2.0**-5)
    assert math.isnan(pair.low)
    assert math.isnan(pair.high)
    assert (pair.verdict, pair.margin_verdict) == ("better", "inconclusive")
    (plain,) = json.loads(render(result, "json"))["metrics"]["accuracy"]["pairs"]
    assert plain["low"] is plain["high"] is None
    for form in FORMS:
        assert "nan" not in rendered(result, form).replace("nano", "")
    few = compared(gold[:4], {n: x[:4] for n, x in systems.items()}, "accuracy")
    (pair,) = few.leaderboards["accuracy"].pairs
    assert (pair.p, pair.verdict) == (0.125, "inconclusive")


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_items_without_a_group_are_refused_or_dropped_as_in_an_evaluation(nothing):
    groups = [nothing if k < 5 else k % 35 for k in range(150)]
    with pytest.raises(MissingLabels, match="5 of 150 items have no group"):
        evaluate(labels(GOLD), labels(SYSTEMS["s0"]), SCALE, "mae", groups=groups)
    with pytest.raises(MissingLabels, match="5 of 150 items have no group"):
        compared(GOLD, SYSTEMS, groups=groups)
    result = compared(GOLD, SYSTEMS, groups=groups, missing="drop")
    inner = {name: answers[5:] for name, answers in SYSTEMS.items()}
    alone = compared(GOLD[5:], inner, groups=groups[5:])
    assert result.panel.n == 145
    assert result.panel.dropped == 5
    assert result.leaderboards["mae"].to_dict() == alone.leaderboards["mae"].to_dict()


def test_groups_whose_items_are_all_dropped_are_no_groups():
    answers = [None if k < 100 else p for k, p in enumerate(SYSTEMS["s1"])]
    groups = [f"lost{k // 2}" if k < 100 else f"kept{k % 5}" for k in range(150)]
    systems = {"a": SYSTEMS["s0"], "b": answers}
    result = compared(GOLD, systems, groups=groups, missing="drop")
    inner = {name: column[100:] for name, column in systems.items()}
    alone = compared(GOLD[100:], inner, groups=groups[100:])
    assert result.to_dict()["groups"] == 5
    assert result.leaderboards["mae"].to_dict() == alone.leaderboards["mae"].to_dict()


# --- pairs ---------------------------------------------------------------------------------------


def test_two_systems_get_their_tests_and_more_only_where_they_are_named():
    (tests,) = compared(GOLD, {"a": SYSTEMS["s0"], "b": SYSTEMS["s1"]}).tests
    assert (tests.first, tests.second) == ("a", "b")
    assert compared(GOLD, SYSTEMS).tests == ()
    result = compared(GOLD, SYSTEMS, "mae,accuracy", pairs=[("s3", "s1"), ("s0", "s2")])
    assert [(test.first, test.second) for test in result.tests] == [("s3", "s1"), ("s0", "s2")]
    assert set(result.tests[0].permutation) == {"mae", "accuracy"}
    assert set(result.tests[0].others) == {"mcnemar", "sign", "bowker", "stuart_maxwell"}
    assert "Tests: s3 and s1" in str(result)


def test_names_of_systems_may_be_no_text():
    systems = {1: labels(SYSTEMS["s0"]), 2.5: labels(SYSTEMS["s1"]), "x": labels(SYSTEMS["s2"])}
    result = compare(
        labels(GOLD), systems, SCALE, "mae", resamples=DRAWS, pairs=[(1, 2.5), ("x", 1)]
    )
    assert [(test.first, test.second) for test in result.tests] == [("1", "2.5"), ("x", "1")]
    assert {one.system for one in result.leaderboards["mae"].standings} == {"1", "2.5", "x"}


def test_the_tests_of_a_pair_are_those_of_its_items():
    gold, systems = sampled(SIZE, 120, 6, [0.5, 0.8])
    (tests,) = compared(gold, systems, "mae,accuracy").tests
    right = [[g == p for g, p in zip(gold, x, strict=True)] for x in systems.values()]
    only = [sum(a and not b for a, b in zip(x, y, strict=True)) for x, y in (right, right[::-1])]
    expected = stats.binomtest(only[0], sum(only)).pvalue
    assert tests.others["mcnemar"].p == pytest.approx(expected, rel=1e-12)
    swaps = tests.permutation["accuracy"].p
    assert swaps == pytest.approx(expected, rel=0.4)  # from 100 hits
    square = np.zeros((SIZE, SIZE))
    for a, b in zip(*systems.values(), strict=True):
        square[a, b] += 1
    there, back = square[np.triu_indices(SIZE, 1)], square.T[np.triu_indices(SIZE, 1)]
    seen = there + back > 0
    statistic = ((there - back)[seen] ** 2 / (there + back)[seen]).sum()
    assert tests.others["bowker"].statistic == pytest.approx(statistic)


# --- in words ------------------------------------------------------------------------------------


def test_the_conclusion_names_the_leader_and_whom_it_beats_and_whom_not():
    systems = {
        "best": SYSTEMS["s0"],
        "twin": SYSTEMS["s0"],
        "near": [min(3, p + 1) if k == 0 else p for k, p in enumerate(SYSTEMS["s0"])],
        "poor": SYSTEMS["s1"],
        "poorer": SYSTEMS["s3"],
    }
    board = board_of(GOLD, systems)
    leader = board.get_standing("best")
    found = board.conclusion
    limits = f"{leader.estimate.low:.3f} to {leader.estimate.high:.3f}"
    assert found.startswith(f"best leads on mae with {leader.estimate.value:.3f} ({limits}).")
    assert "It is significantly better than poor and poorer." in found
    assert "It is not significantly different from near." in found
    assert "no difference from twin" in found


def test_the_conclusion_is_the_same_whoever_comes_first():
    turned = dict(reversed(SYSTEMS.items()))
    assert board_of(GOLD, SYSTEMS).conclusion.startswith("s0 leads on mae")
    found = board_of(GOLD, turned).conclusion
    assert found.startswith("s0 leads on mae")
    assert set(re.search(r"better than (s\d), (s\d) and (s\d)\.", found).groups()) == {
        "s1",
        "s2",
        "s3",
    }


def test_the_conclusion_counts_systems_that_are_too_many_to_name():
    gold, systems = sampled(SIZE, 200, 1, [0.1] + [2.0] * 7)
    assert "It is significantly better than 7 systems." in board_of(gold, systems).conclusion


def test_every_metric_has_its_conclusion_in_the_report():
    result = compared(GOLD, SYSTEMS, "mae,accuracy,bias")
    for board in result.leaderboards.values():
        assert board.conclusion in words(result)


KEYS = {
    "schema", "task", "n", "weight", "scale", "systems", "groups", "dropped", "level", "resamples",
    "seed", "against", "correction", "metrics", "tests", "source",
}  # fmt: skip
OF_BOARD = {"direction", "conclusion", "notes", "systems", "pairs", "baselines"}
OF_SYSTEM = {
    "value", "low", "high", "method", "undefined_share", "undefined", "rank", "rank_low",
    "rank_high", "rank_frequencies", "letters",
}  # fmt: skip
OF_PAIR = {
    "first", "second", "difference", "low", "high", "p", "p_adjusted", "verdict", "margin_verdict",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_json_is_strict_and_has_the_keys_that_it_promises(way):
    systems = {"a": SYSTEMS["s0"], "flat": [1] * 150, "b": SYSTEMS["s1"]}
    chosen = "mae,kendall_tau_b,quadratic_kappa,min_sensitivity,purity,bias,gwet_ac2,oci"
    result = compared(GOLD, systems, chosen, resamples=100, pairs=[("a", "flat")], **WAYS[way])
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain.keys() == KEYS
    assert "predicted" not in plain["source"]
    assert (plain["task"], plain["n"]) == ("compare", 150)
    assert plain["systems"] == ["a", "flat", "b"]
    for board in plain["metrics"].values():
        assert board.keys() == OF_BOARD
        assert set(board["systems"]) == set(systems)
        for one in board["systems"].values():
            assert one.keys() >= OF_SYSTEM
            assert (one["value"] is None) == (one["undefined"] is not None)
        assert all(pair.keys() == OF_PAIR for pair in board["pairs"])
    assert json.loads(render(result, "json")) == plain
    (tests,) = plain["tests"]
    assert tests.keys() == {
        "first", "second", "permutation", "mcnemar", "sign", "bowker", "stuart_maxwell",
    }  # fmt: skip


def test_all_metrics_can_be_compared():
    systems = SYSTEMS | {"flat": [1] * 150, "silent": [None] * 150}
    result = compared(GOLD, systems, "all", resamples=100, missing="worst")
    json.dumps(result.to_dict(), allow_nan=False)
    for board in result.leaderboards.values():
        for one in board.standings:
            assert not math.isnan(one.estimate.value) or one.estimate.note


def test_rank_frequencies_in_the_json_add_up_to_1():
    plain = compared(GOLD, SYSTEMS).to_dict()["metrics"]["mae"]["systems"]
    for one in plain.values():
        assert sum(one["rank_frequencies"].values()) == pytest.approx(1)
        assert set(one["rank_frequencies"]) <= {"1", "2", "3", "4"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["plain", "undefined", "groups", "margins", "two", "many"])
def test_every_form_can_be_rendered(form, case):
    options = {
        "groups": {"groups": [k % 7 for k in range(150)]},
        "margins": {"margins": {"mae": 0.1}, "against": "leader"},
        "two": {"systems": {"a": SYSTEMS["s0"], "b": SYSTEMS["s1"]}},
        "undefined": {"systems": SYSTEMS | {"flat": [1] * 150}, "metrics": "kendall_tau_b"},
        "many": {"systems": {f"x{k}": SYSTEMS[f"s{k % 4}"] for k in range(55)}, "resamples": 100},
    }.get(case, {})
    systems = options.pop("systems", SYSTEMS)
    result = compared(GOLD, systems, options.pop("metrics", "mae,accuracy"), **options)
    shown = rendered(result, form)
    assert all(name in shown for name in systems if form in {"json", "csv"} or case != "many")


def test_the_csv_has_a_record_for_each_metric_and_system():
    result = compared(GOLD, SYSTEMS, "mae,accuracy")
    records = list(csv.DictReader(io.StringIO(render(result, "csv"))))
    assert len(records) == 8
    for record in records:
        one = result.leaderboards[record["metric"]].get_standing(record["system"])
        assert float(record["value"]) == one.estimate.value
        assert int(record["rank"]) == one.rank
        assert record["letters"] == one.letters


def test_the_text_report_shows_what_the_board_knows():
    result = compared(GOLD, SYSTEMS)
    shown = words(result)
    board = result.leaderboards["mae"]
    for one in board.standings:
        found = one.estimate
        row = (
            f"{one.rank} {one.system} {found.value:.3f} {found.low:.3f} to {found.high:.3f} "
            f"{one.rank_low} to {one.rank_high} {100 * one.rank_shares[0]:.1f} % {one.letters}"
        )
        assert row in shown
    for pair in board.pairs:
        row = f"{pair.first} {pair.second} {pair.difference:z.3f} {pair.low:z.3f} to"
        assert row in shown
    assert "all pairs, max-T" in shown


def test_values_of_all_metrics_have_their_limits_and_letters_in_one_cell():
    result = compared(GOLD, SYSTEMS, "mae,accuracy,bias,cem_ord")
    shown = words(result)
    assert shown.count("Values with their compact letter display") == 2
    for system in SYSTEMS:
        cells = []
        for board in list(result.leaderboards.values())[:3]:
            one = board.get_standing(system)
            found = one.estimate
            limits = f"({found.low:z.2f} to {found.high:z.2f})"
            cells.append(f"{found.value:z.3f} {limits} {one.letters}")
        assert f"{system} {' '.join(cells)}" in shown


def test_very_small_p_values_are_not_shown_as_0():
    gold = [0, 1] * 40
    result = compared(gold, {"a": gold, "b": [1 - g for g in gold]}, "accuracy", resamples=20_000)
    (pair,) = result.leaderboards["accuracy"].pairs
    assert 0 < pair.p < 0.0001
    shown = words(result)
    assert "<0.0001 <0.0001 better" in shown
    assert "0.0000" not in shown
    assert "nan" not in shown


def test_the_report_says_by_which_methods_the_intervals_were_found():
    shown = words(compared(GOLD, SYSTEMS, "accuracy,macro_mae"))
    assert "Intervals by Wilson: s0" in shown
    assert "Intervals by MOVER over the levels: " in shown


NASTY = ["\x1b[31mred\x1b[0m", "\x9b31m", "new\nline", "\u202eback"]


@pytest.mark.parametrize("nasty", NASTY)
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
@pytest.mark.parametrize("against", ["all", "nasty"])
def test_no_name_of_a_system_can_drive_the_terminal(nasty, form, against):
    systems = {nasty: SYSTEMS["s0"], "plain": SYSTEMS["s1"]}
    named = nasty if against == "nasty" else against
    shown = rendered(compared(GOLD, systems, against=named), form)
    assert not [x for x in shown if not x.isprintable() and x != "\n"]
    assert "new\nline" not in shown


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<b>"])
def test_html_has_no_tag_of_a_system(name):
    shown = rendered(compared(GOLD, {name: SYSTEMS["s0"], "b": SYSTEMS["s1"]}), "html")
    assert name not in shown


@pytest.mark.parametrize("name", ["=cmd()", "@sum", "+1+cmd()"])
def test_csv_has_no_formula_of_a_system(name):
    shown = render(compared(GOLD, {name: SYSTEMS["s0"], "b": SYSTEMS["s1"]}), "csv")
    assert not re.search(rf"(^|,){re.escape(name)}", shown, re.MULTILINE)


def test_progress_goes_from_nothing_to_the_end():
    said = []
    panel = panel_of(GOLD, SYSTEMS, SIZE)
    Comparison.from_panel(panel, "mae", ComparisonSettings(resamples=DRAWS), progress=said.append)
    assert said == sorted(said)
    assert 0 < said[0] < said[-1] <= 1


# --- any panel -----------------------------------------------------------------------------------


@st.composite
def small_panels(draw):
    size = draw(st.integers(2, 3))
    systems = draw(st.integers(2, 4))
    answer = st.sampled_from([*range(size), None])
    row = st.tuples(st.integers(0, size - 1), *[answer] * systems)
    rows = draw(st.lists(row, min_size=1, max_size=12))
    gold, *columns = (list(column) for column in zip(*rows, strict=True))
    return size, gold, {f"s{k}": column for k, column in enumerate(columns)}


@given(case=small_panels(), data=st.data())
@settings(max_examples=40)
def test_any_panel_has_ranks_or_reasons_and_strict_json(case, data):
    size, gold, systems = case
    more = data.draw(st.sampled_from(["", "weights", "groups"]))
    options = {
        "": {},
        "weights": {"weights": [0.5 + k for k in range(len(gold))]},
        "groups": {"groups": [k % 3 for k in range(len(gold))]},
    }[more]
    result = compare(
        labels(gold), by_label(systems), scale_of(size), missing="worst", resamples=100, **options
    )
    json.dumps(result.to_dict(), allow_nan=False)
    for form in FORMS:
        rendered(result, form)
    for board in result.leaderboards.values():
        ranked = [one for one in board.standings if one.rank is not None]
        for one in board.standings:
            assert not math.isnan(one.estimate.value) or one.estimate.note
            assert (one.rank is None) <= (math.isnan(one.estimate.value) or bool(board.notes))
        for one in ranked:
            assert 1 <= one.rank_low <= one.rank <= one.rank_high <= len(ranked)
            assert sum(one.rank_shares) == pytest.approx(1)
        for pair in board.pairs:
            if math.isnan(pair.low):  # every draw has this difference, and none says how sure
                assert math.isnan(pair.high)
                assert pair.difference != 0
                assert pair.to_dict()["low"] is pair.to_dict()["high"] is None
            else:
                assert pair.low <= pair.difference <= pair.high
            assert 0 < pair.p <= pair.p_adjusted <= 1
            both = list(zip(systems[pair.first], systems[pair.second], strict=True))
            places = {k % 3 if more == "groups" else k for k, (x, y) in enumerate(both) if x != y}
            assert pair.p >= min(1.0, 2.0 ** (1 - len(places)))
            same = systems[pair.first] == systems[pair.second]
            assert not same or pair.verdict == "identical"
            assert (
                not same
                or board.get_standing(pair.first).rank == board.get_standing(pair.second).rank
            )
