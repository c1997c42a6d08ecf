"""What a figure of matplotlib shows, read back from its artists and compared with its chart."""

import math
from collections import Counter

import numpy as np
from matplotlib.collections import FillBetweenPolyCollection, QuadMesh
from matplotlib.text import Annotation

from ordinate.render.charts import (
    COLOURS,
    SHAPES,
    Bar,
    Cell,
    Line,
    Point,
    Rule,
    Text,
    runs_along_x,
    shorten_label,
)
from ordinate.render.matplotlib_charts import MARKERS

ENDS = {"|", "_"}  # of intervals


def compare_with_chart(display, *, bare=True):
    """Assert that every panel shows its marks, all of them and nothing else.

    Panels side by side are `bare` of labels that they share, but for those on given axes.
    """
    chart = display.chart
    axes = [display.ax_] if len(chart.panels) == 1 else list(display.ax_)
    for k, (panel, ax) in enumerate(zip(chart.panels, axes, strict=True)):
        x, y = chart.get_axes(panel)
        compare_axis(x, ax.xaxis, ax.get_xlim())
        bounds = ax.get_ylim()[::-1] if y.kind == "ordered" else ax.get_ylim()
        compare_axis(y, ax.yaxis, bounds, bare=bare and chart.shares_labels(k))
        sides = (x, y)
        ranks = {name: k % len(SHAPES) for k, name in enumerate(chart.series)}
        compare_cells([m for m in panel.marks if isinstance(m, Cell)], ax, sides)
        compare_bars([m for m in panel.marks if isinstance(m, Bar)], ax, sides, ranks)
        compare_points([m for m in panel.marks if isinstance(m, Point)], ax, sides, ranks)
        compare_lines([m for m in panel.marks if isinstance(m, Line)], ax, sides, ranks)
        compare_rules([m for m in panel.marks if isinstance(m, Rule)], ax, ranks)
        texts = [m for m in panel.marks if isinstance(m, Text) and is_known(m.x, m.y)]
        drawn = [t for t in ax.texts if isinstance(t, Annotation)]
        named = {t.get_color() for t in drawn} & {*COLOURS}
        assert named == {COLOURS[ranks.get(m.series, 0)] for m in texts if m.series}
        assert Counter((t.get_text(), t.xy) for t in drawn) == Counter(
            (shorten_label(m.text), place(m.x, m.y, sides)) for m in texts
        )


def compare_axis(axis, artist, bounds, *, bare=False):
    label = artist.get_label_text()
    assert label == shorten_label(axis.label, len(label) if "…" in label else 60)
    low, high = bounds
    if axis.kind == "ordered":
        labels = [t.get_text() for t in artist.get_ticklabels()]
        names = [] if bare else [*map(shorten_label, axis.levels)]
        every = next((k for k, text in enumerate(labels) if k and text), 1)  # where room is scarce
        assert labels == [name if k % every == 0 else "" for k, name in enumerate(names)]
        assert [*artist.get_ticklocs()] == [*range(len(axis.levels))]
        assert (low, high) == (-0.5, len(axis.levels) - 0.5)
    else:
        assert artist.get_scale() == ("log" if axis.kind == "log" else "linear")
        assert low <= axis.low < axis.high <= high
        assert len(artist.get_ticklocs()) >= 1


def compare_cells(cells, ax, sides):
    meshes = [x for x in ax.collections if isinstance(x, QuadMesh)]
    if not cells:
        assert not meshes
        return
    (mesh,) = meshes
    x, y = sides
    shades = np.full((len(y.levels), len(x.levels)), np.nan)
    texts = {}
    for cell in cells:
        i, j = y.levels.index(cell.y), x.levels.index(cell.x)
        shades[i, j] = cell.shade
        texts[float(j), float(i)] = shorten_label(cell.text)
    drawn = np.ma.filled(mesh.get_array(), np.nan).reshape(shades.shape)
    np.testing.assert_array_equal(drawn, shades)
    shown = {t.get_position(): t.get_text() for t in ax.texts if not isinstance(t, Annotation)}
    assert shown in ({}, {at: text for at, text in texts.items() if text})


