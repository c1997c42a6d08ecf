"""Weighted items: the sum of weights is no number of items, unless each weight is a count."""

import math

import numpy as np
import pytest
from oracles import TEN, confusion, disagreements, item_bootstrap, labels, sample, spelled
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.proportion import proportion_confint
from strategies import METRICS, scale_of

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.delta_method import compute_influence, variance_from_influence
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

N, SIZE, COUNT = 800, 4, 4000


STUCK = "every resample gives the same value"


def weighted_sample(seed, sigma=1.2, n=N, noise=1.0):
    """Items with lognormal weights of mean 1, and their table."""
    rng = np.random.default_rng(seed)
    gold, predicted = spelled(confusion(sample(SIZE, n, seed, noise=noise)))
    weights = rng.lognormal(-(sigma**2) / 2, sigma, n)
    table = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(SIZE), weights)
    return gold, predicted, weights, table


def naive_values(name, gold, predicted, weights, table, seed=7):
    cells = item_bootstrap(SIZE, gold, predicted, count=COUNT, seed=seed, weights=weights)
    return np.asarray(find_metric(name)(table.with_cells(cells)))


def quantile_error(values, tail):
    """The Monte-Carlo standard error of a quantile, from the values around it."""
    spread = math.sqrt(tail * (1 - tail) / len(values))
    inner, outer = np.quantile(values, [max(0.0, tail - spread), min(1.0, tail + spread)])
    return (outer - inner) / 2


SMOOTH = ["accuracy", "mae", "quadratic_kappa", "macro_accuracy", "cem_ord", "kendall_tau_b"]


ROUGH = ["purity", "min_sensitivity", "max_mae", "oci"]


WORSTS = ["min_sensitivity", "max_mae"]


def weighted_method(metric):
    """Limits by level need squares of weights only; for others, the derivative or resamples."""
    by_level = {"mean": "mover", "worst": "simultaneous", "other": "percentile"}
    if metric.macro:
        return by_level[metric.macro]
    return "delta" if metric.smooth else "percentile"


@pytest.mark.parametrize("name", [name for name in (*SMOOTH, *ROUGH) if name not in WORSTS])
@pytest.mark.parametrize("seed", [1, 2])
def test_default_intervals_of_weights_are_as_wide_as_those_of_drawing_items(name, seed):
    """Widths within 10 %.

    A width from 4,000 resamples has a Monte-Carlo error of about 1.5 %, 2 % for two of them, so
    that 4 errors take 8 %. The rest is for what is of smaller order: the delta method's curvature,
    and gamma variables in place of Poisson counts. A wrong N is wrong by a factor of 2 here.
    """
    gold, predicted, weights, table = weighted_sample(seed)
    values = naive_values(name, gold, predicted, weights, table)
    low, high = np.quantile(values, [0.025, 0.975])
    found = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(resamples=COUNT))[name]
    assert found.method == weighted_method(find_metric(name))
    assert found.note == "fractional weights"
    assert found.width == pytest.approx(high - low, rel=0.10)


