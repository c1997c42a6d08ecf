"""The table of a regression model: numbers of features, a target, and groups of rows."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, NoItems, UnequalLengths, shorten
from ordinate.readers.columns import FileOptions
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_columns import read_sources
from ordinate.render.estimates import format_count
from ordinate.summaries.tabulation import RowPolicy
from ordinate.tuning.experiment.frame_files import write_frame
from ordinate.tuning.experiment.numeric_matrix import describe_single_file, list_further_cells
from ordinate.tuning.models.target_scaling import is_constant
from ordinate.tuning.regress.numeric_table import (
    NumericTable,
    is_id_name,
    read_numeric_table,
)

Floats = NDArray[np.float64]

FEWEST_ROWS = 10  # rows: with fewer, training, validation and test are nothing to speak of
FEW_ROWS = 50  # rows: with fewer, a test says little
SHOWN_NAMES = 5  # names that a note lists
MOST_NAMES = 100  # names of what is a feature and what is not
INDEX_NAME = re.compile(r"|unnamed: 0|column0+|index|row|row_?(id|number)|nr", re.IGNORECASE)
SAME_TOLERANCE = 1e-12  # 1 - |correlation| of a column that is the target in another unit
DERIVED_TOLERANCE = (
    1e-5  # 1 - |rank correlation| of a column that may be made of the target: its log, rounded
)
RANK_CHECK_ROWS = 50  # rows: fewer are often in the order of a feature that merely correlates


@dataclass(frozen=True)
class Table:
    """Features [N, d] and a target [N], all finite; rows of one group [N] belong together.

    `fingerprint` depends on the values and names, not on the file's form or place.
    """

    features: Floats = field(repr=False)
    names: tuple[str, ...]
    target: Floats = field(repr=False)
    target_name: str
    groups: NDArray[Any] | None = field(default=None, repr=False)
    path: str | None = None
    fingerprint: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.target)

    def column(self, name: str) -> Floats:
        """Return a feature, or the target, by its name."""
        if name == self.target_name:
            return self.target
        if name not in self.names:
            known = ", ".join([*self.names, self.target_name])
            raise BadInput(f"There is no column {shorten(name)} among {known}.")
        return self.features[:, self.names.index(name)]

    def describe_columns(self) -> list[str]:
        """Return what is predicted from what, and what is to be known of the other columns."""
        features = format_count(len(self.names), "feature")
        names = _format_names(self.names, MOST_NAMES)
        return [f"{self.target_name!r} is predicted from {features}: {names}.", *self.notes]

    def fingerprint_without_targets(self, but: NDArray[np.intp]) -> str:
        """Return the fingerprint of the table with the targets of these rows alone."""
        return _compute_fingerprint(
            self.features, self.target[but], self.names, self.target_name, self.groups
        )


def load_table(
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    group_column: str | None = None,
    missing: RowPolicy = "error",
    **files: Any,
) -> Table:
    """Return a table as it is, or that of a file or a data frame (pandas, Polars, Arrow).

    `files` say how a text file is written, as delimiter=";" and decimal="," do, or which sheet of a
    spreadsheet it is.

    >>> frame = {"x": np.arange(12.0), "y": np.arange(12.0) ** 2}
    >>> load_table(frame, "y").names
    ('x',)
    """
    if isinstance(data, Table):
        return data
    if target is None:
        raise BadInput("Which column is to be predicted? Name it: target.")
    named: dict[str, Any] = {"features": features, "group": group_column, "missing": missing}
    if isinstance(data, str | Path):
        return read_table(str(data), target, **named, **files)
    with write_frame(data) as path:
        return replace(read_table(str(path), target, **named), path=None)


def read_table(
    path: str,
    target: str,
    *,
    features: Sequence[str] | None = None,
    group: str | None = None,
    missing: RowPolicy = "error",
    **files: Any,
) -> Table:
    """Read a table from CSV or Parquet; features are all columns of numbers, unless named.

    Columns that are called as ids are, or number the rows, are none. Rows with a cell that is
    empty or no finite number are refused, or dropped where `missing` says so, and counted.

    >>> from ordinate.examples import locate_example
    >>> table = read_table(str(locate_example("densities")), "density", group="substance")
    >>> table.names, len(table)
    (('carbons', 'temperature', 'pressure'), 600)
    """
    _check_names(target, features, group)
    chosen = None if features is None else [*features, target]
    with open_sources(FileOptions(**files)) as reader:
        source = describe_single_file(reader, path)
        found = read_numeric_table(source, chosen, label=group, missing=missing)
        if target not in found.names:  # no numbers, or not there at all, which this says
            read_numeric_table(source, [target], label=group, missing=missing)
    numbered = () if features is not None else _name_row_numbers(found)
    left_out = {
        "they name the rows": (*found.ids, *numbered),
        "they hold no numbers": found.texts,
        "fewer than half of their cells are numbers": found.few,
    }
    notes = reader.notes + [
        f"Left out, for {why}: {_format_names(some, MOST_NAMES)}."
        for why, some in left_out.items()
        if some
    ]
    if found.dropped:
        notes.append(f"{found.dropped} Rows are numbered as they are left.")
    kept = [k for k, name in enumerate(found.names) if name not in {target, *numbered}]
    return make_table(
        found.matrix[:, kept],
        found.matrix[:, found.names.index(target)],
        names=[found.names[k] for k in kept],
        target_name=target,
        groups=found.labels,
        path=found.path,
        notes=notes,
    )


def _name_row_numbers(table: NumericTable) -> tuple[str, ...]:
    """Return the columns that number the rows from 0 or 1, by what such columns are called."""
    return tuple(
        name
        for name, column in zip(table.names, table.matrix.T, strict=True)
        if INDEX_NAME.fullmatch(name.strip())
        and any(np.array_equal(column, table.rows - first) for first in (0, 1))
    )


@dataclass(frozen=True)
class NewRows:
    """Rows to predict: their features [N, d], where they stand in their file, and what is kept.

    `kept` are columns that go with the predictions as they are: ids, and targets.
    """

    features: Floats
    rows: NDArray[np.intp]
    kept: dict[str, NDArray[Any]]
    notes: tuple[str, ...] = ()


def read_new_rows(
    data: Any,
    names: Sequence[str],
    target: str,
    *,
    id_column: str | None = None,
    missing: RowPolicy = "error",
    **files: Any,
) -> NewRows:
    """Return rows to predict, of a file or a data frame, with features in the order of the names.

    Ids are recognised by the name of their column, unless it is named; a target is kept where the
    data have one.
    """
    if not isinstance(data, str | Path):
        with write_frame(data) as frame:
            return read_new_rows(frame, names, target, id_column=id_column, missing=missing)
    with open_sources(FileOptions(**files)) as reader:
        source = describe_single_file(reader, str(data))
        found = read_numeric_table(source, list(names), missing=missing)
        ids = [id_column] if id_column else [x for x in source.columns if is_id_name(x)][:1]
        targets = [target] if target in source.columns and target not in ids else []
        further = read_sources([source], targets, ids)
    kept = further.labels | {name: np.asarray(further[name]) for name in targets}
    notes = (*reader.notes, *([found.dropped] if found.dropped else []))
    rows = {name: column[found.rows - 1] for name, column in kept.items()}
    return NewRows(found.matrix, found.rows, rows, notes)


def make_table(
    features: Any,
    target: Any,
    *,
    names: Sequence[str] | None = None,
    target_name: str = "target",
    groups: Any = None,
    path: str | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of arrays, once it is something that a model can learn from.

    >>> table = make_table([[1.0], [2.0]] * 10, [5.0, 7.0] * 10, names=["x"])
    >>> table.column("x")[:2].tolist(), table.notes[0][:18]
    ([1.0, 2.0], 'There are 20 rows:')
    """
    x, y = np.array(features, np.float64), np.array(target, np.float64)
    if x.ndim != 2 or y.ndim != 1:
        raise BadInput(f"Features are [rows, columns], targets [rows]: not {x.shape}, {y.shape}.")
    called = tuple(names) if names is not None else tuple(f"x{k}" for k in range(x.shape[1]))
    given = None if groups is None else np.array([*(str(g) for g in groups), None], object)[:-1]
    if len({len(x), len(y), len(y) if given is None else len(given)}) > 1 or (
        len(called) != x.shape[1]
    ):
        raise UnequalLengths(
            f"There are {len(y):,} targets, {len(x):,} rows of {x.shape[1]:,} features, "
            f"{len(called):,} names."
        )
    where = path or "The table"
    _check_arrays(x, y, called, target_name, where)
    own = (*notes, *_collect_notes(x, y, called, target_name))
    mark = _compute_fingerprint(x, y, called, target_name, given)
    return Table(x, called, y, target_name, given, path, mark, own)


