"""Features, and models fitted to them, belong to one extractor, one column and known libraries."""

import csv
import json
import shutil

import pytest
from saved_models import save_model, save_vote

from ordinate.errors import BadInput, BadStore
from ordinate.tuning.classify.batch_prediction import (
    load_data_items,
    load_experiment_items,
    load_feature_items,
    predict_items,
)
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.trained_model import load_model
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features import extract_features, extraction, load_extractor
from ordinate.tuning.features.concat import Concat
from ordinate.tuning.features.extraction import find_extractor_identity, read_extractor_manifest
from ordinate.tuning.features.tfidf import Tfidf

LEVELS = ("A1", "A2", "B1")
WORDS = {"A1": "cat dog sun", "A2": "sea rain road", "B1": "moon tree town"}
ESSAY = DataColumns(text="essay")


def write_essays(path, n, *, delimiter=",", encoding="utf-8", column="essay"):
    """Write texts that say something of their level, beside a column of texts that do not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(("id", "level", "text", column))
        for k in range(n):
            level = LEVELS[k % 3]
            writer.writerow((f"i{k}", level, "the same for all", f"{WORDS[level]} x{k % 4}"))
    return path


@pytest.fixture
def study(tmp_path):
    """An experiment whose texts stand in the column essay, a set of it, and a model."""
    root = tmp_path / "study"
    write_essays(root / "ml-training-data" / "train.csv", 24)
    write_essays(root / "ml-test-data" / "test.csv", 6)
    experiment = Experiment.open(root, columns=ESSAY)
    extract_features(experiment, Tfidf(min_df=1), "own")
    save_model(root, "own", columns=ESSAY)
    return experiment


def levels(experiment, path):
    """Return the levels of new texts, and what was noted."""
    model = load_model(experiment)
    sought = load_data_items(experiment, model, str(path))
    found = predict_items(model, sought).predictions
    return [found.scale.names[k] for k in found.levels], sought.notes


def spoil(folder, change):
    """Change what the manifest of a folder says."""
    path = folder / "manifest.json"
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


# --- columns --------------------------------------------------------------------------------------


def test_new_texts_are_read_from_the_column_that_the_extractor_learned_from(study, tmp_path):
    new = write_essays(tmp_path / "new.csv", 6)
    found, notes = levels(Experiment.open(study.root), new)
    assert found == [*LEVELS, *LEVELS]
    assert notes == ()


def test_a_column_that_is_recognised_is_kept_as_well(study):
    made = extract_features(Experiment.open(study.root), Tfidf(min_df=1), "recognised")
    columns = Manifest.read(made.path / "_extractor").config["columns"]
    assert columns == {"text": "text", "delimiter": None, "encoding": None}


def test_another_column_of_new_texts_is_noted(study, tmp_path):
    asked = Experiment.open(study.root, columns=DataColumns(text="text"))
    said = "column 'text'; the features were learned from the column 'essay'"
    assert said in levels(asked, write_essays(tmp_path / "new.csv", 6))[1][0]
    recognised = Experiment.open(study.root)
    assert said in levels(recognised, write_essays(tmp_path / "no.csv", 6, column="other"))[1][0]


def test_new_texts_are_written_as_those_that_the_extractor_learned_from(tmp_path):
    written = {"delimiter": "+", "encoding": "utf-16"}
    root = tmp_path / "study"
    write_essays(root / "ml-training-data" / "train.csv", 24, **written)
    columns = DataColumns(text="essay", **written)
    extract_features(Experiment.open(root, columns=columns), Tfidf(min_df=1), "own")
    save_model(root, "own", columns=columns)
    new = write_essays(tmp_path / "new.csv", 6, **written)
    found, notes = levels(Experiment.open(root), new)
    assert found == [*LEVELS, *LEVELS]
    assert [note.partition(" was read with ")[2].partition(",")[0] for note in notes] == [
        "the delimiter '+'",
        "the encoding 'utf-16'",
    ]
    assert levels(Experiment.open(root, columns=columns), new) == (found, ())


@pytest.mark.parametrize("columns", [["essay"], {"text": 3}, "essay"], ids=str)
def test_columns_that_are_none_are_refused(study, columns):
    spoil(study.features_dir / "own" / "_extractor", lambda x: x["config"].update(columns=columns))
    with pytest.raises(BadStore, match=r"'columns' in .*manifest\.json: .* must be"):
        load_extractor(study, "own")


# --- extractors -----------------------------------------------------------------------------------


def remade(experiment, extractor):
    """Make the set again under its name, with the same features."""
    names = experiment.features("own", "train").names
    shutil.rmtree(experiment.features_dir / "own")
    extract_features(experiment, extractor, "own")
    assert experiment.features("own", "train").names == names


def test_a_set_that_was_made_anew_is_not_the_one_of_the_model(study, tmp_path):
    new = write_essays(tmp_path / "new.csv", 6)
    remade(study, Tfidf(min_df=1, sublinear=False))
    model = load_model(study)
    for sought in (
        load_data_items(study, model, str(new)),
        load_experiment_items(study, model, "test"),
        load_feature_items(model, str(study.features_dir / "own" / "test")),
    ):
        with pytest.raises(BadInput, match=r"are by another one.* tune again"):
            predict_items(model, sought)


def test_a_member_of_a_vote_knows_its_extractor(study):
    extract_features(study, Tfidf(analyzer="char", min_df=1), "letters")
    both = [load_model(study).name, save_model(study.root, "letters", columns=ESSAY)]
    vote = load_model(study, save_vote(study.root, both, columns=ESSAY))
    predict_items(vote, load_experiment_items(study, vote, "test"))
    remade(study, Tfidf(min_df=1, sublinear=False))
    with pytest.raises(BadInput, match="of the set 'own' by the extractor"):
        predict_items(vote, load_experiment_items(study, vote, "test"))


def test_a_set_that_was_made_again_alike_is_the_same(study, tmp_path):
    new = write_essays(tmp_path / "new.csv", 6)
    before = levels(study, new)
    remade(study, Tfidf(min_df=1))
    assert levels(study, new) == before


def test_features_of_nobody_knows_whom_go_by_their_names(study):
    folder = study.features_dir / "own" / "test"
    (folder / "manifest.json").unlink()
    model = load_model(study)
    assert len(predict_items(model, load_feature_items(model, str(folder))).predictions) == 6


def test_a_tuned_model_knows_the_extractor_of_its_features(study):
    quick = Settings(models="logistic", trials=1, folds=2, top_k=1)
    first = tune_experiment(study, quick).winner.name
    extractor = find_extractor_identity(read_extractor_manifest(study, "own"))
    assert extractor is not None
    assert load_model(study, first).config["extractor"] == extractor
    remade(study, Tfidf(min_df=1, max_features=None))  # which makes the same numbers
    again = Experiment.open(study.root, columns=ESSAY)
    second = tune_experiment(again, quick).winner.name
    assert second != first
    model = load_model(again, second)
    predict_items(model, load_experiment_items(again, model, "test"))


# --- libraries ------------------------------------------------------------------------------------


def older(folder):
    spoil(folder, lambda found: found["versions"].update({"scikit-learn": "0.1"}))


def test_a_data_set_that_joins_with_other_libraries_is_noted(study):
    older(study.features_dir / "own" / "_extractor")
    assert extract_features(study, Tfidf(min_df=1), "own").notes == ()  # nothing was made
    write_essays(study.root / "ml-test-data" / "later.csv", 3)
    made = extract_features(Experiment.open(study.root, columns=ESSAY), Tfidf(min_df=1), "own")
    (note,) = made.notes
    assert note.startswith("own was made with other versions: scikit-learn was 0.1 and is ")
    assert made.to_dict()["notes"] == [note]
    assert note in made.document().blocks
    now = extraction.collect_versions(["scikit-learn"])["scikit-learn"]
    assert Manifest.read(made.path / "later").versions["scikit-learn"] == now
    assert Manifest.read(made.path / "_extractor").versions["scikit-learn"] == "0.1"


def test_new_texts_with_other_libraries_are_noted(study, tmp_path):
    extract_features(study, Tfidf(analyzer="char", min_df=1), "letters")
    older(study.features_dir / "own" / "_extractor")
    extract_features(study, Concat(("own", "letters"), study), "both")
    (note,) = levels(study, write_essays(tmp_path / "new.csv", 6))[1]
    assert "scikit-learn was 0.1 and is" in note
    assert load_extractor(study, "both").notes() == [note]
    assert load_extractor(study, "letters").notes() == []
