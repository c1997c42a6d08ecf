"""A reliability summary is a sum over items: it bins them exactly, and it merges."""

import math
import tracemalloc

import naive_probabilities as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from naive_probabilities import judged, sample
from strategies import scale_of
from summary_values import assert_close

from ordinate.errors import (
    BadOption,
    BadProbabilities,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
    OrdinateError,
    UnequalLengths,
)
from ordinate.scale import Scale
from ordinate.summaries import reliability
from ordinate.summaries.probability_bins import assign_bins
from ordinate.summaries.reliability import CURVE_BINS, Reliability, ReliabilityParts

EVENTS = ("top", "levels", "cumulative")


def parts(*bins):
    found = frozenset((e, b) for e in EVENTS for b in bins or (10,))
    return ReliabilityParts(found, scores=True, confusion_matrix=True, ranking=True)


def summary(gold, rows, weights=None, wanted=None, **options):
    scale = scale_of(len(rows[0]))
    labels = [scale.labels[g] for g in gold]
    return Reliability.of(labels, rows, scale, wanted or parts(), weights=weights, **options)


# --- bins ----------------------------------------------------------------------------------------


def expected_bin(values, count):
    found = np.searchsorted(np.linspace(0, 1, count + 1), values, side="left") - 1
    return np.clip(found, 0, count - 1)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 10, 12, 15, 20, 33, 64, 97, 100, 999, 1000])
def test_a_value_on_an_edge_or_one_step_beside_it_is_where_searchsorted_puts_it(count):
    fractions = np.arange(count + 1) / count
    steps = [0.1 * k for k in range(11)] + [k * (1 / count) for k in range(count + 1)]
    edges = np.concatenate([np.linspace(0, 1, count + 1), fractions, steps, 1 - fractions])
    values = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 2), [1 + 1e-6]])
    values = np.abs(values)
    assert assign_bins(values, count).tolist() == expected_bin(values, count).tolist()


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 1000))
def test_any_value_is_where_searchsorted_puts_it(values, count):
    values = np.array(values)
    assert assign_bins(values, count).tolist() == expected_bin(values, count).tolist()


def test_the_edges_that_people_write():
    found = assign_bins(np.array([0.0, 5e-324, 0.1, 0.3, 0.30000000000000004, 0.7, 1.0]), 10)
    assert found.tolist() == [0, 0, 0, 2, 2, 6, 9]
    # linspace has 0.30000000000000004 at the place of 0.3, and 0.7000000000000001 at that of 0.7


@given(judged(), st.sampled_from([1, 2, 5, 10, 15]))
@examples(40)
def test_bins_are_sums_over_the_items(items, count):
    gold, rows, weights = items
    found = summary(gold, rows, weights, parts(count)).bins
    each = naive.each(gold, weights)
    events = {
        "top": [naive.top(gold, rows)],
        "levels": naive.levels(gold, rows),
        "cumulative": naive.cumulative(gold, rows),
    }
    for kind, wanted in events.items():
        bins = found[kind, count]
        for event, pairs in enumerate(wanted):
            sums = naive.binned(pairs, each, count)
            for k in range(count):
                six = [part[event, k] for part in (bins.items, bins.weight, *bins[3:])]
                assert six == pytest.approx(sums.get(k, [0] * 6), abs=1e-12)


@given(judged(weighted=False))
@examples(40)
def test_ties_of_the_maximum_go_to_the_lowest_level(items):
    gold, rows, _ = items
    found = summary(gold, rows).argmax.counts
    wanted = np.zeros_like(found)
    for g, row in zip(gold, rows, strict=True):
        wanted[g, row.index(max(row))] += 1
    assert found.tolist() == wanted.tolist()


def test_an_even_row_is_for_the_lowest_level():
    found = summary([5, 0], [[1 / 6] * 6] * 2)
    assert found.argmax.counts[:, 0].tolist() == [1, 0, 0, 0, 0, 1]
    assert found.bins["top", 10].items[0].tolist() == [0, 2] + [0] * 8


