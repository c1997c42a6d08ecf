"""Drawing cells is drawing items: the bootstrap of a table against the bootstrap of its items."""

import math

import numpy as np
import pytest
from bootstrap_cases import COUNT, TABLES, drawn_values, grouped, values_of
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples
from oracles import (
    TEN,
    confusion,
    corrected_limits,
    disagreements,
    item_bootstrap,
    naive_value,
    sample,
    skewness,
    spelled,
    without_each,
)
from scipy import stats
from strategies import METRICS, scale_of, tables

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.bootstrap import (
    bca_interval,
    estimate_acceleration,
    percentile_interval,
    studentised_interval,
)
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix

COMPARISONS = len(TEN) * len(TABLES)


every_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


every_of_ten = pytest.mark.parametrize("name", TEN)


# --- 1: cells and items --------------------------------------------------------------------------


@every_table
def test_drawing_cells_has_the_distribution_of_drawing_items(table):
    """The rule is that of `disagreements`, for 30 comparisons."""
    size = len(table.scale)
    cells = drawn_values(table)
    items = values_of(table, item_bootstrap(size, *spelled(table), count=COUNT, seed=2))
    found = {name: disagreements(cells[name], items[name], COMPARISONS) for name in TEN}
    assert not any(found.values()), found


@every_table
def test_the_same_rule_rejects_drawing_twice_as_many_items(table):
    size, (gold, predicted) = len(table.scale), spelled(table)
    cells = drawn_values(table)
    twice = item_bootstrap(size, gold, predicted, count=COUNT, seed=2, draw=2 * len(gold))
    wrong = values_of(table, twice)
    for name in TEN:
        assert "deviation" in disagreements(cells[name], wrong[name], COMPARISONS), name


def test_the_same_rule_tells_stratified_draws_from_plain_ones():
    table = TABLES["200 items, K = 5"]
    plain, kept = drawn_values(table), drawn_values(table, seed=2, stratified=True)
    assert disagreements(plain["mutual_information"], kept["mutual_information"], COMPARISONS)


def test_the_same_rule_tells_a_slightly_better_system():
    table = TABLES["60 items, K = 3, unbalanced"]
    better = confusion([[2, 1, 0], [4, 22, 2], [1, 4, 24]])
    found, other = drawn_values(table), drawn_values(better, seed=2)
    assert "mean" in disagreements(found["accuracy"], other["accuracy"], COMPARISONS)


def test_stratified_cells_have_the_distribution_of_items_drawn_level_by_level():
    table = TABLES["60 items, K = 3, unbalanced"]
    size, (gold, predicted) = len(table.scale), spelled(table)
    parts = [
        item_bootstrap(size, gold[gold == level], predicted[gold == level], count=COUNT, seed=level)
        for level in range(size)
    ]
    cells = drawn_values(table, stratified=True)
    items = values_of(table, np.sum(parts, axis=0))
    found = {name: disagreements(cells[name], items[name], COMPARISONS) for name in TEN}
    assert not any(found.values()), found


def test_unanswered_items_are_drawn_like_all_others():
    scale = scale_of(3)
    table = ConfusionMatrix.from_counts([[9, 3, 0], [2, 14, 4], [0, 5, 11]], scale, [2, 6, 4])
    names = ["accuracy", "macro_accuracy", "mae", "cem_ord", "f1_macro"]
    metrics = [find_metric(name) for name in names]
    cells = resample_metrics(metrics, table, make_resampler(table), Resampling(COUNT, 3))
    batch = table.with_cells(item_bootstrap(3, *spelled(table), count=COUNT, seed=4))
    found = {m.name: disagreements(cells[m.name], m(batch), len(names)) for m in metrics}
    assert not any(found.values()), found


# --- 2: acceleration -----------------------------------------------------------------------------


@st.composite
def small_tables(draw):
    """At most 24 items, at least one of them wrong, so that the jackknife moves."""
    size = draw(st.integers(2, 4))
    n = draw(st.integers(6, 24))
    level = st.integers(0, size - 1)
    gold = draw(st.lists(level, min_size=n, max_size=n))
    predicted = draw(st.lists(level, min_size=n, max_size=n))
    cells = np.zeros((size, size))
    np.add.at(cells, (gold, predicted), 1)
    return confusion(cells)


@every_of_ten
@given(table=small_tables())
@examples(12)
def test_acceleration_is_that_of_deleting_item_by_item(name, table):
    gold, predicted = spelled(table)
    left = without_each(name, gold, predicted, np.arange(len(gold)), len(table.scale))
    found = estimate_acceleration(find_metric(name), table)
    if any(math.isnan(value) for value in left):
        assert math.isnan(found)
        return
    assume(np.std(left) > 1e-6)
    assert found == pytest.approx(skewness(left), rel=1e-12, abs=1e-13)


