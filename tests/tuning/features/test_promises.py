"""What every extractor promises: killed, in other batches or for new texts, the same set."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from language_models import tiny_model
from saved_models import save_model

from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import create_extractor, extract_features, extract_new_features
from ordinate.tuning.features.external import External
from ordinate.tuning.features.extractor import EXTRACTORS as CLASSES
from ordinate.tuning.features.tfidf import NGRAMS

KILLED = """
import json, os, signal, sys
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features, create_extractor
from ordinate.tuning.features.feature_store import BatchStore

root, kind, parameters, after = sys.argv[1:]
keep, done = BatchStore.save, []

def kept(*arguments):
    if len(done) == int(after):
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(keep(*arguments))

BatchStore.save = kept
experiment = Experiment.open(root)
extractor = create_extractor(kind, json.loads(parameters), experiment)
extract_features(experiment, extractor, "killed", batch=4)
"""
LEVELS = ("A1", "A2", "B1")
TEXTS = (
    "The cat sat on the mat.",
    "",
    "Nobody knows why the old man, who lives by the sea, has never learned to swim.",
    "今天天气很好。我们去公园。",
    "هذا بيت جميل وقديم",
    "It rains. It rains again. The cat sleeps.",
    "A tab\x0b and a bell\x07 stand\x01 here, the cat said.",
    "   ",
    'He said "no", and\nleft; the mat, too.',
    "Notwithstanding the weather, the committee reconvened.",
)
MAKERS = {
    "tfidf-word": ("tfidf", {"min_df": 1}),
    "tfidf-char": ("tfidf", {"analyzer": "char", "ngrams": [2, 3]}),
    "tfidf-grouped": ("tfidf", {"min_df": 1, "group_by": "topic"}),
    "lexical": ("lexical", {}),
    "concat-sparse": ("concat", {"parts": ["lexical", "grouped", "words"]}),
    "concat-dense": ("concat", {"parts": ["lexical", "brought"]}),
    "external": ("external", {"path": "brought.csv", "drop": ["note"]}),
    "embeddings": ("embeddings", {"overlap": 8}),
    "perplexity": ("perplexity", {"model": "tiny", "window": 24}),
}
SLOW = ("embeddings", "perplexity")
BROUGHT = ("external", "concat-dense")  # in part or whole
ALIKE = ("tfidf-word", "tfidf-char", "lexical", "concat-dense", "concat-sparse")  # as quicker ones


def every(names, slow=SLOW):
    marks = {name: [pytest.mark.slow] if name in slow else [] for name in names}
    return [pytest.param(name, id=name, marks=marks[name]) for name in names]


def write(path, items):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "level", "topic", "text"), *items])


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    """Return a folder with an experiment, some sets that others are made of, and a table."""
    folder = tmp_path_factory.mktemp("promises")
    root = folder / "study"
    items = [(f"a{k}", LEVELS[k % 3], "xy"[k % 2], text) for k, text in enumerate(TEXTS * 2)]
    write(root / "ml-training-data" / "train.csv", items)
    later = [(f"b{k}", LEVELS[k % 3], "xyz"[k % 3], text) for k, text in enumerate(TEXTS[::-1])]
    write(root / "ml-test-data" / "test.csv", later)
    with (folder / "brought.csv").open("w", newline="") as file:
        rows = [(one[0], k / 7, k % 3, "n") for k, one in enumerate([*items, *later])]
        csv.writer(file).writerows([("id", "depth", "clauses", "note"), *rows[::-1]])
    experiment = Experiment.open(root)
    for name, (kind, parameters) in {
        "lexical": MAKERS["lexical"],
        "grouped": MAKERS["tfidf-grouped"],
        "words": ("tfidf", {}),
    }.items():
        extract_features(experiment, made_with(experiment, kind, parameters), name)
    extract_features(
        experiment, External(str(folder / "brought.csv"), ("note",), experiment), "brought"
    )
    return folder


@pytest.fixture
def root(laid_out, tmp_path, monkeypatch):
    shutil.copytree(laid_out, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "study"


def made_with(experiment, kind, parameters):
    usual = {"ngrams": list(NGRAMS[parameters.get("analyzer", "word")])} if kind == "tfidf" else {}
    extractor = getattr(import_module(f"ordinate.tuning.features.{kind}"), CLASSES[kind])
    return create_extractor(kind, {"version": extractor.version} | usual | parameters, experiment)


def extractor_named(name, root):
    if name in SLOW:
        import torch

        torch.set_num_threads(1)  # as the process that is killed has it
    if name == "perplexity":
        tiny_model(root.parent / "tiny")
    return made_with(Experiment.open(root), *MAKERS[name])


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if path.name != "manifest.json"
    }


def killed(root, extractor, after):
    """Make a set in another process, which is killed when it has kept so many batches."""
    given = [str(root), extractor.name, json.dumps(extractor.parameters), str(after)]
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, *given],
        check=False,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    )
    return ran.returncode


@pytest.mark.parametrize("name", every(MAKERS, (*SLOW, *ALIKE)))
def test_a_set_is_the_same_whole_killed_between_and_in_other_batches(root, name):
    extractor, experiment = extractor_named(name, root), Experiment.open(root)
    whole = extract_features(experiment, extractor, "whole")
    assert killed(root, extractor, after=3) == -signal.SIGKILL
    assert "killed" not in experiment.feature_sets
    assert list((root / "features").glob(".making-*/*/*.np?"))
    parts = extract_features(experiment, extractor, "killed", batch=3)
    small = extract_features(experiment, extractor, "small", batch=1)
    assert contents(whole.path) == contents(parts.path) == contents(small.path)
    assert not list(root.rglob(".making-*"))


@pytest.mark.parametrize("name", every([name for name in MAKERS if name not in BROUGHT]))
def test_new_texts_are_predicted_as_those_of_the_folder(root, name):
    experiment = Experiment.open(root)
    made = extract_features(experiment, extractor_named(name, root), "own")
    model = save_model(root, "own")
    shutil.copy(root / "ml-test-data" / "test.csv", "new.csv")
    for data, out in ((root / "ml-test-data" / "test.csv", "own.csv"), ("new.csv", "made.csv")):
        ran = run("predict", "-e", root, "--model", model, "--data", data, "-o", out)
        assert (ran.code, ran.err) == (0, "")
    assert (root.parent / "own.csv").read_bytes() == (root.parent / "made.csv").read_bytes()
    data, found = experiment.dataset("test"), experiment.features("own", "test")
    rows, names = extract_new_features(
        experiment, "own", data.texts, data.ids, column=data.read_column
    )
    assert names == found.names
    parts = (lambda x: (x.indptr, x.indices, x.data)) if found.sparse else (lambda x: (x,))
    for one, two in zip(parts(rows), parts(found.matrix), strict=True):
        assert np.array_equal(one, two)
    assert made.datasets[1].counts["empty_texts"] == 2


@pytest.mark.parametrize("name", BROUGHT)
def test_new_texts_have_no_features_that_were_brought(root, name):
    extract_features(Experiment.open(root), extractor_named(name, root), "own")
    model = save_model(root, "own")
    shutil.copy(root / "ml-test-data" / "test.csv", "new.csv")
    ran = run("predict", "-e", root, "--model", model, "--data", "new.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "brought.csv: nothing can make them of new texts" in ran.err
    ran = run(
        "predict", "-e", root, "--model", model, "--feature-folder", root / "features/own/test"
    )
    assert ran.code == 0


@pytest.mark.parametrize("name", every(MAKERS))
def test_empty_texts_are_counted_in_the_report(root, name):
    found = extract_features(Experiment.open(root), extractor_named(name, root), "own")
    assert [one.counts["empty_texts"] for one in found.datasets] == [4, 2]
    assert "test: 2 of 10 texts are empty." in found.document().blocks


@pytest.mark.parametrize("name", every(MAKERS))
def test_a_changed_training_file_is_noticed(root, name):
    extract_features(Experiment.open(root), extractor_named(name, root), "own")
    file = root / "ml-training-data" / "train.csv"
    file.write_bytes(file.read_bytes().replace(b"The cat", b"The dog"))
    kind, options = extractor_named(name, root).name, extractor_named(name, root).arguments
    ran = run("features", kind, "-e", root, *options, "--name", "own")
    assert (ran.code, ran.out) == (2, "")
    assert "the training file train has changed" in ran.err or "data changed since" in ran.err
    listed = run("features", "list", "-e", root).out
    assert "own was fitted on other training data than there are now (train)" in " ".join(
        listed.split()
    )


@pytest.mark.parametrize("name", every(MAKERS))
def test_ids_that_repeat_are_an_error(root, name):
    extractor = extractor_named(name, root)
    write(root / "ml-test-data" / "twice.csv", [("c1", "A1", "x", "One.")] * 2)
    ran = run("features", extractor.name, "-e", root, *extractor.arguments, "--name", "own")
    assert (ran.code, ran.out) == (2, "")
    assert "the id 'c1' of column 'id' stands in row 1 and in row 2" in ran.err


@pytest.mark.parametrize("name", every(["tfidf-word", "tfidf-char", "lexical", "embeddings"]))
def test_a_megabyte_is_a_text_like_others(root, name):
    text = "".join(f"The cat number {k} sat on the mat again. " for k in range(24_500))
    assert len(text) > 1_000_000
    columns = {"id": ["c1", "c2"], "level": ["A1", "A1"], "text": [text, "Rain."]}
    pq.write_table(pa.table(columns), root / "ml-test-data" / "long.parquet")
    experiment = Experiment.open(root)
    extract_features(experiment, extractor_named(name, root), "own")
    matrix = experiment.features("own", "long").matrix
    assert matrix.shape[0] == 2
    assert abs(matrix[[0]]).sum() > 0.0
