"""A confusion matrix is a count of items: it merges, it is frozen, and nothing gets lost."""

import json
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import counts, scale_of, scales

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
from ordinate.scale.encoding import CHUNK, encode_labels, factorize_column
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import ROWS_PER_BATCH, count_pairs

LABELS = ["low", "mid", "high"]
SCALE = Scale(LABELS)


@st.composite
def items(draw, missing=(), min_size=1):
    """Gold labels, predictions, and weights whose sums are exact in binary."""
    label = st.sampled_from([*LABELS, *missing])
    weight = st.integers(0, 64).map(lambda eighths: eighths / 8)
    rows = draw(st.lists(st.tuples(label, label, weight), min_size=min_size, max_size=30))
    gold, predicted, weights = (list(column) for column in zip(*rows, strict=True))
    if not any(weights):
        weights[0] = 1.0
    return gold, predicted, weights


def cells_of(table):
    """Return {(gold, predicted): (items, weight, squared weight)} of the cells with items."""
    names = [*LABELS, None]
    return {
        (LABELS[i], names[j]): (
            int(table.items[i, j]),
            float(table.weights[i, j]),
            float(table.squares[i, j]),
        )
        for i, j in zip(*np.nonzero(table.items), strict=True)
    }


def naive(gold, predicted, weights=None):
    found = {}
    for g, p, w in zip(gold, predicted, weights or [1] * len(gold), strict=True):
        n, total, squares = found.get((g, p), (0, 0.0, 0.0))
        if w:
            found[g, p] = (n + 1, total + w, squares + w * w)
    return found


# --- counting ------------------------------------------------------------------------------------


@given(items())
def test_a_table_is_how_often_each_pair_occurs(rows):
    gold, predicted, _ = rows
    table = ConfusionMatrix.of(SCALE, gold, predicted)
    assert cells_of(table) == naive(gold, predicted)
    pairs = Counter(zip(gold, predicted, strict=True))
    assert table.counts.tolist() == [[pairs[g, p] for p in LABELS] for g in LABELS]
    assert table.n == table.total == len(gold)
    assert table.dropped == 0


@given(items())
def test_rows_are_gold_and_columns_are_predicted(rows):
    gold, predicted, _ = rows
    table = ConfusionMatrix.of(SCALE, gold, predicted)
    assert table.gold.tolist() == [gold.count(label) for label in LABELS]
    assert table.predicted.tolist() == [predicted.count(label) for label in LABELS]
    swapped = ConfusionMatrix.of(SCALE, predicted, gold)
    assert swapped.counts.tolist() == table.counts.T.tolist()


@given(items())
def test_weights_and_their_squares_are_summed(rows):
    gold, predicted, weights = rows
    table = ConfusionMatrix.of(SCALE, gold, predicted, weights)
    assert cells_of(table) == naive(gold, predicted, weights)
    assert table.total == sum(weights)
    assert table.n == sum(weight > 0 for weight in weights)


@given(rows=items(), data=st.data())
def test_whole_weights_are_repetitions(rows, data):
    gold, predicted, _ = rows
    times = data.draw(st.lists(st.integers(1, 5), min_size=len(gold), max_size=len(gold)))
    weighted = ConfusionMatrix.of(SCALE, gold, predicted, times)
    repeated = ConfusionMatrix.of(SCALE, np.repeat(gold, times), np.repeat(predicted, times))
    assert weighted.weights.tolist() == repeated.weights.tolist()
    assert weighted.n == len(gold)
    assert repeated.n == sum(times)


@given(items())
def test_weights_of_one_are_no_weights(rows):
    gold, predicted, _ = rows
    assert ConfusionMatrix.of(SCALE, gold, predicted, [1] * len(gold)) == ConfusionMatrix.of(
        SCALE, gold, predicted
    )


