"""The same labels stand at the same positions, whatever kind of column holds them."""

import gc
from collections import deque
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordinate.errors import BadInput, OffScale
from ordinate.scale import Scale
from ordinate.scale.encoding import CHUNK, OFF_SCALE_CODE, encode_labels
from ordinate.summaries import ConfusionMatrix

WORDS = Scale(["low", "mid", "high"])
# Longer than the twelve bytes that a string view holds itself, or of several bytes a letter.
LONG = Scale(
    ["niedrig", "eher niedriger als sonst", "très élevé", "最高", "über dem Höchsten von allen"]
)
GRADES = Scale.of("1..6")


class OnlyStream:
    """A column that has nothing but the Arrow protocol, and makes its memory when asked."""

    def __init__(self, make):
        self.make = make

    def __arrow_c_stream__(self, requested_schema=None):
        return self.make().__arrow_c_stream__(requested_schema)


class OnlyArrowArray:
    """The same for one array rather than a stream of them."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class OnlyArray:
    """A column that has nothing but NumPy's protocol."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def unused(scale):
    """Return the scale as new: it remembers the spellings that it has met."""
    return Scale(scale.labels)


def positions(scale, column):
    """Read a column as counting does; len(scale) is missing, OFF off the scale."""
    return positions_on(unused(scale), column)


def positions_on(scale, column):
    codes = encode_labels(scale, column)
    starts = range(0, len(codes), CHUNK)
    parts = [codes.levels[codes.chunk(a, min(a + CHUNK, len(codes)))] for a in starts]
    return np.concatenate(parts).tolist() if parts else []


def expected(scale, labels):
    return [len(scale) if label is None else scale.labels.index(label) for label in labels]


# --- the kinds of columns ------------------------------------------------------------------------


def filled(labels, missing=""):
    return [missing if label is None else label for label in labels]


def distinct(labels):
    return list(dict.fromkeys(label for label in labels if label is not None))


def spread(values, step):
    """Return the values as every `step`-th of an array that holds other things between."""
    wide = np.repeat(values, abs(step))
    wide[1 :: abs(step)] = values[0]
    return wide[::step] if step > 0 else np.flip(wide)[-step - 1 :: -step][::-1]


def split(labels, make):
    """Return three chunks, of which the middle one is empty."""
    half = len(labels) // 2
    return pa.chunked_array([make(labels[:half]), make([]), make(labels[half:])])


def sliced(labels, make, before):
    """Return a slice that begins in the middle of the buffers, and of a byte of their bits."""
    first = next((label for label in labels if label is not None), None)
    return make([first, None, first] * before + labels + [first])[3 * before : -1]


def categories(labels, of, **how):
    return pd.Series(pd.Categorical(labels, categories=of, **how))


def string(labels):
    return pa.array(labels, pa.string())


def large_string(labels):
    return pa.array(labels, pa.large_string())


def string_view(labels):
    return pa.array(labels, pa.string_view())


def dictionary(labels):
    return pa.array(labels, pa.string()).dictionary_encode()


def dictionary_of(kind):
    return lambda x: pa.array(x, pa.string()).cast(pa.dictionary(kind, pa.string()))


def coded(labels, values):
    """Return a dictionary column of these values; a null among them has a code of its own."""
    codes = {value: code for code, value in enumerate(values.to_pylist())}
    return pa.DictionaryArray.from_arrays(pa.array(map(codes.get, labels), pa.int16()), values)


def polars_chunks(labels):
    half = len(labels) // 2
    parts = [pl.Series(labels[:half], dtype=pl.String), pl.Series(labels[half:], dtype=pl.String)]
    return pl.concat(parts, rechunk=False)