@pytest.mark.parametrize("name", WORSTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_worst_level_of_weights_has_limits_that_hold_for_all_levels(name, seed):
    """Level by level over the items: wider than resamples, which take the worst one for known."""
    gold, predicted, weights, table = weighted_sample(seed)
    z = stats.norm.ppf((1 + 0.95 ** (1 / SIZE)) / 2)
    ends = []
    for level in range(SIZE):
        own = weights[gold == level]
        wrong = np.abs(gold - predicted)[gold == level].astype(float)
        far = 1.0 if name == "min_sensitivity" else float(max(level, SIZE - 1 - level))
        score = (wrong == 0).astype(float) if name == "min_sensitivity" else wrong
        mean = (own * score).sum() / own.sum()
        if name == "min_sensitivity":
            n = own.sum() ** 2 / (own**2).sum()
            ends.append(
                proportion_confint(mean * n, n, alpha=2 * stats.norm.sf(z), method="wilson")
            )
            continue
        share = mean / far
        error = math.sqrt(((own * (score - mean)) ** 2).sum()) / own.sum() / far
        half = z * error / (share * (1 - share))
        ends.append([far * expit(logit(share) + side * half) for side in (-1, 1)])
    worst = min if name == "min_sensitivity" else max
    expected = [worst(low for low, _ in ends), worst(high for _, high in ends)]
    found = estimate_metrics([find_metric(name)], table)[name]
    assert (found.method, found.note) == ("simultaneous", "fractional weights")
    assert [found.low, found.high] == pytest.approx(expected, rel=1e-9)
    low, high = np.quantile(naive_values(name, gold, predicted, weights, table), [0.025, 0.975])
    assert found.width > high - low


@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
def test_draws_of_weighted_cells_have_the_quantiles_of_drawing_items(name):
    """Limits within 4 Monte-Carlo errors, and 5 % of the width for the gamma variables."""
    gold, predicted, weights, table = weighted_sample(3)
    values = naive_values(name, gold, predicted, weights, table)
    found = estimate_metrics(
        [find_metric(name)], table, ConfidenceIntervals(method="percentile", resamples=COUNT)
    )[name]
    width = np.subtract(*np.quantile(values, [0.975, 0.025]))
    for end, tail in ((found.low, 0.025), (found.high, 0.975)):
        allowed = 4 * math.sqrt(2) * quantile_error(values, tail) + 0.05 * width
        assert abs(end - np.quantile(values, tail)) <= allowed


@pytest.mark.parametrize("name", ["accuracy", "mae", "quadratic_kappa", "purity"])
def test_a_multinomial_on_the_sum_of_weights_would_be_much_too_narrow(name):
    """With sigma 1.5, the root of the weights' mean square over their mean is about 2.5.

    That is how much wider the interval of a weighted mean gets. Weights of mean 1 give the wrong
    sampler its best chance: their sum is the number of items.
    """
    gold, predicted, weights, table = weighted_sample(4, sigma=1.5)
    values = naive_values(name, gold, predicted, weights, table)
    rng = np.random.default_rng(0)
    shares = table.weights.reshape(-1) / table.total
    cells = rng.multinomial(round(table.total), shares, COUNT).reshape(COUNT, *table.weights.shape)
    wrong = np.asarray(find_metric(name)(table.with_cells(cells.astype(float))))
    widths = [np.subtract(*np.quantile(found, [0.975, 0.025])) for found in (values, wrong)]
    effect = math.sqrt((weights**2).mean() / weights.mean() ** 2)
    assert effect > 2.2
    factor = 1.6 if name == "purity" else 2.0  # ties between levels blunt it
    assert widths[0] > factor * widths[1]
    ours = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(resamples=COUNT))[
        name
    ].width
    assert ours > factor * widths[1]
    assert ours == pytest.approx(widths[0], rel=0.15)


# --- the variance of weights ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_variance_of_a_weighted_mean_is_that_of_its_linearised_items(seed):
    gold, predicted, weights, table = weighted_sample(seed, n=60)
    gaps = np.abs(gold - predicted)
    mean = (weights * gaps).sum() / weights.sum()
    expected = ((weights * (gaps - mean)) ** 2).sum() / weights.sum() ** 2
    assert variance_from_influence(
        table, compute_influence(find_metric("mae"), table)
    ) == pytest.approx(expected, rel=1e-7)


def test_the_stratified_variance_of_a_weighted_mean_centres_within_gold_levels():
    gold, predicted, weights, table = weighted_sample(5, n=90)
    gaps = np.abs(gold - predicted).astype(float)
    expected = 0.0
    for level in np.unique(gold):
        own, part = weights[gold == level], gaps[gold == level]
        expected += ((own * (part - (own * part).sum() / own.sum())) ** 2).sum()
    expected /= weights.sum() ** 2
    found = variance_from_influence(
        table, compute_influence(find_metric("mae"), table), stratified=True
    )
    assert found == pytest.approx(expected, rel=1e-7)


def test_the_weighted_interval_of_the_mean_error_is_the_naive_one():
    gold, predicted, weights, table = weighted_sample(6, n=120)
    gaps = np.abs(gold - predicted)
    mean = (weights * gaps).sum() / weights.sum()
    error = math.sqrt(((weights * (gaps - mean)) ** 2).sum()) / weights.sum()
    factor = math.exp(stats.norm.ppf(0.95) * error / mean)
    found = estimate_metrics([find_metric("mae")], table, ConfidenceIntervals(level=0.9))["mae"]
    assert found.value == pytest.approx(mean)
    assert (found.low, found.high) == pytest.approx((mean / factor, mean * factor), rel=1e-7)


# --- what is drawn -------------------------------------------------------------------------------


