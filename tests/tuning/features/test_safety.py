"""Sets that are half removed, shared, damaged or forged: taken up, or refused in one sentence."""

import json
import shutil

import numpy as np
import pytest
from command import run
from feature_texts import rows_of, write
from scipy.sparse import csr_matrix

from ordinate.errors import BadInput, BadStore, FolderLocked
from ordinate.tuning.classify.batch_prediction import load_data_items, load_feature_items
from ordinate.tuning.experiment.feature_files import read_stored_features
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.features import extract_features, extraction, list_feature_sets, load_extractor
from ordinate.tuning.features.concat import Concat
from ordinate.tuning.features.extractor import expand_path
from ordinate.tuning.features.feature_store import BatchStore, write_features
from ordinate.tuning.features.tfidf import Tfidf

MAKER = Tfidf(min_df=1)
LONG = "x" * 5_000


# --- names ----------------------------------------------------------------------------------------


def test_carriage_returns_in_ids_and_names_come_back(tmp_path):
    rows = [(f"i\r{k}", "A1", "home", "a\rb c\r\nd") for k in range(3)]
    write(tmp_path / "ml-training-data" / "train.csv", rows)
    experiment = Experiment.open(tmp_path)
    name = extract_features(experiment, Tfidf(analyzer="char", min_df=1)).name
    found = experiment.features(name, "train")
    assert found.matched == "by id"
    assert any("\r" in one for one in found.names)
    assert found.names == load_extractor(experiment, name).names


@pytest.mark.parametrize("odd", ["\r", "\n", '"', ",", "a\r", "feature", " x "], ids=repr)
def test_odd_names_are_one_line_each(tmp_path, odd):
    write_features(tmp_path, csr_matrix(np.eye(2)), [odd, "b"], [odd, "b"])
    found = read_stored_features(tmp_path)
    assert (found.names, found.ids) == ((odd, "b"), (odd, "b"))


@pytest.mark.parametrize("name", ["_extractor.csv", "_held.tsv.gz"])
@pytest.mark.parametrize("folder", ["ml-training-data", "ml-test-data"])
def test_data_that_are_called_like_our_own_folders_are_refused(root, folder, name):
    (root / folder / name).write_text("id,level,text\n")
    with pytest.raises(BadInput, match=f"{name} cannot be a data set.* Rename it"):
        Experiment.open(root)


def test_hidden_files_are_no_data(root):
    (root / "ml-test-data" / ".hidden.csv").write_text("id,level,text\n")
    assert Experiment.open(root).tests == ["test"]


# --- resuming -------------------------------------------------------------------------------------


def test_a_set_of_which_only_the_extractor_is_left_is_filled_again(experiment, monkeypatch):
    made = extract_features(experiment, MAKER)
    before = experiment.features(made.name, "test").digest
    for stem in experiment.files:
        shutil.rmtree(made.path / stem)
    monkeypatch.setattr(Tfidf, "fit", lambda *_: pytest.fail("fitted again"))
    assert [one.new for one in extract_features(experiment, MAKER).datasets] == [True] * 3
    assert experiment.features(made.name, "test").digest == before


