"""The scores of the notes on ordinal metrics for CEFR levels, and the right ones where they err.

Two notes define the ordinal scores, the first for squared errors, the second for all of them;
a third describes a classification report. Six levels, A1 to C2, stand at 0 to 5.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import tables

from ordinate.metrics import find_metric
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

CEFR = Scale.of("cefr")
SCORES = ["accuracy", "ordinal_accuracy", "ordinal_distance_linear", "ordinal_distance_quadratic",
          "ordinal_mse"]  # fmt: skip


def value(name: str, table: ConfusionMatrix) -> float:
    return float(find_metric(name)(table))


def scored(gold: str, predicted: str) -> ConfusionMatrix:
    return ConfusionMatrix.of(gold.split(), predicted.split(), CEFR)


# --- one item, by distance -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "accuracy", "adjacent", "linear", "quadratic"),
    [
        ("A1", 1, 1, 1.00, 1.00),
        ("A2", 0, 1, 0.80, 0.96),
        ("B1", 0, 0, 0.60, 0.84),
        ("B2", 0, 0, 0.40, 0.64),
        ("C1", 0, 0, 0.20, 0.36),
        ("C2", 0, 0, 0.00, 0.00),
    ],
)
def test_scores_of_one_item_by_distance(predicted, accuracy, adjacent, linear, quadratic):
    table = scored("A1", predicted)
    expected = [accuracy, adjacent, linear, quadratic, quadratic]
    assert [value(name, table) for name in SCORES] == pytest.approx(expected)


def test_scores_of_one_item_depend_on_the_distance_alone():
    for shift in range(6):
        for gold, predicted in ((k, k + shift) for k in range(6 - shift)):
            up = scored(CEFR.labels[gold], CEFR.labels[predicted])
            down = scored(CEFR.labels[predicted], CEFR.labels[gold])
            first = scored("A1", CEFR.labels[shift])
            for name in SCORES:
                assert value(name, up) == value(name, down) == value(name, first)


@pytest.mark.parametrize(("predicted", "score"), [("B2", 1), ("C1", 0), ("A2", 1), ("A1", 0)])
def test_adjacent_accuracy_forgives_one_level(predicted, score):
    assert value("ordinal_accuracy", scored("B1", predicted)) == score
    assert value("adjacent_accuracy", scored("B1", predicted)) == score


@given(tables(max_levels=6))
def test_the_score_of_squared_errors_is_the_quadratic_distance(table):
    assert value("ordinal_mse", table) == value("ordinal_distance_quadratic", table)
    share = value("mse", table) / table.scale.span**2
    assert value("ordinal_mse", table) == pytest.approx(1 - share, abs=1e-12)


# --- several items -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "score"), list(zip(SCORES, [0.167, 0.333, 0.500, 0.633, 0.633], strict=True))
)
def test_average_over_six_items_of_the_lowest_level(name, score):
    table = scored("A1 A1 A1 A1 A1 A1", "A1 A2 B1 B2 C1 C2")
    assert round(value(name, table), 3) == score


FOUR = scored("A1 B1 C1 A2", "A1 B2 B2 C2")


def test_four_items_with_one_far_error():
    assert value("mse", FOUR) == 4.5
    assert value("ordinal_mse", FOUR) == pytest.approx(0.82)


def test_the_worst_attainable_score_is_far_above_zero():
    farthest = scored("A1 B1 C1 A2", "C2 C2 A1 C2")
    unanswered = ConfusionMatrix.of(["A1", "B1", "C1", "A2"], [None] * 4, CEFR, missing="worst")
    assert value("ordinal_mse", farthest) == pytest.approx(0.34)
    assert value("ordinal_mse", unanswered) == pytest.approx(0.34)
    assert unanswered.gold.tolist() == FOUR.gold.tolist()


def test_no_prediction_for_these_four_items_scores_lower():
    levels = np.arange(6)
    worst = [((gold - levels) ** 2).max() for gold in (0, 2, 4, 1)]
    assert 1 - np.mean(worst) / 25 == pytest.approx(0.34)


def test_zero_is_reached_only_from_the_ends_of_the_scale():
    assert value("ordinal_mse", scored("A1 C2", "C2 A1")) == 0
    assert value("ordinal_mse", scored("A1 C1", "C2 A1")) > 0


def test_a_system_at_the_level_of_chance_may_score_above_nine_tenths():
    gold = np.array([0, 10, 40, 40, 10, 0])
    chance = ConfusionMatrix.from_counts(np.outer(gold, gold) / gold.sum(), CEFR)
    assert value("quadratic_kappa", chance) == pytest.approx(0, abs=1e-12)
    assert value("ordinal_mse", chance) > 0.9


# --- two models ----------------------------------------------------------------------------------

ALL = "A1 A2 B1 B2 C1 C2"
MODEL_A = scored(ALL, "A2 B1 B1 B2 C1 C1")
MODEL_B = scored(ALL, "A1 A2 B2 B2 C2 C2")


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("accuracy", 0.500, 0.667),
        ("ordinal_accuracy", 1, 1),
        ("ordinal_distance_linear", 0.900, 0.933),
        ("ordinal_distance_quadratic", 0.980, 0.987),
        ("ordinal_mse", 0.980, 0.987),
    ],
)
def test_two_models_by_their_right_scores(name, first, second):
    assert round(value(name, MODEL_A), 3) == first
    assert round(value(name, MODEL_B), 3) == second


@pytest.mark.parametrize("name", SCORES)
def test_the_second_model_wins_or_ties_on_every_score(name):
    assert value(name, MODEL_B) >= value(name, MODEL_A)


def test_neither_model_has_a_far_error():
    for table in (MODEL_A, MODEL_B):
        assert (table.counts * (CEFR.steps > 1)).sum() == 0


# --- the classification report -------------------------------------------------------------------


@given(tables(max_levels=6))
def test_adjacent_accuracy_is_never_below_accuracy(table):
    assert value("adjacent_accuracy", table) >= value("accuracy", table) - 1e-15


def test_confusion_at_the_boundaries_is_the_difference_of_the_two():
    table = scored("A1 A1 B1 B1 C1 C2", "A1 A2 B2 B1 C2 A1")
    neighbours = (table.counts * (CEFR.steps == 1)).sum() / table.total
    difference = value("adjacent_accuracy", table) - value("accuracy", table)
    assert difference == pytest.approx(neighbours) == pytest.approx(3 / 6)


@given(tables(max_levels=6), st.booleans())
def test_accuracy_is_recall_weighted_by_support(table, unanswered):
    if unanswered:
        table = ConfusionMatrix.from_counts(table.counts, table.scale, np.arange(len(table.scale)))
    recall, support = compute_level_metrics(table).recall, table.gold
    weighted = np.nansum(recall * support) / support.sum()
    assert value("accuracy", table) == pytest.approx(weighted, abs=1e-12)


def test_the_recalls_of_the_example_report_mean_an_accuracy_of_84_percent():
    support = np.array([10, 10, 10, 9, 10, 11])
    right = support * [0.90, 0.75, 0.80, 0.78, 0.85, 0.95]
    table = ConfusionMatrix.from_counts(np.diag(right), CEFR, support - right)
    assert round(value("accuracy", table), 2) == 0.84
    assert round(value("macro_accuracy", table), 2) == 0.84


@given(tables(max_levels=6))
def test_the_accuracy_of_what_is_predicted_as_a_level_is_its_precision(table):
    precision = compute_level_metrics(table).precision
    for level, total in enumerate(table.predicted):
        if total:
            share = table.counts[level, level] / total
            assert precision[level] == pytest.approx(share)
