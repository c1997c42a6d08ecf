"""Check: a sound experiment is found so, and each thing that is spoiled is told with its place."""

import pickle

import numpy as np
import pytest
from experiment_folder import (
    items,
    numbers,
    write_csv,
    write_experiment,
    write_lines,
    write_rows,
)

from ordinate.render import RENDERERS, render
from ordinate.render.atomic_files import UNLOCKED_PREFIX
from ordinate.tuning.experiment.check import check_experiment
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest


@pytest.fixture
def root(tmp_path):
    return write_experiment(tmp_path / "study")


def found(root, scale=None, **columns):
    return check_experiment(Experiment.open(root, columns=DataColumns(**columns)), scale)


def told(result):
    return [f"{one.severity}: {one.where}: {one.what}" for one in result.findings]


def change(root, name, *, rows=None, **cells):
    """Write a data set again, with other cells in its first rows."""
    training = name == "train"
    rows = rows or (items(30) if training else items(12, 30))
    for column, values in cells.items():
        for row, value in zip(rows, values, strict=False):
            row[column] = value
    write_rows(root / ("ml-training-data" if training else "ml-test-data") / f"{name}.csv", rows)


def test_a_sound_experiment_has_nothing_odd(root):
    result = found(root)
    assert told(result) == []
    assert result.errors == ()
    assert [one.items for one in result.data] == [30, 12]
    assert result.data[0].levels == dict.fromkeys(["A1", "A2", "B1", "B2", "C1", "C2"], 5)
    assert [(one.dataset, one.features, one.matched) for one in result.features] == [
        ("train", 3, "by id"),
        ("test", 3, "by id"),
    ]
    assert "Nothing is missing or odd" in str(result)


def test_it_writes_nothing(root):
    before = sorted(root.rglob("*"))
    found(root)
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_of_the_report_has_findings_and_counts(root, form):
    change(root, "train", text=[""])
    shown = render(found(root), form)
    assert "texts are empty" in shown
    assert "30" in shown


def test_an_empty_folder_lacks_training_data_and_features(tmp_path):
    assert told(found(tmp_path)) == [
        "error: ml-training-data: There are no training data. Put a CSV file here.",
        "note: ml-test-data: There are no test data, so no model is tested.",
        "warning: features: There are no feature sets. Make one: ordinate features.",
    ]
    assert render(found(tmp_path), "csv").startswith("severity,where,what\n")


