"""The progress line: on a terminal only, after some patience, and gone when the work is done."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
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
    with progress.show_stages() as report:
        report("screening", 0.5, "best mae 0.400")
        waiting(terminal, f"screening [{'#' * 20}{' ' * 20}]  50%  best mae 0.400")
        report("searching", 1.0, "")
        waiting(terminal, f"searching [{'#' * 40}] 100%")


def test_of_work_within_work_the_inner_is_shown(terminal):
    with progress.show_share("evaluating") as outer:
        with progress.show_share("counting") as inner:
            inner(0.5)
            waiting(terminal, "counting [")
        outer(0.75)
        waiting(terminal, "evaluating [")
    assert "  75%" in terminal.getvalue()


def test_a_shorter_line_covers_a_longer_one_and_the_last_is_wiped(terminal):
    with progress.show_stages() as report:
        report("a long stage", 0.0, "and much to say")
        waiting(terminal, "and much to say")
        report("b", 0.0, "")
        waiting(terminal, "\rb [")
    lines = terminal.getvalue().split("\r")
    widest = max(map(len, lines))
    assert len(next(line for line in lines if line.startswith("b ["))) == widest
    assert lines[-2:] == [" " * widest, ""]


def test_texts_from_data_cannot_drive_the_terminal(terminal):
    with progress.show_stages() as report:
        report("\x1b[2J", 0.0, "")
        waiting(terminal, "[2J")
    assert "\x1b" not in terminal.getvalue()


def test_a_share_alone_is_shown_and_wiped_away(terminal):
    with progress.show_share("counting") as report:
        report(0.25)
        waiting(terminal, f"counting [{'#' * 10}{' ' * 30}]  25%")
    *_, wiped, last = terminal.getvalue().split("\r")
    assert (set(wiped), last) == ({" "}, "")
    assert len(wiped) >= len("counting [") + 40 + len("]  25%")


def test_a_pipe_stays_empty(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=pipe))
    with progress.show_stages() as report:
        report("searching", 0.5, "")
    assert not pipe.getvalue()


def test_quick_work_shows_nothing(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.show_share("weaving") as report:
        report(1.0)
    assert terminal.getvalue() == ""


# --- as a process --------------------------------------------------------------------------------

IMPATIENT = (
    "import sys; from ordinate.cli import progress; progress.START_SECONDS = 0.0; "
    "progress.UPDATE_SECONDS = 0.01; from ordinate.cli.main import main; "
    "sys.exit(main(sys.argv[1:]))"
)


def impatient(stderr) -> subprocess.CompletedProcess:
    """Run a comparison that shows its progress at once, if at all."""
    Path("some.csv").write_text("gold,a,b\n" + "A1,A1,A2\nB1,B1,B1\nC1,B2,C1\n" * 40, "utf-8")
    asked = ["some.csv", "--systems", "a,b", "--resamples", "4000", "--format", "json"]
    return subprocess.run(
        [sys.executable, "-c", IMPATIENT, "compare", *asked],
        stdout=subprocess.PIPE,
        stderr=stderr,
        check=False,
        timeout=60,
    )


@pytest.mark.usefixtures("here")
def test_a_terminal_sees_how_far_the_work_is():
    terminal, child = pty.openpty()
    try:
        ran = impatient(child)
        os.close(child)
        shown = os.read(terminal, 1 << 16).decode()
    finally:
        os.close(terminal)
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["resamples"] == 4000
    assert re.search(r"\rcomparing \[#* *\] +\d+%", shown)


@pytest.mark.usefixtures("here")
def test_a_pipe_never_sees_it():
    ran = impatient(subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (0, b"")
