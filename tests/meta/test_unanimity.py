"""Ranks, unanimous improvement and coverage: equal to plain loops, and the laws that they keep."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ordinate.meta.coverage import compute_coverage
from ordinate.meta.rank_correlation import compute_mid_ranks, compute_pearson, compute_spearman
from ordinate.meta.unanimity import compute_improvements, compute_unanimous_improvement

FEW = st.integers(-3, 3).map(float)  # few values, so that many are equal
SIZES = st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(1, 5))
MERITS = SIZES.flatmap(lambda size: arrays(float, size, elements=FEW))
GAPPED = SIZES.flatmap(
    lambda size: arrays(float, size, elements=st.one_of(FEW, st.just(float("nan"))))
)
UNANIMITIES = ("weak", "strict")


def naive_improvement(merits, s, other, case, unanimity):
    wins = []
    for metric in merits:
        mine, theirs = metric[s][case], metric[other][case]
        wins.append(mine > theirs if unanimity == "strict" else mine >= theirs)
    return all(wins)


def naive_ratio(merits, s, other, unanimity):
    cases = range(len(merits[0][0]))
    better = sum(naive_improvement(merits, s, other, t, unanimity) for t in cases)
    worse = sum(naive_improvement(merits, other, s, t, unanimity) for t in cases)
    return (better - worse) / len(cases)


def naive_coverage(values, ratios, pairs):
    there = [k for k, value in enumerate(values) if not math.isnan(value)]
    every = itertools.permutations if pairs == "ordered" else itertools.combinations
    chosen = list(every(there, 2))
    gains = [values[a] - values[b] for a, b in chosen]
    wanted = [ratios[a][b] for a, b in chosen]
    if len(set(gains)) < 2 or len(set(wanted)) < 2:
        return math.nan
    return stats.spearmanr(gains, wanted).statistic


# --- equal to plain loops ------------------------------------------------------------------------


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=FEW))
def test_ranks_are_those_of_scipy(values):
    assert np.array_equal(compute_mid_ranks(values), stats.rankdata(values, axis=-1))


@given(arrays(float, (2, 3, 6), elements=FEW))
def test_the_rank_correlation_is_that_of_scipy(values):
    found = compute_spearman(values[0], values[1])
    for row, first, second in zip(found, values[0], values[1], strict=True):
        if len(set(first)) < 2 or len(set(second)) < 2:
            assert math.isnan(row)
        else:
            assert row == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


def test_a_constant_side_has_no_correlation():
    assert math.isnan(compute_pearson(np.array([1.0, 2.0]), np.array([3.0, 3.0])))


def test_ranks_take_values_that_differ_in_rounding_for_equal():
    assert compute_mid_ranks([0.1 + 0.2, 0.3, 0.0]).tolist() == [2.5, 2.5, 1.0]


@given(GAPPED, st.sampled_from(UNANIMITIES))
def test_unanimous_improvement_is_that_of_plain_loops(merits, unanimity):
    ratios = compute_unanimous_improvement(compute_improvements(merits, unanimity))
    systems = range(merits.shape[1])
    expected = [[naive_ratio(merits, s, o, unanimity) for o in systems] for s in systems]
    assert ratios == pytest.approx(np.array(expected), abs=1e-12)


@given(GAPPED, st.data(), st.sampled_from(("ordered", "unordered")))
def test_coverage_is_that_of_plain_loops(merits, data, pairs):
    systems = merits.shape[1]
    ratios = compute_unanimous_improvement(compute_improvements(merits))
    gapped = st.one_of(FEW, st.just(float("nan")))
    values = data.draw(arrays(float, (2, systems), elements=gapped))
    found = compute_coverage(values, ratios, pairs)
    expected = [naive_coverage(row, ratios, pairs) for row in values]
    assert found == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True)


# --- laws ----------------------------------------------------------------------------------------


@given(GAPPED, st.sampled_from(UNANIMITIES))
def test_unanimous_improvement_is_antisymmetric_and_bounded(merits, unanimity):
    ratios = compute_unanimous_improvement(compute_improvements(merits, unanimity))
    assert np.array_equal(ratios, -ratios.T)
    assert (np.abs(ratios) <= 1).all()
    assert not np.diagonal(ratios).any()


@pytest.mark.parametrize("rising", [lambda x: x**3, np.exp, lambda x: 5 * x - 7])
@given(merits=MERITS, unanimity=st.sampled_from(UNANIMITIES))
def test_a_strictly_increasing_change_of_a_metric_changes_no_improvement(rising, merits, unanimity):
    changed = merits.copy()
    changed[0] = rising(merits[0])
    assert np.array_equal(
        compute_improvements(merits, unanimity), compute_improvements(changed, unanimity)
    )


@given(MERITS, st.sampled_from(UNANIMITIES))
def test_a_further_metric_never_turns_an_improvement_round(merits, unanimity):
    fewer, more = (
        compute_improvements(merits[:1], unanimity),
        compute_improvements(merits, unanimity),
    )
    assert not ((fewer < 0) & (more > 0)).any()


@given(MERITS)
def test_what_improves_strictly_improves_weakly(merits):
    weak, strict = compute_improvements(merits, "weak"), compute_improvements(merits, "strict")
    assert (weak[strict == 1] == 1).all()


@given(MERITS, st.data())
def test_a_test_case_that_counts_twice_is_two_test_cases(merits, data):
    times = data.draw(arrays(int, (2, merits.shape[2]), elements=st.integers(0, 3)))
    times[:, 0] += 1
    batch = compute_unanimous_improvement(compute_improvements(merits), times)
    for ratios, counts in zip(batch, times, strict=True):
        copied = compute_improvements(np.repeat(merits, counts, axis=2))
        assert ratios == pytest.approx(compute_unanimous_improvement(copied), abs=1e-12)


def test_an_undefined_value_improves_on_nothing_and_nothing_improves_on_it():
    merits = [[[math.nan], [0.5], [0.1]]]
    assert compute_unanimous_improvement(compute_improvements(merits)).tolist() == [
        [0, 0, 0],
        [0, 0, 1],
        [0, -1, 0],
    ]


def test_infinite_values_are_compared_like_others():
    merits = [[[-math.inf], [-math.inf], [0.1]], [[0.2], [0.1], [0.3]]]
    assert compute_unanimous_improvement(compute_improvements(merits)).tolist() == [
        [0, 1, -1],
        [-1, 0, -1],
        [1, 1, 0],
    ]


def test_no_reference_metric_is_an_error():
    with pytest.raises(ValueError, match="at least one reference metric"):
        compute_improvements(np.empty((0, 2, 2)))


@given(arrays(float, 5, elements=FEW, unique=True), st.sampled_from(("ordered", "unordered")))
def test_a_metric_whose_differences_are_the_ratios_covers_them_fully(values, pairs):
    ratios = (values[:, None] - values[None, :]) / 6
    assert compute_coverage([values, -values], ratios, pairs) == pytest.approx([1.0, -1.0])


@given(MERITS, arrays(float, 6, elements=FEW))
def test_coverage_is_bounded_and_changes_its_sign_with_the_metric(merits, values):
    ratios = compute_unanimous_improvement(compute_improvements(merits))
    values = values[: merits.shape[1]]
    plus, minus, scaled = compute_coverage([values, -values, 2 * values + 1], ratios)
    if math.isnan(plus):
        assert math.isnan(minus)
        return
    assert abs(plus) <= 1 + 1e-12
    assert (minus, scaled) == pytest.approx((-plus, plus), abs=1e-12)


def test_a_metric_that_is_undefined_everywhere_has_no_coverage():
    assert math.isnan(compute_coverage([[math.nan, math.nan]], [[0, 1], [-1, 0]])[0])
