"""The door of probabilities: tables of any kind, in the order of the scale, and every bad row."""

import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from naive_probabilities import probability_rows

from ordinate.errors import BadProbabilities, OrdinateError, UnequalLengths
from ordinate.scale import Scale
from ordinate.summaries import probabilities as door
from ordinate.summaries.probabilities import (
    arrange_columns,
    build_probability_array,
    check_same_rows,
    find_most_probable_labels,
    match_columns_to_levels,
)

SCALE = Scale.of("low,mid,high")
ROWS = [[0.2, 0.3, 0.5], [0.1, 0.15, 0.75]]
MIXED = ("p_high", "p_low", "p_mid")
BY_NAME = {"p_high": [0.5, 0.75], "p_low": [0.2, 0.1], "p_mid": [0.3, 0.15]}


def read(probabilities, scale=SCALE, **options):
    if isinstance(probabilities, (list, np.ndarray, torch.Tensor)):
        options.setdefault("columns", "scale")
    return build_probability_array(scale, probabilities, **options).tolist()


# --- tables of any kind --------------------------------------------------------------------------

KINDS = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas with its own nulls": lambda x: pd.DataFrame(x).convert_dtypes(),
    "pandas on Arrow": lambda x: pd.DataFrame(x).astype("double[pyarrow]"),
    "Polars": pl.DataFrame,
    "lazy Polars": pl.LazyFrame,
    "Arrow": pa.table,
    "an Arrow batch": lambda x: pa.table(x).to_batches()[0],
    "dict of Series": lambda x: {key: pd.Series(column) for key, column in x.items()},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_of_a_frame_are_found_by_their_names(kind):
    assert read(KINDS[kind](BY_NAME)) == ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_names_without_a_prefix_do_too(kind):
    assert read(KINDS[kind]({key[2:]: column for key, column in BY_NAME.items()})) == ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_say_nothing_are_refused(kind):
    frame = KINDS[kind](dict(zip(("x", "y", "z"), BY_NAME.values(), strict=True)))
    with pytest.raises(BadProbabilities, match="'x, y, z' do not say which levels of low < mid"):
        read(frame)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "dict of Series"])
def test_an_empty_cell_is_refused_with_its_row(kind):
    holed = BY_NAME | {"p_mid": [0.3, None]}
    with pytest.raises(
        BadProbabilities, match=r"row 2, '\[0\.1, nan, 0\.75\]', are not all finite"
    ):
        read(KINDS[kind](holed))


ARRAYS = {
    "lists": lambda x: x,
    "float64": np.array,
    "tensor": lambda x: torch.tensor(x, dtype=torch.float64),
    "tensor of a training": lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True),
    "decimals": lambda x: [[Decimal(str(p)) for p in row] for row in x],
    "objects": lambda x: np.array(x, dtype=object),
    "Fortran": lambda x: np.asfortranarray(np.array(x)),
    "no mask": np.ma.array,
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_the_columns_of_an_array_are_in_the_order_of_the_scale(kind):
    assert read(ARRAYS[kind](ROWS)) == ROWS
    mixed = [[row[2], row[0], row[1]] for row in ROWS]
    assert read(ARRAYS[kind](mixed), columns=MIXED) == ROWS
    assert read(ARRAYS[kind](mixed), columns=np.array(["high", "low", "mid"])) == ROWS


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float16, np.float32, np.longdouble])
def test_certainty_may_be_told_in_any_kind_of_number(kind):
    assert read(np.array([[0, 1, 0]], dtype=kind)) == [[0, 1, 0]]


def test_a_masked_cell_is_no_number():
    with pytest.raises(BadProbabilities, match=r"row 1, '\[0\.2, nan, 0\.5\]'"):
        read(np.ma.array([[0.2, 0.3, 0.5]], mask=[[0, 1, 0]]))


def test_columns_that_say_the_order_win_over_the_names_of_a_frame():
    frame = pd.DataFrame([[0.5, 0.2, 0.3]], columns=["x", "y", "z"])
    assert read(frame, columns=["high", "low", "mid"]) == [ROWS[0]]


def test_an_empty_table_has_no_rows():
    assert read(np.empty((0, 3))) == []


# --- names ---------------------------------------------------------------------------------------


