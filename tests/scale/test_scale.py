"""A scale is what was declared: order, positions and names; never what happened to be seen."""

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinate.errors import BadScale
from ordinate.scale import PRESETS, Scale

SIZES = {"cefr": 6, "likert5": 5, "likert7": 7, "stars5": 5, "sentiment3": 3, "sentiment5": 5}


# --- labels --------------------------------------------------------------------------------------


def test_labels_keep_the_declared_order():
    scale = Scale(["zebra", "ant", "mole"])
    assert scale.labels == ("zebra", "ant", "mole")
    assert len(scale) == 3
    assert str(scale) == "zebra < ant < mole"


@pytest.mark.parametrize(
    "labels",
    [
        ["low", "high"],
        ("low", "high"),
        np.array(["low", "high"]),
        iter(["low", "high"]),
        pd.Series(["low", "high"]),
        pl.Series(["low", "high"]),
    ],
    ids=["list", "tuple", "array", "iterator", "pandas", "polars"],
)
def test_labels_come_from_any_iterable(labels):
    assert Scale(labels) == Scale.of("low,high")


def test_labels_of_numpy_become_python_values():
    labels = Scale(np.array([1, 2], np.int8)).labels
    assert labels == (1, 2)
    assert [type(label) for label in labels] == [int, int]


def test_labels_may_be_of_any_hashable_type():
    labels = [("mild", 1), ("severe", 2), frozenset({3}), Fraction(7, 2)]
    assert Scale(labels).labels == tuple(labels)


@pytest.mark.parametrize("labels", [[], ["only"], [1]])
def test_fewer_than_two_labels_order_nothing(labels):
    with pytest.raises(BadScale, match=f"at least two levels.* has {len(labels)}"):
        Scale(labels)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a"],
        [1, 2, "1"],
        [1, 2, 1.0],
        ["3", 3.0],
        [np.int8(3), "3"],
        [Fraction(3), 3],
        [0, 1, True],
        [0.0, False],
    ],
    ids=repr,
)
def test_a_label_on_the_scale_twice_is_refused(labels):
    with pytest.raises(BadScale, match="on the scale twice"):
        Scale(labels)


@pytest.mark.parametrize("label", [["x"], {"x": 1}, {1}])
def test_unhashable_labels_are_refused(label):
    with pytest.raises(BadScale, match="is not hashable"):
        Scale(["low", label])


@pytest.mark.parametrize(
    "label",
    [None, float("nan"), "", pd.NA, pd.NaT, np.float32("nan"), np.float64("nan")],
    ids=["None", "nan", "empty", "NA", "NaT", "float32 nan", "float64 nan"],
)
def test_what_means_missing_cannot_be_a_label(label):
    with pytest.raises(BadScale, match="means a missing label"):
        Scale(["low", label, "high"])


def test_texts_that_look_missing_are_labels():
    assert Scale(["NA", "None", "nan", " "]).labels == ("NA", "None", "nan", " ")


# --- what a text declares ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_a_preset_is_known_by_its_name(name):
    scale = Scale.of(name)
    assert scale.preset == name
    assert scale.labels == PRESETS[name]
    assert len(scale) == SIZES[name]
    assert scale.equal_steps


def test_every_preset_is_covered():
    assert set(SIZES) == set(PRESETS)


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("cefr", "A1", "C2"),
        ("likert5", "strongly disagree", "strongly agree"),
        ("likert7", "strongly disagree", "strongly agree"),
        ("stars5", 1, 5),
        ("sentiment3", "negative", "positive"),
        ("sentiment5", "very negative", "very positive"),
    ],
)
def test_presets_run_from_lowest_to_highest(name, lowest, highest):
    labels = Scale.of(name).labels
    assert (labels[0], labels[-1]) == (lowest, highest)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1..6", (1, 2, 3, 4, 5, 6)),
        ("-2..2", (-2, -1, 0, 1, 2)),
        ("6..1", (6, 5, 4, 3, 2, 1)),
        ("2..-2", (2, 1, 0, -1, -2)),
        ("-5..-3", (-5, -4, -3)),
        (" 0 .. 1 ", (0, 1)),
        ("low,mid,high", ("low", "mid", "high")),
        (" low , mid,  high ", ("low", "mid", "high")),
        ('"so, so",good', ("so, so", "good")),
        ("1,2,5", ("1", "2", "5")),
        ("a..b,c", ("a..b", "c")),
        ("gering,mäßig,groß", ("gering", "mäßig", "groß")),
    ],
)
def test_a_text_declares_a_range_or_a_list(text, labels):
    scale = Scale.of(text)
    assert scale.labels == labels
    assert scale.preset is None
    assert scale.positions.tolist() == list(range(len(labels)))


