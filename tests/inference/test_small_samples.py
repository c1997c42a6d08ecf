"""Small numbers: Wilson, gold levels and the posterior, against others and over the items."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from oracles import confusion, usual
from scipy import stats
from scipy.special import expit, logit
from small_sample_cases import MEANS, RECALLS, WORSTS, cost_of, silent_tables
from statsmodels.stats.proportion import proportion_confint
from strategies import METRICS, items_of, scale_of, tables

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.small_samples import (
    MOST_LEVELS,
    are_rare,
    mean_cost_interval,
    mover_interval,
    simultaneous_interval,
    wilson_interval,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

RECALL = find_metric("macro_accuracy")


pytestmark = pytest.mark.usefixtures("no_coverage_warnings")


# --- Wilson --------------------------------------------------------------------------------------


@given(n=st.integers(1, 10**6), data=st.data(), level=st.floats(0.5, 0.999))
def test_wilson_is_that_of_statsmodels(n, data, level):
    right = data.draw(st.integers(0, n))
    expected = proportion_confint(right, n, alpha=1 - level, method="wilson")
    assert wilson_interval(right, n, level) == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 9, 60, 12345])
def test_wilson_at_the_ends_is_that_of_statsmodels_and_ends_there(n):
    for right in (0, n):
        low, high = wilson_interval(right, n)
        expected = proportion_confint(right, n, method="wilson")
        assert (low, high) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert low < high
        assert (low == 0) == (right == 0)
        assert (high == 1) == (right == n)


def test_wilson_takes_many_at_once_and_knows_nothing_of_nothing():
    right, n = np.array([0, 3, 10, 0]), np.array([10, 10, 10, 0])
    low, high = wilson_interval(right, n, 0.9)
    for k in range(3):
        expected = proportion_confint(right[k], n[k], alpha=0.1, method="wilson")
        assert (low[k], high[k]) == pytest.approx(expected, abs=1e-12)
    assert (low[3], high[3]) == (0, 1)
    assert wilson_interval(0, 0) == (0, 1)


@given(n=st.integers(1, 500), data=st.data(), level=st.floats(0.5, 0.99))
def test_wilson_holds_the_share_and_turns_with_it(n, data, level):
    right = data.draw(st.integers(0, n))
    low, high = wilson_interval(right, n, level)
    assert 0 <= low <= right / n <= high <= 1
    other = wilson_interval(n - right, n, level)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "accuracy_within", "accuracy_within(n=0)"])
@given(table=tables(largest=30))
@examples(60)
def test_plain_shares_get_the_interval_of_statsmodels(name, table):
    far = {"accuracy": 0, "accuracy_within": 1, "accuracy_within(n=0)": 0}[name]
    steps = np.abs(np.subtract.outer(np.arange(len(table.scale)), np.arange(len(table.scale))))
    right = table.counts[steps <= far].sum()
    found = estimate_metrics([find_metric(name)], table)[name]
    expected = proportion_confint(right, table.total, method="wilson")
    assert found.method == "wilson"
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.low <= found.value <= found.high


def test_an_unanswered_item_is_a_wrong_one():
    table = ConfusionMatrix.from_counts([[5, 1], [2, 7]], scale_of(2), [3, 2])
    found = estimate_metrics([find_metric("accuracy")], table)["accuracy"]
    expected = proportion_confint(12, 20, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_every_share_is_a_count_of_items_over_all_items():
    """What is declared a share must be k / N for a whole k, or Wilson would be wrong."""
    rng = np.random.default_rng(0)
    for metric in METRICS:
        if not metric.share:
            continue
        for _ in range(20):
            table = ConfusionMatrix.from_counts(rng.integers(0, 9, (4, 4)), scale_of(4))
            right = float(metric(table)) * table.total
            assert right == pytest.approx(round(right), abs=1e-9)


# --- MOVER ---------------------------------------------------------------------------------------


def mover(table, level):
    """The mean recall minus and plus the root of the summed squares of Wilson's distances."""
    below = above = total = levels = 0.0
    for row, cells in enumerate(table.weights):
        n = cells.sum()
        if n:
            low, high = proportion_confint(cells[row], n, alpha=1 - level, method="wilson")
            recall = cells[row] / n
            below += (recall - low) ** 2
            above += (high - recall) ** 2
            total += recall
            levels += 1
    middle = total / levels
    return middle - math.sqrt(below) / levels, middle + math.sqrt(above) / levels


