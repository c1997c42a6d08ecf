"""Answers that are kept between runs, so that no fit is made twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.errors import BadStore
from ordinate.experiment.safe_files import compute_digest, write_json
from ordinate.experiment.stored_json import read_json

CachedRecord = dict[str, Any]  # plain values; "levels" are those of each decision rule
DIGEST_KEY = "digest"  # of the other entries of a record, and of the name under which it is kept


class _StoredRecord(TypedDict):
    digest: str
    levels: dict[str, list[int]]


def read_levels(record: CachedRecord) -> dict[str, Positions]:
    """Return the levels of a record, by decision rule."""
    return {way: np.array(record["levels"][way], np.intp) for way in DECISION_RULES}


def convert_levels_to_lists(levels: Any) -> dict[str, list[int]]:
    """Return levels by decision rule, as a record has them."""
    return {way: levels[way].tolist() for way in DECISION_RULES}


def load_or_compute(
    path: Path, n: int, size: int, make: Callable[[], CachedRecord]
) -> CachedRecord:
    """Return what is kept at a path for n items on a scale of so many levels, or make and keep it.

    What lies there and is no such record, or not as it was kept, is made again. A record that is
    not `final` is not kept.
    """
    found = _load_record(path, n, size)
    if found is None:
        found = make()
        if found.pop("final", True):
            write_json(path, found | {DIGEST_KEY: _hash_record(path, found)})
    return found


def _load_record(path: Path, n: int, size: int) -> CachedRecord | None:
    try:
        found: CachedRecord = dict(read_json(path, _StoredRecord))
    except BadStore:
        return None
    if found.pop(DIGEST_KEY) != _hash_record(path, found):
        return None
    levels = found["levels"]
    complete = isinstance(found.get("failed"), str) or all(
        way in levels and _are_on_scale(levels[way], n, size) for way in DECISION_RULES
    )
    return found if complete else None


def _are_on_scale(levels: list[int], n: int, size: int) -> bool:
    return len(levels) == n and all(0 <= level < size for level in levels)


def _hash_record(path: Path, record: CachedRecord) -> str:
    return compute_digest({"name": path.name, "record": record}, length=64)
