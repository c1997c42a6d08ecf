"""New texts get the features that they would have in the experiment folder."""

import shutil

import numpy as np
import pytest

from ordinate.errors import BadInput, BadStore
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features, extract_new_features, load_extractor
from ordinate.tuning.features.tfidf import FittedTfidf, Tfidf


@pytest.mark.parametrize("by", [None, "topic"], ids=["whole", "grouped"])
@pytest.mark.parametrize("analyzer", ["word", "char"])
def test_new_texts_get_the_rows_of_the_folder(experiment, monkeypatch, by, analyzer):
    name = extract_features(experiment, Tfidf(analyzer=analyzer, min_df=1, group_by=by)).name
    data, found = experiment.dataset("test"), experiment.features(name, "test")
    monkeypatch.setattr(Tfidf, "batch", 3)
    rows, names = extract_new_features(
        experiment, name, data.texts, data.ids, column=data.read_column
    )
    assert names == found.names
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(rows, part), getattr(found.matrix, part))


def test_odd_new_texts_are_counted(experiment):
    name = extract_features(experiment, Tfidf(min_df=1, group_by="topic")).name
    column = {"topic": ["home", "moon", None]}.get
    found = load_extractor(experiment, name).count_oddities(
        ["", "the cat", "the cat"], column=column
    )
    assert found == {"empty_texts": 1, "without_group": 1, "unknown_group": 1}


def test_a_grouped_set_needs_the_groups_of_new_texts(experiment):
    name = extract_features(experiment, Tfidf(min_df=1, group_by="topic")).name
    with pytest.raises(BadInput, match="made with the column 'topic', which the new texts lack"):
        extract_new_features(experiment, name, ["the cat"])


def test_no_texts_are_no_rows(experiment):
    name = extract_features(experiment, Tfidf()).name
    rows, names = extract_new_features(experiment, name, [])
    assert rows.shape == (0, len(names))


def test_the_extractor_stays_though_the_training_data_change(root):
    name = extract_features(Experiment.open(root), Tfidf()).name
    before, _ = extract_new_features(Experiment.open(root), name, ["the cat sat"])
    shutil.rmtree(root / "ml-training-data")
    after, _ = extract_new_features(Experiment.open(root), name, ["the cat sat"])
    assert (before != after).nnz == 0


def test_a_set_without_extractor_cannot_serve_new_texts(experiment):
    (experiment.features_dir / "mine" / "one").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"'mine' has no extractor .* --feature-folder"):
        load_extractor(experiment, "mine")


def test_a_set_outside_the_folder_is_refused(experiment):
    with pytest.raises(BadInput, match="leaves the folder"):
        load_extractor(experiment, "../ml-test-data")


def test_an_extractor_that_was_changed_is_refused_unread(experiment, monkeypatch):
    made = extract_features(experiment, Tfidf())
    state = made.path / "_extractor" / "state.json"
    state.write_text(state.read_text().replace("cat", "dog"))
    monkeypatch.setattr(Tfidf, "load", lambda *_: pytest.fail("read"))
    with pytest.raises(BadStore, match="changed or damaged"):
        load_extractor(experiment, made.name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"extractor": "tfidf"', '"extractor": "os"', "no feature extractor 'os'"),
        ('"min_df": 2', '"nonsense": 2', "parameters of tfidf: 'nonsense' is not known"),
        ('"artifact": "extractor"', '"artifact": "model"', "is of model, not of a feature extra"),
    ],
    ids=["extractor", "parameters", "artifact"],
)
def test_a_manifest_that_names_no_extractor_is_refused(experiment, old, new, message):
    made = extract_features(experiment, Tfidf())
    manifest = made.path / "_extractor" / "manifest.json"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(BadStore, match=message):
        load_extractor(experiment, made.name)


def test_the_state_is_enough_to_make_rows(experiment):
    stored = load_extractor(experiment, extract_features(experiment, Tfidf()).name)
    assert isinstance(stored.fitted, FittedTfidf)
    assert stored.names == stored.fitted.names
