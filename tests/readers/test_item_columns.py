"""Columns of files as they stand."""

import numpy as np
import pytest

from ordinate.errors import BadInput
from ordinate.readers.item_columns import read_columns


def test_numbers_are_numbers_and_texts_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,name,mixed\n1.5,a,1\n,b,2a\n-3e2,,3\n")
    found = read_columns([str(path)], ["x", "name", "mixed"])
    assert np.array_equal(found["x"], [1.5, np.nan, -300.0], equal_nan=True)
    assert found["name"] == ["a", "b", None]
    assert found["mixed"] == ["1", "2a", "3"]


def test_files_follow_each_other(tmp_path):
    for name, value in (("a.csv", 1), ("b.csv", 2)):
        (tmp_path / name).write_text(f"x\n{value}\n{value}\n")
    found = read_columns([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], ["x"])
    assert found["x"].tolist() == [1, 1, 2, 2]


def test_too_many_rows_and_unknown_columns_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    with pytest.raises(BadInput, match="has no column 'y'"):
        read_columns([str(path)], ["y"])
    with pytest.raises(BadInput, match="2 rows are too many"):
        read_columns([str(path)], ["x"], most_rows=1)


def test_items_keep_their_rows_and_files_when_some_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, cells in (("a.csv", "1\n,\n3"), ("b.csv", "4\n5")):
        lines = [f"{cell},g{k}" if cell != "," else ",g" for k, cell in enumerate(cells.split())]
        (tmp_path / name).write_text("\n".join(["x,g", *lines]) + "\n")
    one = read_columns(["a.csv"], ["x"])
    assert list(one.places) == ["row 1", "row 2", "row 3"]
    both = read_columns(["a.csv", "b.csv"], ["x", "g"], labels=["x"])
    kept = both.select_rows(~np.isnan(both["x"]))
    assert len(kept) == 4
    assert kept["x"].tolist() == [1, 3, 4, 5]
    assert kept["g"] == ["g0", "g2", "g0", "g1"]
    assert kept.labels["x"].tolist() == ["1", "3", "4", "5"]
    assert kept.row.tolist() == [1, 3, 1, 2]
    assert list(kept.places)[1:] == ["a.csv:3", "b.csv:1", "b.csv:2"]
    assert both.select_rows(np.ones(5, bool)) is both


def test_a_row_may_hold_a_text_of_megabytes(tmp_path):
    path, long = tmp_path / "long.csv", "词" * 700_000
    path.write_text(f'id,text\na,"{long}"\nb,short\n', encoding="utf-8")
    assert read_columns([str(path)], [], labels=["text"]).labels["text"].tolist() == [long, "short"]
