"""`ordinate init`: a folder to begin with, whole however often it is stopped, over no other."""

import contextlib
import csv
import re
import sys
from collections import Counter

import pytest
from command import run

from ordinate.errors import BadInput
from ordinate.examples import locate_example, split_texts
from ordinate.tuning.experiment import new_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.new_experiment import lay_out_experiment
from ordinate.tuning.features import extraction

FEATURE_SETS = ["tfidf-char", "tfidf-word"]
TRAINING_FILE, TEST_FILE = "ml-training-data/texts.csv", "ml-test-data/texts_test.csv"


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
    training = rows(tmp_path / "new" / TRAINING_FILE)
    test = rows(tmp_path / "new" / TEST_FILE)
    every = sorted((*training, *test), key=lambda row: row["id"])
    assert every == sorted(rows(locate_example("texts")), key=lambda row: row["id"])
    assert set(Counter(row["level"] for row in training).values()) == {28}
    assert set(Counter(row["level"] for row in test).values()) == {14}
    assert split_texts() == split_texts()


def test_the_folder_is_an_experiment_with_two_sparse_sets(tmp_path):
    ran = run("init", tmp_path)  # which is empty
    assert (ran.code, ran.err) == (0, "")
    assert "168 training texts, 84 test texts" in " ".join(ran.out.split())
    experiment = Experiment.open(tmp_path)
    assert experiment.feature_sets == FEATURE_SETS
    for name in FEATURE_SETS:
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run leaves that nobody stops."""
    root = tmp_path_factory.mktemp("whole") / "new"
    assert run("init", root).code == 0
    return contents(root)


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_a_partial_folder_goes_away_when_it_is_interrupted(tmp_path, monkeypatch, after):
    _stop_after(monkeypatch, after)
    assert run("init", tmp_path / "other" / "stopped").code == 130
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_there_before_an_interrupt_stays(tmp_path, monkeypatch):
    _stop_after(monkeypatch, 4)
    assert run("init", tmp_path).code == 130
    assert not list(tmp_path.iterdir())


AFTER = pytest.mark.parametrize(
    "after", [2, *(pytest.param(after, marks=pytest.mark.slow) for after in (0, 1, 3, 4))]
)


@AFTER
def test_a_killed_run_is_taken_up(tmp_path, monkeypatch, whole, after):
    stopped = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        _stop_after(patch, after)
        patch.setattr(new_experiment, "_remove_unfinished", lambda *_: contextlib.nullcontext())
        assert run("init", stopped).code == 130
    (stopped / "ml-test-data").mkdir(parents=True, exist_ok=True)
    (stopped / "ml-test-data" / ".ordinate-0123.csv").write_text("half")
    assert run("init", stopped).code == 0
    assert contents(stopped) == whole


def _stop_after(patch, steps):
    """Let two files and two feature sets be written at most, and then stop as a signal does."""
    done = []

    def counted(function):
        def called(*arguments, **options):
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(function)
            return function(*arguments, **options)

        return called

    patch.setattr(new_experiment, "replace_file", counted(new_experiment.replace_file))
    patch.setattr(new_experiment, "write_text", counted(new_experiment.write_text))
    patch.setattr(extraction, "extract_features", counted(extraction.extract_features))


# --- texts of one's own ---------------------------------------------------------------------------


def write_essays(path, n=60, *, sep=",", names=("id", "level", "text"), levels=("A1", "B1", "C1")):
    lines = [sep.join((*names, "writer"))]
    for k in range(n):
        level = levels[k % len(levels)]
        lines.append(sep.join((f"e{k}", level, f"word{k} {level} text", f"w{k // 4}")))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_fifth_of_each_level_is_set_aside_for_the_test(tmp_path):
    source = write_essays(tmp_path / "essays.csv")
    ran = run("init", tmp_path / "new", "--train", source)
    assert (ran.code, ran.err) == (0, "")
    assert "48 training texts, 12 test texts" in " ".join(ran.out.split())
    training = rows(tmp_path / "new/ml-training-data/essays.csv")
    test = rows(tmp_path / "new/ml-test-data/essays_test.csv")
    assert Counter(row["level"] for row in test) == {"A1": 4, "B1": 4, "C1": 4}
    assert sorted(row["id"] for row in (*training, *test)) == sorted(
        row["id"] for row in rows(source)
    )
    other = tmp_path / "other"
    run("init", other, "--train", source, "--seed", 1)
    assert rows(other / "ml-test-data/essays_test.csv") != test


def test_groups_stay_whole(tmp_path):
    source = write_essays(tmp_path / "essays.csv")
    new = tmp_path / "new"
    ran = run("init", new, "--train", source, "--group-column", "writer")
    assert ran.code == 0
    assert Experiment.open(new).columns.group == "writer"
    parts = [
        {row["writer"] for row in rows(new / place)}
        for place in ("ml-training-data/essays.csv", "ml-test-data/essays_test.csv")
    ]
    assert not parts[0] & parts[1]
    assert 8 <= len(rows(new / "ml-test-data/essays_test.csv")) <= 16


def test_files_are_copied_as_they_are(tmp_path):
    train, test = (write_essays(tmp_path / name, n) for name, n in (("a.csv", 30), ("b.csv", 9)))
    new = tmp_path / "new"
    ran = run("init", new, "--train", train, "--test", test)
    assert (ran.code, ran.err) == (0, "")
    assert (new / "ml-training-data/a.csv").read_bytes() == train.read_bytes()
    assert (new / "ml-test-data/b.csv").read_bytes() == test.read_bytes()
    (tmp_path / "more").mkdir()
    same = write_essays(tmp_path / "more" / "a.csv", 9)
    assert run("init", tmp_path / "two", "--train", train, "--test", same).code == 0
    assert (tmp_path / "two/ml-test-data/a_test.csv").is_file()


def test_columns_and_scale_are_named_and_later_commands_repeat_them(tmp_path):
    names, levels = ("nr", "points", "words"), ("1", "2", "3")
    source = write_essays(tmp_path / "essays.txt.csv", sep=";", names=names, levels=levels)
    new = tmp_path / "new"
    told = ("--label-column", "points", "--text-column", "words", "--id-column", "nr")
    ran = run("init", new, "--train", source, *told, "--scale", "1..6", "--delimiter", ";")
    assert (ran.code, ran.err) == (0, "")
    assert f"ordinate check -e {new}, ordinate tune -e {new}" in ran.out
    checked = run("check", "-e", new)  # which knows columns and scale without being told again
    assert (checked.code, checked.err) == (0, "")


@pytest.mark.parametrize(
    ("header", "arguments", "message"),
    [
        (
            "id,points,text",
            (),
            "Which column of .* holds the levels\\? Name it with --label-column",
        ),
        ("id,level,words", (), "Name it with --text-column"),
        ("id,level,text", ("--label-column", "no"), "has no column 'no' \\(--label-column\\)"),
        ("id,level,text", ("--scale", "1..3"), "Label 'A1' .* is not on the scale"),
        ("id,level,text", ("--test", "none.csv"), "none.csv"),
        ("id,level,text", ("--seed", "-1"), "--seed takes an integer of at least 0"),
    ],
)
def test_what_cannot_be_read_says_what_to_pass(tmp_path, header, arguments, message):
    source = write_essays(tmp_path / "essays.csv", names=header.split(","))
    ran = run("init", tmp_path / "new", "--train", source, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert re.search(message, ran.err)
    assert not (tmp_path / "new").exists()


def test_test_data_need_training_data(tmp_path):
    ran = run("init", tmp_path / "new", "--test", write_essays(tmp_path / "essays.csv"))
    assert (ran.code, "--train" in ran.err) == (2, True)
    ran = run("init", tmp_path / "new", "--train", tmp_path / "essays.md")
    assert (ran.code, "CSV, TSV, JSONL, Parquet or XLSX" in ran.err) == (2, True)


@pytest.fixture(scope="module")
def whole_of_own(tmp_path_factory):
    """What a run on one's own texts leaves that nobody stops."""
    base = tmp_path_factory.mktemp("own")
    source = write_essays(base / "essays.csv")
    assert run("init", base / "new", "--train", source).code == 0
    return source, contents(base / "new")