def test_weighted_cells_have_the_mean_and_variance_of_a_poisson_bootstrap():
    """Per cell: mean = the sum of weights, variance = the sum of their squares."""
    gold, predicted, weights, table = weighted_sample(8, n=100)
    count = 40_000
    cells = make_resampler(table)(np.random.default_rng(1), count)
    sums, squares = np.zeros((SIZE, SIZE + 1)), np.zeros((SIZE, SIZE + 1))
    np.add.at(sums, (gold, predicted), weights)
    np.add.at(squares, (gold, predicted), weights**2)
    error = np.sqrt(squares / count)
    assert (np.abs(cells.mean(axis=0) - sums) <= 4.5 * error).all()
    assert cells.var(axis=0) == pytest.approx(squares, rel=0.15)
    assert not cells[:, sums == 0].any()
    assert (cells >= 0).all()


def test_stratified_draws_of_weights_keep_the_weight_of_each_gold_level():
    table = weighted_sample(9)[3]
    cells = make_resampler(table, stratified=True)(np.random.default_rng(0), 200)
    expected = np.broadcast_to(table.gold, (200, SIZE))
    assert cells.sum(axis=-1) == pytest.approx(expected, rel=1e-12)


# --- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, "percentile"])
@pytest.mark.parametrize("factor", [1e-6, 0.37, 1234.5, 1e17])
def test_the_unit_of_weights_does_not_matter(method, factor):
    """Above 2^53 every float is whole, and still no weight is a count."""
    gold, predicted, weights, table = weighted_sample(10, n=150)
    other = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(SIZE), weights * factor)
    metrics = [m for m in METRICS if not m.needs_integer_counts and (m.smooth or method is None)]
    how = ConfidenceIntervals(method=method, resamples=200)
    first, second = estimate_metrics(metrics, table, how), estimate_metrics(metrics, other, how)
    for name, result in first.items():
        expected = [second[name].low, second[name].high]
        assert [result.low, result.high] == pytest.approx(expected, rel=1e-6, abs=1e-9), name
        assert result.method == second[name].method


def test_weights_of_one_are_no_weights():
    gold, predicted, _, _ = weighted_sample(11, n=150)
    plain = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(SIZE))
    ones = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(SIZE), np.ones(150))
    assert estimate_metrics(METRICS, plain, ConfidenceIntervals(resamples=200)) == estimate_metrics(
        METRICS, ones, ConfidenceIntervals(resamples=200)
    )


@pytest.mark.parametrize("weight", [0.25, 0.5, 0.7, 1.5])
@pytest.mark.parametrize("counts", [[[8, 4], [4, 12]], [[7, 4], [5, 12]]])
def test_equal_weights_say_nothing_of_the_number_of_items(weight, counts):
    """28 items are 28 items, whether the sums of their weights happen to be whole or not."""
    gold, predicted = spelled(confusion(counts))
    plain = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(2))
    equal = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(2), [weight] * len(gold))
    for name in ("mae", "accuracy", "quadratic_kappa", "macro_mae", "cem_ord"):
        expected, found = (
            estimate_metrics([find_metric(name)], table, ConfidenceIntervals(method="delta"))[name]
            for table in (plain, equal)
        )
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6)
        usual = estimate_metrics([find_metric(name)], equal)[name]
        assert usual.method == weighted_method(find_metric(name))
        assert usual.note == "fractional weights"
        if usual.method == "delta":
            assert (usual.low, usual.high) == (found.low, found.high)
        else:
            expected = estimate_metrics([find_metric(name)], plain)[name]
            assert usual.method == expected.method == "mover"
            ends = expected.low, expected.high
            assert (usual.low, usual.high) == pytest.approx(ends, rel=1e-9)


def test_an_item_of_hardly_any_weight_hardly_matters():
    gold, predicted, weights, table = weighted_sample(12, n=150)
    more = ConfusionMatrix.of(
        labels([*gold, 0]), labels([*predicted, 3]), scale_of(SIZE), [*weights, 1e-9]
    )
    for name in ("mae", "accuracy", "quadratic_kappa"):
        first, second = (estimate_metrics([find_metric(name)], t)[name] for t in (table, more))
        assert (second.low, second.high) == pytest.approx((first.low, first.high), rel=1e-5)


