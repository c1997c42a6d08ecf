"""Small data sets that ship with the package. Each has its provenance with it."""

import csv
import io
from collections import Counter
from importlib.resources import files
from pathlib import Path

from ordinate.errors import BadInput

__all__ = ["EXAMPLE_FILES", "locate_example", "split_texts"]

EXAMPLE_FILES = {
    "cefr": "cefr_levels.csv",
    "systems": "cefr_systems.csv",
    "texts": "cefr_texts.csv",
    "densities": "densities.csv",
}
TEST_EVERY = 3  # of the texts of a level, each third one is for the test


def locate_example(name: str) -> Path:
    """Return where a shipped example lies on disk.

    >>> locate_example("cefr").name
    'cefr_levels.csv'
    """
    if name not in EXAMPLE_FILES:
        raise BadInput(f"There is no example {name!r}. There are: {', '.join(EXAMPLE_FILES)}.")
    return Path(str(files(__package__))) / EXAMPLE_FILES[name]


def split_texts() -> tuple[str, str]:
    """Return the texts as two CSV files, for training and test, always the same: 2 to 1 per level.

    >>> training, test = split_texts()
    >>> training.splitlines()[0]
    'id,level,topic,text'
    """
    with locate_example("texts").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    level, seen = header.index("level"), Counter[str]()
    training_and_test: tuple[list[list[str]], list[list[str]]] = ([], [])
    for row in rows:
        seen[row[level]] += 1
        training_and_test[seen[row[level]] % TEST_EVERY == 0].append(row)
    training, test = (_format_csv(header, part) for part in training_and_test)
    return training, test


def _format_csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()
