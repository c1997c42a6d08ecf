"""What is wrong with a file, and the flag that helps: looked for once it could not be read."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ordinate.errors import BadFile, BadIds, MissingLabels, NoItems, OffScale, OrdinateError
from ordinate.readers.duckdb_connection import MEMORY_LIMIT, read_rows
from ordinate.readers.file_formats import FileReader, TextLayout, decode_text, read_cells
from ordinate.readers.item_query import build_key_sql, build_label_sql
from ordinate.readers.text_lines import format_excerpt

if TYPE_CHECKING:
    from ordinate.readers.file_formats import FileSource

MOST_FILES_NAMED = 3
NO_QUOTES = "The quotes of this file are characters like others, it seems: pass --quote none."
LEAVE_OUT = " To leave out what cannot be used, and count it, pass --lenient."


def explain_problem(problem: OrdinateError, reader: FileReader) -> str:
    """Return the message of an error, with the flag that helps, if there is one."""
    if not reader.options.has_flags:
        return str(problem)
    if not isinstance(problem, BadFile) or problem.column is not None:
        return f"{problem}{_find_remedy(problem, reader)}"
    if "not enough memory" in str(problem):
        return f"{problem}{_suggest_memory(reader)}"
    return _explain_file(_find_broken_file(problem, reader), reader)


def _find_remedy(problem: OrdinateError, reader: FileReader) -> str:
    """Return what is to be added to a message, if anything is."""
    if isinstance(problem, BadFile):
        return _explain_column(problem.file, problem.column or "", reader)
    if isinstance(problem, BadIds):
        return _suggest_key(reader) or _suggest_lenient(reader)
    if isinstance(problem, OffScale):
        return _suggest_lenient(reader)
    if isinstance(problem, (MissingLabels, NoItems)):
        return _name_sources(str(problem), reader)
    return ""


def _name_sources(message: str, reader: FileReader) -> str:
    """Return where items were read from, if a message does not say."""
    names = [source.name for source in reader.sources]
    more = ", …" if len(names) > MOST_FILES_NAMED else ""
    told = any(name in message for name in names)
    return "" if told else f" They are from {', '.join(names[:MOST_FILES_NAMED])}{more}."


def _suggest_lenient(reader: FileReader) -> str:
    return LEAVE_OUT if getattr(reader.options, "lenient", None) is False else ""


# --- a column that is not there ------------------------------------------------------------------


def _explain_column(file: str, column: str, reader: FileReader) -> str:
    """Return where a column may be: in the name of a folder, or in a file without a header."""
    folders = {part.partition("=")[0] for path in reader.paths for part in path.parts[:-1]}
    if column in folders and not reader.options.hive:
        return " A folder names it, though: pass --hive."
    text = reader.texts.get(file)
    if text is None or reader.options.columns or not _looks_like_row(*text.first_rows):
        return ""
    names = ",".join(_propose_names(reader.options.named, len(text.names)))
    return (
        " If its first line is a row and no header, say what its columns are, from left to right: "
        f"pass --header none --columns {names}."
    )


def _looks_like_row(first: Sequence[str], *others: Sequence[str]) -> bool:
    """Tell whether a header has numbers, or what stands below it."""
    below = {(k, cell) for row in others for k, cell in enumerate(row)}
    return any(_is_number(cell) or (k, cell) in below for k, cell in enumerate(first))


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?\d+([.,]\d+)?", cell.strip()) is not None


def _propose_names(named: Sequence[str], width: int) -> list[str]:
    """Return names of columns: those that were asked for are the last ones, in their order."""
    asked = list(named or ("gold", "predicted"))
    return [*(f"column_{k + 1}" for k in range(width - len(asked))), *asked][:width]


# --- ids that occur twice ------------------------------------------------------------------------


def _suggest_key(reader: FileReader) -> str:
    """Return a column that makes the ids of each file distinct, if all files have one."""
    key, sources = getattr(reader.options, "id", None), reader.sources
    if key is None:
        return ""
    shared = [x for x in sources[0].columns if all(x in source.columns for source in sources)]
    for column in shared:
        if column not in reader.options.named and all(
            _is_part_of_key(reader, source, column, key) for source in sources
        ):
            return f" With the column {column!r} each row is one item: pass --id {column},{key}."
    return ""


def _is_part_of_key(reader: FileReader, source: "FileSource", column: str, key: str) -> bool:
    """Tell whether a column that is no id itself is one together with others."""
    both = build_key_sql(source, f"{column},{key}")
    alone = f"count(DISTINCT {build_label_sql(source, column)})"
    query = f"SELECT count(DISTINCT {both}) = count(*) AND {alone} < count(*) FROM {source.sql}"
    return bool(read_rows(reader.connection, query, source.name)[0][0])


# --- a file that cannot be read ------------------------------------------------------------------


def _suggest_memory(reader: FileReader) -> str:
    """Return four times as much memory as there was."""
    size = reader.options.memory or MEMORY_LIMIT
    more = re.sub(r"[\d.]+", lambda number: f"{4 * float(number[0]):g}", size)
    return f" To let it take more, pass --memory {more}."


def _find_broken_file(problem: BadFile, reader: FileReader) -> BadFile:
    """Return the error of the very file that cannot be read: a query may join several."""
    for source in reader.sources:
        cells = ", ".join(f"max(hash({sql}))" for sql in source.columns.values())  # all are read
        try:
            read_rows(reader.connection, f"SELECT {cells} FROM {source.sql}", source.name)
        except BadFile as found:
            return found
    return problem


def _explain_file(problem: BadFile, reader: FileReader) -> str:
    text = reader.texts.get(problem.file)
    place = None if text is None or "--encoding" in str(problem) else _find_bad_record(text)
    if text is None or place is None:
        return str(problem)
    state, about_quotes = place
    remedy = _suggest_lenient(reader)
    if about_quotes and _is_regular_without_quotes(text):
        remedy = f" {NO_QUOTES}"
    return f"{problem.file} cannot be read: {state}.{remedy}"


def _find_bad_record(text: TextLayout) -> tuple[str, bool] | None:
    """Return where a record begins that is none, with its state, and whether it may be its quotes.

    It is the first one that has another number of columns, or quotes that do not close.
    """
    width = len(text.names)
    state, is_open = "", True
    with decode_text(text) as file:
        lines = _NumberedLines(file)
        rows = read_cells(lines, text.delimiter, quoted=text.quoted, strict=True)
        try:
            for row in rows:
                if row and len(row) != width:
                    state = f"has {len(row)} columns, and there should be {width}"
                    is_open = '"' in lines.record
                    break
                lines.end_record()
        except csv.Error as problem:
            # Where a text is too long for Python's module, it may be nothing but long.
            if "field limit" not in str(problem) or _is_regular_without_quotes(text):
                state = "has a quote that is not closed, or that has text after it"
        except UnicodeDecodeError:
            return None
    if not state:
        return None
    excerpt = format_excerpt(lines.record.splitlines()[0])
    return f"the record that begins in line {lines.begin} ('{excerpt}') {state}", is_open


class _NumberedLines:
    """The lines of a file, and those of the record that is being read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines, self.begin, self.count, self.record = iter(lines), 1, 0, ""

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.count += 1
            self.record += line
            yield line

    def end_record(self) -> None:
        """Say that the next line begins a record."""
        self.begin, self.record = self.count + 1, ""


