"""What all tests share, those in modules and on pages included."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ordinate
from ordinate.metrics.catalogue import CATALOGUE, Metric

PACKAGE = Path(ordinate.__file__).parent


def _of_the_package(metric: Metric) -> bool:
    """Ask where the code stands: an example in a docstring has the name of its module."""
    return Path(metric.function.__code__.co_filename).is_relative_to(PACKAGE)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Forget the metrics that a test declares; families of the package that it loads stay."""
    before = set(CATALOGUE)
    yield
    for key in set(CATALOGUE) - before:
        if not _of_the_package(CATALOGUE[key]):
            del CATALOGUE[key]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore what Ibis says to pandas on the page that shows both."""
    for item in items:
        if item.path.name == "tables.md":
            item.add_marker(pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"))


@pytest.fixture(autouse=True)
def _folder_of_its_own(request: pytest.FixtureRequest) -> None:
    """Run the examples of a page in an empty folder, for they may write files."""
    if request.node.path.suffix == ".md":
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
