import json
import pickle
import re
import sys
import zipfile
from copy import copy
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, SGDClassifier
from skops.io import dumps

from ordinate.errors import BadStore
from ordinate.tuning.experiment.manifest import Manifest, read_verified_manifest
from ordinate.tuning.models import model_files
from ordinate.tuning.models.classifiers import MODEL_TYPES, create_classifier, load_classifier

QUICK = {"forest": {"n_estimators": 5}, "lightgbm": {"rounds": 5}, "xgboost": {"rounds": 5}}
VARIANTS = [(name, {}) for name in MODEL_TYPES]
VARIANTS += [("naive_bayes", {"variant": "complement"}), ("threshold", {"loss": "all_threshold"})]


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


def data(form="dense"):
    rng = np.random.default_rng(0)
    gold = np.array([0, 1, 3, 4])[np.arange(48) % 4]
    matrix = rng.random((48, 4)) + gold[:, None] * np.array([0.3, 0, 0, 0])
    matrix[matrix < 0.3] = 0.0
    return (csr_matrix(matrix) if form == "sparse" else matrix), gold


def fitted(name, form="dense", **params):
    if name == "xgboost":
        pytest.importorskip("xgboost")
    return copy(_fit(name, form, tuple(params.items())))


@cache
def _fit(name, form, params):
    matrix, gold = data(form)
    params = QUICK.get(name, {}) | dict(params)
    return create_classifier(name, params, size=6, seed=1).fit(matrix, gold)


def saved(model, folder):
    """Save a model as tuning does, with its manifest."""
    folder.mkdir(exist_ok=True)
    model.save(folder)
    write_manifest(folder)
    return folder


def load(folder):
    """Load a model as it is for prediction: its manifest comes first."""
    read_verified_manifest(folder)
    return load_classifier(folder)


def write_manifest(folder):
    facts = {"config": {}, "data": {}, "seed": 0, "command": "test"}
    Manifest.of(folder, "model", "test", **facts).write(folder)


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(("name", "params"), VARIANTS, ids=str)
def test_a_loaded_model_predicts_as_the_saved_one(tmp_path, name, params, form):
    model, (matrix, _) = fitted(name, form, **params), data(form)
    loaded = load(saved(model, tmp_path))
    assert loaded.notes == model.notes
    assert loaded.predict(matrix).tolist() == model.predict(matrix).tolist()
    assert (loaded.name, loaded.params, loaded.size) == (name, model.params, 6)
    assert loaded.present.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("name", MODEL_TYPES)
def test_equal_models_have_equal_bytes(tmp_path, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = fitted(name)
    _fit.cache_clear()
    for file in first.save(tmp_path / "a"):
        fitted(name).save(tmp_path / "b")
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_library_of_another_version_is_noted(tmp_path, monkeypatch):
    import sklearn.base

    with monkeypatch.context() as patch:
        patch.setattr(sklearn.base, "__version__", "1.0.0")  # older than any that is supported
        saved(fitted("logistic"), tmp_path)
    assert any("1.0.0" in note for note in load(tmp_path).notes)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    matrix, gold = data()
    with pytest.raises(BadStore, match="SGDClassifier"):
        model_files.save_fitted(SGDClassifier().fit(matrix, gold), tmp_path)
    assert not list(tmp_path.iterdir())


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", ["model.skops", "model.trees.npz"])
def test_a_pickle_under_another_name_is_refused_and_not_executed(tmp_path, name, protocol):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    saved(fitted("logistic"), folder)
    (folder / "model.skops").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb(trace), protocol))
    write_manifest(folder)
    with pytest.raises(BadStore, match=f"{re.escape(name)} is a pickle by its content"):
        load(folder)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["model.pkl", "MODEL.PICKLE", "model.joblib"])
def test_a_pickle_beside_the_model_is_refused_by_its_name(tmp_path, name):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    saved(fitted("logistic"), folder)
    (folder / name).write_bytes(pickle.dumps(Bomb(trace)))
    write_manifest(folder)
    with pytest.raises(BadStore, match=f"{name} is a pickle, and a pickle executes"):
        load(folder)
    assert not trace.exists()


