"""Cells that should hold numbers: which are empty, and which hold something else."""

from dataclasses import dataclass
from typing import Literal, get_args

from ordinate.errors import BadOption, BadValues, NoItems, brief
from ordinate.readers.duckdb_engine import Connection
from ordinate.readers.files import literal
from ordinate.readers.label_spelling import Spelling
from ordinate.readers.query import Items
from ordinate.readers.row_locations import Places
from ordinate.summaries.counting import HEAVIEST
from ordinate.summaries.tabulation import DROP, SHOWN, absent, no_group

Missing = Literal["error", "drop"]
ROLES = {"y": "target", "p": "prediction", "low": "lower bound", "high": "upper bound"}
# Of all questions about NaN and infinity, `isfinite` alone is never answered from the statistics
# of a Parquet file, which leave NaN out; a comparison, and even `isnan`, may be.
ENDLESS = "CASE WHEN isfinite({0}) THEN true ELSE starts_with(CAST({0} AS VARCHAR), '%s') END"
FINE = {
    "y": "isfinite({0})",
    "p": "isfinite({0})",
    "low": ENDLESS % "-inf",
    "high": ENDLESS % "inf",
}
BETWEEN = {"low": ", nor -inf for no bound", "high": ", nor inf for no bound"}
NUMBER, TIME = "isfinite(TRY_CAST({0} AS DOUBLE))", "isfinite(TRY_CAST({0} AS TIMESTAMPTZ))"


@dataclass(frozen=True)
class Numbers:
    """The columns of numbers by role: how the items call them, and the file does."""

    called: dict[str, str]
    titles: dict[str, str]
    groups: str | None
    weighted: bool
    keyed: bool
    order: str | None

    @property
    def usable(self) -> str:
        """SQL for whether an item counts."""
        there = [f"{role} IS NOT NULL" for role in self.called]
        return " AND ".join(["in_gold", *there, *(["cluster IS NOT NULL"] * bool(self.groups))])

    @property
    def counting(self) -> dict[str, str]:
        """Conditions that the first pass counts."""
        found = {f"no_{role}": f"in_gold AND {role} IS NULL" for role in self.called}
        for role in self.called:
            found[f"bad_{role}"] = f"in_gold AND NOT ({FINE[role].format(role)})"
        if "low" in self.called:
            found["crossed"] = "ok AND low > high"
        if self.groups is not None:
            found["no_group"] = "in_gold AND cluster IS NULL"
        if self.weighted:
            fine = f"isfinite(w) AND w >= 0 AND w < {HEAVIEST}"
            found["bad_weight"] = f"in_gold AND (w IS NULL OR NOT ({fine}))"
        if self.keyed:
            found |= {
                "matched": "in_gold AND in_predicted",
                "missing": "NOT in_predicted",
                "unknown": "NOT in_gold",
            }
        if self.order is not None:
            found["no_time"] = "ok AND t IS NULL"
            found["no_number"] = f"ok AND NOT coalesce({NUMBER.format('t')}, false)"
            found["no_date"] = f"ok AND NOT coalesce({TIME.format('t')}, false)"
        return found


