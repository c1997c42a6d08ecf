"""Results that arrive whole or not at all."""

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ordinate.cli.flags import StorePath
from ordinate.errors import BadOption, BadOutput, hide_password, shorten
from ordinate.render import atomic_files
from ordinate.render.document import StoreText
from ordinate.render.reserved_paths import refuse_reserved_path

# Without these, a terminal that shows a file is driven by nothing in it.
CONTROLS = dict.fromkeys({*range(32), *range(127, 160)} - set(map(ord, "\t\n\r")), "\ufffd")


@contextmanager
def replace_atomically(target: str | None, *, force: bool) -> Iterator[Path | None]:
    """Give a temporary file beside the target, and rename it when all went well.

    A path that cannot be written, or holds a result already, is refused before any work is done.
    """
    if target is None:
        yield None
        return
    with atomic_files.replace_file(
        _resolve_target(target, force=force), prefix=atomic_files.UNLOCKED_PREFIX
    ) as temporary:
        yield temporary


@contextmanager
def replace_with_companion(target: str, *, force: bool) -> Iterator[tuple[Path, StoreText]]:
    """Give a temporary file as `replace_atomically` does, and what puts a file beside it.

    A file that the report needs is said, for it has to move with the report.
    """
    path = _resolve_target(target, force=force)
    stored: list[str] = []
    with (
        atomic_files.store_beside(path) as store,
        atomic_files.replace_file(path, prefix=atomic_files.UNLOCKED_PREFIX) as temporary,
    ):

        def store_and_note(text: str) -> str:
            stored.append(store(text))
            return stored[-1]

        yield temporary, store_and_note
    for name in stored:
        sys.stderr.write(f"{name} belongs to {path.name}: `ordinate verify` needs it beside it.\n")


def check_output_paths(
    inputs: Sequence[str], outputs: Iterable[str | None], *, allowed: str | None = None
) -> None:
    """Refuse an output that is an input or another output: one of them would be lost.

    What an experiment or a search keeps for itself is an input, too, but for the folder that is
    `allowed`.
    """
    matched = [match for text in inputs for match in (text, *_expand_pattern(text))]
    read = set(map(follow_links, matched))
    stores = {follow_links(text) for text in inputs if isinstance(text, StorePath)}
    written = [follow_links(text) for text in outputs if text]
    if len(set(written)) < len(written):
        raise BadOption("The report and the items cannot be written to one file.")
    for path in written:
        if path in read:
            raise BadOption(f"{path.name} is read, so it cannot be written too.")
        refuse_reserved_path(path, stores, allowed=allowed)
        _refuse_within(path, read - stores)


def _refuse_within(path: Path, read: set[Path]) -> None:
    """Refuse a file that is in a folder which is read, or a new one in a folder within it."""
    for folder in path.parents:
        deep = len(path.relative_to(folder).parts) > 1
        if folder in read and folder.is_dir() and (deep or path.exists()):
            raise BadOption(
                f"{path.name} lies in {shorten(str(folder))}, which is read, so it cannot be "
                "written there. Name another folder."
            )


def follow_links(text: str) -> Path:
    """Return where a path leads; what is wrong with it, such as a loop, is said when it is used."""
    return Path(os.path.realpath(text))


def _expand_pattern(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 - takes any root


def write_csv(text: str, stream: TextIO) -> None:
    """Write records to a stream as they are; nothing in them drives a terminal."""
    stream.write(text.translate(CONTROLS) if stream.isatty() else text)


def _resolve_target(target: str, *, force: bool) -> Path:
    """Return the file to replace: what a link points to, and nothing but a plain file."""
    if not target:
        raise BadOutput("An output needs the name of a file.")
    try:
        with suppress(FileNotFoundError):
            Path(target).stat()  # says what is wrong with the name: too long, or a loop of links
        path = Path(target).resolve()
        path.parent.stat()
        there = path.exists()
    except (OSError, RuntimeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no path"
        raise BadOutput(f"{shorten(hide_password(target))} cannot be written: {reason}.") from None
    if there and not path.is_file():
        raise BadOutput(f"{target} is a folder or no plain file. Name a file.")
    if there and not force:
        raise BadOutput(f"{target} exists already. Pass --force to overwrite it.")
    return path
