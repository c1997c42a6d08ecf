"""The items that disagree, written from inside the engine."""

from collections.abc import Iterable
from pathlib import Path

from ordinate.readers.duckdb_connection import (
    Connection,
    quote_identifier,
    quote_literal,
    read_rows,
)
from ordinate.readers.item_query import ItemQuery, make_names_distinct

COPY_FORMATS = {  # by suffix; anything else is CSV
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json, ARRAY true",
    ".tsv": "csv, HEADER, DELIMITER '\t'",
}
CSV_FORMAT = "csv, HEADER"
OFF_BY_COLUMN = "steps_off"  # predicted minus gold level; empty without a prediction
FORMULA_CHARACTERS = "=+@-\t\r"  # how a string begins that a spreadsheet takes for a command


def write_disagreements(
    connection: Connection,
    items: list[ItemQuery],
    wrong: Iterable[tuple[str, str, int]],
    unanswered: Iterable[tuple[str, str | None]],
    out: Path,
) -> None:
    """Write the items that are wrong (gold, predicted, steps off) or have no prediction."""
    cases = [
        f"WHEN gold = {quote_literal(gold)} AND predicted = {quote_literal(predicted)} THEN {steps}"
        for gold, predicted, steps in wrong
    ]
    steps = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS INTEGER)"
    silent = [
        f"gold = {quote_literal(gold)} AND predicted IS NOT DISTINCT FROM "
        + ("NULL" if predicted is None else quote_literal(predicted))
        for gold, predicted in unanswered
    ]
    form = COPY_FORMATS.get(out.suffix.lower(), CSV_FORMAT)
    selections = [_build_selection_sql(connection, part, steps, silent, form) for part in items]
    query = " UNION ALL BY NAME ".join(selections)
    read_rows(connection, f"COPY ({query}) TO {quote_literal(str(out))} (FORMAT {form})", str(out))


def _build_selection_sql(
    connection: Connection, part: ItemQuery, steps: str, silent: list[str], form: str
) -> str:
    types = {row[0]: row[1] for row in read_rows(connection, f"DESCRIBE {part.sql}", part.name)}
    selected = []
    for index, name in enumerate(make_names_distinct(*part.own, OFF_BY_COLUMN)):
        sql = f"o{index}" if index < len(part.own) else "steps"
        if form.startswith("csv") and types.get(sql) == "VARCHAR":
            sql = _escape_formula_sql(sql)
        risky = form.startswith("csv") and name.startswith(tuple(FORMULA_CHARACTERS))
        safe = f"'{name}" if risky else name
        selected.append(f"{sql} AS {quote_identifier(safe)}")
    condition = " OR ".join(["steps IS NOT NULL", *(f"({text})" for text in silent)])
    return (
        f"SELECT {', '.join(selected)} FROM (SELECT *, {steps} AS steps FROM ({part.sql})) "
        f"WHERE in_gold AND ({condition})"
    )


def _escape_formula_sql(column: str) -> str:
    """Return SQL for a string that a spreadsheet shows and does not run."""
    formula = f"regexp_matches({column}, '^[=+@\\t\\r-]') AND TRY_CAST({column} AS DOUBLE) IS NULL"
    return f"CASE WHEN {formula} THEN '''' || {column} ELSE {column} END"
