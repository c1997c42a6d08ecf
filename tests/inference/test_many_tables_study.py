"""The study of intervals where tables are too many to resample: what it counts."""

import numpy as np
import pytest

from helpers.studies import load_study


@pytest.fixture(scope="module")
def study():
    """Return the study as a module."""
    return load_study("many_tables")


def test_coverage_is_of_the_intervals_that_there_are(study):
    ends = np.array([(0.1, 0.3), (0.3, 0.4), (0.0, 0.1), (np.nan, np.nan), (0.2, 0.2)])
    row = study.summarise(study.Design(3, 50, "balanced"), "f1_macro", "mover", ends, 0.2)
    assert (row.tables, row.coverage, row.left, row.right) == (4, 0.5, 0.25, 0.25)
    assert row.width == pytest.approx(0.1)


def test_tables_of_a_cell_get_intervals_by_mover_and_one_in_four_by_resamples(study):
    rows = study.study(study.Design(3, 200, "balanced"), 60, 100)
    assert {(x.metric, x.method): x.tables for x in rows} == {
        (name, method): tables
        for name in ("f1_macro", "precision_macro")
        for method, tables in (("mover", 60), ("percentile", 15))
    }
    assert all(x.coverage > 0.8 for x in rows)
