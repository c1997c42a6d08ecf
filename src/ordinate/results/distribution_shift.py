"""Distribution shift: a shifted test set and one from where the training data came from."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, shorten
from ordinate.inference import Estimate
from ordinate.inference.estimates import estimate_difference
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.render.charts import Axis, Bar, Chart, Panel
from ordinate.render.estimates import (
    format_difference,
    format_interval_head,
    format_number,
    format_percent,
    format_value_with_interval,
)
from ordinate.render.forest_plots import MOST_ROWS
from ordinate.render.tables import (
    NAME,
    NUMBER,
    SHARE,
    UNIT_JOINED,
    Column,
    Table,
    leave_undefined_empty,
    to_plain,
)
from ordinate.results.base import (
    SCHEMA,
    Record,
    Result,
    record_call,
)
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.results.regression import RegressionEvaluation
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import convert_to_numbers

__all__ = ["ShiftEvaluation", "evaluate_shift"]

Floats = NDArray[np.float64]
INSIDE, SHIFTED = "inside", "shifted"
SIDES = {"difference": "shifted less inside"}
KNOWN_SHARE = leave_undefined_empty(SHARE)
EDGE_SHARE = 0.01  # the share of items below, and above, the middle of a column


@dataclass(frozen=True)
class ColumnShift:
    """How far a column of the shifted set lies from the same column inside.

    `by` is the distance of the means in σ of the set inside. `beyond_middle` is the share of
    shifted items below the 1 % or above the 99 % quantile inside, `beyond_range` the share below
    the least or above the largest value; nan where the items themselves were not given.
    """

    name: str
    inside_mean: float
    shifted_mean: float
    inside_sigma: float
    shifted_sigma: float
    beyond_middle: float = math.nan
    beyond_range: float = math.nan

    @property
    def by(self) -> float:
        """The distance of the means in σ of the set inside."""
        gap = self.shifted_mean - self.inside_mean
        return gap / self.inside_sigma if self.inside_sigma else math.nan


@dataclass(frozen=True, repr=False, eq=False)
class ShiftEvaluation(Result):
    """A shifted test set and one from where the training data came from.

    `differences` are shifted less inside, of independent samples.
    """

    inside: RegressionEvaluation
    shifted: RegressionEvaluation
    differences: dict[str, Estimate]
    shifts: tuple[ColumnShift, ...]

    @classmethod
    @record_call
    def from_evaluations(
        cls,
        inside: RegressionEvaluation,
        shifted: RegressionEvaluation,
        columns: Sequence[ColumnShift] = (),
    ) -> "ShiftEvaluation":
        """Compare two sets that are evaluated already; `columns` are shifts of further columns."""
        both = [name for name in inside.metrics if name in shifted.metrics]
        if not both:
            raise BadOption("The two sets have no metric in common.")
        gaps = {
            name: estimate_difference(shifted.metrics[name], inside.metrics[name]) for name in both
        }
        own = (
            _measure_shift_of_summaries(name, inside, shifted)
            for name in ("targets", "predictions")
        )
        shifts = {one.name: one for one in (*own, *columns)}
        return cls(inside, shifted, gaps, tuple(shifts.values()))

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason."""
        parts = {"inside": self.inside, "shifted": self.shifted}
        return {
            "schema": SCHEMA,
            "task": "beside",
            "unit": self.inside.unit,
            "interval": None if self.inside.interval is None else self.inside.interval.level,
            **{
                key: {
                    "n": part.summary.n,
                    "metrics": {name: part.metrics[name].to_dict() for name in self.differences},
                }
                for key, part in parts.items()
            },
            "differences": to_plain(self.differences),
            "shifts": self.get_table("shifts").to_list(),
        }

    @property
    def level(self) -> float | None:
        """The level of the intervals, None where there are none."""
        return None if self.inside.interval is None else self.inside.interval.level

    def tables(self) -> Iterable[Table]:
        """Return the metrics of both sets, and how far each column is shifted."""
        head = "" if self.level is None else f" with {format_interval_head(self.level)}"
        records = [
            {"metric": metric, "set": part, "value": found[metric.expression]}
            for metric in self._list_metrics()
            for part, found in (
                (INSIDE, self.inside.metrics),
                (SHIFTED, self.shifted.metrics),
                ("difference", self.differences),
            )
        ]
        columns = (
            Column("metric", get=lambda row: row["metric"].expression),
            Column("set"),
            Column("value", kind=UNIT_JOINED),
            Column("unit", get=lambda row: self.inside.get_unit(row["metric"])),
            Column("title", "metric", get=self._title_metric, stored=False),
            Column("side", get=lambda row: SIDES.get(row["set"], row["set"]), stored=False),
        )
        yield Table("metrics", f"Inside and shifted{head}", columns, records)
        known = any(not math.isnan(shift.beyond_range) for shift in self.shifts)
        shares = ("outside of the middle 98 %", "outside of the range")
        moved = (
            Column("name", "column", NAME),
            Column("by", kind=NUMBER, shown=False),
            Column("inside_mean", "mean inside", NUMBER),
            Column("shifted_mean", SHIFTED, NUMBER),
            Column("inside_sigma", "σ inside", NUMBER),
            Column("shifted_sigma", SHIFTED, NUMBER),
            Column("shift", "shift in σ", NUMBER, get=lambda shift: shift.by, stored=False),
            Column("beyond_middle", shares[0], KNOWN_SHARE, shown=known, optional=True),
            Column("beyond_range", shares[1], KNOWN_SHARE, shown=known),
        )
        yield Table("shifts", "How far it is shifted", moved, self.shifts)

    def _list_metrics(self) -> list[Metric]:
        return [x for x in self.inside.selected if x.expression in self.differences]

    def _title_metric(self, row: Record) -> str:
        name, unit = row["metric"].expression, self.inside.get_unit(row["metric"])
        return f"{name} ({unit})" if unit else name

    def make_charts(self) -> Iterable[Chart]:
        """Return both sets on each metric, and how far each column is shifted."""
        yield from self._chart_both_sets()
        yield from self._chart_columns()

    def _chart_both_sets(self) -> list[Chart]:
        strips = []
        for metric in self._list_metrics():
            name, unit = metric.expression, self.inside.get_unit(metric)
            text = format_value_with_interval(
                self.differences[name], self.level, unit, format_number
            )
            others = {INSIDE: self.inside.metrics[name]}
            note, found = f"shifted less inside {text}", self.shifted.metrics[name]
            strips.append(MetricStrip(metric, found, others, unit=unit, note=note))
        plot = MetricStrips(strips, self.level, SHIFTED, in_rows=True, format_value=format_number)
        return plot.make_charts(
            "Each metric with its confidence interval on both sets, on an axis of its own.",
            "shift_metrics",
            "Metrics inside and on the shifted set",
        )

    def _chart_columns(self) -> Iterable[Chart]:
        """Return how far the mean of each column is shifted, in σ of the set inside."""
        shifts = [shift for shift in self.shifts if not math.isnan(shift.by)][:MOST_ROWS]
        if shifts:
            bars = tuple(Bar(x.by, x.name, detail=_describe_bar(x)) for x in shifts)
            yield Chart(
                "column_shifts",
                "How far columns are shifted",
                "The mean of each column on the shifted set less the one inside.",
                Axis("shift of the mean", unit="σ inside"),
                Axis("column", "ordered", tuple(shift.name for shift in shifts)),
                (Panel(bars),),
            )

    def document(self) -> Document:
        """Return the report for people."""
        inside, shifted = self.inside.summary.n, self.shifted.summary.n
        title = f"{shifted:,} shifted values beside {inside:,} inside"
        sigmas = (
            "R² and its like are relative to the σ of each set's own targets "
            f"({format_number(self.inside.sigma)} inside, {format_number(self.shifted.sigma)} "
            "shifted)."
        )
        blocks = (
            *self.get_table("metrics").cross("title", "side", "value"),
            *self.get_table("shifts").grids(),
        )
        verdict = " ".join([*_state_differences(self), *map(_describe_shift, self.shifts[:2])])
        return Document(title, blocks, verdict, (sigmas,))


