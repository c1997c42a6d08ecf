"""What people do on a page: choose, point, press keys, sort, filter, download."""

import csv
import io
import time
from xml.etree import ElementTree as ET

import pytest
from hostile_texts import EXACT_TEXTS

import ordinate
from ordinate.examples import locate_example

SYSTEMS = ("tfidf", "forest", "transformer", "ensemble")
SVG = {"svg": "http://www.w3.org/2000/svg"}
SHOWN = """
const texts = (selector) => [...document.querySelectorAll(selector)]
  .filter((x) => x.offsetParent !== null).map((x) => x.textContent.trim());
"""
CHOOSE = """
const [kind, name, done] = arguments;
const select = document.querySelector(`select[data-chooses="${kind}"]`);
select.value = name;
select.dispatchEvent(new Event('change'));
setTimeout(done, 400);
"""


@pytest.fixture(scope="module")
def comparison(make_page):
    with locate_example("systems").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    systems = {name: [row[name] for row in rows] for name in SYSTEMS}
    gold = [row["gold"] for row in rows]
    result = ordinate.compare(gold, systems, "cefr", metrics="cem_ord,mae,f1_macro", resamples=200)
    return result, make_page("systems", result)


@pytest.fixture(scope="module")
def evaluation(make_page):
    with locate_example("cefr").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ([row[name] for row in rows] for name in ("gold", "predicted"))
    result = ordinate.evaluate(*columns, "cefr", interval=None, by=[row["task"] for row in rows])
    return result, make_page("cefr", result)


@pytest.fixture
def choose(browser):
    return lambda kind, name: browser.driver.execute_async_script(CHOOSE, kind, name)


def test_another_metric_changes_sentence_leaderboard_pairs_and_tables(browser, comparison, choose):
    result, page = comparison
    browser.open(page)
    for metric in ("mae", "f1_macro", "cem_ord"):
        choose("metric", metric)
        verdict = browser.run(SHOWN + "return texts('.verdict')")
        assert verdict == [result.document().verdicts[metric]]
        about = result.leaderboards[metric].metric.title
        assert browser.run(SHOWN + "return texts('.about')") == [f"{metric}: {about}"]
        titles = browser.run(SHOWN + "return texts('.views h3')")
        expected = [x.title for x in result.list_charts() if x.variant in {"", metric}]
        assert titles == expected
        captions = browser.run(SHOWN + "return texts('caption')")
        assert sum(f" {metric} " in caption for caption in captions) == 2
        drawn = browser.run(
            "return [...document.querySelectorAll('svg text')].filter("
            "(x) => x.closest('[hidden]') === null).map((x) => x.textContent)"
        )
        board = result.get_chart("leaderboard", metric)
        assert {*board.y.levels, board.x.title} <= {*drawn}
    assert browser.list_messages() == []


def test_another_metric_changes_the_heat_map_of_an_evaluation(browser, evaluation, choose):
    result, page = evaluation
    browser.open(page)
    for metric in ("mae", "accuracy"):
        choose("metric", metric)
        cells = browser.run(
            SHOWN + "return [...document.querySelectorAll('figure[data-name^=cell_costs]')]"
            ".filter((x) => x.offsetParent).map((x) => [x.dataset.name, "
            "...[...x.querySelectorAll('.mark text')].map((y) => y.textContent)])"
        )
        marks = result.get_chart("cell_costs", metric).list_marks()
        assert cells == [[f"cell_costs-{metric}", *(x.text for x in marks if x.text)]]
        assert browser.run(SHOWN + "return texts('.verdict')")[0].startswith(f"{metric} ")


@pytest.mark.slow
def test_test_sets_and_features_are_chosen_by_their_own_name(browser, list_pages, choose):
    pages = {page.stem: page for page in list_pages("searches")}
    browser.open(pages["ranking"])
    assert browser.run(SHOWN + "return texts('.chooser')") == ["Test set othertest"]
    choose("test set", "test")
    titles = browser.run(SHOWN + "return texts('.views h3')")
    assert titles
    assert all(title.startswith("test: ") for title in titles)


def test_a_table_is_sorted_by_keyboard(browser, evaluation):
    browser.open(evaluation[1])
    read = (
        "const table = document.querySelector('#tables table');"
        "return [table.tHead.rows[0].cells[2].getAttribute('aria-sort'),"
        "[...table.tBodies[0].rows].map((row) => row.cells[2].textContent)]"
    )
    _, original = browser.run(read)
    browser.run("document.querySelectorAll('#tables table .sort')[1].focus()")
    browser.press("TAB", "ENTER")
    order, rising = browser.run(read)
    assert order == "ascending"
    assert rising == sorted(original, key=float)
    browser.press("SPACE")
    assert browser.run(read) == ["descending", sorted(original, key=float, reverse=True)]
    browser.press("ENTER")
    assert browser.run(read) == ["none", original]


