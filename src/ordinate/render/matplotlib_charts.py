"""matplotlib: charts as figures that go straight into a paper.

This module is loaded by those who plot. pyplot is left alone: a chart has a figure of its own, or
the axes that are given.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.gridspec import GridSpecBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import Formatter, Locator, NullLocator

from ordinate.errors import BadOption, BadOutput, shorten
from ordinate.render.atomic_files import UNLOCKED_PREFIX, find_target, replace_file
from ordinate.render.charts import (
    COLOURS,
    DARKEST_FOR_BLACK,
    OTHER_SHADE,
    SHADE,
    SHAPES,
    Axis,
    Bar,
    Cell,
    Chart,
    Line,
    Mark,
    Panel,
    Place,
    Point,
    Rule,
    Side,
    Text,
    find_ticks,
    format_ticks,
    is_missing,
    runs_along_x,
    shorten_label,
    thin_labels,
)
from ordinate.render.frames import make_frame

WIDTH = 7.2  # inches, of a figure that is given no axes
ROW, WIDE_ROW, NUMERIC_HEIGHT = 0.27, 0.4, 2.6  # inches of a level, of one in a matrix, of numbers
LEAST_WIDTH = 1.5  # inches of a panel
LETTER = 0.08  # inches, on average
LEAST_STEP = 0.16  # inches between labels that are turned
CELL_LETTER = 0.62  # of the font's size
SMALLEST_FONT, CELL_FONT = 4.0, 9.0  # points, of the texts in cells
INK, GRID, PAPER = "#1d2327", "#d9dee3", "#f4f6f8"
MARKERS = dict(zip(SHAPES, ("o", "s", "D", "^", "o", "x"), strict=True))
DASHES: tuple[Any, ...] = (
    "solid",
    *((0, x) for x in ((7, 3), (2, 3), (9, 3, 2, 3), (12, 4), (4, 6))),
)
HATCHES = ("", "//", "..", "\\\\", "xx", "++")
SHADES = LinearSegmentedColormap.from_list("ordinate", [OTHER_SHADE, PAPER, SHADE])
METADATA: dict[str, dict[str, None]] = {  # without the time, the same figure is the same file
    ".pdf": {"CreationDate": None},
    ".png": {},
    ".svg": {"Date": None},
}
# Journals want TrueType fonts; text in SVG stays text.
FILE_SETTINGS: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "ordinate",
}
PLAIN: dict[str, Any] = {"usetex": False}  # a label is no LaTeX, whatever is said of other texts
GivenAxes: TypeAlias = Axes | Sequence[Axes] | np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Display:
    """A view that was drawn: its figure, its axes, and its data.

    `ax_` is an array of axes, one for each panel, where the chart has several.
    """

    chart: Chart
    figure_: Figure | SubFigure
    ax_: Any

    def frame(self, backend: str | None = None) -> Any:
        """Return what was drawn as a data frame: one row for each mark or place of a line."""
        return make_frame(self.chart.list_records(), backend)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the figure as PDF, PNG or SVG, whole or not at all.

        Texts stay texts, in TrueType fonts. `figure_.savefig` has all options of matplotlib.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in METADATA:
            known = ", ".join(METADATA)
            raise BadOutput(f"{shorten(str(path))} has no known suffix. There are: {known}.")
        with replace_file(find_target(path, force=force), prefix=UNLOCKED_PREFIX) as temporary:
            temporary.write_bytes(self._write(suffix, dpi=300))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten_label(self.chart.title, 80)}>"

    def _repr_png_(self) -> bytes:
        return self._write(".png", dpi=100)

    def _write(self, suffix: str, dpi: int) -> bytes:
        content, figure = BytesIO(), self.figure_.get_figure(root=True)
        with mpl.rc_context(FILE_SETTINGS):
            figure.savefig(
                content,
                format=suffix[1:],
                metadata=METADATA[suffix] | {"Title": shorten_label(self.chart.title, 200)},
                bbox_inches="tight",
                dpi=dpi,
            )
        return content.getvalue()


def draw(chart: Chart, ax: GivenAxes | None = None) -> Display:
    """Draw a chart on axes, or on a new figure.

    One axes makes room for all panels of the chart; several are taken for one panel each.
    """
    axes, legend = _make_axes(chart) if ax is None else _take_axes(chart, ax)
    for panel, each in zip(chart.panels, axes, strict=True):
        _draw_panel(chart, panel, each)
    _draw_legend(chart, legend)
    _draw_shades(chart, axes)
    figure = axes[0].figure
    return Display(chart, figure, axes[0] if len(axes) == 1 else np.array(axes, dtype=object))


# --- axes ----------------------------------------------------------------------------------------


def _make_axes(chart: Chart) -> tuple[list[Axes], Figure | Axes]:
    """Return axes of a new figure, and where its legend goes."""
    rows = chart.list_rows()
    columns = len(rows[0])
    widths = [_measure_width(chart, columns)] * columns
    heights = [max(_measure_height(chart, panel) for panel in row) for row in rows]
    left = sum(_measure_left(chart, k) for k in range(columns))
    right = 0.0
    if any(map(_list_cells, chart.panels)):  # the scale of shades
        right = 0.7 + 0.2 * len(_wrap_shades(chart, sum(heights)))
    below = sum(max(_measure_below(chart, panel) for panel in row) for row in rows)
    top = 0.3 if chart.list_legend() else 0.0
    size = (sum(widths) + left + right, sum(heights) + below + top)
    figure = Figure(figsize=size, layout="constrained")
    # The layout moves all of them; until then texts go by the size that axes will have.
    grid = figure.add_gridspec(
        len(rows),
        columns,
        height_ratios=heights,
        right=1.0,
        left=1.0 - sum(widths) / size[0],
        top=1.0,
        bottom=1.0 - sum(heights) / size[1],
        wspace=0.0,
        hspace=0.0,
    )
    return _add_subplots(chart, figure, grid), figure


def _add_subplots(chart: Chart, figure: Figure | SubFigure, grid: GridSpecBase) -> list[Axes]:
    """Return the axes of all panels; side by side, they have the labels that they share once."""
    axes = [figure.add_subplot(grid[divmod(k, grid.ncols)]) for k in range(len(chart.panels))]
    for k, ax in enumerate(axes):
        ax.yaxis.set_tick_params(labelleft=not chart.shares_labels(k))
        ax.yaxis.label.set_visible(not chart.shares_labels(k))
    return axes


def _take_axes(chart: Chart, given: GivenAxes) -> tuple[list[Axes], Figure | Axes]:
    """Return the axes that are given, one for each panel, and where the legend goes."""
    several = not isinstance(given, Axes)
    axes = [given] if isinstance(given, Axes) else list(np.asarray(given, dtype=object).flat)
    if len(axes) == len(chart.panels):
        return axes, axes[0]
    place = None if several else axes[0].get_subplotspec()
    if place is None:
        raise BadOption(
            f"The chart {chart.name!r} has {len(chart.panels)} panels: give as many axes (not "
            f"{len(axes)}), one subplot for all of them, or none."
        )
    axes[0].set_axis_off()
    rows = chart.list_rows()
    grid = place.subgridspec(len(rows), len(rows[0]))
    return _add_subplots(chart, axes[0].figure, grid), axes[0]


def _measure_width(chart: Chart, columns: int) -> float:
    """Return the inches that the marks of a panel need across: a small matrix takes less."""
    left = sum(_measure_left(chart, k) for k in range(columns))
    room = max((WIDTH - left) / columns, LEAST_WIDTH)
    if all(map(_list_cells, chart.panels)):
        return min(room, max(0.6 * len(chart.x.levels), LEAST_WIDTH))
    return room


def _measure_height(chart: Chart, panel: Panel) -> float:
    """Return the inches that the marks of a panel need from top to bottom."""
    _, y = chart.get_axes(panel)
    if y.kind != "ordered":
        return NUMERIC_HEIGHT
    few = _list_cells(panel) and len(y.levels) <= 12
    return (WIDE_ROW if few else ROW) * max(len(y.levels), 1)


def _measure_left(chart: Chart, index: int) -> float:
    """Return the inches that levels or numbers and a title need beside a panel."""
    _, y = chart.get_axes(chart.panels[index])
    if chart.shares_labels(index):
        return 0.1
    labels = _measure_labels(y) + 0.1 if y.kind == "ordered" else 0.4
    return labels + (0.2 if y.label else 0.0)


def _measure_below(chart: Chart, panel: Panel) -> float:
    """Return the inches that titles and levels need above and below a panel."""
    x, _ = chart.get_axes(panel)
    titles = (0.25 if panel.title else 0.0) + (0.2 if x.label else 0.0)
    return 0.35 + titles + 0.8 * _measure_labels(x)  # levels may stand aslant


def _measure_labels(axis: Axis) -> float:
    """Return the inches of the longest level."""
    return LETTER * max((len(shorten_label(level)) for level in axis.levels), default=0)


class _RoundLocator(Locator):
    """The ticks of all renderers, within what is shown of an axis."""

    def __init__(self, ax: Axes, side: Side, axis: Axis) -> None:
        self.ax, self.side, self.of = ax, side, axis

    def __call__(self) -> list[float]:
        return self.tick_values(*(self.ax.get_xlim() if self.side == "x" else self.ax.get_ylim()))

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        low, high = sorted((vmin, vmax))
        most = max(2, int(_measure_side(self.ax, self.side) / (0.3 if self.of.integer else 0.6)))
        return find_ticks(replace(self.of, low=low, high=high), most)


class _TickFormatter(Formatter):
    """The texts of ticks of all renderers, which have as many digits as they all need."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return format_ticks([x])[0] if pos is None else self.texts[pos]

    def set_locs(self, locs: Any) -> None:
        super().set_locs(locs)
        self.texts = format_ticks([float(x) for x in locs])