@pytest.mark.parametrize(
    ("name", "cells", "finding"),
    [
        ("train", {"level": ["", ""]}, "error: ml-training-data/train.csv: 2 of 30 labels are"),
        ("test", {"level": [""]}, "warning: ml-test-data/test.csv: 1 of 12 labels are missing"),
        (
            "train",
            {"level": [" A1"]},
            "warning: ml-training-data/train.csv: 1 labels, the first in",
        ),
        ("train", {"level": ["B3"]}, "error: ml-training-data/train.csv: 1 labels are not on the"),
        ("train", {"text": ["", " "]}, "warning: ml-training-data/train.csv: 2 texts are empty"),
        ("test", {"text": ["Text 3,  with a comma."]}, "warning: ml-test-data/test.csv: 1 of 12"),
        ("train", {"text": ["Same", "Same"]}, "note: ml-training-data/train.csv: 1 texts repeat"),
        ("train", {"level": ["C1"]}, "warning: ml-training-data: Level A1 has 4 items: fewer"),
        ("train", {"id": ["t5"]}, "error: ml-training-data/train.csv: .* in row 1 and in row 6"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 6 else None,
)
def test_what_is_odd_in_data_is_told_with_its_place(root, name, cells, finding):
    change(root, name, **cells)
    lines = told(found(root))
    assert any(_matches(finding, line) for line in lines), lines


def _matches(pattern, line):
    start, _, end = pattern.partition(".*")
    return line.startswith(start) and end in line


def test_test_levels_that_training_lacks_are_told(root):
    change(root, "train", level=["A1", "A2", "B1", "B2", "C1", "C1"] * 5)
    lines = told(found(root))
    where = "warning: ml-test-data/test.csv: "
    assert where + "2 items are of C2, which training data lack: no model saw one." in lines
    assert "note: ml-training-data: There are no items of C2; models keep the whole scale." in lines


def test_training_data_of_one_level_are_an_error(root):
    change(root, "train", level=["B1"] * 30)
    assert "error: ml-training-data: Items are of 1 level; two are needed." in told(found(root))


def test_data_without_levels_are_told(root):
    rows = [{"id": row["id"], "text": row["text"]} for row in items(12, 30)]
    change(root, "test", rows=rows)
    (line,) = told(found(root))
    assert line.startswith("warning: ml-test-data/test.csv: It has no column of levels")
    change(root, "train", rows=[{"id": row["id"], "text": row["text"]} for row in items(30)])
    assert "Which column of" in found(root).errors[0].what


def test_an_unknown_scale_is_an_error_unless_it_is_declared(root):
    change(root, "train", level=["1", "2", "3"] * 10)
    change(root, "test", level=["1", "2", "3"] * 4)
    assert "No scale was declared" in found(root).errors[0].what
    assert found(root, "1..3").errors == ()


def test_groups_of_training_and_test_data_are_compared(root):
    change(root, "train", writer=[f"w{k}" for k in range(30)])
    change(root, "test", writer=["w1", "w1", "w2", *"abcdefghi"])
    assert told(found(root, group="writer")) == [
        "warning: ml-test-data/test.csv: 2 groups of column 'writer' are in the training data, too."
    ]


def test_other_files_among_the_data_are_not_used(root):
    (root / "ml-training-data" / "notes.md").touch()
    (root / "ml-training-data" / "old").mkdir()
    assert told(found(root)) == [
        "note: ml-training-data/notes.md: It is no data file, and not used.",
        "note: ml-training-data/old: It is no data file, and not used.",
    ]


# --- features ------------------------------------------------------------------------------------


def test_sets_that_lack_a_data_set_are_told(root):
    write_csv(root / "features" / "half" / "train", numbers(30))
    write_csv(root / "features" / "other" / "test", numbers(12))
    lines = told(found(root))
    assert "warning: features/half: It has no features for the test data 'test'." in lines
    assert "error: features/other: It has no features for the training data 'train'." in lines


def test_features_of_no_data_set_are_told(root):
    (root / "features" / "shape" / "former").mkdir()
    assert told(found(root)) == ["note: features/shape/former: There is no data set of this name."]


def test_rows_that_do_not_match_are_an_error_and_row_order_is_a_note(root):
    write_csv(root / "features" / "mine" / "train", numbers(31))
    write_csv(root / "features" / "mine" / "test", numbers(12))
    result = found(root)
    assert "has 31 rows, and" in result.errors[0].what
    assert result.errors[0].where == "features/mine/train"
    assert "note: features/mine/test: Matched by row order" in "\n".join(told(result))
    assert [one.matched for one in result.features] == ["by row order", "by id", "by id"]


def test_features_with_other_names_are_an_error(root):
    write_csv(root / "features" / "mine" / "train", numbers(30))
    write_csv(root / "features" / "mine" / "test", numbers(12), ["length", "other", "clauses"])
    expected = "error: features/mine/test: Feature 2 is 'other', and 'words' in those of 'train'."
    assert expected in told(found(root))
    write_csv(root / "features" / "mine" / "test", numbers(12, 2), ["length", "words"])
    expected = "error: features/mine/test: It has 2 features, and those of 'train' are 3."
    assert expected in told(found(root))


def test_features_that_say_nothing_or_too_much_are_told(root):
    matrix = np.column_stack([numbers(30)[:, :2], np.ones(30)])
    ids = [row["id"] for row in items(30)]
    write_csv(root / "features" / "shape" / "train", matrix, ["length", "words", "label"], ids=ids)
    lines = told(found(root))
    assert "note: features/shape/train: 1 of 3 features are the same for all items." in lines
    assert "warning: features/shape/train: A feature is named 'label'" in "\n".join(lines)


def test_a_pickle_among_features_or_models_is_an_error(root):
    (root / "features" / "shape" / "train" / "vectorizer.pkl").write_bytes(pickle.dumps(1))
    (root / "models").mkdir()
    (root / "models" / "best.joblib").write_bytes(pickle.dumps(1))
    (root / "models" / "readme.txt").touch()
    result = found(root)
    assert [one.where for one in result.errors] == ["features/shape/train", "models/best.joblib"]
    assert "note: models/readme.txt: It is no saved model, and not used." in told(result)


def test_a_linked_feature_set_is_an_error(root, tmp_path):
    (tmp_path / "outside").mkdir()
    (root / "features" / "linked").symlink_to(tmp_path / "outside")
    assert "leaves the folder" in found(root).errors[0].what


# --- what was made -------------------------------------------------------------------------------


def test_models_are_verified(root):
    for name in ("good", "changed", "bare"):
        folder = root / "models" / name
        folder.mkdir(parents=True)
        write_lines(folder / "model.txt", "weights", ["1"])
        if name != "bare":
            Manifest.of(
                folder, "model", name, config={}, data={}, seed=0, command="ordinate tune"
            ).write(folder)
    write_lines(root / "models" / "changed" / "model.txt", "weights", ["2"])
    result = found(root)
    assert result.models == ("good",)
    assert [one.where for one in result.errors] == ["models/bare", "models/changed"]
    assert "is not what its manifest.json lists" in result.errors[1].what
    assert "Saved models, as their manifests say: good." in str(result)


def test_leftovers_of_killed_runs_are_a_note(root):
    (root / "models" / ".ordinate-1").mkdir(parents=True)
    (root / "models" / ".ordinate-1" / "part").touch()
    (root / ".ordinate-2.json").touch()
    (line,) = told(found(root))
    assert line.startswith("note: .: 2 temporary files or folders")


def test_what_a_killed_writer_of_an_output_left_is_a_note(root):
    (root / f"{UNLOCKED_PREFIX}1.md").touch()
    (line,) = told(found(root))
    assert line.startswith(f"note: .: 1 temporary files ({UNLOCKED_PREFIX}*) of an output (-o)")
