"""Tables of regressors: what is read, what is left out, what is refused, and by which name."""

import datetime as dt
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordinate.errors import (
    BadInput,
    BadOption,
    BadStore,
    BadValues,
    NoItems,
    UnequalLengths,
)
from ordinate.tuning.models.target_scaling import FeatureTargetScaler
from ordinate.tuning.regress.table import load_table, make_table, read_new_rows, read_table


def written(folder, rows, header="a,b,y", name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding=encoding)
    return str(path)


def lines(n=60):
    return [f"{k},{(k * 7) % 13},{k * 0.5 + (k * 7) % 13}" for k in range(n)]


# --- reading -------------------------------------------------------------------------------------


def test_features_are_all_columns_of_numbers_but_the_target(tmp_path):
    table = read_table(written(tmp_path, lines()), "y")
    assert table.names == ("a", "b")
    assert table.features.shape == (60, 2)
    assert table.features.dtype == np.float64
    assert table.features[3].tolist() == [3.0, 8.0]
    assert table.target[3] == 9.5
    assert (len(table), table.notes, table.groups) == (60, (), None)


def test_named_features_are_taken_in_their_order(tmp_path):
    table = read_table(written(tmp_path, lines()), "y", features=["b", "a"])
    assert table.names == ("b", "a")
    assert table.features[3].tolist() == [8.0, 3.0]
    assert table.column("a")[3] == 3.0
    assert table.column("y")[3] == 9.5


def test_parquet_and_csv_give_the_same_table_and_fingerprint(tmp_path):
    text = read_table(written(tmp_path, lines()), "y")
    columns = {"a": text.features[:, 0], "b": text.features[:, 1].astype(int), "y": text.target}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    packed = read_table(str(tmp_path / "data.parquet"), "y")
    assert packed.names == text.names
    assert (packed.features == text.features).all()
    assert packed.fingerprint == text.fingerprint


def test_the_fingerprint_changes_with_a_value_a_name_and_a_group():
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    groups = list("ab") * 10
    marks = {
        make_table(x, y).fingerprint,
        make_table(x + np.eye(20, 2) * 1e-12, y).fingerprint,
        make_table(x, y, names=["p", "q"]).fingerprint,
        make_table(x, y, target_name="z").fingerprint,
        make_table(x, y, groups=groups).fingerprint,
    }
    assert len(marks) == 5
    assert make_table(x, y).fingerprint in marks


def test_a_column_of_texts_is_left_out_and_named(tmp_path):
    rows = [f"{row},{'red' if k % 2 else 'blue'}" for k, row in enumerate(lines())]
    path = written(tmp_path, rows, "a,b,y,colour")
    table = read_table(path, "y")
    assert table.names == ("a", "b")
    assert table.notes == ("Left out, for they hold no numbers: 'colour'.",)
    with pytest.raises(BadInput, match=r"'colour' of .* holds no numbers.*turn it into"):
        read_table(path, "y", features=["a", "colour"])


def test_bad_lines_are_left_out_and_counted(tmp_path):
    path = written(tmp_path, [*lines(), "1,2", "1,2,3,4"])
    table = read_table(path, "y", bad_lines="skip")
    assert len(table) == 60
    assert table.notes[0].startswith(f"2 lines of {path} were left out")
    assert "first is line 62 ('1,2')" in table.notes[0]
    rows = read_new_rows(path, ["a", "b"], "y", bad_lines="skip")
    assert (len(rows.features), rows.notes) == (60, table.notes[:1])


def test_a_column_of_a_few_numbers_is_not_said_to_hold_none(tmp_path):
    rows = [f"{row},{k if k % 3 == 0 else 'nd'}" for k, row in enumerate(lines())]
    table = read_table(written(tmp_path, rows, "a,b,y,c"), "y")
    assert table.notes == ("Left out, for fewer than half of their cells are numbers: 'c'.",)