@given(items(missing=[None]))
def test_items_of_weight_zero_do_not_exist(rows):
    gold, predicted, weights = rows
    weights = [0.0 if g is None else w for g, w in zip(gold, weights, strict=True)]
    kept = [row for row in zip(gold, predicted, weights, strict=True) if row[2]]
    if not kept:
        with pytest.raises(NoItems, match="no items"):
            ConfusionMatrix.of(SCALE, gold, predicted, weights, missing="worst")
        return
    alone = ConfusionMatrix.of(SCALE, *map(list, zip(*kept, strict=True)), missing="worst")
    assert ConfusionMatrix.of(SCALE, gold, predicted, weights, missing="worst") == alone


def test_a_missing_label_of_weight_zero_is_no_reason_to_stop():
    table = ConfusionMatrix.of(SCALE, ["low", None, "mid"], ["low", "mid", None], [1, 0, 0])
    assert table == ConfusionMatrix.of(SCALE, ["low"], ["low"])


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
    kept = [1, 5, 2], [1, 2, 5], [1, 0.5, 2]
    scale = Scale(NUMBERED.labels)
    assert ConfusionMatrix.of(scale, column, good, weights) == ConfusionMatrix.of(NUMBERED, *kept)
    swapped = kept[1], kept[0], kept[2]
    assert ConfusionMatrix.of(scale, good, column, weights) == ConfusionMatrix.of(
        NUMBERED, *swapped
    )
    with pytest.raises(OffScale, match=r"\(row 4 of gold\)"):
        ConfusionMatrix.of(scale, column, good, [1, 0, 1, 1, 1])


def test_an_error_does_not_count_or_name_items_of_weight_zero():
    with pytest.raises(MissingLabels, match=r"^1 of 3 gold labels are missing \(row 4\)\."):
        ConfusionMatrix.of(SCALE, ["low", None, "mid", None], ["low"] * 4, [1, 0, 1, 1])


@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda x: np.array(x, np.float32),
     lambda x: pa.chunked_array([x[:1], x[1:]])],
)  # fmt: skip
def test_weights_may_be_any_column_of_numbers(make):
    table = ConfusionMatrix.of(
        SCALE, ["low", "mid", "low"], ["low", "low", "low"], make([0.5, 2.0, 1.0])
    )
    assert table.counts.tolist() == [[1.5, 0, 0], [2, 0, 0], [0, 0, 0]]
    assert table.squares[:, 0].tolist() == [1.25, 4, 0]


@pytest.mark.parametrize("scale", [SCALE, "low,mid,high", LABELS, tuple(LABELS)])
def test_a_table_takes_a_scale_as_it_is_declared(scale):
    assert ConfusionMatrix.of(scale, ["low"], ["mid"]).scale == SCALE
    assert ConfusionMatrix.from_counts(scale, np.eye(3)).scale == SCALE


@given(scale=scales(), data=st.data())
def test_shares_are_counts_over_the_total(scale, data):
    size = len(scale)
    cells = data.draw(counts(size))
    unanswered = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    table = ConfusionMatrix.from_counts(scale, cells, unanswered)
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
    first = ConfusionMatrix.of(SCALE, gold[:cut], predicted[:cut])
    second = ConfusionMatrix.of(SCALE, gold[cut:], predicted[cut:])
    assert first + second == ConfusionMatrix.of(SCALE, gold, predicted)


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
        parts += [ConfusionMatrix.of(SCALE, *map(list, zip(*kept, strict=True)))] if kept else []
    if not parts:
        return
    whole = ConfusionMatrix.of(SCALE, gold, predicted, weights, missing="drop")
    pooled = sum(parts[1:], parts[0])
    assert whole.dropped == sum(None in pair for pair in zip(gold, predicted, strict=True))
    assert pooled.weights.tolist() == whole.weights.tolist()
    assert pooled.items.tolist() == whole.items.tolist()
    assert pooled.squares.tolist() == whole.squares.tolist()


def test_what_was_dropped_adds_up():
    part = ConfusionMatrix.of(SCALE, ["low", None], ["low", "low"], missing="drop")
    assert (part + part).dropped == 2


def test_a_number_of_items_that_nobody_knows_stays_unknown():
    known = ConfusionMatrix.from_counts(SCALE, np.eye(3))
    unknown = ConfusionMatrix.from_counts(SCALE, np.eye(3) / 2)
    merged = known + unknown
    assert merged.total == 4.5
    assert merged.n == 4.5
    assert np.isnan(merged.items).all()