@given(table=tables(largest=12), level=st.floats(0.5, 0.99))
def test_mover_adds_up_the_distances_of_wilson(table, level):
    found = mover_interval(RECALL, table, level)
    assert found == pytest.approx(mover(table, level), abs=1e-12)
    assert -1e-12 <= found[0] <= found[1] <= 1 + 1e-12


def test_mover_counts_silence_as_wrong():
    table = ConfusionMatrix.from_counts([[5, 1], [2, 7]], scale_of(2), [3, 0])
    assert mover_interval(RECALL, table, 0.95) == pytest.approx(mover(table, 0.95), abs=1e-12)


def test_mover_of_one_level_is_wilson():
    table = confusion([[0, 0], [3, 6]])
    expected = proportion_confint(6, 9, method="wilson")
    assert mover_interval(RECALL, table, 0.95) == pytest.approx(expected, abs=1e-12)


@given(table=tables(largest=9))
@examples(60)
def test_the_mean_recall_is_a_mover_that_holds_its_value(table):
    found = estimate_metrics([RECALL], table)["macro_accuracy"]
    assert found.method == "mover"
    assert found.low <= found.value <= found.high
    assert (found.low, found.high) == pytest.approx(mover(table, 0.95), abs=1e-12)


def limits_over_items(costs, possible, level):
    """The mean of the items' costs with its limits, as a share of the way from least to most."""
    least, most, n = min(possible), max(possible), len(costs)
    mean = math.fsum(costs) / n
    share = (mean - least) / (most - least)
    error = math.sqrt(math.fsum((cost - mean) ** 2 for cost in costs)) / n / (most - least)
    z = stats.norm.ppf((1 + level) / 2)
    if len(possible) == 2 or min(costs) == max(costs):
        low, high = proportion_confint(share * n, n, alpha=1 - level, method="wilson")
    elif error > share * (1 - share):  # the logit bends too much
        low, high = max(0.0, share - z * error), min(1.0, share + z * error)
    else:
        half = z * error / (share * (1 - share))
        low, high = expit(logit(share) - half), expit(logit(share) + half)
    return mean, least + (most - least) * low, least + (most - least) * high


def levels_over_items(name, table, level):
    """Mean, low and high of each gold level that has items."""
    at, items = table.scale.at, list(zip(*items_of(table), strict=True))
    found = []
    for own in sorted({gold for gold, _ in items}):
        costs = [cost_of(name, at, own, answer) for gold, answer in items if gold == own]
        possible = {cost_of(name, at, own, answer) for answer in range(len(at))}
        found.append(limits_over_items(costs, possible, level))
    return found


def mover_over_items(name, table, level):
    """Distances from the means of levels to their limits add up like standard errors."""
    found = levels_over_items(name, table, level)
    middle = math.fsum(mean for mean, _, _ in found) / len(found)
    below = math.sqrt(math.fsum((mean - low) ** 2 for mean, low, _ in found)) / len(found)
    above = math.sqrt(math.fsum((high - mean) ** 2 for mean, _, high in found)) / len(found)
    return middle - below, middle + above


def worst_over_items(name, table, level):
    """The worst low and the worst high of limits that hold for all levels at once."""
    levels = int((table.gold > 0).sum())
    found = levels_over_items(name, table, level ** (1 / levels))
    worst = min if name in RECALLS else max
    return worst(low for _, low, _ in found), worst(high for _, _, high in found)


