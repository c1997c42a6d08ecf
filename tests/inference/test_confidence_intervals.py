"""Estimates: what every interval keeps to, whatever the metric, the table and the method."""

import math
import warnings

import numpy as np
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from interval_cases import QUICK, TABLE
from law_examples import examples
from naive import NAIVE
from oracles import confusion, labels, sample
from strategies import METRICS, counts, scale_of, tables

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.interval_methods import NONDEGENERATE_METHODS
from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

HOLDING = {*NONDEGENERATE_METHODS, "delta", "t"}  # methods whose limits hold the value


pytestmark = pytest.mark.usefixtures("no_coverage_warnings")


def check(metric, found):
    """What any estimate keeps to."""
    low, high = metric.bounds
    if found.method is None:
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert found.note
        return
    assert not math.isnan(found.value)
    assert low - 1e-12 <= found.low <= found.high <= high + 1e-12
    assert 0 <= found.undefined_share <= 1
    if found.method in HOLDING or found.note == "BCa is undefined here":
        assert found.low <= found.value <= found.high


# --- any table -----------------------------------------------------------------------------------


@given(table=tables(), seed=st.integers(0, 5))
@examples(80)
def test_default_limits_are_in_order_within_bounds_and_hold_the_value(table, seed):
    found = estimate_metrics(METRICS, table, ConfidenceIntervals(resamples=100, seed=seed))
    assert list(found) == [metric.expression for metric in METRICS]
    for metric in METRICS:
        check(metric, found[metric.expression])


@pytest.mark.parametrize("method", ["percentile", "bca", "dirichlet", "jeffreys"])
@given(table=tables(), stratified=st.booleans())
@examples(25)
def test_limits_of_draws_are_in_order_and_within_bounds(method, table, stratified):
    found = estimate_metrics(
        METRICS, table, ConfidenceIntervals(method=method, resamples=100, stratified=stratified)
    )
    for metric in METRICS:
        check(metric, found[metric.expression])


@given(table=tables(), stratified=st.booleans())
@examples(40)
def test_delta_limits_are_in_order_within_bounds_and_hold_the_value(table, stratified):
    smooth = [metric for metric in METRICS if metric.smooth]
    found = estimate_metrics(
        smooth, table, ConfidenceIntervals(method="delta", stratified=stratified)
    )
    for metric in smooth:
        check(metric, found[metric.expression])


@given(table=tables())
@examples(40)
def test_limits_of_a_mean_distance_are_distances_that_the_scale_has(table):
    """Nothing is farther off than the two ends of the scale."""
    span = table.scale.at[-1] - table.scale.at[0]
    names = ("mae", "rmse", "macro_mae", "max_mae")
    for name, result in estimate_metrics(
        [find_metric(name) for name in names], table, QUICK
    ).items():
        if table.n > 1 or result.method is not None:
            assert 0 <= result.low <= result.high <= span + 1e-9, name


DISTANCES = [metric for metric in METRICS if metric.family == "distance"]


def attainable(metric, at):
    """How far one item can be off: from one end of the scale to the other, and back."""
    last = len(at) - 1
    ways = (([0], [last]), ([last], [0]))
    ends = [NAIVE[metric.name](*way, at, **metric.options) for way in ways]
    low, high = metric.bounds
    return (min(ends) if math.isinf(low) else low), (max(ends) if math.isinf(high) else high)


def check_attainable(metric, found, at):
    low, high = attainable(metric, at)
    if found.method is not None:
        assert low - 1e-9 <= found.low <= found.high <= high + 1e-9, (metric.expression, found)


@pytest.mark.parametrize("method", [None, "percentile", "bca", "dirichlet", "jeffreys", "delta"])
@given(table=tables(largest=3), stratified=st.booleans())
@examples(20)
def test_limits_of_distances_are_distances_that_the_scale_has(method, table, stratified):
    metrics = [metric for metric in DISTANCES if metric.smooth or method != "delta"]
    how = ConfidenceIntervals(method=method, resamples=100, stratified=stratified)
    found = estimate_metrics(metrics, table, how)
    for metric in metrics:
        check_attainable(metric, found[metric.expression], table.scale.at)


@given(seed=st.integers(0, 10**6), count=st.integers(2, 6), at=st.sampled_from([None, [0, 1, 5]]))
@examples(25)
def test_limits_of_distances_of_groups_and_weights_are_such_distances(seed, count, at):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, (count, 3, 3))
    cells[0, 0, 0] += 1
    gold, predicted = (labels(rng.integers(0, 3, 2 * count)) for _ in range(2))
    weighted = ConfusionMatrix.of(gold, predicted, scale_of(3, at), rng.lognormal(0, 2, 2 * count))
    for source in (confusion(cells, at), weighted):
        found = estimate_metrics(DISTANCES, source, QUICK)
        for metric in DISTANCES:
            check_attainable(metric, found[metric.expression], source.scale.at)