def test_a_target_with_decimal_commas_is_refused_for_them(tmp_path):
    rows = [f"{k};{k}.5;{k},25" for k in range(60)]
    path = written(tmp_path, rows, "a;b;y")
    with pytest.raises(BadInput, match=r"in 'y' are written as '0,25'.*pass --decimal ,"):
        read_table(path, "y", features=["a"])
    assert read_table(path, "y", features=["a"], decimal=",").target[:2].tolist() == [0.25, 1.25]
    with pytest.raises(BadInput, match=r"in 'b' are written as '0.5 \(--decimal ,\)' is"):
        read_table(path, "y", decimal=",")


def test_a_column_of_categories_in_parquet_is_left_out_too(tmp_path):
    colours = pa.array(["red", "blue"] * 30).dictionary_encode()
    days = pa.array(np.arange(60), pa.int32()).cast(pa.date32())
    columns = {"a": np.arange(60.0), "c": colours, "d": days, "y": np.arange(60.0) ** 2}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    table = read_table(str(tmp_path / "data.parquet"), "y")
    assert table.names == ("a",)
    assert "'c', 'd'" in table.notes[0]


@pytest.mark.parametrize("words", [("false", "true"), ("False", "True"), ("FALSE", "TRUE")])
def test_true_and_false_are_features_of_1_and_0(tmp_path, words):
    rows = [f"{k},{words[k % 3 == 0]},{k + (k % 3 == 0)}" for k in range(60)]
    path = written(tmp_path, rows, "a,flag,y")
    for table in (read_table(path, "y"), read_table(path, "y", features=["a", "flag"])):
        assert table.names == ("a", "flag")
        assert table.column("flag")[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
        assert table.notes == ()
    assert read_new_rows(path, ["flag"], "y").features[:4, 0].tolist() == [1.0, 0.0, 0.0, 1.0]


def test_of_parquet_booleans_are_features_and_dates_and_lists_hold_no_numbers(tmp_path):
    days = [dt.date(2020, 1, 1 + k % 28) for k in range(60)]
    columns = {"a": range(60), "flag": [k % 2 == 0 for k in range(60)], "day": days}
    columns |= {"list": [[1.0, 2.0]] * 60, "y": [k * 0.5 for k in range(60)]}
    pq.write_table(pa.table({k: list(x) for k, x in columns.items()}), tmp_path / "data.parquet")
    table = read_table(str(tmp_path / "data.parquet"), "y")
    assert table.names == ("a", "flag")
    assert table.column("flag")[:3].tolist() == [1.0, 0.0, 1.0]
    assert "Left out, for they hold no numbers: 'day', 'list'." in table.notes


def test_groups_are_texts_and_no_feature(tmp_path):
    rows = [f"{row},{k % 4}" for k, row in enumerate(lines())]
    table = read_table(written(tmp_path, rows, "a,b,y,lab"), "y", group="lab")
    assert table.names == ("a", "b")
    assert table.groups[:5].tolist() == ["0", "1", "2", "3", "0"]


def test_a_row_without_a_group_is_refused_with_its_row(tmp_path):
    rows = [f"{row},{'' if k == 6 else 'g'}" for k, row in enumerate(lines())]
    with pytest.raises(BadValues, match=r"row 7 of column 'lab' is empty"):
        read_table(written(tmp_path, rows, "a,b,y,lab"), "y", group="lab")


def test_delimiter_and_encoding_are_taken(tmp_path):
    rows = [row.replace(",", ";") for row in lines()]
    path = written(tmp_path, rows, "größe;b;y", encoding="latin-1")
    table = read_table(path, "y", delimiter=";", encoding="latin-1")
    assert table.names == ("größe", "b")


def test_rows_to_predict_are_read_in_the_order_of_the_names(tmp_path):
    path = written(tmp_path, ["1,2,x", "3,4,y"], "b,a,id")
    assert read_new_rows(path, ["a", "b"], "y").features.tolist() == [[2.0, 1.0], [4.0, 3.0]]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "told"),
    [("", "is empty"), ("nan", "is 'nan'"), ("inf", "is 'inf'"), ("NA", "is 'NA'")],
)
@pytest.mark.parametrize("column", ["b", "y"])
def test_a_cell_that_is_no_number_is_refused_with_row_and_column(tmp_path, cell, told, column):
    rows = lines()
    rows[16] = f"1,{cell},2" if column == "b" else f"1,2,{cell}"
    with pytest.raises(BadValues, match=f"row 17 of column '{column}' {told}.*Nothing is filled"):
        read_table(written(tmp_path, rows), "y")


