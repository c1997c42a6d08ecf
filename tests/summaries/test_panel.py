"""A panel is a count of items: distinct rows of answers, which merge, and nothing gets lost."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import dense

from ordinate.errors import (
    BadInput,
    BadOption,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
    OrdinateError,
    UnequalLengths,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ConfusionMatrix, Panel

LABELS = ["low", "mid", "high"]
SCALE = Scale(LABELS)
NAMES = ("one", "two", "three")


@st.composite
def items(draw, missing=(), min_size=1, max_size=25):
    """Gold, answers by system, weights whose sums are exact in binary, and groups."""
    label, answer = st.sampled_from(LABELS), st.sampled_from([*LABELS, *missing])
    weight = st.integers(0, 64).map(lambda eighths: eighths / 8)
    group = st.sampled_from(["x", "y", "z"])
    row = st.tuples(label, answer, answer, answer, weight, group)
    rows = draw(st.lists(row, min_size=min_size, max_size=max_size))
    gold, *answers, weights, groups = (list(column) for column in zip(*rows, strict=True))
    if not any(weights):
        weights[0] = 1.0
    return gold, dict(zip(NAMES, answers, strict=True)), weights, groups


def counted(gold, systems, weights=None, groups=None):
    """{(group, gold, answers …): (items, weight, squared weight)} over the items."""
    found = {}
    columns = [groups or [None] * len(gold), gold, *systems.values()]
    for row, w in zip(zip(*columns, strict=True), weights or [1] * len(gold), strict=True):
        n, total, squares = found.get(row, (0, 0.0, 0.0))
        if w:
            found[row] = (n + 1, total + w, squares + w * w)
    return found


def rows_of(panel):
    """The same of a panel."""
    names = [*LABELS, None]
    groups = [None] * len(panel) if panel.groups is None else panel.groups
    values = [None] if panel.groups is None else panel.group_values
    found = {}
    for k, group in enumerate(groups):
        at = values[0] if panel.groups is None else values[group]
        key = (at, *(names[position] for position in panel.rows[k]))
        assert key not in found
        sums = (int(panel.items[k]), float(panel.weights[k]), float(panel.squares[k]))
        found[key] = sums
    return found


def grouping(groups):
    return None if groups is None else factorize_column(groups)


# --- counting ------------------------------------------------------------------------------------


@given(items())
def test_rows_are_how_often_each_combination_of_answers_occurs(rows):
    gold, systems, _, _ = rows
    panel = Panel.of(gold, systems, SCALE)
    assert rows_of(panel) == counted(gold, systems)
    assert panel.n == len(gold) == panel.weights.sum()
    assert panel.systems == NAMES
    assert panel.has_integer_weights
    assert len(panel) == len(set(zip(gold, *systems.values(), strict=True)))


@given(items(missing=[None]))
def test_weights_and_their_squares_are_summed_within_groups(rows):
    gold, systems, weights, groups = rows
    panel = Panel.of(gold, systems, SCALE, weights, grouping(groups), "worst")
    assert rows_of(panel) == counted(gold, systems, weights, groups)
    assert panel.n == sum(w > 0 for w in weights)
    assert panel.weights.sum() == sum(weights)


@given(items())
def test_one_system_is_a_panel_too(rows):
    gold, systems, _, _ = rows
    panel = Panel.of(gold, {"one": systems["one"]}, SCALE)
    assert panel.confusion_matrix("one") == ConfusionMatrix.of(gold, systems["one"], SCALE)


@pytest.mark.parametrize(
    "column",
    [
        list,
        np.array,
        lambda x: np.array(x, object),
        lambda x: pd.Series(x, dtype="category"),
        pl.Series,
        tuple,
        iter,
    ],
    ids=["list", "texts", "objects", "pandas category", "polars", "tuple", "iterator"],
)
def test_columns_of_every_kind_are_counted_alike(column):
    gold, answers = ["low", "high", "mid", "low"], ["mid", "high", "mid", "low"]
    plain = Panel.of(gold, {"a": answers, "b": gold}, SCALE)
    assert Panel.of(column(gold), {"a": column(answers), "b": column(gold)}, SCALE) == plain


# --- tables --------------------------------------------------------------------------------------


@given(items(missing=[None]))
def test_the_table_of_a_system_is_the_confusion_of_its_column(rows):
    gold, systems, weights, _ = rows
    for given_weights in (None, weights):
        panel = Panel.of(gold, systems, SCALE, given_weights, missing="worst")
        for name, answers in systems.items():
            expected = ConfusionMatrix.of(gold, answers, SCALE, given_weights, "worst")
            assert panel.confusion_matrix(name) == expected


@given(items(missing=[None]))
def test_the_tables_of_groups_are_the_confusions_of_their_items(rows):
    gold, systems, weights, groups = rows
    units = factorize_column(groups)
    panel = Panel.of(gold, systems, SCALE, weights, units, "worst")
    for name, answers in systems.items():
        batch = panel.count_by_group(name)
        for k, value in enumerate(panel.group_values):
            inside = [group == value and w > 0 for group, w in zip(groups, weights, strict=True)]
            if not any(inside):
                assert not batch.weights[k].any()
                continue
            own = [np.array(x, object)[inside].tolist() for x in (gold, answers, weights)]
            alone = ConfusionMatrix.of(own[0], own[1], SCALE, own[2], "worst")
            assert np.array_equal(batch.weights[k], alone.weights)
            assert np.array_equal(batch.items[k], alone.items)
            assert np.array_equal(batch.squares[k], alone.squares)
        assert np.array_equal(batch.pooled.weights, panel.confusion_matrix(name).weights)


@given(rows=items(missing=[None]), pair=st.permutations(NAMES))
def test_a_pair_is_how_often_each_two_answers_meet(rows, pair):
    gold, systems, weights, _ = rows
    panel = Panel.of(gold, systems, SCALE, weights, missing="worst")
    first, second, _ = pair
    both = panel.pair_systems(first, second)
    expected = np.zeros((2, 3, 4, 4))
    place = {**{label: k for k, label in enumerate(LABELS)}, None: 3}
    for g, a, b, w in zip(gold, systems[first], systems[second], weights, strict=True):
        expected[:, place[g], place[a], place[b]] += [w > 0, w]
    assert np.array_equal(dense(both), expected)
    assert (both.items > 0).all()
    assert np.array_equal(both.first.weights, panel.confusion_matrix(first).weights)
    assert np.array_equal(both.second.weights, panel.confusion_matrix(second).weights)
    assert np.array_equal(both.predictions, expected[1].sum(axis=0)[:3, :3])


@given(items(missing=[None]))
def test_pairs_within_groups_add_up_to_the_pair(rows):
    gold, systems, weights, groups = rows
    panel = Panel.of(gold, systems, SCALE, weights, factorize_column(groups), "worst")
    inside = panel.pair_systems("one", "three", grouped=True)
    whole = panel.pair_systems("one", "three")
    assert dense(inside)[0].shape == (len(panel.group_values), 3, 4, 4)
    assert np.array_equal(dense(inside.pooled), dense(whole))
    for k in range(len(panel.group_values)):
        assert np.array_equal(inside.first.weights[k], panel.count_by_group("one").weights[k])


def test_pairs_can_be_added():
    gold, answers = ["low", "mid", "high"], {"a": ["low", "low", "mid"], "b": ["mid"] * 3}
    panel = Panel.of(gold, answers, SCALE)
    pair = panel.pair_systems("a", "b")
    assert np.array_equal(dense(pair + pair), dense((panel + panel).pair_systems("a", "b")))
    other = Panel.of(["low"], {"a": ["low"], "b": ["low"]}, "low,high").pair_systems("a", "b")
    with pytest.raises(OrdinateError, match="differ in scale"):
        _ = pair + other


def test_pairs_of_groups_are_added_as_panels_only():
    """The groups of pairs have no names, by which they could be matched."""
    gold, answers = ["low", "mid"], {"a": ["low", "low"], "b": ["mid"] * 2}
    panel = Panel.of(gold, answers, SCALE, groups=factorize_column(["anna", "bert"]))
    pairs = panel.pair_systems("a", "b", grouped=True)
    with pytest.raises(OrdinateError, match="add the panels"):
        _ = pairs + pairs


def test_groups_that_a_panel_does_not_have_are_refused():
    panel = Panel.of(["low"], {"a": ["low"], "b": ["mid"]}, SCALE)
    with pytest.raises(BadOption, match="no groups"):
        panel.count_by_group("a")
    with pytest.raises(BadOption, match="no groups"):
        panel.pair_systems("a", "b", grouped=True)


# --- parts ---------------------------------------------------------------------------------------


def parts_of(rows, cut, *, weighted, grouped):
    """The panel of all items, and those of the first and of the last of them."""
    gold, systems, weights, groups = rows

    def part(inside):
        chosen = {name: answers[inside] for name, answers in systems.items()}
        heavy = weights[inside] if weighted else None
        units = grouping(groups[inside]) if grouped else None
        try:
            return Panel.of(gold[inside], chosen, SCALE, heavy, units, "worst")
        except NoItems:
            return None

    return part(slice(None)), part(slice(cut)), part(slice(cut, None))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@given(rows=items(missing=[None], min_size=2), data=st.data())
@examples(60)
def test_panels_add_up_as_if_they_had_been_counted_together(rows, data, weighted, grouped):
    cut = data.draw(st.integers(1, len(rows[0]) - 1))
    whole, first, second = parts_of(rows, cut, weighted=weighted, grouped=grouped)
    if first is None or second is None:
        return
    assert rows_of(first + second) == rows_of(second + first) == rows_of(whole)
    assert (first + second).n == whole.n
    for name in NAMES:
        assert (first + second).confusion_matrix(name) == whole.confusion_matrix(name)
    if not grouped:
        assert first + second == second + first == whole


@given(items(missing=[None]))
def test_the_order_of_the_items_does_not_matter(rows):
    gold, systems, weights, _ = rows
    backwards = {name: answers[::-1] for name, answers in systems.items()}
    there = Panel.of(gold, systems, SCALE, weights, missing="worst")
    assert there == Panel.of(gold[::-1], backwards, SCALE, weights[::-1], missing="worst")


def test_batches_in_any_order_are_one_panel():
    rng = np.random.default_rng(0)
    gold, a, b = ([LABELS[k] for k in rng.integers(0, 3, 60)] for _ in range(3))
    groups = [f"g{k}" for k in rng.integers(0, 7, 60)]
    parts = [
        Panel.of(
            gold[k : k + 15], {"a": a[k : k + 15], "b": b[k : k + 15]}, SCALE, None,
            factorize_column(groups[k : k + 15]),
        )
        for k in range(0, 60, 15)
    ]  # fmt: skip
    whole = Panel.of(gold, {"a": a, "b": b}, SCALE, None, factorize_column(groups))
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        total = parts[order[0]]
        for k in order[1:]:
            total += parts[k]
        assert rows_of(total) == rows_of(whole)
        assert set(total.group_values) == set(whole.group_values)


def test_what_was_dropped_adds_up():
    first = Panel.of(["low", None], {"a": ["low", "low"]}, SCALE, missing="drop")
    second = Panel.of(["low", "mid"], {"a": ["low", None]}, SCALE, missing="drop")
    assert (first + second).dropped == 2
    assert (first + second).n == 2


def test_panels_of_other_scales_systems_or_groups_cannot_be_added():
    panel = Panel.of(["low"], {"a": ["low"]}, SCALE)
    for other in (
        Panel.of(["low"], {"a": ["low"]}, "low,high"),
        Panel.of(["low"], {"b": ["low"]}, SCALE),
        Panel.of(["low"], {"a": ["low"]}, Scale(LABELS, positions=[0, 1, 5])),
    ):
        with pytest.raises(OrdinateError, match=r"differ in (scale|systems) cannot be added"):
            _ = panel + other
    grouped = Panel.of(["low"], {"a": ["low"]}, SCALE, None, factorize_column(["x"]))
    with pytest.raises(OrdinateError, match="A summary with groups and one without"):
        _ = panel + grouped


def test_a_panel_comes_back_from_its_plain_values():
    scale = Scale(LABELS, positions=[0, 1, 5], names=["L", "M", "H"])
    panel = Panel.of(["low", "mid"], {"a": ["high", "mid"]}, scale)
    back = Panel.from_dict(panel.to_dict())
    assert back.scale == scale
    assert back.scale.names == ("L", "M", "H")
    assert back.rows.dtype == panel.rows.dtype


# --- missing labels ------------------------------------------------------------------------------


def test_a_missing_prediction_is_named_with_its_system_and_row():
    columns = {"good": ["low"] * 4, "bad": ["low", None, "mid", None]}
    with pytest.raises(
        MissingLabels, match=r"^2 of 4 predictions of bad are missing \(row 2, row 4\)"
    ):
        Panel.of(["low"] * 4, columns, SCALE)


def test_a_missing_gold_label_is_named_with_its_row_and_cannot_be_counted_as_wrong():
    for missing in ("error", "worst"):
        with pytest.raises(
            MissingLabels, match=r"^1 of 3 gold labels are missing \(row 3\).*drop"
        ) as error:
            Panel.of(["low", "mid", None], {"a": ["low"] * 3}, SCALE, missing=missing)
        assert "worst" not in str(error.value)


def test_of_many_missing_predictions_the_first_rows_are_named():
    answers = {"a": ["low"] * 3 + [None] * 20}
    with pytest.raises(MissingLabels, match=r"20 of 23 .*row 4, row 5, row 6, row 7, row 8, …\)"):
        Panel.of(["low"] * 23, answers, SCALE)


@given(items(missing=[None]))
def test_dropping_drops_the_item_for_all_systems(rows):
    gold, systems, weights, groups = rows
    columns = list(zip(gold, *systems.values(), weights, groups, strict=True))
    there = [row for row in columns if row[-2]]
    kept = [row for row in there if None not in row[:-2]]
    if not kept:
        with pytest.raises(NoItems, match="no items to compare"):
            Panel.of(gold, systems, SCALE, weights, factorize_column(groups), "drop")
        return
    panel = Panel.of(gold, systems, SCALE, weights, factorize_column(groups), "drop")
    inner = [list(column) for column in zip(*kept, strict=True)]
    expected = counted(inner[0], dict(zip(NAMES, inner[1:4], strict=True)), *inner[4:])
    assert rows_of(panel) == expected
    assert panel.dropped == len(there) - len(kept)


@given(items(missing=[None]))
def test_the_worst_answer_is_an_unanswered_item_and_nothing_is_dropped(rows):
    gold, systems, _, _ = rows
    panel = Panel.of(gold, systems, SCALE, missing="worst")
    for name, answers in systems.items():
        silent = [g for g, p in zip(gold, answers, strict=True) if p is None]
        assert panel.confusion_matrix(name).unanswered.tolist() == [silent.count(x) for x in LABELS]
    assert panel.dropped == 0


@pytest.mark.parametrize("empty", [None, float("nan"), ""])
def test_what_counts_as_missing_is_missing_here_too(empty):
    answers = {"a": ["low", empty], "b": ["low", "mid"]}
    try:
        expected = ConfusionMatrix.of(["low", "mid"], ["low", empty], SCALE, missing="worst")
    except OffScale:
        with pytest.raises(OffScale, match=r"row 2 of a\b"):
            Panel.of(["low", "mid"], answers, SCALE, missing="worst")
        return
    assert (
        Panel.of(["low", "mid"], answers, SCALE, missing="worst").confusion_matrix("a") == expected
    )


def test_there_must_be_something_left_to_compare():
    with pytest.raises(NoItems, match="all have a missing label"):
        Panel.of(["low", None], {"a": [None, "low"]}, SCALE, missing="drop")
    with pytest.raises(NoItems, match="all weights are 0"):
        Panel.of(["low"], {"a": ["low"]}, SCALE, [0])
    with pytest.raises(NoItems, match="the columns are empty"):
        Panel.of([], {"a": []}, SCALE)


def test_a_policy_that_does_not_exist_is_refused():
    with pytest.raises(BadOption, match="missing='ignore' is not one of error, drop, worst"):
        Panel.of(["low"], {"a": ["low"]}, SCALE, missing="ignore")


# --- weights -------------------------------------------------------------------------------------


@given(items(missing=[None]))
def test_items_of_weight_0_do_not_exist(rows):
    gold, systems, weights, groups = rows
    kept = [k for k, w in enumerate(weights) if w]
    inside = {name: [answers[k] for k in kept] for name, answers in systems.items()}
    panel = Panel.of(gold, systems, SCALE, weights, factorize_column(groups), "worst")
    alone = Panel.of(
        [gold[k] for k in kept],
        inside,
        SCALE,
        [weights[k] for k in kept],
        factorize_column([groups[k] for k in kept]),
        "worst",
    )
    assert rows_of(panel) == rows_of(alone)
    assert panel.n == alone.n
    assert panel.has_integer_weights == alone.has_integer_weights


def test_a_group_whose_items_all_have_weight_0_does_not_exist():
    panel = Panel.of(
        ["low", "mid"], {"a": ["low", "mid"]}, SCALE, [1, 0], factorize_column(["here", "nowhere"])
    )
    assert panel.group_values == ("here",)
    assert panel.count_by_group("a").shape == (1,)


def test_a_group_whose_items_are_all_dropped_does_not_exist():
    panel = Panel.of(
        ["low", "mid"],
        {"a": ["low", None]},
        SCALE,
        None,
        factorize_column(["here", "nowhere"]),
        "drop",
    )
    assert panel.group_values == ("here",)
    assert panel.count_by_group("a").shape == (1,)


@pytest.mark.parametrize("column", ["gold", "a"])
@pytest.mark.parametrize("label", [None, "junk"])
def test_an_item_of_weight_0_may_hold_anything(column, label):
    gold, answers = ["low", "mid"], ["low", "mid"]
    {"gold": gold, "a": answers}[column][1] = label
    panel = Panel.of(gold, {"a": answers}, SCALE, weights=[1, 0])
    assert panel == Panel.of(["low"], {"a": ["low"]}, SCALE, weights=[1])


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.5, 1.5], [0.25, 0.75], [1.5, 0.5]])
def test_weights_that_are_no_counts_are_none_even_where_they_add_up_to_one(weights):
    panel = Panel.of(["low"] * 2, {"a": ["low"] * 2}, SCALE, weights)
    assert not panel.has_integer_weights
    assert not panel.confusion_matrix("a").has_integer_weights
    assert Panel.of(["low"] * 2, {"a": ["low"] * 2}, SCALE, [2, 3]).has_integer_weights


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_a_bad_weight_is_named_with_its_row(weight):
    with pytest.raises(BadWeights, match=r"row 2"):
        Panel.of(["low", "mid"], {"a": ["low", "mid"]}, SCALE, [1, weight])


def test_weights_that_are_no_numbers_are_refused():
    with pytest.raises(BadWeights, match="must be numbers"):
        Panel.of(["low"], {"a": ["low"]}, SCALE, ["heavy"])


# --- columns that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, [1, 1]])
def test_columns_of_different_lengths_are_refused_with_the_name_of_the_system(weights):
    with pytest.raises(UnequalLengths, match="2 gold labels and 3 predictions of b"):
        Panel.of(["low", "mid"], {"a": ["low", "mid"], "b": ["low"] * 3}, SCALE, weights)


def test_groups_and_weights_of_another_length_are_refused():
    with pytest.raises(UnequalLengths, match="2 labels and 1 groups"):
        Panel.of(["low", "mid"], {"a": ["low"] * 2}, SCALE, None, factorize_column(["x"]))
    with pytest.raises(UnequalLengths, match="2 labels and 3 weights"):
        Panel.of(["low", "mid"], {"a": ["low"] * 2}, SCALE, [1, 1, 1])


def test_two_systems_of_the_same_name_are_refused():
    with pytest.raises(BadOption, match="Two systems have the same name"):
        Panel.of(["low"], {1: ["low"], "1": ["mid"]}, SCALE)


def test_a_label_off_the_scale_is_named_with_its_system_and_row():
    with pytest.raises(OffScale, match=r"'B1' \(row 2 of b\)"):
        Panel.of(["low", "mid"], {"a": ["low"] * 2, "b": ["low", "B1"]}, SCALE)
    with pytest.raises(OffScale, match=r"'B1' \(row 1 of gold\)"):
        Panel.of(["B1", "mid"], {"a": ["low"] * 2}, SCALE)


@pytest.mark.parametrize("column", ["low", {"low": 1}, 5, np.array([["low"]])])
def test_what_is_no_column_is_refused_by_name(column):
    with pytest.raises(BadInput, match=r"^a must be"):
        Panel.of(["low"], {"a": column}, SCALE)
