"""Charts drawn by matplotlib: the artists have the data of the chart, text is text."""

import math
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from drawn_charts import compare_with_chart
from hostile_texts import HOSTILE_TEXTS
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from text_contrast import compute_contrast

import ordinate
from ordinate.errors import BadOption, BadOutput, MissingExtra
from ordinate.render.charts import (
    COLOURS,
    Axis,
    Bar,
    Cell,
    Chart,
    Line,
    Panel,
    Point,
    Rule,
    Text,
    shorten_label,
)
from ordinate.render.matplotlib_charts import SHADES, draw

LEVELS = ("low", "mid", "high")
ORDERED = Axis("level", "ordered", LEVELS)
NAN = math.nan
MARKS = {
    "cells": ((Cell("low", "mid", 0.5, "5"), Cell("high", "low", -1.0, "-9")), ORDERED, ORDERED),
    "cells without a value": ((Cell("low", "mid", NAN), Cell("mid", "mid", 1)), ORDERED, ORDERED),
    "bars": ((Bar("low", 0.5), Bar("high", -0.2, base=0.1)), ORDERED, Axis("share")),
    "bars along x": ((Bar(0.5, "low"), Bar(2.0, "high", series="b")), Axis(unit="m"), ORDERED),
    "bars of a width": ((Bar(1.5, 3.0, width=0.5), Bar(2.0, 1.0, width=0.5)), Axis(), Axis()),
    "undefined bars": ((Bar(NAN, "low"), Bar(1.0, "mid", base=NAN)), Axis(), ORDERED),
    "points": ((Point(0.5, "low", 0.4, 0.7), Point(0.1, "mid", series="b")), Axis(), ORDERED),
    # An interval of resamples need not hold its value.
    "points beside intervals": ((Point(0.5, "low", 0.6, 0.7),), Axis(), ORDERED),
    "points upright": ((Point("mid", 2.0, 1.0, 4.0), Point("low", NAN)), ORDERED, Axis()),
    "points of numbers": ((Point(10.0, 2.0, 1.0, 4.0, "b"),), Axis(kind="log"), Axis()),
    "lines": (
        (
            Line((0.0, 1.0, 2.0), (0.0, NAN, 3.0), (0.0, NAN, 2.0), (1.0, 2.0, 4.0)),
            Line((0.0, 2.0), (1.0, 1.0), series="b"),
        ),
        Axis(),
        Axis(),
    ),
    "lines over levels": ((Line(LEVELS, (1.0, 2.0, 3.0), series="c"),), ORDERED, Axis()),
    "undefined lines": ((Line((0.0,), (NAN,), (NAN,), (NAN,)),), Axis(), Axis()),
    "lines between levels": ((Line(LEVELS, LEVELS[::-1], series="b"),), ORDERED, ORDERED),
    "rules": (
        (Rule(0.5, series="b"), Rule(y=2.0), Rule(), Point(0.2, 1.0)),
        Axis(),
        Axis("rank", low=0.5, high=3.5, integer=True),
    ),
    "names of series": ((Text(0.5, "low", "here", series="b"),), Axis(), ORDERED),
    "texts": ((Text(0.5, "low", "here"), Text(NAN, "low", "nowhere")), Axis(), ORDERED),
    "nothing": ((), Axis(), ORDERED),
}
HOSTILE = [
    *HOSTILE_TEXTS,
    "$x$",
    "costs $5",
    r"\$ and \input{x}",
    r"$\frac{",
    "_hidden",
    "",
    " ",
    "\x1b[31m\n",
    "\ud800",
    "שלום עולם",
    "漢字",
]


def make_chart(marks, x, y, **more):
    more = {"series": ("a", "b", "c")} | more
    return Chart("view", "A view", "What it shows.", x, y, (Panel(tuple(marks)),), **more)


def make_hostile_chart(label):
    axis = Axis(label, "ordered", (label, "b"), unit=label)
    marks = (
        Point(0.5, label, 0.4, 0.6, series=label, detail=label),
        Text(0.5, label, label),
        Bar(0.2, label, series=label),
    )
    cells = (Cell(label, "b", 0.9, label), Cell("b", label, -0.2, label))
    panels = (
        Panel(marks, label, x=Axis(label, unit=label)),
        Panel(cells, label, x=axis, y=axis),
        Panel((Line((label, "b"), (0.0, 1.0), series=label),), label, x=axis, y=Axis(label)),
    )
    return Chart("v", label, label, axis, axis, panels, (label,), columns=2, shades=label)


