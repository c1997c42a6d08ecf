"""`ordinate surrogate`: the commands, their files, and one message for whatever is wrong."""

import csv
import json
import os
import re
import shlex
import tomllib

import numpy as np
import pytest
from command import run
from surrogates import columns, left_by, write

from ordinate.cli.surrogate import EXAMPLES
from ordinate.examples import locate_example
from ordinate.experiment.lock import hold_lock
from ordinate.readers.duckdb_connection import connect
from ordinate.regress.settings import Settings
from ordinate.regress.table import read_table
from ordinate.regress.tuning import tune

FOUND = "python -m ordinate.examples"  # prints where an example lies
QUICK = ("--model", "poly_ridge,kernel_ridge", "--trials", "2", "--folds", "2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    base = tmp_path_factory.mktemp("surrogate")
    data = write(base / "data.csv")
    root = base / "results"
    said = ("--target", "y", "--unit", "kg/m³", *QUICK, "-o", root, "--format", "json")
    return data, root, run("surrogate", "tune", data, *said)


def test_the_command_gives_the_numbers_of_python(finished, tmp_path):
    data, _, ran = finished
    assert (ran.code, ran.err) == (0, "")
    settings = Settings(model="poly_ridge,kernel_ridge", trials=2, folds=2)
    result = tune(read_table(str(data), "y"), tmp_path, settings, unit="kg/m³")
    assert json.loads(ran.out) == json.loads(json.dumps(result.to_dict()))


def test_the_resolved_configuration_repeats_the_run(finished, tmp_path):
    _, root, first = finished
    (path,) = root.glob("runs/*/config.toml")
    values = tomllib.loads(path.read_text())
    assert (values["target"], values["folds"], values["seed"]) == ("y", 2, 0)
    saved = tmp_path / "again.toml"
    saved.write_text(path.read_text())
    before = left_by(root)
    assert run("surrogate", "tune", "--config", saved, "--format", "json") == first
    assert left_by(root) == before


def test_the_manifest_has_the_command(finished):
    data, root, _ = finished
    (path,) = root.glob("runs/*/manifest.json")
    words = shlex.split(json.loads(path.read_text())["command"])
    assert words[:4] == ["ordinate", "surrogate", "tune", str(data)]
    assert words[words.index("--model") + 1] == "poly_ridge,kernel_ridge"


def test_results_go_to_a_folder_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path / "data.csv")
    ran = run("surrogate", "train", data, "--target", "y", "--model", "poly_ridge", "--folds", "2")
    assert ran.code == 0, ran.err
    assert (tmp_path / "surrogate_results/results.json").exists()
    assert run("surrogate", "analyze").code == 0


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_every_form_is_printed(finished, form):
    data, root, _ = finished
    said = ("--target", "y", "--unit", "kg/m³", *QUICK, "-o", root, "--format", form)
    ran = run("surrogate", "tune", data, *said)
    assert ran.code == 0
    assert "poly" in ran.out
    assert "kg/m" in ran.out


# --- train and ensemble --------------------------------------------------------------------------


def test_tuned_parameters_are_reloaded_whole(finished, tmp_path):
    data, root, first = finished
    said = ("--target", "y", "--folds", "2", "-o", tmp_path, "--format", "json")
    ran = run("surrogate", "train", data, *said, "--model", "kernel_ridge", "--params-of", root)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["studies"][0]["best"]
    tuned = json.loads(first.out)["studies"][1]["best"]
    assert found["params"] == tuned["params"]
    assert found["validation"]["metrics"] == tuned["validation"]["metrics"] | {
        name: one | {"unit": None} for name, one in tuned["validation"]["metrics"].items()
    }


def test_parameters_can_be_given(finished, tmp_path):
    data, _, _ = finished
    said = ("--target", "y", "--folds", "2", "-o", tmp_path, "--format", "json")
    ran = run(
        "surrogate", "train", data, *said, "--model", "poly_ridge", "--params", '{"degree": 2}'
    )
    found = json.loads(ran.out)["winning"]
    assert found["params"] == {"degree": 2, "penalty": 0.1}  # whole, with the defaults of others
    about = json.loads((tmp_path / "models" / found["name"] / "surrogate.json").read_text())
    assert about["params"] == found["params"]


