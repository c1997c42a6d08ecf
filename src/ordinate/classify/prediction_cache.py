"""Predictions that are cached between runs, so that no fit is made twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.errors import BadStore
from ordinate.experiment.safe_files import compute_digest, write_json
from ordinate.experiment.stored_json import read_json

CachedRecord = dict[str, Any]  # plain values; "levels" are those of each decision rule
DIGEST_KEY = "digest"  # of the other entries of a record, and of the name of its file


class _StoredRecord(TypedDict):
    digest: str
    levels: dict[str, list[int]]


def read_levels(record: CachedRecord) -> dict[str, Positions]:
    """Return the levels of a record, by decision rule."""
    return {rule: np.array(record["levels"][rule], np.intp) for rule in DECISION_RULES}


def convert_levels_to_lists(levels: Any) -> dict[str, list[int]]:
    """Return levels by decision rule, as a record has them."""
    return {rule: levels[rule].tolist() for rule in DECISION_RULES}


def load_or_compute(
    path: Path, n: int, size: int, compute: Callable[[], CachedRecord]
) -> CachedRecord:
    """Return the record of n items on a scale of so many levels, computed and cached if need be.

    A file that is no such record, or not as it was written, is computed again. A record that is
    not `final` is not cached.
    """
    record = _load_record(path, n, size)
    if record is None:
        record = compute()
        if record.pop("final", True):
            write_json(path, record | {DIGEST_KEY: _hash_record(path, record)})
    return record


def _load_record(path: Path, n: int, size: int) -> CachedRecord | None:
    try:
        record: CachedRecord = dict(read_json(path, _StoredRecord))
    except BadStore:
        return None
    if record.pop(DIGEST_KEY) != _hash_record(path, record):
        return None
    levels = record["levels"]
    usable = isinstance(record.get("failed"), str) or all(
        rule in levels and _are_on_scale(levels[rule], n, size) for rule in DECISION_RULES
    )
    return record if usable else None


def _are_on_scale(levels: list[int], n: int, size: int) -> bool:
    return len(levels) == n and all(0 <= level < size for level in levels)


def _hash_record(path: Path, record: CachedRecord) -> str:
    return compute_digest({"name": path.name, "record": record}, length=64)
