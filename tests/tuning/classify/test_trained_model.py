"""Saved models: found by name, refused when tampered with, and what they predict for what."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from experiments import lay_out
from saved_models import crown, save_model, save_vote

from ordinate import Scale
from ordinate.errors import BadInput, BadOption, BadOutput, BadStore, NoItems
from ordinate.postprocess.conformal_sets import PredictionSets
from ordinate.tuning.classify.batch_prediction import (
    load_data_items,
    load_experiment_items,
    load_feature_items,
    predict_datasets,
    predict_items,
)
from ordinate.tuning.classify.decision_rules import DECISION_RULES
from ordinate.tuning.classify.trained_model import Predictions, load_model, load_models
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.search.saved_models import list_model_names

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An experiment with three models and a vote; tests work on copies."""
    root = lay_out(tmp_path_factory.mktemp("made") / "study", tests={"test": 24, "other": 12})
    names = {"strong": save_model(root, "strong"), "weak": save_model(root, "weak")}
    names["scores"] = save_model(root, "strong", "regression")
    names["vote"] = save_vote(root, [names["strong"], names["weak"]])
    crown(root, names["weak"])
    return root, names


@pytest.fixture
def study(made, tmp_path, monkeypatch):
    shutil.copytree(made[0], tmp_path / "study")
    monkeypatch.chdir(tmp_path)
    return Experiment.open("study")


@pytest.fixture
def names(made):
    return made[1]


# --- finding -------------------------------------------------------------------------------------


def test_models_are_found_by_name_by_beginning_and_as_the_winner(study, names):
    assert list_model_names(study.root) == sorted(names.values())
    assert load_model(study, names["strong"]).name == names["strong"]
    assert load_model(study, "vote").name == names["vote"]
    assert load_model(study).name == names["weak"]
    assert [one.name for one in load_models(study)] == sorted(names.values())
    assert [one.name for one in load_models(study, ["weak", names["weak"]])] == [names["weak"]]
    shutil.rmtree("study/models")
    with pytest.raises(BadInput, match="no saved models"):
        load_models(study)


# --- what was tampered with ----------------------------------------------------------------------


def reseal(folder, *, artifact="model", name=None, **config):
    """Write a manifest that fits whatever lies in the folder now."""
    known = {"config": Manifest.read(folder).config | config, "data": {}, "seed": 0, "command": ""}
    Manifest.of(folder, artifact, name or folder.name, **known).write(folder)


def forge(folder, file="description.json", **changes):
    """Change what a file of a model says, and its manifest with it."""
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    reseal(folder)


@pytest.mark.parametrize(
    "file", ["model/model.json", "model/model.skops", "calibration.json", "description.json"]
)
def test_a_model_that_was_changed_is_refused_by_the_file(study, names, file):
    path = study.folder("models") / names["strong"] / file
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BadStore, match=rf"'{file}' .* is not what its manifest.json lists"):
        load_model(study, names["strong"])


def test_a_member_of_a_vote_that_was_changed_is_refused(study, names):
    (study.folder("models") / names["weak"] / "calibration.json").write_text("{}")
    with pytest.raises(BadStore, match=r"calibration.json"):
        load_model(study, "vote")
    shutil.rmtree(study.folder("models") / names["weak"])
    with pytest.raises(BadStore, match="There is no model 'weak-"):
        load_model(study, "vote")


def test_a_vote_that_was_changed_is_refused(study, names):
    path = study.folder("models") / names["vote"] / "calibration.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"threshold": 0.5}))
    with pytest.raises(BadStore, match=r"'calibration.json' .* is not what its manifest"):
        load_model(study, "vote")


def test_a_pickle_among_the_files_is_never_opened(study, names, tmp_path):
    folder = study.folder("models") / names["strong"]
    trap = b"cos\nsystem\n(S'touch " + str(tmp_path / "harm").encode() + b"'\ntR."
    (folder / "model/model.pkl").write_bytes(trap)
    with pytest.raises(BadStore, match="does not list"):
        load_model(study, names["strong"])
    reseal(folder)
    with pytest.raises(BadStore, match="is a pickle"):
        load_model(study, names["strong"])
    assert not (tmp_path / "harm").exists()


def test_a_folder_that_fits_its_manifest_and_no_model_is_refused(study, names):
    folder = study.folder("models") / names["strong"]
    forge(folder, features="six")
    with pytest.raises(
        BadStore, match=r"description in .*'features' must be an integer.* Tune aga"
    ):
        load_model(study, names["strong"])
    forge(folder, features=6, sets=["strong", "weak"])
    with pytest.raises(BadStore, match="do not fit together"):
        load_model(study, names["strong"])
    forge(folder, sets=["strong"])
    assert load_model(study, names["strong"]).sets == ("strong",)
    forge(folder, "calibration.json", scale=["A1", "A1"])
    with pytest.raises(BadStore, match="is no calibration"):
        load_model(study, names["strong"])
    (folder / "calibration.json").write_text("[]")
    reseal(folder)
    with pytest.raises(BadStore, match="is no calibration"):
        load_model(study, names["strong"])


