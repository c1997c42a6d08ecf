"""Predicted probabilities: from arrays and frames to columns in the order of the scale."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadProbabilities, UnequalLengths, shorten
from ordinate.scale import Scale
from ordinate.scale.labels import is_missing, normalize_label

Floats = NDArray[np.float64]
STRICT_TOLERANCE, LOOSE_TOLERANCE = (
    1e-6,
    1e-2,
)  # how far from 1 the sum of a row may be, and with renormalize=True
ROWS_PER_BLOCK = 1 << 14  # which are looked at together


def build_probability_array(
    scale: Scale,
    probabilities: Any,
    columns: Iterable[Any] | None = None,
    *,
    renormalize: bool = False,
    there: NDArray[np.bool] | None = None,
) -> Floats:
    """Return checked probabilities [N, K], one column for each level, in the order of the scale.

    The columns of an array are in the order of the scale unless `columns` names them, such as
    `columns=model.classes_`. Those of a frame are found by their names. With `there`, only the rows
    that are there are checked and returned.

    >>> scale = Scale.of("low,mid,high")
    >>> build_probability_array(scale, [[0.2, 0.3, 0.5]], columns=["high", "low", "mid"]).tolist()
    [[0.3, 0.5, 0.2]]
    """
    values = arrange_columns(scale, probabilities, columns)
    numbers = np.arange(len(values))
    if there is not None:
        check_same_rows(there, values)
        values, numbers = values[there], numbers[there]
    checked = np.empty(values.shape)
    for start in range(0, len(values), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        part = np.ascontiguousarray(values[block].T, dtype=float)
        checked[block] = check_probability_columns(part, numbers[block], renormalize=renormalize).T
    return checked


def arrange_columns(
    scale: Scale, probabilities: Any, columns: Iterable[Any] | None = None
) -> NDArray[Any]:
    """Return the numbers [N, K], not yet checked, in the order of the scale."""
    if hasattr(probabilities, "collect_schema") and hasattr(probabilities, "collect"):  # lazy
        probabilities = probabilities.collect()
    names = _read_column_names(probabilities) if columns is None else list(columns)
    values = _convert_to_array(probabilities)
    if values is None or values.ndim != 2:
        given = "rows of other lengths" if values is None else f"{values.ndim} axes"
        raise BadProbabilities(
            f"Probabilities must be a table with a row for each item and a column for each of the "
            f"{len(scale)} levels, not {given}."
        )
    if values.shape[1] != len(scale):
        raise BadProbabilities(
            f"{values.shape[1]} columns of probabilities for the {len(scale)} levels {scale}: each "
            "level needs one."
        )
    values = _convert_to_floats(values)
    if names is None:
        return values
    order = match_columns_to_levels(scale, names)
    return values if order == list(range(len(scale))) else values[:, order]


def warn_of_order(scale: Scale, probabilities: Any) -> None:
    """Warn if columns have no names and sorting the labels gives another order than the scale."""
    labels: list[Any] = list(scale.labels)
    if not all(isinstance(label, Real) for label in labels):
        labels = [normalize_label(label) for label in labels]
    if labels == sorted(labels) or _read_column_names(probabilities) is not None:
        return
    warnings.warn(
        f"Columns without names were taken in the order of the scale, {scale}; scikit-learn sorts "
        "labels: pass columns=model.classes_ if they are in its order, or columns=scale.labels to "
        "say that they are not.",
        stacklevel=_count_stack_levels(),
    )


def _count_stack_levels() -> int:
    """Return how far the first line outside Ordinate is from the caller of this function."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, level = frame.f_back, level + 1
    return level


def find_most_probable_labels(
    scale: Scale, probabilities: Any, columns: Iterable[Any] | None = None
) -> NDArray[Any]:
    """Return the label of the most probable level of each row, the lowest of equal ones.

    A row with empty cells has none.
    """
    labels = np.empty(len(scale), object)
    labels[:] = scale.labels
    values = arrange_columns(scale, probabilities, columns)
    predicted = labels[values.argmax(axis=1)]
    predicted[np.isnan(values).any(axis=1)] = None
    return predicted


def match_columns_to_levels(scale: Scale, names: Sequence[Any]) -> list[int]:
    """Return which of the named columns belongs to each level.

    A name is a level's label, alone or after the prefix that all names share.

    >>> match_columns_to_levels(Scale.of("cefr"), ["p_B1", "p_A1", "p_A2", "p_C2", "p_C1", "p_B2"])
    [1, 2, 0, 5, 4, 3]
    """
    given, levels = (
        [normalize_label(name) for name in names],
        [normalize_label(x) for x in scale.labels],
    )
    if len(given) == len(set(given)) == len(levels):
        for prefix in _list_prefixes(given):
            bare = [name[len(prefix) :] for name in given]
            if sorted(bare) == sorted(levels):
                return [bare.index(label) for label in levels]
    raise BadProbabilities(
        f"The columns {shorten(', '.join(given))} do not say which levels of {scale} they are for. "
        "Name them like the levels, alone or after one prefix (p_A1, p_A2, …), or say the order "
        "with columns=[…]."
    )


