"""Split conformal intervals hold what they promise, and scores of intervals have limits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    MissingLabels,
    NoItems,
    NotFitted,
    UnequalLengths,
)
from ordinate.inference.prediction_intervals import (
    estimate_ensemble_metric,
    estimate_interval_metric,
)
from ordinate.inference.small_samples import wilson_interval
from ordinate.metrics import find_metric
from ordinate.metrics.prediction_intervals import standard_error
from ordinate.postprocess.conformal_intervals import SplitConformal
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import PredictionIntervals

# --- by definition -------------------------------------------------------------------------------


def naive_quantile(values, alpha):
    rank = math.ceil((len(values) + 1) * (1 - Fraction(str(alpha))))
    return sorted(values)[rank - 1] if rank <= len(values) else math.inf


NUMBERS = st.floats(-50, 50)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.floats(0.1, 10)), min_size=1, max_size=30)
ALPHAS = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5, 0.9])


@given(ROWS, ALPHAS, st.booleans())
def test_the_reach_is_the_quantile_of_the_residuals(rows, alpha, normalize):
    y, p, spread = np.array(rows).T
    given_ = spread if normalize else None
    fitted = SplitConformal(alpha, normalize=normalize).fit(p, y, spread=given_)
    lower, upper = fitted.predict(p, spread=given_)
    unit = spread if normalize else np.ones(len(y))
    reach = naive_quantile((np.abs(y - p) / unit).tolist(), alpha) * unit
    np.testing.assert_allclose(lower, p - reach, atol=1e-9)
    np.testing.assert_allclose(upper, p + reach, atol=1e-9)


@given(ROWS, ALPHAS)
def test_each_side_has_its_own_quantile(rows, alpha):
    y, p, _ = np.array(rows).T
    band = SplitConformal(alpha, symmetric=False).fit(p, y).predict(p)
    half = Fraction(str(alpha)) / 2
    np.testing.assert_allclose(band.lower, p - naive_quantile(p - y, half), atol=1e-9)
    np.testing.assert_allclose(band.upper, p + naive_quantile(y - p, half), atol=1e-9)
    assert (band.lower <= band.upper).all()


@given(ROWS, ALPHAS, st.data())
def test_groups_are_the_same_as_fitting_each_alone(rows, alpha, data):
    y, p, _ = np.array(rows).T
    names = st.lists(st.sampled_from("xy"), min_size=len(y), max_size=len(y))
    groups = np.array(data.draw(names))
    band = SplitConformal(alpha).fit(p, y, groups=groups).predict(p, groups=groups)
    for name in set(groups):
        mine = groups == name
        alone = SplitConformal(alpha).fit(p[mine], y[mine]).predict(p[mine])
        assert band.lower[mine].tolist() == alone.lower.tolist()
        assert band.upper[mine].tolist() == alone.upper.tolist()


def test_a_target_as_far_away_as_the_threshold_is_held_whatever_is_rounded():
    tenths = np.arange(-200, 200) / 10
    for step in (0.7, 2.7, 3.3):
        intervals = SplitConformal(0.5).fit([1000.1], [1000.1 + step])
        lower, upper = intervals.predict(tenths)
        assert (tenths + step <= upper).all()
        assert (tenths - step >= lower).all()
        unit = np.full(400, 0.3)
        intervals = SplitConformal(0.5, normalize=True).fit([0.0], [step], spread=[0.3])
        lower, upper = intervals.predict(tenths, spread=unit)
        assert (tenths + step <= upper).all()
        assert (upper - tenths < step + 1e-9).all()


def test_too_few_items_have_intervals_without_ends_and_a_note():
    y = np.arange(8.0)
    band = SplitConformal(0.1).fit(y, y).predict([1.0])
    assert (band.lower.tolist(), band.upper.tolist()) == ([-math.inf], [math.inf])
    assert band.notes == (
        "alpha=0.1 needs 9 items, and there were fewer: the intervals have no ends.",
    )
    enough = SplitConformal(0.1).fit(np.arange(9.0), np.arange(9.0)).predict([1.0])
    assert np.isfinite([*enough.lower, *enough.upper]).all()
    assert enough.notes == ()
    sides = SplitConformal(0.1, symmetric=False).fit(y, y)
    assert sides.notes_[0].startswith("alpha=0.1 needs 19 items, and there were fewer")


def test_groups_with_few_items_and_new_groups_are_named():
    groups = ["many"] * 20 + ["few"] * 3
    intervals = SplitConformal(0.1).fit(np.zeros(23), np.arange(23.0), groups=groups)
    band = intervals.predict([0, 0, 0], groups=["many", "few", "new"])
    assert np.isfinite(band.upper).tolist() == [True, False, False]
    few = "alpha=0.1 needs 9 items of each group, and there were fewer of few: such intervals "
    assert band.notes == (
        few + "have no ends.",
        "Not seen in fit, so their intervals have no ends: new.",
    )


# --- what is promised ----------------------------------------------------------------------------


def covered(draw, alpha, *, normalize=False, symmetric=True, resamples=200, n=60, new=200):
    """The mean coverage over fresh resamples, and its standard error."""
    rng = np.random.default_rng(19)
    shares = []
    for _ in range(resamples):
        y, p, spread = draw(rng, n + new)
        told = (spread[:n], spread[n:]) if normalize else (None, None)
        intervals = SplitConformal(alpha, normalize=normalize, symmetric=symmetric)
        lower, upper = intervals.fit(p[:n], y[:n], spread=told[0]).predict(p[n:], spread=told[1])
        shares.append(((lower <= y[n:]) & (y[n:] <= upper)).mean())
    return np.mean(shares), np.std(shares, ddof=1) / math.sqrt(resamples)


def heavy(rng, n):
    p = rng.normal(size=n)
    return p + rng.standard_t(1.5, n), p, np.ones(n)


def uneven(rng, n):
    """Errors that grow with x; the spread is told, but not exactly right."""
    x = rng.uniform(0.1, 4, n)
    return x + x * rng.normal(size=n), x, x * rng.uniform(0.5, 2, n)


def skewed(rng, n):
    p = rng.normal(size=n)
    return p + rng.exponential(size=n), p, np.ones(n)


def discrete(rng, n):
    p = rng.integers(0, 30, n) / 10
    return rng.integers(0, 5, n).astype(float), p, np.ones(n)


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize(
    ("draw", "options"),
    [
        (heavy, {}),
        (uneven, {}),
        (uneven, {"normalize": True}),
        (skewed, {"symmetric": False}),
        (discrete, {}),
    ],
)
def test_coverage_over_fresh_draws_is_at_least_what_is_promised(draw, options, alpha):
    mean, error = covered(draw, alpha, **options)
    assert mean >= 1 - alpha - 3 * error
    assert mean <= 1 - alpha + 0.06


def test_normalised_intervals_hold_items_of_small_and_large_spread_alike():
    rng = np.random.default_rng(20)
    y, p, _ = uneven(rng, 4000)
    plain = SplitConformal(0.1).fit(p[:2000], y[:2000]).predict(p[2000:])
    fitted = SplitConformal(0.1, normalize=True).fit(p[:2000], y[:2000], spread=p[:2000])
    told = fitted.predict(p[2000:], spread=p[2000:])
    sides = np.where(p[2000:] < 2, "low", "high")
    shares = [
        find_metric("interval_coverage", PredictionIntervals)(
            band.summarise(y[2000:], groups=sides)
        )
        for band in (plain, told)
    ]
    assert np.ptp(shares[0]) > 0.1
    assert np.ptp(shares[1]) < 0.04
    assert (told.upper - told.lower).mean() < (plain.upper - plain.lower).mean()


# --- errors --------------------------------------------------------------------------------------


def test_it_is_an_estimator_of_scikit_learn():
    intervals = SplitConformal(0.2, normalize=True)
    assert clone(intervals).get_params() == {"alpha": 0.2, "normalize": True, "symmetric": True}
    assert repr(intervals) == "SplitConformal(alpha=0.2, normalize=True)"
    with pytest.raises(NotFitted, match="call fit first"):
        intervals.predict([1.0])


def test_the_order_is_that_of_scikit_learn_and_a_table_in_the_wrong_place_is_refused():
    predictions, targets = np.zeros(19), np.arange(19.0)
    band = SplitConformal(0.2, symmetric=False).fit(predictions, targets).predict([0.0])
    assert band.upper[0] == pytest.approx(17.0)  # predictions are too low, never too high
    assert band.lower[0] == pytest.approx(1.0)
    with pytest.raises(BadInput, match="The predictions come first"):
        SplitConformal(0.2).fit(targets, predictions[:, None])
    SplitConformal(0.2).fit(predictions[:, None], targets)
    with pytest.raises(TypeError, match="positional"):
        SplitConformal(0.2, normalize=True).fit(targets, predictions, np.ones(19))


def test_bad_input_is_refused():
    fitted = SplitConformal(0.5).fit([1, 2, 4], [1, 2, 3])
    with pytest.raises(BadOption, match="alpha=1 is not a number between 0 and 1"):
        SplitConformal(1).fit([1], [1])
    with pytest.raises(BadValues, match="target of row 2 is nan"):
        SplitConformal().fit([1, 2], [1, np.nan])
    with pytest.raises(BadValues, match="prediction of row 1 is inf"):
        fitted.predict([np.inf])
    with pytest.raises(UnequalLengths, match="2 targets and 1 predictions"):
        SplitConformal().fit([1], [1, 2])
    with pytest.raises(NoItems, match="there are no rows"):
        SplitConformal().fit([], [])
    with pytest.raises(BadInput, match=r"normalize=True\) needs a spread"):
        SplitConformal(normalize=True).fit([1], [1])
    with pytest.raises(BadInput, match=r"normalize=False\) takes no spread"):
        fitted.predict([1], spread=[1])
    with pytest.raises(BadValues, match=r"spread of row 2 is 0.0, not a number above 0"):
        SplitConformal(normalize=True).fit([1, 2], [1, 2], spread=[1, 0])
    with pytest.raises(BadInput, match="Groups were given to predict, but not to fit"):
        fitted.predict([1], groups=["a"])
    with pytest.raises(BadInput, match="Groups were given to fit, so predict needs them"):
        SplitConformal().fit([1], [1], groups=["a"]).predict([1])
    with pytest.raises(MissingLabels, match="group of row 2 is missing"):
        SplitConformal().fit([1, 2], [1, 2], groups=["a", None])


def test_no_predictions_have_no_intervals():
    assert len(SplitConformal(0.5).fit([1, 2, 4], [1, 2, 3]).predict([])) == 0


# --- limits --------------------------------------------------------------------------------------


def some_bounds(n=200, weights=None, seed=21):
    rng = np.random.default_rng(seed)
    y, half = rng.normal(size=n), rng.gamma(4, 0.4, n)
    return PredictionIntervals.of(y, -half, half, weights)


def test_coverage_of_counts_has_the_limits_of_wilson():
    table = some_bounds()
    found = estimate_interval_metric("interval_coverage", table, 0.9)
    expected = wilson_interval(round(float(table.plain[0, 1])), 200, 0.9)
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.method == "wilson"
    doubled = some_bounds(weights=np.full(200, 2.0))
    assert estimate_interval_metric("interval_coverage", doubled).low == pytest.approx(
        wilson_interval(2 * float(table.plain[0, 1]), 400)[0]
    )


def test_coverage_of_weighted_items_has_the_limits_of_as_many_items_as_say_the_same():
    weights = np.random.default_rng(22).gamma(1, 1, 2000)
    table = some_bounds(2000, weights)
    found = estimate_interval_metric("interval_coverage", table)
    error = standard_error(find_metric("interval_coverage", PredictionIntervals), table)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.02)
    all_held = PredictionIntervals.of([1, 1, 1], [0, 0, 0], [2, 2, 2], [0.5, 1, 2.5])
    effective = 4**2 / (0.25 + 1 + 6.25)
    assert estimate_interval_metric("interval_coverage", all_held).low == pytest.approx(
        wilson_interval(effective, effective)[0]
    )


@pytest.mark.parametrize("name", ["mean_interval_width", "winkler", "weighted_interval_score"])
def test_scores_have_students_t_of_the_delta_methods_error(name):
    table = some_bounds(2000)
    found, metric = estimate_interval_metric(name, table), find_metric(name, PredictionIntervals)
    assert found.value == metric(table)
    assert found.method == "t"
    assert found.low < found.value < found.high
    assert found.width / 2 == pytest.approx(1.96 * standard_error(metric, table), rel=0.02)


@pytest.mark.parametrize("name", ["crps", "spread", "rmse", "bias", "dispersion"])
def test_limits_hold_the_true_value_as_often_as_they_should(name):
    rng = np.random.default_rng(23)
    metric = find_metric(name, EnsemblePredictions)

    def table(n):
        centre = rng.normal(size=(n, 1))
        return EnsemblePredictions.of(
            (centre + rng.normal(size=(n, 1)))[:, 0], centre + 0.7 * rng.normal(size=(n, 5))
        )

    true = float(metric(table(200_000)))
    found = [estimate_ensemble_metric(metric, table(150)) for _ in range(200)]
    held = np.mean([x.low <= true <= x.high for x in found])
    assert held == pytest.approx(0.95, abs=0.05)


def test_coverage_of_ensembles_has_limits():
    rng = np.random.default_rng(24)
    table = EnsemblePredictions.of(rng.normal(size=500), rng.normal(size=(500, 19)))
    found = estimate_ensemble_metric("central_coverage", table)
    assert (found.low, found.high) == pytest.approx(wilson_interval(found.value * 500, 500))
    assert found.method == "wilson"
    partly = estimate_ensemble_metric("central_coverage(level=0.55)", table)
    assert partly.method == "delta"
    assert partly.low < partly.value < partly.high


def test_what_has_no_limits_has_a_reason():
    endless = PredictionIntervals.of([1, 2], [0, 0], [2, np.inf])
    alike = PredictionIntervals.of([1, 2], [0, 1], [2, 3])
    reasons = [
        (estimate_interval_metric("winkler", endless), "some intervals have no end"),
        (estimate_interval_metric("winkler", alike), "it is the same for all items"),
        (
            estimate_interval_metric("winkler", PredictionIntervals.of([1], [0], [2])),
            "too few items",
        ),
        (
            estimate_ensemble_metric("crps", EnsemblePredictions.of([1, 2], [[1], [2]])),
            "has no spread",
        ),
        (
            estimate_ensemble_metric("central_coverage", EnsemblePredictions.of([1], [[1, 2]])),
            "too few for this",
        ),
        (estimate_interval_metric("winkler", alike.map(np.zeros_like)), "no items"),
        (estimate_interval_metric("interval_coverage", alike.map(np.zeros_like)), "no items"),
    ]
    for found, reason in reasons:
        assert reason in found.note
        assert found.method is None
        assert math.isnan(found.low)
    assert estimate_interval_metric("winkler", endless).value == math.inf
    assert estimate_interval_metric("interval_coverage", endless).value == 1.0


def test_a_batch_has_to_be_pooled():
    batch = PredictionIntervals.of([1, 2], [0, 1], [2, 3], groups=["a", "b"])
    with pytest.raises(BadInput, match="take one of them, or all of them `pooled`"):
        estimate_interval_metric("winkler", batch)
    assert estimate_interval_metric("interval_coverage", batch.pooled).value == 1.0