def compare_bars(bars, ax, sides, ranks):
    along_x = runs_along_x(*sides)
    wanted = []
    for bar in bars:
        x, y = place(bar.x, bar.y, sides)
        end, middle = (x, y) if along_x else (y, x)
        if is_known(x, y, bar.base):
            wanted.append((bar.base, end, middle, COLOURS[ranks.get(bar.series, 0)]))
    drawn = []
    for patch in ax.patches:
        (left, bottom), width, height = patch.get_xy(), patch.get_width(), patch.get_height()
        colour = to_hex(patch.get_facecolor())
        drawn.append(
            (left, left + width, bottom + height / 2, colour)
            if along_x
            else (bottom, bottom + height, left + width / 2, colour)
        )
    compare_numbers(drawn, wanted)


def compare_points(points, ax, sides, ranks):
    known = [m for m in points if is_known(m.x, m.y)]
    drawn = [
        (x, y, line.get_marker(), line.get_color())
        for line in ax.lines
        if line.get_linestyle() == "None"
        for x, y in zip(*line.get_data(), strict=True)
    ]
    assert Counter(drawn) == Counter(
        (*place(m.x, m.y, sides), MARKERS[SHAPES[rank]], COLOURS[rank])
        for m in known
        for rank in [ranks.get(m.series, 0)]
    )
    wanted = [
        (a, b)
        for m in known
        if is_known(m.low, m.high)
        for x, y in [place(m.x, m.y, sides)]
        for a, b in (
            ((m.low, y), (m.high, y)) if runs_along_x(*sides) else ((x, m.low), (x, m.high)),
        )
    ]
    ends = [
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() in ENDS
        for x, y in zip(*line.get_data(), strict=True)
        if is_known(x, y)
    ]
    assert Counter(zip(ends[::2], ends[1::2], strict=True)) == Counter(wanted)


def compare_lines(lines, ax, sides, ranks):
    drawn = [
        (*map(tuple, line.get_data()), line.get_color())
        for line in ax.lines
        if line.get_linestyle() != "None" and line.get_marker() not in ENDS and not crosses(line)
    ]
    wanted = []
    bands = []
    for line in lines:
        colour = COLOURS[ranks.get(line.series, 0)]
        known = [place(x, y, sides) for x, y in zip(line.x, line.y, strict=True) if is_known(x, y)]
        wanted.append((*(zip(*known, strict=True) if known else ((), ())), colour))
        if line.low and line.high:
            bands.append(line)
    assert Counter(drawn) == Counter(wanted)
    shown = [x for x in ax.collections if isinstance(x, FillBetweenPolyCollection)]
    assert len(shown) == len(bands)
    for line, band in zip(bands, shown, strict=True):
        edges = {
            (place(x, y, sides)[0], y)
            for side in (line.low, line.high)
            for x, y, a, b in zip(line.x, side, line.low, line.high, strict=True)
            if is_known(x, a, b)
        }
        corners = {tuple(map(float, v)) for path in band.get_paths() for v in path.vertices}
        assert corners == edges


def compare_rules(rules, ax, ranks):
    drawn = [(*map(tuple, line.get_data()), line.get_color()) for line in ax.lines if crosses(line)]
    assert Counter(drawn) == Counter(
        (*ends, COLOURS[ranks.get(rule.series, 0)])
        for rule in rules
        for at, ends in (
            (rule.x, ((rule.x, rule.x), (0, 1))),
            (rule.y, ((0, 1), (rule.y, rule.y))),
        )
        if is_known(at)
    )


def crosses(line):
    """Say whether a line goes from one side of its axes to the other."""
    return line.get_transform() != line.axes.transData


def compare_numbers(drawn, wanted):
    assert len(drawn) == len(wanted)
    for one, other in zip(sorted(drawn), sorted(wanted), strict=True):
        assert one[-1] == other[-1]
        np.testing.assert_allclose(one[:-1], other[:-1], rtol=1e-9, atol=1e-9)


def place(x, y, sides):
    """Return where a place lies, levels by their number."""
    return tuple(
        float(axis.levels.index(at)) if axis.kind == "ordered" else float(at)
        for at, axis in zip((x, y), sides, strict=True)
    )


def is_known(*values):
    return all(isinstance(x, str) or math.isfinite(x) for x in values)


def to_hex(colour):
    return "#" + "".join(f"{round(255 * x):02x}" for x in colour[:3])
