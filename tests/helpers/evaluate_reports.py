"""What tests of `ordinate evaluate` share: small files in, reports out."""

import codecs
import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import read_values, run
from row_files import to_csv, to_jsonl, to_parquet

import ordinate

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")


def report(*arguments) -> dict:
    """Return the JSON of an evaluation that must succeed."""
    ran = run("evaluate", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def text(*arguments) -> str:
    """Return the words of a text report, whatever its line breaks."""
    ran = run("evaluate", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return " ".join(ran.out.split())


def filled(result: dict) -> dict[tuple[str, str], float]:
    """Return the cells of a table that are not 0, by gold and predicted label."""
    scale = [str(label) for label in result["scale"]]
    cells = np.array(result["confusion_matrix"])
    return {(scale[i], scale[j]): cells[i, j].item() for i, j in np.argwhere(cells).tolist()}


def facts(result: dict) -> dict:
    """Return what depends neither on where the labels came from nor on other subgroups."""
    kept = {
        key: value for key, value in result.items() if key not in {"source", "difference_from_rest"}
    }
    alone = {"against_constant": None}  # no subgroup has such a test
    kept["metrics"] = {name: score | alone for name, score in result["metrics"].items()}
    return kept | {"by": {group: facts(part) for group, part in result["by"].items()}}


def close(one, two) -> bool:
    """Tell whether two documents agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(close(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(close, one, two))
    if isinstance(one, float) or isinstance(two, float):
        return None not in {one, two} and one == pytest.approx(two, rel=1e-12, abs=1e-12)
    return one == two


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(name: str, content: "str | bytes", encoding: str = "utf-8") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return name


PAIRS = "gold,predicted\nA1,A1\nB1,B2\nC1,B2\n"
CELLS = {("A1", "A1"): 1, ("B1", "B2"): 1, ("C1", "B2"): 1}
GOLD = "id,gold\n1,A1\n2,B1\n3,C1\n4,C2\n"
RUN = "predicted,id\nC1,3\nA2,1\nB1,9\nB1,2\n"
JOINED = {("A1", "A2"): 1, ("B1", "B1"): 1, ("C1", "C1"): 1}


def read_items(name: str) -> list[dict]:
    """Read a file of items."""
    if name.endswith(".parquet"):
        return pq.read_table(name).to_pylist()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]
    with Path(name).open(encoding="utf-8", newline="") as file:
        return [row | {"steps_off": _parse_steps(row["steps_off"])} for row in csv.DictReader(file)]


def _parse_steps(cell: str) -> int | None:
    return int(cell) if cell else None


# --- the same items in every format ---


def _make_rows(seed: int = 3, n: int = 60) -> list[dict]:
    """Return items of which some lack a label or a group."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        gold, off = rng.integers(0, 6), rng.integers(-1, 2)
        rows.append(
            {
                "essay": f"e{number}",
                "level": CEFR[gold] if number % 17 else None,
                "answer": CEFR[np.clip(gold + off, 0, 5)] if number % 11 else None,
                "weight": float(rng.integers(0, 9)) / 4,
                "language": ("de", "fr", None)[rng.integers(0, 3)],
                "text": 'a, "b"\nc; d\te|f',
            }
        )
    return rows


ROWS = _make_rows()
GOLDEN = [row for row in ROWS if row["level"] is not None]
COMPLETE = [row for row in GOLDEN if row["answer"] is not None]


def _dictionary_parquet(rows: list[dict]) -> bytes:
    table = pa.Table.from_pylist(rows)
    for name in ("level", "answer", "language"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].dictionary_encode())
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue().to_pybytes()


FORMS = {
    "data.csv": to_csv,
    "windows.csv": lambda rows: to_csv(rows, lineterminator="\r\n"),
    "all-quoted.csv": lambda rows: to_csv(rows, quoting=csv.QUOTE_ALL),
    "semicolon.csv": lambda rows: to_csv(rows, delimiter=";"),
    "marked.csv": lambda rows: codecs.BOM_UTF8 + to_csv(rows),
    "utf16.csv": lambda rows: to_csv(rows).decode().encode("utf-16"),
    "big-endian.csv": lambda r: codecs.BOM_UTF16_BE + to_csv(r).decode().encode("utf-16-be"),
    "data.tsv": lambda rows: to_csv(rows, delimiter="\t"),
    "data.jsonl": to_jsonl,
    "data.json": lambda rows: json.dumps(rows).encode(),
    "data.parquet": to_parquet,
    "dictionary.parquet": _dictionary_parquet,
    "data.csv.gz": lambda rows: gzip.compress(to_csv(rows)),
    "utf16.csv.gz": lambda rows: gzip.compress(to_csv(rows).decode().encode("utf-16")),
    "data.tsv.gz": lambda rows: gzip.compress(to_csv(rows, delimiter="\t")),
    "data.jsonl.gz": lambda rows: gzip.compress(to_jsonl(rows)),
    "csv-without-suffix": to_csv,
    "jsonl-without-suffix": to_jsonl,
    "parquet-without-suffix": to_parquet,
    "gzip-without-suffix": lambda rows: gzip.compress(to_jsonl(rows)),
    "UPPER.CSV": to_csv,
}


def evaluate_rows(rows: list[dict], weights=None, by=None, missing="error") -> ordinate.Evaluation:
    def column(name):
        return None if name is None else [row[name] for row in rows]

    return ordinate.evaluate(
        column("level"),
        column("answer"),
        "cefr",
        weights=column(weights),
        by=column(by),
        missing=missing,
    )
