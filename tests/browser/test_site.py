"""The pages of a site: they work from disk, ask for nothing beyond it, and fit every screen."""

import json
import re

import pytest
from page_browser import PHONE, WIDE
from report_folders import GOLD, SHIFTED, evaluate, save_report

import ordinate
from ordinate.render import Grid
from ordinate.render.html_page import render_document
from ordinate.site import write_site
from ordinate.site.site_folder import LINKS, PAGES
from ordinate.site.wrong_items import describe_wrong_items


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site over evaluations of two days, a comparison, and a file that is no report."""
    home = tmp_path_factory.mktemp("site")
    save_report(evaluate(SHIFTED), home / "reports" / "first.json")
    save_report(evaluate(GOLD[::-1]), home / "reports" / ("long" * 40 + ".json"), 1)
    compared = ordinate.compare(
        GOLD, {"good": SHIFTED, "x" * 150: GOLD}, "cefr", metrics="mae,accuracy", resamples=100
    )
    save_report(compared, home / "reports" / "second.html", 2)
    (home / "reports" / "broken.json").write_text('{"schema": 1')
    write_site(home / "reports", home / "site")
    return home / "site"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_a_site_logs_nothing_stays_in_it_and_fits_the_screen(name, browser, site):
    for width in (WIDE, PHONE):
        browser.open(site / name, width=width)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.list_messages() == []
        asked = {url for url in browser.list_requests() if not url.startswith("data:")}
        assert (site / name).as_uri() in {url.partition("#")[0] for url in asked}
        assert {url for url in asked if not url.startswith(site.as_uri())} == set()


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_in_a_site(name, browser, site, axe):
    for width in (WIDE, PHONE):
        browser.open(site / name, width=width)
        browser.run(axe)
        found = browser.run(
            "return axe.run(document, { iframes: false }).then((x) => x.violations.map("
            "(rule) => [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html)]))"
        )
        assert [x for x in found if x[0] in {"serious", "critical"}] == [], width


CHOOSE = """
const select = document.getElementById(arguments[0]);
select.value = arguments[1];
select.dispatchEvent(new Event('change'));
"""


READ = """
return [[...document.querySelectorAll('#differences tbody tr')].map((row) =>
  [...row.cells].map((cell) => cell.textContent)), location.hash,
  [...document.querySelectorAll('iframe')].map((frame) => frame.getAttribute('src'))];
"""


def test_texts_of_items_take_the_room_that_there_is(browser, tmp_path):
    row = ("essay 1", "word " * 380, "A1 0.90, B1 0.10", "B1", "A1", 2, 0.1)
    head = ("item", "text", "probabilities", "gold", "predicted", "levels off", "p of gold")
    document = describe_wrong_items([Grid("Wrong", head, (row,), left=5)], ())
    path = tmp_path / "items.html"
    path.write_text(render_document(document, [], links=LINKS))
    browser.open(path, width=WIDE)
    width, hidden = browser.run(
        "const text = document.querySelector('td .long');"
        "return [text.clientWidth, text.scrollHeight - text.clientHeight]"
    )
    assert width > WIDE / 2
    assert hidden <= 1
    browser.open(path, width=PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize(
    ("metric", "first", "second", "shown"),
    [
        ("kendall_tau_b", 0.64, 0.64 + 2e-15, ["0.640", "0.640", "0.000", "equal"]),
        ("bias", 0, 0, ["0.000", "0.000", "0.000", "equal"]),
        ("bias", 0, 1e-17, ["0.000", "0.000", "0.000", "equal"]),
        ("rmse", 2e-10, 4e-10, ["0.000", "0.000", "+0.000", "worse"]),
    ],
)
def test_rounding_makes_no_report_better(browser, site, metric, first, second, shown):
    """Of one system, `evaluate` and `compare` may differ in the last digit, whatever the unit."""
    page = (site / "compare.html").read_text()
    found = re.search(r'(<script[^>]*id="reports"[^>]*>)(.*?)(</script>)', page, re.DOTALL)
    listed = json.loads(found[2])
    direction = ordinate.metrics.find_metric(metric).direction
    value = {"system": "s", "metric": metric, "direction": direction, "data": "d"}
    values = [value | {"value": x, "low": None, "high": None} for x in (first, second)]
    two = [listed[k] | {"values": [values[k]]} for k in range(2)]
    changed = page.replace(found[2], json.dumps(two))
    (site / "near.html").write_text(changed)
    browser.open(site / "near.html")
    assert browser.run(READ)[0] == [[metric, "s", *shown]]


def test_two_reports_are_chosen_compared_and_shown(browser, site):
    browser.open(site / "compare.html")
    listed = json.loads(browser.run("return document.querySelector('#reports').textContent"))
    paths = [report["path"] for report in listed]
    first, second = paths.index("first.json"), paths.index("long" * 40 + ".json")
    for name, k in (("first", first), ("second", second)):
        browser.run(CHOOSE, name, str(k))
    rows, address, frames = browser.run(READ)
    values = [{x["metric"]: x["value"] for x in listed[k]["values"]} for k in (first, second)]
    assert len(rows) == len(values[0])
    for metric, _, before, after, difference, side in rows:
        expected = [x[metric] for x in values]
        assert float(before.split(" ")[0]) == pytest.approx(expected[0], abs=5e-4)
        assert float(after.split(" ")[0]) == pytest.approx(expected[1], abs=5e-4)
        assert float(difference) == pytest.approx(expected[1] - expected[0], abs=5e-4)
        assert side == "worse"
    assert frames == [listed[first]["page"], listed[second]["page"]]
    assert address == f"#{listed[first]['id']},{listed[second]['id']}"
    titles = []
    for k in range(2):
        browser.driver.switch_to.frame(k)
        titles.append(browser.run("return document.querySelector('h1').textContent"))
        browser.driver.switch_to.default_content()
    assert titles == ["60 items on A1 < A2 < B1 < B2 < C1 < C2"] * 2
    assert browser.list_messages() == []
