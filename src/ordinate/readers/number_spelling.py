"""Numbers as people write them: decimal commas, and separators of thousands."""

import re

from ordinate.readers.duckdb_connection import quote_literal
from ordinate.scale.labels import parse_number

MINUS = "\N{MINUS SIGN}"
SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
SEPARATORS = {",": f".'’{SPACES}", ".": f",'’{SPACES}"}  # of thousands, by the decimal mark
PATTERNS = {
    mark: rf"[-+{MINUS}]?((\d{{1,3}}([{between}]\d{{3}})+|\d+)([{mark}]\d*)?|[{mark}]\d+)"
    r"([eE][-+]?\d+)?"
    for mark, between in SEPARATORS.items()
}
FLAGS = {",": "--decimal , (as in 1.234,5)", ".": "--decimal . (as in 1,234.5)"}
# What nobody reads unasked, and what is a number in the other way of writing alone.
WRITTEN_PATTERN = rf"({'|'.join(PATTERNS.values())})[{SPACES}]?%?( \(--decimal [.,]\))?"

# What people write where there is no number; NaN is one that is not finite, and no such word.
NO_NUMBER = ("-", "–", "—", ".", "?", "na", "n/a", "#n/a", "null", "none")


def build_number_sql(cell: str, mark: str) -> str:
    """Return SQL for text that is a number by its decimal mark, as the engine reads numbers.

    One in the other way of writing is none, and says why: 3.14 is no number with decimal commas.
    """
    text, pattern, between = (
        f"trim({cell})",
        *map(quote_literal, (PATTERNS[mark], f"[{SEPARATORS[mark]}]")),
    )
    plain = f"regexp_replace({text}, {between}, '', 'g')"
    return (
        f"CASE WHEN regexp_full_match({text}, {pattern}) "
        f"THEN translate({plain}, '{mark}{MINUS}', '.-') "
        f"WHEN isfinite(TRY_CAST({cell} AS DOUBLE)) THEN {cell} || ' (--decimal {mark})' "
        f"ELSE {cell} END"
    )


def suggest_decimal(cell: object) -> str:
    """Return the flags that make a number of a cell which is none yet, or nothing.

    >>> suggest_decimal("1.234,5"), suggest_decimal("much")
    (' To read such numbers, pass --decimal , (as in 1.234,5).', '')
    """
    if parse_number(str(cell)) is not None:
        return ""
    fitting = [FLAGS[mark] for mark, x in PATTERNS.items() if re.fullmatch(x, str(cell).strip())]
    return f" To read such numbers, pass {' or '.join(fitting)}." if fitting else ""
