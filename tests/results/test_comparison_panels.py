"""Comparisons of weighted, clustered, incomplete and arbitrary panels."""

import json
import math
import re
from functools import partial

import numpy as np
import pytest
from comparisons import GOLD, SCALE, SIZE, SYSTEMS, board_of, compared
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import by_label, labels, panel_of, sampled
from rendered_reports import drop_code, words
from strategies import scale_of

from ordinate.errors import (
    MissingLabels,
)
from ordinate.inference.paired_tests import permutation_test
from ordinate.inference.system_differences import resample_jointly
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results import leaderboard
from ordinate.results.comparison import compare
from ordinate.results.label_evaluation import evaluate

# --- what has no value ----------------------------------------------------------------------------


def test_a_system_without_a_value_has_no_rank_and_a_reason_and_the_others_are_compared():
    systems = SYSTEMS | {"flat": [1] * 150}
    result = compared(GOLD, systems, "kendall_tau_b,mae")
    board = result.leaderboards["kendall_tau_b"]
    flat = board.get_standing("flat")
    assert board.standings[-1] == flat
    assert (flat.rank, flat.rank_low, flat.rank_high, flat.compact_letter_display) == (None,) * 4
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
    monkeypatch.setattr(leaderboard, "resample_jointly", partial(resample_jointly, most_rows=0))
    board = board_of(GOLD, SYSTEMS | {"odd": odd}, metric, missing="worst")
    assert board.get_standing("odd").rank is None
    assert [one.rank for one in board.standings[:4]] == [1, 2, 3, 4]
    assert len(board.pairs) == 6


def test_too_many_rows_to_draw_give_about_the_same_leaderboard(monkeypatch):
    gold, systems = sampled(SIZE, 1500, 4, [0.5, 0.6, 0.9])
    drawn = board_of(gold, systems, resamples=2000)
    monkeypatch.setattr(leaderboard, "resample_jointly", partial(resample_jointly, most_rows=0))
    normal = board_of(gold, systems, resamples=2000)
    for one, other in zip(drawn.pairs, normal.pairs, strict=True):
        assert one.difference.value == other.difference.value
        assert one.difference.width == pytest.approx(other.difference.width, rel=0.1)
        assert one.verdict == other.verdict
    assert [s.compact_letter_display for s in drawn.standings] == [
        s.compact_letter_display for s in normal.standings
    ]


def test_draws_without_a_value_are_left_out_and_counted():
    gold = [0] * 8 + [1] * 2
    systems = {"a": [0] * 9 + [1], "b": [0] * 8 + [1, 1]}
    board = board_of(gold, systems, "kendall_tau_b", resamples=2000)
    note, few = board.notes
    assert few.startswith("Too few items differ for a verdict on b - a: with fewer than 6")
    share = float(re.search(r"In ([\d.]+) % of the resamples a system has no value", note)[1]) / 100
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


# --- weights and groups ---------------------------------------------------------------------------


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
        assert first.difference.value == pytest.approx(second.difference.value)
        assert first.difference.low == pytest.approx(second.difference.low, rel=1e-6)
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
    width = alone.difference.width
    assert grouped.difference.width == pytest.approx(width, rel=0.1)
    assert naive.difference.width < 0.4 * width


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
    assert "Items come in 40 clusters, which stay whole." in words(many)
    few = compared(GOLD, SYSTEMS, groups=[k % 7 for k in range(150)])
    assert "7 clusters, which stay whole; so few that intervals are unsure" in words(few)
    assert few.to_dict()["groups"] == 7
    assert compared(GOLD, SYSTEMS).to_dict()["groups"] is None


