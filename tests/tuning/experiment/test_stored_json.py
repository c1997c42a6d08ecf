"""Stored JSON: what is written is what is read, and whatever is not of its type is refused."""

import json
from dataclasses import dataclass, field
from types import NoneType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinate.errors import BadOption, BadStore
from ordinate.tuning.experiment.stored_json import (
    DISTINCT,
    at_least,
    decode,
    encode,
    parse_json,
    read_json,
)


class Size(TypedDict):
    rows: int
    columns: NotRequired[int]


@dataclass(frozen=True)
class Member:
    name: str
    weight: float
    seeds: tuple[int, ...] = ()

    def __post_init__(self):
        if not self.name:
            raise BadOption("A member has a name.")


@dataclass(frozen=True)
class Stored:
    title: str
    method: Literal["mean", "vote"]
    count: Annotated[int, at_least(0)]
    share: float
    limit: int | float
    final: bool
    unit: str | None
    span: tuple[int, float]
    names: Annotated[tuple[str, ...], DISTINCT]
    members: list[Member]
    sizes: dict[str, Size]
    best: Member | None
    params: dict[str, Any] = field(default_factory=dict)


texts, numbers = st.text(), st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)
members = st.builds(Member, st.text(min_size=1), numbers, st.lists(st.integers()).map(tuple))
sizes = st.fixed_dictionaries({"rows": st.integers()}, optional={"columns": st.integers()})
stored = st.builds(
    Stored,
    title=texts,
    method=st.sampled_from(["mean", "vote"]),
    count=st.integers(min_value=0),
    share=numbers,
    limit=st.integers() | numbers,
    final=st.booleans(),
    unit=st.none() | texts,
    span=st.tuples(st.integers(), numbers),
    names=st.lists(texts, min_size=1, unique=True).map(tuple),
    members=st.lists(members, max_size=3),
    sizes=st.dictionaries(texts, sizes, max_size=3),
    best=st.none() | members,
    params=st.dictionaries(texts, plain, max_size=3),
)


@given(stored)
def test_what_is_encoded_is_decoded_to_the_same(value):
    text = json.dumps(encode(value), allow_nan=False)
    found = decode(parse_json(text), Stored, "here")
    assert found == value
    assert type(found.limit) is type(value.limit)


@given(stored, plain, st.data())
def test_a_changed_value_is_refused_or_has_the_declared_type(value, other, data):
    document = encode(value)
    holder = document
    while True:  # walk to any place of the document
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        holder = inner
    holder[key] = other
    try:
        found = decode(document, Stored, "here")
    except BadStore as problem:
        found = str(problem)
    if isinstance(found, str):
        assert found.startswith("here: ")
        assert "\n" not in found
    else:
        assert_declared_types(found)


def assert_declared_types(found):
    assert type(found.title) is str
    assert found.method in {"mean", "vote"}
    assert type(found.count) is int
    assert found.count >= 0
    assert type(found.share) is float
    assert type(found.limit) in {int, float}
    assert type(found.final) is bool
    assert type(found.unit) in {str, NoneType}
    assert [type(x) for x in found.span] == [int, float]
    assert {type(x) for x in found.names} == {str}
    for member in [*found.members, *([] if found.best is None else [found.best])]:
        assert (type(member.name), type(member.weight)) == (str, float)
        assert {type(seed) for seed in member.seeds} <= {int}
    assert {type(size["rows"]) for size in found.sizes.values()} <= {int}
    assert type(found.params) is dict


MEMBER = {"name": "a", "weight": 1}


@pytest.mark.parametrize(
    ("form", "value", "told"),
    [
        (list[int], "x", "it must be a list of integers, got 'x'"),
        (dict[str, list[int]], {"trials": "x"}, "'trials' must be a list of integers, got 'x'"),
        (dict[str, list[int]], {"trials": [1, None]}, r"'trials\[1\]' must be an integer"),
        (int, True, "must be an integer, got True"),
        (bool, 1, "must be a boolean, got 1"),
        (float, True, "must be a finite number, got True"),
        (float, 10**400, "must be a finite number, got 1000"),
        (float, float("inf"), "must be a finite number, got inf"),
        (tuple[int, int], [1], r"must be a list of 2 values, got \[1\]"),
        (tuple[str, ...], [1], r"'\[0\]' must be a string, got 1"),
        (Literal["a", "b"], "c", "must be 'a' or 'b', got 'c'"),
        (Literal[1], True, "must be 1, got True"),
        (int | str, None, "must be an integer or a string, got None"),
        (Annotated[int, at_least(1)], 0, "must be an integer of at least 1, got 0"),
        (Annotated[list[str], DISTINCT], ["a", "a"], "one value or more, each once, got"),
        (Annotated[list[Any], DISTINCT], [[1], {}], r"each once, got \[\[1\], {}\]"),
        (int, "x" * 1000, r"must be an integer, got 'x{78}…\."),
        (Member, [], r"must be an object, got \[\]"),
        (Member, {"name": "a"}, "'weight' is missing"),
        (Member, MEMBER | {"further": 1}, "'further' is not known"),
        (Member, MEMBER | {"name": ""}, "it is refused: A member has a name"),
        (dict[str, Member], {"x": MEMBER | {"name": 3}}, r"'x\.name' must be a string, got 3"),
        (Member | None, {"name": 3, "weight": 1}, "'name' must be a string, got 3"),
        (Size, {"columns": 2}, "'rows' is missing"),
        (dict[str, int], {"a\n\x1b": ""}, r"'a\\n\\x1b' must be an integer"),
    ],
)
def test_the_error_names_the_place_the_key_and_what_is_expected(form, value, told):
    with pytest.raises(BadStore, match=rf"^study\.json: .*{told}.* Do it again\.$"):
        decode(value, form, "study.json", advice="Do it again.")


def test_an_integer_is_a_number_and_null_is_nothing():
    assert type(decode(1, float, "here")) is float
    assert decode(None, str | None, "here") is None
    assert decode({"a": [None, {}]}, Any, "here") == {"a": [None, {}]}


def test_further_keys_of_a_typed_dict_stay():
    assert decode({"rows": 1, "more": [2]}, Size, "here") == {"rows": 1, "more": [2]}


def test_fields_that_are_not_stored_are_given():
    assert decode({"name": "a"}, Member, "here", weight=0.5, other=3) == Member("a", 0.5)
    with pytest.raises(BadStore, match="'weight' is not known"):
        decode(MEMBER, Member, "here", weight=0.5)


def test_a_type_that_json_does_not_have_is_an_error_of_the_program():
    with pytest.raises(TypeError, match="no form of stored JSON"):
        decode([], set[int], "here")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no JSON"),
        (b'{"a": ', "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"\x80\x04K\x01.", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": 1, "a": 2}', "one key two values"),
        (b'{"a": 1e999}', "1e999 is too large a number"),
    ],
    ids=["empty", "cut", "no-utf8", "pickle", "deep", "nan", "twice", "infinite"],
)
def test_a_damaged_file_is_refused_in_one_line_that_names_it(tmp_path, content, told):
    path = tmp_path / "study.json"
    path.write_bytes(content)
    with pytest.raises(BadStore, match=rf"study\.json.*{told}.* Do it again\.$") as refused:
        read_json(path, dict[str, float], advice="Do it again.")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "Infinity", "NaN"])
def test_numbers_are_finite_where_any_value_may_stand(number):
    with pytest.raises(ValueError, match=f"{number} is"):
        parse_json(f'{{"params": [{number}]}}')


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadStore, match=r"none\.json cannot be read: No such file"):
        read_json(tmp_path / "none.json", dict[str, float])
