"""The same labels stand at the same positions, whatever kind of column holds them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from label_columns import (
    GRADES,
    LONG,
    NAN,
    NUMBERS,
    NUMBERS_WITH_MISSING,
    WORDS,
    every_number_column,
    every_number_column_with_missing,
    every_text_column,
    expected,
    many,
    positions,
    positions_on,
    sliced,
    split,
    spread,
    unused,
)
from law_examples import examples

from ordinate.errors import OffScale
from ordinate.scale import Scale
from ordinate.scale.encoding import OFF_SCALE_CODE, encode_labels
from ordinate.summaries import ConfusionMatrix

# --- the same labels, the same positions ---------------------------------------------------------


@every_text_column
@pytest.mark.parametrize("scale", [WORDS, LONG], ids=["short", "long"])
def test_texts_stand_at_the_same_positions_in_every_kind_of_column(make, scale):
    labels = [*scale.labels[::-1], None, *scale.labels, None, None, scale.labels[1]] * 3
    assert positions(scale, make(labels)) == expected(scale, labels)


@every_text_column
def test_a_column_need_not_use_all_levels(make):
    assert positions(WORDS, make(["high", "low"])) == [2, 0]
    assert positions(WORDS, make(["mid"] * 9)) == [1] * 9


@every_text_column
@given(labels=st.lists(st.sampled_from([*LONG.labels, None]), min_size=1, max_size=40))
@examples(20)
def test_positions_lead_back_to_the_labels(make, labels):
    back = [*LONG.labels, None]
    assert [back[code] for code in positions(LONG, make(labels))] == labels


@every_text_column
def test_texts_keep_their_positions_beyond_a_chunk(make):
    scale = WORDS
    labels = many([*scale.labels, None], 140_001)
    assert positions(scale, make(labels)) == expected(scale, labels)


@every_number_column
def test_numbers_stand_at_the_same_positions_in_every_kind_of_column(make):
    labels = [3, 1, 6, 6, 2, 5, 4, 1] * 3
    assert positions(GRADES, make(labels)) == expected(GRADES, labels)


@every_number_column
def test_labels_that_are_texts_are_found_by_their_numbers(make):
    scale = Scale(["10", "5", "3"])
    assert positions(scale, make([3, 10, 10, 5])) == [2, 0, 0, 1]


@every_number_column
def test_a_scale_far_from_zero_is_counted_as_well(make):
    scale = Scale([127, 100, 50, "other"])
    assert positions(scale, make([50, 127, 100])) == [2, 0, 1]


@every_number_column
def test_numbers_keep_their_positions_beyond_a_chunk(make):
    labels = many(GRADES.labels, 140_001)
    assert positions(GRADES, make(labels)) == expected(GRADES, labels)


@every_number_column_with_missing
def test_numbers_may_be_missing_in_every_kind_of_column(make):
    labels = [3, None, 6, 1, None, None, 2, 5, 4, None, 1] * 3
    assert positions(GRADES, make(labels)) == expected(GRADES, labels)


@every_number_column_with_missing
def test_missing_numbers_keep_their_rows_beyond_a_chunk(make):
    labels = many([*GRADES.labels, None], 140_001)
    assert positions(GRADES, make(labels)) == expected(GRADES, labels)


SIGNED = {
    name: make
    for name, make in (NUMBERS | NUMBERS_WITH_MISSING).items()
    if not any(word in name for word in ("u1", "u2", "u4", "u8", "uint", "UInt", "read-only"))
    and name not in {"numpy field of records", "arrow slice", "pandas arrow"}
}


@each_case("make", SIGNED)
def test_negative_labels_stand_at_the_same_positions(make):
    scale = Scale.of("-2..2")
    labels = [0, -2, 2, -1, 1, 1, -2]
    assert positions(scale, make(labels)) == expected(scale, labels)
    downwards = Scale.of("2..-2")
    assert positions(downwards, make(labels)) == expected(downwards, labels)


def test_scales_below_zero_are_counted_too():
    assert positions(Scale.of("-5..-3"), np.array([-3, -5, -4], np.int8)) == [2, 0, 1]


@pytest.mark.parametrize("kind", ["i4", "u8", "f8", ">i8"])
def test_a_scale_too_wide_to_count_by_is_searched(kind):
    scale = Scale([1, 1_000_000, 70_000])
    assert positions(scale, np.array([70_000, 1, 1_000_000], kind)) == [2, 0, 1]


def test_integers_that_a_float_cannot_hold_are_told_apart():
    scale = Scale([2**53, 2**53 + 1, 2**53 + 2])
    labels = [2**53 + 1, 2**53, 2**53 + 2]
    for column in (labels, np.array(labels), pl.Series(labels), pa.array(labels)):
        assert positions(scale, column) == [1, 0, 2], type(column)


@pytest.mark.parametrize("make", [list, np.array, pl.Series, pa.array])
def test_an_integer_that_rounds_to_a_label_is_off_the_scale(make):
    with pytest.raises(OffScale, match=rf"Label {2**53 + 1} \(row 2 of gold\)"):
        ConfusionMatrix.of(make([2**53, 2**53 + 1]), [2**53, 2**53], [2**53, 2**53 + 2])


@pytest.mark.parametrize("kind", ["f4", "f8", ">f8"])
def test_labels_between_integers_are_found(kind):
    scale = Scale([0, 0.5, 1, 1.5])
    assert positions(scale, np.array([1.5, 0, 1, 0.5], kind)) == [3, 0, 2, 1]
    assert positions(scale, ["1.50", 0, "1", 0.5]) == [3, 0, 2, 1]


BOOLS = {
    "list": list,
    "numpy": np.array,
    "numpy every second": lambda x: spread(np.array(x), 2),
    "numpy objects": lambda x: np.array(x, object),
    "pandas": pd.Series,
    "pandas boolean": lambda x: pd.Series(x, dtype="boolean"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "polars": pl.Series,
    "polars slice": lambda x: sliced(x, lambda y: pl.Series(y, dtype=pl.Boolean), 3),
    "arrow": pa.array,
    "arrow slice": lambda x: sliced(x, lambda y: pa.array(y, pa.bool_()), 3),
    "arrow chunks": lambda x: split(x, lambda y: pa.array(y, pa.bool_())),
}


@each_case("make", BOOLS)
@pytest.mark.parametrize(
    "labels", [[False, True], [0, 1], ["False", "True"]], ids=["bools", "numbers", "texts"]
)
def test_truth_values_stand_at_the_same_positions(make, labels):
    values = [True, False, False, True, True, False, True, True, False] * 2
    assert positions(Scale(labels), make(values)) == [int(value) for value in values]
    assert positions(Scale(labels[::-1]), make(values)) == [int(not value) for value in values]


@pytest.mark.parametrize(
    "make",
    [list, pa.array, pl.Series, lambda x: pd.Series(x, dtype="boolean"),
     lambda x: pd.Series(x, dtype="category"), lambda x: np.array(x, object)],
)  # fmt: skip
def test_truth_values_may_be_missing(make):
    assert positions(Scale([False, True]), make([True, None, False])) == [1, 2, 0]


# --- what is missing -----------------------------------------------------------------------------

EMPTY_CELLS = {
    "None": None,
    "nan": NAN,
    "empty text": "",
    "pandas NA": pd.NA,
    "pandas NaT": pd.NaT,
    "NumPy float64 nan": np.float64("nan"),
    "NumPy float32 nan": np.float32("nan"),
    "NumPy float16 nan": np.float16("nan"),
    "other nan": -float("nan"),
}


@each_case("cell", EMPTY_CELLS)
@pytest.mark.parametrize("scale", [WORDS, GRADES], ids=["words", "numbers"])
def test_an_empty_cell_is_missing(cell, scale):
    column = [scale.labels[1], cell, scale.labels[0], cell]
    missing = [1, len(scale), 0, len(scale)]
    assert positions(scale, column) == missing
    assert positions(scale, np.array(column, object)) == missing
    assert positions(scale, pd.Series(column, dtype=object)) == missing


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(3),
        pa.chunked_array([pa.nulls(1), pa.nulls(2)]),
        pa.nulls(3, pa.string()),
        pa.nulls(3, pa.string_view()),
        pa.nulls(3, pa.int8()),
        pa.nulls(3, pa.bool_()),
        pa.nulls(3, pa.dictionary(pa.int8(), pa.string())),
        pa.nulls(3).dictionary_encode(),
        pl.Series([None] * 3),
        pl.Series([None] * 3, dtype=pl.Categorical),
        pl.Series([None] * 3, dtype=pl.Enum(["low"])),
        pd.Series([None] * 3),
        pd.Series([None] * 3, dtype="category"),
        pd.Series([None] * 3, dtype="Int64"),
        np.full(3, np.nan),
        np.array([""] * 3),
        ["", None, NAN],
    ],
    ids=lambda column: (
        f"{type(column).__module__} {getattr(column, 'dtype', '')}"
        + str(getattr(column, "type", ""))
    ),
)
@pytest.mark.parametrize("scale", [WORDS, GRADES], ids=["words", "numbers"])
def test_a_column_may_be_missing_throughout(column, scale):
    assert positions(scale, column) == [len(scale)] * 3


@every_text_column
def test_an_empty_text_is_missing_in_every_kind_of_column(make):
    assert positions(WORDS, make(["low", "", "high"])) == [0, 3, 2]


@every_text_column
@pytest.mark.parametrize("text", ["NA", "nan", "None", "null", " "])
def test_a_text_is_never_missing(make, text):
    scale = Scale(["low", text, "high"])
    assert positions(scale, make(["low", text, "high", None])) == [0, 1, 2, 3]
    with pytest.raises(OffScale, match=rf"Label '{text}' \(row 2 of gold\)"):
        ConfusionMatrix.of(make(["low", text]), ["low", "low"], unused(WORDS), missing="drop")


# --- spellings -----------------------------------------------------------------------------------


@every_text_column
def test_spellings_of_a_number_are_one_label(make):
    column = make(["3", "3.0", "1", "6.00", "3", None])
    assert positions(GRADES, column) == [2, 2, 0, 5, 2, 6]


def test_spellings_of_a_number_are_one_label_whatever_their_types():
    column = [3, 3.0, "3", "3.0", np.int8(3), np.float32(3), Decimal(3), Decimal("3.0")]
    assert positions(GRADES, column) == [2] * len(column)
    assert positions(GRADES, np.array(column, object)) == [2] * len(column)
    assert positions(Scale(["1", "2.5", "3"]), [2.5, "2.50", *column]) == [1, 1] + [2] * len(column)


@every_text_column
@pytest.mark.parametrize("text", ["3.5", "3.00000000000001", "33", "30", "x3"])
def test_a_number_between_two_levels_is_off_the_scale(make, text):
    with pytest.raises(OffScale, match=rf"Label '{text}' \(row 3 of predicted\) is not on the"):
        ConfusionMatrix.of([1, 2, 3, 4], make(["3", "3.0", text, "4"]), unused(GRADES))


@every_text_column
def test_a_text_that_begins_like_a_spelling_is_off_the_scale(make):
    number = "3." + "0" * 40
    with pytest.raises(OffScale, match=rf"Label '{number}x' \(row 2 of gold\)"):
        ConfusionMatrix.of(make([number, number + "x"]), [3, 3], unused(GRADES))


@every_text_column
@pytest.mark.parametrize("scale", [WORDS, LONG], ids=["short", "long"])
def test_the_beginning_or_the_continuation_of_a_label_is_off_the_scale(make, scale):
    label = scale.labels[1]
    for text in (label[:-1], label + "n", label + " ", " " + label, label.upper(), label * 9):
        with pytest.raises(OffScale, match=rf"Label '{text}' \(row 2 of gold\)"):
            ConfusionMatrix.of(make([label, text]), [label, label], unused(scale))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_a_text_that_ends_in_a_zero_byte_is_another_text(kind):
    with pytest.raises(OffScale, match="row 2 of gold"):
        ConfusionMatrix.of(pa.array(["low", "low\0"], kind), ["low", "low"], unused(WORDS))


def test_words_are_not_read_as_numbers():
    scale = Scale(["one", "two"])
    with pytest.raises(OffScale, match="Label '1' "):
        ConfusionMatrix.of(["1"], ["one"], unused(scale))
    with pytest.raises(OffScale, match=r"Label 1\.0 "):
        ConfusionMatrix.of(np.array([1.0]), ["one"], unused(scale))
    with pytest.raises(OffScale, match="Label 1 "):
        ConfusionMatrix.of(np.array([1]), ["one"], unused(scale))


def test_a_spelling_found_once_does_not_change_the_scale():
    scale = Scale.of("1..3")
    assert positions_on(scale, ["3.0", "2.00"]) == [2, 1]
    assert scale == Scale.of("1..3")
    assert positions_on(scale, pa.array(["3.0", "3", "1"])) == [2, 2, 0]
    assert positions_on(scale, np.array([3, 1])) == [2, 0]
    assert positions_on(scale, np.array([3.0, 1.0])) == [2, 0]


# --- errors name the label and the first bad row -------------------------------------------------


@every_text_column
def test_a_text_off_the_scale_is_named_with_its_first_row(make):
    labels = ["low", None, "high", "low", "zzz", "high", "low", "aaa", "zzz"]
    good = ["low"] * len(labels)
    way = r"is not on the scale low < mid < high\."
    with pytest.raises(OffScale, match=rf"^Label 'zzz' \(row 5 of gold\) {way}"):
        ConfusionMatrix.of(make(labels), good, unused(WORDS), missing="drop")
    with pytest.raises(OffScale, match=rf"^Label 'zzz' \(row 5 of predicted\) {way}"):
        ConfusionMatrix.of(good, make(labels), unused(WORDS), missing="drop")


@every_number_column
@pytest.mark.parametrize("bad", [9, 0, 7, 100])
def test_a_number_off_the_scale_is_named_with_its_first_row(make, bad):
    labels = [3, 1, 6, 5, 4, 2, bad, 1, bad, 101]
    good = [1] * len(labels)
    label = rf"(?:Decimal\()?'?{bad}(?:\.0)?'?\)?"
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 7 of gold\) is not on the scale 1"):
        ConfusionMatrix.of(make(labels), good, unused(GRADES))
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 7 of predicted\) is not"):
        ConfusionMatrix.of(good, make(labels), unused(GRADES))


@every_number_column_with_missing
def test_a_number_off_the_scale_among_missing_ones_is_named_with_its_first_row(make):
    labels = [3, None, 6, None, 4, 9, None, 8]
    with pytest.raises(OffScale, match=r"^Label 9(?:\.0)? \(row 6 of gold\) is not on the scale"):
        ConfusionMatrix.of(make(labels), [1] * len(labels), unused(GRADES), missing="drop")


@every_text_column
def test_a_bad_row_beyond_a_chunk_is_named(make):
    row = 139_999
    labels = ["low", "mid"] * 70_000
    labels[row - 1] = "zzz"
    with pytest.raises(OffScale, match=rf"Label 'zzz' \(row {row} of predicted\)"):
        ConfusionMatrix.of(np.array(["low", "mid"] * 70_000), make(labels), unused(WORDS))


@each_case("make", SIGNED)
@pytest.mark.parametrize(("scale", "bad"), [("1..6", -1), ("0..3", -1), ("-2..2", -3)])
def test_a_negative_number_off_the_scale_is_named(make, scale, bad):
    label = rf"(?:Decimal\()?'?{bad}(?:\.0)?'?\)?"
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 3 of gold\)"):
        ConfusionMatrix.of(make([1, 2, bad, 1]), [1, 1, 1, 1], scale)


@pytest.mark.parametrize("low", [-128, -100, -1])
@pytest.mark.parametrize("make", [np.array, lambda x, dtype: pa.array(np.array(x, dtype))])
def test_a_small_negative_number_is_not_a_large_level(make, low):
    scale = Scale(range(256))
    with pytest.raises(OffScale, match=rf"Label {low} \(row 2 of gold\)"):
        ConfusionMatrix.of(make([3, low], dtype=np.int8), [3, 3], unused(scale))


@pytest.mark.parametrize("make", [np.array, lambda x, dtype: pa.array(np.array(x, dtype))])
def test_a_huge_number_is_not_a_negative_level(make):
    huge = 2**64 - 1
    with pytest.raises(OffScale, match=rf"Label {huge} \(row 2 of gold\)"):
        ConfusionMatrix.of(make([1, huge], dtype=np.uint64), [1, 1], "-2..2")


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 2.5, 1e300])
@pytest.mark.parametrize("make", [np.array, pd.Series, pl.Series, pa.array, list])
def test_a_float_that_is_no_level_is_named(make, bad):
    with pytest.raises(OffScale, match=r"\(row 2 of gold\) is not on the scale 1"):
        ConfusionMatrix.of(make([1.0, bad]), [1, 1], unused(GRADES))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 0.0, -1.0])
@pytest.mark.parametrize("make", [np.array, pl.Series, pa.array, list])
def test_no_number_is_a_word(make, bad):
    with pytest.raises(OffScale, match=r"\(row 1 of gold\) is not on the scale low"):
        ConfusionMatrix.of(make([bad, 1.0]), ["low", "low"], unused(WORDS))


@each_case("make", BOOLS)
def test_a_truth_value_off_the_scale_is_named(make):
    with pytest.raises(OffScale, match=r"Label True \(row 2 of gold\)"):
        ConfusionMatrix.of(make([False, True, False]), ["maybe"] * 3, Scale(["False", "maybe"]))


def test_a_label_that_cannot_be_looked_up_is_off_the_scale():
    with pytest.raises(OffScale, match=r"Label \['low'\] \(row 2 of gold\)"):
        ConfusionMatrix.of(["low", ["low"]], ["low", "low"], unused(WORDS))


def test_a_category_off_the_scale_is_harmless_while_nobody_uses_it():
    column = pd.Series(pd.Categorical(["low", None], categories=["zzz", "low"]))
    codes = encode_labels(WORDS, column)
    assert codes.levels.tolist() == [OFF_SCALE_CODE, 0, 3]
    assert positions(WORDS, column) == [0, 3]
