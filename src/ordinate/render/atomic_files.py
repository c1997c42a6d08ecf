"""Files that arrive whole or not at all."""

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ordinate.errors import NO_ROOM, BadOutput, shorten

TEMPORARY_PREFIX = (
    ".ordinate-"  # how temporary names begin, in folders that a run holds the lock of
)
UNLOCKED_PREFIX = (
    ".ordinate."  # and anywhere else: nobody may sweep them away, for they may be in use
)


def find_target(path: str | Path, *, force: bool) -> Path:
    """Return the file that a path leads to, unless it exists and is not to be overwritten."""
    target = Path(path)
    with report_write_errors(target):
        exists, target = target.exists(), target.resolve()
    if exists and not force:
        raise BadOutput(f"{shorten(str(path))} exists. Pass force=True to overwrite it.")
    return target


@contextmanager
def replace_file(path: Path, *, prefix: str = TEMPORARY_PREFIX) -> Iterator[Path]:
    """Give an empty temporary file beside the path; it takes the path's place when all went well.

    What was there before stays until the new file is safely on the disk.
    """
    temporary = make_temporary_path(path, prefix)
    try:
        with report_write_errors(path):
            temporary.touch(exist_ok=False)
        with report_full_disk(path):
            yield temporary
        with report_write_errors(path):
            sync_to_disk(temporary)
            temporary.replace(path)
            sync_to_disk(path.parent)
    finally:
        with suppress(OSError):  # a folder that cannot be written, of which more is said already
            temporary.unlink()


@contextmanager
def store_beside(target: Path) -> Iterator[Callable[[str], str]]:
    """Give a function that puts a text into a file beside a report, and returns its name.

    The name has the hash of the text, so that a report and what it names belong together whatever
    happens in between. Those of an earlier report of the same name go when all went well.
    """
    stored: set[str] = set()

    def store(text: str) -> str:
        content = text.encode()
        path = target.with_name(f"{target.name}.{hashlib.sha256(content).hexdigest()[:16]}.json")
        with replace_file(path, prefix=UNLOCKED_PREFIX) as temporary:
            temporary.write_bytes(content)
        stored.add(path.name)
        return path.name

    yield store
    own_name = re.compile(re.escape(target.name) + r"\.[0-9a-f]{16}\.json")
    with report_write_errors(target):
        for path in target.parent.iterdir():
            if own_name.fullmatch(path.name) and path.name not in stored:
                path.unlink(missing_ok=True)


def make_temporary_path(path: Path, prefix: str = TEMPORARY_PREFIX) -> Path:
    """Return a name that nobody has yet; the suffix stays, for some writers look at it."""
    with report_write_errors(path):
        str(path).encode()  # manifests, databases and pages name it
        path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f"{prefix}{secrets.token_hex(8)}{path.suffix}")


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Say in words why a path cannot be written."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as problem:  # of a NUL, and of a loop of links
        reason = getattr(problem, "strerror", None) or problem
        reason = "its name is not UTF-8" if isinstance(problem, UnicodeError) else reason
        raise BadOutput(f"{shorten(str(path))} cannot be written: {reason}.") from None


@contextmanager
def report_full_disk(path: Path) -> Iterator[None]:
    """Say which output could not be written to its end; whatever else goes wrong is passed on."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in NO_ROOM:
            raise
        with report_write_errors(path):
            raise


def sync_to_disk(path: Path) -> None:
    """Wait until the disk has it: a file's contents, or the names in a folder."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folder
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
