"""One writer at a time: a folder's lock, and who holds it."""

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordinate.errors import BadOutput, FolderLocked, replace_control_characters, shorten

LOCK_FILE = ".lock"
MOST_HOLDER_BYTES = 10_000  # bytes that are read of who holds a lock

_held_handles: set[int] = set()  # open lock files of this process


@contextmanager
def hold_lock(root: Path, command: str) -> Iterator[None]:
    """Hold the lock of a folder; a second process is told who holds it.

    The system lets go of the lock when the process ends, however it ends: the file that a killed
    one leaves behind blocks nobody.
    """
    path = root / LOCK_FILE
    handle = _acquire_lock(root, path)
    _held_handles.add(handle)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(_describe_holder(command)).encode(), 0)
        yield
    finally:
        if handle in _held_handles:  # not in a forked child
            path.unlink(missing_ok=True)  # while it is held: who opened this file finds it gone
            _held_handles.remove(handle)
            os.close(handle)


def _acquire_lock(root: Path, path: Path) -> int:
    """Open the lock file and lock it, or say who did before."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as problem:
            what = f"{shorten(str(root))} cannot be worked in: {problem.strerror}."
            raise BadOutput(what) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(handle, path):
                return handle
        except BlockingIOError:
            told = _format_holder(os.pread(handle, MOST_HOLDER_BYTES, 0))
            os.close(handle)
            raise FolderLocked(f"{root} is in use by {told}. Wait for it, or stop it.") from None
        except OSError as problem:
            os.close(handle)
            raise BadOutput(f"{root} cannot be locked: {problem.strerror}.") from None
        os.close(handle)  # the holder removed the file between our opening and locking it


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _describe_holder(command: str) -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": platform.node(), "since": since, "command": command}


def _format_holder(content: bytes) -> str:
    """Say who holds the lock, from what the holder wrote."""
    try:
        who = json.loads(content)
        told = f"process {who['pid']} on {who['host']} since {who['since']}: {who['command']}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return "another process"  # that is about to write its name
    return replace_control_characters(told)


def _release_in_child() -> None:
    """Close the lock in a forked child, which else would hold it on after its parent's death."""
    while _held_handles:
        os.close(_held_handles.pop())


os.register_at_fork(after_in_child=_release_in_child)
