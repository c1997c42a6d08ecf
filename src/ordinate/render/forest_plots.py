"""Forest plots: one row for each system, model or subgroup, with its value and its interval."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.render.charts import Axis, Chart, Mark, Panel, Point, Rule
from ordinate.render.document import format_cell
from ordinate.render.estimates import format_value_with_interval

MOST_ROWS = 60  # that can be seen in one plot


@dataclass(frozen=True)
class ForestRow:
    """A row: its name, its value with an interval, and what else is known of it."""

    name: str
    estimate: Estimate
    note: str = ""
    series: str = ""


@dataclass(frozen=True)
class ForestPlot:
    """Rows in their order on one axis, and lines across them at the values that they must beat.

    Rows without a value are left out, and so are those after the first `MOST_ROWS`. `level` is
    that of the intervals, None without any; `noun` is what a row is.
    """

    rows: Sequence[ForestRow]
    axis: Axis
    level: float | None
    noun: str = ""
    references: Mapping[str, float] = field(default_factory=dict)
    format_value: Callable[[float], str] = format_cell

    @property
    def shown(self) -> list[ForestRow]:
        """The rows that can be seen."""
        return self._list_known()[:MOST_ROWS]

    @property
    def series(self) -> tuple[str, ...]:
        """The entries of the legend: none where all rows are of one kind and there are no lines."""
        found = tuple(dict.fromkeys(row.series or self.row_series for row in self.shown))
        found += tuple(self._list_references())
        return found if len(found) > 1 else ()

    @property
    def row_series(self) -> str:
        """What rows are called in the legend: a line may have the name of the noun, say a model."""
        return f"other {self.noun}s" if self.noun in self.references else self.noun

    def make_chart(
        self,
        name: str,
        title: str,
        description: str,
        *,
        more: Iterable[Panel] = (),
        variant: str = "",
        panel_title: str = "",
    ) -> Chart:
        """Return the plot as a view, with further panels to its right, which may have more rows."""
        panels = (self.make_panel(panel_title), *more)
        points = (mark for panel in panels for mark in panel.marks if isinstance(mark, Point))
        rows = tuple(dict.fromkeys(str(point.y) for point in points))
        count = len(self._list_known())
        first = f" The first {MOST_ROWS} of {count:,} rows are shown."
        return Chart(
            name,
            title,
            description + (first if len(self.shown) < count else ""),
            self.axis,
            Axis(self.noun, "ordered", rows),
            panels,
            series=self.series,
            columns=min(len(panels), 4),
            variant=variant,
        )

    def make_panel(self, title: str = "", *, x: Axis | None = None) -> Panel:
        """Return the rows over the lines, on the axis of the chart or on one of their own."""
        return Panel((*self._make_lines(), *self._make_points()), title, x=x)

    def describe_row(self, row: ForestRow) -> str:
        """Return a row in words."""
        text = format_value_with_interval(
            row.estimate, self.level, self.axis.unit, self.format_value
        )
        return f"{row.name}: {text}" + (f", {row.note}" if row.note else "")

    def _list_known(self) -> list[ForestRow]:
        return [row for row in self.rows if not math.isnan(row.estimate.value)]

    def _list_references(self) -> dict[str, float]:
        known = {name: x for name, x in self.references.items() if not math.isnan(x)}
        return known if self.shown else {}

    def _make_lines(self) -> list[Mark]:
        return [
            Rule(
                value,
                series=name,
                detail=self.describe_row(ForestRow(name, make_point_estimate(value))),
            )
            for name, value in self._list_references().items()
        ]

    def _make_points(self) -> list[Mark]:
        return [
            Point(
                row.estimate.value,
                row.name,
                row.estimate.low,
                row.estimate.high,
                series=row.series or self.row_series,
                detail=self.describe_row(row),
            )
            for row in self.shown
        ]
