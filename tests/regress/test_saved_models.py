"""Saved surrogates: found again, asked, and refused when they are not what they were."""

import json
import shutil

import numpy as np
import pytest
from surrogates import columns, smooth

from ordinate.errors import BadInput, BadOption, BadStore, OrdinateError
from ordinate.experiment.manifest import Manifest
from ordinate.regress.lattice_features import Lattice
from ordinate.regress.model_inputs import ModelInputs
from ordinate.regress.settings import Settings
from ordinate.regress.trained_model import load_surrogate
from ordinate.regress.tuning import tune_table

SETTINGS = {"models": "svr,kernel_ridge", "trials": 1, "folds": 2, "blend": "always"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("saved")
    return root, tune_table(smooth(), root, Settings(**SETTINGS), unit="kg")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    tune_table(smooth(), root, Settings(models="poly_ridge", trials=1, folds=2))
    return root


@pytest.fixture
def fresh(made, tmp_path):
    root = tmp_path / "fresh"
    shutil.copytree(made, root)
    (folder,) = (root / "models").iterdir()
    return root, folder


def test_the_winner_is_loaded_by_default_and_predicts_as_it_was_tested(found):
    root, result = found
    surrogate = load_surrogate(root)
    assert surrogate.name == result.winner.name
    assert surrogate.unit == "kg"
    test = result.tests[0]
    features = smooth().features[np.array(test.rows) - 1]
    answers = surrogate.predict(features)
    assert np.array_equal(answers.values, test.predictions[surrogate.name])
    assert np.array_equal(answers.lower, test.lower)


def test_a_blend_is_the_weighted_average_of_its_members(found):
    root, result = found
    x = columns(30, seed=9)[0]
    members = [load_surrogate(root, name).predict(x).values for name in result.winner.members]
    expected = np.column_stack(members) @ np.array(result.winner.weights)
    answers = load_surrogate(root).predict(x)
    assert np.allclose(answers.values, expected, rtol=0, atol=1e-12)
    assert (answers.spread > 0).all()


def test_a_smaller_alpha_makes_wider_intervals(found):
    surrogate = load_surrogate(found[0])
    x = columns(5, seed=9)[0]
    narrow, wide = (surrogate.predict(x, alpha) for alpha in (0.5, 0.1))
    assert ((wide.upper - wide.lower) > (narrow.upper - narrow.lower)).all()
    assert surrogate.predict(x).alpha == 0.1


def test_intervals_hold_new_targets_about_as_often_as_promised(tmp_path):
    tune_table(smooth(300), tmp_path, Settings(models="poly_ridge", trials=1, folds=5))
    x, y = columns(4000, seed=5)
    answers = load_surrogate(tmp_path).predict(x)
    held = np.mean((answers.lower <= y) & (y <= answers.upper))
    assert 0.87 < held < 0.94


def test_saved_parameters_are_whole(found):
    root, result = found
    for one in result.finalists[:2]:
        about = json.loads((root / "models" / one.name / "surrogate.json").read_text())
        assert about["params"] == one.params
        facts = json.loads((root / "models" / one.name / "model/model.json").read_text())
        assert facts["params"].items() >= one.params.items()


def test_rows_that_were_learned_from_and_rows_for_stopping_are_counted_apart(tmp_path):
    settings = Settings(models="lightgbm,svr", trials=1, folds=2, blend="never")
    result = tune_table(smooth(), tmp_path, settings)
    folders = [tmp_path / "models" / one.name for one in result.finalists]
    early, once = (json.loads((folder / "surrogate.json").read_text()) for folder in folders)
    assert early["rows"] + early["stopping_rows"] == once["rows"] == 72
    assert 0 < early["stopping_rows"] < early["rows"]
    assert once["stopping_rows"] == 0


def test_a_surrogate_that_does_not_say_its_stopping_rows_is_loaded(fresh):
    root, folder = fresh
    about = json.loads((folder / "surrogate.json").read_text())
    del about["stopping_rows"]  # as it was written once
    (folder / "surrogate.json").write_text(json.dumps(about))
    resealed(folder)
    assert len(load_surrogate(root).predict([[0.0, 0.0, 0.0]])) == 1


def test_a_name_may_be_how_it_begins(found):
    root, result = found
    assert load_surrogate(root, "svr").name == result.finalists[0].name
    with pytest.raises(BadOption, match="There is no surrogate 'gp'"):
        load_surrogate(root, "gp")
    with pytest.raises(BadOption, match="Several surrogates begin with ''"):
        load_surrogate(root, "")
    with pytest.raises(OrdinateError, match="no surrogate"):
        load_surrogate(root, "../models")


def test_rows_of_another_width_are_refused(found):
    with pytest.raises(BadInput, match=r"takes rows of 3 features \(a, b, c\)"):
        load_surrogate(found[0]).predict([[1.0, 2.0]])


def test_an_empty_folder_has_no_surrogate(tmp_path):
    with pytest.raises(BadInput, match="no search was finished"):
        load_surrogate(tmp_path)
    with pytest.raises(BadInput, match="holds no surrogate"):
        load_surrogate(tmp_path, "gp")


@pytest.mark.parametrize("name", ["calibration.npz", "model/model.json", "surrogate.json"])
def test_a_changed_file_is_never_opened(fresh, name):
    root, folder = fresh
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    said = rf"is not what its manifest\.json lists.* remove {folder} and repeat the command"
    with pytest.raises(BadStore, match=said):
        load_surrogate(root)
    with pytest.raises(BadStore, match=said):
        tune_table(smooth(), root, Settings(models="poly_ridge", trials=1, folds=2))
    shutil.rmtree(folder)
    tune_table(smooth(), root, Settings(models="poly_ridge", trials=1, folds=2))
    load_surrogate(root)


def test_models_without_manifests_are_made_again_when_they_are_removed(fresh):
    root, folder = fresh
    (folder / "manifest.json").unlink()
    with pytest.raises(BadInput, match=f"Remove {root / 'models'}, and repeat the command"):
        load_surrogate(root)
    shutil.rmtree(root / "models")
    with pytest.raises(BadInput, match="Make one with: ordinate surrogate tune"):
        load_surrogate(root)
    tune_table(smooth(), root, Settings(models="poly_ridge", trials=1, folds=2))
    load_surrogate(root)


def test_studies_that_are_damaged_begin_anew_once_they_are_moved_away(fresh):
    root, _ = fresh
    (root / "studies.db").write_text("no database")
    asked = Settings(models="poly_ridge", trials=2, folds=2)
    with pytest.raises(BadStore, match=r"not a database\. If it is damaged, move it away"):
        tune_table(smooth(), root, asked)
    (root / "studies.db").rename(root / "moved.db")
    tune_table(smooth(), root, asked)


def test_a_file_that_is_not_listed_is_refused(fresh):
    root, folder = fresh
    (folder / "model" / "evil.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(BadStore, match=r"evil\.pkl"):
        load_surrogate(root)


def test_another_kind_of_artefact_is_no_surrogate(fresh):
    root, folder = fresh
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"artifact": "model"}))
    with pytest.raises(BadStore, match="and no surrogate"):
        load_surrogate(root)


