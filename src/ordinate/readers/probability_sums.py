"""Probabilities summed up where they are: the events, scores and ranks of a `Reliability`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import add, and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.cells import CountedCells, number_subgroups
from ordinate.readers.column_names import check_column, expand_columns
from ordinate.readers.confusion import ConfusionData, ConfusionReader
from ordinate.readers.expressions import (
    COUNT,
    Aggregate,
    Expression,
    choose,
    choose_first,
    column,
    constant,
    count_where,
    find_largest,
    join_by_or,
    order_columns,
)
from ordinate.readers.items import (
    GOLD,
    PREDICTED,
    ROLES,
    SUBGROUP,
    WEIGHT,
    ItemSource,
    Table,
    build_weight_sums,
    has_weight,
    read_cell_sums,
)
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.scale.labels import is_missing
from ordinate.summaries.probabilities import (
    find_tolerance,
    make_row_error,
    match_columns_to_levels,
)
from ordinate.summaries.probability_bins import Events
from ordinate.summaries.reliability import (
    CURVE_BINS,
    EPS,
    FINE_BINS,
    NUDGE,
    SCORE_NAMES,
    Reliability,
    ReliabilityAccumulator,
    ReliabilityParts,
)
from ordinate.summaries.tabulation import DROP_HINT, MissingPolicy, make_missing_labels_error

Array = NDArray[Any]
TOTAL, BEST, TOP = "total", "best", "top"  # of a row: sum, highest probability, its level
LEVEL, HIT = "level", "hit"  # of gold, and its probability
BIN_SUMS = ("items", "weight", "square", "f", "o", "ff", "fo")
SCORE_PAIRS = [(i, j) for i in range(len(SCORE_NAMES)) for j in range(i, len(SCORE_NAMES))]


class ProbabilityReader:
    """One run over rows of probabilities of a lazy table, whose engine sums them up.

    `names` are its columns by argument; `probabilities` those of the levels, or their prefix.
    """

    def __init__(
        self,
        table: LazyTable,
        names: Mapping[str, str],
        probabilities: str | Iterable[str],
        scale: Any = None,
        renamed: Mapping[str, str | None] | None = None,
        *,
        renormalize: bool = False,
    ) -> None:
        refuse_unnamed_columns(names, GOLD)
        self.titles = {ROLES[argument]: name for argument, name in names.items()}
        self.groups = [SUBGROUP] if SUBGROUP in self.titles else []
        self.weighted = WEIGHT in self.titles
        self.spelling, self.renormalize = LabelSpelling(renamed or {}), renormalize
        self.scale, self.notes = self._find_scale(table, scale)
        self.size = len(self.scale)
        named = (probabilities,) if isinstance(probabilities, str) else tuple(probabilities)
        found = expand_columns(named, table, self.scale)
        for name in found:
            check_column(table.name, name, table.columns)
        order = match_columns_to_levels(self.scale, found)
        cells = {f"cell{k}": found[place] for k, place in enumerate(order)}
        self.items = table.open_items(self.titles | cells)
        self.given = [column(f"given{k}") for k in range(self.size)]
        self.p = [column(f"p{k}") for k in range(self.size)]
        self.columns = self._derive_columns()

    def _find_scale(self, table: LazyTable, declared: Any) -> tuple[Scale, list[str]]:
        sides = [side for side in (GOLD, PREDICTED) if side in self.titles]
        scale, told = table.find_scale(declared, [self.titles[side] for side in sides])
        notes = list(told)
        if scale is None:
            seen = table.open_items(self.titles).sum_by(sides, {"items": COUNT})
            labels = {label for side in sides for label in seen[side]}
            scale = self.spelling.find_scale(None, labels, notes)
        return scale, notes

    # --- columns -----------------------------------------------------------------------------

    def _derive_columns(self) -> dict[str, Expression]:
        """Return numbers p0, p1, …, their sums from the lowest level on, the largest, its level."""
        total, last = column(TOTAL), self.size - 1
        total = choose(total > 0.0, total, 1.0)  # rows that do not count may be anything
        tops = [(x == column(BEST), k) for k, x in enumerate(self.p)]
        return {
            **{f"given{k}": column(f"cell{k}").to_number() for k in range(self.size)},
            TOTAL: reduce(add, self.given),
            **{f"p{k}": x / total if self.renormalize else x for k, x in enumerate(self.given)},
            **{f"below{k}": reduce(add, self.p[: k + 1]) for k in range(last)},
            BEST: find_largest(self.p),
            TOP: choose_first(tops[:-1], last),
        }

    def _derive_scores(self) -> dict[str, Expression]:
        """Return the scores, and what they are made of: differences, and what gold was given."""
        level, hit = column(LEVEL), column(HIT)
        gaps = {f"gap{k}": x - choose(level == k, 1.0, 0.0) for k, x in enumerate(self.p)}
        hits = [(level == k, x) for k, x in enumerate(self.p)]
        clipped = choose(hit < EPS, EPS, choose(hit > 1.0 - EPS, 1.0 - EPS, hit))
        gap = [column(name) for name in gaps]
        below = [reduce(add, gap[: k + 1]) for k in range(self.size - 1)]
        brier, rps = (reduce(add, [x * x for x in part]) for part in (gap, below))
        scores = (brier, constant(0.0) - clipped.ln(), rps)
        of_gold = {HIT: choose_first(hits[:-1], self.p[-1])}
        return gaps | of_gold | dict(zip(SCORE_NAMES, scores, strict=True))

    def _open(self, *needed: Expression) -> ItemSource:
        """Return the items with the columns that are needed."""
        return reduce(
            lambda items, more: items.add_columns(more),
            order_columns(self.columns, needed),
            self.items,
        )

    # --- labels ------------------------------------------------------------------------------

    def count_labels(self, missing: MissingPolicy) -> ConfusionData:
        """Count labels; where no predicted ones were named, the most probable are taken."""
        items = self.items
        if PREDICTED not in self.titles:
            levels = [(column(TOP) == k, label) for k, label in enumerate(self.scale.labels)]
            known = choose_first(levels[:-1], levels[-1][1])
            unusable = join_by_or([_is_unusable(x) for x in self.given])
            predicted = choose(unusable, None, known)
            items = self._open(predicted).add_columns({PREDICTED: predicted})
        found = ConfusionReader(items, self.titles, self.spelling).read(self.scale, missing)
        return replace(found, files=(), notes=(*self.notes, *found.notes))

    # --- probabilities -----------------------------------------------------------------------

    def count_probabilities(
        self, parts: ReliabilityParts, missing: MissingPolicy
    ) -> tuple[Reliability, dict[Any, Reliability]]:
        """Return the summary of all items, and of each subgroup that has some."""
        counted = self._check_items(drop=missing == "drop")
        self.subgroups = number_subgroups(counted)
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
        wrong = self._is_wrong()
        empty = reduce(and_, [_is_empty(x) for x in self.given])
        sums = {"empty": count_where(empty), "bad": count_where(wrong & ~empty if drop else wrong)}
        titles = {role: x for role, x in self.titles.items() if role in (GOLD, WEIGHT, SUBGROUP)}
        items = self._open(wrong)
        cells = CountedCells(items, titles, [GOLD], self.spelling, "evaluate", sums)
        _, levels = cells.encode(self.scale)
        known = levels[GOLD] < self.size
        if not drop and not known.all():
            count, n = (int(x.sum()) for x in (cells.sums.items[~known], cells.sums.items))
            places = cells.find_missing_labels(GOLD)
            way = f"Leave them out with {DROP_HINT}."
            raise make_missing_labels_error(count, n, "gold labels", places, way)
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
            for k in range(self.size)
        ]
        cases = [(column(GOLD).is_in(found), k) for k, found in enumerate(labels) if found]
        if cases:
            self.columns[LEVEL] = choose_first(cases, self.size)
        self.where = column(LEVEL) < self.size
        if self.weighted:
            self.where &= has_weight(keyed=False)
        if drop:
            self.where &= ~reduce(and_, [_is_empty(x) for x in self.given])

    def _is_wrong(self) -> Expression:
        """Tell whether a row is none of probabilities: finite, at least 0, with a sum of 1."""
        gap, tolerance = column(TOTAL) - 1.0, find_tolerance(renormalize=self.renormalize)
        wrong = [x for each in self.given for x in (_is_unusable(each), each < 0.0)]
        return join_by_or([*wrong, gap > tolerance, gap < -tolerance])

    def _refuse_row(self, wrong: Expression) -> None:
        where, (first, *others) = self.where & wrong, self.given
        for place, *row in self._open(where).find_cells(where, first, 1, *others):
            raise make_row_error(np.array(row, float), place, renormalize=self.renormalize)

    # --- sums --------------------------------------------------------------------------------

    def _add_sums(self, counters: list[ReliabilityAccumulator], parts: ReliabilityParts) -> None:
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

    def _add_cells(self, counters: list[ReliabilityAccumulator], parts: ReliabilityParts) -> None:
        """Add the sums by gold level and most probable level: cells, scores, probabilities."""
        sums = {"confidence": self._weigh(column(BEST))}
        if parts.confusion_matrix:
            sums |= {f"p{k}": self._weigh(p) for k, p in enumerate(self.p)}
        if parts.scores:
            self.columns |= self._derive_scores()
            sums |= self._list_score_sums()
        keys = {LEVEL: column(LEVEL), TOP: column(TOP)}
        for counter, table in zip(counters, self._sum_by(keys, sums), strict=True):
            gold, top = _take_key(table, LEVEL), _take_key(table, TOP)
            counter.items[0] = table["items"].sum()
            counter.cells[:, 0, gold, top] = [table[x] for x in ("items", "weight", "square")]
            np.add.at(counter.confidence[0], top, table["confidence"])
            if counter.confusion_matrix is not None:
                cells = np.stack([table[f"p{k}"] for k in range(self.size)], axis=-1)
                np.add.at(counter.confusion_matrix[0], gold, cells)
            if parts.scores:
                _add_scores(counter, table)

    def _list_score_sums(self) -> dict[str, Expression]:
        hit, scores = column(HIT), [column(name) for name in SCORE_NAMES]
        once = [self._weigh(x) for x in scores]
        excess = constant(math.log(EPS)) - choose(hit > 0.0, hit, EPS).ln()
        return {
            **{f"once{k}": x for k, x in enumerate(once)},
            **{f"twice{k}": self._weigh(x) for k, x in enumerate(once)},
            **{f"product{i}{j}": once[i] * once[j] for i, j in SCORE_PAIRS},
            "clipped": choose(hit < EPS, 1.0, 0.0),
            "beyond": choose(hit < EPS, self._weigh(excess), 0.0),
            "impossible": choose(hit > 0.0, 0.0, self._weigh(constant(1.0))),
        }

    def _add_events(
        self, counters: list[ReliabilityAccumulator], events: Events, counts: list[int]
    ) -> None:
        """Add the sums by bin of each of these events, in so many bins, and in so many."""
        for event, (f, happened) in enumerate(self._list_events(events) if counts else ()):
            sums = {
                "f": self._weigh(f),
                "o": choose(happened, self._weigh(constant(1.0)), 0.0),
                "ff": self._weigh(f * f),
                "fo": choose(happened, self._weigh(f), 0.0),
            }
            keys = {f"bin{count}": _assign_bin(f, count) for count in counts}
            for counter, table in zip(counters, self._sum_by(keys, sums), strict=True):
                found = np.stack([table[name] for name in BIN_SUMS]).astype(float)
                for count in counts:
                    _find_bins(counter, events, count)[:, event] += _sum_columns(
                        found, _take_key(table, f"bin{count}"), count
                    )

    def _list_events(self, events: Events) -> list[tuple[Expression, Expression]]:
        """Return the probabilities of events, and whether they happened."""
        level = column(LEVEL)
        if events == "top":
            return [(column(BEST), column(TOP) == level)]
        if events == "levels":
            return [(p, level == k) for k, p in enumerate(self.p)]
        return [(column(f"below{k}"), level < k + 1) for k in range(self.size - 1)]

    def _add_ranks(self, counters: list[ReliabilityAccumulator]) -> None:
        """Add the weights by gold level and the fine bin of the expected level."""
        at = (self.scale.positions - self.scale.positions[0]) / self.scale.span
        expected = reduce(add, [p * float(x) for p, x in zip(self.p, at, strict=True)])
        place, last = (expected * float(FINE_BINS) + NUDGE).floor(), float(FINE_BINS - 1)
        keys = {LEVEL: column(LEVEL), "place": choose(place > last, last, place)}
        for counter, table in zip(counters, self._sum_by(keys, {}), strict=True):
            if counter.ranking is not None:
                cells = _take_key(table, LEVEL), _take_key(table, "place")
                counter.ranking[0][cells] = table["weight"]

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
        found = factorize_column(table[SUBGROUP])
        known = {_name_group(x): k for k, x in enumerate(self.subgroups.values)}
        codes = np.array([known[_name_group(x)] for x in found.values], int)[found.codes]
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(1, len(known)))
        return [
            {name: cells[rows] for name, cells in table.items()} for rows in np.split(order, ends)
        ]

    def _weigh(self, x: Expression) -> Expression:
        return x * column(WEIGHT).to_number() if self.weighted else x


def _assign_bin(f: Expression, count: int) -> Expression:
    """Return the bin (lo, hi] of a probability, of which 0 is in the first; see `assign_bins`."""
    # Some engines make an integer of it, and of its products decimal numbers.
    nearest = (f * float(count) + 0.5).floor().to_number()
    below = (nearest > count - 0.5) | ~(f > nearest * (1.0 / count))
    return choose((nearest > 0.5) & below, nearest - 1.0, nearest)


def _is_unusable(x: Expression) -> Expression:
    return x.is_missing() | ~x.is_finite()


def _is_empty(x: Expression) -> Expression:
    """Tell whether there is no number: NaN is never at most 0, nor is its opposite."""
    return x.is_missing() | ~((constant(0.0) >= x) | (constant(0.0) >= constant(0.0) - x))


def _name_group(value: Any) -> Any:
    return None if is_missing(value) else value


def _take_key(table: Table, key: str) -> Array:
    return table[key].astype(float).astype(np.intp)


def _find_bins(counter: ReliabilityAccumulator, events: Events, count: int) -> Any:
    """Return the sums [7, events, bins] that a counter has."""
    return counter.curves if count == CURVE_BINS else counter.bins[events, count][:, 0]


def _sum_columns(rows: Array, place: Array, count: int) -> Array:
    return np.stack([np.bincount(place, row, minlength=count) for row in rows])


def _add_scores(counter: ReliabilityAccumulator, table: Table) -> None:
    once, twice, products = counter.scores
    for k in range(len(SCORE_NAMES)):
        once[0, k], twice[0, k] = (table[f"{name}{k}"].sum() for name in ("once", "twice"))
    for i, j in SCORE_PAIRS:
        products[0, i, j] = products[0, j, i] = table[f"product{i}{j}"].sum()
    counter.tails[:, 0] = [table[name].sum() for name in ("clipped", "beyond", "impossible")]
