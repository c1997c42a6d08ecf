"""One writer at a time: a folder's lock, and who holds it."""

import errno
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ordinate.errors import (
    BadOutput,
    BadStore,
    FolderLocked,
    MissingExtra,
    replace_control_characters,
    shorten,
)
from ordinate.render.reserved_paths import HOLDER_FILE, LOCK_FILE
from ordinate.tuning.experiment.safe_files import write_text
from ordinate.tuning.experiment.stored_json import encode, read_json

PATIENCE = 0.2  # seconds: the holder may remove its file between our opening and locking it


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock."""

    pid: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        told = f"process {self.pid} on {self.host} since {self.since}: {self.command}"
        return replace_control_characters(told)


@contextmanager
def hold_lock(root: Path, command: str) -> Iterator[None]:
    """Hold the lock of a folder; a second process is told who holds it.

    The system lets go of the lock when the process ends, however it ends: the files that a killed
    one leaves behind block nobody. A forked child does not hold it.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise MissingExtra(
            "Experiments take filelock, which is not installed: pip install 'ordinate[tune]'"
        ) from None
    path, holder, owner = root / LOCK_FILE, root / HOLDER_FILE, os.getpid()
    lock = FileLock(path, timeout=PATIENCE, fallback_to_soft=False)
    try:
        if not root.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        lock.acquire()
    except Timeout:
        who = _read_holder(holder)
        raise FolderLocked(f"{root} is in use by {who}. Wait for it, or stop it.") from None
    except OSError as problem:
        what = f"{shorten(str(root))} cannot be worked in: {problem.strerror}."
        raise BadOutput(what) from None
    try:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        own = LockHolder(owner, platform.node(), since, command)
        write_text(holder, json.dumps(encode(own)))  # in place of a link, not where it leads
        yield
    finally:
        if os.getpid() == owner:  # not in a forked child
            try:
                with suppress(OSError):
                    holder.unlink()
                with suppress(OSError):  # on Windows the release removes it
                    path.unlink()  # while it is held: who opened it finds it gone
            finally:
                lock.release()


def _read_holder(path: Path) -> str:
    try:
        return str(read_json(path, LockHolder))
    except BadStore:
        return "another process"  # that is about to write its name
