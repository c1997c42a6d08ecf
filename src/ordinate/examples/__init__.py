"""Small data sets that ship with the package. Each has its provenance beside it."""

from importlib.resources import files
from pathlib import Path

from ordinate.errors import BadInput

NAMES = {"cefr": "cefr_levels.csv", "systems": "cefr_systems.csv", "texts": "cefr_texts.csv"}


def path(name: str) -> Path:
    """Return where a shipped example lies on disk.

    >>> path("cefr").name
    'cefr_levels.csv'
    """
    if name not in NAMES:
        raise BadInput(f"There is no example {name!r}. There are: {', '.join(NAMES)}.")
    return Path(str(files(__package__))) / NAMES[name]