@every_of_ten
def test_acceleration_is_that_of_deleting_item_by_item_in_a_larger_table(name):
    table = confusion(sample(4, 45, seed=8, power=2.0))
    gold, predicted = spelled(table)
    left = without_each(name, gold, predicted, np.arange(len(gold)), 4)
    assert estimate_acceleration(find_metric(name), table) == pytest.approx(
        skewness(left), rel=1e-12
    )


@every_of_ten
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_acceleration_of_groups_is_that_of_deleting_group_by_group(name, seed):
    gold, predicted, groups, batch = grouped(3, 60, 9, seed)
    left = without_each(name, gold, predicted, groups, 3)
    assert estimate_acceleration(find_metric(name), batch) == pytest.approx(
        skewness(left), rel=1e-12
    )


def test_acceleration_of_groups_of_one_is_that_of_items():
    table = confusion(sample(3, 40, seed=4, noise=1.5))
    gold, predicted = spelled(table)
    cells = np.zeros((40, 3, 3))
    cells[np.arange(40), gold, predicted] = 1
    for name in TEN:
        one_by_one = estimate_acceleration(find_metric(name), confusion(cells))
        assert estimate_acceleration(find_metric(name), table) == pytest.approx(
            one_by_one, rel=1e-12
        ), name


def test_acceleration_of_weighted_groups_deletes_their_weights():
    rng = np.random.default_rng(0)
    gold, predicted, groups, batch = grouped(3, 50, 8, 5)
    weights = rng.lognormal(0, 1, 50)
    cells = np.zeros(batch.counts.shape)
    np.add.at(cells, (groups, gold, predicted), weights)
    error = np.abs(gold - predicted)
    left = [
        (weights * error)[groups != g].sum() / weights[groups != g].sum() for g in np.unique(groups)
    ]
    assert estimate_acceleration(find_metric("mae"), confusion(cells)) == pytest.approx(
        skewness(left), rel=1e-11
    )


def test_acceleration_is_undefined_where_the_jackknife_does_not_move_or_has_no_value():
    assert math.isnan(estimate_acceleration(find_metric("accuracy"), confusion(np.diag([5, 6]))))
    assert math.isnan(
        estimate_acceleration(find_metric("kendall_tau_b"), confusion([[0, 5], [1, 4]]))
    )
    assert math.isnan(estimate_acceleration(find_metric("mae"), confusion([[0, 1], [0, 0]])))


# --- 2: limits -----------------------------------------------------------------------------------


@every_of_ten
@every_table
def test_bca_limits_are_efrons(table, name):
    gold, predicted = spelled(table)
    size, metric = len(table.scale), find_metric(name)
    quick = name in {"accuracy", "accuracy_within", "mae", "macro_mae", "f1_macro"}
    if not quick and len(gold) > 100:
        return  # the naive jackknife would take minutes
    value = naive_value(name, gold, predicted, size)
    skew = skewness(without_each(name, gold, predicted, np.arange(len(gold)), size))
    values = resample_metrics([metric], table, make_resampler(table), Resampling(2000, 3))[name]
    for level in (0.5, 0.9, 0.99):
        expected = corrected_limits(values, value, skew, level)
        found = estimate_metrics(
            [metric], table, ConfidenceIntervals(level=level, method="bca", seed=3)
        )[name]
        assert found.method == "bca"
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9), level


@pytest.mark.parametrize("tie", [0.3, 0.1 + 0.2, 0.3 - 2**-52])
def test_bca_counts_a_tie_by_half_whatever_its_last_digit(tie):
    values = np.repeat([0.1, 0.2, tie, 0.4, 0.5], [10, 30, 60, 20, 30])
    assert bca_interval(values, 0.3, 0.0, 0.6) == pytest.approx(
        corrected_limits(values, 0.3, 0.0, 0.6)
    )


def test_bca_limits_are_scipys_up_to_the_luck_of_the_draws():
    """Errors on an uneven scale; SciPy resamples items. The bound is 4.5 Monte-Carlo errors.

    The error of a quantile is that of SciPy's own limits over 12 seeds, times the root of 2.
    """
    at = [0.0, 1.0, 2.7, 5.1]
    table = ConfusionMatrix.from_counts(sample(4, 150, seed=12, noise=1.4), scale_of(4, at))
    gold, predicted = spelled(table)
    errors = (np.abs(np.array(at)[gold] - np.array(at)[predicted]),)
    theirs = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        found = stats.bootstrap(errors, np.mean, n_resamples=4000, method="BCa", random_state=rng)
        theirs.append(found.confidence_interval)
    mean, spread = np.mean(theirs, axis=0), np.std(theirs, axis=0, ddof=1)
    ours = estimate_metrics(
        [find_metric("mae")], table, ConfidenceIntervals(method="bca", resamples=4000)
    )["mae"]
    allowed = 4.5 * spread * math.sqrt(1 + 1 / 12)
    assert (np.abs(np.array([ours.low, ours.high]) - mean) <= allowed).all()
    plain = estimate_metrics(
        [find_metric("mae")], table, ConfidenceIntervals(method="percentile", resamples=4000)
    )["mae"]
    assert plain.low < ours.low  # the correction moves the limits of a skewed metric to the right
    assert plain.high < ours.high


