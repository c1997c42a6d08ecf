"""Results that arrive whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ordinate.errors import BadOutput


@contextmanager
def replacing(wanted: str | None, *, force: bool) -> Iterator[Path | None]:
    """Give a temporary file beside the wanted one, and rename it when all went well.

    A path that cannot be written, or holds a result already, is refused before any work is done.
    """
    if wanted is None:
        yield None
        return
    path = Path(wanted)
    if path.exists() and not force:
        raise BadOutput(f"{wanted} exists already. Pass --force to overwrite it.")
    if path.is_dir():
        raise BadOutput(f"{wanted} is a folder. Name a file in it.")
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
    except OSError as problem:
        raise BadOutput(f"{wanted} cannot be written: {problem.strerror}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
