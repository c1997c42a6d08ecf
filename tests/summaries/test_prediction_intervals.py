"""Sums of intervals and ensembles merge, and are those of the items one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from summary_values import assert_close

from ordinate.errors import (
    BadInput,
    BadValues,
    BadWeights,
    NoItems,
    OrdinateError,
    UnequalLengths,
)
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ensemble, prediction_intervals
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import PredictionIntervals

# --- oracles in plain Python ---------------------------------------------------------------------


def naive_bounds(items, weights):
    """Σw z zᵀ and Σw² z zᵀ of items (y, lower, upper), in a loop."""
    plain, squared = np.zeros((2, 6, 6))
    for (y, lower, upper), w in zip(items, weights, strict=True):
        z = [1, lower <= y <= upper, upper - lower, max(lower - y, 0), max(y - upper, 0), 0]
        for i, a in enumerate(z):
            for j, b in enumerate(z):
                plain[i, j] += w * a * b
                squared[i, j] += w**2 * a * b
    return plain, squared


def naive_scores(y, x):
    """Absolute error, gap, variance, square and bias of one ensemble."""
    size = len(x)
    mean = sum(x) / size
    pairs = [abs(a - b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
    return [
        sum(abs(a - y) for a in x) / size,
        sum(pairs) / len(pairs),
        sum((a - mean) ** 2 for a in x) / (size - 1),
        (mean - y) ** 2,
        mean - y,
    ]


def naive_ranks(targets, members):
    """How many targets have each rank; of equals, the mean over all orders of them."""
    found = np.zeros(len(members[0]) + 1)
    for y, x in zip(targets, members, strict=True):
        below, equal = sum(a < y for a in x), sum(a == y for a in x)
        for rank in range(below, below + equal + 1):
            found[rank] += 1 / (equal + 1)
    return found


# Quarters: sums and products of them are exact, so laws hold to the last digit.
NUMBERS = st.integers(-20, 20).map(lambda k: k / 4)
INTERVALS = st.tuples(NUMBERS, NUMBERS, NUMBERS).map(lambda t: (t[0], min(t[1:]), max(t[1:])))
ITEMS = st.lists(st.tuples(INTERVALS, st.integers(0, 3)), min_size=1, max_size=12).filter(
    lambda items: any(weight for _, weight in items)
)
ENSEMBLES = st.lists(
    st.tuples(NUMBERS, st.lists(NUMBERS, min_size=4, max_size=4)), min_size=1, max_size=10
)


def summed(items, weights=None, **options):
    return PredictionIntervals.of(*np.array(items, float).reshape(-1, 3).T, weights, **options)


def members_of(items, *rest, **options):
    return EnsemblePredictions.of([y for y, _ in items], [x for _, x in items], *rest, **options)


# --- intervals -----------------------------------------------------------------------------------


@given(ITEMS)
def test_sums_are_those_of_the_items_one_by_one(items):
    intervals, weights = zip(*items, strict=True)
    table = summed(intervals, weights)
    plain, squared = naive_bounds(intervals, weights)
    assert table.plain.tolist() == plain.tolist()
    assert table.squared.tolist() == squared.tolist()
    assert table.n == sum(w > 0 for w in weights)
    assert table.total == sum(weights)


@given(ITEMS)
def test_whole_weights_are_repeated_rows(items):
    intervals, weights = zip(*items, strict=True)
    repeated = [item for item, weight in items for _ in range(weight)]
    table = summed(intervals, weights)
    assert table.plain.tolist() == summed(repeated).plain.tolist()
    assert table.has_integer_weights


@given(st.lists(st.tuples(INTERVALS, st.sampled_from("xyz")), min_size=1, max_size=12))
def test_a_batch_of_groups_is_each_group_alone_and_pools_to_the_whole(items):
    intervals, names = zip(*items, strict=True)
    groups = factorize_column(names)
    batch = summed(intervals, groups=groups)
    for k, name in enumerate(groups.values):
        assert_close(batch[k], summed([item for item, of in items if of == name]))
    assert_close(batch.pooled, summed(intervals))
    assert_close(summed(intervals, groups=list(names)), batch)
    assert_close(batch + batch, batch.sum_with_multiplicities(2 * np.eye(len(groups.values))))


def test_weighted_groups_are_each_group_alone():
    rng = np.random.default_rng(4)
    y, ends = rng.normal(size=30), np.sort(rng.normal(size=(2, 30)), axis=0)
    x, weights, codes = rng.normal(size=(30, 3)), rng.uniform(0.1, 2, 30), np.arange(30) % 3
    intervals, members = (
        PredictionIntervals.of(y, *ends, weights, codes),
        EnsemblePredictions.of(y, x, weights, codes),
    )
    for k in range(3):
        mine = codes == k
        assert_close(intervals[k], PredictionIntervals.of(y[mine], *ends[:, mine], weights[mine]))
        assert_close(members[k], EnsemblePredictions.of(y[mine], x[mine], weights[mine]))


def test_one_weight_that_is_no_count_makes_all_of_them_none():
    counts, weights = (
        PredictionIntervals.of([1], [0], [2], [3]),
        PredictionIntervals.of([1], [0], [2], [0.5]),
    )
    assert counts.has_integer_weights
    assert not weights.has_integer_weights
    assert not (counts + weights).has_integer_weights
    assert not (weights + counts).has_integer_weights


def test_ranks_have_the_sums_of_squared_weights():
    table = EnsemblePredictions.of([1, 2, 5, 2], [[0, 3], [2, 3], [1, 2], [0, 1]], [0.5, 2, 3, 0])
    assert table.ranks.tolist() == [1.0, 1.5, 3.0]  # 2 is as likely below as above the member 2
    assert table.rank_squares.tolist() == [2.0, 2.25, 9.0]


def test_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(1)
    y, ends = rng.normal(size=100), np.sort(rng.normal(size=(2, 100)), axis=0)
    codes, weights = rng.integers(0, 5, 100), rng.integers(0, 3, 100).astype(float)
    x = rng.normal(size=(100, 7))

    def both():
        return (
            PredictionIntervals.of(y, *ends, weights),
            PredictionIntervals.of(y, *ends, weights, codes),
            EnsemblePredictions.of(y, x, weights, codes),
        )

    at_once = both()
    monkeypatch.setattr(prediction_intervals, "ROWS_PER_BLOCK", 7)
    monkeypatch.setattr(ensemble, "CELLS_PER_BLOCK", 30)
    for mine, theirs in zip(at_once, both(), strict=True):
        assert_close(mine, theirs)


def test_shifted_by_a_billion_the_sums_are_those_of_the_same_numbers_in_long_double():
    rng = np.random.default_rng(2)
    y = rng.normal(size=2000) + 1e9
    lower, upper = y + rng.normal(-1, 1, 2000), y + rng.normal(1, 1, 2000)
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    table = PredictionIntervals.of(y, lower, upper)
    long = [np.asarray(column, np.longdouble) for column in (y, lower, upper)]
    widths = long[2] - long[1]
    assert table.mean("width") == pytest.approx(float(widths.mean()), rel=1e-12)
    outside = np.maximum(long[1] - long[0], 0).mean()
    assert table.mean("below") == pytest.approx(float(outside), rel=1e-12)
    assert table.plain[2, 2] == pytest.approx(float((widths**2).sum()), rel=1e-12)


def test_an_interval_without_an_end_counts_for_coverage_only():
    table = PredictionIntervals.of([1, 2, 3], [-np.inf, 0, 5], [2, np.inf, 6])
    assert table.mean("covered") == pytest.approx(2 / 3)
    assert table.endless == 2
    assert table.plain[0, 2] == 1.0
    grouped = PredictionIntervals.of(
        [1, 2, 3], [-np.inf, 0, 5], [2, np.inf, 6], groups=["a", "b", "b"]
    )
    assert grouped.endless.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1, 2], [0, 3], [1, 2.5]), r"lower bound of row 2, 3\.0, is above its upper bound, 2\.5"),
        (([1, np.nan], [0, 0], [1, 1]), "target of row 2 is nan, not a finite number"),
        (([np.inf], [0], [1]), "target of row 1 is inf"),
        (
            ([1, 2], [np.nan, 0], [1, 1]),
            "lower bound of row 1 is nan: it must be a number, or -inf",
        ),
        (([1, 2], [0, 0], [1, np.nan]), "upper bound of row 2 is nan: it must be a number, or inf"),
        (([1], [np.inf], [np.inf]), "lower bound of row 1 is inf"),
        (([1], [-np.inf], [-np.inf]), "upper bound of row 1 is -inf"),
        (([1], [-1e300], [1e300]), "too large to be squared"),
        ((["a"], [0], [1]), "targets must be numbers"),
    ],
)
def test_an_error_names_the_row(columns, message):
    with pytest.raises(BadValues, match=message):
        PredictionIntervals.of(*columns)


def test_an_error_names_the_row_in_a_later_chunk(monkeypatch):
    monkeypatch.setattr(prediction_intervals, "ROWS_PER_BLOCK", 2)
    with pytest.raises(BadValues, match="lower bound of row 5"):
        PredictionIntervals.of([1] * 5, [0] * 4 + [3], [2] * 5, [1, 0, 1, 1, 1])


def test_an_item_of_weight_0_does_not_exist():
    table = PredictionIntervals.of([1, np.nan], [0, 5], [2, 3], [1, 0])
    assert table.n == 1
    with pytest.raises(NoItems, match="all weights are 0"):
        PredictionIntervals.of([1], [0], [1], [0])
    with pytest.raises(NoItems, match="columns are empty"):
        PredictionIntervals.of([], [], [])
    with pytest.raises(BadWeights, match=r"Weight -1.0 \(row 2\)"):
        PredictionIntervals.of([1, 1], [0, 0], [1, 1], [1, -1])


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(UnequalLengths, match="2 targets and 1 lower bounds"):
        PredictionIntervals.of([1, 2], [0], [1, 2])
    with pytest.raises(UnequalLengths, match="1 targets and 2 predictions"):
        PredictionIntervals.of([1], [0], [1], predicted=[1, 2])
    with pytest.raises(UnequalLengths, match="1 targets and 2 groups"):
        PredictionIntervals.of([1], [0], [1], groups=["a", "b"])
    with pytest.raises(UnequalLengths, match="1 targets and 2 rows of members"):
        EnsemblePredictions.of([1], [[0, 1], [1, 2]])


def test_summaries_that_do_not_fit_are_not_added():
    plain, points = (
        PredictionIntervals.of([1], [0], [1]),
        PredictionIntervals.of([1], [0], [1], predicted=[1]),
    )
    with pytest.raises(OrdinateError, match="differ in points cannot be added"):
        plain + points
    with pytest.raises(OrdinateError, match="differ in members cannot be added"):
        EnsemblePredictions.of([1], [[0, 1]]) + EnsemblePredictions.of([1], [[0, 1, 2]])
    with pytest.raises(OrdinateError, match="Pool them"):
        plain + PredictionIntervals.of([1], [0], [1], groups=["a"])
    with pytest.raises(TypeError, match="unsupported"):
        plain + EnsemblePredictions.of([1], [[0, 1]])


# --- ensembles -----------------------------------------------------------------------------------


@given(ENSEMBLES)
def test_ensembles_are_scored_as_by_the_definition(items):
    table = members_of(items)
    naive = np.mean([naive_scores(y, x) for y, x in items], axis=0)
    np.testing.assert_allclose(table.means, naive, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(table.ranks, naive_ranks(*zip(*items, strict=True)), atol=1e-12)
    assert table.ranks.sum() == pytest.approx(len(items))


@examples(50)
@given(ENSEMBLES, st.data())
def test_groups_of_ensembles_pool_to_the_whole(items, data):
    names = data.draw(st.lists(st.sampled_from("xy"), min_size=len(items), max_size=len(items)))
    assert_close(members_of(items, groups=names).pooled, members_of(items))


@given(ENSEMBLES, st.data())
def test_whole_weights_of_ensembles_are_repeated_rows(items, data):
    counts = st.lists(st.integers(1, 3), min_size=len(items), max_size=len(items))
    weights = data.draw(counts)
    repeated = [item for item, w in zip(items, weights, strict=True) for _ in range(w)]
    table, other = members_of(items, weights), members_of(repeated)
    np.testing.assert_allclose(table.plain, other.plain, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(table.ranks, other.ranks, rtol=1e-12, atol=1e-12)


def test_ensembles_a_billion_away_keep_their_digits():
    rng = np.random.default_rng(3)
    y, x = rng.normal(size=300) + 1e9, rng.normal(size=(300, 20)) + 1e9
    table = EnsemblePredictions.of(y, x)
    near = EnsemblePredictions.of(
        y - 1e9, x - 1e9
    )  # exact: the numbers are those that were rounded
    np.testing.assert_allclose(table.means, near.means, rtol=1e-9)
    assert table.ranks.tolist() == near.ranks.tolist()


def test_the_gap_is_exact_where_the_members_are_far_from_the_target():
    table = EnsemblePredictions.of([0.0], [[1e15, 1e15 + 1, 1e15 + 3]])
    assert table.mean("gap") == 2.0


def test_members_of_any_kind_are_read():
    whole = EnsemblePredictions.of([1, 2], np.array([[1, 2], [3, 4]], np.int8))
    small = EnsemblePredictions.of([1, 2], np.array([[1, 2], [3, 4]], np.float32))
    pandas = pytest.importorskip("pandas")
    assert_close(whole, small)
    assert_close(whole, EnsemblePredictions.of([1, 2], pandas.DataFrame([[1, 2], [3, 4]])))
    assert_close(whole, EnsemblePredictions.of([1, 2], np.array([[1, 2], [3, 4]], object)))


@pytest.mark.parametrize(
    ("members", "kind", "message"),
    [
        ([[1, 2], [np.nan, 1]], BadValues, "Member 1 of row 2 is nan"),
        ([[1, 2], [3, -np.inf]], BadValues, "Member 2 of row 2 is -inf"),
        ([1, 2], BadInput, r"not of the shape \(2,\)"),
        ([[], []], BadInput, r"not of the shape \(2, 0\)"),
        ([["a"], ["b"]], BadValues, "members must be numbers"),
        ([[1, 2], [3]], BadValues, "as many for each item"),
        ([[1, None], [3, 4]], BadValues, "Member 2 of row 1 is nan"),
    ],
)
def test_bad_members_are_named(members, kind, message):
    with pytest.raises(kind, match=message):
        EnsemblePredictions.of([1, 2], members)


def test_bad_targets_of_ensembles_are_named():
    with pytest.raises(BadValues, match="target of row 2 is nan"):
        EnsemblePredictions.of([1, math.nan], [[1, 2], [3, 4]])
    with pytest.raises(NoItems, match="all weights are 0"):
        EnsemblePredictions.of([1], [[1, 2]], [0])
