"""Metrics of probabilities: what a loop over the items finds, what peers find, and their laws."""

import itertools
import math

import naive_probabilities as naive
import numpy as np
import pytest
import scoringrules
import sklearn.metrics as sk
import torch
import torchmetrics.functional.classification as tm
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from naive_probabilities import judged, sample
from skordinal.metrics import ranked_probability_score
from strategies import scale_of

from ordinate.errors import BadOption
from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.calibration import count_ordered_pairs
from ordinate.metrics.proper_scores import DECOMPOSITION_SIGNS, decompose_score
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.reliability import Reliability, ReliabilityParts

METRICS = list_metrics(Reliability)
every_metric = each_case("metric", {metric.name: metric for metric in METRICS})
BINNED = ("ece", "mce", "classwise_ece", "cumulative_ece")
SCORES = ("brier", "log_loss", "rps", "rps_sum")
EXPECTED = ("expected_mae", "expected_mse", "expected_cem_ord")


def summary(metrics, gold, rows, weights=None, scale=None, **options):
    scale = scale or scale_of(len(rows[0]))
    wanted = ReliabilityParts()
    for metric in metrics:
        wanted |= metric.required_parts
    labels = [scale.labels[g] for g in gold]
    return Reliability.of(labels, rows, scale, wanted, columns="scale", weights=weights, **options)


def value(name, gold, rows, weights=None, scale=None):
    metric = find_metric(name, Reliability)
    return float(metric(summary([metric], gold, rows, weights, scale)))


def test_calibration_is_listed_last_whichever_family_is_imported_first():
    families = list(dict.fromkeys(metric.family for metric in METRICS))
    assert families == ["proper scores", "expected values", "calibration"]


# --- over the items ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINNED)
@given(items=judged(), bins=st.sampled_from([1, 2, 5, 10, 15, 100]))
@examples(35)
def test_a_calibration_error_is_that_of_a_loop_over_the_items(name, items, bins):
    gold, rows, weights = items
    wanted = getattr(naive, name)(gold, rows, weights, bins)
    assert value(f"{name}(bins={bins})", gold, rows, weights) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", [*SCORES, "expected_mae", "expected_mse"])
@given(items=judged())
@examples(35)
def test_a_score_is_the_mean_over_the_items(name, items):
    gold, rows, weights = items
    wanted = getattr(naive, name)(gold, rows, weights)
    assert value(name, gold, rows, weights) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@given(items=judged())
@examples(35)
def test_expected_closeness_spreads_each_item_over_the_levels(items):
    gold, rows, weights = items
    # A level that gold lacks and a row expects is infinitely informative to nobody: only here.
    seen = {g for g, w in zip(gold, naive.each(gold, weights), strict=True) if w}
    rows = [[p if k in seen else 0.0 for k, p in enumerate(row)] for row in rows]
    rows = [[p / (sum(row) or 1) for p in row] for row in rows]
    rows = [
        row if sum(row) else [float(k == g) for k in range(len(row))]
        for g, row in zip(gold, rows, strict=True)
    ]
    weighing = naive.each(gold, weights)
    gold, rows, weights = zip(
        *[x for x in zip(gold, rows, weighing, strict=True) if x[2]], strict=True
    )
    if len(seen) == 1:
        return
    wanted = naive.expected_cem_ord(gold, rows, weights)
    assert value("expected_cem_ord", gold, rows, weights) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("at", [[0, 1, 4], [-3, 0.5, 1], [1990, 2000, 2020]])
def test_expected_distances_use_the_positions_of_the_levels(at):
    gold, rows = sample(60, size=3, seed=4)
    scale = Scale(["a", "b", "c"], positions=at)
    for name in ("expected_mae", "expected_mse", "c_index"):
        wanted = getattr(naive, name)(gold.tolist(), rows.tolist(), at=at)
        assert value(name, gold, rows, scale=scale) == pytest.approx(wanted, rel=5e-3)


