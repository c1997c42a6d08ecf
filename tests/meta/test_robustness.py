"""Rankings over test cases: every measure equals its definition, written out in plain loops."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from ordinate.errors import BadOption
from ordinate.inference.resampling import Resampling
from ordinate.meta.rank_correlation import compute_mid_ranks, compute_pearson, compute_spearman
from ordinate.meta.robustness import (
    average_merits,
    compute_agreement,
    compute_discriminative_power,
    compute_robustness,
    compute_stability,
    compute_tukey_p,
    split_cases_in_halves,
)

NAN = math.nan
SEEDS = range(6)


def sampled(seed, *, holes=0.0, metrics=3, systems=5, cases=6):
    """Merits with ties (values are tenths) and, where asked for, undefined ones."""
    rng = np.random.default_rng(seed)
    able = rng.integers(0, 6, (1, systems, 1))
    merits = (able + rng.integers(0, 6, (metrics, systems, cases))) / 10.0
    return np.where(rng.random(merits.shape) < holes, NAN, merits)


# --- in plain loops ------------------------------------------------------------------------------


def mean(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else NAN


def rank_correlation(first, second):
    both = [
        (a, b) for a, b in zip(first, second, strict=True) if not (math.isnan(a) or math.isnan(b))
    ]
    one, other = [round(a, 9) for a, _ in both], [round(b, 9) for _, b in both]
    if len(set(one)) < 2 or len(set(other)) < 2:
        return NAN
    return float(stats.spearmanr(one, other).statistic)


def naive_robustness(table):
    cases = [list(column) for column in zip(*table, strict=True)]
    return mean([rank_correlation(*pair) for pair in combinations(cases, 2)])


def naive_tukey(table, shuffles):
    """p-values of pairs; `shuffles` [B][T] are orders of the systems in each test case."""
    systems = len(table)
    means = [mean(row) for row in table]
    reached = dict.fromkeys(combinations(range(systems), 2), 1)
    for shuffle in shuffles:
        drawn = [
            mean([table[order[index]][case] for case, order in enumerate(shuffle)])
            for index in range(systems)
        ]
        drawn = [value for value in drawn if not math.isnan(value)]
        largest = max(drawn) - min(drawn)
        for first, second in reached:
            reached[first, second] += largest >= abs(means[first] - means[second]) - 1e-9
    return {pair: count / (len(shuffles) + 1) for pair, count in reached.items()}


# --- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_counting_a_value_twice_equals_writing_it_twice(seed):
    rng = np.random.default_rng(seed)
    values, other = rng.integers(0, 4, (2, 7)) / 10.0
    times = rng.integers(0, 4, 7)
    times[0] = 2
    written, paired = np.repeat(values, times), np.repeat(other, times)
    expected = stats.rankdata(written)
    found = np.repeat(compute_mid_ranks(values, times), times)
    assert found == pytest.approx(expected)
    counted = compute_pearson(
        compute_mid_ranks(values, times), compute_mid_ranks(other, times), times
    )
    assert counted == pytest.approx(rank_correlation(written, paired), nan_ok=True)


def test_rank_correlation_runs_over_places_defined_on_both_sides():
    first, second = [0.1, NAN, 0.3, 0.2, 0.9], [0.2, 0.8, 0.1, NAN, 0.5]
    assert compute_spearman(first, second) == pytest.approx(rank_correlation(first, second))
    assert math.isnan(compute_spearman([0.1, NAN, 0.2], [NAN, 0.3, 0.4]))
    assert math.isnan(compute_spearman([NAN, NAN], [0.1, 0.2]))


# --- means and agreement -------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("seed", SEEDS)
def test_agreement_is_the_rank_correlation_of_mean_merits(seed, holes):
    merits = sampled(seed, holes=holes)
    means = [[mean(row) for row in table] for table in merits]
    expected = [[rank_correlation(one, other) for other in means] for one in means]
    assert average_merits(merits) == pytest.approx(np.array(means), nan_ok=True)
    assert compute_agreement(merits) == pytest.approx(np.array(expected), nan_ok=True)


def test_an_undefined_test_case_is_left_out_of_that_systems_mean_only():
    assert average_merits([[[0.2, NAN], [0.4, 0.8], [NAN, NAN]]])[0] == pytest.approx(
        [0.2, 0.6, NAN], nan_ok=True
    )


def test_an_infinite_test_case_makes_the_mean_infinite_and_both_kinds_undefined():
    inf = math.inf
    found = average_merits([[[0.2, -inf], [inf, 0.8], [inf, -inf], [-inf, NAN]]])[0]
    assert found.tolist()[:2] == [-inf, inf]
    assert math.isnan(found[2])
    assert found[3] == -inf
    half = average_merits([[[0.2, -inf], [inf, 0.8]]], [1, 0])[0]
    assert half.tolist() == [0.2, inf]


# --- robustness ----------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_robustness_is_the_mean_correlation_over_pairs_of_test_cases(seed, holes):
    merits = sampled(seed, holes=holes)
    expected = [naive_robustness(table) for table in merits]
    assert compute_robustness(merits) == pytest.approx(np.array(expected), nan_ok=True)


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_robustness_of_copies_leaves_out_pairs_of_the_same_test_case(seed, holes):
    merits = sampled(seed, holes=holes)
    rng = np.random.default_rng(seed)
    systems, cases = rng.integers(0, 5, (4, 5)), rng.integers(0, 6, (4, 6))
    found = compute_robustness(
        merits,
        np.array([np.bincount(row, minlength=5) for row in systems]),
        np.array([np.bincount(row, minlength=6) for row in cases]),
    )
    for draw in range(4):
        pairs = [(a, b) for a, b in combinations(cases[draw], 2) if a != b]
        for index, table in enumerate(merits):
            drawn = table[systems[draw]]
            expected = mean([rank_correlation(drawn[:, a], drawn[:, b]) for a, b in pairs])
            assert found[draw, index] == pytest.approx(expected, nan_ok=True)


def test_robustness_does_not_depend_on_how_much_fits_into_memory(monkeypatch):
    merits = sampled(1, holes=0.1, cases=9)
    whole = compute_robustness(merits)
    monkeypatch.setattr("ordinate.meta.robustness.MOST_NUMBERS", 1)
    assert compute_robustness(merits) == pytest.approx(whole)


def test_robustness_ranks_infinite_values_like_others():
    merits = sampled(3)
    endless = np.where(merits == merits.min(axis=1, keepdims=True), -math.inf, merits)
    assert compute_robustness(endless) == pytest.approx(compute_robustness(merits))
    assert compute_agreement(np.where(merits < 0.2, -math.inf, merits)).max() <= 1.0
    assert compute_spearman([-math.inf, 1, 2, math.inf, NAN], [1, 2, 3, 4, 0]) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_measures_never_leave_their_bounds_by_rounding(seed):
    rng = np.random.default_rng(seed)
    merits = np.repeat(rng.normal(size=(1, 7, 1)), 13, axis=2)
    assert compute_robustness(merits)[0] == 1.0
    systems, cases = (rng.multinomial(n, [1 / n] * n, 40) for n in (7, 13))
    assert set(compute_robustness(merits, systems, cases)[:, 0]) == {1.0}
    assert set(compute_agreement(np.concatenate([merits, -merits])).ravel()) == {1.0, -1.0}


@pytest.mark.parametrize("holes", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_many_patterns_of_undefined_values_change_the_way_and_not_the_value(
    seed, holes, monkeypatch
):
    merits = sampled(seed, holes=holes, cases=9)
    expected = [naive_robustness(table) for table in merits]
    drawn = partial(compute_robustness, merits, most_rankings=1)
    assert drawn() == pytest.approx(np.array(expected), nan_ok=True)
    monkeypatch.setattr("ordinate.meta.robustness.MOST_NUMBERS", 100)
    assert drawn() == pytest.approx(np.array(expected), nan_ok=True)
    rng = np.random.default_rng(seed)
    systems, cases = (rng.multinomial(n, [1 / n] * n, 3) for n in (5, 9))
    pairs = rng.integers(0, 9, (3, 20, 2))
    found = drawn(systems, cases, pairs)
    for draw in range(3):
        drawn = np.repeat(range(5), systems[draw])
        for index, table in enumerate(merits):
            kept = [(a, b) for a, b in pairs[draw] if a != b]
            values = [rank_correlation(table[drawn, a], table[drawn, b]) for a, b in kept]
            assert found[draw, index] == pytest.approx(mean(values), nan_ok=True)


def test_drawn_robustness_is_about_that_of_a_thousand_test_cases():
    rng = np.random.default_rng(0)
    merits = rng.normal(size=(1, 30, 1000)) + rng.normal(size=(1, 30, 1))
    merits[rng.random(merits.shape) < 0.03] = NAN
    systems, cases = (rng.multinomial(n, [1 / n] * n, 20) for n in (30, 1000))
    value = compute_robustness(merits)[0]
    drawn = compute_robustness(merits, systems, cases, rng.integers(0, 1000, (20, 300, 2)))
    assert drawn.mean() == pytest.approx(value, abs=0.1)


def test_robustness_is_nan_where_no_two_test_cases_can_be_compared():
    constant = [[0.5, 0.5, 0.1], [0.5, 0.5, 0.2], [0.5, 0.5, 0.3]]
    apart = [[0.1, NAN], [0.2, NAN], [NAN, 0.3]]
    assert math.isnan(compute_robustness([constant])[0])
    assert math.isnan(compute_robustness([apart])[0])
    assert math.isnan(compute_robustness(np.full((1, 3, 4), NAN))[0])


# --- stability -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [6, 7])
def test_halves_are_disjoint_and_of_equal_size(cases):
    first, second = split_cases_in_halves(np.random.default_rng(0), cases, 50)
    assert not (first & second).any()
    assert (first.sum(axis=1) == cases // 2).all()
    assert (second.sum(axis=1) == cases // 2).all()
    assert len({tuple(row) for row in first}) > 10
    assert (first | second).sum(axis=0).min() > 30  # nobody is left out always


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("cases", [6, 7])
def test_stability_is_the_mean_rank_correlation_of_two_halves(cases, holes):
    merits = sampled(3, holes=holes, cases=cases)
    found = compute_stability(merits, Resampling(100, 5))
    first, second = split_cases_in_halves(np.random.default_rng([5, 0]), cases, 100)
    for table, value in zip(merits, found, strict=True):
        drawn = [
            rank_correlation(*([mean(row[half]) for row in table] for half in halves))
            for halves in zip(first, second, strict=True)
        ]
        assert value == pytest.approx(mean(drawn))


def test_stability_of_a_constant_metric_is_nan():
    assert math.isnan(compute_stability(np.full((1, 3, 4), 0.5), Resampling(100))[0])


# --- discriminative power ------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_p_values_compare_a_difference_with_the_largest_of_each_shuffle(seed, holes):
    merits = sampled(seed, holes=holes)
    resamples = Resampling(150, seed)
    found = compute_tukey_p(merits, resamples)
    start = np.tile(np.arange(5), (150, 6, 1))
    shuffles = np.random.default_rng([seed, 0]).permuted(start, axis=-1).tolist()
    expected = [naive_tukey(table.tolist(), shuffles) for table in merits]
    for p, pairs in zip(found, expected, strict=True):
        assert p == pytest.approx(p.T)
        assert {pair: p[pair] for pair in pairs} == pytest.approx(pairs)
    power = compute_discriminative_power(merits, resamples, 0.2)
    shares = [sum(p <= 0.2 for p in pairs.values()) / len(pairs) for pairs in expected]
    assert power == pytest.approx(np.array(shares))


def test_systems_without_a_value_are_no_pairs():
    merits = sampled(0, cases=30)
    merits[0, 4] = NAN
    merits[1, 1:] = NAN
    whole = compute_discriminative_power(merits[:, :4], Resampling(200))
    found = compute_discriminative_power(merits, Resampling(200))
    assert found[0] == pytest.approx(whole[0], abs=0.34)  # other shuffles, the same six pairs
    assert found[0] * 6 == pytest.approx(round(found[0] * 6))
    assert math.isnan(found[1])


def test_equal_systems_are_rarely_told_apart_whatever_the_metric():
    """Type I error: any of the pairs differs significantly in about alpha of all samples."""
    rng = np.random.default_rng(7)
    alarms = np.zeros(2)
    for index in range(400):
        noise = rng.normal(size=(1, 5, 12)) + rng.normal(size=(1, 1, 12))
        merits = np.concatenate([noise, np.exp(3 * noise)])  # the second one is wildly skewed
        alarms += compute_discriminative_power(merits, Resampling(199, index), 0.1) > 0
    low, high = stats.binom.ppf([0.001, 0.999], 400, 0.1)
    assert ((low <= alarms) & (alarms <= high)).all(), alarms


def test_one_system_far_from_equal_others_is_told_apart_from_all_of_them():
    merits = np.random.default_rng(3).normal(size=(2, 5, 20)) + 10.0 * (np.arange(5) == 2)[:, None]
    assert compute_discriminative_power(merits, Resampling(200)).tolist() == [
        0.4,
        0.4,
    ]  # 4 pairs of 10


def test_infinite_values_hide_every_difference():
    merits = np.random.default_rng(3).normal(size=(1, 5, 20)) + 10.0 * (np.arange(5) == 2)[:, None]
    merits[0, 0, 0] = -math.inf
    assert compute_discriminative_power(merits, Resampling(200)).tolist() == [0.0]
    merits[0, :, 0] = -math.inf
    assert math.isnan(compute_discriminative_power(merits, Resampling(200))[0])


def test_a_level_that_no_shuffle_can_reach_is_refused():
    with pytest.raises(BadOption, match=r"alpha=0\.001 is not from 1 / \(resamples"):
        compute_discriminative_power(sampled(0), Resampling(100), 0.001)


@pytest.mark.parametrize("measure", [compute_stability, compute_tukey_p])
def test_the_same_seed_gives_the_same_number(measure):
    merits = sampled(2)
    assert (measure(merits, Resampling(300, 1)) == measure(merits, Resampling(300, 1))).all()
    assert (measure(merits, Resampling(300, 1)) != measure(merits, Resampling(300, 2))).any()