def write_holes(folder):
    rows = lines()
    for row, cells in ((3, "1,,2"), (17, "NA,inf,2"), (20, "1,2,")):
        rows[row] = cells
    return written(folder, rows)


def test_all_places_of_what_is_missing_are_told(tmp_path):
    with pytest.raises(
        BadValues,
        match=r"4 such cells: 1 in 'a' \(row 18\), 2 in 'b' \(rows 4, 18\), 1 in 'y' \(row 21\)",
    ):
        read_table(write_holes(tmp_path), "y")


def test_rows_without_a_number_are_dropped_on_request_and_counted(tmp_path):
    path = write_holes(tmp_path)
    table = read_table(path, "y", missing="drop")
    assert len(table) == 57
    assert "Left out: 3 of 60 rows" in table.notes[0]
    frame = {
        "a": [1.0, np.nan] * 10,
        "b": list(range(1, 21)),
        "y": [float(k**2) for k in range(20)],
    }
    assert len(load_table(frame, "y", missing="drop")) == 10
    new = read_new_rows(path, ["a", "b"], "y", missing="drop")
    assert new.rows.tolist() == [k for k in range(1, 61) if k not in {4, 18}]
    assert np.isnan(new.kept["y"][18])
    with pytest.raises(BadOption, match="missing='worst' is not one of error, drop"):
        read_table(path, "y", missing="worst")


def test_rows_without_a_group_are_dropped_on_request(tmp_path):
    rows = [f"{row},{'' if k == 6 else 'g'}" for k, row in enumerate(lines())]
    path = written(tmp_path, rows, "a,b,y,lab")
    table = read_table(path, "y", group="lab", missing="drop")
    assert (len(table), len(table.groups)) == (59, 59)


def test_ids_are_no_features_unless_they_are_named(tmp_path):
    rows = [f"{row},{7000 + k},{k}" for k, row in enumerate(lines())]
    path = written(tmp_path, rows, "a,b,y,ID,index")
    table = read_table(path, "y")
    assert table.names == ("a", "b")
    assert table.notes[0] == "Left out, for they name the rows: 'ID', 'index'."
    assert read_table(path, "y", features=["ID", "index"]).names == ("ID", "index")


def test_arrays_are_held_to_the_same_rule():
    x = np.arange(40.0).reshape(20, 2)
    x[4, 1] = np.nan
    with pytest.raises(BadValues, match="row 5 of column 'q' is nan"):
        make_table(x, np.arange(20.0), names=["p", "q"])


def test_a_target_without_variance_is_refused(tmp_path):
    rows = [f"{k},{k % 3},0.1" for k in range(60)]
    with pytest.raises(BadValues, match=r"target 'y' is 0\.1 in every row"):
        read_table(written(tmp_path, rows), "y")


def test_a_target_of_texts_is_refused(tmp_path):
    rows = [f"{k},{k % 3},low" for k in range(60)]
    with pytest.raises(BadInput, match=r"'y' of .* holds no numbers"):
        read_table(written(tmp_path, rows), "y")


def test_an_unknown_target_names_the_nearest_column(tmp_path):
    with pytest.raises(BadInput, match=r"no column 'densty'.*Did you mean 'density'"):
        read_table(written(tmp_path, lines(), "a,b,density"), "densty")


def test_a_missing_column_is_not_said_to_be_one_that_is_asked_for_too(tmp_path):
    path = written(tmp_path, ["1,2,3"], "EpsC,SigC,SigHH")
    with pytest.raises(BadInput, match=r"no column 'SigH'\. Did you mean 'SigHH'\?$"):
        read_new_rows(path, ["EpsC", "SigC", "SigH"], "y")
    with pytest.raises(BadInput, match=r"no column 'EpsH'\. Its columns are: 'EpsC', "):
        read_new_rows(path, ["EpsC", "SigC", "EpsH", "SigHH"], "y")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"features": ["a", "y"]}, "'y' is the target"),
        ({"features": ["a", "b"], "group": "b"}, "'b' is the group"),
        ({"features": ["a", "a"]}, "'a' is named twice"),
        ({"features": []}, "No feature is named"),
        ({"group": "y"}, "both the target and the group"),
    ],
    ids=str,
)
def test_a_column_has_one_role(tmp_path, options, told):
    with pytest.raises(BadInput, match=told):
        read_table(written(tmp_path, lines()), "y", **options)


