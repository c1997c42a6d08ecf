"""Cells that should hold numbers: which are empty, and which hold something else."""

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Literal

from ordinate.errors import BadValues, NoItems, shorten, word_advice
from ordinate.readers.duckdb_connection import quote_literal
from ordinate.readers.expressions import ALWAYS, Aggregate, Expression, column, count_where, sql
from ordinate.readers.items import (
    CLUSTER,
    IN_GOLD,
    IN_PREDICTED,
    WEIGHT,
    ItemSource,
    is_wrong_weight,
)
from ordinate.readers.label_cells import RowLocator
from ordinate.readers.number_spelling import suggest_decimal
from ordinate.summaries.tabulation import (
    check_missing_policy,
    make_missing_groups_error,
    make_missing_labels_error,
)

MissingPolicy = Literal["error", "drop"]
TARGET, GUESS, LOW, HIGH, TIMES = "y", "p", "low", "high", "w"  # columns of numbers
USABLE = "ok"
ROLE_TITLES = {TARGET: "target", GUESS: "prediction", LOW: "lower bound", HIGH: "upper bound"}
INFINITE_BOUND_HINTS = {LOW: ", nor -inf for no bound", HIGH: ", nor inf for no bound"}
IS_NUMBER_SQL, IS_TIME_SQL = (
    "isfinite(TRY_CAST({0} AS DOUBLE))",
    "isfinite(TRY_CAST({0} AS TIMESTAMPTZ))",
)
MOMENT, TIME_TEXT_SQL = "moment", "CAST(moment AS VARCHAR)"


