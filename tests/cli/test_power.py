"""`ordinate power`: plans from files are those of Python, and bad input has one message."""

import json
import re
import shlex

import pytest
from command import read_values, run

import ordinate
from ordinate.cli.power import EXAMPLES
from ordinate.examples import locate_example

LABELS = ["A1", "A2", "B1", "B2", "C1", "C2"]
GOLD = LABELS * 8
NEAR = [LABELS[min(k % 6 + (k % 5 == 0), 5)] for k in range(48)]
FAR = [LABELS[min(k % 6 + (k % 2), 5)] for k in range(48)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [",".join(row) for row in zip(GOLD, NEAR, FAR, strict=True)]
    (tmp_path / "pilot.csv").write_text("\n".join(["level,a,b", *rows]) + "\n")
    for name, header, labels in (
        ("gold.csv", "essay,level", GOLD),
        ("a.csv", "essay,answer", NEAR),
        ("b.csv", "essay,answer", FAR),
    ):
        lines = [header, *(f"{k},{label}" for k, label in enumerate(labels))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")


def planned(*arguments: str) -> dict:
    ran = run("power", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def test_a_plan_from_a_file_is_that_of_python():
    found = planned("pilot.csv", "--gold", "level", "--systems", "a,b", "--difference", "0.05")
    expected = ordinate.power(GOLD, {"a": NEAR, "b": FAR}, "cem_ord", 0.05, scale="cefr").to_dict()
    assert {k: v for k, v in found.items() if k != "source"} == json.loads(
        json.dumps({k: v for k, v in expected.items() if k != "source"})
    )


def test_runs_joined_by_id_give_the_same_plan_as_columns():
    wide = planned("pilot.csv", "--gold", "level", "--systems", "a,b", "--difference", "0.1")
    runs = ("gold.csv", "a.csv", "b.csv", "--id", "essay", "--gold", "level")
    long = planned(*runs, "--predicted", "answer", "--difference", "0.1")
    assert (wide["needed"], wide["spread"]) == (long["needed"], long["spread"])


def test_one_system_has_widths_for_the_items_asked_for():
    found = planned("pilot.csv", "--gold", "level", "--systems", "a", "--sizes", "48,192")
    small, large = found["outlooks"]
    assert (small["items"], large["items"]) == (48, 192)
    assert small["widths"]["a"] == pytest.approx(2 * large["widths"]["a"])
    assert found["needed"] is None


@pytest.mark.parametrize("line", re.findall(r"^  (ordinate .*)$", EXAMPLES, re.MULTILINE))
def test_every_example_runs(line):
    ran = run(*shlex.split(line)[1:])
    assert (ran.code, ran.err) == (0, "")
    assert "items" in ran.out


def test_the_shipped_example_can_be_planned_from():
    options = ("--gold", "gold", "--systems", "forest,ensemble", "--difference", "0.03")
    assert planned(str(locate_example("systems")), *options)["needed"] > 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--systems", "a", "--difference", "0.1"), "A difference is between two systems"),
        (("--systems", "a,b", "--difference", "-1"), "must be above 0"),
        (("--systems", "a,b", "--power", "2"), "power is 0.5 to below 1"),
        (("--systems", "a,b", "--sizes", "x"), "integers"),
        (("--systems", "a,b", "--sizes", "0"), "1 or more"),
        (("--systems", "a,b", "--metric", "nope"), "no metric 'nope'"),
        (("--systems", "a,c"), "no column 'c'"),
    ],
)
def test_bad_input_has_one_message(options, message):
    ran = run("power", "pilot.csv", "--gold", "level", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
