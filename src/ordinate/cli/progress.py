"""A progress line on the terminal for work of more than two seconds; never in a pipe."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

PATIENCE, EVERY = 2.0, 0.2  # seconds
WIDTH = 40


def watch(connection: Any) -> AbstractContextManager[None]:
    """Show how far the queries of a connection are, while they run."""
    return _showing("counting", lambda: max(0.0, connection.query_progress()) / 100.0)


@contextmanager
def ticking(word: str) -> Iterator[Callable[[float], None]]:
    """Give a function that is told the share of the work that is done, and show it."""
    done = [0.0]

    def tick(share: float) -> None:
        done[0] = share

    with _showing(word, lambda: done[0]):
        yield tick


@contextmanager
def _showing(word: str, share: Callable[[], float]) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    shower = threading.Thread(target=_show, args=(word, share, done), daemon=True)
    shower.start()
    try:
        yield
    finally:
        done.set()
        shower.join()


def _show(word: str, share: Callable[[], float], done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    while not done.wait(EVERY):
        part = share()
        filled = "#" * round(WIDTH * part)
        sys.stderr.write(f"\r{word} [{filled:<{WIDTH}}] {part:4.0%}")
        sys.stderr.flush()
    sys.stderr.write("\r" + " " * (len(word) + WIDTH + 8) + "\r")
    sys.stderr.flush()
