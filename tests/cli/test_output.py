"""Outputs of commands: whole on the disk before they get their name, and swept away by nobody."""

import os
import shutil
from pathlib import Path

import pytest
from command import run
from experiments import lay_out

from ordinate.cli.output import replace_atomically
from ordinate.errors import BadOutput
from ordinate.examples import locate_example
from ordinate.tuning.experiment.safe_files import remove_leftovers


def test_the_output_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    seen = []

    def synced(handle):
        named = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append((named.suffix, (tmp_path / "out.md").exists()))

    monkeypatch.setattr(os, "fsync", synced)
    with replace_atomically(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
    assert seen == [(".md", False), ("", True)]  # the file, and then the folder with its name


def test_a_sweep_takes_no_output_that_is_being_written(tmp_path):
    with replace_atomically(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
        assert remove_leftovers(tmp_path) == 0
    assert [left.name for left in tmp_path.iterdir()] == ["out.md"]


def test_an_output_is_as_readable_as_any_new_file(tmp_path):
    with replace_atomically(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
    (tmp_path / "other").touch()
    assert (tmp_path / "out.md").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_an_error_leaves_nothing(tmp_path):
    with (
        pytest.raises(BadOutput, match="no more"),
        replace_atomically(str(tmp_path / "out.md"), force=False),
    ):
        raise BadOutput("no more")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("out.json", '{\n  "schema"'),
        ("out.CSV", "group,metric,"),
        ("out.md", "# 240 items"),
        ("out.tex", "% 240 items"),
        ("out.txt", "240 items"),
        ("out", "240 items"),
    ],
)
def test_a_report_is_written_as_its_file_ends_unless_a_format_is_named(tmp_path, name, begin):
    asked = ("evaluate", locate_example("cefr"))
    assert run(*asked, "-o", tmp_path / name).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begin)
    again = ("-o", tmp_path / name, "--force", "--format", "markdown")
    assert run(*asked, *again).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("# 240 items")


@pytest.mark.parametrize(("name", "command"), [("r.pdf", "evaluate"), ("r.xlsx", "decode")])
def test_a_suffix_that_no_report_has_is_refused_before_any_work(tmp_path, name, command):
    """`-o report.pdf` wrote text."""
    ran = run(command, locate_example("cefr"), "-o", tmp_path / name)
    assert ran.code == 2
    assert (".json, .csv, .md" in ran.err) == (command == "evaluate")
    assert not list(tmp_path.iterdir())


def test_a_format_says_what_is_meant_by_another_suffix(tmp_path):
    asked = ("evaluate", locate_example("cefr"), "-o", tmp_path / "r.page", "--format", "html")
    assert run(*asked).code == 0
    assert (tmp_path / "r.page").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


# --- what is read is never written ---------------------------------------------------------------


