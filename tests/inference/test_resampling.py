"""Resampling: what is drawn, undefined resamples, seeds, memory, clusters."""

import itertools
import math
import os
import threading
import tracemalloc

import numpy as np
import pytest
from bootstrap_cases import COUNT, METRICS_OF_TEN, TABLES, drawn_values, grouped, values_of
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from oracles import (
    TEN,
    confusion,
    disagreements,
    group_bootstrap,
    item_bootstrap,
    sample,
    spelled,
)
from strategies import METRICS, tables

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.resampling import BLOCK_SIZE, Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric
from ordinate.results import DEFAULT_METRICS

# --- what is drawn -------------------------------------------------------------------------------


@given(table=tables(largest=9), seed=st.integers(0, 9), stratified=st.booleans())
@examples(60)
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
@examples(10)
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
@examples(25)
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
    with pytest.raises(BadOption, match="Clusters are drawn whole"):
        make_resampler(batch, stratified=True)
