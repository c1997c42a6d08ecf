"""Regression metrics without an interval, and why; settings that are refused."""

import math

import numpy as np
import pytest
from regression_cases import CHECKED, named, t_errors, table_of
from scipy import stats

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.regression import (
    NO_ERROR_NOTE,
    estimate_from_items,
    estimate_regression_metrics,
)
from ordinate.inference.regression_resampling import resample_poisson
from ordinate.metrics import list_metrics, metric
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import regression
from ordinate.summaries.regression import Moments

# --- where there is no interval ------------------------------------------------------------------


def test_the_median_has_limits_of_ranks():
    rng = np.random.default_rng(41)
    y = np.zeros(101)
    e = np.sort(rng.lognormal(0, 1, 101))
    found = estimate_regression_metrics(
        named("median_absolute_error"), Moments.of(y, e, histogram=True), ConfidenceIntervals()
    )["median_absolute_error"]
    assert found.method == "ranks"
    # P(40 < B < 61) for B ~ Bin(101, ½) is 95 per cent and a half.
    assert found.low == pytest.approx(e[40], rel=0.0051)
    assert found.high == pytest.approx(e[60], rel=0.0051)


def test_limits_of_a_median_know_how_much_the_weights_differ():
    rng = np.random.default_rng(42)
    e = rng.lognormal(0, 1, 400)
    even, uneven = (
        estimate_regression_metrics(
            named("median_absolute_error"),
            Moments.of(np.zeros(400), e, w, histogram=True),
            ConfidenceIntervals(),
        )["median_absolute_error"]
        for w in (np.full(400, 0.5), rng.gamma(0.1, 1.0, 400) + 1e-9)
    )
    assert uneven.width > 1.8 * even.width
    counts = rng.integers(1, 4, 400)
    weighted, repeated = (
        estimate_regression_metrics(named("median_absolute_error"), table, ConfidenceIntervals())[
            "median_absolute_error"
        ]
        for table in (
            Moments.of(np.zeros(400), e, counts, histogram=True),
            Moments.of(np.zeros(counts.sum()), np.repeat(e, counts), histogram=True),
        )
    )
    assert (weighted.low, weighted.high) == (repeated.low, repeated.high)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_items_say_nothing_of_a_median(n):
    table = Moments.of(np.zeros(n), np.arange(n) + 1.0, histogram=True)
    found = estimate_regression_metrics(
        named("median_absolute_error"), table, ConfidenceIntervals()
    )
    assert found["median_absolute_error"].note == "there are too few items"
    assert math.isnan(found["median_absolute_error"].low)


def test_one_item_has_no_interval():
    found = estimate_regression_metrics(
        list_metrics(Moments), table_of([1.0], [2.0], histogram=True), ConfidenceIntervals()
    )
    assert all(math.isnan(one.low) and one.method is None and one.note for one in found.values())
    twice = estimate_regression_metrics(
        named("rmse"), table_of([1.0], [2.0], [2]), ConfidenceIntervals()
    )["rmse"]
    assert twice.note == NO_ERROR_NOTE


def test_one_group_has_no_interval():
    batch = table_of([1.0, 2.0, 3.0], [2.0, 2.0, 5.0], groups=Groups(["a"], np.zeros(3, int)))
    found = estimate_regression_metrics(named("rmse", "mae"), batch, ConfidenceIntervals())
    assert {one.note for one in found.values()} == {"there is one cluster only"}


@pytest.mark.parametrize("resampled", [False, True])
def test_perfect_predictions_have_no_interval_and_no_warning(resampled):
    y = np.linspace(0.1, 7.7, 30)
    table, how = table_of(y, y, histogram=True), ConfidenceIntervals(resamples=200)
    found = (
        estimate_from_items(list_metrics(Moments), table, y, y, how)
        if resampled
        else estimate_regression_metrics(list_metrics(Moments), table, how)
    )
    assert found["rmse"].value == found["mae"].value == found["bias"].value == 0.0
    assert found["r2"].value == found["pearson"].value == found["ccc"].value == 1.0
    assert all(math.isnan(found[name].low) and found[name].note for name in CHECKED)


@pytest.mark.parametrize("factor", [2.0, -1.0, 0.1, 1e6])
def test_a_perfect_correlation_is_no_division_by_zero(factor):
    y = np.random.default_rng(1).normal(5, 1, 40)
    found = estimate_regression_metrics(
        named("pearson"), Moments.of(y, y * factor + 3), ConfidenceIntervals()
    )["pearson"]
    assert found.value == pytest.approx(math.copysign(1.0, factor))
    assert math.isnan(found.low) or found.width < 1e-5


def test_errors_that_are_all_the_same_have_no_interval():
    y = np.arange(20.0)
    found = estimate_regression_metrics(
        named("bias", "mae", "rmse"), Moments.of(y, y + 0.5), ConfidenceIntervals()
    )
    assert all(math.isnan(one.low) and one.note for one in found.values())


