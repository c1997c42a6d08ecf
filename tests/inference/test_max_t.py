"""Differences of many systems: max-T written out, errors over the family, ranks."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import panel_of, sampled
from system_draws import COUNT, LEVEL, METRICS, PANEL, SIZE

from ordinate.inference.resampling import Resampling
from ordinate.inference.system_differences import (
    compare_pairs,
    compute_max_t_p_values,
    compute_rank_intervals,
    compute_rank_shares,
    count_differing_units,
    list_pairs,
    max_t_statistic,
    rank_systems,
    resample_jointly,
)
from ordinate.metrics import find_metric


@pytest.fixture(scope="module")
def drawn():
    return resample_jointly(PANEL, METRICS, Resampling(COUNT, 1))


# --- max-T ---------------------------------------------------------------------------------------


def written_out(values, drawn, pairs, level):
    """Max-T stepping down, in plain loops: p alone, p adjusted, limits."""
    count = len(drawn)
    gaps = [values[i] - values[j] for i, j in pairs]
    moved = [[row[i] - row[j] for row in drawn] for i, j in pairs]
    errors = [statistics.stdev(column) for column in moved]
    reach = [abs(gap) / error for gap, error in zip(gaps, errors, strict=True)]
    away = [
        [abs(x - gap) / error for x in column]
        for column, gap, error in zip(moved, gaps, errors, strict=True)
    ]
    alone = [
        (1 + sum(x >= r for x in column)) / (count + 1)
        for column, r in zip(away, reach, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda k: -reach[k])
    adjusted, least = [0.0] * len(pairs), 0.0
    for step, pair in enumerate(order):
        rivals = order[step:]
        hits = sum(max(away[k][draw] for k in rivals) >= reach[pair] for draw in range(count))
        least = max(least, (1 + hits) / (count + 1))
        adjusted[pair] = least
    largest = sorted(max(column[draw] for column in away) for draw in range(count))
    farthest = largest[math.ceil(level * (count - 1) - 1e-9)]
    limits = [
        (gap - farthest * error, gap + farthest * error)
        for gap, error in zip(gaps, errors, strict=True)
    ]
    return gaps, errors, alone, adjusted, limits


@st.composite
def races(draw):
    """Values of systems, and joint resamples around them."""
    systems = draw(st.integers(2, 5))
    count = draw(st.integers(10, 60))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    values = rng.normal(0, draw(st.sampled_from([0.1, 1.0, 3.0])), systems)
    mixed = rng.normal(0, 1, (systems, systems))
    return values, values + rng.normal(0, 1, (count, systems)) @ mixed


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
def test_max_t_is_what_it_is_written_out(race, level):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, level)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    gaps, errors, alone, adjusted, limits = written_out(
        values.tolist(), drawn.tolist(), pairs, level
    )
    assert found.value == pytest.approx(gaps, rel=1e-12)
    assert found.error == pytest.approx(errors, rel=1e-9)
    assert found.p == pytest.approx(alone, rel=1e-12)
    assert found.adjusted == pytest.approx(adjusted, rel=1e-12)
    assert found.low == pytest.approx([low for low, _ in limits], rel=1e-9)
    assert found.high == pytest.approx([high for _, high in limits], rel=1e-9)


@given(race=races(), data=st.data())
@examples(60)
def test_max_t_of_a_family_of_some_pairs_is_what_it_is_written_out(race, data):
    values, drawn = race
    centre = data.draw(st.integers(0, len(values) - 1))
    others = np.array([k for k in range(len(values)) if k != centre])
    found = compare_pairs(values, drawn, np.full(len(others), centre), others, LEVEL)
    pairs = [(centre, int(other)) for other in others]
    _, _, alone, adjusted, _ = written_out(values.tolist(), drawn.tolist(), pairs, LEVEL)
    assert found.p == pytest.approx(alone, rel=1e-12)
    assert found.adjusted == pytest.approx(adjusted, rel=1e-12)


@given(races())
def test_adjusted_p_values_are_never_below_plain_ones_and_fall_with_the_reach(race):
    values, drawn = race
    found = compare_pairs(values, drawn, *list_pairs(len(values)), LEVEL)
    assert (found.adjusted >= found.p - 1e-15).all()
    assert (found.adjusted <= 1).all()
    assert (found.p >= 1 / (len(drawn) + 1) - 1e-15).all()
    order = np.argsort(-np.abs(found.value) / found.error)
    assert (np.diff(found.adjusted[order]) >= 0).all()


@given(races())
@examples(50)
def test_more_pairs_never_make_an_adjusted_p_value_smaller(race):
    values, drawn = race
    first, second = list_pairs(len(values))
    everyone = compare_pairs(values, drawn, first, second, LEVEL)
    for pair in range(len(first)):
        alone = compare_pairs(values, drawn, first[[pair]], second[[pair]], LEVEL)
        assert alone.adjusted == pytest.approx(alone.p)
        assert everyone.adjusted[pair] >= alone.adjusted[0] - 1e-15
        assert everyone.high[pair] >= alone.high[0] - 1e-12


def test_a_pair_alone_has_the_limits_of_its_own_draws():
    rng = np.random.default_rng(1)
    drawn = rng.normal([0.3, 0.0], 1.0, (999, 2))
    found = compare_pairs(np.array([0.3, 0.0]), drawn, np.array([0]), np.array([1]), 0.9)
    far = np.quantile(np.abs(drawn[:, 0] - drawn[:, 1] - 0.3), 0.9, method="higher")
    assert found.low[0] == pytest.approx(0.3 - far)
    assert found.high[0] == pytest.approx(0.3 + far)


def test_blocks_of_draws_change_nothing():
    rng = np.random.default_rng(1)
    values, drawn = rng.normal(0, 1, 5), rng.normal(0, 1, (333, 5))
    whole = compare_pairs(values, drawn, *list_pairs(5), LEVEL)
    shares = compute_rank_shares(drawn)
    parts = compare_pairs(values, drawn, *list_pairs(5), LEVEL, block_size=100)
    assert np.array_equal(whole.adjusted, parts.adjusted)
    assert np.array_equal(whole.p, parts.p)
    assert np.allclose(whole.high, parts.high)
    assert np.allclose(shares, compute_rank_shares(drawn, block_size=100))


def apart_of(values, drawn, level=LEVEL):
    p = compute_max_t_p_values(values, drawn, max_t_statistic(values, drawn))
    apart = np.zeros((len(values), len(values)), bool)
    apart[list_pairs(len(values))] = p < 1.0 - level
    return apart | apart.T


def test_systems_that_never_differ_have_no_difference():
    rng = np.random.default_rng(2)
    one = rng.normal(0, 1, 400)
    drawn = np.stack([one, one, rng.normal(0, 1, 400)], axis=1)
    found = compare_pairs(np.array([0.2, 0.2, 9.0]), drawn, *list_pairs(3), LEVEL)
    assert (found.value[0], found.error[0], found.low[0], found.high[0]) == (0, 0, 0, 0)
    assert found.p[0] == found.adjusted[0] == 1
    assert not apart_of(np.array([0.2, 0.2, 9.0]), drawn)[0, 1]


def test_systems_that_differ_by_the_same_amount_in_every_draw_are_told_apart():
    """One system is always right and the other never: no draw shows anything else.

    How far the difference might be from what it is, no draw says either: it has no limits.
    """
    rng = np.random.default_rng(2)
    drawn = np.stack([np.ones(400), np.zeros(400), rng.normal(0.5, 0.1, 400)], axis=1)
    values = np.array([1.0, 0.0, 0.5])
    found = compare_pairs(values, drawn, *list_pairs(3), LEVEL)
    assert found.p[0] == pytest.approx(1 / 401)
    assert found.adjusted[0] < 0.05
    assert apart_of(values, drawn)[0, 1]
    assert (found.value[0], found.error[0]) == (1, 0)
    assert np.isnan(found.low).tolist() == np.isnan(found.high).tolist() == [True, False, False]


def different(one, other, counts):
    """How many items have different answers, or how many groups have such an item."""
    if isinstance(counts, dict):
        apart = zip(one, other, counts["groups"], strict=True)
        return len({group for x, y, group in apart if x != y})
    return sum(n for x, y, n in zip(one, other, counts, strict=True) if x != y)


@pytest.mark.parametrize("how", ["items", "whole", "real", "groups"])
def test_the_units_in_which_systems_differ_are_counted(how):
    gold, systems = sampled(SIZE, 25, 4, [0.2, 0.3, 0.9])
    systems["again"] = systems["s0"]
    systems["silent"] = [None, *systems["s0"][1:]]
    more, counts = {}, [1] * 25
    if how == "whole":
        counts = [1 + k % 3 for k in range(25)]
        more = {"weights": counts}
    elif how == "real":
        more = {"weights": np.linspace(0.3, 1.9, 25)}
    elif how == "groups":
        more = {"groups": [k % 6 for k in range(25)]}
        counts = more
    found = count_differing_units(panel_of(gold, systems, SIZE, **more))
    for (i, one), (j, other) in itertools.product(enumerate(systems.values()), repeat=2):
        assert found[i, j] == different(one, other, counts), (i, j)
    assert found[0, 3] == 0
    assert found.max() > 5


@given(races())
def test_the_widest_reach_is_the_largest_of_all_pairs_in_each_draw(race):
    values, drawn = race
    expected = np.zeros(len(drawn))
    for i, j in itertools.combinations(range(len(values)), 2):
        moved = drawn[:, i] - drawn[:, j]
        away = np.abs(moved - (values[i] - values[j])) / moved.std(ddof=1)
        expected = np.maximum(expected, away)
    assert max_t_statistic(values, drawn) == pytest.approx(expected, rel=1e-9)


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
@examples(60)
def test_a_wider_family_widens_limits_and_raises_adjusted_p_values_only(race, level):
    """Pairs with the leader are judged as if all pairs had been looked at: in one step."""
    values, drawn = race
    count, systems = drawn.shape
    others = np.arange(1, systems)
    first = np.zeros(systems - 1, int)
    widest = max_t_statistic(values, drawn)
    alone = compare_pairs(values, drawn, first, others, level)
    found = compare_pairs(values, drawn, first, others, level, widest=widest)
    assert np.array_equal(found.p, alone.p)
    assert (found.adjusted >= alone.adjusted - 1e-15).all()
    assert (found.high >= alone.high - 1e-12).all()
    reach = np.abs(found.value) / found.error
    expected = [(1 + sum(x >= r - 1e-12 for x in widest)) / (count + 1) for r in reach]
    assert found.adjusted == pytest.approx(expected, rel=1e-12)
    half = np.sort(widest)[math.ceil(level * (count - 1) - 1e-9)] * found.error
    assert found.high - found.value == pytest.approx(half, rel=1e-9)
    apart = apart_of(values, drawn, level)
    assert apart[0, 1:].tolist() == (found.adjusted < 1 - level).tolist()


def test_without_pairs_there_are_no_differences():
    nobody = np.array([], int)
    found = compare_pairs(np.array([0.5]), np.full((100, 1), 0.5), nobody, nobody, LEVEL)
    assert len(found.p) == len(found.adjusted) == len(found.low) == 0


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
def test_who_is_told_apart_are_those_whose_simultaneous_limits_leave_out_0(race, level):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, level)
    told = apart_of(values, drawn, level)
    assert np.array_equal(told, told.T)
    outside = (found.low > 0) | (found.high < 0)
    reach = np.abs(found.value) / found.error
    widest = max_t_statistic(values, drawn)
    p = np.array([(1 + (widest >= r - 1e-12).sum()) / (len(drawn) + 1) for r in reach])
    assert np.array_equal(told[first, second], p < 1 - level)
    assert (p[outside] < 1 - level + 2 / (len(drawn) + 1)).all()  # but for the draw at the limit
    assert (p[~outside] > 1 - level - 2 / (len(drawn) + 1)).all()


@given(races())
@examples(50)
def test_stepping_down_tells_apart_whom_one_step_tells_apart(race):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, LEVEL)
    once = apart_of(values, drawn)[first, second]
    assert (found.adjusted[once] < 1 - LEVEL).all()


# --- errors over the family ----------------------------------------------------------------------

REPLICATES, DRAWS = 300, 300


def alarms(name, replicates=REPLICATES, size=3, systems=4, n=200):
    """How often equally good systems differ significantly: by adjusted p, by limits, by plain p."""
    seen = np.zeros(3)
    pairs = list_pairs(systems)
    for replicate_ in range(replicates):
        gold, answers = sampled(size, n, 10_000 + replicate_, [0.8] * systems)
        panel = panel_of(gold, answers, size)
        metric = find_metric(name)
        values = np.array(
            [float(metric(panel.confusion_matrix(system))) for system in panel.systems]
        )
        drawn = resample_jointly(panel, [metric], Resampling(DRAWS, replicate_))[name]
        found = compare_pairs(values, drawn, *pairs, LEVEL)
        outside = (found.low > 0) | (found.high < 0)
        seen += [(found.adjusted <= 0.05).any(), outside.any(), (found.p <= 0.05).any()]
    return seen / replicates


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mae", "quadratic_kappa"])
def test_of_equal_systems_any_two_are_told_apart_in_one_of_twenty_samples(name):
    """Familywise errors within 3 binomial standard errors of 5 %; uncorrected ones far above."""
    adjusted, outside, plain = alarms(name)
    error = math.sqrt(0.05 * 0.95 / REPLICATES)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error
    assert plain > 0.05 + 3 * error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "mae", "cem_ord", "quadratic_kappa", "macro_mae"])
def test_of_equal_systems_any_two_are_told_apart_in_one_of_twenty_of_many_samples(name):
    adjusted, outside, _ = alarms(name, 1500)
    error = math.sqrt(0.05 * 0.95 / 1500)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error


def crowd_alarms(replicates, systems=60, resamples=400):
    """How often the leader of equals differs significantly from any: by all pairs, by its own."""
    seen = np.zeros(3)
    rng = np.random.default_rng(7)
    for _ in range(replicates):
        values = rng.normal(0, 1, systems)
        drawn = values + rng.normal(0, 1, (resamples, systems))
        leader = int(np.argmax(values))
        others = np.delete(np.arange(systems), leader)
        first = np.full(systems - 1, leader)
        widest = max_t_statistic(values, drawn)
        wide = compare_pairs(values, drawn, first, others, LEVEL, widest=widest)
        own = compare_pairs(values, drawn, first, others, LEVEL)
        apart = apart_of(values, drawn)
        assert np.array_equal(apart[leader, others], wide.adjusted < 0.05)
        seen += [(wide.adjusted < 0.05).any(), (wide.low > 0).any(), (own.adjusted < 0.05).any()]
    return seen / replicates


@pytest.mark.slow
def test_the_leader_of_sixty_equal_systems_is_told_apart_in_one_of_twenty_samples():
    """The leader was chosen by looking: with its own pairs only, errors are far more frequent."""
    adjusted, outside, own = crowd_alarms(300)
    error = math.sqrt(0.05 * 0.95 / 300)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error
    assert own > 0.05 + 5 * error


# --- ranks ---------------------------------------------------------------------------------------

few_values = st.lists(st.sampled_from([0.1, 0.2, 0.5, -1.0]), min_size=1, max_size=6)


@given(few_values)
def test_the_rank_is_one_more_than_the_number_of_better_systems(merits):
    found = rank_systems(np.array(merits)).tolist()
    assert found == [1 + sum(other > merit for other in merits) for merit in merits]


def test_values_that_differ_by_rounding_share_a_rank():
    assert rank_systems(np.array([0.1 + 0.2, 0.3, 0.2])).tolist() == [1, 1, 3]


@given(rows=st.integers(1, 6).flatmap(
    lambda systems: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=systems, max_size=systems),
        min_size=1,
        max_size=12,
    )
))  # fmt: skip
def test_rank_shares_count_the_ranks_of_the_draws(rows):
    merits = np.array(rows)
    systems = merits.shape[1]
    found = compute_rank_shares(merits)
    for system in range(systems):
        seen = [1 + sum(x > row[system] for x in row) for row in rows]
        expected = [seen.count(rank) / len(rows) for rank in range(1, systems + 1)]
        assert found[system].tolist() == pytest.approx(expected)
    assert found.sum(axis=1) == pytest.approx(np.ones(systems))


@given(merits=few_values, data=st.data())
def test_rank_limits_count_those_who_are_surely_better_and_surely_worse(merits, data):
    systems = len(merits)
    apart = np.zeros((systems, systems), bool)
    for i, j in itertools.combinations(range(systems), 2):
        apart[i, j] = apart[j, i] = merits[i] != merits[j] and data.draw(st.booleans())
    better = np.array([[one > other for other in merits] for one in merits])
    low, high = compute_rank_intervals(apart, better)
    place = rank_systems(np.array(merits))
    for k in range(systems):
        surely = [j for j in range(systems) if apart[k, j]]
        assert low[k] == 1 + sum(merits[j] > merits[k] for j in surely)
        assert high[k] == systems - sum(merits[j] < merits[k] for j in surely)
        assert low[k] <= place[k] <= high[k]


def test_where_nobody_is_told_apart_every_rank_is_possible():
    better = np.triu(np.ones((4, 4), bool), 1)
    low, high = compute_rank_intervals(np.zeros((4, 4), bool), better)
    assert (low.tolist(), high.tolist()) == ([1] * 4, [4] * 4)
    low, high = compute_rank_intervals(better | better.T, better)
    assert low.tolist() == high.tolist() == [1, 2, 3, 4]
