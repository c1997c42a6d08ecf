"""Every test of this folder runs over every engine."""

from pathlib import Path

import pytest

from engines.engine_list import ENGINES, Engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore what other libraries warn of among themselves."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            # Ibis sets an option of pandas that is going away; Spark knows pandas 2.
            item.add_marker(pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"))
            item.add_marker(pytest.mark.filterwarnings("ignore::Warning:pyspark"))


@pytest.fixture(
    params=[pytest.param(x, id=x.name, marks=pytest.mark.slow if x.heavy else ()) for x in ENGINES]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param
