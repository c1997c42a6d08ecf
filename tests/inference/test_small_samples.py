"""Small numbers: Wilson, gold levels and the posterior, against others and over the items."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NAIVE
from oracles import confusion, labels, usual
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.proportion import proportion_confint
from strategies import METRICS, counts, items_of, scale_of, scales, tables

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.confidence_intervals import NONDEGENERATE_METHODS
from ordinate.inference.small_samples import (
    MOST_LEVELS,
    find_rare_levels,
    make_posterior_sampler,
    mean_cost_interval,
    mover_interval,
    scale_to_effective_size,
    simultaneous_interval,
    wilson_interval,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

RECALL = find_metric("macro_accuracy")


@pytest.fixture(scope="module", autouse=True)
def _no_doubts():
    """What the study of coverage doubts is in a file that it writes; it is tested on its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ordinate.inference.confidence_intervals.describe_undercoverage", lambda *_: None
        )
        yield


# --- Wilson --------------------------------------------------------------------------------------


@given(n=st.integers(1, 10**6), data=st.data(), level=st.floats(0.5, 0.999))
@settings(max_examples=200)
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
@settings(max_examples=100)
def test_wilson_holds_the_share_and_turns_with_it(n, data, level):
    right = data.draw(st.integers(0, n))
    low, high = wilson_interval(right, n, level)
    assert 0 <= low <= right / n <= high <= 1
    other = wilson_interval(n - right, n, level)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "accuracy_within", "accuracy_within(n=0)"])
@given(table=tables(largest=30))
@settings(max_examples=60)
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
    table = ConfusionMatrix.from_counts(scale_of(2), [[5, 1], [2, 7]], [3, 2])
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
            table = ConfusionMatrix.from_counts(scale_of(4), rng.integers(0, 9, (4, 4)))
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
@settings(max_examples=100)
def test_mover_adds_up_the_distances_of_wilson(table, level):
    found = mover_interval(RECALL, table, level)
    assert found == pytest.approx(mover(table, level), abs=1e-12)
    assert -1e-12 <= found[0] <= found[1] <= 1 + 1e-12


def test_mover_counts_silence_as_wrong():
    table = ConfusionMatrix.from_counts(scale_of(2), [[5, 1], [2, 7]], [3, 0])
    assert mover_interval(RECALL, table, 0.95) == pytest.approx(mover(table, 0.95), abs=1e-12)


def test_mover_of_one_level_is_wilson():
    table = confusion([[0, 0], [3, 6]])
    expected = proportion_confint(6, 9, method="wilson")
    assert mover_interval(RECALL, table, 0.95) == pytest.approx(expected, abs=1e-12)


@given(table=tables(largest=9))
@settings(max_examples=60)
def test_the_mean_recall_is_a_mover_that_holds_its_value(table):
    found = estimate_metrics([RECALL], table)["macro_accuracy"]
    assert found.method == "mover"
    assert found.low <= found.value <= found.high
    assert (found.low, found.high) == pytest.approx(mover(table, 0.95), abs=1e-12)


# --- gold levels on their own ---------------------------------------------------------------------

MEANS = [m.name for m in list_metrics() if m.macro == "mean"]
WORSTS = [m.name for m in list_metrics() if m.macro == "worst"]
RECALLS = {"macro_accuracy", "min_sensitivity"}


@st.composite
def silent_tables(draw, largest=6):
    """Tables on even and uneven scales, of which some have unanswered items."""
    scale = draw(scales())
    size = len(scale)
    silent = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size) | st.just([0] * size))
    return ConfusionMatrix.from_counts(scale, draw(counts(size, largest)), silent)


def cost_of(name, at, gold, answer):
    """What an item counts for in its level; no answer is as bad as the worst one."""
    if name in RECALLS:
        return float(gold == answer)
    gaps = [abs(at[gold] - x) for x in at]
    gap = max(gaps) if answer is None else gaps[answer]
    return gap**2 if name == "macro_mse" else gap


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
@settings(max_examples=40)
def test_what_is_declared_is_the_mean_or_the_worst_of_means_over_items(name, table):
    """Or the limits of levels would be those of something else."""
    means = [mean for mean, _, _ in levels_over_items(name, table, 0.95)]
    worst = min if name in RECALLS else max
    expected = math.fsum(means) / len(means) if name in MEANS else worst(means)
    assert float(find_metric(name)(table)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", MEANS)
@given(table=silent_tables(), level=st.floats(0.5, 0.99))
@settings(max_examples=80)
def test_mover_is_that_over_the_items_of_each_level(name, table, level):
    expected = mover_over_items(name, table, level)
    assert mover_interval(find_metric(name), table, level) == pytest.approx(expected, abs=1e-9)
    found = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(level=level))[name]
    assert (found.method, found.note) == ("mover", None)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12


