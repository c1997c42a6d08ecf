"""Feature sets: fitted on training data, whole or not there, the same however they came about."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from feature_texts import rows_of, write

from ordinate.errors import BadInput, BadOption, BadOutput, BadStore, FolderLocked
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features import extract_features, extraction
from ordinate.tuning.features.extractor import FeatureExtractor, FittedExtractor
from ordinate.tuning.features.feature_store import BatchStore
from ordinate.tuning.features.tfidf import Tfidf

MAKER = Tfidf(min_df=1)


def contents(folder):
    """Return all files of a folder but manifests, which tell the time."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def left(experiment):
    """Return what is there besides data and finished sets."""
    return [path.name for path in experiment.root.rglob(".*")]


def test_a_set_has_rows_for_every_data_set_in_order(experiment):
    made = extract_features(experiment, MAKER, "words")
    assert [(one.dataset, one.rows, one.new) for one in made.datasets] == [
        *(("one", 20, True), ("two", 11, True), ("test", 10, True)),
    ]
    for stem in ("one", "two", "test"):
        found = experiment.features("words", stem)
        texts = experiment.dataset(stem).texts
        assert found.matched == "by id"
        assert found.names == experiment.features("words", "one").names
        assert (np.diff(found.matrix.indptr) == 0)[[not t.strip() for t in texts]].all()
    assert left(experiment) == []


def test_empty_texts_are_counted(experiment):
    counts = {one.dataset: one.counts for one in extract_features(experiment, MAKER).datasets}
    assert [counts[stem]["empty_texts"] for stem in ("one", "two", "test")] == [0, 2, 1]
    assert counts["test"]["zero_rows"] == 2  # an empty one, and one of unknown words


def test_manifests_say_how_a_set_was_made(experiment):
    made = extract_features(experiment, Tfidf(min_df=1, group_by="topic"), "words")
    extractor = Manifest.read(made.path / "_extractor")
    assert (extractor.artifact, extractor.name, extractor.config["extractor"]) == (
        "extractor",
        "words",
        "tfidf",
    )
    assert extractor.config["parameters"]["group_by"] == "topic"
    assert extractor.data == {stem: experiment.dataset(stem).fingerprint for stem in ("one", "two")}
    assert {"scikit-learn", "scipy", "numpy", "python"} <= set(extractor.versions)
    assert extractor.command == (
        f"ordinate features tfidf -e {experiment.root} --min-df 1 --group-by topic --name words"
    )
    test = Manifest.read(made.path / "test")
    assert test.artifact == "features"
    assert test.data == {"test": experiment.dataset("test").fingerprint}
    assert test.config["counts"]["unknown_group"] == 1
    assert test.config["request"] == extractor.config["request"]


def test_test_data_do_not_enter_the_extractor(root):
    first = extract_features(Experiment.open(root), MAKER, "first")
    write(root / "ml-test-data" / "test.csv", [("q", "A1", "home", "wholly other words")] * 1)
    second = extract_features(Experiment.open(root), MAKER, "second")
    assert contents(first.path / "_extractor") == contents(second.path / "_extractor")


def test_the_batch_size_changes_nothing(experiment):
    extractor = Tfidf(min_df=1, group_by="topic")
    sets = [
        extract_features(experiment, extractor, f"set{size}", batch=size) for size in (3, 7, 100)
    ]
    first, *others = [contents(one.path) for one in sets]
    assert all(first == other for other in others)


@pytest.mark.parametrize(
    ("after", "size"),
    [(5, 4), *(pytest.param(after, 3, marks=pytest.mark.slow) for after in (0, 13))],
)
def test_a_killed_run_is_taken_up_and_no_batch_is_made_twice(experiment, monkeypatch, after, size):
    whole = extract_features(experiment, MAKER, "whole")
    code = f"""
import os, signal
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features
from ordinate.tuning.features.feature_store import BatchStore
from ordinate.tuning.features.tfidf import Tfidf

keep, done = BatchStore.save, []

def kept(*arguments):
    if len(done) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(keep(*arguments))

BatchStore.save = kept
extract_features(Experiment.open({str(experiment.root)!r}), Tfidf(min_df=1), "killed", batch=3)
"""
    ran = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ran.returncode == -signal.SIGKILL
    assert experiment.feature_sets == ["whole"]
    monkeypatch.setattr(Tfidf, "fit", lambda *_: pytest.fail("fitted again"))
    made, keep = [], BatchStore.save
    monkeypatch.setattr(BatchStore, "save", lambda *a: (made.append(a[2] - a[1]), keep(*a)))
    killed = extract_features(experiment, MAKER, "killed", batch=size)
    finished = sum(([3] * 6 + [2] + [3] * 3 + [2] + [3] * 3 + [1])[:after])
    assert sum(made) == 41 - finished
    assert contents(killed.path) == contents(whole.path)
    assert left(experiment) == []


