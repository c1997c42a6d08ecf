"""A progress line on the terminal for work of more than two seconds; never in a pipe."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ordinate.errors import printable

PATIENCE, EVERY = 2.0, 0.2  # seconds
WIDTH = 40


def watch(connection: Any) -> AbstractContextManager[None]:
    """Show how far the queries of a connection are, while they run."""
    return _showing(lambda: ("counting", max(0.0, connection.query_progress()) / 100.0, ""))


@contextmanager
def ticking(word: str) -> Iterator[Callable[[float], None]]:
    """Give a function that is told the share of the work that is done, and show it."""
    done = [0.0]

    def tick(share: float) -> None:
        done[0] = share

    with _showing(lambda: (word, done[0], "")):
        yield tick


@contextmanager
def telling() -> Iterator[Callable[[str, float, str], None]]:
    """Give a function that is told the stage, its share that is done, and what to say beside it."""
    told = [("", 0.0, "")]

    def tell(stage: str, share: float, beside: str = "") -> None:
        told[0] = (stage, share, beside)

    with _showing(lambda: told[0]):
        yield tell


@contextmanager
def _showing(told: Callable[[], tuple[str, float, str]]) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    shower = threading.Thread(target=_show, args=(told, done), daemon=True)
    shower.start()
    try:
        yield
    finally:
        done.set()
        shower.join()


def _show(told: Callable[[], tuple[str, float, str]], done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    widest = 0
    while not done.wait(EVERY):
        line = _line(*told())
        widest = max(widest, len(line))
        sys.stderr.write(f"\r{line:<{widest}}")  # what a longer line left is overwritten
        sys.stderr.flush()
    sys.stderr.write("\r" + " " * widest + "\r")
    sys.stderr.flush()


def _line(word: str, share: float, beside: str) -> str:
    """Return one line of progress.

    >>> _line("searching", 0.5, "best cem_ord 0.612").replace("#" * 20, "##")
    'searching [##                    ]  50%  best cem_ord 0.612'
    """
    filled = "#" * round(WIDTH * share)
    line = f"{word} [{filled:<{WIDTH}}] {share:4.0%}"
    return printable(f"{line}  {beside}" if beside else line)
