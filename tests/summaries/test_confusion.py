"""A confusion matrix is a count of items: it merges, it is frozen, and nothing gets lost."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_items import LABELS, SCALE, cells_of, items, naive
from strategies import counts, scales

from ordinate.errors import (
    MissingLabels,
    NoItems,
    OffScale,
    OrdinateError,
)
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

# --- counting ------------------------------------------------------------------------------------


@given(items())
def test_a_table_is_how_often_each_pair_occurs(rows):
    gold, predicted, _ = rows
    table = ConfusionMatrix.of(gold, predicted, SCALE)
    assert cells_of(table) == naive(gold, predicted)
    pairs = Counter(zip(gold, predicted, strict=True))
    assert table.counts.tolist() == [[pairs[g, p] for p in LABELS] for g in LABELS]
    assert table.n == table.total == len(gold)
    assert table.dropped == 0


@given(items())
def test_rows_are_gold_and_columns_are_predicted(rows):
    gold, predicted, _ = rows
    table = ConfusionMatrix.of(gold, predicted, SCALE)
    assert table.gold.tolist() == [gold.count(label) for label in LABELS]
    assert table.predicted.tolist() == [predicted.count(label) for label in LABELS]
    swapped = ConfusionMatrix.of(predicted, gold, SCALE)
    assert swapped.counts.tolist() == table.counts.T.tolist()


@given(items())
def test_weights_and_their_squares_are_summed(rows):
    gold, predicted, weights = rows
    table = ConfusionMatrix.of(gold, predicted, SCALE, weights)
    assert cells_of(table) == naive(gold, predicted, weights)
    assert table.total == sum(weights)
    assert table.n == sum(weight > 0 for weight in weights)


@given(rows=items(), data=st.data())
def test_whole_weights_are_repetitions(rows, data):
    gold, predicted, _ = rows
    times = data.draw(st.lists(st.integers(1, 5), min_size=len(gold), max_size=len(gold)))
    weighted = ConfusionMatrix.of(gold, predicted, SCALE, times)
    repeated = ConfusionMatrix.of(np.repeat(gold, times), np.repeat(predicted, times), SCALE)
    assert weighted.weights.tolist() == repeated.weights.tolist()
    assert weighted.n == len(gold)
    assert repeated.n == sum(times)


@given(items())
def test_weights_of_one_are_no_weights(rows):
    gold, predicted, _ = rows
    assert ConfusionMatrix.of(gold, predicted, SCALE, [1] * len(gold)) == ConfusionMatrix.of(
        gold, predicted, SCALE
    )


@given(items(missing=[None]))
def test_items_of_weight_zero_do_not_exist(rows):
    gold, predicted, weights = rows
    weights = [0.0 if g is None else w for g, w in zip(gold, weights, strict=True)]
    kept = [row for row in zip(gold, predicted, weights, strict=True) if row[2]]
    if not kept:
        with pytest.raises(NoItems, match="no items"):
            ConfusionMatrix.of(gold, predicted, SCALE, weights, missing="worst")
        return
    gold_kept, predicted_kept, weights_kept = map(list, zip(*kept, strict=True))
    alone = ConfusionMatrix.of(gold_kept, predicted_kept, SCALE, weights_kept, missing="worst")
    assert ConfusionMatrix.of(gold, predicted, SCALE, weights, missing="worst") == alone


def test_a_missing_label_of_weight_zero_is_no_reason_to_stop():
    table = ConfusionMatrix.of(["low", None, "mid"], ["low", "mid", None], SCALE, [1, 0, 0])
    assert table == ConfusionMatrix.of(["low"], ["low"], SCALE)


NUMBERED = Scale([1, 2, 5])
OFF_THE_SCALE = {
    "list": (list, [9, 3]),
    "objects": (lambda x: np.array(x, object), [9, "x"]),
    "numpy texts": (lambda x: np.array([str(y) for y in x]), [9, 3]),
    "numpy integers": (np.array, [3, 4]),
    "numpy integers out of range": (np.array, [9, -1]),
    "numpy floats": (lambda x: np.array(x, float), [9, 1.5]),
    "pandas category": (lambda x: pd.Series(x, dtype="category"), [9, 3]),
    "polars integers": (pl.Series, [9, 3]),
    "polars texts": (lambda x: pl.Series([str(y) for y in x]), [9, 3]),
    "arrow integers": (pa.array, [9, -1]),
    "arrow chunks": (lambda x: pa.chunked_array([x[:2], x[2:]]), [9, 3]),
    "arrow dictionary": (lambda x: pa.array(x).dictionary_encode(), [9, 3]),
}


@pytest.mark.parametrize(("make", "bad"), OFF_THE_SCALE.values(), ids=OFF_THE_SCALE)
def test_a_label_off_the_scale_of_weight_zero_does_not_exist(make, bad):
    column, good = make([1, bad[0], 5, bad[1], 2]), [1, 1, 2, 5, 5]
    weights = [1, 0, 0.5, 0, 2]
    first, second, kept = [1, 5, 2], [1, 2, 5], [1, 0.5, 2]
    scale = Scale(NUMBERED.labels)
    alone = ConfusionMatrix.of(first, second, NUMBERED, kept)
    assert ConfusionMatrix.of(column, good, scale, weights) == alone
    swapped = ConfusionMatrix.of(second, first, NUMBERED, kept)
    assert ConfusionMatrix.of(good, column, scale, weights) == swapped
    with pytest.raises(OffScale, match=r"\(row 4 of gold\)"):
        ConfusionMatrix.of(column, good, scale, [1, 0, 1, 1, 1])


def test_an_error_does_not_count_or_name_items_of_weight_zero():
    with pytest.raises(MissingLabels, match=r"^1 of 3 gold labels are missing \(row 4\)\."):
        ConfusionMatrix.of(["low", None, "mid", None], ["low"] * 4, SCALE, [1, 0, 1, 1])


@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda x: np.array(x, np.float32),
     lambda x: pa.chunked_array([x[:1], x[1:]])],
)  # fmt: skip
def test_weights_may_be_any_column_of_numbers(make):
    table = ConfusionMatrix.of(
        ["low", "mid", "low"], ["low", "low", "low"], SCALE, make([0.5, 2.0, 1.0])
    )
    assert table.counts.tolist() == [[1.5, 0, 0], [2, 0, 0], [0, 0, 0]]
    assert table.squares[:, 0].tolist() == [1.25, 4, 0]


@pytest.mark.parametrize("scale", [SCALE, "low,mid,high", LABELS, tuple(LABELS)])
def test_a_table_takes_a_scale_as_it_is_declared(scale):
    assert ConfusionMatrix.of(["low"], ["mid"], scale).scale == SCALE
    assert ConfusionMatrix.from_counts(np.eye(3), scale).scale == SCALE


@given(scale=scales(), data=st.data())
def test_shares_are_counts_over_the_total(scale, data):
    size = len(scale)
    cells = data.draw(counts(size))
    unanswered = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    table = ConfusionMatrix.from_counts(cells, scale, unanswered)
    total = cells.sum() + sum(unanswered)
    assert table.total == total
    np.testing.assert_allclose(table.share, cells / total)
    np.testing.assert_allclose(table.gold_share, (cells.sum(axis=1) + unanswered) / total)
    np.testing.assert_allclose(table.predicted_share, cells.sum(axis=0) / total)
    np.testing.assert_allclose(table.unanswered_share, np.array(unanswered) / total)
    np.testing.assert_allclose(
        table.by_chance, np.outer(table.gold_share, table.predicted_share), atol=1e-15
    )


# --- merging -------------------------------------------------------------------------------------


@given(rows=items(min_size=2), data=st.data())
def test_pooling_two_parts_equals_counting_them_together(rows, data):
    gold, predicted, _ = rows
    cut = data.draw(st.integers(1, len(gold) - 1))
    first = ConfusionMatrix.of(gold[:cut], predicted[:cut], SCALE)
    second = ConfusionMatrix.of(gold[cut:], predicted[cut:], SCALE)
    assert first + second == ConfusionMatrix.of(gold, predicted, SCALE)


@given(rows=items(missing=[None], min_size=2), data=st.data())
def test_pooling_weighted_parts_with_missing_labels_equals_counting_them_together(rows, data):
    gold, predicted, weights = rows
    weights = [weight + 1 for weight in weights]
    chosen = data.draw(st.lists(st.booleans(), min_size=len(gold), max_size=len(gold)))
    parts = []
    for side in (True, False):
        kept = [
            row
            for row, here in zip(zip(gold, predicted, weights, strict=True), chosen, strict=True)
            if here is side and None not in row[:2]
        ]
        if kept:
            ours, theirs, times = map(list, zip(*kept, strict=True))
            parts.append(ConfusionMatrix.of(ours, theirs, SCALE, times))
    if not parts:
        return
    whole = ConfusionMatrix.of(gold, predicted, SCALE, weights, missing="drop")
    pooled = sum(parts[1:], parts[0])
    assert whole.dropped == sum(None in pair for pair in zip(gold, predicted, strict=True))
    assert pooled.weights.tolist() == whole.weights.tolist()
    assert pooled.items.tolist() == whole.items.tolist()
    assert pooled.squares.tolist() == whole.squares.tolist()


def test_what_was_dropped_adds_up():
    part = ConfusionMatrix.of(["low", None], ["low", "low"], SCALE, missing="drop")
    assert (part + part).dropped == 2


def test_a_number_of_items_that_nobody_knows_stays_unknown():
    known = ConfusionMatrix.from_counts(np.eye(3), SCALE)
    unknown = ConfusionMatrix.from_counts(np.eye(3) / 2, SCALE)
    merged = known + unknown
    assert merged.total == 4.5
    assert merged.n == 4.5
    assert np.isnan(merged.items).all()


@pytest.mark.parametrize(
    "other", [Scale(LABELS[::-1]), Scale(LABELS, positions=[0, 1, 5]), Scale(["low", "mid", "top"])]
)
def test_tables_on_different_scales_do_not_merge(other):
    first, second = (ConfusionMatrix.from_counts(np.eye(3), scale) for scale in (SCALE, other))
    with pytest.raises(OrdinateError, match=r"differ in scale cannot be added: Scale.* and Scale"):
        first + second


# --- values: equality, dictionaries, immutability ------------------------------------------------


def test_tables_are_equal_by_scale_items_weights_squares_and_dropped():
    table = ConfusionMatrix.of(["low", "mid"], ["low", "low"], SCALE)
    assert table == ConfusionMatrix.from_counts([[1, 0, 0], [1, 0, 0], [0, 0, 0]], SCALE)
    assert table != ConfusionMatrix.of(["low", "mid"], ["low", "mid"], SCALE)
    assert table != ConfusionMatrix.from_counts(table.counts, Scale(LABELS, positions=[0, 1, 5]))
    assert table != ConfusionMatrix.of(
        ["low", "mid", None], ["low", "low", "low"], SCALE, missing="drop"
    )
    one_of_two = ConfusionMatrix.of(["low"], ["low"], SCALE, [2])
    two_of_one = ConfusionMatrix.of(["low"] * 2, ["low"] * 2, SCALE)
    assert one_of_two.weights.tolist() == two_of_one.weights.tolist()
    assert one_of_two != two_of_one
    assert table != "table"
    half = ConfusionMatrix.from_counts(np.eye(3) / 2, SCALE)
    assert half == ConfusionMatrix.from_counts(np.eye(3) / 2, SCALE)


def through_json(table):
    return ConfusionMatrix.from_dict(json.loads(json.dumps(table.to_dict())))


@given(scale=scales(), data=st.data())
def test_counts_survive_json_exactly(scale, data):
    cells = data.draw(counts(len(scale)))
    whole = ConfusionMatrix.from_counts(cells, scale, np.arange(len(scale)))
    fractional = ConfusionMatrix.from_counts(cells / 3, scale)
    batch = ConfusionMatrix.from_counts([cells, cells * 2], scale)
    for table in (whole, fractional, batch):
        again = through_json(table)
        assert again == table
        assert again.shape == table.shape
        assert again.n == table.n


def test_json_has_no_nan():
    text = json.dumps(ConfusionMatrix.from_counts(np.eye(3) / 7, SCALE).to_dict(), allow_nan=False)
    assert "NaN" not in text


@pytest.mark.parametrize("labels", [[1, 2, 3], ["1", "2", "3"], [0.5, 1.5, 2.5], ["é", "ß", "最"]])
def test_labels_keep_their_types_through_json(labels):
    table = ConfusionMatrix.from_counts(np.eye(3), Scale(labels, positions=[0, 0.1, 7]))
    again = through_json(table)
    assert again.scale == table.scale
    assert [type(label) for label in again.scale.labels] == [type(label) for label in labels]


ARRAYS = ["counts", "unanswered", "gold", "predicted", "share",
          "gold_share", "predicted_share", "unanswered_share", "by_chance"]  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "table",
    [
        ConfusionMatrix.of(["low", "mid"], ["low", "high"], SCALE, [1, 2]),
        ConfusionMatrix.from_counts(np.eye(3), SCALE),
        ConfusionMatrix.from_counts([np.eye(3), np.eye(3)], SCALE)[0],
        ConfusionMatrix.from_counts([np.eye(3), np.eye(3)], SCALE).pooled,
        ConfusionMatrix.from_counts(np.eye(3), SCALE)
        + ConfusionMatrix.from_counts(np.eye(3), SCALE),
        through_json(ConfusionMatrix.from_counts(np.eye(3), SCALE)),
    ],
    ids=["counted", "from counts", "indexed", "pooled", "merged", "from a dictionary"],
)
def test_the_arrays_of_a_table_cannot_be_written(table, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(table, name)[0] = 7


def test_a_table_does_not_follow_the_array_that_it_came_from():
    cells, unanswered = np.eye(3), np.ones(3)
    table = ConfusionMatrix.from_counts(cells, SCALE, unanswered)
    cells[0, 0], unanswered[0] = 100, 100
    assert table == ConfusionMatrix.from_counts(np.eye(3), SCALE, np.ones(3))
    assert cells.flags.writeable


# --- batches -------------------------------------------------------------------------------------


def test_unanswered_items_of_a_batch_are_one_vector_for_each_table():
    cells = np.ones((2, 3, 3))
    each = ConfusionMatrix.from_counts(cells, SCALE, [[1, 0, 0], [0, 0, 2]])
    assert each[0] == ConfusionMatrix.from_counts(cells[0], SCALE, [1, 0, 0])
    assert each[1] == ConfusionMatrix.from_counts(cells[1], SCALE, [0, 0, 2])
    same = ConfusionMatrix.from_counts(cells, SCALE, [1, 2, 3])
    assert same.unanswered.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_other_cells_on_the_same_scale_have_nothing_unanswered():
    table = ConfusionMatrix.from_counts(np.eye(3), SCALE, [1, 1, 1])
    other = table.with_cells(np.ones((2, 3, 3)))
    assert other == ConfusionMatrix.from_counts(np.ones((2, 3, 3)), SCALE)