@pytest.mark.parametrize(
    "other", [Scale(LABELS[::-1]), Scale(LABELS, positions=[0, 1, 5]), Scale(["low", "mid", "top"])]
)
def test_tables_on_different_scales_do_not_merge(other):
    first, second = (ConfusionMatrix.from_counts(scale, np.eye(3)) for scale in (SCALE, other))
    with pytest.raises(OrdinateError, match=r"differ in scale cannot be added: Scale.* and Scale"):
        first + second


# --- values: equality, dictionaries, immutability ------------------------------------------------


def test_tables_are_equal_by_scale_items_weights_squares_and_dropped():
    table = ConfusionMatrix.of(SCALE, ["low", "mid"], ["low", "low"])
    assert table == ConfusionMatrix.from_counts(SCALE, [[1, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert table != ConfusionMatrix.of(SCALE, ["low", "mid"], ["low", "mid"])
    assert table != ConfusionMatrix.from_counts(Scale(LABELS, positions=[0, 1, 5]), table.counts)
    assert table != ConfusionMatrix.of(
        SCALE, ["low", "mid", None], ["low", "low", "low"], missing="drop"
    )
    one_of_two = ConfusionMatrix.of(SCALE, ["low"], ["low"], [2])
    two_of_one = ConfusionMatrix.of(SCALE, ["low"] * 2, ["low"] * 2)
    assert one_of_two.weights.tolist() == two_of_one.weights.tolist()
    assert one_of_two != two_of_one
    assert table != "table"
    half = ConfusionMatrix.from_counts(SCALE, np.eye(3) / 2)
    assert half == ConfusionMatrix.from_counts(SCALE, np.eye(3) / 2)


def through_json(table):
    return ConfusionMatrix.from_dict(json.loads(json.dumps(table.to_dict())))


@given(scale=scales(), data=st.data())
def test_counts_survive_json_exactly(scale, data):
    cells = data.draw(counts(len(scale)))
    whole = ConfusionMatrix.from_counts(scale, cells, np.arange(len(scale)))
    fractional = ConfusionMatrix.from_counts(scale, cells / 3)
    batch = ConfusionMatrix.from_counts(scale, [cells, cells * 2])
    for table in (whole, fractional, batch):
        again = through_json(table)
        assert again == table
        assert again.shape == table.shape
        assert again.n == table.n


def test_json_has_no_nan():
    text = json.dumps(ConfusionMatrix.from_counts(SCALE, np.eye(3) / 7).to_dict(), allow_nan=False)
    assert "NaN" not in text


@pytest.mark.parametrize("labels", [[1, 2, 3], ["1", "2", "3"], [0.5, 1.5, 2.5], ["é", "ß", "最"]])
def test_labels_keep_their_types_through_json(labels):
    table = ConfusionMatrix.from_counts(Scale(labels, positions=[0, 0.1, 7]), np.eye(3))
    again = through_json(table)
    assert again.scale == table.scale
    assert [type(label) for label in again.scale.labels] == [type(label) for label in labels]


ARRAYS = ["counts", "unanswered", "gold", "predicted", "share",
          "gold_share", "predicted_share", "unanswered_share", "by_chance"]  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "table",
    [
        ConfusionMatrix.of(SCALE, ["low", "mid"], ["low", "high"], [1, 2]),
        ConfusionMatrix.from_counts(SCALE, np.eye(3)),
        ConfusionMatrix.from_counts(SCALE, [np.eye(3), np.eye(3)])[0],
        ConfusionMatrix.from_counts(SCALE, [np.eye(3), np.eye(3)]).pooled,
        ConfusionMatrix.from_counts(SCALE, np.eye(3))
        + ConfusionMatrix.from_counts(SCALE, np.eye(3)),
        through_json(ConfusionMatrix.from_counts(SCALE, np.eye(3))),
    ],
    ids=["counted", "from counts", "indexed", "pooled", "merged", "from a dictionary"],
)
def test_the_arrays_of_a_table_cannot_be_written(table, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(table, name)[0] = 7


def test_a_table_does_not_follow_the_array_that_it_came_from():
    cells, unanswered = np.eye(3), np.ones(3)
    table = ConfusionMatrix.from_counts(SCALE, cells, unanswered)
    cells[0, 0], unanswered[0] = 100, 100
    assert table == ConfusionMatrix.from_counts(SCALE, np.eye(3), np.ones(3))
    assert cells.flags.writeable


# --- batches -------------------------------------------------------------------------------------


def test_unanswered_items_of_a_batch_are_one_vector_for_each_table():
    cells = np.ones((2, 3, 3))
    each = ConfusionMatrix.from_counts(SCALE, cells, [[1, 0, 0], [0, 0, 2]])
    assert each[0] == ConfusionMatrix.from_counts(SCALE, cells[0], [1, 0, 0])
    assert each[1] == ConfusionMatrix.from_counts(SCALE, cells[1], [0, 0, 2])
    same = ConfusionMatrix.from_counts(SCALE, cells, [1, 2, 3])
    assert same.unanswered.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_other_cells_on_the_same_scale_have_nothing_unanswered():
    table = ConfusionMatrix.from_counts(SCALE, np.eye(3), [1, 1, 1])
    other = table.with_cells(np.ones((2, 3, 3)))
    assert other == ConfusionMatrix.from_counts(SCALE, np.ones((2, 3, 3)))


# --- groups --------------------------------------------------------------------------------------


@given(rows=items(missing=[None]), data=st.data())
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_counting_by_group_equals_counting_each_group(weighted, missing, rows, data):
    gold, predicted, weights = rows
    if missing == "worst":
        gold = [label or "mid" for label in gold]
    weights = [weight + 1 for weight in weights] if weighted else None
    names = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(gold), max_size=len(gold)))
    complete = [i for i, pair in enumerate(zip(gold, predicted, strict=True)) if None not in pair]
    if missing == "drop" and not complete:
        return
    groups = factorize_column(names)
    batch = ConfusionMatrix.count_by_group(SCALE, gold, predicted, groups, weights, missing)
    assert groups.values == list(dict.fromkeys(names))
    assert batch.shape == (len(groups.values),)
    for name, table in zip(groups.values, map(batch.__getitem__, range(len(names))), strict=False):
        rows_here = [i for i, other in enumerate(names) if other == name]
        columns = [[column[i] for i in rows_here] for column in (gold, predicted)]
        here = weights and [weights[i] for i in rows_here]
        if missing == "drop" and not set(rows_here) & set(complete):
            assert not table.weights.any()
            continue
        alone = ConfusionMatrix.of(SCALE, *columns, here, missing)
        for part in ("items", "weights", "squares"):
            assert getattr(table, part).tolist() == getattr(alone, part).tolist()
    assert batch.pooled == ConfusionMatrix.of(SCALE, gold, predicted, weights, missing)


@pytest.mark.parametrize(
    "make",
    [list, np.array, pd.Series, pl.Series, pa.array, lambda x: pd.Series(x, dtype="category"),
     lambda x: pl.Series(x, dtype=pl.Categorical), lambda x: pa.array(x).dictionary_encode()],
)  # fmt: skip
def test_groups_come_in_the_order_of_appearance_from_any_column(make):
    groups = factorize_column(make(["b", "a", "b", "c"]))
    assert groups.values == ["b", "a", "c"]
    assert groups.codes.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("make", [np.array, pd.Series, lambda x: pa.array(x).dictionary_encode()])
def test_counting_by_group_takes_any_kind_of_labels(make):
    gold, predicted = make(["low", "mid", "low", "mid"]), make(["low", "low", "high", "high"])
    batch = ConfusionMatrix.count_by_group(SCALE, gold, predicted, factorize_column([1, 2, 1, 2]))
    assert batch[0] == ConfusionMatrix.of(SCALE, ["low", "low"], ["low", "high"])
    assert batch[1] == ConfusionMatrix.of(SCALE, ["mid", "mid"], ["low", "high"])


def test_items_without_a_group_are_a_group():
    groups = factorize_column(["x", None, float("nan"), "", "x"])
    assert groups.values == ["x", None]
    assert groups.codes.tolist() == [0, 1, 1, 1, 0]


def test_a_group_for_each_item_is_counted_beyond_a_chunk():
    size = 70_000
    gold = np.arange(size) % 3
    batch = ConfusionMatrix.count_by_group(
        Scale.of("0..2"), gold, gold[::-1], factorize_column(range(size))
    )
    assert batch.shape == (size,)
    assert batch.total.tolist() == [1] * size
    assert (batch.gold.argmax(axis=-1) == gold).all()
    assert (batch.predicted.argmax(axis=-1) == gold[::-1]).all()


def test_errors_within_groups_name_the_row_of_the_column():
    groups = factorize_column(["x", "y", "y"])
    with pytest.raises(OffScale, match=r"Label 'zzz' \(row 3 of gold\)"):
        ConfusionMatrix.count_by_group(SCALE, ["low", "low", "zzz"], ["low"] * 3, groups)
    categories = pd.Series(["low", "low", "zzz"], dtype="category")
    with pytest.raises(OffScale, match=r"Label 'zzz' \(row 3 of predicted\)"):
        ConfusionMatrix.count_by_group(SCALE, ["low"] * 3, categories, groups)
    with pytest.raises(MissingLabels, match=r"^1 of 3 predictions are missing \(row 2\)"):
        ConfusionMatrix.count_by_group(SCALE, ["low"] * 3, ["low", None, "low"], groups)
    with pytest.raises(UnequalLengths, match="2 labels and 3 groups"):
        ConfusionMatrix.count_by_group(SCALE, ["low"] * 2, ["low"] * 2, groups)


# --- missing labels ------------------------------------------------------------------------------


def test_missing_predictions_are_an_error_with_their_number_and_rows():
    with pytest.raises(
        MissingLabels,
        match=r"^2 of 5 predictions are missing \(row 2, row 4\)\. .*missing='drop'.*'worst'",
    ):
        ConfusionMatrix.of(SCALE, ["low"] * 5, ["low", None, "mid", "", "high"])


def test_missing_gold_labels_are_an_error_with_their_number_and_rows():
    with pytest.raises(
        MissingLabels, match=r"^2 of 3 gold labels are missing \(row 1, row 3\)\. .*missing='drop'"
    ):
        ConfusionMatrix.of(SCALE, [None, "low", float("nan")], ["low", None, "low"])


def test_at_most_five_rows_are_named():
    rows = r"\(row 2, row 3, row 4, row 5, row 6, …\)"
    with pytest.raises(MissingLabels, match=rf"^70000 of 70001 predictions are missing {rows}"):
        ConfusionMatrix.of(SCALE, ["low"] * 70_001, ["low", *[None] * 70_000])
    with pytest.raises(MissingLabels, match=r"row 4, row 5\)\. "):
        ConfusionMatrix.of(SCALE, ["low"] * 5, [None] * 5)


@pytest.mark.parametrize(
    "make",
    [list, pd.Series, pl.Series, pa.array, lambda x: pd.Series(x, dtype="category"),
     lambda x: pl.Series(x, dtype=pl.Categorical), lambda x: pa.array(x).dictionary_encode(),
     lambda x: pa.chunked_array([x[:2], x[2:]])],
)  # fmt: skip
def test_missing_rows_are_named_for_every_kind_of_column(make):
    predicted = make(["low", "mid", None, "high", None])
    with pytest.raises(MissingLabels, match=r"^2 of 5 predictions are missing \(row 3, row 5\)"):
        ConfusionMatrix.of(SCALE, ["low"] * 5, predicted)


@given(items(missing=[None]))
def test_dropping_leaves_out_every_item_with_a_missing_label(rows):
    gold, predicted, weights = rows
    weights = [weight + 1 for weight in weights]
    complete = [row for row in zip(gold, predicted, weights, strict=True) if None not in row[:2]]
    if not complete:
        with pytest.raises(NoItems, match=f"all {len(gold)} have a missing label"):
            ConfusionMatrix.of(SCALE, gold, predicted, weights, missing="drop")
        return
    table = ConfusionMatrix.of(SCALE, gold, predicted, weights, missing="drop")
    assert cells_of(table) == naive(*map(list, zip(*complete, strict=True)))
    assert table.dropped == len(gold) - len(complete)
    assert not table.has_unanswered


@given(items(missing=[None]))
def test_counting_as_worst_keeps_unanswered_items_by_gold_level(rows):
    gold, predicted, _ = rows
    gold = [label or "mid" for label in gold]
    table = ConfusionMatrix.of(SCALE, gold, predicted, missing="worst")
    assert cells_of(table) == naive(gold, predicted)
    nowhere = [g for g, p in zip(gold, predicted, strict=True) if p is None]
    assert table.unanswered.tolist() == [nowhere.count(label) for label in LABELS]
    assert table.gold.tolist() == [gold.count(label) for label in LABELS]
    assert table.total == len(gold)
    assert table.has_unanswered == bool(nowhere)
    assert table.dropped == 0


def test_gold_labels_cannot_be_counted_as_worst():
    with pytest.raises(MissingLabels, match=r"^1 of 2 gold labels are missing \(row 2\)"):
        ConfusionMatrix.of(SCALE, ["low", None], ["low", "low"], missing="worst")


def test_nobody_needs_to_answer_to_be_counted_as_worst():
    table = ConfusionMatrix.of(SCALE, ["low", "high"], [None, None], missing="worst")
    assert table.unanswered.tolist() == [1, 0, 1]
    assert not table.counts.any()


@pytest.mark.parametrize("missing", ["skip", "", None, "Drop"])
def test_an_unknown_policy_is_refused(missing):
    with pytest.raises(BadOption, match=r"missing=.* is not one of error, drop, worst"):
        ConfusionMatrix.of(SCALE, ["low"], ["low"], missing=missing)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "predicted"), [(3, 2), (2, 3), (1, 0), (0, 1), (CHUNK, CHUNK + 1)]
)
def test_columns_of_unequal_lengths_are_refused(gold, predicted):
    with pytest.raises(UnequalLengths, match=f"^{gold} gold labels and {predicted} predictions"):
        ConfusionMatrix.of(SCALE, ["low"] * gold, np.array(["low"] * predicted))