@pytest.mark.parametrize("at", [None, [0.0, 1.0, 2.5, 7.0]])
@pytest.mark.parametrize("metric", DISTANCES, ids=[m.expression for m in DISTANCES])
def test_a_limit_that_would_go_beyond_the_scale_ends_with_it(metric, at):
    """All but one of the items are as wrong as can be: the delta method alone knows no end."""
    table = confusion([[1, 0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], at)
    if not metric.smooth or math.isfinite(metric.bounds[1]):
        return
    found = estimate_metrics([metric], table, ConfidenceIntervals(method="delta"))[
        metric.expression
    ]
    assert found.high == pytest.approx(attainable(metric, table.scale.at)[1], rel=1e-12)
    assert found.low < found.value < found.high


@given(scale=st.integers(2, 4).map(scale_of), data=st.data())
@examples(25)
def test_unanswered_items_give_an_interval_or_a_reason(scale, data):
    size = len(scale)
    silent = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    table = ConfusionMatrix.from_counts(data.draw(counts(size)), scale, silent)
    found = estimate_metrics(METRICS, table, QUICK)
    for metric in METRICS:
        result = found[metric.expression]
        check(metric, result)
        if any(silent) and not metric.takes_unanswered:
            assert result.note == "it has no meaning for items without a prediction"
            assert math.isnan(result.value)


@given(data=st.data(), size=st.integers(2, 3), count=st.integers(2, 35))
@examples(25)
def test_limits_of_groups_are_in_order_and_within_bounds(data, size, count):
    seed = data.draw(st.integers(0, 10**6))
    cells = np.random.default_rng(seed).integers(0, 3, (count, size, size))
    cells[0, 0, 0] += 1
    found = estimate_metrics(METRICS, confusion(cells), QUICK)
    for metric in METRICS:
        check(metric, found[metric.expression])


@given(data=st.data(), n=st.integers(2, 30))
@examples(25)
def test_limits_of_weights_are_in_order_and_within_bounds(data, n):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    gold, predicted = ([f"L{k}" for k in rng.integers(0, 3, n)] for _ in range(2))
    table = ConfusionMatrix.of(gold, predicted, scale_of(3), rng.lognormal(0, 2, n))
    found = estimate_metrics(METRICS, table, QUICK)
    for metric in METRICS:
        check(metric, found[metric.expression])


CORNERS = {
    "one right item": [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
    "one wrong item": [[0, 0, 1], [0, 0, 0], [0, 0, 0]],
    "two right items": [[1, 0, 0], [0, 0, 0], [0, 0, 1]],
    "two wrong items": [[0, 1, 0], [0, 0, 0], [0, 1, 0]],
    "one prediction": [[0, 3, 0], [0, 9, 0], [0, 2, 0]],
    "one gold level": [[0, 0, 0], [3, 9, 1], [0, 0, 0]],
    "reversed": [[0, 0, 9], [0, 9, 0], [9, 0, 0]],
    "perfect": [[9, 0, 0], [0, 9, 0], [0, 0, 9]],
    "one of a million": [[10**6, 0, 0], [0, 10**6, 1], [0, 0, 10**6]],
    "huge": [[10**12, 10**11, 0], [10**10, 10**12, 3], [1, 0, 10**9]],
    "independent": [[16, 8, 4], [8, 4, 2], [4, 2, 1]],
    "almost independent": [[25, 26, 0], [24, 25, 0], [0, 0, 0]],
    "equal margins": [[500, 500, 1], [500, 500, 0], [0, 1, 500]],
}


corners = each_case("cells", CORNERS)


@corners
@pytest.mark.parametrize("method", [None, "percentile", "bca", "dirichlet", "jeffreys", "delta"])
@pytest.mark.parametrize("stratified", [False, True])
def test_corners_have_an_interval_or_a_reason_and_never_a_warning(cells, method, stratified):
    table = confusion(cells)
    metrics = [metric for metric in METRICS if metric.smooth or method != "delta"]
    how = ConfidenceIntervals(method=method, resamples=100, stratified=stratified)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimate_metrics(metrics, table, how)
    for metric in metrics:
        check(metric, found[metric.expression])


@corners
def test_default_intervals_of_a_corner_are_never_certain_of_a_metric_that_could_move(cells):
    """With more than one gold level and less than a billion items, no default interval is a point.

    Given one gold level, some metrics (the information, closeness beyond chance) cannot move.
    """
    table = confusion(cells)
    if (table.gold > 0).sum() < 2:
        return
    found = estimate_metrics(METRICS, table, ConfidenceIntervals(resamples=300))
    for name, result in found.items():
        if result.method is not None and table.total < 1e9 and name != "accuracy_within(n=2)":
            assert result.width > 0, (name, result)


# --- levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, "percentile", "bca", "delta", "dirichlet", "jeffreys"])
def test_a_higher_level_never_gives_a_narrower_interval(method):
    metrics = [metric for metric in METRICS if metric.smooth or method != "delta"]
    before = None
    for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        found = estimate_metrics(
            metrics, TABLE, ConfidenceIntervals(level=level, method=method, resamples=300)
        )
        for name, result in found.items():
            if before is not None and not math.isnan(result.low):
                assert result.low <= before[name].low + 1e-12, name
                assert before[name].high <= result.high + 1e-12, name
        before = found


def test_more_items_give_narrower_intervals():
    metrics = [metric for metric in METRICS if metric.smooth]
    small, large = (
        estimate_metrics(
            metrics, confusion(TABLE.counts * factor), ConfidenceIntervals(resamples=500)
        )
        for factor in (1, 25)
    )
    for metric in metrics:
        name = metric.expression
        # a fifth, up to Monte-Carlo noise and the small table's own bias
        assert large[name].width < small[name].width / 3, name


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_of_large_tables_agree_across_methods(method):
    table = confusion(sample(4, 20_000, seed=3, noise=1.2))
    smooth = [m for m in list_metrics() if m.smooth and not m.required and m.name != "rnod"]
    normal = estimate_metrics(smooth, table, ConfidenceIntervals(method="delta"))
    drawn = estimate_metrics(smooth, table, ConfidenceIntervals(method=method, resamples=4000))
    for metric in smooth:
        first, second = normal[metric.name], drawn[metric.name]
        assert second.width == pytest.approx(first.width, rel=0.08), metric.name
        assert abs(second.low - first.low) < 0.15 * first.width, metric.name
