"""Columns of files as they stand."""

import numpy as np
import pytest

from ordinate.data import rows
from ordinate.data.rows import read_columns
from ordinate.errors import BadInput


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


def test_too_many_rows_and_unknown_columns_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    with pytest.raises(BadInput, match="has no column 'y'"):
        read_columns([str(path)], ["y"])
    monkeypatch.setattr(rows, "MOST", 1)
    with pytest.raises(BadInput, match="2 rows are too many"):
        read_columns([str(path)], ["x"])
