"""Rows that are odd: repeats on both sides of a split, which are no test, and outliers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.regress.splits import (
    Floats,
    Rows,
    Split,
    assign_unit_ids,
    compute_exact_tolerance,
    compute_near_tolerance,
    count_repeats,
    group_alike_rows,
)
from ordinate.tuning.regress.table import Table

CLOSE_SHARE = 5e-6  # of what a column spans: numbers that were rounded, or kept in single precision
LIKE_TOLERANCE = (
    1e-3  # relative: such numbers; without it small values of many sizes would all be close
)
BULK_QUANTILES = (0.05, 0.95)  # between which a column spans, whatever lies far off
WIDER_FACTOR = 10.0  # times as far, to see whether rows are close by chance
DENSE_FACTOR = 3.0  # times as many that far: by chance there are some
SHOWN_ROWS = 5  # rows that a note names
SHIFTED_PART = "shifted"  # the part beyond a shift, which is a second test
LEARNED_PARTS = ("training", "validation")
DuplicateType = Literal["exact", "near"]


@dataclass(frozen=True)
class LeakedRow:
    """A row for a test or for validation whose features also stand where models learn or choose.

    Rows count from 1, as in the file without its header.
    """

    part: str
    row: int
    twin_part: str
    twin: int
    kind: DuplicateType
    same_target: bool


def _rank_parts(pair: tuple[str, str]) -> tuple[int, int]:
    """Put the test first, and training before validation."""
    part, twin = pair
    return ("test", SHIFTED_PART, "validation").index(part), LEARNED_PARTS.index(twin)


@dataclass(frozen=True)
class LeakageReport:
    """All rows of a split that are not new, each with the first row that it repeats."""

    leaks: tuple[LeakedRow, ...]
    sizes: dict[str, int]
    repeats: int = 0  # rows for training and validation that repeat others, and have no groups

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of them: how many, and which."""
        parted: dict[tuple[str, str], list[LeakedRow]] = {}
        for leak in self.leaks:
            parted.setdefault((leak.part, leak.twin_part), []).append(leak)
        own = [self._note(*pair, parted[pair]) for pair in sorted(parted, key=_rank_parts)]
        if self.repeats:
            rows = "row repeats another" if self.repeats == 1 else "rows repeat others"
            own.append(
                f"{self.repeats:,} {rows} by the features, among those for training and "
                "validation: where rows are folded, repeats stay together in one fold."
            )
        return tuple(own)

    def to_dict(self) -> dict[str, Any]:
        """Return counts and rows by part."""
        return {
            "count": len(self.leaks),
            "rows": [vars(leak) for leak in self.leaks],
            "repeats": self.repeats,
            "notes": list(self.notes),
        }

    def _note(self, part: str, twin: str, leaks: Sequence[LeakedRow]) -> str:
        near = sum(leak.kind == "near" for leak in leaks)
        same = sum(leak.same_target for leak in leaks)
        shown = ", ".join(f"{leak.row} (as {leak.twin})" for leak in leaks[:SHOWN_ROWS])
        more = f" and {len(leaks) - SHOWN_ROWS:,} more" if len(leaks) > SHOWN_ROWS else ""
        rows = "row" if len(leaks) == 1 else "rows"
        return (
            f"{len(leaks):,} of {self.sizes[part]:,} {part} rows also stand in {twin} by their "
            f"features ({near:,} only nearly, {same:,} with the same target): {rows} "
            f"{shown}{more}. What has been seen is no test: drop the repeats, or name a group "
            "column that keeps them together."
        )


