"""Every report is a page that stands alone, fits every screen, can be used by all, and prints."""

import io
import re
import unicodedata

import pytest
from page_browser import PHONE
from result_examples import FURTHER_REPORTS, MAKERS

REPORTS = [*MAKERS, *FURTHER_REPORTS, "searches", "replication"]
EVERY_REPORT = pytest.mark.parametrize("name", REPORTS)
SERIOUS = {"serious", "critical"}
FIND_VIOLATIONS = """
const only = arguments[0];
return axe.run(document, only ? { runOnly: only } : {}).then((found) => found.violations.map(
  (rule) => [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]));
"""


@EVERY_REPORT
def test_a_page_logs_nothing_asks_for_nothing_and_fits_the_screen(name, browser, list_pages):
    for page in list_pages(name):
        for width in (1280, PHONE):
            browser.open(page, width=width)
            assert browser.run("return document.documentElement.scrollWidth") <= width, page
            assert browser.list_messages() == []
            asked = browser.list_requests()
            assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]


# Of very many cells each is like the others, and axe looks at all of them.
@pytest.mark.parametrize("name", [name for name in REPORTS if name != "many levels"])
def test_axe_finds_nothing_serious_in_light_and_in_dark(name, browser, list_pages, axe):
    for page in list_pages(name):
        browser.open(page)
        browser.run(axe)
        found = browser.run(FIND_VIOLATIONS, None)
        browser.set_theme("dark")
        found += browser.run(FIND_VIOLATIONS, ["color-contrast"])
        assert [x for x in found if x[0] in SERIOUS] == [], page


def test_axe_finds_a_fault_where_there_is_one(browser, list_pages, axe):
    (page,) = list_pages("evaluation")
    browser.open(page)
    browser.run(axe)
    browser.run("document.querySelector('select').closest('label').firstChild.remove()")
    assert SERIOUS & {x[0] for x in browser.run(FIND_VIOLATIONS, None)}


@pytest.mark.parametrize("name", ["evaluation", "comparison", "regression", "meta-evaluation"])
def test_all_sections_are_printed_and_no_control(name, browser, list_pages):
    pypdf = pytest.importorskip("pypdf")
    for page in list_pages(name):
        browser.open(page, theme="dark")
        shown = browser.run(
            "return [...document.querySelectorAll('h1,h2,h3,caption,.verdict,figcaption p,li')]"
            ".filter((x) => !x.closest('.bar,#what-if,[hidden]')).map((x) => x.textContent)"
        )
        reader = pypdf.PdfReader(io.BytesIO(browser.print_page()))
        printed = "".join(sheet.extract_text() for sheet in reader.pages)
        assert {"Verdict", "Charts", "Tables", "Notes"} <= {*shown}
        assert [text for text in shown if bare(text) not in bare(printed)] == []
        assert "Download" not in printed


def bare(text):
    """Return a text without spaces and signs, and with ligatures as letters."""
    return re.sub(r"\W", "", unicodedata.normalize("NFKC", text))