def _set_axis(ax: Axes, side: Side, axis: Axis) -> None:
    """Give the axes their levels or numbers on a side, and a label."""
    artist = ax.xaxis if side == "x" else ax.yaxis
    artist.set_label_text(_to_text(axis.label, _count_letters(ax, side)), **PLAIN)
    artist.set_tick_params(length=0)
    if axis.kind == "ordered":
        last = len(axis.levels) - 0.5
        labels = [_to_text(level) for level in axis.levels]
        turned = _turn_labels(ax, labels) if side == "x" else {}
        if turned:
            labels = thin_labels(labels, _measure_side(ax, "x") / len(labels), LEAST_STEP)
        ax.set(**{f"{side}lim": (-0.5, last) if side == "x" else (last, -0.5)})  # downwards
        artist.set_ticks(range(len(labels)), labels=labels, **PLAIN, **turned)
        return
    ax.set(**{f"{side}scale": "log" if axis.kind == "log" else "linear"})
    ax.set(**{f"{side}lim": _widen(axis)})
    artist.set_major_locator(_RoundLocator(ax, side, axis))
    artist.set_major_formatter(_TickFormatter())
    artist.set_minor_locator(NullLocator())
    artist.grid(visible=True, color=GRID)


def _widen(axis: Axis) -> tuple[float, float]:
    """Return the bounds of an axis with room for half a marker."""
    low, high = axis.low or 0.0, 1.0 if axis.high is None else axis.high
    if axis.kind == "log":
        room = (high / low) ** 0.02
        return low / room, high * room
    room = 0.02 * (high - low)
    return low - room, high + room