UNUSED = [f"unused {k}" for k in range(200)]
TEXTS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda x: (label for label in x),
    "numpy text": lambda x: np.array(filled(x)),
    "numpy wide text": lambda x: np.array(filled(x), "U300"),
    "numpy big-endian text": lambda x: (y := np.array(filled(x))).astype(y.dtype.newbyteorder(">")),
    "numpy every third text": lambda x: spread(np.array(filled(x)), 3),
    "numpy texts backwards": lambda x: np.array(filled(x)[::-1])[::-1],
    "numpy variable text": lambda x: np.array(filled(x), np.dtypes.StringDType()),
    "numpy objects": lambda x: np.array(x, object),
    "numpy every second object": lambda x: spread(np.array(x, object), 2),
    "column of a matrix": lambda x: np.array([filled(x), filled(x)[::-1]]).T[:, 0],
    "only __array__": lambda x: OnlyArray(filled(x)),
    "pandas object": lambda x: pd.Series(x, dtype=object),
    "pandas object with NA": lambda x: pd.Series(filled(x, pd.NA), dtype=object),
    "pandas str": lambda x: pd.Series(x, dtype="str"),
    "pandas string": lambda x: pd.Series(x, dtype="string"),
    "pandas python string": lambda x: pd.Series(x, dtype=pd.StringDtype("python")),
    "pandas arrow string": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.string())),
    "pandas index": lambda x: pd.Index(x, dtype=object),
    "pandas other index": lambda x: pd.Series(x, index=range(len(x))[::-1], dtype="str"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas ordered category": lambda x: categories(x, distinct(x), ordered=True),
    "pandas reversed categories": lambda x: categories(x, distinct(x)[::-1]),
    "pandas unused categories": lambda x: categories(x, [*distinct(x), "unused", "also unused"]),
    "pandas unused categories first": lambda x: categories(x, ["unused", *distinct(x)]),
    "pandas 200 categories": lambda x: categories(x, UNUSED + distinct(x)),
    "pandas categorical": pd.Categorical,
    "pandas categorical index": pd.CategoricalIndex,
    "polars string": lambda x: pl.Series(x, dtype=pl.String),
    "polars chunks": polars_chunks,
    "polars slice": lambda x: sliced(x, lambda y: pl.Series(y, dtype=pl.String), 4),
    "polars categorical": lambda x: pl.Series(x, dtype=pl.Categorical),
    "polars enum": lambda x: pl.Series(x, dtype=pl.Enum(distinct(x)[::-1])),
    "polars enum slice": lambda x: sliced(
        x, lambda y: pl.Series(y, dtype=pl.Enum([*distinct(y), "unused"])), 3
    ),
    "arrow string": string,
    "arrow large string": large_string,
    "arrow string view": string_view,
    "arrow dictionary": dictionary,
    "arrow uint8 dictionary": dictionary_of(pa.uint8()),
    "arrow int64 dictionary": dictionary_of(pa.int64()),
    "arrow dictionary of views": lambda x: coded(x, string_view(distinct(x))),
    "arrow dictionary with a null": lambda x: coded(x, string([None, *distinct(x)])),
    "arrow chunks": lambda x: split(x, string),
    "arrow chunks of views": lambda x: split(x, string_view),
    "arrow chunks with different dictionaries": lambda x: split(x, dictionary),
    "arrow slice": lambda x: sliced(x, string, 3),
    "arrow slice of large strings": lambda x: sliced(x, large_string, 1),
    "arrow slice of views": lambda x: sliced(x, string_view, 5),
    "arrow slice of a dictionary": lambda x: sliced(x, dictionary, 3),
    "arrow slice of chunks": lambda x: sliced(x, lambda y: split(y, string), 7),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, string)),
    "only __arrow_c_array__": lambda x: OnlyArrowArray(string(x)),
    "stream of a dictionary": lambda x: OnlyStream(lambda: split(x, dictionary)),
}  # fmt: skip

INTEGER_TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
ARROW_INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
POLARS_INTEGERS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]


def numpy_of(kind):
    return lambda x: np.array(x).astype(kind)


def arrow_of(kind):
    return lambda x: pa.array(x, pa.type_for_alias(kind))


def polars_of(kind):
    return lambda x: pl.Series(x, dtype=getattr(pl, kind))


def some_nulls(labels, make):
    """Return chunks of which only the second has nulls, and a slice without them."""
    chunks = [make(labels), make([labels[0], None])]
    return pa.chunked_array(chunks)[: len(labels)]


