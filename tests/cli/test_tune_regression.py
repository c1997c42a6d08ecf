"""`ordinate tune-regression`: its files, its flags, and one message for whatever is wrong."""

import json
import os
import re
import shlex
import tomllib

import numpy as np
import pytest
from command import read_values, run
from regression_tables import columns
from search_cases import read_untimed_files

from ordinate.cli import analyze_search, predict_regression, tune_regression
from ordinate.examples import locate_example
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.table import read_table
from ordinate.tuning.regress.tuning import tune_table

FOUND = "python -m ordinate.examples"  # prints where an example lies
QUICK = ("--models", "poly_ridge,kernel_ridge", "--trials", "2", "--folds", "2")
NAMED = "'y' is predicted from 3 features: 'a', 'b', 'c'.\n"
SMALL_NETWORK = '{"mlp": {"members": 1, "width": 8, "depth": 1, "patience": 1%s}}'


def tune(data, root, *flags):
    """Run the command on the column y, and return what it says as JSON."""
    ran = run("tune-regression", data, "--target", "y", "-e", root, "--format", "json", *flags)
    assert ran.code == 0, ran.err
    return read_values(ran.out)


def test_the_command_gives_the_numbers_of_python(tuned_table, tmp_path):
    data, _, ran = tuned_table
    assert (ran.code, ran.err) == (0, NAMED)
    settings = Settings(models="poly_ridge,kernel_ridge", trials=2, folds=2)
    result = tune_table(read_table(str(data), "y"), tmp_path, settings, unit="kg/m³")
    assert read_values(ran.out) == json.loads(json.dumps(result.to_dict()))


def test_the_resolved_configuration_repeats_the_run(tuned_table, tmp_path):
    _, root, first = tuned_table
    (path,) = root.glob("results/runs/*/config.toml")
    values = tomllib.loads(path.read_text())
    assert (values["target"], values["folds"], values["seed"]) == ("y", 2, 0)
    saved = tmp_path / "again.toml"
    saved.write_text(path.read_text())
    before = read_untimed_files(root)
    assert run("tune-regression", "--config", saved, "--format", "json") == first
    assert read_untimed_files(root) == before


def test_the_manifest_has_the_command(tuned_table):
    data, root, _ = tuned_table
    (path,) = root.glob("results/runs/*/manifest.json")
    words = shlex.split(json.loads(path.read_text())["command"])
    assert words[:3] == ["ordinate", "tune-regression", str(data)]
    assert words[words.index("--models") + 1] == "poly_ridge,kernel_ridge"


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_every_form_is_printed(tuned_table, form):
    data, root, _ = tuned_table
    flags = ("--target", "y", "--unit", "kg/m³", *QUICK, "-e", root, "--format", form)
    ran = run("tune-regression", data, *flags)
    assert ran.code == 0
    assert "poly" in ran.out
    assert "kg/m" in ran.out


def test_the_report_goes_to_a_file(tuned_table, tmp_path):
    data, root, first = tuned_table
    flags = ("--target", "y", "--unit", "kg/m³", *QUICK, "-e", root, "-o", tmp_path / "r.json")
    assert run("tune-regression", data, *flags) == (0, "", NAMED)
    assert (tmp_path / "r.json").read_text() == first.out
    again = run("tune-regression", data, *flags)
    assert again.code == 2
    assert "--force" in again.err


ROWS = [
    "id,nr,plot_id,site,b,a,flat,y",
    *(f"s{k},{k},{k**3},x,{k % 7},{k**2},3,{k % 5}" for k in range(40)),
]


def test_features_and_what_is_none_are_named_before_work_starts_and_by_a_dry_run(tmp_path):
    data = tmp_path / "messy.csv"
    data.write_text("\n".join(ROWS) + "\n")
    words = (data, "--target", "y", "-e", tmp_path / "found", "--models", "poly_ridge")
    plan = " ".join(run("tune-regression", *words, "--dry-run").out.split())
    before = run("tune-regression", *words, "--trials", "1", "--folds", "2").err.splitlines()
    assert before == [
        "'y' is predicted from 3 features: 'b', 'a', 'flat'.",
        "Left out, for they name the rows: 'id', 'plot_id', 'nr'.",
        "Left out, for they hold no numbers: 'site'.",
        "There are 40 rows: too few for a test that says much.",
        "Constant in every row, so nothing is learned of it: 'flat'.",
    ]
    assert all(line in plan for line in before)