@pytest.mark.parametrize("name", WORSTS)
@given(table=silent_tables(), level=st.floats(0.5, 0.99))
@settings(max_examples=80)
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
    table = ConfusionMatrix.from_counts(scale, cells, [4, 0, 3, 2])
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
@settings(max_examples=40)
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
@settings(max_examples=25)
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
@settings(max_examples=60)
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
    assert find_rare_levels(table) == [f"L{k}" for k, n in enumerate(gold) if 1 <= n <= 9]


def test_silent_items_count_for_their_level():
    table = ConfusionMatrix.from_counts(scale_of(2), [[4, 1], [5, 5]], [5, 0])
    assert find_rare_levels(table) == []


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


# --- the posterior -------------------------------------------------------------------------------

CELLS = np.array([[3.0, 1, 0], [2, 0, 6], [0, 0, 0]])
PRIORS = {"dirichlet": None, "jeffreys": 0.5}  # the first: one item's weight for a whole row


def naive_posterior(cells, silent, prior, count, seed, *, stratified=False):
    """Cells [count, K, K + 1] from NumPy's Dirichlet resamples, level by level."""
    rng = np.random.default_rng(seed)
    columns = cells if silent is None else np.column_stack([cells, silent])
    little = 1 / columns.shape[1] if prior is None else prior
    gold = columns.sum(axis=1)
    there = [level for level, n in enumerate(gold) if n > 0]
    drawn = np.zeros((count, len(cells), len(cells) + 1))
    shares = rng.dirichlet(gold[there], count)
    for place, level in enumerate(there):
        share = gold[level] / gold.sum() if stratified else shares[:, place, None]
        predictions = rng.dirichlet(columns[level] + little, count)
        drawn[:, level, : columns.shape[1]] = share * predictions
    return drawn


def check_quantiles(found, values, level=0.95):
    """Each limit but the value itself is within 5 Monte-Carlo errors of a naive quantile."""
    tail = (1 - level) / 2
    allowed = 5 * math.sqrt(2 * tail * (1 - tail) / len(values))
    free = 0
    for end, share in ((found.low, tail), (found.high, 1 - tail)):
        if not math.isclose(end, found.value, abs_tol=1e-12):
            free += 1
            below, upto = (values < end - 1e-9).mean(), (values <= end + 1e-9).mean()
            assert below - allowed <= share <= upto + allowed
    assert free


@pytest.mark.parametrize("prior", [None, 0.5, 2.0])
def test_the_posterior_has_the_moments_of_dirichlet_rows(prior):
    """Row shares follow Dirichlet(n + prior): means within 4.5 Monte-Carlo errors, variances too.

    The default prior is 1/3 for each of three predictions: a row's prior weighs one item.
    """
    table, count = confusion(CELLS), 40_000
    little = 1 / 3 if prior is None else prior
    cells = make_posterior_sampler(table, prior)(np.random.default_rng(1), count)
    assert cells.shape == (count, 3, 4)
    for row in (0, 1):
        share = cells[:, row, :3] / cells[:, row].sum(axis=-1, keepdims=True)
        theory = stats.dirichlet(CELLS[row] + little)
        error = np.sqrt(theory.var() / count)
        assert (np.abs(share.mean(axis=0) - theory.mean()) <= 4.5 * error).all()
        assert share.var(axis=0) == pytest.approx(theory.var(), rel=0.05)
        for column in range(3):
            own, all_ = CELLS[row, column] + little, CELLS[row].sum() + 3 * little
            beta = stats.beta(own, all_ - own)
            assert stats.kstest(share[:4000, column], beta.cdf).pvalue > 0.01 / 18