def test_nothing_that_is_saved_is_a_pickle(found):
    root, _ = found
    for path in root.rglob("*"):
        assert path.suffix not in {".pkl", ".pickle", ".joblib", ".pt"}
    with np.load(next(root.glob("models/*/calibration.npz")), allow_pickle=False) as stored:
        assert set(stored.files) == {"targets", "predictions", "spread", "floor"}


@pytest.mark.parametrize(
    "change", [{"means": [10**400, 0]}, {"target": {"mean": 0, "std": 10**400}}]
)
def test_a_stored_normalisation_that_is_none_is_refused(change):
    x = np.array([[0.1, 2.0], [0.3, 1.0]])
    stored = ModelInputs.fit(x, np.arange(2.0), extra=None).to_dict()
    with pytest.raises(BadStore, match=r"The normalisation: .* must be a finite number"):
        ModelInputs.from_dict({"scaled": stored["scaled"] | change}, load_extra=Lattice.from_list)


# --- what is forged or damaged, and sealed again -------------------------------------------------


def resealed(folder):
    """Write the manifest anew, as if the files had always been so."""
    old = Manifest.read(folder)
    told = {"config": old.config, "data": old.data, "seed": old.seed, "command": old.command}
    Manifest.of(folder, old.artifact, old.name, **told).write(folder)


def changed(folder, **values):
    path = folder / "surrogate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    resealed(folder)