def test_certain_rows_are_labels():
    rng = np.random.default_rng(1)
    gold, answers = rng.integers(0, 5, (2, 200))
    rows, scale = np.eye(5)[answers], scale_of(5)
    labels = [[scale.labels[k] for k in column] for column in (gold, answers)]
    table = ConfusionMatrix.of(*labels, scale)
    for name in ("mae", "mse", "cem_ord"):
        assert value(f"expected_{name}", gold, rows) == pytest.approx(find_metric(name)(table))
    assert value("c_index", gold, rows) == (1 + find_metric("somers_d")(table)) / 2
    wrong = 1 - find_metric("accuracy")(table)
    assert value("brier", gold, rows) == pytest.approx(2 * wrong)
    assert value("ece", gold, rows) == pytest.approx(wrong)
    assert value("mce", gold, rows) == pytest.approx(wrong)
    assert value("rps", gold, rows) == pytest.approx(find_metric("mae")(table) / 4)


# --- log loss ------------------------------------------------------------------------------------


def test_log_loss_clips_an_impossible_item_unless_told_not_to():
    gold, rows = [0, 1, 1], [[0.0, 1.0], [0.25, 0.75], [0.5, 0.5]]
    clipped = (-math.log(2.0**-52) - math.log(0.75) - math.log(0.5)) / 3
    assert value("log_loss", gold, rows) == pytest.approx(clipped, rel=1e-14)
    assert value("log_loss(clip=None)", gold, rows) == math.inf
    metric = find_metric("log_loss", Reliability)
    assert summary([metric], gold, rows).scores.clipped == 1


def test_log_loss_without_clipping_is_exact_for_what_is_only_unlikely():
    gold, rows = [0, 0, 1], [[1e-30, 1.0], [1e-300, 1.0], [0.5, 0.5]]
    exact = -(math.log(1e-30) + math.log(1e-300) + math.log(0.5)) / 3
    assert value("log_loss(clip=None)", gold, rows) == pytest.approx(exact, rel=1e-12)
    assert value("log_loss", gold, rows) < exact
    weighted = -(3 * math.log(1e-30) + math.log(0.5)) / 4
    found = value("log_loss(clip=None)", gold, rows, [3.0, 0.0, 1.0])
    assert found == pytest.approx(weighted, rel=1e-12)


# --- approximations ------------------------------------------------------------------------------


@pytest.mark.parametrize("sharpness", [1.0, 2.0])
@pytest.mark.parametrize("bins", [2, 5, 10])
def test_ace_is_near_exact_bins_of_equally_many_items(sharpness, bins):
    gold, rows = sample(4000, seed=5, sharpness=sharpness)
    exact = naive.ace(gold.tolist(), rows.tolist(), bins)
    # A fine bin holds some 4 of 4000 items: each border moves the gap of two bins by a few items.
    assert value(f"ace(bins={bins})", gold, rows) == pytest.approx(exact, abs=0.004)


def test_ace_is_exact_where_bins_end_between_fine_ones():
    confidence = np.repeat([0.55, 0.65, 0.75, 0.85], 5)
    rows = np.stack([confidence, 1 - confidence], axis=1)
    gold = np.tile([0, 0, 0, 1, 0], 4)
    exact = naive.ace(gold.tolist(), rows.tolist(), 4)
    assert value("ace(bins=4)", gold, rows) == pytest.approx(exact, abs=1e-12)
    assert exact == pytest.approx(np.mean(np.abs(np.array([0.55, 0.65, 0.75, 0.85]) - 0.8)))


