"""SVG: charts as drawings that a browser shows, with text as text, in light and in dark.

Colours are CSS variables. A drawing of its own (`render`) carries its style sheet; a page that has
several (`render_drawing`) carries it once.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from unicodedata import east_asian_width

from ordinate.errors import replace_control_characters
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
    Text,
    find_share,
    find_ticks,
    format_ticks,
    is_missing,
    runs_along_x,
    shorten_label,
    thin_labels,
)

WIDTH = 640.0  # of a drawing: two have room side by side on a laptop
NARROW_WIDTH = 400.0  # of one for a phone, which shows it a little smaller
MOST_NARROW_COLUMNS = 8  # of cells that have room for their texts there
LETTER = 7.5  # width of a letter, on average in a wide font
NARROW, WIDE = frozenset("fijlrtI()[]{}|.,:;!'` "), frozenset("mwMWGOQ@%&_…—<>=+")
ROW, WIDE_ROW = 26.0, 34.0  # height of a level; of a level in a matrix of few
LEAST_STEP = 14.0  # between labels that are turned
NUMERIC_HEIGHT = 250.0
MOST_DETAIL = 400  # letters of what is shown on demand
EDGE, BESIDE = 12.0, 9.0
BOLD = 1.15  # width of a bold letter beside that of a usual one
PALEST_FOR_BLACK = {False: 0.59, True: 0.57}  # on dark paper, as `DARKEST_FOR_BLACK` on light
LEGEND_ROW = 20.0
LIGHT = (
    "--ink:#1d2327;--soft:#5c6670;--grid:#d9dee3;--paper:#fff;--on-pale:#000;--on-full:#fff;"
    f"--shade:{SHADE};--other:{OTHER_SHADE};"
    + "".join(f"--c{k}:{colour};" for k, colour in enumerate(COLOURS))
)
DARK = (
    "--ink:#e8ecef;--soft:#a3adb6;--grid:#3a424a;--paper:#15191d;--on-pale:#fff;--on-full:#000;"
    "--shade:#6cb6ee;--other:#f0a35e;"
    "--c0:#5ab4f0;--c1:#f5a25d;--c2:#3fcf9f;--c3:#e39ac4;--c4:#e0cf58;--c5:#c9c9c9;"
)


def write_themes(selector: str) -> str:
    """Return the rules that give an element its colours; paper is always light."""
    return (
        f"{selector}{{{LIGHT}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{{selector}{{{DARK}}}}}\n"
    )


STYLE = (
    write_themes(".ordinate-chart")
    + """\
