"""Columns of numbers as one matrix: which they are, in their order, with every row."""

import numpy as np
import pytest

from ordinate.errors import BadInput, BadValues
from ordinate.readers.columns import FileOptions
from ordinate.readers.file_formats import open_sources
from ordinate.tuning.experiment.numeric_matrix import describe_single_file
from ordinate.tuning.regress.numeric_table import MOST_COLUMNS, read_numeric_table


def read_file(path, names=None, delimiter=None, decimal=None, **options):
    with open_sources(FileOptions(delimiter=delimiter, decimal=decimal)) as reader:
        return read_numeric_table(describe_single_file(reader, path), names, **options)


def written(folder, header, rows):
    path = folder / "data.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_more_columns_than_one_query_takes_are_read_whole(tmp_path):
    rows = [",".join([*(f"{r * 10 + c}" for c in range(8)), "x"]) for r in range(50)]
    path = written(tmp_path, ",".join(f"c{k}" for k in range(9)), rows)
    found = read_file(path, columns_per_query=3)
    assert found.names == tuple(f"c{k}" for k in range(8))
    assert found.texts == ("c8",)
    assert (found.matrix == np.arange(50)[:, None] * 10 + np.arange(8)).all()


def test_rows_stay_in_the_order_of_the_file(tmp_path):
    found = read_file(written(tmp_path, "a,b", [f"{k},{-k}" for k in range(5000)]))
    assert found.matrix[:, 0].tolist() == list(range(5000))


def test_a_column_with_few_texts_is_an_error_and_one_with_many_is_left_out(tmp_path):
    path = written(tmp_path, "a,b", ["1,2", "2,x", "3,4"])
    with pytest.raises(BadValues, match=r"row 2 of column 'b' is 'x', which is no finite number"):
        read_file(path)
    found = read_file(written(tmp_path, "a,b", ["1,2", "2,x", "3,y"]))
    assert (found.names, found.texts, found.few) == (("a",), (), ("b",))
    with pytest.raises(BadInput, match=r"'b' of .* fewer than half of the cells are numbers"):
        read_file(written(tmp_path, "a,b", ["1,2", "2,x", "3,y"]), ["a", "b"])


def test_true_and_false_are_numbers_among_themselves_only(tmp_path):
    found = read_file(written(tmp_path, "a,b", ["true,1", "FALSE,2", "True,3"]))
    assert found.matrix.tolist() == [[1.0, 1.0], [0.0, 2.0], [1.0, 3.0]]
    with pytest.raises(BadValues, match=r"row 2 of column 'a' is empty"):
        read_file(written(tmp_path, "a,b", ["true,1", ",2", "True,3"]))
    with pytest.raises(BadValues, match=r"row 3 of column 'a' is 'true', which is no finite"):
        read_file(written(tmp_path, "a,b", ["1,1", "2,2", "true,3"]))
    assert read_file(written(tmp_path, "a,b", ["true,1", "maybe,2", "no,3"])).texts == ("a",)


def test_an_empty_column_is_an_error_and_not_a_feature(tmp_path):
    with pytest.raises(BadValues, match="row 1 of column 'b' is empty"):
        read_file(written(tmp_path, "a,b", ["1,", "2,"]))


def test_names_that_look_like_sql_are_names(tmp_path):
    path = written(tmp_path, '"a""; DROP TABLE x; --",\'b', ["1,2", "3,4"])
    assert read_file(path).names == ('a"; DROP TABLE x; --', "'b")


def test_a_file_too_large_for_memory_is_refused_before_it_is_read(tmp_path):
    with pytest.raises(BadInput, match=r"3 rows of 2 columns: too many to hold in memory"):
        read_file(written(tmp_path, "a,b", ["1,2", "2,3", "3,4"]), most_cells=5)


def test_more_columns_than_are_looked_through_are_refused_at_once(tmp_path):
    names = [f"x{k}" for k in range(MOST_COLUMNS + 1)]
    path = written(tmp_path, ",".join(names), [",".join("1" for _ in names)])
    with pytest.raises(BadInput, match=r"10,001 columns .*--features"):
        read_file(path)
    assert read_file(path, names[:2]).names == ("x0", "x1")


@pytest.mark.parametrize(
    "cell",
    [
        *("3,1", "-0,5", ",5", "1,5e3", "1.234,5", "1,234", "1,234.5", "1 234", "1\u202f234"),
        *("1'234.5", "1.234.567", "3.1%", "3 %", "3,1 %", "\u22123.1"),
    ],
)
def test_numbers_that_only_people_read_are_refused_and_not_left_out(tmp_path, cell):
    path = written(tmp_path, "a;b", [f"1;{cell}", f"2;{cell}", "3;n/a", "4;7", "5;"])
    with pytest.raises(BadInput) as told:
        read_file(path, delimiter=";")
    assert f"numbers in 'b' are written as {cell!r} is, which is not read" in str(told.value)
    assert str(told.value).endswith("Or name the columns to use with --features.")
    marks = [mark for mark in (",", ".") if f"--decimal {mark}" in str(told.value)]
    assert bool(marks) != ("%" in cell)
    with pytest.raises(BadInput, match=r"is not read"):
        read_file(path, ["a", "b"], delimiter=";")
    for mark in marks:
        with pytest.raises(BadValues, match=r"row 3 of column 'b' is 'n/a'"):
            read_file(path, ["b"], delimiter=";", decimal=mark)
    assert read_file(path, ["a"], delimiter=";").names == ("a",)


def test_all_columns_of_such_numbers_are_named(tmp_path):
    path = written(tmp_path, "a;b;c", ["1,5;1;2,5", "2,5;2;3,5"])
    with pytest.raises(BadInput, match=r"numbers in 'a', 'c' are written as '1,5'"):
        read_file(path, delimiter=";", columns_per_query=1)


@pytest.mark.parametrize(
    "cell",
    [
        *("2020-01-02", "01.02.2020", "1/2/2020", "12:30", "2020-01-02 12:30:00", "Jan 2, 2020"),
        *("A17", "17-3", "192.168.0.1", "-", "%", "1,2,3", "[1, 2]", "3,1 kg", "n/a"),
    ],
)
def test_dates_times_and_ids_are_texts(tmp_path, cell):
    found = read_file(written(tmp_path, "a;b", [f"1;{cell}", f"2;{cell}"]), delimiter=";")
    assert (found.names, found.texts) == (("a",), ("b",))


@pytest.mark.parametrize("columns_per_query", [1, 2, 256])
def test_columns_are_sorted_alike_however_many_a_query_takes(columns_per_query, tmp_path):
    """What few columns need was counted of all: 5,000 columns of numbers took a minute."""
    rows = ["1,true,x,1,1", "2,false,y,,z", "3,true,z,z,y", "x,true,x,x,x"]
    path = written(tmp_path, "many,logical,texts,few,fewer", rows)
    found = read_file(path, columns_per_query=columns_per_query, missing="drop")
    assert (found.names, found.texts) == (("many", "logical"), ("texts",))
    assert found.few == ("few", "fewer")
    assert found.matrix.tolist() == [[1, 1], [2, 0], [3, 1]]
