"""The items that disagree, written from inside the engine."""

from collections.abc import Iterable
from pathlib import Path

from ordinate.readers.duckdb_engine import Connection
from ordinate.readers.files import literal, quoted, read
from ordinate.readers.query import Items, told_apart

FORMATS = {  # by suffix; anything else is CSV
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json, ARRAY true",
    ".tsv": "csv, HEADER, DELIMITER '\t'",
}
CSV = "csv, HEADER"
OFF_BY = "steps_off"  # predicted minus gold level; empty without a prediction
FORMULA = "=+@-\t\r"  # how a text begins that a spreadsheet takes for a command


def write_items(
    connection: Connection,
    items: list[Items],
    wrong: Iterable[tuple[str, str, int]],
    unanswered: Iterable[tuple[str, str | None]],
    out: Path,
) -> None:
    """Write the items that are wrong (gold, predicted, steps off) or have no prediction."""
    cases = [
        f"WHEN gold = {literal(gold)} AND predicted = {literal(predicted)} THEN {steps}"
        for gold, predicted, steps in wrong
    ]
    steps = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS INTEGER)"
    silent = [
        f"gold = {literal(gold)} AND predicted IS NOT DISTINCT FROM "
        + ("NULL" if predicted is None else literal(predicted))
        for gold, predicted in unanswered
    ]
    form = FORMATS.get(out.suffix.lower(), CSV)
    parts = [_select(connection, part, steps, silent, form) for part in items]
    query = " UNION ALL BY NAME ".join(parts)
    read(connection, f"COPY ({query}) TO {literal(str(out))} (FORMAT {form})", str(out))


def _select(connection: Connection, part: Items, steps: str, silent: list[str], form: str) -> str:
    kinds = {row[0]: row[1] for row in read(connection, f"DESCRIBE {part.sql}", part.name)}
    chosen = []
    for index, name in enumerate(told_apart(*part.own, OFF_BY)):
        sql = f"o{index}" if index < len(part.own) else "steps"
        if form.startswith("csv") and kinds.get(sql) == "VARCHAR":
            sql = _harmless(sql)
        risky = form.startswith("csv") and name.startswith(tuple(FORMULA))
        safe = f"'{name}" if risky else name
        chosen.append(f"{sql} AS {quoted(safe)}")
    condition = " OR ".join(["steps IS NOT NULL", *(f"({text})" for text in silent)])
    return (
        f"SELECT {', '.join(chosen)} FROM (SELECT *, {steps} AS steps FROM ({part.sql})) "
        f"WHERE in_gold AND ({condition})"
    )


def _harmless(column: str) -> str:
    """Return SQL for a text that a spreadsheet shows and does not run."""
    formula = f"regexp_matches({column}, '^[=+@\\t\\r-]') AND TRY_CAST({column} AS DOUBLE) IS NULL"
    return f"CASE WHEN {formula} THEN '''' || {column} ELSE {column} END"
