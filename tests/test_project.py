"""What the project says of itself is true."""

import importlib
import importlib.util
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest

import ordinate
from ordinate.cli import evaluate, evaluate_regression
from ordinate.cli.main import build_parser
from ordinate.inference.interval_methods import IntervalMethod
from ordinate.results import interval_methods_text, leaderboard_text, regression_text
from ordinate.results.comparison_settings import Correction

ROOT = Path(__file__).parent.parent
FITS = re.compile("<!-- output of: .*ordinate tune(-regression)? ")
FITTING = ("numpy", "scipy", "scikit-learn", "lightgbm", "optuna", "torch")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _build():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(text: str) -> list[str]:
    """Return words, without times and hashes: these change with the last digit of a feature."""
    timeless = re.sub(r"\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\dT[\d:+]+|(?<=python )[\d.]+", "", text)
    return re.sub(r"-[0-9a-f]{12}\b", "-hash", re.sub(r"-\s+", "-", timeless)).split()


def test_the_architecture_names_every_package_and_only_modules_that_exist():
    named = set(re.findall(r"`(ordinate[\w.]*)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8")))
    modules = {m.name for m in pkgutil.walk_packages(ordinate.__path__, "ordinate.")}
    assert named <= {"ordinate", *modules}
    own = {m.name for m in pkgutil.iter_modules(ordinate.__path__)} - {"__main__"}
    assert {f"ordinate.{name}" for name in own} <= named


def _other_versions() -> list[str]:
    """Return the libraries of fits whose versions are not those with which pages are made."""
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return [x for x in FITTING if f"{x}=={version(x).partition('+')[0]}" not in pinned]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shown_output_is_what_the_commands_print(page):
    text = page.read_text("utf-8")
    made = _build().with_outputs(text)
    if FITS.search(text) and (other := _other_versions()):
        pytest.skip(f"other versions of {', '.join(other)} fit other models than the page shows")
    assert _words(made) == _words(text)


def _list_commands(text: str) -> list[list[str]]:
    """Return the words of the `ordinate` commands in the blocks of a page, without comments."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [line.partition(" > ")[0].split(" && ") for line in lines]
    return [
        shlex.split(command, comments=True)[1:]
        for some in commands
        for command in some
        if command.startswith("ordinate ")
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_has_flags_that_there_are(page):
    for words in _list_commands(page.read_text("utf-8")):
        build_parser(words).parse_args(words)  # which ends the process where it is wrong


def test_the_readme_shows_a_report():
    assert "ordinate evaluate" in (ROOT / "README.md").read_text("utf-8").split("```text\n")[0]
    assert "best constant" in (ROOT / "README.md").read_text("utf-8").split("```text\n")[1]


def test_the_reference_is_generated_from_the_catalogue():
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    assert _words(page) == _words(_build().reference())


def test_the_table_of_engines_is_that_of_the_tests():
    page, build = (ROOT / "docs" / "tables.md").read_text("utf-8"), _build()
    assert build.ENGINES.search(page)[2].count("\n") > 10
    assert build.with_engines(page) == page


def test_the_readme_counts_the_metrics():
    (number,) = re.findall(r"\*\*(\d+) metrics\*\*", (ROOT / "README.md").read_text("utf-8"))
    assert int(number) == len(ordinate.list_metrics())


def test_every_public_name_is_there():
    assert set(ordinate.__all__) <= set(dir(ordinate))
    assert all(getattr(ordinate, name) is not None for name in ordinate.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ordinate.nothing


def test_the_public_names_are_those_of_the_list():
    build = _build()
    assert list(build.list_public_names()) == build.PUBLIC_NAMES.read_text("utf-8").splitlines()


def test_every_module_can_be_imported_under_another_name():
    """No package exports a name that one of its modules or packages has."""
    for found in pkgutil.walk_packages(ordinate.__path__, "ordinate."):
        if "__main__" not in found.name:
            parent, _, name = found.name.rpartition(".")
            module = importlib.import_module(found.name)
            assert getattr(importlib.import_module(parent), name) is module, found.name


@pytest.mark.parametrize("name", ordinate.PACKAGES)
def test_packages_are_reached_after_importing_ordinate(name):
    program = f"import ordinate; assert ordinate.{name}.__name__ == 'ordinate.{name}'"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_braces_of_every_formula_balance():
    for metric in ordinate.list_metrics():
        assert metric.formula.count("{") == metric.formula.count("}"), metric.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^):#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_exception_from_a_rule_has_its_reason():
    bare = re.compile(r"# (noqa|type: ignore)[^#\n]*$")
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.py")):
        for line in path.read_text("utf-8").splitlines():
            assert not bare.search(line) or " - " in line, f"{path.name}: {line}"


def get_choices(command: str, flag: str) -> list[str]:
    """Return what a flag of a command takes."""
    commands = build_parser([command])._subparsers._group_actions[0].choices
    return commands[command]._option_string_actions[flag].choices


def test_what_can_be_asked_for_is_listed_the_same_everywhere():
    of_labels, of_regression = set(evaluate.METHODS), set(evaluate_regression.METHODS)
    assert of_labels == set(interval_methods_text.METHOD_NAMES)
    assert of_labels | of_regression == set(get_args(IntervalMethod))
    assert of_regression <= set(regression_text.METHOD_NAMES)
    assert (
        set(get_choices("compare", "--correction"))
        == set(get_args(Correction))
        == set(leaderboard_text.CORRECTION_NAMES)
    )


RETIRED = (  # words of our own, for which the field has better ones
    *("confusion table", "second human", "second gold", "predictive interval", "sets of levels"),
    *("told apart", "surely ahead", "surely better", "way of answering", "flattered"),
    *("drawn again", "wilson's limits", "limits hold", "limits of a", "limits of differences"),
    *("maker of features", "the maker", "kind of model", "kinds of model", "nobody knows"),
    *("whole number", "whole weights", "whole counts", "real weights", "out-of-fold answers"),
    *("compact letters", "taken as units", "study of coverage", "prediction less target"),
    *("mended", "undecided", "against_rest", "rmse_share", "evaluate_values", "compare_values"),
    *("--draws", "--second-gold", "--losses", "--task values"),
    *("limits of the interval", "95 % limits", "confidence limits", "leaves 0 out", "leaves out 0"),
    *("feature maker", "n-grams of letters", "letter tf-idf", "tf-idf of letters", "own cuts"),
    *("held-out answers", "test answers", "metric of your own", "metrics of one's own"),
    *("taken for units", "expected beforehand", "less is better", "a word about it", "straw man"),
    *("ordinate.decide", "ordinate.summary.", "ordinate.data.", "ordinate.runs."),
)


@pytest.mark.parametrize(
    "path",
    [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_retired_word_comes_back(path):
    text = " ".join(path.read_text("utf-8").lower().split())
    assert not [word for word in RETIRED if word in text]
