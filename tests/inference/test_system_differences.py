"""Many systems: joint resamples against drawing items, max-T and ranks written out."""

import itertools
import math
import os

import numpy as np
import pytest
from oracles import SIGMAS, disagreements, naive_value, without_each
from panels import panel_of, sampled
from scipy import stats
from system_draws import COUNT, GOLD, METRICS, NAMES, PANEL, SIZE, SYSTEMS

from ordinate.inference.randomization import randomize_differences
from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.inference.system_differences import (
    list_pairs,
    resample_jointly,
)
from ordinate.metrics import find_metric

# --- the oracle: items resampled, with the answers of all systems ------------------------------


def columns_of(gold, systems):
    """Gold, and the answers of each system; no answer is the level above the highest."""
    answers = [[SIZE if p is None else p for p in column] for column in systems.values()]
    return np.array(gold), np.array(answers)


def naive_draws(gold, systems, *, count, seed, weights=None):
    """Metrics [count, S] by name of items resampled."""
    gold, answers = columns_of(gold, systems)
    weights = np.ones(len(gold)) if weights is None else np.asarray(weights)
    rng = np.random.default_rng(seed)
    cells = np.zeros((count, len(answers), SIZE, SIZE + 1))
    for draw in range(count):
        who = rng.integers(len(gold), size=len(gold))
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


@pytest.mark.parametrize("name", [*NAMES, "purity", "min_sensitivity"])
@pytest.mark.parametrize("count", [6, 15])
def test_groups_vary_for_all_systems_as_leaving_out_one_after_the_other_says(name, count):
    """Without the long tails the covariance is the jackknife's: 8,000 resamples, 4 errors."""
    gold, systems = sampled(SIZE, 45, 9, [0.6, 0.9])
    groups = np.random.default_rng(9).permutation(np.arange(45) % count)
    panel = panel_of(gold, systems, SIZE, groups=groups.tolist())
    found = resample_jointly(panel, [find_metric(name)], Resampling(8000, 1), tails=False)[name]
    apart = []
    for column in systems.values():
        pair = np.array(gold), np.array(column)
        whole = naive_value(name, *pair, SIZE)
        apart.append([v - whole for v in without_each(name, *pair, groups, SIZE)])
    apart = np.array(apart)
    expected = (count - 1) / count * apart @ apart.T
    errors = np.sqrt((np.outer(*[np.diag(expected)] * 2) + expected**2) / 8000)
    assert (np.abs(np.cov(found.T) - expected) <= SIGMAS * errors).all()


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


@pytest.mark.parametrize("real", [False, True], ids=["counts", "fractional weights"])
def test_normal_draws_agree_with_drawn_items_in_mean_and_covariance(real):
    """2,000 items: deviations within 8 %, correlations within 0.09, means within their errors."""
    gold, systems = sampled(SIZE, 2000, 21, [0.5, 0.7, 0.9])
    weights = np.random.default_rng(3).lognormal(0, 0.6, 2000) if real else None
    panel = panel_of(gold, systems, SIZE, weights=weights)
    drawn = resample_jointly(panel, METRICS, Resampling(4000, 1))
    normal = resample_jointly(panel, METRICS, Resampling(4000, 2), most_rows=0)
    for name in NAMES:
        one, two = normal[name], drawn[name]
        assert one.shape == two.shape
        spread = two.std(axis=0)
        assert np.abs(one.std(axis=0) / spread - 1).max() < 0.08, name
        assert np.abs(np.corrcoef(one.T) - np.corrcoef(two.T)).max() < 0.09, name
        room = SIGMAS * spread * math.sqrt(2 / 4000) + 0.06 * spread
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < room).all(), name


def test_normal_draws_are_normal_around_the_values():
    values = resample_jointly(PANEL, METRICS, Resampling(2000, 3), most_rows=0)
    for name in NAMES:
        for place, system in enumerate(PANEL.systems):
            centre = float(find_metric(name)(PANEL.confusion_matrix(system)))
            found = values[name][:, place]
            assert abs(found.mean() - centre) < SIGMAS * found.std() / math.sqrt(2000)
            scaled = (found - found.mean()) / found.std()
            assert stats.kstest(scaled, "norm").pvalue > 1e-4


def test_normal_draws_of_systems_that_answer_the_same_are_the_same():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"again": systems["s0"]}, SIZE)
    for values in resample_jointly(panel, METRICS, Resampling(200), most_rows=0).values():
        assert np.allclose(values[:, 0], values[:, 2], rtol=0, atol=1e-6)


