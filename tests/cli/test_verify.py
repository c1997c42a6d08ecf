"""`ordinate verify`: exit codes, one clear error for each bad file, and the version first."""

import json
import re
import shlex

import pytest
from command import run

from ordinate.cli.verify import EXAMPLES
from ordinate.render.packed_text import pack_text

ROWS = "level,guess\n" + "low,low\nmid,high\nhigh,high\nmid,mid\nlow,mid\n" * 6
EVALUATE = ("items.csv", "--gold", "level", "--predicted", "guess", "--scale", "low,mid,high")


@pytest.fixture(autouse=True)
def reports(here):
    (here / "items.csv").write_text(ROWS)
    for name in ("report.html", "report.json"):
        assert run("evaluate", *EVALUATE, "--metrics", "mae", "-o", name).code == 0


def test_examples_run():
    examples = re.findall(r"^  ordinate (.*)$", EXAMPLES, re.MULTILINE)
    assert [run(*shlex.split(example)).code for example in examples] == [0, 0]


def test_a_report_that_agrees_says_so_and_one_that_does_not_exits_with_3(here):
    assert "All digits agree" in run("verify", "report.html").out
    page = (here / "report.html").read_text()
    cell = re.search(r'<td class="n">0\.\d+', page)
    (here / "report.html").write_text(page[: cell.end() - 1] + "x" + page[cell.end() :])
    ran = run("verify", "report.html", "--format", "json")
    assert ran.code == 3
    (difference,) = json.loads(ran.out)["differences"]
    assert difference["shown"] == difference["recomputed"][:-1] + "x"


def test_a_report_on_standard_output_can_be_verified(here):
    for form in ("json", "html"):
        (here / f"piped.{form}").write_text(run("evaluate", *EVALUATE, "--format", form).out)
        assert run("verify", f"piped.{form}").code == 0


def test_own_metrics_are_loaded(here):
    (here / "own.py").write_text(
        "import ordinate\n\n@ordinate.metric(direction='minimize')\n"
        "def misses_of_this_test(matrix):\n"
        "    return 1.0 - matrix.share.trace(axis1=-2, axis2=-1)\n"
    )
    own = ("--load", "own.py")
    ran = run("evaluate", *EVALUATE, *own, "--metrics", "misses_of_this_test", "-o", "own.json")
    assert (ran.code, ran.err) == (0, "")
    assert run("verify", "own.json").code == 0  # this process has it loaded
    text = (here / "own.json").read_text().replace("misses_of_this_test", "unknown_here")
    (here / "own.json").write_text(text)
    shown = " ".join(run("verify", "own.json").out.split())
    assert "A metric that you declared is loaded with --load." in shown


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level,guess\nlow,low\n", "it is neither a page nor JSON that Ordinate wrote."),
        ("", "it is neither a page nor JSON"),
        ("{}", "it does not say what it is made of: no report of Ordinate, or cut off."),
        ("<!DOCTYPE html><html><script>alert(1)</script>", "it does not say what it is made of"),
        ('{"provenance": ', "its JSON is damaged or cut off: Expecting value"),
        ('{"x": ' + DEEP, "its JSON is damaged or cut off: maximum recursion"),
        ('{"x": ' + "9" * 5_000 + "}", "its JSON is damaged or cut off: Exceeds the limit"),
        ('{"provenance": {"file": "../secret"}}', "it does not say what it is made of."),
        ('{"provenance": {"file": "a.0123456789abcdef.json"}}', "which is not beside it."),
        ("\x00\xff", "it is neither a page nor JSON"),
    ],
)
def test_what_is_no_report_is_one_clear_error(here, text, message):
    (here / "bad").write_text(text)
    ran = run("verify", "bad")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("ordinate: 'bad' cannot be verified: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_bytes_that_are_no_text_and_files_that_are_not_there(here):
    (here / "bad").write_bytes(b"\xff\xfe{")
    assert "it is no text." in run("verify", "bad").err
    assert "No such file or directory." in run("verify", "none.html").err
    assert "Is a directory." in run("verify", ".").err


@pytest.mark.parametrize(
    "made_of",
    [
        {"$": "os:system", "command": "true"},
        {"$": "summaries.confusion:ConfusionMatrix", "weights": 1},
        {"$": "inference.confidence_intervals:ConfidenceIntervals", "resamples": 10**12},
        {"$": "scale.levels:Scale", "labels": [1e300, -1], "positions": ["x"], "names": []},
        {"$": "array", "values": [[1], 2]},
        {"$": "float"},
        {"$": "dict", "keys": [{"x": 1}], "values": [2]},
        {"$": "results.evaluation:Evaluation.from_summary", "matrix": 1},
        [1, 2],
    ],
)
def test_what_makes_no_report_is_an_error_and_never_a_traceback(here, made_of):
    report = json.loads((here / "report.json").read_text())
    report["provenance"]["made_of"] = made_of
    (here / "report.json").write_text(json.dumps(report))
    ran = run("verify", "report.json")  # the checksum shows that it was changed
    assert ran.code == 3
    assert "What the report is made of was changed, and makes no report" in " ".join(
        ran.out.split()
    )


@pytest.mark.parametrize("share", [0.1, 0.9, 0.999])
@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_report_that_is_cut_off_is_never_taken_for_whole(here, name, share):
    text = (here / name).read_text()
    (here / name).write_text(text[: int(len(text) * share)])
    assert run("verify", name).code in {2, 3}


def change_report(here, **changes):
    """Change what the JSON says of how it was made."""
    report = json.loads((here / "report.json").read_text())
    report["provenance"] |= changes
    (here / "report.json").write_text(json.dumps(report))


def test_a_version_is_no_place_for_words_that_a_page_then_shows(here):
    change_report(here, ordinate="0.1.0</p><p>mae 0.001")
    assert "does not say which version of Ordinate made it." in run("verify", "report.json").err


def test_a_key_that_stands_twice_is_refused_for_readers_see_one_of_both(here):
    text = (here / "report.json").read_text()
    (here / "report.json").write_text(text.replace('"n":', '"n": 7,\n  "n":', 1))
    ran = run("verify", "report.json")
    assert (ran.code, ran.out) == (2, "")
    assert "'n' stands twice in one object" in ran.err


def test_what_is_nested_deeply_is_one_clear_error(here):
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    change_report(here, made_of=deep)
    ran = run("verify", "report.json")
    assert ran.code in {2, 3}
    assert "Traceback" not in ran.err
    (here / "report.json").write_text(json.dumps({"x": deep, "provenance": {}}))
    assert run("verify", "report.json").code == 2


@pytest.mark.parametrize("packed", ["", "AAAA", "é", pack_text("[")])
def test_what_cannot_be_unpacked_is_one_clear_error(here, packed):
    report = json.loads((here / "report.json").read_text())
    del report["provenance"]["made_of"]
    (here / "report.json").write_text(json.dumps(report))
    change_report(here, packed=packed)
    ran = run("verify", "report.json")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be unpacked" in ran.err or "JSON is damaged" in ran.err


def test_an_absurd_report_is_refused_at_once(here):
    """Whatever stands in a report that nobody has made, it takes no memory and no time."""
    text = (here / "report.json").read_text()
    for change in (('"resamples": 2000', '"resamples": 1000000000'), ("[0.0", "[1e18")):
        (here / "report.json").write_text(text.replace(*change))
        assert run("verify", "report.json").code == 3
    (here / "report.json").write_bytes(b"{")
    with (here / "report.json").open("r+b") as file:
        file.truncate(10**12)  # which takes no room on the disk
    assert "a report has 256,000,000 at most" in run("verify", "report.json").err