@given(judged(max_items=20))
@examples(35)
def test_c_index_is_within_its_bound_of_a_loop_over_all_pairs(items):
    gold, rows, weights = items
    metric = find_metric("c_index", Reliability)
    table = summary([metric], gold, rows, weights)
    wanted = naive.c_index(gold, rows, weights)
    if math.isnan(wanted):
        assert math.isnan(metric(table))
        return
    _, tied, pairs = count_ordered_pairs(table)
    assert abs(metric(table) - wanted) <= tied / pairs / 2 + 1e-12


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), min_size=2, max_size=25))
def test_c_index_is_exact_where_expected_levels_are_far_apart(items):
    gold = [g for g, _ in items]
    parts = [(x // 20, (x % 20) / 20) for _, x in items]  # expected level: a multiple of 0.05
    rows = [
        [(1 - rest) * (k == low) + rest * (k == low + 1) for k in range(4)] for low, rest in parts
    ]
    steps = [20 * low + round(20 * rest) for low, rest in parts]
    right = total = 0.0
    for a, b in itertools.permutations(range(len(gold)), 2):
        if gold[a] > gold[b]:
            total += 1
            right += (steps[a] > steps[b]) + 0.5 * (steps[a] == steps[b])
    found = value("c_index", gold, rows)
    assert found == pytest.approx(right / total) if total else math.isnan(found)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([0.35, 0.25, 0.4], [0.3, 0.35, 0.35]),
        ([0.05, 0.4, 0.4, 0.15], [0.25, 0.15, 0.3, 0.3]),
        ([0.3, 0.05, 0.25, 0.15, 0.25], [0.05, 0.3, 0.3, 0.3, 0.05]),
        ([0.3, 0.15, 0.2, 0.1, 0.2, 0.05], [0.25, 0.15, 0.2, 0.3, 0.05, 0.05]),
    ],
)
def test_equal_expected_levels_are_tied_however_they_round(one, two):
    assert value("c_index", [0, 1], [one, two]) == 0.5
    assert value("c_index", [1, 0], [one, two]) == 0.5


def test_c_index_is_not_blurred_by_where_the_scale_starts():
    gold, rows = sample(100, size=4, seed=2)
    rows = np.round(rows, 7)  # sums are off by some 1e-7
    far = Scale(["a", "b", "c", "d"], positions=[10_000, 10_001, 10_002, 10_003])
    near = Scale(["a", "b", "c", "d"])
    assert value("c_index", gold, rows, scale=far) == value("c_index", gold, rows, scale=near)


# --- the five terms ------------------------------------------------------------------------------


@given(items=judged(), bins=st.sampled_from([1, 3, 10, 20]))
@examples(60)
def test_five_terms_sum_to_brier_and_rps(items, bins):
    gold, rows, weights = items
    wanted = ReliabilityParts(frozenset({("levels", bins), ("cumulative", bins)}), scores=True)
    scale = scale_of(len(rows[0]))
    labels = [scale.labels[g] for g in gold]
    table = Reliability.of(labels, rows, scale, wanted, columns="scale", weights=weights)
    for kind, name in (("levels", "brier"), ("cumulative", "rps_sum")):
        terms = decompose_score(table.bins[kind, bins])
        score = float(find_metric(name, Reliability)(table))
        assert float((DECOMPOSITION_SIGNS @ terms).sum()) == pytest.approx(score, abs=1e-12)
        assert (terms[:4] >= -1e-12).all()
        events = getattr(naive, kind)(gold, rows)
        for k, pairs in enumerate(events):
            by_hand = naive.five_terms(pairs, naive.each(gold, weights), bins)
            assert terms[:, k] == pytest.approx(by_hand, abs=1e-12)


def test_calibrated_rows_have_little_reliability_and_sharp_ones_much_resolution():
    gold, rows = sample(20_000, seed=3)
    wanted = ReliabilityParts(frozenset({("levels", 10)}))
    labels = np.array(scale_of(6).labels)[gold]
    terms = decompose_score(
        Reliability.of(labels, rows, scale_of(6), wanted, columns="scale").bins["levels", 10]
    ).sum(axis=-1)
    reliability, resolution, uncertainty, *_ = terms
    assert reliability < 0.005
    assert 0.1 < resolution < uncertainty


# --- peers ---------------------------------------------------------------------------------------


