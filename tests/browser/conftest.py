"""One Chromium for all tests of pages, and the pages of small results."""

import functools
import shutil
from pathlib import Path

import pytest
from page_browser import PageBrowser
from result_examples import (
    FURTHER_REPORTS,
    MAKERS,
    make_search_results,
)

from ordinate.render import render

AXE = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser without a screen, which is closed at the end."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("Chromium and its driver are not installed: apt-get install chromium-driver")
    opened = PageBrowser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, which looks for what keeps people from using a page."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make build/axe/node_modules")
    return AXE.read_text("utf-8")


@pytest.fixture(scope="session")
def make_page(tmp_path_factory):
    """What writes a result as a page."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name, result):
        path = folder / f"{name.replace(' ', '-')}.html"
        path.write_text(render(result, "html"), "utf-8", errors="replace")
        return path

    return write


@pytest.fixture(scope="session")
def list_pages(make_page, tmp_path_factory):
    """The pages of one maker of results, or of those that are made together."""
    together = {
        "searches": lambda: make_search_results(tmp_path_factory.mktemp("searches")),
    }

    @functools.cache
    def write(name):
        made = together[name]() if name in together else {name: (MAKERS | FURTHER_REPORTS)[name]()}
        return [make_page(title, result) for title, result in made.items()]

    return write
