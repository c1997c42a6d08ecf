"""Rows that stand on both sides of a split: what was learned by heart is no test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.surrogate.data import Table
from ordinate.surrogate.splits import Rows, Split

NEAR = 1e-12  # relative: numbers that were written and read again
SHOWN = 5  # rows that a note names
SHIFTED = "shifted"  # the part beyond a shift, which is a second test
PAIRS = tuple(
    (part, twin)
    for part, twins in (
        ("test", ("training", "validation")),
        (SHIFTED, ("training", "validation")),
        ("validation", ("training",)),
    )
    for twin in twins
)
Kind = Literal["exact", "near"]
Key = tuple[int | None, ...]
Place = tuple[str, int]


@dataclass(frozen=True)
class Leak:
    """A row for a test or for validation whose features also stand where models learn or choose.

    Rows count from 1, as in the file without its header.
    """

    part: str
    row: int
    twin_part: str
    twin: int
    kind: Kind
    same_target: bool


@dataclass(frozen=True)
class Leaks:
    """All rows of a split that are not new, each with the first row that it repeats."""

    leaks: tuple[Leak, ...]
    sizes: dict[str, int]

    def __len__(self) -> int:
        return len(self.leaks)

    def rows(self, part: str) -> Rows:
        """Return the rows of a part that are not new, as places in the table, from 0."""
        return np.array([leak.row - 1 for leak in self.leaks if leak.part == part], np.intp)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of them: how many, and which."""
        found = [(part, twin, self._between(part, twin)) for part, twin in PAIRS]
        return tuple(self._note(part, twin, leaks) for part, twin, leaks in found if leaks)

    def to_dict(self) -> dict[str, Any]:
        """Return counts and rows by part."""
        return {
            "count": len(self.leaks),
            "rows": [vars(leak) for leak in self.leaks],
            "notes": list(self.notes),
        }

    def _between(self, part: str, twin: str) -> list[Leak]:
        return [leak for leak in self.leaks if (leak.part, leak.twin_part) == (part, twin)]

    def _note(self, part: str, twin: str, leaks: Sequence[Leak]) -> str:
        near = sum(leak.kind == "near" for leak in leaks)
        same = sum(leak.same_target for leak in leaks)
        shown = ", ".join(f"{leak.row} (as {leak.twin})" for leak in leaks[:SHOWN])
        more = f" and {len(leaks) - SHOWN:,} more" if len(leaks) > SHOWN else ""
        rows = "row" if len(leaks) == 1 else "rows"
        return (
            f"{len(leaks):,} of {self.sizes[part]:,} {part} rows also stand in {twin} by their "
            f"features ({near:,} only nearly, {same:,} with the same target): {rows} "
            f"{shown}{more}. What has been seen is no test: drop the repeats, or name a group "
            "column that keeps them together."
        )


def duplicates(table: Table, split: Split, beyond: Rows | None = None) -> Leaks:
    """Return the rows for test or validation whose features stand in an earlier part, too.

    Test rows, and those `beyond` a shift, are compared with training and validation, validation
    rows with training.

    >>> from ordinate.surrogate.data import make_table
    >>> table = make_table([[float(k % 19)] for k in range(20)], range(20), names=["x"])
    >>> split = Split(np.arange(16), np.arange(16, 18), np.arange(18, 20), "by hand")
    >>> duplicates(table, split).leaks
    (Leak(part='test', row=20, twin_part='training', twin=1, kind='exact', same_target=False),)
    """
    near, exact = _classes(table.features, NEAR), _classes(table.features, 0.0)
    target = _codes(table.target, NEAR)
    parts = split.parts | ({} if beyond is None else {SHIFTED: beyond})
    seen: dict[Key, Place] = {}
    leaks = []
    for part, rows in parts.items():
        own = [
            (row, _keys(int(near[row]), int(exact[row]), int(target[row])))
            for row in np.sort(rows).tolist()
        ]
        leaks += [leak for row, keys in own if (leak := _leak(part, row, keys, seen))]
        if part in {"test", SHIFTED}:
            continue  # nobody learns from a test, so another test may repeat it
        for row, keys in own:  # repeats within a part are no leak
            for key in keys:
                seen.setdefault(key, (part, row))
    return Leaks(tuple(leaks), {part: len(rows) for part, rows in parts.items()})


def _keys(near: int, exact: int, target: int) -> list[Key]:
    """Return what a twin may share with a row, the most alike first."""
    return [(near, exact, target), (near, exact, None), (near, None, target), (near, None, None)]


def _leak(part: str, row: int, keys: Sequence[Key], seen: Mapping[Key, Place]) -> Leak | None:
    """Return a leak with the first twin that is most like the row, if there is any."""
    found = next((key for key in keys if key in seen), None)
    if found is None:
        return None
    where, twin = seen[found]
    kind: Kind = "near" if found[1] is None else "exact"
    return Leak(part, row + 1, where, twin + 1, kind, found[2] is not None)


def _classes(features: NDArray[np.float64], tolerance: float) -> Rows:
    """Return a number for each row, the same for rows that are equal up to the tolerance."""
    codes = np.zeros(len(features), np.intp)
    for column in features.T:
        pairs = np.stack([codes, _codes(column, tolerance)], axis=1)
        codes = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return codes


def _codes(column: NDArray[np.float64], tolerance: float) -> Rows:
    """Return a number for each value; neighbours closer than the tolerance share one."""
    order = np.argsort(column, kind="stable")
    sorted_ = column[order]
    size = np.maximum(np.abs(sorted_[1:]), np.abs(sorted_[:-1]))
    with np.errstate(over="ignore"):
        steps = np.diff(sorted_) > tolerance * size
    codes = np.zeros(len(column), np.intp)
    codes[order[1:]] = np.cumsum(steps)
    return codes
