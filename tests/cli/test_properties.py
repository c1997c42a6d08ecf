"""`ordinate properties`, and metrics of one's own on the command line."""

import json

import pytest
from command import run

from ordinate.meta.properties import PROPERTIES
from ordinate.metrics import list_metrics
from ordinate.metrics.catalogue import CATALOGUE

OWN = """
import numpy as np
import ordinate

@ordinate.metric(direction="minimize")
def too_low(table):
    return np.tril(table.share, -1).sum(axis=(-2, -1))
"""
QUICK = ("--search", "--most-items", "3")


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    return path


def test_all_metrics_and_properties_are_shown():
    ran = run("properties")
    assert ran.code == 0
    assert "is no proof" in " ".join(ran.out.split())
    assert "violated ≠ paper" in ran.out
    assert all(metric.name in ran.out for metric in list_metrics())


def test_json_has_every_cell():
    found = json.loads(run("properties", "--format", "json").out)
    assert set(found["properties"]) == {metric.name for metric in list_metrics()}
    cell = found["properties"]["quadratic_kappa"]["monotonicity"]
    assert cell["verdict"] == cell["verdict_with_empty_levels"] == "violated"
    assert (cell["paper"], cell["agrees"]) == ("✓", False)
    assert cell["counterexample"]["gold"] == [1, 2, 3]
    assert cell["counterexample"]["values"] == pytest.approx([-0.5, -2 / 3])
    assert all(list(cells) == list(PROPERTIES) for cells in found["properties"].values())


def test_some_metrics_with_options_are_searched():
    ran = run("properties", "mae,cem_ord", "cem_nom(ties=half)", "--format", "csv", *QUICK)
    names = {line.split(",")[0] for line in ran.out.splitlines()[1:]}
    assert names == {"mae", "cem_ord", "cem_nom(ties='half')"}


def test_a_search_can_be_bounded():
    ran = run("properties", "mae", "--search", "--most-items", 3, "--format", "json")
    cell = json.loads(ran.out)["properties"]["mae"]["monotonicity"]
    assert cell["max_items"] == 3
    assert 0 < cell["cases"] < 5_000


def test_one_cell_is_explained():
    ran = run("properties", "--explain", "quadratic_kappa", "monotonicity")
    assert "Amigó et al. (2020), Table 2, has '✓', which disagrees." in ran.out
    assert "gold 1 2 3, output 3 1 2 -> 3 2 2" in " ".join(ran.out.split())
    ran = run("properties", "--explain", "expected_cost", "imbalance")
    assert "cannot be checked: expected_cost needs matrix" in " ".join(ran.out.split())


def test_the_page_of_a_metric_shows_its_properties():
    assert "Imbalance: ties: levels 1..3: gold 1 2 3 3" in run("metrics", "mae").out
    found = json.loads(run("metrics", "--format", "json").out)["metrics"]
    assert found["mae"]["properties"]["monotonicity"] == "not_violated"
    assert "××·=" in run("metrics").out


def test_the_page_of_a_metric_says_why_nothing_was_searched():
    shown = " ".join(run("metrics", "expected_cost").out.split())
    assert "Formal properties depend on matrix, so none was searched." in shown
    assert "Invariance" not in shown
    assert "Formal properties depend" not in run("metrics", "central_coverage").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "There is no metric 'nothing'"),
        (["--explain", "mae", "nothing"], "There is no property 'nothing'"),
        (["--explain", "mae", "symmetry", "--most-items", "3"], "together with --search"),
        (["mae", "--search", "--most-items", "0"], "at least 1"),
        (["mae", "--load", "nothing.py"], "--load takes a Python file"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    ran = run("properties", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_explaining_takes_no_further_metrics():
    assert "no further metrics" in run("properties", "mae", "--explain", "mae", "symmetry").err


def test_a_metric_of_ones_own_has_its_place_everywhere(own, tmp_path):
    ran = run("properties", "too_low", "--load", own, "--search", "--most-items", 5)
    assert "too_low  not violated  not violated  ties" in ran.out
    results = tmp_path / "results.csv"
    results.write_text("gold,predicted\nA1,A1\nB1,A2\n")
    for key in [key for key in CATALOGUE if key[0] == "too_low"]:
        del CATALOGUE[key]
    asked = ["evaluate", results, "--metrics", "too_low,mae", "--format", "json"]
    ran = run(*asked, "--load", own)
    assert json.loads(ran.out)["metrics"]["too_low"]["value"] == 0.5
    ran = run("metrics", "too_low")
    assert "ndefined" not in ran.out
    assert "Formula" not in ran.out


def test_a_file_that_fails_says_so(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("1 / 0\n")
    ran = run("properties", "mae", "--load", bad)
    assert ran.code == 2
    assert "bad.py cannot be loaded: ZeroDivisionError: division by zero" in ran.err
