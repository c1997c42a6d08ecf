"""Outputs of commands: whole on the disk before they get their name, and swept away by nobody."""

import os
from pathlib import Path

import pytest

from command import run
from ordinate.cli.output import replacing
from ordinate.errors import BadOutput
from ordinate.examples import path
from ordinate.runs.files import sweep


def test_the_output_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    seen = []

    def synced(handle):
        named = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append((named.suffix, (tmp_path / "out.md").exists()))

    monkeypatch.setattr(os, "fsync", synced)
    with replacing(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
    assert seen == [(".md", False), ("", True)]  # the file, and then the folder with its name


def test_a_sweep_takes_no_output_that_is_being_written(tmp_path):
    with replacing(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
        assert sweep(tmp_path) == 0
    assert [left.name for left in tmp_path.iterdir()] == ["out.md"]


def test_an_output_is_as_readable_as_any_new_file(tmp_path):
    with replacing(str(tmp_path / "out.md"), force=False) as out:
        out.write_text("whole")
    (tmp_path / "other").touch()
    assert (tmp_path / "out.md").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_an_error_leaves_nothing(tmp_path):
    with (
        pytest.raises(BadOutput, match="no more"),
        replacing(str(tmp_path / "out.md"), force=False),
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
    asked = ("evaluate", path("cefr"))
    assert run(*asked, "-o", tmp_path / name).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begin)
    again = ("-o", tmp_path / name, "--force", "--format", "markdown")
    assert run(*asked, *again).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("# 240 items")