def format_row_name(number: int) -> str:
    """Return how errors name a row, of which the first has number 0."""
    return f"row {number + 1}"


def check_probability_columns(
    columns: Floats,
    rows: "int | NDArray[Any]" = 0,
    *,
    renormalize: bool = False,
    place: Callable[[int], str] = format_row_name,
) -> Floats:
    """Return probabilities [K, n] of items that sum to 1, or say which row is none.

    `rows` is the number of the first row, or those of all.
    """
    with np.errstate(invalid="ignore"):  # opposite infinities
        total = columns.sum(axis=0)
    tolerance = find_tolerance(renormalize=renormalize)
    fits = np.abs(total - 1.0).max(initial=0.0) <= tolerance and columns.min(initial=0.0) >= 0.0
    if not fits:  # also where there is a nan
        bad = ~((np.abs(total - 1.0) <= tolerance) & (columns >= 0.0).all(axis=0))
        first = int(np.argmax(bad))
        row = rows + first if isinstance(rows, int) else int(rows[first])
        raise make_row_error(columns[:, first], place(row), renormalize=renormalize)
    return columns / total if renormalize else columns


def find_tolerance(*, renormalize: bool) -> float:
    """Return how far from 1 the sum of a row may be."""
    return LOOSE_TOLERANCE if renormalize else STRICT_TOLERANCE


def make_row_error(row: Floats, place: str, *, renormalize: bool) -> BadProbabilities:
    """Return the error for a row that is none of probabilities."""
    shown = "[" + ", ".join(f"{value:.6g}" for value in row) + "]"
    where = f"The probabilities of {place}, {shorten(shown)},"
    if not np.isfinite(row).all():
        return BadProbabilities(f"{where} are not all finite numbers.")
    if (row < 0).any():
        return BadProbabilities(f"{where} are not all at least 0.")
    advice = "" if renormalize else " Pass renormalize=True (--renormalize) to accept 0.99 to 1.01."
    return BadProbabilities(f"{where} sum to {row.sum():.9g}, not to 1.{advice}")


def check_same_rows(gold: Sequence[Any] | NDArray[Any], rows: NDArray[Any]) -> None:
    """Refuse gold labels and probabilities of different items."""
    if len(gold) != len(rows):
        raise UnequalLengths(
            f"{len(gold)} gold labels and {len(rows)} rows of probabilities: each item needs both."
        )


def _convert_to_array(probabilities: Any) -> NDArray[Any] | None:
    """Return the cells as an array, whatever they are; None for rows of different lengths."""
    if hasattr(probabilities, "detach"):  # a tensor, which may be on another device
        probabilities = probabilities.detach().cpu()
    if isinstance(probabilities, np.ma.MaskedArray):
        probabilities = np.ma.filled(probabilities.astype(float), np.nan)
    elif hasattr(probabilities, "to_numpy"):  # pandas and Polars
        probabilities = probabilities.to_numpy()
    elif hasattr(probabilities, "column_names"):  # Arrow
        columns = [probabilities.column(k) for k in range(probabilities.num_columns)]
        probabilities = [column.to_numpy(zero_copy_only=False) for column in columns]
        probabilities = np.stack(probabilities, axis=1) if columns else ()
    elif isinstance(probabilities, dict):
        columns = [np.asarray(column) for column in probabilities.values()]
        if len({column.shape for column in columns}) > 1:
            return None
        probabilities = np.stack(columns, axis=-1) if columns else ()
    try:
        values = np.asarray(probabilities)
        return np.asarray(probabilities, object) if values.dtype.kind == "U" else values
    except ValueError:
        return None


def _convert_to_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Return floating numbers, in which an empty cell is nan."""
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind in "biu":
        return values.astype(float)
    rows = [_convert_row(cells, index) for index, cells in enumerate(values.tolist())]
    return np.array(rows, dtype=float).reshape(values.shape)


def _convert_row(cells: list[Any], index: int) -> list[Any]:
    numbers = [np.nan if is_missing(cell) else cell for cell in cells]
    if not all(isinstance(cell, (Real, Decimal)) for cell in numbers):
        shown = shorten(", ".join(map(str, cells)))
        raise BadProbabilities(
            f"The probabilities of {format_row_name(index)}, {shown}, are not all numbers."
        )
    return numbers


def _read_column_names(probabilities: Any) -> list[Any] | None:
    """Return the names of the columns of a frame; an array has none."""
    if isinstance(probabilities, dict):
        return list(probabilities)
    names = getattr(probabilities, "column_names", getattr(probabilities, "columns", None))
    if names is None or isinstance(probabilities, np.ndarray):
        return None
    try:
        return list(names)
    except TypeError:
        raise BadInput("The names of the columns cannot be read.") from None


def _list_prefixes(names: list[str]) -> list[str]:
    """Return what all names may start with, shortest first: nothing, … up to what they share."""
    first = min(names, key=len)
    shared = 0
    while shared < len(first) and all(a[shared] == b[shared] for a, b in pairwise(names)):
        shared += 1
    return [first[:length] for length in range(shared + 1)]
