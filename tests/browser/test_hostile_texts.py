"""Texts from data are shown as texts: none is run, and none breaks the layout."""

import numpy as np
import pytest
from hostile_texts import HOSTILE_TEXTS
from page_browser import PHONE, WIDE

import ordinate
from ordinate.render import svg
from ordinate.results import Evaluation, Origin
from ordinate.summaries import ConfusionMatrix

# Whether the page is wider than the screen, and its parts are not scrolled to.
MEASURE = """
const wide = document.documentElement.scrollWidth > innerWidth;
const outside = [...document.querySelectorAll('main *')].filter((x) => !x.closest('.drawing,.table')
  && x.getBoundingClientRect().right > innerWidth + 1).map((x) => x.outerHTML.slice(0, 200));
return [wide, outside, document.title.length > 200];
"""


def make_evaluation(texts):
    rng = np.random.default_rng(0)
    matrix = ConfusionMatrix.from_counts(rng.integers(1, 9, (len(texts), len(texts))), texts)
    origin = Origin(texts[0], texts[1], tuple(texts), None, tuple(texts))
    return Evaluation.from_summary(matrix, origin=origin, interval=None)


def make_comparison(texts):
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 3, 40).tolist()
    systems = {text: rng.integers(0, 3, 40).tolist() for text in texts}
    return ordinate.compare(gold, systems, [0, 1, 2], metrics="mae,accuracy", resamples=100)


def make_subgroups(texts):
    gold = [0, 1, 2, 1] * len(texts)
    by = [text for text in texts for _ in range(4)]
    return ordinate.evaluate(gold, gold[::-1], [0, 1, 2], by=by, interval=None)


def make_regression(texts):
    rng = np.random.default_rng(2)
    target = rng.normal(size=40)
    models = {text: target + rng.normal(size=40) for text in texts[:5]}
    return ordinate.compare(target=target, systems=models, unit=texts[-1][:200])


PLACES = {
    "labels": make_evaluation,
    "systems": make_comparison,
    "subgroups": make_subgroups,
    "models": make_regression,
}


@pytest.mark.parametrize("place", PLACES)
def test_texts_are_shown_on_a_page_that_runs_none_of_them(place, browser, make_page):
    result = PLACES[place](HOSTILE_TEXTS)
    page = make_page(f"hostile-{place}", result)
    for width in (WIDE, PHONE):
        browser.open(page, width=width)
        assert browser.run(MEASURE) == [False, [], False]
        assert browser.list_messages() == []
        asked = [url for url in browser.list_requests() if not url.startswith("data:")]
        assert asked == [page.as_uri()]
    said = "".join(browser.run("return document.body.textContent").split())
    texts = HOSTILE_TEXTS[:5] if place == "models" else HOSTILE_TEXTS
    for text in texts:
        shown = text.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd")
        assert "".join(shown.split()) in said


@pytest.mark.parametrize("place", PLACES)
def test_drawings_run_nothing_and_keep_their_width(place, browser, tmp_path):
    charts = {chart.name: chart for chart in PLACES[place](HOSTILE_TEXTS).list_charts()}
    for name, chart in charts.items():
        path = tmp_path / f"{name}.svg"
        path.write_text(svg.render(chart), "utf-8", errors="replace")
        browser.open(path)
        assert browser.list_messages() == []
        beyond = browser.run(
            "const right = document.documentElement.getBoundingClientRect().right;"
            "return [...document.querySelectorAll('text')].map((x) => x.getBoundingClientRect())"
            ".filter((box) => box.right > right + 1).length"
        )
        assert beyond == 0, chart.name