def _turn_labels(ax: Axes, labels: list[str]) -> dict[str, Any]:
    """Return how labels at the x-axis stand: aslant where they would touch each other."""
    room = _measure_side(ax, "x") / max(len(labels), 1)
    if LETTER * max(map(len, labels), default=0) < 0.9 * room:
        return {}
    return {"rotation": 50, "horizontalalignment": "right", "rotation_mode": "anchor"}


def _count_letters(ax: Axes, side: Side) -> int:
    """Return how many letters have room along axes."""
    return max(8, int(_measure_side(ax, side) / LETTER))


def _measure_side(ax: Axes, side: Side) -> float:
    """Return the width or height of axes in inches, before labels take their share of it."""
    size = ax.get_window_extent()
    dpi = ax.figure.get_figure(root=True).dpi
    return float((size.width if side == "x" else size.height) / dpi)


# --- panels --------------------------------------------------------------------------------------


def _draw_panel(chart: Chart, panel: Panel, ax: Axes) -> None:
    x, y = chart.get_axes(panel)
    _set_axis(ax, "x", x)
    _set_axis(ax, "y", y)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)
    if panel.title:
        title = _to_text(panel.title, _count_letters(ax, "x"))
        ax.set_title(title, loc="left", fontsize="medium", **PLAIN)
    frame = _Frame(ax, x, y, hatched=len(_list_series(chart.list_marks(), Bar)) > 1)
    ranks = {name: k for k, name in enumerate(chart.series)}
    for kind, drawer in _DRAWERS.items():
        marks = [mark for mark in panel.marks if type(mark) is kind]
        for series in dict.fromkeys(getattr(mark, "series", "") for mark in marks):
            own = [mark for mark in marks if getattr(mark, "series", "") == series]
            drawer(own, frame, ranks.get(series, 0) % len(SHAPES))


def _list_cells(panel: Panel) -> list[Cell]:
    return [mark for mark in panel.marks if isinstance(mark, Cell)]


def _list_series(marks: Iterable[Mark], *kinds: type[Mark]) -> set[str]:
    return {getattr(mark, "series", "") for mark in marks if isinstance(mark, kinds)}


