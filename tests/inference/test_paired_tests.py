"""Two systems on the same items: permutation against swapping items, tests against others."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panels import dense, gap, paired_of, panel_of, sampled
from scipy import stats
from statsmodels.stats.contingency_tables import SquareTable
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.descriptivestats import sign_test as sign_test_of_statsmodels
from strategies import scale_of

from ordinate.errors import NotApplicable
from ordinate.inference import paired_tests
from ordinate.inference.paired_tests import (
    TestResult,
    bowker_test,
    mcnemar_test,
    permutation_test,
    sign_test,
    stuart_maxwell_test,
)
from ordinate.metrics import find_metric

UNANSWERED = ("cem_ord", "mae", "accuracy", "macro_mae", "bias")  # take items without an answer
SEVEN = (*UNANSWERED, "quadratic_kappa", "kendall_tau_b")
every_metric = pytest.mark.parametrize("name", SEVEN)
TIE = 1e-12


# --- the oracle: every way to swap, item by item -------------------------------------------------


def swapped(first, second, flips):
    """The answers of both systems, exchanged where a flip is 1."""
    pairs = [(b, a) if flip else (a, b) for a, b, flip in zip(first, second, flips, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def share_as_extreme(name, gold, first, second, scale, units=None):
    """The share of all swaps of items, or of groups of items, that differ as much as the data."""
    units = range(len(gold)) if units is None else units
    members = sorted(set(units))
    seen = gap(name, gold, first, second, scale)
    extreme = 0
    for flips in itertools.product((0, 1), repeat=len(members)):
        flipped = dict(zip(members, flips, strict=True))
        both = swapped(first, second, [flipped[unit] for unit in units])
        found = gap(name, gold, *both, scale)
        extreme += not found < seen - TIE  # where the metric is undefined, it might be
    return extreme / 2 ** len(members)


def pair_of(gold, first, second, size, *, positions=None, groups=None, weights=None):
    panel = panel_of(
        gold,
        {"one": first, "two": second},
        size,
        positions=positions,
        groups=groups,
        weights=weights,
    )
    return panel.pair_systems("one", "two", grouped=groups is not None)


def triples(size, most, answers):
    """Lists of items: gold, the answer of the first, the answer of the second."""
    level, answer = st.integers(0, size - 1), st.sampled_from(answers)
    return st.lists(st.tuples(level, answer, answer), min_size=1, max_size=most)


@st.composite
def pairs_of_systems(draw, most=8, *, unanswered=False):
    size = draw(st.integers(2, 4))
    answers = [*range(size), None] if unanswered else [*range(size)]
    gold, first, second = map(list, zip(*draw(triples(size, most, answers)), strict=True))
    positions = draw(st.sampled_from([None, [0.0, 0.5, 2.0, 3.25][:size]]))
    return gold, first, second, size, positions


# --- permutation: exact --------------------------------------------------------------------------


@every_metric
@given(case=pairs_of_systems())
@settings(max_examples=40)
def test_p_is_the_share_of_all_swaps_of_items_that_differ_as_much(name, case):
    gold, first, second, size, positions = case
    scale = scale_of(size, positions)
    found = permutation_test(
        find_metric(name), pair_of(gold, first, second, size, positions=positions)
    )
    if math.isnan(gap(name, gold, first, second, scale)):
        assert math.isnan(found.p)
        assert found.note
        return
    expected = share_as_extreme(name, gold, first, second, scale)
    assert found.p == pytest.approx(expected, abs=1e-12)
    assert found.resamples is None


@pytest.mark.parametrize("name", UNANSWERED)
@given(case=pairs_of_systems(most=7, unanswered=True))
@settings(max_examples=30)
def test_an_item_that_one_system_left_unanswered_is_swapped_like_any_other(name, case):
    gold, first, second, size, positions = case
    found = permutation_test(
        find_metric(name), pair_of(gold, first, second, size, positions=positions)
    )
    expected = share_as_extreme(name, gold, first, second, scale_of(size, positions))
    assert found.p == pytest.approx(expected, abs=1e-12)


@every_metric
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p_of_ten_items_is_that_of_all_1024_swaps(name, seed):
    gold, systems = sampled(4, 10, seed, [0.5, 1.3])
    first, second = systems.values()
    found = permutation_test(find_metric(name), pair_of(gold, first, second, 4))
    assert found.p == pytest.approx(
        share_as_extreme(name, gold, first, second, scale_of(4)), abs=1e-12
    )


@pytest.mark.parametrize("name", ["pearson", "kendall_tau_b"])
def test_swaps_that_leave_a_metric_undefined_count_as_extreme(name):
    gold, first, second = [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 0, 1]
    scale = scale_of(2)
    undefined, seen, large = 0, gap(name, gold, first, second, scale), 0
    for flips in itertools.product((0, 1), repeat=4):
        found = gap(name, gold, *swapped(first, second, flips), scale)
        undefined += math.isnan(found)
        large += found >= seen - TIE
    assert undefined
    assert not math.isnan(seen)
    found = permutation_test(find_metric(name), pair_of(gold, first, second, 2))
    assert found.p == pytest.approx((undefined + large) / 16, abs=1e-12)
    assert found.p > large / 16


@every_metric
@given(case=pairs_of_systems())
@settings(max_examples=20)
def test_p_does_not_depend_on_which_system_comes_first(name, case):
    gold, first, second, size, positions = case
    there, back = (
        permutation_test(find_metric(name), pair_of(gold, one, other, size, positions=positions)).p
        for one, other in ((first, second), (second, first))
    )
    assert there == pytest.approx(back, abs=1e-15, nan_ok=True)


@every_metric
def test_systems_that_answer_the_same_are_exchangeable(name):
    gold, systems = sampled(3, 60, 7, [0.8])
    answers = systems["s0"]
    found = permutation_test(find_metric(name), pair_of(gold, answers, answers, 3))
    assert found == TestResult(1.0)


def test_p_is_never_0_because_the_data_are_one_of_the_swaps():
    gold = [0, 1, 2] * 4
    found = permutation_test(find_metric("mae"), pair_of(gold, gold, [1, 2, 1] * 4, 3))
    assert found.p == pytest.approx(2 / 2**12, rel=1e-12)


def test_a_metric_that_is_undefined_for_one_system_has_no_p_and_a_reason():
    found = permutation_test(
        find_metric("kendall_tau_b"), pair_of([0, 1, 2], [0, 1, 2], [1, 1, 1], 3)
    )
    assert math.isnan(found.p)
    assert found.note == find_metric("kendall_tau_b").undefined_when
    assert found.to_dict()["p"] is None


def test_a_metric_without_a_meaning_for_unanswered_items_is_refused():
    with pytest.raises(NotApplicable, match="items without a prediction"):
        permutation_test(
            find_metric("quadratic_kappa"), pair_of([0, 1, 2], [0, 1, None], [1, 1, 1], 3)
        )


def test_real_weights_are_refused_with_a_reason():
    pairs = pair_of([0, 1, 1], [0, 1, 0], [1, 1, 1], 2, weights=[0.5, 1, 2])
    with pytest.raises(NotApplicable, match="the weights are no counts of items"):
        permutation_test(find_metric("accuracy"), pairs)


@pytest.mark.parametrize("name", ["accuracy", "macro_mae", "cem_ord"])
def test_whole_weights_are_repetitions(name):
    gold, first, second, times = [0, 1, 2, 2], [0, 1, 1, 0], [1, 1, 2, 2], [2, 1, 3, 1]
    weighted = permutation_test(find_metric(name), pair_of(gold, first, second, 3, weights=times))
    columns = (np.repeat(column, times).tolist() for column in (gold, first, second))
    expected = share_as_extreme(name, *columns, scale_of(3))
    assert weighted.p == pytest.approx(expected, abs=1e-12)


# Of the accuracy only right and wrong count, so that its exact test is the one of McNemar.


@pytest.mark.parametrize(
    ("wins", "losses", "more"),
    [
        (3, 0, 0),
        (0, 0, 4),
        (30, 41, 5),
        (600, 600, 1),
        (0, 1024, 0),
        (800, 700, 3),
        (2000, 2200, 0),
    ],
)
def test_the_permutation_of_right_and_wrong_is_mcnemar_however_many_items(wins, losses, more):
    cells = np.zeros((2, 3, 3))
    cells[0, 0, 1], cells[0, 1, 0], cells[1, 1, 0], cells[1, 1, 1] = wins, losses, more, 9
    found = permutation_test(find_metric("accuracy"), paired_of(scale_of(2), cells))
    expected = stats.binomtest(wins + more, wins + losses + more, 0.5).pvalue
    assert found.resamples is None
    assert found.p == pytest.approx(expected, rel=1e-9, abs=1e-300)


# --- permutation: groups -------------------------------------------------------------------------


@every_metric
@given(case=pairs_of_systems(most=9), data=st.data())
@settings(max_examples=25)
def test_with_groups_p_is_the_share_of_all_swaps_of_whole_groups(name, case, data):
    gold, first, second, size, positions = case
    unit = st.integers(0, 4)
    groups = data.draw(st.lists(unit, min_size=len(gold), max_size=len(gold)))
    pairs = pair_of(gold, first, second, size, positions=positions, groups=groups)
    found = permutation_test(find_metric(name), pairs)
    scale = scale_of(size, positions)
    if math.isnan(gap(name, gold, first, second, scale)):
        assert math.isnan(found.p)
        return
    expected = share_as_extreme(name, gold, first, second, scale, groups)
    assert found.p == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", UNANSWERED)
def test_groups_with_unanswered_items_are_swapped_whole(name):
    gold = [0, 1, 2, 2, 1, 0, 2, 1]
    first = [0, None, 2, 1, 1, 0, None, 1]
    second = [1, 1, None, 2, 0, None, None, 1]
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    found = permutation_test(find_metric(name), pair_of(gold, first, second, 3, groups=groups))
    expected = share_as_extreme(name, gold, first, second, scale_of(3), groups)
    assert found.p == pytest.approx(expected, abs=1e-12)


@every_metric
def test_groups_of_one_item_are_items(name):
    gold, systems = sampled(3, 9, 4, [0.4, 1.2])
    first, second = systems.values()
    alone = permutation_test(find_metric(name), pair_of(gold, first, second, 3)).p
    grouped = permutation_test(
        find_metric(name), pair_of(gold, first, second, 3, groups=range(9))
    ).p
    assert grouped == pytest.approx(alone, abs=1e-12)


def test_one_group_can_only_be_swapped_whole_so_that_nothing_is_surprising():
    found = permutation_test(
        find_metric("mae"), pair_of([0, 1, 2], [0, 1, 2], [2, 2, 0], 3, groups=[5] * 3)
    )
    assert found == TestResult(1.0)


def test_with_groups_p_does_not_depend_on_which_system_comes_first():
    gold, systems = sampled(4, 200, 3, [0.6, 0.9])
    groups = [k // 10 for k in range(200)]  # 2 ** 20 swaps are sampled
    first, second = systems.values()
    there = permutation_test(find_metric("mae"), pair_of(gold, first, second, 4, groups=groups))
    back = permutation_test(find_metric("mae"), pair_of(gold, second, first, 4, groups=groups))
    assert there == back
    assert there.resamples is not None


# --- permutation: sampled ------------------------------------------------------------------------


def sampled_test(monkeypatch, name, pairs, seed=0):
    with monkeypatch.context() as patch:
        patch.setattr(paired_tests, "MOST_STATES", 0)
        return permutation_test(find_metric(name), pairs, seed)


CASES = {
    "10 items": sampled(4, 10, 2, [0.4, 1.4]),
    "40 items, close": sampled(3, 40, 5, [0.7, 0.8]),
    "30 items, apart": sampled(3, 30, 6, [0.3, 1.1]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["accuracy", "mae", "cem_ord", "bias", "kendall_tau_b"])
def test_sampled_swaps_agree_with_all_swaps(monkeypatch, name, case):
    """Within 4 standard errors: p comes from 100 hits, and so has a relative error of 1 / 10."""
    gold, systems = CASES[case]
    pairs = pair_of(gold, *systems.values(), 4)
    monkeypatch.setattr(paired_tests, "MOST_STATES", 10**7)
    exact = permutation_test(find_metric(name), pairs)
    assert exact.resamples is None
    found = sampled_test(monkeypatch, name, pairs, seed=11)
    assert found.resamples is not None
    assert abs(found.p - exact.p) <= 4 * exact.p * math.sqrt((1 - exact.p) / 100) + 0.01 * exact.p


def test_sampled_group_swaps_agree_with_all_group_swaps(monkeypatch):
    gold, systems = sampled(4, 60, 8, [0.6, 0.9])
    groups = [k // 6 for k in range(60)]
    pairs = pair_of(gold, *systems.values(), 4, groups=groups)
    exact = permutation_test(find_metric("mae"), pairs).p
    found = sampled_test(monkeypatch, "mae", pairs).p
    assert abs(found - exact) <= 4 * exact * math.sqrt((1 - exact) / 100) + 0.01 * exact


def test_sampled_p_values_are_not_biased(monkeypatch):
    """Stopping at the 100th hit after l swaps, 99 / (l - 1) is p on average."""
    gold, systems = sampled(3, 30, 6, [0.5, 0.8])
    pairs = pair_of(gold, *systems.values(), 3)
    exact = permutation_test(find_metric("mae"), pairs).p
    resamples = [sampled_test(monkeypatch, "mae", pairs, seed).resamples for seed in range(60)]
    means = np.array([99 / (draw - 1) for draw in resamples])
    assert abs(means.mean() - exact) < 4 * means.std(ddof=1) / math.sqrt(len(means))


def watched(monkeypatch):
    """Note every swap that is tried, and whether it was as extreme as the data."""
    seen = []
    inner = paired_tests._mark_extreme_swaps

    def outer(*arguments):
        hits = inner(*arguments)
        seen.extend(hits.tolist())
        return hits

    monkeypatch.setattr(paired_tests, "_mark_extreme_swaps", outer)
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_sampling_stops_at_the_100th_hit(monkeypatch, seed):
    gold, systems = sampled(3, 40, 5, [0.6, 0.9])
    seen = watched(monkeypatch)
    found = sampled_test(monkeypatch, "mae", pair_of(gold, *systems.values(), 3), seed)
    assert sum(seen[: found.resamples]) == 100
    assert seen[found.resamples - 1]
    assert found.p == 100 / found.resamples


def test_where_every_swap_is_as_extreme_100_are_enough(monkeypatch):
    gold, systems = sampled(3, 40, 5, [0.6])
    answers = systems["s0"]
    found = sampled_test(monkeypatch, "mae", pair_of(gold, answers, answers, 3))
    assert (found.p, found.resamples) == (1.0, 100)


def test_where_hits_are_rare_the_data_count_as_one_of_the_swaps(monkeypatch):
    gold, systems = sampled(3, 60, 5, [0.45, 0.9])
    seen = watched(monkeypatch)
    monkeypatch.setattr(paired_tests, "MOST_SWAPS", 1500)
    found = sampled_test(monkeypatch, "mae", pair_of(gold, *systems.values(), 3))
    assert 0 < sum(seen) < 100
    assert len(seen) == found.resamples == 1500
    assert found.p == pytest.approx((1 + sum(seen)) / 1501, rel=1e-15)


def test_sampled_swaps_come_from_the_seed(monkeypatch):
    gold, systems = sampled(3, 40, 5, [0.6, 0.9])
    pairs = pair_of(gold, *systems.values(), 3)
    one, two, three = (sampled_test(monkeypatch, "mae", pairs, seed) for seed in (1, 1, 2))
    assert one == two
    assert one != three


# --- McNemar and the sign test -------------------------------------------------------------------


@st.composite
def paired_tables(draw, largest=40):
    size = draw(st.integers(2, 4))
    shape = (size, size + 1, size + 1)
    sparse = st.one_of(st.just(0), st.integers(0, largest))
    cells = draw(st.lists(sparse, min_size=math.prod(shape), max_size=math.prod(shape)))
    array = np.array(cells, float).reshape(shape)
    positions = draw(st.sampled_from([None, [0.0, 0.5, 2.0, 3.25][:size]]))
    return paired_of(scale_of(size, positions), array)


def spelled(pairs):
    """Each item as gold, first answer, second answer; None is no answer."""
    size = len(pairs.scale)
    for (g, a, b), n in np.ndenumerate(dense(pairs)[1]):
        item = g, a if a < size else None, b if b < size else None
        yield from itertools.repeat(item, int(n))


@given(paired_tables())
@settings(max_examples=150)
def test_mcnemar_is_that_of_statsmodels(pairs):
    square = np.zeros((2, 2))
    for gold, first, second in spelled(pairs):
        square[int(first != gold), int(second != gold)] += 1
    found = mcnemar_test(pairs)
    assert found.statistic == min(square[0, 1], square[1, 0])
    if square[0, 1] + square[1, 0] == 0:
        assert found.p == 1
        return
    expected = mcnemar_of_statsmodels(square, exact=True)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    once = stats.binomtest(int(square[0, 1]), int(square[0, 1] + square[1, 0]))
    assert found.p == pytest.approx(once.pvalue, rel=1e-12)


def distance(gold, answer, scale):
    """From gold to an answer; no answer is farther off than any."""
    return math.inf if answer is None else abs(scale.at[gold] - scale.at[answer])


@given(paired_tables())
@settings(max_examples=150)
def test_the_sign_test_is_that_of_statsmodels(pairs):
    signs = []
    for gold, first, second in spelled(pairs):
        one, other = (distance(gold, answer, pairs.scale) for answer in (first, second))
        signs.append(int(one < other) - int(one > other))
    found = sign_test(pairs)
    wins, losses = signs.count(1), signs.count(-1)
    assert found.statistic == min(wins, losses)
    if not wins + losses:
        assert found.p == 1
        return
    assert found.p == pytest.approx(sign_test_of_statsmodels(np.array(signs))[1], rel=1e-12)
    assert found.p == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-12)


@pytest.mark.parametrize("unit", [0.1, 0.7, 1e-3, 1e6 / 3])
def test_steps_that_differ_by_rounding_only_are_ties(unit):
    """0.3 - 0.2 is not 0.2 - 0.1 in a computer, and neither answer is nearer."""
    gold, one, other = [1] * 9 + [0], [0] * 9 + [0], [2] * 9 + [1]
    at = [unit * (k + 1) for k in range(3)]
    panel = panel_of(gold, {"a": one, "b": other}, 3, positions=at)
    assert sign_test(panel.pair_systems("a", "b")) == TestResult(1.0, statistic=0.0)
    even = panel_of(gold, {"a": one, "b": other}, 3)
    assert sign_test(even.pair_systems("a", "b")) == sign_test(panel.pair_systems("a", "b"))


@given(wins=st.integers(0, 10**6), losses=st.integers(0, 10**6))
@settings(max_examples=100)
def test_a_million_items_are_no_problem_for_the_tests_of_signs(wins, losses):
    cells = np.zeros((2, 3, 3))
    cells[0, 0, 1], cells[0, 1, 0] = wins, losses
    pairs = paired_of(scale_of(2), cells)
    n = wins + losses
    expected = min(1.0, 2 * stats.binom.cdf(min(wins, losses), n, 0.5)) if wins != losses else 1.0
    for test in (mcnemar_test, sign_test):
        assert test(pairs).p == pytest.approx(expected, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("test", [mcnemar_test, sign_test])
@pytest.mark.parametrize("weights", [[0.5, 1.25, 2.0], [0.5, 0.5, 1.0]])
def test_tests_of_signs_refuse_real_weights_even_where_their_sums_are_whole(test, weights):
    pairs = pair_of([0, 0, 1], [0, 0, 1], [1, 1, 1], 2, weights=weights)
    found = test(pairs)
    assert math.isnan(found.p)
    assert found.note == "the weights are no counts"


def test_of_two_systems_that_are_never_right_neither_is_right_more_often():
    found = mcnemar_test(pair_of([0, 1, 2], [1, 2, 1], [2, 0, 0], 3))
    assert (found.p, found.statistic) == (1.0, 0.0)


def test_no_answer_is_farther_off_than_the_worst_answer():
    pairs = pair_of([0] * 6, [2] * 6, [None] * 6, 3)
    assert sign_test(pairs).p == pytest.approx(2 / 2**6, rel=1e-12)
    both = pair_of([0] * 6, [None] * 6, [None] * 6, 3)
    assert sign_test(both).p == 1


# --- Bowker and Stuart-Maxwell -------------------------------------------------------------------


def squares(least, largest, most=6):
    return st.integers(2, most).flatmap(
        lambda size: st.lists(st.integers(least, largest), min_size=size**2, max_size=size**2).map(
            lambda cells: np.array(cells, float).reshape(size, size)
        )
    )


@given(squares(0, 60))
@settings(max_examples=150)
def test_bowker_is_that_of_statsmodels(cells):
    found = bowker_test(cells)
    if not (cells + cells.T - 2 * np.diag(np.diag(cells))).any():
        assert (found.p, found.statistic, found.degrees_of_freedom) == (1.0, 0.0, 0)
        assert found.note
        return
    expected = SquareTable(cells, shift_zeros=False).symmetry()
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.degrees_of_freedom == expected.df
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)


@given(squares(1, 60))
@settings(max_examples=150)
def test_stuart_maxwell_is_that_of_statsmodels_where_all_levels_are_used(cells):
    expected = SquareTable(cells, shift_zeros=False).homogeneity(method="stuart_maxwell")
    found = stuart_maxwell_test(cells)
    assert found.degrees_of_freedom == expected.df
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=0, abs=1e-12)  # theirs is 1 - cdf
    assert found.p == pytest.approx(stats.chi2.sf(expected.statistic, expected.df), rel=1e-10)


@given(squares(1, 60, most=4), st.integers(0, 4), st.integers(0, 30))
@settings(max_examples=60)
def test_levels_that_nobody_uses_or_disputes_do_not_count_for_stuart_maxwell(cells, place, agreed):
    size = len(cells)
    place = min(place, size)
    wider = np.insert(np.insert(cells, place, 0.0, axis=0), place, 0.0, axis=1)
    wider[place, place] = agreed
    there, found = stuart_maxwell_test(cells), stuart_maxwell_test(wider)
    assert found.degrees_of_freedom == there.degrees_of_freedom == size - 1
    assert found.statistic == pytest.approx(there.statistic, rel=1e-9, abs=1e-12)
    assert found.p == pytest.approx(there.p, rel=1e-9)


def components(cells):
    """The prediction sets that are connected by disagreements."""
    levels, found = set(range(len(cells))), []
    while levels:
        part, edge = set(), [levels.pop()]
        while edge:
            level = edge.pop()
            part.add(level)
            near = {k for k in levels if cells[level][k] + cells[k][level] > 0}
            levels -= near
            edge += near
        found.append(sorted(part))
    return found


def solved(matrix, right):
    """The solution of linear equations, in fractions."""
    rows = [[*map(Fraction, row), Fraction(x)] for row, x in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exact_stuart_maxwell(cells):
    """Statistic and freedom in fractions: each connected set of levels is a table of its own."""
    cells = [[int(x) for x in row] for row in cells]
    statistic, freedom = Fraction(0), 0
    for part in components(cells):
        inner = part[:-1]
        out = {k: sum(cells[k][j] for j in part) for k in part}
        into = {k: sum(cells[j][k] for j in part) for k in part}
        shift = [out[k] - into[k] for k in inner]
        spread = [
            [(out[i] + into[i]) * (i == j) - cells[i][j] - cells[j][i] for j in inner]
            for i in inner
        ]
        by_level = zip(shift, solved(spread, shift), strict=True)
        statistic += sum((Fraction(a) * b for a, b in by_level), Fraction(0))
        freedom += len(inner)
    return float(statistic), freedom


sparse_squares = st.integers(2, 8).flatmap(
    lambda size: st.lists(
        st.sampled_from([0, 0, 0, 0, 0, 1, 3, 40]), min_size=size**2, max_size=size**2
    ).map(lambda cells: np.array(cells, float).reshape(size, size))
)


@given(sparse_squares)
@settings(max_examples=300)
def test_stuart_maxwell_of_sparse_tables_is_that_of_fractions(cells):
    statistic, freedom = exact_stuart_maxwell(cells)
    found = stuart_maxwell_test(cells)
    assert found.degrees_of_freedom == freedom
    assert found.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-12)
    if freedom:
        assert found.p == pytest.approx(stats.chi2.sf(statistic, freedom), rel=1e-9)
    else:
        assert found.p == 1
        assert found.note


@given(squares(0, 60, most=5))
@settings(max_examples=50)
def test_the_order_of_levels_and_of_systems_does_not_matter(cells):
    for test in (bowker_test, stuart_maxwell_test):
        expected = test(cells)
        for other in (cells.T, cells[::-1, ::-1], np.roll(cells, (1, 1), (0, 1))):
            found = test(np.ascontiguousarray(other))
            assert found.degrees_of_freedom == expected.degrees_of_freedom
            assert found.statistic == pytest.approx(expected.statistic, rel=1e-8, abs=1e-10)


def test_for_two_levels_both_are_the_chi_square_form_of_mcnemar():
    cells = np.array([[12.0, 9.0], [3.0, 20.0]])
    plain = mcnemar_of_statsmodels(cells, exact=False, correction=False)
    for test in (bowker_test, stuart_maxwell_test):
        assert test(cells).statistic == pytest.approx(plain.statistic, rel=1e-12)
        assert test(cells).p == pytest.approx(plain.pvalue, rel=1e-12)


@pytest.mark.parametrize("cells", [np.diag([3.0, 0, 5]), np.diag([0.0, 7, 0]), np.zeros((3, 3))])
def test_systems_that_always_agree_show_no_shift(cells):
    for test in (bowker_test, stuart_maxwell_test):
        found = test(cells)
        assert (found.p, found.statistic, found.degrees_of_freedom) == (1.0, 0.0, 0)
        assert found.note == "both sides always agree"


def test_a_pure_exchange_of_levels_is_no_shift_of_the_margins():
    cells = np.array([[5.0, 8, 0], [0, 5, 8], [8, 0, 5]])  # round and round
    assert stuart_maxwell_test(cells).p == pytest.approx(1)
    assert bowker_test(cells).p < 0.001


def test_a_test_as_plain_values_has_none_for_nan():
    assert TestResult(0.5).to_dict() == {
        "p": 0.5,
        "statistic": None,
        "freedom": None,
        "resamples": None,
        "note": None,
    }


def test_thousands_of_groups_are_swapped_by_draws():
    n = 1_500
    gold = [k % 3 for k in range(n)]
    first, second = gold, [(level + 1) % 3 for level in gold]
    pairs = pair_of(gold, first, second, 3, groups=list(range(n)))
    assert permutation_test(find_metric("accuracy"), pairs).p < 0.001
