"""McNemar, the sign test, Bowker and Stuart-Maxwell, against other packages and fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from paired_cases import pair_of
from panels import dense, paired_of, panel_of
from scipy import stats
from statsmodels.stats.contingency_tables import SquareTable
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.descriptivestats import sign_test as sign_test_of_statsmodels
from strategies import scale_of

from ordinate.inference.paired_tests import (
    TestResult,
    bowker_test,
    mcnemar_test,
    sign_test,
    stuart_maxwell_test,
)

# --- McNemar and the sign test -------------------------------------------------------------------


@st.composite
def paired_tables(draw, largest=40):
    size = draw(st.integers(2, 4))
    shape = (size, size + 1, size + 1)
    sparse = st.one_of(st.just(0), st.integers(0, largest))
    cells = draw(st.lists(sparse, min_size=math.prod(shape), max_size=math.prod(shape)))
    array = np.array(cells, float).reshape(shape)
    positions = draw(st.sampled_from([None, [0.0, 0.5, 2.0, 3.25][:size]]))
    return paired_of(scale_of(size, positions), array)


def spelled(pairs):
    """Each item as gold, first answer, second answer; None is no answer."""
    size = len(pairs.scale)
    for (g, a, b), n in np.ndenumerate(dense(pairs)[1]):
        item = g, a if a < size else None, b if b < size else None
        yield from itertools.repeat(item, int(n))


@given(paired_tables())
def test_mcnemar_is_that_of_statsmodels(pairs):
    square = np.zeros((2, 2))
    for gold, first, second in spelled(pairs):
        square[int(first != gold), int(second != gold)] += 1
    found = mcnemar_test(pairs)
    assert found.statistic == min(square[0, 1], square[1, 0])
    if square[0, 1] + square[1, 0] == 0:
        assert found.p == 1
        return
    expected = mcnemar_of_statsmodels(square, exact=True)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    once = stats.binomtest(int(square[0, 1]), int(square[0, 1] + square[1, 0]))
    assert found.p == pytest.approx(once.pvalue, rel=1e-12)


def distance(gold, answer, scale):
    """From gold to an answer; no answer is farther off than any."""
    return math.inf if answer is None else abs(scale.at[gold] - scale.at[answer])


@given(paired_tables())
def test_the_sign_test_is_that_of_statsmodels(pairs):
    signs = []
    for gold, first, second in spelled(pairs):
        one, other = (distance(gold, answer, pairs.scale) for answer in (first, second))
        signs.append(int(one < other) - int(one > other))
    found = sign_test(pairs)
    wins, losses = signs.count(1), signs.count(-1)
    assert found.statistic == min(wins, losses)
    if not wins + losses:
        assert found.p == 1
        return
    assert found.p == pytest.approx(sign_test_of_statsmodels(np.array(signs))[1], rel=1e-12)
    assert found.p == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-12)


@pytest.mark.parametrize("unit", [0.1, 0.7, 1e-3, 1e6 / 3])
def test_steps_that_differ_by_rounding_only_are_ties(unit):
    """0.3 - 0.2 is not 0.2 - 0.1 in a computer, and neither answer is nearer."""
    gold, one, other = [1] * 9 + [0], [0] * 9 + [0], [2] * 9 + [1]
    at = [unit * (k + 1) for k in range(3)]
    panel = panel_of(gold, {"a": one, "b": other}, 3, positions=at)
    assert sign_test(panel.pair_systems("a", "b")) == TestResult(1.0, statistic=0.0)
    even = panel_of(gold, {"a": one, "b": other}, 3)
    assert sign_test(even.pair_systems("a", "b")) == sign_test(panel.pair_systems("a", "b"))


@given(wins=st.integers(0, 10**6), losses=st.integers(0, 10**6))
def test_a_million_items_are_no_problem_for_the_tests_of_signs(wins, losses):
    cells = np.zeros((2, 3, 3))
    cells[0, 0, 1], cells[0, 1, 0] = wins, losses
    pairs = paired_of(scale_of(2), cells)
    n = wins + losses
    expected = min(1.0, 2 * stats.binom.cdf(min(wins, losses), n, 0.5)) if wins != losses else 1.0
    for test in (mcnemar_test, sign_test):
        assert test(pairs).p == pytest.approx(expected, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("test", [mcnemar_test, sign_test])
@pytest.mark.parametrize("weights", [[0.5, 1.25, 2.0], [0.5, 0.5, 1.0]])
def test_tests_of_signs_refuse_real_weights_even_where_their_sums_are_whole(test, weights):
    pairs = pair_of([0, 0, 1], [0, 0, 1], [1, 1, 1], 2, weights=weights)
    found = test(pairs)
    assert math.isnan(found.p)
    assert found.note == "the weights are no counts"


def test_of_two_systems_that_are_never_right_neither_is_right_more_often():
    found = mcnemar_test(pair_of([0, 1, 2], [1, 2, 1], [2, 0, 0], 3))
    assert (found.p, found.statistic) == (1.0, 0.0)


def test_no_answer_is_farther_off_than_the_worst_answer():
    pairs = pair_of([0] * 6, [2] * 6, [None] * 6, 3)
    assert sign_test(pairs).p == pytest.approx(2 / 2**6, rel=1e-12)
    both = pair_of([0] * 6, [None] * 6, [None] * 6, 3)
    assert sign_test(both).p == 1


# --- Bowker and Stuart-Maxwell -------------------------------------------------------------------


def squares(least, largest, most=6):
    return st.integers(2, most).flatmap(
        lambda size: st.lists(st.integers(least, largest), min_size=size**2, max_size=size**2).map(
            lambda cells: np.array(cells, float).reshape(size, size)
        )
    )


@given(squares(0, 60))
def test_bowkers_statistic_is_that_of_statsmodels(cells):
    found = bowker_test(cells)
    if not (cells + cells.T - 2 * np.diag(np.diag(cells))).any():
        assert (found.p, found.statistic, found.degrees_of_freedom) == (1.0, 0.0, 0)
        assert found.note
        return
    expected = SquareTable(cells, shift_zeros=False).symmetry()
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)


@given(squares(60, 90))
@examples(40)
def test_bowker_of_many_items_is_that_of_statsmodels(cells):
    """All pairs occur and have enough items: chi-square, unless one pair or two are enumerated."""
    found = bowker_test(cells)
    expected = SquareTable(cells, shift_zeros=False).symmetry()
    if found.degrees_of_freedom is None:
        assert len(cells) < 4
        return
    assert found.degrees_of_freedom == expected.df
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert (
        found.describe_basis()
        == f"chi-square, {len(cells) * (len(cells) - 1) // 2} degrees of freedom"
    )


def symmetry_statistic(pairs):
    return sum((Fraction((a - b) ** 2, a + b) for a, b in pairs), Fraction(0))


def naive_bowker(cells):
    """Each disputed item goes either way: all outcomes, one by one, with their probability."""
    pairs = [
        (int(cells[i, j]), int(cells[j, i]))
        for i, j in itertools.combinations(range(len(cells)), 2)
    ]
    pairs = [(a, b) for a, b in pairs if a + b]
    observed = symmetry_statistic(pairs)
    extreme = Fraction(0)
    for heads in itertools.product(*(range(a + b + 1) for a, b in pairs)):
        sums = [a + b for a, b in pairs]
        tossed = [(k, n - k) for k, n in zip(heads, sums, strict=True)]
        if symmetry_statistic(tossed) >= observed:
            chances = (Fraction(math.comb(n, k), 2**n) for k, n in zip(heads, sums, strict=True))
            extreme += math.prod(chances, start=Fraction(1))
    return float(extreme)


@given(squares(0, 2, most=3))
@examples(60)
def test_bowker_of_few_items_is_the_share_of_outcomes_that_are_as_asymmetric(cells):
    found = bowker_test(cells)
    assert found.p == pytest.approx(naive_bowker(cells), rel=1e-12)
    if found.statistic:
        assert (found.degrees_of_freedom, found.resamples, found.describe_basis()) == (
            None,
            None,
            "exact",
        )


@given(squares(0, 40, most=5), st.integers(0, 5))
@examples(40)
def test_pairs_of_levels_that_nobody_confuses_do_not_count_for_bowker(cells, place):
    place = min(place, len(cells))
    wider = np.insert(np.insert(cells, place, 0.0, axis=0), place, 0.0, axis=1)
    assert bowker_test(wider) == bowker_test(cells)


def test_bowker_resamples_where_outcomes_are_many_and_some_pairs_have_few_items():
    """3 * 9,999 resamples of one table with one pair too rare for chi-square."""
    cells = np.full((4, 4), 30.0)
    cells[0, 3], cells[3, 0], cells[0, 1] = 6, 1, 45
    found = [bowker_test(cells, seed) for seed in (0, 0, 1, 2)]
    assert found[0] == found[1]
    assert len({test.p for test in found}) == 3
    assert {(test.resamples, test.describe_basis()) for test in found} == {
        (9_999, "9,999 resamples")
    }
    p = np.mean([test.p for test in found[1:]])
    # The rare pair by its own outcomes, the others by chi-square, which is near for 60 items.
    rest = found[0].statistic - (np.arange(8) * 2 - 7) ** 2 / 7
    expected = stats.binom.pmf(np.arange(8), 7, 0.5) @ stats.chi2.sf(rest, 5)
    error = math.sqrt(expected / (3 * 9_999))
    assert p == pytest.approx(expected, abs=4 * error + 0.03 * expected)


def test_bowker_by_resamples_counts_the_data_as_one_of_them():
    cells = np.triu(np.full((4, 4), 30.0))
    cells[0, 3] = 5
    found = bowker_test(cells)
    assert (found.p, found.resamples) == (1 / 10_000, 9_999)


def test_bowker_holds_its_level_where_most_pairs_are_rare():
    """Three binomial errors of 1,000 tables of 40 items in 25 cells."""
    rng = np.random.default_rng(1_000)
    tables = rng.multinomial(40, np.full(25, 1 / 25), 1_000).reshape(-1, 5, 5).astype(float)
    size = np.mean([bowker_test(table).p <= 0.05 for table in tables])
    assert 0.02 < size < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1_000)


def test_bowker_is_exact_for_few_items():
    cells = np.array([[5.0, 8, 0], [0, 5, 8], [8, 0, 5]])
    assert bowker_test(cells).p == pytest.approx(
        2.0**-21, rel=1e-12
    )  # 24 tosses, each pair all one way


@given(squares(1, 60))
def test_stuart_maxwell_is_that_of_statsmodels_where_all_levels_are_used(cells):
    expected = SquareTable(cells, shift_zeros=False).homogeneity(method="stuart_maxwell")
    found = stuart_maxwell_test(cells)
    assert found.degrees_of_freedom == expected.df
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=0, abs=1e-12)  # theirs is 1 - cdf
    assert found.p == pytest.approx(stats.chi2.sf(expected.statistic, expected.df), rel=1e-10)


@given(squares(1, 60, most=4), st.integers(0, 4), st.integers(0, 30))
@examples(60)
def test_levels_that_nobody_uses_or_disputes_do_not_count_for_stuart_maxwell(cells, place, agreed):
    size = len(cells)
    place = min(place, size)
    wider = np.insert(np.insert(cells, place, 0.0, axis=0), place, 0.0, axis=1)
    wider[place, place] = agreed
    there, found = stuart_maxwell_test(cells), stuart_maxwell_test(wider)
    assert found.degrees_of_freedom == there.degrees_of_freedom == size - 1
    assert found.statistic == pytest.approx(there.statistic, rel=1e-9, abs=1e-12)
    assert found.p == pytest.approx(there.p, rel=1e-9)


def components(cells):
    """The prediction sets that are connected by disagreements."""
    levels, found = set(range(len(cells))), []
    while levels:
        part, edge = set(), [levels.pop()]
        while edge:
            level = edge.pop()
            part.add(level)
            near = {k for k in levels if cells[level][k] + cells[k][level] > 0}
            levels -= near
            edge += near
        found.append(sorted(part))
    return found


def solved(matrix, right):
    """The solution of linear equations, in fractions."""
    rows = [[*map(Fraction, row), Fraction(x)] for row, x in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exact_stuart_maxwell(cells):
    """Statistic and freedom in fractions: each connected set of levels is a table of its own."""
    cells = [[int(x) for x in row] for row in cells]
    statistic, freedom = Fraction(0), 0
    for part in components(cells):
        inner = part[:-1]
        out = {k: sum(cells[k][j] for j in part) for k in part}
        into = {k: sum(cells[j][k] for j in part) for k in part}
        shift = [out[k] - into[k] for k in inner]
        spread = [
            [(out[i] + into[i]) * (i == j) - cells[i][j] - cells[j][i] for j in inner]
            for i in inner
        ]
        by_level = zip(shift, solved(spread, shift), strict=True)
        statistic += sum((Fraction(a) * b for a, b in by_level), Fraction(0))
        freedom += len(inner)
    return float(statistic), freedom


sparse_squares = st.integers(2, 8).flatmap(
    lambda size: st.lists(
        st.sampled_from([0, 0, 0, 0, 0, 1, 3, 40]), min_size=size**2, max_size=size**2
    ).map(lambda cells: np.array(cells, float).reshape(size, size))
)


@given(sparse_squares)
def test_stuart_maxwell_of_sparse_tables_is_that_of_fractions(cells):
    statistic, freedom = exact_stuart_maxwell(cells)
    found = stuart_maxwell_test(cells)
    assert found.degrees_of_freedom == freedom
    assert found.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-12)
    if freedom:
        assert found.p == pytest.approx(stats.chi2.sf(statistic, freedom), rel=1e-9)
    else:
        assert found.p == 1
        assert found.note


@given(squares(0, 60, most=5))
@examples(50)
def test_the_order_of_levels_and_of_systems_does_not_matter(cells):
    for test in (bowker_test, stuart_maxwell_test):
        expected = test(cells)
        for other in (cells.T, cells[::-1, ::-1], np.roll(cells, (1, 1), (0, 1))):
            found = test(np.ascontiguousarray(other))
            assert found.degrees_of_freedom == expected.degrees_of_freedom
            assert found.statistic == pytest.approx(expected.statistic, rel=1e-8, abs=1e-10)
            assert found.p == pytest.approx(expected.p, rel=1e-6)


def test_for_two_levels_both_have_the_chi_square_statistic_of_mcnemar():
    cells = np.array([[12.0, 9.0], [3.0, 20.0]])
    plain = mcnemar_of_statsmodels(cells, exact=False, correction=False)
    for test in (bowker_test, stuart_maxwell_test):
        assert test(cells).statistic == pytest.approx(plain.statistic, rel=1e-12)
    assert stuart_maxwell_test(cells).p == pytest.approx(plain.pvalue, rel=1e-12)
    exact = mcnemar_of_statsmodels(cells, exact=True)
    assert bowker_test(cells).p == pytest.approx(exact.pvalue, rel=1e-12)


@pytest.mark.parametrize("cells", [np.diag([3.0, 0, 5]), np.diag([0.0, 7, 0]), np.zeros((3, 3))])
def test_systems_that_always_agree_show_no_shift(cells):
    for test in (bowker_test, stuart_maxwell_test):
        found = test(cells)
        assert (found.p, found.statistic, found.degrees_of_freedom) == (1.0, 0.0, 0)
        assert found.note == "both sides always agree"


def test_a_pure_exchange_of_levels_is_no_shift_of_the_margins():
    cells = np.array([[5.0, 8, 0], [0, 5, 8], [8, 0, 5]])  # round and round
    assert stuart_maxwell_test(cells).p == pytest.approx(1)
    assert bowker_test(cells).p < 0.001


def test_a_test_as_plain_values_has_none_for_nan():
    assert TestResult(0.5).to_dict() == {
        "p": 0.5,
        "statistic": None,
        "degrees_of_freedom": None,
        "resamples": None,
        "note": None,
    }
