"""Records that are cached between runs, so that no fit is made twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordinate.errors import BadStore
from ordinate.tuning.experiment.safe_files import compute_digest, write_json
from ordinate.tuning.experiment.stored_json import read_json

Record = dict[str, Any]  # plain values
DIGEST_KEY = "digest"  # of the other entries of a record, and of the name of its file


def load_or_compute(
    path: Path, is_usable: Callable[[Record], bool], compute: Callable[[], Record]
) -> Record:
    """Return the record of a file, computed and cached if need be.

    A file that is no such record, or not as it was written, is computed again. A record that is
    not `final` is not cached.
    """
    record = _load_record(path)
    if record is None or not is_usable(record):
        record = compute()
        if record.pop("final", True):
            write_json(path, record | {DIGEST_KEY: _hash_record(path, record)})
    return record


def _load_record(path: Path) -> Record | None:
    try:
        record = read_json(path, Record)
    except BadStore:
        return None
    return record if record.pop(DIGEST_KEY, None) == _hash_record(path, record) else None


def _hash_record(path: Path, record: Record) -> str:
    return compute_digest({"name": path.name, "record": record}, length=64)
