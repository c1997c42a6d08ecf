"""Many tests at once: corrections against statsmodels, letters against every set of systems."""

import itertools
import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from statsmodels.stats.multitest import multipletests

from ordinate.inference.multiple_testing import (
    MOST_LETTERS,
    benjamini_hochberg,
    benjamini_yekutieli,
    compact_letter_display,
    holm,
)

CORRECTIONS = {"holm": holm, "fdr_bh": benjamini_hochberg, "fdr_by": benjamini_yekutieli}
every_correction = pytest.mark.parametrize("name", CORRECTIONS)
some_p = st.one_of(
    st.floats(0, 1, allow_subnormal=False),
    st.sampled_from([0.0, 1.0, 0.05, 0.01, 1e-300]),
    st.integers(1, 2001).map(lambda k: k / 2001),  # as resamples give them, with many ties
)
p_values = st.lists(some_p, min_size=1, max_size=40)


@every_correction
@given(p=p_values)
def test_adjusted_p_values_are_those_of_statsmodels(name, p):
    with mock.patch("gc.collect"):  # which statsmodels calls each time
        expected = multipletests(p, method=name)[1]
    assert CORRECTIONS[name](p) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@every_correction
@given(p=p_values, data=st.data())
@examples(50)
def test_the_order_of_the_tests_does_not_matter(name, p, data):
    order = data.draw(st.permutations(range(len(p))))
    adjust = CORRECTIONS[name]
    there, again = adjust(p), adjust([p[k] for k in order])
    assert again == pytest.approx(there[list(order)], rel=1e-12)


@every_correction
@given(p=p_values)
@examples(50)
def test_a_correction_keeps_the_order_and_never_makes_a_p_value_smaller(name, p):
    found = CORRECTIONS[name](p)
    assert (found >= np.array(p) - 1e-15).all()
    assert (found <= 1).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()


@given(p=p_values)
def test_hochberg_is_never_stricter_than_holm_and_yekutieli_never_milder_than_hochberg(p):
    bh = benjamini_hochberg(p)
    assert (bh <= holm(p) + 1e-12).all()
    assert (bh <= benjamini_yekutieli(p) + 1e-12).all()


@every_correction
def test_one_test_needs_no_correction_and_no_tests_none_at_all(name):
    assert CORRECTIONS[name]([0.03]).tolist() == [0.03]
    assert CORRECTIONS[name]([]).tolist() == []


@every_correction
def test_p_values_that_are_handed_in_stay_as_they_are(name):
    p = np.array([0.2, 0.01, 0.5])
    CORRECTIONS[name](p)
    assert p.tolist() == [0.2, 0.01, 0.5]


# --- letters -------------------------------------------------------------------------------------


@st.composite
def told_apart(draw, most=7):
    size = draw(st.integers(1, most))
    pairs = size * (size - 1) // 2
    flags = draw(st.lists(st.booleans(), min_size=pairs, max_size=pairs))
    apart = np.zeros((size, size), bool)
    apart[np.triu_indices(size, 1)] = flags
    return apart | apart.T


def sets_of(shown):
    """The systems of each letter, in the order of the alphabet."""
    names = [re.findall(r"[a-z]|\(\d+\)", text) for text in shown]
    assert ["".join(found) for found in names] == shown
    every = sorted({x for found in names for x in found}, key=lambda x: (len(x), x))
    return {x: {k for k, found in enumerate(names) if x in found} for x in every}


def alike(apart, systems):
    """Whether no two of the systems are significantly different."""
    return not any(apart[i, j] for i, j in itertools.combinations(sorted(systems), 2))


def largest_sets(apart):
    """Every set of systems that are alike and that no other system could join."""
    everyone = range(len(apart))
    subsets = itertools.chain.from_iterable(
        itertools.combinations(everyone, size) for size in range(1, len(apart) + 1)
    )
    good = [set(subset) for subset in subsets if alike(apart, subset)]
    return [one for one in good if not any(one < other for other in good)]


@given(told_apart())
def test_two_systems_share_a_letter_exactly_where_they_are_not_told_apart(apart):
    shown = compact_letter_display(apart)
    assert len(shown) == len(apart)
    for first, second in itertools.combinations(range(len(apart)), 2):
        assert bool(set(shown[first]) & set(shown[second])) == (not apart[first, second])


@given(told_apart())
def test_no_letter_says_what_another_says_already(apart):
    found = list(sets_of(compact_letter_display(apart)).values())
    for one, other in itertools.permutations(found, 2):
        assert not one <= other


@given(told_apart())
def test_letters_are_the_largest_sets_that_cannot_be_told_apart(apart):
    found = sorted(map(sorted, sets_of(compact_letter_display(apart)).values()))
    assert found == sorted(map(sorted, largest_sets(apart)))


@given(told_apart())
def test_letters_begin_with_a_at_the_best_and_go_on_without_a_gap(apart):
    found = sets_of(compact_letter_display(apart))
    assert list(found) == [chr(ord("a") + k) for k in range(len(found))]
    assert 0 in found["a"]
    firsts = [min(systems) for systems in found.values()]
    assert firsts == sorted(firsts)
    assert all(text == "".join(sorted(text)) for text in compact_letter_display(apart))


def test_systems_that_are_all_alike_have_one_letter_and_systems_all_apart_one_each():
    assert compact_letter_display(np.zeros((5, 5), bool)) == ["a"] * 5
    assert compact_letter_display(~np.eye(5, dtype=bool)) == ["a", "b", "c", "d", "e"]
    assert compact_letter_display(np.zeros((1, 1), bool)) == ["a"]


def test_a_chain_of_neighbours_overlaps():
    rank = np.arange(6)
    apart = np.abs(rank[:, None] - rank) > 1
    assert compact_letter_display(apart) == ["a", "ab", "bc", "cd", "de", "e"]


def test_after_z_letters_are_numbers():
    shown = compact_letter_display(~np.eye(30, dtype=bool))
    assert shown[:2] + shown[24:28] == ["a", "b", "y", "z", "(27)", "(28)"]
    assert len(set(shown)) == 30
    found = sets_of(shown)
    assert all(found[name] == {k} for k, name in enumerate(found))


def test_too_many_letters_are_none():
    assert len(set(compact_letter_display(~np.eye(MOST_LETTERS, dtype=bool)))) == MOST_LETTERS
    assert compact_letter_display(~np.eye(MOST_LETTERS + 1, dtype=bool)) is None


def test_sets_that_double_with_each_pair_are_not_followed():
    """Twenty pairs, each significantly different and from nobody else: a million sets."""
    apart = np.zeros((40, 40), bool)
    apart[np.arange(0, 40, 2), np.arange(1, 40, 2)] = True
    assert compact_letter_display(apart | apart.T) is None
    six = (apart | apart.T)[:12, :12]
    assert len(sets_of(compact_letter_display(six))) == 64


@given(st.lists(st.floats(0, 10), min_size=2, max_size=40), st.floats(0.1, 5))
@examples(50)
def test_letters_of_many_systems_on_a_line_are_found(values, reach):
    values = np.sort(values)
    apart = np.abs(values[:, None] - values) > reach
    found = list(sets_of(compact_letter_display(apart)).values())
    for first, second in itertools.combinations(range(len(values)), 2):
        shared = any(first in one and second in one for one in found)
        assert shared == (not apart[first, second])
