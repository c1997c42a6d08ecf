"""Charts: what is to be seen, as data and marks, before anybody decides how to draw it.

A view of a result is a `Chart`: axes, and panels of marks. Renderers (`svg`, `matplotlib_charts`)
draw marks and know no view, so that a new view is data and never drawing code.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from ordinate.errors import replace_control_characters

Place: TypeAlias = str | float  # a level of an ordered axis, or a number
AxisKind = Literal["ordered", "numeric", "log"]
Side = Literal["x", "y"]
MISSING = float("nan")
# After Okabe and Ito, for colour-blind readers; in grey, shapes and dashes distinguish series.
COLOURS = ("#0072b2", "#c24e00", "#00795a", "#a8477f", "#6b5b00", "#3f3f3f")
SHADE, OTHER_SHADE = "#0b5d99", "#b4540a"  # of cells above 0 and below it
SHAPES = ("circle", "square", "diamond", "triangle", "ring", "cross")
# The shade of a cell, below 0 or above, beyond which white is read better on it than black.
DARKEST_FOR_BLACK = {False: 0.805, True: 0.955}
MOST_LETTERS = 26  # of a level; the rest is shown on demand


@dataclass(frozen=True)
class Axis:
    """An axis: the levels of an ordered one lie in their order, numbers between low and high.

    Bounds that are not given are those of the marks; `unit` belongs to numbers with a unit.
    """

    title: str = ""
    kind: AxisKind = "numeric"
    levels: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    unit: str | None = None
    integer: bool = False  # ticks are integers: ranks, trials

    @property
    def label(self) -> str:
        """The title as it stands at the axis, with the unit.

        >>> Axis("density", unit="kg/m³").label
        'density (kg/m³)'
        """
        if self.title and self.unit:
            return f"{self.title} ({self.unit})"
        return self.title or self.unit or ""


@dataclass(frozen=True)
class Cell:
    """A shaded cell of two ordered axes: 0 is empty and 1 is full, below 0 the other colour."""

    x: str
    y: str
    shade: float
    text: str = ""
    detail: str = ""  # what is shown of it on demand


@dataclass(frozen=True)
class Bar:
    """A bar from its base to its value, along the axis that is numeric; y if both are."""

    x: Place
    y: Place
    base: float = 0.0
    width: float | None = None  # on a numeric axis, in its numbers
    series: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Point:
    """A value with its interval, along the axis that is numeric; y if both are."""

    x: Place
    y: Place
    low: float = MISSING
    high: float = MISSING
    series: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Line:
    """A line through places, with a band where there is one."""

    x: tuple[Place, ...]
    y: tuple[Place, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    series: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Rule:
    """A line across the panel at a value: upright at x, or level at y."""

    x: float = MISSING
    y: float = MISSING
    series: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Text:
    """A text beside a place; one with a series names it, which the legend then need not."""

    x: Place
    y: Place
    text: str
    series: str = ""


Mark: TypeAlias = Cell | Bar | Point | Line | Rule | Text


@dataclass(frozen=True)
class Panel:
    """Marks on the axes of their chart, or on an axis of their own.

    `name` says of what they are, where each panel shows one row of a table.
    """

    marks: tuple[Mark, ...]
    title: str = ""
    x: Axis | None = None
    y: Axis | None = None
    name: str = ""


@dataclass(frozen=True)
class Chart:
    """A view of a result: `name` is how it is asked for, `description` what can be seen in it.

    Charts of one name that differ in `variant` are shown one at a time; `varies_by` says what a
    variant is: a metric, a feature, a test set. `series` are the entries of the legend, in their
    order; colour and shape distinguish them. `shade_ticks` say what some shades stand for, those
    below 0 included.
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    series: tuple[str, ...] = ()
    variant: str = ""
    varies_by: str = "metric"
    columns: int = 1  # panels side by side
    shades: str = ""  # what the shade of cells is, for the legend
    shade_ticks: tuple[tuple[float, str], ...] = ((0.0, "low"), (1.0, "high"))

    def list_marks(self) -> list[Mark]:
        """Return the marks of all panels."""
        return [mark for panel in self.panels for mark in panel.marks]

    def shares_labels(self, index: int) -> bool:
        """Say whether the panel to the left has the labels of a panel's y-axis."""
        return index % max(1, self.columns) > 0 and self.panels[index].y is None

    def list_legend(self) -> list[str]:
        """Return the series that the legend has: those that no text in a panel names."""
        named = {mark.series for mark in self.list_marks() if isinstance(mark, Text)}
        return [series for series in self.series if series not in named]

    def list_records(self) -> list[dict[str, Any]]:
        """Return the marks as flat records; a line has one for each of its places."""
        records = [
            {"panel": panel.title, "mark": type(mark).__name__.lower()} | part
            for panel in self.panels
            for mark in panel.marks
            for part in _split_places(mark)
        ]
        names = dict.fromkeys(name for record in records for name in record)
        used = [name for name in names if any(not _is_empty(x.get(name)) for x in records)]
        return [{name: record.get(name) for name in used} for record in records]

    def get_axes(self, panel: Panel) -> tuple[Axis, Axis]:
        """Return the axes of a panel, with the bounds that the marks on them need."""
        return (
            _find_bounds(panel.x or self.x, self._list_places(panel, "x")),
            _find_bounds(panel.y or self.y, self._list_places(panel, "y")),
        )

    def _list_places(self, panel: Panel, side: Side) -> Iterator[Place]:
        """Yield what lies on an axis of a panel, which other panels may share."""
        shared = [other for other in self.panels if getattr(other, side) is None]
        for each in shared if getattr(panel, side) is None else [panel]:
            for mark in each.marks:
                yield from _list_places(mark, side)


