"""matplotlib: charts as figures that go straight into a paper.

This module is loaded by those who plot. pyplot is left alone: a chart has a figure of its own, or
the axes that are given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ordinate.errors import BadOption, BadOutput, shorten
from ordinate.render import charts
from ordinate.render.atomic_files import UNLOCKED_PREFIX, find_target, replace_file
from ordinate.render.charts import COLOURS, SHAPES, Axis, Chart, Panel, Side, shorten_label
from ordinate.render.records import make_frame

WIDTH, LEAST_WIDTH = 7.2, 2.4  # inches of a figure; of a panel without its levels
ROW, HEIGHT = 0.3, 2.6  # inches of a level, and of an axis of numbers
LETTER, LEAST_STEP = 0.08, 0.16  # inches of a letter, on average; between labels that are turned
CELL_FONT, SMALLEST_FONT = 9.0, 4.0  # points of texts in cells, which are not drawn below
SHADES = LinearSegmentedColormap.from_list("", (charts.OTHER_SHADE, "#f4f6f8", charts.SHADE))
MOST_LETTERS = 48  # of a title
ENDS = {True: "|-", False: "_-"}  # of intervals along x, and upright
MARKERS = dict(zip(SHAPES, "osD^ox", strict=True))
DASHES = ("-", *((0, dash) for dash in ((7, 3), (2, 3), (9, 3, 2, 3), (12, 4), (4, 6))))
HATCHES = ("", "//", "..", "\\\\", "xx", "++")
PLAIN: dict[str, Any] = {"usetex": False, "parse_math": False}  # a label is neither LaTeX nor math
TEXT = PLAIN | {"fontsize": "small", "va": "center", "textcoords": "offset points"}
# Without the time, the same figure is the same file.
METADATA = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
# Journals want TrueType fonts; text in SVG stays text.
FILES: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "ordinate"}


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
        named = METADATA[suffix] | {"Title": shorten_label(self.chart.title, 200)}
        with mpl.rc_context(FILES):
            figure.savefig(content, format=suffix[1:], metadata=named, bbox_inches="tight", dpi=dpi)
        return content.getvalue()


def draw(chart: Chart, ax: Axes | Sequence[Axes] | np.ndarray | None = None) -> Display:
    """Draw a chart on axes, or on a new figure.

    One axes makes room for all panels of the chart; several are taken for one panel each.
    """
    figure = Figure(_measure(chart), layout="constrained") if ax is None else None
    axes = _find_axes(chart, figure.add_subplot() if figure else ax)
    for panel, each in zip(chart.panels, axes, strict=True):
        _draw_panel(chart, panel, each)
    _draw_legend(chart, figure or axes[0])
    _draw_shades(chart, axes)
    shown = axes[0] if len(axes) == 1 else np.array(axes, dtype=object)
    return Display(chart, axes[0].figure, shown)


def _find_axes(chart: Chart, given: Any) -> list[Axes]:
    """Return axes for each panel; side by side, they have the labels that they share once."""
    axes: list[Axes] = list(np.atleast_1d(np.asarray(given, dtype=object)).flat)
    if len(axes) == len(chart.panels):
        return axes
    place = axes[0].get_subplotspec() if isinstance(given, Axes) else None
    if place is None:
        raise BadOption(
            f"The chart {chart.name!r} has {len(chart.panels)} panels: give as many axes (not "
            f"{len(axes)}), one subplot for all of them, or none."
        )
    figure = axes[0].figure
    axes[0].remove()
    grid = place.subgridspec(-(-len(chart.panels) // chart.columns), chart.columns)
    axes = [figure.add_subplot(grid[divmod(k, chart.columns)]) for k in range(len(chart.panels))]
    for k, ax in enumerate(axes):
        ax.yaxis.set_tick_params(labelleft=not chart.shares_labels(k))
        ax.yaxis.label.set_visible(not chart.shares_labels(k))
    return axes


def _measure(chart: Chart) -> tuple[float, float]:
    """Return the inches of a figure in which panels and levels have room; a matrix takes less."""
    sides = [[panel.x or chart.x, panel.y or chart.y] for panel in chart.panels]
    below, beside = (_measure_levels(axes) for axes in zip(*sides, strict=True))
    labelled = sum(not chart.shares_labels(k) for k in range(min(chart.columns, len(sides))))
    least = beside * labelled + LEAST_WIDTH * chart.columns
    cells = any(isinstance(mark, charts.Cell) for mark in chart.list_marks())
    width = min(WIDTH, least + 0.5 * len(chart.x.levels)) if cells else WIDTH
    height = max(ROW * len(y.levels) if y.kind == "ordered" else HEIGHT for _, y in sides)
    rows = -(-len(sides) // chart.columns)
    return max(least, width), rows * (height + 0.8 + 0.8 * below)  # levels may be turned


def _measure_levels(axes: Iterable[Axis]) -> float:
    """Return the inches of the longest level."""
    return LETTER * max((len(shorten_label(x)) for axis in axes for x in axis.levels), default=0)


def _set_axis(ax: Axes, side: Side, axis: Axis) -> None:
    """Give the axes their levels or numbers on a side, and a label."""
    artist = ax.xaxis if side == "x" else ax.yaxis
    artist.set_label_text(shorten_label(axis.label, MOST_LETTERS), **PLAIN)
    artist.set_tick_params(length=0)
    if axis.kind == "ordered":
        labels, bounds = [*map(shorten_label, axis.levels)], (-0.5, len(axis.levels) - 0.5)
        turned: dict[str, Any] = {}
        room = ax.bbox.width / ax.figure.dpi / max(len(labels), 1)
        if side == "x" and _measure_levels([axis]) > 0.9 * room:
            turned = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"}
            labels = charts.thin_labels(labels, room, LEAST_STEP)
        artist.set_ticks(range(len(labels)), labels=labels, **PLAIN, **turned)
        ax.set(**{f"{side}lim": bounds if side == "x" else bounds[::-1]})  # downwards
        return
    log = axis.kind == "log"
    ax.set(**{f"{side}scale": "log" if log else "linear"})
    ax.set(**{f"{side}lim": charts.widen(axis.low or 0.0, axis.high or 0.0, log=log, share=0.02)})
    if not log:
        ax.locator_params(axis=side, integer=axis.integer, min_n_ticks=1)
        ax.ticklabel_format(axis=side, useOffset=False)
    artist.grid(visible=True, color="#d9dee3")


def _draw_panel(chart: Chart, panel: Panel, ax: Axes) -> None:
    x, y = chart.get_axes(panel)
    _set_axis(ax, "x", x)
    _set_axis(ax, "y", y)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)
    ax.set_title(shorten_label(panel.title, MOST_LETTERS), loc="left", fontsize="medium", **PLAIN)
    if cells := [mark for mark in panel.marks if isinstance(mark, charts.Cell)]:
        _draw_cells(ax, cells, x, y)
    ranks = {name: rank % len(SHAPES) for rank, name in enumerate(chart.series)}
    for mark in panel.marks:
        _draw_mark(ax, mark, (x, y), ranks.get(getattr(mark, "series", ""), 0))


def _locate(axis: Axis, places: Any) -> np.ndarray:
    """Return the coordinates of a place or several: levels by their number."""
    several = places if isinstance(places, tuple) else (places,)
    return np.array([axis.levels.index(x) if isinstance(x, str) else x for x in several], float)


def _keep_known(*rows: Any) -> np.ndarray:
    """Return rows without the columns in which something is undefined, and is not drawn."""
    columns = np.array(np.broadcast_arrays(*rows), float)
    return columns[:, np.isfinite(columns).all(axis=0)]


def _draw_cells(ax: Axes, marks: list[charts.Cell], x: Axis, y: Axis) -> None:
    shades = np.full((len(y.levels), len(x.levels)), np.nan)
    longest = max(1, *(len(mark.text) for mark in marks))
    size = min(CELL_FONT, 116 * ax.bbox.width / ax.figure.dpi / len(x.levels) / longest)
    for mark in marks:
        column, row = x.levels.index(mark.x), y.levels.index(mark.y)
        shades[row, column] = mark.shade
        if mark.text and size >= SMALLEST_FONT:
            dark = abs(mark.shade) > charts.DARKEST_FOR_BLACK[mark.shade < 0]
            style: Any = {"color": "white" if dark else "black", "ha": "center", "va": "center"}
            ax.text(column, row, shorten_label(mark.text), fontsize=size, **style, **PLAIN)
    edges = (np.arange(n + 1) - 0.5 for n in shades.shape[::-1])
    known = np.ma.masked_invalid(shades)
    ax.pcolormesh(*edges, known, cmap=SHADES, vmin=-1, vmax=1, edgecolors="w", linewidth=1)


def _draw_mark(ax: Axes, mark: charts.Mark, sides: tuple[Axis, Axis], rank: int) -> None:
    own, along_x = _style(type(mark), rank), charts.runs_along_x(*sides)
    x, y = _locate(sides[0], mark.x), _locate(sides[1], mark.y)
    match mark:
        case charts.Bar():
            middle, end, base = _keep_known(*((y, x) if along_x else (x, y)), mark.base)
            width = 0.6 if mark.width is None else 0.94 * mark.width
            (ax.barh if along_x else ax.bar)(middle, end - base, width, base, **own)
        case charts.Point():
            ax.plot(*_keep_known(x, y), **own)
            # No errorbar: an interval need not hold its value. An open one ends with the axis.
            low, high = sorted(ax.get_xlim() if along_x else ax.get_ylim())
            ends = np.clip((mark.low, mark.high), low, high)
            interval = _keep_known(ends, *((y, x) if along_x else (x, y)))[:2]
            ax.plot(*interval[:: 1 if along_x else -1], ENDS[along_x], color=COLOURS[rank])
        case charts.Line():
            ax.plot(*_keep_known(x, y), **own)
            if mark.low and mark.high:
                band = _keep_known(x, mark.low, mark.high)
                ax.fill_between(*band, color=COLOURS[rank], alpha=0.18, linewidth=0)
        case charts.Rule():
            for draw_rule, places in ((ax.axvline, x), (ax.axhline, y)):
                for place in _keep_known(places).flat:
                    draw_rule(place, **own)
        case charts.Text():
            style = TEXT | {"color": COLOURS[rank] if mark.series else "black"}
            for place in _keep_known(x, y).T.tolist():
                ax.annotate(shorten_label(mark.text), tuple(place), (5, 0), **style)


def _style(kind: type, rank: int) -> dict[str, Any]:
    """Return how a series is drawn: in its colour, and with its hatch, its marker or its dash."""
    if kind is charts.Bar:
        return {"facecolor": COLOURS[rank], "hatch": HATCHES[rank], "edgecolor": "w", "alpha": 0.6}
    if kind is not charts.Point:
        return {"color": COLOURS[rank], "linestyle": DASHES[rank]}
    marker = {"marker": MARKERS[SHAPES[rank]], "color": COLOURS[rank], "linestyle": "none"}
    return marker | {"fillstyle": "none" if SHAPES[rank] == "ring" else "full"}


def _draw_legend(chart: Chart, where: Figure | Axes) -> None:
    """Draw the entries of series, above the panels of a figure of our own."""
    handles: list[Any] = []
    for name in chart.list_legend():
        drawn = {type(mark) for mark in chart.list_marks() if getattr(mark, "series", "") == name}
        kind = next((x for x in (charts.Bar, charts.Line, charts.Rule) if x in drawn), charts.Point)
        style = _style(kind, chart.series.index(name) % len(SHAPES))
        handles.append(Patch(**style) if kind is charts.Bar else Line2D([], [], **style))
    above: Any = {"loc": "outside upper left", "ncols": 3} if isinstance(where, Figure) else {}
    if handles:  # and then their names: matplotlib leaves out what begins with an underscore
        legend = where.legend(handles, ["series"] * len(handles), frameon=False, **above)
        for text, name in zip(legend.get_texts(), chart.list_legend(), strict=True):
            text.set(text=shorten_label(name), **PLAIN)


def _draw_shades(chart: Chart, axes: list[Axes]) -> None:
    """Draw the scale of the shades of cells beside the panels."""
    meshes = [mesh for ax in axes for mesh in ax.collections if mesh.get_cmap() is SHADES]
    if meshes:
        bar = axes[0].figure.colorbar(meshes[0], ax=axes, shrink=0.8, aspect=25)
        places, names = zip(*chart.shade_ticks, strict=True)
        bar.set_ticks(places, labels=[*map(shorten_label, names)], **PLAIN)
        bar.set_label(shorten_label(chart.shades, MOST_LETTERS), **PLAIN)
        bar.ax.set_ylim(min(0.0, *places), 1)
        bar.outline.set_visible(False)