def test_normal_draws_leave_a_system_without_a_value_without_one_and_keep_the_others():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"flat": [1] * 400}, SIZE)
    metrics = [find_metric("kendall_tau_b")]
    values = resample_jointly(panel, metrics, Resampling(500), most_rows=0)["kendall_tau_b"]
    assert np.isnan(values[:, 2]).all()
    assert not np.isnan(values[:, :2]).any()
    assert values[:, :2].std(axis=0).min() > 0


def test_normal_draws_leave_a_system_that_the_metric_refuses_without_a_value():
    gold, systems = sampled(SIZE, 400, 5, [0.7, 0.9])
    panel = panel_of(gold, systems | {"silent": [None, *systems["s0"][1:]]}, SIZE)
    metrics = [find_metric("quadratic_kappa")]
    values = resample_jointly(panel, metrics, Resampling(500), most_rows=0)["quadratic_kappa"]
    assert not np.isnan(values[:, :2]).any()


def test_metrics_without_a_derivative_are_never_drawn_as_normal():
    """Two levels tie for the worst, where the delta method is refused: it is wrong by far."""
    gold = [0] * 300 + [1] * 300
    one = [0] * 200 + [1] * 100 + [1] * 200 + [0] * 100
    other = [0] * 210 + [1] * 90 + [1] * 210 + [0] * 90
    panel = panel_of(gold, {"one": one, "other": other}, 2)
    metrics = [find_metric("max_mae"), find_metric("min_sensitivity")]
    drawn = resample_jointly(panel, metrics, Resampling(3000, 1))
    found = resample_jointly(panel, metrics, Resampling(3000, 2), most_rows=0)
    for name in ("max_mae", "min_sensitivity"):
        for place in range(2):
            assert disagreements(found[name][:, place], drawn[name][:, place], 4) == []


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
    found = []
    for workers in (1, 2, 7):
        monkeypatch.setattr(os, "cpu_count", lambda workers=workers: workers)
        # many blocks
        found.append(resample_jointly(panel, METRICS, Resampling(500, 3), block_size=5000))
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


# --- groups: Student's resamples
# -----------------------------------------------------------------


def few_groups(count, seed=9, n=240):
    gold, systems = sampled(SIZE, n, seed, [0.6, 0.9])
    groups = np.random.default_rng(seed).permutation(np.arange(n) % count)
    return gold, systems, groups


@pytest.mark.parametrize("count", [8, 20, 40])
def test_groups_are_drawn_from_students_t_of_their_sums(count):
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


def test_a_system_that_hangs_on_one_group_has_no_draws():
    """It predicts one level outside of a single group, without which it has no tau."""
    gold, systems, groups = few_groups(7)
    hanging = np.where(groups == 0, gold, 1).tolist()
    names = ["kendall_tau_b", "mae"]
    metrics = [find_metric(name) for name in names]
    panel = panel_of(gold, systems | {"hanging": hanging}, SIZE, groups=groups.tolist())
    tau, mae = (resample_jointly(panel, metrics, Resampling(2000))[name] for name in names)
    assert np.isnan(tau[:, 2]).all()
    assert not np.isnan(mae).any()
    alone = panel_of(gold, systems, SIZE, groups=groups.tolist())
    expected = resample_jointly(alone, metrics, Resampling(2000))["kendall_tau_b"]
    assert np.cov(tau[:, :2].T) == pytest.approx(np.cov(expected.T), rel=0.4)


@pytest.mark.parametrize("modelled", ["few groups", "many rows"])
def test_modelled_draws_do_not_depend_on_the_order_of_the_systems(modelled):
    gold, systems, groups = few_groups(7)
    systems |= sampled(SIZE, 240, 10, [0.3, 0.5, 0.7])[1] | {"s9": systems["s0"]}
    more = {"groups": groups.tolist()} if modelled == "few groups" else {}
    panels = (
        panel_of(gold, dict(x), SIZE, **more)
        for x in (list(systems.items()), list(systems.items())[::-1])
    )
    there, back = (
        resample_jointly(panel, [find_metric("mae")], Resampling(200), most_rows=0)["mae"]
        for panel in panels
    )
    assert there == pytest.approx(back[:, ::-1], abs=1e-7)  # the roots of eigenvalues of 0


def test_one_group_has_draws_that_do_not_fail():
    gold, systems, _ = few_groups(7)
    panel = panel_of(gold, systems, SIZE, groups=["one"] * 240)
    for values in resample_jointly(
        panel, [*METRICS, find_metric("purity")], Resampling(100)
    ).values():
        assert values.shape == (100, 2)


@pytest.mark.slow
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
        (found,) = randomize_differences(
            panel, [find_metric("mae")], [list_pairs(2)], Resampling(199, replicate_)
        )
        seen += found.compute_p_values().adjusted[0] <= 0.05
    assert seen / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    assert seen > 0
