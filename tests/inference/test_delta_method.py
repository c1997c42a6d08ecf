"""The delta method: influence against calculus, errors against other people and large resamples."""

import math

import numpy as np
import pytest
from each_case import each_case
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples
from oracles import TEN, confusion, deviation_error, labels, sample, spelled
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.inter_rater import cohens_kappa
from strategies import scale_of

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.delta_method import (
    compute_bounded_interval,
    compute_influence,
    normal_quantile,
    variance_from_influence,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

SEVERAL = {
    "K = 3": confusion([[2, 1, 0], [4, 21, 3], [1, 5, 23]]),
    "K = 5": confusion(sample(5, 200, seed=5)),
    "uneven": confusion(sample(4, 333, seed=9, noise=1.6), [0.0, 1.0, 2.7, 5.1]),
    "K = 2": confusion([[40, 3], [7, 19]]),
    "a level without gold": confusion([[0, 0, 0], [5, 8, 1], [2, 0, 9]]),
}
every_table = each_case("table", SEVERAL)
SMOOTH = {m.name: m for m in list_metrics() if m.smooth and not m.required}
every_smooth_metric = each_case("metric", SMOOTH)


def error_of(metric, table, *, stratified=False):
    return math.sqrt(
        variance_from_influence(table, compute_influence(metric, table), stratified=stratified)
    )


def at_filled(table, slopes):
    """Influence where there are items, and 0 where there are none."""
    return np.where(table.counts > 0, slopes, 0.0)


# --- influence against calculus ------------------------------------------------------------------


def kappa_slopes(table, cost):
    """1 - O / E by the quotient rule; O is the mean cost, E the mean cost of independent sides."""
    share = table.counts / table.total
    gold, predicted = share.sum(axis=1), share.sum(axis=0)
    observed, chance = (share * cost).sum(), gold @ cost @ predicted
    towards_observed = cost - observed
    towards_chance = (cost @ predicted)[:, None] + (gold @ cost)[None, :] - 2 * chance
    return -(towards_observed * chance - observed * towards_chance) / chance**2


def macro_slopes(table, cost):
    """Of the mean over gold levels of their mean costs."""
    gold = table.counts.sum(axis=1)
    there = gold > 0
    mean = np.divide((table.counts * cost).sum(axis=1), gold, where=there, out=np.zeros(len(gold)))
    share = np.where(there, gold / table.total, 1.0)
    return (cost - mean[:, None]) / share[:, None] / there.sum()


def slopes(name, table):
    at = np.array(table.scale.at, float)
    gaps, same = np.abs(at[:, None] - at), np.eye(len(at))
    share = table.counts / table.total
    return {
        "accuracy": lambda: same - (share * same).sum(),
        "mae": lambda: gaps - (share * gaps).sum(),
        "mse": lambda: gaps**2 - (share * gaps**2).sum(),
        "rmse": lambda: (gaps**2 - (share * gaps**2).sum()) / 2 / np.sqrt((share * gaps**2).sum()),
        "bias": lambda: (at - at[:, None]) - (share * (at - at[:, None])).sum(),
        "macro_accuracy": lambda: macro_slopes(table, same),
        "macro_mae": lambda: macro_slopes(table, gaps),
        "cohen_kappa": lambda: kappa_slopes(table, 1 - same),
        "linear_kappa": lambda: kappa_slopes(table, gaps),
        "quadratic_kappa": lambda: kappa_slopes(table, gaps**2),
    }[name]()


ANALYTIC = [
    "accuracy",
    "mae",
    "mse",
    "rmse",
    "bias",
    "macro_accuracy",
    "macro_mae",
    "cohen_kappa",
    "linear_kappa",
    "quadratic_kappa",
]


@every_table
@pytest.mark.parametrize("name", ANALYTIC)
def test_influence_is_the_derivative(table, name):
    found = compute_influence(find_metric(name), table)
    assert found.shape == table.weights.shape
    assert found[:, -1] == pytest.approx(0)
    expected = at_filled(table, slopes(name, table))
    assert found[:, :-1] == pytest.approx(expected, rel=1e-6, abs=1e-7)


@every_smooth_metric
@every_table
def test_items_have_no_influence_on_average(table, metric):
    if not math.isnan(metric(table)):
        mean = (table.weights * compute_influence(metric, table)).sum() / table.total
        assert mean == pytest.approx(0, abs=1e-7)


@every_smooth_metric
def test_influence_foretells_one_item_more(metric):
    """In a table of 10,000 items the first-order change is nearly the whole change."""
    table = confusion(sample(4, 10_000, seed=3, noise=1.3))
    slope = compute_influence(metric, table)
    for cell in ((0, 0), (1, 2), (3, 1), (2, 3)):
        more = table.weights.copy()
        more[cell] += 1
        moved = float(metric(table.with_cells(more))) - float(metric(table))
        expected = slope[cell] / (table.total + 1)
        assert moved == pytest.approx(expected, rel=0.05, abs=3e-8), cell


def test_unanswered_items_have_the_influence_of_the_worst_answer():
    counts, silent = np.array([[9.0, 3, 0], [2, 14, 4], [0, 5, 11]]), np.array([2.0, 6, 4])
    table = ConfusionMatrix.from_counts(counts, scale_of(3), silent)
    cost = np.array([[0, 1, 2, 2], [1, 0, 1, 1], [2, 1, 0, 2]])
    mae = (table.weights * cost).sum() / table.total
    expected = np.where(table.weights > 0, cost - mae, 0)
    assert compute_influence(find_metric("mae"), table) == pytest.approx(expected, abs=1e-8)


def test_influence_of_a_rare_cell_is_as_exact_as_that_of_a_common_one():
    table = confusion([[1, 0, 0], [0, 10**6, 10], [2, 3, 10**6]])
    for name in ("macro_accuracy", "quadratic_kappa", "macro_mae"):
        expected = at_filled(table, slopes(name, table))
        assert compute_influence(find_metric(name), table)[:, :-1] == pytest.approx(
            expected, rel=1e-4, abs=1e-6
        )


def test_influence_in_many_blocks_is_that_in_one():
    table = confusion(sample(6, 500, seed=2, noise=2.0))
    whole = compute_influence(find_metric("cem_ord"), table)
    blocks = compute_influence(find_metric("cem_ord"), table, block_size=100)
    assert np.array_equal(blocks, whole)


@every_smooth_metric
def test_influence_in_a_batch_is_that_of_each_matrix(metric):
    """Cells that are empty in some matrices, and a block that holds but a part of the cells."""
    tables = [confusion(sample(4, n, seed=n, noise=1.0)) for n in (30, 60, 500)]
    batch = tables[0].with_cells(np.stack([table.weights for table in tables]))
    for found in (
        compute_influence(metric, batch),
        compute_influence(metric, batch, block_size=99),
    ):
        expected = [compute_influence(metric, table) for table in tables]
        assert found == pytest.approx(np.stack(expected), rel=1e-9, abs=1e-9, nan_ok=True)


# --- standard errors against others --------------------------------------------------------------


@every_table
@pytest.mark.parametrize(
    ("name", "theirs"),
    [("cohen_kappa", None), ("linear_kappa", "linear"), ("quadratic_kappa", "quadratic")],
)
def test_errors_of_kappas_are_those_of_statsmodels(table, name, theirs):
    size = len(table.scale)
    if theirs is not None and list(table.scale.at) != list(range(size)):
        return  # they know equal steps only
    expected = cohens_kappa(table.counts, wt=theirs)
    assert float(find_metric(name)(table)) == pytest.approx(expected.kappa, rel=1e-12)
    assert error_of(find_metric(name), table) == pytest.approx(expected.std_kappa, rel=1e-7)


@every_table
def test_the_error_of_the_accuracy_is_binomial(table):
    share = np.trace(table.counts) / table.total
    expected = math.sqrt(share * (1 - share) / table.total)
    assert error_of(find_metric("accuracy"), table) == pytest.approx(expected, rel=1e-8)


@every_table
def test_the_error_of_a_mean_is_its_deviation_over_the_root_of_n(table):
    gold, predicted = spelled(table)
    at = np.array(table.scale.at)
    gaps = np.abs(at[gold] - at[predicted])
    expected = gaps.std() / math.sqrt(len(gaps))
    assert error_of(find_metric("mae"), table) == pytest.approx(expected, rel=1e-8)


BIG = confusion(sample(5, 5000, seed=11, noise=1.1))
BY_DRAWING = [*TEN, "cohen_kappa", "pearson", "spearman", "ccc", "rmse", "bias", "mcc", "gwet_ac2"]
BY_DRAWING += ["krippendorff_alpha", "cem_ord_chance_corrected", "somers_d", "f1_weighted"]


@pytest.fixture(scope="module")
def big_draws():
    counts = BIG.counts.reshape(-1)
    rng = np.random.default_rng(21)
    return BIG.with_cells(
        rng.multinomial(5000, counts / 5000, 8000).reshape(-1, 5, 5).astype(float)
    )


@pytest.mark.parametrize("name", BY_DRAWING)
def test_errors_are_the_deviation_of_a_large_bootstrap(name, big_draws):
    """At 5,000 items and 8,000 resamples: 4 Monte-Carlo errors (about 3 %), 1 % for curvature."""
    metric = find_metric(name)
    values = np.asarray(metric(big_draws))
    allowed = 4 * deviation_error(values) + 0.01 * values.std()
    assert abs(error_of(metric, BIG) - values.std()) <= allowed


@pytest.mark.parametrize("name", ["accuracy", "mae", "macro_accuracy", "cem_ord", "f1_macro"])
def test_stratified_errors_are_the_deviation_of_a_stratified_bootstrap(name):
    metric, rng = find_metric(name), np.random.default_rng(22)
    drawn = np.zeros((8000, 5, 5))
    for level, row in enumerate(BIG.counts):
        drawn[:, level] = rng.multinomial(int(row.sum()), row / row.sum(), 8000)
    values = np.asarray(metric(BIG.with_cells(drawn)))
    allowed = 4 * deviation_error(values) + 0.01 * values.std()
    assert abs(error_of(metric, BIG, stratified=True) - values.std()) <= allowed


@every_table
@pytest.mark.parametrize("name", ["accuracy", "mae"])
def test_the_stratified_variance_adds_up_the_variances_within_gold_levels(table, name):
    gold, predicted = spelled(table)
    at = np.array(table.scale.at)
    score = {"accuracy": gold == predicted, "mae": np.abs(at[gold] - at[predicted])}[name]
    score = score.astype(float)
    parts = [(gold == level).sum() * score[gold == level].var() for level in np.unique(gold)]
    expected = math.sqrt(sum(parts)) / len(gold)
    assert error_of(find_metric(name), table, stratified=True) == pytest.approx(expected, rel=1e-7)


@every_table
@every_smooth_metric
def test_stratified_errors_are_never_larger(table, metric):
    if not math.isnan(metric(table)):
        plain, kept = error_of(metric, table), error_of(metric, table, stratified=True)
        assert kept <= plain * (1 + 1e-9) + 1e-12


def test_gold_level_means_have_the_same_error_stratified():
    """The mean recall moves only with predictions given gold, to first order."""
    table = SEVERAL["K = 5"]
    plain = error_of(find_metric("macro_accuracy"), table)
    assert error_of(find_metric("macro_accuracy"), table, stratified=True) == pytest.approx(
        plain, rel=1e-6
    )


@every_smooth_metric
@every_table
def test_four_times_the_items_halve_the_error(table, metric):
    if metric.needs_integer_counts or math.isnan(metric(table)):
        return
    four = confusion(table.counts * 4, list(table.scale.at))
    assert error_of(metric, four) == pytest.approx(error_of(metric, table) / 2, rel=1e-6, abs=1e-9)


def test_one_percent_more_weight_for_every_item_changes_no_error():
    table = SEVERAL["K = 5"]
    gold, predicted = spelled(table)
    scaled = ConfusionMatrix.of(labels(gold), labels(predicted), table.scale, [1.01] * len(gold))
    for name in TEN:
        expected = error_of(find_metric(name), table)
        assert error_of(find_metric(name), scaled) == pytest.approx(expected, rel=1e-7), name


# --- limits --------------------------------------------------------------------------------------

BOUNDS = {
    "from 0 to 1": (0.0, 1.0),
    "from -1 to 1": (-1.0, 1.0),
    "from 0": (0.0, math.inf),
    "to 1": (-math.inf, 1.0),
    "anywhere": (-math.inf, math.inf),
}
all_bounds = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)


