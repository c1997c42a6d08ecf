"""What the project says of itself is true."""

import contextlib
import importlib
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from inspect import isroutine
from typing import get_args

import pytest
from command import run
from each_case import each_case
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from shown_output import ROOT, list_words, load_script, skip_other_versions

import ordinate
from ordinate.cli import evaluate, evaluate_regression
from ordinate.cli.main import build_parser
from ordinate.examples import locate_example
from ordinate.inference.interval_methods import IntervalMethod
from ordinate.results import comparison_report, regression, report_parts
from ordinate.results.comparison_settings import Correction

FITS = re.compile("<!-- output of: .*ordinate tune(-regression)? ")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_OUTPUT = [page for page in PAGES if "<!-- output of: " in page.read_text("utf-8")]


def test_the_architecture_names_every_package_and_only_modules_that_exist():
    named = set(re.findall(r"`(ordinate[\w.]*)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8")))
    modules = {m.name for m in pkgutil.walk_packages(ordinate.__path__, "ordinate.")}
    assert named <= {"ordinate", *modules}
    own = {m.name for m in pkgutil.iter_modules(ordinate.__path__)} - {"__main__"}
    assert {f"ordinate.{name}" for name in own} <= named


def run_in_folder(command, folder):
    """Return what a command prints in a folder, run in this process."""
    with contextlib.chdir(folder):
        ran = run(*shlex.split(command)[1:])
    assert ran.code == 0, f"{command}: {ran.err}"
    return ran.out


@pytest.mark.parametrize("page", WITH_OUTPUT, ids=lambda page: page.name)
def test_shown_output_is_what_the_commands_print(page, monkeypatch):
    text, build = page.read_text("utf-8"), load_script("build")
    monkeypatch.setattr(build, "_run_command", run_in_folder)
    made = build.with_outputs(text)
    if FITS.search(text):
        skip_other_versions()
    assert list_words(made) == list_words(text)


@pytest.mark.parametrize("stable", [True, False])
def test_a_page_stays_where_a_run_prints_nothing_new_but_times_and_hashes(monkeypatch, stable):
    page = (
        "<!-- output of: ordinate x -->\n```text\ntuned on  2026-11-19T05:37:32+00:00\n"
        f"model  logistic-{'a1' * 6}\nmae {'b2' * 32}  0.5\n```\n"
    )
    later = page.replace("19T05", "20T17").replace("a1", "c3").replace("b2", "d4")
    made = later if stable else later.replace("0.5", " 0.5")
    build = load_script("build")
    monkeypatch.setattr(build, "output_of", lambda *_: build.SHOWN.search(made)[3])
    assert build.with_outputs(page) == (page if stable else made)


@each_case("page", PAGES)
def test_shown_output_has_its_command_on_the_page(page):
    text = page.read_text("utf-8")
    ran = [block[2].split(" && ")[-1] for block in load_script("build").SHOWN.finditer(text)]
    plain = re.sub(r"<!--.+?-->", "", re.sub(r" \\\n +", " ", text))
    assert [command for command in ran if command not in plain] == []


def test_the_first_screen_names_the_two_commands_that_do_everything():
    text = (ROOT / "README.md").read_text("utf-8")
    first = [line.split()[1] for line in text.splitlines()[:20] if line.startswith("make ")]
    assert first == ["demo", "test"]
    assert "make test\n" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_first_steps_show_a_report():
    before, report = (ROOT / "docs" / "first-steps.md").read_text("utf-8").split("```text\n")[:2]
    assert "ordinate evaluate" in before
    assert "best constant" in report


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_command_of_a_page_runs_on_the_example_that_it_copies(page, tmp_path):
    text = (ROOT / page).read_text("utf-8")
    ((example, copy),) = re.findall(r'cp "\$\(python -m ordinate\.examples (\w+)\)" ([\w.]+)', text)
    command = re.findall(r"^ordinate .+$", text, re.MULTILINE)[0]
    target = tmp_path if copy == "." else tmp_path / copy
    shutil.copy(locate_example(example), target)
    assert load_script("build").output_of(command, tmp_path) == ""
    assert "cem_ord 0.721" in (tmp_path / "report.html").read_text("utf-8")


