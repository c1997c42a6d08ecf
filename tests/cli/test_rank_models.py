"""`ordinate rank`: every saved model on every test set, beside constants and chance."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from command import read_values, run
from experiments import lay_out
from saved_models import save_model

import ordinate
from ordinate import evaluate
from ordinate.errors import BadOption
from ordinate.tuning.classify.trained_model import load_models
from ordinate.tuning.experiment.folder import Experiment

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = lay_out(
        tmp_path_factory.mktemp("made") / "study",
        tests={"test": 36, "other": 24},
        sets=("strong", "noise"),
        writers=6,
    )
    return root, {name: save_model(root, name) for name in ("strong", "noise")}


@pytest.fixture(autouse=True)
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made[0], tmp_path / "study")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def names(made):
    return made[1]


def evaluated(*arguments) -> dict:
    ran = run("rank", "-e", "study", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def test_every_model_on_every_test_set_is_what_python_says():
    found = evaluated()
    study = Experiment.open("study")
    assert list(found["tests"]) == ["other", "test"]
    for model in load_models(study):
        for stem in ("test", "other"):
            features = {name: study.features(name, stem) for name in model.sets}
            predictions = model.predict(features)
            levels = [CEFR[k] for k in predictions.levels]
            expected = evaluate(list(study.dataset(stem).labels), levels, scale="cefr").to_dict()
            one = found["tests"][stem]["models"][model.name]
            for key in ("metrics", "confusion_matrix", "per_level", "n"):
                assert one[key] == json.loads(json.dumps(expected[key])), key
            by_rule = one["decision_rules"]
            assert by_rule["metric_optimal"]["mae"] == expected["metrics"]["mae"]["value"]
            assert 1 <= one["sets"]["mean_size"] <= 6


def test_a_ranking_in_python_is_that_of_the_command():
    given = {"metric": "mae", "metrics": "cem_ord,mae", "test_sets": ["test"], "models": ["noise"]}
    found = ordinate.rank("study", **given).to_dict()
    words = ["--metric", "mae", "--metrics", "cem_ord,mae", "--test-set", "test"]
    assert evaluated(*words, "--model", "noise") == json.loads(json.dumps(found))
    with pytest.raises(BadOption, match="takes one metric"):
        ordinate.rank("study", metric="mae,rmse")


def test_the_table_has_intervals_baselines_and_flags(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    ran = run("rank", "-e", "study")
    assert (ran.code, ran.err) == (0, "")
    shown = ran.out.partition("Models on test sets")[2]
    lines = [line for line in shown.splitlines() if line.startswith("test  ")]
    table = lines[:5]
    assert [line.split()[1] for line in table][:2] == ["strong/logistic", "noise/logistic"]
    assert table[1].endswith("no better than chance")
    assert " to " in table[0]
    assert not table[0].endswith("no better than chance")
    for line, name in zip(table[2:], ("(best constant)", "(majority)", "(chance)"), strict=True):
        assert name in line
    assert "by the decision rule" in ran.out
    assert "rounded mean" in ran.out


def test_chance_and_constants_are_those_of_the_gold_levels():
    for stem in ("test", "other"):
        found = evaluated("--metrics", "accuracy,mae")["tests"][stem]["baselines"]
        assert found["accuracy"]["chance"]["value"] == pytest.approx(1 / 6)
        assert found["accuracy"]["majority"]["value"] == pytest.approx(1 / 6)
        assert found["mae"]["best_constant"]["value"] == pytest.approx(1.5)
        assert found["mae"]["chance"]["value"] == pytest.approx(35 / 18)


def test_metrics_are_those_that_are_asked_for(names):
    found = evaluated("--metrics", "mae,weighted_kappa(power=1)")
    for one in found["tests"]["test"]["models"].values():
        assert list(one["metrics"]) == ["mae", "weighted_kappa(power=1)"]
    ran = run("rank", "-e", "study", "--metrics", "mae,weighted_kappa(power=1)", "-o", "report")
    report = Path("report").read_text("utf-8")
    assert "weighted_kappa(power=1) (higher)" in report
    assert all(name in report for name in names.values())
    assert ran.code == 0
    assert "cem_ord (higher)" not in report


def test_models_and_test_sets_can_be_chosen(names):
    found = evaluated("--model", "strong", "--test-set", "other")
    assert list(found["tests"]) == ["other"]
    assert list(found["tests"]["other"]["models"]) == [names["strong"]]


def test_groups_are_drawn_whole():
    found = evaluated("--group-column", "writer", "--metrics", "mae")
    one = next(iter(found["tests"]["test"]["models"].values()))
    assert (found["tests"]["test"]["groups"], one["groups"]) == (6, 6)


def test_flat_records_have_models_and_baselines(names):
    ran = run("rank", "-e", "study", "--metrics", "mae", "--test-set", "test", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    rows = rows[5:]  # after those of the leaderboard
    assert [(row["role"], row["system"].split(" (")[0]) for row in rows] == [
        ("model", names["strong"]),
        ("model", names["noise"]),
        ("baseline", "best constant"),
        ("baseline", "majority"),
        ("baseline", "chance"),
    ]
    assert float(rows[0]["low"]) <= float(rows[0]["value"]) <= float(rows[0]["high"])


@pytest.mark.parametrize(("form", "sign"), [("markdown", "| test set |"), ("latex", "\\toprule")])
def test_papers_get_their_table(form, sign):
    ran = run("rank", "-e", "study", "--metrics", "mae", "--format", form, "-o", "out")
    assert (ran.code, ran.err) == (0, "")
    assert sign in Path("out").read_text("utf-8")


def test_changed_test_labels_change_no_prediction():
    before = evaluated("--metrics", "mae", "--test-set", "test")
    path = Path("study/ml-test-data/test.csv")
    path.write_text(path.read_text().replace(",A1,", ",C2,"))
    after = evaluated("--metrics", "mae", "--test-set", "test")
    for name, one in before["tests"]["test"]["models"].items():
        other = after["tests"]["test"]["models"][name]
        columns = [
            [sum(column) for column in zip(*x["confusion_matrix"], strict=True)]
            for x in (one, other)
        ]
        assert columns[0] == columns[1]
        assert one["confusion_matrix"] != other["confusion_matrix"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "study", "--metrics", "brier"), "For metrics of probabilities, write predictions"),
        (("-e", "study", "--metrics", "maee"), "Did you mean"),
        (("-e", "study", "--test-set", "nope"), "There is no test set 'nope'"),
        (("-e", "nowhere"), "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(arguments, message):
    ran = run("rank", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_an_experiment_without_models_says_how_to_make_some():
    shutil.rmtree("study/models")
    ran = run("rank", "-e", "study")
    assert ran.code == 2
    assert "ordinate tune -e study" in ran.err


def test_a_level_off_the_scale_in_a_test_set_is_named():
    path = Path("study/ml-test-data/test.csv")
    path.write_text(path.read_text().replace("Text 3 of test.,B2", "Text 3 of test.,B7"))
    ran = run("rank", "-e", "study")
    assert ran.code == 2
    assert "Label 'B7' (row 4 of column 'label' of" in ran.err
