"""Columns of labels of every library and format, and where their labels stand on a scale."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from each_case import each_case

from ordinate.scale import Scale
from ordinate.scale.encoding import CHUNK, encode_labels

WORDS = Scale(["low", "mid", "high"])
# Longer than the twelve bytes that a string view holds itself, or of several bytes a letter.
LONG = Scale(
    ["niedrig", "eher niedriger als sonst", "très élevé", "最高", "über dem Höchsten von allen"]
)
GRADES = Scale.of("1..6")


class OnlyStream:
    """A column that has nothing but the Arrow protocol, and makes its memory when asked."""

    def __init__(self, make):
        self.make = make

    def __arrow_c_stream__(self, requested_schema=None):
        return self.make().__arrow_c_stream__(requested_schema)


class OnlyArrowArray:
    """The same for one array rather than a stream of them."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class OnlyArray:
    """A column that has nothing but NumPy's protocol."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def unused(scale):
    """Return the scale as new: it remembers the spellings that it has met."""
    return Scale(scale.labels)


def positions(scale, column):
    """Read a column as counting does; len(scale) is missing, OFF off the scale."""
    return positions_on(unused(scale), column)


def positions_on(scale, column):
    codes = encode_labels(scale, column)
    starts = range(0, len(codes), CHUNK)
    parts = [codes.levels[codes.chunk(a, min(a + CHUNK, len(codes)))] for a in starts]
    return np.concatenate(parts).tolist() if parts else []


def expected(scale, labels):
    return [len(scale) if label is None else scale.labels.index(label) for label in labels]


# --- the kinds of columns ------------------------------------------------------------------------


def many(labels, size):
    drawn = np.random.default_rng(size).integers(0, len(labels), size)
    return [labels[k] for k in drawn]


def filled(labels, missing=""):
    return [missing if label is None else label for label in labels]


def distinct(labels):
    return list(dict.fromkeys(label for label in labels if label is not None))


def spread(values, step):
    """Return the values as every `step`-th of an array that holds other things between."""
    wide = np.repeat(values, abs(step))
    wide[1 :: abs(step)] = values[0]
    return wide[::step] if step > 0 else np.flip(wide)[-step - 1 :: -step][::-1]


def split(labels, make):
    """Return three chunks, of which the middle one is empty."""
    half = len(labels) // 2
    return pa.chunked_array([make(labels[:half]), make([]), make(labels[half:])])


def sliced(labels, make, before):
    """Return a slice that begins in the middle of the buffers, and of a byte of their bits."""
    first = next((label for label in labels if label is not None), None)
    return make([first, None, first] * before + labels + [first])[3 * before : -1]


def categories(labels, of, **how):
    return pd.Series(pd.Categorical(labels, categories=of, **how))


def string(labels):
    return pa.array(labels, pa.string())


def large_string(labels):
    return pa.array(labels, pa.large_string())


def string_view(labels):
    return pa.array(labels, pa.string_view())


def dictionary(labels):
    return pa.array(labels, pa.string()).dictionary_encode()


def dictionary_of(kind):
    return lambda x: pa.array(x, pa.string()).cast(pa.dictionary(kind, pa.string()))


def coded(labels, values):
    """Return a dictionary column of these values; a null among them has a code of its own."""
    codes = {value: code for code, value in enumerate(values.to_pylist())}
    return pa.DictionaryArray.from_arrays(pa.array(map(codes.get, labels), pa.int16()), values)


def polars_chunks(labels):
    half = len(labels) // 2
    parts = [pl.Series(labels[:half], dtype=pl.String), pl.Series(labels[half:], dtype=pl.String)]
    return pl.concat(parts, rechunk=False)


UNUSED = [f"unused {k}" for k in range(200)]
TEXTS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda x: (label for label in x),
    "numpy text": lambda x: np.array(filled(x)),
    "numpy wide text": lambda x: np.array(filled(x), "U300"),
    "numpy big-endian text": lambda x: (y := np.array(filled(x))).astype(y.dtype.newbyteorder(">")),
    "numpy every third text": lambda x: spread(np.array(filled(x)), 3),
    "numpy texts backwards": lambda x: np.array(filled(x)[::-1])[::-1],
    "numpy variable text": lambda x: np.array(filled(x), np.dtypes.StringDType()),
    "numpy objects": lambda x: np.array(x, object),
    "numpy every second object": lambda x: spread(np.array(x, object), 2),
    "column of a matrix": lambda x: np.array([filled(x), filled(x)[::-1]]).T[:, 0],
    "only __array__": lambda x: OnlyArray(filled(x)),
    "pandas object": lambda x: pd.Series(x, dtype=object),
    "pandas object with NA": lambda x: pd.Series(filled(x, pd.NA), dtype=object),
    "pandas str": lambda x: pd.Series(x, dtype="str"),
    "pandas string": lambda x: pd.Series(x, dtype="string"),
    "pandas python string": lambda x: pd.Series(x, dtype=pd.StringDtype("python")),
    "pandas arrow string": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.string())),
    "pandas index": lambda x: pd.Index(x, dtype=object),
    "pandas other index": lambda x: pd.Series(x, index=range(len(x))[::-1], dtype="str"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas ordered category": lambda x: categories(x, distinct(x), ordered=True),
    "pandas reversed categories": lambda x: categories(x, distinct(x)[::-1]),
    "pandas unused categories": lambda x: categories(x, [*distinct(x), "unused", "also unused"]),
    "pandas unused categories first": lambda x: categories(x, ["unused", *distinct(x)]),
    "pandas 200 categories": lambda x: categories(x, UNUSED + distinct(x)),
    "pandas categorical": pd.Categorical,
    "pandas categorical index": pd.CategoricalIndex,
    "polars string": lambda x: pl.Series(x, dtype=pl.String),
    "polars chunks": polars_chunks,
    "polars slice": lambda x: sliced(x, lambda y: pl.Series(y, dtype=pl.String), 4),
    "polars categorical": lambda x: pl.Series(x, dtype=pl.Categorical),
    "polars enum": lambda x: pl.Series(x, dtype=pl.Enum(distinct(x)[::-1])),
    "polars enum slice": lambda x: sliced(
        x, lambda y: pl.Series(y, dtype=pl.Enum([*distinct(y), "unused"])), 3
    ),
    "arrow string": string,
    "arrow large string": large_string,
    "arrow string view": string_view,
    "arrow dictionary": dictionary,
    "arrow uint8 dictionary": dictionary_of(pa.uint8()),
    "arrow int64 dictionary": dictionary_of(pa.int64()),
    "arrow dictionary of views": lambda x: coded(x, string_view(distinct(x))),
    "arrow dictionary with a null": lambda x: coded(x, string([None, *distinct(x)])),
    "arrow chunks": lambda x: split(x, string),
    "arrow chunks of views": lambda x: split(x, string_view),
    "arrow chunks with different dictionaries": lambda x: split(x, dictionary),
    "arrow slice": lambda x: sliced(x, string, 3),
    "arrow slice of large strings": lambda x: sliced(x, large_string, 1),
    "arrow slice of views": lambda x: sliced(x, string_view, 5),
    "arrow slice of a dictionary": lambda x: sliced(x, dictionary, 3),
    "arrow slice of chunks": lambda x: sliced(x, lambda y: split(y, string), 7),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, string)),
    "only __arrow_c_array__": lambda x: OnlyArrowArray(string(x)),
    "stream of a dictionary": lambda x: OnlyStream(lambda: split(x, dictionary)),
}  # fmt: skip

INTEGER_TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
ARROW_INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
POLARS_INTEGERS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]


def numpy_of(kind):
    return lambda x: np.array(x).astype(kind)


def arrow_of(kind):
    return lambda x: pa.array(x, pa.type_for_alias(kind))


def polars_of(kind):
    return lambda x: pl.Series(x, dtype=getattr(pl, kind))


def some_nulls(labels, make):
    """Return chunks of which only the second has nulls, and a slice without them."""
    chunks = [make(labels), make([labels[0], None])]
    return pa.chunked_array(chunks)[: len(labels)]


NUMBERS = {
    "list": list,
    "range or tuple": tuple,
    "list of floats": lambda x: [float(y) for y in x],
    "list of texts": lambda x: [str(y) for y in x],
    "list of texts with a point": lambda x: [f"{y}.0" for y in x],
    "list of NumPy scalars": lambda x: [np.int8(y) for y in x],
    "list of decimals": lambda x: [Decimal(y) for y in x],
    **{f"numpy {kind}": numpy_of(kind) for kind in INTEGER_TYPES},
    **{f"numpy >{kind}": numpy_of(f">{kind}") for kind in INTEGER_TYPES[1:] if kind != "u1"},
    **{f"numpy {kind}": numpy_of(kind) for kind in ("f2", "f4", "f8", ">f4", ">f8")},
    "numpy every second": lambda x: spread(np.array(x, np.int16), 2),
    "numpy every second, big-endian": lambda x: spread(np.array(x, ">i4"), 2),
    "numpy backwards": lambda x: np.array(x[::-1], np.int8)[::-1],
    "numpy every third float": lambda x: spread(np.array(x, np.float32), 3),
    "numpy field of records": lambda x: np.array([(y, 0) for y in x], "u1,i8")["f0"],
    "numpy unaligned": lambda x: np.array([(0, y) for y in x], "u1,i8")["f1"],
    "numpy read-only": lambda x: np.frombuffer(bytes(x), np.uint8),
    "numpy texts": lambda x: np.array(list(map(str, x))),
    "numpy objects": lambda x: np.array(x, object),
    "only __array__": OnlyArray,
    "pandas int64": pd.Series,
    "pandas Int64": lambda x: pd.Series(x, dtype="Int64"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas category of floats": lambda x: pd.Series(x, dtype=float).astype("category"),
    "pandas category of texts": lambda x: pd.Series(list(map(str, x)), dtype="category"),
    "pandas arrow": lambda x: pd.Series(x, dtype="int8[pyarrow]"),
    **{f"polars {kind}": polars_of(kind) for kind in POLARS_INTEGERS},
    **{f"polars {kind}": polars_of(kind) for kind in ("Float32", "Float64")},
    **{f"arrow {kind}": arrow_of(kind) for kind in ARROW_INTEGERS},
    **{f"arrow {kind}": arrow_of(kind) for kind in ("float", "double")},
    "arrow halffloat": lambda x: pa.array(np.array(x, np.float16)),
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunks": lambda x: split(x, arrow_of("int32")),
    "arrow chunks with different dictionaries": lambda x: split(
        x, lambda y: pa.array(y, pa.int8()).dictionary_encode()
    ),
    "arrow chunks, one with nulls": lambda x: some_nulls(x, arrow_of("int16")),
    "arrow slice": lambda x: sliced(x, arrow_of("uint16"), 3),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, arrow_of("int64"))),
    "only __arrow_c_array__": lambda x: OnlyArrowArray(pa.array(x, pa.int8())),
}  # fmt: skip

NAN = float("nan")
NUMBERS_WITH_MISSING = {
    "list": list,
    "list with NaN": lambda x: filled(x, NAN),
    "numpy f2": lambda x: np.array(filled(x, NAN), "f2"),
    "numpy f8": lambda x: np.array(filled(x, NAN)),
    "numpy >f4": lambda x: np.array(filled(x, NAN), ">f4"),
    "numpy every second float": lambda x: spread(np.array(filled(x, NAN)), 2),
    "numpy objects": lambda x: np.array(x, object),
    "pandas float with NaN": lambda x: pd.Series(x, dtype=float),
    "pandas Int64 with NA": lambda x: pd.Series(x, dtype="Int64"),
    "pandas Float32 with NA": lambda x: pd.Series(x, dtype="Float32"),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas category of Int64": lambda x: pd.Series(x, dtype="Int64").astype("category"),
    "pandas arrow": lambda x: pd.Series(x, dtype="uint8[pyarrow]"),
    **{f"polars {kind}": polars_of(kind) for kind in POLARS_INTEGERS},
    "polars Float64": polars_of("Float64"),
    "polars Float64 with NaN": lambda x: pl.Series(filled(x, NAN), dtype=pl.Float64),
    "polars slice": lambda x: sliced(x, polars_of("Int16"), 3),
    **{f"arrow {kind}": arrow_of(kind) for kind in ARROW_INTEGERS},
    "arrow double": arrow_of("double"),
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunks": lambda x: split(x, arrow_of("int32")),
    "arrow slice": lambda x: sliced(x, arrow_of("int64"), 3),
    "only __arrow_c_stream__": lambda x: OnlyStream(lambda: split(x, arrow_of("int64"))),
}  # fmt: skip

every_text_column = each_case("make", TEXTS)
every_number_column = each_case("make", NUMBERS)
every_number_column_with_missing = each_case("make", NUMBERS_WITH_MISSING)
