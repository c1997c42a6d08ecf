"""Recalibration against independent solvers, and the laws that it keeps."""

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from recalibration_cases import EPS, EVERY, LIKELIHOOD, THREE, log_loss, numbered, simulated
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.isotonic import IsotonicRegression

from ordinate.metrics.isotonic import fit_isotonic, pool_adjacent_violators
from ordinate.postprocess.recalibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    CumulativeIsotonic,
    Derivatives,
    TemperatureScaling,
    VectorScaling,
    make_recalibration,
    minimise_convex,
)

RECENT = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


@st.composite
def held_out(draw, max_items=12):
    """Draw probabilities with many zeros and ones, positions of gold levels, and weights."""
    size, n = draw(st.integers(2, 5)), draw(st.integers(1, max_items))
    cells = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=n * size, max_size=n * size))
    p = np.array(cells, float).reshape(n, size)
    p[p.sum(axis=1) == 0, draw(st.integers(0, size - 1))] = 1.0
    gold = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.25, 1, 2, 3]), min_size=n, max_size=n))
    return p / p.sum(axis=1, keepdims=True), np.array(gold), np.array(weights, float)


# --- against independent solvers ------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_is_what_a_general_optimiser_finds(ridge, weighted):
    rng = np.random.default_rng(1)
    gold, p, _ = simulated(300, 4, rng, power=2.5)
    weights = rng.integers(1, 5, 300).astype(float) if weighted else np.ones(300)

    def objective(inverse):
        loss = -log_softmax(inverse * np.log(p), axis=1)[np.arange(300), gold]
        return weights @ loss + ridge / 2 * (inverse - 1) ** 2

    best = minimize_scalar(objective, bounds=(0.01, 10), options={"xatol": 1e-12}).x
    scaling = TemperatureScaling(numbered(4), ridge=ridge).fit(p, gold, weights)
    assert scaling.temperature_ == pytest.approx(1 / best, rel=1e-6)