def _rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Change the schema inside a skops file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    change(schema)
    members["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


FORGED = {
    "another class": ({"__class__": "Evil", "__module__": "evil"}, "'evil.Evil'"),
    "a function": (
        {"__class__": "evil", "__module__": "evil", "__loader__": "FunctionNode"},
        "'evil.evil'",
    ),
    "another builder": ({"__loader__": "ConstructorFromReduceNode"}, "ConstructorFromReduceNode"),
    "a class of scikit-learn that no model has": (
        {"__class__": "FunctionTransformer", "__module__": "sklearn.preprocessing"},
        "FunctionTransformer",
    ),
    "no class": ({"__class__": None}, "sklearn.pipeline.None"),
}


@pytest.mark.parametrize(("forged", "message"), FORGED.values(), ids=FORGED)
def test_a_skops_file_with_a_forbidden_type_is_refused_and_not_executed(
    tmp_path, monkeypatch, forged, message
):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    (tmp_path / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")  # when imported
    monkeypatch.syspath_prepend(tmp_path)
    saved(fitted("logistic"), folder)
    _rewritten(folder / "model.skops", lambda schema: schema.update(forged))
    write_manifest(folder)
    with pytest.raises(BadStore, match=f"{message}.* is no part of a model"):
        load(folder)
    assert not trace.exists()
    assert "evil" not in sys.modules


def test_a_forbidden_type_is_refused_however_deep_it_lies(tmp_path):
    folder = saved(fitted("logistic"), tmp_path)

    def change(schema):
        schema["content"]["content"]["steps"]["content"].append(
            {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
        )

    _rewritten(folder / "model.skops", change)
    write_manifest(folder)
    with pytest.raises(BadStore, match=r"'os\.system' by 'FunctionNode'"):
        load(folder)


def test_a_compressed_skops_file_is_refused(tmp_path):
    folder = saved(fitted("logistic"), tmp_path)
    _rewritten(folder / "model.skops", lambda _: None, zipfile.ZIP_DEFLATED)
    write_manifest(folder)
    with pytest.raises(BadStore, match="could unfold to any size"):
        load(folder)


def test_a_zip_file_that_is_no_skops_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.skops", "w") as archive:
        archive.writestr("other", "")
    with pytest.raises(BadStore, match=r"has no schema\.json"):
        model_files.load_fitted(tmp_path)


def test_a_skops_file_of_foreign_make_is_held_to_the_same_list(tmp_path):
    matrix, gold = data()
    (tmp_path / "model.skops").write_bytes(dumps(LogisticRegression().fit(matrix, gold)))
    assert isinstance(model_files.load_fitted(tmp_path), LogisticRegression)
    (tmp_path / "model.skops").write_bytes(dumps(np.random.default_rng(0)))
    with pytest.raises(BadStore, match="is no part of a model"):
        model_files.load_fitted(tmp_path)


@pytest.mark.parametrize("name", ["logistic", "lightgbm"])
def test_a_changed_file_is_refused_before_any_loader_sees_it(tmp_path, monkeypatch, name):
    folder = saved(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in model_files.READERS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(model_files, "READERS", {})
    with pytest.raises(BadStore, match=f"{re.escape(path.name)}.* is not what its manifest"):
        load(folder)


def test_a_manifest_with_a_wrong_hash_is_refused(tmp_path):
    folder = saved(fitted("lightgbm"), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.trees.npz"]["sha256"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadStore, match="sha256 0000"):
        load(folder)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    fitted("logistic").save(tmp_path)
    with pytest.raises(BadStore, match=r"no manifest\.json"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["logistic", "lightgbm"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_model_is_refused_even_if_the_manifest_agrees(tmp_path, name, share):
    folder = saved(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in model_files.READERS)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadStore, match="is not what its manifest"):
        load(folder)
    write_manifest(folder)
    with pytest.raises(BadStore, match=re.escape(path.name)):
        load(folder)


@pytest.mark.parametrize("name", MODEL_TYPES)
def test_a_model_of_another_type_is_refused(tmp_path, name):
    model, other = fitted(name), fitted("svm" if name == "logistic" else "logistic")
    model.fitted = other.fitted
    with pytest.raises(BadStore, match=rf"does not hold a {name} model of 4 features and 4 levels"):
        load(saved(model, tmp_path))


@pytest.mark.parametrize(
    "change", [{"features": 5}, {"present": [0, 1]}, {"sparse": True}], ids=str
)
@pytest.mark.parametrize("name", ["logistic", "forest", "lightgbm", "xgboost"])
def test_a_model_of_other_features_or_levels_is_refused(tmp_path, name, change):
    if "sparse" in change and name != "logistic":
        change = {"features": 3}
    folder = saved(fitted(name), tmp_path)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | change))
    write_manifest(folder)
    with pytest.raises(BadStore, match=f"does not hold a {name} model"):
        load(folder)


def test_a_folder_with_two_models_or_none_is_refused(tmp_path):
    with pytest.raises(BadStore, match="has none of them"):
        model_files.load_fitted(tmp_path)
    fitted("logistic").save(tmp_path)
    fitted("lightgbm").save(tmp_path)
    with pytest.raises(BadStore, match=r"model\.skops and model\.trees\.npz"):
        model_files.load_fitted(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        *({"model_type": "other"}, {"present": [4, 1]}, {"present": [0, 9]}, {"size": "6"}),
        *({"params": None}, {"params": {}}, {"params": {"C": 1.0, "more": 2}}),
    ],
    ids=str,
)
def test_facts_that_make_no_sense_are_refused(tmp_path, change):
    folder = saved(fitted("logistic"), tmp_path)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | change))
    write_manifest(folder)
    told = r"model\.json(: .* must be a| does not say what the model is).* Tune again"
    with pytest.raises(BadStore, match=told):
        load(folder)
