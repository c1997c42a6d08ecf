"""Verdicts by swaps: never against a test of the same pair, and said where they cannot be had."""

import itertools

import numpy as np
import pytest
from comparisons import GOLD, SIZE, SYSTEMS, WAYS, board_of, compared
from panels import labels, sampled
from rendered_reports import words

from ordinate.inference.multiple_testing import benjamini_hochberg, holm
from ordinate.inference.randomization import randomize_differences
from ordinate.inference.resampling import Resampling
from ordinate.inference.system_differences import list_pairs
from ordinate.metrics import find_metric
from ordinate.render import render
from ordinate.results import joint_comparison, leaderboard
from ordinate.results.comparison import Comparison

FEW = [f"g{k % 7}" for k in range(150)]


def clustered(seed, groups=10):
    """Two equal systems that err alike within small clusters, on gold with rare levels."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(SIZE, 5 * groups, p=[0.6, 0.3, 0.07, 0.03])
    place = np.arange(5 * groups) % groups
    systems = {
        name: np.clip(
            np.rint(gold + rng.normal(0, 0.6, groups)[place] + rng.normal(0, 0.5, len(gold))),
            0,
            SIZE - 1,
        ).astype(int)
        for name in ("a", "b")
    }
    return gold.tolist(), {name: x.tolist() for name, x in systems.items()}, place.tolist()


@pytest.mark.parametrize("way", ["items", "whole weights", "groups", "few groups"])
def test_p_values_are_those_of_the_shared_coins(way):
    result = compared(GOLD, SYSTEMS, "mae,kendall_tau_b", seed=3, **WAYS[way])
    metrics = [find_metric("mae"), find_metric("kendall_tau_b")]
    pairs = [list_pairs(4)] * 2
    drawn = randomize_differences(result.panel, metrics, pairs, Resampling(9_999, 3))
    for metric, found in zip(metrics, drawn, strict=True):
        p = found.compute_p_values()
        place = {frozenset(x): k for k, x in enumerate(itertools.combinations(SYSTEMS, 2))}
        board = result.leaderboards[metric.name]
        assert board.test.method == "randomisation max-T"
        assert (board.test.resamples is None) == (way == "few groups")
        for pair in board.pairs:
            index = place[frozenset((pair.first, pair.second))]
            assert pair.p == pytest.approx(p.own[index])
            assert pair.p_adjusted == pytest.approx(p.adjusted[index])
            assert abs(pair.difference.value) == pytest.approx(abs(found.observed[index]))
            assert (pair.verdict == "inconclusive") == (pair.p_adjusted > 0.05)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("against", ["all", "leader", "s2"])
def test_an_adjusted_p_is_never_below_its_own(way, against):
    result = compared(GOLD, SYSTEMS, "mae,f1_macro", against=against, **WAYS[way])
    for board in result.leaderboards.values():
        assert all(pair.p_adjusted >= pair.p for pair in board.pairs)
        assert len(board.pairs) == (6 if against == "all" else 3)


def test_no_verdict_contradicts_the_exact_test_of_the_pair():
    """With ten clusters and rare levels the bootstrap did, in one sample of four."""
    for seed in range(1_000, 1_012):
        gold, systems, groups = clustered(seed)
        result = compared(gold, systems, "macro_mae,f1_macro", groups=groups, resamples=100)
        for name, board in result.leaderboards.items():
            (pair,), test = board.pairs, result.tests[0].permutation[name]
            assert test.resamples is None
            assert pair.p == pair.p_adjusted == test.p
            assert (pair.verdict in {"better", "worse"}) == (test.p <= 0.05)


@pytest.mark.parametrize("against", ["all", "s1", "s0"])
def test_a_named_pair_has_one_p_in_a_report(against):
    """By the coins that all pairs share; a pair that is not shown has swaps of its own."""
    result = compared(GOLD, SYSTEMS, "mae", pairs=[("s2", "s1")], against=against)
    test = result.tests[0].permutation["mae"]
    pairs = {frozenset((x.first, x.second)): x.p for x in result.leaderboards["mae"].pairs}
    assert pairs.get(frozenset(("s1", "s2")), test.p) == test.p
    assert (test.resamples == 9_999) == (against != "s0")
    plain = board_of(GOLD, SYSTEMS, against=against)
    assert [x.p for x in plain.pairs] == [x.p for x in result.leaderboards["mae"].pairs]


def test_of_more_systems_an_exact_test_of_a_named_pair_stands_for_its_swaps():
    near = [*SYSTEMS["s0"][:140], *SYSTEMS["s1"][140:]]
    systems = {"a": SYSTEMS["s0"], "b": near, "c": SYSTEMS["s2"]}
    result = compared(GOLD, systems, "mae", pairs=[("b", "a")])
    test = result.tests[0].permutation["mae"]
    assert test.resamples is None
    pairs = {frozenset((x.first, x.second)): x for x in result.leaderboards["mae"].pairs}
    assert pairs[frozenset("ab")].p == test.p <= pairs[frozenset("ab")].p_adjusted
    other = {frozenset((x.first, x.second)): x for x in board_of(GOLD, systems).pairs}
    assert other[frozenset("ab")].p == pytest.approx(test.p, abs=0.02)


def test_against_one_system_the_family_is_smaller_and_rank_intervals_are_of_all_pairs():
    everyone = compared(GOLD, SYSTEMS, "mae").leaderboards["mae"]
    result = compared(GOLD, SYSTEMS, "mae,accuracy", against="s1")
    named = result.leaderboards["mae"]
    whole = {frozenset((x.first, x.second)): x for x in everyone.pairs}
    for pair in named.pairs:
        other = whole[frozenset((pair.first, pair.second))]
        assert pair.p == other.p
        assert pair.p <= pair.p_adjusted <= other.p_adjusted
    assert {x.compact_letter_display for x in named.standings} == {None}
    said = words(render(result, "text"))
    assert "by randomisation max-T over the pairs with s1 (one coin for each item" in said
    assert "Rank intervals are over all pairs, a larger family" in said
    assert "CLD" not in said
    assert "share a letter" not in said
    assert [(x.rank_low, x.rank_high) for x in named.standings] == [
        (x.rank_low, x.rank_high) for x in everyone.standings
    ]


@pytest.mark.parametrize(("correction", "adjust"), [("holm", holm), ("bh", benjamini_hochberg)])
def test_corrections_are_of_the_p_values_by_swaps(correction, adjust):
    board = board_of(GOLD, SYSTEMS, correction=correction)
    plain = board_of(GOLD, SYSTEMS, correction="none")
    assert [x.p for x in board.pairs] == [x.p for x in plain.pairs]
    assert [x.p_adjusted for x in plain.pairs] == [x.p for x in plain.pairs]
    assert [x.p_adjusted for x in board.pairs] == pytest.approx(adjust([x.p for x in board.pairs]))


def test_pairs_that_differ_in_fewer_than_six_items_have_no_verdict_and_that_is_said():
    gold = [0, 1, 2, 3] * 30
    systems = {"right": gold, "some": [*[1, 2, 3, 0, 1], *gold[5:]], "bad": [0] * 120}
    result = compared(gold, systems, "mae")
    pairs = {(x.first, x.second): x for x in result.leaderboards["mae"].pairs}
    assert 0.07 > pairs["right", "some"].p_adjusted >= pairs["right", "some"].p >= 2**-4
    assert pairs["right", "some"].verdict == "inconclusive"
    assert pairs["right", "bad"].verdict == "better"
    said = words(render(result, "text"))
    assert "Too few items differ for a verdict on right - some: with fewer than 6 no swap" in said


def test_however_coins_fall_no_p_is_below_the_least_that_swaps_can_reach(monkeypatch):
    gold = [0, 1, 2, 3] * 30
    systems = {"right": gold, "some": [*[1, 2, 3, 0, 1], *gold[5:]], "bad": [0] * 120}
    monkeypatch.setattr(leaderboard, "choose_swap_count", lambda _: 119)
    found = set()
    for seed in range(10):
        pairs = board_of(gold, systems, seed=seed, resamples=100).pairs
        found |= {x.p for x in pairs if {x.first, x.second} == {"right", "some"}}
    assert min(found) == 2**-4 < max(found)


def test_an_interval_that_excludes_zero_without_a_verdict_is_explained():
    boards = []
    for seed in range(1_000, 1_012):
        gold, systems, groups = clustered(seed)
        boards.append(board_of(gold, systems, "macro_mae", groups=groups, interval=0.6))
    explained = 0
    for board in boards:
        (pair,) = board.pairs
        excluded, decided = (
            pair.difference.low > 0 or pair.difference.high < 0,
            pair.verdict in {"better", "worse"},
        )
        said = " ".join(board.notes)
        assert ("excludes 0, but the verdict is inconclusive" in said) == (excluded and not decided)
        assert ("includes 0, but the verdict is significant" in said) == (decided and not excluded)
        explained += excluded != decided
    assert explained


def test_fractional_weights_are_decided_by_the_bootstrap_and_that_is_said():
    result = compared(GOLD, SYSTEMS, "mae", **WAYS["fractional weights"])
    assert result.leaderboards["mae"].test.method == "bootstrap max-T"
    said = words(render(result, "text"))
    assert "The weights are no counts of items that could be swapped. So verdicts" in said
    clusters = WAYS["fractional weights"] | WAYS["groups"]
    swapped = compared(GOLD, SYSTEMS, "mae", **clusters)
    assert swapped.leaderboards["mae"].test.method == "randomisation max-T"


@pytest.mark.parametrize(
    ("against", "method", "ranks"),
    [
        ("leader", "bootstrap max-T", "for rank intervals they are by bootstrap max-T over all"),
        ("s1", "randomisation max-T", "pairs. So these are by bootstrap max-T."),
        ("all", "bootstrap max-T", "p-values and rank intervals are by bootstrap max-T over all"),
    ],
)
def test_many_systems_say_what_is_tested_instead(monkeypatch, against, method, ranks):
    monkeypatch.setattr(joint_comparison, "MOST_SWAPPED_PAIRS", 5)
    result = compared(GOLD, SYSTEMS, "mae", against=against)
    board = result.leaderboards["mae"]
    said = words(render(result, "text"))
    assert "Too many for swaps of predictions: 6 pairs." in said
    assert (board.test.method, board.test.rank_intervals) == (method, "bootstrap max-T")
    assert ranks in said
    assert ("(one coin for each item, the same" in said) == (against != "all")
    if against != "all":
        monkeypatch.undo()
        usual = compared(GOLD, SYSTEMS, "mae", against=against).leaderboards["mae"]
        assert [x.p for x in board.pairs] == pytest.approx([x.p for x in usual.pairs])
        assert all(x.p_adjusted >= x.p for x in board.pairs)
        if against == "s1":
            assert [x.p_adjusted for x in board.pairs] == [x.p_adjusted for x in usual.pairs]


def test_p_values_do_not_depend_on_the_order_or_the_names_of_systems():
    board = board_of(GOLD, SYSTEMS, "quadratic_kappa")
    names = {name: f"z{3 - k}" for k, name in enumerate(SYSTEMS)}
    turned = {names[name]: SYSTEMS[name] for name in reversed(SYSTEMS)}
    again = board_of(GOLD, turned, "quadratic_kappa")
    found = {frozenset((x.first, x.second)): (x.p, x.p_adjusted) for x in again.pairs}
    for pair in board.pairs:
        key = frozenset((names[pair.first], names[pair.second]))
        assert found[key] == (pair.p, pair.p_adjusted)


def test_a_report_names_the_test_and_labels_the_intervals():
    gold, systems = sampled(SIZE, 60, 3, [0.5, 0.7])
    said = words(render(compared(gold, systems, "mae"), "text"))
    assert "are by randomisation max-T over all pairs (one coin for each item, the same" in said
    assert "exchange their predictions of it; 9,999 times)" in said
    assert "The intervals of differences are by bootstrap, for all pairs at once" in said
    assert labels(gold)[0] in said
    few = words(render(compared(gold, systems, "mae", groups=[k % 8 for k in range(60)]), "text"))
    assert "(one coin for each cluster, the same for all pairs" in few
    assert "exchange their predictions of it; all ways are tried)" in few


def test_where_no_pair_is_compared_no_test_is_named():
    systems = {"a": SYSTEMS["s0"], "flat": [1] * 150}
    result = compared(GOLD, systems, "kendall_tau_b")
    assert result.leaderboards["kendall_tau_b"].to_dict()["test"] is None
    said = words(render(result, "text"))
    assert "max-T, which finds" not in said
    assert "swaps" not in said.partition("Tests:")[0]


def test_metrics_that_do_not_fit_into_memory_together_have_the_same_boards(monkeypatch):
    names, said = "mae,f1_macro,quadratic_kappa", []
    usual = compared(GOLD, SYSTEMS, names).to_dict()["metrics"]
    monkeypatch.setattr(leaderboard, "MOST_DIFFERENCES", 1)
    assert compared(GOLD, SYSTEMS, names).to_dict()["metrics"] == usual
    panel = compared(GOLD, SYSTEMS, names).panel
    Comparison.from_panel(panel, names, progress=said.append)
    assert said == sorted(said)
    assert said[-1] == pytest.approx(1.0)


def test_letters_by_the_bootstrap_agree_with_its_verdicts():
    board = board_of(GOLD, SYSTEMS, **WAYS["fractional weights"])
    letters = {x.system: set(x.compact_letter_display) for x in board.standings}
    for pair in board.pairs:
        apart = not letters[pair.first] & letters[pair.second]
        assert apart == (pair.verdict in {"better", "worse"})
    assert {pair.verdict for pair in board.pairs} > {"inconclusive"}
