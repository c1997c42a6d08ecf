"""Each metric equals its definition written out over the items."""

import math

import numpy as np
import pytest
from each_case import each_case
from frozen_irrcac import DIGITS, IRRCAC
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from naive import NAIVE
from strategies import METRICS, counts, every_metric, items_of, same, scale_of, scales, tables

from ordinate.errors import BadOption, NotApplicable
from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

PATHS = "classification index"
TAKING = [metric for metric in METRICS if metric.takes_unanswered]


def test_every_metric_has_a_naive_definition():
    assert {metric.name for metric in list_metrics()} == set(NAIVE)


@every_metric
@given(table=tables(max_levels=4, largest=3))
@examples(40)
def test_a_metric_equals_its_definition_over_items(metric, table):
    gold, predicted = items_of(table)
    naive = NAIVE[metric.name](gold, predicted, table.scale.at, **metric.options)
    assert same(float(metric(table)), naive), (metric(table), naive)


def check_sample(metric, size, gold, predicted):
    cells = np.zeros((size, size))
    np.add.at(cells, (gold, predicted), 1.0)
    value = metric(ConfusionMatrix.from_counts(cells, scale_of(size)))
    levels = (gold.tolist(), predicted.tolist())
    naive = NAIVE[metric.name](*levels, scale_of(size).at, **metric.options)
    assert same(float(value), naive), (value, naive)


@each_case("metric", {m.expression: m for m in METRICS if m.family != PATHS})
def test_a_metric_on_a_fine_scale_equals_its_definition_over_items(metric):
    rng = np.random.default_rng(1)
    gold = rng.integers(5, 50, 25)
    check_sample(metric, 60, gold, np.clip(gold + rng.integers(-9, 10, 25), 0, 59))


@each_case("metric", {m.expression: m for m in METRICS if m.family == PATHS})
@pytest.mark.parametrize("seed", range(8))
def test_paths_through_empty_levels_are_those_of_the_definition(metric, seed):
    rng = np.random.default_rng(seed)
    check_sample(metric, 6, *rng.integers(0, 6, (2, 2 + seed)))


@each_case("metric", {m.expression: m for m in TAKING})
@given(scale=scales(max_levels=4), data=st.data())
@examples(40)
def test_an_item_without_a_prediction_is_worst_as_defined(metric, scale, data):
    size = len(scale)
    unanswered = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    table = ConfusionMatrix.from_counts(data.draw(counts(size, 3)), scale, unanswered)
    gold, predicted = items_of(table)
    naive = NAIVE[metric.name](gold, predicted, scale.at, **metric.options)
    assert same(float(metric(table)), naive), (metric(table), naive)


@every_metric
def test_a_metric_without_a_rule_for_unanswered_items_refuses(metric):
    table = ConfusionMatrix.from_counts(np.eye(3), scale_of(3), [1, 0, 0])
    if metric.takes_unanswered:
        assert math.isfinite(metric(table))
    else:
        with pytest.raises(NotApplicable, match="without a prediction"):
            metric(table)


@given(scale=scales(max_levels=4), data=st.data())
def test_the_users_cost_is_averaged_over_items(scale, data):
    size = len(scale)
    matrix = data.draw(counts(size)).tolist()
    table = ConfusionMatrix.from_counts(data.draw(counts(size)), scale, [1] * size)
    gold, predicted = items_of(table)
    naive = NAIVE["expected_cost"](gold, predicted, scale.at, matrix=matrix)
    assert same(float(find_metric("expected_cost").with_options(matrix=matrix)(table)), naive)


def test_a_cost_matrix_must_fit_the_scale():
    table = ConfusionMatrix.from_counts(np.eye(3), scale_of(3))
    with pytest.raises(BadOption, match="3 x 3 finite numbers"):
        find_metric("expected_cost(matrix=[[0,1],[1,0]])")(table)
    with pytest.raises(BadOption, match="expected_cost needs matrix"):
        find_metric("expected_cost")(table)


@pytest.mark.parametrize("case", IRRCAC.values(), ids=IRRCAC)
@pytest.mark.parametrize("weights", ["quadratic", "linear", "identity"])
def test_gwet_agrees_with_irrcac(case, weights):
    table = ConfusionMatrix.from_counts(
        case.table, scale_of(len(case.positions), list(case.positions))
    )
    value = find_metric("gwet_ac2").with_options(weights=weights)(table)
    assert value == pytest.approx(case.gwet[weights], abs=10**-DIGITS)


@given(table=tables(largest=6))
def test_interval_alpha_is_quadratic_scott_with_the_correction_for_few_labels(table):
    """1 - (1 - pi) (2N - 1) / 2N: alpha draws its two labels without replacement."""
    labels = 2 * table.total
    pi = find_metric("scott_pi")(table)
    alpha = find_metric("krippendorff_alpha(level='interval')")(table)
    assert same(float(1 - (1 - pi) * (labels - 1) / labels), float(alpha))


@given(table=tables(largest=6))
def test_raters_with_the_same_shares_have_scotts_pi_equal_to_kappa(table):
    """And with all levels equally frequent, to the coefficient of Brennan and Prediger."""
    both = table.with_cells(table.counts + table.counts.T)
    assert same(float(find_metric("scott_pi")(both)), float(find_metric("quadratic_kappa")(both)))
    shifts = [np.roll(table.counts, (k, k), (0, 1)) for k in range(len(table.scale))]
    even = table.with_cells(sum(shifts))
    for weights in ("quadratic", "linear", "identity"):
        pi, coefficient = (
            find_metric(f"{name}(weights={weights!r})")(even)
            for name in ("scott_pi", "brennan_prediger")
        )
        assert same(float(pi), float(coefficient))


def test_the_coefficients_of_the_handbooks_abstractors_are_those_of_irrcac():
    """Two abstractors of 100 cases, as irrCAC's overview prints them."""
    table = ConfusionMatrix.from_counts([[13, 0, 0], [0, 20, 7], [0, 4, 56]], scale_of(3))
    printed = {
        "cohen_kappa": 0.7964094,
        "scott_pi(weights='identity')": 0.7962397,
        "gwet_ac2(weights='identity')": 0.8493305,
        "krippendorff_alpha(level='nominal')": 0.7972585,
    }
    for name, value in printed.items():
        assert find_metric(name)(table) == pytest.approx(value, abs=0.51e-7, rel=0)
    exact = find_metric("brennan_prediger(weights='identity')")(table)
    assert exact == pytest.approx((0.89 - 1 / 3) / (1 - 1 / 3), rel=1e-15)


@pytest.mark.parametrize("name", ["kendall_tau_a", "krippendorff_alpha", "oci(gamma=2)"])
def test_metrics_that_depend_on_the_number_of_items_need_integer_counts(name):
    half = ConfusionMatrix.from_counts(np.eye(3) / 2, scale_of(3))
    with pytest.raises(NotApplicable, match="integer counts"):
        find_metric(name)(half)


def test_the_empty_table_of_a_batch_is_undefined_without_a_warning():
    full = ConfusionMatrix.from_counts([np.eye(3), np.zeros((3, 3))], scale_of(3))
    for metric in METRICS:
        value = metric(full)
        assert math.isnan(value[1]), metric.expression
