"""Variants of a page wait compressed; what is unpacked is what was written."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ordinate
from ordinate.metrics import list_metrics
from ordinate.render import render
from ordinate.render.html import render_variants
from ordinate.render.html_tokens import PACKED, unpack_variants
from ordinate.render.svg import escape_text

ELEMENTS = {"mae": "<p>0.1</p>", "bias(a=1)": "<p>é 0.2</p>", "<i>": "<p>0.3</p>"}
LARGEST_EVALUATION = 250_000  # bytes
LARGEST_COMPARISON = 3_000_000  # of 50 systems by 20 metrics


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


def disturb(board, metric, rng):
    """Return a leaderboard as one by another metric: with names in another order, other numbers."""
    systems = [standing.system for standing in board.standings]
    names = dict(zip(systems, rng.permutation(systems).tolist(), strict=True))

    def move(one, *fields):
        return {name: getattr(one, name) + rng.normal(0, 0.01) for name in fields}

    return replace(
        board,
        metric=metric,
        standings=tuple(
            replace(
                x,
                system=names[x.system],
                estimate=replace(x.estimate, **move(x.estimate, "value", "low", "high")),
            )
            for x in board.standings
        ),
        pairs=tuple(
            replace(
                x,
                first=names[x.first],
                second=names[x.second],
                p=rng.random(),
                p_adjusted=rng.random(),
                **move(x, "difference", "low", "high"),
            )
            for x in board.pairs
        ),
    )


@pytest.mark.slow
def test_the_page_of_50_systems_20_metrics_and_12_levels_is_not_too_large():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 12, 300)
    systems = {
        f"system {k}": np.clip(np.rint(gold + rng.normal(0, 0.5 + k / 20, 300)), 0, 11)
        for k in range(50)
    }
    found = ordinate.compare(gold, systems, range(12), metrics="mae", resamples=100)
    board = found.leaderboards["mae"]
    metrics = [x for x in list_metrics() if not x.required][:20]
    boards = {x.expression: disturb(board, x, rng) for x in metrics}
    page = render(replace(found, leaderboards=boards), "html")
    assert len(boards) == 20
    assert len(page.encode()) < LARGEST_COMPARISON


def test_variants_of_a_whole_page_are_unpacked_up_to_a_size(monkeypatch):
    page = "\n".join(render_variants(ELEMENTS, "metric", {}) for _ in range(9))
    monkeypatch.setattr("ordinate.render.html_tokens.MOST_UNPACKED", 200)
    assert 0 < len(PACKED.findall(unpack_variants(page))) < 9
