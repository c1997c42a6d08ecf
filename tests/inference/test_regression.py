"""How sure metrics of quantities are: against item and group bootstraps, derivatives, coverage."""

import math
from dataclasses import replace

import numpy as np
import pytest
from regression_cases import CHECKED, TRAIN, named, t_errors, table_of
from scipy import stats

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.delta_method import compute_bounded_interval
from ordinate.inference.regression import (
    NO_ERROR_NOTE,
    estimate_from_items,
    estimate_regression_metrics,
    estimate_regression_metrics_of_each,
)
from ordinate.inference.regression_delta_method import (
    compute_gradient,
    compute_item_errors,
    standard_error,
)
from ordinate.inference.regression_resampling import (
    MOST_REPEATED_ITEMS,
    _sum_resamples,
    resample_poisson,
)
from ordinate.metrics import find_metric, metric
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.regression import Moments

DRAWS = 2_500  # their Monte Carlo error is 1.4 % of a standard error


NEAR = 0.07


def lognormal_errors(n, rng):
    y = rng.gamma(4.0, 50.0, n)
    sizes = np.where(rng.random(n) < 0.9, 5.0, 40.0) * rng.lognormal(0.0, 0.4, n)
    return y, y + sizes * rng.choice([-1.0, 1.0], n, p=[0.4, 0.6])


def by_hand(y, p, w):
    """Return metrics for many weightings [B, n] of the same items, from their definitions."""
    whole = w.sum(axis=1)

    def mean(x):
        return (w @ x) / whole

    e = p - y
    mse, var_y, var_p = mean(e**2), mean(y**2) - mean(y) ** 2, mean(p**2) - mean(p) ** 2
    cov = mean(y * p) - mean(y) * mean(p)
    baseline = mean((y - TRAIN) ** 2)
    return {
        "mse": mse,
        "rmse": np.sqrt(mse),
        "mae": mean(np.abs(e)),
        "bias": mean(e),
        "r2": 1 - mse / var_y,
        "explained_variance": 1 - (mse - mean(e) ** 2) / var_y,
        "relative_accuracy": 1 - np.sqrt(mse / var_y),
        "nrmse": np.sqrt(mse / var_y),
        "skill": 1 - np.sqrt(mse / baseline),
        "pearson": cov / np.sqrt(var_y * var_p),
        "ccc": 2 * cov / (var_y + var_p + mean(e) ** 2),
    }


# --- standard errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [t_errors, lognormal_errors], ids=lambda f: f.__name__)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_standard_errors_are_those_of_an_item_bootstrap(errors, weights):
    rng = np.random.default_rng(11)
    n = 1_200
    y, p = errors(n, rng)
    w = {"none": None, "real": rng.gamma(0.7, 1.0, n), "whole": rng.integers(0, 4, n)}[weights]
    table = table_of(y, p, w)
    if weights == "whole":
        y, p, w = np.repeat(y, w), np.repeat(p, w), None
        n = len(y)
    counts = rng.multinomial(n, np.full(n, 1 / n), DRAWS).astype(float)
    drawn = by_hand(y, p, counts if w is None else counts * w)
    for name in CHECKED:
        error = standard_error(find_metric(name, Moments), table)
        assert error == pytest.approx(drawn[name].std(ddof=1), rel=NEAR), name


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_of_groups_are_those_of_a_group_bootstrap(weighted):
    rng = np.random.default_rng(12)
    count, n = 250, 3_000
    y, p = t_errors(n, rng)
    codes = rng.choice(count, n, p=rng.dirichlet(np.full(count, 20.0)))
    p = p + rng.normal(0, 30, count)[codes]
    w = rng.gamma(2.0, 1.0, n) if weighted else None
    names = factorize_column(codes)
    batch = table_of(y, p, w, groups=names)
    times = rng.multinomial(count, np.full(count, 1 / count), DRAWS).astype(float)
    drawn = by_hand(y, p, times[:, names.codes] * (1.0 if w is None else w))
    items = table_of(y, p, w)
    for name in CHECKED:
        error = standard_error(find_metric(name, Moments), batch.pooled, batch)
        assert error == pytest.approx(drawn[name].std(ddof=1), rel=0.1), name
    bias = find_metric("bias", Moments)
    assert standard_error(bias, batch.pooled, batch) > 1.3 * standard_error(bias, items)


