"""Differences of means over cases: the definitions written out."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from ordinate.inference.case_differences import (
    count_differing_cases,
    randomize_case_means,
    resample_case_means,
)
from ordinate.inference.randomization import compute_p_values
from ordinate.inference.resampling import Resampling
from ordinate.metrics import find_metric

RNG = np.random.default_rng(11)
PAIRS = (np.array([0, 0, 1]), np.array([1, 2, 2]))


def swap_cases(metric, values, first, second):
    """The differences of two systems after every exchange of whole cases, one by one."""
    found = []
    for coins in product([False, True], repeat=values.shape[1]):
        one = np.where(coins, values[second], values[first]).mean()
        other = np.where(coins, values[first], values[second]).mean()
        found.append(metric.size(one) - metric.size(other))
    return np.array(found)


@pytest.mark.parametrize("name", ["cem_ord", "mae", "bias"])
def test_few_cases_are_swapped_in_every_way(name):
    metric, values = find_metric(name), RNG.normal(0.1, 0.4, (3, 7))
    found = randomize_case_means(metric, values, PAIRS, seed=0)
    assert found.exact
    for k, (first, second) in enumerate(zip(*PAIRS, strict=True)):
        means = values[first].mean(), values[second].mean()
        assert found.observed[k] == pytest.approx(metric.size(means[0]) - metric.size(means[1]))
        every = np.abs(swap_cases(metric, values, first, second))
        # the first case is never swapped: exchanging all others instead changes the sign alone
        assert np.sort(np.abs(found.randomized[:, k])) == pytest.approx(np.sort(every)[::2])
        p = (every >= abs(found.observed[k]) - 1e-9).mean()
        assert found.compute_p_values().own[k] == pytest.approx(p)


def test_coins_are_shared_by_all_pairs():
    """So the differences of a and b, and of b and c, add up to those of a and c."""
    values = RNG.normal(0.5, 0.1, (3, 40))
    found = randomize_case_means(find_metric("cem_ord"), values, PAIRS, seed=2)
    assert not found.exact
    ab, ac, bc = found.randomized.T
    assert ab + bc == pytest.approx(ac)
    own, adjusted = found.compute_p_values()
    assert (adjusted >= own).all()
    same = compute_p_values(found.observed, found.randomized, exact=False)
    assert own.tolist() == same.own.tolist()


def test_other_cases_would_give_the_interval_of_the_paired_t_test():
    values = np.stack([RNG.normal(0.6, 0.1, 12), RNG.normal(0.5, 0.2, 12)])
    drawn = resample_case_means(values, Resampling(200_000, 3))
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975])
    expected = stats.ttest_rel(*values).confidence_interval(0.95)
    assert (low, high) == pytest.approx(tuple(expected), abs=0.004)


def test_few_cases_have_the_tails_of_students_t():
    values = np.array([[0.6, 0.8, 0.5, 0.9], [0.5, 0.5, 0.6, 0.4]])
    drawn = resample_case_means(values, Resampling(200_000, 4))
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975])
    expected = stats.ttest_rel(*values).confidence_interval(0.95)
    # a degree of freedom more would make it 13 % narrower
    assert high - low == pytest.approx(expected.high - expected.low, rel=0.02)


def test_one_case_has_no_resamples():
    assert np.isnan(resample_case_means(np.array([[0.5], [0.7]]), Resampling(100))).all()


def test_cases_that_differ_are_counted():
    values = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.4], [0.0, 0.2, 0.3]])
    assert count_differing_cases(values).tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]
