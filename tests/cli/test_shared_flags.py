"""Flags that several commands share: one name, one help, one default."""

import argparse
import re

import pytest
from command import run

from ordinate.cli.main import COMMANDS, build_parser

SCREEN_LINES = 48
# Flags that differ on purpose, each with its reason.
MEANT = {
    ("advise", "--scale"): "it reads no labels, and a sentence names the scale",
    ("evaluate-regression", "--interval-method"): "values have other methods than labels",
    ("meta", "--resamples"): "a resample of test cases and systems costs more, so there are fewer",
    ("features perplexity", "--model-path"): "there is no usual model of which perplexities are",
    ("predict-regression", "--alpha"): "a saved model knows what it was tuned with",
    ("tune-regression", "--missing"): "a table of numbers has no worst value",
    ("predict-regression", "--missing"): "the same",
    ("rank", "--model"): "all models are ranked, or several",
}


def list_parsers(parser: argparse.ArgumentParser, name: str):
    """Yield the parsers that take flags: of a command, or of its subcommands."""
    several = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not several:
        yield name, parser
    for action in several:
        for sub, inner in action.choices.items():
            yield from list_parsers(inner, f"{name} {sub}".strip())


PARSERS = dict(list_parsers(build_parser(), ""))


def describe(action: argparse.Action) -> tuple:
    """Return what a flag is: its spellings, its help with its default, and what it takes."""
    help_ = re.sub(r"\s+", " ", action.help or "")
    choices = tuple(action.choices) if action.choices else None
    takes = (type(action).__name__, action.nargs, choices, action.metavar)
    return tuple(action.option_strings), help_, takes


def collect_flags():
    found: dict[str, dict[tuple, list[str]]] = {}
    for name, parser in PARSERS.items():
        for action in parser._actions:
            for flag in action.option_strings:
                if (name, flag) not in MEANT:
                    found.setdefault(flag, {}).setdefault(describe(action), []).append(name)
    return found


FLAGS = collect_flags()


def test_a_flag_is_the_same_in_every_command():
    assert {flag: found for flag, found in FLAGS.items() if len(found) > 1} == {}


def test_every_flag_explains_itself():
    lacking = [
        (name, action.option_strings or action.dest)
        for name, parser in PARSERS.items()
        for action in parser._actions
        if not action.help
    ]
    assert lacking == []


def list_shown_flags(text: str) -> list[str]:
    return re.findall(r"^  (?:-\w(?: \w+)?, )?(--\S+)", text, re.MULTILINE)


def test_the_help_of_evaluation_has_fewer_than_thirty_flags_and_fits_two_screens(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("evaluate", "--help").out
    assert "--gold" in list_shown_flags(shown)
    assert len(set(list_shown_flags(shown)) - {"--help"}) < 30
    assert len(shown.splitlines()) <= 2 * SCREEN_LINES


WITH_FILES = [x for x, one in PARSERS.items() if "--help-files" in one._option_string_actions]


@pytest.mark.parametrize("name", WITH_FILES)
def test_two_helps_together_show_every_flag_once(name):
    pages = [list_shown_flags(run(name, flag).out) for flag in ("--help", "--help-files")]
    shown = [flag.replace("[no-]", "") for page in pages for flag in page]
    flags = [one.option_strings[-1] for one in PARSERS[name]._actions if one.option_strings]
    assert sorted(shown) == sorted(flag.replace("--no-", "--") for flag in flags)
    assert "--delimiter" in pages[1]
    assert "examples:" in run(name, "--help-files").out


def test_every_report_goes_to_a_file_that_is_named_alike():
    for name, parser in PARSERS.items():
        if name not in {"count", "init", "predict-regression"}:  # which write no report
            assert {"-o", "--format", "--force"} <= set(parser._option_string_actions), name


def test_every_command_has_a_summary_and_examples():
    actions = [one for one in build_parser(())._actions if one.dest == "command"]
    shown = {one.dest: one.help for one in actions[0]._choices_actions}
    assert shown == COMMANDS
    for name, parser in PARSERS.items():
        assert "examples:" in (parser.epilog or ""), name
