"""Targets against the previous one in a declared order: what is known without any model."""

from pathlib import Path

from ordinate.readers.duckdb_connection import quote_literal, read_rows
from ordinate.readers.numeric_cells import NumericCells
from ordinate.readers.regression_sums import RowQuery, TwoPassSums
from ordinate.summaries.regression import Moments


def summarize_persistence(
    rows: list[RowQuery],
    cells: NumericCells,
    times: tuple[str, ...],
    disk: Path,
    *,
    histogram: bool,
) -> Moments | None:
    """Return targets against the previous one, None where there is one item only.

    `times` is SQL for what sorts items, `disk` a file to keep them in that order.
    """
    connection, weighted, name = cells.connection, cells.numbers.weighted, rows[0].name
    read_rows(connection, f"ATTACH {quote_literal(str(disk))} AS kept", name)
    weight = ", w" if weighted else ""
    keys = [f"t{k}" for k in range(len(times))]
    read_as = ", ".join(f"{sql.format('t')} AS {key}" for sql, key in zip(times, keys, strict=True))
    tied = " AND ".join(f"{key} IS NOT DISTINCT FROM lag({key}) OVER inorder" for key in keys)
    everything = " UNION ALL ".join(
        f"SELECT y, t, {read_as}{weight} FROM ({part.sql}) WHERE ok" for part in rows
    )
    read_rows(
        connection,
        f"CREATE TABLE kept.previous AS SELECT y, lag(y) OVER inorder AS p{weight}, "
        f"CASE WHEN {tied} THEN t END AS tie FROM ({everything}) "
        f"WINDOW inorder AS (ORDER BY {', '.join(keys)})",
        name,
    )
    ((tie,),) = read_rows(connection, "SELECT min(tie) FROM kept.previous", name)
    if tie is not None:
        cells.refuse_tied_times(times, tie)
    items = (
        "SELECT *, NULL AS grp, NULL AS cluster, 0 AS nth, true AS ok, true AS in_gold "
        "FROM kept.previous WHERE p IS NOT NULL"
    )
    summing = TwoPassSums(
        connection, [RowQuery(items, name)], weighted=weighted, histogram=histogram
    )
    return summing.sums({}).table() if summing.look().items else None
