"""The study of clusters in small: it judges what the package does, on samples of its population."""

import numpy as np
import pytest

from helpers.studies import load_study


@pytest.fixture(scope="module")
def study():
    """Return the study as a module."""
    return load_study("cluster_coverage")


def test_the_study_has_the_bounds_and_the_doubts_of_the_package(study):
    study.check(study.quick_designs())


@pytest.mark.parametrize("shared", ["severity", "difficulty"])
def test_items_of_clusters_have_the_distribution_of_the_population(study, shared):
    """30,000 clusters of one sample: each cell within 4.5 errors of clusters; errors are alike."""
    design = study.Design(30_000, 4, "equal", 4, 20, 0.5, shared)
    cells, _ = next(study.samples(design, 1))
    cells = cells[0][..., :-1]
    shares = study.gold_shares(design)[:, None] * study.scatter(4, study.steepness(4))
    errors = cells.std(axis=0) / np.sqrt(30_000)
    assert (np.abs(cells.mean(axis=0) - 4 * shares) <= 4.5 * errors).all()
    moments = study.describe_samples(cells[None]).moments
    signed, absolute = moments[:, 0] / moments[:, 1]
    assert (signed > absolute) == (shared == "severity")
    assert max(signed, absolute) > 0.3


def test_the_design_is_as_large_as_it_says(study):
    cells = study.designs()
    assert len(set(cells)) == len(cells) == 42
    for cell in cells:
        sizes = study.cluster_sizes(cell)
        assert len(sizes) == cell.clusters
        assert sizes.sum() == pytest.approx(cell.clusters * cell.items, rel=0.03)
        assert (study.largest_share(cell) > 0.3) == (cell.sizes == "a third")


def test_reports_warn_by_clusters_and_by_those_that_hold_the_rarest_level(study):
    strata = [[0] * 12, [0] * 12]
    strata[0][study.HELD.index(7)], strata[0][study.HELD.index(8)], strata[0][-1] = 20, 70, 10

    def warned(name, **changes):
        design = study.Design(**changes)
        return study.warned_share(
            study.Row(*design, "value", name, "mover", 100, *[0.0] * 12, strata)
        )

    assert warned("macro_mae") == pytest.approx(0.3)
    assert warned("accuracy") == warned("cem_ord") == 0
    assert warned("accuracy", clusters=9) == warned("accuracy", sizes="a third") == 1


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [10, 40])
def test_default_metrics_are_covered(study, clusters):
    """Balanced gold, 1,000 replicates: four errors below 93 %."""
    design = study.Design(clusters, 10, "equal", 3, 1, 0.3, "difficulty")
    rows = study.study(design, 1_000, 100)
    for kind in study.KINDS:
        for row in study.defaults(rows, kind).values():
            if row.metric in study.DEFAULT_METRICS:
                assert row.coverage >= 0.93 - 4 * 0.008, row
