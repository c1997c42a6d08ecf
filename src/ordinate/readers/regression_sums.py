"""Sums over items about their means, taken where the items are: in files, frames and databases.

One pass finds what there is and how large it is, another the means, the last sums up about them.
Values are divided by their largest first: sums of numbers from -1 to 1 are exact in DuckDB.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul

import numpy as np

from ordinate.errors import BadValues
from ordinate.readers.cells import encode_values
from ordinate.readers.expressions import (
    COUNT,
    Aggregate,
    Expression,
    choose,
    column,
    constant,
    count_where,
)
from ordinate.readers.items import CLUSTER, NTH, SUBGROUP, Array, ItemSource, Table, has_weight
from ordinate.readers.numeric_cells import GUESS, HIGH, LOW, TARGET, TIMES, USABLE
from ordinate.readers.regression_keys import FEW_KEYS, SPOT, RegressionKeys, Spots
from ordinate.summaries.prediction_intervals import SCORE_NAMES, PredictionIntervals
from ordinate.summaries.regression import (
    BIN_GROWTH,
    HIGHEST_ORDER,
    LARGEST_VALUE,
    MOMENT_POWERS,
    UNIT_HINT,
    ZERO_BIN,
    CentralSums,
    Moments,
    compute_bin_size,
)
from ordinate.summaries.regression_pooling import ErrorHistogram, ItemSummaries, RegressionPool

MOST_GROUPS = 1 << 12  # groups that have a histogram each
SCORE_PAIRS = [(i, j) for i in range(1 + len(SCORE_NAMES)) for j in range(i, 1 + len(SCORE_NAMES))]
BIN, ABOVE = "bin", "is_above"
Y, P, ERROR, WEIGHT, LOWER, UPPER = map(column, (TARGET, GUESS, "e", TIMES, LOW, HIGH))
ENDLESS = ~(LOWER.is_finite() & UPPER.is_finite())
SCORES = {  # of prediction intervals, in the order of SCORE_NAMES
    "covered": choose((Y >= LOWER) & (UPPER >= Y), 1.0, 0.0),
    "width": choose(ENDLESS, 0.0, UPPER - LOWER),
    "below": choose(LOWER > Y, LOWER - Y, 0.0),
    "above": choose(Y > UPPER, Y - UPPER, 0.0),
    "error": abs(P - Y),
}


class RegressionSums:
    """Passes over items, of each subgroup and each cluster within it.

    `items` have columns of numbers, and say which of them are usable. The first pass is made at
    once; `counts` are what it counts besides, the items that were `given` among them.
    """

    def __init__(
        self,
        items: ItemSource,
        roles: Sequence[str],
        counts: Mapping[str, Aggregate],
        *,
        weighted: bool,
        bounded: bool = False,
        histogram: bool = True,
    ) -> None:
        self.weighted, self.bounded, self.histogram = weighted, bounded, histogram
        self.items = items.add_columns({"e": P - Y} | (SCORES if bounded else {}))
        there = has_weight(keyed=items.keyed) if weighted else None
        self.usable = column(USABLE) if there is None else column(USABLE) & there
        table = self.items.sum_by([*roles, USABLE], {**self._list_extremes(roles), **counts}, there)
        self.counts = {name: int(table[name].sum()) for name in counts}
        known = {name: cells[table["given"] > 0] for name, cells in table.items()}
        usable = known[USABLE].astype(bool)
        self.keys, self.n = RegressionKeys(known, usable, roles), int(known["items"][usable].sum())
        lacking = np.where(usable, 0, known["given"])
        self.dropped = np.bincount(self.keys.subgroups.codes, lacking).astype(int)
        self.counted = not (weighted and known["broken"][usable].any())

    def _list_extremes(self, roles: Sequence[str]) -> dict[str, Aggregate]:
        ends = {"y": Y, "e": ERROR}
        largest = {f"{name}_high": each for name, each in ends.items()}
        largest |= {name: column(name) for name in SCORES} if self.bounded else {}
        largest |= {"w": WEIGHT} if self.weighted else {}
        found = {name: Aggregate("max", each) for name, each in largest.items()}
        found |= {f"{name}_low": Aggregate("min", each) for name, each in ends.items()}
        found["items"] = COUNT
        if self.weighted:
            found["broken"] = count_where(WEIGHT.floor() != WEIGHT)
        if CLUSTER in roles and self.items.ordered:
            found[NTH] = Aggregate("min", column(NTH))
        return found

    # --- the second pass ---------------------------------------------------------------------

    def find_means(self) -> float:
        """Find the means of each spot; return that of the targets of all items."""
        keys, self.spots = self.keys, Spots.choose(self.keys)
        low, high = (
            {name: keys.take(f"{name}_{end}", extreme) for name in ("y", "e")}
            for end, extreme in (("low", np.minimum), ("high", np.maximum))
        )
        self.largest = np.maximum(np.abs(low["e"]), np.abs(high["e"]))
        _refuse_large_values(low["y"], high["y"], self.largest)
        self.low, self.high = (
            {name: self.spots.take(each, extreme) for name, each in found.items()}
            for found, extreme in ((low, np.minimum), (high, np.maximum))
        )
        self.units = {"u": self.high["y"] - self.low["y"], "v": self.high["e"] - self.low["e"]}
        if self.weighted:
            self.units["t"] = np.full(self.spots.count, keys.table["w"].astype(float).max())
        middle = {name: self.low[name] + (self.high[name] - self.low[name]) / 2.0 for name in low}
        self.items = self.items.add_columns({SPOT: self.spots.number})
        products = {"total": (), "y": ("u",), "e": ("v",)}
        table = self._sum([SPOT], self._center(middle), self.units, self._weigh(products))
        return self._read_means(table, middle)

    def _read_means(self, table: Table, middle: Mapping[str, Array]) -> float:
        spot = table[SPOT].astype(int)
        weight = np.bincount(spot, table["total"], self.spots.count)
        self.means, everywhere = {}, 0.0
        for name in ("e", "y"):
            sums = np.bincount(spot, table[name], self.spots.count)
            mean = middle[name] + sums / np.where(weight > 0, weight, 1.0)
            first = mean[spot[0]]  # exactly the value, where all are equal
            everywhere = float(first + weight @ (mean - first) / weight.sum())
            self.means[name] = np.where(weight > 0, mean, everywhere)
        return everywhere

    def find_median(self, mean: float) -> float:
        """Return the median target, from bins about the mean: of an even number the middle."""
        gap = Y - mean
        binned = {ABOVE: choose(gap > 0, 1, 0), BIN: build_bin(abs(gap))}
        table = self._sum([ABOVE, BIN], binned, self.units, self._weigh({"total": ()}))
        sizes = np.array([compute_bin_size(int(place)) for place in table[BIN]])
        values = mean + np.where(table[ABOVE].astype(float) > 0, sizes, -sizes)
        order = np.argsort(values, kind="stable")
        values, below = values[order], np.cumsum(table["total"][order])
        first, last = np.searchsorted(below / below[-1], [0.5 - 1e-12, 0.5 + 1e-12])
        return float(values[first] + values[min(last, len(values) - 1)]) / 2.0

    # --- the last pass -----------------------------------------------------------------------

    def compute_sums(self, constants: Mapping[str, float]) -> RegressionPool:
        """Sum up about the means."""
        keys = self.keys
        columns, units = self._center(self.means), dict(self.units)
        columns["a"], units["a"] = abs(ERROR), self.spots.take(self.largest, np.maximum)
        products = {f"s{a}{b}": ("u",) * a + ("v",) * b for a, b in MOMENT_POWERS}
        products["absolute"] = ("a",)
        if self.bounded:
            scores = [(), *((f"z{i}",) for i in range(len(SCORE_NAMES)))]
            for i, name in enumerate(SCORE_NAMES):
                columns[f"z{i}"] = column(name)
                units[f"z{i}"] = self.spots.take(keys.take(name, np.maximum), np.maximum)
            products |= {f"z{i}{j}": (*scores[i], *scores[j]) for i, j in SCORE_PAIRS}
        products = self._weigh(products) | self._weigh_twice(products)
        for k, value in enumerate(constants.values()):
            columns[f"c{k}"] = abs(Y - value)
            units[f"c{k}"] = np.maximum(abs(self.low["y"] - value), abs(self.high["y"] - value))
            products |= self._weigh({f"spread{k}": (f"c{k}",)})
        products |= self._weigh({"squares": ("a", "a")})
        by_size = self.histogram and len(keys) <= FEW_KEYS
        if by_size:
            columns[BIN] = build_bin(abs(ERROR))
        further = {"items": COUNT} | ({"endless": count_where(ENDLESS)} if self.bounded else {})
        table = self._sum([*keys.roles, SPOT, *[BIN] * by_size], columns, units, products, further)
        key = keys.find(table)
        sums = {name: np.bincount(key, table[name].astype(float)) for name in products | further}
        histogram = None
        if by_size:
            histogram = ErrorHistogram(key, table[BIN], table["s00"], by_key=True).sort()
        elif self.histogram:
            histogram = self._count_sizes()
        return RegressionPool(
            self._build_summaries(sums, constants),
            histogram,
            by=keys.subgroup,
            group=keys.cluster,
            names=keys.subgroups.values,
            dropped=self.dropped,
        )

    def _build_summaries(
        self, sums: Mapping[str, Array], constants: Mapping[str, float]
    ) -> ItemSummaries:
        """Return the summaries of each key."""
        items = sums["items"].astype(np.int64)
        points = [self.means[name][self.spots.of_key] for name in ("y", "e")]
        powers, twice = (
            _build_matrices(sums, mark, HIGHEST_ORDER + 1, MOMENT_POWERS)
            for mark in ("s", "ws" if self.weighted else "s")
        )
        moments = Moments(
            items,
            CentralSums(points[0], points[1], powers),
            CentralSums(points[0], points[1], twice),
            sums["absolute"],
            sums["wabsolute" if self.weighted else "absolute"],
            self.largest,
            sums["squares"],
            dict(constants),
            {name: sums[f"spread{k}"] for k, name in enumerate(constants)},
            counted=self.counted,
        )
        if not self.bounded:
            return ItemSummaries(moments, None)
        size, pairs = 1 + len(SCORE_NAMES), [*SCORE_PAIRS, *((j, i) for i, j in SCORE_PAIRS)]
        plain, squared = (
            _build_matrices(sums, mark, size, pairs)
            for mark in ("z", "wz" if self.weighted else "z")
        )
        bounds = PredictionIntervals(
            items=items,
            plain=plain,
            squared=squared,
            endless=sums["endless"],
            points=True,
            counted=self.counted,
        )
        return ItemSummaries(moments, bounds)

    def _count_sizes(self) -> ErrorHistogram:
        """Return the weight of errors by bin: of each key, or of each subgroup if keys are many."""
        by_key = len(self.keys) <= MOST_GROUPS
        roles = [role for role in self.keys.roles if by_key or role == SUBGROUP]
        binned, products = {BIN: build_bin(abs(ERROR))}, self._weigh({"total": ()})
        table = self._sum([*roles, BIN], binned, self.units, products, {"items": COUNT})
        place = (
            self.keys.find(table) if by_key else encode_values(self.keys.subgroups, table, SUBGROUP)
        )
        return ErrorHistogram(place, table[BIN], table["total"], by_key=by_key).sort()

    # --- sums of products --------------------------------------------------------------------

    def _center(self, points: Mapping[str, Array]) -> dict[str, Expression]:
        """Return the distances of targets and errors from the points of their spots."""
        return {"u": Y - self.spots.pick(points["y"]), "v": ERROR - self.spots.pick(points["e"])}

    def _weigh(self, products: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        weight = ("t",) * self.weighted
        return {name: weight + factors for name, factors in products.items()}

    def _weigh_twice(self, products: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        twice = {f"w{name}": ("t", "t", *factors) for name, factors in products.items()}
        return twice if self.weighted else {}

    def _sum(
        self,
        keys: Sequence[str],
        columns: Mapping[str, Expression],
        units: Mapping[str, Array],
        products: Mapping[str, tuple[str, ...]],
        further: Mapping[str, Aggregate] | None = None,
    ) -> Table:
        """Return sums of products of columns, none of which is larger than its unit.

        Where spots are no keys, units are the same for all of them.
        """
        if self.weighted:
            columns = {"t": WEIGHT, **columns}
        sizes = {name: _round_up(units[name]) for name in columns if name in units}
        scaled = {
            name: each * self.spots.pick(1.0 / sizes[name]) if name in sizes else each
            for name, each in columns.items()
        }
        sums = {
            name: Aggregate("unit_sum", reduce(mul, map(column, factors))) if factors else COUNT
            for name, factors in products.items()
        }
        table = self.items.add_columns(scaled).sum_by(
            keys, {**sums, **(further or {})}, self.usable
        )
        rows = len(next(iter(table.values())))
        place = table[SPOT].astype(int) if SPOT in table else np.zeros(rows, int)
        with np.errstate(over="ignore", invalid="ignore"):  # in orders that nobody keeps
            for name, factors in products.items():
                unit = reduce(mul, (sizes[factor][place] for factor in factors), 1.0)
                table[name] = table[name].astype(float) * unit
        order = np.lexsort([table.get(BIN, place), place])  # what is added up in which order
        return {name: cells[order] for name, cells in table.items()}


def _build_matrices(
    sums: Mapping[str, Array], mark: str, size: int, cells: Sequence[tuple[int, int]]
) -> Array:
    """Return the sums of each key as a matrix; that of a cell and of its mirror may be one."""
    found = np.zeros((len(sums["items"]), size, size))
    for i, j in cells:
        name = f"{mark}{i}{j}"
        found[:, i, j] = sums[name if name in sums else f"{mark}{j}{i}"]
    return found


def _round_up(sizes: Array) -> Array:
    """Return powers of two that are larger: nothing is rounded where values are divided by them."""
    return np.exp2(np.where(sizes > 0, np.clip(np.frexp(sizes)[1], -1000, 1000), 0))


def _refuse_large_values(low: Array, high: Array, largest: Array) -> None:
    """Refuse values whose fourth powers are no numbers any more."""
    if not max(np.abs(low).max(), np.abs(high).max(), largest.max()) < LARGEST_VALUE:
        raise BadValues(f"The values are too large to be squared twice. {UNIT_HINT}")
    if 0.0 < max(high.max() - low.min(), largest.max()) < 1.0 / LARGEST_VALUE:
        raise BadValues(f"The values are too small to be squared twice. {UNIT_HINT}")


def build_bin(size: Expression) -> Expression:
    """Return the bin of a size, as in the histograms of Moments."""
    place = (size.ln() / float(np.log(BIN_GROWTH))).ceil()
    return choose(size > 0, place, constant(float(ZERO_BIN)))
