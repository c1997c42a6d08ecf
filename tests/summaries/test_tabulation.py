"""Columns of labels become cells: within groups, with missing labels, or not at all."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_items import LABELS, SCALE, cells_of, items, naive

from ordinate.errors import (
    BadInput,
    BadOption,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
    UnequalLengths,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import CHUNK, factorize_column
from ordinate.summaries import ConfusionMatrix

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
    batch = ConfusionMatrix.count_by_group(gold, predicted, SCALE, groups, weights, missing)
    assert groups.values == list(dict.fromkeys(names))
    assert batch.shape == (len(groups.values),)
    for name, table in zip(groups.values, map(batch.__getitem__, range(len(names))), strict=False):
        rows_here = [i for i, other in enumerate(names) if other == name]
        columns = [[column[i] for i in rows_here] for column in (gold, predicted)]
        here = weights and [weights[i] for i in rows_here]
        if missing == "drop" and not set(rows_here) & set(complete):
            assert not table.weights.any()
            continue
        alone = ConfusionMatrix.of(*columns, SCALE, here, missing)
        for part in ("items", "weights", "squares"):
            assert getattr(table, part).tolist() == getattr(alone, part).tolist()
    assert batch.pooled == ConfusionMatrix.of(gold, predicted, SCALE, weights, missing)


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
    batch = ConfusionMatrix.count_by_group(gold, predicted, SCALE, factorize_column([1, 2, 1, 2]))
    assert batch[0] == ConfusionMatrix.of(["low", "low"], ["low", "high"], SCALE)
    assert batch[1] == ConfusionMatrix.of(["mid", "mid"], ["low", "high"], SCALE)


def test_items_without_a_group_are_a_group():
    groups = factorize_column(["x", None, float("nan"), "", "x"])
    assert groups.values == ["x", None]
    assert groups.codes.tolist() == [0, 1, 1, 1, 0]


def test_a_group_for_each_item_is_counted_beyond_a_chunk():
    size = 70_000
    gold = np.arange(size) % 3
    batch = ConfusionMatrix.count_by_group(
        gold, gold[::-1], Scale.of("0..2"), factorize_column(range(size))
    )
    assert batch.shape == (size,)
    assert batch.total.tolist() == [1] * size
    assert (batch.gold.argmax(axis=-1) == gold).all()
    assert (batch.predicted.argmax(axis=-1) == gold[::-1]).all()


def test_errors_within_groups_name_the_row_of_the_column():
    groups = factorize_column(["x", "y", "y"])
    with pytest.raises(OffScale, match=r"Label 'zzz' \(row 3 of gold\)"):
        ConfusionMatrix.count_by_group(["low", "low", "zzz"], ["low"] * 3, SCALE, groups)
    categories = pd.Series(["low", "low", "zzz"], dtype="category")
    with pytest.raises(OffScale, match=r"Label 'zzz' \(row 3 of predicted\)"):
        ConfusionMatrix.count_by_group(["low"] * 3, categories, SCALE, groups)
    with pytest.raises(MissingLabels, match=r"^1 of 3 predictions are missing \(row 2\)"):
        ConfusionMatrix.count_by_group(["low"] * 3, ["low", None, "low"], SCALE, groups)
    with pytest.raises(UnequalLengths, match="2 labels and 3 groups"):
        ConfusionMatrix.count_by_group(["low"] * 2, ["low"] * 2, SCALE, groups)


# --- missing labels ------------------------------------------------------------------------------


def test_missing_predictions_are_an_error_with_their_number_and_rows():
    with pytest.raises(
        MissingLabels,
        match=r"^2 of 5 predictions are missing \(row 2, row 4\)\. .*missing='drop'.*'worst'",
    ):
        ConfusionMatrix.of(["low"] * 5, ["low", None, "mid", "", "high"], SCALE)


def test_missing_gold_labels_are_an_error_with_their_number_and_rows():
    with pytest.raises(
        MissingLabels, match=r"^2 of 3 gold labels are missing \(row 1, row 3\)\. .*missing='drop'"
    ):
        ConfusionMatrix.of([None, "low", float("nan")], ["low", None, "low"], SCALE)


def test_at_most_five_rows_are_named():
    rows = r"\(row 2, row 3, row 4, row 5, row 6, …\)"
    with pytest.raises(MissingLabels, match=rf"^70000 of 70001 predictions are missing {rows}"):
        ConfusionMatrix.of(["low"] * 70_001, ["low", *[None] * 70_000], SCALE)
    with pytest.raises(MissingLabels, match=r"row 4, row 5\)\. "):
        ConfusionMatrix.of(["low"] * 5, [None] * 5, SCALE)


@pytest.mark.parametrize(
    "make",
    [list, pd.Series, pl.Series, pa.array, lambda x: pd.Series(x, dtype="category"),
     lambda x: pl.Series(x, dtype=pl.Categorical), lambda x: pa.array(x).dictionary_encode(),
     lambda x: pa.chunked_array([x[:2], x[2:]])],
)  # fmt: skip
def test_missing_rows_are_named_for_every_kind_of_column(make):
    predicted = make(["low", "mid", None, "high", None])
    with pytest.raises(MissingLabels, match=r"^2 of 5 predictions are missing \(row 3, row 5\)"):
        ConfusionMatrix.of(["low"] * 5, predicted, SCALE)


@given(items(missing=[None]))
def test_dropping_leaves_out_every_item_with_a_missing_label(rows):
    gold, predicted, weights = rows
    weights = [weight + 1 for weight in weights]
    complete = [row for row in zip(gold, predicted, weights, strict=True) if None not in row[:2]]
    if not complete:
        with pytest.raises(NoItems, match=f"all {len(gold)} have a missing label"):
            ConfusionMatrix.of(gold, predicted, SCALE, weights, missing="drop")
        return
    table = ConfusionMatrix.of(gold, predicted, SCALE, weights, missing="drop")
    assert cells_of(table) == naive(*map(list, zip(*complete, strict=True)))
    assert table.dropped == len(gold) - len(complete)
    assert not table.has_unanswered


@given(items(missing=[None]))
def test_counting_as_worst_keeps_unanswered_items_by_gold_level(rows):
    gold, predicted, _ = rows
    gold = [label or "mid" for label in gold]
    table = ConfusionMatrix.of(gold, predicted, SCALE, missing="worst")
    assert cells_of(table) == naive(gold, predicted)
    nowhere = [g for g, p in zip(gold, predicted, strict=True) if p is None]
    assert table.unanswered.tolist() == [nowhere.count(label) for label in LABELS]
    assert table.gold.tolist() == [gold.count(label) for label in LABELS]
    assert table.total == len(gold)
    assert table.has_unanswered == bool(nowhere)
    assert table.dropped == 0


def test_gold_labels_cannot_be_counted_as_worst():
    with pytest.raises(MissingLabels, match=r"^1 of 2 gold labels are missing \(row 2\)"):
        ConfusionMatrix.of(["low", None], ["low", "low"], SCALE, missing="worst")


def test_nobody_needs_to_answer_to_be_counted_as_worst():
    table = ConfusionMatrix.of(["low", "high"], [None, None], SCALE, missing="worst")
    assert table.unanswered.tolist() == [1, 0, 1]
    assert not table.counts.any()


@pytest.mark.parametrize("missing", ["skip", "", None, "Drop"])
def test_an_unknown_policy_is_refused(missing):
    with pytest.raises(BadOption, match=r"missing=.* is not one of error, drop, worst"):
        ConfusionMatrix.of(["low"], ["low"], SCALE, missing=missing)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "predicted"), [(3, 2), (2, 3), (1, 0), (0, 1), (CHUNK, CHUNK + 1)]
)
def test_columns_of_unequal_lengths_are_refused(gold, predicted):
    with pytest.raises(UnequalLengths, match=f"^{gold} gold labels and {predicted} predictions"):
        ConfusionMatrix.of(["low"] * gold, np.array(["low"] * predicted), SCALE)


@pytest.mark.parametrize("weights", [[], [1], [1, 1, 1], [[1, 1]], [[1], [1]], 1])
def test_another_number_of_weights_than_items_is_refused(weights):
    with pytest.raises(UnequalLengths, match=r"^2 labels and .* weights"):
        ConfusionMatrix.of(["low", "mid"], ["low", "mid"], SCALE, weights)


@pytest.mark.parametrize("bad", [-1, -1e-300, np.inf, -np.inf, np.nan, None])
@pytest.mark.parametrize("row", [1, CHUNK + 2])
def test_a_weight_that_is_no_amount_is_named_with_its_row(bad, row):
    weights = [1.0] * (CHUNK + 2)
    weights[row - 1] = bad
    with pytest.raises(BadWeights, match=rf"^Weight \S+ \(row {row}\) is neither 0 nor a number"):
        ConfusionMatrix.of(np.array(["low"] * len(weights)), ["low"] * len(weights), SCALE, weights)


@pytest.mark.parametrize("weights", [["x", "y"], [1, "heavy"], [[1], 2], [1, object()], [1, 1j]])
def test_weights_that_are_no_numbers_are_refused(weights):
    with pytest.raises(BadWeights, match="Weights must be numbers of at least 0"):
        ConfusionMatrix.of(["low", "mid"], ["low", "mid"], SCALE, weights)


def test_labels_off_the_scale_are_refused():
    with pytest.raises(OffScale, match=r"Label 'top' \(row 2 of gold\) is not on the scale low <"):
        ConfusionMatrix.of(["low", "top"], ["low", "zzz"], SCALE)


def test_columns_without_items_are_refused():
    with pytest.raises(NoItems, match="There are no items to evaluate: the columns are empty"):
        ConfusionMatrix.of([], [], SCALE)
    with pytest.raises(NoItems, match="There are no items to evaluate"):
        ConfusionMatrix.of(["low"], ["low"], SCALE, [0])


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
        ConfusionMatrix.of(column, column, SCALE)
    with pytest.raises(NoItems, match="There are no items to evaluate: the columns are empty"):
        ConfusionMatrix.of(column, [], SCALE, weights=[])


@pytest.mark.parametrize(
    "shape", [(), (3,), (2, 2), (3, 2), (2, 3), (4, 4), (2, 3, 2), (3, 4), (0,)], ids=str
)
def test_counts_of_another_shape_than_the_scale_are_refused(shape):
    with pytest.raises(BadInput, match=r"Counts for low < mid < high must be 3 x 3, not \("):
        ConfusionMatrix.from_counts(np.ones(shape), SCALE)


@pytest.mark.parametrize("unanswered", [[1, 2], [1, 2, 3, 4], [[1, 2, 3], [1, 2, 3]]], ids=str)
def test_unanswered_counts_of_another_shape_than_the_scale_are_refused(unanswered):
    with pytest.raises(BadInput, match="low < mid < high"):
        ConfusionMatrix.from_counts(np.eye(3), SCALE, unanswered)


@pytest.mark.parametrize("bad", [-1, -0.5, np.nan, np.inf])
def test_counts_that_are_no_amounts_are_refused(bad):
    cells = np.eye(3)
    cells[1, 2] = bad
    with pytest.raises(BadWeights, match="counts must be finite numbers of at least 0"):
        ConfusionMatrix.from_counts(cells, SCALE)
    with pytest.raises(BadWeights, match="counts must be finite numbers of at least 0"):
        ConfusionMatrix.from_counts(np.eye(3), SCALE, cells[1])


@pytest.mark.parametrize("cells", [[["a"] * 3] * 3, [[1, 2, 3], [1]], "counts", None])
def test_counts_that_are_no_numbers_are_refused(cells):
    with pytest.raises((BadWeights, BadInput), match=r"[Cc]ounts .*must be"):
        ConfusionMatrix.from_counts(cells, SCALE)


def test_counts_of_nothing_are_refused():
    with pytest.raises(NoItems, match="All counts are 0"):
        ConfusionMatrix.from_counts(np.zeros((3, 3)), SCALE)
    assert ConfusionMatrix.from_counts(np.zeros((3, 3)), SCALE, [0, 1, 0]).total == 1
