"""Intervals of many confusion matrices at once are those of each on its own."""

import math

import numpy as np
import pytest

from ordinate.inference import ConfidenceIntervals, estimate_metrics, estimate_metrics_of_each
from ordinate.inference.interval_methods import MANY_NOTE
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix

QUICK = ConfidenceIntervals(resamples=100)
NAMES = (
    "cem_ord",
    "quadratic_kappa",
    "kendall_tau_b",
    "accuracy",
    "macro_accuracy",
    "min_sensitivity",
    "f1_macro",
    "macro_mae",
    "bias",
    "mutual_information",
)
METRICS = [find_metric(name) for name in NAMES]
SHARES = np.array([[8, 2, 1, 0], [2, 9, 3, 0], [0, 3, 9, 2], [0, 0, 2, 3]]) / 44


def sample_matrices(count, *, unanswered=0.0):
    """Return a batch of small matrices, some of which lack levels, and the last is perfect."""
    rng = np.random.default_rng(count)
    counts = np.stack(
        [rng.multinomial(n, SHARES.ravel()).reshape(4, 4) for n in 4 + 7 * np.arange(count)]
    )
    counts[-1] = np.diag([3, 0, 4, 5])
    lacking = rng.binomial(1, unanswered, (count, 4)) * (np.arange(count) % 3 == 0)[:, None]
    return ConfusionMatrix.from_counts(counts, "1..4", lacking)


def list_numbers(estimate):
    numbers = (estimate.value, estimate.low, estimate.high, estimate.undefined_share)
    return [None if math.isnan(x) else pytest.approx(x, rel=1e-9, abs=1e-9) for x in numbers]


@pytest.mark.parametrize("unanswered", [0.0, 0.5])
@pytest.mark.parametrize("method", [None, "delta", "percentile"])
def test_a_batch_has_the_intervals_of_each_of_its_matrices(unanswered, method):
    matrices = sample_matrices(9, unanswered=unanswered)
    how = ConfidenceIntervals(resamples=100, method=method)
    together = estimate_metrics_of_each(METRICS, matrices, how)
    for place, found in enumerate(together):
        alone = estimate_metrics(METRICS, matrices[place], how)
        assert list(found) == list(alone)
        for name, one in found.items():
            other = alone[name]
            assert (one.method, one.note) == (other.method, other.note), name
            numbers = [None if math.isnan(x) else x for x in (one.value, one.low, one.high)]
            assert [*numbers, one.undefined_share] == list_numbers(other), name


def test_of_more_than_50_matrices_macro_f1_is_not_resampled():
    matrices = sample_matrices(51)
    many = estimate_metrics_of_each([find_metric("f1_macro")], matrices, QUICK)
    few = estimate_metrics_of_each([find_metric("f1_macro")], matrices[:50], QUICK)
    assert {found["f1_macro"].method for found in many} == {"mover"}
    assert {found["f1_macro"].note for found in many} == {MANY_NOTE}
    assert "percentile" in {found["f1_macro"].method for found in few}


def test_intervals_of_macro_f1_without_resamples_cover():
    rng = np.random.default_rng(3)
    counts = rng.multinomial(200, SHARES.ravel(), 2_000).reshape(-1, 4, 4)
    metric = find_metric("f1_macro")
    truth = float(metric(ConfusionMatrix.from_counts(SHARES * 44, "1..4")))
    found = estimate_metrics_of_each([metric], ConfusionMatrix.from_counts(counts, "1..4"))
    inside = np.mean([x["f1_macro"].low <= truth <= x["f1_macro"].high for x in found])
    assert 0.93 <= inside <= 0.97


def test_no_matrix_has_no_estimates():
    matrices = sample_matrices(2)
    assert estimate_metrics_of_each([], matrices, QUICK) == [{}, {}]
