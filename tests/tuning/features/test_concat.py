"""Feature sets side by side: the parts as they are, in the order of the data, or an error."""

import csv
import shutil

import numpy as np
import pytest
from feature_texts import rows_of, write

from ordinate.errors import BadInput, BadOption, BadOutput, BadStore
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features import (
    default_name,
    extract_features,
    extract_new_features,
    list_feature_sets,
)
from ordinate.tuning.features.concat import Concat
from ordinate.tuning.features.tfidf import Tfidf

STEMS = ("one", "two", "test")


def bring(experiment, name="mine", shift=0.0, stems=STEMS):
    """Write a dense set with ids, its rows in another order than the data's."""
    for stem in stems:
        folder = experiment.features_dir / name / stem
        folder.mkdir(parents=True, exist_ok=True)
        rows = [(one, k + shift, k % 2) for k, one in enumerate(experiment.dataset(stem).ids)]
        with (folder / "features_dense.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("id", "x", "y"), *rows[::-1]])


@pytest.fixture
def parts(experiment):
    """Return an experiment with two sparse sets and a dense one that was brought."""
    extract_features(experiment, Tfidf(min_df=1), "words")
    extract_features(experiment, Tfidf(min_df=1, group_by="topic"), "grouped")
    bring(experiment)
    return experiment


def concat(experiment, *names):
    return Concat(names, experiment)


@pytest.mark.parametrize("names", [("words", "mine"), ("mine", "words", "grouped")])
def test_the_columns_are_those_of_the_parts_in_order(parts, names):
    made = extract_features(parts, concat(parts, *names), batch=3)
    assert made.name == "+".join(names)
    for stem in STEMS:
        own = [parts.features(name, stem) for name in names]
        found = parts.features(made.name, stem)
        dense = [one.matrix.toarray() if one.sparse else one.matrix for one in own]
        assert found.sparse
        assert found.matched == "by id"
        assert np.array_equal(found.matrix.toarray(), np.hstack(dense))
        expected = [f"{one.set}:{name}" for one in own for name in one.names]
        assert list(found.names) == expected


def test_dense_parts_stay_dense(parts):
    bring(parts, "more", shift=0.5)
    name = extract_features(parts, concat(parts, "mine", "more")).name
    found = parts.features(name, "two")
    assert not found.sparse
    assert found.names == ("mine:x", "mine:y", "more:x", "more:y")
    assert found.matrix[3].tolist() == [3.0, 1.0, 3.5, 1.0]


def test_rows_without_ids_are_those_of_the_same_data_set(tmp_path):
    folder = tmp_path / "ml-training-data"
    folder.mkdir()
    (folder / "a.csv").write_text("level,text\nA1,the cat\nA2,the dog\n")
    experiment = Experiment.open(tmp_path)
    extract_features(experiment, Tfidf(min_df=1), "words")
    extract_features(experiment, Tfidf(min_df=1, analyzer="char"), "letters")
    name = extract_features(experiment, concat(experiment, "words", "letters")).name
    found = experiment.features(name, "a")
    assert found.matched == "by fingerprint"
    words = experiment.features("words", "a").matrix.toarray()
    assert np.array_equal(found.matrix.toarray()[:, : words.shape[1]], words)


def test_the_manifest_knows_the_extractors_of_the_parts(parts):
    made = extract_features(parts, concat(parts, "words", "mine"))
    stored = Manifest.read(made.path / "_extractor").config
    assert stored["parameters"] == {"parts": ["words", "mine"]}
    assert set(stored["sources"]) == {
        "the extractor of words",
        *(f"part {part!r} of {stem}" for part in ("words", "mine") for stem in ("one", "two")),
    }
    assert made.command == f"ordinate features concat -e {parts.root} words mine"
    assert extract_features(parts, concat(parts, "words", "mine")).already_complete


def test_odd_rows_of_parts_are_counted(parts):
    made = extract_features(parts, concat(parts, "words", "grouped"))
    assert made.datasets[-1].counts["unknown_group"] == 1
    assert made.datasets[-1].counts["empty_texts"] == 1


def test_sets_can_be_put_together_from_sets_that_were(parts):
    inner = extract_features(parts, concat(parts, "words", "mine"), "inner")
    outer = extract_features(parts, concat(parts, "inner", "grouped"))
    names = parts.features(outer.name, "test").names
    assert names[0].startswith("inner:words:")
    assert (
        len(names) == inner.datasets[0].features + parts.features("grouped", "test").matrix.shape[1]
    )


def test_data_without_texts_can_have_sets_side_by_side(tmp_path):
    folder = tmp_path / "ml-training-data"
    folder.mkdir()
    (folder / "one.csv").write_text("id,level\na,A1\nb,A2\n")
    experiment = Experiment.open(tmp_path)
    bring(experiment, stems=("one",))
    bring(experiment, "more", stems=("one",))
    made = extract_features(experiment, concat(experiment, "mine", "more"))
    assert made.datasets[0].counts["empty_texts"] == 0


# --- errors ---------------------------------------------------------------------------------------


def test_parts_are_two_or_more_that_differ(parts):
    with pytest.raises(
        BadOption, match="two feature sets or more to put side by side, not 'words'"
    ):
        concat(parts, "words")
    with pytest.raises(BadOption, match="each feature set once, not 'words', 'mine', 'words'"):
        concat(parts, "words", "mine", "words")


def test_a_part_that_is_not_there_is_named(parts):
    with pytest.raises(BadInput, match=r"no feature set 'word' .* Did you mean 'words'"):
        extract_features(parts, concat(parts, "mine", "word"))


def test_a_part_that_lacks_a_data_set_is_named_with_the_command_that_makes_it(parts):
    shutil.rmtree(parts.features_dir / "words" / "test")
    message = r"'words' has no features for the data set 'test': .* first: ordinate features tfidf"
    with pytest.raises(BadInput, match=message):
        extract_features(parts, concat(parts, "mine", "words"))
    shutil.rmtree(parts.features_dir / "mine" / "test")
    with pytest.raises(BadInput, match=r"'mine' has no features .* Add them\.$"):
        extract_features(parts, concat(parts, "mine", "words"))
    assert sorted(parts.feature_sets) == ["grouped", "mine", "words"]


def test_a_part_whose_extractor_changed_is_noticed(parts):
    made = extract_features(parts, concat(parts, "words", "mine"), "both")
    shutil.rmtree(parts.features_dir / "words")
    extract_features(parts, Tfidf(min_df=2), "words")
    with pytest.raises(BadOutput, match="the extractor of words has changed"):
        extract_features(parts, concat(parts, "words", "mine"), "both")
    with pytest.raises(BadStore, match=r"'words' is not the one .* its extractor has changed"):
        extract_new_features(parts, made.name, ["the cat"])
    (note,) = [note for note in list_feature_sets(parts).notes if "both" in note]
    assert note.startswith("both was made of other parts than there are now: part 'words' of one")
    assert "the extractor of words has changed" in note


def test_a_part_made_again_alike_is_the_same(parts):
    extract_features(parts, concat(parts, "words", "grouped"), "both")
    shutil.rmtree(parts.features_dir / "words")
    extract_features(parts, Tfidf(min_df=1), "words", batch=3)
    assert extract_features(parts, concat(parts, "words", "grouped"), "both").already_complete
    assert extract_new_features(parts, "both", ["the cat"], column=lambda _: ["home"])[0].nnz
    assert list_feature_sets(parts).notes == ()


@pytest.mark.parametrize("stem", ["one", "test"])
def test_a_brought_part_whose_numbers_changed_is_noticed(parts, stem):
    extract_features(parts, concat(parts, "words", "mine"), "both")
    bring(parts, shift=1.0, stems=(stem,))
    with pytest.raises(BadOutput, match=rf"part 'mine' of .*{stem}(\.csv)? has changed"):
        extract_features(parts, concat(parts, "words", "mine"), "both")


@pytest.mark.usefixtures("parts")
def test_a_part_of_changed_data_is_noticed(root):
    write(root / "ml-test-data" / "test.csv", rows_of(80, 3))
    changed = Experiment.open(root)
    with pytest.raises(BadStore, match=r"data changed since .* Remove .*test, and make them again"):
        extract_features(changed, concat(changed, "words", "grouped"))


def test_a_part_with_other_features_for_a_data_set_is_refused(parts):
    file = parts.features_dir / "mine" / "test" / "features_dense.csv"
    file.write_text(file.read_text().replace("id,x,y", "id,x,z"))
    with pytest.raises(BadStore, match="'mine' has other features for test than"):
        extract_features(parts, concat(parts, "words", "mine"))


def test_new_texts_need_extractors_for_all_parts(parts):
    name = extract_features(parts, concat(parts, "words", "mine")).name
    with pytest.raises(BadInput, match="'mine' has no extractor"):
        extract_new_features(parts, name, ["the cat"])


def test_long_names_become_a_hash(parts):
    long = concat(parts, *(f"{'x' * 30}{k}" for k in range(5)))
    assert default_name(long).startswith("concat-")
    assert len(default_name(long)) < 30