@AFTER
def test_a_stopped_run_of_own_texts_is_taken_up(tmp_path, monkeypatch, whole_of_own, after):
    source, whole = whole_of_own
    stopped = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        _stop_after(patch, after)
        assert run("init", stopped, "--train", source).code == 130
    assert run("init", stopped, "--train", source).code == 0
    assert contents(stopped) == whole
    assert run("init", stopped, "--train", source).code == 2


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dict"])
def test_frames_are_laid_out_as_files_are(tmp_path, library):
    table = {
        "id": [f"e{k}" for k in range(20)],
        "grade": [float(1 + k % 2) for k in range(20)],
        "text": [f"text {k}, with a comma" for k in range(20)],
    }
    if library == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(table)
    elif library == "dict":
        frame = table
    else:
        frame = pytest.importorskip(library).DataFrame(table)
    found = lay_out_experiment(tmp_path / "new", frame, scale="1..2")
    assert str(found.scale()) == "1 < 2"
    data = found.dataset("train")
    assert (data.n, found.dataset("test").n) == (16, 4)
    assert set(data.labels) == {"1", "2"}
    assert data.texts[0].endswith("with a comma")
    with pytest.raises(BadInput, match="pass a file or a data frame"):
        lay_out_experiment(tmp_path / "other", 3)


