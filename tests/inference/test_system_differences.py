"""Many systems: joint resamples against drawing items, max-T and ranks written out."""

import itertools
import math
import os
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import SIGMAS, disagreements
from panels import panel_of, sampled
from scipy import stats

from ordinate.inference import system_differences
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.inference.system_differences import (
    compare_pairs,
    compute_rank_intervals,
    compute_rank_shares,
    find_significant_pairs,
    list_pairs,
    max_t_statistic,
    rank_systems,
    resample_jointly,
    smallest_attainable_p,
)
from ordinate.metrics import find_metric

NAMES = ("accuracy", "mae", "quadratic_kappa", "macro_mae", "cem_ord", "kendall_tau_b", "bias")
METRICS = [find_metric(name) for name in NAMES]
COUNT = 3000
SIZE = 4
LEVEL = 0.95


# --- the oracle: items resampled, with the answers of all systems ------------------------------


def columns_of(gold, systems):
    """Gold, and the answers of each system; no answer is the level above the highest."""
    answers = [[SIZE if p is None else p for p in column] for column in systems.values()]
    return np.array(gold), np.array(answers)


def naive_draws(gold, systems, *, count, seed, weights=None, groups=None):
    """Metrics [count, S] by name of items resampled, or of whole groups of them."""
    gold, answers = columns_of(gold, systems)
    weights = np.ones(len(gold)) if weights is None else np.asarray(weights)
    units = np.arange(len(gold)) if groups is None else np.asarray(groups)
    members = [np.flatnonzero(units == unit) for unit in np.unique(units)]
    rng = np.random.default_rng(seed)
    cells = np.zeros((count, len(answers), SIZE, SIZE + 1))
    for draw in range(count):
        chosen = rng.integers(len(members), size=len(members))
        who = chosen if groups is None else np.concatenate([members[unit] for unit in chosen])
        for system, column in enumerate(answers):
            np.add.at(cells[draw, system], (gold[who], column[who]), weights[who])
    table = panel_of(gold.tolist(), systems, SIZE).confusion_matrix(next(iter(systems)))
    batch = table.with_cells(cells)
    return {metric.expression: np.asarray(metric(batch)) for metric in METRICS}


def covariance_error(first, second):
    """The Monte-Carlo standard error of the covariance of two columns of resamples."""
    product = (first - first.mean()) * (second - second.mean())
    return product.std() / math.sqrt(len(product))


def check_covariances(found, expected, slack=0.0):
    """All within 4 standard errors; `slack` is for what is of smaller order, of the deviations."""
    for one, other in itertools.combinations_with_replacement(range(found.shape[1]), 2):
        pairs = [(x[:, one], x[:, other]) for x in (found, expected)]
        covariances = [np.cov(*pair)[0, 1] for pair in pairs]
        error = math.hypot(*(covariance_error(*pair) for pair in pairs))
        room = slack * pairs[1][0].std() * pairs[1][1].std()
        assert abs(covariances[0] - covariances[1]) <= SIGMAS * error + room, (one, other)


def four_systems():
    """Gold, and four systems; the last has most of its answers from the second."""
    gold, systems = sampled(SIZE, 150, 3, [0.5, 0.9, 0.9])
    both = zip(systems["s1"], systems["s0"], strict=True)
    systems["s3"] = [one if k % 3 else other for k, (one, other) in enumerate(both)]
    return gold, systems


GOLD, SYSTEMS = four_systems()
PANEL = panel_of(GOLD, SYSTEMS, SIZE)
every_name = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def drawn():
    return resample_jointly(PANEL, METRICS, Resampling(COUNT, 1))


@pytest.fixture(scope="module")
def items():
    return naive_draws(GOLD, SYSTEMS, count=COUNT, seed=2)


@every_name
def test_each_system_varies_as_if_it_were_drawn_alone(drawn, name):
    for place, system in enumerate(PANEL.systems):
        table = PANEL.confusion_matrix(system)
        alone = resample_metrics(
            [find_metric(name)], table, make_resampler(table), Resampling(COUNT, 7 + place)
        )[name]
        comparisons = len(NAMES) * len(PANEL.systems)
        assert disagreements(drawn[name][:, place], alone, comparisons) == []


@every_name
def test_systems_vary_together_as_items_drawn_again_make_them(drawn, items, name):
    check_covariances(drawn[name], items[name])
    for place in range(len(SYSTEMS)):
        comparisons = len(NAMES) * len(SYSTEMS)
        assert disagreements(drawn[name][:, place], items[name][:, place], comparisons) == []


@every_name
def test_differences_of_systems_vary_like_those_of_items_drawn_again(drawn, items, name):
    """What the comparison rests on: systems that share answers differ less than others."""
    for one, other in itertools.combinations(range(len(SYSTEMS)), 2):
        found, expected = (x[name][:, one] - x[name][:, other] for x in (drawn, items))
        assert disagreements(found, expected, 6 * len(NAMES)) == []


