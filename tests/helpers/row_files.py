"""Rows as files of the usual formats."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq


def to_csv(rows: list[dict], **style) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), **{"lineterminator": "\n"} | style)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def to_jsonl(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def to_parquet(rows: list[dict]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue().to_pybytes()