@given(low=st.integers(-149, 150), high=st.integers(-149, 150))
def test_a_range_has_both_ends_and_every_integer_between(low, high):
    if low == high:
        with pytest.raises(BadScale, match="at least two levels"):
            Scale.of(f"{low}..{high}")
        return
    labels = Scale.of(f"{low}..{high}").labels
    assert (labels[0], labels[-1]) == (low, high)
    assert sorted(labels) == list(range(min(low, high), max(low, high) + 1))


def test_more_than_300_levels_are_a_quantity():
    assert len(Scale.of("1..300")) == 300
    for declared in ("0..300", "1000000..-1000000", "1..1000000000", f"1..{10**90}"):
        with pytest.raises(BadScale, match="More than 300 levels are a quantity"):
            Scale.of(declared)
    with pytest.raises(BadScale, match="More than 300 levels are a quantity"):
        Scale(range(10**12))


@pytest.mark.parametrize(
    "declare",
    [
        lambda digits: Scale.of(f"1..{digits}"),
        lambda digits: Scale([1, 10 ** len(digits)]),
        Scale.of,
    ],
)
def test_a_number_of_5000_digits_is_no_level_and_no_bound(declare):
    with pytest.raises(BadScale, match=r"is not a scale|too long"):
        declare("7" * 5000)


def test_a_set_declares_no_order():
    with pytest.raises(BadScale, match="A set has no order"):
        Scale({"low", "high"})
    with pytest.raises(BadScale, match="A set has no order"):
        Scale.of(frozenset({"low", "high"}))


def test_a_scale_is_its_own_declaration():
    scale = Scale(["a", "b"], positions=[0, 5], names=["A", "B"])
    assert Scale.of(scale) is scale


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("cerf", "'cefr'"), ("likert", "'likert5' or 'likert7'"), ("sentiment", "'sentiment"),
     ("star5", "'stars5'")],
)  # fmt: skip
def test_an_unknown_name_suggests_the_nearest_presets(text, suggestion):
    with pytest.raises(BadScale, match=f"'{text}' is not a scale.*Did you mean {suggestion}"):
        Scale.of(text)


@pytest.mark.parametrize("text", ["", "1..x", "1...6", "word", "1.5..3"])
def test_a_text_that_declares_nothing_shows_how_to_declare(text):
    with pytest.raises(BadScale, match=r"is not a scale: name a preset .* 1\.\.6.*low,mid,high"):
        Scale.of(text)


def test_an_unknown_name_like_no_preset_suggests_nothing():
    with pytest.raises(BadScale, match=r"'xyzzy' is not a scale.*'low,mid,high'\.$"):
        Scale.of("xyzzy")


@pytest.mark.parametrize("text", ["low,", "low,,high", ",high"])
def test_an_empty_label_in_a_list_is_refused(text):
    with pytest.raises(BadScale, match="'' means a missing label"):
        Scale.of(text)


@pytest.mark.parametrize("text", ["low\nmid,high", "low\rmid,high"])
def test_a_list_over_several_lines_is_refused_as_a_scale(text):
    with pytest.raises(BadScale, match="is not a scale"):
        Scale.of(text)


# --- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[1, 2, 5], [10, 20, 1000], ["1", "2", "5"], [-1, 0, 7.5]])
def test_numeric_labels_do_not_imply_gaps(labels):
    scale = Scale(labels)
    assert scale.positions.tolist() == [0, 1, 2]
    assert scale.gaps.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert scale.equal_steps


def test_declared_positions_make_gaps_and_span_but_not_steps():
    scale = Scale(["mild", "severe", "fatal"], positions=[-1, 0.5, 10])
    assert scale.at == (-1.0, 0.5, 10.0)
    assert scale.positions.tolist() == [-1, 0.5, 10]
    assert scale.gaps.tolist() == [[0, 1.5, 11], [1.5, 0, 9.5], [11, 9.5, 0]]
    assert scale.steps.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert scale.span == 11
    assert not scale.equal_steps
    assert "positions=[-1.0, 0.5, 10.0]" in repr(scale)