def test_means_and_worsts_over_levels_are_declared():
    assert MEANS == ["macro_accuracy", "macro_mae", "macro_mse"]
    assert WORSTS == ["min_sensitivity", "max_mae"]
    others = {m.name for m in list_metrics() if m.macro == "other"}
    assert others == {"precision_macro", "recall_macro", "f1_macro", "uoc"}


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
@given(table=silent_tables())
@examples(40)
def test_what_is_declared_is_the_mean_or_the_worst_of_means_over_items(name, table):
    """Or the limits of levels would be those of something else."""
    means = [mean for mean, _, _ in levels_over_items(name, table, 0.95)]
    worst = min if name in RECALLS else max
    expected = math.fsum(means) / len(means) if name in MEANS else worst(means)
    assert float(find_metric(name)(table)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", MEANS)
@given(table=silent_tables(), level=st.floats(0.5, 0.99))
@examples(80)
def test_mover_is_that_over_the_items_of_each_level(name, table, level):
    expected = mover_over_items(name, table, level)
    assert mover_interval(find_metric(name), table, level) == pytest.approx(expected, abs=1e-9)
    found = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(level=level))[name]
    assert (found.method, found.note) == ("mover", None)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12


@pytest.mark.parametrize("name", WORSTS)
@given(table=silent_tables(), level=st.floats(0.5, 0.99))
@examples(80)
def test_the_worst_level_has_limits_that_hold_for_all_levels_at_once(name, table, level):
    expected = worst_over_items(name, table, level)
    assert simultaneous_interval(find_metric(name), table, level) == pytest.approx(
        expected, abs=1e-9
    )
    found = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(level=level))[name]
    assert (found.method, found.note) == ("simultaneous", None)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
@pytest.mark.parametrize("stratified", [False, True])
def test_many_items_on_an_uneven_scale_with_silence_have_the_limits_over_items(name, stratified):
    cells = [[31, 9, 2, 0], [8, 40, 11, 3], [0, 6, 25, 4], [2, 0, 3, 7]]
    scale = scale_of(4, [0.0, 1.0, 2.75, 5.25])
    table = ConfusionMatrix.from_counts(cells, scale, [4, 0, 3, 2])
    over_items = mover_over_items if name in MEANS else worst_over_items
    how = ConfidenceIntervals(level=0.9, stratified=stratified)
    found = estimate_metrics([find_metric(name)], table, how)[name]
    assert (found.low, found.high) == pytest.approx(over_items(name, table, 0.9), abs=1e-12)
    asked = ConfidenceIntervals(level=0.9, method=found.method)
    assert estimate_metrics([find_metric(name)], table, asked)[name] == found


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
def test_one_level_alone_is_neither_averaged_nor_corrected_for(name):
    table = confusion([[0, 0, 0], [0, 0, 0], [2, 5, 9]])
    ((_, low, high),) = levels_over_items(name, table, 0.95)
    found = estimate_metrics([find_metric(name)], table)[name]
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@given(table=silent_tables(largest=4), data=st.data())
@examples(40)
def test_each_level_has_wider_limits_when_all_levels_must_hold(table, data):
    """With as many levels as there are, the limits of the worst are no narrower than plain ones."""
    name = data.draw(st.sampled_from(WORSTS))
    low, high = simultaneous_interval(find_metric(name), table, 0.9)
    plain = levels_over_items(name, table, 0.9)
    worst = min if name in RECALLS else max
    assert low <= worst(end for _, end, _ in plain) + 1e-9
    assert high >= worst(end for _, _, end in plain) - 1e-9


@pytest.mark.parametrize("costs", [(0.0, 1.0), (0.0, 2.5), (3.0, 4.0), (0.0, 1.0, 1.0)])
@given(data=st.data(), level=st.floats(0.5, 0.99))
@examples(25)
def test_the_mean_of_two_costs_has_wilsons_limits_between_them(costs, data, level):
    weights = data.draw(st.lists(st.integers(0, 30), min_size=3, max_size=3).filter(any))
    weights = np.array(weights[: len(costs)], float) + (not any(weights[: len(costs)]))
    ends = mean_cost_interval(weights, weights, np.array(costs), level)
    least, most = min(costs), max(costs)
    dear = weights[np.array(costs) == most].sum()
    expected = proportion_confint(dear, weights.sum(), alpha=1 - level, method="wilson")
    assert ends == pytest.approx([least + (most - least) * end for end in expected], abs=1e-12)