NUMBERS = {
    "list": list,
    "range or tuple": tuple,
    "list of floats": lambda x: [float(y) for y in x],
    "list of texts": lambda x: [str(y) for y in x],
    "list of texts with a point": lambda x: [f"{y}.0" for y in x],
    "list of NumPy scalars": lambda x: [np.int8(y) for y in x],
    "list of decimals": lambda x: [Decimal(y) for y in x],
    **{f"numpy {kind}": numpy_of(kind) for kind in INTEGER_TYPES},
    **{f"numpy >{kind}": numpy_of(f">{kind}") for kind in INTEGER_TYPES[1:] if kind != "u1"},
    **{f"numpy {kind}": numpy_of(kind) for kind in ("f2", "f4", "f8", ">f4", ">f8")},
    "numpy every second": lambda x: spread(np.array(x, np.int16), 2),
    "numpy every second, big-endian": lambda x: spread(np.array(x, ">i4"), 2),
    "numpy backwards": lambda x: np.array(x[::-1], np.int8)[::-1],
    "numpy every third float": lambda x: spread(np.array(x, np.float32), 3),
    "numpy field of records": lambda x: np.array([(y, 0) for y in x], "u1,i8")["f0"],
    "numpy unaligned": lambda x: np.array([(0, y) for y in x], "u1,i8")["f1"],
    "numpy read-only": lambda x: np.frombuffer(bytes(x), np.uint8),
    "numpy texts": lambda x: np.array(list(map(str, x))),
    "numpy objects": lambda x: np.array(x, object),
    "only __array__": OnlyArray,
    "pandas int64": pd.Series,
    "pandas Int64": lambda x: pd.Series(x, dtype="Int64"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas category of floats": lambda x: pd.Series(x, dtype=float).astype("category"),
    "pandas category of texts": lambda x: pd.Series(list(map(str, x)), dtype="category"),
    "pandas arrow": lambda x: pd.Series(x, dtype="int8[pyarrow]"),
    **{f"polars {kind}": polars_of(kind) for kind in POLARS_INTEGERS},
    **{f"polars {kind}": polars_of(kind) for kind in ("Float32", "Float64")},
    **{f"arrow {kind}": arrow_of(kind) for kind in ARROW_INTEGERS},
    **{f"arrow {kind}": arrow_of(kind) for kind in ("float", "double")},
    "arrow halffloat": lambda x: pa.array(np.array(x, np.float16)),
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunks": lambda x: split(x, arrow_of("int32")),
    "arrow chunks with different dictionaries": lambda x: split(
        x, lambda y: pa.array(y, pa.int8()).dictionary_encode()
    ),
    "arrow chunks, one with nulls": lambda x: some_nulls(x, arrow_of("int16")),
    "arrow slice": lambda x: sliced(x, arrow_of("uint16"), 3),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, arrow_of("int64"))),
    "only __arrow_c_array__": lambda x: OnlyArrowArray(pa.array(x, pa.int8())),
}  # fmt: skip

NAN = float("nan")
NUMBERS_WITH_MISSING = {
    "list": list,
    "list with NaN": lambda x: filled(x, NAN),
    "numpy f2": lambda x: np.array(filled(x, NAN), "f2"),
    "numpy f8": lambda x: np.array(filled(x, NAN)),
    "numpy >f4": lambda x: np.array(filled(x, NAN), ">f4"),
    "numpy every second float": lambda x: spread(np.array(filled(x, NAN)), 2),
    "numpy objects": lambda x: np.array(x, object),
    "pandas float with NaN": lambda x: pd.Series(x, dtype=float),
    "pandas Int64 with NA": lambda x: pd.Series(x, dtype="Int64"),
    "pandas Float32 with NA": lambda x: pd.Series(x, dtype="Float32"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas category of Int64": lambda x: pd.Series(x, dtype="Int64").astype("category"),
    "pandas arrow": lambda x: pd.Series(x, dtype="uint8[pyarrow]"),
    **{f"polars {kind}": polars_of(kind) for kind in POLARS_INTEGERS},
    "polars Float64": polars_of("Float64"),
    "polars Float64 with NaN": lambda x: pl.Series(filled(x, NAN), dtype=pl.Float64),
    "polars slice": lambda x: sliced(x, polars_of("Int16"), 3),
    **{f"arrow {kind}": arrow_of(kind) for kind in ARROW_INTEGERS},
    "arrow double": arrow_of("double"),
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunks": lambda x: split(x, arrow_of("int32")),
    "arrow slice": lambda x: sliced(x, arrow_of("int64"), 3),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, arrow_of("int64"))),
}  # fmt: skip