def evaluate_shift(
    inside: RegressionEvaluation,
    shifted: RegressionEvaluation,
    columns: Mapping[str, tuple[Any, Any]] | None = None,
) -> ShiftEvaluation:
    """Compare a shifted test set with one from where the training data came from.

    `columns` are pairs of columns (inside, shifted) by name: 'targets', 'predictions' and features,
    for which the share of shifted items outside of the range inside is wanted.

    >>> from ordinate.results.regression_sources import evaluate_regression
    >>> inside = evaluate_regression([1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.9])
    >>> shifted = evaluate_regression([6.0, 7.0, 9.0], [5.0, 5.5, 6.5])
    >>> round(evaluate_shift(inside, shifted).shifts[0].by, 2)  # in σ of the targets inside
    4.32
    """
    if inside.unit != shifted.unit:
        raise BadOption(f"The units differ: {inside.unit!r} and {shifted.unit!r}.")
    levels = [None if part.interval is None else part.interval.level for part in (inside, shifted)]
    if levels[0] != levels[1]:
        raise BadOption(f"The levels of the intervals differ: {levels[0]} and {levels[1]}.")
    further = []
    for name, pair in (columns or {}).items():
        first, second = (convert_to_numbers(column, str(name)) for column in pair)
        further.append(_measure_shift_of_columns(str(name), first, second))
    return ShiftEvaluation.from_evaluations(inside, shifted, further)