@pytest.fixture(scope="module")
def result():
    matrix = ordinate.ConfusionMatrix.from_counts([[8, 2, 0], [1, 6, 3], [0, 2, 8]], "low,mid,high")
    return ordinate.evaluate(matrix)


@pytest.mark.parametrize("name", MARKS)
def test_what_is_drawn_is_the_data_of_the_chart(name):
    marks, x, y = MARKS[name]
    display = draw(make_chart(marks, x, y))
    compare_with_chart(display)
    display.figure_.draw_without_rendering()
    compare_with_chart(display)  # ticks and layout changed nothing


def test_panels_have_axes_of_their_own():
    panels = (
        Panel((Point(100.0, "low"),), "first", x=Axis("m")),
        Panel((Point(1.0, "mid"),), "second"),
        Panel((Point(2.0, "high"),), "third"),
    )
    display = draw(Chart("v", "t", "d", Axis("n"), ORDERED, panels, columns=2))
    compare_with_chart(display)
    assert display.ax_.shape == (3,)
    assert [ax.get_title(loc="left") for ax in display.ax_] == ["first", "second", "third"]
    tops = [round(ax.get_position().y0, 3) for ax in display.ax_]
    assert tops[0] == tops[1] > tops[2]


def test_series_differ_in_colour_and_in_shape_dash_or_hatch():
    names = tuple("abcdef")
    points = draw(
        make_chart([Point(1.0, "low", series=x) for x in names], Axis(), ORDERED, series=names)
    )
    drawn = [x for x in points.ax_.lines if x.get_linestyle() == "None"]
    assert len({x.get_color() for x in drawn}) == 6
    assert len({(x.get_marker(), x.get_markerfacecolor() == "none") for x in drawn}) == 6
    lines = draw(
        make_chart(
            [Line((0.0, 1.0), (0.0, 1.0), series=x) for x in names], Axis(), Axis(), series=names
        )
    )
    assert len({str(x._unscaled_dash_pattern) for x in lines.ax_.lines}) == 6
    bars = draw(
        make_chart([Bar(1.0, "low", series=x) for x in names], Axis(), ORDERED, series=names)
    )
    assert len({x.get_hatch() for x in bars.ax_.patches}) == 6


def test_the_legend_has_the_series_in_their_order():
    chart = make_chart([Point(1.0, "low", series="b")], Axis(), ORDERED, series=("b", "_a", "$c$"))
    (legend,) = draw(chart).figure_.legends
    assert [x.get_text() for x in legend.get_texts()] == ["b", "_a", "$c$"]


def test_the_legend_leaves_out_what_a_text_names():
    marks = [Point(1.0, "low", series=x) for x in ("a", "b")]
    chart = make_chart([*marks, Text(1.0, "low", "b", series="b")], Axis(), ORDERED)
    (legend,) = draw(chart).figure_.legends
    assert [x.get_text() for x in legend.get_texts()] == ["a", "c"]
    assert legend.get_lines()[1].get_color() == COLOURS[2]


def test_panels_side_by_side_have_the_levels_once():
    panels = (
        Panel((Point(1.0, "low"),)),
        Panel((Point(2.0, "mid"),), y=Axis("n", "ordered", ("mid",))),
    )
    for other, labelled in ((panels[0], False), (panels[1], True)):
        chart = Chart("v", "t", "d", Axis(), ORDERED, (panels[0], other), columns=2)
        _, right = draw(chart).ax_
        assert right.yaxis.label.get_visible() is labelled
        assert bool(right.get_yticklabels()) is labelled


def test_integers_have_ticks_at_integers():
    axis = Axis("rank", low=0.5, high=2.5, integer=True)
    display = draw(make_chart([Point(1.0, "low")], axis, ORDERED))
    low, high = display.ax_.get_xlim()
    ticks = [x for x in display.ax_.get_xticks() if low <= x <= high]
    assert ticks == [1, 2]


