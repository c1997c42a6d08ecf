"""Tables and what is none: errors that name the column, the rows, or what is taken instead."""

import sqlite3
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import ordinate
from ordinate.errors import BadInput, BadOption, MissingLabels, NoItems

NAMED = {"gold": "level", "predicted": "guess", "scale": "1..3", "interval": None}
ROWS = {"id": ["a", "b", "c"], "level": [1.0, 2.0, 3.0], "guess": [1.0, float("nan"), 3.0]}


def make_query(rows):
    connection = duckdb.connect()
    connection.register("given", pa.table(rows))
    connection.execute("create table items as select * from given")
    return ordinate.Query(connection, "select * from items")


LAZY = {
    "Polars": pl.LazyFrame,
    "DuckDB": lambda rows: duckdb.from_arrow(pa.table(rows)),
    "query": make_query,
}
lazy = pytest.mark.parametrize("make", LAZY.values(), ids=LAZY)


@lazy
@pytest.mark.parametrize(("gold", "predicted"), [("level", "guess"), ("guess", "level")])
def test_labels_that_are_no_numbers_are_found(make, gold, predicted):
    with pytest.raises(MissingLabels, match=r"1 of 3 .* are missing\. Leave"):
        ordinate.evaluate(make(ROWS), **NAMED | {"gold": gold, "predicted": predicted})


@lazy
def test_empty_labels_are_found(make):
    rows = {"level": ["1", "2", "2"], "guess": ["", "1", None]}
    with pytest.raises(MissingLabels, match=r"2 of 3 predictions are missing\. Leave"):
        ordinate.evaluate(make(rows), **NAMED)


@lazy
def test_numbers_that_are_renamed_to_nothing_are_found(make):
    rows = {"level": [1.0, 2.0], "guess": [1.0, 2.0]}
    with pytest.raises(MissingLabels, match=r"1 of 2 gold labels are missing\. Leave"):
        ordinate.evaluate(make(rows), label_map={"2": None}, **NAMED)


# --- tables that cannot be read ------------------------------------------------------------------


def make_arrow(names):
    return pa.Table.from_arrays([pa.array(["1"])] * len(names), names=names)


@pytest.mark.parametrize(
    ("make", "library"),
    [
        (lambda names: pd.DataFrame([["1"] * len(names)], columns=names), "pandas"),
        (make_arrow, "pyarrow"),
        (lambda names: make_arrow(names).to_reader(), "pyarrow"),
    ],
)
def test_columns_of_one_name_are_refused(make, library):
    with pytest.raises(BadInput, match=f"the {library} frame has two columns named 'x'. Rename"):
        ordinate.evaluate(make(["level", "x", "guess", "x"]), **NAMED)


@pytest.mark.parametrize("scale", [None, "1..3"])
def test_batches_that_were_read_have_no_items(scale):
    batches = make_arrow(["level", "guess"]).to_reader()
    batches.read_all()
    with pytest.raises(NoItems, match="There are no items"):
        ordinate.evaluate(batches, **NAMED | {"scale": scale})


def test_columns_without_items_are_no_labels_without_a_scale():
    with pytest.raises(NoItems, match="There are no items: the columns are empty"):
        ordinate.compare([], {"a": [], "b": []})


STRANGE = {
    "path": lambda folder: folder / "items.csv",
    "name": lambda folder: str(folder / "items.csv"),
    "dataset": lambda folder: pyarrow.dataset.dataset(folder / "items.csv", format="csv"),
    "connection": lambda _: sqlite3.connect(":memory:"),
    "connection of DuckDB": lambda _: duckdb.connect(),
    "dictionaries": lambda _: [{"level": "1", "guess": "1"}],
    "series": lambda _: pd.Series(["1"]),
}
CALLS = {
    "evaluate": lambda data: ordinate.evaluate(data, **NAMED),
    "compare": lambda data: ordinate.compare(data, ["guess", "other"], "1,2", gold="level"),
    "evaluate_regression": lambda data: ordinate.evaluate_regression(
        data, target="level", predicted="guess"
    ),
    "compare target": lambda data: ordinate.compare(data, ["guess", "other"], target="level"),
}


READS_FILES = {"evaluate", "compare", "compare target"}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("function", CALLS)
def test_what_is_no_table_is_told_what_is_one(tmp_path, kind, function):
    Path(tmp_path / "items.csv").write_text("level,guess,other\n1,1,2\n")
    data, call = STRANGE[kind](tmp_path), CALLS[function]
    if kind in {"path", "name"} and function in READS_FILES:
        assert call(data).to_dict()["n"] == 1
        return
    with pytest.raises(BadInput, match=r"is no table\. Pass a frame of pandas, .*Query\(connec"):
        call(data)
    if hasattr(data, "close"):
        data.close()


def test_systems_of_a_table_are_named():
    with pytest.raises(BadOption, match="Comparing takes 2 to 500 systems, not 0"):
        ordinate.compare(ROWS, gold="level")


def test_predictions_may_be_labels_or_probabilities():
    with pytest.raises(BadOption, match="pass predicted=… or probabilities=…"):
        ordinate.evaluate(ROWS, gold="level")


@pytest.mark.parametrize(("argument", "shown"), [("gold", "lists"), ("by", "by")])
def test_a_column_of_lists_is_named(argument, shown):
    rows = {"level": ["1", "2"], "guess": ["1", "2"], "lists": [["1"], ["2"]]}
    with pytest.raises(BadInput, match=f"^{shown} holds values that are not hashable"):
        ordinate.evaluate(pl.LazyFrame(rows), **NAMED | {argument: "lists"})