def test_systems_that_share_answers_vary_together(drawn):
    together = np.corrcoef(drawn["mae"].T)
    assert together[1, 3] > together[1, 2] + 0.2


def test_systems_that_answer_the_same_have_the_same_value_in_each_draw():
    gold, systems = sampled(SIZE, 100, 5, [0.7, 0.9])
    panel = panel_of(gold, {"a": systems["s0"], "x": systems["s1"], "b": systems["s0"]}, SIZE)
    for values in resample_jointly(panel, METRICS, Resampling(300)).values():
        assert np.array_equal(values[:, 0], values[:, 2], equal_nan=True)


def test_unanswered_items_are_drawn_like_others():
    gold, systems = sampled(SIZE, 120, 5, [0.6, 0.8])
    systems["s1"] = [None if k % 5 == 0 else p for k, p in enumerate(systems["s1"])]
    taking = [m for m in METRICS if m.takes_unanswered]
    found = resample_jointly(panel_of(gold, systems, SIZE), taking, Resampling(COUNT, 4))
    table = panel_of(gold, systems, SIZE).confusion_matrix("s1")
    for metric in taking:
        alone = resample_metrics([metric], table, make_resampler(table), Resampling(COUNT, 5))[
            metric.name
        ]
        assert disagreements(found[metric.name][:, 1], alone, len(taking)) == []


@pytest.fixture(scope="module")
def grouped():
    gold, systems = sampled(SIZE, 240, 9, [0.6, 0.9])
    groups = np.random.default_rng(9).integers(0, 35, 240)
    three = zip(systems["s0"], systems["s1"], groups, strict=True)
    systems["s1"] = [one if group % 2 else other for one, other, group in three]
    panel = panel_of(gold, systems, SIZE, groups=groups.tolist())
    found = resample_jointly(panel, METRICS, Resampling(2000, 1))
    return found, naive_draws(gold, systems, count=2000, seed=2, groups=groups)


@every_name
def test_whole_groups_are_drawn_for_all_systems_at_once(grouped, name):
    found, expected = (values[name] for values in grouped)
    check_covariances(found, expected)
    for place in range(2):
        assert disagreements(found[:, place], expected[:, place], 2 * len(NAMES)) == []


@pytest.fixture(scope="module")
def weighted():
    gold, systems = sampled(SIZE, 500, 13, [0.6, 0.9])
    weights = np.random.default_rng(13).lognormal(0.0, 0.8, 500)
    panel = panel_of(gold, systems, SIZE, weights=weights)
    found = resample_jointly(panel, METRICS, Resampling(1500, 1))
    return found, naive_draws(gold, systems, count=1500, seed=2, weights=weights)


@every_name
def test_real_weights_vary_like_weighted_items_drawn_again(weighted, name):
    """Gamma variables stand for Poisson counts of items: 10 % is room for what is smaller."""
    found, expected = (values[name] for values in weighted)
    check_covariances(found, expected, slack=0.1)
    error = expected.std(axis=0) * math.sqrt(2 / len(found))
    room = SIGMAS * error + 0.05 * expected.std(axis=0)
    assert (np.abs(found.mean(axis=0) - expected.mean(axis=0)) <= room).all()


def test_the_scale_of_real_weights_does_not_matter():
    gold, systems = sampled(SIZE, 300, 13, [0.6, 0.9])
    weights = np.random.default_rng(1).lognormal(0.0, 0.8, 300)
    spreads = []
    for factor in (0.01, 1.0, 37.5):
        panel = panel_of(gold, systems, SIZE, weights=weights * factor)
        drawn = resample_jointly(panel, METRICS, Resampling(500))
        spreads.append([drawn[name].std(axis=0) for name in NAMES])
    assert np.allclose(spreads[0], spreads[1])
    assert np.allclose(spreads[0], spreads[2])


# --- too many rows: normal resamples
# -----------------------------------------------------------------


@pytest.fixture
def as_normal(monkeypatch):
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)


@pytest.mark.parametrize("real", [False, True], ids=["counts", "real weights"])
def test_normal_draws_agree_with_drawn_items_in_mean_and_covariance(monkeypatch, real):
    """2,000 items: deviations within 8 %, correlations within 0.09, means within their errors."""
    gold, systems = sampled(SIZE, 2000, 21, [0.5, 0.7, 0.9])
    weights = np.random.default_rng(3).lognormal(0, 0.6, 2000) if real else None
    panel = panel_of(gold, systems, SIZE, weights=weights)
    drawn = resample_jointly(panel, METRICS, Resampling(4000, 1))
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)
    normal = resample_jointly(panel, METRICS, Resampling(4000, 2))
    for name in NAMES:
        one, two = normal[name], drawn[name]
        assert one.shape == two.shape
        spread = two.std(axis=0)
        assert np.abs(one.std(axis=0) / spread - 1).max() < 0.08, name
        assert np.abs(np.corrcoef(one.T) - np.corrcoef(two.T)).max() < 0.09, name
        room = SIGMAS * spread * math.sqrt(2 / 4000) + 0.06 * spread
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < room).all(), name