def test_a_dry_run_writes_nothing(tuned_table, tmp_path):
    data, _, _ = tuned_table
    ran = run("tune-regression", data, "--target", "y", *QUICK, "-e", tmp_path / "no", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "Nothing was written." in " ".join(ran.out.split())
    assert not (tmp_path / "no").exists()


# --- hyperparameters -----------------------------------------------------------------------------


def test_tuned_hyperparameters_are_taken_whole(tuned_table, tmp_path):
    data, root, first = tuned_table
    flags = ("--folds", "2", "--unit", "kg/m³", "--params-of", root)
    (found,) = tune(data, tmp_path / "a", *flags, "--models", "kernel_ridge")["studies"]
    tuned = json.loads(first.out)["studies"]
    assert found["best"]["params"] == tuned[1]["best"]["params"]
    assert found["best"]["cross_validation"] == tuned[1]["best"]["cross_validation"]
    assert found["trials"]["requested"] == 1
    every = tune(data, tmp_path / "b", *flags, "--blend", "always")
    assert [one["model"] for one in every["studies"]] == ["poly_ridge", "kernel_ridge"]
    assert every["winning"]["model"] == "blend"


def test_hyperparameters_can_be_given(tuned_table, tmp_path):
    data, _, _ = tuned_table
    params = ("--params", '{"poly_ridge": {"degree": 2}}')
    found = tune(data, tmp_path, "--models", "poly_ridge", "--folds", "2", *params)["winning"]
    assert found["params"] == {"degree": 2, "penalty": 0.1}  # whole, with the defaults of others
    about = json.loads((tmp_path / "models" / found["name"] / "description.json").read_text())
    assert about["params"] == found["params"]


def test_the_preset_decides_folds_and_epochs(tuned_table, tmp_path):
    data, _, _ = tuned_table
    flags = ("--models", "mlp", "--preset", "minimal", "--params", SMALL_NETWORK % "")
    found = tune(data, tmp_path, *flags)
    assert (found["settings"]["folds"], found["settings"]["epochs"]) == (3, 60)
    assert found["winning"]["params"]["epochs"] == 60
    assert found["winning"]["params"]["device"] == "cpu"


def test_epochs_among_the_hyperparameters_are_those_of_the_configuration(tuned_table, tmp_path):
    data, _, _ = tuned_table
    flags = ("--models", "mlp", "--folds", "2", "--params", SMALL_NETWORK % ', "epochs": 2')
    first = tune(data, tmp_path, *flags)
    assert first["winning"]["params"]["epochs"] == 2
    assert first["ensemble"] is None
    (path,) = tmp_path.glob("results/runs/*/config.toml")
    assert tomllib.loads(path.read_text())["epochs"] == 2
    again = run("tune-regression", "--config", path, "--format", "json")
    assert read_values(again.out) == first


def test_hyperparameters_may_be_a_table_of_the_configuration(tuned_table, tmp_path):
    data, _, _ = tuned_table
    config = tmp_path / "c.toml"
    config.write_text('models = ["poly_ridge"]\nfolds = 2\n[params.poly_ridge]\ndegree = 2\n')
    found = tune(data, tmp_path / "out", "--config", config)
    assert found["winning"]["params"]["degree"] == 2


def test_keys_of_other_commands_are_refused(tuned_table, tmp_path):
    data, _, _ = tuned_table
    config = tmp_path / "c.toml"
    flags = ("--target", "y", "--config", config, "-e", tmp_path / "out")
    for key in ("members = 4", "top-k = 4", "metric = 1"):
        config.write_text(f"{key}\n")
        ran = run("tune-regression", data, *flags)
        assert ran.code == 2
        known = ran.err.rstrip(".\n").split("The flags are: ")[1].split(", ")
        assert key.split()[0] not in known
        assert "folds" in [one.removeprefix("--") for one in known]


def test_an_interrupted_search_says_that_it_goes_on(tuned_table, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    data, _, _ = tuned_table
    monkeypatch.setattr("ordinate.tuning.regress.tuning.tune_table", stopped)
    ran = run("tune-regression", data, "--target", "y", *QUICK, "-e", tmp_path)
    assert (ran.code, ran.out, ran.err) == (130, "", "Interrupted. The same command goes on.\n")


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Which data?"),
        (("{data}",), "Which target?"),
        (("{data}", "--target", "y"), "Which experiment? Name the folder of the search: -e DIR."),
        (("{data}", "--target", "z", "-e", "x"), "'z'"),
        (("{data}", "--target", "y", "-e", "x", "--models", "gpp"), "Did you mean 'gp'"),
        (("{data}", "--target", "y", "-e", "x", "--folds", "1"), "--folds takes 2 or more"),
        (("{data}", "--target", "y", "-e", "x", "--features", "a,q"), "'q'"),
        (("{data}", "--target", "y", "-e", "x", "--shift", "q"), "'q'"),
        (("absent.csv", "--target", "y", "-e", "x"), "absent.csv"),
        (("{data}", "--target", "y", "-e", "x", "--params", "[1]"), "--params"),
        (("{data}", "--target", "y", "-e", "x", "--params", "{{"), "--params"),
        (
            ("{data}", "--target", "y", "-e", "x", "--params", '{{"svr": 3}}'),
            "--params takes hyperparameters by model type",
        ),
        (
            ("{data}", "--target", "y", "-e", "x", "--params", '{{"svr": {{"wdth": 1}}}}'),
            "no parameter 'wdth'",
        ),
        (("{data}", "--target", "y", "-e", "x", "--models", "svr", "--device", "cuda"), "mlp"),
        (
            ("{data}", "--target", "y", "-e", "x", "--models", "svr", "--blend", "always"),
            "A blend takes two model types or more",
        ),
        (
            ("{data}", "--target", "y", "-e", "x", "--params-of", "{root}", "--models", "svr,gp"),
            "has no hyperparameters of svr, gp. It has those of poly_ridge, kernel_ridge.",
        ),
        (("{data}", "--target", "y", "-e", "x", "--params-of", "absent"), "no search was finished"),
        (("{data}", "--target", "y", "-e", "{data}"), "is a file, and -e takes a folder"),
    ],
)
def test_one_message_for_whatever_is_wrong(tuned_table, tmp_path, monkeypatch, words, said):
    data, root, _ = tuned_table
    monkeypatch.chdir(tmp_path)
    ran = run("tune-regression", *(word.format(data=data, root=root) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "x").exists()


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
    ran = run("tune-regression", data, "--target", "y", *QUICK, "-e", tmp_path / "out")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_for_something_else_is_refused(tuned_table, tmp_path):
    data, _, _ = tuned_table
    (tmp_path / "study/ml-training-data").mkdir(parents=True)
    ran = run("tune-regression", data, "--target", "y", *QUICK, "-e", tmp_path / "study")
    assert ran.code == 2
    assert "is an experiment with texts. Name another folder" in ran.err
    buried = tmp_path / "found/models/data.csv"
    buried.parent.mkdir(parents=True)
    buried.write_bytes(data.read_bytes())
    ran = run("tune-regression", buried, "--target", "y", *QUICK, "-e", tmp_path / "found")
    assert ran.code == 2
    assert "lies where the results would be written" in ran.err


def test_a_categorical_column_is_left_out_and_named(tmp_path):
    x, y = columns(40)
    rows = [f"{a},{b},{'red' if a > 0 else 'blue'},{t}" for (a, b, _), t in zip(x, y, strict=True)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["a,b,colour,y", *rows]) + "\n")
    flags = ("--models", "poly_ridge", "--folds", "2", "--trials", "1")
    found = tune(data, tmp_path / "out", *flags)["data"]
    assert found["features"] == ["a", "b"]
    assert any("'colour'" in note for note in found["notes"])


