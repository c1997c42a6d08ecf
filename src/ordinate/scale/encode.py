"""Columns of labels as small integers, a cache-sized chunk at a time.

A column comes as its library keeps it (NumPy, pandas, Polars, Arrow, a list) and is never copied
whole. `Codes` are whatever small integers the column already has; `levels` says at which position
of the scale each of them stands, so that counting can run on the column's own codes.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, OffScale
from ordinate.scale.arrow import INTEGERS, TEXTS, ArrowColumn, Piece, values_of
from ordinate.scale.labels import Lookup, is_missing, plain
from ordinate.scale.levels import Scale

CHUNK = 1 << 16  # items; small enough for the cache, large enough to forget the loop around it
OFF = -1  # in `levels`: not on the scale
LONGEST_NUMBER = 24  # bytes of a number as text: more than any float64 needs
WIDEST = 4096  # the largest span of integer labels that is counted without a search

Integers = NDArray[Any]


class Codes(Protocol):
    """A column of `len(self)` items as codes from 0 to `len(levels) - 1`."""

    levels: NDArray[np.int64]  # position on the scale; len(scale) means missing, OFF off the scale

    def __len__(self) -> int: ...

    def chunk(self, start: int, stop: int) -> Integers:
        """Return the codes of these rows, as non-negative integers."""

    def label(self, row: int) -> Any:
        """Return what the column holds in a row."""


def encode(scale: Scale, column: Any, name: str = "labels") -> Codes:
    """Return the codes of a column of labels by the protocol that the column speaks.

    >>> encode(Scale(["low", "high"]), ["high", None, "low"]).chunk(0, 3)
    array([1, 2, 0])
    """
    if (categories := _categorical(column)) is not None:
        return _Categories(scale, *categories)
    if isinstance(getattr(column, "dtype", None), np.dtype):
        return _from_array(scale, np.asarray(column), name)
    if (arrow := _arrow(column)) is not None:
        return _from_arrow(scale, arrow, name)
    if hasattr(column, "__array__") and not isinstance(column, Sequence):
        return _from_array(scale, np.asarray(column), name)
    return _Objects(scale, _sequence(column, name), name)


def carried_labels(column: Any) -> list[Any] | None:
    """Return the labels of an ordered categorical or enum, lowest to highest, if it is one."""
    dtype = getattr(column, "dtype", None)
    if type(dtype).__name__ == "Enum":  # Polars
        return list(getattr(dtype, "categories", ()))
    holder = getattr(column, "cat", column)
    if getattr(holder, "ordered", None) is True and hasattr(holder, "categories"):
        return list(holder.categories)
    if isinstance(dtype, np.dtype) or (arrow := _arrow(column)) is None or not arrow.ordered:
        return None
    return values_of(arrow.pieces[0].dictionary) if arrow.pieces[0].dictionary else None


def distinct_labels(column: Any, name: str = "labels") -> list[Any]:
    """Return the labels that occur in a column, without the missing ones."""
    groups = factorise(column, name)
    return [label for label in groups.values if not is_missing(label)]


def factorise(column: Any, name: str = "groups") -> "Groups":
    """Return the distinct values of a column, in order of appearance, and a code for each item."""
    items = _sequence(column, name)
    seen: dict[Any, int] = _Numbered()
    codes = np.empty(len(items), np.int64)
    for start in range(0, len(items), CHUNK):
        part = _plain_list(items[start : start + CHUNK])
        try:
            found = np.fromiter(map(seen.__getitem__, part), np.int64, len(part))
        except TypeError:
            raise BadInput(f"{name} holds values that are not hashable, such as lists.") from None
        codes[start : start + len(part)] = found
    return Groups(list(seen), codes)


class Groups:
    """The values of a grouping column, and which of them each item has."""

    def __init__(self, values: list[Any], codes: NDArray[np.int64]) -> None:
        self.values, self.codes = values, codes


class _Numbered(dict[Any, int]):
    def __missing__(self, value: Any) -> int:
        if is_missing(value) and value is not None:
            return self[None]
        self[value] = number = len(self)
        return number


# --- the kinds of columns ------------------------------------------------------------------------


class _Categories:
    """Codes into a list of categories; -1 is missing."""

    def __init__(self, scale: Scale, codes: Integers, categories: Sequence[Any]) -> None:
        self.codes, self.categories = codes, list(categories)
        self.levels = _levels(scale, self.categories)
        self.complete = not len(codes) or bool(codes.min() >= 0)
        if self.complete:
            self.levels = self.levels[:-1]

    def __len__(self) -> int:
        return len(self.codes)

    def chunk(self, start: int, stop: int) -> Integers:
        codes = _unsigned(self.codes[start:stop])  # -1 becomes the largest number
        return codes if self.complete else np.minimum(codes, len(self.categories))

    def label(self, row: int) -> Any:
        return self.categories[self.codes[row]]


class _Integers:
    """Integers that are the labels themselves, counted as they are."""

    def __init__(self, scale: Scale, values: Integers, name: str) -> None:
        self.values, self.name, self.scale = values, name, scale
        numbers = _integer_labels(scale)
        self.lowest = min(0, *numbers)
        self.levels = np.full(max(numbers) - self.lowest + 1, OFF)
        for number, code in numbers.items():
            self.levels[number - self.lowest] = code

    def __len__(self) -> int:
        return len(self.values)

    def chunk(self, start: int, stop: int) -> Integers:
        values = self.values[start:stop]
        if self.lowest:
            values = np.subtract(values, self.lowest, dtype=np.int64)
        codes = _unsigned(values)
        if codes.size and codes.max() >= len(self.levels):
            bad = start + int(np.argmax(codes >= len(self.levels)))
            raise off_scale(self.scale, self.label(bad), row_of(bad, self.name))
        return codes

    def label(self, row: int) -> Any:
        return plain(self.values[row])


class _Searched:
    """Texts or numbers that are looked up in the sorted labels; the rest goes by the lookup."""

    def __init__(
        self,
        scale: Scale,
        length: int,
        values: Callable[[int, int], tuple[NDArray[Any], NDArray[np.bool_] | None]],
        keys: dict[Any, int],
        name: str,
        show: Callable[[int], Any] | None = None,
    ) -> None:
        self.scale, self.length, self.values, self.name = scale, length, values, name
        self.show = show or (lambda row: plain(values(row, row + 1)[0][0]))
        self.keys = np.array(sorted(keys))
        self.codes = np.array([keys[key] for key in sorted(keys)], np.int64)
        self.levels = np.arange(len(scale) + 1)

    def __len__(self) -> int:
        return self.length

    def chunk(self, start: int, stop: int) -> Integers:
        values, missing = self.values(start, stop)
        nearest = np.minimum(np.searchsorted(self.keys, values), len(self.keys) - 1)
        codes = self.codes[nearest]
        strange = self.keys[nearest] != values
        if missing is not None:
            codes[missing] = len(self.scale)
            strange &= ~missing
        if strange.any():
            self._resolve(codes, values, strange, start)
        return codes

    def _resolve(
        self, codes: Integers, values: NDArray[Any], strange: NDArray[np.bool_], start: int
    ) -> None:
        rows = np.flatnonzero(strange)
        _, first, which = np.unique(values[rows], return_index=True, return_inverse=True)
        found = np.empty(len(first), np.int64)
        for index in np.argsort(first):  # so that the error names the first row
            row = start + int(rows[first[index]])
            label = self.label(row)
            try:
                found[index] = self.scale.lookup[label]
            except KeyError:
                raise off_scale(self.scale, label, row_of(row, self.name)) from None
        codes[rows] = found[which]

    def label(self, row: int) -> Any:
        return self.show(row)


class _Objects:
    """Python objects, each looked up once: a list, or an array of objects."""

    def __init__(self, scale: Scale, items: Any, name: str) -> None:
        self.scale, self.items, self.name = scale, items, name
        self.levels = np.arange(len(scale) + 1)

    def __len__(self) -> int:
        return len(self.items)

    def chunk(self, start: int, stop: int) -> Integers:
        part = _plain_list(self.items[start:stop])
        try:
            return np.fromiter(map(self.scale.lookup.__getitem__, part), np.int64, len(part))
        except (KeyError, TypeError):
            row = start + _first_strange(self.scale.lookup, part)
            raise off_scale(self.scale, self.items[row], row_of(row, self.name)) from None

    def label(self, row: int) -> Any:
        return plain(self.items[row])


class _Pieces:
    """An Arrow column: the pieces one after another, each as it lies in memory."""

    def __init__(self, parts: list[Codes], levels: NDArray[np.int64]) -> None:
        self.parts, self.levels = parts, levels
        self.ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def chunk(self, start: int, stop: int) -> Integers:
        found = []
        for part, end in zip(self.parts, self.ends, strict=True):
            first = int(end) - len(part)
            if first < stop and start < end:
                found.append(part.chunk(max(start, first) - first, min(stop, int(end)) - first))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def label(self, row: int) -> Any:
        index = int(np.searchsorted(self.ends, row, side="right"))
        return self.parts[index].label(row - int(self.ends[index]) + len(self.parts[index]))


# --- how to choose between them ------------------------------------------------------------------


def _categorical(column: Any) -> tuple[Integers, Sequence[Any]] | None:
    """Return codes and categories of what pandas calls categorical."""
    holder = column
    if type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype":
        holder = getattr(column, "cat", column)
    codes, categories = getattr(holder, "codes", None), getattr(holder, "categories", None)
    return None if codes is None or categories is None else (np.asarray(codes), categories)


def _arrow(column: Any) -> ArrowColumn | None:
    if not (hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__")):
        return None
    try:
        return ArrowColumn(column)
    except ImportError:  # pandas without pyarrow offers the protocol and cannot keep it
        return None


def _from_array(scale: Scale, values: NDArray[Any], name: str) -> Codes:
    if values.ndim != 1:
        raise BadInput(f"{name} must be one column of labels, not an array of {values.ndim} axes.")
    if values.dtype.kind in "iub" and _integer_labels(scale):
        return _Integers(scale, values.view(np.uint8) if values.dtype.kind == "b" else values, name)
    if values.dtype.kind in "iuf":
        return _numbers(scale, len(values), lambda a, b: (values[a:b], None), name)
    if values.dtype.kind == "U":
        return _searched_texts(scale, values, name)
    return _Objects(scale, values, name)


def _searched_texts(scale: Scale, values: NDArray[Any], name: str) -> Codes:
    keys = {key: code for key, code in scale.lookup.items() if isinstance(key, str)}
    return _Searched(scale, len(values), lambda a, b: (values[a:b], None), keys, name)


def _numbers(
    scale: Scale,
    length: int,
    values: Callable[[int, int], tuple[NDArray[Any], NDArray[np.bool_] | None]],
    name: str,
) -> Codes:
    keys = {float(key): code for key, code in scale.lookup.items() if _is_number(key)}
    return _Searched(scale, length, values, keys or {np.inf: OFF}, name)


def _from_arrow(scale: Scale, column: ArrowColumn, name: str) -> Codes:
    parts: list[Codes] = [_from_piece(scale, piece, name) for piece in column.pieces]
    if not parts:
        return _Objects(scale, [], name)
    if any(not np.array_equal(part.levels, parts[0].levels) for part in parts):
        parts = [_Translated(scale, part) for part in parts]  # each piece has its own dictionary
    return parts[0] if len(parts) == 1 else _Pieces(parts, parts[0].levels)


def _from_piece(scale: Scale, piece: Piece, name: str) -> Codes:
    length = len(piece)
    if piece.dictionary is not None:
        return _Dictionary(scale, piece, values_of(piece.dictionary))
    if piece.form in TEXTS:
        keys = {k.encode(): code for k, code in scale.lookup.items() if isinstance(k, str)}
        # Wide enough to tell every label from a longer text, and '3.0' from '3.5'.
        width = max(LONGEST_NUMBER if scale.lookup.numeric else 0, *map(len, keys)) + 1

        def texts(start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
            return piece.texts(start, stop, width), piece.missing(start, stop)

        return _Searched(
            scale, length, texts, keys, name, lambda row: values_of(piece, row, row + 1)[0]
        )
    if piece.form in INTEGERS and not piece.array.null_count and _integer_labels(scale):
        return _Integers(scale, piece.numbers(0, length), name)

    def numbers(start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        missing = piece.missing(start, stop)
        if piece.form == "n":
            return np.zeros(stop - start), missing
        return piece.numbers(start, stop), missing

    return _numbers(scale, length, numbers, name)


class _Dictionary(_Categories):
    """An Arrow dictionary: codes in place, nulls from the validity bits."""

    def __init__(self, scale: Scale, piece: Piece, categories: list[Any]) -> None:
        self.codes, self.categories = piece.numbers(0, len(piece)), categories
        self.levels = _levels(scale, categories)
        self.piece = piece

    def chunk(self, start: int, stop: int) -> Integers:
        codes = _unsigned(self.codes[start:stop])
        missing = self.piece.missing(start, stop)
        return codes if missing is None else np.where(missing, len(self.categories), codes)


class _Translated:
    """Another column's codes as positions of the scale; one code more stands for off the scale."""

    def __init__(self, scale: Scale, source: Codes) -> None:
        self.source = source
        self.levels = np.append(np.arange(len(scale) + 1), OFF)
        self.positions = np.where(source.levels == OFF, len(scale) + 1, source.levels)

    def __len__(self) -> int:
        return len(self.source)

    def chunk(self, start: int, stop: int) -> Integers:
        return self.positions[self.source.chunk(start, stop)]

    def label(self, row: int) -> Any:
        return self.source.label(row)