def test_shades_have_a_scale_with_their_title():
    chart = make_chart([Cell("low", "low", 0.5)], ORDERED, ORDERED, series=(), shades="items")
    display = draw(chart)
    bar = display.ax_.collections[0].colorbar
    assert bar.ax.get_ylabel() == "items"
    assert bar.ax.get_ylim() == (0, 1)
    ticks = ((-1.0, "worse"), (0.0, "$neither"), (1.0, "better"))
    cells = [Cell("low", "low", -0.5)]
    signed = draw(make_chart(cells, ORDERED, ORDERED, shades="gain", shade_ticks=ticks))
    bar = signed.ax_.collections[0].colorbar.ax
    assert bar.get_ylim() == (-1, 1)
    assert [x.get_text() for x in bar.get_yticklabels()] == ["worse", "$neither", "better"]


def test_ticks_follow_when_a_reader_zooms():
    display = draw(make_chart([Point(0.5, "low")], Axis(low=0.0, high=1.0), ORDERED))
    display.ax_.set_xlim(0.4, 0.42)
    texts = [x.get_text() for x in display.ax_.get_xticklabels()]
    assert float(texts[0]) == 0.4
    assert float(texts[-1]) == 0.42


@pytest.mark.parametrize("label", HOSTILE, ids=lambda x: ascii(x[:12]))
def test_labels_are_drawn_as_text(label):
    display = draw(make_hostile_chart(label))
    compare_with_chart(display)
    texts = [t for t in display.figure_.findobj(mpl.text.Text) if t.get_text()]
    assert not any(t._preprocess_math(t.get_text())[1] for t in texts)
    assert all(len(t.get_text()) < 200 for t in texts)


@pytest.mark.filterwarnings("ignore:Glyph .* missing")  # says what to do: another font.family
@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_files_have_every_label(tmp_path, suffix):
    names = tuple(dict.fromkeys(map(shorten_label, HOSTILE)))
    marks = [Point(0.5, name, series=name) for name in names]
    draw(make_chart(marks, Axis(), Axis("", "ordered", names), series=names)).save(
        tmp_path / f"view.{suffix}"
    )
    assert (tmp_path / f"view.{suffix}").stat().st_size < 1_000_000


def test_a_dollar_is_shown_as_it_is(tmp_path):
    draw(make_hostile_chart("$x$")).save(tmp_path / "view.svg")
    assert ">$x$<" in (tmp_path / "view.svg").read_text("utf-8")


def test_labels_are_no_latex_where_other_texts_are():
    with mpl.rc_context({"text.usetex": True}):
        display = draw(make_hostile_chart(r"\input{x}"))
        texts = display.figure_.findobj(mpl.text.Text)
        assert not [t for t in texts if "input" in t.get_text() and t.get_usetex()]


# --- displays ------------------------------------------------------------------------------------


def test_a_result_plots_a_view_by_its_name(result):
    display = result.plot("confusion")
    compare_with_chart(display)
    assert display.chart == result.get_chart("confusion")
    assert display.figure_ is display.ax_.figure
    assert repr(display) == "<Display: Confusion matrix>"
    assert result.plot("cell_costs", "mae").chart.variant == "mae"
    assert result.plot().chart == result.list_charts()[0]


def test_the_frame_has_what_was_drawn(result):
    frame = result.plot("confusion").frame("pandas")
    assert frame.query("x == 'mid' and y == 'low'")["text"].item() == "2"
    levels = result.plot("levels").frame("polars")
    assert levels["panel"].unique(maintain_order=True).to_list() == ["precision", "recall", "f1"]
    assert levels["low"].to_list() == [x.low for x in result.get_chart("levels").list_marks()]
    line = Line((0.0, 1.0), (0.5, NAN), (0.4, 0.5), (0.6, 0.7), series="a")
    rows = draw(make_chart([line], Axis(), Axis())).frame("polars").to_dicts()
    assert rows[0] == {"mark": "line", "x": 0, "y": 0.5, "low": 0.4, "high": 0.6, "series": "a"}
    assert rows[1]["y"] is None


def test_a_view_is_drawn_on_given_axes(result):
    figure = Figure()
    ax = figure.add_subplot()
    display = result.plot("distances", ax=ax)
    compare_with_chart(display)
    assert (display.ax_, display.figure_) == (ax, figure)


def test_panels_share_the_place_of_one_subplot(result):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    display = result.plot("levels", ax=right)
    compare_with_chart(display)
    figure.draw_without_rendering()
    assert min(ax.get_position().x0 for ax in display.ax_) > left.get_position().x1


def test_panels_take_one_axes_each(result):
    axes = Figure().subplots(3, 1)
    display = result.plot("levels", ax=axes)
    compare_with_chart(display, bare=False)
    assert [*display.ax_] == [*axes]


