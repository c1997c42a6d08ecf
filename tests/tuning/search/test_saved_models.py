"""Saved models of either task: found by name, and refused when they are not what they were."""

import json
import shutil

import numpy as np
import pytest
from search_cases import one_quick_task, seal

from ordinate.errors import BadInput, BadOption, BadStore
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.search.fits import FitOutputs
from ordinate.tuning.search.saved_models import (
    SHOWN_MODELS,
    find_winner,
    list_model_names,
    resolve_model_name,
)


@pytest.fixture
def winner(copied, finished):
    """The folder of a model that is no ensemble, in a copy where it has won."""
    name = finished[1].studies[0].best.name
    path = copied / "results" / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"winner": name}))
    return copied / "models" / name


# --- names ---------------------------------------------------------------------------------------


def test_the_winner_is_loaded_by_default_and_others_by_how_they_begin(case, finished):
    root, result = finished
    assert find_winner(root) == result.winner.name == case.load(root).name
    for one in result.finalists:
        assert resolve_model_name(root, one.name) == one.name
        assert resolve_model_name(root, one.name[:-4]) == one.name
        assert case.load(root, one.name).name == one.name
    study = result.studies[0]
    assert resolve_model_name(root, study.title) == study.best.name  # as reports call it


def test_a_name_that_is_none_is_refused(case, finished):
    root, result = finished
    with pytest.raises(BadOption, match=r"There is no model 'none' \(--model\).* There are: "):
        case.load(root, "none")
    misspelt = f"x{result.winner.name}"
    with pytest.raises(BadOption, match=f"Did you mean '{result.winner.name}'"):
        case.load(root, misspelt)


@pytest.mark.parametrize("name", ["", "../models", "..", "/etc", "a/../../b"])
def test_a_name_does_not_lead_out_of_the_folder(finished, name):
    with pytest.raises(BadInput, match=r"is no name of|outside"):
        resolve_model_name(finished[0], name)


def test_of_many_models_an_error_names_some(tmp_path):
    for k in range(SHOWN_MODELS + 1):
        (tmp_path / f"models/m{k:02}").mkdir(parents=True)
    (tmp_path / "models/.hidden").mkdir()
    assert len(list_model_names(tmp_path)) == SHOWN_MODELS + 1
    with pytest.raises(BadOption, match=r"There is no model 'x'.* m11, …\.$"):
        resolve_model_name(tmp_path, "x")
    with pytest.raises(BadOption, match=r"Several models begin with 'm1'.*: m10, m11, m12\.$"):
        resolve_model_name(tmp_path, "m1")


def test_a_folder_without_models_says_how_to_make_some(tmp_path):
    said = r"no saved models in .*ordinate tune -e .*, or ordinate tune-regression DATA -e"
    for name in (None, "gp"):
        with pytest.raises(BadInput, match=said):
            resolve_model_name(tmp_path, name)


def test_without_results_the_only_model_is_the_winner(copied, finished):
    (copied / "results" / "results.json").unlink()
    with pytest.raises(BadOption, match=r"which says which model won\. Name one with --model"):
        find_winner(copied)
    first, *others = list_model_names(copied)
    for name in others:
        shutil.rmtree(copied / "models" / name)
    assert find_winner(copied) == first
    assert first in {one.name for one in finished[1].finalists}


def test_a_winner_that_is_gone_is_named(copied, finished):
    shutil.rmtree(copied / "models" / finished[1].winner.name)
    with pytest.raises(BadStore, match=r"won, and there is no such model .* or tune again"):
        find_winner(copied)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"winner": 3}', '{"winner": null}'])
def test_results_that_are_not_whole_are_refused(copied, content):
    (copied / "results" / "results.json").write_text(content)
    with pytest.raises(BadStore, match=r"results\.json"):
        find_winner(copied)


# --- files ---------------------------------------------------------------------------------------


def test_all_that_predictions_depend_on_has_a_hash(finished):
    root, result = finished
    predict_nothing = {"task", "model", "metric", "cross_validation", "folds", "run"}
    for one in result.finalists:
        manifest = Manifest.read(root / "models" / one.name)
        assert "description.json" in manifest.files
        assert manifest.config.keys() == predict_nothing


def test_saved_hyperparameters_are_whole(finished):
    root, result = finished
    for one in result.finalists:
        if not one.members:
            about = json.loads((root / "models" / one.name / "description.json").read_text())
            assert about["params"] == one.params
            facts = json.loads((root / "models" / one.name / "model/model.json").read_text())
            assert facts["params"].items() >= one.params.items()


