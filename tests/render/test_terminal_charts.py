"""Drawings on a terminal: bars lie where their values do, shades follow cells, nothing is lost."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal_drawings import COLOUR, erase_drawings, has_drawings

from ordinate.render import Document, Grid, find_drawings, text
from ordinate.render.charts import Axis, Bar, Cell, Chart, Panel, Point, Rule
from ordinate.render.terminal_charts import MOST_BAR, Illustrator

UNIT = Axis("share", low=0.0, high=1.0)
VALUES = st.floats(0.0, 1.0)


def make_forest(*marks, names=("a", "b"), axis=UNIT, **more):
    return Chart("forest", "t", "d", axis, Axis("", "ordered", names), (Panel(marks),), **more)


def make_grid(*names, view=("forest", "")):
    return Grid("Systems", ("system", "value"), tuple((x, 0.5) for x in names), view=view)


def draw(chart, grid, width=100, *, colours=False):
    shown = text.render(
        Document("Title", (grid,)), width, illustrator=Illustrator(lambda: [chart], colours=colours)
    )
    return shown.split("\n\n")[1].splitlines()


def find_bar(lines, name):
    """Return what stands beside a row, in as many columns as there can be."""
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    return line.partition("0.500  ")[2].ljust(MOST_BAR)


@given(VALUES, VALUES, VALUES)
def test_a_bar_lies_where_its_value_and_its_interval_do(value, low, high):
    low, high = sorted((low, high))
    bar = find_bar(draw(make_forest(Point(value, "a", low, high)), make_grid("a", "b")), "a")
    at = min(int((value + 1e-9) * MOST_BAR), MOST_BAR - 1)
    assert bar[at] == "●"
    drawn = [k for k, sign in enumerate(bar) if sign in "━╺╸" or (k == at)]
    assert min(drawn) == min(at, int((low + 1e-9) * MOST_BAR)) or high - low < 1e-6
    assert max(drawn) <= max(at, high * MOST_BAR + 1)
    assert len(bar) == MOST_BAR


def test_intervals_begin_and_end_in_the_middle_of_a_column():
    axis = Axis(low=0.0, high=float(MOST_BAR))
    chart = make_forest(Point(5.2, "a", 2.5, 7.5), axis=axis)
    assert find_bar(draw(chart, make_grid("a")), "a").rstrip() == "  ╺━━●━╸"


def test_what_is_undefined_is_not_drawn():
    nan = float("nan")
    chart = make_forest(Point(nan, "a"), Point(0.5, "b", nan, nan))
    lines = draw(chart, make_grid("a", "b"))
    assert find_bar(lines, "a").isspace()
    assert find_bar(lines, "b").split() == ["●"]


def test_rules_go_across_the_rows_that_have_a_value():
    chart = make_forest(
        Rule(0.25, series="chance"), Point(0.5, "a", series="x"), series=("x", "chance")
    )
    lines = draw(chart, make_grid("a", "(chance)"))
    assert find_bar(lines, "a")[8] == "┆"
    assert find_bar(lines, "(chance)").isspace()
    assert lines[-1] == "● x, ┆ chance"


def test_each_series_has_the_sign_of_its_shape():
    names = tuple("uvwxyz")
    points = [Point(k / 10, "a", series=name) for k, name in enumerate(names)]
    lines = draw(make_forest(*points, series=names), make_grid("a"))
    assert find_bar(lines, "a").split() == [*"●■◆▲○×"]
    assert lines[-1] == "● u, ■ v, ◆ w, ▲ x, ○ y, × z"


def test_panels_of_their_own_are_found_by_their_name():
    panels = (
        Panel(
            (Bar(1.0, "", base=0.0, series="reach"), Point(0.5, "", series="s")),
            "A",
            x=UNIT,
            name="a",
        ),
        Panel((Point(50.0, "", series="s"),), "B", x=Axis(low=0.0, high=100.0), name="b"),
    )
    y = Axis(kind="ordered", levels=("",))
    chart = Chart("forest", "t", "d", Axis(), y, panels, series=("s", "reach"))
    lines = draw(chart, make_grid("a", "b", "c"))
    assert find_bar(lines, "a") == "─" * 16 + "●" + "─" * 15
    assert find_bar(lines, "b").rstrip() == " " * 16 + "●"
    assert find_bar(lines, "c").isspace()
    assert lines[-1] == "● s, ─ reach, each row on an axis of its own"


def test_the_head_has_the_ticks_of_the_axis_at_their_places():
    lines = draw(make_forest(Point(0.5, "a")), make_grid("a"))
    head = lines[2].partition("value  ")[2]
    assert head.split() == ["0.0", "0.5", "1.0"]
    assert head.index("0.5") + 1 == find_bar(lines, "a").index("●")


def test_bars_take_no_room_from_the_table():
    chart = make_forest(Point(0.5, "a"), names=("a",))
    header = ("system", *(f"column {k}" for k in range(9)), "value")
    rows = (("a", *[0.25] * 9, 0.5),)
    grid = Grid("Systems", header, rows, optional=("column 1",), view=("forest", ""))
    drawn = []
    for width in range(80, 160):
        lines = draw(chart, grid, width)
        plain = text.render(Document("Title", (grid,)), width).split("\n\n")[1].splitlines()
        assert all(text.measure_width(line) <= width for line in lines)
        assert "".join(lines).count("0.250") == "".join(plain).count("0.250")
        drawn.append(has_drawings("".join(lines)))
    assert drawn == sorted(drawn)
    assert {*drawn} == {False, True}


# --- shades --------------------------------------------------------------------------------------

LEVELS = ("low", "mid", "total")  # a level may have the name of the totals


def make_matrix(shades):
    axis = Axis("level", "ordered", LEVELS)
    cells = tuple(
        Cell(x, y, shades[i][j]) for i, y in enumerate(LEVELS) for j, x in enumerate(LEVELS)
    )
    chart = Chart("matrix", "t", "d", axis, axis, (Panel(cells),))
    rows = (*((name, 1, 20, 300, 321) for name in LEVELS), ("total", 3, 60, 900, 963))
    header = ("gold", *LEVELS, "total")
    return chart, Grid("Matrix", header, rows, totals=1, view=("matrix", ""))


SHADED = [[0.0, 0.01, 0.25], [0.26, 0.75, 0.76], [1.0, float("nan"), -0.5]]


def test_cells_are_shaded_in_quarters_and_totals_are_not():
    lines = draw(*make_matrix(SHADED))
    assert lines[4:] == [
        "low       1  ░░ 20  ░░ 300    321",
        "mid    ▒▒ 1  ▓▓ 20  ██ 300    321",
        "total  ██ 1     20  ▒▒ 300    321",
        "total     3     60     900    963",
    ]


@pytest.mark.parametrize(("width", "block"), [(38, "▓▓ "), (35, "▓▓"), (32, "▓"), (31, "  ")])
def test_shades_are_as_wide_as_there_is_room_for(width, block):
    chart, grid = make_matrix(SHADED)
    lines = draw(chart, grid, width)
    assert all(text.measure_width(line) <= width for line in lines)
    assert f" {block}20" in lines[5]


def test_another_matrix_is_not_shaded():
    chart, grid = make_matrix(SHADED)
    other = Grid("Matrix", ("gold", "a", "b"), (("low", 1, 2),), view=("matrix", ""))
    assert not has_drawings("".join(draw(chart, other)))
    assert not has_drawings("".join(draw(make_forest(Point(0.5, "a")), grid)))


def test_colours_change_no_letter():
    for chart, grid in (
        make_matrix(SHADED),
        (make_forest(Point(0.5, "a", 0.2, 0.7)), make_grid("a", "b")),
    ):
        plain, coloured = draw(chart, grid), draw(chart, grid, colours=True)
        assert plain != coloured
        assert [COLOUR.sub("", line) for line in coloured] == plain
    assert any("\x1b[38;5;166m▒▒\x1b[39m" in x for x in draw(*make_matrix(SHADED), colours=True))


# --- where drawings are shown --------------------------------------------------------------------


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("settings", "encoding", "drawings"),
    [
        ({"TERM": "xterm-256color"}, "utf-8", "coloured"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "UTF8", "coloured"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "utf-8", "plain"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "utf-8", "coloured"),
        ({"TERM": "xterm"}, "utf-8", "plain"),
        ({}, "utf-8", "plain"),
        ({"TERM": "dumb"}, "utf-8", "none"),
        ({"TERM": "xterm-256color"}, "latin-1", "none"),
        ({"TERM": "xterm-256color"}, "ascii", "none"),
    ],
)
def test_a_terminal_shows_what_it_can(monkeypatch, settings, encoding, drawings):
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert find_drawings(Terminal(io.BytesIO(), encoding=encoding)) == drawings
    assert find_drawings(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) == "none"
    assert find_drawings(io.StringIO()) == "none"


def test_drawings_are_erased_and_words_are_not():
    chart = make_forest(
        Rule(0.25, series="chance"), Point(0.5, "a", series="x"), series=("x", "chance")
    )
    said = text.render(Document("Title", (make_grid("a", "b"),)), 100)
    drawn = "Title\n=====\n\n" + "\n".join(draw(chart, make_grid("a", "b")))
    assert erase_drawings(drawn) != erase_drawings(said)  # the ticks
    assert [x for x in erase_drawings(drawn) if x not in {"0.0", "0.5", "1.0"}] == erase_drawings(
        said
    )