def test_too_few_axes_are_refused(result):
    with pytest.raises(BadOption, match=r"'levels' has 3 panels: give as many axes \(not 2\)"):
        result.plot("levels", ax=Figure().subplots(1, 2))
    with pytest.raises(BadOption, match="3 panels"):
        result.plot("levels", ax=Figure().add_axes((0.1, 0.1, 0.8, 0.8)))


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_same_figure_is_the_same_file(result, tmp_path, suffix):
    for name in ("a", "b"):
        result.plot("confusion").save(tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert b"CreationDate" not in first
    assert b"dc:date" not in first
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix])


def test_text_of_a_figure_is_text_in_truetype_fonts(result, tmp_path):
    settings = dict(mpl.rcParams)
    result.plot("confusion").save(tmp_path / "view.pdf")
    result.plot("confusion").save(tmp_path / "view.svg")
    content = (tmp_path / "view.pdf").read_bytes()
    assert b"/TrueType" in content or b"/CIDFontType2" in content
    assert b"/Type3" not in content
    assert ">predicted</text>" in (tmp_path / "view.svg").read_text("utf-8")
    assert dict(mpl.rcParams) == settings


def test_a_figure_is_not_overwritten_and_its_suffix_is_known(result, tmp_path):
    display = result.plot("confusion")
    display.save(tmp_path / "view.png")
    with pytest.raises(BadOutput, match=r"view.png' exists. Pass force=True"):
        display.save(tmp_path / "view.png")
    display.save(tmp_path / "view.png", force=True)
    with pytest.raises(BadOutput, match=r"no known suffix. There are: .pdf, .png, .svg"):
        display.save(tmp_path / "view.pgf")


def test_a_notebook_shows_the_figure(result):
    assert result.plot("confusion")._repr_png_().startswith(b"\x89PNG")


def test_pyplot_is_left_alone():
    program = (
        "import sys, ordinate\n"
        "ordinate.evaluate(['A1', 'B1'], ['A1', 'B2'], 'cefr').plot('confusion')._repr_png_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_without_matplotlib_the_install_line_is_given(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "ordinate.render.matplotlib_charts")
    monkeypatch.delattr("ordinate.render.matplotlib_charts")
    with pytest.raises(MissingExtra, match=r"pip install 'ordinate\[plot\]'"):
        result.plot("confusion")


def test_a_view_that_is_not_there_is_refused_before_matplotlib_is_asked_for(result):
    with pytest.raises(BadOption, match="There is no chart 'heat'"):
        result.plot("heat")


def test_many_levels_are_drawn_without_their_numbers_and_with_some_of_their_labels():
    names = tuple(f"level {k}" for k in range(60))
    axis = Axis("level", "ordered", names)
    cells = [Cell(x, x, 1.0, "1,000") for x in names]
    display = draw(make_chart(cells, axis, axis))
    shown = [t.get_text() for t in display.ax_.get_xticklabels() if t.get_text()]
    assert shown == [*names[::2]]
    compare_with_chart(display)
    assert not display.ax_.texts
    assert np.ma.count(display.ax_.collections[0].get_array()) == 60


def test_the_text_of_every_cell_can_be_read():
    axis = Axis("", "ordered", tuple("0123456789"))
    places = [(x, y) for x in axis.levels for y in axis.levels]
    shades = dict(zip(places, np.linspace(-1, 1, 100).tolist(), strict=True))
    cells = [Cell(x, y, shade, "0") for (x, y), shade in shades.items()]
    texts = draw(make_chart(cells, axis, axis)).ax_.texts
    assert len(texts) == 100
    for text, shade in zip(texts, shades.values(), strict=True):
        assert compute_contrast([*SHADES((shade + 1) / 2)[:3]], to_hex(text.get_color())) >= 4.5


def test_a_rank_has_a_tick_where_there_are_few():
    ranks = Axis("rank", low=0.5, high=4.5, integer=True)
    rows = Axis("system", "ordered", ("a", "b"))
    panels = (Panel((Point(0.5, "a"),)), Panel((Point(1.0, "a"), Point(4.0, "b")), x=ranks))
    display = draw(Chart("v", "t", "d", Axis(), rows, panels, columns=2))
    low, high = display.ax_[1].get_xlim()
    assert [x for x in display.ax_[1].get_xticks() if low <= x <= high] == [1, 2, 3, 4]