GERMAN = "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Vielen Dank für alles."


def write_german(path):
    lines = [f"e{k},{('A1', 'B1')[k % 2]},{GERMAN} {k}" for k in range(20)]
    path.write_text("\n".join(("id,level,text", *lines)) + "\n", "utf-8")
    return path


def test_german_essays_get_lexical_features_of_german_and_the_user_sees_it(tmp_path):
    source = write_german(tmp_path / "essays.csv")
    ran = run("init", tmp_path / "new", "--train", source)
    assert (ran.code, ran.err) == (0, "")
    assert "The language of the texts is 'de'" in " ".join(ran.out.split())
    assert Experiment.open(tmp_path / "new").feature_sets == ["lexical-de", *FEATURE_SETS]
    assert run("init", tmp_path / "it", "--train", source, "--language", "it").code == 0
    assert Experiment.open(tmp_path / "it").feature_sets == ["lexical-it", *FEATURE_SETS]


def test_where_lexical_features_cannot_be_made_the_way_to_them_is_shown(tmp_path, monkeypatch):
    unsure = run("init", tmp_path / "new", "--train", write_essays(tmp_path / "odd.csv"))
    said = " ".join(unsure.out.split())
    assert (unsure.code, "language of the texts is not sure" in said) == (0, True)
    assert f", then: ordinate features lexical -e {tmp_path / 'new'}" in said
    monkeypatch.setitem(sys.modules, "wordfreq", None)  # as if it were not installed
    lean = run("init", tmp_path / "lean", "--train", write_german(tmp_path / "essays.csv"))
    assert (lean.code, "pip install 'ordinate[features]'" in lean.out) == (0, True)
    assert Experiment.open(tmp_path / "lean").feature_sets == FEATURE_SETS


def test_copies_of_a_text_are_not_on_both_sides(tmp_path):
    table = {"id": [f"e{k}" for k in range(60)], "level": ["A1", "B1", "C1"] * 20}
    frame = table | {"text": [f"{table['level'][k]} word{k % 21}" for k in range(60)]}
    found = lay_out_experiment(tmp_path / "new", frame)
    training, test = (set(found.dataset(stem).texts) for stem in ("train", "test"))
    assert test
    assert not training & test


def test_an_ordered_categorical_declares_the_scale(tmp_path):
    pandas = pytest.importorskip("pandas")
    levels = pandas.Categorical(["low", "mid", "high"] * 8, ["low", "mid", "high"], ordered=True)
    texts = [f"text number {k}" for k in range(24)]
    frame = pandas.DataFrame({"level": levels, "text": texts})
    assert str(lay_out_experiment(tmp_path / "new", frame).scale()) == "low < mid < high"
