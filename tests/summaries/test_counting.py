"""Pairs of labels are counted in few passes and little memory, whatever their number."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_items import SCALE
from law_examples import examples
from strategies import scale_of

from ordinate.scale import Scale
from ordinate.scale.encoding import CHUNK, encode_labels
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import ROWS_PER_BATCH, count_pairs

# --- the fold: counting many items with one histogram --------------------------------------------

MOST = 3 * ROWS_PER_BATCH + 5
SIZES = [0, 1, 2, 3, CHUNK - 1, CHUNK + 1, ROWS_PER_BATCH - 1, ROWS_PER_BATCH + 1, MOST]


def added_up(gold, predicted, size):
    cells = np.zeros((size, size), np.int64)
    np.add.at(cells, (gold, predicted), 1)
    return cells


@pytest.mark.parametrize("levels", [*range(2, 21), 300])
def test_counting_equals_adding_item_by_item(levels):
    scale = scale_of(levels)
    numbers = Scale(range(levels))
    rng = np.random.default_rng(levels)
    kind = np.int8 if levels < 128 else np.int16
    gold, predicted = rng.integers(0, levels, (2, MOST), dtype=kind)
    for n in SIZES:
        expected = added_up(gold[:n], predicted[:n], levels)
        found = count_pairs(encode_labels(numbers, gold[:n]), encode_labels(numbers, predicted[:n]))
        np.testing.assert_array_equal(found, expected, err_msg=f"{n} integers")
        first, second = (
            encode_labels(scale, pd.Categorical.from_codes(column[:n], list(scale.labels)))
            for column in (gold, predicted)
        )
        np.testing.assert_array_equal(
            count_pairs(first, second), expected, err_msg=f"{n} categories"
        )


@given(
    levels=st.integers(2, 9),
    n=st.integers(1, 3000),
    seed=st.integers(0, 2**32),
    skewed=st.booleans(),
)
@examples(60)
def test_counting_equals_adding_at_any_size(levels, n, seed, skewed):
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, levels, (2, n))
    if skewed:
        gold[n // 3 :] = levels - 1
        predicted[n // 2 :] = 0
    scale = Scale(range(levels))
    found = count_pairs(encode_labels(scale, gold), encode_labels(scale, predicted))
    assert found.tolist() == added_up(gold, predicted, levels).tolist()


@pytest.mark.parametrize("n", [1, 100, 5000, CHUNK + 1])
@pytest.mark.parametrize("width", [2, 255, 256, 257, 300])
def test_one_code_against_many_is_counted(n, width):
    rng = np.random.default_rng(width)
    predicted = rng.integers(0, width, n)
    gold = pd.Categorical(["1"] * n, categories=["1"])
    table = ConfusionMatrix.of(gold, predicted, Scale(range(width)))
    assert table.counts[1].tolist() == np.bincount(predicted, minlength=width).tolist()
    assert table.total == n
    swapped = ConfusionMatrix.of(predicted, gold, Scale(range(width)))
    assert swapped.counts[:, 1].tolist() == table.counts[1].tolist()


@pytest.mark.parametrize("n", [1, 16, 17, 5000])
def test_one_code_against_one_is_counted(n):
    column = pd.Categorical(["mid"] * n)
    assert ConfusionMatrix.of(column, column, SCALE).counts.tolist() == [
        [0, 0, 0],
        [0, n, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("n", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_weighted_counting_equals_adding_item_by_item(n):
    rng = np.random.default_rng(n)
    gold, predicted = rng.integers(0, 5, (2, n))
    weights = rng.integers(0, 9, n) / 8
    table = ConfusionMatrix.of(gold, predicted, Scale(range(5)), weights)
    for power, part in ((1, table.weights), (2, table.squares)):
        expected = np.zeros((5, 5))
        np.add.at(expected, (gold, predicted), weights**power)
        assert part[:, :-1].tolist() == expected.tolist()
    there = weights > 0
    assert table.items[:, :-1].tolist() == added_up(gold[there], predicted[there], 5).tolist()


# --- memory --------------------------------------------------------------------------------------

MANY = 20_000_000


def extra_memory(gold, predicted, scale):
    """Return the most bytes that counting holds at once, beside the columns."""
    ConfusionMatrix.of(gold[:10], predicted[:10], scale)
    tracemalloc.start()
    try:
        table = ConfusionMatrix.of(gold, predicted, scale)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.total == MANY
    return peak


@pytest.fixture(scope="module")
def many_codes():
    codes = np.random.default_rng(1).integers(0, 6, MANY, dtype=np.int8)
    return codes, np.roll(codes, 1)


def test_counting_twenty_million_integers_takes_little_memory(many_codes):
    gold, predicted = many_codes
    assert extra_memory(gold, predicted, Scale.of("0..5")) < 16e6


def test_counting_twenty_million_categories_takes_little_memory(many_codes):
    scale = Scale.of("cefr")
    gold, predicted = (
        pd.Series(pd.Categorical.from_codes(codes, list(scale.labels))) for codes in many_codes
    )
    assert extra_memory(gold, predicted, scale) < 16e6
