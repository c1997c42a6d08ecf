"""Scores of intervals and ensembles are those of their definitions, and of a peer."""

import math

import numpy as np
import pytest
import scoringrules as sr
from hypothesis import given
from hypothesis import strategies as st

from ordinate.errors import BadOption
from ordinate.metrics import find_metric
from ordinate.metrics.prediction_intervals import (
    central_coverage,
    compute_pit_histogram,
    crps,
    interval_coverage,
    mean_interval_width,
    standard_error,
    weigh_central_ranks,
    weighted_interval_score,
    winkler,
)
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import PredictionIntervals

OF_BOUNDS = [
    "interval_coverage",
    "mean_interval_width",
    "winkler",
    "winkler(alpha=0.3)",
    "weighted_interval_score(alpha=0.2)",
]
OF_ENSEMBLES = ["crps", "crps(estimator='nrg')", "spread", "rmse", "bias", "dispersion"]


def intervals(seed, n=400):
    """Intervals that are too narrow, of unequal widths, with predictions."""
    rng = np.random.default_rng(seed)
    y, middle, half = rng.normal(size=n), 0.5 * rng.normal(size=n), rng.gamma(2, 0.5, n)
    return y, middle - half, middle + half, middle


def ensembles(seed, n=300, size=9):
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(size=n), rng.gamma(3, 0.3, n)
    y = centre + scale * rng.normal(size=n)
    return y, 0.2 + centre[:, None] + 0.8 * scale[:, None] * rng.normal(size=(n, size))


def naive_winkler(y, lower, upper, alpha):
    score = upper - lower
    if y < lower:
        score += 2 / alpha * (lower - y)
    if y > upper:
        score += 2 / alpha * (y - upper)
    return score


# --- by definition -------------------------------------------------------------------------------

NUMBERS = st.floats(-100, 100)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8)


@given(ROWS, st.sampled_from([0.05, 0.1, 0.5]))
def test_scores_of_intervals_are_those_of_the_definition(rows, alpha):
    y, first, second, middle = np.array(rows).T
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    naive = [naive_winkler(*row, alpha) for row in zip(y, lower, upper, strict=True)]
    table = PredictionIntervals.of(y, lower, upper)
    assert winkler.with_options(alpha=alpha)(table) == pytest.approx(np.mean(naive))
    score = weighted_interval_score.with_options(alpha=alpha)
    assert score(table) == pytest.approx(alpha / 2 * np.mean(naive))
    pointed = PredictionIntervals.of(y, lower, upper, predicted=middle)
    both = (np.abs(y - middle) / 2 + alpha / 2 * np.array(naive)) / 1.5
    assert score(pointed) == pytest.approx(both.mean())
    assert winkler.with_options(alpha=alpha)(pointed) == pytest.approx(np.mean(naive))


def test_coverage_and_width_are_means():
    table = PredictionIntervals.of([0.0, 1.0, 2.0, 5.0], [0.0, 0.0, 3.0, 1.0], [1.0, 1.0, 4.0, 2.0])
    assert interval_coverage(table) == 0.5
    assert mean_interval_width(table) == 1.0
    assert interval_coverage(PredictionIntervals.of([0, 9], [0, 0], [1, 1], [3, 1])) == 0.75


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.4])
def test_winkler_is_the_interval_score_of_a_peer(alpha):
    y, lower, upper, _ = intervals(1)
    peer = sr.interval_score(y, lower, upper, alpha).mean()
    assert winkler.with_options(alpha=alpha)(
        PredictionIntervals.of(y, lower, upper)
    ) == pytest.approx(peer)


@pytest.mark.parametrize("size", [2, 3, 10, 51])
@pytest.mark.parametrize(
    ("mine", "peers"), [("fair", ["fair", "pwm"]), ("nrg", ["nrg", "qd", "int"])]
)
def test_crps_is_that_of_a_peer(size, mine, peers):
    y, x = ensembles(2, 50, size)
    found = crps.with_options(estimator=mine)(EnsemblePredictions.of(y, x))
    for peer in peers:
        assert found == pytest.approx(sr.crps_ensemble(y, x, estimator=peer).mean(), rel=1e-10)


def test_crps_of_equal_members_and_targets_is_that_of_a_peer():
    rng = np.random.default_rng(3)
    y, x = rng.integers(0, 4, 60).astype(float), rng.integers(0, 4, (60, 6)).astype(float)
    for estimator in ("fair", "nrg"):
        peer = sr.crps_ensemble(y, x, estimator=estimator).mean()
        assert crps.with_options(estimator=estimator)(
            EnsemblePredictions.of(y, x)
        ) == pytest.approx(peer)


