"""A shifted test set beside one from where the training data came from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, brief
from ordinate.inference import Estimate
from ordinate.inference.estimates import finite
from ordinate.render import Document, Grid, html, render
from ordinate.render.document import Cell
from ordinate.results.evaluation import SCHEMA
from ordinate.results.regression import Values
from ordinate.results.regression_text import amount, cell, flat, number
from ordinate.results.subgroups import difference
from ordinate.summaries.numeric_columns import numbers
from ordinate.summaries.regression import Moments

Floats = NDArray[np.float64]
EDGE = 0.01  # the share of items below, and above, the middle of a column


@dataclass(frozen=True)
class Shift:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        found: dict[str, Any] = {"name": self.name, "by": finite(self.by)}
        return found | {k: finite(x) for k, x in self.__dict__.items() if k != "name"}


@dataclass(frozen=True)
class Beside:
    """A shifted test set beside one from where the training data came from.

    `differences` are shifted less inside, of independent samples.
    """

    inside: Values
    shifted: Values
    differences: dict[str, Estimate]
    shifts: tuple[Shift, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason."""
        parts = {"inside": self.inside, "shifted": self.shifted}
        return {
            "schema": SCHEMA,
            "task": "beside",
            "unit": self.inside.unit,
            "interval": None if self.inside.interval is None else self.inside.interval.level,
            **{
                key: {
                    "n": part.table.n,
                    "metrics": {name: part.metrics[name].to_dict() for name in self.differences},
                }
                for key, part in parts.items()
            },
            "differences": {name: one.to_dict() for name, one in self.differences.items()},
            "shifts": [shift.to_dict() for shift in self.shifts],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric inside, shifted, and their difference."""
        units = {m.expression: self.inside.unit_of(m) for m in self.inside.wanted}
        return [
            {"metric": name, "set": key, **flat(one), "unit": units[name]}
            for name, gap in self.differences.items()
            for key, one in (
                ("inside", self.inside.metrics[name]),
                ("shifted", self.shifted.metrics[name]),
                ("difference", gap),
            )
        ]

    def blocks(self) -> list[str | Grid]:
        """Return sentences and grids for a report."""
        return [*map(_shift_in_words, self.shifts[:2]), *_beside_blocks(self), _shift_grid(self)]

    def document(self) -> Document:
        """Return the report for people."""
        inside, shifted = self.inside.table.n, self.shifted.table.n
        title = f"{shifted:,} shifted values beside {inside:,} inside"
        return Document(title, tuple(self.blocks()))

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())


def beside(
    inside: Values, shifted: Values, columns: Mapping[str, tuple[Any, Any]] | None = None
) -> Beside:
    """Put a shifted test set beside one from where the training data came from.

    `columns` are pairs of columns (inside, shifted) by name: 'targets', 'predictions' and features,
    for which the share of shifted items outside of the range inside is wanted.

    >>> from ordinate.results.regression import evaluate_values
    >>> inside = evaluate_values([1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.9])
    >>> shifted = evaluate_values([6.0, 7.0, 9.0], [5.0, 5.5, 6.5])
    >>> round(beside(inside, shifted).shifts[0].by, 2)  # in σ of the targets inside
    4.32
    """
    if inside.unit != shifted.unit:
        raise BadOption(f"The units differ: {inside.unit!r} and {shifted.unit!r}.")
    levels = [None if part.interval is None else part.interval.level for part in (inside, shifted)]
    if levels[0] != levels[1]:
        raise BadOption(f"The levels of the intervals differ: {levels[0]} and {levels[1]}.")
    both = [name for name in inside.metrics if name in shifted.metrics]
    if not both:
        raise BadOption("The two sets have no metric in common.")
    gaps = {name: difference(shifted.metrics[name], inside.metrics[name]) for name in both}
    shifts = {name: _from_tables(name, inside, shifted) for name in ("targets", "predictions")}
    for name, pair in (columns or {}).items():
        first, second = (numbers(column, str(name)) for column in pair)
        shifts[str(name)] = _from_columns(str(name), first, second)
    return Beside(inside, shifted, gaps, tuple(shifts.values()))


def _from_tables(name: str, inside: Values, shifted: Values) -> Shift:
    first, second = (_centre(name, part.table) for part in (inside, shifted))
    return Shift(name, first[0], second[0], first[1], second[1])


def _centre(name: str, table: Moments) -> tuple[float, float]:
    """Return mean and σ of the targets or of the predictions of a summary."""
    y, plain = float(table.plain.y), table.plain
    if name == "targets":
        return y, math.sqrt(float(plain.mean(2, 0)))
    variance = float(plain.mean(2, 0) + 2.0 * plain.mean(1, 1) + plain.mean(0, 2))
    return y + float(plain.e), math.sqrt(max(variance, 0.0))


def _from_columns(name: str, first: Floats, second: Floats) -> Shift:
    for values, where in ((first, "inside"), (second, "shifted")):
        if not len(values) or not np.isfinite(values).all():
            raise BadValues(f"The column {brief(name)} {where} needs finite numbers only.")
    low, high = np.quantile(first, [EDGE, 1.0 - EDGE])
    return Shift(
        name,
        float(first.mean()),
        float(second.mean()),
        float(first.std()),
        float(second.std()),
        float(((second < low) | (second > high)).mean()),
        float(((second < first.min()) | (second > first.max())).mean()),
    )


def _shift_in_words(shift: Shift) -> str:
    if math.isnan(shift.by):
        return f"How far the {shift.name} are shifted is undefined: those inside are all equal."
    side = "above" if shift.by > 0 else "below"
    text = f"The shifted {shift.name} lie {number(abs(shift.by))} σ {side} those inside on average"
    if math.isnan(shift.beyond_range):
        return f"{text}."
    return f"{text}; {_percent(shift.beyond_range)} of them are outside of the range inside."


def _percent(share: float) -> str | None:
    return None if math.isnan(share) else f"{100 * share:.1f} %"


def _beside_blocks(result: Beside) -> list[str | Grid]:
    level = result.inside.interval
    title = "" if level is None else f" with {100 * level.level:g} % intervals"
    rows: list[tuple[Cell, ...]] = []
    clear: list[str] = []
    for metric in result.inside.wanted:
        name = metric.expression
        if name not in result.differences:
            continue
        gap, unit = result.differences[name], result.inside.unit_of(metric)
        cells = (result.inside.metrics[name], result.shifted.metrics[name], gap)
        rows.append((f"{name} ({unit})" if unit else name, *map(cell, cells)))
        if gap.low > 0 or gap.high < 0:
            side = "higher" if gap.value > 0 else "lower"
            clear.append(f"{name} is {side} by {amount(gap, unit)}")
    header = ("metric", "inside", "shifted", "shifted less inside")
    words = f"On the shifted set {'; '.join(clear)}." if clear else None
    if words is None and level is not None:
        words = "On no metric can the two sets be told apart."
    sigmas = (
        f"R² and its like are relative to the σ of each set's own targets "
        f"({number(result.inside.sigma)} inside, {number(result.shifted.sigma)} shifted)."
    )
    grid = Grid(f"Inside and shifted{title}", header, tuple(rows))
    return [grid, *([words] if words else []), sigmas]


def _shift_grid(result: Beside) -> Grid:
    header = ("column", "mean inside", "shifted", "σ inside", "shifted", "shift in σ")
    rows = tuple(
        (
            shift.name,
            *map(number, (shift.inside_mean, shift.shifted_mean)),
            *map(number, (shift.inside_sigma, shift.shifted_sigma)),
            number(shift.by),
            _percent(shift.beyond_middle),
            _percent(shift.beyond_range),
        )
        for shift in result.shifts
    )
    known = any(not math.isnan(shift.beyond_range) for shift in result.shifts)
    extra = ("outside of the middle 98 %", "outside of the range") if known else ()
    cut = len(header) + len(extra)
    return Grid("How far it is shifted", (*header, *extra), tuple(row[:cut] for row in rows))
