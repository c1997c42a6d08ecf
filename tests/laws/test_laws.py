"""Laws that hold for every metric, or have their exception on file."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples
from strategies import METRICS, counts, same, scale_of, scales, tables

from ordinate.metrics import find_metric
from ordinate.results import Evaluation
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

OF_ANY_WEIGHTS = [metric for metric in METRICS if not metric.needs_integer_counts]


def check_value(metric, table, tolerance=1e-12):
    """A value lies within its bounds, or is undefined for a reason."""
    value = metric(table)
    low, high = metric.bounds
    if math.isnan(value):
        assert metric.undefined_when, metric.expression
    else:
        assert low - tolerance <= value <= high + tolerance, metric.expression


def find_changed(metrics, one, other, tolerance=1e-9):
    """Return the metrics whose values of two tables differ."""
    return [
        metric.expression
        for metric in metrics
        if not same(float(metric(one)), float(metric(other)), tolerance)
    ]


@given(table=tables())
@examples(60)
def test_values_stay_within_their_bounds_or_have_a_reason(table):
    for metric in METRICS:
        check_value(metric, table)


@given(scale=scales(), data=st.data())
@examples(15)
def test_a_batch_equals_its_tables_one_by_one(scale, data):
    parts = np.reshape([data.draw(counts(len(scale))) for _ in range(4)], (2, 2, *[len(scale)] * 2))
    batch = ConfusionMatrix.from_counts(parts, scale)
    tables = {at: ConfusionMatrix.from_counts(parts[at], scale) for at in np.ndindex(2, 2)}
    for metric in METRICS:
        values = metric(batch)
        assert values.shape == (2, 2), metric.expression
        for at, table in tables.items():
            assert same(float(values[at]), float(metric(table)), 1e-12), metric.expression


@given(table=tables(), factor=st.sampled_from([2, 3, 1000]))
@examples(15)
def test_only_metrics_of_whole_counts_depend_on_the_scale_of_weights(table, factor):
    scaled = ConfusionMatrix.from_counts(table.counts * factor / 7, table.scale)
    assert not find_changed(OF_ANY_WEIGHTS, table, scaled)


@given(scale=scales(), data=st.data())
@examples(30)
def test_perfect_predictions_are_best(scale, data):
    table = ConfusionMatrix.from_counts(data.draw(counts(len(scale))), scale)
    perfect = ConfusionMatrix.from_counts(np.diag(table.gold), scale)
    for metric in METRICS:
        value, best = metric(table), metric(perfect)
        if not (math.isnan(value) or math.isnan(best)):
            better = metric.is_better(value, best)
            assert not better or same(value, best), metric.expression


@given(scale=scales(), data=st.data())
@examples(15)
def test_linear_metrics_mix_at_fixed_gold(scale, data):
    size = len(scale)
    gold = np.array(data.draw(st.lists(st.integers(1, 4), min_size=size, max_size=size)), float)
    first, second = (_with_gold(data.draw(counts(size)), gold) for _ in range(2))
    cells = (first, second, (first + second) / 2)
    tables = [ConfusionMatrix.from_counts(part, scale) for part in cells]
    for metric in METRICS:
        if metric.linear:
            one, other, mixed = (float(metric(table)) for table in tables)
            assert same(mixed, (one + other) / 2), metric.expression


EXAMPLES = np.random.default_rng(1).integers(0, 7, (6, 3, 3)).astype(float)


def _value(metric, cells, at=None) -> float:
    return float(metric(ConfusionMatrix.from_counts(cells, scale_of(len(cells), at))))


def test_metrics_that_do_not_claim_to_be_linear_are_not():
    shifted = [np.array([[6, 0, 0], [k, 12 - k, 0], [0, k, 4 - k]]) * 2 for k in range(5)]
    shifted += [np.array([[3, k, 3 - k], [0, 8, 4], [1, k, 3 - k]]) * 2 for k in range(4)]
    pairs = [(one, two) for one in shifted for two in shifted]
    for metric in METRICS:
        mixes = all(
            same(_value(metric, (one + two) / 2), (_value(metric, one) + _value(metric, two)) / 2)
            for one, two in pairs
        )
        assert mixes == (metric.linear or metric.name in MIXES), metric.expression


MIXES = {"f1_micro", "recall_macro"}  # the accuracy, and the macro accuracy where levels all occur


def _with_gold(cells, gold):
    """Redistribute rows so that the gold totals are as given."""
    cells = cells + np.eye(len(cells)) * 0.5
    return cells / cells.sum(axis=1, keepdims=True) * gold[:, None]


# --- unused levels -------------------------------------------------------------------------------

CHANGED_AT_THE_ENDS = {
    "ordinal_distance_linear",
    "ordinal_distance_quadratic",
    "oci",
    "gwet_ac2",
    "brennan_prediger",
    "nmd",
    "rnod",
}
CHANGED_AT_THE_BOTTOM = {"cosine"}
CHANGED_IN_THE_MIDDLE = CHANGED_AT_THE_ENDS | {
    "accuracy_within",
    "mae",
    "mse",
    "rmse",
    "bias",
    "macro_mae",
    "macro_mse",
    "max_mae",
    "linear_kappa",
    "quadratic_kappa",
    "weighted_kappa",
    "pearson",
    "ccc",
    "cosine",
    "rennie_srebro",
    "cem_int",
    "uoc",
    "krippendorff_alpha(level='interval')",
    "scott_pi",
}
UNCHANGED = {
    "accuracy_within(n=0)",  # is the accuracy
    "weighted_kappa(power=0)",  # is Cohen's kappa
    "rennie_srebro(kind='immediate',penalty='zero_one')",  # is one minus the accuracy
    "scott_pi(weights='identity')",  # takes levels for names
}


def _changes(metric, where: str) -> bool:
    at = {"bottom": [1, 2, 3], "top": [0, 1, 2], "middle": [0, 1, 3]}[where]
    for cells in EXAMPLES:
        wider = np.zeros((4, 4))
        wider[np.ix_(at, at)] = cells
        if not same(_value(metric, cells), _value(metric, wider)):
            return True
    return False


def _claimed(metric, names: set[str]) -> bool:
    return metric.expression in names or metric.name in names


def _changes_at_the_ends(metric) -> bool:
    logistic = metric.settings.get("penalty") == "logistic"
    return _claimed(metric, CHANGED_AT_THE_ENDS) or logistic


def test_an_unused_level_changes_only_what_is_on_the_list():
    for metric in METRICS:
        ends = _changes_at_the_ends(metric)
        bottom = ends or _claimed(metric, CHANGED_AT_THE_BOTTOM)
        middle = _claimed(metric, CHANGED_IN_THE_MIDDLE) and metric.expression not in UNCHANGED
        for where, expected in {"top": ends, "bottom": bottom, "middle": middle}.items():
            assert _changes(metric, where) == expected, (metric.expression, where)


@given(table=tables(max_levels=4))
@examples(25)
def test_what_is_not_on_the_list_never_changes(table):
    scale = table.scale
    wider = Scale([*scale.labels, "top"], positions=[*scale.at, scale.at[-1] + 2])
    other = ConfusionMatrix.from_counts(np.pad(table.counts, (0, 1)), wider)
    unchanged = [metric for metric in METRICS if not _changes_at_the_ends(metric)]
    assert not find_changed(unchanged, table, other)


@given(table=tables(), data=st.data())
@examples(25)
def test_what_uses_only_the_order_ignores_the_gaps(table, data):
    gap = st.floats(0.1, 50)
    steps = data.draw(st.lists(gap, min_size=len(table.scale), max_size=len(table.scale)))
    stretched = Scale(table.scale.labels, positions=list(np.cumsum(steps)))
    other = ConfusionMatrix.from_counts(table.counts, stretched)
    assert not find_changed([m for m in METRICS if not m.assumes_equal_steps], table, other)


def test_what_assumes_equal_steps_changes_with_them_unless_it_counts_levels():
    for metric in METRICS:
        if metric.assumes_equal_steps and metric.name not in {"accuracy_within", "rennie_srebro"}:
            assert any(
                not same(_value(metric, cells), _value(metric, cells, [0, 1, 5]))
                for cells in EXAMPLES
            ), metric.expression


# --- the corners ---------------------------------------------------------------------------------


def _corner(kind: str, size: int):
    cells = {
        "one item": np.eye(size)[:1].T @ np.eye(size)[:1],
        "constant": np.pad(np.ones((size, 1)), ((0, 0), (size - 1, 0))),
        "perfect": np.eye(size),
        "reversed": np.eye(size)[::-1],
        "one gold level": np.pad(np.ones((1, size)), ((0, size - 1), (0, 0))),
        "apart": np.pad(np.ones((1, 1)), ((0, size - 1), (size - 1, 0))),
    }[kind]
    return ConfusionMatrix.from_counts(cells, scale_of(size))


@pytest.mark.parametrize("size", [2, 3, 50])
@pytest.mark.parametrize(
    "kind", ["one item", "constant", "perfect", "reversed", "one gold level", "apart"]
)
def test_corners_give_a_value_or_a_reason_and_never_a_warning(size, kind):
    table = _corner(kind, size)
    for metric in METRICS:
        check_value(metric, table)


@given(scale=scales(), data=st.data())
@examples(15)
def test_tiny_and_huge_weights_change_nothing_but_the_scale(scale, data):
    cells = data.draw(counts(len(scale)))
    plain, *others = (ConfusionMatrix.from_counts(cells * w, scale) for w in (1, 1e-12, 1e12))
    for other in others:
        assert not find_changed(OF_ANY_WEIGHTS, plain, other)


@given(scale=scales(), data=st.data())
@examples(25)
def test_weights_of_24_orders_of_magnitude_stay_within_bounds(scale, data):
    size = len(scale)
    weight = st.sampled_from([0.0, 1e-12, 1.0, 1e12])
    cells = np.reshape(
        data.draw(st.lists(weight, min_size=size**2, max_size=size**2)), (size, size)
    )
    assume(cells.any())
    table = ConfusionMatrix.from_counts(cells, scale)
    for metric in OF_ANY_WEIGHTS:
        check_value(metric, table, tolerance=1e-9)


def test_a_constant_output_has_no_closeness_beyond_chance():
    for level in range(3):
        cells = np.zeros((3, 3))
        cells[:, level] = [5, 2, 9]
        table = ConfusionMatrix.from_counts(cells, scale_of(3))
        assert find_metric("cem_ord_chance_corrected")(table) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n", [3, 49, 98, 103])
def test_perfect_predictions_are_exactly_best_whatever_the_number_of_items(n):
    table = ConfusionMatrix.from_counts(np.diag([n - 2, 1, 1]), scale_of(3))
    for metric in METRICS:
        tied = metric.name in {"kendall_tau_a", "kendall_tau_c"}  # which ties keep below 1
        if metric.bounds[1] == 1 and metric.direction == "maximize" and not tied:
            assert metric(table) == pytest.approx(1, abs=1e-14), metric.expression
            assert metric.name != "accuracy" or metric(table) == 1


def test_one_and_the_same_label_is_undefined_whatever_the_number_of_items():
    cells = np.zeros((3, 3))
    for n in range(1, 200):
        cells[1, 1] = n
        table = ConfusionMatrix.from_counts(cells, scale_of(3))
        for name in ("normalized_mutual_information", "quadratic_kappa", "pearson", "mcc"):
            assert math.isnan(find_metric(name)(table)), (name, n)


BY_OPTION = {"krippendorff_alpha", "accuracy_within"}  # the order matters for some options
NAMES_BY_OPTION = {
    "weighted_kappa(power=0)",
    "gwet_ac2(weights='identity')",
    "scott_pi(weights='identity')",
    "brennan_prediger(weights='identity')",
    "rennie_srebro(kind='immediate',penalty='zero_one')",
}


def test_what_takes_levels_for_names_ignores_their_order_and_nothing_else_does():
    shuffled = np.ix_([2, 0, 1], [2, 0, 1])
    for metric in METRICS:
        ignores = all(
            same(_value(metric, cells), _value(metric, cells[shuffled])) for cells in EXAMPLES
        )
        names = not metric.ordered or metric.expression in NAMES_BY_OPTION
        assert metric.name in BY_OPTION or ignores == names, metric.expression


def test_closeness_beyond_chance_is_closeness_above_its_chance_baseline():
    table = ConfusionMatrix.from_counts([[5, 2, 1], [1, 4, 2], [0, 3, 6]], scale_of(3), [2, 0, 1])
    found = Evaluation.from_summary(table, "cem_ord,cem_ord_chance_corrected").metrics
    value, chance = found["cem_ord"].value, found["cem_ord"].baselines.chance.value
    corrected = (value - chance) / (1 - chance)
    assert found["cem_ord_chance_corrected"].value == pytest.approx(corrected)