def find_duplicates(table: Table, split: Split, beyond: Rows | None = None) -> LeakageReport:
    """Return the rows for test or validation whose features stand in an earlier part, too.

    Test rows, and those `beyond` a shift, are compared with training and validation, validation
    rows with training. Rows whose features were rounded count if the target is close, too.

    >>> from ordinate.tuning.regress.table import make_table
    >>> table = make_table([[float(k % 19)] for k in range(20)], range(20), names=["x"])
    >>> split = Split(np.arange(16), np.arange(16, 18), np.arange(18, 20), "by hand")
    >>> find_duplicates(table, split).leaks
    (LeakedRow(part='test', row=20, twin_part='training', twin=1, kind='exact', same_target=False),)
    """
    columns = (*table.features.T, table.target)
    near, same, target, close = (
        group_alike_rows(columns[:-1], compute_near_tolerance).tolist(),
        group_alike_rows(columns[:-1], compute_exact_tolerance).tolist(),
        group_alike_rows(columns[-1:], compute_near_tolerance).tolist(),
        group_close_rows(columns).tolist(),
    )

    def make_keys(row: int) -> list[tuple[int | None, ...]]:
        """Return what a twin may share with a row, the most alike first."""
        features = [(same[row], target[row]), (same[row], None), (None, target[row]), (None, None)]
        return [*((near[row], *key) for key in features), (None, None, close[row])]

    parts = split.parts | ({} if beyond is None else {SHIFTED_PART: beyond})
    seen: dict[tuple[int | None, ...], tuple[str, int]] = {}
    leaks = []
    for part, rows in parts.items():
        keys = {row: make_keys(row) for row in np.sort(rows).tolist()}
        for row, own in keys.items():
            if (shared := next((key for key in own if key in seen), None)) is not None:
                kind: DuplicateType = "near" if shared[1] is None else "exact"
                where, twin = seen[shared]
                same_target = shared[2] is not None
                leaks.append(LeakedRow(part, row + 1, where, twin + 1, kind, same_target))
        if part in LEARNED_PARTS:  # nobody learns from a test, so another test may repeat it
            for row, own in keys.items():  # repeats within a part are no leak
                for key in own:
                    seen.setdefault(key, (part, row))
    sizes = {part: len(rows) for part, rows in parts.items()}
    # what a group repeats is its own affair
    repeats = 0 if table.groups is not None else count_repeats(assign_unit_ids(table, split.known))
    return LeakageReport(tuple(leaks), sizes, repeats)


def group_close_rows(columns: Sequence[Floats]) -> Rows:
    """Return classes of rows that are alike in all columns, but for rounding.

    Rows of a dense table are as close by chance. There are many more then that are a little less
    close, and nothing can be told: only those that are equal are alike.
    """
    equal, found, wider = (
        group_alike_rows(columns, tolerance)
        for tolerance in (
            compute_near_tolerance,
            compute_close_tolerance,
            lambda column: WIDER_FACTOR * compute_close_tolerance(column),
        )
    )
    more, some = (count_repeats(codes) - count_repeats(equal) for codes in (wider, found))
    return equal if some and more > DENSE_FACTOR * some else found


def compute_close_tolerance(column: Floats) -> Floats:
    """Tolerate numbers that were rounded to some six digits."""
    low, high = np.quantile(column, BULK_QUANTILES)
    spread = high - low if high > low else column.std()
    return np.minimum(CLOSE_SHARE * spread, LIKE_TOLERANCE * np.abs(column))


# --- outliers ------------------------------------------------------------------------------------

FAR_DISTANCE = 6.0  # robust standard deviations from the median
COMMON_SHARE = 0.02  # of the rows: if more lie far off, that is how the column is
MOST_SENTINEL_SHARE = 0.5  # of the rows may have a value that is a sign
DISTINCT_VALUES = 10  # other values, at least: a column of fewer has flags or counts
SKEW_THRESHOLD = 0.15  # of 1: below it no scale is any better
EIGHTHS = (0.125, 0.5, 0.875)  # between which the bulk lies
NORMAL_MAD_RATIO = (
    1.482602218505602  # σ of a normal distribution over its median absolute deviation
)
NORMAL_MEAN_RATIO = 1.2533141373155001  # σ over its mean absolute deviation