@pytest.mark.skipif(not RECENT, reason="scikit-learn scales temperatures since 1.8")
def test_temperature_without_ridge_is_that_of_scikit_learn():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Passing(ClassifierMixin, BaseEstimator):
        def fit(self, _x, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, _x):
            raise NotImplementedError

        def predict_proba(self, x):
            return x

    gold, p, _ = simulated(800, 3, np.random.default_rng(2), power=1.7)
    model = FrozenEstimator(Passing().fit(p, gold))
    peer = CalibratedClassifierCV(model, method="temperature", cv=5).fit(p, gold)
    inverse = peer.calibrated_classifiers_[0].calibrators[0].beta_
    scaling = TemperatureScaling(numbered(3), ridge=0).fit(p, gold)
    assert scaling.temperature_ == pytest.approx(1 / inverse, rel=1e-6)
    assert scaling.predict_proba(p) == pytest.approx(peer.predict_proba(p), abs=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_vector_scaling_is_what_a_general_optimiser_finds(ridge, weighted):
    rng = np.random.default_rng(3)
    gold, p, _ = simulated(300, 3, rng, power=2.0, offsets=[0.5, -1.0, 0.0])
    weights = rng.integers(1, 5, 300).astype(float) if weighted else np.ones(300)

    def line(parameters):
        return log_softmax(np.log(p) * parameters[:3] + parameters[3:], axis=1)

    def objective(parameters):
        moved = parameters - [1, 1, 1, 0, 0, 0]
        loss = -line(parameters)[np.arange(300), gold]
        return weights @ loss + ridge / 2 * moved @ moved

    best = minimize(objective, [1, 1, 1, 0, 0, 0], options={"gtol": 1e-6}).x
    scaling = VectorScaling(numbered(3), ridge=ridge).fit(p, gold, weights)
    assert scaling.predict_proba(p) == pytest.approx(np.exp(line(best)), abs=1e-5)
    if ridge:  # without it, adding the same to all offsets changes nothing
        assert [*scaling.slopes_, *scaling.offsets_] == pytest.approx(best, abs=1e-4)


@LIKELIHOOD
def test_slopes_and_bends_are_those_of_the_value(method, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "ordinate.postprocess.recalibration.minimise_convex",
        lambda at, start, *_: seen.append(at) or start,
    )
    rng = np.random.default_rng(16)
    gold, p, _ = simulated(40, 3, rng)
    make_recalibration(method, numbered(3), ridge=7.0).fit(p, gold, rng.random(40))
    (at,) = seen
    here = rng.random(1 if method == "temperature" else 6)
    steps = 1e-5 * np.eye(len(here))
    slope = [(at(here + h).value - at(here - h).value) / 2e-5 for h in steps]
    bend = [(at(here + h).slope - at(here - h).slope) / 2e-5 for h in steps]
    assert at(here).slope == pytest.approx(np.array(slope), abs=1e-8)
    assert at(here).bend == pytest.approx(np.array(bend), abs=1e-8)


def test_the_search_never_goes_up_and_ends():
    def steep(x):  # |x|³ + x: Newton's first steps from far away are too short, not too long
        return Derivatives(float(abs(x[0]) ** 3 + x[0]), 3 * x * abs(x) + 1, 6 * abs(x)[:, None])

    assert minimise_convex(steep, np.array([9.0])) == pytest.approx(-(3**-0.5), abs=1e-6)
    nowhere_lower = Derivatives(0.0, np.ones(1), np.eye(1))
    assert minimise_convex(lambda _: nowhere_lower, np.array([2.0])) == [2.0]
    assert 1 < minimise_convex(steep, np.array([9.0]), most_steps=1)[0] < 9


@pytest.mark.parametrize("decimals", [1, 2, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_curve_is_the_isotonic_regression_of_scikit_learn(decimals, weighted):
    rng = np.random.default_rng(4)
    gold, p, _ = simulated(2000, 4, rng, power=2.0)
    below = p.cumsum(axis=1).round(decimals)
    below[:, -1] = 1
    p = np.diff(below, axis=1, prepend=0)
    p[p < 0] = 0  # rounding error
    weights = rng.random(2000) if weighted else np.ones(2000)
    scaling = CumulativeIsotonic(numbered(4)).fit(p, gold, weights)
    new = np.concatenate([below[:, 0], np.linspace(0, 1, 1001)])
    for k, curve in enumerate(scaling.curves_):
        peer = IsotonicRegression(out_of_bounds="clip")
        peer.fit(below[:, k], gold <= k, sample_weight=weights)
        assert curve(new) == pytest.approx(peer.predict(new), abs=1e-9)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 5]), st.sampled_from([1, 2, 0.5])), min_size=1),
    st.sampled_from([1, 8, 10**9]),
)
def test_pooling_is_the_greatest_lowest_mean(pairs, worth):
    y, weights = np.array(pairs, float).T
    x = np.arange(len(y), dtype=float)
    fitted = fit_isotonic(x, y, weights, worthwhile_share=worth)(x)
    sums, totals = np.append(0, np.cumsum(y * weights)), np.append(0, np.cumsum(weights))

    def mean(first, last):
        return (sums[last + 1] - sums[first]) / (totals[last + 1] - totals[first])

    n = len(y)
    naive = [max(min(mean(s, t) for t in range(i, n)) for s in range(i + 1)) for i in range(n)]
    assert fitted == pytest.approx(naive, abs=1e-9)


def test_one_late_fall_pools_everything_without_a_pass_for_each_block():
    y = np.append(np.arange(200_000.0), -1e12)
    assert pool_adjacent_violators(y, np.ones(len(y))).tolist() == [0]


# --- the laws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found_again(temperature):
    gold, p, _ = simulated(20_000, 5, np.random.default_rng(5), power=temperature)
    found = TemperatureScaling(numbered(5)).fit(p, gold).temperature_
    assert found == pytest.approx(temperature, rel=0.05)


def test_vector_scaling_undoes_a_shift_of_the_levels():
    shift = np.array([1.5, 0.0, -1.0])
    gold, p, true = simulated(20_000, 3, np.random.default_rng(6), power=1.5, offsets=shift)
    vector = VectorScaling(numbered(3)).fit(p, gold).predict_proba(p)
    temperature = TemperatureScaling(numbered(3)).fit(p, gold).predict_proba(p)
    assert np.abs(vector - true).mean() < 0.01
    assert np.abs(temperature - true).mean() > 0.1


@EVERY
def test_calibrated_probabilities_stay_nearly_as_they_are(method):
    gold, p, true = simulated(20_000, 4, np.random.default_rng(7))
    found = make_recalibration(method, numbered(4)).fit(p, gold).predict_proba(p)
    assert np.abs(found - true).mean() < (0.02 if method == "isotonic" else 0.005)
    assert found.mean(axis=0) == pytest.approx(p.mean(axis=0), abs=0.005)


@EVERY
def test_overconfidence_is_mended(method):
    gold, p, _ = simulated(5000, 4, np.random.default_rng(8), power=3.0)
    found = (
        make_recalibration(method, numbered(4)).fit(p[:3000], gold[:3000]).predict_proba(p[3000:])
    )
    sure, right = found.max(axis=1).mean(), (found.argmax(axis=1) == gold[3000:]).mean()
    assert log_loss(found, gold[3000:]) < log_loss(p[3000:], gold[3000:]) - 0.3
    assert sure == pytest.approx(right, abs=0.05)


