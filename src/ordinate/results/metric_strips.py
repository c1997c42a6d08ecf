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

    def make_panel(self, level: float | None, format_value: Callable[[float], str]) -> Panel:
        """Return the strip; the system is drawn last, over everything else."""
        marks: list[Mark] = []
        if self.attainable is not None:
            low, high = self.attainable
            detail = f"{ATTAINABLE}: {format_value(low)} to {format_value(high)}"
            marks.append(Bar(high, "", base=low, series=ATTAINABLE, detail=detail))
        for series, found in {**self.others, SYSTEM: self.estimate}.items():
            one = found if isinstance(found, Estimate) else make_point_estimate(found)
            if not math.isnan(one.value):
                text = format_value_with_interval(one, level, self.unit, format_value)
                marks.append(
                    Point(one.value, "", one.low, one.high, series, detail=f"{series}: {text}")
                )
        better = BETTER_VALUES[self.metric.direction]
        value = format_value(self.estimate.value)
        title = f"{self.metric.expression} {value} ({better} is better)"
        axis, name = Axis(unit=self.unit), self.metric.expression
        return Panel(tuple(marks), title, x=axis, name=name)


def chart_strips(
    strips: Sequence[MetricStrip],
    level: float | None,
    description: str,
    *,
    name: str = "metrics",
    title: str = "Metrics beside their baselines",
    format_value: Callable[[float], str] = format_cell,
) -> list[Chart]:
    """Return the view of some metrics, of which those without a value are left out."""
    known = [strip for strip in strips if not math.isnan(strip.estimate.value)]
    if not known:
        return []
    others = dict.fromkeys(series for strip in known for series in strip.others)
    attainable = any(strip.attainable is not None for strip in known)
    return [
        Chart(
            name,
            title,
            description,
            Axis(),
            Axis(kind="ordered", levels=("",)),
            tuple(strip.make_panel(level, format_value) for strip in known),
            series=(SYSTEM, *others, *([ATTAINABLE] if attainable else [])),
            columns=2,
        )
    ]
