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
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from skops.io import dumps

from ordinate.errors import BadStore, MissingExtra
from ordinate.experiment.manifest import Manifest
from ordinate.models import model_files
from ordinate.models.classifiers import MODEL_TYPES, create_classifier, load_classifier

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
    matrix, gold = data(form)
    return create_classifier(name, QUICK.get(name, {}) | params, size=6, seed=1).fit(matrix, gold)


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
    loaded = load_classifier(kept(model, tmp_path))
    assert loaded.notes == model.notes
    assert loaded.answers(matrix).tolist() == model.answers(matrix).tolist()
    assert (loaded.kind, loaded.params, loaded.size) == (model.kind, model.params, 6)
    assert loaded.present.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("name", MODEL_TYPES)
def test_equal_models_have_equal_bytes(tmp_path, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for file in fitted(name).save(tmp_path / "a"):
        fitted(name).save(tmp_path / "b")
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_model_is_loaded_from_its_folder_by_the_manifest(tmp_path):
    kept(fitted("logistic"), tmp_path)
    assert type(model_files.load_model(tmp_path)).__name__ == "Pipeline"


def test_a_library_of_another_version_is_noted(tmp_path, monkeypatch):
    import sklearn.base

    with monkeypatch.context() as patch:
        patch.setattr(sklearn.base, "__version__", "1.0.0")  # older than any that is supported
        kept(fitted("logistic"), tmp_path)
    assert any("1.0.0" in note for note in load_classifier(tmp_path).notes)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    matrix, gold = data()
    with pytest.raises(BadStore, match="SGDClassifier"):
        model_files.save_fitted(SGDClassifier().fit(matrix, gold), tmp_path)
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
        load_classifier(folder)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["model.pkl", "MODEL.PICKLE", "model.joblib"])
def test_a_pickle_beside_the_model_is_refused_by_its_name(tmp_path, name):
    trace, folder = tmp_path / "trace", tmp_path / "model"
    kept(fitted("logistic"), _made(folder))
    (folder / name).write_bytes(pickle.dumps(Bomb(trace)))
    listed(folder)
    with pytest.raises(BadStore, match=f"{name} is a pickle, and a pickle executes"):
        load_classifier(folder)
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
        load_classifier(folder)
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
        load_classifier(folder)


