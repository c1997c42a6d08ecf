"""Rows that stand on both sides of a split: what was learned by heart is no test."""

from collections.abc import Mapping, Sequence
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
PART_PAIRS = tuple(
    (part, twin)
    for part, twins in (
        ("test", ("training", "validation")),
        (SHIFTED_PART, ("training", "validation")),
        ("validation", ("training",)),
    )
    for twin in twins
)
DuplicateType = Literal["exact", "near"]
DuplicateKey = tuple[int | None, ...]
RowPlace = tuple[str, int]


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


@dataclass(frozen=True)
class LeakageReport:
    """All rows of a split that are not new, each with the first row that it repeats."""

    leaks: tuple[LeakedRow, ...]
    sizes: dict[str, int]
    repeats: int = 0  # rows for training and validation that repeat others, and have no groups

    def __len__(self) -> int:
        return len(self.leaks)

    def rows(self, part: str) -> Rows:
        """Return the rows of a part that are not new, as places in the table, from 0."""
        return np.array([leak.row - 1 for leak in self.leaks if leak.part == part], np.intp)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of them: how many, and which."""
        found = [
            (part, twin, [x for x in self.leaks if (x.part, x.twin_part) == (part, twin)])
            for part, twin in PART_PAIRS
        ]
        own = [self._note(part, twin, leaks) for part, twin, leaks in found if leaks]
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
    alike = np.stack(
        [
            group_alike_rows(columns[:-1], compute_near_tolerance),
            group_alike_rows(columns[:-1], compute_exact_tolerance),
            group_alike_rows(columns[-1:], compute_near_tolerance),
            group_close_rows(columns),
        ],
        axis=1,
    ).tolist()
    parts = split.parts | ({} if beyond is None else {SHIFTED_PART: beyond})
    seen: dict[DuplicateKey, RowPlace] = {}
    leaks = []
    for part, rows in parts.items():
        own = [(row, _make_keys(*alike[row])) for row in np.sort(rows).tolist()]
        leaks += [leak for row, keys in own if (leak := _find_leak(part, row, keys, seen))]
        if part in {"test", SHIFTED_PART}:
            continue  # nobody learns from a test, so another test may repeat it
        for row, keys in own:  # repeats within a part are no leak
            for key in keys:
                seen.setdefault(key, (part, row))
    sizes = {part: len(rows) for part, rows in parts.items()}
    return LeakageReport(tuple(leaks), sizes, _count_repeats(table, split.known))


def _count_repeats(table: Table, rows: Rows) -> int:
    """Return how many rows repeat others; what a group repeats is its own affair."""
    return count_repeats(assign_unit_ids(table, rows)) if table.groups is None else 0


def _make_keys(like: int, same: int, target: int, whole: int) -> list[DuplicateKey]:
    """Return what a twin may share with a row, the most alike first."""
    by_features: list[DuplicateKey] = [
        (like, same, target),
        (like, same, None),
        (like, None, target),
    ]
    return [*by_features, (like, None, None), (None, None, whole)]


def _find_leak(
    part: str, row: int, keys: Sequence[DuplicateKey], seen: Mapping[DuplicateKey, RowPlace]
) -> LeakedRow | None:
    """Return a leak with the first twin that is most like the row, if there is any."""
    found = next((key for key in keys if key in seen), None)
    if found is None:
        return None
    where, twin = seen[found]
    kind: DuplicateType = "near" if found[1] is None else "exact"
    return LeakedRow(part, row + 1, where, twin + 1, kind, found[2] is not None)


def group_close_rows(columns: Sequence[Floats]) -> Rows:
    """Return classes of rows that are alike in all columns, but for rounding.

    Rows of a dense table are as close by chance. There are many more then that are a little less
    close, and nothing can be told: only those that are equal are alike.
    """
    equal, found = (
        group_alike_rows(columns, compute_near_tolerance),
        group_alike_rows(columns, compute_close_tolerance),
    )
    if count_repeats(found) == count_repeats(equal):
        return found
    wider = group_alike_rows(columns, lambda column: WIDER_FACTOR * compute_close_tolerance(column))
    more, some = (count_repeats(codes) - count_repeats(equal) for codes in (wider, found))
    return equal if more > DENSE_FACTOR * some else found


def compute_close_tolerance(column: Floats) -> Floats:
    """Tolerate numbers that were rounded to some six digits."""
    low, high = np.quantile(column, BULK_QUANTILES)
    spread = high - low if high > low else column.std()
    return np.minimum(CLOSE_SHARE * spread, LIKE_TOLERANCE * np.abs(column))
