"""The study of verdicts in small: it judges what the package does, on systems as equal as said."""

import re

import numpy as np
import pytest

from helpers.studies import load_study


@pytest.fixture(scope="module")
def study():
    """Return the study as a module."""
    return load_study("verdicts")


def test_the_study_has_the_verdicts_that_the_package_gives(study):
    study.check(study.quick_cells()[1:2])


@pytest.mark.parametrize("truth", ["equal", "mirrored", "some differ"])
def test_systems_are_as_equal_as_the_study_says(study, truth):
    """Nearly all of a population: values differ by the noise of 200,000 items, or by more."""
    balance = "peaked 100:1" if truth == "mirrored" else "100:1"
    cell = study.Cell(truth, 3, 200_000, 0, balance, 1)
    panel = study.simulate_panel(cell, np.random.default_rng(1))
    values = study.compute_values(panel)
    first, second = study.list_pairs(3)
    for metric, row in zip(study.METRICS, values, strict=True):
        gaps = np.abs(metric.size(row)[first] - metric.size(row)[second])
        equal = study.true_nulls(cell)
        assert gaps[equal].max() < 0.025, metric.name
        if metric.name == "mae":
            assert (gaps[~equal] > 0.05).all()
    assert study.true_nulls(cell).tolist() == [True, *([truth != "some differ"] * 2)]


def test_clusters_have_the_intraclass_correlation_that_the_study_says(study):
    cell = study.Cell("equal", 2, 50_000, 10_000, "balanced", 1)
    panel = study.simulate_panel(cell, np.random.default_rng(1))
    inner = (panel.rows[:, 0] > 0) & (panel.rows[:, 0] < study.LEVELS - 1)
    error = np.repeat((panel.rows[:, 1] - panel.rows[:, 0])[inner], panel.items[inner])
    group = np.repeat(panel.groups[inner], panel.items[inner])
    count = np.bincount(group)
    some = count > 1
    sums, squares = np.bincount(group, error), np.bincount(group, error**2.0)
    products = ((sums**2 - squares)[some] / (count * (count - 1.0))[some]).mean()
    assert products - error.mean() ** 2 == pytest.approx(0.3 * error.var(), abs=0.08 * error.var())


def test_the_page_shows_every_cell_and_marks_what_is_beyond_the_limit(study):
    cells = [*study.bootstrap_cells(), *study.power_cells(), *study.error_cells()]
    assert len(set(cells)) == len(cells) == 54
    rows = [
        study.Row(*cell, metric.name, *((0.2 if cell == cells[0] else 0.04), 0.5, 0.1, 0.52))
        for cell in cells
        for metric in study.METRICS
    ]
    page = study.page(rows, 999, len(cells))
    assert page.count("**20.0**") == len(study.METRICS)
    lines = [line for line in page.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(lines) == sum(cell.truth != "differ" for cell in cells)
    assert f"Beyond the limit, in bold below: {len(study.METRICS)}." in page
    assert "the largest loss is 2.0 points" in " ".join(page.split())
    assert "all of its 54 cells are shown." in page