def test_groups_of_one_item_are_items():
    y, p = t_errors(300, np.random.default_rng(1))
    batch = table_of(y, p, groups=Groups(list(range(300)), np.arange(300)))
    for name in CHECKED:
        one = find_metric(name, Moments)
        assert standard_error(one, batch.pooled, batch) == pytest.approx(
            standard_error(one, table_of(y, p)), rel=1e-9
        )


def test_groups_need_moments_of_order_two_only():
    y, p = t_errors(300, np.random.default_rng(1))
    groups = factorize_column(np.arange(300) % 40)
    for name in CHECKED:
        errors = [
            standard_error(
                find_metric(name, Moments), table_of(y, p), table_of(y, p, groups=groups, order=k)
            )
            for k in (2, 4)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-12)


CLUSTERED = ("rmse", "mae", "bias", "r2", "pearson", "ccc", "skill")


def uneven_clusters(count=12, *, weighted=False):
    """Clusters of unlike size, spread and bias, one without items; and values far from 0."""
    rng = np.random.default_rng(4)
    codes = np.sort(rng.choice(count, 150, p=np.arange(1, count + 1) / (count * (count + 1) / 2)))
    y = rng.normal(1e3, 2, 150)
    p = y + rng.lognormal(0, 0.7, count)[codes] * rng.normal(0.5, 1, 150)
    return y, p, codes, rng.gamma(2.0, 1.0, 150) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", [2, 4])
def test_the_jackknife_leaves_out_one_cluster_after_the_other(weighted, order):
    y, p, codes, w = uneven_clusters(weighted=weighted)
    groups = Groups(list(range(13)), codes)  # the last has no items
    options = {"constants": {"train_mean": 999.0}}
    batch = Moments.of(y, p, w, groups=groups, order=order, **options)
    found = estimate_regression_metrics(named(*CLUSTERED), batch, ConfidenceIntervals())
    kept = [codes != cluster for cluster in np.unique(codes)]
    rest = [Moments.of(y[k], p[k], None if w is None else w[k], **options) for k in kept]
    for one in named(*CLUSTERED):
        estimate = found[one.expression]
        without = np.array([float(one(each)) for each in rest])
        count = len(kept)
        error = math.sqrt((count - 1) / count * ((without - estimate.value) ** 2).sum())
        reach = stats.t.ppf(0.975, count - 1)
        expected = compute_bounded_interval(estimate.value, error, one.bounds, reach)
        assert (estimate.low, estimate.high) == pytest.approx(expected, rel=1e-7), one.name
        assert estimate.method == "jackknife"


def test_the_jackknife_of_means_of_even_clusters_is_students_t():
    y, p = t_errors(120, np.random.default_rng(3))
    batch = table_of(y, p, groups=factorize_column(np.arange(120) % 12))
    jackknife, student = (
        estimate_regression_metrics(named("bias", "mae"), batch, ConfidenceIntervals(method=x))
        for x in ("jackknife", "t")
    )
    for name, found in jackknife.items():
        assert (found.low, found.high) == pytest.approx((student[name].low, student[name].high))


def test_regression_with_clusters_says_what_makes_it_unsure():
    y, p = t_errors(200, np.random.default_rng(3))
    for codes, note in (
        (np.arange(200) % 20, None),
        (np.arange(200) % 9, "unsure: 9 clusters only"),
        (
            np.maximum(np.arange(200), 79),
            "unsure: one cluster has 40 % of the items",
        ),
    ):
        batch = Moments.of(y, p, groups=factorize_column(codes))
        for method in (None, "jackknife", "t", "delta"):
            how = ConfidenceIntervals(method=method)
            assert estimate_regression_metrics(named("rmse"), batch, how)["rmse"].note == note


def test_a_regression_that_hangs_on_one_cluster_has_no_interval():
    """Without the first cluster all targets are equal, however large they are."""
    codes, rng = np.arange(60) % 6, np.random.default_rng(3)
    y = np.where(codes == 0, rng.normal(1e6, 1.0, 60), 1e6 + 0.1)
    batch = Moments.of(y, y + rng.normal(0, 1, 60), groups=factorize_column(codes))
    found = estimate_regression_metrics(named("r2", "rmse"), batch, ConfidenceIntervals())
    assert found["r2"].note == "it is undefined without one of the 6 clusters"
    assert math.isnan(found["r2"].low)
    assert found["rmse"].low < found["rmse"].value < found["rmse"].high


