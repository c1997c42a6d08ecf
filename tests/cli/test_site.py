"""`ordinate site`: what it prints, and how it refuses."""

import json

from report_folders import GOLD, evaluate, save_report

from ordinate.cli.main import main


def test_the_command_writes_the_site_and_lists_it(tmp_path, capsys):
    save_report(evaluate(GOLD), tmp_path / "in" / "a.json")
    (tmp_path / "in" / "cut.json").write_text("{")
    arguments = ["site", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "1 report of 1 system on 1 data set. 1 file is broken." in shown
    assert "cut.json" in shown
    assert (tmp_path / "out" / "index.html").is_file()
    assert main(arguments) == 2
    assert "exists already. Pass --force to replace a site." in capsys.readouterr().err
    assert main([*arguments, "--force", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in listed["reports"]] == ["a.json"]
    assert [one["path"] for one in listed["broken"]] == ["cut.json"]
