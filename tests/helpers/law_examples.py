"""How many examples a law gets: as many as it names in `make test-all`, fewer in `make test`."""

from typing import Any

from hypothesis import settings

USUAL = 100  # examples of a law that names no number, in the profile `all`
FEWEST = 5


def examples(count: int, **options: Any) -> settings:
    """Return the settings of a law that names so many examples, in the profile at hand."""
    share = settings.default.max_examples / USUAL
    return settings(max_examples=max(min(count, FEWEST), round(count * share)), **options)
