"""Flat records as files and frames: CSV, and whichever of pandas, Polars and Arrow is there."""

import csv
import io
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, MissingExtra

Record = dict[str, Any]


def render_csv(rows: list[Record], header: Iterable[str] = ()) -> str:
    """Return records as CSV, which gives back every text as it was; nan is an empty cell.

    Where there are no records, the header is what is said.

    >>> print(render_csv([{"id": "=1+1", "p": 0.5}, {"id": "a,b", "p": float("nan")}]), end="")
    id,p
    =1+1,0.5
    "a,b",
    """
    names = list(rows[0] if rows else header)
    out = io.StringIO()
    # csv puts in quotes what its own line ends have: with \r\n, a \r within a text, too.
    lines: Any = SimpleNamespace(write=lambda line: out.write(line.removesuffix("\r\n") + "\n"))
    writer = csv.DictWriter(lines, names, lineterminator="\r\n")
    if names:
        writer.writeheader()
    writer.writerows({key: _drop_nan(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _drop_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


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