@dataclass(frozen=True)
class ColumnOutliers:
    """The far values of a column: how many, and the farthest, rows from 1 as in the file."""

    column: str
    count: int
    rows: tuple[int, ...]
    values: tuple[float, ...]
    distances: tuple[float, ...]  # in robust standard deviations
    logarithmic: bool = False  # whether these are of logarithms
    share: float | None = None  # of the rows, where all far values are one and the same

    @property
    def note(self) -> str:
        """What a report says of them."""
        if self.share is not None:
            return (
                f"{self.column!r} has {self.values[0]:.6g} in {self.count:,} rows ({self.share:.2g}"
                " % of them), far from all other values: is it a sign for a missing one?"
            )
        shown = ", ".join(
            f"row {row} ({value:.6g}, {z:+.3g} σ)"
            for row, value, z in zip(self.rows, self.values, self.distances, strict=True)
        )
        more = f" and {self.count - len(self.rows):,} more" if self.count > len(self.rows) else ""
        values = "value lies" if self.count == 1 else "values lie"
        scale = ", by logarithms" if self.logarithmic else ""
        return (
            f"{self.count:,} {values} far from the others in {self.column!r}{scale}: {shown}{more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: list(x) if isinstance(x, tuple) else x for name, x in vars(self).items()}


def find_outliers(table: Table, far: float = FAR_DISTANCE) -> list[ColumnOutliers]:
    """Return the columns with values far from their median, the target first.

    >>> from ordinate.tuning.regress.table import make_table
    >>> table = make_table([[float(k)] for k in range(30)], [*range(29), 900.0])
    >>> find_outliers(table)[0].note
    "1 value lies far from the others in 'target': row 30 (900, +79.6 σ)."
    """
    found = (
        _find_far_values(name, table.column(name), far)
        for name in (table.target_name, *table.names)
    )
    return [each for each in found if each is not None]


def _find_far_values(name: str, column: NDArray[np.float64], far: float) -> ColumnOutliers | None:
    logs = _take_logarithms(column)
    scaled = column if logs is None else logs
    z = compute_robust_z(scaled)
    away = np.abs(z) > far
    rows = np.flatnonzero(away)
    share = 100.0 * len(rows) / len(column) if _is_sentinel(scaled, away) else None
    if not len(rows) or (share is None and len(rows) > max(SHOWN_ROWS, COMMON_SHARE * len(column))):
        return None
    worst = rows[np.argsort(-np.abs(z[rows]), kind="stable")][:SHOWN_ROWS]
    shown = (tuple((worst + 1).tolist()), tuple(column[worst].tolist()), tuple(z[worst].tolist()))
    return ColumnOutliers(name, len(rows), *shown, logarithmic=logs is not None, share=share)


def _is_sentinel(column: NDArray[np.float64], away: NDArray[np.bool_]) -> bool:
    """Tell whether the far values are one value that stands for something else.

    It lies farther from all others than these lie from each other.
    """
    far, others = column[away], column[~away]
    if not 1 < len(far) < MOST_SENTINEL_SHARE * len(column) or np.ptp(far) > 0:
        return False
    gap = np.abs(others - far[0]).min()
    return bool(gap > np.ptp(others)) and len(np.unique(others)) >= DISTINCT_VALUES


def _take_logarithms(column: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return logarithms of sizes, with their sign, where the bulk of them is less skewed."""
    sign = np.sign(column[0]) if len(column) else 0.0
    if sign == 0.0 or not (np.sign(column) == sign).all():
        return None
    logs: NDArray[np.float64] = sign * np.log(np.abs(column))
    skew = _compute_skew(column)
    return logs if skew > SKEW_THRESHOLD and _compute_skew(logs) < skew else None


def _compute_skew(column: NDArray[np.float64]) -> float:
    """Return how skewed the bulk is, from 0 to 1, whatever lies far off."""
    low, middle, high = np.quantile(column, EIGHTHS)
    return float(abs(high + low - 2.0 * middle) / (high - low)) if high > low else 0.0


def compute_robust_z(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances from the median in robust standard deviations.

    Where more than half of the values are equal, the mean absolute deviation takes the place of
    the median one.
    """
    gaps = column - np.median(column)
    scale = NORMAL_MAD_RATIO * np.median(np.abs(gaps))
    if scale == 0:
        scale = NORMAL_MEAN_RATIO * np.abs(gaps).mean()
    return gaps / scale if scale > 0 else np.zeros(len(column))