@pytest.mark.usefixtures("as_normal")
def test_normal_draws_are_normal_around_the_values():
    values = resample_jointly(PANEL, METRICS, Resampling(2000, 3))
    for name in NAMES:
        for place, system in enumerate(PANEL.systems):
            centre = float(find_metric(name)(PANEL.confusion_matrix(system)))
            found = values[name][:, place]
            assert abs(found.mean() - centre) < SIGMAS * found.std() / math.sqrt(2000)
            scaled = (found - found.mean()) / found.std()
            assert stats.kstest(scaled, "norm").pvalue > 1e-4


@pytest.mark.usefixtures("as_normal")
def test_normal_draws_of_systems_that_answer_the_same_are_the_same():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"again": systems["s0"]}, SIZE)
    for values in resample_jointly(panel, METRICS, Resampling(200)).values():
        assert np.allclose(values[:, 0], values[:, 2], rtol=0, atol=1e-6)


@pytest.mark.usefixtures("as_normal")
def test_normal_draws_leave_a_system_without_a_value_without_one_and_keep_the_others():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"flat": [1] * 400}, SIZE)
    values = resample_jointly(panel, [find_metric("kendall_tau_b")], Resampling(500))[
        "kendall_tau_b"
    ]
    assert np.isnan(values[:, 2]).all()
    assert not np.isnan(values[:, :2]).any()
    assert values[:, :2].std(axis=0).min() > 0


@pytest.mark.usefixtures("as_normal")
def test_normal_draws_leave_a_system_that_the_metric_refuses_without_a_value():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"silent": [None, *systems["s0"][1:]]}, SIZE)
    values = resample_jointly(panel, [find_metric("quadratic_kappa")], Resampling(500))[
        "quadratic_kappa"
    ]
    assert not np.isnan(values[:, :2]).any()


def test_metrics_without_a_derivative_are_never_drawn_as_normal(monkeypatch):
    """Two levels tie for the worst, where the delta method is refused: it is wrong by far."""
    gold = [0] * 300 + [1] * 300
    one = [0] * 200 + [1] * 100 + [1] * 200 + [0] * 100
    other = [0] * 210 + [1] * 90 + [1] * 210 + [0] * 90
    panel = panel_of(gold, {"one": one, "other": other}, 2)
    metrics = [find_metric("max_mae"), find_metric("min_sensitivity")]
    drawn = resample_jointly(panel, metrics, Resampling(3000, 1))
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)
    found = resample_jointly(panel, metrics, Resampling(3000, 2))
    for name in ("max_mae", "min_sensitivity"):
        for place in range(2):
            assert disagreements(found[name][:, place], drawn[name][:, place], 4) == []


@pytest.mark.usefixtures("as_normal")
def test_groups_are_drawn_whole_however_many_rows_there_are():
    gold, systems = sampled(SIZE, 240, 9, [0.6, 0.9])
    groups = [k % 40 for k in range(240)]
    panel = panel_of(gold, systems, SIZE, groups=groups)
    found = resample_jointly(panel, METRICS, Resampling(500, 1))["mae"]
    assert (
        len(np.unique(found.round(12))) < 500
    )  # means of few items tie; normal resamples never do


# --- the same resamples everywhere
# -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["items", "weights", "groups"])
def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch, how):
    gold, systems = sampled(SIZE, 120, 9, [0.6, 0.9])
    more = {
        "items": {},
        "weights": {"weights": np.linspace(0.3, 2.2, 120)},
        "groups": {"groups": [k % 40 for k in range(120)]},
    }[how]
    panel = panel_of(gold, systems, SIZE, **more)
    monkeypatch.setattr(system_differences, "LARGE_BLOCK_SIZE", 5000)  # many blocks
    found = []
    for workers in (1, 2, 7):
        monkeypatch.setattr(os, "cpu_count", lambda workers=workers: workers)
        found.append(resample_jointly(panel, METRICS, Resampling(500, 3)))
    for name in NAMES:
        assert np.array_equal(found[0][name], found[1][name], equal_nan=True)
        assert np.array_equal(found[0][name], found[2][name], equal_nan=True)


def test_draws_come_from_the_seed():
    one, two, three = (
        resample_jointly(PANEL, METRICS, Resampling(200, seed)) for seed in (5, 5, 6)
    )
    for name in NAMES:
        assert np.array_equal(one[name], two[name], equal_nan=True)
        assert not np.array_equal(one[name], three[name], equal_nan=True)


