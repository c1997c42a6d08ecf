"""Terminals: intervals as bars beside the rows of a table, shades beside the cells of a matrix.

A table that names its view is illustrated in place, by the marks of that view. Nothing that the
table says gives way: bars and shades take the room that it leaves.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from ordinate.render.charts import (
    Axis,
    Bar,
    Cell,
    Chart,
    Mark,
    Panel,
    Place,
    Point,
    Rule,
    find_share,
    find_ticks,
    format_ticks,
    is_missing,
    runs_along_x,
    shorten_label,
)
from ordinate.render.document import Grid
from ordinate.render.text import GAP, find_room, measure_width

LEAST_BAR, MOST_BAR = 10, 32  # columns of a terminal
POINTS = "●■◆▲○×"  # the shapes of charts
RULES = "│┆║┊╎┃"
BAR = "─"
INTERVAL = {(True, True): "━", (False, True): "╺", (True, False): "╸"}  # halves of a column
SHADES = " ░▒▓█"
COLOURS = (32, 166, 29, 133, 100, 244)  # of 256, the nearest to those of charts
NOTHING = 1e-6  # of a column: what is as good as equal is drawn at one place
Rows = list[list[str]]  # texts, the head first


@dataclass(frozen=True)
class Illustrator:
    """Illustrates tables by the views of their result, with or without colours."""

    make_charts: Callable[[], Iterable[Chart]]
    colours: bool = False

    def illustrate(self, grid: Grid, rows: Rows, width: int) -> tuple[Rows, str]:
        """Return the texts of a table with bars or shades, and a legend."""
        if grid.view is None:
            return rows, ""
        chart = next((x for x in self.make_charts() if (x.name, x.variant) == grid.view), None)
        if chart is None:
            return rows, ""
        if all(isinstance(mark, Cell) for mark in chart.list_marks()):
            return self._shade_cells(chart, grid, rows, width), ""
        return self._add_bars(chart, grid, rows, width)

    def _add_bars(self, chart: Chart, grid: Grid, rows: Rows, width: int) -> tuple[Rows, str]:
        room = min(find_room(grid, rows, width) - len(GAP), MOST_BAR)
        found = [_find_marks(chart, [str(cell) for cell in row[: grid.left]]) for row in grid.rows]
        if room < LEAST_BAR or not any(marks for _, marks in found):
            return rows, ""
        bars = [self._draw_marks(chart, panel, marks, room) for panel, marks in found]
        column = [_write_head(chart, room), *bars]
        illustrated = [[*row, cell] for row, cell in zip(rows, column, strict=True)]
        return illustrated, self._write_legend(chart)

    def _draw_marks(self, chart: Chart, panel: Panel, marks: list[Mark], room: int) -> str:
        """Return marks along the axis of a panel, in so many columns."""
        axis, _ = chart.get_axes(panel)
        ranks = {name: k % len(POINTS) for k, name in enumerate(chart.series)}
        canvas = [(" ", 0)] * room
        for letter in sorted(_list_letters(marks, axis, room, ranks), key=lambda x: x.layer):
            canvas[letter.at] = letter.text, letter.rank
        runs = groupby(canvas, key=lambda x: (x[0] != " ", x[1]))
        return "".join(self._paint("".join(x for x, _ in run), rank) for (_, rank), run in runs)

    def _write_legend(self, chart: Chart) -> str:
        """Return what the signs stand for, and whether rows share an axis."""
        entries = []
        for name in chart.list_legend():
            rank = chart.series.index(name) % len(POINTS)
            kinds = {type(x) for x in chart.list_marks() if getattr(x, "series", "") == name}
            sign = BAR if Bar in kinds else (RULES if Rule in kinds else POINTS)[rank]
            entries.append(f"{self._paint(sign, rank)} {shorten_label(name)}")
        apart = [] if _shares_axis(chart) else ["each row on an axis of its own"]
        return ", ".join([*entries, *apart])

    def _shade_cells(self, chart: Chart, grid: Grid, rows: Rows, width: int) -> Rows:
        """Return a matrix with a shade before each number, as wide as there is room for."""
        shades = {(x.y, x.x): x.shade for x in chart.list_marks() if isinstance(x, Cell)}
        lines, columns = len(grid.rows) - grid.totals, len(chart.x.levels)
        names = tuple(str(row[0]) for row in grid.rows[:lines])
        room = find_room(grid, rows, width) // columns
        if room < 1 or (names, grid.header[1 : 1 + columns]) != (chart.y.levels, chart.x.levels):
            return rows
        illustrated = [list(row) for row in rows]
        for j, column in enumerate(chart.x.levels, 1):
            digits = max(measure_width(row[j]) for row in rows[1:])
            for i, line in enumerate(chart.y.levels, 1):
                shade = shades.get((line, column), 0.0)
                block = self._paint(_find_shade(shade) * min(room, 2), 0 if shade > 0 else 1)
                illustrated[i][j] = block + rows[i][j].rjust(digits + (room > 2))
        return illustrated

    def _paint(self, text: str, rank: int) -> str:
        if not self.colours or text.isspace():
            return text
        return f"\x1b[38;5;{COLOURS[rank]}m{text}\x1b[39m"


def _find_shade(shade: float) -> str:
    return " " if is_missing(shade) else SHADES[math.ceil(4 * min(abs(shade), 1.0))]


# --- bars ----------------------------------------------------------------------------------------


def _shares_axis(chart: Chart) -> bool:
    return not any(panel.name for panel in chart.panels)


def _find_marks(chart: Chart, names: list[str]) -> tuple[Panel, list[Mark]]:
    """Return the marks of a row by one of its names: a panel of its own, or a level of the first.

    What goes across all levels is drawn in each row.
    """
    panel = next((x for x in chart.panels if x.name and x.name in names), chart.panels[0])
    if panel.name:
        return panel, list(panel.marks) if panel.name in names else []
    if not runs_along_x(*chart.get_axes(panel)):
        return panel, []
    marks: list[Mark] = [x for x in panel.marks if isinstance(x, Rule) or x.y in names]
    return panel, marks if any(not isinstance(x, Rule) for x in marks) else []


@dataclass(frozen=True)
class _Letter:
    """A letter in a column; those of higher layers cover others."""

    layer: int
    at: int
    text: str
    rank: int


def _list_letters(
    marks: list[Mark], axis: Axis, room: int, ranks: dict[str, int]
) -> Iterator[_Letter]:
    """Yield the letters of marks: bars lie below rules, these below intervals and points."""
    for mark in marks:
        if is_missing(mark.x):  # type: ignore[arg-type] # a place: no line runs along x
            continue
        rank = ranks.get(getattr(mark, "series", ""), 0)
        at = _find_column(axis, mark.x, room)  # type: ignore[arg-type] # the same
        if isinstance(mark, Bar):
            ends = sorted((at, _find_column(axis, mark.base, room)))
            yield from (_Letter(0, k, BAR, rank) for k in range(ends[0], ends[1] + 1))
        elif isinstance(mark, Rule):
            yield _Letter(1, at, RULES[rank], rank)
        elif isinstance(mark, Point):
            yield from _list_interval(mark, axis, room, rank)
            yield _Letter(3, at, POINTS[rank], rank)


def _list_interval(mark: Point, axis: Axis, room: int, rank: int) -> Iterator[_Letter]:
    """Yield an interval, which may begin and end in the middle of a column."""
    if math.isnan(mark.low) or math.isnan(mark.high):
        return
    low = math.floor(2 * room * _measure(axis, mark.low) + NOTHING)
    high = math.ceil(2 * room * _measure(axis, mark.high) - NOTHING)
    for at in range(low // 2, min((high + 1) // 2, room)):
        halves = (low <= 2 * at < high, low <= 2 * at + 1 < high)
        if any(halves):
            yield _Letter(2, at, INTERVAL[halves], rank)


def _find_column(axis: Axis, value: Place, room: int) -> int:
    return min(int(_measure(axis, value) * room + NOTHING), room - 1)


def _measure(axis: Axis, value: Place) -> float:
    """Return where a value lies between the ends of an axis."""
    return min(max(find_share(axis, value), 0.0), 1.0)


def _write_head(chart: Chart, room: int) -> str:
    """Return the ticks of the axis that all rows share, at their places."""
    if not _shares_axis(chart):
        return ""
    axis, _ = chart.get_axes(chart.panels[0])
    ticks = find_ticks(axis, max(2, room // 8))
    head = ""
    for tick, text in zip(ticks, format_ticks(ticks), strict=True):
        start = min(_find_column(axis, tick, room) - len(text) // 2, room - len(text))
        if start > len(head) or not head:
            head = head.ljust(start) + text
    return head.ljust(room)