def within(bounds, share):
    """A value inside the bounds, from a share."""
    low, high = bounds
    if math.isfinite(low) and math.isfinite(high):
        return low + share * (high - low)
    if math.isfinite(low):
        return low + share / (1 - share)
    return (high if math.isfinite(high) else 0.0) - share / (1 - share)


@all_bounds
@given(share=st.floats(1e-4, 1 - 1e-4), error=st.floats(1e-6, 50), data=st.data())
@examples(80)
def test_limits_hold_the_value_within_the_bounds_and_widen_with_the_level(
    bounds, share, error, data
):
    value = within(bounds, share)
    smaller, larger = sorted(data.draw(st.tuples(st.floats(0.5, 0.99), st.floats(0.5, 0.99))))
    assume(larger - smaller > 1e-3)
    low, high = compute_bounded_interval(value, error, bounds, normal_quantile(smaller))
    assert bounds[0] <= low <= value <= high <= bounds[1]
    wider = compute_bounded_interval(value, error, bounds, normal_quantile(larger))
    assert wider[0] <= low <= high <= wider[1]


@all_bounds
def test_limits_of_a_small_error_are_normal(bounds):
    value = within(bounds, 0.4)
    low, high = compute_bounded_interval(value, 1e-5, bounds, normal_quantile(0.95))
    z = stats.norm.ppf(0.975)
    assert low == pytest.approx(value - z * 1e-5, abs=1e-8)
    assert high == pytest.approx(value + z * 1e-5, abs=1e-8)