def peers_sample():
    gold, rows = sample(700, seed=11, sharpness=1.6)
    return gold, rows.round(3) / rows.round(3).sum(axis=1, keepdims=True)


def off_edges(rows, bins=10):
    """Tell whether no confidence is on an edge, where conventions differ."""
    best = rows.max(axis=1)
    return (np.abs(best[:, None] - np.linspace(0, 1, bins + 1)) > 1e-9).all(axis=1)


@pytest.mark.parametrize("bins", [5, 10, 15])
@pytest.mark.parametrize(("norm", "name"), [("l1", "ece"), ("max", "mce")])
def test_torchmetrics_agrees_off_the_edges(bins, norm, name):
    gold, rows = peers_sample()
    clear = off_edges(rows, bins)
    gold, rows = gold[clear], rows[clear]
    found = tm.multiclass_calibration_error(
        torch.tensor(rows), torch.tensor(gold), num_classes=6, n_bins=bins, norm=norm
    )
    assert value(f"{name}(bins={bins})", gold, rows) == pytest.approx(float(found), abs=1e-6)


def test_torchmetrics_puts_a_confidence_on_an_edge_into_the_upper_bin():
    """Its bins are [lo, hi): ours are (lo, hi], so 0.5 is with 0.45 here and with 0.55 there."""
    gold, rows = (
        [0, 1, 0, 1],
        [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.55, 0.45, 0.0], [0.45, 0.3, 0.25]],
    )
    theirs = float(
        tm.multiclass_calibration_error(
            torch.tensor(rows, dtype=torch.float64), torch.tensor(gold), num_classes=3, n_bins=10
        )
    )
    assert value("ece", gold, rows) == pytest.approx((abs(1.45 - 1) + abs(0.55 - 1)) / 4)
    assert theirs == pytest.approx((abs(0.45 - 0) + abs(1.55 - 2)) / 4, abs=1e-6)


def test_netcal_agrees_off_the_edges():
    netcal = pytest.importorskip("netcal.metrics", exc_type=ImportError)
    gold, rows = peers_sample()
    clear = off_edges(rows)
    gold, rows = gold[clear], rows[clear]
    assert value("ece", gold, rows) == pytest.approx(netcal.ECE(10).measure(rows, gold), abs=1e-9)
    assert value("mce", gold, rows) == pytest.approx(netcal.MCE(10).measure(rows, gold), abs=1e-9)
    filled = netcal.ACE(10, equal_intervals=False).measure(rows, gold)
    assert value("ace", gold, rows) == pytest.approx(filled, abs=0.005)
    assert netcal.ACE(10).measure(rows, gold) != pytest.approx(filled, abs=0.01)


def test_netcal_takes_the_second_of_two_levels():
    netcal = pytest.importorskip("netcal.metrics", exc_type=ImportError)
    rng = np.random.default_rng(0)
    rows, gold = rng.dirichlet([1, 1], 500), rng.integers(0, 2, 500)
    confident, right = rows.max(axis=1), (rows.argmax(axis=1) == gold).astype(int)
    for name, theirs in {"ece": netcal.ECE(10), "mce": netcal.MCE(10)}.items():
        own = value(name, gold, rows)
        assert own == pytest.approx(theirs.measure(confident, right), abs=1e-9)
        assert theirs.measure(rows, gold) == theirs.measure(rows[:, 1], gold)


def test_scikit_learn_agrees_about_log_loss_and_brier():
    gold, rows = peers_sample()
    weights = np.random.default_rng(0).integers(0, 5, len(gold)) / 2
    for w in (None, weights):
        theirs = sk.log_loss(gold, rows, sample_weight=w, labels=range(6))
        assert value("log_loss", gold, rows, w) == pytest.approx(theirs, rel=1e-12)
        theirs = sk.brier_score_loss(gold, rows, sample_weight=w, labels=range(6))
        assert value("brier", gold, rows, w) == pytest.approx(theirs, rel=1e-12)


