"""Charts: axes find their bounds, ticks are round, drawings are well-formed, text is text."""

import math
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hostile_texts import HOSTILE_TEXTS
from hypothesis import given
from hypothesis import strategies as st
from text_contrast import compute_contrast, lay_over, read_variables

from ordinate.render import svg
from ordinate.render.charts import (
    Axis,
    Bar,
    Cell,
    Chart,
    Line,
    Panel,
    Point,
    Rule,
    Text,
    find_ticks,
    format_ticks,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [*HOSTILE_TEXTS, "</svg>", '" onload="x']


def make_chart(*marks, x=None, y=None, **more):
    x, y = x or Axis("value"), y or Axis("system", "ordered", ("a", "b"))
    return Chart("view", "A view", "What it shows.", x, y, (Panel(marks),), **more)


def read_drawing(chart):
    return ET.fromstring(svg.render(chart))  # noqa: S314 - of our own making


def test_bounds_include_intervals_and_bases():
    chart = make_chart(Point(0.5, "a", 0.2, 0.9), Bar(0.4, "b", base=-0.1))
    x, _ = chart.get_axes(chart.panels[0])
    assert x.low < -0.1
    assert x.high > 0.9


def test_declared_bounds_stay():
    chart = make_chart(Point(0.5, "a"), x=Axis("share", low=0.0, high=1.0))
    x, _ = chart.get_axes(chart.panels[0])
    assert (x.low, x.high) == (0.0, 1.0)


def test_a_panel_with_an_axis_of_its_own_has_bounds_of_its_own():
    panels = (Panel((Point(100.0, "a"),), x=Axis()), Panel((Point(1.0, "a"),), x=Axis()))
    chart = Chart("v", "t", "d", Axis(), Axis(kind="ordered", levels=("a",)), panels)
    (first, _), (second, _) = (chart.get_axes(panel) for panel in panels)
    assert first.low > second.high


def test_panels_share_the_bounds_of_the_axis_that_they_share():
    panels = (Panel((Point(1.0, 5.0),)), Panel((Point(3.0, 100.0),), y=Axis()))
    chart = Chart("v", "t", "d", Axis(), Axis(), panels)
    (first, low), (second, high) = (chart.get_axes(panel) for panel in panels)
    assert first == second
    assert low.high < high.low


def test_labels_of_a_shared_axis_stand_once():
    y = Axis("system", "ordered", ("a", "b"))
    panels = (Panel((Point(1.0, "a"),)), Panel((Point(3.0, "b"),), x=Axis()))
    chart = Chart("v", "t", "d", Axis(), y, panels, columns=2)
    texts = [e.text for e in read_drawing(chart).iter(f"{SVG}text")]
    assert [texts.count(x) for x in ("a", "b", "system")] == [1, 1, 1]


def test_rules_run_across_the_panel_and_widen_its_axis():
    chart = make_chart(Point(0.5, "a"), Rule(2.0, series="goal"), y=Axis("", "ordered", ("a",)))
    x, _ = chart.get_axes(chart.panels[0])
    assert x.high > 2.0
    grid, *_, rule = [
        e.get("d") for e in read_drawing(chart).iter(f"{SVG}path") if "V" in (e.get("d") or "")
    ]
    assert rule.split()[1] == grid.split()[1]  # from the top to the bottom


def test_series_that_texts_name_are_not_in_the_legend():
    named = Text(0.6, "b", "2", series="two")
    points = (Point(0.5, "a", series="one"), Point(0.6, "b", series="two"))
    chart = make_chart(*points, named, series=("one", "two"))
    assert chart.list_legend() == ["one"]
    texts = [e.text for e in read_drawing(chart).iter(f"{SVG}text")]
    assert "one" in texts
    assert "two" not in texts


def test_texts_at_the_right_end_have_room():
    marks = (Point(1.0, "a"), Text(1.0, "a", "m" * 26))
    texts = list(read_drawing(make_chart(*marks)).iter(f"{SVG}text"))
    text = next(e for e in texts if e.text == "m" * 26)
    assert float(text.get("x")) + 26 * 9 < svg.WIDTH


def test_titles_and_ticks_end_within_the_drawing():
    narrow = Panel((Point(900.0, "a"),), x=Axis("discriminative power", low=0.0, high=1_000.0))
    axis = Axis("hyperparameter", "ordered", ("a",))
    charts = (
        make_chart(Point(900.0, "a"), x=Axis(low=-300.0, high=1_000.0)),
        Chart("v", "t", "d", Axis(), Axis("", "ordered", ("a",)), (narrow,) * 4, columns=4),
        make_chart(Cell("a", "a", 0.5), x=axis, y=Axis("", "ordered", ("a",))),
    )
    for chart in charts:
        drawing = read_drawing(chart)
        for text in drawing.iter(f"{SVG}text"):
            if text.get("text-anchor") == "middle" and not text.get("transform"):
                middle, half = float(text.get("x")), 0.5 * 7.2 * len(text.text)
                assert middle - half > -3
                assert middle + half < float(drawing.get("width")) + 3


def test_turned_labels_do_not_touch_each_other():
    names = tuple(f"a metric {k}" for k in range(60))
    chart = make_chart(*(Point(x, 1.0) for x in names), x=Axis("m", "ordered", names), y=Axis())
    texts = [x for x in read_drawing(chart).iter(f"{SVG}text") if x.text in names]
    places = [float(x.get("x")) for x in texts]
    assert texts[0].text == names[0]
    assert min(b - a for a, b in pairwise(places)) >= svg.LEAST_STEP


def test_the_title_of_a_single_row_is_not_cut_off():
    y = Axis("hyperparameter", "ordered", ("C",))
    drawing = read_drawing(make_chart(Point(0.5, "C"), y=y))
    title = next(x for x in drawing.iter(f"{SVG}text") if "rotate(-90" in x.get("transform", ""))
    half = 0.5 * svg.LETTER * len(title.text)
    assert float(title.get("y")) - half > -3
    assert float(title.get("y")) + half < float(drawing.get("height")) + 3


def test_very_long_details_lose_their_middle():
    drawing = read_drawing(make_chart(Point(0.5, "a", detail=f"{'x' * 10_000}: 0.5")))
    detail = [e.text for e in drawing.iter(f"{SVG}title")][-1]
    assert detail.endswith("x: 0.5")
    assert len(detail) < 500


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 10))
def test_ticks_are_few_round_and_inside(low, span, most):
    axis = Axis(low=low, high=low + span)
    ticks = find_ticks(axis, most)
    assert len(ticks) <= most + 1
    assert all(low - 1e-6 * span - 1e-9 <= x <= low + span + 1e-6 * span + 1e-9 for x in ticks)
    assert len(set(format_ticks(ticks))) == len(ticks) or span < 1e-5


