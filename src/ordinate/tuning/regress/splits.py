"""Which rows are for training, validation and test: the same for every trial."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, NoItems
from ordinate.render.estimates import format_percent
from ordinate.settings import check_choice
from ordinate.tuning.regress.settings import MOST_SHIFTED, ShiftEnd, check_shift_share
from ordinate.tuning.regress.table import Table

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
ToleranceRule = Callable[
    [Floats], Floats
]  # of a column: how far a value may lie from one that is alike
SPLIT_SHARES = (0.8, 0.1, 0.1)  # for training, validation, test
PART_NAMES = ("training", "validation", "test")
NEAR_TOLERANCE = 1e-12  # relative: numbers that were written and read again
LARGE_GROUP_FACTOR = 1.5  # times what a part is to have: larger groups do not belong there


@dataclass(frozen=True)
class Split:
    """Rows of a table by what they are for; no row is in two parts.

    Rows come in shuffled order, for files are often sorted by the target.
    """

    train: Rows = field(repr=False)
    validation: Rows = field(repr=False)
    test: Rows = field(repr=False)
    name: str
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows each part has."""
        return {part: len(rows) for part, rows in self.parts.items()}

    @property
    def parts(self) -> dict[str, Rows]:
        """The rows by the name of their part."""
        return dict(zip(PART_NAMES, (self.train, self.validation, self.test), strict=True))

    @property
    def known(self) -> Rows:
        """All rows but those for the test."""
        return np.concatenate([self.train, self.validation])


def split_table(table: Table, seed: int, shares: Sequence[float] = SPLIT_SHARES) -> Split:
    """Return a split of whole groups where the table has them, and of single rows otherwise."""
    return (split_randomly if table.groups is None else split_by_group)(table, seed, shares)


def split_randomly(table: Table, seed: int, shares: Sequence[float] = SPLIT_SHARES) -> Split:
    """Return a split of shuffled rows.

    >>> from ordinate.tuning.regress.table import make_table
    >>> table = make_table([[float(k)] for k in range(50)], range(50))
    >>> split_randomly(table, seed=0).sizes
    {'training': 40, 'validation': 5, 'test': 5}
    """
    _check_shares(shares)
    order = np.random.default_rng(seed).permutation(len(table))
    train, validation, test = _cut_by_shares(order, shares)
    notes = []
    if table.groups is not None:
        notes.append("Rows were split one by one: groups stand on both sides of the split.")
    return Split(train, validation, test, f"random (seed {seed})", tuple(notes))


def split_by_group(table: Table, seed: int, shares: Sequence[float] = SPLIT_SHARES) -> Split:
    """Return a split in which every group is in one part as a whole."""
    _check_shares(shares)
    codes, count = _encode_groups(table)
    wanted = sum(share > 0 for share in shares)
    if count < wanted:
        raise NoItems(f"There are {count} groups, and {wanted} parts: each needs one at least.")
    rng = np.random.default_rng(seed)
    part = _assign_groups(np.bincount(codes, minlength=count), np.asarray(shares, float), rng)
    order = rng.permutation(len(table))
    train, validation, test = (order[part[codes[order]] == k] for k in range(3))
    found = np.array([len(train), len(validation), len(test)]) / len(table)
    notes = []
    if np.abs(found - _normalize_shares(shares)).max() > 0.05:
        told = ", ".join(
            f"{format_percent(x, 0)} {name}" for x, name in zip(found, PART_NAMES, strict=True)
        )
        notes.append(f"Groups are of unequal size: {told}.")
    return Split(train, validation, test, f"grouped (seed {seed})", tuple(notes))