def test_scikit_learn_agrees_about_what_is_clipped():
    gold, rows = [0, 1, 1], [[0.0, 1.0], [0.0, 1.0], [1e-20, 1.0]]
    assert value("log_loss", gold, rows) == pytest.approx(sk.log_loss(gold, rows), rel=1e-12)


def test_scikit_learn_halves_the_brier_score_of_two_levels():
    gold, rows = sample(300, size=2, seed=8)
    theirs = sk.brier_score_loss(gold, rows[:, 1])
    assert value("brier", gold, rows) == pytest.approx(2 * theirs, rel=1e-12)
    assert value("rps", gold, rows) == pytest.approx(theirs, rel=1e-12)


def test_scoringrules_agrees_about_brier_rps_and_log_loss():
    gold, rows = peers_sample()
    rps = scoringrules.rps_score(gold + 1, rows).mean()  # it counts categories from 1
    assert value("rps_sum", gold, rows) == pytest.approx(rps, rel=1e-12)
    assert value("rps", gold, rows) == pytest.approx(rps / 5, rel=1e-12)
    levels = [scoringrules.brier_score(gold == k, rows[:, k]) for k in range(6)]
    assert value("brier", gold, rows) == pytest.approx(np.sum(levels, axis=0).mean(), rel=1e-12)
    given = np.clip(rows[np.arange(len(gold)), gold], naive.EPS, 1.0)
    logs = scoringrules.log_score(np.ones(len(gold)), given).mean()
    assert value("log_loss", gold, rows) == pytest.approx(logs, rel=1e-12)


def test_skordinal_agrees_about_rps():
    gold, rows = peers_sample()
    theirs = ranked_probability_score(gold, rows)  # from 0 to K - 1, not divided
    assert value("rps_sum", gold, rows) == pytest.approx(theirs, rel=1e-12)
    assert value("rps", gold, rows) == pytest.approx(theirs / 5, rel=1e-12)


# --- laws ----------------------------------------------------------------------------------------


@every_metric
@given(items=judged())
@examples(25)
def test_values_are_within_the_bounds(metric, items):
    gold, rows, weights = items
    found = float(metric(summary([metric], gold, rows, weights)))
    low, high = metric.bounds
    assert math.isnan(found) or low <= found <= high + 1e-12
    if math.isnan(found):
        assert metric.undefined_when or metric.name.startswith("expected")


@every_metric
@given(items=judged(weighted=False), data=st.data())
@examples(12)
def test_the_order_of_items_does_not_matter(metric, items, data):
    gold, rows, _ = items
    order = data.draw(st.permutations(range(len(gold))))
    one = float(metric(summary([metric], gold, rows)))
    two = float(metric(summary([metric], [gold[k] for k in order], [rows[k] for k in order])))
    assert one == pytest.approx(two, abs=1e-12, nan_ok=True)


@every_metric
@given(items=judged(weighted=False))
@examples(12)
def test_the_names_of_levels_do_not_matter(metric, items):
    gold, rows, _ = items
    other = Scale([f"level {9 - k}" for k in range(len(rows[0]))])
    one = float(metric(summary([metric], gold, rows)))
    assert one == pytest.approx(
        float(metric(summary([metric], gold, rows, None, other))), nan_ok=True
    )