# --- checks --------------------------------------------------------------------------------------


def _check_names(target: str, features: Sequence[str] | None, group: str | None) -> None:
    if target == group:
        raise BadInput(f"The column {shorten(target)} cannot be both the target and the group.")
    if features is None:
        return
    if not features:
        raise BadInput("No feature is named: name at least one, or none of them to take all.")
    for name in features:
        if name in {target, group}:
            role = "target" if name == target else "group"
            raise BadInput(f"The column {shorten(name)} is the {role}: it cannot be a feature too.")
    if twice := [name for k, name in enumerate(features) if name in features[:k]]:
        raise BadInput(f"The feature {shorten(twice[0])} is named twice.")


def _check_arrays(x: Floats, y: Floats, names: Sequence[str], target: str, where: str) -> None:
    if not x.shape[1]:
        raise BadInput(
            f"{where} has no column of numbers but the target {shorten(target)}: there is nothing "
            "to learn from."
        )
    if len(y) < FEWEST_ROWS:
        raise NoItems(
            f"{where} has {len(y)} rows. Training, validation and test need {FEWEST_ROWS} at least."
        )
    for name, column in zip((*names, target), (*x.T, y), strict=True):
        odd = np.flatnonzero(~np.isfinite(column))
        if len(odd):
            further = list_further_cells(~np.isfinite(np.column_stack([x, y])), (*names, target))
            raise BadValues(
                f"{where}: the cell in row {odd[0] + 1} of column {shorten(name)} is "
                f"{column[odd[0]]}, which is no finite number.{further} Nothing is filled in: mend "
                "the cells, or leave out the rows or the columns."
            )
    if (y == y[0]).all():
        raise BadValues(
            f"{where}: the target {shorten(target)} is {y[0]:.6g} in every row. There is nothing "
            "to learn: is it the right column?"
        )
    for name, column in zip(names, x.T, strict=True):
        with np.errstate(over="ignore"):
            squares = len(column) * np.square(np.ptp(column))
        if not np.isfinite(squares):
            raise BadValues(
                f"{where}: the column {shorten(name)} is too large to be normalised: rescale it."
            )
    if is_constant(x).all():
        raise BadValues(
            f"{where}: no feature varies ({_format_names(names)}). There is nothing to learn from."
        )