def split_k_fold(table: Table, k: int, seed: int, *, of: Split | None = None) -> list[Split]:
    """Return k splits, in each of which another fold is for validation.

    With `of` its training and validation rows are folded and its test rows stay what they are;
    without it no row is for the test. Groups stay whole where the table has them, and so do rows
    that repeat each other where it has none.
    """
    order = np.arange(len(table)) if of is None else np.sort(of.known)
    test = np.zeros(0, np.intp) if of is None else of.test
    rng = np.random.default_rng(seed)
    codes = assign_unit_ids(table, order)
    count = check_folds(table, codes, k)
    if count == len(order) and table.groups is None:
        fold = rng.permutation(np.arange(count) % k)
    else:
        fold = _assign_groups(np.bincount(codes, minlength=count), np.full(k, 1.0), rng)
    mixed = rng.permutation(len(order))
    of_row, order = fold[codes][mixed], order[mixed]
    return [
        Split(order[of_row != j], order[of_row == j], test, f"fold {j + 1} of {k} (seed {seed})")
        for j in range(k)
    ]


def split_by_shift(
    table: Table, by: str, *, share: float = 0.1, end: ShiftEnd = "high", seed: int = 0
) -> Split:
    """Return a split whose test rows are the extreme region of a feature, or of the target.

    All others are for training.
    """
    check_shift_share(share)
    check_choice("shift_end", end, get_args(ShiftEnd))
    values = table.column(by) if end == "high" else -table.column(by)
    wanted = max(1, round(share * len(table)))
    cut = np.sort(values)[len(table) - wanted]
    outside = values >= cut  # all rows that are equal at the border are on one side of it
    if outside.mean() > MOST_SHIFTED:
        raise BadInput(
            f"{format_percent(outside.mean(), 0)} of the rows have the same extreme value of "
            f"{by!r}: no region of {format_percent(share, 0)} can be cut off. Shift by another "
            "column."
        )
    bound = cut if end == "high" else -cut
    sign = "≥" if end == "high" else "≤"
    rng = np.random.default_rng(seed)
    return Split(
        np.flatnonzero(~outside),
        np.zeros(0, np.intp),
        rng.permutation(np.flatnonzero(outside)),
        f"shifted ({by} {sign} {bound:.6g}, seed {seed})",
        tuple(_describe_straddling(table, outside)),
    )


# --- rows that belong together -------------------------------------------------------------------


def assign_unit_ids(table: Table, rows: Rows) -> Rows:
    """Return a number for each of these rows, the same for rows that belong together.

    These are the rows of a group or, in a table without groups, rows of equal features. They are
    numbered in the order in which they first come.

    >>> from ordinate.tuning.regress.table import make_table
    >>> table = make_table([[float(k % 8)] for k in range(10)], range(10))
    >>> assign_unit_ids(table, np.arange(10)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
    """
    if not len(rows):
        return np.zeros(0, np.intp)
    if table.groups is not None:
        return np.unique(table.groups[rows].astype(str), return_inverse=True)[1].reshape(-1)
    codes = group_alike_rows(table.features[rows].T, compute_near_tolerance)
    _, first, own = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[own.reshape(-1)]