def test_the_same_error_in_all_clusters_has_no_interval():
    y = np.random.default_rng(3).normal(0, 1, 60)
    batch = Moments.of(y, y + 0.1, groups=factorize_column(np.arange(60) % 7))
    found = estimate_regression_metrics(named("bias", "rmse"), batch, ConfidenceIntervals())
    assert {one.note for one in found.values()} == {NO_ERROR_NOTE}


def test_many_summaries_are_estimated_as_each_alone():
    """With counts and real weights, moments of both orders, one item, and no error at all."""
    rng = np.random.default_rng(5)
    columns = [lognormal_errors(n, rng) for n in (40, 60, 1, 35, 50)]
    columns[3] = (columns[3][0], columns[3][0])
    weights = [None, rng.random(60), None, None, rng.integers(1, 4, 50)]
    orders = [4, 4, 4, 4, 2]
    parts = [
        Moments.of(*pair, w, constants={"mean": 200.0}, histogram=True, order=order)
        for pair, w, order in zip(columns, weights, orders, strict=True)
    ]
    names = [*CHECKED, "median_absolute_error", "max_error", "baseline_rmse"]
    metrics = [find_metric(name, Moments) for name in names]
    settings = ConfidenceIntervals()
    together = estimate_regression_metrics_of_each(metrics, parts, settings)
    for part, found in zip(parts, together, strict=True):
        alone = estimate_regression_metrics(metrics, part, settings)
        assert found.keys() == alone.keys()
        for name, one in alone.items():
            other = found[name]
            assert (one.method, one.note) == (other.method, other.note)
            ours, theirs = ([x.value, x.low, x.high] for x in (one, other))
            assert ours == pytest.approx(theirs, rel=1e-12, nan_ok=True), name
    notes = {found["rmse"].note for found in together}
    assert {None, "there is one item only", "it is at its bound"} < notes


def test_the_scale_of_real_weights_does_not_matter():
    rng = np.random.default_rng(2)
    y, p = t_errors(200, rng)
    w = rng.gamma(1.0, 1.0, 200)
    for name in CHECKED:
        one = find_metric(name, Moments)
        assert standard_error(one, table_of(y, p, w)) == pytest.approx(
            standard_error(one, table_of(y, p, w * 1e3 + 0.0)), rel=1e-9
        )


def test_equal_real_weights_are_no_weights():
    y, p = t_errors(200, np.random.default_rng(2))
    for name in CHECKED:
        one = find_metric(name, Moments)
        assert standard_error(one, table_of(y, p, np.full(200, 0.3))) == pytest.approx(
            standard_error(one, table_of(y, p)), rel=1e-9
        )


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_standard_errors_do_not_depend_on_where_the_values_lie(shift):
    y, p = t_errors(500, np.random.default_rng(2))
    y, p = np.round(y * 1024) / 1024, np.round(p * 1024) / 1024
    for name in set(CHECKED) - {"skill"}:
        one = find_metric(name, Moments)
        found = standard_error(one, Moments.of(y + shift, p + shift))
        assert found == pytest.approx(standard_error(one, Moments.of(y, p)), rel=1e-6), name


# --- derivatives ---------------------------------------------------------------------------------


def slopes_by_hand(table):
    """Return derivatives by ȳ, ē, Var(y), Cov(y, e), Var(e)."""
    e = float(table.plain.e)
    yy, ye, ee = (float(table.plain.mean(*k)) for k in ((2, 0), (1, 1), (0, 2)))
    mse = ee + e * e
    of_mse = np.array([0, 2 * e, 0, 0, 1.0])
    of_yy, of_ye = np.eye(5)[2], np.eye(5)[3]
    cov, pp = yy + ye, yy + 2 * ye + ee
    of_cov, of_pp = of_yy + of_ye, np.array([0, 0, 1.0, 2, 1])
    r = cov / math.sqrt(yy * pp)
    below = yy + pp + e * e
    of_below = of_yy + of_pp + np.array([0, 2 * e, 0, 0, 0])
    share = math.sqrt(mse / yy)
    of_share = share * (of_mse / mse - of_yy / yy) / 2
    baseline = yy + (float(table.plain.y) - TRAIN) ** 2
    of_baseline = of_yy + np.array([2 * (float(table.plain.y) - TRAIN), 0, 0, 0, 0])
    skill = math.sqrt(mse / baseline)
    return {
        "mse": of_mse,
        "rmse": of_mse / (2 * math.sqrt(mse)),
        "bias": np.eye(5)[1],
        "r2": -of_mse / yy + mse / yy**2 * of_yy,
        "explained_variance": -np.eye(5)[4] / yy + ee / yy**2 * of_yy,
        "relative_accuracy": -of_share,
        "nrmse": of_share,
        "skill": -skill * (of_mse / mse - of_baseline / baseline) / 2,
        "pearson": of_cov / math.sqrt(yy * pp) - r / 2 * (of_yy / yy + of_pp / pp),
        "ccc": 2 * of_cov / below - 2 * cov / below**2 * of_below,
    }