def test_a_point_lies_where_its_value_is():
    chart = make_chart(Point(0.25, "a"), x=Axis(low=0.0, high=1.0))
    drawing = read_drawing(chart)
    grid = [
        float(e.get("d")[1:].split()[0])
        for e in drawing.iter(f"{SVG}path")
        if e.get("class") == "grid"
    ]
    circle = next(drawing.iter(f"{SVG}circle"))
    left, right = min(grid), max(grid)
    assert float(circle.get("cx")) == pytest.approx(left + 0.25 * (right - left), abs=0.2)


def test_cells_are_shaded_by_their_value_and_by_its_sign():
    axis = Axis("level", "ordered", ("a", "b"))
    chart = make_chart(Cell("a", "a", 1.0, "9"), Cell("b", "a", -0.5), x=axis, y=axis)
    boxes = list(read_drawing(chart).iter(f"{SVG}rect"))
    assert [b.get("class") for b in boxes] == ["more", "less"]
    assert float(boxes[0].get("fill-opacity")) > float(boxes[1].get("fill-opacity"))


def test_what_is_undefined_is_not_drawn():
    chart = make_chart(Point(math.nan, "a"), Bar(math.nan, "b"))
    drawing = read_drawing(chart)
    assert not list(drawing.iter(f"{SVG}circle"))
    assert not list(drawing.iter(f"{SVG}rect"))


def test_levels_keep_their_order():
    chart = make_chart(Point(0.5, "b"), y=Axis("level", "ordered", ("z", "b", "a")))
    texts = [e for e in read_drawing(chart).iter(f"{SVG}text") if e.text in {"z", "b", "a"}]
    heights = [float(e.get("y")) for e in texts]
    assert [e.text for e in texts] == ["z", "b", "a"]
    assert heights == sorted(heights)


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_are_shown_as_text(label):
    y = Axis("system", "ordered", (label, "b"))
    marks = (Point(0.5, label, 0.4, 0.6, detail=label), Text(0.5, label, label), Bar(0.2, label))
    line = Line((0.0, 1.0), (0.0, 1.0), (0.0, 0.5), (0.5, 1.5), series=label)
    chart = Chart("v", label, label, Axis(label), y, (Panel(marks, label),), series=(label,))
    lines = Chart("v", label, label, Axis(label), Axis(), (Panel((line,), label),), series=(label,))
    for each in (chart, lines):
        drawing = read_drawing(each)
        assert {e.tag for e in drawing.iter()} <= {
            SVG + x
            for x in ("svg", "style", "title", "desc", "g", "text", "path", "circle", "rect")
        }
        assert all(len(e.text or "") < 200 for e in drawing.iter(f"{SVG}text"))


def test_a_drawing_says_what_it_shows():
    drawing = read_drawing(make_chart(Point(0.5, "a")))
    assert drawing.get("role") == "img"
    assert drawing.find(f"{SVG}title").text == "A view"
    assert drawing.find(f"{SVG}desc").text == "What it shows."


def test_the_legend_says_what_shades_stand_for():
    y = Axis("gold", "ordered", ("a", "b"))
    ticks = ((-1.0, "worse"), (0.0, "neither"), (1.0, "</text>"))
    chart = make_chart(Cell("a", "b", 0.5), x=y, y=y, shades="the row is", shade_ticks=ticks)
    texts = [e.text for e in read_drawing(chart).iter(f"{SVG}text")]
    assert texts[:4] == ["Shade: the row is", "worse", "neither", "</text>"]
    swatches = [*read_drawing(chart).iter(f"{SVG}rect")][:3]
    assert [(x.get("class"), x.get("fill-opacity")) for x in swatches] == [
        ("less", "1.00"),
        ("more", "0.06"),
        ("more", "1.00"),
    ]


@pytest.mark.parametrize("theme", [svg.LIGHT, svg.DARK])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_text_of_every_cell_can_be_read(theme, sign):
    colours = read_variables(theme) | {"on-half": "#000"}
    ordered = Axis("", "ordered", ("a", "b"))
    for k in range(1001):
        chart = make_chart(Cell("a", "b", sign * k / 1000, "0"), x=ordered, y=ordered)
        drawing = read_drawing(chart)
        box = drawing.find(f".//{SVG}rect")
        (text,) = (x for x in drawing.iter(f"{SVG}text") if x.text == "0")
        fill = colours["shade" if box.get("class") == "more" else "other"]
        shown = lay_over(fill, float(box.get("fill-opacity")), colours["paper"])
        assert compute_contrast(shown, colours[text.get("class")]) >= 4.5, k
