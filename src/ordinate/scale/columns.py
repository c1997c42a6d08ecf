"""The kinds of columns: each gives its labels as small integers, a chunk of rows at a time.

The codes are whatever small integers a column already has, and `levels` says at which position of
the scale each of them stands; so a column is counted by its own codes, in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.scale.labels import convert_to_python
from ordinate.scale.levels import Scale

CHUNK = 1 << 16  # items; small enough for the cache, large enough to forget the loop around it
OFF_SCALE_CODE = -1  # in `levels`: not on the scale
LONGEST_INTEGER = 20  # digits; more have no type in NumPy
WIDEST_SPAN = 4096  # the largest span of integer labels that is counted without a search

Integers = NDArray[Any]
Mask = NDArray[np.bool_]


class CodeOutOfRange(Exception):
    """A number is too far off to have a code of its own: widen the columns, and count again."""


class LabelCodes(ABC):
    """A column of `len(self)` items as codes from 0 to `len(levels) - 1`."""

    levels: NDArray[np.int64]  # position on the scale; len(scale) means missing, OFF off the scale

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def chunk(self, start: int, stop: int) -> Integers:
        """Return the codes of these rows."""

    @abstractmethod
    def label(self, row: int) -> Any:
        """Return what the column holds in a row."""

    def widen(self) -> None:  # noqa: B027 - few columns need it, and it costs time
        """Make room for whatever is off the scale."""


class CategoryCodes(LabelCodes):
    """Codes into a list of categories; what is none of them (-1, or their number) is missing."""

    def __init__(self, scale: Scale, codes: Integers, categories: Sequence[Any]) -> None:
        self.codes, self.categories = (
            codes,
            [convert_to_python(category) for category in categories],
        )
        self.levels = encode_categories(scale, self.categories)
        last = int(view_as_unsigned(codes).max()) if len(codes) else -1
        self.complete = last < len(self.categories)
        if self.complete:
            self.levels = self.levels[:-1]

    def __len__(self) -> int:
        return len(self.codes)

    def chunk(self, start: int, stop: int) -> Integers:
        """Return the codes as they are; a missing one as the number after the last category."""
        codes = view_as_unsigned(self.codes[start:stop])
        return codes if self.complete else np.minimum(codes, len(self.categories))

    def label(self, row: int) -> Any:
        """Return the category of a row."""
        return self.categories[self.codes[row]]


class IntegerCodes(LabelCodes):
    """Integers that are the labels themselves, counted as they are."""

    def __init__(self, scale: Scale, values: Integers) -> None:
        self.values = values
        numbers = find_integer_labels(scale)
        self.lowest, self.highest = min(0, *numbers), max(numbers)
        self.levels = np.full(self.highest - self.lowest + 1, OFF_SCALE_CODE)
        for number, code in numbers.items():
            self.levels[number - self.lowest] = code
        self.wide = False
        # Read without a sign, negative numbers are too large to be labels.
        self.uses_raw_values = self.lowest == 0 and self.highest <= np.iinfo(values.dtype).max // 2

    def __len__(self) -> int:
        return len(self.values)

    def chunk(self, start: int, stop: int) -> Integers:
        """Return the numbers above the lowest label."""
        values = self.values[start:stop]
        if self.uses_raw_values:
            codes = view_as_unsigned(values)
            inside = codes <= self.highest if codes.size and codes.max() > self.highest else None
        else:
            inside = (values >= self.lowest) & (values <= self.highest)
            codes = np.where(inside, values, 0).astype(np.int64) - self.lowest
        if inside is None or inside.all():
            return codes
        if not self.wide:
            raise CodeOutOfRange
        return np.where(inside, codes, len(self.levels) - 1)

    def widen(self) -> None:
        """Give one code to all numbers that are too low or too high."""
        if not self.wide:
            self.levels, self.wide = np.append(self.levels, OFF_SCALE_CODE), True

    def label(self, row: int) -> Any:
        """Return the number in a row."""
        return convert_to_python(self.values[row])


class LookupValues(NamedTuple):
    """Values to look up, which of them are missing, and how long texts really are."""

    values: NDArray[Any]
    missing: Mask | None = None
    lengths: Integers | None = None


class SearchedCodes(LabelCodes):
    """Texts or numbers, looked up in the sorted labels; other spellings go by the lookup."""

    def __init__(
        self,
        scale: Scale,
        length: int,
        look: Callable[[int, int], LookupValues],
        show: Callable[[int], Any],
        keys: dict[Any, int],
    ) -> None:
        self.scale, self.length, self.look, self.show = scale, length, look, show
        self.keys = np.array(sorted(keys))
        self.codes = np.array([keys[key] for key in sorted(keys)], np.int64)
        self.levels = np.append(np.arange(len(scale) + 1), OFF_SCALE_CODE)

    def __len__(self) -> int:
        return self.length

    def chunk(self, start: int, stop: int) -> Integers:
        """Return the positions on the scale."""
        values, missing, lengths = self.look(start, stop)
        nearest = np.minimum(np.searchsorted(self.keys, values), len(self.keys) - 1)
        codes = self.codes[nearest]
        strange = self.keys[nearest] != values
        cut = np.zeros(len(values), bool)
        if lengths is not None:  # too long, or ended by zero bytes, which are not compared
            cut = lengths > np.char.str_len(values)
        if missing is not None:
            codes[missing] = len(self.scale)
            strange, cut = strange & ~missing, cut & ~missing
        for row in np.flatnonzero(cut):
            codes[row] = self._code(start + int(row))
        strange &= ~cut
        if strange.any():
            self._resolve_spellings(codes, values, np.flatnonzero(strange), start)
        return codes

    def _resolve_spellings(
        self, codes: Integers, values: NDArray[Any], rows: NDArray[np.intp], start: int
    ) -> None:
        """Find other spellings, one look for each distinct value."""
        _, first, which = np.unique(values[rows], return_index=True, return_inverse=True)
        codes[rows] = np.array([self._code(start + int(row)) for row in rows[first]])[which]

    def _code(self, row: int) -> int:
        return encode_label(self.scale, self.show(row))

    def label(self, row: int) -> Any:
        """Return the value in a row."""
        return self.show(row)


class ObjectCodes(LabelCodes):
    """Python objects, each looked up: a list, or an array of objects."""

    def __init__(self, scale: Scale, items: Any) -> None:
        self.scale, self.items = scale, items
        self.levels = np.append(np.arange(len(scale) + 1), OFF_SCALE_CODE)

    def __len__(self) -> int:
        return len(self.items)

    def chunk(self, start: int, stop: int) -> Integers:
        """Return the positions on the scale."""
        part = self.items[start:stop]
        part = part.tolist() if isinstance(part, np.ndarray) else part
        try:
            return np.fromiter(map(self.scale.lookup.__getitem__, part), np.int64, len(part))
        except (KeyError, TypeError):  # something is off the scale: look one by one
            return np.array([encode_label(self.scale, label) for label in part])

    def label(self, row: int) -> Any:
        """Return the object in a row."""
        return convert_to_python(self.items[row])


def encode_label(scale: Scale, label: Any) -> int:
    """Return a label's position; after the last level comes missing, and then off the scale."""
    try:
        return scale.lookup[label]
    except (KeyError, TypeError):
        return len(scale) + 1


def encode_categories(scale: Scale, categories: Sequence[Any]) -> NDArray[np.int64]:
    """Return the positions of categories, and that of a missing one last."""
    found = [encode_label(scale, category) for category in categories]
    return np.array(
        [*(OFF_SCALE_CODE if c > len(scale) else c for c in found), len(scale)], np.int64
    )


def find_integer_labels(scale: Scale) -> dict[int, int]:
    """Return the labels that are integers, with their positions."""
    keys = scale.lookup.items()
    return {int(key): code for key, code in keys if _is_integer(key)}


def _is_integer(key: Hashable) -> bool:
    if isinstance(key, bool) or not isinstance(key, (int, str)):
        return False
    text = str(key).removeprefix("-")
    return len(text) <= LONGEST_INTEGER and text.isdecimal() and text.isascii()


def view_as_unsigned(values: Integers) -> Integers:
    """Return integers in place, read without a sign."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values.view(f"u{values.dtype.itemsize}")