@dataclass(frozen=True)
class _Frame:
    """The axes of a panel, and how places become coordinates."""

    ax: Axes
    x: Axis
    y: Axis
    hatched: bool

    def place_x(self, place: Place) -> float:
        return _find_coordinate(self.x, place)

    def place_y(self, place: Place) -> float:
        return _find_coordinate(self.y, place)

    @property
    def along_x(self) -> bool:
        """Whether bars and intervals run along x."""
        return runs_along_x(self.x, self.y)


def _find_coordinate(axis: Axis, place: Place) -> float:
    return float(axis.levels.index(str(place)) if axis.kind == "ordered" else place)


# --- marks ---------------------------------------------------------------------------------------


def _draw_cells(marks: list[Cell], frame: _Frame, _rank: int) -> None:
    x, y = frame.x.levels, frame.y.levels
    values = np.full((len(y), len(x)), np.nan)
    for mark in marks:
        values[y.index(mark.y), x.index(mark.x)] = mark.shade
    frame.ax.pcolormesh(
        np.arange(len(x) + 1) - 0.5,
        np.arange(len(y) + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap=SHADES,
        norm=Normalize(-1, 1, clip=True),
        edgecolors="white",
        linewidth=1,
    )
    longest = max((len(mark.text) for mark in marks), default=0)
    room = 72 * _measure_side(frame.ax, "x") / len(x) / (CELL_LETTER * max(longest, 1))
    if room < SMALLEST_FONT:
        return
    for mark in marks:
        if mark.text:
            frame.ax.text(
                frame.place_x(mark.x),
                frame.place_y(mark.y),
                _to_text(mark.text),
                color="white" if abs(mark.shade) > DARKEST_FOR_BLACK[mark.shade < 0] else "black",
                fontsize=min(room, CELL_FONT),
                ha="center",
                va="center",
                **PLAIN,
            )


def _draw_bars(marks: list[Bar], frame: _Frame, rank: int) -> None:
    along_x = frame.along_x
    value, other = (frame.place_x, frame.place_y) if along_x else (frame.place_y, frame.place_x)
    ends = [
        (mark, *((mark.x, mark.y) if along_x else (mark.y, mark.x)))
        for mark in marks
        if not (is_missing(mark.x) or is_missing(mark.y) or is_missing(mark.base))
    ]
    (frame.ax.barh if along_x else frame.ax.bar)(
        [other(level) for _, _, level in ends],
        [value(end) - mark.base for mark, end, _ in ends],
        [0.6 if mark.width is None else 0.94 * mark.width for mark, _, _ in ends],
        [mark.base for mark, _, _ in ends],
        color=COLOURS[rank],
        alpha=0.6,
        hatch=HATCHES[rank] if frame.hatched else None,
        edgecolor="white" if frame.hatched else None,
    )


def _draw_points(marks: list[Point], frame: _Frame, rank: int) -> None:
    known = [mark for mark in marks if not (is_missing(mark.x) or is_missing(mark.y))]
    ends: list[tuple[float, float]] = []
    for mark in known:
        if not (math.isnan(mark.low) or math.isnan(mark.high)):
            x, y = frame.place_x(mark.x), frame.place_y(mark.y)
            axis = frame.x if frame.along_x else frame.y  # at whose end an open interval stops
            low, high = np.clip((mark.low, mark.high), axis.low, axis.high).tolist()
            ends += [(low, y), (high, y)] if frame.along_x else [(x, low), (x, high)]
            ends.append((math.nan, math.nan))
    colour = COLOURS[rank]
    frame.ax.plot(
        [x for x, _ in ends],
        [y for _, y in ends],
        color=colour,
        linewidth=1.6,
        marker="|" if frame.along_x else "_",
        markersize=7,
        markeredgewidth=1.6,
    )
    frame.ax.plot(
        [frame.place_x(mark.x) for mark in known],
        [frame.place_y(mark.y) for mark in known],
        **_style_points(rank),
    )


def _style_points(rank: int) -> dict[str, Any]:
    shape = SHAPES[rank]
    return {
        "color": COLOURS[rank],
        "linestyle": "none",
        "marker": MARKERS[shape],
        "markersize": 6,
        "markerfacecolor": "none" if shape == "ring" else COLOURS[rank],
    }


def _draw_lines(marks: list[Line], frame: _Frame, rank: int) -> None:
    for mark in marks:
        if mark.low and mark.high:
            edges = [
                (frame.place_x(x), low, high)
                for x, low, high in zip(mark.x, mark.low, mark.high, strict=True)
                if not any(map(is_missing, (x, low, high)))
            ]
            x, low, high = zip(*edges, strict=True) if edges else ((), (), ())
            frame.ax.fill_between(x, low, high, color=COLOURS[rank], alpha=0.18, linewidth=0)
        places = [
            (frame.place_x(x), frame.place_y(y))
            for x, y in zip(mark.x, mark.y, strict=True)
            if not (is_missing(x) or is_missing(y))
        ]
        frame.ax.plot([x for x, _ in places], [y for _, y in places], **_style_line(rank))


def _style_line(rank: int) -> dict[str, Any]:
    return {"color": COLOURS[rank], "linewidth": 1.8, "linestyle": DASHES[rank]}


def _draw_rules(marks: list[Rule], frame: _Frame, rank: int) -> None:
    for mark in marks:
        if not is_missing(mark.x):
            frame.ax.axvline(mark.x, **_style_line(rank))
        if not is_missing(mark.y):
            frame.ax.axhline(mark.y, **_style_line(rank))


def _draw_texts(marks: list[Text], frame: _Frame, rank: int) -> None:
    for mark in marks:
        if not (is_missing(mark.x) or is_missing(mark.y)):
            frame.ax.annotate(
                _to_text(mark.text),
                (frame.place_x(mark.x), frame.place_y(mark.y)),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
                color=COLOURS[rank] if mark.series else INK,
                **PLAIN,
            )


_DRAWERS: dict[type[Mark], Callable[..., None]] = {
    Cell: _draw_cells,
    Bar: _draw_bars,
    Rule: _draw_rules,
    Line: _draw_lines,
    Point: _draw_points,
    Text: _draw_texts,
}


# --- legends -------------------------------------------------------------------------------------


def _draw_legend(chart: Chart, where: Figure | Axes) -> None:
    """Draw the entries of series, above the panels of a figure of our own."""
    listed = chart.list_legend()
    if not listed:
        return
    marks = chart.list_marks()
    bars, lines = _list_series(marks, Bar), _list_series(marks, Line, Rule)
    handles: list[Artist] = []
    for name in listed:
        rank = chart.series.index(name) % len(SHAPES)
        if name in bars:
            hatch = HATCHES[rank] if len(bars) > 1 else None
            handles.append(Patch(facecolor=COLOURS[rank], alpha=0.6, hatch=hatch))
        else:
            style = _style_line(rank) if name in lines else _style_points(rank)
            handles.append(Line2D([], [], **style))
    names = [_to_text(name) for name in listed]
    more: dict[str, Any] = {"frameon": False}
    if isinstance(where, Figure):
        widths = [0.6 + LETTER * len(name) for name in names]
        columns = len(names) if sum(widths) < WIDTH else max(1, int(WIDTH / max(widths)))
        more |= {"loc": "outside upper left", "ncols": columns}
    # matplotlib leaves out what begins with an underscore, so names come afterwards.
    legend = where.legend(handles, ["series"] * len(names), **more)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, **PLAIN)


