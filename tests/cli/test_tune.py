"""`ordinate tune`: the command, its files, and one message for whatever is wrong."""

import json
import os
import subprocess
import sys
import tomllib

import pytest
from command import read_values, run
from experiments import CEFR, lay_out
from search_cases import read_untimed_files

from ordinate.render import render
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.lock import hold_lock

QUICK = ("--models", "logistic", "--trials", "2", "--folds", "3", "--top-k", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = lay_out(tmp_path_factory.mktemp("finished"), n=36, sets=("strong", "noise"))
    return root, run("tune", "-e", root, *QUICK, "--format", "json")


@pytest.fixture
def root(tmp_path):
    return lay_out(tmp_path / "study", n=36, sets=("strong", "noise"))


def files(root) -> set:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def test_the_command_gives_the_numbers_of_python(finished, tmp_path):
    _, ran = finished
    assert (ran.code, ran.err) == (0, "")
    other = lay_out(tmp_path, n=36, sets=("strong", "noise"))
    settings = Settings(models="logistic", trials=2, folds=3, top_k=1)
    assert read_values(ran.out) == json.loads(
        json.dumps(tune_experiment(Experiment.open(other), settings).to_dict())
    )


def test_the_same_command_writes_the_same(finished):
    root, first = finished
    before = read_untimed_files(root)
    assert run("tune", "-e", root, *QUICK, "--format", "json") == first
    assert read_untimed_files(root) == before


def test_the_resolved_configuration_repeats_the_run(finished, tmp_path):
    root, first = finished
    (path,) = root.glob("results/runs/*/config.toml")
    values = tomllib.loads(path.read_text())
    assert values["experiment"] == str(root)
    assert (values["metric"], values["seed"], values["models"]) == ("cem_ord", 0, ["logistic"])
    saved = tmp_path / "again.toml"
    saved.write_text(path.read_text())
    assert run("tune", "--config", saved, "--format", "json") == first
    assert path.read_text() == saved.read_text()


def test_flags_win_over_the_configuration(finished, tmp_path):
    root, _ = finished
    config = tmp_path / "tune.toml"
    config.write_text(f'experiment = "{root}"\nfolds = 3\nmodels = "svm"\ndry-run = true\n')
    ran = run("tune", "--config", config, "--models", "forest,vote", "--format", "json")
    plan = json.loads(ran.out)
    assert plan["settings"]["models"] == ["forest", "vote"]
    assert plan["settings"]["folds"] == 3


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(root):
    before = files(root)
    ran = run("tune", "-e", root, "--dry-run", *QUICK)
    assert (ran.code, ran.err) == (0, "")
    assert files(root) == before
    for words in ("strong", "by id", "noise", "by row order", "logistic", "Nothing was written"):
        assert words in ran.out
    # two sets in three folds; two trials in three folds; the winner's three folds and its refit
    assert "At most 16 fits: 6 for screening, 6 for search, 4 for finalists" in ran.out


def test_a_dry_run_finds_what_is_wrong(root):
    (root / "features/noise/train/features_dense.csv").write_text("noise_0\n1\n")
    before = files(root)
    assert run("tune", "-e", root, "--dry-run").code == 2
    assert files(root) == before


def test_the_second_of_two_runs_is_told_who_holds_the_lock(root):
    with hold_lock(root, "ordinate tune -e study"):
        ran = run("tune", "-e", root, *QUICK)
    assert (ran.code, ran.out) == (2, "")
    assert f"in use by process {os.getpid()}" in ran.err
    assert "ordinate tune -e study" in ran.err
    assert not (root / "results").exists()


def test_a_run_in_another_process_holds_the_lock(root):
    """The second process is started while the first one holds the lock."""
    with hold_lock(root, "the first"):
        second = subprocess.run(
            [sys.executable, "-m", "ordinate", "tune", "-e", root, *QUICK],
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 2
    assert f"process {os.getpid()}" in second.stderr
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_every_form_is_written_whole_and_never_over_another(finished, tmp_path, form):
    root, _ = finished
    out = tmp_path / "report"
    options = ("tune", "-e", root, *QUICK, "--format", form, "-o", out)
    assert run(*options).code == 0
    assert "strong" in out.read_text()
    assert form == "csv" or "saved as" in out.read_text()  # a file has all details
    again = run(*options)
    assert again.code == 2
    assert "--force" in again.err


def test_details_are_shown_where_a_flag_or_the_configuration_asks_for_them(finished, tmp_path):
    root, _ = finished
    config = tmp_path / "tune.toml"
    config.write_text("details = true\n")
    options = ("tune", "-e", root, *QUICK)
    shown = [
        "saved as" in run(*options, *x).out for x in ((), ("--details",), ("--config", config))
    ]
    assert shown == [False, True, True]


def test_own_metrics_are_loaded_by_the_flag_alone(root, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "import ordinate\nfrom ordinate.metrics import find_metric\n\n\n"
        "@ordinate.metric(direction='maximize')\ndef my_share(table):\n"
        "    return find_metric('accuracy')(table)\n"
    )
    config = tmp_path / "tune.toml"
    config.write_text('metric = "my_share"\n')
    asked = ("tune", "-e", root, *QUICK, "--config", config, "--format", "json")
    ran = run(*asked, "--load", own)
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["metric"] == "my_share"
    (kept,) = root.glob("results/runs/my_share-*/manifest.json")
    assert f"--load {own}" in json.loads(kept.read_text())["command"]
    assert "load" not in tomllib.loads(kept.with_name("config.toml").read_text())


def test_columns_and_features_may_have_other_names_and_places(root, tmp_path):
    data = root / "ml-training-data/train.csv"
    data.write_text(data.read_text().replace("id,text,label", "nr,words,mark", 1))
    test = root / "ml-test-data/test.csv"
    test.write_text(test.read_text().replace("id,text,label", "nr,words,mark", 1))
    (root / "features").rename(tmp_path / "elsewhere")
    columns = ("--label-column", "mark", "--id-column", "nr", "--text-column", "words")
    where = ("--features-base-dir", tmp_path / "elsewhere", "--scale", ",".join(CEFR))
    ran = run("tune", "-e", root, *where, *columns, *QUICK)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "mae,accuracy"), "Tuning takes one metric"),
        (("--metric", "macro_f1"), "Did you mean 'f1_macro'"),
        (("--metric", "brier"), "brier"),
        (("--weight-alpha", "2"), "--weight-alpha takes a finite number of 0 to 1, not 2.0"),
        (("--models", "logistik"), "Did you mean 'logistic'"),
        (("--models", ""), "--models takes names"),
        (("--top-k", "0"), "--top-k takes an integer of at least 1"),
        (("--folds", "x"), "invalid int value"),
        (("--decode", "best"), "invalid choice"),
        (("--feature-pattern", "none*"), "No feature set is called"),
        (("--training-sets", "test"), "There is no training data 'test'"),
        (("--config", "none.toml"), "cannot be read"),
        (("-o", "no/where.txt"), "cannot be written"),
        (("--scale", "low,high"), "is not on the scale low < high"),
        (("--nest",), "unrecognized arguments: --nest. Did you mean --nested? (see ordinate tune"),
        (("--trails=5", "x"), "arguments: --trails=5 x. Did you mean --trials? (see ordinate tune"),
        (("--silent",), "unrecognized arguments: --silent (see ordinate tune --help)"),
        (("--zzz", "-9"), "unrecognized arguments: --zzz -9 (see ordinate tune --help)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_has_one_message(root, options, message):
    before = files(root)
    ran = run("tune", "-e", root, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert files(root) == before


def test_an_experiment_must_be_named_and_there():
    assert "Name its folder with -e DIR" in run("tune").err
    ran = run("tune", "-e", "nowhere")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "ordinate init" in ran.err


def test_the_summary_is_the_report_as_markdown(finished):
    root, _ = finished
    settings = Settings(models="logistic", trials=2, folds=3, top_k=1)
    result = tune_experiment(Experiment.open(root), settings)
    summary = (root / "results/summary.md").read_text()
    assert summary == render(result, "markdown")
    assert "\n# Tuned for cem" in summary  # behind the front matter
