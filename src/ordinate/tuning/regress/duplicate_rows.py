"""Rows that stand on both sides of a split: what was learned by heart is no test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

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
