"""Columns of labels are read in chunks of any shape, and hold their memory as long as needed."""

import gc
from collections import deque
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_columns import (
    GRADES,
    WORDS,
    OnlyStream,
    arrow_of,
    dictionary,
    expected,
    many,
    positions,
    split,
    string,
    string_view,
)

from ordinate.errors import BadInput
from ordinate.scale.encoding import encode_labels

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
def test_codes_outlive_the_stream_and_give_its_memory_back(make, labels):
    gc.collect()
    before = pa.total_allocated_bytes()
    codes = encode_labels(GRADES, OnlyStream(lambda: split(labels * 40_000, make)))
    gc.collect()
    other = pa.array(range(1_000_000))  # takes memory that was given back too early
    found = codes.levels[np.concatenate([codes.chunk(0, 60_000), codes.chunk(60_000, 120_000)])]
    wanted = [6 if label is None else int(label) - 1 for label in labels]
    assert len(codes) == 120_000
    assert (found == np.array(wanted * 40_000)).all()
    del codes, found, other
    gc.collect()
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
