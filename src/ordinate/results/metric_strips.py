"""Metric strips: each metric on an axis of its own, beside what it must beat."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.metrics import Metric
from ordinate.render.charts import Axis, Bar, Chart, Mark, Panel, Point
from ordinate.render.document import format_cell
from ordinate.render.estimates import format_value_with_interval
from ordinate.results.base import BETTER_VALUES

SYSTEM, ATTAINABLE = "system", "attainable"


@dataclass(frozen=True)
class MetricStrip:
    """One metric of a system, and other values of the same metric by what they are."""

    metric: Metric
    estimate: Estimate
    others: Mapping[str, Estimate | float] = field(default_factory=dict)
    attainable: tuple[float, float] | None = None
    unit: str | None = None
    note: str = ""  # what else is known


@dataclass(frozen=True)
class MetricStrips:
    """Strips of several metrics; those without a value are left out.

    `system` is what the values are those of, and `level` that of their intervals. In rows, values
    that are compared with each other stand one below the other.
    """

    strips: Sequence[MetricStrip]
    level: float | None
    system: str = SYSTEM
    in_rows: bool = False
    format_value: Callable[[float], str] = format_cell

    def make_charts(
        self, description: str, name: str = "metrics", title: str = "Metrics beside their baselines"
    ) -> list[Chart]:
        """Return the view, if any metric has a value."""
        known = [strip for strip in self.strips if not math.isnan(strip.estimate.value)]
        if not known:
            return []
        others = tuple(dict.fromkeys(series for strip in known for series in strip.others))
        ranges = (ATTAINABLE,) if any(x.attainable is not None for x in known) else ()
        rows = (*others, self.system) if self.in_rows else ("",)
        return [
            Chart(
                name,
                title,
                description,
                Axis(),
                Axis(kind="ordered", levels=rows),
                tuple(map(self._make_panel, known)),
                series=() if self.in_rows else (self.system, *others, *ranges),
                columns=2,
            )
        ]

    def _make_panel(self, strip: MetricStrip) -> Panel:
        """Return one strip; the system is drawn last, over everything else."""
        marks: list[Mark] = []
        if strip.attainable is not None:
            low, high = strip.attainable
            detail = f"{ATTAINABLE}: {self.format_value(low)} to {self.format_value(high)}"
            marks.append(Bar(high, "", base=low, series=ATTAINABLE, detail=detail))
        for series, found in {**strip.others, self.system: strip.estimate}.items():
            one = found if isinstance(found, Estimate) else make_point_estimate(found)
            if not math.isnan(one.value):
                marks.append(self._make_point(strip, series, one))
        better = BETTER_VALUES[strip.metric.direction]
        name, value = strip.metric.expression, self.format_value(strip.estimate.value)
        shown = name if self.in_rows else f"{name} {value}"
        title = f"{shown} ({better} is better)"
        ends = _find_ends(strip) if len(marks) == 1 else (None, None)
        axis = Axis(unit=strip.unit, low=ends[0], high=ends[1])
        return Panel(tuple(marks), title, x=axis, name=name)

    def _make_point(self, strip: MetricStrip, series: str, found: Estimate) -> Point:
        text = format_value_with_interval(found, self.level, strip.unit, self.format_value)
        note = f"; {strip.note}" if strip.note else ""
        return Point(
            found.value,
            series if self.in_rows else "",
            found.low,
            found.high,
            series="" if self.in_rows else series,
            detail=f"{series}: {text}{note}",
        )


def _find_ends(strip: MetricStrip) -> tuple[float | None, float | None]:
    """Return the ends of the axis of a value that stands alone: 0, and the best where there is one.

    None is an end that the interval needs.
    """
    found, best = strip.estimate, strip.metric.bounds[1]
    reached = [x for x in (found.value, found.low, found.high) if not math.isnan(x)]
    low = 0.0 if min(reached) >= 0 else None
    if strip.metric.direction == "maximize" and math.isfinite(best):
        return low, best
    return low, 0.0 if max(reached) < 0 else None