def _is_regular_without_quotes(text: TextLayout) -> bool:
    """Tell whether all lines have as many columns as the first, if quotes mean nothing."""
    with decode_text(text) as lines:
        rows = read_cells(lines, text.delimiter, quoted=False)
        try:
            return all(len(row) == len(text.names) for row in rows if row)
        except (csv.Error, UnicodeDecodeError):
            return False


# --- quotes that swallow lines -------------------------------------------------------------------


def refuse_stray_quotes(reader: FileReader, source: "FileSource", text: TextLayout) -> None:
    """Refuse a file whose quotes hold whole rows: a quote began one text, and another ended it.

    Such a text has as many tabs as the rows in it. With other delimiters that may be by chance.
    """
    if text.delimiter != "\t" or len(text.names) < 2:
        return
    tabs = len(text.names) - 1
    swallowed = " OR ".join(
        f"(contains({sql}, chr(10)) AND {_count_sql(sql, 9)} = {tabs} * {_count_sql(sql, 10)})"
        for sql in source.columns.values()
    )
    query = f"SELECT row_number() OVER () FROM {source.sql} QUALIFY {swallowed} LIMIT 1"
    for (row,) in read_rows(reader.connection, query, source.name):
        line = _find_line_of_row(text, row if reader.options.columns else row + 1)
        raise BadFile(
            f"{source.name}: the record that begins in line {line} has a text in quotes that holds "
            f"whole rows. {NO_QUOTES} If they are right, pass --quote double.",
            source.name,
        )


def _count_sql(text: str, character: int) -> str:
    return f"(length({text}) - length(replace({text}, chr({character}), '')))"


def _find_line_of_row(text: TextLayout, row: int) -> int:
    """Return the line where a row begins."""
    with decode_text(text) as file:
        lines = _NumberedLines(file)
        for cells in read_cells(lines, text.delimiter, quoted=True):
            row -= bool(cells)
            if not row:
                break
            lines.end_record()
    return lines.begin
