"""Irregular lines of files: counted by kind, with the first example of each, and left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ordinate.errors import replace_control_characters
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows

INVALID_BYTE_MARK = "\U0010ffff"  # no character; stands where bytes are not UTF-8
LONGEST_EXCERPT = 60  # characters of a line that is shown


class IrregularityKind(StrEnum):
    """The kinds of irregularity; a line is of the first that fits."""

    ENCODING = "bytes that are not UTF-8"
    QUOTES = "malformed quotes"
    COLUMNS = "wrong number of columns"
    TEST_CASE = "empty test case"
    ID = "empty id"
    UNKNOWN = "id that gold lacks"
    VALUE = "empty value"
    OFF_SCALE = "label off the scale"
    REPEATED = "repeated id, same value"
    CONTRADICTING = "repeated id, other value"
    MISSING = "id that the run lacks"


KINDS = list(IrregularityKind)


@dataclass(frozen=True)
class Irregularity:
    """How often a file is irregular in one way, and the first example.

    `example` is the text of that line, or an id or a label where no line is known.
    """

    file: str
    kind: IrregularityKind
    count: int
    line: int | None
    example: str

    @property
    def place(self) -> str:
        """Where the first example stands."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def list_irregularities(irregular: Sequence[Irregularity]) -> list[str]:
    """Return the kinds, in all files together, with their counts and first examples."""
    by_kind = ([entry for entry in irregular if entry.kind == kind] for kind in KINDS)
    return [_format_irregularity(entries) for entries in by_kind if entries]


def _format_irregularity(entries: list[Irregularity]) -> str:
    """Return one kind with its count and its first example."""
    first, count = entries[0], sum(entry.count for entry in entries)
    files = f" in {len(entries)} files" if len(entries) > 1 else ""
    begin = ", first" if count > 1 else ""
    return f"{first.kind} ({count:,}{files}{begin}: {first.place} '{first.example}')"


def format_excerpt(text: str) -> str:
    r"""Return a line as a report shows it, with its tabs.

    >>> print(format_excerpt("T1\tid 7\tB1"))
    T1\tid 7\tB1
    """
    line = replace_control_characters(text[: LONGEST_EXCERPT + 1].replace("\t", "\\t"))
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"


# --- SQL -----------------------------------------------------------------------------------------


def build_kind_sql(kinds: Mapping[IrregularityKind, str]) -> str:
    """Return SQL for the first kind whose condition holds, or NULL."""
    cases = [f"WHEN {condition} THEN {quote_literal(kind)}" for kind, condition in kinds.items()]
    return f"CASE {' '.join(cases)} END"


def mark_repeated_keys(rows: str, key: str, value: str) -> str:
    """Return SQL for rows of which the first good one of each key is good, in order of `line`."""
    again = f"row_number() OVER again AS turn, first_value({value}) OVER again AS first"
    kind = build_kind_sql(
        {
            IrregularityKind.REPEATED: f"turn > 1 AND {value} IS NOT DISTINCT FROM first",
            IrregularityKind.CONTRADICTING: "turn > 1",
        }
    )
    return (
        f"SELECT * EXCLUDE (turn, first) REPLACE (coalesce(kind, {kind}) AS kind) FROM "
        f"(SELECT *, {again} FROM ({rows}) "
        f"WINDOW again AS (PARTITION BY {key}, kind IS NULL ORDER BY line))"
    )


def count_irregular_lines(connection: Connection, lines: str, file: str) -> list[Irregularity]:
    """Return the irregular lines of a query, by their kinds."""
    rows = read_rows(
        connection,
        "SELECT kind, count(*), min(line), arg_min(left(text, 200), line) "
        f"FROM ({lines}) WHERE kind IS NOT NULL GROUP BY kind",
        file,
    )
    entries = [
        Irregularity(file, IrregularityKind(kind), count, line, format_excerpt(text))
        for kind, count, line, text in rows
    ]
    return sorted(entries, key=lambda entry: KINDS.index(entry.kind))


# --- what is left out ----------------------------------------------------------------------------


def keep_first_ids(
    connection: Connection, rows: str, label: str, name: str, left_out: list[Irregularity]
) -> str:
    """Return SQL for the first row of each id of a query, and count the others."""
    kind = build_kind_sql({IrregularityKind.ID: "id IS NULL"})
    numbered = f"SELECT *, row_number() OVER () AS line, {kind} AS kind FROM ({rows})"
    checked = mark_repeated_keys(numbered, "id", label)
    named = f"SELECT *, coalesce(id, '') AS text FROM ({checked})"
    # A row has no line of its own to be shown: a key may be made of several columns.
    left_out += (replace(x, line=None) for x in count_irregular_lines(connection, named, name))
    return f"SELECT * EXCLUDE (line, kind) FROM ({checked}) WHERE kind IS NULL"


def count_off_scale_labels(
    left_out: list[Irregularity], place: str, label: Any, count: int
) -> None:
    """Count labels that are off the scale, one of which stands in a place."""
    kind = IrregularityKind.OFF_SCALE
    for k, known in enumerate(left_out):
        if known.kind == kind:
            left_out[k] = replace(known, count=known.count + count)
            return
    left_out.append(Irregularity(place, kind, count, None, format_excerpt(str(label))))
