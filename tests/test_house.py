"""What the project says of itself is true."""

import importlib.util
import pkgutil
import re
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest

import ordinate
from ordinate.cli import compare, evaluate, options
from ordinate.evaluate import describe, leaderboard
from ordinate.evaluate.boards import Correction
from ordinate.inference.intervals import Method
from ordinate.report import RENDERERS

ROOT = Path(__file__).parent.parent
FITS = re.compile("<!-- output of: ordinate (tune|surrogate) ")
FITTING = ("numpy", "scipy", "scikit-learn", "lightgbm", "optuna", "torch")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _build():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(text: str) -> list[str]:
    """Return words, hashes without their digits: these change with the last digit of a feature."""
    return re.sub(r"-[0-9a-f]{12}\b", "-hash", re.sub(r"-\s+", "-", text)).split()


def test_the_architecture_lists_every_module():
    listed = re.findall(
        r"^\| `([\w.]+)` \|", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE
    )
    modules = [m.name for m in pkgutil.walk_packages(ordinate.__path__, "ordinate.")]
    assert sorted(listed) == sorted({"ordinate", *modules} - {m for m in modules if "__" in m})


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


def test_the_readme_shows_a_report():
    assert "ordinate evaluate" in (ROOT / "README.md").read_text("utf-8").split("```text\n")[0]
    assert "best constant" in (ROOT / "README.md").read_text("utf-8").split("```text\n")[1]


def test_the_reference_is_generated_from_the_catalogue():
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    assert _words(page) == _words(_build().reference())


def test_the_readme_counts_the_metrics():
    (number,) = re.findall(r"\*\*(\d+) metrics\*\*", (ROOT / "README.md").read_text("utf-8"))
    assert int(number) == len(ordinate.metrics())


def test_every_public_name_is_there():
    assert set(ordinate.__all__) <= set(dir(ordinate))
    assert all(getattr(ordinate, name) is not None for name in ordinate.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ordinate.nothing


def test_public_functions_win_over_the_folders_of_the_same_name():
    import ordinate.evaluate
    import ordinate.metrics

    assert callable(ordinate.evaluate)
    assert len(ordinate.metrics()) > 50


def test_the_braces_of_every_formula_balance():
    for metric in ordinate.metrics():
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


def test_what_can_be_asked_for_is_listed_the_same_everywhere():
    assert set(evaluate.METHODS) == set(get_args(Method)) == set(describe.METHODS)
    assert set(compare.CORRECTIONS) == set(get_args(Correction)) == set(leaderboard.CORRECTED)
    assert set(options.FORMATS) == set(RENDERERS)
