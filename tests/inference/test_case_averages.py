"""Averages over cases: their definitions written out, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from scipy import stats
from strategies import counts, scale_of

from ordinate.inference.case_averages import (
    CaseValues,
    average_cases,
    estimate_item_errors,
    find_worst_cases,
    measure_cases,
)
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix

SCALE = scale_of(4)
METRICS = ("cem_ord", "quadratic_kappa", "kendall_tau_b", "min_sensitivity", "f1_macro", "mae")


def make_cases(cases: int = 7, items: int = 12, seed: int = 1) -> ConfusionMatrix:
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(items, rng.dirichlet(np.ones(16)), cases).reshape(cases, 4, 4)
    return ConfusionMatrix.from_counts(drawn, SCALE)


def jackknife(metric, counts) -> float:
    """The standard error of a metric, each item left out in turn."""
    values = []
    for (gold, predicted), count in np.ndenumerate(counts):
        for _ in range(int(count)):
            left = counts.copy()
            left[gold, predicted] -= 1
            values.append(float(metric(ConfusionMatrix.from_counts(left, SCALE))))
    n = len(values)
    return math.sqrt((n - 1) / n * sum((x - sum(values) / n) ** 2 for x in values))


@pytest.mark.parametrize("name", METRICS)
def test_the_error_within_a_case_is_the_jackknife_over_its_items(name):
    cases, metric = make_cases(), find_metric(name)
    errors = estimate_item_errors(metric, cases, metric(cases), block_size=100)
    expected = [jackknife(metric, each) for each in cases.counts]
    assert errors == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_the_error_of_a_mean_is_that_of_its_items():
    """se² = s² / n for a plain mean, also of weighted items as the delta method has it."""
    rng = np.random.default_rng(4)
    gold, predicted = rng.integers(0, 4, (2, 40))
    labels = [SCALE.labels[k] for k in gold], [SCALE.labels[k] for k in predicted]
    metric, off = find_metric("mae"), np.abs(gold - predicted)
    plain = ConfusionMatrix.stack([ConfusionMatrix.of(*labels, SCALE)])
    expected = off.std(ddof=1) / math.sqrt(40)
    assert estimate_item_errors(metric, plain, metric(plain)) == pytest.approx([expected])
    weights = np.full(40, 0.3)
    weighted = ConfusionMatrix.stack([ConfusionMatrix.of(*labels, SCALE, weights)])
    assert estimate_item_errors(metric, weighted, metric(weighted)) == pytest.approx([expected])


def test_one_item_and_unknown_numbers_of_items_have_no_error():
    one, metric = np.zeros((2, 4, 4)), find_metric("accuracy")
    one[:, 1, 1] = 1, 0.5
    for cell in one:
        cases = ConfusionMatrix.from_counts(cell[None], SCALE)
        assert np.isnan(estimate_item_errors(metric, cases, metric(cases))).all()


# --- the mean ------------------------------------------------------------------------------------


VALUES = np.array([0.2, 0.5, math.nan, 0.6, 0.9])
ERRORS = np.array([0.1, 0.2, math.nan, 0.1, 0.3])


def test_cases_as_the_sample_have_students_interval():
    found = average_cases(CaseValues(VALUES, ERRORS), 0.9, (-math.inf, math.inf))
    known = [0.2, 0.5, 0.6, 0.9]
    expected = stats.ttest_1samp(known, 0.0).confidence_interval(0.9)
    assert (found.estimate.value, found.cases) == (pytest.approx(0.55), 4)
    assert (found.estimate.low, found.estimate.high) == pytest.approx(tuple(expected))
    assert found.estimate.method == "t_over_cases"


def test_fixed_cases_have_the_errors_of_their_items():
    found = average_cases(CaseValues(VALUES, ERRORS), 0.95, (-math.inf, math.inf), fixed=True)
    error = math.sqrt(0.1**2 + 0.2**2 + 0.1**2 + 0.3**2) / 4
    reach = stats.norm.ppf(0.975) * error
    assert (found.estimate.low, found.estimate.high) == pytest.approx((0.55 - reach, 0.55 + reach))
    assert found.estimate.method == "items_of_cases"


def bounded_interval(mean: float, variances, freedom) -> tuple[float, float]:
    """Student's interval at Satterthwaite's degrees of freedom, on the logits of a share."""
    error = math.sqrt(sum(variances)) / len(variances)
    doubt = sum(v**2 / df for v, df in zip(variances, freedom, strict=True))
    half = stats.t.ppf(0.975, sum(variances) ** 2 / doubt) * error / (mean * (1 - mean))
    logit = math.log(mean / (1 - mean))
    return tuple(1 / (1 + math.exp(-end)) for end in (logit - half, logit + half))


def test_the_errors_of_items_have_students_tails_within_the_bounds_of_the_metric():
    sizes = np.array([30.0, 21.0, math.nan, 40.0, 25.0])
    found = average_cases(CaseValues(VALUES, ERRORS, sizes=sizes), 0.95, (0, 1), fixed=True)
    expected = bounded_interval(0.55, np.square([0.1, 0.2, 0.1, 0.3]), [29, 20, 39, 24])
    assert (found.estimate.low, found.estimate.high) == pytest.approx(expected)
    assert found.estimate.note is None


def test_a_mean_at_a_bound_keeps_its_errors():
    found = average_cases(
        CaseValues(np.zeros(2), np.array([0.1, 0.0]), sizes=np.full(2, 30.0)),
        0.95,
        (0, 1),
        fixed=True,
    )
    assert (found.estimate.low, found.estimate.high) == pytest.approx(
        (0.0, stats.t.ppf(0.975, 29) * 0.1 / 2)
    )


@pytest.mark.parametrize(("count", "items", "share"), [(10, 10, 0.95), (3, 8, 0.8)])
def test_fixed_cases_of_few_items_are_covered(count, items, share):
    """As the trial of docs/averages-over-cases.md: 87 and 89 % with the plain normal interval."""
    rng, replicates = np.random.default_rng(1_000), 800
    right = rng.binomial(items, share, replicates * count)
    cells = np.zeros((len(right), 4, 4))
    cells[:, 0, 0], cells[:, 0, 1] = right, items - right
    found = measure_cases(find_metric("accuracy"), ConfusionMatrix.from_counts(cells, SCALE))
    parts = (x.reshape(replicates, count) for x in (found.values, found.errors, found.sizes))
    covered = [
        estimate.low <= share <= estimate.high
        for values, errors, sizes in zip(*parts, strict=True)
        if errors.any()
        for estimate in [
            average_cases(
                CaseValues(values, errors, None, sizes), 0.95, (0, 1), fixed=True
            ).estimate
        ]
    ]
    assert np.mean(covered) > 0.92


def test_the_spread_is_that_of_the_cases_and_the_true_one_lacks_the_noise_of_items():
    found = average_cases(CaseValues(VALUES, ERRORS), None, (0, 1))
    variance = np.var([0.2, 0.5, 0.6, 0.9], ddof=1)
    noise = np.mean(np.square([0.1, 0.2, 0.1, 0.3]))
    assert found.spread == pytest.approx(math.sqrt(variance))
    assert found.true_spread == pytest.approx(math.sqrt(variance - noise))
    assert average_cases(CaseValues(VALUES, 9 * ERRORS), None, (0, 1)).true_spread == 0.0
    assert found.estimate.method is None


def test_cases_without_an_error_are_as_noisy_as_the_others_and_many_refuse_the_interval():
    values, half = VALUES[[0, 1, 3, 4]], np.array([0.1, 0.2, math.nan, math.nan])
    sizes = np.array([10.0, 5.0, 1.0, 2.0])
    found = average_cases(CaseValues(values, half, sizes=sizes), 0.95, (0, 1), fixed=True)
    pooled = (9 * 10 * 0.1**2 + 4 * 5 * 0.2**2) / (9 + 4)  # the variance of an item
    noise = [0.1**2, 0.2**2, pooled / 1, pooled / 2]
    expected = bounded_interval(values.mean(), noise, [9, 4, 1, 1])
    assert (found.estimate.low, found.estimate.high) == pytest.approx(expected)
    assert found.estimate.note == (
        "2 cases without a standard error are taken for as noisy as the others; "
        "4 of 4 cases have fewer than 20 items"
    )
    variance = values.var(ddof=1) - np.mean(noise)
    assert found.true_spread == pytest.approx(math.sqrt(max(0.0, variance)))
    few = np.array([0.1, math.nan, math.nan, math.nan])
    refused = average_cases(CaseValues(values, few), 0.95, (0, 1), fixed=True)
    assert math.isnan(refused.estimate.low)
    assert refused.estimate.note == "3 of 4 cases have no standard error of their own"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([0.5], "there is one case only"),
        ([0.5, 0.5, 0.5], "every case has the same value"),
        ([0.5, math.inf], "a case is infinite"),
    ],
)
def test_an_interval_that_cannot_be_is_refused_with_a_reason(values, reason):
    found = average_cases(CaseValues(np.array(values), np.array(values)), 0.95, (0, math.inf))
    assert (found.estimate.method, found.estimate.note) == (None, reason)


def test_intervals_stay_within_the_bounds_of_the_metric():
    found = average_cases(CaseValues(np.array([0.6, 1.0]), np.zeros(2)), 0.95, (0, 1))
    assert (found.estimate.low, found.estimate.high) == (0.0, 1.0)


# --- laws ----------------------------------------------------------------------------------------


@given(data=st.data(), name=st.sampled_from(METRICS))
@examples(40)
def test_the_order_of_cases_does_not_matter(data, name):
    parts = np.stack([data.draw(counts(4)) for _ in range(5)])
    order = data.draw(st.permutations(range(5)))
    metric = find_metric(name)
    one, other = (
        average_cases(
            measure_cases(metric, ConfusionMatrix.from_counts(cells, SCALE)), 0.95, metric.bounds
        )
        for cells in (parts, parts[list(order)])
    )
    numbers = [
        (x.estimate.value, x.estimate.low, x.estimate.high, x.spread, x.cases) for x in (one, other)
    ]
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True, abs=1e-9)


@given(data=st.data())
@examples(40)
def test_a_linear_metric_of_cases_of_one_size_and_its_mean_are_the_same(data):
    items = data.draw(st.integers(2, 9))
    cell = st.lists(st.integers(0, 15), min_size=items, max_size=items)
    cells = np.stack([np.bincount(data.draw(cell), minlength=16).reshape(4, 4) for _ in range(4)])
    cases = ConfusionMatrix.from_counts(cells, SCALE)
    for name in ("accuracy", "mae", "bias"):
        metric = find_metric(name)
        found = average_cases(measure_cases(metric, cases), 0.95, metric.bounds)
        assert float(found) == pytest.approx(float(metric(cases.pooled)))


@given(data=st.data())
@examples(30)
def test_a_case_without_a_value_is_as_if_it_were_not_there(data):
    parts = np.stack([data.draw(counts(4)) for _ in range(4)])
    constant = np.zeros((1, 4, 4))
    constant[0, 2] = 1, 2, 3, 0  # gold of one level: no rank correlation
    metric = find_metric("kendall_tau_b")
    some = measure_cases(metric, ConfusionMatrix.from_counts(parts, SCALE))
    more = measure_cases(
        metric, ConfusionMatrix.from_counts(np.concatenate([parts, constant]), SCALE)
    )
    assert math.isnan(more.values[-1])
    assert more.reason == metric.undefined_when
    one, other = (average_cases(found, 0.95, metric.bounds) for found in (some, more))
    assert (one.estimate.value, one.cases) == pytest.approx(
        (other.estimate.value, other.cases), nan_ok=True
    )


def test_the_worst_cases_are_those_of_the_least_merit():
    values = np.array([0.4, -0.9, math.nan, 0.1, 0.6])
    assert find_worst_cases(find_metric("bias"), values, 2).tolist() == [1, 4]
    assert find_worst_cases(find_metric("quadratic_kappa"), values, 9).tolist() == [1, 3, 0, 4]
