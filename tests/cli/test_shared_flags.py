"""Flags that several commands share: one name, one help, one default."""

import argparse
import re

import pytest

from ordinate.cli.main import COMMANDS, build_parser

# Flags that differ on purpose, each with its reason.
MEANT = {
    ("evaluate-regression", "--interval-method"): "values have other methods than labels",
    ("meta", "--resamples"): "a resample of test cases and systems costs more, so there are fewer",
    ("features perplexity", "--model-path"): "there is no usual model of which perplexities are",
    ("predict-regression", "--alpha"): "a saved model knows what it was tuned with",
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
    """Return what a flag is: its spellings, its help with its default, and its choices."""
    help_ = re.sub(r"\s+", " ", action.help or "")
    choices = tuple(action.choices) if action.choices else None
    return tuple(action.option_strings), help_, choices, action.metavar


def collect_flags():
    found: dict[str, dict[tuple, list[str]]] = {}
    for name, parser in PARSERS.items():
        for action in parser._actions:
            for flag in action.option_strings:
                if (name, flag) not in MEANT:
                    found.setdefault(flag, {}).setdefault(describe(action), []).append(name)
    return found


FLAGS = collect_flags()


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_the_same_in_every_command(flag):
    described = FLAGS[flag]
    assert len(described) == 1, "\n".join(f"{who}: {what}" for what, who in described.items())


def test_every_flag_explains_itself():
    lacking = [
        (name, action.option_strings or action.dest)
        for name, parser in PARSERS.items()
        for action in parser._actions
        if not action.help
    ]
    assert lacking == []


def test_evaluation_has_fewer_than_thirty_flags_beside_where_the_rows_are():
    groups = {group.title: group._group_actions for group in PARSERS["evaluate"]._action_groups}
    places = groups.pop("files and databases")
    flags = [one for group in groups.values() for one in group if one.option_strings]
    assert len([one for one in flags if one.dest != "help"]) < 30
    assert {"--sql", "--delimiter"} <= {flag for one in places for flag in one.option_strings}


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