def test_a_vote_that_does_not_fit_its_members_is_refused(study, names):
    folder = study.folder("models") / names["vote"]
    forge(folder, members=[names["strong"]])
    with pytest.raises(BadStore, match="do not fit together"):
        load_model(study, "vote")
    forge(folder, members=[names["vote"]])
    with pytest.raises(BadStore, match="a vote among the members of a vote"):
        load_model(study, "vote")


@pytest.mark.parametrize("members", [5, "strong", [], [3], None, {"strong": 1}], ids=str)
def test_members_of_a_vote_that_are_no_names_are_refused(study, names, members):
    forge(study.folder("models") / names["vote"], members=members)
    with pytest.raises(BadStore, match=r"'members.* must be a.* Tune again"):
        load_model(study, "vote")


# --- predicting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["strong", "scores", "vote"])
def test_predictions_are_what_model_and_decision_say(study, names, key):
    model = load_model(study, names[key])
    found = predict_items(model, load_experiment_items(study, model, "test")).predictions
    features = {name: study.features(name, "test") for name in model.sets}
    answers = model.compute_outputs(features)
    assert found.probabilities.shape == (24, 6)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.levels, model.calibration.levels(answers))
    np.testing.assert_array_equal(
        found.by_decision_rule["argmax"], found.probabilities.argmax(axis=1)
    )
    np.testing.assert_array_equal(
        found.by_decision_rule["rounded_mean"], model.calibration.levels(answers, "rounded_mean")
    )
    assert (found.sets.low_positions <= found.sets.high_positions).all()
    gold = study.dataset("test").gold(model.scale)
    assert np.abs(found.levels - gold).mean() < 0.8


def test_a_vote_averages_the_probabilities_of_its_members(study, names):
    vote, *members = (load_model(study, names[key]) for key in ("vote", "strong", "weak"))
    assert vote.sets == ("strong", "weak")
    features = {name: study.features(name, "test") for name in vote.sets}
    each = [one.predict(features).probabilities for one in members]
    np.testing.assert_allclose(vote.compute_outputs(features), np.mean(each, axis=0))


def test_a_level_that_training_lacks_keeps_its_place_on_the_scale(tmp_path):
    labels = [CEFR[1 + k % 5] for k in range(50)]
    root = lay_out(tmp_path / "study", labels=labels, sets=("strong",))
    study = Experiment.open(root)
    model = load_model(study, save_model(root, "strong"))
    found = predict_items(model, load_experiment_items(study, model, "test")).predictions
    assert list(found.columns())[4:10] == [f"p_{label}" for label in CEFR]
    assert (found.probabilities[:, 0] < 1e-12).all()
    assert found.levels.min() >= 1


def test_features_of_other_names_are_refused_naming_both_sides(study, names):
    model = load_model(study, names["strong"])
    message = r"fitted to 6 features of the set 'strong' .*features.npz has 6 others .*'weak_0'"
    with pytest.raises(BadInput, match=message):
        predict_items(model, load_feature_items(model, "study/features/weak/test"))
    with pytest.raises(BadInput, match="needs the feature set 'strong'"):
        model.predict({"weak": study.features("weak", "test")})


def test_a_folder_of_features_gives_what_the_data_set_gives(study, names):
    for key in ("strong", "vote"):
        model = load_model(study, names[key])
        given = "study/features/strong/test"
        if key == "vote":
            for name in model.sets:
                shutil.copytree(f"study/features/{name}/test", f"both/{name}")
            given = "both"
        found = predict_items(model, load_feature_items(model, given)).predictions
        expected = predict_items(model, load_experiment_items(study, model, "test")).predictions
        assert found.rows() == expected.rows()


def test_folders_of_features_that_do_not_fit_are_refused(study, names):
    model, vote = (load_model(study, names[key]) for key in ("strong", "vote"))
    with pytest.raises(BadInput, match=r"no folder 'nowhere' \(--feature-folder\)"):
        load_feature_items(model, "nowhere")
    with pytest.raises(BadInput, match="needs the feature sets strong, weak, each in a subfolder"):
        load_feature_items(vote, "study/features/strong/test")
    shutil.copytree("study/features/strong/test", "both/strong")
    shutil.copytree("study/features/weak/other", "both/weak")
    with pytest.raises(BadInput, match="not of the same items"):
        load_feature_items(vote, "both")


