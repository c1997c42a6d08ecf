"""Interrupted commands: one line, 130, and whether the same command goes on."""

import pytest
from command import run

from ordinate.cli import main


def stopped(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "resumes"),
    [
        ("tune -e DIR", True),
        ("features tfidf -e DIR", True),
        ("features external -e DIR own.csv", True),
        ("features list -e DIR", False),
        ("tune-regression data.csv --target y", True),
        ("predict-regression data.csv -e found", False),
        ("analyze-search -e found", False),
        ("evaluate data.csv", False),
    ],
)
def test_interrupted_commands_say_whether_they_go_on(monkeypatch, words, resumes):
    parser = main.build_parser(words.split()[:1])

    class Stopped:
        def __init__(self, whole):
            self.whole = whole

        def parse_args(self, arguments):
            asked = parser.parse_args(arguments)
            asked.run = stopped
            return asked

    monkeypatch.setattr(main, "build_parser", Stopped)
    more = " The same command goes on." if resumes else ""
    assert run(*words.split()) == (130, "", f"Interrupted.{more}\n")
