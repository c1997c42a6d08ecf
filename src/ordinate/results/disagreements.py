"""Items that disagree, written by the engine that counted them."""

from pathlib import Path

from ordinate.errors import BadOutput
from ordinate.readers.confusion import ConfusionReader
from ordinate.readers.duckdb_connection import (
    copy_to_file,
    quote_identifier,
    quote_literal,
    run_query,
)
from ordinate.readers.item_query import FileItems, ItemQuery, make_names_distinct
from ordinate.readers.items import GOLD, PREDICTED
from ordinate.scale import Scale

CSV_FORMAT = "csv, HEADER"
COPY_FORMATS = {  # by suffix
    "": CSV_FORMAT,
    ".csv": CSV_FORMAT,
    ".txt": CSV_FORMAT,
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json, ARRAY true",
    ".tsv": "csv, HEADER, DELIMITER '\t'",
}
OFF_BY_COLUMN = "steps_off"  # predicted minus gold level; empty without a prediction


def find_copy_format(path: Path) -> str:
    """Return how the engine writes a file, or refuse it before any work is done."""
    if path.suffix.lower() not in COPY_FORMATS:
        known = ", ".join(filter(None, COPY_FORMATS))
        raise BadOutput(f"Items are written as {known}, not as *{path.suffix}.")
    return COPY_FORMATS[path.suffix.lower()]


def write_disagreements(
    out: Path, form: str, items: FileItems, reading: ConfusionReader, scale: Scale
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
    selections = [_build_selection_sql(part, steps, silent) for part in items.parts]
    query = " UNION ALL BY NAME ".join(selections)
    run_query(lambda: copy_to_file(items.connection, query, out, form), str(out))


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


def _build_selection_sql(part: ItemQuery, steps: str, silent: list[str]) -> str:
    own = (*(f"o{k}" for k in range(len(part.own))), "steps")
    names = make_names_distinct(*part.own, OFF_BY_COLUMN)
    selected = (f"{x} AS {quote_identifier(name)}" for x, name in zip(own, names, strict=True))
    condition = " OR ".join(["steps IS NOT NULL", *(f"({text})" for text in silent)])
    return (
        f"SELECT {', '.join(selected)} FROM (SELECT *, {steps} AS steps FROM ({part.sql})) "
        f"WHERE in_gold AND ({condition})"
    )