@pytest.mark.parametrize("station", ["fit", "_publish_set", "_remove_batches"])
def test_a_run_stopped_at_any_station_is_taken_up(experiment, monkeypatch, station):
    whole = extract_features(experiment, MAKER, "whole")
    place = Tfidf if station == "fit" else extraction._Extraction
    with monkeypatch.context() as patch:
        patch.setattr(place, station, _stop)
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            extract_features(experiment, MAKER, "stopped")
    assert ("stopped" in experiment.feature_sets) == (station == "_remove_batches")
    stopped = extract_features(experiment, MAKER, "stopped")
    assert contents(stopped.path) == contents(whole.path)
    assert left(experiment) == []


def _stop(*_, **__):
    raise KeyboardInterrupt("stopped")


def test_batches_of_other_test_data_are_not_taken_up(root, monkeypatch):
    experiment = Experiment.open(root)
    with monkeypatch.context() as patch:
        patch.setattr(extraction._Extraction, "_publish_set", _stop)
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            extract_features(experiment, MAKER)
    write(root / "ml-test-data" / "test.csv", rows_of(50, 10))
    changed = Experiment.open(root)
    extract_features(changed, MAKER)
    extract_features(changed, MAKER, "afresh")
    sets = [changed.features(name, "test").matrix for name in changed.feature_sets]
    assert (sets[0] != sets[1]).nnz == 0


def test_an_identical_request_does_nothing(experiment, monkeypatch):
    first = extract_features(experiment, MAKER)
    assert not first.already_complete
    times = {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}
    monkeypatch.setattr(
        extraction._Extraction, "_fit_or_load", lambda *_, **__: pytest.fail("worked")
    )
    again = extract_features(experiment, MAKER)
    assert again.already_complete
    assert "nothing to do" in again.document().verdict
    assert {path: path.stat().st_mtime_ns for path in first.path.rglob("*")} == times


def test_a_changed_request_is_refused_with_the_difference_and_another_name(experiment):
    made = extract_features(experiment, MAKER, "words")
    before = contents(made.path)
    message = (
        r"words is another feature set, and is not overwritten: analyzer was 'word' and is 'char' "
        r"now; ngrams was \[1, 2\] and is \[2, 4\] now\. Choose another name: --name tfidf-char-"
    )
    with pytest.raises(BadOutput, match=message):
        extract_features(experiment, Tfidf(analyzer="char", min_df=1), "words")
    assert contents(made.path) == before


@pytest.mark.parametrize(
    ("path", "rows", "message"),
    [
        ("one", rows_of(1, 20), "the training file one has changed"),
        ("three", rows_of(60, 3), "the training file three is new"),
        ("two", None, "the training file two is gone"),
    ],
    ids=["changed", "new", "gone"],
)
def test_changed_training_data_are_noticed(root, path, rows, message):
    extract_features(Experiment.open(root), MAKER, "words")
    file = root / "ml-training-data" / f"{path}.csv"
    if rows is None:
        file.unlink()
    else:
        write(file, rows)
    with pytest.raises(BadOutput, match=message):
        extract_features(Experiment.open(root), MAKER, "words")


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        (
            "ml-training-data/one.csv",
            r"another name \(--name\), or remove .*words and make it again",
        ),
        ("ml-test-data/test.csv", r"Remove .*words/test, and make them again"),
    ],
    ids=["training", "test"],
)
def test_reading_features_of_changed_data_says_what_helps(root, path, advice):
    made = extract_features(Experiment.open(root), MAKER, "words")
    write(root / path, rows_of(80, 9))
    changed, stem = Experiment.open(root), path.rpartition("/")[2].removesuffix(".csv")
    with pytest.raises(BadStore, match=rf"data changed since .*{advice}: ordinate features tfidf"):
        changed.features("words", stem)
    shutil.rmtree(made.path if stem == "one" else made.path / stem)
    extract_features(changed, MAKER, "words")  # as the error says
    assert changed.features("words", stem).matrix.shape[0] == 9