every_text_column = pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
every_number_column = pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS)
every_number_column_with_missing = pytest.mark.parametrize(
    "make", NUMBERS_WITH_MISSING.values(), ids=NUMBERS_WITH_MISSING
)


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
@settings(max_examples=20)
def test_positions_lead_back_to_the_labels(make, labels):
    back = [*LONG.labels, None]
    assert [back[code] for code in positions(LONG, make(labels))] == labels


def many(labels, size):
    chosen = np.random.default_rng(size).integers(0, len(labels), size)
    return [labels[k] for k in chosen]


@every_text_column
@pytest.mark.parametrize("size", [70_000, 140_001])
def test_texts_keep_their_positions_beyond_a_chunk(make, size):
    scale = WORDS
    labels = many([*scale.labels, None], size)
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


@pytest.mark.parametrize("make", SIGNED.values(), ids=SIGNED)
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
        ConfusionMatrix.of([2**53, 2**53 + 2], make([2**53, 2**53 + 1]), [2**53, 2**53])


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


@pytest.mark.parametrize("make", BOOLS.values(), ids=BOOLS)
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


@pytest.mark.parametrize("cell", EMPTY_CELLS.values(), ids=EMPTY_CELLS)
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
        ConfusionMatrix.of(unused(WORDS), make(["low", text]), ["low", "low"], missing="drop")


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
        ConfusionMatrix.of(unused(GRADES), [1, 2, 3, 4], make(["3", "3.0", text, "4"]))


@every_text_column
def test_a_text_that_begins_like_a_spelling_is_off_the_scale(make):
    number = "3." + "0" * 40
    with pytest.raises(OffScale, match=rf"Label '{number}x' \(row 2 of gold\)"):
        ConfusionMatrix.of(unused(GRADES), make([number, number + "x"]), [3, 3])


@every_text_column
@pytest.mark.parametrize("scale", [WORDS, LONG], ids=["short", "long"])
def test_the_beginning_or_the_continuation_of_a_label_is_off_the_scale(make, scale):
    label = scale.labels[1]
    for text in (label[:-1], label + "n", label + " ", " " + label, label.upper(), label * 9):
        with pytest.raises(OffScale, match=rf"Label '{text}' \(row 2 of gold\)"):
            ConfusionMatrix.of(unused(scale), make([label, text]), [label, label])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_a_text_that_ends_in_a_zero_byte_is_another_text(kind):
    with pytest.raises(OffScale, match="row 2 of gold"):
        ConfusionMatrix.of(unused(WORDS), pa.array(["low", "low\0"], kind), ["low", "low"])


def test_words_are_not_read_as_numbers():
    scale = Scale(["one", "two"])
    with pytest.raises(OffScale, match="Label '1' "):
        ConfusionMatrix.of(unused(scale), ["1"], ["one"])
    with pytest.raises(OffScale, match=r"Label 1\.0 "):
        ConfusionMatrix.of(unused(scale), np.array([1.0]), ["one"])
    with pytest.raises(OffScale, match="Label 1 "):
        ConfusionMatrix.of(unused(scale), np.array([1]), ["one"])


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
    way = r"is not on the scale low < mid < high\. Map it first"
    with pytest.raises(OffScale, match=rf"^Label 'zzz' \(row 5 of gold\) {way}"):
        ConfusionMatrix.of(unused(WORDS), make(labels), good, missing="drop")
    with pytest.raises(OffScale, match=rf"^Label 'zzz' \(row 5 of predicted\) {way}"):
        ConfusionMatrix.of(unused(WORDS), good, make(labels), missing="drop")


@every_number_column
@pytest.mark.parametrize("bad", [9, 0, 7, 100])
def test_a_number_off_the_scale_is_named_with_its_first_row(make, bad):
    labels = [3, 1, 6, 5, 4, 2, bad, 1, bad, 101]
    good = [1] * len(labels)
    label = rf"(?:Decimal\()?'?{bad}(?:\.0)?'?\)?"
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 7 of gold\) is not on the scale 1"):
        ConfusionMatrix.of(unused(GRADES), make(labels), good)
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 7 of predicted\) is not"):
        ConfusionMatrix.of(unused(GRADES), good, make(labels))