@all_bounds
@given(share=st.floats(0.001, 0.999), relative=st.floats(0.01, 0.4))
@examples(40)
def test_limits_are_symmetric_on_the_scale_without_bounds(bounds, share, relative):
    """Of errors that do not reach beyond the bounds."""
    value = within(bounds, share)
    low, high = compute_bounded_interval(
        value, relative * min(share, 1 - share), bounds, normal_quantile(0.9)
    )

    def free(x):
        start, end = bounds
        if math.isfinite(start) and math.isfinite(end):
            return math.log((x - start) / (end - x))
        if math.isfinite(start):
            return math.log(x - start)
        return -math.log(end - x) if math.isfinite(end) else x

    below, above = free(value) - free(low), free(high) - free(value)
    assert below == pytest.approx(above, rel=1e-4, abs=1e-6)


def test_limits_from_minus_one_to_one_are_fishers():
    z = stats.norm.ppf(0.975)
    half = z * 0.07 / (1 - 0.6**2)
    expected = [math.tanh(math.atanh(0.6) - half), math.tanh(math.atanh(0.6) + half)]
    assert compute_bounded_interval(0.6, 0.07, (-1, 1), normal_quantile(0.95)) == pytest.approx(
        expected, rel=1e-12
    )


@given(share=st.floats(0.01, 0.99), error=st.floats(0.001, 0.3))
@examples(40)
def test_limits_turn_with_the_metric(share, error):
    """Of 1 - x, and of -x, they are those of x turned around."""
    low, high = compute_bounded_interval(share, error, (0, 1), normal_quantile(0.95))
    other = compute_bounded_interval(1 - share, error, (0, 1), normal_quantile(0.95))
    assert other == pytest.approx((1 - high, 1 - low), rel=1e-9, abs=1e-12)
    low, high = compute_bounded_interval(share, error, (0, math.inf), normal_quantile(0.95))
    other = compute_bounded_interval(-share, error, (-math.inf, 0), normal_quantile(0.95))
    assert other == pytest.approx((-high, -low), rel=1e-12)