@given(
    st.lists(st.tuples(NUMBERS, st.lists(NUMBERS, min_size=3, max_size=3)), min_size=1, max_size=5)
)
def test_no_crps_is_negative(items):
    table = EnsemblePredictions.of([y for y, _ in items], [x for _, x in items])
    assert crps(table) >= -1e-9
    assert crps.with_options(estimator="nrg")(table) >= crps(table) - 1e-9


def test_the_spread_matches_the_error_of_members_that_are_drawn_like_the_target():
    rng = np.random.default_rng(4)
    for size in (2, 5, 30):
        centre = rng.normal(size=(20_000, 1))
        y, *x = (centre + rng.normal(size=(20_000, size + 1))).T
        assert find_metric("dispersion", EnsemblePredictions)(
            EnsemblePredictions.of(y, np.array(x).T)
        ) == pytest.approx(0, abs=0.03)


# --- ranks ---------------------------------------------------------------------------------------


def test_the_histogram_is_that_of_middles_where_bins_divide_the_ranks():
    y, x = ensembles(5, size=19)
    table = EnsemblePredictions.of(y, x)
    middle = ((x < y[:, None]).sum(axis=1) + 0.5) / 20
    for bins in (1, 2, 5, 10, 20):
        found, _ = np.histogram(middle, bins, (0, 1))
        np.testing.assert_allclose(
            compute_pit_histogram(table, bins=bins), found / len(y), atol=1e-12
        )


@pytest.mark.parametrize("bins", [3, 7, 10, 64])
def test_ranks_that_are_all_as_frequent_are_flat_for_any_bins(bins):
    members = np.tile(np.arange(1.0, 7.0), (7, 1))
    table = EnsemblePredictions.of(np.arange(7) + 0.5, members)
    np.testing.assert_allclose(compute_pit_histogram(table, bins=bins), 1 / bins)
    for level in (0.1, 0.33, 0.5, 5 / 7):
        assert central_coverage.with_options(level=level)(table) == pytest.approx(level)


def test_a_target_that_equals_all_members_has_any_rank():
    np.testing.assert_allclose(
        compute_pit_histogram(EnsemblePredictions.of([2.0], [[2.0, 2.0, 2.0]]), bins=4), 0.25
    )


def test_central_coverage_is_how_often_the_order_statistics_hold_the_target():
    y, x = ensembles(6, size=19)
    ordered = np.sort(x, axis=1)
    for left_out in (1, 3, 7):
        lower, upper = ordered[:, left_out - 1], ordered[:, -left_out]
        level = 1 - left_out / 10
        held = ((lower <= y) & (y <= upper)).mean()
        found = central_coverage.with_options(level=level)(EnsemblePredictions.of(y, x))
        assert found == pytest.approx(held)


def test_a_level_beyond_the_members_is_undefined():
    y, x = ensembles(7, size=18)
    assert math.isnan(central_coverage(EnsemblePredictions.of(y, x)))  # 0.9 needs 19 members
    assert not math.isnan(
        central_coverage.with_options(level=17 / 19)(EnsemblePredictions.of(y, x))
    )


def test_batches_give_what_each_summary_gives():
    y, lower, upper, middle = intervals(8, 60)
    names = np.arange(60) % 3
    batch = PredictionIntervals.of(y, lower, upper, groups=names, predicted=middle)
    for expression in OF_BOUNDS:
        metric = find_metric(expression, PredictionIntervals)
        assert metric(batch).tolist() == [metric(batch[k]) for k in range(3)]
    y, x = ensembles(8, 60, 19)
    batch = EnsemblePredictions.of(y, x, groups=names)
    for expression in [*OF_ENSEMBLES, "central_coverage"]:
        metric = find_metric(expression, EnsemblePredictions)
        np.testing.assert_allclose(metric(batch), [metric(batch[k]) for k in range(3)])
    assert compute_pit_histogram(batch, bins=4).shape == (3, 4)


# --- what is not defined -------------------------------------------------------------------------


def test_an_interval_without_an_end_makes_width_and_scores_infinite():
    table = PredictionIntervals.of([1, 2], [0, 0], [2, np.inf])
    assert interval_coverage(table) == 1
    for metric in (mean_interval_width, winkler, weighted_interval_score):
        assert metric(table) == math.inf


def test_one_member_has_no_spread_and_the_crps_of_the_member_is_its_error():
    table = EnsemblePredictions.of([1.0, 2.0], [[3.0], [2.5]])
    assert crps.with_options(estimator="nrg")(table) == 1.25
    for name in ("crps", "spread", "dispersion", "central_coverage"):
        assert math.isnan(find_metric(name, EnsemblePredictions)(table))
        assert find_metric(name, EnsemblePredictions).undefined_when


