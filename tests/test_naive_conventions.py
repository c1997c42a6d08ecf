"""The naive definitions keep the conventions: options, unanswered items, single levels."""

# The resamples need to be the same everywhere, not secret.

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from naive import NAIVE
from naive_samples import Sample, close, on_gaps, on_samples
from scipy import stats
from sklearn import metrics

RENNIE_SREBRO = {
    ("all", "hinge"): lambda d: d * (d + 1),
    ("immediate", "hinge"): lambda d: 2 * d,
    ("all", "zero_one"): lambda d: d,
    ("immediate", "zero_one"): lambda d: float(d > 0),
}


@on_gaps
@pytest.mark.parametrize(("options", "loss"), RENNIE_SREBRO.items(), ids=map(str, RENNIE_SREBRO))
def test_threshold_losses_are_functions_of_the_steps(options, loss, sample):
    kind, penalty = options
    steps = [abs(g - p) for g, p in zip(sample.gold, sample.predicted, strict=True)]
    value = NAIVE["rennie_srebro"](*sample, kind=kind, penalty=penalty)
    assert value == close(np.mean([loss(d) for d in steps]))


def test_logistic_threshold_losses_count_every_threshold():
    def loss(*margins: int) -> float:
        return sum(math.log(1 + math.exp(-margin)) for margin in margins)

    def value(gold: int, predicted: int, kind: str) -> float:
        return NAIVE["rennie_srebro"]([gold], [predicted], range(4), kind=kind, penalty="logistic")

    assert value(1, 1, "all") == close(loss(1, 1, 3))
    assert value(1, 1, "immediate") == close(loss(1, 1))
    assert value(0, 2, "all") == close(loss(-3, -1, 1))
    assert value(0, 2, "immediate") == close(loss(-3))
    assert value(2, 1, "immediate") == close(loss(-1, 3))


@on_gaps
def test_the_naive_expected_cost_of_distances_is_mae(sample):
    matrix = np.abs(np.subtract.outer(sample.positions, sample.positions))
    assert NAIVE["expected_cost"](*sample, matrix=matrix) == close(NAIVE["mae"](*sample))


def test_the_naive_expected_cost_reads_rows_as_gold():
    assert NAIVE["expected_cost"]([0, 1], [1, 1], range(2), matrix=[[0, 5], [7, 1]]) == close(3)


@on_gaps
def test_the_naive_bias_is_the_difference_of_the_mean_positions(sample):
    gold, predicted = sample.places
    assert NAIVE["bias"](*sample) == close(np.mean(predicted) - np.mean(gold))


@on_samples
def test_the_naive_sensitivity_is_reliability_with_the_sides_exchanged(sample):
    exchanged = NAIVE["reliability"](sample.predicted, sample.gold, sample.positions)
    assert NAIVE["sensitivity"](*sample) == close(exchanged)


def test_reliability_asks_only_about_the_orders_that_the_system_states():
    gold, predicted = [0, 1, 1, 2], [0, 0, 1, 1]
    # Items 0 to 3 keep 2 of 2, 1 of 2, 1 of 2 and 2 of 2 of the predicted orders.
    assert NAIVE["reliability"](gold, predicted, range(3)) == close(3 / 4)
    # And 2 of 3, 1 of 2, 1 of 2 and 2 of 3 of the gold orders.
    assert NAIVE["sensitivity"](gold, predicted, range(3)) == close((2 / 3 + 1 / 2) / 2)


def test_the_harmonic_mean_of_no_order_at_all_is_zero():
    assert NAIVE["reliability_sensitivity_f"]([0, 1], [1, 0], range(2)) == 0


@on_samples
def test_the_naive_purity_f_is_a_harmonic_mean(sample):
    parts = [NAIVE[name](*sample) for name in ("purity", "inverse_purity")]
    assert NAIVE["purity_f"](*sample) == close(stats.hmean(parts))


def test_rnod_weighs_differences_by_their_distance_to_the_gold_levels():
    gold, predicted = [0, 0, 1, 1], [0, 2, 2, 1]
    squares = {0: 1 / 16, 1: 1 / 16, 2: 1 / 4}
    by_level = [1 * squares[1] + 3 * squares[2], 1 * squares[0] + 2 * squares[2]]
    assert NAIVE["rnod"](gold, predicted, [0, 1, 3]) == close(math.sqrt(np.mean(by_level) / 3))


@on_gaps
@pytest.mark.parametrize("weights", ["quadratic", "linear", "identity"])
def test_the_naive_gwet_of_exact_agreement_is_one(weights, sample):
    assert NAIVE["gwet_ac2"](sample.gold, sample.gold, sample.positions, weights=weights) == 1


# Unanswered items


def unanswered(sample: Sample) -> tuple[list[int], list[int | None], tuple[float, ...]]:
    """The sample with every third answer taken away."""
    answers = [None if i % 3 == 0 else p for i, p in enumerate(sample.predicted)]
    return sample.gold, answers, sample.positions


def with_a_label_for_silence(sample: Sample) -> tuple[list[int], list[int], list[int]]:
    """Gold, predictions in which -1 stands for no answer, and the levels that occur."""
    gold, answers, _ = unanswered(sample)
    marked = [-1 if p is None else p for p in answers]
    return gold, marked, sorted({*gold, *marked} - {-1})


SILENCE_IN_SCIKIT_LEARN = {
    "precision_macro": (metrics.precision_score, "macro"),
    "recall_macro": (metrics.recall_score, "macro"),
    "f1_macro": (metrics.f1_score, "macro"),
    "f1_weighted": (metrics.f1_score, "weighted"),
    "f1_micro": (metrics.f1_score, "micro"),
}