def test_a_compressed_skops_file_is_refused(tmp_path):
    folder = kept(fitted("logistic"), tmp_path)
    _rewritten(folder / "model.skops", lambda _: None, zipfile.ZIP_DEFLATED)
    listed(folder)
    with pytest.raises(BadStore, match="could unfold to any size"):
        load_classifier(folder)


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


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "xgboost"])
def test_a_changed_file_is_refused_before_any_loader_sees_it(tmp_path, monkeypatch, name):
    folder = kept(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in model_files.READERS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(model_files, "READERS", {})
    with pytest.raises(BadStore, match=f"{re.escape(path.name)}.* is not what its manifest"):
        load_classifier(folder)


def test_a_manifest_with_a_wrong_hash_is_refused(tmp_path):
    folder = kept(fitted("lightgbm"), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.lightgbm.txt"]["sha256"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadStore, match="sha256 0000"):
        load_classifier(folder)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    fitted("logistic").save(tmp_path)
    with pytest.raises(BadStore, match=r"no manifest\.json"):
        load_classifier(tmp_path)


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "xgboost"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_model_is_refused_even_if_the_manifest_agrees(tmp_path, name, share):
    folder = kept(fitted(name), tmp_path)
    path = next(path for path in folder.iterdir() if path.name in model_files.READERS)
    content = path.read_bytes()
    cut = content.index(b"end of parameters") if name == "lightgbm" else len(content)
    path.write_bytes(content[: int(cut * share)])
    with pytest.raises(BadStore, match="is not what its manifest"):
        load_classifier(folder)
    listed(folder)
    with pytest.raises(BadStore, match=re.escape(path.name)):
        load_classifier(folder)


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
        model_files.load_fitted(tmp_path)


def _lightgbm_parts(text):
    """Return the header and the tree texts of a LightGBM model, and what stands after them."""
    head, rest = text.split("\n\n", 1)
    trees = []
    for size in re.search("tree_sizes=(.*)", head)[1].split():
        trees.append(rest[: int(size)])
        rest = rest[int(size) :]
    return head, trees, rest


def _lightgbm_whole(head, trees, rest):
    sizes = " ".join(str(len(tree)) for tree in trees)
    head = re.sub("tree_sizes=.*", f"tree_sizes={sizes}", head)
    return f"{head}\n\n{''.join(trees)}{rest}"


def _endless(tree):
    """Return a tree whose nodes all point to the root."""
    return re.sub(
        "(left|right)_child=(.*)",
        lambda found: f"{found[1]}_child=" + " ".join("0" for _ in found[2].split()),
        tree,
    )


def _lines(tree, *keys):
    return "".join(re.search(f"^{key}=.*\n", tree, re.MULTILINE)[0] for key in keys)


HIDDEN = {
    "before a blank line": lambda tree: (
        _endless(tree).rstrip("\n") + "\n\n" + _lines(tree, "left_child", "right_child") + "\n\n"
    ),
    "after other lines of the same keys": lambda tree: tree.replace(
        "is_linear=0\n", "is_linear=0\n" + _lines(_endless(tree), "left_child", "right_child")
    ),
    "before other lines of the same keys": lambda tree: _endless(tree).replace(
        "is_linear=0\n", "is_linear=0\n" + _lines(tree, "left_child", "right_child")
    ),
    "after an odd end of a line": lambda tree: tree.replace(
        "left_child=", "left_child=0\rleft_child="
    ),
    "under keys in another order": lambda tree: tree.replace(
        _lines(tree, "left_child", "right_child"), _lines(tree, "right_child", "left_child")
    ),
    "among too many": lambda tree: re.sub("(threshold=.*)", r"\1 0.5", tree),
    "among too few": lambda tree: re.sub("(leaf_value=.*) .*", r"\1", tree),
    "among categories": lambda tree: tree.replace("decision_type=2", "decision_type=1"),
    "among infinite ones": lambda tree: re.sub(r"leaf_value=\S+", "leaf_value=1e999", tree),
    "in other digits": lambda tree: re.sub("left_child=1", "left_child=\u0661", tree),
}


@pytest.mark.parametrize("forged", HIDDEN.values(), ids=HIDDEN)
def test_what_lightgbm_could_read_in_another_way_is_refused(tmp_path, monkeypatch, forged):
    fitted("lightgbm").save(tmp_path)
    path = tmp_path / "model.lightgbm.txt"
    head, (first, *others), rest = _lightgbm_parts(path.read_text())
    assert _lightgbm_whole(head, [first, *others], rest) == path.read_text()
    changed = forged(first)
    assert changed != first
    whole = _lightgbm_whole(head, [changed, *others], rest)
    path.write_bytes(whole.encode())
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # importing it would fail
    with pytest.raises(BadStore, match=r"model\.lightgbm\.txt is refused: "):
        model_files.load_fitted(tmp_path)


BETWEEN = {
    "a header line twice": ("max_feature_idx=3", "max_feature_idx=999\nmax_feature_idx=3"),
    "a line that averages": ("label_index=0", "average_output\nlabel_index=0"),
    "a line before the first tree": ("\n\nTree=0", "\n\nmax_feature_idx=99\n\nTree=0"),
    "another tree at the end": ("end of trees\n", "Tree=99\nend of trees\n"),
    "a parameter twice": ("[seed: 1]\n", "[seed: 1]\n[seed: 2]\n"),
    "names of other columns": ("Column_0 Column_1", "Column_1 Column_0"),
    "what pandas had": ("pandas_categorical:null", 'pandas_categorical:[["a"]]'),
    "another version": ("version=v4", "version=v3"),
}


@pytest.mark.parametrize(("old", "new"), BETWEEN.values(), ids=BETWEEN)
def test_a_lightgbm_text_with_anything_between_its_lines_is_refused(tmp_path, old, new):
    fitted("lightgbm").save(tmp_path)
    path = tmp_path / "model.lightgbm.txt"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadStore, match=r"model\.lightgbm\.txt is refused: "):
        model_files.load_fitted(tmp_path)


def test_a_lightgbm_model_without_any_split_is_saved_and_loaded(tmp_path):
    model = fitted("lightgbm", min_child_samples=30)
    model.save(tmp_path)
    assert "num_leaves=1\n" in (tmp_path / "model.lightgbm.txt").read_text()
    assert model_files.load_fitted(tmp_path).num_trees() == model.fitted.num_trees()


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_an_xgboost_model_with_two_values_of_a_key_is_refused(tmp_path, first):
    fitted("xgboost").save(tmp_path)
    path = tmp_path / "model.xgboost.json"
    text = path.read_text()
    good = re.search(r'"left_children":\[[^]]*\]', text)[0]
    evil = re.sub(r"\d+", "0", good)
    path.write_text(text.replace(good, f"{evil},{good}" if first else f"{good},{evil}", 1))
    with pytest.raises(BadStore, match="gives one key two values"):
        model_files.load_fitted(tmp_path)


def _forest_of(model):
    return model["learner"]["gradient_booster"]["model"]


XGBOOST = {
    "rounds of trees that are not there": (
        lambda model: _forest_of(model)["iteration_indptr"].append(10**6),
        "its rounds are of trees",
    ),
    "a parent that is none": (
        lambda model: _forest_of(model)["trees"][0]["parents"].__setitem__(1, 1),
        "do not make a tree",
    ),
    "fewer weights than nodes": (
        lambda model: _forest_of(model)["trees"][0]["split_conditions"].pop(),
        "of a form that Ordinate does not make",
    ),
    "broken numbers": (
        lambda model: _forest_of(model)["trees"][0]["left_children"].__setitem__(0, 1.5),
        "of a form that Ordinate does not make",
    ),
    "another booster": (
        lambda model: model["learner"]["gradient_booster"].update(name="dart"),
        "of a form that Ordinate does not make",
    ),
    "another objective": (
        lambda model: model["learner"]["objective"].update(name="reg:squarederror"),
        "does not fit 4 classes",
    ),
    "more outputs": (
        lambda model: model["learner"]["objective"]["softmax_multiclass_param"].update(
            num_class="400"
        ),
        "does not fit 4 classes",
    ),
}


@pytest.mark.parametrize(("forged", "told"), XGBOOST.values(), ids=XGBOOST)
def test_an_xgboost_model_that_says_what_is_not_so_is_refused(tmp_path, forged, told):
    fitted("xgboost").save(tmp_path)
    path = tmp_path / "model.xgboost.json"
    model = json.loads(path.read_text())
    forged(model)
    path.write_text(json.dumps(model))
    with pytest.raises(BadStore, match=told):
        model_files.load_fitted(tmp_path)


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
        model_files.load_fitted(tmp_path)


def test_an_xgboost_tree_of_a_class_that_is_not_there_is_refused(tmp_path):
    fitted("xgboost").save(tmp_path)
    path = tmp_path / "model.xgboost.json"
    model = json.loads(path.read_text())
    model["learner"]["gradient_booster"]["model"]["tree_info"][0] = 4
    path.write_text(json.dumps(model))
    with pytest.raises(BadStore, match="trees are of classes that it does not have"):
        model_files.load_fitted(tmp_path)


def test_a_forged_forest_is_refused_before_it_is_asked(tmp_path):
    fitted("forest").save(tmp_path)
    _forge_nodes(tmp_path / "model.skops")
    with pytest.raises(BadStore, match=r"nodes of its tree \d do not make a tree"):
        model_files.load_fitted(tmp_path)


def _forge_nodes(path):
    """Let the root of the first tree in a skops file point outside it."""
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
    else:
        raise AssertionError("there is no tree in it")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _tree():
    return DecisionTreeClassifier(random_state=0).fit(*data())


def _deep():
    """Return a pipeline with a tree where no step is."""
    whole = Pipeline([("model", LogisticRegression().fit(*data()))])
    whole.hidden = {"deep": [(_tree(),)]}
    return whole


PLACES = {
    "bare": _tree,
    "a step": lambda: Pipeline([("model", _tree())]),
    "a step of a step": lambda: Pipeline([("model", Pipeline([("model", _tree())]))]),
    "no step": _deep,
}


@pytest.mark.parametrize("made", PLACES.values(), ids=PLACES)
def test_a_forged_tree_is_found_wherever_it_lies(tmp_path, made):
    model_files.save_fitted(made(), tmp_path)
    model_files.load_fitted(tmp_path)
    _forge_nodes(tmp_path / "model.skops")
    with pytest.raises(BadStore, match=r"nodes of its tree \d do not make a tree"):
        model_files.load_fitted(tmp_path)


def test_a_tree_that_claims_other_nodes_than_it_has_is_refused(tmp_path):
    model_files.save_fitted(_tree(), tmp_path)

    def change(schema):
        count = schema["content"]["content"]["tree_"]["content"]["content"]["node_count"]
        count["content"] = "3"

    _rewritten(tmp_path / "model.skops", change)
    with pytest.raises(BadStore, match="has other nodes than it says"):
        model_files.load_fitted(tmp_path)


def test_trees_of_other_features_than_their_estimator_says_are_refused(tmp_path):
    tree = _tree()
    tree.n_features_in_ = 2
    model_files.save_fitted(tree, tmp_path)
    with pytest.raises(BadStore, match="a tree of other features than it says"):
        model_files.load_fitted(tmp_path)
    del tree.n_features_in_  # without it, scikit-learn lets rows of any width through
    model_files.save_fitted(tree, tmp_path)
    with pytest.raises(BadStore, match="a tree of other features than it says"):
        model_files.load_fitted(tmp_path)
    model = fitted("forest")
    model.fitted[-1].n_features_in_ = 9
    model_files.save_fitted(model.fitted, tmp_path)
    with pytest.raises(BadStore, match="trees of other features than it says"):
        model_files.load_fitted(tmp_path)


@pytest.mark.parametrize("name", MODEL_TYPES)
def test_what_another_kind_of_model_made_is_refused(tmp_path, name):
    model, other = fitted(name), fitted("svm" if name == "logistic" else "logistic")
    model.fitted = other.fitted
    with pytest.raises(BadStore, match=rf"does not hold a {name} model of 4 features and 4 levels"):
        load_classifier(kept(model, tmp_path))


@pytest.mark.parametrize(
    "change", [{"features": 5}, {"present": [0, 1]}, {"sparse": True}], ids=str
)
@pytest.mark.parametrize("name", ["logistic", "forest", "lightgbm", "xgboost"])
def test_a_model_of_other_features_or_levels_is_refused(tmp_path, name, change):
    if "sparse" in change and name != "logistic":
        change = {"features": 3}
    folder = kept(fitted(name), tmp_path)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | change))
    listed(folder)
    with pytest.raises(BadStore, match=f"does not hold a {name} model"):
        load_classifier(folder)


def test_a_folder_with_two_models_or_none_is_refused(tmp_path):
    with pytest.raises(BadStore, match="has none of them"):
        model_files.load_fitted(tmp_path)
    fitted("logistic").save(tmp_path)
    fitted("lightgbm").save(tmp_path)
    with pytest.raises(BadStore, match=r"model\.lightgbm\.txt and model\.skops"):
        model_files.load_fitted(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        *({"kind": "other"}, {"present": [4, 1]}, {"present": [0, 9]}, {"size": "6"}),
        *({"params": None}, {"params": {}}, {"params": {"C": 1.0, "more": 2}}),
    ],
    ids=str,
)
def test_facts_that_make_no_sense_are_refused(tmp_path, change):
    folder = kept(fitted("logistic"), tmp_path)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | change))
    listed(folder)
    told = r"model\.json(: .* must be a| does not say what the model is).* Tune again"
    with pytest.raises(BadStore, match=told):
        load_classifier(folder)


def test_an_xgboost_model_without_xgboost_names_what_to_install(tmp_path, monkeypatch):
    fitted("xgboost").save(tmp_path)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtra, match="pip install xgboost"):
        model_files.load_fitted(tmp_path)
