"""Cells that should hold numbers: what is refused with its place, and what is left out."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from regression_files import items, name_columns, value, write
from row_files import to_csv, to_jsonl

from ordinate.errors import BadInput, BadOption, BadValues, BadWeights, MissingLabels, NoItems
from ordinate.readers.regression import sum_files

# --- what is no number ---------------------------------------------------------------------------

STRANGE = ["many", "nan", "inf", "-Infinity", "1,5", "1e999", "true", " "]


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize(
    ("name", "role", "missing"), [("y", "target", "error"), ("pred", "prediction", "drop")]
)
def test_what_is_no_finite_number_is_named_and_never_dropped(text, name, role, missing):
    rows = [{"y": 1.0, "pred": 2.0}, {"y": 2.0, "pred": 3.0} | {name: text}]
    write("a.csv", to_csv(rows))
    with pytest.raises(BadValues, match=rf"The {role} \(row 2 of column '{name}'\) is '{text}'"):
        sum_files(["a.csv"], name_columns("y", "pred"), missing=missing)


def test_errors_say_in_which_file_a_cell_is():
    write("a.jsonl", '{"y":1,"pred":2}\n')
    write("b.jsonl", '{"y":1,"pred":2}\n{"y":1,"pred":"many"}\n')
    where = r"The prediction \(row 2 of b\.jsonl of column 'pred'\) is 'many'"
    with pytest.raises(BadValues, match=where):
        sum_files(["a.jsonl", "b.jsonl"], name_columns("y", "pred"), missing="drop")


@pytest.mark.parametrize("values", [[1.0, 1.0], [1.0, 2.0], [-math.inf, -math.inf]])
@pytest.mark.parametrize("name", ["y", "pred", "low", "high", "weight"])
def test_nan_is_found_in_parquet_whatever_its_statistics_say(values, name):
    columns = {"y": [1.0] * 3, "pred": [1.0] * 3, "low": [-math.inf] * 3, "high": [3.0] * 3}
    columns["weight"] = [2.0] * 3
    kept = values if name == "low" or math.isfinite(values[0]) else [1.0, 3.0]
    pq.write_table(pa.table(columns | {name: [*kept, math.nan]}), "bad.parquet")
    wanted = name_columns("y", "pred", weights="weight", lower="low", upper="high")
    with pytest.raises((BadValues, BadWeights), match=rf"\(row 3 of column '{name}'\) is '?nan"):
        sum_files(["bad.parquet"], wanted, missing="drop")


@pytest.mark.parametrize(("name", "bad"), [("y", math.inf), ("low", math.inf), ("high", -math.inf)])
def test_infinite_numbers_of_parquet_are_bounds_or_none(name, bad):
    columns = {"y": [1.0] * 3, "pred": [1.0] * 3, "low": [-math.inf] * 3, "high": [math.inf] * 3}
    pq.write_table(pa.table(columns | {name: [1.0, 1.0, bad]}), "bad.parquet")
    with pytest.raises(BadValues, match=rf"\(row 3 of column '{name}'\) is '{bad}'"):
        sum_files(["bad.parquet"], name_columns("y", "pred", lower="low", upper="high"))
    pq.write_table(pa.table(columns), "good.parquet")
    found = sum_files(["good.parquet"], name_columns("y", "pred", lower="low", upper="high"))
    assert (float(found.bounds.endless), float(found.bounds.mean("covered"))) == (3, 1)


def test_dates_are_no_numbers():
    times = pa.array([0, 1], pa.timestamp("us"))
    pq.write_table(pa.table({"y": times, "pred": [1.0, 2.0]}), "dates.parquet")
    with pytest.raises(BadValues, match=r"row 1 of column 'y'\) is '1970-01-01 00:00:00'"):
        sum_files(["dates.parquet"], name_columns("y", "pred"))


HOLES = {
    "holes.csv": "y,pred,site\n1,2,a\n,3,a\n4,,a\n5,5.5,\n6,7,b\n",
    "holes.jsonl": (
        '{"y":1,"pred":2,"site":"a"}\n{"y":"","pred":3,"site":"a"}\n{"y":4,"pred":null,"site":"a"}\n'
        '{"y":5,"pred":5.5,"site":""}\n{"y":6,"pred":"7","site":"b"}\n'
    ),
}


@pytest.mark.parametrize("name", HOLES)
def test_empty_cells_are_refused_by_row_and_column_or_dropped_and_counted(name):
    write(name, HOLES[name])
    columns = name_columns("y", "pred")
    with pytest.raises(
        MissingLabels, match=r"1 of 5 targets in column 'y' are missing \(row 2\). Leave them out"
    ):
        sum_files([name], columns)
    found = sum_files([name], columns, missing="drop").moments
    assert (found.n, found.dropped, value("mae", found)) == (3, 2, pytest.approx(2.5 / 3))
    grouped = sum_files([name], name_columns("y", "pred", groups="site"), missing="drop")
    assert (grouped.moments.n, grouped.moments.dropped) == (2, 3)
    assert grouped.groups.items.tolist() == [1, 1]


@pytest.mark.parametrize("text", ["-", "n/a", "NA", " null ", "None", "."])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_spellings_of_missing_numbers_are_missing(text, ending):
    rows = [{"id": k, "y": 1.0 * k, "pred": k + 0.5} for k in range(4)]
    rows[2] |= {"pred": text}
    path = write(f"a.{ending}", (to_csv if ending == "csv" else to_jsonl)(rows))
    write("gold.csv", "id,y\n0,0\n1,1\n2,2\n3,n/a\n")
    joined = name_columns("y", "pred", gold_file="gold.csv", id="id")
    with pytest.raises(MissingLabels, match=r"1 of 4 predictions in column 'pred'.*\(row 3\)"):
        sum_files([path], name_columns("y", "pred"))
    for columns, dropped in ((name_columns("y", "pred"), 1), (joined, 2)):
        found = sum_files([path], columns, missing="drop").moments
        assert (found.n, found.dropped) == (4 - dropped, dropped)


def test_missing_predictions_and_groups_are_named():
    write("p.csv", "y,pred\n1,2\n2,\n3,\n")
    with pytest.raises(MissingLabels, match=r"2 of 3 predictions in column 'pred'.*row 2, row 3"):
        sum_files(["p.csv"], name_columns("y", "pred"))
    write("g.csv", "y,pred,site\n1,2,a\n2,3,\n")
    with pytest.raises(MissingLabels, match=r"1 of 2 items have no group \(row 2 of column 'site'"):
        sum_files(["g.csv"], name_columns("y", "pred", groups="site"))


def test_a_subgroup_knows_what_was_dropped_from_it():
    write("d.csv", "y,pred,season\n1,2,dry\n2,,dry\n3,4,wet\n,4,\n")
    found = sum_files(["d.csv"], name_columns("y", "pred", by="season"), missing="drop")
    kept = {name: (part.n, part.dropped) for name, (part, _) in found.by}
    assert kept == {"dry": (1, 1), "wet": (1, 0), None: (0, 1)}
    assert math.isnan(value("mae", dict(found.by)[None][0]))


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "", "heavy", "1e151"])
def test_weights_are_finite_numbers_of_at_least_0(text):
    write("w.csv", f"y,pred,weight\n1,2,1\n2,3,{text}\n")
    with pytest.raises(BadWeights, match=r"The weight \(row 2 of column 'weight'\)"):
        sum_files(["w.csv"], name_columns("y", "pred", weights="weight"))


def test_there_must_be_items():
    columns = name_columns("y", "pred", weights="weight")
    write("none.csv", "y,pred,weight\n")
    with pytest.raises(NoItems, match="has a header and no rows"):
        sum_files(["none.csv"], columns)
    write("light.csv", "y,pred,weight\n1,2,0\n")
    with pytest.raises(NoItems, match="all weights are 0"):
        sum_files(["light.csv"], columns)
    write("holes.csv", "y,pred,weight\n1,,1\n,2,1\n")
    with pytest.raises(NoItems, match="all 2 lack a value"):
        sum_files(["holes.csv"], columns, missing="drop")


@pytest.mark.parametrize(("pair", "what"), [("1e90,2", "large"), ("1e-90,2e-90", "small")])
def test_values_that_cannot_be_squared_twice_are_refused(pair, what):
    write("a.csv", f"y,pred\n{pair}\n{pair}\n")
    with pytest.raises(BadValues, match=f"too {what} to be squared twice"):
        sum_files(["a.csv"], name_columns("y", "pred"))


@pytest.mark.parametrize("weights", [None, "weight"])
@pytest.mark.parametrize("by", [None, "season"])
def test_targets_that_are_all_equal_have_no_variance_at_all(weights, by):
    rows = [row | {"y": 0.1, "pred": 0.4, "weight": k / 7} for k, row in enumerate(items(399))]
    columns = name_columns("y", "pred", weights, by)
    found = sum_files([write("equal.csv", to_csv(rows))], columns).moments
    assert found.constants == {"mean": 0.1}
    assert (float(found.plain.y), float(found.plain.mean(2, 0))) == (0.1, 0.0)
    assert (float(found.plain.mean(0, 2)), float(found.spread["mean"])) == (0.0, 0.0)
    assert math.isnan(value("r2", found))


def test_missing_values_are_an_error_or_dropped():
    write("a.csv", "y,pred\n1,2\n")
    with pytest.raises(BadOption, match="missing='worst' is not one of error, drop"):
        sum_files(["a.csv"], name_columns("y", "pred"), missing="worst")


def test_a_broken_file_is_named():
    write("a.csv", "y,pred\n1,2\n")
    write("b.csv", "y,pred\n1,2\n1,2,3\n")
    with pytest.raises(BadInput, match=r"b\.csv cannot be read"):
        sum_files(["a.csv", "b.csv"], name_columns("y", "pred"))
