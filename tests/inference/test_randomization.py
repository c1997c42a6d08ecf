"""Randomisation max-T: written out, exact where units are few, never below a pair's own p."""

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from ordinate.inference.prediction_swaps import draw_coins
from ordinate.inference.randomization import choose_swap_count, compute_p_values, draw_signs
from ordinate.inference.resampling import MOST_ENUMERATED_UNITS, enumerate_coins

UNIT_DIFFERENCES = st.integers(2, 6).flatmap(
    lambda pairs: st.lists(
        st.lists(st.integers(-3, 3), min_size=pairs, max_size=pairs), min_size=1, max_size=6
    )
)


def written_out(differences, randomized, *, exact):
    """Return own and adjusted p-values in plain loops."""
    one, pairs = (0 if exact else 1), range(len(differences))
    vectors = [*randomized, *([differences] if one else [])]
    spread = [statistics.fmean(row[k] ** 2 for row in vectors) ** 0.5 for k in pairs]

    def standardise(row):
        return [abs(row[k]) / spread[k] if spread[k] else 0.0 for k in pairs]

    reach, moved = standardise(differences), [standardise(row) for row in randomized]

    def share(hits):
        return (sum(hits) + one) / (len(randomized) + one)

    own = [share(row[k] >= reach[k] * (1 - 1e-9) for row in moved) for k in pairs]
    order = sorted(pairs, key=lambda k: -reach[k])
    adjusted, least = [0.0] * len(pairs), 0.0
    for step, pair in enumerate(order):
        rivals = order[step:]
        hits = [max(row[k] for k in rivals) >= reach[pair] * (1 - 1e-9) for row in moved]
        least = max(least, share(hits))
        adjusted[pair] = least
    return own, adjusted


@given(UNIT_DIFFERENCES)
@examples(40)
def test_all_signs_of_few_units_are_those_of_every_product(by_unit):
    units, signs = len(by_unit), draw_signs(len(by_unit), 99, seed=0)
    assert signs.exact
    whole = [np.array(flip) @ by_unit for flip in itertools.product((1, -1), repeat=units)]
    found = compute_p_values(np.sum(by_unit, axis=0), signs.values @ by_unit, exact=True)
    own, adjusted = written_out(np.sum(by_unit, axis=0), whole, exact=True)
    assert found.own == pytest.approx(own, abs=1e-12)
    assert found.adjusted == pytest.approx(adjusted, abs=1e-12)


@given(UNIT_DIFFERENCES, st.integers(0, 2**20))
@examples(40)
def test_drawn_signs_count_the_data_as_one_of_them(by_unit, seed):
    signs = 1.0 - 2.0 * draw_coins(np.random.default_rng(seed), len(by_unit), 50)
    drawn = signs @ by_unit
    found = compute_p_values(np.sum(by_unit, axis=0), drawn, exact=False)
    own, adjusted = written_out(np.sum(by_unit, axis=0), drawn.tolist(), exact=False)
    assert found.own == pytest.approx(own, abs=1e-12)
    assert found.adjusted == pytest.approx(adjusted, abs=1e-12)


@given(UNIT_DIFFERENCES, st.integers(0, 2**20))
@examples(40)
def test_an_adjusted_p_is_never_below_the_own_one_and_order_does_not_matter(by_unit, seed):
    drawn = (1.0 - 2.0 * draw_coins(np.random.default_rng(seed), len(by_unit), 40)) @ by_unit
    observed = np.sum(by_unit, axis=0).astype(float)
    found = compute_p_values(observed, drawn, exact=False)
    assert (found.adjusted >= found.own).all()
    order = np.random.default_rng(seed).permutation(len(observed))
    again = compute_p_values(-observed[order], drawn[:, order], exact=False)
    assert again.own.tolist() == found.own[order].tolist()
    assert again.adjusted.tolist() == found.adjusted[order].tolist()


def test_a_smaller_statistic_never_has_a_smaller_adjusted_p():
    # the first pair reaches 1 spread by every coin, the second 0.9 spreads by one in four
    drawn = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 2.0]])
    found = compute_p_values(np.array([1.0, 0.9]), drawn, exact=False)
    assert found.own == pytest.approx([1.0, 0.4])
    assert found.adjusted.tolist() == [1.0, 1.0]


def test_a_pairs_own_p_does_not_depend_on_the_family():
    rng = np.random.default_rng(5)
    by_unit = rng.normal(0.2, 1.0, (30, 4))
    drawn = draw_signs(30, 999, seed=1).values @ by_unit
    together = compute_p_values(by_unit.sum(axis=0), drawn, exact=False)
    for pair in range(4):
        alone = compute_p_values(by_unit.sum(axis=0)[[pair]], drawn[:, [pair]], exact=False)
        assert alone.own[0] == alone.adjusted[0] == together.own[pair] <= together.adjusted[pair]


def test_what_coins_leave_undefined_counts_as_extreme():
    drawn = np.array([[np.nan], [0.5], [0.1], [-0.2]])
    assert compute_p_values(np.array([0.4]), drawn, exact=False).own == pytest.approx(3 / 5)
    assert compute_p_values(np.array([9.0]), drawn, exact=False).own == pytest.approx(2 / 5)


def test_a_difference_that_no_coin_changes_is_no_evidence():
    found = compute_p_values(np.array([0.0, 1e-15]), np.zeros((20, 2)), exact=False)
    assert found.own.tolist() == found.adjusted.tolist() == [1.0, 1.0]


def test_coins_are_fair_independent_and_the_same_for_a_seed():
    signs = draw_signs(40, 8_000, seed=3)
    assert not signs.exact
    assert (np.abs(signs.values) == 1.0).all()
    assert np.array_equal(signs.values, draw_signs(40, 8_000, seed=3).values)
    products = signs.values.T @ signs.values / 8_000 - np.eye(40)
    assert np.abs(products).max() < 5 / 8_000**0.5
    assert np.abs(signs.values.mean(axis=0)).max() < 5 / 8_000**0.5


def test_every_vector_of_coins_is_there_once():
    coins = enumerate_coins(5)
    assert coins.shape == (16, 5)
    assert not coins[:, 0].any()
    assert len({tuple(row) for row in coins.tolist()}) == 16
    assert draw_signs(MOST_ENUMERATED_UNITS, 99, 0).values.shape == (1 << 13, 14)
    assert draw_signs(MOST_ENUMERATED_UNITS + 1, 99, 0).values.shape == (99, 15)


def test_the_number_of_swaps_makes_every_usual_level_exact():
    assert [choose_swap_count(systems) for systems in (2, 10, 11, 50)] == [9999, 9999, 1999, 1999]
    for systems, alpha in itertools.product((2, 50), (0.01, 0.05, 0.1)):
        share = alpha * (choose_swap_count(systems) + 1)
        assert share == pytest.approx(round(share))
