"""`ordinate init`: a folder to begin with, whole however often it is stopped, over no other."""

import csv
from collections import Counter

import pytest
from command import run

from ordinate import features
from ordinate.cli import init
from ordinate.examples import locate_example, split_texts
from ordinate.experiment.folder import Experiment


def rows(file):
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def contents(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }


def test_the_split_keeps_every_text_once_and_two_to_one_at_each_level(tmp_path):
    assert run("init", tmp_path / "new").code == 0
    training = rows(tmp_path / "new" / init.TRAINING_FILE)
    test = rows(tmp_path / "new" / init.TEST_FILE)
    every = sorted((*training, *test), key=lambda row: row["id"])
    assert every == sorted(rows(locate_example("texts")), key=lambda row: row["id"])
    assert set(Counter(row["level"] for row in training).values()) == {28}
    assert set(Counter(row["level"] for row in test).values()) == {14}
    assert split_texts() == split_texts()


def test_the_folder_is_an_experiment_with_two_sparse_sets(tmp_path):
    ran = run("init", tmp_path)  # which is empty
    assert (ran.code, ran.err) == (0, "")
    assert "168 training texts, 84 test texts" in ran.out
    experiment = Experiment.open(tmp_path)
    assert experiment.feature_sets == sorted(init.FEATURE_SETS)
    for name in init.FEATURE_SETS:
        assert name in ran.out
        for stem, n in (("texts", 168), ("texts_test", 84)):
            found = experiment.features(name, stem)
            assert (found.sparse, found.matrix.shape[0], found.matched) == (True, n, "by id")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("README.txt", "features", "ml-test-data", "ml-training-data"),
    ]
    assert len((tmp_path / "README.txt").read_text("utf-8").splitlines()) < 20


@pytest.mark.parametrize(
    "files",
    [
        ("README.txt",),
        ("notes.md",),
        ("ml-training-data/mine.csv",),
        ("ml-training-data/texts.csv",),
        ("features/mine/x.csv",),
        ("models/a",),
    ],
    ids=lambda files: files[0].replace("/", "-"),
)
def test_a_folder_with_anything_in_it_is_refused_and_left_alone(tmp_path, files):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    ran = run("init", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "is not empty: it holds" in ran.err
    assert contents(tmp_path) == before


def test_the_next_commands_can_be_pasted(tmp_path):
    folder = tmp_path / "my first"
    assert f"ordinate check -e '{folder}', ordinate tune -e '{folder}'" in run("init", folder).out


def test_a_finished_folder_is_refused(tmp_path):
    run("init", tmp_path)
    ran = run("init", tmp_path)
    assert ran.code == 2
    assert "README.txt" in ran.err


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    ran = run("init", tmp_path / "file")
    assert ran.code == 2
    assert "is a file" in ran.err


@pytest.mark.parametrize("after", [0, 1, 2, 3, 7])
def test_a_stopped_run_is_taken_up(tmp_path, monkeypatch, after):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run("init", whole).code == 0
    with monkeypatch.context() as patch:
        _stop_after(patch, after)
        assert run("init", stopped).code == 130
    (stopped / "ml-test-data").mkdir(parents=True, exist_ok=True)
    (stopped / "ml-test-data" / ".ordinate-0123.csv").write_text("half")
    assert run("init", stopped).code == 0
    assert contents(stopped) == contents(whole)


def _stop_after(patch, steps):
    """Let two files and two feature sets be written at most, and then stop as a signal does."""
    from ordinate.experiment import safe_files as files

    done = []

    def counted(function):
        def called(*arguments, **options):
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(function)
            return function(*arguments, **options)

        return called

    patch.setattr(files, "write_text", counted(files.write_text))
    patch.setattr(features, "extract_features", counted(features.extract_features))
