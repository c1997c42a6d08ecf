"""Sums of a table that determine a metric: equal to the metric of the whole table, wherever."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples
from strategies import scale_of

from ordinate.errors import NotApplicable
from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.table_sums import CHANCE_CORRECTED_BASES, LEVEL_METRICS, find_table_sums
from ordinate.summaries import ConfusionMatrix

METRICS = [metric for metric in list_metrics(ConfusionMatrix) if not metric.required]
COSTS = find_metric("expected_cost").with_options(matrix=[[0, 1, 5], [2, 0, 1], [9, 4, 0]])


def moved(cells, size, seed):
    """The same gold, predicted otherwise."""
    rng = np.random.default_rng(seed)
    width = size + int(cells[:, size].any())
    rows = [rng.multinomial(int(row.sum()), np.full(width, 1 / width)) for row in cells]
    return np.pad(np.array(rows, float), ((0, 0), (0, size + 1 - width)))


@pytest.mark.parametrize("metric", [*METRICS, COSTS], ids=lambda metric: metric.expression)
@given(data=st.data())
@examples(12)
def test_the_sums_of_any_table_with_the_same_gold_give_the_metric(metric, data):
    size = 3 if metric is COSTS else data.draw(st.integers(2, 5))
    unanswered = metric.takes_unanswered and data.draw(st.booleans())
    width = size + int(unanswered)
    counts = st.lists(st.integers(0, 4), min_size=size * width, max_size=size * width)
    cells = np.array(data.draw(counts), float).reshape(size, width)
    cells = np.pad(cells, ((0, 0), (0, size + 1 - width)))
    assume(cells.any())
    gold = ConfusionMatrix(scale_of(size), cells, cells, cells)
    sums = find_table_sums(metric, gold)
    other = gold.with_cells(moved(cells, size, data.draw(st.integers(0, 99))))
    try:
        expected = [metric(gold), metric(other)]
    except NotApplicable:
        return
    found = sums.combine(sums.sum_cells(np.stack([gold.weights, other.weights])))
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_linear_metrics_need_one_sum_kappas_two_and_averages_of_levels_two_for_each():
    cells = np.pad(np.arange(1.0, 17.0).reshape(4, 4), ((0, 0), (0, 1)))
    gold = ConfusionMatrix(scale_of(4), cells, cells, cells)
    for metric in METRICS:
        count = find_table_sums(metric, gold).sum_cells(cells).size
        name = metric.alias_of or metric.name
        expected = 20
        if metric.linear:
            expected = 1
        elif name in CHANCE_CORRECTED_BASES:
            expected = 2
        elif name in LEVEL_METRICS:
            expected = 8
        elif name == "kendall_tau_b":
            expected = 16
        assert count == expected, metric.name


@pytest.mark.parametrize(("size", "name"), [(20, "kendall_tau_b"), (60, "f1_macro")])
def test_many_levels_keep_their_cells(size, name):
    cells = np.pad(np.eye(size) + 1.0, ((0, 0), (0, 1)))
    gold = ConfusionMatrix(scale_of(size), cells, cells, cells)
    sums = find_table_sums(find_metric(name), gold)
    assert sums.coefficients is None
    assert sums.combine(sums.sum_cells(cells)) == pytest.approx(find_metric(name)(gold))


@pytest.mark.parametrize("name", ["mae", "cem_ord", "macro_mae", "quadratic_kappa"])
def test_coefficients_of_the_columns_that_occur_are_enough_if_they_pay(name):
    gold, predicted = np.arange(10, 50, 5), np.array([9, 15, 33, 59, 60])
    rng, size = np.random.default_rng(2), 60
    cells = np.zeros((3, size, size + 1))
    for table in cells:
        table[gold, rng.choice(predicted, len(gold))] = np.arange(1.0, 9.0)
    if not find_metric(name).takes_unanswered:
        cells[..., 59] += cells[..., 60]
        cells[..., 60] = 0.0
    matrices = ConfusionMatrix(scale_of(size), cells, cells, cells)
    sums = find_table_sums(find_metric(name), matrices[0], predicted, most_coefficients=40)
    assert np.count_nonzero(sums.coefficients[0].any(axis=0)) <= 5
    assert sums.combine(sums.sum_cells(cells)) == pytest.approx(find_metric(name)(matrices))
    rows = [sums.list_row_parts(*np.nonzero(table)) for table in cells]
    parts = [table[table > 0] @ part for table, part in zip(cells, rows, strict=True)]
    assert sums.sum_cells(cells) == pytest.approx(np.array(parts))
    few = find_table_sums(find_metric(name), matrices[0], predicted, most_coefficients=39)
    assert few.coefficients is None