@given(st.permutations(range(6)), st.text(max_size=4))
def test_any_prefix_and_any_order_are_understood(order, prefix):
    scale = Scale.of("cefr")
    names = [prefix + str(scale.labels[k]) for k in order]
    assert [order[k] for k in match_columns_to_levels(scale, names)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("labels", ["0..10", "1,10,100", "a,aa,aaa", "L1,L2,L3"])
def test_labels_that_start_alike_are_told_apart(labels):
    scale = Scale.of(labels)
    for prefix in ("", "p", "p_", "p_1"):
        names = [f"{prefix}{label}" for label in scale.labels[::-1]]
        assert match_columns_to_levels(scale, names) == list(range(len(scale)))[::-1]


def test_levels_may_stand_among_other_words():
    assert match_columns_to_levels(SCALE, ["high risk", "mid", "is low"]) == [2, 1, 0]


def test_numbers_name_levels_where_levels_are_numbers():
    assert read(pd.DataFrame([[0.7, 0.3]], columns=[2, 1]), Scale.of("1..2")) == [[0.3, 0.7]]
    assert read(pd.DataFrame([[0.7, 0.3]]), Scale.of("1..2")) == [[0.7, 0.3]]  # without names


@pytest.mark.parametrize(
    "names",
    [
        ("low", "low", "mid"),
        ("low", "other"),
        ("low", "mid", "high", "other"),
        ("p_low", "mid", "high"),
        ("Low", "Mid", "High"),
        ("p_low", "q_mid", "p_high"),
        ("is low", "no high"),
        ("low", "very low", "high"),
        ("low or mid", "mid", "high"),
    ],
    ids=" ".join,
)
def test_names_that_do_not_name_levels_once_are_refused(names):
    with pytest.raises(BadProbabilities, match="do not say which levels"):
        match_columns_to_levels(SCALE, names)


# --- what is no probability ----------------------------------------------------------------------

BAD = {
    "not 1": ([0.2, 0.3, 0.4], "row 3, '[0.2, 0.3, 0.4]', sum to 0.9, not to 1. Is there"),
    "twice": ([0.4, 0.6, 1.0], "row 3, '[0.4, 0.6, 1]', sum to 2"),
    "negative": ([-0.1, 0.6, 0.5], "row 3, '[-0.1, 0.6, 0.5]', are not all at least 0"),
    "a little negative": ([-1e-9, 0.5, 0.5 + 1e-9], "row 3, '[-1e-09, 0.5, 0.5]', are not all at"),
    "nan": ([0.2, math.nan, 0.5], "row 3, '[0.2, nan, 0.5]', are not all finite"),
    "inf": ([math.inf, 0, 0], "row 3, '[inf, 0, 0]', are not all finite"),
    "opposite": ([math.inf, -math.inf, 1], "row 3, '[inf, -inf, 1]', are not all finite"),
    "nothing": ([0, 0, 0], "row 3, '[0, 0, 0]', sum to 0"),
}


@pytest.mark.parametrize("why", BAD)
@pytest.mark.parametrize("renormalize", [False, True])
def test_a_row_that_is_no_distribution_is_named(why, renormalize):
    row, told = BAD[why]
    told = told.partition(" Pass")[0] if renormalize else told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BadProbabilities) as refused:
            read([*ROWS, row, row], renormalize=renormalize)
    assert told in str(refused.value)
    assert ("a column for each level" in str(refused.value)) == ("sum to" in told)


def test_a_sum_that_is_off_by_little_is_shown_with_the_digits_that_matter():
    with pytest.raises(BadProbabilities, match=r"sum to 1\.000002, not to 1"):
        read([[0.2, 0.3, 0.500002]])


@pytest.mark.parametrize(
    ("off", "strict", "loose"),
    [(9e-7, True, True), (2e-6, False, True), (1.49e-2, False, True), (1.51e-2, False, False)],
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_how_far_from_1_a_sum_may_be(off, strict, loose, sign):
    row = [0.25, 0.25, 0.5 + sign * off]
    for renormalize, fine in ((False, strict), (True, loose)):
        if fine:
            (found,) = read([row], renormalize=renormalize)
            wanted = [p / sum(row) for p in row] if renormalize else row
            assert found == pytest.approx(wanted, abs=1e-15)
        else:
            with pytest.raises(BadProbabilities, match="row 1"):
                read([row], renormalize=renormalize)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([0.2, 0.3, 0.5], "not 1 axes"),
        ([], "not 1 axes"),
        (None, "not 0 axes"),
        (np.zeros((2, 3, 1)), "not 3 axes"),
        (pd.Series([0.5, 0.5]), "not 1 axes"),
        ({}, "not 1 axes"),
        ({"low": 0.2, "mid": 0.3, "high": 0.5}, "not 1 axes"),
        ([[0.2, 0.8]], "2 columns of probabilities for the 3 levels low < mid < high"),
        ([[0.2, 0.3, 0.3, 0.2]], "4 columns of probabilities for the 3 levels"),
        ([[0.2, 0.3, 0.5], [1.0]], "not rows of other lengths"),
        ({"low": [0.2, 0.3], "mid": [0.3], "high": [0.5]}, "not rows of other lengths"),
        ([["0.2", "0.3", "0.5"]], "row 1, '0.2, 0.3, 0.5', are not all numbers"),
        ([[0.2, 0.3, 0.5], [0.2, "x", 0.5]], "row 2, .* are not all numbers"),
        (np.array([[0.2 + 0j, 0.3, 0.5]]), "row 1, .* are not all numbers"),
        (np.array([["2020", "2021", "2022"]], "M8[Y]"), "row 1, .* are not all numbers"),
        (pd.DataFrame({"low": ["a"], "mid": [0.5], "high": [0.5]}), "row 1, .* not all numbers"),
    ],
    ids=str,
)
def test_what_is_no_table_of_numbers_is_refused(given, told):
    with pytest.raises(BadProbabilities, match=told):
        read(given)


