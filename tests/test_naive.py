"""The naive definitions agree with the peers that have the metric, and with printed values."""

# The resamples need to be the same everywhere, not secret.
# ruff: noqa: S311

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import product

import krippendorff
import numpy as np
import pytest
import skordinal.metrics
from each_case import each_case
from frozen_irrcac import DIGITS, IRRCAC
from imblearn.metrics import macro_averaged_mean_absolute_error
from naive import NAIVE
from naive_samples import SAMPLES, Sample, close, on_gaps, on_samples
from scipy import stats
from scipy.spatial.distance import cosine as cosine_distance
from scipy.stats.contingency import odds_ratio
from sklearn import metrics
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.class_weight import compute_sample_weight

GUESSES_ARE_GOLD = {
    name: sample for name, sample in SAMPLES.items() if set(sample.predicted) <= set(sample.gold)
}


on_known_guesses = each_case("sample", GUESSES_ARE_GOLD)


Peer = Callable[[Sample], float]


def peers(table: dict[str, tuple[str, dict[str, object], Peer]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "options", "peer"), table.values(), ids=table.keys())


def plain(table: dict[str, Peer]) -> dict[str, tuple[str, dict[str, object], Peer]]:
    """The peers of metrics whose options keep their defaults."""
    return {name: (name, {}, peer) for name, peer in table.items()}


