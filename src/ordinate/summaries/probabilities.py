"""Predicted probabilities: from arrays and frames to columns in the order of the scale."""

import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadOption,
    BadProbabilities,
    UnequalLengths,
    shorten,
    word_advice,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.scale.labels import find_word, is_missing, normalize_label, parse_number

Floats = NDArray[np.float64]
ColumnLabels = Iterable[Any] | str | None  # of the columns of an array, in their order
IN_ORDER_OF_SCALE = "scale"  # in place of labels: those of the scale
NO_COLUMN = -1  # of a level that has none
STRICT_TOLERANCE = 1e-6  # how far from 1 the sum of a row may be
ROUNDED = 0.005  # what two decimals leave out of a probability, added up with renormalize=True
MOST_ROUNDED = 10 * ROUNDED  # of a row: on a fine scale, most probabilities are 0
ROWS_PER_BLOCK = 1 << 14  # which are looked at together


def build_probability_array(
    scale: Scale,
    probabilities: Any,
    columns: ColumnLabels = None,
    *,
    gold: Any = None,
    renormalize: bool = False,
    there: NDArray[np.bool] | None = None,
) -> Floats:
    """Return checked probabilities [N, K], one column for each level, in the order of the scale.

    `columns` are the labels of the columns of an array, such as `columns=model.classes_`, or
    "scale"; see `arrange_columns`. With `there`, only the rows that are there are checked and
    returned.

    >>> scale = Scale.of("low,mid,high")
    >>> build_probability_array(scale, [[0.2, 0.3, 0.5]], columns=["high", "low", "mid"]).tolist()
    [[0.3, 0.5, 0.2]]
    """
    values = arrange_columns(scale, probabilities, columns, gold)
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
    scale: Scale,
    probabilities: Any,
    columns: ColumnLabels = None,
    gold: Any = None,
    *,
    option: str = "columns",
) -> NDArray[Any]:
    """Return the numbers [N, K], not yet checked, in the order of the scale.

    Columns are known by their names: those of a frame, or `columns`; a level without one has the
    probability 0. `columns="scale"` says that they stand in the order of the scale. Without names
    they are taken if sorting the labels, as scikit-learn does, gives that order, too; labels are
    sorted by the type that they have in `gold`. Errors advise to name them by `option`.
    """
    if hasattr(probabilities, "collect_schema") and hasattr(probabilities, "collect"):  # lazy
        probabilities = probabilities.collect()
    names = _list_column_labels(scale, probabilities, columns)
    values = _convert_to_array(probabilities)
    if values is None or values.ndim != 2:
        given = "rows of other lengths" if values is None else f"{values.ndim} axes"
        raise BadProbabilities(
            f"Probabilities must be a table with a row for each item and a column for each of the "
            f"{len(scale)} levels, not {given}."
        )
    if values.shape[1] != len(scale if names is None else names):
        told = names is not None and not isinstance(columns, str)
        named = f", of which {len(names or ())} are named," if told else ""
        raise BadProbabilities(
            f"{values.shape[1]} columns of probabilities{named} for the {len(scale)} levels "
            f"{scale}: each level needs one, or say which have one with columns=model.classes_."
        )
    values = _convert_to_floats(values)
    if names is None:
        _refuse_unclear_order(scale, gold, option)
        return values
    order = match_columns_to_levels(scale, names)
    return values if order == list(range(len(scale))) else place_columns(values, order)


def list_columns(columns: ColumnLabels) -> ColumnLabels:
    """Return the labels of columns, which an iterator gives only once."""
    return columns if columns is None or isinstance(columns, str) else tuple(columns)


def _list_column_labels(
    scale: Scale, probabilities: Any, columns: ColumnLabels
) -> list[Any] | None:
    """Return which label each column is for, None where nothing says so."""
    if isinstance(columns, str):
        if columns != IN_ORDER_OF_SCALE:
            raise BadOption(
                f"columns={shorten(columns)} is neither a list of labels, such as "
                f'model.classes_, nor "{IN_ORDER_OF_SCALE}".'
            )
        return list(scale.labels)
    return _read_column_names(probabilities) if columns is None else list(columns)


