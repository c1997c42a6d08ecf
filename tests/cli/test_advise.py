"""`ordinate advise`: flags in a pipe, questions on a terminal, the same advice from both."""

import io
import json
import os
import subprocess
import sys

import pytest
from command import run

import ordinate
from ordinate.cli import advise as command
from ordinate.cli.main import main
from ordinate.render import RENDERERS

FLAGS = ["--levels", "order", "--no-equal-distances", "--rare-levels", "--ties", "not-ranked"]
FLAGS += ["--reader", "agreement", "--scale", "cefr"]
ADVICE = ordinate.advise(
    "order",
    equal_distances=False,
    rare_levels=True,
    ties="not_ranked",
    reader="agreement",
    scale="cefr",
)


def test_flags_and_arguments_give_the_same_advice():
    ran = run("advise", *FLAGS, "--format", "json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert found.items() >= ADVICE.to_dict().items()
    assert [row["metric"] for row in found["metrics"]] == ["cem_ord", "krippendorff_alpha"]
    assert run(*ADVICE.command.split()[1:], "--format", "json").out == ran.out


@pytest.mark.parametrize("report_format", RENDERERS)
def test_every_format_has_the_metrics(report_format):
    ran = run("advise", *FLAGS, "--format", report_format)
    assert ran.code == 0
    assert "krippendorff" in ran.out


def test_a_pipe_is_never_asked_and_its_error_names_every_flag():
    ran = run("advise")
    assert (ran.code, ran.out) == (2, "")
    flags = "--levels --equal-distances --no-equal-distances --rare-levels --ties --reader"
    assert all(flag in ran.err for flag in flags.split())
    ran = run("advise", "--levels", "names", "--rare-levels")
    assert ran.err == (
        "ordinate: Questions are asked on a terminal alone. Here the answers are flags: --reader "
        "shares|classification|agreement|correlation.\n"
    )


class Terminal(io.StringIO):
    """What is typed, or shown, on a terminal."""

    def isatty(self):
        return True


def converse(monkeypatch, typed, *flags):
    """Return what a command prints and asks where every stream is a terminal."""
    streams = Terminal(typed), Terminal(), Terminal()
    for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    code = main(["advise", *flags])
    return code, streams[1].getvalue(), streams[2].getvalue()


def test_what_no_flag_answers_is_asked_until_there_is_an_answer(monkeypatch):
    typed = "2\nperhaps\n0\nNO\nyes\nnot-ranked\n3\n"
    code, out, asked = converse(monkeypatch, typed, "--scale", "cefr", "--format", "json")
    assert code == 0
    assert json.loads(out).items() >= ADVICE.to_dict().items()
    assert asked.count("1 to 2: ") == 4
    assert "  2  order: an order from lowest to highest" in asked
    code, _, asked = converse(monkeypatch, "", *FLAGS)
    assert (code, asked) == (0, "")


def test_an_answer_may_be_as_short_as_it_is_clear(monkeypatch):
    typed = "or\nn\nY\nnot_r\nag\n"
    code, out, asked = converse(monkeypatch, typed, "--scale", "cefr", "--format", "json")
    assert code == 0
    assert json.loads(out).items() >= ADVICE.to_dict().items()
    assert "is no answer" not in asked


def test_what_is_no_answer_is_said_with_what_is_expected(monkeypatch):
    typed = "n\norder\nperhaps\n\nno\ny\nnot-ranked\n\x1b[2J\nagreement\n"
    code, _, asked = converse(monkeypatch, typed, "--scale", "cefr")
    assert code == 0
    assert "\n1 to 2: 'perhaps' is no answer. Type a number, or yes or no; as much of it" in asked
    assert asked.count("is no answer") == 4  # names and numbers begin with n
    assert "\x1b" not in asked


def test_names_are_not_asked_for_distances_and_ties(monkeypatch):
    code, out, asked = converse(monkeypatch, "names\n1\n1\n")
    assert code == 0
    assert "macro_accuracy" in out
    assert asked.count("?\n") == 3
    assert "distances" not in asked


def test_the_end_of_what_is_typed_is_an_error(monkeypatch):
    code, out, asked = converse(monkeypatch, "order\n")
    assert (code, out) == (2, "")
    assert asked.endswith(f"ordinate: {command.UNANSWERED}\n")


def test_a_real_terminal_asks_and_a_redirected_one_does_not():
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "ordinate", "advise"]
    kept = os.environ | {"PYTHONUTF8": "1"}
    with subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=kept) as running:
        os.write(master, b"1\n1\n2\n")
        os.close(slave)
        parts = []
        try:
            while part := os.read(master, 65536):
                parts.append(part)
        except OSError:  # how Linux says that the other end is closed
            pass
    assert running.returncode == 0
    shown = b"".join(parts).decode()
    assert "What do the levels mean?" in shown
    assert "Report macro_accuracy, and beside it f1_macro." in shown
    os.close(master)
    master, slave = pty.openpty()
    ran = subprocess.run(words, stdin=slave, capture_output=True, env=kept, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, b"")
    os.close(master)
    os.close(slave)
