import io
import json
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, SGDClassifier
from skops.io import dumps

from ordinate.errors import BadStore, MissingExtra
from ordinate.runs import saved
from ordinate.runs.manifest import Manifest
from ordinate.tune.models import KINDS, create, load

QUICK = {"forest": {"n_estimators": 5}, "lightgbm": {"rounds": 5}, "xgboost": {"rounds": 5}}
VARIANTS = [(name, {}) for name in KINDS]
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
    matrix, gold = data(form)
    return create(name, QUICK.get(name, {}) | params, size=6, seed=1).fit(matrix, gold)


def kept(model, folder):
    """Save a model as tuning does, with its manifest."""
    model.save(folder)
    listed(folder)
    return folder


def listed(folder):
    what = {"config": {}, "data": {}, "seed": 0, "command": "test"}
    Manifest.of(folder, "model", "test", **what).write(folder)


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(("name", "params"), VARIANTS, ids=str)
def test_a_loaded_model_answers_as_the_saved_one(tmp_path, name, params, form):
    model, (matrix, _) = fitted(name, form, **params), data(form)
    loaded = load(kept(model, tmp_path))
    assert loaded.answers(matrix).tolist() == model.answers(matrix).tolist()
    assert (loaded.kind, loaded.params, loaded.size) == (model.kind, model.params, 6)
    assert loaded.present.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("name", KINDS)
def test_equal_models_have_equal_bytes(tmp_path, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for file in fitted(name).save(tmp_path / "a"):
        fitted(name).save(tmp_path / "b")
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_model_is_loaded_from_its_folder_by_the_manifest(tmp_path):
    kept(fitted("logistic"), tmp_path)
    assert type(saved.load_model(tmp_path)).__name__ == "Pipeline"


def test_a_library_of_another_version_is_noted(tmp_path, monkeypatch):
    import sklearn.base

    with monkeypatch.context() as patch:
        patch.setattr(sklearn.base, "__version__", "1.7.0")
        kept(fitted("logistic"), tmp_path)
    assert any("1.7.0" in note for note in load(tmp_path).notes)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    matrix, gold = data()
    with pytest.raises(BadStore, match="SGDClassifier"):
        saved.save(SGDClassifier().fit(matrix, gold), tmp_path)
    assert not list(tmp_path.iterdir())


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", ["model.skops", "model.lightgbm.txt", "model.xgboost.json"])
def test_a_pickle_under_another_name_is_refused_and_not_executed(tmp_path, name, protocol):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    kept(fitted("logistic"), _made(folder))
    (folder / "model.skops").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb(trace), protocol))
    listed(folder)
    with pytest.raises(BadStore, match=f"{re.escape(name)} is a pickle by its content"):
        load(folder)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["model.pkl", "MODEL.PICKLE", "model.joblib"])
def test_a_pickle_beside_the_model_is_refused_by_its_name(tmp_path, name):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    kept(fitted("logistic"), _made(folder))
    (folder / name).write_bytes(pickle.dumps(Bomb(trace)))
    listed(folder)
    with pytest.raises(BadStore, match=f"{name} is a pickle, and a pickle executes"):
        load(folder)
    assert not trace.exists()


def _made(folder):
    folder.mkdir()
    return folder


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


