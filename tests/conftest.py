"""Hypothesis without a deadline, and reports as wide as a page, whatever terminal there is.

`make test` tries a quarter of the examples that laws name, `make test-all` all of them, and the
profile `long` ten times as many, each time others.
"""

import gc
import os

from hypothesis import HealthCheck, settings

os.environ.pop("COLUMNS", None)  # which processes of pytest-xdist have
for name, count in (("quick", 25), ("all", 100), ("long", 1000)):
    settings.register_profile(
        name,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=name != "long",
        max_examples=count,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays to the end: the tests and all that they imported."""
    gc.collect()
    gc.freeze()
