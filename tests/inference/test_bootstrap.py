"""Drawing cells is drawing items: the bootstrap of a table against the bootstrap of its items."""

import itertools
import math
import os
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import (
    TEN,
    confusion,
    corrected_limits,
    disagreements,
    group_bootstrap,
    item_bootstrap,
    naive_value,
    sample,
    skewness,
    spelled,
    without_each,
)
from scipy import stats
from strategies import METRICS, scale_of, tables

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.bootstrap import bca_interval, estimate_acceleration, percentile_interval
from ordinate.inference.resampling import BLOCK_SIZE, Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric
from ordinate.results import DEFAULT_METRICS
from ordinate.summaries import ConfusionMatrix

METRICS_OF_TEN = [find_metric(name) for name in TEN]
TABLES = {
    "60 items, K = 3, unbalanced": confusion([[2, 1, 0], [4, 21, 3], [1, 5, 23]]),
    "200 items, K = 5": confusion(sample(5, 200, seed=5)),
    "400 items, K = 6": confusion(sample(6, 400, seed=6, noise=1.5)),
}
COMPARISONS = len(TEN) * len(TABLES)
COUNT = 3000

every_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
every_of_ten = pytest.mark.parametrize("name", TEN)


def drawn_values(table, *, count=COUNT, seed=1, stratified=False):
    redraw = make_resampler(table, stratified=stratified)
    return resample_metrics(METRICS_OF_TEN, table, redraw, Resampling(count, seed))


def values_of(table, cells):
    """The ten metrics of tables that somebody else drew."""
    batch = table.with_cells(cells)
    return {metric.expression: np.asarray(metric(batch)) for metric in METRICS_OF_TEN}


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
    table = ConfusionMatrix.from_counts(scale, [[9, 3, 0], [2, 14, 4], [0, 5, 11]], [2, 6, 4])
    names = ["accuracy", "macro_accuracy", "mae", "cem_ord", "f1_macro"]
    metrics = [find_metric(name) for name in names]
    cells = resample_metrics(metrics, table, make_resampler(table), Resampling(COUNT, 3))
    batch = table.with_cells(item_bootstrap(3, *spelled(table), count=COUNT, seed=4))
    found = {m.name: disagreements(cells[m.name], m(batch), len(names)) for m in metrics}
    assert not any(found.values()), found


# --- what is drawn -------------------------------------------------------------------------------


@given(table=tables(largest=9), seed=st.integers(0, 9), stratified=st.booleans())
@settings(max_examples=60)
def test_draws_keep_the_number_of_items_and_stay_in_filled_cells(table, seed, stratified):
    redraw = make_resampler(table, stratified=stratified)
    cells = redraw(np.random.default_rng(seed), 50)
    assert cells.shape == (50, *table.weights.shape)
    assert (cells.sum(axis=(1, 2)) == table.total).all()
    assert (cells == np.floor(cells)).all()
    assert not cells[:, table.weights == 0].any()
    if stratified:
        assert (cells.sum(axis=-1) == table.gold).all()


@given(table=tables(largest=9))
@settings(max_examples=10)
def test_plain_draws_do_not_keep_the_gold_totals(table):
    if (table.gold > 0).sum() > 1 and table.total > 4:
        cells = make_resampler(table)(np.random.default_rng(0), 100)
        assert (cells.sum(axis=-1) != table.gold).any()


def test_a_cell_is_drawn_as_often_and_as_variably_as_a_binomial():
    table = TABLES["60 items, K = 3, unbalanced"]
    count, n = 20_000, table.total
    cells = make_resampler(table)(np.random.default_rng(5), count)
    share = table.weights / n
    error = np.sqrt(n * share * (1 - share) / count)
    assert (np.abs(cells.mean(axis=0) - table.weights) <= 4.5 * error).all()
    spread = n * share * (1 - share)
    assert np.allclose(cells.var(axis=0), spread, rtol=0.1)


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
@settings(max_examples=12)
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


def grouped(size, n, count, seed):
    """Items, and a group of unequal size for each."""
    rng = np.random.default_rng(seed)
    gold, predicted = spelled(confusion(sample(size, n, seed, noise=1.5)))
    groups = rng.choice(count, n, p=np.arange(1, count + 1) / (count * (count + 1) / 2))
    groups = np.unique(groups, return_inverse=True)[1]
    cells = np.zeros((groups.max() + 1, size, size))
    np.add.at(cells, (groups, gold, predicted), 1)
    return gold, predicted, groups, confusion(cells)


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
    table = ConfusionMatrix.from_counts(scale_of(4, at), sample(4, 150, seed=12, noise=1.4))
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
@settings(max_examples=100)
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
@settings(max_examples=25)
def test_percentiles_in_place_of_bca_always_hold_the_value(table, stratified):
    how = ConfidenceIntervals(method="bca", resamples=100, stratified=stratified)
    for name, found in estimate_metrics(METRICS, table, how).items():
        if found.method == "percentile":
            assert found.note == "BCa is undefined here", name
            assert found.low <= found.value <= found.high, name


