"""Columns of labels as codes, by the protocol that each column speaks.

A column comes as its library keeps it: NumPy's arrays and lists are read here, a chunk at a time,
and those of pandas, Polars and Arrow by these libraries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadScale
from ordinate.scale.columns import (
    CHUNK,
    OFF_SCALE_CODE,
    WIDEST_SPAN,
    CategoryCodes,
    CodeOutOfRange,
    IntegerCodes,
    LabelCodes,
    LookupValues,
    Mask,
    ObjectCodes,
    SearchedCodes,
    find_integer_labels,
)
from ordinate.scale.labels import convert_to_python, is_missing, parse_number
from ordinate.scale.levels import Scale
from ordinate.scale.series import holds_words, open_series, read_categories, read_declared_order

__all__ = [
    "CHUNK",
    "OFF_SCALE_CODE",
    "CodeOutOfRange",
    "Groups",
    "LabelCodes",
    "encode_labels",
    "factorize_column",
]


MOST_BITS = 14_000  # of an integer that Python writes as text


class Groups(NamedTuple):
    """The values of a grouping column, and which of them each item has."""

    values: list[Any]
    codes: NDArray[np.int64]


def encode_labels(scale: Scale, column: Any, name: str = "labels") -> LabelCodes:
    """Return the codes of a column of labels.

    >>> encode_labels(Scale(["low", "high"]), ["high", None, "low"]).chunk(0, 3)
    array([1, 2, 0])
    """
    if (categories := _read_categorical(column)) is not None:
        return CategoryCodes(scale, *categories)
    if (series := open_series(column, name)) is not None:
        return _encode_series(scale, series)
    items = _read_items(column, name)
    return (
        _encode_array(scale, items) if isinstance(items, np.ndarray) else ObjectCodes(scale, items)
    )


def read_ordered_categories(column: Any) -> list[Any] | None:
    """Return the labels of an ordered categorical or enum, lowest to highest, if it is one."""
    dtype = getattr(column, "dtype", None)
    if type(dtype).__name__ == "Enum":  # Polars
        return list(getattr(dtype, "categories", ()))
    holder = _find_category_holder(column)
    if holder is not None:
        return list(holder.categories) if holder.ordered else None
    series = open_series(column, "labels")
    orders = [] if series is None else read_declared_order(series)
    if any(order != orders[0] for order in orders):
        raise BadScale("The chunks of the column are ordered differently. Declare the scale.")
    return orders[0] if orders else None


def factorize_column(column: Any, name: str = "groups") -> Groups:
    """Return the distinct values of a column, in order of appearance, and a code for each item."""
    numbered = _NumberedValues()
    codes = []
    for part in _iterate_values(column, name):
        try:
            codes.append(np.fromiter(map(numbered.__getitem__, part), np.int64, len(part)))
        except TypeError:
            raise BadInput(f"{name} holds values that are not hashable, such as lists.") from None
    if any(type(value) is int and value.bit_length() > MOST_BITS for value in numbered):
        raise BadInput(f"{name} holds integers of thousands of digits. Give them as text.")
    return Groups(list(numbered), np.concatenate(codes) if codes else np.empty(0, np.int64))


def rename_labels(column: Any, rename: Callable[[Any], Any]) -> Any:
    """Return a column in which each distinct label was renamed.

    >>> rename_labels(["b1", "B2"], str.upper).tolist()
    ['B1', 'B2']
    """
    found = factorize_column(column, "labels")
    values = [x if x is None else rename(x) for x in found.values]
    return np.array([*values, None], object)[found.codes]  # None: an array of objects, always


class _NumberedValues(dict[Any, int]):
    def __missing__(self, value: Any) -> int:
        if value is not None and is_missing(value):
            return self[None]
        self[value] = number = len(self)
        return number


# --- which kind of column it is ------------------------------------------------------------------


def _find_category_holder(column: Any) -> Any:
    """Return what keeps the codes of a pandas categorical, in place."""
    if type(getattr(column, "dtype", None)).__name__ != "CategoricalDtype":
        return None
    return getattr(column, "array", column)


def _read_categorical(column: Any) -> tuple[NDArray[Any], Sequence[Any]] | None:
    holder = _find_category_holder(column)
    return None if holder is None else (np.asarray(holder.codes), holder.categories)


def _read_items(column: Any, name: str) -> Any:
    """Return an array of one axis, or something with a length and slices."""
    if hasattr(column, "__array__"):
        values = np.asarray(column)
        if isinstance(column, np.ma.MaskedArray) and column.mask.any():
            values = values.astype(object)
            values[np.ma.getmaskarray(column)] = None
        if values.ndim != 1:
            raise BadInput(f"{name} must be one column of labels, not {values.ndim} axes.")
        return values
    if isinstance(column, (list, tuple)):
        return column
    unordered = isinstance(column, (str, bytes, bytearray, Mapping, AbstractSet))
    if unordered or not hasattr(column, "__iter__"):
        raise BadInput(f"{name} must be a column of labels: a list, an array or a series.")
    return list(column)


def _iterate_values(column: Any, name: str) -> Iterator[Sequence[Any]]:
    """Return a column as lists of Python values, chunk by chunk."""
    series = open_series(column, name)
    items = _read_items(column, name) if series is None else series
    for start in range(0, len(items), CHUNK):
        part = items[start : start + CHUNK]
        if series is not None:
            yield part.to_list()
        else:
            yield part.tolist() if isinstance(part, np.ndarray) else part


# --- NumPy ---------------------------------------------------------------------------------------


def _encode_array(scale: Scale, values: NDArray[Any]) -> LabelCodes:
    kind = values.dtype.kind
    if kind == "b":
        return CategoryCodes(scale, values.view(np.uint8), [False, True])
    if kind in "iu":
        return _encode_integers(scale, values, None)
    if kind == "f":
        return _encode_floats(scale, len(values), lambda a, b: LookupValues(values[a:b]), values)
    if kind == "U":
        keys = {key: code for key, code in scale.lookup.items() if isinstance(key, str)}

        def show(row: int) -> Any:
            return convert_to_python(values[row])

        return SearchedCodes(scale, len(values), lambda a, b: LookupValues(values[a:b]), show, keys)
    return ObjectCodes(scale, values)


def _encode_integers(scale: Scale, values: NDArray[Any], missing: Mask | None) -> LabelCodes:
    """Count by the numbers themselves if they are near each other and none is missing."""
    numbers = find_integer_labels(scale)
    if missing is None and numbers and max(numbers) - min(0, *numbers) < WIDEST_SPAN:
        return IntegerCodes(scale, values)
    limits = np.iinfo(values.dtype)
    keys = {k: code for k, code in numbers.items() if limits.min <= k <= limits.max}
    return SearchedCodes(
        scale,
        len(values),
        lambda a, b: LookupValues(values[a:b], None if missing is None else missing[a:b]),
        lambda row: convert_to_python(values[row]),
        keys or {limits.max: len(scale) + 1},
    )


def _encode_floats(scale: Scale, length: int, look: Any, values: Any) -> LabelCodes:
    numbers = {
        number: code
        for key, code in scale.lookup.items()
        if isinstance(key, str) and (number := parse_number(key)) is not None
    }
    return SearchedCodes(
        scale,
        length,
        look,
        lambda row: convert_to_python(values[row]),
        numbers or {np.inf: len(scale) + 1},
    )


# --- pandas, Polars and Arrow --------------------------------------------------------------------


def _encode_series(scale: Scale, series: Any) -> LabelCodes:
    if holds_words(series):
        return CategoryCodes(scale, *read_categories(series))
    if series.dtype.is_integer() and "128" not in str(series.dtype):  # NumPy has 64 bits
        lacks = series.null_count() > 0
        missing = series.is_null().to_numpy() if lacks else None
        values = (series.fill_null(0) if lacks else series).to_numpy()
        return _encode_integers(scale, values, missing)
    if series.dtype.is_float():
        return _encode_array(scale, series.to_numpy())
    return ObjectCodes(scale, series.to_list())
