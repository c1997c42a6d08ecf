import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinate.errors import BadOption
from ordinate.tuning.classify.class_weights import WEIGHT_STRATEGIES, compute_class_weights
from ordinate.tuning.classify.settings import Settings

LEVELS = np.array([0] * 1 + [1] * 4 + [3] * 4)  # n = 9, K = 3 levels present, of 5

some_levels = st.lists(st.integers(0, 4), min_size=1, max_size=40).map(np.array)


def test_inverse_weights_are_one_over_the_share_of_the_levels_present():
    found = compute_class_weights(LEVELS, 5, "inverse")
    assert found.tolist() == pytest.approx([9 / 3, 9 / 12, 1.0, 9 / 12, 1.0])


def test_square_roots_are_scaled_to_a_mean_of_one_over_items():
    raw = np.sqrt([9 / 3, 9 / 12, 9 / 12])
    mean = (raw[0] + 4 * raw[1] + 4 * raw[2]) / 9
    found = compute_class_weights(LEVELS, 5, "inverse_sqrt")
    assert found[[0, 1, 3]].tolist() == pytest.approx((raw / mean).tolist())


def test_alpha_blends_with_equal_weights():
    full, half = (
        compute_class_weights(LEVELS, 5, "inverse"),
        compute_class_weights(LEVELS, 5, "inverse", 0.5),
    )
    assert half.tolist() == pytest.approx((0.5 + 0.5 * full).tolist())


@given(levels=some_levels, strategy=st.sampled_from(WEIGHT_STRATEGIES), alpha=st.floats(0, 1))
def test_the_mean_weight_over_items_is_one_and_absent_levels_weigh_one(levels, strategy, alpha):
    weights = compute_class_weights(levels, 5, strategy, alpha)
    assert weights[levels].mean() == pytest.approx(1.0)
    absent = np.setdiff1d(np.arange(5), levels)
    assert weights[absent] == pytest.approx(1.0)
    assert (weights > 0).all()


@given(levels=some_levels, strategy=st.sampled_from(WEIGHT_STRATEGIES))
def test_alpha_zero_and_the_equal_strategy_weigh_all_items_the_same(levels, strategy):
    assert compute_class_weights(levels, 5, strategy, 0.0).tolist() == [1.0] * 5
    assert compute_class_weights(levels, 5, "equal", 0.3) == pytest.approx(1.0)


@given(levels=some_levels)
def test_of_two_levels_the_rarer_never_weighs_less(levels):
    weights, counts = (
        compute_class_weights(levels, 5, "inverse_sqrt"),
        np.bincount(levels, minlength=5),
    )
    present = np.flatnonzero(counts)
    order = present[np.argsort(counts[present])]
    assert (np.diff(weights[order]) <= 1e-12).all()


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), float("inf")])
def test_an_alpha_outside_zero_to_one_is_refused(alpha):
    with pytest.raises(BadOption, match=r"weight.alpha"):
        Settings(weight_strategy="inverse", weight_alpha=alpha)


def test_an_unknown_strategy_is_refused_with_those_that_are_known():
    with pytest.raises(BadOption, match="inverse_sqrt"):
        Settings(weight_strategy="inverse_root")