@pytest.mark.parametrize("spread", [1e-4, 1.0, 100.0])
def test_gradients_are_derivatives(spread):
    rng = np.random.default_rng(3)
    y = rng.normal(670, 104, 400)
    table = table_of(y, y + spread * (0.2 + rng.standard_t(5, 400)))
    scale = np.array([104, spread, 104**2, 104 * spread, spread**2])
    for name, wanted in slopes_by_hand(table).items():
        found = compute_gradient(find_metric(name, Moments), table)
        size = np.abs(wanted * scale).max()
        assert np.abs((found - wanted) * scale).max() <= (1e-3 if spread < 1 else 1e-7) * size, name


def test_metrics_that_people_declare_have_derivatives_too():
    @metric(direction="minimize", bounds=(0, np.inf))
    def own_rmse(table: Moments):
        return np.sqrt(np.abs(table.squares / table.total))

    y, p = t_errors(400, np.random.default_rng(3))
    table = table_of(y, p)
    assert np.allclose(
        compute_gradient(own_rmse, table),
        compute_gradient(find_metric("rmse", Moments), table),
        rtol=1e-6,
    )
    assert standard_error(own_rmse, table) == pytest.approx(
        standard_error(find_metric("rmse", Moments), table), rel=1e-6
    )


@pytest.mark.parametrize("shrunk", [1.0, 1e-1, 1e-2, 1e-4, 1e-6])
def test_predictions_that_hardly_vary_have_the_same_limits_or_none(shrunk):
    rng = np.random.default_rng(5)
    y = rng.normal(0, 1, 1_000)
    p = shrunk * (y + rng.normal(0, 1, 1_000))
    found, alone = (
        estimate_regression_metrics(named("pearson"), Moments.of(y, x), ConfidenceIntervals())[
            "pearson"
        ]
        for x in (p, p / shrunk)
    )
    assert found.value == pytest.approx(alone.value, rel=1e-3)
    if shrunk < 1e-3:
        assert found.note == NO_ERROR_NOTE
    else:
        assert found.low == pytest.approx(alone.low, rel=1e-4)
        assert found.high == pytest.approx(alone.high, rel=1e-4)


def test_rounding_is_never_taken_for_a_standard_error():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.normal(0, 1, 300)
        z = y + rng.normal(0, 1, 300)
        p = 10 ** rng.uniform(-5, -2) * z
        found, alone = (
            estimate_regression_metrics(named("pearson"), Moments.of(y, x), ConfidenceIntervals())[
                "pearson"
            ]
            for x in (p, z)
        )
        assert found.note == NO_ERROR_NOTE or found.width == pytest.approx(alone.width, rel=0.02)


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_nearly_perfect_predictions_have_limits_in_proportion(size):
    rng = np.random.default_rng(6)
    y, e = rng.normal(0, 1, 1_000), rng.standard_t(5, 1_000)
    found = estimate_regression_metrics(
        named("r2", "rmse"), Moments.of(y, y + size * e), ConfidenceIntervals()
    )
    alone = estimate_regression_metrics(
        named("r2", "rmse"), Moments.of(y, y + 1e-1 * e), ConfidenceIntervals()
    )
    for limit in ("low", "high"):
        wanted = (1 - getattr(alone["r2"], limit)) / 1e-2
        assert (1 - getattr(found["r2"], limit)) / size**2 == pytest.approx(wanted, rel=1e-2)
        wanted = getattr(alone["rmse"], limit) / 1e-1
        assert getattr(found["rmse"], limit) / size == pytest.approx(wanted, rel=1e-6)