@pytest.mark.parametrize("weights", [[], [1], [1, 1, 1], [[1, 1]], [[1], [1]], 1])
def test_another_number_of_weights_than_items_is_refused(weights):
    with pytest.raises(UnequalLengths, match=r"^2 labels and .* weights"):
        ConfusionMatrix.of(SCALE, ["low", "mid"], ["low", "mid"], weights)


@pytest.mark.parametrize("bad", [-1, -1e-300, np.inf, -np.inf, np.nan, None])
@pytest.mark.parametrize("row", [1, CHUNK + 2])
def test_a_weight_that_is_no_amount_is_named_with_its_row(bad, row):
    weights = [1.0] * (CHUNK + 2)
    weights[row - 1] = bad
    with pytest.raises(BadWeights, match=rf"^Weight \S+ \(row {row}\) is not a finite number"):
        ConfusionMatrix.of(SCALE, np.array(["low"] * len(weights)), ["low"] * len(weights), weights)


@pytest.mark.parametrize("weights", [["x", "y"], [1, "heavy"], [[1], 2], [1, object()], [1, 1j]])
def test_weights_that_are_no_numbers_are_refused(weights):
    with pytest.raises(BadWeights, match="Weights must be numbers of at least 0"):
        ConfusionMatrix.of(SCALE, ["low", "mid"], ["low", "mid"], weights)


