"""Files of which bad lines, repeated ids and labels off the scale are left out, and counted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows
from ordinate.readers.file_formats import FileSource, TextLayout, read_cells
from ordinate.readers.irregular_lines import (
    Irregularity,
    IrregularityKind,
    build_first_kind_sql,
    count_irregular_lines,
)
from ordinate.readers.text_lines import INVALID_BYTE_MARK, LineReader, format_excerpt


class LenientReader(LineReader):
    """Reads text files line by line, so that a bad line spoils no other one."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.left_out: list[Irregularity] = []

    def describe_delimited(
        self, name: str, path: Path, compression: str, file_format: str
    ) -> FileSource:
        """Keep the good lines of a file in the engine, and count the others."""
        first = self.store_lines(name, path, compression)
        delimiter = "\t" if file_format == "tsv" else self.detect_delimiter(path, first)
        rows = list(read_cells(first[:1], delimiter, quoted=self.quoted))
        text = self.name_columns(
            name, TextLayout(path, compression, delimiter, self.quoted, first_rows=rows)
        )
        width = len(text.names)
        self.split_lines(delimiter, width, header=not self.options.columns)
        kind = build_first_kind_sql(
            {
                IrregularityKind.ENCODING: f"contains(text, {quote_literal(INVALID_BYTE_MARK)})",
                IrregularityKind.QUOTES: "fields IS NULL",
                IrregularityKind.COLUMNS: f"len(fields) <> {width}",
            }
        )
        checked = f"SELECT *, {kind} AS kind FROM split_lines"
        self.left_out += count_irregular_lines(self.connection, checked, name)
        table = f"lines_{len(self.sources)}"
        good = f"SELECT line, fields FROM ({checked}) WHERE kind IS NULL ORDER BY line"
        read_rows(self.connection, f"CREATE TEMP TABLE {table} AS {good}", name)
        fields = {column: f"nullif(fields[{k}], '')" for k, column in enumerate(text.names, 1)}
        return FileSource(name, table, fields)


def keep_first_ids(
    connection: Connection, rows: str, label: str, name: str, left_out: list[Irregularity]
) -> str:
    """Return SQL for the first row of each id of a query, and count the others."""
    turn = f"SELECT *, row_number() OVER () AS turn FROM ({rows})"
    again = f"row_number() OVER same AS again, first_value({label}) OVER same AS first"
    same = "WINDOW same AS (PARTITION BY id ORDER BY turn)"
    kind = build_first_kind_sql(
        {
            IrregularityKind.ID: "id IS NULL",
            IrregularityKind.REPEATED: f"again > 1 AND {label} IS NOT DISTINCT FROM first",
            IrregularityKind.CONTRADICTING: "again > 1",
        }
    )
    checked = f"SELECT *, {kind} AS kind FROM (SELECT *, {again} FROM ({turn}) {same})"
    counts = f"SELECT kind, count(*), arg_min(coalesce(id, ''), turn) FROM ({checked})"
    irregular = read_rows(connection, f"{counts} WHERE kind IS NOT NULL GROUP BY kind", name)
    left_out += (
        Irregularity(name, IrregularityKind(found), count, None, format_excerpt(first))
        for found, count, first in irregular
    )
    return f"SELECT * EXCLUDE (turn, again, first, kind) FROM ({checked}) WHERE kind IS NULL"


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