def test_the_default_prior_of_a_row_weighs_one_item_with_silence_as_well():
    """Where somebody is silent, no answer is a prediction like any other: 1/4 each."""
    table = ConfusionMatrix.from_counts(scale_of(3), CELLS, [0, 2, 0])
    cells = make_posterior_sampler(table)(np.random.default_rng(4), 40_000)
    for row, weights in ((0, [3, 1, 0, 0]), (1, [2, 0, 6, 2])):
        share = cells[:, row] / cells[:, row].sum(axis=-1, keepdims=True)
        theory = stats.dirichlet(np.array(weights) + 0.25)
        error = np.sqrt(theory.var() / 40_000)
        assert (np.abs(share.mean(axis=0) - theory.mean()) <= 4.5 * error).all()
        assert share.var(axis=0) == pytest.approx(theory.var(), rel=0.05)


def test_the_gold_shares_of_the_posterior_follow_the_gold_counts():
    table, count = confusion(CELLS), 40_000
    gold = make_posterior_sampler(table)(np.random.default_rng(2), count).sum(axis=-1)
    share = gold[:, 0] / gold.sum(axis=-1)
    assert stats.kstest(share[:4000], stats.beta(4, 8).cdf).pvalue > 0.01


@given(table=silent_tables(), prior=st.sampled_from([None, 0.5]), stratified=st.booleans())
@settings(max_examples=40)
def test_posterior_tables_have_the_total_of_the_table(table, prior, stratified):
    drawn = make_posterior_sampler(table, prior, stratified=stratified)(
        np.random.default_rng(0), 20
    )
    assert drawn.sum(axis=(1, 2)) == pytest.approx(np.full(20, table.total), rel=1e-12)
    if stratified:
        gold = np.broadcast_to(table.gold, (20, len(table.scale)))
        assert drawn.sum(axis=-1) == pytest.approx(gold, rel=1e-12)
    elif (table.gold > 0).sum() > 1:
        assert np.ptp(drawn.sum(axis=-1), axis=0).max() > 1e-3


def test_the_posterior_leaves_levels_without_gold_and_silence_alone():
    drawn = make_posterior_sampler(confusion(CELLS))(np.random.default_rng(0), 50)
    assert not drawn[:, 2].any()
    assert not drawn[..., 3].any()
    assert (drawn[:, :2, :3] > 0).all()
    silent = ConfusionMatrix.from_counts(scale_of(3), CELLS, [1, 0, 0])
    assert (make_posterior_sampler(silent)(np.random.default_rng(0), 50)[:, :2] > 0).all()


@pytest.mark.parametrize("method", PRIORS)
@pytest.mark.parametrize("name", ["macro_mae", "mae", "quadratic_kappa", "purity"])
@pytest.mark.parametrize("stratified", [False, True])
def test_limits_of_the_posterior_are_quantiles_of_a_naive_one(method, name, stratified):
    """5 Monte-Carlo errors of a quantile."""
    cells, count = np.array([[4, 1, 1], [3, 30, 5], [1, 6, 50]]), 8000
    drawn = naive_posterior(cells, None, PRIORS[method], count, seed=6, stratified=stratified)
    values = np.asarray(find_metric(name)(confusion(cells).with_cells(drawn)))
    how = ConfidenceIntervals(method=method, resamples=count, stratified=stratified)
    found = estimate_metrics([find_metric(name)], confusion(cells), how)[name]
    assert found.method == method
    check_quantiles(found, values)


@pytest.mark.parametrize("method", PRIORS)
def test_limits_of_the_posterior_of_silent_items_are_quantiles_of_a_naive_one(method):
    cells, silent = np.array([[4, 1, 1], [3, 30, 5], [1, 6, 50]]), [0, 2, 5]
    table = ConfusionMatrix.from_counts(scale_of(3), cells, silent)
    drawn = naive_posterior(cells, silent, PRIORS[method], 8000, seed=7)
    for name in ("mae", "accuracy", "f1_macro"):
        values = np.asarray(find_metric(name)(table.with_cells(drawn)))
        check_quantiles(
            estimate_metrics(
                [find_metric(name)], table, ConfidenceIntervals(method=method, resamples=8000)
            )[name],
            values,
        )