class Cells(Places):
    """Finds cells that cannot be used, as errors name them."""

    def __init__(
        self, connection: Connection, items: list[Items], weights: str | None, numbers: Numbers
    ) -> None:
        super().__init__(connection, items, Spelling({}), weights)
        self.numbers = numbers

    def check(self, counts: dict[str, int], items: int, given: int, missing: Missing) -> None:
        """Refuse what the first pass counted, if it should not be there."""
        if missing not in get_args(Missing):
            raise BadOption(f"missing={missing!r} is not one of {', '.join(get_args(Missing))}.")
        if counts.get("bad_weight"):
            for part in self.items:
                self.check_weights(part)
        if not given:
            self.refuse_nothing("evaluate")
        for role in self.numbers.called:
            if counts[f"no_{role}"] or counts[f"bad_{role}"]:
                self._refuse_strange_number(role)
        if missing != "drop":
            self._refuse_missing(counts, given)
        if counts.get("crossed"):
            self._refuse_crossed()
        if not items:
            raise NoItems(f"There are no items to evaluate: all {given:,} lack a value.")

    def _refuse_strange_number(self, role: str) -> None:
        called, title = self.numbers.called[role], self.numbers.titles[role]
        value = f"TRY_CAST({called} AS DOUBLE)"
        strange = f"{value} IS NULL OR NOT ({FINE[role].format(value)})"
        condition = f"in_gold AND CAST({called} AS VARCHAR) <> '' AND ({strange})"
        for place, found in self._anywhere(condition, f"CAST({called} AS VARCHAR)", 1):
            raise BadValues(
                f"The {ROLES[role]} ({place} of column {title!r}) is {brief(found)}, which is no "
                f"finite number{BETWEEN.get(role, '')}. Correct it, or leave the cell empty and "
                f"the item out with {DROP}."
            )

    def _refuse_missing(self, counts: dict[str, int], given: int) -> None:
        for role, called in self.numbers.called.items():
            if counts[f"no_{role}"]:
                condition = f"in_gold AND ({called} IS NULL OR CAST({called} AS VARCHAR) = '')"
                places = [place for place, _ in self._anywhere(condition, called, SHOWN)]
                what = f"{ROLES[role]}s in column {self.numbers.titles[role]!r}"
                raise absent(
                    counts[f"no_{role}"], given, what, places, f"Leave them out with {DROP}."
                )
        if counts.get("no_group"):
            column = f"column {self.numbers.groups!r}"
            raise no_group(counts["no_group"], given, column, self.empty("cluster"))

    def _refuse_crossed(self) -> None:
        low, high = (f"TRY_CAST({self.numbers.called[x]} AS DOUBLE)" for x in ("low", "high"))
        for place, found in self._anywhere(f"in_gold AND {low} > {high}", f"[{low}, {high}]", 1):
            raise BadValues(
                f"The lower bound ({place} of column {self.numbers.titles['low']!r}), {found[0]}, "
                f"is above the upper bound, {found[1]}. Swap the two, or leave the item out."
            )

    # --- the order of items ------------------------------------------------------------------

    def time_of(self, counts: dict[str, int]) -> tuple[str, ...]:
        """Return SQL for what sorts items by time: numbers, or dates and times."""
        if counts["no_time"]:
            self._refuse_time("moment IS NULL OR {0} = ''", "is missing")
        if not counts["no_number"]:
            # Whole numbers that are the same as doubles may still differ.
            return "TRY_CAST({0} AS DOUBLE)", "TRY_CAST({0} AS HUGEINT)"
        if counts["no_date"]:
            numbers = counts["no_number"] < counts["no_date"]
            strange = f"NOT coalesce({NUMBER if numbers else TIME}, false)"
            self._refuse_time(strange, "is {0}, which is neither a number nor a date or time")
        return ("TRY_CAST({0} AS TIMESTAMPTZ)",)

    def _refuse_time(self, condition: str, what: str) -> None:
        usable = [f"TRY_CAST({called} AS DOUBLE) IS NOT NULL" for called in self._called()]
        where = " AND ".join(["in_gold", *usable, f"({condition.format(TEXT)})"])
        for place, found in self._anywhere(where, "moment", 1):
            raise BadValues(
                f"The time ({place} of column {self.numbers.order!r}) "
                f"{what.format(brief(found))}: nobody knows which target came before."
            )

    def refuse_tie(self, keys: tuple[str, ...], text: str) -> None:
        """Say which items have the same time."""
        same = (
            f"{key.format(TEXT)} IS NOT DISTINCT FROM {key.format(literal(text))}" for key in keys
        )
        usable = (f"TRY_CAST({called} AS DOUBLE) IS NOT NULL" for called in self._called())
        found = self._anywhere(" AND ".join(["in_gold", *usable, *same]), "moment", SHOWN)
        places = ", ".join(place for place, _ in found)
        raise BadValues(
            f"Column {self.numbers.order!r} has the time {brief(text)} more than once ({places}): "
            "nobody knows which target came before."
        )

    def _called(self) -> list[str]:
        return list(self.numbers.called.values())


TEXT = "CAST(moment AS VARCHAR)"
