"""The listing of a folder of reports: what there is, of which data, and what cannot be shown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ordinate.render import Document, Grid
from ordinate.render.document import Cell, Link, format_cell, format_interval
from ordinate.render.estimates import format_count, format_interval_head
from ordinate.results.base import SCHEMA, Record, Result, to_plain
from ordinate.site.reported_values import ReportedValue
from ordinate.site.stored_reports import BrokenReport, StoredReport

DATE = "date (UTC)"
MOST_SAME = 12  # files named in a note


@dataclass(frozen=True)
class ListedReport:
    """A report, and the file of the site that shows it, if one does."""

    report: StoredReport
    page: str | None

    @property
    def date(self) -> str:
        """When the file was written, to the minute."""
        return f"{self.report.date:%Y-%m-%d %H:%M}"

    def name(self, folder: str = "") -> Cell:
        """Return its path, which leads to its page from another page of the site."""
        return Link(self.report.path, folder + self.page) if self.page else self.report.path

    def find_headline(self) -> ReportedValue | None:
        """Return the best system by the first metric, of the last data: tests come last."""
        if not self.report.values:
            return None
        last = self.report.values[-1].data
        values = [one for one in self.report.values if one.data == last]
        first = [one for one in values if one.metric == values[0].metric]
        return order_by_value(first)[0]


def order_by_value(values: Sequence[ReportedValue]) -> list[ReportedValue]:
    """Return values of one metric, the best first; undefined ones are last."""

    def measure_cost(one: ReportedValue) -> tuple[bool, float]:
        value = one.estimate.value
        costs = {"maximize": -value, "minimize": value, "zero": abs(value)}
        return math.isnan(value), costs.get(one.direction, 0.0)

    return sorted(values, key=measure_cost)


def build_value_cells(value: ReportedValue | None) -> tuple[Cell, Cell]:
    """Return a value with its unit, and its confidence interval."""
    if value is None:
        return None, None
    found, unit = value.estimate, f" {value.unit}" if value.unit else ""
    level = "" if value.level in {None, 0.95} else f" ({format_interval_head(value.level or 0)})"
    interval = format_interval(found.low, found.high)
    return f"{format_cell(found.value)}{unit}", None if interval is None else interval + level


@dataclass(frozen=True, repr=False, eq=False)
class ReportListing(Result):
    """The reports of a folder, the latest first, and the files that are broken.

    `same` are files with the same report as another one, which alone is shown.
    """

    table_name = "reports"
    folder: str
    reports: tuple[ListedReport, ...]
    broken: tuple[BrokenReport, ...]
    same: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[Record]:
        """Return one flat record for each report."""
        return [
            {
                "path": one.report.path,
                "page": one.page,
                "kind": one.report.kind,
                "date": one.report.date.isoformat(timespec="seconds"),
                **flatten_value(one.find_headline()),
            }
            for one in self.reports
        ]

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "schema": SCHEMA,
            "task": "site",
            "folder": self.folder,
            "reports": to_plain(self.rows()),
            "broken": to_plain(self.broken),
            "same": [list(pair) for pair in self.same],
        }

    def document(self) -> Document:
        """Return the index."""
        header = ("report", "kind", DATE, "data", "system", "metric", "value", "95 % CI")
        rows = tuple(
            (one.name(), one.report.kind, one.date, *_build_headline(one.find_headline()))
            for one in self.reports
        )
        grid = Grid("Reports", header, rows, left=6, optional=("data", DATE, "95 % CI", "kind"))
        broken = Grid(
            "Broken: what cannot be shown, and why",
            ("file", "reason"),
            tuple((one.path, one.reason) for one in self.broken),
            left=2,
        )
        blocks = [block for block in (grid, broken) if block.rows]
        return Document(f"Reports in {self.folder}", tuple(blocks), self._count(), self._note())

    def _count(self) -> str:
        data = {value.data for one in self.reports for value in one.report.values}
        systems = {value.system for one in self.reports for value in one.report.values}
        sentences = [f"There is no report in {self.folder}."]
        if self.reports:
            counts = (
                f"{format_count(len(systems), 'system')} on {format_count(len(data), 'data set')}"
            )
            sentences = [f"{format_count(len(self.reports), 'report')} of {counts}."]
        if self.broken:
            verb = "is" if len(self.broken) == 1 else "are"
            sentences.append(f"{format_count(len(self.broken), 'file')} {verb} broken.")
        return " ".join(sentences)

    def _note(self) -> tuple[str, ...]:
        notes = [f"{copy} is the same report as {shown}." for copy, shown in self.same[:MOST_SAME]]
        if (more := len(self.same) - len(notes)) > 0:
            notes.append(f"And {format_count(more, 'more file')} the same as others.")
        if self.reports:
            notes.append(
                "Values are those of the best system by the first metric, on test data where there "
                "are some. Dates are those of the files."
            )
        return tuple(notes)


def flatten_value(value: ReportedValue | None) -> Record:
    """Return a value as a flat record."""
    names = ("data", "system", "metric", "direction")
    cells = dict.fromkeys((*names, "value", "low", "high"))
    if value is None:
        return cells
    found = value.estimate
    return {name: getattr(value, name) for name in names} | {
        "value": found.value,
        "low": found.low,
        "high": found.high,
    }


def _build_headline(value: ReportedValue | None) -> tuple[Cell, ...]:
    if value is None:
        return (None,) * 5
    return (value.data, value.system, value.metric, *build_value_cells(value))
