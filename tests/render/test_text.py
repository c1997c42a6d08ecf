"""Text: the verdict first, notes last and once, and tables that fit the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from ordinate.render import Document, Grid, find_terminal_width, html, markup, text
from ordinate.render.text import measure_width

WIDE = Grid(
    "Metrics",
    ("metric", "value", "best constant", "majority", "attainable"),
    (("mae", 0.25, "0.750 (always B1)", 1.125, "0.000 to 0.751"),),
    optional=("attainable", "majority"),
)
REPORTS = {
    "text": text.render,
    "markdown": markup.render_markdown,
    "latex": markup.render_latex,
    "html": html.render_piece,
}


def show(grid, width=None):
    return text.render(Document("Title", (grid,)), width)


@pytest.mark.parametrize("form", REPORTS)
def test_every_format_has_the_verdict_first_and_each_note_once_at_the_end(form):
    section = Document("Levels", ("Inner.",), "Second verdict.", ("Drawn twice.", "Shared."))
    document = Document("Title", (WIDE, section, "Last."), "Verdict.", ("Shared.", "Own."))
    report = REPORTS[form](document)
    said = ["Title", "Verdict.", "mae", "Second verdict.", "Inner.", "Last.", "Notes"]
    places = [report.index(text) for text in (*said, "Shared.", "Own.", "Drawn twice.")]
    assert places == sorted(places)
    assert report.count("Shared.") == 1


def test_a_report_without_notes_has_no_head_for_them():
    assert not [
        form for form, render in REPORTS.items() if "Notes" in render(Document("A", ("b",)))
    ]


def test_a_grid_that_fits_is_left_alone():
    assert show(WIDE, 200) == show(WIDE)


def test_secondary_columns_give_a_digit_before_anything_goes():
    wide = max(map(len, show(WIDE).splitlines()))
    report = show(WIDE, wide - 2)
    assert "1.12" in report
    assert "1.125" not in report
    assert "0.00 to 0.75" in report
    assert "0.250" in report
    assert "Not shown" not in report


def test_columns_go_in_the_order_that_the_grid_says_and_are_named():
    report = " ".join(show(WIDE, 45).split())
    assert "0.75 (" not in report
    assert "majority" in report.split("Not shown")[0]
    assert "Not shown at this width: attainable (-o FILE or --format json has" in report
    assert "Not shown at this width: majority, attainable (" in " ".join(show(WIDE, 35).split())


def test_words_are_wrapped_and_numbers_are_not():
    grid = Grid("", ("what", "value"), (("a rather long account of what was found", 0.123),))
    lines = show(grid, 20).splitlines()
    assert lines[6].split()[-1] == "0.123"
    assert " ".join(line.removesuffix("0.123").strip() for line in lines[6:]) == grid.rows[0][0]


def test_what_no_column_may_leave_goes_on_below():
    names = [f"level {k}" for k in range(12)]
    grid = Grid("Matrix", ("gold", *names), tuple((name, *range(12)) for name in names))
    report = show(grid, 40)
    assert report.count("gold") > 1
    assert all(f" {k}" in report for k in range(12))
    assert "Not shown" not in report


WORDS = st.text(st.sampled_from("ab-/_ 0.低e\u0301"), max_size=40)


@given(
    rows=st.lists(st.tuples(WORDS, WORDS, st.floats(), WORDS), max_size=4),
    title=WORDS,
    header=st.tuples(WORDS, WORDS, WORDS, WORDS),
    width=st.integers(40, 120),
    left=st.integers(1, 4),
)
@examples(60)
def test_no_line_is_longer_than_the_width(rows, title, header, width, left):
    grid = Grid(title, header, tuple(rows), left, optional=header[2:3])
    document = Document(title, (grid, title), title * 5, (title * 4,))
    for line in text.render(document, width).splitlines():
        assert measure_width(line) <= width


@pytest.mark.parametrize(("columns", "width"), [("40", 80), ("90", 90), ("300", 300)])
def test_a_terminal_has_at_least_80_columns(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert find_terminal_width() == width


def test_a_page_is_100_wide_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert find_terminal_width() == 100