def test_the_preset_of_a_training_decides_its_folds_and_epochs(finished, tmp_path):
    data, _, _ = finished
    said = ("--target", "y", "--model", "mlp", "--format", "json", "--preset", "minimal")
    given = ("--params", '{"members": 1, "width": 8, "depth": 1, "patience": 1}')
    ran = run("surrogate", "train", data, *said, *given, "-o", tmp_path / "a")
    found = json.loads(ran.out)
    assert (found["settings"]["folds"], found["settings"]["epochs"]) == (3, 60)
    assert found["winning"]["params"]["epochs"] == 60
    assert found["winning"]["params"]["device"] == "cpu"


def test_epochs_among_the_parameters_are_those_of_the_configuration(finished, tmp_path):
    data, _, _ = finished
    given = ("--params", '{"members": 1, "width": 8, "depth": 1, "epochs": 2}', "--folds", "2")
    said = ("--target", "y", "--model", "mlp", "-o", tmp_path, "--format", "json")
    first = run("surrogate", "train", data, *said, *given)
    assert json.loads(first.out)["winning"]["params"]["epochs"] == 2
    (path,) = tmp_path.glob("runs/*/config.toml")
    assert tomllib.loads(path.read_text())["epochs"] == 2
    assert run("surrogate", "train", "--config", path, "--format", "json") == first


def test_an_ensemble_blends_whatever_it_is_worth(finished, tmp_path):
    data, root, _ = finished
    said = ("--target", "y", "--folds", "2", "--format", "json")
    ran = run(
        "surrogate", "ensemble", data, *said, "-o", tmp_path / "a", "--model", "svr,kernel_ridge"
    )
    assert json.loads(ran.out)["winning"]["model"] == "blend"
    ran = run("surrogate", "ensemble", data, *said, "-o", tmp_path / "b", "--params-of", root)
    assert ran.code == 0, ran.err
    kinds = [one["model"] for one in json.loads(ran.out)["studies"]]
    assert kinds == ["poly_ridge", "kernel_ridge"]


def test_networks_alone_are_an_ensemble(finished, tmp_path):
    data, _, _ = finished
    said = ("--target", "y", "--folds", "2", "--epochs", "2", "--format", "json", "-o", tmp_path)
    ran = run("surrogate", "ensemble", data, *said, "--model", "mlp", "--members", "3")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["winning"]["params"]["members"] == 3
    assert found["blend"] is None
    (path,) = tmp_path.glob("runs/*/config.toml")
    assert run("surrogate", "ensemble", "--config", path, "--format", "json") == ran


def test_parameters_may_be_a_table_of_the_configuration(finished, tmp_path):
    data, _, _ = finished
    config = tmp_path / "c.toml"
    config.write_text('target = "y"\nmodel = "poly_ridge"\nfolds = 2\nparams = {degree = 2}\n')
    said = ("--config", config, "--format", "json", "-o", tmp_path / "out")
    ran = run("surrogate", "train", data, *said)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["winning"]["params"]["degree"] == 2


def test_keys_of_other_commands_are_refused(finished, tmp_path):
    data, _, _ = finished
    config = tmp_path / "c.toml"
    said = ("--target", "y", "--config", config, "-o", tmp_path / "out")
    for command, key in (("tune", "members = 4"), ("train", "trials = 4"), ("tune", "format = 1")):
        config.write_text(f"{key}\n")
        ran = run("surrogate", command, data, *said)
        assert ran.code == 2
        flags = ran.err.rstrip(".\n").split("The flags are: ")[1].split(", ")
        assert key.split()[0] not in flags
        assert "folds" in flags


def test_an_interrupted_search_says_that_it_goes_on(finished, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    data, root, _ = finished
    monkeypatch.setattr("ordinate.regress.tuning.tune", stopped)
    monkeypatch.setattr("ordinate.regress.trained_model.load_surrogate", stopped)
    ran = run("surrogate", "tune", data, "--target", "y", *QUICK, "-o", tmp_path)
    assert (ran.code, ran.out, ran.err) == (130, "", "Interrupted. The same command goes on.\n")
    ran = run("surrogate", "predict", root, data)
    assert (ran.code, ran.out, ran.err) == (130, "", "Interrupted.\n")


# --- predict, analyze, compare -------------------------------------------------------------------


def test_new_rows_are_predicted_with_their_intervals(finished, tmp_path):
    _, root, _ = finished
    new = write(tmp_path / "new.csv", 60, seed=7, target=False)
    ran = run("surrogate", "predict", root, new)
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["row"] for row in rows][:2] == ["1", "2"]
    y = columns(60, seed=7)[1]
    values = np.array([float(row["prediction"]) for row in rows])
    assert np.sqrt(np.mean((values - y) ** 2)) < 0.3
    lower, upper = (np.array([float(row[name]) for row in rows]) for name in ("lower", "upper"))
    assert np.mean((lower <= y) & (y <= upper)) > 0.75


