"""Folders of reports, and one search of each task."""

import pytest
from report_folders import GOLD, SHIFTED, evaluate, save_report
from search_cases import CASES

import ordinate


@pytest.fixture
def reports(tmp_path):
    """A folder of an evaluation, a comparison and a regression, each a day after the other."""
    folder = tmp_path / "reports"
    save_report(evaluate(SHIFTED), folder / "first.json")
    systems = {"good": SHIFTED, "flat": ["A2"] * 60}
    compared = ordinate.compare(GOLD, systems, "cefr", metrics="mae,accuracy", resamples=100)
    save_report(compared, folder / "runs" / "second.html", 1)
    errors = ordinate.evaluate_regression([1.0, 2.0, 3.0, 5.0], [1.5, 2.0, 2.5, 5.0], unit="kg")
    save_report(errors, folder / "third.json", 2)
    return folder


@pytest.fixture(scope="session")
def searches(tmp_path_factory):
    """A folder with one finished search of each task."""
    folder = tmp_path_factory.mktemp("searches")
    for case in CASES:
        settings = case.make_settings(models=case.model, trials=1)
        case.tune(case.lay_out(folder / case.name), settings)
    return folder