def test_labels_off_the_scale_are_refused():
    with pytest.raises(OffScale, match=r"Label 'top' \(row 2 of gold\) is not on the scale low <"):
        ConfusionMatrix.of(SCALE, ["low", "top"], ["low", "zzz"])


def test_columns_without_items_are_refused():
    with pytest.raises(NoItems, match="There are no items to evaluate: the columns are empty"):
        ConfusionMatrix.of(SCALE, [], [])
    with pytest.raises(NoItems, match="There are no items to evaluate"):
        ConfusionMatrix.of(SCALE, ["low"], ["low"], [0])


@pytest.mark.parametrize(
    "column",
    [
        np.array([], np.int8),
        np.array([], object),
        pd.Categorical([]),
        pd.Categorical([], categories=["low", "other"]),
        pl.Series([], dtype=pl.Categorical),
        pl.Series([], dtype=pl.Enum(["low"])),
        pa.array([], pa.string()),
        pa.array([]).dictionary_encode(),
        pa.chunked_array([], type=pa.string()),
    ],
    ids=lambda column: f"{type(column).__module__} {type(column).__name__}",
)
def test_empty_columns_of_every_kind_are_refused(column):
    with pytest.raises(NoItems, match="There are no items to evaluate: the columns are empty"):
        ConfusionMatrix.of(SCALE, column, column)
    with pytest.raises(NoItems, match="There are no items to evaluate: the columns are empty"):
        ConfusionMatrix.of(SCALE, column, [], weights=[])