def test_a_metric_has_the_same_draws_whatever_it_is_drawn_with():
    alone = resample_jointly(PANEL, [find_metric("mae")], Resampling(300, 1))["mae"]
    assert np.array_equal(alone, resample_jointly(PANEL, METRICS, Resampling(300, 1))["mae"])


def test_progress_reaches_the_end():
    said = []
    resample_jointly(PANEL, METRICS, Resampling(300), said.append)
    assert said == sorted(said)
    assert said[-1] == 1


# --- max-T ---------------------------------------------------------------------------------------


def written_out(values, drawn, pairs, level):
    """Max-T stepping down, in plain loops: p alone, p adjusted, limits."""
    count = len(drawn)
    gaps = [values[i] - values[j] for i, j in pairs]
    moved = [[row[i] - row[j] for row in drawn] for i, j in pairs]
    errors = [statistics.stdev(column) for column in moved]
    reach = [abs(gap) / error for gap, error in zip(gaps, errors, strict=True)]
    away = [
        [abs(x - gap) / error for x in column]
        for column, gap, error in zip(moved, gaps, errors, strict=True)
    ]
    alone = [
        (1 + sum(x >= r for x in column)) / (count + 1)
        for column, r in zip(away, reach, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda k: -reach[k])
    adjusted, least = [0.0] * len(pairs), 0.0
    for step, pair in enumerate(order):
        rivals = order[step:]
        hits = sum(max(away[k][draw] for k in rivals) >= reach[pair] for draw in range(count))
        least = max(least, (1 + hits) / (count + 1))
        adjusted[pair] = least
    largest = sorted(max(column[draw] for column in away) for draw in range(count))
    farthest = largest[math.ceil(level * (count - 1) - 1e-9)]
    limits = [
        (gap - farthest * error, gap + farthest * error)
        for gap, error in zip(gaps, errors, strict=True)
    ]
    return gaps, errors, alone, adjusted, limits


@st.composite
def races(draw):
    """Values of systems, and joint resamples around them."""
    systems = draw(st.integers(2, 5))
    count = draw(st.integers(10, 60))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    values = rng.normal(0, draw(st.sampled_from([0.1, 1.0, 3.0])), systems)
    mixed = rng.normal(0, 1, (systems, systems))
    return values, values + rng.normal(0, 1, (count, systems)) @ mixed


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=100)
def test_max_t_is_what_it_is_written_out(race, level):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, level)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    gaps, errors, alone, adjusted, limits = written_out(
        values.tolist(), drawn.tolist(), pairs, level
    )
    assert found.value == pytest.approx(gaps, rel=1e-12)
    assert found.error == pytest.approx(errors, rel=1e-9)
    assert found.p == pytest.approx(alone, rel=1e-12)
    assert found.adjusted == pytest.approx(adjusted, rel=1e-12)
    assert found.low == pytest.approx([low for low, _ in limits], rel=1e-9)
    assert found.high == pytest.approx([high for _, high in limits], rel=1e-9)


@given(race=races(), data=st.data())
@settings(max_examples=60)
def test_max_t_of_a_family_of_some_pairs_is_what_it_is_written_out(race, data):
    values, drawn = race
    centre = data.draw(st.integers(0, len(values) - 1))
    others = np.array([k for k in range(len(values)) if k != centre])
    found = compare_pairs(values, drawn, np.full(len(others), centre), others, LEVEL)
    pairs = [(centre, int(other)) for other in others]
    _, _, alone, adjusted, _ = written_out(values.tolist(), drawn.tolist(), pairs, LEVEL)
    assert found.p == pytest.approx(alone, rel=1e-12)
    assert found.adjusted == pytest.approx(adjusted, rel=1e-12)


@given(races())
@settings(max_examples=100)
def test_adjusted_p_values_are_never_below_plain_ones_and_fall_with_the_reach(race):
    values, drawn = race
    found = compare_pairs(values, drawn, *list_pairs(len(values)), LEVEL)
    assert (found.adjusted >= found.p - 1e-15).all()
    assert (found.adjusted <= 1).all()
    assert (found.p >= 1 / (len(drawn) + 1) - 1e-15).all()
    order = np.argsort(-np.abs(found.value) / found.error)
    assert (np.diff(found.adjusted[order]) >= 0).all()


@given(races())
@settings(max_examples=50)
def test_more_pairs_never_make_an_adjusted_p_value_smaller(race):
    values, drawn = race
    first, second = list_pairs(len(values))
    everyone = compare_pairs(values, drawn, first, second, LEVEL)
    for pair in range(len(first)):
        alone = compare_pairs(values, drawn, first[[pair]], second[[pair]], LEVEL)
        assert alone.adjusted == pytest.approx(alone.p)
        assert everyone.adjusted[pair] >= alone.adjusted[0] - 1e-15
        assert everyone.high[pair] >= alone.high[0] - 1e-12


