"""Cells that should hold numbers: which are empty, and which hold something else."""

from dataclasses import dataclass
from typing import Literal, get_args

from ordinate.errors import BadOption, BadValues, NoItems, shorten
from ordinate.readers.duckdb_connection import quote_literal
from ordinate.readers.expressions import sql
from ordinate.readers.items import ItemSource
from ordinate.readers.label_cells import LabelSpelling, RowLocator
from ordinate.summaries.counting import HEAVIEST_WEIGHT
from ordinate.summaries.tabulation import (
    DROP_HINT,
    ROWS_SHOWN,
    make_missing_groups_error,
    make_missing_labels_error,
)

MissingPolicy = Literal["error", "drop"]
ROLE_TITLES = {"y": "target", "p": "prediction", "low": "lower bound", "high": "upper bound"}
# Of all questions about NaN and infinity, `isfinite` alone is never looked up in the statistics
# of a Parquet file, which leave NaN out; a comparison, and even `isnan`, may be.
FINITE_OR_INFINITE_SQL = (
    "CASE WHEN isfinite({0}) THEN true ELSE starts_with(CAST({0} AS VARCHAR), '%s') END"
)
VALID_CELL_SQL = {
    "y": "isfinite({0})",
    "p": "isfinite({0})",
    "low": FINITE_OR_INFINITE_SQL % "-inf",
    "high": FINITE_OR_INFINITE_SQL % "inf",
}
INFINITE_BOUND_HINTS = {"low": ", nor -inf for no bound", "high": ", nor inf for no bound"}
IS_NUMBER_SQL, IS_TIME_SQL = (
    "isfinite(TRY_CAST({0} AS DOUBLE))",
    "isfinite(TRY_CAST({0} AS TIMESTAMPTZ))",
)


@dataclass(frozen=True)
class NumericColumns:
    """The columns of numbers by role: how the items call them, and the file does."""

    aliases: dict[str, str]
    titles: dict[str, str]
    groups: str | None
    weighted: bool
    keyed: bool
    order: str | None

    @property
    def usable(self) -> str:
        """SQL for whether an item counts."""
        there = [f"{role} IS NOT NULL" for role in self.aliases]
        return " AND ".join(["in_gold", *there, *(["cluster IS NOT NULL"] * bool(self.groups))])

    @property
    def counting(self) -> dict[str, str]:
        """Conditions that the first pass counts."""
        found = {f"no_{role}": f"in_gold AND {role} IS NULL" for role in self.aliases}
        for role in self.aliases:
            found[f"bad_{role}"] = f"in_gold AND NOT ({VALID_CELL_SQL[role].format(role)})"
        if "low" in self.aliases:
            found["swapped"] = "ok AND low > high"
        if self.groups is not None:
            found["no_group"] = "in_gold AND cluster IS NULL"
        if self.weighted:
            fine = f"isfinite(w) AND w >= 0 AND w < {HEAVIEST_WEIGHT}"
            found["bad_weight"] = f"in_gold AND (w IS NULL OR NOT ({fine}))"
        if self.keyed:
            found |= {
                "matched": "in_gold AND in_predicted",
                "missing": "NOT in_predicted",
                "unknown": "NOT in_gold",
            }
        if self.order is not None:
            found["no_time"] = "ok AND t IS NULL"
            found["no_number"] = f"ok AND NOT coalesce({IS_NUMBER_SQL.format('t')}, false)"
            found["no_date"] = f"ok AND NOT coalesce({IS_TIME_SQL.format('t')}, false)"
        return found