def test_rows_are_filtered(browser, evaluation):
    browser.open(evaluation[1])
    browser.run("document.querySelector('input[type=search]').focus()")
    browser.press(*"KAPPA".lower())
    rows = browser.run(
        "return [...document.querySelector('#tables table').tBodies[0].rows]"
        ".filter((row) => row.offsetParent).map((row) => row.cells[0].textContent)"
    )
    assert rows == ["quadratic_kappa", "linear_kappa"]
    status = browser.run(
        "return document.querySelector('#tables .tools [role=status]').textContent"
    )
    assert status == "2 of 12 rows"


def download(browser, label):
    """Press the button of a label, and return the file that it makes."""
    before = {*browser.downloads.iterdir()}
    browser.run("document.querySelector(`[aria-label^='${arguments[0]}']`).click()", label)
    for _ in range(200):
        made = {x for x in browser.downloads.iterdir() if x.suffix in {".csv", ".svg"}} - before
        if made and all(x.stat().st_size for x in made):
            return made.pop().read_bytes().decode()
        time.sleep(0.05)
    raise AssertionError(f"{label} made no file")


def test_a_table_is_downloaded_as_csv_and_a_chart_as_svg(browser, evaluation):
    result, page = evaluation
    browser.open(page)
    rows = list(csv.reader(io.StringIO(download(browser, "Download CSV: Metrics"))))
    assert [row[0] for row in rows] == ["metric", *result.metrics]
    shown = browser.run(
        "return [...document.querySelector('#tables table').rows]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
    )
    assert rows == shown  # no number below 0 is taken for a formula
    assert any(cell.startswith("-") for row in rows for cell in row)
    source = download(browser, "Download SVG: Confusion matrix")
    drawing = ET.fromstring(source)  # noqa: S314 - of our own making
    texts = [x.text for x in drawing.iterfind(".//svg:g[@class='mark']/svg:text", SVG)]
    marks = result.get_chart("confusion").list_marks()
    assert texts == [mark.text for mark in marks]
    assert ".ordinate-chart" in source
    titles = [x.text for x in drawing.iterfind(".//svg:title", SVG)]
    assert titles[0] == "Confusion matrix"
    assert titles[1:] == [mark.detail for mark in marks]


def test_counts_and_shares_are_shown_by_pointer_and_by_keyboard(browser, evaluation):
    result, page = evaluation
    browser.open(page)
    marks = result.get_chart("confusion").list_marks()
    tip = "const tip = document.querySelector('.tip'); return tip.hidden ? null : tip.textContent"
    cell = "document.querySelectorAll('figure[data-name=confusion] .mark')[7]"
    assert browser.run(tip) is None
    browser.run(f"{cell}.dispatchEvent(new PointerEvent('pointerover', {{ bubbles: true }}))")
    assert browser.run(tip) == marks[7].detail
    browser.run("document.querySelector('figure[data-name=confusion] .mark').focus()")
    assert browser.run(tip) == marks[0].detail
    browser.press("ARROW_DOWN", "ARROW_RIGHT")
    assert browser.run(tip) == marks[7].detail
    assert "items" in marks[7].detail
    assert "% of gold" in marks[7].detail
    browser.press("ESCAPE")
    assert browser.run(tip) is None


def test_the_page_is_dark_where_dark_is_preferred_and_where_it_is_chosen(browser, evaluation):
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.open(evaluation[1], theme="light")
    light = browser.run(paper)
    browser.set_theme("dark")
    dark = browser.run(paper)
    assert light != dark
    browser.run("document.querySelector('#theme').click()")
    assert browser.run(paper) == light
    browser.open(evaluation[1], theme="light")
    browser.run("document.querySelector('#theme').click()")
    assert browser.run(paper) == dark


def test_a_table_is_downloaded_as_it_is_shown(browser, evaluation):
    browser.open(evaluation[1])
    texts = [x for x in EXACT_TEXTS if x == x.strip()]
    browser.run(
        "const table = [...document.querySelectorAll('table')]"
        ".find((x) => x.caption?.textContent === 'Subgroups');"
        "const row = table.tBodies[0].rows[0];"
        "table.tBodies[0].replaceChildren(...arguments[0].map((text) => {"
        "  const copy = row.cloneNode(true); copy.cells[0].textContent = text; return copy; }))",
        texts,
    )
    rows = list(csv.reader(io.StringIO(download(browser, "Download CSV: Subgroups"))))[1:]
    assert [row[0] for row in rows] == texts