# --- resamples of the items
# -------------------------------------------------------------------------------


def log_scale_by_hand(y, p, w):
    """Return λ = ln MSE, ln(1 - R²), ln(1 - skill), ln MAE of weighted items, with its error."""
    e2 = (p - y) ** 2
    mean = np.average(y, weights=w)
    parts = {
        "rmse": (0.5, e2, None),
        "mse": (1.0, e2, None),
        "r2": (1.0, e2, (y - mean) ** 2),
        "nrmse": (0.5, e2, (y - mean) ** 2),
        "skill": (0.5, e2, (y - TRAIN) ** 2),
        "mae": (1.0, np.abs(p - y), None),
    }
    found = {}
    for name, (power, above, below) in parts.items():
        value = np.log(np.average(above, weights=w))
        influence = above / np.average(above, weights=w) - 1.0
        if below is not None:
            value = value - np.log(np.average(below, weights=w))
            influence = influence - (below / np.average(below, weights=w) - 1.0)
        n = len(y)
        variance = (w**2 * influence**2).sum() / w.sum() ** 2 * n / (n - 1)
        found[name] = power * value, power * np.sqrt(variance)
    return found


def from_log_scale(name, point):
    return 1.0 - math.exp(point) if name in {"r2", "skill"} else math.exp(point)


@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_limits_from_items_are_studentised_on_the_log_scale(weights):
    """Resamples of N to the power of 3/4 items, item by item, as the methods are written."""
    rng = np.random.default_rng(21)
    n = 300
    y, p = t_errors(n, rng)
    w = {"none": None, "real": rng.gamma(4.0, 1.0, n), "whole": rng.integers(0, 4, n).astype(float)}
    how = ConfidenceIntervals(resamples=4_000, seed=3)
    table = table_of(y, p, w[weights])
    metrics = named("rmse", "mse", "r2", "nrmse", "skill", "mae")
    found = estimate_from_items(metrics, table, y, p, how, w[weights])
    if weights == "whole":
        y, p = (np.repeat(x, w["whole"].astype(int)) for x in (y, p))
        n = len(y)
    weight = w["real"] if weights == "real" else np.ones(n)
    sample = log_scale_by_hand(y, p, weight)
    ratios = {name: [] for name in sample}
    for _ in range(1_500):
        rows = np.repeat(np.arange(n), rng.poisson(n**0.75 / n, n))
        for name, (value, error) in log_scale_by_hand(y[rows], p[rows], weight[rows]).items():
            ratios[name].append((value - sample[name][0]) / error)
    for name, (value, error) in sample.items():
        ends = [value - error * np.quantile(ratios[name], k) for k in (0.975, 0.025)]
        low, high = sorted(from_log_scale(name, end) for end in ends)
        assert found[name].method == "studentized"
        assert found[name].low == pytest.approx(low, abs=0.07 * (high - low)), name
        assert found[name].high == pytest.approx(high, abs=0.07 * (high - low)), name


@pytest.mark.parametrize("weights", ["none", "real"])
def test_standard_errors_of_a_batch_are_those_of_its_summaries(weights):
    rng = np.random.default_rng(5)
    y, p = t_errors(60, rng)
    w = rng.gamma(2.0, 1.0, 60) if weights == "real" else None
    drawn = resample_poisson(y, p, ConfidenceIntervals(resamples=100), w)[:7]
    drawn = replace(drawn, constants={"train_mean": TRAIN})
    for one in named(*CHECKED):
        batch = compute_item_errors(one, drawn)
        assert batch == pytest.approx([standard_error(one, drawn[k]) for k in range(7)], rel=1e-12)