def runs_along_x(x: Axis, y: Axis) -> bool:
    """Say whether bars and intervals run along x: where y is ordered and x is not."""
    return y.kind == "ordered" and x.kind != "ordered"


def is_missing(place: Place) -> bool:
    """Say whether a place is none: what is undefined is not drawn."""
    return not isinstance(place, str) and not math.isfinite(place)


def shorten_label(text: str, most: int = MOST_LETTERS) -> str:
    """Return a label on one line, with so many letters at most.

    >>> shorten_label("x" * 99, 5)
    'xxxx…'
    """
    text = replace_control_characters(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def thin_labels(labels: Sequence[str], room: float, least: float) -> list[str]:
    """Return labels with empty ones between them where each has too little room.

    >>> thin_labels(["1", "2", "3", "4", "5"], room=6.0, least=10.0)
    ['1', '', '3', '', '5']
    """
    every = max(1, math.ceil(least / room))
    return [label if k % every == 0 else "" for k, label in enumerate(labels)]


def _split_places(mark: Mark) -> list[dict[str, Any]]:
    """Return the fields of a mark; of a line, those of each place."""
    values = {x.name: getattr(mark, x.name) for x in fields(mark)}
    if not isinstance(mark, Line):
        return [values]
    several = {name: value for name, value in values.items() if isinstance(value, tuple) and value}
    places = zip(*several.values(), strict=True)
    plain = {name: None if value == () else value for name, value in values.items()}
    return [plain | dict(zip(several, place, strict=True)) for place in places]


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _list_places(mark: Mark, side: Side) -> list[Place]:
    """Return where a mark lies on an axis, with the ends of what runs along it."""
    own = getattr(mark, side)
    places: list[Place] = list(own) if isinstance(own, tuple) else [own]
    along = side == "y" if not isinstance(mark.y, str) else side == "x"
    if not along:
        half = mark.width / 2 if isinstance(mark, Bar) and mark.width else 0.0
        return [*places, *(x + d for x in places if not isinstance(x, str) for d in (-half, half))]
    if isinstance(mark, Bar):
        places.append(mark.base)
    elif isinstance(mark, Point):
        places += [mark.low, mark.high]
    elif isinstance(mark, Line):
        places += [*mark.low, *mark.high]
    return places


def _find_bounds(axis: Axis, places: Iterable[Place]) -> Axis:
    """Return a numeric axis with bounds, a little wider than what lies on it."""
    if axis.kind == "ordered":
        return axis
    numbers = [x for x in places if not isinstance(x, str) and math.isfinite(x)]
    if axis.kind == "log":
        numbers = [x for x in numbers if x > 0]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    low, high = widen(low, high, log=axis.kind == "log")
    return replace(
        axis,
        low=low if axis.low is None else axis.low,
        high=high if axis.high is None else axis.high,
    )


def widen(low: float, high: float, *, log: bool, share: float = 0.05) -> tuple[float, float]:
    """Return bounds with room beside them: a share of what lies between them."""
    if log:
        room = max((high / low) ** share, 1 + share) if low > 0 else 1 + share
        return low / room, high * room
    room = share * (high - low) or share * abs(high) or 10 * share
    return low - room, high + room


def find_share(axis: Axis, place: Place) -> float:
    """Return where a place lies between the ends of an axis, which are 0 and 1.

    >>> find_share(Axis(low=0.0, high=4.0), 1.0), find_share(Axis(kind="log", low=1, high=100), 10)
    (0.25, 0.5)
    """
    if axis.kind == "ordered":
        return (axis.levels.index(str(place)) + 0.5) / len(axis.levels)
    low, high, value = axis.low or 0.0, 1.0 if axis.high is None else axis.high, float(place)
    if axis.kind == "log":
        low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
    return min(max((value - low) / (high - low), -0.02), 1.02)


def find_ticks(axis: Axis, most: int = 6) -> list[float]:
    """Return the round numbers within the bounds of an axis.

    >>> find_ticks(Axis(low=0.0, high=1.0))
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> find_ticks(Axis(kind="log", low=0.5, high=2000.0))
    [1.0, 10.0, 100.0, 1000.0]
    >>> find_ticks(Axis(kind="log", low=30.0, high=900.0))
    [50.0, 100.0, 200.0, 500.0]
    >>> find_ticks(Axis(low=0.5, high=3.5, integer=True))
    [1.0, 2.0, 3.0]
    """
    low, high = axis.low or 0.0, 1.0 if axis.high is None else axis.high
    if axis.kind == "log" and high / low >= 10:
        return _find_log_ticks(low, high, most)
    step = max(_find_step(high - low, most), 1.0 if axis.integer else 0.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _find_log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten, or some of the powers where these are many."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high) + 1e-9) + 1)
    fine = [k * 10.0**power for power in decades for k in (1, 2, 5)]
    inside = [x for x in fine if low * (1 - 1e-9) <= x <= high * (1 + 1e-9)]
    if len(inside) <= most:
        return inside
    tens = [10.0**power for power in decades if 10.0**power >= low * (1 - 1e-9)]
    return tens[:: -(-len(tens) // most)]


def _find_step(span: float, most: int) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that makes few enough steps."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(k * power for k in (1, 2, 5, 10) if span / (k * power) <= most + 1e-9)


def format_ticks(ticks: list[float]) -> list[str]:
    """Return ticks with as many digits as tell them from each other.

    >>> format_ticks([0.0, 0.25]), format_ticks([1000.0, 2000.0])
    (['0.00', '0.25'], ['1,000', '2,000'])
    """
    digits = next((k for k in range(7) if all(round(x, k) == x for x in ticks)), 7)
    return [f"{x:z,.{digits}f}" for x in ticks]