def test_curves_mend_a_shape_that_no_slope_and_offset_can():
    rng = np.random.default_rng(9)
    seen = rng.random(8000)
    true = np.where(seen < 0.5, 0.2, 0.8)
    gold = (rng.random(8000) > true).astype(int)
    p = np.stack([seen, 1 - seen], axis=1)
    curve = CumulativeIsotonic(numbered(2)).fit(p, gold).predict_proba(p)
    vector = VectorScaling(numbered(2)).fit(p, gold).predict_proba(p)
    assert np.abs(curve[:, 0] - true).mean() < 0.03
    assert np.abs(vector[:, 0] - true).mean() > 0.08


@LIKELIHOOD
@given(held_out(), st.sampled_from([0.0, 0.1, 1.0]))
def test_log_loss_on_the_items_of_the_fit_never_gets_worse(method, items, ridge):
    p, gold, weights = items
    scaling = make_recalibration(method, numbered(p.shape[1]), ridge=ridge).fit(p, gold, weights)
    before, after = log_loss(p, gold, weights), log_loss(scaling.predict_proba(p), gold, weights)
    assert after <= before + 1e-9


@EVERY
@given(held_out(), held_out())
def test_whatever_comes_in_probabilities_come_out(method, items, others):
    p, gold, weights = items
    scaling = make_recalibration(method, numbered(p.shape[1])).fit(p, gold, weights)
    new = others[0] if others[0].shape[1] == p.shape[1] else p
    found = scaling.predict_proba(new)
    assert found.shape == new.shape
    assert found.min() > 0
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(found, scaling.transform(new))


@EVERY
@examples(50)
@given(held_out())
def test_whole_weights_are_repeated_items_and_weight_0_is_none(method, items):
    p, gold, weights = items
    times = np.floor(weights).astype(int)
    times[0] = 2
    scale = numbered(p.shape[1])
    weighted = make_recalibration(method, scale, columns="scale").fit(p, gold, times)
    repeated = make_recalibration(method, scale, columns="scale").fit(
        p.repeat(times, axis=0), gold.repeat(times)
    )
    assert weighted.predict_proba(p) == pytest.approx(repeated.predict_proba(p), abs=1e-6)


@EVERY
def test_other_weights_may_be_in_any_unit(method):
    rng = np.random.default_rng(10)
    gold, p, _ = simulated(100, 3, rng, power=3.0)
    weights = rng.random(100)
    first, second = (
        make_recalibration(method, numbered(3)).fit(p, gold, unit * weights).predict_proba(p)
        for unit in (1e-9, 1e9)
    )
    assert first == pytest.approx(second, abs=1e-7)


@given(held_out(), st.data())
def test_isotonic_keeps_the_order_of_cumulative_probabilities(items, data):
    p, gold, weights = items
    scaling = CumulativeIsotonic(numbered(p.shape[1])).fit(p, gold, weights)
    row = p[:1]
    raised = row.copy()  # some of what a level has goes to a lower one
    high = data.draw(st.integers(1, p.shape[1] - 1))
    moved = data.draw(st.floats(0, 1)) * raised[0, high]
    raised[0, high] -= moved
    raised[0, data.draw(st.integers(0, high - 1))] += moved
    lower, higher = (scaling.predict_proba(x).cumsum(axis=1) for x in (row, raised))
    assert (higher >= lower - 1e-9).all()


def test_temperature_keeps_the_order_within_a_row():
    gold, p, _ = simulated(500, 4, np.random.default_rng(11), power=4.0)
    found = TemperatureScaling(numbered(4)).fit(p, gold).predict_proba(p)
    assert np.array_equal(found.argsort(axis=1), p.argsort(axis=1))


# --- what the docstrings state --------------------------------------------------------------------


def test_curves_are_flat_within_blocks_straight_between_and_flat_beyond():
    p = np.array([[0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.8, 0.2]])
    scaling = CumulativeIsotonic("a,b").fit(p, ["a", "b", "a", "a"])
    asked = np.array([0.0, 0.25, 0.3, 0.45, 0.6, 0.7, 1.0])
    (curve,) = scaling.curves_
    assert curve(asked) == pytest.approx([0.5, 0.5, 0.5, 0.75, 1.0, 1.0, 1.0])
    assert len(curve.at) == 4


