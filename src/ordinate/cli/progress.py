"""A progress line on the terminal for work of more than two seconds; never in a pipe."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE, EVERY = 2.0, 0.2  # seconds
WIDTH = 40


@contextmanager
def watch(connection: Any) -> Iterator[None]:
    """Show how far the queries of a connection are, while they run."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    shower = threading.Thread(target=_show, args=(connection, done), daemon=True)
    shower.start()
    try:
        yield
    finally:
        done.set()
        shower.join()


def _show(connection: Any, done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    while not done.wait(EVERY):
        share = max(0.0, connection.query_progress()) / 100.0
        filled = "#" * round(WIDTH * share)
        sys.stderr.write(f"\rcounting [{filled:<{WIDTH}}] {share:4.0%}")
        sys.stderr.flush()
    sys.stderr.write("\r" + " " * (WIDTH + 20) + "\r")
    sys.stderr.flush()