def items(table: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The gold and predicted levels of the items of a table, rows gold."""
    cells = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in cells], [j for _, j in cells]


def averaged(score: Callable[..., float], average: str) -> Peer:
    return lambda s: score(
        s.gold, s.predicted, labels=s.occurring, average=average, zero_division=0
    )


def kappa(weights: str | None) -> Peer:
    return lambda s: metrics.cohen_kappa_score(
        s.gold, s.predicted, labels=s.levels, weights=weights
    )


SCIKIT_LEARN = {
    **plain(
        {
            "accuracy": lambda s: metrics.accuracy_score(s.gold, s.predicted),
            "precision_macro": averaged(metrics.precision_score, "macro"),
            "recall_macro": averaged(metrics.recall_score, "macro"),
            "f1_macro": averaged(metrics.f1_score, "macro"),
            "f1_weighted": averaged(metrics.f1_score, "weighted"),
            "f1_micro": averaged(metrics.f1_score, "micro"),
            "cohen_kappa": kappa(None),
            "linear_kappa": kappa("linear"),
            "quadratic_kappa": kappa("quadratic"),
            "ccc": kappa("quadratic"),
            "mcc": lambda s: metrics.matthews_corrcoef(s.gold, s.predicted),
            "mutual_information": lambda s: (
                metrics.mutual_info_score(s.gold, s.predicted) / math.log(2)
            ),
            "normalized_mutual_information": lambda s: metrics.normalized_mutual_info_score(
                s.gold, s.predicted
            ),
            "purity": lambda s: (
                contingency_matrix(s.gold, s.predicted).max(axis=0).sum() / len(s.gold)
            ),
            "inverse_purity": lambda s: (
                contingency_matrix(s.gold, s.predicted).max(axis=1).sum() / len(s.gold)
            ),
        }
    ),
    "weighted_kappa(power=0)": ("weighted_kappa", {"power": 0}, kappa(None)),
    "weighted_kappa(power=1)": ("weighted_kappa", {"power": 1}, kappa("linear")),
    "weighted_kappa": ("weighted_kappa", {}, kappa("quadratic")),
}


@on_samples
@peers(SCIKIT_LEARN)
def test_the_naive_definition_agrees_with_scikit_learn(name, options, peer, sample):
    assert NAIVE[name](*sample, **options) == close(peer(sample))


@on_known_guesses
def test_the_naive_macro_accuracy_agrees_with_scikit_learn(sample):
    score = metrics.balanced_accuracy_score(sample.gold, sample.predicted)
    assert NAIVE["macro_accuracy"](*sample) == close(score)


def balanced(score: Callable[..., float], sample: Sample) -> float:
    """An error on positions in which every gold level weighs the same."""
    weight = compute_sample_weight("balanced", sample.gold)
    return score(*sample.places, sample_weight=weight)


ERRORS_OF_SCIKIT_LEARN = plain(
    {
        "mae": lambda s: metrics.mean_absolute_error(*s.places),
        "mse": lambda s: metrics.mean_squared_error(*s.places),
        "rmse": lambda s: metrics.root_mean_squared_error(*s.places),
        "macro_mae": lambda s: balanced(metrics.mean_absolute_error, s),
        "macro_mse": lambda s: balanced(metrics.mean_squared_error, s),
        "ordinal_distance_linear": lambda s: (
            1 - metrics.mean_absolute_error(*s.places) / (s.positions[-1] - s.positions[0])
        ),
        "ordinal_distance_quadratic": lambda s: (
            1 - metrics.mean_squared_error(*s.places) / (s.positions[-1] - s.positions[0]) ** 2
        ),
    }
)


@on_gaps
@peers(ERRORS_OF_SCIKIT_LEARN)
def test_the_naive_distance_agrees_with_scikit_learn_on_positions(name, options, peer, sample):
    assert NAIVE[name](*sample, **options) == close(peer(sample))


SCIPY = {
    **plain(
        {
            "pearson": lambda s: stats.pearsonr(*s.places).statistic,
            "spearman": lambda s: stats.spearmanr(s.gold, s.predicted).statistic,
            "kendall_tau_b": lambda s: stats.kendalltau(s.gold, s.predicted).statistic,
            "kendall_tau_c": lambda s: stats.kendalltau(s.gold, s.predicted, variant="c").statistic,
            "somers_d": lambda s: stats.somersd(s.gold, s.predicted).statistic,
            "nmd": lambda s: (
                stats.wasserstein_distance(*s.places) / (s.positions[-1] - s.positions[0])
            ),
            "cosine": lambda s: 1 - cosine_distance(*(np.add(side, 1) for side in s.places)),
        }
    ),
    "somers_d(given=predicted)": (
        "somers_d",
        {"given": "predicted"},
        lambda s: stats.somersd(s.predicted, s.gold).statistic,
    ),
}


@on_gaps
@peers(SCIPY)
def test_the_naive_definition_agrees_with_scipy(name, options, peer, sample):
    assert NAIVE[name](*sample, **options) == close(peer(sample))


UNTIED = {
    "kendall_tau_a": lambda tau: tau,
    "goodman_kruskal_gamma": lambda tau: tau,
    "reliability": lambda tau: (1 + tau) / 2,
    "sensitivity": lambda tau: (1 + tau) / 2,
    "reliability_sensitivity_f": lambda tau: (1 + tau) / 2,
}


@pytest.mark.parametrize(("name", "from_tau"), UNTIED.items(), ids=UNTIED)
def test_without_ties_the_naive_order_metrics_follow_from_the_tau_of_scipy(name, from_tau):
    gold = random.Random(0).sample(range(9), 9)
    predicted = random.Random(1).sample(range(9), 9)
    tau = stats.kendalltau(gold, predicted).statistic
    assert NAIVE[name](gold, predicted, range(9)) == close(from_tau(tau))


def test_on_two_levels_the_naive_gamma_follows_from_the_odds_ratio_of_scipy():
    table = [[7, 3], [2, 8]]
    odds = odds_ratio(table, kind="sample").statistic
    gamma = NAIVE["goodman_kruskal_gamma"](*items(table), range(2))
    assert gamma == close((odds - 1) / (odds + 1))


@on_samples
def test_the_naive_tau_a_rescales_the_somers_d_of_scipy(sample):
    size = len(sample.gold)
    untied = size**2 - sum(sample.gold.count(level) ** 2 for level in sample.levels)
    expected = stats.somersd(sample.gold, sample.predicted).statistic * untied / (size**2 - size)
    assert NAIVE["kendall_tau_a"](*sample) == close(expected)


SKORDINAL = plain(
    {
        "accuracy": lambda s: 1 - skordinal.metrics.mean_zero_one_error(s.gold, s.predicted),
        "accuracy_within": lambda s: skordinal.metrics.accuracy_off1_score(
            s.gold, s.predicted, labels=s.levels
        ),
        "macro_mae": lambda s: skordinal.metrics.average_mean_absolute_error(
            s.gold, s.predicted, labels=s.levels
        ),
        "max_mae": lambda s: skordinal.metrics.maximum_mean_absolute_error(
            s.gold, s.predicted, labels=s.levels
        ),
        "min_sensitivity": lambda s: skordinal.metrics.minimum_sensitivity(s.gold, s.predicted),
        "linear_kappa": lambda s: skordinal.metrics.weighted_kappa(
            s.gold, s.predicted, labels=s.levels
        ),
        "kendall_tau_b": lambda s: skordinal.metrics.kendalls_tau(s.gold, s.predicted),
        "spearman": lambda s: skordinal.metrics.spearmans_rho(s.gold, s.predicted),
    }
)


@on_samples
@peers(SKORDINAL)
def test_the_naive_definition_agrees_with_skordinal(name, options, peer, sample):
    assert NAIVE[name](*sample, **options) == close(peer(sample))


@on_known_guesses
def test_the_naive_macro_mae_agrees_with_imbalanced_learn(sample):
    peer = macro_averaged_mean_absolute_error(sample.gold, sample.predicted)
    assert NAIVE["macro_mae"](*sample) == close(peer)


@on_gaps
@pytest.mark.parametrize("level", ["ordinal", "nominal", "interval"])
def test_the_naive_alpha_agrees_with_the_package_krippendorff(level, sample):
    peer = krippendorff.alpha(
        reliability_data=np.array(sample.places),
        value_domain=sample.positions,
        level_of_measurement=level,
    )
    assert NAIVE["krippendorff_alpha"](*sample, level=level) == close(peer)


@pytest.mark.parametrize("weights", ["quadratic", "linear", "identity"])
@pytest.mark.parametrize("frozen", IRRCAC.values(), ids=IRRCAC.keys())
def test_the_naive_gwet_agrees_with_the_frozen_values_of_irrcac(frozen, weights):
    value = NAIVE["gwet_ac2"](*items(frozen.table), frozen.positions, weights=weights)
    assert value == pytest.approx(frozen.gwet[weights], abs=0.51 * 10**-DIGITS, rel=0)


# The tables and values are those of Table 1 of each paper, as quoted by a public test suite.
# Two decimals are printed, so a value is right within half of the second one.
PRINTED = 0.005 + 1e-12


OCI_PRINTED = {
    ((4, 0, 0, 0), (0, 6, 0, 0), (0, 0, 0, 0), (0, 0, 0, 3)): {0.25: 0.00, 0.75: 0.00},
    ((0, 4, 0, 0), (0, 0, 6, 0), (0, 0, 0, 0), (0, 0, 0, 3)): {0.25: 0.50, 0.75: 0.63},
    ((0, 0, 4, 0), (0, 0, 6, 0), (0, 0, 0, 0), (0, 0, 0, 3)): {0.25: 0.61, 0.75: 0.78},
    ((0, 4, 0, 0), (6, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 3)): {0.25: 0.65, 0.75: 0.72},
}


UOC_PRINTED = {
    ((4, 0, 0, 0), (0, 5, 0, 0), (0, 0, 6, 0), (0, 0, 0, 1)): 0.00,
    ((0, 4, 0, 0), (0, 0, 6, 0), (0, 0, 5, 0), (0, 0, 0, 3)): 0.56,
    ((0, 0, 4, 0), (0, 0, 6, 0), (0, 0, 5, 0), (0, 0, 0, 3)): 0.65,
    ((0, 4, 0, 0), (6, 0, 0, 0), (0, 0, 5, 0), (0, 0, 0, 3)): 0.61,
    ((0, 4, 0, 0), (6, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 3)): 0.74,
    ((0, 40, 0, 0), (6, 0, 0, 0), (0, 0, 5, 0), (0, 0, 0, 3)): 0.61,
}


@pytest.mark.parametrize(("table", "printed"), OCI_PRINTED.items())
def test_the_naive_oci_gives_the_printed_values_of_cardoso_and_sousa(table, printed):
    for beta1, value in printed.items():
        oci = NAIVE["oci"](*items(table), range(4), beta1=beta1)
        assert oci == pytest.approx(value, abs=PRINTED)


@pytest.mark.parametrize(("table", "printed"), UOC_PRINTED.items())
def test_the_naive_uoc_gives_the_printed_values_of_silva_and_others(table, printed):
    assert NAIVE["uoc"](*items(table), range(4)) == pytest.approx(printed, abs=PRINTED)


def cheapest_path(costs: np.ndarray) -> float:
    """The cost of the cheapest path by dynamic programming."""
    best = np.full(np.add(costs.shape, 1), np.inf)
    best[0, 0] = 0
    for row, column in product(*map(range, costs.shape)):
        before = min(best[row, column], best[row, column + 1], best[row + 1, column])
        best[row + 1, column + 1] = costs[row, column] + before
        best[0, 0] = np.inf
    return float(best[-1, -1])


@on_gaps
@pytest.mark.parametrize("gamma", [1, 2, 0.5])
def test_the_naive_oci_equals_the_dynamic_programme(gamma, sample):
    table = metrics.confusion_matrix(sample.gold, sample.predicted, labels=sample.levels)
    far = np.abs(np.subtract.outer(sample.positions, sample.positions)) ** gamma
    beta = 0.75 / (table.sum() * far[0, -1])
    spread = (table * far).sum() ** (1 / gamma)
    costs = beta * table * far - table / (table.sum() + spread)
    assert NAIVE["oci"](*sample, gamma=gamma) == close(1 + cheapest_path(costs))


@on_gaps
def test_the_naive_uoc_is_the_area_under_the_cheapest_path(sample):
    table = metrics.confusion_matrix(sample.gold, sample.predicted, labels=sample.levels)
    rows = table / np.maximum(1, table.sum(axis=1, keepdims=True))
    far = rows * np.abs(np.subtract.outer(sample.positions, sample.positions))
    filled = len(set(sample.gold))
    prices = (np.arange(200) + 0.5) / 200
    lowest = [1 + cheapest_path(t / filled * far - rows / (filled + far.sum())) for t in prices]
    assert NAIVE["uoc"](*sample) == pytest.approx(np.mean(lowest), abs=1e-5)


# System A and B of the CEM paper's worked example, rows gold.
CEM_PRINTED = {
    ((5, 1, 4), (5, 50, 5), (7, 8, 15)): 0.71,
    ((7, 1, 2), (12, 45, 3), (4, 8, 18)): 0.76,
}


@pytest.mark.parametrize(("table", "printed"), CEM_PRINTED.items())
def test_the_naive_cem_gives_the_printed_values_of_its_paper(table, printed):
    assert NAIVE["cem_ord"](*items(table), range(3)) == pytest.approx(printed, abs=PRINTED)


def test_on_two_levels_the_closeness_of_all_scales_is_one():
    gold, predicted, positions = SAMPLES["two levels"]
    ordinal = NAIVE["cem_ord"](gold, predicted, positions)
    assert NAIVE["cem_int"](gold, predicted, positions) == close(ordinal)
    assert NAIVE["cem_nom"](gold, predicted, positions, ties="half") == close(ordinal)


def test_on_balanced_gold_the_literal_nominal_closeness_is_accuracy():
    gold = [0, 0, 1, 1, 2, 2]
    predicted = [0, 2, 1, 1, 0, 2]
    assert NAIVE["cem_nom"](gold, predicted, range(3)) == close(4 / 6)


def test_interval_closeness_counts_the_other_side_of_gold():
    gold, predicted = [0, 1, 2, 2], [0, 0, 2, 2]
    itself = 3 + 3 + 2 + 2
    both_sides = -math.log2((1 + 3 / 2) / 4)
    one_side = -math.log2((1 + 1 / 2) / 4)
    even = NAIVE["cem_int"](gold, predicted, [0, 1, 2])
    uneven = NAIVE["cem_int"](gold, predicted, [0, 1, 5])
    assert even == close((3 + both_sides + 2 + 2) / itself)
    assert uneven == close((3 + one_side + 2 + 2) / itself)


def test_distances_that_differ_by_rounding_are_equal_to_interval_closeness():
    gold, predicted = [0, 1, 2, 1], [1, 0, 2, 2]
    rounded, exact = [0.1, 0.2, 0.3], [1, 2, 3]
    assert 0.3 - 0.2 != 0.2 - 0.1
    assert NAIVE["cem_int"](gold, predicted, rounded) == NAIVE["cem_int"](gold, predicted, exact)


def test_flat_closeness_counts_probabilities():
    value = NAIVE["cem_ord_flat"]([0, 0, 1, 2], [0, 1, 1, 0], range(3))
    reached = (1 - 1 / 4) + (1 - 2.5 / 4) + (1 - 0.5 / 4) + (1 - 3 / 4)
    assert value == close(reached / ((1 - 1 / 4) * 2 + (1 - 0.5 / 4) * 2))


@on_samples
def test_a_constant_output_has_no_closeness_beyond_chance(sample):
    for level in sample.levels:
        constant = [level] * len(sample.gold)
        assert NAIVE["cem_ord_chance_corrected"](sample.gold, constant, sample.positions) == close(
            0
        )


@on_samples
def test_closeness_beyond_chance_compares_with_independent_items(sample):
    every = [*product(sample.gold, sample.predicted)]
    chance = NAIVE["cem_ord"](*zip(*every, strict=True), sample.positions)
    expected = (NAIVE["cem_ord"](*sample) - chance) / (1 - chance)
    assert NAIVE["cem_ord_chance_corrected"](*sample) == close(expected)
