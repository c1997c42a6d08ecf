import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression

from ordinate.integrations.sklearn.ordinal_regression import FrankHallClassifier, project_to_falling

rows_of_shares = arrays(
    float, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.floats(0, 1)
)


def data(n=150, levels=4, seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, 3))
    latent = matrix @ [1.5, -1.0, 0.5] + rng.logistic(size=n)
    return matrix, np.searchsorted(np.linspace(-1.5, 1.5, levels - 1), latent)


def test_each_event_has_its_own_logistic_regression():
    matrix, codes = data()
    model = FrankHallClassifier(penalty=0.5).fit(matrix, codes)
    for event in range(3):
        peer = LogisticRegression(C=2.0, tol=1e-9, max_iter=1000).fit(matrix, codes > event)
        assert model.coef_[event] == pytest.approx(peer.coef_[0], abs=1e-5)
        assert -model.cuts_[event] == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_probabilities_of_levels_are_differences_of_those_of_events():
    matrix, codes = data()
    model = FrankHallClassifier(penalty=0.5).fit(matrix, codes)
    rows = model.predict_proba(matrix)
    raw = 1 / (1 + np.exp(model.cuts_ - matrix @ model.coef_.T))
    kept = (np.diff(raw, axis=1) <= 0).all(axis=1)
    assert kept.any()
    assert rows[kept, 0] == pytest.approx(1 - raw[kept, 0])
    assert rows[kept, -1] == pytest.approx(raw[kept, -1])
    assert rows.sum(axis=1) == pytest.approx(1.0)


def test_crossing_events_leave_no_negative_probability():
    rng = np.random.default_rng(3)
    matrix, codes = rng.normal(size=(40, 8)), rng.integers(0, 5, 40)  # nothing to learn
    model = FrankHallClassifier(penalty=1e-3).fit(matrix, codes)
    other = rng.normal(size=(200, 8)) * 3
    raw = 1 / (1 + np.exp(model.cuts_ - other @ model.coef_.T))
    assert (np.diff(raw, axis=1) > 0).any()
    rows = model.predict_proba(other)
    assert rows.min() >= 0
    assert rows.sum(axis=1) == pytest.approx(1.0)


@given(rows=rows_of_shares)
def test_the_repair_is_isotonic_regression(rows):
    expected = np.array([isotonic_regression(row, increasing=False) for row in rows])
    assert project_to_falling(rows) == pytest.approx(expected, abs=1e-12)


def test_weights_are_repetitions():
    matrix, codes = data(60)
    times = 1 + np.arange(60) % 3
    weighed = FrankHallClassifier().fit(matrix, codes, sample_weight=times)
    repeated = FrankHallClassifier().fit(matrix.repeat(times, 0), codes.repeat(times))
    assert weighed.predict_proba(matrix) == pytest.approx(repeated.predict_proba(matrix), rel=1e-6)