def test_the_same_rule_tells_the_two_priors_apart():
    table, mae = confusion(np.diag([12, 12, 12])), find_metric("mae")
    found = estimate_metrics([mae], table, ConfidenceIntervals(method="jeffreys", resamples=8000))[
        "mae"
    ]
    drawn = (naive_posterior(table.counts, None, prior, 8000, seed=1) for prior in (0.5, None))
    own, other = (np.asarray(mae(table.with_cells(cells))) for cells in drawn)
    check_quantiles(found, own)
    with pytest.raises(AssertionError):
        check_quantiles(found, other)


@pytest.mark.parametrize("method", PRIORS)
@given(table=tables(largest=6))
@settings(max_examples=30)
def test_limits_of_the_posterior_hold_the_value(method, table):
    found = estimate_metrics(METRICS, table, ConfidenceIntervals(method=method, resamples=200))
    for metric in METRICS:
        result = found[metric.expression]
        if not math.isnan(result.low):
            assert result.low <= result.value <= result.high, metric.expression


# --- as many items as say as much ----------------------------------------------------------------


@given(table=silent_tables())
@settings(max_examples=20)
def test_whole_counts_say_what_they_are(table):
    assert scale_to_effective_size(table) is table


def test_whole_weights_are_counts_of_items():
    table = ConfusionMatrix.of(scale_of(2), ["L0", "L1", "L1"], ["L0", "L1", "L0"], [3, 2, 4])
    assert scale_to_effective_size(table) is table


@given(
    items=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(0.01, 9)), min_size=1, max_size=20
    )
)
@settings(max_examples=60)
def test_real_weights_are_as_many_items_as_their_mean_has_the_variance_of(items):
    gold, predicted, weights = zip(*items, strict=True)
    weights = [weight + (weight == round(weight)) / 8 for weight in weights]
    table = ConfusionMatrix.of(scale_of(3), labels(gold), labels(predicted), weights)
    found = scale_to_effective_size(table)
    n = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
    assert 1 - 1e-12 <= n <= len(items) + 1e-9
    assert float(found.total) == pytest.approx(n, rel=1e-12)
    expected = table.weights / table.weights.sum()
    assert found.weights / found.total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weight", [0.5, 1.5, 0.01, 1e-7])
def test_equal_weights_are_as_many_items_as_there_are(weight):
    gold, predicted = ["L0", "L1", "L1", "L0", "L0"], ["L0", "L1", "L0", "L0", "L0"]
    found = scale_to_effective_size(ConfusionMatrix.of(scale_of(2), gold, predicted, [weight] * 5))
    plain = ConfusionMatrix.of(scale_of(2), gold, predicted)
    assert found.weights == pytest.approx(plain.weights, rel=1e-12)


@pytest.mark.parametrize("factor", [1, 0.3, 1000])
def test_a_group_says_as_much_as_one_item(factor):
    cells = np.random.default_rng(0).integers(1, 9, (7, 3, 3)) * factor
    found = scale_to_effective_size(confusion(cells))
    assert found.shape == ()
    assert found.counts == pytest.approx(cells.sum(axis=0) / cells.sum() * 7, rel=1e-12)


# --- tables that no draw can move ----------------------------------------------------------------

SAME = {"every resample gives the same value", "it has no standard error here"}


@pytest.mark.parametrize("gold", [[20, 30, 25], [1, 1, 1], [3, 0, 400], [1000, 1000, 1000]])
@pytest.mark.parametrize("metric", METRICS, ids=[m.expression for m in METRICS])
def test_a_perfect_table_has_an_interval_of_some_width_that_holds_its_value(metric, gold):
    table = confusion(np.diag(gold))
    found = estimate_metrics([metric], table, ConfidenceIntervals(resamples=300))[metric.expression]
    if found.method != "percentile":  # which may leave out a value that resamples cannot exceed
        assert found.low <= found.value <= found.high
    assert found.high - found.low > 1e-6
    low, high = metric.bounds
    assert low - 1e-12 <= found.low <= found.high <= high + 1e-12
    by_rule = {"mean": "mover", "worst": "simultaneous"}.get(metric.macro)
    by_rule = "wilson" if metric.share else by_rule
    if by_rule is not None:
        assert (found.method, found.note) == (by_rule, None)
    if found.method == "dirichlet":
        rare = metric.macro == "other" and find_rare_levels(
            table
        )  # to be resampled, whatever is usual
        how = ConfidenceIntervals(resamples=300, method="percentile")
        still = estimate_metrics([metric], table, how)[metric.expression].width < 1e-12
        if usual(metric) in NONDEGENERATE_METHODS and not rare:
            assert found.note is None
        elif still:
            assert found.note in SAME
        else:
            assert found.note  # only the slopes are flat there
    else:
        assert found.method in {by_rule, usual(metric), "percentile"}


