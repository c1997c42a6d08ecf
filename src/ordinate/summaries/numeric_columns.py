"""Numeric columns: numbers as any library gives them, not yet checked."""

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, OrdinateError, shorten
from ordinate.scale.labels import is_missing
from ordinate.summaries.tabulation import check_same_length, convert_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]


def convert_to_numbers(column: Any, name: str) -> Floats:
    """Return one column of numbers, not yet checked; what is missing is nan."""
    try:
        given = _convert_to_array(column)
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if given.ndim == 1 and given.dtype.kind == "O":
            given = np.array(
                [_convert_number(x, row, name) for row, x in enumerate(given, 1)], float
            )
        values = given.astype(float, copy=False) if given.dtype.kind in "biuf" else None
    except (TypeError, ValueError) as problem:
        if isinstance(problem, OrdinateError):
            raise
        values = None
    if values is None:
        raise BadValues(f"The {name} must be numbers.")
    if values.ndim != 1:
        raise BadInput(f"The {name} must be one column of numbers, not {values.ndim} axes.")
    return values


def _convert_to_array(column: Any) -> Array:
    """Return a column as its library gives it; what a mask hides is missing."""
    if isinstance(column, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(column), np.nan, column.data.astype(float))
    if hasattr(column, "__array__"):  # Arrow copies here where it has to
        return np.asarray(column)
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def _convert_number(value: Any, row: int, name: str) -> float:
    """Return a value of mixed ones; a string is no number, even if it looks like one."""
    if isinstance(value, (Real, Decimal, np.bool_)):
        try:
            return float(value)
        except (OverflowError, ValueError):  # an integer of 400 digits, a signalling nan
            return math.inf
    if is_missing(value):
        return math.nan
    raise BadValues(f"The {name} must be numbers; row {row} is {shorten(value)}.")


def match_weights(weights: Any, n: int) -> Floats | None:
    """Return the weights of n items as numbers; None stays None."""
    values = convert_weights(weights)
    if values is not None:
        check_same_length(n, len(values), "targets", "weights")
    return values
