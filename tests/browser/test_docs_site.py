"""The site of the documentation builds without a warning, has no dead link, needs no network."""

import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from filelock import FileLock
from page_browser import PHONE, WIDE

import ordinate
from ordinate.metrics import SUMMARY_TYPES, get_summary_type, list_metrics

ROOT = Path(__file__).parents[2]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
EXTERNAL = re.compile(r"^(https?:)?//")
PAGES = ("index.html", "metrics/labels/quadratic_kappa.html", "api/results.html", "changes.html")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built once for all processes of the tests."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder = shared / "docs-site"
    with FileLock(shared / "docs-site.lock"):
        if not (folder / "search").exists():  # which is written last
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder]
            quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
            ran = subprocess.run(
                command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, ran.stderr
            assert "WARNING" not in ran.stderr
    return folder


class Page(HTMLParser):
    """The ids of a page, what it links to and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.classes = {""}, set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id") or found.get("name") or "")
        self.classes.update((found.get("class") or "").split())
        if tag == "a" and found.get("href") is not None:
            self.links.add(found["href"])
        if tag in LOADS and found.get(LOADS[tag]):
            self.loaded.add(found[LOADS[tag]])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def list_dead_links(pages):
    """Yield the links within the site that lead to no page, or to no place on it."""
    for path, page in pages.items():
        for link in page.links | page.loaded:
            if re.match(r"\w+:", link):
                continue
            place, _, anchor = link.partition("#")
            target = (path.parent / unquote(place)).resolve() if place else path
            ids = pages[target].ids if target in pages else {""}
            if not target.is_file() or unquote(anchor) not in ids:
                yield f"{path.name}: {link}"


def test_no_internal_link_is_dead(pages):
    assert len(pages) > 150
    assert sum(len(page.links) for page in pages.values()) > 5000
    assert list(list_dead_links(pages)) == []


def test_a_dead_link_is_found(pages, site):
    page = Page(site / "stability.html")
    page.links = {"metrics.html#notation", "metrics.html#nothing", "nothing.html", "#nothing"}
    found = list(list_dead_links(pages | {site / "stability.html": page}))
    assert sorted(found) == [
        "stability.html: #nothing",
        "stability.html: metrics.html#nothing",
        "stability.html: nothing.html",
    ]


def test_nothing_is_loaded_from_elsewhere(pages, site):
    for path, page in pages.items():
        assert [one for one in page.loaded if EXTERNAL.match(one)] == [], path
        assert "mermaid" not in page.classes, path  # for which the theme would load a script
    for path in site.rglob("*.css"):
        style = path.read_text("utf-8")
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style), path
    own = ROOT / "docs" / "assets"
    for path in (site / "assets").glob("*.js"):
        assert (own / path.name).exists()
        assert "http" not in path.read_text("utf-8"), path


def test_search_knows_every_metric_and_works_from_disk(site):
    text = (site / "search" / "search_index.js").read_text("utf-8")
    found = json.loads(text.removeprefix("var __index = "))["docs"]
    titles = {doc["location"]: doc["title"] for doc in found}
    assert "quadratic_kappa" in titles["metrics/labels/quadratic_kappa.html"]
    for kind in SUMMARY_TYPES:
        for metric in list_metrics(get_summary_type(kind)):
            assert f"metrics/{kind}/{metric.name}.html" in titles


def test_formulas_are_mathml(pages, site):
    for kind in SUMMARY_TYPES:
        for path in (site / "metrics" / kind).glob("*.html"):
            text = path.read_text("utf-8")
            assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text, path
            assert "merror" not in text, path
    assert not [path for path, page in pages.items() if "arithmatex" in page.classes]


def test_every_public_name_is_described(pages, site):
    described = pages[site / "api" / "index.html"].ids
    names = {name for name in dir(ordinate) if not name.startswith("__")} - {*ordinate.PACKAGES}
    assert {"scorer", "evaluate"} <= names
    assert {f"ordinate.{name}" for name in names} <= described


def test_signatures_say_what_may_be_chosen(site):
    shown = re.sub(r"<[^>]+>", "", (site / "api" / "index.html").read_text("utf-8"))
    assert 'levels: Literal["names", "order", "numbers"],' in html.unescape(shown)
    assert "Annotated[" not in shown


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_beyond_the_site_and_fits_the_screen(name, browser, site):
    for width in (WIDE, PHONE):
        browser.open(site / name, width=width)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.list_messages() == []
        asked = {url for url in browser.list_requests() if not url.startswith("data:")}
        assert {url for url in asked if not url.startswith(site.as_uri())} == set()


def test_the_first_page_is_one_screen(browser, site):
    browser.open(site / "index.html")
    assert browser.run("return document.documentElement.scrollHeight") <= 900


def test_a_hundred_columns_of_output_are_not_cut(browser, site):
    browser.open(site / "compare.html")
    widths = "return [...document.querySelectorAll('pre > code')].map((x) => %s)"
    shown = browser.run(widths % "x.textContent.split('\\n').every((y) => y.length <= 100)")
    cut = browser.run(widths % "x.scrollWidth > x.clientWidth")
    assert True in shown
    assert not [1 for fits, overflows in zip(shown, cut, strict=True) if fits and overflows]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(name, theme, browser, site, axe):
    browser.open(site / name, theme=theme)
    browser.run(axe)
    found = browser.run(
        "return axe.run(document, { iframes: false }).then((x) => x.violations.map("
        "(rule) => [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html)]))"
    )
    assert [x for x in found if x[0] in {"serious", "critical"}] == []


SEARCH = """
const found = arguments[arguments.length - 1];
const input = document.querySelector('[data-md-component=search-query]');
input.focus();
input.value = arguments[0];
input.dispatchEvent(new Event('input', { bubbles: true }));
input.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true }));
const look = () => {
  const first = document.querySelector('.md-search-result__link');
  first ? found(first.href) : setTimeout(look, 50);
};
look();
"""


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("quadratic_kappa", "metrics/labels/quadratic_kappa.html"),
        ("install", "first-steps.html"),
        ("spark", "tables.html"),
        ("license", "license.html"),
        ("changelog", "changes.html"),
        ("kappa", "metrics"),
        ("excel", "files.html"),
    ],
)
def test_search_finds_first_what_people_look_for(words, page, browser, site):
    browser.open(site / "index.html")
    found = browser.driver.execute_async_script(SEARCH, words)
    assert found.startswith(f"{site.as_uri()}/{page}")


def test_the_site_has_pages_and_what_they_need_alone(site):
    assert not [x for x in site.rglob("*") if x.suffix in {".py", ".pyc", ".txt"}]


def test_metric_names_stay_whole_in_narrow_tables(browser, site):
    browser.open(site / "studies" / "verdicts.html", width=PHONE)
    lines = "return [...document.querySelectorAll('td > code, th > code')].map((x) => %s)"
    assert {1} == {*browser.run(lines % "x.getClientRects().length")}


def test_a_formula_is_drawn(browser, site):
    browser.open(site / "metrics" / "labels" / "quadratic_kappa.html")
    height = "return document.querySelector('math mfrac').getBoundingClientRect().height"
    assert browser.run(height) > 20


COPY = """
const copied = [];
document.addEventListener('copy', (event) => copied.push(event.target.value));
const blocks = [...document.querySelectorAll('pre')].filter((block) => block.querySelector('.gp'));
blocks.forEach((block) => block.querySelector('[data-clipboard-target]').click());
copied;
"""
SESSIONS = (
    "index.html",
    "integrations.html",  # which shows an error, too
    "metrics/labels/quadratic_kappa.html",
    "api/integrations.pytest.html",
)


@pytest.mark.parametrize("name", SESSIONS)
def test_what_is_copied_of_an_example_is_its_code(name, browser, site):
    browser.open(site / name)
    ran = browser.call("Runtime.evaluate", expression=COPY, userGesture=True, returnByValue=True)
    copied = ran["result"]["value"]
    assert copied
    assert len(copied) == (site / name).read_text("utf-8").count("<code data-copy=")
    for code in copied:
        compile(code, name, "exec")


def test_every_example_has_its_code_to_copy(pages):
    for path in pages:
        text = path.read_text("utf-8")
        assert "BLANKLINE" not in text, path
        blocks = re.findall(r"<code([^>]*)>([^\n]*)", text)
        shown = [found for found, start in blocks if "&gt;&gt;&gt; " in start]
        assert all("data-copy=" in found for found in shown), path