def group_alike_rows(columns: Sequence[Floats] | Floats, tolerance: ToleranceRule) -> Rows:
    """Return a number for each row, the same for rows that are alike in all columns.

    Classes are parted again until none falls apart: in a dense column all values hang together,
    neighbour by neighbour, and only within the classes of the other columns they do not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        tolerances = [tolerance(column) for column in columns]
    codes, before = np.zeros(len(columns[0]), np.intp), -1
    while True:
        for column, own in zip(columns, tolerances, strict=True):
            codes = _split_classes(codes, column, own)
            if not count_repeats(codes):
                return codes
        if count_repeats(codes) == before:
            return codes
        before = count_repeats(codes)


def count_repeats(codes: Rows) -> int:
    """Return how many rows repeat another one of their class."""
    return len(codes) - int(codes.max(initial=-1)) - 1


def compute_exact_tolerance(column: Floats) -> Floats:
    """Leave no tolerance: values are alike if they are equal."""
    return np.zeros(len(column))


def compute_near_tolerance(column: Floats) -> Floats:
    """Tolerate numbers that were written and read again."""
    return NEAR_TOLERANCE * np.abs(column)


def _split_classes(codes: Rows, column: Floats, tolerance: Floats) -> Rows:
    """Return classes that are parted where the next value of a class is too far."""
    order = np.lexsort((column, codes))
    allowed = np.maximum(tolerance[order[1:]], tolerance[order[:-1]])
    with np.errstate(over="ignore"):
        far = np.diff(column[order]) > allowed
    parted = np.zeros(len(codes), np.intp)
    parted[order[1:]] = np.cumsum(far | (np.diff(codes[order]) > 0))
    return parted


# --- helpers -------------------------------------------------------------------------------------


def _check_shares(shares: Sequence[float]) -> None:
    sound = len(shares) == 3 and all(np.isfinite(x) and x >= 0 for x in shares) and shares[0] > 0
    if not sound:
        raise BadOption(
            f"Shares are three numbers, for training (above 0), validation and test: not {shares}."
        )


def check_folds(table: Table, codes: Rows, k: int) -> int:
    """Return how many units there are, which are to be as many as folds or more."""
    count, rows = int(codes.max(initial=-1)) + 1, len(codes)
    if 2 <= k <= count:
        return count
    if count == rows or table.groups is not None:
        what = "rows" if table.groups is None else "groups"
        raise BadOption(f"Folds must be from 2 to {count}, as many as there are {what}: not {k}.")
    raise BadOption(
        f"Only {count:,} of {rows:,} rows differ in their features, too few for {k} folds: rows of "
        "equal features stay in one fold. Take fewer folds, or 0 to judge by the validation part "
        "alone."
    )


def _normalize_shares(shares: Sequence[float]) -> NDArray[np.float64]:
    given = np.asarray(shares, float)
    return given / given.sum()


def _cut_by_shares(order: Rows, shares: Sequence[float]) -> tuple[Rows, Rows, Rows]:
    """Return parts of these shares; one that is wanted at all has a row at least."""
    _, validation, test = (
        max(1, int(share * len(order) + 0.5)) if share else 0 for share in _normalize_shares(shares)
    )
    if validation + test >= len(order):
        raise NoItems(f"{len(order)} rows are too few for these shares: none is left for training.")
    return order[validation + test :], order[:validation], order[validation : validation + test]


def _encode_groups(table: Table) -> tuple[Rows, int]:
    if table.groups is None:
        raise BadOption("The table has no groups: name their column when it is read.")
    names, codes = np.unique(table.groups.astype(str), return_inverse=True)
    return codes.astype(np.intp), len(names)


def _assign_groups(sizes: Rows, shares: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Return a part for each group: each goes where most rows are missing.

    Parts of equal size take large groups first. Others take them as they come, for else the small
    groups would always be those of the test; but groups far too large for the smallest part come
    first, and go to the largest one.
    """
    wanted = shares / shares.sum() * sizes.sum()
    equal = np.ptp(shares) == 0
    first = sizes if equal else sizes // (LARGE_GROUP_FACTOR * wanted[shares > 0].min())
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-first[order], kind="stable")]
    largest = [int(np.argmax(shares))]
    part = np.zeros(len(sizes), np.intp)
    have = np.zeros(len(shares))
    open_parts = [k for k, share in enumerate(shares) if share > 0]
    empty = set(open_parts)
    for done, group in enumerate(order):
        # The last groups go to parts that have none yet.
        fitting = largest if first[group] and not equal else open_parts
        among = sorted(empty) if len(order) - done <= len(empty) else fitting
        part[group] = max(among, key=lambda k: wanted[k] - have[k])
        have[part[group]] += sizes[group]
        empty.discard(int(part[group]))
    return part


def _describe_straddling(table: Table, outside: NDArray[Any]) -> list[str]:
    if table.groups is None:
        return []
    both = len(set(table.groups[outside]) & set(table.groups[~outside]))
    return [f"{both:,} groups stand on both sides of the shift."] if both else []
