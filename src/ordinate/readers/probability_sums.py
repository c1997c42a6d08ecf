"""Probabilities of lazy tables: labels counted by their engine, rows summed up in batches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import add
from typing import Annotated, Any

import numpy as np

from ordinate.readers.batches import Summarizer
from ordinate.readers.cells import CountedCells, number_groups
from ordinate.readers.column_names import check_column, expand_columns
from ordinate.readers.columns import ROLES
from ordinate.readers.confusion import ConfusionReader
from ordinate.readers.expressions import (
    ALWAYS,
    COUNT,
    choose,
    column,
    constant,
    find_largest,
    join_by_or,
)
from ordinate.readers.items import (
    BESIDE_GOLD,
    GOLD,
    PREDICTED,
    SOMEWHERE,
    SUBGROUP,
    WEIGHT,
    Array,
    ItemSource,
    Table,
    has_weight,
)
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.base import SUM, FieldRule, Summary
from ordinate.summaries.confusion import ConfusionData
from ordinate.summaries.probabilities import (
    NO_COLUMN,
    count_agreement,
    match_columns_to_levels,
)
from ordinate.summaries.reliability import (
    ROWS_PER_BLOCK,
    Reliability,
    ReliabilityAccumulator,
    ReliabilityParts,
)
from ordinate.summaries.tabulation import MissingPolicy, make_missing_labels_error

STATED = "stated"  # gold before it is taken away from items that lack something else
TIMES = "w"


@dataclass(frozen=True, eq=False)
class ProbabilitySums(Summary):
    """The summary of each subgroup; and of how many items a label is predicted, and agrees."""

    parts: Annotated[
        tuple[Reliability, ...],
        FieldRule(load=lambda parts: tuple(map(Reliability.from_dict, parts))),
    ]
    agreed: Annotated[Array, SUM]  # [2]: all of them, and those that agree

    def _merge(self, other: "ProbabilitySums") -> dict[str, Any]:
        parts = tuple(map(add, self.parts, other.parts))
        return super()._merge(other) | {"parts": parts}


def sum_probabilities(
    columns: Table,
    *,
    scale: Scale,
    parts: ReliabilityParts,
    levels: Mapping[str, Array],
    subgroups: int,
    renormalize: bool,
    drop: bool,
) -> ProbabilitySums:
    """Sum up a batch: probabilities p0, p1, …, and numbers of labels, which have these levels."""
    found, agreed = [], np.zeros(2)
    size = len(scale)
    rows = np.stack([columns[f"given{k}"] for k in range(size)], axis=1)
    sides = {side: known[columns[side]] for side, known in levels.items()}
    by = columns.get(SUBGROUP, np.zeros(len(rows), np.int64))
    order = np.argsort(by, kind="stable")
    for here in np.split(order, np.searchsorted(by[order], np.arange(1, subgroups))):
        counter = ReliabilityAccumulator(
            scale, parts, renormalize=renormalize, place=lambda _: SOMEWHERE
        )
        for start in range(0, len(here), ROWS_PER_BLOCK):
            block = here[start : start + ROWS_PER_BLOCK]
            weight = columns[TIMES][block] if TIMES in columns else None
            counter.add(sides[GOLD][block], rows[block], weight, "drop" if drop else "error")
        found.append(counter.summary())
    if PREDICTED in sides:
        agreed += count_agreement(rows, sides[GOLD], sides[PREDICTED], size)
    return ProbabilitySums(tuple(found), agreed)


class ProbabilityReader:
    """One run over rows of probabilities of a lazy table.

    `names` are its columns by argument; `probabilities` those of the levels, or their prefix.
    """

    def __init__(
        self,
        table: LazyTable,
        names: Mapping[str, str],
        probabilities: tuple[str, ...],
        scale: Any = None,
        renamed: Mapping[str, str | None] | None = None,
        *,
        renormalize: bool = False,
        drop: bool = False,
    ) -> None:
        refuse_unnamed_columns(names, GOLD)
        self.titles = {ROLES[argument]: name for argument, name in names.items()}
        self.weighted = WEIGHT in self.titles
        self.renormalize, self.drop = renormalize, drop
        self.spelling = LabelSpelling(renamed)
        self.scale, self.notes = self._find_scale(table, scale)
        found = expand_columns(probabilities, table, self.scale)
        for name in found:
            check_column(table.name, name, table.columns)
        order = match_columns_to_levels(self.scale, found)
        named = {f"cell{k}": found[x] for k, x in enumerate(order) if x != NO_COLUMN}
        self.names = list(named.values())
        stated = {STATED if drop and x == GOLD else x: name for x, name in self.titles.items()}
        items = table.open_items(stated | named)
        if drop:  # gold is taken away where another label or the cluster is missing
            others = [column(x).is_missing() for x in BESIDE_GOLD if x in self.titles]
            gold = choose(join_by_or(others), None, column(STATED)) if others else column(STATED)
            items = items.add_columns({GOLD: gold})
        given = {
            f"given{k}": column(f"cell{k}").to_number() if f"cell{k}" in named else constant(0.0)
            for k in range(len(self.scale))
        }
        weight = {TIMES: column(WEIGHT).to_number()} if self.weighted else {}
        self.items = items.add_columns(given | weight)
        self.given = list(given)

    def _find_scale(self, table: LazyTable, declared: Any) -> tuple[Scale, list[str]]:
        sides = [side for side in (GOLD, PREDICTED) if side in self.titles]
        scale, told = table.find_scale(declared, [self.titles[side] for side in sides])
        notes = list(told)
        if scale is None:
            seen = table.open_items(self.titles).sum_by(sides, {"items": COUNT})
            labels = {label for side in sides for label in seen[side]}
            scale = self.spelling.find_scale(None, labels, notes)
        return self.spelling.renamed.adjust(scale), notes

    # --- labels ------------------------------------------------------------------------------

    def count_labels(self, missing: MissingPolicy) -> ConfusionData:
        """Count labels; where no predicted ones were named, the most probable are taken."""
        items, title = self.items, self.titles.get(PREDICTED)
        if title is None:
            title = f"the most probable of {', '.join(self.names)}"
            items = self._add_most_probable()
        found = ConfusionReader(items, self.titles, self.spelling).read(self.scale, missing)
        return replace(found, predicted=title, files=(), notes=(*self.notes, *found.notes))

    def _add_most_probable(self) -> ItemSource:
        """Return the items with the label of the most probable level, None of incomplete rows."""
        given = [column(name) for name in self.given]
        items, shares = self.items, self.given
        if self.renormalize:
            total = reduce(add, given)
            shares = [f"p{k}" for k in range(len(given))]
            some = choose(total > 0.0, total, 1.0)
            items = items.add_columns({"total": some}).add_columns(
                {name: x / column("total") for name, x in zip(shares, given, strict=True)}
            )
        parts = [column(name) for name in shares]
        items = items.add_columns({"best": find_largest(parts)})
        lacking = join_by_or([x.is_missing() | ~x.is_finite() for x in given])
        tops = [(x == column("best"), k) for k, x in zip(self.scale.labels, parts, strict=True)]
        label = choose(lacking, None, *chain(*tops[:-1]), self.scale.labels[-1])
        return items.add_columns({PREDICTED: label})

    # --- probabilities -----------------------------------------------------------------------

    def count_probabilities(
        self, parts: ReliabilityParts, missing: MissingPolicy
    ) -> tuple[Reliability, dict[Any, Reliability]]:
        """Return the summary of all items, and of each subgroup that has some."""
        cells = self._count_gold(missing)
        subgroups = number_groups(cells.table, SUBGROUP)
        sides = {GOLD: cells.sides[GOLD].values}
        if PREDICTED in self.titles:
            sides[PREDICTED] = self._list_predicted()
        levels = {side: self._encode(side, values) for side, values in sides.items()}
        keys = {side: Groups(values, np.arange(len(values))) for side, values in sides.items()}
        if SUBGROUP in self.titles:
            keys[SUBGROUP] = subgroups
        where = has_weight(keyed=False) if self.weighted else ALWAYS
        batches = self.items.open_batches([*self.given, *[TIMES] * self.weighted], keys, where)
        make = partial(
            sum_probabilities,
            scale=self.scale,
            parts=parts,
            levels=levels,
            subgroups=len(subgroups.values),
            renormalize=self.renormalize,
            drop=missing == "drop",
        )
        found = batches.sum_up(Summarizer(ProbabilitySums, make))
        if found is None or not sum(part.items for part in found.parts):
            empty = ReliabilityAccumulator(self.scale, parts)
            empty.seen = int(cells.table["items"].sum())
            empty.refuse_no_items()
        assert found is not None  # noqa: S101 - refused
        self.agreed, summaries = found.agreed, found.parts
        by = zip(subgroups.values, summaries, strict=True) if SUBGROUP in self.titles else ()
        return reduce(add, summaries), {name: part for name, part in by if part.items}

    def measure_agreement(self) -> float:
        """Return how often the most probable level is the predicted one, of counted items."""
        return float(self.agreed[1] / self.agreed[0]) if self.agreed[0] else math.nan

    def _count_gold(self, missing: MissingPolicy) -> CountedCells:
        """Count items by gold label, and refuse those that cannot be evaluated."""
        titles = {role: x for role, x in self.titles.items() if role in (GOLD, WEIGHT, SUBGROUP)}
        cells = CountedCells(self.items, titles, [GOLD], self.spelling, "evaluate")
        _, levels = cells.encode(self.scale)
        known = levels[GOLD] < len(self.scale)
        if missing != "drop" and not known.all():
            count, n = (int(x.sum()) for x in (cells.sums.items[~known], cells.sums.items))
            places = cells.find_missing_labels(GOLD)
            raise make_missing_labels_error(count, n, "gold labels", places)
        return cells

    def _list_predicted(self) -> list[Any]:
        return self.items.sum_by([PREDICTED], {"items": COUNT})[PREDICTED].tolist()

    def _encode(self, side: str, values: Sequence[Any]) -> Array:
        """Return the levels of labels, as they are spelled on a side."""
        spelling = self.spelling.cut_scores(self.scale) if side == PREDICTED else self.spelling
        return spelling.encode_labels(self.scale, values)[: len(values)]
