"""CSV: one record for each number, at full precision."""

import csv
import io
import math
import re
from collections.abc import Iterable
from typing import Any

# Without these, a terminal that shows the file is driven by nothing in it.
CONTROLS = dict.fromkeys({*range(32), *range(127, 160)} - set(map(ord, "\t\n\r")), "\ufffd")
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a command
# A number, an interval, a number with its interval or label and letters; page.js has the same.
# No two parts of it take the same letters, so that long cells cost no more than their length.
NUMBER = r"[-+]?(?:(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|nan)"
HARMLESS = re.compile(
    rf"{NUMBER}(?: to {NUMBER})?(?: \([\w .+-]+\))?(?: \w+)?", re.ASCII | re.IGNORECASE
)


def render(rows: list[dict[str, Any]], header: Iterable[str] = ()) -> str:
    """Return records as CSV, in which no text is a formula and nan is an empty cell.

    Where there are no records, the header is what is said.
    """
    names = list(rows[0] if rows else header)
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
    if names:
        writer.writeheader()
    writer.writerows({key: escape_formula(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def escape_formula(value: Any) -> Any:
    """Return a value that a spreadsheet shows and does not run, nor does a terminal.

    >>> escape_formula("=1+1"), escape_formula("-0.2 to 0.1"), escape_formula(float("nan"))
    ("'=1+1", '-0.2 to 0.1', None)
    """
    if isinstance(value, float) and math.isnan(value):
        return None
    if not isinstance(value, str):
        return value
    if value.startswith(FORMULA_PREFIXES) and not HARMLESS.fullmatch(value):
        value = "'" + value
    value = value.translate(CONTROLS)
    return value.replace("\r\n", "\n").replace("\r", "\n")  # which csv knows to quote
