"""`ordinate rank`: saved models and files of others in one leaderboard for each test set."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import run
from experiments import CEFR, lay_out
from saved_models import save_model

from ordinate import compare
from ordinate.tuning.classify.trained_model import load_models
from ordinate.tuning.experiment.folder import Experiment

QUICK = ("--resamples", "200")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = lay_out(
        tmp_path_factory.mktemp("made") / "study",
        tests={"test": 36, "other": 24},
        sets=("strong", "weak", "noise"),
        writers=6,
    )
    return root, {name: save_model(root, name) for name in ("strong", "weak", "noise")}


@pytest.fixture(autouse=True)
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made[0], tmp_path / "study")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def names(made):
    return made[1]


def ranked(*arguments) -> dict:
    ran = run("rank", "-e", "study", *QUICK, *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def systems(found: dict, test: str = "test") -> dict:
    (board,) = found["tests"][test]["metrics"].values()
    return board["systems"]


def gold(stem: str, n: int) -> dict[str, str]:
    return {f"{stem}-{k}": CEFR[k % 6] for k in range(n)}


def external(name: str, answers: dict) -> str:
    Path(name).write_text(json.dumps(answers), "utf-8")
    return name


# --- models --------------------------------------------------------------------------------------


def test_all_models_are_ranked_on_all_test_sets_as_compare_does(names):
    found = ranked("--metric", "cem_ord")
    assert list(found["tests"]) == ["other", "test"]
    study = Experiment.open("study")
    labels, columns = np.array(CEFR), {}
    for model in load_models(study):
        features = {name: study.features(name, "test") for name in model.sets}
        columns[model.name] = labels[model.predict(features).levels]
    data = study.dataset("test")
    expected = compare(data.labels, columns, "cefr", "cem_ord", resamples=200).to_dict()
    (board,) = found["tests"]["test"]["metrics"].values()
    assert board["pairs"] == expected["metrics"]["cem_ord"]["pairs"]
    assert board["baselines"] == expected["metrics"]["cem_ord"]["baselines"]
    for name, one in expected["metrics"]["cem_ord"]["systems"].items():
        assert systems(found)[name] | one == systems(found)[name]
    assert next(iter(systems(found))) == names["strong"]


def test_a_model_no_better_than_chance_is_flagged(names):
    flags = {name: one["flag"] for name, one in systems(ranked("--metric", "mae")).items()}
    assert flags[names["noise"]] == "no better than chance"
    assert flags[names["strong"]] is None


def test_test_sets_and_models_can_be_chosen(names):
    found = ranked("--metric", "mae", "--test-set", "other", "--model", "strong", "--model", "weak")
    assert list(found["tests"]) == ["other"]
    assert set(systems(found, "other")) == {names["strong"], names["weak"]}
    alone = ranked("--metric", "mae", "--test-set", "test", "--model", "strong")
    assert systems(alone)[names["strong"]]["rank"] == 1


def test_groups_widen_the_intervals_that_they_should():
    plain, grouped = (
        ranked("--metric", "mae", "--test-set", "test", *more)["tests"]["test"]
        for more in ((), ("--group-column", "writer"))
    )
    assert (plain["groups"], grouped["groups"]) == (None, 6)


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("text", "Leaderboard by mae"),
        ("markdown", "| rank |"),
        ("latex", "\\toprule"),
        ("csv", ","),
    ],
)
def test_the_report_comes_in_every_form_with_baselines_as_rows(form, sign):
    ran = run("rank", "-e", "study", *QUICK, "--metric", "mae", "--format", form, "-o", "out")
    assert (ran.code, ran.err) == (0, "")
    text = Path("out").read_text("utf-8")
    assert sign in text
    assert "chance" in text
    again = run("rank", "-e", "study", *QUICK, "--metric", "mae", "--format", form, "-o", "out")
    assert (again.code, "Pass --force" in again.err) == (2, True)


def test_items_without_gold_are_left_out_with_a_count():
    path = Path("study/ml-test-data/test.csv")
    path.write_text(path.read_text().replace("Text 3 of test.,B2", "Text 3 of test.,"))
    found = ranked("--metric", "mae", "--test-set", "test")["tests"]["test"]
    assert (found["n"], found["unlabelled"]) == (35, 1)


def test_a_test_set_without_gold_or_features_is_named():
    path = Path("study/ml-test-data/other.csv")
    rows = list(csv.reader(io.StringIO(path.read_text())))
    path.write_text("".join(",".join([*row[:2], row[3]]) + "\n" for row in rows))
    found = ranked("--metric", "mae")
    assert list(found["tests"]) == ["test"]
    assert found["notes"] == ["other has no gold levels and is left out."]
    shutil.rmtree("study/features/weak/test")
    notes = ranked("--metric", "mae")["tests"]["test"]["source"]["notes"]
    assert any("'weak' has no features for test" in note for note in notes)


def test_test_sets_that_nobody_answers_are_an_error_that_says_why():
    for name in ("strong", "weak", "noise"):
        shutil.rmtree(f"study/features/{name}/test")
    ran = run("rank", "-e", "study", "--metric", "mae", "--test-set", "test")
    assert ran.code == 2
    assert "There is nothing to evaluate. No system predicts test." in ran.err
    assert "'weak' has no features for test" in ran.err


# --- files of others -----------------------------------------------------------------------------


def test_files_of_others_join_with_the_share_of_their_answers():
    answers = dict(list(gold("test", 36).items())[:27]) | {"nobody": "A1"}
    found = ranked(
        "--metric", "mae", "--test-set", "test", "--external", external("llm.json", answers)
    )
    one = systems(found)["llm"]
    assert one["coverage"]["share"] == 0.75
    assert one["coverage"]["unknown_ids"] == ["nobody"]
    assert one["value"] > 0  # unanswered items are the worst answer
    assert found["unanswered"] == "worst"
    dropped = ranked(
        *("--metric", "mae", "--test-set", "test", "--external", "llm.json", "--unanswered", "drop")
    )
    assert systems(dropped)["llm"]["value"] == 0.0
    assert dropped["tests"]["test"]["n"] == 27
    ran = run(
        "rank", "-e", "study", "--metric", "mae", "--external", "llm.json", "--unanswered", "error"
    )
    assert ran.code == 2
    assert "9 of 36 predictions of llm are missing (id test-27, " in ran.err
    assert "--unanswered drop" in ran.err


def test_probabilities_of_others_are_decoded_by_argmax_and_that_is_said():
    spread = {
        one: {x: 0.6, CEFR[0] if x != "A1" else "A2": 0.4} for one, x in gold("test", 36).items()
    }
    external("llm.json", spread)
    ran = run("rank", "-e", "study", *QUICK, "--metric", "mae", "--external", "llm.json")
    assert ran.code == 0, ran.err
    text = " ".join(ran.out.split())
    assert "the most probable one (argmax)" in text
    assert "predicts 36 of 36 items (100.0 %)" in text
    assert "llm predicts no item of other and is left out there." in text
    assert systems(ranked("--metric", "mae", "--external", "llm.json"))["llm"]["value"] == 0.0


def test_what_predict_writes_can_be_ranked_as_a_file(names):
    data = ("--data", "study/ml-test-data/test.csv", "--model", "weak", "-o", "mine.csv")
    assert run("predict", "-e", "study", *data).code == 0
    found = systems(ranked("--metric", "cem_ord", "--test-set", "test", "--external", "mine.csv"))
    assert found["mine"]["value"] == found[names["weak"]]["value"]
    assert found["mine"]["rank"] == found[names["weak"]]["rank"]


def test_files_alone_can_be_ranked():
    shutil.rmtree("study/models")
    external("a.json", gold("test", 36))
    external("b.json", dict.fromkeys(gold("test", 36), "B1"))
    found = systems(ranked("--metric", "mae", "--external", "a.json", "--external", "b.json"))
    assert {name: one["flag"] for name, one in found.items()} == {
        "a": None,
        "b": "no better than chance",
    }


def test_rows_stand_for_ids_where_there_are_none():
    for path in Path("study/ml-test-data").glob("*.csv"):
        rows = list(csv.reader(io.StringIO(path.read_text())))
        path.write_text("".join(",".join(row[1:]) + "\n" for row in rows))
    shutil.rmtree("study/models")
    Path("x.csv").write_text("row,level\n" + "".join(f"{k + 1},{CEFR[k % 6]}\n" for k in range(36)))
    found = ranked("--metric", "mae", "--test-set", "test", "--external", "x.csv")
    assert systems(found)["x"]["value"] == 0.0
    notes = found["tests"]["test"]["source"]["notes"]
    assert "test has no ids: x is matched by the numbers of rows." in notes
    ran = run("rank", "-e", "study", "--metric", "mae", "--external", "x.csv")
    assert ran.code == 2
    assert "The id '1' of x.csv is in other and in test. Say which test set" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "cemord"), "Did you mean 'cem_ord'"),
        (("--metric", "mae,cem_ord"), "--metric takes one metric"),
        (("--metric", "brier"), "brier"),
        (("--metric", "mae", "--test-set", "tset"), "There is no test set 'tset' (--test-set)"),
        (("--metric", "mae", "--model", "none"), "There is no model 'none'"),
        (("--metric", "mae", "--external", "gone.csv"), "There is no file 'gone.csv'"),
        (
            ("--metric", "mae", "--external", "far.json"),
            "far.json predicts none of the items: its ids",
        ),
        (("--metric", "mae", "--external", "bad.json"), "Label 'B9' (id 'test-1' of bad.json)"),
        (("--metric", "mae", "--external", "sum.json"), "sum to 0.9, not to 1"),
        (("--metric", "mae", "--external", "strong-logistic*.json"), "like another system"),
        (
            ("--metric", "mae", "--scale", "1..6"),
            "is on the scale A1 < A2 < B1 < B2 < C1 < C2, and",
        ),
        (("--metric", "mae", "--resamples", "3"), "resamples"),
        (("--metric", "mae", "--interval", "2"), "The level of an interval"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(arguments, message, names):
    external("far.json", {"x": "A1"})
    external("bad.json", {"test-1": "B9"})
    external("sum.json", {"test-1": {"A1": 0.5, "B1": 0.4}})
    external(f"{names['strong']}.json", gold("test", 36))
    ran = run("rank", "-e", "study", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_an_experiment_without_models_says_how_to_make_some():
    shutil.rmtree("study/models")
    ran = run("rank", "-e", "study", "--metric", "mae")
    assert ran.code == 2
    assert "There are no saved models" in ran.err
    assert "ordinate tune -e study" in ran.err


def test_an_output_that_is_an_external_file_is_refused():
    external("llm.json", gold("test", 36))
    ran = run(
        *("rank", "-e", "study", "--metric", "mae", "--external", "llm.json"),
        *("--format", "json", "-o", "llm.json", "--force"),
    )
    assert ran.code == 2
    assert "is read, so it cannot be written too" in ran.err


def test_a_tampered_model_is_refused(names):
    path = Path("study/models") / names["weak"] / "model/model.skops"
    path.write_bytes(path.read_bytes()[:-10])
    ran = run("rank", "-e", "study", "--metric", "mae")
    assert ran.code == 2
    assert "model.skops" in ran.err


def test_a_search_of_regression_models_has_commands_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found/results").mkdir(parents=True)
    (tmp_path / "found/results/results.json").write_text('{"task": "tune_regression"}')
    for line in ("rank -e found", "rank -e found --external x.csv"):
        ran = run(*line.split())
        assert ran.code == 2
        assert "found has regression models" in ran.err
        assert "ordinate predict-regression -e " in ran.err
