"""The items that disagree, written from inside the engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ordinate.data.engine import Connection
from ordinate.data.query import GROUP, ID, IN_GOLD, IN_PREDICTED, WEIGHT, G, Items, P
from ordinate.data.sources import literal, quoted, read
from ordinate.scale import Scale

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "json", ".ndjson": "json"}
OWN = {G, P, WEIGHT, GROUP, IN_GOLD, IN_PREDICTED, ID}
OFF_BY = "steps_off"  # predicted minus gold level; empty without a prediction


def write_items(
    connection: Connection,
    items: list[Items],
    scale: Scale,
    renamed: dict[str, str],
    cells: Sequence[Any],
    out: Path,
) -> None:
    """Write the items whose prediction is wrong or missing, in the order of the files."""
    steps = _steps(scale, cells, renamed)
    form = FORMATS.get(out.suffix.lower(), "csv")
    parts = [_wrong(connection, part, steps, form) for part in items]
    query = " UNION ALL BY NAME ".join(parts)
    header = ", HEADER" if form == "csv" else ""
    read(connection, f"COPY ({query}) TO {literal(str(out))} (FORMAT {form}{header})", str(out))


def _steps(scale: Scale, cells: Sequence[Any], renamed: dict[str, str]) -> str:
    """Return SQL for how far a prediction is off: NULL where it is right."""
    spelled: dict[str, set[str]] = {}
    for old, new in renamed.items():
        spelled.setdefault(new, {new}).add(old)
    cases = []
    for cell in cells:
        if cell.gold is None or cell.predicted is None:
            continue
        off = scale.lookup[cell.predicted] - scale.lookup[cell.gold]
        if off:
            gold, predicted = (spelled.get(x, {x}) for x in (cell.gold, cell.predicted))
            cases.append(f"WHEN {G} IN {_listed(gold)} AND {P} IN {_listed(predicted)} THEN {off}")
    return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS INTEGER)"


def _listed(texts: set[str]) -> str:
    return f"({', '.join(map(literal, sorted(texts)))})"


def _wrong(connection: Connection, part: Items, steps: str, form: str) -> str:
    described = read(connection, f"DESCRIBE {part.sql}", part.name)
    columns = [(name, kind) for name, kind, *_ in described if name not in OWN]
    chosen = ", ".join(
        _harmless(name) if kind == "VARCHAR" and form == "csv" else quoted(name)
        for name, kind in columns
    )
    return (
        f"SELECT {chosen}, {steps} AS {OFF_BY} FROM ({part.sql}) "  # noqa: S608 - names are quoted
        f"WHERE {IN_GOLD} AND {G} IS NOT NULL AND ({P} IS NULL OR {steps} IS NOT NULL)"
    )


def _harmless(column: str) -> str:
    """Return SQL for a text that a spreadsheet shows and does not run."""
    name = quoted(column)
    formula = f"regexp_matches({name}, '^[=+@\\t\\r-]') AND TRY_CAST({name} AS DOUBLE) IS NULL"
    return f"CASE WHEN {formula} THEN '''' || {name} ELSE {name} END AS {name}"