def _collect_notes(x: Floats, y: Floats, names: Sequence[str], target: str) -> list[str]:
    notes = []
    if len(y) < FEW_ROWS:
        notes.append(f"There are {len(y)} rows: too few for a test that says much.")
    still = is_constant(x)
    if constant := [name for name, one in zip(names, still, strict=True) if one]:
        notes.append(
            f"Constant in every row, so nothing is learned of it: {_format_names(constant)}."
        )
    if copies := [n for n, column in zip(names, x.T, strict=True) if _is_linear_copy(column, y)]:
        notes.append(
            f"The target {target!r} in another unit, it seems: {_format_names(copies)}. Is it "
            "known before the target is?"
        )
    varied = [(n, column) for n, column, one in zip(names, x.T, still, strict=True) if not one]
    if made := [name for name in _name_derived_columns(varied, y) if name not in copies]:
        notes.append(
            f"So close to the target {target!r} in its order that it may be made of it: "
            f"{_format_names(made)}. Is it known before the target is?"
        )
    return notes


def _is_linear_copy(column: Floats, y: Floats, tolerance: float = SAME_TOLERANCE) -> bool:
    """Tell whether a column is a straight line of the target, but for little."""
    with np.errstate(all="ignore"):
        a, b = column - column.mean(), y - y.mean()
        return bool(1 - abs(a @ b) / np.sqrt((a @ a) * (b @ b)) < tolerance)


def _name_derived_columns(columns: Sequence[tuple[str, Floats]], y: Floats) -> list[str]:
    """Name the columns that give the order of the target; one alone may well be its law."""
    if len(columns) < 2 or len(y) < RANK_CHECK_ROWS:
        return []
    order = _compute_ranks(y)
    return [
        name
        for name, column in columns
        if _is_linear_copy(_compute_ranks(column), order, DERIVED_TOLERANCE)
    ]


def _compute_ranks(column: Floats) -> Floats:
    """Return the places of values in their order; equal values share the mean of theirs."""
    _, own, counts = np.unique(column, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[own.reshape(-1)]


def _format_names(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    more = len(names) - most
    return ", ".join(map(shorten, names[:most])) + (f" and {more} more" if more > 0 else "")


def _compute_fingerprint(
    x: Floats, y: Floats, names: Sequence[str], target: str, groups: NDArray[Any] | None
) -> str:
    told = [list(names), target, None if groups is None else groups.tolist()]
    digest = hashlib.sha256(json.dumps(told, ensure_ascii=False).encode())
    for part in (x, y):
        digest.update(np.ascontiguousarray(part, "<f8").tobytes())
    return digest.hexdigest()


# --- normalisation -------------------------------------------------------------------------------