@pytest.mark.parametrize(("forged", "told"), FORGED.values(), ids=FORGED)
def test_a_skops_file_with_a_forbidden_type_is_refused_and_not_executed(
    tmp_path, monkeypatch, forged, told
):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    (tmp_path / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")  # when imported
    monkeypatch.syspath_prepend(tmp_path)
    kept(fitted("logistic"), _made(folder))
    _rewritten(folder / "model.skops", lambda schema: schema.update(forged))
    listed(folder)
    with pytest.raises(BadStore, match=f"{told}.* is no part of a model"):
        load(folder)
    assert not trace.exists()
    assert "evil" not in sys.modules


def test_a_forbidden_type_is_found_however_deep_it_lies(tmp_path):
    folder = kept(fitted("logistic"), tmp_path)

    def change(schema):
        schema["content"]["content"]["steps"]["content"].append(
            {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
        )

    _rewritten(folder / "model.skops", change)
    listed(folder)
    with pytest.raises(BadStore, match=r"'os\.system' by 'FunctionNode'"):
        load(folder)


def test_a_compressed_skops_file_is_refused(tmp_path):
    folder = kept(fitted("logistic"), tmp_path)
    _rewritten(folder / "model.skops", lambda _: None, zipfile.ZIP_DEFLATED)
    listed(folder)
    with pytest.raises(BadStore, match="could unfold to any size"):
        load(folder)


def test_a_zip_file_that_is_no_skops_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.skops", "w") as archive:
        archive.writestr("other", "")
    with pytest.raises(BadStore, match=r"has no schema\.json"):
        saved.load(tmp_path)


def test_a_skops_file_of_foreign_make_is_held_to_the_same_list(tmp_path):
    matrix, gold = data()
    (tmp_path / "model.skops").write_bytes(dumps(LogisticRegression().fit(matrix, gold)))
    assert isinstance(saved.load(tmp_path), LogisticRegression)
    (tmp_path / "model.skops").write_bytes(dumps(np.random.default_rng(0)))
    with pytest.raises(BadStore, match="is no part of a model"):
        saved.load(tmp_path)


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "xgboost"])
def test_a_changed_file_is_refused_before_any_loader_sees_it(tmp_path, monkeypatch, name):
    folder = kept(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in saved.READERS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(saved, "READERS", {})
    with pytest.raises(BadStore, match=f"{re.escape(path.name)}.* is not what its manifest"):
        load(folder)


def test_a_manifest_with_a_wrong_hash_is_refused(tmp_path):
    folder = kept(fitted("lightgbm"), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.lightgbm.txt"]["sha256"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadStore, match="sha256 0000"):
        load(folder)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    fitted("logistic").save(tmp_path)
    with pytest.raises(BadStore, match=r"no manifest\.json"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "xgboost"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_model_is_refused_even_if_the_manifest_agrees(tmp_path, name, share):
    folder = kept(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in saved.READERS)
    content = path.read_bytes()
    cut = content.index(b"end of parameters") if name == "lightgbm" else len(content)
    path.write_bytes(content[: int(cut * share)])
    with pytest.raises(BadStore, match="is not what its manifest"):
        load(folder)
    listed(folder)
    with pytest.raises(BadStore, match=re.escape(path.name)):
        load(folder)


LIGHTGBM = {
    "a node that points outside": (r"left_child=\S+", "left_child=99"),
    "a node that points to the root": (r"left_child=\S+", "left_child=0"),
    "a feature that is not there": (r"split_feature=\d", "split_feature=9"),
    "more classes than there is room for": ("num_class:4", "num_class:400"),
    "no tree at all": ("Tree=1\n", "Tree=7\n"),
    "categories": ("num_cat=0", "num_cat=1"),
}


@pytest.mark.parametrize(("old", "new"), LIGHTGBM.values(), ids=LIGHTGBM)
def test_a_forged_lightgbm_model_is_refused_before_the_library_sees_it(
    tmp_path, monkeypatch, old, new
):
    fitted("lightgbm").save(tmp_path)
    path = tmp_path / "model.lightgbm.txt"
    text = path.read_text()
    changed = re.sub(old, new, text, count=1)
    sizes = [int(size) for size in re.search("tree_sizes=(.*)", text)[1].split()]
    grown = str(sizes[0] + len(changed) - len(text))
    if "Tree=7" not in changed and "num_class:400" not in changed:
        changed = changed.replace(f"tree_sizes={sizes[0]}", f"tree_sizes={grown}", 1)
    path.write_text(changed)
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # importing it would fail
    with pytest.raises(BadStore, match=r"model\.lightgbm\.txt is refused: "):
        saved.load(tmp_path)


@pytest.mark.parametrize(
    ("part", "value"),
    [("left_children", 99), ("right_children", 0), ("split_indices", 9), ("split_type", 1)],
)
def test_a_forged_xgboost_model_is_refused_before_the_library_sees_it(tmp_path, part, value):
    fitted("xgboost").save(tmp_path)
    path = tmp_path / "model.xgboost.json"
    model = json.loads(path.read_text())
    model["learner"]["gradient_booster"]["model"]["trees"][0][part][0] = value
    path.write_text(json.dumps(model))
    with pytest.raises(BadStore, match=r"model\.xgboost\.json is refused: "):
        saved.load(tmp_path)


def test_an_xgboost_tree_of_a_class_that_is_not_there_is_refused(tmp_path):
    fitted("xgboost").save(tmp_path)
    path = tmp_path / "model.xgboost.json"
    model = json.loads(path.read_text())
    model["learner"]["gradient_booster"]["model"]["tree_info"][0] = 4
    path.write_text(json.dumps(model))
    with pytest.raises(BadStore, match="trees are of classes that it does not have"):
        saved.load(tmp_path)


def test_a_forged_forest_is_refused_before_it_is_asked(tmp_path):
    fitted("forest").save(tmp_path)
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, content in members.items():
        array = np.load(io.BytesIO(content)) if name.endswith(".npy") else np.zeros(0)
        if array.dtype.names and "left_child" in array.dtype.names:
            array["left_child"][0] = 10**6
            written = io.BytesIO()
            np.save(written, array)
            members[name] = written.getvalue()
            break
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(BadStore, match=r"nodes of its tree \d do not make a tree"):
        saved.load(tmp_path)


def test_a_folder_with_two_models_or_none_is_refused(tmp_path):
    with pytest.raises(BadStore, match="has none of them"):
        saved.load(tmp_path)
    fitted("logistic").save(tmp_path)
    fitted("lightgbm").save(tmp_path)
    with pytest.raises(BadStore, match=r"model\.lightgbm\.txt and model\.skops"):
        saved.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"kind": "other"}, {"present": [4, 1]}, {"present": [0, 9]}, {"size": "6"}, {"params": None}],
    ids=str,
)
def test_facts_that_make_no_sense_are_refused(tmp_path, change):
    folder = kept(fitted("logistic"), tmp_path)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | change))
    listed(folder)
    with pytest.raises(BadStore, match="does not say what the model is"):
        load(folder)


def test_an_xgboost_model_without_xgboost_names_what_to_install(tmp_path, monkeypatch):
    fitted("xgboost").save(tmp_path)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtra, match="pip install xgboost"):
        saved.load(tmp_path)
