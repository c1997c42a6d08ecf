"""What every summary keeps: it merges, batches, is equal by value, and goes to JSON and back."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from summary_values import SAMPLES, assert_close, empty_like, list_arrays

from ordinate.errors import BadInput, OrdinateError
from ordinate.readers.probability_sums import ProbabilitySums
from ordinate.summaries.base import SCALE_KEYS, BatchSummary, Summary
from ordinate.summaries.prediction_intervals import ItemSums
from ordinate.summaries.regression import Moments
from ordinate.summaries.regression_sums import ErrorSizes, RegressionSums

TOLERANCE = 1e-9  # of central moments, which are moved to other means
FEW = [(0, 1, 2), (5, 3, 3), (7, 7, 2), (1, 4, 9)]

numbers = st.integers(0, 12)
rows = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8)
fractions = st.sampled_from([0.25, 0.5, 1.5, 2.75])  # none is a count, and their sums are exact


@st.composite
def summaries(draw, make, count=3):
    """A few summaries of one make: all weighted, or none of them."""
    lists = [draw(rows) for _ in range(count)]
    if draw(st.booleans()):
        return [make(rows, None) for rows in lists]
    return [make(rows, [draw(fractions) for _ in rows]) for rows in lists]


def leave_out(parts):
    """The same summaries, of which the first left out one item, the second two, and so on."""
    return [replace(part, dropped=k) for k, part in enumerate(parts, start=1)]


def every(condition):
    samples = {name: sample for name, sample in SAMPLES.items() if condition(sample)}
    return pytest.mark.parametrize("make", [s.make for s in samples.values()], ids=list(samples))


each = every(lambda _: True)
each_mergeable = every(lambda sample: not sample.ordered)
each_counting = every(lambda sample: sample.counts_rows and not sample.ordered)
each_batch = every(lambda sample: isinstance(sample.make(FEW, None), BatchSummary))


def list_classes(of=Summary):
    return {of} | {found for each in of.__subclasses__() for found in list_classes(each)}


def test_every_summary_is_held_to_these_laws():
    sampled = {type(sample.make(FEW, None)) for sample in SAMPLES.values()}
    of_one_pass = {RegressionSums, ErrorSizes, ProbabilitySums}  # made of others, keys given
    assert sampled == list_classes() - {Summary, BatchSummary, ItemSums} - of_one_pass


# --- merging -------------------------------------------------------------------------------------


@each_mergeable
@given(data=st.data())
@examples(30)
def test_merging_knows_no_order(make, data):
    first, second, third = data.draw(summaries(make))
    assert_close(first + second, second + first, TOLERANCE)
    assert_close((first + second) + third, first + (second + third), TOLERANCE)


@each_counting
@given(first=rows, second=rows, weighted=st.booleans())
@examples(30)
def test_merging_parts_is_the_same_as_counting_all_rows(make, first, second, weighted):
    weights = [0.5 + k for k in range(len(first + second))] if weighted else None
    parts = (
        make(first, weights and weights[: len(first)]),
        make(second, weights and weights[len(first) :]),
    )
    assert_close(parts[0] + parts[1], make(first + second, weights), TOLERANCE)


@each
@given(data=st.data())
@examples(30)
def test_nothing_is_neutral(make, data):
    (summary,) = data.draw(summaries(make, count=1))
    assert_close(summary + empty_like(summary), summary, TOLERANCE)
    assert_close(empty_like(summary) + summary, summary, TOLERANCE)


@each
def test_merging_leaves_the_parts_as_they_were(make):
    summary, other = make(FEW, None), make(FEW[:2], [0.5, 2])
    before = summary.to_dict(), other.to_dict()
    merged = summary + other
    assert (summary.to_dict(), other.to_dict()) == before
    assert merged.n == summary.n + other.n


@each
def test_a_summary_merges_with_its_like_only(make):
    summary = make(FEW, None)
    for other in (1, None, make(FEW, None).to_dict()):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = summary + other


# --- batches -------------------------------------------------------------------------------------


@each_batch
@given(data=st.data())
@examples(30)
def test_a_batch_holds_its_summaries(make, data):
    parts = leave_out(data.draw(summaries(make)))
    batch = type(parts[0]).stack(parts)
    assert batch.shape == (3,)
    assert parts[0].shape == ()
    for k, part in enumerate(parts):
        assert batch[k] == part
    square = batch[np.array([[0, 1], [2, 0]])]
    assert square.shape == (2, 2)
    assert square[1, 0] == square[1][0] == parts[2]
    assert square[..., 1][0] == square[:, 1][0] == parts[1]
    assert batch[[True, False, True]][1] == parts[2]
    assert batch[1:][0] == parts[1]


@each_batch
@given(data=st.data())
@examples(30)
def test_pooling_a_batch_is_adding_its_summaries(make, data):
    parts = leave_out(data.draw(summaries(make, count=4)))
    batch = type(parts[0]).stack(parts)
    total = sum(parts)
    assert batch.pooled.dropped == total.dropped == 1 + 2 + 3 + 4
    assert_close(batch.pooled, total, TOLERANCE)
    assert_close(batch[np.arange(4).reshape(2, 2)].pooled, total, TOLERANCE)
    assert_close((batch + batch)[2], parts[2] + parts[2], TOLERANCE)


@each_batch
def test_only_plain_sums_are_summed_with_multiplicities(make):
    summary = make(FEW, None)
    batch = type(summary).stack([summary, summary])
    if isinstance(summary, Moments):
        for change in (batch.sum_with_multiplicities, batch.map):
            with pytest.raises(OrdinateError, match="of Moments are no plain sums"):
                change(np.eye(2))
    else:
        assert_close(batch.sum_with_multiplicities(np.array([1, 2])), summary + summary + summary)


@each_batch
def test_an_index_reaches_summaries_of_a_batch_never_their_cells(make):
    summary = make(FEW, None)
    with pytest.raises(IndexError, match="only a batch"):
        summary[0]
    batch = type(summary).stack([summary, summary])
    for index in (5, (0, 1), (0, slice(None), 0)):
        with pytest.raises(IndexError, match=r"out of bounds|too many"):
            batch[index]


@each_batch
def test_batches_of_other_shapes_are_not_added(make):
    summary = make(FEW, None)
    with pytest.raises(OrdinateError, match="Pool them first"):
        summary + type(summary).stack([summary, summary])


# --- values --------------------------------------------------------------------------------------


@each
@given(data=st.data())
@examples(30)
def test_a_summary_survives_json_exactly(make, data):
    parts = data.draw(summaries(make, count=2))
    batches = [type(parts[0]).stack(parts)] if isinstance(parts[0], BatchSummary) else []
    for summary in (*parts, *batches):
        stored = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
        again = type(summary).from_dict(stored)
        assert again == summary
        assert again.to_dict() == summary.to_dict()
        types = [{path: array.dtype for path, array in list_arrays(x)} for x in (again, summary)]
        assert types[0].keys() == types[1].keys()
        assert again + summary == summary + summary


@each
def test_a_dictionary_that_lacks_a_key_is_refused(make):
    summary = make(FEW, None)
    stored = summary.to_dict()
    for key in stored:
        rest = {name: value for name, value in stored.items() if name != key}
        with pytest.raises(BadInput, match=rf"of a {type(summary).__name__} lacks {key}"):
            type(summary).from_dict(rest)


def list_places(stored, path=()):
    """Each place of a dictionary at which a number, a boolean or a list of numbers stands."""
    if isinstance(stored, dict):
        for key, value in stored.items():
            yield from list_places(value, (*path, key))
    elif isinstance(stored, list) and stored and isinstance(stored[0], dict):
        for k, value in enumerate(stored):
            yield from list_places(value, (*path, k))
    elif path[-1] not in {*SCALE_KEYS, "systems", "group_values", "events"} and stored is not None:
        yield path


@each
@pytest.mark.parametrize("wrong", ["x", None, [[0.5], "x"], {"a": "x"}, [0.5] * 7, ["x"]], ids=str)
def test_a_dictionary_of_other_values_is_refused(make, wrong):
    summary = make(FEW, None)
    for path in list_places(summary.to_dict()):
        stored = summary.to_dict()
        holder = stored
        for key in path[:-1]:
            holder = holder[key]
        if wrong is None and getattr(type(summary), path[0], 0) is None:
            continue  # a part that a summary need not have
        holder[path[-1]] = wrong
        with pytest.raises(BadInput, match=r"dictionary"):
            type(summary).from_dict(stored)


@each
@pytest.mark.parametrize("wrong", [[], "x", None, 1], ids=str)
def test_what_is_no_dictionary_is_refused(make, wrong):
    with pytest.raises(BadInput, match="is read from a dictionary"):
        type(make(FEW, None)).from_dict(wrong)


@pytest.mark.parametrize(
    ("name", "key", "change"),
    [
        ("confusion matrix", "weights", lambda old: [[-1.0, *row[1:]] for row in old]),
        ("confusion matrix", "weights", lambda old: [row[1:] for row in old]),
        ("panel", "rows", lambda old: [[3, *row[1:]] for row in old]),
        ("panel", "rows", lambda old: [[0, 65536, 0] for _ in old]),
        ("panel", "rows", lambda old: [[0, 0.5, 0] for _ in old]),
        ("panel with groups", "groups", lambda old: [99 for _ in old]),
        ("pairs", "second_predictions", lambda old: [4 for _ in old]),
        ("moments", "order", lambda _: 3),
        ("moments", "largest", lambda _: -1.0),
        ("ensemble", "members", lambda _: 7),
        ("reliability", "confidence", lambda old: old[1:]),
        ("reliability", "items", lambda _: [1, 2]),
    ],
)
def test_values_off_the_scale_and_negative_counts_are_refused(name, key, change):
    summary = SAMPLES[name].make(FEW, None)
    stored = summary.to_dict()
    with pytest.raises(BadInput, match="The dictionary of a"):
        type(summary).from_dict(stored | {key: change(stored[key])})


@each
def test_summaries_are_equal_by_value(make):
    summary = make(FEW, None)
    assert summary == make(FEW, None)
    assert summary != make(FEW[:3], None)
    assert summary != make(FEW, [0.5, 1, 1, 1])
    assert summary != 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(summary)


@each
def test_a_summary_cannot_be_changed(make):
    summary = make(FEW, None)
    others = [summary + summary, type(summary).from_dict(summary.to_dict())]
    if isinstance(summary, BatchSummary):
        batch = type(summary).stack([summary, summary])
        others += [batch, batch[1], batch.pooled]
    for found in (summary, *others):
        for name in found.rules:
            with pytest.raises(FrozenInstanceError, match=name):
                setattr(found, name, None)
        for path, array in list_arrays(found):
            assert isinstance(array, np.generic) or not array.flags.writeable, path