def test_the_row_is_that_of_the_table_and_not_of_the_chunk():
    rows = np.full((2 * door.ROWS_PER_BLOCK + 7, 3), 1 / 3)
    rows[door.ROWS_PER_BLOCK + 2] = 0.5
    with pytest.raises(BadProbabilities, match=f"row {door.ROWS_PER_BLOCK + 3},"):
        read(rows)


def test_gold_and_rows_must_be_as_many():
    with pytest.raises(UnequalLengths, match="2 gold labels and 3 rows of probabilities"):
        check_same_rows(["low", "mid"], np.zeros((3, 3)))


# --- the most probable level ---------------------------------------------------------------------


@given(st.integers(1, 20).flatmap(lambda n: probability_rows(3, n)))
def test_the_most_probable_level_is_the_lowest_of_equals(rows):
    wanted = [SCALE.labels[row.index(max(row))] for row in rows]
    values = arrange_columns(SCALE, rows, "scale")
    assert find_most_probable_labels(SCALE, values).tolist() == wanted
    named = {f"p_{label}": [row[k] for row in rows] for k, label in enumerate(SCALE.labels)}
    backwards = dict(reversed(named.items()))
    assert arrange_columns(SCALE, pd.DataFrame(backwards)).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        (["low", "mid", "high"], False),
        (["1", "2", "10"], False),
        ([3, 2, 1], False),
        (["A1", "A2", "B1"], True),
        ([1, 2, 10], True),
        ([0.5, 2, 10], True),
    ],
)
def test_columns_without_names_are_taken_where_sorting_the_labels_gives_the_order(labels, taken):
    scale, rows = Scale(labels), [[0.2, 0.3, 0.5]]
    assert arrange_columns(scale, {x: [0.2] for x in labels}).tolist() == [[0.2, 0.2, 0.2]]
    assert arrange_columns(scale, rows, "scale").tolist() == rows
    if taken:
        assert arrange_columns(scale, rows).tolist() == rows
        return
    line = r'columns=model\.classes_, or columns="scale"'
    for table in (rows, pd.DataFrame(rows), torch.tensor(rows)):
        with pytest.raises(BadProbabilities, match=line):
            arrange_columns(scale, table)


def test_labels_are_sorted_by_the_type_that_they_have_in_gold():
    scale, rows = Scale.of("8..10"), [[0.2, 0.3, 0.5]]
    assert arrange_columns(scale, rows, gold=[8, 10]).tolist() == rows
    assert arrange_columns(Scale.of("8,9,10"), rows, gold=np.array([8, 10])).tolist() == rows
    for gold in (["8", "10"], pd.Series(["8", None]), pd.Categorical(["8", "10"])):
        with pytest.raises(BadProbabilities, match="sorts the labels: 10, 8, 9"):
            arrange_columns(scale, rows, gold=gold)


def test_a_level_without_a_column_has_the_probability_0():
    rows = [[0.7, 0.3]]
    assert arrange_columns(SCALE, rows, ["high", "low"]).tolist() == [[0.3, 0.0, 0.7]]
    assert arrange_columns(SCALE, {"p_mid": [0.7], "p_low": [0.3]}).tolist() == [[0.3, 0.7, 0.0]]
    for columns, reason in ((None, "2 columns"), (["low"], "1 are named"), ("scal", "neither")):
        with pytest.raises(OrdinateError, match=reason):
            arrange_columns(SCALE, rows, columns)


@pytest.mark.parametrize(
    "row",
    [(0.5, 0.49), (0.5, 0.51), (0.33, 0.33, 0.33), (0.7, 0.31), (0.04, 0.04, 0.3, 0.3, 0.3)],
)
def test_renormalize_takes_rows_that_were_rounded_to_two_decimals(row):
    """Rows that summed to .99 and 1.01 were refused, by a comparison of floats."""
    scale = Scale(range(len(row)))
    assert np.sum(read([row], scale, renormalize=True)) == pytest.approx(1.0)
    assert np.sum(read(np.array([row], np.float32), scale, renormalize=True)) == pytest.approx(1.0)


@pytest.mark.parametrize("row", [(0.5, 0.48), (0.5, *[0.0] * 98, 0.44), [0.0] * 300])
def test_renormalize_takes_no_row_that_rounding_does_not_explain(row):
    with pytest.raises(BadProbabilities, match="not to 1"):
        read([row], Scale(range(len(row))), renormalize=True)


@given(levels=st.integers(2, 10), seed=st.integers(0, 2**32 - 1))
def test_every_row_is_taken_once_it_is_rounded(levels, seed):
    row = np.random.default_rng(seed).dirichlet(np.ones(levels)).round(2)
    assert np.sum(read([row], Scale(range(levels)), renormalize=True)) == pytest.approx(1.0)