class NumericCells(RowLocator):
    """Finds cells that cannot be used, as errors name them."""

    def __init__(self, items: ItemSource, weights: str | None, numbers: NumericColumns) -> None:
        super().__init__(items, LabelSpelling({}), weights)
        self.numbers = numbers

    def check_counts(
        self, counts: dict[str, int], items: int, given: int, missing: MissingPolicy
    ) -> None:
        """Refuse what the first pass counted, if it should not be there."""
        if missing not in get_args(MissingPolicy):
            raise BadOption(
                f"missing={missing!r} is not one of {', '.join(get_args(MissingPolicy))}."
            )
        if counts.get("bad_weight"):
            self.check_weights()
        if not given:
            self.refuse_no_items("evaluate")
        for role in self.numbers.aliases:
            if counts[f"no_{role}"] or counts[f"bad_{role}"]:
                self._refuse_strange_number(role)
        if missing != "drop":
            self._refuse_missing(counts, given)
        if counts.get("swapped"):
            self._refuse_swapped_bounds()
        if not items:
            raise NoItems(f"There are no items to evaluate: all {given:,} lack a value.")

    def _refuse_strange_number(self, role: str) -> None:
        called, title = self.numbers.aliases[role], self.numbers.titles[role]
        value = f"TRY_CAST({called} AS DOUBLE)"
        strange = f"{value} IS NULL OR NOT ({VALID_CELL_SQL[role].format(value)})"
        text = f"CAST({called} AS VARCHAR)"
        condition = f"{text} <> '' AND ({strange})"
        for place, found in self.find_cells(sql(condition), sql(text), 1):
            raise BadValues(
                f"The {ROLE_TITLES[role]} ({place} of column {title!r}) is {shorten(found)}, which "
                f"is no finite number{INFINITE_BOUND_HINTS.get(role, '')}. Correct it, or leave "
                f"the cell empty and the item out with {DROP_HINT}."
            )

    def _refuse_missing(self, counts: dict[str, int], given: int) -> None:
        for role, called in self.numbers.aliases.items():
            if counts[f"no_{role}"]:
                empty = sql(f"{called} IS NULL OR CAST({called} AS VARCHAR) = ''")
                places = [place for place, _ in self.find_cells(empty, sql(called), ROWS_SHOWN)]
                what = f"{ROLE_TITLES[role]}s in column {self.numbers.titles[role]!r}"
                raise make_missing_labels_error(
                    counts[f"no_{role}"], given, what, places, f"Leave them out with {DROP_HINT}."
                )
        if counts.get("no_group"):
            column = f"column {self.numbers.groups!r}"
            raise make_missing_groups_error(
                counts["no_group"], given, column, self.find_empty_cells("cluster")
            )

    def _refuse_swapped_bounds(self) -> None:
        low, high = (f"TRY_CAST({self.numbers.aliases[x]} AS DOUBLE)" for x in ("low", "high"))
        for place, found in self.find_cells(sql(f"{low} > {high}"), sql(f"[{low}, {high}]"), 1):
            raise BadValues(
                f"The lower bound ({place} of column {self.numbers.titles['low']!r}), {found[0]}, "
                f"is above the upper bound, {found[1]}. Swap the two, or leave the item out."
            )

    # --- the order of items ------------------------------------------------------------------

    def build_time_sql(self, counts: dict[str, int]) -> tuple[str, ...]:
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
        usable = [f"TRY_CAST({called} AS DOUBLE) IS NOT NULL" for called in self._list_aliases()]
        where = " AND ".join([*usable, f"({condition.format(TIME_TEXT_SQL)})"])
        for place, found in self.find_cells(sql(where), sql("moment"), 1):
            raise BadValues(
                f"The time ({place} of column {self.numbers.order!r}) "
                f"{what.format(shorten(found))}: which target came before is unknown."
            )

    def refuse_tied_times(self, keys: tuple[str, ...], text: str) -> None:
        """Say which items have the same time."""
        same = (
            f"{key.format(TIME_TEXT_SQL)} IS NOT DISTINCT FROM {key.format(quote_literal(text))}"
            for key in keys
        )
        usable = (f"TRY_CAST({called} AS DOUBLE) IS NOT NULL" for called in self._list_aliases())
        found = self.find_cells(sql(" AND ".join([*usable, *same])), sql("moment"), ROWS_SHOWN)
        places = ", ".join(place for place, _ in found)
        raise BadValues(
            f"Column {self.numbers.order!r} has the time {shorten(text)} more than once "
            f"({places}): which target came before is unknown."
        )

    def _list_aliases(self) -> list[str]:
        return list(self.numbers.aliases.values())


TIME_TEXT_SQL = "CAST(moment AS VARCHAR)"
