"""Metrics of quantities: equal to their definitions, to other libraries, and to the document."""

import math

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics as sk
from each_case import each_case
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples

from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.regression import find_error_percentile
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.regression import Moments

METRICS = list_metrics(Moments)
NAMES = [metric.name for metric in METRICS]
every_metric = each_case("metric", dict(zip(NAMES, METRICS, strict=True)))
PEERS = {
    "mse": sk.mean_squared_error,
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
    "r2": sk.r2_score,
    "explained_variance": sk.explained_variance_score,
}
whole_numbers = st.integers(-50, 50)


@st.composite
def columns(draw, min_size=2):
    """Targets that are not all equal, and predictions."""
    size = draw(st.integers(min_size, 25))
    column = st.lists(whole_numbers, min_size=size, max_size=size)
    y, p = (np.array(draw(column), float) / 4 for _ in range(2))
    assume(len(set(y)) > 1)
    return y, p


def value(name, table):
    return float(find_metric(name, Moments)(table))


def of(name, *args, **options):
    return value(name, Moments.of(*args, **options))


def heavy(n=2_000, seed=3):
    rng = np.random.default_rng(seed)
    y = rng.normal(670, 104, n)
    return y, 0.9 * y + 70 + 40 * rng.standard_t(5, n), rng.gamma(1.0, 1.0, n)


# --- beside other libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("order", [2, 4])
def test_values_are_those_of_scikit_learn(name, order):
    y, p, w = heavy()
    assert of(name, y, p, order=order) == pytest.approx(PEERS[name](y, p), rel=1e-12)
    weighted = PEERS[name](y, p, sample_weight=w)
    assert of(name, y, p, w, order=order) == pytest.approx(weighted, rel=1e-12)


@given(columns())
@examples(50)
def test_small_samples_agree_with_scikit_learn(pair):
    y, p = pair
    table = Moments.of(y, p, histogram=True)
    for name, peer in PEERS.items():
        assert value(name, table) == pytest.approx(peer(y, p), rel=1e-9, abs=1e-9)
    assert value("max_error", table) == sk.max_error(y, p)
    assert value("bias", table) == pytest.approx(np.mean(p - y), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 11, 2_000])
def test_the_median_is_that_of_scikit_learn_to_half_a_per_cent(n):
    y, p, w = (x[:n] for x in heavy())
    found = of("median_absolute_error", y, p, histogram=True)
    assert found == pytest.approx(sk.median_absolute_error(y, p), rel=0.0051)
    found = of("median_absolute_error", y, p, w, histogram=True)
    wanted = sk.median_absolute_error(y, p, sample_weight=w)
    assert found == pytest.approx(wanted, rel=0.0051)


def test_a_median_between_two_errors_is_their_mean():
    table = Moments.of([0, 0], [1, 100], histogram=True)
    assert value("median_absolute_error", table) == pytest.approx(50.5, rel=0.0051)
    weighted = Moments.of([0, 0], [1, 100], [3, 3], histogram=True)
    assert value("median_absolute_error", weighted) == pytest.approx(50.5, rel=0.0051)


def test_correlations_are_those_of_their_definitions():
    y, p, w = heavy()
    assert of("pearson", y, p) == pytest.approx(scipy.stats.pearsonr(y, p).statistic, rel=1e-12)
    cov = np.cov(y, p, aweights=w, ddof=0)
    assert of("pearson", y, p, w) == pytest.approx(
        cov[0, 1] / math.sqrt(cov[0, 0] * cov[1, 1]), rel=1e-11
    )
    gap = np.average(p, weights=w) - np.average(y, weights=w)
    assert of("ccc", y, p, w) == pytest.approx(
        2 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + gap**2), rel=1e-11
    )


@pytest.mark.parametrize("shift", [0.0, 1e9])
@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_values_far_from_zero_are_those_of_long_doubles(shift, scale):
    y, p, _ = heavy()
    if shift and scale < 1:
        y, p = y * 1e6, p * 1e6  # otherwise nothing is left of them in doubles
    y, p = y * scale + shift, p * scale + shift
    table = Moments.of(y, p)
    exact_y, exact_p = y.astype(np.longdouble), p.astype(np.longdouble)
    e = exact_p - exact_y
    mse, variance = float((e**2).mean()), float(exact_y.var())
    assert value("rmse", table) == pytest.approx(math.sqrt(mse), rel=1e-9)
    assert value("mae", table) == pytest.approx(float(np.abs(e).mean()), rel=1e-9)
    assert value("r2", table) == pytest.approx(1 - mse / variance, rel=1e-9)
    assert value("relative_accuracy", table) == pytest.approx(
        1 - math.sqrt(mse / variance), rel=1e-9
    )


