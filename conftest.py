"""What all tests share, those in modules and on pages included."""

from collections.abc import Iterator

import pytest

from ordinate.metrics.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Forget the metrics that a test declares; families of the package that it loads stay."""
    before = set(CATALOGUE)
    yield
    for key in set(CATALOGUE) - before:
        if not CATALOGUE[key].function.__module__.startswith("ordinate."):
            del CATALOGUE[key]
