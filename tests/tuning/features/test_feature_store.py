"""Batches on disk: what is missing is made, whatever sizes earlier runs had."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ordinate.tuning.features.feature_store import BatchStore, stack_batches

ROWS = csr_matrix(np.random.default_rng(0).choice([0.0, 0.0, 0.5, 1.0], (10, 6)))


def kept(folder, spans, matrix=ROWS):
    batches = BatchStore(folder, matrix.shape[0])
    for start, stop in spans:
        batches.save(start, stop, matrix[start:stop])
    return batches


@pytest.mark.parametrize(
    ("there", "size", "missing"),
    [
        ((), 4, [(0, 4), (4, 8), (8, 10)]),
        (((0, 4),), 3, [(4, 7), (7, 10)]),
        (((4, 8),), 3, [(0, 3), (3, 4), (8, 10)]),
        (((0, 3), (5, 10)), 100, [(3, 5)]),
        (((0, 10),), 1, []),
    ],
    ids=["none", "first", "middle", "gap", "all"],
)
def test_only_missing_rows_are_asked_for(tmp_path, there, size, missing):
    batches = kept(tmp_path, there)
    assert list(batches.missing(size)) == missing
    for start, stop in missing:
        batches.save(start, stop, ROWS[start:stop])
    found = batches.join()
    assert found.has_sorted_indices
    assert (found.indices.dtype, found.indptr.dtype) == (np.int32, np.int32)
    assert np.array_equal(found.toarray(), ROWS.toarray())


def test_dense_batches_are_joined(tmp_path):
    dense = ROWS.toarray()
    found = kept(tmp_path, [(0, 3), (3, 10)], dense).join()
    assert np.array_equal(found, dense)
    assert np.array_equal(stack_batches([dense[:4], dense[4:]]), dense)
    assert np.array_equal(stack_batches([ROWS[:4], ROWS[4:]]).toarray(), dense)


def test_a_batch_that_was_not_finished_is_none(tmp_path):
    batches = kept(tmp_path, [(0, 4)])
    (tmp_path / ".ordinate-0123.npz").write_bytes(b"half")
    assert list(batches.missing(10)) == [(4, 10)]
