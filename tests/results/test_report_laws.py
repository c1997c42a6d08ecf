"""Nothing in a comparison contradicts anything else in it, whatever is asked for."""

import itertools

import numpy as np
import pytest
from comparisons import SIZE, compared
from panels import sampled
from rendered_reports import words

from ordinate.render import render
from ordinate.results import comparison, joint_comparison
from ordinate.results.joint_comparison import CORRECTIONS

LEVEL, ALPHA, N = 0.95, 0.05 + 1e-12, 60
DECIDED = {"better", "worse"}
WAYS = {
    "items": {},
    "fractional weights": {"weights": np.linspace(0.2, 3.1, N)},
    "5 clusters": {"groups": [f"g{k % 5}" for k in range(N)]},
    "12 clusters": {"groups": [f"g{k % 12}" for k in range(N)]},
    "12 clusters, fractional weights": {
        "groups": [f"g{k % 12}" for k in range(N)],
        "weights": np.linspace(0.2, 3.1, N),
    },
    "cases": {"average_over": [f"g{k % 12}" for k in range(N)]},
    "5 cases": {"average_over": [f"g{k % 5}" for k in range(N)]},
}


def make_systems(seed):
    """Return gold and systems from good to bad; `few` differs from the best in 4 items."""
    gold, systems = sampled(SIZE, N, seed, [0.35, 0.5, 0.6, 0.8, 1.3])
    few = list(systems["s0"])
    for place in range(4):
        few[place] = (gold[place] + 2) % SIZE
    return gold, systems | {"few": few}


def count_differing(first, second, groups):
    units = range(N) if groups is None else groups
    return len({u for x, y, u in zip(first, second, units, strict=True) if x != y})


def check_board(board, systems, groups, *, smaller, by_item):
    standings = {x.system: x for x in board.standings}
    for pair in board.pairs:
        assert pair.p_adjusted >= pair.p
        assert (pair.verdict in DECIDED) == (pair.p_adjusted <= ALPHA)
        one, other = standings[pair.first], standings[pair.second]
        if by_item and count_differing(systems[pair.first], systems[pair.second], groups) < 6:
            assert pair.verdict not in DECIDED
        if smaller:
            continue
        apart = pair.verdict in DECIDED
        if one.compact_letter_display is not None:
            shared = set(one.compact_letter_display) & set(other.compact_letter_display)
            assert bool(shared) != apart
        if apart:
            best, worst = (one, other) if pair.verdict == "better" else (other, one)
            assert worst.rank_low > 1
            assert best.rank_high < len(standings)
    return {pair.verdict for pair in board.pairs}


def check_ranks(board):
    """With all pairs shown, rank intervals count the verdicts."""
    for one in board.standings:
        signs = {(p.first, p.second): p.verdict for p in board.pairs}
        worse = sum(v == "better" for (first, _), v in signs.items() if first == one.system)
        worse += sum(v == "worse" for (_, second), v in signs.items() if second == one.system)
        better = sum(v == "worse" for (first, _), v in signs.items() if first == one.system)
        better += sum(v == "better" for (_, second), v in signs.items() if second == one.system)
        assert (one.rank_low, one.rank_high) == (1 + better, len(board.standings) - worse)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_in_a_report_contradicts_anything_else_in_it(monkeypatch, way, many):
    if many:  # as if these were too many systems for swaps of all pairs
        monkeypatch.setattr(joint_comparison, "MOST_SWAPPED_PAIRS", 5)
        monkeypatch.setattr(comparison, "MANY_SYSTEMS", 5)
    groups = WAYS[way].get("groups", WAYS[way].get("average_over"))
    seen = set()
    for seed, (against, correction) in enumerate(
        itertools.product(["all", "leader", "s1"], ["max_t", "none", *CORRECTIONS])
    ):
        gold, systems = make_systems(seed)
        options = WAYS[way] | {"against": against, "correction": correction, "resamples": 200}
        result = compared(gold, systems, pairs=[("few", "s0"), ("s3", "s1")], **options)
        smaller = against == "s1"
        board = result.leaderboards["mae"]
        seen |= check_board(board, systems, groups, smaller=smaller, by_item=True)
        if against == "all":
            check_ranks(board)
        if against == "leader":
            beaten = sum(x.verdict in DECIDED for x in board.pairs)
            assert board.standings[0].rank_high == len(systems) - beaten
        if result.case_averages is not None:
            means = result.case_averages.leaderboards["mae"]
            seen |= check_board(means, systems, groups, smaller=smaller, by_item=False)
        verdicts = {frozenset((x.first, x.second)): x.verdict for x in board.pairs}
        for tests in result.tests:
            verdict = verdicts.get(frozenset((tests.first, tests.second)))
            assert verdict not in DECIDED or not tests.permutation["mae"].p > ALPHA
        if smaller:
            assert {x.compact_letter_display for x in board.standings} == {None}
    few = way.startswith("5 ")
    assert bool(seen & DECIDED) != few
    assert "inconclusive" in seen


def test_five_clusters_have_no_verdict_even_of_52_systems():
    """Each pair differs in five clusters, and no swap can say more than p = 1/16."""
    gold = [0, 1, 2, 3] * 15
    bad = [(x + 2) % SIZE for x in gold]
    systems = {f"s{k}": [*gold[k % 7 :], *bad[: k % 7]] for k in range(51)} | {"bad": bad}
    groups = [f"g{k % 5}" for k in range(60)]
    for against in ("all", "leader", "s3"):
        options = {"against": against, "groups": groups, "resamples": 100}
        result = compared(gold, systems, pairs=[("s0", "bad")], **options)
        board = result.leaderboards["mae"]
        assert result.tests[0].permutation["mae"].p == 0.0625
        assert not {x.verdict for x in board.pairs} & DECIDED
        assert {(x.rank_low, x.rank_high) for x in board.standings} == {(1, 52)}
        assert min(x.p for x in board.pairs) >= 0.0625
        assert "Too few clusters differ for a verdict on" in " ".join(board.notes)
        assert "too few clusters for a verdict." in board.conclusion or against == "s3"
        assert "by chance too often" not in " ".join(board.notes)


def test_few_items_that_differ_have_no_verdict_with_weights_that_are_no_counts():
    gold = [0, 1, 2, 3] * 50
    near = [*[(x + 2) % SIZE for x in gold[:4]], *gold[4:]]
    weights = np.linspace(0.5, 2.3, 200)
    board = compared(gold, {"a": gold, "b": near}, weights=weights).leaderboards["mae"]
    (pair,) = board.pairs
    assert pair.p == pair.p_adjusted == 0.125
    assert pair.verdict == "inconclusive"
    assert board.conclusion.endswith("It differs from b in too few items for a verdict.")
    assert "Too few items differ for a verdict on a - b" in board.notes[-1]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("items", "The intervals of differences are by bootstrap, for all pairs at once"),
        ("12 clusters", "are by the jackknife over clusters with Student's t, for all pairs"),
        ("cases", "The intervals of differences are by Student's t over cases, for all pairs"),
    ],
)
def test_intervals_of_differences_are_called_what_they_are(way, said):
    gold, systems = make_systems(1)
    found = words(render(compared(gold, systems, **WAYS[way]), "text"))
    assert said in found
    assert ("bootstrap" in found) == (way == "items")
    assert " letters" not in found
