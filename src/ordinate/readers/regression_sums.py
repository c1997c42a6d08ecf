"""Sums over items taken inside DuckDB: a pass finds means, and the next one sums up about them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadValues
from ordinate.readers.duckdb_connection import Connection, read_arrays, read_rows
from ordinate.readers.regression_pooling import ErrorHistogram, MomentsPool, split_keys
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

Array = NDArray[Any]
SCORE_PAIRS = [(i, j) for i in range(1 + len(SCORE_NAMES)) for j in range(i, 1 + len(SCORE_NAMES))]
FEW_KEYS = 64  # keys within which items are summed up by the size of their errors, which is quicker
MOST_GROUPS = 1 << 12  # groups that have a histogram each


@dataclass(frozen=True)
class RowQuery:
    """SQL for the items of a file: subgroup, cluster, nth, y, p, ok, in_gold, and w, low and high.

    Items that are not `ok` are counted and left out.
    """

    sql: str
    name: str


class FirstPassTotals(NamedTuple):
    """What the first pass knows of all items."""

    items: int  # that count
    given: int  # those that lack something, too
    mean: float  # of the targets
    counts: dict[str, int]


@dataclass(frozen=True)
class TwoPassSums:
    """Two passes over items, of each subgroup `subgroup` and each group `cluster` within it."""

    connection: Connection
    rows: list[RowQuery]
    weighted: bool = False
    has_intervals: bool = False
    histogram: bool = True
    counting: dict[str, str] = field(default_factory=dict)  # conditions, by name

    # --- the first pass ----------------------------------------------------------------------

    def compute_totals(self) -> FirstPassTotals:
        """Find the mean of each group, and how many items meet each condition."""
        counts = "".join(
            f", count(*) FILTER ({condition}) AS {name}"
            for name, condition in {"given": "in_gold", **self.counting}.items()
        )
        weight = "fsum(w) FILTER (ok)" if self.weighted else "count(*) FILTER (ok)"
        broken = "count(*) FILTER (ok AND w <> floor(w))" if self.weighted else "0"
        self._fill_table(
            "seen",
            "SELECT subgroup, cluster, min(nth) AS nth, count(*) FILTER (ok) AS items, "
            f"CAST({weight} AS DOUBLE) AS weight, {broken} AS broken, "
            f"fsum({self._build_weighted_sql('y')}) FILTER (ok) / weight AS y, "
            f"fsum({self._build_weighted_sql('(p - y)')}) FILTER (ok) / weight AS e, "
            "min(y) FILTER (ok) AS y_low, max(y) FILTER (ok) AS y_high, "
            f"min(p - y) FILTER (ok) AS e_low, max(p - y) FILTER (ok) AS e_high{counts} "
            "FROM ({rows}) GROUP BY subgroup, cluster",
        )
        self._number_groups()
        totals = [f"coalesce(sum({name}), 0)" for name in ("items", "given", *self.counting)]
        query = f"SELECT {', '.join(totals)}, {MEAN_SQL.format('y')} FROM seen"
        items, given, *found, mean = self._read(query)[0]
        counted = (int(count) for count in found)
        known = float("nan") if mean is None else float(mean)
        return FirstPassTotals(
            int(items), int(given), known, dict(zip(self.counting, counted, strict=True))
        )

    def _number_groups(self) -> None:
        """Number the subgroups by name, and the groups that have items as they appear."""
        keys = (
            "SELECT subgroup, cluster, min(nth) AS nth, CAST(sum(items) AS BIGINT) AS items, "
            "CAST(sum(given) AS BIGINT) AS given, CAST(sum(broken) AS BIGINT) AS broken, "
            f"{MEAN_SQL.format('y')} AS y0, {MEAN_SQL.format('e')} AS e0 "
            "FROM seen GROUP BY subgroup, cluster HAVING sum(given) > 0"
        )
        start = "min(CASE WHEN items > 0 THEN nth END) OVER (PARTITION BY cluster) AS start"
        ranked = (
            "SELECT *, dense_rank() OVER (ORDER BY subgroup NULLS LAST) - 1 AS sub, "
            "dense_rank() OVER (ORDER BY start NULLS LAST) - 1 AS number "
            f"FROM (SELECT *, {start} FROM ({keys}))"
        )
        self._read(
            "CREATE OR REPLACE TEMP TABLE points AS SELECT *, "
            f"row_number() OVER (ORDER BY items = 0, sub, number) - 1 AS k FROM ({ranked})"
        )

    def compute_median(self, mean: float) -> float:
        """Return the median target, from bins about the mean: of an even number the middle."""
        weight = "fsum(w)" if self.weighted else "count(*)"
        self._fill_table(
            "around",
            f"SELECT y > {format_number_sql(mean)} AS above, "
            f"{build_bin_sql(f'abs(y - {format_number_sql(mean)})')} AS bin, "
            f"CAST({weight} AS DOUBLE) AS weight FROM ({{rows}}) WHERE ok GROUP BY ALL",
        )
        found = sorted(
            (mean + (compute_bin_size(place) if above else -compute_bin_size(place)), weight)
            for above, place, weight in self._read("SELECT above, bin, weight FROM around")
        )
        values, weights = np.array(found).T
        below = np.cumsum(weights) / weights.sum()
        first, last = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
        return float(values[first] + values[min(last, len(values) - 1)]) / 2.0

    # --- the second pass ---------------------------------------------------------------------

    def compute_sums(self, constants: dict[str, float]) -> MomentsPool:
        """Sum up about the means that the first pass found."""
        self._refuse_large_values()
        points = self._read_arrays(
            "SELECT k, sub, number, items, given, broken, coalesce(y0, 0) AS y0, "
            "coalesce(e0, 0) AS e0 FROM points ORDER BY k"
        )
        keys = int((points["items"] > 0).sum())
        sums_sql = self._build_sums_sql(list(constants.values()))
        place = build_bin_sql("abs(e)") if keys <= FEW_KEYS else "0"
        selected = "".join(f", {sql} AS {name}" for name, sql in sums_sql.items())
        self._fill_table(
            "sums",
            f"SELECT k, {place} AS bin{selected} FROM ({self._build_centered_sql(points)}) "
            "GROUP BY ALL",
        )
        rolled = "".join(f", {_build_rollup_sql(name)} AS {name}" for name in sums_sql)
        sums = self._read_arrays(f"SELECT k{rolled} FROM sums GROUP BY k ORDER BY k")
        at = slice(0, keys)  # keys without items come last
        batch = _build_moments(sums, points["y0"][at], points["e0"][at], constants)
        return MomentsPool(
            batch,
            _build_intervals(sums) if self.has_intervals else None,
            self._read_histogram(keys) if self.histogram else None,
            by=points["sub"][at],
            group=points["number"][at],
            names=[
                row[0] for row in self._read("SELECT subgroup FROM points GROUP BY ALL ORDER BY 1")
            ],
            dropped=np.bincount(points["sub"], points["given"] - points["items"]).astype(int),
            has_fractional_weights=np.bincount(points["sub"], points["broken"]) > 0,
        )

    def _refuse_large_values(self) -> None:
        """Refuse values whose fourth powers are no numbers any more."""
        size = "greatest(abs(e_low), abs(e_high))"
        query = f"SELECT min(y_low), max(y_high), max({size}) FROM seen"
        low, high, largest = self._read(query)[0]
        if not max(abs(low), abs(high), largest) < LARGEST_VALUE:
            raise BadValues(f"The values are too large to be squared twice. {UNIT_HINT}")
        if 0.0 < max(high - low, largest) < 1.0 / LARGEST_VALUE:
            raise BadValues(f"The values are too small to be squared twice. {UNIT_HINT}")

    def _build_centered_sql(self, points: dict[str, Array]) -> str:
        """Return SQL for items with their distances from the means of their group."""
        if len(points["k"]) == 1:
            y0, e0 = (format_number_sql(float(points[name][0])) for name in ("y0", "e0"))
            source = f"SELECT *, 0 AS k, {y0} AS y0, {e0} AS e0 FROM ({{rows}}) WHERE ok"
        else:
            source = (
                "SELECT r.*, k, y0, e0 FROM (SELECT * FROM ({rows}) WHERE ok) r JOIN points q ON "
                "r.subgroup IS NOT DISTINCT FROM q.subgroup "
                "AND r.cluster IS NOT DISTINCT FROM q.cluster"
            )
        squares = "*, d * d AS dd, f * f AS ff" + (", w * w AS ww" if self.weighted else "")
        scores = "".join(f", {sql} AS z{i}" for i, sql in enumerate(SCORE_SQL)) * self.has_intervals
        return (
            f"SELECT {squares}{scores} FROM (SELECT *, p - y AS e, y - y0 AS d, (p - y) - e0 AS f "
            f"FROM ({source}))"
        )

    def _build_sums_sql(self, constants: list[float]) -> dict[str, str]:
        """Return SQL for every sum, by its name."""
        products = {f"s{a}{b}": _build_power_sql(a, b) for a, b in MOMENT_POWERS}
        if self.has_intervals:
            products |= {f"z{i}{j}": f"z{i} * z{j}" for i, j in SCORE_PAIRS}
        products["absolute"] = "abs(e)"
        found = {name: f"fsum({self._build_weighted_sql(sql)})" for name, sql in products.items()}
        if self.weighted:
            found |= {f"w{name}": f"fsum(ww * {sql})" for name, sql in products.items()}
        once = {
            f"c{k}": f"abs(y - {format_number_sql(value)})" for k, value in enumerate(constants)
        }
        once["squares"] = "e * e"
        found |= {name: f"fsum({self._build_weighted_sql(sql)})" for name, sql in once.items()}
        found |= {"items": "count(*)", "largest": "max(abs(e))"}
        return found | (
            {"endless": f"count(*) FILTER ({INFINITE_INTERVAL_SQL})"} if self.has_intervals else {}
        )

    def _read_histogram(self, keys: int) -> ErrorHistogram:
        """Return the weight of errors by bin: of each key, or of each subgroup if keys are many."""
        if keys <= FEW_KEYS:
            query = "SELECT k AS key, bin, fsum(s00) AS weight FROM sums GROUP BY ALL ORDER BY 1, 2"
            return ErrorHistogram(by_key=True, **self._read_arrays(query))
        key, weight = (
            "k" if keys <= MOST_GROUPS else "sub",
            "fsum(w)" if self.weighted else "count(*)",
        )
        self._fill_table(
            "bins",
            f"SELECT {key} AS k, {build_bin_sql('abs(p - y)')} AS bin, CAST({weight} AS DOUBLE) "
            "AS weight FROM (SELECT * FROM ({rows}) WHERE ok) r JOIN points q ON "
            "r.subgroup IS NOT DISTINCT FROM q.subgroup "
            "AND r.cluster IS NOT DISTINCT FROM q.cluster GROUP BY ALL",
        )
        query = "SELECT k AS key, bin, fsum(weight) AS weight FROM bins GROUP BY ALL ORDER BY 1, 2"
        return ErrorHistogram(by_key=keys <= MOST_GROUPS, **self._read_arrays(query))

    # --- the engine --------------------------------------------------------------------------

    def _build_weighted_sql(self, sql: str) -> str:
        return f"w * {sql}" if self.weighted else sql

    def _fill_table(self, table: str, query: str) -> None:
        """Keep the results of a query for each file, so that errors name the right one."""
        for index, rows in enumerate(self.rows):
            begin = f"INSERT INTO {table}" if index else f"CREATE OR REPLACE TEMP TABLE {table} AS"
            read_rows(self.connection, f"{begin} {query.format(rows=rows.sql)}", rows.name)

    def _read(self, query: str) -> list[Any]:
        return read_rows(self.connection, query, self.rows[0].name)

    def _read_arrays(self, query: str) -> dict[str, Array]:
        return read_arrays(self.connection, query, self.rows[0].name)


MEAN_SQL = (  # exactly the value, where all are equal
    "CASE WHEN min({0}_low) = max({0}_high) THEN min({0}_low) "
    "ELSE fsum(weight * {0}) / fsum(weight) END"
)
INFINITE_INTERVAL_SQL = "NOT (isfinite(low) AND isfinite(high))"
SCORE_SQL = (  # as the scores of prediction intervals: 1, covered, width, below, above, error
    "CAST(1 AS DOUBLE)",
    "CAST(low <= y AND y <= high AS DOUBLE)",
    f"CASE WHEN {INFINITE_INTERVAL_SQL} THEN 0 ELSE high - low END",
    "greatest(low - y, 0)",
    "greatest(y - high, 0)",
    "abs(e)",
)


def format_number_sql(value: float) -> str:
    """Return SQL for a number, to its last digit."""
    return f"CAST('{value!r}' AS DOUBLE)"


def build_bin_sql(size: str) -> str:
    """Return SQL for the bin of a size, as in the histograms of Moments."""
    growth = format_number_sql(float(np.log(BIN_GROWTH)))
    number = f"CAST(ceil(ln({size}) / {growth}) AS INTEGER)"
    return f"CASE WHEN {size} > 0 THEN {number} ELSE {ZERO_BIN} END"


def _build_power_sql(a: int, b: int) -> str:
    """Return SQL for d^a f^b."""
    factors = ["dd"] * (a // 2) + ["d"] * (a % 2) + ["ff"] * (b // 2) + ["f"] * (b % 2)
    return " * ".join(factors) or "CAST(1 AS DOUBLE)"


def _build_rollup_sql(name: str) -> str:
    """Return SQL that adds up what files and bins have."""
    if name in {"items", "endless"}:
        return f"CAST(sum({name}) AS BIGINT)"
    return f"max({name})" if name == "largest" else f"fsum({name})"


def _build_moments(
    sums: dict[str, Array], y0: Array, e0: Array, constants: dict[str, float]
) -> Moments:
    """Return a batch of summaries, one for each key."""
    plain = _build_central_sums(sums, "s", y0, e0)
    return Moments(
        sums["items"],
        plain,
        _build_central_sums(sums, "ws", y0, e0) if "ws00" in sums else plain,
        sums["absolute"],
        sums.get("wabsolute", sums["absolute"]),
        sums["largest"],
        sums["squares"],
        constants,
        {name: sums[f"c{k}"] for k, name in enumerate(constants)},
    )


def _build_central_sums(sums: dict[str, Array], mark: str, y0: Array, e0: Array) -> CentralSums:
    powers = np.zeros((len(y0), HIGHEST_ORDER + 1, HIGHEST_ORDER + 1))
    for a, b in MOMENT_POWERS:
        powers[:, a, b] = sums[f"{mark}{a}{b}"]
    y, e = (powers[:, a, b] / powers[:, 0, 0] for a, b in ((1, 0), (0, 1)))
    for block in split_keys(len(y0)):
        near = CentralSums(y0[block], e0[block], powers[block])
        powers[block] = near.recenter_sums(near.y + y[block], near.e + e[block]).sums
    return CentralSums(y0 + y, e0 + e, powers)


def _build_intervals(sums: dict[str, Array]) -> PredictionIntervals:
    size = 1 + len(SCORE_NAMES)
    once, twice = np.zeros((2, len(sums["items"]), size, size))
    for i, j in SCORE_PAIRS:
        once[:, i, j] = once[:, j, i] = sums[f"z{i}{j}"]
        twice[:, i, j] = twice[:, j, i] = sums.get(f"wz{i}{j}", sums[f"z{i}{j}"])
    endless = sums["endless"].astype(float)
    return PredictionIntervals(
        items=sums["items"], plain=once, squared=twice, endless=endless, points=True
    )
