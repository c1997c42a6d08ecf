"""The progress line: on a terminal only, after some patience, and gone when the work is done."""

import io
import time
from types import SimpleNamespace

import pytest

from ordinate.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(progress, "START_SECONDS", 0.0)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.001)
    return shown


def waiting(shown: Terminal, words: str) -> None:
    for _ in range(5_000):
        if words in shown.getvalue():
            return
        time.sleep(0.002)
    pytest.fail(f"{words!r} is not shown in {shown.getvalue()[-200:]!r}")


def test_the_stage_its_share_and_the_best_value_are_shown(terminal):
    with progress.show_stages() as tell:
        tell("screening", 0.5, "best mae 0.400")
        waiting(terminal, f"screening [{'#' * 20}{' ' * 20}]  50%  best mae 0.400")
        tell("searching", 1.0, "")
        waiting(terminal, f"searching [{'#' * 40}] 100%")


def test_a_shorter_line_covers_a_longer_one_and_the_last_is_wiped(terminal):
    with progress.show_stages() as tell:
        tell("a long stage", 0.0, "and much to say")
        waiting(terminal, "and much to say")
        tell("b", 0.0, "")
        waiting(terminal, "\rb [")
    lines = terminal.getvalue().split("\r")
    widest = max(map(len, lines))
    assert len(next(line for line in lines if line.startswith("b ["))) == widest
    assert lines[-2:] == [" " * widest, ""]


def test_texts_from_data_cannot_drive_the_terminal(terminal):
    with progress.show_stages() as tell:
        tell("\x1b[2J", 0.0, "")
        waiting(terminal, "[2J")
    assert "\x1b" not in terminal.getvalue()


def test_a_share_alone_is_shown_as_before(terminal):
    with progress.show_share("counting") as tick:
        tick(0.25)
        waiting(terminal, f"counting [{'#' * 10}{' ' * 30}]  25%")


def test_a_pipe_stays_empty(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=pipe))
    with progress.show_stages() as tell:
        tell("searching", 0.5, "")
    assert not pipe.getvalue()