@pytest.mark.parametrize("name", [None, "out.csv", "out.parquet"])
def test_a_table_of_no_rows_has_no_predictions(finished, tmp_path, name):
    _, root, _ = finished
    new = tmp_path / "new.csv"
    new.write_text("a,b,c\n")
    output = () if name is None else ("-o", tmp_path / name)
    ran = run("surrogate", "predict", root, new, *output)
    assert (ran.code, ran.err) == (0, "")
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


def test_rows_far_from_training_are_told_or_refused(finished, tmp_path):
    _, root, _ = finished
    new = tmp_path / "new.csv"
    new.write_text("a,b,c\n0,0,0\n50,0,-50\n")
    ran = run("surrogate", "predict", root, new)
    assert ran.code == 0
    assert "1 of 2 rows lie more than 10 standard deviations" in ran.err
    new.write_text("a,b,c\n0,0,0\n1e6,-1e6,1e300\n")
    ran = run("surrogate", "predict", root, new)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "Row 2 lies too far from what was learned" in ran.err


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_predictions_are_written_whole_and_never_over_others(finished, tmp_path, name):
    _, root, _ = finished
    new = write(tmp_path / "new.csv", 12, seed=7)
    out = tmp_path / name
    assert run("surrogate", "predict", root, new, "-o", out).code == 0
    again = run("surrogate", "predict", root, new, "-o", out)
    assert again.code == 2
    assert "--force" in again.err
    assert run("surrogate", "predict", root, new, "-o", out, "--force").code == 0
    table = read_table(str(out), "prediction", features=["lower", "upper"])
    assert len(table) == 12


