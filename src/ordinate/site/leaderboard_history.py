"""Leaderboards over time: for each data set, what systems reached in which report."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ordinate.render import Document, Grid
from ordinate.render.charts import SHAPES, Axis, Chart, Line, Panel, Point
from ordinate.render.document import Cell, Variants
from ordinate.render.estimates import format_count, format_value_with_interval
from ordinate.results.base import BETTER_VALUES
from ordinate.results.forest_plots import ForestPlot, ForestRow
from ordinate.site.report_listing import DATE, ListedReport, build_value_cells, order_by_value
from ordinate.site.reported_values import ReportedValue

MOST_SYSTEMS = len(SHAPES)  # that a chart can tell from each other
MOST_DATES = 40  # side by side
PARTS = ("value", "low", "high")  # of an estimate
UNTESTED = (
    "Values of several reports stand side by side, and their differences are not tested: that "
    "takes the predictions of all systems (ordinate compare)."
)


@dataclass(frozen=True)
class DataHistory:
    """What reports say on one data set, in the order of their dates."""

    data: str
    entries: tuple[tuple[ListedReport, ReportedValue], ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of any report, in the order of the latest."""
        latest, _ = self.entries[-1]
        listed = [value.metric for one, value in self.entries if one is latest]
        return tuple(dict.fromkeys([*listed, *(value.metric for _, value in self.entries)]))

    def select(self, metric: str) -> list[tuple[ListedReport, ReportedValue]]:
        """Return what reports say of one metric."""
        return [(one, value) for one, value in self.entries if value.metric == metric]

    def rank_systems(self, metric: str) -> list[ReportedValue]:
        """Return the latest value of each system, the best first."""
        return order_by_value([*{x.system: x for _, x in self.select(metric)}.values()])

    def make_charts(self, number: int) -> Iterator[Chart]:
        """Yield the latest values as a forest plot, and how they came about where they changed."""
        for metric in self.metrics:
            ranked, entries = self.rank_systems(metric), self.select(metric)
            better = BETTER_VALUES.get(ranked[0].direction, "")
            axis = Axis(f"{metric}, {better} is better" if better else metric, unit=ranked[0].unit)
            rows = [ForestRow(value.system, value.estimate) for value in ranked]
            plot = ForestPlot(rows, axis, ranked[0].level, "system")
            if plot.shown:
                yield plot.make_chart(
                    f"latest-{number}",
                    f"{metric} of each system, as reported last",
                    f"On {self.data}. Confidence intervals are those of the reports.",
                    variant=metric,
                )
            if len({one.date for one, _ in entries}) > 1 and plot.shown:
                yield self._chart_dates(f"history-{number}", metric, axis)

    def _chart_dates(self, name: str, metric: str, axis: Axis) -> Chart:
        ranked = self.rank_systems(metric)
        systems = [value.system for value in ranked[:MOST_SYSTEMS]]
        dates = sorted({one.date for one, _ in self.select(metric)})[-MOST_DATES:]
        marks = [mark for system in systems for mark in self._mark_system(metric, system, dates)]
        left = f" The best {len(systems)} systems are shown." if len(ranked) > len(systems) else ""
        return Chart(
            name,
            f"{metric} over time",
            f"On {self.data}. Each report stands at the date of its file.{left}",
            Axis(DATE, "ordered", tuple(dates)),
            axis,
            (Panel(tuple(marks)),),
            series=tuple(systems),
            variant=metric,
        )

    def _mark_system(
        self, metric: str, system: str, dates: Sequence[str]
    ) -> Iterator[Line | Point]:
        found = {
            one.date: value
            for one, value in self.select(metric)
            if value.system == system and one.date in dates and not math.isnan(value.estimate.value)
        }
        estimates = [value.estimate for value in found.values()]
        alone = len(found) == 1
        if not alone:  # a band has the intervals then: those of many systems would cover each other
            values, low, high = (tuple(getattr(x, k) for x in estimates) for k in PARTS)
            yield Line(tuple(found), values, low, high, series=system)
        for date, value in found.items():
            shown = format_value_with_interval(value.estimate, value.level, value.unit)
            detail = f"{system}, {date}: {shown}"
            point = Point(date, value.estimate.value, series=system, detail=detail)
            if alone:
                point = replace(point, low=value.estimate.low, high=value.estimate.high)
            yield point

    def build_grid(self, metric: str) -> list[str | Grid]:
        """Return all values of a metric as a table, the latest first."""
        rows: list[tuple[Cell, ...]] = [
            (one.date, one.name(), value.system, *build_value_cells(value))
            for one, value in reversed(self.select(metric))
        ]
        header = (DATE, "report", "system", metric, "95 % CI")
        return [Grid(f"{self.data}: {metric}", header, tuple(rows), left=3)]


def collect_histories(reports: Sequence[ListedReport]) -> list[DataHistory]:
    """Return the data sets, the one of the latest report first; reports are the latest first."""
    found: dict[str, list[tuple[ListedReport, ReportedValue]]] = {}
    for one in reversed(reports):
        for value in one.report.values:
            found.setdefault(value.data, []).append((one, value))
    latest = dict.fromkeys(value.data for one in reports for value in one.report.values)
    return [DataHistory(data, tuple(found[data])) for data in latest]


def describe_histories(histories: Sequence[DataHistory]) -> tuple[Document, list[Chart]]:
    """Return the leaderboards as a page: charts, and the tables that say the same."""
    charts = [chart for k, one in enumerate(histories, 1) for chart in one.make_charts(k)]
    blocks = tuple(Variants(one.metrics, one.build_grid) for one in histories)
    verdict = f"{format_count(len(histories), 'data set')}. " if histories else ""
    verdict += " ".join(map(_state_leader, histories[:1])) or "No report has values of a system."
    notes = (UNTESTED,) if histories else ()
    return Document("Leaderboards over time", blocks, verdict, notes), charts


def _state_leader(history: DataHistory) -> str:
    best = history.rank_systems(history.metrics[0])[0]
    value = format_value_with_interval(best.estimate, best.level, best.unit)
    return f"On {history.data}, {best.system} has the best {best.metric}: {value}."
