"""Isotonic calibration: its terms are those of the definition, and sum to the score."""

import naive_probabilities as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sklearn.isotonic import IsotonicRegression
from strategies import scale_of

from ordinate.metrics.corp import calibrate_bins, compute_miscalibration, decompose_isotonic
from ordinate.metrics.isotonic import fit_isotonic_series
from ordinate.metrics.proper_scores import DECOMPOSITION_SIGNS
from ordinate.summaries.reliability import Reliability, ReliabilityBins, ReliabilityParts

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def judged_items(draw, most=14):
    """Rows of probabilities in hundredths, so that ties are common and bins hold one value each."""
    size, n = draw(st.integers(2, 4)), draw(st.integers(1, most))
    rows = []
    for _ in range(n):
        ends = sorted(draw(st.lists(st.integers(0, 100), min_size=size - 1, max_size=size - 1)))
        parts = zip([0, *ends], [*ends, 100], strict=True)
        rows.append([(high - low) / 100 for low, high in parts])
    gold = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    weights = draw(st.none() | st.lists(WEIGHTS.filter(bool), min_size=n, max_size=n))
    return gold, rows, weights


def curves(gold, rows, weights=None):
    scale = scale_of(len(rows[0]))
    labels = [scale.labels[g] for g in gold]
    return Reliability.of(
        labels, rows, scale, ReliabilityParts(curves=True), columns="scale", weights=weights
    ).curves


def in_hundredths(rows):
    """Rows whose cumulative probabilities have two decimals."""
    below = np.asarray(rows).cumsum(axis=1).round(2)
    return np.diff(np.clip(below, 0.0, 1.0), axis=1, prepend=0.0)


def naive_terms(pairs, weights):
    """Miscalibration, discrimination and uncertainty, by scikit-learn's isotonic regression."""
    f, o = np.array(pairs, float).T
    w = np.array(weights)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(f.round(9), o, w).predict(f.round(9))
    share = np.average(o, weights=w)
    scores = [np.average((x - o) ** 2, weights=w) for x in (f, fitted, np.full(len(o), share))]
    return scores[0] - scores[1], scores[2] - scores[1], scores[2]


# --- isotonic regression -------------------------------------------------------------------------


@given(
    st.integers(1, 9).flatmap(
        lambda size: st.lists(
            st.lists(st.tuples(st.integers(0, 3), WEIGHTS), min_size=size, max_size=size),
            min_size=1,
            max_size=4,
        )
    )
)
def test_many_series_at_once_are_those_of_scikit_learn(series):
    y, w = np.moveaxis(np.array(series, float), -1, 0)
    found = fit_isotonic_series(y * w, w)
    for values, weights, fitted in zip(y, w, found, strict=True):
        alive = weights > 0
        assert np.isnan(fitted[~alive]).all()
        if alive.any():
            places = np.flatnonzero(alive)
            wanted = IsotonicRegression().fit(places, values[alive], weights[alive])
            np.testing.assert_allclose(fitted[alive], wanted.predict(places), atol=1e-12)


def test_long_series_are_pooled_on_their_own():
    rng = np.random.default_rng(1)
    y, w = rng.random((30, 400)), rng.integers(1, 4, 400).astype(float)
    for values, fitted in zip(y, fit_isotonic_series(y * w, w), strict=True):
        wanted = IsotonicRegression().fit(np.arange(400), values, w)
        np.testing.assert_allclose(fitted, wanted.predict(np.arange(400)), atol=1e-12)


# --- the terms -----------------------------------------------------------------------------------


@given(judged_items())
def test_terms_are_those_of_the_definition(items):
    gold, rows, weights = items
    terms = decompose_isotonic(curves(*items))
    each = naive.each(gold, weights)
    for event, pairs in enumerate(naive.cumulative(gold, rows)):
        wanted = naive_terms(pairs, each)
        np.testing.assert_allclose(terms[:3, event], wanted, atol=1e-12)
        np.testing.assert_allclose(terms[3:, event], 0.0, atol=1e-12)  # one value in each bin


@given(naive.judged())
@examples(50)
def test_terms_sum_to_the_score_of_any_forecasts_and_are_never_negative(items):
    gold, rows, weights = items
    terms = decompose_isotonic(curves(gold, rows, weights))
    each = naive.each(gold, weights)
    for event, pairs in enumerate(naive.cumulative(gold, rows)):
        score = sum(w * (f - o) ** 2 for (f, o), w in zip(pairs, each, strict=True)) / sum(each)
        assert DECOMPOSITION_SIGNS @ terms[:, event] == pytest.approx(score, abs=1e-12)
    assert (terms[:2] >= 0).all()


@given(judged_items())
@examples(30)
def test_a_batch_has_the_terms_of_its_parts(items):
    bins = curves(*items)
    other = ReliabilityBins(*(part[:, ::-1] for part in bins))
    both = ReliabilityBins(*(np.stack(parts) for parts in zip(bins, other, strict=True)))
    found = decompose_isotonic(both)
    for k, alone in enumerate((bins, other)):
        np.testing.assert_array_equal(found[:, k], decompose_isotonic(alone))


def test_forecasts_that_are_calibrated_have_no_miscalibration():
    rows = [[0.2, 0.8]] * 10 + [[0.7, 0.3]] * 10
    gold = [0] * 2 + [1] * 8 + [0] * 7 + [1] * 3
    miscalibration, discrimination, uncertainty, *_ = decompose_isotonic(curves(gold, rows))[:, 0]
    assert miscalibration == 0
    assert discrimination == pytest.approx(0.25**2)
    assert uncertainty == pytest.approx(0.45 * 0.55)


def test_forecasts_that_are_all_the_same_or_upside_down_have_no_discrimination():
    same = decompose_isotonic(curves([0, 0, 1], [[0.5, 0.5]] * 3))[:, 0]
    assert same[:2] == pytest.approx([(2 / 3 - 0.5) ** 2, 0.0], abs=1e-15)
    wrong = decompose_isotonic(curves([1, 1, 0, 0], [[0.9, 0.1]] * 2 + [[0.1, 0.9]] * 2))[:, 0]
    assert wrong[:2] == pytest.approx([0.81 - 0.25, 0.0])


def test_recalibration_by_the_curve_takes_the_miscalibration_away():
    gold, rows = naive.sample(300, seed=4, sharpness=2.0)
    bins = curves(gold, in_hundredths(rows))
    fitted = np.nan_to_num(calibrate_bins(bins))
    after = bins._replace(f=fitted * bins.weight)
    assert compute_miscalibration(bins, calibrate_bins(bins)).min() > 0.005
    assert compute_miscalibration(after, calibrate_bins(after)) == pytest.approx(0.0, abs=1e-15)


def test_bins_of_many_digits_are_near_the_exact_terms():
    gold, rows = naive.sample(2_000, seed=5, sharpness=1.5)
    terms = decompose_isotonic(curves(gold.tolist(), rows.tolist()))
    for event, pairs in enumerate(naive.cumulative(gold.tolist(), rows.tolist())):
        exact = naive_terms(pairs, np.ones(len(gold)))
        np.testing.assert_allclose(terms[:3, event], exact, atol=5e-4)
        assert terms[0, event] <= exact[0] + 1e-5  # finer bins only fit closer
