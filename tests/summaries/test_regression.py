"""Moments are sums over items: they merge, whatever the batches, the order and the offset."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from moments_items import (
    ORDERS,
    RNG,
    assert_same,
    assert_sums,
    columns,
    heavy,
)

from ordinate.errors import (
    BadOption,
    BadValues,
    BadWeights,
    NoItems,
    OrdinateError,
    UnequalLengths,
)
from ordinate.metrics import find_metric
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import regression
from ordinate.summaries.regression import (
    CentralSums,
    Moments,
    MomentsAccumulator,
    bin_error_sizes,
    compute_bin_size,
)

# --- against long doubles ------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e9])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_long_doubles_wherever_the_values_lie(shift, scale, weighted):
    rng = np.random.default_rng(1)
    y, p = (x * scale + shift for x in heavy(3_000, rng))
    w = rng.gamma(2.0, 1.0, 3_000) if weighted else None
    assert_sums(Moments.of(y, p, w), y, p, w)


def test_errors_far_from_zero_keep_their_spread():
    y = RNG.normal(0, 1, 1_000)
    p = y + 1e6 + RNG.normal(0, 1e-3, 1_000)
    assert_sums(Moments.of(y, p), y, p, tolerance=1e-6)  # that of p - y itself


def test_a_light_outlier_does_not_blur_the_rest():
    y, p = heavy(40_000)
    y[:25_000], p[:25_000] = 1e9, 2e9
    w = np.ones(40_000)
    w[:25_000] = 1e-30
    table = Moments.of(y, p, w)
    alone = Moments.of(y[25_000:], p[25_000:])
    assert float(table.plain.mean(2, 0)) == pytest.approx(float(alone.plain.mean(2, 0)), rel=1e-7)
    assert float(table.plain.mean(0, 2)) == pytest.approx(float(alone.plain.mean(0, 2)), rel=1e-7)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, -7e-5, 0.0])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1000, 50_001])
def test_equal_values_have_no_spread_at_all(value, n):
    y = np.full(n, value)
    table = Moments.of(y, y + 0.25)
    parts = [Moments.of(y[:1], y[:1] + 0.25), table, table]
    for found in (table, parts[0] + parts[1] + parts[2]):
        assert float(found.plain.mean(2, 0)) == 0.0
        assert float(found.plain.y) == value
        assert float(found.plain.mean(0, 2)) == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_values_have_no_spread_whatever_they_are(weighted):
    rng = np.random.default_rng(6)
    for _ in range(300):
        n = int(rng.integers(1, 300))
        w = rng.gamma(1.0, 1.0, n) if weighted else None
        y, e = np.full(n, rng.normal(0, 100)), np.full(n, rng.integers(-8, 8) / 8)
        plain = Moments.of(np.round(y, 3), np.round(y, 3) + e, w).plain
        assert float(plain.mean(2, 0)) == 0.0
        assert float(plain.y) == np.round(y[0], 3)


def test_there_is_no_negative_variance():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 5))
        y = 1e9 + rng.choice([0.1, 0.2, 0.1 + 1e-7], n)
        parts = [Moments.of(y, y * 1.5, rng.random(n) + 1e-6) for _ in range(3)]
        total = parts[0] + parts[1] + parts[2]
        assert float(total.plain.mean(2, 0)) >= 0.0
        assert float(total.plain.mean(0, 2)) >= 0.0


# --- merging -------------------------------------------------------------------------------------


def in_batches(y, p, w, ends):
    parts = [
        Moments.of(y[a:b], p[a:b], None if w is None else w[a:b])
        for a, b in zip([0, *ends], [*ends, len(y)], strict=True)
    ]
    return sum(parts[1:], parts[0])


def shuffled(y, p, rng):
    del rng
    return y, p


def by_target(y, p, rng):
    del rng
    order = np.argsort(y)
    return y[order], p[order]


def by_error(y, p, rng):
    del rng
    order = np.argsort(p - y)
    return y[order], p[order]


def outliers_first(y, p, rng):
    y, p = y.copy(), p.copy()
    y[:30] += 1e7
    p[:30] -= rng.normal(1e7, 1e6, 30)
    return y, p


def in_steps(y, p, rng):
    del rng, p
    return np.floor(np.arange(len(y)) / 50.0), np.floor(np.arange(len(y)) / 70.0) + 0.1


@pytest.mark.parametrize(
    "arranged", [shuffled, by_target, by_error, outliers_first, in_steps], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_thousand_uneven_batches_are_one_pass(arranged, weighted):
    rng = np.random.default_rng(7)
    y, p = arranged(*heavy(20_000, rng), rng)
    w = rng.gamma(1.0, 1.0, 20_000) if weighted else None
    ends = np.sort(rng.choice(np.arange(1, 20_000), 999, replace=False)).tolist()
    whole, merged = Moments.of(y, p, w), in_batches(y, p, w, ends)
    assert_same(merged, whole)
    assert_sums(merged, y, p, w)


def test_one_item_at_a_time_is_one_pass():
    y, p = heavy(1_000)
    assert_same(in_batches(y, p, None, list(range(1, 1_000))), Moments.of(y, p))


def test_constant_batches_make_the_variance_between_them():
    y = np.repeat([0.1, 0.3, 0.7, 1e6], 25)
    p = y + np.repeat([1.0, 2.0, 0.0, 5.0], 25)
    assert_sums(in_batches(y, p, None, [25, 50, 75]), y, p)


@given(first=columns(), second=columns(), third=columns())
@examples(40)
def test_merging_knows_no_order(first, second, third):
    a, b, c = (Moments.of(*part, histogram=True) for part in (first, second, third))
    assert_same(a + b, b + a, 1e-10)
    assert_same((a + b) + c, a + (b + c), 1e-10)


@given(columns(min_size=2), st.randoms(use_true_random=False))
@examples(40)
def test_the_order_of_items_does_not_matter(pair, random):
    y, p = pair
    order = np.array(random.sample(range(len(y)), len(y)))
    assert_same(Moments.of(y[order], p[order], histogram=True), Moments.of(y, p, histogram=True))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(("rows", "span"), [(1, 1), (3, 6), (7, 7), (64, 640), (10_000, 10_000)])
@pytest.mark.parametrize("weighted", [False, True])
def test_how_many_rows_are_looked_at_together_does_not_matter(
    monkeypatch, rows, span, weighted, order
):
    y, p = heavy(200)
    w = RNG.gamma(2.0, 1.0, 200) if weighted else None
    groups = factorize_column(RNG.integers(0, 3, 200))
    how = {"order": order, "histogram": True, "constants": {"c": 650.0}}
    usual = Moments.of(y, p, w, **how), Moments.of(y, p, w, groups=groups, **how)
    monkeypatch.setattr(regression, "ROWS_PER_BLOCK", rows)
    monkeypatch.setattr(regression, "ROWS_PER_SUM", span)
    assert_same(Moments.of(y, p, w, **how), usual[0])
    assert_same(Moments.of(y, p, w, groups=groups, **how), usual[1])


def test_summaries_of_other_parts_do_not_merge():
    table = Moments.of([1.0, 2.0], [1.0, 3.0])
    with pytest.raises(OrdinateError, match="with histogram and one without"):
        table + Moments.of([1.0], [2.0], histogram=True)
    with pytest.raises(OrdinateError, match="differ in order cannot be added: 4 and 2"):
        table + Moments.of([1.0], [2.0], order=2)
    with pytest.raises(OrdinateError, match="differ in constants"):
        table + Moments.of([1.0], [2.0], constants={"c": 1.0})


@pytest.mark.parametrize("size", [1e35, 1e45, 1e60, 1e-35, 1e-60])
def test_large_and_small_values_merge_as_others_do(size):
    y, p = np.array([1.0, 2, 5, 2]), np.array([3.0, 4, 3, 9])
    usual = in_batches(y, p, None, [2, 3])
    found = in_batches(y * size, p * size, None, [2, 3])
    for a, b in ORDERS:
        assert float(found.plain.sums[a, b]) == pytest.approx(
            float(usual.plain.sums[a, b]) * size ** (a + b), rel=1e-10
        )


# --- less order, other units ---------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [0.0, 0.5, 1e4])
def test_order_two_has_the_same_sums_up_to_order_two(weighted, bias):
    y, p = heavy(5_000)
    p = p + bias
    w = RNG.gamma(2.0, 1.0, 5_000) if weighted else None
    full, part = Moments.of(y, p, w), Moments.of(y, p, w, order=2)
    second = [(a, b) for a, b in ORDERS if a + b == 2]
    assert_sums(part, y, p, w, orders=second, tolerance=1e-11)
    for name in ("absolute", "absolute_squared", "squares", "largest"):
        assert float(getattr(part, name)) == pytest.approx(float(getattr(full, name)), rel=1e-12)
    e = np.subtract(p, y, dtype=np.longdouble)
    weight = 1.0 if w is None else w.astype(np.longdouble)
    assert float(part.squares) == pytest.approx(float((weight * e**2).sum()), rel=1e-13)
    assert float(part.absolute) == pytest.approx(float((weight * np.abs(e)).sum()), rel=1e-13)


@pytest.mark.parametrize("order", [0, 1, 3, 5])
def test_there_are_two_orders(order):
    with pytest.raises(BadOption, match="order 2 or 4"):
        Moments.of([1.0], [1.0], order=order)


@given(columns(), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
@examples(40)
def test_scaled_is_the_summary_in_the_other_unit(pair, factor, shift):
    y, p = pair
    one = Moments.of(y, p, constants={"c": 5.0}).scaled(factor, shift)
    other = Moments.of(
        y * factor + shift, p * factor + shift, constants={"c": 5.0 * factor + shift}
    )
    reach = float(np.abs([*y, *p, 5.0]).max()) * factor + abs(shift)
    assert float(one.plain.y) == pytest.approx(float(other.plain.y), abs=1e-12 * reach)
    assert float(one.plain.e) == pytest.approx(float(other.plain.e), abs=1e-12 * reach)
    n = len(y)
    for a, b in ORDERS:
        found, wanted = float(one.plain.sums[a, b]), float(other.plain.sums[a, b])
        assert abs(found - wanted) <= 1e-10 * n * (4.0 * reach) ** (a + b) + 1e-300
    assert float(one.largest) == pytest.approx(float(other.largest), abs=1e-12 * reach)
    assert float(one.absolute) == pytest.approx(float(other.absolute), abs=1e-11 * n * reach)
    assert float(one.squares) == pytest.approx(float(other.squares), abs=1e-10 * n * reach**2)
    assert float(one.spread["c"]) == pytest.approx(float(other.spread["c"]), abs=1e-11 * n * reach)


def test_scaled_moves_the_bins_with_the_errors():
    y, p = heavy(500)
    p[:5] = y[:5]
    one = Moments.of(y, p, histogram=True).scaled(104.26, 673.27)
    assert one.histogram[regression.ZERO_BIN] == 5
    other = Moments.of(y * 104.26, p * 104.26, histogram=True)
    assert sum(map(float, one.histogram.values())) == 500
    exact = 104.26 * np.median(np.abs(p - y))
    for table in (one, other):
        assert find_metric("median_absolute_error", Moments)(table) == pytest.approx(
            exact, rel=0.0051
        )
    with pytest.raises(OrdinateError, match="differ in step"):
        _ = one + other


@pytest.mark.parametrize(("factor", "shift"), [(0.0, 1), (-1.0, 0), (math.nan, 0), (1, math.inf)])
def test_a_unit_is_not_turned_around(factor, shift):
    with pytest.raises(BadOption, match="number above 0"):
        Moments.of([1.0], [2.0]).scaled(factor, shift)


# --- weights -------------------------------------------------------------------------------------


@given(columns(), st.data())
@examples(40)
def test_whole_weights_are_repetitions(pair, data):
    y, p = pair
    times = data.draw(st.lists(st.integers(0, 4), min_size=len(y), max_size=len(y)))
    if not any(times):
        times[0] = 1
    weighted = Moments.of(y, p, times, histogram=True, constants={"c": 1.5})
    repeated = Moments.of(
        np.repeat(y, times), np.repeat(p, times), histogram=True, constants={"c": 1.5}
    )
    assert weighted.has_integer_weights
    assert weighted.n == sum(t > 0 for t in times)
    assert weighted.total == repeated.total == repeated.n
    assert_same_but_items(weighted, repeated)


def assert_same_but_items(first, second):
    for a, b in ORDERS:
        scale = math.sqrt(
            abs(float(second.plain.sums[2, 0])) ** a * abs(float(second.plain.sums[0, 2])) ** b
        )
        gap = float(first.plain.sums[a, b]) - float(second.plain.sums[a, b])
        assert abs(gap) <= 1e-10 * max(scale, 1e-9)
    assert float(first.absolute) == pytest.approx(float(second.absolute), rel=1e-12)
    assert float(first.squares) == pytest.approx(float(second.squares), rel=1e-12)
    assert float(first.spread["c"]) == pytest.approx(float(second.spread["c"]), rel=1e-12)
    assert {k: float(x) for k, x in first.histogram.items()} == pytest.approx(
        {k: float(x) for k, x in second.histogram.items()}
    )


def test_a_weight_of_zero_is_no_item_whatever_stands_there():
    y, p = heavy(50)
    w = RNG.gamma(1.0, 1.0, 50)
    kept = Moments.of(y, p, w, histogram=True)
    y, p, w = (
        np.concatenate([x, extra])
        for x, extra in ((y, [np.nan, 1]), (p, [1, -np.inf]), (w, [0, 0]))
    )
    found = Moments.of(y, p, w, histogram=True)
    assert_same(found, kept)
    assert found.n == 50
    assert not found.has_integer_weights
    whole = Moments.of([1, np.nan], [2, 1], [3, 0])
    assert whole.has_integer_weights
    assert whole.n == 1


def test_no_weight_at_all_is_no_items():
    with pytest.raises(NoItems, match="all weights are 0"):
        Moments.of([1.0, np.nan], [1.0, 2.0], [0, 0])
    with pytest.raises(NoItems, match="columns are empty"):
        Moments.of([], [])


@pytest.mark.parametrize("grouped", [False, True])
def test_a_bad_weight_is_named_with_its_row(grouped):
    groups = factorize_column(["a", "b", "a", "b"]) if grouped else None
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(BadWeights, match=r"row 4\)"):
            Moments.of([1.0, 2, 3, 4], [1.0, 2, 3, 4], [1, 1, 1, bad], groups=groups)


def test_weights_have_the_length_of_the_targets():
    with pytest.raises(UnequalLengths, match="2 targets and 3 weights"):
        Moments.of([1.0, 2.0], [1.0, 2.0], [1, 1, 1])
    with pytest.raises(BadWeights, match="numbers"):
        Moments.of([1.0, 2.0], [1.0, 2.0], ["a", "b"])


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("histogram", [False, True])
def test_groups_are_a_batch_of_single_summaries(weighted, histogram):
    y, p = heavy(2_000)
    names = RNG.choice(["x", "y", "z", None], 2_000, p=[0.5, 0.3, 0.199, 0.001])
    w = RNG.gamma(1.0, 1.0, 2_000) if weighted else None
    how = {"histogram": histogram, "constants": {"c": 600.0}}
    groups = factorize_column(names)
    batch = Moments.of(y, p, w, groups=groups, **how)
    assert batch.shape == (len(groups.values),)
    for k in range(len(groups.values)):
        rows = groups.codes == k
        assert_same(batch[k], Moments.of(y[rows], p[rows], None if w is None else w[rows], **how))
    assert_same(batch.pooled, Moments.of(y, p, w, **how))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 100])
def test_any_number_of_groups_is_pooled(count):
    y, p = heavy(300)
    groups = Groups(list(range(count)), np.arange(300) % count)
    batch = Moments.of(y, p, groups=groups, histogram=True)
    assert_same(batch.pooled, Moments.of(y, p, histogram=True))
    assert batch.n == 300


def test_a_group_without_items_counts_for_nothing():
    groups = Groups(["a", "empty", "b"], np.array([0, 0, 2, 2]))
    batch = Moments.of([1.0, 2, 3, 4], [1.0, 3, 3, 5], groups=groups, histogram=True)
    assert batch.items.tolist() == [2, 0, 2]
    assert np.isnan(batch.plain.mean(2, 0)[1])
    assert_same(batch.pooled, Moments.of([1.0, 2, 3, 4], [1.0, 3, 3, 5], histogram=True))
    with pytest.raises(NoItems, match="no group has any"):
        _ = batch[1:2].pooled


def test_what_was_dropped_is_counted_once():
    from dataclasses import replace

    batch = Moments.of([1.0, 2, 3], [1.0, 2, 4], groups=Groups(["a", "b", "c"], np.arange(3)))
    assert replace(batch, dropped=[4, 0, 3]).pooled.dropped == 7


def test_a_bad_value_in_a_group_is_named_with_its_row():
    groups = factorize_column(["a", "b", "a", "b"])
    with pytest.raises(BadValues, match="prediction of row 3 is nan"):
        Moments.of([1.0, 2, 3, 4], [1.0, 2, np.nan, 4], groups=groups)
    with pytest.raises(BadValues, match="target of row 4 is inf"):
        Moments.of([1.0, 2, 3, np.inf], [1.0, 2, 3, 4], [0, 1, 1, 1], groups=groups)
    with pytest.raises(UnequalLengths, match="3 targets and 4 groups"):
        Moments.of([1.0, 2, 3], [1.0, 2, 3], groups=groups)


# --- the histogram -------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-60, 1e60), min_size=1, max_size=50))
def test_a_bin_stands_for_its_errors_to_half_a_per_cent(errors):
    for size in errors:
        (place,) = bin_error_sizes(np.array([size]))
        assert compute_bin_size(place) == pytest.approx(size, rel=0.00501)


def test_errors_of_nothing_have_a_bin_of_their_own():
    found = bin_error_sizes(np.array([0.0, 1.0, 0.0]), np.array([0.5, 1.0, 0.25]))
    assert float(found[regression.ZERO_BIN]) == 0.75
    assert compute_bin_size(regression.ZERO_BIN) == 0.0


# --- rows that come in parts ---------------------------------------------------------------------


def test_a_counter_adds_part_by_part_and_knows_the_rows():
    y, p = heavy(100)
    w = RNG.gamma(1.0, 1.0, 100)
    counter = MomentsAccumulator({"c": 5.0}, histogram=True)
    for where in (slice(0, 10), slice(10, 10), slice(10, 60), slice(60, 100)):
        counter.add(y[where], p[where], w[where])
    assert_same(counter.summary(), Moments.of(y, p, w, constants={"c": 5.0}, histogram=True))
    with pytest.raises(BadValues, match="prediction of row 102 is nan"):
        counter.add(np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.array([1.0, 1.0]))


def test_sums_about_another_point_and_back_are_the_same():
    y, p = heavy(200)
    plain = Moments.of(y, p).plain
    moved = plain.recenter_sums(np.asarray(700.0), np.asarray(-20.0))
    assert float(moved.sums[2, 0]) == pytest.approx(float(((y - 700) ** 2).sum()), rel=1e-12)
    assert float(moved.sums[1, 3]) == pytest.approx(
        float(((y - 700) * (p - y + 20) ** 3).sum()), rel=1e-11
    )
    back = moved.recenter_sums(plain.y, plain.e)
    assert np.allclose(back.sums, plain.sums, rtol=1e-9, atol=1e-6 * float(plain.sums[4, 0]))
    assert isinstance(back, CentralSums)