def stopped(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("left", [0, 40, -1], ids=["empty", "begun", "nearly whole"])
def test_a_damaged_batch_is_made_again(experiment, monkeypatch, left):
    extract_features(experiment, MAKER, "whole")
    with monkeypatch.context() as patched:
        patched.setattr(extraction._Extraction, "_publish_set", stopped)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            extract_features(experiment, MAKER, "later", batch=6)
    batch = next(experiment.features_dir.glob(".making-*/*/6-12.npz"))
    batch.write_bytes(batch.read_bytes()[:left])
    kept, keep = [], BatchStore.save
    monkeypatch.setattr(BatchStore, "save", lambda *a: (kept.append(a[1:3]), keep(*a)))
    extract_features(experiment, MAKER, "later", batch=4)
    assert kept == [(6, 10), (10, 12)]
    for stem in experiment.files:
        one, two = (experiment.features(name, stem).digest for name in ("whole", "later"))
        assert one == two


def test_a_damaged_dense_batch_is_missing(tmp_path):
    batches = BatchStore(tmp_path, 6)
    batches.save(0, 3, np.eye(3))
    batches.save(3, 6, np.eye(3))
    assert list(batches.missing(9)) == []
    path = tmp_path / "3-6.npy"
    path.write_bytes(path.read_bytes()[:-8])
    assert list(batches.missing(9)) == [(3, 6)]
    assert not path.exists()


# --- sharing --------------------------------------------------------------------------------------


@pytest.fixture
def shared(root, tmp_path_factory):
    """Two experiments with one folder of feature sets."""
    other, sets = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("sets")
    write(other / "ml-training-data" / "third.csv", rows_of(0, 9))
    return [Experiment.open(one, features_dir=sets) for one in (root, other)]


def test_only_one_works_in_a_shared_folder_of_sets(shared):
    one, other = shared
    with hold_lock(one.features_dir, "another"), pytest.raises(FolderLocked, match="another"):
        extract_features(other, MAKER)
    assert extract_features(other, MAKER).name in one.feature_sets


def test_an_experiment_holds_its_own_sets_for_those_who_share_them(experiment, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    write(other / "ml-training-data" / "third.csv", rows_of(0, 9))
    seen = []

    def progress(_):
        if not seen:
            seen.append(True)
            with pytest.raises(FolderLocked, match="ordinate features tfidf"):
                extract_features(
                    Experiment.open(other, features_dir=experiment.features_dir), MAKER
                )

    extract_features(experiment, MAKER, progress=progress)
    assert seen
    assert [path.name for path in experiment.root.rglob(".*")] == []


def test_what_killed_runs_left_in_a_shared_folder_is_removed(shared):
    one, _ = shared
    (one.features_dir / ".ordinate-0123").mkdir()
    extract_features(one, MAKER, "own")
    assert [path.name for path in one.features_dir.iterdir()] == ["own"]


def test_sets_may_lie_in_the_folder_of_the_experiment_itself(root):
    experiment = Experiment.open(root, features_dir=root)
    assert extract_features(experiment, MAKER, "own").path == root / "own"


# --- forged ---------------------------------------------------------------------------------------


def forged(folder, **config):
    path = folder / "manifest.json"
    found = json.loads(path.read_text())
    found["config"] |= config
    path.write_text(json.dumps(found))


@pytest.mark.parametrize(
    "config",
    [
        {"parameters": [1]},
        {"parameters": None},
        {"extractor": ["x"]},
        {"extractor": {}},
        {"sources": None},
        {"sources": {"a": []}},
    ],
    ids=str,
)
def test_an_extractor_that_says_odd_things_of_itself_is_refused(experiment, config):
    made = extract_features(experiment, MAKER, "own")
    extract_features(experiment, Tfidf(analyzer="char", min_df=1), "letters")
    forged(made.path / "_extractor", **config)
    message = r"The manifest\.json of 'own': '(parameters|extractor|sources).* must be"
    with pytest.raises(BadStore, match=message):
        extract_features(experiment, MAKER, "own")
    with pytest.raises(BadStore, match=message):
        load_extractor(experiment, "own")
    with pytest.raises(BadStore, match=message):
        extract_features(experiment, Concat(("own", "letters"), experiment))
    assert list_feature_sets(experiment).sets


@pytest.mark.parametrize(
    ("name", "value"),
    [("ngrams", 3), ("ngrams", [2, 1]), ("min_df", "z"), ("min_df", 0), ("analyzer", [])],
    ids=str,
)
def test_parameters_that_are_none_are_refused(experiment, name, value):
    made = extract_features(experiment, MAKER, "own")
    known = json.loads((made.path / "_extractor" / "manifest.json").read_text())["config"]
    forged(made.path / "_extractor", parameters=known["parameters"] | {name: value})
    with pytest.raises(BadStore, match=f"parameters of tfidf: (it is refused|'{name}' must be)"):
        load_extractor(experiment, "own")


@pytest.mark.parametrize(
    "config",
    [
        *({"rows": "x"}, {"rows": 0}, {"features": 0}, {"features": True}, {"nonzero": None}),
        *({"counts": []}, {"counts": {}}, {"counts": {"zero_rows": "many"}}),
    ],
    ids=str,
)
def test_features_that_say_odd_things_of_themselves_are_refused(experiment, config):
    made = extract_features(experiment, MAKER, "own")
    forged(made.path / "test", **config)
    (name,) = config
    with pytest.raises(BadStore, match=rf"manifest\.json: '{name}.* must be"):
        extract_features(experiment, MAKER, "own")
    states = {one.dataset: one.state for one in list_feature_sets(experiment).sets}
    assert (states["test"], states["one"]) == ("cannot be used", "as made")


def test_features_that_were_made_of_nobody_knows_what_are_refused(experiment):
    made = extract_features(experiment, MAKER, "own")
    forged(made.path / "test", besides=[1])
    with pytest.raises(BadStore, match=r"'besides' in .*it must be an object"):
        extract_features(experiment, MAKER, "own")


# --- paths ----------------------------------------------------------------------------------------


def test_paths_that_no_file_system_holds_are_not_there(experiment):
    with pytest.raises(BadInput, match=r"There is no file 'xxx.* \(--data\)"):
        load_data_items(experiment, None, LONG)
    with pytest.raises(BadInput, match=r"There is no folder 'xxx.* \(--feature-folder\)"):
        load_feature_items(None, LONG)
    with pytest.raises(BadInput, match=r"The folder 'xxx.* is not there"):
        Experiment.open(LONG)
    with pytest.raises(BadInput, match=r"The folder 'xxx.* is not there"):
        Experiment.open(experiment.root, features_dir=LONG)


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x", LONG], ids=["home", "long"])
def test_paths_of_extractors_are_refused_in_one_sentence(path):
    with pytest.raises(BadInput, match="is no path of a file or folder"):
        expand_path(path)


def test_the_command_says_so_in_one_line(root):
    ran = run("features", "tfidf", "-e", root, "--features-base-dir", LONG)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