def _measure_shift_of_summaries(
    name: str, inside: RegressionEvaluation, shifted: RegressionEvaluation
) -> ColumnShift:
    first, second = (_mean_and_sigma(name, part.summary) for part in (inside, shifted))
    return ColumnShift(name, first[0], second[0], first[1], second[1])


def _mean_and_sigma(name: str, summary: Moments) -> tuple[float, float]:
    """Return mean and σ of the targets or of the predictions of a summary."""
    y, plain = float(summary.plain.y), summary.plain
    if name == "targets":
        return y, math.sqrt(float(plain.mean(2, 0)))
    variance = float(plain.mean(2, 0) + 2.0 * plain.mean(1, 1) + plain.mean(0, 2))
    return y + float(plain.e), math.sqrt(max(variance, 0.0))


def _measure_shift_of_columns(name: str, first: Floats, second: Floats) -> ColumnShift:
    for values, where in ((first, "inside"), (second, "shifted")):
        if not len(values) or not np.isfinite(values).all():
            raise BadValues(f"The column {shorten(name)} {where} needs finite numbers only.")
    low, high = np.quantile(first, [EDGE_SHARE, 1.0 - EDGE_SHARE])
    return ColumnShift(
        name=name,
        inside_mean=float(first.mean()),
        shifted_mean=float(second.mean()),
        inside_sigma=float(first.std()),
        shifted_sigma=float(second.std()),
        beyond_middle=float(((second < low) | (second > high)).mean()),
        beyond_range=float(((second < first.min()) | (second > first.max())).mean()),
    )


def _describe_shift(shift: ColumnShift) -> str:
    if math.isnan(shift.by):
        return f"How far the {shift.name} are shifted is undefined: those inside are all equal."
    side = "above" if shift.by > 0 else "below"
    by = format_number(abs(shift.by))
    text = f"The shifted {shift.name} lie {by} σ {side} those inside on average"
    if math.isnan(shift.beyond_range):
        return f"{text}."
    return f"{text}; {format_percent(shift.beyond_range)} of them are outside of the range inside."


def _state_differences(result: ShiftEvaluation) -> list[str]:
    """Say on which metrics the two sets differ significantly."""
    clear = []
    for metric in result.inside.selected:
        gap = result.differences.get(metric.expression)
        if gap is not None and (gap.low > 0 or gap.high < 0):
            side, unit = "higher" if gap.value > 0 else "lower", result.inside.get_unit(metric)
            clear.append(f"{metric.expression} is {side} by {format_difference(gap, unit)}")
    if clear:
        return [f"On the shifted set {'; '.join(clear)}."]
    none = "On no metric are the two sets significantly different."
    return [] if result.inside.interval is None else [none]


def _describe_bar(shift: ColumnShift) -> str:
    means = f"{format_number(shift.shifted_mean)}, inside {format_number(shift.inside_mean)}"
    text = f"{shift.name}: {format_number(shift.by)} σ (mean {means})"
    if math.isnan(shift.beyond_range):
        return text
    return f"{text}, {format_percent(shift.beyond_range)} outside of the range inside"
