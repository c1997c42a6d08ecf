"""The values printed by Amigó, Gonzalo, Mizzaro and Carrillo-de-Albornoz (ACL 2020).

"An Effectiveness Metric for Ordinal Classification: Formal Properties and Experimental Results"
introduces the Closeness Evaluation Measure. Its tables have the system in rows; ours have gold.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import counts, same, scale_of

from ordinate.metrics import find_metric
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix


def value(name: str, table: ConfusionMatrix) -> float:
    return float(find_metric(name)(table))


def proximity(table: ConfusionMatrix, predicted: str, gold: str) -> float:
    """prox(predicted, gold) in the notation of the paper."""
    labels = table.scale.labels
    return float(table.proximities()[labels.index(gold), labels.index(predicted)])


# --- Figure 1: reviews of papers -----------------------------------------------------------------

REVIEWS = Scale(["reject", "weak reject", "inconclusive", "weak accept", "accept"])
# Printed are 90, 193, 105 and 7 of 402; what is left, 7, lies beyond weak accept.
TIMID = ConfusionMatrix.from_counts(np.diag([7, 105, 193, 90, 7]), REVIEWS)
# Printed are 10, 3 and 10 of 376; what is left lies outside, wherever: half on each side here.
DECIDED = ConfusionMatrix.from_counts(np.diag([176, 10, 3, 10, 177]), REVIEWS)


def test_the_distributions_of_figure_1_have_their_totals():
    assert TIMID.total == 402
    assert DECIDED.total == 376


@pytest.mark.parametrize(
    ("table", "predicted", "gold", "printed"),
    [
        (TIMID, "weak accept", "weak reject", 0.23),
        (DECIDED, "weak accept", "weak reject", 4.38),
        (TIMID, "reject", "reject", 6.84),
        (TIMID, "inconclusive", "inconclusive", 2.06),
    ],
)
def test_proximities_of_figure_1(table, predicted, gold, printed):
    assert round(proximity(table, predicted, gold), 2) == printed


def test_proximities_depend_only_on_what_lies_between():
    for lowest in (0, 100, 353):
        table = ConfusionMatrix.from_counts(np.diag([lowest, 10, 3, 10, 353 - lowest]), REVIEWS)
        assert round(proximity(table, "weak accept", "weak reject"), 2) == 4.38


def alone(gold_totals, predicted: int, gold: int) -> ConfusionMatrix:
    """Return a table in which one item is answered, and all others earn nothing."""
    cells = np.zeros((len(gold_totals), len(gold_totals)))
    cells[gold, predicted] = 1
    return ConfusionMatrix.from_counts(cells, REVIEWS, gold_totals - cells.sum(axis=1))


def test_the_credit_of_an_answer_is_its_proximity():
    totals = TIMID.gold
    right = value("cem_ord", alone(totals, 0, 0))
    wrong = value("cem_ord", alone(totals, 3, 1))
    assert wrong / right == pytest.approx(math.log2(402 / 343) / math.log2(402 / 3.5))
    best = sum(n * math.log2(402 / (n / 2)) for n in totals)
    assert round(right * best, 2) == 6.84
    assert round(wrong * best, 2) == 0.23
    assert round(value("cem_ord", alone(totals, 2, 2)) * best, 2) == 2.06


# --- Figure 3 and Appendix A: sentiment ----------------------------------------------------------

LEVELS = ["negative", "neutral", "positive"]
SYSTEM_A = ConfusionMatrix.from_counts(np.transpose([[5, 5, 7], [1, 50, 8], [4, 5, 15]]), LEVELS)
SYSTEM_B = ConfusionMatrix.from_counts(np.transpose([[7, 12, 4], [1, 45, 8], [2, 3, 18]]), LEVELS)
PROXIMITIES = np.transpose([[4.32, 0.62, 0.07], [1.32, 1.74, 0.74], [0.23, 0.42, 2.74]])


@pytest.mark.parametrize(
    ("table", "predicted"), [(SYSTEM_A, [17, 59, 24]), (SYSTEM_B, [23, 54, 23])], ids=["A", "B"]
)
def test_the_margins_of_figure_3(table, predicted):
    assert table.gold.tolist() == [10, 60, 30]
    assert table.predicted.tolist() == predicted
    assert table.total == 100


@pytest.mark.parametrize("table", [SYSTEM_A, SYSTEM_B], ids=["A", "B"])
def test_the_proximities_of_figure_3_depend_on_gold_alone(table):
    assert table.proximities().round(2).tolist() == PROXIMITIES.tolist()


@pytest.mark.parametrize(("table", "printed"), [(SYSTEM_A, 0.71), (SYSTEM_B, 0.76)], ids=["A", "B"])
def test_closeness_of_figure_3(table, printed):
    assert round(value("cem_ord", table), 2) == printed
    by_hand = (table.counts * PROXIMITIES).sum() / (table.gold @ np.diagonal(PROXIMITIES))
    assert value("cem_ord", table) == pytest.approx(by_hand, abs=0.002)


@pytest.mark.parametrize("table", [SYSTEM_A, SYSTEM_B], ids=["A", "B"])
def test_both_systems_of_figure_3_are_equally_accurate(table):
    assert value("accuracy", table) == pytest.approx(0.70)


def test_a_level_without_gold_tells_without_bound():
    table = ConfusionMatrix.from_counts([[2, 2, 0], [0, 0, 0], [0, 2, 2]], "1..3")
    assert table.proximities().tolist() == [
        [2, 1, -math.log2(3 / 4)],
        [2, math.inf, 2],
        [-math.log2(3 / 4), 1, 2],
    ]
    assert value("cem_ord", table) == pytest.approx((2 * 2 + 2 * 1) / (4 * 2))


def test_the_extremes_are_farthest_apart_and_rare_levels_apart_less():
    found = SYSTEM_A.proximities()
    assert found.min() == proximity(SYSTEM_A, "negative", "positive")
    assert proximity(SYSTEM_A, "positive", "neutral") < proximity(SYSTEM_A, "negative", "neutral")
    assert proximity(SYSTEM_A, "neutral", "positive") < proximity(SYSTEM_A, "neutral", "negative")


# --- Section 2 and the properties of Section 4 ---------------------------------------------------


def table_of(system, gold, scale) -> ConfusionMatrix:
    """The paper writes the system first."""
    return ConfusionMatrix.of(list(gold), list(system), scale)


def test_a_perfect_ranking_need_not_match_a_single_item():
    scale = Scale(["very low", "low", "high", "very high"])
    table = table_of(["very high", "high", "low"], ["high", "low", "very low"], scale)
    for name in ("kendall_tau_a", "kendall_tau_b", "spearman", "pearson"):
        assert value(name, table) == pytest.approx(1)
    assert value("accuracy", table) == 0


INVARIANT = ["accuracy", "macro_accuracy", "cohen_kappa", "f1_macro", "spearman", "kendall_tau_a",
             "kendall_tau_b", "reliability_sensitivity_f", "mutual_information", "purity",
             "inverse_purity", "cem_nom", "cem_ord"]  # fmt: skip


@pytest.mark.parametrize("name", INVARIANT)
def test_the_example_of_ordinal_invariance(name):
    before = table_of((1, 2, 2), (1, 2, 3), Scale([1, 2, 3]))
    after = Scale([11, 24, 39], positions=[11, 24, 39])  # 10x + x²
    assert value(name, before) == value(name, table_of((11, 24, 24), (11, 24, 39), after))


@given(st.integers(2, 5).flatmap(counts), st.data())
def test_closeness_rises_when_a_prediction_moves_towards_gold(cells, data):
    size = len(cells)
    cells = cells + np.eye(size)  # no level of gold is empty
    gold = data.draw(st.integers(0, size - 1))
    far = data.draw(st.integers(0, size - 1).filter(lambda level: level != gold))
    near = data.draw(st.integers(min(far, gold), max(far, gold)).filter(lambda x: x != far))
    cells[gold, far] += 1
    moved = cells.copy()
    moved[gold, far] -= 1
    moved[gold, near] += 1
    before, after = (ConfusionMatrix.from_counts(part, scale_of(size)) for part in (cells, moved))
    assert value("cem_ord", after) > value("cem_ord", before)


@given(st.integers(2, 40), st.integers(1, 40), st.data())
def test_leaving_a_small_level_costs_more_than_leaving_a_large_one(large, middle, data):
    small = data.draw(st.integers(1, large - 1))
    gold = np.diag([large, middle, small])
    from_large, from_small = gold.copy(), gold.copy()
    from_large[0, :2] += [-1, 1]
    from_small[2, 1:] += [1, -1]
    tables = [ConfusionMatrix.from_counts(part, scale_of(3)) for part in (from_large, from_small)]
    difference = value("cem_ord", tables[0]) - value("cem_ord", tables[1])
    n1, n2, n3 = large, middle, small  # Appendix C, with the half that its first display lacks
    gain = math.log2((n1 / 2 * (n3 + n2 / 2)) / ((n1 + n2 / 2) * (n3 / 2)))
    best = sum(n * math.log2((n1 + n2 + n3) / (n / 2)) for n in (n1, n2, n3))
    assert difference > 0
    assert difference == pytest.approx(gain / best)


# --- Appendix B: counterexamples -----------------------------------------------------------------

FIVE = Scale([1, 2, 3, 4, 5])
FAR, NEAR = (table_of(system, (3, 4, 5), FIVE) for system in ((1, 2, 3), (2, 3, 4)))


@pytest.mark.parametrize(
    "name",
    ["accuracy", "macro_accuracy", "f1_macro", "precision_macro", "recall_macro", "cem_nom",
     "pearson", "spearman", "kendall_tau_a", "kendall_tau_b", "reliability", "sensitivity",
     "reliability_sensitivity_f", "mutual_information", "purity", "inverse_purity"],
)  # fmt: skip
def test_classification_ranking_and_clustering_do_not_see_that_all_came_closer(name):
    assert same(value(name, FAR), value(name, NEAR))


@pytest.mark.parametrize(
    ("name", "far", "near"),
    [
        ("accuracy_within", 0, 1),  # is not blind, against what the appendix says
        ("cohen_kappa", -1 / 8, -2 / 7),  # neither, but falls: more matches are due to chance
        ("mae", 2, 1),
        ("mse", 4, 1),
        ("macro_mae", 2, 1),
        ("macro_mse", 4, 1),
        ("rennie_srebro", 6, 2),
        ("linear_kappa", 0, 2 / 11),
        ("quadratic_kappa", 1 / 4, 4 / 7),
    ],
)
def test_what_sees_that_all_came_closer(name, far, near):
    assert value(name, FAR) == pytest.approx(far)
    assert value(name, NEAR) == pytest.approx(near)


@pytest.mark.parametrize("name", ["cem_ord", "cem_int", "cosine"])
def test_closeness_and_cosine_rise_when_all_came_closer(name):
    assert value(name, NEAR) > value(name, FAR)


def stretched(system) -> ConfusionMatrix:
    """Apply 10 + x³ to both sides; positions begin one lower, since cosine adds one."""
    scale = Scale(FIVE.labels, positions=[10 + x**3 - 1 for x in FIVE.labels])
    return table_of(system, (3, 4, 5), scale)


@pytest.mark.parametrize(
    "name",
    ["pearson", "mae", "mse", "macro_mae", "macro_mse", "cosine", "quadratic_kappa", "cem_int"],
)
def test_what_takes_positions_for_numbers_is_not_ordinal_invariant(name):
    assert not same(value(name, FAR), value(name, stretched((1, 2, 3))))


def test_stretched_errors_are_those_of_the_stretched_numbers():
    gold, system = np.array([37, 74, 135]), np.array([11, 18, 37])
    table = stretched((1, 2, 3))
    assert value("mae", table) == pytest.approx(np.abs(gold - system).mean())
    assert value("mse", table) == pytest.approx(((gold - system) ** 2).mean())
    assert value("pearson", table) == pytest.approx(np.corrcoef(gold, system)[0, 1])
    cosine = gold @ system / math.sqrt((gold @ gold) * (system @ system))
    assert value("cosine", table) == pytest.approx(cosine)


@pytest.mark.parametrize("name", INVARIANT)
def test_what_uses_the_order_alone_is_ordinal_invariant(name):
    for system, table in (((1, 2, 3), FAR), ((2, 3, 4), NEAR)):
        assert same(value(name, table), value(name, stretched(system)))


THREE = Scale([1, 2, 3])
LARGE_LEFT, SMALL_LEFT = (
    table_of(system, (1, 1, 2, 3), THREE) for system in ((1, 2, 2, 3), (1, 1, 2, 2))
)


@pytest.mark.parametrize(
    ("name", "large", "small"),
    [
        ("accuracy", 3 / 4, 3 / 4),
        ("accuracy_within", 1, 1),
        ("mae", 1 / 4, 1 / 4),  # the paper shows errors as negative effectiveness
        ("mse", 1 / 4, 1 / 4),
        ("cosine", 0.9737, 0.9798),  # cut off rather than rounded in print: 0.973, 0.979
        ("pearson", 0.85, 0.90),
        ("kendall_tau_a", 4 / 6, 4 / 6),  # ties stay in the number of pairs
    ],
)
def test_values_of_the_imbalance_example(name, large, small):
    tolerance = {"cosine": 5e-5, "pearson": 5e-3}.get(name, 1e-12)
    assert value(name, LARGE_LEFT) == pytest.approx(large, abs=tolerance)
    assert value(name, SMALL_LEFT) == pytest.approx(small, abs=tolerance)


@pytest.mark.parametrize(
    "name",
    ["macro_accuracy", "cohen_kappa", "f1_macro", "macro_mae", "macro_mse", "linear_kappa",
     "quadratic_kappa", "cem_nom", "cem_int", "cem_ord"],
)  # fmt: skip
def test_what_punishes_leaving_a_small_level_more(name):
    assert find_metric(name).is_better(value(name, LARGE_LEFT), value(name, SMALL_LEFT) + 1e-9)


@pytest.mark.parametrize(
    ("name", "large", "small"),
    [
        ("spearman", 5 / 6, 0.9428),
        ("kendall_tau_b", 0.8, 0.8944),
        ("reliability_sensitivity_f", 19 / 24, 10 / 11),
        ("mutual_information", 1, 1),
        ("purity", 3 / 4, 3 / 4),
        ("inverse_purity", 3 / 4, 1),
    ],
)
def test_rankings_and_clusters_do_not_punish_it_more_whatever_table_2_says(name, large, small):
    assert value(name, LARGE_LEFT) == pytest.approx(large, abs=5e-5)
    assert value(name, SMALL_LEFT) == pytest.approx(small, abs=5e-5)


# --- Propositions --------------------------------------------------------------------------------


@given(st.integers(2, 5).flatmap(counts), st.integers(1, 9))
def test_nominal_closeness_is_accuracy_when_gold_is_uniform(cells, total):
    rows = (cells + 0.5) / (cells + 0.5).sum(axis=1, keepdims=True) * total
    table = ConfusionMatrix.from_counts(rows, scale_of(len(cells)))
    assert value("cem_nom", table) == pytest.approx(value("accuracy", table))
    assert value("cem_nom", table) == pytest.approx(value("macro_accuracy", table))


def test_nominal_closeness_is_not_accuracy_when_gold_is_not_uniform():
    rare, common = (
        ConfusionMatrix.from_counts(cells, ["no", "yes"])
        for cells in ([[8, 0], [1, 1]], [[7, 1], [0, 2]])
    )
    assert value("accuracy", rare) == pytest.approx(value("accuracy", common))
    assert value("cem_nom", rare) < value("cem_nom", common)
    right, best = 8 * math.log2(10 / 8) + math.log2(5), 8 * math.log2(10 / 8) + 2 * math.log2(5)
    assert value("cem_nom", rare) == pytest.approx(right / best)


def test_halving_ties_breaks_the_proposition():
    table = ConfusionMatrix.from_counts([[3, 1], [2, 2]], ["no", "yes"])
    assert value("cem_nom", table) == pytest.approx(value("accuracy", table))
    assert value("accuracy", table) == pytest.approx(5 / 8)
    assert value("cem_nom(ties='half')", table) != pytest.approx(5 / 8)