def test_a_pair_alone_has_the_limits_of_its_own_draws():
    rng = np.random.default_rng(1)
    drawn = rng.normal([0.3, 0.0], 1.0, (999, 2))
    found = compare_pairs(np.array([0.3, 0.0]), drawn, np.array([0]), np.array([1]), 0.9)
    far = np.quantile(np.abs(drawn[:, 0] - drawn[:, 1] - 0.3), 0.9, method="higher")
    assert found.low[0] == pytest.approx(0.3 - far)
    assert found.high[0] == pytest.approx(0.3 + far)


def test_blocks_of_draws_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    values, drawn = rng.normal(0, 1, 5), rng.normal(0, 1, (333, 5))
    whole = compare_pairs(values, drawn, *list_pairs(5), LEVEL)
    shares = compute_rank_shares(drawn)
    monkeypatch.setattr(system_differences, "LARGE_BLOCK_SIZE", 100)
    parts = compare_pairs(values, drawn, *list_pairs(5), LEVEL)
    assert np.array_equal(whole.adjusted, parts.adjusted)
    assert np.array_equal(whole.p, parts.p)
    assert np.allclose(whole.high, parts.high)
    assert np.allclose(shares, compute_rank_shares(drawn))


def apart_of(values, drawn, level=LEVEL, least=None):
    return find_significant_pairs(values, drawn, level, max_t_statistic(values, drawn), least)


def test_systems_that_never_differ_have_no_difference():
    rng = np.random.default_rng(2)
    one = rng.normal(0, 1, 400)
    drawn = np.stack([one, one, rng.normal(0, 1, 400)], axis=1)
    found = compare_pairs(np.array([0.2, 0.2, 9.0]), drawn, *list_pairs(3), LEVEL)
    assert (found.value[0], found.error[0], found.low[0], found.high[0]) == (0, 0, 0, 0)
    assert found.p[0] == found.adjusted[0] == 1
    assert not apart_of(np.array([0.2, 0.2, 9.0]), drawn)[0, 1]


def test_systems_that_differ_by_the_same_amount_in_every_draw_are_told_apart():
    """One system is always right and the other never: no draw shows anything else.

    How far the difference might be from what it is, no draw says either: it has no limits.
    """
    rng = np.random.default_rng(2)
    drawn = np.stack([np.ones(400), np.zeros(400), rng.normal(0.5, 0.1, 400)], axis=1)
    values = np.array([1.0, 0.0, 0.5])
    found = compare_pairs(values, drawn, *list_pairs(3), LEVEL)
    assert found.p[0] == pytest.approx(1 / 401)
    assert found.adjusted[0] < 0.05
    assert apart_of(values, drawn)[0, 1]
    assert (found.value[0], found.error[0]) == (1, 0)
    assert np.isnan(found.low).tolist() == np.isnan(found.high).tolist() == [True, False, False]


@pytest.mark.parametrize("few", [0.5, 0.0625, 0.015625, 1e-9])
def test_no_p_value_is_below_the_least_that_swaps_can_reach(few):
    rng = np.random.default_rng(2)
    drawn = np.stack([np.ones(400), np.zeros(400), rng.normal(0.5, 0.1, 400)], axis=1)
    values, least = np.array([1.0, 0.0, 0.5]), np.full((3, 3), few)
    plain = compare_pairs(values, drawn, *list_pairs(3), LEVEL)
    found = compare_pairs(values, drawn, *list_pairs(3), LEVEL, least=least)
    assert found.p == pytest.approx(np.maximum(plain.p, few))
    assert found.adjusted == pytest.approx(np.maximum(plain.adjusted, few))
    assert np.array_equal(found.low, plain.low, equal_nan=True)
    assert apart_of(values, drawn, least=least)[0, 1] == (few < 0.05)


def different(one, other, counts):
    """How many items have different answers, or how many groups have such an item."""
    if isinstance(counts, dict):
        apart = zip(one, other, counts["groups"], strict=True)
        return len({group for x, y, group in apart if x != y})
    return sum(n for x, y, n in zip(one, other, counts, strict=True) if x != y)


@pytest.mark.parametrize("how", ["items", "whole", "real", "groups"])
def test_the_least_p_value_is_that_of_swapping_every_answer_that_differs(how):
    gold, systems = sampled(SIZE, 25, 4, [0.2, 0.3, 0.9])
    systems["again"] = systems["s0"]
    systems["silent"] = [None, *systems["s0"][1:]]
    more, counts = {}, [1] * 25
    if how == "whole":
        counts = [1 + k % 3 for k in range(25)]
        more = {"weights": counts}
    elif how == "real":
        more = {"weights": np.linspace(0.3, 1.9, 25)}
    elif how == "groups":
        more = {"groups": [k % 6 for k in range(25)]}
        counts = more
    found = smallest_attainable_p(panel_of(gold, systems, SIZE, **more))
    for (i, one), (j, other) in itertools.product(enumerate(systems.values()), repeat=2):
        expected = min(1.0, 2.0 ** (1 - different(one, other, counts)))
        assert found[i, j] == expected, (i, j)
    assert found[0, 3] == 1
    assert found.min() < 0.05