def plain_limits(value, error, bounds, reach):
    """So many errors away, cut at the bounds."""
    return max(value - reach * error, bounds[0]), min(value + reach * error, bounds[1])


def bent_limits(value, error, bounds, reach):
    """So many errors away on SciPy's logit of the range, or on the logarithm of a half-line."""
    low, high = bounds
    if math.isfinite(low) and math.isfinite(high):
        share = (value - low) / (high - low)
        half = reach * error / (high - low) / (share * (1 - share))
        ends = expit([logit(share) - half, logit(share) + half])
        return tuple(low + (high - low) * ends)
    if math.isfinite(low):
        factor = math.exp(reach * error / (value - low))
        return low + (value - low) / factor, low + (value - low) * factor
    if math.isfinite(high):
        factor = math.exp(reach * error / (high - value))
        return high - (high - value) * factor, high - (high - value) / factor
    return value - reach * error, value + reach * error


@all_bounds
@given(
    share=st.floats(0.001, 0.999),
    relative=st.floats(0.01, 0.98) | st.floats(1.02, 30),
    reach=st.floats(0.1, 12),
)
@examples(60)
def test_limits_are_so_many_errors_away_and_plain_where_the_scale_bends_too_much(
    bounds, share, relative, reach
):
    """`relative` is the error as a share of the one from which on limits are plain."""
    value = within(bounds, share)
    rooms = [1 / abs(value - end) for end in bounds if math.isfinite(end)]
    error = relative / (sum(rooms) or 1.0)
    expected = (plain_limits if relative > 1 else bent_limits)(value, error, bounds, reach)
    assert compute_bounded_interval(value, error, bounds, reach) == pytest.approx(
        expected, rel=1e-9, abs=1e-12
    )


