"""What tests of inference share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def no_coverage_warnings() -> Iterator[None]:
    """Leave out the notes of the study of coverage, which writes them; they have their own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ordinate.inference.interval_methods.describe_undercoverage", lambda *_: None)
        yield
