"""`ordinate check`: what is told, in which form, and with which exit code."""

import csv
import io
import json
import shlex

import pytest
from command import run
from experiment_folder import items, write_experiment, write_rows

from ordinate.cli.check import EXAMPLES


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_experiment(tmp_path / "study")
    return tmp_path


def test_a_sound_experiment_exits_with_0():
    ran = run("check", "-e", "study")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Experiment study: ready\n")


def test_warnings_exit_with_0_and_errors_with_2(here):
    rows = items(12, 30)
    rows[0]["text"] = ""
    write_rows(here / "study" / "ml-test-data" / "test.csv", rows)
    ran = run("check", "-e", "study")
    assert ran.code == 0
    assert "warning: ml-test-data/test.csv: 1 texts are empty" in ran.out
    rows[0]["level"] = "B9"
    write_rows(here / "study" / "ml-test-data" / "test.csv", rows)
    ran = run("check", "-e", "study")
    assert ran.code == 2
    assert "'B9'; the first in row 1" in " ".join(ran.out.split())


def test_json_and_csv_have_every_finding(here):
    (here / "study" / "ml-test-data" / "test.csv").unlink()
    found = json.loads(run("check", "-e", "study", "--format", "json").out)
    assert found["scale"] == ["A1", "A2", "B1", "B2", "C1", "C2"]
    rows = list(csv.DictReader(io.StringIO(run("check", "-e", "study", "--format", "csv").out)))
    findings = [row for row in rows if row["severity"] != "counted"]
    assert findings == found["findings"]
    assert len(findings) == 2


def test_a_folder_that_is_not_there_is_one_line():
    ran = run("check", "-e", "nothing")
    assert ran.code == 2
    assert ran.err == (
        "ordinate: The folder 'nothing' is not there. Lay one out with `ordinate init DIR`.\n"
    )


def test_an_existing_report_is_not_overwritten(here):
    (here / "found.json").write_text("mine")
    ran = run("check", "-e", "study", "-o", "found.json")
    assert ran.code == 2
    assert "exists already" in ran.err
    assert (here / "found.json").read_text() == "mine"


def test_the_examples_of_the_help_run(here):
    rows = [row | {"grade": k % 6 + 1, "writer": f"w{k}"} for k, row in enumerate(items(30))]
    write_rows(here / "study" / "ml-training-data" / "train.csv", rows)
    rows = [
        row | {"grade": k % 6 + 1, "writer": f"w{k}"} for k, row in enumerate(items(12, 30), 30)
    ]
    write_rows(here / "study" / "ml-test-data" / "test.csv", rows)
    examples = [line.split() for line in EXAMPLES.splitlines() if line.startswith("  ordinate")]
    assert len(examples) == 4
    for _, *words in examples:
        arguments = shlex.split(shlex.join(words))
        if "--label-column" not in arguments:
            arguments += ["--label-column", "level"]
        ran = run(*arguments)
        assert ran.code == 0, (arguments, ran)