@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_poisson_resamples_have_the_moments_of_their_items(weights):
    rng = np.random.default_rng(5)
    y, p = t_errors(30, rng)
    w = {
        "none": None,
        "real": rng.gamma(2.0, 1.0, 30),
        "whole": rng.integers(1, 4, 30).astype(float),
    }
    w = w[weights]
    drawn = resample_poisson(y, p, ConfidenceIntervals(resamples=100, seed=9), w)
    rng = np.random.default_rng(9)
    items = np.repeat(np.arange(30), w.astype(int) if weights == "whole" else 1)
    numbers = rng.poisson(len(items) ** 0.75, 100)
    rows = np.split(items[rng.integers(0, len(items), numbers.sum())], np.cumsum(numbers)[:-1])
    for k, own in enumerate(rows):
        wanted = Moments.of(y[own], p[own], w[own] if weights == "real" else None)
        assert drawn.items[k] == len(own) == wanted.n
        assert drawn.squares[k] == pytest.approx(wanted.squares)
        assert drawn.absolute[k] == pytest.approx(wanted.absolute)
        assert drawn.absolute_squared[k] == pytest.approx(wanted.absolute_squared)
        for found, sums in ((drawn.plain, wanted.plain), (drawn.squared, wanted.squared)):
            scale = np.abs(sums.sums).max()
            assert found.sums[k] == pytest.approx(sums.sums, rel=1e-9, abs=1e-9 * scale)


@pytest.mark.parametrize("rate", [0.4, 0.4 * np.array([1.0, 2.0, 0.0, 5.0])], ids=["one", "each"])
def test_each_item_is_drawn_as_often_as_a_poisson_variable_says(rate):
    rng = np.random.default_rng(3)
    taken, (counts,) = _sum_resamples(rng, rate, 20_000, [np.eye(4)])
    assert np.array_equal(counts.sum(axis=1), taken)
    assert counts.mean(axis=0) == pytest.approx(rate * np.ones(4), abs=0.04)
    assert counts.var(axis=0) == pytest.approx(rate * np.ones(4), abs=0.08)
    assert np.abs(np.cov(counts.T) - np.diag(counts.var(axis=0))).max() < 0.05


def test_integer_weights_are_repeated_rows_to_the_last_digit():
    rng = np.random.default_rng(5)
    y, p = t_errors(60, rng)
    w, how = rng.integers(0, 4, 60).astype(float), ConfidenceIntervals(resamples=200)
    many = [np.repeat(x, w.astype(int)) for x in (y, p)]
    found, wanted = resample_poisson(y, p, how, w), resample_poisson(*many, how)
    assert np.array_equal(found.plain.sums, wanted.plain.sums)
    other = resample_poisson(
        y, p, how, w, counted=False
    )  # the weights of other items are no counts
    assert other.items.mean() == pytest.approx((w > 0).sum() ** 0.75, rel=0.1)


def test_many_counts_are_drawn_like_repeated_rows():
    rng = np.random.default_rng(5)
    y, p = t_errors(50, rng)
    how, w = ConfidenceIntervals(resamples=2_000), rng.integers(3_000, 4_000, 50).astype(float)
    assert w.sum() > MOST_REPEATED_ITEMS
    many = [np.repeat(x, w.astype(int)) for x in (y, p)]
    found, wanted = resample_poisson(y, p, how, w), resample_poisson(*many, how)
    for one, other in ((found.items, wanted.items), (found.squares, wanted.squares)):
        assert one.mean() == pytest.approx(other.mean(), rel=0.01)
        assert one.std() == pytest.approx(other.std(), rel=0.1)


def test_large_counts_are_resampled_as_quickly_as_small_ones():
    y, p = t_errors(50, np.random.default_rng(5))
    how, w = ConfidenceIntervals(resamples=100), np.full(50, 1e9)
    table = table_of(y, p, w)
    found = estimate_from_items(named("rmse"), table, y, p, how, w)
    assert found["rmse"].width < 1e-3 * found["rmse"].value


@pytest.mark.parametrize("method", [None, "delta"])
def test_intervals_from_moments_are_students_on_the_log_scale(method):
    y, p = t_errors(80, np.random.default_rng(8))
    how = ConfidenceIntervals(level=0.9, method=method)
    found = estimate_regression_metrics(
        named("rmse", "mse", "r2", "nrmse", "skill", "mae"), table_of(y, p), how
    )
    reach = stats.norm.ppf(0.95) if method else stats.t.ppf(0.95, 79)
    for name, (value, error) in log_scale_by_hand(y, p, np.ones(80)).items():
        ends = sorted(from_log_scale(name, value + side * reach * error) for side in (-1, 1))
        assert (found[name].low, found[name].high) == pytest.approx(ends, rel=1e-7), name
        assert found[name].method == (method or "t")