@pytest.mark.parametrize(
    "shape", [(), (3,), (2, 2), (3, 2), (2, 3), (4, 4), (2, 3, 2), (3, 4), (0,)], ids=str
)
def test_counts_of_another_shape_than_the_scale_are_refused(shape):
    with pytest.raises(BadInput, match=r"Counts for low < mid < high must be 3 x 3, not \("):
        ConfusionMatrix.from_counts(SCALE, np.ones(shape))


@pytest.mark.parametrize("unanswered", [[1, 2], [1, 2, 3, 4], [[1, 2, 3], [1, 2, 3]]], ids=str)
def test_unanswered_counts_of_another_shape_than_the_scale_are_refused(unanswered):
    with pytest.raises(BadInput, match="low < mid < high"):
        ConfusionMatrix.from_counts(SCALE, np.eye(3), unanswered)


@pytest.mark.parametrize("bad", [-1, -0.5, np.nan, np.inf])
def test_counts_that_are_no_amounts_are_refused(bad):
    cells = np.eye(3)
    cells[1, 2] = bad
    with pytest.raises(BadWeights, match="counts must be finite numbers of at least 0"):
        ConfusionMatrix.from_counts(SCALE, cells)
    with pytest.raises(BadWeights, match="counts must be finite numbers of at least 0"):
        ConfusionMatrix.from_counts(SCALE, np.eye(3), cells[1])


