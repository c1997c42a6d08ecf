"""Columns of numbers as one matrix: which they are, in their order, with every row."""

import numpy as np
import pytest

from ordinate.data import numeric
from ordinate.data.numeric import read_numeric
from ordinate.errors import BadInput, BadValues


def written(folder, header, rows):
    path = folder / "data.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_more_columns_than_one_query_takes_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(numeric, "BLOCK", 3)
    rows = [",".join([*(f"{r * 10 + c}" for c in range(8)), "x"]) for r in range(50)]
    found = read_numeric(written(tmp_path, ",".join(f"c{k}" for k in range(9)), rows))
    assert found.names == tuple(f"c{k}" for k in range(8))
    assert found.texts == ("c8",)
    assert (found.matrix == np.arange(50)[:, None] * 10 + np.arange(8)).all()


def test_rows_stay_in_the_order_of_the_file(tmp_path):
    found = read_numeric(written(tmp_path, "a,b", [f"{k},{-k}" for k in range(5000)]))
    assert found.matrix[:, 0].tolist() == list(range(5000))


def test_a_column_with_few_texts_is_an_error_and_one_with_many_is_left_out(tmp_path):
    path = written(tmp_path, "a,b", ["1,2", "2,x", "3,4"])
    with pytest.raises(BadValues, match=r"row 2 of column 'b' is 'x', which is no finite number"):
        read_numeric(path)
    assert read_numeric(written(tmp_path, "a,b", ["1,2", "2,x", "3,y"])).texts == ("b",)


def test_true_and_false_are_numbers_among_themselves_only(tmp_path):
    found = read_numeric(written(tmp_path, "a,b", ["true,1", "FALSE,2", "True,3"]))
    assert found.matrix.tolist() == [[1.0, 1.0], [0.0, 2.0], [1.0, 3.0]]
    with pytest.raises(BadValues, match=r"row 2 of column 'a' is empty"):
        read_numeric(written(tmp_path, "a,b", ["true,1", ",2", "True,3"]))
    with pytest.raises(BadValues, match=r"row 3 of column 'a' is 'true', which is no finite"):
        read_numeric(written(tmp_path, "a,b", ["1,1", "2,2", "true,3"]))
    assert read_numeric(written(tmp_path, "a,b", ["true,1", "maybe,2", "no,3"])).texts == ("a",)


def test_an_empty_column_is_an_error_and_not_a_feature(tmp_path):
    with pytest.raises(BadValues, match="row 1 of column 'b' is empty"):
        read_numeric(written(tmp_path, "a,b", ["1,", "2,"]))


def test_names_that_look_like_sql_are_names(tmp_path):
    path = written(tmp_path, '"a""; DROP TABLE x; --",\'b', ["1,2", "3,4"])
    assert read_numeric(path).names == ('a"; DROP TABLE x; --', "'b")


def test_a_file_too_large_for_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(numeric, "MOST", 5)
    with pytest.raises(BadInput, match=r"3 rows of 2 columns: too many to hold in memory"):
        read_numeric(written(tmp_path, "a,b", ["1,2", "2,3", "3,4"]))
