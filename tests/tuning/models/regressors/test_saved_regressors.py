"""Saved regressors: the same predictions again, and nothing forged is opened."""

import io
import json
import pickle
import zipfile
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ordinate.errors import BadStore
from ordinate.tuning.models import model_files
from ordinate.tuning.models.regressors import MODEL_TYPES, create_regressor, load_regressor

NAMES = [name for name in MODEL_TYPES if name != "mlp"]
QUICK = {"lightgbm": {"rounds": 8}, "hist_boosting": {"rounds": 8}}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] ** 2 + X[:, 1]


def fitted(name):
    return copy(_fit(name))


@cache
def _fit(name):
    return create_regressor(name, QUICK.get(name), seed=2).fit(X[:40], Y[:40], X[40:], Y[40:])


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_predicts_as_the_saved_one(tmp_path, name):
    model = fitted(name)
    assert model.save(tmp_path)[0] == "model.json"
    loaded = load_regressor(tmp_path)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert (loaded.name, loaded.params, loaded.seed) == (name, model.params, 2)
    assert (loaded.steps, loaded.width) == (model.steps, 3)


@pytest.mark.parametrize("name", NAMES)
def test_equal_models_have_equal_bytes(tmp_path, name):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        names = fitted(name).save(tmp_path / folder)
        _fit.cache_clear()
    for file in names:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_another_width_or_type_is_refused(tmp_path, name):
    fitted(name).save(tmp_path)
    facts = json.loads((tmp_path / "model.json").read_text())
    other = "svr" if name != "svr" else "hist_boosting"
    changes = [{"features": 4}, {"model_type": other, "params": MODEL_TYPES[other].defaults}]
    if name in {"gp", "kernel_ridge"}:  # which are stored in the form of svr
        changes.pop()
    for change in changes:
        (tmp_path / "model.json").write_text(json.dumps(facts | change))
        with pytest.raises(BadStore, match=r"does not hold a \w+ model of \d features"):
            load_regressor(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": 3}, "'model_type' must be a string"),
        ({"features": 0}, "must be an integer of at least 1 and of at most"),
        ({"params": None}, "'params' must be an object"),
        ({"model_type": "forest"}, "does not say what the model is: There is no model 'forest'"),
        ({"params": {"cost": 1.0}}, "svr has the parameters width, cost, epsilon"),
        ({"params": {"costs": 1}}, "no parameter 'costs'"),
    ],
    ids=str,
)
def test_facts_that_make_no_sense_are_refused(tmp_path, change, message):
    fitted("svr").save(tmp_path)
    facts = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(facts | change))
    with pytest.raises(BadStore, match=message):
        load_regressor(tmp_path)


def test_a_loaded_model_can_be_saved_again(tmp_path):
    (tmp_path / "again").mkdir()
    fitted("lightgbm").save(tmp_path)
    load_regressor(tmp_path).save(tmp_path / "again")
    first, second = (load_regressor(folder) for folder in (tmp_path, tmp_path / "again"))
    assert first.predict(X).tolist() == second.predict(X).tolist()


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(BadStore, match=r"model\.json cannot be read"):
        load_regressor(tmp_path)


def test_a_pickle_is_refused(tmp_path):
    fitted("svr").save(tmp_path)
    (tmp_path / "model.skops").write_bytes(pickle.dumps({}))
    with pytest.raises(BadStore, match="is a pickle by its content"):
        load_regressor(tmp_path)


@pytest.mark.parametrize("loader", ["FunctionNode", "ReduceNode", "RandomGeneratorNode"])
def test_another_way_to_build_a_listed_type_is_refused(tmp_path, loader):
    fitted("gp").save(tmp_path)
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    schema["__loader__"] = loader
    members["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(BadStore, match=f"KernelExpansion' by '{loader}', which is no part"):
        load_regressor(tmp_path)


# --- forged files --------------------------------------------------------------------------------


KERNELS = {
    "an unknown kernel": {"shape": "system"},
    "a kernel that is no string": {"shape": ["rbf"]},
    "fewer weights": {"weights": np.ones(3)},
    "lengths of other features": {"lengths": np.ones(4)},
    "an infinite offset": {"offset": np.inf},
    "integers": {"lengths": np.ones(3, np.int64)},
}


@pytest.mark.parametrize("change", KERNELS.values(), ids=KERNELS)
def test_forged_kernels_are_refused(tmp_path, change):
    model = fitted("gp")
    model.fitted = replace(model.fitted, **change)
    model.save(tmp_path)
    with pytest.raises(BadStore, match=r"does not hold a gp model"):
        load_regressor(tmp_path)


def test_what_is_stored_holds_plain_arrays_and_no_state_of_a_generator(tmp_path):
    for name in ("gp", "svr", "kernel_ridge"):
        folder = tmp_path / name
        folder.mkdir()
        fitted(name).save(folder)
        content = (folder / "model.skops").read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            built = {node.get("__class__") for node in model_files._walk_nodes(_schema(archive))}
        assert built <= {"KernelExpansion", "dict", "list", "str", "ndarray"}


def _schema(archive):
    return json.loads(archive.read("schema.json"))
