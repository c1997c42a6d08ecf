"""Columns of any library that speaks the Arrow C data interface, read without that library.

The structures are those of the Arrow specification ("The Arrow C data interface"); buffers are
looked at in place, never copied.
"""

import ctypes as c
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput

DICTIONARY_ORDERED = 1
INTEGER_FORMATS = {
    "c": "i1",
    "C": "u1",
    "s": "i2",
    "S": "u2",
    "i": "i4",
    "I": "u4",
    "l": "i8",
    "L": "u8",
}
TEXT_FORMATS = {"u", "U", "vu"}
FLOAT_FORMATS = {"e": "f2", "f": "f4", "g": "f8"}
KNOWN_FORMATS = {*INTEGER_FORMATS, *FLOAT_FORMATS, *TEXT_FORMATS, "b", "n"}
INLINE_BYTES = 12  # a string view of at most this many bytes holds its own text
ROWS_PER_BLOCK = 1 << 13  # texts gathered at once, so that their addresses take little memory


class BrokenStream(BadInput):
    """A library offered a column through Arrow and failed to hand it over."""


class _Schema(c.Structure):
    pass


class _Array(c.Structure):
    pass


class _Stream(c.Structure):
    pass


_Schema._fields_ = [
    ("format", c.c_char_p),
    ("name", c.c_char_p),
    ("metadata", c.c_void_p),
    ("flags", c.c_int64),
    ("n_children", c.c_int64),
    ("children", c.c_void_p),
    ("dictionary", c.POINTER(_Schema)),
    ("release", c.CFUNCTYPE(None, c.POINTER(_Schema))),
    ("private_data", c.c_void_p),
]
_Array._fields_ = [
    ("length", c.c_int64),
    ("null_count", c.c_int64),
    ("offset", c.c_int64),
    ("n_buffers", c.c_int64),
    ("n_children", c.c_int64),
    ("buffers", c.POINTER(c.c_void_p)),
    ("children", c.c_void_p),
    ("dictionary", c.POINTER(_Array)),
    ("release", c.CFUNCTYPE(None, c.POINTER(_Array))),
    ("private_data", c.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", c.CFUNCTYPE(c.c_int, c.POINTER(_Stream), c.POINTER(_Schema))),
    ("get_next", c.CFUNCTYPE(c.c_int, c.POINTER(_Stream), c.POINTER(_Array))),
    ("get_last_error", c.CFUNCTYPE(c.c_char_p, c.POINTER(_Stream))),
    ("release", c.CFUNCTYPE(None, c.POINTER(_Stream))),
    ("private_data", c.c_void_p),
]


class _OwnedStructure:
    """A structure that belongs to us, and is released when nobody needs it."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def __del__(self) -> None:
        if self.structure.release:
            self.structure.release(c.byref(self.structure))


class ArrowChunk:
    """One contiguous run of a column: its format, and views of its buffers."""

    def __init__(self, array: _Array, form: str, owner: object) -> None:
        self.array, self.form, self.owner = array, form, owner
        self.length: int = array.length
        self.dictionary: ArrowChunk | None = None

    def __len__(self) -> int:
        return self.length

    def _view_buffer(self, index: int, dtype: str, count: int) -> NDArray[Any]:
        """Return a view of a buffer, which keeps the memory behind it alive."""
        address = self.array.buffers[index]
        if not address or not count:
            return np.empty(0, dtype)
        memory = (c.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
        memory.owner = self.owner  # type: ignore[attr-defined] # lives as long
        return np.frombuffer(memoryview(memory), dtype)

    def _view_fixed_width(self, dtype: str, start: int, stop: int) -> NDArray[Any]:
        offset = self.array.offset
        return self._view_buffer(1, dtype, offset + stop)[offset + start :]

    def missing(self, start: int, stop: int) -> NDArray[np.bool_] | None:
        """Return which of the cells are null, or None where none can be."""
        if self.form == "n":
            return np.ones(stop - start, bool)
        if self.array.null_count == 0 or not self.array.buffers[0]:
            return None
        first, last = self.array.offset + start, self.array.offset + stop
        bits = self._view_buffer(0, "u1", (last + 7) // 8)[first // 8 :]
        valid = np.unpackbits(bits, bitorder="little")[first % 8 :][: stop - start]
        return valid == 0

    def numbers(self, start: int, stop: int) -> NDArray[Any]:
        """Return integers (of dictionaries: the codes), floats or truth values, in place."""
        if self.form == "n":
            return np.zeros(stop - start, np.int8)
        if self.form == "b":
            first, last = self.array.offset + start, self.array.offset + stop
            bits = self._view_buffer(1, "u1", (last + 7) // 8)[first // 8 :]
            return np.unpackbits(bits, bitorder="little")[first % 8 :][: stop - start].view(bool)
        return self._view_fixed_width((INTEGER_FORMATS | FLOAT_FORMATS)[self.form], start, stop)

    def lengths(self, start: int, stop: int) -> NDArray[Any]:
        """Return how many bytes each text has."""
        if self.form == "vu":
            return self._view_fixed_width("V16", start, stop).view("i4").reshape(-1, 4)[:, 0]
        return np.diff(self._view_offsets(start, stop))

    def _view_offsets(self, start: int, stop: int) -> NDArray[Any]:
        offset = self.array.offset
        kind = "i8" if self.form == "U" else "i4"
        return self._view_buffer(1, kind, offset + stop + 1)[offset + start :]

    def texts(self, start: int, stop: int, width: int) -> NDArray[np.bytes_]:
        """Return UTF-8 texts as fixed-width bytes; a longer text is cut after `width` bytes."""
        if self.form == "vu":
            return self._gather_view_texts(start, stop, width)
        ends = self._view_offsets(start, stop)
        data = self._view_buffer(2, "u1", int(ends[-1]))
        return _gather_texts(data, ends[:-1], np.diff(ends), width)

    def _gather_view_texts(self, start: int, stop: int, width: int) -> NDArray[np.bytes_]:
        views = self._view_fixed_width("V16", start, stop)
        words = views.view("i4").reshape(-1, 4)
        lengths = words[:, 0]
        inline = views.view("u1").reshape(-1, 16)[:, 4:]
        rows = np.arange(len(views)) * INLINE_BYTES
        found = _gather_texts(
            np.ascontiguousarray(inline).ravel(), rows, lengths, min(width, INLINE_BYTES)
        )
        found = found.astype(f"S{width}")
        long = lengths > INLINE_BYTES
        for buffer in np.unique(words[long, 2]):
            here = long & (words[:, 2] == buffer)
            sizes = self._view_buffer(self.array.n_buffers - 1, "i8", self.array.n_buffers - 3)
            data = self._view_buffer(2 + int(buffer), "u1", int(sizes[buffer]))
            found[here] = _gather_texts(data, words[here, 3], lengths[here], width)
        return found


def _gather_texts(
    data: NDArray[np.uint8], starts: NDArray[Any], lengths: NDArray[Any], width: int
) -> NDArray[np.bytes_]:
    letters = np.zeros((len(starts), width), np.uint8)
    within = np.arange(width)
    for row in range(0, len(starts) if len(data) else 0, ROWS_PER_BLOCK):
        rows = slice(row, row + ROWS_PER_BLOCK)
        places = starts[rows, None].astype(np.int64) + within
        found = data[np.minimum(places, len(data) - 1)]
        letters[rows] = np.where(within < lengths[rows, None], found, 0)
    return letters.view(f"S{width}").ravel()


def _get_pointer(capsule: object, name: bytes) -> int:
    get = c.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    address: int = get(capsule, name)
    return address


def _move_structure(source: Any) -> _OwnedStructure:
    """Take a structure over from its capsule, as the specification asks."""
    owned = _OwnedStructure(type(source).from_buffer_copy(source))
    source.release = type(source.release)()
    return owned


def _read_arrays(column: Any) -> tuple[_OwnedStructure, list[_OwnedStructure]]:
    if not hasattr(column, "__arrow_c_stream__"):
        schema, array = column.__arrow_c_array__()
        return (
            _move_structure(_Schema.from_address(_get_pointer(schema, b"arrow_schema"))),
            [_move_structure(_Array.from_address(_get_pointer(array, b"arrow_array")))],
        )
    capsule = column.__arrow_c_stream__()
    stream = _move_structure(_Stream.from_address(_get_pointer(capsule, b"arrow_array_stream")))
    return _read_stream_schema(stream.structure), list(_read_stream_arrays(stream.structure))


def _read_stream_schema(stream: _Stream) -> _OwnedStructure:
    schema = _OwnedStructure(_Schema())
    _check_stream(stream, stream.get_schema(c.byref(stream), c.byref(schema.structure)))
    return schema


def _read_stream_arrays(stream: _Stream) -> Iterator[_OwnedStructure]:
    while True:
        array = _OwnedStructure(_Array())
        _check_stream(stream, stream.get_next(c.byref(stream), c.byref(array.structure)))
        if not array.structure.release:
            return
        yield array


def _check_stream(stream: _Stream, code: int) -> None:
    if code:
        reason = stream.get_last_error(c.byref(stream)) or b"unknown error"
        raise BrokenStream(f"The column could not be read through Arrow: {reason.decode()}.")


class ArrowColumn:
    """The pieces of a column, and whether it carries an order of its own."""

    def __init__(self, column: Any, name: str = "labels") -> None:
        owned_schema, arrays = _read_arrays(column)
        schema = owned_schema.structure
        form: str = schema.format.decode()
        self.ordered = bool(schema.dictionary) and bool(schema.flags & DICTIONARY_ORDERED)
        self.chunks = [ArrowChunk(array.structure, form, array) for array in arrays]
        values = schema.dictionary.contents.format.decode() if schema.dictionary else form
        if values not in KNOWN_FORMATS:
            raise BadInput(f"{name} holds no labels but Arrow's type {values!r}: cast it to text.")
        for piece in self.chunks if schema.dictionary else ():
            piece.dictionary = ArrowChunk(piece.array.dictionary.contents, values, piece.owner)


def read_python_values(piece: ArrowChunk, start: int = 0, stop: int | None = None) -> list[Any]:
    """Return rows as Python values; a dictionary's codes as the values that they stand for."""
    stop = len(piece) if stop is None else stop
    gone = piece.missing(start, stop)
    values: list[Any]
    if piece.dictionary is not None:
        known = read_python_values(piece.dictionary)
        codes = piece.numbers(start, stop)
        codes = codes if gone is None else np.where(gone, 0, codes)
        values = [known[code] for code in codes.tolist()] if known else [None] * len(codes)
    elif piece.form in TEXT_FORMATS:
        values = _read_long_texts(piece, start, stop)
    else:
        values = piece.numbers(start, stop).tolist()
    return values if gone is None else [None if g else v for v, g in zip(values, gone, strict=True)]


def _read_long_texts(piece: ArrowChunk, start: int, stop: int) -> list[str]:
    """Return texts of any length, a block at a time, so that one long text costs little."""
    found = []
    for first in range(start, stop, ROWS_PER_BLOCK):
        last = min(first + ROWS_PER_BLOCK, stop)
        gone = piece.missing(first, last)
        lengths = piece.lengths(first, last) * (1 if gone is None else ~gone)
        width = max(1, int(lengths.max()))
        raw = piece.texts(first, last, width).view("u1").reshape(-1, width)
        found += [row[:n].tobytes().decode() for row, n in zip(raw, lengths, strict=True)]
    return found
