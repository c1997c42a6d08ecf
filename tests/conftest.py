"""Hypothesis without a deadline: these machines are shared, and time is measured elsewhere.

`make test` tries a quarter of the examples that laws name, `make test-all` all of them, and the
profile `long` ten times as many, each time others.
"""

import os

from hypothesis import HealthCheck, settings

for name, count in (("quick", 25), ("all", 100), ("long", 1000)):
    settings.register_profile(
        name,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=name != "long",
        max_examples=count,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
