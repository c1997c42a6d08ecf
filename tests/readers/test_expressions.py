"""Expressions mean the same in SQL and in data frames."""

import sqlite3
from itertools import chain

import numpy as np
import polars as pl
import pytest

from ordinate.readers.databases import Query, QueryItems
from ordinate.readers.expressions import (
    Aggregate,
    choose,
    column,
    find_largest,
    join_by_or,
)
from ordinate.readers.frame_items import FrameItems

A, B, C = column("a"), column("b"), column("c")
ROWS = [(0, 0.25, 0.5, 0.25), (1, 1.0, -2.0, 1.0), (2, -3.0, -2.0, -1.0), (3, 7.0, 7.0, 7.0)]


def make_query(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("create table items (n integer, a real, b real, c real)")
    connection.executemany("insert into items values (?, ?, ?, ?)", rows)
    query = Query(connection, "select * from items")
    return QueryItems(query, {name: name for name in "nabc"})


def make_frame(rows):
    from narwhals.stable import v2 as narwhals

    frame = pl.DataFrame(rows, ["n", "a", "b", "c"], orient="row").lazy()
    return FrameItems(narwhals.from_native(frame), "the frame")


@pytest.fixture(params=[make_query, make_frame], ids=["SQL", "frame"])
def compute(request):
    def compute(expression, rows=ROWS, **columns):
        items = request.param(rows)
        items = items.add_columns(columns) if columns else items
        found = items.sum_by(["n"], {"x": Aggregate("sum", expression)})
        return found["x"][np.argsort(found["n"].astype(int))].tolist()

    return compute


def test_the_largest_of_numbers(compute):
    assert compute(find_largest([A, B, C])) == [0.5, 1.0, -1.0, 7.0]
    assert compute(find_largest([B])) == [0.5, -2.0, -2.0, 7.0]


def test_the_first_case_that_holds(compute):
    largest = find_largest([A, B, C])
    cases = [(x == largest, k) for k, x in enumerate((A, B, C))]
    assert compute(choose(*chain(*cases), 9)) == [1, 0, 2, 0]
    assert compute(choose(*chain(*cases[:2]), A > 100, 5, A < -2, 6, 9)) == [1, 0, 6, 0]
    assert compute(choose(A > 100, 5, 9)) == [9, 9, 9, 9]


def test_one_of_many_conditions(compute):
    assert compute(choose(join_by_or([A == 7, B == 0.5, C > 100]), 1, 0)) == [1, 0, 0, 1]


def test_columns_are_made_of_columns(compute):
    assert compute(column("d") - C, d=A + B) == [0.5, -2.0, -4.0, 7.0]