@pytest.mark.parametrize("cell", [0, 3])
def test_a_mean_at_an_end_of_its_range_has_wilsons_limits(cell):
    costs, weights = np.array([0.0, 1.0, 2.0, 4.0]), np.zeros(4)
    weights[cell] = 12
    expected = proportion_confint(12 * (cell == 3), 12, method="wilson")
    found = mean_cost_interval(weights, weights, costs, 0.95)
    assert found == pytest.approx([4 * end for end in expected], abs=1e-12)


def test_costs_that_are_all_alike_within_their_range_are_not_certain():
    """Every item of the level is one step off: no error at all, and yet few items."""
    found = mean_cost_interval(
        np.array([0.0, 8, 0]), np.array([0.0, 8, 0]), np.array([0.0, 1, 2]), 0.95
    )
    expected = proportion_confint(4, 8, method="wilson")
    assert found == pytest.approx([2 * end for end in expected], abs=1e-12)


@given(
    items=st.lists(st.tuples(st.sampled_from([0.0, 0.5, 2.0, 3.0]), st.floats(0.1, 5)), min_size=2),
    level=st.floats(0.5, 0.99),
)
@examples(60)
def test_the_mean_cost_of_weighted_items_counts_their_squares(items, level):
    costs = np.array([0.0, 0.5, 2.0, 3.0])
    weights, squares = np.zeros(4), np.zeros(4)
    for cost, weight in items:
        weights[costs == cost] += weight
        squares[costs == cost] += weight**2
    total = math.fsum(weight for _, weight in items)
    mean = math.fsum(weight * cost for cost, weight in items) / total
    error = math.sqrt(math.fsum((weight * (cost - mean)) ** 2 for cost, weight in items)) / total
    if len({cost for cost, _ in items}) == 1:
        n = total**2 / math.fsum(weight**2 for _, weight in items)
        expected = wilson_interval(mean / 3 * n, n, level)
    else:
        z, share, error = stats.norm.ppf((1 + level) / 2), mean / 3, error / 3
        half = z * error / (share * (1 - share))
        plain = max(0.0, share - z * error), min(1.0, share + z * error)
        bent = expit(logit(share) - half), expit(logit(share) + half)
        expected = plain if error > share * (1 - share) else bent
    found = mean_cost_interval(weights, squares, costs, level)
    assert found == pytest.approx([3 * end for end in expected], abs=1e-7)


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
@pytest.mark.parametrize("at", [[0.1, 0.2, 0.3], [0.7, 1.4, 2.1], [1e-3, 2e-3, 3e-3]])
def test_steps_that_differ_by_rounding_only_are_one_step(name, at):
    """0.3 - 0.2 is not 0.2 - 0.1 in a computer; the middle level still has costs of two kinds."""
    cells = [[5, 3, 1], [4, 20, 3], [1, 3, 9]]
    unit = {"macro_mae": at[0], "max_mae": at[0], "macro_mse": at[0] ** 2}.get(name, 1.0)
    plain = estimate_metrics([find_metric(name)], confusion(cells))[name]
    found = estimate_metrics([find_metric(name)], confusion(cells, at))[name]
    expected = plain.low * unit, plain.high * unit
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("at", "cells"),
    [
        ([0.3, 1.3, 2.3], [[0, 0, 19], [17, 0, 0], [13, 0, 0]]),
        ([1.0, 1.7], [[0, 4], [10, 0]]),
        ([0.1, 0.4, 2.1], [[14, 0, 0], [0, 0, 2], [0, 0, 7]]),
        ([1.0, 1.1, 1.2, 1.9], [[0, 0, 0, 6], [0, 0, 0, 0], [0, 0, 0, 0], [11, 0, 0, 0]]),
        ([0.1, 1.1, 1.2, 1.9], [[0, 0, 0, 8], [0, 0, 0, 0], [0, 0, 0, 0], [19, 0, 0, 0]]),
    ],
)
@pytest.mark.parametrize("name", [*MEANS, *WORSTS, "mae", "mse", "rmse"])
def test_rounding_does_not_put_the_value_outside_its_limits(name, at, cells):
    """All items of a level are as wrong as can be, so that the value is one of its own limits."""
    found = estimate_metrics(
        [find_metric(name)], confusion(cells, at), ConfidenceIntervals(resamples=100)
    )[name]
    assert found.low <= found.value <= found.high


