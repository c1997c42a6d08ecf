"""Sums over items taken inside DuckDB: a pass finds means, and the next one sums up about them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadValues
from ordinate.readers.duckdb_engine import Connection
from ordinate.readers.files import read, read_arrays
from ordinate.readers.regression_pooling import Histogram, Pool, pieces
from ordinate.summaries.prediction_intervals import PARTS, Bounds
from ordinate.summaries.regression import (
    GROWTH,
    LARGE,
    ORDER,
    UNIT,
    ZERO,
    Central,
    Moments,
    size_of,
)

Array = NDArray[Any]
POWERS = [(a, b) for a in range(ORDER + 1) for b in range(ORDER + 1 - a)]
SCORES = [(i, j) for i in range(1 + len(PARTS)) for j in range(i, 1 + len(PARTS))]
FEW = 64  # keys within which items are summed up by the size of their errors, which is quicker
MOST = 1 << 12  # groups that have a histogram each


@dataclass(frozen=True)
class Rows:
    """SQL for the items of a file: grp, cluster, nth, y, p, ok and in_gold, and w, low and high.

    Items that are not `ok` are counted and left out.
    """

    sql: str
    name: str


class Total(NamedTuple):
    """What the first pass knows of all items."""

    items: int  # that count
    given: int  # those that lack something, too
    mean: float  # of the targets
    counts: dict[str, int]


@dataclass(frozen=True)
class Summing:
    """Two passes over items, of each subgroup `grp` and each group `cluster` within it."""

    connection: Connection
    rows: list[Rows]
    weighted: bool = False
    bounded: bool = False
    histogram: bool = True
    counting: dict[str, str] = field(default_factory=dict)  # conditions, by name

    # --- the first pass ----------------------------------------------------------------------

    def look(self) -> Total:
        """Find the mean of each group, and how many items meet each condition."""
        counts = "".join(
            f", count(*) FILTER ({condition}) AS {name}"
            for name, condition in {"given": "in_gold", **self.counting}.items()
        )
        weight = "fsum(w) FILTER (ok)" if self.weighted else "count(*) FILTER (ok)"
        broken = "count(*) FILTER (ok AND w <> floor(w))" if self.weighted else "0"
        self._fill(
            "seen",
            "SELECT grp, cluster, min(nth) AS nth, count(*) FILTER (ok) AS items, "
            f"CAST({weight} AS DOUBLE) AS weight, {broken} AS broken, "
            f"fsum({self._once('y')}) FILTER (ok) / weight AS y, "
            f"fsum({self._once('(p - y)')}) FILTER (ok) / weight AS e, "
            "min(y) FILTER (ok) AS y_low, max(y) FILTER (ok) AS y_high, "
            f"min(p - y) FILTER (ok) AS e_low, max(p - y) FILTER (ok) AS e_high{counts} "
            "FROM ({rows}) GROUP BY grp, cluster",
        )
        self._number()
        asked = [f"coalesce(sum({name}), 0)" for name in ("items", "given", *self.counting)]
        query = f"SELECT {', '.join(asked)}, {MEAN.format('y')} FROM seen"
        items, given, *found, mean = self._read(query)[0]
        counted = (int(count) for count in found)
        known = float("nan") if mean is None else float(mean)
        return Total(int(items), int(given), known, dict(zip(self.counting, counted, strict=True)))

    def _number(self) -> None:
        """Number the subgroups by name, and the groups that have items as they appear."""
        keys = (
            "SELECT grp, cluster, min(nth) AS nth, CAST(sum(items) AS BIGINT) AS items, "
            "CAST(sum(given) AS BIGINT) AS given, CAST(sum(broken) AS BIGINT) AS broken, "
            f"{MEAN.format('y')} AS y0, {MEAN.format('e')} AS e0 "
            "FROM seen GROUP BY grp, cluster HAVING sum(given) > 0"
        )
        start = "min(CASE WHEN items > 0 THEN nth END) OVER (PARTITION BY cluster) AS start"
        ranked = (
            "SELECT *, dense_rank() OVER (ORDER BY grp NULLS LAST) - 1 AS sub, "
            "dense_rank() OVER (ORDER BY start NULLS LAST) - 1 AS number "
            f"FROM (SELECT *, {start} FROM ({keys}))"
        )
        self._read(
            "CREATE OR REPLACE TEMP TABLE points AS SELECT *, "
            f"row_number() OVER (ORDER BY items = 0, sub, number) - 1 AS k FROM ({ranked})"
        )

    def median(self, mean: float) -> float:
        """Return the median target, from bins about the mean: of an even number the middle."""
        weight = "fsum(w)" if self.weighted else "count(*)"
        self._fill(
            "around",
            f"SELECT y > {number(mean)} AS above, {bin_of(f'abs(y - {number(mean)})')} AS bin, "
            f"CAST({weight} AS DOUBLE) AS weight FROM ({{rows}}) WHERE ok GROUP BY ALL",
        )
        found = sorted(
            (mean + (size_of(place) if above else -size_of(place)), weight)
            for above, place, weight in self._read("SELECT above, bin, weight FROM around")
        )
        values, weights = np.array(found).T
        below = np.cumsum(weights) / weights.sum()
        first, last = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
        return float(values[first] + values[min(last, len(values) - 1)]) / 2.0

    # --- the second pass ---------------------------------------------------------------------

    def sums(self, constants: dict[str, float]) -> Pool:
        """Sum up about the means that the first pass found."""
        self._refuse_sizes()
        points = self._arrays(
            "SELECT k, sub, number, items, given, broken, coalesce(y0, 0) AS y0, "
            "coalesce(e0, 0) AS e0 FROM points ORDER BY k"
        )
        keys = int((points["items"] > 0).sum())
        wanted = self._wanted(list(constants.values()))
        place = bin_of("abs(e)") if keys <= FEW else "0"
        chosen = "".join(f", {sql} AS {name}" for name, sql in wanted.items())
        self._fill(
            "sums", f"SELECT k, {place} AS bin{chosen} FROM ({self._about(points)}) GROUP BY ALL"
        )
        rolled = "".join(f", {_rolled(name)} AS {name}" for name in wanted)
        sums = self._arrays(f"SELECT k{rolled} FROM sums GROUP BY k ORDER BY k")
        at = slice(0, keys)  # keys without items come last
        batch = _moments(sums, points["y0"][at], points["e0"][at], constants)
        return Pool(
            batch,
            _bounds(sums) if self.bounded else None,
            self._histogram(keys) if self.histogram else None,
            by=points["sub"][at],
            group=points["number"][at],
            names=[row[0] for row in self._read("SELECT grp FROM points GROUP BY ALL ORDER BY 1")],
            dropped=np.bincount(points["sub"], points["given"] - points["items"]).astype(int),
            broken=np.bincount(points["sub"], points["broken"]) > 0,
        )

    def _refuse_sizes(self) -> None:
        """Refuse values whose fourth powers are no numbers any more."""
        size = "greatest(abs(e_low), abs(e_high))"
        query = f"SELECT min(y_low), max(y_high), max({size}) FROM seen"
        low, high, largest = self._read(query)[0]
        if not max(abs(low), abs(high), largest) < LARGE:
            raise BadValues(f"The values are too large to be squared twice. {UNIT}")
        if 0.0 < max(high - low, largest) < 1.0 / LARGE:
            raise BadValues(f"The values are too small to be squared twice. {UNIT}")

    def _about(self, points: dict[str, Array]) -> str:
        """Return SQL for items with their distances from the means of their group."""
        if len(points["k"]) == 1:
            y0, e0 = (number(float(points[name][0])) for name in ("y0", "e0"))
            source = f"SELECT *, 0 AS k, {y0} AS y0, {e0} AS e0 FROM ({{rows}}) WHERE ok"
        else:
            source = (
                "SELECT r.*, k, y0, e0 FROM (SELECT * FROM ({rows}) WHERE ok) r JOIN points q ON "
                "r.grp IS NOT DISTINCT FROM q.grp AND r.cluster IS NOT DISTINCT FROM q.cluster"
            )
        squares = "*, d * d AS dd, f * f AS ff" + (", w * w AS ww" if self.weighted else "")
        scores = "".join(f", {sql} AS z{i}" for i, sql in enumerate(SCORED)) * self.bounded
        return (
            f"SELECT {squares}{scores} FROM (SELECT *, p - y AS e, y - y0 AS d, (p - y) - e0 AS f "
            f"FROM ({source}))"
        )

    def _wanted(self, constants: list[float]) -> dict[str, str]:
        """Return SQL for every sum, by its name."""
        products = {f"s{a}{b}": _power(a, b) for a, b in POWERS}
        if self.bounded:
            products |= {f"z{i}{j}": f"z{i} * z{j}" for i, j in SCORES}
        products["absolute"] = "abs(e)"
        found = {name: f"fsum({self._once(sql)})" for name, sql in products.items()}
        if self.weighted:
            found |= {f"w{name}": f"fsum(ww * {sql})" for name, sql in products.items()}
        once = {f"c{k}": f"abs(y - {number(value)})" for k, value in enumerate(constants)}
        once["squares"] = "e * e"
        found |= {name: f"fsum({self._once(sql)})" for name, sql in once.items()}
        found |= {"items": "count(*)", "largest": "max(abs(e))"}
        return found | ({"endless": f"count(*) FILTER ({OPEN})"} if self.bounded else {})

    def _histogram(self, keys: int) -> Histogram:
        """Return the weight of errors by bin: of each key, or of each subgroup if keys are many."""
        if keys <= FEW:
            query = "SELECT k AS key, bin, fsum(s00) AS weight FROM sums GROUP BY ALL ORDER BY 1, 2"
            return Histogram(by_key=True, **self._arrays(query))
        key, weight = "k" if keys <= MOST else "sub", "fsum(w)" if self.weighted else "count(*)"
        self._fill(
            "bins",
            f"SELECT {key} AS k, {bin_of('abs(p - y)')} AS bin, CAST({weight} AS DOUBLE) AS weight "
            "FROM (SELECT * FROM ({rows}) WHERE ok) r JOIN points q ON r.grp IS NOT DISTINCT FROM "
            "q.grp AND r.cluster IS NOT DISTINCT FROM q.cluster GROUP BY ALL",
        )
        query = "SELECT k AS key, bin, fsum(weight) AS weight FROM bins GROUP BY ALL ORDER BY 1, 2"
        return Histogram(by_key=keys <= MOST, **self._arrays(query))

    # --- the engine --------------------------------------------------------------------------

    def _once(self, sql: str) -> str:
        return f"w * {sql}" if self.weighted else sql

    def _fill(self, table: str, query: str) -> None:
        """Keep the answers to a query for each file, so that errors name the right one."""
        for index, rows in enumerate(self.rows):
            begin = f"INSERT INTO {table}" if index else f"CREATE OR REPLACE TEMP TABLE {table} AS"
            read(self.connection, f"{begin} {query.format(rows=rows.sql)}", rows.name)

    def _read(self, query: str) -> list[Any]:
        return read(self.connection, query, self.rows[0].name)

    def _arrays(self, query: str) -> dict[str, Array]:
        return read_arrays(self.connection, query, self.rows[0].name)


MEAN = (  # exactly the value, where all are equal
    "CASE WHEN min({0}_low) = max({0}_high) THEN min({0}_low) "
    "ELSE fsum(weight * {0}) / fsum(weight) END"
)
OPEN = "NOT (isfinite(low) AND isfinite(high))"
SCORED = (  # as the parts of Bounds: 1, covered, width, below, above, error
    "CAST(1 AS DOUBLE)",
    "CAST(low <= y AND y <= high AS DOUBLE)",
    f"CASE WHEN {OPEN} THEN 0 ELSE high - low END",
    "greatest(low - y, 0)",
    "greatest(y - high, 0)",
    "abs(e)",
)


def number(value: float) -> str:
    """Return SQL for a number, to its last digit."""
    return f"CAST('{value!r}' AS DOUBLE)"


def bin_of(size: str) -> str:
    """Return SQL for the bin of a size, as in the histograms of Moments."""
    growth = number(float(np.log(GROWTH)))
    return f"CASE WHEN {size} > 0 THEN CAST(ceil(ln({size}) / {growth}) AS INTEGER) ELSE {ZERO} END"


def _power(a: int, b: int) -> str:
    """Return SQL for d^a f^b."""
    factors = ["dd"] * (a // 2) + ["d"] * (a % 2) + ["ff"] * (b // 2) + ["f"] * (b % 2)
    return " * ".join(factors) or "CAST(1 AS DOUBLE)"


def _rolled(name: str) -> str:
    """Return SQL that adds up what files and bins have."""
    if name in {"items", "endless"}:
        return f"CAST(sum({name}) AS BIGINT)"
    return f"max({name})" if name == "largest" else f"fsum({name})"


def _moments(sums: dict[str, Array], y0: Array, e0: Array, constants: dict[str, float]) -> Moments:
    """Return a batch of summaries, one for each key."""
    plain = _central(sums, "s", y0, e0)
    return Moments(
        sums["items"],
        plain,
        _central(sums, "ws", y0, e0) if "ws00" in sums else plain,
        sums["absolute"],
        sums.get("wabsolute", sums["absolute"]),
        sums["largest"],
        sums["squares"],
        constants,
        {name: sums[f"c{k}"] for k, name in enumerate(constants)},
    )


def _central(sums: dict[str, Array], mark: str, y0: Array, e0: Array) -> Central:
    powers = np.zeros((len(y0), ORDER + 1, ORDER + 1))
    for a, b in POWERS:
        powers[:, a, b] = sums[f"{mark}{a}{b}"]
    y, e = (powers[:, a, b] / powers[:, 0, 0] for a, b in ((1, 0), (0, 1)))
    for some in pieces(len(y0)):
        near = Central(y0[some], e0[some], powers[some])
        powers[some] = near.about(near.y + y[some], near.e + e[some]).sums
    return Central(y0 + y, e0 + e, powers)


def _bounds(sums: dict[str, Array]) -> Bounds:
    size = 1 + len(PARTS)
    once, twice = np.zeros((2, len(sums["items"]), size, size))
    for i, j in SCORES:
        once[:, i, j] = once[:, j, i] = sums[f"z{i}{j}"]
        twice[:, i, j] = twice[:, j, i] = sums.get(f"wz{i}{j}", sums[f"z{i}{j}"])
    endless = sums["endless"].astype(float)
    return Bounds(items=sums["items"], plain=once, squared=twice, endless=endless, points=True)
