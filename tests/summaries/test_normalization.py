"""The normalised scale and the way back, as in the document on metrics of a surrogate model."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinate.errors import BadOption, BadValues
from ordinate.summaries.normalization import Normalization

TRAINING = Normalization(mean=673.27, std=104.26)
numbers = st.floats(-1e6, 1e6)


def test_the_product_in_the_document_is_41_42():
    assert round(TRAINING.denormalize_errors(0.3973), 2) == 41.42
    assert round(TRAINING.denormalize_errors(0.3973), 2) != 41.46


def test_the_mean_is_added_to_a_value_and_never_to_an_error():
    assert TRAINING.denormalize_errors(0.0) == 0.0
    assert TRAINING.denormalize(0.0) == 673.27
    assert TRAINING.denormalize(0.3973) == pytest.approx(673.27 + 41.42, abs=0.005)


@given(numbers, numbers)
def test_errors_are_differences_of_values(y, p):
    in_unit = TRAINING.denormalize(p) - TRAINING.denormalize(y)
    assert TRAINING.denormalize_errors(p - y) == pytest.approx(in_unit, abs=1e-6)


@given(numbers)
def test_the_way_back_leads_back(value):
    assert TRAINING.normalize(TRAINING.denormalize(value)) == pytest.approx(value, abs=1e-8)
    assert TRAINING.normalize_errors(TRAINING.denormalize_errors(value)) == pytest.approx(value)


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series])
def test_columns_are_normalised_whole(column):
    found = TRAINING.normalize(column([673.27, 777.53]))
    assert np.allclose(found, [0.0, 1.0])
    assert np.allclose(TRAINING.denormalize(column([0.0, 1.0])), [673.27, 777.53])
    assert np.allclose(TRAINING.normalize_errors(column([104.26])), 1.0)
    assert np.allclose(TRAINING.denormalize_errors(column([1.0])), 104.26)


def test_the_deviation_is_that_of_the_population():
    found = Normalization.fit([1.0, 2.0, 3.0, 4.0])
    assert (found.mean, found.std) == (2.5, pytest.approx(math.sqrt(1.25)))


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_a_fit_does_not_lose_digits(shift):
    values = np.random.default_rng(0).normal(0, 1, 500) + shift
    exact = values.astype(np.longdouble)
    found = Normalization.fit(values)
    assert found.mean == pytest.approx(float(exact.mean()), rel=1e-15, abs=1e-15)
    assert found.std == pytest.approx(float(exact.std()), rel=1e-9)


@pytest.mark.parametrize("values", [[5.0], [0.1] * 3, [0.1] * 10, [1e9 + 0.1] * 7, [1e308, -1e308]])
def test_targets_without_a_spread_cannot_normalise(values):
    with pytest.raises(BadOption, match="standard deviation above 0"):
        Normalization.fit(values)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [1.0, math.inf], [1.0, None]])
def test_training_targets_are_finite_numbers(values):
    with pytest.raises(BadOption, match="must be finite numbers"):
        Normalization.fit(values)
    with pytest.raises(BadValues, match="training targets must be numbers"):
        Normalization.fit(["a", "b"])


@pytest.mark.parametrize(("mean", "std"), [(0, 0), (0, -1), (math.nan, 1), (0, math.inf)])
def test_a_scale_has_a_middle_and_a_width(mean, std):
    with pytest.raises(BadOption, match="finite mean"):
        Normalization(mean, std)
