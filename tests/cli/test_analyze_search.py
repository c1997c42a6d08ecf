"""`ordinate analyze-search`: the report of a finished search."""

import json

import pytest
from command import run


def test_the_analysis_is_a_report(tuned_table, tmp_path):
    _, root, _ = tuned_table
    ran = run("analyze-search", "-e", root, "--format", "json")
    assert (ran.code, json.loads(ran.out)["task"]) == (0, "analyze_search")
    out = tmp_path / "analysis.md"
    assert run("analyze-search", "-e", root, "-o", out).code == 0
    assert out.read_text().startswith("# Search for the best RMSE")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("analyze-search", "-e", "absent"), "no search was finished"),
        (("analyze-search", "-e", "{data}"), "is a file, and the folder of a search is needed"),
    ],
)
def test_one_message_for_whatever_is_wrong(tuned_table, tmp_path, monkeypatch, words, said):
    data, root, _ = tuned_table
    monkeypatch.chdir(tmp_path)
    ran = run(*(word.format(data=data, root=root) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