# --- small parts ---------------------------------------------------------------------------------


def off_scale(scale: Scale, label: Any, where: str) -> OffScale:
    """Return the error for a label that the scale does not have."""
    return OffScale(
        f"Label {plain(label)!r} ({where}) is not on the scale {scale}. "
        "Map it first (--map), or declare another scale (--scale)."
    )


def row_of(row: int, name: str) -> str:
    """Name a row, counted from 1."""
    return f"row {row + 1} of {name}"


def _unsigned(values: Integers) -> Integers:
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values.view(f"u{values.dtype.itemsize}")


def _levels(scale: Scale, categories: Sequence[Any]) -> NDArray[np.int64]:
    found = []
    for category in categories:
        try:
            found.append(scale.lookup[plain(category)])
        except KeyError:
            found.append(OFF)
    return np.array([*found, len(scale)], np.int64)


def _integer_labels(scale: Scale) -> dict[int, int]:
    """Return the scale's integers with their positions, if they are near enough to count by."""
    numbers = {int(key): code for key, code in scale.lookup.items() if _is_integer(key)}
    if not numbers or max(numbers) - min(0, *numbers) >= WIDEST:
        return {}
    return numbers


def _is_integer(key: Hashable) -> bool:
    return isinstance(key, (int, str)) and str(key).lstrip("-").isdecimal()


def _is_number(key: Hashable) -> bool:
    try:
        float(key)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _sequence(column: Any, name: str) -> Any:
    """Return something with a length and slices."""
    if hasattr(column, "to_pylist"):  # Arrow
        return column.to_pylist()
    if isinstance(column, np.ndarray) or (
        isinstance(column, Sequence) and not isinstance(column, (str, bytes))
    ):
        return column
    if hasattr(column, "__array__"):
        return np.asarray(column)
    if isinstance(column, (str, bytes)) or not hasattr(column, "__iter__"):
        raise BadInput(f"{name} must be a column of labels: a list, an array or a series.")
    return list(column)


def _plain_list(part: Any) -> Any:
    return part.tolist() if isinstance(part, np.ndarray) else part


def _first_strange(lookup: Lookup, part: Sequence[Any]) -> int:
    """Return where the first label stands that the scale does not have."""
    for index, label in enumerate(part):
        try:
            lookup[label]
        except (KeyError, TypeError):
            return index
    return 0