def test_the_pages_of_metrics_are_generated_from_the_catalogue():
    pages = load_script("build").metric_pages.list_pages()
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in (docs / "metrics").rglob("*.md")}
    assert written | {"metrics.md"} == set(pages)
    for name, text in pages.items():
        assert list_words((docs / name).read_text("utf-8")) == list_words(text), name


def test_every_metric_says_when_to_use_it_and_when_not():
    pages = load_script("build").metric_pages
    for kind in pages.EXAMPLES:
        for metric in ordinate.metrics.list_metrics(ordinate.metrics.get_summary_type(kind)):
            explained, notes = pages.split_notes(metric)
            assert explained[0].startswith(metric.title), metric.name
            assert {"When to use it", "When not"} <= set(notes), metric.name


def test_the_table_of_engines_is_that_of_the_tests():
    page, build = (ROOT / "docs" / "tables.md").read_text("utf-8"), load_script("build")
    assert build.ENGINES.search(page)[2].count("\n") > 10
    assert build.with_engines(page) == page


def test_the_description_of_the_package_has_no_link_into_the_repository():
    metadata = ProjectMetadata(str(ROOT), PluginManager()).core
    assert metadata.readme_content_type == "text/markdown"
    assert "<img" not in metadata.readme
    assert re.findall(r"\]\((?!https://)", metadata.readme) == []
    assert metadata.readme.endswith("`ordinate --help` lists the commands.\n")


@pytest.mark.parametrize("page", ["README.md", "docs/overview.md"])
def test_the_metrics_are_counted(page):
    (number,) = re.findall(r"\*\*(\d+) metrics\*\*", (ROOT / page).read_text("utf-8"))
    assert int(number) == len(ordinate.list_metrics())


def test_every_public_name_is_there():
    assert set(ordinate.__all__) <= set(dir(ordinate))
    assert all(getattr(ordinate, name) is not None for name in ordinate.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ordinate.nothing


def test_every_public_function_has_an_example():
    functions = [x for x in (getattr(ordinate, name) for name in ordinate.__all__) if isroutine(x)]
    assert len(functions) > 20
    assert [x.__name__ for x in functions if ">>> " not in (x.__doc__ or "")] == []


def test_the_public_names_are_those_of_the_list():
    build = load_script("build")
    assert list(build.list_public_names()) == build.PUBLIC_NAMES.read_text("utf-8").splitlines()


IMPORTS = re.compile(r"^(?:>>> )?from (ordinate[\w.]*) import (\([^)]*\)|.+)$", re.MULTILINE)


@each_case("page", PAGES)
def test_pages_teach_public_names_only(page):
    listed = load_script("build").PUBLIC_NAMES.read_text("utf-8")
    public = {line.partition("(")[0] for line in listed.splitlines()}
    text = page.read_text("utf-8")
    taught = {f"ordinate.{name}" for name in re.findall(r"\bordinate\.(\w+)\(", text)}
    for package, names in IMPORTS.findall(text):
        taught |= {f"{package}.{name}" for name in re.findall(r"\w+", names)}
    assert taught <= public


def test_every_module_can_be_imported_under_another_name():
    """No package exports a name that one of its modules or packages has."""
    for found in pkgutil.walk_packages(ordinate.__path__, "ordinate."):
        if "__main__" not in found.name:
            parent, _, name = found.name.rpartition(".")
            module = importlib.import_module(found.name)
            assert getattr(importlib.import_module(parent), name) is module, found.name


@pytest.mark.parametrize(
    "name", [*ordinate.PACKAGES, *(f"tuning.{name}" for name in ordinate.tuning.PACKAGES)]
)
def test_packages_are_reached_after_importing_ordinate(name):
    program = f"import ordinate; assert ordinate.{name}.__name__ == 'ordinate.{name}'"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_braces_of_every_formula_balance():
    for metric in ordinate.list_metrics():
        assert metric.formula.count("{") == metric.formula.count("}"), metric.name


@each_case("page", PAGES)
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
    assert of_labels == set(report_parts.METHOD_NAMES)
    assert of_labels | of_regression == set(get_args(IntervalMethod))
    assert of_regression <= set(regression.METHOD_NAMES)
    assert (
        set(get_choices("compare", "--correction"))
        == set(get_args(Correction))
        == set(comparison_report.CORRECTION_NAMES)
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


@each_case("path", [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")])
def test_no_retired_word_comes_back(path):
    text = " ".join(path.read_text("utf-8").lower().split())
    assert not [word for word in RETIRED if word in text]