@pytest.mark.parametrize(
    "name", ["quadratic_kappa", "mae", "cem_ord", "purity", "oci", "uoc", "f1_macro", "rmse"]
)
def test_a_perfect_table_says_why_its_interval_is_not_the_usual_one(name):
    found = estimate_metrics([find_metric(name)], confusion(np.diag([20, 30, 25])))[name]
    assert found.method == "dirichlet"
    assert found.note in ({None} if usual(find_metric(name)) in NONDEGENERATE_METHODS else SAME)
    best = {"mae": 0, "rmse": 0, "oci": 0, "uoc": 0}.get(name, 1)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert best in {round(found.low, 12), round(found.high, 12)}


@pytest.mark.parametrize("name", ["quadratic_kappa", "mae", "cem_ord", "purity", "f1_macro"])
@pytest.mark.parametrize("stratified", [False, True])
def test_a_perfect_table_has_the_limits_of_a_naive_posterior(name, stratified):
    cells = np.diag([20, 3, 25])
    drawn = naive_posterior(cells, None, None, 8000, seed=2, stratified=stratified)
    values = np.asarray(find_metric(name)(confusion(cells).with_cells(drawn)))
    found = estimate_metrics(
        [find_metric(name)],
        confusion(cells),
        ConfidenceIntervals(resamples=8000, stratified=stratified),
    )[name]
    assert found.method == "dirichlet"
    check_quantiles(found, values)


def test_items_that_are_all_one_step_off_could_be_nearer_or_farther():
    table = confusion([[0, 9, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 0]])
    found = estimate_metrics([find_metric("mae")], table)["mae"]
    assert found.method == "dirichlet"
    assert found.low < found.value < found.high
    assert found.value == 1


