"""The study of coverage in small: it judges what the package does, and the defaults cover."""

import math

import pytest

from helpers.studies import load_study
from ordinate.inference.small_samples import _load_coverage
from ordinate.metrics import find_metric

REPLICATES, RESAMPLES = 400, 1_000  # resamples as in the study: BCa depends on them


@pytest.fixture(scope="module")
def study():
    """Return the study as a module."""
    return load_study("interval_coverage")


def test_the_study_has_the_limits_that_the_package_gives(study):
    study.check((3, 5), 200)


def test_the_rule_takes_the_shortest_that_covers_enough_and_of_equals_one_without_draws(study):
    def verdict(coverage, width):
        return study.Verdict(coverage, 1.0, 0.0, 0.0, width, None)

    known = {"percentile": verdict(0.94, 1.0), "bca": verdict(0.95, 1.1)}
    assert study.pick(known) == "percentile"
    assert study.pick(known | {"delta": verdict(0.935, 1.01)}) == "delta"
    assert study.pick(known | {"delta": verdict(0.92, 0.9)}) == "percentile"
    assert study.pick({"percentile": verdict(0.8, 1.0), "bca": verdict(0.9, 2.0)}) == "bca"


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["balanced", "1:100"])
@pytest.mark.parametrize(("levels", "items"), [(3, 200), (5, 50), (6, 1_000)])
def test_defaults_cover_what_the_published_study_says(study, levels, items, balance):
    """Four standard errors below 90 %, or below what the study found where that is less."""
    design = study.Design(levels, items, balance)
    for row in study.study(design, REPLICATES, RESAMPLES):
        if row.method == study.default_of(find_metric(row.metric)):
            expected = min(0.9, _load_coverage().get((row.metric, levels, items, balance), 0.9))
            error = math.sqrt(expected * (1 - expected) / REPLICATES)
            assert row.coverage >= expected - 4 * error, row
