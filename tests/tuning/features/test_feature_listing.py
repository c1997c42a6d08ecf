"""The list of feature sets says what there is, how it was made, and whether it still holds."""

import numpy as np
import pytest

from ordinate.render import RENDERERS, render
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features, extraction, list_feature_sets
from ordinate.tuning.features.tfidf import Tfidf


def test_sizes_and_zeros_are_those_of_the_matrices(experiment):
    name = extract_features(experiment, Tfidf()).name
    for one in list_feature_sets(experiment).sets:
        matrix = experiment.features(name, one.dataset).matrix
        assert (one.rows, one.features) == matrix.shape
        assert one.zeros == pytest.approx(np.mean(matrix.toarray() == 0))
        assert one.state == "as made"
        assert one.made_by == f"ordinate features tfidf -e {experiment.root}"


def test_foreign_sets_are_listed_as_they_are_matched(experiment):
    folder = experiment.features_dir / "mine" / "one"
    folder.mkdir(parents=True)
    lines = ["id,x,y", *(f"t{k},{k},0" for k in range(20))]
    (folder / "features_dense.csv").write_text("\n".join(lines) + "\n")
    found = list_feature_sets(experiment)
    (one,) = found.sets
    assert (one.rows, one.features, one.state) == (20, 2, "not made here, by id")
    assert one.zeros == pytest.approx(21 / 40)
    assert found.notes == ("mine has no features for two, test.",)


def test_changed_data_are_told(root):
    extract_features(Experiment.open(root), Tfidf())
    for path in ("ml-training-data/one.csv", "ml-test-data/test.csv"):
        file = root / path
        file.write_text(file.read_text("utf-8").replace("the", "that"), "utf-8")
    found = list_feature_sets(Experiment.open(root))
    states = {one.dataset: one.state for one in found.sets}
    assert states == {"one": "data changed", "two": "as made", "test": "data changed"}
    assert found.notes == (
        "tfidf-word was fitted on other training data than there are now (one).",
    )


def test_a_set_that_cannot_be_read_is_told_and_hides_no_other(experiment):
    extract_features(experiment, Tfidf())
    (experiment.features_dir / "broken" / "one").mkdir(parents=True)
    (experiment.features_dir / "tfidf-word" / "test" / "manifest.json").write_text("{")
    found = list_feature_sets(experiment)
    states = {(one.set, one.dataset): one.state for one in found.sets}
    assert states["broken", "one"] == states["tfidf-word", "test"] == "cannot be used"
    assert states["tfidf-word", "one"] == "as made"
    assert all(one.problem for one in found.sets if one.state == "cannot be used")


def test_unfinished_work_is_told(experiment, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(extraction._Extraction, "_publish_set", _stop)
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            extract_features(experiment, Tfidf())
    found = list_feature_sets(experiment)
    assert found.sets == ()
    assert "Unfinished work waits in" in found.notes[0]


def _stop(*_, **__):
    raise KeyboardInterrupt("stopped")


@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_has_the_sets(experiment, form):
    made = extract_features(experiment, Tfidf())
    assert "tfidf-word" in render(list_feature_sets(experiment), form)
    assert "tfidf-word" in render(made, form)
