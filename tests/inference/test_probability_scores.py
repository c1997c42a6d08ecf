"""How sure metrics of probabilities are: against a bootstrap of items, and under the null."""

import math

import naive_probabilities as naive
import numpy as np
import pytest
from naive_probabilities import sample

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.probability_scores import (
    JACKKNIFE_BLOCKS,
    NO_VALID_INTERVAL_NOTE,
    _jackknife_error,
    _score_error,
    estimate_paired_difference,
    estimate_probability_metric,
    simulate_perfect_calibration,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.scale import Scale
from ordinate.summaries.reliability import Reliability, ReliabilityParts

HOW = ConfidenceIntervals(0.95, resamples=600)
ERRORS = ("ece", "ece_debiased", "mce", "classwise_ece", "cumulative_ece", "ace")
SEVERAL = ("classwise_ece", "cumulative_ece")  # of which each event has its own error
BY_BLOCKS = ("c_index", "expected_mae", "expected_mse", "expected_cem_ord")


def of(name):
    return find_metric(name, Reliability)


def summary(metrics, gold, rows, weights=None, blocks=None):
    wanted = ReliabilityParts()
    for metric in metrics:
        wanted |= metric.required_parts
    scale = Scale.of(f"0..{len(rows[0]) - 1}")
    return Reliability.of(gold, rows, scale, wanted, weights=weights, blocks=blocks)


def estimate(name, gold, rows, weights=None):
    metric = of(name)
    return estimate_probability_metric(
        metric, summary([metric], gold, rows, weights, JACKKNIFE_BLOCKS), HOW
    )


def item_bootstrap(metric, gold, rows, weights=None, resamples=300):
    """The standard deviation of a metric over resamples of the items themselves."""
    rng, values = np.random.default_rng(9), []
    for _ in range(resamples):
        chosen = rng.integers(0, len(gold), len(gold))
        drawn = None if weights is None else weights[chosen]
        values.append(float(metric(summary([metric], gold[chosen], rows[chosen], drawn))))
    return float(np.std(values))


# --- intervals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ["brier", "log_loss", "rps", "rps_sum"])
def test_the_error_of_a_score_is_that_of_a_bootstrap_of_items(name, weighted):
    gold, rows = sample(800, seed=1, sharpness=1.3)
    weights = np.random.default_rng(2).exponential(size=800) if weighted else None
    metric, of_item = of(name), getattr(naive, f"{name}_of")
    scores = np.array([of_item(g, row) for g, row in zip(gold, rows.tolist(), strict=True)])
    rng, means = np.random.default_rng(3), []
    for _ in range(3000):
        chosen = rng.integers(0, 800, 800)
        w = np.ones(800) if weights is None else weights[chosen]
        means.append(w @ scores[chosen] / w.sum())
    table = summary([metric], gold, rows, weights)
    # The deviation of 3000 resamples is known to 1.3 %; the limit is four times that.
    assert _score_error(metric, table, float(metric(table))) == pytest.approx(
        np.std(means), rel=0.06
    )


def test_the_error_of_a_plain_mean_is_the_textbook_one():
    gold, rows = sample(300, seed=4)
    scores = [naive.brier_of(g, row) for g, row in zip(gold, rows.tolist(), strict=True)]
    metric = of("brier")
    found = _score_error(metric, summary([metric], gold, rows), naive.brier(gold, rows.tolist()))
    assert found == pytest.approx(np.std(scores, ddof=1) / math.sqrt(300), rel=1e-9)


@pytest.mark.parametrize("name", BY_BLOCKS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_error_over_blocks_is_that_of_a_bootstrap_of_items(name, weighted):
    gold, rows = sample(1000, seed=6)
    weights = np.random.default_rng(7).exponential(size=1000) if weighted else None
    metric = of(name)
    found = _jackknife_error(metric, summary([metric], gold, rows, weights, JACKKNIFE_BLOCKS))
    # 63 degrees of freedom know a deviation to 9 %; the limit is three times that and more.
    assert found == pytest.approx(item_bootstrap(metric, gold, rows, weights), rel=0.35)


@pytest.mark.parametrize("name", ["brier", "log_loss", "rps", *BY_BLOCKS])
def test_an_interval_encloses_its_value_within_the_bounds(name):
    gold, rows = sample(200, seed=8)
    found, metric = estimate(name, gold, rows), of(name)
    assert metric.bounds[0] <= found.low < found.value < found.high <= metric.bounds[1]
    assert found.method == ("blocks" if name in BY_BLOCKS else "delta")
    half = (
        _score_error(metric, summary([metric], gold, rows), found.value)
        if (name not in BY_BLOCKS)
        else _jackknife_error(metric, summary([metric], gold, rows, None, JACKKNIFE_BLOCKS))
    )
    assert found.width == pytest.approx(2 * 1.96 * half, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brier", "log_loss", "rps", "c_index", "expected_mae"])
def test_intervals_cover(name):
    gold, rows = sample(400_000, seed=10)
    truth = estimate(name, gold, rows).value
    hits = 0
    for k in range(400):
        part = slice(400 * k, 400 * (k + 1))
        found = estimate(name, gold[part], rows[part])
        hits += found.low <= truth <= found.high
    assert 0.915 <= hits / 400 <= 0.985


@pytest.mark.parametrize("name", ERRORS)
def test_a_calibration_error_has_no_interval_but_says_why(name):
    gold, rows = sample(200, seed=8)
    found = estimate(name, gold, rows)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.method, found.note) == (None, NO_VALID_INTERVAL_NOTE)
    assert found.value == pytest.approx(float(of(name)(summary([of(name)], gold, rows))))


@pytest.mark.parametrize("name", ["brier", "log_loss", "rps", "rps_sum"])
def test_items_that_are_all_alike_have_no_interval_rather_than_one_of_rounding(name):
    for row in ([0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [1 - 1e-9, 1e-9, 0.0]):
        for n in (2, 100, 12_345):
            found = estimate(name, [0] * n, [row] * n)
            assert math.isnan(found.low)
            assert found.note == "it is the same for all items"


def test_one_item_has_no_interval():
    for metric in list_metrics(Reliability):
        found = estimate(metric.name, [1], [[0.2, 0.5, 0.3]])
        assert math.isnan(found.low)
        assert found.note


def test_what_is_infinite_or_undefined_has_a_reason():
    gold, rows = [0, 1, 1], [[0.0, 1.0], [0.3, 0.7], [0.4, 0.6]]
    found = estimate("log_loss(clip=None)", gold, rows)
    assert (found.value, found.note) == (math.inf, "it is infinite")
    assert found.to_dict()["value"] is None
    found = estimate("c_index", [1, 1], [[0.3, 0.7], [0.4, 0.6]])
    assert math.isnan(found.value)
    assert found.note == "gold has one level only"


def test_a_log_loss_that_is_not_clipped_has_an_error_of_its_own_items():
    gold, rows = sample(600, 2, seed=30)
    rows[:40] = [1e-60, 1.0]
    gold[:40] = 0
    metric = of("log_loss(clip=None)")
    found = estimate(metric.expression, gold, rows)
    losses = -np.log(rows[np.arange(600), gold])
    assert found.value == pytest.approx(losses.mean())
    assert found.method == "blocks"
    wanted = 2 * 1.96 * losses.std(ddof=1) / math.sqrt(600)
    assert found.width == pytest.approx(wanted, rel=0.3)
    gold, rows = sample(600, 2, seed=31)  # nothing to clip: both are the same mean
    assert estimate(metric.expression, gold, rows).low == estimate("log_loss", gold, rows).low


def test_values_next_to_a_bound_have_limits_inside_it():
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(300) < 0.5, 1e-9, 1e-7)
    rows = np.stack([1 - wrong, wrong], axis=1)
    found = estimate("brier", np.zeros(300, int), rows)
    assert math.isnan(found.low) or 0 <= found.low <= found.value <= found.high


@pytest.mark.parametrize("name", ERRORS)
def test_a_change_of_a_calibration_error_has_no_interval_either(name):
    gold, rows = sample(2000, 4, seed=40)  # two calibrated systems, one of which knows less
    shares = np.tile(rows.mean(axis=0), (2000, 1))
    metric = of(name)
    first, second = (
        summary([metric], gold, part, None, JACKKNIFE_BLOCKS) for part in (rows, shares)
    )
    found = estimate_paired_difference(metric, first, second, HOW)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.method, found.note) == (None, NO_VALID_INTERVAL_NOTE)
    assert found.value == pytest.approx(float(metric(second.pooled)) - float(metric(first.pooled)))


# --- under perfect calibration -------------------------------------------------------------------


def alarms(name, size, weights=None, sharpness=1.0, runs=300, n=300):
    """The p values of simulated systems."""
    found, metric = [], of(name)
    for run in range(runs):
        gold, rows = sample(n, size, seed=1000 + run, sharpness=sharpness)
        drawn = None if weights is None else weights(np.random.default_rng(run), n)
        table = summary([metric], gold, rows, drawn)
        found.append(
            simulate_perfect_calibration(
                metric, table, ConfidenceIntervals(resamples=200, seed=run)
            ).p
        )
    return np.array(found)


def exponential(rng, n):
    return rng.exponential(size=n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "weights"),
    [
        ("ece", 6, None),
        ("ece", 2, None),
        ("mce", 4, None),
        ("classwise_ece", 2, None),  # of which both events are one
        ("cumulative_ece", 2, None),
        ("ece(bins=2)", 4, None),
        ("ece", 6, exponential),
        ("cumulative_ece", 2, exponential),
    ],
)
def test_calibrated_systems_raise_an_alarm_one_time_in_twenty(name, size, weights):
    found = alarms(name, size, weights)
    assert (found <= 0.05).mean() < 0.1  # 0.05 and four standard errors of 300 simulations
    assert 0.4 < found.mean() < 0.62


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in ERRORS for size in (2, 3, 6) if size == 2 or name not in SEVERAL],
)
@pytest.mark.parametrize("weights", [None, exponential], ids=["plain", "weighted"])
def test_alarms_are_as_rare_as_they_should_be(name, size, weights):
    found = alarms(name, size, weights, runs=1000)
    assert 0.02 < (found <= 0.05).mean() < 0.09
    assert 0.42 < found.mean() < 0.58


