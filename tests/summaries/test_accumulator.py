"""Streams: everything, a window, a decay."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ordinate
from ordinate.errors import BadOption, NoItems
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.accumulator import Accumulator
from ordinate.summaries.regression import Moments

SCALE = "1..5"
RNG = np.random.default_rng(0)
BATCHES = [tuple(RNG.integers(1, 6, (2, size))) for size in (3, 1, 4, 1, 5)]


def fill(stream):
    for gold, predicted in BATCHES:
        stream.add(gold, predicted)
    return stream.summary()


def count(batches):
    gold, predicted = (np.concatenate(columns) for columns in zip(*batches, strict=True))
    return ConfusionMatrix.of(gold, predicted, SCALE)


def test_everything_is_what_one_pass_counts():
    assert fill(Accumulator(SCALE)) == count(BATCHES)


@pytest.mark.parametrize("window", [1, 2, 5, 9])
def test_a_window_has_the_last_batches(window):
    assert fill(Accumulator(SCALE, window=window)) == count(BATCHES[-window:])


def test_older_batches_weigh_less():
    found = fill(Accumulator(SCALE, decay=0.5))
    weights = np.repeat(0.5 ** np.arange(len(BATCHES))[::-1], [len(x) for x, _ in BATCHES])
    gold, predicted = (np.concatenate(columns) for columns in zip(*BATCHES, strict=True))
    usual = ConfusionMatrix.of(gold, predicted, SCALE, weights)
    assert (found.items == usual.items).all()
    assert (found.weights == usual.weights).all()
    assert (found.squares == usual.squares).all()
    assert not found.has_integer_weights
    assert ordinate.evaluate(found, metrics="mae").metrics["mae"].estimate.low > 0


def test_a_stream_is_evaluated_at_any_moment():
    stream = Accumulator(SCALE)
    with pytest.raises(NoItems, match="No batch"):
        stream.summary()
    stream.add([1, 2], [1, 3])
    assert ordinate.evaluate(stream.summary(), interval=None).confusion_matrix.n == 2
    stream.merge(ConfusionMatrix.of([5], [5], SCALE))
    assert (stream.batches, stream.summary().n) == (2, 3)


def test_other_summaries_have_no_decay():
    stream = Accumulator(Moments.of, decay=0.9)
    stream.add([1.0], [2.0])
    with pytest.raises(BadOption, match="take a window"):
        stream.add([1.0], [2.0])
    window = Accumulator(Moments.of, window=1)
    window.add([1.0], [2.0])
    window.add([3.0], [2.0])
    assert float(window.summary().plain.e) == -1.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 0}, "at least one"),
        ({"decay": 0.0}, "not above 0"),
        ({"decay": 1.5}, "at most 1"),
        ({"window": 1, "decay": 0.5}, "not both"),
    ],
)
def test_odd_options_are_refused(options, told):
    with pytest.raises(BadOption, match=told):
        Accumulator(SCALE, **options)


# --- parts ---------------------------------------------------------------------------------------


def merge_anyhow(parts, rng):
    """Merge some parts, whichever they are, until one is left."""
    while len(parts) > 1:
        parts = [parts[k] for k in rng.permutation(len(parts))]
        size = int(rng.integers(2, max(3, len(parts) // 3)))
        parts = [reduce(add, parts[:size]), *parts[size:]]
    return parts[0]


@settings(max_examples=1, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_ten_thousand_parts_are_one_pass_in_any_order_and_grouping(seed):
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(1, 6, (2, 20_000))
    bounds = np.sort(rng.choice(np.arange(1, 20_000), 9_999, replace=False))
    parts = zip(np.split(gold, bounds), np.split(predicted, bounds), strict=True)
    parts = [ConfusionMatrix.of(*part, SCALE) for part in parts]
    assert len(parts) == 10_000
    found = merge_anyhow(parts, rng)
    assert found == ConfusionMatrix.of(gold, predicted, SCALE)