def test_poisson_draws_are_those_of_their_seed():
    y, p = t_errors(50, np.random.default_rng(1))
    how = ConfidenceIntervals(resamples=100, seed=5)
    first, second, other = (
        resample_poisson(y, p, x) for x in (how, how, ConfidenceIntervals(resamples=100, seed=6))
    )
    assert np.array_equal(first.squares, second.squares)
    assert not np.array_equal(first.squares, other.squares)


def test_poisson_draws_leave_out_items_of_weight_zero():
    y, p = t_errors(40, np.random.default_rng(1))
    how = ConfidenceIntervals(resamples=200)
    w = np.random.default_rng(2).gamma(1.0, 1.0, 40)
    more = [np.append(x, bad) for x, bad in ((y, np.nan), (p, np.inf), (w, 0.0))]
    found, wanted = resample_poisson(*more[:2], how, more[2]), resample_poisson(y, p, how, w)
    assert np.array_equal(found.squares, wanted.squares)


@pytest.mark.parametrize("n", [1, 2, 19])
def test_few_items_are_not_resampled_but_get_students_t(n):
    y, p = t_errors(n, np.random.default_rng(1))
    how = ConfidenceIntervals(resamples=500)
    table, metrics = table_of(y, p), named("r2", "rmse")
    found = estimate_from_items(metrics, table, y, p, how)
    assert repr(found) == repr(estimate_regression_metrics(metrics, table, how))  # nan, too
    assert found["rmse"].method == ("t" if n > 1 else None)


def test_draws_without_a_value_are_left_out():
    y = np.where(np.arange(20) < 2, [1.0] * 20, 0.0)  # most resamples have one target only
    p = y + np.random.default_rng(1).normal(0, 0.1, 20)
    how = ConfidenceIntervals(resamples=500)
    found = estimate_from_items(named("r2"), Moments.of(y, p), y, p, how)
    assert 0.2 < found["r2"].undefined_share < 0.6
    assert found["r2"].low < found["r2"].value < found["r2"].high <= 1.0


# --- coverage ------------------------------------------------------------------------------------

TRUTH = {
    "rmse": 1.0,
    "mae": math.sqrt(2 / math.pi),
    "bias": 0.0,
    "r2": 0.75,
    "relative_accuracy": 0.5,
    "median_absolute_error": 0.67449,
    "pearson": 2 / math.sqrt(5),
}


REPLICATES = 400


def coverage(estimates):
    """Return the share of intervals that hold the truth, by metric."""
    return {
        name: np.mean([found[name].low <= truth <= found[name].high for found in estimates])
        for name, truth in TRUTH.items()
        if name in estimates[0]
    }


def test_95_per_cent_limits_cover_about_95_per_cent():
    rng, how = np.random.default_rng(31), ConfidenceIntervals()
    found = []
    for _ in range(REPLICATES):
        y = rng.normal(0, 2, 200)
        table = Moments.of(y, y + rng.normal(0, 1, 200), histogram=True)
        found.append(estimate_regression_metrics(named(*TRUTH), table, how))
    assert all(0.91 <= share <= 0.98 for share in coverage(found).values()), coverage(found)


@pytest.mark.slow
def test_limits_with_real_weights_cover():
    rng, how = np.random.default_rng(32), ConfidenceIntervals()
    found = []
    for _ in range(REPLICATES):
        y, w = rng.normal(0, 2, 300), rng.gamma(1.0, 1.0, 300)
        table = Moments.of(y, y + rng.normal(0, 1, 300), w, histogram=True)
        found.append(estimate_regression_metrics(named(*TRUTH), table, how))
    assert all(0.91 <= share <= 0.98 for share in coverage(found).values()), coverage(found)


@pytest.mark.slow
def test_few_groups_cover_by_the_jackknife():
    rng, how = np.random.default_rng(33), ConfidenceIntervals()
    codes, found = np.arange(240) % 12, []
    for _ in range(REPLICATES):
        y = rng.normal(0, 2, 240)
        e = rng.normal(0, 1, 12)[codes] * 0.8 + rng.normal(0, 0.6, 240)
        batch = Moments.of(y, y + e, groups=Groups(list(range(12)), codes), order=2)
        found.append(estimate_regression_metrics(named("bias", "rmse"), batch, how))
    assert found[0]["bias"].method == "jackknife"
    assert 0.91 <= coverage(found)["bias"] <= 0.98
    assert 0.86 <= coverage(found)["rmse"] <= 0.98  # twelve groups say little of a variance