@given(judged())
@examples(40)
def test_the_other_sums(items):
    gold, rows, weights = items
    found, each = summary(gold, rows, weights), naive.each(gold, weights)
    alive = [w for w in each if w]
    assert found.n == len(alive)
    assert float(found.weight) == pytest.approx(sum(alive))
    assert float(found.squares) == pytest.approx(sum(w * w for w in alive))
    size = len(rows[0])
    table, confidence = np.zeros((size, size)), np.zeros(size)
    for g, row, w in zip(gold, rows, each, strict=True):
        table[g] += w * np.array(row)
        confidence[naive.best(row)[0]] += w * naive.best(row)[1]
    np.testing.assert_allclose(found.confusion_matrix, table, atol=1e-12)
    np.testing.assert_allclose(found.confidence, confidence, atol=1e-12)
    items_of = [(naive.brier_of, naive.log_loss_of, naive.rps_sum_of)]
    scores = np.array(
        [
            [score(g, row) for score in items_of[0]]
            for g, row, w in zip(gold, rows, each, strict=True)
            if w
        ]
    )
    w = np.array(alive)
    np.testing.assert_allclose(found.scores.weighted, w @ scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.scores.squared, w**2 @ scores, rtol=1e-12, atol=1e-12)
    products = np.einsum("n,na,nb->ab", w**2, scores, scores)
    np.testing.assert_allclose(found.scores.products, products, rtol=1e-12, atol=1e-12)


def test_scores_near_perfection_do_not_drown_in_rounding():
    found = summary([0, 1], [[1 - 1e-9, 1e-9], [1e-12, 1 - 1e-12]])
    wanted = naive.brier_of(0, [1 - 1e-9, 1e-9]) + naive.brier_of(1, [1e-12, 1 - 1e-12])
    assert found.scores.weighted[0] == pytest.approx(wanted, rel=1e-9)
    assert found.scores.weighted[0] > 0


def test_clipped_items_are_counted_and_what_clipping_took_off_is_kept():
    rows = [[0.0, 1.0], [1e-20, 1.0], [2.0**-52, 1.0], [0.5, 0.5]]
    scores = summary([0, 0, 0, 1], rows, [1.0, 2.0, 1.0, 1.0]).scores
    assert (scores.clipped, scores.impossible) == (2, 1)
    assert float(scores.beyond) == pytest.approx(2 * (math.log(2.0**-52) - math.log(1e-20)))


# --- weights -------------------------------------------------------------------------------------


@given(judged(weighted=False), st.data())
@examples(40)
def test_whole_weights_are_repeated_rows(items, data):
    gold, rows, _ = items
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(gold), max_size=len(gold)))
    times[0] += 1
    weighted = summary(gold, rows, [float(t) for t in times])
    repeated = summary(
        [g for g, t in zip(gold, times, strict=True) for _ in range(t)],
        [row for row, t in zip(rows, times, strict=True) for _ in range(t)],
    )
    np.testing.assert_allclose(weighted.weight, repeated.weight)
    np.testing.assert_allclose(weighted.confusion_matrix, repeated.confusion_matrix, atol=1e-12)
    np.testing.assert_allclose(weighted.ranking, repeated.ranking)
    np.testing.assert_allclose(weighted.scores.weighted, repeated.scores.weighted, atol=1e-11)
    np.testing.assert_allclose(weighted.argmax.weights, repeated.argmax.weights)
    for key, bins in weighted.bins.items():
        for name in ("weight", "f", "o", "ff", "fo"):
            mine, theirs = getattr(bins, name), getattr(repeated.bins[key], name)
            np.testing.assert_allclose(mine, theirs, atol=1e-12)