def test_nothing_that_is_saved_is_a_pickle(finished):
    root, _ = finished
    for path in root.rglob("*"):
        assert path.suffix not in {".pkl", ".pickle", ".joblib", ".pt"}
    for path in root.glob("models/*/*.npz"):
        with np.load(path, allow_pickle=False) as stored:
            assert all(stored[name].dtype != object for name in stored.files)


@one_quick_task
@pytest.mark.parametrize("name", ["calibration", "model/model.json", "description.json"])
def test_a_changed_file_is_never_opened(case, winner, finished, name):
    root = winner.parents[1]
    (path,) = winner.glob(f"{name}*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    said = rf"is not what its manifest\.json lists.* remove {winner} and repeat the command"
    with pytest.raises(BadStore, match=said):
        case.load(root)
    with pytest.raises(BadStore, match=said):
        case.tune(root)
    shutil.rmtree(winner)
    assert case.tune(root).to_dict() == finished[1].to_dict()
    case.load(root, winner.name)


def test_a_file_that_is_not_listed_is_refused(case, winner):
    (winner / "model" / "evil.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(BadStore, match=r"evil\.pkl"):
        case.load(winner.parents[1])


def test_models_without_manifests_are_made_again_when_they_are_removed(case, winner, finished):
    root = winner.parents[1]
    (winner / "manifest.json").unlink()
    with pytest.raises(BadStore, match=r"has no manifest\.json"):
        case.load(root)
    shutil.rmtree(root / "models")
    with pytest.raises(BadInput, match="There are no saved models"):
        case.load(root)
    assert case.tune(root).to_dict() == finished[1].to_dict()


def test_a_folder_under_another_name_is_refused(case, winner):
    moved = winner.with_name("moved")
    winner.rename(moved)
    with pytest.raises(BadStore, match="moved or mixed up"):
        case.load(winner.parents[1], "moved")


def test_a_model_that_is_none_is_named(case, winner):
    seal(winner, artifact="results")
    with pytest.raises(BadStore, match=f"holds no model of {case.name}, by its manifest"):
        case.load(winner.parents[1])


def test_a_model_of_another_task_is_refused(case, winner):
    seal(winner, config={"task": "counting"})
    with pytest.raises(BadStore, match=f"holds no model of {case.name}, by its manifest"):
        case.load(winner.parents[1])


def test_a_model_of_another_task_is_predicted_with_by_its_own_command(case, winner):
    other, command = {
        "classification": ("regression", "predict-regression"),
        "regression": ("classification", "predict"),
    }[case.name]
    seal(winner, config={"task": other})
    with pytest.raises(
        BadStore, match=rf"by its manifest\. Predict with it: ordinate {command}\.$"
    ):
        case.load(winner.parents[1])


def test_a_model_without_a_description_is_refused(case, winner):
    (winner / "description.json").unlink()
    seal(winner)
    with pytest.raises(BadStore, match=r"has no description\.json"):
        case.load(winner.parents[1])


@pytest.mark.parametrize("content", ["{", "[]", '"a"', "{}"])
def test_a_description_that_is_none_is_refused(case, winner, content):
    (winner / "description.json").write_text(content)
    seal(winner)
    with pytest.raises(BadStore, match="description"):
        case.load(winner.parents[1])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04damaged", b"{}"])
def test_a_damaged_calibration_is_refused(case, winner, content):
    (path,) = winner.glob("calibration.*")
    path.write_bytes(content)
    seal(winner)
    with pytest.raises(BadStore, match=r"calibration\."):
        case.load(winner.parents[1])


@pytest.mark.parametrize("spoil", ["no outputs", "fewer items", "more columns"])
def test_out_of_fold_predictions_that_do_not_fit_the_items_are_refused(case, winner, spoil):
    path = winner / "out_of_fold.npz"
    outputs = FitOutputs.load(path).predictions
    if spoil == "no outputs":
        path.write_bytes(b"damaged")
    else:
        changed = outputs[:3] if spoil == "fewer items" else np.column_stack([outputs, outputs])
        FitOutputs(changed).save(path)
    seal(winner)
    with pytest.raises(BadStore, match=r"does not hold the out-of-fold predictions for \d+ items"):
        case.tune(winner.parents[1])