def test_positions_are_equal_steps_only_from_zero_by_one():
    assert Scale(["a", "b"], positions=[0, 1]).equal_steps
    assert not Scale(["a", "b"], positions=[1, 2]).equal_steps
    assert not Scale(["a", "b"], positions=[0, 2]).equal_steps


@given(st.lists(st.decimals(-(10**6), 10**6, places=3), min_size=2, max_size=8, unique=True))
def test_gaps_are_the_distances_between_positions(at):
    scale = Scale(range(len(at)), positions=sorted(at))
    expected = [[abs(x - y) for y in scale.at] for x in scale.at]
    assert scale.gaps.tolist() == expected
    assert scale.span == scale.gaps.max() == scale.gaps[0, -1]


@given(st.integers(2, 30))
def test_steps_count_levels(size):
    scale = Scale(range(size), positions=np.arange(size) ** 2.0)
    assert scale.steps.tolist() == [[abs(i - j) for j in range(size)] for i in range(size)]
    assert scale.steps.dtype.kind == "i"


@pytest.mark.parametrize(
    "positions",
    [
        [0, 1],
        [0, 1, 2, 3],
        [0, 0, 1],
        [0, 2, 1],
        [2, 1, 0],
        [0, 1, np.inf],
        [-np.inf, 0, 1],
        [0, np.nan, 1],
        [0, 1, np.nan],
        [0, 1, 1e200],  # whose squares are no numbers
        [0, 1e-200, 1],
        [],
    ],
    ids=str,
)
def test_positions_that_do_not_rise_with_the_levels_are_refused(positions):
    with pytest.raises(BadScale, match=r"Positions must be 3 numbers .* that rise"):
        Scale(["a", "b", "c"], positions=positions)


@pytest.mark.parametrize("positions", [["x", "y", "z"], [0, None, 1], [0, [1], 2]], ids=str)
def test_positions_that_are_no_numbers_are_refused(positions):
    with pytest.raises(BadScale, match="Positions must be 3 numbers"):
        Scale(["a", "b", "c"], positions=positions)


# --- names, equality, immutability ---------------------------------------------------------------


def test_labels_are_shown_as_they_are_unless_names_are_given():
    assert Scale([1, 2]).names == ("1", "2")
    assert Scale([1, 2], names=["one", "two"]).names == ("one", "two")


@pytest.mark.parametrize("names", [["one"], ["one", "two", "three"], []])
def test_display_names_must_be_one_for_each_level(names):
    with pytest.raises(BadScale, match=f"{len(names)} display names for 2 levels"):
        Scale([1, 2], names=names)


def test_scales_are_equal_by_labels_and_positions_not_by_what_is_shown():
    assert Scale.of("cefr") == Scale(PRESETS["cefr"], names=list("abcdef"))
    assert hash(Scale.of("cefr")) == hash(Scale(PRESETS["cefr"], names=list("abcdef")))
    assert Scale(["a", "b"]) == Scale(["a", "b"], positions=[0, 1])
    assert Scale(["a", "b"]) != Scale(["b", "a"])
    assert Scale(["a", "b"]) != Scale(["a", "b"], positions=[0, 2])
    assert Scale(["a", "b"]) != Scale(["a", "b", "c"])
    assert Scale(["a", "b"]) != ("a", "b")


@pytest.mark.parametrize("name", ["labels", "at", "names", "preset", "span", "new"])
def test_a_scale_cannot_be_assigned_to(name):
    scale = Scale(["a", "b"])
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(scale, name, None)


@pytest.mark.parametrize("name", ["positions", "gaps", "steps"])
def test_arrays_of_a_scale_cannot_be_written(name):
    values = getattr(Scale(["a", "b"]), name)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 7


def test_a_scale_does_not_follow_the_list_that_it_came_from():
    labels, positions = ["a", "b"], [0, 3]
    scale = Scale(labels, positions=positions)
    labels.append("c")
    positions[1] = 9
    assert scale == Scale(["a", "b"], positions=[0, 3])