@given(judged(), st.data())
@examples(40)
def test_an_item_of_weight_0_does_not_exist_whatever_it_says(items, data):
    gold, rows, weights = items
    each = naive.each(gold, weights)
    place = data.draw(st.integers(0, len(gold)))
    junk = data.draw(st.sampled_from([[math.nan], [-1.0], [math.inf], [0.0]])) * len(rows[0])
    scale = scale_of(len(rows[0]))
    labels = [scale.labels[g] for g in gold]
    more = [*labels[:place], data.draw(st.sampled_from([None, "elsewhere"])), *labels[place:]]
    found = Reliability.of(
        more,
        [*rows[:place], junk, *rows[place:]],
        scale,
        parts(),
        weights=[*each[:place], 0.0, *each[place:]],
        columns="scale",
    )
    assert_close(found, summary(gold, rows, each))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_bad_weight_is_named(bad):
    with pytest.raises(BadWeights, match="row 2"):
        summary([0, 0], [[1, 0], [1, 0]], [1.0, bad])


# --- merging -------------------------------------------------------------------------------------


@given(judged(max_items=40), st.integers(1, 8))
@examples(40)
def test_blocks_pool_to_one_pass(items, blocks):
    gold, rows, weights = items
    found = summary(gold, rows, weights, blocks=blocks)
    assert found.shape == (blocks,)
    assert_close(found.pooled, summary(gold, rows, weights))


@given(judged(max_items=30), st.integers(1, 7), st.sampled_from([None, 3]))
@examples(40)
def test_the_size_of_a_chunk_does_not_matter(items, size, blocks):
    gold, rows, weights = items
    whole = summary(gold, rows, weights, blocks=blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reliability, "ROWS_PER_BLOCK", size)
        assert_close(summary(gold, rows, weights, blocks=blocks), whole)


def test_blocks_are_even_and_do_not_follow_the_order_of_the_file():
    gold, rows = sample(6400)
    found = summary(gold, rows, blocks=64)
    assert found.items.min() > 60
    assert found.items.max() < 145
    ordered = np.argsort(gold, kind="stable")
    spread = summary(gold[ordered], rows[ordered], blocks=64)
    assert (spread.argmax.gold[:, 3] > 0).all()  # sorted by gold, each level is in every block


@given(judged(max_items=30), st.data())
@examples(40)
def test_a_mixture_is_a_sum_of_blocks(items, data):
    gold, rows, weights = items
    found = summary(gold, rows, weights, blocks=3)
    times = data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3))
    mixed = found.sum_with_multiplicities(np.array([times, [1, 1, 1]], float))
    assert mixed.shape == (2,)
    assert_close(mixed[1], found.pooled)
    by_hand = found.map(lambda array: np.einsum("g,g...->...", np.array(times, float), array))
    assert_close(mixed[0], by_hand)


@pytest.mark.parametrize(
    "other",
    [
        lambda: summary([0], [[1, 0, 0]]),
        lambda: summary([0], [[1, 0]], wanted=parts(5)),
        lambda: summary([0], [[1, 0]], wanted=ReliabilityParts(parts().bins)),
        lambda: summary([0], [[1, 0]], blocks=4),
    ],
    ids=["scale", "bins", "parts", "blocks"],
)
def test_what_does_not_fit_is_not_added(other):
    with pytest.raises(OrdinateError, match="cannot be added"):
        summary([0], [[1, 0]]) + other()


def test_dropped_items_are_counted_and_reach_the_table_of_the_most_probable_level():
    scale, rows = Scale.of("low,high"), [[0.2, 0.8]] * 4
    gold = ["low", None, "high", float("nan")]
    found = Reliability.of(gold, rows, scale, parts(), missing="drop", blocks=4, columns="scale")
    assert (found.n, found.dropped.sum(), found.pooled.dropped) == (2, 2, 2)
    assert found.pooled.argmax.dropped == 2
    more = found.pooled + found.pooled
    assert (more.dropped, more.argmax.dropped) == (4, 4)


