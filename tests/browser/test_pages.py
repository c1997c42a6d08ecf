"""Every report is a page that stands alone, fits every screen, can be used by all, and prints."""

import io
import re
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from page_browser import PHONE, WIDE
from result_examples import FURTHER_REPORTS, MAKERS

import ordinate

SLOW = pytest.mark.slow
HEAVY = {"many levels", "searches"}  # very many cells, and models that are fitted
TOGETHER = ("searches",)
REPORTS = [
    pytest.param(name, marks=SLOW if name in HEAVY else ())
    for name in (*MAKERS, *FURTHER_REPORTS, *TOGETHER)
]
# Of very many cells each is like the others, and axe looks at all of them.
SEARCHED = [
    pytest.param(name, marks=SLOW if name in {*TOGETHER, *FURTHER_REPORTS} else ())
    for name in (*MAKERS, *FURTHER_REPORTS, *TOGETHER)
    if name != "many levels"
]
PRINTED = ("evaluation", "regression", "meta-evaluation")
SERIOUS = {"serious", "critical"}
FIND_VIOLATIONS = """
const only = arguments[0];
return axe.run(document, only.length ? { runOnly: only } : {}).then((found) => found.violations.map(
  (rule) => [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]));
"""
# How many shapes the charts have, and those that are not displayed where their view is.
FIND_UNSEEN = """
const shapes = [...document.querySelectorAll('svg :is(rect,path,circle,text)')]
  .filter((x) => !x.closest('[hidden]'));
const unseen = shapes.filter((x) => !x.checkVisibility({ opacityProperty: true }));
return [shapes.length, unseen.map((x) => x.outerHTML.slice(0, 200))];
"""


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_logs_nothing_asks_for_nothing_and_fits_the_screen(name, browser, list_pages):
    for page in list_pages(name):
        for width in (WIDE, PHONE):
            browser.open(page, width=width)
            assert browser.run("return document.documentElement.scrollWidth") <= width, page
            assert browser.list_messages() == []
            asked = browser.list_requests()
            assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]


SCROLLED = """
return [...document.querySelectorAll('.drawing')].filter((x) => x.offsetParent
  && x.scrollWidth > x.clientWidth).map((x) => x.closest('figure').dataset.name);
"""


@pytest.mark.parametrize("name", ["evaluation", "comparison", "regression", "calibration"])
def test_a_phone_shows_whole_charts_and_leads_to_sections(name, browser, list_pages):
    for page in list_pages(name):
        browser.open(page, width=PHONE)
        assert browser.run(SCROLLED) == [], page
        assert browser.run("return document.querySelector('.top-bar nav a').offsetParent !== null")
        drawn = "return document.querySelector('.drawing svg').viewBox.baseVal.width"
        narrow = browser.run(drawn)
        browser.open(page)
        assert browser.run(drawn) > narrow


TITLES = """
const boxes = [...document.querySelectorAll('.drawing text.strong')]
  .map((x) => [x.getBoundingClientRect(), x.closest('svg').getBoundingClientRect()]);
return boxes.map(([box, whole]) => [box.top, box.left, box.right, whole.right]);
"""


def test_titles_of_panels_neither_touch_nor_leave_the_chart(browser, make_page):
    target = np.linspace(0.0, 100.0, 40)
    metrics = "rmse,median_absolute_error,max_error,relative_accuracy,mae"
    result = ordinate.evaluate_regression(target, target[::-1] + 9.0, metrics)
    browser.open(make_page("long metrics", result))
    titles = sorted(browser.run(TITLES))
    assert len(titles) > 3
    for *_, right, whole in titles:
        assert right <= whole
    for (top, _, right, _), (next_top, left, *_) in pairwise(titles):
        assert next_top > top or left > right + 5


@pytest.mark.parametrize("name", SEARCHED)
def test_axe_finds_nothing_serious(name, browser, list_pages, axe):
    for page in list_pages(name):
        for width in (WIDE, PHONE):
            browser.open(page, width=width)
            browser.run(axe)
            assert find_serious(browser) == [], (page, width)


@pytest.mark.parametrize(
    "name", ["comparison", *(pytest.param(x.values[0], marks=SLOW) for x in SEARCHED)]
)
def test_dark_pages_have_enough_contrast(name, browser, list_pages, axe):
    for page in list_pages(name):
        browser.open(page, theme="dark")
        browser.run(axe)
        assert find_serious(browser, "color-contrast") == [], page


def find_serious(browser, *rules):
    """Return the serious violations of some rules of axe-core, or of all."""
    return [x for x in browser.run(FIND_VIOLATIONS, list(rules)) if x[0] in SERIOUS]


def test_axe_finds_a_fault_where_there_is_one(browser, list_pages, axe):
    (page,) = list_pages("evaluation")
    browser.open(page)
    browser.run(axe)
    browser.run("document.querySelector('select').closest('label').firstChild.remove()")
    assert [x[1] for x in find_serious(browser, "select-name", "label")] == ["select-name"]


@pytest.mark.parametrize("name", ["comparison", *(pytest.param(x, marks=SLOW) for x in PRINTED)])
def test_all_sections_are_printed_and_no_control(name, browser, list_pages):
    pypdf = pytest.importorskip("pypdf")
    for page in list_pages(name):
        browser.open(page, theme="dark")
        shown = browser.run(
            "return [...document.querySelectorAll('h1,h2,h3,caption,.verdict,figcaption p,li')]"
            ".filter((x) => !x.closest('.top-bar,[hidden]')).map((x) => x.textContent)"
        )
        reader = pypdf.PdfReader(io.BytesIO(browser.print_page()))
        printed = "".join(sheet.extract_text() for sheet in reader.pages)
        assert {"Verdict", "Charts", "Tables", "Notes"} <= {*shown}
        assert [text for text in shown if bare(text) not in bare(printed)] == []
        assert "Download" not in printed


@pytest.mark.parametrize("name", ["calibration", *PRINTED])
def test_all_marks_are_printed(name, browser, list_pages):
    for page in list_pages(name):
        browser.open(page)
        browser.call("Emulation.setEmulatedMedia", media="print", features=[])
        marks, unseen = browser.run(FIND_UNSEEN)
        assert marks > 0
        assert unseen == [], page


def bare(text):
    """Return a text without spaces and signs, and with ligatures as letters."""
    return re.sub(r"\W", "", unicodedata.normalize("NFKC", text))