def test_scales_of_very_many_levels_are_drawn_again():
    """Each cell is tried alone up to 30 levels; beyond that all macro metrics take percentiles."""
    size = MOST_LEVELS + 1
    cells = np.diag(np.full(size, 6)) + np.diag(np.full(size - 1, 2), 1)
    for metric in (find_metric(name) for name in [*MEANS, *WORSTS]):
        found = estimate_metrics([metric], confusion(cells), ConfidenceIntervals(resamples=100))[
            metric.name
        ]
        assert found.method == "percentile"
        fewer = confusion(cells[:-1, :-1])
        expected = "mover" if metric.macro == "mean" else "simultaneous"
        assert estimate_metrics([metric], fewer)[metric.name].method == expected


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
def test_limits_over_levels_cover_the_truth(name):
    """Levels of 9, 20 and 60 items, 1,000 samples: at least 93 % minus 4 errors."""
    rng = np.random.default_rng(11)
    recall = np.array([[0.6, 0.3, 0.1], [0.15, 0.7, 0.15], [0.02, 0.2, 0.78]])
    drawn = np.stack(
        [rng.multinomial(n, row, 1000) for n, row in zip((9, 20, 60), recall, strict=True)], 1
    )
    metric, held = find_metric(name), 0
    truth = float(metric(confusion(recall)))
    limits_of = mover_interval if name in MEANS else simultaneous_interval
    for cells in drawn:
        low, high = limits_of(metric, confusion(cells), 0.95)
        held += low <= truth <= high
    assert held / 1000 > 0.93 - 4 * math.sqrt(0.05 * 0.95 / 1000)


# --- rare levels ---------------------------------------------------------------------------------

RARE = confusion([[6, 2, 1], [3, 40, 5], [1, 6, 60]])


COMMON = confusion([[7, 2, 1], [3, 40, 5], [1, 6, 60]])


OTHERS = [m for m in list_metrics() if m.macro == "other"]


@given(gold=st.lists(st.integers(0, 20), min_size=2, max_size=6).filter(any))
def test_rare_levels_have_one_to_nine_items(gold):
    table = confusion(np.diag(gold))
    assert are_rare(table).tolist() == [1 <= n <= 9 for n in gold]


def test_silent_items_count_for_their_level():
    table = ConfusionMatrix.from_counts([[4, 1], [5, 5]], scale_of(2), [5, 0])
    assert not are_rare(table).any()


@pytest.mark.parametrize("metric", OTHERS, ids=lambda m: m.name)
def test_other_macro_metrics_of_rare_levels_take_percentiles_and_say_so(metric):
    found = estimate_metrics([metric], RARE)[metric.name]
    asked = estimate_metrics([metric], RARE, ConfidenceIntervals(method="percentile"))[metric.name]
    assert found.method == "percentile"
    assert found.note == "fewer than 10 items of L0"
    assert (found.low, found.high) == (asked.low, asked.high)
    common = estimate_metrics([metric], COMMON)[metric.name]
    assert (common.method, common.note) == ("percentile", None)


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
def test_means_and_worsts_over_levels_do_not_mind_rare_levels(name):
    expected = "mover" if name in MEANS else "simultaneous"
    for table in (RARE, COMMON):
        found = estimate_metrics([find_metric(name)], table)[name]
        assert (found.method, found.note) == (expected, None)


def test_all_rare_levels_are_named():
    table = confusion([[6, 2, 1], [3, 40, 5], [0, 1, 1]])
    assert (
        estimate_metrics([find_metric("f1_macro")], table)["f1_macro"].note
        == "fewer than 10 items of L0, L2"
    )


def test_levels_that_gold_lacks_are_not_rare():
    table = confusion([[30, 2, 1], [3, 40, 5], [0, 0, 0]])
    found = estimate_metrics([find_metric("f1_macro")], table)["f1_macro"]
    assert (found.method, found.note) == ("percentile", None)


def test_other_metrics_do_not_mind_rare_levels():
    for name in ("mae", "quadratic_kappa", "cem_ord", "f1_weighted"):
        found = estimate_metrics([find_metric(name)], RARE)[name]
        assert (found.method, found.note) == (usual(find_metric(name)), None)
