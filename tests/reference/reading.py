"""What a run left, as plain values: reports, tables, arrays, folders, Python results.

What differs from run to run, or with every name, is left out: times, versions, sizes of files,
manifests, and the hashes at the end of the names of models, which are digests of settings.
"""

import csv
import dataclasses
import hashlib
import io
import json
import re
import sqlite3
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import isroutine
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from renaming import read_attribute, resolve

# At the end of a name, or on the next line where a long name is broken at a hyphen.
HASH = re.compile(r"(?<=-)\s*[0-9a-f]{12}(?!\w)|(?<![\w.])[0-9a-f]{12}(?!\w|\.\d)|[0-9a-f]{64}")
HIDDEN = "#"
# A number that stands alone: no part of a word, of a name, or of something like 1..6.
NUMBER = re.compile(r"(?<![\w.#])[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w|\.\d)")
WHOLE = re.compile(r"-?\d{1,15}")
LONGEST, MOST_WORDS = 3_000, 500  # of longer arrays and lists the digest is recorded
SKIPPED = {"manifest.json", "README.txt", "ids.csv"}


def find_numbers(text: str) -> list[str]:
    """Return all numbers of a text in their order, as they are written."""
    return NUMBER.findall(hide_hashes(text))


def hide_hashes(text: str) -> str:
    """Replace what depends on the names of settings."""
    return HASH.sub(HIDDEN, text)


def read_report(text: str, form: str) -> Any:
    """Return what a report says, by the form that it is written in."""
    if form == "json":
        return make_plain(json.loads(text))
    if form == "csv":
        return read_rows(text)
    return {"numbers": find_numbers(text)}


def read_rows(text: str) -> list[dict[str, Any]]:
    """Return the records of a CSV, numbers as numbers."""
    rows = csv.DictReader(io.StringIO(text))
    return [{hide_hashes(key): _read_cell(cell) for key, cell in row.items()} for row in rows]


def _read_cell(cell: str | None) -> Any:
    if cell is None:
        return None
    if WHOLE.fullmatch(cell):
        return int(cell)
    try:
        return float(cell)
    except ValueError:
        return hide_hashes(cell)


# --- Python values -------------------------------------------------------------------------------


def make_plain(value: Any) -> Any:
    """Return a result as JSON knows it, without hashes; long arrays as digests."""
    if value is None or isinstance(value, bool | int | float):
        return value
    for kind, read in KINDS.items():
        if isinstance(value, kind):
            return read(value)
    return _read_object(value)


def _hide_keys(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a dictionary whose keys have no hashes; keys that become equal are numbered."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = unused = hide_hashes(str(key))
        count = 1
        while unused in found:
            count += 1
            unused = f"{name}~{count}"
        found[unused] = make_plain(item)
    return found


def _read_object(value: Any) -> Any:
    """Return a result by its own plain values, or a record by its fields."""
    if hasattr(value, "to_dict"):
        return make_plain(value.to_dict())
    if isinstance(value, resolve("ordinate.Metric")):
        return read_attribute(value, "ordinate.Metric.expression")
    if dataclasses.is_dataclass(value):
        cells = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return make_plain({key: cell for key, cell in cells.items() if not isroutine(cell)})
    if isinstance(value, Iterable):
        return _shorten([make_plain(item) for item in value])
    raise TypeError(f"There is no plain form of {type(value).__name__}.")


def _read_array(array: np.ndarray) -> Any:
    if array.dtype.kind in "SU":
        return make_plain(array.tolist())
    if array.dtype.kind == "O":
        return make_plain(list(array))
    if array.size <= LONGEST:
        return array.tolist()
    content = np.ascontiguousarray(array)
    return {
        "shape": list(array.shape),
        "sum": float(array.sum(dtype=float)),
        "digest": _digest(content.astype(content.dtype.newbyteorder("<")).tobytes()),
    }


def _shorten(items: list[Any]) -> Any:
    words = all(isinstance(item, str) for item in items)
    if len(items) <= (MOST_WORDS if words else LONGEST):
        return items
    return {"length": len(items), "digest": _digest(json.dumps(items).encode())}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]  # not as long as what is hidden


KINDS: dict[type, Callable[[Any], Any]] = {
    str: hide_hashes,
    np.generic: lambda value: make_plain(value.item()),
    np.ndarray: _read_array,
    Mapping: _hide_keys,
}


# --- files ---------------------------------------------------------------------------------------


def read_tree(folder: Path, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what the files of a folder say, in dictionaries as the folders are."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        *folders, name = path.relative_to(folder).parts
        if (
            path.is_file()
            and path.suffix in READERS
            and not {name, *folders} & {*SKIPPED, *without}
        ):
            place = found
            for part in folders:
                place = place.setdefault(hide_hashes(part), {})
            place[hide_hashes(name)] = read_file(path)
    return found


def read_file(path: Path) -> Any:
    """Return what one file says."""
    return READERS[path.suffix](path)


def _read_table(path: Path) -> Any:
    return _sum_up(read_rows(path.read_text("utf-8")))


def _read_lines(path: Path) -> Any:
    return make_plain([json.loads(line) for line in path.read_text("utf-8").splitlines()])


def _read_parquet(path: Path) -> Any:
    with duckdb.connect() as connection:
        table = connection.read_parquet(str(path))
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
    return _sum_up(make_plain(rows))


def _sum_up(rows: list[dict[str, Any]]) -> Any:
    """Return the records of a table, or the digest of each column where they are many."""
    if sum(len(row) for row in rows) <= LONGEST:
        return rows
    columns = {name: _digest(json.dumps([row[name] for row in rows]).encode()) for name in rows[0]}
    return {"rows": len(rows), "digests": columns}


def _read_arrays(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: make_plain(arrays[name]) for name in sorted(arrays.files)}


def _read_trials(path: Path) -> Any:
    """Return all trials of all studies that Optuna stored, without their times.

    The tables are read as they are, for their names are Optuna's and stay. Studies come in the
    order in which they were begun, under their names without the hashes.
    """
    asked = {
        "value": "SELECT trial_id, 'value', value FROM trial_values",
        "params": "SELECT trial_id, param_name, param_value FROM trial_params",
        "after": "SELECT trial_id, step, intermediate_value FROM trial_intermediate_values",
    }
    with sqlite3.connect(path) as database:
        trials = database.execute(
            "SELECT study_name, number, trial_id, state FROM trials JOIN studies"
            " USING (study_id) ORDER BY study_id, number"
        ).fetchall()
        parts = {name: database.execute(query).fetchall() for name, query in asked.items()}
    found: dict[str, list[Any]] = {}
    for study, number, identity, state in trials:
        cells = {
            name: {str(key): value for owner, key, value in rows if owner == identity}
            for name, rows in parts.items()
        }
        found.setdefault(study, []).append({"number": number, "state": state} | cells)
    return make_plain(found)


READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _read_table,
    ".db": _read_trials,
    ".json": lambda path: make_plain(json.loads(path.read_text("utf-8"))),
    ".jsonl": _read_lines,
    ".md": lambda path: {"numbers": find_numbers(path.read_text("utf-8"))},
    ".npy": lambda path: make_plain(np.load(path, allow_pickle=False)),
    ".npz": _read_arrays,
    ".parquet": _read_parquet,
    ".toml": lambda path: make_plain(tomllib.loads(path.read_text("utf-8"))),
}
