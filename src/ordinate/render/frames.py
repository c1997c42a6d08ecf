"""Data frames: records as a frame of pandas, Polars or Arrow, whichever is there."""

import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ordinate.errors import BadOption, MissingExtra

Record = dict[str, Any]


def make_frame(records: list[Record], backend: str | None = None) -> Any:
    """Return records as a frame: of the backend, or of the first that is installed."""
    name = _find_backend() if backend is None else backend
    if name not in _FRAME_MAKERS:
        raise BadOption(f"There is no backend {name!r}. There are: {', '.join(_FRAME_MAKERS)}.")
    try:
        library = import_module(name)
    except ImportError:
        raise MissingExtra(f"A frame of {name} needs it: pip install {name}") from None
    return _FRAME_MAKERS[name](library, _collect_columns(records))


_FRAME_MAKERS: dict[str, Callable[[Any, dict[str, list[Any]]], Any]] = {
    "pandas": lambda pandas, columns: pandas.DataFrame(columns),
    "polars": lambda polars, columns: polars.DataFrame(columns, strict=False),
    "pyarrow": lambda pyarrow, columns: pyarrow.table(columns),
}


def _find_backend() -> str:
    found = next((name for name in _FRAME_MAKERS if find_spec(name)), None)
    if found is None:
        known = ", ".join(_FRAME_MAKERS)
        raise MissingExtra(f"A frame needs one of {known}: pip install {next(iter(_FRAME_MAKERS))}")
    return found


def _collect_columns(records: list[Record]) -> dict[str, list[Any]]:
    names = dict.fromkeys(key for record in records for key in record)
    return {name: _unify_column([record.get(name) for record in records]) for name in names}


def _unify_column(values: list[Any]) -> list[Any]:
    """Return a column of one type: numbers, booleans, or strings; nan is missing."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in values]
    cells = [None if isinstance(x, float) and math.isnan(x) else x for x in plain]
    types = {type(x) for x in cells if x is not None}
    if types <= {bool} or all(issubclass(x, (int, float)) and x is not bool for x in types):
        return cells
    return [None if x is None else str(x) for x in cells]