class NumericCells(RowLocator):
    """Reads cells as numbers, and finds those that cannot be used, as errors name them.

    `titles` is what people call the columns of the items, `columns` which of them are numbers, by
    role. Files alone have a column of times.
    """

    def __init__(
        self, items: ItemSource, titles: Mapping[str, str], columns: Mapping[str, str]
    ) -> None:
        super().__init__(items, titles.get(WEIGHT))
        self.titles = titles
        self.columns = {role: name for role, name in columns.items() if name in titles}

    def add_numbers(self) -> ItemSource:
        """Return the items with columns of numbers, and whether an item counts."""
        names = {**self.columns, **({TIMES: WEIGHT} if self.weights else {})}
        numbers = {role: column(name).to_number() for role, name in names.items()}
        return self.items.add_columns(numbers | {USABLE: self._is_usable()})

    def _is_usable(self) -> Expression:
        there = [~self._get_number(role).is_missing() for role in self.columns]
        there += [~column(CLUSTER).is_missing()] * (CLUSTER in self.titles)
        return reduce(and_, [*([column(IN_GOLD)] * self.items.keyed), *there])

    def _get_number(self, role: str) -> Expression:
        return column(self.columns[role]).to_number()

    def _get_title(self, role: str) -> str:
        return self.titles[self.columns[role]]

    def _is_strange(self, role: str) -> Expression:
        """Tell whether something stands in a cell that is no number of its role."""
        number = self._get_number(role)
        valid = number.is_finite()
        if role in {LOW, HIGH}:
            valid |= number.is_infinite() & (number < 0 if role == LOW else number > 0)
        cell = column(self.columns[role])
        return (cell.is_text() & ~cell.is_missing_word()) | (~number.is_missing() & ~valid)

    def list_counts(self) -> dict[str, Aggregate]:
        """Return what is counted of items, by name."""
        found = {f"no_{role}": self._get_number(role).is_missing() for role in self.columns}
        found |= {f"bad_{role}": self._is_strange(role) for role in self.columns}
        if LOW in self.columns:
            found["swapped"] = column(USABLE) & (column(LOW) > column(HIGH))
        if CLUSTER in self.titles:
            found["no_group"] = column(CLUSTER).is_missing()
        if self.weights is not None:
            found["bad_weight"] = is_wrong_weight(column(TIMES))
        if MOMENT in self.titles:
            text = sql(f"nullif({TIME_TEXT_SQL}, '')")
            found["no_time"] = column(USABLE) & text.is_missing()
            for name, template in (("no_number", IS_NUMBER_SQL), ("no_date", IS_TIME_SQL)):
                fine = sql(f"coalesce({template.format(TIME_TEXT_SQL)}, false)")
                found[name] = column(USABLE) & ~fine
        given = column(IN_GOLD) if self.items.keyed else ALWAYS
        found = {"given": given} | {name: given & each for name, each in found.items()}
        if self.items.keyed:
            found["matched"] = column(IN_GOLD) & column(IN_PREDICTED)
            found |= {"missing": ~column(IN_PREDICTED), "unknown": ~column(IN_GOLD)}
        return {name: count_where(each) for name, each in found.items()}

    def check_counts(self, counts: Mapping[str, int], items: int, missing: MissingPolicy) -> None:
        """Refuse what was counted, if it should not be there."""
        check_missing_policy(missing, MissingPolicy)
        if counts.get("bad_weight"):
            self.check_weights()
        if not counts["given"]:
            self.refuse_no_items("evaluate")
        for role in self.columns:
            if counts[f"bad_{role}"]:
                self._refuse_strange_number(role)
        if missing != "drop":
            self._refuse_missing(counts)
        if counts.get("swapped"):
            self._refuse_swapped_bounds()
        if not items:
            raise NoItems(f"There are no items to evaluate: all {counts['given']:,} lack a value.")

    def _refuse_strange_number(self, role: str) -> None:
        shown = column(self.columns[role])
        for place, found in self.find_cells(self._is_strange(role), 1, shown):
            raise BadValues(
                f"The {ROLE_TITLES[role]} ({place} of column {self._get_title(role)!r}) is "
                f"{shorten(str(found))}, which is no finite number"
                f"{INFINITE_BOUND_HINTS.get(role, '')}.{suggest_decimal(found)} Correct it, or "
                + word_advice(
                    "leave the cell empty and the item out with {missing}.", missing="drop"
                )
            )

    def _refuse_missing(self, counts: Mapping[str, int]) -> None:
        for role, alias in self.columns.items():
            if counts[f"no_{role}"]:
                places = self.find_empty_cells(alias, self._get_number(role).is_missing())
                what = f"{ROLE_TITLES[role]}s in column {self._get_title(role)!r}"
                count, n = counts[f"no_{role}"], counts["given"]
                raise make_missing_labels_error(count, n, what, places)
        if counts.get("no_group"):
            count, n, name = counts["no_group"], counts["given"], self.titles[CLUSTER]
            places = self.find_empty_cells(CLUSTER)
            raise make_missing_groups_error(count, n, f"column {name!r}", places)

    def _refuse_swapped_bounds(self) -> None:
        low, high = self._get_number(LOW), self._get_number(HIGH)
        for place, found in self.find_cells(low > high, 1, low):
            raise BadValues(
                f"The lower bound ({place} of column {self._get_title(LOW)!r}), {found}, is "
                "above the upper bound. Swap the two, or leave the item out."
            )

    # --- the order of items ------------------------------------------------------------------

    def build_time_sql(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """Return SQL for what sorts items by time: numbers, or dates and times."""
        if counts["no_time"]:
            self._refuse_time("moment IS NULL OR {0} = ''", "is missing")
        if not counts["no_number"]:
            # Integers that are the same as doubles may still differ.
            return "TRY_CAST({0} AS DOUBLE)", "TRY_CAST({0} AS HUGEINT)"
        if counts["no_date"]:
            numbers = counts["no_number"] < counts["no_date"]
            strange = f"NOT coalesce({IS_NUMBER_SQL if numbers else IS_TIME_SQL}, false)"
            self._refuse_time(strange, "is {0}, which is neither a number nor a date or time")
        return ("TRY_CAST({0} AS TIMESTAMPTZ)",)

    def _refuse_time(self, condition: str, what: str) -> None:
        where = self._is_usable() & sql(condition.format(TIME_TEXT_SQL))
        for place, found in self.find_cells(where, 1, column(MOMENT)):
            raise BadValues(
                f"The time ({place} of column {self.titles[MOMENT]!r}) "
                f"{what.format(shorten(found))}: which target came before is unknown."
            )

    def refuse_tied_times(self, keys: tuple[str, ...], text: str) -> None:
        """Say which items have the same time."""
        same = (
            f"{key.format(TIME_TEXT_SQL)} IS NOT DISTINCT FROM {key.format(quote_literal(text))}"
            for key in keys
        )
        where = self._is_usable() & sql(" AND ".join(same))
        places = ", ".join(self.find_places(where))
        raise BadValues(
            f"Column {self.titles[MOMENT]!r} has the time {shorten(text)} more than once "
            f"({places}): which target came before is unknown."
        )