def test_a_table_with_nothing_but_the_target_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no column of numbers but the target 'y'"):
        read_table(written(tmp_path, [f"{k},red" for k in range(60)], "y,colour"), "y")


def test_fewer_than_ten_rows_are_refused_and_few_are_noted(tmp_path):
    with pytest.raises(NoItems, match=r"has 9 rows.*need 10"):
        read_table(written(tmp_path, lines(9)), "y")
    table = read_table(written(tmp_path, lines(20)), "y")
    assert table.notes == ("There are 20 rows: too few for a test that says much.",)


def test_several_files_are_refused(tmp_path):
    for name in ("one.csv", "two.csv"):
        written(tmp_path, lines(), name=name)
    with pytest.raises(BadInput, match="stands for 2 files"):
        read_table(str(tmp_path / "*.csv"), "y")


def test_arrays_of_unequal_length_are_refused():
    with pytest.raises(UnequalLengths, match="19 targets, 20 rows"):
        make_table(np.ones((20, 1)), np.arange(19.0))
    with pytest.raises(UnequalLengths, match="2 names"):
        make_table(np.ones((20, 1)), np.arange(20.0), names=["a", "b"])
    with pytest.raises(BadInput, match=r"\[rows, columns\]"):
        make_table(np.ones(20), np.arange(20.0))


def test_a_table_in_which_no_feature_varies_is_refused(tmp_path):
    path = written(tmp_path, [f"5,0.{k},{k}" for k in range(60)])
    with pytest.raises(BadValues, match=r"no feature varies \('a'\). There is nothing to learn"):
        read_table(path, "y", features=["a"])
    still = np.full((60, 2), [0.3, 7.0])
    still[::2, 0] = 0.1 + 0.2
    with pytest.raises(BadValues, match="no feature varies"):
        make_table(still, np.arange(60.0))


def test_a_column_too_large_to_normalise_is_named():
    x = np.arange(60.0).reshape(30, 2)
    x[7, 1] = 1e200
    with pytest.raises(BadValues, match="the column 'b' is too large to be normalised"):
        make_table(x, np.arange(30.0), names=["a", "b"])


# --- notes ---------------------------------------------------------------------------------------


def test_a_constant_feature_is_kept_and_noted():
    x = np.column_stack([np.full(60, 0.1), np.arange(60.0) ** 2])
    table = make_table(x, np.arange(60.0), names=["still", "b"])
    assert table.names == ("still", "b")
    assert table.notes == ("Constant in every row, so nothing is learned of it: 'still'.",)


def test_a_feature_that_is_constant_up_to_rounding_is_constant():
    x = np.column_stack([np.full(60, 0.3), np.arange(60.0) ** 2])
    x[::2, 0] = 0.1 + 0.2
    table = make_table(x, np.arange(60.0), names=["still", "b"])
    assert table.notes == ("Constant in every row, so nothing is learned of it: 'still'.",)
    scaled = FeatureTargetScaler.fit(table.features, table.target)
    assert scaled.features([[0.4, 4.0]])[0, 0] == 0.0
    assert np.isclose(scaled.stds[1], x[:, 1].std())


def test_a_feature_that_is_the_target_in_another_unit_is_noted():
    y = np.random.default_rng(0).normal(size=60)
    x = np.column_stack([y * 1000 + 273.15, y + np.random.default_rng(1).normal(size=60) * 1e-2])
    table = make_table(x, y, names=["copy", "close"])
    assert len(table.notes) == 1
    assert "another unit, it seems: 'copy'. Is it known" in table.notes[0]


