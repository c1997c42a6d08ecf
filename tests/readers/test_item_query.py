"""Queries of items: labels are grouped as they stand, and an empty one is missing."""

import duckdb
import pytest

from ordinate.errors import MissingLabels
from ordinate.readers.columns import ItemColumns
from ordinate.readers.confusion import count_files
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_query import QueryPlanner

COLUMNS = ItemColumns(gold="gold", predicted="predicted")


def write_parquet(path, rows):
    listed = ", ".join(f"({', '.join(row)})" for row in rows)
    duckdb.sql(f"COPY (FROM (VALUES {listed}) t(gold, predicted)) TO '{path}'")
    return str(path)


@pytest.mark.parametrize("empty", ["''", "NULL"])
def test_an_empty_label_of_a_parquet_file_is_missing(empty, tmp_path):
    rows = [("'A1'", "'A2'"), ("'B1'", "NULL"), ("'B2'", empty), (empty, "'B1'"), ("NULL", "NULL")]
    path = write_parquet(tmp_path / "a.parquet", rows)
    with pytest.raises(MissingLabels, match=r"2 of 5 gold.*row 4, row 5"):
        count_files([path], COLUMNS)
    assert count_files([path], COLUMNS, missing="drop").matrix.items.sum() == 1
    gold = write_parquet(tmp_path / "gold.parquet", rows[:3])
    with pytest.raises(MissingLabels, match=r"2 of 3 pred.*row 2, row 3"):
        count_files([gold], COLUMNS)


def test_no_question_is_asked_of_each_label_before_it_is_counted(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [("'A1'", "'A2'")])
    with open_sources() as reader:
        (part,) = (
            QueryPlanner(reader, [], reader.describe_files([path]), COLUMNS).build_items().parts
        )
    selected = part.sql.partition(" AS o0")[0]
    assert 'AS gold, CAST("predicted" AS VARCHAR) AS predicted' in selected
    assert "nullif" not in selected
