"""Two systems on the same items: permutation against swapping items, tests against others."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from paired_cases import pair_of
from panels import gap, paired_of, sampled
from scipy import stats
from strategies import scale_of

from ordinate.errors import NotApplicable
from ordinate.inference import paired_tests
from ordinate.inference.paired_tests import (
    TestResult,
    permutation_test,
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
@examples(40)
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
@examples(30)
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
@examples(20)
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
@examples(25)
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


def sampled_test(name, pairs, seed=0, **limits):
    return permutation_test(find_metric(name), pairs, seed, most_states=0, **limits)


CASES = {
    "10 items": sampled(4, 10, 2, [0.4, 1.4]),
    "40 items, close": sampled(3, 40, 5, [0.7, 0.8]),
    "30 items, apart": sampled(3, 30, 6, [0.3, 1.1]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["accuracy", "mae", "cem_ord", "bias", "kendall_tau_b"])
def test_sampled_swaps_agree_with_all_swaps(name, case):
    """Within 4 standard errors: p comes from 100 hits, and so has a relative error of 1 / 10."""
    gold, systems = CASES[case]
    pairs = pair_of(gold, *systems.values(), 4)
    exact = permutation_test(find_metric(name), pairs, most_states=10**7)
    assert exact.resamples is None
    found = sampled_test(name, pairs, seed=11)
    assert found.resamples is not None
    assert abs(found.p - exact.p) <= 4 * exact.p * math.sqrt((1 - exact.p) / 100) + 0.01 * exact.p


def test_sampled_group_swaps_agree_with_all_group_swaps():
    gold, systems = sampled(4, 60, 8, [0.6, 0.9])
    groups = [k // 6 for k in range(60)]
    pairs = pair_of(gold, *systems.values(), 4, groups=groups)
    exact = permutation_test(find_metric("mae"), pairs).p
    found = sampled_test("mae", pairs).p
    assert abs(found - exact) <= 4 * exact * math.sqrt((1 - exact) / 100) + 0.01 * exact


def test_sampled_p_values_are_not_biased():
    """Stopping at the 100th hit after l swaps, 99 / (l - 1) is p on average."""
    gold, systems = sampled(3, 30, 6, [0.5, 0.8])
    pairs = pair_of(gold, *systems.values(), 3)
    exact = permutation_test(find_metric("mae"), pairs).p
    resamples = [sampled_test("mae", pairs, seed).resamples for seed in range(60)]
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
    found = sampled_test("mae", pair_of(gold, *systems.values(), 3), seed)
    assert sum(seen[: found.resamples]) == 100
    assert seen[found.resamples - 1]
    assert found.p == 100 / found.resamples


def test_where_every_swap_is_as_extreme_100_are_enough():
    gold, systems = sampled(3, 40, 5, [0.6])
    answers = systems["s0"]
    found = sampled_test("mae", pair_of(gold, answers, answers, 3))
    assert (found.p, found.resamples) == (1.0, 100)


def test_where_hits_are_rare_the_data_count_as_one_of_the_swaps(monkeypatch):
    gold, systems = sampled(3, 60, 5, [0.45, 0.9])
    seen = watched(monkeypatch)
    found = sampled_test("mae", pair_of(gold, *systems.values(), 3), most_swaps=1500)
    assert 0 < sum(seen) < 100
    assert len(seen) == found.resamples == 1500
    assert found.p == pytest.approx((1 + sum(seen)) / 1501, rel=1e-15)


def test_sampled_swaps_come_from_the_seed():
    gold, systems = sampled(3, 40, 5, [0.6, 0.9])
    pairs = pair_of(gold, *systems.values(), 3)
    one, two, three = (sampled_test("mae", pairs, seed) for seed in (1, 1, 2))
    assert one == two
    assert one != three


def test_thousands_of_groups_are_swapped_by_draws():
    n = 1_500
    gold = [k % 3 for k in range(n)]
    first, second = gold, [(level + 1) % 3 for level in gold]
    pairs = pair_of(gold, first, second, 3, groups=list(range(n)))
    assert permutation_test(find_metric("accuracy"), pairs, most_swaps=1_999).p < 0.001
