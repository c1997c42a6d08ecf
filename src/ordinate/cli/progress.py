"""A progress line on the terminal for work of more than two seconds; never in a pipe."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ordinate.errors import OrdinateError, replace_control_characters

if TYPE_CHECKING:
    from ordinate.readers.file_formats import FileReader

START_SECONDS, UPDATE_SECONDS = 2.0, 0.2  # seconds
BAR_WIDTH = 40


@contextmanager
def watch_files(
    reader: "FileReader", roles: Sequence[str] = ("gold", "predicted")
) -> Iterator[None]:
    """Show how far queries of files are, while they run; name the flag that helps if one fails.

    `roles` are the columns that the command needs, by argument.
    """
    connection: Any = reader.connection
    try:
        with _run_display(lambda: ("counting", max(0.0, connection.query_progress()) / 100.0, "")):
            yield
    except OrdinateError as problem:
        from ordinate.cli.file_problems import explain_problem

        problem.args = (explain_problem(problem, reader, roles),)
        raise


@contextmanager
def show_share(word: str) -> Iterator[Callable[[float], None]]:
    """Give a callback that takes the share of the work that is done, and show it."""
    done = [0.0]

    def progress(share: float) -> None:
        done[0] = share

    with _run_display(lambda: (word, done[0], "")):
        yield progress


@contextmanager
def show_stages() -> Iterator[Callable[[str, float, str], None]]:
    """Give a callback that takes the stage, the share of it that is done, and a note."""
    latest = [("", 0.0, "")]

    def progress(stage: str, share: float, note: str = "") -> None:
        latest[0] = (stage, share, note)

    with _run_display(lambda: latest[0]):
        yield progress


State = tuple[str, float, str]  # a word, the share that is done, and a note
_under_way: list[Callable[[], State]] = []  # one within the other: the last is shown
_reading = threading.Lock()  # so that nothing is asked how far it is once it has ended


@contextmanager
def _run_display(read_state: Callable[[], State]) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    _under_way.append(read_state)
    done = threading.Event()
    shower = threading.Thread(target=_update_display, args=(done,), daemon=True)
    is_first = len(_under_way) == 1
    if is_first:
        shower.start()
    try:
        yield
    finally:
        if is_first:
            done.set()
            shower.join()
        with _reading:
            _under_way.pop()


def _update_display(done: threading.Event) -> None:
    if done.wait(START_SECONDS):
        return
    widest = 0
    while not done.wait(UPDATE_SECONDS):
        with _reading:
            line = _format_line(*_under_way[-1]())
        widest = max(widest, len(line))
        sys.stderr.write(f"\r{line:<{widest}}")  # what a longer line left is overwritten
        sys.stderr.flush()
    sys.stderr.write("\r" + " " * widest + "\r")
    sys.stderr.flush()


def _format_line(word: str, share: float, note: str) -> str:
    """Return one line of progress.

    >>> _format_line("searching", 0.5, "best cem_ord 0.612").replace("#" * 20, "##")
    'searching [##                    ]  50%  best cem_ord 0.612'
    """
    filled = "#" * round(BAR_WIDTH * share)
    line = f"{word} [{filled:<{BAR_WIDTH}}] {share:4.0%}"
    return replace_control_characters(f"{line}  {note}" if note else line)
