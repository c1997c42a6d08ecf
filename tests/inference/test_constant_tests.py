"""Verdicts against a constant: of paired losses, never of a ratio."""

import numpy as np
import pytest

from ordinate import ConfusionMatrix, evaluate
from ordinate.inference.constant_tests import (
    FLIPPED,
    INTERVAL,
    MOST_FLIPPED_UNITS,
    STUDENT,
    decide_by_gains,
    decide_by_mean_gain,
)

SCALE = "1..5"


def test_of_five_gains_all_vectors_of_signs_are_tried():
    found = decide_by_gains(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), 0.95)
    assert (found.p, found.verdict, found.method) == (1 / 32, "better", FLIPPED)
    assert decide_by_gains(np.array([-3.0, -1.0, -2.0, -5.0, -4.0]), 0.95).verdict == "worse"
    assert decide_by_gains(np.array([1.0]), 0.95) is None


@pytest.mark.parametrize("counts", [None, np.array([30, 1, 20])])
def test_coins_agree_with_the_t_test_where_gains_are_normal(counts):
    rng = np.random.default_rng(3)
    gains = rng.normal(0.1, 1.0, 400) if counts is None else np.array([1.0, 5.0, -1.0])
    by_coins = decide_by_gains(gains, 0.95, counts)
    every = gains if counts is None else np.repeat(gains, counts)
    error = every.std(ddof=1) / len(every) ** 0.5
    by_t = decide_by_mean_gain(every.mean(), error, len(every), 0.95)
    assert (by_coins.method, by_t.method) == (FLIPPED, STUDENT)
    assert by_coins.p == pytest.approx(by_t.p, abs=0.02)


def test_very_many_gains_have_students_t():
    assert decide_by_gains(np.full(MOST_FLIPPED_UNITS + 1, 0.5), 0.95).method == STUDENT


def test_an_accuracy_whose_interval_holds_the_constant_goes_by_the_items_that_differ():
    """Few items differ from the constant prediction, and all of them for the better."""
    gold, predicted = [1] * 60 + [2] * 8, [1] * 60 + [2] * 8
    score = evaluate(gold, predicted, SCALE, "accuracy").metrics["accuracy"]
    assert score.against_constant.method == FLIPPED
    assert score.against_constant.p == pytest.approx(2**-8, abs=0.002)
    worse = [1] * 52 + [2] * 16
    found = evaluate(gold, [2, *worse[1:]], SCALE, "accuracy")
    assert found.metrics["accuracy"].estimate.low < 60 / 68
    assert found.metrics["accuracy"].against_constant.verdict == "inconclusive"
    assert "not significantly better than always predicting 1" in str(found)


def test_clusters_are_the_units_and_ratios_go_by_the_interval_of_their_difference():
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, 200)
    predicted = np.clip(gold + rng.integers(-1, 2, 200), 1, 5)
    groups = np.repeat(np.arange(10), 20)
    found = evaluate(gold, predicted, SCALE, "mae,cem_ord,quadratic_kappa,bias", groups=groups)
    methods = {
        name: score.against_constant and score.against_constant.method
        for name, score in found.metrics.items()
    }
    ratios = dict.fromkeys(("cem_ord", "quadratic_kappa"), INTERVAL)
    assert methods == {"mae": FLIPPED, **ratios, "bias": None}
    assert found.metrics["mae"].against_constant.p == 2**-10
    assert found.to_dict()["metrics"]["mae"]["against_constant"]["verdict"] == "better"
    none = evaluate(gold, predicted, SCALE, "mae", interval=None)
    assert none.metrics["mae"].against_constant is None


def test_real_weights_are_tested_by_what_their_squares_say():
    matrix = ConfusionMatrix.of([1, 2, 3, 4, 5] * 4, [1, 2, 3, 4, 5] * 4, SCALE, [0.5, 1.5] * 10)
    assert evaluate(matrix, metrics="mae").metrics["mae"].against_constant.method == STUDENT