@pytest.mark.parametrize("metric", ["mae", "purity"])
def test_one_group_is_nothing_to_compare_with_and_the_report_says_so(metric):
    result = compared(GOLD, SYSTEMS, metric, groups=["one"] * 150)
    board = result.leaderboards[metric]
    assert board.pairs == ()
    assert board.notes == ("All items are of one cluster: nothing can be compared.",)
    assert {one.rank for one in board.standings} == {None}
    assert board.notes[0] in words(result)
    for one in board.standings:
        assert one.estimate.note == "there is one cluster only"
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_system_that_hangs_on_one_group_is_not_compared_and_the_others_are():
    groups = np.arange(150) % 12
    hanging = [gold if k == 0 else GOLD[0] for gold, k in zip(GOLD, groups, strict=True)]
    systems = {"hanging": hanging} | SYSTEMS
    result = compared(GOLD, systems, "kendall_tau_b", groups=groups.tolist())
    board = result.leaderboards["kendall_tau_b"]
    found = board.get_standing("hanging")
    assert not math.isnan(found.estimate.value)
    assert (found.rank, found.estimate.method) == (None, None)
    assert found.estimate.note == "it is undefined without one of the 12 clusters"
    assert board.notes[0] == "Not compared: hanging, with no value without one of the clusters."
    assert {pair.first for pair in board.pairs} | {pair.second for pair in board.pairs} == {
        *SYSTEMS
    }
    assert not any(math.isnan(pair.difference.low) for pair in board.pairs)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("count", [2, 4, 5, 6])
def test_few_groups_can_only_say_what_their_swaps_can(count):
    """2^(1 - 5) = 0.0625: five groups tell nothing apart, however clear, and six do."""
    systems = {"right": GOLD, "wrong": [(g + 2) % 4 for g in GOLD]}
    board = board_of(GOLD, systems, groups=[k % count for k in range(150)])
    (pair,) = board.pairs
    assert pair.p >= 2.0 ** (1 - count)
    assert pair.verdict == ("better" if count == 6 else "inconclusive")
    assert math.isnan(pair.difference.low)  # no draw has another difference, but for rounding
    assert math.isnan(pair.difference.high)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_rounding_of_modelled_draws_is_no_limit_of_a_difference_that_never_changes(count):
    systems = {"right": GOLD, "wrong": [(g + 2) % 4 for g in GOLD], "s0": SYSTEMS["s0"]}
    board = board_of(GOLD, systems, groups=[k % count for k in range(150)], resamples=2000)
    limits = {(pair.first, pair.second): pair.difference.low for pair in board.pairs}
    assert math.isnan(limits.pop(("right", "wrong")))
    assert not any(math.isnan(low) or math.isinf(low) for low in limits.values())


def test_a_difference_that_no_draw_changes_has_no_limits_and_the_least_p():
    gold = [0, 1] * 3
    systems = {"right": gold, "wrong": [1 - g for g in gold]}
    result = compared(gold, systems, "accuracy", margins={"accuracy": 0.1})
    (pair,) = result.leaderboards["accuracy"].pairs
    assert (pair.difference.value, pair.p, pair.p_adjusted) == (1, 2.0**-5, 2.0**-5)
    assert math.isnan(pair.difference.low)
    assert math.isnan(pair.difference.high)
    assert (pair.verdict, pair.margin_verdict) == ("better", "inconclusive")
    (plain,) = json.loads(render(result, "json"))["metrics"]["accuracy"]["pairs"]
    assert plain["low"] is plain["high"] is None
    for form in RENDERERS:
        assert "nan" not in drop_code(render(result, form)).replace("nano", "")
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


# --- any panel ------------------------------------------------------------------------------------


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
@examples(40)
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
    for form in RENDERERS:
        render(result, form)
    for board in result.leaderboards.values():
        ranked = [one for one in board.standings if one.rank is not None]
        for one in board.standings:
            assert not math.isnan(one.estimate.value) or one.estimate.note
            assert (one.rank is None) <= (math.isnan(one.estimate.value) or bool(board.notes))
        for one in ranked:
            assert 1 <= one.rank_low <= one.rank <= one.rank_high <= len(ranked)
            assert sum(one.rank_shares) == pytest.approx(1)
        for pair in board.pairs:
            gap = pair.difference
            if math.isnan(gap.low):  # every draw has this difference, and none says how sure
                assert math.isnan(gap.high)
                assert gap.value != 0
                assert gap.note == "every resample gives the same difference"
            else:
                assert gap.low <= gap.value <= gap.high
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
