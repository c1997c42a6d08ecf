"""Files that arrive whole or not at all, paths that stay inside, and what contents are called."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadOutput, shorten
from ordinate.render.atomic_files import (
    TEMPORARY_PREFIX,
    make_temporary_path,
    replace_file,
    report_full_disk,
    report_write_errors,
    sync_to_disk,
)

CHUNK_SIZE = 1 << 20  # bytes read at once
PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".dill")  # endings of what is never opened


# --- writing -------------------------------------------------------------------------------------


@contextmanager
def create_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside the path; it gets the path's name when all went well."""
    _refuse_existing(path)
    with _make_folder_beside(path) as temporary:
        yield temporary
        with report_write_errors(path):
            _sync_folder(temporary)
            _refuse_existing(path)  # a rename would silently take the place of an empty folder
            temporary.rename(path)
            sync_to_disk(path.parent)


@contextmanager
def _make_folder_beside(path: Path) -> Iterator[Path]:
    temporary = make_temporary_path(path, TEMPORARY_PREFIX)
    try:
        with report_write_errors(path):
            temporary.mkdir()
        with report_full_disk(path):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    for where, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_to_disk(Path(where, name))
        sync_to_disk(Path(where))


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    with replace_file(path) as temporary:
        temporary.write_bytes(text.encode())  # the same bytes on every machine


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON, whole or not at all; nan is no JSON: turn it into None first."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def remove_leftovers(root: Path) -> int:
    """Remove what killed runs left under a folder, and return how many; only under its lock."""
    found = []
    for folder, folders, names in os.walk(root):
        left = [name for name in (*folders, *names) if name.startswith(TEMPORARY_PREFIX)]
        found += [Path(folder, name) for name in left]
        folders[:] = [name for name in folders if name not in left]
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(found)


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise BadOutput(f"{path} exists already. Remove it, or choose another name.")


# --- names ---------------------------------------------------------------------------------------


def hash_file(path: Path, *, chunk_size: int = CHUNK_SIZE) -> str:
    """Return the hash of a file's bytes, however large it is."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(chunk_size):
            found.update(chunk)
    return found.hexdigest()


def compute_digest(value: Any, length: int = 12) -> str:
    """Return a short name for plain values, the same whatever the order of keys.

    >>> compute_digest({"folds": 5, "seed": 0}) == compute_digest({"seed": 0, "folds": 5})
    True
    >>> len(compute_digest(["a", 1, None]))
    12
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def resolve_inside(root: Path, *parts: str) -> Path:
    """Return a path under a folder, links followed, and refuse whatever leaves the folder.

    >>> resolve_inside(Path("/data/study"), "models", "best").as_posix()
    '/data/study/models/best'
    """
    for part in parts:
        if not part or part == "." or "\0" in part or Path(part).is_absolute():
            raise BadInput(f"{shorten(part)} is no name of a file or folder inside {root}.")
    try:
        home = root.resolve()
        path = home.joinpath(*parts).resolve()
    except (OSError, RuntimeError, ValueError) as problem:
        # a loop of links, or a name that the file system cannot hold
        reason = getattr(problem, "strerror", None) or "it is no path"
        raise BadInput(f"{shorten('/'.join(parts))} cannot be opened: {reason}.") from None
    if not path.is_relative_to(home) or (parts and path == home):
        raise BadInput(
            f"{shorten('/'.join(parts))} leaves the folder {root}, and nothing outside it is used. "
            "Name a file or folder inside."
        )
    return path
