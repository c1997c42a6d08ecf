"""Items that disagree, written by the engine that counted them."""

from pathlib import Path

from ordinate.readers.confusion import ConfusionReader
from ordinate.readers.duckdb_connection import (
    Connection,
    quote_identifier,
    quote_literal,
    read_rows,
)
from ordinate.readers.item_query import FileItems, ItemQuery, make_names_distinct
from ordinate.readers.items import GOLD, PREDICTED
from ordinate.scale import Scale

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
    out: Path, items: FileItems, reading: ConfusionReader, scale: Scale
) -> None:
    """Write the items that are wrong (gold, predicted, steps off) or have no prediction."""
    wrong, unanswered = _list_disagreements(reading, scale)
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
    connection, form = items.connection, COPY_FORMATS.get(out.suffix.lower(), CSV_FORMAT)
    selections = [
        _build_selection_sql(connection, part, steps, silent, form) for part in items.parts
    ]
    query = " UNION ALL BY NAME ".join(selections)
    read_rows(connection, f"COPY ({query}) TO {quote_literal(str(out))} (FORMAT {form})", str(out))


def _list_disagreements(
    reading: ConfusionReader, scale: Scale
) -> tuple[list[tuple[str, str, int]], list[tuple[str, str | None]]]:
    """Return pairs of labels that differ, with the steps between, and those unanswered."""
    wrong, unanswered = [], []
    table, (of_gold, of_predicted) = (
        reading.cells.table,
        (reading.cells.spelled[side].rename_label for side in (GOLD, PREDICTED)),
    )
    for gold, predicted in set(zip(table[GOLD], table[PREDICTED], strict=True)):
        truth, answer = scale.lookup[of_gold(gold)], scale.lookup[of_predicted(predicted)]
        if truth == len(scale):
            continue
        if answer == len(scale):
            unanswered.append((gold, predicted))
        elif answer != truth:
            wrong.append((gold, predicted, answer - truth))
    return sorted(wrong), unanswered


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
