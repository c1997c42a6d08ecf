"""A scale is found in ordered columns, or in the one preset that fits; else it is asked for."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ordinate.cli.flags import name_flag
from ordinate.errors import BadInput, BadScale, NoItems, name_options
from ordinate.scale import Scale, resolve_scale


def ordered_arrow(labels, codes=(0,)):
    indices = pa.array(codes, pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels), ordered=True)


class OnlyStream:
    """A column that has nothing but the Arrow protocol."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)


class OnlyArray:
    """A column that has nothing but NumPy's protocol."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


LEVELS = ["high", "low", "mid"]  # as if that were an order; no alphabet or appearance gives it
CARRIED = {
    "pandas series": lambda of: pd.Series(pd.Categorical(of[:1], of, ordered=True)),
    "pandas categorical": lambda of: pd.Categorical(of[1:], of, ordered=True),
    "pandas index": lambda of: pd.CategoricalIndex(of[1:], of, ordered=True),
    "pandas all missing": lambda of: pd.Series(pd.Categorical([None], of, ordered=True)),
    "polars enum": lambda of: pl.Series(of[1:], dtype=pl.Enum(of)),
    "polars empty enum": lambda of: pl.Series([], dtype=pl.Enum(of)),
    "arrow": ordered_arrow,
    "arrow chunks": lambda of: pa.chunked_array([ordered_arrow(of), ordered_arrow(of, [2, 1])]),
    "arrow stream": lambda of: OnlyStream(pa.chunked_array([ordered_arrow(of)])),
    "pandas arrow": lambda of: pd.Series(ordered_arrow(of), dtype=pd.ArrowDtype(
        pa.dictionary(pa.int8(), pa.string(), ordered=True))),
}  # fmt: skip
every_carrier = pytest.mark.parametrize("carrier", CARRIED.values(), ids=CARRIED)


def test_a_declared_scale_wins_over_the_columns():
    carried = CARRIED["polars enum"](LEVELS)
    assert resolve_scale("low,mid,high", carried, ["A1"]) == Scale.of("low,mid,high")
    assert resolve_scale("cefr", carried).preset == "cefr"
    assert resolve_scale([3, 1], carried).labels == (3, 1)
    scale = Scale(["x", "y"])
    assert resolve_scale(scale, carried) is scale


@every_carrier
def test_an_ordered_column_carries_its_scale(carrier):
    assert resolve_scale(None, carrier(LEVELS)).labels == tuple(LEVELS)


@every_carrier
def test_one_ordered_column_is_enough(carrier):
    assert resolve_scale(None, ["low", "mid"], carrier(LEVELS)).labels == tuple(LEVELS)


@every_carrier
def test_an_order_that_a_column_carries_wins_over_presets(carrier):
    reverse = ["positive", "neutral", "negative"]
    assert resolve_scale(None, carrier(reverse), ["negative"]).labels == tuple(reverse)


@every_carrier
def test_two_differently_ordered_columns_are_refused(carrier):
    with pytest.raises(BadScale, match=r"ordered differently: .* < .* and .* < .*\. Pass the"):
        resolve_scale(None, carrier(LEVELS), carrier(LEVELS[::-1]))
    assert resolve_scale(None, carrier(LEVELS), carrier(LEVELS)).labels == tuple(LEVELS)


def test_a_subset_of_the_levels_is_another_order():
    with pytest.raises(BadScale, match="low < mid and low < mid < high"):
        resolve_scale(
            None,
            CARRIED["polars enum"](["low", "mid"]),
            CARRIED["polars enum"](["low", "mid", "high"]),
        )


@pytest.mark.parametrize(
    "second", [["low", "high"], ["low", "mid", "high", "top"]], ids=["the other way", "more levels"]
)
def test_chunks_of_one_column_that_are_ordered_differently_are_refused(second):
    column = pa.chunked_array([ordered_arrow(["high", "low"]), ordered_arrow(second)])
    with pytest.raises(BadScale, match="ordered differently"):
        resolve_scale(None, column)


def test_an_ordered_column_without_chunks_has_no_items():
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    with pytest.raises(NoItems, match="There are no items: the columns are empty"):
        resolve_scale(None, pa.chunked_array([], type=kind))


def test_numbers_may_be_ordered_levels():
    column = pd.Series(pd.Categorical([1, 3], [3, 2, 1], ordered=True))
    assert resolve_scale(None, column).labels == (3, 2, 1)


COLUMNS = {
    "list": list,
    "array": np.array,
    "object array": lambda x: np.array(x, object),
    "pandas": pd.Series,
    "pandas object": lambda x: pd.Series(x, dtype=object),
    "pandas unordered category": lambda x: pd.Series(x, dtype="category"),
    "pandas unordered categorical": pd.Categorical,
    "polars": pl.Series,
    "polars categorical": lambda x: pl.Series(x, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunks": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "only a stream": lambda x: OnlyStream(pa.chunked_array([x])),
    "only an array": OnlyArray,
}
every_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)


@every_column
def test_words_of_exactly_one_preset_identify_it(column):
    assert resolve_scale(None, column(["B1", "A2", "B1"])).preset == "cefr"
    assert resolve_scale(None, column(["B1", "A2"]), column(["C2", "A2"])).preset == "cefr"


@every_column
def test_words_of_no_preset_are_refused_with_the_words_and_the_way_out(column):
    with pytest.raises(BadScale, match=r"the labels high, low\. .* scale='high,low'\."):
        resolve_scale(None, column(["low", "high", "low"]))


@every_column
def test_numbers_identify_no_scale(column):
    proposed = r"No scale was declared for the labels 1, 2, 3, 5\. .* scale='1\.\.5'\."
    with pytest.raises(BadScale, match=proposed):
        resolve_scale(None, column(["1", "2", "5"]), column(["3", "2", "1"]))


def test_numbers_that_are_too_many_for_levels_are_counted_and_led_to_regression():
    decimals = [f"{k / 8}" for k in range(60)]
    said = (
        r"labels 0\.0, .*, … \(60 in all\)\. .* for ordinate evaluate-regression and ordinate tune"
    )
    with pytest.raises(BadScale, match=said):
        resolve_scale(None, decimals)
    for few_or_whole in (decimals[:12], [str(k) for k in range(60)]):
        with pytest.raises(BadScale, match=r"presets, too: [^.]*\.$"):
            resolve_scale(None, few_or_whole)


@pytest.mark.parametrize(
    ("labels", "preset"),
    [
        (["A1"], "cefr"),
        (["A1", None, "", float("nan")], "cefr"),
        (["somewhat agree", "agree"], "likert7"),
        (["very positive", "negative"], "sentiment5"),
        (["very negative"], "sentiment5"),
    ],
)
def test_a_subset_of_words_is_enough_and_missing_labels_say_nothing(labels, preset):
    assert resolve_scale(None, labels) == Scale.of(preset)
    assert resolve_scale(None, labels).preset == preset


@pytest.mark.parametrize(
    ("labels", "presets"),
    [
        (["negative", "neutral", "positive"], "sentiment3, sentiment5"),
        (["agree", "disagree", "neutral"], "likert5, likert7"),
        (["neutral"], "likert5, likert7, sentiment3, sentiment5"),
    ],
)
def test_words_of_several_presets_are_refused(labels, presets):
    with pytest.raises(BadScale, match=rf"They fit more than one preset: {presets}\."):
        resolve_scale(None, labels)


@pytest.mark.parametrize("labels", [[1, 2, 3, 4, 5], np.array([1, 5]), pl.Series([3]), [True]])
def test_even_the_numbers_of_stars_identify_no_scale(labels):
    with pytest.raises(BadScale, match=r"No scale was declared for the labels [1-5T]"):
        resolve_scale(None, labels)


def test_missing_labels_identify_no_scale():
    with pytest.raises(BadScale, match=r"and there are no labels to see it by\. .*, such as"):
        resolve_scale(None, [None, ""])


@pytest.mark.parametrize("labels", [[], pl.Series([], dtype=pl.String)])
def test_without_items_there_is_no_question_of_a_scale(labels):
    with pytest.raises(NoItems, match="There are no items: the columns are empty"):
        resolve_scale(None, labels, labels)


def test_one_strange_word_identifies_no_scale():
    with pytest.raises(BadScale, match=r"for the labels A1, B3\. Declare all"):
        resolve_scale(None, ["A1", "B3"])


def test_the_proposal_of_a_scale_says_that_its_order_is_none():
    with pytest.raises(BadScale, match=r"by name, so put them in order: scale='high,low,mid'\."):
        resolve_scale(None, ["low", "mid", "high"])
    with pytest.raises(BadScale, match=r"Declare its lowest and highest: scale='2\.\.10'\."):
        resolve_scale(None, [10, 2])
    with (
        name_options(name_flag),
        pytest.raises(BadScale, match=r"Declare its lowest and highest: --scale 2\.\.10\."),
    ):
        resolve_scale(None, [10, 2])


def test_labels_that_cannot_be_levels_identify_no_scale():
    with pytest.raises(BadInput, match="values that are not hashable"):
        resolve_scale(None, ["A1", ["B1"]])


def test_at_most_twelve_labels_are_shown():
    with pytest.raises(
        BadScale, match=r"the labels a, b, c, d, e, f, g, h, i, j, k, l, … \(16 in all\)\. "
    ):
        resolve_scale(None, list("abcdefghijklmnop"))