@pytest.mark.parametrize("name", ERRORS)
def test_a_system_that_is_too_sure_raises_one(name):
    found = alarms(name, 2 if name in SEVERAL else 4, sharpness=2.5, runs=8, n=1500)
    assert (found <= 0.01).all() if name != "mce" else np.median(found) < 0.05


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ["ece", "mce", "classwise_ece", "cumulative_ece"])
@pytest.mark.parametrize("bins", [2, 10])
def test_the_mean_is_that_of_new_gold_levels_drawn_item_by_item(name, bins, weighted):
    _, rows = sample(250, 3, seed=20)
    rng = np.random.default_rng(21)
    weights = rng.exponential(size=250) if weighted else None
    metric = of(f"{name}(bins={bins})")
    drawn = []
    for _ in range(400):
        gold = (rng.random(250)[:, None] > rows.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        drawn.append(float(metric(summary([metric], gold, rows, weights))))
    found = simulate_perfect_calibration(
        metric, summary([metric], gold, rows, weights), ConfidenceIntervals(resamples=2000)
    )
    assert found.mean == pytest.approx(np.mean(drawn), rel=0.1)
    if name not in SEVERAL:
        assert found.high == pytest.approx(np.quantile(drawn, 0.95), rel=0.15)
        assert found.mean < found.high


@pytest.mark.parametrize("name", SEVERAL)
def test_events_that_happen_together_have_a_mean_but_no_p(name):
    rng = np.random.default_rng(25)
    first = rng.uniform(0.2, 0.8, 300)  # all at both ends: "at most k" is one event for all k
    rows = np.stack([first, *np.zeros((4, 300)), 1 - first], axis=1)
    golds = [np.where(rng.random(300) < first, 0, 5) for _ in range(300)]
    metric = of(name)
    drawn = [float(metric(summary([metric], gold, rows))) for gold in golds]
    found = simulate_perfect_calibration(
        metric, summary([metric], golds[0], rows), ConfidenceIntervals(resamples=1000)
    )
    assert found.mean == pytest.approx(np.mean(drawn), rel=0.1)
    assert math.isnan(found.high)
    assert math.isnan(found.p)
    assert found.to_dict() == {"mean": found.mean, "high": None, "p": None}


def test_a_bin_of_very_different_probabilities_spreads_as_its_own_items_do():
    rows = np.array([[0.98, 0.02], [0.02, 0.98]] * 100)
    rng, metric = np.random.default_rng(24), of("cumulative_ece(bins=1)")
    golds = [(rng.random(200) > rows[:, 0]).astype(int) for _ in range(500)]
    drawn = [float(metric(summary([metric], gold, rows))) for gold in golds]
    found = simulate_perfect_calibration(
        metric, summary([metric], golds[0], rows), ConfidenceIntervals(resamples=2000)
    )
    assert found.mean == pytest.approx(np.mean(drawn), rel=0.1)


def test_p_is_how_often_chance_reaches_the_value():
    gold, rows = sample(200, 3, seed=22)
    metric = of("ece")
    table = summary([metric], gold, rows)
    wanted = {}
    for seed in (0, 1):
        found = simulate_perfect_calibration(
            metric, table, ConfidenceIntervals(resamples=500, seed=seed)
        )
        assert 1 / 501 <= found.p <= 1
        assert found.p * 501 == pytest.approx(round(found.p * 501))
        wanted[seed] = found
    assert wanted[0] != wanted[1]
    assert wanted[0] == simulate_perfect_calibration(
        metric, table, ConfidenceIntervals(resamples=500, seed=0)
    )


def test_a_perfect_system_that_is_always_sure_is_what_calibration_expects():
    metric = of("ece")
    found = simulate_perfect_calibration(
        metric, summary([metric], [0, 1], [[1.0, 0.0], [0.0, 1.0]]), HOW
    )
    assert (found.mean, found.high, found.p) == (0.0, 0.0, 1.0)
    assert found.to_dict() == {"mean": 0.0, "high": 0.0, "p": 1.0}


def test_draws_in_portions_are_the_same_draws():
    gold, rows = sample(200, 4, seed=23)
    metric = of("ece")
    table = summary([metric], gold, rows)
    whole = simulate_perfect_calibration(metric, table, HOW)
    assert simulate_perfect_calibration(metric, table, HOW, most_cells=100) == whole