.ordinate-chart{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
max-width:100%;height:auto}
.ordinate-chart text{fill:var(--ink)}
.ordinate-chart .soft{fill:var(--soft)}
.ordinate-chart .strong{font-weight:600}
.ordinate-chart .on-pale{fill:var(--on-pale)}
.ordinate-chart .on-half{fill:#000}
.ordinate-chart .on-full{fill:var(--on-full)}
.ordinate-chart .grid{stroke:var(--grid);fill:none}
.ordinate-chart .more{fill:var(--shade)}
.ordinate-chart .less{fill:var(--other)}
.ordinate-chart .d1{stroke-dasharray:7 3}
.ordinate-chart .d2{stroke-dasharray:2 3}
.ordinate-chart .d3{stroke-dasharray:9 3 2 3}
.ordinate-chart .d4{stroke-dasharray:12 4}
.ordinate-chart .d5{stroke-dasharray:4 6}
"""
)
STYLE += "\n".join(
    f".ordinate-chart .s{k}{{fill:var(--c{k});stroke:var(--c{k})}}\n"
    f".ordinate-chart .t{k}{{fill:var(--c{k})}}"
    for k in range(len(SHAPES))
)
STYLE += """
.ordinate-chart .line{fill:none;stroke-width:2px}
.ordinate-chart .band{opacity:.18;stroke:none}
.ordinate-chart .bar{fill-opacity:.3}
"""


def render(chart: Chart) -> str:
    """Return a chart as an SVG file, which carries its style sheet."""
    return render_drawing(chart, style=STYLE) + "\n"


def render_narrow_drawing(chart: Chart) -> str:
    """Return a chart for a phone, its panels one below the other; none if its cells need room."""
    cells = any(isinstance(mark, Cell) for mark in chart.list_marks())
    if cells and len(chart.x.levels) > MOST_NARROW_COLUMNS:
        return ""
    return render_drawing(replace(chart, columns=1), width=NARROW_WIDTH)


def render_drawing(chart: Chart, *, style: str = "", width: float = WIDTH) -> str:
    """Return a chart as an element of a page; one of cells is as wide as they need."""
    legend, right, top = _draw_legend(chart, width)
    frames = _lay_out(chart, top, width)
    parts = [
        legend,
        *(_draw_panel(chart, panel, x) for panel, x in zip(chart.panels, frames, strict=True)),
    ]
    bottom = max((frame.end for frame in frames), default=top)
    cells = all(isinstance(mark, Cell) for mark in chart.list_marks())
    right = max([right, *(x.left + x.width + EDGE for x in frames)]) if cells else width
    size = f'width="{right:.0f}" height="{bottom:.0f}" viewBox="0 0 {right:.0f} {bottom:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ordinate-chart" role="img" {size}>'
        + (f"<style>{style}</style>" if style else "")
        + f"<title>{escape_text(chart.title)}</title><desc>{escape_text(chart.description)}</desc>"
        + "".join(parts)
        + "</svg>"
    )


# --- where things lie ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """The rectangle of a panel's marks, and how places on its axes become coordinates."""

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float
    end: float  # below the axis and its title
    turned: bool  # levels at the x-axis stand upright
    bare: bool  # the panel to the left has the labels of the y-axis

    @classmethod
    def fit(
        cls, chart: Chart, panel: Panel, left: float, top: float, width: float, *, bare: bool
    ) -> "_Frame":
        """Return the frame of a panel whose marks begin at `left` and have some width."""
        x, y = chart.get_axes(panel)
        cells = any(isinstance(mark, Cell) for mark in panel.marks)
        if cells:  # which are as wide as they need to be
            width = min(width, max(len(x.levels), 1) * 64.0)
        width = max(min(width, _fit_texts(panel, x, width)), 60.0)
        head = (18.0 if panel.title else 0.0) + 8
        longest = _measure_labels(x)
        turned = _are_turned(x, width)
        below = (0.8 * longest + 10 if turned else 20.0) + (18.0 if x.label else 4.0) + 8
        height = NUMERIC_HEIGHT
        if y.kind == "ordered":
            tall = WIDE_ROW if cells and len(y.levels) <= 12 else ROW
            height = tall * max(len(y.levels), 1)
        end = top + head + height + below
        return cls(x, y, left, top + head, width, height, end, turned, bare)

    def place_x(self, place: Place) -> float:
        """Return the coordinate of a place on the x-axis."""
        return self.left + self.width * find_share(self.x, place)

    def place_y(self, place: Place) -> float:
        """Return the coordinate of a place on the y-axis: numbers rise, levels follow downwards."""
        share = find_share(self.y, place)
        return self.top + self.height * (share if self.y.kind == "ordered" else 1 - share)

    @property
    def step_x(self) -> float:
        """The width of a level of the x-axis."""
        return self.width / max(len(self.x.levels), 1)

    @property
    def step_y(self) -> float:
        """The height of a level of the y-axis."""
        return self.height / max(len(self.y.levels), 1)


def _lay_out(chart: Chart, top: float, whole: float) -> list[_Frame]:
    """Return the frames of all panels: columns are as wide as each other, rows follow downwards.

    Panels of a row that share the y-axis have its labels once.
    """
    columns = max(1, min(chart.columns, len(chart.panels)))
    bare = [chart.shares_labels(k) for k in range(len(chart.panels))]
    margins = [
        max(
            _measure_margin(chart, panel, whole / columns, bare=hidden)
            for panel, hidden in zip(chart.panels[k::columns], bare[k::columns], strict=True)
        )
        for k in range(columns if chart.panels else 0)
    ]
    width = (whole - sum(margins) - EDGE * columns) / columns
    lefts = [sum(margins[: k + 1]) + k * (width + EDGE) for k in range(len(margins))]
    frames: list[_Frame] = []
    for start in range(0, len(chart.panels), columns):
        row = zip(lefts, chart.panels[start : start + columns], bare[start:], strict=False)
        frames += [
            _Frame.fit(chart, panel, left, top, width, bare=hidden) for left, panel, hidden in row
        ]
        top = max(frame.end for frame in frames)
    return frames


def _measure_margin(chart: Chart, panel: Panel, width: float, *, bare: bool) -> float:
    """Return the room to the left of a panel's marks, for its labels and for turned ones."""
    x, y = chart.get_axes(panel)
    labels = 10.0 if bare else _measure_labels(y) + (16 if y.label else 0)
    turned = 0.0
    if _are_turned(x, width):
        turned = 0.64 * _measure_labels(x) - width / len(x.levels) / 2
    return max(labels + 12, turned)


def _measure_labels(axis: Axis) -> float:
    """Return the width of the longest label of an axis."""
    return max(map(_measure_text, _list_labels(axis)), default=0.0)


def _measure_text(text: str) -> float:
    """Return about how wide a text is drawn."""
    return LETTER * sum(
        0.6 if x in NARROW else 1.4 if x in WIDE or east_asian_width(x) in "WF" else 1.0
        for x in text
    )


def _shorten_to_width(text: str, width: float) -> str:
    """Return a title on one line that is about so wide at most."""
    most = min(len(text), int(width / (0.6 * LETTER)) + 1)
    while most > 1 and _measure_text(shorten_label(text, most)) > width:
        most -= 1
    return shorten_label(text, most)


def _are_turned(x: Axis, width: float) -> bool:
    """Say whether the levels of an x-axis are too long to stand side by side."""
    return x.kind == "ordered" and _measure_labels(x) > width / max(len(x.levels), 1) - 4


def _fit_texts(panel: Panel, x: Axis, width: float) -> float:
    """Return the width that leaves room for texts on the right."""
    rooms = [
        (width + EDGE - _measure_text(shorten_label(mark.text)) - BESIDE) / share
        for mark in panel.marks
        if isinstance(mark, Text) and (share := find_share(x, mark.x)) > 0
    ]
    return min(rooms, default=width)


def _list_labels(axis: Axis) -> list[str]:
    """Return what stands at an axis."""
    if axis.kind == "ordered":
        return [shorten_label(level) for level in axis.levels]
    return format_ticks(find_ticks(axis))


def _shorten_middle(text: str, most: int = MOST_DETAIL) -> str:
    """Return a detail without the middle of a very long name: numbers stand at the end."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"


def escape_text(text: str) -> str:
    """Return a text in which nothing is markup and nothing drives a terminal."""
    return escape(replace_control_characters(text))


# --- panels --------------------------------------------------------------------------------------


def _draw_panel(chart: Chart, panel: Panel, frame: _Frame) -> str:
    parts = [*_draw_x_axis(frame), *_draw_y_axis(frame)]
    if panel.title:
        title = _shorten_to_width(panel.title, (frame.width + EDGE) / BOLD)
        parts.append(_draw_text(frame.left, frame.top - 12, title, "strong"))
    ranks = {name: k % len(SHAPES) for k, name in enumerate(chart.series)}
    parts += [
        _DRAWERS[type(mark)](mark, frame, ranks.get(getattr(mark, "series", ""), 0))
        for mark in panel.marks
    ]
    return "<g>" + "".join(parts) + "</g>"


def _draw_x_axis(frame: _Frame) -> Iterator[str]:
    bottom = frame.top + frame.height
    if frame.x.kind == "ordered":
        labels = [*map(shorten_label, frame.x.levels)]
        if frame.turned:
            labels = thin_labels(labels, frame.step_x, LEAST_STEP)
        for level, label in zip(frame.x.levels, labels, strict=True):
            at = frame.place_x(level)
            if label and frame.turned:
                turn = f' transform="rotate(-50 {at + 4:.1f} {bottom + 12:.1f})"'
                yield _draw_text(at + 4, bottom + 12, label, "", "end", turn)
            elif label:
                yield _draw_text(at, bottom + 15, label, "", "middle")
    else:
        ticks = _choose_ticks(frame.x, frame.width)
        for tick, text in zip(ticks, format_ticks(ticks), strict=True):
            at = frame.place_x(tick)
            yield f'<path class="grid" d="M{at:.1f} {frame.top:.1f}V{bottom:.1f}"/>'
            yield _draw_text(_keep_inside(frame, at, text), bottom + 15, text, "soft", "middle")
    if frame.x.label:
        label = _shorten_to_width(frame.x.label, max(20 * LETTER, frame.width + EDGE))
        at = _keep_inside(frame, frame.left + frame.width / 2, label)
        yield _draw_text(at, frame.end - 10, label, "soft", "middle")


def _keep_inside(frame: _Frame, middle: float, text: str) -> float:
    """Return where the middle of a text lies, so that neither end is cut off."""
    half = _measure_text(text) / 2
    return max(min(middle, frame.left + frame.width + EDGE - half), half)


def _choose_ticks(x: Axis, width: float) -> list[float]:
    """Return as many ticks as have room side by side, six at most."""
    choices = (find_ticks(x, most) for most in range(6, 1, -1))
    return next(
        (
            ticks
            for ticks in choices
            if sum(_measure_text(text) + 14 for text in format_ticks(ticks)) <= width
        ),
        find_ticks(x, 2),
    )


def _draw_y_axis(frame: _Frame) -> Iterator[str]:
    if frame.y.kind == "ordered":
        for level in [] if frame.bare else frame.y.levels:
            yield _draw_text(
                frame.left - 8, frame.place_y(level) + 4, shorten_label(level), "", "end"
            )
    else:
        ticks = find_ticks(frame.y)
        for tick, text in zip(ticks, format_ticks(ticks), strict=True):
            at = frame.place_y(tick)
            right = frame.left + frame.width
            yield f'<path class="grid" d="M{frame.left:.1f} {at:.1f}H{right:.1f}"/>'
            if not frame.bare:
                yield _draw_text(frame.left - 8, at + 4, text, "soft", "end")
    if frame.y.label and not frame.bare:
        label = _shorten_to_width(frame.y.label, frame.end - frame.top)
        x = frame.left - _measure_labels(frame.y) - 16
        y = max(frame.top + frame.height / 2, frame.top + _measure_text(label) / 2 - 8)
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"'
        yield _draw_text(x, y, label, "soft", "middle", turn)


def _draw_text(
    x: float, y: float, text: str, style: str = "", anchor: str = "start", more: str = ""
) -> str:
    kind = f' class="{style}"' if style else ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}{side}{more}>{escape_text(text)}</text>'


# --- marks ---------------------------------------------------------------------------------------


def _draw_cell(mark: Cell, frame: _Frame, _rank: int) -> str:
    x, y = frame.place_x(mark.x), frame.place_y(mark.y)
    shade = 0.0 if math.isnan(mark.shade) else max(-1.0, min(1.0, mark.shade))
    box = (
        f'<rect x="{x - frame.step_x / 2 + 0.5:.1f}" y="{y - frame.step_y / 2 + 0.5:.1f}" '
        f'width="{frame.step_x - 1:.1f}" height="{frame.step_y - 1:.1f}" rx="2" '
        f"{_style_shade(shade)}/>"
    )
    text = mark.text if _measure_text(mark.text) <= frame.step_x else ""
    style = _choose_text_style(shade)
    return _wrap(mark.detail, box + (_draw_text(x, y + 4, text, style, "middle") if text else ""))


def _choose_text_style(shade: float) -> str:
    """Return the style of a text on a cell: its contrast is at least 4.5, in light and in dark."""
    if abs(shade) > DARKEST_FOR_BLACK[shade < 0]:
        return "on-full"
    return "on-half" if abs(shade) > PALEST_FOR_BLACK[shade < 0] else "on-pale"


def _draw_bar(mark: Bar, frame: _Frame, rank: int) -> str:
    along_x = runs_along_x(frame.x, frame.y)
    place, other = (frame.place_x, frame.place_y) if along_x else (frame.place_y, frame.place_x)
    value, level = (mark.x, mark.y) if along_x else (mark.y, mark.x)
    if is_missing(value) or is_missing(mark.base):
        return ""
    ends = sorted((place(mark.base), place(value)))
    step = frame.step_y if along_x else frame.step_x
    if mark.width is None or isinstance(level, str):
        thick, middle = 0.6 * step, other(level)
    else:
        sides = [other(level - mark.width / 2), other(level + mark.width / 2)]
        thick, middle = abs(sides[1] - sides[0]) * 0.94, sum(sides) / 2
    start, size = ends[0], max(ends[1] - ends[0], 0.5)
    x, y, width, height = (
        (start, middle - thick / 2, size, thick)
        if along_x
        else (middle - thick / 2, start, thick, size)
    )
    box = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'class="bar s{rank}"/>'
    )
    return _wrap(mark.detail, box)


def _draw_point(mark: Point, frame: _Frame, rank: int) -> str:
    if is_missing(mark.x) or is_missing(mark.y):
        return ""
    x, y = frame.place_x(mark.x), frame.place_y(mark.y)
    interval = ""
    if not (math.isnan(mark.low) or math.isnan(mark.high)):
        if runs_along_x(frame.x, frame.y):
            low, high = frame.place_x(mark.low), frame.place_x(mark.high)
            path = f"M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8"
        else:
            low, high = frame.place_y(mark.low), frame.place_y(mark.high)
            path = f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8"
        interval = f'<path class="s{rank}" stroke-width="1.6" d="{path}"/>'
    return _wrap(mark.detail, interval + _draw_shape(SHAPES[rank], x, y, f"s{rank}"))


def _draw_shape(shape: str, x: float, y: float, style: str) -> str:
    if shape in {"circle", "ring"}:
        inside = ' fill-opacity="0"' if shape == "ring" else ""
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" class="{style}"{inside}/>'
    paths = {
        "square": "m-4 -4h8v8h-8z",
        "diamond": "m0 -5.4l5.4 5.4l-5.4 5.4l-5.4 -5.4z",
        "triangle": "m0 -5l5 9h-10z",
        "cross": "m-4 -4l8 8m0 -8l-8 8",
    }
    return f'<path class="{style}" d="M{x:.1f} {y:.1f}{paths[shape]}"/>'


def _draw_line(mark: Line, frame: _Frame, rank: int) -> str:
    band = ""
    if mark.low and mark.high:
        edge: list[tuple[Place, Place]] = [*zip(mark.x, mark.high, strict=True)]
        edge += reversed([*zip(mark.x, mark.low, strict=True)])
        path = _connect(edge, frame)
        band = f'<path class="band s{rank}" d="{path}Z"/>' if path else ""
    path = _connect([*zip(mark.x, mark.y, strict=True)], frame)
    return _wrap(mark.detail, band + _draw_path(path, rank))


def _draw_rule(mark: Rule, frame: _Frame, rank: int) -> str:
    bottom, right = frame.top + frame.height, frame.left + frame.width
    paths = []
    if not is_missing(mark.x):
        paths.append(f"M{frame.place_x(mark.x):.1f} {frame.top:.1f}V{bottom:.1f}")
    if not is_missing(mark.y):
        paths.append(f"M{frame.left:.1f} {frame.place_y(mark.y):.1f}H{right:.1f}")
    return _wrap(mark.detail, _draw_path("".join(paths), rank))


def _draw_path(path: str, rank: int) -> str:
    dash = f" d{rank}" if rank else ""
    return f'<path class="line s{rank}{dash}" d="{path}"/>' if path else ""


def _connect(places: list[tuple[Place, Place]], frame: _Frame) -> str:
    known = [(x, y) for x, y in places if not (is_missing(x) or is_missing(y))]
    return "".join(
        f"{'L' if k else 'M'}{frame.place_x(x):.1f} {frame.place_y(y):.1f}"
        for k, (x, y) in enumerate(known)
    )


def _draw_label(mark: Text, frame: _Frame, rank: int) -> str:
    x, y = frame.place_x(mark.x), frame.place_y(mark.y)
    return _draw_text(
        x + BESIDE, y + 4, shorten_label(mark.text), f"t{rank}" if mark.series else "soft"
    )


def _wrap(detail: str, drawing: str) -> str:
    """Return a mark that says more about itself when it is pointed at."""
    if not detail or not drawing:
        return drawing
    title = escape_text(_shorten_middle(detail))
    return f'<g class="mark"><title>{title}</title>{drawing}</g>'


_DRAWERS: dict[type[Mark], Callable[..., str]] = {
    Cell: _draw_cell,
    Bar: _draw_bar,
    Point: _draw_point,
    Line: _draw_line,
    Rule: _draw_rule,
    Text: _draw_label,
}


# --- the legend ----------------------------------------------------------------------------------


def _draw_swatch(x: float, y: float, shade: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y + 2:.1f}" width="14" height="12" rx="2" {_style_shade(shade)}/>'
    )


def _style_shade(shade: float) -> str:
    kind = "less" if shade < 0 else "more"
    return f'class="{kind}" fill-opacity="{0.06 + 0.94 * abs(shade):.2f}"'


def _draw_legend(chart: Chart, width: float) -> tuple[str, float, float]:
    """Return the legend, and where it ends on the right and below."""
    x, y, right, parts = EDGE, 4.0, 0.0, []
    lines = {mark.series for mark in chart.list_marks() if isinstance(mark, (Line, Rule))}
    bars = {mark.series for mark in chart.list_marks() if isinstance(mark, Bar)}
    listed = chart.list_legend()
    for rank, name in enumerate(chart.series):
        if name not in listed:
            continue
        text, style = shorten_label(name), f"s{rank % len(SHAPES)}"
        if x + 30 + _measure_text(text) > width:
            x, y = EDGE, y + LEGEND_ROW
        if name in bars:
            parts.append(
                f'<rect x="{x - 6:.1f}" y="{y + 4:.1f}" width="14" height="9" class="bar {style}"/>'
            )
        elif name in lines:
            parts.append(_draw_path(f"M{x - 6:.1f} {y + 8:.1f}h20", rank % len(SHAPES)))
        else:
            parts.append(_draw_shape(SHAPES[rank % len(SHAPES)], x, y + 8, style))
        parts.append(_draw_text(x + (18 if name in lines else 12), y + 12, text))
        right = max(right, x + 18 + _measure_text(text))
        x += 44 + _measure_text(text)
    if chart.shades:
        text = f"Shade: {chart.shades}"
        parts.append(_draw_text(x, y + 12, text, "soft"))
        right = max(right, x + _measure_text(text))
        x, y = EDGE, y + LEGEND_ROW
        for shade, name in chart.shade_ticks:
            parts.append(_draw_swatch(x, y, shade) + _draw_text(x + 18, y + 12, name, "soft"))
            x += 36 + _measure_text(name)
        right = max(right, x)
    used = bool(listed or chart.shades)
    return "<g>" + "".join(parts) + "</g>", right + EDGE, y + LEGEND_ROW if used else 0.0