@pytest.mark.parametrize("cells", [[["a"] * 3] * 3, [[1, 2, 3], [1]], "counts", None])
def test_counts_that_are_no_numbers_are_refused(cells):
    with pytest.raises((BadWeights, BadInput), match=r"[Cc]ounts .*must be"):
        ConfusionMatrix.from_counts(SCALE, cells)


def test_counts_of_nothing_are_refused():
    with pytest.raises(NoItems, match="All counts are 0"):
        ConfusionMatrix.from_counts(SCALE, np.zeros((3, 3)))
    assert ConfusionMatrix.from_counts(SCALE, np.zeros((3, 3)), [0, 1, 0]).total == 1


# --- the fold: counting many items with one histogram --------------------------------------------

MOST = 3 * ROWS_PER_BATCH + 5
SIZES = [0, 1, 2, 3, CHUNK - 1, CHUNK + 1, ROWS_PER_BATCH - 1, ROWS_PER_BATCH + 1, MOST]


def added_up(gold, predicted, size):
    cells = np.zeros((size, size), np.int64)
    np.add.at(cells, (gold, predicted), 1)
    return cells


@pytest.mark.parametrize("levels", [*range(2, 21), 300])
def test_counting_equals_adding_item_by_item(levels):
    scale = scale_of(levels)
    numbers = Scale(range(levels))
    rng = np.random.default_rng(levels)
    kind = np.int8 if levels < 128 else np.int16
    gold, predicted = rng.integers(0, levels, (2, MOST), dtype=kind)
    for n in SIZES:
        expected = added_up(gold[:n], predicted[:n], levels)
        found = count_pairs(encode_labels(numbers, gold[:n]), encode_labels(numbers, predicted[:n]))
        np.testing.assert_array_equal(found, expected, err_msg=f"{n} integers")
        first, second = (
            encode_labels(scale, pd.Categorical.from_codes(column[:n], list(scale.labels)))
            for column in (gold, predicted)
        )
        np.testing.assert_array_equal(
            count_pairs(first, second), expected, err_msg=f"{n} categories"
        )


