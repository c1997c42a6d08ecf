"""The naive definitions agree with the peers that have the metric, and with printed values."""

# The resamples need to be the same everywhere, not secret.
# ruff: noqa: S311

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import krippendorff
import numpy as np
import pytest
import skordinal.metrics
from frozen_irrcac import DIGITS, IRRCAC
from imblearn.metrics import macro_averaged_mean_absolute_error
from naive import NAIVE
from scipy import stats
from scipy.spatial.distance import cosine as cosine_distance
from scipy.stats.contingency import odds_ratio
from sklearn import metrics
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.class_weight import compute_sample_weight


class Sample(NamedTuple):
    """Gold and predicted level indices on a declared scale."""

    gold: list[int]
    predicted: list[int]
    positions: tuple[float, ...]

    @property
    def levels(self) -> list[int]:
        return list(range(len(self.positions)))

    @property
    def occurring(self) -> list[int]:
        return sorted({*self.gold, *self.predicted})

    @property
    def places(self) -> tuple[list[float], list[float]]:
        return (
            [self.positions[level] for level in self.gold],
            [self.positions[level] for level in self.predicted],
        )


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


def drawn(
    rng: random.Random,
    positions: Sequence[float],
    gold: Sequence[int],
    predicted: Sequence[int],
    size: int = 24,
) -> Sample:
    """Items whose prediction is often right; every allowed level occurs on its side."""
    truths = [*gold, *rng.choices(gold, k=size)]
    guesses = [
        truth if truth in predicted and rng.random() < 0.5 else rng.choice(predicted)
        for truth in truths
    ]
    spots = rng.sample(range(len(truths)), len(predicted))
    for level, spot in zip(predicted, spots, strict=True):
        guesses[spot] = level
    return Sample(truths, guesses, tuple(positions))


def draw_all() -> dict[str, Sample]:
    rng = random.Random(0)
    return {
        "all of four": drawn(rng, range(4), range(4), range(4)),
        "two levels": drawn(rng, range(2), range(2), range(2)),
        "ends absent": drawn(rng, range(5), [1, 2, 3], [1, 2, 3]),
        "middle absent": drawn(rng, range(5), [0, 1, 4], [0, 1, 4]),
        "gold never guessed": drawn(rng, range(4), range(4), [1, 2]),
        "guessed never gold": drawn(rng, range(5), [1, 3], [0, 1, 3, 4]),
        "many items": drawn(rng, range(6), range(6), range(6), size=90),
    }


def draw_gaps() -> dict[str, Sample]:
    rng = random.Random(0)
    return {
        "growing": drawn(rng, (0, 1, 3, 7), range(4), range(4)),
        "fractions": drawn(rng, (0, 0.1, 0.3, 1.5, 1.6), [0, 1, 2, 4], [0, 1, 3, 4]),
        "negative": drawn(rng, (-2.5, -1, 0.25, 4), range(4), [1, 2, 3]),
    }


SAMPLES = draw_all()
GAPS = draw_gaps()
GUESSES_ARE_GOLD = {
    name: sample for name, sample in SAMPLES.items() if set(sample.predicted) <= set(sample.gold)
}

on_samples = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
on_gaps = pytest.mark.parametrize(
    "sample", [*SAMPLES.values(), *GAPS.values()], ids=[*SAMPLES, *GAPS]
)
on_known_guesses = pytest.mark.parametrize(
    "sample", GUESSES_ARE_GOLD.values(), ids=GUESSES_ARE_GOLD.keys()
)

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
    "mcc", "pearson", "spearman", "ccc", "kendall_tau_b", "kendall_tau_c", "somers_d",
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