def test_an_item_with_empty_cells_only_is_dropped_and_one_with_a_hole_is_refused():
    nan, scale = math.nan, Scale.of("low,high")
    rows = [[0.2, 0.8], [nan, nan], [0.6, 0.4]]
    found = Reliability.of(
        ["low", "low", "high"], rows, scale, parts(), missing="drop", columns="scale"
    )
    assert (found.n, found.dropped) == (2, 1)
    kept = Reliability.of(["low", "high"], rows[::2], scale, parts(), columns="scale")
    np.testing.assert_allclose(found.scores.weighted, kept.scores.weighted)
    with pytest.raises(BadProbabilities, match="row 2"):
        Reliability.of(["low", "low", "high"], rows, scale, parts(), columns="scale")
    for hole in ([nan, 1.0], [1.0, nan]):
        with pytest.raises(BadProbabilities, match="row 2"):
            Reliability.of(
                ["low", "low"], [rows[0], hole], scale, parts(), missing="drop", columns="scale"
            )


# --- bins of isotonic curves ---------------------------------------------------------------------

CURVES = ReliabilityParts(curves=True)


def test_each_probability_of_three_decimals_has_a_bin_of_its_own():
    values = np.arange(1_001) / 1_000
    places = assign_bins(values, CURVE_BINS)
    assert len(set(places.tolist())) == 1_001
    for nudge in (-1e-9, 1e-9):  # and stays there, if it is a sum that was rounded
        inner = values[1:-1] + nudge
        assert (assign_bins(inner, CURVE_BINS) == places[1:-1]).all()
    assert assign_bins(np.array([1 - 1e-9]), CURVE_BINS)[0] == places[-1]


@given(judged())
@examples(20)
def test_curves_are_sums_over_the_items_of_all_blocks(items):
    gold, rows, weights = items
    found = summary(gold, rows, weights, CURVES)
    spread = summary(gold, rows, weights, CURVES, blocks=5)
    each = naive.each(gold, weights)
    for event, pairs in enumerate(naive.cumulative(gold, rows)):
        sums = naive.binned(pairs, each, CURVE_BINS)
        filled = np.flatnonzero(found.curves.items[event])
        assert filled.tolist() == sorted(sums)
        for k in filled:
            six = [part[event, k] for part in (found.curves[0], found.curves[1], *found.curves[3:])]
            assert six == pytest.approx(sums[k], abs=1e-12)
    for batch in (spread, spread.pooled):
        for part, wanted in zip(batch.curves, found.curves, strict=True):
            np.testing.assert_array_equal(part, wanted)


def test_curves_merge_and_go_to_plain_values_and_back():
    first, second = (summary([k], [[0.3, 0.7]], wanted=CURVES) for k in (0, 1))
    both = summary([0, 1], [[0.3, 0.7]] * 2, wanted=CURVES)
    assert (first + second).curves.o.sum() == 1
    assert_close(first + second, both)
    assert_close(Reliability.stack([first, second]).pooled, both)
    stored = both.to_dict()
    assert Reliability.from_dict(stored) == both
    with pytest.raises(OrdinateError, match="with curves and one without"):
        _ = both + summary([0], [[0.3, 0.7]], wanted=ReliabilityParts())
    short = stored | {"curves": [np.array(part)[:, :10].tolist() for part in stored["curves"]]}
    with pytest.raises(OrdinateError, match="curves does not fit"):
        Reliability.from_dict(short)


# --- what is asked for, and what is refused ------------------------------------------------------


def test_wishes_unite_and_only_they_are_kept():
    wanted = (
        ReliabilityParts(frozenset({("top", 5)}))
        | ReliabilityParts(confusion_matrix=True)
        | ReliabilityParts(frozenset({("levels", 3)}))
    )
    found = summary([0], [[1, 0]], wanted=wanted)
    assert set(found.bins) == {("top", 5), ("levels", 3)}
    assert found.confusion_matrix is not None
    assert found.scores is found.ranking is None