@every_number_column_with_missing
def test_a_number_off_the_scale_among_missing_ones_is_named_with_its_first_row(make):
    labels = [3, None, 6, None, 4, 9, None, 8]
    with pytest.raises(OffScale, match=r"^Label 9(?:\.0)? \(row 6 of gold\) is not on the scale"):
        ConfusionMatrix.of(unused(GRADES), make(labels), [1] * len(labels), missing="drop")


@every_text_column
def test_a_bad_row_beyond_a_chunk_is_named(make):
    row = 139_999
    labels = ["low", "mid"] * 70_000
    labels[row - 1] = "zzz"
    with pytest.raises(OffScale, match=rf"Label 'zzz' \(row {row} of predicted\)"):
        ConfusionMatrix.of(unused(WORDS), np.array(["low", "mid"] * 70_000), make(labels))


@pytest.mark.parametrize("make", SIGNED.values(), ids=SIGNED)
@pytest.mark.parametrize(("scale", "bad"), [("1..6", -1), ("0..3", -1), ("-2..2", -3)])
def test_a_negative_number_off_the_scale_is_named(make, scale, bad):
    label = rf"(?:Decimal\()?'?{bad}(?:\.0)?'?\)?"
    with pytest.raises(OffScale, match=rf"^Label {label} \(row 3 of gold\)"):
        ConfusionMatrix.of(scale, make([1, 2, bad, 1]), [1, 1, 1, 1])


@pytest.mark.parametrize("low", [-128, -100, -1])
@pytest.mark.parametrize("make", [np.array, lambda x, dtype: pa.array(np.array(x, dtype))])
def test_a_small_negative_number_is_not_a_large_level(make, low):
    scale = Scale(range(256))
    with pytest.raises(OffScale, match=rf"Label {low} \(row 2 of gold\)"):
        ConfusionMatrix.of(unused(scale), make([3, low], dtype=np.int8), [3, 3])


@pytest.mark.parametrize("make", [np.array, lambda x, dtype: pa.array(np.array(x, dtype))])
def test_a_huge_number_is_not_a_negative_level(make):
    huge = 2**64 - 1
    with pytest.raises(OffScale, match=rf"Label {huge} \(row 2 of gold\)"):
        ConfusionMatrix.of("-2..2", make([1, huge], dtype=np.uint64), [1, 1])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 2.5, 1e300])
@pytest.mark.parametrize("make", [np.array, pd.Series, pl.Series, pa.array, list])
def test_a_float_that_is_no_level_is_named(make, bad):
    with pytest.raises(OffScale, match=r"\(row 2 of gold\) is not on the scale 1"):
        ConfusionMatrix.of(unused(GRADES), make([1.0, bad]), [1, 1])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 0.0, -1.0])
@pytest.mark.parametrize("make", [np.array, pl.Series, pa.array, list])
def test_no_number_is_a_word(make, bad):
    with pytest.raises(OffScale, match=r"\(row 1 of gold\) is not on the scale low"):
        ConfusionMatrix.of(unused(WORDS), make([bad, 1.0]), ["low", "low"])


@pytest.mark.parametrize("make", BOOLS.values(), ids=BOOLS)
def test_a_truth_value_off_the_scale_is_named(make):
    with pytest.raises(OffScale, match=r"Label True \(row 2 of gold\)"):
        ConfusionMatrix.of(Scale(["False", "maybe"]), make([False, True, False]), ["maybe"] * 3)


def test_a_label_that_cannot_be_looked_up_is_off_the_scale():
    with pytest.raises(OffScale, match=r"Label \['low'\] \(row 2 of gold\)"):
        ConfusionMatrix.of(unused(WORDS), ["low", ["low"]], ["low", "low"])


def test_a_category_off_the_scale_is_harmless_while_nobody_uses_it():
    column = pd.Series(pd.Categorical(["low", None], categories=["zzz", "low"]))
    codes = encode_labels(WORDS, column)
    assert codes.levels.tolist() == [OFF_SCALE_CODE, 0, 3]
    assert positions(WORDS, column) == [0, 3]