def test_changed_groups_are_noticed(root):
    extractor = Tfidf(min_df=1, group_by="topic")
    extract_features(Experiment.open(root), extractor)
    rows = rows_of(0, 20)
    write(root / "ml-training-data" / "one.csv", [(*rows[0][:2], "other", rows[0][3]), *rows[1:]])
    with pytest.raises(BadOutput, match="column 'topic' of one has changed"):
        extract_features(Experiment.open(root), extractor)


def test_changed_groups_of_test_data_are_noticed(root):
    extractor = Tfidf(min_df=1, group_by="topic")
    extract_features(Experiment.open(root), extractor)
    file = root / "ml-test-data" / "test.csv"
    file.write_text(file.read_text("utf-8").replace(",sea,", ",home,"), "utf-8")
    with pytest.raises(BadOutput, match=r"test\.csv has changed since its features"):
        extract_features(Experiment.open(root), extractor)


def test_a_corrected_level_changes_nothing(root):
    extract_features(Experiment.open(root), MAKER)
    write(
        root / "ml-training-data" / "one.csv", [(i, "B1", *rest) for i, _, *rest in rows_of(0, 20)]
    )
    assert extract_features(Experiment.open(root), MAKER).already_complete


def test_a_further_test_set_joins_with_the_extractor_that_is_there(root, monkeypatch):
    extract_features(Experiment.open(root), MAKER)
    write(root / "ml-test-data" / "later.csv", rows_of(70, 4))
    monkeypatch.setattr(Tfidf, "fit", lambda *_: pytest.fail("fitted again"))
    made = extract_features(Experiment.open(root), MAKER)
    assert {one.dataset: one.new for one in made.datasets}["later"]
    assert sum(one.new for one in made.datasets) == 1
    assert Experiment.open(root).features(made.name, "later").matrix.shape[0] == 4


def test_a_changed_test_set_is_refused_until_its_features_are_removed(root):
    made = extract_features(Experiment.open(root), MAKER)
    write(root / "ml-test-data" / "test.csv", rows_of(80, 3))
    with pytest.raises(BadOutput, match=r"test\.csv has changed .* Remove .*test to have them"):
        extract_features(Experiment.open(root), MAKER)
    shutil.rmtree(made.path / "test")
    assert extract_features(Experiment.open(root), MAKER).datasets[-1].rows == 3


def test_grouped_and_ungrouped_sets_stand_side_by_side(experiment):
    names = {extract_features(experiment, Tfidf(group_by=by)).name for by in (None, "topic")}
    assert names == {"tfidf-word", "tfidf-word-by-topic"} == set(experiment.feature_sets)


def test_levels_cannot_be_groups(experiment):
    with pytest.raises(BadOption, match="'level' is the column of the levels"):
        extract_features(experiment, Tfidf(group_by="level"))


def test_a_foreign_set_is_never_overwritten(experiment):
    (experiment.features_dir / "mine").mkdir(parents=True)
    with pytest.raises(BadOutput, match=r"`ordinate features` did not make it\. Choose another"):
        extract_features(experiment, MAKER, "mine")


@pytest.mark.parametrize("file", ["_extractor/state.json", "test/features.npz"])
def test_a_damaged_set_is_not_taken_for_finished(experiment, file):
    made = extract_features(experiment, MAKER)
    path = made.path / file
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(BadStore, match="changed or damaged"):
        extract_features(experiment, MAKER)


@pytest.mark.parametrize(
    "name", ["", ".hidden", "_extractor", "a/b", "../x", "a\0", "-x", "x" * 200]
)
def test_names_that_are_no_names_are_refused(experiment, name):
    with pytest.raises(BadOption, match="cannot name a feature set"):
        extract_features(experiment, MAKER, name)