# --- the document, done right --------------------------------------------------------------------


def with_rmse(rmse, sigma):
    """Return a summary with this RMSE and this spread of the targets."""
    y = np.array([-sigma, sigma] * 50) + 673.27
    return Moments.of(y, y + np.array([rmse, -rmse, -rmse, rmse] * 25))


def test_r2_and_relative_accuracy_of_the_document_differ():
    table = with_rmse(41.46, 104.26)
    assert value("rmse", table) == pytest.approx(41.46)
    assert math.sqrt(float(table.plain.mean(2, 0))) == pytest.approx(104.26)
    assert round(value("r2", table), 3) == 0.842
    assert round(value("relative_accuracy", table), 3) == 0.602
    assert round(value("nrmse", table), 3) == 0.398
    assert value("r2", table) != pytest.approx(value("relative_accuracy", table), abs=0.2)
    for wrong in (0.6025, 0.8475):
        assert value("r2", table) != pytest.approx(wrong, abs=0.004)


def test_r2_may_be_negative():
    assert of("r2", [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == -3.0
    assert of("relative_accuracy", [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)


@given(columns(), st.floats(-20, 20))
def test_shares_are_what_they_say(pair, mean):
    y, p = pair
    table = Moments.of(y, p, constants={"train_mean": mean})
    rmse, sigma = value("rmse", table), math.sqrt(float(table.plain.mean(2, 0)))
    assert value("r2", table) == pytest.approx(1 - rmse**2 / sigma**2, rel=1e-9, abs=1e-9)
    together = value("relative_accuracy", table) + value("nrmse", table)
    assert together == pytest.approx(1.0, rel=1e-9, abs=1e-9)
    baseline = math.sqrt(np.mean((y - mean) ** 2))
    assert value("baseline_rmse", table) == pytest.approx(baseline, rel=1e-9)
    assert value("baseline_mae", table) == pytest.approx(np.mean(np.abs(y - mean)), rel=1e-9)
    assert value("skill", table) == pytest.approx(1 - rmse / baseline, rel=1e-9, abs=1e-9)
    assert value("r2", table) == pytest.approx(
        1 - (1 - value("relative_accuracy", table)) ** 2, rel=1e-9, abs=1e-9
    )


@given(columns())
def test_without_training_data_the_baseline_is_the_mean_of_the_targets(pair):
    table = Moments.of(*pair)
    sigma = math.sqrt(float(table.plain.mean(2, 0)))
    assert value("baseline_rmse", table) == pytest.approx(sigma, rel=1e-12)
    assert value("skill", table) == pytest.approx(value("relative_accuracy", table), abs=1e-12)
    assert math.isnan(value("baseline_mae", table))
    known = Moments.of(*pair, constants={"mean": float(np.mean(pair[0]))})
    assert value("baseline_mae", known) == pytest.approx(
        np.mean(np.abs(pair[0] - pair[0].mean())), abs=1e-12
    )


def test_the_mean_of_batches_is_not_the_mean_of_items():
    y, p, _ = heavy(70)
    p[64:] += 500.0  # the last batch is smaller, and worse
    ends = [(0, 32), (32, 64), (64, 70)]
    parts = [Moments.of(y[a:b], p[a:b]) for a, b in ends]
    of_batches = math.sqrt(np.mean([value("mse", part) for part in parts]))
    of_items = math.sqrt(np.mean((p - y) ** 2))
    assert value("rmse", parts[0] + parts[1] + parts[2]) == pytest.approx(of_items, rel=1e-12)
    assert abs(of_batches - of_items) > 50.0


# --- laws ----------------------------------------------------------------------------------------

IN_UNIT = ("rmse", "mae", "bias", "max_error")
SHARES = ("r2", "explained_variance", "relative_accuracy", "nrmse", "pearson", "ccc", "skill")


@given(columns(), st.integers(-100, 100))
def test_a_shift_of_both_changes_nothing(pair, shift):
    y, p = pair
    one, other = Moments.of(y, p), Moments.of(y + shift, p + shift)
    for name in (*IN_UNIT, *SHARES):
        assert value(name, one) == pytest.approx(value(name, other), abs=1e-8, nan_ok=True)


@given(columns(), st.floats(1e-3, 1e3))
def test_errors_scale_with_the_unit_and_shares_do_not(pair, factor):
    y, p = pair
    one, other = Moments.of(y, p), Moments.of(y * factor, p * factor)
    for name in IN_UNIT:
        assert value(name, one) * factor == pytest.approx(value(name, other), rel=1e-9, abs=1e-12)
    assert value("mse", one) * factor**2 == pytest.approx(value("mse", other), rel=1e-9)
    for name in SHARES:
        assert value(name, one) == pytest.approx(value(name, other), abs=1e-7, nan_ok=True)


@every_metric
@given(pair=columns(), weights=st.data())
@examples(20)
def test_values_stay_within_their_bounds(metric, pair, weights):
    y, p = pair
    w = weights.draw(st.lists(st.floats(0.01, 10), min_size=len(y), max_size=len(y)))
    found = float(metric(Moments.of(y, p, w, histogram=True)))
    low, high = metric.bounds
    assert math.isnan(found) or low - 1e-12 <= found <= high + 1e-12
    assert not math.isnan(found) or metric.undefined_when


@every_metric
@given(pair=columns())
@examples(15)
def test_a_batch_equals_its_summaries_one_by_one(metric, pair):
    y, p = pair
    groups = Groups(["a", "empty", "b"], np.arange(len(y)) % 2 * 2)
    how = {"histogram": True, "constants": {"mean": 1.0}}
    batch = Moments.of(y, p, groups=groups, **how)
    found = metric(batch)
    assert found.shape == (3,)
    assert math.isnan(found[1])
    for k in (0, 2):
        alone = Moments.of(y[groups.codes == k], p[groups.codes == k], **how)
        assert float(found[k]) == pytest.approx(float(metric(alone)), abs=1e-9, nan_ok=True)


@every_metric
def test_perfect_predictions_are_best(metric):
    y, p, _ = heavy(100)
    table, perfect = Moments.of(y, p, histogram=True), Moments.of(y, y, histogram=True)
    if metric.family != "baselines":
        assert metric.is_better(float(metric(perfect)), float(metric(table)))


def test_whole_weights_are_repeated_rows_for_every_metric():
    y, p, _ = heavy(200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    how = {"histogram": True, "constants": {"mean": 600.0}}
    weighted = Moments.of(y, p, times, **how)
    repeated = Moments.of(np.repeat(y, times), np.repeat(p, times), **how)
    for metric in METRICS:
        assert float(metric(weighted)) == pytest.approx(float(metric(repeated)), rel=1e-12)


# --- where there is nothing to measure -----------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9 + 0.1])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1_000])
def test_equal_targets_have_no_variance_to_explain(constant, n):
    p = np.random.default_rng(n).normal(constant, 1, n)
    table = Moments.of([constant] * n, p, constants={"mean": constant})
    for name in ("r2", "explained_variance", "relative_accuracy", "nrmse", "pearson", "skill"):
        assert math.isnan(value(name, table)), name
        assert find_metric(name, Moments).undefined_when
    assert value("baseline_rmse", table) == value("baseline_mae", table) == 0.0
    assert value("rmse", table) > 0.0


@pytest.mark.parametrize("seed", range(25))
def test_equal_predictions_have_no_correlation(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    y = rng.normal(1e3, 10.0 ** rng.integers(-2, 4), n)
    w = rng.gamma(1.0, 1.0, n) if seed % 2 else None
    table = Moments.of(y, np.full(n, rng.normal(1e3, 1)), w)
    assert math.isnan(value("pearson", table))
    assert value("ccc", table) == 0.0
    assert math.isfinite(value("r2", table))


def test_predictions_that_hardly_vary_have_one():
    rng = np.random.default_rng(5)
    y = rng.normal(0, 1, 500)
    p = 1e-4 * (y + rng.normal(0, 1, 500))
    assert of("pearson", y, p) == pytest.approx(scipy.stats.pearsonr(y, p).statistic, rel=1e-6)


def test_one_value_that_both_have_is_no_agreement():
    table = Moments.of([0.1] * 3, [0.1] * 3)
    assert math.isnan(value("ccc", table))
    assert value("rmse", table) == value("max_error", table) == 0.0


def test_percentiles_come_from_the_histogram():
    y, p, w = heavy()
    table = Moments.of(y, p, w, histogram=True)
    e = np.abs(p - y)
    for share in (0.01, 0.25, 0.5, 0.9, 0.99, 1.0):
        order = np.argsort(e)
        wanted = e[order][np.searchsorted(np.cumsum(w[order]), share * w.sum() * (1 - 1e-12))]
        assert float(find_error_percentile(table, share)) == pytest.approx(wanted, rel=0.0051)
    assert math.isnan(float(find_error_percentile(Moments.of(y, p), 0.5)))
    batch = Moments.of(y, p, groups=factorize_column(np.arange(2_000) % 3), histogram=True)
    assert np.asarray(find_error_percentile(batch, 0.5)).shape == (3,)
    merged = batch[0] + batch[1] + batch[2]
    whole = Moments.of(y, p, histogram=True)
    assert find_error_percentile(merged, 0.5) == find_error_percentile(whole, 0.5)