def place_columns(values: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """Return a column for each level; one that has none has zeros."""
    placed = values[:, order]
    placed[:, np.array(order) == NO_COLUMN] = 0.0
    return placed


def _refuse_unclear_order(scale: Scale, gold: Any, option: str) -> None:
    """Refuse columns without names where sorting the labels gives another order than the scale."""
    in_order = sort_labels(scale, gold)
    if in_order != list(scale.labels):
        raise BadProbabilities(
            f"The columns of probabilities have no names, and the order of the scale, {scale}, is "
            f"not that in which scikit-learn sorts the labels: "
            f"{shorten(', '.join(map(str, in_order)))[1:-1]}. Add {option}=model.classes_, or "
            f'{option}="{IN_ORDER_OF_SCALE}" if they stand in the order of the scale.'
        )


def sort_labels(scale: Scale, gold: Any = None) -> list[Hashable]:
    """Return the labels as `np.unique` sorts them: numbers by size, strings by their letters.

    Labels of a scale of numbers are strings where those of `gold` are.

    >>> sort_labels(Scale.of("low,mid,high")), sort_labels(Scale.of("9..11"))
    (['high', 'low', 'mid'], [9, 10, 11])
    >>> sort_labels(Scale.of("9..11"), ["9", "10"])
    [10, 11, 9]
    """
    by_name = sorted(scale.labels, key=normalize_label)
    numbers = {label: parse_number(normalize_label(label)) for label in scale.labels}
    if None in numbers.values():
        return by_name
    by_size = sorted(scale.labels, key=numbers.__getitem__)  # type: ignore[arg-type] # none is None
    if gold is None or by_name == by_size:
        return by_size if all(isinstance(label, Real) for label in scale.labels) else by_name
    seen = factorize_column(gold, "gold").values
    return by_name if any(isinstance(label, str) for label in seen) else by_size


def warn_of_levels_without_column(scale: Scale, probabilities: Any, columns: ColumnLabels) -> None:
    """Warn of levels whose probabilities count as 0, because no column is named like them."""
    names = _list_column_labels(scale, probabilities, columns)
    order = [] if names is None else match_columns_to_levels(scale, names)
    lacking = [name for name, k in zip(scale.names, order, strict=False) if k == NO_COLUMN]
    if lacking:
        shown = ", ".join(lacking)
        warnings.warn(
            f"No column is named like {shown}: the probability counts as 0.",
            stacklevel=_count_stack_levels(),
        )


def _count_stack_levels() -> int:
    """Return how far the first line outside Ordinate is from the caller of this function."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, level = frame.f_back, level + 1
    return level


def find_most_probable_labels(scale: Scale, values: NDArray[Any]) -> NDArray[Any]:
    """Return the label of the most probable level of each row, the lowest of equal ones.

    The columns are in the order of the scale. A row with empty cells has no label.
    """
    empty = np.isnan(values).any(axis=1)
    return take_labels(scale, np.where(empty, len(scale), values.argmax(axis=1)))


def take_labels(scale: Scale, positions: NDArray[Any]) -> NDArray[Any]:
    """Return the labels at positions on the scale, and None beyond it."""
    labels = np.empty(len(scale) + 1, object)
    labels[:-1] = scale.labels
    return labels[positions]


def match_columns_to_levels(scale: Scale, names: Sequence[Any]) -> list[int]:
    """Return which of the named columns belongs to each level, `NO_COLUMN` where none does.

    A name is a level's label, alone or after the prefix that all names share. Where there is one
    for each level, the label may stand among other words.

    >>> match_columns_to_levels(Scale.of("cefr"), ["p_B1", "p_A1", "p_A2", "p_C2", "p_C1", "p_B2"])
    [1, 2, 0, 5, 4, 3]
    >>> match_columns_to_levels(Scale.of("low,mid,high"), ["high", "low"])
    [1, -1, 0]
    >>> match_columns_to_levels(Scale.of("1..3"), ["3 stars", "1 star", "2 stars"])
    [1, 2, 0]
    """
    given, levels = (
        [normalize_label(name) for name in names],
        [normalize_label(x) for x in scale.labels],
    )
    if len(given) == len(set(given)) > 0:
        for prefix in _list_prefixes(given):
            places = {name[len(prefix) :]: k for k, name in enumerate(given)}
            if places.keys() <= set(levels):
                return [places.get(level, NO_COLUMN) for level in levels]
        words = [find_word(name, levels) for name in given]
        if len(words) == len(levels) and set(words) == set(levels):
            return [words.index(level) for level in levels]
    raise BadProbabilities(
        f"The columns {shorten(', '.join(given))} do not say which levels of {scale} they are for. "
        "Name them like the levels, alone, after one prefix (p_A1, p_A2, …) or with other words (5 "
        "stars), or say the order with columns=[…]."
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
    tolerance = find_tolerance(len(columns), renormalize=renormalize)
    fits = np.abs(total - 1.0).max(initial=0.0) <= tolerance and columns.min(initial=0.0) >= 0.0
    if not fits:  # also where there is a nan
        bad = ~((np.abs(total - 1.0) <= tolerance) & (columns >= 0.0).all(axis=0))
        first = int(np.argmax(bad))
        row = rows + first if isinstance(rows, int) else int(rows[first])
        raise make_row_error(columns[:, first], place(row))
    return columns / total if renormalize else columns


def count_agreement(
    rows: Floats, gold: NDArray[Any], predicted: NDArray[Any], size: int, weights: Any = None
) -> NDArray[np.int64]:
    """Return of how many items all is known, and of how many the most probable level is predicted.

    An item of weight 0 does not exist.

    >>> rows = np.array([[0.9, 0.1], [0.9, 0.1], [np.nan, 1.0]])
    >>> count_agreement(rows, np.array([0, 1, 1]), np.array([0, 1, 1]), 2).tolist()
    [2, 1]
    """
    there = (np.maximum(gold, predicted) < size) & ~np.isnan(rows).any(axis=1)
    if weights is not None:
        there &= weights > 0
    same = predicted[there] == rows[there].argmax(axis=1)
    return np.array([there.sum(), same.sum()])


def find_tolerance(levels: int, *, renormalize: bool) -> float:
    """Return how far from 1 the sum of a row of so many probabilities may be."""
    return STRICT_TOLERANCE + (min(levels * ROUNDED, MOST_ROUNDED) if renormalize else 0.0)


def make_row_error(row: Floats, place: str) -> BadProbabilities:
    """Return the error for a row that is none of probabilities."""
    shown = "[" + ", ".join(f"{value:.6g}" for value in row) + "]"
    where = f"The probabilities of {place}, {shorten(shown)},"
    if not np.isfinite(row).all():
        return BadProbabilities(f"{where} are not all finite numbers.")
    if (row < 0).any():
        return BadProbabilities(f"{where} are not all at least 0.")
    advice = " Is there a column for each level?"
    if abs(row.sum() - 1.0) <= find_tolerance(len(row), renormalize=True):
        advice = word_advice(
            " Pass {renormalize} where two decimals were kept.",
            " Divide each row by its sum first.",
            renormalize=True,
        )
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
    numbered = type(names).__name__ == "RangeIndex"  # pandas had no names, either
    if names is None or numbered or isinstance(probabilities, np.ndarray):
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
