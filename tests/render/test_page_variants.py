"""Variants of a page wait compressed; what is unpacked is what was written."""

import re

import ordinate
from ordinate.render import render
from ordinate.render.html import escape_text
from ordinate.render.page_variants import PACKED, render_variants, unpack_variants

ELEMENTS = {"mae": "<p>0.1</p>", "bias(a=1)": "<p>é 0.2</p>", "<i>": "<p>0.3</p>"}
LARGEST_EVALUATION = 250_000  # bytes


def test_the_first_variant_stands_in_the_page_and_the_others_are_unpacked():
    page = render_variants(ELEMENTS, "metric", {"metric": [*ELEMENTS]})
    assert [x for x in ELEMENTS.values() if x in page] == ["<p>0.1</p>"]
    unpacked = unpack_variants(page)
    assert [x for x in ELEMENTS.values() if x in unpacked] == [*ELEMENTS.values()]
    assert re.findall('data-variant="(.*?)"', unpacked) == [*map(escape_text, ELEMENTS)]


def test_what_cannot_be_unpacked_is_left_as_it_is():
    page = render_variants(ELEMENTS, "metric", {})
    (packed,) = PACKED.findall(page)
    for broken in ("", "AAAA", packed[:-8], packed[:20] + "A" * 8 + packed[28:]):
        changed = page.replace(packed, broken)
        assert unpack_variants(changed) == changed


def test_variants_follow_the_choice_of_the_page_or_have_one_of_their_own():
    shared = render_variants(ELEMENTS, "test set", {"test set": [*ELEMENTS, "more"]})
    assert 'data-follows="test set"' in shared
    assert "<select" not in shared
    own = render_variants(ELEMENTS, "test set", {"metric": [*ELEMENTS]})
    assert "Test set <select" in own
    assert "data-follows" not in own
    assert render_variants({"mae": "<p>1</p>"}, "metric", {}) == "<p>1</p>"


def test_a_page_has_every_chart_and_every_verdict_once_it_is_unpacked():
    levels = ["A1", "A2", "B1", "B2", "C1", "C2"] * 40
    result = ordinate.evaluate(levels, levels[1:] + levels[:1], "cefr", by=["a", "b"] * 120)
    page = render(result, "html")
    unpacked = unpack_variants(page)
    for chart in result.list_charts():
        assert f"<h3>{escape_text(chart.title)}</h3>" in unpacked
    for verdict in result.document().verdicts.values():
        assert escape_text(verdict) in unpacked
    assert len(page.encode()) < LARGEST_EVALUATION


def test_variants_of_a_whole_page_are_unpacked_up_to_a_size(monkeypatch):
    page = "\n".join(render_variants(ELEMENTS, "metric", {}) for _ in range(9))
    monkeypatch.setattr("ordinate.render.page_variants.MOST_UNPACKED", 200)
    assert 0 < len(PACKED.findall(unpack_variants(page))) < 9
