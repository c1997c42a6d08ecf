"""Answers that are kept between runs, so that no fit is made twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.runs.files import write_json
from ordinate.tune.decision import WAYS, Positions

Record = dict[str, Any]  # plain values; "levels" are those of each way of answering


def levels_of(record: Record) -> dict[str, Positions]:
    """Return the levels of a record, by way of answering."""
    return {way: np.array(record["levels"][way], np.intp) for way in WAYS}


def plain_levels(levels: Any) -> dict[str, list[int]]:
    """Return levels by way of answering, as a record has them."""
    return {way: levels[way].tolist() for way in WAYS}


def kept(path: Path, n: int, make: Callable[[], Record]) -> Record:
    """Return what is kept at a path for n items, or make it and keep it.

    What lies there and is no such record is made again. A record that is not `final` is not kept.
    """
    found = _read(path, n)
    if found is None:
        found = make()
        if found.pop("final", True):
            write_json(path, found)
    return found


def _read(path: Path, n: int) -> Record | None:
    try:
        found: Record = json.loads(path.read_bytes())
        whole = bool(found.get("failed")) or all(len(found["levels"][way]) == n for way in WAYS)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if whole else None