@given(races())
@settings(max_examples=100)
def test_the_widest_reach_is_the_largest_of_all_pairs_in_each_draw(race):
    values, drawn = race
    expected = np.zeros(len(drawn))
    for i, j in itertools.combinations(range(len(values)), 2):
        moved = drawn[:, i] - drawn[:, j]
        away = np.abs(moved - (values[i] - values[j])) / moved.std(ddof=1)
        expected = np.maximum(expected, away)
    assert max_t_statistic(values, drawn) == pytest.approx(expected, rel=1e-9)


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=60)
def test_a_wider_family_widens_limits_and_raises_adjusted_p_values_only(race, level):
    """Pairs with the leader are judged as if all pairs had been looked at: in one step."""
    values, drawn = race
    count, systems = drawn.shape
    others = np.arange(1, systems)
    first = np.zeros(systems - 1, int)
    widest = max_t_statistic(values, drawn)
    alone = compare_pairs(values, drawn, first, others, level)
    found = compare_pairs(values, drawn, first, others, level, widest=widest)
    assert np.array_equal(found.p, alone.p)
    assert (found.adjusted >= alone.adjusted - 1e-15).all()
    assert (found.high >= alone.high - 1e-12).all()
    reach = np.abs(found.value) / found.error
    expected = [(1 + sum(x >= r - 1e-12 for x in widest)) / (count + 1) for r in reach]
    assert found.adjusted == pytest.approx(expected, rel=1e-12)
    half = np.sort(widest)[math.ceil(level * (count - 1) - 1e-9)] * found.error
    assert found.high - found.value == pytest.approx(half, rel=1e-9)
    apart = apart_of(values, drawn, level)
    assert apart[0, 1:].tolist() == (found.adjusted < 1 - level).tolist()


def test_without_pairs_there_are_no_differences():
    nobody = np.array([], int)
    found = compare_pairs(np.array([0.5]), np.full((100, 1), 0.5), nobody, nobody, LEVEL)
    assert len(found.p) == len(found.adjusted) == len(found.low) == 0


@given(race=races(), level=st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=100)
def test_who_is_told_apart_are_those_whose_simultaneous_limits_leave_out_0(race, level):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, level)
    told = apart_of(values, drawn, level)
    assert np.array_equal(told, told.T)
    outside = (found.low > 0) | (found.high < 0)
    reach = np.abs(found.value) / found.error
    widest = max_t_statistic(values, drawn)
    p = np.array([(1 + (widest >= r - 1e-12).sum()) / (len(drawn) + 1) for r in reach])
    assert np.array_equal(told[first, second], p < 1 - level)
    assert (p[outside] < 1 - level + 2 / (len(drawn) + 1)).all()  # but for the draw at the limit
    assert (p[~outside] > 1 - level - 2 / (len(drawn) + 1)).all()


@given(races())
@settings(max_examples=50)
def test_stepping_down_tells_apart_whom_one_step_tells_apart(race):
    values, drawn = race
    first, second = list_pairs(len(values))
    found = compare_pairs(values, drawn, first, second, LEVEL)
    once = apart_of(values, drawn)[first, second]
    assert (found.adjusted[once] < 1 - LEVEL).all()


# --- errors over the family ----------------------------------------------------------------------

REPLICATES, DRAWS = 300, 300


def alarms(name, replicates=REPLICATES, size=3, systems=4, n=200):
    """How often equally good systems differ significantly: by adjusted p, by limits, by plain p."""
    seen = np.zeros(3)
    pairs = list_pairs(systems)
    for replicate_ in range(replicates):
        gold, answers = sampled(size, n, 10_000 + replicate_, [0.8] * systems)
        panel = panel_of(gold, answers, size)
        metric = find_metric(name)
        values = np.array(
            [float(metric(panel.confusion_matrix(system))) for system in panel.systems]
        )
        drawn = resample_jointly(panel, [metric], Resampling(DRAWS, replicate_))[name]
        found = compare_pairs(values, drawn, *pairs, LEVEL)
        outside = (found.low > 0) | (found.high < 0)
        seen += [(found.adjusted <= 0.05).any(), outside.any(), (found.p <= 0.05).any()]
    return seen / replicates


@pytest.mark.parametrize("name", ["mae", "quadratic_kappa"])
def test_of_equal_systems_any_two_are_told_apart_in_one_of_twenty_samples(name):
    """Familywise errors within 3 binomial standard errors of 5 %; uncorrected ones far above."""
    adjusted, outside, plain = alarms(name)
    error = math.sqrt(0.05 * 0.95 / REPLICATES)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error
    assert plain > 0.05 + 3 * error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "mae", "cem_ord", "quadratic_kappa", "macro_mae"])
