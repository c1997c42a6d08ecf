"""What benchmarks on learner essays share: how the file is read, and the folds."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate import Scale

Array = NDArray[Any]
FOLDS = 5


class Essays(NamedTuple):
    """Texts with their levels, as positions on the scale."""

    ids: list[str]
    texts: list[str]
    labels: list[str]
    levels: Array
    scale: Scale


def read(path: Path) -> Essays:
    """Read the file."""
    with path.open(newline="", encoding="utf-8") as rows:
        found = list(csv.DictReader(rows))
    scale, labels = Scale.of("cefr"), [row["cefr"] for row in found]
    levels = np.array([scale.labels.index(label) for label in labels])
    return Essays(
        [row["id"] for row in found], [row["text"] for row in found], labels, levels, scale
    )


def folds(levels: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    """Return the rows to train and to test on, five times."""
    from sklearn.model_selection import StratifiedKFold

    yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(levels, levels)


def counted(levels: Array, scale: Scale) -> str:
    """Say how many texts each level has that has any."""
    counts = np.bincount(levels, minlength=len(scale))
    pairs = zip(scale.names, counts, strict=True)
    return ", ".join(f"{name} {count:,}" for name, count in pairs if count)
