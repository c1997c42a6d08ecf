"""Pairs of systems: the family that is compared, corrections, margins and tests."""

import math
import re

import numpy as np
import pytest
from comparisons import DRAWS, GOLD, SCALE, SIZE, SYSTEMS, board_of, compared
from hypothesis import given
from hypothesis import strategies as st
from panels import by_label, labels, panel_of, sampled
from rendered_reports import words
from scipy import stats
from strategies import scale_of

from ordinate.errors import (
    BadOption,
    NoItems,
    OffScale,
    OrdinateError,
    UnequalLengths,
)
from ordinate.inference.multiple_testing import benjamini_hochberg, benjamini_yekutieli, holm
from ordinate.metrics import find_metric
from ordinate.results.comparison import Comparison, compare
from ordinate.results.joint_comparison import _decide_margin

# --- the family -----------------------------------------------------------------------------------


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
    assert all(one.compact_letter_display for one in board.standings)


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
        assert one.compact_letter_display is None
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
        assert abs(other.difference.value) == pytest.approx(abs(pair.difference.value))
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
    assert all(one.compact_letter_display for one in board.standings)


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
        ({"seed": -1}, "seed must be an integer"),
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


# --- corrections ----------------------------------------------------------------------------------


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
def test_intervals_and_own_p_values_are_the_same_whatever_the_correction(correction, against):
    gold, systems = sampled(SIZE, 60, 5, [0.5, 0.6, 0.7, 0.9, 1.2])
    expected = board_of(gold, systems, against=against)
    found = board_of(gold, systems, against=against, correction=correction)
    for pair, other in zip(found.pairs, expected.pairs, strict=True):
        assert (pair.difference.low, pair.difference.high, pair.p) == (
            other.difference.low,
            other.difference.high,
            other.p,
        )
    if correction == "none":
        assert any(
            x.p_adjusted < y.p_adjusted for x, y in zip(found.pairs, expected.pairs, strict=True)
        )


@pytest.mark.parametrize("correction", ["max_t", "holm", "bh", "by", "none"])
def test_pairs_with_the_leader_are_corrected_for_all_pairs_which_chose_it(correction):
    gold, systems = sampled(SIZE, 60, 5, [0.5, 0.6, 0.7, 0.9, 1.2])
    everyone = board_of(gold, systems, correction=correction)
    found = board_of(gold, systems, against="leader", correction=correction)
    whole = {(x.first, x.second): x.p_adjusted for x in everyone.pairs}
    assert [x.p_adjusted for x in found.pairs] == [whole[x.first, x.second] for x in found.pairs]
    assert found.standings == everyone.standings


def test_ranks_letters_and_verdicts_of_the_leader_agree():
    """Whoever shares a letter with the leader may be first, and is not said to be beaten."""
    for seed in range(6):
        gold, systems = sampled(SIZE, 60, seed, [0.5, 0.6, 0.7, 0.9, 1.2, 0.65])
        board = board_of(gold, systems, against="leader")
        leader = board.standings[0]
        beaten = {pair.second for pair in board.pairs if pair.verdict == "better"}
        for one in board.standings[1:]:
            assert (one.system in beaten) == (
                not set(one.compact_letter_display) & set(leader.compact_letter_display)
            )
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
    assert {one.compact_letter_display for one in board.standings} == {None}
    assert board.standings[0].rank_high == 1
    assert "share a letter" not in str(compared(GOLD, SYSTEMS))


@pytest.mark.parametrize("correction", ["holm", "bh", "by"])
def test_too_few_draws_for_a_correction_are_said_with_the_number_that_is_enough(correction):
    gold, systems = crowd(10)
    weights = {"weights": [1.0 + 0.001 * (k % 2) for k in range(len(gold))]}  # that are no counts
    few = board_of(gold, systems, correction=correction, resamples=200, **weights)
    note = few.notes[0]
    assert "With 200 resamples no p-value is below 0.005" in note
    assert f"the correction {correction} for 45 pairs" in note
    needed = int(re.search(r"take ([\d,]+) resamples", note)[1].replace(",", ""))
    assert needed == 900
    for other, resamples in ((correction, needed), ("max_t", 200), ("none", 200)):
        enough = board_of(gold, systems, correction=other, resamples=resamples, **weights)
        assert "may never reject" not in " ".join(enough.notes)


def test_too_few_swaps_for_a_correction_are_said_with_the_one_that_needs_no_more():
    gold, systems = crowd(15)
    few, plain = (
        " ".join(board_of(gold, systems, correction=x, resamples=200).notes)
        for x in ("holm", "max_t")
    )
    assert "With 1,999 resamples no p-value is below 0.0005" in few
    assert "the correction holm for 105 pairs may never reject: take max_t." in few
    assert "may never reject" not in plain


def test_with_enough_draws_holm_can_reject():
    gold, systems = sampled(SIZE, 100, 2, [0.1, 3.0])
    board = board_of(gold, systems, correction="holm", resamples=200)
    assert board.pairs[0].verdict == "better"


# --- margins --------------------------------------------------------------------------------------


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


# --- pairs ----------------------------------------------------------------------------------------


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