def test_groups_are_a_column_that_is_no_feature(tmp_path):
    x, y = columns(60)
    rows = [f"{a},{b},g{k % 12},{t}" for k, ((a, b, _), t) in enumerate(zip(x, y, strict=True))]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["a,b,lab,y", *rows]) + "\n")
    flags = ("--models", "poly_ridge", "--folds", "2", "--trials", "1", "--group-column", "lab")
    found = tune(data, tmp_path / "out", *flags)["data"]
    assert (found["features"], found["groups"]) == (["a", "b"], 12)


def test_the_second_of_two_runs_is_told_who_holds_the_lock(tuned_table):
    data, root, _ = tuned_table
    with hold_lock(root, "ordinate tune-regression"):
        ran = run("tune-regression", data, "--target", "y", *QUICK, "-e", root)
    assert ran.code == 2
    assert f"in use by process {os.getpid()}" in ran.err


def test_examples_of_the_help_run_one_after_the_other(tmp_path, monkeypatch):
    """All but the search itself is as they say: it is a small one here."""
    made = []

    def small(table, root, settings, **given):
        made.append(settings)
        quick = {"models": "poly_ridge,kernel_ridge,svr", "trials": 1, "folds": 2}
        return tune_table(table, root, Settings(**quick, shift=settings.shift), **given)

    monkeypatch.setattr("ordinate.tuning.regress.tuning.tune_table", small)
    monkeypatch.chdir(tmp_path)
    x, y = columns()
    lines = [",".join(map(repr, row)) for row in np.column_stack([x, y]).tolist()]
    for name in ("densities.csv", "new.csv"):
        text = "\n".join(["carbons,pressure,temperature,density", *lines])
        (tmp_path / name).write_text(text + "\n")
    shown = tune_regression.EXAMPLES.splitlines()
    assert shown[1].strip() == f'cp "$({FOUND} densities)" densities.csv'
    assert locate_example("densities").read_text().splitlines()[0].endswith(",density")
    modules = (tune_regression, predict_regression, analyze_search)
    text = "".join(module.EXAMPLES for module in modules).replace("\\\n", "")
    examples = re.findall(r"^  ordinate (\S+ .*)$", text, re.MULTILINE)
    assert len(examples) == 12
    for line in examples:
        ran = run(*shlex.split(line))
        assert ran.code == 0, f"{line}: {ran.err}"
    models = [settings.model_types for settings in made]
    assert models[1] == ("lightgbm", "svr")
    assert models[4:6] == [("gp",), ("mlp",)]
    assert made[5].params["mlp"]["members"] == 16
