"""A test of many cases tells every case that fails, by name."""

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st


def test_all_cases_are_tried_and_those_that_fail_are_named():
    tried = []

    @each_case("number", {"one": 1, "two": 2, "none": None})
    def check(offset, number):
        tried.append(number)
        with pytest.raises(TypeError, match="unsupported"):
            number + offset

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases") as raised:
        check(offset=1)
    assert tried == [1, 2, None]
    assert [failure.__notes__ for failure in raised.value.exceptions] == [
        ["number: one"],
        ["number: two"],
    ]


@pytest.mark.parametrize("factor", [2, 3])
@each_case("number", range(3))
@given(other=st.integers(0, 9))
def test_cases_go_with_parametrization_and_with_drawn_examples(factor, number, other):
    assert (number + other) % 1 == 0 < factor