def _draw_shades(chart: Chart, axes: list[Axes]) -> None:
    """Draw the scale of the shades of cells beside the panels."""
    meshes = [mesh for ax in axes for mesh in ax.collections if mesh.get_cmap() is SHADES]
    if not meshes:
        return
    ticks = dict(chart.shade_ticks)
    bar = axes[0].figure.colorbar(meshes[0], ax=axes, shrink=0.8, aspect=25)
    bar.set_ticks([*ticks], labels=[_to_text(name) for name in ticks.values()])
    height = sum(_measure_side(ax, "y") for ax in axes[:: max(1, chart.columns)])
    bar.set_label("\n".join(_wrap_shades(chart, height)), **PLAIN)
    bar.ax.set_ylim(min(0.0, *ticks), 1)
    bar.outline.set_visible(False)


def _wrap_shades(chart: Chart, height: float) -> list[str]:
    """Return the lines of the title of the shades, beside panels of a height."""
    return wrap(_to_text(chart.shades, 60), max(8, int(height / LETTER)))


# --- texts ---------------------------------------------------------------------------------------


def _to_text(text: str, most: int | None = None) -> str:
    """Return a text as matplotlib draws it letter by letter, in letters that its fonts have."""
    shown = shorten_label(text) if most is None else shorten_label(text, most)
    if not shown.isascii():
        glyphs = set().union(*(_list_glyphs(findfont(x)) for x in _list_fonts()))
        shown = "".join(x if ord(x) in glyphs else "\N{REPLACEMENT CHARACTER}" for x in shown)
    return shown.replace("$", r"\$")


def _list_fonts() -> list[FontProperties]:
    """Return the fonts that matplotlib looks for a letter in."""
    return [FontProperties(family=[family]) for family in FontProperties().get_family()]


@lru_cache(maxsize=8)
def _list_glyphs(path: str) -> frozenset[int]:
    return frozenset(get_font(path).get_charmap())
