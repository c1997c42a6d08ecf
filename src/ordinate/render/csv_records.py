"""CSV: one record for each number, at full precision, and every text as it is."""

import csv
import io
import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

# Without these, a terminal that shows a file is driven by nothing in it.
CONTROLS = dict.fromkeys({*range(32), *range(127, 160)} - set(map(ord, "\t\n\r")), "\ufffd")


def render(rows: list[dict[str, Any]], header: Iterable[str] = ()) -> str:
    """Return records as CSV, which gives back every text as it was; nan is an empty cell.

    Where there are no records, the header is what is said.

    >>> print(render([{"id": "=1+1", "p": 0.5}, {"id": "a,b", "p": float("nan")}]), end="")
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
