"""Systems that exchange predictions: every swap written out, whatever the order of systems."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import panel_of, sampled
from system_draws import METRICS, NAMES, PANEL, SIZE

from ordinate.inference import prediction_swaps, randomization
from ordinate.inference.paired_tests import permutation_test
from ordinate.inference.prediction_swaps import BatchSwaps, choose_swaps
from ordinate.inference.randomization import compute_p_values, randomize_differences
from ordinate.inference.resampling import Resampling
from ordinate.inference.system_differences import list_pairs
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix

LEVELS = st.integers(0, SIZE - 1)


def randomized(panel, metrics=METRICS, count=199, seed=0):
    pairs = [list_pairs(len(panel.systems))] * len(metrics)
    return randomize_differences(panel, metrics, pairs, Resampling(count, seed))


def value_of(metric, gold, predicted, scale):
    cells = np.zeros((len(scale), len(scale) + 1))
    np.add.at(cells, (gold, predicted), 1.0)
    return float(metric.size(metric(ConfusionMatrix(scale, cells, cells, cells))))


def every_difference(panel, metric, gold, systems, groups):
    """The difference of each pair for every way in which coins of the units can fall."""
    units = sorted(set(groups))
    rows = []
    for coins in itertools.product((0, 1), repeat=len(units)):
        swapped = [coins[units.index(group)] for group in groups]
        row = []
        for one, other in itertools.combinations(systems.values(), 2):
            both = zip(one, other, swapped, strict=True)
            taken = [(y, x) if swap else (x, y) for x, y, swap in both]
            first, second = (
                value_of(metric, gold, answers, panel.scale) for answers in zip(*taken, strict=True)
            )
            row.append(first - second)
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("clustered", [False, True], ids=["items", "clusters"])
@pytest.mark.parametrize("name", ["mae", "quadratic_kappa", "f1_macro", "spearman", "bias"])
@given(data=st.data())
@examples(8)
def test_few_units_are_swapped_in_every_way(clustered, name, data):
    count = data.draw(st.integers(3, 6), label="items")
    columns = st.lists(LEVELS, min_size=count, max_size=count)
    gold, *answers = (data.draw(columns) for _ in range(4))
    systems = dict(zip("abc", answers, strict=True))
    groups = [k // 2 for k in range(count)] if clustered else list(range(count))
    panel = panel_of(gold, systems, SIZE, groups=groups if clustered else None)
    metric = find_metric(name)
    expected = every_difference(panel, metric, gold, systems, groups)
    if np.isnan(expected[0]).any():
        return
    (found,) = randomized(panel, [metric])
    assert found.exact
    assert found.resamples is None
    assert found.observed == pytest.approx(expected[0], abs=1e-12)
    theirs = compute_p_values(expected[0], expected, exact=True)
    ours = found.compute_p_values()
    assert ours.own == pytest.approx(theirs.own, abs=1e-12)
    assert ours.adjusted == pytest.approx(theirs.adjusted, abs=1e-12)


@pytest.mark.parametrize("clustered", [False, True], ids=["items", "clusters"])
@pytest.mark.parametrize("name", ["cem_ord", "mcc"])
def test_drawn_swaps_have_the_p_value_of_all_swaps(clustered, name):
    gold, systems = sampled(SIZE, 40, 8, [0.6, 0.9, 0.9])
    groups = [k % 15 for k in range(40)] if clustered else None
    panel, metric = panel_of(gold, systems, SIZE, groups=groups), find_metric(name)
    (found,) = randomized(panel, [metric], count=9_999)
    assert not found.exact
    own = found.compute_p_values().own
    for pair, names in enumerate(itertools.combinations(systems, 2)):
        test = permutation_test(metric, panel.pair_systems(*names, grouped=clustered), seed=5)
        error = (test.p * (1 - test.p) * (1 / 9_999 + 1 / (test.resamples or 1e9))) ** 0.5
        assert own[pair] == pytest.approx(test.p, abs=4 * error + 1e-3)


def test_every_pair_swaps_by_the_same_coins():
    """Differences of linear metrics add up: a - b and b - c make a - c in every resample."""
    for metric, found in zip(METRICS, randomized(PANEL), strict=True):
        if metric.linear and metric.direction != "zero":
            place = {pair: k for k, pair in enumerate(itertools.combinations(range(4), 2))}
            moved = found.randomized
            there = moved[:, place[0, 1]] + moved[:, place[1, 2]]
            assert there == pytest.approx(moved[:, place[0, 2]], abs=1e-12)


@pytest.mark.parametrize("how", ["items", "groups"])
def test_the_order_of_systems_does_not_matter(how):
    gold, systems = sampled(SIZE, 90, 9, [0.5, 0.8, 1.1, 1.4])
    more = {"groups": [k % 30 for k in range(90)]} if how == "groups" else {}
    straight, reverse = (
        randomized(panel_of(gold, {name: systems[name] for name in names}, SIZE, **more))
        for names in (sorted(systems), sorted(systems, reverse=True))
    )
    backwards = [*itertools.combinations(range(4), 2)]
    backwards = [backwards.index((3 - j, 3 - i)) for i, j in backwards]
    for one, other in zip(straight, reverse, strict=True):
        assert one.observed == pytest.approx(-other.observed[backwards], abs=1e-12)
        assert one.randomized == pytest.approx(-other.randomized[:, backwards], abs=1e-12)
        ours, theirs = one.compute_p_values(), other.compute_p_values()
        assert ours.own.tolist() == theirs.own[backwards].tolist()
        assert ours.adjusted.tolist() == theirs.adjusted[backwards].tolist()


def test_a_system_more_does_not_disturb_a_pair():
    gold, systems = sampled(SIZE, 13, 4, [0.5, 0.9, 2.0])
    alone = {name: systems[name] for name in ("s0", "s1")}
    metric = find_metric("mae")
    (two,), (three,) = (
        randomized(panel_of(gold, some, SIZE), [metric]) for some in (alone, systems)
    )
    assert two.exact
    assert three.exact
    assert two.compute_p_values().own[0] == pytest.approx(three.compute_p_values().own[0])
    gold, systems = sampled(SIZE, 200, 4, [0.5, 0.6, 2.0])
    alone = {name: systems[name] for name in ("s0", "s1")}
    (two,), (three,) = (
        randomized(panel_of(gold, some, SIZE), [metric], 4_999) for some in (alone, systems)
    )
    first, second = two.compute_p_values().own[0], three.compute_p_values().own[0]
    assert first == pytest.approx(second, abs=4 * (0.5 / 4_999) ** 0.5)


@pytest.mark.parametrize("how", ["items", "whole", "groups"])
def test_swaps_do_not_depend_on_the_number_of_threads(monkeypatch, how):
    gold, systems = sampled(SIZE, 120, 9, [0.6, 0.9, 1.2])
    more = {
        "items": {},
        "whole": {"weights": [1 + 20 * (k % 3) for k in range(120)]},
        "groups": {"groups": [k % 40 for k in range(120)]},
    }[how]
    panel, found = panel_of(gold, systems, SIZE, **more), []
    monkeypatch.setattr("ordinate.inference.randomization.LARGE_BLOCK_SIZE", 5_000)
    for workers in (1, 2, 7):
        monkeypatch.setattr(os, "cpu_count", lambda workers=workers: workers)
        found.append(randomized(panel))
    for one, two, seven in zip(*found, strict=True):
        assert np.array_equal(one.randomized, two.randomized)
        assert np.array_equal(one.randomized, seven.randomized)


@pytest.mark.parametrize("how", ["items", "groups", "batches"])
def test_sums_of_rows_are_sums_of_cells(monkeypatch, how):
    if how == "batches":
        monkeypatch.setattr(prediction_swaps, "MOST_ROWS", 5)
    gold, systems = sampled(SIZE, 60, 4, [0.7, 0.8, 0.9])
    weights = [1 + 30 * (k % 10 == 0) for k in range(60)]
    groups = [k // 3 for k in range(60)] if how == "groups" else None
    panel = panel_of(gold, systems, SIZE, weights=weights, groups=groups)
    by_cell = randomized(panel)
    monkeypatch.setattr(randomization, "MOST_SUMMED_LEVELS", 1)
    by_row = randomized(panel)
    for one, other in zip(by_cell, by_row, strict=True):
        assert one.observed == pytest.approx(other.observed, abs=1e-12)
        assert one.randomized == pytest.approx(other.randomized, abs=1e-12)


def test_swaps_come_from_the_seed():
    one, two, three = (randomized(PANEL, seed=seed) for seed in (5, 5, 6))
    for index in range(len(NAMES)):
        assert np.array_equal(one[index].randomized, two[index].randomized)
        assert not np.array_equal(one[index].randomized, three[index].randomized)


def test_integer_weights_are_so_many_items_and_a_cluster_may_have_any_weights():
    gold, systems = sampled(SIZE, 5, 4, [0.9, 1.2])
    times = [1, 2, 1, 3, 1]
    repeated = {
        name: [x for x, n in zip(answers, times, strict=True) for _ in range(n)]
        for name, answers in systems.items()
    }
    often = [x for x, n in zip(gold, times, strict=True) for _ in range(n)]
    metric = find_metric("mae")
    (weighted,) = randomized(panel_of(gold, systems, SIZE, weights=times), [metric])
    (items,) = randomized(panel_of(often, repeated, SIZE), [metric])
    assert weighted.compute_p_values().own == pytest.approx(items.compute_p_values().own)
    groups, weights = [0, 0, 1, 2, 2], [0.5, 1.5, 2.0, 0.25, 1.0]
    (found,) = randomized(panel_of(gold, systems, SIZE, weights=weights, groups=groups), [metric])
    errors = [
        sum(w * (abs(a - y) - abs(b - y)) for a, b, y, w, g in rows if g == group)
        for group in range(3)
        for rows in [[*zip(*systems.values(), gold, weights, groups, strict=True)]]
    ]
    signs = np.array([*itertools.product((1,), (1, -1), (1, -1))])
    expected = np.abs(signs @ errors) / sum(weights)
    assert {*np.abs(found.randomized[:, 0]).round(12)} == {*expected.round(12)}


def test_batches_of_very_many_items_have_the_same_p_values(monkeypatch):
    gold, systems = sampled(SIZE, 3_000, 4, [0.7, 0.73, 0.9])
    weights = [1 + 40 * (k % 50 == 0) for k in range(3_000)]
    panel = panel_of(gold, systems, SIZE, weights=weights)
    metrics = [find_metric("mae"), find_metric("kendall_tau_b")]
    usual = randomized(panel, metrics, 4_999)
    monkeypatch.setattr("ordinate.inference.prediction_swaps.MOST_ROWS", 10)
    batches = randomized(panel, metrics, 4_999)
    assert isinstance(choose_swaps(panel, 0), BatchSwaps)
    for one, other in zip(usual, batches, strict=True):
        assert one.observed == pytest.approx(other.observed)
        spread = one.randomized.std(axis=0)
        assert other.randomized.std(axis=0) == pytest.approx(spread, rel=0.1)
        assert np.abs(other.randomized.mean(axis=0)).max() < 5 * spread.max() / 4_999**0.5
        assert other.compute_p_values().own == pytest.approx(one.compute_p_values().own, abs=0.05)
    (again,) = randomized(panel, metrics[:1], 4_999)
    assert np.array_equal(again.randomized, batches[0].randomized)


def test_a_batch_swaps_whole_and_rows_of_many_items_in_numbers(monkeypatch):
    monkeypatch.setattr("ordinate.inference.prediction_swaps.BATCHES", 3)
    gold, systems = sampled(SIZE, 30, 4, [0.7, 0.9])
    panel = panel_of(gold, systems, SIZE, weights=[1 + 30 * (k % 10 == 0) for k in range(30)])
    swaps = BatchSwaps(panel, seed=0)
    assert swaps.units == 3 + (panel.weights > 16).sum()
    everything = np.concatenate([np.ones(3), panel.weights[panel.weights > 16]])[None]
    whole = np.stack([panel.confusion_matrix(name).weights for name in systems])
    assert np.array_equal(swaps.count_matrices(everything)[0], whole)
    parts = [swaps.count_matrices(np.eye(swaps.units)[[k]])[0].sum() for k in range(3)]
    assert sum(parts) == 2 * panel.weights[panel.weights <= 16].sum()