def test_training_data_are_predicted_with_a_warning(study, names):
    model = load_model(study, names["strong"])
    found = load_data_items(study, model, "study/ml-training-data/train.csv")
    assert found.name == "train"
    assert "optimistically biased" in found.notes[0]
    assert not load_data_items(study, model, "study/ml-test-data/test.csv").notes


def test_new_texts_need_a_maker_of_their_features(study, names):
    Path("new.csv").write_text("id,text\nn1,Hello.\n")
    model = load_model(study, names["strong"])
    with pytest.raises(BadInput, match=r"'strong' has no extractor .*--feature-folder"):
        load_data_items(study, model, "new.csv")
    with pytest.raises(BadInput, match=r"There is no file 'newer.csv' \(--data\)"):
        load_data_items(study, model, "newer.csv")


# --- files ---------------------------------------------------------------------------------------


def some(scale="cefr", ids=("=1+1", "b")):
    scale = Scale.of(scale)
    p = np.full((2, len(scale)), 1 / len(scale))
    two = np.array([0, 1])
    by_rule = dict.fromkeys(DECISION_RULES, two)
    return Predictions("m", scale, ids, by_rule, p, PredictionSets(scale, two, two))


def test_parquet_and_csv_hold_the_same_at_full_precision(study, names, tmp_path):
    model = load_model(study, names["strong"])
    found = predict_items(model, load_experiment_items(study, model, "test")).predictions
    found.write(tmp_path / "a.csv")
    found.write(str(tmp_path / "a.parquet"))
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert list(rows[0]) == list(table[0])
    assert list(rows[0]) == [
        *("id", "level", "argmax", "rounded_mean"),
        *(f"p_{label}" for label in CEFR),
        *("set_low", "set_high"),
    ]
    for row, cells in zip(rows, table, strict=True):
        assert [float(row[f"p_{x}"]) for x in CEFR] == [cells[f"p_{x}"] for x in CEFR]
        assert [row[x] for x in ("id", "level", "set_low")] == [
            cells[x] for x in ("id", "level", "set_low")
        ]


def test_ids_are_kept_as_they_are_and_rows_are_numbered_without_them(tmp_path):
    some().write(tmp_path / "a.csv")
    assert "\n=1+1,A1" in (tmp_path / "a.csv").read_text()
    some().write(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["id"].to_pylist() == ["=1+1", "b"]
    some(ids=None).write(tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet")["row"].to_pylist() == [1, 2]
    some("a,A", ids=None).write(tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet").column_names[4:6] == ["p_a", "p_A_"]
    with pytest.raises(BadOption, match=r"as .csv or .parquet, not as '.*x.txt'"):
        some().write(tmp_path / "x.txt")


def test_a_part_of_predictions_is_that_of_some_items():
    whole = some()
    wide = PredictionSets(whole.scale, np.array([0, 1]), np.array([2, 4]))
    part = replace(whole, sets=wide).select_rows(np.array([False, True]))
    assert (part.ids, part.levels.tolist()) == (("b",), [1])
    assert (part.sets.low.tolist(), part.sets.high.tolist()) == (["A2"], ["C1"])


def test_predictions_of_test_sets_are_kept_with_a_manifest_and_not_overwritten(study, names):
    model = load_model(study, names["strong"])
    result = predict_datasets(study, model, ["test"])
    folder = study.folder("predictions") / model.name
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "test.csv"]
    with pytest.raises(BadOutput, match=r"test.csv exists already. Pass --force"):
        predict_datasets(study, model, ["other", "test"])
    assert not (folder / "other.csv").exists()
    again = predict_datasets(study, model, ["other", "test"], force=True)
    manifest = Manifest.read(folder)
    manifest.verify(folder)
    assert (manifest.artifact, sorted(manifest.data)) == ("predictions", ["other", "test"])
    assert again.rows()[:3] == predict_datasets(study, model, ["other"], force=True).rows()[:3]
    assert result.to_dict()["data"][0]["n"] == 24
    shown = [x for panel in result.get_chart("level_shares", "test").panels for x in panel.marks]
    assert [(x.y, x.x) for x in shown] == [(x["level"], x["share"]) for x in result.rows()]
    assert not list(study.root.rglob(".ordinate-*"))


def test_a_folder_without_rows_has_nothing_to_predict(study, names):
    folder = study.root / "features" / "strong" / "test"
    (folder / "features.npz").unlink()
    (folder / "ids.csv").unlink()
    (folder / "features_dense.csv").write_text(",".join(f"strong_{j}" for j in range(6)) + "\n")
    model = load_model(study, names["strong"])
    with pytest.raises((NoItems, BadInput), match=r"no items|no rows"):
        predict_items(model, load_feature_items(model, str(folder)))