def test_a_larger_perfect_table_has_a_narrower_interval():
    widths = [
        estimate_metrics([find_metric("quadratic_kappa")], confusion(np.diag([n, n, n])))[
            "quadratic_kappa"
        ].width
        for n in (10, 40, 160, 640)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 10 * widths[-1]


def test_a_table_all_wrong_has_a_width_as_well():
    table = confusion([[0, 0, 20], [0, 0, 20], [20, 20, 0]])
    for name in ("macro_accuracy", "min_sensitivity", "f1_macro", "cem_nom"):
        found = estimate_metrics([find_metric(name)], table)[name]
        assert found.value == found.low == 0
        assert 0 < found.high < 0.3


# Right answers of forty items with weights, of 40 groups, and of 12 beside empty ones.
GOLD = np.array([0, 1, 2, 1] * 10)
WEIGHTS = np.linspace(0.5, 1.7, 40)
GROUPS = np.zeros((40, 3, 3))
GROUPS[:, [0, 1, 2], [0, 1, 2]] = np.random.default_rng(3).integers(1, 5, (40, 3))


def perfect_sources():
    """What it is, the source, and the table of as many items as say as much, over the items."""
    weighted = ConfusionMatrix.of(scale_of(3), labels(GOLD), labels(GOLD), WEIGHTS)
    sums = np.bincount(GOLD, WEIGHTS)
    few = np.concatenate([GROUPS[:12], np.zeros((9, 3, 3))])
    yield "weights", weighted, np.diag(sums * WEIGHTS.sum() / (WEIGHTS**2).sum())
    for name, groups, count in (("groups", GROUPS, 40), ("few groups", few, 12)):
        pooled = groups.sum(axis=0)
        yield name, confusion(groups), pooled / pooled.sum() * count


PERFECT = {name: (source, cells) for name, source, cells in perfect_sources()}
every_perfect = pytest.mark.parametrize(("source", "cells"), PERFECT.values(), ids=PERFECT)


@every_perfect
@pytest.mark.parametrize("name", ["accuracy", "accuracy_within"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_perfect_shares_of_weights_or_groups_have_wilsons_limits_of_what_they_say(
    source, cells, name, level
):
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(level=level))[name]
    n = cells.sum()
    expected = proportion_confint(n, n, alpha=1 - level, method="wilson")
    assert found.method == "wilson"
    assert found.note in SAME
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@every_perfect
@pytest.mark.parametrize(
    "name", ["quadratic_kappa", "mae", "purity", "f1_macro", "macro_mae", "min_sensitivity"]
)
def test_perfect_weights_or_groups_have_the_limits_of_a_naive_posterior(source, cells, name):
    if find_metric(name).macro in {"mean", "worst"} and not source.shape:
        return  # real weights have limits level by level: the test below
    drawn = naive_posterior(cells, None, None, 4000, seed=5)
    values = np.asarray(find_metric(name)(confusion(np.eye(3)).with_cells(drawn)))
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(resamples=4000))[name]
    assert found.method == "dirichlet"
    assert found.note in SAME
    assert found.low <= found.value <= found.high
    check_quantiles(found, values)


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_perfect_weights_have_limits_by_level_of_as_many_items_as_each_is_worth(name, level):
    source, recall = PERFECT["weights"][0], name in RECALLS
    each = level if name in MEANS else level ** (1 / 3)
    ends = []
    for gold in range(3):
        own = WEIGHTS[gold == GOLD]
        n = own.sum() ** 2 / (own**2).sum()
        far = {"macro_mse": max(gold, 2 - gold) ** 2}.get(name, max(gold, 2 - gold))
        miss = proportion_confint(0, n, alpha=1 - each, method="wilson")[1]
        ends.append(miss * (1 if recall else far))
    off = max(ends) if name in WORSTS else math.hypot(*ends) / 3
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(level=level))[name]
    assert found.method == ("mover" if name in MEANS else "simultaneous")
    assert found.note == "real weights"
    expected = (1 - off, 1) if recall else (0, off)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_stratified_perfect_weights_keep_the_weight_of_each_gold_level():
    source, cells = PERFECT["weights"]
    drawn = naive_posterior(cells, None, None, 8000, seed=5, stratified=True)
    values = np.asarray(find_metric("mae")(confusion(np.eye(3)).with_cells(drawn)))
    how = ConfidenceIntervals(resamples=8000, stratified=True)
    found = estimate_metrics([find_metric("mae"), find_metric("accuracy")], source, how)
    assert found["mae"].method == "dirichlet"
    assert found["mae"].note in SAME
    check_quantiles(found["mae"], values)
    assert found["accuracy"].method == "wilson"
    assert found["accuracy"].note in SAME


def test_weights_all_wrong_have_wilsons_upper_limit():
    weights = np.linspace(0.5, 1.7, 12)
    table = ConfusionMatrix.of(scale_of(2), ["L0", "L1"] * 6, ["L1", "L0"] * 6, weights)
    n = weights.sum() ** 2 / (weights**2).sum()
    found = estimate_metrics([find_metric("accuracy")], table)["accuracy"]
    expected = proportion_confint(0, n, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "delta"])
def test_a_method_that_was_asked_for_stays_though_nothing_moves(method):
    found = estimate_metrics(
        [find_metric("mae")], confusion(np.diag([9, 9])), ConfidenceIntervals(method=method)
    )["mae"]
    assert (found.method, found.low, found.high) == (method, 0, 0)


@pytest.mark.parametrize("kind", PERFECT)
@pytest.mark.parametrize("name", ["accuracy", "quadratic_kappa", "mae", "purity"])
def test_a_perfect_table_of_weights_or_groups_never_seems_certain(kind, name):
    found = estimate_metrics([find_metric(name)], PERFECT[kind][0])[name]
    assert found.width > 0.01
    assert found.note in SAME


def test_every_distance_of_this_file_is_that_of_the_naive_metrics():
    """The costs above are those that metrics are defined by elsewhere."""
    at = [0.0, 1.0, 2.75]
    for gold in range(3):
        for answer in (0, 1, 2, None):
            for name in [*MEANS, *WORSTS]:
                expected = NAIVE[name]([gold], [answer], at)
                assert cost_of(name, at, gold, answer) == pytest.approx(expected)