@given(values=st.lists(st.floats(-5, 5), min_size=3, max_size=50), level=st.floats(0.5, 0.99))
@settings(max_examples=50)
def test_percentiles_leave_equal_shares_on_both_sides(values, level):
    array = np.array(values)
    low, high = percentile_interval(array, level)
    outside = (1 - level) / 2 * (len(array) - 1) + 1
    assert array.min() <= low <= high <= array.max()
    assert (array < low).sum() <= outside
    assert (array > high).sum() <= outside


# --- undefined resamples
# -----------------------------------------------------------------------------


def share_undefined(gold, predicted):
    """The exact share of bootstrap samples without two levels on each side, by listing them all."""
    n = len(gold)
    lost = sum(
        len({gold[i] for i in who}) < 2 or len({predicted[i] for i in who}) < 2
        for who in itertools.product(range(n), repeat=n)
    )
    return lost / n**n


@pytest.mark.parametrize(
    "cells",
    [[[0, 3], [1, 3]], [[0, 0, 2], [0, 0, 2], [0, 1, 1]], [[1, 2], [0, 3]]],
)
def test_undefined_draws_are_counted_as_often_as_they_must_occur(cells):
    table = confusion(cells)
    count = 20_000
    expected = share_undefined(*(side.tolist() for side in spelled(table)))
    assert 0.1 < expected < 0.5
    how = ConfidenceIntervals(method="percentile", resamples=count)
    found = estimate_metrics([find_metric("kendall_tau_b")], table, how)["kendall_tau_b"]
    error = math.sqrt(expected * (1 - expected) / count)
    assert abs(found.undefined_share - expected) <= 4 * error
    assert -1 <= found.low <= found.high <= 1


def test_undefined_draws_are_left_out_of_the_limits():
    table = confusion([[0, 12], [1, 11]])
    metric = find_metric("kendall_tau_b")
    values = resample_metrics([metric], table, make_resampler(table), Resampling(2000, 0))[
        metric.name
    ]
    found = estimate_metrics([metric], table, ConfidenceIntervals(method="percentile"))[metric.name]
    assert found.undefined_share == pytest.approx(np.isnan(values).mean(), abs=1e-15)
    assert 0.3 < found.undefined_share < 0.45
    ends = np.quantile(values[~np.isnan(values)], [0.025, 0.975])
    assert [found.low, found.high] == pytest.approx(ends)


def test_a_metric_that_most_draws_leave_undefined_has_no_interval_and_still_says_how_many():
    table = confusion([[0, 1], [1, 10]])  # defined only if both odd items are drawn
    n = table.total
    expected = 2 * (1 - 1 / n) ** n - (1 - 2 / n) ** n
    found = estimate_metrics(
        [find_metric("pearson")], table, ConfidenceIntervals(method="percentile")
    )["pearson"]
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.method is None
    assert found.note == "it is undefined in most of the resamples"
    assert found.undefined_share == pytest.approx(expected, abs=4 * math.sqrt(0.24 / 2000))


# --- one seed, one answer ------------------------------------------------------------------------