SEARCH = ("--target", "density", "--models", "poly_ridge", "--folds", "2", "--trials", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An experiment with a saved model, and a search on a table."""
    root = tmp_path_factory.mktemp("finished")
    study = lay_out(root / "study", n=36, sets=("strong",))
    tune = ("--models", "logistic", "--trials", "1", "--folds", "2")
    assert run("tune", "-e", study, *tune).code == 0
    shutil.copy(locate_example("densities"), root / "densities.csv")
    assert run("tune-regression", root / "densities.csv", *SEARCH, "-e", root / "found").code == 0
    return root


@pytest.fixture
def here(finished, tmp_path, monkeypatch):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(locate_example("cefr"), "cefr.csv")
    Path("own.py").write_text("# nothing is declared here\n")
    shutil.copytree("study/features", "mine")
    Path("mine/kept.txt").write_text("kept")
    return tmp_path


KEPT = "is for what Ordinate keeps there"
READ = "is read, so it cannot be written"


def contents(folder):
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    ("command", "output", "why"),
    [
        ("evaluate cefr.csv --load own.py", "own.py", READ),
        ("compare cefr.csv --gold gold --systems predicted,gold --load own.py", "own.py", READ),
        ("properties mae --load own.py", "own.py", READ),
        ("check -e study", "study/ml-training-data/train.csv", KEPT),
        ("check -e study", "study/features/strong/train/features.csv", KEPT),
        ("check -e study", "study/ml-test-data/report.csv", KEPT),
        ("check -e study", "study/.lock", KEPT),
        ("rank -e study --metric mae", "study/ml-test-data/test.csv", KEPT),
        ("rank -e study --metric mae", "study/models/report.json", KEPT),
        ("rank -e study", "study/ml-training-data/train.csv", KEPT),
        ("evaluate cefr.csv", "study/ml-test-data/test.csv", KEPT),
        ("evaluate cefr.csv --items study/ml-test-data/test.csv", "out.txt", KEPT),
        ("tune -e study --dry-run", "study/results/report.json", KEPT),
        ("features list -e study", "study/ml-training-data/train.csv", KEPT),
        (
            "predict -e study --data study/ml-test-data/test.csv",
            "study/ml-test-data/test.csv",
            READ,
        ),
        ("predict -e study --data cefr.csv", "study/ml-training-data/train.csv", KEPT),
        ("analyze-search -e found", "found/results/results.json", KEPT),
        ("analyze-search -e found", "found/results/runs/report.json", KEPT),
        ("analyze-search -e found", "found/models/report.json", KEPT),
        ("predict-regression densities.csv -e found", "densities.csv", READ),
        ("predict -e study --data cefr.csv", "study/predictions/mine/x.csv", KEPT),
        ("check -e study --features-base-dir mine", "mine/strong/x.txt", "which is read"),
        ("check -e study --features-base-dir mine", "mine/kept.txt", "which is read"),
    ],
)
def test_force_does_not_overwrite_what_is_read_or_kept(here, command, output, why):
    before = contents(here)
    ran = run(*command.split(), "-o", output, "--force")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert contents(here) == before


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("check -e study", "study/report.json"),
        ("check -e study", "study/reports/check.md"),
        ("analyze-search -e found", "found/analysis.md"),
        ("evaluate cefr.csv", "results.json"),
    ],
)
@pytest.mark.usefixtures("here")
def test_reports_may_lie_in_an_experiment_and_be_written_again(command, output):
    Path(output).parent.mkdir(exist_ok=True)
    assert run(*command.split(), "-o", output).code == 0
    first = Path(output).read_bytes()
    assert run(*command.split(), "-o", output, "--force").code == 0
    assert Path(output).read_bytes() == first


@pytest.mark.usefixtures("here")
def test_predictions_may_lie_beside_those_of_an_experiment():
    Path("study/predictions").mkdir()
    asked = ("predict", "-e", "study", "--data", "study/ml-test-data/test.csv")
    assert run(*asked, "-o", "study/predictions/mine.csv").code == 0
    assert Path("study/predictions/mine.csv").exists()


@pytest.mark.parametrize(
    ("command", "gone", "output"),
    [
        ("rank -e study --metric mae", "study/ml-training-data", "study/ml-test-data/test.csv"),
        ("rank -e study", "study/ml-training-data", "study/ml-test-data/test.csv"),
        ("check -e study", "study/ml-training-data", "study/models/x.json"),
        ("analyze-search -e found", "found/results/trials.json", "found/results/results.json"),
    ],
)
def test_what_is_kept_is_not_overwritten_where_a_part_of_it_is_gone(here, command, gone, output):
    part = Path(gone)
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    before = contents(here)
    ran = run(*command.split(), "-o", output, "--force")
    assert (ran.code, ran.out) == (2, "")
    assert KEPT in ran.err
    assert contents(here) == before


@pytest.mark.parametrize("name", ["summary.md", "results.json", "trials.json"])
def test_a_search_does_not_replace_files_that_no_search_wrote(here, name):
    Path("mixed/results").mkdir(parents=True)
    Path("mixed/results", name).write_text("my own")
    before = contents(here)
    ran = run("tune-regression", "densities.csv", *SEARCH, "-e", "mixed")
    assert (ran.code, ran.out) == (2, "")
    assert "was not written by a search" in ran.err
    assert contents(here) == before


@pytest.mark.parametrize(
    ("data", "output", "why"),
    [
        ("densities.csv", "study", "is an experiment with texts"),
        ("densities.csv", "study/models/mine", KEPT),
        ("found/results/densities.csv", "found", "lies where the results would be written"),
    ],
)
def test_a_search_is_not_written_over_an_experiment_or_its_own_data(here, data, output, why):
    if data != "densities.csv":
        shutil.copy("densities.csv", data)
    before = contents(here)
    ran = run("tune-regression", data, *SEARCH, "-e", output)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert contents(here) == before


def test_a_file_that_a_report_needs_is_named(here, monkeypatch):
    monkeypatch.setattr("ordinate.results.provenance.LARGEST_MADE_OF", 200)
    (here / "items.csv").write_text("gold,predicted\n" + "A1,A1\nB1,C1\n" * 9)
    arguments = ("items.csv", "--gold", "gold", "--predicted", "predicted", "--scale", "cefr")
    ran = run("evaluate", *arguments, "-o", "report.html")
    (beside,) = here.glob("report.html.*.json")
    assert ran.err == (
        f"{beside.name} belongs to report.html: `ordinate verify` needs it beside it.\n"
    )
    assert run("verify", "report.html").code == 0
