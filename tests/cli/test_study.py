"""`ordinate study synthetic`: the experiment as a command, and one message for bad input."""

import json
import re
import shlex
from functools import partial

import pytest
from command import read_values, run

from ordinate.cli.study import EXAMPLES, READING_OPTIONS
from ordinate.meta.replication import option_search, study
from ordinate.meta.replication.option_search import ReadingSearch
from ordinate.meta.replication.study import run_replication
from ordinate.meta.replication.synthetic_experiment import (
    CHOICES,
    FITTED,
    SEARCH_SEEDS,
    Reading,
    SyntheticRun,
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # quick; the whole experiment is run elsewhere
    monkeypatch.setattr(study, "SyntheticRun", partial(SyntheticRun, cases=5))


@pytest.fixture
def quick(monkeypatch):
    """A search that knows its answer, and keeps the seeds that it was asked for."""
    asked = []

    def search(seeds, *, progress):
        asked.append(tuple(seeds))
        progress(1.0)
        best, tried = option_search.descend_readings(
            option_search.LITERAL,
            lambda reading: option_search.ReadingFit(len(reading.changes(FITTED)), 0.0, 0, 0),
        )
        return ReadingSearch(tuple(seeds), best, tried)

    monkeypatch.setattr(option_search, "search_readings", search)
    return asked


def studied(*arguments: str) -> dict:
    ran = run("study", "synthetic", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def test_the_command_gives_the_numbers_of_python():
    found = studied("--first-seed", "3", "--seeds", "1")
    assert found == json.loads(json.dumps(run_replication(seeds=[3]).to_dict()))


def test_seeds_follow_the_first_one():
    assert studied("--first-seed", "8", "--seeds", "2")["seeds"] == [8, 9]


def test_the_same_command_prints_the_same_report():
    options = ("study", "synthetic", "--seeds", "1", "--format", "markdown")
    assert run(*options) == run(*options)


def test_without_options_there_are_five_seeds_and_both_readings():
    ran = run("study", "synthetic")
    assert (ran.code, ran.err) == (0, "")
    assert "seeds 0, 1, 2, 3, 4" in ran.out
    assert "Coverage, literal reading" in ran.out
    assert "Coverage, fitted reading" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_options_make_a_reading_that_is_shown_alone_beside_the_paper():
    options = ("--seeds", "1", "--option", "errors=independent", "--option", "values=pooled")
    own = {"chosen": Reading(errors="independent", values="pooled")}
    assert studied(*options) == json.loads(json.dumps(run_replication([0], own).to_dict()))
    ran = run("study", "synthetic", *options)
    assert "Reading 'chosen': differs from the literal one in errors=independent" in ran.out
    assert "Coverage, chosen reading" in ran.out
    assert "paper" in ran.out


def test_the_help_names_every_option_and_choice():
    named = dict(re.findall(r"^  (\w+) +(\w+(?:, \w+)*)$", READING_OPTIONS, re.MULTILINE))
    assert named == {name: ", ".join(choices) for name, choices in CHOICES.items()}
    ran = run("study", "--help")
    assert READING_OPTIONS in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_a_search_has_seeds_of_its_own(quick):
    assert studied("--search-readings")["best"]["options"] == FITTED.options
    assert quick == [SEARCH_SEEDS]


@pytest.mark.parametrize("line", re.findall(r"^  (ordinate .*)$", EXAMPLES, re.MULTILINE))
@pytest.mark.usefixtures("quick")
def test_every_example_runs(line):
    ran = run(*shlex.split(line)[1:])
    assert (ran.code, ran.err) == (0, "")


def test_a_report_is_written_whole_and_never_over_another(tmp_path):
    options = ("study", "synthetic", "--seeds", "1", "--format", "csv", "-o", "out.csv")
    assert run(*options).code == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "reading,metric,column,mean,sd,published"
    assert len(lines) == 1 + 2 * 15 * 6
    again = run(*options)
    assert (again.code, again.out) == (2, "")
    assert "--force" in again.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("synthetic", "--first-seed", "-1"),
            "--first-seed takes an integer of at least 0, not -1",
        ),
        (("synthetic", "--seeds", "0"), "--seeds takes a number of at least 1, not 0"),
        (("synthetic", "--seeds", "100000"), "1 to 1,000"),
        (("synthetic", "--first-seed", "x"), "invalid int value"),
        (("synthetic", "--option", "errors"), "takes NAME=VALUE, such as errors=independent, not"),
        (("synthetic", "--option", "=exact"), "takes NAME=VALUE"),
        (("synthetic", "--option", "erors=exact"), "Did you mean 'errors'?"),
        (("synthetic", "--option", "errors=Exact"), "not 'Exact'. Did you mean 'exact'?"),
        (("synthetic", "--option", "errors="), "The option errors takes exact or independent"),
        (
            ("synthetic", "--option", "errors=exact", "--option", "errors=independent"),
            "--option errors=… is given twice",
        ),
        (
            ("synthetic", "--search-readings", "--option", "errors=exact"),
            "--search-readings tries every choice",
        ),
        (("real",), "invalid choice: 'real'"),
        ((), "required: study"),
        (("synthetic", "-o", "no/where.txt"), "cannot be written"),
    ],
)
def test_bad_input_has_one_message(options, message):
    ran = run("study", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
