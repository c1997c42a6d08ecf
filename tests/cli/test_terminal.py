"""Reports on a real terminal have drawings; in pipes and files they are what they always were."""

import os
import struct
import subprocess
import sys
from collections import Counter

import pytest
from terminal_drawings import COLOUR, erase_drawings, has_drawings

import ordinate
from ordinate.examples import locate_example
from ordinate.render import render
from ordinate.render.text import measure_width

pty = pytest.importorskip("pty")
COMMAND = [sys.executable, "-W", "error", "-m", "ordinate"]
EVALUATE = ["evaluate", str(locate_example("cefr")), "--metrics", "cem_ord,accuracy,mae"]
COMPARE = ["compare", str(locate_example("systems")), "--systems", "tfidf,forest"]
COMPARE += ["--metrics", "cem_ord"]


def make_settings(**more):
    dropped = {"COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "PYTHONIOENCODING"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | more


def run_on_terminal(arguments, columns=120, **settings):
    """Return what a command prints on a terminal of so many columns."""
    import fcntl
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=slave, stderr=slave, env=make_settings(**settings)
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


def run_in_pipe(arguments, columns, **settings):
    ran = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        env=make_settings(COLUMNS=str(columns), **settings),
        check=True,
    )
    return ran.stdout.decode()


@pytest.mark.parametrize(("columns", "bars"), [(80, False), (120, True)])
def test_a_terminal_has_drawings_beside_everything_that_is_said(columns, bars):
    shown = run_on_terminal(EVALUATE, columns)
    assert has_drawings(shown)
    assert COLOUR.search(shown)
    assert all(measure_width(line) <= columns for line in shown.splitlines())
    said = run_in_pipe(EVALUATE, columns)
    assert Counter(erase_drawings(shown)) == Counter(erase_drawings(said))  # heads may be wrapped
    assert ("● system, ■ best constant, ◆ chance, " in COLOUR.sub("", shown)) is bars
    assert "██" in shown


def test_a_leaderboard_has_a_forest_plot():
    shown = COLOUR.sub("", run_on_terminal(COMPARE))
    (line,) = [x for x in shown.splitlines() if x.startswith("1  ")]
    assert "━●━" in line
    assert "● system, ┆ best constant, ║ chance" in shown


def test_without_colours_the_drawings_are_the_same():
    coloured, plain = run_on_terminal(EVALUATE), run_on_terminal(EVALUATE, NO_COLOR="1")
    assert "\x1b" not in plain
    assert COLOUR.sub("", coloured) == plain
    assert has_drawings(plain)


@pytest.mark.parametrize("settings", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "latin-1:replace"}])
def test_a_terminal_that_cannot_draw_has_text(settings):
    shown = run_on_terminal(EVALUATE, 120, **settings)
    assert shown == run_in_pipe(EVALUATE, 120, **settings)
    assert not has_drawings(shown)


def test_a_pipe_has_the_text_of_the_report_and_nothing_else():
    result = ordinate.compare(**_read_systems(), metrics="cem_ord")
    piped = run_in_pipe(COMPARE, 120)
    assert not has_drawings(piped)
    assert "\x1b" not in piped
    table = render(result, width=120).partition("Leaderboard")[2].partition("Notes")[0]
    assert piped.partition("Leaderboard")[2].partition("Notes")[0] == table


def _read_systems():
    import csv

    with locate_example("systems").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    systems = {name: [row[name] for row in rows] for name in ("tfidf", "forest")}
    return {"gold": [row["gold"] for row in rows], "systems": systems, "scale": "cefr"}


def test_a_file_has_no_drawings_though_it_is_written_from_a_terminal(tmp_path):
    shown = run_on_terminal([*EVALUATE, "-o", str(tmp_path / "report.txt")])
    assert not has_drawings(shown)
    report = (tmp_path / "report.txt").read_text("utf-8")
    assert report
    assert not has_drawings(report)
    assert "\x1b" not in report


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
