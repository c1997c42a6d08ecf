"""Columns of pandas, Polars and Arrow, read by their own library through narwhals.

Texts become categories there, so that a column of labels is a column of small codes.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingExtra

ARROW_PROTOCOL = ("__arrow_c_stream__", "__arrow_c_array__")
ARROW_READERS = {"pyarrow": "chunked_array", "polars": "Series"}  # what makes a column of any other


def open_series(column: Any, name: str) -> Any | None:
    """Return a column that speaks Arrow as a series of narwhals; what holds no labels is refused.

    Of a column in NumPy's own memory it is None: that is nearer.
    """
    if isinstance(getattr(column, "dtype", None), np.dtype):
        return None
    if not any(hasattr(column, method) for method in ARROW_PROTOCOL):
        return None
    from narwhals.stable import v2 as narwhals

    try:
        series = narwhals.from_native(column, series_only=True)
    except TypeError:
        series = narwhals.from_native(_import_column(column), series_only=True)
    kind = series.dtype
    if kind.is_nested() or kind.is_temporal() or kind == narwhals.Binary:
        raise BadInput(f"{name} holds no labels but the type {kind}: cast it to text.")
    return series


def _import_column(column: Any) -> Any:
    """Return the column of a library that narwhals does not know, which speaks Arrow."""
    for library, make in ARROW_READERS.items():
        try:
            return getattr(import_module(library), make)(column)
        except ImportError:
            continue
        except Exception as problem:
            raise BadInput(f"The column could not be read through Arrow: {problem}.") from problem
    raise MissingExtra(
        f"A column of {type(column).__module__} is read through Arrow, which takes pyarrow or "
        "Polars: pip install pyarrow."
    )


def holds_words(series: Any) -> bool:
    """Tell whether a series is one of texts or categories."""
    from narwhals.stable import v2 as narwhals

    return series.dtype in (narwhals.String, narwhals.Categorical, narwhals.Enum)


def read_categories(series: Any) -> tuple[NDArray[Any], Sequence[Any]]:
    """Return the codes of a series of texts or categories, and what they stand for.

    Where something is missing, the code is below 0 or beyond the last category.
    """
    from narwhals.stable import v2 as narwhals

    if series.dtype == narwhals.String and not series.implementation.is_pyarrow():
        series = series.cast(narwhals.Categorical)
    column = series.to_native()
    if series.implementation.is_polars():
        return _read_polars_categories(column)
    if hasattr(getattr(column, "array", None), "codes"):  # of pandas
        return np.asarray(column.array.codes), column.array.categories
    return _read_arrow_dictionary(_find_arrow_column(column))


def _read_polars_categories(column: Any) -> tuple[NDArray[Any], Sequence[Any]]:
    """Return codes into the categories that occur: others of the process have codes, too."""
    codes = column.to_physical()
    if type(column.dtype).__name__ == "Enum":
        known = column.dtype.categories.to_list()
        return _fill_nulls(codes, len(known), codes.null_count()), known
    found = column.drop_nulls().unique()
    physical = found.to_physical().to_numpy()
    number = np.zeros(int(physical.max(initial=0)) + 2, np.min_scalar_type(-len(found) - 1))
    number[physical] = np.arange(len(found))
    number[-1] = len(found)
    return number[_fill_nulls(codes, len(number) - 1, codes.null_count())], found.to_list()


def _find_arrow_column(column: Any) -> Any:
    """Return the chunks of Arrow that a column has, if it is one of pandas."""
    return column if hasattr(column, "chunks") else _import_column(column)


def _read_arrow_dictionary(column: Any) -> tuple[NDArray[Any], Sequence[Any]]:
    if not hasattr(column.type, "index_type"):  # not every type of text has a dictionary
        texts = column if str(column.type) != "string_view" else column.cast("large_string")
        column = texts.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return np.empty(0, np.int8), []
    known = chunks[0].dictionary.to_pylist()
    codes = [_fill_nulls(x.indices, len(known), x.indices.null_count) for x in chunks]
    return codes[0] if len(codes) == 1 else np.concatenate(codes), known


def _fill_nulls(codes: Any, number: int, nulls: int) -> NDArray[Any]:
    """Return codes of Polars or Arrow, with a number in the place of nulls."""
    if not nulls:
        return np.asarray(codes.to_numpy())
    if number > 127:  # it may be more than the type of the codes holds
        codes = codes.cast("int64") if hasattr(codes, "buffers") else codes.cast(int)
    return np.asarray(codes.fill_null(number).to_numpy())


def read_declared_order(series: Any) -> list[list[Any]]:
    """Return the labels, lowest first, of each chunk of an ordered dictionary of Arrow."""
    if not holds_words(series) or series.implementation.is_polars():
        return []
    column = _find_arrow_column(series.to_native())
    if not getattr(column.type, "ordered", False):
        return []
    return [chunk.dictionary.to_pylist() for chunk in column.chunks]
