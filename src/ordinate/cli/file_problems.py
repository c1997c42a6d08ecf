"""What is wrong with a file, and the flag that helps: looked for once it could not be read."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import Any

from ordinate.errors import BadFile, BadIds, MissingLabels, NoItems, OrdinateError, word_advice
from ordinate.readers.duckdb_connection import MEMORY_LIMIT, NO_MEMORY, suggest_encoding
from ordinate.readers.file_formats import (
    NO_QUOTES,
    FileReader,
    FileSource,
    format_excerpt,
    is_regular_row,
    list_records,
)
from ordinate.readers.item_query import build_key_sql, build_label_sql

MOST_FILES_NAMED = 3
UNITS = {"B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}  # of memory
LEAVE_OUT = " To leave out such lines, and count them, pass --bad-lines skip."


def explain_problem(problem: OrdinateError, reader: FileReader, roles: Sequence[str]) -> str:
    """Return the message of an error, with the flag that helps, if there is one.

    `roles` are the columns that the command needs, by argument.
    """
    message = str(problem)
    if isinstance(problem, BadIds):
        return message + _suggest_key(reader)
    if isinstance(problem, (MissingLabels, NoItems)):
        return message + _name_sources(message, reader)
    if not isinstance(problem, BadFile):
        return message
    if problem.column is not None:
        return message + _explain_column(problem.file, problem.column, reader, roles)
    if NO_MEMORY in message:
        return message + _suggest_memory(reader)
    return _explain_file(_find_broken_file(problem, reader), reader)


def _name_sources(message: str, reader: FileReader) -> str:
    """Return where items were read from, if a message does not say."""
    names = [source.name for source in reader.sources]
    more = ", …" if len(names) > MOST_FILES_NAMED else ""
    told = not names or any(name in message for name in names)
    return "" if told else f" They are from {', '.join(names[:MOST_FILES_NAMED])}{more}."


# --- a column that is not there ------------------------------------------------------------------


def _explain_column(file: str, column: str, reader: FileReader, roles: Sequence[str]) -> str:
    """Return where a column may be: in the name of a folder, or in a file without a header."""
    folders = {part.partition("=")[0] for path in reader.paths for part in path.parts[:-1]}
    if column in folders and not reader.options.hive:
        return " A folder names it, though: pass --hive."
    text = reader.texts.get(file)
    if text is None or reader.options.columns or not _looks_like_row(*text.first_rows):
        return ""
    widths = {len(other.names) for other in reader.texts.values()}
    flags = _propose_columns(reader.options, roles, len(text.names)) if len(widths) == 1 else ""
    way = "put a line with the names of its columns above it."
    if flags:
        way = f"say what its columns are, from left to right: pass --header none {flags}."
    return f" If its first line is a row and no header, {way}"


def _looks_like_row(first: Sequence[str], *others: Sequence[str]) -> bool:
    """Tell whether a header has numbers, or what stands below it."""
    below = {(k, cell) for row in others for k, cell in enumerate(row)}
    return any(_is_number(cell) or (k, cell) in below for k, cell in enumerate(first))


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?\d+([.,]\d+)?", cell.strip()) is not None


def _propose_columns(options: Any, roles: Sequence[str], width: int) -> str:
    """Return the flag that names columns as a command needs them, or nothing if none can.

    Files that are joined have their labels in columns of one name.
    """
    probabilities = getattr(options, "probabilities", ())
    side_by_side = (*getattr(options, "systems", ()), *probabilities)
    if len(probabilities) == 1:
        return ""  # a prefix: the levels behind it are not known
    wanted = {role: getattr(options, role) or role for role in roles}
    flags = ""
    if side_by_side and not options.predicted:
        wanted.pop("predicted", None)
    elif "predicted" in wanted and (options.id or getattr(options, "gold_file", None)):
        wanted["predicted"] = wanted[roles[0]]
        flags = f" --predicted {wanted[roles[0]]}"
    columns = dict.fromkeys([*replace(options, **wanted).named, *side_by_side])
    spare = [f"column_{k + 1}" for k in range(width - len(columns))]
    names = ",".join([*spare, *columns])
    return f"--columns {names}{flags}" if len(columns) <= width else ""


# --- ids that occur twice ------------------------------------------------------------------------


def _suggest_key(reader: FileReader) -> str:
    """Return a column that makes the ids of each file distinct, if all files have one."""
    key, sources = getattr(reader.options, "id", None), reader.sources
    if key is None:
        return ""
    shared = [x for x in sources[0].columns if all(x in source.columns for source in sources)]
    named = {*reader.options.named} - {getattr(reader.options, "groups", None)}
    for column in shared:
        if column not in named and all(_is_part_of_key(source, column, key) for source in sources):
            return f" With the column {column!r} each row is one item: pass --id {column},{key}."
    return ""


def _is_part_of_key(source: FileSource, column: str, key: str) -> bool:
    """Tell whether a column that is no id itself is one together with others."""
    both = build_key_sql(source, f"{column},{key}")
    alone = f"count(DISTINCT {build_label_sql(source, column)})"
    return bool(source.read(f"count(DISTINCT {both}) = count(*) AND {alone} < count(*)")[0][0])


# --- a file that cannot be read ------------------------------------------------------------------


def _suggest_memory(reader: FileReader) -> str:
    """Return four times as much memory as there was, and no less than usual."""
    size = reader.options.memory or MEMORY_LIMIT
    number, unit = re.findall(r"[\d.]+|\w+", size)
    more = 4 * Decimal(number)  # whose plain digits have no exponent, which no flag takes
    if more * UNITS[unit[0].upper()] < UNITS["G"]:
        return f" To let it take more, pass --memory {MEMORY_LIMIT}."
    return f" To let it take more, pass --memory {more.normalize():f}{unit}."


def _find_broken_file(problem: BadFile, reader: FileReader) -> BadFile:
    """Return the error of the very file that cannot be read: a query may join several."""
    for source in reader.sources:
        cells = ", ".join(f"max(hash({sql}))" for sql in source.columns.values())  # all are read
        try:
            source.read(cells)
        except BadFile as found:
            return found
    return problem


def _explain_file(problem: BadFile, reader: FileReader) -> str:
    """Return where the first record begins that is none, and the flag that helps."""
    text = reader.texts.get(problem.file)
    if text is None or suggest_encoding() in str(problem):
        return str(problem)
    records = list_records(text, quoted=reader.quoted, strict=True)
    odd = ((begin, row) for begin, row in records if not is_regular_row(row, text))
    if reader.options.bad_lines == "skip":
        odd = (x for x in odd if not _is_skipped(x[1]))
    begin, row = next(odd, (0, None))
    fits_without_quotes = all(is_regular_row(x, text) for _, x in list_records(text, quoted=False))
    # Where a text is too long for Python's module, it may be nothing but long.
    is_long = isinstance(row, csv.Error) and "field limit" in str(row) and not fits_without_quotes
    if row is None or is_long or isinstance(row, UnicodeDecodeError):
        return str(problem)
    state = "has a quote that is not closed, or that has text after it"
    if isinstance(row, list):
        state = f"has {len(row)} columns, and there should be {len(text.names)}"
    remedy = LEAVE_OUT if _is_skipped(row) else ""
    if fits_without_quotes:
        remedy = f" {word_advice(NO_QUOTES, quote='none')}"
    with text.path.open(encoding="utf-8-sig", newline="") as lines:
        excerpt = format_excerpt(next(islice(lines, begin - 1, None)).rstrip("\r\n"))
    return (
        f"{problem.file} cannot be read: the record that begins in line {begin} ('{excerpt}') "
        f"{state}.{remedy}"
    )


def _is_skipped(row: "list[str] | Exception") -> bool:
    """Tell whether --bad-lines skip leaves a record of another width out: one without breaks."""
    return isinstance(row, list) and not any(set("\r\n") & set(cell) for cell in row)