@on_samples
@pytest.mark.parametrize("name", SILENCE_IN_SCIKIT_LEARN)
def test_silence_counts_in_recall_and_not_in_precision(name, sample):
    score, average = SILENCE_IN_SCIKIT_LEARN[name]
    gold, marked, labels = with_a_label_for_silence(sample)
    peer = score(gold, marked, labels=labels, average=average, zero_division=0)
    assert NAIVE[name](*unanswered(sample)) == close(peer)


@on_samples
def test_silence_is_never_right(sample):
    gold, marked, _ = with_a_label_for_silence(sample)
    recalls = metrics.recall_score(
        gold, marked, labels=sorted(set(gold)), average=None, zero_division=0
    )
    silent = unanswered(sample)
    assert NAIVE["accuracy"](*silent) == close(metrics.accuracy_score(gold, marked))
    assert NAIVE["macro_accuracy"](*silent) == close(np.mean(recalls))
    assert NAIVE["min_sensitivity"](*silent) == close(min(recalls))
    answered = np.mean([p is not None for p in silent[1]])
    assert NAIVE["accuracy_within"](*silent, n=len(sample.positions)) == close(answered)


DISTANCES = [
    "mae",
    "mse",
    "rmse",
    "macro_mae",
    "macro_mse",
    "max_mae",
    "ordinal_distance_linear",
    "ordinal_distance_quadratic",
]


def standing(silent: tuple, places: Sequence[float]) -> list[int]:
    """The answers, with the level farthest from gold where there is none."""
    gold, answers, _ = silent
    return [
        max(range(len(places)), key=lambda j, g=g: abs(places[j] - places[g])) if p is None else p
        for g, p in zip(gold, answers, strict=True)
    ]


@on_gaps
@pytest.mark.parametrize("name", DISTANCES)
def test_silence_stands_farthest_from_gold(name, sample):
    silent = unanswered(sample)
    worst = standing(silent, sample.positions)
    assert NAIVE[name](*silent) == close(NAIVE[name](sample.gold, worst, sample.positions))


@on_gaps
@pytest.mark.parametrize("options", [*product(["all", "immediate"], ["hinge", "logistic"])])
def test_silence_has_the_threshold_loss_of_the_farthest_level(options, sample):
    kind, penalty = options
    silent = unanswered(sample)
    worst = standing(silent, sample.levels)
    value = NAIVE["rennie_srebro"](*silent, kind=kind, penalty=penalty)
    assert value == close(
        NAIVE["rennie_srebro"](sample.gold, worst, sample.positions, kind=kind, penalty=penalty)
    )


def test_silence_costs_the_dearest_column():
    matrix = [[0, 9, 4], [1, 0, 2], [3, 1, 0]]
    cost = NAIVE["expected_cost"]([0, 1, 2], [None, None, 1], range(3), matrix=matrix)
    assert cost == close((9 + 2 + 1) / 3)


SILENT_CLOSENESS = ["cem_ord", "cem_ord_flat", "cem_nom", "cem_int"]


@pytest.mark.parametrize("name", SILENT_CLOSENESS)
def test_silence_has_no_closeness_but_stays_in_the_denominator(name):
    gold, level = [0, 0, 1, 1, 2, 2], range(3)
    half = NAIVE[name](gold, [0, None, 1, None, 2, None], level)
    assert half == close(0.5)
    assert NAIVE[name](gold, [None] * 6, level) == 0


def test_chance_closeness_draws_from_the_answers_given():
    gold, predicted = [0, 0, 1, 1], [0, None, 0, 1]
    own, other = -math.log2(1 / 4), -math.log2(3 / 4)
    reached = (own + other + own) / (4 * own)
    # Every answer meets every gold item, and the sum is shared by all four items.
    chance = 3 * (2 * own + 2 * other) / 4 / (4 * own)
    value = NAIVE["cem_ord_chance_corrected"](gold, predicted, range(2))
    assert value == close((reached - chance) / (1 - chance))


# Undefined values

SINGLE_LEVEL = {
    "cohen_kappa", "linear_kappa", "quadratic_kappa", "weighted_kappa", "krippendorff_alpha",
    "scott_pi", "mcc", "pearson", "spearman", "ccc", "kendall_tau_b", "kendall_tau_c", "somers_d",
    "goodman_kruskal_gamma", "reliability", "sensitivity", "reliability_sensitivity_f",
    "normalized_mutual_information", "cem_nom", "cem_ord_chance_corrected",
}  # fmt: skip


def called(name: str, *data: object) -> float:
    """A metric with its default options, and a cost matrix where it needs one."""
    needs_matrix = "matrix" in inspect.signature(NAIVE[name]).parameters
    return NAIVE[name](*data, **({"matrix": np.ones((3, 3))} if needs_matrix else {}))


@pytest.mark.parametrize("name", NAIVE)
def test_no_items_have_no_value(name):
    assert math.isnan(called(name, [], [], range(3)))


@pytest.mark.parametrize("name", NAIVE)
def test_one_and_the_same_level_leaves_only_some_metrics_undefined(name):
    assert math.isnan(called(name, [1, 1], [1, 1], range(3))) == (name in SINGLE_LEVEL)


def test_tau_a_needs_two_items():
    assert math.isnan(NAIVE["kendall_tau_a"]([1], [1], range(3)))
    assert NAIVE["kendall_tau_a"]([1, 1], [1, 1], range(3)) == 0


def test_every_value_is_a_plain_float():
    gold, predicted = [0, 1, 2, 1], [0, 1, 1, 2]
    assert {type(called(name, gold, predicted, range(3))) for name in NAIVE} == {float}