@all_bounds
@given(share=st.floats(0.01, 0.99), relative=st.floats(0.01, 0.2), times=st.floats(1, 4.5))
@examples(30)
def test_an_error_reached_often_is_an_often_larger_error(bounds, share, relative, times):
    """As long as neither is so large that limits are plain."""
    value = within(bounds, share)
    rooms = [1 / abs(value - end) for end in bounds if math.isfinite(end)]
    error = relative / (sum(rooms) or 1.0)
    expected = compute_bounded_interval(value, error * times, bounds, 0.7)
    assert compute_bounded_interval(value, error, bounds, 0.7 * times) == pytest.approx(
        expected, rel=1e-9
    )


@all_bounds
@pytest.mark.parametrize("reach", [63.0, 637.0, 6366.0, 636619.0])
def test_limits_of_any_reach_stay_within_the_bounds(bounds, reach):
    """Student's variable of two groups reaches so far at a level of 99.9999 %."""
    value = within(bounds, 0.4)
    low, high = compute_bounded_interval(value, 0.1, bounds, reach)
    assert bounds[0] <= low <= value <= high <= bounds[1]


@pytest.mark.parametrize("bounds", [(0.0, math.inf), (-math.inf, 1.0), (0.0, 1.0), (-1.0, 1.0)])
def test_limits_of_an_error_far_beyond_the_value_are_no_accident(bounds):
    value = within(bounds, 1e-6) if math.isfinite(bounds[0]) else 1.0 - 1e-6
    low, high = compute_bounded_interval(value, 1.0, bounds, normal_quantile(0.95))
    assert bounds[0] <= low <= value <= high <= bounds[1]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_the_quantile_is_the_normal_one(level):
    assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2), rel=1e-12)


# --- as estimates --------------------------------------------------------------------------------


@every_table
def test_delta_estimates_are_limits_of_naive_errors(table):
    at = np.array(table.scale.at)
    gold, predicted = spelled(table)
    gaps = np.abs(at[gold] - at[predicted])
    found = estimate_metrics(
        [find_metric("mae"), find_metric("bias")],
        table,
        ConfidenceIntervals(method="delta", level=0.9),
    )
    z = stats.norm.ppf(0.95)
    factor = math.exp(z * gaps.std() / math.sqrt(len(gaps)) / gaps.mean())
    expected = gaps.mean() / factor, gaps.mean() * factor
    assert (found["mae"].low, found["mae"].high) == pytest.approx(expected, rel=1e-7)
    shift = at[predicted] - at[gold]
    half = z * shift.std() / math.sqrt(len(shift))
    expected = shift.mean() - half, shift.mean() + half
    assert (found["bias"].low, found["bias"].high) == pytest.approx(expected, rel=1e-6)


def test_stratified_estimates_use_the_stratified_error():
    table = SEVERAL["K = 5"]
    gold, predicted = spelled(table)
    gaps = np.abs(gold - predicted)
    parts = [(gold == level).sum() * gaps[gold == level].var() for level in np.unique(gold)]
    error = math.sqrt(sum(parts)) / len(gold)
    found = estimate_metrics(
        [find_metric("mae")], table, ConfidenceIntervals(method="delta", stratified=True)
    )["mae"]
    factor = math.exp(stats.norm.ppf(0.975) * error / gaps.mean())
    assert (found.low, found.high) == pytest.approx((gaps.mean() / factor, gaps.mean() * factor))


def test_nearly_independent_sides_have_an_interval_of_their_information():
    """Its error is far beyond the value there: the logarithm must not overflow."""
    table = confusion([[25, 26], [24, 25]])
    found = estimate_metrics(
        [find_metric("mutual_information")], table, ConfidenceIntervals(method="delta")
    )
    result = found["mutual_information"]
    assert 0 <= result.low <= result.value <= result.high < 1


def test_limits_near_a_bound_are_not_all_that_the_bounds_allow():
    """One item in 10,000 tells the sides apart; a bootstrap puts the divergence below 0.02."""
    table = confusion([[2500, 2500], [2501, 2499]])
    found = estimate_metrics([find_metric("rnod")], table)["rnod"]
    assert found.high < 0.1


def test_other_steps_stretch_the_limits_of_a_distance():
    cells = sample(4, 120, seed=3)
    far = Scale(["a", "b", "c", "d"], positions=[5.0, 8.0, 11.0, 14.0])
    plain = estimate_metrics([find_metric("mae"), find_metric("bias")], confusion(cells))
    wide = estimate_metrics(
        [find_metric("mae"), find_metric("bias")], ConfusionMatrix.from_counts(cells, far)
    )
    for name in ("mae", "bias"):
        expected = 3 * plain[name].low, 3 * plain[name].high
        assert (wide[name].low, wide[name].high) == pytest.approx(expected, rel=1e-9)