def test_analysis_and_comparison_are_reports(finished, tmp_path):
    _, root, _ = finished
    ran = run("surrogate", "analyze", root, "--format", "json")
    assert json.loads(ran.out)["task"] == "surrogate analysis"
    out = tmp_path / "compared.txt"
    assert run("surrogate", "compare", root, "-o", out).code == 0
    assert "3 models, 8 items, target in kg/m³" in out.read_text()


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tune",), "Which data?"),
        (("tune", "{data}"), "Which target?"),
        (("tune", "{data}", "--target", "z"), "'z'"),
        (("tune", "{data}", "--target", "y", "--model", "gpp"), "Did you mean 'gp'"),
        (("tune", "{data}", "--target", "y", "--folds", "1"), "--folds takes 2 or more"),
        (("tune", "{data}", "--target", "y", "--features", "a,q"), "'q'"),
        (("tune", "{data}", "--target", "y", "--shift", "q"), "'q'"),
        (("tune", "absent.csv", "--target", "y"), "absent.csv"),
        (("train", "{data}", "--target", "y"), "Which model type?"),
        (("train", "{data}", "--target", "y", "--model", "svr", "--params", "[1]"), "JSON object"),
        (("train", "{data}", "--target", "y", "--model", "svr", "--params", "{{"), "JSON object"),
        (
            ("train", "{data}", "--target", "y", "--model", "svr", "--params", '{{"wdth": 1}}'),
            "no parameter 'wdth'",
        ),
        (
            ("train", "{data}", "--target", "y", "--model", "svr", "--params", '{{"cost": -1}}'),
            "cost of svr takes a number",
        ),
        (
            ("train", "{data}", "--target", "y", "--model", "gp", "--params", '{{"kernel": 3}}'),
            "kernel of gp takes matern52",
        ),
        (("train", "{data}", "--target", "y", "--model", "svr", "--device", "cuda"), "mlp"),
        (("ensemble", "{data}", "--target", "y", "--model", "svr"), "two or more"),
        (("ensemble", "{data}", "--target", "y", "--model", "svr"), "--model mlp --members 16"),
        (("train", "{data}", "--target", "y", "--model", "auto"), "train takes one model type"),
        (
            ("train", "{data}", "--target", "y", "--params-of", "{root}", "--model", "gp"),
            "has no parameters of gp. It has those of poly_ridge, kernel_ridge.",
        ),
        (
            ("ensemble", "{data}", "--target", "y", "--params-of", "{root}", "--model", "svr,gp"),
            "has no parameters of svr, gp. It has those of",
        ),
        (("tune", "{data}", "--target", "y", "-o", "{data}"), "is a file, and -o takes a folder"),
        (("predict", "{data}", "{data}"), "is a file, and the results folder of a search"),
        (("ensemble", "{data}", "--target", "y", "--model", "svr,gp", "--members", "3"), "mlp"),
        (
            ("train", "{data}", "--target", "y", "--model", "svr,gp"),
            "--model names 2: svr, gp. Name one, or fit them all with: ordinate surrogate ensemble",
        ),
        (("predict", "absent", "{data}"), "no search was finished"),
        (("predict", "{root}", "{data}", "-o", "x.txt"), ".csv or .parquet"),
        (("predict", "{root}", "{data}", "--alpha", "2"), "between 0 and 1"),
        (("analyze", "absent"), "no search was finished"),
        (("compare", "{root}", "{root}"), "named twice"),
    ],
)
def test_one_message_for_whatever_is_wrong(finished, tmp_path, monkeypatch, words, said):
    data, root, _ = finished
    monkeypatch.chdir(tmp_path)
    ran = run("surrogate", *(word.format(data=data, root=root) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("1.0", "in every row"),  # a target without variance
        ("", "row 3"),
    ],
)
def test_tables_that_teach_nothing_are_refused_before_any_work(tmp_path, cells, said):
    lines = ["a,y"] + [f"{k},1.0" for k in range(30)]
    lines[3] = f"2,{cells}"
    data = tmp_path / "data.csv"
    data.write_text("\n".join(lines) + "\n")
    ran = run("surrogate", "tune", data, "--target", "y", *QUICK, "-o", tmp_path / "out")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_categorical_column_is_left_out_and_named(tmp_path):
    x, y = columns(40)
    rows = [f"{a},{b},{'red' if a > 0 else 'blue'},{t}" for (a, b, _), t in zip(x, y, strict=True)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["a,b,colour,y", *rows]) + "\n")
    said = ("--target", "y", "--model", "poly_ridge", "--folds", "2", "-o", tmp_path / "out")
    ran = run("surrogate", "tune", data, *said, "--trials", "1", "--format", "json")
    found = json.loads(ran.out)["data"]
    assert found["features"] == ["a", "b"]
    assert any("'colour'" in note for note in found["notes"])


def test_the_second_of_two_runs_is_told_who_holds_the_lock(finished):
    data, root, _ = finished
    with hold_lock(root, "ordinate surrogate tune"):
        ran = run("surrogate", "tune", data, "--target", "y", *QUICK, "-o", root)
    assert ran.code == 2
    assert f"in use by process {os.getpid()}" in ran.err


def test_examples_of_the_help_run_one_after_the_other(tmp_path, monkeypatch):
    """All but the search itself is as they say: it is a small one here."""
    made = []

    def small(table, root, settings, **said):
        made.append(settings)
        asked = {"model": "poly_ridge,kernel_ridge", "trials": 1, "folds": 2}
        return tune(table, root, Settings(**asked, shift=settings.shift), **said)

    monkeypatch.setattr("ordinate.regress.tuning.tune", small)
    monkeypatch.chdir(tmp_path)
    x, y = columns()
    lines = [",".join(map(repr, row)) for row in np.column_stack([x, y]).tolist()]
    for name in ("densities.csv", "new.csv"):
        text = "\n".join(["carbons,pressure,temperature,density", *lines])
        (tmp_path / name).write_text(text + "\n")
    assert EXAMPLES.splitlines()[1].strip() == f'cp "$({FOUND} densities)" densities.csv'
    assert locate_example("densities").read_text().splitlines()[0].endswith(",density")
    examples = re.findall(r"^  ordinate (surrogate \w+ .*)$", EXAMPLES, re.MULTILINE)
    assert len(examples) == 10
    for line in examples:
        ran = run(*shlex.split(line))
        assert ran.code == 0, f"{line}: {ran.err}"
    kinds = [settings.model_types for settings in made[4:]]
    assert kinds == [("gp",), ("gp", "svr", "lightgbm"), ("mlp",)]
    assert made[-1].fixed["mlp"]["members"] == 16