def test_crossing_curves_are_raised_and_an_even_share_is_blended_in():
    p = [[0.5, 0.0, 0.5], [0.1, 0.4, 0.5]]
    scaling = CumulativeIsotonic(THREE, columns="scale").fit(p, ["low", "high"])
    lowest, middle = (float(curve(0.5)) for curve in scaling.curves_)
    assert (lowest, middle) == (1.0, 0.5)  # they cross
    n, even = 2, 1 / 3
    expected = (1 - 1 / (n + 1)) * np.array([[1, 0, 0], [0, 0.5, 0.5]]) + even / (n + 1)
    assert scaling.predict_proba(p) == pytest.approx(expected)


def test_the_blend_counts_whole_weights_and_kish_for_others():
    p, gold = [[0.9, 0.1], [0.8, 0.2]], ["a", "a"]
    counted = CumulativeIsotonic("a,b").fit(p, gold, [3, 1])
    weighted = CumulativeIsotonic("a,b").fit(p, gold, [1.5, 0.5])
    assert counted.items_ == 4
    assert weighted.items_ == pytest.approx(2**2 / (1.5**2 + 0.5**2))
    assert counted.predict_proba(p)[0, 1] == pytest.approx(1 / 5 / 2)


def test_sums_that_differ_by_rounding_alone_are_tied():
    p = [[0.1 + 0.2, 0.7], [0.3, 0.7]]
    assert p[0][0] != p[1][0]
    (curve,) = CumulativeIsotonic("a,b").fit(p, ["a", "b"]).curves_
    assert curve.values.tolist() == [0.5]


def test_perfectly_separated_items_do_not_ask_for_certainty():
    p, gold = np.repeat([[0.8, 0.2], [0.2, 0.8]], 5, axis=0), [0] * 5 + [1] * 5
    temperature = TemperatureScaling("0..1").fit(p, gold)
    vector = VectorScaling("0..1").fit(p, gold)
    assert 0.3 < temperature.temperature_ < 0.8
    assert np.abs([vector.slopes_, vector.offsets_]).max() < 3
    for scaling in (temperature, vector):
        assert 0.85 < scaling.predict_proba(p)[0, 0] < 0.99


@pytest.mark.parametrize("sure", [0.6, 0.999, 1.0])
def test_temperatures_have_bounds_even_without_ridge(sure):
    p = np.array([[sure, 1 - sure], [1 - sure, sure]])
    right = TemperatureScaling("0..1", ridge=0).fit(p, [0, 1])
    wrong = TemperatureScaling("0..1", ridge=0).fit(p, [1, 0])
    assert LOWEST_TEMPERATURE <= right.temperature_ <= 1
    assert wrong.temperature_ == pytest.approx(HIGHEST_TEMPERATURE)
    assert wrong.predict_proba(p) == pytest.approx(0.5, abs=0.02)


def test_the_coldest_temperature_still_leaves_no_zeros():
    p, gold = [[0.501, 0.499], [0.499, 0.501]], [0, 1]
    scaling = TemperatureScaling("0..1", ridge=0).fit(p, gold)
    assert scaling.temperature_ == pytest.approx(LOWEST_TEMPERATURE)
    assert scaling.predict_proba([[1.0, 0.0]])[0, 1] > 0


def test_equal_probabilities_say_nothing_of_a_temperature():
    scaling = TemperatureScaling("0..1", ridge=0).fit([[0.5, 0.5]] * 3, [0, 1, 1])
    assert scaling.temperature_ == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("n", [30, 3000])
def test_an_absent_level_becomes_rarer_and_stays_possible(n):
    gold, p, _ = simulated(n, 3, np.random.default_rng(12))
    gold[gold == 2] = 1
    scaling = VectorScaling(numbered(3)).fit(p, gold)
    found = scaling.predict_proba(p)[:, 2]
    assert found.min() > 0
    assert 1e-4 < found.mean() < p[:, 2].mean() / 2
    assert np.abs([scaling.slopes_, scaling.offsets_]).max() < 10


@LIKELIHOOD
def test_more_ridge_means_less_change(method):
    gold, p, _ = simulated(200, 3, np.random.default_rng(13), power=3.0)
    changes = [
        np.abs(
            make_recalibration(method, numbered(3), ridge=r).fit(p, gold).predict_proba(p) - p
        ).mean()
        for r in (0, 1, 100, 1e9)
    ]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] < 1e-6


def test_a_probability_of_0_counts_for_the_smallest_of_the_log_loss():
    p, gold = np.array([[1.0, 0.0]] * 4), np.array([0, 0, 0, 1])
    scaling = TemperatureScaling("0..1", ridge=0).fit(p, gold)
    assert scaling.temperature_ == pytest.approx(-np.log(EPS) / np.log(3), rel=1e-6)
    assert scaling.predict_proba(p)[0] == pytest.approx([0.75, 0.25])
