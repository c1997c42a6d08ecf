"""What tests of meta-evaluation share."""

import pytest
from meta_cases import panel_with_cases

from ordinate.meta.meta_evaluation import MetaEvaluation, evaluate_metrics
from ordinate.summaries import Panel


@pytest.fixture(scope="session")
def panel() -> Panel:
    """Systems with noise in several test cases."""
    return panel_with_cases()


@pytest.fixture(scope="session")
def result(panel: Panel) -> MetaEvaluation:
    """The meta-evaluation of these systems."""
    return evaluate_metrics(panel, resamples=200)


@pytest.fixture
def own_folder(tmp_path, monkeypatch) -> None:
    """Work in an empty folder, so that files are called by their names."""
    monkeypatch.chdir(tmp_path)