def test_moments_of_order_two_are_no_base_for_what_needs_four():
    y, p = t_errors(100, np.random.default_rng(1))
    found, full = (
        estimate_regression_metrics(named(*CHECKED), table_of(y, p, order=k), ConfidenceIntervals())
        for k in (2, 4)
    )
    for name in CHECKED:
        assert found[name].value == pytest.approx(full[name].value, rel=1e-12)
        if name in {"mae", "bias"}:
            assert found[name].low == pytest.approx(full[name].low, rel=1e-9)
        else:
            assert "moments of order 4" in found[name].note
            assert math.isnan(found[name].low)


def test_baselines_and_what_bends_have_no_interval():
    y, p = t_errors(100, np.random.default_rng(1))
    found = estimate_regression_metrics(
        named("baseline_rmse", "max_error"), table_of(y, p), ConfidenceIntervals()
    )
    assert found["baseline_rmse"].note == "it is a baseline"
    assert found["max_error"].note == "no method covers it"


@pytest.mark.parametrize("method", ["bca", "percentile", "wilson", "dirichlet"])
def test_a_method_that_does_not_fit_is_refused(method):
    table = table_of([1.0, 2.0, 4.0], [2.0, 2.0, 5.0])
    with pytest.raises(BadOption, match="does not fit regression"):
        estimate_regression_metrics(named("rmse"), table, ConfidenceIntervals(method=method))
    with pytest.raises(BadOption, match="stratified"):
        estimate_regression_metrics(named("rmse"), table, ConfidenceIntervals(stratified=True))
    estimate_regression_metrics(named("rmse"), table, ConfidenceIntervals(method="delta"))


@pytest.mark.parametrize("count", [12, 29, 30, 100])
def test_clusters_get_students_t_however_many(count):
    y, p = t_errors(600, np.random.default_rng(1))
    batch = Moments.of(y, p, groups=factorize_column(np.arange(600) % count))
    student, normal = (
        estimate_regression_metrics(named("bias"), batch, ConfidenceIntervals(method=x))["bias"]
        for x in ("t", "delta")
    )
    assert (student.method, normal.method) == ("t", "delta")
    ratio = stats.t.ppf(0.975, count - 1) / stats.norm.ppf(0.975)
    assert student.width / normal.width == pytest.approx(ratio, rel=1e-7)


def test_chunks_of_draws_are_like_other_chunks():
    y, p = t_errors(300, np.random.default_rng(1))
    how = ConfidenceIntervals(resamples=4_000)
    usual = resample_poisson(y, p, how)
    other = resample_poisson(y, p, how, chunk_size=17)
    assert other.squares.mean() == pytest.approx(usual.squares.mean(), rel=0.01)
    assert other.squares.std() == pytest.approx(usual.squares.std(), rel=0.1)
    assert regression.HIGHEST_ORDER == 4


def test_a_metric_of_sizes_of_errors_has_no_interval_that_nobody_knows():
    @metric(direction="minimize")
    def share_of_sigma(table: Moments):
        return table.absolute / table.total / np.sqrt(table.plain.mean(2, 0))

    @metric(direction="minimize")
    def squared_share(table: Moments):
        return table.squares / table.total / table.plain.mean(2, 0)

    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    table = Moments.of(y, y + rng.standard_t(5, 200))
    found = estimate_regression_metrics(
        [share_of_sigma, squared_share], table, ConfidenceIntervals()
    )
    assert found["share_of_sigma"].note == "no method covers it"
    assert found["squared_share"].low < found["squared_share"].value < found["squared_share"].high


@pytest.mark.parametrize("n", [2, 5, 29])
def test_the_bias_of_few_items_has_the_limits_of_students_mean(n):
    y, p = t_errors(n, np.random.default_rng(n))
    found = estimate_regression_metrics(
        named("bias"), table_of(y, p), ConfidenceIntervals(level=0.9)
    )["bias"]
    low, high = stats.t.interval(0.9, n - 1, np.mean(p - y), stats.sem(p - y))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
    assert found.method == "t"


def test_many_items_get_students_t():
    y, p = t_errors(30, np.random.default_rng(0))
    found, normal = (
        estimate_regression_metrics(named("bias"), table_of(y, p), ConfidenceIntervals(method=x))
        for x in (None, "delta")
    )
    assert (found["bias"].method, normal["bias"].method) == ("t", "delta")
    assert found["bias"].width / normal["bias"].width == pytest.approx(2.0452296 / 1.9599640)


def test_a_whole_weight_is_so_many_items():
    y, p = t_errors(20, np.random.default_rng(0))
    twice, repeated = Moments.of(y, p, np.full(20, 2)), Moments.of(np.tile(y, 2), np.tile(p, 2))
    found, wanted = (
        estimate_regression_metrics(named("mae"), x, ConfidenceIntervals())["mae"]
        for x in (twice, repeated)
    )
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-12)


@pytest.mark.parametrize("n", [3, 8])
def test_limits_of_few_items_hold_the_mean_error_as_often_as_they_promise(n):
    """The normal ones did in 81 % at three items; the bound is four Monte-Carlo errors below."""
    rng, held, times = np.random.default_rng(0), 0, 600
    for _ in range(times):
        errors = rng.normal(size=n)
        found = estimate_regression_metrics(
            named("mae"), table_of(np.zeros(n), errors), ConfidenceIntervals()
        )["mae"]
        held += found.low <= math.sqrt(2.0 / math.pi) <= found.high
    assert held / times > 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / times)