def test_all_that_predictions_depend_on_has_a_hash(found):
    root, result = found
    for one in result.finalists:
        manifest = Manifest.read(root / "models" / one.name)
        assert "surrogate.json" in manifest.files
        assert manifest.config.keys() == {"model", "folds", "run"}  # which predict nothing


FORGED = {
    "model": (["svr"], 3, None, "forest", "blend"),
    "features": (["a", "b"], ["a", "b", "c", "d"], ["a", "a", "b"], [1, 2, 3], "abc", []),
    "unit": (3,),
    "alpha": ("0.1", 0.0, 1.5, float("nan"), True, None),
    "inputs": ([], {}, {"scaled": 3}, {"scaled": {"means": "x"}}),
    "params": (None, [1]),
}


@pytest.mark.parametrize(
    ("key", "value"), [(k, x) for k, some in FORGED.items() for x in some], ids=str
)
def test_a_forged_description_is_refused_in_words(fresh, key, value):
    root, folder = fresh
    changed(folder, **{key: value})
    with pytest.raises(BadStore, match=r"surrogate\.json|The normalisation|no surrogate"):
        load_surrogate(root)


def test_a_normalisation_of_other_features_is_refused(fresh):
    root, folder = fresh
    about = json.loads((folder / "surrogate.json").read_text())
    scaled = about["inputs"]["scaled"]
    fewer = scaled | {"means": scaled["means"][:2], "stds": scaled["stds"][:2]}
    changed(folder, inputs={"scaled": fewer, "extra": None})
    with pytest.raises(BadStore, match="not about the same features"):
        load_surrogate(root)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"weights": [0.5, 0.6]}, "'weights.* must be"),
        ({"weights": [1.5, -0.5]}, "'weights.* must be"),
        ({"weights": [float("nan"), 1.0]}, "NaN is no number"),
        ({"weights": ["1", 0]}, "'weights.* must be"),
        ({"weights": [10**400, 0]}, "'weights.* must be"),
        ({"weights": [1.0]}, "weights of other members"),
        ({"members": "svr"}, "'members.* must be"),
        ({"members": [["svr"], 3]}, "'members.* must be"),
    ],
    ids=str,
)
def test_a_forged_blend_is_refused(found, tmp_path, values, said):
    root, result = found
    shutil.copytree(root, tmp_path / "copy")
    changed(tmp_path / "copy" / "models" / result.winner.name, **values)
    with pytest.raises(BadStore, match=said):
        load_surrogate(tmp_path / "copy")


CALIBRATIONS = {
    "no numbers": {"targets": np.array([np.nan] * 3)},
    "other lengths": {"predictions": np.zeros(2)},
    "no rows": {"targets": np.empty(0), "predictions": np.empty(0)},
    "a table": {"targets": np.zeros((3, 2))},
    "a spread below 0": {"spread": np.array([-1.0, 0.0, 1.0])},
    "several floors": {"floor": np.zeros(2)},
    "an infinite floor": {"floor": np.inf},
    "one number": {"targets": np.array(3.0)},
}


@pytest.mark.parametrize("change", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_a_forged_calibration_is_refused(fresh, change):
    root, folder = fresh
    usual = {"targets": np.zeros(3), "predictions": np.zeros(3), "spread": np.ones(3), "floor": 1.0}
    np.savez(folder / "calibration.npz", **usual | change)
    resealed(folder)
    with pytest.raises(BadStore, match=r"calibration\.npz"):
        load_surrogate(root)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04damaged", b"text"])
def test_a_damaged_calibration_is_refused(fresh, content):
    root, folder = fresh
    (folder / "calibration.npz").write_bytes(content)
    resealed(folder)
    with pytest.raises(BadStore, match=r"calibration\.npz"):
        load_surrogate(root)


def test_a_folder_under_another_name_is_refused(found, tmp_path):
    root, result = found
    shutil.copytree(root, tmp_path / "copy")
    models = tmp_path / "copy" / "models"
    first, second = (models / one.name for one in result.finalists[:2])
    shutil.rmtree(second)
    first.rename(second)
    with pytest.raises(BadStore, match="moved or mixed up"):
        load_surrogate(tmp_path / "copy", second.name)


@pytest.mark.parametrize("values", [{"winner": 3}, {"winner": None}, {"studies": 3}], ids=str)
def test_results_that_are_not_whole_are_refused(fresh, values):
    root, _ = fresh
    path = root / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(BadStore, match=r"must be .* Run the search again"):
        load_surrogate(root)