@pytest.mark.parametrize(
    "made",
    [np.log, lambda y: 1000 / y, lambda y: np.round(y, 1), lambda y: np.round(1000 / y, 4)],
    ids=["log", "inverse", "rounded", "rounded inverse"],
)
def test_a_feature_that_is_made_of_the_target_is_noted(made):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    y = 600 + 100 * x[:, 0] + 30 * x[:, 1] ** 2 + rng.normal(0, 20, 500)
    names = ["a", "b", "made"]
    table = make_table(np.column_stack([x, made(y)]), y, names=names, target_name="y")
    (note,) = table.notes
    assert note.startswith("So close to the target 'y' in its order that it may be made of it")
    assert "'made'. Is it known" in note
    assert make_table(x, y).notes == ()


def test_a_feature_that_merely_follows_the_target_is_not_noted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    y = x[:, 0] + 0.02 * x[:, 1]
    assert np.corrcoef(x[:, 0], y)[0, 1] > 0.999
    assert make_table(x, y).notes == ()
    assert make_table(x[:, :1], x[:, 0] ** 3).notes == ()  # a law of one feature
    few = make_table(x[:30], x[:30, 0] ** 3)
    assert not any("made of it" in note for note in few.notes)


# --- normalisation -------------------------------------------------------------------------------


def test_normalisation_is_that_of_the_training_rows_alone():
    rng = np.random.default_rng(0)
    table = make_table(rng.normal(5, 3, (60, 2)), rng.normal(100, 7, 60))
    rows = np.arange(40)
    scaled = FeatureTargetScaler.fit(table.features[rows], table.target[rows])
    x, y = scaled.features(table.features[rows]), scaled.target.normalize(table.target[rows])
    assert np.allclose(x.mean(axis=0), 0)
    assert np.allclose(x.std(axis=0), 1)
    assert np.allclose([y.mean(), y.std()], [0, 1])
    table.features[40:] = 1e9  # rows for the test change nothing
    table.target[40:] = -1e9
    assert (
        FeatureTargetScaler.fit(table.features[rows], table.target[rows]).to_dict()
        == scaled.to_dict()
    )


def test_a_feature_that_is_constant_in_training_is_0_whatever_it_is_later():
    scaled = FeatureTargetScaler.fit(np.full((10, 1), 0.1), np.arange(10.0))
    rows = [[0.1], [np.float32(0.1)], [0.11], [1e300]]
    assert scaled.features(rows).tolist() == [[0.0]] * 4
    assert scaled.changed(rows).tolist() == [[False], [False], [True], [True]]


def test_a_normalisation_survives_json_to_the_last_digit():
    rng = np.random.default_rng(3)
    scaled = FeatureTargetScaler.fit(rng.normal(size=(30, 3)), rng.normal(size=30))
    again = FeatureTargetScaler.from_dict(json.loads(json.dumps(scaled.to_dict())))
    x = rng.normal(size=(5, 3))
    assert (again.features(x) == scaled.features(x)).all()
    assert again.target == scaled.target


@pytest.mark.parametrize(
    "change",
    [{"means": [0.0]}, {"stds": [1.0, -1.0]}, {"stds": [1.0, None]}, {"target": {"mean": 1.0}}],
    ids=str,
)
def test_what_is_no_normalisation_is_refused(change):
    stored = FeatureTargetScaler.fit([[1.0, 2.0], [3.0, 5.0]], [1.0, 2.0]).to_dict()
    with pytest.raises(BadStore, match="The normalisation"):
        FeatureTargetScaler.from_dict(stored | change)


def test_numbers_too_large_to_normalise_are_refused():
    with pytest.raises(BadValues, match="Feature 2 is too large"):
        FeatureTargetScaler.fit([[1.0, 1e308], [2.0, -1e308]], [1.0, 2.0])


def test_a_frame_is_read_in_a_process_that_has_only_counted_before():
    script = (
        "import polars, sys\n"
        "from ordinate.readers.duckdb_connection import connect\n"
        "from ordinate.tuning.regress.table import load_table\n"
        "connect()\n"
        "assert 'duckdb' not in sys.modules\n"
        "frame = polars.DataFrame({'x': [*range(12)], 'y': [k / 2 for k in range(12)]})\n"
        "print(load_table(frame, 'y').target.sum())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["33.0"]
