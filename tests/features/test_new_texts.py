"""New texts get the features that they would have in the experiment folder."""

import shutil

import numpy as np
import pytest

from ordinate.errors import BadInput, BadStore
from ordinate.experiment.folder import Experiment
from ordinate.features import make, set_features_for, stored_maker
from ordinate.features.tfidf import FittedTfidf, Tfidf


@pytest.mark.parametrize("by", [None, "topic"], ids=["whole", "grouped"])
@pytest.mark.parametrize("analyzer", ["word", "char"])
def test_new_texts_get_the_rows_of_the_folder(experiment, monkeypatch, by, analyzer):
    name = make(experiment, Tfidf(analyzer=analyzer, min_df=1, group_by=by)).name
    data, found = experiment.dataset("test"), experiment.features(name, "test")
    monkeypatch.setattr(Tfidf, "batch", 3)
    rows, names = set_features_for(experiment, name, data.texts, data.ids, column=data.extra)
    assert names == found.names
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(rows, part), getattr(found.matrix, part))


def test_odd_new_texts_are_counted(experiment):
    name = make(experiment, Tfidf(min_df=1, group_by="topic")).name
    column = {"topic": ["home", "moon", None]}.get
    found = stored_maker(experiment, name).odd(["", "the cat", "the cat"], column=column)
    assert found == {"empty_texts": 1, "without_group": 1, "unknown_group": 1}


def test_a_grouped_set_needs_the_groups_of_new_texts(experiment):
    name = make(experiment, Tfidf(min_df=1, group_by="topic")).name
    with pytest.raises(BadInput, match="made with the column 'topic', which the new texts lack"):
        set_features_for(experiment, name, ["the cat"])


def test_no_texts_are_no_rows(experiment):
    name = make(experiment, Tfidf()).name
    rows, names = set_features_for(experiment, name, [])
    assert rows.shape == (0, len(names))


def test_the_maker_stays_though_the_training_data_change(root):
    name = make(Experiment.open(root), Tfidf()).name
    before, _ = set_features_for(Experiment.open(root), name, ["the cat sat"])
    shutil.rmtree(root / "ml-training-data")
    after, _ = set_features_for(Experiment.open(root), name, ["the cat sat"])
    assert (before != after).nnz == 0


def test_a_set_without_maker_cannot_serve_new_texts(experiment):
    (experiment.features_dir / "mine" / "one").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"'mine' has no maker .* --features"):
        stored_maker(experiment, "mine")


def test_a_set_outside_the_folder_is_refused(experiment):
    with pytest.raises(BadInput, match="leaves the folder"):
        stored_maker(experiment, "../ml-test-data")


def test_a_maker_that_was_changed_is_refused_unread(experiment, monkeypatch):
    made = make(experiment, Tfidf())
    state = made.path / "_maker" / "state.json"
    state.write_text(state.read_text().replace("cat", "dog"))
    monkeypatch.setattr(Tfidf, "load", lambda *_: pytest.fail("read"))
    with pytest.raises(BadStore, match="changed or damaged"):
        stored_maker(experiment, made.name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"maker": "tfidf"', '"maker": "os"', "no maker 'os'"),
        ('"min_df": 2', '"nonsense": 2', "no parameters of tfidf"),
        ('"kind": "maker"', '"kind": "model"', "is of model, not of a maker"),
    ],
    ids=["maker", "parameters", "kind"],
)
def test_a_manifest_that_names_no_maker_is_refused(experiment, old, new, message):
    made = make(experiment, Tfidf())
    manifest = made.path / "_maker" / "manifest.json"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(BadStore, match=message):
        stored_maker(experiment, made.name)


def test_the_state_is_enough_to_make_rows(experiment):
    stored = stored_maker(experiment, make(experiment, Tfidf()).name)
    assert isinstance(stored.fitted, FittedTfidf)
    assert stored.names == stored.fitted.names