@every_metric
@given(items=judged(max_items=30))
@examples(12)
def test_a_batch_is_one_by_one_and_pools(metric, items):
    gold, rows, weights = items
    blocks = summary([metric], gold, rows, weights, blocks=3)
    together = np.asarray(metric(blocks))
    assert together.shape == (3,)
    assert np.isnan(together[blocks.items == 0]).all()
    for k in np.flatnonzero(blocks.items):
        alone = float(metric(blocks.map(lambda array, k=k: array[k])))
        assert together[k] == pytest.approx(alone, abs=1e-12, nan_ok=True)
    whole = float(metric(summary([metric], gold, rows, weights)))
    assert float(metric(blocks.pooled)) == pytest.approx(whole, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", [*BINNED, *SCORES, "ace", "ece_debiased", *EXPECTED[:2]])
@given(gold=st.lists(st.integers(0, 3), min_size=1, max_size=20))
@examples(12)
def test_perfect_probabilities_cost_nothing(name, gold):
    assert value(name, gold, np.eye(4)[gold].tolist()) == pytest.approx(0.0, abs=1e-15)


@given(judged(max_levels=4, weighted=False))
@examples(25)
def test_only_ordered_metrics_feel_another_order_of_the_levels(items):
    gold, rows, _ = items
    size = len(rows[0])
    order = [*range(1, size), 0]
    place = [order.index(k) for k in range(size)]
    mixed = [[row[k] for k in order] for row in rows]
    for name in ("brier", "log_loss", "classwise_ece"):
        assert not find_metric(name, Reliability).ordered
        one, two = value(name, gold, rows), value(name, [place[g] for g in gold], mixed)
        assert one == pytest.approx(two, abs=1e-12)


GRID = [[a / 5, b / 5, (5 - a - b) / 5] for a in range(6) for b in range(6 - a)]


@pytest.mark.parametrize("name", ["brier", "rps", "log_loss"])
def test_no_forecast_beats_the_truth(name):
    """Every truth of a grid against every forecast of it: the truth is best, and alone."""
    losses = np.array([[value(name, [g], [row]) for g in range(3)] for row in GRID])
    expected = losses @ np.array(GRID).T  # [forecast, truth]
    for truth in range(len(GRID)):
        others = np.delete(expected[:, truth], truth)
        assert (others > expected[truth, truth] + 1e-9).all()


@pytest.mark.parametrize("name", ["expected_mae", "expected_mse"])
def test_an_expected_distance_is_not_proper_and_a_hedge_on_the_middle_wins(name):
    truth, middle = [0.4, 0.2, 0.4], [0.0, 1.0, 0.0]
    honest, hedge = (
        sum(p * value(name, [g], [row]) for g, p in enumerate(truth)) for row in (truth, middle)
    )
    assert hedge < honest
    assert "Not proper" in find_metric(name, Reliability).explanation


def test_the_order_of_the_levels_matters_to_rps_and_not_to_brier():
    near, far = [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]
    assert value("rps", [0], near) < value("rps", [0], far)
    assert value("brier", [0], near) == value("brier", [0], far)


@given(judged(max_items=30, weighted=False))
@examples(25)
def test_the_debiased_error_is_never_above_the_plain_one(items):
    gold, rows, _ = items
    assert value("ece_debiased", gold, rows) <= value("ece", gold, rows) + 1e-12


def test_debiasing_takes_off_most_of_what_chance_adds():
    plain, debiased = [], []
    for seed in range(60):
        gold, rows = sample(400, seed=seed)
        plain.append(value("ece", gold, rows))
        debiased.append(value("ece_debiased", gold, rows))
    assert np.mean(plain) > 0.035
    assert np.mean(debiased) < 0.7 * np.mean(plain)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BINNED, "ece_debiased", "ace"])
@pytest.mark.parametrize("bins", ["0", "-1", "1001", "2.5", "'x'"])
def test_bins_are_a_whole_number_from_1_to_1000(name, bins):
    with pytest.raises(BadOption, match=r"integer|whole number"):
        value(f"{name}(bins={bins})", [0], [[1.0, 0.0]])


def test_a_whole_number_may_be_spelled_with_a_point():
    gold, rows = sample(50)
    for name in (*BINNED, "ace"):
        assert value(f"{name}(bins=4.0)", gold, rows) == value(f"{name}(bins=4)", gold, rows)


def test_clipping_is_on_or_off():
    with pytest.raises(BadOption, match=r"clip=0\.1 is not one of 'eps', None"):
        find_metric("log_loss(clip=0.1)", Reliability)