def test_of_equal_systems_any_two_are_told_apart_in_one_of_twenty_of_many_samples(name):
    adjusted, outside, _ = alarms(name, 1500)
    error = math.sqrt(0.05 * 0.95 / 1500)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error


def crowd_alarms(replicates, systems=60, resamples=400):
    """How often the leader of equals differs significantly from any: by all pairs, by its own."""
    seen = np.zeros(3)
    rng = np.random.default_rng(7)
    for _ in range(replicates):
        values = rng.normal(0, 1, systems)
        drawn = values + rng.normal(0, 1, (resamples, systems))
        leader = int(np.argmax(values))
        others = np.delete(np.arange(systems), leader)
        first = np.full(systems - 1, leader)
        widest = max_t_statistic(values, drawn)
        wide = compare_pairs(values, drawn, first, others, LEVEL, widest=widest)
        own = compare_pairs(values, drawn, first, others, LEVEL)
        apart = find_significant_pairs(values, drawn, LEVEL, widest)
        assert np.array_equal(apart[leader, others], wide.adjusted < 0.05)
        seen += [(wide.adjusted < 0.05).any(), (wide.low > 0).any(), (own.adjusted < 0.05).any()]
    return seen / replicates


def test_the_leader_of_sixty_equal_systems_is_told_apart_in_one_of_twenty_samples():
    """The leader was chosen by looking: with its own pairs only, errors are far more frequent."""
    adjusted, outside, own = crowd_alarms(300)
    error = math.sqrt(0.05 * 0.95 / 300)
    assert abs(adjusted - 0.05) <= 3 * error
    assert abs(outside - 0.05) <= 3 * error
    assert own > 0.05 + 5 * error


# --- few groups: Student's resamples
# -----------------------------------------------------------------


def few_groups(count, seed=9, n=240):
    gold, systems = sampled(SIZE, n, seed, [0.6, 0.9])
    groups = np.random.default_rng(seed).permutation(np.arange(n) % count)
    return gold, systems, groups


@pytest.mark.parametrize("count", [8, 20, 29])
def test_few_groups_are_drawn_from_students_t_of_their_sums(count):
    """Mean errors: what each group pulls, its covariance over groups, and heavier tails."""
    gold, systems, groups = few_groups(count)
    panel = panel_of(gold, systems, SIZE, groups=groups.tolist())
    drawn = resample_jointly(panel, [find_metric("mae")], Resampling(8000, 3))["mae"]
    gaps = np.abs(np.array(list(systems.values())) - gold)
    pulls = np.array(
        [
            (gaps - gaps.mean(axis=1, keepdims=True))[:, groups == g].sum(axis=1)
            for g in range(count)
        ]
    )
    apart = (pulls - pulls.mean(axis=0)) / len(gold)
    covariance = count / (count - 1) * apart.T @ apart
    scaled = (drawn - gaps.mean(axis=1)) / np.sqrt(np.diag(covariance))
    for place in range(2):
        assert stats.kstest(scaled[:, place], stats.t(count - 1).cdf).pvalue > 1e-3
    gap = (scaled * np.sqrt(np.diag(covariance))) @ [1, -1]
    error = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert stats.kstest(gap / error, stats.t(count - 1).cdf).pvalue > 1e-3


def test_thirty_groups_and_rough_metrics_are_drawn_whole():
    for count, name, drawn_whole in ((30, "mae", True), (29, "mae", False), (29, "purity", True)):
        gold, systems, groups = few_groups(count)
        panel = panel_of(gold, systems, SIZE, groups=groups.tolist())
        values = resample_jointly(panel, [find_metric(name)], Resampling(500, 1))[name]
        assert (len(np.unique(values.round(12))) < 900) == drawn_whole, (count, name)


def test_few_groups_of_systems_that_answer_the_same_have_the_same_draws():
    gold, systems, groups = few_groups(7)
    again = {"z": systems["s1"], **systems, "again": systems["s0"]}
    panel = panel_of(gold, again, SIZE, groups=groups.tolist())
    for values in resample_jointly(panel, METRICS, Resampling(200)).values():
        assert np.array_equal(values[:, 0], values[:, 2])
        assert np.array_equal(values[:, 1], values[:, 3])
        assert not np.array_equal(values[:, 0], values[:, 1])


def test_few_groups_leave_a_system_without_a_value_without_one():
    gold, systems, groups = few_groups(7)
    panel = panel_of(gold, systems | {"flat": [1] * 240}, SIZE, groups=groups.tolist())
    values = resample_jointly(panel, [find_metric("kendall_tau_b")], Resampling(200))[
        "kendall_tau_b"
    ]
    assert np.isnan(values[:, 2]).all()
    assert not np.isnan(values[:, :2]).any()


