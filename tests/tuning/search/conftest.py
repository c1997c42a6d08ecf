"""Both tasks, and one finished search of each, for laws that hold whatever is searched."""

import shutil

import pytest
from search_cases import CASES


@pytest.fixture(scope="session", params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture
def root(case, tmp_path):
    """A folder with the data of a search that is not made yet."""
    return case.lay_out(tmp_path / "search")


@pytest.fixture(scope="session")
def finished(case, tmp_path_factory):
    """A search that was made once; tests that change its folder take a copy."""
    root = case.lay_out(tmp_path_factory.mktemp(f"finished-{case.name}"))
    return root, case.tune(root)


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "copy")