def test_a_batch_has_rows(experiment):
    with pytest.raises(BadOption, match="1 row or more, not 0"):
        extract_features(experiment, MAKER, batch=0)


def test_data_without_texts_are_an_error_that_names_the_file(root):
    with (root / "ml-test-data" / "bare.csv").open("w") as file:
        file.write("id,level\n1,A1\n")
    with pytest.raises(BadInput, match=r"Which column of .*bare\.csv holds the texts"):
        extract_features(Experiment.open(root), MAKER)


def test_ids_that_repeat_are_an_error(root):
    write(root / "ml-test-data" / "twice.csv", [*rows_of(0, 3), *rows_of(1, 1)])
    with pytest.raises(BadInput, match=r"'t1' .* row 2 and in row 4"):
        extract_features(Experiment.open(root), MAKER)


def test_an_experiment_without_training_data_is_an_error(root):
    shutil.rmtree(root / "ml-training-data")
    with pytest.raises(BadInput, match="no training data in ml-training-data"):
        extract_features(Experiment.open(root), MAKER)


def test_a_second_run_is_told_who_works(experiment):
    with (
        hold_lock(experiment.root, "ordinate tune"),
        pytest.raises(FolderLocked, match=f"{os.getpid()}"),
    ):
        extract_features(experiment, MAKER)


def test_progress_rises_to_the_end(experiment):
    told = []
    extract_features(experiment, MAKER, batch=4, progress=told.append)
    assert told == sorted(told)
    assert told[0] >= 0.0
    assert told[-1] == 1.0


# --- another extractor ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Lengths(FeatureExtractor):
    """Dense features: letters and words."""

    unit: float = 1.0

    name: ClassVar[str] = "lengths"
    title = "lengths"
    default_extractor = property(lambda _: Lengths())
    arguments = property(lambda _: [])

    @classmethod
    def of(cls, parameters, _experiment):
        return cls(**parameters)

    def fit(self, _items, _progress):
        return FittedLengths()

    def load(self, _folder):
        return FittedLengths()


class FittedLengths(FittedExtractor):
    names = ("letters", "words")

    def rows(self, items):
        return np.array([[len(text), len(text.split())] for text in items.texts], float)

    def save(self, folder):
        (folder / "state.json").write_text("{}")


def test_a_dense_extractor_gives_parquet_with_ids(experiment):
    made = extract_features(experiment, Lengths(), batch=4)
    assert sorted(path.name for path in (made.path / "test").iterdir()) == [
        *("features.parquet", "manifest.json"),
    ]
    found = experiment.features("lengths", "two")
    assert (found.matched, found.names) == ("by id", ("letters", "words"))
    texts = experiment.dataset("two").texts
    expected = [[len(t), len(t.split())] if t.strip() else [0, 0] for t in texts]
    assert found.matrix.tolist() == expected
    one = extract_features(experiment, Lengths(), "other", batch=100)
    assert contents(one.path) == contents(made.path)


def test_an_extractor_that_gives_no_numbers_is_stopped(experiment, monkeypatch):
    monkeypatch.setattr(FittedLengths, "rows", lambda _, items: np.full((items.n, 2), np.nan))
    with pytest.raises(BadStore, match="numbers that are not finite"):
        extract_features(experiment, Lengths())
    assert experiment.feature_sets == []


def test_a_name_of_a_dense_feature_that_stands_for_two_is_refused(experiment, monkeypatch):
    monkeypatch.setattr(FittedLengths, "names", ("words", "Words"))
    with pytest.raises(BadInput, match="'Words', for case does not count"):
        extract_features(experiment, Lengths())


def test_data_without_ids_are_matched_by_fingerprint(tmp_path):
    folder = tmp_path / "ml-training-data"
    folder.mkdir()
    (folder / "a.csv").write_text("level,text\nA1,the cat\nA2,the dog\n")
    experiment = Experiment.open(tmp_path)
    for extractor in (Lengths(), Tfidf()):
        name = extract_features(experiment, extractor).name
        assert experiment.features(name, "a").matched == "by fingerprint"