@pytest.mark.parametrize("modelled", ["few groups", "many rows"])
def test_modelled_draws_do_not_depend_on_the_order_of_the_systems(monkeypatch, modelled):
    gold, systems, groups = few_groups(7)
    systems |= sampled(SIZE, 240, 10, [0.3, 0.5, 0.7])[1] | {"s9": systems["s0"]}
    more = {"groups": groups.tolist()} if modelled == "few groups" else {}
    monkeypatch.setattr(system_differences, "MOST_ROWS", 0)
    there, back = (
        resample_jointly(
            panel_of(gold, dict(x), SIZE, **more), [find_metric("mae")], Resampling(200)
        )["mae"]
        for x in (list(systems.items()), list(systems.items())[::-1])
    )
    assert there == pytest.approx(back[:, ::-1], abs=1e-7)  # the roots of eigenvalues of 0


def test_one_group_has_draws_that_do_not_fail():
    gold, systems, _ = few_groups(7)
    panel = panel_of(gold, systems, SIZE, groups=["one"] * 240)
    for values in resample_jointly(
        panel, [*METRICS, find_metric("purity")], Resampling(100)
    ).values():
        assert values.shape == (100, 2)


@pytest.mark.parametrize("count", [6, 12])
def test_equal_systems_on_few_groups_are_told_apart_in_one_of_twenty_samples(count):
    """Answers of a group are right or wrong together; 400 samples, 3 binomial errors above 5 %."""
    rng, seen = np.random.default_rng(3), 0
    for replicate_ in range(400):
        gold = rng.integers(0, 3, 10 * count)
        groups = np.arange(10 * count) % count
        answers = {}
        for name in ("a", "b"):
            shift = rng.normal(0, 0.6, count)[groups] + rng.normal(0, 0.5, 10 * count)
            answers[name] = np.clip(np.rint(gold + shift), 0, 3).astype(int).tolist()
        panel = panel_of(gold.tolist(), answers, SIZE, groups=groups.tolist())
        values = np.array(
            [float(find_metric("mae")(panel.confusion_matrix(name))) for name in answers]
        )
        drawn = resample_jointly(panel, [find_metric("mae")], Resampling(400, replicate_))["mae"]
        found = compare_pairs(
            values, drawn, *list_pairs(2), LEVEL, least=smallest_attainable_p(panel)
        )
        seen += found.adjusted[0] < 0.05
    assert seen / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    assert seen > 0


# --- ranks ---------------------------------------------------------------------------------------

few_values = st.lists(st.sampled_from([0.1, 0.2, 0.5, -1.0]), min_size=1, max_size=6)


@given(few_values)
def test_the_rank_is_one_more_than_the_number_of_better_systems(merits):
    found = rank_systems(np.array(merits)).tolist()
    assert found == [1 + sum(other > merit for other in merits) for merit in merits]


def test_values_that_differ_by_rounding_share_a_rank():
    assert rank_systems(np.array([0.1 + 0.2, 0.3, 0.2])).tolist() == [1, 1, 3]


@given(rows=st.integers(1, 6).flatmap(
    lambda systems: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=systems, max_size=systems),
        min_size=1,
        max_size=12,
    )
))  # fmt: skip
@settings(max_examples=100)
def test_rank_shares_count_the_ranks_of_the_draws(rows):
    merits = np.array(rows)
    systems = merits.shape[1]
    found = compute_rank_shares(merits)
    for system in range(systems):
        seen = [1 + sum(x > row[system] for x in row) for row in rows]
        expected = [seen.count(rank) / len(rows) for rank in range(1, systems + 1)]
        assert found[system].tolist() == pytest.approx(expected)
    assert found.sum(axis=1) == pytest.approx(np.ones(systems))


@given(merits=few_values, data=st.data())
@settings(max_examples=100)
def test_rank_limits_count_those_who_are_surely_better_and_surely_worse(merits, data):
    systems = len(merits)
    apart = np.zeros((systems, systems), bool)
    for i, j in itertools.combinations(range(systems), 2):
        apart[i, j] = apart[j, i] = merits[i] != merits[j] and data.draw(st.booleans())
    better = np.array([[one > other for other in merits] for one in merits])
    low, high = compute_rank_intervals(apart, better)
    place = rank_systems(np.array(merits))
    for k in range(systems):
        surely = [j for j in range(systems) if apart[k, j]]
        assert low[k] == 1 + sum(merits[j] > merits[k] for j in surely)
        assert high[k] == systems - sum(merits[j] < merits[k] for j in surely)
        assert low[k] <= place[k] <= high[k]


def test_where_nobody_is_told_apart_every_rank_is_possible():
    better = np.triu(np.ones((4, 4), bool), 1)
    low, high = compute_rank_intervals(np.zeros((4, 4), bool), better)
    assert (low.tolist(), high.tolist()) == ([1] * 4, [4] * 4)
    low, high = compute_rank_intervals(better | better.T, better)
    assert low.tolist() == high.tolist() == [1, 2, 3, 4]
