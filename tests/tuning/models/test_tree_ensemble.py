"""Trees as plain arrays: they predict as the libraries do, and nothing forged is walked."""

import io
import zipfile
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ordinate.errors import BadStore
from ordinate.tuning.experiment.workers import limit_to_one_thread
from ordinate.tuning.models import model_files
from ordinate.tuning.models.tree_ensemble import LEAF, TreeEnsemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
X[RNG.random(X.shape) < 0.4] = 0.0
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(0, 0.1, len(X))
LEVELS = np.digitize(Y, np.quantile(Y, [0.25, 0.5, 0.75]))
NEW = np.vstack([X + RNG.normal(0, 0.5, X.shape) * (X != 0), np.full((1, 6), 1e9), -np.eye(6)])
FORMS = {"dense": np.asarray, "sparse": csr_matrix}


def lightgbm(form, target, **settings):
    import lightgbm

    settings |= {"verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(form(X), target), 12)
    return TreeEnsemble.from_lightgbm(booster), booster.predict(form(NEW))


def xgboost(form, target, **settings):
    library = pytest.importorskip("xgboost")
    settings |= {"nthread": 1, "tree_method": "hist"}
    booster = library.train(settings, library.DMatrix(form(X), target), 12)
    return TreeEnsemble.from_xgboost(booster), booster.predict(library.DMatrix(form(NEW)))


def forest(form, target, **settings):
    from sklearn.ensemble import RandomForestClassifier

    library = RandomForestClassifier(15, random_state=0, **settings).fit(form(X), target)
    return TreeEnsemble.from_forest(library), library.predict_proba(form(NEW))


def histogram(form, target):
    from sklearn.ensemble import HistGradientBoostingRegressor

    with limit_to_one_thread():
        library = HistGradientBoostingRegressor(max_iter=12).fit(form(X), target)
        return TreeEnsemble.from_histogram_boosting(library), library.predict(form(NEW))


# library, target, settings, how far the last digit may be off
SINGLE = 6e-8  # half a last digit of single precision: exp of another C library may round otherwise
LIBRARIES = {
    "lightgbm, a number": (lightgbm, Y, {"objective": "regression"}, 0.0),
    "lightgbm, two levels": (lightgbm, LEVELS > 1, {"objective": "binary"}, 0.0),
    "lightgbm": (lightgbm, LEVELS, {"objective": "multiclass", "num_class": 4}, 0.0),
    "xgboost, two levels": (xgboost, LEVELS > 1, {"objective": "binary:logistic"}, SINGLE),
    "xgboost": (xgboost, LEVELS, {"objective": "multi:softprob", "num_class": 4}, SINGLE),
    "forest, two levels": (forest, LEVELS > 1, {}, 0.0),
    "forest": (forest, LEVELS, {"min_samples_leaf": 3}, 0.0),
    "histogram boosting": (histogram, Y, {}, 0.0),
}


@cache
def fitted(name, form="dense"):
    fit, target, settings, _ = LIBRARIES[name]
    return fit(FORMS[form], target.astype(float), **settings)


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LIBRARIES)
def test_trees_predict_as_the_library_that_fitted_them(name, form):
    if (name, form) == ("histogram boosting", "sparse"):
        pytest.skip("scikit-learn takes no sparse features for it")
    trees, expected = fitted(name, form)
    predicted = trees.predict(FORMS[form](NEW))
    if expected.ndim == 1:
        predicted = predicted[:, -1]
    if not (tolerance := LIBRARIES[name][-1]):
        assert predicted.tolist() == expected.tolist()
    assert np.allclose(predicted, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", LIBRARIES)
def test_probabilities_of_all_levels_sum_to_one(name):
    trees, _ = fitted(name)
    predicted = trees.predict(NEW)
    assert predicted.shape == (len(NEW), trees.outputs)
    assert trees.link == "identity" or np.allclose(predicted.sum(axis=1), 1.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", LIBRARIES)
def test_blocks_change_nothing(name):
    trees, _ = fitted(name)
    blocks = trees.predict(NEW, block_cells=100)
    assert blocks.tolist() == trees.predict(NEW).tolist()
    assert trees.predict(NEW[:0]).shape == (0, trees.outputs)


@pytest.mark.parametrize("name", LIBRARIES)
def test_stored_trees_predict_the_same(tmp_path, name):
    trees, _ = fitted(name)
    assert model_files.save_fitted(trees, tmp_path) == ["model.trees.npz"]
    assert model_files.load_fitted(tmp_path).predict(NEW).tolist() == trees.predict(NEW).tolist()


def test_what_is_missing_goes_where_training_sent_it():
    trees, _ = fitted("xgboost", "sparse")
    inner = trees.nodes.left != LEAF
    assert trees.nodes.missing_left[inner].any()
    assert not trees.nodes.missing_left[inner].all()
    missing = np.where(NEW == 0.0, np.nan, NEW)
    assert trees.predict(missing).tolist() == trees.predict(csr_matrix(NEW)).tolist()


def test_a_tree_without_any_split_is_a_leaf():
    trees, expected = lightgbm(np.asarray, Y, objective="regression", min_child_samples=200)
    assert (trees.nodes.left == LEAF).all()
    assert trees.predict(NEW)[:, 0].tolist() == expected.tolist()


def test_the_first_trees_are_an_ensemble_of_their_own():
    from sklearn.ensemble import HistGradientBoostingRegressor

    with limit_to_one_thread():
        short, long = (HistGradientBoostingRegressor(max_iter=n).fit(X, Y) for n in (5, 12))
        first = TreeEnsemble.from_histogram_boosting(long, 5)
        assert first.predict(NEW)[:, 0].tolist() == short.predict(NEW).tolist()


# --- what is refused -----------------------------------------------------------------------------

FORGED = {
    "a node that points outside": ("left", 0, 10**6, "each but the roots has one parent"),
    "a node that points to the root": ("right", 0, 0, "each but the roots has one parent"),
    "a node below the leaves": ("left", 0, -2, "each but the roots has one parent"),
    "a node with two parents": ("right", 0, "left", "each but the roots has one parent"),
    "a leaf that has a child": ("left", -1, 1, "each but the roots has one parent"),
    "a feature that is not there": ("feature", 0, 6, "features beyond the 6"),
    "a feature below the first": ("feature", 0, -1, "features beyond the 6"),
    "a root that is not there": ("roots", -1, 10**6, "do not begin where its nodes do"),
    "a root twice": ("roots", 1, 0, "do not begin where its nodes do"),
    "a first root that is another node": ("roots", 0, 1, "do not begin where its nodes do"),
    "a value that is no number": ("value", -1, np.nan, "not finite"),
    "a threshold that is infinite": ("threshold", 0, np.inf, "not finite"),
    "an offset that is no number": ("offset", 0, np.nan, "not finite"),
}


def rewrite(trees, **changes):
    """Return the file of an ensemble with other arrays in it."""
    with np.load(io.BytesIO(trees.to_bytes())) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    for name, change in changes.items():
        arrays[name] = change(arrays[name]) if callable(change) else np.asarray(change)
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def refuse(folder, content, match):
    (folder / "model.trees.npz").write_bytes(content)
    with pytest.raises(BadStore, match=rf"model\.trees\.npz is refused: .*{match}"):
        model_files.load_fitted(folder)


@pytest.mark.parametrize("library", ["lightgbm", "forest", "histogram boosting"])
@pytest.mark.parametrize(("name", "at", "value", "match"), FORGED.values(), ids=FORGED)
def test_forged_trees_are_refused_before_they_are_walked(tmp_path, library, name, at, value, match):
    trees, _ = fitted(library)
    assert trees.nodes.left[0] > 0  # the first node is a split

    def forge(array):
        array[at] = trees.nodes.left[0] if value == "left" else value
        return array

    refuse(tmp_path, rewrite(trees, **{name: forge}), match)


def swap_trees(trees):
    """Return children where the first two trees, of equal shape, have those of each other."""
    left, right = trees.nodes.left.copy(), trees.nodes.right.copy()
    first, second = 0, trees.roots[1]
    for side in (left, right):
        side[first], side[second] = side[second], side[first]
    return {"left": left, "right": right}


def lead_back(trees):
    """Return children of which one comes before its parent: two nodes point to each other."""
    left, right = trees.nodes.left.copy(), trees.nodes.right.copy()
    inner = np.flatnonzero(left != LEAF)
    parent = next(node for node in inner if node and left[left[node]] != LEAF)
    child = left[parent]
    left[parent], left[child] = left[child], child
    return {"left": left, "right": right}


def test_a_shallow_leaf_that_leads_on_is_refused(tmp_path):
    trees, _ = fitted("lightgbm, a number")
    splits = trees.nodes.left != LEAF
    shallow = next(k for k in trees.nodes.left[splits] if not splits[k])
    right = trees.nodes.right.copy()
    right[shallow] = trees.roots[1] - 1
    refuse(tmp_path, rewrite(trees, right=right), "each has two children or none")


@pytest.mark.parametrize("forge", [swap_trees, lead_back])
def test_cycles_and_paths_into_other_trees_are_refused(tmp_path, forge):
    trees, _ = fitted("lightgbm")
    refuse(tmp_path, rewrite(trees, **forge(trees)), "they lead back, or into other trees")


SHAPES = {
    "more outputs": ({"offset": np.zeros(400)}, "not those of 400 outputs"),
    "no outputs": ({"offset": np.zeros(0)}, "not those of 0 outputs"),
    "one output": ({"offset": np.zeros(1)}, "does not fit 1 outputs"),
    "another link": ({"link": "logistic"}, "does not fit 4 outputs"),
    "an unknown link": ({"link": "system"}, "not those of trees"),
    "fewer thresholds": ({"threshold": lambda old: old[1:]}, "not those of trees"),
    "broken numbers": ({"left": lambda old: old.astype(float)}, "not those of trees"),
    "words": ({"value": lambda old: old.astype(str)}, "not those of trees"),
    "a width that is no number": ({"width": "6"}, "not those of trees"),
    "an absent value that is no number": ({"absent": "x"}, "not those of trees"),
    "a complex offset": ({"offset": np.zeros(4, complex)}, "not those of trees"),
    "no trees": ({"roots": np.zeros(0, np.int64)}, "do not begin"),
    "a table of roots": ({"roots": lambda old: old[:, None]}, "not those of trees"),
}


@pytest.mark.parametrize(("changes", "match"), SHAPES.values(), ids=SHAPES)
def test_arrays_that_are_no_trees_are_refused(tmp_path, changes, match):
    refuse(tmp_path, rewrite(fitted("lightgbm")[0], **changes), match)


@pytest.mark.parametrize("change", [{"more": 1}, {"roots": np.array([{}], object)}], ids=str)
def test_a_file_with_more_in_it_or_a_pickle_inside_is_refused(tmp_path, change):
    (tmp_path / "model.trees.npz").write_bytes(rewrite(fitted("lightgbm")[0], **change))
    with pytest.raises(BadStore, match=r"model\.trees\.npz cannot be read"):
        model_files.load_fitted(tmp_path)


def test_a_compressed_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.trees.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("left.npy", bytes(1000))
    with pytest.raises(BadStore, match="could unfold to any size"):
        model_files.load_fitted(tmp_path)


def test_nothing_forged_can_be_built():
    trees, _ = fitted("forest")
    with pytest.raises(BadStore, match="features beyond the 1"):
        replace(trees, width=1)