@pytest.mark.parametrize(
    "metric", [m for m in list_metrics() if not m.required], ids=lambda m: m.name
)
def test_every_metric_of_weights_has_limits_within_bounds_or_a_reason(metric):
    table = weighted_sample(13, n=40)[3]
    found = estimate_metrics([metric], table, ConfidenceIntervals(resamples=300))[metric.name]
    if metric.needs_integer_counts:
        assert found.method is None
        assert "no integer counts" in found.note
        assert math.isnan(found.value)
        return
    usual = weighted_method(metric)
    rare = "; fewer than 10 items of L0, L1" if metric.macro == "other" else ""
    assert (found.method, found.note) == (usual, f"fractional weights{rare}")
    assert found.width > 0.01
    if usual in {"delta", "percentile"}:
        plain = estimate_metrics([metric], table, ConfidenceIntervals(method=usual, resamples=300))[
            metric.name
        ]
        assert (found.low, found.high) == (plain.low, plain.high)
    else:
        assert found.low <= found.value <= found.high
    low, high = metric.bounds
    assert low - 1e-12 <= found.low <= found.high <= high + 1e-12


def test_a_worst_level_that_no_draw_moves_has_limits_all_the_same():
    """Nobody is right about the rarest level, in whatever draw: level by level, it could be."""
    table = weighted_sample(13, n=40)[3]
    metric = find_metric("min_sensitivity")
    drawn = estimate_metrics(
        [metric], table, ConfidenceIntervals(method="percentile", resamples=300)
    )[metric.name]
    assert (drawn.low, drawn.high) == (0, 0)
    found = estimate_metrics([metric], table, ConfidenceIntervals(resamples=300))[metric.name]
    assert (found.method, found.low) == ("simultaneous", 0)
    assert found.high > 0.1


def test_weights_that_no_derivative_moves_have_a_posterior_and_say_so():
    gold = [0, 1, 2] * 12
    weights = np.linspace(0.5, 1.7, 36)
    table = ConfusionMatrix.of(labels(gold), labels(gold), scale_of(3), weights)
    found = estimate_metrics(
        [find_metric("mae"), find_metric("purity")], table, ConfidenceIntervals(resamples=300)
    )
    assert {one.method for one in found.values()} == {"dirichlet"}
    assert found["mae"].note == "it has no standard error here"
    assert found["purity"].note == STUCK
    assert all(one.width > 0.01 for one in found.values())


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("bca", "the weights are no counts"),
        ("wilson", "the items are no plain counts"),
        ("dirichlet", "the items are no plain counts"),
        ("jeffreys", "the items are no plain counts"),
        ("t", "there are no clusters"),
    ],
)
def test_methods_for_counts_are_refused_for_weights(method, reason):
    table = weighted_sample(14, n=40)[3]
    name = {"mover": "macro_accuracy", "simultaneous": "max_mae"}.get(method, "accuracy")
    with pytest.raises(BadOption, match=rf"{method}' does not fit {name}: {reason}"):
        estimate_metrics([find_metric(name)], table, ConfidenceIntervals(method=method))


def test_fractional_counts_have_no_interval_because_nobody_knows_the_items():
    table = ConfusionMatrix.from_counts([[3.5, 1, 0], [0, 2.5, 1], [0, 1, 4]], scale_of(3))
    for method in (None, "percentile", "delta"):
        for name in TEN:
            found = estimate_metrics(
                [find_metric(name)], table, ConfidenceIntervals(method=method)
            )[name]
            assert found.method is None
            assert found.note == "the number of items behind these weights is unknown"
            assert math.isnan(found.low)
            assert math.isnan(found.high)
            assert found.value == pytest.approx(float(find_metric(name)(table)))
            assert found.to_dict()["low"] is None


def test_groups_of_fractional_counts_have_an_interval_from_the_groups():
    cells = np.random.default_rng(0).random((40, 3, 3))
    names = ("mae", "accuracy", "macro_mae", "max_mae")
    for found in estimate_metrics([find_metric(name) for name in names], confusion(cells)).values():
        assert found.method == "jackknife"  # sizes of levels are unknown
        assert found.low < found.value < found.high


def test_draws_of_light_and_heavy_items_agree_with_a_poisson_bootstrap():
    """Ten cells' worth of items each; the rule of `disagreements`, with gammas for Poissons.

    The shapes differ in the far tails, so only means and deviations are held to the rule.
    """
    gold, predicted, weights, table = weighted_sample(15)
    values = naive_values("mae", gold, predicted, weights, table)
    drawn = resample_metrics(
        [find_metric("mae")], table, make_resampler(table), Resampling(COUNT, 2)
    )["mae"]
    assert not {"mean", "deviation"} & set(disagreements(values, drawn, 1))
