"""The study of heavy tails in small: it judges what the package does, by its rule."""

import numpy as np
import pytest

from helpers.studies import load_study


@pytest.fixture(scope="module")
def study():
    """Return the study as a module."""
    return load_study("heavy_tails")


def test_the_study_has_the_bounds_that_the_package_gives(study):
    study.check(60, 200)


@pytest.mark.parametrize("errors", ["normal", "laplace", "t5", "contaminated", "growing"])
def test_true_values_are_those_of_the_populations(study, errors):
    d, e = study.draw_items(errors, np.random.default_rng(1), (1, 1_000_000))
    found = study.estimate(np.full(1, 1e6), study.powers_of(d, e).sum(axis=1))
    for metric, truth in study.true_values(errors).items():
        value, error = found[metric]
        assert abs(float(value[0]) - truth) < 4.5 * float(error[0]), metric


def test_the_rule_takes_the_shortest_of_those_that_cover_nearly_best(study):
    def make_rows(method, covered, width):
        return [
            study.Row("normal", 50, metric, method, "all", 100, covered, 0.0, 0.0, width)
            for metric in study.FAMILY
        ]

    known = {
        "normal": (0.92, 1.0),
        "student": (0.93, 1.0),
        "percentile": (0.9, 0.9),
        "bca": (0.91, 0.9),
        "studentised": (0.938, 1.1),
        "m-out-of-n": (0.942, 1.3),
        "subsampling": (0.99, 2.0),
    }
    rows = [row for method, (x, width) in known.items() for row in make_rows(method, x, width)]
    assert study.choose(rows) == ("student", "subsampling")
    rows = [row for row in rows if row.method != "subsampling"]
    rows += make_rows("subsampling", 0.9425, 1.2)
    assert study.choose(rows) == ("student", "studentised")