@given(
    levels=st.integers(2, 9),
    n=st.integers(1, 3000),
    seed=st.integers(0, 2**32),
    skewed=st.booleans(),
)
@settings(max_examples=60)
def test_counting_equals_adding_at_any_size(levels, n, seed, skewed):
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, levels, (2, n))
    if skewed:
        gold[n // 3 :] = levels - 1
        predicted[n // 2 :] = 0
    scale = Scale(range(levels))
    found = count_pairs(encode_labels(scale, gold), encode_labels(scale, predicted))
    assert found.tolist() == added_up(gold, predicted, levels).tolist()


@pytest.mark.parametrize("n", [1, 100, 5000, CHUNK + 1])
@pytest.mark.parametrize("width", [2, 255, 256, 257, 300])
def test_one_code_against_many_is_counted(n, width):
    rng = np.random.default_rng(width)
    predicted = rng.integers(0, width, n)
    gold = pd.Categorical(["1"] * n, categories=["1"])
    table = ConfusionMatrix.of(Scale(range(width)), gold, predicted)
    assert table.counts[1].tolist() == np.bincount(predicted, minlength=width).tolist()
    assert table.total == n
    swapped = ConfusionMatrix.of(Scale(range(width)), predicted, gold)
    assert swapped.counts[:, 1].tolist() == table.counts[1].tolist()


@pytest.mark.parametrize("n", [1, 16, 17, 5000])
def test_one_code_against_one_is_counted(n):
    column = pd.Categorical(["mid"] * n)
    assert ConfusionMatrix.of(SCALE, column, column).counts.tolist() == [
        [0, 0, 0],
        [0, n, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("n", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_weighted_counting_equals_adding_item_by_item(n):
    rng = np.random.default_rng(n)
    gold, predicted = rng.integers(0, 5, (2, n))
    weights = rng.integers(0, 9, n) / 8
    table = ConfusionMatrix.of(Scale(range(5)), gold, predicted, weights)
    for power, part in ((1, table.weights), (2, table.squares)):
        expected = np.zeros((5, 5))
        np.add.at(expected, (gold, predicted), weights**power)
        assert part[:, :-1].tolist() == expected.tolist()
    there = weights > 0
    assert table.items[:, :-1].tolist() == added_up(gold[there], predicted[there], 5).tolist()


# --- memory --------------------------------------------------------------------------------------

MANY = 20_000_000


def extra_memory(gold, predicted, scale):
    """Return the most bytes that counting holds at once, beside the columns."""
    ConfusionMatrix.of(scale, gold[:10], predicted[:10])
    tracemalloc.start()
    try:
        table = ConfusionMatrix.of(scale, gold, predicted)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.total == MANY
    return peak


@pytest.fixture(scope="module")
def many_codes():
    codes = np.random.default_rng(1).integers(0, 6, MANY, dtype=np.int8)
    return codes, np.roll(codes, 1)


def test_counting_twenty_million_integers_takes_little_memory(many_codes):
    gold, predicted = many_codes
    assert extra_memory(gold, predicted, Scale.of("0..5")) < 16e6


def test_counting_twenty_million_categories_takes_little_memory(many_codes):
    scale = Scale.of("cefr")
    gold, predicted = (
        pd.Series(pd.Categorical.from_codes(codes, list(scale.labels))) for codes in many_codes
    )
    assert extra_memory(gold, predicted, scale) < 16e6
