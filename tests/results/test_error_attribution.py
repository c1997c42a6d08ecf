"""Losses: what a metric gains where the items of a cell are put right, one by one in a list."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import labels, value
from strategies import METRICS, items_of, scale_of, tables

from ordinate.errors import NotApplicable
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.error_attribution import ErrorCost, attribute_errors
from ordinate.results.label_evaluation import evaluate
from ordinate.summaries import ConfusionMatrix

UNANSWERED = ("cem_ord", "mae", "accuracy", "macro_mae", "bias", "macro_accuracy", "f1_macro")
ANSWERED = ("quadratic_kappa", "kendall_tau_b", "pearson", "mutual_information", "linear_kappa")
DIRECTION = {"mae": -1, "macro_mae": -1, "bias": 0}  # the others are better where they are larger


def merit(name, number):
    """A number that is larger where the metric is better."""
    return -abs(number) if name == "bias" else DIRECTION.get(name, 1) * number


def written_out(name, gold, answers, scale):
    """{(gold, answer): (items, gain)} of the wrong cells, by putting their items right."""
    now = merit(name, value(name, gold, answers, scale))
    found = {}
    for cell in {(g, p) for g, p in zip(gold, answers, strict=True) if g != p}:
        right = [g if (g, p) == cell else p for g, p in zip(gold, answers, strict=True)]
        gain = merit(name, value(name, gold, right, scale)) - now
        count = list(zip(gold, answers, strict=True)).count(cell)
        found[cell] = count, gain
    return found


def by_cell(found, scale):
    place = {**{label: k for k, label in enumerate(scale.labels)}, None: None}
    return {(place[x.gold], place[x.predicted]): (x.weight, x.gain) for x in found}


def check(found, expected, scale):
    cells = by_cell(found, scale)
    assert len(cells) == len(found)
    assert cells.keys() == expected.keys()
    for cell, (weight, gain) in cells.items():
        assert weight == expected[cell][0]
        assert gain == pytest.approx(expected[cell][1], abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", [*UNANSWERED, *ANSWERED])
@given(table=tables(max_levels=4, largest=3))
@examples(25)
def test_a_gain_is_what_the_metric_gains_where_the_items_of_a_cell_are_right(name, table):
    gold, answers = items_of(table)
    expected = written_out(name, gold, answers, table.scale)
    check(attribute_errors(find_metric(name), table), expected, table.scale)


@pytest.mark.parametrize("name", UNANSWERED)
@given(table=tables(max_levels=3, largest=3), data=st.data())
@examples(25)
def test_items_without_an_answer_are_a_cell_like_others(name, table, data):
    size = len(table.scale)
    silent = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    table = ConfusionMatrix.from_counts(table.counts, table.scale, silent)
    gold, answers = items_of(table)
    expected = written_out(name, gold, answers, table.scale)
    check(attribute_errors(find_metric(name), table), expected, table.scale)


@given(table=tables())
@examples(10)
def test_losses_of_every_metric_are_sorted_and_per_item(table):
    errors = {
        (table.scale.labels[i], table.scale.labels[j])
        for i, j in zip(*np.nonzero(table.counts), strict=True)
        if i != j
    }
    for metric in METRICS:
        found = attribute_errors(metric, table)
        gains = [x.gain for x in found if not math.isnan(x.gain)]
        assert gains == sorted(gains, reverse=True), metric.expression
        assert {(x.gold, x.predicted) for x in found} == errors, metric.expression
        for one in found:
            assert one.weight > 0
            assert one.per_item == pytest.approx(one.gain / one.weight, nan_ok=True)
            plain = one.to_dict()
            assert (plain["gain"] is None) == math.isnan(one.gain), metric.expression
            json.dumps(plain, allow_nan=False)


@pytest.mark.parametrize("name", ["accuracy", "mae", "cem_ord", "macro_mae"])
def test_of_linear_metrics_the_gains_add_up_to_what_is_missing(name):
    cells = [[5, 2, 1], [1, 4, 2], [0, 3, 6]]
    table = ConfusionMatrix.from_counts(cells, scale_of(3), [2, 0, 1])
    perfect = ConfusionMatrix.from_counts(np.diag(table.gold), scale_of(3))
    metric = find_metric(name)
    missing = merit(name, float(metric(perfect))) - merit(name, float(metric(table)))
    assert sum(x.gain for x in attribute_errors(metric, table)) == pytest.approx(missing)


def test_a_gain_is_positive_whichever_direction_is_good():
    table = ConfusionMatrix.from_counts([[5, 2, 1], [0, 4, 2], [0, 0, 6]], scale_of(3))
    for name in ("accuracy", "mae", "bias", "quadratic_kappa"):
        assert all(x.gain > 0 for x in attribute_errors(find_metric(name), table))


def test_a_mistake_that_makes_up_for_another_is_no_loss_of_the_bias():
    table = ConfusionMatrix.from_counts([[5, 3], [3, 5]], scale_of(2))
    found = attribute_errors(find_metric("bias"), table)
    assert [x.gain for x in found] == pytest.approx([-3 / 16, -3 / 16])


def test_the_dearest_cell_comes_first_and_the_dearest_item_may_be_elsewhere():
    table = ConfusionMatrix.from_counts(
        [[10, 8, 0, 1], [0, 9, 0, 0], [0, 0, 9, 0], [0] * 4], scale_of(4)
    )
    first, second = attribute_errors(find_metric("mae"), table)
    assert (first.gold, first.predicted, first.weight) == ("L0", "L1", 8)
    assert (second.gold, second.predicted, second.weight) == ("L0", "L3", 1)
    assert second.per_item == pytest.approx(3 * first.per_item)


@pytest.mark.parametrize("name", ["accuracy", "mae", "bias", "cem_ord"])
def test_perfect_predictions_lose_nothing(name):
    assert (
        attribute_errors(
            find_metric(name), ConfusionMatrix.from_counts(np.diag([4, 0, 7]), scale_of(3))
        )
        == ()
    )


def test_only_silence_can_be_lost():
    (one,) = attribute_errors(
        find_metric("accuracy"), ConfusionMatrix.from_counts(np.diag([4, 6]), scale_of(2), [0, 5])
    )
    assert one == ErrorCost("L1", None, 5.0, pytest.approx(5 / 15))
    assert one.to_dict()["predicted"] is None


def test_whole_weights_are_repetitions():
    gold, answers, times = [0, 1, 2, 2, 0], [0, 2, 1, 2, 2], [3, 1, 2, 5, 4]
    one = ConfusionMatrix.of(labels(gold), labels(answers), scale_of(3), times)
    many = (labels(np.repeat(column, times)) for column in (gold, answers))
    other = ConfusionMatrix.of(*many, scale_of(3))
    for name in ("mae", "quadratic_kappa"):
        assert attribute_errors(find_metric(name), one) == attribute_errors(
            find_metric(name), other
        )


def test_real_weights_weigh():
    table = ConfusionMatrix.of(["L0", "L0", "L1"], ["L1", "L0", "L1"], scale_of(2), [0.5, 1.0, 2.5])
    (one,) = attribute_errors(find_metric("accuracy"), table)
    assert (one.weight, one.gain, one.per_item) == (0.5, pytest.approx(1 / 8), pytest.approx(1 / 4))


def test_many_levels_are_put_right_in_blocks_that_change_nothing():
    rng = np.random.default_rng(3)
    table = ConfusionMatrix.from_counts(rng.integers(0, 3, (40, 40)), scale_of(40))
    found = attribute_errors(find_metric("mae"), table)
    assert len(found) == int((table.counts > 0).sum() - (np.diag(table.counts) > 0).sum())
    error = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    for one in found:
        i, j = int(one.gold[1:]), int(one.predicted[1:])
        assert one.gain == pytest.approx(table.counts[i, j] * error[i, j] / table.total)


# --- in an evaluation ----------------------------------------------------------------------------

GOLD, ANSWERS = ["L0", "L1", "L2", "L2", "L0"] * 4, ["L0", "L2", "L1", "L2", "L2"] * 4


def test_an_evaluation_has_the_losses_that_were_asked_for():
    result = evaluate(GOLD, ANSWERS, scale_of(3), "mae", error_attribution="cem_ord,accuracy")
    assert list(result.error_attribution) == ["cem_ord", "accuracy"]
    for name, found in result.error_attribution.items():
        assert found == attribute_errors(find_metric(name), result.confusion_matrix)
    assert evaluate(GOLD, ANSWERS, scale_of(3), "mae").error_attribution == {}
    plain = json.loads(render(result, "json"))["error_attribution"]
    assert plain["accuracy"] == [x.to_dict() for x in result.error_attribution["accuracy"]]


def test_the_report_shows_the_dearest_cells():
    result = evaluate(
        GOLD, [*ANSWERS[:-1], None], scale_of(3), error_attribution="mae", missing="worst"
    )
    shown = " ".join(str(result).split())
    assert "Error attribution of mae" in shown
    first = result.error_attribution["mae"][0]
    assert f"{first.gold} {first.predicted} {first.weight:g} {first.gain:.3f}" in shown
    assert "L0 no answer 1" in shown
    for form in RENDERERS:
        render(result, form)


def test_a_loss_that_is_undefined_is_called_so():
    result = evaluate(
        ["L0"] * 4, ["L0", "L1", "L2", "L0"], scale_of(3), error_attribution="kendall_tau_b"
    )
    assert all(math.isnan(x.gain) for x in result.error_attribution["kendall_tau_b"])
    assert "nan" not in str(result).split()
    assert "NaN" not in render(result, "json")


def test_a_metric_that_refuses_the_table_is_named():
    with pytest.raises(NotApplicable, match="quadratic_kappa"):
        evaluate(
            GOLD,
            [None, *ANSWERS[1:]],
            scale_of(3),
            "mae",
            missing="worst",
            error_attribution="quadratic_kappa",
        )
