"""Numbers are read from every library, and what is no number is refused with its row."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from moments_items import (
    assert_same,
    heavy,
)

from ordinate.errors import (
    BadInput,
    BadValues,
    UnequalLengths,
)
from ordinate.summaries import regression
from ordinate.summaries.regression import (
    Moments,
)
from ordinate.summaries.tabulation import convert_to_numbers

COLUMNS = {
    "list": list,
    "tuple": tuple,
    "integers": lambda x: np.array(x, np.int32),
    "small floats": lambda x: np.array(x, np.float32),
    "strided": lambda x: np.repeat(x, 2).astype(float)[::2],
    "one column of two axes": lambda x: np.array(x, float)[:, None],
    "objects": lambda x: np.array(x, object),
    "decimals": lambda x: [Decimal(v) for v in x],
    "fractions": lambda x: [Fraction(v) for v in x],
    "pandas": pd.Series,
    "pandas nullable": lambda x: pd.Series(x, dtype="Int64"),
    "pandas frame": lambda x: pd.DataFrame({"y": x}),
    "polars": pl.Series,
    "polars small": lambda x: pl.Series(x, dtype=pl.Float32),
    "arrow": pa.array,
    "arrow chunks": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "arrow decimals": lambda x: pa.array([Decimal(v) for v in x]),
    "masked": lambda x: np.ma.masked_array(x, [False] * len(x)),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_is_read(kind):
    column = COLUMNS[kind]
    found = Moments.of(column([3, 1, 2]), column([4, 1, 0]))
    assert_same(found, Moments.of([3.0, 1.0, 2.0], [4.0, 1.0, 0.0]))


MISSING = {
    "list": [1.0, None, 3.0],
    "floats": np.array([1.0, np.nan, 3.0]),
    "masked": np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]),
    "pandas nullable": pd.Series([1, None, 3], dtype="Int64"),
    "pandas arrow": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "pandas objects": pd.Series([1, pd.NA, 3], dtype=object),
    "polars": pl.Series([1, None, 3]),
    "arrow": pa.array([1, None, 3]),
    "arrow floats": pa.array([1.5, None, 3.0]),
    "too many digits": [1, 10**400, 3],
}


@pytest.mark.parametrize("kind", MISSING)
def test_what_is_missing_is_named_with_its_row(kind):
    with pytest.raises(BadValues, match=r"target of row 2 is (nan|inf), not a finite number"):
        Moments.of(MISSING[kind], [1.0, 2.0, 3.0])
    with pytest.raises(BadValues, match=r"prediction of row 2 is (nan|inf), not a finite number"):
        Moments.of([1.0, 2.0, 3.0], MISSING[kind])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 8, 9, 24])
def test_no_chunk_hides_a_bad_value(monkeypatch, bad, row):
    monkeypatch.setattr(regression, "ROWS_PER_BLOCK", 3)
    monkeypatch.setattr(regression, "ROWS_PER_SUM", 9)
    y, p = heavy(25)
    y[row] = bad
    with pytest.raises(BadValues, match=f"target of row {row + 1} is {bad}"):
        Moments.of(y, p)
    with pytest.raises(BadValues, match=f"prediction of row {row + 1} is {bad}"):
        Moments.of(p, y, np.arange(25) + 1.0)


def test_infinities_of_both_signs_are_named_too():
    with pytest.raises(BadValues, match="target of row 1 is inf"):
        Moments.of([np.inf, 1, 2], [1, -np.inf, np.inf])


@pytest.mark.parametrize(
    "column",
    [
        ["1", "2"],
        np.array(["1", "2"], object),
        pd.Series(["1", "2"]),
        pl.Series(["1", "2"]),
        pa.array(["1", "2"]),
        [1.0, "2"],
        np.array([1 + 2j, 0j]),
        np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
        [[1.0], [2.0, 3.0]],
        {"a": 1},
        "12",
        [object(), object()],
    ],
    ids=lambda column: type(column).__name__,
)
def test_what_is_no_number_is_refused(column):
    with pytest.raises(BadValues, match="targets must be numbers"):
        Moments.of(column, [1.0, 2.0])


def test_a_text_among_numbers_is_named():
    with pytest.raises(BadValues, match="row 2 is 'x'"):
        convert_to_numbers(np.array([1.0, "x"], object), "targets")


@pytest.mark.parametrize("values", [np.ones((2, 2)), np.ones((2, 1, 1)), 3.0], ids=str)
def test_one_column_is_one_axis(values):
    with pytest.raises(BadInput, match="one column of numbers"):
        Moments.of(values, [1.0, 2.0])


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(UnequalLengths, match="2 targets and 3 predictions"):
        Moments.of([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("size", [1e71, 1e160, 1e200, 1e308])
@pytest.mark.parametrize("order", [2, 4])
def test_values_that_cannot_be_squared_are_refused_not_lost(size, order):
    with pytest.raises(BadValues, match="too large to be squared twice"):
        Moments.of([size, -size, 0.0], [0.0, 1.0, -size], order=order)
    with pytest.raises(BadValues, match="too large"):
        Moments.of([1.0, 2.0], [size, 1.0], [1e-70, 1.0], order=order)
    with pytest.raises(BadValues, match="too small to be squared twice"):
        Moments.of([1 / size, 0.0], [0.0, 0.0], order=order)
    with pytest.raises(BadValues, match="too small"):
        Moments.of([0.0, 0.0], [0.0, 1 / size], order=order)


def test_a_tiny_error_among_others_is_no_problem():
    table = Moments.of([0.0, 1.0, 2.0], [1e-200, 1.0, 2.5])
    assert float(table.squares) == 0.25
    assert float(Moments.of([0.0, 5.0], [1e-200, 5.0]).largest) == 1e-200