def many_blocks(table):
    """A number of resamples that takes more than two blocks."""
    return 2 * (BLOCK_SIZE // table.weights.size) + 100


@pytest.mark.parametrize("method", ["percentile", "bca", "dirichlet", "jeffreys"])
def test_the_number_of_cores_changes_nothing(monkeypatch, method):
    table = confusion(sample(7, 300, seed=1))
    how = ConfidenceIntervals(method=method, resamples=many_blocks(table), seed=4)
    metrics = [find_metric(name) for name in DEFAULT_METRICS]
    found = []
    for cores in (1, 8, None):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        found.append(estimate_metrics(metrics, table, how))
    assert found[0] == found[1] == found[2]


def test_blocks_are_really_drawn_by_several_threads_and_keep_their_order(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    names, gate = set(), threading.Barrier(2, timeout=20)

    def work(rng, size):
        if len(names) < 2:
            names.add(threading.current_thread().name)
            gate.wait()
        return rng.random(), size

    resamples = Resampling(1000, 7)
    found = resamples.run_in_blocks(BLOCK_SIZE // 250, work)
    assert len(names) == 2
    assert [size for _, size in found] == [250] * 4
    expected = [np.random.default_rng([7, index]).random() for index in range(4)]
    assert [value for value, _ in found] == expected


@given(
    count=st.integers(100, 3000),
    numbers=st.sampled_from([0, 1, 56, 999, BLOCK_SIZE, 3 * BLOCK_SIZE]),
)
@settings(max_examples=25)
def test_blocks_hold_all_draws_and_never_too_many_numbers(count, numbers):
    sizes = Resampling(count).run_in_blocks(numbers, lambda _, size: size)
    assert sum(sizes) == count
    assert all(size == 1 or size * numbers <= BLOCK_SIZE for size in sizes)


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    table = TABLES["200 items, K = 5"]
    first, again, other = (drawn_values(table, count=200, seed=seed) for seed in (1, 1, 2))
    for name in TEN:
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


def test_the_seed_of_a_block_is_not_the_seed_of_another_run():
    table = confusion(sample(7, 300, seed=1))
    size = BLOCK_SIZE // table.weights.size
    (one,) = resample_metrics(
        [find_metric("mae")], table, make_resampler(table), Resampling(2 * size, 0)
    ).values()
    (two,) = resample_metrics(
        [find_metric("mae")], table, make_resampler(table), Resampling(2 * size, 1)
    ).values()
    halves = [one[:size], one[size:], two[:size], two[size:]]
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(halves, 2))


def test_a_metric_has_the_same_interval_in_any_company():
    table = TABLES["200 items, K = 5"]
    for method in ("percentile", "bca", "dirichlet", "jeffreys"):
        how = ConfidenceIntervals(method=method, resamples=500)
        together = estimate_metrics(METRICS_OF_TEN, table, how)
        for metric in METRICS_OF_TEN:
            assert estimate_metrics([metric], table, how)[metric.name] == together[metric.name]
        backwards = estimate_metrics(METRICS_OF_TEN[::-1], table, how)
        assert backwards == together


def test_draws_leave_the_global_generator_and_the_table_alone():
    table = TABLES["200 items, K = 5"]
    before, state = table.weights.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    estimate_metrics(METRICS_OF_TEN, table, ConfidenceIntervals(method="bca", resamples=200))
    assert np.array_equal(table.weights, before)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("method", ["percentile", "bca", "dirichlet"])
def test_whoever_waits_hears_how_much_is_done(method):
    table, heard = confusion(sample(7, 300, seed=1)), []
    how = ConfidenceIntervals(method=method, resamples=many_blocks(table))
    found = estimate_metrics([find_metric("mae")], table, how, heard.append)
    assert heard == pytest.approx([1 / 3, 2 / 3, 1])
    assert found == estimate_metrics([find_metric("mae")], table, how)


def test_no_metrics_need_no_draws():
    table = TABLES["200 items, K = 5"]
    assert estimate_metrics([], table) == {}
    assert resample_metrics([], table, make_resampler(table), Resampling()) == {}


# --- 8: memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["percentile", "bca", "dirichlet"])
def test_twenty_thousand_draws_stay_below_100_megabytes(method):
    table = confusion(sample(7, 2000, seed=2))
    metrics = [find_metric(name) for name in DEFAULT_METRICS]
    tracemalloc.start()
    try:
        estimate_metrics(metrics, table, ConfidenceIntervals(method=method, resamples=20_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.slow
def test_all_metrics_and_many_groups_stay_below_100_megabytes():
    rng = np.random.default_rng(0)
    cells = rng.multinomial(6, np.full(49, 1 / 49), 5000).reshape(5000, 7, 7)
    metrics = [metric for metric in METRICS if metric.expression != "uoc"]
    batch = confusion(cells)
    tracemalloc.start()
    try:
        estimate_metrics(metrics, batch, ConfidenceIntervals(resamples=2000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


# --- groups are drawn whole ----------------------------------------------------------------------


def test_drawing_group_tables_has_the_distribution_of_drawing_groups_of_items():
    gold, predicted, groups, batch = grouped(4, 260, 35, seed=6)
    redraw = make_resampler(batch)
    tables_drawn = resample_metrics(
        METRICS_OF_TEN, batch.pooled, redraw, Resampling(COUNT, 1), numbers=35
    )
    items = group_bootstrap(4, gold, predicted, groups, count=COUNT, seed=2)
    naive = values_of(batch.pooled, items)
    found = {name: disagreements(tables_drawn[name], naive[name], len(TEN)) for name in TEN}
    assert not any(found.values()), found


def test_the_same_rule_tells_groups_from_items():
    gold, _, groups, _ = grouped(4, 260, 35, seed=6)
    shift = np.random.default_rng(0).integers(-1, 2, groups.max() + 1)
    predicted = np.clip(gold + shift[groups], 0, 3)  # all items of a group err alike
    whole = group_bootstrap(4, gold, predicted, groups, count=COUNT, seed=2)
    single = item_bootstrap(4, gold, predicted, count=COUNT, seed=3)
    table = confusion(np.zeros((4, 4)) + 1)
    first, second = (find_metric("mae")(table.with_cells(cells)) for cells in (whole, single))
    assert "deviation" in disagreements(first, second, len(TEN))


def test_groups_cannot_be_stratified():
    batch = grouped(3, 60, 9, seed=1)[3]
    with pytest.raises(BadOption, match="Groups are drawn whole"):
        make_resampler(batch, stratified=True)
