"""Reports on a real terminal are those of pipes, as wide as the terminal."""

import os
import struct
import subprocess
import sys

import pytest

from ordinate.examples import locate_example

pty = pytest.importorskip("pty")
COMMAND = [sys.executable, "-W", "error", "-m", "ordinate"]
EVALUATE = ["evaluate", str(locate_example("cefr")), "--metrics", "cem_ord,accuracy,mae"]
COMPARE = ["compare", str(locate_example("systems")), "--systems", "tfidf,forest"]
COMPARE += ["--metrics", "cem_ord"]


def make_settings(**more):
    dropped = {"COLUMNS", "LINES", "PYTHONIOENCODING"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | more


def run_on_terminal(arguments, columns=120):
    """Return what a command prints on a terminal of so many columns."""
    import fcntl
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=slave, stderr=slave, env=make_settings()
    ) as running:
        os.close(slave)
        parts = []
        try:
            while part := os.read(master, 65536):
                parts.append(part)
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(master)
    assert running.returncode == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def run_in_pipe(arguments, columns):
    ran = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        env=make_settings(COLUMNS=str(columns)),
        check=True,
    )
    return ran.stdout.decode()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", [EVALUATE, COMPARE], ids=["evaluate", "compare"])
def test_a_terminal_has_the_text_that_a_pipe_has(command, columns):
    shown = run_on_terminal(command, columns)
    assert shown == run_in_pipe(command, columns)
    assert "\x1b" not in shown


def test_json_on_a_terminal_is_json():
    import json

    assert json.loads(run_on_terminal([*EVALUATE, "--format", "json"]))["metrics"]


@pytest.mark.parametrize("command", ["decode", "evaluate"])
def test_no_record_of_the_data_drives_a_terminal(tmp_path, command):
    named = tmp_path / "some.csv"
    named.write_text(
        "id\x1b[31m,gold,a,\x1b[32m\n\x1b[2J,a,1,0\nb,\x1b[32m,0,1\n", encoding="utf-8"
    )
    asked = {
        "decode": ["--metric", "mae", "--gold", "gold", "--id", "id\x1b[31m", "--format", "csv"],
        "evaluate": ["--predicted", "gold", "--by", "id\x1b[31m", "--format", "csv"],
    }[command]
    shape = ["--scale", "a,\x1b[32m"] + ["--probabilities", "a,\x1b[32m"] * (command == "decode")
    assert "\x1b" not in run_on_terminal([command, str(named), *shape, *asked])
