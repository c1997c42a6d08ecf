"""`ordinate predict-regression`: rows and intervals out, and one message for whatever is wrong."""

import csv
import json
import os
import shlex
import subprocess
import sys
import threading

import numpy as np
import pytest
from command import run
from regression_tables import columns, write

from ordinate.readers.duckdb_connection import connect
from ordinate.tuning.regress.table import read_table


def test_new_rows_are_predicted_with_their_intervals(tuned_table, tmp_path):
    _, root, _ = tuned_table
    new = write(tmp_path / "new.csv", 60, seed=7, target=False)
    ran = run("predict-regression", new, "-e", root)
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["row"] for row in rows][:2] == ["1", "2"]
    y = columns(60, seed=7)[1]
    values = np.array([float(row["prediction"]) for row in rows])
    assert np.sqrt(np.mean((values - y) ** 2)) < 0.3
    lower, upper = (np.array([float(row[name]) for row in rows]) for name in ("lower", "upper"))
    assert np.mean((lower <= y) & (y <= upper)) > 0.75


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_rows_of_a_pipe_are_read_once(tuned_table, tmp_path):
    """It was ran again and again, and the command waited for ever."""
    data, root, _ = tuned_table
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data.read_bytes(),))
    writer.start()
    ran = subprocess.run(
        [sys.executable, "-m", "ordinate", "predict-regression", tmp_path / "pipe", "-e", root],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    writer.join()
    assert (ran.returncode, ran.stdout) == (0, run("predict-regression", data, "-e", root).out)


@pytest.mark.parametrize("name", [None, "out.csv", "out.parquet"])
def test_a_table_of_no_rows_has_no_predictions(tuned_table, tmp_path, name):
    _, root, _ = tuned_table
    new = tmp_path / "new.csv"
    new.write_text("a,b,c\n")
    output = () if name is None else ("-o", tmp_path / name)
    ran = run("predict-regression", new, "-e", root, *output)
    assert (ran.code, ran.err) == (0, "")
    assert name is None or ran.out == f"0 rows predicted, written to {tmp_path / name}.\n"
    header = ["row", "prediction", "lower", "upper"]
    if name == "out.parquet":
        with connect() as connection:
            found = connection.execute(f"SELECT * FROM '{tmp_path / name}'")  # noqa: S608 - own path
            assert [column[0] for column in found.description][:4] == header
            assert found.fetchall() == []
    else:
        text = ran.out if name is None else (tmp_path / name).read_text()
        assert text.count("\n") == 1
        assert text.strip().split(",")[:4] == header


@pytest.mark.parametrize(
    ("name", "column", "named"),
    [
        ("out.csv", "sample_id", ()),
        ("out.csv", "sample", ("--id-column", "sample")),
        ("out.parquet", "sample", ("--id-column", "sample")),
    ],
)
def test_ids_and_targets_stay_and_the_shown_command_evaluates_them(
    tuned_table, tmp_path, name, column, named
):
    data, root, _ = tuned_table
    header, *rows = data.read_text().splitlines()
    rows[3] = f",{rows[3].partition(',')[2]}"  # without its first feature
    rows[5] = f"{rows[5].rpartition(',')[0]},"  # without its target
    new, out = tmp_path / "new.csv", tmp_path / name
    cells = [f"s{k},{row}" for k, row in enumerate(rows)]
    new.write_text("\n".join([f"{column},{header}", *cells]) + "\n")
    refused = run("predict-regression", new, "-e", root, "-o", out)
    assert (refused.code, "row 4 of column 'a' is empty" in refused.err) == (2, True)
    flags = (*named, "--missing", "drop", "-o", out)
    ran = run("predict-regression", new, "-e", root, *flags)
    assert f"Left out: 1 of {len(rows)} rows" in ran.err
    command = ran.out.splitlines()[1].removeprefix("Evaluate them: ordinate ")
    found = run(*shlex.split(command), "--format", "json")
    assert (found.code, json.loads(found.out)["n"]) == (0, len(rows) - 2)
    with connect() as connection:
        first = connection.execute(f"SELECT row, {column} FROM '{out}' LIMIT 4").fetchall()  # noqa: S608 - own path
    assert first == [(1, "s0"), (2, "s1"), (3, "s2"), (5, "s4")]


def test_rows_far_from_training_are_told_or_refused(tuned_table, tmp_path):
    _, root, _ = tuned_table
    new = tmp_path / "new.csv"
    new.write_text("a,b,c\n0,0,0\n50,0,-50\n")
    ran = run("predict-regression", new, "-e", root)
    assert ran.code == 0
    assert "1 of 2 rows lie more than 10 standard deviations" in ran.err
    new.write_text("a,b,c\n0,0,0\n1e6,-1e6,1e300\n")
    ran = run("predict-regression", new, "-e", root)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "Row 2 lies too far from what was learned" in ran.err


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_predictions_are_written_whole_and_never_over_others(tuned_table, tmp_path, name):
    _, root, _ = tuned_table
    new = write(tmp_path / "new.csv", 12, seed=7)
    out = tmp_path / name
    assert run("predict-regression", new, "-e", root, "-o", out).code == 0
    again = run("predict-regression", new, "-e", root, "-o", out)
    assert again.code == 2
    assert "--force" in again.err
    assert run("predict-regression", new, "-e", root, "-o", out, "--force").code == 0
    table = read_table(str(out), "prediction", features=["lower", "upper"])
    assert len(table) == 12


def test_an_interrupted_prediction_is_said_to_be_one(tuned_table, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    data, root, _ = tuned_table
    monkeypatch.setattr("ordinate.tuning.regress.trained_model.load_regression_model", stopped)
    ran = run("predict-regression", data, "-e", root)
    assert (ran.code, ran.out, ran.err) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{data}", "-e", "absent"), "There are no saved models in absent/models"),
        (("{data}", "-e", "{data}"), "is a file, and the folder of a search is needed"),
        (("{data}", "-e", "{root}", "--model", "gp"), "There is no model 'gp' (--model)"),
        (("{data}", "-e", "{root}", "-o", "x.txt"), ".csv or .parquet"),
        (("{data}", "-e", "{root}", "--alpha", "2"), "between 0 and 1"),
    ],
)
def test_one_message_for_whatever_is_wrong(tuned_table, tmp_path, monkeypatch, words, said):
    data, root, _ = tuned_table
    monkeypatch.chdir(tmp_path)
    ran = run("predict-regression", *(word.format(data=data, root=root) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
