"""One tuned experiment for all tests of the ordinal task."""

import shutil

import pytest
from experiments import lay_out
from tuned_experiments import tuned


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """An experiment that was tuned once; tests that change it take a copy."""
    root = lay_out(tmp_path_factory.mktemp("finished"), sets=("strong", "weak", "noise"))
    return root, tuned(root)


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "copy")