# --- chunks, memory and shapes -------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    ends=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    different=st.booleans(),
)
def test_any_rows_of_a_chunked_column_are_the_rows_of_the_whole(sizes, ends, different):
    labels = many([*WORDS.labels, None], sum(sizes))
    bounds = np.cumsum([0, *sizes])
    make = dictionary if different else string
    parts = [make(labels[a:b]) for a, b in pairwise(bounds)]
    codes = encode_labels(WORDS, pa.chunked_array(parts))
    start, stop = sorted(min(end, len(labels)) for end in ends)
    assert len(codes) == len(labels)
    if start < stop:
        assert codes.levels[codes.chunk(start, stop)].tolist() == expected(
            WORDS, labels[start:stop]
        )
    for row, label in enumerate(labels):
        assert label is None or codes.label(row) == label


def test_a_column_without_rows_has_none():
    kinds = [pa.string(), pa.string_view(), pa.int8(), pa.null(), pa.dictionary("int8", "string")]
    for kind in kinds:
        assert positions(WORDS, pa.chunked_array([], type=kind)) == []
        assert positions(WORDS, pa.array([], kind)) == []
    for column in ([], np.array([]), pd.Series([], dtype="category"), pl.Series([], dtype=pl.Int8)):
        assert positions(WORDS, column) == []


FRESH = {
    "int8": (arrow_of("int8"), [1, 2, 3]),
    "int64": (arrow_of("int64"), [1, 2, 3]),
    "int64 with nulls": (arrow_of("int64"), [1, None, 3]),
    "double": (arrow_of("double"), [1, 2, 3]),
    "string": (string, ["1", "2", "3"]),
    "string view": (string_view, ["1", "2", "3"]),
    "dictionary": (dictionary, ["1", "2", "3"]),
}


@pytest.mark.parametrize(("make", "labels"), FRESH.values(), ids=FRESH)
def test_memory_that_a_stream_hands_over_lives_as_long_as_its_codes(make, labels):
    gc.collect()
    before = pa.total_allocated_bytes()
    codes = encode_labels(GRADES, OnlyStream(lambda: split(labels * 40_000, make)))
    held = pa.total_allocated_bytes() - before
    size = len(codes)
    del codes
    gc.collect()
    assert size == 120_000
    assert held >= size
    assert pa.total_allocated_bytes() == before


def test_a_stream_that_breaks_says_why():
    def batches():
        yield pa.record_batch({"x": ["low"]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.string()}), batches())
    with pytest.raises(BadInput, match=r"could not be read through Arrow: .*the disk is gone"):
        encode_labels(WORDS, OnlyStream(lambda: reader))


@pytest.mark.parametrize(
    "column",
    [
        pd.DataFrame({"level": ["low"]}),
        pl.DataFrame({"level": ["low"]}),
        pa.table({"level": ["low"]}),
        pa.array([["low"]]),
        pa.array([1], pa.date32()),
        pa.array([b"low"]),
    ],
    ids=["pandas frame", "polars frame", "arrow table", "lists", "dates", "bytes"],
)
def test_what_holds_no_labels_is_refused_as_a_column(column):
    with pytest.raises(BadInput, match="gold"):
        encode_labels(WORDS, column, "gold")


def test_decimals_are_numbers_or_refused():
    column = pa.array([Decimal(2), Decimal(1)], pa.decimal128(3, 1))
    try:
        assert positions(GRADES, column) == [1, 0]
    except BadInput as error:
        assert "labels" in str(error)  # noqa: PT017 - either answer will do, if it is clear


@pytest.mark.parametrize(
    "column",
    ["low", b"low", None, 5, {"low", "mid"}, {"low": 1}],
    ids=["text", "bytes", "None", "number", "set", "dict"],
)
def test_what_is_not_a_column_is_refused(column):
    with pytest.raises(BadInput, match="gold must be a column of labels"):
        encode_labels(WORDS, column, "gold")


@pytest.mark.parametrize("axes", [0, 2, 3])
def test_an_array_of_other_than_one_axis_is_refused(axes):
    with pytest.raises(BadInput, match=f"gold must be one column.* {axes} axes"):
        encode_labels(WORDS, np.full((1,) * axes, "low"), "gold")


def test_any_sequence_is_a_column():
    assert positions(WORDS, deque(["high", "low"])) == [2, 0]
    assert positions(GRADES, range(1, 7)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["U4", "i1", "i4", ">i4", "f4", "O"])
def test_reading_a_column_leaves_it_as_it_was(kind):
    column = np.array([3, 1, 2]).astype(kind)
    before = column.copy()
    positions(GRADES, column)
    assert (column == before).all()
    assert column.dtype == before.dtype