def test_options_are_checked():
    table, members = PredictionIntervals.of([1], [0], [1]), EnsemblePredictions.of([1], [[1, 2]])
    for metric in (winkler, weighted_interval_score):
        with pytest.raises(BadOption, match=r"alpha=0\.0 is not a number between 0 and 1"):
            metric.with_options(alpha=0.0)(table)
    with pytest.raises(BadOption, match=r"level=1\.0 is not a number between 0 and 1"):
        central_coverage.with_options(level=1.0)(members)
    with pytest.raises(BadOption, match="is not one of 'fair', 'nrg'"):
        crps.with_options(estimator="qd")
    with pytest.raises(BadOption, match="bins=0 is not an integer"):
        compute_pit_histogram(members, bins=0)


# --- standard errors -----------------------------------------------------------------------------


def bootstrapped(metric, make, columns, weights, resamples=600):
    """The deviation of a metric over samples of items, drawn with replacement."""
    rng = np.random.default_rng(9)
    n, values = len(weights), []
    for _ in range(resamples):
        rows = rng.integers(0, n, n)
        values.append(float(metric(make(*(column[rows] for column in columns), weights[rows]))))
    return np.std(values, ddof=1)


def pointed(y, lower, upper, middle, weights):
    return PredictionIntervals.of(y, lower, upper, weights, predicted=middle)


@pytest.mark.parametrize("expression", OF_BOUNDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_intervals_are_those_of_a_bootstrap(expression, weighted):
    columns = intervals(10, 300)
    weights = np.random.default_rng(11).gamma(1, 1, 300) + 0.01 if weighted else np.ones(300)
    metric = find_metric(expression, PredictionIntervals)
    expected = bootstrapped(metric, pointed, columns, weights)
    assert standard_error(metric, pointed(*columns, weights)) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("expression", OF_ENSEMBLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_ensembles_are_those_of_a_bootstrap(expression, weighted):
    columns = ensembles(12, 300, 6)
    weights = np.random.default_rng(13).gamma(1, 1, 300) + 0.01 if weighted else np.ones(300)
    metric = find_metric(expression, EnsemblePredictions)
    expected = bootstrapped(metric, EnsemblePredictions.of, columns, weights)
    found = standard_error(metric, EnsemblePredictions.of(*columns, weights))
    assert found == pytest.approx(expected, rel=0.12)


def test_the_error_of_a_mean_of_items_is_exact():
    y, lower, upper, _ = intervals(14)
    scores = sr.interval_score(y, lower, upper, 0.1)
    exact = scores.std(ddof=1) / math.sqrt(len(y))
    assert standard_error(winkler, PredictionIntervals.of(y, lower, upper)) == pytest.approx(
        exact, rel=1e-8
    )
    y, x = ensembles(14)
    exact = sr.crps_ensemble(y, x, estimator="fair").std(ddof=1) / math.sqrt(len(y))
    assert standard_error(crps, EnsemblePredictions.of(y, x)) == pytest.approx(exact, rel=1e-8)


def test_errors_of_whole_weights_are_those_of_repeated_rows():
    y, lower, upper, _ = intervals(15, 50)
    weights = np.arange(50) % 3 + 1
    repeated = np.repeat(np.arange(50), weights)
    table, other = (
        PredictionIntervals.of(y, lower, upper, weights),
        PredictionIntervals.of(y[repeated], lower[repeated], upper[repeated]),
    )
    assert standard_error(winkler, table) == pytest.approx(standard_error(winkler, other))


def test_the_error_does_not_depend_on_the_unit_of_weights():
    columns = intervals(16, 50)
    weights = np.random.default_rng(17).uniform(0.1, 1, 50)
    errors = [standard_error(winkler, pointed(*columns, weights * unit)) for unit in (1, 1e-3)]
    assert errors[0] == pytest.approx(errors[1])


def test_shifted_by_a_billion_errors_stay():
    y, lower, upper, _ = intervals(18)
    far = [column + 1e9 for column in (y, lower, upper)]
    near = [column - 1e9 for column in far]
    assert standard_error(winkler, PredictionIntervals.of(*far)) == pytest.approx(
        standard_error(winkler, PredictionIntervals.of(*near)), rel=1e-6
    )


def test_items_that_are_alike_have_no_error_and_one_item_has_none():
    alike = PredictionIntervals.of([1, 2, 3], [0.1, 1.1, 2.1], [1.2, 2.2, 3.2])
    assert standard_error(mean_interval_width, alike) == 0
    assert math.isnan(standard_error(winkler, PredictionIntervals.of([1], [0], [1])))


def test_ranks_within_a_level_are_counted_in_part():
    assert weigh_central_ranks(4, 0.5).tolist() == [0.0, 0.75, 1.0, 0.75, 0.0]