@given(
    values=st.lists(st.floats(-5, 5), min_size=20, max_size=60),
    skew=st.floats(-0.2, 0.2),
    level=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_bca_limits_are_in_order_and_among_the_values(values, skew, level):
    array = np.array(values)
    found = bca_interval(array, float(np.median(array)), skew, level)
    if found is not None:
        low, high = found
        assert array.min() <= low <= high <= array.max()


def test_bca_without_bias_and_acceleration_is_the_percentile_interval():
    values = np.random.default_rng(0).normal(size=1001)
    found = bca_interval(values, float(np.median(values)), 0.0, 0.9)
    assert found == pytest.approx(percentile_interval(values, 0.9), abs=1e-3)


@pytest.mark.parametrize("value", [-1.0, 2.0])
def test_bca_is_undefined_when_all_values_lie_on_one_side(value):
    assert bca_interval(np.linspace(0, 1, 50), value, 0.0, 0.95) is None
    assert bca_interval(np.linspace(0, 1, 50), 0.5, math.nan, 0.95) is None


def test_bca_is_undefined_where_its_curve_turns_back():
    values = np.append(np.zeros(1), np.ones(999))
    assert (
        bca_interval(values, 0.5, -0.4, 0.999) is None
        or bca_interval(values, 0.5, 0.4, 0.999) is None
    )


def test_an_undefined_bca_falls_back_to_percentiles_and_says_so():
    table = confusion([[0, 12], [1, 11]])  # without the one item, the rank correlation is undefined
    found = estimate_metrics(
        [find_metric("kendall_tau_b")], table, ConfidenceIntervals(method="bca")
    )["kendall_tau_b"]
    assert found.method == "percentile"
    assert found.note == "BCa is undefined here"
    plain = estimate_metrics(
        [find_metric("kendall_tau_b")], table, ConfidenceIntervals(method="percentile")
    )
    assert found.low <= found.value <= found.high
    assert (found.low, found.high) == (plain["kendall_tau_b"].low, plain["kendall_tau_b"].high)
    assert found.undefined_share == plain["kendall_tau_b"].undefined_share


@pytest.mark.parametrize("name", ["nmd", "rnod"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_percentiles_in_place_of_bca_are_extended_to_hold_the_value(name, level):
    """Gold and predictions are used alike, which no draw of millions of items repeats."""
    million = 10**6
    table = confusion(np.array([[4, 1, 0], [0, 4, 1], [1, 0, 4]]) * million)
    plain = estimate_metrics(
        [find_metric(name)], table, ConfidenceIntervals(method="percentile", level=level)
    )[name]
    found = estimate_metrics(
        [find_metric(name)], table, ConfidenceIntervals(method="bca", level=level)
    )[name]
    assert found.value == 0
    assert plain.low > 0  # percentiles alone would say that the value cannot be
    assert (found.method, found.note) == ("percentile", "BCa is undefined here")
    assert (found.low, found.high) == (0, plain.high)


@given(table=tables(largest=3), stratified=st.booleans())
@examples(25)
def test_percentiles_in_place_of_bca_always_hold_the_value(table, stratified):
    how = ConfidenceIntervals(method="bca", resamples=100, stratified=stratified)
    for name, found in estimate_metrics(METRICS, table, how).items():
        if found.method == "percentile":
            assert found.note == "BCa is undefined here", name
            assert found.low <= found.value <= found.high, name


@given(values=st.lists(st.floats(-5, 5), min_size=3, max_size=50), level=st.floats(0.5, 0.99))
@examples(50)
def test_percentiles_leave_equal_shares_on_both_sides(values, level):
    array = np.array(values)
    low, high = percentile_interval(array, level)
    outside = (1 - level) / 2 * (len(array) - 1) + 1
    assert array.min() <= low <= high <= array.max()
    assert (array < low).sum() <= outside
    assert (array > high).sum() <= outside


def test_resamples_say_how_many_standard_errors_a_value_is_off():
    ratios = np.linspace(-2.0, 3.0, 101)  # 95 % of them are between -1.875 and 2.875
    values = np.exp(0.1 * ratios)  # with errors of 0.1 on the log scale, as the bound at 0 asks for
    found = studentised_interval(1.0, 0.2, values, 0.1 * values, (0.0, math.inf), 0.95)
    assert found == pytest.approx((math.exp(-2.875 * 0.2), math.exp(1.875 * 0.2)))
    # a value nearer to the bound than its error stays on the plain scale, and inside
    near = studentised_interval(
        0.1, 0.2, 0.1 + 0.2 * ratios, np.full(101, 0.2), (0.0, math.inf), 0.95
    )
    assert near == pytest.approx((0.0, 0.1 + 1.875 * 0.2))