@pytest.mark.parametrize("count", [0, -1, 1001, 2.5])
def test_so_many_bins_are_refused(count):
    with pytest.raises(BadOption, match="from 1 to 1,000"):
        ReliabilityParts(frozenset({("top", count)}))


def test_doors_name_what_is_wrong():
    scale, rows = Scale.of("low,high"), [[0.5, 0.5], [0.4, 0.6]]
    with pytest.raises(MissingLabels, match=r"\(row 2\).*missing='drop'"):
        Reliability.of(["low", None], rows, scale, parts(), columns="scale")
    with pytest.raises(OffScale, match=r"'mid'.*row 2"):
        Reliability.of(["low", "mid"], rows, scale, parts(), columns="scale")
    with pytest.raises(UnequalLengths, match="1 gold labels and 2 rows"):
        Reliability.of(["low"], rows, scale, parts(), columns="scale")
    with pytest.raises(UnequalLengths, match="2 labels and 1 weights"):
        Reliability.of(["low", "high"], rows, scale, parts(), weights=[1.0], columns="scale")
    with pytest.raises(NoItems, match="empty"):
        Reliability.of([], np.empty((0, 2)), scale, parts(), columns="scale")
    with pytest.raises(NoItems, match="none has a gold label, prob"):
        Reliability.of([None, None], rows, scale, parts(), missing="drop", columns="scale")
    with pytest.raises(NoItems, match="probabilities and weight"):
        Reliability.of(["low", "high"], rows, scale, parts(), weights=[0, 0], columns="scale")


@pytest.mark.parametrize("place", [0, 5, 16_383, 16_384, 39_999])
def test_the_row_is_named_wherever_it_is(place):
    rows = np.full((40_000, 2), 0.5)
    rows[place] = 0.4
    gold = np.zeros(40_000, int)
    with pytest.raises(BadProbabilities, match=f"row {place + 1}, '\\[0.4, 0.4\\]', sum to 0.8"):
        Reliability.of(gold, rows, "0..1", ReliabilityParts(scores=True))


def test_the_row_keeps_its_number_where_rows_before_it_are_dropped():
    rows, gold = [[0.5, 0.5]] * 3 + [[0.5, 0.6]], [None, "low", None, "low"]
    with pytest.raises(BadProbabilities, match="row 4"):
        Reliability.of(gold, rows, "low,high", parts(), missing="drop", columns="scale")


def test_renormalizing_gives_rows_that_sum_to_1():
    rows = np.array([[0.2, 0.3, 0.505], [0.1, 0.1, 0.795]])
    found = summary([0, 2], rows.tolist(), renormalize=True)
    exact = rows / rows.sum(axis=1, keepdims=True)
    assert_close(found, summary([0, 2], exact.tolist()))
    with pytest.raises(BadProbabilities, match=r"sum to 1\.005.*renormalize=True"):
        summary([0, 2], rows.tolist())


def test_single_precision_is_read_as_what_it_is():
    gold, rows = sample(500)
    single = rows.astype(np.float32)
    assert_close(summary(gold, single), summary(gold, single.astype(float)))


def test_columns_of_memory_in_any_layout_are_the_same():
    gold, rows = sample(300)
    wide = np.empty((300, 12))
    wide[:, ::2] = rows
    for other in (np.asfortranarray(rows), wide[:, ::2], rows[::-1][::-1]):
        assert_close(summary(gold, other), summary(gold, rows))


def test_the_input_stays_as_it_was():
    gold, rows = sample(300)
    before = rows.copy()
    summary(gold, rows, renormalize=True)
    summary(gold, rows)
    assert (rows == before).all()


def test_little_memory_is_needed_beside_the_input():
    gold, rows = sample(300_000)
    scale = Scale.of("0..5")
    tracemalloc.start()
    Reliability.of(gold, rows, scale, parts(), blocks=64, columns="scale")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6
