"""Probabilities summed up where they are: the parts of a `Reliability`, from grouped sums."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np

from ordinate.readers.cells import CountedCells, encode_values, number_groups
from ordinate.readers.column_names import check_column, expand_columns
from ordinate.readers.columns import ROLES
from ordinate.readers.confusion import ConfusionReader
from ordinate.readers.expressions import (
    COUNT,
    Aggregate,
    Expression,
    choose,
    column,
    constant,
    count_where,
    join_by_or,
    order_columns,
)
from ordinate.readers.items import (
    BESIDE_GOLD,
    GOLD,
    PREDICTED,
    SUBGROUP,
    WEIGHT,
    Array,
    ItemSource,
    Table,
    build_weight_sums,
    has_weight,
    read_cell_sums,
)
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.probability_expressions import (
    BEST,
    LEVEL,
    SCORE_PAIRS,
    TOP,
    ProbabilityExpressions,
    assign_bin,
)
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.summaries.confusion import ConfusionData
from ordinate.summaries.probabilities import NO_COLUMN, make_row_error, match_columns_to_levels
from ordinate.summaries.probability_bins import Events
from ordinate.summaries.reliability import (
    CURVE_BINS,
    MOST_ORDERED_ITEMS,
    SCORE_NAMES,
    Reliability,
    ReliabilityAccumulator,
    ReliabilityParts,
    join_orders,
)
from ordinate.summaries.tabulation import MissingPolicy, make_missing_labels_error

Counters = list[ReliabilityAccumulator]  # one for each subgroup
STATED = "stated"  # gold before it is taken away from items that lack something else
WEIGHT_SUMS = ("items", "weight", "square")


class ProbabilityReader:
    """One run over rows of probabilities of a lazy table, whose engine sums them up.

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
        self.groups = [SUBGROUP] if SUBGROUP in self.titles else []
        self.weighted = WEIGHT in self.titles
        self.spelling = LabelSpelling(renamed)
        self.scale, self.notes = self._find_scale(table, scale)
        self.rows = ProbabilityExpressions(
            self.scale, weighted=self.weighted, renormalize=renormalize
        )
        found = expand_columns(probabilities, table, self.scale)
        for name in found:
            check_column(table.name, name, table.columns)
        order = match_columns_to_levels(self.scale, found)
        named = {f"cell{k}": found[x] for k, x in enumerate(order) if x != NO_COLUMN}
        zeros = {f"cell{k}": constant(0.0) for k, x in enumerate(order) if x == NO_COLUMN}
        self.names = list(named.values())
        stated = {STATED if drop and x == GOLD else x: name for x, name in self.titles.items()}
        self.items = table.open_items(stated | named)
        if zeros:
            self.items = self.items.add_columns(zeros)
        self.columns = self.rows.columns
        if drop:
            self._blank_incomplete_items()

    def _blank_incomplete_items(self) -> None:
        """Take gold away where another label or the cluster is missing."""
        others = [column(x).is_missing() for x in BESIDE_GOLD if x in self.titles]
        stated = column(STATED)
        gold = choose(join_by_or(others), None, stated) if others else stated
        self.items = self.items.add_columns({GOLD: gold})

    def _find_scale(self, table: LazyTable, declared: Any) -> tuple[Scale, list[str]]:
        sides = [side for side in (GOLD, PREDICTED) if side in self.titles]
        scale, told = table.find_scale(declared, [self.titles[side] for side in sides])
        notes = list(told)
        if scale is None:
            seen = table.open_items(self.titles).sum_by(sides, {"items": COUNT})
            labels = {label for side in sides for label in seen[side]}
            scale = self.spelling.find_scale(None, labels, notes)
        return self.spelling.renamed.adjust(scale), notes

    def _open(self, *needed: Expression) -> ItemSource:
        """Return the items with the columns that are needed."""
        items = self.items
        for columns in order_columns(self.columns, needed):
            items = items.add_columns(columns)
        return items

    # --- labels ------------------------------------------------------------------------------

    def count_labels(self, missing: MissingPolicy) -> ConfusionData:
        """Count labels; where no predicted ones were named, the most probable are taken."""
        items, title = self.items, self.titles.get(PREDICTED)
        if title is None:
            title = f"the most probable of {', '.join(self.names)}"
            predicted = self.rows.choose_label()
            items = self._open(predicted).add_columns({PREDICTED: predicted})
        found = ConfusionReader(items, self.titles, self.spelling).read(self.scale, missing)
        return replace(found, predicted=title, files=(), notes=(*self.notes, *found.notes))

    def measure_agreement(self) -> float:
        """Return how often the most probable level is the predicted one, of counted items."""
        if PREDICTED not in self.titles:
            return math.nan
        items = self._open(self.where, column(TOP))
        table = items.sum_by([PREDICTED, TOP], {"items": COUNT}, self.where)
        values, spelling = table[PREDICTED].tolist(), self.spelling.cut_scores(self.scale)
        levels = spelling.encode_labels(self.scale, values)[: len(values)]
        there, same = levels < len(self.scale), levels == _take_key(table, TOP)
        counts = table["items"][there].astype(float)
        return float(counts @ same[there] / counts.sum()) if counts.any() else math.nan

    # --- probabilities -----------------------------------------------------------------------

    def count_probabilities(
        self, parts: ReliabilityParts, missing: MissingPolicy
    ) -> tuple[Reliability, dict[Any, Reliability]]:
        """Return the summary of all items, and of each subgroup that has some."""
        counted = self._check_items(drop=missing == "drop")
        self.subgroups = number_groups(counted, SUBGROUP)
        counters = [ReliabilityAccumulator(self.scale, parts) for _ in self.subgroups.values]
        for counter, table in zip(counters, self._split_subgroups(counted), strict=True):
            counter.seen = int(table["items"].sum())
            counter.dropped[0] = counter.seen - int(table["present"].sum())
            counter.fractions = not read_cell_sums(table).counted
        if counted["present"].any():
            self._add_sums(counters, parts)
        else:
            counters[0].refuse_no_items()
        summaries = [counter.summary() for counter in counters]
        by = dict(zip(self.subgroups.values, summaries, strict=True)) if self.groups else {}
        return reduce(add, summaries), {name: part for name, part in by.items() if part.items}

    def _check_items(self, *, drop: bool) -> Table:
        """Count items by gold label, and refuse those that cannot be evaluated."""
        wrong, empty = self.rows.is_wrong(), self.rows.is_empty()
        sums = {"empty": count_where(empty), "bad": count_where(wrong & ~empty if drop else wrong)}
        titles = {role: x for role, x in self.titles.items() if role in (GOLD, WEIGHT, SUBGROUP)}
        items = self._open(wrong, empty)
        cells = CountedCells(items, titles, [GOLD], self.spelling, "evaluate", sums)
        _, levels = cells.encode(self.scale)
        known = levels[GOLD] < len(self.scale)
        if not drop and not known.all():
            count, n = (int(x.sum()) for x in (cells.sums.items[~known], cells.sums.items))
            places = cells.find_missing_labels(GOLD)
            raise make_missing_labels_error(count, n, "gold labels", places)
        self._add_gold(cells, drop=drop)
        if cells.table["bad"][known].any():
            self._refuse_row(wrong)
        left = cells.table["items"] - cells.table["empty"] if drop else cells.table["items"]
        return cells.table | {"present": np.where(known, left, 0)}

    def _add_gold(self, cells: CountedCells, *, drop: bool) -> None:
        """Add the level of the gold label, and find out which items count."""
        values = cells.sides[GOLD].values
        levels = self.spelling.encode_labels(self.scale, values)[: len(values)]
        labels = [
            [x for x, level in zip(values, levels, strict=True) if level == k]
            for k in range(len(self.scale))
        ]
        cases = [(column(GOLD).is_in(found), k) for k, found in enumerate(labels) if found]
        if cases:
            self.columns[LEVEL] = choose(*chain(*cases), len(self.scale))
        self.where = column(LEVEL) < len(self.scale)
        if self.weighted:
            self.where &= has_weight(keyed=False)
        if drop:
            self.where &= ~self.rows.is_empty()

    def _refuse_row(self, wrong: Expression) -> None:
        where = self.where & wrong
        for place, *row in self._open(where).find_cells(where, 1, *self.rows.given):
            raise make_row_error(np.array(row, float), place)

    # --- sums --------------------------------------------------------------------------------

    def _add_sums(self, counters: Counters, parts: ReliabilityParts) -> None:
        self._add_cells(counters, parts)
        counts: dict[Events, list[int]] = {"top": [], "levels": [], "cumulative": []}
        for events, count in parts.bins:
            counts[events].append(count)
        if parts.curves:
            counts["cumulative"].append(CURVE_BINS)
        for events, wanted in counts.items():
            self._add_events(counters, events, wanted)
        if parts.ranking:
            self._add_ranks(counters)

    def _add_cells(self, counters: Counters, parts: ReliabilityParts) -> None:
        """Add the sums by gold level and most probable level: cells, scores, probabilities."""
        rows = self.rows
        sums = {"confidence": rows.weigh(column(BEST))}
        if parts.confusion_matrix:
            sums |= {f"p{k}": rows.weigh(p) for k, p in enumerate(rows.p)}
        if parts.scores:
            sums |= rows.list_score_sums()
        keys = {LEVEL: column(LEVEL), TOP: column(TOP)}
        for counter, table in zip(counters, self._sum_by(keys, sums), strict=True):
            gold, top = _take_key(table, LEVEL), _take_key(table, TOP)
            counter.items[0] = table["items"].sum()
            counter.cells[:, 0, gold, top] = [table[name] for name in WEIGHT_SUMS]
            np.add.at(counter.confidence[0], top, table["confidence"])
            if counter.confusion_matrix is not None:
                cells = np.stack([table[f"p{k}"] for k in range(rows.size)], axis=-1)
                np.add.at(counter.confusion_matrix[0], gold, cells)
            if parts.scores:
                _add_scores(counter, table)

    def _add_events(self, counters: Counters, events: Events, counts: list[int]) -> None:
        """Add the sums by bin of each of these events, in so many bins, and in so many."""
        for event, (f, happened) in enumerate(self.rows.list_events(events) if counts else ()):
            sums = self.rows.list_event_sums(f, happened)
            keys = {f"bin{count}": assign_bin(f, count) for count in counts}
            for counter, table in zip(counters, self._sum_by(keys, sums), strict=True):
                found = np.stack([table[name] for name in (*WEIGHT_SUMS, *sums)]).astype(float)
                for count in counts:
                    bins: Any = counter.bins.get((events, count), counter.curves)
                    of_event = bins.reshape(len(found), -1, count)[:, event]
                    np.add.at(of_event.T, _take_key(table, f"bin{count}"), found.T)

    def _add_ranks(self, counters: Counters) -> None:
        """Add the weights by gold level and expected level: its fine bin, and itself of few."""
        keys = {LEVEL: column(LEVEL), "bin": self.rows.assign_rank()}
        if sum(counter.items[0] for counter in counters) <= MOST_ORDERED_ITEMS:
            keys["place"] = self.rows.assign_place()
        for counter, table in zip(counters, self._sum_by(keys, {}), strict=True):
            gold, weight = _take_key(table, LEVEL), table["weight"]
            if counter.ranking is not None:
                np.add.at(counter.ranking[0], (gold, _take_key(table, "bin")), weight)
            if counter.order is not None and "place" in keys:
                own = np.stack([_take_key(table, "place"), gold, weight])
                counter.order = join_orders(counter.order, own)

    def _sum_by(
        self, keys: Mapping[str, Expression], sums: Mapping[str, Expression]
    ) -> list[Table]:
        """Return the sums over the items that count, for each subgroup."""
        items = self._open(self.where, *keys.values(), *sums.values())
        derived = {name: each for name, each in keys.items() if name not in self.columns}
        totals = {name: Aggregate("sum", each) for name, each in sums.items()}
        counts = build_weight_sums(weighted=self.weighted, keyed=False)
        table = (items.add_columns(derived) if derived else items).sum_by(
            [*keys, *self.groups], counts | totals, self.where
        )
        cells = read_cell_sums(table)
        return self._split_subgroups(table | {"weight": cells.weights, "square": cells.squares})

    def _split_subgroups(self, table: Table) -> list[Table]:
        """Return the rows of each subgroup."""
        if not self.groups:
            return [table]
        codes = encode_values(self.subgroups, table, SUBGROUP)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(1, len(self.subgroups.values)))
        return [
            {name: cells[rows] for name, cells in table.items()} for rows in np.split(order, ends)
        ]


def _take_key(table: Table, key: str) -> Array:
    return table[key].astype(float).astype(np.intp)


def _add_scores(counter: ReliabilityAccumulator, table: Table) -> None:
    once, twice, products = counter.scores
    for k in range(len(SCORE_NAMES)):
        once[0, k], twice[0, k] = (table[f"{name}{k}"].sum() for name in ("once", "twice"))
    for i, j in SCORE_PAIRS:
        products[0, i, j] = products[0, j, i] = table[f"product{i}{j}"].sum()
    counter.tails[:, 0] = [table[name].sum() for name in ("clipped", "beyond", "impossible")]
